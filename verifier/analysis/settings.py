"""How intervals and confidence bounds are made, as one value, and the words for it.

Only light modules are imported.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias, get_args

from verifier.base.errors import UsageError, check_known, shown
from verifier.base.options import Option, share, whole, whole_above_0
from verifier.base.words import listed
from verifier.systems.settings import fraction_from_0_to_1

IntervalKind: TypeAlias = Literal["credible", "bootstrap"]
"""A statistical interval; `INTERVALS` has the words of each, and `verifier.analysis.confidence` makes it."""
Requested: TypeAlias = Literal["auto", IntervalKind]
"""The statistical interval that can be asked for; "auto" is bootstrap where the file knows drives."""
Bounds: TypeAlias = Literal[
    "auto", "drives", "approximate", "items", "anytime", "units:drive", "units:track", "units:frame"
]
"""What confidence bounds can be asked to rest on; "auto" is drives where the file knows them, else items."""
Unit: TypeAlias = Literal["drive", "track", "frame"]
"""What bounds by units (`units:drive` and the like) take as independent."""
Weights: TypeAlias = Literal["item", "track", "drive"]
"""What a rate is the rate of, see `verifier.analysis.intervals.drive_items`."""
Semantics: TypeAlias = Literal["per_state", "shared_matrix"]
"""Whether every state may have a matrix of its own, see `verifier.analysis.robust.solutions`."""
Prior: TypeAlias = "str | float"


@dataclass(frozen=True)
class IntervalWords:
    """The words that travel with the numbers of a statistical interval.

    Attributes:
        source: what it is made from.
        by_drives: what happens to drives in a draw, "{unit}" for drives; empty where items are independent.
        approximate: by what approximation it covers; empty for none.
        paired: what a comparison of detectors does otherwise, if anything.
    """

    source: str
    by_drives: str = ""
    approximate: str = ""
    paired: str = ""

    def assumed(self, unit: Unit = "drive") -> str:
        """What it assumes about the data."""
        return f"{unit if self.by_drives else 'item'}s are independent"

    def condition(self, unit: Unit = "drive") -> str:
        """What it assumes about the data, and how well it covers then: for the condition of a verdict."""
        return self.assumed(unit) + (f" (approximate: {self.approximate})" if self.approximate else "")


INTERVALS: Mapping[IntervalKind, IntervalWords] = {
    "credible": IntervalWords("from the posterior of the matrices"),
    "bootstrap": IntervalWords(
        "from drives weighted at random and one phantom drive (Bayesian bootstrap)",
        by_drives="weighted at random, and a phantom {unit}",
        approximate="Bayesian bootstrap",
        paired="intervals from randomly weighted drives are narrower than those of verify run: errors that no drive "
        "shows are drawn here, so that detectors are paired, and there taken at their worst and at their best",
    ),
}
"""The statistical intervals."""

PRIORS: Mapping[str, float] = {"jeffreys": 0.5, "uniform": 1.0}
"""Named weights on every label: the prior of Jeffreys, and all matrices equally likely."""
SMALLEST_PRIOR, LARGEST_PRIOR = 1e-6, 1e6
LARGEST_DRAWS = 10**9
"""Most draws behind an interval, whose ends are far surer then than the model that they are drawn from."""
MOST_LOOKS = 10**6


def check_level(level: float) -> float:
    """`level`, if it can be the level of an interval. Raises UsageError: it does not lie strictly between 0 and 1."""
    if not 0 < level < 1:  # false for NaN as well
        raise UsageError(f"expected a level strictly between 0 and 1, such as 0.95, got {shown(level)}")
    return level


def check_draws(count: int, most: int | None = None) -> int:
    """`count`, if it can be a number of draws, of which there are `most` at most; UsageError if not."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise UsageError(f"expected at least one draw, got {shown(count)}")
    if most is not None and count > most:
        raise UsageError(f"expected at most {most} draws, got {shown(count)}")
    return count


def prior_weight(prior: Prior) -> float:
    """The weight that a prior puts on every label.

    >>> prior_weight("jeffreys"), prior_weight("0.25")
    (0.5, 0.25)

    Raises:
        UsageError: neither a name of `PRIORS` nor a number from `SMALLEST_PRIOR` to `LARGEST_PRIOR`.
    """
    try:
        weight = PRIORS[prior] if isinstance(prior, str) and prior in PRIORS else float(prior)
    except (TypeError, ValueError):
        weight = -1.0
    if not SMALLEST_PRIOR <= weight <= LARGEST_PRIOR:  # false for NaN as well
        raise UsageError(
            f"unknown prior {shown(prior)}; known: {', '.join(PRIORS)}, or the weight of each label as a number "
            f"from {SMALLEST_PRIOR:g} to {LARGEST_PRIOR:g}"
        )
    return weight


def check_seed(seed: int) -> int:
    """`seed`, if it can be one, used or not: nobody learns of it after minutes of work; UsageError if not."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise UsageError(f"expected a seed that is a whole number from 0 on, got {shown(seed)}")
    return seed


def _prior(text: str) -> Prior:
    """A prior, for `Option.parse`."""
    if text in PRIORS:
        return text
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected {', '.join(PRIORS)} or a number above 0, got {text!r}")
    return value


@dataclass(frozen=True)
class ConfidenceSettings:
    """How intervals and bounds are made.

    Raises:
        UsageError: a value that cannot be, or two that exclude each other.
    """

    level: Annotated[
        float,
        Option("level of intervals and bounds", name="confidence", metavar="LEVEL", parse=share, group="uncertainty"),
    ] = 0.95
    interval: Annotated[
        Requested,
        Option(
            f"statistical interval: {listed([f'{name}, {words.source}' for name, words in INTERVALS.items()], 'or')} "
            "(default: drives where the file knows them)"
        ),
    ] = "auto"
    bounds: Annotated[
        Bounds,
        Option(
            "confidence bounds for independent drives, by weighting drives at random (approximate), for independent "
            "items, at every look if each bin, class and context has one rate, or for independent units, of matrices "
            "that are counted by these (default: drives where the file knows them, else items)"
        ),
    ] = "auto"
    weights: Annotated[
        Weights, Option("rates of a random item, of a random encounter (track), or of a random drive")
    ] = "item"
    largest_drive: Annotated[
        int | None,
        Option(
            "no drive holds more items (or tracks) of a column, those not recorded included; then bounds hold at "
            "every look between drives, if drives are identically distributed (default: the largest drive seen)",
            metavar="N",
            parse=whole(1),
        ),
    ] = None
    icc_at_most: Annotated[
        Fraction | None,
        Option(
            "bounds for items of one drive that are correlated with an intraclass correlation of at most R",
            metavar="R",
            parse=fraction_from_0_to_1,
        ),
    ] = None
    assume_independent_items: Annotated[bool, Option("bounds by items although the file knows drives")] = False
    looks: Annotated[
        int,
        Option(
            "number of looks at growing data: divides alpha, where bounds do not hold at every look",
            metavar="N",
            parse=whole(1),
        ),
    ] = 1
    shift: Annotated[
        Fraction,
        Option(
            "largest difference of each observation's rate (labels that the planner does not distinguish count as "
            "one) between data and operation",
            metavar="EPS",
            parse=fraction_from_0_to_1,
            default="0",
        ),
    ] = Fraction(0)
    semantics: Annotated[
        Semantics,
        Option(
            "confidence bounds for matrices that may differ from state to state, or for one matrix shared by all "
            "states"
        ),
    ] = "per_state"
    prior: Annotated[
        Prior, Option("prior of the matrices: jeffreys, uniform or a number per label", metavar="PRIOR", parse=_prior)
    ] = "jeffreys"
    draws: Annotated[
        int | None,
        Option(
            "number of posterior or bootstrap draws (default: 10000, fewer for large chains; compare shares them "
            "among its detectors)",
            metavar="N",
            parse=whole_above_0,
        ),
    ] = None
    seed: Annotated[int, Option("random seed", metavar="N")] = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)
        check_level(self.level)
        prior_weight(self.prior)
        if self.draws is not None:
            check_draws(self.draws, LARGEST_DRAWS)
        asked = ((self.interval, Requested, "interval"), (self.bounds, Bounds, "bounds"))
        for value, known, what in (*asked, (self.weights, Weights, "weights")):
            check_known(what, value, get_args(known))
        if self.largest_drive is not None and self.largest_drive < 1:
            raise UsageError(f"expected a largest drive of at least one item, got {self.largest_drive}")
        if self.icc_at_most is not None and not 0 <= self.icc_at_most <= 1:
            raise UsageError(f"an intraclass correlation lies between 0 and 1, got {float(self.icc_at_most):g}")
        if not 1 <= self.looks <= MOST_LOOKS:
            raise UsageError(f"expected 1 to {MOST_LOOKS} looks, got {self.looks}")
        if not 0 <= self.shift <= 1:
            raise UsageError(f"rates shift by at most 0 to 1, got {float(self.shift):g}")
        self._check_together()

    @property
    def unit(self) -> Unit | None:
        """What bounds by named units take as independent; None for other bounds."""
        named: Mapping[str, Unit] = {"units:drive": "drive", "units:track": "track", "units:frame": "frame"}
        return named.get(self.bounds)

    def _check_together(self) -> None:
        """Refuse options of different tiers."""
        by_items = (
            self.bounds in ("items", "anytime") or self.assume_independent_items or self.icc_at_most is not None
        )
        chosen = [
            name
            for name, given in (
                (f"--bounds {self.bounds}", self.bounds not in ("auto", "items")),
                ("--icc-at-most", self.icc_at_most is not None),
                ("--assume-independent-items", self.assume_independent_items),
            )
            if given
        ]
        if len(chosen) > 1:
            raise UsageError(f"{' and '.join(chosen)} are different assumptions: name one of them")
        if by_items and self.weights != "item":
            raise UsageError(f"--weights {self.weights} needs bounds by drives: --bounds drives or approximate")
        if self.unit not in (None, "drive") and self.weights != "item":
            raise UsageError(f"--weights {self.weights} is about drives, and --bounds {self.bounds} is not")
        if self.largest_drive is not None and (by_items or self.bounds == "approximate" or self.weights == "drive"):
            raise UsageError("--largest-drive is for bounds by drives that count items or encounters")
        if self.shift and self.bounds == "approximate":
            raise UsageError("--shift widens intervals of rates, and --bounds approximate has none: leave one out")


def _variables(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


@dataclass(frozen=True)
class ExplainSettings:
    """How much is said of a requirement.

    Attributes:
        level: of the intervals of single cells.
        prior: items per label of the Dirichlet prior.
        variables: empty for the first two of the model.
        with_map: whether to draw the map.
    """

    patterns: Annotated[
        int,
        Option(
            "largest number of patterns of violating paths", metavar="K", parse=whole_above_0, group="explanation"
        ),
    ] = 5
    members: Annotated[int, Option("largest number of paths of each pattern", metavar="N", parse=whole_above_0)] = 1
    full_paths: Annotated[
        bool, Option("distinguish paths up to the violation, not only up to where it is unavoidable")
    ] = False
    rows: Annotated[int, Option("largest number of rows of the other tables", metavar="N", parse=whole_above_0)] = 10
    level: Annotated[float, Option(name="confidence", listed=False)] = 0.95
    prior: Annotated[float, Option(listed=False)] = 0.5
    variables: Annotated[
        tuple[str, ...],
        Option(
            "one or two variables for the map of P over states (default: the first two)",
            name="map",
            metavar="X,V",
            parse=_variables,
            once=True,
        ),
    ] = ()
    with_map: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", prior_weight(self.prior))  # may be a name
        if min(self.patterns, self.members, self.rows) < 1:
            raise ValueError("expected at least one pattern, one path of it and one row")
