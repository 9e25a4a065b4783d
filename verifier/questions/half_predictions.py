"""What the memory models of one half of the drives say of the windows of the other, see `questions.validation`.

*Whatever the dependence* (`any`): only the rate mu_t of right reports in each frame is given, the mean over tracks.
"Not confirmed by M in a row among n frames" says that wrong reports hit every M successive frames: they form a path
of steps of at most M through the frames, and the most that flows on such paths with 1 - mu_t through frame t is the
least cut, M successive frames. "Confirmed" is the same for right ones, and a cut hits every M successive frames:

    1 - min(1, least sum of mu_t over frames that hit every M)  <=  Pr  <=  min(1, least sum of 1 - mu_t over M).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.intervals.drive_items import DriveItems, divided
from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.phantom_draws import DriveData, drive_draws
from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import UsageError
from verifier.perception.confusion.context_selection import selected_contexts
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.counts import ContextCounts
from verifier.perception.confusion.replay import (
    NO_RATE,
    Tracked,
    Tracker,
    count_law,
    first_passages,
    passages,
    right_rates,
    unconfirmed,
)
from verifier.perception.confusion.tally import summed
from verifier.perception.settings import Gaps

FINEST = Contexts("run", 10)
"""What `auto` chooses from is no finer."""


@dataclass(frozen=True, eq=False)
class Half:
    """What one model says of the windows of one half, for n numbers of frames.

    Attributes:
        expected: (n,) how many are not confirmed, with the rates as counted; None for bounds.
        seen, windows: (n,) numbers of windows.
        laws: n of the laws (windows + 1,) of that number: lesser and greater, counted; lesser and greater, resampled.
    """

    expected: Floats | None
    seen: Ints
    windows: Ints
    laws: Sequence[tuple[Floats, Floats, Floats, Floats]]


@dataclass(frozen=True, eq=False)
class Windows:
    """Passages that begin some window, from their first frame on.

    Attributes:
        begin, length: (w,) row where each begins, and its frames.
        bins, right: (w, frames) of each; -1 after its end.
        number: (n, tracks) the passage of each track for windows of 1, 2, .. frames, and last that which is judged
            as a whole; -1 for none.
    """

    begin: Ints
    length: Ints
    bins: Ints
    right: Ints
    number: Ints

    @classmethod
    def through(cls, rows: Tracked, bins: Sequence[int], frames: int) -> Windows:
        """Those of all tracks through some bins, of up to so many frames."""
        begin, length = passages(rows, bins)
        number = np.full((frames + 1, int(rows.track.max(initial=-1)) + 1), -1, dtype=np.int64)
        for at, least in enumerate((*range(1, frames + 1), 1)):
            first = first_passages(rows, begin, length, least)
            number[at, rows.track[begin[first]]] = first
        ahead = np.arange(int(length.max(initial=0)))
        at_row = begin[:, None] + np.minimum(ahead, length[:, None] - 1)
        ends = ahead >= length[:, None]
        at_bin, right = (np.where(ends, -1, array[at_row]) for array in (rows.bin, rows.right))
        return cls(begin, length, at_bin, right, number)

    def of_drives(self, rows: Tracked, chosen: Mask) -> Windows:
        """Those that begin in chosen rows."""
        kept = np.intersect1d(np.flatnonzero(chosen[self.begin]), self.number)
        place = np.full(len(self.begin) + 1, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        longest = int(self.length[kept].max(initial=0))
        bins, right = self.bins[kept, :longest], self.right[kept, :longest]
        return Windows(self.begin[kept], self.length[kept], bins, right, place[self.number])

    def at(self, value: NDArray[Any], number: int) -> NDArray[Any]:
        """(..., windows) of (..., frames, w) values, those at the end of the windows of one row of `number`."""
        own = self.number[number][self.number[number] >= 0]
        last = self.length[own] - 1 if number == len(self.number) - 1 else np.full(len(own), number)
        return value[..., last, own]

    def half(self, said: Said, confirmed: Mask) -> Half:
        """What was said of the windows, beside what was seen: (w, frames) whether the tracker has confirmed."""
        numbers = range(len(self.number))
        silent = [~self.at(confirmed.T, number) for number in numbers]
        sides = (*said.counted, *said.resampled)
        laws = [
            (count_law(a), count_law(b), count_law(c), count_law(d))
            for a, b, c, d in ([self.at(side, number) for side in sides] for number in numbers)
        ]
        expected = np.array([float(self.at(said.counted[0], number).sum()) for number in numbers])
        seen = np.array([np.count_nonzero(array) for array in silent], dtype=np.int64)
        return Half(None if said.bounds else expected, seen, np.array(list(map(len, silent))), laws)


@dataclass(frozen=True, eq=False)
class Said:
    """Chances that a tracker has not confirmed after each frame of the windows.

    Attributes:
        counted: (1, frames, w) the lesser and the greater, with the rates as counted.
        resampled: (draws, frames, w) the same with drawn rates.
        bounds: whether the two are bounds, and not the same.
    """

    counted: tuple[Floats, Floats]
    resampled: tuple[Floats, Floats]
    bounds: bool = False


@dataclass(frozen=True, eq=False)
class Fit:
    """The drives that predict.

    Attributes:
        tracked: the reports of all drives, in order.
        names: of the drives.
        rows: (n,) those that are fitted.
        gaps, draws, seed: as asked for.
    """

    tracked: Tracked
    names: Sequence[str]
    rows: Mask
    gaps: Gaps
    draws: int
    seed: int

    def _table(self, contexts: Contexts) -> tuple[Ints, Ints]:
        """(n, 2) sequence and cell (bin and context as one number) of the fitted rows in a bin; and these rows."""
        rows = self.tracked
        used = np.flatnonzero(self.rows & (rows.bin >= 0))
        context = contexts.along(rows.track, rows.frame, rows.right, self.gaps)
        return np.column_stack([rows.sequence, rows.bin * contexts.count + context])[used], used

    def selected(self) -> Contexts:
        """The contexts that the fitted drives support."""
        cells, used = self._table(FINEST)
        at_bin, context = np.divmod(cells[:, 1], FINEST.count)
        finer = at_bin * (FINEST.count + 1) + context
        wrong = 1 - self.tracked.right[used]
        index = np.column_stack([cells[:, 0], finer, wrong, np.zeros(len(used), dtype=np.int64)])
        tally = summed(index.astype(np.int64), np.ones((len(index), 1), dtype=np.int64))
        bins = int(at_bin.max(initial=0)) + 1
        counts = tally.dense(bins * (FINEST.count + 1), 2).reshape(1, bins, FINEST.count + 1, 2, 2)
        return selected_contexts(ContextCounts(FINEST, self.gaps, None, counts, tally), [0]).contexts

    def predictions(self, model: str, windows: Windows, trackers: Sequence[Tracker]) -> Iterator[Said]:
        """What contexts say of each tracker."""
        contexts, rows = Contexts.parsed(model), self.tracked
        context = contexts.along(rows.track, rows.frame, rows.right, self.gaps)
        counted = right_rates(rows, context, contexts, self.rows)
        bins = len(counted)
        cells, used = self._table(contexts)
        table = np.zeros((len(self.names), bins * contexts.count, 2, 2), dtype=np.int64)
        np.add.at(table, (*cells.T, 1 - rows.right[used], 0), 1)
        drawn = self._drawn(DriveItems(tuple(self.names), "item", table)).reshape(-1, bins, contexts.count)
        rates = np.concatenate([counted[None], drawn])
        for tracker in trackers:
            chances = unconfirmed(rates, contexts, tracker, windows.bins, context[windows.begin])
            ends = chances[1:].reshape(2, self.draws, *chances.shape[1:])
            yield Said((chances[:1], chances[:1]), (ends.min(axis=0), ends.max(axis=0)))

    def bounds(self, _: str, windows: Windows, trackers: Sequence[Tracker]) -> Iterator[Said]:
        """Whatever the dependence, with rates in the mean over tracks."""
        cells, used = self._table(Contexts())
        rows, bins = self.tracked, int(self.tracked.bin.max(initial=-1)) + 1
        numbers, of = np.unique(
            np.column_stack([cells, rows.track[used]]), axis=0, return_inverse=True
        )  # of each track in each bin
        reports = np.zeros((len(numbers), 2))
        np.add.at(reports, (of.reshape(-1), 1 - rows.right[used]), 1)
        shares = np.zeros((len(self.names), bins, 2, 2))
        np.add.at(shares[..., 0], (numbers[:, 0], numbers[:, 1]), reports / reports.sum(axis=1, keepdims=True))
        wholes = np.zeros((len(self.names), bins, 2), dtype=np.int64)
        np.add.at(wholes[..., 0], (numbers[:, 0], numbers[:, 1]), 1)
        drives = DriveItems(tuple(self.names), "track", divided(shares, wholes))
        total = drives.table.sum(axis=0)[:, :, 0]
        if (total.sum(axis=1)[windows.bins[windows.bins >= 0]] == 0).any():
            raise UsageError(NO_RATE)
        counted = total[:, 0] / np.maximum(total.sum(axis=1), 1)
        ends = self._drawn(drives).reshape(2, self.draws, bins)
        for tracker in trackers:
            both = [
                [array.swapaxes(1, 2) for array in whatever_the_dependence(rates[:, windows.bins], tracker.needed)]
                for rates in (counted[None], *ends)
            ]
            (lesser, greater), *drawn = both
            least, most = zip(*drawn, strict=True)
            yield Said((lesser, greater), (np.minimum(*least), np.maximum(*most)), bounds=True)

    def _drawn(self, drives: DriveItems) -> Floats:
        """(2 * draws, cells) rates of right reports: with phantom drives all right, then all wrong."""
        counts = drives.table.sum(axis=0)
        cells = np.column_stack([np.arange(len(counts)), np.zeros(len(counts), dtype=np.int64)])
        fixed = np.zeros((len(counts), 2), dtype=bool)
        data = DriveData(Measured(counts, np.full(counts.shape, np.nan), fixed), drives, cells)
        rates: list[list[Floats]] = [[], []]
        for part in drive_draws(data, self.draws, self.seed):
            for side, reports in zip(rates, np.eye(2), strict=True):
                matrices = part.matrices(np.broadcast_to(reports, (1, len(cells), 2)))
                side.append(matrices[:, :, 0, 0])
        return np.concatenate([np.concatenate(side) for side in rates])


def whatever_the_dependence(right: Floats, needed: int) -> tuple[Floats, Floats]:
    """(..., frames) least and greatest chance that after each frame no `needed` reports in a row were right.

    Args:
        right: (..., frames) the rate of right reports in each frame.
        needed: M.
    """
    frames = right.shape[-1]
    least, greatest = np.ones(right.shape), np.ones(right.shape)
    cut = np.concatenate([np.zeros((*right.shape[:-1], needed)), np.empty(right.shape)], axis=-1)
    for frame in range(frames):  # least sums of rates over frames that hit every M, and end in this one
        cut[..., needed + frame] = right[..., frame] + cut[..., frame : frame + needed].min(axis=-1)
        if frame + 1 >= needed:
            least[..., frame] = 1 - np.minimum(1, cut[..., frame + 1 : frame + 1 + needed].min(axis=-1))
            wrong = (1 - right[..., frame + 1 - needed : frame + 1]).sum(axis=-1)
            before = greatest[..., frame - 1] if frame else 1.0
            greatest[..., frame] = np.minimum(before, np.minimum(1, wrong))
    return least, greatest
