"""What turns a source image into a follow-up image in some circumstance: a named mutation and its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

Plain: TypeAlias = bool | int | float | str


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
        ValueError: no name.
    """

    mutation: str
    parameters: Mapping[str, Plain | Span] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.mutation:
            raise ValueError("expected the name of a mutation")
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

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
