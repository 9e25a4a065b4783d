"""`verify campaign`: from a campaign file to what every mutation does to every detector.

    campaign file -> checks -> mutate and detect (once per condition, kept) -> read back
                  -> AP, recall, matrices, pairs -> ADR, closed loop, P, lambda -> one document

Below the folder of a campaign: DETECTOR/CONDITION with `annotations.json`, `detections.json`, `confusion.json`,
`pairs.csv` and `run.json`; `logs`, as `verify closed-loop` reads them; `conditions`, which says what each was made
from, so that another run keeps what is still right; `cache`, the detections by image.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from verifier.base.arrays import grouped
from verifier.base.blocks import HERE, Pool
from verifier.base.documents import InputFile
from verifier.base.errors import InputError, Place, UsageError, VerifierError, unknown_name
from verifier.base.files import make_folder
from verifier.base.libraries import own_versions
from verifier.base.statistics import percentile_ends, reaching
from verifier.closedloop.comparison import BASELINE, Cell
from verifier.closedloop.logfiles import write_logs
from verifier.closedloop.logs import Logs
from verifier.closedloop.study import study
from verifier.closedloop.study_settings import study_settings
from verifier.closedloop.trade_offs import TradeOffs
from verifier.perception.detections import Reading
from verifier.perception.detections.cameras import read_cameras
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.depth import depth_file
from verifier.robustness.campaign.definition import Made
from verifier.robustness.campaign.detecting import (
    KEPT,
    PACKAGES,
    check_counting,
    check_detector,
    check_places,
    condition_names,
    detect_all,
    digest,
    named,
    read_condition,
)
from verifier.robustness.campaign.file import Campaign, read_campaign
from verifier.robustness.campaign.judging import campaign_logs, check_run, checked_runs, collision_at, read_poses
from verifier.robustness.campaign.looking import check_outside
from verifier.robustness.campaign.making import (
    BY_MEDIAN,
    Maker,
    UnderTest,
    Wanted,
    depth_remarks,
    operating_remarks,
)
from verifier.robustness.campaign.result import (
    CampaignDocument,
    CampaignResult,
    CampaignRow,
    RequirementRow,
    breaks,
    further,
    magnitudes,
    sweeps,
)
from verifier.robustness.campaign.scenes import Scenes, open_scenes
from verifier.robustness.detectors.protocol import image_size
from verifier.robustness.draws import CONFIDENCE, weights_of
from verifier.robustness.mutators import moves_boxes
from verifier.robustness.rates import AdrResult, Ends, adr_of
from verifier.study.provenance import installed_versions

Watch: TypeAlias = Callable[[Iterable[str], int], Iterable[str]]
"""Wraps the conditions as they are finished, with their number, to say how far the campaign is."""


def campaign_result(
    file: str, folder: str, pool: Pool = HERE, watch: Watch = lambda done, count: done, refine: int = 0
) -> CampaignResult:
    """Run a campaign in a folder; images are mutated and detected by `pool`, documents left to the caller to write.

    Args:
        refine: how many levels to add at most between those where a requirement breaks.

    Raises:
        InputError: the file or what it names cannot be used (all problems at once), or a file cannot be written.
        VerifierError: as the parts raise.
    """
    campaign = read_campaign(file)
    scenes = _checked(campaign)
    if refine and (campaign.run is None or not sweeps(campaign.mutations)):
        raise UsageError("--refine adds levels of a sweep where a requirement breaks: it needs 'run' and a sweep")
    target, most = Path(folder), refine + len(campaign.mutations)
    _check_target(target, campaign)
    made = dict[str, dict[str, tuple[DetectionSet, Made]]]()
    while True:
        for name in watch(detect_all(campaign, scenes, target, pool), 1 + len(campaign.mutations)):
            del name  # only to be shown
        made = {
            detector: _made(campaign, scenes, detector, target, made.get(detector, {}))
            for detector in campaign.detectors
        }
        confusion = {(text, name): files.confusion for text, one in made.items() for name, (_, files) in one.items()}
        runs, checked = checked_runs(campaign, confusion, target)
        mutations = further(campaign, checked, most - len(campaign.mutations))
        if len(mutations) == len(campaign.mutations):
            break
        campaign = replace(campaign, mutations=mutations)
    adr = adr_of(
        {text: {name or BASELINE: data for name, (data, _) in one.items()} for text, one in made.items()},
        campaign.adr,
        f"ADR: {campaign.title}",
    )
    logs = campaign_logs(campaign, scenes, {name: _people(campaign, target, name) for name in made})
    loop, without, remarks = _loop(campaign, logs, target)
    for detector, choice in campaign.detectors.items():
        remarks += [
            f"{detector}: {operating_remark}" for operating_remark in operating_remarks(choice, made[detector][""][0])
        ]
    rows = [
        _row(campaign, adr, detector, name, made[detector][name], checked.get((detector, name or BASELINE), ()))
        for name in condition_names(campaign)
        for detector in campaign.detectors
    ]
    if campaign.collision is not None:
        remarks += _without_lambda(rows, campaign.collision.distance_m)
    document = _document(campaign, scenes, _with_areas(rows, loop), (*remarks, *adr.remarks), loop)
    document = replace(document, not_defined=without, breaks=tuple(breaks(campaign, checked)))
    return CampaignResult(document, adr, loop, runs)


def _checked(campaign: Campaign) -> Scenes:
    """The images, if all that the campaign names can be used; an InputError lists all that cannot."""
    problems: list[str] = []

    def tried(check: Callable[[], Any]) -> Any:
        try:
            return check()
        except VerifierError as error:
            problems.append(str(error))
            return None

    root, given = campaign.root, campaign.data.annotations
    assert given is not None  # the reader asks for them
    counted: DetectionSet | None = None
    scenes: Scenes | None = tried(partial(open_scenes, campaign.data, root, campaign.name))
    for name, choice in campaign.detectors.items():
        tried(partial(choice.opened, root))
        if scenes is not None:
            tried(partial(named, f"detectors.{name}", partial(check_detector, choice, scenes, root)))
    if scenes is not None:
        tried(partial(check_places, scenes, given, root))
        tried(partial(_check_depth, scenes))
        tried(partial(_check_people, campaign, scenes))
        if campaign.counting is not None and scenes.truth is not None:
            policy, before = next(iter(campaign.detectors.values())).policy, len(problems)
            tried(partial(check_counting, scenes.truth, campaign.counting, policy))
            counted = scenes.truth if len(problems) == before else None
    if campaign.run is not None:
        tried(partial(check_run, campaign.run, root, counted, campaign.counting))
    if scenes is not None and campaign.poses is not None:
        tried(partial(read_poses, root / campaign.poses, tuple(scenes.files)))
    if scenes is not None and campaign.calibration is not None and scenes.truth is not None:
        tried(partial(read_cameras, root / campaign.calibration, scenes.truth))
    if problems:
        problems = list(dict.fromkeys(problems))
        raise InputError("\n".join([f"{campaign.name}: what it names cannot be used", *problems]))
    assert scenes is not None
    return scenes


def _check_depth(scenes: Scenes) -> None:
    if scenes.depth is not None and scenes.depth.folder is not None:
        for name in scenes.files:
            depth_file(scenes.depth.folder, name)
        first, path = next(iter(scenes.files.items()))
        scenes.depth_m(first, image_size(path) or (0, 0))


def _check_people(campaign: Campaign, scenes: Scenes) -> None:
    classes = () if scenes.truth is None else scenes.truth.classes
    for name in campaign.people:
        if not any(fnmatchcase(text, name) for text in classes):
            message, hint = unknown_name("class", name, classes)
            raise InputError(f"data.people: {message}", Place(campaign.name), hint)


def _check_target(target: Path, campaign: Campaign) -> None:
    """Refuse a folder of somebody else, or among the inputs."""
    check_outside("--output", target, campaign.root / str(campaign.data.images))
    if target.is_dir() and any(target.iterdir()) and not (target / KEPT).is_dir():
        raise InputError("expected a new or empty folder, or that of an earlier run", Place(str(target)))
    make_folder(target / KEPT)


def _moving(campaign: Campaign) -> list[str]:
    """The conditions under which people are elsewhere in the image, and not where the logs know them."""
    return [name for name, mutation in campaign.mutations.items() if moves_boxes(mutation)]


def _people(campaign: Campaign, target: Path, detector: str) -> dict[str, DetectionSet]:
    """Of a detector under every condition, people alone."""
    from verifier.closedloop.from_sets import people_map

    reading, folder, moving = Reading(people_map(campaign.people or ("*",))), target / detector, _moving(campaign)
    names = [name for name in condition_names(campaign) if name not in moving]
    return {name: read_condition(folder / (name or BASELINE), reading) for name in names}


def _made(
    campaign: Campaign, scenes: Scenes, detector: str, target: Path, before: Mapping[str, tuple[DetectionSet, Made]]
) -> dict[str, tuple[DetectionSet, Made]]:
    """AP, recall, matrices and pairs of a detector, by condition; those made `before` are not made again."""
    choice, own = campaign.detectors[detector], target / detector
    detections = {
        name: before[name][0] if name in before else read_condition(own / (name or BASELINE))
        for name in condition_names(campaign)
    }
    under_test = UnderTest(choice, choice.opened(campaign.root), detections[""], choice.threshold(detections[""]))
    counting = campaign.counting
    wanted = Wanted(("AP", "recall"), counting, counting is not None, campaign.collision is not None)
    wanted = replace(wanted, weights=weights_of(len(scenes.files), campaign.adr.seed))
    maker = Maker(wanted, scenes, under_test)
    made = dict(before)
    for name in (name for name in detections if name not in before):
        told = f"{detector}, {name or BASELINE}", name or BASELINE, ""
        made[name] = detections[name], maker.made(detections[name], campaign.mutations.get(name), own / told[1], told)
    return {name: made[name] for name in detections}


def _loop(campaign: Campaign, logs: Logs, target: Path) -> tuple[TradeOffs | None, dict[str, str], list[str]]:
    """The tables of the closed loop, or of the ROCs alone, what is not defined and why, and remarks."""
    shutil.rmtree(target / "logs", ignore_errors=True)
    write_logs(logs, target / "logs")
    settings = study_settings(campaign.loop)
    severities = {name: kind for name, kind in campaign.severities.items() if name not in _moving(campaign)}
    severe = tuple(name for name, kind in severities.items() if kind == "severe")
    groups = {"AnySevere": severe} if 0 < len(severe) < len(campaign.mutations) else {}
    remarks, metrics = list[str](), settings.metrics
    remarks += [f"{name} moves what is seen: it has no trade-off areas" for name in _moving(campaign)]
    without: dict[str, str] = {}
    if logs.positive.all() or not logs.positive.any():
        kind = "negative" if logs.positive.all() else "positive"
        without = {metric: f"there is no {kind} log" for metric in metrics if metric != "roc_a"}
    metrics = tuple(metric for metric in metrics if metric not in without)
    settings = replace(settings, metrics=metrics, skip_undefined=True, severities=severities, groups=groups)
    try:
        tables = study(logs, None, settings) if metrics else None
    except InputError as error:
        tables, without = None, {**without, **dict.fromkeys(metrics, error.message)}
    without |= {} if tables is None else {metric.metric: metric.reason for metric in tables.not_defined}
    remarks += [f"{metric} is not defined: {reason}" for metric, reason in without.items()]
    if tables is None:
        return None, without, remarks
    title = f"{campaign.title}: {', '.join(campaign.detectors)}"
    parts = tables.remarks, tables.tables, tables.logs, tables.second, tables.not_defined
    return TradeOffs(title, (), settings.record(), own_versions(), *parts), without, remarks


def _row(
    campaign: Campaign,
    adr: AdrResult,
    detector: str,
    name: str,
    made: tuple[DetectionSet, Made],
    requirements: tuple[RequirementRow, ...],
) -> CampaignRow:
    condition = name or BASELINE
    rate = next(rate for rate in adr.rates if (rate.detector, rate.condition) == (detector, condition))
    data, product = made
    shares = {key: None if value is None else float(value) for key, value in product.performance.items()}
    value, ends = None, None
    if product.pairs is not None and campaign.collision is not None and not product.without_pairs:
        value, ends, _, _ = collision_at(Path(product.pairs), campaign.collision)
    return CampaignRow(
        detector,
        condition,
        campaign.mutations[name].text if name else "",
        campaign.severities.get(name, ""),
        data.frame_count,
        len(data.annotations),
        shares["AP"],
        _drawn_ends(product, "AP", data),
        shares["recall"],
        _drawn_ends(product, "recall", data),
        rate.adr,
        rate.adr_interval,
        rate.normalised,
        collision=value,
        collision_interval=ends,
        requirements=requirements,
    )


def _drawn_ends(made: Made, name: str, data: DetectionSet) -> Ends:
    """The interval of a metric over drawn images; None where it has no value, or nothing was drawn."""
    value, drawn = made.performance[name], made.drawn.get(name)
    if value is None or drawn is None:
        return None
    objects = np.bincount(data.annotations.frame)
    return reaching(percentile_ends(drawn, CONFIDENCE), float(value), objects, confidence=CONFIDENCE)


def _without_lambda(rows: Iterable[CampaignRow], distance_m: float) -> Iterator[str]:
    """Where lambda was asked and is not defined."""
    missing = grouped((row.detector, row.condition) for row in rows if row.collision is None)
    for detector, names in missing.items():
        yield (
            f"{detector}: lambda is not defined under {', '.join(names)}: no distance of an object was reported near "
            f"{distance_m:g} m"
        )


def _with_areas(rows: Iterable[CampaignRow], loop: TradeOffs | None) -> Iterator[CampaignRow]:
    """The rows with what the closed loop says of each, and one for each group of conditions."""
    cells: dict[tuple[str, str], dict[str, Cell]] = {}
    for table in () if loop is None else loop.tables:
        for row in table.rows:
            for cell in row.cells:
                cells.setdefault((row.name, cell.detector), {})[table.metric] = cell
    for known in rows:
        yield _judged(known, cells.pop((known.condition, known.detector), {}))
    for (name, detector), own in cells.items():
        yield _judged(CampaignRow(detector, name), own)


def _judged(row: CampaignRow, cells: Mapping[str, Cell]) -> CampaignRow:
    areas = {metric: cell.area for metric, cell in cells.items()}
    return replace(row, area=areas, robustness={metric: cell.robustness for metric, cell in cells.items()})


def _document(
    campaign: Campaign, scenes: Scenes, rows: Iterable[CampaignRow], remarks: tuple[str, ...], loop: TradeOffs | None
) -> CampaignDocument:
    lines = "".join(f"{digest(path)}  {name}\n" for name, path in scenes.files.items())
    inputs = [
        InputFile("campaign", campaign.name, campaign.sha256),
        InputFile("images", Path(str(campaign.data.images)).name, hashlib.sha256(lines.encode()).hexdigest()),
    ]
    given = campaign.data.annotations
    for role, name in (
        ("annotations", None if given is None else given.file),
        ("poses", campaign.poses),
        ("calibration", campaign.calibration),
    ):
        if name is not None and (campaign.root / name).is_file():
            inputs.append(InputFile.of(role, name, digest(campaign.root / name)))
    remarks += (*depth_remarks(scenes), *((BY_MEDIAN,) if campaign.collision is not None else ()))
    if scenes.depth is not None and scenes.depth.guesses:
        remarks += (scenes.guessed(),)
    if campaign.run is not None:
        remarks += ("P assumes what DETECTOR/CONDITION/run.json says of it, such as a memoryless detector",)
    collision = campaign.collision
    asked = {"seed": campaign.seed, "closed_loop": {} if loop is None else dict(loop.settings)}
    if collision is not None:
        asked["collision"] = {
            name: getattr(collision, name) for name in ("distance_m", "speed_mps", "deceleration_mps2", "reaction_s")
        }
    return CampaignDocument(
        title=campaign.title,
        inputs=tuple(inputs),
        settings=asked,
        versions={**own_versions(), **installed_versions(PACKAGES)},
        remarks=tuple(dict.fromkeys((*remarks, *(() if loop is None else loop.remarks)))),
        detectors={name: choice.opened(campaign.root).identity for name, choice in campaign.detectors.items()},
        campaign=tuple(rows),
        magnitudes=tuple(magnitudes(scenes, campaign.mutations)),
    )
