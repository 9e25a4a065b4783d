"""The JSON Schema of model files, for editors: what keys there are, where, and what their values look like.

Expressions are texts here; the reader alone knows whether they parse, and whether the names in them exist.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from verifier.language.expressions.syntax import RESERVED
from verifier.systems.model_parts import PICKS
from verifier.systems.reader import (
    ELSEWHERE,
    ENVIRONMENT_KEYS,
    FRAME_WORDS,
    KINDS,
    LONGEST_WINDOW,
    MOST_LEVELS,
    PLANNER_KEYS,
    TABLES,
)

Schema: TypeAlias = "dict[str, Any]"
NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"


def model_schema() -> Schema:
    """The schema, in draft 7, which editors of TOML know."""
    properties = {key: _TOP[key] for key in TABLES}
    top = _table(properties, ("variables", "environments", "initial", "planners"))
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A system model of verifier",
        **top,
        "definitions": {"expression": {"type": ["number", "string", "boolean"]}},
    }


def _told(text: str, schema: Schema) -> Schema:
    return {"description": text, **schema}


def _table(properties: Mapping[str, Schema], required: Iterable[str] = ()) -> Schema:
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": dict(properties), "additionalProperties": False, **needed}


def _named(entry: Schema, least: int = 0) -> Schema:
    """A table whose keys are names."""
    names = {"pattern": NAME, "not": {"enum": sorted(RESERVED)}}
    return {"type": "object", "propertyNames": names, "additionalProperties": entry, "minProperties": least}


def _list(entry: Schema, least: int = 0, most: int | None = None) -> Schema:
    return {"type": "array", "items": entry, "minItems": least} | ({} if most is None else {"maxItems": most})


def _condition(key: str, kinds: Iterable[str]) -> Schema:
    """A key of planners goes with some kinds only; without `kind` it is "rules"."""
    needed = {} if "rules" in kinds else {"required": ["kind"]}
    return {"if": {"required": [key]}, "then": {"properties": {"kind": {"enum": list(kinds)}}, **needed}}


def _demand(kinds: Iterable[str], *keys: str, least: str = "", usual: bool = False) -> Schema:
    """Some kinds need keys, and something in the list `least`; one of them is the usual kind where `usual`."""
    there = {} if usual else {"required": ["kind"]}
    filled = {"properties": {least: {"minItems": 1}}} if least else {}
    return {
        "if": {"properties": {"kind": {"enum": list(kinds)}}, **there},
        "then": {"required": list(keys), **filled},
    }


_EXPRESSION: Schema = {"$ref": "#/definitions/expression"}
_TEXT: Schema = {"type": "string"}
_WORD: Schema = {"type": "string", "pattern": r"\S"}
_SECONDS: Schema = {"type": "number", "exclusiveMinimum": 0}
_PAIR = _list(_EXPRESSION, 2, 2)
_WINDOW = _list({"type": "integer", "minimum": 1, "maximum": LONGEST_WINDOW}, 2, 2)
_LEVEL: Schema = {"type": "integer", "minimum": -MOST_LEVELS, "maximum": MOST_LEVELS}
_RANGE = _told("lowest and highest value", _PAIR)
_SOURCE = _told("where it is from", _TEXT)
_BY_NAME: Schema = {"type": "object", "additionalProperties": _EXPRESSION, "minProperties": 1}
_SET = _told("input or memory -> its value", {"type": "object", "additionalProperties": _EXPRESSION})
_UNIT = _told("of its values, for people", _TEXT)

_OBJECT = _table(
    {
        "name": _told("its identity, for report(name) and present(name)", {"type": "string", "pattern": NAME}),
        "class": _told("its class, or class -> condition", {"anyOf": [{**_WORD, "pattern": '^[^"]+$'}, _BY_NAME]}),
        "when": _told("condition under which it is there", _EXPRESSION),
        "distance_m": _told("its distance in metres, which chooses the matrix", _EXPRESSION),
        "at": _told(
            "further variable of the matrices -> its value, or bin -> condition",
            {"type": "object", "additionalProperties": {"anyOf": [_EXPRESSION, _BY_NAME]}},
        ),
    },
    ("class", "distance_m"),
)
_CHANGES: dict[str, Schema] = {
    "objects": _told("what stands there", _list(_OBJECT)),
    "set": _told("constant -> its value here", _named(_EXPRESSION)),
    "next": _told("variable -> its value after one step, here", _named(_EXPRESSION)),
    "labels": _told("label -> its condition here", _named(_EXPRESSION)),
    "initial": _told("joined with the model's by &", _EXPRESSION),
    "terminal": _told("in place of the model's", _EXPRESSION),
    "weight": _told("of an initial state, in means over the profile", _EXPRESSION),
}
_ENVIRONMENT: Schema = {
    "anyOf": [_list(_OBJECT), _table({key: _CHANGES[key] for key in ENVIRONMENT_KEYS}, ("objects",))]
}
_WHEN = _told("condition; without it the rule always applies", _EXPRESSION)
_RULE = _table({"when": _WHEN, "set": _SET, "stay": _told("all variables stay as they are", {"const": True})}) | {
    "not": {"required": ["set", "stay"]}
}
_RUN = _table(
    {
        "when": _told("the observation that it is for", _EXPRESSION),
        "set": _SET,
        "reach": _told("condition that it reaches", _EXPRESSION),
        "through": _told("condition on the way there", _EXPRESSION),
    },
    ("when",),
) | {
    "oneOf": [{"required": ["set"]}, {"required": ["reach"]}],
    "dependencies": {"reach": ["through"], "through": ["reach"]},
}
_ODDS = _table(
    {**dict.fromkeys(("hit", "miss", "confirm", "delete", "start"), _LEVEL), "range": _list(_LEVEL, 2, 2)},
    ("hit", "miss", "range", "confirm", "delete"),
)
_TRACKER = _table(
    {
        "of": _told("what it tracks, such as sees(person)", _EXPRESSION),
        "confirm": _told("[m, n]: confirmed after m hits of the last n", _WINDOW),
        "delete": _told("[m, n]: deleted after m misses of the last n", _WINDOW),
        "log_odds": _told("a level in place of windows", _ODDS),
    },
    ("of",),
) | {"oneOf": [{"required": ["log_odds"]}, {"required": ["confirm", "delete"]}]}
_MEMORY = _table({"range": _RANGE, "initial": _told("value at the beginning", _EXPRESSION)}, ("range", "initial"))
_OF_PLANNERS: dict[str, Schema] = {
    "kind": _told('what it is; without it "rules"', {"enum": list(KINDS)}),
    "source": _SOURCE,
    "rules": _told("the first rule whose condition holds decides", _list(_RULE)),
    "runs": _told("for each observation a run that is fixed in advance", _list(_RUN)),
    "formula": _told("in LTL: what it is correct for, by construction", _TEXT),
    "pick": _told("which of several moves it takes", {"enum": list(PICKS)}),
    "memory": _told("variables of the planner", _named(_MEMORY)),
    "trackers": _told("for confirmed(name) in rules", _named(_TRACKER)),
    "reading": _told("which frames of a step sees(...) means", {"anyOf": [{"enum": list(FRAME_WORDS)}, _WINDOW]}),
    "file": _told("of the planner; a path from the model's folder", _WORD),
    "reads": _told(
        "what the controller reads -> expression", {"type": "object", "additionalProperties": _EXPRESSION}
    ),
    "sets": _told("input -> the controller's variable", {"type": "object", "additionalProperties": _TEXT}),
    "module": _told("of the PRISM program", _WORD),
}
_PLANNER = _table({key: _OF_PLANNERS[key] for key in ("kind", "source", "rules", *PLANNER_KEYS)}) | {
    "allOf": [
        *(_condition(key, kinds) for key, kinds in PLANNER_KEYS.items()),
        _demand(("rules",), "rules", least="rules", usual=True),
        _demand(("runs",), "runs", "rules", least="runs"),
        _demand(("synthesis",), "rules"),
        _demand(ELSEWHERE, "file"),
        _demand(("gr1c",), "reads", "sets"),
    ]
}
_PROBABILITY: Schema = {
    "type": "object",
    "propertyNames": {"pattern": "^-?[0-9]{1,10}$"},
    "additionalProperties": {"anyOf": [_EXPRESSION, _PAIR]},
    "minProperties": 1,
}
_WORLD = _table(
    {
        "range": _RANGE,
        "probability": _told('value -> probability, an interval of it, or "rest"', _PROBABILITY),
        "admissible": _told("what the world may decide", _EXPRESSION),
    },
    ("range",),
) | {"not": {"required": ["probability", "admissible"]}}
_VARIABLE = _table(
    {
        "range": _RANGE,
        "next": _told("value after one step, from the old values", _EXPRESSION),
        "hidden": _told("whether the planner may not read it", {"type": "boolean"}),
        "unit": _UNIT,
    },
    ("range", "next"),
)
_INPUT = _table(
    {"range": _RANGE, "default": _told("value where no rule sets it", _EXPRESSION), "unit": _UNIT}, ("range",)
)
_TOP: dict[str, Schema] = {
    "name": _told("of the system; without it the file's", _TEXT),
    "source": _SOURCE,
    "step_s": _told("duration of a step in seconds", _SECONDS),
    "frame_s": _told("period of the detector's reports in seconds; a step is a multiple", _SECONDS),
    "constants": _told("numbers, or expressions over other constants", _named(_EXPRESSION)),
    "constraints": _told("conditions that constants must meet", _list(_EXPRESSION)),
    "variables": _told("what the state is made of", _named(_VARIABLE, 1)),
    "world": _told("what the world draws in every step, or decides", _named(_WORLD)),
    "inputs": _told("what the planner sets", _named(_INPUT)),
    "admissible": _told("condition that every choice of the planner meets", _EXPRESSION),
    "quantities": _told("names for numbers", _named(_EXPRESSION)),
    "labels": _told("names for conditions", _named(_EXPRESSION)),
    "rewards": _told("what a step gains, never negative", _named(_EXPRESSION)),
    "weight": _told("of an initial state, in means over the profile", _EXPRESSION),
    "field_of_view": _table(
        {"distance_m": _told("from where to where false positives arise", _PAIR)}, ("distance_m",)
    ),
    "environments": _told("what may stand there", _named(_ENVIRONMENT, 1)),
    "initial": _told("condition; every state that meets it is an initial state", _EXPRESSION),
    "terminal": _told("where a run is over", _EXPRESSION),
    "planners": _told("what acts on the detector's reports", _named(_PLANNER, 1)),
}
