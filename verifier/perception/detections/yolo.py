"""Ultralytics YOLO: label files with their `data.yaml`, and label files or `predictions.json` of a detector.

    labels/a.txt                      class x y width height              fractions of the image, from its centre
    predict/labels/a.txt              class x y width height score        (save_txt, save_conf)
    predictions.json                  COCO results whose image_id is the file name without suffix (save_json)

Frames are the images, named by their files without suffix: those in the folder of images beside the labels
(`labels` -> `images` in the path), and those that have a label file. An image without a label file has no object, and
one without detections needs no file. Sizes are those of the images, or `image_size` says them. A file `classes.txt`,
as some tools write beside labels, is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats
from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import read_text
from verifier.base.libraries import library
from verifier.base.words import counted
from verifier.perception.detections.assembly import Rows, assemble
from verifier.perception.detections.coco import distances_of, result_rows
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.gathered import image_frames
from verifier.perception.detections.sources import Member, Reading, digest_record, elements, load_json, read_source
from verifier.perception.detections.texttables import Kind, Layout, TextTable, read_tables
from verifier.perception.settings import IMAGE_SUFFIXES

LABEL: dict[str, Kind] = {"class": "whole"}
LABEL |= dict.fromkeys(("x", "y", "width", "height"), "finite")
SCORED: dict[str, Kind] = {**LABEL, "score": "finite"}
DATA_FILES = ("data.yaml", "data.yml", "dataset.yaml")
SLACK = 0.01
"""By so much of an image a rectangle may reach beyond it."""


def yolo(
    annotations: str | Path,
    detections: str | Path,
    reading: Reading | None = None,
    *,
    image_size: str | None = None,
    first_category: int | None = None,
    detection_distance_field: str | None = None,
) -> DetectionSet:
    """Labels: a folder or zip archive of them, with a `data.yaml` in it or above it; or that file, or the folder of
    `data.yaml` and `labels`, for the labels of its `val`.

    `image_size` such as "640x480" is that of all images, where these are not there. In `predictions.json`
    `first_category` is the number of the first class: 1 as Ultralytics writes it since December 2024, 0 before; where
    it is not given, the numbers of the file have to tell. `detection_distance_field` is one of its fields. Attributes
    of annotations: `id`, the line in the label file.

    Raises:
        InputError: a file cannot be read, with file and line; see also `sources.IGNORABLE`.
        UsageError: `image_size` or `first_category` cannot be, or belongs to other files.
    """
    described, folders = _described(Path(annotations))
    names = _names(described)
    sources = [read_source(folder, "annotations") for folder in folders]
    members = tuple(member for source in sources for member in source.members if member.stem != "classes")
    images, image_folders = _images(folders)
    frames = image_frames(members, image_folders.items())
    index = {name: at for at, name in enumerate(frames.names)}
    size = _sizes(frames.names, images, image_size, str(annotations))
    truth = _rows(members, index, names, size, LABEL)
    records = [dict(source.record) for source in sources]
    records.append(digest_record("classes", described, described.read_bytes()))
    if Path(detections).suffix.lower() == ".json":
        document, raw = load_json(detections)
        items = elements(document, str(detections), "detections")
        stems: dict[Any, int] = {int(name): at for name, at in index.items() if name.isdecimal()}
        base = _first_category(items.whole("category_id"), len(names), first_category, str(detections))
        categories = {base + number: name for number, name in names.items()}
        rows = result_rows(items, {**stems, **index}, categories)
        rows = distances_of(rows, items, detection_distance_field)
        records.append(digest_record("detections", detections, raw))
    else:
        if first_category is not None or detection_distance_field is not None:
            raise UsageError("--first-category and --detection-distance-field belong to predictions.json")
        source = read_source(detections, "detections")
        image_frames(source.members)  # refuses two files of one image
        wanted = (reading or Reading()).frame_index(index)
        rows = _rows(source.members, wanted, names, size, SCORED)
        records.append(source.record)
    notes = {"image_size": image_size, "first_category": first_category}
    return assemble("yolo", frames, truth, rows, records, reading, tuple(names.values()), notes=notes)


def _described(path: Path) -> tuple[Path, list[Path]]:
    """The file that names the classes, and the folders (or the archive) of labels."""
    if (path / "labels").is_dir() and (path / DATA_FILES[0]).is_file():
        path = path / DATA_FILES[0]
    if path.suffix.lower() in (".yaml", ".yml"):
        return path, _label_folders(path)
    for folder in (path, *list(path.absolute().parents)[:3]):
        for name in DATA_FILES:
            if (folder / name).is_file():
                return folder / name, [path]
    message = f"no {DATA_FILES[0]} that names the classes, in it or in the three folders above"
    raise InputError(message, Place(str(path)), "write one with a line such as: names: [person, car]")


def _label_folders(path: Path) -> list[Path]:
    document = _document(path)
    given = document.get("val")
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not listed or not all(isinstance(name, str) for name in listed):
        message = f"val: expected the folder of images, or a list of them, got {shown(given)}"
        raise InputError(message, Place(str(path)), "or name the folder of label files itself")
    root = document.get("path") or ""
    paths = []
    for name in listed:
        tried = [path.parent / str(root) / name, path.parent / name, Path(str(root)) / name]
        labels = [_beside(folder, "images", "labels") for folder in tried]
        known = [folder for folder in labels if folder is not None and folder.is_dir()]
        if not known:
            message = f"val: no folder of labels beside {shown(name)} ('images' in its path becomes 'labels')"
            raise InputError(message, Place(str(path)), "or name the folder of label files itself")
        paths.append(known[0])
    return paths


def _beside(folder: Path, name: str, other: str) -> Path | None:
    """The path with its last part `name` as `other`; None where it has no such part."""
    parts = list(folder.parts)
    if name not in parts:
        return None
    parts[len(parts) - 1 - parts[::-1].index(name)] = other
    return Path(*parts)


def _document(path: Path) -> dict[str, object]:
    yaml = library("yaml")
    text, _ = read_text(path)
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        message = f"not readable as YAML: {getattr(error, 'problem', None) or type(error).__name__}"
        raise InputError(message, Place(str(path), None if mark is None else mark.line + 1)) from None
    if not isinstance(document, dict):
        raise InputError(f"expected keys such as 'names', got {shown(document)}", Place(str(path)))
    return document


def _names(path: Path) -> dict[int, str]:
    listed = _document(path).get("names")
    pairs = dict(enumerate(listed)) if isinstance(listed, list) else listed
    known: dict[Any, Any] = pairs if isinstance(pairs, dict) else {}
    fine = all(type(number) is int and isinstance(name, str) for number, name in known.items())
    if not known or not fine or len(set(known.values())) != len(known):
        message = f"names: expected a list of different class names, or names by number, got {shown(listed)}"
        raise InputError(message, Place(str(path)))
    return known


def _images(label_folders: list[Path]) -> tuple[dict[str, Path], dict[str, str]]:
    """The images beside the labels and the folders they stand in, by their names without suffix."""
    images: dict[str, Path] = {}
    folders: dict[str, str] = {}
    for labels in label_folders:
        folder = _beside(labels, "labels", "images") or _beside(labels.absolute(), "labels", "images")
        for path in sorted(folder.rglob("*")) if folder is not None and folder.is_dir() else ():
            if path.suffix.lower() in IMAGE_SUFFIXES:
                if path.stem in images:
                    raise InputError(
                        f"a second image is called {shown(path.stem)}: {images[path.stem]}", Place(str(path))
                    )
                images[path.stem] = path
                folders[path.stem] = path.parent.name if path.parent != folder else ""
    return images, folders


def _sizes(names: tuple[str, ...], images: Mapping[str, Path], given: str | None, file: str) -> Floats:
    """(f, 2) width and height of each image."""
    if given is not None:
        width, _, height = given.partition("x")
        if not (width.isdecimal() and height.isdecimal() and 0 < int(width) < 10**6 and 0 < int(height) < 10**6):
            raise UsageError(f"--image-size: expected WIDTHxHEIGHT in pixels, got {shown(given)}")
        return np.tile([float(width), float(height)], (len(names), 1))
    pillow = library("PIL.Image")
    sizes = np.empty((len(names), 2))
    for at, name in enumerate(names):
        if name not in images:
            hint = "put the images beside the labels (labels -> images), or give --image-size WIDTHxHEIGHT"
            raise InputError(f"no image {shown(name)}, so its size in pixels is not known", Place(file), hint)
        try:
            with pillow.open(images[name]) as image:
                sizes[at] = image.size
        except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError):
            raise InputError("not a readable image", Place(str(images[name]))) from None
    return sizes


def _rows(
    members: tuple[Member, ...],
    index: Mapping[str, int],
    names: Mapping[int, str],
    size: Floats,
    columns: Mapping[str, Kind],
) -> Rows:
    table = read_tables(members, [Layout(columns)])
    _check_fractions(table)
    frame, text = table.frames_of_files(index, "image")
    x, y, width, height = table.stack("x", "y", "width", "height").T
    box = np.column_stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2])
    return table.rows(
        (frame, text),
        table.classes("class", names),
        box_2d=box * np.tile(size[frame], 2),
        attributes={} if "score" in columns else {"id": table.line},
    )


def _check_fractions(table: TextTable) -> None:
    names = ("x", "y", "width", "height")
    value = table.stack(*names)
    bad = (value < -SLACK) | (value > 1 + SLACK)
    rows = np.flatnonzero(bad.any(axis=1)).tolist()
    if rows:
        row, at = rows[0], int(bad[rows[0]].argmax())
        files = len(set(table.file[rows].tolist()))
        more = f"; such numbers stand in {len(rows)} lines of {counted(files, 'file')}"
        message = f"{names[at]}: expected a fraction of the image from 0 to 1, got {value[row, at]:g}"
        raise InputError(message + (more if len(rows) > 1 else ""), table.place(row))


def _first_category(numbers: NDArray[np.int64], count: int, given: int | None, file: str) -> int:
    """The number of the first class in results: as given, or as only that number lets all be numbers of classes."""
    if given not in (None, 0, 1):
        raise UsageError(f"--first-category: expected 0 or 1, got {given}")
    if given is not None or not len(numbers):
        return given or 0
    possible = [first for first in (0, 1) if numbers.min() >= first and numbers.max() < first + count]
    if len(possible) != 1:
        told = "do not tell whether" if possible else "do not fit:"
        end = f"the {count} classes count from 0 or from 1"
        message = f"category_id: numbers from {numbers.min()} to {numbers.max()} {told} {end}"
        raise InputError(message, Place(file), "Ultralytics counts from 1 since December 2024: --first-category 1")
    return possible[0]
