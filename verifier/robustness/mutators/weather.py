"""Rain, snow, night and low light, from what physics says of them; none is in the lists of a paper.

These work on linear light: grey levels are decoded and encoded again by the curve of sRGB (IEC 61966-2-1).

Rain and snow are a veil, and the single drops and flakes before it. The veil is Koschmieder's law, as for haze:
L = J T + h (1 - T) with T = exp(-beta D). Of rain at R mm/h beta = 0.312 R^0.67 per km (Halder, Lalonde and de
Charette 2019, Physics-based rendering for improving robustness to rain, ICCV); of snow beta = 3.912 / visibility.
Each drop or flake nearer than `FAR_M` is a vertical streak through which, as it falls, the background is hidden for
the share tau / T of the exposure: L = (1 - tau / T) J + (tau / T) E (Garg and Nayar 2007, Vision and rain, IJCV 75).
So the cover of a streak sums up to the area of its drop, whatever the exposure. Sizes of drops follow Marshall and
Palmer (1948), N(D) = 8000 exp(-4.1 R^-0.21 D) per m^3 and mm; they fall with 200 sqrt(D / 2) m/s, D in metres (Garg
and Nayar), and bring 94 % of the light around them, for which the colour of the air stands. Flakes have one size and
fall with 1 m/s; there are as many as give the visibility, where each takes away twice its cross-section (van de
Hulst 1957). Wind, the motion of the camera, and drops and snow on lens and ground are left out.

Night and low light are a sensor that is given less light: electrons are drawn from a Poisson distribution, reading
adds Gaussian noise, and a gain follows (Foi et al. 2008, Practical Poissonian-Gaussian noise modeling, IEEE TIP 17).
No lamps are added.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats
from verifier.base.errors import LimitError
from verifier.base.numbers import significant
from verifier.robustness.mutators.frames import Metres, Pixels, by_strips
from verifier.robustness.mutators.photometric import HAZE_COLOUR, extinction_per_m

NEAR_M, FAR_M = 0.5, 10.0
"""Between these distances drops and flakes are drawn one by one; beyond they are part of the veil alone."""
SMALLEST_DROP_MM = 1.0
"""Diameter; smaller drops are part of the veil alone."""
DROP_LIGHT = 0.94
FLAKE_SPEED_MPS = 1.0
MOST_PARTICLES = 5_000_000
AT_ONCE = 1_000_000
"""Pixels of streaks drawn at a time."""


def linear(levels: NDArray[np.uint8] | Floats) -> Floats:
    """Light in 0..1 of levels 0..255, by the curve of sRGB."""
    share = np.asarray(levels, np.float64) / 255
    return np.asarray(np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4))


def levels_of(light: Floats) -> Pixels:
    """The nearest levels 0..255 of linear light; what is outside 0..1 is cut off."""
    cut = np.clip(light, 0, 1)
    share = np.where(cut <= 0.0031308, 12.92 * cut, 1.055 * cut ** (1 / 2.4) - 0.055)
    return np.asarray(np.rint(255 * share).astype(np.uint8))


LIGHT = linear(np.arange(256.0))
"""(256,) of each level."""


def rain_extinction_per_m(rate_mm_h: float) -> float:
    """beta = 0.312 R^0.67 per km (Halder et al. 2019).

    >>> round(1000 * rain_extinction_per_m(25), 3)
    2.696
    """
    return float(0.312e-3 * rate_mm_h**0.67)


@dataclass(frozen=True, eq=False)
class Particles:
    """Drops or flakes in the air: (n,) distance, diameter and speed, and the place of each in the image in pixels."""

    distance_m: Floats
    diameter_m: Floats
    speed_mps: Floats
    x: Floats
    y: Floats


def rain(
    pixels: Pixels,
    depth_m: Metres,
    rate_mm_h: float,
    exposure_ms: float,
    rng: np.random.Generator,
    focal_px: float | None = None,
    colour: Sequence[int] = HAZE_COLOUR,
) -> Pixels:
    """Rain of `rate_mm_h` as a camera of this focal length (None: the image's width) and exposure sees it.

    Raises:
        LimitError: more than `MOST_PARTICLES` drops.
    """
    if rate_mm_h == 0:
        return pixels.copy()
    slope = 4.1 * rate_mm_h**-0.21  # per mm
    per_m3 = 8000 / slope * math.exp(-slope * SMALLEST_DROP_MM)
    fastest = 200 * math.sqrt((SMALLEST_DROP_MM + 8 / slope) / 2000)
    air = _Air.of(pixels, focal_px, exposure_ms)
    count, (distance_m, x, y) = air.places(per_m3, fastest, rng)
    diameter_m = (SMALLEST_DROP_MM + rng.exponential(1 / slope, count)) / 1000
    drops = Particles(distance_m, diameter_m, 200 * np.sqrt(diameter_m / 2), x, y)
    return _seen(pixels, depth_m, rain_extinction_per_m(rate_mm_h), air, drops, colour, DROP_LIGHT)


def snow(
    pixels: Pixels,
    depth_m: Metres,
    visibility_m: float,
    flake_mm: float,
    exposure_ms: float,
    rng: np.random.Generator,
    focal_px: float | None = None,
    colour: Sequence[int] = HAZE_COLOUR,
) -> Pixels:
    """Falling snow in which one sees as far as `visibility_m`, of flakes with this diameter; else as `rain`.

    Raises:
        LimitError: more than `MOST_PARTICLES` flakes.
    """
    beta = extinction_per_m(visibility_m)
    air = _Air.of(pixels, focal_px, exposure_ms)
    per_m3 = beta / (2 * math.pi / 4 * (flake_mm / 1000) ** 2)
    count, (distance_m, x, y) = air.places(per_m3, FLAKE_SPEED_MPS, rng)
    flakes = Particles(distance_m, np.full(count, flake_mm / 1000), np.full(count, FLAKE_SPEED_MPS), x, y)
    return _seen(pixels, depth_m, beta, air, flakes, colour, 1.0)


@dataclass(frozen=True)
class _Air:
    """What a camera sees of the air before it: (height, width) and focal length in pixels, seconds of exposure."""

    size: tuple[int, ...]
    focal_px: float
    exposure_s: float

    @classmethod
    def of(cls, pixels: Pixels, focal_px: float | None, exposure_ms: float) -> "_Air":
        """Of an image."""
        return cls(pixels.shape[:2], pixels.shape[1] if focal_px is None else focal_px, exposure_ms / 1000)

    def places(
        self, per_m3: float, fastest_mps: float, rng: np.random.Generator
    ) -> tuple[int, tuple[Floats, Floats, Floats]]:
        """How many there are, and distance, column and row of each; also beside the image, where streaks reach in."""
        margin = self.focal_px * fastest_mps * self.exposure_s / NEAR_M / 2 + 1
        height, width = (side + 2 * margin for side in self.size)
        mean = per_m3 * width * height / self.focal_px**2 * (FAR_M**3 - NEAR_M**3) / 3
        if not mean <= MOST_PARTICLES:
            raise LimitError(
                f"about {significant(mean)} drops or flakes before the camera; at most {MOST_PARTICLES} are drawn"
            )
        count = int(rng.poisson(mean))
        cubes = rng.uniform(NEAR_M**3, FAR_M**3, count)
        x, y = rng.uniform(-margin, width - margin, count), rng.uniform(-margin, height - margin, count)
        return count, (np.cbrt(cubes), x, y)


def hidden(
    size: tuple[int, ...], focal_px: float, exposure_s: float, particles: Particles, depth_m: Metres | None = None
) -> Floats:
    """(H, W) the sum of log(1 - share) over the streaks before a pixel, whose share of time and area each covers.

    A streak is w = f D / z wide and w + f v t / z long; its cover, the same all over it, sums up to that of the drop,
    pi w^2 / 4 pixels. Behind what is nearer than it, by `depth_m`, it is not seen.
    """
    height, width = size
    total = np.zeros(height * width)
    reach = None if depth_m is None else depth_m.ravel()
    scale = focal_px / particles.distance_m
    wide = scale * particles.diameter_m
    long = wide + scale * particles.speed_mps * exposure_s
    left, top = particles.x - wide / 2, particles.y - long / 2
    first, last = (
        tuple(np.clip(edge(at), 0, side).astype(np.int64) for at, side in ends)
        for edge, ends in (
            (np.floor, ((left, width), (top, height))),
            (np.ceil, ((left + wide, width), (top + long, height))),
        )
    )
    columns, rows = last[0] - first[0], last[1] - first[1]
    pixels = columns * rows
    start = np.cumsum(pixels) - pixels  # of each streak, among the pixels of all
    cuts = np.flatnonzero(np.diff(start // AT_ONCE)) + 1
    for low, high in pairwise((0, *cuts.tolist(), len(start))) if len(start) else ():
        which = np.repeat(np.arange(low, high), pixels[low:high])
        place = np.arange(len(which)) - (start[which] - start[low])
        column = first[0][which] + place % columns[which]
        row = first[1][which] + place // columns[which]
        across = np.minimum(column + 1, (left + wide)[which]) - np.maximum(column, left[which])
        down = np.minimum(row + 1, (top + long)[which]) - np.maximum(row, top[which])
        share = np.clip(across, 0, 1) * np.clip(down, 0, 1) * (math.pi * wide / (4 * long))[which]
        pixel = row * width + column
        if reach is not None:
            share = np.where(particles.distance_m[which] < reach[pixel], share, 0)
        total += np.bincount(pixel, np.log1p(-share), len(total))
    return total.reshape(height, width)


def _seen(
    pixels: Pixels,
    depth: Metres,
    beta_per_m: float,
    air: _Air,
    particles: Particles,
    colour: Sequence[int],
    brightness: float,
) -> Pixels:
    """The image behind a veil and the single particles before it, which bring `brightness` times the air's light."""
    through = hidden(air.size, air.focal_px, air.exposure_s, particles, depth)
    light = linear(np.array(colour, np.uint8))

    def strip(part: Pixels, rows: slice) -> Pixels:
        veil = np.exp(-beta_per_m * depth[rows])[..., np.newaxis]
        free = np.exp(through[rows])[..., np.newaxis]
        seen = LIGHT[part] * veil + light * (1 - veil)
        return levels_of(seen * free + brightness * light * (1 - free))

    return by_strips(pixels, strip)


def night(
    pixels: Pixels, light: float, gain: float, full_well_e: float, read_sd_e: float, rng: np.random.Generator
) -> Pixels:
    """The scene in the share `light` of its light, as a sensor sees it that is white at `full_well_e` electrons.

    Of a pixel and channel of linear light x it collects Poisson(light x full_well_e) electrons, adds noise of
    `read_sd_e` electrons in reading, and multiplies by `gain`; white is cut off.
    """

    def strip(part: Pixels, _: slice) -> Pixels:
        electrons = rng.poisson(light * full_well_e * LIGHT[part]) + rng.normal(0, read_sd_e, part.shape)
        return levels_of(gain * electrons / full_well_e)

    return by_strips(pixels, strip)
