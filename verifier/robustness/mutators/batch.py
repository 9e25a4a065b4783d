"""Mutating files: every image under every mutation, written as PNG, one folder for each mutation.

What cannot be read, does not fit a mutation, or cannot be written under its name is listed, and the batch goes on. A
full disk ends it: that will not get better. Equal inputs, mutations and seeds give equal files, in any order and with
any number of workers. Each file is written all or nothing.
"""

import errno
import io
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from verifier.base.blocks import HERE, Pool
from verifier.base.errors import InputError, Place, UsageError, one_line
from verifier.base.files import write_bytes
from verifier.base.libraries import library
from verifier.perception.confusion.choices import default_measure
from verifier.robustness.detectors.protocol import read_image
from verifier.robustness.detectors.run import image_digest
from verifier.robustness.mutators.annotations import MovedBoxes, write_coco
from verifier.robustness.mutators.batch_result import (
    BatchSettings,
    ImageDepth,
    ImageResult,
    MutatedFile,
    MutatedImage,
    MutateFailure,
    folder_name,
)
from verifier.robustness.mutators.frames import (
    DepthMap,
    DepthSource,
    Frame,
    GuessedDepths,
    Pixels,
    check_pixels,
    guessed_depths,
)
from verifier.robustness.mutators.imagefiles import ImageFile
from verifier.robustness.mutators.mutation import AnyMutation, apply, generator_for, needs_depth

RESULT_FILE = "mutate.json"
"""The list of what was made, in the folder of outputs."""
COMPRESSION = 3
"""Of PNG, 0 to 9: twice as fast as the usual 6 and a few per cent larger."""
HOPELESS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""Errors after which no later file could be written either."""


class DiskFullError(InputError):
    """A file cannot be written, and no other could be."""


def png_bytes(pixels: Pixels) -> bytes:
    """The image as the bytes of a PNG file."""
    stream = io.BytesIO()
    library("PIL.Image").fromarray(pixels).save(stream, "PNG", compress_level=COMPRESSION)
    return stream.getvalue()


def write_output(path: Path, data: bytes) -> None:
    """Write a file and the folders above it.

    Raises:
        DiskFullError: see `HOPELESS`.
        InputError: this one file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, data)
    except OSError as error:
        raise _failure(error, f"the folder cannot be made: {error.strerror}", path.parent) from None
    except InputError as error:
        raise _failure(error.__context__, error.message, path) from None


def _failure(cause: BaseException | None, message: str, path: Path) -> InputError:
    if isinstance(cause, OSError) and cause.errno in HOPELESS:
        hint = "what is there is whole; make room, and run it again"
        return DiskFullError(message, Place(str(path)), hint)
    return InputError(message, Place(str(path)))


Progress: TypeAlias = Callable[[Iterable[ImageResult], int], Iterable[ImageResult]]


def mutate_files(
    images: Sequence[ImageFile],
    settings: BatchSettings,
    folder: Path,
    progress: Progress | None = None,
    workers: Pool = HERE,
) -> tuple[ImageResult, ...]:
    """Write every image under every mutation to `folder`/MUTATION/NAME.png, and annotations beside (`annotations`).

    The list of an earlier batch goes: it must not stand beside images that it is not of.

    Args:
        images: with unique names.
        settings: what is done.
        folder: where to; made if it is not there.
        progress: wraps the results as they come in, with their number.
        workers: who works; elsewhere than here they see the same files.

    Returns:
        One result for each image, in their order.

    Raises:
        InputError: the disk is full or cannot be written at all (files already written are whole).
        UsageError: an output would overwrite an input; a library is missing.
    """
    _check_places(images, settings, folder)
    try:
        (folder / RESULT_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot be replaced: {error.strerror}", Place(str(folder / RESULT_FILE))) from None
    coming = workers.map(partial(_image, settings, folder), images)
    results = tuple(coming if progress is None else progress(coming, len(images)))
    if settings.annotations is not None:
        for number, mutation in enumerate(settings.mutations):
            moved = [moved for result in results for which, moved in result.moved if which == number]
            if moved:
                data, sizes = settings.annotations.moved(moved), {boxes.name: boxes.size for boxes in moved}
                ids = settings.annotations.ids_of(moved), settings.annotations.category_ids
                write_coco(folder / folder_name(mutation), data, sizes, default_measure(data), False, *ids)
    return results


def _image(settings: BatchSettings, folder: Path, image: ImageFile) -> ImageResult:
    """One image under all mutations."""
    try:
        with warnings.catch_warnings():
            # Pillow warns of sizes that `read_image` refuses.
            warnings.simplefilter("ignore", library("PIL.Image").DecompressionBombWarning)
            read = read_image(image.path)
            check_pixels(read.pixels)
            digest = image_digest(read)
    except InputError as error:
        failure = MutateFailure(None, _reason(error))
        return ImageResult(MutatedImage(image.name, image.path.name, None, None, None, (), (failure,)))
    annotated, boxes = settings.annotations, None
    if annotated is not None and not annotated.knows(image.name):
        # Images that nobody labelled must not go among those without objects.
        reason = "the annotations have no frame of this image"
        lost = tuple(MutateFailure(number, reason) for number in range(len(settings.mutations)))
        return ImageResult(MutatedImage(image.name, image.path.name, read.size, digest, None, (), lost))
    if annotated is not None:
        boxes = annotated.boxes(image.name)
    scene = _Scene(image, Frame(read.pixels, None, boxes), settings.depth)
    outputs, failures, moved = [], [], []
    for number, mutation in enumerate(settings.mutations):
        try:
            output, after = _made(scene, number, mutation, settings, folder)
        except DiskFullError:
            raise
        except (InputError, ValueError) as error:
            failures.append(MutateFailure(number, _reason(error)))
            continue
        outputs.append(output)
        if annotated is not None:
            moved.append((number, MovedBoxes.of(f"{image.name}.png", image.name, after)))
    read_depth = scene.depth_if_read(settings.mutations)
    depth = None if read_depth is None else ImageDepth(read_depth.sha256, read_depth.known, scene.guessed())
    record = MutatedImage(image.name, image.path.name, read.size, digest, depth, tuple(outputs), tuple(failures))
    return ImageResult(record, tuple(moved))


@dataclass(frozen=True, eq=False)
class _Scene:
    """One image, and its depth once it is asked for."""

    image: ImageFile
    plain: Frame
    source: DepthSource | None

    @cached_property
    def depth(self) -> DepthMap:
        """What is known of the depth; an InputError where it cannot be used."""
        assert self.source is not None  # the settings are checked
        return self.source.read(self.image.name, self.plain.size)

    @cached_property
    def deep(self) -> Frame:
        """The image with the depth of every pixel."""
        assert self.source is not None  # the settings are checked
        return replace(self.plain, depth_m=self.source.filled(self.image.name, self.depth.depth_m))

    def depth_if_read(self, mutations: Iterable[AnyMutation]) -> DepthMap | None:
        """What is known of the depth, where a mutation needs it and it can be read."""
        try:
            return self.depth if any(map(needs_depth, mutations)) else None
        except InputError:
            return None

    def guessed(self) -> tuple[GuessedDepths, ...]:
        """How much of it is a guess, by distance; empty where all depths are known, or cannot be filled."""
        assert self.source is not None  # the settings are checked
        try:
            full = self.deep.depth_m if self.source.guesses else None
        except InputError:
            return ()
        return () if full is None else guessed_depths(self.depth.depth_m, full)


def _made(
    scene: _Scene, number: int, mutation: AnyMutation, settings: BatchSettings, folder: Path
) -> tuple[MutatedFile, Frame]:
    """The file of one image under one mutation, and the frame after it."""
    path = f"{folder_name(mutation)}/{scene.image.name}.png"
    before = scene.deep if needs_depth(mutation) else scene.plain  # a bad depth map must not stop the others
    after = apply(mutation, before, generator_for(settings.seed, scene.image.name, mutation))
    data = png_bytes(after.pixels)
    write_output(folder / path, data)
    return MutatedFile(number, path, sha256(data).hexdigest()), after


def _reason(error: InputError | ValueError) -> str:
    """What is wrong, in one line; where it is wrong the image's name says, without folders."""
    if isinstance(error, InputError):
        return one_line(error.message + (f"; {error.hint}" if error.hint else ""))
    return one_line(str(error))


def _check_places(images: Sequence[ImageFile], settings: BatchSettings, folder: Path) -> None:
    base = folder.resolve()
    inputs = {path for image in images if (path := image.path.resolve()).is_relative_to(base)}
    for mutation in settings.mutations if inputs else ():
        for image in images:
            if (base / folder_name(mutation) / f"{image.name}.png").resolve() in inputs:
                raise UsageError(f"{folder / folder_name(mutation) / image.name}.png is an input of this batch")
