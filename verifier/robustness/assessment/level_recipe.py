"""How the data of each level of a disturbance are made: source images under a mutation, and what is counted there.

One parameter of the mutation is the level. An infinite level, and one that is marked as unchanged, has the images as
they were taken. Noise is drawn from one seed per image, the same at every level, so that levels differ by the
disturbance and not by the draw.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from verifier.closedloop.curves import FPR_MAX
from verifier.robustness.adr import LEVELS
from verifier.robustness.campaign.definition import Counting
from verifier.robustness.mutators import AnyMutation, Composition, Mutation
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
    most_false_positives: float = FPR_MAX
    keep_images: bool = False
    seed: int = 0
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
