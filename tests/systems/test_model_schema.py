"""The schema of model files: it accepts what the reader accepts, and knows the keys that the reader knows."""

import json
import tomllib
from collections import defaultdict
from pathlib import Path

import jsonschema
import pytest

from verifier.base.errors import VerifierError
from verifier.base.toml import Element
from verifier.manual.pages import SMALL, files_of
from verifier.systems.model_schema import _demand, _list, _named, _table, model_schema
from verifier.systems.reader import read_model

ROOT = Path(__file__).resolve().parents[2]
INVALID = ROOT / "tests/data/invalid/models"
SCHEMA = jsonschema.Draft7Validator(model_schema())
SHIPPED = sorted((ROOT / "models").glob("*.toml"))
STRUCTURE = (
    "unknown key", "missing key", "expected a table", "expected a list", "expected [low, high]", "expected [m, n]",
    "expected a text", "expected one of", "expected either", "expected true or false", "expected a number or an",
    "cannot be a name", "cannot be a class", "expected at least one", "expected a formula in quotes", "goes with",
    "needs a list of", "expected a whole number as a value", "seconds above 0",
)  # fmt: skip
"""Beginnings of what the reader says of keys, and of values that are of the wrong kind."""
BEYOND = {"environment_class_newline", "environment_empty_list"}
"""Control characters; and an empty list, which goes with a field of view."""


def content(path):
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):  # no TOML
        return None


def test_the_schema_is_one_of_draft_7():
    jsonschema.Draft7Validator.check_schema(model_schema())


def test_shipped_models_keep_to_it():
    assert len(SHIPPED) >= 11
    for path in SHIPPED:
        assert not list(SCHEMA.iter_errors(content(path))), path


@pytest.fixture(scope="module")
def refusals():
    """File -> what the reader says of it; None where it reads it, whatever is wrong with the chains."""
    found = {}
    for path in sorted(INVALID.glob("*.toml")):
        if content(path) is not None:
            try:
                read_model(path)
                found[path] = None
            except VerifierError as error:
                found[path] = error.message
    return found


def test_models_that_are_invalid_by_structure_are_refused(refusals):
    wrong = {
        path: message for path, message in refusals.items() if message and any(map(message.__contains__, STRUCTURE))
    }
    assert len(wrong) > 60
    assert {path.stem for path in wrong if SCHEMA.is_valid(content(path))} == BEYOND


def test_models_that_are_read_are_not_refused(refusals):
    read = [path for path, message in refusals.items() if message is None]
    assert len(read) > 30
    assert not [path.stem for path in read if not SCHEMA.is_valid(content(path))]


def at(schema, keys):
    """The parts of the schema for the value under these keys."""
    parts = [schema]
    for key in keys:
        inner = []
        for part in [choice for each in parts for choice in each.get("anyOf", [each])]:
            if isinstance(key, int):
                inner += [part["items"]] if "items" in part else []
            elif key in part.get("properties", {}):
                inner.append(part["properties"][key])
            elif isinstance(part.get("additionalProperties"), dict):
                inner.append(part["additionalProperties"])
        parts = inner
    return [choice for each in parts for choice in each.get("anyOf", [each])]


EVERY_TABLE = """
initial = true
[variables]
x = { range = [0, 1], next = "x" }
[world]
w = { range = [0, 1] }
[inputs]
u = { range = [0, 1] }
[field_of_view]
distance_m = [0, 9]
[environments]
one = [{ class = "ped", distance_m = 1 }]
two = { objects = [{ class = "ped", distance_m = 1 }] }
[planners.a]
memory = { m = { range = [0, 1], initial = 0 } }
trackers.t = { of = "sees(ped)", log_odds = { hit = 1, miss = -1, range = [-1, 1], confirm = 1, delete = -1 } }
rules = [{ set = { u = 0 } }]
[planners.b]
kind = "runs"
runs = [{ when = "sees(ped)", reach = "x = 1", through = true }]
rules = [{ set = { u = 0 } }]
"""


@pytest.mark.parametrize(("levels", "fits"), [([-1], False), ([-1, 1], True), ([-1, 0, 1], False)])
def test_a_range_of_log_odds_has_two_ends(levels, fits):
    text = EVERY_TABLE.replace("range = [-1, 1], confirm", f"range = {levels}, confirm")
    assert SCHEMA.is_valid(tomllib.loads(text)) is fits


def test_parts_of_the_schema_by_hand():
    assert _table({"a": 1}, "a") == {
        "type": "object", "properties": {"a": 1}, "additionalProperties": False, "required": ["a"]
    }  # fmt: skip
    assert _named({})["minProperties"] == _list({})["minItems"] == 0
    assert _list({}, 1, 3) == {"type": "array", "items": {}, "minItems": 1, "maxItems": 3}
    filled = {"required": ["k"], "properties": {"k": {"minItems": 1}}}
    of_kind = {"properties": {"kind": {"enum": ["a"]}}}
    assert _demand(("a",), "k", least="k") == {"if": {**of_kind, "required": ["kind"]}, "then": filled}
    assert _demand(("a",), "k", usual=True) == {"if": of_kind, "then": {"required": ["k"]}}


OBJECT = {"class": "ped", "distance_m": 1}
RUN = {"when": True, "set": {}}


@pytest.mark.parametrize(
    ("path", "value", "fits"),
    [
        ("constants", {}, True),
        ("variables", {}, False),
        ("variables", {"x": {"range": [0, 1], "next": 0}}, True),
        ("variables.x", {"range": [0, 1], "next": 0, "last": 0}, False),
        ("environments", {}, False),
        ("environments", {"one": []}, True),
        ("environments", {"one": {"objects": []}}, True),
        ("environments.one", [{**OBJECT, "class": {}}], False),
        ("environments.one", [{**OBJECT, "class": {"ped": True}}], True),
        ("step_s", 0, False),
        ("step_s", 0.5, True),
        ("inputs.rush.range", [0], False),
        ("inputs.rush.range", [0, 1, 2], False),
        ("planners", {}, False),
        ("planners.polite", {}, False),
        ("planners.polite.rules", [], False),
        ("planners.polite.rules", [{"stay": True}], True),
        ("planners.polite.rules", [{"stay": False}], False),
        ("planners.polite.rules", [{"stay": True, "set": {}}], False),
        ("planners.polite.memory", {}, True),
        *((f"planners.polite.trackers.t.{key}", window, fits)
          for key in ("confirm", "delete")
          for window, fits in (([1], False), ([1, 1], True), ([0, 1], False), ([1, 20], True), ([1, 21], False),
                               ([1, 2, 3], False))),
        ("planners.p", {"kind": "runs", "rules": [], "runs": [RUN]}, True),
        ("planners.p", {"kind": "runs", "rules": [], "runs": []}, False),
        ("planners.p", {"kind": "runs", "rules": [], "runs": [{**RUN, "reach": True, "through": True}]}, False),
        ("planners.p", {"kind": "runs", "rules": [], "runs": [{"when": True, "reach": True}]}, False),
        ("world.w", {"range": [0, 1], "probability": {}}, False),
        ("world.w", {"range": [0, 1], "probability": {"1": 0.5}}, True),
        ("world.w", {"range": [0, 1], "probability": {"1": 0.5}, "admissible": True}, False),
    ],
)  # fmt: skip
def test_how_many_and_how_large(path, value, fits):
    model = tomllib.loads(files_of(None)[f"{SMALL}.toml"])
    *above, last = path.split(".")
    table = model
    for key in above:
        table = table.setdefault(
            key, {"of": "sees(person)", "confirm": [1, 1], "delete": [1, 1]} if key == "t" else {}
        )
    table[last] = value
    assert SCHEMA.is_valid(model) is fits


def test_every_key_that_the_reader_knows_is_in_it_and_no_other(monkeypatch, tmp_path):
    asked, table = defaultdict(set), Element.table

    def listening(self, known, required=()):
        asked[self.keys].add(tuple(known))
        return table(self, known, required)

    monkeypatch.setattr(Element, "table", listening)
    (tmp_path / "model.toml").write_text(EVERY_TABLE)
    with pytest.raises(VerifierError, match="for a world that does not move on its own"):  # all is read by then
        read_model(tmp_path / "model.toml")
    schema = model_schema()
    assert len(asked) == 16  # the top and every table above, rules and objects among them
    for keys, calls in asked.items():
        known = max(calls, key=len)  # a planner is looked at again, for what its kind requires
        assert [set(part["properties"]) for part in at(schema, keys) if "properties" in part] == [set(known)], keys


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"variables": {"x": {"range": [0, 1], "nxt": 0}}}, "nxt"),
        ({"planners": {"p": {"kind": "gr1c", "file": "a.json", "rules": []}}}, "reads"),
        ({"planners": {"p": {"rules": [{"set": {}, "stay": True}]}}}, "stay"),
        ({"planners": {"p": {"rules": [], "module": "m"}}}, "kind"),
    ],
)
def test_messages_name_what_is_wrong(change, path):
    found = tomllib.loads(files_of(None)[f"{SMALL}.toml"]) | change
    assert path in json.dumps([error.message for error in SCHEMA.iter_errors(found)])
