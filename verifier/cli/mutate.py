"""The command `verify mutate`: read, mutate, write and print. Nothing is computed here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from verifier.base.errors import ExitCode, InputError, Place, UsageError, one_line, shown, unknown_name
from verifier.base.files import write_bytes, write_text
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.terminal import is_watched
from verifier.perception.detections.depth import UNITS_PER_M
from verifier.perception.detections.given import LARGEST_M
from verifier.provenance import installed_versions, program_versions
from verifier.robustness.mutators import PUBLISHED, AnyMutation, parse_mutation, parse_sweep, published
from verifier.robustness.mutators.annotations import read_annotations
from verifier.robustness.mutators.batch import mutate_files
from verifier.robustness.mutators.batch_result import BatchResult, BatchSettings, ImageResult, folder_name
from verifier.robustness.mutators.imagefiles import DepthSource, image_files
from verifier.robustness.mutators.published import GROUPS
from verifier.robustness.mutators.sheet import contact_sheet
from verifier.robustness.settings import MutateSettings
from verifier.telling.mutate import left_over_note, mutate_table, shown_mutations

RESULT_FILE = "mutate.json"
PACKAGES = ("opencv-python-headless", "opencv-python", "pillow")
ANNOTATION_OUTPUTS = ("annotations.csv", "annotations.json", "labels")


def mutate_command(arguments: MutateSettings, command: Command) -> int:
    """Run `verify mutate` and give its exit code: 4 if anything could not be made."""
    mutations = _mutations(arguments)
    if arguments.show:
        print(shown_mutations(mutations), end="")
        return int(ExitCode.SATISFIED)
    _check_given(arguments)
    images = image_files(arguments.images)
    settings = BatchSettings(
        mutations,
        _depth(arguments),
        None if arguments.annotations is None else read_annotations(arguments.annotations),
        arguments.seed,
        arguments.jobs,
        arguments.resume,
        tuple(({**program_versions(), **installed_versions(PACKAGES)}).items()),
    )
    folder = Path(arguments.output or "")
    _check_folder(arguments, settings, folder)
    _check_sheet(arguments, folder, [each.path for each in images])
    _make(folder)
    earlier = _files_of(settings, folder)
    results = mutate_files(images, settings, folder, _Start(folder / RESULT_FILE))
    result = BatchResult(results, settings)
    sheet = None if arguments.sheet is None else contact_sheet(images, results, settings, folder)
    document = with_provenance(result.json_text(), command)
    write_text(folder / RESULT_FILE, document)
    if sheet is not None and arguments.sheet is not None:
        write_bytes(arguments.sheet, sheet)
    left = _left_over(earlier, result, folder)
    if arguments.json:
        print(document, end="")
        if left:
            print(f"verify: note: {one_line(left_over_note(left, folder))}", file=sys.stderr)
    else:
        print(mutate_table(result, folder, RESULT_FILE, left), end="")
    return int(ExitCode.BAD_INPUT if result.failures else ExitCode.SATISFIED)


def _check_given(arguments: MutateSettings) -> None:
    """Refuse what is missing or empty: an empty path, as of a variable not set, would be the working folder."""
    if not arguments.images:
        raise UsageError("no image is named: verify mutate IMAGES --mutation MUTATION -o FOLDER")
    for name in ("output", "depth", "annotations", "sheet"):
        if getattr(arguments, name) == "":
            raise UsageError(f"--{name}: the path is empty")
    if arguments.output is None:
        raise UsageError("name the folder to write to: -o FOLDER")


def _mutations(arguments: MutateSettings) -> tuple[AnyMutation, ...]:
    """Every mutation asked for, each once."""
    found: list[AnyMutation] = [parse_mutation(text) for text in arguments.mutation]
    for text in arguments.sweep:
        found += parse_sweep(text)
    for text in arguments.list:
        found += _listed(text)
    return tuple(dict.fromkeys(found))


def _listed(text: str) -> Iterable[AnyMutation]:
    name, _, group = text.partition(":")
    if name not in PUBLISHED:
        message, hint = unknown_name("list", name, PUBLISHED)
        raise UsageError(f"--list: {message}\n  hint: {hint}")
    for known in GROUPS:
        if known == (group or "any"):
            try:
                return published(name, known)
            except ValueError as error:
                raise UsageError(f"--list: {error}") from None
    raise UsageError(f"--list: expected a group of {', '.join(GROUPS)}, got {shown(group)}")


def _depth(arguments: MutateSettings) -> DepthSource | None:
    folder, constant = arguments.depth, arguments.depth_constant
    if folder is not None and constant is not None:
        raise UsageError("--depth and --depth-constant: give one of them")
    if folder is None and (arguments.densify is not None or arguments.depth_scale is not None):
        raise UsageError("--densify and --depth-scale go with --depth FOLDER")
    if constant is not None:
        if not 0 < constant <= LARGEST_M:
            raise UsageError(f"--depth-constant: expected metres above 0 and up to {LARGEST_M:g}, got {constant:g}")
        return DepthSource(constant_m=constant)
    if folder is None:
        return None
    if not Path(folder).is_dir():
        raise InputError("no such folder", Place(folder))
    scale = UNITS_PER_M if arguments.depth_scale is None else arguments.depth_scale
    if not 0 < scale < float("inf"):
        raise UsageError(f"--depth-scale: expected a positive number, got {scale:g}")
    return DepthSource(Path(folder), scale=scale, densify=arguments.densify)


def _check_folder(arguments: MutateSettings, settings: BatchSettings, folder: Path) -> None:
    """Refuse a folder where outputs would overwrite annotations or be taken for images by the next run."""
    target = folder.resolve()
    for each in arguments.images:
        if Path(each).is_dir() and target.is_relative_to(Path(each).resolve()):
            raise UsageError(
                f"the folder to write to, {folder}, is or lies in the folder of images {each}: the next run would "
                "take mutated images for images\n  hint: write to a folder beside it"
            )
    for path in (arguments.annotations, arguments.depth):
        given = None if path is None else Path(path).resolve()
        for mutation in settings.mutations:
            written = target / folder_name(mutation)
            if given in {written, *(written / name for name in ANNOTATION_OUTPUTS)}:
                raise UsageError(f"{path} is an input and would be written to")


def _check_sheet(arguments: MutateSettings, folder: Path, inputs: list[Path]) -> None:
    """A sheet may go into the folder of outputs before that is made, but not where a mutation writes."""
    if arguments.sheet is None:
        return
    target = Path(arguments.sheet)
    if target.suffix.lower() != ".png":
        raise UsageError("--sheet: expected a file name ending in .png")
    above, outputs = target.absolute().parent.resolve(), folder.resolve()
    if above != outputs and (target.is_dir() or not above.is_dir()):
        raise InputError("cannot be written: no such folder, or a folder itself", Place(arguments.sheet))
    if above != outputs and above.is_relative_to(outputs):
        raise UsageError(f"--sheet: {target} lies among the mutated images; put it in {folder} or elsewhere")
    if target.exists() and any(target.samefile(path) for path in inputs):
        raise UsageError(f"--sheet: {target} is an input of this run")
    for each in (*arguments.images, arguments.depth):
        if each is not None and Path(each).is_dir() and above.is_relative_to(Path(each).resolve()):
            raise UsageError(f"--sheet: {target} lies in {each}, where the next run would take it for an input")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder cannot be made: {error.strerror}", Place(str(folder))) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError("the folder cannot be written to: no permission", Place(str(folder)))


def _files_of(settings: BatchSettings, folder: Path) -> dict[str, int]:
    """The files that earlier runs left in the folders of these mutations: path below `folder`, and inode."""
    found = {}
    for mutation in settings.mutations:
        for path in (folder / folder_name(mutation)).rglob("*"):
            if path.is_file():
                found[path.relative_to(folder).as_posix()] = path.stat().st_ino
    return found


def _left_over(earlier: dict[str, int], result: BatchResult, folder: Path) -> list[str]:
    """Those of `earlier` that this run neither wrote nor kept; what is written gets a new inode."""
    of_this_run = {output.path for output in result.outputs}
    still = (path for path in earlier if path not in of_this_run and (folder / path).exists())
    return sorted(path for path in still if (folder / path).stat().st_ino == earlier[path])


@dataclass(frozen=True)
class _Start:
    """What happens when the first image is begun: the list of an earlier run goes, and a bar shows on a terminal.

    A list must not stand beside images that it is not of, as it would after an interruption.
    """

    listed: Path

    def __call__(self, results: Iterable[ImageResult], count: int) -> Iterator[ImageResult]:
        try:
            self.listed.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"cannot be replaced: {error.strerror}", Place(str(self.listed))) from None
        if not is_watched():
            yield from results
            return
        from tqdm import tqdm

        yield from tqdm(results, desc="images", total=count, leave=False, delay=0.5)
