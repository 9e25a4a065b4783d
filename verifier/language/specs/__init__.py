"""Specs: `.ltl` files that name a system model, scenarios, and requirements with targets."""

from verifier.language.specs.reader import read_spec
from verifier.language.specs.specification import Requirement, Specification, check_names

__all__ = ["Requirement", "Specification", "check_names", "read_spec"]
