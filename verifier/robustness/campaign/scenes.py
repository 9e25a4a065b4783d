"""The source images of a campaign or an assessment with all that belongs to them: depth, and objects that move along.

The images are the files of one folder, called by their file names. An annotated frame is the image of the same name,
with or without its suffix; every image has its frame, and every frame its image.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from verifier.base.arrays import Floats, Ints
from verifier.base.budget import Cache
from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import read_json
from verifier.perception.detections import Reading, read_class_map, read_detections
from verifier.perception.detections.columns import NO_SEQUENCE, Boxes, DetectionSet, no_boxes
from verifier.perception.detections.sources import read_source
from verifier.perception.settings import IMAGE_SUFFIXES
from verifier.robustness.campaign.definition import AnnotationFiles, DataFiles
from verifier.robustness.detectors import read_image
from verifier.robustness.detectors.protocol import image_size
from verifier.robustness.mutators import AnyMutation, Composition, Frame, apply, moves_boxes
from verifier.robustness.mutators.frames import DepthSource, guessed_depths, guessed_text

FILLED_BYTES = 2**29
"""Of depth maps that were filled in and are kept, since every mutation by depth and every detector needs them."""


@dataclass(frozen=True)
class Scenes:
    """The source images.

    Attributes:
        files: by name, in the order of the names.
        depth: where their depth comes from; None where nobody said.
        truth: the objects in them; its frames are called as the images and in their order, and it has no detections.
            None where nobody said.
        image_ids, category_ids: that a COCO file has for the images and classes; empty where it has none.
    """

    files: Mapping[str, Path]
    depth: DepthSource | None = None
    truth: DetectionSet | None = None
    image_ids: Mapping[str, object] = field(default_factory=dict)
    category_ids: Mapping[str, object] = field(default_factory=dict)
    _rows: Mapping[str, tuple[Ints, Ints]] = field(init=False, repr=False, compare=False)
    _filled: Cache = field(default_factory=lambda: Cache(FILLED_BYTES), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rows: dict[str, tuple[Ints, Ints]] = {}
        if self.truth is not None:
            parts = self.truth.annotations, self.truth.ignored or no_boxes()
            own = [by_frame(part, len(self.files)) for part in parts]
            rows = dict(zip(self.truth.frame_name, zip(*own, strict=True), strict=True))
        object.__setattr__(self, "_rows", MappingProxyType(rows))

    def frame(self, name: str, *, deep: bool) -> Frame:
        """The image with its boxes, those of objects first and then those of regions; with depth if `deep`.

        Raises:
            InputError: the image or its depth cannot be read, or there is no depth.
        """
        path = self.files[name]
        pixels = read_image(path).pixels
        depth_m = self.depth_m(name, (pixels.shape[0], pixels.shape[1])) if deep else None
        boxes = None
        if self.truth is not None:
            objects, regions = self.rows(name)
            ignored = self.truth.ignored or no_boxes()
            boxes = np.vstack([_rectangles(self.truth.annotations)[objects], _rectangles(ignored)[regions]])
        try:
            return Frame(pixels, depth_m, boxes)
        except InputError as error:
            raise InputError(error.message, Place(str(path)), error.hint) from None

    def depth_m(self, name: str, size: tuple[int, int]) -> Floats:
        """(H, W) metres of the image, whose height and width is `size`; 0 where unknown, if nothing fills that in.

        Raises:
            InputError: there is no depth, or it cannot be read.
        """
        if self.depth is None:
            hint = "name depth maps or a constant depth in the table 'source': depth = { folder = ... }"
            raise InputError("the depth of this image is needed", Place(str(self.files[name])), hint)
        given, sparse = self.depth, self.depth.measured(name, size)
        if not given.guesses or given.folder is None:
            return sparse
        try:
            return self._filled.kept(name, lambda: given.filled(name, sparse), lambda full: full.nbytes)
        except InputError as error:
            place = error.place or Place(str(given.folder))
            raise InputError(f"{name}: {error.message}", place, error.hint) from None

    def guessed(self) -> str:
        """How many of the pixels of all images have a depth that nobody measured, by distance.

        Raises:
            InputError: a depth cannot be read.
        """
        given = self.depth
        assert given is not None  # asked by the callers
        sizes = {name: image_size(path) or (0, 0) for name, path in self.files.items()}
        return guessed_text(
            guessed_depths(given.measured(name, size), self.depth_m(name, size)) for name, size in sizes.items()
        )

    def moved_depth_m(self, name: str, mutation: AnyMutation | None) -> Floats:
        """(H, W) metres of the image after the steps of a mutation that move what is seen."""
        steps = () if mutation is None else tuple(step for step in mutation.steps if moves_boxes(step))
        frame = self.frame(name, deep=bool(steps))
        if not steps:
            return self.depth_m(name, frame.size)
        depth_m = apply(Composition(steps), frame).depth_m
        assert depth_m is not None  # it had some
        return depth_m

    def rows(self, name: str) -> tuple[Ints, Ints]:
        """The rows of the objects of an image among the annotations, and of its regions among those to ignore."""
        return self._rows[name]


def image_files(folder: Path) -> tuple[Path, ...]:
    """The image files of a folder, by name; InputError where there is none, or two of one name."""
    place = Place(str(folder))
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES)
    except OSError as error:
        raise InputError(f"cannot be read as a folder: {error.strerror}", place) from None
    if not paths:
        raise InputError("no image in this folder", place, f"looked for {', '.join(IMAGE_SUFFIXES)}")
    stems: dict[str, str] = {}
    for path in paths:
        if path.stem in stems:
            raise InputError(f"two images of one name: {stems[path.stem]} and {path.name}", place)
        stems[path.stem] = path.name
    return tuple(paths)


def open_scenes(source: DataFiles, folder: Path, key: str) -> Scenes:
    """The source images.

    Args:
        source: names the files.
        folder: where its paths start from.
        key: what the images are of, for messages.

    Raises:
        InputError: a folder or file that cannot be read, images and annotations that do not belong together.
        UsageError: no folder of images is named.
    """
    if source.images is None:
        raise UsageError(f"{key}: images are made from those of the source: 'images' in its table 'source'")
    files = {path.name: path for path in image_files(folder / source.images)}
    given = source.annotations
    made = MappingProxyType(files), None if source.depth is None else source.depth.within(folder)
    if given is None:
        return Scenes(*made)
    truth, frames = _truth(given, folder, tuple(files))
    images, categories = dict[str, object](), dict[str, object]()
    if given.format == "coco":  # its frames are its images, in their order
        document, _ = read_json(folder / given.file)
        images = dict(zip(frames, (entry["id"] for entry in document["images"]), strict=True))
        if given.class_map is None:
            categories = {entry["name"]: entry["id"] for entry in reversed(document["categories"])}
    return Scenes(*made, truth, images, categories)


def _truth(given: AnnotationFiles, folder: Path, names: Sequence[str]) -> tuple[DetectionSet, list[str]]:
    """The objects, and the image of each frame in the order of the file."""
    mapping = None if given.class_map is None else read_class_map(folder / given.class_map)
    options = {} if given.distance_field is None else {"distance_field": given.distance_field}
    if given.frames is not None:
        options["frames"] = str(folder / given.frames)
    path = folder / given.file
    with tempfile.TemporaryDirectory() as nothing:
        no_reports = _without_reports(given.format, path, Path(nothing))
        try:
            detections = read_detections(given.format, path, no_reports, Reading(mapping), **options)
        except InputError as error:
            if error.hint is None or "--ignore" not in error.hint:
                raise
            raise InputError(error.message, error.place, "correct the file of annotations") from None
    place = Place(str(path))
    by_stem = {Path(name).stem: name for name in names}
    known = {name: name for name in names}
    renamed = [known.get(name) or by_stem.get(name) for name in detections.frame_name]
    for frame, image in zip(detections.frame_name, renamed, strict=True):
        if image is None:
            raise InputError(f"frame {shown(frame)} has no image in the source folder", place)
    for name in sorted({*names}.difference(map(str, renamed))):
        hint = "list all frames in a file: frames = ..." if given.format == "table" else None
        raise InputError(f"the image {shown(name)} has no frame in the annotations", place, hint)
    if len(set(renamed)) < len(renamed):
        raise InputError("two frames belong to one image", place)
    if detections.annotations.box_2d is None or np.isnan(detections.annotations.box_2d).any():
        raise InputError("an annotation has no rectangle in its image, so that it cannot move along", place)
    frames = [str(name) for name in renamed]
    return _in_order(detections, frames, names), frames


def _without_reports(kind: str, annotations: Path, folder: Path) -> Path:
    """Results in which nothing is detected, for the readers, which ask for some."""
    if kind == "coco":
        (folder / "none.json").write_text("[]")
        return folder / "none.json"
    if kind == "table":
        (folder / "none.csv").write_text("frame,class,score\n")
        return folder / "none.csv"
    for member in read_source(annotations, "annotations").members:
        (folder / f"{member.stem}.txt").write_text("")
    return folder


def _in_order(detections: DetectionSet, renamed: list[str], names: Sequence[str]) -> DetectionSet:
    """The frames called as their images and in their order, in no sequence, without a trace of empty results."""
    number = {name: at for at, name in enumerate(names)}
    place = np.array([number[name] for name in renamed], dtype=np.int64)
    sources = [entry for entry in detections.origin.get("sources", []) if entry.get("role") != "detections"]
    ignored = detections.ignored
    return detections.change(
        sequences=(NO_SEQUENCE,),
        frame_sequence=np.zeros(len(names), np.int32),
        frame_name=tuple(names),
        annotations=_moved(detections.annotations, place),
        detections=no_boxes(scored=True),
        ignored=None if ignored is None else _moved(ignored, place),
        origin={**detections.origin, "sources": sources},
    )


def _moved(boxes: Boxes, place: Ints) -> Boxes:
    order = np.argsort(place[boxes.frame], kind="stable")
    return replace(boxes, frame=place[boxes.frame]).take(order)


def _rectangles(boxes: Boxes) -> Floats:
    """(n, 4); a set without any box has none."""
    return np.zeros((0, 4)) if boxes.box_2d is None else np.asarray(boxes.box_2d)


@dataclass(frozen=True, eq=False)
class MovedBoxes:
    """Where the boxes of one image are after a mutation.

    Attributes:
        source: of the image it was made from.
        size: height and width of the new image.
        kept: which boxes of the frame of the source are still in the image.
        boxes: (n, 4) where they are.
    """

    name: str
    source: str
    size: tuple[int, int]
    kept: Ints
    boxes: Floats

    @classmethod
    def of(cls, name: str, source: str, frame: Frame) -> MovedBoxes:
        """Those of a frame after its mutation."""
        kept = np.zeros(0, np.int64) if frame.kept is None else frame.kept
        return cls(name, source, frame.size, kept, np.zeros((0, 4)) if frame.boxes is None else frame.boxes)


def moved_truth(scenes: Scenes, images: Sequence[MovedBoxes]) -> DetectionSet:
    """The annotations of the new images, in their order: those of the sources, moved along.

    What left the image is gone.

    Raises:
        ValueError: the source images have no annotations.
    """
    truth = scenes.truth
    if truth is None:
        raise ValueError("no annotations")
    taken: list[list[Ints]] = [[], []]
    boxes: list[list[Floats]] = [[], []]
    counts: list[list[int]] = [[], []]
    for image in images:
        own = scenes.rows(image.source)
        is_object = image.kept < len(own[0])
        for kind, mask in enumerate((is_object, ~is_object)):
            taken[kind].append(own[kind][image.kept[mask] - kind * len(own[0])])
            boxes[kind].append(image.boxes[mask])
            counts[kind].append(int(mask.sum()))
    objects, regions = (
        _resized(
            of.take(np.concatenate([np.zeros(0, np.int64), *taken[kind]])),
            np.repeat(np.arange(len(images)), counts[kind]),
            np.concatenate([np.zeros((0, 4)), *boxes[kind]]),
        )
        for kind, of in enumerate((truth.annotations, truth.ignored or no_boxes()))
    )
    return truth.change(
        frame_sequence=np.zeros(len(images), np.int32),
        frame_name=tuple(image.name for image in images),
        annotations=objects,
        ignored=None if truth.ignored is None else regions,
        detections=no_boxes(scored=True),
    )


def _resized(boxes: Boxes, frame: Ints, box_2d: Floats) -> Boxes:
    """The boxes elsewhere; of one that has another size than it had, the area of its mask is not known any more."""
    attributes = dict(boxes.attributes)
    if "area" in attributes and boxes.box_2d is not None:
        same = np.isclose(box_2d[:, 2:] - box_2d[:, :2], boxes.box_2d[:, 2:] - boxes.box_2d[:, :2]).all(axis=1)
        attributes["area"] = np.where(same, attributes["area"].astype(np.float64), np.nan)
    return replace(boxes, frame=frame, box_2d=box_2d, attributes=attributes)


def by_frame(boxes: Boxes, frames: int) -> list[Ints]:
    """The rows of each frame."""
    order = np.argsort(boxes.frame, kind="stable")
    return np.split(order, np.cumsum(np.bincount(boxes.frame, minlength=frames))[:-1])
