"""How the sides of confidence bounds are put together: what is tried, what is divided, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest

from verifier.analysis.robust import solutions
from verifier.analysis.robust.inner_bounds import Attained
from verifier.analysis.robust.solutions import Effort
from verifier.base.errors import EngineError
from verifier.checking.enclosure import AGREEMENT


def objective_with(starts=1, state_count=5, slopes=True):
    product = SimpleNamespace(start=np.arange(starts))
    return SimpleNamespace(product=product, state_count=state_count, slopes=slopes)


def side_with(value, side="lower", steps=(None,), conservative=False):
    reached = SimpleNamespace(value=np.array(value), steps=steps)
    region = SimpleNamespace(lower=np.zeros((1, 2, 1)))
    return SimpleNamespace(side=side, reached=reached, region=region, conservative=conservative)


def attained_with(*value, error=0.0):
    return Attained(np.array(value), np.full(len(value), error), np.zeros((len(value), 1, 2, 1)))


@pytest.mark.parametrize(
    ("starts", "states", "alone"),
    [(32, 5, True), (33, 5, False), (4, 5_000_000, True), (4, 5_000_001, False), (1, 20_000_000, True)],
)
def test_few_initial_states_of_small_products_are_each_a_set_of_their_own(starts, states, alone):
    sets = [each.tolist() for each in solutions._sets_of_starts(objective_with(starts, states))]
    assert sets == ([[k] for k in range(starts)] if alone else [list(range(starts))])


@pytest.mark.parametrize(
    ("states", "slopes", "starts", "tries_more", "climbs"),
    [
        (20_000, True, 32, True, True), (20_001, True, 32, False, False), (20_000, False, 1, False, False),
        (5, True, 33, True, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_in_small_products_more_matrices_are_tried(states, slopes, starts, tries_more, climbs, side, monkeypatch):
    """Each common choice; and the middle, the mean choices, and what is a millionth of the way to the middle."""
    best, mean, middle = (
        [np.full((1, 1, 1), each) for each in (2.0, 32.0)],
        np.full((1, 1, 1), 5.0),
        np.ones((1, 1, 1)),
    )
    choices = [SimpleNamespace(best=each, mean=mean) for each in best]
    seen = []
    monkeypatch.setattr(solutions, "common_choices", lambda found, at: choices[at])
    monkeypatch.setattr(solutions, "middle_of", lambda region: middle)
    monkeypatch.setattr(solutions, "best_of", lambda o, r, known, tried, sign: seen.append((known, tried, sign)))
    monkeypatch.setattr(solutions, "climbed", lambda o, r, known, sign: ("climbed", sign))
    found = solutions._attained(objective_with(starts, states, slopes), side_with([0.5], side, steps=(0, 1)))
    sign = 1.0 if side == "lower" else -1.0
    ((known, tried, told),) = seen
    more = [1.0, 2.0 - 1e-6, 2.0, 5.0, 32.0 - 31e-6, 32.0]
    assert tried.ravel() == pytest.approx(more if tries_more else [2.0, 32.0], rel=1e-15)
    assert (known, told) == (None, sign)
    assert found == (("climbed", sign) if climbs else None)


@pytest.mark.parametrize(
    ("conservative", "told"),
    [([[False, False], [False]], False), ([[False, True], [False]], True), ([[False], [True, False]], True)],
)
def test_bounds_are_conservative_if_those_of_any_box_are(conservative, told):
    covers = tuple(
        SimpleNamespace(boxes=[SimpleNamespace(conservative=each) for each in boxes]) for boxes in conservative
    )
    assert solutions._Proven(None, (), covers).conservative is told


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_a_bound_holds_for_the_worst_of_the_boxes_of_its_cover(side):
    boxes = [side_with([9.0, 0.25, 9.0, 0.5], side), side_with([9.0, 0.375, 9.0, 0.125], side)]
    covers = (solutions._Cover((boxes[0],), 0, (1,)), solutions._Cover(tuple(boxes), 0, (0,)))
    proven = solutions._Proven(boxes[0], (1, 3), covers)
    assert [proven.claims(cover) for cover in covers] == [
        (None, 0.5),
        (0.625 if side == "lower" else 0.375, None),
    ]
    assert proven.bounds().tolist() == [0.625 if side == "lower" else 0.375, 0.5]


@pytest.mark.parametrize("several", [True, False])
def test_regions_are_divided_for_the_initial_states_whose_bound_is_not_attained(several, monkeypatch):
    """Of the bounds 3/4, 1/2 and 1/4, the first is near enough to 5/8, the others are apart from 1 and from 1/2."""
    calls, found = [], side_with([0.25, 0.5, 0.75], steps=("a", "b", "c") if several else ("all",))

    def divided(objective, root, steps, start, known, boxes, gap):
        calls.append((steps, start, known.value.tolist(), boxes, gap))
        better = attained_with(*(0.0 if k == start else each for k, each in enumerate(known.value.tolist())))
        box = side_with([1.0, 1.0, 1.0 - start / 4])
        return SimpleNamespace(attained=better, boxes=(box,), tree=f"tree {start}")

    monkeypatch.setattr(solutions, "covered", divided)
    effort = Effort(boxes=5, gap=0.125)
    proven, known = solutions._narrowed(objective_with(3), found, attained_with(0.625, 1.0, 0.5), effort)
    assert calls == [
        ("b" if several else "all", 1, [0.625, 1.0, 0.5], 5, 0.125),
        ("c" if several else "all", 2, [0.625, 0.0, 0.5], 5, 0.125),
    ]
    assert known.value.tolist() == [0.625, 0.0, 0.0]
    assert [(cover.tree, cover.starts) for cover in proven.covers] == [("tree 1", (1,)), ("tree 2", (2,)), (0, (0,))]
    assert proven.bounds().tolist() == [0.75, 0.0, 0.5]


def test_a_bound_without_division_has_one_box_for_all_initial_states():
    found = side_with([0.25, 0.5])
    proven = solutions._whole(objective_with(2), found)
    assert [(cover.boxes, cover.tree, cover.starts) for cover in proven.covers] == [((found,), 0, (0, 1))]
    assert proven.bounds().tolist() == [0.75, 0.5]


@pytest.mark.parametrize(("side", "sign"), [("lower", 1), ("upper", -1)])
@pytest.mark.parametrize("error", [0.0, 2.0**-20])
def test_what_is_attained_lies_within_the_bounds_but_for_its_error_and_where_engines_agree(side, sign, error):
    allowed = error + AGREEMENT
    attained = attained_with(0.0, 0.0, error=error)
    for most in (-1.0, 0.0, allowed):
        solutions._refuse_outside(side, sign * np.array([0.0, most]), attained)
    outside = sign * np.array([0.0, np.nextafter(allowed, 1)])
    with pytest.raises(
        EngineError, match=f"the robust {side} bound at initial state 1 is {outside[1].item()!r}, and"
    ):
        solutions._refuse_outside(side, outside, attained)


def test_where_nothing_is_attained_no_number_is_told_for_any_initial_state():
    nothing = solutions.nothing_attained(objective_with(3), SimpleNamespace(lower=np.zeros((4, 2, 5))))
    assert [each.shape for each in (nothing.value, nothing.error, nothing.masses)] == [(3,), (3,), (3, 4, 2, 5)]
    assert all(np.isnan(each).all() for each in (nothing.value, nothing.error, nothing.masses))


@pytest.mark.parametrize(("semantics", "bound"), [("per_state", 0.5), ("shared_matrix", 0.75)])
def test_regions_are_divided_only_where_one_matrix_holds_throughout(semantics, bound, monkeypatch):
    objective, found, better = objective_with(), side_with([0.5]), attained_with(0.875)
    monkeypatch.setattr(solutions, "bound_sides", lambda *arguments: [found])
    monkeypatch.setattr(solutions, "_attained", lambda *arguments: better)
    monkeypatch.setattr(
        solutions, "_narrowed", lambda *arguments: (solutions._whole(objective, side_with([0.25])), better)
    )
    (side,) = solutions._sides(objective, found.region, semantics, Effort(), ("lower",))
    assert (side.bounds.tolist(), side.attained) == ([bound], better)


@pytest.mark.parametrize(("semantics", "attained"), [("per_state", False), ("shared_matrix", True)])
def test_one_side_alone_asks_for_what_is_attained_where_one_matrix_holds_throughout(semantics, attained, monkeypatch):
    asked = []
    monkeypatch.setattr(
        solutions, "_sides",
        lambda objective, region, told, effort, sides: asked.append((told, effort.attained, sides))
        or [SimpleNamespace(bounds="bounds")],
    )  # fmt: skip
    assert solutions.bound_of(objective_with(), None, semantics, "upper") == "bounds"
    assert asked == [(semantics, attained, ("upper",))]
