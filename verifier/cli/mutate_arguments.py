"""The arguments of `verify mutate`. Only light modules are imported at the top."""

from __future__ import annotations

import argparse
from typing import Any

LISTS = ("published-2021", "published-2018", "published-2018-text")
DENSIFYING = ("nearest", "linear", "pyramid")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")

MUTATE_DESCRIPTION = """\
Degrade images: every image under every mutation, as PNG files in FOLDER/MUTATION/NAME.png, and FOLDER/mutate.json.

  verify mutate images --mutation gaussian_blur:sigma_px=2 --sweep haze:visibility_m=978,326,97.8 \\
      --depth depth --densify linear -o mutated --sheet contact.png

A mutation is NAME:PARAMETER=VALUE,...; steps are joined by +. --show lists all names and parameters. Files that
cannot be used are listed, all others are made, and the exit code is 4.
"""


def add_mutate_arguments(commands: Any) -> None:
    """Add the command `mutate`."""
    mutate = commands.add_parser(
        "mutate",
        help="degrade images: blur, haze and defocus by depth, noise, and more",
        description=MUTATE_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    mutate.set_defaults(command=_mutate)
    mutate.add_argument(
        "images",
        nargs="*",
        metavar="IMAGES",
        help=f"files, or folders with all {', '.join(IMAGE_SUFFIXES)} files below them",
    )
    _add_mutation_arguments(mutate.add_argument_group("mutations"))
    _add_scene_arguments(mutate.add_argument_group("what belongs to the images"))
    _add_output_arguments(mutate.add_argument_group("output"))


def _add_mutation_arguments(group: Any) -> None:
    group.add_argument(
        "--mutation", action="append", default=[], metavar="MUTATION", help="as haze:visibility_m=97.8; repeat"
    )
    group.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="MUTATION",
        help="several values of its parameters, as sigma_px=1,2,3 or 0.5..3/6 or 50..1000/10/log; repeat",
    )
    group.add_argument(
        "--list",
        action="append",
        default=[],
        metavar="NAME",
        help="all mutations of a paper: " + ", ".join(LISTS) + "; :mild or :severe behind the first; repeat",
    )
    group.add_argument("--show", action="store_true", help="show the mutations, or all there are, and stop")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of everything that is drawn (default: 0)")


def _add_scene_arguments(group: Any) -> None:
    group.add_argument("--depth", metavar="FOLDER", help="depth maps NAME.npy (metres) or NAME.png (16 bit)")
    group.add_argument("--depth-constant", type=float, metavar="METRES", help="one depth for every pixel instead")
    group.add_argument(
        "--depth-scale", type=float, metavar="X", help="units of a 16-bit depth map in a metre (default: 256)"
    )
    group.add_argument(
        "--densify",
        choices=DENSIFYING,
        help="fill unknown depths, 0 in the map: " + ", ".join(DENSIFYING) + " (default: refuse such maps)",
    )
    group.add_argument(
        "--annotations",
        metavar="PATH",
        help="annotations whose boxes move along: a folder of KITTI labels, COCO .json, or a table .csv with frame, "
        "x1, y1, x2, y2; written beside the images of each mutation",
    )


def _add_output_arguments(group: Any) -> None:
    group.add_argument("-o", "--output", metavar="FOLDER", help="where to write; made if it is not there")
    group.add_argument("--sheet", metavar="FILE", help="a contact sheet of the first images (.png)")
    group.add_argument("--jobs", type=int, default=1, metavar="N", help="images at the same time (default: 1)")
    group.add_argument(
        "--resume", action="store_true", help="keep what an interrupted run already made from the same inputs"
    )
    group.add_argument("--json", action="store_true", help="print what was done as JSON instead of a table")


def _mutate(arguments: argparse.Namespace) -> int:
    from verifier.cli.mutate import mutate_command

    return mutate_command(arguments)
