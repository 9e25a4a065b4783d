"""The arguments of `verify run` for continuous integration. Only light modules are imported."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import PurePath
from typing import Any

from verifier.base.errors import UsageError, one_line, shown


def add_ci_arguments(group: Any) -> None:
    """Outputs that other tools read, and gates."""
    group.add_argument("--junit", metavar="FILE", help="write JUnit XML, one case per requirement and scenario")
    group.add_argument(
        "--junit-inconclusive",
        choices=("failure", "skipped"),
        default="failure",
        help="what an inconclusive requirement is in JUnit (default: failure)",
    )
    group.add_argument("--sarif", metavar="FILE", help="write SARIF: what is wrong, at its line of the spec")
    group.add_argument("--in-toto", metavar="FILE", help="write an in-toto statement (test-result) to be signed")
    group.add_argument(
        "--fail-under",
        metavar="P",
        help="exit with 1 if a requirement holds with less, by what verdicts come from (1 - P for <= targets)",
    )
    group.add_argument(
        "--max-drop", metavar="X", help="exit with 1 if a probability is worse by more than X than in --baseline"
    )
    group.add_argument(
        "--baseline",
        metavar="FILE",
        help="JSON of an earlier verify run, or earlier matrices, which are verified anew",
    )
    add_drop_rule(group)


def add_drop_rule(group: Any) -> None:
    """What decides whether a drop is too large."""
    group.add_argument(
        "--drop-from",
        metavar="RULE",
        help="what a drop is judged by: point, the probabilities of the given matrices (default), or chance:C, "
        "whether it is larger than --max-drop with at least the chance C by common draws of both matrices",
    )


def largest_drop(max_drop: str | None, baseline: str | None) -> Fraction | None:
    """The drop that is allowed against a baseline; None where there is no such gate.

    Args:
        max_drop, baseline: as given; None where they are not.

    Raises:
        UsageError: one without the other, or no number from 0 to 1.
    """
    if max_drop is not None and PurePath(max_drop).suffix.lower() == ".json":
        raise UsageError(
            f"--max-drop: expected a number from 0 to 1, got the file {shown(max_drop)}\n"
            f"  hint: as --max-drop 0.01 --baseline {one_line(max_drop)}; 0 allows no drop at all"
        )
    if (baseline is None) != (max_drop is None):
        raise UsageError("--max-drop and --baseline belong together: name both or none")
    return None if max_drop is None else share("--max-drop", max_drop)


def drop_rule(text: str | None, *, gated: bool) -> Fraction | None:
    """The chance from which on a drop fails; None for the rule "point".

    Args:
        text: of the argument; None where it is not given.
        gated: whether there is a gate for it.

    Raises:
        UsageError: no such rule, or nothing for it to judge.
    """
    if text is None:
        return None
    if not gated:
        raise UsageError("--drop-from belongs to --max-drop and --baseline")
    if text.strip() == "point":
        return None
    rule, colon, chance = text.partition(":")
    if rule.strip() != "chance" or not colon:
        raise UsageError(f"--drop-from: expected point, or chance:C such as chance:0.95, got {shown(text)}")
    found = share("--drop-from chance", chance)
    if not 0 < found < 1:
        raise UsageError(f"--drop-from: a chance that decides lies strictly between 0 and 1, got {shown(text)}")
    return found


def share(option: str, text: str) -> Fraction:
    """A number from 0 to 1; UsageError."""
    if not re.fullmatch(r"\s*\d{1,30}(\.\d{1,30})?([eE][+-]?\d{1,2})?\s*", text) or Fraction(text.strip()) > 1:
        raise UsageError(f"{option}: expected a number from 0 to 1, got {shown(text)}")
    return Fraction(text.strip())
