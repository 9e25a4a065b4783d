"""What every part asks of statistics: binomial ends, draws of items, their percentiles, and what no draw shows."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints

Items: TypeAlias = int | Ints | Floats
_TOLERANCE = 1e-6
_HALVINGS = 100


def clopper_pearson(events: Ints | Floats, trials: Ints | Floats, tail: float) -> tuple[Floats, Floats]:
    """Ends of exact intervals for binomial probabilities; [0, 1] without trials.

    C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits, Biometrika 26, 1934.

    >>> low, high = clopper_pearson(np.array([0]), np.array([10]), 0.05)
    >>> float(low[0]), round(float(high[0]), 4)
    (0.0, 0.2589)

    Args:
        events, trials: x of n, arrays that broadcast against each other; effective numbers need not be whole.
        tail: the probability that each end may be missed with, above 0 and below 1/2.

    Raises:
        ValueError: not 0 <= events <= trials.
    """
    if np.any((events < 0) | (events > trials)):
        raise ValueError("expected 0 <= events <= trials")
    return binomial_lower_end(events, trials, tail), 1 - binomial_lower_end(trials - events, trials, tail)


def binomial_lower_end(events: Ints | Floats, trials: Ints | Floats, tail: float) -> Floats:
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


FEW_UNITS = 10
"""Fewer drives, logs or images: what draws of them say is itself uncertain, and a note says so."""


def few_units_note(items: int, unit: str) -> str | None:
    """What is said of intervals by draws of so many drives, images or logs; None where they are not few."""
    return f"drawn from only {items} {unit}s: the intervals are themselves uncertain" if items < FEW_UNITS else None


def unseen(items: Items, confidence: float) -> float:
    """The share of all weight that n items would all miss with probability (1 - confidence) / 2; 1 for none.

    Clopper and Pearson 1934, for none of n. What is missed is as heavy as the heaviest item, or less.

    Args:
        items: n, or the weights of n items; those of weight 0 do not count.
    """
    sizes = np.ones(int(items)) if np.ndim(items) == 0 else np.asarray(items)[np.asarray(items) > 0]
    if not len(sizes):
        return 1.0
    share = 1 - ((1 - confidence) / 2) ** (1 / len(sizes))
    return float(share * sizes.max() / (share * sizes.max() + (1 - share) * sizes.mean()))


def reaching(
    ends: tuple[float, float],
    value: float,
    items: Items,
    range_: tuple[float, float] = (0.0, 1.0),
    confidence: float = 0.95,
) -> tuple[float, float] | None:
    """Percentile ends of draws of n items, as far from the value as so many items allow at least; None for NaN.

    Draws cannot show what no item shows: of twelve items that are all right, every draw is all right. What is the
    same in all of a share of things is moved by no more than that share, which may be all `unseen`.

    >>> low, high = reaching((1.0, 1.0), 1.0, 12)
    >>> round(low, 4), high
    (0.7354, 1.0)
    >>> round(reaching((1.0, 1.0), 1.0, np.array([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 100]))[0], 4)
    0.2045

    Args:
        ends: of the draws.
        value: of the items themselves: a mean over them of numbers in [0, 1], or a difference of two. Average
            precision and areas are no such means; there it is the reach of the recall, or safety, in them.
        items: n, or the weights of n items in the value; only those that could have changed it.
        range_: what the value can be.
        confidence: of the interval.
    """
    if np.isnan(ends).any():
        return None
    reach = unseen(items, confidence)
    return max(min(ends[0], value - reach), range_[0]), min(max(ends[1], value + reach), range_[1])


def reaching_ratio(
    ends: tuple[float, float], part: float, whole: float, items: Items, top: float = np.inf, confidence: float = 0.95
) -> tuple[float, float] | None:
    """As `reaching` for part / whole: a share that no item shows may have all of the one and nothing of the other.

    Args:
        part, whole: means over the items of numbers in [0, 1]; the whole is not 0.
        top: the most that the ratio can be.
    """
    if np.isnan(ends).any():
        return None
    share = unseen(items, confidence)
    seen = 1 - share
    high = (seen * part + share) / (seen * whole) if seen else np.inf
    return min(ends[0], seen * part / (seen * whole + share)), min(max(ends[1], float(high)), top)


def effective_number(weights: Ints | Floats) -> float:
    """As how many alike items of these weights count: (sum w)^2 / sum w^2 (Kish 1965); 0 for none."""
    squares = float((np.asarray(weights, np.float64) ** 2).sum())
    return float(np.sum(weights)) ** 2 / squares if squares else 0.0


def chance_ends(share: float, items: float, confidence: float) -> tuple[float, float]:
    """The interval of the chance that other data of this size come out as a `share` of the draws did.

    The share is itself drawn: of a difference d / s, with s its standard error, it is near Phi(d / s), and that of
    other data is Phi of its mean. So both ends are Phi(z -+ t), z of the share and t of Student's law with one item
    less. A share nearer to 0 or 1 than 2^-n is taken as that: n items all agree with so much luck, at least. What is
    nearer of the ends is 0 or 1.

    >>> [round(end, 3) for end in chance_ends(1.0, 5, 0.95)], [round(end, 3) for end in chance_ends(0.5, 100, 0.95)]
    ([0.18, 1.0], [0.024, 0.976])
    """
    from scipy.special import ndtr, ndtri, stdtrit

    if items <= 1:
        return 0.0, 1.0
    nearest = 0.5 ** min(items, 50)
    z, reach = ndtri(min(max(share, nearest), 1 - nearest)), stdtrit(items - 1, (1 + confidence) / 2)
    low, high = ndtr([z - reach, z + reach])
    return float(low) if low > nearest else 0.0, float(high) if high < 1 - nearest else 1.0


def percentile_ends(draws: Floats, confidence: float) -> tuple[float, float]:
    """The percentile interval of (B,) draws, those that are NaN left out; NaN where none is left."""
    known = draws[~np.isnan(draws)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
