"""Codes of states in one word and in several, and what picks among moves, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from verifier.base.errors import NoAnswerError
from verifier.systems.behaviour import Moves
from verifier.systems.model_parts import BoundedVariable
from verifier.systems.open_system import BYTES_PER_MOVE, _refuse_memory
from verifier.systems.space import StateSpace, World, whole_in_range


def variables(*ranges):
    return tuple(BoundedVariable(name, low, high) for name, (low, high) in zip("xyz", ranges, strict=False))


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        (((0, 2**31 - 1), (0, 2**31 - 1)), ("xy",)),  # 2^62 states
        (((0, 2**31 - 1), (0, 2**31)), ("x", "y")),
        (((-5, 4), (0, 2**60), (1, 3)), ("x", "yz")),
        (((0, 2**40), (-7, 2**40), (0, 2**40)), ("x", "y", "z")),
    ],
)
def test_codes_are_those_of_one_valuation_and_sort_as_they_do(ranges, words):
    space = StateSpace(variables(*ranges))
    assert tuple("".join(each.name for each in word) for word in space.words) == words
    ends = [sorted({low, low + 1, high - 1, high}) for low, high in ranges]
    grid = np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1).reshape(-1, len(ranges))  # the last varies fastest
    values = {each.name: grid[:, k] for k, each in enumerate(space.variables)}
    codes = space.number(values, len(grid))
    assert np.array_equal(np.argsort(codes), np.arange(len(grid)))
    assert len(np.unique(codes)) == len(grid)
    assert {name: found.tolist() for name, found in space.valuations(codes).items()} == {
        name: found.tolist() for name, found in values.items()
    }
    outside = space.number(values | {"y": grid[:, 1] + ranges[1][1] - ranges[1][0]}, len(grid))
    assert np.array_equal(outside != space.nowhere, grid[:, 1] == ranges[1][0])
    assert space.nowhere == (-1 if len(words) == 1 else b"\xff" * 8 * len(words))


def test_what_is_not_in_the_range_comes_back_as_its_low_end():
    found, allowed = whole_in_range(np.array([0.0, 1, 2.5, 3, 4, 1e300, np.inf, np.nan]), BoundedVariable("x", 1, 3))
    assert found.tolist() == [1, 1, 1, 3, 1, 1, 1, 1]
    assert np.flatnonzero(allowed).tolist() == [1, 3]


def test_where_no_state_moves_the_world_has_a_distribution_all_the_same():
    world = World(None)
    world.__dict__["outcomes"] = ({"w": 0}, {"w": 1}, {"w": 2})
    assert world.chances.tolist() == [[1, 0, 0]]
    assert world.can_occur.tolist() == [[True, False, False]]


def test_the_best_move_is_the_first_that_there_is():
    moves = Moves(np.array([[-1, -1, 0, 2], [0, -1, 1, 0], [1, -1, -1, 1]], dtype=np.int32))
    assert moves.best().tolist() == [0, -1, 0, 2]


def test_the_memory_for_all_inputs_is_refused_above_the_limit_only():
    def scene(limit):
        limits = SimpleNamespace(memory_bytes=limit)
        model = SimpleNamespace(file="m.toml")
        return SimpleNamespace(options=SimpleNamespace(limits=limits), system=SimpleNamespace(model=model))

    _refuse_memory(scene(7 * BYTES_PER_MOVE), 7)
    with pytest.raises(NoAnswerError, match="what all inputs lead to needs about"):
        _refuse_memory(scene(7 * BYTES_PER_MOVE - 1), 7)
