"""What each metric judges: at which sensitivity every person is found and every false positive raised, log by log.

That holds for all sensitivities at once. A trade-off curve counts it over all logs, a bootstrap over the logs that
were drawn (`verifier.closedloop.closed_loop_curve.judged_sums`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import InputError
from verifier.closedloop.logs import IOU_HALF, Logs, PersonMatches, Standardizer, person_matches
from verifier.closedloop.pathifier import PathSettings, near_pairs, pathified_distance, paths_of, people_ahead
from verifier.closedloop.settings import FirstFrame
from verifier.perception.matching import MatchingPolicy


@dataclass(frozen=True, eq=False)
class Judged:
    """What one source does to whatever a metric judges.

    Attributes:
        hits: (n,) the standardized sensitivity from which on each person or frame is found; inf: never.
        hit_log: (n,) its log.
        alarms: (m,) likewise, from which on each false positive is raised; inf: never.
        alarm_log: (m,) its log.
        images: (L,) of each log, those over which the rate of false positives is taken.

    Raises:
        InputError: nothing is to be found, or there is no image; safety or efficiency is undefined.
    """

    hits: Floats
    hit_log: Ints
    alarms: Floats
    alarm_log: Ints
    images: Ints

    def __post_init__(self) -> None:
        if not self.images.any():
            raise InputError(
                "there is no negative log, so that efficiency is not defined",
                hint="add logs in which nobody stands in the way",
            )
        if not len(self.hits):
            raise InputError(
                "no person that counts here, so that safety is not defined",
                hint="add positive logs in which people come close enough",
            )

    def found_by_log(self, sensitivities: ArrayLike) -> Floats:
        """(L, k) how many are found in each log."""
        return _reached_by_log(self.hits, self.hit_log, len(self.images), sensitivities)

    def wanted_by_log(self) -> Floats:
        """(L,) how many there are to find in each log."""
        return np.bincount(self.hit_log, minlength=len(self.images)).astype(np.float64)

    def alarms_by_log(self, sensitivities: ArrayLike) -> Floats:
        """(L, k) how many false positives are raised in each log."""
        return _reached_by_log(self.alarms, self.alarm_log, len(self.images), sensitivities)


def _reached_by_log(values: Floats, log: Ints, logs: int, sensitivities: ArrayLike) -> Floats:
    tau = np.asarray(sensitivities, dtype=np.float64)
    order = np.argsort(tau)
    at = np.searchsorted(tau[order], values)  # the first sensitivity that reaches the value
    counts = np.zeros((logs, len(tau) + 1))
    np.add.at(counts, (log, at), 1)
    reached = np.empty((logs, len(tau)))
    reached[:, order] = np.cumsum(counts[:, :-1], axis=1)
    return reached


MATCH_RADIUS_M = 1.0
"""A detection at most so far from where the person stands has found that person (section 8.2.1)."""
RANGE_M = (0.0, 10.0)
"""People, and false positives, at distances [low, high) from the vehicle count (section 8.2.1)."""
STRICT_M, LENIENT_M = (0.0, 2.0), (2.0, 5.0)
"""Pathified distances [low, high) that are critical (section 8.2.2): in the strict bin every miss and every false
positive counts. In the lenient bin a miss counts only when the previous frame of the log was a miss as well, whatever
the distance there, and a false positive only when the previous frame had one in that bin, too."""


def judge_roc_a(logs: Logs, source: str, standardizer: Standardizer, policy: MatchingPolicy = IOU_HALF) -> Judged:
    """The traditional ROC (eqs. 8, 9): all people and all images, and every false positive counts.

    Raises:
        InputError: nobody can be judged.
        UsageError: no such source, or the policy does not fit, see `person_matches`.
    """
    matches, hits, alarms = _matched(logs, source, standardizer, policy)
    log, false = logs.image_log[logs.person_image], matches.false
    alarm_log = logs.image_log[logs.source(source).image[false]]
    return Judged(hits[matches.judged], log[matches.judged], alarms[false], alarm_log, np.diff(logs.first_image))


def judge_roc_b(logs: Logs, source: str, standardizer: Standardizer, policy: MatchingPolicy = IOU_HALF) -> Judged:
    """The ROC of section 8.1 (eqs. 10, 11): people of positive logs, images of negative logs.

    Only the strongest false positive of an image counts.

    Raises:
        InputError: nobody in the positive logs can be judged, or there is no negative log.
        UsageError: as `judge_roc_a`.
    """
    matches, hits, alarms = _matched(logs, source, standardizer, policy)
    return _judged_people(logs, hits, matches.judged, _strongest(logs, logs.source(source).image, alarms))


def judge_roboticizer(logs: Logs, source: str, standardizer: Standardizer) -> Judged:
    """After localization (section 8.2.1).

    Safety: of the people of positive logs in range, those with a detection within the match radius. Efficiency: the
    images of negative logs with a detection in range that is not within the match radius of a person. Of several
    people in an image only the nearest counts, as if the image had one person: the paper's unit is the image.

    Raises:
        InputError: nobody in the positive logs is in range, or there is no negative log.
        UsageError: no such source.
    """
    detections = logs.source(source)
    strength = standardizer(detections.strength)
    hits = np.full(len(logs.person_image), np.inf)
    explained = np.zeros(len(detections), dtype=np.bool_)
    places = (logs.person_image, logs.person_m, detections.image, detections.point_m)
    for people, rows in near_pairs(*places, MATCH_RADIUS_M):
        close = np.hypot(*(logs.person_m[people] - detections.point_m[rows]).T) <= MATCH_RADIUS_M
        people, rows = people[close], rows[close]
        np.minimum.at(hits, people, strength[rows])
        explained[rows] = True
    false = ~explained & _within(_distance(logs, detections.image, detections.point_m), RANGE_M)
    alarms = _strongest(logs, detections.image, np.where(false, strength, np.inf))
    return _judged_people(logs, hits, _counted_people(logs), alarms)


def judge_pathifier(
    logs: Logs,
    source: str,
    standardizer: Standardizer,
    control_radius_m: float,
    first_frame: FirstFrame = "forgiven",
    settings: PathSettings | None = None,
) -> Judged:
    """Along the path (section 8.2.2).

    A frame of a positive log counts when the pathified distance of its nearest person lies in a bin; it is a hit when
    a detection blocks the path no later than that person, wherever it stands. A frame of a negative log has a false
    positive when a detection's pathified distance lies in a bin. The paper gives no control radius.

    Args:
        first_frame: what becomes of a lenient frame without such a previous frame: the first of a log, and, for a
            miss, one before which nobody was in the way. "forgiven": a mistake there does not count, for there was
            none before (literal). "counted": it counts as in the strict bin.

    Raises:
        InputError: no frame of a positive log has a person in the bins, there is no negative log, a negative log
            has somebody in the way, or a path has no direction.
        UsageError: no such source.
    """
    detections = logs.source(source)
    paths = paths_of(logs, settings)
    strength = standardizer(detections.strength)
    ahead = pathified_distance(paths, detections.image, detections.point_m, control_radius_m)
    truth = _strongest(logs, logs.person_image, people_ahead(logs, paths, control_radius_m))
    match = _strongest(logs, detections.image, np.where(ahead <= truth[detections.image], strength, np.inf))
    strict, lenient = _within(truth, STRICT_M), _within(truth, LENIENT_M)
    # A frame before which nothing could be missed is found at every sensitivity, or only by its own match.
    none = -np.inf if first_frame == "forgiven" else np.inf
    before = _previous(logs, np.where(np.isfinite(truth), match, none), none)
    twice = np.minimum(match, before)
    counted = (strict | lenient) & logs.positive[logs.image_log]
    alarm, soft = (
        _strongest(logs, detections.image, np.where(_within(ahead, bin_m), strength, np.inf))
        for bin_m in (STRICT_M, LENIENT_M)
    )
    alarms = np.minimum(alarm, np.maximum(soft, _previous(logs, soft, -none)))
    return _on_images(logs, np.where(strict, match, twice)[counted], logs.image_log[counted], alarms)


def _judged_people(logs: Logs, hits: Floats, counted: Mask, alarms: Floats) -> Judged:
    """People (P,) of positive logs that count, and the images of negative logs with an alarm (I,)."""
    log = logs.image_log[logs.person_image]
    chosen = counted & logs.positive[log]
    return _on_images(logs, hits[chosen], log[chosen], alarms)


def _on_images(logs: Logs, hits: Floats, hit_log: Ints, alarms: Floats) -> Judged:
    """The rate of false positives is the share of the images of negative logs with one (I,)."""
    negative = ~logs.positive[logs.image_log]
    images = np.where(logs.positive, 0, np.diff(logs.first_image))
    return Judged(hits, hit_log, alarms[negative], logs.image_log[negative], images)


def _matched(
    logs: Logs, source: str, standardizer: Standardizer, policy: MatchingPolicy
) -> tuple[PersonMatches, Floats, Floats]:
    """The matches, (P,) the sensitivity from which on each person is found, and (D,) from which on each detection is
    a false positive; infinite: never."""
    matches = person_matches(logs, source, policy)
    strength = standardizer(logs.source(source).strength)
    hits = np.append(strength, np.inf)[matches.detection_of]  # the last one for -1, no detection
    return matches, hits, np.where(matches.false, strength, np.inf)


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


def _distance(logs: Logs, image: Ints, point_m: Floats) -> Floats:
    """(n,) from the vehicle to the point; NaN where the point is not known."""
    away = point_m - logs.position_m[image]
    return np.hypot(away[:, 0], away[:, 1])


def _counted_people(logs: Logs) -> Mask:
    """(P,) in range, and the nearest of their image (the first of several equally near)."""
    away = _distance(logs, logs.person_image, logs.person_m)
    order = np.lexsort((away, logs.person_image))  # NaN comes last
    nearest = np.zeros(len(order), dtype=np.bool_)
    nearest[order[np.unique(logs.person_image[order], return_index=True)[1]]] = True
    return nearest & _within(away, RANGE_M)


def _within(value: Floats, bin_m: tuple[float, float]) -> Mask:
    low, high = bin_m
    inside: Mask = (value >= low) & (value < high)
    return inside
