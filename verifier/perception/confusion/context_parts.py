"""Contexts that go on from one part of a sequence to the next: what is carried, and nothing else.

A context is a function of as many outcomes as its cap, so these are carried for each object, set of objects and free
place of the sequence that a part ends in. Where a frame without an annotation begins a context again, only those with
an outcome in the last frame go on; otherwise a track may come back, and all of its sequence are kept.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verifier.base.arrays import Ints
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.settings import Gaps


@dataclass(frozen=True)
class Begun:
    """What may go on.

    Attributes:
        sequence: name of the sequence; None before the first.
        outcomes: who -> (number of the frame, outcome) of its last reports, oldest first.
    """

    sequence: str | None = None
    outcomes: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Part:
    """Some frames of a data set, which a context may come from or go on to.

    Attributes:
        begun: from the frames before.
        numbers: (f,) of each frame within its sequence.
        sequence: (f,) number of each frame's sequence, in the order of `names`.
        names: of the sequences.
        last: number of the sequence that the part ends in; -1 where that is not among these.
        kept: filled while contexts are told: what goes on.
    """

    begun: Begun
    numbers: Ints
    sequence: Ints
    names: tuple[str, ...]
    last: int
    kept: dict[str, list[list[int]]] = field(default_factory=dict)

    @property
    def after(self) -> Begun:
        """What may go on after these frames."""
        return Begun() if self.last < 0 else Begun(self.names[self.last], self.kept)

    def along(
        self, contexts: Contexts, series: Ints, frame: Ints, right: Ints, gaps: Gaps, who: Callable[[int], list[Any]]
    ) -> Ints:
        """(n,) the context before each outcome; as `Contexts.along` over all frames of the sequences.

        Args:
            contexts: the context function.
            series: (n,) who each outcome is of.
            frame: (n,) place of its frame among these.
            right: (n,) the outcome, 0 or 1.
            gaps: what frames without a row do.
            who: a name for that of a row, the same in every part.
        """
        going_on = self.names.index(self.begun.sequence) if self.begun.sequence in self.names else -1
        earlier, named = list[tuple[int, int, int]](), dict[int, str]()
        own, first = np.unique(series, return_index=True)
        for number, row in zip(own.tolist(), first.tolist(), strict=True):
            at = int(self.sequence[frame[row]])
            if at in (self.last, going_on):
                named[number] = text = json.dumps(who(row), default=float)
                past = self.begun.outcomes.get(text, ()) if at == going_on else ()
                earlier += [(number, int(when), int(outcome)) for when, outcome in past]
        before = np.array(earlier, dtype=np.int64).reshape(-1, 3)
        every = np.concatenate([before, np.column_stack([series, self.numbers[frame], right])])
        if self.last >= 0:
            here = np.isin(every[:, 0], series[self.sequence[frame] == self.last])
            self._keep(every[here], named, contexts.cap, gaps)
        return contexts.along(every[:, 0], every[:, 1], every[:, 2], gaps)[len(before) :]

    def _keep(self, rows: Ints, named: Mapping[int, str], most: int, gaps: Gaps) -> None:
        """The last outcomes of each series in the (n, 3) rows of the last sequence, as far as it can go on."""
        end = int(self.numbers[self.sequence == self.last].max(initial=0))
        if gaps != "break" and self.begun.sequence == self.names[self.last]:
            for text, past in self.begun.outcomes.items():
                self.kept.setdefault(text, [list(each) for each in past])
        ordered = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        for own in np.split(ordered, np.flatnonzero(np.diff(ordered[:, 0])) + 1) if len(ordered) else []:
            if gaps != "break" or own[-1, 1] == end:
                self.kept[named[int(own[0, 0])]] = own[-most:, 1:].tolist()
