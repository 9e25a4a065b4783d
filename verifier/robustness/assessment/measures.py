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

The tolerance epsilon(d): the greatest change of performance that is accepted at a distance d of the data.

Wozniak, Segura and Mazo 2024, Sec. 5.8 and Box 7: a piecewise linear function. It need not be continuous; a piece
holds up to its end and including it, so the breakpoint belongs to the lower piece. For instance

    epsilon(d) = .01 for d <= .25, d beyond       Tolerance((Piece(0, .01, up_to=.25), Piece(1, 0)))

Everything is exact: `Fraction` in, `Fraction` out.

The metamorphic relation: is the change of performance small enough for the distance of the data?

Wozniak, Segura and Mazo 2024, Sec. 5.8, eq. of Task 7 and Box 7, with x the source and x' the target:

    for all (x, x'):  |P_x - P_x'| <= epsilon(d(x, x'))

The detector is robust only if this holds for every performance metric that was chosen, and under every distance that
has a tolerance. The relation is two-sided, as the paper has it: a performance that *rises* by more than epsilon
violates it as well, and the outcome says so.

"Globally robust" there means for all pairs of sets of circumstances; what is checked are the pairs that were given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from verifier.base.documents import Limits, Magnitude, Share
from verifier.base.numbers import exact_text
from verifier.checking.verdicts import Verdict
from verifier.robustness.detection_metrics import TABLE_6, Performance


@dataclass(frozen=True)
class Piece:
    """slope * d + constant, up to and including `up_to`; without an end where that is None."""

    slope: Fraction = Fraction(0)
    constant: Fraction = Fraction(0)
    up_to: Annotated[Fraction, Limits(ge=0)] | None = None

    def __call__(self, distance: Fraction) -> Fraction:
        """The value at a distance."""
        return self.slope * distance + self.constant

    def __str__(self) -> str:
        """The rule for people: `0.01`, `d`, `2 d + 0.1`."""
        if self.slope == 0:
            return exact_text(self.constant)
        factor = {1: "d", -1: "-d"}.get(int(self.slope) if self.slope.denominator == 1 else 0)
        rising = factor or f"{exact_text(self.slope)} d"
        if self.constant == 0:
            return rising
        return f"{rising} {'+' if self.constant > 0 else '-'} {exact_text(abs(self.constant))}"


@dataclass(frozen=True)
class Tolerance:
    """Pieces in order of their ends; only the last has none, so that every distance from 0 has its piece.

    Raises:
        ValueError: no piece, ends not increasing from above 0, an end missing or too many, or a value below 0
            somewhere: then nothing could be robust there.
    """

    pieces: tuple[Piece, ...]

    def __post_init__(self) -> None:
        if not self.pieces:
            raise ValueError("expected at least one piece")
        start = Fraction(0)
        for number, piece in enumerate(self.pieces):
            last = number == len(self.pieces) - 1
            if (piece.up_to is None) != last:
                raise ValueError(
                    "the last piece has no end: distances beyond need a tolerance too" if last else
                    f"piece {number + 1} has no end, and others follow"
                )  # fmt: skip
            if piece.up_to is not None and piece.up_to <= start and not (number == 0 and piece.up_to == 0):
                raise ValueError(f"piece {number + 1} ends at {exact_text(piece.up_to)}, not after where it begins")
            ends = [start] if piece.up_to is None else [start, piece.up_to]
            if any(piece(end) < 0 for end in ends) or (last and piece.slope < 0):
                raise ValueError(f"piece {number + 1} falls below 0")
            start = piece.up_to if piece.up_to is not None else start

    @classmethod
    def told(cls, pieces: Iterable[tuple[float, float, float | None]]) -> Tolerance:
        """That of (slope, constant, up_to) as a document spells them; errors as above."""
        exact = ([None if value is None else Fraction(repr(value)) for value in piece] for piece in pieces)
        return cls(tuple(Piece(slope or Fraction(0), constant or Fraction(0), end) for slope, constant, end in exact))

    def __call__(self, distance: Fraction) -> Fraction:
        """The tolerance at a distance from 0; ValueError for a negative one.

        >>> flat, rising = Piece(Fraction(0), Fraction("0.01"), Fraction("0.25")), Piece(Fraction(1), Fraction(0))
        >>> box_7 = Tolerance((flat, rising))
        >>> box_7(Fraction("0.25")), box_7(Fraction("0.26"))
        (Fraction(1, 100), Fraction(13, 50))
        """
        if distance < 0:
            raise ValueError(f"expected a distance from 0, got {float(distance)}")
        return next(piece(distance) for piece in self.pieces if piece.up_to is None or distance <= piece.up_to)

    def __str__(self) -> str:
        """The rule for people: `0.01 if d <= 0.25, else d`."""
        if len(self.pieces) == 1:
            return str(self.pieces[0])
        ends = [f"{piece} if d <= {exact_text(piece.up_to)}" for piece in self.pieces if piece.up_to is not None]
        return f"{', '.join(ends)}, else {self.pieces[-1]}"


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
        tolerance: epsilon(d), where the metamorphic relation uses this distance.
        level: scale of the pyramid of CW-SSIM; see `feature_distances.CwSsimSettings`.
        extractor: `torchvision:NAME`, what features of the images are made with; None where files give them.

    Raises:
        ValueError: an unknown measure, a tolerance for PSNR, which is no distance, or an extractor that is none or
            goes with no distance of features of data sets.
    """

    name: str
    measure: str
    tolerance: Tolerance | None = None
    level: Annotated[int, Limits(ge=1, le=12)] = 6
    extractor: str | None = None

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ValueError(f"unknown measure {self.measure!r}")
        if self.extractor is not None and self.measure not in ("frechet", *LINKAGES):
            raise ValueError(f"'extractor' goes with frechet, {', '.join(LINKAGES)}")
        if self.extractor is not None and not self.extractor.removeprefix("torchvision:").isidentifier():
            raise ValueError(f"expected an extractor as torchvision:inception_v3, got {self.extractor!r}")
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


METRICS = {
    "TP": "M7",
    "FP": "M8",
    "FN": "M9",
    "precision": "M10",
    "recall": "M11",
    **{name: "M12" if name.startswith("AP") else "M13" for name in TABLE_6},
}
"""The metrics of Table 6 by their numbers; others are welcome, without one."""


@dataclass(frozen=True)
class Outcome:
    """The relation for one metric, one distance and one target data set; the verdict is of the exact numbers.

    Attributes:
        metric, distance_name: what was compared, and how far apart the data are by what.
        source, target: P_x and P_x'.
        change: M18, |P_x - P_x'|.
        distance: d.
        scale: what the tolerance is multiplied by (Circumstance.tolerance_scale).
        tolerance: epsilon(d), times the scale.
    """

    metric: str
    distance_name: str
    source: Share
    target: Share
    change: Share
    distance: Magnitude
    scale: Annotated[float, Limits(gt=0)]
    tolerance: Magnitude
    verdict: Verdict


def outcomes(
    metrics: Sequence[str],
    source: Performance,
    target: Performance,
    rules: Mapping[str, DistanceRule],
    distances: Mapping[str, DatasetDistance],
    scale: Fraction,
) -> Iterator[Outcome]:
    """Every metric under every distance that has a tolerance and a value, metrics first.

    Raises:
        ValueError: a metric that one of the two performances does not have.
    """
    for name in metrics:
        for performance in (source, target):
            if name not in performance.values:
                raise ValueError(f"no value of {name}")
        before, after = source.values[name], target.values[name]
        for rule in rules.values():
            away = distances[rule.name].distance if rule.name in distances else None
            if rule.tolerance is None or away is None:
                continue
            change, accepted = abs(before - after), rule.tolerance(away) * scale
            verdict = Verdict.SATISFIED if change <= accepted else Verdict.VIOLATED
            shares = float(before), float(after), float(change)
            yield Outcome(name, rule.name, *shares, float(away), float(scale), float(accepted), verdict)
