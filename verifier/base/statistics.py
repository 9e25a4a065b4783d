"""What every part asks of statistics: binomial ends, draws of items with replacement, percentiles of draws."""

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints

_TOLERANCE = 1e-6
_HALVINGS = 100


def clopper_pearson(events: Ints, trials: Ints, tail: float) -> tuple[Floats, Floats]:
    """Ends of exact intervals for binomial probabilities; [0, 1] without trials.

    C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits, Biometrika 26, 1934.

    >>> low, high = clopper_pearson(np.array([0]), np.array([10]), 0.05)
    >>> float(low[0]), round(float(high[0]), 4)
    (0.0, 0.2589)

    Args:
        events, trials: x of n, arrays that broadcast against each other.
        tail: the probability that each end may be missed with, above 0 and below 1/2.

    Raises:
        ValueError: not 0 <= events <= trials.
    """
    if np.any((events < 0) | (events > trials)):
        raise ValueError("expected 0 <= events <= trials")
    return binomial_lower_end(events, trials, tail), 1 - binomial_lower_end(trials - events, trials, tail)


def binomial_lower_end(events: Ints, trials: Ints, tail: float) -> Floats:
    """The lower ends alone; arguments as for `clopper_pearson`, and as many digits as doubles have."""
    from scipy.special import betainc, betaincinv

    some = events > 0
    least = np.where(some, events, 1).astype(np.float64)  # the end is 0 for x = 0
    rest = np.maximum(trials - events, 0) + 1.0
    end = betaincinv(least, rest, tail)
    # The inverse can fail, as it does for 1,000 of 10^9; the function itself is accurate.
    wrong = ~(np.abs(betainc(least, rest, end) / tail - 1) < _TOLERANCE)
    if np.any(wrong):
        end = np.where(wrong, _bisected(least, rest, tail), end)
    return np.asarray(np.where(some, end, 0.0))


def _bisected(least: Floats, rest: Floats, tail: float) -> Floats:
    """The end below which Pr(Bin(n, end) >= least) is at most `tail`."""
    from scipy.special import betainc

    low, high = np.zeros(np.broadcast_shapes(least.shape, rest.shape)), least / (least + rest - 1)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = betainc(least, rest, middle) > tail
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return low


def drawn_with_replacement(items: int, draws: int, rng: np.random.Generator) -> Ints:
    """(draws, items) how often each draw of as many items as there are has each of them (Efron's bootstrap, 1979)."""
    weights: NDArray[np.int64] = rng.multinomial(items, np.full(items, 1 / items), size=draws)
    return weights


def percentile_ends(draws: Floats, confidence: float) -> tuple[float, float]:
    """The percentile interval of (B,) draws, those that are NaN left out; NaN where none is left."""
    known = draws[~np.isnan(draws)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
