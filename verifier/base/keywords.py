"""Settings from the keywords of a function, read as the command line would read them."""

import argparse
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import MISSING
from fractions import Fraction
from pathlib import PurePath
from typing import Any, Literal, TypeAlias, get_args, get_origin

from verifier.base.errors import UsageError, shown, unknown_name
from verifier.base.numbers import decimal_text
from verifier.base.options import Setting, Settings, chosen_of, options_of, reading_of, settings_of

Typed: TypeAlias = Literal[True] | str | tuple[str, ...]
"""A value as it would be typed: a flag, one text, or each of several."""


def settings_from(settings: type[Settings], choices: Mapping[str, object], outputs: Container[str] = ()) -> Settings:
    """The settings that keywords choose: the names of the options, with `_` for `-`, or those of the fields.

    Where an option reads a text, that text or the value that it means will do; one value will do where there may be
    several. What says where results go is no choice, unless it must be said or is among `outputs`: a function gives
    its result.

    Raises:
        UsageError: an unknown name, or no such word; as `settings_of`.
    """
    known: dict[str, Setting] = {}
    for _, setting in options_of(settings):
        if setting.option.role != "output" or setting.default is MISSING or setting.name in outputs:
            known[setting.name] = setting
            known.setdefault(setting.field or setting.name, setting)
    typed: dict[str, object] = {}
    for name, value in choices.items():
        if name not in known:
            message, hint = unknown_name("choice", name, known)
            raise UsageError(f"{message}: {hint}")
        setting = known[name]
        if value is not None:
            typed[setting.name] = _meant(setting, value, name)
        elif setting.default is not None:
            raise UsageError(f"{name}: expected a value")
    for setting in known.values():
        if setting.default is MISSING and setting.name not in typed:
            raise UsageError(f"{setting.name}: expected a value")
    return settings_of(argparse.Namespace(**typed), settings)


def keywords_of(settings: object) -> dict[str, Typed]:
    """The keywords by which `settings_from` makes such settings, but for what is as by default."""
    keywords: dict[str, Typed] = {}
    for setting, value in chosen_of(settings):
        if value != setting.default:
            spell = setting.option.spell or _spelled
            if get_origin(setting.kind) is Mapping:
                keywords[setting.name] = tuple(f"{name}={spell(part)}" for name, part in value.items())
            else:
                keywords[setting.name] = tuple(map(spell, value)) if setting.several else spell(value)
    return keywords


def _spelled(value: Any) -> Any:
    """What would be typed for a value; True for a flag."""
    if isinstance(value, tuple):
        return ",".join(map(_spelled, value))
    if isinstance(value, Fraction):
        return decimal_text(value)
    if isinstance(value, float):
        return repr(float(value))  # one of numpy's has another
    return value if isinstance(value, str | bool) else repr(value)


def _meant(setting: Setting, value: Any, name: str) -> Any:
    """What `argparse` would make of a value that a keyword gives."""
    one = _one(setting, name)
    if get_origin(setting.kind) is Mapping:
        pairs = value.items() if isinstance(value, Mapping) else [value] if isinstance(value, str) else value
        return [one(pair) if isinstance(pair, str) else pair for pair in pairs]
    if setting.several or (setting.values > 1 and not isinstance(value, str)):
        listed = [value] if isinstance(value, str | PurePath) or not isinstance(value, Iterable) else value
        return [one(part) for part in listed]
    return one(value)


def _one(setting: Setting, name: str) -> Callable[[Any], Any]:
    """What makes the value of one that is a text or meant already; `name` is what errors name."""
    reading = reading_of(setting)
    words = reading.get("choices")
    kind = get_args(setting.kind)[0] if setting.several else setting.kind
    number = kind in (int, float, Fraction)
    plain = number or kind is str

    def convert(value: Any) -> Any:
        if (setting.kind is bool) != isinstance(value, bool):
            expected = "True or False" if setting.kind is bool else "a value"
            raise UsageError(f"{name}: expected {expected}, got {shown(value)}")
        if plain and isinstance(value, Iterable) and not isinstance(value, str):
            given = list(value) if isinstance(value, list | tuple | Mapping) else value
            raise UsageError(f"{name}: expected one value, got {shown(given)}")
        text = str(value) if isinstance(value, PurePath) else value
        if number and isinstance(value, int | float):
            text = (setting.option.spell or _spelled)(value)  # what is typed has limits, and its decimals are meant
        if setting.kind is bool or not isinstance(text, str):
            return text
        try:
            converted = reading["type"](text)
        except (argparse.ArgumentTypeError, ValueError) as error:
            raise UsageError(f"{name}: {error}") from None
        if words is not None and converted not in words:
            raise UsageError(f"{name}: expected one of {', '.join(words)}, got {shown(text)}")
        return converted

    return convert
