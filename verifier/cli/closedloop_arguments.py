"""The arguments of `verify closed-loop` and `verify robroc`. Only light modules are imported at the top."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from verifier.base.errors import UsageError, shown
from verifier.cli.closedloop_data_arguments import add_data_arguments, check_data_arguments
from verifier.cli.closedloop_numbers import above_0, from_0, metres_from_0, seconds_from_0, share, whole

if TYPE_CHECKING:
    from verifier.closedloop.study_settings import StudySettings
    from verifier.perception.matching import MatchingPolicy

METRICS = ("roc_a", "roc_b", "roboticizer", "pathifier", "safety_radius", "closed_loop")
USUAL_METRICS = ("roboticizer", "pathifier", "safety_radius", "closed_loop")
MOST_LEVELS = 10_000
SEVERITIES = ("mild", "severe")

CLOSED_LOOP_DESCRIPTION = """\
Judge detectors by what a vehicle does that acts on them: drive recorded logs again in closed loop at many
sensitivities, compare safety and efficiency with a vehicle that is told the truth, and take the worst case over
conditions (RobROC).

  verify closed-loop LOGS --validation OTHER_LOGS --control-radius 2 --safety-radius 1.5

LOGS is a folder of tables (logs, images, people, detections/NAME; CSV or Parquet). A source of detections is named
DETECTOR or DETECTOR@CONDITION. nuScenes, KITTI tracking and FieldSAFE are read as well:

  verify closed-loop gt.json --format nuscenes --detections a=det_a --detections b=det_b --window 5 \\
      --validation self --match-distance 2 --control-radius 2 --safety-radius 1.5
"""

ROBROC_DESCRIPTION = """\
The worst case of trade-off curves over conditions (Robustness ROC), its area and its ratio to the baseline's.

  verify robroc CURVES.json [CURVES.csv ...]
  verify robroc --spec SPEC.ltl --safety NAME --progress NAME --cm a=a.json --cm b=b.json --cm a@fog=a_fog.json

With --spec the curves are verified: P of a safety and of a progress requirement at every score threshold of a family
of confusion matrices.
"""


def add_closedloop_arguments(commands: Any) -> None:
    """Add the commands `closed-loop` and `robroc`."""
    loop = commands.add_parser(
        "closed-loop",
        help="detectors judged by what a braking vehicle does, with the worst case over conditions",
        description=CLOSED_LOOP_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    loop.set_defaults(command=_closed_loop)
    add_data_arguments(loop)
    _add_metric_arguments(loop.add_argument_group("metrics"))
    _add_vehicle_arguments(loop.add_argument_group("vehicle and controller"))
    _add_comparison_arguments(loop.add_argument_group("comparison"), bootstrap=True)
    output = loop.add_argument_group("output")
    _add_output_arguments(output)
    output.add_argument("--curves", metavar="FILE", help="write every curve, for verify robroc (.json, .csv)")
    output.add_argument(
        "--trace",
        nargs=2,
        metavar=("RUN", "FILE"),
        help="write every step of one run as CSV; RUN is LOG,SOURCE,SENSITIVITY, or LOG,truth",
    )
    _add_robroc(commands)


def _add_robroc(commands: Any) -> None:
    robroc = commands.add_parser(
        "robroc",
        help="the worst case of trade-off curves over conditions, also of verified ones",
        description=ROBROC_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    robroc.set_defaults(command=_robroc)
    robroc.add_argument("files", nargs="*", metavar="CURVES", help="files of curves (.json, .csv)")
    verified = robroc.add_argument_group("verified curves")
    verified.add_argument("--spec", metavar="SPEC", help="requirements in LTL (.ltl)")
    verified.add_argument("--safety", metavar="NAME", help="the requirement whose probability is safety")
    verified.add_argument("--progress", metavar="NAME", help="the requirement whose probability is efficiency")
    verified.add_argument(
        "--cm",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="a family of confusion matrices over score thresholds; NAME is DETECTOR or DETECTOR@CONDITION; repeat",
    )
    _add_run_arguments(verified)
    _add_comparison_arguments(robroc.add_argument_group("comparison"), bootstrap=False)
    _add_output_arguments(robroc.add_argument_group("output"))


def _add_run_arguments(group: Any) -> None:
    from verifier.cli.arguments import EMPTY_COLUMNS, FALSE_ALARMS

    group.add_argument(
        "--planner", action="append", default=[], metavar="NAME", help="planner, where the spec names none or several"
    )
    group.add_argument(
        "--environment", "--env", action="append", default=[], metavar="NAME", help="true environment; repeat"
    )
    group.add_argument("--initial", metavar="CONDITION", help="narrow the initial states further, as 'v = 1'")
    group.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a constant; repeat")
    group.add_argument(
        "--empty-columns",
        choices=EMPTY_COLUMNS,
        default="error",
        metavar="POLICY",
        help="rates of a column without items: " + ", ".join(EMPTY_COLUMNS) + " (default: error)",
    )
    group.add_argument(
        "--false-alarms",
        choices=FALSE_ALARMS,
        default="as_counted",
        metavar="POLICY",
        help="use of the column 'empty': " + ", ".join(FALSE_ALARMS) + " (default: as_counted)",
    )


def _add_metric_arguments(group: Any) -> None:
    group.add_argument(
        "--metric",
        action="append",
        default=[],
        choices=METRICS,
        metavar="NAME",
        help=f"{', '.join(METRICS)}; repeat (default: of {', '.join(USUAL_METRICS)} those that the logs allow)",
    )
    group.add_argument(
        "--levels", type=whole(2, MOST_LEVELS), default=100, metavar="N", help="sensitivities (default: 100)"
    )
    group.add_argument(
        "--lowest", type=above_0, default=1e-4, metavar="X", help="false positives per image (default: 1e-4)"
    )
    group.add_argument("--highest", type=above_0, default=1.0, metavar="X", help="(default: 1)")
    group.add_argument(
        "--stop-cost",
        type=seconds_from_0,
        default=0.0,
        metavar="S",
        help="what a needless stop costs, seconds (default: 0)",
    )
    group.add_argument(
        "--tolerance",
        type=metres_from_0,
        default=1e-6,
        metavar="M",
        help="a stop so much later is no later (default: 1e-6)",
    )
    group.add_argument(
        "--fpr-max",
        type=above_0,
        default=0.1,
        metavar="X",
        help="false alarms per image at which efficiency is 0, where nothing is simulated (default: 0.1)",
    )
    group.add_argument(
        "--first-frame",
        choices=("forgiven", "counted"),
        default="forgiven",
        help="pathifier, lenient bin: a mistake in a frame that has no previous one (default: forgiven)",
    )
    group.add_argument(
        "--never-stops",
        choices=("safe", "drop"),
        default="safe",
        help="positive logs in which even the truth-driven vehicle never stops: safe by definition, or left out "
        "(default: safe)",
    )


def _add_vehicle_arguments(group: Any) -> None:
    group.add_argument("--top-speed", type=above_0, default=3.0, metavar="M/S", help="(default: 3)")
    group.add_argument("--deceleration", type=above_0, default=4.572, metavar="M/S2", help="(default: 4.572)")
    group.add_argument("--acceleration", type=above_0, default=1.524, metavar="M/S2", help="(default: 1.524)")
    group.add_argument("--start-speed", type=from_0, default=0.0, metavar="M/S", help="(default: 0)")
    group.add_argument(
        "--engine",
        choices=("steps", "events"),
        default="steps",
        help="time steps, or their limit in closed form (default: steps); the other one checks it",
    )
    group.add_argument("--step", type=above_0, default=0.05, metavar="S", help="time step (default: 0.05)")
    group.add_argument(
        "--between-images",
        choices=("continuous", "hold"),
        default="continuous",
        help="the distance shrinks while driving, or the safe speed of an image is held (default: continuous)",
    )
    group.add_argument(
        "--too-close",
        choices=("cannot_stop", "zero_distance"),
        default="cannot_stop",
        help="safe speed 0 where stopping in time is impossible, or only at distance 0 (default: cannot_stop)",
    )


def _add_comparison_arguments(group: Any, *, bootstrap: bool) -> None:
    group.add_argument(
        "--severity",
        action="append",
        default=[],
        metavar="CONDITION=KIND",
        help="mild or severe; the row AnyMild is the worst case over the mild ones; repeat",
    )
    group.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="NAME=CONDITION,...",
        help="a further row, the worst case over these; repeat",
    )
    if bootstrap:
        group.add_argument(
            "--draws", type=whole(0), default=1000, metavar="N", help="bootstrap over logs (default: 1000; 0: none)"
        )
        group.add_argument(
            "--seed",
            type=whole(0),
            default=0,
            metavar="N",
            help="of the bootstrap, and of drawn detections (default: 0)",
        )
        group.add_argument(
            "--confidence", type=share, default=0.95, metavar="LEVEL", help="of its intervals (default: 0.95)"
        )


def _add_output_arguments(group: Any) -> None:
    group.add_argument("--json", action="store_true", help="print the result as JSON instead of tables")
    group.add_argument("-o", "--output", metavar="FILE", help="write the result as JSON")
    group.add_argument("--csv", metavar="FILE", help="write one row per metric, row of its table and detector")
    group.add_argument("--plot", metavar="FILE", help="draw curves of the last metric (.png, .svg, .pdf)")
    group.add_argument("--plot-table", metavar="FILE", help="draw the tables, coloured by robustness")
    group.add_argument(
        "--plot-detector", action="append", default=[], metavar="NAME", help="only these in --plot; repeat"
    )
    group.add_argument(
        "--plot-row",
        action="append",
        default=[],
        metavar="NAME",
        help="conditions or groups in --plot; repeat (default: of each detector the least robust condition)",
    )


def study_settings(arguments: argparse.Namespace) -> StudySettings:
    """The choices of a study; UsageError for an argument that cannot be read or is missing."""
    from verifier.closedloop.closed_loop_curve import ClosedLoopSettings, standard_sensitivities
    from verifier.closedloop.judged import PathifierMetric
    from verifier.closedloop.pathifier import Radii
    from verifier.closedloop.paths import PathSettings
    from verifier.closedloop.study_settings import METRICS as ORDER
    from verifier.closedloop.study_settings import StudySettings
    from verifier.closedloop.vehicle import VehicleSettings

    check_data_arguments(arguments)
    chosen = arguments.metric or USUAL_METRICS
    try:
        vehicle = VehicleSettings(
            arguments.top_speed,
            -arguments.deceleration,
            arguments.acceleration,
            arguments.step,
            arguments.start_speed,
            arguments.between_images,
            arguments.too_close,
        )
        levels = standard_sensitivities(arguments.levels, arguments.lowest, arguments.highest)
        radii = Radii(arguments.control_radius, arguments.safety_radius)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return StudySettings(
        radii,
        ClosedLoopSettings(vehicle, arguments.engine, arguments.stop_cost, arguments.tolerance),
        levels,
        tuple(each for each in ORDER if each in chosen),
        not arguments.metric,
        PathSettings(arguments.path_extension),
        matching_policy(arguments),
        arguments.fpr_max,
        PathifierMetric(first_frame=arguments.first_frame),
        severities(arguments),
        groups(arguments),
        arguments.never_stops,
        arguments.draws,
        arguments.seed,
        arguments.confidence,
    )


def matching_policy(arguments: argparse.Namespace) -> MatchingPolicy:
    """What counts as a match with a person."""
    from verifier.perception.matching import MatchingPolicy

    if arguments.match_distance is None:
        return MatchingPolicy("iou_2d", 0.5 if arguments.match_iou is None else arguments.match_iou)
    if arguments.match_iou is not None:
        raise UsageError("--match-distance and --match-iou are two ways to match; choose one")
    return MatchingPolicy("centre_bev", arguments.match_distance)


def severities(arguments: argparse.Namespace) -> dict[str, str]:
    """Condition -> severity."""
    found = dict(_pair(text, "--severity", "CONDITION=KIND") for text in arguments.severity)
    for name, kind in found.items():
        if kind not in SEVERITIES:
            raise UsageError(f"--severity: {name} is {shown(kind)}; expected {' or '.join(SEVERITIES)}")
    return found


def groups(arguments: argparse.Namespace) -> dict[str, tuple[str, ...]]:
    """Name -> conditions."""
    found = dict(_pair(text, "--group", "NAME=CONDITION,...") for text in arguments.group)
    return {name: tuple(each.strip() for each in listed.split(",")) for name, listed in found.items()}


def _pair(text: str, option: str, expected: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name or not value:
        raise UsageError(f"{option}: expected {expected}, got {shown(text)}")
    return name, value


def _closed_loop(arguments: argparse.Namespace) -> int:
    from verifier.cli.closedloop import closed_loop_command

    return int(closed_loop_command(arguments))


def _robroc(arguments: argparse.Namespace) -> int:
    from verifier.cli.robroc import robroc_command

    return int(robroc_command(arguments))
