"""Work that is counted and not timed: the same on a loaded machine as on a free one."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterator
from typing import Any


def calls_of(work: Callable[[], object]) -> int:
    """How many functions, compiled ones included, are called while `work` runs in this thread."""
    return _events(work, sys.getprofile, sys.setprofile, ("call", "c_call"))


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python `work` runs in this thread, each pass of a loop counted."""
    return _events(work, sys.gettrace, sys.settrace, ("line",))


def _events(
    work: Callable[[], object], watching: Callable[[], Any], watch: Callable[[Any], None], counted: Container[str]
) -> int:
    count = 0

    def seen(frame: object, event: str, argument: object) -> Any:
        nonlocal count
        count += event in counted
        return seen

    before = watching()
    watch(seen)
    try:
        work()
    finally:
        watch(before)
    return count


@contextlib.contextmanager
def counted_calls(*functions: Callable[..., object]) -> Iterator[Counter[str]]:
    """How often each of some functions of the package is called in the block, by name.

    They are replaced in every module that names them, also in one that is imported in the block.
    """
    count: Counter[str] = Counter()

    def counting(function: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(function)
        def counted(*args: object, **keywords: object) -> object:
            count[function.__name__] += 1
            return function(*args, **keywords)

        return counted

    replaced = {function: counting(function) for function in functions}
    _exchange(replaced)
    try:
        yield count
    finally:
        _exchange({counted: function for function, counted in replaced.items()})


def _exchange(new_of: dict[Callable[..., object], Callable[..., object]]) -> None:
    names = {function.__name__ for function in new_of}
    modules = [module for name, module in sys.modules.items() if name.startswith("verifier.")]
    for module in modules:
        for name in names & vars(module).keys():
            setattr(module, name, new_of.get(getattr(module, name), getattr(module, name)))
