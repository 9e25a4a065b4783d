"""What the exports share: which labels they write, names other tools accept, and probabilities as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

import numpy as np

from verifier.base.errors import InputError, LimitError
from verifier.chains.chain import MarkovChain
from verifier.chains.decision_process import DecisionProcess

Model: TypeAlias = MarkovChain | DecisionProcess

INITIAL_LABEL = "init"
"""The label that Storm and PRISM give to the initial states of every model."""
_LARGEST_LITERAL = 2**63 - 1  # Storm's parser


def labels_to_write(model: Model, labels: Collection[str] | None = None) -> list[str]:
    """Sorted names of the chosen labels (None: all); "init" is left out, for every format marks those states.

    Raises:
        InputError: a label is named "init" but does not mark the initial states.
        ValueError: a chosen label is unknown.
    """
    names = sorted(model.labels if labels is None else set(labels))
    unknown = [name for name in names if name not in model.labels]
    if unknown:
        raise ValueError(f"unknown labels: {unknown}")
    if INITIAL_LABEL in names:
        if not np.array_equal(np.flatnonzero(model.labels[INITIAL_LABEL]), np.unique(model.initial)):
            message = f'the label "{INITIAL_LABEL}" must mark exactly the initial states, as it does in Storm'
            raise InputError(message, hint="give the label another name")
        names.remove(INITIAL_LABEL)
    return names


def refuse_long_fractions(model: Model, form: str) -> None:
    """LimitError where a fraction is longer than the literals that readers of this format take."""
    if model.fractions is not None and any(each.denominator > _LARGEST_LITERAL for each in model.fractions):
        hint = "the DRN and UMB exports take longer fractions"
        raise LimitError(f"a probability is a fraction of more than 63 bits, too long for {form}", hint=hint)


def distinct_names(names: Iterable[str], cleaned: Callable[[str], str], reserved: Collection[str]) -> dict[str, str]:
    """Each name with its cleaned form; a number is appended where that is reserved or would occur twice."""
    taken, result = set(reserved), dict[str, str]()
    for name in names:
        clean, number = cleaned(name), 2
        unique = clean
        while unique in taken:
            unique, number = f"{clean}_{number}", number + 1
        taken.add(unique)
        result[name] = unique
    return result


def identifier(name: str) -> str:
    """`name` with letters, digits and underscores only, beginning with a letter."""
    clean = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return clean if clean[:1].isalpha() else f"n{clean}"


def head_comments(model: Model) -> list[str]:
    """Comment lines that say who wrote a file, and what the choices of a process stand for."""
    remark = remark_of(model)
    return ["// Written by verifier.", *([f"// {remark}"] if remark else [])]


def remark_of(model: Model) -> str:
    """What the choices of a process stand for, where that is said."""
    return model.remark if isinstance(model, DecisionProcess) else ""


def renaming_comments(kind: str, names: dict[str, str]) -> list[str]:
    """A comment line for each name that had to change; the original as a JSON string, so on one line of ASCII."""
    return [f"// {kind} {new} is {json.dumps(old)}" for old, new in names.items() if old != new]


def probability_texts(chain: Model) -> list[str]:
    """Each transition's probability: the fraction where there is one, else the shortest text of the double.

    Raises:
        LimitError: a fraction is too long to be written in decimal digits.
    """
    if chain.fractions is None:
        return [repr(probability) for probability in chain.probabilities.tolist()]
    try:
        return [str(fraction) for fraction in chain.fractions]
    except ValueError:  # Python refuses to write integers of more than some thousand digits
        hint = "a UMB archive takes fractions of any length"
        raise LimitError("a probability is a fraction too long for a text format", hint=hint) from None
