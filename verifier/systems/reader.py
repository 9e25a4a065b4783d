"""Reading system models from TOML files.

Reading never executes code: expressions are parsed by the project's own grammar and evaluated over arrays. Every
complaint names the file, the line and the dotted key.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import get_args

from verifier.base.errors import shown
from verifier.base.files import read_text
from verifier.base.toml import Element, read_toml
from verifier.language.expressions import Source, parse_expression
from verifier.language.expressions.syntax import FALSE, RESERVED, TRUE, Node, Number
from verifier.language.ltl import in_steps, parse_formula
from verifier.systems.declarations import check_declarations
from verifier.systems.model import SystemModel
from verifier.systems.model_parts import (
    EMPTY_CLASS,
    ONE,
    PICKS,
    Decision,
    Draw,
    FrameWord,
    Memory,
    PlacedObject,
    Planner,
    PlannerFile,
    PlannerKind,
    Range,
    Reading,
    Rule,
    Run,
    Tracker,
    Variable,
    Variant,
)

TABLES = (
    "name", "source", "step_s", "frame_s", "constants", "constraints", "variables", "world", "inputs", "admissible",
    "quantities", "labels", "rewards", "weight", "field_of_view", "environments", "initial", "terminal", "planners",
)  # fmt: skip
ENVIRONMENT_KEYS = ("objects", "set", "next", "labels", "initial", "terminal", "weight")
ELSEWHERE: tuple[PlannerKind, ...] = ("table", "gr1c", "prism")
PLANNER_KEYS: dict[str, tuple[PlannerKind, ...]] = {
    "runs": ("runs",),
    "formula": ("synthesis",),
    "pick": ("runs", "synthesis"),
    "memory": ("rules", "table"),
    "trackers": ("rules", *ELSEWHERE),
    "reading": ("rules", *ELSEWHERE),
    "file": ELSEWHERE,
    "reads": ("gr1c",),
    "sets": ("gr1c",),
    "module": ("prism",),
}
"""Key of a planner -> the kinds that it goes with; `kind`, `source` and `rules` go with all."""
LONGEST_WINDOW = 20
MOST_LEVELS = 10_000
_PROBABILITY = 'write probability = { 1 = "0.3", 0 = "rest" }, with an expression over the state for each value'
_WHOLE = re.compile(r"-?[0-9]{1,10}\Z")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
FRAME_WORDS: tuple[FrameWord, ...] = get_args(FrameWord)
KINDS: tuple[PlannerKind, ...] = tuple(kind for kind in get_args(PlannerKind) if kind != "function")


def read_model(path: str | Path) -> SystemModel:
    """Read a system model.

    Raises:
        InputError: naming the file, the line and the dotted key of the first offending element.
    """
    top = read_toml(path).table(TABLES, required=("variables", "environments", "initial", "planners"))
    step_s = top.given("step_s", _duration, None)
    model = SystemModel(
        name=top.given("name", Element.string, Path(top.file).stem, empty=True),
        constants=_nodes(top, "constants"),
        variables=tuple(_variable(name, entry, moves=True) for name, entry in _named(top, "variables", least=1)),
        inputs=tuple(_variable(name, entry, moves=False) for name, entry in _named(top, "inputs")),
        admissible=top.given("admissible", _node, TRUE),
        environments={
            name: _objects(entry, viewed=top.has("field_of_view"))
            for name, entry in _named(top, "environments", least=1)
        },
        initial=_node(top.at("initial")),
        terminal=top.given("terminal", _node, FALSE),
        labels=_nodes(top, "labels"),
        rewards=_nodes(top, "rewards"),
        weight=top.given("weight", _node, ONE),
        quantities=_nodes(top, "quantities"),
        variants={
            name: _variant(entry) for name, entry in _named(top, "environments") if isinstance(entry.value, dict)
        },
        world=tuple(_moved(name, entry) for name, entry in _named(top, "world")),
        field_of_view_m=_field_of_view(top),
        step_s=step_s,
        frames=_frames(top),
        constraints=tuple(_node(condition) for condition in top.list_at("constraints")),
        planners={name: _planner(name, entry, step_s) for name, entry in _named(top, "planners", least=1)},
        source=top.given("source", Element.string, "", empty=True),
        file=top.file,
        sha256=top.sha256,
        document=top,
    )
    return check_declarations(model)


def _named(top: Element, key: str, *, least: int = 0) -> Iterator[tuple[str, Element]]:
    """The entries of one of the tables of a model, whose keys become names."""
    if not top.has(key):
        return
    table = top.at(key).open_table()
    if len(table.value) < least:
        raise table.fail("expected at least one entry")
    for name in table.value:
        if not _NAME.match(name) or name in RESERVED:
            hint = "a name is letters a to z, digits and _, does not begin with a digit, and is no reserved word"
            raise table.fail(f"{shown(name)} cannot be a name", hint)
        yield name, table.at(name)


def _node(element: Element) -> Node:
    """A number, a truth value, or an expression in quotes."""
    if isinstance(element.value, bool):
        return TRUE if element.value else FALSE
    if isinstance(element.value, str):
        return parse_expression(element.value, _source(element))
    if element.is_number():
        value = element.number()
        return Number(value.numerator if value.denominator == 1 else value)
    raise element.fail(f"expected a number or an expression in quotes, got {shown(element.value)}")


def _source(element: Element) -> Source:
    return Source(element.value, element.file, element.path, element.line)


def _nodes(top: Element, key: str) -> dict[str, Node]:
    return {name: _node(entry) for name, entry in _named(top, key)}


def _frames(top: Element) -> int:
    step, frame = top.given("step_s", _duration, None), top.given("frame_s", _duration, None)
    if frame is None:
        return 1
    if step is None:
        raise top.at("frame_s").fail("frame_s needs the duration of a step: step_s = ...")
    if (step / frame).denominator != 1:
        message = f"step_s / frame_s = {float(step / frame):g}: expected a whole number of frames per step"
        raise top.at("frame_s").fail(message)
    return int(step / frame)


def _duration(element: Element) -> Fraction | None:
    value = element.number()
    if value <= 0:
        raise element.fail(f"expected a number of seconds above 0, got {shown(element.value)}")
    return value


def _variable(name: str, element: Element, *, moves: bool) -> Variable:
    known = ("range", "next", "hidden", "unit") if moves else ("range", "default", "unit")
    element.table(known, required=("range", "next") if moves else ("range",))
    ends = _range(element.at("range"))
    following = _node(element.at("next")) if moves else None
    default, hidden = element.given("default", _node, None), element.given("hidden", Element.truth, None)
    return Variable(name, ends, following, default, hidden, element.given("unit", Element.string, "", empty=True))


def _moved(name: str, element: Element) -> Draw | Decision:
    element.table(("range", "probability", "admissible"), required=("range",))
    if not element.has("probability"):
        return Decision(name, _range(element.at("range")), element.given("admissible", _node, TRUE))
    if element.has("admissible"):
        raise element.at("admissible").fail(f"the world draws '{name}': 'admissible' goes with what it decides")
    chances: dict[int, Node | tuple[Node, Node] | None] = {}
    for text, entry in element.at("probability").open_table().entries():
        if not _WHOLE.match(text):
            raise entry.fail(f"expected a whole number as a value of '{name}', got {shown(text)}", _PROBABILITY)
        value, rest = int(text), entry.value == "rest"
        if value in chances or (rest and None in chances.values()):
            raise entry.fail(f"the value {value} stands twice" if value in chances else 'a second "rest"')
        if isinstance(entry.value, list):
            ends = _range(entry)
            chances[value] = ends.low, ends.high
        else:
            chances[value] = None if rest else _node(entry)
    if not chances:
        raise element.at("probability").fail("expected at least one value and its probability", _PROBABILITY)
    return Draw(name, _range(element.at("range")), chances)


def _range(element: Element) -> Range:
    if not isinstance(element.value, list) or len(element.value) != 2:
        raise element.fail(f"expected [low, high], got {shown(element.value)}")
    low, high = map(_node, element.items())
    return Range(low, high)


def _variant(element: Element) -> Variant:
    return Variant(
        _nodes(element, "set"),
        _nodes(element, "next"),
        _nodes(element, "labels"),
        element.given("initial", _node, TRUE),
        element.given("terminal", _node, None),
        element.given("weight", _node, ONE),
    )


def _field_of_view(top: Element) -> tuple[Node, Node] | None:
    if not top.has("field_of_view"):
        return None
    element = top.at("field_of_view").table(("distance_m",), required=("distance_m",)).at("distance_m")
    ends = _range(element)
    return ends.low, ends.high


def _objects(element: Element, *, viewed: bool) -> tuple[PlacedObject, ...]:
    if isinstance(element.value, dict):
        element = element.table(ENVIRONMENT_KEYS, required=("objects",)).at("objects")
    if not isinstance(element.value, list) or not (element.value or viewed):
        hint = 'where there is no object: [{ class = "empty", distance_m = ... }], or [] with a field_of_view'
        raise element.fail(f"expected a list of objects, got {shown(element.value)}", hint)
    return tuple(_object(entry) for entry in element.items())


def _object(element: Element) -> PlacedObject:
    element.table(("name", "class", "when", "distance_m", "at"), required=("class", "distance_m"))
    kind = element.at("class")
    class_when = dict(_conditions(kind, "class")) if isinstance(kind.value, dict) else {}
    name = "" if class_when else _class(kind.string(empty=True), kind)
    if EMPTY_CLASS in class_when:
        raise kind.fail("an object is of no class 'empty'", "'when' says when it is there")
    identity = element.given("name", Element.string, "")
    if identity and not _NAME.match(identity):
        raise element.at("name").fail(f"{shown(identity)} cannot be a name")
    places: dict[str, Node | dict[str, Node]] = {}
    for variable, entry in element.at("at").open_table().entries() if element.has("at") else ():
        places[variable] = dict(_conditions(entry, "bin")) if isinstance(entry.value, dict) else _node(entry)
    when = element.given("when", _node, TRUE)
    return PlacedObject(name, _node(element.at("distance_m")), identity, when, class_when, places)


def _conditions(element: Element, what: str) -> Iterator[tuple[str, Node]]:
    for name, condition in element.open_table().entries():
        yield _class(name, element), _node(condition)
    if not element.value:
        raise element.fail(f"expected at least one {what} and its condition")


def _class(name: str, element: Element) -> str:
    if not name or not name.isprintable() or '"' in name:
        raise element.fail(f"{shown(name)} cannot be a class")
    return name


def _planner(name: str, element: Element, step_s: Fraction | None) -> Planner:
    element.table(("kind", "source", "rules", *PLANNER_KEYS))
    kind = element.at("kind").one_of(KINDS) if element.has("kind") else "rules"
    for key, kinds in PLANNER_KEYS.items():
        if element.has(key) and kind not in kinds:
            wanted = " or ".join(f'kind = "{kind}"' for kind in kinds)
            raise element.fail(f"'{key}' goes with {wanted}, found kind = \"{kind}\"")
    required = ("file", *(("reads", "sets") if kind == "gr1c" else ())) if kind in ELSEWHERE else ("rules",)
    element.table(tuple(element.value), required)
    if kind in ("rules", "runs") and not element.value.get(kind):
        raise element.fail(f'a planner of kind "{kind}" needs a list of {kind}')
    planner = Planner(
        name,
        kind,
        _rules(element.list_at("rules")),
        tuple(_run(run) for run in element.list_at("runs")),
        element.given("formula", _formula, None, step_s),
        element.given("pick", Element.one_of, "lowest", tuple(PICKS)),
        element.given("source", Element.string, "", empty=True),
        tuple(_memory(key, entry) for key, entry in _named(element, "memory")),
        tuple(_tracker(key, entry) for key, entry in _named(element, "trackers")),
        element.given("reading", _reading, "last"),
    )
    return _from_file(planner, name, element) if kind in ELSEWHERE else planner


def _from_file(planner: Planner, name: str, element: Element) -> Planner:
    """The planner with what its file says; a relative path is relative to the model's."""
    named, key = element.at("file").string(), f"planners.{name}"
    path = str(Path(element.file).parent / named)
    raw = read_text(path)[1]
    planner = replace(planner, file=PlannerFile(named, path, hashlib.sha256(raw).hexdigest()))
    if element.value["kind"] == "prism":
        from verifier.systems.planners.prism import module_of

        module = module_of(raw, path, element.given("module", Element.string, None), key)
        places = {f"{key}.commands[{number}]": place for number, place in enumerate(module.places)}
        return replace(planner, commands=module.rules, memory=module.memory, places=places)
    if element.value["kind"] == "table":
        from verifier.systems.planners.tables import table_of

        table, columns = table_of(raw, path)
        places = {f"{key}.asks[{k}]": column for k, column in enumerate(columns)}
        return replace(planner, decider=table, places={**places, f"{key}.sets[0]": replace(columns[0], path=None)})
    from verifier.systems.planners.gr1c import controller_of

    reads = {variable: (_node(entry), entry) for variable, entry in element.at("reads").entries()}
    controller, node = controller_of(raw, path, reads, dict(element.at("sets").entries()))
    asks = {f"{key}.asks[{k}]": _source(element.at("reads").at(name)) for k, name in enumerate(controller.asks) if k}
    return replace(planner, decider=controller, memory=(node,), places=asks)


def _memory(name: str, element: Element) -> Memory:
    element.table(("range", "initial"), required=("range", "initial"))
    return Memory(name, _range(element.at("range")), _node(element.at("initial")))


def _tracker(name: str, element: Element) -> Tracker:
    element.table(("of", "confirm", "delete", "log_odds"), required=("of",))
    of = _node(element.at("of"))
    if element.has("log_odds") == element.has("confirm") or element.has("confirm") != element.has("delete"):
        raise element.fail("expected either 'confirm' and 'delete', or 'log_odds'")
    if element.has("confirm"):
        confirm, delete = (_of_the_last(element.at(key)) for key in ("confirm", "delete"))
        return Tracker(name, of, confirm, delete, None, (0, 2 ** (max(confirm[1], delete[1]) - 1) - 1))
    keys = ("hit", "miss", "range", "confirm", "delete")
    odds = element.at("log_odds").table((*keys, "start"), required=keys)
    low, high = (element.whole(-MOST_LEVELS, MOST_LEVELS) for element in odds.at("range").items(least=2)[:2])
    if low > high or len(odds.at("range").value) != 2:
        raise odds.at("range").fail(f"expected [low, high], got {shown(odds.at('range').value)}")
    hit, miss = (odds.at(key).whole(-MOST_LEVELS, MOST_LEVELS) for key in ("hit", "miss"))
    up = odds.at("confirm").whole(low + 1, high)
    down = odds.at("delete").whole(low, up - 1)
    start = odds.given("start", Element.whole, 0, low, high)
    if not low <= start <= high:
        raise odds.fail(f"it starts at 0, outside {low}..{high}", "say where: start = ...")
    return Tracker(name, of, (up, up), (down, down), (hit, miss), (low, high), start)


def _of_the_last(element: Element) -> tuple[int, int]:
    """[m, n]: m of the last n."""
    if not isinstance(element.value, list) or len(element.value) != 2:
        raise element.fail(f"expected [m, n], m of the last n, got {shown(element.value)}")
    n = element.at(1).whole(1, LONGEST_WINDOW)
    return element.at(0).whole(1, n), n


def _reading(element: Element) -> Reading:
    if isinstance(element.value, list):
        return _of_the_last(element)
    return element.one_of(FRAME_WORDS)


def _formula(element: Element, step_s: Fraction | None) -> Node | None:
    if not isinstance(element.value, str):
        raise element.fail(f"expected a formula in quotes, got {shown(element.value)}")
    return in_steps(parse_formula(element.value, _source(element)), step_s, _source(element))


def _inputs(element: Element) -> dict[str, Node]:
    return {name: _node(value) for name, value in element.entries()}


def _rules(entries: list[Element]) -> tuple[Rule, ...]:
    rules = tuple(_rule(entry) for entry in entries)
    otherwise = next((k for k, entry in enumerate(entries) if not entry.has("when")), len(entries))
    if otherwise + 1 < len(entries):
        raise entries[otherwise + 1].fail(
            f"rules[{otherwise + 1}] is never reached: rules[{otherwise}] has no 'when'",
            "only the last rule is without a condition",
        )
    return rules


def _rule(element: Element) -> Rule:
    element.table(("when", "set", "stay"))
    if (element.has("set") and element.has("stay")) or element.value.get("stay", True) is not True:
        raise element.fail("expected either 'set' with the inputs or 'stay = true'")
    inputs = None if element.has("stay") else element.given("set", _inputs, {})
    return Rule(element.given("when", _node, TRUE), inputs, element.path or "")


def _run(element: Element) -> Run:
    element.table(("when", "set", "reach", "through"), required=("when",))
    when = _node(element.at("when"))
    if element.has("set") == element.has("reach") or element.has("through") != element.has("reach"):
        raise element.fail("expected either 'set' with the inputs, or 'reach' and 'through'")
    if element.has("set"):
        return Run(when, _inputs(element.at("set")), path=element.path or "")
    return Run(when, None, _node(element.at("reach")), _node(element.at("through")), element.path or "")
