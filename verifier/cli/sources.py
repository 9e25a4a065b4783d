"""The files that a command reads, so that none of them is overwritten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from verifier.specs import read_spec


def with_models(specs: Iterable[str]) -> Iterator[str]:
    """Specs, each with the model that it names; InputError as `verifier.specs.read_spec`."""
    for path in specs:
        yield path
        yield str(read_spec(path).model)


def is_one_of(target: str, sources: Iterable[str | None]) -> bool:
    """Whether a file to be written is one of those to be read, by whatever name."""
    return any(
        source and Path(target).exists() and Path(source).exists() and Path(target).samefile(source)
        for source in sources
    )
