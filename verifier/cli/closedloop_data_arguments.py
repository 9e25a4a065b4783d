"""The arguments of `verify closed-loop` that say where the logs come from. Only light modules are imported."""

from __future__ import annotations

import argparse
from typing import Any

from verifier.base.errors import UsageError
from verifier.cli.closedloop_numbers import above_0, angle_deg, from_0, iou, metres, metres_from_0, whole

FORMATS = ("tables", "nuscenes", "kitti_tracking", "fieldsafe")
SELF, DRAWN = "self", "drawn"
BOXES = ("nuscenes", "kitti_tracking")
FOREIGN = ("nuscenes", "kitti_tracking", "fieldsafe")
POSED = ("tables", "nuscenes", "fieldsafe")
BELONGS = {
    "detections": BOXES,
    "people": BOXES,
    "ignore": BOXES,
    "frames": ("kitti_tracking",),
    "speed": ("kitti_tracking",),
    "sequence": ("kitti_tracking",),
    "positions": ("fieldsafe",),
    "matrix": ("fieldsafe",),
    "every": ("fieldsafe",),
    "cm": ("fieldsafe",),
    "class": ("fieldsafe",),
    "position_error": ("fieldsafe",),
    "empty_columns": ("fieldsafe",),
    "window": FOREIGN,
    "field_of_view": FOREIGN,
    "range": FOREIGN,
    "longest_gap": POSED,
    "greatest_speed": POSED,
}
"""Option -> the formats that it belongs to."""
NEEDS = {
    "tables": (),
    "nuscenes": ("detections",),
    "kitti_tracking": ("detections", "frames", "speed"),
    "fieldsafe": ("positions", "matrix", "cm"),
}
"""Format -> the options without which its logs cannot be made."""


def add_data_arguments(parser: Any) -> None:
    """Add LOGS, `--format` and what belongs to the formats."""
    group = parser.add_argument_group("data")
    group.add_argument("logs", metavar="LOGS", help="folder of tables, or the ground truth of another --format")
    group.add_argument(
        "--format", choices=FORMATS, default="tables", metavar="NAME", help=", ".join(FORMATS) + " (default: tables)"
    )
    group.add_argument(
        "--validation",
        metavar="LOGS",
        help="folder of tables whose false positives standardize the scores; 'self' for the evaluated logs; "
        "'drawn' (fieldsafe) for detections drawn anew on the same drive",
    )
    group.add_argument("--control-radius", type=metres, metavar="M", help="that the controller keeps; required")
    group.add_argument(
        "--safety-radius", type=metres, metavar="M", help="within it the vehicle must not move; less; required"
    )
    group.add_argument(
        "--path-extension", type=metres_from_0, default=10.0, metavar="M", help="straight after the end (default: 10)"
    )
    group.add_argument(
        "--match-distance",
        type=metres,
        metavar="M",
        help="a detection so near a person on the ground is no false positive (default: rectangles, --match-iou)",
    )
    group.add_argument("--match-iou", type=iou, metavar="X", help="of rectangles in the image (default: 0.5)")
    group.add_argument("--longest-gap", type=above_0, metavar="S", help="accepted between two images (default: 2)")
    group.add_argument(
        "--greatest-speed", type=above_0, metavar="M/S", help="accepted between two positions (default: 70)"
    )
    group.add_argument("--write-logs", metavar="FOLDER", help="write the logs as a folder of tables")
    _add_foreign(parser.add_argument_group("data of other formats: one long drive, cut and sorted by the path"))


def _add_foreign(group: Any) -> None:
    from verifier.cli.arguments import EMPTY_COLUMNS

    group.add_argument("--window", type=above_0, metavar="S", help="cut drives into pieces at least so long")
    group.add_argument(
        "--field-of-view",
        type=angle_deg,
        metavar="DEG",
        help="only so far to each side of ahead (default: all; fieldsafe: 45)",
    )
    group.add_argument("--range", type=metres, metavar="M", help="look only so far (default: any)")
    group.add_argument(
        "--detections",
        action="append",
        metavar="NAME=PATH",
        help="nuscenes, kitti_tracking: what a detector reports; NAME is DETECTOR or DETECTOR@CONDITION; repeat",
    )
    group.add_argument("--people", action="append", metavar="CLASS", help="class of people, as 'pedestrian*'; repeat")
    group.add_argument("--ignore", action="append", metavar="KIND", help="leave out faults of this kind; repeat")
    group.add_argument("--frames", metavar="FILE", help="kitti_tracking: how many frames each sequence has")
    group.add_argument("--speed", type=from_0, metavar="M/S", help="kitti_tracking: that is assumed, straight ahead")
    group.add_argument("--sequence", action="append", metavar="NAME", help="kitti_tracking: only this one; repeat")
    group.add_argument("--positions", metavar="FILE", help="fieldsafe: the tractor's GPS coordinates")
    group.add_argument("--matrix", metavar="FILE", help="fieldsafe: utm2PixelsTransformMatrix.csv")
    group.add_argument("--every", type=whole(1), metavar="N", help="fieldsafe: use every N-th frame (default: 5)")
    group.add_argument(
        "--cm",
        action="append",
        metavar="[NAME=]FILE",
        help="fieldsafe, which has no detections: they are drawn from this file of verify confusion; repeat",
    )
    group.add_argument("--class", metavar="NAME", help="class of people in the files of --cm, if they have several")
    group.add_argument(
        "--position-error", type=metres_from_0, metavar="M", help="of drawn detections, along x and y (default: 0)"
    )
    group.add_argument(
        "--empty-columns",
        choices=EMPTY_COLUMNS,
        metavar="POLICY",
        help="fieldsafe: bins of --cm without items: " + ", ".join(EMPTY_COLUMNS) + " (default: error)",
    )


def check_data_arguments(arguments: argparse.Namespace) -> None:
    """Refuse options that do not belong to the format, and what is missing; UsageError."""
    chosen = arguments.format
    for name, formats in BELONGS.items():
        if getattr(arguments, name) is not None and chosen not in formats:
            option = name.replace("_", "-")
            raise UsageError(f"--{option} belongs to --format {' or '.join(formats)}, not to {chosen}")
    for name in NEEDS[chosen]:
        if getattr(arguments, name) is None:
            raise UsageError(f"--format {chosen} needs --{name}")
    for name in ("control", "safety"):
        if getattr(arguments, f"{name}_radius") is None:
            raise UsageError(f"name the {name} radius: --{name}-radius M (there is no usual one)")
    if arguments.validation is None:
        raise UsageError(
            "name the logs whose false positives standardize the scores: --validation LOGS, or --validation self"
        )
    if arguments.validation == DRAWN and chosen != "fieldsafe":
        raise UsageError("--validation drawn belongs to --format fieldsafe, whose detections are drawn")
