"""Export to the languages of other model checkers: PRISM, which PRISM and Storm read, and JANI.

PRISM: one module with one command per state, or per choice of a decision process. Where the state variables tell all
states apart, they are the variables of the module; otherwise there is one variable `s`, the index of the state. A
label is the disjunction of the states that have it, with neighbours in the last variable taken together. Language:
Kwiatkowska, Norman & Parker, PRISM manual, https://www.prismmodelchecker.org/manual/ThePRISMLanguage.

A model checker tries every command in every state, so this export is for chains of some thousand states; larger
ones go through UMB. Storm 2.0 reads a decimal number in this language up to one unit in its last place wrong.

JANI: one automaton with one location, as JSON. An edge is a state of a chain or a choice of a decision process, its
destinations are the successors. Variables and labels are those of PRISM; a label is a transient variable with a
condition. The format: Budde, Dehnert, Hahn, Hartmanns, Junges & Turrini, JANI: quantitative model and tool
interaction (TACAS 2017), https://jani-spec.org
"""

from collections.abc import Collection, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import marked, rows_of
from verifier.base.files import document_text, write_text
from verifier.chains.chain import DecisionProcess
from verifier.chains.texts import (
    INITIAL_LABEL,
    Model,
    distinct_names,
    head_comments,
    identifier,
    labels_to_write,
    probability_texts,
    refuse_long_fractions,
    renaming_comments,
)

_MODULE = "chain"
_LARGEST_VALUE = 2**31 - 1  # PRISM's integers have 32 bits
_KEYWORDS_TEXT = """
    A bool clock const ctmc C double dtmc E endinit endinvariant endmodule endobservables endplayer endrewards
    endsystem false formula filter func F global G init invariant I int label log ma max mdp min mod module X
    nondeterministic observable observables of Pmax Pmin P player pomdp popta pow probabilistic prob pta rate
    rewards Rmax Rmin R round S smg stochastic system true U W ceil floor deadlock
"""
KEYWORDS = frozenset(_KEYWORDS_TEXT.split())


def write_prism(chain: Model, path: str | Path) -> None:
    """Write a model as a PRISM program, with its fractions where it has them and else with every digit.

    Names that PRISM would not accept are changed, and a comment gives the original.

    Raises:
        InputError: the file cannot be written, or a label is named "init" but does not mark the initial states.
        LimitError: a fraction has a numerator or denominator of more than 63 bits.
    """
    refuse_long_fractions(chain, "PRISM")
    variables, table = state_variables(chain, KEYWORDS | {_MODULE})
    labels = distinct_names(labels_to_write(chain), identifier, reserved=KEYWORDS)
    names = list(variables.values())
    one_initial = len(chain.initial) == 1
    lines = [
        *head_comments(chain),
        *renaming_comments("variable", variables),
        *renaming_comments("label", labels),
        "mdp" if isinstance(chain, DecisionProcess) else "dtmc",
        "",
        f"module {_MODULE}",
        *_declarations(names, table, table[chain.initial[0]] if one_initial else None),
        "",
        *_commands(chain, names, table),
        "endmodule",
        "",
    ]
    if not one_initial:
        is_initial = marked(chain.state_count, chain.initial)
        lines += [f"{INITIAL_LABEL} {_condition(names, table, is_initial)} endinit", ""]
    lines += [f'label "{name}" = {_label(names, table, chain.labels[old])};' for old, name in labels.items()]
    write_text(path, "\n".join(lines) + "\n")


def state_variables(chain: Model, reserved: Collection[str]) -> tuple[dict[str, str], NDArray[np.int64]]:
    """State variables, each with the name it gets, and their values (n, variables)."""
    if chain.valuations:
        table = np.stack(list(chain.valuations.values()), axis=1)
        fits = table.min() >= -_LARGEST_VALUE and table.max() <= _LARGEST_VALUE
        if fits and len(np.unique(table, axis=0)) == chain.state_count:
            return distinct_names(chain.valuations, identifier, reserved=reserved), table
    return {"s": "s"}, np.arange(chain.state_count, dtype=np.int64)[:, np.newaxis]


def _declarations(names: list[str], table: NDArray[np.int64], start: NDArray[np.int64] | None) -> list[str]:
    """One line per variable, with its start value unless the program has an `init` block."""
    lows, highs = table.min(axis=0), table.max(axis=0)
    return [
        f"  {name} : [{low}..{high}]" + (";" if start is None else f" init {start[i]};")
        for i, (name, low, high) in enumerate(zip(names, lows, highs, strict=True))
    ]


def _commands(chain: Model, names: list[str], table: NDArray[np.int64]) -> list[str]:
    """One line per state or choice: what holds in the state, and the successors with their probabilities."""
    columns = [column.tolist() for column in table.T]
    guards = [
        " & ".join(f"{name}={value}" for name, value in zip(names, row, strict=True))
        for row in zip(*columns, strict=True)
    ]
    updates = [
        " & ".join(f"({name}'={value})" for name, value in zip(names, row, strict=True))
        for row in zip(*columns, strict=True)
    ]
    branches = [
        f"{probability} : {updates[target]}"
        for target, probability in zip(chain.indices.tolist(), probability_texts(chain), strict=True)
    ]
    starts = chain.indptr.tolist()
    return [
        f"  [] {guards[state]} -> {' + '.join(branches[start:end])};"
        for state, start, end in zip(state_of_rows(chain), starts, starts[1:], strict=False)
    ]


def state_of_rows(chain: Model) -> list[int]:
    """The state of each row of transitions: one for each state of a chain, one for each choice of a process."""
    owner = rows_of(chain.choice_starts) if isinstance(chain, DecisionProcess) else np.arange(chain.state_count)
    return list(map(int, owner))


def _label(names: list[str], table: NDArray[np.int64], mask: NDArray[np.bool_]) -> str:
    """A condition that holds in the states of `mask` and in no other state of the chain."""
    if mask.all():
        return "true"
    return _condition(names, table, mask) if mask.any() else "false"


def _condition(names: list[str], table: NDArray[np.int64], mask: NDArray[np.bool_]) -> str:
    """A condition that holds for the values of the states of `mask`, at least one, and for no other values."""
    return " | ".join(_box(names, low, high) for low, high in boxes_of(table[mask]))


def boxes_of(rows: NDArray[np.int64]) -> Iterator[tuple[list[int], list[int]]]:
    """The values of some states, at least one, with neighbours in the last variable taken together: from .. to."""
    rows = rows[np.lexsort(rows.T[::-1])]
    steps = np.diff(rows, axis=0)
    continues = (steps[:, :-1] == 0).all(axis=1) & (steps[:, -1] == 1)
    first = np.flatnonzero(np.r_[True, ~continues])
    last = np.r_[first[1:], len(rows)] - 1
    return zip(rows[first].tolist(), rows[last].tolist(), strict=True)


def _box(names: list[str], low: list[int], high: list[int]) -> str:
    """The states between two that differ at most in the last variable."""
    parts = [
        f"{name}={start}" if start == end else f"{name}>={start} & {name}<={end}"
        for name, start, end in zip(names, low, high, strict=True)
    ]
    return f"({' & '.join(parts)})"


_LOCATION, _AUTOMATON = "here", "world"
_JANI_WORDS = frozenset({"true", "false", "init", "deadlock", _LOCATION, _AUTOMATON})


def write_jani(model: Model, path: str | Path) -> None:
    """Write a model as JANI, with its fractions where it has them and else with every digit.

    Names that other tools would not accept are changed; the description says what they stand for.

    Raises:
        InputError: the file cannot be written, or a label is named "init" but does not mark the initial states.
        LimitError: a fraction has a numerator or denominator of more than 63 bits.
    """
    refuse_long_fractions(model, "JANI")
    variables, table = state_variables(model, _JANI_WORDS)
    names = list(variables.values())
    labels = distinct_names(labels_to_write(model), identifier, reserved=[*_JANI_WORDS, *names])
    one = len(model.initial) == 1
    renamed = [(old, new) for old, new in [*variables.items(), *labels.items()] if old != new]
    said = [model.remark] if model.remark else []
    columns = (table.min(axis=0).tolist(), table.max(axis=0).tolist(), table[model.initial[0]].tolist())
    document: dict[str, object] = {
        "jani-version": 1,
        "name": "verifier",
        "type": "mdp" if isinstance(model, DecisionProcess) else "dtmc",
        "metadata": {"description": "; ".join([*said, *(f"{new} is {old!r}" for old, new in renamed)])},
        "features": [],
        "variables": [
            {
                "name": name,
                "type": {"kind": "bounded", "base": "int", "lower-bound": low, "upper-bound": high},
                **({"initial-value": start} if one else {}),
            }
            for name, low, high, start in zip(names, *columns, strict=True)
        ]
        + [{"name": name, "type": "bool", "transient": True, "initial-value": False} for name in labels.values()],
        "automata": [
            {
                "name": _AUTOMATON,
                "locations": [
                    {
                        "name": _LOCATION,
                        "transient-values": [
                            {"ref": name, "value": _condition_value(names, table, model.labels[old])}
                            for old, name in labels.items()
                        ],
                    }
                ],
                "initial-locations": [_LOCATION],
                "edges": _edges(model, names, table),
            }
        ],
        "system": {"elements": [{"automaton": _AUTOMATON}]},
    }
    if not one:
        begun = _condition_value(names, table, marked(model.state_count, model.initial))
        document["restrict-initial"] = {"exp": begun}
    write_text(path, document_text(document))


def _edges(model: Model, names: list[str], table: Any) -> list[dict[str, object]]:
    rows = table.tolist()
    numbers = model.probabilities.tolist() if model.fractions is None else list(map(_fraction, model.fractions))
    destinations = [
        {
            "location": _LOCATION,
            "probability": {"exp": number},
            "assignments": [{"ref": name, "value": value} for name, value in zip(names, rows[target], strict=True)],
        }
        for number, target in zip(numbers, model.indices.tolist(), strict=True)
    ]
    starts = model.indptr.tolist()
    return [
        {
            "location": _LOCATION,
            "guard": {"exp": _box_value(names, rows[state], rows[state])},
            "destinations": destinations[low:high],
        }
        for state, low, high in zip(state_of_rows(model), starts, starts[1:], strict=False)
    ]


def _fraction(number: Fraction) -> Any:
    whole = number.denominator == 1
    return number.numerator if whole else {"op": "/", "left": number.numerator, "right": number.denominator}


def _condition_value(names: list[str], table: Any, mask: Any) -> Any:
    """A condition that holds in the states of `mask` and in no other state."""
    if not mask.any() or mask.all():
        return bool(mask.all())
    return _together("\u2228", [_box_value(names, low, high) for low, high in boxes_of(table[mask])])


def _box_value(names: list[str], low: list[int], high: list[int]) -> Any:
    parts: list[Any] = []
    for name, start, end in zip(names, low, high, strict=True):
        if start == end:
            parts.append({"op": "=", "left": name, "right": start})
        else:
            parts += [{"op": "\u2264", "left": start, "right": name}, {"op": "\u2264", "left": name, "right": end}]
    return _together("\u2227", parts)


def _together(operator: str, parts: list[Any]) -> Any:
    """All parts joined, as a tree whose depth grows with the logarithm of their number."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return {"op": operator, "left": _together(operator, parts[:half]), "right": _together(operator, parts[half:])}
