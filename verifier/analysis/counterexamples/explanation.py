"""One requirement in one scenario explained: how it fails, what that depends on, and what to do about it.

`explain` puts the analyses together; everything here is values, and `questions.explain` chooses what is explained.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.counterexamples.causes import Attribution, Losses
from verifier.analysis.counterexamples.patterns import (
    CauseRecord,
    CorrectionRecord,
    DetectionError,
    Patterns,
    Position,
)
from verifier.analysis.counterexamples.replay import Replay, replay
from verifier.analysis.counterexamples.runs import Run, RunGraph, prospects, violation_probability, with_exact
from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.objective import Objective
from verifier.analysis.sensitivity.adjoint import Values, state_values
from verifier.analysis.sensitivity.priorities import (
    UNCHANGED,
    ColumnShares,
    Fixes,
    MoveRecord,
    Sensitivity,
    column_shares,
    corrected_probabilities,
    fixes,
    moves,
    sensitivity,
)
from verifier.analysis.sensitivity.state_map import MapRecord, state_map
from verifier.analysis.settings import ExplainSettings
from verifier.base.arrays import Floats
from verifier.base.documents import Count, FractionText, Limits, Magnitude, fraction_text
from verifier.checking.two_engines import AbstractFormula
from verifier.perception.confusion.matrices import Label, label_text
from verifier.systems.contexts import told_to_planner

DEFAULT_SETTINGS = ExplainSettings()
Replayed: TypeAlias = Literal["whole", "steps"]


@dataclass(frozen=True)
class Thing:
    """What was looked at: its true label, and the number of its distance bin."""

    label: str
    bin: Count


@dataclass(frozen=True)
class Report:
    """What the planner was told, and how probable that is: classes, and facts as `count(ped) = 2`."""

    classes: tuple[str, ...]
    probability: Magnitude


@dataclass(frozen=True)
class StepRecord:
    """One step of a run.

    Attributes:
        there: everything that was looked at.
        reported: the reports with which the planner takes this step.
        matters: whether another report would have led elsewhere.
        probability: of the step, as a fraction where that is known.
        after: variable -> value; chance: of meeting the formula after the step.
    """

    there: tuple[Thing, ...]
    reported: tuple[Report, ...]
    matters: bool
    probability: FractionText | float
    after: Mapping[str, int]
    chance: Magnitude


@dataclass(frozen=True)
class RunRecord:
    """A run that violates the requirement.

    Attributes:
        counted_steps: the first so many steps are what the probability is the probability of; the others are their
            likeliest continuation.
        irrevocable_after: after so many steps the violation is certain.
        replayed: whether the formula was evaluated on the run once more, or only its steps were checked.
        initial: variable -> value at the beginning.
    """

    probability: Magnitude
    counted_steps: Count
    irrevocable_after: Count
    replayed: Replayed
    initial: Mapping[str, int]
    steps: tuple[StepRecord, ...]

    @property
    def exact(self) -> Fraction | None:
        """The probability as a fraction, where those of the steps are known."""
        product = Fraction(1)
        for step in self.steps[: self.counted_steps]:
            if not isinstance(step.probability, str):
                return None
            product *= Fraction(step.probability)
        return product


@dataclass(frozen=True)
class PatternRecord:
    """Violating runs that differ only in when it happened.

    Attributes:
        steps: what counted, in order, repetitions in a row once; of each step one of these sets of detection errors,
            which may be left open.
        probability: of all such runs together.
        complete: whether there are no other members.
    """

    steps: tuple[Annotated[tuple[tuple[Position, ...], ...], Limits(min_length=1)], ...]
    probability: Magnitude
    share: float
    members: Annotated[tuple[RunRecord, ...], Limits(min_length=1)]
    complete: bool


@dataclass(frozen=True)
class Kind:
    """A type of detection error that is a cause, alone or together with others.

    Attributes:
        told_apart: whether the causes tell it apart from the others.
        corrected: the requirement's probability if it alone is corrected.
    """

    report: DetectionError
    told_apart: bool
    corrected: float


@dataclass(frozen=True, eq=False)
class Explanation:
    """Everything about one requirement in one scenario.

    Attributes:
        asked: the classes that the planner asks about.
        satisfying: the requirement is `P <= target`, so runs that satisfy the formula violate it.
        violation: probability of that; `violation_error` how far it can be off numerically.
        kinds: the detection errors that the causes and patterns speak of.
        causes: of the violation, the most probable first; `rest` the probability of the others together.
        corrections: the best one of each size, up to the one that no larger set surpasses.
        patterns: of violating runs, the most probable first; `complete` whether there are no others, and `ranked`
            whether no other one can be more probable.
        covered: the share of the violation that they account for; NaN where there is none.
        map: the chance from every state, or None.
    """

    asked: frozenset[str]
    satisfying: bool
    violation: float
    violation_error: float
    kinds: tuple[Kind, ...]
    causes: tuple[CauseRecord, ...]
    rest: float
    corrections: tuple[CorrectionRecord, ...]
    patterns: tuple[PatternRecord, ...]
    complete: bool
    ranked: bool
    covered: float
    sensitivity: Sensitivity
    moves: tuple[MoveRecord, ...]
    columns: ColumnShares
    fixes: Fixes
    map: MapRecord | None


def explain(
    objective: Objective,
    formula: AbstractFormula,
    data: Measured,
    counts: NDArray[np.int64],
    start: int,
    satisfying: bool = False,
    settings: ExplainSettings = DEFAULT_SETTINGS,
    max_states: int = 50_000_000,
) -> Explanation:
    """Explain one objective from one initial state.

    Args:
        objective: `formula` on a skeleton.
        formula: with its propositions, to replay runs and to draw the map.
        counts: (bins, predicted, true) counts behind `data.rates`, for exact fractions.
        start: number of the initial state.
        satisfying: see `Explanation`.
        max_states: most product states to build for the map.

    Raises:
        EngineError, LimitError: from the engines.
        UsageError: the variables of the map are not the model's.
    """
    values = state_values(objective, data.rates)
    before = prospects(objective, values, satisfying)
    losses = Losses(objective, values, before)
    total, error = violation_probability(objective, data.rates, start, satisfying)
    patterns = losses.patterns(start, settings.patterns, total)
    graph = RunGraph(objective, values, before)
    groups, exact = with_exact(
        objective.skeleton,
        [
            graph.runs(start, settings.members + 1, settings.full_paths, losses.symbol, pattern.symbols)
            for pattern in patterns.patterns
        ],
        counts,
    )
    teller = _Teller(objective, values, formula, satisfying, exact)
    derivatives = sensitivity(objective, data.rates, start)
    drawn = None
    if settings.with_map:
        drawn = state_map(
            objective.skeleton,
            formula.formula,
            formula.propositions,
            data.rates,
            settings.variables,
            largest=satisfying,
            max_states=max_states,
        )
    attribution = losses.attribution(start, total)
    kinds, causes, rest, corrections = _causes(
        attribution, total, objective, values.rates, start, patterns, satisfying, settings.rows
    )
    number = {kind.report: place for place, kind in enumerate(kinds)}
    names = [label_text(label) for label in objective.skeleton.channel.labels]
    return Explanation(
        told_to_planner(frozenset().union(*objective.skeleton.channel.observations)),
        satisfying,
        total,
        error,
        kinds,
        causes,
        rest,
        corrections,
        tuple(
            PatternRecord(
                tuple(
                    tuple(sorted(_named(reports, number) for reports in alternatives))
                    for alternatives in pattern.steps
                ),
                pattern.probability,
                pattern.probability / total,
                tuple(map(teller.run, runs[: settings.members])),
                len(runs) <= settings.members,
            )
            for pattern, runs in zip(patterns.patterns, groups, strict=True)
        ),
        patterns.complete,
        patterns.ranked,
        math.fsum(pattern.probability for pattern in patterns.patterns) / total if total > 0 else math.nan,
        derivatives,
        moves(derivatives, settings.rows, names),
        column_shares(derivatives, data, settings.level, settings.prior),
        fixes(objective, derivatives, data, start, names, raising=not satisfying),
        drawn,
    )


def _causes(
    attribution: Attribution,
    total: float,
    objective: Objective,
    rates: Floats,
    start: int,
    patterns: Patterns,
    satisfying: bool,
    most: int,
) -> tuple[tuple[Kind, ...], tuple[CauseRecord, ...], float, tuple[CorrectionRecord, ...]]:
    """The kinds that are spoken of, the most probable causes, the probability of the others, and corrections."""
    listed, hidden = attribution.causes[:most], attribution.not_told_apart
    steps = itertools.chain.from_iterable(pattern.steps for pattern in patterns.patterns)
    in_patterns = {report for step in steps for reports in step for report in reports}
    kinds = sorted({*attribution.told_apart, *hidden, *in_patterns})
    choices = [
        tuple(sorted(chosen))
        for size in range(len(attribution.told_apart))
        for chosen in itertools.combinations(attribution.told_apart, size + 1)
    ]
    of_causes = [(*cause.reports, *(hidden if cause.others else ())) for cause in listed]
    sets = list(dict.fromkeys([*((kind,) for kind in kinds), *choices, *of_causes]))
    chance = dict(zip(sets, corrected_probabilities(objective, rates, sets, start).tolist(), strict=True))
    number = {kind: place for place, kind in enumerate(kinds)}
    return (
        tuple(Kind(kind, kind not in hidden, chance[kind,]) for kind in kinds),
        tuple(
            CauseRecord(
                _named(cause.reports, number), cause.others, p := cause.probability, p / total, chance[reports]
            )
            for cause, reports in zip(listed, of_causes, strict=True)
        ),
        math.fsum(cause.probability for cause in attribution.causes[most:]),
        tuple(_best_corrections([CorrectionRecord(_named(one, number), chance[one]) for one in choices], satisfying)),
    )


def _named(reports: Iterable[DetectionError], number: Mapping[DetectionError, int]) -> tuple[int, ...]:
    """Detection errors by their positions."""
    return tuple(sorted(number[report] for report in reports))


def _best_corrections(choices: Sequence[CorrectionRecord], satisfying: bool) -> Iterator[CorrectionRecord]:
    """The best of each size, as long as one of more kinds is better."""
    sign, best = -1 if satisfying else 1, -math.inf
    for _, of_size in itertools.groupby(choices, key=lambda choice: len(choice.detection_errors)):
        first = max(of_size, key=lambda choice: sign * choice.corrected)
        if sign * first.corrected > best + UNCHANGED:
            best = sign * first.corrected
            yield first


@dataclass(frozen=True, eq=False)
class _Teller:
    """Runs of one objective for people."""

    objective: Objective
    values: Values
    formula: AbstractFormula
    satisfying: bool
    exact: Mapping[int, Fraction] | None

    @cached_property
    def _rows(self) -> NDArray[np.float64]:
        return self.objective.skeleton.channel.weights(self.values.rates)

    @cached_property
    def _probability(self) -> NDArray[np.float64]:
        return self.objective.skeleton.entry_values(self.values.rates)

    def run(self, run: Run) -> RunRecord:
        """A run for people, replayed."""
        skeleton, values, exact = self.objective.skeleton, self.values, self.exact
        inner = self.formula
        checked = replay(
            self.objective, values, run, inner.formula, inner.propositions, satisfying=self.satisfying, exact=exact
        )
        names = tuple(skeleton.valuations)
        columns = [skeleton.valuations[name][run.states].tolist() for name in names]
        valuations = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        chance = values.value[run.nodes[1:]].tolist()
        steps = [
            StepRecord(
                *_seen(self.objective, self._rows, entry),
                float(self._probability[entry]) if exact is None else fraction_text(exact[entry]),
                valuations[k + 1],
                chance[k],
            )
            for k, entry in enumerate(skeleton.entry[run.transitions].tolist())
        ]
        how: Replayed = "whole" if checked is Replay.WHOLE else "steps"
        return RunRecord(run.probability, run.counted, run.irrevocable, how, valuations[0], tuple(steps))


def _seen(
    objective: Objective, rows: NDArray[np.float64], entry: int
) -> tuple[tuple[Thing, ...], tuple[Report, ...], bool]:
    """What was there, what was reported, and whether that made a difference."""
    skeleton, channel = objective.skeleton, objective.skeleton.channel
    if entry == len(skeleton.entry_row):  # the episode is over: nobody looks
        return (), (), False
    row, told = int(skeleton.entry_row[entry]), skeleton.entry_observations[entry]
    drawn = zip(channel.columns[row].tolist(), channel.bins[row].tolist(), strict=True)
    there = tuple(Thing(label_text(channel.labels[column]), bin_) for column, bin_ in drawn if column >= 0)
    chance = np.where(told, rows[row], 0).reshape(len(channel.observations), -1).sum(axis=1).tolist()
    reported: dict[Label, float] = {}
    for group, own in zip(map(told_to_planner, channel.observations), chance, strict=True):
        if own > 0:
            reported[group] = reported.get(group, 0.0) + own
    told_as = tuple(Report(tuple(sorted(label)), rate) for label, rate in reported.items())
    return there, told_as, bool(skeleton.depends_on_reports[entry])
