"""The product: its states and transitions by hand, its laws, its limits."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from random_ltl import F, G, U, X, a, b, op, random_formula
from small_chains import chain_of

from verifier.base.errors import InputError, LimitError
from verifier.checking import product as product_module
from verifier.checking.batch import satisfaction_probabilities
from verifier.checking.plan import decide
from verifier.checking.product import build_product
from verifier.language.expressions.syntax import Name
from verifier.language.ltl.progression import ACCEPT, REJECT


def product_of(chain, formula, **limits):
    return build_product(chain.indptr, chain.indices, chain.labels, formula, chain.initial, **limits)


def test_product_of_an_until_by_hand():
    # 0 (a) -> 0, 1, 2; 1 (b) -> 1; 2 -> 0. From 0, a U b is pending; at 1 it is decided, and at 2 as well.
    chain = chain_of([{0: 0.5, 1: 0.25, 2: 0.25}, {1: 1}, {0: 1}], {"a": {0}, "b": {1}}, initial=[0, 1, 2])
    product = product_of(chain, U(a, b))
    assert product.state_count == 3
    assert product.state.tolist() == [-1, -1, 0]
    assert product.start.tolist() == [2, ACCEPT, REJECT]
    assert product.indptr.tolist() == [0, 0, 0, 3]
    assert product.indices.tolist() == [2, ACCEPT, REJECT]
    assert product.edge.tolist() == [0, 1, 2]


def test_one_state_per_obligation_that_can_remain():
    # a and b alternate; G (a -> X b) leaves "b next" after a, nothing more after b.
    chain = chain_of([{1: 1}, {0: 1}], {"a": {0}, "b": {1}})
    product = product_of(chain, G(op("->", a, X(b))))
    assert product.state_count == 4
    assert product.state[2:].tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(30))
def test_every_transition_follows_the_chain_and_the_progression(seed):
    rng = random.Random(seed)
    n = rng.choice([1, 5, 400])  # 400 needs more than one page of the numbering
    rows = [dict.fromkeys(rng.sample(range(n), min(n, rng.randint(1, 3))), 1.0) for _ in range(n)]
    rows = [{target: 1 / len(row) for target in row} for row in rows]
    labels = {name: {s for s in range(n) if rng.random() < 0.5} for name in "abc"}
    chain = chain_of(rows, labels, initial=range(0, n, 3))
    product = product_of(chain, random_formula(rng, 3))

    pairs = list(zip(product.state.tolist(), product.obligation.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert pairs[REJECT] == (-1, REJECT)
    assert pairs[ACCEPT] == (-1, ACCEPT)

    def letter(state: int) -> int:
        return sum(int(mask[state]) << bit for bit, mask in enumerate(product.propositions))

    obligations = product.obligations
    for initial, start in zip(chain.initial.tolist(), product.start.tolist(), strict=True):
        remaining = obligations.progress(obligations.initial, letter(initial))
        assert pairs[start] in ((initial, remaining), (-1, remaining))
    for source in range(2, product.state_count):
        state, obligation = pairs[source]
        row = range(product.indptr[source], product.indptr[source + 1])
        assert product.edge[row].tolist() == list(range(chain.indptr[state], chain.indptr[state + 1]))
        for k in row:
            target = int(chain.indices[product.edge[k]])
            remaining = obligations.progress(obligation, letter(target))
            assert pairs[product.indices[k]] in ((target, remaining), (-1, remaining))
    reached = set(product.start.tolist()) | set(product.indices.tolist()) | {ACCEPT, REJECT}
    assert reached == set(range(product.state_count))


def test_errors_name_what_is_wrong(monkeypatch):
    n = 300
    chain = chain_of([{(i + 1) % n: 1} for i in range(n)], {"a": {0}, "b": {150}})
    with pytest.raises(LimitError, match="at least 201 states; the limit is 200"):
        product_of(chain, G(F(a)), max_states=200)
    with pytest.raises(InputError, match="unknown name 'missing'"):
        product_of(chain, F(Name("missing")))
    monkeypatch.setattr(product_module, "MOST_OBLIGATIONS", 50)
    with pytest.raises(LimitError, match="obligations"):
        product_of(chain, F(op("&", b, X(a)), (0, 200)))


@pytest.mark.parametrize("seed", range(40))
def test_made_at_once_it_is_the_product_made_step_by_step(seed, monkeypatch):
    rng = random.Random(seed)
    n = rng.choice([2, 7, 60])
    rows = [dict.fromkeys(rng.sample(range(n), min(n, rng.randint(1, 3))), 1.0) for _ in range(n)]
    rows = [{target: 1 / len(row) for target in row} for row in rows]
    labels = {name: {s for s in range(n) if rng.random() < 0.5} for name in "abc"}
    chain, formula = chain_of(rows, labels, initial=range(0, n, 2)), random_formula(rng, 2)
    slowly = product_of(chain, formula)
    monkeypatch.setattr(product_module, "LONG", 0)
    monkeypatch.setattr(product_module, "_MOST_CLOSED", 10**4)
    monkeypatch.setattr(product_module._Numbering, "number", None)  # nothing is numbered step by step
    try:
        at_once = product_of(chain, formula)
    except TypeError:
        assert np.all(slowly.start <= max(ACCEPT, REJECT))  # nothing is open
        return
    # One is the other under other numbers: what the same edges lead to, from the same starts.
    number = np.full(slowly.state_count, -1)
    pending = list(zip(slowly.start.tolist(), at_once.start.tolist(), strict=True))
    while pending:
        here, there = pending.pop()
        assert number[here] in (-1, there)
        if number[here] < 0:
            number[here] = there
            rows = [slice(*p.indptr[[k, k + 1]]) for p, k in ((slowly, here), (at_once, there))]
            assert slowly.edge[rows[0]].tolist() == at_once.edge[rows[1]].tolist()
            pending += zip(slowly.indices[rows[0]].tolist(), at_once.indices[rows[1]].tolist(), strict=True)
    met = np.flatnonzero(number >= 0)
    assert sorted({*number[met].tolist(), ACCEPT, REJECT}) == list(range(at_once.state_count))
    assert slowly.state[met].tolist() == at_once.state[number[met]].tolist()
    texts = [[p.obligations.nodes_in(k) for k in p.obligation.tolist()] for p in (slowly, at_once)]
    assert all(len(texts[0][k]) == len(texts[1][number[k]]) for k in met)
    assert at_once.indptr[:3].tolist() == [0, 0, 0]
    assert product_of(chain, formula, max_states=at_once.state_count).state_count == at_once.state_count
    with pytest.raises(LimitError, match=f"at least {at_once.state_count} states"):
        product_of(chain, formula, max_states=at_once.state_count - 1)


@pytest.mark.parametrize("seed", range(30))
def test_the_product_on_a_part_of_the_graph_gives_the_probabilities_of_one_built_there(seed):
    rng = random.Random(seed)
    n = rng.choice([2, 5, 60])
    whole = [rng.sample(range(n), min(n, rng.randint(1, 4))) for _ in range(n)]
    part = [rng.sample(row, rng.randint(1, len(row))) for row in whole]
    labels = {name: {s for s in range(n) if rng.random() < 0.5} for name in "abc"}
    chain, smaller = (
        chain_of([dict.fromkeys(row, 1 / len(row)) for row in rows], labels, initial=range(0, n, 3))
        for rows in (whole, part)
    )
    formula = random_formula(rng, 3)
    shared = product_of(chain, formula).on_part(smaller.indptr, smaller.indices)
    built = product_of(smaller, formula)
    assert shared.state_count >= built.state_count
    of_shared, of_built = (satisfaction_probabilities(each, smaller.probabilities) for each in (shared, built))
    assert of_shared.probability == pytest.approx(of_built.probability, abs=1e-12)
    assert np.all(of_shared.lower <= of_built.upper)
    assert np.all(of_built.lower <= of_shared.upper)


def test_what_is_decided_under_a_support_is_found_out_once(monkeypatch):
    chain = chain_of([{0: 0.5, 1: 0.25, 2: 0.25}, {1: 1}, {0: 1}], {"a": {0}, "b": {1}})
    product = product_of(chain, U(a, b))
    support = np.ones(chain.transition_count, dtype=bool)
    decided = decide(product, support)
    assert decide(product, support.copy()) is decided
    assert decide(product, np.array([False, True, True, True, True])) is not decided
    plan = decided.plan(accepting=True, exact_one=True, matrices=1)
    assert decided.plan(accepting=True, exact_one=True, matrices=1) is plan
    assert decided.plan(accepting=False, exact_one=True, matrices=1) is not plan
    for made, cache in ((product, "decided"), (product, "tried"), (decided, "plans"), (plan, "systems")):
        assert getattr(replace(made), cache) is not getattr(made, cache)
    for most, kept in ((product.state_count - 1, False), (product.state_count, True)):
        monkeypatch.setattr("verifier.checking.plan.LARGEST_KEPT", most)
        assert (decide(product, support) is decided) is kept


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"indptr": [0, 0, 0, 3, 3]}, "arrays of a product must fit together"),
        ({"indices": [2, ACCEPT]}, "arrays of a product must fit together"),
        ({"edge": [0, 1]}, "arrays of a product must fit together"),
        ({"indices": [2, ACCEPT], "edge": [0, 1]}, "arrays of a product must fit together"),
        ({"indptr": [0, 0, 1, 3]}, "accept and reject must have no successors"),
        ({"start": [2, -1, 0]}, "start states must be states"),
        ({"start": [2, 3]}, "start states must be states"),
    ],
)
def test_arrays_that_are_no_product(changed, message):
    chain = chain_of([{0: 0.5, 1: 0.25, 2: 0.25}, {1: 1}, {0: 1}], {"a": {0}, "b": {1}}, initial=[0, 1, 2])
    product = product_of(chain, U(a, b))
    assert replace(product, start=np.array([2, 0])).start.tolist() == [2, 0]
    with pytest.raises(ValueError, match=message):
        replace(product, **{name: np.array(numbers) for name, numbers in changed.items()})


def test_pairs_are_numbered_in_the_order_in_which_they_are_met():
    # Against a dictionary; 1000 states take four pages, and 40 obligations more than there are rooms for at first.
    rng = np.random.default_rng(3)
    numbering, numbers = product_module._Numbering(1000, 40_000), {}
    for _ in range(12):
        state, obligation = rng.integers(0, 1000, 300), rng.integers(0, 40, 300)
        found, new = numbering.number(state, obligation)
        pairs = list(zip(state.tolist(), obligation.tolist(), strict=True))
        opened = [pair for pair in pairs if pair[1] not in (ACCEPT, REJECT)]
        assert {pairs[place] for place in new.tolist()} == set(opened) - set(numbers)
        numbers |= {pairs[place]: len(numbers) + 2 + k for k, place in enumerate(new.tolist())}
        assert found.tolist() == [numbers.get(pair, pair[1]) for pair in pairs]
    last = product_module._Numbering(10, len(opened) + 2)
    last.number(np.arange(len(opened)) % 10, 2 + np.arange(len(opened)) // 10)
    with pytest.raises(LimitError, match=f"at least {len(opened) + 3} states; the limit is {len(opened) + 2}"):
        last.number(np.array([0]), np.array([99]))


def test_classes_of_states_by_what_holds_there():
    # a and c never part, and b splits them: letters 0, 2 and 5.
    masks = tuple(np.array(mask, dtype=bool) for mask in ([0, 1, 0, 0, 1], [0, 0, 1, 1, 0], [0, 1, 0, 0, 1]))
    classes, letters = product_module._letter_classes(masks, 5)
    assert [letters[k] for k in classes.tolist()] == [0, 5, 2, 2, 5]
    assert sorted(letters) == [0, 2, 5]
    assert product_module._letter_classes((), 2)[1] == [0]
    assert product_module._letter_classes(masks[:1], 5)[1] == [0, 1]


@pytest.mark.parametrize(("letters", "closed"), [(1, True), (66, True), (67, False)])
def test_obligations_that_any_letters_lead_to(letters, closed):
    # 5 leads to 3 and to accept, 3 to itself and 7, 7 to 3 and reject: tried with up to 200 letters in all.
    after = {5: (3, ACCEPT), 3: (3, 7), 7: (3, REJECT)}

    def successor(obligation, letter):
        return np.array([after[o][k % 2] for o, k in zip(obligation.tolist(), letter.tolist(), strict=True)])

    found = product_module._closed(successor, np.array([5, ACCEPT, REJECT, 5]), letters)
    assert (None if found is None else found.tolist()) == (
        ([3, 5] if letters == 1 else [3, 5, 7]) if closed else None
    )
    nothing = product_module._closed(successor, np.array([REJECT, ACCEPT]), letters)
    assert nothing is not None
    assert nothing.tolist() == []


def test_how_many_transitions_are_made_at_once():
    fits = product_module._fits_at_once
    assert [fits(2, 10**9), fits(3, 10**9), fits(4, 250_000), fits(4, 250_001)] == [True, False, True, False]


def test_where_the_rows_of_copies_start():
    assert product_module._rows(np.array([0, 2, 5]), 5, 3).tolist() == [0, 2, 5, 7, 10, 12]


def test_what_is_progressed_once():
    class Counted:
        def __len__(self):
            return 40

        def progress(self, number, letter):
            asked.append((number, letter))
            return number + letter

    asked: list[tuple[int, int]] = []
    successor = product_module._Successors(Counted(), [0, 2, 5])
    for _ in range(2):
        assert successor(np.array([3, 2, 3]), np.array([2, 1, 2])).tolist() == [8, 4, 8]
    assert asked == [(2, 2), (3, 5)]
    assert successor(np.array([15, 39, 3, 16]), np.array([0, 2, 2, 1])).tolist() == [15, 44, 8, 18]
    assert successor(np.array([], dtype=np.int64), np.array([], dtype=np.int64)).tolist() == []
    assert asked[2:] == [(15, 0), (16, 2), (39, 5)]
