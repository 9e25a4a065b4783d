"""The limits of time and memory that a computation is held to, whatever it is doing when they are used up.

Time is measured by the clock on the wall. A signal of the system ends the computation between two operations of
Python; one operation of compiled code is finished first.

Memory is what the process holds beyond what it held when the limit was set, its imports first of all: the system
refuses to give more (Linux, RLIMIT_DATA, whose every byte may become resident), and `MemoryError` becomes a
`NoAnswerError`. Storm's worker is given its share of what is left for as long as it computes (`share_of_memory`).
Elsewhere than on Linux memory is predicted only.

Large values that are built once are kept while there is room for them (`Cache`).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    import numpy as np

try:
    import resource
except ImportError:  # not on every system
    resource = None  # type: ignore[assignment]

from verifier.base.errors import NoAnswerError
from verifier.base.numbers import memory_text

_STATUS = Path("/proc/self/status")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_REPEAT_S = 2.0  # for a signal whose exception was lost: a callback of the garbage collector may swallow it
_EARLY_S = 0.01
"""A timer may ring so much before its time by another clock."""
_HINT = "allow more with --timeout, ask for less at a time, or write a simpler formula"
MEMORY_HINT = "allow more with --max-memory, narrow the ranges of the variables, or write a simpler formula"


class _OverdueError(BaseException):
    """Raised by the alarm of the `owner`; no `except Exception` may take it for an error of its own."""

    def __init__(self, owner: Clock) -> None:
        self.owner = owner


class Clock:
    """Seconds that one task may take, all its parts together.

    The clock runs inside `running` only, so that tasks may take turns. Parts of one task must not be nested; a task
    may be a part of another.

    Attributes:
        limit_s: None for no limit.
        spent_s: how many are gone.
    """

    def __init__(self, limit_s: float | None) -> None:
        self.limit_s = limit_s
        self.spent_s = 0.0

    @property
    def left_s(self) -> float | None:
        """Seconds left, at least 0; None without a limit."""
        return None if self.limit_s is None else max(self.limit_s - self.spent_s, 0.0)

    def spend(self, seconds: float) -> None:
        """Count seconds that were measured elsewhere."""
        self.spent_s += seconds

    @contextlib.contextmanager
    def running(self, doing: str) -> Iterator[None]:
        """Count the time of the block, and end it when none is left.

        Raises:
            NoAnswerError: the time is used up. `doing` says what was being done.
        """
        begun = time.monotonic()
        try:
            with _alarm(self.left_s, self):
                yield
        except _OverdueError as overdue:
            if overdue.owner is not self:
                raise
            raise self.overdue(doing) from None
        finally:
            self.spent_s += time.monotonic() - begun

    def overdue(self, doing: str) -> NoAnswerError:
        """The error for a task that has used up its time."""
        message = f"{doing} took longer than the limit of {self.limit_s:g} s (--timeout)"
        return NoAnswerError(reached(message), hint=_HINT)


_watched: list[list[str]] = []


@contextlib.contextmanager
def limits_reached() -> Iterator[list[str]]:
    """The messages of all limits of time and memory that are used up in the block, also where it goes on without."""
    messages: list[str] = []
    _watched.append(messages)
    try:
        yield messages
    finally:
        _watched.pop()


def reached(message: str) -> str:
    """The message of a limit that is used up, for `limits_reached`."""
    for messages in _watched:
        messages.append(message)
    return message


_alarms: list[tuple[float, Clock]] = []
"""When the clocks that run will be overdue, the outermost first."""


@contextlib.contextmanager
def _alarm(seconds: float | None, owner: Clock) -> Iterator[None]:
    """Raise `_OverdueError` in the block after so many seconds; only the main thread can be interrupted."""
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    before, depth = signal.signal(signal.SIGALRM, _ring), len(_alarms)
    _alarms.append((time.monotonic() + seconds, owner))
    try:
        _wind()
        yield
    finally:
        del _alarms[depth:]  # an alarm that rang in this place may have left others
        _wind()
        signal.signal(signal.SIGALRM, before)


def _ring(number: int, frame: FrameType | None) -> None:
    now = time.monotonic() + _EARLY_S
    for end, owner in _alarms:
        if end <= now:
            raise _OverdueError(owner)


def _wind() -> None:
    """Set the timer to the first of the alarms."""
    left = min((end for end, _ in _alarms), default=None)
    if left is None:
        signal.setitimer(signal.ITIMER_REAL, 0)
    else:
        signal.setitimer(signal.ITIMER_REAL, max(left - time.monotonic(), 1e-3), _REPEAT_S)


@contextlib.contextmanager
def memory_limit(limit_bytes: int) -> Iterator[None]:
    """Hold the block to so many bytes beyond what the process has; a stricter limit in force stays.

    Raises:
        NoAnswerError: the block asked for more.
    """
    _fill_buffers()
    _keep_freed_memory()
    with _refused_beyond(limit_bytes):
        try:
            yield
        except MemoryError:
            raise out_of_memory(limit_bytes) from None


def _keep_freed_memory() -> None:
    """Let the C library keep what large arrays leave behind for the next ones, from here on: to give it back and be
    given it anew, page by page, takes as long as to compute with it. Nothing happens without the GNU C library."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, 1 << 26)
        library.mallopt(_TRIM_THRESHOLD, 1 << 29)
        library.malloc_trim(0)  # what was left behind before is nothing that is held


@functools.cache
def _fill_buffers() -> None:
    """Let the BLAS libraries of numpy and scipy take their buffers, 32 MiB each, which they keep: once will do.

    OpenBLAS does not fail where it gets none: it asks again for ever, and no signal reaches Python.
    """
    import numpy as np
    from scipy.linalg.blas import dgemm, dtrsv

    square = np.eye(128)  # smaller ones need no buffer
    _ = square @ square
    dgemm(1.0, square, square)
    dtrsv(square, square[0])


def out_of_memory(limit_bytes: int) -> NoAnswerError:
    """The error for a task that asked for more memory than it may have."""
    message = f"more memory is needed than the limit of {memory_text(limit_bytes)}"
    return NoAnswerError(reached(message), hint=MEMORY_HINT)


def memory_left() -> int | None:
    """Bytes that the limit in force leaves this process; None where there is none."""
    held, (soft, _) = _held_bytes(), _limits()
    return None if held is None or soft < 0 else max(soft - held, 0)


@contextlib.contextmanager
def share_of_memory() -> Iterator[int | None]:
    """Half of the memory that is left, for another process; this one has the other half until the block ends."""
    left = memory_left()
    if left is None:
        yield None
        return
    with _refused_beyond(left // 2):
        yield left // 2


@contextlib.contextmanager
def _refused_beyond(further_bytes: int) -> Iterator[None]:
    held, block = _held_bytes(), object()
    if held is None:
        yield
        return
    try:
        _hold(block, held + further_bytes)
        yield
    finally:
        _hold(block, None)


_ceilings: dict[object, int] = {}
"""What the process may hold, for each block that says so; blocks of several threads end in any order."""
_before: list[int] = []
"""The limit that was in force when there was no such block."""
_holding = threading.RLock()


def _hold(block: object, ceiling: int | None) -> None:
    """Let the strictest of all blocks be in force, from where this one begins to where it ends (None)."""
    with _holding:
        soft, hard = _limits()
        if not _ceilings:
            _before[:] = [soft]
        _ceilings.pop(block, None)
        if ceiling is not None:
            _ceilings[block] = ceiling
        wanted = [limit for limit in (*_ceilings.values(), *_before, hard) if limit >= 0]
        resource.setrlimit(resource.RLIMIT_DATA, (min(wanted, default=resource.RLIM_INFINITY), hard))


def _limits() -> tuple[int, int]:
    """Soft and hard limit in force, -1 for none."""
    return (-1, -1) if resource is None else resource.getrlimit(resource.RLIMIT_DATA)


def peak_bytes() -> int:
    """The most memory that this process ever held, without that of the process that started it where the system
    tells them apart; 0 where that is not known."""
    if (peak := _told_bytes(b"VmHWM:")) is not None or resource is None:
        return peak or 0
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1024)


def _held_bytes() -> int | None:
    """What the limit of the system counts: private memory that can be written; None where that is not known."""
    return None if resource is None else _told_bytes(b"VmData:")


def _told_bytes(name: bytes) -> int | None:
    """What the system says of this process."""
    try:
        descriptor = os.open(_STATUS, os.O_RDONLY)
    except OSError:
        return None
    try:
        lines = os.read(descriptor, 1 << 16).splitlines()
    finally:
        os.close(descriptor)
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)


Value = TypeVar("Value")


def _one(value: object) -> int:
    return 1


class Cache:
    """Values by key. Those that were not asked for longest go first where the sizes of all exceed the limit, which is
    in bytes or in whatever sizes are given in; the last one stays, however large.

    A value that somebody still holds is found again even if it had to go.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._kept: dict[Hashable, tuple[object, int]] = {}
        self._alive: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()

    def __reduce__(self) -> tuple[type[Cache], tuple[int]]:
        """In another process it begins empty."""
        return Cache, (self._limit,)

    def kept(self, key: Hashable, make: Callable[[], Value], size_of: Callable[[Value], int] = _one) -> Value:
        """The value of a key, made if it is not there; `size_of` gives its size, which is 1 if left out."""
        value: Value | None = self._alive.get(key)
        if value is None:
            value = self._alive[key] = make()
        _, size = self._kept.pop(key, (None, None))
        if size is None:
            size = size_of(value)
            self._held += size
        self._kept[key] = value, size
        while self._held > self._limit and len(self._kept) > 1:
            self._held -= self._kept.pop(next(iter(self._kept)))[1]
        return value


def array_bytes(*values: object) -> int:
    """Bytes of the arrays that are attributes of some values, or are in tuples and dictionaries that are."""
    return sum(array.nbytes for value in values for part in vars(value).values() for array in _arrays(part))


def _arrays(part: object) -> Iterator[np.ndarray[Any, Any]]:
    import numpy as np  # which the help of a command does without

    inner = part.values() if isinstance(part, Mapping) else part if isinstance(part, tuple) else (part,)
    return (array for array in inner if isinstance(array, np.ndarray))
