"""nuScenes: the official ground-truth tables and the official detection results (Caesar et al. 2020).

Boxes of the tables and of the results stand in the global frame: centre, size (width, length, height), quaternion
w, x, y, z. They are brought into the ego frame at the time of the sample's LIDAR_TOP key frame, as the
benchmark's own distances are (nuscenes-devkit, `eval/common/loaders.py`, `add_center_dist`).
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats
from verifier.base.errors import InputError, Place, shown
from verifier.perception.detections.assembly import Rows, assemble
from verifier.perception.detections.classmap import ClassMap, class_map
from verifier.perception.detections.columns import DetectionSet, Frames, codes, frames_at
from verifier.perception.detections.distances import Motion, motion, rotations
from verifier.perception.detections.sources import Elements, Reading, digest_record, elements, load_json, nested

CLASSES = (
    "barrier",
    "bicycle",
    "bus",
    "car",
    "construction_vehicle",
    "motorcycle",
    "pedestrian",
    "traffic_cone",
    "trailer",
    "truck",
)
OFFICIAL = (
    ("movable_object.barrier", "barrier"),
    ("vehicle.bicycle", "bicycle"),
    ("vehicle.bus.bendy", "bus"),
    ("vehicle.bus.rigid", "bus"),
    ("vehicle.car", "car"),
    ("vehicle.construction", "construction_vehicle"),
    ("vehicle.motorcycle", "motorcycle"),
    ("human.pedestrian.adult", "pedestrian"),
    ("human.pedestrian.child", "pedestrian"),
    ("human.pedestrian.construction_worker", "pedestrian"),
    ("human.pedestrian.police_officer", "pedestrian"),
    ("movable_object.trafficcone", "traffic_cone"),
    ("vehicle.trailer", "trailer"),
    ("vehicle.truck", "truck"),
)
LEFT_OUT = ("animal", "human.pedestrian.*", "movable_object.*", "static_object.*", "vehicle.emergency.*")
EGO = "ego frame at the LIDAR_TOP key frame: x forward, y left, z up"
LONGEST_STEP_S = 1.5


def official_classes() -> ClassMap:
    """The ten classes of the detection benchmark (nuscenes-devkit, `category_to_detection_name`); the other
    categories are left out."""
    names = [(name, name) for name in CLASSES]
    return class_map([*OFFICIAL, *names, *((pattern, "ignore") for pattern in LEFT_OUT)])


def nuscenes(tables: str | Path, results: str | Path, reading: Reading | None = None) -> DetectionSet:
    """The official tables in the folder `tables` (`v1.0-trainval`) and an official results file.

    Frames are the samples, named by their tokens, in the order of time within each scene. Without a class map
    the benchmark's ten classes are used. A split is chosen by naming its scenes in `reading.sequences`, or by
    ignoring `missing_frames`: then the frames are those that the results have an entry for. Attributes of
    annotations: `track`, `num_lidar_pts`, `num_radar_pts`, `num_points`, `visibility` (1 to 4) and `speed` (m/s
    over ground, from the annotations of the same object before and after, NaN if they are more than 1.5 s away).

    Raises:
        InputError: a table or the results cannot be read, with the JSON pointer; see also `sources.IGNORABLE`.
    """
    reading = reading or Reading()
    if reading.class_map is None:
        reading = replace(reading, class_map=official_classes())
    loaded = _Tables(Path(tables), str(tables))
    frames, index, ego_from_global = _samples(loaded)
    annotations = _annotations(loaded, index, ego_from_global)
    document, raw = load_json(results)
    detections, answered = result_rows(document, raw, str(results), index, ego_from_global)
    truth_record = {"role": "annotations", "name": Path(tables).name, "tables": loaded.digests}
    return assemble(
        "nuscenes",
        frames,
        annotations,
        detections,
        [truth_record, digest_record("detections", results, raw)],
        reading,
        CLASSES,
        answered=answered,
        answers=results,
        notes={"ego": EGO},
    )


def result_rows(
    document: Any, raw: bytes, file: str, index: Mapping[str, int], ego_from_global: Motion
) -> tuple[Rows, NDArray[np.bool_]]:
    """The detections of an official results document, and which frames (f,) it has an entry for.

    `index` gives the frame of a sample token and `ego_from_global` the motion of each frame. `line` is the position
    of a detection among all of the file, from 1.
    """
    if not isinstance(document, dict) or not isinstance(document.get("results"), dict):
        raise InputError("expected an object with the key 'results', an object of lists by sample token", Place(file))
    results: dict[str, Any] = document["results"]
    tokens = list(results)
    items, owner = nested(list(results.values()), file, "detections", lambda entry: f"/results/{tokens[entry]}")
    if raw.count(b'"sample_token"') != len(items):
        _check_unique_tokens(raw, file)
    of_token = frames_at(index, tokens)
    frame = of_token[owner]
    stated = items.texts("sample_token")
    for row, (token, own) in enumerate(zip(stated, [tokens[entry] for entry in owner.tolist()], strict=True)):
        if token != own:
            raise items.fail(row, "sample_token", f"expected the token of its entry, got {shown(token)}")
    rows = Rows.of(
        items,
        (frame, lambda row: f"sample {shown(tokens[int(owner[row])])}"),
        codes(items.texts("detection_name")),
        score=items.numbers("detection_score"),
        box_3d=global_boxes(items, ego_from_global, frame),
    )
    return rows, np.isin(np.arange(len(index)), of_token)


def global_boxes(items: Elements, ego_from_global: Motion, frame: NDArray[np.int64]) -> Floats:
    """(n, 7) boxes in the ego frame of each row's frame, from `translation`, `size` and `rotation`."""
    width, length, height = items.vectors("size", 3).T
    heading = rotations(items.vectors("rotation", 4))[:, :, 0]
    size = np.column_stack([length, width, height])
    return ego_from_global.take(frame).boxes(items.vectors("translation", 3), size, heading)


def _check_unique_tokens(raw: bytes, file: str) -> None:
    """Refuse a sample token that occurs twice: a JSON decoder keeps the last entry and says nothing."""

    def pairs(entries: list[tuple[str, Any]]) -> dict[str, object]:
        unique = dict(entries)
        if len(unique) != len(entries):
            keys = [key for key, _ in entries]
            twice = next(key for position, key in enumerate(keys) if key in keys[:position])
            raise InputError(f"the key {shown(twice)} occurs twice in one object", Place(file))
        return unique

    json.loads(raw, object_pairs_hook=pairs)


class _Tables:
    """The tables of one folder, decoded when they are asked for."""

    def __init__(self, folder: Path, shown_as: str) -> None:
        self.shown_as = shown_as
        self.folder = folder
        self.digests: dict[str, str] = {}

    def file(self, name: str) -> str:
        return f"{self.shown_as}/{name}.json"

    def table(self, name: str) -> Elements:
        document, raw = load_json(self.file(name))
        self.digests[name] = digest_record("annotations", name, raw)["sha256"]
        return elements(document, self.file(name), f"objects of the table '{name}'")

    def keyed(self, name: str) -> tuple[Elements, dict[str, int]]:
        """A table, and the row of each token."""
        table = self.table(name)
        table.texts("token")  # no number is one
        return table, table.index("token")


def _look_up(table: Elements, key: str, index: Mapping[str, int], other: str) -> NDArray[np.int64]:
    """The row of the table `other` that each element names under `key`."""
    names = table.texts(key)
    try:
        return np.fromiter(map(index.__getitem__, names), np.int64, len(names))
    except KeyError:
        row = next(row for row, name in enumerate(names) if name not in index)
        raise table.fail(row, key, f"no such token in the table '{other}': {shown(names[row])}") from None


def _samples(tables: _Tables) -> tuple[Frames, dict[str, int], Motion]:
    """The frames, the frame of each sample token, and the motion ego_from_global of each frame."""
    scenes, scene_index = tables.keyed("scene")
    sample, sample_index = tables.keyed("sample")
    if not len(sample):
        raise InputError("the table has no sample", Place(tables.file("sample")))
    scene = _look_up(sample, "scene_token", scene_index, "scene")
    order = np.lexsort((sample.whole("timestamp"), scene))
    tokens = sample.texts("token")
    names = tuple(tokens[row] for row in order)
    global_from_ego = _poses(tables, sample_index)
    frames = Frames(names, scene[order].astype(np.int32), tuple(scenes.texts("name")))
    return frames, {name: frame for frame, name in enumerate(names)}, global_from_ego.take(order).inverse()


def _poses(tables: _Tables, sample_index: Mapping[str, int]) -> Motion:
    """The motion global_from_ego at the LIDAR_TOP key frame of each sample, in the order of the table."""
    sensor, sensor_index = tables.keyed("sensor")
    calibrated, _ = tables.keyed("calibrated_sensor")
    lidar = np.array([channel == "LIDAR_TOP" for channel in sensor.texts("channel")], dtype=bool)
    used = lidar[_look_up(calibrated, "sensor_token", sensor_index, "sensor")]
    lidar_tokens = {token for token, yes in zip(calibrated.texts("token"), used, strict=True) if yes}
    every = tables.table("sample_data")
    flags = zip(every.values("is_key_frame"), every.texts("calibrated_sensor_token"), strict=True)
    rows = [row for row, (key_frame, token) in enumerate(flags) if key_frame and token in lidar_tokens]
    key_frames = Elements([every.items[row] for row in rows], every.file, every.what, lambda row: f"/{rows[row]}")
    sample = _look_up(key_frames, "sample_token", sample_index, "sample")
    count = np.bincount(sample, minlength=len(sample_index))
    if (count != 1).any():
        token = list(sample_index)[int((count != 1).argmax())]
        message = f"{count[(count != 1).argmax()]} LIDAR_TOP key frames of the sample {shown(token)}, expected one"
        raise InputError(message, Place(every.file))
    every_pose, pose_index = tables.keyed("ego_pose")
    pose = np.empty(len(sample_index), dtype=np.int64)
    pose[sample] = _look_up(key_frames, "ego_pose_token", pose_index, "ego_pose")
    used_poses = [every_pose.items[row] for row in pose.tolist()]
    pointer = [every_pose.pointer(row) for row in pose.tolist()].__getitem__
    return poses(Elements(used_poses, every_pose.file, every_pose.what, pointer))


def poses(items: Elements, name: str = "", suffix: str = "") -> Motion:
    """Motions from `translation` and `rotation`, with what stands before and behind these names; InputError."""
    place, turn = f"{name}translation", f"{name}rotation{suffix}"
    moves = motion(items.vectors(place, 3), items.vectors(turn, 4))
    fine = np.isfinite(np.column_stack([moves.translation, moves.rotation.reshape(len(items), 9)])).all(axis=1)
    if not fine.all():
        message = f"the pose of '{place}' and '{turn}' is not finite, or its quaternion is zero"
        raise items.fail(int(fine.argmin()), "", message)
    return moves


def camera_tables(folder: str | Path) -> tuple[Floats, Motion, dict[str, int]]:
    """The cameras of key frames: intrinsics (n, 3, 3), motions ego_from_camera, and the camera by the name of its
    image (`samples/CAM_FRONT/x.jpg`); a sample's token names its CAM_FRONT.

    Raises:
        InputError: a table cannot be read, with the JSON pointer.
    """
    tables = _Tables(Path(folder), str(folder))
    sensor, sensor_index = tables.keyed("sensor")
    calibrated, calibrated_index = tables.keyed("calibrated_sensor")
    channel = np.array(sensor.texts("channel"), dtype=object)[
        _look_up(calibrated, "sensor_token", sensor_index, "sensor")
    ]
    every = tables.table("sample_data")
    own = _look_up(every, "calibrated_sensor_token", calibrated_index, "calibrated_sensor")
    matrices = calibrated.values("camera_intrinsic", [])
    seen = [row for row, flag in enumerate(every.values("is_key_frame")) if flag and "CAM" in channel[own[row]]]
    intrinsics = np.empty((len(seen), 3, 3))
    for at, row in enumerate(seen):
        try:
            intrinsics[at] = np.array(matrices[own[row]], dtype=np.float64).reshape(3, 3)
        except (TypeError, ValueError, OverflowError):
            raise calibrated.fail(int(own[row]), "camera_intrinsic", "expected 3 rows of 3 numbers") from None
    files, samples = every.texts("filename", ""), every.texts("sample_token")
    names = {files[row]: at for at, row in enumerate(seen) if files[row]}
    names |= {samples[row]: at for at, row in enumerate(seen) if channel[own[row]] == "CAM_FRONT"}
    pose = motion(calibrated.vectors("translation", 3), calibrated.vectors("rotation", 4)).take(own[seen])
    return intrinsics, pose, names


def _annotations(tables: _Tables, index: Mapping[str, int], ego_from_global: Motion) -> Rows:
    category, category_index = tables.keyed("category")
    instance, instance_index = tables.keyed("instance")
    table, annotation_index = tables.keyed("sample_annotation")
    tokens = table.texts("sample_token")
    frame = frames_at(index, tokens)
    track = _look_up(table, "instance_token", instance_index, "instance")
    names = tuple(category.texts("name"))
    lidar, radar = table.numbers("num_lidar_pts"), table.numbers("num_radar_pts")
    visible = [float(token) if token.isdecimal() else np.nan for token in table.texts("visibility_token", "")]
    return Rows.of(
        table,
        (frame, lambda row: f"sample {shown(tokens[row])}"),
        (_look_up(instance, "category_token", category_index, "category")[track], names),
        box_3d=global_boxes(table, ego_from_global, frame),
        attributes={
            "track": track,
            "num_lidar_pts": lidar,
            "num_radar_pts": radar,
            "num_points": lidar + radar,
            "visibility": np.array(visible),
            "speed": _speeds(tables, table, annotation_index, tokens),
        },
    )


def _speeds(tables: _Tables, table: Elements, index: Mapping[str, int], tokens: list[str]) -> Floats:
    """(n,) m/s over ground from the neighbours in time, as the devkit's `box_velocity`; NaN without a neighbour."""
    sample, _ = tables.keyed("sample")
    times = dict(zip(sample.texts("token"), (sample.whole("timestamp") / 1e6).tolist(), strict=True))
    time = np.fromiter((times.get(token, np.nan) for token in tokens), np.float64, len(tokens))
    here = np.arange(len(table))
    before, after = (
        np.fromiter((index.get(text, row) for row, text in enumerate(table.texts(key, ""))), np.int64, len(table))
        for key in ("prev", "next")
    )
    steps = np.where((before != here) & (after != here), 2, 1)
    centre = table.vectors("translation", 3)
    duration = time[after] - time[before]
    moved = np.linalg.norm((centre[after] - centre[before])[:, :2], axis=1)
    speed: Floats = moved / np.where((duration > 0) & (duration <= LONGEST_STEP_S * steps), duration, np.nan)
    return speed
