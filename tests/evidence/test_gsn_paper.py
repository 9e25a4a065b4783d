"""The assurance case on sheets of A4: all of it, legible, module by module, and nothing beyond the edge."""

import html
import re
from xml.etree import ElementTree

import pytest
from gsn_cases import HOSTILE, case_of, large, small
from run_documents import point, requirement

from verifier.evidence.case.elements import Kind, modules_of, points_of
from verifier.evidence.case.sheets import gsn_html

SHEET = re.compile(
    r'<svg id="sheet\d+" xmlns="[^"]*" width="([\d.]+)mm" viewBox="0 0 (\d+) (\d+)".*?</svg>', flags=re.DOTALL
)
SPACE = "{http://www.w3.org/2000/svg}"
NUMBERS = ("x", "y", "width", "height", "cx", "cy", "rx", "ry")


def sheets(text):
    """Of each sheet: the height of its smallest text in points, its size in pixels, and its markup."""
    found = []
    for match in SHEET.finditer(text):
        width, height = int(match[2]), int(match[3])
        found.append((12 * float(match[1]) / width * 72 / 25.4, (width, height), match[0]))
    return found


def shapes(text):
    """(id, left, top, right, below) of every element on a sheet, in its pixels."""
    root = ElementTree.fromstring(text)
    for part in root.iter(f"{SPACE}g"):
        moved = re.fullmatch(r"translate\(([\d.]+) ([\d.]+)\)", part.get("transform", ""))
        groups = [*part.findall(f"{SPACE}g"), *part.findall(f"{SPACE}a/{SPACE}g")] if moved else []
        for each in groups:
            title = each.find(f"{SPACE}title")
            if title is None:
                continue
            value = {key: float(each[1].get(key)) for key in NUMBERS if each[1].get(key)}
            kind = each[1].tag.removeprefix(SPACE)
            if kind == "rect":
                box = value["x"], value["y"], value["x"] + value["width"], value["y"] + value["height"]
            elif kind == "ellipse":
                box = (value["cx"] - value["rx"], value["cy"] - value["ry"], value["cx"] + value["rx"],
                       value["cy"] + value["ry"])  # fmt: skip
            else:
                points = [tuple(map(float, point.split(","))) for point in each[1].get("points").split()]
                xs, ys = zip(*points, strict=True)
                box = min(xs), min(ys), max(xs), max(ys)
            x, y = float(moved[1]), float(moved[2])
            yield title.text.partition(":")[0], box[0] + x, box[1] + y, box[2] + x, box[3] + y


def hostile():
    name = HOSTILE.replace("\ud800", "")
    return case_of([requirement(name, [point(0.5, "violated", (0.4, 0.6), environment=name)])], title=name)


@pytest.mark.parametrize("make", [small, large, hostile])
def test_everything_stands_legibly_within_a_sheet_of_its_module(make):
    case = make()
    homes = {each.id: name for name, elements in modules_of(case).items() for each in elements}
    seen = {}
    for points, (width, height), text in sheets(gsn_html(case)):
        assert points >= 7 - 0.01
        assert width / height == pytest.approx((297 - 24) / (210 - 24), abs=0.002)
        module = re.search(r", module (M-[\w-]+), sheet", text)[1]
        found = list(shapes(text))
        assert 1 <= len(found) <= 15
        for name, left, top, right, below in found:
            assert 0 <= left < right <= width, name
            assert 0 <= top < below <= height - 60, name  # above what the signs mean
        boxes = [each[1:] for each in found]
        for at, (a, b, c, d) in enumerate(boxes):
            assert all(c <= e or g <= a or d <= f or h <= b for e, f, g, h in boxes[:at]), found[at][0]
        seen.setdefault(module, set()).update(name for name, *_ in found)
    for each in case.elements:
        # What several modules share stands with each that it belongs to, and not apart in that of all.
        anywhere = each.id.startswith(("C", "A", "J", "Sn"))
        assert each.id in (set().union(*seen.values()) if anywhere else seen[homes[each.id]])


@pytest.mark.parametrize("make", [small, large])
def test_lines_begin_and_end_at_elements(make):
    for *_, text in sheets(gsn_html(make())):
        boxes = [each[1:] for each in shapes(text)]
        for part in ElementTree.fromstring(text).iterfind(f"{SPACE}g[@transform]"):
            at = [float(number) for number in re.findall(r"[\d.]+", part.get("transform"))]
            for line in part.iter(f"{SPACE}polyline"):
                points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
                for x, y in ((x + at[0], y + at[1]) for x, y in (points[0], points[-1])):
                    assert any(a - 1 <= x <= c + 1 and b - 1 <= y <= d + 1 for a, b, c, d in boxes)


def test_what_goes_on_elsewhere_names_its_sheet_and_its_module():
    case = large()
    homes = {each.id: name for name, elements in modules_of(case).items() for each in elements}
    found = [text for *_, text in sheets(gsn_html(case))]
    names = [{name for name, *_ in shapes(text)} for text in found]
    away = 0
    for here, text in zip(names, found, strict=True):
        module = re.search(r", module (M-[\w-]+), sheet", text)[1]
        for other, number in re.findall(r">(?:in (M-[\w-]+), )?on sheet (\d+)<", text):
            there = names[int(number) - 1]
            assert here & there
            assert (other or module) in {homes[name] for name in here & there}
            away += bool(other)
    assert away >= 20  # the requirements, from the argument over them
    assert f"sheet 1 of {len(found)}" in found[0]


def test_the_index_leads_to_every_module_and_names_what_it_refers_to():
    case = small()
    text = gsn_html(case)
    body = re.search(r"<tbody>(.*?)</tbody>", text, flags=re.DOTALL)[1]
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", body)]
    modules = modules_of(case)
    assert [row[0] for row in rows] == list(modules)
    for row in rows:
        inside = {each.id for each in modules[row[0]]}
        known = case.by_id
        away = {one for name in inside for one in known[name].supported_by if one not in inside and known[one].status}
        assert {one for one, _ in re.findall(r"(G\d+|S\d+) in (M-[\w-]+), sheet", row[3])} == away
        assert re.findall(r'href="#(sheet\d+)"', row[2])
    targets = set(re.findall(r'href="#(sheet\d+)"', text))
    assert targets <= set(re.findall(r'<svg id="(sheet\d+)"', text))


def test_doubts_stand_beside_what_they_challenge():
    for make in (small, large):
        case = make()
        for *_, text in sheets(gsn_html(case)):
            names = [name for name, *_ in shapes(text)]
            for each in case.elements:
                if each.kind is Kind.COUNTER_GOAL and each.id in names:
                    assert each.challenges in names
                    assert {*each.supported_by} & {*names}


def test_claim_points_are_drawn_where_they_are():
    case = small()
    labels = [label for *_, text in sheets(gsn_html(case)) for label in re.findall(r">(ACP[^<]*)</text></g>", text)]
    drawn = [name for label in labels for name in label.split(", ")]
    held = [name for found in points_of(case).values() for name in found]
    assert held
    assert {*drawn} == {*held}
    assert len(drawn) >= len(held)


@pytest.mark.parametrize("make", [small, large])
def test_nothing_stands_apart_from_what_it_belongs_to(make):
    case = make()
    modules = modules_of(case)
    related = {each.id: {*each.supported_by, *each.in_context_of, each.challenges} - {None} for each in case.elements}
    for name, others in list(related.items()):
        for other in others:
            related[other] = related[other] | {name}
    for number, (*_, text) in enumerate(sheets(gsn_html(case)), 1):
        inside = {each.id: each for each in modules[re.search(r", module (M-[\w-]+), sheet", text)[1]]}
        begins = {name for name, each in inside.items() if each.status and not related[name] & inside.keys()}
        for part in ElementTree.fromstring(text).iterfind(f"{SPACE}g[@transform]"):
            names = {name for name, *_ in shapes(ElementTree.tostring(part, encoding="unicode"))}
            assert not [name for name in names - begins if related[name] and not related[name] & names], number


def labels(text):
    """(left, top, right, below) of the name of every claim point on a sheet, in its pixels."""
    for part in ElementTree.fromstring(text).iter(f"{SPACE}g"):
        moved = re.fullmatch(r"translate\(([\d.]+) ([\d.]+)\)", part.get("transform", ""))
        for each in part.iterfind(f"{SPACE}g/{SPACE}text") if moved else ():
            if (each.text or "").startswith("ACP"):
                x, y = (float(each.get(key)) + float(moved[at + 1]) for at, key in enumerate("xy"))
                far = len(each.text)
                down = "rotate(90 " in each.get("transform", "")
                yield (x - 2, y, x + 9, y + 8.5 * far) if down else (x, y - 9, x + 8.5 * far, y + 2)


@pytest.mark.parametrize("make", [small, large])
def test_names_of_claim_points_stand_on_nothing_else(make):
    seen = 0
    for _, _, text in sheets(gsn_html(make())):
        boxes = list(shapes(text))
        for left, top, right, below in labels(text):
            seen += 1
            on = [name for name, a, b, c, d in boxes if left < c and right > a and top < d and below > b]
            assert not on, (on, left, top)
    assert seen


def test_it_is_printed_as_it_is_cut(browser, tmp_path):
    case = small()
    text = gsn_html(case, "SC-12, revision B")
    assert text.count(">SC-12, revision B</text>") == len(sheets(text))
    (tmp_path / "case.html").write_text(text)
    page = browser.new_context().new_page()
    page.goto((tmp_path / "case.html").as_uri())
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == len(sheets(text)) + 1
    assert html.escape(case.title) in text
