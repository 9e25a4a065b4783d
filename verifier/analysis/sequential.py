"""Tests that are valid at every look: evidence against a share that is at least, or a rate that is at most, so much.

A mixture of likelihood ratios against the worst case that is claimed, over the alternatives on the wrong side of it,
is a nonnegative supermartingale that begins at 1 wherever the claim is true, so that it ever reaches 1/alpha with
probability alpha at most (J. Ville, Etude critique de la notion de collectif, 1939; H. Robbins, Statistical methods
related to the law of the iterated logarithm, Annals of Mathematical Statistics 41, 1970).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.special import betainc, betaln, gammaincc, gammaln, xlog1py, xlogy
from scipy.stats import poisson

A = 0.5
"""Of the Beta prior over shares, which is cut off at what is claimed."""
MOST_ITEMS = 20_000
MOST_STEPS = 400


def log_against_share(right: float, items: float, least: float) -> float:
    """Log of the evidence against a share of at least `least` (0 < least <= 1), so many of `items` being right."""
    wrong = items - right
    with np.errstate(divide="ignore"):
        cut = np.log(betainc(right + A, wrong + A, least)) - np.log(betainc(A, A, least))
    claimed = xlogy(right, least) + xlog1py(wrong, -least)
    # Infinite against a share of 1 where one is wrong.
    return float(betaln(right + A, wrong + A) - betaln(A, A) + cut - claimed)


def log_against_rate(events: float, hours: float, most: float) -> float:
    """Log of the evidence against a rate of at most `most` per hour: exponential prior of mean `most`, above it."""
    shape, scale = events + 1, hours + 1 / most
    with np.errstate(divide="ignore"):
        tail = np.log(gammaincc(shape, scale * most))
    mixed = gammaln(shape) - shape * math.log(scale) + tail + 1 + math.log(1 / most)
    return float(mixed - (xlogy(events, most) - hours * most))


@cache
def items_needed(least: float, true: float, alpha: float, power: float) -> int | None:
    """Items after which the test has found with probability `power` that the share is `true`, below `least`; None
    beyond `MOST_ITEMS`. Exact: the law of the number that is right, without what has stopped."""
    law, chance, limit, bar = np.ones(1), 0.0, -1, -math.log(alpha)
    for items in range(1, MOST_ITEMS + 1):
        law = np.append(law, 0.0) * (1 - true) + np.append(0.0, law) * true
        while limit < items and log_against_share(limit + 1, items, least) >= bar:
            limit += 1
        chance += float(law[: limit + 1].sum())
        law[: limit + 1] = 0.0
        if chance >= power:
            return items
    return None


@cache
def hours_needed(most: float, true: float, alpha: float, power: float) -> float | None:
    """Likewise hours for a rate `true` above `most`, looked at whenever one event is expected at `most`."""
    law, chance, bar, step = np.ones(1), 0.0, -math.log(alpha), 1 / most
    size = math.ceil(20 + 10 * true * step)
    more = poisson.pmf(np.arange(size), true * step)
    for steps in range(1, MOST_STEPS + 1):
        law = np.convolve(law, more)
        start = steps
        while start < len(law) and log_against_rate(start, steps * step, most) < bar:
            start += 1
        chance += float(law[start:].sum())
        law = law[:start]
        if chance >= power:
            return steps * step
    return None
