"""RobROC: worked cases, and its laws against definitions written out point by point."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from plain_area import rectangle_area, worst_case

from verifier.closedloop.curves import TradeOffCurve, area, areas, robroc, robustness

shares = st.integers(0, 16).map(lambda k: k / 16)


@st.composite
def point_lists(draw, most=8):
    sensitivities = draw(st.lists(st.integers(0, 12), min_size=1, max_size=most, unique=True))
    return [(tau, draw(shares), draw(shares)) for tau in sensitivities]


def curve_of(points):
    sensitivity, safety, efficiency = zip(*points, strict=True)
    return TradeOffCurve(sensitivity, safety, efficiency)


def points_of(curve):
    return list(zip(curve.sensitivity.tolist(), curve.safety.tolist(), curve.efficiency.tolist(), strict=True))


def same(one, other):
    return points_of(one) == points_of(other)


def test_footnote_8_two_trivial_points_have_no_area():
    # All false positives stronger than every true detection: perfect safety without efficiency, or the reverse.
    trivial = curve_of([(0.1, 0, 1), (1.0, 1, 0)])
    assert area(trivial) == 0
    assert area(robroc([trivial, trivial])) == 0
    # Interpolating between the two points would say 1/2: a third point on the line between them has area 1/4.
    assert area(curve_of([(0.1, 0, 1), (0.5, 0.5, 0.5), (1.0, 1, 0)])) == 0.25


def test_areas_by_hand():
    # [0, 1] x [0, 1/2], then [0, 1/2] x [1/2, 3/4]: 1/2 + 1/8; (1/4, 1/4) lies inside.
    assert area(curve_of([(1, 0.5, 1), (2, 0.75, 0.5), (3, 0.25, 0.25)])) == 0.625
    assert area(curve_of([(1, 1, 1)])) == 1
    assert area(curve_of([(1, 0.3, 0.5)])) == pytest.approx(0.15)


def test_algorithm_1_by_hand():
    # A at 1 and 3, B at 2 and 3. At 1 B has no neighbour below: 0. At 2 A counts with the worse of its values at 1
    # and 3, in each objective by itself. At 3 both were tried.
    a = curve_of([(1, 0.25, 1), (3, 0.75, 0.5)])
    b = curve_of([(2, 0.5, 0.75), (3, 1, 0.25)])
    assert points_of(robroc([a, b])) == [(1, 0, 0), (2, 0.25, 0.5), (3, 0.75, 0.25)]
    assert area(robroc([a, b])) == 0.125 + 0.125  # (1/2)(1/4) and (1/4)(3/4 - 1/4)


def test_the_same_area_can_hide_a_change_that_the_worst_case_shows():
    # Both curves have area 3/4, but at each sensitivity the other objective is halved.
    baseline = curve_of([(1, 0.5, 1), (2, 1, 0.5)])
    mutated = curve_of([(1, 1, 0.5), (2, 0.5, 1)])
    assert area(baseline) == area(mutated) == 0.75
    assert area(robroc([baseline, mutated])) == 0.25
    assert robustness(0.25, 0.75) == pytest.approx(1 / 3)


def test_robustness_without_a_baseline_is_undefined():
    assert robustness(0.0, 0.0) is None
    assert robustness(0.0, 0.5) == 0


@given(st.lists(point_lists(), min_size=1, max_size=4))
def test_it_is_algorithm_1_point_by_point(lists):
    assert points_of(robroc([curve_of(each) for each in lists])) == worst_case(lists)


@given(point_lists(most=12))
def test_the_area_is_that_of_the_rectangles(points):
    assert Fraction(area(curve_of(points))) == rectangle_area(points)  # sixteenths: exact in doubles


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30))
def test_the_area_of_any_numbers_is_that_of_the_rectangles(pairs):
    points = [(k, *each) for k, each in enumerate(pairs)]
    assert abs(Fraction(area(curve_of(points))) - rectangle_area(points)) < Fraction(1, 10**14)


@given(point_lists())
def test_the_worst_case_of_a_curve_with_itself_is_the_curve(points):
    curve = curve_of(sorted(points))
    assert same(robroc([curve, curve]), curve)
    assert same(robroc([curve]), curve)
    assert area(robroc([curve, curve])) == area(curve)


@given(st.lists(point_lists(), min_size=2, max_size=4))
def test_the_area_is_never_above_that_of_any_input(lists):
    curves = [curve_of(each) for each in lists]
    assert area(robroc(curves)) <= min(area(each) for each in curves)


@given(st.lists(point_lists(), min_size=3, max_size=5))
def test_all_at_once_is_one_after_the_other(lists):
    curves = [curve_of(each) for each in lists]
    step_by_step = curves[0]
    for each in curves[1:]:
        step_by_step = robroc([step_by_step, each])
    assert same(robroc(curves), step_by_step)
    assert same(robroc(curves), robroc(curves[::-1]))


@given(st.lists(point_lists(), min_size=1, max_size=3), st.randoms())
def test_the_order_of_the_points_does_not_matter(lists, random):
    mixed = [random.sample(each, len(each)) for each in lists]
    assert same(robroc([curve_of(each) for each in lists]), robroc([curve_of(each) for each in mixed]))
    assert all(area(curve_of(one)) == area(curve_of(two)) for one, two in zip(lists, mixed, strict=True))


@given(point_lists(), point_lists(), st.data())
def test_worse_points_never_give_more(first, second, data):
    worse = [
        (tau, data.draw(st.sampled_from([safety, safety / 2])), data.draw(st.sampled_from([efficiency, 0])))
        for tau, safety, efficiency in second
    ]
    assert area(curve_of(worse)) <= area(curve_of(second))
    both, lower = (robroc([curve_of(first), curve_of(each)]) for each in (second, worse))
    assert np.all(lower.safety <= both.safety)
    assert np.all(lower.efficiency <= both.efficiency)
    assert area(lower) <= area(both)


@given(point_lists(), st.data())
def test_a_dominated_point_adds_no_area(points, data):
    tau, safety, efficiency = data.draw(st.sampled_from(points))
    assume(all(point[0] != tau + 0.5 for point in points))
    assert area(curve_of([*points, (tau + 0.5, safety * 0.5, efficiency)])) == area(curve_of(points))


def test_only_the_order_of_the_sensitivities_counts():
    rng = np.random.default_rng(1)
    lists = [[(int(tau), rng.random(), rng.random()) for tau in rng.permutation(20)[:9]] for _ in range(3)]
    plain = robroc([curve_of(each) for each in lists])
    for change in (lambda tau: tau**3, lambda tau: 100 - tau):
        changed = robroc([curve_of([(change(p[0]), *p[1:]) for p in each]) for each in lists])
        assert area(changed) == pytest.approx(area(plain), abs=1e-15)


def test_many_curves_at_once():
    rng = np.random.default_rng(2)
    safety, efficiency = rng.random((4, 5, 30)), rng.random((4, 5, 30))
    found = areas(safety, efficiency)
    for at in np.ndindex(4, 5):
        assert found[at] == pytest.approx(area(TradeOffCurve(np.arange(30), safety[at], efficiency[at])), abs=1e-15)
