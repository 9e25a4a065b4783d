"""What states have to meet, step by step: the definition of each operator on random lassos."""

import numpy as np
import pytest

from verifier.analysis.robust.staying import Staying, _implies, _TooMuchError

PREFIX, LOOP = 3, 3


def formula(rng):
    """Nodes (kind, operands, low, high) of a formula over two propositions, the whole last; -1 for no end."""
    nodes = [(kind, [], number, -1) for kind in ("holds", "fails") for number in (0, 1)]
    for _ in range(5):
        kind = ("&", "|", "U", "R", "U", "R")[rng.integers(6)]
        low = int(rng.integers(4)) if kind in "UR" else 0
        high = -1 if kind in "&|" or rng.random() < 0.4 else low + int(rng.integers(3))
        nodes.append((kind, rng.choice(len(nodes), 2).tolist(), low, high))
    if rng.random() < 0.5:  # what may be put off for ever
        nodes[-1] = ("U", nodes[-1][1], 0, -1)
    return nodes


def met(nodes, word, atom, at):
    """Whether an atom holds of the word from place `at` on; places beyond the prefix go round in the loop."""
    at = at if at < PREFIX + LOOP else PREFIX + (at - PREFIX) % LOOP
    (_, low, high), (kind, operands, *_) = atom, nodes[atom[0]]
    if kind in ("holds", "fails"):
        return bool(word[at] >> low & 1) == (kind == "holds")
    one, other = (lambda place, k=k: met(nodes, word, (k, *nodes[k][2:]), place) for k in operands)
    if kind in "&|":
        return (one(at) and other(at)) if kind == "&" else (one(at) or other(at))
    window = range(low, (low + PREFIX + LOOP if high < 0 else high) + 1)
    if kind == "U":
        return any(other(at + k) and all(one(at + before) for before in range(k)) for k in window)
    return all(other(at + k) or any(one(at + before) for before in range(k)) for k in window)


@pytest.mark.parametrize("seed", range(80))
def test_what_remains_is_what_the_rest_of_the_word_has_to_meet(seed):
    rng = np.random.default_rng([seed, 97])
    finder = object.__new__(Staying)
    finder._nodes, finder._after, finder._work = formula(rng), {}, 10**6
    root = len(finder._nodes) - 1
    asked = frozenset({frozenset({(root, *finder._nodes[root][2:])})})
    prompt = root if finder._nodes[root][2:] == (0, -1) and finder._nodes[root][0] == "U" else -1
    for _ in range(6):
        word, terms = rng.integers(4, size=PREFIX + LOOP).tolist(), asked
        for at in range(5):

            def now(atom, at=at, word=word):
                (_, other), nodes = finder._nodes[atom[0]][1] or (0, 0), finder._nodes
                put_off = atom != (prompt, 0, -1)
                return met(nodes, word, atom if put_off else (other, *nodes[other][2:]), at)

            def told(terms, at, word=word):
                return any(all(met(finder._nodes, word, atom, at) for atom in term) for term in terms)

            at_once = finder._progress(terms, word[at], prompt)
            assert told(at_once, at + 1) == any(all(map(now, term)) for term in terms)
            remains = finder._progress(terms, word[at])
            assert told(remains, at + 1) == told(terms, at)
            terms = remains


A, B = (0, 0, -1), (1, 0, -1)


@pytest.mark.parametrize(
    ("held", "remains", "follows"),
    [
        ([[A]], [[A]], True),
        ([[A, B]], [[A]], True),
        ([[A]], [[A, B]], False),
        ([[A], [B]], [[A]], False),
        ([[A]], [[A], [B]], True),
        ([], [[A]], True),
        ([[A]], [], False),
        ([[A]], [[]], True),
    ],
)
def test_what_is_held_implies_what_remains_if_each_term_asks_for_all_of_some_term(held, remains, follows):
    first, second = (frozenset(map(frozenset, terms)) for terms in (held, remains))
    assert _implies(first, second) is follows


def test_terms_that_ask_for_more_are_left_out_and_the_work_is_limited():
    finder = object.__new__(Staying)
    finder._work = 6  # 1 with none kept, 2 with one, 3 with two
    terms = [frozenset(term) for term in ([A, B], [A], [(2, 0, 0)])]
    assert finder._least(terms) == {frozenset([A]), frozenset([(2, 0, 0)])}
    assert finder._work == 0
    finder._spend(0)
    with pytest.raises(_TooMuchError):
        finder._spend(1)
