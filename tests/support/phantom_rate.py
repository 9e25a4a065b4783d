"""How sure the *drives* make us of a rate: the drives weighted at random, with one worst-case phantom drive more.

Bayesian bootstrap over drives (Rubin, The Bayesian bootstrap, Annals of Statistics 9, 1981) with one more drive that
went the other way (Gaffke, Three test statistics for a nonparametric one-sided hypothesis on the mean of a
nonnegative variable, 2005; Learned-Miller and Thomas, A new confidence interval for the mean of a bounded random
variable, arXiv:1905.06208, 2019). With X_d of N_d items of drive d in an event, independent standard exponential E_0,
E_1, ... and S = sum N_d^2 / sum N_d, the size of the drive that an item lies in,

    L = the tail quantile of  sum E_d X_d / (sum E_d N_d + E_0 S).

One item in every drive: exactly Clopper and Pearson's end. Equal sizes: Gaffke's bound, for which coverage is
conjectured; other sizes: coverage is shown by simulation only. So these bounds are called approximate.

For one rate no random numbers are needed: the ratio is at most m if and only if Q = sum E_d (X_d - m N_d) - m S E_0
is at most 0, and (Imhof, Computing the distribution of quadratic forms in normal variables, Biometrika 48, 1961)

    Pr(Q <= 0) = 1/2 - 1/pi * integral of  sin(sum_d atan(c_d e^v)) prod_d (1 + c_d^2 e^(2 v))^(-1/2)  dv

for the coefficients c, scaled to a largest modulus of 1. `verifier.analysis.phantom_draws` has the same for
probabilities of formulas, by random numbers.
"""

from __future__ import annotations

import numpy as np

from verifier.base.arrays import Floats, Ints

_STEP = 0.08
_GRID = np.arange(-300, 301) * _STEP
_HALVINGS = 34


def phantom_interval(hits: Ints, items: Ints, tail: float) -> tuple[float, float]:
    """The ends of a rate, each beyond it with about the chance `tail`.

    Args:
        hits, items: (drives,) X_d of N_d, in any unit.
        tail: between 0 and 1/2.
    """
    return _lower_end(hits, items, tail), 1 - _lower_end(items - hits, items, tail)


def _lower_end(hits: Ints, items: Ints, tail: float) -> float:
    if not hits.any():
        return 0.0
    own = items > 0
    seen, present = hits[own].astype(np.float64), items[own].astype(np.float64)
    phantom = (present**2).sum() / present.sum()
    pooled = float(seen.sum() / present.sum())
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = _chance_not_above_0(np.append(seen - middle * present, -middle * phantom))
        low, high = (middle, high) if below < tail else (low, middle)
    return min(low, pooled)


def _chance_not_above_0(coefficients: Floats) -> float:
    """Pr(sum of coefficients times independent standard exponentials <= 0)."""
    scaled = coefficients / np.abs(coefficients).max()
    angle, size = np.zeros_like(_GRID), np.zeros_like(_GRID)
    growth = np.exp(_GRID)
    for first in range(0, len(scaled), 1024):
        product = scaled[first : first + 1024, None] * growth
        angle += np.arctan(product).sum(axis=0)
        size += np.log1p(product**2).sum(axis=0)
    return float(0.5 - (np.sin(angle) * np.exp(-size / 2)).sum() * _STEP / np.pi)
