"""Trade-off curves: safety against efficiency over the detector's sensitivity, at four levels of context.

Pezzementi et al. 2021, section 8. Both axes lie in [0, 1], and more is better on both.

| curve | safety S(tau) | efficiency E(tau) |
|---|---|---|
| `roc_a` (eqs. 8, 9) | recall of all people | 1 - min(FPR / 0.1, 1), FPR = false positives / images, all logs |
| `roc_b` (eqs. 10, 11) | recall of the people of positive logs | FPR = share of negative logs' images with any |
| `roboticizer_curve` (8.2.1) | localized within 1 m, people at 0-10 m | only false positives at 0-10 m count |
| `pathifier_curve` (8.2.2) | path blocked within 2 m; within 2-5 m unless missed twice in a row | likewise |

The fifth, closed loop, is simulated. A detection takes part at sensitivity tau when its standardized sensitivity is
at most tau (see `Standardizer`): a greater tau lets more detections through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from verifier.closedloop.logs import Bools, Floats, Ints, Logs
from verifier.closedloop.matched import IOU_HALF, PersonMatches, person_matches
from verifier.closedloop.nearby import near_pairs
from verifier.closedloop.pathifier import pathified_distance, people_ahead
from verifier.closedloop.paths import PathSettings, paths_of
from verifier.closedloop.roboticizer import Standardizer
from verifier.errors import InputError
from verifier.matching import MatchingPolicy

FPR_MAX = 0.1
"""False positives per image from which on a system is of no use: efficiency 0 (section 8)."""


@dataclass(frozen=True, eq=False)
class TradeOffCurve:
    """What one detector under one condition achieves at each sensitivity that was tried.

    Attributes:
        sensitivity: (k,) at least one, all different, finite, in any order. Standardized sensitivities are not
            negative; a curve over a detector's own thresholds may have any numbers.
        safety: (k,) in [0, 1].
        efficiency: (k,) in [0, 1].

    Raises:
        ValueError: lengths differ, or a value lies outside its range.
    """

    sensitivity: Floats
    safety: Floats
    efficiency: Floats

    def __post_init__(self) -> None:
        for name in ("sensitivity", "safety", "efficiency"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
            if array.ndim != 1 or array.shape != self.sensitivity.shape or not len(array):
                raise ValueError(f"{name} has shape {array.shape}; expected (k,) with k >= 1, the same for all three")
        if not np.isfinite(self.sensitivity).all():
            raise ValueError("a sensitivity is not finite")
        for name in ("safety", "efficiency"):
            value = getattr(self, name)
            if not ((value >= 0) & (value <= 1)).all():
                raise ValueError(f"{name}: a value lies outside [0, 1] or is no number")
        if len(np.unique(self.sensitivity)) != len(self.sensitivity):
            raise ValueError("a sensitivity occurs twice")


@dataclass(frozen=True)
class RoboticizerMetric:
    """What is judged after localization (section 8.2.1); ranges are half-open, from the vehicle to the point.

    Attributes:
        match_radius_m: a detection at most so far from where the person stands has found that person.
        range_m: people, and false positives, at distances [low, high) count.
        people: of several people in an image only the "nearest" counts, as if the image had one person (the paper's
            unit is the image), or "each" by itself.

    Raises:
        ValueError: a number is out of range, or there is no such choice.
    """

    match_radius_m: float = 1.0
    range_m: tuple[float, float] = (0.0, 10.0)
    people: Literal["nearest", "each"] = "nearest"

    def __post_init__(self) -> None:
        _check_bins(self.range_m)
        if not 0 < self.match_radius_m < np.inf or self.people not in ("nearest", "each"):
            raise ValueError(f"expected a positive radius, and people 'nearest' or 'each', got {self}")


@dataclass(frozen=True)
class PathifierMetric:
    """Which pathified distances are critical (section 8.2.2); bins are half-open, [low, high).

    In the strict bin every miss and every false positive counts. In the lenient bin a miss counts only when the
    previous frame of the log was a miss as well, whatever the distance there, and a false positive only when the
    previous frame had one in that bin, too.

    Attributes:
        strict_m: about the stopping distance at full speed.
        lenient_m: ends where nothing has to happen yet.
        first_frame: what becomes of a lenient frame without such a previous frame: the first of a log, and, for a
            miss, one before which nobody was in the way. "forgiven": a mistake there does not count, for there was
            none before (literal). "counted": it counts as in the strict bin.

    Raises:
        ValueError: a bin is empty, the bins overlap, or there is no such choice.
    """

    strict_m: tuple[float, float] = (0.0, 2.0)
    lenient_m: tuple[float, float] = (2.0, 5.0)
    first_frame: Literal["forgiven", "counted"] = "forgiven"

    def __post_init__(self) -> None:
        _check_bins(self.strict_m, self.lenient_m)
        if max(self.strict_m[0], self.lenient_m[0]) < min(self.strict_m[1], self.lenient_m[1]):
            raise ValueError(f"the bins overlap: {self.strict_m} and {self.lenient_m}")
        if self.first_frame not in ("forgiven", "counted"):
            raise ValueError(f"first_frame must be 'forgiven' or 'counted', got {self.first_frame!r}")


def roc_a(
    logs: Logs,
    source: str,
    standardizer: Standardizer,
    sensitivities: ArrayLike,
    policy: MatchingPolicy = IOU_HALF,
    fpr_max: float = FPR_MAX,
) -> TradeOffCurve:
    """The traditional ROC (eqs. 8, 9): all people and all images, and every false positive counts.

    Raises:
        InputError: nobody can be judged.
        UsageError: no such source, or the policy does not fit, see `person_matches`.
        ValueError: sensitivities as in `TradeOffCurve`, or `fpr_max` is not positive.
    """
    matches = person_matches(logs, source, policy)
    strength = standardizer(logs.source(source).strength)
    hits = _recall(matches, strength)[matches.judged]
    return _curve(sensitivities, hits, strength[matches.false], logs.image_count, fpr_max)


def roc_b(
    logs: Logs,
    source: str,
    standardizer: Standardizer,
    sensitivities: ArrayLike,
    policy: MatchingPolicy = IOU_HALF,
    fpr_max: float = FPR_MAX,
) -> TradeOffCurve:
    """The ROC of section 8.1 (eqs. 10, 11): people of positive logs, images of negative logs.

    Only the strongest false positive of an image counts.

    Raises:
        InputError: nobody in the positive logs can be judged, or there is no negative log.
        UsageError, ValueError: as `roc_a`.
    """
    found = logs.source(source)
    matches = person_matches(logs, source, policy)
    strength = standardizer(found.strength)
    hits = _recall(matches, strength)[matches.judged & _positive(logs)[logs.person_image]]
    alarms = _strongest(logs, found.image, np.where(matches.false, strength, np.inf))
    return _curve_on_images(logs, sensitivities, hits, alarms, fpr_max)


def roboticizer_curve(
    logs: Logs,
    source: str,
    standardizer: Standardizer,
    sensitivities: ArrayLike,
    metric: RoboticizerMetric | None = None,
    fpr_max: float = FPR_MAX,
) -> TradeOffCurve:
    """The curve after localization (section 8.2.1).

    Safety: of the people of positive logs in range, those with a detection within the match radius. Efficiency: the
    images of negative logs with a detection in range that is not within the match radius of a person.

    Raises:
        InputError: nobody in the positive logs is in range, or there is no negative log.
        UsageError, ValueError: as `roc_a`.
    """
    metric = metric or RoboticizerMetric()
    found = logs.source(source)
    strength = standardizer(found.strength)
    hits = np.full(len(logs.person_image), np.inf)
    explained = np.zeros(len(found), dtype=np.bool_)
    radius = metric.match_radius_m
    for people, rows in near_pairs(logs.person_image, logs.person_m, found.image, found.point_m, radius):
        close = np.hypot(*(logs.person_m[people] - found.point_m[rows]).T) <= radius
        people, rows = people[close], rows[close]
        np.minimum.at(hits, people, strength[rows])
        explained[rows] = True
    counted = _counted_people(logs, metric) & _positive(logs)[logs.person_image]
    false = ~explained & _within(_distance(logs, found.image, found.point_m), metric.range_m)
    alarms = _strongest(logs, found.image, np.where(false, strength, np.inf))
    return _curve_on_images(logs, sensitivities, hits[counted], alarms, fpr_max)


def pathifier_curve(
    logs: Logs,
    source: str,
    standardizer: Standardizer,
    sensitivities: ArrayLike,
    control_radius_m: float,
    metric: PathifierMetric | None = None,
    fpr_max: float = FPR_MAX,
    settings: PathSettings | None = None,
) -> TradeOffCurve:
    """The curve along the path (section 8.2.2).

    A frame of a positive log counts when the pathified distance of its nearest person lies in a bin; it is a hit when
    a detection blocks the path no later than that person, wherever it stands. A frame of a negative log has a false
    positive when a detection's pathified distance lies in a bin. The paper gives no control radius.

    Raises:
        InputError: no frame of a positive log has a person in the bins, there is no negative log, a negative log
            has somebody in the way, or a path has no direction.
        UsageError, ValueError: as `roc_a`.
    """
    metric = metric or PathifierMetric()
    found = logs.source(source)
    paths = paths_of(logs, settings)
    strength = standardizer(found.strength)
    ahead = pathified_distance(paths, found.image, found.point_m, control_radius_m)
    truth = _strongest(logs, logs.person_image, people_ahead(logs, paths, control_radius_m))
    match = _strongest(logs, found.image, np.where(ahead <= truth[found.image], strength, np.inf))
    strict, lenient = _within(truth, metric.strict_m), _within(truth, metric.lenient_m)
    # A frame before which nothing could be missed is found at every sensitivity, or only by its own match.
    none = -np.inf if metric.first_frame == "forgiven" else np.inf
    before = _previous(logs, np.where(np.isfinite(truth), match, none), none)
    twice = np.minimum(match, before)
    hits = np.where(strict, match, twice)[(strict | lenient) & _positive(logs)]
    alarm, soft = (
        _strongest(logs, found.image, np.where(_within(ahead, bin_m), strength, np.inf))
        for bin_m in (metric.strict_m, metric.lenient_m)
    )
    alarms = np.minimum(alarm, np.maximum(soft, _previous(logs, soft, -none)))
    return _curve_on_images(logs, sensitivities, hits, alarms, fpr_max)


def _curve_on_images(
    logs: Logs, sensitivities: ArrayLike, hits: Floats, alarms: Floats, fpr_max: float
) -> TradeOffCurve:
    """The curve whose false-positive rate is the share of the images of negative logs with an alarm (I,)."""
    negative = ~_positive(logs)
    if not negative.any():
        raise InputError(
            "there is no negative log, so that efficiency is not defined",
            hint="add logs in which nobody stands in the way",
        )
    return _curve(sensitivities, hits, alarms[negative], int(negative.sum()), fpr_max)


def _curve(sensitivities: ArrayLike, hits: Floats, alarms: Floats, images: int, fpr_max: float) -> TradeOffCurve:
    """The curve from the sensitivities at which each thing to find is found and each alarm raised (inf: never)."""
    if not 0 < fpr_max < np.inf:
        raise ValueError(f"expected a positive rate, got {fpr_max}")
    if not len(hits):
        raise InputError(
            "no person that counts here, so that safety is not defined",
            hint="add positive logs in which people come close enough",
        )
    tau = np.asarray(sensitivities, dtype=np.float64)
    found, false = (np.searchsorted(np.sort(each), tau, side="right") for each in (hits, alarms))
    efficiency = 1.0 - np.minimum(false / images / fpr_max, 1.0)
    return TradeOffCurve(tau, found / len(hits), efficiency)


def _recall(matches: PersonMatches, strength: Floats) -> Floats:
    """(P,) the sensitivity from which on each person is found; infinite: never."""
    hits = np.full(len(matches.detection_of), np.inf)
    matched = matches.detection_of >= 0
    hits[matched] = strength[matches.detection_of[matched]]
    return hits


def _strongest(logs: Logs, image: Ints, value: Floats) -> Floats:
    """(I,) the least value in each image; infinite where there is none."""
    least = np.full(logs.image_count, np.inf)
    np.minimum.at(least, image, value)
    return least


def _previous(logs: Logs, value: Floats, at_first: float) -> Floats:
    """(I,) the value of the previous image of the log; `at_first` for the first one."""
    before = np.roll(value, 1)
    before[logs.first_image[:-1]] = at_first
    return before


def _positive(logs: Logs) -> Bools:
    """(I,) images of positive logs."""
    return logs.positive[logs.image_log]


def _distance(logs: Logs, image: Ints, point_m: Floats) -> Floats:
    """(n,) from the vehicle to the point; NaN where the point is not known."""
    away = point_m - logs.position_m[image]
    return np.hypot(away[:, 0], away[:, 1])


def _counted_people(logs: Logs, metric: RoboticizerMetric) -> Bools:
    """(P,) in range, and with "nearest" the nearest of their image (the first of several equally near)."""
    away = _distance(logs, logs.person_image, logs.person_m)
    counted = _within(away, metric.range_m)
    if metric.people == "each":
        return counted
    order = np.lexsort((away, logs.person_image))  # NaN comes last
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = np.diff(logs.person_image[order]) > 0
    nearest = np.zeros(len(order), dtype=np.bool_)
    nearest[order[first]] = True
    return counted & nearest


def _within(value: Floats, bin_m: tuple[float, float]) -> Bools:
    low, high = bin_m
    inside: Bools = (value >= low) & (value < high)
    return inside


def _check_bins(*bins: tuple[float, float]) -> None:
    for low, high in bins:
        if not 0 <= low < high < np.inf:
            raise ValueError(f"expected a range of distances [low, high) with 0 <= low < high, got {(low, high)}")
