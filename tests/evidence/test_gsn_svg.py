"""The drawing: well-formed, nothing in it but itself, texts within their shapes; where they stand, test_gsn_paper."""

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest
from gsn_cases import HOSTILE, case_of, large, small
from run_documents import point, requirement

from verifier.evidence.case.elements import Case, Element, Kind
from verifier.evidence.case.layout import INSCRIBED, LINE_PX, MAIN_PX, shape_of, text_width, wrapped
from verifier.evidence.case.sheets import gsn_svg
from verifier.evidence.status import Status

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("make", [small, large])
def test_well_formed_and_self_contained(make):
    case = make()
    text = gsn_svg(case)
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    drawn = {"".join(each.itertext()) for each in root.iter(f"{SVG}text")}
    assert {each.id for each in case.elements} <= drawn
    allowed = {"svg", "title", "desc", "style", "defs", "marker", "path", "rect", "text", "g", "a", "polyline"}
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= allowed | {"polygon", "ellipse"}
    links = [text for each in root.iter() for key, text in each.attrib.items() if "href" in key]
    assert all(re.fullmatch(r"#sheet\d+|\.\./[\w./-]+", link) for link in links)
    assert gsn_svg(make()) == text


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("text", ["short", "a sentence of several words that has to be wrapped " * 6, HOSTILE])
def test_texts_stay_within_their_shapes(kind, text):
    argues = kind in (Kind.GOAL, Kind.STRATEGY)
    element = Element(
        f"{kind.value}1", kind, text, text, undeveloped=argues, status=Status.UNDEVELOPED if argues else None
    )
    shape = shape_of(element)
    widest = max(text_width(line) for line, _ in shape.lines)
    tall = len(shape.lines) * LINE_PX
    if kind in (Kind.GOAL, Kind.STRATEGY, Kind.CONTEXT, Kind.COUNTER_GOAL):
        assert widest <= shape.width - 20
        assert tall <= shape.height - 20
    else:  # the rectangle of the text lies in the ellipse
        assert math.hypot(widest / shape.width, tall / shape.height) <= 1
        assert widest <= shape.width * INSCRIBED[0]
    assert shape.width >= 100
    assert all(line.isprintable() for line, _ in shape.lines)


def test_wrapping():
    assert wrapped("", 100) == []
    assert " ".join(wrapped("one two three four five six seven", 60)) == "one two three four five six seven"
    assert all(text_width(line) <= 60 for line in wrapped("one two three four five six seven", 60))
    pieces = wrapped("x" * 100, MAIN_PX / 3)
    assert "".join(pieces) == "x" * 100
    assert len(pieces) > 1


def test_every_element_of_a_case_made_by_hand_is_drawn():
    """Arguments that `build_case` does not make: a counter goal against a solution, and one supported by another."""

    def goal(identifier, **more):
        return Element(identifier, Kind.GOAL, "t", **({"status": Status.DEFEATED} | more))

    case = Case(
        "t",
        (
            goal("G1", supported_by=("Sn1", "G2")),
            goal("G2", undeveloped=True, status=Status.UNDEVELOPED),
            Element("Sn1", Kind.SOLUTION, "t", defeated=True),
            Element("CG1", Kind.COUNTER_GOAL, "t", supported_by=("CG2",), challenges="Sn1", defeated=True),
            Element("CG2", Kind.COUNTER_GOAL, "t", supported_by=("CSn1",)),
            Element("CSn1", Kind.COUNTER_SOLUTION, "t"),
            Element("CG3", Kind.COUNTER_GOAL, "t", challenges="CG1"),
        ),
    )
    root = ElementTree.fromstring(gsn_svg(case))
    assert {each.id for each in case.elements} <= {"".join(text.itertext()) for text in root.iter(f"{SVG}text")}


def test_hostile_names_stay_texts():
    name = HOSTILE.replace("\ud800", "")
    text = gsn_svg(case_of([requirement(name, [point(0.5, "violated", (0.4, 0.6), environment=name)])], title=name))
    root = ElementTree.fromstring(text)
    assert not list(root.iter(f"{SVG}script"))
    assert not list(root.iter(f"{SVG}image"))
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert len(text) < 200_000


def test_statuses_are_words_and_defeat_is_a_cross():
    root = ElementTree.fromstring(gsn_svg(small()))
    words = ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]
    for word in ("violated, defeated", "inconclusive, defeated", "defeated", "undeveloped"):
        assert word in words
    crossed = [each for each in root.iter(f"{SVG}g") if any(path.get("stroke-opacity") for path in each)]
    names = {each.find(f"{SVG}title").text.partition(":")[0] for each in crossed}
    assert names == {each.id for each in small().elements if each.defeated}


def test_colours_can_be_read():
    """Contrast of status words on their ground, and of text, at least 4.5 (WCAG 2.1, 1.4.3)."""
    from verifier.evidence.case.svg import COLOURS

    def luminance(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colour, ground in COLOURS.values():
        for ink in (colour, "#333333", "#111111"):
            assert (luminance(ground) + 0.05) / (luminance(ink) + 0.05) >= 4.5
