"""ASAM OpenLABEL 1.0.0: objects with rectangles and cuboids, by frame (openlabel_json_schema-v1.0.0.json).

    {"openlabel": {"objects": {UID: {"name", "type"}},
      "coordinate_systems": {NAME: {"type", "parent", "pose_wrt_parent"}},
      "frames": {"0": {"objects": {UID: {"object_data": {"bbox": [{"name", "val"}], "cuboid": [{"name", "val",
        "coordinate_system"}], "num": [{"name", "val"}]}}}, "frame_properties": {"transforms": ...}}}}}

A `bbox` is centre x, y, width, height in pixels; a `cuboid` is x, y, z, then a quaternion x, y, z, w or angles
about x, y and z (applied in this order), then its extent along x, y, z. The class is the object's `type`. Cuboids
are taken into the coordinate system of type `local_cs`, the vehicle (x forward, y left, z up), by poses and the
transforms of the frame; without a coordinate system they stand in it. A file is a sequence where there are several;
one without `frames` is a frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.errors import InputError, Place, shown
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.distances import Motion, rotations
from verifier.perception.detections.gathered import Gathered, gathered_set
from verifier.perception.detections.sources import Member, Reading, decoded_json
from verifier.perception.detections.tablefiles import BOX_3D

LOCAL = ("local_cs", "local")


def openlabel(
    annotations: str | Path,
    detections: str | Path,
    reading: Reading | None = None,
    *,
    columns: Mapping[str, str] | None = None,
) -> DetectionSet:
    """JSON files, or folders or zip archives of them. Attributes of annotations: `num` and `boolean` of the object
    or its box, and `track`, the object; `columns` says which of these is `distance_m`, and of detections which is
    `score`.

    Raises:
        InputError: a file cannot be read, with its JSON pointer; see also `sources.IGNORABLE`.
    """
    labels = Gathered.of(annotations, ".json", _read)
    results = Gathered.of(detections, ".json", _read, scored=True)
    return gathered_set("openlabel", labels, results, reading, columns)


def _read(gathered: Gathered, part: int, member: Member, drive: str) -> None:
    _File(gathered, part, member, drive).read()


@dataclass
class _File:
    """One file: where its objects go, and the cuboids as they stand in it."""

    gathered: Gathered
    part: int
    member: Member
    drive: str
    poses: dict[Any, Floats] = field(default_factory=dict)
    cuboids: list[tuple[int, list[float], Floats]] = field(default_factory=list)
    systems: Mapping[str, Any] = field(default_factory=dict)

    def read(self) -> None:
        """Gather frames and objects."""
        root = self.table(decoded_json(self.member.raw, self.member.name), "openlabel", "")
        known = self.table(root, "objects", "/openlabel", {})
        self.systems = self.table(root, "coordinate_systems", "/openlabel", {})
        if not root.get("frames"):
            self.objects(known, known, ("", self.member.stem), "/openlabel/objects", {})
        frames = self.table(root, "frames", "/openlabel") if root.get("frames") else {}
        for name in sorted(frames, key=self.number):
            at = f"/openlabel/frames/{name}"
            key = self.drive, f"{self.number(name):06d}"
            frame = self.table(frames, name, "/openlabel/frames")
            properties = self.table(frame, "frame_properties", at, {})
            transforms = self.table(properties, "transforms", f"{at}/frame_properties", {})
            self.objects(self.table(frame, "objects", at, {}), known, key, f"{at}/objects", transforms)
        self.place_cuboids()

    def objects(
        self, listed: Mapping[str, object], known: Mapping[str, Any], key: tuple[str, str], at: str, moves: Any
    ) -> None:
        self.gathered.frame(*key, Place(self.gathered.path))
        for uid in listed:
            if not isinstance(known.get(uid), dict) or not isinstance(known[uid].get("type"), str):
                raise self.fail(f"{at}/{uid}", f"no object {shown(uid)} with a type under /openlabel/objects")
            data = self.table(self.table(listed, uid, at), "object_data", f"{at}/{uid}", {})
            where = f"{at}/{uid}/object_data"
            shapes = {kind: self.one(data, kind, where) for kind in ("bbox", "cuboid")}
            if not any(shapes.values()):
                continue
            values: dict[str, object] = {"class": known[uid]["type"], "sequence": key[0], "frame": key[1]}
            values["track"] = f"{self.drive}/{uid}"
            if shapes["bbox"]:
                x, y, width, height = self.numbers(shapes["bbox"], (4,), f"{where}/bbox/0")
                values |= {"x1": x - width / 2, "y1": y - height / 2, "x2": x + width / 2, "y2": y + height / 2}
            if shapes["cuboid"]:
                numbers = self.numbers(shapes["cuboid"], (9, 10), f"{where}/cuboid/0")
                pose = self.pose(shapes["cuboid"].get("coordinate_system"), moves, f"{where}/cuboid/0")
                self.cuboids.append((len(self.gathered.rows), numbers, pose))
            told = dict(self.attributes(data))
            for shape in shapes.values():
                told |= dict(self.attributes(shape.get("attributes")))
            self.gathered.add(self.part, len(self.gathered.rows) + 1, where, values, told)

    def one(self, data: Mapping[str, object], kind: str, at: str) -> dict[str, object]:
        listed = data.get(kind) or []
        if not isinstance(listed, list) or not all(isinstance(value, dict) for value in listed):
            raise self.fail(f"{at}/{kind}", "expected a list of objects")
        if len(listed) > 1:
            hint = "one box of an object in a frame is read: leave one camera or one kind in the file"
            raise InputError(f"{len(listed)} of one object", Place(self.member.name, path=f"{at}/{kind}"), hint)
        return listed[0] if listed and listed[0].get("val") is not None else {}

    def numbers(self, shape: Mapping[str, Any], lengths: tuple[int, ...], at: str) -> list[float]:
        values = shape["val"]
        fine = isinstance(values, list) and len(values) in lengths
        if not fine or not all(type(value) in (int, float) and abs(value) < 1e300 for value in values):
            raise self.fail(f"{at}/val", f"expected {' or '.join(map(str, lengths))} numbers, got {shown(values)}")
        return [float(number) for number in values]

    @staticmethod
    def attributes(data: Any) -> Iterator[tuple[str, Any]]:
        for kind in ("num", "boolean"):
            listed = data.get(kind) if isinstance(data, dict) else None
            for entry in listed if isinstance(listed, list) else ():
                if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                    yield entry["name"], entry.get("val")

    def pose(self, system: Any, moves: Mapping[str, object], at: str) -> Floats:
        """(4, 4) from a coordinate system into that of the vehicle, at a frame."""
        local = [
            name for name, system in self.systems.items() if isinstance(system, dict) and system.get("type") in LOCAL
        ]
        if system is None or [system] == local:
            return np.eye(4)
        if not isinstance(system, str):
            raise self.fail(f"{at}/coordinate_system", f"expected a name, got {shown(system)}")
        key = (system, str(moves))
        if key not in self.poses:
            reached = {system: np.eye(4)}
            edges = dict(self.edges(moves))
            while len(local) == 1 and local[0] not in reached:
                further = [(b, m @ reached[a]) for (a, b), m in edges.items() if a in reached and b not in reached]
                if not further:
                    break
                reached |= dict(further)
            if len(local) != 1 or local[0] not in reached:
                told = f"the coordinate system {shown(system)} has no pose that leads to the vehicle's"
                hint = f"a coordinate system of type 'local_cs' is the vehicle; there are {len(local)}"
                raise InputError(told, Place(self.member.name, path=at), hint)
            self.poses[key] = reached[local[0]]
        return self.poses[key]

    def edges(self, moves: Mapping[str, object]) -> Iterator[tuple[tuple[Any, Any], Floats]]:
        """((from, to), (4, 4)) of poses, both ways; those of the frame after those that do not move."""
        given: list[tuple[Any, Any, Any, str]] = [
            (name, system.get("parent"), system.get("pose_wrt_parent"), f"/openlabel/coordinate_systems/{name}")
            for name, system in self.systems.items()
            if isinstance(system, dict) and system.get("pose_wrt_parent") is not None
        ]
        given += [
            (move.get("src"), move.get("dst"), move.get("transform_src_to_dst"), f"transforms/{name}")
            for name, move in moves.items()
            if isinstance(move, dict)
        ]
        for start, stop, data, at in given:
            matrix = _matrix(data)
            if matrix is None:
                wanted = "matrix4x4 of a rigid motion, or a translation with a quaternion"
                raise self.fail(at, f"expected {wanted}, got {shown(data)}")
            yield (start, stop), matrix
            yield (stop, start), np.asarray(np.linalg.inv(matrix), dtype=np.float64)

    def place_cuboids(self) -> None:
        """Write x to yaw in the vehicle's frame into the rows of cuboids."""
        if not self.cuboids:
            return
        centre = np.array([numbers[:3] for _, numbers, _ in self.cuboids])
        size = np.array([numbers[-3:] for _, numbers, _ in self.cuboids])
        heading = np.array([_turn(numbers[3:-3])[:, 0] for _, numbers, _ in self.cuboids])
        poses = np.array([pose for _, _, pose in self.cuboids])
        boxes = Motion(poses[:, :3, :3], poses[:, :3, 3]).boxes(centre, size, heading)
        for (row, _, _), box in zip(self.cuboids, boxes.tolist(), strict=True):
            self.gathered.rows[row] |= dict(zip(BOX_3D, box, strict=True))

    def number(self, name: str) -> int:
        if not (name.isdecimal() and len(name) < 12):
            raise self.fail("/openlabel/frames", f"expected the number of a frame, got {shown(name)}")
        return int(name)

    def table(self, holder: Any, key: str, at: str, missing: Any = None) -> Mapping[str, object]:
        content = holder.get(key, missing) if isinstance(holder, dict) else None
        if not isinstance(content, dict):
            raise self.fail(at or "/", f"expected an object with the object '{key}'")
        return content

    def fail(self, at: str, message: str) -> InputError:
        return InputError(message, Place(self.member.name, path=at))


def _turn(numbers: list[float]) -> Floats:
    """(3, 3) of a quaternion x, y, z, w, or of angles about x, y, z; NaN for a quaternion of zeros."""
    if len(numbers) == 3:
        return _euler("ZYX", numbers[::-1])
    x, y, z, w = numbers
    matrix: Floats = rotations(np.array([[w, x, y, z]]))[0]
    return matrix


def _euler(sequence: str, angles: Sequence[float]) -> Floats:
    """(3, 3) the product of the turns about these axes, from left to right."""
    from scipy.spatial.transform import Rotation  # takes long to load

    return np.asarray(Rotation.from_euler(sequence, angles).as_matrix(), dtype=np.float64)


def _matrix(data: Any) -> Floats | None:
    """(4, 4) of `transform_data`; None where it is no rigid motion: scaled, mirrored, or by columns."""
    if not isinstance(data, dict):
        return None
    try:
        if "matrix4x4" in data:
            matrix = np.array(data["matrix4x4"], dtype=np.float64).reshape(4, 4)
        else:
            matrix = np.eye(4)
            matrix[:3, 3] = data["translation"]
            if "quaternion" in data:
                x, y, z, w = map(float, data["quaternion"])
                matrix[:3, :3] = _turn([x, y, z, w])
            else:
                matrix[:3, :3] = _euler(data.get("sequence", "ZYX").upper(), data["euler_angles"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    turn = matrix[:3, :3]
    rigid = np.allclose(turn @ turn.T, np.eye(3), atol=1e-3) and np.linalg.det(turn) > 0
    return matrix if np.isfinite(matrix).all() and rigid and (matrix[3] == [0, 0, 0, 1]).all() else None
