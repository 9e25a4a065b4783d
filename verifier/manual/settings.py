"""Every choice of `verify manual`, `verify init` and `verify completion`. Only light modules are imported."""

from dataclasses import dataclass
from typing import Annotated, Literal

from verifier.base.options import Option, writes


@dataclass(frozen=True, kw_only=True)
class ManualSettings:
    """Every choice of `verify manual`."""

    topic: Annotated[str | None, Option("a page; without it, the list", metavar="TOPIC", positional=True)] = None
    html: Annotated[str | None, writes("write all pages as HTML into this folder", metavar="FOLDER")] = None


@dataclass(frozen=True, kw_only=True)
class InitSettings:
    """Every choice of `verify init`."""

    name: Annotated[
        str | None,
        Option("a system of the gallery; without it a small system to change", metavar="NAME", positional=True),
    ] = None
    list: Annotated[bool, Option("list the systems of the gallery, and write nothing")] = False
    output: Annotated[
        str, writes("the folder to write to; files that are there are never replaced", metavar="FOLDER", also=("-o",))
    ] = "."


@dataclass(frozen=True, kw_only=True)
class CompletionSettings:
    """Every choice of `verify completion`."""

    shell: Annotated[Literal["bash", "zsh", "fish"], Option("{choices}", positional=True)]
