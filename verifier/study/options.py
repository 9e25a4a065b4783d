"""Every choice of a run beside its files, as one value. Only light modules are imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from verifier.analysis.settings import ConfidenceSettings, Weights
from verifier.base.budget import Clock
from verifier.base.errors import UsageError, check_known
from verifier.base.options import Option, Part, pair, reads, whole_above_0
from verifier.checking.settings import EngineSettings
from verifier.perception.settings import EmptyColumns, EmptyContexts
from verifier.systems.settings import (
    FalsePositives,
    InitialContext,
    Limits,
    condition_text,
    constant,
    initial_condition,
    sweep,
)

if TYPE_CHECKING:
    from verifier.language.expressions.syntax import Node
else:
    Node = Any

VerdictSource: TypeAlias = Literal["bounds", "interval", "point"]
"""What can be compared with a target, see `VERDICT_SOURCES`."""
VERDICT_SOURCES: Mapping[VerdictSource, str] = {
    "bounds": "the bounds that no matrix within the confidence region goes beyond",
    "interval": "the statistical interval, as far as the draws determine its ends",
    "point": "the probability for the given matrices, with its numerical bounds",
}
MEMORY_BY_DEFAULT = "default"
"""Contexts as `auto` chooses them where it can; else none, which is noted."""
SCENARIOS = "scenarios (what is named here replaces what the spec names)"
CHANNEL = "use of the confusion matrices"
LIMITS = "engines and limits"
Initial = Annotated[
    Node | None,
    Option(
        "condition on the initial states, for example 'v = 1'",
        metavar="CONDITION",
        parse=initial_condition,
        spell=condition_text,
    ),
]
EmptyColumnRates = Annotated[EmptyColumns, Option("rates of a column without items: {choices}", metavar="POLICY")]
FalsePositiveUse = Annotated[FalsePositives, Option("use of the column 'empty': {choices}", metavar="POLICY")]


@dataclass(frozen=True)
class Selection:
    """What is chosen of the scenarios; it replaces what the spec says."""

    planners: Annotated[
        tuple[str, ...], Option("planner (repeatable), or 'all'", name="planner", metavar="NAME", group=SCENARIOS)
    ] = ()
    environments: Annotated[
        tuple[str, ...], Option("environment (repeatable)", name="environment", also=("--env",), metavar="NAME")
    ] = ()
    initial: Initial = None
    settings: Annotated[
        Mapping[str, int | Fraction | str],
        Option(
            "value of a constant, or PLANNER.pick=RULE (repeatable)", name="set", metavar="NAME=VALUE", parse=constant
        ),
    ] = field(default_factory=dict)
    sweeps: Annotated[
        Mapping[str, tuple[int | Fraction, ...]],
        Option(
            "values of a constant, for example vmax=1..10 or vmax=1,2,5 (repeatable)",
            name="sweep",
            metavar="NAME=VALUES",
            parse=sweep,
        ),
    ] = field(default_factory=dict)
    requirements: Annotated[
        tuple[str, ...], Option("only this requirement (repeatable)", name="requirement", metavar="NAME")
    ] = ()


@dataclass(frozen=True)
class RunOptions:
    """Every choice of a run beside its files.

    Attributes:
        confidence: None for no intervals and bounds. Rounded transitions get none: their values are no probabilities
            of the system.
        verdict_from: without `confidence` it is the point.
        point_weights: of the rates where there is no `confidence`; otherwise they have its weights.

    Raises:
        UsageError: an unknown source of verdicts; strict, and assuming something all the same.
    """

    selection: Annotated[Selection, Part()] = Selection()
    where: Annotated[
        Mapping[str, str],
        Option(
            "only this bin of a further variable (repeatable)",
            metavar="NAME=BIN",
            parse=partial(pair, "--where", "NAME=BIN"),
            group=CHANNEL,
        ),
    ] = field(default_factory=dict)
    score_threshold: Annotated[
        float | None, Option("score threshold that selects the matrices of a family", metavar="X")
    ] = None
    canonical: Annotated[bool, Option("one matrix pooled over all distances")] = False
    empty_columns: EmptyColumnRates = "error"
    false_positives: FalsePositiveUse = "as_counted"
    memory: Annotated[
        str | None,
        Option(
            "what the detector remembers of an object: none, run:L or last:K outcomes, or auto, what the data "
            "support; default auto where matrices count contexts in enough sequences, else none",
            metavar="CONTEXTS",
        ),
    ] = None
    initial_context: Annotated[
        InitialContext,
        Option(
            "what it remembers at the initial states: nothing yet, contexts as frequent as counted there, only right "
            "or wrong outcomes, or each context in turn"
        ),
    ] = "start"
    empty_contexts: Annotated[
        EmptyContexts, Option("rates of a context without items: {choices}", metavar="POLICY")
    ] = "backoff"
    endless: Annotated[bool, Option("no terminal states: paths are infinite")] = False
    decimals: Annotated[
        int | None,
        Option(
            "round the chain's probabilities, as the archive of the published numbers did",
            name="round-transitions",
            metavar="DECIMALS",
        ),
    ] = None
    mix: Annotated[
        str | None,
        reads(
            "weigh the bins of a further variable instead of summing over them as counted: a TOML file with "
            'variable = "light" and [weights] day = 0.7, night = [0.2, 0.3] (stated, or bounded)'
        ),
    ] = None
    confidence: Annotated[
        ConfidenceSettings | None,
        Part(absent=Option("point estimates only, without intervals and bounds", name="point-only")),
    ] = ConfidenceSettings()
    verdict_from: Annotated[
        VerdictSource,
        Option("quantity compared with the target: confidence bounds, statistical interval, or point estimate"),
    ] = "bounds"
    strict: Annotated[
        bool, Option("inconclusive instead of a verdict with a condition (items independent, channel not tested)")
    ] = False
    assume_memoryless: Annotated[
        bool, Option("accept verdicts although the data do not test or even contradict the memoryless detector")
    ] = False
    assume_contexts: Annotated[
        bool, Option("accept verdicts although the data do not test or even contradict the contexts of --memory")
    ] = False
    persist: Annotated[
        int | None,
        Option("bounds if errors about an object may persist for up to N frames", metavar="N", parse=whole_above_0),
    ] = None
    assume_persistence: Annotated[
        bool, Option("accept --persist although the data show longer runs of errors, or cannot tell")
    ] = False
    rate_box: Annotated[
        str | None,
        reads(
            "bounds if no probability of a report, given all reports before, leaves a stated box: a TOML file with "
            "source and [[rates]] of true, predicted, rate = [least, most], and distance_m or context"
        ),
    ] = None
    assume_rate_box: Annotated[bool, Option("accept a --rate-box that the data contradict")] = False
    dependence_free: Annotated[
        bool,
        Option(
            "also bounds that hold however reports depend on each other, by linear program; where the detector "
            "remembers, these and the others have half of alpha each"
        ),
    ] = False
    horizon: Annotated[
        int | None,
        Option(
            "steps of --dependence-free (default: of the longest path, else 50)",
            metavar="N",
            parse=whole_above_0,
            of="dependence-free",
        ),
    ] = None
    max_lp: Annotated[
        int,
        Option(
            "largest number of flows of --dependence-free", metavar="N", parse=whole_above_0, of="dependence-free"
        ),
    ] = 100_000
    strategies: Annotated[
        bool,
        Option(
            "also the range over all winning strategies of synthesised planners, and what a world that decides does "
            "in the worst scenario",
            group=LIMITS,
        ),
    ] = False
    engines: Annotated[EngineSettings, Part()] = EngineSettings()
    limits: Annotated[Limits, Part()] = Limits()
    point_weights: Weights = "item"

    def __post_init__(self) -> None:
        check_known("source of verdicts", self.verdict_from, VERDICT_SOURCES)
        if self.persist is not None:
            self._check_persistence()
        elif self.assume_persistence:
            raise UsageError("--assume-persistence belongs to --persist")
        if self.rate_box is not None:
            self._check_box()
        elif self.assume_rate_box:
            raise UsageError("--assume-rate-box belongs to --rate-box")
        if self.initial_context == "counted" and self.confidence is not None:
            raise UsageError(
                "--initial-context counted: intervals and bounds are not known for a mean over contexts: add "
                "--point-only, or name worst"
            )
        for name in ("assume_memoryless", "assume_contexts"):
            if self.strict and getattr(self, name):
                raise UsageError(
                    f"--strict accepts no verdict with a condition, and --{name.replace('_', '-')} gives verdicts "
                    "one: name one of the two"
                )

    def _check_persistence(self) -> None:
        """Refuse what knows nothing of errors that persist; UsageError."""
        others = {
            "--memory": self.memory not in (None, MEMORY_BY_DEFAULT),
            "--empty-contexts": self.empty_contexts != "backoff",
            "--point-only": self.confidence is None,
            f"--verdict-from {self.verdict_from}": self.verdict_from != "bounds",
            "--semantics shared-matrix": self.confidence is not None and self.confidence.semantics != "per_state",
            "--strict": self.strict,
            "--dependence-free": self.dependence_free,
        }
        for option in [option for option, given in others.items() if given]:
            raise UsageError(
                f"--persist bounds what errors may do in each state, which {option} is not about: leave out one"
            )

    def _check_box(self) -> None:
        """Refuse what a stated box of rates knows nothing of; UsageError."""
        settings = self.confidence
        others = {
            "--persist": self.persist is not None,
            "--mix": self.mix is not None,
            "--point-only": settings is None,
            "--round-transitions": self.decimals is not None,
            f"--verdict-from {self.verdict_from}": self.verdict_from != "bounds",
            "--semantics shared-matrix": settings is not None and settings.semantics != "per_state",
            "options of bounds from data": settings is not None
            and any(getattr(settings, name) != getattr(ConfidenceSettings(), name) for name in BOUNDS_ASSUME),
        }
        for option in [option for option, given in others.items() if given]:
            raise UsageError(f"--rate-box states bounds in each state, which {option} is not about: leave out one")

    @property
    def remembers(self) -> bool:
        """Whether memory of the detector is asked for by name."""
        return self.memory not in (None, "none", MEMORY_BY_DEFAULT) or self.persist is not None

    def by_default(self) -> RunOptions:
        """With the memory that the data support, where none is asked for."""
        return replace(self, memory=MEMORY_BY_DEFAULT) if self.memory is None else self

    def refuse_what_a_run_alone_has(self, verb: str) -> None:
        """Refuse mixed matrices, and bounds of which there is neither a point nor a draw; UsageError."""
        if self.mix is not None:
            raise UsageError(
                "--mix belongs to verify run: here the matrices are drawn or taken apart as they were counted"
            )
        if self.dependence_free:
            raise UsageError(f"--dependence-free gives bounds alone and belongs to verify run: {verb} needs more")
        self.refuse_stated_bounds(verb)

    def refuse_stated_bounds(self, verb: str) -> None:
        """Refuse bounds of detectors that errors or rates are stated of; UsageError."""
        for option, given in (("persist", self.persist is not None), ("rate-box", self.rate_box is not None)):
            if given:
                raise UsageError(f"--{option} gives bounds alone and belongs to verify run: {verb} needs more")

    def check_given(self, names: frozenset[str]) -> None:
        """Refuse what was asked for and nothing would come of; UsageError."""
        source = self.verdict_from
        for name in ("shift", "looks"):
            if name in names and source != "bounds":
                raise UsageError(
                    f"--{name} moves the confidence bounds, and --verdict-from {source} ignores them: name one of "
                    "the two"
                )
        for name in ("point_only", "round_transitions"):
            if name in names and "verdict_from" in names and source != "point":
                option = "--" + name.replace("_", "-")
                raise UsageError(f"--verdict-from {source} needs what {option} leaves out: name one of the two")

    @property
    def weights(self) -> Weights:
        """What the rates are rates of, see `verifier.analysis.intervals.drive_items`."""
        return self.point_weights if self.confidence is None else self.confidence.weights

    def point_alone(self) -> RunOptions:
        """The same without intervals, bounds and ranges; the rates keep their weights."""
        plain = replace(self.without_free_bounds(), confidence=None, verdict_from="point", strategies=False)
        return replace(plain, point_weights=self.weights)

    def forgetful(self) -> RunOptions:
        """The same for a detector without memory."""
        return replace(self, memory="none", initial_context="start")

    def without_free_bounds(self) -> RunOptions:
        """The same without bounds whatever the dependence."""
        return replace(self, dependence_free=False, horizon=None)


BOUNDS_ASSUME = ("bounds", "weights", "largest_drive", "icc_at_most", "assume_independent_items", "looks", "shift")
"""Settings of what the confidence bounds assume."""


def clock_of(options: RunOptions, checks: int) -> Clock:
    """The time of so many formulas on chains, together."""
    limit = options.engines.timeout_s
    return Clock(None if limit is None else limit * max(checks, 1))
