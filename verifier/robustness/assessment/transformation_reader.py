"""The part of an assessment file on what makes an image of some circumstance.

transformation = { mutation = "salt_and_pepper", share = { low = 0.01, high = 0.05 } }
"""

from __future__ import annotations

from collections.abc import Mapping

from verifier.base.errors import unknown_name
from verifier.base.toml import Element
from verifier.robustness.assessment.transformations import Span, Transformation, fault_of
from verifier.robustness.mutators import MUTATORS
from verifier.robustness.mutators.catalogue import Plain


def read_transformation(found: Element) -> Transformation:
    """A transformation whose mutation and parameters exist; InputError."""
    name, parameters = _named(found)
    _refuse(found, name, parameters)
    return Transformation(name, parameters)


def read_step(found: Element, variable: str) -> tuple[str, dict[str, Plain]]:
    """A mutation with fixed parameters, of which some may be the word `variable` in place of a value; InputError."""
    name, parameters = _named(found)
    fixed: dict[str, Plain] = {}
    for key, value in parameters.items():
        if isinstance(value, Span):
            raise found.at(key).fail("expected one value: nothing is drawn here")
        fixed[key] = value
    _refuse(found, name, {key: value for key, value in fixed.items() if value != variable})
    known = [each.name for each in MUTATORS[name].parameters]
    for key in fixed:
        if key not in known:
            raise found.at(key).fail(*unknown_name(f"parameter of {name}", key, known))
    return name, fixed


def _named(found: Element) -> tuple[str, dict[str, Plain | Span]]:
    entries = dict(found.entries())
    if "mutation" not in entries:
        raise found.fail("missing key 'mutation'")
    name = entries.pop("mutation").string()
    return name, {key: _parameter(each) for key, each in entries.items()}


def _refuse(found: Element, name: str, parameters: Mapping[str, Plain | Span]) -> None:
    fault = fault_of(name, parameters)
    if fault is not None:
        raise found.at(fault[0]).fail(*fault[1:])


def _parameter(found: Element) -> Plain | Span:
    """A number, a word, or a table with the ends of a span."""
    if isinstance(found.value, dict):
        found.table(("low", "high"), required=("low", "high"))
        low, high = (_plain_number(found.at(key)) for key in ("low", "high"))
        return found.made(lambda: Span(low, high))
    if isinstance(found.value, str):
        return found.string()
    return _plain_number(found)


def _plain_number(found: Element) -> int | float:
    value = found.number()
    return int(value) if isinstance(found.value, int) else float(value)
