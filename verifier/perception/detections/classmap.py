"""What of a data set is read: which names become which class, and, of one that is read in parts, which files.

A class map is a small text file, one rule per line, the first rule that fits decides:

    human.pedestrian.* -> ped
    vehicle.*          → obs
    static_object.*    -> dont_care   # annotations become regions where detections are not judged
    *                  -> ignore      # left out, and counted

`*` stands for any characters, `#` begins a comment. The target `ignore`, or none, leaves objects out. A name that
no rule fits is an error.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from verifier.base.errors import InputError, Place, shown
from verifier.base.files import read_text

IGNORE = "ignore"
DONT_CARE = "dont_care"
ARROW = re.compile(r"->|→")


@dataclass(frozen=True)
class ClassMap:
    """Rules (pattern, target) in the order they are tried.

    Raises:
        ValueError: a pattern is empty or occurs twice, or a target is the reserved name `empty`.
    """

    rules: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        patterns = [pattern for pattern, _ in self.rules]
        if not all(patterns) or len(set(patterns)) != len(patterns):
            raise ValueError("every pattern must be given, and only once")
        if any(target == "empty" or not target for _, target in self.rules):
            raise ValueError("a target must be a class name other than 'empty'")

    @property
    def classes(self) -> tuple[str, ...]:
        """The targets that are classes, in the order they first occur."""
        return tuple(dict.fromkeys(target for _, target in self.rules if target not in (IGNORE, DONT_CARE)))

    def target(self, name: str) -> str | None:
        """What `name` becomes: a class, `ignore` or `dont_care`; None if no rule fits."""
        for pattern, target in self.rules:
            if fits(pattern, name):
                return target
        return None


def fits(pattern: str, name: str) -> bool:
    """Whether `name` fits `pattern`, in which `*` stands for any characters."""
    parts = pattern.split("*")
    return re.fullmatch(".*".join(map(re.escape, parts)), name, re.DOTALL) is not None


def class_map(rules: Mapping[str, str] | Sequence[tuple[str, str]]) -> ClassMap:
    """A class map from pairs, such as `{"human.*": "ped", "vehicle.*": "obs", "*": "ignore"}`."""
    pairs = rules.items() if isinstance(rules, Mapping) else rules
    return ClassMap(tuple((pattern, target or IGNORE) for pattern, target in pairs))


def read_class_map(path: str | Path) -> ClassMap:
    """Read a class map.

    Raises:
        InputError: with file and line: no arrow, no pattern, a pattern twice, a rule that is never reached.
    """
    text, _ = read_text(path)
    rules: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        rule = re.sub(r"(^|\s)#.*", "", line).strip()
        if rule:
            pattern, target = _rule(rule, Place(str(path), number, text=line))
            _check_reached(pattern, rules, Place(str(path), number, text=line))
            rules[pattern] = target
    if not rules:
        raise InputError("no rule in it", Place(str(path)), "write lines such as: human.* -> ped")
    return ClassMap(tuple(rules.items()))


def _rule(rule: str, place: Place) -> tuple[str, str]:
    parts = ARROW.split(rule)
    if len(parts) != 2 or not parts[0].strip():
        raise InputError("expected 'PATTERN -> CLASS'", place)
    pattern, target = (part.strip() for part in parts)
    if target == "empty":
        raise InputError("'empty' is no class: it stands for 'nothing is there'", place, "write '-> ignore'")
    if not target.isprintable():
        raise InputError(f"expected a class name, got {shown(target)}", place)
    return pattern, target or IGNORE


def _check_reached(pattern: str, rules: Mapping[str, str], place: Place) -> None:
    for number, earlier in enumerate(rules, 1):
        if fits(earlier, pattern):
            raise InputError(
                f"rule {number}, {shown(earlier)}, already takes every name that fits {shown(pattern)}",
                place,
                "the first rule that fits decides: put the narrower one first",
            )


_ONLY: ContextVar[tuple[Collection[str], Collection[str]] | None] = ContextVar("only", default=None)
EVERY_PART = ("calibration",)
"""Roles of files that all parts read."""


@contextlib.contextmanager
def only_files(paths: Collection[str], classes: Collection[str] = ()) -> Iterator[None]:
    """Of folders `read_source` reads these files alone, or none; detections may be of these classes, too."""
    token = _ONLY.set((paths, classes))
    try:
        yield
    finally:
        _ONLY.reset(token)


def is_part() -> bool:
    """Whether some files of folders are read alone."""
    return _ONLY.get() is not None


def files_of_part(role: str) -> Collection[str] | None:
    """The files that are read alone; None for all."""
    only = _ONLY.get()
    return None if only is None or role in EVERY_PART else only[0]


def classes_of_others() -> Collection[str]:
    """Names of classes that other parts have."""
    only = _ONLY.get()
    return () if only is None else only[1]
