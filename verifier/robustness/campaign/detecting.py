"""Every condition of a campaign mutated and detected once: in several processes, kept, and found again by what it was
made from."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from verifier.base.errors import InputError
from verifier.base.files import make_folder, read_bytes, write_text
from verifier.base.version import own_versions
from verifier.closedloop.comparison import BASELINE
from verifier.perception.detections import Reading, read_detections
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.depth import depth_file
from verifier.robustness.campaign.file import Campaign, read_campaign
from verifier.robustness.campaign.made_files import ANNOTATIONS_FILE, DETECTIONS_FILE, DISTANCE_FIELD
from verifier.robustness.campaign.making import detected
from verifier.robustness.campaign.scenes import Scenes, open_scenes
from verifier.robustness.detectors.run import identity_digest
from verifier.robustness.mutators import needs_depth
from verifier.study.provenance import installed_versions

PACKAGES = ("onnxruntime", "opencv-python-headless", "opencv-python", "pillow", "pycocotools")
"""What images are read, changed, searched and judged with, under the names it is installed by."""
KEPT = "conditions"
"""The folder that says what each condition was made from."""


def condition_names(campaign: Campaign) -> tuple[str, ...]:
    """Of the conditions, by the folders of their mutations; "" is the baseline."""
    return ("", *campaign.mutations)


def detect_all(campaign: Campaign, scenes: Scenes, file: str, target: Path, jobs: int) -> Iterator[str]:
    """Mutate and detect under every condition that is not there yet; the names as they are finished."""
    keys = _keys(campaign, scenes)
    waiting = []
    for name, key in keys.items():
        if _is_kept(target / KEPT / f"{name or BASELINE}.json", key, target):
            yield name
        else:
            waiting.append(name)
    if jobs == 1 or len(waiting) < 2:
        for name in waiting:
            _detect(campaign, scenes, target, name, keys[name])
            yield name
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(waiting)), mp_context=context) as pool:
        running = {pool.submit(_detect_apart, file, str(target), name, keys[name]): name for name in waiting}
        try:
            for each in as_completed(running):
                each.result()
                yield running[each]
        finally:
            pool.shutdown(cancel_futures=True)


def _detect_apart(file: str, target: str, name: str, key: str) -> None:
    """One condition, in a process of its own."""
    campaign = read_campaign(file)
    _detect(campaign, open_scenes(campaign.data, campaign.root, campaign.name), Path(target), name, key)


def _detect(campaign: Campaign, scenes: Scenes, target: Path, name: str, key: str) -> None:
    """Every detector under one condition; what was made from what is noted last."""
    condition = name or BASELINE
    detectors = []
    for own, choice in campaign.detectors.items():
        make_folder(target / own / condition)
        detectors.append((choice.opened(campaign.root), choice.mapped(campaign.root), target / own / condition))
    images = target / "images" / condition if campaign.keep_images else None
    if images is not None:
        make_folder(images)
    cache = target / "cache"
    detected(scenes, detectors, campaign.mutations.get(name), campaign.seed, cache=cache, images=images)
    files = [folder / each for _, _, folder in detectors for each in (ANNOTATIONS_FILE, DETECTIONS_FILE)]
    record = {path.relative_to(target).as_posix(): digest(path) for path in files}
    write_text(target / KEPT / f"{condition}.json", json.dumps({"key": key, "files": record}, indent=2) + "\n")


def _keys(campaign: Campaign, scenes: Scenes) -> dict[str, str]:
    """The SHA-256 of all that a condition is made from, by its name."""
    root, given = campaign.root, campaign.data.annotations
    assert given is not None
    named = [root / each for each in (given.file, given.class_map, given.frames) if each is not None]
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
    if campaign.data.depth is not None and campaign.data.depth.folder is not None:
        maps = root / campaign.data.depth.folder
        depth = [depth, *(digest(depth_file(maps, name)) for name in scenes.files)]
        sky = campaign.data.depth.within(root).sky
        if sky is not None and sky.masks is not None:
            depth += [digest(sky.masks / f"{Path(name).stem}.png") for name in scenes.files]
    found = {}
    for name in condition_names(campaign):
        mutation = campaign.mutations.get(name)
        deep = mutation is not None and needs_depth(mutation)
        own = {"mutation": None if mutation is None else mutation.document(), "depth": depth if deep else None}
        found[name] = hashlib.sha256(json.dumps({**common, **own}, sort_keys=True).encode()).hexdigest()
    return found


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def _is_kept(record: Path, key: str, target: Path) -> bool:
    """Whether the files of a condition are there, made from the same and as they were written."""
    try:
        told = json.loads(record.read_text())
        files: Mapping[str, str] = told["files"]
        return told["key"] == key and all(digest(target / name) == each for name, each in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, InputError):
        return False


def read_condition(folder: Path, reading: Reading | None = None) -> DetectionSet:
    """Annotations and detections as other commands read them."""
    text = (folder / ANNOTATIONS_FILE).read_text()
    options = {"distance_field": DISTANCE_FIELD} if f'"{DISTANCE_FIELD}"' in text else {}
    return read_detections("coco", folder / ANNOTATIONS_FILE, folder / DETECTIONS_FILE, reading, **options)
