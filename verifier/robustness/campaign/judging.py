"""What the parts say of one condition: P by `verifier.pipeline`, lambda by `verifier.collision`.

Logs of a campaign: what every detector reports under every mutation, localized and put where the vehicle was.

With poses a log is a drive of their table. Without, every image is a log of its own, which the ROCs take and no other
metric does.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from verifier.base.arrays import Ints
from verifier.base.documents import InputFile, json_values, read_document
from verifier.base.errors import InputError, Place, shown
from verifier.base.files import make_folder, write_text
from verifier.base.statistics import reaching
from verifier.base.tables import Kind, read_table
from verifier.closedloop.comparison import BASELINE
from verifier.closedloop.cutting import positive_by_path
from verifier.closedloop.from_sets import Drive, logs_of
from verifier.closedloop.logs import Logs, check_plausible
from verifier.closedloop.pathifier import PathSettings
from verifier.collision.estimator import BrakingPolicy, CollisionMap, Grid, collision_map
from verifier.collision.intervals import WINDOW_M
from verifier.collision.pairs import Pairs
from verifier.collision.pairs_reader import read_pairs
from verifier.collision.resampling import bootstrap_interval
from verifier.language.specs import read_spec
from verifier.perception.confusion.document import named_file
from verifier.perception.detections.cameras import in_space, read_cameras
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.distances import Motion
from verifier.perception.matching import CONVENTIONS
from verifier.robustness.campaign.definition import CollisionLimit, Counting, SystemModelRun
from verifier.robustness.campaign.detecting import KEPT
from verifier.robustness.campaign.file import Campaign
from verifier.robustness.campaign.making import localized, matrices_of
from verifier.robustness.campaign.result import RequirementRow
from verifier.robustness.campaign.scenes import Scenes
from verifier.robustness.draws import CONFIDENCE, DRAWS, FEWEST_UNITS
from verifier.study.case import Study
from verifier.study.inputs import checked_names, make_grid, read_inputs, refuse_others
from verifier.study.options import RunOptions, Selection
from verifier.study.provenance import input_files, program_versions
from verifier.study.results import RequirementResult
from verifier.systems.reader import read_model


def check_run(
    run: SystemModelRun, folder: Path, truth: DetectionSet | None = None, counting: Counting | None = None
) -> None:
    """Read spec and system model, and look for planner, environments, constants and, where it is known what will be
    counted, classes and bins; VerifierError as a run."""
    spec = read_spec(folder / run.spec)
    model = read_model(spec.model)
    spec = checked_names(spec, model)
    refuse_others(make_grid(spec, model, run_options(run).selection).requirements, "verify assess", model)
    if truth is not None and counting is not None:
        counts = matrices_of(truth, counting, CONVENTIONS["coco"], "the objects, none of them found")
        with named_file(counts) as file:
            options = run_options(run)
            for case in Study.of(read_inputs(folder / run.spec, file, options), options).cases:
                _ = case.states  # what a planner asks about is looked up there


def run_options(run: SystemModelRun) -> RunOptions:
    """The choices of a run."""
    constants = {name: int(value) if value.denominator == 1 else value for name, value in run.set_.items()}
    planners = () if run.planner is None else (run.planner,)
    selection = Selection(planners=planners, environments=run.environments, settings=constants)
    return RunOptions(selection=selection, empty_columns=run.empty_columns)


def requirement_row(requirement: RequirementResult) -> RequirementRow:
    """The worst over the scenarios: the least, or the greatest where the target is an upper limit."""
    worst, target = (
        Fraction(requirement.points[requirement.least(range(len(requirement.points)))].value),
        requirement.threshold,
    )
    margin = None if target is None else float(target - worst if requirement.is_upper else worst - target)
    strict = requirement.target is not None and requirement.target.comparison in ("<", ">")
    asked = requirement.name, requirement.planner, requirement.asked_text
    return RequirementRow(*asked, float(worst), _worst_bounds(requirement), requirement.verdict_text, margin, strict)


def _worst_bounds(requirement: RequirementResult) -> tuple[float, float] | None:
    """The confidence bounds of the worst over the scenarios: what the verdict is from."""
    sure = [point.uncertainty.confidence_bounds for point in requirement.points if point.uncertainty is not None]
    known = [bounds for bounds in sure if bounds is not None]
    if not known:
        return None
    pick = max if requirement.is_upper else min
    return pick(bounds.lower for bounds in known), pick(bounds.upper for bounds in known)


@dataclass(frozen=True)
class KeptRun:
    """What a run gave, and the SHA-256 of all that it was made from."""

    key: str
    requirements: tuple[RequirementRow, ...]
    document: str


def checked_runs(
    campaign: Campaign, confusion: Mapping[tuple[str, str], str | None], target: Path
) -> tuple[dict[tuple[str, str], str], dict[tuple[str, str], tuple[RequirementRow, ...]]]:
    """The document of every run, and its requirements, by detector and condition; those of an earlier run of the
    campaign from the same files, options and versions are kept.

    Args:
        confusion: the file of matrices by detector and condition, "" the baseline.
        target: the folder of the campaign.

    Raises:
        VerifierError: as a run.
    """
    if campaign.run is None:
        return {}, {}
    from verifier.checking.process import StormProcess  # Storm is loaded only where it is asked
    from verifier.pipeline import verified

    options, texts, rows = run_options(campaign.run), {}, {}
    make_folder(target / KEPT / "runs")
    with StormProcess() as storm:
        for (detector, name), file in confusion.items():
            assert file is not None  # there is counting
            inputs = read_inputs(campaign.root / campaign.run.spec, file, options)
            made_from = [*input_files(inputs.spec, inputs.model, inputs.confusion), program_versions(), repr(options)]
            key = hashlib.sha256(json.dumps(json_values(made_from), sort_keys=True).encode()).hexdigest()
            record = target / KEPT / "runs" / f"{detector}@{name or BASELINE}.json"
            kept = _kept_run(record, key)
            if kept is None:
                result = verified(Study.of(inputs, options), storm)
                kept = KeptRun(key, tuple(map(requirement_row, result.requirements)), result.json_text())
                write_text(record, json.dumps(json_values(kept)) + "\n")
            texts[detector, name or BASELINE], rows[detector, name or BASELINE] = kept.document, kept.requirements
    return texts, rows


def _kept_run(record: Path, key: str) -> KeptRun | None:
    """The run that was kept, if it was made from the same."""
    try:
        run = read_document(KeptRun, json.loads(record.read_text()), record.name)
    except (OSError, ValueError, InputError):
        return None
    return run if run.key == key else None


def collision_at(
    path: Path, limit: CollisionLimit
) -> tuple[float | None, tuple[float, float] | None, InputFile, tuple[str, ...]]:
    """lambda at the distance and speed of the limit, its interval, the file of pairs and its remarks; None where not
    defined."""
    pairs = read_pairs(path)
    grid = Grid(np.array([limit.distance_m]), np.array([limit.speed_mps]))
    estimate = collision_map(pairs.pairs, grid, BrakingPolicy(limit.deceleration_mps2, limit.reaction_s))
    value = float(estimate.probability[0, 0])
    source = InputFile.of("pairs", str(path), str(pairs.origin.get("sha256", "")))
    remarks = tuple(pairs.origin.get("remarks", ()))
    return None if math.isnan(value) else value, _lambda_interval(pairs.pairs, estimate), source, remarks


def _lambda_interval(pairs: Pairs, estimate: CollisionMap) -> tuple[float, float] | None:
    """The percentile interval over drawn images, the same draws in every level of as many images, no closer than the
    images near that distance allow."""
    if pairs.image_count < FEWEST_UNITS or math.isnan(float(estimate.probability[0, 0])):
        return None
    rng = np.random.default_rng(0)
    interval_map = bootstrap_interval(pairs, estimate, rng=rng, level=CONFIDENCE, replicates=DRAWS)
    low, high = float(interval_map.lower[0, 0]), float(interval_map.upper[0, 0])
    near = np.abs(pairs.predicted_m - estimate.grid.distances_m) <= max(WINDOW_M / 2, estimate.width_m)
    return reaching((low, high), float(estimate.probability[0, 0]), len(np.unique(pairs.image[near])))


POSES: dict[str, Kind] = {
    "frame": "text", "log": "text", "time_s": "number", "x_m": "number", "y_m": "number", "heading_rad": "number"
}  # fmt: skip


def campaign_logs(campaign: Campaign, scenes: Scenes, by_detector: Mapping[str, Mapping[str, DetectionSet]]) -> Logs:
    """The logs, with a source DETECTOR or DETECTOR@CONDITION for each.

    Args:
        by_detector: and by condition, "" the images as they were taken; of people alone, frames as in `scenes`.

    Raises:
        InputError: poses or calibration cannot be read or do not fit the images.
    """
    named = {
        f"{detector}@{condition}" if condition else detector: data
        for detector, conditions in by_detector.items()
        for condition, data in conditions.items()
    }
    first = next(iter(named.values()))
    if not campaign.loop.asks_for_positions:
        order, log = np.arange(first.frame_count), np.arange(first.frame_count)
        zero = np.zeros(first.frame_count)
        still = Motion(np.broadcast_to(np.eye(3), (len(zero), 3, 3)), np.zeros((len(zero), 3)))
        sets = {name: _ordered(detections, order, log, first.frame_name) for name, detections in named.items()}
        remark = "every image is a log of its own: a vehicle was not driven"
        return logs_of(sets, Drive(zero, still, zero), (remark,), placed=False)
    path = campaign.root / str(campaign.poses)
    drive, order, log, names = read_poses(path, first.frame_name)
    deep = scenes.depth is not None and scenes.depth.folder is not None
    sets = {}
    for name, detections in named.items():
        cameras = read_cameras(campaign.root / str(campaign.calibration), detections)
        if deep:
            parts = {"annotations": detections.annotations, "detections": detections.detections}
            detections = detections.change(
                **{key: replace(part, distance_m=localized(scenes, part, None)) for key, part in parts.items()}
            )
        sets[name] = _ordered(in_space(detections, cameras, deep=deep), order, log, names)
    how = "the median depth of its rectangle" if deep else "where its foot meets flat ground"
    logs = logs_of(sets, drive, (f"people and detections are placed by their rectangles: {how}",))
    check_plausible(logs, None, str(path))
    if campaign.loop.asks_for_radii:
        logs = positive_by_path(logs, campaign.loop.control_radius, PathSettings(campaign.loop.path_extension))
    return logs


def _ordered(data: DetectionSet, order: Ints, log: Ints, names: tuple[str, ...]) -> DetectionSet:
    """The frames in this order, and of these logs."""
    place = np.argsort(order)
    return data.change(
        sequences=names,
        frame_sequence=log.astype(np.int32),
        frame_name=tuple(data.frame_name[at] for at in order.tolist()),
        annotations=replace(data.annotations, frame=place[data.annotations.frame]),
        detections=replace(data.detections, frame=place[data.detections.frame]),
        ignored=None,
    )


def read_poses(path: Path, frames: tuple[str, ...]) -> tuple[Drive, Ints, Ints, tuple[str, ...]]:
    """The drive of the frames by log and time, their order, the log of each in that order, and the names of logs.

    Raises:
        InputError: unreadable, an image without a pose or with several, two images of a log at one time.
    """
    table = read_table(path, POSES)
    listed, of_log = ([table.texts[key][code] for code in table.columns[key].tolist()] for key in ("frame", "log"))
    row_of: dict[str, int] = {}
    for row, name in enumerate(listed):
        if row_of.setdefault(Path(name).stem, row) != row:
            raise InputError(f"the frame {shown(name)} occurs twice", Place(str(path)))
    rows = []
    for name in frames:
        if Path(name).stem not in row_of:
            raise InputError(f"the image {shown(name)} has no pose", Place(str(path)))
        rows.append(row_of[Path(name).stem])
    names = tuple(dict.fromkeys(of_log[row] for row in rows))
    log = np.array([names.index(of_log[row]) for row in rows])
    time, x, y, heading = (table.columns[name][rows] for name in ("time_s", "x_m", "y_m", "heading_rad"))
    order = np.lexsort((time, log))
    same = (np.diff(time[order]) <= 0) & (np.diff(log[order]) == 0)
    if same.any():
        name = frames[int(order[int(same.argmax()) + 1])]
        raise InputError(f"the image {shown(name)} has the time of another one of its log", Place(str(path)))
    cos, sin = np.cos(heading[order]), np.sin(heading[order])
    turn = np.zeros((len(order), 3, 3))
    turn[:, 0, 0], turn[:, 0, 1], turn[:, 1, 0], turn[:, 1, 1], turn[:, 2, 2] = cos, -sin, sin, cos, 1
    place = np.column_stack([x[order], y[order], np.zeros(len(order))])
    return Drive(time[order], Motion(turn, place), heading[order]), order, log[order], names
