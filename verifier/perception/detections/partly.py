"""Whether readers read a part of some data: which files these are, and what classes the other parts have."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from contextvars import ContextVar

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
