"""What `verify mutate` asks for: every image under every mutation, written as PNG, one folder for each mutation.

What cannot be read, does not fit a mutation, or cannot be written under its name is listed, and the batch goes on. A
full disk ends it: that will not get better. Equal inputs, mutations and seeds give equal files, in any order and with
any number of workers. Each file is written all or nothing.
"""

import errno
import io
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from verifier.base.blocks import HERE, Pool
from verifier.base.errors import InputError, Place, UsageError, one_line, unknown_error
from verifier.base.files import make_folder, write_bytes
from verifier.base.libraries import library
from verifier.perception.confusion.choices import default_measure
from verifier.perception.detections.depth import UNITS_PER_M
from verifier.robustness.detectors.protocol import read_image
from verifier.robustness.detectors.run import image_digest
from verifier.robustness.mutators.annotations import (
    ANNOTATIONS_FILE,
    AnnotationFiles,
    Annotations,
    MovedBoxes,
    read_annotations,
    write_coco,
)
from verifier.robustness.mutators.batch_result import (
    RESULT_FILE,
    BatchSettings,
    ImageDepth,
    ImageResult,
    MutatedFile,
    MutatedImage,
    MutateFailure,
    MutateResult,
    folder_name,
    mutate_result,
)
from verifier.robustness.mutators.frames import (
    DepthMap,
    DepthSource,
    Frame,
    Pixels,
    Sky,
    check_pixels,
    guessed_depths,
)
from verifier.robustness.mutators.imagefiles import ImageFile, image_files
from verifier.robustness.mutators.mutation import AnyMutation, apply, generator_for, needs_depth
from verifier.robustness.mutators.sweeps import PUBLISHED, parse_mutation, parse_sweep, published
from verifier.robustness.settings import MutateSettings
from verifier.study.provenance import installed_versions, program_versions

PACKAGES = ("opencv-python-headless", "opencv-python", "pillow")
"""What images are read and changed with, under the names it is installed by."""
OF_MAPS = ("densify", "sky", "depth_scale", "depth_inverse")
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


def chosen_mutations(settings: MutateSettings) -> tuple[AnyMutation, ...]:
    """Every mutation asked for, each once.

    Raises:
        UsageError: a mutation, sweep or list that there is not.
    """
    mutations: list[AnyMutation] = [parse_mutation(text) for text in settings.mutation]
    for text in settings.sweep:
        mutations += parse_sweep(text)
    for text in settings.preset:
        mutations += _listed(text)
    return tuple(dict.fromkeys(mutations))


def mutated(settings: MutateSettings, progress: Progress | None = None, workers: Pool = HERE) -> MutateResult:
    """Write every image under every mutation to the folder `settings.output`; the list of an earlier run goes.

    The new list is left to the caller.

    Args:
        settings: of `verify mutate`; `show` and `json` play no part.
        progress: wraps the results as they come in, with their number.
        workers: who works, see `mutate_files`.

    Raises:
        UsageError: choices that do not go together, an output that would overwrite an input or be taken for one.
        InputError: images, annotations or depth maps that cannot be read, a folder that cannot be written to.
    """
    mutations = chosen_mutations(settings)
    _check_paths(settings)
    images = image_files(settings.images)
    batch = BatchSettings(
        mutations,
        _depth(settings),
        None if settings.annotations is None else _annotations(settings.annotations, images),
        settings.seed,
        tuple(({**program_versions(), **installed_versions(PACKAGES)}).items()),
    )
    folder = Path(settings.output or "")
    _check_folder(settings, batch, folder)
    make_folder(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError("the folder cannot be written to: no permission", Place(str(folder)))
    return mutate_result(batch, mutate_files(images, batch, folder, progress, workers))


def left_over(result: MutateResult, folder: Path) -> list[str]:
    """The files in the folders of the mutations that earlier batches left there, by their paths below `folder`."""
    made = {output.path for output in result.outputs}
    if result.settings.annotations is not None:
        made |= {f"{mutation.folder}/{ANNOTATIONS_FILE}" for mutation in result.mutations}
    files = (
        path for mutation in result.mutations for path in (folder / mutation.folder).rglob("*") if path.is_file()
    )
    return sorted({path.relative_to(folder).as_posix() for path in files} - made)


def _annotations(path: str, images: Sequence[ImageFile]) -> Annotations:
    """The annotations of the images; a frame may be called with or without the suffix of its image."""
    called = {image.name: image.name for image in images}
    called |= {f"{image.name}{image.path.suffix}": image.name for image in images}
    return read_annotations(AnnotationFiles.recognised(path), Path(), called, partly=True)


def _check_paths(settings: MutateSettings) -> None:
    """Refuse what is missing or empty: an empty path, as of a variable not set, would be the working folder."""
    if not settings.images:
        raise UsageError("no image is named: verify mutate IMAGES --mutation MUTATION -o FOLDER")
    for name in ("output", "depth", "annotations"):
        if getattr(settings, name) == "":
            raise UsageError(f"--{name}: the path is empty")
    if settings.output is None:
        raise UsageError("name the folder to write to: -o FOLDER")


def _listed(text: str) -> Iterable[AnyMutation]:
    name, _, group = text.partition(":")
    if name not in PUBLISHED:
        raise unknown_error("preset", name, PUBLISHED, "--preset: ")
    try:
        return published(name, group or "any")
    except ValueError as error:
        raise UsageError(f"--preset: {error}") from None


def _depth(settings: MutateSettings) -> DepthSource | None:
    folder, constant = settings.depth, settings.depth_constant
    if folder is not None and constant is not None:
        raise UsageError("--depth and --depth-constant: give one of them")
    if folder is None and any(getattr(settings, name) is not None for name in OF_MAPS):
        raise UsageError("--densify, --sky, --depth-scale and --depth-inverse go with --depth FOLDER")
    if constant is not None:
        try:
            return DepthSource(constant_m=constant)
        except ValueError as error:
            raise UsageError(f"--depth-constant: {error}") from None
    if folder is None:
        return None
    if not Path(folder).is_dir():
        raise InputError("no such folder", Place(folder))
    scale = UNITS_PER_M if settings.depth_scale is None else settings.depth_scale
    if not 0 < scale < float("inf"):
        raise UsageError(f"--depth-scale: expected a positive number, got {scale:g}")
    try:
        sky = None if settings.sky is None else Sky.of(settings.sky)
    except ValueError as error:
        raise UsageError(f"--sky: {error}") from None
    if sky is not None and sky.masks is not None and not sky.masks.is_dir():
        raise InputError("no such folder", Place(str(sky.masks)))
    return DepthSource(Path(folder), scale=scale, densify=settings.densify, inverse=settings.depth_inverse, sky=sky)


def _check_folder(settings: MutateSettings, batch: BatchSettings, folder: Path) -> None:
    """Refuse a folder where outputs would overwrite annotations or be taken for images by the next run."""
    target = folder.resolve()
    for named in settings.images:
        if Path(named).is_dir() and target.is_relative_to(Path(named).resolve()):
            raise UsageError(
                f"the folder to write to, {folder}, is or lies in the folder of images {named}: the next run would "
                "take mutated images for images\n  hint: write to a folder beside it"
            )
    for path in (settings.annotations, settings.depth):
        source = None if path is None else Path(path).resolve()
        for mutation in batch.mutations:
            written = target / folder_name(mutation)
            if source in (written, written / ANNOTATIONS_FILE):
                raise UsageError(f"{path} is an input and would be written to")


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
    annotated, boxes, reason = settings.annotations, None, ""
    if annotated is not None and not annotated.knows(image.name):
        reason = "the annotations have no frame of this image"  # which must not go among those without objects
    elif annotated is not None and (said := annotated.sizes.get(image.name, read.size)) != read.size:
        (high, wide), (height, width) = said, read.size
        reason = f"an image of {width} x {height} pixels; its annotations are of one of {wide} x {high}"
    if reason:
        lost = tuple(MutateFailure(number, reason) for number in range(len(settings.mutations)))
        return ImageResult(MutatedImage(image.name, image.path.name, read.size, digest, None, (), lost))
    if annotated is not None:
        boxes = annotated.boxes(image.name)
    plain = Frame(read.pixels, None, boxes)
    known, deep = _with_depth(settings, image, plain)
    outputs, failures, moved = [], [], []
    for number, mutation in enumerate(settings.mutations):
        try:
            before = deep if needs_depth(mutation) else plain  # a bad depth map must not stop the others
            if isinstance(before, InputError):
                raise before
            after = apply(mutation, before, generator_for(settings.seed, image.name, mutation))
            data, path = png_bytes(after.pixels), f"{folder_name(mutation)}/{image.name}.png"
            write_output(folder / path, data)
        except DiskFullError:
            raise
        except (InputError, ValueError) as error:
            failures.append(MutateFailure(number, _reason(error)))
            continue
        outputs.append(MutatedFile(number, path, sha256(data).hexdigest()))
        if annotated is not None:
            moved.append((number, MovedBoxes.of(f"{image.name}.png", image.name, after)))
    depth = None
    if known is not None and settings.depth is not None:
        full = deep.depth_m if settings.depth.guesses and isinstance(deep, Frame) else None
        guessed = () if full is None else guessed_depths(known.depth_m, full)
        depth = ImageDepth(known.sha256, known.known, guessed)
    record = MutatedImage(image.name, image.path.name, read.size, digest, depth, tuple(outputs), tuple(failures))
    return ImageResult(record, tuple(moved))


def _with_depth(
    settings: BatchSettings, image: ImageFile, plain: Frame
) -> tuple[DepthMap | None, Frame | InputError]:
    """What is known of the depth, where a mutation needs it and it can be read; and the image with the depth of every
    pixel, or why there is none."""
    if settings.depth is None or not any(map(needs_depth, settings.mutations)):
        return None, plain
    known = None
    try:
        known = settings.depth.read(image.name, plain.size)
        return known, replace(plain, depth_m=settings.depth.filled(image.name, known.depth_m))
    except InputError as error:
        return known, error


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
