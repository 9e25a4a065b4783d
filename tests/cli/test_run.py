"""`verify run` as a user meets it: tables, documents, exit codes, and what it says when something is wrong."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from fractions import Fraction

import jsonschema
import pytest
import scipy.stats
import stormpy

from verifier.base.errors import ExitCode
from verifier.cli import main
from verifier.evidence.documents import schema_of

SPEC = "specs/car_pedestrian.ltl"
BY_CLASS = "examples/nuscenes_yolov3_class.json"
BY_SET = "examples/nuscenes_yolov3_proposition.json"


@pytest.fixture
def run(shipped):
    return shipped("run")


def document(run, *arguments, **files):
    code, out, err = run(*arguments, "--json", **files)
    assert err == ""
    found = json.loads(out)
    assert code == {"satisfied": 0, "no target": 0, "violated": 1, "inconclusive": 3, "vacuous": 3}[found["verdict"]]
    return found


def points(found, requirement):
    (mine,) = [each for each in found["requirements"] if each["name"] == requirement]
    return mine["points"]


def test_the_main_job_prints_a_table_and_says_violated(run):
    code, out, err = run()
    assert (code, err) == (ExitCode.VIOLATED, "")
    lines = out.splitlines()
    assert lines[0] == "YOLOv3 on nuScenes, class-labelled, ten distance bins"
    row = next(line for line in lines if line.startswith("stops_for_pedestrians"))
    assert row.split()[:4] == ["stops_for_pedestrians", ">=", "0.95", "0.196"]
    assert row.split()[8:] == ["ped", "x=1", "v=1", "violated,", "if", "items", "are", "independent"]
    assert lines[-1] == "verdict: violated, if items are independent"
    _, out, _ = run("--point-only")
    row = next(line for line in out.splitlines() if line.startswith("stops_for_pedestrians"))
    assert row.split()[:5] == ["stops_for_pedestrians", ">=", "0.95", "0.196203", "+-"]
    assert 0 < float(row.split()[5]) < 1e-11


def test_how_sure_the_main_job_is(run):
    # P is the chance that a pedestrian within ten metres is reported, 31 of 158 items, among three labels.
    found = document(run, "--env", "ped", "--requirement", "all_three")
    (point,) = points(found, "all_three")
    drawn, bounds = point["uncertainty"]["interval"], point["uncertainty"]["confidence_bounds"]
    posterior = scipy.stats.beta(31 + 0.5, 127 + 1)  # Jeffreys: 1/2 on each of three labels
    for end, share in (("lower", 0.025), ("upper", 0.975)):
        low, high = drawn[f"{end}_range"]
        assert low <= posterior.ppf(share) <= high
        assert high - low < 0.02
    tail = 0.05 / found["settings"]["confidence"]["events"] / 2
    assert bounds["lower"] == pytest.approx(scipy.stats.beta(31, 128).ppf(tail), abs=2e-9)
    assert bounds["upper"] == pytest.approx(scipy.stats.beta(32, 127).ppf(1 - tail), abs=2e-9)
    assert found["settings"]["confidence"]["events"] == 3  # of one column: reported as ped, as obs, not at all


def test_what_is_held_against_the_target_can_be_chosen(run):
    # Nothing was ever mistaken for a pedestrian, but among so few objects that .999 is not certain.
    arguments = ("--env", "obs", "--requirement", "stops_only_for_pedestrians")
    assert document(run, *arguments)["verdict"] == "inconclusive"
    assert document(run, *arguments, "--verdict-from", "interval")["verdict"] == "inconclusive"
    assert document(run, *arguments, "--verdict-from", "point")["verdict"] == "satisfied"
    assert document(run, *arguments, "--point-only")["verdict"] == "satisfied"
    assert document(run, *arguments, "--confidence", "0.5", "--verdict-from", "interval")["verdict"] == "satisfied"


@pytest.mark.parametrize(
    ("cm", "options", "value"),
    [
        # Badithela et al. 2022, section IV, at vmax = 1: two-fold and more by distance, and more by proposition.
        (BY_CLASS, ["--canonical"], Fraction(711, 8622)),
        (BY_CLASS, [], Fraction(31, 158)),
        (BY_SET, ["--canonical"], None),
        (BY_SET, [], Fraction(22, 85)),
    ],
)
def test_the_papers_four_numbers(run, cm, options, value):
    found = document(run, *options, "--exact", "--env", "ped", "--point-only", cm=cm)
    (point,) = points(found, "all_three")
    if value is not None:
        assert Fraction(point["exact"]) == value
    assert (
        round(point["probability"], 3)
        == {
            (BY_CLASS, True): 0.082,
            (BY_CLASS, False): 0.196,
            (BY_SET, True): 0.129,
            (BY_SET, False): 0.259,
        }[cm, bool(options)]
    )


def test_two_object_scenes(run, tmp_path, root):
    # d <= 10 m, "stops iff it sees ped" once: one step of a car that stands 5 m away.
    (tmp_path / "scene.toml").write_text(
        """
initial = "s = 0"
terminal = "s > 0"
[variables]
s = { range = [0, 2], next = "go" }
[inputs]
go = { range = [1, 2] }
[labels]
stopped = "s = 1"
[environments]
ped_obs = [{ class = "ped", distance_m = 5 }, { class = "obs", distance_m = 5 }]
ped_ped = [{ class = "ped", distance_m = 5 }, { class = "ped", distance_m = 5 }]
[planners.stop_for_ped]
rules = [{ when = "sees(ped)", set = { go = 1 } }, { when = "true", set = { go = 2 } }]
"""
    )
    spec = tmp_path / "scene.ltl"
    spec.write_text('model "scene.toml"\nstops: P = ? [ F stopped ]\n')
    exact = {}
    for cm in (BY_CLASS, BY_SET):
        for point in points(document(run, "--exact", spec=spec, cm=cm), "stops"):
            exact[cm, point["environment"]] = Fraction(point["exact"])
    assert exact == {
        (BY_CLASS, "ped_obs"): Fraction(31, 158),  # .1962
        (BY_CLASS, "ped_ped"): 1 - Fraction(127, 158) ** 2,  # .3539
        (BY_SET, "ped_obs"): Fraction(5, 22),  # .2273
        (BY_SET, "ped_ped"): Fraction(22, 85),  # .2588
    }


def test_without_an_end_every_imperfect_detector_fails_for_certain(run):
    # After the stop a single misdetection sets the car rolling, and over an endless run there always is one.
    found = document(run, "--endless", "--env", "ped", "--exact", "--point-only")
    assert [point["exact"] for point in points(found, "stops_for_pedestrians")] == ["0"]
    assert "paths are infinite" in " ".join(found["remarks"])


def test_the_document_matches_its_schema(run):
    schema = schema_of("verifier.run")
    arguments = ["--sweep", "vmax=1..2", "--planner", "published", "--planner", "correct", "--strategies"]
    arguments += ["--env", "ped", "--requirement", "stops_for_pedestrians", "--requirement", "all_three"]
    jsonschema.Draft202012Validator(schema).validate(document(run, *arguments))
    exact = document(run, "--exact", "--round-transitions", "4", "--initial", "v = 1", "--env", "obs")
    jsonschema.Draft202012Validator(schema).validate(exact)


def test_csv_has_a_row_per_requirement_and_scenario(run, tmp_path):
    run("--sweep", "vmax=1,3", "--csv", tmp_path / "out.csv", "--point-only")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert len(rows) == 4 * 3 * (1 + 3)  # requirements x environments x initial speeds
    first = next(row for row in rows if row["requirement"] == "all_three" and row["environment"] == "ped")
    assert (first["constant_vmax"], first["initial_v"], first["verdict"]) == ("1", "1", "no target")
    assert float(first["probability"]) == pytest.approx(31 / 158, rel=1e-12)


@pytest.mark.parametrize("ending", ["png", *(pytest.param(each, marks=pytest.mark.slow) for each in ("svg", "pdf"))])
def test_plots_are_written_and_stable(run, tmp_path, ending):
    arguments = ("--sweep", "vmax=1..2", "--env", "ped", "--requirement", "all_three", "--draws", "200")
    for name in ("one", "two"):
        run(*arguments, "--plot", tmp_path / f"{name}.{ending}")
    data = (tmp_path / f"one.{ending}").read_bytes()
    assert data == (tmp_path / f"two.{ending}").read_bytes()
    assert data.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending])


@pytest.mark.parametrize("ending", ["umb", "drn", "prism"])
def test_exports_are_read_back_by_storm_to_the_same_probability(run, tmp_path, ending):
    path = tmp_path / f"chain.{ending}"
    code, _, _ = run("--env", "ped", "--set", "vmax=2", "--initial", "v = 2", "--export", path, "--point-only")
    assert code == ExitCode.VIOLATED
    formula = stormpy.parse_property('P=? [F "at_line"]')
    if ending == "umb":
        model = stormpy.build_model_from_umb(str(path))
    elif ending == "drn":
        model = stormpy.build_model_from_drn(str(path))
    else:
        program = stormpy.parse_prism_program(str(path))
        formula = stormpy.parse_property('P=? [F "at_line"]', program)
        model = stormpy.build_model(program, [formula])
    values = stormpy.model_checking(model, formula).get_value_vector()
    # vmax = 2, v0 = 2: pedestrian seen at 4 m and again at 2 m, both in the first bin.
    assert [values[state] for state in model.initial_states] == [pytest.approx((31 / 158) ** 2, rel=1e-6)]


def test_parse_echo_is_fully_parenthesised_and_needs_no_matrices(run):
    code, out, _ = run("--parse", cm=None)
    assert code == 0
    assert out.startswith("stops_only_for_pedestrians: P >= 0.999 [ G (ped | (!at_line)) ]\n")
    assert "\nplanner published, kind runs\n  runs[0] sees(ped) -> reach at_line through " in out
    code, told, _ = run("--parse", "--json", cm=None)
    found = json.loads(told)
    assert code == 0
    assert found["variables"][0] == {"name": "x", "low": 1, "high": 65, "next": "min(x + v, cells)", "unit": "cell"}
    assert [each["role"] for each in found["inputs"]] == ["spec", "model"]
    assert found["planners"][0]["runs"][1] == {"when": "sees(obs)", "sets": {"speed": "max(v - 1, 1)"}}


def test_points_shows_every_scenario(run):
    _, out, _ = run("--all-scenarios", "--set", "vmax=2", "--requirement", "all_three", "--point-only")
    assert sum(line.startswith("all_three") for line in out.splitlines()) == 6


def test_the_pick_rule_is_an_option(run):
    values = {}
    for pick in ("lsb_first", "lowest", "highest"):
        settings = ("--set", "vmax=4", "--set", f"published.pick={pick}")
        found = document(run, *settings, "--env", "ped", "--point-only")
        values[pick] = [point["probability"] for point in points(found, "all_three")]
        assert found["settings"]["planners"]["published"]["pick"] == pick
    assert len({tuple(each) for each in values.values()}) == 3


def test_policies_reach_the_chain_and_are_told(run, tmp_path, root):
    data = json.loads((root / BY_CLASS).read_text())
    for row in data["bins"][0]["counts"]:
        row[0] = 0
    path = tmp_path / "hole.json"
    path.write_text(json.dumps(data))
    code, _, err = run(cm=path)
    assert code == ExitCode.BAD_INPUT
    assert "no items with true label ped in bin [0, 10) m" in err
    found = document(run, "--empty-columns", "prior", "--env", "ped", "--point-only", cm=path)
    assert points(found, "all_three")[0]["probability"] == pytest.approx(1 / 3, rel=1e-12)
    assert "rates filled in by policy 'prior'" in " ".join(found["remarks"])


def test_three_valued_verdicts_and_exit_codes(run, tmp_path, root):
    # P is 31/158 exactly; doubles cannot decide a target of 31/158, fractions can.
    spec = tmp_path / "edge.ltl"
    spec.write_text(
        f'model "{root}/models/car_pedestrian.toml"\nplanner published\nset vmax = 1\nenvironments ped\n'
        "edge: P >= 31/158 [ F at_line ]\n"
    )
    point = ("--verdict-from", "point")
    assert document(run, *point, spec=spec)["verdict"] == "inconclusive"
    assert document(run, *point, "--exact", spec=spec)["verdict"] == "satisfied"
    assert document(run, "--exact", spec=spec)["verdict"] == "inconclusive"  # the data do not decide
    spec.write_text(spec.read_text().replace(">=", ">"))
    assert document(run, *point, "--exact", spec=spec)["verdict"] == "violated"


USAGE = [
    ([], {"cm": None}, "name the confusion matrices: --cm RESULTS.json"),
    (["--planner", "publised"], {}, "unknown planner 'publised': did you mean 'published'?"),
    (["--env", "pde"], {}, "unknown environment 'pde': did you mean 'ped'?"),
    (["--requirement", "all_tree"], {}, "unknown requirement 'all_tree': did you mean 'all_three'?"),
    (["--set", "vmx=3"], {}, "unknown constant 'vmx': did you mean 'vmax'?"),
    (["--set", "vmax"], {}, "--set: expected NAME=VALUE, got 'vmax'"),
    (["--set", "vmax=fast"], {}, "constant vmax: expected a number, got 'fast'"),
    (["--set", "published.pick=random"], {}, "planner 'published': unknown pick rule 'random'"),
    (["--sweep", "vmax=3..1"], {}, "--sweep: expected 1 to 10000 values, got 'vmax=3..1'"),
    (["--sweep", "vmax=a"], {}, "--sweep: expected NAME=LOW..HIGH"),
    (["--initial", "x = 3"], {}, "no state satisfies the initial condition"),
    (["--plot", "figure.bmp"], {}, "--plot: expected a file name ending in .png, .svg, .pdf"),
    (["--export", "chain.txt"], {}, "--export: expected a file name ending in .umb, .drn, .prism"),
    (
        ["--draws", "10", "--interval", "bootstrap"],
        {},
        "--interval bootstrap needs sequences, but the matrices do not say",
    ),
    (["--round-transitions", "0"], {}, "expected 1 to 15 decimals to round to, got 0"),
]


@pytest.mark.parametrize(
    ("arguments", "files", "message"), USAGE, ids=[" ".join(a) or "no matrices" for a, _, _ in USAGE]
)
def test_wrong_usage_says_what_is_there(run, arguments, files, message):
    code, out, err = run(*arguments, **files)
    assert (code, out) == (ExitCode.USAGE, "")
    assert err.startswith(f"verify: {message}")
    assert "Traceback" not in err


def test_ranges_are_given_for_synthesised_planners_only(run):
    planners = ("--planner", "published", "--planner", "correct")
    found = document(run, "--strategies", *planners, "--env", "ped", "--point-only")
    assert ["strategies" in each for each in found["requirements"]] == [False] * 4 + [True] * 4


def test_limits_refuse_with_the_number(run):
    code, _, err = run("--set", "study_vmax=100000")
    assert code == ExitCode.BAD_INPUT
    assert "a whole number of at most 2**31 in size, got 5000050010" in err
    code, _, err = run("--set", "study_vmax=9000")
    assert code == ExitCode.NO_ANSWER
    assert "the model has 81009020 states (x: 40504510 x v: 2); the limit is 50000000" in err
    code, _, err = run("--max-states", "100")
    assert code == ExitCode.NO_ANSWER
    assert "the model has 130 states (x: 65 x v: 2); the limit is 100" in err


def test_an_initial_condition_over_unknown_names_is_refused(run):
    code, _, err = run("--initial", "speed = 1")
    assert code == ExitCode.BAD_INPUT
    assert "unknown name 'speed'" in err
    code, _, err = run("--initial", "v = ")
    assert code == ExitCode.BAD_INPUT
    assert "--initial:1:" in err


def test_missing_files_are_named(run, tmp_path):
    code, _, err = run(spec="no/such.ltl")
    assert (code, err) == (ExitCode.BAD_INPUT, "verify: no/such.ltl: no such file\n")
    code, _, err = run(cm="no/such.json")
    assert (code, err) == (ExitCode.BAD_INPUT, "verify: no/such.json: no such file\n")
    spec = tmp_path / "lost.ltl"
    spec.write_text('model "nowhere.toml"\na: P = ? [ true ]\n')
    code, _, err = run(spec=spec)
    assert code == ExitCode.BAD_INPUT
    assert err.startswith(f"verify: {spec}:1:1: {tmp_path / 'nowhere.toml'}: no such file")


def test_nothing_is_written_when_the_run_fails(run, tmp_path):
    target = tmp_path / "out.json"
    run("--env", "nobody", "--output", target, "--csv", tmp_path / "out.csv", "--plot", tmp_path / "out.png")
    assert list(tmp_path.iterdir()) == []


def whole_process(root, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "verifier", *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


def test_help_and_version_answer_without_the_heavy_libraries(root):
    code = (
        "import sys; from verifier.cli import main\n"
        "try: main(['run', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'scipy', 'lark', 'stormpy', 'matplotlib'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60)
    assert found.stdout.splitlines()[-1] == "[]"
    assert re.fullmatch(r"verify 0\.1\.0(\+g[0-9a-f]{12}(\.dirty)?)?\n", whole_process(root, "--version").stdout)
    assert whole_process(root).returncode == ExitCode.USAGE


def test_a_whole_process_keeps_its_output_clean_and_does_not_load_the_library_that_reads_documents(root):
    words = ["run", SPEC, "--cm", BY_CLASS, "--json", "--env", "ped", "--point-only"]
    code = f"import sys; from verifier.cli import main; code = main({words}); assert 'pydantic' not in sys.modules"
    found = subprocess.run(
        [sys.executable, "-c", f"{code}; sys.exit(code)"], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert (found.returncode, found.stderr) == (ExitCode.VIOLATED, "")
    assert json.loads(found.stdout)["verdict"] == "violated"


def test_a_reader_that_goes_away_is_no_crash(root):
    reading, writing = os.pipe()
    os.close(reading)
    found = subprocess.run(
        [sys.executable, "-m", "verifier", "manual", "commands"],
        cwd=root, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60,
    )  # fmt: skip
    os.close(writing)
    assert found.returncode not in (0, 1)
    assert "Traceback" not in found.stderr


def test_a_fault_of_the_program_exits_with_5(root, monkeypatch, capsys):
    def broken(*_):
        raise KeyError("inner")

    monkeypatch.setattr("verifier.cli.run.run_command", broken)
    assert main(["run", SPEC]) == ExitCode.INTERNAL
    err = capsys.readouterr().err
    assert err.startswith("verify: internal error: KeyError: 'inner'")
    assert "Traceback" not in err
