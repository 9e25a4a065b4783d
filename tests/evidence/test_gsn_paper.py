"""The assurance case on sheets of A4: all of it, legible, and nothing beyond the edge of a sheet."""

import re
from xml.etree import ElementTree

import pytest
from gsn_cases import large, small

from verifier.evidence.case import gsn_html

SHEET = re.compile(r'<svg xmlns="[^"]*" width="([\d.]+)mm" viewBox="0 0 (\d+) (\d+)".*?</svg>', flags=re.DOTALL)


def sheets(case):
    """Of each sheet: the height of its smallest text in points, its size in pixels, and its markup."""
    found = []
    for match in SHEET.finditer(gsn_html(case)):
        width, height = int(match[2]), int(match[3])
        found.append((12 * float(match[1]) / width * 72 / 25.4, (width, height), match[0]))
    return found


def shapes(text):
    """(id, left, top, right, below) of every element on a sheet, in its pixels."""
    root = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    for part in root.iter(f"{space}g"):
        moved = re.fullmatch(r"translate\(0 ([\d.]+)\)", part.get("transform", ""))
        for each in part.findall(f"{space}g") if moved else []:
            name = each.find(f"{space}title").text.partition(":")[0]
            shape = each[1]
            kind = shape.tag.removeprefix(space)
            value = {key: float(shape.get(key)) for key in ("x", "y", "width", "height", "cx", "cy", "rx", "ry")
                     if shape.get(key)}  # fmt: skip
            if kind == "rect":
                box = value["x"], value["y"], value["x"] + value["width"], value["y"] + value["height"]
            elif kind == "ellipse":
                box = (value["cx"] - value["rx"], value["cy"] - value["ry"], value["cx"] + value["rx"],
                       value["cy"] + value["ry"])  # fmt: skip
            else:
                points = [tuple(map(float, point.split(","))) for point in shape.get("points").split()]
                xs, ys = zip(*points, strict=True)
                box = min(xs), min(ys), max(xs), max(ys)
            y = float(moved[1])
            yield name, box[0], box[1] + y, box[2], box[3] + y


@pytest.mark.parametrize("make", [small, large])
def test_everything_stands_legibly_within_a_sheet(make):
    case = make()
    seen = set()
    for points, (width, height), text in sheets(case):
        assert points >= 7 - 0.01
        assert width / height == pytest.approx((210 - 24) / (297 - 24), abs=0.002)
        found = list(shapes(text))
        assert found
        for name, left, top, right, below in found:
            assert 0 <= left < right <= width, name
            assert 0 <= top < below <= height, name
        seen |= {name for name, *_ in found}
    assert seen == {each.id for each in case.elements}


def test_what_goes_on_elsewhere_names_its_sheet():
    case = large()
    found = [text for *_, text in sheets(case)]
    names = [{name for name, *_ in shapes(text)} for text in found]
    pointed = 0
    for number, text in enumerate(found, 1):
        for sheet in map(int, re.findall(r"on sheet (\d+)<", text)):
            assert 1 <= sheet <= len(found)
            assert sheet >= number
            assert names[number - 1] & names[sheet - 1]
            pointed += 1
    assert pointed > 3
    assert f"sheet 1 of {len(found)}" in found[0]


def test_it_is_printed_as_it_is_cut(browser, tmp_path):
    case = small()
    (tmp_path / "case.html").write_text(gsn_html(case))
    page = browser.new_context().new_page()
    page.goto((tmp_path / "case.html").as_uri())
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == len(sheets(case))
