"""The words for what can be chosen of mutations, and every choice of `verify mutate` and `verify assess`.

Only light modules are imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, get_args

from verifier.base.options import Option, PrintedTables, Scheduler, Written, reads, writes
from verifier.perception.settings import IMAGE_SUFFIXES

Densifying: TypeAlias = Literal["nearest", "linear", "pyramid"]
"""How unknown depths are filled."""
Pixels: TypeAlias = Literal["uint8", "float32"]
"""What an image is handed on as."""
PublishedList: TypeAlias = Literal["published-2021", "published-2018", "published-2018-text"]
"""Lists of the mutations of a paper."""


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
            "depth maps NAME.npy (metres) or NAME.png (16 bit)", metavar="FOLDER", group="what belongs to the images"
        ),
    ] = None
    depth_constant: Annotated[float | None, Option("one depth for every pixel instead", metavar="METRES")] = None
    depth_scale: Annotated[
        float | None, Option("units of a 16-bit depth map in a metre (default: 256)", metavar="X")
    ] = None
    densify: Annotated[
        Densifying | None, Option("fill unknown depths, 0 in the map: {choices} (default: refuse such maps)")
    ] = None
    annotations: Annotated[
        str | None,
        reads(
            "annotations whose boxes move along: a folder of KITTI labels, COCO .json, or a table .csv with frame, "
            "x1, y1, x2, y2; written beside the images of each mutation",
            metavar="PATH",
        ),
    ] = None

    output: Annotated[
        str | None, writes("where to write; made if it is not there", also=("-o",), metavar="FOLDER", group="output")
    ] = None
    sheet: Annotated[str | None, writes("a contact sheet of the first images (.png)")] = None
    jobs: Annotated[int, writes("images at the same time", metavar="N")] = 1
    scheduler: Scheduler = None
    resume: Annotated[
        bool, Option("keep what an interrupted run already made from the same inputs", role="output")
    ] = False
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
    json: PrintedTables = False
    output: Written = None
    markdown: Annotated[str | None, writes("write the report in Markdown")] = None
    plan: Annotated[str | None, writes("write the plan of the target data set as JSON, image by image")] = None
    plot: Annotated[str | None, writes("change of performance against distance, and margins (.png, .svg, .pdf)")] = (
        None
    )
