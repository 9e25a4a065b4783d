"""How formulas are checked, as one value. Only light modules are imported."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from verifier.base.options import Option, above_0
from verifier.systems.settings import Limits, MostMemory, MostStates

Decided: TypeAlias = Literal["satisfied", "violated"]
"""The verdicts that decide; and what an event can be of a requirement."""
Timeout = Annotated[
    float,
    Option(
        "time limit per formula and chain, both engines and intervals together",
        name="timeout",
        metavar="SECONDS",
        parse=above_0,
    ),
]


@dataclass(frozen=True)
class EngineSettings:
    """How to check.

    Attributes:
        timeout_s: seconds for one formula, both engines together; None for no limit.
        product_states: most states of a product of chain and formula.
        memory_bytes: what is named when memory is used up; `verifier.base.budget.memory_limit` enforces it.
    """

    exact: Annotated[bool, Option("exact rational arithmetic (slow on large chains)")] = False
    timeout_s: Timeout | None = 600.0
    product_states: MostStates = Limits.states
    memory_bytes: MostMemory = Limits.memory_bytes
