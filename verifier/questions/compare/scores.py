"""Scores of all configurations, draw by draw; and from them tables: intervals, chances, the Pareto view.

A score is a probability, or its negative where the requirement has an upper limit: larger is better. The score of a
configuration is the worst over its scenarios, in every draw again, because which scenario is the worst depends on the
matrices. Along an axis it is the worst over the scenarios at each place.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.comparison import (
    best_chances,
    better_chances,
    non_dominated,
    non_dominated_chances,
    ranking_changes,
)
from verifier.analysis.confidence import Data
from verifier.analysis.intervals.drawing import probability_draws
from verifier.analysis.intervals.intervals import percentile_interval
from verifier.analysis.objective import Objective
from verifier.analysis.settings import ConfidenceSettings, IntervalKind, check_draws
from verifier.base.arrays import Floats
from verifier.base.errors import NoAnswerError, UsageError
from verifier.base.numbers import decimal_text, memory_text
from verifier.checking.verdicts import condition_over, verdict_over
from verifier.language.expressions import evaluate, to_text
from verifier.language.specs import Requirement
from verifier.questions.compare.compare_result import (
    Configuration,
    Curve,
    Entry,
    ParetoView,
    Reach,
    RequirementComparison,
    ScoreInterval,
)
from verifier.study.collection import outside_remarks, target_of
from verifier.study.inputs import Block
from verifier.study.points import Point, ProfileMean
from verifier.study.profile import Profile
from verifier.systems.skeleton import Skeleton

Place: TypeAlias = "tuple[str, Fraction]"

WHOLE: Place = ("", Fraction(0))
"""The place that holds every scenario."""
DISTANCE = "initial distance (m)"
MOST_PLACES = 200
"""On an axis, among the initial states of one chain."""
MEMORY_BYTES = 2**31
"""Most memory for scores."""


@dataclass(eq=False)
class Scores:
    """What was collected; the keys are (requirement, configuration, place), and `of` the first two of them.

    Attributes:
        draws: their number M.
        least: (M,) worst score.
        points: the worst of Storm's points.
    """

    draws: int
    least: dict[tuple[int, int, Place], Floats] = field(default_factory=dict)
    points: dict[tuple[int, int, Place], Point] = field(default_factory=dict)

    def add(self, of: tuple[int, int], sign: int, where: Mapping[Place, list[int]], parts: Iterable[Floats]) -> None:
        """Take the draws of one block.

        Args:
            sign: 1 if larger probabilities are better, else -1.
            where: for each place the initial states of the block that lie there.
            parts: (c, m) probabilities, M rows in all.

        Raises:
            NoAnswerError: the scores would need more memory than `MEMORY_BYTES`.
        """
        new = [place for place in where if (*of, place) not in self.least]
        needed = (len(self.least) + len(new)) * self.draws * 8
        if needed > MEMORY_BYTES:
            raise NoAnswerError(
                f"{self.draws} draws at {len(self.least) + len(new)} places need {memory_text(needed)}; at most "
                f"{memory_text(MEMORY_BYTES)} are used",
                hint="fewer draws (--draws), swept values, initial states or planners",
            )
        for place in new:
            self.least[*of, place] = np.full(self.draws, np.inf)
        row = 0
        for part in parts:
            scores = sign * part
            for place, starts in where.items():
                mine = self.least[*of, place][row : row + len(part)]
                np.minimum(mine, scores[:, starts].min(axis=1), out=mine)
            row += len(part)
        if row != self.draws:
            raise ValueError(f"expected {self.draws} draws, got {row}")

    def add_points(
        self, of: tuple[int, int], sign: int, where: Mapping[Place, list[int]], points: Sequence[Point]
    ) -> None:
        """Take Storm's points of one block, one per initial state."""
        for place, starts in where.items():
            key = (*of, place)
            candidates = [*([self.points[key]] if key in self.points else []), *(points[k] for k in starts)]
            self.points[key] = min(candidates, key=lambda point: sign * point.probability)

    def add_mean(self, of: tuple[int, int], mean: ProfileMean, point: Point, drawn: Floats) -> None:
        """Take a mean over the profile, (M,) as drawn; `point` is of any of its scenarios."""
        places = [WHOLE, *((name, Fraction(value)) for name, value in mean.constants.items())]
        where = {place: [0] for place in places}
        known = replace(point, probability=mean.probability, lower=mean.lower, upper=mean.upper)
        self.add_points(of, 1, where, [known])
        self.add(of, 1, where, [drawn[:, None]])

    def table(self, requirement: int, configurations: int, place: Place = WHOLE) -> Floats:
        """(M, configurations) scores at a place; -inf where a configuration has no scenario there."""
        nothing = np.full(self.draws, -np.inf)
        return np.stack(
            [self.least.get((requirement, number, place), nothing) for number in range(configurations)], axis=1
        )

    def curves(self, requirement: int, kinds: Sequence[IntervalKind], sign: int, level: float) -> Iterator[Curve]:
        """The configurations along every axis on which the scenarios of a requirement differ.

        Args:
            kinds: of each configuration's draws.
            sign: as in `add`.
        """
        axes: dict[str, set[Fraction]] = {}
        for of, _, (axis, value) in self.least:
            if of == requirement and (axis, value) != WHOLE:
                axes.setdefault(axis, set()).add(value)
        for axis, values in axes.items():
            if len(values) > 1:
                yield self._curve(requirement, kinds, sign, level, axis, sorted(values))

    def _curve(
        self,
        requirement: int,
        kinds: Sequence[IntervalKind],
        sign: int,
        level: float,
        axis: str,
        values: list[Fraction],
    ) -> Curve:
        count = len(kinds)
        scores = np.stack([self.table(requirement, count, (axis, value)) for value in values], axis=1)
        keys = [[(requirement, number, (axis, value)) for number in range(count)] for value in values]
        rows: dict[str, list[tuple[float | None, ...]]] = {"probability": [], "lower": [], "upper": []}
        for place, row in enumerate(keys):
            ends = [
                interval_of(sign * scores[:, place, number], level, kinds[number])
                if key in self.points
                else (None, None)
                for number, key in enumerate(row)
            ]
            rows["probability"].append(
                tuple(self.points[key].probability if key in self.points else None for key in row)
            )
            rows["lower"].append(tuple(low for low, _ in ends))
            rows["upper"].append(tuple(high for _, high in ends))
        points = np.array(
            [[np.nan if value is None else sign * value for value in row] for row in rows["probability"]]
        )
        return Curve(
            axis,
            tuple(map(decimal_text, values)),
            tuple(rows["probability"]),
            tuple(rows["lower"]),
            tuple(rows["upper"]),
            tuple(ranking_changes(points, scores)),
        )


def interval_of(probabilities: Floats, level: float, kind: IntervalKind) -> tuple[float, float]:
    """The equal-tailed interval of (M,) draws."""
    interval = percentile_interval(probabilities[:, None], level, kind)
    return float(interval.lower[0]), float(interval.upper[0])


def places_of(block: Block, skeleton: Skeleton) -> dict[Place, list[int]]:
    """For each place the initial states of a block that lie there.

    Places are the values of the swept constants, of the variables of the initial state, and the distance of the
    object, where one object (or the place where there is no object) makes up the environment. An axis on which the
    initial states of one block have more than `MOST_PLACES` places is left out, and so are contexts: they are no
    numbers, and detectors may have different ones.
    """
    count = len(skeleton.starts)
    places: dict[Place, list[int]] = {WHOLE: list(range(count))}
    places.update({(name, Fraction(value)): list(range(count)) for name, value in block.swept.items()})
    starts = {name: value[skeleton.starts] for name, value in skeleton.valuations.items()}
    columns = {f"initial {variable.name}": starts[variable.name].tolist() for variable in block.system.variables}
    objects = block.system.environment(block.environment)
    if len(objects) == 1:
        source = block.system.model.at(f"environments.{block.environment}[0].distance_m")
        distance = np.broadcast_to(np.asarray(evaluate(objects[0].distance_m, starts, source)), (count,))
        columns[DISTANCE] = distance.tolist()
    for name, values in columns.items():
        if len(set(values)) > MOST_PLACES:
            continue
        for k, value in enumerate(values):
            places.setdefault((name, Fraction(value)), []).append(k)
    return places


FEWEST_SHARED = 1000
"""Draws that are made of each detector, however many detectors there are, where its chains can afford them."""
FEWEST_HITS = 10


def shared_draws(data: Iterable[Data], settings: ConfidenceSettings) -> int:
    """How many draws are made of every detector, so that all can be compared draw by draw.

    As many as asked for. Without a request, what the costliest detector can afford, shared among all, but at least
    `FEWEST_SHARED` as far as it can afford those.
    """
    affordable = [evidence.draws for evidence in data]
    if settings.draws is not None:
        return check_draws(settings.draws)
    return max(min(affordable) // len(affordable) // 100 * 100, min(*affordable, FEWEST_SHARED))


def check_enough_draws(count: int, least_chance: Fraction | None) -> None:
    """Refuse to tell a chance from so few draws that it, or its complement, would be less than `FEWEST_HITS` of them.

    Raises:
        UsageError: with the number that would do.
    """
    if least_chance is None:
        return
    needed = math.ceil(FEWEST_HITS / min(least_chance, 1 - least_chance))
    if count < needed:
        raise UsageError(
            f"{count} draws do not tell a probability of {float(least_chance):g} from others; it takes {needed} "
            "(--draws)"
        )


def drawn_probabilities(
    objective: Objective, data: Data, settings: ConfidenceSettings
) -> Iterator[NDArray[np.float64]]:
    """(c, m) probabilities of each draw from each initial state, `data.draws` rows in all.

    Draw number d has the same matrices for every objective on the same counts, and for detectors of the same
    drives the same weights of these.

    Args:
        objective: formula and skeleton.
        data: the detector's counts, and what is drawn.
        settings: prior and seed.
    """
    if not len(objective.skeleton.columns_needed()):  # nothing that is reported changes anything
        probabilities = objective.probabilities(data.measured.rates[None]).probability
        return iter([np.repeat(probabilities, data.draws, axis=0)])
    return probability_draws(objective, data.maker.matrices([objective], data, settings))


def requirement_comparison(
    requirement: Requirement,
    configurations: Sequence[Configuration],
    points: Sequence[Sequence[Point]],
    scores: Scores,
    index: int,
    kinds: Sequence[IntervalKind],
    level: float,
    reach: tuple[Reach, ...] = (),
    profiles: Sequence[Profile | None] = (),
    bounds: Sequence[Sequence[ScoreInterval]] = (),
) -> RequirementComparison:
    """One requirement over all configurations.

    Args:
        requirement: of the spec, number `index` in `scores`.
        configurations: in the order of the scores.
        points: Storm's, of each configuration.
        scores: all of the spec.
        kinds: of each configuration's draws.
        reach: of the best possible planner.
        profiles: what the scenarios of each configuration count for, where means are asked for.
        bounds: the confidence bounds of the points, where these decide.
    """
    sign = -1 if requirement.is_upper else 1
    table = scores.table(index, len(configurations))
    best = best_chances(table)
    entries = []
    for k, configuration in enumerate(configurations):
        own, profile = tuple(points[k]), profiles[k] if profiles else None
        worst = min(range(len(own)), key=lambda at, own=own: sign * own[at].probability)  # type: ignore[misc]
        verdict = verdict_over(point.verdict for point in own)
        entries.append(
            Entry(
                **vars(configuration),
                verdict=verdict,
                condition=condition_over(verdict, ((point.verdict, point.condition) for point in own)),
                worst=worst,
                interval=ScoreInterval(*interval_of(sign * table[:, k], level, kinds[k])),
                best=float(best[k]),
                points=own,
                weights=() if profile is None else profile.weights,
                means=() if profile is None else profile.means(own),
                confidence_bounds=bounds[k][worst] if bounds and bounds[k] else None,
            )
        )
    return RequirementComparison(
        requirement.name,
        to_text(requirement.formula, parenthesise=True),
        target_of(requirement),
        tuple(entries),
        tuple(tuple(row) for row in better_chances(table).tolist()),
        tuple(scores.curves(index, kinds, sign, level)),
        reach,
        str(requirement.asked),
    )


def pareto_view(
    names: tuple[str, str], requirements: Sequence[RequirementComparison], scores: Scores, configurations: int
) -> ParetoView | None:
    """Two requirements at once; None when the spec does not have both."""
    known = [requirement.name for requirement in requirements]
    if not set(names) <= set(known):
        return None
    indices = [known.index(name) for name in names]
    signs = [-1 if requirements[index].is_upper else 1 for index in indices]
    points = np.array(
        [
            [sign * requirements[index].entries[k].probability for index, sign in zip(indices, signs, strict=True)]
            for k in range(configurations)
        ]
    )
    draws = np.stack([scores.table(index, configurations) for index in indices], axis=2)
    return ParetoView(
        *names,
        tuple(bool(is_best) for is_best in non_dominated(points)),
        tuple(float(chance) for chance in non_dominated_chances(draws)),
    )


def outside_intervals(requirements: Iterable[RequirementComparison]) -> list[str]:
    """Say where an interval excludes the P beside it."""
    beside = []
    for asked in requirements:
        for entry in asked.entries:
            own = min(entry.means, key=lambda mean: mean.probability, default=entry.worst_point)
            if not (entry.interval.lower <= own.upper and own.lower <= entry.interval.upper):
                beside.append((asked.asked, f"{asked.name}, {entry.detector}, planner {entry.planner}"))
    return outside_remarks(beside[0][0], [name for _, name in beside]) if beside else []
