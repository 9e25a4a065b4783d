"""Paths: arc positions, and the direction in which a path goes on after its last pose."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_logs import made_logs, straight

from verifier.base.errors import InputError
from verifier.closedloop.pathifier import PathSettings, paths_of


def direction(drive, settings=None, **more):
    """The direction of the extension, as the package gives it."""
    paths = paths_of(made_logs({"log": (True, drive)}, **more), settings)
    return paths.direction[-1].tolist()


def test_arc_positions():
    # 3-4-5, a stand, 6-8-10; the second log begins at 0 again.
    logs = made_logs({"a": (True, [(0, 0), (3, 4), (3, 4), (9, 12)]), "b": (False, straight(3, start=100))})
    paths = paths_of(logs)
    assert paths.image_s_m.tolist() == [0, 5, 5, 15, 0, 1, 2]
    assert paths.end_s_m.tolist() == [25, 12]
    assert paths.length_m.tolist() == [5, 0, 10, 10, 1, 1, 10]
    assert paths_of(logs, PathSettings(extension_m=0)).end_s_m.tolist() == [15, 2]
    assert paths_of(logs, PathSettings(extension_m=2.5)).end_s_m.tolist() == [17.5, 4.5]


def test_two_knots_make_a_straight_line():
    assert direction([(0, 0), (3, 4)]) == pytest.approx([0.6, 0.8], abs=1e-15)


def test_three_knots_make_a_parabola():
    # Knots 5 m apart; through p0, p1, p2 the derivative at the end is (p0 - 4 p1 + 3 p2) / 10
    # = ((0, 0) - (12, 16) + (24, 12)) / 10 = (12, -4) / 10, of direction (3, -1) / sqrt(10).
    expected = np.array([3, -1]) / math.sqrt(10)
    assert direction([(0, 0), (3, 4), (8, 4)]) == pytest.approx(expected, abs=1e-12)


def test_four_knots_make_a_cubic():
    # Knots 5 m apart, one cubic through all four (not-a-knot): the derivative at the end is
    # (-2 p0 + 9 p1 - 18 p2 + 11 p3) / 30. With (0, 0), (5, 0), (9, 3), (12, 7):
    # x: 0 + 45 - 162 + 132 = 15; y: 0 + 0 - 54 + 77 = 23.
    expected = np.array([15, 23]) / math.hypot(15, 23)
    assert direction([(0, 0), (5, 0), (9, 3), (12, 7)]) == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.integers(0, 1), min_size=4, max_size=12))
def test_the_spline_against_its_definition(turns):
    """A cubic on each piece, continuous up to the second derivative, the first and last two pieces one cubic."""
    # Steps of 5 m along (3, 4) or (4, 3), so that knots are equally spaced: solve for every coefficient at once.
    steps = np.array([[(3, 4), (4, 3)][turn] for turn in turns], dtype=float)
    points = np.vstack([[0, 0], np.cumsum(steps, axis=0)])
    pieces = len(steps)
    rows, values = [], []

    def equation(terms, value):
        row = np.zeros(4 * pieces)
        for piece, derivative, at, sign in terms:
            for power in range(derivative, 4):
                row[4 * piece + power] += sign * math.perm(power, derivative) * at ** (power - derivative)
        rows.append(row)
        values.append(value)

    for piece in range(pieces):
        equation([(piece, 0, 0.0, 1)], points[piece])
        equation([(piece, 0, 1.0, 1)], points[piece + 1])
    for piece in range(pieces - 1):
        for derivative in (1, 2):
            equation([(piece, derivative, 1.0, 1), (piece + 1, derivative, 0.0, -1)], np.zeros(2))
    for piece in (0, pieces - 2):
        equation([(piece, 3, 1.0, 1), (piece + 1, 3, 0.0, -1)], np.zeros(2))
    solved = np.linalg.solve(np.array(rows), np.array(values))
    end = sum(power * solved[4 * (pieces - 1) + power] for power in (1, 2, 3))
    assert direction(points) == pytest.approx(end / math.hypot(*end), abs=1e-9)


def test_a_circle_goes_on_along_its_tangent():
    # The error of the derivative of an interpolating cubic spline is of third order in the knots' spacing.
    errors = []
    for count in (8, 16, 32):
        angle = np.linspace(0, 1.5, count)
        found = direction(np.column_stack([10 * np.cos(angle), 10 * np.sin(angle)]), PathSettings(knot_spacing_m=0.1))
        errors.append(math.dist(found, (-math.sin(1.5), math.cos(1.5))))
    assert errors[0] < 2e-3
    assert errors[0] / errors[1] > 6
    assert errors[1] / errors[2] > 6


def test_noise_at_rest_does_not_turn_the_path():
    rng = np.random.default_rng(5)
    stop = [(9 + dx, dy) for dx, dy in rng.normal(0, 0.02, (100, 2))]
    found = direction(straight(10) + stop)
    assert found == pytest.approx([1, 0], abs=0.1)  # some centimetres over half a metre
    assert direction(straight(10) + [(9, 0)] * 100) == [1, 0]
    # Were all poses knots, the path would go on anywhere.
    every = direction(straight(10) + stop, PathSettings(knot_spacing_m=1e-9))
    assert math.dist(every, (1, 0)) > 0.5


def test_poses_closer_than_the_spacing():
    # 0.2 m apart: knots are the last pose and those 0.6 m, 1.2 m, ... before it; the others do not count.
    drive = [(0.2 * k, 0.0) for k in range(11)]
    bent = [(x, 0.05 if k % 3 == 0 else 0.0) for k, (x, _) in enumerate(drive)]
    assert direction(bent) == pytest.approx([1, 0], abs=1e-15)
    assert direction(bent, PathSettings(knot_spacing_m=0.1))[1] != 0


def test_a_path_without_direction():
    for drive in ([(2, 3)], [(2, 3), (2, 3), (2.2, 3)]):
        with pytest.raises(InputError, match=r"log 'log': no two poses are 0\.5 m apart") as error:
            direction(drive)
        assert "headings" in str(error.value)
        assert direction(drive, headings=[0.5] * (len(drive) - 1) + [math.pi]) == pytest.approx([-1, 0], abs=1e-15)
        paths = paths_of(made_logs({"log": (True, drive)}), PathSettings(extension_m=0))
        assert paths.direction[-1].tolist() == [0, 0]
    assert direction([(2, 3), (2, 3), (2.2, 3)], PathSettings(knot_spacing_m=0.1)) == [1, 0]


def test_a_recorded_log_ends_where_it_did():
    """Two logs back to back: the first goes on by itself, not to where the second begins."""
    both = made_logs({"a": (True, straight(4)), "b": (True, [(0, 50), (0, 51)])})
    alone = made_logs({"a": (True, straight(4))})
    assert paths_of(both).direction[3].tolist() == paths_of(alone).direction[3].tolist() == [1, 0]
    assert paths_of(both).length_m[3] == 10
