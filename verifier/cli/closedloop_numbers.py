"""Numbers on the command lines of `verify closed-loop` and `verify robroc`, refused where they make no sense."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any


def limited(kind: type, accepts: Callable[[Any], bool], expected: str) -> Callable[[str], Any]:
    """A converter for argparse: `kind` of the text, if that is accepted."""

    def convert(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not accepts(value):
            raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
        return value

    return convert


def whole(least: int, most: int = 2**31 - 1) -> Callable[[str], Any]:
    """A whole number in a range."""
    upper = "" if most == 2**31 - 1 else f" to {most}"
    return limited(int, lambda value: least <= value <= most, f"a whole number from {least}{upper}")


above_0 = limited(float, lambda value: 0 < value < float("inf"), "a number above 0")
from_0 = limited(float, lambda value: 0 <= value < float("inf"), "a number from 0")
share = limited(float, lambda value: 0 < value < 1, "a number between 0 and 1, both excluded")
iou = limited(float, lambda value: 0 < value <= 1, "a number above 0, at most 1")
metres = limited(float, lambda value: 0 < value <= 1e6, "a length in metres above 0, at most 1e6")
metres_from_0 = limited(float, lambda value: 0 <= value <= 1e6, "a length in metres from 0, at most 1e6")
seconds_from_0 = limited(float, lambda value: 0 <= value <= 1e6, "seconds from 0, at most 1e6")
angle_deg = limited(float, lambda value: 0 < value <= 180, "an angle in degrees above 0, at most 180")
