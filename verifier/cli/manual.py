"""The commands `verify manual`, `verify init`, `verify completion` and `verify schema`."""

import json
import shlex

from verifier.base.errors import unknown_error
from verifier.base.libraries import library
from verifier.cli.invocation import PROGRAM, Command
from verifier.evidence.settings import SchemaSettings
from verifier.manual.pages import (
    GALLERY,
    TOPICS,
    CompletionSettings,
    InitSettings,
    ManualSettings,
    contents,
    page,
    write_system,
)


def manual_command(arguments: ManualSettings, command: Command) -> int:
    """Run `verify manual`."""
    if arguments.html is not None:
        from verifier.manual.pages import write_website

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
    for verb_parser in parser.all_parsers():
        for action in verb_parser._actions:
            if action.nargs != 0 and not action.choices:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=arguments.shell))
    return 0


def schema_command(arguments: SchemaSettings, command: Command) -> int:
    """Run `verify schema`; the command is not recorded in what it prints."""
    from verifier.evidence.documents import OF_MODELS, OTHER_TYPES, SCHEMA_NAMES, schema_of

    names = sorted((*SCHEMA_NAMES, *OTHER_TYPES, OF_MODELS))

    if arguments.name is None:
        print("\n".join(names))
        return 0
    name = arguments.name if arguments.name in names else f"verifier.{arguments.name}"
    if name not in names:
        raise unknown_error("schema", arguments.name, names)
    print(json.dumps(schema_of(name), indent=2))
    return 0
