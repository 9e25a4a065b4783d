"""Where requirements break along the sweeps of a campaign, and the levels between that narrow these brackets.

A sweep is all mutations of one kind that differ in one parameter and lie to one side of where nothing is done: there,
as the mildest level, stands the baseline.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from verifier.closedloop.comparison import BASELINE
from verifier.robustness.brackets import PHYSICAL, Criterion, Scale, along, break_of, gaps, halfway
from verifier.robustness.campaign.file import Campaign
from verifier.robustness.campaign.result import BreakRow, RequirementRow, requirement_criterion
from verifier.robustness.mutators import AnyMutation
from verifier.robustness.mutators.batch_result import folder_name
from verifier.robustness.mutators.catalogue import Plain
from verifier.robustness.mutators.mutation import Mutation

Checked: TypeAlias = Mapping[tuple[str, str], Sequence[RequirementRow]]
"""By detector and condition."""
NOTHING_DONE: Mapping[str, float] = {
    "gaussian_blur:sigma_px": 0.0, "alpha_blend:alpha": 0.0, "salt_and_pepper:share": 0.0, "defocus:kappa_m_px": 0.0,
    "motion_blur:length_px": 0.0, "rain:rate_mm_h": 0.0, "haze:beta_per_m": 0.0, "haze:visibility_m": math.inf,
    "snow:visibility_m": math.inf, "shifted_lines:share": 0.0, "rotation:angle_deg": 0.0, "pixelation:block_px": 1.0,
    "brightness:factor": 1.0, "contrast:factor": 1.0, "jpeg:quality": math.inf, "night:light": math.inf,
    "low_light:light": math.inf, "additive_noise:constant_sd": -math.inf, "additive_noise:signal_sd": -math.inf,
    "chromatic_aberration:expansion": -math.inf, "shifted_lines:most_px": -math.inf,
    **{f"truncation:{side}": -math.inf for side in ("left", "top", "right", "bottom")},
}  # fmt: skip
"""The level at which an image stays as it is; infinite where there is none: every level does more than nothing."""


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

    def milder(self, level: float) -> str:
        """The condition before a level that lies between others."""
        way = {along(at, self.scale): name for at, name in self.conditions.items()}
        first, *_, last = way
        inside = [at for at in way if (at < along(level, self.scale)) is (first < last)]
        return way[inside[-1]]


def sweeps(mutations: Mapping[str, AnyMutation]) -> list[Sweep]:
    """Every sweep of some conditions, in the order in which these first occur."""
    found: dict[tuple[str, str, tuple[tuple[str, Plain], ...]], dict[float, str]] = {}
    for name, each in mutations.items():
        (step, *more) = each.steps
        for parameter, value in () if more else step.parameters.items():
            if f"{step.name}:{parameter}" in NOTHING_DONE and isinstance(value, int | float):
                others = tuple((key, other) for key, other in step.parameters.items() if key != parameter)
                found.setdefault((step.name, parameter, others), {})[float(value)] = name
    made = []
    for (mutation, parameter, others), levels in found.items():
        nothing, scale = NOTHING_DONE[f"{mutation}:{parameter}"], PHYSICAL.get(parameter, "linear")
        place = partial(along, scale=scale)
        for falls in (False, True):
            side = [at for at in levels if at != nothing and (place(at) < place(nothing)) is falls]
            if len(side) > 1 or (side and math.isfinite(place(nothing))):  # nothing lies halfway to where no level is
                start = {nothing: levels.get(nothing, BASELINE)}
                way = start | {at: levels[at] for at in sorted(side, key=place, reverse=falls)}
                made.append(Sweep(mutation, parameter, others, way))
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
                places = (found.holds_at, found.fails_at, found.sure_until, found.sure_at)
                holds, fails, until, sure = (None if level is None else sweep.conditions[level] for level in places)
                about = detector, row.name, row.planner, sweep.mutation, sweep.parameter
                yield BreakRow(*about, holds, fails, until, sure, found.recovers, found.can_narrow)


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
        for level in halfway(found, sweep.scale, sweep.at, room):
            made, milder, names = sweep.at(level), sweep.milder(level), list(mutations)
            first = next(name for name in sweep.conditions.values() if name != BASELINE)
            at_place = names.index(milder) + 1 if milder in mutations else names.index(first)
            names.insert(at_place, folder_name(made))
            every = {**mutations, folder_name(made): made}
            mutations = {name: every[name] for name in names}
    return mutations
