"""What is looked at before an image is mutated, so that hours of work do not end at a wrong name.

Nothing here reads the pixels of an image: only its size, which stands at the beginning of its file.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import read_json
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.matching import MatchingPolicy
from verifier.robustness.campaign.definition import AnnotationFiles, Counting, DetectorChoice
from verifier.robustness.campaign.making import matrices_of
from verifier.robustness.campaign.scenes import Scenes
from verifier.robustness.detectors.protocol import image_size
from verifier.robustness.detectors.run import check_classes


def check_detector(choice: DetectorChoice, scenes: Scenes, folder: Path) -> None:
    """Open the detector and its class map once.

    Raises:
        InputError: a file that cannot be read.
        UsageError: a library that is missing, or a class that the annotations do not have.
    """
    classes, mapped = choice.opened(folder).classes, choice.mapped(folder)
    if scenes.truth is not None:
        check_classes(tuple(classes), scenes.truth.classes, mapped)


def check_places(scenes: Scenes, given: AnnotationFiles, folder: Path) -> None:
    """Refuse annotations that were made for images of another size. Images that cannot be read are told of later.

    Args:
        scenes: the images, with what is annotated in them.
        given: where the annotations are; COCO's say how large their images are.
        folder: where its paths start from.

    Raises:
        InputError: another size than the annotations say, or an object that lies outside its image.
    """
    sizes = {name: size for name, path in scenes.files.items() if (size := image_size(path)) is not None}
    place = Place(str(folder / given.file))
    for name, said in _said(given, folder, scenes).items() if given.format == "coco" else ():
        if name in sizes and said != sizes[name]:
            raise InputError(
                f"the annotations are of an image {shown(name)} of {_told(said)} pixels, and it has "
                f"{_told(sizes[name])}",
                place,
                "scale the annotations, or take the images that they were made for",
            )
    truth = scenes.truth
    if truth is None or truth.annotations.box_2d is None or not len(truth.annotations):
        return
    box = truth.annotations.box_2d
    known = np.array([sizes.get(name, (np.inf, np.inf)) for name in truth.frame_name])
    limits = known[truth.annotations.frame][:, ::-1]
    outside = (box[:, 2:] <= 0).any(axis=1) | (box[:, :2] >= limits).any(axis=1)
    if outside.any():
        row = int(outside.argmax())
        name = truth.frame_name[int(truth.annotations.frame[row])]
        corners = ", ".join(f"{each:g}" for each in box[row].tolist())
        raise InputError(
            f"an object at ({corners}) lies outside its image {shown(name)} of {_told(sizes[name])} pixels",
            place,
            "are these the images that the annotations were made for?",
        )


def _said(given: AnnotationFiles, folder: Path, scenes: Scenes) -> dict[str, tuple[int, int]]:
    """Height and width of the images, by name, where a COCO file says them."""
    document, _ = read_json(folder / given.file)
    by_stem = {Path(name).stem: name for name in scenes.files}
    found = {}
    for each in document["images"]:
        called, size = str(each.get("file_name", each["id"])), (each.get("height"), each.get("width"))
        name = called if called in scenes.files else by_stem.get(called)
        if name is not None and all(isinstance(side, int) and side > 0 for side in size):
            found[name] = size
    return found


def _told(size: tuple[int, int]) -> str:
    return f"{size[1]} x {size[0]}"


def named(about: str, check: Callable[[], object]) -> None:
    """Check, and say what a UsageError is about if it does not say so."""
    try:
        check()
    except UsageError as error:
        raise UsageError(str(error) if str(error).startswith(f"{about}: ") else f"{about}: {error}") from None


def check_counting(truth: DetectionSet, counting: Counting, policy: MatchingPolicy) -> None:
    """Refuse, before an image is made, what counting the annotations alone refuses.

    Raises:
        InputError, UsageError: as `matrices_of`.
    """
    try:
        named("counting", lambda: matrices_of(truth, counting, policy, ""))
    except InputError as error:
        if error.hint is not None and "--outside" in error.hint:
            raise InputError(error.message, error.place, 'give other edges_m, or outside = "drop"') from None
        raise
