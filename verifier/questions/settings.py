"""Every choice of `verify run`, `explain`, `require` and `compare`. Only light modules are imported."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from verifier.analysis.settings import ExplainSettings, Semantics
from verifier.base.errors import UsageError, one_line, shown
from verifier.base.options import (
    Option,
    Part,
    Printed,
    PrintedTables,
    Scheduler,
    Written,
    reads,
    whole_above_0,
    writes,
)
from verifier.study.options import CHANNEL, SCENARIOS, RunOptions

if TYPE_CHECKING:
    from verifier.analysis.recall.requirements import Target
else:
    Target = Any

Mode: TypeAlias = Literal["common", "factor", "bin", "cell", "cost"]
"""Which recalls change, see `verifier.questions.require.question`."""
Rest: TypeAlias = Literal["free", "measured"]
"""What the columns of a box are that have no floor."""
Scale: TypeAlias = Literal["linear", "log"]
"""Of the probabilities in a plot."""
MOST_DECIMALS = 9
"""Of a recall that is asked for."""
DRAWN_AS_COUNTED = Part({"mix": None})
"""Everything but weights of the bins of a further variable."""

Spec = Annotated[
    str, reads("requirements in LTL (.ltl); the file names the system model", metavar="SPEC", positional=True)
]
Matrices = Annotated[str, reads("confusion matrices (.json)", alone=True)]


def share(option: str, text: str) -> Fraction:
    """A number from 0 to 1; UsageError."""
    if not re.fullmatch(r"\s*\d{1,30}(\.\d{1,30})?([eE][+-]?\d{1,2})?\s*", text) or Fraction(text.strip()) > 1:
        raise UsageError(f"{option}: expected a number from 0 to 1, got {shown(text)}")
    return Fraction(text.strip())


def least_share(text: str) -> Fraction:
    """What every requirement must reach, a number above 0 and at most 1; UsageError."""
    if not (least := share("--fail-under", text)):
        raise UsageError("--fail-under: every probability is at least 0; name a number above 0")
    return least


def largest_drop(text: str) -> Fraction:
    """The drop that is allowed against a baseline, from 0 to 1; UsageError."""
    if PurePath(text).suffix.lower() == ".json":
        raise UsageError(
            f"--max-drop: expected a number from 0 to 1, got the file {shown(text)}\n"
            f"  hint: as --max-drop 0.01 --baseline {one_line(text)}; 0 allows no drop at all"
        )
    return share("--max-drop", text)


def drop_rule(text: str) -> Fraction | None:
    """The chance from which on a drop fails; None for the rule "point". UsageError: no such rule."""
    if text.strip() == "point":
        return None
    rule, colon, chance = text.partition(":")
    if rule.strip() != "probability" or not colon:
        raise UsageError(f"--drop-from: expected point, or probability:C such as probability:0.95, got {shown(text)}")
    fraction = share("--drop-from probability", chance)
    if not 0 < fraction < 1:
        raise UsageError(f"--drop-from: a probability that decides lies strictly between 0 and 1, got {shown(text)}")
    return fraction


MaxDrop = Annotated[
    Fraction | None,
    Option(
        "exit with 1 if a probability is worse than in --baseline by more than X",
        metavar="X",
        parse=largest_drop,
        of="baseline",
    ),
]
DropFrom = Annotated[
    Fraction | None,
    Option(
        "rule for a drop: point, the point estimates (default), or probability:C, the posterior probability that it "
        "exceeds --max-drop is at least C (paired draws of both matrices)",
        metavar="RULE",
        parse=drop_rule,
        of="max-drop",
    ),
]


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Every choice of `verify run`."""

    spec: Spec
    cm: Annotated[str | None, reads("confusion matrices (.json)", alone=True)] = None
    options: Annotated[RunOptions, Part()] = RunOptions()
    json: Printed = False
    output: Written = None
    csv: Annotated[str | None, writes("write one row per requirement and scenario")] = None
    plot: Annotated[str | None, writes("plot probability against initial state (.png, .svg, .pdf)")] = None
    plot_scale: Annotated[Scale, Option("of the probabilities", role="output", of="plot")] = "linear"
    scheduler: Scheduler = None
    export: Annotated[
        str | None,
        writes(
            "write the chain or decision process (.umb, .drn, .prism, .jani) of one planner and environment, no sweep"
        ),
    ] = None
    export_bounds: Annotated[
        str | None,
        writes("write, as --export does, the decision process of all matrices within the confidence region"),
    ] = None
    all_scenarios: Annotated[bool, Option("list every scenario, not only the worst", role="output")] = False
    parse: Annotated[
        bool,
        Option(
            "print requirements and model as read (with --cm also what is odd about them), and stop", role="output"
        ),
    ] = False
    junit: Annotated[
        str | None, writes("write JUnit XML, one case per requirement and scenario", group="continuous integration")
    ] = None
    sarif: Annotated[str | None, writes("write SARIF: every finding at its line of the spec")] = None
    in_toto: Annotated[str | None, writes("write an in-toto statement (test-result) to be signed")] = None
    fail_under: Annotated[
        Fraction | None,
        Option(
            "exit with 1 if the compared quantity of a requirement is below P (1 - P for <= targets)",
            metavar="P",
            parse=least_share,
        ),
    ] = None
    max_drop: MaxDrop = None
    baseline: Annotated[
        str | None,
        reads(
            "result of an earlier verify run, or earlier matrices, for which the run is repeated (.json)",
            of="max-drop",
        ),
    ] = None
    drop_from: DropFrom = None


@dataclass(frozen=True)
class ContactSheetSettings:
    """What of the frames behind detection errors is drawn.

    Raises:
        UsageError: frames or blurred classes without a sheet, or a sheet without its images.
    """

    contact_sheet: Annotated[
        str | None,
        writes(
            "write the frames behind each detection error, with ground truth and detections drawn (.html); needs "
            "--record and --images",
            group="contact sheet",
        ),
    ] = None
    images: Annotated[
        str | None, reads("images of the frames; that of the frame NAME is NAME.png, .jpg, ...", metavar="DIR")
    ] = None
    frames: Annotated[
        int,
        Option("most frames of each type of detection error", metavar="N", parse=whole_above_0, of="contact-sheet"),
    ] = 12
    blur: Annotated[
        tuple[str, ...],
        Option("make the boxes of this class unrecognisable, those of detections too (repeatable)", metavar="CLASS"),
    ] = ()

    def __post_init__(self) -> None:
        if (self.contact_sheet is None) != (self.images is None):
            raise UsageError("--contact-sheet and --images belong together: name both or none")
        if self.blur and self.contact_sheet is None:
            raise UsageError("--blur belongs to --contact-sheet")


@dataclass(frozen=True, kw_only=True)
class ExplanationSettings:
    """Every choice of `verify explain`."""

    spec: Spec
    cm: Matrices
    explanation: Annotated[ExplainSettings, Part()] = ExplainSettings()
    record: Annotated[str | None, reads("per-object record of the counting (.csv, .parquet)")] = None
    sheet: Annotated[ContactSheetSettings, Part()] = ContactSheetSettings()
    options: Annotated[RunOptions, DRAWN_AS_COUNTED] = RunOptions()
    json: PrintedTables = False
    output: Written = None
    plot: Annotated[str | None, writes("plot sensitivities, and P over the states (.png, .svg, .pdf)")] = None


def target_of(text: str) -> Target:
    """The target that `0.95`, `>= 0.95`, `< 1/3` means; UsageError."""
    from verifier.analysis.recall.requirements import Target

    match = re.fullmatch(r"\s*(>=|>|<=|<)?\s*(\d{1,30}(?:\.\d{1,30})?)(?:/(\d{1,30}))?\s*", text)
    if not match or (match[3] is not None and int(match[3]) == 0):
        raise UsageError(f"--target: expected a probability as 0.95, '>= 0.95' or '<= 1/100', got {shown(text)}")
    number = Fraction(match[2]) / int(match[3] or 1)
    if number > 1:
        raise UsageError(f"--target: a probability is at most 1, got {shown(text)}")
    return Target(match[1] or ">=", number)


def _distance_m(text: str) -> float:
    metres = float(text)
    if not 0 <= metres < float("inf"):
        raise UsageError(f"--bin: expected a distance in metres from 0, got {metres:g}")
    return metres


@dataclass(frozen=True)
class QuestionSettings:
    """What is asked of recalls, prices and the name of the requirement left out.

    Attributes:
        target: replaces the target of the spec.
        labels: true labels in question; empty for all.
        distances_m: the bins in question, each named by a distance that it holds; empty for all.
        contexts: of a detector with memory, those in question; empty for all.
        grid: points of the even grid of the search.
        seed: of the random starting points of mode `cost`.
    """

    target: Annotated[
        Target | None,
        Option(
            "target instead of the spec's, for example 0.95 (at least), '<= 0.01' or '> 1/3'",
            metavar="TARGET",
            parse=target_of,
            group="question",
        ),
    ] = None
    mode: Annotated[
        Mode,
        Option(
            "what changes: one recall for all cells, one factor on all miss rates, one bin, one cell, or the "
            "cheapest recalls"
        ),
    ] = "common"
    labels: Annotated[
        tuple[str, ...],
        Option("only this true label, for example ped or obs+ped (repeatable)", name="class", metavar="NAME"),
    ] = ()
    distances_m: Annotated[
        tuple[float, ...],
        Option(
            "only the bin that contains this distance (repeatable)", name="bin", metavar="METRES", parse=_distance_m
        ),
    ] = ()
    contexts: Annotated[
        tuple[str, ...],
        Option(
            "only what the detector reports in this context of --memory, such as wrong*1 (repeatable)",
            name="context",
            metavar="CONTEXT",
        ),
    ] = ()
    floor: Annotated[bool, Option("also prove a floor: recalls above which every matrix meets the target")] = False
    rest: Annotated[
        Rest, Option("columns without a floor: any matrix, or as measured", name="other-columns", of="floor")
    ] = "free"
    semantics: Annotated[
        Semantics, Option("matrices above the floor: one per state, or one shared by all states", of="floor")
    ] = "per_state"
    decimals: Annotated[int, Option("decimals of recalls and factors", metavar="N")] = 6
    grid: Annotated[int, Option("points of the first grid of the search", metavar="N")] = 257
    seed: Annotated[int, Option("random seed of --mode cost", metavar="N")] = 0


@dataclass(frozen=True, kw_only=True)
class RequirementSettings:
    """Every choice of `verify require`."""

    spec: Spec
    cm: Annotated[str, reads("confusion matrices to start from (.json)", alone=True)]
    question: Annotated[QuestionSettings, Part()] = QuestionSettings()
    cost: Annotated[str | None, reads("prices of recall (.csv: distance_m,price[,class]); implies --mode cost")] = (
        None
    )
    options: Annotated[
        RunOptions,
        Part(
            {"mix": None, "confidence": None, "verdict_from": "point", "strict": False, "assume_memoryless": False},
            {SCENARIOS: "scenarios (what is named here replaces what the spec names; one --requirement)"},
        ),
    ] = RunOptions(confidence=None, verdict_from="point")
    assume_memoryless: Annotated[
        bool,
        Option(
            "accept an answer although the data contradict the memoryless detector (else exit code 3)", group=CHANNEL
        ),
    ] = False
    json: Printed = False
    output: Written = None
    csv: Annotated[str | None, writes("write one row per planner and cell")] = None

    def check_given(self, names: frozenset[str]) -> None:
        """Refuse a seed of which nothing would come; UsageError."""
        if "seed" in names and self.question.mode != "cost" and self.cost is None:
            raise UsageError("--seed belongs to --mode cost")

    @property
    def run_options(self) -> RunOptions:
        """Those of the runs that are asked for."""
        return replace(self.options, assume_memoryless=self.assume_memoryless)


def _two_names(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    if len(names) != 2 or not all(names):
        raise UsageError(f"--pareto: expected two requirements as A,B, got {shown(text)}")
    if names[0] == names[1]:
        raise UsageError("--pareto: expected two different requirements")
    return names


@dataclass(frozen=True)
class LookSettings:
    """What a comparison looks at, and which drop against a baseline is allowed.

    Attributes:
        pareto: two requirements to look at together.
        best_planner: steps within which the episodes of the best possible planner end; None to leave it out.
        metrics: whether detection metrics stand beside P.
        max_drop: None without a baseline.
        drop_from: the chance from which on a larger drop fails; None to go by the probabilities alone.
    """

    pareto: Annotated[
        tuple[str, str] | None,
        Option("Pareto front of two requirements", metavar="A,B", group="comparison", parse=_two_names, once=True),
    ] = None
    best_planner: Annotated[
        int | None,
        Option(
            "also bound what any planner can reach that sees reports and what is not hidden, and ends within N steps",
            metavar="N",
            parse=whole_above_0,
        ),
    ] = None
    metrics: Annotated[
        bool, Option("also AP, recall and precision, and which bins explain that AP ranks detectors otherwise than P")
    ] = False
    max_drop: MaxDrop = None
    drop_from: DropFrom = None


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """Every choice of `verify compare`."""

    spec: Annotated[tuple[str, ...], reads("requirements in LTL (.ltl)", metavar="SPEC", positional=True)]
    cm: Annotated[
        tuple[str, ...], Option("matrices of a detector (.json; repeatable)", metavar="NAME=FILE", role="named_file")
    ]
    look: Annotated[LookSettings, Part()] = LookSettings()
    baseline: Annotated[
        str | None, reads("result of an earlier verify run or verify compare (.json)", of="max-drop")
    ] = None
    options: Annotated[
        RunOptions, Part({"mix": None}, {SCENARIOS: "scenarios (what is named here replaces what the specs name)"})
    ] = RunOptions()
    json: PrintedTables = False
    output: Written = None
    csv: Annotated[str | None, writes("write one row per requirement and configuration")] = None
    plot: Annotated[str | None, writes("plot probabilities with intervals, and along sweeps (.png, .svg, .pdf)")] = (
        None
    )
    certificates: Annotated[
        str | None,
        writes("write the proof of every probability (.zip), for verifier/analysis/kernel.py and step_kernel.py"),
    ] = None
    scheduler: Scheduler = None
    pairs: Annotated[bool, Option("also show the posterior probabilities of all pairs", role="output")] = False
