"""What a growing disturbance does to the system: the levels, and what is asked of the system at each.

The metamorphic relation compares detection metrics. What matters is whether the *system* still meets its
requirements. So for each level of a disturbance (visibility, blur, ...), from mild to severe, these are looked at:

    kind          criterion                         margin
    metric        |P_x - P_x'| <= allowed change    allowed change - |P_x - P_x'|
    requirement   P(phi) >= target (or <=)          P(phi) - target (or target - P(phi)), P(phi) by model checking
    collision     lambda(y, v) <= limit             limit - lambda(y, v)        (Xu et al. 2021, eq. (1))
    trade-off     RobROC / baseline >= limit        RobROC / baseline - limit   (Pezzementi et al. 2021, eq. (14))

Where each criterion holds and breaks is told by `verifier.robustness.brackets`, and which of them saw it first below.

All of this is about the numbers of these images. Other images of the same kind would give others, so a criterion
also has an interval and a verdict for every level, where these can be had: a failure is *sure* where the interval
lies beyond the limit. One criterion fails *surely before* another one where it surely fails at a level up to which
the other surely holds. Each interval is right at its own confidence; not all of them at once.

The data of the levels are given, or made from the source images under a mutation of which one parameter is the level.
An infinite level, and one that is marked as unchanged, has the images as they were taken. Noise is drawn from one
seed per image, the same at every level, so that levels differ by the disturbance and not by the draw.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated

import numpy as np

from verifier.base.arrays import Ints
from verifier.base.documents import Limits, Magnitude
from verifier.checking.verdicts import Verdict
from verifier.closedloop.curves import FPR_MAX
from verifier.robustness.adr import LEVELS
from verifier.robustness.brackets import Break, Criterion, Kind, Scale
from verifier.robustness.campaign.definition import (
    CollisionLimit,
    Counting,
    ExactShare,
    Made,
    MaybeInfinite,
    SystemModelRun,
)
from verifier.robustness.mutators import AnyMutation, Composition, Mutation, needs_depth
from verifier.robustness.mutators.catalogue import Plain

LEVEL = "level"
"""As the value of a parameter: the level."""


@dataclass(frozen=True)
class LevelRecipe:
    """What is done to the source images at each level.

    Attributes:
        steps: mutations in their order: name, and parameters of which one, in all steps together, is `LEVEL`.
        counting: None where no matrices and no pairs are wanted.
        adr_levels: false positives per source image at which the average detection rate has its thresholds.
        most_false_positives: per image, at which a trade-off curve has efficiency 0.
        keep_images: whether the images of the levels are written, too.
        seed: of what is drawn.

    Raises:
        ValueError: no parameter, or more than one, is the level; a mutation or parameter that does not exist.
    """

    steps: tuple[tuple[str, Mapping[str, Plain]], ...]
    counting: Counting | None = None
    adr_levels: tuple[float, ...] = LEVELS
    most_false_positives: Magnitude = FPR_MAX
    keep_images: bool = False
    seed: Annotated[int, Limits(ge=0, le=2**63 - 1)] = 0
    _where: tuple[int, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        steps = tuple((name, MappingProxyType(dict(given))) for name, given in self.steps)
        object.__setattr__(self, "steps", steps)
        places = [(at, key) for at, (_, given) in enumerate(steps) for key, value in given.items() if value == LEVEL]
        if len(places) != 1:
            raise ValueError(f'expected one parameter that is "{LEVEL}", found {len(places)}')
        object.__setattr__(self, "_where", places[0])
        if not 0 < self.most_false_positives < math.inf:
            raise ValueError(f"expected a positive number of false positives, got {self.most_false_positives}")

    @property
    def parameter(self) -> str:
        """The one that is the level."""
        return self._where[1]

    def mutation(self, at: float, unchanged: bool = False) -> AnyMutation | None:
        """What is done at a level; None for an infinite or unchanged one.

        Raises:
            ValueError: the mutation does not allow this level.
        """
        if unchanged or math.isinf(at):
            return None
        step, parameter = self._where
        made = []
        for number, (name, given) in enumerate(self.steps):
            values = {**given, parameter: at} if number == step else dict(given)
            made.append(Mutation(name, values))
        return made[0] if len(made) == 1 else Composition(tuple(made))


@dataclass(frozen=True)
class Level(Made):
    """One level of the disturbance, with what was measured there.

    Attributes:
        at: the level, in the unit of the degradation; may be infinite.
        unchanged: where the data are made here: whether these are the images as they were taken.
        objects: (images,) how many there are in each image that `drawn` and `drawn_curve` were drawn from.
    """

    at: MaybeInfinite
    unchanged: bool = False
    objects: Ints = field(default_factory=lambda: np.zeros(0, np.int64), compare=False, repr=False)


@dataclass(frozen=True)
class TradeOffLimit:
    """The share of the baseline's area that RobROC must keep, for one detector and one metric of the curves."""

    detector: str
    metric: str
    at_least: ExactShare


@dataclass(frozen=True)
class Degradation:
    """A disturbance at several levels, the mildest first.

    Attributes:
        parameter, unit: what grows worse, for people.
        levels: at least two; the first is the undisturbed one, which changes of metrics are measured from.
        scale: along what brackets are measured and halved.
        allowed_change: metric -> greatest accepted |P_x - P_x'|.
        run: how requirements are checked; None where matrices are not looked at.
        collision, trade_off: limits, None where not looked at.
        recipe: how the data of the levels are made; None where the file gives them. `levels.made_levels`
            puts them there.

    Raises:
        ValueError: levels that are not in order, or of which the scale makes no sense, or a criterion without data.
    """

    parameter: str
    unit: str
    levels: tuple[Level, ...]
    scale: Scale = "linear"
    allowed_change: Mapping[str, ExactShare] = field(default_factory=dict)
    run: SystemModelRun | None = None
    collision: CollisionLimit | None = None
    trade_off: TradeOffLimit | None = None
    recipe: LevelRecipe | None = None

    def __post_init__(self) -> None:
        at = [level.at for level in self.levels]
        if len(at) < 2 or not (_rises(at) or _rises(at[::-1])):
            raise ValueError("expected at least two levels, from the mildest to the most severe")
        if any(math.isnan(value) for value in at):
            raise ValueError("a level is not a number")
        if self.scale != "linear" and min(at) <= 0:
            raise ValueError(f"scale '{self.scale}' needs levels above 0")
        if not self.allowed_change and not any(self.wanted.values()):
            raise ValueError("nothing is asked: name an allowed change, a spec, or a limit")
        if self.recipe is None:
            self._check_data()
        else:
            self._check_recipe(self.recipe)

    @property
    def parameter_slug(self) -> str:
        """The parameter as a part of a file name."""
        return re.sub(r"[^A-Za-z0-9]+", "_", self.parameter).strip("_") or "level"

    @property
    def needs_depth(self) -> bool:
        """Whether what makes some level needs the depth of the images."""
        made = [] if self.recipe is None else [self.recipe.mutation(one.at, one.unchanged) for one in self.levels]
        return any(mutation is not None and needs_depth(mutation) for mutation in made)

    @property
    def wanted(self) -> dict[str, bool]:
        """Which files every level needs, by what is asked."""
        return {
            "confusion": self.run is not None,
            "pairs": self.collision is not None,
            "curves": self.trade_off is not None,
        }

    def _check_data(self) -> None:
        for level in self.levels:
            if level.unchanged:
                raise ValueError(f"level {level.at:g}: 'unchanged' goes with a transformation")
            for name, asked in self.wanted.items():
                if asked is not (getattr(level, name) is not None):
                    raise ValueError(
                        f"level {level.at:g} has {'no' if asked else 'a file of'} {name}, and "
                        f"{'what to hold against it is asked for' if asked else 'nothing to hold against it'}"
                    )
            for metric in self.allowed_change:
                if metric not in level.performance:
                    raise ValueError(f"level {level.at:g} has no value of {metric}")

    def _check_recipe(self, recipe: LevelRecipe) -> None:
        for level in self.levels:
            if (level.unchanged or math.isinf(level.at)) and level is not self.levels[0]:
                raise ValueError(
                    f"level {level.at:g}: the images as they were taken are the mildest level, the first"
                )
            if level.performance or any(getattr(level, name) is not None for name in self.wanted):
                raise ValueError(f"level {level.at:g} has data, which the transformation makes again")
            try:
                recipe.mutation(level.at, level.unchanged)
            except ValueError as error:
                raise ValueError(f"level {level.at:g}: {error}") from None
        if (self.run is not None or self.collision is not None) and recipe.counting is None:
            raise ValueError("matrices and pairs need to know their bins: the table 'counting'")


def _rises(values: Sequence[float]) -> bool:
    return all(one < other for one, other in pairwise(values))


@dataclass(frozen=True)
class CriterionName:
    """Which criterion."""

    kind: Kind
    name: str


@dataclass(frozen=True)
class SureOrder:
    """Two criteria of which the number of images leaves no doubt which fails first."""

    earlier: CriterionName
    later: CriterionName


def in_order(
    criteria: Sequence[Criterion], breaks: Sequence[Break], levels: Sequence[float]
) -> tuple[tuple[CriterionName, ...], ...]:
    """The criteria that break, in groups: who saw it first, then who saw it next.

    Only tested levels order them: criteria that fail first at the same level are in one group, since where in
    between they broke was not tested.
    """
    groups = (
        tuple(
            CriterionName(criterion.kind, criterion.name)
            for criterion, own in zip(criteria, breaks, strict=True)
            if own.fails_at == at
        )
        for at in levels
    )
    return tuple(group for group in groups if group)


def surely_before(criteria: Sequence[Criterion]) -> tuple[SureOrder, ...]:
    """Of two that fail, one surely does at a level up to which the other surely holds everywhere."""
    failing = [
        criterion
        for criterion in criteria
        if any(one is not None and criterion.fails(one) for one in criterion.margins)
    ]
    orders = []
    for earlier in failing:
        verdicts = list(earlier.verdicts)
        fails = verdicts.index(Verdict.VIOLATED) if Verdict.VIOLATED in verdicts else None
        for later in () if fails is None else failing:
            before = later.verdicts[: (fails or 0) + 1]
            if before and all(verdict is Verdict.SATISFIED for verdict in before):
                orders.append(
                    SureOrder(*(CriterionName(criterion.kind, criterion.name) for criterion in (earlier, later)))
                )
    return tuple(orders)
