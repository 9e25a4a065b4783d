"""The chance of meeting a formula from every state, drawn over one or two variables of the system."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from verifier.analysis.objective import build_objective
from verifier.base.arrays import Floats, Ints
from verifier.base.errors import LimitError, UsageError, unknown_name
from verifier.language.expressions.syntax import Node
from verifier.systems.skeleton import Skeleton

LARGEST_MAP = 4_000_000
"""Values of the variables taken together."""


@dataclass(frozen=True, eq=False)
class StateMap:
    """P(formula | the run starts in the state), over one or two variables.

    Attributes:
        values: for each variable its values, increasing.
        probability: one axis for each variable; NaN where no reachable state has these values. Where several have
            (other variables differ, or what the planner remembers), that of the worst.
        largest: whether the worst is the largest probability (`P <= target`), and not the smallest.
    """

    variables: tuple[str, ...]
    values: tuple[Ints, ...]
    probability: Floats
    largest: bool

    def __post_init__(self) -> None:
        if len(self.variables) != len(self.values) or self.probability.shape != tuple(map(len, self.values)):
            raise ValueError("a map has one axis for each of its variables")


def state_map(
    skeleton: Skeleton,
    formula: Node,
    propositions: Mapping[str, Node],
    rates: Floats,
    variables: Sequence[str] = (),
    *,
    largest: bool = False,
    max_states: int = 50_000_000,
) -> StateMap:
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
    return StateMap(chosen, tuple(axes), worst.reshape(shape), largest)


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
