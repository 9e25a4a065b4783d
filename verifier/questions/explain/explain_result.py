"""What `verify explain` found: the values that are its document."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from verifier.analysis.channel_test import Channel
from verifier.analysis.counterexamples.explanation import PatternRecord
from verifier.analysis.counterexamples.patterns import CauseRecord, CorrectionRecord
from verifier.analysis.planning import EvidencePlan
from verifier.analysis.sensitivity.priorities import FixRecord, MoveRecord
from verifier.analysis.sensitivity.state_map import MapRecord
from verifier.analysis.tipping import TippingPoints
from verifier.base.documents import Condition, Count, Level, Limits, Magnitude
from verifier.checking.verdicts import Verdict
from verifier.study.points import JudgedResult, Point, WorldDecisions
from verifier.study.records import MatricesRecord, SettingsRecord
from verifier.study.results import AskedText, Engines, RunInput, StrategyEnds, Target

DEVIATION_ASSUMES = "if items are independent"
"""What the posterior of the matrices assumes, and with it the standard deviation of P."""


@dataclass(frozen=True)
class ExplainChoices:
    """How much is said.

    Attributes:
        patterns: at most so many.
        members: most runs of each pattern.
        rows: most rows of a table.
        level, prior: of the interval of a cell.
        map: variables as named; empty for the first two of the model; None where no map was made.
    """

    patterns: Annotated[int, Limits(ge=1)]
    members: Annotated[int, Limits(ge=1)]
    full_paths: bool
    rows: Annotated[int, Limits(ge=1)]
    level: Level
    prior: Annotated[float, Limits(gt=0)]
    map: tuple[str, ...] | None


@dataclass(frozen=True)
class Frame:
    """A frame in which a report really happened, from the record of the counting.

    Attributes:
        distance_m: of the object, or of the report where there is no object; None where it is not known.
        file, line: of the annotated object, with the folder the file lies in; an empty name for none.
        report_file, report_line: of the detection; an empty name for none.
    """

    sequence: str
    frame: str
    distance_m: float | None
    file: str
    line: int
    report_file: str
    report_line: int


@dataclass(frozen=True)
class DetectionErrors:
    """A type of detection error that causes or patterns speak of, as it was counted.

    Attributes:
        items: how many such reports the matrices count; 0 where a policy gives the rate.
        told_apart: whether the causes tell it apart from all others.
        corrected: P with this kind alone corrected.
        in_record: how many such items the record has; None without a record.
        frames: the first of them.
    """

    bin: Count
    true: str
    reported: str
    rate: Magnitude
    items: Count
    told_apart: bool
    corrected: Magnitude
    in_record: Count | None = None
    frames: tuple[Frame, ...] | None = None


@dataclass(frozen=True)
class Violation:
    """How the requirement fails.

    Attributes:
        satisfies_the_formula: whether violating runs satisfy the formula, as with P <= target.
        error: how far the probability can be off numerically.
        detection_errors: the kinds that causes and patterns name by their position here.
        causes: the violation by the set of detection errors that counted, the most probable first.
        rest: probability of losing by other causes; with the listed ones it adds up to the probability.
        corrections: the best set of one kind to correct, of two, and so on, as long as more kinds gain more.
        covered: the share of the violation that the patterns account for; None where there is none.
        complete: whether there are no other patterns.
        ranked: whether no other pattern can be more probable.
    """

    satisfies_the_formula: bool
    probability: Magnitude
    error: float
    detection_errors: tuple[DetectionErrors, ...]
    causes: tuple[CauseRecord, ...]
    rest: Magnitude
    corrections: tuple[CorrectionRecord, ...]
    patterns: tuple[PatternRecord, ...]
    covered: float | None
    complete: bool
    ranked: bool

    @property
    def is_certain(self) -> bool:
        """Whether the violation is certain from the start, as measured and with perfect perception."""
        first = self.patterns[:1]
        return any(not pattern.steps and pattern.members[0].irrevocable_after == 0 for pattern in first)


@dataclass(frozen=True)
class ColumnRecord:
    """What a column contributes to the variance of P, and how far P moves over the interval of one of its cells."""

    bin: Count
    true: str
    items: Count
    share_of_variance: Magnitude
    p_range: float
    p_range_of: str


@dataclass(frozen=True)
class GradientRecord:
    """Of a column drawn from: change of P per unit of mass moved from the correct report to each label."""

    bin: Count
    true: str
    slopes: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Explained:
    """One requirement under one planner, explained in its worst scenario.

    Attributes:
        name to tipping_points: as in the document of a run, over all scenarios.
        point: the scenario explained: the worst.
        world: what a world that decides does there; all that follows is of the chain that is left while it does so.
        asks_about: what the planner may be told: classes, and facts as `count(ped) = 2`.
        perfect_perception: P when every report is correct.
        posterior_deviation: standard deviation of P under the posterior, to first order, with what that assumes.
        jumps: (bin, predicted, true) of the cells of rate 0 at which P may jump.
    """

    name: str
    planner: str
    formula: str
    asked: AskedText = "P"
    target: Target | None
    verdict: Verdict
    condition: Condition | None
    strategies: tuple[StrategyEnds, ...] | None = None
    world: WorldDecisions | None = None
    additional_data: EvidencePlan | None = None
    tipping_points: TippingPoints | None = None
    point: Point
    asks_about: tuple[str, ...]
    violation: Violation
    perfect_perception: Magnitude
    fixes: tuple[FixRecord, ...]
    moves: tuple[MoveRecord, ...]
    label_more: tuple[ColumnRecord, ...]
    posterior_deviation: Magnitude
    posterior_deviation_assumes: str
    gradient: tuple[GradientRecord, ...]
    jumps: tuple[tuple[Count, Count, Count], ...]
    map: MapRecord | None

    @property
    def place(self) -> dict[str, str]:
        """What names it in a row."""
        return {"requirement": self.name, "planner": self.planner, "scenario": self.point.scenario}


@dataclass(frozen=True, kw_only=True, repr=False)
class ExplainResult(JudgedResult):
    """Everything one `verify explain` found.

    Attributes:
        command: that made it, inputs by name without folders.
        title to remarks: as in the document of a run; inputs include the record of the counting, where one was read.
        labels: of rows and columns of the matrices.
        bins: texts of their distance bins.
        explanations: per planner, in the order of the spec.
    """

    schema: ClassVar[str] = "verifier.explain"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    title: str
    verdict: Verdict
    condition: Condition | None
    inputs: tuple[RunInput, ...]
    matrices: MatricesRecord | None = None
    settings: SettingsRecord
    channel: Channel
    versions: Mapping[str, str]
    engines: Engines
    remarks: tuple[str, ...]
    explain: ExplainChoices
    labels: tuple[str, ...]
    bins: tuple[str, ...]
    explanations: Annotated[tuple[Explained, ...], Limits(min_length=1)]

    TOLD = "verifier.telling.questions:explain_table"
    DRAWN = "verifier.telling.figures.questions:explain_figure"
    NAMED_BY = ("requirement", "planner", "scenario")
    METRICS = ("probability",)

    def measured_rows(self) -> Iterator[dict[str, str | float]]:
        """One row per requirement: its probability in the scenario that is explained."""
        for explanation in self.explanations:
            yield {**explanation.place, "probability": explanation.point.probability}

    def rows(self) -> Iterator[dict[str, str | float]]:
        """One row per requirement and cause: the reports that it is lost by, together, and how probable that is."""
        for explanation in self.explanations:
            for cause in explanation.violation.causes:
                kinds = [explanation.violation.detection_errors[number] for number in cause.detection_errors]
                reports = [f"{kind.true} in {self.bins[kind.bin]} reported as {kind.reported}" for kind in kinds]
                reports += ["other reports"] if cause.others else []
                yield {
                    **explanation.place,
                    "cause": "; ".join(reports) or "no detection error",
                    "probability": cause.probability,
                    "corrected": cause.corrected,
                }
