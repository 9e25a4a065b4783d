"""Depth filled in: cases worked out by hand, every method against a definition written down once more, real LiDAR.

The independent definitions are slow and plain: the nearest by comparing with every known pixel, the linear one by the
plane through three known pixels of an empty circle.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial import Delaunay

from verifier.base.errors import InputError, LimitError, UsageError
from verifier.perception.detections.depth import depth_map
from verifier.robustness.mutators import imagefiles as module
from verifier.robustness.mutators.imagefiles import LONGEST_BRIDGE_PX, METHODS, densify

SPARSE = arrays(
    np.float64,
    st.tuples(st.integers(1, 7), st.integers(1, 7)),
    elements=st.sampled_from([0.0, 0.0, 0.0, 2.0, 5.0, 10.0, 80.0]),
).filter(lambda depth: (depth > 0).any())


# By hand.


def test_nearest_by_hand():
    depth = np.array([[10.0, 0, 0, 0, 40], [0, 0, 0, 0, 0], [0, 0, 20, 0, 0]])
    found = densify(depth, "nearest")
    # From (0, 1): 10 is 1 away, 20 is sqrt(5). From (1, 3): 20 and 40 are both sqrt(2) away, so either will do.
    assert found[0].tolist() == [10, 10, found[0, 2], 40, 40]
    assert found[0, 2] in (10, 20, 40)  # all three are 2 away
    assert found[1, :3].tolist() == [10, found[1, 1], 20]
    assert found[1, 1] in (10, 20)
    assert found[2].tolist() == [found[2, 0], 20, 20, 20, found[2, 4]]
    assert found[2, 0] in (10, 20)  # both are 2 away
    assert found[2, 4] in (20, 40)


def test_linear_by_hand():
    # 1 / D is 1/10 at (0, 0), 1/20 at (0, 2) and (2, 0): at (1, 1), half-way between the last two, 1/20; at (0, 1)
    # and (1, 0) the mean of 1/10 and 1/20, which is 3/40; (2, 2) lies outside and is 2 from both of depth 20.
    depth = np.array([[10.0, 0, 20], [0, 0, 0], [20, 0, 0]])
    found = densify(depth, "linear")
    wanted = np.array([[10, 40 / 3, 20], [40 / 3, 20, 20], [20, 20, 20]])
    assert found == pytest.approx(wanted, rel=1e-12, abs=0)


@pytest.mark.parametrize("method", METHODS)
def test_one_known_pixel_gives_its_depth_everywhere(method):
    depth = np.zeros((5, 9))
    depth[4, 2] = 7
    assert densify(depth, method) == pytest.approx(np.full((5, 9), 7.0), rel=1e-15, abs=0)


@pytest.mark.parametrize("method", METHODS)
def test_known_pixels_in_one_line(method):
    depth = np.zeros((3, 9))
    depth[1, ::2] = 7
    assert densify(depth, method) == pytest.approx(np.full((3, 9), 7.0), rel=1e-15, abs=0)


def test_a_road_is_filled_exactly_by_linear_interpolation_of_the_inverse():
    # A plane in space, a X + b Y + c Z = 1, has 1 / Z = a x + b y + c in the image: linear, and so is what is filled.
    row, column = np.mgrid[0:41, 0:57]
    plane = 1 / (0.001 * row + 0.0004 * column + 0.01)
    sparse = np.where(
        (row % 5 == 0) & (column % 7 == 0), plane, 0
    )  # every fifth row, every seventh column, the edges
    np.testing.assert_allclose(densify(sparse, "linear"), plane, rtol=1e-10)
    nearest = densify(sparse, "nearest")
    assert np.abs(nearest / plane - 1).max() > 0.01  # so that the above says something


def test_triangles_do_not_bridge_what_lies_far_apart():
    wide = math.ceil(LONGEST_BRIDGE_PX) + 11
    depth = np.zeros((3, wide))
    depth[0, 0] = depth[2, 0] = depth[1, 4] = 10
    depth[1, -1] = 80
    found = densify(depth, "linear")
    assert set(np.round(found[1], 9).tolist()) == {10.0, 80.0}  # nothing in between
    close = np.zeros((3, 9))
    close[0, 0] = close[2, 0] = 10
    close[1, -1] = 80
    between = densify(close, "linear")[1, 4]
    assert between == pytest.approx(1 / (0.5 / 10 + 0.5 / 80))  # half-way from the edge of depth 10 to 80


# Against definitions written down once more.


def distances(depth, row, column):
    """Pairs of squared distance and depth of all known pixels."""
    return [((r - row) ** 2 + (c - column) ** 2, depth[r, c]) for r, c in zip(*np.nonzero(depth), strict=True)]


@given(SPARSE)
def test_nearest_is_nearest(depth):
    found = densify(depth, "nearest")
    for row, column in np.ndindex(depth.shape):
        pairs = distances(depth, row, column)
        least = min(pairs)[0]
        assert found[row, column] in {value for square, value in pairs if square == least}


def circle(a, b, c):
    """Centre and squared radius of the circle through three points, None if they are in line."""
    matrix = 2 * np.array([b - a, c - a])
    if abs(np.linalg.det(matrix)) < 1e-9:
        return None
    centre = np.linalg.solve(matrix, [b @ b - a @ a, c @ c - a @ a])
    return centre, ((centre - a) ** 2).sum()


def triangles(depth):
    """Corners, and 1 / D there, of every Delaunay triangle of the known pixels; of four on a circle all of them."""
    points = [np.array(each, float) for each in zip(*np.nonzero(depth), strict=True)]
    table = np.array(points)
    for corners in itertools.combinations(points, 3):
        found = circle(*corners)
        if found is not None and (((table - found[0]) ** 2).sum(axis=1) >= found[1] - 1e-9).all():
            inverse = np.array([1 / depth[tuple(each.astype(int))] for each in corners])
            yield np.column_stack([np.append(each, 1) for each in corners]), inverse


def linear_values(depth):
    """Of every unknown pixel the 1 / D by the plane over each triangle that holds it."""
    known = list(triangles(depth))
    for row, column in zip(*np.nonzero(depth == 0), strict=True):
        weights = [(np.linalg.solve(corners, [row, column, 1.0]), inverse) for corners, inverse in known]
        yield (row, column), [weight @ inverse for weight, inverse in weights if (weight >= -1e-9).all()]


@given(SPARSE.filter(lambda depth: (depth > 0).sum() <= 9))
def test_linear_is_linear_on_a_delaunay_triangle(depth):
    found = densify(depth, "linear")
    for (row, column), values in linear_values(depth):
        if values:
            assert any(1 / found[row, column] == pytest.approx(value, rel=1e-6) for value in values)
        else:
            least = min(distances(depth, row, column))[0]
            near = {value for square, value in distances(depth, row, column) if square == least}
            assert found[row, column] in near


DENSE = arrays(
    np.float64,
    st.tuples(st.integers(3, 5), st.integers(3, 5)),
    elements=st.sampled_from([0.0, 2.0, 5.0, 10.0, 80.0, 3.0, 7.0]),
).filter(lambda depth: (depth > 0).any())


@given(DENSE)
def test_linear_is_linear_on_a_delaunay_triangle_where_few_are_unknown(depth):
    """Known pixels amid known ones are no corners of triangles, and that must change none that counts."""
    found = densify(depth, "linear")
    for (row, column), values in linear_values(depth):
        if values:
            assert any(1 / found[row, column] == pytest.approx(value, rel=1e-6) for value in values)


def test_a_dense_map_with_a_few_holes_is_not_triangulated_whole(monkeypatch):
    rng = np.random.default_rng(0)
    row, column = np.mgrid[0:100, 0:150]
    plane = 1 / (0.001 * row + 0.0004 * column + 0.01)
    holes = np.zeros(plane.shape, bool)
    holes[rng.integers(1, 99, 30), rng.integers(1, 149, 30)] = True
    corners = []
    monkeypatch.setattr(module, "Delaunay", lambda points: corners.append(len(points)) or Delaunay(points))
    np.testing.assert_allclose(densify(np.where(holes, 0, plane), "linear"), plane, rtol=1e-10)
    assert corners[0] <= 4 * holes.sum() + 2 * (100 + 150)  # neighbours of holes, and the edge of the image


def test_too_many_triangles_are_refused_with_their_number(monkeypatch):
    monkeypatch.setattr(module, "MOST_CORNERS", 10)
    checks = np.where(np.indices((5, 5)).sum(axis=0) % 2 == 0, 10.0, 0)
    with pytest.raises(LimitError, match="13 known pixels lie beside unknown ones; at most 10 are joined"):
        densify(checks, "linear")
    assert densify(checks, "nearest") == pytest.approx(np.full((5, 5), 10.0))


@given(SPARSE, st.sampled_from(METHODS))
def test_laws_of_every_method(depth, method):
    found = densify(depth, method)
    known = depth > 0
    assert np.array_equal(found[known], depth[known])
    assert found.min() >= depth[known].min() * (1 - 1e-12)
    assert found.max() <= depth[known].max() * (1 + 1e-12)
    assert np.array_equal(densify(found, method), found)
    assert found == pytest.approx(densify(2 * depth, method) / 2, rel=1e-12, abs=0)


# Real LiDAR.


@pytest.mark.parametrize("columns", [slice(450, 750), pytest.param(slice(None), marks=pytest.mark.slow)])
@pytest.mark.parametrize(("method", "largest"), [("nearest", 0.005), ("linear", 0.004)])
def test_left_out_points_of_a_real_scan_are_found_again(shared, method, largest, columns):
    # A fifth of the points of a scan is left out and filled in from the rest. The median error is half a per cent or
    # so, against some tens of per cent for one depth everywhere: what filling is worth inside the LiDAR's view.
    sparse = depth_map(shared / "data" / "images_kitti_depth" / "sparse_depth", "000008")[:, columns]
    places = np.nonzero(sparse)
    out = np.random.default_rng(0).random(len(places[0])) < 0.2
    fewer = sparse.copy()
    left_out = tuple(each[out] for each in places)
    fewer[left_out] = 0
    truth = sparse[left_out]
    errors = np.abs(densify(fewer, method)[left_out] / truth - 1)
    print(f"\n{method}: median error {np.median(errors):.4f}, 90 % below {np.quantile(errors, 0.9):.4f}")
    constant = np.median(np.abs(np.median(truth) / truth - 1))
    assert np.median(errors) < largest
    assert np.median(errors) < constant / 10


# What is refused.


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, 1e9])
def test_a_depth_that_is_none(bad):
    depth = np.full((3, 4), 10.0)
    depth[1, 2] = bad
    with pytest.raises(InputError, match="expected depths from 0 to 100000 m"):
        densify(depth, "nearest")


def test_nothing_known_and_unknown_methods():
    with pytest.raises(InputError, match="no pixel of the depth map has a known depth"):
        densify(np.zeros((3, 4)), "linear")
    with pytest.raises(InputError, match=r"\(height, width\)"):
        densify(np.ones(4), "linear")
    with pytest.raises(UsageError, match="expected nearest, linear, got cubic"):
        densify(np.ones((3, 4)), "cubic")
