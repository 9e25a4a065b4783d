"""What `verify require` found: the values that are its document."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Annotated, ClassVar

from verifier.analysis.channel_test import Channel
from verifier.analysis.settings import Semantics
from verifier.base.documents import Condition, Count, Exact, Limits, NumberText, Share
from verifier.base.errors import ExitCode
from verifier.base.numbers import decimal_text
from verifier.base.result import Result
from verifier.checking.verdicts import Verdict, verdict_text
from verifier.questions.settings import MOST_DECIMALS, Mode, Rest
from verifier.study.points import Point
from verifier.study.records import MatricesRecord, SettingsRecord
from verifier.study.results import AskedText, Comparison, Engines, RunInput, Target


class Outcome(Enum):
    """What became of the search for one planner.

    | outcome       | meaning                                                                                  |
    |---------------|------------------------------------------------------------------------------------------|
    | `FOUND`       | there is a least recall, and Storm confirms that the requirement is met there            |
    | `ONLY_IN_GAPS`| the requirement is met for some recalls, but not up to perfect recall                    |
    | `INFEASIBLE`  | no recall tried meets it                                                                 |
    | `INDEPENDENT` | the recalls in question make no difference to the requirement                            |
    """

    FOUND = "found"
    ONLY_IN_GAPS = "only in gaps"
    INFEASIBLE = "infeasible"
    INDEPENDENT = "independent"


@dataclass(frozen=True)
class MeasuredRecall:
    """A measured recall: hits / items."""

    hits: Count
    items: Annotated[int, Limits(ge=1)]
    recall: Share

    @property
    def exact(self) -> Fraction:
        """The recall."""
        return Fraction(self.hits, self.items)


@dataclass(frozen=True)
class CellRecall:
    """What is asked of one cell.

    Attributes:
        bin, label: distance bin and true label as text.
        required: the least recall; None where none was found.
    """

    bin: str
    label: str
    measured: MeasuredRecall
    required: NumberText | None

    @property
    def gain(self) -> Fraction | None:
        """By how much the measured recall has to grow; not above 0 where it suffices, None where none is required."""
        return None if self.required is None else Fraction(self.required) - self.measured.exact


@dataclass(frozen=True)
class CertifiedFloor:
    """The least floor with which *every* matrix above it meets the requirement.

    Attributes:
        floors: for each cell of the answer its floor; None when not even recall 1 in all of them is enough.
        proven: bound of the probability over all matrices above the floors (above recall 1, without floors): from
            below for a lower target, from above for an upper one.
        checked: whether the certificates of all these bounds were checked in rational arithmetic.
        rest: what the columns without a floor may be.
    """

    floors: tuple[NumberText, ...] | None
    proven: Share
    checked: bool
    rest: Rest
    semantics: Semantics


@dataclass(frozen=True)
class Answer:
    """What one planner, at one value of each swept constant, requires of perception.

    Attributes:
        constants: values of the swept constants.
        condition: what the probabilities of `measured` and `at_value` assume of the detector, `if ...`; None where
            that is tested and not contradicted. Perfect perception assumes nothing.
        met_as_measured: whether the measured matrices meet the requirement.
        planner_is_limit: whether not even perfect perception meets the requirement.
        value: mode `common`, `bin` and `cell`: the recall; `factor`: the factor on all miss rates; `cost`: the price.
            None when none was found.
        cells: the cells in question, in order; empty when the recalls make no difference.
        gaps: further stretches of recall (of factors) that meet the requirement, below ones that do not.
        curve: (recall or factor, worst probability of the second engine) along the search.
        measured: the worst point with the measured matrices; `at_value` with the required recalls, or where none
            were found with those that come closest; `perfect` with perfect perception in every column.
        floor: the certified floor; None when it was not asked for.
        others: columns that make a difference and were not in question, as text.
    """

    planner: str
    constants: Mapping[str, str]
    outcome: Outcome
    condition: Condition | None
    met_as_measured: bool
    planner_is_limit: bool
    value: NumberText | None
    cells: tuple[CellRecall, ...]
    gaps: tuple[tuple[NumberText, NumberText], ...]
    curve: tuple[tuple[NumberText, Share], ...]
    measured: Point
    at_value: Point | None
    perfect: Point
    floor: CertifiedFloor | None
    others: tuple[str, ...]

    @property
    def points(self) -> tuple[Point, ...]:
        """As measured, as required (where there is an answer) and with perfect perception."""
        return tuple(point for point in (self.measured, self.at_value, self.perfect) if point is not None)

    def told(self, point: Point) -> str:
        """The verdict of one of the points, with its condition."""
        free = point is self.perfect or point.whatever_predicted is not None
        return verdict_text(point.verdict.value, None if free else self.condition)


@dataclass(frozen=True)
class AskedRequirement:
    """The requirement that is asked about, its formula fully parenthesised, and what is asked of its probability;
    `asked` as in the document of a run."""

    name: str
    formula: str
    comparison: Comparison
    probability: Exact
    asked: AskedText = "P"

    @property
    def question(self) -> str:
        """What is asked: `Pmin >= 0.95`."""
        return f"{self.asked} {self.target}"

    @property
    def target(self) -> Target:
        """What is asked of its probability."""
        return Target(self.comparison, self.probability)


@dataclass(frozen=True)
class Price:
    """Price of a recall of 1 more in the bin that holds `distance_m`, for one label (as text) or for all."""

    distance_m: float
    label: str | None
    price: NumberText


@dataclass(frozen=True)
class FloorAsked:
    """What the columns of a certified floor may be that have none, and what its matrices are."""

    rest: Rest
    semantics: Semantics


@dataclass(frozen=True, kw_only=True)
class RequireSettings(SettingsRecord):
    """Every choice of an answer that can change a number: those of a run, and of the question.

    Attributes:
        prices: for mode `cost`; None where every recall costs the same.
        floor: None where no certified floor was asked for.
        seed: for mode `cost`.
    """

    labels: tuple[str, ...]
    distances_m: tuple[float, ...]
    prices: tuple[Price, ...] | None
    floor: FloorAsked | None
    contexts: tuple[str, ...] = ()
    decimals: Annotated[int, Limits(ge=1, le=MOST_DECIMALS)]
    grid: int
    seed: int | None


@dataclass(frozen=True, kw_only=True, repr=False)
class RequireResult(Result):
    """Everything one `verify require` found.

    Attributes:
        command: that made it, inputs by name without folders.
        title: what the matrices are, for people.
        matrices: what the matrices are and how they were made; None where that is not said.
        channel: the test of the detector's model.
        versions: of this program and of what it computed with.
        remarks: what a reader must know to read the numbers rightly.
        answers: one per planner and value of the swept constants.
    """

    schema: ClassVar[str] = "verifier.require"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    title: str
    inputs: tuple[RunInput, ...]
    matrices: MatricesRecord | None = None
    channel: Channel
    settings: RequireSettings
    versions: Mapping[str, str]
    engines: Engines
    remarks: tuple[str, ...]
    requirement: AskedRequirement
    mode: Mode
    answers: Annotated[tuple[Answer, ...], Limits(min_length=1)]

    TOLD = "verifier.telling.questions:require_table"
    DRAWN = "verifier.telling.figures.confusion:require_figure"
    NAMED_BY = ("requirement", "planner", "bin", "label")
    METRICS = ("measured_recall", "required_recall", "certified_floor")

    @property
    def headline(self) -> str:
        """What was asked, and the outcomes."""
        outcomes = ", ".join(answer.outcome.value for answer in self.answers)
        return f"{self.requirement.name}, {self.requirement.question}: {outcomes}"

    @property
    def exit_code(self) -> ExitCode:
        """0 when every planner has an answer, 1 when the requirement cannot be met, 3 when numerical bounds decide
        nothing, or an answer rests on a model of the detector that the data contradict and nobody assumed by name."""
        severity = [ExitCode.SATISFIED, ExitCode.INCONCLUSIVE, ExitCode.VIOLATED]
        return max((self._exit_code(answer) for answer in self.answers), key=severity.index)

    def _exit_code(self, answer: Answer) -> ExitCode:
        contradicted = answer.condition is not None and self.channel.test == "contradicted"
        memoryless = self.channel.contexts is None
        assumed = self.settings.assume_memoryless if memoryless else self.settings.assume_contexts
        refused = self.settings.strict or (contradicted and not assumed)
        independent = answer.outcome is Outcome.INDEPENDENT and answer.measured.whatever_predicted is not None
        if answer.condition is not None and refused and not answer.planner_is_limit and not independent:
            return ExitCode.INCONCLUSIVE
        return _exit_code(answer)

    def rows(self) -> Iterator[dict[str, str | int | float]]:
        """One flat row per planner, swept value and cell, with the same columns throughout."""
        for answer in self.answers:
            for k, cell in enumerate(answer.cells):
                floors = None if answer.floor is None else answer.floor.floors
                yield {
                    "requirement": self.requirement.name,
                    "comparison": self.requirement.comparison,
                    "target": decimal_text(self.requirement.probability),
                    "planner": answer.planner,
                    **{f"constant_{name}": value for name, value in answer.constants.items()},
                    "outcome": answer.outcome.value,
                    "condition": answer.condition or "",
                    "bin": cell.bin,
                    "label": cell.label,
                    "hits": cell.measured.hits,
                    "items": cell.measured.items,
                    "measured_recall": cell.measured.recall,
                    "required_recall": cell.required or "",
                    "certified_floor": "" if floors is None else floors[k],
                    "probability": "" if answer.at_value is None else answer.at_value.probability,
                }

    def measured_rows(self) -> Iterator[dict[str, str | int | float]]:
        """The rows, with required recalls as numbers."""
        for row in self.rows():
            required = row["required_recall"]
            yield {**row, "required_recall": float(Fraction(required)) if required else ""}


def _exit_code(answer: Answer) -> ExitCode:
    if answer.outcome is Outcome.INDEPENDENT:
        return answer.measured.verdict.exit_code
    is_found = answer.outcome is Outcome.FOUND
    undecided = answer.at_value is not None and answer.at_value.verdict is Verdict.INCONCLUSIVE
    if undecided and answer.outcome is not Outcome.ONLY_IN_GAPS:
        return ExitCode.INCONCLUSIVE
    return ExitCode.SATISFIED if is_found else ExitCode.VIOLATED
