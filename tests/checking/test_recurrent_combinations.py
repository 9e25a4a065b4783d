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
from small_chains import chain_of

from verifier.base.errors import EngineError
from verifier.checking.batch import check
from verifier.checking.process import StormProcess
from verifier.checking.recurrence import _SplitGraph
from verifier.checking.two_engines import check_formulas
from verifier.language.expressions import Source
from verifier.language.ltl import parse_formula


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


@pytest.mark.parametrize("seed", range(8))
def test_against_storm_where_it_answers(seed):
    rng = random.Random(seed)
    rows = random_rows(rng, 5)
    chain = chain_of(rows, {f"x{s}": {s} for s in range(5)})
    formulas = [parsed(random_combination(rng, [f"x{s}" for s in range(5)], parts)[0]) for parts in (1, 2, 3, 4)]
    with StormProcess() as storm:
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
