"""Outputs of a command that could not be written, or would overwrite an input or each other, are refused at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from verifier.base.errors import UsageError
from verifier.base.options import Setting, chosen_of
from verifier.cli.sources import check_writable, is_one_of, with_models
from verifier.telling.figures.drawing import check_plot_target


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
    outputs = [(each, path) for each, path in _files(chosen) if each.option.role == "output"]
    sources = [*(path for each, path in _files(chosen) if each.option.role != "output"), *within]
    folders = [path for path in sources if apart and Path(path).is_dir()]
    for each, path in outputs:
        if each.name.startswith("plot"):
            check_plot_target(path)
    written: dict[str, str] = {}
    for each, target in outputs:
        if is_one_of(target, sources):
            raise UsageError(f"{each.full}: {target} is an input of this {what}")
        for path in folders:
            if Path(path).resolve() in Path(target).resolve().parents:
                raise UsageError(f"{each.full}: {target} is in an input of this {what}, {path}")
        before = len(written)
        other = written.setdefault(os.path.realpath(target), each.full)
        if target and len(written) == before and (Path(target).is_file() or not Path(target).exists()):
            both = f"{other} and {each.full}" if other != each.full else f"{other}: two outputs"
            raise UsageError(f"{both} would be written to the same file")
        check_writable(target)


def _files(chosen: list[tuple[Setting, Any]]) -> Iterator[tuple[Setting, str]]:
    """Every file that is named, with the option that names it; a spec with its model."""
    for each, value in chosen:
        paths = (value,) if isinstance(value, str) else value
        metavar = str(each.option.metavar)
        if isinstance(each.option.metavar, tuple) and paths:  # one of the values is the file
            paths = tuple(path for part, path in zip(each.option.metavar, paths, strict=True) if "FILE" in part)
        if each.option.role == "choice" or not paths or not isinstance(paths, tuple):
            continue
        if each.option.role == "output" and "FILE" not in metavar:
            continue
        if each.option.role != "output":
            paths = tuple(path for path in paths if path)  # where nothing is read, the name is empty
        for path in with_models(paths) if metavar == "SPEC" else paths:
            yield each, path
            if each.option.role == "named_file" and "=" in path:
                yield each, path.partition("=")[2]
