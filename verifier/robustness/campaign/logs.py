"""Logs of a campaign: what every detector reports under every mutation, localized and put where the vehicle was.

With poses a log is a drive of their table. Without, every image is a log of its own, which the ROCs take and no other
metric does.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from verifier.base.arrays import Ints
from verifier.base.errors import InputError, Place, shown
from verifier.base.tables import Kind, read_table
from verifier.closedloop.cutting import positive_by_path
from verifier.closedloop.logs import Logs, check_plausible
from verifier.closedloop.pathifier import PathSettings
from verifier.closedloop.readers.from_sets import Drive, logs_of
from verifier.perception.detections.cameras import in_space, read_cameras
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.distances import Motion
from verifier.robustness.campaign.file import Campaign
from verifier.robustness.campaign.making import localized
from verifier.robustness.campaign.scenes import Scenes

POSES: dict[str, Kind] = {
    "frame": "text", "log": "text", "time_s": "number", "x_m": "number", "y_m": "number", "heading_rad": "number"
}  # fmt: skip


def campaign_logs(campaign: Campaign, scenes: Scenes, found: Mapping[str, Mapping[str, DetectionSet]]) -> Logs:
    """The logs, with a source DETECTOR or DETECTOR@CONDITION for each.

    Args:
        found: by detector and condition, "" the images as they were taken; of people alone, frames as in `scenes`.

    Raises:
        InputError: poses or calibration cannot be read or do not fit the images.
    """
    named = {
        f"{detector}@{condition}" if condition else detector: data
        for detector, conditions in found.items()
        for condition, data in conditions.items()
    }
    first = next(iter(named.values()))
    if not campaign.loop.asks_for_positions:
        order, log = np.arange(first.frame_count), np.arange(first.frame_count)
        zero = np.zeros(first.frame_count)
        still = Motion(np.broadcast_to(np.eye(3), (len(zero), 3, 3)), np.zeros((len(zero), 3)))
        sets = {name: _ordered(each, order, log, first.frame_name) for name, each in named.items()}
        remark = "every image is a log of its own: a vehicle was not driven"
        return logs_of(sets, Drive(zero, still, zero), (remark,), placed=False)
    path = campaign.root / str(campaign.poses)
    drive, order, log, names = read_poses(path, first.frame_name)
    deep = scenes.depth is not None and scenes.depth.folder is not None
    sets = {}
    for name, each in named.items():
        cameras = read_cameras(campaign.root / str(campaign.calibration), each)
        if deep:
            parts = {"annotations": each.annotations, "detections": each.detections}
            each = each.change(
                **{key: replace(part, distance_m=localized(scenes, part, None)) for key, part in parts.items()}
            )
        sets[name] = _ordered(in_space(each, cameras, deep=deep), order, log, names)
    how = "the median depth of its rectangle" if deep else "where its foot meets flat ground"
    logs = logs_of(sets, drive, (f"people and detections are placed by their rectangles: {how}",))
    check_plausible(logs, None, str(path))
    if campaign.loop.asks_for_radii:
        logs = positive_by_path(logs, campaign.loop.control_radius, PathSettings(campaign.loop.path_extension))
    return logs


def _ordered(data: DetectionSet, order: Ints, log: Ints, names: tuple[str, ...]) -> DetectionSet:
    """The frames in this order, and of these logs."""
    place = np.argsort(order)
    return data.change(
        sequences=names,
        frame_sequence=log.astype(np.int32),
        frame_name=tuple(data.frame_name[at] for at in order.tolist()),
        annotations=replace(data.annotations, frame=place[data.annotations.frame]),
        detections=replace(data.detections, frame=place[data.detections.frame]),
        ignored=None,
    )


def read_poses(path: Path, frames: tuple[str, ...]) -> tuple[Drive, Ints, Ints, tuple[str, ...]]:
    """The drive of the frames by log and time, their order, the log of each in that order, and the names of logs.

    Raises:
        InputError: unreadable, an image without a pose or with several, two images of a log at one time.
    """
    table = read_table(path, POSES)
    listed, of_log = ([table.texts[key][code] for code in table.columns[key].tolist()] for key in ("frame", "log"))
    row_of: dict[str, int] = {}
    for row, name in enumerate(listed):
        if row_of.setdefault(Path(name).stem, row) != row:
            raise InputError(f"the frame {shown(name)} occurs twice", Place(str(path)))
    rows = []
    for name in frames:
        if Path(name).stem not in row_of:
            raise InputError(f"the image {shown(name)} has no pose", Place(str(path)))
        rows.append(row_of[Path(name).stem])
    names = tuple(dict.fromkeys(of_log[row] for row in rows))
    log = np.array([names.index(of_log[row]) for row in rows])
    time, x, y, heading = (table.columns[name][rows] for name in ("time_s", "x_m", "y_m", "heading_rad"))
    order = np.lexsort((time, log))
    same = (np.diff(time[order]) <= 0) & (np.diff(log[order]) == 0)
    if same.any():
        name = frames[int(order[int(same.argmax()) + 1])]
        raise InputError(f"the image {shown(name)} has the time of another one of its log", Place(str(path)))
    cos, sin = np.cos(heading[order]), np.sin(heading[order])
    turn = np.zeros((len(order), 3, 3))
    turn[:, 0, 0], turn[:, 0, 1], turn[:, 1, 0], turn[:, 1, 1], turn[:, 2, 2] = cos, -sin, sin, cos, 1
    place = np.column_stack([x[order], y[order], np.zeros(len(order))])
    return Drive(time[order], Motion(turn, place), heading[order]), order, log[order], names
