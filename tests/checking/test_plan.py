"""Plans by hand: which states are unknown, in what order they are solved, and what a missing transition changes."""

import numpy as np
import pytest
from random_ltl import F, G, U, a, b, neg, op
from small_chains import chain_of

from verifier.checking import plan as planning
from verifier.checking.plan import Block, _blocks, _condense, _has_long_path, decide, towards
from verifier.checking.product import build_product
from verifier.language.ltl.progression import ACCEPT, REJECT

# State 0 leads to 1 and 2; 1 and 3 to each other, 1 to the goal 5 and 3, which may stay, to the trap 6; 2 may stay,
# then comes 4, then the goal. The product counts them as they are met.
ROWS = [{1: 0.5, 2: 0.5}, {3: 0.5, 5: 0.5}, {2: 0.5, 4: 0.5}, {1: 0.25, 3: 0.5, 6: 0.25}, {5: 1}, {5: 1}, {6: 1}]


def decided_of(rows, formula=None, labels=None, initial=(0,), support=None):
    chain = chain_of(rows, labels or {"a": {5}}, initial)
    product = build_product(chain.indptr, chain.indices, chain.labels, formula or F(a), chain.initial)
    return decide(product, np.ones(chain.transition_count, dtype=bool) if support is None else np.array(support))


def shown(plan):
    """Every array of a plan, and its blocks."""
    names = ("unknown", "row_start", "target", "edge", "loop_edge", "start")
    return *(getattr(plan, name).tolist() for name in names), plan.blocks


def test_plans_of_what_is_asked_of_one_product():
    decided = decided_of(ROWS, initial=(0, 3, 5, 6))
    assert decided.product.state.tolist() == [-1, -1, 0, 3, 6, 2, 1, 4]
    top, three, _, two, one, four = range(2, 8)
    loop_of_three, loop_of_two = 7, 4
    # Whether the goal is reached: 2 and 4 surely, 6 never. The pair first, then the top.
    assert shown(decided.plan(accepting=True, exact_one=True, matrices=1)) == (
        *([three, one, top], [0, 2, 4, 6], [1, 4, 0, 3, 1, 3], [6, 8, 2, 3, 0, 1], [loop_of_three, -1, -1]),
        *([2, 0, 3, 4], (Block(0, 0, 1, 2, 0, 4), Block(1, 2, 1, 1, 4, 6))),
    )
    # Not surely where rows are rounded: 4 is a level with the pair, and 2 with the top, whose component is smaller.
    assert shown(decided.plan(accepting=True, exact_one=False, matrices=1)) == (
        *([four, three, one, two, top], [0, 1, 3, 5, 6, 8]),
        *([5, 2, 6, 1, 5, 0, 2, 3], [9, 6, 8, 2, 3, 5, 0, 1], [-1, loop_of_three, -1, loop_of_two, -1], [4, 1, 5, 6]),
        (Block(0, 0, 1, 1, 0, 1), Block(0, 1, 1, 2, 1, 5), Block(1, 3, 1, 1, 5, 6), Block(2, 4, 1, 1, 6, 8)),
    )
    # Whether the trap is: the same with other slots.
    for exact_one in (True, False):
        assert shown(decided.plan(accepting=False, exact_one=exact_one, matrices=1)) == (
            *([three, one, top], [0, 2, 4, 6], [1, 3, 0, 4, 1, 4], [6, 8, 2, 3, 0, 1], [loop_of_three, -1, -1]),
            *([2, 0, 4, 3], (Block(0, 0, 1, 2, 0, 4), Block(1, 2, 1, 1, 4, 6))),
        )
    # What is gained before the goal, which only 2 and 4 reach surely.
    assert shown(decided.plan_of_gains(matrices=1)) == (
        *([four, two], [0, 1, 2], [2, 0], [9, 5], [-1, loop_of_two], [3, 3, 2, 3]),
        (Block(0, 0, 1, 1, 0, 1), Block(1, 1, 1, 1, 1, 2)),
    )
    assert decided.plan_of_gains(matrices=1) is decided.plan_of_gains(matrices=1)
    assert decided.plan_of_gains(matrices=1) is not decided.plan_of_gains(matrices=2)


def test_a_transition_without_probability_is_not_there():
    # Without 0 -> 1 nothing is lost, and the pair is not reached; without 1 -> goal and 0 -> 2 all is.
    for missing, accepted in (([0], True), ([1, 3], False)):
        decided = decided_of(ROWS, support=~np.isin(np.arange(12), missing))
        assert decided.plan(accepting=True, exact_one=True, matrices=1).start.tolist() == [0 if accepted else 1]
        assert np.count_nonzero(decided.graph.reached) == 2 + (3 if accepted else 4)


def test_components_that_are_not_left_are_decided():
    # 0 leads to a pair in which a and b alternate, to a lone b, and to a lone state of neither.
    rows = [{1: 0.25, 3: 0.25, 4: 0.5}, {2: 1}, {1: 1}, {3: 1}, {4: 1}]
    labels = {"a": {1}, "b": {2, 3}}
    for formula, value in (
        (G(F(a)), [1, 0, 0]),
        (F(G(neg(a))), [0, 1, 1]),
        (G(F(b)), [1, 1, 0]),
        (U(neg(b), a), [1, 0, 0]),
    ):
        decided = decided_of(rows, formula, labels, initial=(1, 3, 4))
        assert decided.plan(accepting=True, exact_one=True, matrices=1).start.tolist() == [1 - v for v in value]
        g = decided.graph
        assert [g.accepting[ACCEPT], g.rejecting[REJECT]] == [True, True]
        assert not np.any(g.accepting & g.rejecting)
        assert np.all(g.accepting | g.rejecting)
    decided = decided_of(rows, op("&", F(a), F(b)), labels)
    assert decided.plan(accepting=True, exact_one=True, matrices=1).size == 1


@pytest.mark.parametrize(("chunk", "times"), [(512, 1), (3, 4)])
def test_smaller_supports_of_which_the_same_is_decided(monkeypatch, chunk, times):
    # 0 stays or leads to 1, 2 and the pair 3, 4; 1 to 2 and the goal 5; 2 to the goal. The pair may stay in 3.
    monkeypatch.setattr(planning, "_CHUNK", chunk)
    rows = [{0: 0.25, 1: 0.25, 2: 0.25, 3: 0.25}, {2: 0.5, 5: 0.5}, {5: 1}, {3: 0.5, 4: 0.5}, {3: 1}, {5: 1}]
    decided = decided_of(rows)
    for missing, same in (
        ([], True),
        ([0], True),
        ([1, 2], True),
        ([0, 1, 2], True),
        ([1, 2, 3], False),  # only the loop is left
        ([4], True),
        ([4, 5], False),
        ([6], False),
        ([7], False),  # in a bottom component
        ([9], False),
        ([10], True),  # behind what is decided
        ([5, 0, 3], True),
    ):
        positive = np.ones((times, 11), dtype=bool)
        positive[-1, missing] = False
        expected = [True] * (times - 1) + [same]
        assert decided.also_decides(positive, np.arange(11)).tolist() == expected, missing
    # Transitions that share a probability; and a product in which states can be visited in turn.
    assert (
        decided.also_decides(np.array([[True, False], [False, True]]), np.array([0] * 7 + [1] * 4)).tolist()
        == [False] * 2
    )
    assert decided.also_decides(np.array([[True, False]]), np.array([1] + [0] * 10)).tolist() == [True]
    assert decided_of(ROWS).also_decides(np.ones((2, 12), dtype=bool), np.arange(12)).tolist() == [False] * 2
    # Where all is decided from the start, nothing is asked of any transition.
    assert (
        decided_of(rows, initial=(5,)).also_decides(np.zeros((2, 11), dtype=bool), np.arange(11)).tolist()
        == [True] * 2
    )


def test_reaching_states_of_a_part_of_a_product():
    product = decided_of(ROWS).product
    target, kept = np.zeros(product.state_count, dtype=bool), np.ones(len(product.indices), dtype=bool)
    one, three = (product.state.tolist().index(state) for state in (1, 3))
    target[three] = True
    for without, expected in (([], [0]), ([one], [1])):
        g = towards(product, kept & ~np.isin(product.sources, without), target).graph
        able = [0, 1, 3] if not without else [3]
        assert product.state[~g.rejecting].tolist() == [s for s in product.state.tolist() if s in able]
        assert g.accepting.tolist() == target.tolist()
        assert g.reached.all()
        assert three not in g.sources
        assert (g.targets.tolist(), g.edge.tolist()) == tuple(
            array[kept & ~np.isin(product.sources, [*without, three])].tolist()
            for array in (product.indices, product.edge)
        )
        plan = towards(product, kept & ~np.isin(product.sources, without), target).plan(
            accepting=True, exact_one=False, matrices=1
        )
        assert (plan.size, plan.start.tolist()) == ((2, [1]) if not without else (0, expected))


def test_components_levels_and_sizes(monkeypatch):
    asked = []

    def levels(n, above, below, most):
        asked.append((n, sorted(zip(above.tolist(), below.tolist(), strict=True)), most))
        return np.arange(n) if most < 1005 else None

    monkeypatch.setattr(planning, "levels", levels)
    # Of 5 states two are one component; 5 and 6 are slots. Levels are found among 4 components, twice 1 to 0.
    component, sources, targets = (
        np.array([7, 2, 7, 9, 4]),
        np.array([0, 2, 0, 3, 3, 4, 4]),
        np.array([2, 0, 1, 0, 4, 1, 5]),
    )
    for matrices, most in ((1, 1000), (19, 1004), (20, 1005)):
        found = _condense(component, sources, targets, matrices)
        assert asked.pop() == (4, [(1, 0), (2, 0), (3, 1), (3, 2)], most)
        levels_of = [2, 0, 2, 3, 1] if most < 1005 else [0] * 5
        assert [array.tolist() for array in found] == [
            [2, 0, 2, 3, 1],
            levels_of,
            [2, 1, 2, 1, 1] if most < 1005 else [5] * 5,
        ]
    # Without cycles a state costs less, and a path that is too long is looked for first.
    for matrices in (1, 24, 25, 99):
        _condense(np.array([3, 1, 2, 0]), np.array([0, 2, 1]), np.array([2, 1, 3]), matrices)
        assert asked.pop() == (4, [(1, 0), (2, 1), (3, 2)], 1000 + 4 * matrices // 100)


@pytest.mark.parametrize(("most", "long"), [(1, True), (3, True), (4, False), (9, False)])
def test_a_long_path_between_the_greatest_numbers(most, long):
    # 6 to 5 to 2 to 0 is one of 3 edges; that there is one of 4, from 6 to 4, is not found at once.
    above, below = np.array([2, 5, 6, 5, 6, 4, 3]), np.array([0, 2, 5, 1, 4, 3, 2])
    assert _has_long_path(8, above, below, most) is long
    assert not _has_long_path(1, above[:0], below[:0], most)


def test_blocks_are_runs_of_one_level_and_size():
    level, size = np.array([0, 0, 0, 0, 1, 1, 2, 2]), np.array([1, 1, 2, 2, 2, 2, 1, 1])
    starts = np.array([0, 1, 3, 6, 10, 15, 21, 28, 36])
    assert _blocks(level, size, starts) == (
        Block(0, 0, 2, 1, 0, 3),
        Block(0, 2, 1, 2, 3, 10),
        Block(1, 4, 1, 2, 10, 21),
        Block(2, 6, 2, 1, 21, 36),
    )
    assert [block.last for block in _blocks(level, size, starts)] == [2, 4, 6, 8]
    assert _blocks(level[:0], size[:0], np.array([0])) == ()
