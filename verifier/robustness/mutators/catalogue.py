"""Every mutator by name, with its parameters, what they mean and where it comes from.

"2018" is Pezzementi et al. 2018 (SSRR), "2021" Pezzementi et al. 2021 (Field Robotics), "2024" Wozniak et al. 2024;
the sources of weather and night stand in `weather`.

What a parameter may be is checked here alone, and what an image and its depth may be by `Frame`: the functions of the
mutators take both as they are given.
"""

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from verifier.perception.detections.distances import LARGEST_M
from verifier.robustness.mutators.defocus import defocus
from verifier.robustness.mutators.frames import LONGEST_SIDE, Frame
from verifier.robustness.mutators.geometric import (
    LARGEST_BLOCK_PX,
    LONGEST_PATH_PX,
    WIDEST_SIGMA_PX,
    chromatic_aberration,
    gaussian_blur,
    motion_blur,
    pixelation,
    rotate_frame,
    truncate_frame,
)
from verifier.robustness.mutators.photometric import (
    CHANNELS,
    HAZE_COLOUR,
    additive_noise,
    alpha_blend,
    brightness,
    channel_dropout,
    contrast,
    haze,
    jpeg,
    salt_and_pepper,
    scattering_per_m,
    shifted_lines,
)
from verifier.robustness.mutators.weather import night, rain, snow

MOST = sys.float_info.max
COLOURS = ("red", "green", "blue")
Plain: TypeAlias = int | float | str


@dataclass(frozen=True)
class Parameter:
    """A parameter of a mutator: a number in low..high, whole or not, or one of `choices`.

    With `above`, low itself is excluded. `default` is None where the parameter must be given, or, with `optional`,
    may be left out.
    """

    name: str
    meaning: str
    low: float = 0.0
    high: float = math.inf
    above: bool = False
    whole: bool = False
    choices: tuple[str, ...] = ()
    default: Plain | None = None
    optional: bool = False

    @property
    def expected(self) -> str:
        """What a value has to be, for messages and help."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        kind = "a whole number" if self.whole else "a number"
        if self.high == math.inf:
            return f"{kind} {'above' if self.above else 'from'} {self.low:g}" if self.low > -math.inf else kind
        return f"{kind} {'above' if self.above else 'from'} {self.low:g} to {self.high:g}"

    def checked(self, value: object) -> Plain:
        """The value as int, float or str.

        Raises:
            ValueError: it is not what is expected.
        """
        if self.choices:
            if isinstance(value, str) and value in self.choices:
                return value
        elif isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
            # Compared before it is converted: a whole number may have hundreds of digits.
            number = float(value) if -MOST <= value <= MOST else math.nan
            inside = self.low < number if self.above else self.low <= number
            if inside and number <= self.high and not (self.whole and number % 1):
                return int(number) if self.whole else number
        raise ValueError(f"{self.name}: expected {self.expected}, got {value!r}")


@dataclass(frozen=True)
class Mutator:
    """What one name stands for.

    Attributes:
        name: by which it is asked for.
        summary: one line for people, with the source.
        parameters: in their order.
        change: the pixels with, if it `needs_depth`, the depth behind them, its parameters by name (the three of a
            colour as one, `colour`) and, if it is `random`, the generator `rng`; the frame alone where it `moves`.
        needs_depth: whether the frame must have depth.
        random: whether it draws.
        moves: whether it moves what is seen, and with it depth and boxes.
        either: parameters of which exactly one is given.
    """

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    change: Callable[..., Any]
    needs_depth: bool = False
    random: bool = False
    moves: bool = False
    either: tuple[str, ...] = ()

    def changed(self, frame: Frame, parameters: Mapping[str, Plain], rng: np.random.Generator | None) -> Frame:
        """The frame after `change`; the generator is used only if it is `random`."""
        given: dict[str, object] = dict(parameters)
        if self.moves:
            moved: Frame = self.change(frame, **given)
            return moved
        if COLOURS[0] in given:
            given["colour"] = [given.pop(name) for name in COLOURS]
        if self.random:
            given["rng"] = rng
        seen = (frame.pixels, frame.depth_m) if self.needs_depth else (frame.pixels,)
        return replace(frame, pixels=self.change(*seen, **given))


_COLOUR = tuple(
    Parameter(name, f"{name} of the haze, 0..255", high=255, whole=True, default=level)
    for name, level in zip(COLOURS, HAZE_COLOUR, strict=True)
)
_CAMERA = (
    Parameter("exposure_ms", "of the camera", above=True, high=1000, default=8.0),
    Parameter("focal_px", "of the camera; the image's width if left out", above=True, high=1e5, optional=True),
)
_SENSOR = (
    Parameter("full_well_e", "electrons of white", above=True, high=1e9, default=10_000.0),
    Parameter("read_sd_e", "noise of reading, electrons", high=1e6, default=3.0),
)
_SIGMA = Parameter("sigma_px", "standard deviation in pixels", high=WIDEST_SIGMA_PX)
_FACTOR = Parameter("factor", "1 changes nothing", high=1000)
_SHARE = Parameter("share", "of the pixels or lines, 0..1", high=1)

_ALL = (
    Mutator("gaussian_blur", "Gaussian blur (2018, 2021)", (_SIGMA,), gaussian_blur),
    Mutator("brightness", "every channel times a factor (2018)", (_FACTOR,), brightness),
    Mutator(
        "contrast",
        "distance from a grey level times a factor (2024)",
        (_FACTOR, Parameter("about", "level that stays; the image's mean if left out", high=255, optional=True)),
        contrast,
    ),
    Mutator(
        "alpha_blend",
        "blend with one colour, haze without depth (2018, 2021)",
        (Parameter("alpha", "weight of the colour", high=1), *_COLOUR),
        alpha_blend,
    ),
    Mutator("jpeg", "JPEG compression (2018)", (Parameter("quality", "1..95", low=1, high=95, whole=True),), jpeg),
    Mutator("salt_and_pepper", "pixels black or white (2018, 2024)", (_SHARE,), salt_and_pepper, random=True),
    Mutator(
        "channel_dropout",
        "a channel set to 0 (2018, 2021)",
        (Parameter("channel", "of RGB or of YCbCr", choices=CHANNELS),),
        channel_dropout,
    ),
    Mutator(
        "additive_noise",
        "additive signal-dependent Gaussian noise (2018)",
        (
            Parameter("constant_sd", "zeta_w, grey levels", high=1000),
            Parameter("signal_sd", "zeta_u, grey levels", high=1000),
            Parameter("exponent", "psi, of the signal", high=4),
        ),
        additive_noise,
        random=True,
    ),
    Mutator(
        "haze",
        "haze by depth (2018, 2021)",
        (
            Parameter("visibility_m", "u_V in metres", above=True, optional=True),
            Parameter("beta_per_m", "scattering coefficient, 3.912 / u_V", optional=True),
            *_COLOUR,
        ),
        lambda pixels, depth_m, colour, **given: haze(pixels, depth_m, scattering_per_m(**given), colour),
        needs_depth=True,
        either=("visibility_m", "beta_per_m"),
    ),
    Mutator(
        "defocus",
        "point spreads by depth (2018, 2021)",
        (
            Parameter("kappa_m_px", "camera constant f^2 / (N gamma), metres times pixels"),
            Parameter("focus_m", "distance in focus", high=LARGEST_M, above=True),
        ),
        defocus,
        needs_depth=True,
    ),
    Mutator(
        "motion_blur",
        "mean over a straight motion (2024)",
        (
            Parameter("length_px", "of the motion, pixels", high=LONGEST_PATH_PX),
            Parameter("angle_deg", "0 to the right, positive upwards", low=-math.inf, default=0.0),
        ),
        motion_blur,
    ),
    Mutator(
        "pixelation",
        "means of square blocks (2024)",
        (Parameter("block_px", "side of a block, pixels", low=1, high=LARGEST_BLOCK_PX, whole=True),),
        pixelation,
    ),
    Mutator(
        "rotation",
        "turned about the centre, boxes along (2024)",
        (Parameter("angle_deg", "counter-clockwise", low=-math.inf),),
        rotate_frame,
        moves=True,
    ),
    Mutator(
        "truncation",
        "shares of the image lost at its sides, boxes along (2024)",
        tuple(
            Parameter(side, "share of the width or height lost there, which becomes black", high=1, default=0.0)
            for side in ("left", "top", "right", "bottom")
        ),
        truncate_frame,
        moves=True,
    ),
    Mutator(
        "shifted_lines",
        "lines moved sideways (2024)",
        (_SHARE, Parameter("most_px", "largest step, pixels", low=1, high=LONGEST_SIDE, whole=True)),
        shifted_lines,
        random=True,
    ),
    Mutator(
        "chromatic_aberration",
        "red enlarged, blue reduced, both blurred (2024)",
        (
            Parameter("expansion", "of red over green, and of green over blue", high=1),
            Parameter("sigma_px", "blur of red and blue, pixels", high=WIDEST_SIGMA_PX, default=0.0),
        ),
        chromatic_aberration,
    ),
    Mutator(
        "rain",
        "veil and streaks of rain by depth (Halder et al. 2019; Garg and Nayar 2007)",
        (Parameter("rate_mm_h", "of the rain; 10 is heavy, 50 violent", high=1000), *_CAMERA, *_COLOUR),
        rain,
        needs_depth=True,
        random=True,
    ),
    Mutator(
        "snow",
        "veil and flakes of falling snow by depth (Koschmieder)",
        (
            Parameter("visibility_m", "metres; below 400 is heavy", above=True, high=1e5),
            Parameter("flake_mm", "diameter of a flake", above=True, high=100, default=4.0),
            *_CAMERA,
            *_COLOUR,
        ),
        snow,
        needs_depth=True,
        random=True,
    ),
    Mutator(
        "night",
        "less light, and the noise of a sensor (Foi et al. 2008)",
        (
            Parameter("light", "share of the light that is left", high=1),
            Parameter("gain", "of the sensor", high=1e6, default=1.0),
            *_SENSOR,
        ),
        night,
        random=True,
    ),
    Mutator(
        "low_light",
        "as bright by gain, with the noise of less light (Foi et al. 2008)",
        (Parameter("light", "share of the light that is left", above=True, high=1), *_SENSOR),
        lambda pixels, light, **given: night(pixels, light, 1 / light, **given),
        random=True,
    ),
)
MUTATORS: Mapping[str, Mutator] = MappingProxyType({mutator.name: mutator for mutator in _ALL})
"""All mutators by name."""
