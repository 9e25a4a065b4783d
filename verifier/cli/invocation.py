"""The command that a document was made by, for the document itself, and where it is put in.

What is recorded can be typed again beside the inputs: `verify`, the verb, and the arguments as they were given, with
input files by name. Folders are left out, and so is whatever only says where results go and how they are shown, so
that equal inputs give equal bytes wherever they lie, whoever runs it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeAlias

from verifier.base.checksums import with_checksums
from verifier.base.options import Role, Setting, options_of
from verifier.cli.verbs import VERBS

Command: TypeAlias = tuple[str, ...]
"""A command as a document records it; empty where a program calls."""
PROGRAM = "verify"


def invocation(tokens: Sequence[str]) -> Command:
    """The command as a document records it.

    Args:
        tokens: what was typed behind the program's name, and accepted.
    """
    words = 2 if " ".join(tokens[:2]) in VERBS else 1
    verb, rest = " ".join(tokens[:words]), list(tokens[words:])
    return (PROGRAM, *tokens[:words], *_recorded(verb, rest))


def with_provenance(text: str, command: Command, more: Mapping[str, Any] | None = None) -> str:
    """The text of a document with the command that made it, behind its version; one line for each entry.

    Args:
        text: of a document of this program.
        command: as recorded; an empty one is not put in.
        more: further entries to put in, such as versions.

    Raises:
        ValueError: the text does not begin as the documents of this program do.
    """
    entries = ({"command": list(command)} if command else {}) | dict(more or {})
    head = re.match(r'\{\n  "schema": "[a-z_.]+",\n  "version": \d+,\n', text)
    if head is None:
        raise ValueError("not the text of a document of this program")
    lines = "".join(f"  {json.dumps(key)}: {json.dumps(value, allow_nan=False)},\n" for key, value in entries.items())
    return with_checksums(text[: head.end()] + lines + text[head.end() :]) if entries else text


def _recorded(verb: str, tokens: list[str]) -> Iterator[str]:
    """What is recorded of the tokens behind a verb."""
    settings = [setting for _, setting in options_of(VERBS[verb].settings)]
    named = {spelling: setting for setting in settings for spelling in setting.all_spellings}
    places = [setting for setting in settings if setting.option.positional]
    while tokens:
        token = tokens.pop(0)
        found = _option(token, named)
        if token == "--":  # everything behind is no option, whatever it looks like
            named = {}
            yield token
        elif found is None:
            yield _by_name(token, places[0].option.role)
            places = places[1:] or places  # the last one may take any number
        else:
            name, attached = found
            setting = named[name]
            values = [tokens.pop(0) for _ in range(setting.values)] if attached is None else [attached]
            if setting.option.role != "output":
                yield name
                yield from (_by_name(value, setting.option.role) for value in values)


def _option(token: str, named: Mapping[str, Setting]) -> tuple[str, str | None] | None:
    """The option that a token is, in its full spelling, and the value attached to it; None where it is no option."""
    if token in named:
        return token, None
    if token.startswith("--"):
        name, equals, value = token.partition("=")
        # The parser takes the beginning of an option for the option where only one begins so.
        known = [each for each in named if each == name] or [each for each in named if each.startswith(name)]
        return (known[0], value if equals else None) if known and name != "--" else None
    return (token[:2], token[2:].removeprefix("=")) if token[:2] in named else None  # -oFILE


def _by_name(value: str, role: Role) -> str:
    """A value as it is recorded: files without their folders, everything else as it was given."""
    if role not in ("file", "named_file"):
        return value
    name, equals, path = value.partition("=") if role == "named_file" and "=" in value else ("", "", value)
    return name + equals + (PurePath(path).name or ".")
