"""Distances between data sets: which there are, and what a given number means. Task 6, Table 7, Boxes 6 and 7.

| name | similarity or distance of two images | distance of two data sets |
|---|---|---|
| `mse` | mean squared difference of grey levels | mean over the pairs |
| `psnr` | 10 log10(255^2 / MSE), decibels; higher is closer | none: it falls with distance, and can be infinite |
| `ssim` | structural similarity (Wang et al. 2004) | 1 - mean over the pairs |
| `cw_ssim` | complex-wavelet structural similarity (Sampat et al. 2009) | 1 - mean over the pairs |
| `euclidean`, `cosine` | of the two feature vectors | mean over the pairs |
| `frechet` | - | |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)) of the features |
| `single`, `complete`, `average`, `centroid` linkage | - | of the two clouds of features |

Box 7 labels .154 "CW-SSIM"; it is the distance, 1 - mean CW-SSIM. So a number in a file says which of the two it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from verifier.robustness.assessment.tolerance import Tolerance

SIMILARITIES = ("ssim", "cw_ssim")
IMAGE_MEASURES = ("mse", "psnr", *SIMILARITIES)
PAIRED_FEATURE_MEASURES = ("euclidean", "cosine")
LINKAGES = ("single", "complete", "average", "centroid")
FEATURE_MEASURES = (*PAIRED_FEATURE_MEASURES, "frechet", *LINKAGES)
MEASURES = (*IMAGE_MEASURES, *FEATURE_MEASURES, "other")
"""`other` is a distance that somebody else computed; its value is given."""
GQM_NUMBERS = {
    **dict.fromkeys(IMAGE_MEASURES, "M14"),
    "frechet": "M15",
    **dict.fromkeys(PAIRED_FEATURE_MEASURES, "M16"),
    **dict.fromkeys(LINKAGES, "M17"),
}
WORDS = {
    "mse": "mean squared error",
    "psnr": "peak signal-to-noise ratio, dB",
    "ssim": "1 - mean SSIM",
    "cw_ssim": "1 - mean CW-SSIM",
    "euclidean": "mean Euclidean distance of features",
    "cosine": "mean cosine distance of features",
    "frechet": "Fréchet distance of features",
    "single": "single linkage of features",
    "complete": "complete linkage of features",
    "average": "average linkage of features",
    "centroid": "centroid linkage of features",
    "other": "distance",
}


@dataclass(frozen=True)
class DistanceRule:
    """A distance that an assessment uses.

    Attributes:
        name: as the assessment calls it.
        measure: one of `MEASURES`.
        tolerance: epsilon(d), where the metamorphic relation uses this distance.
        level: scale of the pyramid of CW-SSIM; see `cw_ssim.CwSsimSettings`.

    Raises:
        ValueError: an unknown measure, or a tolerance for PSNR, which is no distance.
    """

    name: str
    measure: str
    tolerance: Tolerance | None = None
    level: int = 6

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ValueError(f"unknown measure {self.measure!r}")
        if self.measure == "psnr" and self.tolerance is not None:
            raise ValueError("PSNR falls as images differ more: it is no distance that a tolerance could go with")


@dataclass(frozen=True)
class DatasetDistance:
    """How far a target data set is from the source.

    Attributes:
        distance: d, from 0; None where there is none (PSNR).
        similarity: the mean similarity behind it, where there is one.
        pairs: how many pairs of images it was computed from; None where the number was given.
        deviation: standard deviation over the pairs; None likewise, and for a single pair.
        given: whether the number was given rather than computed.

    Raises:
        ValueError: a negative distance, or one that is not 1 - similarity.
    """

    distance: Fraction | None
    similarity: Fraction | None = None
    pairs: int | None = None
    deviation: float | None = None
    given: bool = True

    def __post_init__(self) -> None:
        if self.distance is not None and self.distance < 0:
            raise ValueError(f"expected a distance from 0, got {float(self.distance):g}")

    @classmethod
    def of_similarity(cls, similarity: Fraction) -> DatasetDistance:
        """1 - similarity; ValueError above 1."""
        if similarity > 1:
            raise ValueError(f"expected a similarity up to 1, got {float(similarity):g}")
        return cls(1 - similarity, similarity)
