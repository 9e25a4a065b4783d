"""The plan of the target data set: which source images get which transformations. Plan first, images second.

Task 4 of Wozniak, Segura and Mazo 2024: transformations are applied at random to images of the source data set, in
proportion to the frequencies of the target circumstances; the target data hold images in target circumstances only.

* `independent` circumstances: each is applied with its own probability; an image that would get none is drawn again.
  That asks for "at least one", so circumstance i is expected in p_i / (1 - prod (1 - p_j)) of the images, *more* than
  p_i: the plan tells this share beside the number it drew.
* `exclusive` circumstances: each image gets exactly one. Circumstance i is expected in p_i / sum p_j of the images,
  which is p_i where the frequencies sum to 1. Numbers of images are the shares rounded by largest remainder, so
  nothing but *which* images is left to chance.

The drawing of images, circumstances and parameters is fixed by the seed; each image has a seed of its own for
mutations that draw noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.documents import Count, Limits, Share
from verifier.base.errors import UsageError
from verifier.robustness.assessment.circumstances import Circumstance, Transformation
from verifier.robustness.campaign.definition import MOST_IMAGES

Occurrence: TypeAlias = Literal["independent", "exclusive"]
Proportions: TypeAlias = Literal["target", "missing"]


@dataclass(frozen=True)
class PlannedImage:
    """One image of the target data set.

    Attributes:
        number: from 0.
        source: name of the source image.
        circumstances: which it shows, in their order.
        transformations: what makes each of them, drawn for this image, in the same order.
        seed: for the noise of its mutations, a list of whole numbers for `numpy.random.default_rng`.
    """

    number: int
    source: str
    circumstances: tuple[str, ...]
    transformations: tuple[Transformation, ...]
    seed: tuple[int, int]


@dataclass(frozen=True)
class PlannedShare:
    """How often a circumstance is in the target data set.

    Attributes:
        asked: its frequency, or what is missing of it.
        expected: the share that the plan aims at, given that every image shows at least one.
        images: how many images of the plan show it.
    """

    circumstance: str
    asked: Share
    expected: Share
    images: Count


@dataclass(frozen=True)
class PlanSummary:
    """The plan of the target data set, without the images."""

    occurrence: Occurrence
    proportions: Proportions
    seed: Count
    images: Annotated[int, Limits(ge=1)]
    shares: tuple[PlannedShare, ...]


@dataclass(frozen=True)
class Plan:
    """The target data set before it is made."""

    images: tuple[PlannedImage, ...]
    summary: PlanSummary


def follow_up_plan(
    circumstances: Sequence[Circumstance],
    sources: Sequence[str],
    *,
    occurrence: Occurrence,
    proportions: Proportions = "target",
    size: int | None = None,
    seed: int = 0,
) -> Plan:
    """Draw the plan.

    Args:
        circumstances: those to be shown; one whose share is 0 is left out.
        sources: names of the source images, all different.
        occurrence: whether an image can show several.
        proportions: of the frequencies in use, or of what the source data lack.
        size: of the target data set; None for one image per source image. Every source image is used equally
            often, but for one.
        seed: of every draw.

    Raises:
        UsageError: no image, no circumstance with a share, a circumstance without frequency or transformation,
            or exclusive ones that sum to more than 1.
    """
    count = len(sources) if size is None else size
    if not sources or not 1 <= count <= MOST_IMAGES:
        raise UsageError(f"a plan needs source images and 1 to {MOST_IMAGES} images to make, got {count}")
    chosen, shares = _chosen(circumstances, proportions)
    total = sum(shares, Fraction(0))
    if occurrence == "exclusive" and total > 1:
        raise UsageError(f"exclusive circumstances cannot occur {float(total):g} times per image")
    rng = np.random.default_rng([seed, 0])
    expected = _expected(shares, occurrence)
    table = _exclusive(expected, count, rng) if occurrence == "exclusive" else _independent(shares, count, rng)
    images = _images(chosen, sources, table, seed, rng)
    drawn = table.sum(axis=0).tolist()
    rows = tuple(
        PlannedShare(circumstance.name, float(asked), float(aim), number)
        for circumstance, asked, aim, number in zip(chosen, shares, expected, drawn, strict=True)
    )
    return Plan(images, PlanSummary(occurrence, proportions, seed, len(images), rows))


def _chosen(
    circumstances: Sequence[Circumstance], proportions: Proportions
) -> tuple[list[Circumstance], list[Fraction]]:
    """The circumstances that are to be shown, and their shares."""
    asked = [(circumstance, _asked(circumstance, proportions)) for circumstance in circumstances]
    shown = [(circumstance, share) for circumstance, share in asked if share > 0]
    if not shown:
        raise UsageError("no circumstance is asked for in any image: all shares are 0")
    for circumstance, _ in shown:
        if circumstance.transformation is None:
            raise UsageError(
                f"circumstance '{circumstance.name}' has no transformation: it cannot be shown in an image"
            )
    return [circumstance for circumstance, _ in shown], [share for _, share in shown]


def _asked(circumstance: Circumstance, proportions: Proportions) -> Fraction:
    share = circumstance.frequency if proportions == "target" else circumstance.missing
    if share is None:
        wanted = "frequency" if proportions == "target" or circumstance.frequency is None else "source frequency"
        raise UsageError(f"circumstance '{circumstance.name}' has no {wanted}: its share of the images is not known")
    return share


def _expected(shares: Sequence[Fraction], occurrence: Occurrence) -> list[Fraction]:
    independent = 1 - math.prod((1 - share for share in shares), start=Fraction(1))
    whole = sum(shares, Fraction(0)) if occurrence == "exclusive" else independent
    return [share / whole for share in shares]


def _exclusive(expected: Sequence[Fraction], count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(count, circumstances) one each, in numbers by largest remainder; of equal remainders the earlier wins."""
    exact = [share * count for share in expected]
    numbers = [int(fraction) for fraction in exact]
    order = sorted(range(len(exact)), key=lambda at: numbers[at] - exact[at])
    for at in order[: count - sum(numbers)]:
        numbers[at] += 1
    which = rng.permutation(np.repeat(np.arange(len(numbers)), numbers))
    return np.asarray(which[:, None] == np.arange(len(numbers)))


def _independent(shares: Sequence[Fraction], count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(count, circumstances) each with its probability, given that there is at least one.

    Drawing an image again until it shows something has the law that is drawn here at once: the first circumstance
    that an image shows is j with probability p_j prod_{k<j} (1 - p_k) / P(at least one), and the later ones are as
    likely as ever.
    """
    probabilities = np.array([float(share) for share in shares])
    before = np.cumprod(np.concatenate(([1.0], 1 - probabilities[:-1])))
    first = probabilities * before
    which = rng.choice(len(shares), size=count, p=first / first.sum())
    table: NDArray[np.bool_] = rng.random((count, len(shares))) < probabilities
    places = np.arange(len(shares))
    table &= places > which[:, None]
    table |= places == which[:, None]
    return table


def _images(
    chosen: Sequence[Circumstance],
    sources: Sequence[str],
    table: NDArray[np.bool_],
    seed: int,
    rng: np.random.Generator,
) -> tuple[PlannedImage, ...]:
    rounds, rest = divmod(len(table), len(sources))
    used = np.concatenate(
        [np.tile(np.arange(len(sources)), rounds), np.sort(rng.choice(len(sources), rest, replace=False))]
    )
    images = []
    for number, (source, row) in enumerate(zip(used.tolist(), table, strict=True)):
        own = np.random.default_rng([seed, 1, number])
        shown = [chosen[at] for at in np.flatnonzero(row).tolist()]
        made = (circumstance.transformation for circumstance in shown if circumstance.transformation is not None)
        drawn = tuple(transformation.drawn(own) for transformation in made)  # all have one
        names = tuple(circumstance.name for circumstance in shown)
        images.append(PlannedImage(number, sources[source], names, drawn, (seed, number)))
    return tuple(images)
