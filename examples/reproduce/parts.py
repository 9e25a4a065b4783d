"""What the scripts of this folder share: the figures and tables of a paper are made one by one, and listed.

A part is a function that is given the folder of outputs and tells in a few words what it wrote, or a text that says
why the part cannot be made.
"""

import argparse
import csv
from pathlib import Path

from verifier.telling.figures.drawing import figure_bytes

ROOT = Path(__file__).resolve().parents[2]


def options(description, **more):
    """The command line of a script: the folder of outputs, and what `more` adds (name -> help)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("output", type=Path, help="folder to write figures and tables to")
    for name, text in more.items():
        parser.add_argument(f"--{name}", type=Path, help=text)
    return parser


def reproduce(title, parts, output):
    """Make all parts that can be made, and print what became of each; their names with what is said of them."""
    output.mkdir(parents=True, exist_ok=True)
    print(title)
    told = {}
    for name, part in parts.items():
        told[name] = part(output) if callable(part) else f"not made: {part}"
        print(f"  {name:<10} {told[name]}")
    return told


def write_rows(path, header, rows):
    """A table as CSV."""
    with path.open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([header, *rows])
    return path.name


def write_figure(figure, path):
    """A figure of matplotlib as PNG, and beside it as SVG; the name of the first."""
    for each in (path, path.with_suffix(".svg")):
        each.write_bytes(figure_bytes(figure, str(each)))
    return path.name


def mutated(images, depth, mutations, folder):
    """The images under every mutation, as PNG files in folders; those by depth need depth maps of the same names."""
    import verifier

    given = {} if depth is None else {"depth": str(depth)}
    found = verifier.mutate(str(images), str(folder), mutation=list(mutations), **given)
    return f"{len(found.outputs)} images in {folder.name}/"
