"""The clause trace of a bundle: pointers that resolve, grades that hold, and the same rows in CSV, HTML and ReqIF."""

import csv
import hashlib
import io
import json
import re
from fnmatch import fnmatchcase

import pytest
from html_reading import read_page
from reqif.parser import ReqIFParser
from reqif.unparser import ReqIFUnparser
from small_bundles import write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_files
from verifier.evidence.bundle.derived_artefacts import DERIVED
from verifier.evidence.bundle.trace import clauses
from verifier.evidence.context import DUTIES
from verifier.evidence.identity import SBOM_FILE, environment_texts
from verifier.study.options import RunOptions

pytestmark = pytest.mark.usefixtures("results_made_once")

FEW = RunOptions(confidence=ConfidenceSettings(draws=100))
CASE = """
[document]
id = "SC-12"
revision = "B"
author = "A. A."
reviewer = "R. R."
approver = "P. P."
issued = 2026-05-28
organisation = "Test House"
location = "Town"
customer = "Maker"
received = "not applicable"
performed = "May 2026"
sampling = "P-3"
[responsible]
odd = "O. O."
[exposure.every]
per_hour = 12
[condition.all]
share = 1
matrices = "matrices.json"
[hazard.H1]
event = "stops"
accept_harm_per_hour = 40
[trigger.fog]
text = "Fog"
"""
EVIDENCE = """
[evidence.{0}]
claim = {1}
title = "{0}"
file = "doc.txt"
author = "N. N."
date = 2026-05-04
"""
DUTIES_SHOWN = ("acceptance", "test_data", "memory", "statistics")


@pytest.fixture(scope="module", params=["bare", "whole"])
def files(request, tmp_path_factory):
    """A bundle with nothing stated, and one with identity, risk, and documents for what decides."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "doc.txt").write_text("x")
    text = CASE + "".join(EVIDENCE.format(name, json.dumps(name)) for name in DUTIES_SHOWN)
    (folder / "case.toml").write_text(text if request.param == "whole" else "")
    return make_bundle(Sources(*write_inputs(folder), folder / "case.toml"), FEW).files


def rows_of(files):
    return {row["clause"]: row for row in csv.DictReader(io.StringIO(files["trace/clauses.csv"].decode()))}


def test_every_pointer_resolves_to_a_file_with_this_hash(files):
    pointers = [each for row in rows_of(files).values() for each in row["files"].split("; ") if each]
    assert len(pointers) >= 40
    for each in pointers:
        path, digest = each.rsplit(" ", 1)
        assert hashlib.sha256(files[path]).hexdigest() == digest, each
    assert check_files("b", files).sound


def test_covered_is_only_what_is_whole_and_proven_to_documented(files):
    whole = "risk.json" in files
    for clause, row in rows_of(files).items():
        asked = next(each for each in clauses() if each.id == clause)
        there = [any(fnmatchcase(path, pattern) for path in files) for pattern in asked.files]
        assert row["status"] in ("covered", "partly", "by others", "not covered")
        if row["status"] == "covered":
            assert asked.best == "covered"
            assert all(there)
            assert row["grade"] in ("proven", "recomputed", "tested", "documented")
            assert not row["open"]
        if asked.best in ("covered", "partly"):
            assert (row["status"] == "not covered") == (not any(there)) or row["open"]
        if asked.best == "none":
            assert row["status"] == "not covered"
    rows = rows_of(files)
    assert rows["ISO 21448 6.5"]["status"] == ("covered" if whole else "not covered")
    assert rows["ISO 26262-8 10"]["status"] == ("covered" if whole else "partly")
    assert rows["ISO/IEC 17025 7.8.2.1"]["status"] == ("covered" if whole else "partly")
    assert "sbom.cdx.json" in rows["ISO 26262-8 11.4.4"]["files"]
    assert not any("no file" in row["open"] for name, row in rows.items() if name.startswith("ISO 26262-8 11"))
    assert rows["ISO 21448 13"]["owner"] == ("O. O." if whole else "not stated")
    assert rows["AMLAS stage 5, Z to CC"]["open"] == "rests on what is untested"  # nobody shows independence


def test_the_template_names_only_files_that_the_program_writes_and_duties_that_people_have():
    inputs = ("inputs/*", "inputs/matrices/*", "inputs/context/*", "inputs/*.ltl", "inputs/*.toml", "request.json")
    results = ("results/run.json", "results/explain.json", "results/require/*", "certificates/*")
    derived = [each.path for each in DERIVED] + [SBOM_FILE, *environment_texts()]
    for each in clauses():
        assert each.best in ("covered", "partly", "others", "none")
        assert (each.duty or "odd") in DUTIES
        for pattern in each.files:
            made = any(pattern == path or (path.endswith("/") and pattern.startswith(path)) for path in derived)
            assert made or pattern in (*inputs, *results), pattern
    names = [each.id for each in clauses()]
    assert len(names) == len(set(names)) >= 38
    # One row at least of every standard that the specification of the trace lists.
    for standard in ("ISO 21448", "ISO 26262-2", "ISO 26262-8", "ISO/PAS 8800", "AMLAS", "UL 4600", "ISO/IEC 17025"):
        assert any(name.startswith(standard) for name in names)


def test_numbers_are_said_to_be_unconfirmed_in_every_form(files):
    said = "Clause numbers are to be confirmed against the licensed texts"
    assert said in files["trace/clauses.html"].decode()
    assert said in files["trace/clauses.reqif"].decode()


def test_the_page_has_the_same_rows(files):
    text = read_page(files["trace/clauses.html"].decode()).text
    for row in rows_of(files).values():
        assert row["clause"] in text
        assert re.sub(r"\s+", " ", row["answer"]) in re.sub(r"\s+", " ", text)


def test_reqif_is_read_and_written_again_by_its_library_without_loss(files, tmp_path):
    (tmp_path / "a.reqif").write_bytes(files["trace/clauses.reqif"])
    bundle = ReqIFParser.parse(str(tmp_path / "a.reqif"))
    found = {
        each.long_name: {value.definition_ref.removeprefix("attribute-"): value.value for value in each.attributes}
        for each in bundle.core_content.req_if_content.spec_objects
    }
    rows = rows_of(files).items()
    assert found == {name: {key: text for key, text in row.items() if text} for name, row in rows}
    (tmp_path / "b.reqif").write_text(ReqIFUnparser.unparse(bundle))
    again = ReqIFParser.parse(str(tmp_path / "b.reqif"))
    assert [
        (each.identifier, [value.value for value in each.attributes])
        for each in again.core_content.req_if_content.spec_objects
    ] == [
        (each.identifier, [value.value for value in each.attributes])
        for each in bundle.core_content.req_if_content.spec_objects
    ]
    (whole,) = again.core_content.req_if_content.specifications
    assert len(whole.children) == len(found)
