"""The bundles that examples 14 and 15 build: the same bytes a second time, sound, and opened in a real browser."""

import contextlib
import io
import re
import runpy
import sys
import tempfile

import pytest

from verifier.evidence.bundle.archive import read_bundle
from verifier.evidence.bundle.check import check_bundle

EXAMPLES = {
    "published matrices": (
        "14_evidence_bundle.py",
        ["stops_only_for_pedestrians", "stops_for_pedestrians", "never_stalls_early", "all_three"],
    ),
    "KITTI detectors": ("15_evidence_for_kitti.py", ["stops_only_for_pedestrians", "stops_for_pedestrians"]),
}
SHOWN = """
() => ({
  scrolls: document.documentElement.scrollWidth > innerWidth,
  empty: Array.from(document.querySelectorAll('svg')).filter(each => each.getBoundingClientRect().width < 20).length,
})
"""

pytestmark = pytest.mark.slow  # four bundles are built; small ones are in test_bundle.py


def built(example, folder):
    """Run an example that leaves its bundle in the folder; gives the bundle's path."""
    real = tempfile.TemporaryDirectory

    def directory(*given, **named):
        return real(*given, **named) if given or named else contextlib.nullcontext(str(folder))

    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        # Example 14 is told where its bundle goes; example 15 writes below a folder of its own.
        patch.setattr(sys, "argv", [example.name, *([str(folder / "bundle")] if "14" in example.name else [])])
        patch.setattr(tempfile, "TemporaryDirectory", directory)
        runpy.run_path(str(example), run_name="__main__")
    return folder / "bundle"


@pytest.fixture(scope="module", params=EXAMPLES)
def bundle(request, root, tmp_path_factory):
    """A bundle, the same built again, and the requirements that were run."""
    example, names = EXAMPLES[request.param]
    places = [tmp_path_factory.mktemp(name) for name in ("one", "two")]
    return *(built(root / "examples" / example, place) for place in places), names


def test_counter_solutions_stand_beside_their_counter_goals(bundle):
    """And no name of a class of the program is in any text."""
    text = read_bundle(bundle[0])["case/gsn_print.html"].decode()
    parts = re.split(r'<g transform="translate', text)
    alone = [names for part in parts if (names := set(re.findall(r"<title>(CSn|CG)\d+:", part))) == {"CSn"}]
    assert alone == []
    assert text.count("<title>CSn") > 2
    assert not re.search(r"\w+\(\w+=", text)


def test_a_second_build_has_the_same_bytes_and_both_are_sound(bundle):
    first, second, _ = bundle
    files = read_bundle(first)
    assert files == read_bundle(second)
    assert {"report/report.html", "case/gsn.svg", "case/gsn.yaml", "ci/junit.xml", "trace.csv"} <= files.keys()
    assert check_bundle(second).findings == ()


@pytest.mark.parametrize("width", [1400, 360])
def test_the_report_opens_in_a_browser_and_asks_for_nothing(bundle, browser, width):
    first, _, names = bundle
    page, asked, complaints = opened(browser, first / "report/report.html", width)
    assert asked == [(first / "report/report.html").as_uri()]
    assert complaints == []
    assert page.evaluate(SHOWN) == {"scrolls": False, "empty": 0}
    verdicts = page.locator("#verdicts").inner_text()
    assert all(name in verdicts for name in names)
    assert "violated" in verdicts
    assert page.locator("svg").count() >= 1


def test_the_drawing_of_the_case_opens_in_a_browser(bundle, browser):
    first, _, names = bundle
    page, asked, complaints = opened(browser, first / "case/gsn.svg", 1400)
    assert (len(asked), complaints) == (1, [])
    text = page.locator("svg").text_content()
    assert all(name in text for name in names)
    assert "AMLAS: Stage 2, G2.1" in text


def opened(browser, file, width):
    """The page, what it asked for, and what the console says."""
    page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(file.as_uri())
    return page, asked, complaints
