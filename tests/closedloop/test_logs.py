"""Logs are valid from birth; gaps and jumps; cutting drives into logs."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_logs import HAND, made_detections, made_logs, random_logs, straight

from verifier.base.errors import InputError, UsageError
from verifier.closedloop.cutting import in_view, positive_by_path, windows
from verifier.closedloop.logs import Detections, LogLimits, Logs, check_plausible
from verifier.closedloop.pathifier import PathSettings


def test_what_logs_hold():
    assert (HAND.log_count, HAND.image_count) == (2, 10)
    assert HAND.first_image.tolist() == [0, 5, 10]
    assert len(HAND.source("a")) == 8
    with pytest.raises(ValueError, match="read-only"):
        HAND.time_s[0] = 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": ("a", "a")}, "occurs twice"),
        ({"positive": np.array([True])}, "positive has shape"),
        ({"position_m": np.zeros((10, 3))}, "position_m has shape"),
        ({"heading_rad": np.zeros(9)}, "heading_rad has shape"),
        ({"heading_rad": np.full(10, np.nan)}, "heading_rad: a value is not finite"),
        ({"position_m": np.full((10, 2), np.inf)}, "position_m: a value is not finite"),
        ({"image_log": np.repeat([1, 0], 5)}, "must stand together"),
        ({"image_log": np.zeros(10, np.int64)}, "every log has an image"),
        ({"image_log": np.repeat([0, 2], 5)}, "every log has an image"),
        ({"time_s": np.array([0, 1, 1, 2, 3, 0, 1, 2, 3, 4.0])}, "times must increase"),
        ({"time_s": np.array([0, 2, 1, 3, 4, 0, 1, 2, 3, 4.0])}, "times must increase"),
        ({"time_s": np.array([0, 1, np.nan, 3, 4, 0, 1, 2, 3, 4.0])}, "time_s: a value is not finite"),
        ({"person_image": np.array([0, 1, 2, 3, 10])}, r"person_image has an index outside 0\.\.9"),
        ({"person_m": np.array([[0, np.nan]] * 5)}, "person_m: a point is partly NaN"),
        ({"person_m": np.array([[0, np.inf]] * 5)}, "partly NaN, or a coordinate beyond"),
        ({"person_m": np.array([[0, -2e9]] * 5)}, "person_m: a point .* a coordinate beyond"),
        ({"position_m": np.full((10, 2), 2e9)}, "position_m: a coordinate beyond"),
        ({"person_box_2d": np.array([[5, 0, 4, 1.0]] * 5)}, "of negative size"),
        ({"person_box_2d": np.zeros((4, 4))}, "person_box_2d has shape"),
        ({"detections": {"b": made_detections([(10, 1, 0, 0)])}}, "image of source 'b' has an index outside"),
        ({"detections": {"b": made_detections([(-1, 1, 0, 0)])}}, "image of source 'b' has an index outside"),
    ],
)
def test_logs_that_cannot_be(change, message):
    with pytest.raises(ValueError, match=message):
        replace(HAND, **change)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (([0], [math.nan], [[0, 0]]), "strength is not finite"),
        (([0], [math.inf], [[0, 0]]), "strength is not finite"),
        (([0], [1], [[0, math.nan]]), "partly NaN"),
        (([0], [1, 2], [[0, 0]]), "strength has shape"),
        (([0], [1], [0, 0]), "point_m has shape"),
        (([0], [1], [[0, 0]], [[1, 1, 0, 0]]), "of negative size"),
        (([0], [1], [[0, 0]], [[1, 1, 2, math.nan]]), "partly NaN"),
    ],
)
def test_detections_that_cannot_be(fields, message):
    with pytest.raises(ValueError, match=message):
        Detections(*map(np.array, fields))


def test_sources():
    more = HAND.with_source("b", made_detections([]), "b reports nothing", "b reports nothing")
    assert list(more.detections) == ["a", "b"]
    assert list(HAND.detections) == ["a"]
    assert more.with_source("c", made_detections([]), "b reports nothing").remarks == more.remarks
    with pytest.raises(ValueError, match="a source 'b' already"):
        more.with_source("b", made_detections([]))
    with pytest.raises(UsageError, match=r"'bb'[\s\S]*did you mean 'b'"):
        more.source("bb")


def driven(time, x):
    """One log along x."""
    n = len(time)
    none = np.zeros(0, np.int64)
    position = np.column_stack([x, np.zeros(n)])
    return Logs(("log",), [True], np.zeros(n, np.int64), time, position, None, none, np.zeros((0, 2)))


def test_gaps_and_jumps():
    check_plausible(driven([0, 2, 4], [0, 140, 0]))  # just within 2 s and 70 m/s
    check_plausible(driven([5], [3]))
    with pytest.raises(
        InputError, match=r"log 'log', image 2 \(counted from 0\): 2\.5 s after the one before; at most 2"
    ):
        check_plausible(driven([0, 1, 3.5], [0, 1, 2]))
    with pytest.raises(
        InputError, match=r"f\.csv: log 'log', image 1 .*: 8 m from the one before, 0\.1 s later; .* 70"
    ):
        check_plausible(driven([0, 0.1, 0.2], [0, 8, 8]), file="f.csv")
    limits = LogLimits(longest_gap_s=3, greatest_speed_mps=math.inf)
    check_plausible(driven([0, 1, 3.5], [0, 1000, 2]), limits)
    # From log to log there is neither gap nor jump.
    check_plausible(made_logs({"a": (True, straight(2)), "b": (True, straight(2, start=10**6))}))
    fast = replace(
        made_logs({"a": (True, straight(2)), "b": (True, straight(2))}), time_s=np.array([0, 0.1, 50, 50.1])
    )
    check_plausible(fast, LogLimits(longest_gap_s=0.2))


def test_cutting_by_hand():
    # 10 s at one image a second: three pieces of 10/3 s, from 0, 3.33 and 6.67 s.
    drive = made_logs({"d": (True, straight(11)), "e": (False, straight(2))}, [(4, 3, 3)])
    cut = windows(drive, 3.0)
    assert cut.names == ("d/1", "d/2", "d/3", "e")
    assert cut.positive.tolist() == [True, True, True, False]
    assert cut.image_log.tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3]
    assert cut.person_image.tolist() == [4]
    assert windows(drive, 11.0).names == windows(drive, 5.1).names == ("d", "e")


def test_a_stretch_without_images_gives_no_piece():
    cut = windows(driven([0, 1, 2, 8, 9], [0, 1, 2, 8, 9]), 3.0)
    assert cut.names == ("log/1", "log/3")
    assert cut.image_log.tolist() == [0, 0, 0, 1, 1]


def test_names_of_pieces_that_are_taken():
    logs = made_logs({"d": (True, straight(11)), "d/2": (True, straight(2))})
    with pytest.raises(InputError, match="name of another log, 'd/2'"):
        windows(logs, 3.0)


@given(st.lists(st.lists(st.floats(0.05, 2), max_size=20), min_size=1, max_size=3), st.floats(0.1, 20))
def test_cutting_keeps_every_image(gaps, length):
    times = [np.concatenate([[0.0], np.cumsum(each)]) for each in gaps]
    parts = [driven(time, time) for time in times]
    logs = Logs(
        tuple(map(str, range(len(parts)))),
        [True] * len(parts),
        np.repeat(np.arange(len(parts)), [len(time) for time in times]),
        np.concatenate(times),
        np.concatenate([part.position_m for part in parts]),
        None,
        np.zeros(0, np.int64),
        np.zeros((0, 2)),
    )
    cut = windows(logs, length)
    assert cut.image_count == logs.image_count
    # Every piece belongs to the log of its name, and two neighbours are never shorter than one piece together.
    for image, log in enumerate(cut.image_log.tolist()):
        assert cut.names[log].partition("/")[0] == logs.names[logs.image_log[image]]
    for number, time in enumerate(times):
        pieces = sum(name.partition("/")[0] == str(number) for name in cut.names)
        assert pieces <= max(1, (time[-1] - time[0]) / length * (1 + 1e-12))


def test_positive_by_path():
    logs = made_logs(
        {"ahead": (False, straight(3)), "beside": (True, straight(3)), "empty": (True, straight(3))},
        [(0, 9, 1), (3, 9, 2.5), (5, -5, 0)],
    )
    assert positive_by_path(logs, 2.0, PathSettings()).positive.tolist() == [True, False, False]
    assert positive_by_path(logs, 3.0, PathSettings()).positive.tolist() == [True, True, False]
    assert "control radius of 3 m" in positive_by_path(logs, 3.0, PathSettings()).remarks[-1]


@given(random_logs(), st.sampled_from([1.0, 2.0, 4.0]))
def test_a_larger_radius_makes_more_logs_positive(logs, radius):
    headed = replace(logs, heading_rad=np.zeros(logs.image_count))
    small, large = (positive_by_path(headed, each, PathSettings()).positive for each in (radius, 1.5 * radius))
    assert (small <= large).all()


def test_a_field_of_view():
    # Heading north at the origin: within 45 degrees and 10 m.
    logs = made_logs(
        {"log": (True, [(0, 0)])},
        [(0, 0, 5), (0, 5, 0), (0, 3, 4), (0, 0, -5), (0, 0, 11), (0, math.nan, math.nan)],
        [(0, 1, 0, 10), (0, 2, -5, 4)],
        headings=[math.pi / 2],
        person_box_2d=np.zeros((6, 4)),
    )
    seen = in_view(logs, math.pi / 4, 10)
    assert seen.person_m[:2].tolist() == [[0, 5], [3, 4]]
    assert np.isnan(seen.person_m[2]).all()  # not localized: nobody knows whether it is in view
    assert len(seen.person_m) == len(seen.person_box_2d) == 3
    assert seen.source("a").strength.tolist() == [1]
    assert seen.remarks == ("only what lies within 45 degrees of the heading and 10 m is looked at",)
    assert len(in_view(logs, math.pi).person_m) == 6


def test_a_field_of_view_looks_across_the_cut_of_angles():
    # Heading almost west (179 degrees); a person 5 degrees to the left, at -176 degrees.
    turn = math.radians(-176)
    logs = made_logs({"log": (True, [(0, 0)])}, [(0, math.cos(turn), math.sin(turn))], headings=[math.radians(179)])
    assert len(in_view(logs, math.radians(5.1)).person_m) == 1
    assert len(in_view(logs, math.radians(4.9)).person_m) == 0


def test_no_field_of_view():
    with pytest.raises(UsageError, match="needs the headings"):
        in_view(HAND, 1.0)
