"""How many encounters, or hours, of testing would show an acceptance criterion without any model.

If every encounter ends in an event with probability p or more, independently of the others, then n encounters show at
most k events with at most the probability Pr(Bin(n, p) <= k). Where that is at most a, seeing k events or fewer in n
encounters shows "less than p" at the confidence 1 - a (the upper limit of Clopper and Pearson, Biometrika 26, 1934,
solved for n). Without any event that is

    n >= ln(a) / ln(1 - p),

which is about 3 / p for a = 0.05: the rule of three. For a rate r per hour and events that come as a Poisson process,
T hours do if Pr(Poisson(r T) <= k) <= a; without any event T >= -ln(a) / r. ISO 21448:2022, Annex C (informative)
derives the length of a validation from an acceptance criterion in this way.

Tails are computed with `DIGITS` decimal digits, so that a whole number is not missed by a rounding error.
"""

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

from scipy.special import gammainccinv

from verifier.base.errors import LimitError
from verifier.base.numbers import significant

DIGITS = 60
MOST_EVENTS = 1000
"""Events that may be allowed."""
LEAST_PROBABILITY = Fraction(1, 10**20)
LEAST_CONFIDENCE = Fraction(1, 10**6)
CLOSE = Decimal("1e-45")
MOST_EXACT = 2000
"""Encounters up to which a tail that is as `CLOSE` to its bound is compared as a fraction: it may be equal to it."""


def encounters_needed(probability: Fraction, confidence: Fraction, allowed: int = 0) -> int:
    """The least n with Pr(Bin(n, p) <= allowed) <= 1 - confidence.

    Args:
        probability: p, of an event in one encounter, to be shown not to be reached; from 1 on there is nothing to
            show, which takes 0 encounters.
        confidence: from `LEAST_CONFIDENCE` to below 1.
        allowed: how many events may be seen.

    Raises:
        LimitError: more than `MOST_EVENTS` events, or a probability below `LEAST_PROBABILITY`.
        ValueError: a number out of range.

    >>> encounters_needed(Fraction(1, 100), Fraction(95, 100))
    299
    """
    _check(probability, confidence, allowed)
    if probability >= 1:
        return 0
    with localcontext(_context()):
        p, error = _decimal(probability), _decimal(1 - confidence)

        def shows(count: int) -> bool:
            if count <= allowed:
                return False
            tail = _binomial_at_most(count, p, allowed)
            if count <= MOST_EXACT and abs(tail - error) <= error * CLOSE:
                return _exact_tail(count, probability, allowed) <= 1 - confidence
            return tail <= error

        return _least(shows, int(Fraction(float(gammainccinv(allowed + 1, float(1 - confidence)))) / probability))


def hours_needed(rate: Fraction, confidence: Fraction, allowed: int = 0) -> Fraction:
    """The least T with Pr(Poisson(rate * T) <= allowed) <= 1 - confidence, or up to one part in 10^12 more.

    Args:
        rate: events per hour, above 0.
        confidence, allowed: as `encounters_needed`.

    Raises:
        LimitError, ValueError: as `encounters_needed`.
    """
    _check(rate, confidence, allowed)
    with localcontext(_context()):
        error = _decimal(1 - confidence)
        mean = Decimal(float(gammainccinv(allowed + 1, float(1 - confidence))))
        step = Decimal(2) ** -48
        while _poisson_at_most(mean, allowed) > error:  # the quantile is right up to a few units in its last place
            mean *= 1 + step
            step *= 2
        return Fraction(mean) / rate


def _check(least: Fraction, confidence: Fraction, allowed: int) -> None:
    if not LEAST_CONFIDENCE <= confidence < 1 or allowed < 0 or not least > 0:
        raise ValueError("expected a probability above 0, a confidence below 1 and a number of events from 0")
    if allowed > MOST_EVENTS:
        raise LimitError(f"{allowed} events; at most {MOST_EVENTS} can be allowed")
    if least < LEAST_PROBABILITY:
        raise LimitError(
            f"an event of {significant(float(least))} cannot be shown; at least {float(LEAST_PROBABILITY):g}"
        )


def _least(holds: Callable[[int], bool], guess: int) -> int:
    """The least whole number from 1 at which a condition holds that then holds for good."""
    above = max(guess, 1)
    while not holds(above):
        above *= 2
    below = above // 2 if above > 1 else 0
    while below and holds(below):
        above, below = below, below // 2
    while above - below > 1:
        middle = (above + below) // 2
        if holds(middle):
            above = middle
        else:
            below = middle
    return above


def _binomial_at_most(count: int, probability: Decimal, most: int) -> Decimal:
    """Pr(Bin(count, probability) <= most) for most < count."""
    odds = probability / (1 - probability)
    term = total = (count * (1 - probability).ln()).exp()
    for found in range(most):
        term = term * (count - found) * odds / (found + 1)
        total += term
    return total


def _exact_tail(count: int, probability: Fraction, most: int) -> Fraction:
    """The same as a fraction."""
    numerator, denominator = probability.numerator, probability.denominator
    other = denominator - numerator
    terms = (math.comb(count, k) * numerator**k * other ** (count - k) for k in range(most + 1))
    return Fraction(sum(terms), denominator**count)


def _poisson_at_most(mean: Decimal, most: int) -> Decimal:
    """Pr(Poisson(mean) <= most)."""
    term = total = (-mean).exp()
    for found in range(most):
        term = term * mean / (found + 1)
        total += term
    return total


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _context() -> Context:
    return Context(prec=DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX)
