"""Distances from depth maps, for annotations that are rectangles in an image (COCO, MOTChallenge, KITTI).

The distance of an annotation is the **median over the rows of its rectangle of the median depth of each row**: the
localizer of Pezzementi et al. 2021 (Field Robotics), section 6.1.1. Depth is measured along the optical axis of the
camera, and to the visible surface: a car's centre lies about half a car further away.

The unit of the maps is checked by what it says of the camera: a rectangle h pixels tall at depth Z, in an image W
wide, of an object H metres tall, means a focal length of h Z / (H W) widths. H is the height of the annotation's own
box, else the usual one of its class; the median has to lie in `FOCAL_LENGTHS`.

The rule was made for dense maps. In a map of projected LiDAR points a row with one point weighs as much as a full
one, so that background seen beside and above an object counts for more: in KITTI, 39 m for a car labelled at 33 m.
"""

import hashlib
import io
import math
import re
import struct
import tokenize
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import read_bytes
from verifier.base.libraries import library
from verifier.base.numbers import fixed
from verifier.base.words import listed
from verifier.perception.detections.columns import Boxes, DetectionSet, ignore_hint, joined
from verifier.perception.detections.distances import LARGEST_M
from verifier.perception.detections.sources import Reading
from verifier.perception.settings import IMAGE_SUFFIXES

MAP_SUFFIXES = (".npy", ".png", ".pfm")
UNITS_PER_M = 256.0
"""Of a 16-bit depth map, unless another scale is given: that of KITTI."""
FAULT = "unknown_depth"
USUAL_HEIGHT_M = {
    "ped": 1.7, "pedestrian": 1.7, "person": 1.7, "cyclist": 1.75, "rider": 1.75, "car": 1.5, "truck": 3.2,
    "bus": 3.2,
}  # fmt: skip
FOCAL_LENGTHS = (0.35, 1.9)
"""Of a camera in widths of its image: fields of view of 110 to 29 degrees."""
FEWEST_KNOWN = 5
"""Objects of known height from which the unit of depths is judged."""
# What numpy and Pillow raise on bytes that are no array or no image.
DAMAGED = (
    ValueError, TypeError, OSError, EOFError, OverflowError, MemoryError, RecursionError, SyntaxError,
    tokenize.TokenError, struct.error, zlib.error,
)  # fmt: skip


def with_depth(
    data: DetectionSet,
    folder: str | Path,
    *,
    scale: float = UNITS_PER_M,
    ignore: tuple[str, ...] = (),
    any_focal_length: bool = False,
    part: bool = False,
) -> DetectionSet:
    """The set with the distance of every annotation taken from depth maps, one for each frame that has annotations.

    Detections that are rectangles and have no distance yet get theirs in the same way where there is a map; those of
    unknown depth or outside the image get none.

    The map of a frame is the file `NAME.npy` (floating-point metres), `NAME.pfm` (the same, as the tools of stereo
    vision write it; infinite where unknown) or `NAME.png` (16-bit grey, metres times `scale`, as KITTI writes them)
    under `folder`; 0 is an unknown depth. NAME is the name of the frame, with
    or without the suffix of an image, and its separators `/` are sub-folders. A rectangle covers every pixel that it
    touches and is cut to the image; pixels of unknown depth, and rows without any known depth, are left out of the
    medians.

    With "unknown_depth" in `ignore`, annotations without any known depth become don't-care regions, counted in
    `origin["ignored"]`. `origin["distances"]` records the maps; its SHA-256 is that of the lines
    "<SHA-256 of the file>  <name>" in the order of the names. Of a `part` it has what `whole_depth` needs instead.

    Raises:
        InputError: a map is missing, unreadable, of another kind, or holds a depth that is none; a rectangle lies
            outside its image, or has no known depth; depths do not fit known heights, unless `any_focal_length`.
        UsageError: the annotations have no rectangles, `scale` is not positive, `ignore` names an unknown fault.
    """
    Reading(ignore=ignore)
    _check_scale(scale)
    boxes = data.annotations
    if boxes.box_2d is None and len(boxes):
        raise UsageError("depth maps give distances to rectangles in an image, and the annotations have none")
    detections, digests = data.detections, []
    away, reported = np.full(len(boxes), np.nan), np.full(len(detections), np.nan)
    width = np.full(len(boxes), np.nan)
    placed = detections.box_2d is not None and detections.distance_m is None
    for name, path, rows, seen in _maps(data, Path(folder), placed):
        raw = read_bytes(path)
        digests.append(f"{hashlib.sha256(raw).hexdigest()}  {path.relative_to(folder).as_posix()}\n")
        depth = _depth(raw, path, scale)
        width[rows] = depth.shape[1]
        for row in rows.tolist():
            away[row] = _annotation_depth(depth, data, row, name)
        for row in seen.tolist():
            reported[row] = box_depth(depth, np.asarray(detections.box_2d)[row])
    record: dict[str, object] = {
        "role": "depth",
        "name": Path(folder).name,
        "maps": digests,
        "focal_lengths": _focal_lengths(data, away, width),
        "scale": scale,
        "rule": "median of the medians of rows",
        "unknown": int(np.isnan(away).sum()),
    }
    changes: dict[str, object] = {"annotations": replace(boxes, distance_m=away)}
    if placed:
        changes["detections"] = replace(detections, distance_m=reported)
        record["unknown_of_detections"] = int(np.isnan(reported).sum())
    record = record if part else whole_depth(record, str(folder), any_focal_length)
    return _known(data.change(**changes, origin={**data.origin, "distances": record}), ignore)


def _focal_lengths(data: DetectionSet, away: NDArray[np.float64], width: NDArray[np.float64]) -> dict[str, int]:
    """The focal lengths, in widths of the image, that distances (n,) of annotations mean, and how many mean each."""
    boxes = data.annotations
    if boxes.box_2d is None:  # there are none
        return {}
    height = np.array([USUAL_HEIGHT_M.get(name.lower(), math.nan) for name in data.classes])[boxes.label]
    if boxes.box_3d is not None:
        height = np.where(boxes.box_3d[:, 5] > 0, boxes.box_3d[:, 5], height)
    focal = (boxes.box_2d[:, 3] - boxes.box_2d[:, 1]) * away / (height * width)
    values, counts = np.unique(np.round(focal[np.isfinite(focal)], 4), return_counts=True)
    return dict(zip(map(repr, values.tolist()), counts.tolist(), strict=True))


def whole_depth(record: Mapping[str, Any], folder: str, any_focal_length: bool) -> dict[str, object]:
    """What is recorded of all depth maps, from the sum of the records of all parts.

    Raises:
        InputError: depths do not fit known heights, unless `any_focal_length`.
    """
    lines, lengths = sorted(record["maps"], key=lambda line: line[66:]), record["focal_lengths"]
    told = {"files": len(lines), "sha256": hashlib.sha256("".join(lines).encode()).hexdigest()}
    focal = np.repeat(np.array(list(lengths), np.float64), np.array(list(lengths.values()), np.int64))
    if not any_focal_length and len(focal) >= FEWEST_KNOWN:
        told |= {"focal_length_in_widths": _checked_focal_length(focal, folder)}
    names = ("role", "name", "files", "sha256", "scale", "rule", "unknown", "focal_length_in_widths")
    whole = {**record, **told}
    return {name: whole[name] for name in (*names, "unknown_of_detections") if name in whole}


def _checked_focal_length(focal: NDArray[np.float64], folder: str) -> float:
    median = float(np.median(focal))
    if not FOCAL_LENGTHS[0] <= median <= FOCAL_LENGTHS[1]:
        view = 2 * math.degrees(math.atan(0.5 / median))
        raise InputError(
            f"the depths do not fit the heights of {len(focal)} objects: in the median they mean a camera with a "
            f"field of view of {fixed(view, 0)} degrees; expected 29 to 110",
            Place(folder),
            "PNG maps hold 1/256 m unless --depth-scale says otherwise (--depth-scale 1000 for millimetres); if the "
            "camera is such a one: --accept implausible-depth",
        )
    return round(median, 4)


def depth_map(
    folder: str | Path, name: str, scale: float = UNITS_PER_M, inverse: float | None = None
) -> NDArray[np.float64]:
    """The depth map (height, width) of the frame `name` in metres, 0 where unknown; files as for `with_depth`.

    With `inverse` the files hold disparities or inverse depths d, 0 where unknown, and the depth is `inverse` / d:
    of a stereo pair the focal length in pixels times the baseline in metres.

    Raises:
        InputError: the map is missing, there are two, it is unreadable, of another kind, or holds a wrong depth.
        UsageError: `scale` is not positive.
    """
    _check_scale(scale)
    if not Path(folder).is_dir():
        raise InputError("no such folder", Place(str(folder)))
    path = depth_file(Path(folder), name)
    return _depth(read_bytes(path), path, scale, inverse)


def _check_scale(scale: float) -> None:
    if not 0 < scale < math.inf:
        raise UsageError(f"scale: expected a positive number of units in a metre, got {scale:g}")


def _maps(
    data: DetectionSet, folder: Path, placed: bool
) -> Iterator[tuple[str, Path, NDArray[np.int64], NDArray[np.int64]]]:
    """The name, the depth map and the rows of annotations and of detections to be placed, of each frame that has any.

    A frame without annotations needs no map.
    """
    if not folder.is_dir():
        raise InputError("no such folder", Place(str(folder)))
    no_rows = np.zeros(0, dtype=np.int64)
    rows_of = _rows_by_frame(data.annotations)
    seen_in = _rows_by_frame(data.detections) if placed else {}
    owners: dict[Path, str] = {}
    for frame in sorted({**rows_of, **seen_in}):
        name = data.frame_name[frame]
        try:
            path = depth_file(folder, name)
        except InputError:
            if frame in rows_of:
                raise
            continue
        if path in owners:
            raise InputError(
                f"the depth map of two frames, {shown(owners[path])} and {shown(name)}", Place(str(path))
            )
        owners[path] = name
        yield name, path, rows_of.get(frame, no_rows), seen_in.get(frame, no_rows)


def _rows_by_frame(boxes: Boxes) -> dict[int, NDArray[np.int64]]:
    order = np.argsort(boxes.frame, kind="stable")
    frames, starts = np.unique(boxes.frame[order], return_index=True)
    return dict(zip(frames.tolist(), np.split(order, starts)[1:], strict=True))


def depth_file(folder: Path, name: str) -> Path:
    """The one depth map of the frame `name`; never a file above `folder`.

    Raises:
        InputError: there is none, or there are two.
    """
    place = Place(str(folder))
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or "\\" in name or not parts.name:
        raise InputError(f"frame {shown(name)}: the name does not lead to a file inside the folder", place)
    stems = [name]
    if parts.suffix.lower() in IMAGE_SUFFIXES:
        stems.append(str(parts.with_suffix("")))
    candidates = [folder / f"{stem}{suffix}" for stem in stems for suffix in MAP_SUFFIXES]
    try:
        paths = [path for path in candidates if path.is_file()]
    except OSError as error:
        raise InputError(f"frame {shown(name)}: {error.strerror}", place) from None
    if not paths:
        wanted = listed(MAP_SUFFIXES, "or")
        raise InputError(f"frame {shown(name)} has no depth map {shown(stems[-1])} with {wanted}", place)
    if len(paths) > 1:
        raise InputError(f"frame {shown(name)} has a second depth map, {paths[0].name}", Place(str(paths[1])))
    return paths[0]


def _depth(raw: bytes, path: Path, scale: float, inverse: float | None = None) -> NDArray[np.float64]:
    """The depth map (height, width) in metres, 0 where unknown."""
    place = Place(str(path))
    readers = {".png": _png, ".pfm": _pfm, ".npy": _npy}
    depth = readers[path.suffix](raw, place) / (scale if path.suffix == ".png" else 1)
    if inverse is not None:
        with np.errstate(divide="ignore", over="ignore"):
            depth = np.where(depth == 0, 0, inverse / depth)
    bad = ~((depth >= 0) & (depth <= LARGEST_M))
    if bad.any():
        row, column = (int(number) for number in np.unravel_index(bad.argmax(), depth.shape))
        raise InputError(
            f"pixel ({column}, {row}), counted from 0: expected a depth in metres, got {depth[row, column]:g}",
            place,
            "write 0 where the depth is unknown",
        )
    return depth


def _npy(raw: bytes, place: Place) -> NDArray[np.float64]:
    try:
        array: NDArray[Any] = np.lib.format.read_array(io.BytesIO(raw), allow_pickle=False)
    except DAMAGED as error:
        raise InputError(f"not a readable NumPy array: {_reason(error)}", place) from None
    if array.ndim != 2 or array.dtype.kind != "f":
        raise InputError(
            f"expected floating-point metres (height, width), found {array.dtype} of shape {array.shape}", place
        )
    return array.astype(np.float64)


PFM_HEAD = re.compile(rb"Pf\s+([0-9]{1,5})\s+([0-9]{1,5})\s+(-?[0-9.eE+-]{1,30})\s")


def _pfm(raw: bytes, place: Place) -> NDArray[np.float64]:
    """A portable float map of one channel: lines from the lowest up; little-endian where its scale is negative."""
    head = PFM_HEAD.match(raw)
    if head is None:
        raise InputError("expected a portable float map of one channel: Pf, width, height, scale", place)
    width, height, order = int(head[1]), int(head[2]), "<" if head[3].startswith(b"-") else ">"
    values = raw[head.end() :]
    if len(values) != 4 * width * height or not values:
        raise InputError(f"{len(values)} bytes; {width} x {height} pixels take {4 * width * height}", place)
    depths = np.frombuffer(values, f"{order}f4").reshape(height, width)[::-1].astype(np.float64)
    return np.where(np.isposinf(depths), 0, depths)


def _png(raw: bytes, place: Place) -> NDArray[np.float64]:
    images = library("PIL.Image")
    try:
        with images.open(io.BytesIO(raw), formats=("PNG",)) as image:
            mode = image.mode
            values = np.asarray(image)
    except images.UnidentifiedImageError:  # its text has an address in memory, another one in every run
        raise InputError("not a readable PNG image: of no known format", place) from None
    except (*DAMAGED, images.DecompressionBombError) as error:
        raise InputError(f"not a readable PNG image: {_reason(error)}", place) from None
    if mode not in ("I", "I;16"):  # 16-bit grey is "I" before Pillow 11, and "I;16" since
        raise InputError(f"expected a 16-bit grey image, found one of mode {mode}", place)
    return values.astype(np.float64)


def _reason(error: BaseException) -> str:
    return shown(str(error) or type(error).__name__, 120)


def _annotation_depth(depth: NDArray[np.float64], data: DetectionSet, row: int, name: str) -> float:
    """The depth in the rectangle of an annotation; the error of one outside the image."""
    assert data.annotations.box_2d is not None  # checked by the caller
    box = data.annotations.box_2d[row]
    metres = box_depth(depth, box)
    if metres is None:
        values = ", ".join(f"{value:g}" for value in box)
        raise InputError(
            f"frame {shown(name)}: the rectangle ({values}) lies outside the depth map of "
            f"{depth.shape[1]} x {depth.shape[0]} pixels",
            data.place(data.annotations, row),
        )
    return metres


def box_depth(depth: NDArray[np.float64], box: NDArray[np.float64]) -> float | None:
    """The median of the known medians of rows, NaN where there is none; None for a box outside the image.

    Args:
        depth: (height, width) along the optical axis; 0 or NaN where it is unknown.
        box: (4,) left, top, right, bottom in pixels; pixel (i, j) covers [j, j + 1) x [i, i + 1). NaN for no box.
    """
    if np.isnan(box).any():
        return math.nan
    low = np.floor(box[:2])
    high = np.maximum(np.ceil(box[2:]), low + 1)  # a rectangle without area lies in one pixel
    height, width = depth.shape
    left, top = np.maximum(low, 0).astype(int)
    right, bottom = np.minimum(high, (width, height)).astype(int)
    if left >= right or top >= bottom:
        return None
    part = depth[top:bottom, left:right]
    known = part > 0
    part = np.sort(np.where(known, part, np.nan), axis=1)  # NaN comes last
    count = np.count_nonzero(known, axis=1)
    rows = np.flatnonzero(count)
    if not len(rows):
        return math.nan
    count = count[rows]
    return float(np.median((part[rows, (count - 1) // 2] + part[rows, count // 2]) / 2))


def _known(data: DetectionSet, ignore: tuple[str, ...]) -> DetectionSet:
    """The set whose annotations of unknown depth are regions; an error unless that is ignored."""
    boxes = data.annotations
    assert boxes.distance_m is not None  # set by the caller
    unknown = np.isnan(boxes.distance_m)
    count = int(unknown.sum())
    if not count:
        return data
    if FAULT not in ignore:
        row = int(unknown.argmax())
        more = f" (and {count - 1} more like it)" if count > 1 else ""
        raise InputError(
            f"frame {shown(data.frame_name[boxes.frame[row]])}: no depth is known in the rectangle{more}",
            data.place(boxes, row),
            ignore_hint(FAULT),
        )
    out = boxes.take(unknown)
    return data.change(
        annotations=boxes.take(~unknown),
        ignored=out if data.ignored is None else joined([data.ignored, out]),
        origin={**data.origin, "ignored": {**data.origin.get("ignored", {}), FAULT: count}},
    )
