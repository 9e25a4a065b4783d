"""The types of a confusion document: what its JSON Schema says, and what a report takes it for.

`counts[i][j]` is the number of items with predicted label i and true label j. A column sums to the items of one true
label. Bins are half-open, sorted, without gaps; the distance is that of the true object. In a family over score
thresholds, `counts[t][i][j]` belongs to threshold t. Version 2 adds the tracks of sequences, remarks, counts by
context, and tests of dependence combined over merged files; a file that has none of them is of version 1.

People write these files: whoever counts with them reads them by `document_reader`, which says what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from verifier.base.documents import Count, Limits, Magnitude, MisfitError, Share, read_document
from verifier.base.errors import InputError, Place, shown
from verifier.perception.confusion.bins import Scope
from verifier.perception.confusion.contexts import Kind, OfTracks, ReplayTest, ResidualTest
from verifier.perception.confusion.data_set import DataSetRecord
from verifier.perception.confusion.document_dependence import Dependence
from verifier.perception.confusion.matrices import LARGEST_COUNT
from verifier.perception.settings import FalsePositiveCounting, Gaps, Labelling, Units


@dataclass(frozen=True)
class ClassPrecision:
    """Average precision of one class; `sequences` in the order of those of the document. None without an object.

    Attributes:
        lower, upper: percentile interval; None without one.
    """

    label: str
    objects: Count
    value: Share | None
    lower: Share | None
    upper: Share | None
    sequences: tuple[Share | None, ...] = ()

    def __post_init__(self) -> None:
        if (self.value is None) != (self.objects == 0):
            raise MisfitError(["value"], f"expected {'a number' if self.objects else 'null'}")
        if (self.lower is None) != (self.upper is None) or (self.lower or 0) > (self.upper or 0):
            raise MisfitError(["lower"], "expected both ends of an interval, or none")


@dataclass(frozen=True)
class AveragePrecision:
    """Of all classes.

    Attributes:
        unit: what was drawn again; frames of a drive resemble each other: by frame, intervals are too narrow.
    """

    unit: Literal["drive", "frame"]
    level: Share
    draws: Annotated[int, Limits(ge=1)]
    seed: Count
    classes: tuple[ClassPrecision, ...]


def read_average_precision(told: Any, document: Mapping[str, Any], file: str) -> AveragePrecision:
    """What a document of matrices says of average precision.

    Raises:
        InputError: it is none, names a class that the matrices do not have, or has not one value for each sequence.
    """
    path = "/average_precision"
    average_precision = read_document(AveragePrecision, told, file, path)
    labels = [label if isinstance(label, list) else [label] for label in document["labels"]]
    for number, precision in enumerate(average_precision.classes):
        place = Place(file, path=f"{path}/classes/{number}")
        if not any(precision.label in label for label in labels):
            raise InputError(f"the matrices have no class {shown(precision.label)}", place)
        if len(precision.sequences) not in (0, len(document.get("sequences", ()))):
            raise InputError("expected one value for each sequence, or none", place)
    return average_precision


ClassName = Annotated[str, Limits(min_length=1)]
Metres = Annotated[float, Limits(ge=0, le=1e9)]
Range = tuple[float | None, float | None]
"""[low, high); None at an end is infinite."""
Matrix = Annotated[
    tuple[Annotated[tuple[Annotated[int, Limits(ge=0, le=LARGEST_COUNT)], ...], Limits(min_length=1)], ...],
    Limits(min_length=1),
]


@dataclass(frozen=True)
class NumberVariable:
    """A further variable of the bins that is a number; its edges increase, and None at an end is infinite."""

    name: Annotated[str, Limits(pattern=r"^[A-Za-z_]\w*$")]
    of: Scope
    edges: Annotated[tuple[float | None, ...], Limits(min_length=2)]


@dataclass(frozen=True)
class TextVariable:
    """A further variable of the bins that is a text: bin -> values that fall into it; * and ? stand for others."""

    name: Annotated[str, Limits(pattern=r"^[A-Za-z_]\w*$")]
    of: Scope
    values: Mapping[str, Annotated[tuple[str, ...], Limits(min_length=1)]]


@dataclass(frozen=True)
class TracksRecord:
    """A sequence counted by track: a track contributes to each predicted label of a column the share of its frames in
    that column reported so. An object without a track is a track of one frame.

    Bin None stands for all bins of that axis together, where a track counts once; every such sum is given. In all
    sequences or in none, class-labelled only, without column empty.

    Attributes:
        columns: rows [bin of distance, bin of each variable, true, tracks]: how many have frames in that column.
        shares: rows [bin of distance, bin of each variable, predicted, true, share]; in a family one share per score
            threshold. The shares of a column add up to its tracks.
    """

    columns: tuple[Annotated[tuple[Count | None, ...], Limits(min_length=3)], ...]
    shares: tuple[Annotated[tuple[Magnitude | None, ...], Limits(min_length=4)], ...]


@dataclass(frozen=True)
class SequenceRecord:
    """One drive or scene; its counts are rows [bin, predicted, true, count], in a family one count per threshold.

    Where the document has contexts the rows are [bin, context, predicted, true, count]; the number of a context is
    its place in the list of all, `untracked` the last.
    """

    name: str
    frames: Count
    counts: tuple[Annotated[tuple[Count, ...], Limits(min_length=4)], ...]
    tracks: TracksRecord | None = None


@dataclass(frozen=True)
class ContextsRecord:
    """What the counts by context may remember of an object: outcomes of the frames before. Version 2.

    Attributes:
        kind: run: the length of the run of equal outcomes, up to `cap`. last: the last `cap` outcomes.
        of: an outcome is whether the report was right.
        gaps: what frames of a track without an annotation do: begin again, keep the context, or count as wrong.
        period_s: seconds from frame to frame.
        units: what the sequences of the document are, if not those of the data.
        tests: of class-labelled matrices with one score threshold.
        tracks: of class-labelled matrices with one score threshold, by class.
        replays: on the tracks that were counted, as `verify confusion replay --into` adds them.
    """

    kind: Literal["run", "last"]
    cap: Annotated[int, Limits(ge=1, le=50)]
    of: Literal["outcome"]
    gaps: Gaps
    period_s: Annotated[float, Limits(gt=0, le=1e6)] | None = None
    units: Units | None = None
    tests: tuple[ResidualTest, ...] = ()
    tracks: Mapping[str, OfTracks] | None = None
    replays: tuple[ReplayTest, ...] = ()


@dataclass(frozen=True)
class LikelihoodRatio:
    """The e-value of a class in favour of a richer context function, see `context_selection.log10_e_value`."""

    label: str
    against: str
    log10_e: float


@dataclass(frozen=True, kw_only=True)
class UsedContexts:
    """What a result says of the contexts that a detector remembers: as the file says it, and their tests.

    Attributes:
        kind, cap, of, gaps, period_s, units, tracks: as in `ContextsRecord`; contexts of errors that persist, too.
        used: the context function by its name; tests, replays: of this one.
        e_values: against all contexts that the file counts.
    """

    kind: Kind
    cap: Count
    of: Literal["outcome"]
    gaps: Gaps
    period_s: Annotated[float, Limits(gt=0, le=1e6)] | None = None
    units: Units | None = None
    tracks: Mapping[str, OfTracks] | None = None
    used: str
    tests: tuple[ResidualTest, ...]
    e_values: tuple[LikelihoodRatio, ...]
    replays: tuple[ReplayTest, ...]


@dataclass(frozen=True)
class BinRecord:
    """One bin.

    Attributes:
        distance_m: [low, high); high is None in a last bin without end.
        counts: the matrix; in a family one per score threshold.
        where: of each further variable the bin: its name, or its range.
        contexts: the same by context, with `untracked` for items without a track; they add up to `counts`.
    """

    distance_m: tuple[Metres, Metres | None]
    counts: Matrix | Annotated[tuple[Matrix, ...], Limits(min_length=1)]
    where: Mapping[str, str | Range] | None = None
    contexts: Mapping[str, Matrix | Annotated[tuple[Matrix, ...], Limits(min_length=1)]] | None = None


@dataclass(frozen=True)
class LocalisationRecord:
    """Items that were reported, by the distance bins in which they were reported and in which they truly are.

    `counts[i][j]` belongs to reported bin i and true bin j.
    """

    axes: tuple[Literal["reported"], Literal["true"]]
    counts: Matrix


@dataclass(frozen=True)
class RemarkRecord:
    """What a reader of the numbers must know of the data."""

    kind: str
    text: str


@dataclass(frozen=True, kw_only=True)
class ConfusionDocument:
    """Confusion matrices by distance.

    Attributes:
        labelling: class: one item per object. group: one item per group of objects that act as one. proposition: one
            item per frame and bin, labelled with the set of classes present. Column empty of class and group: one
            item per frame and bin without an object.
        score_thresholds: increasing; a detection takes part where its score is at least the threshold.
        variables: distance changes slowest, the last variable fastest. Column empty is equal in all bins of a
            variable of objects.
        sequences: counts of each sequence; they add up to the counts of the bins.
        distance: how it was measured, in words or as an object.
        matching: the policy that decided which detection explains which object.
        false_positives: whether unmatched detections are in the column of the empty label; dropped if absent.
        grouping: which objects act as one.
        score_threshold: the member of a family that these matrices are.
        where: the bins of further variables to which these matrices are restricted.
        totals: numbers of frames, annotations and detections, and what became of them.
        dependence: in a family one entry per score threshold.
        localisation: errors of reported distances, the same for all classes.
        average_precision: AP of each class under the same matching. Version 2.
        data_set: what is stated of the test data, and which verdicts were drawn from them. Version 2.
        source: where the numbers come from: files with hashes, tool, command, or a publication.
    """

    schema: ClassVar[str] = "verifier.confusion"
    version: Literal[1, 2]
    command: tuple[str, ...] = ()
    versions: Mapping[str, str] | None = None
    title: str = ""
    labelling: Labelling
    axes: tuple[str, ...]
    labels: Annotated[tuple[ClassName | tuple[ClassName, ...], ...], Limits(min_length=1)]
    score_thresholds: Annotated[tuple[float, ...], Limits(min_length=1)] = ()
    variables: tuple[NumberVariable | TextVariable, ...] = ()
    distance: Any = None
    matching: Any = None
    false_positives: FalsePositiveCounting | None = None
    grouping: Any = None
    score_threshold: Any = None
    where: Any = None
    totals: Any = None
    source: Any = None
    localisation: LocalisationRecord | None = None
    average_precision: AveragePrecision | None = None
    dependence: Dependence | Annotated[tuple[Dependence, ...], Limits(min_length=1)] | None = None
    data_set: DataSetRecord | None = None
    remarks: tuple[RemarkRecord, ...] = ()
    notes: Any = None
    contexts: ContextsRecord | None = None
    bins: Annotated[tuple[BinRecord, ...], Limits(min_length=1)]
    sequences: Annotated[tuple[SequenceRecord, ...], Limits(min_length=1)] = ()

    @classmethod
    def rules(cls) -> Mapping[str, object]:
        """What the JSON Schema says beyond the types."""
        return {"allOf": [_LABELS, _FAMILY, _FIRST_VERSION], "properties": {"labels": {"uniqueItems": True}}}


_LABELS: Mapping[str, object] = {
    "if": {"properties": {"labelling": {"enum": ["class", "group"]}}},
    "then": {"properties": {"labels": {"items": {"type": "string"}, "contains": {"const": "empty"}}}},
    "else": {
        "properties": {
            "labels": {
                "items": {"type": "array", "uniqueItems": True, "items": {"not": {"const": "empty"}}},
                "contains": {"maxItems": 0},
            }
        }
    },
}
"""Class- and group-labelled matrices have names for labels, the others sets of names; all have the empty one."""
_FAMILY: Mapping[str, object] = {
    "if": {"required": ["score_thresholds"]},
    "then": {
        "properties": {"axes": {"const": ["score_threshold", "predicted", "true"]}, "dependence": {"type": "array"}}
    },
    "else": {"properties": {"axes": {"const": ["predicted", "true"]}, "dependence": {"type": "object"}}},
}
_TESTS_BY_BIN: Mapping[str, object] = {
    "type": "object",
    "required": ["classes"],
    "properties": {"classes": {"contains": {"type": "object", "required": ["bins"]}}},
}
_LATER: Mapping[str, object] = {"anyOf": [{"type": "object", "required": ["combined"]}, _TESTS_BY_BIN]}
_FIRST_VERSION: Mapping[str, object] = {
    "if": {"properties": {"version": {"const": 1}}},
    "then": {
        "properties": {
            "remarks": False,
            "contexts": False,
            "data_set": False,
            "sequences": {"items": {"properties": {"tracks": False}}},
            "dependence": {"not": {"anyOf": [_LATER, {"type": "array", "contains": _LATER}]}},
        }
    },
}
