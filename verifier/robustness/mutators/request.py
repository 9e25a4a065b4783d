"""What `verify mutate` asks for, from its settings: which mutations, of which images, and the files of them.

mutations = chosen_mutations(settings)
result = mutated(settings)       every image under every mutation, as files in a folder
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from verifier.base.blocks import HERE, Pool
from verifier.base.errors import InputError, Place, UsageError, unknown_error
from verifier.base.files import make_folder
from verifier.perception.detections.depth import UNITS_PER_M
from verifier.perception.detections.distances import LARGEST_M
from verifier.robustness.mutators.annotations import (
    ANNOTATIONS_FILE,
    AnnotationFiles,
    Annotations,
    read_annotations,
)
from verifier.robustness.mutators.batch import Progress, mutate_files
from verifier.robustness.mutators.batch_result import BatchSettings, MutateResult, folder_name, mutate_result
from verifier.robustness.mutators.frames import DepthSource, Sky
from verifier.robustness.mutators.imagefiles import ImageFile, image_files
from verifier.robustness.mutators.mutation import AnyMutation
from verifier.robustness.mutators.sweeps import PUBLISHED, parse_mutation, parse_sweep, published
from verifier.robustness.settings import MutateSettings
from verifier.study.provenance import installed_versions, program_versions

PACKAGES = ("opencv-python-headless", "opencv-python", "pillow")
"""What images are read and changed with, under the names it is installed by."""
OF_MAPS = ("densify", "sky", "depth_scale", "depth_inverse")


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
        if not 0 < constant <= LARGEST_M:
            raise UsageError(f"--depth-constant: expected metres above 0 and up to {LARGEST_M:g}, got {constant:g}")
        return DepthSource(constant_m=constant)
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
