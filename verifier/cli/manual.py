"""The commands `verify manual` and `verify init`: what to read, and what to start from."""

from __future__ import annotations

import shlex

from verifier.cli.invocation import PROGRAM, Command
from verifier.manual.gallery import GALLERY, write_system
from verifier.manual.pages import TOPICS, contents, page
from verifier.manual.settings import InitSettings, ManualSettings


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
