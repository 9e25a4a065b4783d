"""Means over the profile: the numbers of all scenarios of a requirement, by the weights of the scenarios.

A scenario counts for the `weight` of its environment times that of its initial state, divided by their sum over all
scenarios with the same values of the swept constants. The scenarios share the draws of the matrices, so that the mean
has an interval of its own, from the means of the draws.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from verifier.analysis.confidence import Data
from verifier.analysis.intervals.intervals import Interval, percentile_interval
from verifier.analysis.settings import ConfidenceSettings
from verifier.base.arrays import grouped
from verifier.base.errors import UsageError
from verifier.checking.enclosure import doubles_around
from verifier.study.case import Case, Study
from verifier.study.optima import weights_of
from verifier.study.points import Point, PointInterval, ProfileMean, exactly


@dataclass(frozen=True)
class Profile:
    """What the scenarios of one requirement under one planner count for, and the means of the draws.

    Attributes:
        weights: one per scenario, in the order of the grid.
        intervals: for each value of the swept constants that of the mean; empty without intervals.
    """

    weights: tuple[Fraction, ...]
    intervals: tuple[Interval, ...]

    def means(self, points: Sequence[Point]) -> tuple[ProfileMean, ...]:
        """The means of some points, one per value of the swept constants."""
        groups = grouped((tuple(point.constants.items()), at) for at, point in enumerate(points))
        profile_means = []
        for number, (constants, places) in enumerate(groups.items()):
            weighed = [(self.weights[at], points[at]) for at in places if self.weights[at]]
            value = sum(weight * point.value for weight, point in weighed)
            lower, upper = (sum(w * exactly(getattr(p, end)) for w, p in weighed) for end in ("lower", "upper"))
            exact = value if all(point.exact is not None for _, point in weighed) else None
            profile_means.append(
                ProfileMean(
                    constants=dict(constants),
                    probability=float(value),
                    lower=min(_ends(lower)[0], float(value)),
                    upper=max(_ends(upper)[1], float(value)),
                    exact=exact,
                    interval=PointInterval.of(self.intervals[number]) if self.intervals else None,
                )
            )
        return tuple(profile_means)


def profiles(study: Study, data: Data | None) -> Mapping[tuple[str, str], Profile]:
    """Planner and name -> profile, for the requirements that ask for a mean.

    Raises:
        UsageError: all weights are 0.
        VerifierError: as drawing and solving.
    """
    names = [
        (number, requirement.name)
        for number, requirement in enumerate(study.requirements)
        if requirement.over_profile
    ]
    if names and study.options.initial_context in ("worst", "counted"):
        raise UsageError(
            f"requirement '{names[0][1]}' asks for the mean over the profile, which is known for one context at the "
            f"initial states: --initial-context start, right or wrong, not {study.options.initial_context}"
        )
    weighed: dict[tuple[str, str], Profile] = {}
    for planner in dict.fromkeys(case.planner.name for case in study.cases) if names else ():
        cases = [case for case in study.cases if case.planner.name == planner]
        groups = grouped((tuple(case.constants.items()), place) for place, case in enumerate(cases))
        weights = [[Fraction(0)]] * len(cases)
        for places in groups.values():
            shared = _shared([cases[place] for place in places])
            for place, own in zip(places, shared, strict=True):
                weights[place] = own
        for number, name in names:
            settings = study.options.confidence
            intervals: tuple[Interval, ...] = ()
            if data is not None and settings is not None:
                together = [[(cases[place], weights[place]) for place in places] for places in groups.values()]
                intervals = tuple(_interval(row, number, data, settings) for row in together)
            weighed[planner, name] = Profile(tuple(w for weight in weights for w in weight), intervals)
    return weighed


def profile_weights(study: Study, constants: Mapping[str, str]) -> dict[str, list[Fraction]]:
    """Environment -> what each initial state counts for, 1 together; errors as `profiles`."""
    here = [case for case in study.cases if case.constants == dict(constants)]
    cases = {case.environment: case for case in here}  # the same for all planners
    return dict(zip(cases, _shared(list(cases.values())), strict=True))


def _shared(cases: Sequence[Case]) -> list[list[Fraction]]:
    """The weights of the initial states of some cases of one planner, as shares of their sum."""
    weights = [weights_of(case) for case in cases]
    total = sum(sum(weight) for weight in weights)
    if total == 0:
        who = cases[0].planner.name
        message = f"planner {who}: the weights of all scenarios are 0, so there is no mean"
        raise cases[0].system.model.at("weight").error(message, None)
    return [[weight / total for weight in fractions] for fractions in weights]


def _interval(
    cases: Iterable[tuple[Case, Sequence[Fraction]]], number: int, data: Data, settings: ConfidenceSettings
) -> Interval:
    """That of the mean of one requirement over some cases."""
    ends, most = np.zeros((2, data.draws)), 1.0
    for case, weights in cases:
        objective = case.objectives[number]
        most, share = objective.most, np.array([float(weight) for weight in weights])
        first = 0
        for low, high in data.maker.numbers(objective, data, settings):
            last = first + len(low)
            for end, drawn in zip(ends, (low, high), strict=True):
                end[first:last] += np.where(share > 0, drawn, 0) @ share
            first = last
    if most == 1:
        ends = np.minimum(ends, 1.0)
    kind = data.choice.kind
    least, largest = (percentile_interval(end[:, None], settings.level, kind, most) for end in ends)
    ranges = least.lower_range, largest.upper_range
    return Interval(least.lower, largest.upper, settings.level, kind, *ranges, data.draws, most)


def _ends(number: Fraction | float) -> tuple[float, float]:
    return (number, number) if isinstance(number, float) else doubles_around(Fraction(number))
