"""What the terminal is asked for: whether a person watches, progress bars or plain lines, colour. And what a command
writes: what could not be written, or would overwrite an input or each other, is refused at once.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from verifier.base.blocks import Share
from verifier.base.errors import InputError, Place, UsageError, one_line
from verifier.base.files import csv_text, document_text, write_bytes, write_text
from verifier.base.numbers import fixed
from verifier.base.options import Setting, chosen_of
from verifier.base.result import Result
from verifier.cli.invocation import Command, with_provenance
from verifier.telling.blocks import Block
from verifier.telling.figures.drawing import check_plot_target, figure_bytes
from verifier.telling.terminal import blocks_lines, text_of

Item = TypeVar("Item")


def is_watched() -> bool:
    """Whether a person can see a progress bar: stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def wants_colour() -> bool:
    """Whether stdout is a terminal, and NO_COLOR does not forbid it."""
    return sys.stdout is not None and sys.stdout.isatty() and "NO_COLOR" not in os.environ


EVERY_S = 30.0
"""Seconds between plain lines that tell progress, and before the first of them."""


def plain_lines(what: str, every_s: float = EVERY_S) -> Callable[[int, int], None]:
    """What is told how much of how much is done where stderr is no terminal: a line says so, but not more often."""
    start = last = time.monotonic()

    def told(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < every_s or sys.stderr is None:
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
    told = plain_lines(what, 0)
    for number, item in enumerate(finished, 1):
        told(number, count)
        yield item


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


def check_targets(settings: object, what: str = "run", within: Iterable[str] = (), *, apart: bool = False) -> None:
    """Refuse outputs before anything is computed; what outputs and inputs are is said by the settings.

    Args:
        settings: of the command.
        what: the command is called in messages.
        within: further inputs, such as the files of folders that the settings name.
        apart: whether no output may stand in a folder that is an input.

    Raises:
        UsageError: an output is an input, or another output; InputError: one could not be written.
    """
    chosen = list(chosen_of(settings))
    named = list(_files(chosen))
    outputs = [(setting, path) for setting, path in named if setting.option.role == "output"]
    sources = [*(path for setting, path in named if setting.option.role != "output"), *within]
    folders = [path for path in sources if apart and Path(path).is_dir()]
    for setting, path in outputs:
        if setting.name.startswith("plot"):
            check_plot_target(setting.full, path)
    written: dict[str, str] = {}
    for setting, target in outputs:
        if is_one_of(target, sources):
            raise UsageError(f"{setting.full}: {target} is an input of this {what}")
        for path in folders:
            if Path(path).resolve() in Path(target).resolve().parents:
                raise UsageError(f"{setting.full}: {target} is in an input of this {what}, {path}")
        before = len(written)
        other = written.setdefault(os.path.realpath(target), setting.full)
        if target and len(written) == before and (Path(target).is_file() or not Path(target).exists()):
            both = f"{other} and {setting.full}" if other != setting.full else f"{other}: two outputs"
            raise UsageError(f"{both} would be written to the same file")
        check_writable(target)


def give(settings: Any, document: str, table: Callable[[], str], **files: Callable[[str], str | bytes]) -> None:
    """Print the table, or with --json the document, and write it and what else is asked for.

    Everything is made before anything is written.

    Args:
        settings: of the command, with `output` and `json`.
        document: the JSON document.
        table: makes what a person reads.
        files: what makes the content of an output, from its path; by the name of its setting.
    """
    printed = document if settings.json else table()
    targets = {name: getattr(settings, name) for name in files if getattr(settings, name) is not None}
    paths = {name: path[-1] if isinstance(path, tuple) else path for name, path in targets.items()}
    made = {path: files[name](path) for name, path in paths.items()}
    if settings.output is not None:
        write_text(settings.output, document)
    for path, content in made.items():
        if isinstance(content, str):
            write_text(path, content)
        else:
            write_bytes(path, content)
    print(printed, end="")


def give_result(
    settings: Any,
    command: Command,
    result: Result,
    table: Callable[[], str] | None = None,
    document: str | None = None,
    /,
    **files: Callable[[str], str | bytes],
) -> None:
    """As `give`, what a result says of itself: its document with the command, its text, and of what its settings have
    its rows and pictures; unless `table`, `document` or `files` say otherwise."""
    own: dict[str, Callable[[str], str | bytes]] = {
        option: partial(_picture, result, option) for option in ("plot", *result.FURTHER)
    }
    own["csv"] = lambda _: csv_text(result.rows())
    known = {name: make for name, make in own.items() if hasattr(settings, name)}
    text = with_provenance(result.json_text(), command) if document is None else document
    give(settings, text, table or result.told, **{**known, **files})


def _picture(result: Result, option: str, path: str) -> bytes:
    return figure_bytes(result.plot(option), path)


def give_study(settings: Any, study: object, blocks: Iterable[Block], **files: Callable[[str], str | bytes]) -> None:
    """As `give`, a document that is told in blocks."""
    give(settings, document_text(study), lambda: text_of(blocks_lines(blocks)), **files)


def _files(chosen: list[tuple[Setting, Any]]) -> Iterator[tuple[Setting, str]]:
    """Every file that is named, with the option that names it; a spec with its model."""
    for setting, value in chosen:
        paths = (value,) if isinstance(value, str) else value
        metavar = str(setting.option.metavar)
        if isinstance(setting.option.metavar, tuple) and paths:  # one of the values is the file
            paths = tuple(path for part, path in zip(setting.option.metavar, paths, strict=True) if "FILE" in part)
        if setting.option.role == "choice" or not paths or not isinstance(paths, tuple):
            continue
        if setting.option.role == "output" and "FILE" not in metavar:
            continue
        if setting.option.role != "output":
            paths = tuple(path for path in paths if path)  # where nothing is read, the name is empty
        for path in with_models(paths) if metavar == "SPEC" else paths:
            yield setting, path
            if setting.option.role == "named_file" and "=" in path:
                yield setting, path.partition("=")[2]


def with_models(specs: Iterable[str]) -> Iterator[str]:
    """Specs, each with the model that it names; InputError as `verifier.language.specs.read_spec`."""
    from verifier.language.specs import read_spec

    for path in specs:
        yield path
        yield str(read_spec(path).model)


def is_one_of(target: str, sources: Iterable[str | None]) -> bool:
    """Whether a file to be written is one of those to be read, by whatever name."""
    return any(
        source and Path(target).exists() and Path(source).exists() and Path(target).samefile(source)
        for source in sources
    )


def check_writable(target: str) -> None:
    """Refuse a file that could not be written, before anything is computed for it; InputError."""
    if target == "-":
        raise InputError("a file would be called so: name one, or /dev/stdout for what is printed", Place(target))
    if not target or Path(target).is_dir() or not Path(target).absolute().parent.is_dir():
        raise InputError("cannot be written: no such folder, or a folder itself", Place(target or "''"))
