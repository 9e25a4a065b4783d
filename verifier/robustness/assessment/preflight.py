"""What is looked at before anything is made, so that hours of work do not end at a wrong name.

Nothing here reads the pixels of an image: only its size, which stands at the beginning of its file.
"""

from pathlib import Path

from verifier.base.errors import InputError, Place, UsageError
from verifier.perception.detections.depth import depth_file
from verifier.robustness.assessment.definition import Assessment
from verifier.robustness.assessment.levels import wanted_of
from verifier.robustness.assessment.measures import IMAGE_MEASURES
from verifier.robustness.assessment.plan import Plan
from verifier.robustness.campaign.scenes import Scenes
from verifier.robustness.mutators import Composition, Mutation, needs_depth


def check_depth_files(assessment: Assessment, plan: Plan | None, scenes: Scenes) -> None:
    """Look for the depth map of every image, where they will be needed; InputError for one that is not there."""
    given = scenes.depth
    if given is None or given.folder is None:
        return
    needed: set[str] = set()
    for each in () if plan is None else plan.images:
        steps = [Mutation(name, parameters) for name, parameters in each.mutations]
        if each.source not in needed and needs_depth(Composition(tuple(steps))):
            needed.add(each.source)
    asked = assessment.degradation
    recipe = None if asked is None else asked.recipe
    if asked is not None and recipe is not None:
        mutations = [recipe.mutation(each.at, each.unchanged) for each in asked.levels]
        if wanted_of(asked).distances or any(each is not None and needs_depth(each) for each in mutations):
            needed.update(scenes.files)
    folder = scenes.folder / given.folder
    if needed and not folder.is_dir():
        raise InputError("no such folder", Place(str(folder)))
    for name in sorted(needed):
        depth_file(folder, name)


def check_sizes(assessment: Assessment, plan: Plan | None) -> None:
    """Refuse distances from image to image where follow-up images have another size than their sources.

    Raises:
        UsageError: a distance that compares images pixel by pixel, and a mutation that changes their size.
    """
    compared = [each.name for each in assessment.rules.values() if each.measure in IMAGE_MEASURES]
    for each in () if plan is None or not compared else plan.images:
        for name, parameters in each.mutations:
            if parameters.get("canvas") == "cropped":
                raise UsageError(
                    f"{assessment.key}: {name} with canvas = 'cropped' changes the size of images, "
                    f"and '{compared[0]}' compares images of equal size\n"
                    '  hint: canvas = "kept", or a distance of features'
                )


def check_target(target: Path, assessment: Assessment, folder: Path) -> None:
    """Refuse a folder for what is made that holds something, or lies where inputs are read from.

    Raises:
        InputError: it holds something, or is no folder.
        UsageError: it lies in a folder of inputs.
    """
    if target.exists() and not target.is_dir():
        raise InputError("the folder cannot be made: it is a file", Place(str(target)))
    if target.is_dir() and any(target.iterdir()):
        hint = "name another folder, or remove this one; with --cache no image is put through the detector again"
        message = "expected a new or empty folder: old files would mix with those that are made"
        raise InputError(message, Place(str(target)), hint)
    files = assessment.source.files
    for name in (files.images, None if files.depth is None else files.depth.folder):
        if name is not None and target.resolve().is_relative_to((folder / name).resolve()):
            raise UsageError(f"--make: {target} lies in {folder / name}, a folder of inputs, which would change")
