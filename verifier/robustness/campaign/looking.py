"""Images mutated and put through detectors, some at a time, by whoever works.

A block is some images under one condition, and what a detector reports in them is a pure function of it: the same
under any number of workers, and kept in the same cache. Workers see the same files under the same names.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from verifier.base.blocks import HERE, Pool
from verifier.base.budget import Cache
from verifier.base.errors import InputError, Place, UsageError
from verifier.base.files import make_folder, write_bytes
from verifier.perception.confusion.choices import default_measure
from verifier.perception.detections import ClassMap
from verifier.perception.detections.columns import DetectionSet
from verifier.robustness.campaign.definition import DataFiles, DetectorChoice
from verifier.robustness.campaign.scenes import Scenes, open_scenes
from verifier.robustness.detectors import Detector, Image, run_detectors, with_detections
from verifier.robustness.detectors.protocol import Detections
from verifier.robustness.detectors.run import DetectorRun, identity_digest
from verifier.robustness.mutators import AnyMutation, Frame, apply, needs_depth
from verifier.robustness.mutators.annotations import MovedBoxes, write_coco
from verifier.robustness.mutators.batch import png_bytes


def check_new(path: Path, hint: str | None = None) -> None:
    """Refuse what is no folder, and a folder that holds something or cannot be read; InputError."""
    if path.exists() and not path.is_dir():
        raise InputError("the folder cannot be made: it is a file", Place(str(path)))
    try:
        full = path.is_dir() and any(path.iterdir())
    except OSError as error:
        raise InputError(f"the folder cannot be read: {error.strerror}", Place(str(path))) from None
    if full:
        message = "expected a new or empty folder: old files would mix with those that are made"
        raise InputError(message, Place(str(path)), hint)


def check_outside(option: str, target: Path, inputs: Path) -> None:
    """Refuse a folder for outputs that lies in one of inputs; UsageError."""
    if target.resolve().is_relative_to(inputs.resolve()):
        raise UsageError(f"{option}: {target} lies in {inputs}, a folder of inputs, which would change")


def new_folder(path: Path) -> None:
    """Make a folder, or take one that is empty.

    Raises:
        InputError: it cannot be made, or holds something.
    """
    check_new(path)
    make_folder(path)


Progress: TypeAlias = Callable[[Any, str], Iterable[Any]]
"""Wraps a list for a progress bar: the list, and what its items are called."""
BATCH, BATCHES = 8, 2
"""Images that a detector sees at a time, and how many times make a block."""
_OPENED = Cache(2)


def no_progress(items: Any, what: str) -> Iterable[Any]:
    """The items, and no bar."""
    iterable: Iterable[Any] = items
    return iterable


def mutated_frame(frame: Frame, mutation: AnyMutation, rng: np.random.Generator, path: Path) -> Frame:
    """The frame under a mutation; what does not fit is an InputError that names the image."""
    try:
        return apply(mutation, frame, rng)
    except (InputError, ValueError) as error:
        message, hint = (error.message, error.hint) if isinstance(error, InputError) else (str(error), None)
        raise InputError(f"{mutation.text}: {message}", Place(str(path)), hint) from None


@dataclass(frozen=True)
class Opened:
    """The images, and the detectors that look at them."""

    scenes: Scenes
    detectors: tuple[Detector, ...]


@dataclass(frozen=True)
class Sources:
    """What images and detectors are opened from, on another machine too.

    Attributes:
        folder: where paths start from.
        key: what the images are of, for messages.
        identities: of the detectors (`identity_digest`), as they are here.
        command: of one command; another one opens the files again.
    """

    data: DataFiles
    folder: Path
    key: str
    choices: tuple[DetectorChoice, ...]
    identities: tuple[str, ...]
    command: str = field(default_factory=secrets.token_hex)

    def opened(self) -> Opened:
        """The images and detectors; InputError where the detectors are others than here."""
        return _OPENED.kept(repr(self), self._open)

    def _open(self) -> Opened:
        detectors = tuple(choice.opened(self.folder) for choice in self.choices)
        for choice, detector, identity in zip(self.choices, detectors, self.identities, strict=True):
            if identity_digest(detector.identity) != identity:
                hint = "workers need the same files under the same names, and the same libraries"
                raise InputError("this worker has another detector", Place(choice.file or choice.kind), hint)
        return Opened(open_scenes(self.data, self.folder, self.key), detectors)


@dataclass(frozen=True)
class Condition:
    """Under what images are looked at.

    Attributes:
        mutation: None for the images as they are.
        seed: of what is drawn: the same under every mutation, so that conditions differ by these and not by the draw.
        cache: folder where detections are kept; None for none.
        images: folder for the images; None where they are not kept.
    """

    mutation: AnyMutation | None
    seed: int
    cache: Path | None = None
    images: Path | None = None


Block: TypeAlias = tuple[str, int, int]
"""The name of a condition, the number of the first image, and one past that of the last."""


@dataclass(frozen=True)
class Seen:
    """What was seen in the images of a block: their boxes, and of each detector detections and digests by image."""

    moved: tuple[MovedBoxes, ...]
    runs: tuple[tuple[dict[str, Detections], dict[str, str]], ...]


def looked(opened: Callable[[], Opened], conditions: Mapping[str, Condition], block: Block) -> Seen:
    """Mutate the images of a block and put them through every detector.

    Raises:
        InputError: an image cannot be read, does not fit the mutation, or a file cannot be written.
    """
    ready, (name, first, end) = opened(), block
    condition = conditions[name]
    scenes, mutation, moved = ready.scenes, condition.mutation, list[MovedBoxes]()

    def images() -> Iterator[Image]:
        for number, name in enumerate(tuple(scenes.files)[first:end], first):
            frame = scenes.frame(name, deep=mutation is not None and needs_depth(mutation))
            if mutation is not None:
                rng = np.random.default_rng([condition.seed, 3, number])
                frame = mutated_frame(frame, mutation, rng, scenes.files[name])
            own = name if condition.images is None else f"{Path(name).stem}.png"
            moved.append(MovedBoxes.of(own, name, frame))
            if condition.images is not None:
                write_bytes(condition.images / own, png_bytes(frame.pixels))
            yield Image(own, frame.pixels)

    runs = run_detectors(ready.detectors, images(), condition.cache, BATCH)
    return Seen(tuple(moved), tuple((dict(run.detections), dict(run.digests)) for run in runs))


def look(
    ready: Opened, conditions: Mapping[str, Condition], sources: Sources | None = None, pool: Pool = HERE
) -> Iterator[tuple[str, int, list[Seen] | None]]:
    """Look at all images under all conditions.

    Args:
        ready: the images and detectors here.
        sources: what others open them from; not asked for where `pool` is this process.
        pool: who works.

    Returns:
        For each block that is done its condition, how many images it had, and, where it was the last one of the
        condition, what was seen in all blocks, in their order.

    Raises:
        InputError: as `looked`.
    """
    size = BATCH * BATCHES
    firsts = range(0, len(ready.scenes.files), size)
    blocks = [(name, first, first + size) for name in conditions for first in firsts]
    opened = (lambda: ready) if pool.is_here or sources is None else sources.opened
    done: dict[str, dict[int, Seen]] = {}
    for place, seen in (pool if sources is not None else HERE).results(partial(looked, opened, conditions), blocks):
        name, first, _ = blocks[place]
        own = done.setdefault(name, {})
        own[first] = seen
        whole = [own[first] for first in firsts] if len(own) == len(firsts) else None
        if whole is not None:
            del done[name]
        yield name, len(seen.moved), whole


def reported(
    ready: Opened,
    to: Sequence[tuple[ClassMap | None, Path]],
    blocks: Sequence[Seen],
    measure: Callable[[DetectionSet], str | None] = default_measure,
) -> list[DetectionSet]:
    """What each detector reports under one condition, written into its folder.

    Args:
        ready: the images and detectors.
        to: the class map and an existing folder of each detector.
        blocks: what was seen in all images, in their order.
        measure: of the distances that are written.

    Raises:
        InputError: a file cannot be written.
    """
    moved = [boxes for block in blocks for boxes in block.moved]
    annotated = ready.scenes.annotated
    if annotated is None:
        raise ValueError("no annotations")
    truth, ids = annotated.moved(moved), annotated.ids_of(moved)
    sizes, detections = {boxes.name: boxes.size for boxes in moved}, list[DetectionSet]()
    for at, (detector, (class_map, folder)) in enumerate(zip(ready.detectors, to, strict=True)):
        rows, digests = dict[str, Detections](), dict[str, str]()
        for block in blocks:
            rows |= block.runs[at][0]
            digests |= block.runs[at][1]
        run = DetectorRun(tuple(detector.classes), detector.identity, rows, digests)
        detections.append(with_detections(truth, run, class_map))
        write_coco(folder, detections[-1], sizes, measure(detections[-1]), True, ids, annotated.category_ids)
    return detections


@dataclass(frozen=True)
class Looking:
    """A detector that looks at the images under one condition after the other."""

    ready: Opened
    class_map: ClassMap | None
    sources: Sources | None = None
    pool: Pool = field(default_factory=Pool)
    progress: Progress = no_progress

    def at(
        self, condition: Condition, folder: Path, measure: Callable[[DetectionSet], str | None] = default_measure
    ) -> DetectionSet:
        """What it reports, written into a folder; errors as `looked` and `reported`."""
        steps = look(self.ready, {"": condition}, self.sources, self.pool)
        seens = list[Seen]()
        for _ in self.progress(tuple(self.ready.scenes.files)[:: BATCH * BATCHES], "blocks of images"):
            _, _, whole = next(steps)
            seens = seens if whole is None else whole
        return reported(self.ready, [(self.class_map, folder)], seens, measure)[0]
