"""Every condition of a campaign mutated and detected once, by whoever works, kept, and found again by what it was
made from.

Names are checked before an image is mutated, so that hours of work do not end at a wrong one. That never reads the
pixels of an image: only its size, which stands at the beginning of its file.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.blocks import Pool
from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import make_folder, read_bytes, write_text
from verifier.base.libraries import own_versions
from verifier.closedloop.comparison import BASELINE
from verifier.perception.detections import Reading, read_detections
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.depth import depth_file
from verifier.perception.matching import MatchingPolicy
from verifier.robustness.campaign.definition import Counting, DetectorChoice
from verifier.robustness.campaign.file import Campaign
from verifier.robustness.campaign.looking import (
    Condition,
    Opened,
    Sources,
    look,
    reported,
)
from verifier.robustness.campaign.making import matrices_of
from verifier.robustness.campaign.scenes import Scenes
from verifier.robustness.detectors.protocol import image_size
from verifier.robustness.detectors.run import identity_digest, labels_of
from verifier.robustness.mutators import needs_depth
from verifier.robustness.mutators.annotations import (
    ANNOTATIONS_FILE,
    DETECTIONS_FILE,
    DISTANCE_FIELD,
    AnnotationFiles,
)
from verifier.study.provenance import installed_versions


def check_detector(choice: DetectorChoice, scenes: Scenes, folder: Path) -> None:
    """Open the detector and its class map once.

    Raises:
        InputError: a file that cannot be read.
        UsageError: a library that is missing, or a class that the annotations do not have.
    """
    classes, mapped = choice.opened(folder).classes, choice.mapped(folder)
    if scenes.truth is not None:
        labels_of(tuple(classes), scenes.truth.classes, mapped)


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
    for name, said in () if scenes.annotated is None else scenes.annotated.sizes.items():
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
        corners = ", ".join(f"{text:g}" for text in box[row].tolist())
        raise InputError(
            f"an object at ({corners}) lies outside its image {shown(name)} of {_told(sizes[name])} pixels",
            place,
            "are these the images that the annotations were made for?",
        )


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


PACKAGES = ("onnxruntime", "opencv-python-headless", "opencv-python", "pillow", "pycocotools")
"""What images are read, changed, searched and judged with, under the names it is installed by."""
KEPT = "conditions"
"""The folder that says what each condition was made from."""


def condition_names(campaign: Campaign) -> tuple[str, ...]:
    """Of the conditions, by the folders of their mutations; "" is the baseline."""
    return ("", *campaign.mutations)


def detect_all(campaign: Campaign, scenes: Scenes, target: Path, pool: Pool) -> Iterator[str]:
    """Mutate and detect under every condition that is not there yet; the names as they are finished.

    What was made from what is noted last, so that another run takes a condition for done only where it is.
    """
    keys, conditions = _keys(campaign, scenes), dict[str, Condition]()
    for name, key in keys.items():
        if _is_kept(target / KEPT / f"{name or BASELINE}.json", key, target):
            yield name
            continue
        images = target / "images" / (name or BASELINE) if campaign.keep_images else None
        if images is not None:
            make_folder(images)
        conditions[name] = Condition(campaign.mutations.get(name), campaign.seed, target / "cache", images)
    choices, root = campaign.detectors, campaign.root
    ready = Opened(scenes, tuple(choice.opened(root) for choice in choices.values()))
    identities = tuple(identity_digest(detector.identity) for detector in ready.detectors)
    sources = Sources(campaign.data, root, campaign.name, tuple(choices.values()), identities)
    for name, _, whole in look(ready, conditions, sources, pool):
        if whole is None:
            continue
        folders = [target / own / (name or BASELINE) for own in choices]
        for folder in folders:
            make_folder(folder)
        maps = [choice.mapped(root) for choice in choices.values()]
        reported(ready, list(zip(maps, folders, strict=True)), whole)
        files = [folder / name for folder in folders for name in (ANNOTATIONS_FILE, DETECTIONS_FILE)]
        record = {path.relative_to(target).as_posix(): digest(path) for path in files}
        told = json.dumps({"key": keys[name], "files": record}, indent=2)
        write_text(target / KEPT / f"{name or BASELINE}.json", told + "\n")
        yield name


def _keys(campaign: Campaign, scenes: Scenes) -> dict[str, str]:
    """The SHA-256 of all that a condition is made from, by its name."""
    root, given = campaign.root, campaign.data.annotations
    assert given is not None
    named = [root / name for name in (given.file, given.class_map, given.frames) if name is not None]
    detectors = {
        name: [identity_digest(choice.opened(root).identity), repr(choice.mapped(root))]
        for name, choice in campaign.detectors.items()
    }
    common = {
        "images": {name: digest(path) for name, path in scenes.files.items()},
        "annotations": [digest(path) for path in named if path.is_file()],
        "detectors": detectors,
        "seed": campaign.seed,
        "kept": campaign.keep_images,
        "versions": {**own_versions(), **installed_versions(PACKAGES)},
    }
    depth: Any = repr(campaign.data.depth)
    if scenes.depth is not None and scenes.depth.folder is not None:
        maps, sky = scenes.depth.folder, scenes.depth.sky
        depth = [depth, *(digest(depth_file(maps, name)) for name in scenes.files)]
        if sky is not None and sky.masks is not None:
            depth += [digest(sky.masks / f"{Path(name).stem}.png") for name in scenes.files]
    digests = {}
    for name in condition_names(campaign):
        mutation = campaign.mutations.get(name)
        deep = mutation is not None and needs_depth(mutation)
        own = {"mutation": None if mutation is None else mutation.document(), "depth": depth if deep else None}
        digests[name] = hashlib.sha256(json.dumps({**common, **own}, sort_keys=True).encode()).hexdigest()
    return digests


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def _is_kept(record: Path, key: str, target: Path) -> bool:
    """Whether the files of a condition are there, made from the same and as they were written."""
    try:
        told = json.loads(record.read_text())
        files: Mapping[str, str] = told["files"]
        return told["key"] == key and all(digest(target / name) == file for name, file in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, InputError):
        return False


def read_condition(folder: Path, reading: Reading | None = None) -> DetectionSet:
    """Annotations and detections as other commands read them."""
    text = (folder / ANNOTATIONS_FILE).read_text()
    options = {"distance_field": DISTANCE_FIELD} if f'"{DISTANCE_FIELD}"' in text else {}
    return read_detections("coco", folder / ANNOTATIONS_FILE, folder / DETECTIONS_FILE, reading, **options)
