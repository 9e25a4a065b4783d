"""The constants of a system model as numbers: what is set, what follows from others, and what may not be."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from verifier.base.errors import UsageError, unknown_name
from verifier.language.expressions import Source, evaluate, exact_number, to_text
from verifier.language.expressions.syntax import Node, names_in
from verifier.systems.model_parts import Planner, dependency_order

Setting: TypeAlias = int | Fraction | str
At: TypeAlias = Callable[[str], Source]
"""The element of the model file with a dotted key."""


def constant_settings(
    constants: Mapping[str, Node], planners: Mapping[str, Planner], settings: Mapping[str, Setting]
) -> dict[str, int | Fraction]:
    """The settings of constants; UsageError for a name that is neither one of them nor a planner's pick."""
    known = {f"{name}.pick" for name, planner in planners.items() if planner.chooses} | set(constants)
    chosen: dict[str, int | Fraction] = {}
    for name, value in settings.items():
        if name not in known:
            raise UsageError(": ".join(unknown_name("constant", name, known)))
        if name in constants:
            if isinstance(value, str):
                raise UsageError(f"constant {name}: expected a number, got {value!r}")
            chosen[name] = value
    return chosen


def constant_values(
    constants: Mapping[str, Node], settings: Mapping[str, int | Fraction], at: At
) -> dict[str, int | Fraction]:
    """Every constant's number; constants may be defined by others, in any order but not in a circle."""
    values: dict[str, int | Fraction] = dict(settings)
    defined = {name: node for name, node in constants.items() if name not in values}
    for name in dependency_order(defined, at("constants")):
        values[name] = exact_number(defined[name], values, at(f"constants.{name}"))
    return {name: values[name] for name in constants}


def refuse_unmet(constraints: Sequence[Node], constants: Mapping[str, int | Fraction], at: At) -> None:
    """Refuse constants under which the model makes no sense; InputError."""
    for index, constraint in enumerate(constraints):
        source = at(f"constraints[{index}]")
        if not evaluate(constraint, constants, source):
            values = ", ".join(f"{name} = {constants[name]}" for name in sorted(names_in(constraint)))
            raise source.error(f"expected {to_text(constraint)}, got {values}", None, "change the constants")
