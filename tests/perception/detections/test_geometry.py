"""Coordinate frames: hand-made boxes, and corners worked out the way the KITTI development kit does."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from verifier.perception.detections.distances import camera_boxes, ego_from_camera, motion, rotations


def ego_box(location, hwl, turn):
    parts = camera_boxes(np.array([location]), np.array([hwl]), np.array([turn]))
    return ego_from_camera(1).boxes(*parts)[0]


# A car 1.5 m high, 1.6 m wide, 4 m long whose bottom stands 1.65 m below the camera, 2 m to the right, 10 m ahead:
# its centre is 10 m ahead, 2 m to the right (y = -2) and 1.65 - 0.75 = 0.9 m below.
@pytest.mark.parametrize(
    ("turn", "yaw"),
    [
        (-math.pi / 2, 0.0),  # KITTI: -pi/2 looks along z, straight ahead
        (0.0, -math.pi / 2),  # along x of the camera: to the right, which is clockwise by a quarter turn
        (math.pi / 2, math.pi),  # towards the camera
        (math.pi, math.pi / 2),  # to the left
        (-math.pi / 4, -math.pi / 4),  # half ahead, half to the right
    ],
)
def test_a_car_by_hand(turn, yaw):
    found = ego_box([2.0, 1.65, 10.0], [1.5, 1.6, 4.0], turn)
    assert found[:6] == pytest.approx([10, -2, -0.9, 4.0, 1.6, 1.5])
    assert math.remainder(found[6] - yaw, 2 * math.pi) == pytest.approx(0, abs=1e-12)


def kitti_corners(location, hwl, turn):
    """The eight corners as in the development kit's `computeBox3D.m`, in the camera frame."""
    h, w, length = hwl
    x = np.array([1, 1, -1, -1, 1, 1, -1, -1]) * length / 2
    y = np.array([0, 0, 0, 0, -1, -1, -1, -1]) * h
    z = np.array([1, -1, -1, 1, 1, -1, -1, 1]) * w / 2
    c, s = math.cos(turn), math.sin(turn)
    turned = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]) @ np.array([x, y, z])
    return turned.T + location


def ego_corners(box):
    x, y, z, length, width, height, yaw = box
    signs = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
    local = signs * [length / 2, width / 2, height / 2]
    return local @ Rotation.from_euler("z", yaw).as_matrix().T + [x, y, z]


NUMBER = st.floats(-50, 50)
SIZE = st.floats(0.1, 10)


@given(st.tuples(NUMBER, NUMBER, NUMBER), st.tuples(SIZE, SIZE, SIZE), st.floats(-3.2, 3.2))
def test_the_eight_corners_are_those_of_the_development_kit(location, hwl, turn):
    camera = kitti_corners(np.array(location), hwl, turn)
    expected = np.column_stack([camera[:, 2], -camera[:, 0], -camera[:, 1]])
    found = ego_corners(ego_box(location, hwl, turn))
    gaps = np.linalg.norm(expected[:, None] - found[None], axis=2)
    assert gaps.min(axis=0).max() < 1e-9
    assert gaps.min(axis=1).max() < 1e-9


QUATERNION = st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: math.hypot(*q) > 0.1)


def test_rotations_by_hand():
    """None, half a turn about z, x to y to z, and 1 + 2i + 3j + 4k, each of another length; of nothing none."""
    found = rotations(np.array([[2, 0, 0, 0], [0, 0, 0, 3], [1, 1, 1, 1], [1, 2, 3, 4], [0, 0, 0, 0]]))
    assert found[0].tolist() == np.eye(3).tolist()
    assert found[1].tolist() == np.diag([-1, -1, 1]).tolist()
    assert found[2].tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert 15 * found[3] == pytest.approx(np.array([[-10, 2, 11], [10, -5, 10], [5, 14, 2]]))
    assert np.isnan(found[4]).all()


@given(QUATERNION)
def test_rotations_are_those_of_scipy(quaternion):
    w, x, y, z = quaternion
    assert rotations(np.array([quaternion]))[0] == pytest.approx(Rotation.from_quat([x, y, z, w]).as_matrix())


def test_a_quarter_turn_by_hand():
    # (cos 45, 0, 0, sin 45) turns x to y; then one metre is added along x.
    quarter = motion(np.array([[1.0, 0, 0]]), np.array([[math.sqrt(0.5), 0, 0, math.sqrt(0.5)]]))
    box = quarter.boxes(np.array([[2.0, 3, 4]]), np.array([[4.0, 2, 1]]), np.array([[1.0, 0, 0]]))
    assert box[0] == pytest.approx([-3 + 1, 2, 4, 4, 2, 1, math.pi / 2])


@given(QUATERNION, st.tuples(NUMBER, NUMBER, NUMBER), st.tuples(NUMBER, NUMBER, NUMBER))
def test_the_inverse_leads_back(quaternion, shift, point):
    a = motion(np.array([shift]), np.array([quaternion]))
    size, ahead = np.ones((1, 3)), np.array([[1.0, 0, 0]])
    back = a.inverse().boxes(a.boxes(np.array([point]), size, ahead)[:, :3], size, ahead)[:, :3]
    assert back[0] == pytest.approx(point, abs=1e-9)
