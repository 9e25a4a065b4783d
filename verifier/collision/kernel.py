"""Equation (1) for many samples, a whole row of distances and every speed at once.

Everything is a cumulative sum along the pairs sorted by falling true distance: the pairs with D > S(v) are the first
`beyond` of them, so sums and counts "over pairs with D > S(v)" for all speeds are gathered from one running sum.
Running sums of terms that are not negative never fall, so with one width the result lies in [0, 1] in floating point
as well; nothing is clipped.

The width h of the Gaussian kernel: a rule that any subsample can be given, and how to choose its constant.

The paper (Xu et al., WSC 2021, App. B) asks for h of order n^(-1/5) and names no constant. Here

    h = c min(sd, IQR / 1.349) n^(-1/5)        sd, IQR of the reported distances,

where c = 1.06 is the normal reference rule (Silverman 1986, eq. 3.30; Scott 2015, Sec. 6.1). That rule is made for
the *density* of the reported distances. What the estimator needs is the chance that an object is near *given* its
reported distance, and with a sharp detector that chance changes within a metre: then the rule blurs it.
Cross-validation chooses c by how well each pair's true distance is forecast from the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from verifier.base.arrays import Floats, Ints
from verifier.collision.pairs import Pairs


class Code(IntEnum):
    """The base of enumerations whose members are spelled as a number and a text."""

    text: str

    def __new__(cls, value: int, text: str = "") -> Self:
        """A member."""
        code = int.__new__(cls, value)
        code._value_, code.text = value, text
        return code

    @classmethod
    def counted(cls, table: NDArray[np.uint8]) -> dict[Self, int]:
        """How often each code stands in a table, of those that do."""
        codes, counts = np.unique(table, return_counts=True)
        return {cls(code): count for code, count in zip(codes.tolist(), counts.tolist(), strict=True)}


NORMAL_REFERENCE = 1.06
"""c of the normal reference rule: (4/3)^(1/5)."""
NORMAL_IQR = 1.349
"""Interquartile range of the standard normal distribution."""
CONSTANTS: tuple[float, ...] = tuple((0.04 * 2.0 ** (np.arange(25) / 4)).tolist())
"""Constants c that cross-validation tries: 0.04 to 2.56, four per doubling."""
FORECASTS = 15
"""Thresholds of the forecasts: the quantiles k/16 of the true distances."""
MOST_BINS = 8192


@dataclass(frozen=True)
class WidthRule:
    """h = constant * scale * size^(-1/5); with `scaled` the scale is min(sd, IQR / 1.349), else 1.

    A subsample of b pairs is given the same rule, so its width is wider by the order (n / b)^(1/5), as subsampling
    asks (Algorithm 1's h_b).
    """

    constant: float
    scaled: bool = True

    @classmethod
    def fixed(cls, width_m: float, size: int) -> WidthRule:
        """The rule that gives `width_m` to a sample of `size`."""
        return cls(width_m * max(size, 1) ** 0.2, scaled=False)

    def widths_m(self, values_m: Floats, sizes: Ints) -> Floats:
        """(B,) width for each row of `values_m` (B, n), padded with -inf to `sizes` (B,) values.

        NaN for an empty row, and with `scaled` for a row of one value; 0 for a row without spread.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.where(sizes > 0, sizes.astype(np.float64) ** -0.2, np.nan)
            return np.asarray(self.constant * order * (spread_m(values_m, sizes) if self.scaled else 1.0))


def spread_m(values_m: Floats, sizes: Ints) -> Floats:
    """(B,) min(sd, IQR / 1.349) of each row of `values_m` (B, n), padded with -inf to `sizes` (B,) values.

    sd divides by size - 1; quantiles are interpolated linearly between order statistics. NaN below two values.
    """
    rows = np.sort(values_m, axis=1)
    counted = np.arange(rows.shape[1]) >= rows.shape[1] - sizes[:, None]
    size = sizes.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(counted, rows, 0.0).sum(axis=1) / size
        squares = (np.where(counted, rows - mean[:, None], 0.0) ** 2).sum(axis=1)
        sd = np.sqrt(squares / (size - 1))
    quartiles = _quantile(rows, sizes, 0.75) - _quantile(rows, sizes, 0.25)
    return np.asarray(np.where(sizes > 1, np.minimum(sd, quartiles / NORMAL_IQR), np.nan))


def cross_validated_constant(pairs: Pairs) -> float:
    """The constant c with the best leave-one-out forecasts; NaN where the pairs have no spread.

    For thresholds s over the quantiles of the true distances, each pair's event D > s is forecast by the
    Nadaraya-Watson ratio of all other pairs at its reported distance; the loss is the mean of (event - forecast)^2.
    Over all s this is the continuous ranked probability score of the forecast distribution (Gneiting and Raftery,
    JASA 102, 2007, Sec. 4.2); choosing a width so is Li, Lin and Racine's for conditional distributions (JBES 31,
    2013). A pair without neighbours is forecast by the share of all pairs. Distances are put in bins of the
    smallest width, or 1/8192 of their range: this chooses a width, it computes no result.
    """
    if len(pairs) < 2:
        return float("nan")
    scale = float(spread_m(pairs.predicted_m[None, :], np.array([len(pairs)]))[0])
    if not scale > 0:
        return float("nan")
    unit = scale * len(pairs) ** -0.2
    start, span = pairs.predicted_m.min(), np.ptp(pairs.predicted_m)
    step = max(CONSTANTS[0] * unit, span / (MOST_BINS - 1))
    at = np.rint((pairs.predicted_m - start) / step).astype(np.int64)
    bins = int(at.max()) + 1
    levels = np.arange(1, FORECASTS + 1) / (FORECASTS + 1)
    events = pairs.true_m > np.quantile(pairs.true_m, levels)[:, None]
    counts = np.array([np.bincount(at, minlength=bins), *(np.bincount(at[row], minlength=bins) for row in events)])
    losses = _forecast_losses(counts.astype(np.float64), np.array(CONSTANTS) * unit / step)
    return CONSTANTS[int(np.argmin(losses))]


def _forecast_losses(counts: Floats, widths: Floats) -> list[float]:
    """Leave-one-out loss of each width (in bins); `counts` (1 + T, G): pairs, and those beyond each threshold."""
    bins = counts.shape[1]
    length = next_fast_len(2 * bins, real=True)  # what wraps around falls outside the bins
    away = np.minimum(np.arange(length), length - np.arange(length))
    spectrum = rfft(counts, length, axis=1)
    used = counts[0] > 0
    everyone, beyond = counts[0, used], counts[1:, used]
    overall = beyond.sum(axis=1, keepdims=True) / everyone.sum()
    losses = []
    for width in widths:
        kernel = np.where(away < bins, np.exp(-0.5 * (away / width) ** 2), 0.0)
        smooth = irfft(spectrum * rfft(kernel), length, axis=1)[:, :bins][:, used]
        others = smooth[0] - 1
        known = others > 1e-6  # what the transform leaves of nothing is about 1e-12
        others = np.where(known, others, 1.0)
        if_within = np.where(known, smooth[1:] / others, overall)
        if_beyond = np.where(known, (smooth[1:] - 1) / others, overall)
        loss = beyond * (1 - if_beyond) ** 2 + (everyone - beyond) * if_within**2
        losses.append(float(loss.sum()))
    return losses


def _quantile(rows: Floats, sizes: Ints, level: float) -> Floats:
    """(B,) quantile of the last `sizes` values of each rising row."""
    at = np.maximum(sizes - 1, 0) * level
    low = np.floor(at).astype(np.int64)
    first = rows.shape[1] - np.maximum(sizes, 1)
    last = rows.shape[1] - 1
    below = np.take_along_axis(rows, (first + low)[:, None], axis=1)[:, 0]
    above = np.take_along_axis(rows, np.minimum(first + low + 1, last)[:, None], axis=1)[:, 0]
    with np.errstate(invalid="ignore"):
        return np.asarray(below + (at - low) * (above - below))


BLOCK_BYTES = 32 * 2**20
"""Working memory of one block of rows; larger blocks leave the processor's cache and gain nothing."""


class Reason(Code):
    """Why a probability is not defined at a point; DEFINED where it is."""

    DEFINED = 0, "defined"
    NO_PAIRS = 1, "there are no pairs"
    NO_SPREAD = 2, "the reported distances have no spread to take a kernel width from: one pair, or equal ones"
    NO_PAIR_NEAR = 3, "no distance was reported near this one"
    UNDERFLOW = 4, "the kernel density is 0 in double precision"
    NO_SINGLE_OBJECT_IMAGE = 5, "nothing was reported from here on, and no image has a single object: 0/0"


@dataclass(frozen=True, eq=False)
class Samples:
    """B samples of pairs, prepared for `estimate`.

    Attributes:
        true_m: (B, n) falling in each row, padded with -inf.
        predicted_m: (B, n) in the same order, padded with -inf.
        sizes: (B,) number of pairs of each sample.
        beyond: (B, V) number of its pairs with D > S(v).
        factors: (B, n + 1) sum_m m c_m p^(m - m0) at p = 0/size .. n/size.
        lowest: m0 - 1 for the smallest m0 >= 1 with c_m0 > 0.
        widths_m: (B,) kernel width; NaN or 0 where there is none.
        subset_widths_m: (B, V) width for the pairs with D > S(v), or None for one width (the paper's App. B).
    """

    true_m: Floats
    predicted_m: Floats
    sizes: Ints
    beyond: Ints
    factors: Floats
    lowest: int
    widths_m: Floats
    subset_widths_m: Floats | None = None

    def as_oracle(self) -> Samples:
        """The same samples seen by a detector that reports every true distance, with the same kernel widths."""
        return replace(self, predicted_m=self.true_m)

    def part(self, rows: slice) -> Samples:
        """Some of the samples."""
        tables = [name for name, value in vars(self).items() if isinstance(value, np.ndarray)]
        return replace(self, **{name: getattr(self, name)[rows] for name in tables})


def samples_of(
    true_m: Floats,
    predicted_m: Floats,
    image_counts: Ints,
    stopping_m: Floats,
    rule: WidthRule,
    two_widths: bool = False,
) -> Samples:
    """Sort and count B samples.

    Args:
        true_m: (B, n) true distances; a row with fewer pairs is padded with -inf, in any place.
        predicted_m: (B, n) reported distances, padded likewise.
        image_counts: c_m, number of images with m pairs, of the full data (Sec. 3.3 keeps it for subsamples).
        stopping_m: (V,) S(v).
        rule: gives each sample its width.
        two_widths: the pairs with D > S(v) get a width of their own by the same rule.
    """
    order = np.argsort(-true_m, axis=1, kind="stable")
    true_m = np.take_along_axis(true_m, order, axis=1)
    predicted_m = np.take_along_axis(predicted_m, order, axis=1)
    sizes = (true_m > -np.inf).sum(axis=1)
    beyond = np.array([(true_m > distance_m).sum(axis=1) for distance_m in stopping_m]).T
    subset = None
    if two_widths:
        at = np.arange(true_m.shape[1])
        columns = [rule.widths_m(np.where(at < count[:, None], predicted_m, -np.inf), count) for count in beyond.T]
        subset = np.array(columns).T
    factors, lowest = _factors(image_counts, sizes, true_m.shape[1])
    return Samples(true_m, predicted_m, sizes, beyond, factors, lowest, rule.widths_m(predicted_m, sizes), subset)


def estimate(samples: Samples, distances_m: Floats, reach: float) -> tuple[Floats, NDArray[np.uint8]]:
    """lambda by equation (1), and why it is not defined where it is NaN.

        lambda = 1 - r1 r2,    r1 = f(y | D > S) P(D > S) / f(y),    r2 = sum m c_m p^(m-1) / sum m c_m q^(m-1),
        p = share of pairs with D > S and D^ >= y,    q = share of pairs with D^ >= y

    Args:
        samples: B samples.
        distances_m: (Y,) reported distances y.
        reach: lambda is defined where the kernel has at least the mass of one pair `reach` widths away.

    Returns:
        (B, Y, V) probabilities and (B, Y, V) codes of `Reason`.
    """
    valid = samples.widths_m > 0
    width = np.where(valid, samples.widths_m, 1.0)
    masses = np.cumsum(_kernel(samples.predicted_m, distances_m, width), axis=2)
    total = masses[:, :, -1]
    share = _gather(masses, samples.beyond) if samples.subset_widths_m is None else _own_widths(samples, distances_m)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = share / total[:, :, None]
    reason = np.zeros(total.shape, dtype=np.uint8)
    reason[total < np.exp(-0.5 * reach**2)] = Reason.NO_PAIR_NEAR
    reason[(total == 0) & (reason == 0)] = Reason.UNDERFLOW
    reason[~valid] = Reason.NO_SPREAD
    ratio, seen = _image_factor(samples, distances_m)
    if samples.lowest:
        reason[(seen == 0) & (reason == 0)] = Reason.NO_SINGLE_OBJECT_IMAGE
    reasons = np.repeat(reason[:, :, None], samples.beyond.shape[1], axis=2)
    if samples.subset_widths_m is not None:
        none = (samples.beyond > 0) & ~(samples.subset_widths_m > 0)
        reasons[none[:, None, :] & (reasons == 0)] = Reason.NO_SPREAD
    with np.errstate(invalid="ignore"):
        return np.where(reasons == 0, 1 - share * ratio, np.nan), reasons


def rows_per_block(samples: int, pairs: int, speeds: int) -> int:
    """How many distances to take at once so that a block of `samples` stays within `BLOCK_BYTES`, at least 1."""
    return max(1, BLOCK_BYTES // (8 * max(samples, 1) * (2 * pairs + 4 * speeds)))


def _kernel(predicted_m: Floats, distances_m: Floats, width: Floats) -> Floats:
    """(B, Y, n) exp(-((y - D^) / h)^2 / 2)."""
    away = distances_m[None, :, None] - predicted_m[:, None, :]
    with np.errstate(over="ignore"):  # infinitely many widths away: no weight
        away /= width[:, None, None]
        away *= away
    away *= -0.5
    return np.asarray(np.exp(away, out=away))


def _own_widths(samples: Samples, distances_m: Floats) -> Floats:
    """(B, Y, V) kernel sums over the pairs with D > S(v), each with its own width, times h / h_v."""
    assert samples.subset_widths_m is not None
    columns = []
    for own, beyond in zip(samples.subset_widths_m.T, samples.beyond.T, strict=True):
        width = np.where(own > 0, own, 1.0)
        longest = max(int(beyond.max(initial=0)), 1)
        kernel = _kernel(samples.predicted_m[:, :longest], distances_m, width)
        kernel *= (np.arange(longest) < beyond[:, None])[:, None, :]
        columns.append(kernel.sum(axis=2) * (samples.widths_m / width)[:, None])
    return np.stack(columns, axis=2)


def _image_factor(samples: Samples, distances_m: Floats) -> tuple[Floats, Ints]:
    """(B, Y, V) r2, and (B, Y) the number of pairs reported at y or further.

    With m0 the smallest number of objects in an image, r2 = (p/q)^(m0-1) R(p) / R(q) where R(0) > 0: a form that
    cannot become 0/0 by underflow.
    """
    further = np.cumsum(samples.predicted_m[:, None, :] >= distances_m[None, :, None], axis=2, dtype=np.int64)
    seen = further[:, :, -1]
    both = _gather(further, samples.beyond)
    rows = np.arange(len(seen))[:, None]
    ratio = samples.factors[rows[:, :, None], both] / samples.factors[rows, seen][:, :, None]
    if samples.lowest:
        ratio *= (both / np.maximum(seen, 1)[:, :, None]) ** samples.lowest
    return ratio, seen


def _gather(sums: NDArray[Any], beyond: Ints) -> NDArray[Any]:
    """(B, Y, V) the running sums (B, Y, n) over the first `beyond` (B, V) pairs."""
    last = np.take_along_axis(sums, np.maximum(beyond - 1, 0)[:, None, :], axis=2)
    return np.asarray(last * (beyond > 0)[:, None, :])


def _factors(image_counts: Ints, sizes: Ints, longest: int) -> tuple[Floats, int]:
    weights = np.arange(len(image_counts)) * image_counts
    used = np.flatnonzero(weights)
    lowest = int(used[0]) if len(used) else 1
    share = np.arange(longest + 1) / np.maximum(sizes, 1)[:, None]
    factors = np.zeros(share.shape)
    for weight in weights[: lowest - 1 : -1].tolist():
        factors = factors * share + weight
    return factors, lowest - 1
