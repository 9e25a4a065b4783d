"""What the terminal is asked for: whether a person watches, progress bars or plain lines, colour."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, TypeVar

from verifier.base.blocks import Share
from verifier.base.errors import one_line
from verifier.base.numbers import fixed

Item = TypeVar("Item")


def is_watched() -> bool:
    """Whether a person can see a progress bar: stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def wants_colour() -> bool:
    """Whether stdout is a terminal, and NO_COLOR does not forbid it."""
    return sys.stdout is not None and sys.stdout.isatty() and "NO_COLOR" not in os.environ


EVERY_S = 30.0
"""Seconds between plain lines that tell progress, and before the first of them."""


def plain_lines(what: str) -> Callable[[int, int], None]:
    """What is told how much of how much is done where stderr is no terminal: now and then a line says so."""
    start = last = time.monotonic()

    def told(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < EVERY_S or sys.stderr is None:
            return
        last = now
        left = f", about {fixed((now - start) / done * (total - done), 0)} s left" if 0 < done < total else ""
        print(f"verify: {done} of {total or '?'} {what}{left}", file=sys.stderr, flush=True)

    return told


def progress_bar(items: Sequence[Item], what: str = "chains", unit: str | None = None) -> Iterable[Item]:
    """The items, where they are several with a progress bar on stderr, or plain lines if that is no terminal.

    Args:
        items: what is worked on, one after the other.
        what: what they are, in the plural.
        unit: one of them; by default `what` without its last letter.
    """
    if len(items) < 2:
        return items
    if not is_watched():
        return _told_plainly(items, plain_lines(what))
    from tqdm import tqdm

    return tqdm(items, desc=what, unit=unit or what[:-1], leave=False, delay=0.5)


def _told_plainly(items: Sequence[Item], told: Callable[[int, int], None]) -> Iterator[Item]:
    for done, item in enumerate(items):
        told(done, len(items))
        yield item


def watched(finished: Iterable[Item], count: int, what: str) -> Iterator[Item]:
    """What is finished, one after the other, with a progress bar, or, where nobody watches, a line each on stderr."""
    if is_watched():
        from tqdm import tqdm

        yield from tqdm(finished, desc=what, total=count, leave=False)
        return
    start = time.monotonic()
    for number, each in enumerate(finished, 1):
        left = (time.monotonic() - start) / number * (count - number)
        told = f", about {fixed(left, 0)} s left" if number < count else ""
        print(f"verify: {number} of {count} {what}{told}", file=sys.stderr, flush=True)
        yield each


def tell_shares(shares: Sequence[Share]) -> None:
    """Say on stderr what each worker did; nothing of a command that asked none."""
    for share in shares:
        print(one_line(str(share)), file=sys.stderr)


class Bars:
    """One progress bar on stderr after the other, or plain lines where that is no terminal."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __call__(self, name: str, **looks: Any) -> Callable[[int, int], None]:
        """What is told how much of how much is done; `looks` as for tqdm."""
        self._close()
        if not is_watched():
            return plain_lines(name)
        from tqdm import tqdm

        self._bar = bar = tqdm(desc=name, leave=False, delay=0.5, **looks)

        def told(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return told

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
