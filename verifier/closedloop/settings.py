"""The words for what can be chosen of closed-loop studies, and every choice of `verify closed-loop` and `robroc`.

Only light modules are imported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias, get_args

from verifier.base.errors import UsageError, shown
from verifier.base.options import (
    Option,
    PrintedTables,
    Scheduler,
    Written,
    above_0,
    from_0,
    limited,
    options_of,
    pair,
    reads,
    share,
    whole,
    writes,
)
from verifier.perception.settings import EmptyColumns
from verifier.study.options import EmptyColumnRates, FalsePositiveUse, Initial
from verifier.systems.settings import constant

Metric: TypeAlias = Literal["roc_a", "roc_b", "roboticizer", "pathifier", "safety_radius", "closed_loop"]
"""What a study judges by, in rising order of context."""
FirstFrame: TypeAlias = Literal["forgiven", "counted"]
"""What a mistake is in a lenient frame that has no previous one."""
EngineName: TypeAlias = Literal["steps", "events"]
"""Whether a drive is simulated in time steps, or in their limit in closed form."""
BetweenImages: TypeAlias = Literal["continuous", "hold"]
"""Whether the distance shrinks while driving, or the safe speed of an image is held."""
TooClose: TypeAlias = Literal["cannot_stop", "zero_distance"]
"""Whether the safe speed is 0 where stopping in time is impossible, or only at distance 0."""
Severity: TypeAlias = Literal["mild", "severe"]
"""Of a condition."""
LogFormat: TypeAlias = Literal["tables", "nuscenes", "kitti_tracking", "fieldsafe"]
"""Formats of logs."""

UNPLACED: tuple[Metric, ...] = ("roc_a", "roc_b")
"""The metrics that ask for no positions."""
USUAL_METRICS: tuple[Metric, ...] = ("roboticizer", "pathifier", "safety_radius", "closed_loop")
SELF, DRAWN = "self", "drawn"
BOXES: tuple[LogFormat, ...] = ("nuscenes", "kitti_tracking")
FOREIGN: tuple[LogFormat, ...] = (*BOXES, "fieldsafe")
POSED: tuple[LogFormat, ...] = ("tables", "nuscenes", "fieldsafe")
BELONGS: Mapping[str, tuple[LogFormat, ...]] = {
    **dict.fromkeys(("detections", "people", "ignore"), BOXES),
    **dict.fromkeys(
        ("frames", "speed", "sequence", "calibration", "depth_folder", "depth_scale"), ("kitti_tracking",)
    ),
    **dict.fromkeys(
        ("positions", "matrix", "every", "cm", "class", "position_error", "empty_columns"), ("fieldsafe",)
    ),
    **dict.fromkeys(("window", "field_of_view", "range"), FOREIGN),
    **dict.fromkeys(("longest_gap", "greatest_speed"), POSED),
}
"""Option -> the formats that it belongs to."""
NEEDS: Mapping[LogFormat, tuple[str, ...]] = {
    "tables": (),
    "nuscenes": ("detections",),
    "kitti_tracking": ("detections", "frames"),
    "fieldsafe": ("positions", "matrix", "cm"),
}
"""Format -> the options without which its logs cannot be made."""

_metres = limited(float, lambda value: 0 < value <= 1e6, "a length in metres above 0, at most 1e6")
_metres_from_0 = limited(float, lambda value: 0 <= value <= 1e6, "a length in metres from 0, at most 1e6")
_seconds_from_0 = limited(float, lambda value: 0 <= value <= 1e6, "seconds from 0, at most 1e6")
_angle_deg = limited(float, lambda value: 0 < value <= 180, "an angle in degrees above 0, at most 180")
_iou = limited(float, lambda value: 0 < value <= 1, "a number above 0, at most 1")


def _conditions(text: str) -> tuple[str, tuple[str, ...]]:
    name, listed = pair("--group", "NAME=CONDITION,...", text)
    return name, tuple(condition.strip() for condition in listed.split(","))


def _check_severities(severities: Mapping[str, str]) -> None:
    known = get_args(Severity)
    for name, kind in severities.items():
        if kind not in known:
            raise UsageError(f"--severity: {name} is {shown(kind)}; expected {' or '.join(known)}")


Severities = Annotated[
    Mapping[str, str],
    Option(
        "mild or severe; the row AnyMild is the worst case over the mild ones; repeat",
        metavar="CONDITION=KIND",
        parse=partial(pair, "--severity", "CONDITION=KIND"),
        group="comparison",
    ),
]
Groups = Annotated[
    Mapping[str, tuple[str, ...]],
    Option("a further row, the worst case over these; repeat", metavar="NAME=CONDITION,...", parse=_conditions),
]
Csv = Annotated[str | None, writes("write one row per metric, row of its table and detector")]
Plot = Annotated[str | None, writes("draw curves of the last metric (.png, .svg, .pdf)")]
PlotTable = Annotated[str | None, writes("draw the tables, coloured by robustness")]
PlotDetector = Annotated[tuple[str, ...], writes("only these in --plot; repeat", metavar="NAME", of="plot")]
PlotRow = Annotated[
    tuple[str, ...],
    writes(
        "conditions or groups in --plot; repeat (default: of each detector the least robust condition)",
        metavar="NAME",
        of="plot",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ClosedLoopSettings:
    """Every choice of `verify closed-loop`; None of what the data decide, NaN of what must be named."""

    logs: Annotated[
        str,
        reads(
            "folder of tables, or the ground truth of another --format", metavar="LOGS", positional=True, group="data"
        ),
    ]
    format: Annotated[LogFormat, Option("{choices}", metavar="NAME")] = "tables"
    validation: Annotated[
        str,
        reads(
            "folder of tables whose false positives standardize the scores; 'self' for the evaluated logs; "
            "'drawn' (fieldsafe) for independently drawn detections on the same drive",
            metavar="LOGS",
        ),
    ] = ""
    control_radius: Annotated[float, Option("that the controller keeps; required", metavar="M", parse=_metres)] = (
        math.nan
    )
    safety_radius: Annotated[
        float, Option("within it the vehicle must not move; less; required", metavar="M", parse=_metres)
    ] = math.nan
    path_extension: Annotated[float, Option("straight after the end", metavar="M", parse=_metres_from_0)] = 10.0
    match_distance: Annotated[
        float | None,
        Option(
            "a detection this close to a person on the ground is no false positive (default: rectangles, "
            "--match-iou)",
            metavar="M",
            parse=_metres,
        ),
    ] = None
    match_iou: Annotated[
        float | None, Option("of rectangles in the image (default: 0.5)", metavar="X", parse=_iou)
    ] = None
    longest_gap: Annotated[
        float | None, Option("accepted between two images (default: 2)", metavar="S", parse=above_0)
    ] = None
    greatest_speed: Annotated[
        float | None, Option("accepted between two positions (default: 70)", metavar="M/S", parse=above_0)
    ] = None
    write_logs: Annotated[str | None, writes("write the logs as a folder of tables", metavar="FOLDER")] = None

    window: Annotated[
        float | None,
        Option(
            "cut drives into pieces at least so long",
            metavar="S",
            parse=above_0,
            group="data of other formats: one long drive, cut and sorted by the path",
        ),
    ] = None
    field_of_view: Annotated[
        float | None,
        Option(
            "half-angle of the field of view, degrees from straight ahead (default: all; fieldsafe: 45)",
            metavar="DEG",
            parse=_angle_deg,
        ),
    ] = None
    range: Annotated[
        float | None,
        Option("largest distance at which people are looked for (default: any)", metavar="M", parse=_metres),
    ] = None
    detections: Annotated[
        tuple[str, ...],
        Option(
            "nuscenes, kitti_tracking: what a detector reports; NAME is DETECTOR or DETECTOR@CONDITION; repeat",
            metavar="NAME=PATH",
            role="named_file",
        ),
    ] = ()
    people: Annotated[tuple[str, ...], Option("class of people, as 'pedestrian*'; repeat", metavar="CLASS")] = ()
    ignore: Annotated[tuple[str, ...], Option("skip input errors of this kind (repeatable)", metavar="KIND")] = ()
    frames: Annotated[str, reads("kitti_tracking: how many frames each sequence has")] = ""
    speed: Annotated[
        float | None, Option("kitti_tracking: that is assumed, straight ahead", metavar="M/S", parse=from_0)
    ] = None
    sequence: Annotated[tuple[str, ...], Option("kitti_tracking: only this one; repeat", metavar="NAME")] = ()
    calibration: Annotated[
        str, reads("kitti_tracking: cameras; rectangles without boxes in space are placed on the ground")
    ] = ""
    depth_folder: Annotated[
        str, reads("kitti_tracking, with --calibration: depth maps that place rectangles instead", metavar="DIR")
    ] = ""
    depth_scale: Annotated[
        float | None, Option("what a metre is in PNG depth maps (default: 256)", metavar="N", parse=above_0)
    ] = None
    positions: Annotated[str, reads("fieldsafe: the tractor's GPS coordinates")] = ""
    matrix: Annotated[str, reads("fieldsafe: utm2PixelsTransformMatrix.csv")] = ""
    every: Annotated[
        int | None, Option("fieldsafe: use every N-th frame (default: 5)", metavar="N", parse=whole(1))
    ] = None
    cm: Annotated[
        tuple[str, ...],
        Option(
            "fieldsafe, which has no detections: they are drawn from this file of verify confusion; repeat",
            metavar="[NAME=]FILE",
            role="named_file",
        ),
    ] = ()
    person: Annotated[
        str | None, Option("class of people in the files of --cm, if they have several", name="class", metavar="NAME")
    ] = None
    position_error: Annotated[
        float | None, Option("of drawn detections, along x and y (default: 0)", metavar="M", parse=_metres_from_0)
    ] = None
    empty_columns: Annotated[
        EmptyColumns | None,
        Option("fieldsafe: bins of --cm without items: {choices} (default: error)", metavar="POLICY"),
    ] = None

    metric: Annotated[
        tuple[Metric, ...],
        Option(
            f"{{choices}}; repeat (default: of {', '.join(USUAL_METRICS)} those that the logs allow)",
            metavar="NAME",
            group="metrics",
        ),
    ] = ()
    levels: Annotated[int, Option("sensitivities", metavar="N", parse=whole(2, 10_000))] = 100
    lowest: Annotated[float, Option("false positives per image", metavar="X", parse=above_0, default="1e-4")] = 1e-4
    highest: Annotated[float, Option(metavar="X", parse=above_0)] = 1.0
    stop_cost: Annotated[float, Option("cost of a needless stop, seconds", metavar="S", parse=_seconds_from_0)] = 0.0
    tolerance: Annotated[
        float, Option("tolerance in metres for 'stops no later'", metavar="M", parse=_metres_from_0)
    ] = 1e-6
    fpr_max: Annotated[
        float,
        Option(
            "false positives per image at which efficiency is 0, where nothing is simulated",
            metavar="X",
            parse=above_0,
        ),
    ] = 0.1
    first_frame: Annotated[
        FirstFrame, Option("pathifier, lenient bin: a mistake in a frame that has no previous one")
    ] = "forgiven"

    top_speed: Annotated[float, Option(metavar="M/S", parse=above_0, group="vehicle and controller")] = 3.0
    deceleration: Annotated[float, Option(metavar="M/S2", parse=above_0)] = 4.572
    acceleration: Annotated[float, Option(metavar="M/S2", parse=above_0)] = 1.524
    start_speed: Annotated[float, Option(metavar="M/S", parse=from_0)] = 0.0
    engine: Annotated[
        EngineName,
        Option(
            "time steps as in the paper, or their limit in closed form (default: events); the other one checks it"
        ),
    ] = "events"
    step: Annotated[float, Option("time step", metavar="S", parse=above_0)] = 0.05
    between_images: Annotated[
        BetweenImages, Option("the distance shrinks while driving, or the safe speed of an image is held")
    ] = "continuous"
    too_close: Annotated[
        TooClose, Option("safe speed 0 where stopping in time is impossible, or only at distance 0")
    ] = "cannot_stop"

    severity: Severities = field(default_factory=dict)
    group: Groups = field(default_factory=dict)
    draws: Annotated[int, Option("bootstrap over logs (default: 1000; 0: none)", metavar="N", parse=whole(0))] = 1000
    seed: Annotated[int, Option("of the bootstrap, and of drawn detections", metavar="N", parse=whole(0))] = 0
    confidence: Annotated[float, Option("level of its intervals", metavar="LEVEL", parse=share)] = 0.95

    scheduler: Scheduler = None
    json: PrintedTables = False
    output: Written = None
    csv: Csv = None
    plot: Plot = None
    plot_table: PlotTable = None
    plot_detector: PlotDetector = ()
    plot_row: PlotRow = ()
    curves: Annotated[str | None, writes("write every curve, for verify robroc (.json, .csv)")] = None
    trace: Annotated[
        tuple[str, str] | None,
        writes(
            "write every step of one run as CSV; RUN is LOG,SOURCE,SENSITIVITY, or LOG,truth", metavar=("RUN", "FILE")
        ),
    ] = None

    @property
    def asks_for_positions(self) -> bool:
        """Whether a metric asks where people and vehicle are."""
        return not self.metric or not set(self.metric) <= set(UNPLACED)

    @property
    def asks_for_radii(self) -> bool:
        """Whether a metric asks how close the vehicle may come."""
        return not self.metric or not set(self.metric) <= {*UNPLACED, "roboticizer"}

    @property
    def of_formats(self) -> dict[str, Any]:
        """What is given of the options that belong to some formats (`BELONGS`), by their names."""
        given = {setting.name: getattr(self, setting.field) for _, setting in options_of(ClosedLoopSettings)}
        return {name: given[name] for name in BELONGS if given[name] not in (None, (), "")}

    def __post_init__(self) -> None:
        _check_severities(self.severity)
        for name in self.of_formats:
            if self.format not in BELONGS[name]:
                formats = " or ".join(BELONGS[name])
                raise UsageError(f"--{name.replace('_', '-')} belongs to --format {formats}, not to {self.format}")
        for name in NEEDS[self.format]:
            if name not in self.of_formats:
                raise UsageError(f"--format {self.format} needs --{name}")
        if self.format == "kitti_tracking" and self.asks_for_positions and self.speed is None:
            raise UsageError("--format kitti_tracking needs --speed: KITTI tracking has no ego pose")
        if self.depth_folder and not self.calibration:
            raise UsageError("--depth-folder needs --calibration: in which direction does a pixel look?")
        for name in ("control", "safety") if self.asks_for_radii else ():
            if math.isnan(getattr(self, f"{name}_radius")):
                raise UsageError(f"name the {name} radius: --{name}-radius M (there is no usual one)")
        if not self.validation:
            raise UsageError(
                "name the logs whose false positives standardize the scores: --validation LOGS, or --validation self"
            )
        if self.validation == DRAWN and self.format != "fieldsafe":
            raise UsageError("--validation drawn belongs to --format fieldsafe, whose detections are drawn")


@dataclass(frozen=True, kw_only=True)
class RobrocSettings:
    """Every choice of `verify robroc`."""

    files: Annotated[tuple[str, ...], reads("files of curves (.json, .csv)", metavar="CURVES", positional=True)] = ()
    spec: Annotated[str, reads("requirements in LTL (.ltl)", metavar="SPEC", group="verified curves")] = ""
    safety: Annotated[str, Option("the requirement whose probability is safety", metavar="NAME")] = ""
    progress: Annotated[str, Option("the requirement whose probability is efficiency", metavar="NAME")] = ""
    cm: Annotated[
        tuple[str, ...],
        Option(
            "a family of confusion matrices over score thresholds; NAME is DETECTOR or DETECTOR@CONDITION; repeat",
            metavar="[NAME=]FILE",
            role="named_file",
        ),
    ] = ()
    planner: Annotated[tuple[str, ...], Option("planner, where the spec names none or several", metavar="NAME")] = ()
    environment: Annotated[tuple[str, ...], Option("environment (repeatable)", also=("--env",), metavar="NAME")] = ()
    initial: Initial = None
    constants: Annotated[
        Mapping[str, int | Fraction | str],
        Option("value of a constant (repeatable)", name="set", metavar="NAME=VALUE", parse=constant),
    ] = field(default_factory=dict)
    empty_columns: EmptyColumnRates = "error"
    false_positives: FalsePositiveUse = "as_counted"

    severity: Severities = field(default_factory=dict)
    group: Groups = field(default_factory=dict)

    json: PrintedTables = False
    output: Written = None
    csv: Csv = None
    plot: Plot = None
    plot_table: PlotTable = None
    plot_detector: PlotDetector = ()
    plot_row: PlotRow = ()

    def __post_init__(self) -> None:
        _check_severities(self.severity)
