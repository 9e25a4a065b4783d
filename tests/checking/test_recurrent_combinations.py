"""Boolean combinations of GF, FG, F, G and U: decided on bottom components, however many parts they have.

The oracle enumerates: bottom components by mutual reachability, the probability of each set of states ever visited
before and of the component reached, in fractions. It shares nothing with the engines.
"""

import random
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from exact_oracle import reach_probabilities
from small_chains import chain_of, check_formulas

from verifier.base.errors import EngineError, NoAnswerError
from verifier.checking import recurrence
from verifier.checking.batch import check
from verifier.checking.recurrence import _SplitGraph, _truth_at
from verifier.language.expressions import Source
from verifier.language.ltl import holds_on_lasso, parse_formula


def parsed(text):
    return parse_formula(text, Source(text, "formula"))


def random_rows(rng, n):
    rows = []
    for state in range(n):
        targets = sorted(rng.sample(range(n), rng.randint(1, min(3, n))))
        rows.append({target: Fraction(1, len(targets)) for target in targets} or {state: Fraction(1)})
    return rows


def reached_from(rows):
    closure = [{s} | set(row) for s, row in enumerate(rows)]
    while True:
        wider = [set().union(*(closure[t] for t in states)) for states in closure]
        if wider == closure:
            return closure
        closure = wider


def outcomes(rows):
    """[(states visited on the way, bottom component, probability)] from state 0, by the states visited so far."""
    closure = reached_from(rows)
    bottom = [all(s in closure[t] for t in closure[s]) for s in range(len(rows))]
    nodes, edges, pending = {}, [], [(0, frozenset([0]))]
    while pending:
        node = pending.pop()
        if node in nodes:
            continue
        nodes[node] = len(nodes)
        pending += [(t, node[1] | {t}) for t in rows[node[0]]] if not bottom[node[0]] else []
    for state, seen in nodes:
        step = {state: Fraction(1)} if bottom[state] else rows[state]
        edges.append({nodes[t, seen if bottom[state] else seen | {t}]: p for t, p in step.items()})
    ends = [(state, seen) for state, seen in nodes if bottom[state]]
    found = [
        (seen, frozenset(closure[state]), reach_probabilities(edges, {nodes[state, seen]})[0]) for state, seen in ends
    ]
    assert sum(p for _, _, p in found) == 1
    return found


def random_combination(rng, names, parts):
    """Text, and what it says about the states visited on the way and the component visited for ever."""
    if parts == 1:
        name = rng.choice(names)
        k = int(name[1:])
        return rng.choice(
            [
                (f"(G F {name})", lambda seen, end: k in end),
                (f"(F G {name})", lambda seen, end: end == {k}),
                (f"(F G !{name})", lambda seen, end: k not in end),
                (f"(F {name})", lambda seen, end: k in seen | end),
                (f"(G !{name})", lambda seen, end: k not in seen | end),
                (f"(true U {name})", lambda seen, end: k in seen | end),
            ]
        )
    some = rng.randint(1, parts - 1)
    left, left_says = random_combination(rng, names, some)
    right, right_says = random_combination(rng, names, parts - some)
    operator, says = rng.choice(
        [
            ("&", lambda a, b: a and b),
            ("|", lambda a, b: a or b),
            ("->", lambda a, b: b or not a),
            ("<->", lambda a, b: a == b),
            ("xor", lambda a, b: a != b),
        ]
    )
    return f"({left} {operator} {right})", lambda seen, end: says(left_says(seen, end), right_says(seen, end))


@pytest.mark.parametrize("seed", range(60))
def test_against_enumeration_of_what_is_visited(seed):
    rng = random.Random(seed)
    n = rng.randint(2, 6)
    rows = random_rows(rng, n)
    chain = chain_of(rows, {f"x{s}": {s} for s in range(n)})
    found = outcomes(rows)
    for parts in (2, 5, 12):
        text, says = random_combination(rng, [f"x{s}" for s in range(n)], parts)
        exact = sum((p for seen, end, p in found if says(seen, end)), Fraction(0))
        result = check(chain, parsed(text))
        assert result.lower[0, 0] - 1e-15 <= exact <= result.upper[0, 0] + 1e-15, text
        assert abs(result.probability[0, 0] - float(exact)) <= 1e-12, text


@pytest.mark.every(3)
@pytest.mark.parametrize("seed", range(8))
def test_against_storm_where_it_answers(seed, storm):
    rng = random.Random(seed)
    rows = random_rows(rng, 5)
    chain = chain_of(rows, {f"x{s}": {s} for s in range(5)})
    formulas = [parsed(random_combination(rng, [f"x{s}" for s in range(5)], parts)[0]) for parts in (1, 2, 3, 4)]
    for values in check_formulas(chain, formulas, storm):
        np.testing.assert_allclose(values.probability, values.second, atol=1e-9)


LARGE = {
    "again": " & ".join(f"(G F x{k % 15})" for k in range(60)),
    "fairness": " & ".join(f"((G F x{k % 15}) -> (G F x{(k + 1) % 15}))" for k in range(60)),
    "rabin": " | ".join(f"((F G !x{k}) & (G F x{(k + 1) % 15}))" for k in range(15)) + " | (G F x3)",
    "parity": " xor ".join(f"(G F x{k})" for k in range(15)),
    "equivalences": " <-> ".join(f"(F x{k})" for k in range(15)),
    "untils": " & ".join(f"(((!x{k}) U x{(k + 1) % 15}) -> (G F x{(k + 4) % 15}))" for k in range(15)),
}
ROUND = [{x: Fraction(4, 5), (x + 1) % 15: Fraction(1, 5)} for x in range(15)]


@pytest.mark.parametrize("name", LARGE)
def test_many_parts_on_a_ring_where_everything_recurs(name):
    """Every state is visited again and again: each GF x is true, so is each F x; 15 truths make odd parity."""
    chain = chain_of(ROUND, {f"x{k}": {k} for k in range(15)})
    result = check(chain, parsed(LARGE[name]))
    assert result.lower[0, 0] == result.upper[0, 0] == 1.0


def test_a_state_without_a_truth_value_among_others_is_an_error_of_the_engine():
    graph = SimpleNamespace(origin=np.arange(2))
    with pytest.raises(EngineError, match="a state of a bottom component has no truth value"):
        _SplitGraph._split(graph, ("F a",), [np.array([True, False])], None)


def bounded_formula(rng, depth):
    """Text of a formula with an end, and how many steps ahead it looks at most."""
    if depth == 0:
        return rng.choice(["a", "b", "!a", "!b"]), 0
    (left, far), (right, farther) = (bounded_formula(rng, depth - 1) for _ in range(2))
    low = rng.randint(0, 2)
    high = low + rng.randint(0, 2)
    return rng.choice(
        [
            (f"(X[{low + 1}] {left})", low + 1 + far),
            (f"({left} U[{low},{high}] {right})", high + max(far, farther)),
            (f"({left} R[{low},{high}] {right})", high + max(far, farther)),
            (f"({left} & {right})", max(far, farther)),
            (f"(F[{low},{high}] {left} | G[{low},{high}] {left})", high + far),
        ]
    )


@pytest.mark.parametrize("seed", range(40))
def test_what_happens_again_and_again_is_what_some_path_shows(seed):
    """In a chain that visits everything: G F of what looks so far ahead holds if a path has it, F G if all have."""
    rng = random.Random(seed)
    n = rng.randint(2, 4)
    rows = [{(s + 1) % n, *rng.sample(range(n), rng.randint(0, 1))} for s in range(n)]
    labels = {name: {s for s in range(n) if rng.random() < 0.5} for name in "ab"}
    chain = chain_of([{t: Fraction(1, len(row)) for t in row} for row in rows], labels)
    text, far = bounded_formula(rng, 2)
    paths = [[s] for s in range(n)]
    for _ in range(far):
        paths = [[*path, t] for path in paths for t in rows[path[-1]]]
    letters = [[frozenset(name for name in "ab" if s in labels[name]) for s in path] for path in paths]
    holds = [holds_on_lasso(parsed(text), word[:-1], word[-1:]) for word in letters]
    for formula, expected in ((f"G F {text}", any(holds)), (f"F G {text}", all(holds))):
        result = check(chain, parsed(formula))
        assert result.lower[0, 0] == result.upper[0, 0] == expected, formula


@pytest.mark.parametrize(
    ("wide", "narrow", "last", "past"), [("F[1,3] b", "F[1,2] b", 3, 3), ("F[1,4] b", "F[2,3] b", 4, 5)]
)
@pytest.mark.parametrize(
    ("again", "expected"),
    [
        ("{wide} & !({narrow})", 1),
        ("!({wide}) & {narrow}", 0),
        ("{wide} xor {narrow}", 1),
        ("{narrow} & {wide}", 1),  # two steps before b
        ("{narrow} <-> {wide}", 1),
        ("{wide} & X[{last}] b & ({narrow} | a)", 1),
        ("{narrow} & X[{past}] b & ({wide} | a)", 0),
    ],
)
def test_windows_of_one_operator_are_told_apart(wide, narrow, last, past, again, expected):
    chain = chain_of([{(s + 1) % 6: 1} for s in range(6)], {"a": set(range(6)), "b": {0}})
    formula = again.format(wide=wide, narrow=narrow, last=last, past=past)
    assert check(chain, parsed(f"G F ({formula})")).probability[0, 0] == expected


def test_states_are_split_by_hand(monkeypatch):
    # The first of two states may have both values. Its edge to the second has value 1, its loop what it had.
    def split(value_at_source, limit=5):
        monkeypatch.setattr(recurrence, "EDGE_LIMIT", limit)
        edges = {"sources": np.array([0, 1, 0]), "targets": np.array([1, 0, 0])}
        graph = SimpleNamespace(origin=np.array([7, 9]), columns={"old": np.array([5, 6])}, **edges)
        possible = [np.array([True, True]), np.array([True, False])]
        _SplitGraph._split(graph, "new", possible, value_at_source)
        return graph

    graph = split(lambda s, t, y: np.where(s == 1, 0, np.where(t == 1, 1, y)))
    assert graph.origin.tolist() == [7, 7, 9]
    assert {key: column.tolist() for key, column in graph.columns.items()} == {"old": [5, 5, 6], "new": [0, 1, 0]}
    assert list(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)) == [
        (1, 2),
        (2, 0),
        (2, 1),
        (0, 0),
        (1, 1),
    ]
    with pytest.raises(NoAnswerError, match="a graph of 5 edges; the limit is 4"):
        split(lambda s, t, y: y, limit=4)
    for at in (0, 1):
        with pytest.raises(EngineError, match="impossible where an edge requires it"):
            split(lambda s, t, y, at=at: np.where(s == at, 1, 0) + (1 - at))


def test_copies_of_a_state_agree_on_what_holds(monkeypatch):
    # Two copies of state 0, one of state 1, and two obligations: 5 holds in 0 and not in 1, 3 in 1.
    graph = SimpleNamespace(origin=np.array([0, 0, 1]), eliminate=lambda nodes: None)
    product = SimpleNamespace(obligations=SimpleNamespace(nodes_in=lambda number: {number}))
    masks = {5: np.array([True, True, False]), 3: np.array([False, True, True])}
    monkeypatch.setattr(recurrence, "_obligation_mask", lambda product, graph, number, kept: masks[number])
    asked = np.array([0, 1, 1]), np.array([5, 3, 5])
    assert _truth_at(product, graph, *asked).tolist() == [True, True, False]
    with pytest.raises(EngineError, match="neither almost certain nor almost impossible"):
        _truth_at(product, graph, np.array([1, 0]), np.array([3, 3]))
    chain = chain_of([{1: 1}, {0: 1}], {"a": {0}})
    monkeypatch.setattr(recurrence, "_truth_at", lambda product, graph, state, obligation: np.arange(len(state)) == 0)
    with pytest.raises(EngineError, match="two states of one bottom component of the product have different values"):
        check(chain, parsed("G F a"))
