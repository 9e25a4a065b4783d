"""Making the target data set that a plan describes: images, and a table of which came from which.

The target folder gets one PNG per planned image, `000017_NAME.png` for number 17 from the source image NAME, and,
last, `pairs.csv` with the columns `target`, `source` and `circumstances`: a folder that has it is complete.
"""

import csv
import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from verifier.base.errors import InputError, Place, UsageError
from verifier.base.files import write_bytes, write_text
from verifier.robustness.assessment.circumstances import Circumstance
from verifier.robustness.assessment.datasets import PAIRS_FILE
from verifier.robustness.assessment.plan import Plan, PlannedImage
from verifier.robustness.campaign.looking import Progress, changed, no_progress
from verifier.robustness.campaign.made_files import new_folder
from verifier.robustness.campaign.scenes import MovedBoxes, Scenes
from verifier.robustness.mutators import Composition, Frame, Mutation, needs_depth
from verifier.robustness.mutators.batch import png_bytes


def make_follow_up(
    plan: Plan, scenes: Scenes, target: Path, progress: Progress = no_progress
) -> tuple[MovedBoxes, ...]:
    """Make every image of the plan; the mutations of an image are applied in their order, with its own seed.

    Args:
        plan: its source names are those of `scenes`.
        scenes: the source images.
        target: a folder that is new or empty.
        progress: for a progress bar.

    Returns:
        The images that were made, in their order, with the boxes of what stands in them.

    Raises:
        InputError: a source image or its depth cannot be read, a mutation does not fit it, or the folder cannot be
            made or holds something, which would count as follow-up test cases.
        UsageError: the library that writes images is missing.
    """
    new_folder(target)
    digits = max(6, len(str(len(plan.images))))
    made, rows = [], []
    for each in progress(plan.images, "images"):
        name = f"{each.number:0{digits}d}_{Path(each.source).stem}.png"
        frame = _mutated(each, scenes)
        write_bytes(target / name, png_bytes(frame.pixels))
        made.append(MovedBoxes.of(name, each.source, frame))
        rows.append((name, each.source, "; ".join(each.circumstances)))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([("target", "source", "circumstances"), *rows])
    write_text(target / PAIRS_FILE, stream.getvalue())
    return tuple(made)


def check_complete(circumstances: Iterable[Circumstance]) -> None:
    """Refuse transformations with which no image can be made.

    Raises:
        UsageError: a parameter is missing.
    """
    for each in circumstances:
        if each.transformation is not None and each.transformation.lacks is not None:
            raise UsageError(
                f"circumstance '{each.name}': no image can be made with this transformation\n"
                f"  hint: {each.transformation.lacks}"
            )


def _mutated(each: PlannedImage, scenes: Scenes) -> Frame:
    path = scenes.files[each.source]
    try:
        mutation = Composition(tuple(Mutation(name, parameters) for name, parameters in each.mutations))
    except ValueError as error:
        raise InputError(str(error), Place(str(path))) from None
    rng = np.random.default_rng([each.seed[0], 2, each.seed[1]])
    return changed(scenes.frame(each.source, deep=needs_depth(mutation)), mutation, rng, path)
