"""The data that settings name, read with distances and filtered, and what is tested along their tracks."""

from __future__ import annotations

import numpy as np

from verifier.base.errors import UsageError
from verifier.perception.confusion.choices import counting_rule, default_measure, filters, reader_options, reading
from verifier.perception.confusion.counting import Observed
from verifier.perception.confusion.dependence import Outcomes, dependence
from verifier.perception.confusion.document_dependence import Dependence, Told
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import IMPLAUSIBLE_DEPTH
from verifier.perception.confusion.tracks import frame_numbers, track_numbers
from verifier.perception.detections import DetectionSet, read_detections, with_depth, with_distances, with_ground
from verifier.perception.detections.depth import UNITS_PER_M
from verifier.perception.settings import CountSettings


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
    data = _with_distances(settings, read(settings) if data is None else data, part)
    sources = (settings.depth_folder, settings.distance_file, settings.distance_field)
    projected = settings.calibration is not None and not data.annotations.in_space
    measure = settings.distance or ("given" if any(sources) or projected else default_measure(data))
    if settings.calibration is not None:
        data = with_ground(data, settings.calibration, measure)
    return filters(settings, measure)(data), measure


def read(settings: CountSettings) -> DetectionSet:
    """The data as their format has them; errors as of its reader."""
    options = reader_options(settings)
    return read_detections(
        settings.format or "", settings.annotations, settings.detections, reading(settings), **options
    )


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


def dependence_document(data: DetectionSet, observed: Observed, rule: CountingRule, seed: int = 0) -> Told | None:
    """The key `dependence` of a confusion document: the test of each class that has tracks.

    Returns:
        None where the annotations have no tracks, or none with two successive frames.
    """
    outcomes = track_outcomes(data, observed, rule)
    if outcomes is None:
        return None
    tested = dependence(outcomes, rule.classes, seed)
    if not tested[0]:
        return None
    tests = tuple(Dependence(seed=seed, classes=classes) for classes in tested)
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
