"""What images are mutated, what looks at them, and what is made of what it reports, as values.

The operating point of a detector that is run is one for all data: what the detector is deployed with. It is a score,
or the loosest threshold with at most so many false positives per image on the source data, which is then kept
whatever the disturbance does (Pezzementi et al. 2018, section II-A).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, get_args

from verifier.base.arrays import Floats
from verifier.base.documents import Limits, Magnitude
from verifier.perception.confusion.bins import Bins
from verifier.perception.detections import ClassMap, read_class_map
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.matching import CONVENTIONS, MatchingPolicy
from verifier.perception.settings import EmptyColumns, Labelling, Leftover, Measure, Outside
from verifier.robustness.adr import AdrSettings, pick_thresholds
from verifier.robustness.detectors import (
    CascadePeople,
    CascadeSettings,
    Detector,
    HogPeople,
    HogSettings,
    OnnxLayout,
    open_onnx,
)
from verifier.robustness.mutators.annotations import AnnotationFiles
from verifier.robustness.mutators.frames import DepthSource

DetectorKind: TypeAlias = Literal["hog", "cascade", "onnx"]
DETECTOR_KINDS: tuple[DetectorKind, ...] = get_args(DetectorKind)
ExactShare: TypeAlias = Annotated[Fraction, Limits(ge=0, le=1)]
Positive: TypeAlias = Annotated[float, Limits(gt=0)]
MaybeInfinite: TypeAlias = Annotated[float, Limits(le=math.inf)]
"""A level, or an edge of distance: the only numbers of a file that may be infinite."""
MOST_IMAGES = 1_000_000
"""Of a data set; about a gigabyte of plan."""


@dataclass(frozen=True)
class DetectorChoice:
    """A detector, and how what it reports is judged.

    Attributes:
        kind: "hog" and "cascade" are OpenCV's people detectors, "onnx" is a network in a file.
        classes: what its labels are called; one for the people detectors.
        settings: of "hog" and "cascade".
        file: of a network, or of a cascade; a path as in the assessment file.
        layout: of a network.
        class_map: file that says which class of the annotations each class of the detector is; None: equal names.
        min_score: the operating point, if it is a score.
        false_positives_per_image: the operating point, if it is a number of those on the source images.
        iou: from which IoU on a detection of the right class is a true positive.

    Raises:
        ValueError: choices that do not fit together.
    """

    kind: DetectorKind
    classes: Annotated[tuple[str, ...], Limits(min_length=1)]
    settings: HogSettings | CascadeSettings | None = None
    file: str | None = None
    layout: OnnxLayout | None = None
    class_map: str | None = None
    min_score: Fraction | None = None
    false_positives_per_image: Annotated[Fraction, Limits(gt=0)] | None = None
    iou: ExactShare = Fraction(1, 2)

    def __post_init__(self) -> None:
        if self.kind == "onnx" and (self.file is None or self.layout is None):
            raise ValueError("a network needs its file and its layout, the tables 'input' and 'output'")
        if self.kind != "onnx" and (self.settings is None or len(self.classes) != 1):
            raise ValueError(f"the detector '{self.kind}' reports one class, and has settings")
        if self.min_score is not None and self.false_positives_per_image is not None:
            raise ValueError("give either 'min_score' or 'false_positives_per_image', not both")
        if not 0 < self.iou <= 1:
            raise ValueError("expected an IoU above 0 and up to 1")

    def opened(self, folder: Path) -> Detector:
        """The detector itself; paths start from `folder`.

        Raises:
            InputError: its file cannot be read, or is none.
            UsageError: a library is missing.
        """
        path = None if self.file is None else folder / self.file
        if isinstance(self.settings, HogSettings):
            return HogPeople(self.settings, self.classes[0])
        if isinstance(self.settings, CascadeSettings):
            return CascadePeople(path, self.settings, self.classes[0])
        if path is None or self.layout is None:
            raise ValueError("a network without file or layout")  # refused when it was made
        return open_onnx(path, self.layout, self.classes)

    def mapped(self, folder: Path) -> ClassMap | None:
        """The class map; paths start from `folder`. InputError where its file cannot be read."""
        return None if self.class_map is None else read_class_map(folder / self.class_map)

    def threshold(self, source: DetectionSet) -> float | None:
        """The lowest score that counts; None where every detection does.

        Args:
            source: annotations and detections of the source data.

        Raises:
            InputError: there are no images.
        """
        if self.false_positives_per_image is not None:
            settings = AdrSettings((float(self.false_positives_per_image),), self.policy)
            thresholds = pick_thresholds(source, settings)
            return None if thresholds.all_pass else thresholds.at_least[0]
        return None if self.min_score is None else float(self.min_score)

    @property
    def policy(self) -> MatchingPolicy:
        """How detections are matched: as COCO does at `iou`."""
        return replace(CONVENTIONS["coco"], threshold=float(self.iou))


@dataclass(frozen=True)
class DataFiles:
    """Where the images of a data set, or features of them, are; paths as in the file, from its folder.

    Attributes:
        images: a folder of images.
        features: a table of feature vectors, one row per image (.npy or .csv).
        count: the number of images, where only that is known.
        depth: of the source images, for mutations that need it; its folder as in the file.
        annotations: of the source images, for a detector that is run here.
    """

    images: str | None = None
    features: str | None = None
    count: Annotated[int, Limits(ge=1, le=MOST_IMAGES)] | None = None
    depth: DepthSource | None = None
    annotations: AnnotationFiles | None = None


@dataclass(frozen=True)
class Counting:
    """How confusion matrices and pairs are counted; see `verifier.perception.confusion.rules.CountingRule`.

    Attributes:
        edges_m: of the distance bins.
        classes: of the matrices; empty for those of the annotations.
        labelling: "class" or "proposition".
        measure: of distance; None for what the annotations have.
        unmatched: what becomes of detections that match nothing.
        outside: what becomes of objects in no bin.

    Raises:
        UsageError: edges that are none.
    """

    edges_m: Annotated[tuple[MaybeInfinite, ...], Limits(min_length=2)]
    classes: tuple[str, ...] = ()
    labelling: Labelling = "class"
    measure: Measure | None = None
    unmatched: Leftover = "drop"
    outside: Outside = "error"

    def __post_init__(self) -> None:
        Bins(self.edges_m)


@dataclass(frozen=True, kw_only=True)
class Made:
    """What was made of what a detector reports under one condition; paths of files, None for what was not wanted.

    Attributes:
        performance: metric -> value; None where it is not defined, as precision without any detection.
        drawn: metric -> (draws,) its value on images drawn from these, the same under every condition.
        confusion: file of confusion matrices.
        pairs: file of pairs of true and reported distance.
        without_pairs: whether no object has a report, so that there is no pair in `pairs`.
        curves: file of trade-off curves.
        drawn_curve: (draws, sensitivities) safety and efficiency of the curve on drawn images.
    """

    performance: Mapping[str, ExactShare | None] = field(default_factory=dict)
    drawn: Mapping[str, Floats] = field(default_factory=dict, compare=False, repr=False)
    confusion: str | None = None
    pairs: str | None = None
    without_pairs: bool = False
    curves: str | None = None
    drawn_curve: tuple[Floats, Floats] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class SystemModelRun:
    """How the requirements are checked: spec, planner, constants (`set_`), and policies as in `verify run`."""

    spec: str
    planner: str | None = None
    environments: Annotated[tuple[str, ...], Limits(min_length=1)] = ()
    set_: Mapping[str, Fraction] = field(default_factory=dict)
    empty_columns: EmptyColumns = "error"


@dataclass(frozen=True)
class CollisionLimit:
    """The probability of collision that is accepted at a reported distance and a speed.

    `lambda(y, v)` at y = `distance_m`, v = `speed_mps`, for a car that brakes with `deceleration_mps2` after
    `reaction_s`, must not exceed `at_most`.
    """

    distance_m: Positive
    speed_mps: Positive
    deceleration_mps2: Positive
    reaction_s: Magnitude
    at_most: ExactShare
