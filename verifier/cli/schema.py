"""The command `verify schema`: the JSON Schemas of the documents that this program writes, and of model files."""

from __future__ import annotations

import json

from verifier.base.errors import UsageError, unknown_name
from verifier.cli.invocation import Command
from verifier.evidence.settings import SchemaSettings


def schema_command(arguments: SchemaSettings, command: Command) -> int:
    """Run `verify schema`; the command is not recorded in what it prints."""
    from verifier.evidence.documents import OF_MODELS, OTHER_TYPES, SCHEMA_NAMES, schema_of

    names = sorted((*SCHEMA_NAMES, *OTHER_TYPES, OF_MODELS))

    if arguments.name is None:
        print("\n".join(names))
        return 0
    name = arguments.name if arguments.name in names else f"verifier.{arguments.name}"
    if name not in names:
        message, hint = unknown_name("schema", arguments.name, names)
        raise UsageError(f"{message}\n  hint: {hint}")
    print(json.dumps(schema_of(name), indent=2))
    return 0
