"""The commands `verify manual`, `verify init` and `verify completion`: for those who begin, and who type."""

from __future__ import annotations

import shlex

from verifier.base.libraries import library
from verifier.cli.invocation import PROGRAM, Command
from verifier.manual.gallery import GALLERY, write_system
from verifier.manual.pages import TOPICS, contents, page
from verifier.manual.settings import CompletionSettings, InitSettings, ManualSettings


def manual_command(arguments: ManualSettings, command: Command) -> int:
    """Run `verify manual`."""
    if arguments.html is not None:
        from verifier.manual.website import write_website

        print(f"wrote {len(TOPICS)} pages; begin with {write_website(arguments.html)}")
        return 0
    print((contents() if arguments.topic is None else page(arguments.topic)).rstrip("\n"))
    return 0


def init_command(arguments: InitSettings, command: Command) -> int:
    """Run `verify init`."""
    if arguments.list:
        width = max(map(len, GALLERY))
        print("\n".join(f"{name:<{width}}  {system.shows}" for name, system in GALLERY.items()))
        return 0
    model, spec, matrices = write_system(arguments.name, arguments.output)
    print(f"wrote {model}, {spec} and {matrices}")
    print(f"next: {PROGRAM} run {shlex.quote(str(spec))} --cm {shlex.quote(str(matrices))}")
    return 0


def completion_command(arguments: CompletionSettings, command: Command) -> int:
    """Run `verify completion`: every command and option; what takes a free value is completed as a file."""
    from verifier.cli import command_parser

    shtab = library("shtab")
    parser = command_parser()
    for each in parser.all_parsers():
        for action in each._actions:
            if action.nargs != 0 and not action.choices:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=arguments.shell))
    return 0
