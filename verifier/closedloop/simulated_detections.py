"""Detections drawn at random from a measured confusion-by-distance file, for logs that have none.

A stand-in, not a measurement: it reports people, and nothing where nobody is, as often as the detector of the file
did at each distance, but it draws independently in every image. Real detectors miss the same person several images in
a row. What is drawn says so in the remarks of the logs.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import InputError, UsageError, shown, unknown_error
from verifier.closedloop.logs import Detections, Logs
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.matrices import EMPTY, rates


@dataclass(frozen=True)
class Drawing:
    """What a confusion file does not say about where reports lie.

    Attributes:
        half_angle_rad: of the field of view: false positives lie within it, uniformly by bearing and by distance in
            their bin.
        position_error_m: standard deviation of a report of a person along x and along y.
        strength: of all reports where the file is no family over score thresholds.
        empty_columns: what to do with bins without items, a policy of `EMPTY_COLUMN_POLICIES`.

    Raises:
        ValueError: the angle is not in (0, pi], the error is negative, or a number is not finite.
    """

    half_angle_rad: float = math.pi / 4
    position_error_m: float = 0.0
    strength: float = 1.0
    empty_columns: str = "error"

    def __post_init__(self) -> None:
        if not (0 < self.half_angle_rad <= math.pi and 0 <= self.position_error_m < math.inf):
            raise ValueError(f"expected an angle in (0, pi] and an error from 0, got {self}")
        if not math.isfinite(self.strength):
            raise ValueError("the strength is not finite")


@dataclass(frozen=True, eq=False)
class _Channel:
    """Rates of a detector: `found` and `alarm` (thresholds, bins), not increasing with the threshold; `low_m`,
    `high_m` (bins,); `thresholds` (t,) increasing, or the one strength of all reports."""

    found: Floats
    alarm: Floats
    low_m: Floats
    high_m: Floats
    thresholds: Floats


def drawn_detections(
    logs: Logs,
    counts: ConfusionCounts,
    class_name: str,
    rng: Generator,
    name: str = "drawn",
    drawing: Drawing | None = None,
) -> Logs:
    """The logs with a source `name` whose detections are drawn.

    A person whose distance from the vehicle (on the ground) lies in a bin is reported with the rate that column
    `class_name` has there for its own row; beyond the bins nobody is reported. In each image and bin in which nobody
    stands one false positive is drawn with the rate of row `class_name` in column "empty", as such matrices count
    them. In a family over score thresholds the strength is the highest threshold at which the report is still made,
    so that every threshold has its measured rates; the same random number decides for all thresholds.

    Args:
        logs: with headings, if the file has false positives.
        counts: class-labelled; further variables are summed over.
        class_name: a class of the file.
        rng: the same state gives the same detections.
        name: of the source.
        drawing: what the file does not say.

    Raises:
        InputError: a bin that is needed has no items (see `Drawing.empty_columns`), or a rate rises with the
            threshold.
        UsageError: the file is not class-labelled or has no such class, or the logs have no headings.
    """
    drawing = drawing or Drawing()
    channel = _channel(counts, class_name, drawing)
    image, point = logs.person_image, logs.person_m
    away = np.hypot(*(point - logs.position_m[image]).T)
    bin_of = counts.bins.distance_bins(away)
    _check_known(channel, channel.found[0], np.unique(bin_of[bin_of >= 0]), "of the class, but a person stands there")
    _check_known(
        channel, channel.alarm[0], np.arange(len(channel.low_m)), "without an object, so no rate of false positives"
    )
    level = _levels(channel.found, bin_of, rng.random(len(image)))
    error = drawing.position_error_m * rng.standard_normal((len(image), 2))
    told = level >= 0
    parts = [(image[told], channel.thresholds[level[told]], (point + error)[told])]
    parts.append(_alarms(logs, channel, drawing, image, bin_of, rng))
    images, strengths, points = (np.concatenate(column) for column in zip(*parts, strict=True))
    return logs.with_source(name, Detections(images, strengths, points), *_remarks(name, counts, channel, drawing))


def _channel(counts: ConfusionCounts, class_name: str, drawing: Drawing) -> _Channel:
    if counts.labelling != "class":
        raise UsageError(f"detections are drawn from a class-labelled file; this one is {counts.labelling}-labelled")
    label = frozenset({class_name})
    if label not in counts.labels:
        raise unknown_error("class of the confusion file", class_name, sorted(frozenset().union(*counts.labels)))
    members = [counts] if counts.thresholds is None else [counts.member(threshold) for threshold in counts.thresholds]
    own, empty = counts.labels.index(label), counts.labels.index(EMPTY)
    share = np.stack([rates(member.matrices().without_empty_columns(drawing.empty_columns)[0]) for member in members])
    edges = np.array(counts.bins.edges_m)
    thresholds = np.array([drawing.strength] if counts.thresholds is None else counts.thresholds)
    seen, alarm = share[:, :, own, own], share[:, :, own, empty]
    for what, rate in (("the rate at which it is reported", seen), ("its false-positive rate", alarm)):
        rising = np.nan_to_num(np.diff(rate, axis=0)).max(axis=0, initial=0) > 0
        if rising.any():
            at = int(rising.argmax())
            where = f"[{edges[at]:g}, {edges[at + 1]:g}) m"
            raise InputError(f"class {shown(class_name)}, {where}: {what} rises with the score threshold")
    return _Channel(seen, alarm, edges[:-1], edges[1:], thresholds)


def _check_known(channel: _Channel, rate: Floats, needed: Ints, what: str) -> None:
    """Refuse to draw from a column without items."""
    unknown = needed[np.isnan(rate[needed])]
    if len(unknown):
        low, high = channel.low_m[unknown[0]], channel.high_m[unknown[0]]
        raise InputError(
            f"[{low:g}, {high:g}) m: the confusion file has no item {what}",
            hint="choose a policy for columns without items (empty_columns), as 'neighbour'",
        )


def _levels(rate: Floats, bin_of: Ints, chance: Floats) -> Ints:
    """(n,) the highest threshold at which a report is made: rate > chance; -1 if at none."""
    at = rate[:, np.maximum(bin_of, 0)]
    level = np.count_nonzero(at > chance, axis=0) - 1
    return np.where(bin_of >= 0, level, -1).astype(np.int64)


def _alarms(
    logs: Logs, channel: _Channel, drawing: Drawing, image: Ints, bin_of: Ints, rng: Generator
) -> tuple[Ints, Floats, Floats]:
    """Image, strength and point of false positives in bins of finite length in which nobody stands."""
    bins = len(channel.low_m)
    usable = np.flatnonzero(np.isfinite(channel.high_m) & (channel.alarm[0] > 0))
    if not len(usable):
        return np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 2))
    if logs.heading_rad is None:
        raise UsageError("false positives are drawn ahead of the vehicle: the logs need headings")
    free = np.ones((logs.image_count, bins), dtype=np.bool_)
    free[image[bin_of >= 0], bin_of[bin_of >= 0]] = False
    where, place = np.nonzero(free[:, usable])
    place = usable[place]
    level = _levels(channel.alarm, place, rng.random(len(place)))
    where, place, level = where[level >= 0], place[level >= 0], level[level >= 0]
    away = channel.low_m[place] + rng.random(len(place)) * (channel.high_m - channel.low_m)[place]
    turn = logs.heading_rad[where] + drawing.half_angle_rad * (2 * rng.random(len(place)) - 1)
    offset = away[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    return where.astype(np.int64), channel.thresholds[level], logs.position_m[where] + offset


def _remarks(name: str, counts: ConfusionCounts, channel: _Channel, drawing: Drawing) -> tuple[str, ...]:
    title = f" ({counts.title})" if counts.title else ""
    notes = [
        f"the detections of source '{name}' are no detector's: they are drawn at random, again in every image, from "
        f"measured confusion counts by distance{title}"
    ]
    measure: Any = counts.metadata.get("distance")
    if isinstance(measure, dict) and measure.get("measure") not in (None, "ground_plane"):
        notes.append(
            f"source '{name}': the counts are by {measure['measure']} distance, people by distance on the ground"
        )
    if not (channel.alarm > 0).any():
        notes.append(f"source '{name}' has no false positives: the counts hold none")
    else:
        degrees = math.degrees(drawing.half_angle_rad)
        notes.append(f"source '{name}': where in the view of +-{degrees:g} degrees a false positive lies is made up")
    if np.isinf(channel.high_m[-1]) and channel.alarm[:, -1].any():
        notes.append(
            f"source '{name}' has no false positives beyond {channel.low_m[-1]:g} m, where the last bin has no end"
        )
    if drawing.empty_columns != "error":
        notes.append(f"source '{name}': bins without items follow policy '{drawing.empty_columns}'")
    return tuple(notes)
