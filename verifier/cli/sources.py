"""The files that a command reads and writes: none is overwritten by another, or found at the end to be unwritable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from verifier.base.errors import InputError, Place
from verifier.language.specs import read_spec


def with_models(specs: Iterable[str]) -> Iterator[str]:
    """Specs, each with the model that it names; InputError as `verifier.language.specs.read_spec`."""
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
    if not target or Path(target).is_dir() or not Path(target).absolute().parent.is_dir():
        raise InputError("cannot be written: no such folder, or a folder itself", Place(target or "''"))
