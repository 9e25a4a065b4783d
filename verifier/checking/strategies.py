"""The range of a requirement's probability over every strategy of a decision process, by both engines.

Storm computes the least and the greatest probability for full LTL. The second engine takes the product of the
process with the formula's progression and iterates the optimality equations from below (all 0) and from above (all
1) until the two meet (interval iteration: Haddad and Monmege, Interval iteration algorithm for MDPs and IMDPs,
Theoretical Computer Science 735, 2018). They meet where every strategy ends up in states that only loop, as in
episodes that end; where they do not, the range is not confirmed, and the result says so.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, rows_of
from verifier.base.errors import EngineError
from verifier.chains.chain import DecisionProcess
from verifier.checking.enclosure import AGREEMENT
from verifier.checking.graphs import ranges
from verifier.checking.plan import decide
from verifier.checking.process import StormProcess
from verifier.checking.product import Product, build_product
from verifier.checking.settings import EngineSettings
from verifier.language.expressions import to_text
from verifier.language.expressions.syntax import Node, Operation
from verifier.language.ltl import to_storm
from verifier.language.ltl.progression import ACCEPT, REJECT

MOST_ITERATIONS = 20_000
MEETING_WIDTH = 1e-10
"""How close the iterations from below and from above must come to count as met."""


@dataclass(frozen=True, eq=False)
class StrategyRange:
    """Least and greatest probability over all strategies, at the m initial states.

    Attributes:
        smallest, largest: (m,) Storm's values.
        confirmed: whether the second engine found the same numbers.
    """

    smallest: Floats
    largest: Floats
    confirmed: bool


def strategy_range(
    process: DecisionProcess, formula: Node, storm: StormProcess, settings: EngineSettings = EngineSettings()
) -> StrategyRange:
    """The range of a formula's probability over all strategies of `process`.

    Raises:
        EngineError: Storm failed, or the engines disagree; the message names both numbers.
        LimitError: the product of process and formula would be too large.
    """
    least, least_enclosure = _optimum(process, formula, storm, settings, greatest=False)
    most, most_enclosure = _optimum(process, formula, storm, settings, greatest=True)
    confirmed = all(
        bool(np.all(upper - lower <= MEETING_WIDTH)) for lower, upper in (least_enclosure, most_enclosure)
    )
    if np.any(least > most + AGREEMENT):
        raise EngineError(f"Storm's least probability of {to_text(formula)} exceeds its greatest: {least} and {most}")
    return StrategyRange(least, most, confirmed)


def _optimum(
    process: DecisionProcess, formula: Node, storm: StormProcess, settings: EngineSettings, *, greatest: bool
) -> tuple[Floats, tuple[Floats, Floats]]:
    """(m,) Storm's optimum and the second engine's enclosure of it.

    The greatest probability of a formula and the least of its negation add up to 1. Storm translates some formulas
    into a wrong automaton; asking for the negation exposes most of them.
    """
    operator, opposite = ("Pmax=?", "Pmin=?") if greatest else ("Pmin=?", "Pmax=?")
    with storm.asked(process, [to_storm(formula)], operator=operator, timeout_s=settings.timeout_s) as answers:
        lower, upper = optimal_probabilities(process, formula, greatest, settings.product_states)
        answer = next(answers)
    negation = to_storm(Operation("!", (formula,)))
    other = storm.check(process, [negation], operator=opposite, timeout_s=settings.timeout_s)[0]
    apart = np.maximum(lower - answer.value, answer.value - upper)
    apart = np.maximum(apart, np.abs(answer.value + other.value - 1))
    if np.any(~(apart <= AGREEMENT)):
        at = int(np.argmax(apart))
        raise EngineError(
            f"the engines disagree on {operator} of {to_text(formula)} at initial state {at}: {answer.engine} says "
            f"{float(answer.value[at])!r} (and {opposite} of the negation {float(other.value[at])!r}), interval "
            f"iteration says {float(lower[at])!r} to {float(upper[at])!r}"
        )
    return answer.value, (lower, upper)


def optimal_probabilities(
    process: DecisionProcess, formula: Node, greatest: bool, max_states: int = 50_000_000
) -> tuple[Floats, Floats]:
    """(m,) bounds from below and from above of the least or greatest probability at each initial state."""
    state_rows = process.indptr[process.choice_starts]
    product = build_product(
        state_rows, process.indices, process.labels, formula, process.initial, max_states=max_states
    )
    one, zero = _settled(process, product, state_rows)
    choice_start, row_start = _choice_boundaries(process, product)
    weights = process.probabilities[product.edge]
    optimum = np.maximum if greatest else np.minimum

    def step(value: Floats) -> Floats:
        new = np.zeros(product.state_count)
        if len(product.edge):
            per_choice = np.add.reduceat(weights * value[product.indices], choice_start)
            new[2:] = optimum.reduceat(per_choice, row_start)
        new[one], new[zero] = 1.0, 0.0
        return new

    ends = np.array([one, ~zero], dtype=np.float64)
    for _ in range(MOST_ITERATIONS):
        following = np.array([step(values) for values in ends])
        still, ends = np.array_equal(following, ends), following
        lower, upper = ends[:, product.start]
        if still or np.all(upper - lower <= MEETING_WIDTH / 100):
            break
    return lower, upper


def _settled(
    process: DecisionProcess, product: Product, state_rows: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Product states that have value 1, and value 0, whatever the strategy: decided, or where a state only loops."""
    sources = rows_of(state_rows)
    leaves = np.bincount(sources[process.indices != sources], minlength=process.state_count) > 0
    looping = np.zeros(product.state_count, dtype=bool)
    looping[2:] = ~leaves[product.state[2:]]
    graph = decide(product, np.ones(len(process.indices), dtype=bool)).graph
    # A looping state may still pass through several obligations; only where they settle is it a bottom component.
    one, zero = graph.accepting & looping, graph.rejecting & looping
    one[ACCEPT], zero[REJECT] = True, True
    return one, zero


def _choice_boundaries(process: DecisionProcess, product: Product) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each choice of each product state begins among the product's transitions, and each state among those."""
    state = product.state[2:]
    first, last = process.choice_starts[state], process.choice_starts[state + 1]
    choices = ranges(first, last)
    lengths = (process.indptr[1:] - process.indptr[:-1])[choices]
    choice_start = np.cumsum(lengths) - lengths
    counts = last - first
    return choice_start, np.cumsum(counts) - counts
