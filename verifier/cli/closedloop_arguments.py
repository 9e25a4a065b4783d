"""The arguments of `verify closed-loop` and `verify robroc`. Only light modules are imported at the top."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from verifier.errors import UsageError, shown

if TYPE_CHECKING:
    from verifier.closedloop.study import StudySettings
    from verifier.matching import MatchingPolicy

METRICS = ("roc_a", "roc_b", "roboticizer", "pathifier", "closed_loop")
USUAL_METRICS = ("roboticizer", "pathifier", "closed_loop")
SEVERITIES = ("mild", "severe")

CLOSED_LOOP_DESCRIPTION = """\
Judge detectors by what a vehicle does that acts on them: drive recorded logs again in closed loop at many
sensitivities, compare safety and efficiency with a vehicle that is told the truth, and take the worst case over
conditions (RobROC).

  verify closed-loop LOGS --validation OTHER_LOGS --control-radius 2

LOGS is a folder of tables (logs, images, people, detections/NAME; CSV or Parquet). A source of detections is named
DETECTOR or DETECTOR@CONDITION.
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
    _add_data_arguments(loop.add_argument_group("data"))
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


def _add_data_arguments(group: Any) -> None:
    group.add_argument("logs", metavar="LOGS", help="folder with the logs")
    group.add_argument(
        "--validation",
        metavar="LOGS",
        help="folder with the logs whose false positives standardize the scores, or 'self' for the evaluated ones",
    )
    group.add_argument(
        "--control-radius", type=_above_0, metavar="M", help="how near the path may come to anybody; required"
    )
    group.add_argument(
        "--path-extension", type=_from_0, default=10.0, metavar="M", help="straight path after the end (default: 10)"
    )
    group.add_argument(
        "--match-distance",
        type=_above_0,
        metavar="M",
        help="a detection so near a person on the ground is no false positive (default: IoU of rectangles >= 0.5)",
    )


def _add_metric_arguments(group: Any) -> None:
    group.add_argument(
        "--metric",
        action="append",
        default=[],
        choices=METRICS,
        metavar="NAME",
        help=f"{', '.join(METRICS)}; repeat (default: {', '.join(USUAL_METRICS)})",
    )
    group.add_argument("--levels", type=_whole(2), default=100, metavar="N", help="sensitivities (default: 100)")
    group.add_argument(
        "--lowest", type=_above_0, default=1e-4, metavar="X", help="false positives per image (default: 1e-4)"
    )
    group.add_argument("--highest", type=_above_0, default=1.0, metavar="X", help="(default: 1)")
    group.add_argument(
        "--stop-cost", type=_from_0, default=0.0, metavar="S", help="what a needless stop costs, seconds (default: 0)"
    )
    group.add_argument(
        "--tolerance",
        type=_from_0,
        default=1e-6,
        metavar="M",
        help="a stop so much later is no later (default: 1e-6)",
    )


def _add_vehicle_arguments(group: Any) -> None:
    group.add_argument("--top-speed", type=_above_0, default=3.0, metavar="M/S", help="(default: 3)")
    group.add_argument("--deceleration", type=_above_0, default=4.572, metavar="M/S2", help="(default: 4.572)")
    group.add_argument("--acceleration", type=_above_0, default=1.524, metavar="M/S2", help="(default: 1.524)")
    group.add_argument("--start-speed", type=_from_0, default=0.0, metavar="M/S", help="(default: 0)")
    group.add_argument(
        "--engine",
        choices=("steps", "events"),
        default="steps",
        help="time steps, or their limit in closed form (default: steps); the other one checks it",
    )
    group.add_argument("--step", type=_above_0, default=0.05, metavar="S", help="time step (default: 0.05)")
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
            "--draws", type=_whole(0), default=1000, metavar="N", help="bootstrap over logs (default: 1000; 0: none)"
        )
        group.add_argument("--seed", type=_whole(0), default=0, metavar="N", help="of the bootstrap (default: 0)")
        group.add_argument(
            "--confidence", type=_share, default=0.95, metavar="LEVEL", help="of its intervals (default: 0.95)"
        )


def _add_output_arguments(group: Any) -> None:
    group.add_argument("--json", action="store_true", help="print the result as JSON instead of tables")
    group.add_argument("--output", metavar="FILE", help="write the result as JSON")
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
    from verifier.closedloop.paths import PathSettings
    from verifier.closedloop.study import METRICS as ORDER
    from verifier.closedloop.study import StudySettings
    from verifier.closedloop.vehicle import VehicleSettings

    if arguments.control_radius is None:
        raise UsageError("name the control radius: --control-radius M (there is no usual one)")
    if arguments.validation is None:
        raise UsageError(
            "name the logs whose false positives standardize the scores: --validation LOGS, or --validation self"
        )
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
    except ValueError as error:
        raise UsageError(str(error)) from None
    return StudySettings(
        arguments.control_radius,
        ClosedLoopSettings(vehicle, arguments.engine, arguments.stop_cost, arguments.tolerance),
        levels,
        tuple(each for each in ORDER if each in chosen),
        PathSettings(arguments.path_extension),
        matching_policy(arguments),
        severities(arguments),
        groups(arguments),
        arguments.draws,
        arguments.seed,
        arguments.confidence,
    )


def matching_policy(arguments: argparse.Namespace) -> MatchingPolicy:
    """What counts as a match with a person."""
    from verifier.closedloop.matched import IOU_HALF
    from verifier.matching import MatchingPolicy

    if arguments.match_distance is None:
        return IOU_HALF
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


def _limited(kind: type, accepts: Callable[[Any], bool], expected: str) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not accepts(value):
            raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
        return value

    return convert


def _whole(least: int) -> Callable[[str], Any]:
    return _limited(int, lambda value: least <= value < 2**31, f"a whole number from {least}")


_above_0 = _limited(float, lambda value: 0 < value < float("inf"), "a number above 0")
_from_0 = _limited(float, lambda value: 0 <= value < float("inf"), "a number from 0")
_share = _limited(float, lambda value: 0 < value < 1, "a number between 0 and 1, both excluded")


def _closed_loop(arguments: argparse.Namespace) -> int:
    from verifier.cli.closedloop import closed_loop_command

    return int(closed_loop_command(arguments))


def _robroc(arguments: argparse.Namespace) -> int:
    from verifier.cli.robroc import robroc_command

    return int(robroc_command(arguments))
