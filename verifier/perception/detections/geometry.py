"""Rigid motions between coordinate frames, and headings, for whole columns of boxes.

The ego frame is x forward, y left, z up. KITTI's camera frame is x right, y down, z forward (Geiger, Lenz, Stiller
and Urtasun 2013, "Vision meets robotics: the KITTI dataset", figure 3). nuScenes gives poses as a translation and
a quaternion w, x, y, z that take a point *from* the named frame *into* its parent (Caesar et al. 2020).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats

EGO_FROM_CAMERA = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
"""Turns camera axes (right, down, forward) into ego axes (forward, left, up)."""


@dataclass(frozen=True, eq=False)
class Motion:
    """n rigid motions: a point p of the source frame is R p + t in the target frame.

    `rotation` (n, 3, 3) and `translation` (n, 3) in metres. Names read `target_from_source`.
    """

    rotation: Floats
    translation: Floats

    def take(self, rows: NDArray[np.int64]) -> Motion:
        """The motions at `rows`, one per box."""
        return Motion(self.rotation[rows], self.translation[rows])

    def after(self, first: Motion) -> Motion:
        """The motion that applies `first` and then this one."""
        return Motion(self.rotation @ first.rotation, self._moved(first.translation))

    def inverse(self) -> Motion:
        """The motion back."""
        back = np.swapaxes(self.rotation, 1, 2)
        return Motion(back, -np.einsum("nij,nj->ni", back, self.translation))

    def _moved(self, points: Floats) -> Floats:
        moved: Floats = np.einsum("nij,nj->ni", self.rotation, points) + self.translation
        return moved

    def boxes(self, centre: Floats, size_lwh: Floats, heading: Floats) -> Floats:
        """(n, 7) boxes in the target frame, from their centre (n, 3), length, width and height (n, 3) and the
        direction of their length (n, 3) in the source frame. The yaw is that of the heading's projection on the
        target's ground plane: a small roll or pitch between the frames tilts a box, which seven numbers cannot say.
        """
        turned = np.einsum("nij,nj->ni", self.rotation, heading)
        yaw = np.arctan2(turned[:, 1], turned[:, 0])
        return np.column_stack([self._moved(centre), size_lwh, yaw])


def motion(translation: Floats, quaternion_wxyz: Floats) -> Motion:
    """Motions from translations (n, 3) and quaternions (n, 4); quaternions are normalised here."""
    return Motion(rotations(quaternion_wxyz), np.asarray(translation, dtype=np.float64))


def rotations(quaternion_wxyz: Floats) -> Floats:
    """(n, 3, 3) rotation matrices of quaternions w, x, y, z (n, 4), which need not be of length 1; NaN for zero."""
    q = np.asarray(quaternion_wxyz, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        w, x, y, z = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], axis=-1),
            np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], axis=-1),
            np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=-1),
        ],
        axis=-2,
    )


def camera_boxes(bottom_centre: Floats, size_hwl: Floats, rotation_y: Floats) -> tuple[Floats, Floats, Floats]:
    """Centre, length-width-height and heading, all still in the camera frame, of boxes in KITTI's convention.

    `bottom_centre` (n, 3) is the middle of the bottom face, `size_hwl` (n, 3) height, width and length, and
    `rotation_y` (n,) the turn about the downward axis: 0 points right, -pi/2 forward (readme of KITTI's object
    development kit).
    """
    height, width, length = size_hwl.T
    centre = bottom_centre - np.column_stack([np.zeros_like(height), height / 2, np.zeros_like(height)])
    heading = np.column_stack([np.cos(rotation_y), np.zeros_like(rotation_y), -np.sin(rotation_y)])
    return centre, np.column_stack([length, width, height]), heading


def ego_from_camera(count: int) -> Motion:
    """The change of axes from the camera to an ego frame whose origin is the camera, `count` times."""
    rotation = np.broadcast_to(EGO_FROM_CAMERA, (count, 3, 3))
    return Motion(rotation, np.zeros((count, 3)))
