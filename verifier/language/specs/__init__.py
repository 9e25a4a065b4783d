"""Specs: `.ltl` files that name a system model, scenarios, and requirements with targets."""

from verifier.language.specs.reader import parse_spec, read_spec
from verifier.language.specs.specification import Requirement, Setting, Specification, Sweep, check_names

__all__ = ["Requirement", "Setting", "Specification", "Sweep", "check_names", "parse_spec", "read_spec"]
