"""What a detector may remember of an object: the context of a report, a function of the outcomes before it.

An *outcome* says whether a report was right: that of an object if its own class was reported, that of a place without
objects if nothing was. A context is a function of the outcomes of one object so far, newest last. Without any it is
`start`. Two kinds are known:

* `run:L` the length of the current run of equal outcomes, up to L: `right*3`, `wrong*5`.
* `last:k` the last k outcomes: `rwr`.

* `persist:L` the number of wrong outcomes in a row, up to L: a coarser `run:L` that does not count right ones. Nobody
  counts it; it is what bounds on persistent misses are made of (`persistent`).

`run:1` and `last:1` are the same. A file counted with a large context serves every coarser one: `run:L'` with L' < L,
`last:k'` with k' < k, and `last:1`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Annotated, Literal, TypeAlias

import numpy as np

from verifier.base.arrays import Ints
from verifier.base.documents import Count, Limits, Magnitude, MisfitError, Share
from verifier.base.errors import UsageError, shown
from verifier.perception.settings import Gaps

Kind: TypeAlias = Literal["none", "run", "last", "persist"]
LARGEST_CAP = {"none": 0, "run": 50, "last": 8, "persist": 50}
UNTRACKED = "untracked"
"""The name of items without a track; their place is after all contexts. They are in sums, in no rate of a context."""
RIGHT, WRONG = 1, 0


@dataclass(frozen=True)
class Contexts:
    """A context function.

    Attributes:
        cap: longest run that is told apart, or number of outcomes remembered; 0 for none.

    Raises:
        UsageError: a cap that the kind does not have.
    """

    kind: Kind = "none"
    cap: int = 0

    def __post_init__(self) -> None:
        most = LARGEST_CAP[self.kind]
        if not min(1, most) <= self.cap <= most:
            asked = f"--persist {self.cap}" if self.kind == "persist" else f"contexts {self.kind}:{self.cap}"
            raise UsageError(f"{asked}: expected a length from {min(1, most)} to {most}")

    @classmethod
    def parsed(cls, text: str) -> Contexts:
        """Read `none`, `run:L` or `last:k`; UsageError."""
        if text == "none":
            return cls()
        parts = re.fullmatch(r"(run|last):(\d{1,3})", text, re.ASCII)
        if parts is None:
            most = f"run:1 to run:{LARGEST_CAP['run']}, last:1 to last:{LARGEST_CAP['last']}"
            raise UsageError(f"expected contexts ({most}, or none), got {shown(text)}")
        return cls("run" if parts[1] == "run" else "last", int(parts[2]))

    def __str__(self) -> str:
        return self.kind if self.kind == "none" else f"{self.kind}:{self.cap}"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of all contexts; the first is the one without outcomes."""
        if self.kind == "none":
            return ("*",)
        if self.kind == "run":
            lengths = range(1, self.cap + 1)
            return ("start", *(f"{outcome}*{length}" for outcome in ("right", "wrong") for length in lengths))
        if self.kind == "persist":
            return ("start", "right", *(f"wrong*{length}" for length in range(1, self.cap + 1)))
        ages = range(1, self.cap + 1)
        return ("start", *("".join(letters) for age in ages for letters in product("rw", repeat=age)))

    @property
    def count(self) -> int:
        """How many contexts there are."""
        return len(self.names)

    @property
    def start(self) -> int:
        """The number of the context without outcomes."""
        return 0

    @cached_property
    def update(self) -> Ints:
        """(contexts, 2) the number of the next context after a wrong (column 0) or right (column 1) outcome."""
        number = {name: at for at, name in enumerate(self.names)}
        rows = [[number[self._next(name, outcome)] for outcome in ("wrong", "right")] for name in self.names]
        return np.array(rows, dtype=np.int64)

    def _next(self, name: str, outcome: str) -> str:
        if self.kind == "none":
            return name
        if self.kind == "last":
            return (("" if name == "start" else name) + outcome[0])[-self.cap :]
        if self.kind == "persist" and outcome == "right":
            return "right"
        before, _, length = name.partition("*")
        return f"{outcome}*{min(int(length) + 1, self.cap)}" if before == outcome else f"{outcome}*1"

    @cached_property
    def shorter(self) -> tuple[int | None, ...]:
        """For each context the number of the one that remembers one outcome less; None where that is nothing."""
        number = {name: at for at, name in enumerate(self.names)}
        return tuple(number.get(self._shortened(name)) for name in self.names)

    def _shortened(self, name: str) -> str:
        if self.kind == "last":
            return "" if name == "start" else name[1:]
        outcome, _, length = name.partition("*")
        return f"{outcome}*{int(length) - 1}" if length else ""

    def coarsening(self, coarser: Contexts) -> Ints:
        """(contexts,) the number of each context among those of a coarser function.

        Raises:
            UsageError: the other is not coarser.
        """
        comparable = coarser.kind in ("none", self.kind) or (coarser.cap == 1 and self.kind != "none")
        if not comparable or coarser.cap > self.cap:
            known = "none" if self.kind == "none" else f"none, last:1, {self.kind}:1 to {self}"
            raise UsageError(
                f"contexts {coarser} cannot be had from matrices counted with {self}, which give {known}: "
                f"count them again with verify confusion --memory {coarser}"
            )
        return np.array([coarser.after(self.outcomes_of(name)) for name in self.names], dtype=np.int64)

    def outcomes_of(self, name: str) -> Sequence[int]:
        """The outcomes, oldest first, that a context remembers for certain."""
        if name in ("start", "*"):
            return []
        if self.kind == "last":
            return [RIGHT if letter == "r" else WRONG for letter in name]
        outcome, _, length = name.partition("*")
        return [RIGHT if outcome == "right" else WRONG] * int(length)

    def after(self, outcomes: Sequence[int]) -> int:
        """The number of the context after these outcomes, oldest first."""
        context = self.start
        for outcome in outcomes:
            context = int(self.update[context, outcome])
        return context

    def along(self, series: Ints, frame: Ints, right: Ints, gaps: Gaps) -> Ints:
        """(n,) the context that each row has before its own outcome.

        A context is a function of as many outcomes as `cap`, so it is folded over these, all rows at once.

        Args:
            series: (n,) the object or place that a row is about; different ones share no context.
            frame: (n,) number of the frame, all different within a series.
            right: (n,) the outcome, 0 or 1.
            gaps: what frames without a row do: `break` begins again, `hold` keeps the context, `miss` counts each as
                one wrong outcome.
        """
        order = np.lexsort((frame, series))
        own, at, outcome = series[order], frame[order], right[order]
        missing = np.diff(at, prepend=at[:1]) - 1
        begins = np.diff(own, prepend=own[:1] - 1) != 0
        missing[begins] = 0
        if gaps == "break":
            begins |= missing > 0
        if gaps == "miss":
            filled = np.minimum(missing, self.cap)  # more cannot be told apart
            place = np.arange(len(order)) + np.cumsum(filled)
            outcome = np.zeros(len(order) + int(filled.sum()), dtype=np.int64)
            started = np.zeros(len(outcome), dtype=bool)
            outcome[place], started[place] = right[order], begins
        else:
            place, started = np.arange(len(order)), begins
        contexts = np.empty(len(order), dtype=np.int64)
        contexts[order] = self._folded(outcome, started)[place]
        return contexts

    def _folded(self, outcome: Ints, started: Ints) -> Ints:
        """(n,) the context before each outcome of series that lie one after the other."""
        first = np.maximum.accumulate(np.where(started, np.arange(len(outcome)), 0))
        age = np.arange(len(outcome)) - first
        context = np.full(len(outcome), self.start, dtype=np.int64)
        for back in range(self.cap, 0, -1):
            rows = np.flatnonzero(age >= back)
            context[rows] = self.update[context[rows], outcome[rows - back]]
        return context


@dataclass(frozen=True)
class ResidualTest:
    """Whether a class's misses depend on more of the past than its context says.

    Of each report the history is the share of wrong ones among the last `HISTORY` of the track. If contexts say all,
    outcomes of one bin, class and context are exchangeable whatever their histories, so they are permuted among them.
    The order of reports makes that an approximation of the law under such a detector.

    Attributes:
        label: name of the class.
        contexts: the context function that is tested.
        z: the sum of histories of wrong reports, in standard deviations above its mean under permutation; None where
            permuting changes nothing.
        p_value: (1 + permutations with at least that sum) / (1 + permutations).
    """

    label: str
    contexts: str
    z: float | None
    p_value: Annotated[float, Limits(gt=0, le=1)]
    permutations: Annotated[int, Limits(ge=1)]


HISTORY = 20
"""Reports of the track that a history looks back on."""


@dataclass(frozen=True)
class ReplayTest:
    """A tracker on real tracks beside what one context function, fitted on the other drives, predicts of it.

    Attributes:
        label, contexts: as in `ResidualTest`.
        confirm, range, frames: the tracker M/N, the metres in which a window lies, and its frames.
        tracks, not_confirmed, expected: first windows of tracks, those that are never confirmed, and their mean.
        p_value: two-sided, of the number that is not confirmed.
    """

    label: str
    contexts: str
    confirm: str
    range: str
    frames: Annotated[int, Limits(ge=1)]
    tracks: Annotated[int, Limits(ge=1)]
    not_confirmed: Count
    expected: Magnitude
    p_value: Share

    def __post_init__(self) -> None:
        for name in ("not_confirmed", "expected"):
            if getattr(self, name) > self.tracks:
                raise MisfitError([name], f"expected at most {self.tracks}, the number of tracks")


@dataclass(frozen=True)
class OfTracks:
    """How the tracks of a class are missed, in whatever bins.

    Attributes:
        longest_wrong_run: frames of the longest run of wrong outcomes of a track.
        with_drive, later: wrong outcomes at the first frame, and tracks: those that begin with their drive, in which
            the object may have been in view before, and the others.
    """

    longest_wrong_run: Count
    with_drive: tuple[Count, Count]
    later: tuple[Count, Count]

    def __post_init__(self) -> None:
        for name in ("with_drive", "later"):
            wrong, tracks = getattr(self, name)
            if wrong > tracks:
                raise MisfitError([name], f"expected at most {tracks} wrong first outcomes, of so many tracks")

    @classmethod
    def of(cls, series: Ints, number: Ints, right: Ints, gaps: Gaps) -> OfTracks:
        """Of (n,) outcomes of tracks; arguments as for `Contexts.along`, `number` 0 at the first frame of a drive."""
        order = np.lexsort((number, series))
        series, number, hit = series[order], number[order], right[order] > 0
        new = np.append(True, series[1:] != series[:-1])[: len(series)]
        gap = number - np.roll(number, 1) - 1  # not read where a track begins
        again = new | ((gap > 0) & (gaps == "break"))
        missing = np.where(again | (gaps != "miss"), 0, gap)
        wrong = np.cumsum(missing + ~hit)
        before = wrong - ~hit
        begun = np.maximum.accumulate(np.where(hit, wrong, np.where(again, before, 0)))
        run = wrong - np.where(again, before, np.roll(begun, 1))  # with the frames missing before, also where it ends
        first = [np.flatnonzero(new & at) for at in (number == 0, number > 0)]
        starts = [(int((~hit[rows]).sum()), len(rows)) for rows in first]
        return cls(int(run.max(initial=0)), *starts)

    def merged(self, other: OfTracks) -> OfTracks:
        """Of the tracks of both."""
        pairs = [
            (mine[0] + own[0], mine[1] + own[1])
            for mine, own in ((self.with_drive, other.with_drive), (self.later, other.later))
        ]
        return OfTracks(max(self.longest_wrong_run, other.longest_wrong_run), *pairs)
