"""Making the data of every level of a disturbance: mutate, detect, count. See `level_recipe` and
`verifier.robustness.campaign.making`, which does it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from verifier.base.errors import UsageError, unknown_name
from verifier.closedloop.comparison import BASELINE
from verifier.perception.matching import MatchingPolicy
from verifier.robustness.assessment.degradation import Degradation
from verifier.robustness.campaign.draws import weights_of
from verifier.robustness.campaign.made_files import new_folder
from verifier.robustness.campaign.making import (
    KNOWN,
    ROC,
    Maker,
    Progress,
    UnderTest,
    Wanted,
    detected,
    measure_of,
    no_progress,
)
from verifier.robustness.campaign.preflight import check_counting
from verifier.robustness.campaign.scenes import Scenes
from verifier.robustness.mutators import needs_depth


def made_levels(
    asked: Degradation,
    scenes: Scenes,
    under_test: UnderTest,
    folder: Path,
    cache: Path | None = None,
    progress: Progress = no_progress,
) -> Degradation:
    """The degradation with the data of its levels, written below `folder`, which is made.

    Raises:
        InputError: an image cannot be read, does not fit the mutation, or a file cannot be written.
        UsageError: a metric that is not measured here, distances that are not known, a library that is missing.
    """
    recipe = asked.recipe
    if recipe is None:
        raise ValueError("a degradation whose data are given")
    maker = Maker(wanted_of(asked, len(scenes.files)), scenes, under_test)
    levels = []
    for number, level in enumerate(progress(asked.levels, "levels")):
        own = folder / f"{number:02d}_{asked.parameter_slug}_{level.at:g}"
        new_folder(own)
        mutation = recipe.mutation(level.at, level.unchanged)
        (data,) = detected(
            scenes,
            [(under_test.detector, under_test.class_map, own)],
            mutation,
            recipe.seed,
            cache=cache,
            images=own if recipe.keep_images else None,
            progress=progress,
            measure=lambda data: measure_of(recipe.counting, data),
        )
        name = f"{asked.parameter} {level.at:g}"
        told = f"{name} {asked.unit}".rstrip(), BASELINE if level is asked.levels[0] else name, f"_{level.at:g}"
        found = maker.made(data, mutation, own, told)
        levels.append(replace(level, unchanged=False, images=data.frame_count, **vars(found)))
    return replace(asked, levels=tuple(levels), recipe=None)


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
            message, hint = unknown_name("metric", name, KNOWN)
            raise UsageError(f"degradation: {message}\n  hint: {hint}")
    mutations = [asked.recipe.mutation(each.at, each.unchanged) for each in asked.levels if asked.recipe is not None]
    if scenes.depth is None and any(each is not None and needs_depth(each) for each in mutations):
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
