"""Everything that is opened in a browser, under axe-core's rules: for people with a screen reader or a keyboard."""

import pytest
from gsn_cases import small
from report_documents import EVERY_KIND, documents

from verifier.evidence.case.sheets import gsn_svg
from verifier.evidence.report import html_report
from verifier.manual.pages import write_website


def violations(browser, *files, **settings):
    """What axe-core finds on pages that have something: rule, its effect, and the first elements."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    page, found = browser.new_context(**settings).new_page(), {}
    for file in files:
        page.goto(file.as_uri())
        told = axe.Axe().run(page).response
        assert told["passes"], "no rule was tried"
        found[file.name] = [
            (each["id"], each["impact"], len(each["nodes"]), [node["html"][:120] for node in each["nodes"][:3]])
            for each in told["violations"]
        ]
    page.context.close()
    return {name: wrong for name, wrong in found.items() if wrong}


WAYS = [{"color_scheme": "dark", "viewport": {"width": 390, "height": 800}}, {"color_scheme": "light"}]


@pytest.mark.every(2)
@pytest.mark.parametrize("settings", WAYS, ids=["dark and narrow", "light"])
def test_the_report_of_every_document(browser, tmp_path, settings):
    (tmp_path / "report.html").write_text(html_report(documents(*EVERY_KIND)))
    assert violations(browser, tmp_path / "report.html", **settings) == {}


@pytest.mark.every(2)
@pytest.mark.parametrize("settings", WAYS, ids=["dark and narrow", "light"])
def test_the_pages_of_the_manual(browser, tmp_path, settings):
    pages = sorted(write_website(str(tmp_path / "site")).parent.iterdir())
    assert violations(browser, *pages, **settings) == {}


def test_the_drawing_of_the_assurance_case(browser, tmp_path):
    svg = gsn_svg(small())
    (tmp_path / "case.svg").write_text(svg)
    page = f"<!doctype html><html lang='en'><title>case</title><main><h1>case</h1>{svg}</main></html>"
    (tmp_path / "case.html").write_text(page)
    assert violations(browser, tmp_path / "case.html") == {}


def test_axe_finds_what_is_wrong(browser, tmp_path):
    """A picture without a word and grey on white: a check that finds nothing here would find nothing anywhere."""
    (tmp_path / "bad.html").write_text("<p style='color:#ccc'>grey</p><img src='data:image/gif;base64,R0lGOD'>")
    assert {"image-alt", "color-contrast", "html-has-lang"} <= {
        name for name, *_ in violations(browser, tmp_path / "bad.html")["bad.html"]
    }
