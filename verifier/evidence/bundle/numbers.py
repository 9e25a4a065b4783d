"""The numbers of a run compared with the bundled inputs, without the model checker that computed them.

The chain of every block is rebuilt. Certificates, checked in rational arithmetic, prove the probabilities on it
and the confidence bounds; where there is none for a probability, the batch engine computes it again, with a rigorous
enclosure. What only repeating the whole computation can show, such as the ends of statistical intervals, is left to
`recompute`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from verifier.analysis.channel_test import Channel
from verifier.analysis.confidence import bounds_of_chain
from verifier.analysis.objective import Objective
from verifier.analysis.robust.any_dependence import any_dependence
from verifier.analysis.robust.optimum import Optimum
from verifier.analysis.robust.solutions import Effort
from verifier.analysis.step_counts import StepCount
from verifier.base.arrays import ROUNDOFF
from verifier.base.documents import fraction_text
from verifier.checking.enclosure import AGREEMENT
from verifier.evidence.bundle.certificates import Proven
from verifier.evidence.differences import differing
from verifier.evidence.findings import Finding, Misstated
from verifier.language.expressions import to_text
from verifier.questions.explain.explain_result import ExplainResult
from verifier.questions.require.require_result import RequireResult
from verifier.study.case import Case, Study
from verifier.study.collection import target_of
from verifier.study.options import RunOptions
from verifier.study.points import Point, Uncertainty
from verifier.study.provenance import input_files, matrices_record, run_settings
from verifier.study.records import SettingsRecord
from verifier.study.results import RequirementResult, RunResult

_ROUNDING = Fraction(1, 2**52)
_OF_WIDTH = 2.0**-8
_GIVEN = ", as inputs and request give it"
_PLACE = ("environment", "constants", "initial")
NUMBERS_OF_POINT = 4
"""That are enclosed again: a probability, its two bounds, and what the second engine said."""
_STRATEGIES = ("strategies", "world")
"""What a requirement has only where `--strategies` asks for it."""
_OPTIONAL = ("uncertainty", "exact", "dependence_free")
"""What a point has only where it was asked for; a verdict may rest on it."""


Told: TypeAlias = "RunResult | ExplainResult | RequireResult"
"""The results of a bundle that speak of its system."""


@dataclass
class Tally:
    """How much was looked at, counted up.

    Attributes:
        points: probabilities.
        proven: those among them that certificates prove.
        bounds: confidence bounds that a certificate proves.
        bounds_again: those that were computed again.
    """

    points: int = 0
    proven: int = 0
    bounds: int = 0
    bounds_again: int = 0
    findings: list[Finding] = field(default_factory=list)


def check_head(
    path: str, result: Told, rebuilt: Study, options: RunOptions, with_confidence: bool = True
) -> list[Finding]:
    """Inputs and settings of a result, which must be those of the bundle.

    Args:
        options: that the document must have; of what they say the system depends on all but the source of verdicts.
        with_confidence: whether the result's kind has intervals.
    """
    inputs, told = rebuilt.inputs, result.settings
    expected = {
        "inputs": input_files(inputs.spec, inputs.model, inputs.confusion),
        "settings": run_settings(rebuilt, options, rebuilt.data if with_confidence else None),
        "matrices": matrices_record(inputs.confusion, rebuilt.divided),
        "channel": Channel(classes=rebuilt.tests),
    }
    stated = {
        "inputs": result.inputs,
        "settings": SettingsRecord(**{field.name: getattr(told, field.name) for field in fields(SettingsRecord)}),
        "matrices": result.matrices,
        "channel": result.channel,
    }
    return differing(path, stated, expected, _GIVEN)


def check_scenarios(path: str, run: RunResult, rebuilt: Study) -> list[Finding]:
    """Requirements and scenarios of a run, which must be those that spec, model and request ask for."""
    expected = [_expected(planner, number, rebuilt) for planner, number in _rows(rebuilt)]
    stated = [
        {
            **{name: getattr(one, name) for name in ("name", "planner", "formula", "asked", "target")},
            **{name: _whether(getattr(one, name) is not None) for name in _STRATEGIES},
            "points": [
                {
                    **{name: getattr(point, name) for name in (*_PLACE, "draws", "vacuity")},
                    **{name: _whether(getattr(point, name) is not None) for name in _OPTIONAL},
                }
                for point in one.points
            ],
        }
        for one in run.requirements
    ]
    return differing(path, {"requirements": stated}, {"requirements": expected}, _GIVEN)


class Enclosure(NamedTuple):
    """What is known again of the probability from one initial state: a value, and what the true one lies between; the
    probability, 0 or 1, if every detector gives the same; and in words where that is from."""

    value: float
    low: float
    high: float
    whatever: int | None
    source: str


@dataclass(frozen=True, eq=False)
class Again:
    """The probabilities of an objective from each initial state, known again.

    Attributes:
        objective: the requirement on the block's chain.
        points: what certificates prove about them.
    """

    objective: Objective
    rebuilt: Study
    points: Proven

    @cached_property
    def whatever(self) -> list[int | None]:
        """The probability, 0 or 1, if every detector gives the same; where steps are counted, nobody looks."""
        if isinstance(self.objective, StepCount):
            return [None] * len(self.objective.product.start)
        free = any_dependence(self.objective, self.rebuilt.measured).tolist()
        return [least if least == most else None for least, most in free]

    @cached_property
    def computed(self) -> list[Enclosure]:
        """By the batch engine."""
        if isinstance(self.objective, Optimum):
            return self._optimum(self.objective)
        again = self.objective.probabilities(self.rebuilt.measured.rates[None])
        steps = self.objective.skeleton.channel.rounding_steps
        enclosures = []
        for k, value in enumerate(again.probability[0].tolist()):
            width = float(again.upper[0, k] - again.lower[0, k])
            wide = steps * float(again.representation_bound[0, k])
            slack = wide + AGREEMENT * value + _OF_WIDTH * (wide + width)  # two ways of computing bound it otherwise
            ends = float(again.lower[0, k]) - slack, float(again.upper[0, k]) + slack
            enclosures.append(Enclosure(value, *ends, self.whatever[k], "the batch engine encloses again"))
        return enclosures

    @cached_property
    def bounds(self) -> Proven | None:
        """Confidence bounds where steps are counted; None where certificates prove them, and where they are drawn."""
        data, settings = self.rebuilt.data, self.rebuilt.options.confidence
        if not isinstance(self.objective, StepCount) or data is None or settings is None or data.intervals is None:
            return None
        effort = Effort(attained=False)
        (robust_bounds,) = bounds_of_chain([self.objective], data, settings, effort)
        return Proven(
            [Fraction(low) for low in robust_bounds.lower], [Fraction(high) for high in robust_bounds.upper]
        )

    def _optimum(self, objective: Optimum) -> list[Enclosure]:
        error = ROUNDOFF * objective.skeleton.channel.rounding_steps
        bracket = objective.bracket(self.rebuilt.measured.rates, error)
        slack = AGREEMENT * bracket.value
        ends = (bracket.value, bracket.lower - slack, bracket.upper + slack)
        source = "a strategy of the world, and a proof that no other does better, enclose again"
        numbers = zip(*(end.tolist() for end in ends), self.whatever, strict=True)
        return [Enclosure(value, low, high, known, source) for value, low, high, known in numbers]

    def wrong(self, point: Point, k: int) -> list[tuple[str, str, str]]:
        """(pointer, found, expected) of the numbers of a point that proof and batch engine contradict.

        The engine is asked where nothing is proven, and where what is stated is wider than it need be.
        """
        low, high = self.points.lower[k], self.points.upper[k]
        if low is None or high is None:
            return list(_wrong_numbers(point, self.computed[k]))
        if not wrong_beside_proof(point, low, high, self.whatever[k]):
            return []
        return [*wrong_of_proof(point, low, high), *_wrong_numbers(point, self.computed[k])]


def wrong_beside_proof(
    point: Point, low: Fraction, high: Fraction, whatever: int | None
) -> list[tuple[str, str, str]]:
    """(pointer, found, expected) of the numbers of a point that are not as close to what certificates prove, `low` to
    `high`, as engines are; `whatever` as in `Enclosure`."""
    slack = AGREEMENT * float(high)
    known = Enclosure(float(high), float(low) - slack, float(high) + slack, whatever, "a certificate proves")
    return [*wrong_of_proof(point, low, high), *_wrong_numbers(point, known)]


def wrong_of_proof(point: Point, low: Fraction, high: Fraction) -> Iterator[tuple[str, str, str]]:
    """(pointer, found, expected) of the numbers of a point that contradict what is proven."""
    proven = f"a value within {float(low)!r} to {float(high)!r}, as its certificate proves"
    if point.exact is not None:
        if not low <= point.exact <= high:
            yield "/exact", fraction_text(point.exact)[:60], proven
    elif Fraction(point.lower) > high:
        yield "/lower", repr(point.lower), proven
    elif Fraction(point.upper) < low:
        yield "/upper", repr(point.upper), proven


def is_proven(point: Point, low: Fraction | None, high: Fraction | None) -> bool:
    """Whether what certificates prove lies within the stated bounds; or agrees with the fraction, as far as doubles
    tell."""
    if low is None or high is None:
        return False
    if point.exact is not None:
        return low <= point.exact <= high and high - low <= _ROUNDING
    return Fraction(point.lower) <= low and high <= Fraction(point.upper)


def check_points(
    path: str, one: RequirementResult, pointer: str, first: int, again: Again, proven: Proven | None, tally: Tally
) -> None:
    """The numbers of one requirement at the initial states of one block.

    Args:
        first: number of its first point in this block.
        proven: what certificates prove about its confidence bounds; None where there are none.
    """
    for k, ends in enumerate(zip(*again.points, strict=True)):
        point, at = one.points[first + k], f"{pointer}/points/{first + k}"
        wrong = again.wrong(point, k)
        if point.uncertainty is not None:
            wrong += _wrong_bounds(point.uncertainty, point.probability, k, proven, again)
            tally.bounds += 0 if proven is None else 2
            tally.bounds_again += 0 if proven is not None or again.bounds is None else 2
        tally.points += 1
        tally.proven += is_proven(point, *ends)
        tally.findings += [Misstated(path, at + where, said, expected) for where, said, expected in wrong]


def places_of(rebuilt: Study) -> Iterator[tuple[int, Case, list[tuple[int, int]]]]:
    """For every case its number, itself, and for each requirement (its row in the run's document, its first point).

    The points of a requirement are those of all cases of its planner, in the order of the grid.
    """
    rows = {row: k for k, row in enumerate(_rows(rebuilt))}
    count = len(rebuilt.grid.requirements)
    begun: dict[str, int] = {}
    for number, case in enumerate(rebuilt.cases):
        planner = case.planner.name
        first = begun.get(planner, 0)
        yield number, case, [(rows[planner, number], first) for number in range(count)]
        begun[planner] = first + len(case.initial_states)


def _rows(rebuilt: Study) -> list[tuple[str, int]]:
    """(planner, number of the requirement) of each requirement of the run's document."""
    planners = dict.fromkeys(block.planner.name for block in rebuilt.grid.blocks)
    return [(planner, k) for planner in planners for k in range(len(rebuilt.grid.requirements))]


def _expected(planner: str, number: int, rebuilt: Study) -> dict[str, Any]:
    requirement = rebuilt.grid.requirements[number]
    kinds = {block.planner.kind for block in rebuilt.grid.blocks if block.planner.name == planner}
    return {
        "name": requirement.name,
        "planner": planner,
        "formula": to_text(requirement.formula, parenthesise=True),
        "asked": str(requirement.asked),
        "target": target_of(requirement),
        "strategies": _whether(rebuilt.options.strategies and "synthesis" in kinds),
        "world": _whether(rebuilt.options.strategies and bool(rebuilt.inputs.model.decides)),
        "points": [
            {
                "environment": case.environment,
                "constants": case.constants,
                "initial": initial,
                "draws": list(case.draws),
                "vacuity": case.findings[number].vacuity[k],
                "uncertainty": _whether(rebuilt.bounded),
                "exact": _whether(rebuilt.options.engines.exact),
                "dependence_free": _whether(rebuilt.options.dependence_free),
            }
            for case in rebuilt.cases
            if case.planner.name == planner
            for k, initial in enumerate(case.initial_states)
        ],
    }


def _whether(there: bool) -> str:
    return "there" if there else "not there"


def _wrong_numbers(point: Point, again: Enclosure) -> Iterator[tuple[str, str, str]]:
    """(pointer, found, expected) of the numbers of a point that the second engine contradicts."""
    low, high = again.low, again.high
    whatever = point.whatever_predicted
    if whatever is not None and whatever != again.whatever:
        yield "/whatever_predicted", str(whatever), "nothing: it depends on what the detector predicts"
    elif whatever is None and again.whatever == point.probability:
        yield "/whatever_predicted", "nothing", f"{again.whatever}, whatever the detector predicts"
    enclosure = f"a value within {low!r} to {high!r}, which {again.source}"
    lower, upper, value = point.lower, point.upper, point.probability
    if not low <= value <= high:
        yield "/probability", repr(value), enclosure
    if not low <= point.second_engine <= high:
        yield "/second_engine", repr(point.second_engine), f"{again.value!r}, which {again.source}"
    if not lower <= value <= upper:
        yield "/probability", repr(value), f"a value within its own bounds {lower!r} to {upper!r}"
    if not low <= lower <= high:
        yield "/lower", repr(lower), enclosure
    if not low <= upper <= high:
        yield "/upper", repr(upper), enclosure
    if point.exact is not None and float(point.exact) != value:
        yield "/exact", fraction_text(point.exact)[:60], f"the fraction that rounds to {value!r}"


def _wrong_bounds(
    uncertainty: Uncertainty, probability: float, k: int, proven: Proven | None, again: Again
) -> Iterator[tuple[str, str, str]]:
    settings, known = again.rebuilt.options.confidence, again.bounds if proven is None else proven
    if settings is not None and uncertainty.level != settings.level:
        yield "/uncertainty/level", repr(uncertainty.level), repr(settings.level)
    stated = uncertainty.confidence_bounds
    if stated is None:
        yield "/uncertainty", "no confidence bounds", "those of the probability"
        return
    for side, sign, number in (("lower", 1, stated.lower), ("upper", -1, stated.upper)):
        where = f"/uncertainty/confidence_bounds/{side}"
        if sign * (probability - number) < -AGREEMENT:
            yield where, repr(number), f"a bound of the probability {probability!r} beside it"
        if known is None:
            continue
        bound = (known.lower if side == "lower" else known.upper)[k]
        if known is again.bounds and bound is not None:
            if abs(bound - Fraction(number)) > Fraction(AGREEMENT):
                yield where, repr(number), f"{float(bound)!r}, as it is computed again"
            continue
        if bound is None:
            yield where, repr(number), "a certificate that proves it, and there is none"
        elif not 0 <= sign * (bound - Fraction(number)) <= _ROUNDING:
            yield where, repr(number), f"{float(bound)!r}, as its certificate proves"
