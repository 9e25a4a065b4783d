"""The probability of collision lambda(y, v) on a grid of reported distances y and speeds v.

    lambda(y, v) = P(D_min <= S(v) | D^_min = y),        S(v) = v^2 / (2 a) + t v

where S(v) is how far the vehicle travels until it stands: reaction, then constant deceleration. An object at distance
d is hit iff d < S(v). D_min is the true and D^_min the reported distance of the nearest object of an image (Xu,
Blanchet, Gerardo-Castro and Paudel, WSC 2021, eq. (1) and Sec. 3.2).

The estimator takes all pairs of all images, so it assumes that pairs are drawn independently of each other and of how
many there are in an image. It is consistent as the number of pairs grows; how far it is off at a given number is what
`resampling` and `intervals` are for.

Not to be confused with the chance that *the object reported at y* is nearer than S(v): another object of the image,
reported further away, may be nearer in truth, and counts here.

How much memory an estimate needs, and refusing what needs too much.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from verifier.base.arrays import Floats, Ints, freeze
from verifier.base.errors import LimitError, UsageError, check_known
from verifier.base.numbers import memory_text
from verifier.collision.kernel import (
    BLOCK_BYTES,
    CONSTANTS,
    NORMAL_REFERENCE,
    Reason,
    Samples,
    WidthRule,
    cross_validated_constant,
    estimate,
    rows_per_block,
    samples_of,
)
from verifier.collision.pairs import Pairs
from verifier.collision.settings import Bandwidth

SPEED_UNITS: Mapping[str, Fraction] = MappingProxyType(
    {"m/s": Fraction(1), "km/h": Fraction(5, 18), "mph": Fraction(44704, 100000), "kn": Fraction(1852, 3600)}
)
"""Metres per second in one unit of speed, exact: a mile has 1609.344 m, a nautical mile 1852 m."""


def speed_mps(value: float, unit: str) -> float:
    """A speed in metres per second.

    >>> speed_mps(25, "mph")
    11.176

    Raises:
        UsageError: an unknown unit; a speed that is negative or not finite.
    """
    check_known("unit of speed", unit, SPEED_UNITS)
    if not math.isfinite(value) or value < 0:
        raise UsageError(f"a speed must be finite and at least 0, got {value:g} {unit}")
    return float(Fraction(value) * SPEED_UNITS[unit])


@dataclass(frozen=True)
class BrakingPolicy:
    """Drive on for `reaction_s`, then brake with the constant `deceleration_mps2`.

    Raises:
        UsageError: the deceleration is not positive, the reaction time negative, or one of them not finite.
    """

    deceleration_mps2: float
    reaction_s: float = 0.1

    def __post_init__(self) -> None:
        if not math.isfinite(self.deceleration_mps2) or self.deceleration_mps2 <= 0:
            raise UsageError(
                f"the deceleration must be positive, got {self.deceleration_mps2:g} m/s^2: speed falls by it"
            )
        if not math.isfinite(self.reaction_s) or self.reaction_s < 0:
            raise UsageError(f"the reaction time must be at least 0, got {self.reaction_s:g} s")

    def stopping_distance_m(self, speed_mps: ArrayLike) -> Floats:
        """S(v) of each speed, in the shape of `speed_mps`.

        >>> BrakingPolicy(6.86, 0.1).stopping_distance_m([0, 11.176]).round(3).tolist()
        [0.0, 10.221]

        Raises:
            UsageError: a distance is too large for a number.
            ValueError: a speed is negative or NaN.
        """
        speed = np.asarray(speed_mps, dtype=np.float64)
        if not np.all(speed >= 0):
            raise ValueError("speeds must be at least 0")
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            distance = np.asarray(speed * speed / (2 * self.deceleration_mps2) + self.reaction_s * speed)
        lost = ~np.isfinite(distance)
        if lost.any():
            raise UsageError(
                f"the stopping distance from {speed[lost].min():g} m/s is too large for a number: deceleration "
                f"{self.deceleration_mps2:g} m/s^2, reaction time {self.reaction_s:g} s"
            )
        return distance


MEMORY_LIMIT = 2**30
"""Bytes; what is predicted to need more is refused."""


def predicted_bytes(pair_count: int, shape: tuple[int, int], samples: int = 1) -> int:
    """Most bytes that the estimates of `samples` subsamples, `pair_count` pairs in all, need at a time, from above.

    Args:
        pair_count: of the data or of all subsamples together, whichever is more.
        shape: (Y, V) of the grid.
        samples: number of subsamples.
    """
    distances, speeds = shape
    return 8 * (16 * pair_count + 8 * distances * speeds + 8 * samples * speeds) + 5 * BLOCK_BYTES


def check_memory(needed: int) -> None:
    """Refuse what is predicted to need more than `MEMORY_LIMIT` bytes.

    Raises:
        LimitError: naming both numbers.
    """
    if needed > MEMORY_LIMIT:
        raise LimitError(
            f"this would need about {memory_text(needed)}; the limit is {memory_text(MEMORY_LIMIT)}",
            hint="take fewer distances, speeds, pairs or resamples",
        )


@dataclass(frozen=True, eq=False)
class Grid:
    """Reported distances y and speeds v, both rising.

    Attributes:
        distances_m: (Y,) finite, at least 0.
        speeds_mps: (V,) finite, at least 0.

    Raises:
        UsageError: empty, not rising, negative or not finite.
    """

    distances_m: Floats
    speeds_mps: Floats

    def __post_init__(self) -> None:
        freeze(self, {"distances_m": np.float64, "speeds_mps": np.float64})
        for values, what in ((self.distances_m, "distances"), (self.speeds_mps, "speeds")):
            if values.ndim != 1 or not len(values):
                raise UsageError(f"expected a list of {what}")
            if not np.all(np.isfinite(values) & (values >= 0)):
                raise UsageError(f"{what} must be finite and at least 0")
            if np.any(np.diff(values) <= 0):
                raise UsageError(f"{what} must be rising")

    @property
    def shape(self) -> tuple[int, int]:
        """(Y, V)."""
        return len(self.distances_m), len(self.speeds_mps)


@dataclass(frozen=True)
class EstimatorSettings:
    """How the kernel width is chosen, and where the estimate is taken to be defined.

    The default is the cross-validated width. With 3768 images its root-mean-square error was smaller than the normal
    reference rule's by a factor of 1.3 in a world of 60 % errors, 2.4 at 30 %, 4 at 12 % and 6 at 5 %, and
    subsampling intervals cover only with it.

    Attributes:
        bandwidth: "normal_reference": `constant` min(sd, IQR/1.349) n^(-1/5). "cross_validated": the same with the
            constant that forecasts best (`cross_validated_constant`). "fixed": `width_m`; subsamples of b
            pairs then take width_m (n/b)^(1/5).
        constant: c of the normal reference rule.
        width_m: the fixed width in metres.
        two_bandwidths: the density of the pairs with D > S(v) gets a width of its own by the same rule. That is
            eq. (1) read literally; the estimate may then leave [0, 1].
        reach: in kernel widths. lambda is defined at y where the kernel has at least the mass of one pair `reach`
            widths away; infinite: wherever double precision can tell.

    Raises:
        UsageError: numbers that are not positive, or a fixed width beside two bandwidths.
    """

    bandwidth: Bandwidth = "cross_validated"
    constant: float = NORMAL_REFERENCE
    width_m: float | None = None
    two_bandwidths: bool = False
    reach: float = 3.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.constant) or self.constant <= 0:
            raise UsageError(f"the constant of the kernel width must be positive, got {self.constant:g}")
        if self.width_m is not None and (not math.isfinite(self.width_m) or self.width_m <= 0):
            raise UsageError(f"the kernel width must be positive, got {self.width_m:g} m")
        if self.two_bandwidths and self.bandwidth == "fixed":
            raise UsageError("a fixed kernel width is one width: it does not go with two bandwidths")


DEFAULT = EstimatorSettings()
"""One cross-validated width."""


OVERSMOOTHING = 1.25
"""A kernel wider than this times the cross-validated one blurs: the step of the constants tried is 2^(1/4) = 1.19."""


@dataclass(frozen=True, eq=False)
class CollisionMap:
    """lambda on a grid.

    Attributes:
        grid: distances (Y,) and speeds (V,).
        policy, settings: what it was computed with.
        stopping_m: (V,) S(v).
        probability: (Y, V); NaN where it is not defined. In [0, 1] with one bandwidth.
        reason: (Y, V) codes of `kernel.Reason`; 0 where it is defined.
        width_m: kernel width h; NaN or 0 where the pairs have no spread.
        cross_validated_m: the width that forecasts best, whatever `width_m` is; NaN where there is none.
        rule: the rule that gave `width_m`, for samples of other sizes.
    """

    grid: Grid
    policy: BrakingPolicy
    settings: EstimatorSettings
    stopping_m: Floats
    probability: Floats
    reason: NDArray[np.uint8]
    width_m: float
    cross_validated_m: float
    rule: WidthRule
    pair_count: int
    image_count: int
    title: str = ""

    def sample(self, pairs: Pairs, drawn: Ints | None = None) -> Samples:
        """Its pairs as one sample, or those of (B, n) indices as B samples, -1 for none; with its thresholds and its
        width rule."""
        at = np.arange(len(pairs))[None, :] if drawn is None else drawn
        true, predicted = (np.where(at >= 0, array[at], -np.inf) for array in (pairs.true_m, pairs.predicted_m))
        two = self.settings.two_bandwidths
        return samples_of(true, predicted, pairs.count_distribution, self.stopping_m, self.rule, two)

    @property
    def clipped(self) -> Floats:
        """(Y, V) the probabilities cut to [0, 1], for drawing; they differ only with two bandwidths."""
        return np.clip(self.probability, 0.0, 1.0)

    @property
    def oversmooths(self) -> bool:
        """The kernel is so wide beside the one that forecasts best that its blur is taken for collisions."""
        return self.width_m > OVERSMOOTHING * self.cross_validated_m

    @property
    def narrowest(self) -> bool:
        """The kernel is the narrowest that cross-validation tries, so the best may be narrower still, or there is
        none: near copies among the pairs (frames of one drive) forecast each other at any width."""
        return self.settings.bandwidth == "cross_validated" and self.rule.constant <= CONSTANTS[0]


def collision_map(
    pairs: Pairs, grid: Grid, policy: BrakingPolicy, settings: EstimatorSettings = DEFAULT
) -> CollisionMap:
    """Estimate lambda on the grid by equation (1).

    A pair with D = S(v) counts as a collision, as in eq. (1), where only D > S(v) is counted as none.

    Raises:
        LimitError: it would need more memory than the limit.
    """
    check_memory(predicted_bytes(len(pairs), grid.shape))
    best = WidthRule(cross_validated_constant(pairs))
    if settings.bandwidth == "fixed":
        assert settings.width_m is not None
        rule = WidthRule.fixed(settings.width_m, len(pairs))
    else:
        rule = best if settings.bandwidth == "cross_validated" else WidthRule(settings.constant)
    blank = CollisionMap(
        grid=grid,
        policy=policy,
        settings=settings,
        stopping_m=policy.stopping_distance_m(grid.speeds_mps),
        probability=np.full(grid.shape, np.nan),
        reason=np.full(grid.shape, np.uint8(Reason.NO_PAIRS)),
        width_m=_width_m(rule, pairs),
        cross_validated_m=_width_m(best, pairs),
        rule=rule,
        pair_count=len(pairs),
        image_count=pairs.image_count,
        title=pairs.title,
    )
    return filled(blank, pairs)


def filled(of: CollisionMap, pairs: Pairs, oracle: bool = False) -> CollisionMap:
    """The map with the estimates of its pairs, or of their oracle, a block of distances after the other; as it is
    without pairs."""
    if not len(pairs):
        return of
    grid, sample = of.grid, of.sample(pairs)
    sample = sample.as_oracle() if oracle else sample
    probability, reason = np.empty(grid.shape), np.empty(grid.shape, dtype=np.uint8)
    step = rows_per_block(1, sample.true_m.shape[1], grid.shape[1])
    for start in range(0, grid.shape[0], step):
        block = slice(start, start + step)
        arrays = estimate(sample, grid.distances_m[block], of.settings.reach)
        probability[block], reason[block] = (array[0] for array in arrays)
    return replace(of, probability=probability, reason=reason)


def with_common_width(
    detectors: Sequence[Pairs], grid: Grid, policy: BrakingPolicy, settings: EstimatorSettings
) -> list[CollisionMap]:
    """A map of each detector, all with the narrowest of their kernel widths.

    A wide kernel blurs lambda and lambda* alike and so hides the difference between them: with widths of their own, a
    detector with large errors, and therefore a wide kernel, would look close to its oracle. With two bandwidths each
    detector keeps its own.
    """
    maps = [collision_map(detector, grid, policy, settings) for detector in detectors]
    widths = [collision_map.width_m for collision_map in maps if collision_map.width_m > 0]
    if settings.two_bandwidths or not widths or all(collision_map.width_m == min(widths) for collision_map in maps):
        return maps
    width = min(widths)
    common = replace(settings, bandwidth="fixed", width_m=width)
    collision_maps = []
    for pairs, estimated in zip(detectors, maps, strict=True):
        blank = replace(estimated, settings=common, rule=WidthRule.fixed(width, len(pairs)), width_m=width)
        collision_maps.append(filled(blank, pairs))
    return collision_maps


def _width_m(rule: WidthRule, pairs: Pairs) -> float:
    return float(rule.widths_m(pairs.predicted_m[None, :], np.array([len(pairs)]))[0]) if len(pairs) else math.nan
