"""What the arguments of `verify collision` mean: grids, units, detectors, settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np

from verifier.base.errors import UsageError, shown
from verifier.checking.settings import EngineSettings
from verifier.collision.approach import DriveSettings
from verifier.collision.bandwidth import NORMAL_REFERENCE
from verifier.collision.distance_channel import ChannelSettings
from verifier.collision.estimator import EstimatorSettings, Grid
from verifier.collision.settings import CollisionSettings
from verifier.collision.stopping import SPEED_UNITS, BrakingPolicy, speed_mps
from verifier.collision.study import LoopSettings

USUAL_SHOWN_MPH = (25, 40)
MOST_POINTS = 1_000_000


def grid(arguments: CollisionSettings) -> tuple[Grid, str]:
    """The grid that the arguments name, and the unit of its speeds."""
    distances = _values(arguments.distances, "--distances")
    speeds, unit = speeds_of(arguments.speeds, "--speeds")
    if len(distances) * len(speeds) > MOST_POINTS:
        raise UsageError(
            f"a grid of {len(distances)} distances and {len(speeds)} speeds; at most {MOST_POINTS} points"
        )
    return Grid(np.array(distances, dtype=np.float64), np.array(speeds)), unit


def shown_speeds(arguments: CollisionSettings, on: Grid) -> tuple[float, ...]:
    """The speeds of the grid at which intervals are shown: those asked for, or usual ones."""
    known = on.speeds_mps.tolist()
    if arguments.at is not None:
        asked, _ = speeds_of(arguments.at, "--at")
        missing = [speed for speed in asked if speed not in known]
        if missing:
            raise UsageError(
                f"--at: {missing[0]:g} m/s is not a speed of the grid, --speeds {shown(arguments.speeds)}"
            )
        return tuple(asked)
    usual = [speed for speed in (speed_mps(each, "mph") for each in USUAL_SHOWN_MPH) if speed in known]
    return tuple(usual) or tuple(dict.fromkeys((known[len(known) // 3], known[2 * len(known) // 3])))


def speeds_of(text: str, option: str) -> tuple[list[float], str]:
    """Speeds in metres per second from `5..75:5 mph`, and the unit."""
    words = text.rsplit(maxsplit=1)
    if len(words) != 2 or words[1] not in SPEED_UNITS or re.search("[a-z]", words[0]):
        raise UsageError(f"{option}: expected a range and one unit of {', '.join(SPEED_UNITS)}, got {shown(text)}")
    return [speed_mps(each, words[1]) for each in _values(words[0], option)], words[1]


def _values(text: str, option: str) -> list[float]:
    """The numbers of `LOW..HIGH`, `LOW..HIGH:STEP` or a list, exact decimals; rising."""
    span = re.fullmatch(r"([^.,:]*(?:\.\d[^.,:]*)?)\.\.([^,:]+?)(?::([^,:]+))?", text.replace(" ", ""))
    parts = [span[1], span[2], span[3] or "1"] if span else text.split(",")
    numbers = [_decimal(part) for part in parts]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        raise UsageError(f"{option}: expected LOW..HIGH, LOW..HIGH:STEP or numbers by commas, got {shown(text)}")
    if span:
        low, high, step = known
        if step <= 0 or high < low or (high - low) % step != 0:
            raise UsageError(f"{option}: {shown(text)} does not go from low to high in whole steps")
        if (high - low) / step >= MOST_POINTS:
            raise UsageError(f"{option}: {shown(text)} has more than {MOST_POINTS} values")
        known = [low + k * step for k in range(int((high - low) / step) + 1)]
    if any(b <= a for a, b in pairwise(known)):
        raise UsageError(f"{option}: expected rising numbers, got {shown(text)}")
    return [float(each) for each in known]


def _decimal(text: str) -> Fraction | None:
    return Fraction(text.strip()) if re.fullmatch(r"\s*-?\d{1,15}(\.\d{1,15})?\s*", text) else None


def detector_names(sources: Mapping[str, Sequence[str]]) -> dict[str, list[tuple[str | None, str]]]:
    """For each option (name, path) of its detectors: `NAME=PATH` in two; the name is None for a path alone.

    Raises:
        UsageError: there are several detectors, and one has no name.
    """
    found: dict[str, list[tuple[str | None, str]]] = {}
    several = sum(map(len, sources.values())) > 1
    for option, texts in sources.items():
        found[option] = []
        for text in texts:
            name, equals, path = (part.strip() for part in text.partition("="))
            if not (equals and name and path) or Path(text).exists():
                if several:
                    raise UsageError(f"with several detectors each needs a name: {option} NAME={text}")
                name, path = "", text
            found[option].append((name or None, path))
    return found


GOES_WITH = {
    "two detectors or more": ("good_loss", "ranking_replicates", "held_out"),
    "--detections": (
        "format",
        "annotations",
        "class_map",
        "frames",
        "sequence",
        "ignore",
        "affinity",
        "match_threshold",
        "min_score",
    ),
    "tables of pairs": ("images", "negative_reports"),
    "tables": ("column",),
    "--record or --detections": ("distance", "same_class"),
    "--closed-loop": (
        "loop_speeds",
        "period",
        "near",
        "margin",
        "braking",
        "bin",
        "drawn",
        "empty_bins",
        "no_misses",
        "exact",
    ),
}
"""What settings would change nothing without."""


def check_that_options_apply(arguments: CollisionSettings) -> None:
    """Refuse options that would change nothing.

    Raises:
        UsageError: naming the option and what it goes with.
    """
    given = {
        "two detectors or more": len(arguments.tables) + len(arguments.record) + len(arguments.detections) > 1,
        "--detections": bool(arguments.detections),
        "tables of pairs": bool(arguments.tables),
        "tables": bool(arguments.tables or arguments.detections),
        "--record or --detections": bool(arguments.record or arguments.detections),
        "--closed-loop": arguments.closed_loop is not None,
    }
    usual = CollisionSettings()
    for what, names in GOES_WITH.items():
        for name in names:
            if not given[what] and getattr(arguments, name) != getattr(usual, name):
                raise UsageError(f"--{name.replace('_', '-')} goes with {what}")


def estimator(arguments: CollisionSettings) -> EstimatorSettings:
    """How lambda is estimated, as the arguments say."""
    two = arguments.two_bandwidths
    constant = NORMAL_REFERENCE if arguments.constant is None else arguments.constant
    if arguments.constant is not None and arguments.bandwidth != "normal_reference":
        raise UsageError("--constant goes with --bandwidth normal_reference")
    if arguments.bandwidth == "normal_reference":
        return EstimatorSettings("normal_reference", constant, two_bandwidths=two)
    if arguments.bandwidth == "cross_validated":
        return EstimatorSettings("cross_validated", constant, two_bandwidths=two)
    width = _decimal(arguments.bandwidth)
    if width is None:
        raise UsageError(
            f"--bandwidth: expected cross_validated, normal_reference or metres, got {shown(arguments.bandwidth)}"
        )
    return EstimatorSettings("fixed", width_m=float(width), two_bandwidths=two)


def loop_settings(arguments: CollisionSettings, on: Grid, policy: BrakingPolicy) -> LoopSettings | None:
    """The closed loop that the arguments ask for; None for none."""
    if arguments.closed_loop is None:
        return None
    if arguments.loop_speeds is None:
        speeds = on.speeds_mps[:: 1 if len(on.speeds_mps) < 20 else 5].tolist()
    else:
        speeds, _ = speeds_of(arguments.loop_speeds, "--loop-speeds")
    drive = DriveSettings(
        policy, arguments.period, near_m=arguments.near, margin_m=arguments.margin, braking=arguments.braking
    )
    channel = ChannelSettings(arguments.bin, arguments.drawn, arguments.empty_bins, not arguments.no_misses)
    engines = EngineSettings(exact=arguments.exact)
    return LoopSettings(arguments.closed_loop, tuple(speeds), drive, channel, engines=engines)
