"""What an assessment file says, as one value per system: circumstances, data sets, distances, tolerance."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Any

from verifier.base.documents import Limits
from verifier.base.errors import UsageError
from verifier.base.numbers import exact_text
from verifier.perception.settings import Format
from verifier.robustness.assessment.circumstances import Circumstance, Scaling
from verifier.robustness.assessment.degradation import Degradation, LevelRecipe
from verifier.robustness.assessment.measures import DatasetDistance, DistanceRule
from verifier.robustness.assessment.plan import Occurrence, Proportions
from verifier.robustness.campaign.definition import MOST_IMAGES, DataFiles, DetectorChoice
from verifier.robustness.detection_metrics import Performance


@dataclass(frozen=True)
class DetectionFiles:
    """Annotations and detections of a data set; paths as in the file, from its folder.

    Attributes:
        class_map: file of a class map, None to keep the names of the data set.
        min_score: detections below do not count for TP, FP, FN, precision and recall; None to count all.
        iou: from which IoU on a detection of the right class is a true positive.
    """

    format: Format
    annotations: str
    detections: str
    class_map: str | None = None
    min_score: Fraction | None = None
    iou: Annotated[Fraction, Limits(gt=0, le=1)] = Fraction(1, 2)


@dataclass(frozen=True)
class FollowUp:
    """How the target data set is to be drawn; see `plan.follow_up_plan`."""

    proportions: Proportions = "target"
    size: Annotated[int, Limits(ge=1, le=MOST_IMAGES)] | None = None
    seed: Annotated[int, Limits(ge=0, le=2**63 - 1)] = 0


@dataclass(frozen=True)
class DataSet:
    """A data set, source or target.

    Attributes:
        name: for people; unique among the targets.
        circumstances: names of those that it shows; all of the assessment's for a target where none are named.
        performance: what the detector achieves on it; None where nobody measured.
        distances: by name, how far it is from the source; empty for the source.
        files: where its images are.
        detections: what its performance is to be measured from; None where it is given, or not known.
    """

    name: str
    circumstances: tuple[str, ...] = ()
    performance: Performance | None = None
    distances: Mapping[str, DatasetDistance] = field(default_factory=dict)
    files: DataFiles = field(default_factory=DataFiles)
    detections: DetectionFiles | None = None


@dataclass(frozen=True)
class Sweep:
    """Target data sets made by one transformation at several settings of a parameter (Box 6).

    Raises:
        ValueError: no setting, or not one data set per setting.
    """

    name: str
    parameter: str
    settings: tuple[Fraction, ...]
    targets: tuple[DataSet, ...]

    def __post_init__(self) -> None:
        if not self.settings or len(self.settings) != len(self.targets):
            raise ValueError("expected one data set per setting")
        if len(set(self.settings)) < len(self.settings):
            raise ValueError("a setting is given twice")


@dataclass(frozen=True)
class Assessment:
    """One system and its assessment.

    Attributes:
        key: what the file calls it.
        citation: where the numbers come from.
        viewpoint: whose circumstances these are (Table 3).
        perspectives: other points of view, by name the circumstances they list.
        occurrence: whether circumstances can occur together.
        circumstances: the target circumstances, with unique names.
        metrics: the performance metrics that the verdict is over.
        rules: the distances, by name.
        sweeps: more of them, by a setting.
        follow_up: how to draw a target data set; None where none is to be drawn.
        degradation: what a growing disturbance does to the whole system; None where nobody asked.
        detector: the detector under test, where it is run here; None where its performance is given.
        samples: "use" or "source" -> file of a labelled sample, for frequencies that are not stated.
        tolerance_scaling: whether significance tightens the tolerance, beside what circumstances state.

    Raises:
        ValueError: names that are not unique or not known, frequencies of exclusive circumstances that sum to more
            than 1, or performance without one of the metrics.
    """

    key: str
    title: str
    citation: str = ""
    viewpoint: str = ""
    perspectives: Mapping[str, Annotated[tuple[str, ...], Limits(min_length=1)]] = field(default_factory=dict)
    occurrence: Occurrence = "independent"
    circumstances: tuple[Circumstance, ...] = ()
    metrics: tuple[str, ...] = ()
    rules: Mapping[str, DistanceRule] = field(default_factory=dict)
    source: DataSet = DataSet("source")
    targets: tuple[DataSet, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    follow_up: FollowUp | None = None
    degradation: Degradation | None = None
    detector: DetectorChoice | None = None
    samples: Mapping[str, str] = field(default_factory=dict)
    tolerance_scaling: Scaling = "stated"

    def __post_init__(self) -> None:
        _check_unique("circumstance", [circumstance.name for circumstance in self.circumstances])
        _check_unique("target", [target.name for target in self.all_targets()])
        known = {circumstance.name for circumstance in self.circumstances}
        for target in self.all_targets():
            for name in target.circumstances:
                if name not in known:
                    raise ValueError(f"target '{target.name}': unknown circumstance '{name}'")
            if set(target.distances) - set(self.rules):
                raise ValueError(f"target '{target.name}': a distance that is not declared")
        listed = {name for names in self.perspectives.values() for name in names}
        for circumstance in self.circumstances:
            for name in circumstance.part_of:
                if name not in listed:
                    raise ValueError(
                        f"circumstance '{circumstance.name}' is part of '{name}', which no perspective lists"
                    )
        total = self.total_frequency
        if self.occurrence == "exclusive" and total > 1:
            raise ValueError(f"the frequencies of exclusive circumstances sum to {exact_text(total)}, more than 1")
        measured = self.source.performance is not None or self.source.detections is not None
        if not measured and self.detector is None and any(self.measured_targets()):
            raise ValueError("performance on a target data set needs performance on the source")
        for data in (self.source, *self.measured_targets()):
            for name in self.metrics:
                if data.performance is not None and name not in data.performance.values:
                    raise ValueError(f"'{data.name}' has no value of {name}")

    @property
    def recipe(self) -> LevelRecipe | None:
        """How the levels of its degradation are made; None where they are given, or nobody asked for any."""
        return None if self.degradation is None else self.degradation.recipe

    @property
    def total_frequency(self) -> Fraction:
        """Sum of the frequencies that are known; need not be 1 where circumstances occur together."""
        return sum((circumstance.frequency or Fraction(0) for circumstance in self.circumstances), Fraction(0))

    def all_targets(self) -> Iterator[DataSet]:
        """Target data sets, those of sweeps included."""
        yield from self.targets
        for sweep in self.sweeps:
            yield from sweep.targets

    def measured_targets(self) -> Iterator[DataSet]:
        """Those on which performance was measured."""
        return (target for target in self.all_targets() if target.performance is not None)

    def shown_in(self, target: DataSet) -> tuple[Circumstance, ...]:
        """The circumstances that a target data set shows."""
        if not target.circumstances:
            return self.circumstances
        return tuple(circumstance for circumstance in self.circumstances if circumstance.name in target.circumstances)


def _check_unique(kind: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two of one name: {kind} '{name}'")


def changed(assessment: Assessment, hint: str = "", **changes: Any) -> Assessment:
    """The assessment with what was measured or made; UsageError, with this hint, for what does not fit together."""
    try:
        return replace(assessment, **changes)
    except ValueError as error:
        told = f"\n  hint: {hint}" if hint else ""
        raise UsageError(f"{assessment.key}: {error}{told}") from None
