"""Making the target data set that a plan describes: images, and a table of which came from which.

The target folder gets one PNG per planned image, `000017_NAME.png` for number 17 from the source image NAME, and,
last, `pairs.csv` with the columns `target`, `source` and `circumstances`: a folder that has it is complete.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.errors import InputError, Place
from verifier.robustness.assessment.datasets import PAIRS_FILE
from verifier.robustness.assessment.plan import Plan, PlannedImage
from verifier.robustness.assessment.transformations import Plain
from verifier.robustness.detectors.images import read_image
from verifier.robustness.libraries import library
from verifier.textfiles import write_bytes, write_text

Pixels = NDArray[np.uint8]
Mutate: TypeAlias = Callable[[Pixels, str, Mapping[str, Plain], np.random.Generator], Pixels]
"""What applies a mutation by name: image (H, W, 3), name, parameters, randomness -> image (H, W, 3)."""
Progress: TypeAlias = Callable[[list[PlannedImage]], Iterable[PlannedImage]]


def make_follow_up(plan: Plan, source: Path, target: Path, mutate: Mutate, progress: Progress = iter) -> int:
    """Make every image of the plan; the mutations of an image are applied in their order, with its own seed.

    Args:
        plan: its source names are files of `source`.
        source: folder of the source images.
        target: an existing folder without images.
        mutate: applies one mutation.
        progress: wraps the list of images, for a progress bar.

    Returns:
        How many images were made.

    Raises:
        InputError: a source image cannot be read, a mutation does not fit it, or the folder cannot be written to or
            holds images already.
        UsageError: the library that writes images is missing.
    """
    place = Place(str(target))
    if not target.is_dir():
        raise InputError("no such folder", place)
    if any(target.iterdir()):
        raise InputError("expected an empty folder: what is in it would count as follow-up test cases", place)
    digits = max(6, len(str(len(plan.images))))
    rows = []
    for each in progress(list(plan.images)):
        name = f"{each.number:0{digits}d}_{Path(each.source).stem}.png"
        write_bytes(target / name, _png(_mutated(each, source, mutate)))
        rows.append((name, each.source, "; ".join(each.circumstances)))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([("target", "source", "circumstances"), *rows])
    write_text(target / PAIRS_FILE, stream.getvalue())
    return len(rows)


def _mutated(each: PlannedImage, source: Path, mutate: Mutate) -> Pixels:
    path = source / each.source
    pixels = read_image(path).pixels
    rng = np.random.default_rng([each.seed[0], 2, each.seed[1]])
    for name, parameters in each.mutations:
        try:
            pixels = mutate(pixels, name, parameters, rng)
        except ValueError as error:
            raise InputError(f"{name}: {error}", Place(str(path))) from None
    return pixels


def _png(pixels: Pixels) -> bytes:
    stream = io.BytesIO()
    library("PIL.Image").fromarray(pixels).save(stream, format="PNG")
    return stream.getvalue()
