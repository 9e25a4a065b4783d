"""The report of a bundle on paper: every page says of which document it is, and the last one that it is the last."""

import hashlib
import html
import json
import re
import shutil
import subprocess

import pytest
from html_reading import read_page, section, table
from small_bundles import write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.study.options import RunOptions, Selection

pytestmark = pytest.mark.usefixtures("results_made_once")

REPORT = "report/report.html"
FEW = RunOptions(confidence=ConfidenceSettings(draws=100))
STATED = """
[document]
id = "SC-12"
revision = "B"
issued = 2026-05-28
author = "A. A."
reviewer = "R. R."
approver = "P. P."
organisation = "Test House, Street 1, Town"
location = "Town"
customer = "Maker"
received = 2026-05-04
performed = "2026-05-05 to 2026-05-20"
sampling = "plan P-3"
[system]
name = "Car with an emergency brake"
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The files of a bundle with everything of the document stated."""
    folder = tmp_path_factory.mktemp("bundle")
    (folder / "case.toml").write_text(STATED)
    return make_bundle(Sources(*write_inputs(folder), str(folder / "case.toml")), FEW).files


@pytest.fixture(scope="module")
def example(root):
    """The files of example 14 with two requirements, of which nothing of the document is stated."""
    given = ("specs/car_pedestrian.ltl", "examples/nuscenes_yolov3_class.json", "examples/14_evidence_bundle.toml")
    chosen = Selection(requirements=("stops_for_pedestrians", "never_stalls_early"))
    return make_bundle(
        Sources(*(str(root / name) for name in given)), RunOptions(chosen, confidence=FEW.confidence)
    ).files


def printed(browser, files, path, folder):
    """Of each page of a PDF that Chromium prints: (width, height) in points, and (left, top, right, below, word)."""
    if shutil.which("pdftotext") is None:
        pytest.skip("there is no pdftotext")
    (folder / "page.html").write_bytes(files[path])
    seen = browser.new_context().new_page()
    seen.goto((folder / "page.html").as_uri())
    seen.pdf(path=folder / "page.pdf", format="A4", prefer_css_page_size=True)
    told = subprocess.run(
        ["pdftotext", "-bbox", folder / "page.pdf", "-"], capture_output=True, text=True, check=True
    )
    pages = re.findall(r'<page width="([\d.]+)" height="([\d.]+)">(.*?)</page>', told.stdout, flags=re.DOTALL)
    word = re.compile(r'<word xMin="([-\d.]+)" yMin="([-\d.]+)" xMax="([-\d.]+)" yMax="([-\d.]+)">(.*?)</word>')
    return [
        (
            (float(width), float(height)),
            [(*map(float, each[:4]), html.unescape(each[4])) for each in word.findall(text)],
        )
        for width, height, text in pages
    ]


@pytest.fixture(scope="module")
def paper(browser, small, example, tmp_path_factory):
    """The printed pages of both reports."""
    files = {"small": small, "example": example}
    return {name: printed(browser, each, REPORT, tmp_path_factory.mktemp(name)) for name, each in files.items()}


def lines(words):
    """The words of a page in lines, from top to bottom: words that stand at one height."""
    found, last = [], -10.0
    for left, _, _, below, word in sorted(words, key=lambda each: each[3]):
        if below > last + 1.5:
            found.append([])
        last = below
        found[-1].append((left, word))
    return [" ".join(word for _, word in sorted(line)) for line in found]


def digest(files):
    """SHA-256 of what sha256sum prints for inputs and results."""
    entries = json.loads(files["manifest.json"])["files"]
    paths = [each["path"] for each in entries if each["role"] != "derived"]
    assert {"request.json", "results/run.json"} <= {*paths}
    listed = (f"{hashlib.sha256(files[path]).hexdigest()}  {path}\n" for path in sorted(paths))
    return hashlib.sha256("".join(listed).encode()).hexdigest()


def test_every_page_says_which_document_it_is_which_page_and_of_how_many(paper, small):
    pages = paper["small"]
    mark = f"SC-12, revision B, 2026-05-28, SHA-256 of inputs and results {digest(small)[:12]}"
    for number, (_, words) in enumerate(pages, 1):
        told = lines(words)
        assert told[0].startswith("made up: two_looks.ltl")
        assert told[0].endswith(mark)
        assert told[-1] == f"page {number} of {len(pages)}"
    assert lines(pages[-1][1])[-2].endswith("End of the document.")


@pytest.mark.parametrize("given", ["small", "example"])
def test_nothing_is_cut_off_and_everything_is_legible(paper, given):
    pages = paper[given]
    assert len(pages) <= 10 or given == "small"  # which has a requirement more
    for (width, height), words in pages:
        assert (width, height) == (pytest.approx(595.3, abs=1.5), pytest.approx(841.9, abs=1.5))
        for left, top, right, below, word in words:
            assert 0 <= left < right <= width, word
            assert 0 <= top < below <= height, word
            assert below - top >= 6, (word, below - top)


@pytest.mark.parametrize("given", ["small", "example"])
def test_no_table_begins_at_the_foot_of_a_page(paper, given, request):
    files = request.getfixturevalue(given)
    heads = [
        {word for cell in re.findall(r"<th[^>]*>(.*?)</th>", head) for word in html.unescape(cell).split()}
        for head in re.findall(r"<thead>(.*?)</thead>", files[REPORT].decode())
    ]
    captions = [html.unescape(each) for each in re.findall(r"<caption>(.*?)</caption>", files[REPORT].decode())]
    assert len(heads) > 5
    for _, words in paper[given]:
        last = lines(words)[-2]
        assert last not in captions
        assert not any(set(last.split()) <= head for head in heads), last


def test_page_one_on_paper_has_it_all_in_its_order(paper):
    """Which document, what each verdict is and rests on, what was assessed, and what would defeat it."""
    words = " ".join(lines(paper["small"][0][1]))
    parts = ["made up: two_looks.ltl", "SC-12", "2026-05-28", "A. A.", "R. R.", "P. P.", "Results relate only",
             "Status over all runs", "drives_on", "Car with an emergency brake", "What would defeat"]  # fmt: skip
    places = [words.find(each, 1 + words.find("Verdicts") if k else 0) for k, each in enumerate(parts)]
    assert -1 not in places, parts[places.index(-1)]
    assert places == sorted(places)


def test_page_one_has_identity_people_and_what_each_verdict_rests_on(small):
    root = section(read_page(small[REPORT].decode()), "verdicts")
    told = dict(table(root, "This document"))
    assert {
        "Document id": "SC-12",
        "Revision": "B",
        "Issue date": "2026-05-28",
        "Approver": "P. P.",
    }.items() <= told.items()
    assert told["SHA-256 of inputs and results"] == digest(small)
    assert "Results relate only to the inputs that are listed under Provenance." in root.text
    rows = {row[0]: row for row in table(root, "Status of every requirement")}
    assert re.fullmatch(
        r"95 % confidence bounds \(if items are independent\) \[0\.\d+, 0\.\d+\]; target >= 0.85",
        rows["drives_on"][3],
    )
    assert "the bounds straddle the target (open)" in rows["drives_on"][4]


FIELDS = {
    "b": "Test House, Street 1, Town", "c": "Town", "e": "Maker", "h": "2026-05-04", "i": "2026-05-05 to 2026-05-20",
    "j": "2026-05-28", "k": "plan P-3", "o": "P. P.", "p": "none",
}  # fmt: skip


def test_every_field_of_a_test_report_has_an_answer(small, example):
    for files in (small, example):
        rows = table(section(read_page(files[REPORT].decode()), "fields"), "ISO/IEC 17025:2017, 7.8.2.1")
        assert [row[0] for row in rows[1:]] == list("abcdefghijklmnop")
        assert all(row[2] for row in rows)
        stated = {row[0]: row[2] for row in rows if row[0] in FIELDS}
        missing = dict.fromkeys(FIELDS, "not stated") | {"p": "none"}
        assert stated == (FIELDS if files is small else missing)


def test_settings_are_told_once(example):
    text = example[REPORT].decode()
    tables = re.findall(r"<caption>Settings of ([^<]*)</caption>(.*?)</table>", text, flags=re.DOTALL)
    assert [name for name, _ in tables].count("run.json") == 1
    assert len(tables) == 4
    assert all(("as of run.json" in each) == (name != "run.json") for name, each in tables)


def test_a_hostile_title_is_a_text_on_every_page_and_nothing_else(browser, tmp_path):
    spec, matrices = write_inputs(tmp_path)
    title = '\\"}body{display:none}</style><script>alert(1)</script> \u202e 漢字'
    matrices.write_text(matrices.read_text().replace('"made up"', json.dumps(title)))
    files = make_bundle(Sources(spec, matrices), FEW).files
    text = files[REPORT].decode()
    assert text.count("<style>") == text.count("</style>") == 1
    assert "<script>alert" not in text
    pages = printed(browser, files, REPORT, tmp_path)
    assert all("body{display:none}</style><script>" in lines(words)[0] for _, words in pages)
