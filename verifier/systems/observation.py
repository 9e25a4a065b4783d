"""What a planner asks of the reports of one step, and what it knows after each of them.

An observation is a set of facts: the classes c for which `sees(c)` holds, the other atoms that hold as text, and
`count(c) = n`. Reports are folded in one at a time, so that the cost grows with their number times the observations
that are told apart, not exponentially. Counts go no further than one above the largest number they are compared with,
and of a named object's class only what some rule asks is known.

What a planner remembers: its memory, its trackers, and which of the frames of a step it reads.

In every step the trackers read each frame in turn, then the rules read what `reading` says. A tracker of a window
has a state (q, h): whether it is confirmed, and the last results. On a result b

    q = 0:  sum(h, b) >= m            -> q = 1, h = (1, .., 1)         else h = the last n - 1 of (h, b)
    q = 1:  misses in (h, b) >= m'    -> q = 0, h = (0, .., 0)         else h = the last n' - 1 of (h, b)

for confirm = [m, n] and delete = [m', n']: a window begins afresh at each change. One of log odds has a level
instead, raised by a hit and lowered by a miss within its range.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Ints, Mask
from verifier.base.errors import InputError, LimitError
from verifier.language.expressions import exact_number, to_text
from verifier.language.expressions.syntax import (
    COMPARISONS,
    Call,
    Node,
    Number,
    Operation,
    atoms_in,
    children,
    fold,
    labels_of,
)
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.matrices import EMPTY, Label
from verifier.systems.model import BoundedVariable, System, bounded
from verifier.systems.model_parts import EMPTY_CLASS, Planner, Tracker
from verifier.systems.space import truth

LARGEST_OBSERVATION_COUNT = 1000
"""Observations a planner may tell apart: each leads somewhere from every state."""


@dataclass(frozen=True)
class Report:
    """What one report adds to an observation: facts, and the counts that it raises by one."""

    facts: frozenset[str]
    counted: frozenset[str]

    def in_frame(self, frame: int) -> Report:
        """The same, of one frame of a step."""
        return Report(*(frozenset(tagged(fact, frame) for fact in facts) for facts in (self.facts, self.counted)))


@dataclass(frozen=True)
class Frames:
    """How many frames of a step are read, and whether it matters which of them made a report."""

    count: int = 1
    told_apart: bool = False

    @classmethod
    def of(cls, planner: Planner, frames: int) -> Frames:
        """Those of a planner, where the detector reports so often in each step."""
        return cls(frames_read(planner, frames), tells_frames_apart(planner, frames))

    def report(self, report: Report, frame: int) -> Report:
        """A report of the frame of this number."""
        return report.in_frame(frame) if self.told_apart else report


ONE_FRAME = Frames()


@dataclass(frozen=True)
class Questions:
    """The questions of a planner.

    Attributes:
        classes: those asked about as `sees(class)`.
        atoms: the other atoms.
        caps: text of a count -> the number at which counting ends; a count that is not there goes on.
    """

    classes: frozenset[str]
    atoms: frozenset[Call] = frozenset()
    caps: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, nodes: Iterable[Node], classes: frozenset[str] = frozenset()) -> Questions:
        """What conditions and values ask, and these classes."""
        nodes = tuple(nodes)
        asked = frozenset().union(*map(atoms_in, nodes))
        plain = {call for call in asked if call.function == "sees" and len(call.arguments) == 1}
        caps: dict[str, int] = {}
        for text in {to_text(call) for call in asked if call.function == "count"}:
            compared = [_compared(node, text) for node in nodes]
            if all(numbers is not None for numbers in compared):
                caps[text] = 1 + max(number for numbers in compared for number in numbers or ())
        names = frozenset(labels_of(call)[0] for call in plain)
        return cls(classes | names, frozenset(call for call in asked - plain if call.function != "confirmed"), caps)

    @property
    def asks_within(self) -> bool:
        """Whether it matters in which bin a report is."""
        return any(isinstance(argument, Number) for atom in self.atoms for argument in atom.arguments)

    @property
    def named(self) -> frozenset[str]:
        """Every class that is asked about in some way; `empty` is none."""
        last = {labels_of(atom)[-1] for atom in self.atoms}
        return self.classes | (last - {EMPTY_CLASS})

    def report(self, label: Label, name: str, high_m: float) -> Report:
        """What a report of `label` adds, about the object of this name ("" for none), in a bin that ends there."""
        facts, counted = set(label & self.classes), set()
        for atom in self.atoms:
            within = next((argument.value for argument in atom.arguments if isinstance(argument, Number)), None)
            if not label or (within is not None and not high_m <= Fraction(within)):
                continue
            text, (first, *rest) = to_text(atom), labels_of(atom)
            if atom.function == "sees" and first in label:
                facts.add(text)
            elif atom.function == "count" and first in label:
                counted.add(text)
            elif atom.function == "report" and first == name:
                if rest[0] == EMPTY_CLASS:
                    facts.add(text.removesuffix(EMPTY_CLASS) + "*")
                elif rest[0] in label:
                    facts.add(text)
        return Report(frozenset(facts), frozenset(counted))

    def after(self, observation: Label, report: Report) -> Label:
        """The observation after one more report."""
        facts = observation | report.facts
        for text in report.counted:
            old = next((fact for fact in facts if fact.startswith(f"{text} = ")), f"{text} = 0")
            number = int(old.removeprefix(f"{text} = ")) + 1
            facts = (facts - {old}) | {f"{text} = {min(number, self.caps.get(untagged(text), number))}"}
        return facts

    def observations(self, draws: Iterable[Iterable[Report]]) -> tuple[Label, ...]:
        """Everything the planner can be told, the empty set first.

        Args:
            draws: for each report of a step what it may be.

        Raises:
            LimitError: these are more than `LARGEST_OBSERVATION_COUNT` observations.
        """
        labels: set[Label] = {EMPTY}
        for reports in draws:
            labels |= {self.after(old, report) for old in labels for report in set(reports)}
            if len(labels) > LARGEST_OBSERVATION_COUNT:
                raise LimitError(
                    f"the planner asks about {len(self.named)} classes and could receive more than "
                    f"{LARGEST_OBSERVATION_COUNT} observations",
                    hint="let the planner ask about fewer classes, or group classes before making the matrices",
                )
        return tuple(sorted(labels, key=lambda label: (len(label), sorted(label))))


def _compared(root: Node, text: str) -> set[int] | None:
    """The numbers with which a count is compared; None where it stands anywhere else."""

    def combine(node: Node, below: tuple[set[int] | None, ...]) -> set[int] | None:
        if isinstance(node, Call) and to_text(node) == text:
            return None
        operands = children(node) if below else ()
        if isinstance(node, Operation) and node.operator in COMPARISONS:
            for one, other in (operands, operands[::-1]):
                if isinstance(one, Call) and to_text(one) == text and isinstance(other, Number):
                    return {int(other.value)}
        if any(numbers is None for numbers in below):
            return None
        return set().union(*(numbers or set() for numbers in below))

    return fold(root, combine)


_FRAME = re.compile(r"^frame (\d+): ")


def tagged(fact: str, frame: int) -> str:
    """A fact of one frame of a step, numbered from 0."""
    return f"frame {frame + 1}: {fact}"


def untagged(fact: str) -> str:
    """The fact without its frame."""
    return _FRAME.sub("", fact)


def in_frames(observation: Label, frames: int) -> list[Label]:
    """What each frame says: the facts of it, and those that do not say of which frame they are."""
    marks = [tagged("", frame) for frame in range(frames)]
    plain = frozenset(fact for fact in observation if fact == untagged(fact))
    return [plain | {untagged(fact) for fact in observation if fact.startswith(mark)} for mark in marks]


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
    variables: list[tuple[BoundedVariable, int]] = []
    for memory in planner.memory:
        path = f"planners.{planner.name}.memory.{memory.name}"
        variable, source = bounded(system, f"{path}.range", memory), system.model.at(f"{path}.initial")
        value = exact_number(system.resolve(memory.initial, source.path), {}, source)
        if value not in range(variable.low, variable.high + 1):
            raise source.error(f"'{memory.name}' begins with {value}, outside {variable.low}..{variable.high}", None)
        variables.append((variable, int(value)))
    for tracker in planner.trackers:
        confirmed, recent = tracker.variables
        low, high = tracker.levels
        variables += [(BoundedVariable(confirmed, 0, 1), 0), (BoundedVariable(recent, low, high), tracker.start)]
    return variables


def tracked(
    system: System, planner: Planner, seen: list[Label], values: Mapping[str, Ints], count: int
) -> dict[str, Ints | Mask]:
    """The trackers after all frames of a step: their variables, and `confirmed(t)` as a mask.

    Args:
        system, planner: whose.
        seen: the facts of each frame.
        values: (count,) of variables, memory and trackers.
    """
    updated: dict[str, Ints | Mask] = {}
    for tracker in planner.trackers:
        confirmed, recent = (values[name] for name in tracker.variables)
        path = f"planners.{planner.name}.trackers.{tracker.name}.of"
        for facts in seen:
            of, source = system.answered(tracker.of, facts, path)
            confirmed, recent = _after(tracker, confirmed, recent, truth(of, values, count, source))
        updated |= dict(zip(tracker.variables, (confirmed, recent), strict=True))
        updated[f"confirmed({tracker.name})"] = confirmed == 1
    return updated


def _after(tracker: Tracker, confirmed: Ints, recent: Ints, hit: Mask) -> tuple[Ints, Ints]:
    """(q, h) or (q, level) after one more result."""
    if tracker.log_odds is not None:
        low, high = tracker.levels
        level = np.clip(recent + np.where(hit, *tracker.log_odds), low, high)
        (up, _), (down, _) = tracker.confirm, tracker.delete
        return np.where(confirmed == 1, level > down, level >= up).astype(np.int64), level
    window = 2 * recent + hit
    (m, n), (m_, n_) = tracker.confirm, tracker.delete
    ones = sum((window >> bit) & 1 for bit in range(max(n, n_)))
    rises, falls = (confirmed == 0) & (ones >= m), (confirmed == 1) & (n_ - ones >= m_)
    kept = np.where(confirmed == 1, window % 2 ** (n_ - 1), window % 2 ** (n - 1))
    recent = np.where(rises, 2 ** (n_ - 1) - 1, np.where(falls, 0, kept))
    return np.where(rises, 1, np.where(falls, 0, confirmed)), recent


@dataclass(frozen=True)
class Located:
    """In which bin what a draw reports is reported, where that may be another than the true one.

    Attributes:
        told: (reported, rows, draws, labels) int64, as that of a channel for each reported bin.
        counts: (reported, rows, draws) int64, how often a report is in that bin.
    """

    told: NDArray[np.int64]
    counts: NDArray[np.int64]

    def shares(self, kind: np.dtype[Any]) -> NDArray[Any]:
        """(reported, rows, draws) probability of each reported bin, as fractions where `kind` is that of objects."""
        totals = self.counts.sum(axis=0)
        if kind.kind != "O":
            return np.asarray(self.counts / totals)
        fraction = np.frompyfunc(lambda count, total: Fraction(int(count), int(total)), 2, 1)
        return np.asarray(fraction(self.counts, totals))


def located_in(
    matrices: ConfusionMatrices, bins: NDArray[np.int64], of_objects: NDArray[np.bool_], of_bins: NDArray[np.int64]
) -> Located:
    """Reports of objects in the bins that the localisation gives, all others in their own.

    `of_bins` is (reported, draws, labels), as which report a label is told in each distance bin.
    """
    counts = matrices.localisation
    assert counts is not None
    distances = matrices.distance_bin(bins)
    for index in np.unique(bins[of_objects]).tolist():
        if not counts[:, matrices.distance_bin(index)].sum():
            where = matrices.bin_text(index)
            hint = "count reported distances of objects there, or leave the localisation out"
            raise InputError(f"the localisation has no items for objects in {where}", hint=hint)
    own = np.arange(len(counts))[:, None, None] == distances
    told = np.broadcast_to(of_bins[:, None], (len(counts), *bins.shape, of_bins.shape[-1]))
    return Located(told, np.where(of_objects, counts[:, distances], own))
