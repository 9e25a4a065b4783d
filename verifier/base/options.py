"""Settings as options of the command line: a field of a settings class says once what can be chosen.

A settings class is a frozen dataclass whose fields are annotated, as `draws: Annotated[int, Option("to make")] = 5`.
From the field follow the argument of the command line with its help, the value that a command gets, the keyword in
Python, and what of a command line is recorded. The default stands in the class alone: what was not typed is not in
the namespace of `argparse`.

| type                     | on the command line                                             |
|--------------------------|-----------------------------------------------------------------|
| `bool`                   | a flag; with `Option.opposite` two that exclude each other       |
| `Literal[...]`           | one of these words; `-` may be typed for `_`                     |
| `tuple[X, ...]`          | given once for each value                                       |
| `tuple[X, X]`            | given once with as many values                                  |
| `Mapping[str, X]`        | given once for each pair that `Option.parse` makes of a text    |
| a settings class (`Part`)| its fields; None where the flag `Part.absent` leaves it out     |

A field without annotation is no option; one without default must be given.
"""

import argparse
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from verifier.base.errors import UsageError, shown
from verifier.base.numbers import number_words
from verifier.base.words import listed

Settings = TypeVar("Settings")
Role = Literal["choice", "file", "named_file", "output"]
"""An input file, perhaps with NAME= before it; an output: where results go, how they are shown, who does the work."""
CONFIG = "--config"


@dataclass(frozen=True)
class Option:
    """What people are told of a setting, and how it is spelled.

    Attributes:
        help: `{choices}` stands for the words that can be chosen; the default is added where it does not say it.
        name: without dashes, where it is not that of the field; two fields of one name get the same value.
        also: further spellings, as `-o`.
        metavar: what stands for the value; for several values one for each.
        parse: the value of a text; ArgumentTypeError or UsageError where it is none.
        spell: the text of a value, where that does not follow from its type.
        group: title of the group of arguments that begins here.
        role: what of it is recorded, see `verifier.cli.invocation`.
        positional: whether it is told by its place instead of its name.
        once: one text, of which `parse` makes all values.
        listed: whether it is an option here, and not only has the value of another of its name.
        opposite: name and help of the flag that says no.
        default: how the default is spelled, where `number_words` would not do.
        of: the names of what must be typed, too, one of them, for it to mean anything.
        alone: whether it is refused where it is given twice; of other options with one value the last counts.
    """

    help: str = ""
    name: str = ""
    also: tuple[str, ...] = ()
    metavar: str | tuple[str, ...] | None = None
    parse: Callable[[str], Any] | None = None
    spell: Callable[[Any], str] | None = None
    group: str | None = None
    role: Role = "choice"
    positional: bool = False
    once: bool = False
    listed: bool = True
    opposite: tuple[str, str] | None = None
    default: str = ""
    of: str = ""
    alone: bool = False


def reads(text: str, metavar: str = "FILE", **more: Any) -> Option:
    """An option that names an input file or folder; more as for `Option`."""
    return Option(text, metavar=metavar, role="file", **more)


def writes(text: str, metavar: str | tuple[str, ...] = "FILE", **more: Any) -> Option:
    """An option that names an output; more as for `Option`."""
    return Option(text, metavar=metavar, role="output", **more)


@dataclass(frozen=True)
class Part:
    """A settings class within another.

    Attributes:
        fixed: fields that are no options here, with their values.
        titles: its titles of groups -> those that stand here instead; an empty one for no group.
        absent: the flag that leaves the part out: None takes its place.
    """

    fixed: Mapping[str, object] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    absent: Option | None = None


@dataclass(frozen=True)
class Setting:
    """A field that is an option: its type, `| None` left out, and its default (`MISSING` where it must be given)."""

    field: str
    kind: Any
    option: Option
    default: Any

    @property
    def name(self) -> str:
        """Of the attribute of the namespace."""
        return (self.option.name or self.field).replace("-", "_")

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every spelling with dashes, those that say no left out; empty for one told by its place."""
        if self.option.positional:
            return ()
        short = tuple(name for name in self.option.also if not name.startswith("--"))
        long = tuple(name for name in self.option.also if name.startswith("--"))
        return (*short, self.full, *long)

    @property
    def full(self) -> str:
        """Its name with dashes."""
        return "--" + self.name.replace("_", "-")

    @property
    def all_spellings(self) -> tuple[str, ...]:
        """Those that say no included."""
        return (*self.spellings, *((f"--{self.option.opposite[0]}",) if self.option.opposite else ()))

    @property
    def several(self) -> bool:
        """Whether it takes any number of values."""
        if self.option.once:
            return False
        return get_origin(self.kind) is Mapping or (get_origin(self.kind) is tuple and get_args(self.kind)[-1] is ...)

    @property
    def values(self) -> int:
        """How many values stand behind its name."""
        if self.kind is bool or self.option.once:
            return 0 if self.kind is bool else 1
        return len(get_args(self.kind)) if get_origin(self.kind) is tuple and not self.several else 1


def options_of(settings: type, part: Part = Part(), title: str = "") -> list[tuple[str, Setting]]:
    """Every option of a settings class, each once, with the title of its group, which begins as `title`."""
    options: dict[str, tuple[str, Setting]] = {}
    for own, kind, note in _fields(settings):
        if own.name in part.fixed:
            continue
        if isinstance(note, Part):
            below = options_of(kind, note, title)
            if note.absent is not None:
                below.append((below[-1][0], Setting("", bool, note.absent, False)))
        elif isinstance(note, Option) and note.listed:
            title = note.group if note.group is not None else title
            below = [(title, Setting(own.name, kind, note, _default(own)))]
        else:
            continue
        for of, setting in below:
            options.setdefault(setting.name, (part.titles.get(of, of), setting))
            title = of
    return list(options.values())


def chosen_of(settings: object) -> Iterator[tuple[Setting, Any]]:
    """Every option of settings with its value, those of parts included; True for the flag of a part left out."""
    for own, kind, note in _fields(type(settings)):  # type: ignore[arg-type]
        value = getattr(settings, own.name)
        if isinstance(note, Option):
            yield Setting(own.name, kind, note, _default(own)), value
        elif isinstance(note, Part) and value is not None:
            yield from chosen_of(value)
        elif isinstance(note, Part) and note.absent is not None:
            yield Setting("", bool, note.absent, False), True


class _Alone(argparse.Action):
    """Of an option with one value: given twice, neither is dropped without a word."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if getattr(namespace, self.dest, values) != values:
            raise argparse.ArgumentError(self, "given twice, with different values: name one")
        setattr(namespace, self.dest, values)


def add_options(parser: argparse.ArgumentParser, settings: type) -> None:
    """Add every option of a settings class to a parser, in the order of its fields."""
    groups: dict[str, Any] = {"": parser}
    for title, setting in options_of(settings):
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        group, option = groups[title], setting.option
        how: dict[str, Any] = {"help": _help(setting), "default": argparse.SUPPRESS}
        if option.metavar is not None:
            how["metavar"] = option.metavar
        if option.positional:
            group.add_argument(setting.name, **how, **reading_of(setting), **_places(setting))
            continue
        how |= {"dest": setting.name, "required": setting.default is MISSING}
        if setting.kind is not bool:
            group.add_argument(*setting.spellings, **how, **reading_of(setting), **_times(setting))
        elif option.opposite is None:
            group.add_argument(*setting.spellings, **how, action="store_true")
        else:
            name, text = option.opposite
            flags = group.add_mutually_exclusive_group()
            flags.add_argument(*setting.spellings, **how, action="store_true")
            flags.add_argument(f"--{name}", **(how | {"help": text}), action="store_false")


def show_only(parser: argparse.ArgumentParser, names: Collection[str], words: Collection[str]) -> None:
    """Let the help of a parser show only options of these names, unless `--help-all` is among the words typed.

    Raises:
        ValueError: the parser has no option of one of the names.
    """
    spelled = {f"--{name}" for name in names} | {"--help"}
    if not spelled <= parser._option_string_actions.keys():
        raise ValueError(f"no options of these names: {sorted(spelled - parser._option_string_actions.keys())}")
    hidden = [one for one in parser._actions if one.option_strings and spelled.isdisjoint(one.option_strings)]
    parser.add_argument("--help-all", action="help", help=f"show this help with {len(hidden)} more options and exit")
    if "--help-all" in words:
        return
    for action in hidden:
        action.help = argparse.SUPPRESS
    places = [str(action.metavar or action.dest) for action in parser._actions if not action.option_strings]
    parser.usage = " ".join(["%(prog)s", "[options]", *places])


def add_common(parser: argparse.ArgumentParser, version: str | None = None) -> None:
    """Add the option that shows a version and stops, or `--config`, whose words stand in its place before parsing."""
    if version is not None:
        parser.add_argument("--version", action="version", version=version)
        return
    parser.add_argument(CONFIG, metavar="FILE", default=argparse.SUPPRESS, help="options in a TOML file")


def settings_of(arguments: argparse.Namespace, settings: type[Settings], part: Part = Part()) -> Settings:
    """The settings that were typed; what was not has its default.

    A class may have a method `check_given(names)` for what shows only in what was typed.

    Raises:
        UsageError: a name is given twice; nothing would come of an option; as the class.
    """
    given = vars(arguments)
    values = dict(part.fixed)
    for own, kind, note in _fields(settings):  # type: ignore[arg-type]
        if own.name in values:
            continue
        if isinstance(note, Part):
            absent = Setting("", bool, note.absent, False) if note.absent is not None else None
            if absent is None or absent.name not in given:
                values[own.name] = settings_of(arguments, kind, note)
                continue
            for _, inner in options_of(kind, note):
                if inner.name in given:
                    raise UsageError(f"{inner.full} needs what {absent.full} leaves out: name one of the two")
            values[own.name] = None
        elif isinstance(note, Option):
            setting = Setting(own.name, kind, note, None)
            if setting.name in given:
                needed = note.of.split()
                if needed and given.keys().isdisjoint(name.replace("-", "_") for name in needed):
                    raise UsageError(f"{setting.full} belongs to {listed([f'--{name}' for name in needed], 'or')}")
                values[own.name] = _value(setting, given[setting.name])
    chosen = settings(**values)
    check = getattr(chosen, "check_given", None)
    if check is not None:
        check(frozenset(given) - frozenset(part.fixed))
    return chosen


@cache
def _fields(settings: type) -> tuple[tuple[Field[Any], Any, Option | Part | None], ...]:
    hints = typing.get_type_hints(settings, include_extras=True)
    return tuple((own, *_kind(hints[own.name])) for own in fields(settings))


def _kind(hint: Any) -> tuple[Any, Option | Part | None]:
    """A type without `| None`, and what it is annotated with."""
    if get_origin(hint) is Annotated:
        return _kind(get_args(hint)[0])[0], get_args(hint)[1]
    if get_origin(hint) in (types.UnionType, typing.Union):
        return _kind(next(kind for kind in get_args(hint) if kind is not types.NoneType))
    return hint, None


def _default(own: Field[Any]) -> Any:
    return own.default_factory() if own.default_factory is not MISSING else own.default


def _words(kind: Any) -> tuple[str, ...]:
    """The words of a vocabulary, or of many values of one; empty where any value can be."""
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
    return get_args(kind) if get_origin(kind) is Literal else ()


def reading_of(setting: Setting) -> dict[str, Any]:
    """What makes a value of a text, as keywords of `add_argument`."""
    words = _words(setting.kind)
    if words:
        spelled = {word.replace("-", "_"): word for word in words}
        return {"type": lambda text: spelled.get(text.replace("-", "_"), text), "choices": words}
    kind = get_args(setting.kind)[0] if get_origin(setting.kind) is tuple else setting.kind
    return {"type": setting.option.parse or kind}


def _places(setting: Setting) -> dict[str, object]:
    """How many places an argument has that is told by its place."""
    if setting.several:
        return {"nargs": "+" if setting.default is MISSING else "*"}
    return {} if setting.default is MISSING else {"nargs": "?"}


def _times(setting: Setting) -> dict[str, object]:
    """How often an option may be given, and how many values it has."""
    if setting.several:
        return {"action": "append"}
    alone = {"action": _Alone} if setting.option.alone else {}
    return alone | ({"nargs": setting.values} if setting.values > 1 else {})


def _value(setting: Setting, typed: Any) -> Any:
    if get_origin(setting.kind) is not Mapping:
        return tuple(typed) if get_origin(setting.kind) is tuple else typed
    names = [name for name, _ in typed]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{setting.spellings[0]}: {name} is given twice")
    return dict(typed)


def _help(setting: Setting) -> str:
    option, default = setting.option, setting.default
    text = option.help.replace("{choices}", ", ".join(_words(setting.kind)))
    told = isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    told = told and default == default  # NaN stands for what must be named
    if not (told or option.default) or "default" in text:
        return text
    return f"{text} (default: {option.default or number_words(default)})".lstrip()


Printed = Annotated[bool, Option("print the result as JSON instead of a table", group="output", role="output")]
PrintedTables = Annotated[bool, Option("print the result as JSON instead of tables", group="output", role="output")]
Written = Annotated[str | None, Option("write the result as JSON", also=("-o",), metavar="FILE", role="output")]
WHO = "who works: N processes of this machine, or the workers of a Dask scheduler"
Scheduler = Annotated[str | None, Option(WHO, metavar="N|ADDRESS", role="output")]
"""What most commands do with their result."""


def pair(option: str, expected: str, text: str) -> tuple[str, str]:
    """NAME=VALUE in two; UsageError."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name or not value:
        raise UsageError(f"{option}: expected {expected}, got {shown(text)}")
    return name, value


def limited(kind: Callable[[str], Any], accepts: Callable[[Any], bool], expected: str) -> Callable[[str], Any]:
    """What reads a value of a kind that is accepted, for `Option.parse`."""

    def convert(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not accepts(value):
            raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
        return value

    return convert


def whole(least: int, most: int = 2**31 - 1) -> Callable[[str], Any]:
    """What reads a whole number in a range."""
    return limited(int, lambda value: least <= value <= most, f"a whole number from {least} to {most}")


above_0 = limited(float, lambda value: 0 < value < float("inf"), "a number above 0")
whole_above_0 = limited(int, lambda value: value > 0, "a whole number above 0")
from_0 = limited(float, lambda value: 0 <= value < float("inf"), "a number from 0")
share = limited(float, lambda value: 0 < value < 1, "a number between 0 and 1, both excluded")
