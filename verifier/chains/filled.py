"""From a skeleton and a matrix to a Markov chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import rows_of
from verifier.base.errors import InputError, UsageError
from verifier.chains.chain import DecisionProcess, MarkovChain
from verifier.perception.confusion import ConfusionMatrices, exact_rates, rates
from verifier.perception.confusion.matrices import label_text
from verifier.systems.skeleton import Skeleton
from verifier.systems.strategies import StrategySkeleton

LARGEST_DECIMALS = 15


def filled_counts(skeleton: Skeleton, matrices: ConfusionMatrices, empty_columns: str) -> NDArray[np.int64]:
    """Counts for `Skeleton.fill`, every column the chain draws from having items.

    Args:
        skeleton: built for matrices with these bins and labels.
        empty_columns: a policy of `EMPTY_COLUMN_POLICIES`.

    Raises:
        InputError: under the policy "error", a column that the chain needs has no items.
    """
    counts, _ = matrices.without_empty_columns(empty_columns)
    used = skeleton.columns_needed()
    missing = [_column_text(matrices, at, column) for at, column in used.tolist() if not counts[at, :, column].any()]
    if missing:
        named = ", ".join(missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        which = "--empty-columns prior, neighbour, pool or miss"
        if matrices.memory is not None and matrices.memory.policy == "error":  # else columns alone may lack items
            which = "--empty-contexts backoff, pool or prior (of whole columns: --empty-columns)"
        raise InputError(
            f"no items with {named}{more}, and the chain for environment '{skeleton.environment}' needs their rates",
            hint=f"collect data, or name what to assume: {which}",
        )
    return counts


FROM = ", from "
"""Before what the rates of a context without items come from."""


def assumed_columns(skeleton: Skeleton, matrices: ConfusionMatrices) -> list[str]:
    """Descriptions of the matrix columns that the chain depends on although they have no items."""
    _, filled = matrices.without_empty_columns("error")
    used = skeleton.columns_needed()
    pairs = used[filled[used[:, 0], used[:, 1]]].tolist()
    sources = [matrices.filled_from(*pair) for pair in pairs]
    return [
        _column_text(matrices, *pair) + (FROM + source if source else "")
        for pair, source in zip(pairs, sources, strict=True)
    ]


def _column_text(matrices: ConfusionMatrices, index: int, column: int) -> str:
    return f"true label {label_text(matrices.labels[column])} in bin {matrices.bin_text(index)}"


def markov_chain(
    skeleton: Skeleton,
    counts: NDArray[np.int64],
    labels: Mapping[str, NDArray[np.bool_]],
    *,
    exact: bool = False,
    decimals: int | None = None,
) -> MarkovChain:
    """The chain of a skeleton and one family of matrices.

    Transitions of probability 0 are left out: whether an edge exists decides graph questions.

    Args:
        skeleton: the structure.
        counts: (bins, predicted, true) from `filled_counts`.
        labels: name -> (n,) mask.
        exact: also keep the probabilities as exact fractions.
        decimals: round every transition probability to so many decimals, as the archive of the published
            numbers did by writing the chain as text; rows then need not sum to 1.
    """
    entries = skeleton.entry_values(rates(counts))
    fractions: list[Fraction] | None = None
    if exact or decimals is not None:
        fractions = [Fraction(each) for each in skeleton.entry_values(exact_rates(counts))]
    if decimals is not None and fractions is not None:
        if not 1 <= decimals <= LARGEST_DECIMALS:
            raise UsageError(f"expected 1 to {LARGEST_DECIMALS} decimals to round to, got {decimals}")
        fractions = [round(each, decimals) for each in fractions]
        entries = np.array([float(each) for each in fractions])
    defect = 0.0 if decimals is None else skeleton.entry_observations.shape[1] * 0.5 * 10.0**-decimals
    if np.any(np.maximum.reduceat(entries[skeleton.entry], skeleton.indptr[:-1]) == 0):
        raise UsageError(f"rounded to {decimals} decimals, every transition of some state is 0: keep more decimals")
    return chain_of_entries(skeleton, entries, labels, fractions if exact else None, defect)


def chain_of_entries(
    skeleton: Skeleton,
    entries: NDArray[np.float64],
    labels: Mapping[str, NDArray[np.bool_]],
    fractions: Sequence[Fraction] | None = None,
    defect: float = 0.0,
) -> MarkovChain:
    """The chain with the probabilities of these (entries,) values, and with their fractions where there are some."""
    kept = (entries > 0)[skeleton.entry]
    lengths = np.bincount(rows_of(skeleton.indptr)[kept], minlength=skeleton.state_count)
    entry = skeleton.entry[kept]
    return MarkovChain(
        indptr=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        indices=skeleton.indices[kept],
        probabilities=entries[entry],
        labels=dict(labels),
        initial=skeleton.starts,
        fractions=None if fractions is None else tuple(fractions[each] for each in entry),
        valuations=valuations_of(skeleton),
        rounding_defect=defect,
    )


def valuations_of(skeleton: Skeleton) -> dict[str, NDArray[np.int64]]:
    """What each state means; with the run the planner follows, where there is more than one."""
    found = dict(skeleton.valuations)
    if skeleton.memory.any():
        name = "run"
        while name in found:
            name += "_"
        found[name] = skeleton.memory
    return found


def decision_process(
    strategies: StrategySkeleton,
    counts: NDArray[np.int64],
    labels: Mapping[str, NDArray[np.bool_]],
    *,
    exact: bool = False,
) -> DecisionProcess:
    """The decision process of all winning strategies, or of a world that decides, for one family of matrices;
    arguments as `markov_chain`."""
    choices = strategies.choices
    probabilities = choices.fill(rates(counts))
    kept = probabilities > 0
    fractions = choices.fill(exact_rates(counts))[kept] if exact else None
    owners = rows_of(choices.indptr)[kept]
    per_choice = np.bincount(owners, minlength=len(choices.indptr) - 1)
    return DecisionProcess(
        choice_starts=strategies.choice_starts,
        indptr=np.concatenate([[0], np.cumsum(per_choice)]).astype(np.int64),
        indices=choices.indices[kept],
        probabilities=probabilities[kept],
        labels=dict(labels),
        initial=choices.starts,
        fractions=None if fractions is None else tuple(map(Fraction, fractions)),
        valuations=valuations_of(choices),
    )
