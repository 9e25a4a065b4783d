"""What turns a source image into a follow-up image in some circumstance: a named mutation and its parameters.

Mutations and parameters are those of `verifier.robustness.mutators.MUTATORS`. A transformation may leave parameters
open, as the paper's are; then it can be reported and planned, but no image can be made with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from verifier.base.errors import unknown_name
from verifier.robustness.mutators import MUTATORS, Mutation
from verifier.robustness.mutators.catalogue import Plain


@dataclass(frozen=True)
class Span:
    """A parameter that differs from image to image: drawn evenly from low..high; whole numbers if both ends are.

    Raises:
        ValueError: the ends are not finite or not in order.
    """

    low: int | float
    high: int | float

    def __post_init__(self) -> None:
        if not -np.inf < self.low <= self.high < np.inf:
            raise ValueError(f"expected finite ends in order, got {self.low} and {self.high}")

    def drawn(self, rng: np.random.Generator) -> int | float:
        """One value."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            return int(rng.integers(self.low, self.high, endpoint=True))
        return float(rng.uniform(self.low, self.high))


@dataclass(frozen=True)
class Transformation:
    """A mutation by name, with parameters that are fixed or drawn for every image.

    Raises:
        ValueError: no mutation of that name, a parameter that it does not have, or a value that is not allowed.
    """

    mutation: str
    parameters: Mapping[str, Plain | Span] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fault = fault_of(self.mutation, self.parameters)
        if fault is not None:
            raise ValueError(fault[1] if fault[2] is None else f"{fault[1]} ({fault[2]})")
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    @property
    def lacks(self) -> str | None:
        """What must still be said before an image can be made; None where nothing is open."""
        try:
            # A value within the span is allowed where its ends are, which was checked.
            low = {name: each.low if isinstance(each, Span) else each for name, each in self.parameters.items()}
            Mutation(self.mutation, low)
        except ValueError as error:
            return str(error)
        return None

    def drawn(self, rng: np.random.Generator) -> dict[str, Plain]:
        """The parameters for one image, drawn in their order."""
        return {
            name: value.drawn(rng) if isinstance(value, Span) else value for name, value in self.parameters.items()
        }

    def __str__(self) -> str:
        parts = [
            f"{name}={value.low}..{value.high}" if isinstance(value, Span) else f"{name}={value}"
            for name, value in self.parameters.items()
        ]
        return f"{self.mutation}({', '.join(parts)})" if parts else self.mutation


def fault_of(mutation: str, parameters: Mapping[str, Plain | Span]) -> tuple[str, str, str | None] | None:
    """What is wrong with a transformation: key ("mutation" or a parameter), message and hint; None for nothing.

    Parameters that are missing are not wrong here; see `Transformation.lacks`.
    """
    if mutation not in MUTATORS:
        return ("mutation", *unknown_name("mutation", mutation, MUTATORS))
    mutator = MUTATORS[mutation]
    known = {each.name: each for each in mutator.parameters}
    for name, value in parameters.items():
        if name not in known:
            return (name, *unknown_name(f"parameter of {mutation}", name, known))
        for end in (value.low, value.high) if isinstance(value, Span) else (value,):
            try:
                known[name].checked(end)
            except ValueError as error:
                return name, str(error), None
        if (
            isinstance(value, Span)
            and known[name].whole
            and not (isinstance(value.low, int) and isinstance(value.high, int))
        ):
            return name, f"{name}: expected whole ends, between which whole numbers are drawn", None
    both = [name for name in mutator.either if name in parameters]
    if len(both) > 1:
        return both[1], f"give one of {', '.join(mutator.either)}", None
    return None
