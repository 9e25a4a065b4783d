"""The command that a document was made by, for the document itself, and where it is put in.

What is recorded can be typed again beside the inputs: `verify`, the verb, and the arguments as they were given, with
input files by name. Folders are left out, and so is whatever only says where results go and how they are shown, so
that equal inputs give equal bytes wherever they lie, whoever runs it.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, TypeAlias

from verifier.base.options import Role, options_of
from verifier.cli.verbs import VERBS

Command: TypeAlias = tuple[str, ...]
"""A command as a document records it; empty where a program calls."""
PROGRAM = "verify"
_WRITTEN = {"json", "output"}
_CI = {"junit", "junit_inconclusive", "sarif", "in_toto"}

OUTPUTS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "run": frozenset(_WRITTEN | {"csv", "plot", "plot_scale", "export", "points", "parse"} | _CI),
        "explain": frozenset(_WRITTEN | {"plot"}),
        "require": frozenset(_WRITTEN | {"csv"}),
        "compare": frozenset(_WRITTEN | {"csv", "plot", "pairs", "certificates"}),
        "evidence build": frozenset({"output", "force", "json"}),
        "evidence check": frozenset({"json"}),
    }
)
"""Verb -> arguments that say where results go, how they are shown and how the work is shared out; by their names."""

FILES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "run": frozenset({"spec", "cm", "baseline", "mix"}),
        "explain": frozenset({"spec", "cm", "record"}),
        "require": frozenset({"spec", "cm", "cost"}),
        "compare": frozenset({"spec", "cm", "baseline"}),
        "evidence build": frozenset({"spec", "cm", "context", "given"}),
        "evidence check": frozenset({"bundle"}),
    }
)
"""Verb -> arguments that name input files, as FILE or NAME=FILE."""

NAMED = frozenset({("compare", "cm")})
"""Verb and argument where a file may have a name before it, as NAME=FILE."""


def invocation(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> tuple[str, ...]:
    """The command as a document records it.

    Args:
        parser: of the whole program; it has accepted the tokens.
        tokens: what was typed behind the program's name.
    """
    return (PROGRAM, *_recorded(parser, list(tokens), ""))


def with_provenance(text: str, arguments: argparse.Namespace | Command, more: Mapping[str, Any] | None = None) -> str:
    """The text of a document with the command that made it, behind its version; one line for each entry.

    Args:
        text: of a document of this program.
        arguments: of the command; without `invocation` (a caller from Python) no command is put in.
        more: further entries to put in, such as versions.

    Raises:
        ValueError: the text does not begin as the documents of this program do.
    """
    command = arguments if isinstance(arguments, tuple) else getattr(arguments, "invocation", ())
    entries = ({"command": list(command)} if command else {}) | dict(more or {})
    head = re.match(r'\{\n  "schema": "[a-z_.]+",\n  "version": \d+,\n', text)
    if head is None:
        raise ValueError("not the text of a document of this program")
    lines = "".join(f"  {json.dumps(key)}: {json.dumps(value, allow_nan=False)},\n" for key, value in entries.items())
    return text[: head.end()] + lines + text[head.end() :]


def _recorded(parser: argparse.ArgumentParser, tokens: list[str], verb: str) -> Iterator[str]:
    """What is recorded of the tokens for one parser; a subcommand's parser goes on with what follows its name."""
    options = {text: action for action in parser._actions for text in action.option_strings}
    positional = iter(_names_of_positionals(parser))
    while tokens:
        token = tokens.pop(0)
        found = _option(token, options)
        if found is None:
            below = _subparser(parser, token)
            if below is not None:
                yield token
                yield from _recorded(below, tokens, f"{verb} {token}".strip())
                return
            if token == "--":  # everything behind is no option, whatever it looks like
                options = {}
            yield token if token == "--" else _by_name(token, verb, next(positional, ""))
            continue
        name, attached = found
        action = options[name]
        values = _values(action, tokens) if attached is None else [attached]
        if _role(verb, action.dest) != "output":
            yield name
            yield from (_by_name(value, verb, action.dest) for value in values)


def _names_of_positionals(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The positional argument that each token belongs to; the last one may take any number."""
    names = [
        action.dest for action in parser._actions if not action.option_strings and action.dest != argparse.SUPPRESS
    ]
    yield from names
    while names:
        yield names[-1]


def _subparser(parser: argparse.ArgumentParser, token: str) -> argparse.ArgumentParser | None:
    for action in parser._actions:
        if isinstance(action.choices, dict) and not action.option_strings:
            found = action.choices.get(token)
            if isinstance(found, argparse.ArgumentParser):
                return found
    return None


def _option(token: str, options: Mapping[str, argparse.Action]) -> tuple[str, str | None] | None:
    """The option that a token is, in its full spelling, and the value attached to it; None where it is no option."""
    if token in options:
        return token, None
    if token.startswith("--"):
        name, equals, value = token.partition("=")
        # The parser takes the beginning of an option for the option where only one begins so.
        known = [each for each in options if each == name] or [each for each in options if each.startswith(name)]
        return (known[0], value if equals else None) if known and name != "--" else None
    return (token[:2], token[2:].removeprefix("=")) if token[:2] in options else None  # -oFILE


def _values(action: argparse.Action, tokens: list[str]) -> list[str]:
    """Take the values of an option from the tokens behind it."""
    count = action.nargs if isinstance(action.nargs, int) else 1
    return [tokens.pop(0) for _ in range(count)]


def _by_name(value: str, verb: str, argument: str) -> str:
    """A value as it is recorded: files without their folders, everything else as it was given."""
    role = _role(verb, argument)
    if role not in ("file", "named_file"):
        return value
    name, equals, path = value.partition("=") if role == "named_file" and "=" in value else ("", "", value)
    return name + equals + (PurePath(path).name or ".")


def _role(verb: str, argument: str) -> Role:
    if verb in VERBS:
        roles: dict[str, Role] = {each.name: each.option.role for _, each in options_of(VERBS[verb].settings)}
        return roles.get(argument, "choice")
    if argument in OUTPUTS.get(verb, frozenset()):
        return "output"
    if argument not in FILES.get(verb, frozenset()):
        return "choice"
    return "named_file" if (verb, argument) in NAMED else "file"
