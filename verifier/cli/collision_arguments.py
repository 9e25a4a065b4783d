"""The arguments of `verify collision`.

Only light modules are imported at the top, so that `verify --help` answers at once.
"""

from __future__ import annotations

import argparse
from typing import Any

FORMATS = ("kitti_object", "kitti_tracking", "nuscenes", "nuscenes_compact", "coco", "mot", "table")
AFFINITIES = ("iou_2d", "iou_bev", "iou_3d", "centre_2d", "centre_bev", "centre_3d")
MEASURES = ("euclidean_3d", "ground_plane", "forward", "given")
UNITS = ("m/s", "km/h", "mph", "kn")
DEFAULT_DECELERATION = 6.86
DEFAULT_DISTANCES = "1..50"
DEFAULT_SPEEDS = "5..75 mph"
USUAL_BOOTSTRAP = 200

DESCRIPTION = """\
How likely is a collision, given the distance a detector reports and the speed? Maps with intervals for one detector;
comparison, ranking and combination for several; and the same braking policy as a verified closed loop.

  verify collision PAIRS.csv --plot map.png
  verify collision --format kitti_object --annotations label_2 --detections results --class Car
  verify collision --pairs a=first.csv --pairs b=second.csv --plot-comparison comparison.png
"""
EPILOG = """\
A table of pairs has the columns image, true_m and predicted_m: an object with both distances; with true_m alone an
object without a report; with neither an image without objects. The record of verify confusion --record is read with
--record. Ranges are LOW..HIGH or LOW..HIGH:STEP or lists such as 5,10,20; speeds name their unit: m/s, km/h, mph, kn.
"""


def add_collision_arguments(commands: Any) -> None:
    """Add the command `collision`."""
    collision = commands.add_parser(
        "collision",
        help="probability of collision by reported distance and speed, with intervals; compare detectors",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    collision.set_defaults(command=_collision)
    collision.add_argument("table", nargs="?", metavar="PAIRS.csv", help="pairs of one detector")
    _add_data_arguments(collision.add_argument_group("data (several detectors: repeat, with a NAME for each)"))
    _add_policy_arguments(collision.add_argument_group("braking and grid"))
    _add_estimate_arguments(collision.add_argument_group("estimate and intervals"))
    _add_comparison_arguments(collision.add_argument_group("scores and comparison"))
    _add_loop_arguments(collision.add_argument_group("closed loop"))
    _add_output_arguments(collision.add_argument_group("output"))


def _add_data_arguments(group: Any) -> None:
    group.add_argument("--pairs", action="append", default=[], metavar="NAME=FILE", help="table of pairs; repeat")
    group.add_argument(
        "--record", action="append", default=[], metavar="[NAME=]FILE", help="of verify confusion; needs --distance"
    )
    group.add_argument(
        "--detections", action="append", default=[], metavar="[NAME=]PATH", help="with --format and --annotations"
    )
    group.add_argument("--format", choices=FORMATS, metavar="NAME", help=", ".join(FORMATS))
    group.add_argument("--annotations", metavar="PATH", help="ground truth: file, folder or zip archive")
    group.add_argument("--class-map", metavar="FILE", help="file of lines such as 'human.* -> ped'; * is any text")
    group.add_argument("--frames", metavar="FILE", help="lists every frame, also empty ones (kitti_tracking, table)")
    group.add_argument("--sequence", action="append", default=[], metavar="NAME", help="only this drive; repeat")
    group.add_argument("--ignore", action="append", default=[], metavar="KIND", help="leave out faults of this kind")
    group.add_argument("--min-score", type=float, metavar="X", help="leave out detections below")
    group.add_argument(
        "--class", dest="classes", action="append", default=[], metavar="NAME", help="only this; repeat"
    )
    group.add_argument("--same-class", action="store_true", help="a report of another class is no report")
    group.add_argument("--distance", choices=MEASURES, metavar="MEASURE", help=", ".join(MEASURES))
    group.add_argument(
        "--affinity",
        choices=AFFINITIES,
        metavar="NAME",
        help="match by this (" + ", ".join(AFFINITIES) + ") in place of the paper's rule, highest 2-D and 3-D IoU",
    )
    group.add_argument("--match-threshold", type=float, metavar="X", help="least IoU, or largest distance")
    group.add_argument("--images", type=int, metavar="N", help="number of images, where a table names only some")
    group.add_argument(
        "--column", action="append", default=[], metavar="NAME=OWN", help="own name of a column; repeat"
    )
    group.add_argument(
        "--negative-reports",
        choices=("error", "zero", "left_out"),
        default="error",
        help="reported distances below 0 in a table (default: error)",
    )
    group.add_argument("--title", metavar="TEXT", help="title of the study")


def _add_policy_arguments(group: Any) -> None:
    group.add_argument(
        "--deceleration",
        type=float,
        action="append",
        default=[],
        metavar="M/S2",
        help=f"of braking; repeat (default: {DEFAULT_DECELERATION})",
    )
    group.add_argument("--reaction", type=float, default=0.1, metavar="S", help="before braking (default: 0.1)")
    group.add_argument(
        "--distances", default=DEFAULT_DISTANCES, metavar="RANGE", help=f"metres (default: {DEFAULT_DISTANCES})"
    )
    group.add_argument(
        "--speeds", default=DEFAULT_SPEEDS, metavar="RANGE UNIT", help=f"(default: '{DEFAULT_SPEEDS}')"
    )
    group.add_argument("--at", metavar="LIST UNIT", help="speeds of the grid at which intervals are shown")


def _add_estimate_arguments(group: Any) -> None:
    group.add_argument(
        "--bandwidth",
        default="cross_validated",
        metavar="RULE",
        help="kernel width: cross_validated, normal_reference, or metres (default: cross_validated)",
    )
    group.add_argument("--constant", type=float, metavar="C", help="of normal_reference (default: 1.06)")
    group.add_argument("--two-bandwidths", action="store_true", help="equation (1) to the letter; may leave [0, 1]")
    group.add_argument(
        "--confidence",
        "--level",
        dest="level",
        type=float,
        default=0.9,
        metavar="LEVEL",
        help="of intervals (default: 0.9)",
    )
    group.add_argument("--window", type=float, metavar="M", help="of exact intervals (default: 2)")
    group.add_argument("--subsamples", type=int, metavar="N", help="their number (default: square root of the pairs)")
    group.add_argument("--subsample-size", type=int, metavar="N", help="(default: square root of the pairs)")
    group.add_argument(
        "--bootstrap", type=int, metavar="N", help=f"replicates; 0 for none (default: {USUAL_BOOTSTRAP})"
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of everything that is drawn (default: 0)")


def _add_comparison_arguments(group: Any) -> None:
    group.add_argument("--alpha-loss", type=float, default=1.0, metavar="A", help="the light weight (default: 1)")
    group.add_argument("--beta-loss", type=float, default=10.0, metavar="B", help="the heavy weight (default: 10)")
    group.add_argument(
        "--heavy",
        choices=("below", "above"),
        default="below",
        help="beta weighs lambda below or above the oracle's; the paper prints below (default)",
    )
    group.add_argument("--weight", metavar="FILE", help="operational profile: distance_m, speed_UNIT, weight (.csv)")
    group.add_argument("--good-loss", type=float, metavar="X", help="a loss below is good (default: 0.05)")
    group.add_argument("--ranking-replicates", type=int, metavar="N", help="of the bootstrap (default: 200)")
    group.add_argument(
        "--held-out", type=float, default=0.5, metavar="P", help="share of images a combination is chosen on"
    )


def _add_loop_arguments(group: Any) -> None:
    group.add_argument(
        "--closed-loop", type=float, metavar="M", help="verify the loop from a first report at this distance"
    )
    group.add_argument(
        "--loop-speeds", metavar="RANGE UNIT", help="initial speeds (default: every fifth of the grid)"
    )
    group.add_argument("--period", type=float, metavar="S", help="between reports (default: about 0.1)")
    group.add_argument("--near", type=float, default=0.0, metavar="M", help="distance to keep (default: 0)")
    group.add_argument("--margin", type=float, default=0.0, metavar="M", help="added to S(v) (default: 0)")
    group.add_argument(
        "--braking",
        choices=("to_rest", "while_near"),
        default="to_rest",
        help="once begun to a stop, or asking each report anew (default: to_rest)",
    )
    group.add_argument("--bin", type=float, default=2.0, metavar="M", help="of the true distance (default: 2)")
    group.add_argument(
        "--drawn", choices=("error", "value"), default="error", help="what a report is drawn as (default: error)"
    )
    group.add_argument(
        "--empty-bins",
        choices=("error", "neighbour", "no_report"),
        default="error",
        help="bins without objects that are driven through (default: error)",
    )
    group.add_argument("--no-misses", action="store_true", help="leave objects without a report out of the loop")
    group.add_argument("--exact", action="store_true", help="check with rational numbers")


def _add_output_arguments(group: Any) -> None:
    group.add_argument("--json", action="store_true", help="print the result as JSON instead of tables")
    group.add_argument("-o", "--output", metavar="FILE", help="write the result as JSON")
    group.add_argument("--csv", metavar="FILE", help="write one row per detector, distance and speed")
    kinds = {
        "plot": "heat maps with the curve y = S(v)",
        "plot-intervals": "intervals against distance at the speeds shown",
        "plot-comparison": "who is better where, with p-values",
        "plot-ranking": "scores against beta / alpha",
        "plot-closed-loop": "one report against the closed loop",
    }
    for name, text in kinds.items():
        group.add_argument(f"--{name}", metavar="FILE", help=f"{text} (.png, .svg, .pdf)")


def _collision(arguments: argparse.Namespace) -> int:
    from verifier.cli.collision import collision_command

    return collision_command(arguments)
