r"""Formulas whose steps are counted, for any matrix: products of the skeleton with what a window asks in every step.

A long window (`verifier.checking.step_bounds`) has an obligation for each step left, too many for a product. What it
asks in every step has few: with `left` and `right` the states of a and b, or of p and b,

    a U[i,j] b                i steps among `left`, then j - i steps of    left U right
    G[i,j] (p -> F[0,m] b)    i steps, then j - i steps of                 G (left -> F right)
                              or, where windows overlap much, of           G (left -> F[0,m] right)

and of x, the worth of the states behind the last step, the mean over one step is taken as often as there are steps.
In the second form x is the probability that who waits at the end gets an answer. Without the bound m it is too large
by at most (j - i + 1) r, where r is the largest probability that b has neither come within m steps nor got out of
reach; with it the product has the age of the oldest p.

`StepCount.numbers` says this once, for any mean: a `Walk` takes that of many matrices at once, or the greatest one
over a region of matrices (`verifier.analysis.robust.step_counting`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from verifier.analysis.objective import Objective, by_observation
from verifier.base.arrays import ROUNDOFF, Floats, Ints, Mask
from verifier.base.errors import NoAnswerError
from verifier.base.graphs import coreachable
from verifier.chains.chain import chain_of_entries
from verifier.checking.batch import BatchResult, satisfaction_probabilities
from verifier.checking.product import MOST_OBLIGATIONS, build_product
from verifier.checking.step_bounds import MOST_APART, LongWindow, any_window, counted, long_window
from verifier.checking.stepping import Steps
from verifier.language.expressions.syntax import Node, Temporal, nodes_in
from verifier.language.ltl import parse_formula
from verifier.language.ltl.progression import ACCEPT, REJECT
from verifier.systems.skeleton import Skeleton

MOST_AGED = 2_000_000
"""Transitions of a product with ages."""
STEPS_BEFORE_SQUARING = 2000
LARGEST_SQUARED = 600
"""Product states up to which matrices are squared."""
_NUMBERS_AT_ONCE = 2**23
_LOOK = 64


class Walk(Protocol):
    """Means over steps from the states of a product, for one or more ways to choose rates."""

    def after(self, at: Objective, ends: Floats, steps: int, cut: Mask | None = None, fails: float = 0.0) -> Floats:
        """(p, ...) the mean of the (p, ...) worth of the states after so many steps.

        `ACCEPT` and `REJECT` keep what they are worth. States of `cut` that are there before the last step are worth
        `fails`.
        """
        ...

    def each(self, at: Objective, ends: Floats, steps: int) -> Iterator[Floats]:
        """The same after 0, 1, .. steps."""
        ...

    def ever(self, at: Objective, meets: bool) -> Floats:
        """(m, ...) the probability of meeting, or failing, the formula of a product from its starts."""
        ...

    def rest(self, at: Objective, ends: Floats, steps: int, enough: float) -> float:
        """The largest mean of worths that only fall; what is not above `enough` need not be computed further."""
        ...


@dataclass(frozen=True, eq=False)
class StepCount(Objective):
    """A formula whose steps are counted; the product is that of what is asked in the first steps.

    Attributes:
        window: the formula, over the states of the skeleton.
    """

    window: LongWindow

    slopes: ClassVar[bool] = False

    @property
    def effort(self) -> int:
        """See `Objective`."""
        steps, size = self.window.high + (self.window.response or 0), self.state_count
        squared = size**3 * steps.bit_length() // (10 * max(1, len(self.product.edge)))
        return 1 + min(steps, STEPS_BEFORE_SQUARING) + (squared if steps > STEPS_BEFORE_SQUARING else 0)

    def probabilities(self, rates: Floats, *, roughly: bool = False) -> BatchResult:
        """As `Objective.probabilities`; each matrix for itself with proven bounds, or all at once in doubles."""
        values = self.skeleton.entry_values(rates)
        if not roughly:
            results = [
                counted(chain_of_entries(self.skeleton, value, {}), self.window, ROUNDOFF, None) for value in values
            ]
            parts = ([getattr(batch, name)[0] for batch in results] for name in BatchResult.__dataclass_fields__)
            return BatchResult(*(np.array(part) for part in parts))
        size = max(1, _NUMBERS_AT_ONCE // max(len(self.product.edge), 1))
        parts_of = [self.numbers(_Draws(values[low : low + size]), True)[0] for low in range(0, len(values), size)]
        value = np.clip(np.concatenate(parts_of, axis=1).T, 0.0, 1.0)
        value = 1 - value if self.window.negated else value
        some = np.full_like(value, 2.0**-30)  # nobody asks: what was drawn is a guess
        return BatchResult(value, some, some, some, value, value)

    def numbers(self, walk: Walk, meets: bool) -> tuple[Floats, float]:
        """(m, ...) how probable it is that the window, without its negation, is met (or else fails), and how far the
        number for failing may be too small.

        Raises:
            NoAnswerError: a product would be too large.
        """
        met, missing = self._response(walk, meets) if self.window.response is not None else self._until(walk, meets)
        if self.window.low == 0:
            return met, missing
        first = self._first
        # The walk before the window: where it is allowed to be, and then what the window is worth.
        cut = ~self.window.left[first.product.state] if self.window.response is None else None
        worth = walk.after(first, met[first.product.state], self.window.low, cut, 0.0 if meets else 1.0)
        return worth[first.product.start], missing

    def _until(self, walk: Walk, meets: bool) -> tuple[Floats, float]:
        at, steps = self._inner, self.window.high - self.window.low
        return walk.after(at, _unless_decided(at, meets), steps)[at.product.start], 0.0

    def _response(self, walk: Walk, meets: bool) -> tuple[Floats, float]:
        """Windows apart where that costs little, else with ages."""
        steps, wait, answer = self.window.high - self.window.low, self.window.response or 0, self._answer
        apart = self.windows_apart(walk)
        if apart is not None:
            waiting = self._inner.product.obligation != self._inner.product.obligations.initial
            worth = walk.ever(answer, meets)[self._inner.product.state]
            ends = self._with_constants(waiting, worth, meets)
            return walk.after(self._inner, ends, steps)[self._inner.product.start], 0.0 if meets else apart
        aged = self._aged
        left = _steps_left(aged)
        ends = self._with_constants(left > 0, np.zeros(()), meets)
        at = answer.product.start[aged.product.state]
        begun = _unless_decided(answer, meets)
        for age, worth in enumerate(walk.each(answer, begun, wait)):
            now = left == age
            if age:
                if ends.ndim < worth.ndim:
                    ends = np.repeat(ends[:, None], worth.shape[1], axis=1)
                ends[now] = worth[at[now]]
        return walk.after(aged, ends, steps)[aged.product.start], 0.0

    def windows_apart(self, walk: Walk) -> float | None:
        """What leaving out the bound of each window of a response may cost; None where that is too much."""
        windows = self.window.high - self.window.low + 1
        rest = walk.rest(self._answer, self._still_waiting, self.window.response or 0, MOST_APART / windows)
        return windows * rest if windows * rest <= MOST_APART else None

    def _with_constants(self, waiting: Mask, worth: Floats, meets: bool) -> Floats:
        """What the end of the window is worth: something to who waits, and all or nothing to the others."""
        shaped = waiting.reshape(-1, *(1,) * max(worth.ndim - 1, 0))
        ends: Floats = np.where(shaped, worth, 1.0 if meets else 0.0)
        ends[REJECT] = 0.0 if meets else 1.0
        return ends

    @cached_property
    def _still_waiting(self) -> Floats:
        """1 in the states of `F right` where that is open and can be reached."""
        product = self._answer.product
        goal = np.arange(product.state_count) == ACCEPT
        can = coreachable(product.state_count, product.sources, product.indices, goal)
        return np.asarray((can & ~goal).astype(np.float64))

    @cached_property
    def _inner(self) -> Objective:
        """What the window asks in every step, from every state that it may begin in."""
        return self._stage(_asked_in(self.window), self.window.low > 0)

    @cached_property
    def _first(self) -> Objective:
        return self._stage("G all", False)

    @cached_property
    def _answer(self) -> Objective:
        return self._stage("F right", True)

    def refuse_ages(self) -> None:
        """NoAnswerError where the product with the age of what waits would be too large."""
        wait, transitions = self.window.response or 0, len(self.skeleton.indices)
        if wait + 3 > MOST_OBLIGATIONS or (wait + 2) * transitions > MOST_AGED:
            raise NoAnswerError(
                f"a bounded response whose windows of {wait} steps overlap needs the age of what waits: "
                f"{(wait + 2) * transitions} transitions, at most {MOST_AGED} are made",
                hint="shorten the inner window, or leave its bound out",
            )

    @cached_property
    def _aged(self) -> Objective:
        """The product with the age of the oldest p that waits."""
        self.refuse_ages()
        return self._stage(f"G (left -> F[0,{self.window.response}] right)", self.window.low > 0)

    def _stage(self, formula: str, everywhere: bool) -> Objective:
        return stage_of(self.skeleton, self.window, formula, everywhere)


def stage_of(skeleton: Skeleton, window: LongWindow, formula: str, everywhere: bool) -> Objective:
    """The product of a skeleton with a formula over `left`, `right` and `all`, from its starts or from everywhere."""
    labels = {"left": window.left, "right": window.right, "all": np.ones_like(window.left)}
    if everywhere:
        skeleton = replace(skeleton, starts=np.arange(skeleton.state_count), start_weights=None)
    product = build_product(skeleton.indptr, skeleton.indices, labels, parse_formula(formula), skeleton.starts)
    return Objective(skeleton, product, *by_observation(skeleton, product))


def counted_window(
    skeleton: Skeleton, formula: Node, propositions: Mapping[str, Node], memory_bytes: int | None
) -> LongWindow | None:
    """The window that a formula is, where its product would be out of reach; None where it has one.

    With no `memory_bytes` the window that it is, however short.
    """
    if not any(isinstance(node, Temporal) and node.interval is not None for node in nodes_in(formula)):
        return None
    labels = {name: skeleton.mask_of(node) for name, node in propositions.items()}
    if memory_bytes is None:
        return any_window(formula, labels, skeleton.state_count)
    window = long_window(formula, labels, skeleton.indptr, skeleton.indices)
    return window if window is not None and window.cannot_unroll(memory_bytes) else None


def build_step_count(skeleton: Skeleton, window: LongWindow) -> StepCount:
    """The objective of a window on a skeleton."""
    begun = stage_of(skeleton, window, "G all" if window.low else _asked_in(window), False)
    return StepCount(skeleton, begun.product, begun.row, begun.following, begun.moving, window)


def _asked_in(window: LongWindow) -> str:
    """What a window asks, without its steps."""
    return "left U right" if window.response is None else "G (left -> F right)"


def _unless_decided(at: Objective, meets: bool) -> Floats:
    """(p,) what the end is worth where an until that is still open has failed."""
    ends = np.full(at.state_count, 0.0 if meets else 1.0)
    ends[ACCEPT] = 1.0 if meets else 0.0
    return ends


def _steps_left(aged: Objective) -> Ints:
    """(p,) in how many steps the oldest that waits needs its answer; 0 where nothing waits."""
    product = aged.product
    left = dict.fromkeys((product.obligations.initial, REJECT, ACCEPT), 0)
    for obligation in np.unique(product.obligation).tolist():
        chain = [obligation]
        while chain[-1] not in left:
            following = product.obligations.progress(chain[-1], 0)  # neither p nor b
            if following == REJECT:
                left[chain.pop()] = 1
                break
            chain.append(following)
        while chain:
            number = chain.pop()
            if number not in left:
                left[number] = left[product.obligations.progress(number, 0)] + 1
    return np.array([left[obligation] for obligation in product.obligation.tolist()], dtype=np.int64)


class _Draws:
    """Means for (M, entries) probabilities, in doubles: for draws, whose ends nobody knows to more digits."""

    def __init__(self, values: Floats) -> None:
        self._values = values

    def after(self, at: Objective, ends: Floats, steps: int, cut: Mask | None = None, fails: float = 0.0) -> Floats:
        begun = before = worth = self._shaped(ends)
        most = steps if at.state_count > LARGEST_SQUARED else min(steps, STEPS_BEFORE_SQUARING)
        for taken, worth in enumerate(self._each(at, begun, most, cut, fails)):
            if taken and taken % _LOOK == 0 and np.array_equal(worth, before):
                return worth
            before = worth
        return worth if most == steps else self._squared(at, worth, steps - most, cut)

    def each(self, at: Objective, ends: Floats, steps: int) -> Iterator[Floats]:
        return self._each(at, self._shaped(ends), steps, None, 0.0)

    def ever(self, at: Objective, meets: bool) -> Floats:
        result = satisfaction_probabilities(at.product, self._values, at.skeleton.entry, roughly=True)
        return np.asarray(result.probability.T)

    def rest(self, at: Objective, ends: Floats, steps: int, enough: float) -> float:
        greatest = 1.0
        for worth in self._each(at, self._shaped(ends), steps, None, 0.0):
            greatest = float(worth.max())
            if greatest <= enough:
                break
        return greatest

    def _shaped(self, ends: Floats) -> Floats:
        shape = len(ends), len(self._values)
        return np.array(np.broadcast_to(ends.reshape(len(ends), -1), shape))

    def _each(self, at: Objective, ends: Floats, steps: int, cut: Mask | None, fails: float) -> Iterator[Floats]:
        product = at.product
        one = Steps(product.indptr, product.indices, self._values.T, at.skeleton.entry[product.edge])
        worth = ends
        yield worth
        for _ in range(steps):
            worth = one.of(worth)
            worth[[REJECT, ACCEPT]] = ends[[REJECT, ACCEPT]]
            if cut is not None:
                worth[cut] = fails
            yield worth

    def _squared(self, at: Objective, worth: Floats, steps: int, cut: Mask | None) -> Floats:
        product, result = at.product, np.empty_like(worth)
        weights = self._values[:, at.skeleton.entry[product.edge]]
        stays = np.zeros(product.state_count, dtype=bool) if cut is None else cut.copy()
        stays[[REJECT, ACCEPT]] = True
        moving = ~stays[product.sources]
        size = _NUMBERS_AT_ONCE // product.state_count**2
        for low in range(0, len(weights), size):
            part = slice(low, low + size)
            power = np.zeros((len(weights[part]), product.state_count, product.state_count))
            power[:, stays, stays] = 1.0
            place = product.sources[moving] * product.state_count + product.indices[moving]
            np.add.at(power.reshape(len(power), -1).T, place, weights[part][:, moving].T)
            value = worth[:, part].T[:, :, None]
            for position in range(steps.bit_length()):
                value = power @ value if steps >> position & 1 else value
                power = power @ power if steps >> position > 1 else power
            result[:, part] = value[:, :, 0].T
        return result
