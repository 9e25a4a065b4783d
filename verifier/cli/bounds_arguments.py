"""The options that say what confidence bounds assume."""

from __future__ import annotations

import argparse
import re
from fractions import Fraction
from typing import Any

from verifier.base.errors import UsageError

BOUNDS = ("auto", "drives", "approximate", "items")
WEIGHTS = ("item", "track", "drive")
_NAMES = ("bounds", "weights", "largest_drive", "icc_at_most", "assume_independent_items", "looks", "shift")


def add_bounds_arguments(group: Any) -> None:
    """What the confidence bounds assume."""
    group.add_argument(
        "--bounds",
        choices=BOUNDS,
        default="auto",
        help="confidence bounds for independent drives, by resampling drives (approximate), or for independent items "
        "(default: drives where the file knows them, else items)",
    )
    group.add_argument(
        "--weights",
        choices=WEIGHTS,
        default="item",
        help="rates of a random item, of a random encounter (track), or of a random drive (default: item)",
    )
    group.add_argument(
        "--largest-drive",
        type=_count,
        metavar="N",
        help="no drive holds more items (or tracks) of a column, those not recorded included; then bounds hold at "
        "every look between drives, if drives are identically distributed (default: the largest drive seen)",
    )
    group.add_argument(
        "--icc-at-most",
        type=fraction_from_0_to_1,
        metavar="R",
        help="bounds for items of one drive that are correlated with an intraclass correlation of at most R",
    )
    group.add_argument(
        "--assume-independent-items", action="store_true", help="bounds by items although the file knows drives"
    )
    group.add_argument(
        "--looks",
        type=_count,
        default=1,
        metavar="N",
        help="how often you look at the data while they grow: divides alpha, where bounds do not hold at every look",
    )
    group.add_argument(
        "--shift",
        type=fraction_from_0_to_1,
        default=Fraction(0),
        metavar="EPS",
        help="how far the rate of each observation (labels that the planner does not tell apart count as one) may "
        "lie in operation from that of the data (default: 0)",
    )


def refuse_without_bounds(arguments: argparse.Namespace) -> None:
    """Refuse, where no bounds are made, an option that says what they assume: nothing would come of it.

    Raises:
        UsageError: naming it.
    """
    plain = {"bounds": "auto", "weights": "item", "looks": 1, "shift": 0}
    for name in _NAMES:
        if getattr(arguments, name, None) not in (None, False, plain.get(name)):
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{option} needs what --no-confidence leaves out: name one of the two")


def source_of_verdicts(arguments: argparse.Namespace) -> str | None:
    """What is asked to be held against the targets, None where nothing is asked.

    Raises:
        UsageError: verdicts are not from the bounds, and an option moves these: the verdict would ignore it.
    """
    source: str | None = arguments.verdict_from
    for name, plain in (("shift", 0), ("looks", 1)):
        if source in ("point", "interval") and getattr(arguments, name, plain) != plain:
            raise UsageError(
                f"--{name} moves the confidence bounds, and --verdict-from {source} ignores them: name one of the two"
            )
    return source


def bounds_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings that these options give, see `verifier.analysis.settings.ConfidenceSettings`."""
    return {name: getattr(arguments, name) for name in _NAMES}


def _count(text: str) -> int:
    """A whole number from 1, for `argparse`."""
    if not re.fullmatch(r"\d{1,15}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text!r}")
    return int(text)


def fraction_from_0_to_1(text: str) -> Fraction:
    """A number from 0 to 1, its decimal digits taken exactly, for `argparse`."""
    if not re.fullmatch(r"\d{1,30}(\.\d{1,30})?|\.\d{1,30}", text) or Fraction(text) > 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, got {text!r}")
    return Fraction(text)
