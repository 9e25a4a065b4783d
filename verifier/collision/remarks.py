"""What a reader of a study must know to read its numbers rightly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from verifier.base.words import percent
from verifier.collision.bridge import ClosedLoop
from verifier.collision.pairs_reader import ReadPairs
from verifier.collision.study import DetectorResult, PolicyResult, StudySettings


def study_remarks(
    found: Sequence[ReadPairs], settings: StudySettings, policies: Sequence[PolicyResult]
) -> tuple[str, ...]:
    """Remarks on the data, the estimate, the comparisons and the closed loop, without repetitions."""
    remarks: list[str] = []
    for each in found:
        remarks += _of_data(each)
    for policy in policies:
        for result in policy.detectors:
            remarks += _of_map(result)
            if result.loop is not None:
                remarks += _of_loop(result.loop, result.map.title, settings)
    if len(found) > 1:
        remarks += _of_comparison(found, settings, policies)
    return tuple(dict.fromkeys(remarks))


def _of_data(found: ReadPairs) -> Iterator[str]:
    title, origin = found.pairs.title, found.origin
    if origin.get("overlapping_in_image"):
        yield (
            f"{title}: {origin['overlapping_in_image']} objects have a report in the image that is too far off in "
            "space to overlap, and so make no pair by the paper's rule; large errors are left out. A matching by "
            "image rectangles keeps them"
        )
    if origin.get("reports_of_two_objects"):
        number = origin["reports_of_two_objects"]
        yield f"{title}: {number} pairs have a report that is the best of a second object, too, and in both pairs"
    if origin.get("drives"):
        drives = "one drive" if origin["drives"] == 1 else f"{origin['drives']} drives"
        yield (
            f"{title}: the {origin['images']} images are frames of {drives}. Frames that follow each other are "
            "alike, but every interval takes images, or pairs, for independent: it is too narrow"
        )
    if origin.get("measure") not in (None, "given"):
        yield (
            f"{title}: distances are to the centres of boxes. A surface is nearer by up to half the object's length: "
            "take that off the distances, or keep it as a margin"
        )
    if origin.get("without_distance"):
        yield f"{title}: {origin['without_distance']} objects of unknown distance are left out"
    if origin.get("behind"):
        yield f"{title}: {origin['behind']} objects behind the ego, or reported there, are left out"
    if origin.get("negative_reports"):
        policy = {"zero": "taken as 0", "left_out": "left out with their objects"}
        yield f"{title}: reports below 0 m, {policy[origin['negative_reports_are']]}: {origin['negative_reports']}"


def _of_map(result: DetectorResult) -> Iterator[str]:
    chart = result.map
    if chart.oversmooths:
        times = chart.width_m / chart.cross_validated_m
        yield (
            f"{chart.title}: the kernel is {chart.width_m:.3g} m wide, {times:.3g} times the width that forecasts "
            "best. Oversmoothing: near y = S(v) the estimate is biased towards 0.5, and subsampling intervals "
            "rarely cover the true value"
        )
    if chart.narrowest:
        yield (
            f"{chart.title}: cross-validation took the narrowest kernel that it tries, {chart.width_m:.3g} m. Either "
            "the probability changes within so little, or pairs are near copies of each other, such as frames of "
            "one drive: then the kernel is too narrow, and the map shows single drives. Compare with a kernel of a "
            "stated width"
        )
    lower, upper = result.confidence.trusted
    outside = int(np.sum((chart.probability < lower) | (chart.probability > upper)))
    if outside:
        yield (
            f"{chart.title}: at {outside} of {chart.reason.size} points the estimate lies outside of the interval to "
            "trust. The exact intervals look at each image's nearest object alone; the estimate weights all pairs "
            "equally and ignores how many share an image"
        )
    missing = {reason: count for reason, count in chart.reasons.items() if reason}
    for reason, count in missing.items():
        yield f"{chart.title}: at {count} of {chart.reason.size} points no probability is given: {reason.text}"
    if chart.settings.two_bandwidths and bool(np.any((chart.probability < 0) | (chart.probability > 1))):
        yield f"{chart.title}: with two bandwidths the estimate leaves [0, 1] at some points"


def _of_loop(loop: ClosedLoop, title: str, settings: StudySettings) -> Iterator[str]:
    assert settings.loop is not None  # there is a loop, so it was asked for
    channel = settings.loop.channel
    if loop.borrowed_bins:
        first = [f"[{each * channel.bin_m:g}, {(each + 1) * channel.bin_m:g}) m" for each in loop.borrowed_bins[:4]]
        more = f" and {len(loop.borrowed_bins) - 4} more" if len(loop.borrowed_bins) > 4 else ""
        assumed = "those of the nearest bin" if channel.empty_bins == "neighbour" else "no report"
        yield f"{title}: closed loop: no object in the bins {', '.join(first)}{more}; reports there are {assumed}"
    if channel.misses and not loop.missed:
        yield (
            f"{title}: closed loop: the data name no object without a report, so after the first report one comes in "
            "every period"
        )
    yield (
        "closed loop: every report is drawn independently of those before; 'error kept' is the other extreme "
        "of dependence, not of the result. The numbers hold for objects that are reported at all"
    )


def _of_comparison(
    found: Sequence[ReadPairs], settings: StudySettings, policies: Sequence[PolicyResult]
) -> Iterator[str]:
    for each in policies[0].comparisons:
        comparison = each.found
        names = f"{found[each.first].pairs.title} and {found[each.second].pairs.title}"
        if comparison.thin_share > 0:
            yield (
                f"{names}: at {percent(comparison.thin_share, 2)} of the points compared more than a fifth of the "
                f"subsamples of {comparison.subsample_size} have no value; they count against the claim. Take "
                "larger ones"
            )
        if comparison.common_objects < comparison.objects / 2:
            yield (
                f"{names}: {comparison.common_objects} of {comparison.objects} objects have a pair of both; the "
                "detectors are compared on largely different objects"
            )
    if settings.estimator.two_bandwidths:
        yield "with two bandwidths images cannot be resampled: there is no ranking"
    elif settings.penalty.heavy == "below":
        yield (
            "scores: beta weighs lambda below the oracle's, as the paper prints it. A detector that reports objects "
            "too far away lies above the oracle; '--heavy above' weighs that side"
        )
    else:
        yield (
            "scores: beta weighs lambda above the oracle's, where a detector lies that reports objects too far away; "
            "the paper prints the other side"
        )
