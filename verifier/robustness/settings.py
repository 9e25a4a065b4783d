"""The words for what can be chosen of mutations, and every choice of `verify mutate`, `campaign`,
`adr`, `predict` and `assess`.

Only light modules are imported.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, get_args

from verifier.base.options import (
    WHO,
    Option,
    PrintedTables,
    Scheduler,
    Written,
    above_0,
    limited,
    reads,
    share,
    whole,
    writes,
)
from verifier.perception.confusion.drives import GroupedBy
from verifier.perception.settings import IMAGE_SUFFIXES, Format

Densifying: TypeAlias = Literal["nearest", "linear"]
"""How unknown depths are filled."""
Pixels: TypeAlias = Literal["uint8", "float32"]
"""What an image is handed on as."""
PublishedList: TypeAlias = Literal["published-2021", "published-2018", "published-2018-text"]
"""Lists of the mutations of a paper."""


Refine = Annotated[
    int,
    Option(
        "levels to add at most, halfway between those where a criterion breaks, until the images tell no more",
        metavar="N",
        parse=whole(0, 1000),
    ),
]


@dataclass(frozen=True, kw_only=True)
class MutateSettings:
    """Every choice of `verify mutate`."""

    images: Annotated[
        tuple[str, ...],
        reads(
            f"files, or folders with all {', '.join(IMAGE_SUFFIXES)} files below them",
            metavar="IMAGES",
            positional=True,
        ),
    ] = ()
    mutation: Annotated[
        tuple[str, ...],
        Option("mutation, for example haze:visibility_m=97.8 (repeatable)", metavar="MUTATION", group="mutations"),
    ] = ()
    sweep: Annotated[
        tuple[str, ...],
        Option(
            "several values of its parameters, as sigma_px=1,2,3 or 0.5..3/6 or 50..1000/10/log; repeat",
            metavar="MUTATION",
        ),
    ] = ()
    preset: Annotated[
        tuple[str, ...],
        Option(
            f"all mutations of a paper: {', '.join(get_args(PublishedList))}; :mild or :severe behind the first; "
            "repeat",
            metavar="NAME",
        ),
    ] = ()
    show: Annotated[bool, Option("list the chosen mutations, or all known ones, and stop", role="output")] = False
    seed: Annotated[int, Option("random seed", metavar="N")] = 0

    depth: Annotated[
        str | None,
        reads(
            "depth maps NAME.npy or NAME.pfm (metres) or NAME.png (16 bit)",
            metavar="FOLDER",
            group="what belongs to the images",
        ),
    ] = None
    depth_constant: Annotated[float | None, Option("one depth for every pixel instead", metavar="METRES")] = None
    depth_scale: Annotated[
        float | None, Option("units of a 16-bit depth map in a metre (default: 256)", metavar="X")
    ] = None
    depth_inverse: Annotated[
        float | None,
        Option(
            "the maps hold disparities or inverse depths d, and the depth is X / d metres (stereo: X is the focal "
            "length in pixels times the baseline)",
            metavar="X",
            parse=above_0,
        ),
    ] = None
    sky: Annotated[
        str | None,
        Option(
            "what of unknown depth is infinitely far away: mask:FOLDER (NAME.png, not 0 is sky), or horizon:SHARE of "
            "the height from above, where nothing is known in the column",
            metavar="POLICY",
        ),
    ] = None
    densify: Annotated[
        Densifying | None, Option("fill unknown depths, 0 in the map: {choices} (default: refuse such maps)")
    ] = None
    annotations: Annotated[
        str | None,
        reads(
            "annotations whose boxes move along: COCO .json, a folder of KITTI labels, or a table; written as COCO "
            "beside the images of each mutation",
            metavar="PATH",
        ),
    ] = None

    output: Annotated[
        str | None, writes("where to write; made if it is not there", also=("-o",), metavar="FOLDER", group="output")
    ] = None
    scheduler: Annotated[str | None, Option(WHO, also=("--jobs",), metavar="N|ADDRESS", role="output")] = None
    json: Annotated[bool, Option("print what was done as JSON instead of a table", role="output")] = False


@dataclass(frozen=True, kw_only=True)
class AssessSettings:
    """Every choice of `verify assess` beside those that the assessment file makes."""

    file: Annotated[str, reads("assessment file (.toml)", metavar="ASSESSMENT", positional=True)]
    system: Annotated[tuple[str, ...], Option("only this system of the file; repeat for more", metavar="NAME")] = ()
    make: Annotated[
        str | None,
        reads(
            "make the follow-up images, run the detector on source and target, and make the levels of a degradation",
            metavar="FOLDER",
            group="making the data",
        ),
    ] = None
    cache: Annotated[str | None, writes("keep detections here, for the next run", metavar="FOLDER")] = None
    refine: Refine = 0
    scheduler: Scheduler = None
    json: PrintedTables = False
    output: Written = None
    markdown: Annotated[str | None, writes("write the report in Markdown")] = None
    plot: Annotated[str | None, writes("change of performance against distance, and margins (.png, .svg, .pdf)")] = (
        None
    )


@dataclass(frozen=True, kw_only=True)
class RatesSettings:
    """Every choice of `verify adr`."""

    format: Annotated[Format, Option("{choices}", metavar="NAME", group="data")] = "auto"
    annotations: Annotated[
        tuple[str, ...],
        Option(
            "ground truth of all conditions, or of one whose mutation moves objects (repeatable)",
            metavar="[CONDITION=]PATH",
            role="named_file",
        ),
    ] = ()
    detections: Annotated[
        tuple[str, ...],
        Option(
            "what a detector reports; NAME is DETECTOR or DETECTOR@CONDITION (repeatable)",
            metavar="NAME=PATH",
            role="named_file",
        ),
    ] = ()
    class_map: Annotated[str | None, reads("file of lines such as 'human.* -> ped'; * is any text")] = None
    frames: Annotated[str | None, reads("lists every frame, also empty ones (kitti_tracking, table)")] = None
    ignore: Annotated[tuple[str, ...], Option("skip input errors of this kind (repeatable)", metavar="KIND")] = ()

    level: Annotated[
        tuple[float, ...],
        Option(
            "false positives per baseline image at which thresholds are chosen (repeatable; default: nine from "
            "0.001 to 0.1)",
            metavar="X",
            parse=above_0,
            group="rates and intervals",
        ),
    ] = ()
    iou: Annotated[
        float,
        Option(
            "IoU from which a detection of the same class finds an object",
            metavar="X",
            parse=limited(float, lambda value: 0 < value <= 1, "a number above 0, at most 1"),
        ),
    ] = 0.5
    draws: Annotated[int, Option("of the bootstrap (0: no intervals)", metavar="N", parse=whole(0, 10**6))] = 1000
    seed: Annotated[int, Option("random seed", metavar="N", parse=whole(0))] = 0
    confidence: Annotated[float, Option("level of the intervals", metavar="LEVEL", parse=share)] = 0.95
    unit: Annotated[GroupedBy, Option("what is drawn: {choices}")] = "frame"

    json: PrintedTables = False
    output: Written = None
    csv: Annotated[str | None, writes("write one row per condition and detector")] = None
    objects: Annotated[
        str | None, writes("write the false-positive rate at which each object is found, before and after (CSV)")
    ] = None
    plot: Annotated[str | None, writes("draw miss rate against false positives per image (.png, .svg, .pdf)")] = None
    plot_table: Annotated[str | None, writes("draw the table, coloured by normalised ADR")] = None
    plot_objects: Annotated[str | None, writes("draw the rates of --objects, before against after")] = None


@dataclass(frozen=True, kw_only=True)
class PredictSettings:
    """Every choice of `verify predict`."""

    rates: Annotated[
        str,
        reads(
            "result of verify adr (.json), or a table (.csv): condition, and a column per detector; one row is the "
            "baseline, an empty cell is predicted",
            metavar="RATES",
            positional=True,
        ),
    ]
    pair: Annotated[
        tuple[str, ...],
        Option(
            "conditions that begin with TARGET are predicted from those that begin with SIMPLE (repeatable; default: "
            "defocus=gaussian_blur and haze=alpha_blend)",
            metavar="TARGET=SIMPLE",
        ),
    ] = ()
    baseline: Annotated[
        tuple[str, ...],
        Option("another baseline ADR, where the one in the table is known to be wrong", metavar="DETECTOR=ADR"),
    ] = ()
    identity: Annotated[
        bool, Option("use the baseline as a feature (the default)", opposite=("no-identity", "do not"))
    ] = True
    confidence: Annotated[float, Option("level of the prediction intervals", metavar="LEVEL", parse=share)] = 0.8

    json: PrintedTables = False
    output: Written = None
    csv: Annotated[str | None, writes("write one row per prediction")] = None
    plot: Annotated[str | None, writes("draw predicted against observed (.png, .svg, .pdf)")] = None
    plot_weights: Annotated[str | None, writes("draw the weight of each simple mutation")] = None


@dataclass(frozen=True, kw_only=True)
class CampaignSettings:
    """Every choice of `verify campaign` beside those that the campaign file makes."""

    file: Annotated[str, reads("campaign file (.toml)", metavar="CAMPAIGN", positional=True)]
    refine: Refine = 0
    output: Annotated[
        str,
        writes(
            "folder for all that is made; one of an earlier run is gone on with",
            also=("-o",),
            metavar="FOLDER",
            group="output",
        ),
    ] = "campaign"
    scheduler: Annotated[str | None, Option(WHO, also=("--jobs",), metavar="N|ADDRESS", role="output")] = None
    json: PrintedTables = False


@dataclass(frozen=True, kw_only=True)
class CampaignInitSettings:
    """Every choice of `verify campaign init`."""

    onnx: Annotated[str, reads("the detector (.onnx)")]
    images: Annotated[str, reads("folder of images", metavar="DIR")]
    annotations: Annotated[str, reads("ground truth: COCO .json, KITTI labels, or a table", metavar="PATH")]
    depth: Annotated[str | None, reads("depth maps NAME.npy (metres) or NAME.png (16 bit)", metavar="DIR")] = None
    spec: Annotated[str | None, reads("requirements in LTL (.ltl)", metavar="SPEC")] = None
    mutations: Annotated[
        PublishedList, Option("{choices}; without --depth those of the list that need none", metavar="LIST")
    ] = "published-2021"
    output: Annotated[str, writes("campaign file to write", also=("-o",))] = "campaign.toml"
