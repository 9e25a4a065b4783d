"""Checking a violating run by going through it again, with nothing of the product or of the formula's progression.

Three things are checked: every step is a transition of the skeleton, the probabilities of the steps multiply to that
of the run, and the formula fails (or holds) on the run by its own semantics on single infinite words
(`verifier.language.ltl.holds_on_lasso`). For that the run is made infinite.

* Where it was decided because its obligation became false (or true), any continuation must do.
* Where it entered a bottom component, almost every continuation does, but not every one: one that stays in the
  component and wanders through it at random is taken, many times as long as the component has transitions. That is
  generic enough for formulas of sensible size; should it disagree, a longer one is asked. Where that would be too
  long to evaluate, nothing is concluded.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from fractions import Fraction

import numpy as np

from verifier.analysis.counterexamples.runs import Run, exact_probability
from verifier.analysis.objective import Objective
from verifier.analysis.sensitivity.adjoint import Values
from verifier.base.errors import EngineError
from verifier.base.graphs import Nodes, reachable, rows
from verifier.language.expressions.syntax import Node
from verifier.language.ltl import holds_on_lasso
from verifier.language.ltl.progression import ACCEPT, REJECT
from verifier.systems.skeleton import Skeleton

LONGEST_WORD = 2000
"""Letters of an infinite word, prefix and loop, up to which it is evaluated: that takes quadratic time."""
_WANDERING = (20, 200)
_PROBABILITY_TOLERANCE = 1e-11


class Replay(Enum):
    """What was checked."""

    WHOLE = "steps, probability and formula"
    STEPS = "steps and probability; made infinite, the run is too long for the formula to be evaluated on it"


def replay(
    objective: Objective,
    values: Values,
    run: Run,
    formula: Node,
    propositions: Mapping[str, Node],
    *,
    satisfying: bool = False,
    exact: Mapping[int, Fraction] | None = None,
) -> Replay:
    """Go through a violating run again.

    Args:
        objective, values: what the run was found on.
        run: to check.
        formula: over proposition names.
        propositions: name -> the state condition it stands for.
        satisfying: whether the run is to satisfy the formula.
        exact: entry of the skeleton -> its exact probability, as `with_exact` gives them; None without counts.

    Raises:
        EngineError: the run is not what it claims to be, so this program is wrong.
    """
    skeleton = objective.skeleton
    _check_steps(skeleton, values, run, exact)
    letters = _Letters(skeleton, formula, propositions)
    if run.nodes[-1] in (ACCEPT, REJECT):
        words = [_any_continuation(skeleton, values, run)]
    else:
        words = [_wandering(objective, values, run, times) for times in _WANDERING]
    for prefix, loop in words:
        if not loop or len(prefix) + len(loop) > LONGEST_WORD:
            return Replay.STEPS
        if letters.holds(prefix, loop) == satisfying:
            return Replay.WHOLE
    raise EngineError(
        f"a violating run does not violate the formula when it is evaluated on its own; the run ends in state "
        f"{int(run.states[-1])} of the chain after {run.steps} steps"
    )


def _check_steps(skeleton: Skeleton, values: Values, run: Run, exact: Mapping[int, Fraction] | None) -> None:
    probability = skeleton.entry_values(values.rates)[skeleton.entry[run.transitions]]
    rows = np.searchsorted(skeleton.indptr, run.transitions, side="right") - 1
    starts = run.states[0] in skeleton.starts
    there = np.array_equal(rows, run.states[:-1])
    there &= np.array_equal(skeleton.indices[run.transitions], run.states[1:])
    if not (starts and there and bool(np.all(probability > 0))):
        raise EngineError("a violating run takes a step that the chain does not have")
    product = float(np.prod(probability[: run.counted]))
    fraction = None if exact is None else exact_probability(skeleton, run, exact)
    for claimed in (run.probability, run.probability if fraction is None else float(fraction)):
        # Below the smallest normal double neither number has digits to compare.
        if not abs(claimed - product) <= _PROBABILITY_TOLERANCE * product * max(1, run.counted / 1000) + 1e-300:
            raise EngineError(f"the probabilities of a run multiply to {product!r}, not to {claimed!r}")


class _Letters:
    """The letters of the chain's states: the propositions that hold there."""

    def __init__(self, skeleton: Skeleton, formula: Node, propositions: Mapping[str, Node]) -> None:
        self._formula = formula
        self._masks = {name: skeleton.mask_of(node) for name, node in propositions.items()}

    def holds(self, prefix: Sequence[int], loop: Sequence[int]) -> bool:
        return holds_on_lasso(
            self._formula, [self._at(number) for number in prefix], [self._at(number) for number in loop]
        )

    def _at(self, state: int) -> frozenset[str]:
        return frozenset(name for name, mask in self._masks.items() if mask[state])


def _any_continuation(skeleton: Skeleton, values: Values, run: Run) -> tuple[list[int], list[int]]:
    """The run made infinite by its likeliest successors: prefix and loop, as states of the chain; or both empty."""
    entries = skeleton.entry_values(values.rates)
    path, seen = [int(run.states[-1])], {int(run.states[-1]): 0}
    while len(path) <= LONGEST_WORD:
        begin, end = skeleton.indptr[path[-1]], skeleton.indptr[path[-1] + 1]
        following = int(skeleton.indices[begin + np.argmax(entries[skeleton.entry[begin:end]])])
        if following in seen:
            back = seen[following]
            return [*run.states[:-1].tolist(), *path[:back]], path[back:]
        seen[following] = len(path)
        path.append(following)
    return [], []


def _wandering(objective: Objective, values: Values, run: Run, times: int) -> tuple[list[int], list[int]]:
    """The run, and a long closed walk through the bottom component in which it ends; both empty if too long."""
    last = int(run.nodes[-1])
    graph = objective.state_count, values.sources, values.targets
    edges = np.count_nonzero(reachable(*graph, np.arange(graph[0]) == last)[values.sources])
    indptr, targets = rows(*graph)
    rng = np.random.default_rng(0)
    walk, node = [last], _wander(rng, indptr, targets, last)
    while node != last or len(walk) < times * edges:
        if len(walk) > LONGEST_WORD:
            return [], []
        walk.append(node)
        node = _wander(rng, indptr, targets, node)
    return run.states[:-1].tolist(), objective.product.state[np.array(walk)].tolist()


def _wander(rng: np.random.Generator, indptr: Nodes, targets: Nodes, node: int) -> int:
    return int(rng.choice(targets[indptr[node] : indptr[node + 1]]))
