"""What is done to a batch of image files and what came of it, as values; nothing here computes or prints.

The JSON document is byte-stable: equal inputs give equal bytes. It holds no times, no absolute paths and no user
names.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from verifier.base.checksums import with_checksums
from verifier.base.documents import Count, Limits, Sha256, Share, json_values
from verifier.base.errors import UsageError
from verifier.base.numbers import fixed
from verifier.base.result import Result
from verifier.robustness.mutators.annotations import Annotations, MovedBoxes
from verifier.robustness.mutators.frames import DepthRecord, DepthSource, GuessedDepths, guessed_text
from verifier.robustness.mutators.mutation import AnyMutation, moves_boxes, needs_depth

RESULT_FILE = "mutate.json"
"""The list of what was made, in the folder of outputs."""
LONGEST_FOLDER = 120
"""Characters; a longer name of a folder is cut, and ends in a digest of the mutation."""


@dataclass(frozen=True)
class MutateSettings:
    """What was done: the seed of everything drawn, where depth came from, the format of what moved along."""

    seed: Count
    depth: DepthRecord | None
    annotations: str | None


@dataclass(frozen=True)
class AnnotationFiles:
    """The annotations that went in; images and depth maps are named one by one."""

    role: Literal["annotations"]
    name: str
    files: Annotated[int, Limits(ge=1)]
    sha256: Sha256


@dataclass(frozen=True)
class NamedMutation:
    """A mutation, as it is given to --mutation, and the folder of its images."""

    text: str
    folder: str
    mutation: AnyMutation


@dataclass(frozen=True)
class MutateCounts:
    """Numbers of images, of those that could not be read, of files (kept ones included) and of failures."""

    images: Count
    unreadable: Count
    written: Count
    failures: Count


@dataclass(frozen=True)
class ImageDepth:
    """A depth map before unknown depths are filled, the share of its pixels with one, and the guesses by distance."""

    sha256: Sha256
    known: Share
    guessed: tuple[GuessedDepths, ...] = ()


@dataclass(frozen=True)
class MutatedFile:
    """A file that was made: the number of the mutation, its path below the folder, the SHA-256 of its bytes."""

    mutation: Count
    path: str
    sha256: Sha256


@dataclass(frozen=True)
class MutateFailure:
    """What could not be made, and why; `mutation` is None where the image could not be read."""

    mutation: int | None
    message: str


@dataclass(frozen=True)
class MutatedImage:
    """What became of one image.

    Attributes:
        file: without folders.
        size: height and width.
        sha256: of height, width and pixels; None where the image could not be read.
        depth: None where none was needed or read.
    """

    name: str
    file: str
    size: tuple[Annotated[int, Limits(ge=1)], Annotated[int, Limits(ge=1)]] | None
    sha256: Sha256 | None
    depth: ImageDepth | None
    outputs: tuple[MutatedFile, ...]
    failures: tuple[MutateFailure, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class MutateResult(Result):
    """Everything that `verify mutate` did; the command names its inputs without folders."""

    schema: ClassVar[str] = "verifier.mutate"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    settings: MutateSettings
    inputs: tuple[AnnotationFiles, ...]
    versions: Mapping[str, str]
    mutations: Annotated[tuple[NamedMutation, ...], Limits(min_length=1)]
    counts: MutateCounts
    notes: tuple[str, ...]
    images: Annotated[tuple[MutatedImage, ...], Limits(min_length=1)]

    TOLD = "verifier.telling.robustness:mutate_table"
    WRITTEN = "verifier.robustness.mutators.batch_result:mutate_text"
    METRICS = ("images", "failures")

    @property
    def headline(self) -> str:
        """How many images were made and how many not."""
        return f"{self.counts.written} images made of {self.counts.images}, {self.counts.failures} failures"

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        """What whoever uses the outputs must know."""
        return self.notes

    def rows(self) -> Iterator[dict[str, str]]:
        """One row per image that was made."""
        for image in self.images:
            for made in image.outputs:
                mutation = self.mutations[made.mutation].text
                yield {"image": image.name, "mutation": mutation, "path": made.path, "sha256": made.sha256}

    def measured_rows(self) -> Iterator[dict[str, int]]:
        """How many images there are now, and how many could not be made."""
        yield {"images": self.counts.written, "failures": self.counts.failures}

    @property
    def failures(self) -> tuple[tuple[str, MutateFailure], ...]:
        """What could not be made, in order, with the name of its image."""
        return tuple((image.name, failure) for image in self.images for failure in image.failures)

    @property
    def outputs(self) -> tuple[MutatedFile, ...]:
        """All files that are there now."""
        return tuple(output for image in self.images for output in image.outputs)


def mutate_text(result: MutateResult) -> str:
    """The document as text, one line for each image."""
    document = json_values(result)
    images = document.pop("images")
    head = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    lines = ",\n".join(f"    {json.dumps(image, ensure_ascii=False, allow_nan=False)}" for image in images)
    return with_checksums(f'{head[:-2]},\n  "images": [\n{lines}\n  ]\n}}\n')


@dataclass(frozen=True)
class BatchSettings:
    """What is done to each image.

    Attributes:
        mutations: each to the unchanged image.
        depth: where depth comes from, for mutations that need it.
        annotations: what moves along, or None.
        seed: of everything that is drawn; an image's numbers depend on it, its name and the mutation alone.
        programs: what computes, with versions.

    Raises:
        UsageError: no mutation, two that would go into the same folder, or one that needs depth without any.
    """

    mutations: tuple[AnyMutation, ...]
    depth: DepthSource | None = None
    annotations: Annotations | None = None
    seed: int = 0
    programs: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.mutations:
            raise UsageError(
                "no mutation is named\n  hint: --mutation, --sweep or --preset; --show lists all there are"
            )
        seen: set[str] = set()
        for mutation in self.mutations:
            if folder_name(mutation) in seen:
                raise UsageError(f"a mutation is named twice: {mutation.text}")
            seen.add(folder_name(mutation))
        deep = [mutation.text for mutation in self.mutations if needs_depth(mutation)]
        if deep and self.depth is None:
            raise UsageError(f"{deep[0]} needs depth: give --depth FOLDER or --depth-constant METRES")
        if self.seed < 0:
            raise UsageError(f"expected a seed from 0, got {self.seed}")


@dataclass(frozen=True, eq=False)
class ImageResult:
    """What became of one image; beside its record, what is no part of the document.

    Attributes:
        moved: the boxes under each mutation that was applied, by its number.
    """

    record: MutatedImage
    moved: tuple[tuple[int, MovedBoxes], ...] = ()


def mutate_result(settings: BatchSettings, images: Sequence[ImageResult]) -> MutateResult:
    """The result of a batch, from what became of each image."""
    origin = {} if settings.annotations is None else settings.annotations.truth.origin
    depth = None if settings.depth is None else settings.depth.record
    records = tuple(image.record for image in images)
    return MutateResult(
        settings=MutateSettings(settings.seed, depth, origin.get("format")),
        inputs=tuple(AnnotationFiles(**source) for source in origin.get("sources", ())),
        versions=dict(settings.programs),
        mutations=tuple(NamedMutation(one.text, folder_name(one), one) for one in settings.mutations),
        counts=MutateCounts(
            images=len(records),
            unreadable=sum(record.size is None for record in records),
            written=sum(len(record.outputs) for record in records),
            failures=sum(len(record.failures) for record in records),
        ),
        notes=tuple(_notes(settings, images)),
        images=records,
    )


def folder_name(mutation: AnyMutation) -> str:
    """The folder of a mutation, below the folder of outputs."""
    if len(mutation.slug) <= LONGEST_FOLDER:
        return mutation.slug
    digest = hashlib.sha256(mutation.text.encode()).hexdigest()[:12]
    return f"{mutation.slug[: LONGEST_FOLDER - 13]}-{digest}"


def _notes(settings: BatchSettings, images: Sequence[ImageResult]) -> list[str]:
    notes = []
    depths = [image.record.depth for image in images if image.record.depth is not None]
    known = sorted(depth.known for depth in depths)
    if known and known[0] < 1 and settings.depth is not None:
        shares = " to ".join(dict.fromkeys(fixed(100 * share, 1) for share in (known[0], known[-1])))
        how = " and ".join(map(str, filter(None, (settings.depth.record.sky, settings.depth.densify))))
        notes.append(f"depth is known for {shares} % of an image's pixels; the rest is a guess ({how})")
        notes += filter(None, [guessed_text(depth.guessed for depth in depths)])
    if settings.annotations is None:
        return notes
    strangers = settings.annotations.strangers
    if strangers:
        frames = "1 frame that is" if strangers == 1 else f"{strangers} frames that are"
        notes.append(f"annotations of {frames} no image of this batch are left out")
    if not any(len(moved.boxes) for image in images for _, moved in image.moved):
        notes.append("no image of this batch has a box")
    if any(moves_boxes(mutation) for mutation in settings.mutations):
        notes.append("boxes in the image move along; distances are as they were")
    return notes
