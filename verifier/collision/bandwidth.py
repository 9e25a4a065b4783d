"""The width h of the Gaussian kernel: a rule that any subsample can be given, and how to choose its constant.

The paper (Xu et al., WSC 2021, App. B) asks for h of order n^(-1/5) and names no constant. Here

    h = c min(sd, IQR / 1.349) n^(-1/5)        sd, IQR of the reported distances,

where c = 1.06 is the normal reference rule (Silverman 1986, eq. 3.30; Scott 2015, Sec. 6.1). That rule is made for
the *density* of the reported distances. What the estimator needs is the chance that an object is near *given* its
reported distance, and with a sharp detector that chance changes within a metre: then the rule blurs it.
Cross-validation chooses c by how well each pair's true distance is forecast from the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from verifier.base.arrays import Floats
from verifier.collision.pairs import Pairs

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

    def widths_m(self, values_m: Floats, sizes: NDArray[np.int64]) -> Floats:
        """(B,) width for each row of `values_m` (B, n), padded with -inf to `sizes` (B,) values.

        NaN for an empty row, and with `scaled` for a row of one value; 0 for a row without spread.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.where(sizes > 0, sizes.astype(np.float64) ** -0.2, np.nan)
            return np.asarray(self.constant * order * (spread_m(values_m, sizes) if self.scaled else 1.0))


def spread_m(values_m: Floats, sizes: NDArray[np.int64]) -> Floats:
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


def _quantile(rows: Floats, sizes: NDArray[np.int64], level: float) -> Floats:
    """(B,) quantile of the last `sizes` values of each rising row."""
    at = np.maximum(sizes - 1, 0) * level
    low = np.floor(at).astype(np.int64)
    first = rows.shape[1] - np.maximum(sizes, 1)
    last = rows.shape[1] - 1
    below = np.take_along_axis(rows, (first + low)[:, None], axis=1)[:, 0]
    above = np.take_along_axis(rows, np.minimum(first + low + 1, last)[:, None], axis=1)[:, 0]
    with np.errstate(invalid="ignore"):
        return np.asarray(below + (at - low) * (above - below))
