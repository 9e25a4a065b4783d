"""The chance of meeting a formula from every state, drawn over one or two variables of the system."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from verifier.analysis.objective import build_objective
from verifier.base.arrays import Floats
from verifier.base.documents import Limits
from verifier.base.errors import LimitError, UsageError, unknown_name
from verifier.base.result import plain
from verifier.language.expressions.syntax import Node
from verifier.systems.skeleton import Skeleton

LARGEST_MAP = 4_000_000
"""Values of the variables taken together."""


@dataclass(frozen=True)
class MapRecord:
    """P for runs that start in a state, over one or two variables.

    Attributes:
        values: of each variable.
        worst_is_largest: where several states have these values, the probability is that of the worst.
        probability: one axis for each variable; None where no run comes.
    """

    variables: Annotated[tuple[str, ...], Limits(min_length=1)]
    values: tuple[tuple[int, ...], ...]
    worst_is_largest: bool
    probability: tuple[float | None, ...] | tuple[tuple[float | None, ...], ...]


def state_map(
    skeleton: Skeleton,
    formula: Node,
    propositions: Mapping[str, Node],
    rates: Floats,
    variables: Sequence[str] = (),
    *,
    largest: bool = False,
    max_states: int = 50_000_000,
) -> MapRecord:
    """The map for one family of matrices.

    Args:
        skeleton: of one planner, environment and set of constants; its reachable states are drawn.
        formula: over proposition names.
        propositions: name -> the state condition it stands for.
        rates: (bins, predicted, true); NaN in columns that the chain does not need.
        variables: one or two; empty for the first two of the model.
        max_states: most product states to build.

    Raises:
        UsageError: an unknown variable, one named twice, or more than two.
        LimitError: the map or the product would be too large.
    """
    chosen = map_variables(tuple(skeleton.valuations), variables)
    columns = [skeleton.valuations[name] for name in chosen]
    axes = [np.arange(column.min(), column.max() + 1) for column in columns]
    shape = tuple(map(len, axes))
    cells = int(np.prod(shape, dtype=object))
    if cells > LARGEST_MAP:
        raise LimitError(
            f"a map over {' and '.join(chosen)} has {cells} places; at most {LARGEST_MAP} are drawn",
            hint="name other variables, or only one",
        )
    everywhere = replace(skeleton, starts=np.arange(skeleton.state_count))
    objective = build_objective(everywhere, formula, propositions, max_states)
    probability = objective.probabilities(rates[np.newaxis]).probability[0]
    place = np.ravel_multi_index(tuple(c - axis[0] for c, axis in zip(columns, axes, strict=True)), shape)
    worst = np.full(cells, -np.inf if largest else np.inf)
    (np.maximum if largest else np.minimum).at(worst, place, probability)
    worst[np.isinf(worst)] = np.nan
    values = tuple(tuple(axis.tolist()) for axis in axes)
    return MapRecord(chosen, values, largest, plain(worst.reshape(shape)))


def map_variables(known: Sequence[str], variables: Sequence[str]) -> tuple[str, ...]:
    """The variables that a map is drawn over: those that are asked for, else the first two of those that are known.

    Raises:
        UsageError: one is not known, or they are not one or two different ones.
    """
    chosen = tuple(variables) or tuple(known[:2])
    for name in chosen:
        if name not in known:
            raise UsageError(": ".join(unknown_name("variable", name, known)))
    if len(chosen) > 2 or len(set(chosen)) < len(chosen):
        raise UsageError(f"a map has one or two different variables, got {', '.join(chosen)}")
    return chosen
