"""The kernels against hand-solved cases, exact fractions, shapely, and the laws they must obey."""

import math

import numpy as np
import plain_boxes
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verifier.perception.matching import policy
from verifier.perception.matching.policy import centre_distance, cover_2d, iou_2d, iou_3d, iou_bev

DIRECTIONS = [
    (1, 0),
    (0, 1),
    (-1, 0),
    (0, -1),
    ("3/5", "4/5"),
    ("-4/5", "3/5"),
    ("5/13", "-12/13"),
    ("7/25", "24/25"),
]
"""Cosine and sine of angles with a rational direction, the multiples of 90 degrees among them."""


def rows(*boxes):
    return np.array(boxes, dtype=np.float64)


def upright(x=0.0, y=0.0, z=0.0, length=4.0, width=2.0, height=1.5, yaw=0.0):
    return rows((x, y, z, length, width, height, yaw))


def as_row(box):
    """A box of `plain_boxes` as the row of floats that the package takes."""
    *numbers, cosine, sine = box
    return (*numbers, math.atan2(float(plain_boxes.Fraction(sine)), float(plain_boxes.Fraction(cosine))))


# By hand.


def test_what_rounding_leaves_in_common_is_nothing(monkeypatch):
    # 16 units of rounding of the largest side times it with both centres: 8 (8 + 3 + 4 + 1 + 2) = 144, whichever side
    # it is, heights aside. What is more is not more than the smaller box.
    sides = np.array([[8.0, 1, 0.5, 2], [1, 8, 0.5, 2], [0.5, 2, 8, 1], [0.5, 2, 1, 8]])
    a = np.column_stack([[[3.0, -4, 0]] * 4, sides[:, :2], [[100, 0]] * 4])
    b = np.column_stack([[[-1.0, 2, 0]] * 4, sides[:, 2:], [[100, 0]] * 4])
    least = 16 * 2.0**-52 * 144
    for area, left in ((-1.0, 0), (least, 0), (2 * least, 2 * least), (0.5, 0.5), (4.0, 1.0)):
        monkeypatch.setattr(policy, "_side_integral", lambda *_, part=-area / 4: part)
        assert policy._clipped_area(a, b).tolist() == [left] * 4


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((0, 0, 4, 4), (2, 2, 6, 6), 4 / 28),  # squares of 16 that share 4
        ((0, 0, 4, 4), (0, 0, 4, 4), 1),
        ((0, 0, 4, 4), (4, 0, 8, 4), 0),  # they touch in an edge
        ((0, 0, 4, 4), (4, 4, 8, 8), 0),  # they touch in a corner
        ((0, 0, 8, 8), (2, 2, 4, 6), 8 / 64),  # one contains the other
        ((0, 0, 4, 4), (1, 1, 1, 3), 0),  # a line has no area
        ((1, 1, 1, 1), (1, 1, 1, 1), 0),  # nor has a point, with itself
        ((0, 0, 2, 1), (0, 0, 1, 2), 1 / 3),
    ],
)
def test_image_rectangles_by_hand(a, b, expected):
    assert iou_2d(rows(a), rows(b)) == [expected]
    assert iou_2d(rows(b), rows(a)) == [expected]


@pytest.mark.parametrize(
    ("detection", "region", "expected"),
    [
        ((0, 0, 2, 2), (0, 0, 100, 100), 1),
        ((0, 0, 100, 100), (0, 0, 50, 50), 1 / 4),  # of the detection, not of the region
        ((0, 0, 2, 2), (2, 0, 4, 4), 0),
        ((1, 1, 1, 1), (0, 0, 4, 4), 0),
    ],
)
def test_the_part_in_a_region_is_a_part_of_the_detection(detection, region, expected):
    assert cover_2d(rows(detection), rows(region)) == [expected]


def test_a_square_turned_by_45_degrees_leaves_an_octagon():
    # Two squares of side 2 around one centre: a regular octagon of inradius 1, of area 8 tan(pi/8) = 8 (sqrt 2 - 1).
    octagon = 8 * (math.sqrt(2) - 1)
    square, turned = upright(length=2, width=2), upright(length=2, width=2, yaw=math.pi / 4)
    assert iou_bev(square, turned) == pytest.approx([octagon / (8 - octagon)], abs=1e-15)
    assert iou_3d(square, turned) == pytest.approx([octagon / (8 - octagon)], abs=1e-15)


def test_a_diamond_in_a_square():
    # The diamond |x| + |y| <= 1 has area 2 and lies in the square of side 2, which it touches in four points.
    diamond = upright(length=math.sqrt(2), width=math.sqrt(2), yaw=math.pi / 4)
    assert iou_bev(diamond, upright(length=2, width=2)) == pytest.approx([2 / 4], abs=1e-15)


def test_a_quarter_turn_exchanges_length_and_width():
    # 4 x 2 across 2 x 4 share 2 x 2: 4 / (8 + 8 - 4).
    assert iou_bev(upright(), upright(yaw=math.pi / 2)) == pytest.approx([4 / 12], abs=1e-15)
    assert iou_bev(upright(), upright(length=2, width=4, yaw=math.pi / 2)) == pytest.approx([1], abs=1e-15)
    assert iou_bev(upright(), upright(length=2, width=4, yaw=-math.pi / 2)) == pytest.approx([1], abs=1e-15)


def test_height_counts_in_space_and_not_from_above():
    above = upright(z=1.0)  # 1.5 high and 1.0 higher: a third in common, 4 / (12 + 12 - 4)
    assert iou_bev(upright(), above) == [1]
    assert iou_3d(upright(), above) == pytest.approx([4 / 20], abs=1e-15)
    assert iou_3d(upright(), upright(z=1.5)) == [0]
    assert iou_3d(upright(), upright(z=9.0)) == [0]


@pytest.mark.parametrize("yaw", [0.0, 0.3, math.pi / 2, -2.5, 100.0])
def test_equal_boxes_have_iou_one_and_touching_ones_zero(yaw):
    box = upright(x=17.3, y=-4.1, z=0.7, yaw=yaw)
    beside = box.copy()
    beside[0, :2] += 4.0 * np.array([math.cos(yaw), math.sin(yaw)])
    for iou in (iou_bev, iou_3d):
        assert iou(box, box) == [1]
        assert iou(box, beside) == [0]


def test_boxes_apart_share_nothing_not_even_a_rounding_error():
    """Of 20,000 pairs of rectangles that a line separates some had 1e-17 in common: a pair for who asks for > 0."""
    rng = np.random.default_rng(3)
    many = 20_000
    a = np.column_stack(
        [rng.uniform(-60, 60, (many, 2)), np.zeros(many), rng.uniform(0.4, 6, (many, 3)), rng.uniform(-4, 4, many)]
    )
    b = np.column_stack([np.zeros((many, 3)), rng.uniform(0.4, 6, (many, 3)), rng.uniform(-4, 4, many)])
    # b lies beyond the line through a's front, as far as its circumcircle or less, and at least a millimetre away.
    ahead = np.stack([np.cos(a[:, 6]), np.sin(a[:, 6])], axis=1)
    turn = b[:, 6] - a[:, 6]
    reach = (b[:, 3] * np.abs(np.cos(turn)) + b[:, 4] * np.abs(np.sin(turn))) / 2
    aside = np.stack([-ahead[:, 1], ahead[:, 0]], axis=1) * rng.uniform(-1, 1, (many, 1)) * a[:, 4:5]
    b[:, :2] = a[:, :2] + ahead * (a[:, 3] / 2 + reach + 0.001)[:, None] + aside
    assert iou_bev(a, b).tolist() == [0] * many
    assert iou_3d(a, b).tolist() == [0] * many


@pytest.mark.parametrize("size", [(0, 2, 1), (4, 0, 1), (0, 0, 0), (4, 2, 0)])
def test_a_box_without_volume_has_no_iou(size):
    flat = rows((0, 0, 0, *size, 0.4))
    assert iou_3d(flat, flat) == [0]
    assert iou_3d(flat, upright()) == [0]
    assert iou_3d(upright(), flat) == [0]
    if 0 in size[:2]:
        assert iou_bev(flat, flat) == [0]
        assert iou_bev(upright(), flat) == [0]


def test_height_above_the_ground_plays_no_part_from_above():
    # 4 x 2, turned and across its neighbour's corner: they share little.
    low, corner = upright(yaw=0.3), upright(x=3.0, y=2.3, yaw=0.1)
    shared = iou_bev(low, corner)
    assert 1e-4 < shared[0] < 0.1
    for one, other in ((1e15, 0.0), (0.0, 1e15), (-1e15, 1e15)):
        assert iou_bev(upright(yaw=0.3, z=one), upright(x=3.0, y=2.3, z=other, yaw=0.1)) == shared


@pytest.mark.parametrize("y", [0, 100, -100])
@pytest.mark.parametrize(
    ("a", "b"), [((16, 2), (4, 2)), ((4, 16), (4, 2)), ((4, 2), (16, 2)), ((4, 2), (4, 16)), ((4, 2), (4, 2))]
)
def test_sixteen_roundings_are_no_shared_area(a, b, y):
    # Side by side along x, but for a sliver as wide as the narrower one, which is 2.
    centre, size = (a[0] + b[0]) / 2, max(*a, *b)
    limit = 16 * 2.0**-52 * (centre + 2 * abs(y) + size) * size
    for part, shares in ((0.97, False), (1.03, True)):
        other = upright(x=centre - part * limit / 2, y=y, length=b[0], width=b[1])
        assert (iou_bev(upright(y=y, length=a[0], width=a[1]), other)[0] > 0) == shares


def test_distances_by_hand():
    assert centre_distance(rows((0, 0)), rows((3, 4))) == [5]
    assert centre_distance(rows((1, 2, 3)), rows((3, 5, 9))) == [7]  # 4 + 9 + 36 = 49


def test_an_unknown_box_gives_nan():
    unknown = np.full((1, 7), np.nan)
    for iou in (iou_bev, iou_3d):
        assert np.isnan(iou(unknown, upright())).all()
        assert np.isnan(iou(upright(), unknown)).all()
    assert np.isnan(iou_2d(unknown[:, :4], rows((0, 0, 1, 1)))).all()
    assert np.isnan(centre_distance(unknown[:, :2], rows((0, 0)))).all()


@pytest.mark.parametrize("kernel", [iou_2d, cover_2d, iou_bev, iou_3d, centre_distance])
def test_no_pairs(kernel):
    none = np.zeros((0, 7 if kernel in (iou_bev, iou_3d) else 4))
    assert kernel(none, none).shape == (0,)


# Against exact fractions.

whole = st.integers(-3, 3)
sizes = st.integers(0, 4)
plain = st.tuples(whole, whole, whole, sizes, sizes, sizes, st.sampled_from(DIRECTIONS)).map(
    lambda t: (*t[:6], *(plain_boxes.Fraction(value) for value in t[6]))
)
rectangles = st.tuples(whole, whole, sizes, sizes).map(lambda t: (t[0], t[1], t[0] + t[2], t[1] + t[3]))


@given(rectangles, rectangles)
def test_image_rectangles_as_sets_of_squares(a, b):
    exact = plain_boxes.iou_2d(a, b)
    assert iou_2d(rows(a), rows(b)) == [float(exact)]


@given(plain, plain)
def test_upright_boxes_in_exact_fractions(a, b):
    got = iou_bev(rows(as_row(a)), rows(as_row(b)))[0], iou_3d(rows(as_row(a)), rows(as_row(b)))[0]
    assert got == pytest.approx((float(plain_boxes.iou_bev(a, b)), float(plain_boxes.iou_3d(a, b))), abs=1e-14)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(plain, plain)
def test_upright_boxes_in_exact_fractions_at_length(a, b):
    got = iou_bev(rows(as_row(a)), rows(as_row(b)))[0], iou_3d(rows(as_row(a)), rows(as_row(b)))[0]
    assert got == pytest.approx((float(plain_boxes.iou_bev(a, b)), float(plain_boxes.iou_3d(a, b))), abs=1e-14)


unturned = plain.map(lambda box: (*box[:6], 1, 0))


@given(unturned, unturned)
def test_without_rotation_nothing_is_rounded_but_the_quotient(a, b):
    assert iou_bev(rows(as_row(a)), rows(as_row(b))) == [float(plain_boxes.iou_bev(a, b))]
    assert iou_3d(rows(as_row(a)), rows(as_row(b))) == [float(plain_boxes.iou_3d(a, b))]


def test_the_oracle_itself_by_hand():
    turned = (0, 0, 0, 5, 5, 2, plain_boxes.Fraction(3, 5), plain_boxes.Fraction(4, 5))
    assert plain_boxes.area(plain_boxes.corners(turned)) == 25
    assert plain_boxes.iou_bev(turned, turned) == 1
    # The square |x|, |y| <= 1/2 lies within: its corners are sqrt(1/2) < 5/2 from the centre.
    assert plain_boxes.iou_bev(turned, (0, 0, 0, 1, 1, 1, 1, 0)) == plain_boxes.Fraction(1, 25)
    assert plain_boxes.iou_3d(turned, (0, 0, 0, 1, 1, 1, 1, 0)) == plain_boxes.Fraction(1, 50)
    assert plain_boxes.iou_2d((0, 0, 4, 4), (2, 2, 6, 6)) == plain_boxes.Fraction(1, 7)


# Random boxes of the sizes of road users, many at once.


def random_boxes(count, seed, spread=3.0):
    rng = np.random.default_rng(seed)
    centre = rng.uniform(-spread, spread, (count, 3))
    return np.column_stack([centre, rng.uniform(0.1, 6.0, (count, 3)), rng.uniform(-4, 4, count)])


def test_random_boxes_agree_with_shapely():
    shapely = pytest.importorskip("shapely", reason="shapely is not installed")
    a, b = random_boxes(2000, 1), random_boxes(2000, 2)

    def polygon(box):
        at = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]]) / 2 * box[3:5]
        c, s = math.cos(box[6]), math.sin(box[6])
        return shapely.Polygon(at @ np.array([[c, s], [-s, c]]) + box[:2])

    shapes = [(polygon(p), polygon(q)) for p, q in zip(a, b, strict=True)]
    shared = np.array([p.intersection(q).area for p, q in shapes])
    union = np.array([p.union(q).area for p, q in shapes])
    assert (shared > 0).mean() > 0.5
    np.testing.assert_allclose(iou_bev(a, b), shared / union, atol=1e-12)


def test_random_boxes_agree_with_counting_points():
    rng = np.random.default_rng(3)
    a, b = random_boxes(40, 4, spread=1.0), random_boxes(40, 5, spread=1.0)
    points = rng.uniform(-7, 7, (200_000, 3))

    def inside(box):
        c, s = math.cos(box[6]), math.sin(box[6])
        x, y, z = (points - box[:3]).T
        return (abs(c * x + s * y) <= box[3] / 2) & (abs(c * y - s * x) <= box[4] / 2) & (abs(z) <= box[5] / 2)

    for p, q, got in zip(a, b, iou_3d(a, b), strict=True):
        in_p, in_q = inside(p), inside(q)
        both, either = np.sum(in_p & in_q), np.sum(in_p | in_q)
        # Given n points in the union, those in both are binomial(n, IoU); 5 standard deviations.
        assert both / either == pytest.approx(got, abs=5 * math.sqrt(0.25 / either))


@pytest.mark.parametrize("iou", [iou_bev, iou_3d])
def test_laws_of_the_iou(iou):
    a, b = random_boxes(5000, 6), random_boxes(5000, 7)
    value = iou(a, b)
    assert value.min() >= 0
    assert value.max() <= 1
    np.testing.assert_allclose(iou(b, a), value, atol=1e-13)
    half_turn, other = a.copy(), b.copy()
    half_turn[:, 6] += math.pi
    np.testing.assert_allclose(iou(half_turn, b), value, atol=1e-13)
    swapped = a[:, [0, 1, 2, 4, 3, 5, 6]] + np.array([0, 0, 0, 0, 0, 0, math.pi / 2])
    np.testing.assert_allclose(iou(swapped, b), value, atol=1e-13)
    moved = a + np.array([1000.0, -500.0, 0, 0, 0, 0, 0])
    other[:, :2] += (1000.0, -500.0)
    np.testing.assert_allclose(iou(moved, other), value, atol=1e-11)


def test_the_iou_in_space_is_at_most_that_from_above():
    # S h / (A p + B q - S h) with h <= p and h <= q is at most S / (A + B - S).
    a, b = random_boxes(5000, 8), random_boxes(5000, 9)
    assert np.all(iou_3d(a, b) <= iou_bev(a, b) + 1e-15)


def test_a_tiny_turn_changes_little():
    # Nearly parallel sides are where clipping by intersection points goes wrong.
    a = upright(x=0.3, y=0.2)
    for turn in 10.0 ** -np.arange(1, 18):
        change = abs(iou_bev(a, upright(yaw=turn)) - iou_bev(a, upright()))
        assert change[0] <= 2 * turn + 1e-15
