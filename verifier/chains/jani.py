"""Export to JANI, the JSON format of models that several tools exchange.

One automaton with one location. An edge is a state of a chain or a choice of a decision process, its destinations are
the successors. Variables and labels are those of the PRISM export; a label is a transient variable with a condition.
The format: Budde, Dehnert, Hahn, Hartmanns, Junges & Turrini, JANI: quantitative model and tool interaction (TACAS
2017), https://jani-spec.org
"""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.files import document_text, write_text
from verifier.chains.chain import DecisionProcess
from verifier.chains.prism import boxes_of, state_of_rows, state_variables
from verifier.chains.texts import Model, distinct_names, identifier, labels_to_write, refuse_long_fractions

_LOCATION, _AUTOMATON = "here", "world"
_KEYWORDS = frozenset({"true", "false", "init", "deadlock", _LOCATION, _AUTOMATON})


def write_jani(model: Model, path: str | Path) -> None:
    """Write a model as JANI, with its fractions where it has them and else with every digit.

    Names that other tools would not accept are changed; the description says what they stand for.

    Raises:
        InputError: the file cannot be written, or a label is named "init" but does not mark the initial states.
        LimitError: a fraction has a numerator or denominator of more than 63 bits.
    """
    refuse_long_fractions(model, "JANI")
    variables, table = state_variables(model, _KEYWORDS)
    names = list(variables.values())
    labels = distinct_names(labels_to_write(model), identifier, reserved=[*_KEYWORDS, *names])
    one = len(model.initial) == 1
    begun = np.zeros(model.state_count, dtype=bool)
    begun[model.initial] = True
    renamed = [(old, new) for old, new in [*variables.items(), *labels.items()] if old != new]
    said = [model.remark] if model.remark else []
    columns = (table.min(axis=0).tolist(), table.max(axis=0).tolist(), table[model.initial[0]].tolist())
    document: dict[str, Any] = {
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
                            {"ref": name, "value": _condition(names, table, model.labels[old])}
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
        document["restrict-initial"] = {"exp": _condition(names, table, begun)}
    write_text(path, document_text(document))


def _edges(model: Model, names: list[str], table: Any) -> list[dict[str, Any]]:
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
            "guard": {"exp": _box(names, rows[state], rows[state])},
            "destinations": destinations[low:high],
        }
        for state, low, high in zip(state_of_rows(model), starts, starts[1:], strict=False)
    ]


def _fraction(number: Fraction) -> Any:
    whole = number.denominator == 1
    return number.numerator if whole else {"op": "/", "left": number.numerator, "right": number.denominator}


def _condition(names: list[str], table: Any, mask: Any) -> Any:
    """A condition that holds in the states of `mask` and in no other state."""
    if not mask.any() or mask.all():
        return bool(mask.all())
    return _together("\u2228", [_box(names, low, high) for low, high in boxes_of(table[mask])])


def _box(names: list[str], low: list[int], high: list[int]) -> Any:
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
