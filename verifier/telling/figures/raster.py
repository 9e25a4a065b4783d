"""A picture of `verifier.telling.pictures` as a PNG file, for documents that cannot show SVG; drawn by matplotlib.

Known are the shapes of those pictures: rect, circle, path (M, L, H, V, h, v, z), text, and groups that are moved and
turned.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from verifier.base.libraries import library

DPI = 192
"""Of the picture, in which a user unit is 1/96 inch."""
_STEP = re.compile(r"([MLHVhvz])([^MLHVhvz]*)")


def png_of(svg: str) -> tuple[bytes, int]:
    """The file, and its width in user units.

    Raises:
        UsageError: matplotlib is not installed.
        ValueError: an element that is not known.
    """
    figures, agg = library("matplotlib.figure"), library("matplotlib.backends.backend_agg")
    root = ElementTree.fromstring(svg)
    width, height = (int(root.attrib[name]) for name in ("width", "height"))
    figure = figures.Figure((width / 96, height / 96), dpi=DPI)
    agg.FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    for order, (each, at, turn) in enumerate(_shapes(root, (0.0, 0.0), 0.0)):
        _draw(axes, each, at, turn, order)
    written = io.BytesIO()
    figure.savefig(written, format="png", metadata={"Software": None})
    return written.getvalue(), width


def _shapes(
    group: ElementTree.Element, at: tuple[float, float], turn: float
) -> Iterator[tuple[ElementTree.Element, tuple[float, float], float]]:
    """The shapes in their order, with where their group lies and how it is turned, in degrees."""
    for each in group:
        if each.tag != "g":
            yield each, at, turn
            continue
        moved, turned = re.fullmatch(r"translate\(([^)]*)\) rotate\(([^)]*)\)", each.attrib["transform"]).groups()  # type: ignore[union-attr]
        x, y = map(float, moved.split())
        yield from _shapes(each, (at[0] + x, at[1] + y), turn + float(turned))


def _draw(axes: Any, each: ElementTree.Element, at: tuple[float, float], turn: float, order: int) -> None:
    given, paths = each.attrib, library("matplotlib.path").Path
    if each.tag == "text":
        place = (at[0] + float(given["x"]), at[1] + float(given["y"]))
        side = {"start": "left", "middle": "center", "end": "right"}[given["text-anchor"]]
        size = float(given["font-size"]) * 0.75
        text = axes.text(*place, each.text or "", ha=side, va="baseline", rotation=-turn, color=given["fill"])
        text.set(fontsize=size, rotation_mode="anchor", zorder=order, parse_math=False)
        return
    x, y = (float(given.get(name, 0)) for name in ("x", "y"))
    if each.tag == "rect":
        width, height = float(given["width"]), float(given["height"])
        path = paths([(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)], closed=True)
    elif each.tag == "circle":
        path = paths.circle((float(given["cx"]), float(given["cy"])), float(given["r"]))
    elif each.tag == "path":
        path = paths(*_steps(given["d"], paths))
    else:
        raise ValueError(f"unknown shape {each.tag}")
    fill = given.get("fill", "none" if "stroke" in given else "#000")
    line = float(given.get("stroke-width", 1)) * 0.75 if "stroke" in given else 0.0
    patch = library("matplotlib.patches").PathPatch(path, facecolor="none", edgecolor="none", zorder=order)
    patch.set(
        linewidth=line, capstyle=given.get("stroke-linecap", "butt"), antialiased="shape-rendering" not in given
    )
    if fill != "none":
        patch.set_facecolor(library("matplotlib.colors").to_rgba(fill, float(given.get("fill-opacity", 1))))
    if line:
        patch.set_edgecolor(given["stroke"])
        dashes = [float(size) * 0.75 / line for size in given.get("stroke-dasharray", "").split()]
        patch.set_linestyle((0, dashes) if dashes else "solid")
    axes.add_patch(patch)


def _steps(text: str, paths: Any) -> tuple[list[tuple[float, float]], list[int]]:
    """Vertices and codes of a path."""
    points, codes, start = list[tuple[float, float]](), list[int](), (0.0, 0.0)
    for step, numbers in _STEP.findall(text):
        x, y = points[-1] if points else start
        if step in "ML":
            x, y = map(float, numbers.split())
            start = (x, y) if step == "M" else start
        elif step == "z":
            x, y = start
        elif step in "Hh":
            x = float(numbers) + (x if step == "h" else 0)
            x += 0.5 if step + numbers == "h0" else 0  # a dot, which would not be drawn
        else:
            y = float(numbers) + (y if step == "v" else 0)
        points.append((x, y))
        codes.append(paths.MOVETO if step == "M" else paths.CLOSEPOLY if step == "z" else paths.LINETO)
    return points, codes
