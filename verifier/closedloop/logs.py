"""Logs: what a vehicle drove, who stood where, and what detectors reported, as columns.

A log is one drive along one path. Positions are in a **ground plane** common to the log: right-handed, metres, x and
y any two perpendicular directions (east and north, or those of a map); headings are in radians, counter-clockwise
from x. A *positive* log has a person for whom the vehicle has to stop. In a *negative* log nobody stands in the way,
and whatever makes the vehicle brake is a false positive (Pezzementi et al. 2021, sections 3.2 and 8.1). People beside
the path may be in either.

Which detection explains which person, per image of some logs.

Whether recorded poses can be those of one vehicle that was logged without interruption.

From a detector's scores to strengths that can be compared, the rate of false positives of a threshold there: the
*sensitivity standardizer* of Pezzementi et al. 2021, section 6.1.2. Their localizer, which turns a rectangle in the
image into a point in space, stands with the readers of depth (`verifier.perception.detections.depth`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from verifier.base.arrays import Floats, Ints, Mask, check_index, check_shapes, freeze, plain_fields
from verifier.base.errors import InputError, Place, UsageError, check_known, shown
from verifier.perception.detections.columns import Boxes, DetectionSet, faulty_boxes
from verifier.perception.matching import MatchingPolicy, match

FARTHEST_M = 1e9
"""Of any coordinate: there, doubles still tell tenths of a micrometre apart."""


@dataclass(frozen=True, eq=False)
class Detections:
    """What one detector reported, D rows in any order.

    Attributes:
        image: (D,) index into the images of the `Logs`.
        strength: (D,) the detector's own score, finite, greater is surer.
        point_m: (D, 2) in the ground plane; a row of NaN where it could not be localized.
        box_2d: (D, 4) left, top, right, bottom in pixels, a row of NaN where there is none; or None.

    Raises:
        ValueError: lengths differ, a strength is not finite, a point or box is partly NaN or infinite.
    """

    image: Ints
    strength: Floats
    point_m: Floats
    box_2d: Floats | None = None

    def __post_init__(self) -> None:
        kinds = {"image": np.int64, "strength": np.float64, "point_m": np.float64, "box_2d": np.float64}
        freeze(self, kinds, copied=False)
        n = len(self.image)
        check_shapes(self, {"image": (n,), "strength": (n,), "point_m": (n, 2), "box_2d": (n, 4)})
        if not np.isfinite(self.strength).all():
            raise ValueError("a strength is not finite")
        _check_points("point_m", self.point_m, self.box_2d)

    def __len__(self) -> int:
        return len(self.image)

    def take(self, rows: NDArray[Any]) -> Detections:
        """The rows of a mask or of indices, in that order."""
        box = None if self.box_2d is None else self.box_2d[rows]
        return Detections(self.image[rows], self.strength[rows], self.point_m[rows], box)


@dataclass(frozen=True, eq=False)
class Logs:
    """L logs with I images, P sightings of people (ground truth) and the detections of any number of sources.

    A *source* is a detector under one condition; the simulator needs nothing else of it. Arrays are not copied: the
    views held here cannot be written.

    Attributes:
        names: (L,) different.
        positive: (L,) see above.
        image_log: (I,) the log of each image, not decreasing; every log has at least one image.
        time_s: (I,) increasing within a log.
        position_m: (I, 2) of the vehicle, in the ground plane. The camera stands for the vehicle (section 6.3).
        heading_rad: (I,) or None. Needed only where a path has no direction of its own.
        person_image: (P,) the image in which a person is seen.
        person_m: (P, 2) where that person stands; a row of NaN where that is not known.
        person_box_2d: (P, 4) pixels, a row of NaN where there is none; or None.
        detections: by name of the source.
        remarks: what a reader of any result from these logs must know, one sentence each.

    Raises:
        ValueError: lengths differ, an index points nowhere, times do not increase, a number is not finite.
    """

    names: tuple[str, ...]
    positive: Mask
    image_log: Ints
    time_s: Floats
    position_m: Floats
    heading_rad: Floats | None
    person_image: Ints
    person_m: Floats
    detections: Mapping[str, Detections] = field(default_factory=dict)
    person_box_2d: Floats | None = None
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        kinds = {"positive": np.bool_, "image_log": np.int64, "person_image": np.int64}
        floats = ("time_s", "position_m", "heading_rad", "person_m", "person_box_2d")
        freeze(self, kinds | dict.fromkeys(floats, np.float64), copied=False)
        object.__setattr__(self, "detections", MappingProxyType(dict(self.detections)))
        n, people = len(self.image_log), len(self.person_image)
        shapes = {"positive": (len(self.names),), "image_log": (n,), "time_s": (n,), "position_m": (n, 2)}
        shapes |= {"heading_rad": (n,), "person_m": (people, 2), "person_box_2d": (people, 4)}
        check_shapes(self, shapes | {"person_image": (people,)})
        if len(set(self.names)) != len(self.names):
            raise ValueError("a log name occurs twice")
        self._check_images()
        _check_points("person_m", self.person_m, self.person_box_2d)
        check_index("person_image", self.person_image, n)
        for name, detection in self.detections.items():
            check_index(f"image of source {name!r}", detection.image, n)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), plain_fields(self)

    def _check_images(self) -> None:
        if (np.diff(self.image_log) < 0).any():
            raise ValueError("the images of a log must stand together, in the order of the logs")
        if not np.array_equal(np.unique(self.image_log), np.arange(len(self.names))):
            raise ValueError("every image belongs to a log, and every log has an image")
        for name in ("time_s", "position_m", "heading_rad"):
            value = getattr(self, name)
            if value is not None and not np.isfinite(value).all():
                raise ValueError(f"{name}: a value is not finite")
        if (np.abs(self.position_m) > FARTHEST_M).any():
            raise ValueError(f"position_m: a coordinate beyond {FARTHEST_M:g} m")
        if not (np.diff(self.time_s)[np.diff(self.image_log) == 0] > 0).all():
            raise ValueError("times must increase within a log")

    @property
    def log_count(self) -> int:
        """L."""
        return len(self.names)

    @property
    def image_count(self) -> int:
        """I."""
        return len(self.image_log)

    @cached_property
    def first_image(self) -> Ints:
        """(L + 1,) index of each log's first image; the last entry is I."""
        return np.searchsorted(self.image_log, np.arange(len(self.names) + 1)).astype(np.int64)

    def source(self, name: str) -> Detections:
        """The detections of a source; UsageError when there is none of that name."""
        check_known("source of detections", name, self.detections)
        return self.detections[name]

    def with_source(self, name: str, detections: Detections, *remarks: str) -> Logs:
        """These logs with one more source; ValueError when there is one of that name already."""
        if name in self.detections:
            raise ValueError(f"there is a source {name!r} already")
        more = tuple(remark for remark in remarks if remark not in self.remarks)
        return replace(self, detections={**self.detections, name: detections}, remarks=self.remarks + more)


def _check_points(name: str, point_m: Floats, box_2d: Floats | None) -> None:
    unknown = np.isnan(point_m)
    if (unknown.any(axis=1) & ~unknown.all(axis=1)).any() or (np.abs(point_m) > FARTHEST_M).any():
        raise ValueError(f"{name}: a point is partly NaN, or a coordinate beyond {FARTHEST_M:g} m")
    if box_2d is not None and (bad := faulty_boxes(box_2d)).any():
        raise ValueError(f"box of row {int(bad.argmax())} is partly NaN, infinite or of negative size")


IOU_HALF = MatchingPolicy("iou_2d", 0.5)
"""IoU of image rectangles from 0.5, the surest detection chooses first. The paper does not state its threshold."""
AFFINITIES = ("iou_2d", "centre_2d", "centre_bev")


@dataclass(frozen=True, eq=False)
class PersonMatches:
    """The result of matching one source.

    What has no rectangle (or, compared by points, no point) cannot be judged: it is neither found nor missed, neither
    right nor wrong.

    Attributes:
        detection_of: (P,) the detection of each sighting, -1 if none.
        false: (D,) detections that can be judged and match no person: false positives.
        judged: (P,) sightings that can be judged.
    """

    detection_of: Ints
    false: Mask
    judged: Mask


def person_matches(logs: Logs, source: str, policy: MatchingPolicy = IOU_HALF) -> PersonMatches:
    """Match the detections of a source with the people of each image.

    The surest detection chooses first, so that the matches at any threshold are those of this one matching whose
    detection reaches it: a weaker detection never changes what a stronger one has.

    Args:
        logs: with rectangles for the affinities `iou_2d` and `centre_2d`, with points for `centre_bev`.
        source: of `logs.detections`.
        policy: greedy, by score.

    Raises:
        UsageError: no such source, the policy compares what the logs do not have, or it has another order.
    """
    detections = logs.source(source)
    if policy.assignment != "greedy" or policy.order != "score":
        raise UsageError(
            "a trade-off curve needs a matching in which the detection with the highest score chooses first: "
            "assignment 'greedy' and order 'score'"
        )
    if policy.affinity not in AFFINITIES:
        raise UsageError(f"logs have rectangles and points: affinity must be one of {', '.join(AFFINITIES)}")
    people = _boxes(logs.person_image, None, logs.person_box_2d, logs.person_m)
    reported = _boxes(detections.image, detections.strength, detections.box_2d, detections.point_m)
    images = tuple(map(str, range(logs.image_count)))
    frames = np.zeros(logs.image_count, dtype=np.int32)
    data = DetectionSet(("person",), ("logs",), frames, images, people, reported, None, ("logs",))
    matches = match(data, policy)
    false = (matches.annotation_of < 0) & _has_box(reported, policy)
    return PersonMatches(matches.detection_of, false, _has_box(people, policy))


def _boxes(image: Ints, strength: Floats | None, box_2d: Floats | None, point_m: Floats) -> Boxes:
    n = len(image)
    # A point is a box without size; only its centre on the ground is ever compared.
    upright = np.column_stack([point_m, np.zeros((n, 5))])
    upright[np.isnan(point_m).any(axis=1)] = np.nan
    none, short = np.zeros(n, np.int64), np.zeros(n, np.int32)
    return Boxes(image, short, strength, box_2d, upright, None, {}, none, short)


def _has_box(boxes: Boxes, policy: MatchingPolicy) -> Mask:
    box: Floats | None = getattr(boxes, policy.column)
    known = np.zeros(len(boxes), dtype=np.bool_)
    return known if box is None else np.asarray(~np.isnan(box).any(axis=1))


@dataclass(frozen=True)
class LogLimits:
    """Beyond these a log has a gap or a jump, and its path is not what the vehicle drove.

    Attributes:
        longest_gap_s: between two images of a log.
        greatest_speed_mps: distance between two images over the time between them.
    """

    longest_gap_s: float = 2.0
    greatest_speed_mps: float = 70.0


def check_plausible(logs: Logs, limits: LogLimits | None = None, file: str | None = None) -> None:
    """Refuse logs with gaps or jumps.

    Raises:
        InputError: naming the log and its first image behind the first gap or jump.
    """
    limits = limits or LogLimits()
    same = np.diff(logs.image_log) == 0
    gap = np.where(same, np.diff(logs.time_s), 1.0)  # from log to log there is none
    step = np.hypot(*np.diff(logs.position_m, axis=0).T)

    def fail(bad: Mask, text: str, hint: str) -> None:
        if bad.any():
            at = int(bad.argmax())
            log = int(logs.image_log[at])
            where = f"log {shown(logs.names[log])}, image {at + 1 - int(logs.first_image[log])} (counted from 0)"
            values = text.format(gap=gap[at], step=step[at], limit=limits)
            raise InputError(f"{where}: {values}", Place(file) if file else None, hint)

    fail(
        same & (gap > limits.longest_gap_s),
        "{gap:g} s after the one before; at most {limit.longest_gap_s:g} s are accepted",
        "make two logs of it, or allow longer gaps",
    )
    fail(
        same & (step > limits.greatest_speed_mps * gap),
        "{step:g} m from the one before, {gap:g} s later; that is faster than {limit.greatest_speed_mps:g} m/s",
        "make two logs of it, correct the position, or allow greater speeds",
    )


@dataclass(frozen=True, eq=False)
class Standardizer:
    """Raw scores as rates of false positives, by a look-up table.

    st(x) = #{false positives of the validation images with score >= x} / #images: what a threshold at x would cost.
    **Smaller is stronger.** A score above every false positive has st = 0, one below all of them the rate of all of
    them: nothing is extrapolated. The table is made from validation images as they were taken, and the same table
    serves mutated data, so that a shift of the scores under mutation shows.

    Attributes:
        false_positives: (m,) scores of the validation images' false positives, not decreasing.
        image_count: number of validation images, those without false positives included; from 1.
    """

    false_positives: Floats
    image_count: int

    @classmethod
    def from_validation(cls, strengths: ArrayLike, image_count: int) -> Standardizer:
        """The table of these false positives (m,), in any order."""
        return cls(np.sort(np.asarray(strengths, dtype=np.float64)), image_count)

    def __call__(self, strengths: ArrayLike) -> Floats:
        """st of scores of any shape."""
        below = np.searchsorted(self.false_positives, np.asarray(strengths, dtype=np.float64), side="left")
        rate: Floats = (len(self.false_positives) - below) / self.image_count
        return rate

    def raw_threshold(self, sensitivity: float) -> float:
        """The score that a detection must **exceed** to take part at this sensitivity; -inf when all do.

        This is what to set in the detector: st(x) <= sensitivity exactly when x > raw_threshold(sensitivity).

        Raises:
            ValueError: the sensitivity is negative or NaN.
        """
        if not sensitivity >= 0:
            raise ValueError(f"expected a sensitivity from 0, got {sensitivity}")
        rates = np.arange(len(self.false_positives) + 1) / self.image_count
        allowed = int(np.searchsorted(rates, sensitivity, side="right")) - 1
        if allowed == len(self.false_positives):
            return float("-inf")
        return float(self.false_positives[-1 - allowed])


def standardizer_of(validation: Logs, source: str, policy: MatchingPolicy = IOU_HALF) -> Standardizer:
    """The table of one source, from validation logs: what matches no person is a false positive.

    The images of all logs count, with people or without: st is the expected number per image.

    Raises:
        UsageError: no such source, or the policy does not fit (see `person_matches`).
    """
    detections = validation.source(source)
    false = person_matches(validation, source, policy).false
    return Standardizer.from_validation(detections.strength[false], validation.image_count)
