"""What the numbers of a level would have been on other images: the same draws of images at every level.

Everything that was fixed before the images of the levels were made stays fixed in the draws: the operating point of
the detector, and the sensitivities of a trade-off curve. The thresholds of the average detection rate are picked
again on the drawn source images, as `verifier.robustness.adr_intervals` does.

An interval reaches at least as far as so many images allow (`verifier.base.statistics.reaching`).
"""

from collections.abc import Sequence

import numpy as np

from verifier.base.arrays import Floats, Ints
from verifier.base.statistics import percentile_ends, reaching, reaching_ratio
from verifier.closedloop.closed_loop_curve import judged_sums
from verifier.closedloop.curves import areas, worst_case
from verifier.closedloop.detection_outcomes import Judged
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.matching import MatchingPolicy
from verifier.robustness.adr import AdrSettings
from verifier.robustness.adr_intervals import drawn_adr, drawn_coco, drawn_shares, image_weights

ADR = "ADR"
"""What the average detection rate is called among the metrics."""
CONFIDENCE = 0.95
DRAWS = 500
"""Of which 12 lie beyond each end of an interval at that confidence."""
FEWEST_IMAGES = 2
"""Drawing from fewer says nothing."""


def weights_of(images: int, seed: int) -> Ints | None:
    """(draws, images) how often each draw has each image; None for too few images."""
    if images < FEWEST_IMAGES:
        return None
    return image_weights(images, DRAWS, np.random.default_rng([seed, 4]))


def drawn_metrics(
    data: DetectionSet,
    source: DetectionSet,
    names: Sequence[str],
    policy: MatchingPolicy,
    lowest_score: float | None,
    adr_levels: tuple[float, ...],
    weights: Ints,
) -> dict[str, Floats]:
    """The metrics in every draw, by name; NaN where one is not defined.

    Raises:
        UsageError: boxes that the data do not have, or a library that is missing.
    """
    if not len(data.annotations):
        return {}
    shares = drawn_shares(data, policy, lowest_score, weights)
    found = {name: shares[name] for name in names if name in shares}
    if ADR in names:
        found[ADR] = drawn_adr(source, data, weights, AdrSettings(adr_levels, policy))
    return found | drawn_coco(data, [name for name in names if name not in (*shares, ADR)], weights)


def drawn_curve(
    judged: Judged, sensitivities: Floats, most_false_positives: float, weights: Ints
) -> tuple[Floats, Floats]:
    """(draws, k) safety and efficiency of the curve in every draw; every image is a log here."""
    every = np.ones(len(judged.images), np.bool_)
    safety, efficiency = judged_sums(judged, sensitivities, every, most_false_positives).drawn(weights.astype(float))
    return safety, efficiency


def change_interval(here: Floats, there: Floats, value: float, objects: Ints) -> tuple[float, float] | None:
    """Of the change from `here` to `there` in equal draws; None where no draw has both."""
    return reaching(percentile_ends(there - here, CONFIDENCE), value, objects, (-1.0, 1.0))


def share_interval(
    sensitivities: tuple[Floats, Floats],
    baseline: tuple[Floats, Floats],
    level: tuple[Floats, Floats],
    value: tuple[float, float],
    objects: Ints,
) -> tuple[float, float] | None:
    """Of RobROC of two curves by the area of the first one, in equal draws; None where no draw has an area.

    Args:
        value: both areas, of the images themselves.
    """
    whole = areas(*baseline)
    _, safety, efficiency = worst_case(sensitivities, [baseline[0], level[0]], [baseline[1], level[1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(whole > 0, areas(safety, efficiency) / whole, np.nan)
    return reaching_ratio(percentile_ends(shares, CONFIDENCE), *value, int(np.count_nonzero(objects)), 1.0)
