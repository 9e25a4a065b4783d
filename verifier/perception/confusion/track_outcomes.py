"""The outcomes of annotated objects along their tracks, from counted detections to the test of `dependence`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Ints
from verifier.perception.confusion.counting import Observed
from verifier.perception.confusion.dependence import Outcomes, dependence
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.tracks import track_numbers
from verifier.perception.detections.columns import DetectionSet


def dependence_document(
    data: DetectionSet, observed: Observed, rule: CountingRule, seed: int = 0
) -> dict[str, Any] | list[dict[str, Any]] | None:
    """The key `dependence` of a confusion document: the test of each class that has tracks.

    Of a family over score thresholds it is a list with one entry for each.

    Returns:
        None where the annotations have no tracks, or none with two successive frames.
    """
    outcomes = track_outcomes(data, observed, rule)
    if outcomes is None:
        return None
    found = dependence(outcomes, rule.classes, seed)
    if not found[0]:
        return None
    documents = [{"seed": seed, "classes": [each.document() for each in classes]} for classes in found]
    return documents[0] if rule.thresholds is None else documents


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


def frame_numbers(names: Sequence[str], sequence: NDArray[np.int32]) -> Ints:
    """(f,) a number for each frame, from 0; it grows by 1 from each frame to the next of its sequence.

    Where the names of a sequence's frames differ in one number only, such as "0000/000012", and these lie on a grid,
    the number is the place on the grid: frames that are not listed leave gaps. Where they lie on none, such as
    time stamps, frames follow each other in their order, and in all other cases in the order of the list.
    """
    found = np.zeros(len(names), dtype=np.int64)
    order = np.argsort(sequence, kind="stable")
    ends = np.flatnonzero(np.diff(sequence[order], append=-1)) + 1
    for low, high in pairwise([0, *ends.tolist()]):
        rows = order[low:high]
        found[rows] = _numbered([names[row] for row in rows.tolist()])
    return found


def _numbered(names: Sequence[str]) -> Ints:
    matches = [re.fullmatch(r"(.*?)(\d+)(\D*)", name, re.ASCII | re.DOTALL) for name in names]
    parts = [match.groups() for match in matches if match is not None]
    if len(parts) < len(names) or len({(before, after) for before, _, after in parts}) > 1:
        return np.arange(len(names))
    numbers = [int(number) for _, number, _ in parts]
    ordered = sorted(set(numbers))
    step = min((after - before for before, after in pairwise(ordered)), default=1)
    regular = all((number - ordered[0]) % step == 0 for number in ordered)
    if regular and (ordered[-1] - ordered[0]) // step < 2**62:
        return np.array([(number - ordered[0]) // step for number in numbers], dtype=np.int64)
    place: Mapping[int, int] = {number: at for at, number in enumerate(ordered)}
    return np.array([place[number] for number in numbers], dtype=np.int64)
