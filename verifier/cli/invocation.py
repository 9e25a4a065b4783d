"""The command that a document was made by, for the document itself, and where it is put in.

What is recorded can be typed again beside the inputs: `verify`, the verb, and the arguments as they were given, with
input files by name. Folders are left out, and so is whatever only says where results go and how they are shown, so
that equal inputs give equal bytes wherever they lie, whoever runs it.

With `--config FILE` a TOML file says what would be typed: each key is an option. Its words take the place of that
option, so that a document records them; what is typed beside it wins.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeAlias, get_origin

from verifier.base.checksums import with_checksums
from verifier.base.errors import UsageError
from verifier.base.options import CONFIG, Role, Setting, options_of, reading_of
from verifier.cli.verbs import VERBS

if TYPE_CHECKING:
    from verifier.base.toml import Element

Command: TypeAlias = tuple[str, ...]
"""A command as a document records it; empty where a program calls."""
PROGRAM = "verify"


def invocation(tokens: Sequence[str]) -> Command:
    """The command as a document records it. `tokens`: what was typed behind the program's name, and accepted."""
    head, rest = _split(tokens)
    verb = " ".join(head)
    return (PROGRAM, *head, *_recorded(_typed(verb, rest)))


def with_config(tokens: Sequence[str]) -> list[str]:
    """A command line in which the words of a TOML file stand instead of `--config FILE`.

    Args:
        tokens: what was typed behind the program's name.

    Raises:
        InputError: the file cannot be read, or a key or value is none of the command's; names the line and the key.
        UsageError: `--config` is given twice or without a file.
    """
    if not any(word.partition("=")[0] == CONFIG for word in tokens):
        return list(tokens)
    head, rest = _split(tokens)
    verb = " ".join(head)
    if verb not in VERBS:
        return list(tokens)
    kept, files, named = list[str](), list[str](), set[str]()
    for setting, name, values, tokens_of_it in _typed(verb, rest):
        if name == CONFIG:
            files += values or [""]
            continue
        kept += tokens_of_it
        named |= {setting.name} if setting is not None else set()
    if not files:  # the word stands behind `--`
        return list(tokens)
    if len(files) != 1 or not files[0]:
        raise UsageError(f"{CONFIG}: expected one TOML file")
    words = [word for setting, chosen in _chosen(verb, files[0]) if setting.name not in named for word in chosen]
    return [*head, *words, *kept]


def _chosen(verb: str, file: str) -> list[tuple[Setting, list[str]]]:
    """Each setting that a file chooses, with the words for it; those told by their place come first."""
    from verifier.base.toml import read_toml

    known: dict[str, Setting] = {}
    for _, setting in options_of(VERBS[verb].settings):
        for spelling in setting.all_spellings or (setting.full,):
            known[spelling.lstrip("-")] = known[spelling.lstrip("-").replace("-", "_")] = setting
    given: dict[str, tuple[Setting, list[str]]] = {}
    choices = read_toml(file).open_table()
    named = tuple(name for name in known if "_" not in name or choices.has(name))  # a message names each once
    for key, element in choices.table(named).entries():
        setting = known[key]
        if setting.name in given:
            raise element.fail(f"{setting.full} is given twice")
        given[setting.name] = setting, _words(setting, key, element)
    return sorted(given.values(), key=lambda chosen: not chosen[0].option.positional)


def _words(setting: Setting, key: str, element: Element) -> list[str]:
    """What would be typed for a value of a TOML file."""
    opposite = setting.option.opposite
    no = f"--{opposite[0]}" if opposite is not None else ""
    if setting.kind is bool:
        said = element.truth() == (key.replace("_", "-") != no[2:])
        return [setting.full] if said else [no] if no else []
    texts = _texts(setting, element)
    reading = reading_of(setting)
    for text in texts:
        try:
            value = reading["type"](text)
        except (argparse.ArgumentTypeError, UsageError, ValueError) as error:
            raise element.fail(str(error)) from None
        if value not in reading.get("choices", (value,)):
            raise element.fail(f"expected one of {', '.join(reading['choices'])}, got '{text}'")
    if setting.option.positional:
        return texts
    if setting.several:
        return [f"{setting.full}={text}" for text in texts]
    if len(texts) != setting.values:
        raise element.fail(f"expected {setting.values} values, got {len(texts)}")
    return [f"{setting.full}={texts[0]}"] if len(texts) == 1 else [setting.full, *texts]


def _texts(setting: Setting, element: Element) -> list[str]:
    """The texts of a value: a table stands for NAME=VALUE each, a list for several, or for one spelled a,b,c."""
    if isinstance(element.value, dict):
        if not (setting.several or get_origin(setting.kind) is Mapping):
            raise element.fail("expected a value, got a table")
        return [f"{name}={','.join(map(_text, _listed(inner)))}" for name, inner in element.entries()]
    if isinstance(element.value, list) and not setting.several and setting.values == 1:
        return [",".join(map(_text, element.items()))]
    return [_text(inner) for inner in _listed(element)]


def _listed(element: Element) -> list[Element]:
    return element.items() if isinstance(element.value, list) else [element]


def _text(element: Element) -> str:
    return repr(element.value) if element.is_number() else element.string()


def with_provenance(text: str, command: Command, more: Mapping[str, object] | None = None) -> str:
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


def _split(tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of the command, and what is behind them."""
    words = 2 if " ".join(tokens[:2]) in VERBS else 1
    return list(tokens[:words]), list(tokens[words:])


Typed: TypeAlias = tuple[Setting | None, str, list[str], list[str]]
"""A setting, its spelling (empty where its place tells), its values, and the tokens that say all this."""


def _recorded(typed: Iterator[Typed]) -> Iterator[str]:
    """What is recorded of what was typed."""
    for setting, name, values, _ in typed:
        role = setting.option.role if setting is not None else "choice"
        if role == "output" and name:
            continue
        if name:
            yield name
        yield from (_by_name(value, role) for value in values)


def _typed(verb: str, tokens: list[str]) -> Iterator[Typed]:
    """What stands behind a verb; the `--` before what is no option, and `--config`, are no settings."""
    settings = [setting for _, setting in options_of(VERBS[verb].settings)]
    named: dict[str, Setting | None] = {name: setting for setting in settings for name in setting.all_spellings}
    named[CONFIG] = None
    places = [setting for setting in settings if setting.option.positional]
    while tokens:
        token = tokens.pop(0)
        option = _option(token, named)
        if token == "--":  # everything behind is no option, whatever it looks like
            named = {}
            yield None, "", [token], [token]
        elif option is None:
            yield places[0] if places else None, "", [token], [token]
            places = places[1:] or places  # the last one may take any number
        else:
            name, attached = option
            setting = named[name]
            count = setting.values if setting is not None else 1
            values = tokens[:count] if attached is None else [attached]
            del tokens[: len(values) if attached is None else 0]
            yield setting, name, values, [token] if attached is not None else [token, *values]


def _option(token: str, named: Mapping[str, Setting | None]) -> tuple[str, str | None] | None:
    """The option that a token is, in its full spelling, and the value attached to it; None where it is no option."""
    if token in named:
        return token, None
    if token.startswith("--"):
        name, equals, value = token.partition("=")
        # The parser takes the beginning of an option for the option where only one begins so.
        known = [text for text in named if text == name] or [text for text in named if text.startswith(name)]
        return (known[0], value if equals else None) if known and name != "--" else None
    return (token[:2], token[2:].removeprefix("=")) if token[:2] in named else None  # -oFILE


def _by_name(value: str, role: Role) -> str:
    """A value as it is recorded: files without their folders, everything else as it was given."""
    if role not in ("file", "named_file"):
        return value
    name, equals, path = value.partition("=") if role == "named_file" and "=" in value else ("", "", value)
    return name + equals + (PurePath(path).name or ".")
