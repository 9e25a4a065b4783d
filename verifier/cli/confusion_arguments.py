"""The arguments of `verify confusion`, and what they mean.

Only light modules are imported at the top, so that `verify --help` answers at once.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from verifier.base.errors import UsageError, shown

if TYPE_CHECKING:
    from verifier.perception.confusion.job import Filters
    from verifier.perception.confusion.rules import CountingRule
    from verifier.perception.detections import Reading
    from verifier.perception.matching import MatchingPolicy

FORMATS = ("kitti_object", "kitti_tracking", "nuscenes", "nuscenes_compact", "coco", "mot", "table")
MEASURES = ("euclidean_3d", "ground_plane", "forward", "given")
ABSURD = ("no-annotations", "nothing-matched")
AFFINITIES = ("iou_2d", "iou_bev", "iou_3d", "centre_2d", "centre_bev", "centre_3d")
CONVENTIONS = ("coco", "nuscenes", "kitti", "pascal_voc", "supervision")
LEFTOVERS = ("drop", "own_bin", "nearest_bin")
USUAL_THRESHOLD = {"centre_2d": 20.0, "centre_bev": 2.0, "centre_3d": 2.0}
USUAL_IOU = 0.5
DEFAULT_BINS = "0..100:10,inf"
GROUPS_HELP = (
    "drive of each {}: CSV with the columns {}, or a TOML or JSON table; drives then are the sequences "
    "of the matrices, the units that are independent"
)

DESCRIPTION = """\
Count what a detector reports against what is there, by distance, and write the confusion matrices.

  verify confusion --format kitti_tracking --annotations label_02 --detections results -o results.json
  verify confusion merge first.json second.json -o both.json
"""


def add_confusion_arguments(commands: Any) -> None:
    """Add the command `confusion` with its own command `merge`."""
    confusion = commands.add_parser(
        "confusion",
        help="confusion matrices by distance from detections and annotations",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    confusion.set_defaults(command=_count)
    _add_data_arguments(confusion.add_argument_group("data"))
    _add_filter_arguments(confusion.add_argument_group("filters (each is recorded with what it took out)"))
    _add_matching_arguments(confusion.add_argument_group("matching"))
    _add_counting_arguments(confusion.add_argument_group("counting"))
    _add_output_arguments(confusion.add_argument_group("output"))
    _add_stream_arguments(confusion.add_argument_group("large Parquet tables"))
    _add_merge(confusion.add_subparsers(title="commands on matrix files", metavar="merge"))


def _add_merge(commands: Any) -> None:
    merge = commands.add_parser(
        "merge",
        help="add up files that were counted in the same way",
        description="Add up confusion matrices that were counted in the same way.",
    )
    merge.set_defaults(command=_merge)
    merge.add_argument("files", nargs="+", metavar="FILE", help="confusion matrices (.json)")
    merge.add_argument("-o", "--output", metavar="FILE", help="write the sum")
    merge.add_argument(
        "--same-sequences",
        choices=("error", "add", "rename"),
        default="error",
        help="two files have a sequence of one name: refuse; other frames of it; other drives (default: error)",
    )
    merge.add_argument("--groups", metavar="FILE", help=GROUPS_HELP.format("sequence of the sum", "'sequence,drive'"))
    merge.add_argument("--json", action="store_true", help="print the document instead of a table")


def _add_data_arguments(group: Any) -> None:
    group.add_argument("--format", choices=FORMATS, metavar="NAME", help=", ".join(FORMATS))
    group.add_argument("--annotations", metavar="PATH", help="ground truth: file, folder or zip archive")
    group.add_argument("--detections", metavar="PATH", help="the detector's output: file, folder or zip archive")
    group.add_argument("--class-map", metavar="FILE", help="file of lines such as 'human.* -> ped'; * is any text")
    group.add_argument("--frames", metavar="FILE", help="lists every frame, also empty ones (kitti_tracking, table)")
    group.add_argument("--sequence", action="append", default=[], metavar="NAME", help="only this drive; repeat")
    group.add_argument(
        "--groups",
        metavar="FILE",
        help=GROUPS_HELP.format("sequence or frame", "'sequence,drive' or 'frame,drive'"),
    )
    group.add_argument(
        "--accept",
        action="append",
        default=[],
        choices=ABSURD,
        metavar="KIND",
        help="count data that make no sense: " + ", ".join(ABSURD) + "; repeat",
    )
    group.add_argument("--ignore", action="append", default=[], metavar="KIND", help="leave out faults of this kind")
    group.add_argument(
        "--dont-care", choices=("keep", "drop"), default="keep", help="regions not judged (default: keep)"
    )
    group.add_argument("--distance-field", metavar="NAME", help="field of the annotations with the distance (coco)")
    group.add_argument("--distance-file", metavar="FILE", help="table with frame, an id, and distance_m")
    group.add_argument("--distance-key", default="id", metavar="NAME", help="the id's column (default: id)")
    group.add_argument("--depth-folder", metavar="DIR", help="depth maps, FRAME.npy (m) or FRAME.png (1/256 m)")
    group.add_argument("--detected-class", metavar="NAME", help="class of all detections (mot)")
    group.add_argument(
        "--column", action="append", default=[], metavar="NAME=OWN", help="own name of a column; repeat"
    )


def _add_filter_arguments(group: Any) -> None:
    group.add_argument("--min-score", type=float, metavar="X", help="leave out detections below")
    group.add_argument("--range", metavar="LOW..HIGH", help="only distances in [LOW, HIGH) metres")
    group.add_argument("--field-of-view", type=float, metavar="DEG", help="only so far to each side of ahead")
    group.add_argument("--max", action="append", default=[], metavar="NAME=X", help="of annotations, as occluded=1")
    group.add_argument("--min", action="append", default=[], metavar="NAME=X", help="of annotations, as num_points=1")
    group.add_argument(
        "--filtered",
        choices=("ignore", "drop"),
        default="ignore",
        help="annotations that are filtered out become regions to ignore, or are gone (default: ignore)",
    )


def _add_matching_arguments(group: Any) -> None:
    group.add_argument(
        "--convention", choices=CONVENTIONS, metavar="NAME", help="a usual policy: " + ", ".join(CONVENTIONS)
    )
    group.add_argument("--affinity", choices=AFFINITIES, metavar="NAME", help=", ".join(AFFINITIES))
    group.add_argument("--match-threshold", type=float, metavar="X", help="least IoU, or largest distance")
    group.add_argument("--assignment", choices=("greedy", "optimal"), help="by falling score, or the best in total")
    classes = group.add_mutually_exclusive_group()
    classes.add_argument("--class-aware", action="store_true", default=None, help="only boxes of one class match")
    classes.add_argument(
        "--class-free",
        action="store_false",
        dest="class_aware",
        default=None,
        help="classes play no part (default, but not of every --convention)",
    )
    group.add_argument(
        "--ignore-overlap",
        metavar="X",
        help="a detection with this part of its rectangle in a region not judged is no false alarm; or 'none'",
    )
    leftovers = ", ".join(LEFTOVERS) + " (default: drop)"
    group.add_argument(
        "--unmatched",
        choices=LEFTOVERS,
        default="drop",
        metavar="POLICY",
        help="detections that match nothing: " + leftovers,
    )
    group.add_argument(
        "--duplicates",
        choices=LEFTOVERS,
        default="drop",
        metavar="POLICY",
        help="detections of an object that is matched already: " + leftovers,
    )


def _add_counting_arguments(group: Any) -> None:
    group.add_argument("--bins", default=DEFAULT_BINS, metavar="EDGES", help=f"metres (default: {DEFAULT_BINS})")
    group.add_argument(
        "--by",
        action="append",
        default=[],
        metavar="NAME=BINS",
        help="a further variable: occluded=0,1,2 or speed=edges:0,2,inf or sequence=night:01*|02*,day:*; repeat",
    )
    group.add_argument("--distance", choices=MEASURES, metavar="MEASURE", help=", ".join(MEASURES))
    group.add_argument(
        "--labelling",
        choices=("class", "proposition", "group"),
        default="class",
        help="count objects, frames by the set of classes present, or groups of close objects (default: class)",
    )
    group.add_argument("--classes", metavar="NAME,NAME", help="columns, in this order (default: all)")
    group.add_argument("--gap", type=float, metavar="M", help="objects of a class this near act as one (group)")
    group.add_argument("--score-thresholds", metavar="X,X,...", help="a family of matrices in one pass")
    group.add_argument(
        "--outside", choices=("error", "drop"), default="error", help="objects that lie in no bin (default: error)"
    )


def _add_output_arguments(group: Any) -> None:
    group.add_argument("-o", "--output", metavar="FILE", help="write the matrices (.json)")
    group.add_argument("--title", default="", metavar="TEXT", help="title of the matrices")
    group.add_argument("--json", action="store_true", help="print the document instead of tables")
    group.add_argument("--record", metavar="FILE", help="what became of each object (.csv, .parquet)")
    group.add_argument("--plot", metavar="FILE", help="recall against distance (.png, .svg, .pdf)")
    group.add_argument("--matching-audit", action="store_true", help="the same data under every sensible policy")
    group.add_argument("--spec", metavar="SPEC", help="with the audit: what verified probabilities do (.ltl)")
    group.add_argument("--empty-columns", default="error", metavar="POLICY", help="with --spec, as of verify run")


def _add_stream_arguments(group: Any) -> None:
    group.add_argument("--stream", action="store_true", help="count chunk by chunk in little memory (table, Parquet)")
    group.add_argument("--checkpoint", metavar="FILE", help="go on from here after an interruption")
    group.add_argument(
        "--chunk-rows", type=int, default=200_000, metavar="N", help="rows in memory (default: 200000)"
    )


def _count(arguments: argparse.Namespace) -> int:
    from verifier.cli.confusion import count_command

    return count_command(arguments)


def _merge(arguments: argparse.Namespace) -> int:
    from verifier.cli.confusion import merge_command

    return merge_command(arguments)


def reading(arguments: argparse.Namespace) -> Reading:
    """How to read, as the arguments say."""
    from verifier.perception.detections import Reading, read_class_map

    return Reading(
        None if arguments.class_map is None else read_class_map(arguments.class_map),
        tuple(arguments.ignore),
        arguments.dont_care,
        tuple(arguments.sequence) or None,
    )


def reader_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of the format's reader that were given."""
    options = {name: getattr(arguments, name) for name in ("frames", "distance_field", "detected_class")}
    if arguments.column:
        options["columns"] = dict(pair(text, "--column") for text in arguments.column)
    return {name: value for name, value in options.items() if value is not None}


def filters(arguments: argparse.Namespace, measure: str) -> Filters:
    """The filters that the arguments ask for."""
    from verifier.perception.confusion.job import Filters

    bounds: dict[str, tuple[float, float]] = {}
    for name, value in (_bound(text, "--min") for text in arguments.min):
        bounds[name] = (value, math.inf)
    for name, value in (_bound(text, "--max") for text in arguments.max):
        bounds[name] = (bounds.get(name, (-math.inf, 0))[0], value)
    limits = tuple((name, low, high) for name, (low, high) in bounds.items())
    reach = None
    if arguments.range is not None:
        low_text, dots, high_text = arguments.range.partition("..")
        if not dots:
            raise UsageError(f"--range: expected LOW..HIGH in metres, got {shown(arguments.range)}")
        reach = (_number(low_text, "--range"), _number(high_text, "--range"))
    return Filters(arguments.min_score, reach, measure, arguments.field_of_view, limits, arguments.filtered)


def matching_policy(arguments: argparse.Namespace, usual: MatchingPolicy) -> MatchingPolicy:
    """The policy that the arguments name, starting from a convention or from what is usual for the data."""
    from verifier.perception.matching import convention

    policy = usual if arguments.convention is None else convention(arguments.convention)
    changes: dict[str, Any] = {}
    if arguments.affinity is not None:
        changes["affinity"] = arguments.affinity
        if arguments.affinity != policy.affinity:
            changes["threshold"] = USUAL_THRESHOLD.get(arguments.affinity, USUAL_IOU)
    if arguments.match_threshold is not None:
        changes["threshold"] = arguments.match_threshold
    if arguments.assignment is not None:
        changes["assignment"] = arguments.assignment
    if arguments.class_aware is not None:
        changes["class_aware"] = arguments.class_aware
    if arguments.ignore_overlap is not None:
        changes["ignore_overlap"] = _part(arguments.ignore_overlap)
    try:
        return replace(policy, **changes)
    except ValueError as error:
        raise UsageError(f"matching: {error}") from None


def counting_rule(arguments: argparse.Namespace, classes: tuple[str, ...], measure: str) -> CountingRule:
    """The rule that the arguments name, for data with these classes."""
    from verifier.perception.confusion.bins import Bins, parse_edges, parse_variable
    from verifier.perception.confusion.rules import CountingRule

    named = classes
    if arguments.classes is not None:
        named = tuple(each.strip() for each in arguments.classes.split(","))
    thresholds = None
    if arguments.score_thresholds is not None:
        listed = arguments.score_thresholds.split(",")
        thresholds = tuple(_number(each, "--score-thresholds") for each in listed)
        if arguments.min_score is not None and arguments.min_score > thresholds[0]:
            raise UsageError("--min-score would leave out detections that the lowest of --score-thresholds counts")
    return CountingRule(
        arguments.labelling,
        named,
        Bins(parse_edges(arguments.bins), tuple(parse_variable(text) for text in arguments.by)),
        measure,
        arguments.unmatched,
        arguments.duplicates,
        arguments.outside,
        arguments.gap,
        thresholds,
    )


def _part(text: str) -> float | None:
    return None if text == "none" else _number(text, "--ignore-overlap")


def pair(text: str, option: str) -> tuple[str, str]:
    """`NAME=VALUE` in two."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name or not value:
        raise UsageError(f"{option}: expected NAME=VALUE, got {shown(text)}")
    return name, value


def _bound(text: str, option: str) -> tuple[str, float]:
    name, value = pair(text, option)
    return name, _number(value, option)


def _number(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise UsageError(f"{option}: expected a number, got {shown(text)}")
    return value
