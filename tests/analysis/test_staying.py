"""What states have to meet, step by step: the definition of each operator on random lassos."""

from types import SimpleNamespace

import numpy as np
import pytest

from verifier.analysis.robust.staying import Provable, Staying, _end_components, _implies, _order, _TooMuchError

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


class Game:
    """States with choices, each a set of states that it may lead to, as the kernel's systems are asked."""

    def __init__(self, choices, letters=(), starts=()):
        self.choices, self.letters, self.starts = choices, letters, starts

    def moves(self, state, may):
        return set().union(*(ends for ends in self.choices[state] if all(may(state, end) for end in ends)))


def random_game(rng, states=5):
    choices = [
        [set(rng.integers(0, states, rng.integers(1, 3)).tolist()) for _ in range(rng.integers(1, 3))]
        for _ in range(states)
    ]
    may = {state: {end for end in range(states) if rng.random() < 0.7} for state in range(states)}
    return Game(choices), may


def stays(game, may, part):
    """Whether the choices that surely stay in a part connect all of its states."""
    ahead = {state: game.moves(state, lambda s, end: end in may[s] and end in part) for state in part}
    reach = {state: {state} for state in part}
    for _ in part:
        reach = {state: {end for s in before for end in {s} | ahead[s]} for state, before in reach.items()}
    return all(ahead.values()) and all(before == set(part) for before in reach.values())


@pytest.mark.parametrize("seed", range(60))
def test_end_components_and_their_order_are_those_of_the_definition(seed):
    game, may = random_game(np.random.default_rng([seed, 31]))
    parts = [frozenset(s for s in may if k >> s & 1) for k in range(1, 2 ** len(may))]
    staying = [part for part in parts if stays(game, may, part)]
    largest = {part for part in staying if not any(part < other for other in staying)}
    components = list(_end_components(game, may))
    assert len(components) == len(largest)
    assert set(components) == largest
    # Round by round those fall whose every choice stays in their component or may lead to who fell before.
    own = {state: members for members in largest for state in members}
    order = {}
    for number in range(len(may)):
        fallen = set(order)
        for members in {own.get(state, frozenset({state})) for state in may} - {
            own.get(s, frozenset({s})) for s in order
        }:
            if all(
                ends & fallen or (state in own and ends <= members)
                for state in members
                for ends in game.choices[state]
                if ends <= may[state]
            ):
                order.update(dict.fromkeys(members, number))
    assert _order(game, components, may) == order
    if largest:
        with pytest.raises(ValueError, match="not all end components"):
            _order(game, components[1:], may)


def test_untils_without_an_end_come_first_if_they_hold_others():
    finder = object.__new__(Staying)
    finder._nodes = [("holds",), ("U",), ("R",), ("U",), ("U",)]
    terms = [[(1, 0, -1), (4, 2, -1)], [(3, 0, 5)], [(2, 0, -1), (0, 0, -1)]]
    assert finder._untils({0: frozenset(map(frozenset, terms[:1])), 1: frozenset(map(frozenset, terms[1:]))}) == [
        4,
        1,
    ]


NODES = [("holds", [], 0, -1), ("&", [], 0, -1), ("|", [], 0, -1), ("U", [1, 0], 0, -1), ("R", [2, 3], 0, -1)]
"""p, true, false, F p and G F p."""
EITHER = [*NODES, ("holds", [], 1, -1), ("R", [2, 5], 0, -1), ("U", [1, 6], 0, -1), ("|", [4, 7], 0, -1)]
"""Further q, G q, F G q and (G F p) | (F G q)."""
AGAIN, AWAITED, ALWAYS = [[[4, 0, -1]]], [[[3, 0, -1], [4, 0, -1]]], [[[6, 0, -1]]]
P, Q = 1, 2


@pytest.mark.parametrize(
    ("nodes", "choices", "letters", "obligations", "without"),
    [
        # Round a ring where p holds once: F p is put off from 1 to 2, and no further.
        (NODES, [[{1}], [{2}], [{0}]], [P, 0, 0], [AGAIN, AWAITED, AWAITED], [(3, [0, 1, 0], [])]),
        # State 1 stays with some chance only, or as long as it likes.
        (NODES, [[{1}], [{0, 1}]], [P, 0], [AGAIN, AWAITED], []),
        (NODES, [[{1}], [{0}, {1}]], [P, 0], [[], []], []),
        (NODES, [[{1}], [{0}, {2}], [{2}]], [P, 0, 0], [AGAIN, AWAITED], []),  # or leaves, for ever
        # There q holds: who stays for ever meets the other part.
        (EITHER, [[{1}], [{0}, {1}]], [P, Q], [AGAIN, AWAITED], [(3, [0, 0], [([1], [ALWAYS], [])])]),
        (EITHER, [[{1}], [{0}]], [P, Q], [AGAIN, AWAITED], []),
        (EITHER, [[{1}], [{0}, {1}]], [0, Q], [[], []], []),
        (EITHER, [[{0}, {1}], [{0}, {1}]], [Q, Q], [ALWAYS, ALWAYS], []),
        # X p, or p in step 1: p in step 0 where the run begins, and then nothing more.
        ([*NODES[:2], ("U", [1, 0], 1, 1)], [[{1}], [{0}]], [0, P], [[[[2, 0, 0]]], [[]]], []),
    ],
)
def test_what_is_written_down_of_components_by_hand(nodes, choices, letters, obligations, without):
    game, formula = Game(choices, letters, [0]), [(*node[:3], None if node[3] < 0 else node[3]) for node in nodes]
    finder = Staying({"formula": formula, "propositions": ["p", "q"]}, game, "lower")

    def told(part):
        inner = [
            (each["until"], each["order"], [told(one) for one in each["components"]]) for each in part["without"]
        ]
        return part["states"], [finder.table[number] for number in part["obligations"]], inner

    every = list(range(len(obligations)))
    assert told(finder.component(game, every[::-1])) == (every, obligations, without)
    assert (finder.reaches(0), finder.reaches(9)) == (True, False)
    number = finder.own(10)[9]  # of a state that is never reached: the whole formula
    assert finder.table[number] == [[[len(nodes) - 1, *nodes[-1][2:]]]]


@pytest.mark.parametrize(("reached", "followed"), [([0, 1], True), ([0], False), ([], False)])
def test_what_is_provable_is_asked_of_the_side_that_it_decides_against(reached, followed):
    """Who meets the formula is not lost for its lower bound; states have other numbers, two less, in certificates."""
    asked, starts = [], SimpleNamespace(starts=[0, 1])

    def side(name, states):
        def shown(system, members):
            return asked.append((name, system, members)) or (None if name == "upper" else {})

        return SimpleNamespace(shown=shown, reaches=states.__contains__)

    provable = Provable(SimpleNamespace(state_count=20_000), None)
    vars(provable)["_known"] = starts, {"lower": side("lower", [0, 1]), "upper": side("upper", reached)}
    assert provable(np.array([2, 5]), True) is True
    assert provable(np.array([3]), False) is False
    assert asked == [("lower", starts, [0, 3]), ("upper", starts, [1])]
    assert provable.is_followed is followed
    assert Provable(SimpleNamespace(state_count=20_001), None)(np.array([2]), True) is True  # nobody asks
