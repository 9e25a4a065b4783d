"""The source images of a campaign or an assessment with all that belongs to them: depth, and objects that move along.

The images are the files of one folder, called by their file names. An annotated frame is the image of the same name,
with or without its suffix; every image has its frame, and every frame its image.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from verifier.base.arrays import Floats
from verifier.base.budget import Cache
from verifier.base.errors import InputError, Place, UsageError
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.settings import IMAGE_SUFFIXES
from verifier.robustness.campaign.definition import DataFiles
from verifier.robustness.detectors import read_image
from verifier.robustness.detectors.protocol import image_size
from verifier.robustness.mutators import AnyMutation, Composition, Frame, apply, moves_boxes
from verifier.robustness.mutators.annotations import Annotations, read_annotations
from verifier.robustness.mutators.frames import DepthSource, guessed_depths, guessed_text

FILLED_BYTES = 2**29
"""Of depth maps that were filled in and are kept, since every mutation by depth and every detector needs them."""


@dataclass(frozen=True)
class Scenes:
    """The source images.

    Attributes:
        files: by name, in the order of the names.
        depth: where their depth comes from; None where nobody said.
        annotated: the objects in them; None where nobody said.
    """

    files: Mapping[str, Path]
    depth: DepthSource | None = None
    annotated: Annotations | None = None
    _filled: Cache = field(default_factory=lambda: Cache(FILLED_BYTES), init=False, repr=False, compare=False)

    @property
    def truth(self) -> DetectionSet | None:
        """The objects in them; its frames are called as the images and in their order, and it has no detections."""
        return None if self.annotated is None else self.annotated.truth

    def frame(self, name: str, *, deep: bool) -> Frame:
        """The image with its boxes, those of objects first and then those of regions; with depth if `deep`.

        Raises:
            InputError: the image or its depth cannot be read, or there is no depth.
        """
        path = self.files[name]
        pixels = read_image(path).pixels
        depth_m = self.depth_m(name, (pixels.shape[0], pixels.shape[1])) if deep else None
        boxes = None if self.annotated is None else self.annotated.boxes(name)
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
    given, depth = source.annotations, None if source.depth is None else source.depth.within(folder)
    called = {name: name for name in files}
    called |= {path.stem: name for name, path in files.items() if path.stem not in files}
    annotated = None if given is None else read_annotations(given, folder, called)
    return Scenes(MappingProxyType(files), depth, annotated)
