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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.statistics import clopper_pearson
from verifier.perception.confusion.bins import Bins, parse_edges
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.record_reader import Record, read_record
from verifier.perception.confusion.tracks import frame_numbers
from verifier.perception.settings import Gaps, ReplaySettings

LARGEST_WINDOW = 1000
"""Frames of a window that is replayed."""
LARGEST_TRACKER = 12
"""Reports that a tracker looks at; its histories are kept one by one."""


@dataclass(frozen=True, eq=False)
class Tracked:
    """Reports along tracks, one row per object and frame.

    Attributes:
        sequence: (n,) number of the drive.
        track: (n,) number of track and class, different in different sequences.
        frame: (n,) number within the sequence.
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
    """Confirms when `needed` of the last `window` reports are right, see `verifier.systems.memory`."""

    needed: int
    window: int

    def confirmed(self, right: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(w,) whether the tracker confirms somewhere in each row of (w, frames) reports."""
        total = np.cumsum(np.pad(right.astype(np.int64), ((0, 0), (self.window, 0))), axis=1)
        within: NDArray[np.bool_] = total[:, self.window :] - total[:, : -self.window] >= self.needed
        return np.asarray(np.any(within, axis=1), dtype=bool)


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
    edges = parse_edges(settings.bins)
    low, high = _range(settings.range, edges)
    tracker = _tracker(settings.confirm)
    contexts = [Contexts.parsed(text.strip()) for text in settings.memory.split(",")]
    if settings.frames < 1 or settings.frames > LARGEST_WINDOW:
        raise UsageError(f"--frames: expected a number from 1 to {LARGEST_WINDOW}, got {settings.frames}")
    if not 0 < settings.confidence < 1:
        raise UsageError(f"--confidence: expected a level between 0 and 1, got {settings.confidence:g}")
    found = _tracked(read_record(settings.record, tracks=True), settings.true_class, Bins(edges))
    inside = [at for at in range(len(edges) - 1) if low <= edges[at] and edges[at + 1] <= high]
    result = replayed(found, inside, settings.frames, tracker, contexts, settings.gaps, settings.confidence)
    if not result.windows:
        raise UsageError(f"no track of {settings.true_class} has {settings.frames} successive frames in that range")
    return result


def _range(text: str, edges: tuple[float, ...]) -> tuple[float, float]:
    low, dots, high = text.partition("..")
    try:
        found = float(low), float(high)
    except ValueError:
        found = (math.nan, math.nan)
    if not dots or found[0] not in edges or found[1] not in edges or not found[0] < found[1]:
        listed = ", ".join(f"{edge:g}" for edge in edges)
        raise UsageError(f"--range: expected LOW..HIGH with both at edges of bins ({listed}), got {shown(text)}")
    return found


def _tracker(text: str) -> Tracker:
    found = re.fullmatch(r"(\d{1,2})/(\d{1,2})", text, re.ASCII)
    if found is None or not 1 <= int(found[1]) <= int(found[2]) <= LARGEST_TRACKER:
        raise UsageError(
            f"--confirm: expected M/N with 1 <= M <= N <= {LARGEST_TRACKER}, such as 3/5, got {shown(text)}"
        )
    return Tracker(int(found[1]), int(found[2]))


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
    track = np.unique(own * (int(tracks.max()) + 1) + tracks, return_inverse=True)[1].reshape(-1)
    frame = np.array(
        [number.get(key, -1) for key in zip(own.tolist(), record["frame"][rows].tolist(), strict=True)],
        dtype=np.int64,
    )
    if (frame < 0).any() or len(np.unique(np.column_stack([track, frame]), axis=0)) < len(rows):
        raise InputError(
            "a frame of an object is not listed, or a track has two objects in one frame", Place(record.file)
        )
    right = (record["predicted"][rows] == name).astype(np.int64)
    return Tracked(own, track, frame, bins.distance_bins(record["distance_m"][rows]), right)


def replayed(
    found: Tracked,
    bins: Sequence[int],
    frames: int,
    tracker: Tracker,
    contexts: Sequence[Contexts],
    gaps: Gaps = "break",
    level: float = 0.95,
) -> Replayed:
    """Replay a tracker on the first window of each track, and predict it by each context function.

    Args:
        found: the reports.
        bins: that a window lies in, throughout.
        frames: of a window.
        tracker: what confirms.
        contexts: the models.
        gaps: what frames without an annotation do to contexts.
        level: of the interval.
    """
    order = np.lexsort((found.frame, found.track))
    rows = Tracked(*(getattr(found, name)[order] for name in Tracked.__dataclass_fields__))
    first = _first_windows(rows, np.isin(rows.bin, list(bins)), frames)
    windows = first[:, None] + np.arange(frames)
    confirmed = tracker.confirmed(rows.right[windows] > 0)
    seen = int(np.count_nonzero(~confirmed))
    tail = (1 - level) / 2
    low, high = (float(end[0]) for end in clopper_pearson(np.array([seen]), np.array([len(first)]), tail))
    predictions = []
    for each in contexts:
        context = each.along(rows.track, rows.frame, rows.right, gaps)
        chances = np.empty(len(first))
        for drive in np.unique(rows.sequence[first]):
            own = np.flatnonzero(rows.sequence[first] == drive)
            rates = _rates(rows, context, each, rows.sequence != drive)
            chances[own] = 1 - _confirmed(rates, each, tracker, rows.bin[windows[own]], context[first[own]])
        predictions.append(Prediction(str(each), float(chances.sum()), _two_sided(chances, seen)))
    drives = len(np.unique(rows.sequence[first]))
    return Replayed(frames, tracker.needed, tracker.window, len(first), drives, seen, low, high, tuple(predictions))


def _first_windows(rows: Tracked, inside: NDArray[np.bool_], frames: int) -> Ints:
    """(w,) the row at which the first window of each track begins; the rows are in order of tracks and frames."""
    goes_on = np.zeros(len(rows.track), dtype=bool)
    goes_on[1:] = (rows.track[1:] == rows.track[:-1]) & (rows.frame[1:] == rows.frame[:-1] + 1)
    goes_on[1:] &= inside[:-1]
    goes_on &= inside
    begin = np.maximum.accumulate(np.where(goes_on, 0, np.arange(len(goes_on))))
    long_enough = np.flatnonzero(inside & (np.arange(len(begin)) - begin + 1 == frames))
    at = np.unique(rows.track[long_enough], return_index=True)[1]
    found: Ints = begin[long_enough[at]]
    return found


def _rates(rows: Tracked, context: Ints, contexts: Contexts, chosen: NDArray[np.bool_]) -> Floats:
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
        found: Floats = counts[..., 1] / counts.sum(axis=2)
    return found


def _confirmed(rates: Floats, contexts: Contexts, tracker: Tracker, bins: Ints, start: Ints) -> Floats:
    """(w,) the chance that the tracker confirms, along the bins (w, frames) and from the context of each window."""
    histories = 1 << (tracker.window - 1)
    ones = np.array([bits.bit_count() for bits in range(histories)])
    state = np.zeros((len(bins), contexts.count, histories))
    state[np.arange(len(bins)), start, 0] = 1
    done = np.zeros(len(bins))
    for frame in range(bins.shape[1]):
        right = rates[bins[:, frame]][:, :, None]
        following = np.zeros_like(state)
        # A context that no run has reached may have no rate.
        for outcome, chance in ((0, 1 - right), (1, right)):
            moved = np.where(state > 0, state * chance, 0.0)
            reached = ones + outcome >= tracker.needed
            done += moved[:, :, reached].sum(axis=(1, 2))
            shifted = ((np.arange(histories) << 1) | outcome) & (histories - 1)
            for history in np.flatnonzero(~reached):
                for context, after in enumerate(contexts.update[:, outcome].tolist()):
                    following[:, after, shifted[history]] += moved[:, context, history]
        state = following
    return done


def _two_sided(chances: Floats, seen: int) -> float:
    """Twice the smaller tail of the number of independent events with these chances, at most 1."""
    law = np.ones(1)
    for chance in chances.tolist():
        law = np.convolve(law, [1 - chance, chance])
    return float(min(1.0, 2 * min(law[: seen + 1].sum(), law[seen:].sum())))
