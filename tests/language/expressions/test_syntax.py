import copy
import pickle
from dataclasses import replace

import pytest

from verifier.language.expressions import Source
from verifier.language.expressions.syntax import (
    FALSE,
    TRUE,
    Boolean,
    Call,
    Interval,
    Name,
    Number,
    Operation,
    Position,
    Temporal,
    atoms_in,
    conjunction,
    fold,
    is_temporal,
    labels_of,
    names_in,
    size,
)

A, B = Name("a"), Name("b")


def chain(length, last=B):
    node = A
    for _ in range(length):
        node = Operation("&", (node, last))
    return node


def test_equality_ignores_where_a_node_stood():
    here, there = Name("a", Position(1, 1)), Name("a", Position(7, 3))
    assert here == there
    assert hash(here) == hash(there)
    assert here.position != there.position
    assert Position(1, 1, Source("a")) == Position(1, 1)
    assert repr(Position(1, 1, Source("a"))) == repr(Position(1, 1))
    assert Source("a", line=lambda: 3) == Source("a")
    assert repr(Source("a", line=lambda: 3)) == repr(Source("a"))


def test_no_representation_tells_where_a_node_stood():
    at = Position(7, 3)
    nodes = [Name("a", at), Number(1, at), Boolean(True, at), Operation("!", (A,), at), Call("min", (A, B), at)]
    nodes.append(Temporal("F", (A,), None, at))
    assert [repr(each) for each in nodes] == [repr(replace(each, position=None)) for each in nodes]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (A, B),
        (A, TRUE),
        (TRUE, FALSE),
        (Number(1), TRUE),
        (Operation("&", (A, B)), Operation("|", (A, B))),
        (Operation("&", (A, B)), Operation("&", (B, A))),
        (Temporal("F", (A,)), Temporal("G", (A,))),
        (Temporal("F", (A,)), Temporal("F", (A,), Interval(0, None))),
        (Call("min", (A, B)), Call("min", (A, B, B))),
        (Operation("!", (A,)), "!a"),
    ],
)
def test_nodes_that_read_differently_differ_even_where_their_hashes_do_not(left, right):
    assert left != right
    if hasattr(right, "_hash"):
        alike = copy.deepcopy(right)
        object.__setattr__(alike, "_hash", hash(left))
        assert hash(alike) == hash(left)
        assert left != alike


def test_deep_nodes_compare_hash_and_walk_without_recursion():
    deep = 20_000
    one, same, other = chain(deep), chain(deep), chain(deep, last=Name("c"))
    assert one == same
    assert one != other
    assert hash(one) == hash(same)
    assert one.depth == deep + 1
    assert names_in(one) == {"a", "b"}
    assert not is_temporal(one)


def test_a_node_is_temporal_where_an_operator_stands_anywhere_in_it():
    eventually = Temporal("F", (A,))
    assert not is_temporal(Operation("!", (A,)))
    assert is_temporal(eventually)
    assert is_temporal(Operation("&", (A, Operation("!", (eventually,)))))


def test_shared_nodes_are_visited_once_but_count_at_every_use():
    node = A
    for _ in range(60):  # a tree of 2**61 - 1 nodes
        node = Operation("&", (node, node))
    visits = []
    fold(node, lambda each, below: visits.append(each))
    assert len(visits) == 61
    assert size(node) == 2**61 - 1
    twin = copy.deepcopy(node)
    assert twin == node


def test_pickling_keeps_equality_and_hash():
    node = Temporal("U", (A, Operation("!", (B,))), Interval(1, 4), Position(2, 3))
    again = pickle.loads(pickle.dumps(node))
    assert again == node
    assert {node: 1}[again] == 1
    assert again.position == Position(2, 3)


def test_labels_inside_sees_are_no_names():
    node = Operation("&", (Call("sees", (Name("ped"),)), A))
    assert names_in(node) == {"a"}
    assert [labels_of(atom) for atom in atoms_in(node)] == [("ped",)]


def test_conjunction():
    assert conjunction(()) == TRUE
    assert conjunction((A,)) == A
    assert conjunction((A, B, TRUE)) == Operation("&", (Operation("&", (A, B)), TRUE))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Operation("&&", (A, B)), "unknown operator"),
        (lambda: Operation("&", (A,)), "takes 2 operand"),
        (lambda: Call("sin", (A,)), "unknown function"),
        (lambda: Temporal("Y", (A,)), "unknown temporal operator"),
        (lambda: Temporal("U", (A,)), "wrong number of operands"),
        (lambda: Temporal("W", (A, B), Interval(0, 1)), "takes no bound"),
        (lambda: Temporal("X", (A,), Interval(0, 0)), "at least 1"),
        (lambda: Temporal("X", (A,), Interval(1, 2)), "one number of steps"),
        (lambda: Interval(2, 1), "not an interval"),
        (lambda: Interval(-1, None), "not an interval"),
        (lambda: Name(""), "not a name"),
        (lambda: Name('a"b'), "not a name"),
        (lambda: Name("a\nb"), "not a name"),
    ],
)
def test_impossible_nodes_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
