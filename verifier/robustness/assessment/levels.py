"""Making the data of every level of a disturbance: mutate, detect, count. See `degradation.LevelRecipe`
and `verifier.robustness.campaign.making`, which does it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from verifier.base.errors import UsageError, unknown_error
from verifier.closedloop.comparison import BASELINE
from verifier.perception.matching import MatchingPolicy
from verifier.robustness.assessment.degradation import Degradation, Level
from verifier.robustness.brackets import halfway
from verifier.robustness.campaign.detecting import check_counting
from verifier.robustness.campaign.looking import Condition, Looking, new_folder
from verifier.robustness.campaign.making import KNOWN, ROC, Maker, UnderTest, Wanted, measure_of
from verifier.robustness.campaign.scenes import Scenes
from verifier.robustness.draws import weights_of


def made_levels(
    asked: Degradation,
    looking: Looking,
    under_test: UnderTest,
    folder: Path,
    cache: Path | None = None,
    refine: tuple[int, Callable[[Degradation], Mapping[tuple[float, float], float]]] | None = None,
) -> Degradation:
    """The degradation with the data of its levels, written below `folder`, which is made.

    Args:
        refine: how many levels more at most, and between which two of a degradation they are wanted, with the width
            of these gaps; the widest ones are halved first.

    Raises:
        InputError: an image cannot be read, does not fit the mutation, or a file cannot be written.
        UsageError: a metric that is not measured here, distances that are not known, a library that is missing.
    """
    recipe = asked.recipe
    if recipe is None:
        raise ValueError("a degradation whose data are given")
    scenes, progress = looking.ready.scenes, looking.progress
    maker = Maker(wanted_of(asked, len(scenes.files)), scenes, under_test)

    def made(level: Level) -> Level:
        own = folder / f"{len(levels):02d}_{asked.parameter_slug}_{level.at:g}"
        new_folder(own)
        mutation = recipe.mutation(level.at, level.unchanged)
        condition = Condition(mutation, recipe.seed, cache, own if recipe.keep_images else None)
        data = looking.at(condition, own, lambda data: measure_of(recipe.counting, data))
        name = f"{asked.parameter} {level.at:g}"
        told = f"{name} {asked.unit}".rstrip(), BASELINE if level is asked.levels[0] else name, f"_{level.at:g}"
        product = maker.made(data, mutation, own, told)
        return replace(level, unchanged=False, objects=np.bincount(data.annotations.frame), **vars(product))

    levels = list[Level]()
    for level in progress(asked.levels, "levels"):
        levels.append(made(level))
    done, (most, wanted) = replace(asked, levels=tuple(levels), recipe=None), refine or (0, None)
    while wanted is not None and len(levels) < most + len(asked.levels):
        room = most + len(asked.levels) - len(levels)
        new = halfway(wanted(done), asked.scale, recipe.mutation, room)
        if not new:
            break
        for at in progress(new, "levels"):
            levels.append(made(Level(at)))
        rising = asked.levels[0].at < asked.levels[-1].at
        done = replace(done, levels=tuple(sorted(levels, key=lambda level: level.at, reverse=not rising)))
    return done


def wanted_of(asked: Degradation, images: int = 0) -> Wanted:
    """What is made at every level, with draws of so many images."""
    recipe = asked.recipe
    if recipe is None:
        return Wanted()
    return Wanted(
        tuple(asked.allowed_change),
        recipe.counting,
        asked.run is not None,
        asked.collision is not None,
        None if asked.trade_off is None else asked.trade_off.detector,
        recipe.adr_levels,
        recipe.most_false_positives,
        weights_of(images, recipe.seed),
    )


def check_levels(asked: Degradation, scenes: Scenes, policy: MatchingPolicy) -> None:
    """What can be seen before an image is made.

    Raises:
        InputError: objects in no bin.
        UsageError: something is asked for that is not made here, or not from these images.
    """
    for name in asked.allowed_change:
        if name not in KNOWN:
            raise unknown_error("metric", name, KNOWN, "degradation: ")
    if scenes.depth is None and asked.needs_depth:
        raise UsageError(
            "degradation: the mutation needs depth\n  hint: depth = { folder = ... } in the table 'source'"
        )
    if asked.trade_off is not None and asked.trade_off.metric != ROC:
        raise UsageError(
            f"degradation: the curve that is made is '{ROC}', and '{asked.trade_off.metric}' is asked for"
        )
    if wanted_of(asked).distances and (scenes.depth is None or scenes.depth.folder is None):
        raise UsageError(
            "degradation: pairs, and false positives in matrices, need depth maps: how far away does a report lie?\n"
            "  hint: depth = { folder = ... } in the table 'source'"
        )
    counting = None if asked.recipe is None else asked.recipe.counting
    if asked.run is not None and counting is not None and scenes.truth is not None:
        check_counting(scenes.truth, counting, policy)
