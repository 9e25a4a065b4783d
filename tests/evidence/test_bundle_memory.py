"""Bundles of detectors with memory: certificates by context, recomputation, and what verdicts rest on."""

import csv
import io
import json
from fractions import Fraction

import pytest
from context_cases import tracked_document
from forged_bundles import forged, rewritten
from small_bundles import MODEL, write_inputs

from verifier.analysis import kernel
from verifier.base.errors import UsageError
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_files
from verifier.perception.confusion.contexts import Contexts
from verifier.study.options import RunOptions

pytestmark = pytest.mark.usefixtures("results_made_once")

SPEC = """model "../models/two_looks.toml"
planner careful
environments ped
stops: P >= 0.5 [ F s = 1 ]
"""
ROWS = {"start": [100, 300], "right*1": [100, 900], "wrong*1": [240, 160], "wrong*2": [90, 10]}
"""Misses and hits. The car looks twice and misses somebody twice with the probability 1/4 * 6/10."""


def made(folder, p_value=0.5, rows=ROWS, model=MODEL, **options):
    tests = [{"label": "ped", "contexts": "run:2", "z": 3.0, "p_value": p_value, "permutations": 999}]
    written = tracked_document(rows, Contexts("run", 2), tests=tests)
    written["bins"][0]["distance_m"] = [0, 10]
    files = write_inputs(folder, SPEC, written, model)
    return make_bundle(Sources(*files), RunOptions(**{"memory": "run:2"} | options))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return made(tmp_path_factory.mktemp("memory"))


def findings(files, **more):
    return check_files("b", files, **more).findings


def test_the_kernel_proves_bounds_by_context(bundle):
    run = json.loads(bundle.files["results/run.json"])
    (point,) = run["requirements"][0]["points"]
    assert point["probability"] == 1 - 0.25 * 0.6
    paths = [path for path in bundle.files if path.startswith("certificates/") and "_point_" not in path]
    proven = {}
    for path in paths:
        content = json.loads(bundle.files[path])
        (bound,) = kernel.check(content)
        proven[content["side"]] = bound
        # Three looks can be needed: at first, and after one miss; each context is a bin of its own.
        assert {(each["bin"], each["true"]) for each in content["region"]["columns"]} == {(0, 0), (3, 0)}
        assert [each["counts"][0] for each in content["region"]["columns"]] == [[300, 100], [160, 240]]
    bounds = point["uncertainty"]["confidence_bounds"]
    for side in ("lower", "upper"):
        assert abs(proven[side] - Fraction(bounds[side])) <= Fraction(1, 2**52)
    assert findings(bundle.files) == ()


def test_everything_is_recomputed_with_the_same_memory(bundle):
    assert json.loads(bundle.files["request.json"])["asked"]["memory"] == "run:2"
    assert findings(bundle.files, recompute=True) == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda request: request["asked"].update(memory="run:1"),
        lambda request: request["asked"].update(memory="none"),
        lambda request: request["asked"].update(initial_context="wrong"),
        lambda request: request["asked"].update(assume_contexts=True),
    ],
)
def test_results_of_another_memory_are_found(bundle, change):
    wrong = findings(forged(bundle, {"request.json": rewritten_request(bundle, change)}))
    assert any(each.file == "results/run.json" for each in wrong)


def rewritten_request(bundle, change):
    content = json.loads(bundle.files["request.json"])
    change(content)
    return (json.dumps(content, indent=2) + "\n").encode()


def test_counts_moved_between_contexts_are_found(bundle):
    (path,) = (path for path in bundle.files if path.startswith("inputs/") and path.endswith("matrices.json"))

    def move(content):
        own = content["bins"][0]["contexts"]
        own["wrong*1"][0][0] += 100
        own["right*1"][0][0] -= 100

    wrong = findings(forged(bundle, {path: rewritten(bundle.files[path], move)}))
    assert any(each.file.startswith("certificates/") for each in wrong)


def test_case_and_trace_say_what_the_verdict_rests_on(bundle):
    (row,) = csv.DictReader(io.StringIO(bundle.files["trace.csv"].decode()))
    assert (row["verdict"], row["basis"]) == ("satisfied", "contexts")
    case = bundle.files["case/gsn.yaml"].decode()
    assert "etection errors depend on the past through run:2 of the object only" in case
    assert "no verdict rests on a model of the detector that the data contradict" in case
    report = bundle.files["report/report.md"].decode()
    assert "a detector that remembers run:2 and nothing else, which these data do not contradict" in report


def test_contradicted_contexts_decide_nothing_in_a_bundle(tmp_path):
    found = made(tmp_path, 0.001)
    (row,) = csv.DictReader(io.StringIO(found.files["trace.csv"].decode()))
    assert (row["verdict"], row["basis"]) == ("inconclusive", "")
    assert "the data contradict a detector that remembers run:2 and nothing else" in row["reason_of_verdict"]
    assert findings(found.files) == ()
    assumed = made(tmp_path, 0.001, assume_contexts=True)
    (row,) = csv.DictReader(io.StringIO(assumed.files["trace.csv"].decode()))
    assert (row["verdict"], row["basis"]) == ("satisfied", "assumed")
    assert findings(assumed.files) == ()


def test_another_rate_of_contexts_without_items_is_another_run(tmp_path):
    rows = {**ROWS, "wrong*1": [0, 0]}
    found = made(tmp_path, rows=rows, verdict_from="point")
    others = [path for path in found.files if "empty_contexts" in path and path.startswith("results/")]
    names = sorted(path.rpartition("/")[2] for path in others)
    assert names == ["empty_contexts_pool.json", "empty_contexts_prior.json"]
    (prior,) = (json.loads(found.files[path]) for path in others if "prior" in path)
    assert prior["requirements"][0]["points"][0]["probability"] == 1 - 0.25 * 0.5
    assert findings(found.files) == ()


def test_what_no_certificate_proves_is_refused(tmp_path):
    with pytest.raises(UsageError, match="--initial-context counted is a mean over initial states"):
        made(tmp_path, confidence=None, verdict_from="point", initial_context="counted")
    with pytest.raises(UsageError, match="--persist gives bounds alone"):
        made(tmp_path, memory=None, persist=3)


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """Two looks of two frames each, of which any report is enough."""
    model = "step_s = 2\nframe_s = 1\n" + MODEL.replace(
        "[planners.careful]\n", '[planners.careful]\nreading = "any"\n'
    )
    return made(tmp_path_factory.mktemp("frames"), model=model)


def test_bundles_of_several_frames_are_proven_and_recomputed(frames):
    (point,) = json.loads(frames.files["results/run.json"])["requirements"][0]["points"]
    assert point["probability"] == pytest.approx(1 - 0.25 * 0.6 * 0.9**2, abs=1e-12)
    bounds, proven = point["uncertainty"]["confidence_bounds"], {}
    for path in frames.files:
        if path.startswith("certificates/") and "_point_" not in path:
            content = json.loads(frames.files[path])
            (proven[content["side"]],) = kernel.check(content)
    assert set(proven) == {"lower", "upper"}
    (run,) = json.loads(frames.files["results/explain.json"])["explanations"][0]["violation"]["patterns"][0][
        "members"
    ]
    assert [each["after"]["frame of the step"] for each in run["steps"]] == [1, 0, 1, 0]
    for side, end in proven.items():
        assert abs(end - Fraction(bounds[side])) <= Fraction(1, 2**52)
    assert findings(frames.files) == ()
    assert findings(frames.files, recompute=True) == ()


def test_another_number_of_frames_is_found(frames):
    (path,) = (path for path in frames.files if path.startswith("inputs/") and path.endswith("two_looks.toml"))
    once = frames.files[path].replace(b"step_s = 2", b"step_s = 1")
    wrong = findings(forged(frames, {path: once}))
    assert any(each.file.startswith("certificates/") for each in wrong)
    assert any(each.file == "results/run.json" for each in wrong)
