"""What a campaign found, as one document: a row for each detector under each mutation, and the files behind it.

What simple mutation each pixel of a person gets from one by depth (Figure 8 of Pezzementi et al. 2018): haze blends a
pixel at depth D with weight 1 - exp(-beta D), defocus spreads it by rho = kappa |D - u_f| / (D u_f). Beside the
weights with which blends and blurs predict an ADR (`verifier.robustness.prediction`) stand these shares.

Where requirements break along the sweeps of a campaign, and the levels between that narrow these brackets.

A sweep is all mutations of one kind that differ in one parameter and lie to one side of where nothing is done: there,
as the mildest level, stands the baseline.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from verifier.base.documents import Count, Magnitude, Share
from verifier.base.result import Result
from verifier.checking.verdicts import Verdict, worst_verdict
from verifier.closedloop.comparison import BASELINE
from verifier.closedloop.trade_offs import TradeOffs
from verifier.robustness.brackets import PHYSICAL, Criterion, Scale, along, break_of, gaps, halfway
from verifier.robustness.campaign.file import Campaign
from verifier.robustness.campaign.scenes import Scenes
from verifier.robustness.mutators import AnyMutation
from verifier.robustness.mutators.batch_result import folder_name
from verifier.robustness.mutators.catalogue import Plain
from verifier.robustness.mutators.defocus import Lens
from verifier.robustness.mutators.mutation import Mutation
from verifier.robustness.mutators.photometric import scattering_per_m
from verifier.robustness.rates import AdrResult, DocumentHead, Ends

_SIMPLE = {"haze": "alpha", "defocus": "sigma_px"}
EDGES = {"alpha": np.linspace(0, 1, 11), "sigma_px": np.append(np.linspace(0, 3.5, 8), np.inf)}
"""Of the bins: blends by tenths, blurs by half pixels."""


@dataclass(frozen=True)
class Magnitudes:
    """Shares of the pixels in objects' rectangles, of known depth, by the magnitude of the simple mutation.

    Attributes:
        parameter: "alpha" of a blend or "sigma_px" of a blur.
        lower: ends of the bins from below; the last bin of `sigma_px` has no upper one.
    """

    condition: str
    parameter: str
    lower: tuple[float, ...]
    shares: tuple[Share, ...]
    pixels: Count


def magnitudes(scenes: Scenes, mutations: Mapping[str, AnyMutation]) -> Iterator[Magnitudes]:
    """Of every mutation of a list that is haze or defocus alone; none without depth or objects."""
    deep = {
        name: mutation
        for name, mutation in mutations.items()
        if len(mutation.steps) == 1 and mutation.steps[0].name in _SIMPLE
    }
    if not deep or scenes.depth is None or scenes.annotated is None:
        return
    depths = [np.zeros(0)]
    for name in scenes.files:
        objects, _ = scenes.annotated.rows(name)
        frame = scenes.frame(name, deep=False)
        boxes = np.zeros((0, 4)) if frame.boxes is None else frame.boxes[: len(objects)]
        depth = scenes.depth_m(name, frame.size) if len(boxes) else np.zeros((0, 0))
        for left, top, right, bottom in np.round(np.maximum(boxes, 0)).astype(int).tolist():
            depths.append(depth[top:bottom, left:right].ravel())
    known = np.concatenate(depths)
    known = known[known > 0]
    for name, mutation in deep.items():
        given: Mapping[str, Any] = mutation.steps[0].parameters
        parameter = _SIMPLE[mutation.steps[0].name]
        if parameter == "alpha":
            beta = scattering_per_m(given.get("visibility_m", math.inf), given.get("beta_per_m"))
            magnitude = -np.expm1(-beta * known)
        else:
            magnitude = Lens(given["kappa_m_px"], given["focus_m"]).spread_px(known)
        counts = np.histogram(magnitude, EDGES[parameter])[0]
        if len(known):
            shares = tuple((counts / len(known)).tolist())
            yield Magnitudes(name, parameter, tuple(EDGES[parameter][:-1].tolist()), shares, len(known))


@dataclass(frozen=True)
class RequirementRow:
    """A requirement under a mutation: the worst probability over all scenarios, and its confidence bounds.

    Attributes:
        margin: by how much the target is met; None without one.
        strict: whether a margin of 0 fails, as with P > target.
    """

    name: str
    planner: str
    asked: str
    probability: Share
    bounds: Ends
    verdict: str
    margin: float | None = None
    strict: bool = False

    @property
    def outcome(self) -> Verdict:
        """The verdict without what it depends on."""
        return Verdict(self.verdict.partition(",")[0])


def requirement_criterion(rows: Sequence[RequirementRow], name: str, limit: str) -> Criterion:
    """A requirement that has a target, at several levels."""
    values, margins, verdicts, bounds = (
        tuple(getattr(row, part) for row in rows) for part in ("probability", "margin", "outcome", "bounds")
    )
    return Criterion("requirement", name, limit, values, margins, verdicts, bounds)


@dataclass(frozen=True)
class BreakRow:
    """Where a requirement breaks as one parameter of a mutation grows, between two conditions that were measured.

    Attributes:
        holds_at: the last condition before the first failure of P; None where the baseline fails already.
        fails_at: the first failure; None where there is none.
        sure_until, sure_at: up to which condition it is confirmed to hold, and from which on to fail.
        recovers: whether it holds again at a severer level.
        can_narrow: whether levels between could narrow the bracket with these data.
    """

    detector: str
    requirement: str
    planner: str
    mutation: str
    parameter: str
    holds_at: str | None
    fails_at: str | None
    sure_until: str | None
    sure_at: str | None
    recovers: bool
    can_narrow: bool


@dataclass(frozen=True)
class CampaignRow:
    """A detector under a condition, or the worst case over a group of conditions; None: not defined or not asked.

    Attributes:
        mutation: as `verify mutate` takes it; "" for the baseline and groups.
        average_precision: COCO's, over IoU .50 to .95, of all that the detector reports.
        recall: at IoU .5, of what reaches the detector's threshold.
        area, robustness: by metric of the closed loop: of RobROC with the baseline, and by the baseline's area.
        collision: lambda at the distance and speed that the campaign names.
    """

    detector: str
    condition: str
    mutation: str = ""
    severity: str = ""
    images: Count = 0
    objects: Count = 0
    average_precision: Share | None = None
    average_precision_interval: Ends = None
    recall: Share | None = None
    recall_interval: Ends = None
    adr: Share | None = None
    adr_interval: Ends = None
    normalised: Magnitude | None = None
    area: Mapping[str, Share] = field(default_factory=dict)
    robustness: Mapping[str, Magnitude | None] = field(default_factory=dict)
    collision: Share | None = None
    collision_interval: Ends = None
    requirements: tuple[RequirementRow, ...] = ()


@dataclass(frozen=True, kw_only=True, repr=False)
class CampaignDocument(DocumentHead):
    """Result of `verify campaign`; as `CampaignResult`. `not_defined` says why of the metrics without areas."""

    schema: ClassVar[str] = "verifier.campaign"
    version: ClassVar[int] = 1
    detectors: Mapping[str, Mapping[str, Any]]
    campaign: tuple[CampaignRow, ...]
    magnitudes: tuple[Magnitudes, ...] = ()
    breaks: tuple[BreakRow, ...] = ()
    not_defined: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class CampaignResult(Result):
    """Everything that `verify campaign` found.

    Attributes:
        study: the document.
        adr, loop: the results of the single commands that it holds together; loop is None where nothing is judged.
        runs: the documents of `verify run`, by detector and condition, as text.
    """

    study: CampaignDocument
    adr: AdrResult
    loop: TradeOffs | None
    runs: Mapping[tuple[str, str], str] = field(default_factory=dict)

    TOLD = "verifier.telling.robustness:campaign_table"
    WRITTEN = "verifier.robustness.campaign.result:study_of"
    NAMED_BY = ("detector", "condition")
    METRICS = ("average_precision", "recall", "adr", "normalised", "collision")

    @property
    def headline(self) -> str:
        """How many detectors and conditions."""
        return f"{self.study.title}: {len(self.study.detectors)} detectors, {len(self.adr.conditions)} conditions"

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        """What a reader must know."""
        return self.study.remarks

    @property
    def verdict(self) -> Verdict:
        """The worst of all requirements under all conditions; no target where none was asked."""
        return worst_verdict(one.outcome for row in self.study.campaign for one in row.requirements)

    def rows(self) -> Iterator[dict[str, object]]:
        """One flat row per detector and condition, with the same columns throughout."""
        names = list(dict.fromkeys(name for row in self.study.campaign for name in row.area))
        asked = list(
            dict.fromkeys((one.name, one.planner) for row in self.study.campaign for one in row.requirements)
        )
        for row in self.study.campaign:
            flat: dict[str, object] = {
                name: getattr(row, name)
                for name in ("detector", "condition", "mutation", "severity", "images", "objects", *self.METRICS)
            }
            for name in ("average_precision", "recall", "adr", "collision"):
                flat[f"{name}_lower"], flat[f"{name}_upper"] = getattr(row, f"{name}_interval") or (None, None)
            for name in names:
                flat[f"area_{name}"], flat[f"robustness_{name}"] = row.area.get(name), row.robustness.get(name)
            known = {(one.name, one.planner): one for one in row.requirements}
            for key in asked:
                one, label = known.get(key), "/".join(key)
                lower, upper = (one.bounds if one is not None else None) or (None, None)
                probability = None if one is None else one.probability
                flat |= {f"P_{label}": probability, f"P_{label}_lower": lower, f"P_{label}_upper": upper}
            yield {name: "" if value is None else value for name, value in flat.items()}


def study_of(result: CampaignResult) -> CampaignDocument:
    """The document of a campaign."""
    return result.study


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
    groups: dict[tuple[str, str, tuple[tuple[str, Plain], ...]], dict[float, str]] = {}
    for name, composition in mutations.items():
        (step, *more) = composition.steps
        for parameter, value in () if more else step.parameters.items():
            if f"{step.name}:{parameter}" in NOTHING_DONE and isinstance(value, int | float):
                others = tuple((key, other) for key, other in step.parameters.items() if key != parameter)
                groups.setdefault((step.name, parameter, others), {})[float(value)] = name
    made = []
    for (mutation, parameter, others), levels in groups.items():
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
                edge = break_of(criterion, tuple(sweep.conditions), sweep.scale)
                places = (edge.holds_at, edge.fails_at, edge.sure_until, edge.sure_at)
                holds, fails, until, sure = (None if level is None else sweep.conditions[level] for level in places)
                about = detector, row.name, row.planner, sweep.mutation, sweep.parameter
                yield BreakRow(*about, holds, fails, until, sure, edge.recovers, edge.can_narrow)


def further(campaign: Campaign, checked: Checked, most: int) -> dict[str, AnyMutation]:
    """The mutations of the campaign with at most so many new ones, each behind its milder neighbour; the widest gaps
    in which more can be known of where some requirement breaks are halved first."""
    mutations = dict(campaign.mutations)
    for sweep in sweeps(campaign.mutations) if checked else ():
        widths: dict[tuple[float, float], float] = {}
        for detector in campaign.detectors:
            for _, criterion in _criteria(sweep, detector, checked):
                widths |= gaps(criterion, tuple(sweep.conditions), sweep.scale)
        room = most - (len(mutations) - len(campaign.mutations))
        for level in halfway(widths, sweep.scale, sweep.at, room):
            made, milder, names = sweep.at(level), sweep.milder(level), list(mutations)
            first = next(name for name in sweep.conditions.values() if name != BASELINE)
            at_place = names.index(milder) + 1 if milder in mutations else names.index(first)
            names.insert(at_place, folder_name(made))
            every = {**mutations, folder_name(made): made}
            mutations = {name: every[name] for name in names}
    return mutations
