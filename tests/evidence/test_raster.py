"""Pictures drawn again as PNG: the same shapes and colours at the same places."""

import io

import numpy as np
import pytest

from verifier.telling.docx import DPI, png_of
from verifier.telling.pictures import LINES, SHADES, Line, chart, plot, ruler

image = pytest.importorskip("PIL.Image")
SCALE = DPI // 96


def drawn(svg):
    """Colour at a place of the picture, as `#rrggbb`; and the whole."""
    png, width = png_of(svg)
    found = image.open(io.BytesIO(png)).convert("RGB")
    assert found.size[0] == SCALE * width

    def at(x, y):
        return "#{:02x}{:02x}{:02x}".format(*found.getpixel((round(SCALE * x), round(SCALE * y))))

    return at, np.asarray(found)


def test_cells_of_a_map_have_their_shades():
    table = np.array([[0.05, 0.95, 0.35], [np.nan, 0.25, 0.75]])
    at, _ = drawn(chart(table, ([1, 2], [3, 4, 5]), ("x", "y"), "map", worst_is_largest=True))
    for column in range(2):
        for row in range(3):
            value = table[column, row]
            expected = "#dcdcdc" if np.isnan(value) else SHADES[int(10 * value)]
            assert at(60 + 180 * (column + 0.5), 210 - 190 / 3 * (row + 0.5)) == expected


def test_lines_dots_and_dashes_are_where_the_points_are():
    lines = [Line("one $x$", [(0, 0.1), (1, 0.5), (2, 0.9)]), Line("two", [(0, 0.25), (2, 0.25)])]
    at, _ = drawn(plot(lines, ("distance", "probability"), "t", 0.6))
    y = 210 - 190 * 0.5
    assert at(240, y) == at(240, y - 4) == LINES[0]  # the dot is thicker than the line
    along = {at(x, 210 - 190 * 0.25) for x in range(100, 400)}
    assert LINES[1] in along
    assert len(along) > 1  # dashed
    assert at(60, 100) == "#555555"


def test_bars_and_texts_of_a_ruler():
    at, whole = drawn(ruler(0.5, (0.4, 0.6), (0.3, 0.7), 0.9, "P"))
    assert at(20 + 400 * 0.33, 42 - 4) == "#c6d8ee"
    assert at(20 + 400 * 0.43, 42 - 4) == "#5b8cc4"
    assert at(20 + 400 * 0.5, 42) == "#111111"
    assert (whole[: 16 * SCALE] != 255).any()  # the target's name above all


def test_the_same_bytes_every_time_and_no_shape_that_is_not_known():
    svg = ruler(0.5, None, None, None, "P")
    assert png_of(svg) == png_of(svg)
    with pytest.raises(ValueError, match="unknown shape ellipse"):
        png_of(svg.replace("circle", "ellipse"))
