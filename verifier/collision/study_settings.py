"""The settings of a study, from the choices of `verify collision`: grids, units, what goes with what."""

import hashlib
import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from pathlib import Path, PurePath
from types import MappingProxyType

import numpy as np

from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import read_bytes
from verifier.base.tables import Kind, read_table
from verifier.collision.approach import DriveSettings
from verifier.collision.bridge import LoopSettings
from verifier.collision.distance_channel import ChannelSettings
from verifier.collision.estimator import SPEED_UNITS, BrakingPolicy, EstimatorSettings, Grid, speed_mps
from verifier.collision.kernel import NORMAL_REFERENCE
from verifier.collision.ranking import REPLICATES as RANKING_REPLICATES
from verifier.collision.resampling import Subsampling
from verifier.collision.score import Penalty, Weight
from verifier.collision.settings import BOOTSTRAP, DECELERATION_MPS2, CollisionSettings
from verifier.collision.study import StudySettings

USUAL_SHOWN_MPH = (25, 40)
MOST_POINTS = 1_000_000


def study_settings(settings: CollisionSettings) -> StudySettings:
    """Every choice of the study; an operational profile is read.

    Raises:
        UsageError: a choice cannot be read, or changes nothing without another one.
        InputError: of the profile.
    """
    _check_that_options_apply(settings)
    on, unit = _grid(settings)
    decelerations = settings.deceleration or (DECELERATION_MPS2,)
    policies = tuple(BrakingPolicy(deceleration, settings.reaction) for deceleration in decelerations)
    if len(set(policies)) < len(policies):
        raise UsageError("--deceleration: a value is given twice")
    return StudySettings(
        grid=on,
        policies=policies,
        speed_unit=unit,
        shown_mps=_shown_speeds(settings, on),
        estimator=_estimator(settings),
        level=settings.level,
        subsampling=Subsampling(settings.subsample_size, settings.subsamples),
        bootstrap=_count(settings.bootstrap, 0 if settings.two_bandwidths else BOOTSTRAP, "--bootstrap", 0),
        ranking=_count(settings.ranking_replicates, RANKING_REPLICATES, "--ranking-replicates", 1),
        seed=_count(settings.seed, 0, "--seed", 0),
        penalty=Penalty(settings.alpha_loss, settings.beta_loss, settings.heavy),
        weight=None if settings.weight is None else read_profile(settings.weight, on),
        loop=_loop_settings(settings, on, policies[0]),
    )


def _count(number: int | None, usual: int, option: str, least: int) -> int:
    if number is not None and number < least:
        raise UsageError(f"{option}: expected a whole number from {least}, got {number}")
    return usual if number is None else number


def _grid(settings: CollisionSettings) -> tuple[Grid, str]:
    """The grid that the choices name, and the unit of its speeds."""
    distances = _values(settings.distances, "--distances")
    speeds, unit = _speeds_of(settings.speeds, "--speeds")
    if len(distances) * len(speeds) > MOST_POINTS:
        raise UsageError(
            f"a grid of {len(distances)} distances and {len(speeds)} speeds; at most {MOST_POINTS} points"
        )
    return Grid(np.array(distances, dtype=np.float64), np.array(speeds)), unit


def _shown_speeds(settings: CollisionSettings, on: Grid) -> tuple[float, ...]:
    """The speeds of the grid at which intervals are shown: those asked for, or usual ones."""
    known = on.speeds_mps.tolist()
    if settings.at is not None:
        asked, _ = _speeds_of(settings.at, "--at")
        missing = [speed for speed in asked if speed not in known]
        if missing:
            raise UsageError(
                f"--at: {missing[0]:g} m/s is not a speed of the grid, --speeds {shown(settings.speeds)}"
            )
        return tuple(asked)
    usual = [speed for speed in (speed_mps(mph, "mph") for mph in USUAL_SHOWN_MPH) if speed in known]
    return tuple(usual) or tuple(dict.fromkeys((known[len(known) // 3], known[2 * len(known) // 3])))


def _speeds_of(text: str, option: str) -> tuple[list[float], str]:
    """Speeds in metres per second from `5..75:5 mph`, and the unit."""
    words = text.rsplit(maxsplit=1)
    if len(words) != 2 or words[1] not in SPEED_UNITS or re.search("[a-z]", words[0]):
        expected = f"a range and one unit of {', '.join(SPEED_UNITS)}, both in quotes as '5..75 mph'"
        raise UsageError(f"{option}: expected {expected}, got {shown(text)}")
    return [speed_mps(number, words[1]) for number in _values(words[0], option)], words[1]


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
    return [float(number) for number in known]


def _decimal(text: str) -> Fraction | None:
    return Fraction(text.strip()) if re.fullmatch(r"\s*-?\d{1,15}(\.\d{1,15})?\s*", text) else None


GOES_WITH = {
    "two detectors or more": ("ranking_replicates",),
    "tables of pairs": ("images", "negative_reports"),
    "tables": ("column",),
    "--record or --detections": ("distance", "same_class"),
}
"""What settings would change nothing without, where that is no single option (`Option.of`)."""


def _check_that_options_apply(settings: CollisionSettings) -> None:
    """Refuse options that would change nothing.

    Raises:
        UsageError: naming the option and what it goes with.
    """
    met = {
        "two detectors or more": len(settings.tables) + len(settings.record) + len(settings.detections) > 1,
        "tables of pairs": bool(settings.tables),
        "tables": bool(settings.tables or settings.detections),
        "--record or --detections": bool(settings.record or settings.detections),
    }
    usual = CollisionSettings()
    for condition, names in GOES_WITH.items():
        for name in names:
            if not met[condition] and getattr(settings, name) != getattr(usual, name):
                raise UsageError(f"--{name.replace('_', '-')} goes with {condition}")


def _estimator(settings: CollisionSettings) -> EstimatorSettings:
    """How lambda is estimated, as the choices say."""
    two = settings.two_bandwidths
    constant = NORMAL_REFERENCE if settings.constant is None else settings.constant
    if settings.constant is not None and settings.bandwidth != "normal_reference":
        raise UsageError("--constant goes with --bandwidth normal_reference")
    if settings.bandwidth == "normal_reference":
        return EstimatorSettings("normal_reference", constant, two_bandwidths=two)
    if settings.bandwidth == "cross_validated":
        return EstimatorSettings("cross_validated", constant, two_bandwidths=two)
    width = _decimal(settings.bandwidth)
    if width is None:
        raise UsageError(
            f"--bandwidth: expected cross_validated, normal_reference or metres, got {shown(settings.bandwidth)}"
        )
    return EstimatorSettings("fixed", width_m=float(width), two_bandwidths=two)


def _loop_settings(settings: CollisionSettings, on: Grid, policy: BrakingPolicy) -> LoopSettings | None:
    """The closed loop that the choices ask for; None for none."""
    if settings.closed_loop is None:
        return None
    if settings.loop_speeds is None:
        speeds = on.speeds_mps[:: 1 if len(on.speeds_mps) < 20 else 5].tolist()
    else:
        speeds, _ = _speeds_of(settings.loop_speeds, "--loop-speeds")
    drive = DriveSettings(policy, settings.period, near_m=settings.near, margin_m=settings.margin)
    channel = ChannelSettings(settings.bin, settings.empty_bins)
    return LoopSettings(settings.closed_loop, tuple(speeds), drive, channel)


SPEED_COLUMNS: Mapping[str, str] = MappingProxyType(
    {"speed_mps": "m/s", "speed_kmh": "km/h", "speed_mph": "mph", "speed_kn": "kn"}
)
"""Names of the column of speeds, and the unit that each says."""


def read_profile(path: str | Path, grid: Grid) -> Weight:
    """The weight of every point of a grid from a CSV or Parquet file.

    The file has the columns `distance_m`, one of `SPEED_COLUMNS`, and `weight`: hours, kilometres or counts.

    Raises:
        InputError: with file and line of what cannot be read.
        UsageError: as `Weight.profile`.
    """
    raw, numbers = read_bytes(path), ("distance_m", "weight")
    kinds: dict[str, Kind] = dict.fromkeys((*numbers, *SPEED_COLUMNS), "number")
    table = read_table(path, {name: kinds.pop(name) for name in numbers}, kinds, raw, others=True)
    named = [name for name in SPEED_COLUMNS if name in table.columns]
    if len(named) != 1:
        message = f"expected one column of speeds, found {', '.join(named) or 'none'}"
        raise InputError(message, Place(str(path), 1), f"name it {', '.join(SPEED_COLUMNS)}: the name says the unit")
    columns = ("distance_m", named[0], "weight")
    distance, speed, weight = values = table.stack(*columns).T
    for name, column in zip(columns, values, strict=True):
        if (column < 0).any():
            row = int((column < 0).argmax())
            raise InputError(f"{name}: expected a number from 0, got {column[row]:g}", table.place(row))
    rows = zip(distance.tolist(), (speed * float(SPEED_UNITS[SPEED_COLUMNS[named[0]]])).tolist(), weight.tolist(),
               strict=True)  # fmt: skip
    name = f"{PurePath(path).name} (sha256 {hashlib.sha256(raw).hexdigest()[:16]}...)"
    return Weight.profile(grid, list(rows), name)
