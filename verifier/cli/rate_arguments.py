"""The arguments of `verify evidence rate`, and what they mean.

Only light modules are imported at the top, so that `verify --help` answers at once.
"""

from __future__ import annotations

import argparse
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from verifier.base.errors import UsageError, shown

if TYPE_CHECKING:
    from verifier.evidence.rates.exposure import Exposure
    from verifier.evidence.rates.hazard import RateQuestion

DESCRIPTION = """\
The rate at which a requirement fails, per hour of driving: its probability per encounter times the encounters per
hour, both with their uncertainty, held against an acceptance criterion (ISO 21448, Annex C); and how many hours or
encounters of testing would show the criterion without any model.

  verify evidence rate RESULT.json --requirement NAME --encounters 240 --hours 20 --accept 1e-7/h
  verify evidence rate RESULT.json --requirement NAME --exposure ped=12/h --exposure obs=10..14/h --exposure empty=0/h
"""
_NUMBER = r"(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,2})?"


def add_rate_arguments(commands: Any) -> None:
    """Add the subcommand `rate`."""
    rate = commands.add_parser(
        "rate",
        help="how often per hour a requirement fails, and what would show an acceptance criterion",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    rate.set_defaults(command=_rate)
    rate.add_argument("result", metavar="RESULT", help="the result of a verify run (.json)")
    asked = rate.add_argument_group("what is asked")
    asked.add_argument("--requirement", required=True, metavar="NAME", help="which requirement of the result")
    asked.add_argument("--planner", metavar="NAME", help="under which planner, where there are several")
    asked.add_argument(
        "--environment", "--env", action="append", default=[], metavar="NAME", help="only this environment; repeat"
    )
    asked.add_argument(
        "--event",
        choices=("violated", "satisfied"),
        help="what is unwanted (default: that the requirement is violated; satisfied where its target is P <= p)",
    )
    _add_exposure_arguments(rate.add_argument_group("exposure"))
    against = rate.add_argument_group("acceptance")
    against.add_argument("--accept", metavar="RATE", help="at most so many events per hour, as 1e-7/h")
    against.add_argument("--confidence", metavar="LEVEL", help="least level of the interval for the rate")
    against.add_argument(
        "--show-at", metavar="LEVEL", default="0.95", help="confidence of a demonstration by testing (default: 0.95)"
    )
    against.add_argument(
        "--events", type=int, default=0, metavar="K", help="events a demonstration may see (default: 0)"
    )
    output = rate.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print the result as JSON instead of a table")
    output.add_argument("-o", "--output", metavar="FILE", help="write the result as JSON")


def _add_exposure_arguments(group: Any) -> None:
    group.add_argument(
        "--exposure",
        action="append",
        default=[],
        metavar="[ENV=]RATE",
        help="encounters per hour, as 12/h or 10..14/h; without ENV= of every environment; repeat",
    )
    group.add_argument("--exposure-level", metavar="LEVEL", help="of stated intervals (default: certain)")
    group.add_argument("--encounters", type=int, metavar="N", help="counted encounters, with --hours")
    group.add_argument("--hours", metavar="T", help="in which they were counted")
    group.add_argument("--context", metavar="FILE", help="exposure and acceptance from a case's context (.toml)")


def _rate(arguments: argparse.Namespace) -> int:
    from verifier.cli.rate import rate_command

    return rate_command(arguments)


def exposures(arguments: argparse.Namespace) -> dict[str, Exposure]:
    """Environment -> exposure, as the arguments say; empty where they do not.

    Raises:
        UsageError: an exposure that cannot be read, or one that is given twice.
    """
    from verifier.evidence.rates.exposure import LARGEST_COUNT, Exposure
    from verifier.evidence.rates.hazard import EVERY

    level = None if arguments.exposure_level is None else _level("--exposure-level", arguments.exposure_level)
    found: dict[str, Exposure] = {}
    for text in arguments.exposure:
        name, equals, stated = text.rpartition("=")
        name = name.strip() if equals else EVERY
        if name in found or not name:
            raise UsageError(f"--exposure: expected every environment once, got {shown(text)}")
        found[name] = _stated(stated, level, text)
    if (arguments.encounters is None) != (arguments.hours is None):
        raise UsageError("--encounters and --hours belong together: so many encounters in so many hours")
    if arguments.encounters is not None:
        if found:
            raise UsageError("either --exposure or --encounters with --hours")
        if not 0 <= arguments.encounters <= LARGEST_COUNT:
            raise UsageError(f"--encounters: expected a whole number from 0 to {LARGEST_COUNT}")
        hours = _number("--hours", arguments.hours)
        if hours == 0:
            raise UsageError("--hours: expected more than 0 hours")
        found[EVERY] = Exposure.counted(arguments.encounters, hours)
    if level is not None and not any(each.level is not None for each in found.values()):
        raise UsageError("--exposure-level belongs to a stated interval, as --exposure 10..14/h")
    return found


def question(arguments: argparse.Namespace) -> RateQuestion:
    """What the arguments ask beside the exposure; UsageError where one cannot be read."""
    from verifier.evidence.rates.hazard import Acceptance, RateQuestion

    accept = None
    if arguments.accept is not None:
        per_hour = _per_hour("--accept", arguments.accept)
        if per_hour == 0:
            raise UsageError("--accept: a rate of 0 can never be shown")
        accept = Acceptance(per_hour)
    if arguments.events < 0:
        raise UsageError("--events: expected a number from 0")
    return RateQuestion(
        arguments.requirement,
        arguments.planner,
        arguments.event,
        tuple(arguments.environment),
        accept,
        None if arguments.confidence is None else _level("--confidence", arguments.confidence),
        _level("--show-at", arguments.show_at),
        arguments.events,
    )


def _stated(text: str, level: Fraction | None, whole: str) -> Exposure:
    from verifier.evidence.rates.exposure import Exposure

    found = re.fullmatch(rf"\s*({_NUMBER})\s*\.\.\s*({_NUMBER})\s*/\s*h\s*", text)
    if found is None:
        return Exposure.stated(_per_hour("--exposure", text))
    lower, upper = Fraction(found[1]), Fraction(found[2])
    if lower > upper:
        raise UsageError(f"--exposure: the lower end comes first, got {shown(whole)}")
    return Exposure.stated_interval(lower, upper, level)


def _per_hour(option: str, text: str) -> Fraction:
    found = re.fullmatch(rf"\s*({_NUMBER})\s*/\s*h\s*", text)
    if found is None:
        raise UsageError(f"{option}: expected a rate per hour, as 12/h or 1e-7/h, got {shown(text)}")
    return Fraction(found[1])


def _number(option: str, text: str) -> Fraction:
    if not re.fullmatch(rf"\s*{_NUMBER}\s*", text):
        raise UsageError(f"{option}: expected a number from 0, got {shown(text)}")
    return Fraction(text.strip())


def _level(option: str, text: str) -> Fraction:
    level = _number(option, text)
    if not 0 < level < 1:
        raise UsageError(f"{option}: a level lies strictly between 0 and 1, got {shown(text)}")
    return level
