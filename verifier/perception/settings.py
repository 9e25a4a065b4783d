"""The words for what can be chosen of detections, matching and counting, and every choice of `verify confusion`.

Only light modules are imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal, TypeAlias

from verifier.base.options import Option, Scheduler, pair, reads, writes

Format: TypeAlias = Literal[
    "auto",
    "kitti_object",
    "kitti_tracking",
    "nuscenes",
    "nuscenes_compact",
    "coco",
    "fiftyone",
    "mot",
    "yolo",
    "voc",
    "argoverse",
    "waymo",
    "bdd100k",
    "openlabel",
    "cvat",
    "table",
]
"""Formats of detections and annotations."""
Measure: TypeAlias = Literal["euclidean_3d", "ground_plane", "forward", "given"]
"""How the distance of an object is measured."""
DontCare: TypeAlias = Literal["keep", "drop"]
"""What becomes of regions that are not judged."""
DataSetFile: TypeAlias = Annotated[str | None, reads("what is stated of the test data (.toml)")]
FrameNames: TypeAlias = Literal["name", "stem"]
"""By what frames of annotations and detections are the same."""
EgoOrCity: TypeAlias = Literal["ego", "city"]
"""The coordinates that boxes of Argoverse stand in."""
Removed: TypeAlias = Literal["ignore", "drop"]
"""What filtered annotations become: regions to ignore, or nothing."""
Affinity: TypeAlias = Literal["iou_2d", "iou_bev", "iou_3d", "centre_2d", "centre_bev", "centre_3d"]
"""How near a detection is to an object."""
Assignment: TypeAlias = Literal["greedy", "optimal"]
"""How matches are chosen: one after the other by falling score, or the best in total."""
Convention: TypeAlias = Literal["coco", "nuscenes", "kitti", "pascal_voc", "supervision"]
"""Published programs whose matching can be had by name."""
Labelling: TypeAlias = Literal["class", "proposition", "group"]
"""What one item of a matrix is: an object, a frame, a group of objects."""
Leftover: TypeAlias = Literal["drop", "own_bin", "nearest_bin"]
"""Where a detection is counted that matches nothing, or what is matched already."""
FalsePositiveCounting: TypeAlias = Literal["dropped", "counted"]
"""What a record of counts says of detections that match nothing."""
Outside: TypeAlias = Literal["error", "drop"]
"""What becomes of objects that lie in no bin."""
Absurd: TypeAlias = Literal["no-annotations", "nothing-matched", "implausible-depth"]
"""What makes a result absurd: `verify confusion` refuses it unless told to accept it."""
SameSequences: TypeAlias = Literal["error", "add", "rename"]
"""What two files mean that have a sequence of one name."""
Gaps: TypeAlias = Literal["break", "hold", "miss"]
"""What frames of a track without an annotation do to the memory of the detector."""
Units: TypeAlias = Literal["track", "frame"]
"""What bounds take as independent of each other instead of drives."""
EmptyColumns: TypeAlias = Literal["error", "prior", "neighbour", "pool", "miss"]
"""Rates of a column without items, see `verifier.perception.confusion.EMPTY_COLUMN_POLICIES`."""
EmptyContexts: TypeAlias = Literal["backoff", "pool", "prior", "error"]
"""Rates of a context without items, see `verifier.perception.confusion.matrices.EMPTY_CONTEXT_POLICIES`."""

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
"""Of files that are images."""
GROUPS_HELP = (
    "drive of each {}: CSV with the columns {}; drives then are the sequences of the matrices, the units that are "
    "independent"
)


GapsOfTracks = Annotated[
    Gaps, Option("frames of a track without an annotation: begin again, keep the context, or count a miss")
]
OwnColumns = Annotated[
    Mapping[str, str],
    Option(
        "rename a column: NAME is the expected name, OWN the name in the file (repeatable)",
        metavar="NAME=OWN",
        parse=partial(pair, "--column", "NAME=VALUE"),
    ),
]


@dataclass(frozen=True, kw_only=True)
class CountSettings:
    """Every choice of `verify confusion`; None of what the data or the format decide."""

    format: Annotated[Format | None, Option("{choices}", metavar="NAME", group="data")] = None
    annotations: Annotated[str, reads("ground truth: file, folder or zip archive", metavar="PATH")] = ""
    detections: Annotated[str, reads("the detector's output: file, folder or zip archive", metavar="PATH")] = ""
    class_map: Annotated[str | None, reads("file of lines such as 'human.* -> ped'; * is any text")] = None
    frames: Annotated[str | None, reads("lists every frame, also empty ones (kitti_tracking, table)")] = None
    sequence: Annotated[tuple[str, ...], Option("only this sequence (repeatable)", metavar="NAME")] = ()
    match_frames: Annotated[
        FrameNames,
        Option(
            "frames of the detections by name, or by its stem: without folder, suffix, leading zeros (FrameNames)"
        ),
    ] = "name"
    groups: Annotated[
        str | None, reads(GROUPS_HELP.format("sequence or frame", "'sequence,drive' or 'frame,drive'"))
    ] = None
    accept: Annotated[
        tuple[Absurd, ...], Option("count implausible data: {choices} (repeatable)", metavar="KIND")
    ] = ()
    ignore: Annotated[tuple[str, ...], Option("skip input errors of this kind (repeatable)", metavar="KIND")] = ()
    dont_care: Annotated[DontCare, Option("regions that are not judged (DontCare)")] = "keep"
    distance_field: Annotated[
        str | None, Option("field of the annotations with the distance (coco, fiftyone)", metavar="NAME")
    ] = None
    detection_distance_field: Annotated[
        str | None, Option("field of the results with the distance (coco, fiftyone, yolo)", metavar="NAME")
    ] = None
    distance_file: Annotated[str | None, reads("table with frame, an id, and distance_m")] = None
    distance_key: Annotated[str, Option("the id's column", metavar="NAME", of="distance-file")] = "id"
    depth_folder: Annotated[str | None, reads("depth maps, FRAME.npy (m) or FRAME.png (1/256 m)", metavar="DIR")] = (
        None
    )
    depth_scale: Annotated[
        float | None, Option("what a metre is in PNG depth maps: 256, or 1000 for millimetres", metavar="N")
    ] = None
    calibration: Annotated[
        str | None,
        reads("cameras: image rectangles get the distance of their foot on the ground (KITTI, nuScenes, table)"),
    ] = None
    detected_class: Annotated[str | None, Option("class of all detections (mot)", metavar="NAME")] = None
    image_size: Annotated[
        str | None, Option("of all images, where these are not beside the labels (yolo)", metavar="WxH")
    ] = None
    first_category: Annotated[
        int | None, Option("number of the first class in predictions.json (yolo)", metavar="0|1")
    ] = None
    detection_frame: Annotated[
        EgoOrCity | None, Option("coordinates of the detections (argoverse)", metavar="ego|city")
    ] = None
    column: OwnColumns = field(default_factory=dict)

    min_score: Annotated[
        float | None,
        Option("leave out detections below", metavar="X", group="filters (each is recorded with what it took out)"),
    ] = None
    range: Annotated[str | None, Option("only distances in [LOW, HIGH) metres", metavar="LOW..HIGH")] = None
    field_of_view: Annotated[
        float | None, Option("half-angle of the field of view, degrees from straight ahead", metavar="DEG")
    ] = None
    max: Annotated[
        tuple[str, ...], Option("largest value of a field of annotations, for example occluded=1", metavar="NAME=X")
    ] = ()
    min: Annotated[
        tuple[str, ...],
        Option("smallest value of a field of annotations, for example num_points=1", metavar="NAME=X"),
    ] = ()
    filtered: Annotated[Removed, Option("filtered annotations: regions to ignore, or removed")] = "ignore"

    convention: Annotated[
        Convention | None,
        Option("matching policy of a published program: {choices}", metavar="NAME", group="matching"),
    ] = None
    affinity: Annotated[Affinity | None, Option("{choices}", metavar="NAME")] = None
    match_threshold: Annotated[float | None, Option("least IoU, or largest distance", metavar="X")] = None
    assignment: Annotated[Assignment | None, Option("by falling score, or the best in total")] = None
    class_aware: Annotated[
        bool | None,
        Option(
            "only boxes of one class match",
            opposite=("class-agnostic", "matching ignores the class (default, but not of every --convention)"),
        ),
    ] = None
    ignore_overlap: Annotated[
        str | None,
        Option(
            "a detection with this part of its rectangle in a region not judged is no false positive; or 'none'",
            metavar="X",
        ),
    ] = None
    unmatched: Annotated[Leftover, Option("unmatched detections: {choices}", metavar="POLICY")] = "drop"
    duplicates: Annotated[
        Leftover, Option("duplicate detections of a matched object: {choices}", metavar="POLICY")
    ] = "drop"

    bins: Annotated[str, Option("edges of the distance bins, metres", metavar="EDGES", group="counting")] = (
        "0..100:10,inf"
    )
    by: Annotated[
        tuple[str, ...],
        Option(
            "a further variable: occluded=0,1,2 or speed=edges:0,2,inf or sequence=night:01*|02*,day:*; repeat",
            metavar="NAME=BINS",
        ),
    ] = ()
    distance: Annotated[Measure | None, Option("{choices}", metavar="MEASURE")] = None
    labelling: Annotated[
        Labelling, Option("count objects, frames by the set of classes present, or groups of close objects")
    ] = "class"
    classes: Annotated[str | None, Option("columns, in this order (default: all)", metavar="NAME,NAME")] = None
    gap: Annotated[float | None, Option("objects of a class this near act as one (group)", metavar="M")] = None
    score_thresholds: Annotated[str | None, Option("a family of matrices in one pass", metavar="X,X,...")] = None
    outside: Annotated[Outside, Option("objects outside all bins")] = "error"
    localisation: Annotated[
        bool, Option("count also the distance bins reported of objects, for planners that ask within")
    ] = False
    average_precision: Annotated[
        bool, Option("also average precision (AP) of each class under this matching, with intervals, by pycocotools")
    ] = False
    memory: Annotated[
        str, Option("count also by context: what went before on the track, run:L or last:K", metavar="CONTEXTS")
    ] = "none"
    gaps: GapsOfTracks = "break"
    period: Annotated[float | None, Option("time from frame to frame", metavar="S")] = None
    units: Annotated[
        Units | None, Option("with --memory: count by these instead of by drive, for --bounds units:U")
    ] = None

    output: Annotated[str | None, writes("write the matrices (.json)", also=("-o",), group="output")] = None
    title: Annotated[str, Option("title of the matrices", metavar="TEXT")] = ""
    data_set: DataSetFile = None
    json: Annotated[bool, Option("print the document instead of tables", role="output")] = False
    record: Annotated[str | None, writes("write the outcome of each object (.csv, .parquet)")] = None
    plot: Annotated[str | None, writes("recall against distance (.png, .svg, .pdf)")] = None
    plot_runs: Annotated[
        str | None, writes("with --memory run:L: wrong reports by the length of the current run (.png, .svg, .pdf)")
    ] = None
    matching_audit: Annotated[bool, Option("recount under every built-in matching policy")] = False
    spec: Annotated[
        str | None,
        reads("with the audit: effect on the verified probabilities (.ltl)", metavar="SPEC", of="matching-audit"),
    ] = None
    empty_columns: Annotated[
        EmptyColumns,
        Option("with --spec: rates of a column without items, as for verify run", metavar="POLICY", of="spec"),
    ] = "error"

    stream: Annotated[
        bool, Option("count chunk by chunk in little memory (table, Parquet)", group="large Parquet tables")
    ] = False
    scheduler: Scheduler = None
    shard: Annotated[
        str | None,
        Option("count the I-th of N shards of whole sequences, to be merged", metavar="I/N", role="output"),
    ] = None
    checkpoint: Annotated[str | None, writes("continue from this file after an interruption")] = None
    chunk_rows: Annotated[
        int,
        Option("rows in memory, and least rows of a partition", metavar="N", of="stream checkpoint scheduler shard"),
    ] = 200_000


@dataclass(frozen=True, kw_only=True)
class MergeSettings:
    """Every choice of `verify confusion merge`."""

    files: Annotated[tuple[str, ...], reads("confusion matrices (.json)", positional=True)]
    output: Annotated[str | None, writes("write the sum", also=("-o",))] = None
    same_sequences: Annotated[
        SameSequences, Option("two files have a sequence of one name: refuse; other frames of it; other drives")
    ] = "error"
    groups: Annotated[str | None, reads(GROUPS_HELP.format("sequence of the sum", "'sequence,drive'"))] = None
    json: Annotated[bool, Option("print the document instead of a table", role="output")] = False


@dataclass(frozen=True, kw_only=True)
class UsedSettings:
    """Every choice of `verify confusion used`."""

    matrices: Annotated[str, reads("confusion matrices (.json)", metavar="MATRICES", positional=True)]
    results: Annotated[
        tuple[str, ...], reads("results of verify run with these matrices (.json)", metavar="RESULT", positional=True)
    ] = ()
    output: Annotated[str, writes("write the matrices with the record of these verdicts", also=("-o",))]
    data_set: DataSetFile = None


@dataclass(frozen=True, kw_only=True)
class ReplaySettings:
    """Every choice of `verify confusion replay`."""

    record: Annotated[str, reads("outcome of each object, of verify confusion --record", positional=True)]
    true_class: Annotated[str, Option("class of the objects that are followed", metavar="CLASS")]
    range: Annotated[str, Option("windows lie in these metres throughout; its ends are edges", metavar="LOW..HIGH")]
    frames: Annotated[int, Option("successive frames of a window; with --splits, the most", metavar="N")]
    confirm: Annotated[
        str, Option("confirmed by M right reports among N; with --splits several, with commas", metavar="M/N,...")
    ] = "1/1"
    bins: Annotated[str, Option("edges of the distance bins, metres", metavar="EDGES")] = "0..100:10,inf"
    memory: Annotated[
        str | None,
        Option(
            "contexts that predict, run:L or last:K or none, with commas; with --splits also auto, and any (bounds "
            "whatever the dependence; default: none,run:1,run:5, with --splits all of these)",
            metavar="CONTEXTS,...",
        ),
    ] = None
    gaps: GapsOfTracks = "break"
    confidence: Annotated[float, Option("level of the interval", metavar="C")] = 0.95
    splits: Annotated[
        int | None,
        Option("fit on each half of the drives and predict the other, for so many random halvings", metavar="N"),
    ] = None
    draws: Annotated[int, Option("with --splits: draws of rates behind each predicted interval", metavar="N")] = 100
    seed: Annotated[int, Option("with --splits: random seed", metavar="S")] = 0
    into: Annotated[
        str | None,
        reads("add what was seen to these matrices: verdicts on runs do not rest on contexts that it contradicts"),
    ] = None
    json: Annotated[bool, Option("print the numbers as JSON", role="output")] = False
