"""Reading system models from TOML files.

Reading never executes code: expressions are parsed by the project's own grammar and evaluated over arrays. Every
complaint names the file and the dotted key.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

from verifier.base.errors import InputError, Place, nearest_name, shown
from verifier.base.files import read_text
from verifier.language.expressions import Source, parse_expression
from verifier.language.expressions.syntax import FALSE, RESERVED, TRUE, Node, Number
from verifier.language.ltl import parse_formula
from verifier.systems.declarations import check_declarations
from verifier.systems.model import PICKS, PlacedObject, Planner, PlannerKind, Range, Rule, Run, SystemModel, Variable

LARGEST_MODEL_FILE = 2**20
LONGEST_NUMBER = 60
LARGEST_EXPONENT = 300
"""Characters and decimal exponent of a number; as in expressions."""
DEEPEST_NESTING = 16
"""Tables and lists inside one another; a model needs five."""
TABLES = (
    "name",
    "source",
    "constants",
    "constraints",
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
_TOO_LONG = f"the number is too long; at most {LONGEST_NUMBER} digits are read"
_KINDS = get_args(PlannerKind)


def read_model(path: str | Path) -> SystemModel:
    """Read a system model.

    Raises:
        InputError: naming the file and the dotted key (or line and column) of the first offending element.
    """
    text, raw = read_text(path, LARGEST_MODEL_FILE)
    try:
        document = tomllib.loads(text, parse_float=_Decimal)
    except tomllib.TOMLDecodeError as error:
        raise _toml_error(str(path), text, str(error)) from None
    except RecursionError:
        raise InputError("not accepted: nested too deeply", Place(str(path))) from None
    except ValueError:  # thousands of digits, which Python does not read
        digits = re.search(r"[0-9][0-9_]{1000,}", text)
        line = text.count("\n", 0, digits.start()) + 1 if digits else None
        raise InputError(_TOO_LONG, Place(str(path), line)) from None
    _refuse_odd_values(str(path), document)
    return _Reader(str(path), hashlib.sha256(raw).hexdigest()).model(document)


@dataclass(frozen=True)
class _Decimal:
    """A decimal number as the file spells it; what is no finite number is refused where a number is needed."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def value(self) -> int | Fraction | None:
        """The exact value; None for nan, infinities, and numbers too long to work with."""
        mantissa, _, exponent = self.text.replace("_", "").lower().partition("e")
        if "n" in mantissa or len(mantissa) > LONGEST_NUMBER or len(exponent) > 5:
            return None
        if abs(int(exponent or 0)) > LARGEST_EXPONENT:
            return None
        value = Fraction(f"{mantissa}e{exponent or 0}")
        return value.numerator if value.denominator == 1 else value


def _refuse_odd_values(file: str, document: dict[str, Any]) -> None:
    """Refuse what could not even be shown in a message: deep nesting, and integers of thousands of digits."""
    pending: list[tuple[str, Any, int]] = [("", document, 0)]
    while pending:
        path, value, depth = pending.pop()
        if depth > DEEPEST_NESTING:
            raise InputError("not accepted: nested too deeply", Place(file, path=f"{path[:60]}..."))
        if isinstance(value, int) and abs(value) >= 10**LONGEST_NUMBER:
            raise InputError(_TOO_LONG, Place(file, path=path))
        if isinstance(value, dict):
            pending += [(f"{path}.{_key(key)}".lstrip("."), inner, depth + 1) for key, inner in value.items()]
        if isinstance(value, list):
            pending += [(f"{path}[{index}]", inner, depth + 1) for index, inner in enumerate(value)]


def _key(key: str) -> str:
    """A key for a dotted path, quoted where it is no plain name."""
    return key if _NAME.match(key) and len(key) <= LONGEST_NUMBER else shown(key)


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
    texts: dict[str, str] = field(default_factory=dict)

    def fail(self, path: str, message: str, hint: str | None = None) -> InputError:
        return InputError(message, Place(self.file, path=path or None), hint)

    def model(self, document: dict[str, Any]) -> SystemModel:
        self._check_keys("", document, TABLES, required=("variables", "environments", "initial", "planners"))
        constants = self._nodes("constants", document)
        variables = self._variables("variables", document, moves=True)
        inputs = self._variables("inputs", document, moves=False)
        environments = {
            name: self._environment(f"environments.{name}", entry)
            for name, entry in self._table("environments", document, required=True).items()
        }
        planners = {
            name: self._planner(name, entry)
            for name, entry in self._table("planners", document, required=True).items()
        }
        model = SystemModel(
            name=self._string("name", document.get("name", Path(self.file).stem)),
            constants=constants,
            variables=variables,
            inputs=inputs,
            admissible=self._node("admissible", document.get("admissible", True)),
            environments=environments,
            initial=self._node("initial", document["initial"]),
            terminal=self._node("terminal", document.get("terminal", False)),
            labels=self._nodes("labels", document),
            quantities=self._nodes("quantities", document),
            constraints=self._constraints(document.get("constraints", [])),
            planners=planners,
            source=self._string("source", document.get("source", "")),
            file=self.file,
            sha256=self.sha256,
        )
        check_declarations(model, self.texts)
        return model

    def _constraints(self, found: Any) -> tuple[Node, ...]:
        if not isinstance(found, list):
            raise self.fail("constraints", f"expected a list of conditions on the constants, got {shown(found)}")
        return tuple(self._node(f"constraints[{index}]", each) for index, each in enumerate(found))

    def _check_keys(
        self, path: str, found: Mapping[str, Any], known: tuple[str, ...], required: tuple[str, ...] = ()
    ) -> None:
        for key in found:
            if key not in known:
                nearest = nearest_name(key, known)
                hint = f"did you mean '{nearest}'?" if nearest else f"known here: {', '.join(known)}"
                raise self.fail(path, f"unknown key {shown(key)}", hint)
        for key in required:
            if key not in found:
                raise self.fail(path, f"missing key '{key}'")

    def _table(self, key: str, document: Mapping[str, Any], *, required: bool = False) -> dict[str, Any]:
        found = document.get(key, {})
        if not isinstance(found, dict):
            raise self.fail(key, f"expected a table, got {shown(found)}")
        if required and not found:
            raise self.fail(key, "expected at least one entry")
        for name in found:
            if not _NAME.match(name) or name in RESERVED:
                hint = "a name is letters a to z, digits and _, does not begin with a digit, and is no reserved word"
                raise self.fail(key, f"{shown(name)} cannot be a name", hint)
        return found

    def _string(self, path: str, found: Any) -> str:
        if not isinstance(found, str):
            raise self.fail(path, f"expected a string, got {shown(found)}")
        return found

    def _node(self, path: str, found: Any) -> Node:
        if isinstance(found, bool):
            return TRUE if found else FALSE
        if isinstance(found, int):
            return Number(found)
        if isinstance(found, _Decimal):
            value = found.value()
            if value is None:
                raise self.fail(path, f"expected a finite number of moderate length, got {shown(found)}")
            return Number(value)
        if not isinstance(found, str):
            raise self.fail(path, f"expected a number or an expression in quotes, got {shown(found)}")
        self.texts[path] = found
        return parse_expression(found, Source(found, self.file, path))

    def _nodes(self, key: str, document: Mapping[str, Any]) -> dict[str, Node]:
        return {name: self._node(f"{key}.{name}", value) for name, value in self._table(key, document).items()}

    def _variables(self, key: str, document: Mapping[str, Any], *, moves: bool) -> tuple[Variable, ...]:
        known = ("range", "next", "unit") if moves else ("range", "unit")
        found = []
        for name, entry in self._table(key, document, required=moves).items():
            path = f"{key}.{name}"
            if not isinstance(entry, dict):
                raise self.fail(path, f"expected a table with the keys {', '.join(known)}, got {shown(entry)}")
            self._check_keys(path, entry, known, required=("range", "next") if moves else ("range",))
            self._string(f"{path}.unit", entry.get("unit", ""))
            ends = entry["range"]
            if not isinstance(ends, list) or len(ends) != 2:
                raise self.fail(f"{path}.range", f"expected [low, high], got {shown(ends)}")
            low, high = (self._node(f"{path}.range[{index}]", end) for index, end in enumerate(ends))
            step = self._node(f"{path}.next", entry["next"]) if moves else None
            found.append(Variable(name, Range(low, high), step))
        return tuple(found)

    def _environment(self, path: str, found: Any) -> tuple[PlacedObject, ...]:
        if not isinstance(found, list) or not found:
            hint = 'where nothing stands: [{ class = "empty", distance_m = ... }]'
            raise self.fail(path, f"expected a list of objects, got {shown(found)}", hint)
        objects = []
        for index, entry in enumerate(found):
            if not isinstance(entry, dict):
                raise self.fail(f"{path}[{index}]", f"expected a table, got {shown(entry)}")
            keys = ("class", "distance_m")
            self._check_keys(f"{path}[{index}]", entry, keys, required=keys)
            name = self._string(f"{path}[{index}].class", entry["class"])
            if not name or not name.isprintable() or '"' in name:
                raise self.fail(f"{path}[{index}].class", f"{shown(name)} cannot be a class")
            objects.append(PlacedObject(name, self._node(f"{path}[{index}].distance_m", entry["distance_m"])))
        return tuple(objects)

    def _planner(self, name: str, found: Any) -> Planner:
        path = f"planners.{name}"
        if not isinstance(found, dict):
            raise self.fail(path, f"expected a table, got {shown(found)}")
        known = ("kind", "source", "rules", "runs", "formula", "pick")
        self._check_keys(path, found, known, required=("rules",))
        kind = found.get("kind", "rules")
        if kind not in _KINDS:
            raise self.fail(f"{path}.kind", f"expected 'rules', 'runs' or 'synthesis', got {shown(kind)}")
        for key, kinds in (("runs", ("runs",)), ("formula", ("synthesis",)), ("pick", ("runs", "synthesis"))):
            if key in found and kind not in kinds:
                wanted = " or ".join(f'kind = "{each}"' for each in kinds)
                raise self.fail(path, f"'{key}' goes with {wanted}, found kind = \"{kind}\"")
        if kind in ("rules", "runs") and not found.get(kind):
            raise self.fail(path, f'a planner of kind "{kind}" needs a list of {kind}')
        pick = found.get("pick", "lowest")
        if not isinstance(pick, str) or pick not in PICKS:
            raise self.fail(f"{path}.pick", f"expected one of {', '.join(PICKS)}, got {shown(pick)}")
        rules = self._list(f"{path}.rules", found["rules"])
        runs = self._list(f"{path}.runs", found.get("runs", []))
        return Planner(
            name,
            kind,
            tuple(self._rule(f"{path}.rules[{i}]", rule) for i, rule in enumerate(rules)),
            tuple(self._run(f"{path}.runs[{i}]", run) for i, run in enumerate(runs)),
            self._formula(f"{path}.formula", found["formula"]) if "formula" in found else None,
            pick,
            self._string(f"{path}.source", found.get("source", "")),
        )

    def _formula(self, path: str, found: Any) -> Node:
        if not isinstance(found, str):
            raise self.fail(path, f"expected a formula in quotes, got {shown(found)}")
        self.texts[path] = found
        return parse_formula(found, Source(found, self.file, path))

    def _list(self, path: str, found: Any) -> list[dict[str, Any]]:
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            raise self.fail(path, f"expected a list of tables, got {shown(found)}")
        return found

    def _inputs(self, path: str, found: Any) -> dict[str, Node]:
        if not isinstance(found, dict):
            raise self.fail(path, f"expected a table of inputs, got {shown(found)}")
        return {name: self._node(f"{path}.{_key(name)}", value) for name, value in found.items()}

    def _rule(self, path: str, found: dict[str, Any]) -> Rule:
        self._check_keys(path, found, ("when", "set", "stay"), required=("when",))
        when = self._node(f"{path}.when", found["when"])
        if ("set" in found) == ("stay" in found) or found.get("stay", True) is not True:
            raise self.fail(path, "expected either 'set' with the inputs or 'stay = true'")
        return Rule(when, self._inputs(f"{path}.set", found["set"]) if "set" in found else None, path)

    def _run(self, path: str, found: dict[str, Any]) -> Run:
        self._check_keys(path, found, ("when", "set", "reach", "through"), required=("when",))
        when = self._node(f"{path}.when", found["when"])
        if ("set" in found) == ("reach" in found) or ("through" in found) != ("reach" in found):
            raise self.fail(path, "expected either 'set' with the inputs, or 'reach' and 'through'")
        if "set" in found:
            return Run(when, self._inputs(f"{path}.set", found["set"]), path=path)
        reach, through = (self._node(f"{path}.{key}", found[key]) for key in ("reach", "through"))
        return Run(when, None, reach, through, path)
