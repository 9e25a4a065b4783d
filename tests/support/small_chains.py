"""Small chains written as dictionaries, for hand-solved tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from verifier.base.errors import LimitError
from verifier.chains.chain import MarkovChain
from verifier.checking.two_engines import answers_within_limits

Rows = Sequence[Mapping[int, Fraction | float | int]]


def chain_of(
    rows: Rows, labels: Mapping[str, set[int]] | None = None, initial: Sequence[int] = (0,), defect: float = 0.0
) -> MarkovChain:
    """A chain from one {successor: probability} per state and one set of states per label."""
    n = len(rows)
    return MarkovChain(
        indptr=np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64),
        indices=np.array([target for row in rows for target in sorted(row)], dtype=np.int64),
        probabilities=np.array([float(row[target]) for row in rows for target in sorted(row)]),
        labels={name: np.isin(np.arange(n), list(states)) for name, states in (labels or {}).items()},
        initial=np.array(initial, dtype=np.int64),
        rounding_defect=defect,
    )


def check_formulas(*asked, **more):
    """What both engines say about each formula, where each has an answer."""
    answers = answers_within_limits(*asked, **more)
    for answer in answers:
        if isinstance(answer, LimitError):
            raise answer
    return answers
