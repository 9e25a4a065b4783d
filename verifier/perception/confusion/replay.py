"""Does a memory model say what happens on real tracks? A tracker replayed on recorded reports beside its prediction.

The ego of a recorded drive does not obey a planner, so requirements on the world cannot be replayed. What can is a
property of the reports: whether a tracker confirms an object within so many frames. Of each track the *first* window
of successive frames in the given bins is taken, so that windows do not overlap; the model predicts it along the same
bins, from the context that the track has there, with rates counted on the other sequences.

* The share of windows not confirmed has the exact interval of Clopper and Pearson (1934): for a new track, if tracks
  are exchangeable.
* If the model is right the number of them has the law of a sum of independent outcomes with the predicted chances
  (Poisson binomial); its two-sided p-value is twice the smaller tail, at most 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.statistics import clopper_pearson
from verifier.perception.confusion.bins import Bins, parse_edges
from verifier.perception.confusion.contexts import Contexts, ReplayTest
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.record import Record, read_record
from verifier.perception.confusion.tally import distinct_rows
from verifier.perception.confusion.tracks import frame_numbers
from verifier.perception.settings import Gaps, ReplaySettings

LARGEST_WINDOW = 1000
"""Frames of a window that is replayed."""
LARGEST_TRACKER = 12
"""Reports that a tracker looks at; its histories are kept one by one."""

NO_RATE = "the drives that predict have no report in a bin of the range: name another --range, or wider --bins"


@dataclass(frozen=True, eq=False)
class Tracked:
    """Reports along tracks, one row per object and frame.

    Attributes:
        sequence: (n,) number of the drive.
        track: (n,) number of track and class, different in different sequences of the source.
        frame: (n,) number within the sequence of the source.
        bin: (n,) -1 for none.
        right: (n,) whether the report was right, 0 or 1.
    """

    sequence: Ints
    track: Ints
    frame: Ints
    bin: Ints
    right: Ints


@dataclass(frozen=True)
class Tracker:
    """Confirms when `needed` of the last `window` reports are right, see `verifier.systems.observation`."""

    needed: int
    window: int

    @classmethod
    def parsed(cls, text: str) -> Tracker:
        """Read M/N; UsageError."""
        numbers = re.fullmatch(r"(\d{1,2})/(\d{1,2})", text, re.ASCII)
        if numbers is None or not 1 <= int(numbers[1]) <= int(numbers[2]) <= LARGEST_TRACKER:
            raise UsageError(
                f"--confirm: expected M/N with 1 <= M <= N <= {LARGEST_TRACKER}, such as 3/5, got {shown(text)}"
            )
        return cls(int(numbers[1]), int(numbers[2]))

    def __str__(self) -> str:
        return f"{self.needed}/{self.window}"

    def after(self, history: int, right: int) -> int | None:
        """The history (bits, newest last) after one more report; None where that confirms."""
        if self.needed == self.window and not right:
            return 0  # nothing before a wrong report matters
        if history.bit_count() + right >= self.needed:
            return None
        return (history << 1 | right) & ((1 << (self.window - 1)) - 1)

    def confirmed(self, right: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(w, frames) whether the tracker has confirmed by each of (w, frames) reports."""
        total = np.cumsum(np.pad(right.astype(np.int64), ((0, 0), (self.window, 0))), axis=1)
        within: NDArray[np.bool_] = total[:, self.window :] - total[:, : -self.window] >= self.needed
        return np.asarray(np.logical_or.accumulate(within, axis=1), dtype=bool)


@dataclass(frozen=True)
class Prediction:
    """What one context function says of the windows.

    Attributes:
        contexts: the function.
        expected: how many windows are not confirmed, in the mean.
        p_value: two-sided, of the number seen.
    """

    contexts: str
    expected: float
    p_value: float


@dataclass(frozen=True)
class Replayed:
    """A property replayed on real tracks.

    Attributes:
        frames: length of a window.
        needed, tracker_window: of the tracker.
        windows: first windows of tracks.
        sequences: drives they come from.
        not_confirmed: windows in which the tracker never confirms.
        low, high: interval of that share for a new track.
        predictions: of each context function.
    """

    frames: int
    needed: int
    tracker_window: int
    windows: int
    sequences: int
    not_confirmed: int
    low: float
    high: float
    predictions: tuple[Prediction, ...]


def replay_record(settings: ReplaySettings) -> Replayed:
    """What `verify confusion replay` asks.

    Raises:
        UsageError: choices that cannot be read or do not go together, or no window of that length.
        InputError: the record cannot be read, has no tracks of the class, or two objects of a track in one frame.
    """
    tracker = Tracker.parsed(settings.confirm)
    contexts = [Contexts.parsed(text.strip()) for text in (settings.memory or "none,run:1,run:5").split(",")]
    tracked, inside, _ = tracked_of(settings)
    result = replayed(tracked, inside, settings.frames, tracker, contexts, settings.gaps, settings.confidence)
    if not result.windows:
        raise UsageError(f"no track of {settings.true_class} has {settings.frames} successive frames in that range")
    return result


def with_replay(counts: ConfusionCounts, settings: ReplaySettings, replayed: Replayed) -> ConfusionCounts:
    """The matrices with a replay on the tracks that they count; one that was asked the same before is replaced.

    Raises:
        UsageError: they do not count that class, these contexts or these gaps.
    """
    divided, name = counts.by_context, settings.true_class
    if divided is None or divided.gaps != settings.gaps or frozenset({name}) not in counts.labels:
        raise UsageError(
            f"--into: expected matrices that count {name} by context, with --gaps {settings.gaps}, as the record does"
        )
    confirm, range_, frames = asked = str(Tracker.parsed(settings.confirm)), settings.range, replayed.frames
    kept = [
        replay
        for replay in divided.replays
        if (replay.label, replay.confirm, replay.range, replay.frames) != (name, *asked)
    ]
    for prediction in replayed.predictions:
        divided.contexts.coarsening(Contexts.parsed(prediction.contexts))
        windows = frames, replayed.windows, replayed.not_confirmed
        kept.append(
            ReplayTest(name, prediction.contexts, confirm, range_, *windows, prediction.expected, prediction.p_value)
        )
    return replace(counts, by_context=replace(divided, replays=tuple(kept)))


def tracked_of(settings: ReplaySettings) -> tuple[Tracked, list[int], tuple[str, ...]]:
    """The reports along tracks, the bins of the range, and the names of the drives; raises as `replay_record`."""
    edges = parse_edges(settings.bins)
    low, high = _range(settings.range, edges)
    if settings.frames < 1 or settings.frames > LARGEST_WINDOW:
        raise UsageError(f"--frames: expected a number from 1 to {LARGEST_WINDOW}, got {settings.frames}")
    if not 0 < settings.confidence < 1:
        raise UsageError(f"--confidence: expected a level between 0 and 1, got {settings.confidence:g}")
    record = read_record(settings.record, tracks=True)
    tracked = _tracked(record, settings.true_class, Bins(edges))
    inside = [at for at in range(len(edges) - 1) if low <= edges[at] and edges[at + 1] <= high]
    return tracked, inside, tuple(np.unique(record["drive"].astype(str)).tolist())


def _range(text: str, edges: tuple[float, ...]) -> tuple[float, float]:
    low, _, high = text.partition("..")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = (math.nan, math.nan)
    if ends[0] not in edges or ends[1] not in edges or not ends[0] < ends[1]:
        listed = ", ".join(f"{edge:g}" for edge in edges)
        raise UsageError(f"--range: expected LOW..HIGH with both at edges of bins ({listed}), got {shown(text)}")
    return ends


def _tracked(record: Record, name: str, bins: Bins) -> Tracked:
    """The reports of one class along its tracks."""
    objects = (record["kind"] == "object") & (record["true"] == name)
    rows = np.flatnonzero(objects & (record["track"] != ""))
    if not len(rows):
        known = sorted(set(record["true"][(record["kind"] == "object") & (record["track"] != "")].tolist()))
        raise InputError(
            f"the record has no tracks of class {shown(name)}",
            Place(record.file),
            f"classes with tracks: {', '.join(known)}" if known else "count data with tracks, such as kitti_tracking",
        )
    frames = np.flatnonzero(record["kind"] == "frame")
    sequence = np.unique(record["sequence"].astype(str), return_inverse=True)[1].reshape(-1)
    number = dict(
        zip(
            zip(sequence[frames].tolist(), record["frame"][frames].tolist(), strict=True),
            frame_numbers(record["frame"][frames].tolist(), sequence[frames].astype(np.int32)).tolist(),
            strict=True,
        )
    )
    own = sequence[rows]
    tracks = np.unique(record["track"][rows].astype(str), return_inverse=True)[1].reshape(-1)
    track = distinct_rows(np.column_stack([own, tracks]))[1]
    frame = np.array(
        [number.get(key, -1) for key in zip(own.tolist(), record["frame"][rows].tolist(), strict=True)],
        dtype=np.int64,
    )
    if (frame < 0).any() or len(np.unique(np.column_stack([track, frame]), axis=0)) < len(rows):
        raise InputError(
            "a frame of an object is not listed, or a track has two objects in one frame", Place(record.file)
        )
    right = (record["predicted"][rows] == name).astype(np.int64)
    drive = np.unique(record["drive"].astype(str), return_inverse=True)[1].reshape(-1)[rows]
    return Tracked(drive, track, frame, bins.distance_bins(record["distance_m"][rows]), right)


def replayed(
    tracked: Tracked,
    bins: Sequence[int],
    frames: int,
    tracker: Tracker,
    contexts: Sequence[Contexts],
    gaps: Gaps = "break",
    level: float = 0.95,
) -> Replayed:
    """Replay a tracker on the first window of each track, and predict it by each context function.

    Args:
        tracked: the reports.
        bins: that a window lies in, throughout.
        frames: of a window.
        tracker: what confirms.
        contexts: the models.
        gaps: what frames without an annotation do to contexts.
        level: of the interval.
    """
    rows = in_order(tracked)
    begin, length = passages(rows, bins)
    first = begin[first_passages(rows, begin, length, frames)]
    windows = first[:, None] + np.arange(frames)
    seen = int(np.count_nonzero(~tracker.confirmed(rows.right[windows] > 0)[:, -1]))
    tail = (1 - level) / 2
    low, high = (float(end[0]) for end in clopper_pearson(np.array([seen]), np.array([len(first)]), tail))
    predictions = []
    for text in contexts:
        context = text.along(rows.track, rows.frame, rows.right, gaps)
        chances = np.empty(len(first))
        for drive in np.unique(rows.sequence[first]):
            own = np.flatnonzero(rows.sequence[first] == drive)
            rates = right_rates(rows, context, text, rows.sequence != drive)
            at, begun = rows.bin[windows[own]], context[first[own]]
            chances[own] = unconfirmed(rates[None], text, tracker, at, begun)[0, -1]
        above, below = tails(count_law(chances[None]))
        p_value = float(min(1.0, 2 * min(above[seen], below[seen])))
        predictions.append(Prediction(str(text), float(chances.sum()), p_value))
    drives = len(np.unique(rows.sequence[first]))
    return Replayed(frames, tracker.needed, tracker.window, len(first), drives, seen, low, high, tuple(predictions))


def in_order(tracked: Tracked) -> Tracked:
    """The rows by track and frame."""
    order = np.lexsort((tracked.frame, tracked.track))
    return Tracked(*(getattr(tracked, name)[order] for name in Tracked.__dataclass_fields__))


def passages(rows: Tracked, bins: Sequence[int]) -> tuple[Ints, Ints]:
    """The row at which each passage through some bins begins, and its frames: as long as they follow each other.

    Args:
        rows: in order.
        bins: see above.
    """
    inside = np.isin(rows.bin, list(bins))
    goes_on = np.zeros(len(rows.track), dtype=bool)
    goes_on[1:] = (rows.track[1:] == rows.track[:-1]) & (rows.frame[1:] == rows.frame[:-1] + 1)
    goes_on[1:] &= inside[:-1]
    begin = np.flatnonzero(inside & ~goes_on)
    number = np.cumsum(inside & ~goes_on)[inside] - 1
    return begin, np.bincount(number, minlength=len(begin)).astype(np.int64)


def first_passages(rows: Tracked, begin: Ints, length: Ints, frames: int) -> Ints:
    """(w,) the number of the first passage of each track that has so many frames, in the order of tracks."""
    long_enough = np.flatnonzero(length >= frames)
    result: Ints = long_enough[np.unique(rows.track[begin[long_enough]], return_index=True)[1]]
    return result


def right_rates(rows: Tracked, context: Ints, contexts: Contexts, chosen: NDArray[np.bool_]) -> Floats:
    """(bins, contexts) share of right reports; a context without reports has that of a shorter past, then the bin's.

    NaN where the bin has none at all.
    """
    bins = int(rows.bin.max(initial=-1)) + 1
    used = chosen & (rows.bin >= 0)
    counts = np.zeros((bins, contexts.count, 2))
    np.add.at(counts, (rows.bin[used], context[used], rows.right[used]), 1)
    whole = counts.sum(axis=1)
    for number, shorter in enumerate(contexts.shorter):
        empty = counts[:, number].sum(axis=1) == 0
        counts[empty, number] = whole[empty] if shorter is None else counts[empty, shorter]
    with np.errstate(invalid="ignore"):
        shares: Floats = counts[..., 1] / counts.sum(axis=2)
    return shares


def unconfirmed(rates: Floats, contexts: Contexts, tracker: Tracker, bins: Ints, start: Ints) -> Floats:
    """(draws, frames, w) the chance that the tracker has not confirmed after each frame; NaN after a window's end.

    Windows that were in the same bins, from the same context, are followed as one.

    Args:
        rates: (draws, bins, contexts) of right reports.
        contexts: the model.
        tracker: from when the window begins.
        bins: (w, frames) of each window; -1 after its end.
        start: (w,) its context at first.

    Raises:
        UsageError: a rate that matters is not known (NaN).
    """
    chances = np.full((len(rates), bins.shape[1], len(bins)), np.nan)
    unknown = np.asarray(np.isnan(rates).any(axis=0))
    known = np.moveaxis(np.nan_to_num(rates), 2, 0)
    begun, group = np.unique(start, return_inverse=True)
    state = {(context, 0): np.ones((len(rates), 1)) * (begun == context) for context in begun.tolist()}
    for frame in range(bins.shape[1]):
        alive = np.flatnonzero(bins[:, frame] >= 0)
        pairs, of = np.unique(np.column_stack([group[alive], bins[alive, frame]]), axis=0, return_inverse=True)
        group = group.copy()
        group[alive] = of.reshape(-1)
        following: dict[tuple[int, int], Floats] = {}
        for (context, history), mass in state.items():
            here = mass[:, pairs[:, 0]]
            if np.any(here[:, unknown[:, context][pairs[:, 1]]] > 0):
                raise UsageError(NO_RATE)
            right = here * known[context][:, pairs[:, 1]]
            for outcome, moved in ((0, here - right), (1, right)):
                after = tracker.after(history, outcome)
                if after is not None:
                    node = int(contexts.update[context, outcome]), after
                    following[node] = following[node] + moved if node in following else moved
        state = following
        total = sum(state.values(), np.zeros((len(rates), len(pairs))))
        chances[:, frame, alive] = total[:, group[alive]]
    return chances


def count_law(chances: Floats) -> Floats:
    """(w + 1,) the law of the number of independent events with chances (draws, w), in the mean over the draws."""
    law = np.zeros((len(chances), chances.shape[1] + 1))
    law[:, 0] = 1
    for number, chance in enumerate(chances.T, 1):
        happens = law[:, :number] * chance[:, None]
        law[:, :number] -= happens
        law[:, 1 : number + 1] += happens
    return np.asarray(law.mean(axis=0))


def tails(law: Floats) -> tuple[Floats, Floats]:
    """The chance of at least, and of at most, each number."""
    return np.cumsum(law[::-1])[::-1], np.cumsum(law)
