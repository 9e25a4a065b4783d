"""What every picture shares: matplotlib, imported late and without a screen, and the file that a figure becomes."""

from __future__ import annotations

import io
import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verifier.base.errors import UsageError, one_line
from verifier.base.files import ending_of
from verifier.base.libraries import library

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
MOST_ROWS = 16
"""Of panels in a figure."""


def check_plot_target(option: str, path: str) -> None:
    """Refuse a plot that could not be written, before anything is computed; `option` names it."""
    ending_of(option, path, FORMATS)
    library("matplotlib")


def subplots(*shape: int, **how: Any) -> tuple[Figure, Any]:
    """A figure and its axes, by `matplotlib.pyplot`, imported here and not before.

    It shows nothing, and names the parts of an SVG alike each time.
    """
    os.environ["MPLBACKEND"] = "Agg"  # whatever the environment says
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "verifier"
    from matplotlib import pyplot

    return pyplot.subplots(*shape, **how)


def check_panels(count: int, what: str, most: int = MOST_ROWS, choose: str = "") -> None:
    """Refuse so many panels, or rows of them, that nobody could read them; `choose` names options. UsageError."""
    if count > most:
        hint = f". Choose with {choose}" if choose else ""
        raise UsageError(f"--plot: {count} {what}; at most {most} are drawn{hint}")


def framed(axis: Axes, x: str = "", y: str = "", title: str = "", width: int | None = None) -> None:
    """Name the axes of a panel and the panel, in small letters as they stand, and draw its grid; a title on lines of
    at most `width` characters."""
    if x:
        axis.set_xlabel(one_line(x), fontsize="small", parse_math=False)
    if y:
        axis.set_ylabel(one_line(y), fontsize="small", parse_math=False)
    if title:
        lines = [one_line(title)] if width is None else textwrap.wrap(one_line(title), width)
        axis.set_title("\n".join(lines), fontsize="small", parse_math=False)
    axis.grid(True, linewidth=0.3)


def shades(count: int) -> list[Any]:
    """So many colours that tell an order also without colour, from dark to light."""
    from matplotlib import colormaps

    return [colormaps["viridis"](0.9 * k / max(count - 1, 1)) for k in range(count)]


def plain(text: str) -> str:
    """A name as matplotlib shows it letter by letter; between dollar signs it would read formulas."""
    return one_line(text).replace("$", r"\$")


def wrapped(text: str, width: int) -> str:
    """As `plain`, on lines of at most `width` characters; a word that is longer is broken, nothing is left out."""
    return "\n".join(plain(line) for line in textwrap.wrap(one_line(text), width)) or plain(text)


def figure_bytes(figure: Figure, path: str) -> bytes:
    """The figure as a file of the format that the ending of `path` names, without the time; closes the figure."""
    from matplotlib import pyplot

    buffer = io.BytesIO()
    ending = Path(path).suffix.lstrip(".").lower()
    when = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}[ending]
    figure.savefig(buffer, format=ending, dpi=150, metadata={when: None})
    pyplot.close(figure)
    return buffer.getvalue()
