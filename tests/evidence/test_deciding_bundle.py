"""Bundles about a world that decides: sound as built, proven from outside, and forgeries refused."""

import csv
import hashlib
import io
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from forged_bundles import certificate, forged, rewritten
from second_checker import complaint
from small_bundles import MATRICES, write_inputs, write_walker
from small_bundles import WALKER_MODEL as MODEL
from small_bundles import WALKER_SPEC as SPEC

from verifier.analysis import kernel
from verifier.analysis.settings import ConfidenceSettings
from verifier.evidence.bundle.archive import write_bundle
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_files
from verifier.evidence.findings import CheckedCount
from verifier.study.options import RunOptions

pytestmark = pytest.mark.usefixtures("results_made_once")

FEW = RunOptions(confidence=ConfidenceSettings(draws=500), strategies=True)
RUN = "results/run.json"
CERTIFICATE = "certificates/block001_requirement0{}_{}_01.json"
WANTED = {"stops": Fraction(3, 4), "little": Fraction(1, 4), "asked_min": Fraction(3, 4), "asked_max": Fraction(1)}
"""By hand, see the model."""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "case.toml").write_text("[exposure.ped]\nencounters = 240\nhours = 20\n")
    return make_bundle(Sources(*write_walker(folder), folder / "case.toml"), FEW)


def findings(report):
    assert not report.sound
    return {(each.file, each.where) for each in report.findings}


def test_it_is_sound_and_every_probability_of_the_run_is_proven(bundle):
    report = check_files("b", bundle.files)
    assert report.findings == ()
    counts = {one.what: one.count for one in report.checked}
    assert counts["probabilities, with their numerical bounds, that certificates prove"] >= 4
    assert not any("recomputed by the batch engine" in what for what in counts)
    assert {(one.requirement, one.verdict) for one in report.requirements} == {
        ("stops", "satisfied"), ("little", "violated"), ("asked_min", "no target"), ("asked_max", "no target"),
    }  # fmt: skip


def test_certificates_prove_the_least_and_the_greatest_probability(bundle):
    for number, wanted in enumerate(WANTED.values(), 1):
        low, high = (
            kernel.check(json.loads(bundle.files[CERTIFICATE.format(number, f"point_{side}")]))[0]
            for side in ("lower", "upper")
        )
        assert low <= wanted <= high
        assert high - low < Fraction(1, 10**25)
    proofs = [raw for path, raw in bundle.files.items() if path.startswith("certificates/")]
    assert [complaint(json.loads(raw)) for raw in proofs] == [None] * len(proofs)


def test_it_is_proven_from_outside(bundle, tmp_path):
    write_bundle(bundle.files, tmp_path / "b.zip")
    done = subprocess.run(
        [sys.executable, "-I", kernel.__file__, tmp_path / "b.zip"], capture_output=True, text=True, check=True
    )
    name = Path(CERTIFICATE.format(1, "point_lower")).name
    assert f"{name}: proven: P >= 0.75" in done.stdout
    assert "REJECTED" not in done.stdout


def test_what_the_world_does_is_in_the_run_and_in_the_trace_what_is_asked(bundle):
    told = {each["name"]: each["world"] for each in json.loads(bundle.files[RUN])["requirements"]}
    assert told["stops"]["decided"][0]["decides"] == {"push": "1"}
    assert {each["decides"]["push"] for each in told["asked_max"]["decided"]} == {"0"}
    rows = list(csv.DictReader(io.StringIO(bundle.files["trace.csv"].decode())))
    assert [(row["requirement"], row["target"]) for row in rows] == [
        ("stops", "Pmin >= 0.7"), ("little", "Pmax <= 0.2"), ("asked_min", "Pmin = ?"), ("asked_max", "Pmax = ?"),
    ]  # fmt: skip
    flat = list(csv.DictReader(io.StringIO(bundle.files["report/report.csv"].decode())))
    assert {"Pmin", "Pmax"} <= {row["asked"] for row in flat}


def test_everything_can_be_computed_again(bundle):
    report = check_files("b", bundle.files, recompute=True)
    assert report.findings == ()
    assert CheckedCount(4, "probabilities computed as exact fractions by Storm") in report.checked


def test_a_forgery_of_nothing_is_the_bundle(bundle):
    assert forged(bundle, {}, derive=True) == bundle.files


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda one: one.update(asked="Pmax"), "/requirements/0/asked"),
        (lambda one: one.pop("world"), "/requirements/0/world"),
        (lambda one: one["world"].update(probability=0.8), "/requirements/0/world/probability"),
        (lambda one: one["world"]["decided"][0]["decides"].update(push="0"), "/world/decided/0/decides/push"),
        (lambda one: one["world"]["decided"][0].update(visits=0.5), "/world/decided/0/visits"),
        (lambda one: one["world"]["decided"].pop(), "/world/decided"),
        (lambda one: one["points"][0].update(probability=1.0), "/points/0/probability"),
        (lambda one: one["points"][0].update(second_engine=1.0), "/points/0/second_engine"),
        (lambda one: one["points"][0].update(lower=0.76), "/points/0/lower"),
        (lambda one: one["points"][0]["uncertainty"]["confidence_bounds"].update(lower=0.74), "/lower"),
        (lambda one: one["points"][0]["uncertainty"]["confidence_bounds"].update(upper=0.76), "/upper"),
        (lambda one: one["target"].update(probability="1/2"), "/target/probability"),
        (lambda one: one.update(formula="F (lost)"), "/formula"),
    ],
)
def test_a_run_that_says_anything_else_is_found(change, expected, bundle):
    raw = rewritten(bundle.files[RUN], lambda run: change(run["requirements"][0]))
    told = findings(check_files("b", forged(bundle, {RUN: raw})))
    assert any(file == RUN and expected in where for file, where in told), told


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda one: one["world"]["decided"][0]["decides"].update(push="0"), "/world/decided/0/decides/push"),
        (lambda one: one.pop("world"), "/world"),
        (lambda one: one["violation"].update(probability=0.2), "/violation/probability"),
        (lambda one: one["violation"].update(satisfies_the_formula=True), "/violation/satisfies_the_formula"),
        (lambda one: one["violation"]["causes"][0].update(corrected=0.9), "/violation/causes/0/corrected"),
        (
            lambda one: one["violation"]["patterns"][0]["members"][0]["steps"][0]["after"].update(x=1),
            "/steps/0/after",
        ),
        (lambda one: one["violation"]["patterns"][0]["members"][0]["steps"][0].update(probability="1/3"), "/steps/0"),
        (lambda one: one.update(asked="Pmax"), "/asked"),
    ],
)
def test_an_explanation_of_other_choices_is_found(change, expected, bundle):
    path = "results/explain.json"
    raw = rewritten(bundle.files[path], lambda content: change(content["explanations"][0]))
    told = findings(check_files("b", forged(bundle, {path: raw})))
    assert any(file == path and expected in where for file, where in told), told


def test_another_recall_that_is_needed_is_found(bundle):
    path = "results/require/01_stops.json"
    required = json.loads(bundle.files[path])["answers"][0]
    assert required["value"] == "0.7"
    for point in ("measured", "at_value", "perfect"):
        raw = rewritten(
            bundle.files[path], lambda each, point=point: each["answers"][0][point].update(probability=0.8)
        )
        told = findings(check_files("b", forged(bundle, {path: raw})))
        assert any(file == path and f"/{point}" in where for file, where in told), told
    raw = rewritten(bundle.files[path], lambda each: each["requirement"].update(asked="Pmax"))
    assert (path, "/requirement/asked") in findings(check_files("b", forged(bundle, {path: raw})))


def without_a_way(name):
    """The certificate's subject without a choice of the world in the first state, in which it has two."""

    def change(each):
        subject = each["subject"]
        assert subject["owner"][:2] == [0, 0]
        for part in ("owner", "row", "following", "moving"):
            if part in subject:
                del subject[part][0 if name == "first" else 1]

    return change


@pytest.mark.parametrize(
    ("path", "change"),
    [
        (CERTIFICATE.format(1, "point_lower"), without_a_way("first")),
        (CERTIFICATE.format(1, "point_lower"), without_a_way("second")),
        (CERTIFICATE.format(1, "lower"), without_a_way("second")),
        (CERTIFICATE.format(4, "point_upper"), without_a_way("first")),
        (CERTIFICATE.format(1, "point_lower"), lambda each: each["subject"].pop("owner")),
        (CERTIFICATE.format(1, "point_lower"), lambda each: each["subject"]["owner"].__setitem__(1, 1)),
        (CERTIFICATE.format(1, "point_lower"), lambda each: each["claimed"].__setitem__(0, 1.0)),
        (CERTIFICATE.format(1, "point_upper"), lambda each: each["claimed"].__setitem__(0, 0.5)),
        (CERTIFICATE.format(1, "point_upper"), lambda each: each["subject"]["following"][0].__setitem__(0, 0)),
        (CERTIFICATE.format(1, "upper"), lambda each: each["subject"]["row"].pop()),
        (CERTIFICATE.format(1, "upper"), lambda each: each["boxes"][0]["value"].__setitem__(0, 0.0)),
    ],
)
def test_a_certificate_about_other_choices_is_refused(path, change, bundle):
    told = findings(check_files("b", forged(bundle, certificate(bundle, change, path))))
    assert any(file == path for file, _ in told), told


def test_the_proof_of_another_end_or_of_the_other_requirement_is_refused(bundle):
    for one, other in ((3, 4), (1, 2)):
        for side in ("point_lower", "point_upper", "lower", "upper"):
            first, second = (CERTIFICATE.format(number, side) for number in (one, other))
            swapped = {first: bundle.files[second], second: bundle.files[first]}
            if bundle.files[first] != bundle.files[second]:
                assert {file for file, _ in findings(check_files("b", forged(bundle, swapped)))} & {first, second}


def test_a_model_whose_world_decides_less_gives_another_bundle(bundle, tmp_path):
    """With the results of the world that may push, and every hash right, nothing of them stands."""
    model = "inputs/models/two_looks.toml"
    text = bundle.files[model].decode()
    altered = text.replace("push = { range = [0, 1] }", 'push = { range = [0, 1], admissible = "push = 0" }')
    assert altered != text
    old, new = (hashlib.sha256(each.encode()).hexdigest() for each in (text, altered))
    results = {path: raw for path, raw in bundle.files.items() if path.startswith("results/")}
    changes = {path: raw.replace(old.encode(), new.encode()) for path, raw in results.items()}
    changes = {path: rewritten(raw, lambda _: None) for path, raw in changes.items()}
    told = findings(check_files("b", forged(bundle, {**changes, model: altered.encode()})))
    assert (RUN, "/requirements/0/points/0/probability") in told
    inputs = write_inputs(tmp_path, SPEC, MATRICES, MODEL.replace("push = { range = [0, 1] }",
                          'push = { range = [0, 1], admissible = "push = 0" }'))  # fmt: skip
    assert make_bundle(Sources(*inputs), FEW).verdict == "satisfied"
