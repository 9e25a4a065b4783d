"""The parser of a command line: each command gets its options when it is asked for, for most are not."""

from __future__ import annotations

import argparse
import itertools
import re
import textwrap
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, NoReturn

from verifier.base.errors import nearest_name, one_line, shown
from verifier.base.options import add_common, add_options, options_of, settings_of, show_only
from verifier.cli.evidence_texts import FAMILY_HELP
from verifier.cli.verbs import FAMILIES, VERBS, Verb


class HelpText(argparse.HelpFormatter):
    """Help whose paragraphs fit the terminal; lines that are indented, such as examples, stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        told: list[str] = []
        for is_kept, group in itertools.groupby(text.rstrip().split("\n"), lambda line: line[:1] in ("", " ")):
            lines = list(group)
            told += lines if is_kept else textwrap.wrap(" ".join(lines), width, break_on_hyphens=False)
        return "\n".join(told) + "\n"


class VerbParser(argparse.ArgumentParser):
    """A parser that gets its options when it is asked, for most commands are not."""

    fill: Callable[[VerbParser, Collection[str]], None] | None = None

    def all_parsers(self) -> Iterator[VerbParser]:
        """This one and those of all commands below, each with all its options."""
        self._fill(("--help-all",))
        yield self
        for below in self._below().values():
            yield from below.all_parsers()

    def _fill(self, words: Collection[str]) -> None:
        fill, self.fill = self.fill, None
        if fill is not None:
            fill(self, words)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As the base class, with all options."""
        self._fill(args)
        for word in itertools.takewhile(lambda word: word != "--" and word not in self._below(), args):
            name = word.partition("=")[0]
            if name.startswith("--") and not any(known.startswith(name) for known in self._option_string_actions):
                self._refuse(f"unknown option {shown(name)}", nearest_name(name, self._option_string_actions))
        parsed, rest = super().parse_known_args(args, namespace)
        if rest and not self._below():
            before = args[args.index(rest[0]) - 1] if rest[0] in args[1:] else ""
            takes_none = f": {before} takes no value" if before in self._option_string_actions else ""
            self._refuse(f"unexpected argument {shown(rest[0])}{takes_none}", None)
        return parsed, rest

    def _below(self) -> dict[str, VerbParser]:
        groups: list[Any] = self._subparsers._group_actions if self._subparsers is not None else []
        return {name: parser for group in groups for name, parser in group.choices.items()}

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where to read on, without the list of all options; exit code 2."""
        wrong = re.match(r"argument COMMAND: invalid choice: '(.*?)'", message)
        if wrong:
            self._refuse(f"unknown command '{wrong[1]}'", nearest_name(wrong[1], self._below()))
        self._refuse(message, None)

    def _refuse(self, message: str, nearest: str | None) -> NoReturn:
        meant = f"did you mean {nearest}? " if nearest is not None else ""
        self.exit(2, f"verify: {one_line(message)}\n  hint: {meant}see {self.prog} --help\n")


def add_verbs(commands: Any, family: str = "") -> None:
    """Add the commands of a family to those of a parser; at the top every family, too."""
    for name in [*VERBS, *FAMILIES]:
        above, _, word = name.rpartition(" ")
        if above != family or word in commands.choices:
            continue
        verb = VERBS.get(name)
        if verb is None:
            told = FAMILY_HELP[word]
            parser = commands.add_parser(word, help=told, description=f"{told[0].upper()}{told[1:]}.")
        else:
            parser = commands.add_parser(
                word, help=verb.help, description=verb.description, epilog=verb.epilog, formatter_class=HelpText
            )
            parser.set_defaults(command=partial(_run, verb))
        parser.fill = partial(_fill, name=name)


def _fill(parser: VerbParser, words: Collection[str], name: str) -> None:
    below = f"{name} {next(iter(words), '')}" in VERBS
    # Where a word could be a place or a command, it is what is typed first that says which of both is meant.
    placed = name in VERBS and any(setting.option.positional for _, setting in options_of(VERBS[name].settings))
    if name in VERBS and not (placed and below):
        add_options(parser, VERBS[name].settings)
        add_common(parser)
        if VERBS[name].common:
            show_only(parser, VERBS[name].common.split(), words)
    if name in FAMILIES and (below or not placed or "--help-all" in words):
        how = {"title": FAMILIES[name], "metavar": "COMMAND", "prog": parser.prog}
        add_verbs(parser.add_subparsers(**how, required=name not in VERBS), name)


def _run(verb: Verb, arguments: argparse.Namespace) -> int:
    settings: Any = settings_of(arguments, verb.settings)
    return int(verb.function(settings, arguments.invocation))
