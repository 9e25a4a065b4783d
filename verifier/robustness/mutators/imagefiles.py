"""The image files of a batch: which they are, what they are called, and how sparse depth is made dense.

An image is called by its path below the folder that was named, or by its file name, without suffix and with `/`
between folders: that is its frame name, where its depth map and annotations are looked for, and where its mutated
image is put.

Dense depth from sparse: every pixel of unknown depth gets one, by a named method.

Projected LiDAR knows the depth of one pixel in twenty, and of none above its top beam. What stands between is a
guess, and haze and defocus look like it; the method is part of the result. Interpolation is done in the inverse of
the depth: on a plane, and so on a road or a wall, 1 / D is a linear function of the pixel, which D is not.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt
from scipy.spatial import Delaunay

from verifier.base.arrays import Floats
from verifier.base.errors import InputError, LimitError, Place, UsageError, shown
from verifier.perception.detections.distances import LARGEST_M
from verifier.perception.settings import IMAGE_SUFFIXES
from verifier.robustness.settings import Densifying

METHODS: tuple[Densifying, ...] = get_args(Densifying)
LONGEST_BRIDGE_PX = 50.0
"""Along the edge of what a LiDAR sees, longer triangles would join things that have nothing to do with each other."""
MOST_CORNERS = 1_000_000
"""Of triangles; so many take about half a minute and a gigabyte."""


def densify(depth_m: Floats, method: Densifying) -> Floats:
    """A depth map (H, W) in which every pixel has a depth; 0 in the argument means unknown. Known depths stay.

    * `nearest`: that of the nearest known pixel (Euclidean distance in the image). Above the top beam of a LiDAR it
      carries what is highest in each column on upwards, which the other does worse.
    * `linear`: 1 / D linear on each triangle of the Delaunay triangulation of the known pixels with no side longer
      than `LONGEST_BRIDGE_PX`; elsewhere that of the nearest. Where four known pixels lie on a circle, either way to
      cut it in two triangles is one.

    Raises:
        InputError: no depth is known, or one is negative or not finite.
        LimitError: `linear` and more than `MOST_CORNERS` known pixels beside unknown ones.
        UsageError: another method.
    """
    if method not in METHODS:
        raise UsageError(f"densify: expected {', '.join(METHODS)}, got {method}")
    depth = np.asarray(depth_m, np.float64)
    if depth.ndim != 2 or not ((depth >= 0) & (depth <= LARGEST_M)).all():
        raise InputError(f"expected depths from 0 to {LARGEST_M:g} m (height, width), 0 where unknown")
    known = depth > 0
    if not known.any():
        raise InputError("no pixel of the depth map has a known depth")
    if known.all():
        return depth
    filled = {"nearest": _nearest, "linear": _linear}[method](depth, known)
    return np.where(known, depth, filled)


def _nearest(depth: Floats, known: NDArray[np.bool_]) -> Floats:
    places = distance_transform_edt(~known, return_distances=False, return_indices=True)
    assert isinstance(places, np.ndarray)  # asked for alone
    return np.asarray(depth[tuple(places)])


def _linear(depth: Floats, known: NDArray[np.bool_]) -> Floats:
    filled = _nearest(depth, known)
    useful = known & ~_amid(known)
    if (count := np.count_nonzero(useful)) > MOST_CORNERS:
        raise LimitError(
            f"{count} known pixels lie beside unknown ones; at most {MOST_CORNERS} are joined to triangles",
            hint="the method nearest has no such limit",
        )
    corners = np.column_stack(np.nonzero(useful)).astype(np.float64)
    if len(corners) < 3 or np.linalg.matrix_rank(corners - corners[0]) < 2:
        return filled  # no triangle
    triangles = Delaunay(corners)
    sides = corners[triangles.simplices] - corners[np.roll(triangles.simplices, 1, axis=1)]
    short = (np.linalg.norm(sides, axis=2) <= LONGEST_BRIDGE_PX).all(axis=1)
    places = np.column_stack(np.nonzero(~known)).astype(np.float64)
    simplex = triangles.find_simplex(places)
    inside = (simplex >= 0) & short[simplex]
    row, column = places[inside].astype(int).T
    inverse = (1 / depth[useful])[triangles.simplices[simplex[inside]]]
    filled[row, column] = 1 / (inverse * _weights(triangles, simplex[inside], places[inside])).sum(axis=1)
    return filled


def _amid(known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(H, W) known pixels whose four neighbours are known, too: no triangle with such a corner holds another pixel.

    A circle through it with none of the four inside has its centre within half a pixel in row and in column, so a
    Delaunay triangle at it is half a pixel square. Without such corners all triangles that hold unknown pixels stay,
    and a dense map with a few holes takes a fraction of a second and not a minute.
    """
    amid = np.zeros_like(known)
    sides = known[:-2, 1:-1] & known[2:, 1:-1] & known[1:-1, :-2] & known[1:-1, 2:]
    amid[1:-1, 1:-1] = known[1:-1, 1:-1] & sides
    return amid


def _weights(triangles: Delaunay, which: NDArray[np.int64], places: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 3) the barycentric coordinates of each place in its triangle, not negative and of sum 1."""
    into = triangles.transform[which]
    two = np.einsum("nij,nj->ni", into[:, :2], places - into[:, 2])
    weights = np.clip(np.column_stack([two, 1 - two.sum(axis=1)]), 0, None)  # on an edge, rounding gives -1e-16
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


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
    files: list[ImageFile] = []
    for path in paths:
        files += _images(Path(path), shown_as=str(path))
        if len(files) > MOST_IMAGES:
            raise InputError(f"more than {MOST_IMAGES} images", Place(str(path)))
    if not files:
        raise UsageError("no image is named")
    owners: dict[str, Path] = {}
    for file in files:
        if not file.name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in str(file.path)):
            raise InputError("the name of this file is not UTF-8", Place(str(file.path)), "give it another name")
        first = owners.setdefault(file.name, file.path)
        if first == file.path and first is not file.path:
            raise UsageError(f"the image {first} is named twice")
        if first is not file.path:
            hint = "name the folder above both, so that names have folders in them, or mutate them apart"
            if first.parent == file.path.parent:
                hint = "their mutated images would have the same name, which ends in .png: rename one"
            raise UsageError(f"two images are called {shown(file.name)}: {first} and {file.path}\n  hint: {hint}")
    return tuple(files)


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
        return [ImageFile(file, file.relative_to(path).with_suffix("").as_posix()) for file in below]
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
    paths: list[Path] = []
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
                        paths.append(Path(entry.path))
        except OSError as error:
            raise InputError(f"the folder cannot be read: {error.strerror}", Place(here)) from None
    return paths
