"""Mutating files: every image under every mutation, written as PNG, one folder for each mutation.

What cannot be read, does not fit a mutation, or cannot be written under its name is listed, and the batch goes on. A
full disk ends it: that will not get better. Equal inputs, mutations and seeds give equal files, in any order and with
any number of workers.

Each file carries a key of everything it was made from, and is written all or nothing. By the key an interrupted batch
finds again what it already made, and does not take a file for its own that was made with another seed, from another
depth map or by another version.
"""

import errno
import hashlib
import io
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import numpy as np

from verifier.base.blocks import HERE, Pool
from verifier.base.errors import InputError, Place, UsageError, one_line, shown
from verifier.base.files import write_bytes
from verifier.base.libraries import library
from verifier.robustness.detectors.protocol import read_image
from verifier.robustness.detectors.run import image_digest
from verifier.robustness.mutators.batch_result import (
    BatchSettings,
    ImageDepth,
    ImageResult,
    MutatedFile,
    MutatedImage,
    MutateFailure,
    folder_name,
)
from verifier.robustness.mutators.coco_annotations import Moved
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
from verifier.robustness.mutators.mutation import (
    AnyMutation,
    apply,
    generator_for,
    is_random,
    moves_boxes,
    needs_depth,
)

COMPRESSION = 3
"""Of PNG, 0 to 9: twice as fast as the usual 6 and a few per cent larger."""
KEYWORD = "verifier.mutate"
"""Of the text in a PNG file that holds its key."""
HOPELESS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""Errors after which no later file could be written either."""


class DiskFullError(InputError):
    """A file cannot be written, and no other could be."""


def output_key(mutation: AnyMutation, inputs: tuple[str, str], seed: int, name: str, programs: str) -> str:
    """The SHA-256 of what a file is made from; `inputs` are the digests of the image and of its depth ("" if none).

    Seed and name of the image count where something is drawn.
    """
    drawn = [seed, name] if is_random(mutation) else []
    parts = [mutation.document(), *inputs, drawn, programs]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def png_bytes(pixels: Pixels, key: str | None = None) -> bytes:
    """The image as the bytes of a PNG file, with a key if there is one."""
    info = library("PIL.PngImagePlugin").PngInfo()
    if key is not None:
        info.add_text(KEYWORD, key)
    stream = io.BytesIO()
    library("PIL.Image").fromarray(pixels).save(stream, "PNG", compress_level=COMPRESSION, pnginfo=info)
    return stream.getvalue()


def kept_bytes(path: Path, key: str) -> bytes | None:
    """The bytes of the file if it is whole, by its checksums, and has this key."""
    images = library("PIL.Image")
    try:
        raw = path.read_bytes()
        with images.open(io.BytesIO(raw), formats=("PNG",)) as opened:
            own_key = opened.info.get(KEYWORD)
            opened.verify()
    except (OSError, SyntaxError, ValueError, EOFError, images.DecompressionBombError):
        return None
    return raw if own_key == key else None


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
        hint = "what is there is whole; with --resume another run goes on from it"
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

    Args:
        images: with unique names.
        settings: what is done.
        folder: where to; made if it is not there.
        progress: wraps the results as they come in, with their number.
        workers: who works; elsewhere than here they see the same files, and `settings.jobs` plays no part.

    Returns:
        One result for each image, in their order.

    Raises:
        InputError: the disk is full or cannot be written at all (files already written are whole); annotations of
            other images only.
        UsageError: an output would overwrite an input; a library is missing.
    """
    _check_places(images, settings, folder)
    _check_annotations(images, settings)
    with warnings.catch_warnings(), ThreadPoolExecutor(settings.jobs) as pool:
        # Pillow warns of sizes that `read_image` refuses; the filter is for all threads, and so set once, here.
        warnings.simplefilter("ignore", library("PIL.Image").DecompressionBombWarning)
        coming: Iterable[ImageResult] = _in_order(pool, images, settings, folder)
        if not workers.is_here:
            coming = workers.map(partial(_image_elsewhere, settings, folder), images)
        results = tuple(coming if progress is None else progress(coming, len(images)))
    if settings.annotations is not None:
        for number, mutation in enumerate(settings.mutations):
            moved = [moved for result in results for which, moved in result.moved if which == number]
            for path, text in settings.annotations.files(moved) if moved else ():
                write_output(folder / folder_name(mutation) / path, text.encode())
    return results


def _in_order(
    pool: ThreadPoolExecutor, images: Sequence[ImageFile], settings: BatchSettings, folder: Path
) -> Iterator[ImageResult]:
    """The results as the images are named, with at most a few of them waiting; the first error ends it."""
    ahead = 2 * settings.jobs
    waiting = [pool.submit(_image, image, settings, folder) for image in images[:ahead]]
    try:
        for number in range(len(images)):
            result = waiting.pop(0).result()
            if number + ahead < len(images):
                waiting.append(pool.submit(_image, images[number + ahead], settings, folder))
            yield result
    finally:
        for task in waiting:
            task.cancel()


def _image_elsewhere(settings: BatchSettings, folder: Path, image: ImageFile) -> ImageResult:
    warnings.simplefilter("ignore", library("PIL.Image").DecompressionBombWarning)
    return _image(image, settings, folder)


def _image(image: ImageFile, settings: BatchSettings, folder: Path) -> ImageResult:
    """One image under all mutations."""
    try:
        with _enough_memory():
            read = read_image(image.path)
            check_pixels(read.pixels)
            digest = image_digest(read)
    except InputError as error:
        failure = MutateFailure(None, _reason(error))
        return ImageResult(MutatedImage(image.name, image.path.name, None, None, None, (), (failure,)))
    try:
        boxes = None if settings.annotations is None else settings.annotations.boxes_of(image.name, read.size)
    except InputError as error:  # images that nobody labelled must not go among those without objects
        lost = tuple(MutateFailure(number, _reason(error)) for number in range(len(settings.mutations)))
        return ImageResult(MutatedImage(image.name, image.path.name, read.size, digest, None, (), lost))
    scene = _Scene(image, Frame(read.pixels, None, boxes), digest, settings.depth)
    outputs, failures, kept, moved = [], [], [], []
    for number, mutation in enumerate(settings.mutations):
        try:
            with _enough_memory():
                output, after, is_kept = _made(scene, number, mutation, settings, folder)
        except DiskFullError:
            raise
        except (InputError, ValueError) as error:
            failures.append(MutateFailure(number, _reason(error)))
            continue
        outputs.append(output)
        kept += [output.path] if is_kept else []
        if after.boxes is not None and after.kept is not None:
            moved.append((number, Moved(image.name, read.size, after.size, after.kept, after.boxes)))
    read_depth = scene.depth_if_read(settings.mutations)
    depth = None if read_depth is None else ImageDepth(read_depth.sha256, read_depth.known, scene.guessed())
    record = MutatedImage(image.name, image.path.name, read.size, digest, depth, tuple(outputs), tuple(failures))
    return ImageResult(record, tuple(kept), tuple(moved))


@dataclass(frozen=True, eq=False)
class _Scene:
    """One image, its digest, and its depth once it is asked for."""

    image: ImageFile
    plain: Frame
    digest: str
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

    @property
    def depth_key(self) -> str:
        """What the depth is made from."""
        assert self.source is not None  # the settings are checked
        filled = ""
        if self.source.sky is not None:  # a mask is one more file, a horizon one more number
            filled = hashlib.sha256(np.ascontiguousarray(self.deep.depth_m, "<f8").data).hexdigest()
        return f"{self.depth.sha256} {self.source.densify}{filled}"

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
) -> tuple[MutatedFile, Frame, bool]:
    """The file of one image under one mutation, the frame after it (before it, for a file that is kept), and whether
    it is kept."""
    depth = scene.depth_key if needs_depth(mutation) else ""
    programs = repr(sorted(settings.programs))
    key = output_key(mutation, (scene.digest, depth), settings.seed, scene.image.name, programs)
    path = f"{folder_name(mutation)}/{scene.image.name}.png"
    still = scene.plain.boxes is None or not moves_boxes(mutation)
    if settings.resume and still:
        raw = kept_bytes(folder / path, key)
        if raw is not None:
            return MutatedFile(number, path, sha256(raw).hexdigest()), scene.plain, True
    before = scene.deep if needs_depth(mutation) else scene.plain  # a bad depth map must not stop the others
    after = apply(mutation, before, generator_for(settings.seed, scene.image.name, mutation))
    data = png_bytes(after.pixels, key)
    write_output(folder / path, data)
    return MutatedFile(number, path, sha256(data).hexdigest()), after, False


@contextmanager
def _enough_memory() -> Iterator[None]:
    """A large image for which there is no room must not end a batch of others."""
    hint = "fewer images at the same time, --jobs, need less"
    try:
        yield
    except MemoryError:
        raise InputError("not enough memory", hint=hint) from None
    except library("cv2").error as error:
        if error.code != library("cv2").Error.StsNoMem:
            raise
        raise InputError("not enough memory", hint=hint) from None


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


def _check_annotations(images: Sequence[ImageFile], settings: BatchSettings) -> None:
    """Refuse annotations that know none of the images: they are called otherwise there."""
    known = settings.annotations
    if known is None or not known.frames or any(known.knows(image.name) for image in images):
        return
    raise InputError(
        f"the annotations know no image of this batch: its first is called {shown(images[0].name)}, theirs "
        f"{shown(min(known.frames))}",
        hint="an image is called by its path below the folder that is named, without suffix",
    )
