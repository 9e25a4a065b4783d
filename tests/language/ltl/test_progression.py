"""Positive normal form and progression, against the definition of LTL on lasso words."""

from __future__ import annotations

import itertools
from contextlib import nullcontext

import pytest
from exact_oracle import holds_on_lasso
from formula_strategies import formulas
from hypothesis import given, settings
from hypothesis import strategies as st
from random_ltl import F, G, U, X, a, b, c, neg, op, temporal

from verifier.base.errors import LimitError
from verifier.language.expressions.syntax import FALSE, TRUE, Name, Node, Operation, conjunction, names_in
from verifier.language.ltl import progression
from verifier.language.ltl.normal_form import PROPOSITION_DEPTH, PositiveFormula
from verifier.language.ltl.progression import ACCEPT, REJECT, Obligations

letters = st.frozensets(st.sampled_from("abc"))
words = st.tuples(st.lists(letters, max_size=4), st.lists(letters, min_size=1, max_size=4))


def node_of(formula: PositiveFormula, number: int) -> Node:
    """A node of the normal form as a formula again."""
    node = formula.nodes[number]
    parts = [node_of(formula, operand) for operand in node.operands]
    if node.kind in ("true", "false"):
        return TRUE if node.kind == "true" else FALSE
    if node.kind in ("holds", "fails"):
        proposition = formula.propositions[node.low]
        return proposition if node.kind == "holds" else neg(proposition)
    if node.kind == "X":
        return X(parts[0], node.low)
    if node.kind in ("&", "|"):
        return folded(node.kind, parts)
    return temporal(node.kind, *parts, within=(node.low, node.high))


def folded(operator: str, parts: list[Node]) -> Node:
    result = parts[0]
    for part in parts[1:]:
        result = op(operator, result, part)
    return result


def obligation_node(obligations: Obligations, number: int) -> Node:
    """An obligation as a formula."""
    obligation = obligations[number]
    if obligation.kind != "terms":
        return folded(obligation.kind, [obligation_node(obligations, part) for part in sorted(obligation.parts)])
    terms = [
        folded("&", [TRUE, *(node_of(obligations.formula, node) for node in sorted(term))])
        for term in obligation.terms
    ]
    return folded("|", [FALSE, *terms])


def letter_of(obligations: Obligations, names: frozenset[str]) -> int:
    return sum(
        holds_on_lasso(proposition, [], [names]) << bit
        for bit, proposition in enumerate(obligations.formula.propositions)
    )


def reachable_obligations(formula: Node, limit: int = 100_000) -> set[int]:
    obligations = Obligations(formula, limit)
    found, pending = {obligations.initial}, [obligations.initial]
    while pending:
        number = pending.pop()
        for letter in range(1 << len(obligations.formula.propositions)):
            successor = obligations.progress(number, letter)
            if successor not in found:
                found.add(successor)
                pending.append(successor)
    return found


def check_laws(formula: Node, word: tuple[list[frozenset[str]], list[frozenset[str]]]) -> None:
    """The obligation after each position holds on the rest of the word exactly when the formula holds on it all."""
    stem, loop = word
    expected = holds_on_lasso(formula, stem, loop)
    obligations = Obligations(formula)
    assert holds_on_lasso(node_of(obligations.formula, obligations.formula.root), stem, loop) == expected
    number = obligations.initial
    for _ in range(len(stem) + 2 * len(loop)):
        assert holds_on_lasso(obligation_node(obligations, number), stem, loop) == expected
        number = obligations.progress(number, letter_of(obligations, (stem or loop)[0]))
        stem, loop = (stem[1:], loop) if stem else ([], [*loop[1:], loop[0]])


@given(formulas("abc", 3), words)
def test_progression_keeps_the_meaning_of_a_formula(formula, word):
    check_laws(formula, word)


@pytest.mark.parametrize("formula", [U(F(a), G(c)), U(G(b), G(c)), U(X(c), G(b)), U(F(neg(a)), F(c)), U(F(a), X(b))])
def test_both_of_two_choices_are_kept(formula):
    every = [frozenset(names) for names in ("", "a", "b", "c", "bc", "abc")]
    for word in itertools.product(every, repeat=3):
        check_laws(formula, ([*word[:1]], [*word[1:]]))


def test_as_many_obligations_as_the_limit_are_kept():
    formula = conjunction((F(a), F(b), F(c)))  # each pending or not; and false, which is not reached
    assert len(reachable_obligations(formula, 9)) == 8
    with pytest.raises(LimitError, match="limit, 8"):
        reachable_obligations(formula, 8)


@pytest.mark.slow
@given(formulas("abc", 4), words)
@settings(max_examples=3000)
def test_progression_keeps_the_meaning_of_a_formula_slow(formula, word):
    check_laws(formula, word)


@given(formulas("abc", 3), formulas("abc", 3), st.lists(words, min_size=5, max_size=5))
def test_what_counts_as_implied_is_implied(first, second, some_words):
    # All nodes of both formulas and those that progression adds (windows one step shorter), each against each.
    obligations = Obligations(op("&", first, second))
    number = obligations.initial
    for letter in (0, 1, 2, 5, 7, 3):
        number = obligations.progress(number, letter)
    count = min(len(obligations.formula.nodes), 14)
    nodes = [node_of(obligations.formula, number) for number in range(count)]
    for stem, loop in some_words:
        truth = [holds_on_lasso(node, stem, loop) for node in nodes]
        for stronger in range(count):
            for weaker in range(count):
                if truth[stronger] and not truth[weaker]:
                    assert not obligations.implies(stronger, weaker), (nodes[stronger], nodes[weaker])


@pytest.mark.parametrize(
    ("stronger", "weaker", "expected"),
    [
        (G(a), a, True),
        (a, F(a), True),
        (G(a), F(a), True),
        (b, U(a, b), True),
        (F(a, (0, 3)), F(a, (0, 5)), True),
        (F(a, (0, 5)), F(a, (0, 3)), False),
        (F(a, (1, 3)), F(a, (0, 5)), True),
        (F(a, (1, 3)), F(a, (2, 5)), False),
        (G(a, (0, 5)), G(a, (1, 3)), True),
        (G(a, (1, 3)), G(a, (0, 5)), False),
        (G(a, (2, 3)), a, False),  # nothing is said about the present
        (F(a, (1, 3)), a, False),
        (a, F(a, (1, 3)), False),
        (X(G(a)), X(F(a)), True),
        (X(a), X(a, 2), False),
        (U(a, b), temporal("R", a, b), False),
        (F(a, (1, 3)), F(a, (0, 3)), True),
        (G(a), op("|", U(c, a), G(b)), True),
        (G(a), op("|", F(c), G(b)), False),
        (op("&", G(a), F(b)), F(a), True),
        (op("&", G(a), F(b)), F(c), False),
    ],
)
def test_the_order_of_single_operators(stronger, weaker, expected):
    obligations = Obligations(op("<->", X(stronger), X(X(weaker, 6))))
    formula = obligations.formula
    by_meaning = {node_of(formula, number): number for number in range(len(formula.nodes))}
    first = by_meaning[node_of(PositiveFormula(stronger), PositiveFormula(stronger).root)]
    second = by_meaning[node_of(PositiveFormula(weaker), PositiveFormula(weaker).root)]
    assert obligations.implies(first, second) == expected


def test_the_oracle_knows_the_operators():
    # The word {a} {a} {b} {b} {b} ...; each line follows from the definition by hand.
    stem, loop = [frozenset("a"), frozenset("a")], [frozenset("b")]
    assert holds_on_lasso(U(a, b), stem, loop)
    assert holds_on_lasso(U(a, b, (2, 2)), stem, loop)
    assert not holds_on_lasso(U(a, b, (0, 1)), stem, loop)
    assert not holds_on_lasso(U(a, b, (3, 4)), stem, loop)  # a must hold before every position chosen
    assert holds_on_lasso(F(b, (3, 4)), stem, loop)
    assert not holds_on_lasso(G(a, (0, 2)), stem, loop)
    assert holds_on_lasso(G(b, (2, None)), stem, loop)
    assert holds_on_lasso(temporal("W", a, b), stem, loop)
    assert not holds_on_lasso(temporal("W", a, c), stem, loop)
    assert not holds_on_lasso(temporal("M", b, a), stem, loop)  # a and b never hold together
    assert holds_on_lasso(temporal("M", a, a), stem, loop)
    assert not holds_on_lasso(temporal("R", b, a), stem, loop)
    assert holds_on_lasso(X(b, 2), stem, loop)
    assert not holds_on_lasso(X(b), stem, loop)


def test_next_without_a_number_is_the_next_step():
    formula = PositiveFormula(temporal("X", a))
    assert node_of(formula, formula.root) == X(a, 1)


def R(left, right, within=None):  # noqa: N802
    return temporal("R", left, right, within=within)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (U(FALSE, b), b),
        (U(FALSE, b, (1, 3)), FALSE),
        (U(a, FALSE, (1, 3)), FALSE),
        (U(a, b, (0, 0)), b),
        (U(a, TRUE), TRUE),
        (U(a, TRUE, (1, 2)), U(a, TRUE, (1, 2))),  # a holds now
        (U(a, b, (1, 1)), U(a, b, (1, 1))),
        (U(TRUE, TRUE, (1, 2)), TRUE),
        (U(FALSE, TRUE, (1, 2)), FALSE),
        (F(b, (2, 2)), X(b, 2)),
        (F(op("|", a, X(b)), (1, 2)), op("|", F(a, (1, 2)), X(F(b, (1, 2))))),
        (U(c, op("|", a, X(b))), U(c, op("|", a, X(b)))),
        (F(op("&", a, X(b))), F(op("&", a, X(b)))),
        (U(X(a), X(b), (1, 3)), X(U(a, b, (1, 3)))),
        (U(X(a, 3), X(b, 2)), X(U(X(a), b), 2)),
        (R(TRUE, b), b),
        (R(TRUE, b, (1, 3)), TRUE),
        (R(a, TRUE, (1, 3)), TRUE),
        (R(a, b, (0, 0)), b),
        (R(a, FALSE), FALSE),
        (R(FALSE, FALSE, (1, 2)), FALSE),
        (G(b, (2, 2)), X(b, 2)),
        (G(op("&", a, X(b)), (1, 2)), op("&", G(a, (1, 2)), X(G(b, (1, 2))))),
        (op("&", F(a), FALSE), FALSE),
        (op("|", F(a), TRUE), TRUE),
        (op("&", F(a), F(a)), F(a)),
        (op("&", op("&", a, X(b)), neg(a)), FALSE),
        (op("|", op("|", a, X(b)), neg(a)), TRUE),
        (op("&", op("&", a, X(b)), neg(c)), op("&", op("&", a, X(b)), neg(c))),
    ],
)
def test_what_a_formula_says_more_simply(formula, expected):
    normal = PositiveFormula(formula)
    found, meant = node_of(normal, normal.root), PositiveFormula(expected)
    assert found == node_of(meant, meant.root)
    assert normal.nodes[normal.root].kind == meant.nodes[meant.root].kind
    names = [{proposition.name} for proposition in normal.propositions]
    for number, support in enumerate(normal.support):
        held = set().union(*(name for bit, name in enumerate(names) if support >> bit & 1))
        assert held == names_in(node_of(normal, number))


def test_formulas_nest_as_deep_as_the_limit():
    formula: Node = a
    for depth in range(2, 101):
        formula = F(op("&", formula, b)) if depth == 99 else U(b, formula)
    with pytest.raises(LimitError, match="nests its operators 101 deep; the limit is 100"):
        PositiveFormula(formula)
    formula = a
    for _ in range(99):
        formula = U(b, formula)
    assert PositiveFormula(formula).root > 1


@pytest.mark.parametrize("kind", "UR")
def test_windows_that_begin_later_draw_near_by_one_step(kind):
    for word in itertools.product([frozenset(), frozenset("a"), frozenset("b"), frozenset("ab")], repeat=4):
        check_laws(temporal(kind, a, b, within=(2, 3)), (list(word), [frozenset()]))


def test_what_implies_another_way_is_no_way_of_its_own():
    # F a follows from G a & F b, which is left out
    obligations = Obligations(op("|", F(a), op("&", G(a), F(b))))
    (way,) = obligations._as_terms(obligations.formula.root)
    assert [node_of(obligations.formula, number) for number in way] == [U(TRUE, a, (0, None))]


def test_an_eventuality_of_an_eventuality_is_one_and_so_for_always():
    for operator in (F, G):
        once, twice = PositiveFormula(operator(a)), PositiveFormula(operator(operator(a)))
        assert node_of(twice, twice.root) == node_of(once, once.root)


@pytest.mark.parametrize("operator", ["&", "|"])
def test_what_comes_later_is_taken_apart(operator):
    for word in itertools.product([frozenset(), frozenset("a"), frozenset("ab")], repeat=3):
        check_laws(X(op(operator, F(a, (0, 1)), G(b, (0, 1))), 2), (list(word), [frozenset("b")]))


@pytest.mark.parametrize("further", [0, 1, 5])
def test_a_deep_condition_is_taken_apart_from_the_outside(further):
    # A name is 1 deep, and each conjunction one more than the deeper of its operands.
    chain = folded("&", [Name(f"p{i}") for i in range(PROPOSITION_DEPTH + further)])
    assert len(PositiveFormula(chain).propositions) == 1 + further
    swapped = Name("p0")
    for i in range(1, PROPOSITION_DEPTH + further):
        swapped = op("&", Name(f"p{i}"), swapped)
    assert len(PositiveFormula(swapped).propositions) == 1 + further


@pytest.mark.parametrize(
    ("formula", "letter", "expected"),
    [
        (F(a), "a", ACCEPT),
        (G(a), "", REJECT),
        (op("&", X(a), X(neg(b))), "", None),
        (U(a, b), "b", ACCEPT),
        (U(a, b), "", REJECT),
        (U(a, b), "a", None),
        (temporal("W", a, b), "", REJECT),
        (temporal("W", a, b), "b", ACCEPT),
        (temporal("M", a, b), "ab", ACCEPT),
        (temporal("M", a, b), "a", REJECT),
        (temporal("R", a, b), "ab", ACCEPT),
        (F(a, (0, 0)), "", REJECT),
        (U(a, b, (1, 2)), "b", REJECT),
        (TRUE, "", ACCEPT),
        (op("&", a, neg(a)), "", REJECT),
        (G(neg(a), (1, 1)), "a", None),
    ],
)
def test_progress_of_small_formulas(formula, letter, expected):
    obligations = Obligations(formula)
    result = obligations.progress(obligations.initial, letter_of(obligations, frozenset(letter)))
    assert result == expected if expected is not None else result not in (ACCEPT, REJECT)


names = [Name(f"p{i}") for i in range(10)]
others = [Name(f"q{i}") for i in range(10)]


@pytest.mark.parametrize(
    ("formula", "count"),
    [
        (conjunction(tuple(G(F(p)) for p in names[:8])), 1),  # the pending F p are implied
        (conjunction(tuple(F(G(p)) for p in names[:8])), 1),
        # One obligation, itself, and true and false each: F a is pending or not.
        (F(a), 2),
        (G(op("->", a, F(b))), 2),
        # Two independent responses: 2 * 2; F b and F !b are never both pending, as each letter has one of them.
        (op("&", G(op("->", a, F(b))), G(op("->", c, F(names[0])))), 4),
        (op("&", G(op("->", a, F(b))), G(op("->", c, F(neg(b))))), 3),
        # Three eventualities: each pending or not.
        (conjunction((F(a), F(b), F(c))), 8),
        # Only the earliest deadline matters: F[0,200] .. F[0,0], none pending, and false.
        (G(op("->", a, F(b, (0, 200)))), 202),
        (F(a, (0, 200)), 203),
        # Reactivity, and its premises and conclusions, resolve in the recurrent part only.
        (op("->", conjunction((G(F(a)), G(F(b)))), conjunction((G(F(c)), G(F(neg(a)))))), 1),
    ],
)
def test_number_of_obligations(formula, count):
    assert len(reachable_obligations(formula)) == count


def test_two_separate_disjunctions_do_not_multiply_out():
    # Each F p | G q is pending whole, pending as F p, or satisfied (F p holds once p does): 3^4 states at most.
    formula = conjunction(tuple(op("|", F(p), G(q)) for p, q in zip(names[:4], others[:4], strict=True)))
    assert len(reachable_obligations(formula)) == 3**4


@pytest.mark.parametrize("work", [1_000_000, pytest.param(progression._WORK_LIMIT, marks=pytest.mark.slow)])
def test_a_window_that_must_remember_subsets_is_refused(monkeypatch, work):
    with pytest.raises(LimitError, match="limit, 1000"):
        reachable_obligations(G(op("->", a, F(b, (30, 200)))), limit=1000)
    formula = G(op("->", a, F(b, (100, 200))))
    monkeypatch.setattr(progression, "_WORK_LIMIT", work)
    with pytest.raises(LimitError, match=f"more than {work} comparisons"):
        reachable_obligations(formula)


@pytest.mark.parametrize("enough", [True, False])
def test_comparisons_of_terms_are_counted(enough):
    """Two terms and three make six, of two nodes each (2 x 2), which are compared with those before: 1 + ... + 6."""
    obligations = Obligations(conjunction(tuple(F(Name(name)) for name in "abcde")))
    one, two, *others = (frozenset({k}) for k, node in enumerate(obligations.formula.nodes) if node.kind == "U")
    obligations._work_left = 2 * 3 + 6 * 4 + 21 - (not enough)
    with nullcontext() if enough else pytest.raises(LimitError, match="comparisons of terms"):
        both = obligations._both(frozenset({one, two}), frozenset(others))
        assert both == {term | other for term in (one, two) for other in others}


def test_nesting_beyond_the_limit_is_refused_and_long_chains_are_not():
    deep: Node = a
    for _ in range(1000):
        deep = U(b, deep)
    with pytest.raises(LimitError, match="nests its operators"):
        Obligations(deep)
    long: Node = a
    for i in range(3000):
        long = op("&", long, op("|", b, F(Name(f"x{i % 10}"))))
    assert Obligations(long).initial not in (ACCEPT, REJECT)
    propositional: Node = a
    for _ in range(3000):
        propositional = Operation("&", (propositional, op("|", b, c)))
    obligations = Obligations(G(propositional))
    assert obligations.progress(obligations.initial, (1 << len(obligations.formula.propositions)) - 1) not in (0, 1)


@pytest.mark.parametrize("shape", ["until", "release", "always eventually"])
def test_formulas_nested_up_to_the_limit_progress(shape):
    formula: Node = a
    for i in range(48):
        if shape == "until":
            formula = U(op("|", b, X(b)), formula)
        elif shape == "release":
            formula = temporal("R", b, op("|", c, X(formula)) if i % 2 else formula)
        else:
            formula = F(G(op("|", op("&", formula, X(b)), c)) if i % 3 == 0 else formula)
    obligations = Obligations(formula)
    assert all(obligations.progress(obligations.initial, letter) >= 0 for letter in range(8))
