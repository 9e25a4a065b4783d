"""Building a bundle: what is in it, the same bytes every time, and nothing written where something is wrong."""

import csv
import datetime
import hashlib
import io
import json
import zipfile
from dataclasses import replace
from fractions import Fraction

import pytest
from cyclic_bundles import write_cyclic
from hypothesis import given
from hypothesis import strategies as st
from small_bundles import MATRICES, SPEC, write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import InputError, LimitError
from verifier.base.files import document_text
from verifier.cli import main
from verifier.evidence.bundle.archive import read_bundle, write_bundle
from verifier.evidence.bundle.build import Sources, build_bundle, make_bundle
from verifier.evidence.bundle.check import check_bundle, check_files
from verifier.evidence.bundle.request import Request, request_of, typed
from verifier.language.expressions import Source, parse_expression
from verifier.study.inputs import Selection
from verifier.study.options import RunOptions

pytestmark = pytest.mark.usefixtures("results_made_once")

FEW = RunOptions(confidence=ConfidenceSettings(draws=500))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A bundle as files in memory."""
    return make_bundle(Sources(*write_inputs(tmp_path_factory.mktemp("inputs"))), FEW)


def document(bundle, path):
    return json.loads(bundle.files[path])


def test_the_run_in_the_bundle_has_the_probabilities_worked_out_by_hand(built):
    stops, drives_on, asked = document(built, "results/run.json")["requirements"]
    # See small_bundles: 1 - (1/4)^2, (9/10)^2, and where nobody stands 1 - (9/10)^2.
    assert stops["points"][0]["probability"] == pytest.approx(15 / 16, abs=1e-12)
    assert drives_on["points"][1]["probability"] == pytest.approx(0.81, abs=1e-12)
    assert [point["probability"] for point in asked["points"]] == pytest.approx([15 / 16, 0.19], abs=1e-12)
    assert built.verdict == "inconclusive"  # 100 times nobody do not settle a target of .85


def test_copies_of_the_inputs_are_the_inputs(built):
    assert built.files["inputs/specs/two_looks.ltl"].decode() == SPEC
    assert json.loads(built.files["inputs/matrices/matrices.json"]) == MATRICES


def test_the_digest_is_the_hash_of_the_manifest(built):
    assert built.digest == hashlib.sha256(built.files["manifest.json"]).hexdigest()
    listed = {each["path"]: each["sha256"] for each in document(built, "manifest.json")["files"]}
    assert listed == {
        path: hashlib.sha256(raw).hexdigest() for path, raw in built.files.items() if path != "manifest.json"
    }


def test_the_statement_is_about_everything_that_people_read(built):
    statement = document(built, "ci/statement.intoto.json")
    subjects = {each["name"]: each["digest"]["sha256"] for each in statement["subject"]}
    ours = {
        path: hashlib.sha256(raw).hexdigest()
        for path, raw in built.files.items()
        if path not in ("README.txt", "fingerprints.json", "ro-crate-metadata.json", "manifest.json")
    }
    del ours["ci/statement.intoto.json"]
    assert subjects == ours


def test_the_whole_bundle_is_a_crate_that_others_read(tmp_path, built):
    crates = pytest.importorskip("rocrate.rocrate")
    write_bundle(built.files, tmp_path / "b")
    crate = crates.ROCrate(tmp_path / "b")
    listed = {each.id for each in crate.data_entities if each.type == "File"}
    assert listed == built.files.keys() - {"ro-crate-metadata.json", "manifest.json"}


def test_more_certificates_than_a_check_reads_are_refused_before_anything_is_computed(tmp_path):
    sweep = Selection(sweeps={"unused": tuple(range(2000))})
    spec, matrices = write_inputs(tmp_path)
    model = tmp_path / "models/two_looks.toml"
    model.write_text(model.read_text().replace("[variables]", "[constants]\nunused = 0\n\n[variables]"))
    with pytest.raises(LimitError, match="would hold 48000 certificates or more; at most 10000"):
        make_bundle(Sources(spec, matrices), replace(FEW, selection=sweep))


def test_every_requirement_has_a_row_and_one_that_was_not_run_says_so(tmp_path):
    options = replace(FEW, selection=Selection(requirements=("drives_on",)))
    made = make_bundle(Sources(*write_inputs(tmp_path)), options)
    rows = list(csv.DictReader(io.StringIO(made.files["trace.csv"].decode())))
    assert [(row["requirement"], row["line"], row["status"]) for row in rows] == [
        ("stops", "3", "undeveloped"),
        ("drives_on", "4", "inconclusive"),
        ("asked", "5", "undeveloped"),
    ]
    assert rows[0]["reason"] == rows[2]["reason"] == "not selected for this run"
    assert rows[1]["reason"] == "P = 0.81 in empty x=0 s=0"
    assert rows[1]["required_recall"] == "results/require/02_drives_on.json"
    assert rows[1]["certificates"] == "8: certificates/block*_requirement01_*.json"
    assert sum(path.startswith("certificates/block") and "_requirement01_" in path for path in made.files) == 8
    assert (rows[1]["rate"], rows[0]["rate"]) == ("no exposure is declared", "")
    report = made.files["report/report.md"].decode()
    assert "From requirements to evidence" in report
    assert report.count("undeveloped: not selected for this run") == 4  # on page one, and in the trace
    # The assurance case has a goal for each of them that is not developed.
    assert made.files["case/gsn.yaml"].decode().count("not selected for this run") == 2
    assert float(rows[1]["probability"]) == pytest.approx(0.81, abs=1e-12)


@pytest.mark.usefixtures("made_anew")
def test_a_second_build_has_the_same_bytes(tmp_path, monkeypatch):
    targets = []
    for name, user in (("first", "jane_doe"), ("second", "john_roe")):
        folder = tmp_path / name
        spec, matrices = write_inputs(folder)
        monkeypatch.setenv("USER", user)
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.chdir(folder)
        command = ["evidence", "build", str(spec), "--cm", str(matrices), "--draws", "500", "-o", f"{name}.zip"]
        assert main(command) == 0
        targets.append((folder / f"{name}.zip").read_bytes())
    assert targets[0] == targets[1]
    for word in (str(tmp_path), "jane_doe", "john_roe"):
        assert word.encode() not in targets[0]


def test_the_report_says_what_was_typed(tmp_path):
    command = ("verify", "evidence", "build", "two_looks.ltl", "--cm", "<b>matrices.json")
    bundle = make_bundle(Sources(*write_inputs(tmp_path), command=command), FEW)
    told = bundle.files["report/report.md"].decode().replace("\\", "")
    assert "verify evidence build two_looks.ltl --cm '<b>matrices.json'" in told
    assert b"&lt;b&gt;matrices.json" in bundle.files["report/report.html"]
    assert check_files("b", bundle.files).findings == ()


def test_an_archive_has_one_date_and_one_mode(tmp_path, monkeypatch, built):
    write_bundle(built.files, tmp_path / "plain.zip")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")  # 2001-09-09 01:46:40 UTC
    write_bundle(built.files, tmp_path / "dated.zip")
    for name, date in (("plain", (1980, 1, 1, 0, 0, 0)), ("dated", (2001, 9, 9, 1, 46, 40))):
        with zipfile.ZipFile(tmp_path / f"{name}.zip") as archive:
            assert {info.date_time for info in archive.infolist()} == {date}
            assert {info.external_attr >> 16 for info in archive.infolist()} == {0o100644}
            assert archive.namelist() == sorted(built.files)
        report = check_bundle(tmp_path / f"{name}.zip", built.digest)
        assert report.sound
        assert report.digest_demanded


def test_folder_and_archive_hold_the_same_files_and_check_clean_anywhere(tmp_path, monkeypatch, built):
    one = build_bundle(Sources(*write_inputs(tmp_path / "here")), tmp_path / "b.zip", FEW)
    assert one == built
    write_bundle(built.files, tmp_path / "b")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "b").rename(tmp_path / "elsewhere/moved")
    monkeypatch.chdir(tmp_path / "elsewhere")
    for place in ("moved", "../b.zip"):
        report = check_bundle(place, one.digest)
        assert (report.findings, report.exit_code, report.verdict) == ((), 0, "inconclusive")


@pytest.mark.usefixtures("made_anew")
def test_everything_computed_anew_is_the_same(tmp_path, built):
    write_bundle(built.files, tmp_path / "b")
    report = check_bundle(tmp_path / "b", recompute=True)
    assert report.findings == ()
    done = {one.what: one.count for one in report.checked}
    assert done["probabilities computed as exact fractions by Storm"] == 6
    assert done["results recomputed and compared byte for byte"] == 9 + 54


@pytest.mark.parametrize("name", ["b", "b.zip"])
def test_what_is_there_is_not_replaced_unless_that_is_asked_for(name, tmp_path, built):
    target = tmp_path / name
    write_bundle({**built.files, "old.txt": b""}, target)
    with pytest.raises(InputError, match="exists already"):
        write_bundle(built.files, target)
    assert "old.txt" in read_bundle(target)
    write_bundle(built.files, target, force=True)
    assert read_bundle(target) == dict(sorted(built.files.items()))
    assert list(tmp_path.iterdir()) == [target]
    (tmp_path / "link.zip").symlink_to(target)
    with pytest.raises(InputError, match="is a link"):
        write_bundle(built.files, tmp_path / "link.zip", force=True)


def test_a_folder_that_is_no_bundle_is_never_replaced(tmp_path, built):
    (tmp_path / "b").mkdir()
    (tmp_path / "b/thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="no bundle"):
        write_bundle(built.files, tmp_path / "b", force=True)
    assert (tmp_path / "b/thesis.tex").read_text() == "years of work"


def test_nothing_is_written_where_the_run_fails(tmp_path):
    spec, matrices = write_inputs(tmp_path, spec=SPEC.replace("careful", "careless"))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match="careless"):
        build_bundle(Sources(spec, matrices), tmp_path / "b", FEW)
    assert sorted(tmp_path.iterdir()) == before


def test_a_policy_for_columns_without_items_is_varied_too(tmp_path):
    matrices = {**MATRICES, "bins": [{"distance_m": [0, 10], "counts": [[300, 0], [100, 0]]}]}
    sources = Sources(*write_inputs(tmp_path, matrices=matrices))
    build_bundle(sources, tmp_path / "b.zip", replace(FEW, empty_columns="prior"))
    report = check_bundle(tmp_path / "b.zip")
    assert report.findings == ()
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        names = [name for name in archive.namelist() if "empty_columns" in name]
        omitted = {each["path"] for each in json.loads(archive.read("results/omitted.json"))["omitted"]}
    others = {f"results/alternatives/empty_columns_{each}.json" for each in ("neighbour", "pool", "miss")}
    assert set(names) | omitted >= others  # there is no other bin to take rates from: said, not left out
    assert omitted & others


def test_a_run_with_rounded_transitions_says_what_it_cannot_show(tmp_path):
    build_bundle(Sources(*write_inputs(tmp_path)), tmp_path / "b", replace(FEW, decimals=3))
    report = check_bundle(tmp_path / "b")
    assert report.findings == ()
    assert any("rounded" in each for each in report.unchecked)
    omitted = json.loads((tmp_path / "b/results/omitted.json").read_text())["omitted"]
    assert {each["path"] for each in omitted} >= {"results/explain.json", "results/require/01_stops.json"}


def test_exact_runs_sweeps_and_narrowed_states_come_back_from_the_request(tmp_path):
    narrowed = parse_expression("x = 0", Source("x = 0", "--initial"))
    selection = Selection(initial=narrowed, environments=("ped",), requirements=("stops",))
    exact = replace(FEW.engines, exact=True)
    options = replace(FEW, selection=selection, engines=exact, confidence=None, verdict_from="point")
    built = build_bundle(Sources(*write_inputs(tmp_path)), tmp_path / "b.zip", options)
    (point,) = document(built, "results/run.json")["requirements"][0]["points"]
    assert Fraction(point["exact"]) == Fraction(15, 16)
    assert check_bundle(tmp_path / "b.zip", recompute=True).findings == ()


names = st.from_regex(r"[a-z_]\w{0,8}", fullmatch=True)
numbers = st.integers(-(10**20), 10**20) | st.fractions(-999, 999, max_denominator=999)


@given(
    st.builds(
        RunOptions,
        selection=st.builds(
            Selection,
            planners=st.lists(st.sampled_from(["a", "b"])).map(tuple),
            environments=st.lists(names).map(tuple),
            initial=st.sampled_from([None, *(parse_expression(text) for text in ("x = 0 & v < 1", "x + 1 > 2"))]),
            settings=st.dictionaries(names, numbers | names),
            sweeps=st.dictionaries(names, st.lists(numbers, min_size=1, unique=True).map(tuple)),
            requirements=st.lists(names).map(tuple),
        ),
        where=st.dictionaries(names, names),
        score_threshold=st.none() | st.floats(0, 1),
        canonical=st.booleans(),
        empty_columns=st.sampled_from(["error", "prior"]),
        endless=st.booleans(),
        decimals=st.none() | st.integers(1, 9),
        confidence=st.none() | st.builds(ConfidenceSettings, level=st.floats(0.5, 0.99), seed=st.integers(0, 9)),
        verdict_from=st.sampled_from(["bounds", "point"]),
    )
)
def test_a_request_reads_back_as_it_was_written(options):
    options = options.by_default()
    files = {"spec": "inputs/s", "model": "inputs/m", "matrices": "inputs/c", "given": ("inputs/g",)}
    asked = Request(**files, asked=typed(options), command=("verify",), day=datetime.date(2026, 5, 1))
    text = document_text(asked)
    back = request_of(json.loads(text))
    assert back == asked
    assert document_text(back) == text
    assert replace(back.options.selection, initial=None) == replace(options.selection, initial=None)
    assert replace(back.options, selection=Selection()) == replace(options, selection=Selection())


def first_request(**options):
    """What release 0.1.0.dev1 wrote."""
    confidence = {
        "level": 0.95, "interval": "auto", "bounds": "items", "weights": "item", "largest_drive": None,
        "icc_at_most": None, "assume_independent_items": False, "looks": 2, "shift": "1/10", "semantics": "per_state",
        "prior": 0.25, "draws": 100, "seed": 7,
    }  # fmt: skip
    selection = {
        "planners": ["p"], "environments": [], "initial": "(x = 0) & (v < 1)", "requirements": ["stops"],
        "settings": {"vmax": "1/3", "p.pick": {"word": "lowest"}}, "sweeps": {"step": ["1", "0.5"]},
    }  # fmt: skip
    plain = {"where": {"light": "day"}, "memory": None, "score_threshold": 0.5, "decimals": None, "max_lp": 100000}
    told = {"selection": selection, **plain, "verdict_from": "bounds", "strict": True, "exact": True}
    files = {"spec": "inputs/s", "model": "inputs/m", "matrices": "inputs/c", "context": None, "given": ["inputs/g"]}
    head = {"schema": "verifier.bundle_request", "version": 1, "files": files, "command": [], "day": "2026-05-01"}
    return head | {"options": {**told, "confidence": confidence, **options}}


def test_a_request_of_the_first_release_is_read_and_says_the_same():
    request = request_of(first_request())
    assert (request.spec, request.given, request.day) == ("inputs/s", ("inputs/g",), datetime.date(2026, 5, 1))
    condition = parse_expression("x = 0 & v < 1")
    chosen = {"vmax": Fraction(1, 3), "p.pick": "lowest"}
    selection = Selection(("p",), (), condition, chosen, {"step": (1, Fraction(1, 2))}, ("stops",))
    bounds = ConfidenceSettings(bounds="items", looks=2, shift=Fraction(1, 10), prior=0.25, draws=100, seed=7)
    expected = RunOptions(selection, where={"light": "day"}, score_threshold=0.5, confidence=bounds, strict=True)
    assert request.options == replace(expected, engines=replace(FEW.engines, exact=True)).by_default()
    point = request_of(first_request(confidence=None, verdict_from="point")).options
    assert (point.confidence, point.verdict_from) == (None, "point")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"mix": "/etc/passwd"}, "an option of which no bundle is made"),
        ({"tricks": True}, "unknown choice"),
        ({"where": 3}, "no request"),
        ({"strict": "perhaps"}, "strict: expected True or False"),
        ({"max_lp": 7}, "--max-lp belongs to --dependence-free"),
    ],
)
def test_a_request_that_the_first_release_could_not_write_is_refused(options, match):
    with pytest.raises(InputError, match=match):
        request_of(first_request(**options))


def test_a_request_has_one_way_to_say_what_it_asks():
    content = {"schema": "verifier.bundle_request", "version": 2} | {"spec": "inputs/s", "model": "inputs/m"}
    content |= {"matrices": "inputs/c", "asked": {"set": ["vmax=2"]}}
    assert request_of(content).options.selection.settings == {"vmax": 2}
    wrong = {"set": ["vmax=4/2"], "draws": "0100", "strict": "yes", "mix": "x", "level": "0.9", "seed": True}
    for name, value in wrong.items():
        with pytest.raises(InputError):
            request_of(content | {"asked": {name: value}})


def test_a_bundle_of_means_over_all_scenarios_is_sound(tmp_path):
    spec = SPEC.replace("asked: P = ? [", "mean: P = ? over profile [ F x = 2 ]\nasked: P = ? [")
    files = make_bundle(Sources(*write_inputs(tmp_path, spec)), FEW).files
    report = check_files("b", files)
    assert report.findings == ()
    assert "mean" in {one.requirement for one in report.requirements}
    run = next(each for each in json.loads(files["results/run.json"])["requirements"] if each["name"] == "mean")
    (mean,) = run["means"]
    rows = {row["requirement"]: row for row in csv.DictReader(files["trace.csv"].decode().splitlines())}
    traced = rows["mean"]
    assert (traced["worst_scenario"], traced["bounds_lower"]) == ("profile", "")
    assert traced["probability"] == mean.get("exact", repr(mean["probability"]))
    assert rows["asked"]["worst_scenario"] != "profile"


def sound_bundles(folder, seeds):
    """Build and check a bundle of each random model; how many probabilities in them are not proven."""
    computed = 0
    for seed in seeds:
        made = make_bundle(Sources(*write_cyclic(folder / str(seed), seed)), FEW)
        report = check_files("b", made.files)
        assert report.findings == (), (seed, [str(finding) for finding in report.findings])
        computed += sum(one.count for one in report.checked if one.what.startswith("probabilities recomputed"))
    return computed


def test_bundles_of_models_with_cycles_are_sound_and_their_probabilities_proven(tmp_path):
    assert sound_bundles(tmp_path, range(2)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_bundles_of_two_hundred_models_with_cycles_are_sound(tmp_path, part):
    assert sound_bundles(tmp_path, range(1000 + 20 * part, 1020 + 20 * part)) == 0
