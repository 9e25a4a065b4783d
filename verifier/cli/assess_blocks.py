"""Headings, sentences and tables, and how they look on a terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from verifier.base.errors import one_line
from verifier.cli.tables import aligned
from verifier.telling.markdown import escaped


@dataclass(frozen=True)
class Table:
    """A table with its header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block: TypeAlias = str | Table
"""A sentence or a table."""


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    heading: str
    blocks: tuple[Block, ...]


def plain_lines(section: Section) -> Iterator[str]:
    """The section for a terminal."""
    heading = one_line(section.heading)
    yield heading
    yield "=" * len(heading)
    for block in section.blocks:
        if isinstance(block, str):
            yield one_line(block)
        else:
            yield from aligned([*map(one_line, block.header)], [[*map(one_line, row)] for row in block.rows])


def markdown_lines(section: Section, level: int) -> Iterator[str]:
    """The section in Markdown, under a heading of this level."""
    yield f"{'#' * level} {escaped(section.heading, begins=False)}"
    for block in section.blocks:
        yield ""
        if isinstance(block, str):
            yield escaped(block)
        else:
            yield _row(block.header)
            yield "|" + "---|" * len(block.header)
            yield from map(_row, block.rows)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(escaped(each, begins=False) for each in cells) + " |"
