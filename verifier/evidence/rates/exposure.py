"""How often encounters come: a number, an interval, or a count over hours.

A count of k encounters in T hours is taken as Poisson with mean (rate * T): encounters come one by one, at a constant
rate, independently of each other. Its two-sided interval at level 1 - a is Garwood's (Fiducial limits for the Poisson
distribution, Biometrika 28, 1936), the exact one, which inverts the two tails at a / 2 each:

    lower = G^-1(a / 2; k) / T   (0 for k = 0),      upper = G^-1(1 - a / 2; k + 1) / T

with G(x; s) the distribution function of the gamma distribution of shape s. It holds the true rate in at least the
share 1 - a of repetitions, whatever the rate is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from scipy.special import gammainccinv, gammaincinv

LARGEST_COUNT = 10**9
SLACK = Fraction(1, 2**36)
"""Relative: what the ends of a counted interval are moved outwards, far more than their quantiles are off by."""


@dataclass(frozen=True)
class Exposure:
    """Encounters per hour; made by `stated`, `stated_interval` or `counted`.

    Attributes:
        rate: encounters per hour, the best estimate; None where only an interval is stated.
        lower, upper: ends of a stated interval; equal to the rate where a single number is stated, None for a count.
        level: how sure the stated interval is; None where its ends are said to hold for certain.
        encounters, hours: of a count.
        source: where it comes from; empty where that is not said.

    Raises:
        ValueError: a number out of range.
    """

    rate: Fraction | None
    lower: Fraction | None = None
    upper: Fraction | None = None
    level: Fraction | None = None
    encounters: int | None = None
    hours: Fraction | None = None
    source: str = ""

    def __post_init__(self) -> None:
        is_count = self.encounters is not None and self.hours is not None
        is_interval = self.lower is not None and self.upper is not None
        if is_count == is_interval or (self.encounters is None) != (self.hours is None):
            raise ValueError("an exposure is a number, an interval, or encounters over hours")
        if self.lower is not None and self.upper is not None and not 0 <= self.lower <= self.upper:
            raise ValueError("the ends of an exposure must be numbers from 0, the lower one not above the upper one")
        if self.hours is not None and not self.hours > 0:
            raise ValueError("encounters are counted over more than 0 hours")
        if self.encounters is not None and not 0 <= self.encounters <= LARGEST_COUNT:
            raise ValueError(f"expected a number of encounters from 0 to {LARGEST_COUNT}")
        if self.level is not None and (is_count or not 0 < self.level < 1):
            raise ValueError("the level of a stated interval lies between 0 and 1")

    @classmethod
    def stated(cls, per_hour: Fraction, source: str = "") -> Exposure:
        """So many encounters per hour, taken as true."""
        return cls(per_hour, per_hour, per_hour, source=source)

    @classmethod
    def stated_interval(
        cls, lower: Fraction, upper: Fraction, level: Fraction | None = None, source: str = ""
    ) -> Exposure:
        """Between so many and so many encounters per hour, for certain or with a level."""
        return cls(None, lower, upper, level, source=source)

    @classmethod
    def counted(cls, encounters: int, hours: Fraction, source: str = "") -> Exposure:
        """So many encounters counted in so many hours."""
        rate = Fraction(encounters) / hours if hours > 0 else None
        return cls(rate, encounters=encounters, hours=hours, source=source)

    @property
    def is_count(self) -> bool:
        """Whether its interval is made from a count, at whatever level is asked."""
        return self.encounters is not None

    def error(self, share: Fraction) -> Fraction:
        """How often its interval may miss the true rate, where a count is given the error `share`."""
        if self.is_count:
            return share
        return Fraction(0) if self.level is None else 1 - self.level

    def interval(self, share: Fraction) -> tuple[Fraction, Fraction]:
        """Lower and upper end, per hour, missing the true rate at most as often as `error(share)`.

        Raises:
            ValueError: a count, and `share` does not lie between 0 and 1.
        """
        if self.encounters is None or self.hours is None:
            assert self.lower is not None
            assert self.upper is not None
            return self.lower, self.upper
        lower, upper = garwood(self.encounters, share)
        return lower / self.hours, upper / self.hours

    def __str__(self) -> str:
        if self.encounters is not None and self.hours is not None:
            noun = "encounter" if self.encounters == 1 else "encounters"
            return f"{self.encounters} {noun} in {number(self.hours)} h"
        if self.lower == self.upper:
            return f"{number(self.lower)}/h, as stated"
        level = "for certain" if self.level is None else f"at level {number(self.level)}"
        return f"{number(self.lower)} to {number(self.upper)}/h, as stated, {level}"


def garwood(count: int, error: Fraction) -> tuple[Fraction, Fraction]:
    """Ends of the exact two-sided interval for the mean of a Poisson distribution of which `count` was drawn.

    Raises:
        ValueError: the error does not lie between 0 and 1.

    >>> tuple(round(float(end), 4) for end in garwood(0, Fraction(1, 20)))
    (0.0, 3.6889)
    """
    if not 0 < error < 1 or not 0 <= count <= LARGEST_COUNT:
        raise ValueError("expected a count and an error between 0 and 1")
    tail = float(error / 2)
    lower = Fraction(float(gammaincinv(count, tail))) * (1 - SLACK) if count else Fraction(0)
    return lower, Fraction(float(gammainccinv(count + 1, tail))) * (1 + SLACK)


def number(value: Fraction | None) -> str:
    """A number for people: short where it is exact in ten digits, else rounded to six."""
    if value is None:
        return "unknown"
    short = f"{float(value):.10g}"
    return short if Fraction(short) == value else f"{float(value):.6g}"


def float_below(value: Fraction) -> float:
    """The largest double that is not above `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def float_above(value: Fraction) -> float:
    """The smallest double that is not below `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
