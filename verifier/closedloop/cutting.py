"""Making logs out of longer drives: pieces of some seconds, which of them are positive, who is in view."""

import math
from dataclasses import replace

import numpy as np

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import InputError, UsageError, shown
from verifier.closedloop.logs import Logs
from verifier.closedloop.pathifier import PathSettings, pathified_distance, paths_of


def windows(logs: Logs, length_s: float) -> Logs:
    """Every log cut into as many pieces of equal duration, each at least `length_s` long, as it has room for.

    No image is left out. The path of a piece ends with the piece (and its straight extension): what stands further
    ahead is not in its way. A piece is positive when its log was; `positive_by_path` finds out again. A stretch
    without images gives no piece.

    Raises:
        InputError: the name of a piece is that of another log.
    """
    start = logs.time_s[logs.first_image[:-1]]
    duration = logs.time_s[logs.first_image[1:] - 1] - start
    pieces = np.maximum(np.floor(duration / length_s), 1).astype(np.int64)
    piece_s = np.where(duration > 0, duration, 1.0) / pieces
    log = logs.image_log
    number = np.minimum((logs.time_s - start[log]) // piece_s[log], pieces[log] - 1).astype(np.int64)
    base = np.cumsum(pieces) - pieces
    inhabited, image_log = np.unique(base[log] + number, return_inverse=True)
    parent = np.searchsorted(base, inhabited, side="right") - 1
    piece = inhabited - base[parent] + 1
    names = tuple(
        logs.names[of] if count == 1 else f"{logs.names[of]}/{at}"
        for of, count, at in np.column_stack([parent, pieces[parent], piece]).tolist()
    )
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"a piece would have the name of another log, {shown(twice)}", hint="rename that log")
    return replace(logs, names=names, positive=logs.positive[parent], image_log=image_log.reshape(-1))


def positive_by_path(logs: Logs, control_radius_m: float, settings: PathSettings) -> Logs:
    """The same logs, positive exactly where somebody blocks the path ahead in some image.

    For drives that nobody has sorted. Whether somebody is in the way depends on the control radius and on how the
    path goes on, so the same have to be used from here on.

    Raises:
        InputError: a path has no direction, see `paths_of`.
    """
    paths = paths_of(logs, settings)
    ahead = pathified_distance(paths, logs.person_image, logs.person_m, control_radius_m)
    positive = np.zeros(logs.log_count, dtype=np.bool_)
    positive[logs.image_log[logs.person_image[np.isfinite(ahead)]]] = True
    remark = (
        f"a log counts as positive where somebody is within the control radius of {control_radius_m:g} m of the path "
        "ahead in some image"
    )
    return replace(logs, positive=positive, remarks=(*logs.remarks, remark))


def in_view(logs: Logs, half_angle_rad: float, range_m: float = math.inf) -> Logs:
    """The logs with what a forward camera can see: people and detections within an angle of the heading and a range.

    What has no known point stays.

    Raises:
        UsageError: the logs have no headings.
    """
    if logs.heading_rad is None:
        raise UsageError("a field of view needs the headings of the images, which these logs do not have")
    heading = logs.heading_rad

    def seen(image: Ints, point_m: Floats) -> Mask:
        x, y = (point_m - logs.position_m[image]).T
        turn = np.arctan2(y, x) - heading[image]
        off = np.abs(np.arctan2(np.sin(turn), np.cos(turn)))
        return np.asarray(~((off > half_angle_rad) | (np.hypot(x, y) > range_m)))

    reach = "" if math.isinf(range_m) else f" and {range_m:g} m"
    remark = f"only what lies within {math.degrees(half_angle_rad):g} degrees of the heading{reach} is looked at"
    people = seen(logs.person_image, logs.person_m)
    return replace(
        logs,
        person_image=logs.person_image[people],
        person_m=logs.person_m[people],
        person_box_2d=None if logs.person_box_2d is None else logs.person_box_2d[people],
        detections={
            name: detection.take(seen(detection.image, detection.point_m))
            for name, detection in logs.detections.items()
        },
        remarks=(*logs.remarks, remark),
    )
