"""Campaign files (TOML): images, detectors, mutations, and what is judged under each.

    [data]
    images = "images"
    annotations = { format = "coco", file = "truth.json", distance_field = "distance_m" }
    depth = { folder = "depth", densify = "linear" }      # or { constant_m = 30 }; for haze and defocus
    calibration = "camera.csv"                            # for places in space, as of verify confusion
    poses = "poses.csv"                                   # frame, log, time_s, x_m, y_m, heading_rad
    people = ["person"]                                   # the classes that stop the vehicle; all if left out

    [detectors.yolo]                                      # as many as are compared; see `data_reader`
    [mutations]
    list = "published-2021"                               # or published-2018
    sweep = ["haze:visibility_m=978,326,97.8"]
    severity = { haze-visibility_m_978 = "mild" }         # of others than the list's
    [counting]                                            # of matrices and pairs
    edges_m = [0, 10, 20, inf]
    [run]                                                 # P of requirements
    spec = "car.ltl"
    [collision]                                           # lambda
    distance_m = 20
    speed_mps = 10
    deceleration_mps2 = 6.86
    reaction_s = 0.1
    [closed_loop]                                         # options of verify closed-loop
    control_radius = 2
    safety_radius = 1.5
    [adr]                                                 # options of verify adr

Paths are from the folder of the file. All that is wrong with a file is said at once.
"""

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

from verifier.base.errors import InputError, Place
from verifier.base.keywords import settings_from
from verifier.base.toml import Element, read_toml
from verifier.closedloop.settings import UNPLACED, ClosedLoopSettings, Severity
from verifier.closedloop.study_settings import METRICS, study_settings
from verifier.robustness.adr import LEVELS, AdrSettings
from verifier.robustness.campaign.data_reader import (
    read_annotations,
    read_depth,
    read_detector,
    read_record,
)
from verifier.robustness.campaign.definition import (
    CollisionLimit,
    Counting,
    DataFiles,
    DetectorChoice,
    SystemModelRun,
)
from verifier.robustness.mutators import AnyMutation, needs_depth
from verifier.robustness.mutators.batch_result import folder_name
from verifier.robustness.mutators.sweeps import PUBLISHED, parse_sweep, published
from verifier.robustness.rates import published_severities
from verifier.robustness.settings import RatesSettings

KEYS = ("title", "data", "detectors", "mutations", "counting", "run", "collision", "closed_loop", "adr")
DATA_KEYS = ("images", "annotations", "depth", "calibration", "poses", "people")
MUTATION_KEYS = ("list", "sweep", "severity", "seed", "keep_images")
LOOP_KEYS = (
    "control_radius", "safety_radius", "path_extension", "metric", "levels", "lowest", "highest", "stop_cost",
    "tolerance", "fpr_max", "first_frame", "top_speed", "deceleration", "acceleration", "start_speed",
    "engine", "step", "between_images", "too_close", "match_iou", "draws", "seed", "confidence",
)  # fmt: skip
ADR_KEYS = ("level", "iou", "draws", "seed", "confidence")
OWN_FOLDERS = ("conditions", "cache", "logs", "images")
"""That a campaign makes beside those of its detectors."""
MOST_PROBLEMS = 50
STAND_INS: Mapping[str, object] = {
    "images": "images", "annotations": {"format": "coco", "file": "a.json"}, "format": "coco", "kind": "hog",
    "classes": ["a"], "output": {"boxes": "b", "scores": "s", "lowest_score": 0}, "boxes": "b", "scores": "s",
    "lowest_score": 0, "edges_m": [0, 1], "spec": "a.ltl", "distance_m": 1, "speed_mps": 1, "deceleration_mps2": 1,
    "reaction_s": 1, "data": {"images": "images", "annotations": {"format": "coco", "file": "a.json"}},
    "detectors": {"a": {"kind": "hog"}}, "mutations": {"sweep": ["brightness:factor=2"]},
    "sweep": ["brightness:factor=2"], "file": "a", "counting": {"edges_m": [0, 1]}, "control_radius": 2,
    "safety_radius": 1,
}  # fmt: skip
"""Of keys that must be there: what stands in for a value that is missing or wrong, so that reading goes on."""
Read = TypeVar("Read")


@dataclass(frozen=True)
class Campaign:
    """What a campaign file says.

    Attributes:
        name, sha256: of the file; `root` is its folder.
        loop: None for the ROCs alone, which need no positions.
        mutations: by the name of their folder, in the order of the published lists.
        severities: of those, "mild" or "severe".
    """

    name: str
    sha256: str
    root: Path
    title: str
    data: DataFiles
    calibration: str | None
    poses: str | None
    people: tuple[str, ...]
    detectors: Mapping[str, DetectorChoice]
    mutations: Mapping[str, AnyMutation]
    severities: Mapping[str, str]
    seed: int
    keep_images: bool
    counting: Counting | None
    run: SystemModelRun | None
    collision: CollisionLimit | None
    loop: ClosedLoopSettings
    adr: RatesSettings


def read_campaign(path: str | Path) -> Campaign:
    """Read a campaign file; InputError with all that is wrong with it, each with its line and key."""
    top = read_toml(path)
    return all_problems(top, lambda element: _campaign(element, Path(path).absolute().parent))


def all_problems(top: Element, read: Callable[[Element], Read]) -> Read:
    """What `read` makes of a file; an InputError lists everything that it refuses, one after the other mended."""
    element, problems = replace(top, value=copy.deepcopy(top.value)), list[str]()
    while len(problems) < MOST_PROBLEMS:
        try:
            made = read(element)
        except InputError as error:
            text = str(InputError(error.message, _original(top, error.place), error.hint))
            if text in problems or not _mended(element.value, error):
                problems += [] if text in problems else [text]
                break
            problems.append(text)
        else:
            if not problems:
                return made
            break
    if len(problems) == 1:
        raise InputError(problems[0])
    raise InputError(f"{top.file}: {len(problems)} problems\n" + "\n".join(problems))


def _original(top: Element, place: Place) -> Place:
    """The place with the line in the file as it is written."""
    if place.path is None or place.file != top.file:
        return place
    return replace(place, line=top.find(place.path).line() or place.line)


def _mended(document: Any, error: InputError) -> bool:
    """Put a stand-in in place of what is refused, or take it out; whether anything changed."""
    missing = error.message.removeprefix("missing key '").rstrip("'") if "missing key" in error.message else None
    keys = [*_keys(error.place.path or ""), *([missing] if missing else [])]
    if not keys:
        return False
    *way, at = keys
    table, last = document, str(at)
    try:
        for key in way:
            table = table[key]
    except (KeyError, IndexError, TypeError):
        return False
    if isinstance(table, list):
        stand_in = STAND_INS.get(str(way[-1]), [None])
        table[int(at)] = stand_in[0] if isinstance(stand_in, list) else None
        return True
    if last in STAND_INS and table.get(last) != STAND_INS[last]:
        table[last] = copy.deepcopy(STAND_INS[last])
        return True
    return table.pop(last, None) is not None


def _keys(path: str) -> list[str | int]:
    parts = re.findall(r"'([^']*)'|([A-Za-z0-9_-]+)|\[(\d+)\]", path)
    return [int(index) if index else quoted or name for quoted, name, index in parts]


def _campaign(top: Element, root: Path) -> Campaign:
    top.table(KEYS, required=("data", "detectors", "mutations"))
    source = top.at("data").table(DATA_KEYS, required=("images", "annotations"))
    data = DataFiles(source.at("images").string(), depth=read_depth(source), annotations=read_annotations(source))
    calibration, poses = (source.given(key, Element.string, None) for key in ("calibration", "poses"))
    people = tuple(element.string() for element in source.list_at("people"))
    detectors = {}
    for name, element in top.at("detectors").entries():
        if set(name) & set("@/\\") or name.startswith("."):
            raise element.fail("the name of a detector has no '@', no '/' and no '\\', and begins with no '.'")
        if name.casefold() in OWN_FOLDERS:
            raise element.fail(f"a detector cannot be called as a folder of the campaign: {', '.join(OWN_FOLDERS)}")
        detectors[name] = read_detector(element)
    if not detectors:
        raise top.at("detectors").fail("expected at least one detector")
    chosen = top.at("mutations").table(MUTATION_KEYS)
    mutations = _mutations(chosen)
    severities = published_severities(list(mutations))
    for name, element in chosen.table_at("severity"):
        if name not in mutations:
            raise element.fail("no mutation has a folder of this name", f"there are {', '.join(mutations)}")
        severities[name] = element.one_of(get_args(Severity))
    seed = chosen.given("seed", Element.whole, 0, 0, 2**31 - 1)
    keep = chosen.given("keep_images", Element.truth, False)
    counting = top.given("counting", partial(read_record, kind=Counting), None)
    run = top.given("run", partial(read_record, kind=SystemModelRun), None)
    collision = top.given("collision", _collision, None)
    _check_needs(top, chosen, data, mutations, counting)
    loop = _loop(top, poses, calibration)
    adr = settings_from(RatesSettings, _options(top.at("adr"), ADR_KEYS, RatesSettings, {}) if top.has("adr") else {})
    if top.has("adr"):
        top.at("adr").made(lambda: AdrSettings(adr.level or LEVELS))
    title = top.given("title", Element.string, Path(top.file).stem)
    own = Path(top.file).name, top.sha256, root, title, data, calibration, poses, people
    return Campaign(*own, detectors, mutations, severities, seed, keep, counting, run, collision, loop, adr)


def _check_needs(
    top: Element, chosen: Element, data: DataFiles, mutations: Mapping[str, AnyMutation], counting: Counting | None
) -> None:
    """Refuse what needs bins or depth, and has none."""
    for key in ("run", "collision"):
        if top.has(key) and counting is None:
            raise top.at(key).fail("matrices and pairs need to know their bins: the table 'counting'")
    deep = [mutation.text for mutation in mutations.values() if needs_depth(mutation)]
    if data.depth is None and deep:
        raise chosen.fail(f"{deep[0]} needs depth", "depth = { folder = ... } or { constant_m = ... } in 'data'")
    mapped = data.depth is not None and data.depth.folder is not None
    alarms = counting is not None and counting.unmatched != "drop"
    if not mapped and (top.has("collision") or alarms):
        element = top.at("collision") if top.has("collision") else top.at("counting")
        raise element.fail("how far away a report lies needs depth maps", "depth = { folder = ... } in 'data'")


def _mutations(table: Element) -> dict[str, AnyMutation]:
    mutations: list[AnyMutation] = []
    if table.has("list"):
        mutations += published(table.at("list").one_of(tuple(PUBLISHED)))
    for element in table.list_at("sweep"):
        mutations += element.made(partial(parse_sweep, element.string()))
    if not mutations:
        raise table.fail("missing key 'sweep'", 'or list = "published-2021"')
    return {folder_name(mutation): mutation for mutation in dict.fromkeys(mutations)}


def _collision(element: Element) -> CollisionLimit:
    element.open_table()
    value = {"at_most": 1, **element.value}
    return read_record(replace(element, value=value), CollisionLimit)


def _loop(top: Element, poses: str | None, calibration: str | None) -> ClosedLoopSettings:
    """The choices of the closed loop; without a table those of the ROCs, which need no positions."""
    base = {"logs": "logs", "validation": "self", "control_radius": "2", "safety_radius": "1", "metric": UNPLACED}
    if not top.has("closed_loop"):
        return settings_from(ClosedLoopSettings, base)
    table = top.at("closed_loop")
    given = _options(table, LOOP_KEYS, ClosedLoopSettings, base)
    usual = {"logs": "logs", "validation": "self", "metric": METRICS}
    settings = table.made(lambda: settings_from(ClosedLoopSettings, {**usual, **given}))
    table.made(lambda: study_settings(settings))
    if settings.asks_for_positions and (poses is None or calibration is None):
        raise table.fail(
            "where the vehicle and people are needs 'poses' and 'calibration' in 'data'",
            'metric = ["roc_a", "roc_b"] needs neither',
        )
    return settings


def _options(
    table: Element, known: tuple[str, ...], kind: type[Any], base: Mapping[str, object]
) -> dict[str, str | tuple[str, ...]]:
    """The options of a command that a table names, as they would be typed, each tried beside the base."""
    given: dict[str, str | tuple[str, ...]] = {}
    for name, element in table.table(known).entries():
        listed = isinstance(element.value, list)
        given[name] = tuple(map(_typed, element.items())) if listed else _typed(element)
        element.made(partial(settings_from, kind, {**base, name: given[name]}))
    return given


def _typed(element: Element) -> str:
    """A value as it would be typed; InputError."""
    return str(element.value if isinstance(element.value, bool | int | str) else float(element.number()))
