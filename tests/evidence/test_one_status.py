"""One status of each requirement over all runs of a bundle, in every document; given results prove nothing."""

import json
import random
import re
from dataclasses import replace
from fractions import Fraction

import pytest
import yaml
from brake import FEW, HIT, ORDER, PHANTOM, VACUOUS, built, statuses, write, write_run
from cyclic_bundles import write_cyclic
from document_edits import summed
from forged_bundles import forged
from gsn_rules import complaints
from random_contexts import random_answers, random_context

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import InputError
from verifier.checking.process import StormProcess
from verifier.cli.evidence import build_text, check_text
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_files
from verifier.evidence.bundle.request import request_of
from verifier.evidence.bundle.runs_elsewhere import given_run, refuse_unfounded, wrong_given
from verifier.evidence.consistency import check_document
from verifier.evidence.documents import document_of
from verifier.evidence.findings import CheckedCount
from verifier.language.expressions import Source, parse_expression
from verifier.pipeline import verify_spec
from verifier.study.options import RunOptions, Selection

pytestmark = pytest.mark.usefixtures("results_made_once")

GIVEN = "inputs/given/night_run.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = write(tmp_path_factory.mktemp("brake"))
    write_run(found, "night", "night_run.json")
    return found


@pytest.fixture(scope="module")
def both(folder):
    """The own run is of the day; a run of the night and its matrices are put in."""
    return built(folder, "night_run.json", "night.json")


def last_line(text):
    """The last line of what is printed, which may be wrapped."""
    return " ".join(text[text.rindex("\nstatus: ") :].split())


def agreed(bundle):
    """The status of each requirement, which all documents state alike."""
    found = statuses(bundle.files)
    first = found["trace.csv"]
    assert complaints(yaml.safe_load(bundle.files["case/gsn.yaml"])) == []
    assert all(each == first for each in found.values()), found
    printed = {(one.requirement, one.planner): one.status.value for one in bundle.standings}
    assert printed == first
    report = check_files("b", bundle.files)
    assert report.findings == ()
    said, checked = (last_line(text) for text in (build_text(bundle, "b"), check_text(report)))
    assert said == checked
    worst = max(first.values(), key=ORDER.index)
    assert said.startswith(f"status: {worst}: ")
    assert ("; the assurance case as a whole: " in said) == (ORDER.index(bundle.case.value) > ORDER.index(worst))
    told = {
        (one.requirement, one.planner): re.split("[: ]", one.status)[0] for one in report.requirements if one.status
    }
    assert told.items() <= first.items()
    return first


def test_a_run_that_violates_is_told_by_every_document(both):
    assert agreed(both)["no_hit", "brake"] == "violated"
    last = "status: violated: no_hit [planner brake] of given/night_run.json: P = 0.81 in ped x=0 v=2, if items are"
    assert build_text(both, "b").splitlines()[-1].startswith(last)
    report = check_files("b", both.files)
    assert int(report.exit_code) == 0  # it is sound
    assert CheckedCount(1, "given runs computed again from their inputs and compared") in report.checked
    first = both.files["report/report.md"].decode().partition("**All requirements**")[0]
    assert "**Status over all runs: violated**" in first


def test_what_speaks_against_a_requirement_is_taken_without_its_inputs(folder):
    bundle = built(folder, "night_run.json")
    found = agreed(bundle)
    assert (found["no_hit", "brake"], found["no_phantom", "brake"]) == ("violated", "conditional")
    case = bundle.files["case/gsn.yaml"].decode()
    assert "run.json, not verified here" in case
    (said,) = [each for each in check_files("b", bundle.files).unchecked if "not verified here" in each]
    assert said == f"{GIVEN}, which is validated and not verified here: its inputs are not here: night.json"


def of_the_night(folder):
    """A change by which a result says that it is of the night's matrices."""

    def change(content):
        night = json.loads((folder / "night_run.json").read_text())
        content |= {"title": "night", "inputs": night["inputs"]}

    return change


def test_a_result_of_other_data_is_refused_or_found_wrong(folder):
    write_run(folder, "day", "forged.json", of_the_night(folder))
    with pytest.raises(InputError, match=r"without its inputs: its inputs are not here: night\.json"):
        built(folder, "forged.json")
    with pytest.raises(InputError, match=r"found 0\.99980\d*; expected 0\.81\d*, computed again from its inputs"):
        built(folder, "forged.json", "night.json")


@pytest.mark.slow
def test_whoever_makes_a_bundle_of_it_all_the_same_is_found_out(folder, both):
    forged_run = write_run(folder, "day", "forged.json", of_the_night(folder))
    report = check_files("b", forged(both, {GIVEN: forged_run.read_bytes()}, derive=True))
    wrong = [each for each in report.findings if each.where == "/requirements/0/points/0/probability"]
    assert [(each.file, each.expected[:4]) for each in wrong] == [(GIVEN, "0.81")]
    assert int(report.exit_code) == 4


def test_every_document_says_what_is_conditional_and_what_is_vacuous(folder):
    bundle = built(folder)
    found = agreed(bundle)
    assert found == {
        ("no_hit", "brake"): "conditional",
        ("no_phantom", "brake"): "conditional",
        ("vacuous_one", "brake"): "vacuous",
    }
    assert "no_hit, planner brake: conditional (on A1, A2: " in build_text(bundle, "b")
    case = bundle.files["case/gsn.yaml"].decode()
    assert 'status: "conditional on A1, A2"' in case


def alterations(seed, content):
    """A result of the day, changed in one of the things that a claim rests on, or in several."""
    rng = random.Random(seed)
    night = rng.random() < 0.7
    if night:
        content["inputs"][2] |= {"name": "night.json", "sha256": NIGHT[0]}
        content["title"] = "night"
    kind = ("none", "probability", "bounds", "verdict", "title", "hash", "settings")[
        seed % 7 if night else 1 + seed % 6
    ]
    one = content["requirements"][rng.randrange(2)]
    point = one["points"][rng.randrange(2)]
    if kind == "probability":
        shift = rng.choice([1e-3, 1e-5, 1e-6])
        for name in ("probability", "lower", "upper", "second_engine"):
            point[name] = max(0, point[name] - shift)
    elif kind == "bounds":
        bounds = point["uncertainty"]["confidence_bounds"]
        bounds["lower"] += (bounds["attained_lower"] - bounds["lower"] + 1e-5) * rng.random()
    elif kind == "verdict":
        for part in (one, *one["points"], content):
            part["verdict"] = "satisfied"
    elif kind == "title":
        content["title"] = "another"
    elif kind == "hash":
        content["inputs"][rng.randrange(3)]["sha256"] = f"{rng.randrange(16**64):064x}"
    elif kind == "settings":
        content["settings"]["confidence"]["seed"] += 1
    return content


NIGHT = []


def forgeries(folder, both, seeds):
    """How many forged results are refused, found wrong, or at best conditional; none may come out otherwise."""
    NIGHT[:] = [json.loads((folder / "night_run.json").read_text())["inputs"][2]["sha256"]]
    day = json.loads(both.files["results/run.json"])
    request = request_of(json.loads(both.files["request.json"]))
    counts = {"refused": 0, "wrong": 0, "conditional": 0}
    with StormProcess() as storm:
        for seed in seeds:
            raw = (json.dumps(summed(alterations(seed, json.loads(json.dumps(day)))), indent=2) + "\n").encode()
            files = {**both.files, GIVEN: raw}
            try:
                document = document_of(raw, GIVEN)
                check_document(document, GIVEN)
                given = given_run(document, request, files, RunOptions())
                refuse_unfounded(GIVEN, document, given)
            except InputError:
                counts["refused"] += 1
                continue
            if given.why_not:
                counts["conditional"] += 1
            else:
                wrong, _ = wrong_given(GIVEN, raw, given, storm)
                assert wrong, seed
                counts["wrong"] += 1
    return counts


def test_forged_results_support_nothing(folder, both):
    counts = forgeries(folder, both, (0, 1, 2, 3, 9, 11))
    assert sum(counts.values()) == 6
    assert min(counts["refused"], counts["wrong"]) > 0


@pytest.mark.slow
def test_two_hundred_forged_results_support_nothing(folder, both):
    assert sum(forgeries(folder, both, range(200)).values()) == 200


def random_bundle(folder, seed):
    """A bundle of a random system, or of random requirements on the brakes with random results put in, and with what
    people state at random: documents, hazards, and answers to its doubts."""
    rng = random.Random(seed)
    if rng.random() < 0.2:
        return make_bundle(Sources(*write_cyclic(folder, seed)), FEW)
    targets = {"0.99": rng.choice(["0.5", "0.8", "0.9999"]), "0.9 ": rng.choice(["0.99999 ", "0.9 "])}
    spec = "".join(rng.sample([HIT, PHANTOM, VACUOUS], rng.randrange(1, 4)))
    for old, new in targets.items():
        spec = spec.replace(old, new)
    write(folder, spec)
    own, given = rng.choice(["day", "night"]), []
    if rng.random() < 0.6:
        data = rng.choice(["day", "night"])
        verdict = json.loads(write_run(folder, data, "given_run.json").read_text())["verdict"]
        alone = data == own or (verdict == "violated" and rng.random() < 0.5)
        given = ["given_run.json", *([] if alone else [f"{data}.json"])]
    if rng.random() < 0.25:
        return built(folder, *given, data=own)
    names = [name for name in ("no_hit", "no_phantom", "vacuous_one") if name in spec]
    options = rng.choice([FEW, replace(FEW, false_positives="ignore"), replace(FEW, verdict_from="point")])
    text = random_context(folder, rng, names, own, risk=not given or data != own)
    context = folder / "case.toml"
    context.write_text(text)
    bundle = built(folder, *given, data=own, context=context, options=options)
    if answers := "\n".join(random_answers(bundle, rng)):
        context.write_text(f"{text}\n{answers}")
        bundle = built(folder, *given, data=own, context=context, options=options)
    return bundle


@pytest.mark.parametrize("seed", [1, 2])
def test_all_documents_of_a_random_bundle_agree(seed, tmp_path):
    assert agreed(random_bundle(tmp_path, seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(50))
def test_all_documents_of_many_random_bundles_agree(block, tmp_path):
    """500 of them."""
    for seed in range(10 * block, 10 * block + 10):
        (tmp_path / str(seed)).mkdir()
        assert agreed(random_bundle(tmp_path / str(seed), seed))


CONFIDENT = ConfidenceSettings(draws=20)


@pytest.mark.parametrize(
    "options",
    [
        FEW,
        RunOptions(confidence=None, verdict_from="point"),
        replace(FEW, verdict_from="interval", strict=True),
        replace(FEW, false_positives="background", canonical=True),
        replace(FEW, selection=Selection(environments=("ped",), settings={"line": 10}, requirements=("no_hit",))),
        replace(FEW, selection=Selection(sweeps={"line": (10, 12)})),
        replace(FEW, selection=Selection(initial=parse_expression("v = 2", Source("v = 2", "--initial")))),
        replace(FEW, confidence=replace(CONFIDENT, bounds="anytime", level=0.9, looks=3, seed=5)),
        replace(FEW, confidence=replace(CONFIDENT, bounds="items", interval="credible", shift=Fraction(1, 1000))),
        replace(FEW, confidence=replace(CONFIDENT, semantics="shared_matrix", prior="uniform")),
    ],
)
def test_runs_of_many_settings_are_made_again(options, folder, both):
    """What a result records of its settings is enough to make it again."""
    run = verify_spec(folder / "aeb.ltl", folder / "night.json", options)
    raw = run.json_text().encode()
    request = request_of(json.loads(both.files["request.json"]))
    given = given_run(document_of(raw, GIVEN), request, {**both.files, GIVEN: raw}, RunOptions())
    assert given.why_not == ""
    with StormProcess() as storm:
        assert wrong_given(GIVEN, raw, given, storm)[0] == []
