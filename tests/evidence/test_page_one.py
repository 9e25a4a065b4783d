"""Page one of the report: system, domain, detector, what nobody stated, and what would defeat the verdicts."""

import re

import pytest
from html_reading import read_page, section, table
from report_documents import document
from small_bundles import MODEL, write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.report import html_report
from verifier.study.options import RunOptions, Selection

pytestmark = pytest.mark.usefixtures("results_made_once")

STATED = """
[system]
name = "Car with an emergency brake"
[odd]
description = "Urban roads in daylight"
[detector]
name = "YOLOv3"
version = "1.2"
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle")
    model = MODEL.replace('next = "min(x + go, 2)"', 'next = "min(x + go, 2)", unit = "cells"')
    (folder / "case.toml").write_text(STATED)
    sources = Sources(*write_inputs(folder, model=model), str(folder / "case.toml"))
    files = make_bundle(sources, RunOptions(confidence=ConfidenceSettings(draws=50))).files
    return files["report/report.html"].decode()


def test_the_system_its_domain_and_its_detector_stand_with_the_verdicts(page):
    told = dict(table(section(read_page(page), "verdicts"), "What was assessed"))
    assert told == {
        "System": "Car with an emergency brake",
        "Operational design domain": "Urban roads in daylight",
        "Detector": "YOLOv3, 1.2",
        "State": "x from 0 to 2 (cells); s from 0 to 1",
        "The planner sets": "go from 0 to 1",
        "Planner careful": "where sees(ped): go = 0; otherwise: go = 1",
        "Environment ped": "ped at 5 m",
        "Environment empty": "empty at 5 m",
    }


def test_what_would_defeat_the_verdicts_names_requirement_and_remedy(page):
    text = section(read_page(page), "verdicts").text
    assert "What would defeat these verdicts:" in text
    assert re.search(
        r"D1 the bounds straddle the target, against drives_on. It would be answered by: about \d+ more", text
    )


def test_what_is_not_stated_is_one_list(page):
    root = section(read_page(page), "verdicts")
    (folded,) = [each for each in root.all() if each.tag == "details"]
    items = [each.text for each in folded.all() if each.tag == "li"]
    assert items[:3] == ["what the detector was trained on", "the test data in words", "how often encounters come"]
    assert items[-1] == (
        "of the matrices matrices.json: how detections were matched, what became of unmatched detections, the "
        "drives, the source and in the record of their data set 21 of 21 items"
    )
    assert folded.text.startswith(f"Not stated: {len(items)} items")
    assert not any(each == "its operational design domain" for each in items)


def test_results_alone_say_what_they_hold_of_the_system():
    told = dict(table(read_page(html_report([document("run")])), "What was assessed"))
    assert told["Model of the system"].startswith("car_pedestrian.toml (SHA-256 ")
    assert told["Environments"] == "ped; obs; empty"
    assert told["Planners"] == "published (runs)"
    assert told["Not in these results"].startswith("the model itself, and what people state of system")


def test_the_verdicts_and_the_system_fit_the_first_sheet(browser, page, tmp_path):
    """A4 at 96 pixels an inch is 1123 high, 2 x 14 mm of it margins."""
    (tmp_path / "page.html").write_text(page)
    seen = browser.new_context(viewport={"width": 688, "height": 1000}).new_page()
    seen.goto((tmp_path / "page.html").as_uri())
    seen.emulate_media(media="print")
    ends = [
        seen.get_by_text(text).first.bounding_box()
        for text in ("What was assessed", "What would defeat", "Not stated")
    ]
    assert all(end["y"] + end["height"] < 1017 for end in ends)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_have_no_ground_of_their_own_on_a_dark_page(browser, page, tmp_path, scheme):
    (tmp_path / "page.html").write_text(page)
    seen = browser.new_context(color_scheme=scheme).new_page()
    seen.goto((tmp_path / "page.html").as_uri())
    grounds = seen.evaluate(
        "Array.from(document.querySelectorAll('figure svg')).map(e => getComputedStyle(e).backgroundColor)"
    )
    assert set(grounds) == {"rgba(0, 0, 0, 0)"}
    lines = seen.evaluate(
        "Array.from(document.querySelectorAll('figure svg text')).map(e => getComputedStyle(e).fill)"
    )
    assert ("rgb(34, 34, 34)" in lines) == (scheme == "light")


def test_a_bundle_of_two_requirements_prints_on_ten_pages(browser, root, tmp_path):
    """Of the published system: sentences, how each fails, rates, all matrices, the trace and the provenance."""
    chosen = RunOptions(
        Selection(requirements=("stops_for_pedestrians", "never_stalls_early")),
        confidence=ConfidenceSettings(draws=50),
    )
    given = [root / part for part in ("specs/car_pedestrian.ltl", "examples/nuscenes_yolov3_class.json",
                                      "examples/14_evidence_bundle.toml")]  # fmt: skip
    files = make_bundle(Sources(*map(str, given)), chosen).files
    (tmp_path / "page.html").write_bytes(files["report/report.html"])
    seen = browser.new_context().new_page()
    seen.goto((tmp_path / "page.html").as_uri())
    printed = seen.pdf(format="A4", prefer_css_page_size=True)
    assert 5 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 10
