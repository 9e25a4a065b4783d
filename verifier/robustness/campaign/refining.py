"""Where requirements break along the sweeps of a campaign, and the levels between that narrow these brackets.

A sweep is all mutations of one kind that differ in one parameter, whose value for "nothing is done" is known: there,
as the mildest level, stands the baseline.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from verifier.closedloop.comparison import BASELINE
from verifier.robustness.brackets import PHYSICAL, Break, Criterion, Scale, along, break_of, gaps, halfway, middle
from verifier.robustness.campaign.file import Campaign
from verifier.robustness.campaign.result import BreakRow, RequirementRow, requirement_criterion
from verifier.robustness.mutators import AnyMutation
from verifier.robustness.mutators.batch_result import folder_name
from verifier.robustness.mutators.catalogue import Plain
from verifier.robustness.mutators.mutation import Mutation

Checked: TypeAlias = Mapping[tuple[str, str], Sequence[RequirementRow]]
"""By detector and condition."""
NOTHING_DONE: Mapping[tuple[str, str], float] = {
    ("haze", "visibility_m"): math.inf,
    ("haze", "beta_per_m"): 0.0,
    ("snow", "visibility_m"): math.inf,
    **dict.fromkeys(
        (
            ("gaussian_blur", "sigma_px"),
            ("alpha_blend", "alpha"),
            ("salt_and_pepper", "share"),
            ("defocus", "kappa_m_px"),
            ("motion_blur", "length_px"),
            ("rain", "rate_mm_h"),
        ),
        0.0,
    ),
}
"""Of parameters that grow from it without turning back: the level at which an image stays as it is."""


@dataclass(frozen=True)
class Sweep:
    """The conditions of a sweep by their level, the mildest, which is the baseline, first.

    Attributes:
        others: the values of the other parameters.
    """

    mutation: str
    parameter: str
    others: tuple[tuple[str, Plain], ...]
    conditions: Mapping[float, str]

    @property
    def scale(self) -> Scale:
        """Along what levels are halved."""
        return PHYSICAL.get(self.parameter, "linear")

    def at(self, level: float) -> Mutation:
        """The mutation at a level; ValueError where there is none."""
        return Mutation(self.mutation, {**dict(self.others), self.parameter: level})

    def between(self, mild: float, severe: float) -> float | None:
        """The level halfway; None where the mutation has none there."""
        half = middle(mild, severe, self.scale)
        with contextlib.suppress(ValueError):
            if half is not None:
                self.at(half)
                return half
        return None


def sweeps(mutations: Mapping[str, AnyMutation]) -> list[Sweep]:
    """Every sweep of some conditions, in the order in which these first occur."""
    found: dict[tuple[str, str, tuple[tuple[str, Plain], ...]], dict[float, str]] = {}
    for name, each in mutations.items():
        (step, *more) = each.steps
        for parameter, value in () if more else step.parameters.items():
            if (step.name, parameter) in NOTHING_DONE and isinstance(value, int | float):
                others = tuple((key, other) for key, other in step.parameters.items() if key != parameter)
                found.setdefault((step.name, parameter, others), {})[float(value)] = name
    made = []
    for (mutation, parameter, others), levels in found.items():
        nothing, scale = NOTHING_DONE[mutation, parameter], PHYSICAL.get(parameter, "linear")
        levels.setdefault(nothing, BASELINE)
        ordered = {level: levels[level] for level in sorted(levels, key=partial(along, scale=scale))}
        made.append(Sweep(mutation, parameter, others, ordered))
    return made


def _criteria(sweep: Sweep, detector: str, checked: Checked) -> Iterator[tuple[RequirementRow, Criterion]]:
    """The requirements that have a target, along a sweep."""
    series = [checked[detector, name] for name in sweep.conditions.values()]
    for rows in zip(*series, strict=True):
        if rows[0].margin is not None:
            yield rows[0], requirement_criterion(rows, rows[0].name, rows[0].asked)


def breaks(campaign: Campaign, checked: Checked) -> Iterator[BreakRow]:
    """Where every requirement breaks along every sweep, for every detector."""
    for sweep in sweeps(campaign.mutations) if checked else ():
        for detector in campaign.detectors:
            for row, criterion in _criteria(sweep, detector, checked):
                found = break_of(criterion, tuple(sweep.conditions), sweep.scale)
                yield _row(sweep, detector, row, found)


def _row(sweep: Sweep, detector: str, row: RequirementRow, found: Break) -> BreakRow:
    places = (found.holds_at, found.fails_at, found.sure_until, found.sure_at)
    holds, fails, until, sure = (None if level is None else sweep.conditions[level] for level in places)
    about = detector, row.name, row.planner, sweep.mutation, sweep.parameter
    return BreakRow(*about, holds, fails, until, sure, found.recovers, found.can_narrow)


def further(campaign: Campaign, checked: Checked, most: int) -> dict[str, AnyMutation]:
    """The mutations of the campaign with at most so many new ones, each behind its milder neighbour; the widest gaps
    in which more can be known of where some requirement breaks are halved first."""
    mutations = dict(campaign.mutations)
    for sweep in sweeps(campaign.mutations) if checked else ():
        found: dict[tuple[float, float], float] = {}
        for detector in campaign.detectors:
            for _, criterion in _criteria(sweep, detector, checked):
                found |= gaps(criterion, tuple(sweep.conditions), sweep.scale)
        room = most - (len(mutations) - len(campaign.mutations))
        for level in halfway(found, sweep.between, room):
            made, far = sweep.at(level), along(level, sweep.scale)
            milder = [name for at, name in sweep.conditions.items() if along(at, sweep.scale) < far]
            names = list(mutations)
            first = next(name for name in sweep.conditions.values() if name != BASELINE)
            at_place = names.index(milder[-1]) + 1 if milder[-1] in mutations else names.index(first)
            names.insert(at_place, folder_name(made))
            every = {**mutations, folder_name(made): made}
            mutations = {name: every[name] for name in names}
    return mutations
