"""What both engines say about each formula on a chain, within the time and memory that it may take, uncompared.

| the chain                                     | how Storm is asked                         | its bounds are      |
|-----------------------------------------------|--------------------------------------------|---------------------|
| has no cycle of several states                | sound iteration, while the batch engine works | used             |
| is decided within `STEPS_FOR_ITERATION` steps | sound iteration, after the batch engine    | used                |
| is decided later                              | factorisation, after the batch engine      | not proven, not used |

Storm's automata double with every further `G F` of a formula, and it takes bounded steps one by one. It is not asked
where that would never end, and given up where it takes much longer than the batch engine did.

Storm gives bounds for reachability but none for general LTL formulas. On the product of chain and formula, where
every bottom component is decided, a formula is the reachability of acceptance, so Storm is asked that, too.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import rows_of
from verifier.base.budget import Clock, out_of_memory, share_of_memory
from verifier.base.errors import LimitError, NoAnswerError
from verifier.base.graphs import components
from verifier.chains.chain import MarkovChain
from verifier.checking.batch import BatchResult, satisfaction_probabilities
from verifier.checking.enclosure import CheckedValues, NoProbabilityError
from verifier.checking.plan import Decided, decide
from verifier.checking.process import Answers, RefusedError, StormProcess
from verifier.checking.product import Product, product_with
from verifier.checking.settings import EngineSettings
from verifier.checking.step_bounds import LongWindow, counted, long_window
from verifier.language.expressions import to_text
from verifier.language.expressions.syntax import Node, Operation, Temporal, children
from verifier.language.ltl import to_storm

STEPS_FOR_ITERATION = 5_000
"""Most expected steps with which Storm is asked to iterate: for gambler's ruin of 200 states, 10,000 steps, it gives
the bounds 0 and 1, and of 400 states no answer in minutes."""
MOST_STORM_RECURRENCES = 10
"""Different temporal operators inside others, such as the F of `G F a`; Storm takes 20 s for a conjunction of ten
`G F` and several times as long for every further one."""
MOST_STORM_STEPS, MOST_STORM_WORK = 1_000_000, 1_000_000_000
"""Steps, and steps times transitions, of a bounded operator that Storm is asked about. It does them one by one."""
PATIENCE_S, PATIENCE = 30.0, 50.0
"""Storm is given up after so many seconds, or so many times what the batch engine took, if that is more."""


ProductOf: TypeAlias = Callable[[], Product | None]


@dataclass(frozen=True, eq=False)
class Task:
    """A formula, what Storm is asked about it, and the time that both engines have for it.

    Attributes:
        text: None where Storm is not asked.
        window: for formulas whose steps are counted, see `step_bounds`. Of those Storm is asked about the until that
            they are, or that they are the complement of: behind a negation it would unroll it.
        product: gives that of the formula with a graph that the chain is a part of, if there is one.
    """

    formula: Node
    text: str | None
    window: LongWindow | None
    clock: Clock
    product: ProductOf

    @classmethod
    def of(
        cls,
        chain: MarkovChain,
        formula: Node,
        settings: EngineSettings,
        spent_s: float = 0.0,
        product: ProductOf = lambda: None,
    ) -> Task:
        """What is known before anything is computed; LimitError for a formula that nests too deep."""
        window = long_window(formula, chain.labels, chain.indptr, chain.indices)
        clock = Clock(settings.timeout_s)
        clock.spend(spent_s)
        return cls(formula, _storm_text(chain, formula, window), window, clock, product)

    @property
    def doing(self) -> str:
        """For messages."""
        text = to_text(self.formula)
        return f"checking {text if len(text) <= 200 else text[:197] + '...'}"

    def meant(self, answer: CheckedValues) -> CheckedValues:
        """What an answer to `text` says about the formula."""
        return _complement(answer) if self.window is not None and self.window.negated else answer


def seconds_for_storm(left_s: float | None, batch_s: float, exact: bool) -> float | None:
    """How long Storm may work on a formula that has so many seconds left: all of them in exact arithmetic, for
    nothing else is exact."""
    return left_s if left_s is None or exact else min(left_s / 2, max(PATIENCE_S, PATIENCE * batch_s))


def _storm_text(chain: MarkovChain, formula: Node, window: LongWindow | None) -> str | None:
    if window is not None:
        work = window.high * chain.transition_count
        possible = window.response is None and window.high <= MOST_STORM_STEPS and work <= MOST_STORM_WORK
        possible = possible and window.low == 0
        formula = Operation("!", (formula,)) if window.negated else formula
    else:
        possible = _recurrences(formula) <= MOST_STORM_RECURRENCES
    try:
        return to_storm(formula) if possible else None
    except LimitError:
        return None


def _recurrences(formula: Node) -> int:
    """Different temporal operators without bound that stand inside others."""
    operators: set[Node] = set()
    pending = [(formula, False)]
    while pending:
        node, inside = pending.pop()
        temporal = isinstance(node, Temporal) and node.operator != "X" and node.interval is None
        if temporal and inside:
            operators.add(node)
        pending += [(part, inside or temporal) for part in children(node)]
    return len(operators)


def _complement(answer: CheckedValues) -> CheckedValues:
    """What an answer says about the negation of its formula."""
    if answer.fractions is not None:
        fractions = tuple(1 - fraction for fraction in answer.fractions)
        value = np.array([float(fraction) for fraction in fractions])
        return CheckedValues(value, None, None, fractions, answer.engine)
    lower, upper = (None if ends is None else 1 - ends for ends in (answer.upper, answer.lower))
    return CheckedValues(1 - answer.value, lower, upper, None, answer.engine)


@dataclass(frozen=True, eq=False)
class Found:
    """What both engines say about a formula.

    Attributes:
        task: what was asked.
        product: of the chain with the formula; None where steps are counted.
        batch: the batch engine's answer.
        batch_s: seconds that it took.
        direct: whether Storm was, or is to be, asked for a factorisation.
        answer: Storm's; None where it has not given one.
        failure: why it has not; None where it has, or was not asked yet.
    """

    task: Task
    product: Product | None
    batch: BatchResult
    batch_s: float
    direct: bool = False
    answer: CheckedValues | None = None
    failure: RefusedError | NoAnswerError | NoProbabilityError | None = None


Look: TypeAlias = Found | CheckedValues | LimitError
"""Storm's exact values alone where the batch engine has none; why there is no answer where neither has."""


@dataclass(frozen=True, eq=False)
class Asking:
    """Whom all formulas are asked, about what.

    Attributes:
        chain: with a label for every name in the formulas.
        storm: a running worker.
        settings: see `EngineSettings`.
        value_error: largest relative error of the chain's probabilities against the true ones.
    """

    chain: MarkovChain
    storm: StormProcess
    settings: EngineSettings
    value_error: float

    def looks(self, tasks: Sequence[Task]) -> list[Look]:
        """What both engines say at first."""
        chain = self.chain
        if not self.settings.exact and chain.rounding_defect == 0:
            component = components(chain.state_count, rows_of(chain.indptr), chain.indices)
            if int(component.max()) + 1 < chain.state_count:  # some states can be visited in turn
                return self._in_turn(tasks)
        return self._together(tasks, map(self._solved, tasks))

    def ask(self, outcome: Found, text: str) -> CheckedValues:
        """Storm's answer to one formula; errors as `StormProcess.check`."""
        seconds = self._seconds(outcome)
        with self.limits(outcome.task) as share:
            return self._checked(outcome, self.chain, text, seconds, share)

    def on_product(self, outcome: Found) -> CheckedValues:
        """Storm's answer to `F accept` on the product of chain and formula."""
        if outcome.product is None:
            raise ValueError("steps are counted: there is no product")
        seconds = self._seconds(outcome)
        with self.limits(outcome.task) as share:
            decided = decide(outcome.product, np.ones(self.chain.transition_count, dtype=bool))
            product, place = product_chain(decided, self.chain)
            answer = self._checked(outcome, product, f'F "{ACCEPT_LABEL}"', seconds, share)
        lower, upper = (None if ends is None else ends[place] for ends in (answer.lower, answer.upper))
        fractions = None if answer.fractions is None else tuple(answer.fractions[k] for k in place)
        return CheckedValues(answer.value[place], lower, upper, fractions, answer.engine)

    def _checked(
        self, outcome: Found, chain: MarkovChain, text: str, seconds: float | None, share: int | None
    ) -> CheckedValues:
        exact, direct = self.settings.exact, outcome.direct
        return self.storm.check(chain, [text], exact=exact, direct=direct, timeout_s=seconds, memory_bytes=share)[0]

    def _seconds(self, outcome: Found) -> float | None:
        return seconds_for_storm(outcome.task.clock.left_s, outcome.batch_s, self.settings.exact)

    @contextlib.contextmanager
    def limits(self, task: Task) -> Iterator[int | None]:
        """Hold a block to what the task may take, and give Storm's share of the memory; NoAnswerError."""
        try:
            with task.clock.running(task.doing), share_of_memory() as share:
                yield share
        except MemoryError:
            raise out_of_memory(self.settings.memory_bytes) from None

    def _solved(self, task: Task) -> Found | LimitError:
        """The batch engine's answer."""
        begun = time.monotonic()
        try:
            with task.clock.running(task.doing):
                product, batch = self._batch(task)
        except LimitError as error:
            return error
        except MemoryError:
            return out_of_memory(self.settings.memory_bytes)
        return Found(task, product, batch, time.monotonic() - begun)

    def _batch(self, task: Task) -> tuple[Product | None, BatchResult]:
        chain = self.chain
        if task.window is not None:
            return None, counted(chain, task.window, self.value_error, task.clock.left_s)
        product = product_with(chain, task.formula, task.product(), self.settings.product_states)
        return product, satisfaction_probabilities(
            product, chain.probabilities, rounding_defect=chain.rounding_defect, value_error=self.value_error
        )

    def _together(
        self, tasks: Sequence[Task], solved: Iterable[Found | LimitError], direct: bool = False
    ) -> list[Look]:
        """Storm's answers beside the batch engine's, which come from `solved` one by one while Storm computes."""
        texts = [task.text for task in tasks if task.text is not None]
        exact = self.settings.exact
        with (
            share_of_memory() as share,
            self.storm.asked(
                self.chain, texts, exact=exact, direct=direct, timeout_s=None, memory_bytes=share
            ) as answers,
        ):
            return [self._with_storm(task, look, answers) for task, look in zip(tasks, solved, strict=True)]

    def _with_storm(self, task: Task, look: Found | LimitError, answers: Answers) -> Look:
        """With Storm's next answer, unless an earlier one failed: what is left is asked one by one later."""
        if isinstance(look, LimitError):
            return self._exact_alone(task, answers) or look
        if task.text is None or not answers.usable:
            return look
        try:
            return replace(look, answer=_next(answers, task, self._seconds(look)))
        except (RefusedError, NoAnswerError, NoProbabilityError) as error:
            return replace(look, failure=error)

    def _exact_alone(self, task: Task, answers: Answers) -> CheckedValues | None:
        """Storm's exact values, where they are asked for and come in time; other answers of Storm's prove nothing."""
        if task.text is None:
            return None
        if not self.settings.exact or not answers.usable:
            answers.abandon()  # it stands between us and the answers about the next formulas
            return None
        try:
            return _next(answers, task, task.clock.left_s)
        except (RefusedError, NoAnswerError):
            return None

    def _in_turn(self, tasks: Sequence[Task]) -> list[Look]:
        """The batch engine first: the steps that it finds tell how to ask Storm."""
        looks: list[Look] = []
        waiting: dict[int, Found] = {}
        for task in tasks:
            look = self._solved(task)
            if isinstance(look, Found):
                slow = task.window is None and bool(np.any(look.batch.expected_steps > STEPS_FOR_ITERATION))
                look = waiting[len(looks)] = replace(look, direct=slow)
            looks.append(look)
        for direct in (False, True):
            asked = {number: answer for number, answer in waiting.items() if answer.direct is direct}
            answered = self._together([answer.task for answer in asked.values()], asked.values(), direct)
            for number, answer in zip(asked, answered, strict=True):
                looks[number] = answer
        return looks


def _next(answers: Answers, task: Task, seconds: float | None) -> CheckedValues:
    with task.clock.running(task.doing):
        return task.meant(answers.within(seconds))


ACCEPT_LABEL = "accept"


def product_chain(decided: Decided, chain: MarkovChain) -> tuple[MarkovChain, NDArray[np.int64]]:
    """The product as a Markov chain, its decided states merged into one that accepts and one that rejects.

    Args:
        decided: a product with its bottom components decided.
        chain: the chain behind it.

    Returns:
        chain: with the label `ACCEPT_LABEL`; its last two states are the accepting and the rejecting one.
        place: (m,) int64, for each initial state of `chain` its position among the product chain's initial states.
    """
    graph = decided.graph
    open_states = np.flatnonzero(graph.reached & ~graph.accepting & ~graph.rejecting)
    count = len(open_states)
    number = np.empty(graph.n, dtype=np.int64)  # what is reached is open or decided
    number[open_states] = np.arange(count)
    number[graph.accepting], number[graph.rejecting] = count, count + 1
    inside = number[graph.sources] < count
    sources = np.concatenate([number[graph.sources[inside]], [count, count + 1]])
    targets = np.concatenate([number[graph.targets[inside]], [count, count + 1]])
    edges = graph.edge[inside]
    # Several transitions may lead to one merged state; their probabilities add up.
    keys, merged = np.unique(sources * (count + 2) + targets, return_inverse=True)
    weights = np.concatenate([chain.probabilities[edges], [1.0, 1.0]])
    probabilities = np.bincount(merged, weights, len(keys)).astype(np.float64)
    fractions: list[Fraction] | None = None
    if chain.fractions is not None:
        fractions = [Fraction(0)] * len(keys)
        behind = [*(chain.fractions[edge] for edge in edges), Fraction(1), Fraction(1)]
        for key, fraction in zip(merged, behind, strict=True):
            fractions[key] += fraction
        probabilities = np.array([float(fraction) for fraction in fractions])
    initial, place = np.unique(number[decided.product.start], return_inverse=True)
    rows = np.bincount(keys // (count + 2), minlength=count + 2)
    product = MarkovChain(
        indptr=np.concatenate([[0], np.cumsum(rows)]).astype(np.int64),
        indices=keys % (count + 2),
        probabilities=probabilities,
        labels={ACCEPT_LABEL: np.arange(count + 2) == count},
        initial=initial,
        fractions=None if fractions is None else tuple(fractions),
        rounding_defect=chain.rounding_defect,
    )
    return product, place.astype(np.int64)
