"""Two bundles compared: a change of each row of the impact table makes exactly its claims fall."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.stats import chi2_contingency
from small_bundles import MATRICES, MODEL, SPEC, write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import InputError
from verifier.cli import main
from verifier.evidence.bundle.archive import read_bundle, write_bundle
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.changes.claims import compare_bundles
from verifier.evidence.changes.impact import CHANGES, IMPACT
from verifier.study.options import RunOptions

pytestmark = pytest.mark.usefixtures("results_made_once")

CONTEXT = """
[document]
id = "SC-12"
[odd]
description = "Dry roads by day"
[detector]
name = "eye"
version = "1"
weights = "abc"
sensor = "Front camera, roof"
[exposure.ped]
per_hour = 12
[exposure.empty]
per_hour = 100
[acceptance.stops]
per_hour = 2
[condition.day]
share = 0.5
matrices = "matrices.json"
[condition.rain]
share = 0.5
[hazard.H1]
event = "stops"
accept_harm_per_hour = 1
[trigger.fog]
text = "Fog"
"""
NIGHT = "[condition.night]\nshare = 0\n[hazard.H1]"
MET = {"met stops", "met drives_on"}
RISK = {
    "risk stops, rate, planner careful",
    "risk drives_on, rate, planner careful",
    "risk stops, hazard H1",
}
GROWN = {**MATRICES, "bins": [{"distance_m": [0, 10], "counts": [[330, 10], [110, 90]]}]}
OTHER = {**MATRICES, "bins": [{"distance_m": [0, 10], "counts": [[290, 10], [120, 90]]}]}
COUNTED = {**MATRICES, "matching": "IoU 0.5"}


def options(looks=2, **more):
    return RunOptions(confidence=ConfidenceSettings(draws=100, looks=looks, **more))


POINTS = RunOptions().point_alone()
NIGHTLY = {"distance_m": [0, 10], "counts": [[150, 10], [250, 90]]}


def built(folder, context=CONTEXT, spec=SPEC, matrices=MATRICES, model=MODEL, chosen=None, given=(), beside=None):
    folder.mkdir(parents=True)
    for each in beside.glob("*.txt") if beside else ():
        (folder / each.name).write_bytes(each.read_bytes())
    spec, matrices = write_inputs(folder, spec, matrices, model)
    (folder / "case.toml").write_text(context)
    sources = Sources(spec, matrices, folder / "case.toml", given)
    write_bundle(make_bundle(sources, chosen or options()).files, folder / "b")
    return str(folder / "b")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return built(tmp_path_factory.mktemp("base") / "x")


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """As `base`, of probabilities alone, for what makes no difference to intervals and bounds."""
    return built(tmp_path_factory.mktemp("points") / "x", chosen=POINTS)


def edited(old, new):
    assert old in CONTEXT
    return {"context": CONTEXT.replace(old, new)}


# Row of the table -> what is changed, and by hand from the specification which claims fall.
ROWS = {
    "detector": (edited('weights = "abc"', 'weights = "def"'), MET | {"training_data "}),
    "sensor": (edited("Front camera, roof", "Front camera, grille"), MET | {"training_data ", "test_data "}),
    "planner": ({"model": MODEL.replace("go = 0", "go = 1", 1)}, MET | {"model "}),  # which now never stops
    "odd_widened": (edited("Dry roads by day", "Roads by day"), RISK | {"odd ", "test_data ", "triggers "}),
    "odd_narrowed": (edited("Dry roads by day", "Dry, straight roads by day"), {"odd "}),
    "requirement": (
        {"spec": SPEC.replace("stops: P >= 0.9 ", "stops: P >= 0.8 ")},
        {"met stops", "requirements stops", "risk stops, rate, planner careful", "risk stops, hazard H1"},
    ),
    "exposure": (edited("per_hour = 12", "per_hour = 13"), RISK),
    "triggers": (edited('text = "Fog"', 'text = "Fog, and low sun"'), {"triggers "}),
    "more_data": ({"matrices": GROWN}, set()),
    "look": ({"matrices": GROWN, "chosen": options(looks=1)}, MET),
    "other_data": ({"matrices": OTHER}, MET | {"test_data ", "training_data "}),
    "counting": ({"matrices": COUNTED}, MET | {"counting "}),
    "options": ({"chosen": options(level=0.9)}, MET),
    "program": ({}, {"tool "}),
}  # fmt: skip


def fallen(found):
    return {f"{each.kind} {each.name}" for each in found.claims if each.falls_by}


def numbers_of(side, claim):
    """What the documents of a bundle say of a rate, a hazard, or all triggering conditions, without their inputs."""
    about, _, words = claim.name.partition(", ")
    if claim.kind == "triggers":
        given = json.loads(Path(side, "triggers.json").read_text())
        return [given["triggers"], given["pairs"], given["verdict"]]
    if words.startswith("hazard"):
        given = json.loads(Path(side, "risk.json").read_text())
        return [each for each in given["hazards"] + given["risks"] if each["name"] == words.split()[1]]
    found = [json.loads(path.read_text()) for path in sorted(Path(side, "rates").glob("*.json"))]
    kept = ("requirement", "per_hour", "bounds", "terms", "verdict")
    return [{key: each[key] for key in kept if key in each} for each in found if each["requirement"] == about]


def test_every_row_of_the_table_has_its_test():
    assert set(ROWS) == set(CHANGES) == set(IMPACT)


@pytest.mark.every(3)
@pytest.mark.parametrize("kind", ROWS)
def test_a_change_of_each_row_makes_exactly_its_claims_fall(kind, base, tmp_path, monkeypatch):
    changed, falls = ROWS[kind]
    if kind == "program":
        monkeypatch.setattr("verifier.evidence.bundle.manifest.__version__", "0.2.0")
    if kind == "look":  # the first bundle was built for one look, too
        base = built(tmp_path / "first", chosen=options(looks=1))
    new = built(tmp_path / "new", **changed)
    found = compare_bundles(base, new, "narrowed" if kind == "odd_narrowed" else "widened")
    assert fallen(found) == falls
    kinds = [each.kind for each in found.changes]
    assert kinds == (["more_data", "look"] if kind == "look" else [kind])
    assert all(each.falls_by in ((), (kind,)) for each in found.claims)
    runs = [json.loads(Path(side, "results/run.json").read_text())["requirements"] for side in (base, new)]
    for each in found.claims:
        if each.relation == "unaffected":
            assert each.reached_by[0] == each.reached_by[1]
            entries = [[one for one in run if one["name"] == each.name] for run in runs]
            assert each.kind != "met" or json.dumps(entries[0]) == json.dumps(entries[1])
            if each.kind in ("risk", "triggers"):
                assert numbers_of(base, each) == numbers_of(new, each) != []
        assert not each.falls_by or each.relation != "unaffected"


def test_equal_bundles_have_no_difference_and_every_claim_is_unaffected(base, capsys):
    found = compare_bundles(base, base)
    assert (found.changes, found.open_, {each.relation for each in found.claims}) == ((), 0, {"unaffected"})
    assert main(["evidence", "diff", base, base]) == 0
    assert "No claim falls." in capsys.readouterr().out


def test_several_changes_make_fall_what_each_does(base, tmp_path):
    context = CONTEXT.replace('version = "1"', 'version = "2"').replace("per_hour = 12", "per_hour = 13")
    found = compare_bundles(base, built(tmp_path / "new", context, SPEC.replace("0.85", "0.8")))
    assert [each.kind for each in found.changes] == ["detector", "requirement", "exposure"]
    assert fallen(found) == MET | RISK | {"training_data ", "requirements drives_on"}
    by = {f"{each.kind} {each.name}": each.falls_by for each in found.claims}
    assert by["risk drives_on, rate, planner careful"] == ("requirement", "exposure")


def test_conditions_that_come_or_go_widen_or_narrow_the_domain(base, tmp_path):
    wide = built(tmp_path / "wide", CONTEXT.replace("[hazard.H1]", NIGHT))
    found = compare_bundles(base, wide)
    assert [(each.kind, each.what) for each in found.changes] == [("odd_widened", ("conditions added: night",))]
    found = compare_bundles(wide, base)
    assert [(each.kind, each.what) for each in found.changes] == [("odd_narrowed", ("conditions left out: night",))]
    assert fallen(found) == {"odd "}


EVIDENCE = """
[evidence.{name}]
claim = "{claim}"
title = "{name}"
file = "{name}.txt"
author = "N. N."
date = 2026-05-04
"""


def test_a_claim_stands_again_when_what_its_row_asks_for_is_there(base, tmp_path):
    """A new detector needs new matrices, and documents of separation and of integration: less is not enough."""
    folder = tmp_path / "new"
    folder.mkdir()
    context = CONTEXT.replace('version = "1"', 'version = "2"')
    for name, claim in (("separate", "training_data"), ("latency", "integration")):
        (folder / f"{name}.txt").write_text(name)
        context += EVIDENCE.format(name=name, claim=claim)
    for k, (matrices, more, stands) in enumerate(
        ((MATRICES, True, False), (GROWN, False, False), (GROWN, True, True))
    ):
        spec, counts = write_inputs(folder, matrices=matrices)
        (folder / "case.toml").write_text(context if more else context.partition("[evidence.latency]")[0])
        write_bundle(make_bundle(Sources(spec, counts, folder / "case.toml"), options()).files, folder / f"b{k}")
        found = compare_bundles(base, str(folder / f"b{k}"))
        assert fallen(found) == MET | {"training_data "}
        assert [each.stands_again for each in found.claims if each.falls_by] == [stands] * 3
        assert found.open_ == (0 if stands else 3)
        assert int(found.exit_code) == (0 if stands else 3)
    assert [one.done_by for one in found.changes[0].repeat] == [("separate",), ("latency",)]


def test_a_document_by_another_name_and_matrices_by_another_title_show_nothing_again(tmp_path):
    """What counts is bytes of documents and counts of matrices; names and titles are not evidence."""
    found = []
    for name, version, title in (("before", 1, "made up"), ("renamed", 2, "made up again")):
        (tmp_path / name).mkdir()
        context = CONTEXT.replace('version = "1"', f'version = "{version}"')
        for claim in ("training_data", "integration"):
            context += EVIDENCE.format(name=f"{name}_{claim}", claim=claim)
            (tmp_path / name / f"{name}_{claim}.txt").write_text(claim)
        found.append(
            built(tmp_path / name / "x", context, matrices={**MATRICES, "title": title}, beside=tmp_path / name)
        )
    change = compare_bundles(*found).changes[0]
    assert (change.recomputed, [one.done_by for one in change.repeat]) == (False, [(), ()])


def test_a_result_from_elsewhere_that_is_worse_makes_its_claim_fall(base, tmp_path, capsys):
    """Its chance to be worse is not that of the bundle's own run, which is what it was."""
    spec, matrices = write_inputs(tmp_path, matrices={**MATRICES, "title": "night", "bins": [NIGHTLY]})
    given = str(tmp_path / "night.json")
    main(["run", str(spec), "--cm", str(matrices), "-o", given])
    new = built(tmp_path / "new", given=(given,))
    found = compare_bundles(base, new)
    (change,) = found.changes
    assert (change.kind, change.what[0][:50]) == ("other_data", "made elsewhere, inputs/given/night.json: nothing -")
    by = {f"{each.kind} {each.name}": each for each in found.claims}
    assert (by["met stops"].after, by["met stops"].relation, by["met stops"].worse) == ("violated", "worse", None)
    assert by["met stops"].falls_by == ("other_data",)
    assert not by["met stops"].stands_again
    assert main(["evidence", "diff", base, new]) == 3
    assert "worse with probability" not in capsys.readouterr().out


def test_a_claim_that_lost_its_document_is_open(base, tmp_path, capsys):
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "tracks.txt").write_text("tracks")
    old = built(tmp_path / "old", CONTEXT + EVIDENCE.format(name="tracks", claim="model"), beside=folder)
    assert main(["evidence", "diff", old, base]) == 3
    assert "No input differs" not in (said := capsys.readouterr().out)
    assert "No claim falls. 1 other claim has a status worse than before." in said
    assert main(["evidence", "diff", base, old]) == 0


def test_distances_counted_anew_and_another_training_are_changes(base, tmp_path):
    rows = [[0, 5], [5, 10]]
    both = []
    for name, right in (("a", 140), ("b", 150)):
        matrices = {
            **MATRICES,
            "bins": [{"distance_m": each, "counts": [[150, 5], [50, 45]]} for each in rows],
            "localisation": {"axes": ["reported", "true"], "counts": [[right, 150 - right], [10, 140]]},
        }
        both.append(built(tmp_path / name, matrices=matrices, chosen=POINTS))
    assert [each.kind for each in compare_bundles(*both).changes] == ["other_data"]
    trained = CONTEXT.replace('weights = "abc"', 'weights = "abc"\ntrained_on = ["drive_1"]')
    (change,) = compare_bundles(base, built(tmp_path / "c", trained)).changes
    assert change.kind == "detector"


def test_the_probability_to_be_worse_is_that_of_two_beta_draws(base, tmp_path):
    """P of drives_on is r^2 for the rate r of no report of nobody: whether it is less is whether r is."""
    matrices = {**MATRICES, "bins": [{"distance_m": [0, 10], "counts": [[300, 4], [100, 96]]}]}
    chosen = RunOptions(confidence=ConfidenceSettings(draws=20_000, looks=2))
    old, new = (
        built(tmp_path / name, matrices=each, chosen=chosen) for name, each in {"a": MATRICES, "b": matrices}.items()
    )
    found = {each.name: each for each in compare_bundles(old, new).claims if each.kind == "met"}
    assert found["drives_on"].relation == "better"
    # Jeffreys: Beta(96.5, 4.5) below Beta(90.5, 10.5), by the exact integral
    exact, _ = integrate.quad(lambda r: stats.beta.pdf(r, 90.5, 10.5) * stats.beta.cdf(r, 96.5, 4.5), 0, 1)
    assert found["drives_on"].worse == pytest.approx(exact, abs=5 * (exact * (1 - exact) / 20_000) ** 0.5)
    assert found["stops"].relation == "unaffected" or found["stops"].worse is None


def test_what_is_no_intact_bundle_is_refused(base, tmp_path, capsys):
    assert main(["evidence", "diff", base, str(tmp_path)]) == 4
    files = {"manifest.json": b"{}"}
    write_bundle(files, tmp_path / "b")
    with pytest.raises(InputError, match="is no bundle"):
        compare_bundles(base, str(tmp_path / "b"))
    altered = {**read_bundle(base), "trace.csv": b"requirement\n"}
    write_bundle(altered, tmp_path / "c")
    assert main(["evidence", "diff", str(tmp_path / "c"), base]) == 4
    assert "is not intact: trace.csv" in capsys.readouterr().err


def test_words_about_system_and_data_have_rows(base, tmp_path):
    """Which the table does not name: another system is one to validate a model against, other data are other data."""
    system = compare_bundles(base, built(tmp_path / "system", CONTEXT + '[system]\nname = "Another car"\n'))
    assert [(each.kind, each.what) for each in system.changes] == [
        ("planner", ("system, in words: nothing -> Another car",))
    ]
    assert fallen(system) == MET | {"model "}
    data = compare_bundles(base, built(tmp_path / "data", CONTEXT + '[dataset]\nname = "Other drives"\n'))
    assert [(each.kind, each.what) for each in data.changes] == [
        ("other_data", ("test data, in words: nothing -> Other drives",))
    ]
    more = built(tmp_path / "more", CONTEXT + '[dataset]\nname = "More drives"\n', matrices=GROWN)
    assert [each.kind for each in compare_bundles(base, more).changes] == ["more_data"]


def test_a_detector_whose_every_count_only_grew_is_not_more_of_the_same(points, tmp_path):
    """Of 600 more it sees 590, where it saw 300 of 400."""
    grown = MATRICES | {"bins": [NIGHTLY | {"counts": [[300 + 590, 10], [100 + 10, 90]]}]}
    found = compare_bundles(points, built(tmp_path / "new", matrices=grown, chosen=POINTS))
    (change,) = found.changes
    assert change.kind == "other_data"
    table = [[300, 100], [590, 10]]
    expected = chi2_contingency(table, correction=False).pvalue
    said = "500 items -> 1100 items; rates of what was added differ from those before: p = "
    assert change.what == (f"{said}{expected:.2g}",)
    assert fallen(found) == MET | {"test_data ", "training_data "}


@pytest.mark.every(10)
@pytest.mark.parametrize("seed", range(30))
def test_more_of_the_same_is_taken_for_it(seed, points, tmp_path):
    seen, free = np.random.default_rng(seed).binomial((400, 100), (0.75, 0.9))
    counts = [[300 + int(seen), 10 + 100 - int(free)], [100 + 400 - int(seen), 90 + int(free)]]
    grown = MATRICES | {"bins": [NIGHTLY | {"counts": counts}]}
    new = built(tmp_path / "new", matrices=grown, chosen=POINTS)
    assert [each.kind for each in compare_bundles(points, new).changes] == ["more_data"]


def test_a_comment_in_a_model_is_no_change(points, tmp_path):
    found = compare_bundles(points, built(tmp_path / "new", model=f"# A comment\n{MODEL}\n\n", chosen=POINTS))
    assert (found.changes, found.open_) == ((), 0)
    assert {each.relation for each in found.claims} == {"unaffected"}
