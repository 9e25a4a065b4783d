"""Pictures as SVG elements: small, the same bytes every time, and nothing in them but shapes and escaped text.

Colours are attributes, not styles, so that a page may forbid styles. Every picture has a role and a name for those
who do not see it; its numbers also stand in a table beside it, where they are not too many for one.
"""

import html
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import one_line
from verifier.base.numbers import number_text, significant

SHADES = (
    "#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6dcd59", "#b4de2c", "#fde725",
)  # fmt: skip
"""From 0 to 1, ten equal steps; readable in print and with every kind of colour vision (viridis)."""
LINES = ("#1f5fa8", "#b3430b", "#2c7a3f", "#7a3f9a", "#8a6d00", "#00707a", "#a8205b", "#4d4d4d")
DASHES = ("", "6 3", "2 2", "8 3 2 3")
WIDTH = 480
"""Of plots and maps; wider ones would be too small to read in a narrow window."""
MOST_NAMED = 12
"""Lines that the legend names."""
MOST_DOTS = 60
"""Points of a line that are marked."""
CLOSEST_TICKS = 0.08
"""Share of the axis that two numbers along it are apart at least."""
MOST_CELLS = 120
"""Of a map along each axis; more are drawn as the worst of a block of cells."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a plot: its name, and the points (x, y) and maybe the band (x, lower, upper) around it."""

    name: str
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float, float]] = ()


def ruler(
    value: float,
    interval: tuple[float, float] | None,
    bounds: tuple[float, float] | None,
    target: float | None,
    label: str,
) -> str:
    """A probability with its intervals and its target on one scale, zoomed in where they lie close together."""
    numbers = [value, *(interval or ()), *(bounds or ()), *([] if target is None else [target])]
    low, high = _window(min(numbers), max(numbers))

    def x(number: float) -> str:
        return _n(20 + 400 * (number - low) / (high - low))

    parts = [_open(440, 66, label)]
    parts.append('<path d="M20 42H420M20 38v8M420 38v8" stroke="#555" fill="none"/>')
    parts.append(
        _text(20, 60, significant(low, 6), "start") + _text(420, 60, significant(high, 6), "end") + _text(4, 46, "P")
    )
    if bounds is not None:
        parts.append(_bar(x(bounds[0]), x(bounds[1]), 31, 22, "#c6d8ee"))
    if interval is not None:
        parts.append(_bar(x(interval[0]), x(interval[1]), 36, 12, "#5b8cc4"))
    if target is not None:
        parts.append(f'<path d="M{x(target)} 20V58" stroke="#a31515" stroke-width="2" stroke-dasharray="4 2"/>')
        inside = 0.1 < (target - low) / (high - low) < 0.9
        anchor = "middle" if inside else _side(target, low, high)
        parts.append(_text(x(target), 14, f"target {number_text(target)}", anchor, "#a31515"))
    parts.append(f'<circle cx="{x(value)}" cy="42" r="4.5" fill="#111" stroke="#fff"/>')
    return "".join([*parts, "</svg>"])


def _side(number: float, low: float, high: float) -> str:
    return "start" if number - low < high - number else "end"


def _window(low: float, high: float) -> tuple[float, float]:
    """The part of 0..1 to draw: all of it unless everything lies within a tenth of it."""
    if high - low > 0.1:
        return 0.0, 1.0
    width = max(2 * (high - low), 1e-6)
    digits = int(max(0, np.ceil(-np.log10(width)))) + 1
    middle, scale = (low + high) / 2, 10.0**digits
    lower = max(0.0, np.floor((middle - width) * scale) / scale)
    upper = min(1.0, np.ceil((middle + width) * scale) / scale)
    return (float(lower), float(upper)) if upper > lower else (0.0, 1.0)


def _bar(left: str, right: str, top: float, height: float, fill: str) -> str:
    width = max(float(right) - float(left), 1.5)
    return f'<rect x="{left}" y="{_n(top)}" width="{_n(width)}" height="{_n(height)}" fill="{fill}"/>'


def plot(
    lines: Sequence[Line],
    axes: tuple[str, str],
    label: str,
    target: float | None = None,
    across: tuple[float, float] = (0.0, 1.0),
) -> str:
    """Lines over a common x axis; y goes over `across`. The legend stands below, so that all fits on a telephone."""
    xs = [x for line in lines for x, _ in line.points]
    low, high = (min(xs), max(xs)) if xs else (0.0, 1.0)
    low, high = (low, high) if high > low else (low - 1, high + 1)
    bottom, top = across

    def at(x: float, y: float) -> str:
        return f"{_n(60 + 360 * (x - low) / (high - low))} {_n(210 - 190 * (y - bottom) / (top - bottom))}"

    parts = [_open(WIDTH, 256 + 18 * _legend_rows(lines), label), _frame(bottom, top, axes)]
    parts += [_text(at(x, bottom).split()[0], 226, significant(x, 4), "middle") for x in _places(xs)]
    for k, (line, (colour, dash)) in enumerate(zip(lines, _styles(), strict=False)):
        width = max(4.2 - 0.9 * k, 1.5)  # lines that lie on each other are all seen
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        if line.band:
            there = [at(x, lower) for x, lower, _ in line.band]
            back = [at(x, upper) for x, _, upper in reversed(line.band)]
            parts.append(f'<path d="M{"L".join(there + back)}z" fill="{colour}" fill-opacity=".15"/>')
        path = "L".join(at(*point) for point in line.points)
        if path:
            parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="{_n(width)}"{dashed}/>')
        dots = "".join(f"M{at(*point)}h0" for point in line.points[:MOST_DOTS])
        parts.append(
            f'<path d="{dots}" stroke="{colour}" stroke-width="{_n(2 + 2 * width)}" stroke-linecap="round"/>'
        )
    if target is not None:
        y = at(low, target).split()[1]
        parts.append(f'<path d="M60 {y}H420" stroke="#a31515" stroke-dasharray="5 3"/>')
        parts.append(_text(424, float(y) + 4, "target", "start", "#a31515"))
    parts += _legend(lines)
    return "".join([*parts, "</svg>"])


def _places(xs: Sequence[float]) -> list[float]:
    """Where the horizontal axis has numbers: at some of the values, evenly spread where there are many."""
    values = sorted(set(xs))
    if len(values) > 7:
        return [values[0] + k * (values[-1] - values[0]) / 4 for k in range(5)]
    room = CLOSEST_TICKS * (values[-1] - values[0]) if values else 0.0
    places: list[float] = []
    for value in reversed(values):
        if not places or places[-1] - value >= room:
            places.append(value)
    return places[::-1]


def _styles() -> Iterator[tuple[str, str]]:
    """Every line differs from the next in colour and in dashes: not all eyes and printers tell colours apart."""
    return ((LINES[k % len(LINES)], DASHES[(k + k // len(LINES)) % len(DASHES)]) for k in itertools.count())


def _legend_rows(lines: Sequence[Line]) -> int:
    return 0 if len(lines) < 2 else min(len(lines), MOST_NAMED) + (len(lines) > MOST_NAMED)


def _legend(lines: Sequence[Line]) -> Iterator[str]:
    if len(lines) < 2:
        return
    for row, (line, (colour, dash)) in enumerate(zip(lines[:MOST_NAMED], _styles(), strict=False)):
        y = 266 + 18 * row
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        yield f'<path d="M60 {y}h34" stroke="{colour}" stroke-width="2.5"{dashed}/>'
        yield _text(102, y + 4, line.name if len(line.name) <= 56 else line.name[:53] + "...", "start")
    if len(lines) > MOST_NAMED:
        yield _text(60, 270 + 18 * MOST_NAMED, f"and {len(lines) - MOST_NAMED} more", "start")


def _frame(bottom: float, top: float, axes: tuple[str, str]) -> str:
    parts = ['<path d="M60 20V210H420" stroke="#555" fill="none"/>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = 210 - 190 * share
        parts.append(f'<path d="M60 {_n(y)}H420" stroke="#ddd"/>' if share else "")
        parts.append(_text(54, y + 4, significant(bottom + share * (top - bottom)), "end"))
    parts.append(_text(240, 248, axes[0], "middle"))
    parts.append(_upright(axes[1]))
    return "".join(parts)


def _upright(name: str) -> str:
    """The name of the vertical axis; a short one is not turned."""
    if len(name) <= 3:
        return _text(4, 119, name)
    return f'<g transform="translate(14 115) rotate(-90)">{_text(0, 0, name, "middle")}</g>'


def chart(
    table: NDArray[np.float64],
    ticks: tuple[Sequence[float], Sequence[float]],
    axes: tuple[str, str],
    label: str,
    *,
    worst_is_largest: bool,
) -> str:
    """A map of probabilities over two variables, the first to the right, the second upwards.

    Args:
        table: (first, second), NaN where nothing is known.
        ticks: values along both.
        label: what is shown.
        worst_is_largest: which cell of a block stands for it, where there are more than can be drawn.
    """
    shown = _worst_of_blocks(table, worst_is_largest=worst_is_largest)
    known = table[~np.isnan(table)]
    said = f"{label}: from {number_text(known.min())} to {number_text(known.max())}" if known.size else label
    parts = [_open(WIDTH, 260, said), '<rect x="60" y="20" width="360" height="190" fill="#dcdcdc"/>']
    parts += _shaded(shown)
    parts.append('<rect x="60" y="20" width="360" height="190" fill="none" stroke="#555"/>')
    parts += _chart_ticks(ticks, axes)
    for k, colour in enumerate(SHADES):
        parts.append(f'<rect x="434" y="{_n(191 - 19 * k)}" width="18" height="19" fill="{colour}"/>')
    parts += [_text(456, 24, "1"), _text(456, 119, "0.5"), _text(456, 214, "0"), _text(434, 14, "P")]
    return "".join([*parts, "</svg>"])


def _shaded(shown: NDArray[np.float64]) -> Iterator[str]:
    """One path for each shade; neighbours of one shade are one box, which keeps the page small."""
    columns, rows = shown.shape
    width, height = 360 / columns, 190 / rows
    shade = np.where(np.isnan(shown), -1, np.minimum(np.nan_to_num(shown) * len(SHADES), len(SHADES) - 1)).astype(int)
    paths: dict[int, list[str]] = {}
    for row in range(rows):
        y = 210 - height * (row + 1)
        at = 0
        for key, run in itertools.groupby(shade[:, row].tolist()):
            length = len(list(run))
            if key >= 0:
                box = f"M{_n(60 + width * at)} {_n(y)}h{_n(width * length)}v{_n(height)}h-{_n(width * length)}z"
                paths.setdefault(key, []).append(box)
            at += length
    for key, boxes in sorted(paths.items()):
        yield f'<path fill="{SHADES[key]}" shape-rendering="crispEdges" d="{"".join(boxes)}"/>'


def _worst_of_blocks(table: NDArray[np.float64], *, worst_is_largest: bool) -> NDArray[np.float64]:
    """At most `MOST_CELLS` cells along each axis; a block is as bad as its worst cell."""
    sign = 1.0 if worst_is_largest else -1.0
    worst = np.where(np.isnan(table), -np.inf, sign * table)
    for axis in (0, 1):
        step = -(-worst.shape[axis] // MOST_CELLS)
        worst = np.maximum.reduceat(worst, np.arange(0, worst.shape[axis], step), axis=axis)
    return np.where(np.isneginf(worst), np.nan, sign * worst)


def _chart_ticks(ticks: tuple[Sequence[float], Sequence[float]], axes: tuple[str, str]) -> Iterator[str]:
    across, up = ticks
    for k in _some(len(across)):
        yield _text(60 + 360 * (k + 0.5) / len(across), 226, number_text(float(significant(across[k], 4))), "middle")
    for k in _some(len(up)):
        yield _text(54, 210 - 190 * (k + 0.5) / len(up) + 4, number_text(float(significant(up[k], 4))), "end")
    yield _text(240, 248, axes[0], "middle")
    yield _upright(axes[1])


def _some(count: int) -> list[int]:
    """At most seven positions, the first and the last among them."""
    if count <= 7:
        return list(range(count))
    return sorted({round(k * (count - 1) / 6) for k in range(7)})


def _open(width: int, height: int, label: str) -> str:
    name = html.escape(one_line(label))
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{name}">'


def _text(x: float | str, y: float, text: str, anchor: str = "start", fill: str = "#222") -> str:
    place = x if isinstance(x, str) else _n(x)
    said = html.escape(one_line(text))
    return f'<text x="{place}" y="{_n(y)}" text-anchor="{anchor}" fill="{fill}" font-size="12">{said}</text>'


def _n(number: float) -> str:
    """A coordinate with at most two decimals."""
    return f"{number:.2f}".rstrip("0").rstrip(".")
