"""What `verify mutate` asks for, from its settings: which mutations, of which images, and the files of them.

mutations = chosen_mutations(settings)
result = mutated(settings)       every image under every mutation, as files in a folder
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from verifier.base.blocks import HERE, Pool
from verifier.base.errors import InputError, Place, UsageError, one_line, unknown_error
from verifier.base.files import ending_of, make_folder
from verifier.base.libraries import library
from verifier.perception.detections.depth import UNITS_PER_M
from verifier.perception.detections.distances import LARGEST_M
from verifier.robustness.detectors.protocol import read_image
from verifier.robustness.mutators.annotations import read_annotations
from verifier.robustness.mutators.batch import Progress, mutate_files, png_bytes
from verifier.robustness.mutators.batch_result import BatchResult, BatchSettings, ImageResult, folder_name
from verifier.robustness.mutators.frames import DepthSource, Pixels, Sky
from verifier.robustness.mutators.imagefiles import ImageFile, image_files
from verifier.robustness.mutators.mutation import AnyMutation
from verifier.robustness.mutators.sweeps import PUBLISHED, parse_mutation, parse_sweep, published
from verifier.robustness.settings import MutateSettings
from verifier.study.provenance import installed_versions, program_versions

RESULT_FILE = "mutate.json"
"""The list of what was made, in the folder of outputs."""
PACKAGES = ("opencv-python-headless", "opencv-python", "pillow")
"""What images are read and changed with, under the names it is installed by."""
OF_MAPS = ("densify", "sky", "depth_scale", "depth_inverse")
ANNOTATION_OUTPUTS = ("annotations.csv", "annotations.json", "labels")


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


def mutated(settings: MutateSettings, progress: Progress | None = None, workers: Pool = HERE) -> BatchResult:
    """Write every image under every mutation to the folder `settings.output`; the list of an earlier run goes.

    The new list and the contact sheet are left to the caller.

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
        None if settings.annotations is None else read_annotations(settings.annotations),
        settings.seed,
        settings.jobs,
        settings.resume,
        tuple(({**program_versions(), **installed_versions(PACKAGES)}).items()),
    )
    folder = Path(settings.output or "")
    _check_folder(settings, batch, folder)
    _check_sheet(settings, folder, images)
    make_folder(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError("the folder cannot be written to: no permission", Place(str(folder)))
    earlier = _files_of(batch, folder)

    def begun(results: Iterable[ImageResult], count: int) -> Iterator[ImageResult]:
        # A list must not stand beside images that it is not of, as it would after an interruption.
        try:
            (folder / RESULT_FILE).unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"cannot be replaced: {error.strerror}", Place(str(folder / RESULT_FILE))) from None
        yield from results if progress is None else progress(results, count)

    results = mutate_files(images, batch, folder, begun, workers)
    sheet = None if settings.sheet is None else contact_sheet(images, results, batch, folder)
    return BatchResult(results, batch, _left_over(earlier, results, folder), sheet)


def _check_paths(settings: MutateSettings) -> None:
    """Refuse what is missing or empty: an empty path, as of a variable not set, would be the working folder."""
    if not settings.images:
        raise UsageError("no image is named: verify mutate IMAGES --mutation MUTATION -o FOLDER")
    for name in ("output", "depth", "annotations", "sheet"):
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
            if source in {written, *(written / name for name in ANNOTATION_OUTPUTS)}:
                raise UsageError(f"{path} is an input and would be written to")


def _check_sheet(settings: MutateSettings, folder: Path, images: Sequence[ImageFile]) -> None:
    """A sheet may go into the folder of outputs before that is made, but not where a mutation writes."""
    if settings.sheet is None:
        return
    target = Path(settings.sheet)
    ending_of("--sheet", target, (".png",))
    above, outputs = target.absolute().parent.resolve(), folder.resolve()
    if above != outputs and (target.is_dir() or not above.is_dir()):
        raise InputError("cannot be written: no such folder, or a folder itself", Place(settings.sheet))
    if above != outputs and above.is_relative_to(outputs):
        raise UsageError(f"--sheet: {target} lies among the mutated images; put it in {folder} or elsewhere")
    if target.exists() and any(target.samefile(image.path) for image in images):
        raise UsageError(f"--sheet: {target} is an input of this run")
    for named in (*settings.images, settings.depth):
        if named is not None and Path(named).is_dir() and above.is_relative_to(Path(named).resolve()):
            raise UsageError(f"--sheet: {target} lies in {named}, where the next run would take it for an input")


def _files_of(batch: BatchSettings, folder: Path) -> dict[str, int]:
    """The files that earlier runs left in the folders of these mutations: path below `folder`, and inode."""
    inodes = {}
    for mutation in batch.mutations:
        for path in (folder / folder_name(mutation)).rglob("*"):
            if path.is_file():
                inodes[path.relative_to(folder).as_posix()] = path.stat().st_ino
    return inodes


def _left_over(earlier: dict[str, int], results: Sequence[ImageResult], folder: Path) -> tuple[str, ...]:
    """Those of `earlier` that this run neither wrote nor kept; what is written gets a new inode."""
    of_this_run = {output.path for result in results for output in result.record.outputs}
    still = (path for path in earlier if path not in of_this_run and (folder / path).exists())
    return tuple(sorted(path for path in still if (folder / path).stat().st_ino == earlier[path]))


MOST_ROWS, MOST_COLUMNS = 8, 49
CELL_PX, CAPTION_PX, GAP_PX = 320, 14, 4
"""Of a picture's width and, three times as much, its height; of the caption's height; between pictures."""
A_LINE = 6
"""Pictures beside each other; the mutations of one image take as many lines as they need."""
BOX_COLOUR = (255, 220, 0)


def contact_sheet(
    images: Sequence[ImageFile], results: Sequence[ImageResult], settings: BatchSettings, folder: Path
) -> bytes:
    """The PNG file: the first `MOST_ROWS` images, each with up to `MOST_COLUMNS` - 1 mutations, captions and boxes.

    All pictures of an image have the same scale. Pictures are made smaller by averaging, which hides noise and blur
    of a pixel or less; a mutation that could not be applied to an image is left out there. An image that the
    annotations do not know has no boxes.

    Raises:
        InputError: a file has gone since it was written.
    """
    blocks = []
    shown = [pair for pair in zip(images, results, strict=True) if pair[1].record.size is not None][:MOST_ROWS]
    for image, result in shown:
        plain = read_image(image.path).pixels
        scale = min(1.0, CELL_PX / plain.shape[1], 3 * CELL_PX / plain.shape[0])
        moved = dict(result.moved)
        cells = [_cell(image.name, plain, _boxes(image.name, result, settings), scale)]
        for output in result.record.outputs[: MOST_COLUMNS - 1]:
            boxes = moved[output.mutation].boxes if output.mutation in moved else None
            caption = settings.mutations[output.mutation].text
            cells.append(_cell(caption, read_image(folder / output.path).pixels, boxes, scale))
        blocks.append(_block(cells))
    width = max((block.shape[1] for block in blocks), default=CELL_PX)
    padded = [_padded(block, block.shape[0] + GAP_PX, width) for block in blocks]
    return png_bytes(np.vstack(padded) if padded else np.full((CAPTION_PX, CELL_PX, 3), 255, np.uint8))


def _boxes(name: str, result: ImageResult, settings: BatchSettings) -> NDArray[np.float64] | None:
    """The boxes of an image before any mutation."""
    if settings.annotations is None or result.record.size is None:
        return None
    try:
        return settings.annotations.boxes_of(name, result.record.size)
    except InputError:
        return None  # that is among the failures


def _block(cells: Sequence[Pixels]) -> Pixels:
    """The pictures of one image, `A_LINE` beside each other."""
    lines = []
    for first in range(0, len(cells), A_LINE):
        line = cells[first : first + A_LINE]
        tall = max(cell.shape[0] for cell in line)
        lines.append(np.hstack([_padded(cell, tall, cell.shape[1] + GAP_PX) for cell in line]))
    wide = max(line.shape[1] for line in lines)
    return np.vstack([_padded(line, line.shape[0], wide) for line in lines])


def _padded(picture: Pixels, height: int, width: int) -> Pixels:
    """The picture on white, at the upper left."""
    more = ((0, height - picture.shape[0]), (0, width - picture.shape[1]), (0, 0))
    return np.pad(picture, more, constant_values=255)


def _cell(caption: str, pixels: Pixels, boxes: NDArray[np.float64] | None, scale: float) -> Pixels:
    """(h, `CELL_PX`, 3): the caption above the picture at this scale."""
    images, drawing = library("PIL.Image"), library("PIL.ImageDraw")
    picture = images.fromarray(pixels)
    if scale < 1:
        size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        picture = picture.resize(size, images.BOX)
    pen = drawing.Draw(picture)
    for left, top, right, bottom in () if boxes is None else (boxes * scale).tolist():
        pen.rectangle((left, top, max(left, right - 1), max(top, bottom - 1)), outline=BOX_COLOUR)
    cell = images.new("RGB", (CELL_PX, picture.height + CAPTION_PX), "white")
    text = one_line(caption).encode("ascii", "replace").decode().replace(":", ": ")  # the font hides a colon at a t
    drawing.Draw(cell).text((2, 1), text[: CELL_PX // 6], fill="black")
    cell.paste(picture, (0, CAPTION_PX))
    return np.asarray(cell)
