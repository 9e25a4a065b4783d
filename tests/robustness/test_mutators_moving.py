"""Rotation and truncation with boxes and depth moving along, and what a frame is."""

import itertools
import math

import numpy as np
import plain_mutators as plain
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_mutators import noise

from verifier.base.errors import InputError
from verifier.robustness.mutators.frames import LONGEST_SIDE, Frame, checked_depth
from verifier.robustness.mutators.geometric import rotate, rotate_frame, truncate_frame

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")

ROOT_2 = math.sqrt(2)


def numbered_depth(height, width):
    return 1.0 + np.arange(float(height * width)).reshape(height, width)


def frame(height=8, width=8, boxes=None, depth=True):
    return Frame(noise(height, width), numbered_depth(height, width) if depth else None, boxes)


# Rotation


@pytest.mark.parametrize("size", [(8, 8), (7, 7), (1, 1), (70, 70)])
def test_quarter_turns_are_exact(size):
    image = noise(*size)
    for quarters in (-4, -3, -1, 0, 1, 2, 3, 4):
        np.testing.assert_array_equal(rotate(image, 90 * quarters), np.rot90(image, quarters))


@pytest.mark.parametrize("size", [(8, 8), (5, 12), (64, 3), (65, 2)])
def test_no_turn_is_the_identity_and_half_a_turn_exact(size):
    image = noise(*size)
    for turn in (0, 360, -720):
        np.testing.assert_array_equal(rotate(image, turn), image)
    np.testing.assert_array_equal(rotate(image, 180), image[::-1, ::-1])


def test_an_eighth_of_a_turn_by_hand():
    # Pixel (right of the centre) comes from (cos 45, sin 45) right of and below it: 0.7071, in 32nds 23/32 = 0.71875.
    # There the lower right corner, 200, weighs 0.71875^2 = 0.5166: 103.3. Counter-clockwise: it moved up.
    # The corners come from sqrt 2 = 1.4142 away, 45/32: 1 - 13/32 of the neighbour that the corner is not.
    image = np.zeros((3, 3, 3), np.uint8)
    image[2, 2] = 200
    image[1, 1] = 50
    made = rotate(image, 45)[..., 0]
    # Centre: itself. Right: also (1 - 0.71875)^2 = 0.0791 of 50. Above, below and left: 0.0791 of 50 = 3.96.
    assert made[1, 1] == 50
    assert made[1, 2] == 107  # 103.32 + 3.96 = 107.28
    assert [made[0, 1], made[1, 0], made[2, 1]] == [4, 4, 4]
    assert [made[0, 0], made[0, 2], made[2, 0], made[2, 2]] == [0, 0, 0, 0]


@pytest.mark.parametrize("angle", [0.3, 5, -20, 20, 45, 77.7, 133, -200])
@pytest.mark.parametrize("size", [(8, 8), (13, 6), (70, 9)])
def test_rotation_is_bilinear_interpolation_at_positions_in_32nds(angle, size):
    # A position within 1/65536 of the middle between two of the grid may go to either, in each direction.
    image = noise(*size)
    sides = [lambda place, bias=bias: plain.to_32nds(place + bias) for bias in (-1 / 65536, 1 / 65536)]
    off = [
        np.abs(rotate(image, angle) - plain.rotation(image, angle, *pair)) for pair in itertools.product(sides, sides)
    ]
    assert np.min(off, axis=0).max() <= 0.51
    assert (off[0] == off[3]).mean() > 0.97


@pytest.mark.parametrize("angle", [3, -20, 61.8])
def test_rotation_is_near_the_turned_scene(angle):
    # Positions are off by at most 1/64 + 1/65536 in each direction, so the value by as much of the step to a
    # neighbour in that direction: here 6 and 4 levels. In the middle, where no black comes in.
    y, x = np.mgrid[:24, :24]
    image = np.repeat((6 * x + 4 * y)[..., np.newaxis], 3, axis=2).astype(np.uint8)
    exact = plain.rotation(image, angle, float, float)
    off = np.abs(rotate(image, angle) - exact)[8:16, 8:16]
    assert off.max() <= 0.5 + (6 + 4) * (1 / 64 + 1 / 65536) + 0.01


def test_boxes_turn_with_what_they_hold():
    # 90 degrees about (4, 4): (x, y) becomes (y, 8 - x). The box 1..3 x 2..6 becomes 2..6 x 5..7.
    image = np.zeros((8, 8, 3), np.uint8)
    image[2:6, 1:3] = 255
    turned = rotate_frame(Frame(image, boxes=np.array([[1.0, 2, 3, 6]])), 90)
    assert turned.boxes.tolist() == [[2, 5, 6, 7]]
    assert (turned.pixels[5:7, 2:6] == 255).all()
    assert turned.pixels.sum() == image.sum()


def test_turned_boxes_by_hand():
    # About (4, 4) by 45 degrees: (a, b) from the centre becomes ((a + b), (b - a)) / sqrt 2. The box 3..5 x 3..5: a
    # square on its corner, 4 -+ sqrt 2. The box 0..2 x 0..2: a + b from -8 to -4, b - a from -2 to 2, so x from
    # -1.66, cut to 0, to 4 - 2 sqrt 2, and y = 4 -+ sqrt 2.
    boxes = np.array([[3.0, 3, 5, 5], [0, 0, 2, 2]])
    turned = rotate_frame(frame(boxes=boxes), 45)
    np.testing.assert_allclose(
        turned.boxes,
        [[4 - ROOT_2, 4 - ROOT_2, 4 + ROOT_2, 4 + ROOT_2], [0, 4 - ROOT_2, 4 - 2 * ROOT_2, 4 + ROOT_2]],
        atol=1e-12,
    )
    assert turned.kept.tolist() == [0, 1]


def test_boxes_that_leave_the_image_are_left_out():
    # 8 x 2, turned by 90 degrees about (4, 1): the left end 0..1 goes to y = 1 + 3..4, below the image; the middle
    # 3..5 to x = 3..5, y = 0..2.
    turned = rotate_frame(frame(2, 8, np.array([[0.0, 0, 1, 2], [3, 0, 5, 2]])), 90)
    assert turned.boxes.tolist() == [[3, 0, 5, 2]]
    assert turned.kept.tolist() == [1]
    assert rotate_frame(turned, 10).kept.tolist() == [1]  # still counted as in the first frame


@given(st.floats(-400, 400), st.integers(0, 5), st.integers(0, 5), st.integers(1, 3), st.integers(1, 3))
def test_a_turned_box_holds_the_turned_pixels(angle, left, top, wide, tall):
    # What is not black is interpolated from a pixel of the box whose centre is less than 1, and 1/64, away in each
    # direction, so less than 1/2 + 1/64 outside the box; after turning, less than sqrt 2 times that.
    image = np.zeros((9, 9, 3), np.uint8)
    image[top : top + tall, left : left + wide] = 255
    box = np.array([[left, top, left + wide, top + tall]], float)
    turned = rotate_frame(Frame(image, boxes=box), angle)
    row, column = np.nonzero(turned.pixels[..., 0])
    if len(turned.boxes):
        x0, y0, x1, y1 = turned.boxes[0]
        slack = ROOT_2 * (1 / 2 + 1 / 64 + 1 / 65536)
        assert (column + 0.5 >= x0 - slack).all()
        assert (column + 0.5 <= x1 + slack).all()
        assert (row + 0.5 >= y0 - slack).all()
        assert (row + 0.5 <= y1 + slack).all()


def test_depth_turns_with_the_nearest_pixel():
    whole = frame(6, 6)
    for quarters in range(4):
        turned = rotate_frame(whole, 90 * quarters)
        np.testing.assert_array_equal(turned.depth_m, np.rot90(whole.depth_m, quarters))
    # 45 degrees on 3 x 3: right of the centre comes from 0.71 right and below, nearest the corner (9); above it from
    # 0.71 right and above (3). The right upper corner comes from 1.41 to the right, beyond the edge: the edge's 6.
    turned = rotate_frame(frame(3, 3), 45).depth_m
    assert [turned[1, 1], turned[1, 2], turned[0, 1], turned[0, 2]] == [5, 9, 3, 6]


# Truncation


def test_truncation_by_hand():
    # A quarter of 8 columns on the left: 2; an eighth of 8 rows at the top: 1; half of them at the bottom: 4.
    whole = frame(boxes=np.array([[1.0, 0, 5, 5], [0, 0, 2, 8], [4, 2, 6, 3]]))
    cut = truncate_frame(whole, left=0.25, top=0.125, bottom=0.5)
    expected = np.zeros((8, 8, 3), np.uint8)
    expected[1:4, 2:8] = whole.pixels[1:4, 2:8]
    np.testing.assert_array_equal(cut.pixels, expected)
    assert cut.boxes.tolist() == [[2, 1, 5, 4], [4, 2, 6, 3]]
    assert cut.kept.tolist() == [0, 2]
    np.testing.assert_array_equal(cut.depth_m, whole.depth_m)


def test_lost_columns_are_whole_and_ties_go_to_the_even_number():
    # Of 8: 0.3 is 2.4, so 2; 0.3125 is 2.5, so 2; 0.4375 is 3.5, so 4.
    for share, left in ((0.3, 6), (0.3125, 6), (0.4375, 4)):
        pixels = truncate_frame(frame(), right=share).pixels
        assert pixels[:, :left].any(axis=(0, 2)).all()
        assert not pixels[:, left:].any()


def test_no_truncation_is_the_identity():
    whole = frame(boxes=np.array([[1.0, 0, 5, 5]]))
    cut = truncate_frame(whole)
    np.testing.assert_array_equal(cut.pixels, whole.pixels)
    np.testing.assert_array_equal(cut.boxes, whole.boxes)


@pytest.mark.parametrize("given_", [{"left": 0.5, "right": 0.5}, {"top": 1}])
def test_truncations_that_leave_nothing_are_refused(given_):
    with pytest.raises(ValueError, match="nothing is left"):
        truncate_frame(frame(), **given_)


# Frames


def test_a_frame_without_boxes_or_depth_stays_so():
    for change in (
        lambda each: rotate_frame(each, 30),
        lambda each: truncate_frame(each, left=0.5),
    ):
        made = change(frame(depth=False))
        assert made.depth_m is None
        assert made.boxes is None
        assert made.kept is None


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"boxes": np.zeros((2, 3))}, r"boxes have shape \(2, 3\)"),
        ({"boxes": np.array([[0, 0, np.nan, 1.0]])}, "not finite"),
        ({"boxes": np.array([[3.0, 0, 1, 1]])}, "negative size"),
        ({"boxes": np.zeros((2, 4)), "kept": np.zeros(1, int)}, "2 boxes"),
        ({"kept": np.zeros(1, int)}, "goes with boxes"),
        ({"pixels": np.zeros((8, 8), np.uint8)}, r"expected pixels \(H, W, 3\) uint8, got uint8 of shape \(8, 8\)"),
        ({"pixels": np.zeros((8, 8, 4), np.uint8)}, "expected pixels"),
        ({"pixels": np.zeros((8, 8, 3), np.uint16)}, "expected pixels"),
        ({"pixels": np.zeros((0, 8, 3), np.uint8)}, "without pixels"),
        ({"pixels": [[[1, 2, 3]]]}, "got list"),
        ({"depth_m": np.ones((8, 8), bool)}, "depth in metres"),
        ({"depth_m": np.full((8, 8), "1")}, "depth in metres"),
    ],
)
def test_frames_that_are_none(given_, said):
    with pytest.raises(ValueError, match=said):
        Frame(**{"pixels": noise(8, 8), **given_})


def test_a_huge_image_is_refused_with_its_size():
    with pytest.raises(InputError, match=f"{LONGEST_SIDE + 1} x 1 pixels"):
        Frame(np.zeros((1, LONGEST_SIDE + 1, 3), np.uint8))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, -math.inf, 1e6])
def test_a_depth_that_is_none_is_named_with_its_place(bad):
    depth = np.full((8, 8), 10.0)
    depth[2, 5] = depth[7, 7] = bad
    with pytest.raises(InputError) as caught:
        checked_depth(depth, noise(8, 8))
    assert f"pixel (5, 2), counted from 0, is {bad:g} m" in str(caught.value)
    assert "2 of 64 pixels" in str(caught.value)
    assert "densify" in str(caught.value)


@pytest.mark.parametrize("shape", [(8, 9), (9, 8), (64,), (8, 8, 1), ()])
def test_depth_of_another_size_is_refused(shape):
    with pytest.raises(InputError, match="the image 8 x 8"):
        Frame(noise(8, 8), np.ones(shape))


def test_whole_numbers_are_depths():
    assert checked_depth(np.full((8, 8), 3, np.uint16), noise(8, 8)).dtype == np.float64
