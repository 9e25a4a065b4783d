"""The command `verify schema`: the JSON Schemas of the documents that this program writes."""

from __future__ import annotations

import argparse
import json

from verifier.base.errors import UsageError, unknown_name

HELP = "Print the JSON Schema of a kind of document, or, without a name, the names of all kinds."


def add_schema_arguments(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the subcommands of the program."""
    parser = commands.add_parser("schema", help="print the JSON Schema of a kind of document", description=HELP)
    parser.add_argument("name", metavar="NAME", nargs="?", help="such as verifier.run, or run")
    parser.set_defaults(command=schema_command)


def schema_command(arguments: argparse.Namespace) -> int:
    """Run `verify schema`."""
    from verifier.evidence.documents import OTHER_TYPES, SCHEMA_NAMES, schema_of

    names = sorted((*SCHEMA_NAMES, *OTHER_TYPES))

    if arguments.name is None:
        print("\n".join(names))
        return 0
    name = arguments.name if arguments.name in names else f"verifier.{arguments.name}"
    if name not in names:
        message, hint = unknown_name("schema", arguments.name, names)
        raise UsageError(f"{message}\n  hint: {hint}")
    print(json.dumps(schema_of(name), indent=2))
    return 0
