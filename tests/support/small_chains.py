"""Small chains and decision processes written as dictionaries, for hand-solved tests."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from verifier.base.arrays import Mask
from verifier.base.errors import LimitError
from verifier.chains.chain import DecisionProcess, MarkovChain
from verifier.checking.two_engines import answers_within_limits

Rows = Sequence[Mapping[int, Fraction | float | int]]


Labels = Mapping[str, Collection[int] | Mask]


def chain_of(
    rows: Rows,
    labels: Labels | None = None,
    initial: Sequence[int] = (0,),
    defect: float = 0.0,
    *,
    exact: bool = False,
    **more: Any,
) -> MarkovChain:
    """A chain from one {successor: probability} per state and one set or mask of states per label; with `exact` the
    probabilities are its fractions, too."""
    parts = _parts(rows, len(rows), labels or {}, initial, exact)
    return MarkovChain(**parts, rounding_defect=defect, **more)


def process_of(
    states: Sequence[Rows],
    labels: Labels | None = None,
    initial: Sequence[int] = (0,),
    *,
    exact: bool = False,
    **more: Any,
) -> DecisionProcess:
    """A decision process from, per state, a list of choices as the rows of `chain_of`."""
    starts = np.cumsum([0, *map(len, states)]).astype(np.int64)
    rows = [row for choices in states for row in choices]
    return DecisionProcess(**_parts(rows, len(states), labels or {}, initial, exact), choice_starts=starts, **more)


def _parts(rows: Rows, n: int, labels: Labels, initial: Sequence[int], exact: bool) -> dict[str, Any]:
    flat = [(target, weight) for row in rows for target, weight in sorted(row.items())]
    return {
        "indptr": np.cumsum([0, *map(len, rows)]).astype(np.int64),
        "indices": np.array([target for target, _ in flat], dtype=np.int64),
        "probabilities": np.array([float(weight) for _, weight in flat]),
        "labels": {
            name: there if isinstance(there, np.ndarray) else np.isin(np.arange(n), list(there))
            for name, there in labels.items()
        },
        "initial": np.array(initial, dtype=np.int64),
        "fractions": tuple(Fraction(weight) for _, weight in flat) if exact else None,
    }


def check_formulas(*asked, **more):
    """What both engines say about each formula, where each has an answer."""
    answers = answers_within_limits(*asked, **more)
    for answer in answers:
        if isinstance(answer, LimitError):
            raise answer
    return answers
