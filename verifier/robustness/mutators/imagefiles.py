"""The image files of a batch: which they are, what they are called, what is read, and the depth that belongs to them.

An image is called by its path below the folder that was named, or by its file name, without suffix and with `/`
between folders: that is its frame name, where its depth map and annotations are looked for, and where its mutated
image is put.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import numpy as np

from verifier.base.documents import Limits
from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.perception.detections.depth import UNITS_PER_M, depth_map
from verifier.perception.settings import IMAGE_SUFFIXES
from verifier.robustness.mutators.densify import densify
from verifier.robustness.mutators.frames import Metres
from verifier.robustness.settings import Densifying

MOST_IMAGES = 1_000_000


@dataclass(frozen=True)
class ImageFile:
    """An image file and what it is called."""

    path: Path
    name: str


def image_files(paths: Iterable[str | Path]) -> tuple[ImageFile, ...]:
    """The files named, and all images below the folders named, in the order of the names within each.

    Raises:
        InputError: nothing there, no file, a folder without images or one that cannot be read, a name that is not
            UTF-8, more than `MOST_IMAGES`.
        UsageError: no path, or two images of the same name.
    """
    found: list[ImageFile] = []
    for path in paths:
        found += _images(Path(path), shown_as=str(path))
        if len(found) > MOST_IMAGES:
            raise InputError(f"more than {MOST_IMAGES} images", Place(str(path)))
    if not found:
        raise UsageError("no image is named")
    owners: dict[str, Path] = {}
    for each in found:
        if not each.name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in str(each.path)):
            raise InputError("the name of this file is not UTF-8", Place(str(each.path)), "give it another name")
        if each.name in owners:
            _called_alike(each.name, owners[each.name], each.path)
        owners[each.name] = each.path
    return tuple(found)


def _images(path: Path, shown_as: str) -> list[ImageFile]:
    """The image of one path, or those below it."""
    if not shown_as:
        raise UsageError("one of the images has an empty name")  # which would be the working folder
    if path.is_dir():
        below = sorted(_below(path))
        if not below:
            raise InputError(
                f"no image below this folder, by the suffixes {', '.join(IMAGE_SUFFIXES)}", Place(shown_as)
            )
        return [ImageFile(each, each.relative_to(path).with_suffix("").as_posix()) for each in below]
    if not path.exists():
        raise InputError("no such file", Place(shown_as))
    if not path.is_file():
        raise InputError("expected a file, found a device or a pipe", Place(shown_as))  # could have no end
    return [ImageFile(path, path.stem)]


def _below(folder: Path) -> list[Path]:
    """The image files below a folder, and below folders that links in it lead to.

    A link back to a folder above itself leads nowhere new and is left out; of a folder that cannot be looked into,
    the images would be missing without a word, and so it is an error.
    """
    found: list[Path] = []
    waiting: list[tuple[str, frozenset[str]]] = [(str(folder), frozenset())]
    while waiting:
        here, above = waiting.pop()
        real = os.path.realpath(here)
        if real in above:
            continue
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_dir():
                        waiting.append((entry.path, above | {real}))
                    elif entry.is_file() and Path(entry.name).suffix.lower() in IMAGE_SUFFIXES:
                        found.append(Path(entry.path))
        except OSError as error:
            raise InputError(f"the folder cannot be read: {error.strerror}", Place(here)) from None
    return found


def _called_alike(name: str, first: Path, second: Path) -> NoReturn:
    if first == second:
        raise UsageError(f"the image {first} is named twice")
    hint = "name the folder above both, so that names have folders in them, or mutate them apart"
    if first.parent == second.parent:
        hint = "their mutated images would have the same name, which ends in .png: rename one"
    raise UsageError(f"two images are called {shown(name)}: {first} and {second}\n  hint: {hint}")


@dataclass(frozen=True, eq=False)
class DepthMap:
    """What is known of the depth of one image: (H, W) metres, 0 where unknown, and the SHA-256 of that."""

    depth_m: Metres
    sha256: str

    @property
    def known(self) -> float:
        """The share of pixels with a known depth."""
        return float(np.count_nonzero(self.depth_m)) / self.depth_m.size


@dataclass(frozen=True)
class DepthRecord:
    """As `DepthSource`, for documents: of the folder its name alone, and the scale only with a folder."""

    folder: str | None
    constant_m: Annotated[float, Limits(gt=0)] | None
    scale: Annotated[float, Limits(gt=0)] | None
    densify: Densifying | None


@dataclass(frozen=True)
class DepthSource:
    """Where depth comes from: a folder of maps (see `depth_map`), or one depth for every pixel.

    Attributes:
        folder: of the maps, NAME.npy in metres or NAME.png, 16 bit; 0 is an unknown depth.
        constant_m: metres, instead of a folder.
        scale: units of a 16-bit map in a metre.
        densify: how unknown depths are filled; None: a map with unknown depths is refused.

    Raises:
        ValueError: not exactly one of `folder` and `constant_m`.
    """

    folder: Path | None = None
    constant_m: float | None = None
    scale: float = UNITS_PER_M
    densify: Densifying | None = None

    def __post_init__(self) -> None:
        if (self.folder is None) == (self.constant_m is None):
            raise ValueError("expected a folder of depth maps or a constant depth")

    def read(self, name: str, size: tuple[int, int]) -> DepthMap:
        """What is known of the depth (H, W) of the image called `name`; `size` is its height and width.

        Raises:
            InputError: no map, an unreadable one, one of another size, or unknown depths that are not to be filled.
        """
        if self.folder is None:
            found = np.full(size, self.constant_m, np.float64)
        else:
            found = self._map(self.folder, name)
            if found.shape != size:
                (height, width), (high, wide) = size, found.shape
                raise InputError(f"the depth map has {wide} x {high} pixels, the image {width} x {height}")
            unknown = found.size - np.count_nonzero(found)
            if unknown and self.densify is None:
                raise InputError(
                    f"the depth of {unknown} of {found.size} pixels is unknown, 0 in the map",
                    hint="--densify fills them, by a method that you choose",
                )
        height, width = found.shape
        digest = hashlib.sha256(f"{height} {width} metres float64\n".encode())
        digest.update(np.ascontiguousarray(found, "<f8").data)
        return DepthMap(found, digest.hexdigest())

    def _map(self, folder: Path, name: str) -> Metres:
        try:
            return depth_map(folder, name, self.scale)
        except InputError as error:  # where an image is the subject, it must be said that this is another file
            which = "" if "depth map" in error.message else "depth map: "
            raise InputError(f"{which}{error.message}", error.place, error.hint) from None

    def filled(self, found: DepthMap) -> Metres:
        """The depth of every pixel.

        Raises:
            InputError: no depth is known at all.
        """
        return found.depth_m if self.densify is None else densify(found.depth_m, self.densify)

    @property
    def record(self) -> DepthRecord:
        """For documents."""
        folder = None if self.folder is None else self.folder.name
        return DepthRecord(folder, self.constant_m, None if self.folder is None else self.scale, self.densify)
