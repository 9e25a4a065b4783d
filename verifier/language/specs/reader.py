"""Reading `.ltl` files.

A statement stands on one line, or on more while a bracket is open; `//` and `#` begin a comment, so whole
division is written `floor(a / b)` here.

| statement                          | says                                                            |
|------------------------------------|-----------------------------------------------------------------|
| `model "FILE"`                     | the system model; the path is relative to the spec's folder      |
| `planner NAME, ...`                | which planners to check                                         |
| `environments NAME, ...`           | which environments                                              |
| `initial CONDITION`                | which initial states                                            |
| `set NAME = NUMBER`                | a constant of the model; `set planner.option = word` an option  |
| `sweep NAME = 1..10`               | a constant that takes each value; also `= 1, 2, 5`              |
| `let NAME = CONDITION`             | a name for a state condition                                    |
| `NAME: P >= 0.95 [ FORMULA ]`      | a requirement; also `>`, `<=`, `<` and `P = ?`                  |
| `NAME: P >= 0.95 [ A given B ]`    | the probability of A among the paths with B                     |
| `NAME: R{REWARD} <= 3 [ F COND ]`  | the expected sum of a reward until a condition holds            |
| `NAME: R{REWARD} <= 3 [ C<=10 ]`   | the same over the first 10 steps                                |
| `NAME: T <= 12 [ F COND ]`         | the expected time in seconds until a condition holds            |
| `NAME: T{0.95} <= 12 [ F COND ]`   | the least time by which it has held with that probability       |
| `NAME: P = ? over profile [ .. ]`  | the mean over all scenarios by their weights; also of R and T   |

P, R and T may be followed by `min` or `max`: which end of what a world that decides can make of them.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from verifier.base.errors import InputError, nearest_name, shown
from verifier.base.files import read_text
from verifier.language.expressions import Source, exact_number, substitute
from verifier.language.expressions.kinds import misuse, result_kind
from verifier.language.expressions.syntax import RESERVED, Name, Node, Position, names_in
from verifier.language.specs.requirement_reader import (
    WORD,
    Statement,
    StatementReader,
    first_temporal,
    resolved,
    skip,
    statements,
)
from verifier.language.specs.specification import Requirement, Setting, Specification, Sweep, expand_lets

LARGEST_SPEC = 2**20
"""Bytes of a spec file."""
LONGEST_SWEEP = 100_000
"""Values of one sweep."""

_KEYWORDS = ("model", "planner", "environments", "initial", "set", "sweep", "let")
_MODEL = re.compile(r'\s*"([^"\n]+)"\s*')


def read_spec(path: str | Path) -> Specification:
    """Read a `.ltl` file.

    Raises:
        InputError: with file, line and column; names are checked later, against the model, by `check_names`.
    """
    text, raw = read_text(path, LARGEST_SPEC)
    return _specification(text, str(path), hashlib.sha256(raw).hexdigest())


def parse_spec(text: str, file: str | None = None) -> Specification:
    """The specification that `text` spells; `file` is its name, from whose folder the model's path is taken."""
    return _specification(text, file, hashlib.sha256(text.encode()).hexdigest())


def _specification(text: str, file: str | None, sha256: str) -> Specification:
    source = Source(text, file)
    draft = _Draft(source)
    for statement in statements(source):
        draft.add(statement)
    if draft.model is None:
        raise source.error("no system model", None, 'a spec names one: model "FILE"')
    if not draft.requirements:
        raise source.error("no requirement", None, "a requirement reads NAME: P >= 0.95 [ FORMULA ]")
    lets = expand_lets(draft.lets, source)
    return Specification(
        file=file,
        sha256=sha256,
        model=Path(file or "").parent / draft.model,
        model_name=draft.model,
        model_at=draft.taken["statement 'model'"],
        planners=draft.planners or (),
        environments=draft.environments,
        initial=None if draft.initial is None else substitute(draft.initial, lets, source),
        settings=tuple(draft.settings),
        sweeps=tuple(draft.sweeps),
        lets=draft.lets,
        requirements=tuple(resolved(requirement, lets, source) for requirement in draft.requirements),
        source=source,
    )


@dataclass
class _Draft(StatementReader):
    """A specification while its statements are read."""

    model: str | None = None
    planners: tuple[str, ...] | None = None
    environments: tuple[str, ...] | None = None
    initial: Node | None = None
    settings: list[Setting] = field(default_factory=list)
    sweeps: list[Sweep] = field(default_factory=list)
    lets: dict[str, Node] = field(default_factory=dict)
    requirements: list[Requirement] = field(default_factory=list)
    taken: dict[str, Position] = field(default_factory=dict)

    def add(self, statement: Statement) -> None:
        """Read one statement and take down what it says."""
        head = WORD.match(statement.text)
        word = head.group() if head else ""
        rest = len(word)
        if head and statement.text[rest:].lstrip().startswith(":"):
            self._add_requirement(statement, word)
            return
        if word not in _KEYWORDS:
            raise self._unknown_statement(statement, word)
        if word in ("model", "planner", "environments", "initial"):
            self._take(f"statement '{word}'", statement.start)
        match word:
            case "model":
                self._add_model(statement, rest)
            case "planner":
                self.planners = self._names(statement, rest) if statement.text[rest:].strip() else ()
            case "environments":
                self.environments = self._names(statement, rest)
            case "initial":
                rule = "initial states are described by a state condition"
                self.initial = self._state_condition(statement, rest, rule)
            case "set":
                self._add_setting(statement, rest)
            case "sweep":
                self._add_sweep(statement, rest)
            case _:
                self._add_let(statement, rest)

    def _take(self, what: str, position: Position) -> None:
        """Note that something is declared; it may be only once."""
        if what in self.taken:
            raise self.source.error(f"second {what}: the first is in line {self.taken[what].line}", position)
        self.taken[what] = position

    def _unknown_statement(self, statement: Statement, word: str) -> InputError:
        beginning = word or statement.text[:1]
        nearest = nearest_name(word, _KEYWORDS) if word else None
        if re.match(r"[PRT](?:min|max)?\s*(?:\{[^}]*\}\s*)?[<>=≤≥]", statement.text):
            hint = "a requirement has a name: NAME: P >= 0.95 [ FORMULA ]"
        elif re.match(r"[^\W\d]\w*\s*:", statement.text):
            hint = "the name of a requirement has the letters a to z and A to Z, digits and _ only"
        elif (self.source.file or "").endswith(".toml"):
            hint = "this seems to be a system model: give the spec (.ltl) that names it"
        else:
            meant = f"did you mean '{nearest}'? " if nearest else ""
            hint = f"{meant}statements begin with {', '.join(_KEYWORDS)} or NAME:"
        return self.fail(statement, 0, f"expected a statement, found {shown(beginning)}", hint)

    def _add_model(self, statement: Statement, rest: int) -> None:
        path = _MODEL.fullmatch(statement.text, rest)
        if path is None:
            raise self.fail(statement, skip(statement.text, rest), "expected one file name in double quotes")
        self.model = path.group(1)

    def _names(self, statement: Statement, offset: int) -> tuple[str, ...]:
        names: list[str] = []
        for part in statement.text[offset:].split(","):
            at = offset + len(part) - len(part.lstrip())
            name = part.strip()
            if not WORD.fullmatch(name):
                text = shown(name) if name else "nothing"
                raise self.fail(statement, at, f"expected names with commas between them, found {text}")
            if name in names:
                raise self.fail(statement, at, f"'{name}' is named twice")
            names.append(name)
            offset += len(part) + 1
        return tuple(names)

    def _add_let(self, statement: Statement, rest: int) -> None:
        name, at, value = self._assignment(statement, rest)
        self._declare(name, statement, at)
        self.lets[name] = self._state_condition(statement, value, "a let names a state condition")

    def _state_condition(self, statement: Statement, offset: int, rule: str) -> Node:
        node = self.formula(statement, offset, len(statement.text), "the end")
        temporal = first_temporal(node)
        if temporal is not None:
            hint = "temporal operators stand in requirements"
            raise self.source.error(
                f"{rule}, found the temporal operator {temporal.operator}", temporal.position, hint
            )
        return node

    def _add_setting(self, statement: Statement, rest: int) -> None:
        name, at, value = self._assignment(statement, rest, dotted=True)
        self._take(f"value for '{name}'", statement.position(at))
        node = self.expression(statement, value, len(statement.text))
        if isinstance(node, Name) and "." in name:
            self.settings.append(Setting(name, node.name, statement.position(at)))
            return
        self.settings.append(Setting(name, self._number(node), statement.position(at)))

    def _add_sweep(self, statement: Statement, rest: int) -> None:
        name, at, value = self._assignment(statement, rest)
        self._take(f"value for '{name}'", statement.position(at))
        values: list[int | Fraction] = []
        for part in statement.text[value:].split(","):
            values += self._sweep_values(statement, value, value + len(part))
            value += len(part) + 1
            if len(values) > LONGEST_SWEEP:
                raise self.fail(statement, at, f"the sweep of '{name}' has more than {LONGEST_SWEEP} values")
        if len(set(values)) < len(values):
            raise self.fail(statement, at, f"the sweep of '{name}' has a value twice")
        self.sweeps.append(Sweep(name, tuple(values), statement.position(at)))

    def _sweep_values(self, statement: Statement, begin: int, end: int) -> list[int | Fraction]:
        dots = statement.text.find("..", begin, end)
        if dots == -1:
            return [self._number(self.expression(statement, begin, end))]
        low = self._number(self.expression(statement, begin, dots))
        high = self._number(self.expression(statement, dots + 2, end))
        at = skip(statement.text, begin)
        if isinstance(low, Fraction) or isinstance(high, Fraction):
            raise self.fail(statement, at, "a range goes from a whole number to a whole number")
        if not low <= high < low + LONGEST_SWEEP:
            amount = "no" if high < low else f"more than {LONGEST_SWEEP}"
            raise self.fail(statement, at, f"the range {low}..{high} has {amount} values")
        return list(range(low, high + 1))

    def _number(self, node: Node) -> int | Fraction:
        if result_kind(node) == "boolean":
            raise self.source.error(misuse("number", "boolean", node)[0], node.position)
        names = sorted(names_in(node))
        if names:
            raise self.source.error(f"expected a number, found the name '{names[0]}'", node.position)
        return exact_number(node, {}, self.source)

    def _assignment(self, statement: Statement, rest: int, dotted: bool = False) -> tuple[str, int, int]:
        """Name, its offset, and the offset behind `=`."""
        pattern = r"\s*([A-Za-z_][A-Za-z0-9_]*%s)\s*=(?!=)" % (r"(?:\.[A-Za-z_][A-Za-z0-9_]*)?" if dotted else "")
        match = re.compile(pattern).match(statement.text, rest)
        if match is None:
            raise self.fail(statement, skip(statement.text, rest), "expected NAME = VALUE")
        return match.group(1), match.start(1), match.end()

    def _declare(self, name: str, statement: Statement, offset: int) -> None:
        """Take a name for a let or a requirement."""
        if name in RESERVED or name in _KEYWORDS:
            raise self.fail(statement, offset, f"'{name}' is a reserved word and cannot be a name")
        self._take(f"declaration of '{name}'", statement.position(offset))

    def _add_requirement(self, statement: Statement, name: str) -> None:
        self._declare(name, statement, 0)
        self.requirements.append(self.requirement(statement, name))
