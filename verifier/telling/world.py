"""What a world that decides does, told once: in the table of a run, in explanations, reports and cases."""

from __future__ import annotations

import math
from collections.abc import Iterator

from verifier.study.points import WorldDecisions
from verifier.telling.grounds import name_text, state_text

MOST_DECIDED = 10
"""States in which it is told what the world decides; the document has more."""


def world_aim(asked: str) -> str:
    """What the world wants whose least, or greatest, value is asked for."""
    return "makes it fail" if asked.endswith("min") else "makes it hold"


def decided_lines(found: WorldDecisions) -> Iterator[str]:
    """What it decides, most visited states first."""
    for state in found.decided[:MOST_DECIDED]:
        what = ", ".join(f"{name_text(name)} = {name_text(value)}" for name, value in state.decides.items())
        times = "from then on" if math.isinf(state.visits) else f"visited {state.visits:.3g} times"
        yield f"{state_text(state.state)}: {what} ({times})"
