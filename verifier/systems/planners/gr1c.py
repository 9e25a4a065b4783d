"""Controllers of gr1c (GR(1) synthesis, as TuLiP calls it) in its JSON of version 1, as decision tables.

    {"version": 1, "ENV": [{"ped": "boolean"}], "SYS": [{"v": [0, 3]}],
     "nodes": {"0x1": {"state": [1, 0], "initial": true, "trans": ["0x2", "0x1"]}, ..}}

A node holds the values of the environment's variables, then of the system's. Memory is the node, 0 before the first
step. The next node is the one among those of `trans`, at first among the initial ones, whose environment has the
values that are read now; its values of the system are set.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from verifier.base.errors import InputError, Place, shown, unknown_name
from verifier.base.files import json_of
from verifier.base.toml import Element
from verifier.language.expressions.syntax import Name, Node, Number
from verifier.systems.model_parts import Memory, Range, Type
from verifier.systems.planners.tables import DecisionTable

NODE = "node"
"""The planner's memory."""
_Domain: TypeAlias = tuple[int, int] | None
"""Least and greatest value; None for a condition."""


@dataclass(frozen=True)
class _Controller:
    """What a file says.

    Attributes:
        reads, sets: variable -> domain, of the environment and of the system.
        states: node -> its values.
        after: node -> those that may come next.
        initial: nodes.
    """

    file: str
    reads: Mapping[str, _Domain]
    sets: Mapping[str, _Domain]
    states: Mapping[str, Sequence[int]]
    after: Mapping[str, Sequence[str]]
    initial: Sequence[str]


def controller_of(
    raw: bytes, file: str, reads: Mapping[str, tuple[Node, Element]], sets: Mapping[str, Element]
) -> tuple[DecisionTable, Memory]:
    """The decision table of a controller, and its memory.

    Args:
        raw: the bytes of the file.
        reads: variable of the environment -> what it is, and where the model says that.
        sets: input -> the element of the model that names a variable of the system.

    Raises:
        InputError: no such file; a variable that nothing reads, or one that it does not have.
    """
    controller = _read(raw, file)
    for name, (_, element) in reads.items():
        if name not in controller.reads:
            raise element.fail(*unknown_name("variable of the environment", name, controller.reads))
    missing = [name for name in controller.reads if name not in reads]
    if missing:
        hint = f'reads = {{ {missing[0]} = "sees(...)" }}: a condition or a number that the controller is given'
        raise InputError(f"nothing says what the environment's '{missing[0]}' is", Place(file, path="/ENV"), hint)
    for element in sets.values():
        if element.string() not in controller.sets:
            raise element.fail(*unknown_name("variable of the system", element.string(), controller.sets))
    chosen = [list(controller.sets).index(element.string()) + len(controller.reads) for element in sets.values()]
    numbers = {name: number for number, name in enumerate(controller.states, 1)}
    cases, values = [], []
    for before, after in itertools.chain([("", controller.initial)], controller.after.items()):
        _refuse_choice(controller, before, after)
        for name in after:
            state = controller.states[name]
            cases.append([numbers.get(before, 0), *state[: len(controller.reads)]])
            values.append([*(state[k] for k in chosen), numbers[name]])
    asks: dict[str, tuple[Node, Type | None]] = {NODE: (Name(NODE), "number")}
    for name, domain in controller.reads.items():
        asks[name] = (reads[name][0], "boolean" if domain is None else "number")
    cells = np.array(cases, dtype=np.int64).reshape(-1, len(asks))
    table = DecisionTable(
        *(asks, (*sets, NODE), cells, cells, np.array(values, dtype=np.int64).reshape(len(cells), -1), file),
        lines=np.zeros(len(cells), dtype=np.int64),
        row="transition",
        names={NODE: ("the beginning", *controller.states)},
    )
    return table, Memory(NODE, Range(Number(0), Number(len(controller.states))), Number(0))


def _refuse_choice(controller: _Controller, before: str, after: Sequence[str]) -> None:
    """Refuse two next nodes that read the same."""
    seen: dict[tuple[int, ...], str] = {}
    for name in after:
        other = seen.setdefault(tuple(controller.states[name][: len(controller.reads)]), name)
        if other != name:
            where = f"among the nodes that follow {before}" if before else "among the initial nodes"
            raise InputError(
                f"{where}, {other} and {name} read the same; expected one for each reading",
                Place(controller.file, path=f"/nodes/{before}/trans" if before else "/nodes"),
                "" if before else "synthesise with the initial condition ALL_ENV_EXIST_SYS_INIT",
            )


def _read(raw: bytes, file: str) -> _Controller:
    top = _table(json_of(raw, file), ("version", "ENV", "SYS", "nodes"), file, "")
    if top["version"] != 1:
        raise InputError(
            f"expected version 1 of gr1c's JSON, got {shown(top['version'])}", Place(file, path="/version")
        )
    reads, sets = (dict(_domains(top[key], file, f"/{key}")) for key in ("ENV", "SYS"))
    domains = [*reads.values(), *sets.values()]
    nodes = _table(top["nodes"], (), file, "/nodes")
    states: dict[str, Sequence[int]] = {}
    after: dict[str, Sequence[str]] = {}
    for name, node in nodes.items():
        path = f"/nodes/{name}"
        values = _table(node, ("state", "initial", "trans"), file, path)
        states[name] = _state(values["state"], domains, file, f"{path}/state")
        after[name] = tuple(dict.fromkeys(_list(values["trans"], file, f"{path}/trans")))
        for index, target in enumerate(after[name]):
            if target not in nodes:
                place = Place(file, path=f"{path}/trans/{index}")
                raise InputError(f"expected one of the nodes, got {shown(target)}", place)
        if not isinstance(values["initial"], bool):
            place = Place(file, path=f"{path}/initial")
            raise InputError(f"expected true or false, got {shown(values['initial'])}", place)
    initial = [name for name, node in nodes.items() if node["initial"]]
    if not initial:
        raise InputError("expected at least one initial node", Place(file, path="/nodes"))
    return _Controller(file, reads, sets, states, after, initial)


def _domains(entries: Any, file: str, path: str) -> Iterator[tuple[str, _Domain]]:
    for index, entry in enumerate(_list(entries, file, path)):
        place = Place(file, path=f"{path}/{index}")
        if not isinstance(entry, dict) or len(entry) != 1:
            raise InputError(f'expected one variable and its domain, {{"x": "boolean"}}, got {shown(entry)}', place)
        ((name, domain),) = entry.items()
        if domain == "boolean":
            yield name, None
        elif _is_pair(domain):
            yield name, (domain[0], domain[1])
        else:
            raise InputError(f'{name}: expected "boolean" or [low, high], got {shown(domain)}', place)


def _is_pair(domain: Any) -> bool:
    return (
        isinstance(domain, list)
        and len(domain) == 2
        and all(type(end) is int for end in domain)
        and domain[0] <= domain[1]
    )


def _state(content: Any, domains: Sequence[_Domain], file: str, path: str) -> Sequence[int]:
    values = _list(content, file, path)
    if len(values) != len(domains):
        raise InputError(f"expected {len(domains)} values, got {len(values)}", Place(file, path=path))
    for index, (value, domain) in enumerate(zip(values, domains, strict=True)):
        low, high = domain or (0, 1)
        if not isinstance(value, int) or not low <= value <= high:
            message = f"expected a whole number from {low} to {high}, got {shown(value)}"
            raise InputError(message, Place(file, path=f"{path}/{index}"))
    return tuple(map(int, values))


def _table(content: Any, keys: Sequence[str], file: str, path: str) -> Mapping[str, Any]:
    if not isinstance(content, dict):
        raise InputError(f"expected an object, got {shown(content)}", Place(file, path=path or None))
    for key in keys:
        if key not in content:
            hint = None if path else "expected what `gr1c -t json` writes"
            raise InputError(f"missing key '{key}'", Place(file, path=path or None), hint)
    return content


def _list(content: Any, file: str, path: str) -> Sequence[Any]:
    if not isinstance(content, list):
        raise InputError(f"expected a list, got {shown(content)}", Place(file, path=path))
    return content
