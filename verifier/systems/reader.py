"""Reading system models from TOML files.

Reading never executes code: expressions are parsed by the project's own grammar and evaluated over arrays. Every
complaint names the file and the dotted key.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from verifier.errors import InputError, Place, nearest_name, shown
from verifier.expressions import Source, check_type, parse_expression
from verifier.expressions.syntax import FALSE, TRUE, Node, Number, labels_seen
from verifier.ltl import parse_formula
from verifier.systems.model import (
    EMPTY_CLASS,
    PICKS,
    PlacedObject,
    Planner,
    Range,
    Rule,
    Run,
    SystemModel,
    Type,
    Variable,
)
from verifier.textfiles import read_text

LARGEST_MODEL_FILE = 2**20
TABLES = (
    "name",
    "source",
    "constants",
    "variables",
    "inputs",
    "admissible",
    "quantities",
    "labels",
    "environments",
    "initial",
    "terminal",
    "planners",
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OPERATOR_LETTERS = frozenset("FGXURWM")


def read_model(path: str | Path) -> SystemModel:
    """Read a system model.

    Raises:
        InputError: naming the file and the dotted key (or line and column) of the first offending element.
    """
    text, raw = read_text(path, LARGEST_MODEL_FILE)
    try:
        document = tomllib.loads(text, parse_float=Fraction)
    except tomllib.TOMLDecodeError as error:
        raise _toml_error(str(path), text, str(error)) from None
    except RecursionError:
        raise InputError("not accepted: nested too deeply", Place(str(path))) from None
    except ValueError as error:  # a number that Fraction does not read: inf, nan
        raise InputError(f"not accepted: {error}", Place(str(path))) from None
    return _Reader(str(path), hashlib.sha256(raw).hexdigest()).model(document)


def _toml_error(file: str, text: str, message: str) -> InputError:
    found = re.search(r"\(at line (\d+), column (\d+)\)", message)
    if not found:
        return InputError(f"not TOML: {message}", Place(file))
    line, column = int(found[1]), int(found[2])
    source = text.split("\n")[line - 1] if line <= text.count("\n") + 1 else ""
    return InputError(f"not TOML: {message[: found.start()].strip()}", Place(file, line, column, text=source))


@dataclass(frozen=True)
class _Reader:
    """Turns a decoded TOML document into a model."""

    file: str
    sha256: str

    def fail(self, path: str, message: str, hint: str | None = None) -> InputError:
        return InputError(message, Place(self.file, path=path), hint)

    def model(self, document: dict[str, Any]) -> SystemModel:
        self._check_keys("", document, TABLES, required=("variables", "environments", "initial", "planners"))
        constants = self._nodes("constants", document)
        variables = self._variables("variables", document, moves=True)
        inputs = self._variables("inputs", document, moves=False)
        environments = {
            name: self._environment(f"environments.{name}", entry)
            for name, entry in self._table("environments", document).items()
        }
        model = SystemModel(
            name=self._string("name", document, Path(self.file).stem),
            constants=constants,
            variables=variables,
            inputs=inputs,
            admissible=self._node("admissible", document.get("admissible", True)),
            environments=environments,
            initial=self._node("initial", document["initial"]),
            terminal=self._node("terminal", document.get("terminal", False)),
            labels=self._nodes("labels", document),
            quantities=self._nodes("quantities", document),
            planners={name: self._planner(name, entry) for name, entry in self._table("planners", document).items()},
            source=self._string("source", document, ""),
            file=self.file,
            sha256=self.sha256,
        )
        _Checker(self, model).check()
        return model

    def _check_keys(
        self, path: str, found: Mapping[str, Any], known: tuple[str, ...], required: tuple[str, ...] = ()
    ) -> None:
        for key in found:
            if key not in known:
                nearest = nearest_name(key, known)
                hint = f"did you mean '{nearest}'?" if nearest else f"known here: {', '.join(known)}"
                raise self.fail(f"{path}.{key}" if path else key, f"unknown key {shown(key)}", hint)
        for key in required:
            if key not in found:
                raise self.fail(path or "the model", f"missing key '{key}'")

    def _table(self, key: str, document: Mapping[str, Any]) -> dict[str, Any]:
        found = document.get(key, {})
        if not isinstance(found, dict):
            raise self.fail(key, f"expected a table, got {shown(found)}")
        for name in found:
            if not _NAME.match(name) or name in _OPERATOR_LETTERS or name in ("true", "false"):
                raise self.fail(
                    f"{key}.{name}",
                    f"{shown(name)} cannot be a name",
                    "a name is letters, digits and _, does not begin with a digit, "
                    "and is not an operator of temporal logic (F G X U R W M)",
                )
        return found

    def _string(self, key: str, document: Mapping[str, Any], default: str) -> str:
        found = document.get(key, default)
        if not isinstance(found, str):
            raise self.fail(key, f"expected a string, got {shown(found)}")
        return found

    def _node(self, path: str, found: Any) -> Node:
        if isinstance(found, bool):
            return TRUE if found else FALSE
        if isinstance(found, int | Fraction):
            return Number(found)
        if not isinstance(found, str):
            raise self.fail(path, f"expected a number or an expression in quotes, got {shown(found)}")
        return parse_expression(found, Source(found, self.file, path))

    def _nodes(self, key: str, document: Mapping[str, Any]) -> dict[str, Node]:
        return {name: self._node(f"{key}.{name}", value) for name, value in self._table(key, document).items()}

    def _variables(self, key: str, document: Mapping[str, Any], *, moves: bool) -> tuple[Variable, ...]:
        known = ("range", "next", "unit") if moves else ("range", "unit")
        found = []
        for name, entry in self._table(key, document).items():
            path = f"{key}.{name}"
            if not isinstance(entry, dict):
                raise self.fail(path, f"expected a table with the keys {', '.join(known)}, got {shown(entry)}")
            self._check_keys(path, entry, known, required=("range", "next") if moves else ("range",))
            ends = entry["range"]
            if not isinstance(ends, list) or len(ends) != 2:
                raise self.fail(f"{path}.range", f"expected [low, high], got {shown(ends)}")
            low, high = (self._node(f"{path}.range[{index}]", end) for index, end in enumerate(ends))
            step = self._node(f"{path}.next", entry["next"]) if moves else None
            found.append(Variable(name, Range(low, high), step))
        if moves and not found:
            raise self.fail(key, "expected at least one variable")
        return tuple(found)

    def _environment(self, path: str, found: Any) -> tuple[PlacedObject, ...]:
        if not isinstance(found, list) or not found:
            raise self.fail(
                path, f"expected a list of objects, got {shown(found)}", "an empty place is an object too"
            )
        objects = []
        for index, entry in enumerate(found):
            if not isinstance(entry, dict):
                raise self.fail(f"{path}[{index}]", f"expected a table, got {shown(entry)}")
            keys = ("class", "distance_m")
            self._check_keys(f"{path}[{index}]", entry, keys, required=keys)
            name = self._string("class", entry, "")
            if not _NAME.match(name) or name in _OPERATOR_LETTERS:
                raise self.fail(f"{path}[{index}].class", f"{shown(name)} cannot be a class name")
            objects.append(PlacedObject(name, self._node(f"{path}[{index}].distance_m", entry["distance_m"])))
        return tuple(objects)

    def _planner(self, name: str, found: Any) -> Planner:
        path = f"planners.{name}"
        if not isinstance(found, dict):
            raise self.fail(path, f"expected a table, got {shown(found)}")
        known = ("kind", "source", "rules", "runs", "formula", "pick")
        self._check_keys(path, found, known, required=("rules",))
        kind = found.get("kind", "rules")
        if kind not in ("rules", "runs", "synthesis"):
            raise self.fail(f"{path}.kind", f"expected 'rules', 'runs' or 'synthesis', got {shown(kind)}")
        if ("runs" in found) != (kind == "runs"):
            raise self.fail(path, "'runs' goes with kind = \"runs\", and only with it")
        if found.get("pick", "lowest") not in PICKS:
            raise self.fail(f"{path}.pick", f"expected one of {', '.join(PICKS)}, got {shown(found['pick'])}")
        rules = self._list(f"{path}.rules", found["rules"])
        runs = self._list(f"{path}.runs", found.get("runs", []))
        return Planner(
            name,
            kind,
            tuple(self._rule(f"{path}.rules[{i}]", rule) for i, rule in enumerate(rules)),
            tuple(self._run(f"{path}.runs[{i}]", run) for i, run in enumerate(runs)),
            self._formula(f"{path}.formula", found["formula"]) if "formula" in found else None,
            found.get("pick", "lowest"),
            self._string("source", found, ""),
        )

    def _formula(self, path: str, found: Any) -> Node:
        if not isinstance(found, str):
            raise self.fail(path, f"expected a formula in quotes, got {shown(found)}")
        return parse_formula(found, Source(found, self.file, path))

    def _list(self, path: str, found: Any) -> list[dict[str, Any]]:
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            raise self.fail(path, f"expected a list of tables, got {shown(found)}")
        return found

    def _inputs(self, path: str, found: Any) -> dict[str, Node]:
        if not isinstance(found, dict):
            raise self.fail(path, f"expected a table of inputs, got {shown(found)}")
        return {name: self._node(f"{path}.{name}", value) for name, value in found.items()}

    def _rule(self, path: str, found: dict[str, Any]) -> Rule:
        self._check_keys(path, found, ("when", "set", "stay"), required=("when",))
        when = self._node(f"{path}.when", found["when"])
        if ("set" in found) == ("stay" in found) or found.get("stay", True) is not True:
            raise self.fail(path, "expected either 'set' with the inputs or 'stay = true'")
        return Rule(when, self._inputs(f"{path}.set", found["set"]) if "set" in found else None)

    def _run(self, path: str, found: dict[str, Any]) -> Run:
        self._check_keys(path, found, ("when", "set", "reach", "through"), required=("when",))
        when = self._node(f"{path}.when", found["when"])
        if ("set" in found) == ("reach" in found) or ("through" in found) != ("reach" in found):
            raise self.fail(path, "expected either 'set' with the inputs, or 'reach' and 'through'")
        if "set" in found:
            return Run(when, self._inputs(f"{path}.set", found["set"]))
        reach, through = (self._node(f"{path}.{key}", found[key]) for key in ("reach", "through"))
        return Run(when, None, reach, through)


@dataclass(frozen=True)
class _Checker:
    """Names and types of every expression of a model, once its declarations are known."""

    reader: _Reader
    model: SystemModel

    def check(self) -> None:
        model = self.model
        self._check_declarations()
        constants: dict[str, Type] = dict.fromkeys(model.constants, "number")
        state: dict[str, Type] = {**constants, **dict.fromkeys([each.name for each in model.variables], "number")}
        state.update(dict.fromkeys(model.quantities, "number"))
        state.update(dict.fromkeys(model.labels, "boolean"))
        moving: dict[str, Type] = {**state, **dict.fromkeys([each.name for each in model.inputs], "number")}
        for each in (*model.variables, *model.inputs):
            self._type(f"{each.name}.range", each.range.low, constants, "number")
            self._type(f"{each.name}.range", each.range.high, constants, "number")
        for each in model.variables:
            assert each.next is not None
            self._type(f"variables.{each.name}.next", each.next, moving, "number")
        self._type("admissible", model.admissible, moving, "boolean")
        self._type("initial", model.initial, state, "boolean")
        self._type("terminal", model.terminal, state, "boolean")
        for name, node in model.labels.items():
            self._type(f"labels.{name}", node, state, "boolean")
        for name, node in model.quantities.items():
            self._type(f"quantities.{name}", node, state, "number")
        for name, objects in model.environments.items():
            for index, placed in enumerate(objects):
                self._type(f"environments.{name}[{index}].distance_m", placed.distance_m, state, "number")
        for planner in model.planners.values():
            self._check_planner(planner, state)

    def _check_declarations(self) -> None:
        model = self.model
        kinds = {
            "a constant": model.constants,
            "a variable": [each.name for each in model.variables],
            "an input": [each.name for each in model.inputs],
            "a label": model.labels,
            "a quantity": model.quantities,
            "a class": model.environment_classes() | {EMPTY_CLASS},
        }
        seen: dict[str, str] = {}
        for kind, names in kinds.items():
            for name in names:
                if name in seen:
                    raise self.reader.fail(name, f"'{name}' is declared both as {seen[name]} and as {kind}")
                seen[name] = kind
        for name, objects in model.environments.items():
            classes = {placed.class_name for placed in objects}
            if EMPTY_CLASS in classes and len(classes) > 1:
                raise self.reader.fail(
                    f"environments.{name}", "holds objects and empty places", "leave the empty places out"
                )

    def _check_planner(self, planner: Planner, state: Mapping[str, Type]) -> None:
        path = f"planners.{planner.name}"
        inputs = {each.name for each in self.model.inputs}
        rules: tuple[Rule | Run, ...] = (*planner.rules, *planner.runs)
        for rule in rules:
            self._type(f"{path}: when", rule.when, state, "boolean", observes=True)
            if rule.inputs is not None:
                if set(rule.inputs) != inputs:
                    wanted = ", ".join(sorted(inputs)) or "nothing"
                    raise self.reader.fail(path, f"every rule must set {wanted}, found {sorted(rule.inputs)}")
                for name, node in rule.inputs.items():
                    self._type(f"{path}: {name}", node, state, "number", observes=True)
        for run in planner.runs:
            self._type(f"{path}: reach", run.reach, state, "boolean")
            self._type(f"{path}: through", run.through, state, "boolean")
        if planner.formula is not None:
            names = dict(self.model.types())
            self._type(f"{path}.formula", planner.formula, names, "boolean")

    def _type(
        self, path: str, node: Node, types: Mapping[str, Type], expected: Type, *, observes: bool = False
    ) -> None:
        if not observes and labels_seen(node):
            raise self.reader.fail(path, "sees(...) belongs in the rules of a planner")
        check_type(node, types, Source("", self.reader.file, path), expected, classes=None)
