"""What a planner remembers: its memory, its trackers, and which of the frames of a step it reads.

In every step the trackers read each frame in turn, then the rules read what `reading` says. A tracker of a window
has a state (q, h): whether it is confirmed, and the last results. On a result b

    q = 0:  sum(h, b) >= m            -> q = 1, h = (1, .., 1)         else h = the last n - 1 of (h, b)
    q = 1:  misses in (h, b) >= m'    -> q = 0, h = (0, .., 0)         else h = the last n' - 1 of (h, b)

for confirm = [m, n] and delete = [m', n']: a window begins afresh at each change. One of log odds has a level
instead, raised by a hit and lowered by a miss within its range.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from verifier.base.arrays import Ints, Mask
from verifier.language.expressions import exact_number
from verifier.perception.confusion.matrices import Label
from verifier.systems.model import BoundedVariable, System, bounded
from verifier.systems.model_parts import Planner, Tracker
from verifier.systems.space import truth

_FRAME = re.compile(r"frame (\d+): ")


def tagged(fact: str, frame: int) -> str:
    """A fact of one frame of a step, numbered from 0."""
    return f"frame {frame + 1}: {fact}"


def untagged(fact: str) -> str:
    """The fact without its frame."""
    return _FRAME.sub("", fact, count=1)


def in_frames(observation: Label, frames: int) -> list[Label]:
    """What each frame says, of an observation that tells frames apart; else the observation as the only frame."""
    if not any(map(_FRAME.match, observation)):
        return [observation] * frames
    marks = [tagged("", frame) for frame in range(frames)]
    return [frozenset(map(untagged, (fact for fact in observation if fact.startswith(mark)))) for mark in marks]


def tells_frames_apart(planner: Planner, frames: int) -> bool:
    """Whether it matters in which frame of a step a report was made."""
    return frames > 1 and (bool(planner.trackers) or planner.reading not in ("last", "any"))


def frames_read(planner: Planner, frames: int) -> int:
    """How many frames of a step are read at all: the last one alone, where nothing looks at the others."""
    return 1 if planner.reading == "last" and not planner.trackers else frames


def what_rules_read(planner: Planner, seen: list[Label]) -> Label:
    """The facts that `sees` means, from those of each frame."""
    if planner.reading == "last":
        return seen[-1]
    least = {"any": 1, "all": len(seen)}.get(str(planner.reading)) or int(planner.reading[0])
    facts = frozenset().union(*seen)
    return frozenset(fact for fact in facts if sum(fact in frame for frame in seen) >= least)


def remembered(system: System, planner: Planner) -> list[tuple[BoundedVariable, int]]:
    """The variables of memory and trackers, and with what each begins.

    Raises:
        InputError: a range that is empty or not of whole numbers, or a beginning outside of it.
    """
    found: list[tuple[BoundedVariable, int]] = []
    for each in planner.memory:
        path = f"planners.{planner.name}.memory.{each.name}"
        variable, source = bounded(system, f"{path}.range", each), system.model.at(f"{path}.initial")
        value = exact_number(system.resolve(each.initial, source.path), {}, source)
        if value not in range(variable.low, variable.high + 1):
            raise source.error(f"'{each.name}' begins with {value}, outside {variable.low}..{variable.high}", None)
        found.append((variable, int(value)))
    for tracker in planner.trackers:
        confirmed, recent = tracker.variables
        low, high = tracker.levels
        found += [(BoundedVariable(confirmed, 0, 1), 0), (BoundedVariable(recent, low, high), tracker.start)]
    return found


def tracked(
    system: System, planner: Planner, seen: list[Label], values: Mapping[str, Ints], count: int
) -> dict[str, Ints | Mask]:
    """The trackers after all frames of a step: their variables, and `confirmed(t)` as a mask.

    Args:
        system, planner: whose.
        seen: the facts of each frame.
        values: (count,) of variables, memory and trackers.
    """
    found: dict[str, Ints | Mask] = {}
    for tracker in planner.trackers:
        confirmed, recent = (values[name] for name in tracker.variables)
        path = f"planners.{planner.name}.trackers.{tracker.name}.of"
        for facts in seen:
            of, source = system.answered(tracker.of, facts, path)
            confirmed, recent = _after(tracker, confirmed, recent, truth(of, values, count, source))
        found |= dict(zip(tracker.variables, (confirmed, recent), strict=True))
        found[f"confirmed({tracker.name})"] = confirmed == 1
    return found


def _after(tracker: Tracker, confirmed: Ints, recent: Ints, hit: Mask) -> tuple[Ints, Ints]:
    """(q, h) or (q, level) after one more result."""
    if tracker.log_odds is not None:
        low, high = tracker.levels
        level = np.clip(recent + np.where(hit, *tracker.log_odds), low, high)
        up, down = tracker.confirm[0], tracker.delete[0]
        return np.where(confirmed == 1, level > down, level >= up).astype(np.int64), level
    window = 2 * recent + hit
    (m, n), (m_, n_) = tracker.confirm, tracker.delete
    ones = sum((window >> bit) & 1 for bit in range(max(n, n_)))
    rises, falls = (confirmed == 0) & (ones >= m), (confirmed == 1) & (n_ - ones >= m_)
    kept = np.where(confirmed == 1, window % 2 ** (n_ - 1), window % 2 ** (n - 1))
    recent = np.where(rises, 2 ** (n_ - 1) - 1, np.where(falls, 0, kept))
    return np.where(rises, 1, np.where(falls, 0, confirmed)), recent
