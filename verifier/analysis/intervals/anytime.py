r"""Intervals of rates that hold at every look, however the data came about.

Assumed is one rate p per column: given all that went before, an item is in the event with probability p. Who stops
counting when, and which items come, may depend on the outcomes. A gambler who bets with Jeffreys' mixture of rates
against p has after S of n items in the event the capital

    M_n(p) = B(S + 1/2, n - S + 1/2) / B(1/2, 1/2) / (p^S (1 - p)^(n - S)),

a martingale with mean 1 at the true rate, so that Pr(M_n(p) >= 1/a at some n) <= a (Ville, Etude critique de la
notion de collectif, 1939; Robbins, Statistical methods related to the law of the iterated logarithm, Annals of
Mathematical Statistics 41, 1970). The interval is {p : M_n(p) < 1/a}. log M is convex in p with its minimum at S/n,
so that each end is found by bisection; it is rounded outwards.

What it needs is more than it seems: where objects differ, an item's rate depends on the outcomes before it, and the
interval is wrong for the mean rate as well (90 tracks of mean length 40 with rates from Beta(1/2, 2): 60 % instead of
95 %).
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from verifier.analysis.intervals.drive_items import UNIT
from verifier.base.arrays import Floats, Ints

_HALVINGS = 60
_OUTWARDS = 1 - 1e-9
"""Covers the rounding of logarithms, which is below 1e-13 of theirs."""


def anytime_ends(hits: Ints, items: Ints, alpha: float, times: float = 1.0) -> tuple[Ints, Ints]:
    """(c,) lower ends in billionths of c rates, and of the rates of their complements.

    Args:
        hits, items: (c,) S of n items.
        alpha: probability with which an interval may miss its rate at some look.
        times: as if all had been seen so many times; for planning.
    """
    seen: Floats = (hits * times).astype(np.float64)
    total: Floats = (items * times).astype(np.float64)
    return _lower(seen, total, alpha), _lower(total - seen, total, alpha)


def _lower(hits: Floats, items: Floats, alpha: float) -> Ints:
    """Lower ends in billionths; none where nothing is in the event."""
    wins = betaln(hits + 0.5, items - hits + 0.5) - betaln(0.5, 0.5) + np.log(alpha)
    low, high = np.zeros(len(hits)), np.divide(hits, items, out=np.zeros(len(hits)), where=items > 0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        ruled_out = wins >= xlogy(hits, middle) + xlog1py(items - hits, -middle)
        low, high = np.where(ruled_out, middle, low), np.where(ruled_out, high, middle)
    found: Ints = np.floor(np.where(hits > 0, low, 0) * UNIT * _OUTWARDS).astype(np.int64)
    return found
