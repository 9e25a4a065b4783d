"""Pathified distance: cases solved by hand, and against what it means."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from small_logs import HAND, at_arc, lattice_drives, made_logs, plain_distance, plain_path, random_logs, straight

from verifier.base.errors import InputError, UsageError
from verifier.closedloop.cutting import positive_by_path
from verifier.closedloop.logs import Standardizer
from verifier.closedloop.pathifier import PathSettings, Radii, courses, pathified_distance, paths_of, violation_m

NONE = math.inf
SHORT = PathSettings(extension_m=0)


def ahead(drive, image, point, radius=2.0, settings=None, headings=None):
    """Pathified distance of one point in one image of one log."""
    logs = made_logs({"log": (True, drive)}, headings=headings)
    return pathified_distance(
        paths_of(logs, settings), np.array([image]), np.array([point], dtype=float), radius
    ).tolist()[0]


# Eleven poses at x = 0, 1, ..., 10, and 10 m straight on to x = 20.
@pytest.mark.parametrize(
    ("image", "point", "expected"),
    [
        (0, (8, 0), 6),  # the disc reaches from 6 to 10
        (3, (8, 0), 3),
        (3, (8, 1.2), 3.4),  # 1.2-1.6-2: entered at 8 - 1.6
        (3, (8, -1.2), 3.4),
        (6, (8, 0), 0),  # on the edge of the disc is inside
        (7, (8, 0), 0),  # already inside
        (9, (8, 0), 0),  # behind, and still inside
        (10, (8, 0), 0),
        (0, (8, 2), 8),  # grazed: the path touches the disc at x = 8, which is a pose
        (0, (8.5, 2), 8.5),  # grazed between two poses
        (0, (8, 2.001), NONE),  # passed by
        (5, (1, 0), NONE),  # behind
        (0, (-3, 0), NONE),  # behind the first pose
        (0, (-1.5, 0), 0),
        (0, (15, 0), 13),  # beyond the last pose, on the extension
        (0, (15, 1.2), 13.4),
        (10, (15, 0), 3),
        (0, (22, 0), 20),  # the end of the path touches
        (0, (22.5, 0), NONE),  # beyond the end
        (0, (math.nan, math.nan), NONE),  # not localized
    ],
)
def test_straight_path(image, point, expected):
    assert ahead(straight(11), image, point) == pytest.approx(expected, abs=1e-12)
    if expected in (0, NONE) or float(expected).is_integer():
        assert ahead(straight(11), image, point) == expected  # no rounding anywhere


@pytest.mark.parametrize(("radius", "expected"), [(1, 9), (2, 8), (5, 5), (9.5, 0.5), (10, 0), (11, 0)])
def test_the_radius_is_what_it_says(radius, expected):
    assert ahead(straight(3), 0, (10, 0), radius) == expected


def test_slanted_path():
    # Along (3, 4)/5: (12, 16) is 20 m away; beside the path by 1.2 m at 10 m, entered 1.6 m earlier.
    drive = [(3 * k, 4 * k) for k in range(3)]
    assert ahead(drive, 0, (12, 16)) == pytest.approx(18, abs=1e-12)
    assert ahead(drive, 1, (12, 16)) == pytest.approx(13, abs=1e-12)
    beside = (6 - 1.2 * 0.8, 8 + 1.2 * 0.6)
    assert ahead(drive, 0, beside) == pytest.approx(8.4, abs=1e-12)
    # A third of the vehicle's steps and another place on the earth change nothing.
    finer = [(461966.0 + k, 6213631.0 + 4 * k / 3) for k in range(7)]
    there = (461966.0 + beside[0], 6213631.0 + beside[1])
    assert ahead(finer, 0, there) == pytest.approx(8.4, abs=1e-8)


def test_a_corner():
    # 10 m east, 10 m north.
    drive = [(0, 0), (10, 0), (10, 10)]
    assert ahead(drive, 0, (10, 8), settings=SHORT) == 16  # 10 + 8 - 2
    assert ahead(drive, 0, (12, 0), settings=SHORT) == 10  # the corner touches
    assert ahead(drive, 0, (11, 0), settings=SHORT) == 9
    # (11.2, 1.6) is 2 m from the corner, 1.2 m beside the second leg and 1.6 m along it: from 0 to 3.2.
    assert ahead(drive, 0, (11.2, 1.6), settings=SHORT) == pytest.approx(10, abs=1e-12)
    assert ahead(drive, 1, (11.2, 1.6), settings=SHORT) == pytest.approx(0, abs=1e-12)


def test_a_circle():
    # Radius 10, a person on it 2 radians ahead: the disc begins where the chord is 2, at 2 - 2 asin(1/10) radians.
    # A polygon with sides of d radians is shorter by the share d^2 / 24 and lies up to 10 d^2 / 8 inside.
    step = 0.001
    angle = np.arange(0, 2.5, step)
    drive = np.column_stack([10 * np.cos(angle), 10 * np.sin(angle)])
    expected = 10 * (2 - 2 * math.asin(0.1))
    assert ahead(drive, 0, (10 * math.cos(2), 10 * math.sin(2))) == pytest.approx(expected, abs=20 * step**2)


# There and back on two lines 3 m apart.
BACK = [(0, 0), (5, 0), (10, 0), (10, 3), (5, 3), (0, 3)]


@pytest.mark.parametrize(
    ("image", "radius", "expected"),
    [
        (0, 2, 16),  # only the way back comes near (5, 3): 10 + 3 + 5 - 2
        (1, 2, 11),
        (2, 2, 6),
        (4, 2, 0),
        (5, 2, NONE),  # passed
        (0, 3, 5),  # the way out touches
        (0, 3.25, 3.75),  # 3, 1.25, 3.25: entered at 5 - 1.25
        (1, 3.25, 0),
    ],
)
def test_a_path_that_comes_back(image, radius, expected):
    assert ahead(BACK, image, (5, 3), radius, SHORT) == pytest.approx(expected, abs=1e-12)


def test_a_loop_is_met_twice_but_only_ahead_counts():
    loop = [(0, 0), (10, 0), (10, 10), (0, 10), (0, 0), (10, 0)]
    found = [ahead(loop, image, (5, 0), 1, SHORT) for image in range(6)]
    assert found == [4, 34, 24, 14, 4, NONE]


def test_standing_still():
    # Three images at the same place: the same distance, and none of the pieces without length does harm.
    drive = [(0, 0), (0, 0), (0, 0), (4, 0), (4, 0)]
    assert [ahead(drive, image, (8, 0)) for image in range(5)] == [6, 6, 6, 2, 2]
    # A vehicle that never moves looks along its heading: (0, 1).
    rest = [(1, 1), (1, 1)]
    assert [ahead(rest, image, (1, 7), headings=[0, math.pi / 2]) for image in range(2)] == [4, 4]
    assert ahead(rest, 0, (7, 1), headings=[0, math.pi / 2]) == NONE
    assert ahead(rest, 0, (2, 1), headings=[0, math.pi / 2]) == 0
    # Without a heading only the question of the extension is open.
    assert ahead(rest, 0, (2, 1), settings=SHORT) == 0
    assert ahead(rest, 0, (9, 1), settings=SHORT) == NONE


def test_logs_do_not_see_each_other():
    logs = made_logs({"east": (True, straight(4)), "north": (True, [(0, y) for y in range(4)])})
    point = np.array([[0.0, 9.0], [0.0, 9.0], [9.0, 0.0], [9.0, 0.0]])
    found = pathified_distance(paths_of(logs), np.array([0, 4, 0, 4]), point, 2.0)
    assert found.tolist() == [NONE, 7, 7, NONE]


def test_nothing_there():
    logs = made_logs({"log": (True, straight(3))})
    assert pathified_distance(paths_of(logs), np.zeros(0, np.int64), np.zeros((0, 2)), 2.0).shape == (0,)


QUARTERS = st.integers(-40, 40).map(lambda each: each / 4)
ANY_DRIVE = st.lists(st.tuples(QUARTERS, QUARTERS), min_size=1, max_size=9)


@given(ANY_DRIVE, st.lists(st.tuples(st.integers(0, 8), QUARTERS, QUARTERS), max_size=12), st.floats(0.25, 12))
@example([(0, 0), (10, 0)], [(0, 5, 2)], 2.0)
def test_against_sampling_the_path(drive, points, radius):
    """Nothing of the path before the distance lies within the radius, and the point at the distance does."""
    logs = made_logs({"log": (True, drive)}, headings=[0.3] * len(drive))
    paths = paths_of(logs)
    end = np.array(drive[-1]) + 10 * paths.direction[-1]
    image = np.array([at % len(drive) for at, _, _ in points], dtype=np.int64)
    place = np.array([[x, y] for _, x, y in points], dtype=float).reshape(-1, 2)
    found = pathified_distance(paths, image, place, radius)
    for at, point, distance in zip(image.tolist(), place.tolist(), found.tolist(), strict=True):
        corners = plain_path(drive, at, end)
        length = sum(math.dist(a, b) for a, b in pairwise(corners))
        if distance < NONE:
            assert math.dist(at_arc(corners, distance), point) <= radius + 1e-9
            assert distance <= length + 1e-9
        for arc in np.linspace(0, min(distance, length), 200, endpoint=False).tolist():
            if arc < distance - 1e-7:
                assert math.dist(at_arc(corners, arc), point) > radius - 1e-9


@given(st.lists(lattice_drives(), min_size=1, max_size=3), st.integers(1, 4), st.data())
def test_against_the_quadratic_equation(drives, radius, data):
    """All logs at once give what one log and one piece after the other gives."""
    logs = made_logs({str(number): (True, drive) for number, drive in enumerate(drives)})
    where = [(log, image) for log, drive in enumerate(drives) for image in range(len(drive))]
    place = st.tuples(st.sampled_from(range(len(where))), st.integers(-12, 12), st.integers(-12, 12))
    rows = data.draw(st.lists(place, max_size=20))
    image = np.array([row[0] for row in rows], dtype=np.int64)
    point = np.array([row[1:] for row in rows], dtype=float).reshape(-1, 2)
    found = pathified_distance(paths_of(logs, SHORT), image, point, radius)
    for row, value in zip(rows, found.tolist(), strict=True):
        log, at = where[row[0]]
        assert value == pytest.approx(plain_distance(plain_path(drives[log], at), row[1:], radius), abs=1e-12)


@given(ANY_DRIVE, st.tuples(QUARTERS, QUARTERS), st.floats(0.5, 6), st.floats(1, 2), st.floats(0, 6.3))
def test_laws(drive, point, radius, factor, turn):
    """A larger radius is met no later; the distance falls by what is driven; turning the world changes nothing."""
    count = len(drive)
    settings = PathSettings(knot_spacing_m=0.3)  # no two quarters are exactly so far apart
    logs = made_logs({"log": (True, drive)}, headings=[0.3] * count)
    paths = paths_of(logs, settings)
    images, points = np.arange(count), np.tile(np.array(point, dtype=float), (count, 1))
    found = pathified_distance(paths, images, points, radius)
    assert (pathified_distance(paths, images, points, radius * factor) <= found + 1e-9).all()
    step = np.diff(paths.image_s_m)
    later = found[:-1] > step + 1e-9  # not met before the next image
    after = np.where(later, found[:-1] - step, 0.0)[later]
    assert found[1:][later] == pytest.approx(after, abs=1e-7)
    spin = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    turned = made_logs({"log": (True, np.array(drive, dtype=float) @ spin.T)}, headings=[0.3 + turn] * count)
    moved = pathified_distance(paths_of(turned, settings), images, points @ spin.T, radius * (1 + 1e-9))
    assert (moved <= found + 1e-4).all()  # 1 + 1e-9: a point that is only touched must not be missed by rounding


STANDARD = Standardizer.from_validation([0.95, 0.7, 0.6, 0.4], 5)


def test_courses_by_hand():
    person, nobody = courses(HAND, "a", STANDARD, 2.0)
    assert (person.positive, nobody.positive) == (True, False)
    for course in (person, nobody):
        assert course.image_s_m.tolist() == [0, 1, 2, 3, 4]
        assert course.end_s_m == 14
    assert person.detection_image.tolist() == [1, 2, 3, 4]
    assert person.detection_distance_m.tolist() == [2, 0.5, 4, 0]
    assert person.detection_sensitivity.tolist() == [0.2, 0.6, 0.2, 0.8]
    assert person.truth_image.tolist() == [0, 1, 2, 3, 4]
    assert person.truth_distance_m.tolist() == [3, 2, 1, 0, 0]
    assert nobody.detection_image.tolist() == [0, 1, 2]  # what lies beside the path is gone
    assert nobody.detection_distance_m.tolist() == [1, 2, 2.5]
    assert nobody.detection_sensitivity.tolist() == [0.6, 0.4, 0.8]
    assert len(nobody.truth_image) == 0


def test_courses_want_rows_in_no_order():
    shuffled = HAND.detections["a"].take(np.array([7, 3, 0, 5, 1, 6, 2, 4]))
    again = courses(HAND.with_source("b", shuffled), "b", STANDARD, 2.0)
    for one, other in zip(courses(HAND, "a", STANDARD, 2.0), again, strict=True):
        assert np.array_equal(one.detection_image, other.detection_image)
        assert np.array_equal(one.detection_distance_m, other.detection_distance_m)


def test_where_the_safety_radius_is_violated():
    # The person at (5, 0) is seen all along: 1.5 m away at 3.5 m. Nobody in the other log.
    assert violation_m(HAND, paths_of(HAND), 1.5).tolist() == [3.5, NONE]
    assert violation_m(HAND, paths_of(HAND), 6.0).tolist() == [0, NONE]
    # Seen in image 0 at 6 m, in image 1 beside the path: that image is replayed from 1 m on.
    logs = made_logs({"log": (True, straight(3))}, [(0, 6, 0), (1, 6, 4)])
    assert violation_m(logs, paths_of(logs), 1.5).tolist() == [NONE]
    # Seen in the last image only: from there to the end of the extension.
    logs = made_logs({"log": (True, straight(3))}, [(2, 13, 1.2)])
    assert violation_m(logs, paths_of(logs), 2.0).tolist() == [11.4]
    # At rest the last image at a place is the one replayed there.
    logs = made_logs({"log": (True, [(0, 0), (0, 0), (3, 0)])}, [(0, 1, 0), (1, 4, 0)])
    assert violation_m(logs, paths_of(logs), 2.0).tolist() == [2]


@given(random_logs(), st.integers(1, 3))
def test_violations_against_driving(logs, radius):
    """Nowhere before that point is anybody close, by the image replayed there, and at that point somebody is."""
    paths = paths_of(logs, SHORT)
    found = violation_m(logs, paths, radius)
    for log, place in enumerate(found.tolist()):
        first, end = logs.first_image[log : log + 2].tolist()
        corners = logs.position_m[first:end].tolist()

        def nearest(arc, corners=corners, first=first, end=end):
            replayed = first + int(np.searchsorted(paths.image_s_m[first:end], arc, side="right")) - 1
            people = logs.person_m[logs.person_image == replayed].tolist()
            return min((math.dist(at_arc(corners, arc), person) for person in people), default=NONE)

        assert place == NONE or nearest(place) <= radius + 1e-9
        for arc in np.arange(0, min(place, paths.end_s_m[log] + 1e-9), 1 / 8).tolist():
            assert nearest(arc) > radius - 1e-9


@pytest.mark.parametrize("wrong", [(1.5, 1.5), (1, 2), (2, 0), (math.inf, 1), (math.nan, 1)])
def test_the_control_radius_is_the_greater(wrong):
    assert Radii(2.0, 1.5).control_m == 2.0
    with pytest.raises(ValueError, match="safety radius < control radius"):
        Radii(*wrong)


def test_somebody_in_the_way_of_a_negative_log():
    logs = made_logs({"wet field": (False, straight(3))}, [(1, 9, 0)])
    with pytest.raises(InputError, match=r"'wet field' is negative, but in its image 1 somebody blocks the path 6 m"):
        courses(logs.with_source("b", HAND.detections["a"].take([])), "b", STANDARD, 2.0)
    found = positive_by_path(logs, 2.0, PathSettings())
    assert found.positive.tolist() == [True]
    assert [each.positive for each in courses(found, "a", STANDARD, 2.0)] == [True]
    # Beside the path people may be.
    beside = made_logs({"wet field": (False, straight(3))}, [(1, 5, 2.5)])
    assert len(courses(beside, "a", STANDARD, 2.0)[0].truth_image) == 0


def test_an_unknown_source():
    with pytest.raises(UsageError, match=r"unknown source of detections 'yolo'[\s\S]*known: a"):
        courses(HAND, "yolo", STANDARD, 2.0)
