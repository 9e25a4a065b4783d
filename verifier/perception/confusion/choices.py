"""What the settings of a count choose: reader, filters, matching policy, rule, as the values that counting takes; and
the data that they name, read with distances and filtered, with what is tested along their tracks.

One job of counting: filters, matching, counting, as the document records them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from verifier.base.errors import UsageError, shown
from verifier.base.options import pair
from verifier.perception.confusion.bins import Bins, parse_edges, parse_variable
from verifier.perception.confusion.counting import Observed, confusion_counts, count_and_observe
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.dependence import Outcomes, dependence
from verifier.perception.confusion.document_dependence import Dependence, Told
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import IMPLAUSIBLE_DEPTH
from verifier.perception.confusion.tracks import frame_numbers, track_numbers
from verifier.perception.detections import (
    Reading,
    read_class_map,
    read_detections,
    with_depth,
    with_distances,
    with_ground,
)
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.depth import UNITS_PER_M
from verifier.perception.detections.filters import keep_attribute, keep_field_of_view, keep_range, keep_scores
from verifier.perception.detections.formats import OPTIONS
from verifier.perception.matching import MatchingPolicy, convention, usual_threshold
from verifier.perception.settings import CountSettings


def reading(settings: CountSettings) -> Reading:
    """How the settings say to read; errors of a class map as `read_class_map`."""
    return Reading(
        None if settings.class_map is None else read_class_map(settings.class_map),
        tuple(settings.ignore),
        settings.dont_care,
        tuple(settings.sequence) or None,
        match_frames=settings.match_frames,
    )


def reader_options(settings: CountSettings) -> dict[str, Any]:
    """The options of the format's reader that were chosen."""
    options = {name: getattr(settings, name) for name in OPTIONS if name != "columns"}
    options |= {"columns": settings.column or None}
    return {name: value for name, value in options.items() if value is not None}


def filtered(settings: CountSettings, data: DetectionSet, measure: str) -> DetectionSet:
    """The data without what the settings take out before it is matched; each filter records what that was.

    Raises:
        UsageError: a bound that is none; otherwise as in `verifier.perception.detections.filters`.
    """
    lowest = dict(_bound(text, "--min") for text in settings.min)
    highest = dict(_bound(text, "--max") for text in settings.max)
    removed = settings.filtered
    if settings.min_score is not None:
        data = keep_scores(data, settings.min_score)
    if settings.range is not None:
        low, dots, high = settings.range.partition("..")
        if not dots:
            raise UsageError(f"--range: expected LOW..HIGH in metres, got {shown(settings.range)}")
        data = keep_range(data, measure, _number(low, "--range"), _number(high, "--range"), removed=removed)
    if settings.field_of_view is not None:
        data = keep_field_of_view(data, settings.field_of_view, removed)
    for name in lowest | highest:
        data = keep_attribute(data, name, lowest.get(name, -math.inf), highest.get(name, math.inf), removed)
    return data


def matching_policy(settings: CountSettings, usual: MatchingPolicy) -> MatchingPolicy:
    """The policy that the settings name, starting from a convention or from what is usual for the data.

    Raises:
        UsageError: choices that do not go together.
    """
    policy = usual if settings.convention is None else convention(settings.convention)
    chosen = {name: getattr(settings, name) for name in ("affinity", "assignment", "class_aware")}
    chosen["threshold"] = settings.match_threshold
    if settings.affinity not in (None, policy.affinity) and settings.match_threshold is None:
        chosen["threshold"] = usual_threshold(settings.affinity)
    changes: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    if settings.ignore_overlap is not None:
        part = settings.ignore_overlap
        changes["ignore_overlap"] = None if part == "none" else _number(part, "--ignore-overlap")
    try:
        return replace(policy, **changes)
    except ValueError as error:
        raise UsageError(f"matching: {error}") from None


def class_names(settings: CountSettings) -> tuple[str, ...]:
    """The names of `--classes`; empty where it is not given."""
    return () if settings.classes is None else tuple(name.strip() for name in settings.classes.split(","))


def counting_rule(settings: CountSettings, classes: tuple[str, ...], measure: str) -> CountingRule:
    """The rule that the settings name, for data with these classes; UsageError as `CountingRule`."""
    columns = classes if settings.classes is None else class_names(settings)
    thresholds = None
    if settings.score_thresholds is not None:
        thresholds = tuple(_number(text, "--score-thresholds") for text in settings.score_thresholds.split(","))
        if settings.min_score is not None and settings.min_score > thresholds[0]:
            raise UsageError("--min-score would leave out detections that the lowest of --score-thresholds counts")
    return CountingRule(
        settings.labelling,
        columns,
        Bins(parse_edges(settings.bins), tuple(parse_variable(text) for text in settings.by)),
        measure,
        settings.unmatched,
        settings.duplicates,
        settings.outside,
        settings.gap,
        thresholds,
    )


def _bound(text: str, option: str) -> tuple[str, float]:
    name, value = pair(option, "NAME=VALUE", text)
    return name, _number(value, option)


def _number(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise UsageError(f"{option}: expected a number, got {shown(text)}")
    return value


def default_measure(data: DetectionSet) -> str:
    """The distance of the paper where objects have boxes in the ego frame, else the one the data itself gives."""
    boxes = data.annotations
    return "given" if not boxes.in_space and boxes.distance_m is not None else "euclidean_3d"


def default_policy(data: DetectionSet) -> MatchingPolicy:
    """Centres within 2 m on the ground where both sides have boxes in the ego frame, else image IoU from 0.5.

    Both are class-agnostic and greedy: the most usual choice for either kind of box (nuScenes, PASCAL VOC). Where the
    data has regions not to judge and image rectangles, a detection that lies half in one is no false positive
    (KITTI).
    """
    in_space = data.annotations.in_space and (data.detections.in_space or not len(data.detections))
    regions = data.ignored is not None and data.ignored.box_2d is not None and data.detections.box_2d is not None
    policy = MatchingPolicy("centre_bev", 2.0) if in_space else MatchingPolicy("iou_2d", 0.5)
    return replace(policy, ignore_overlap=0.5) if regions else policy


def count_job(
    data: DetectionSet, policy: MatchingPolicy, rule: CountingRule, title: str = ""
) -> tuple[ConfusionCounts, Observed | None]:
    """The document of filtered data, and what was seen of each object (None: see `count_and_observe`)."""
    counted, observed = count_and_observe(data, policy, rule)
    return confusion_counts(counted, rule, policy, dict(data.origin), title), observed


def prepared(
    settings: CountSettings, data: DetectionSet | None = None, part: bool = False
) -> tuple[DetectionSet, CountingRule]:
    """As `placed`, with the rule that the data are counted by; errors of it, too."""
    data, measure = placed(settings, data, part)
    return data, counting_rule(settings, data.classes, measure)


def placed(settings: CountSettings, data: DetectionSet | None = None, part: bool = False) -> tuple[DetectionSet, str]:
    """The data that the settings name, or `data`, with distances and filtered, and the measure of distance.

    A `part` is judged together with all others by `whole_depth`.

    Raises:
        VerifierError: as reading and filters raise.
    """
    _check_distances(settings)
    if data is None:
        data = read_detections(
            settings.format or "",
            settings.annotations,
            settings.detections,
            reading(settings),
            **reader_options(settings),
        )
    data = _with_distances(settings, data, part)
    sources = (settings.depth_folder, settings.distance_file, settings.distance_field)
    projected = settings.calibration is not None and not data.annotations.in_space
    measure = settings.distance or ("given" if any(sources) or projected else default_measure(data))
    if settings.calibration is not None:
        data = with_ground(data, settings.calibration, measure)
    return filtered(settings, data, measure), measure


def _check_distances(settings: CountSettings) -> None:
    others = (settings.distance_file, settings.distance_field, settings.detection_distance_field)
    if settings.depth_folder is not None and any((*others, settings.calibration)):
        raise UsageError(
            "--depth-folder gives every distance; leave out --distance-file, --distance-field, "
            "--detection-distance-field and --calibration"
        )
    if settings.depth_scale is not None and settings.depth_folder is None:
        raise UsageError("--depth-scale belongs to --depth-folder")
    if settings.calibration is not None and settings.detection_distance_field is not None:
        raise UsageError("both --calibration and --detection-distance-field give the distances of detections")


def _with_distances(settings: CountSettings, data: DetectionSet, part: bool) -> DetectionSet:
    if settings.depth_folder is not None:
        return with_depth(
            data,
            settings.depth_folder,
            scale=UNITS_PER_M if settings.depth_scale is None else settings.depth_scale,
            ignore=tuple(settings.ignore),
            any_focal_length=IMPLAUSIBLE_DEPTH in settings.accept,
            part=part,
        )
    if settings.distance_file is not None:
        return with_distances(data, settings.distance_file, settings.distance_key)
    return data


def dependence_document(data: DetectionSet, observed: Observed, rule: CountingRule) -> Told | None:
    """The key `dependence` of a confusion document: the test of each class that has tracks.

    Returns:
        None where the annotations have no tracks, or none with two successive frames.
    """
    outcomes = track_outcomes(data, observed, rule)
    if outcomes is None:
        return None
    tested = dependence(outcomes, rule.classes)
    if not tested[0]:
        return None
    tests = tuple(Dependence(seed=0, classes=classes) for classes in tested)
    return tests[0] if rule.thresholds is None else tests


def track_outcomes(data: DetectionSet, observed: Observed, rule: CountingRule) -> Outcomes | None:
    """The objects that lie on a track and in a bin; None where the annotations have no attribute `track`."""
    if "track" not in data.annotations.attributes:
        return None
    objects = observed.scene.objects
    track = track_numbers(data.annotations, data.frame_sequence)
    used = (track >= 0) & (objects.bin >= 0) & (objects.label >= 0)
    right = np.where(objects.reported == objects.label, objects.level, 0)
    place = objects.bin[used].astype(np.int64)
    return Outcomes(
        track[used],
        frame_numbers(data.frame_name, data.frame_sequence)[objects.frame[used]],
        objects.label[used],
        place * len(rule.classes) + objects.label[used],
        right[used],
        rule.threshold_count,
        rule.bins.distance_part(place),
    )
