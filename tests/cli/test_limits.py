"""Limits of time and memory as a user meets them: what is held, what is said, what is written all the same."""

import json
import random
import xml.etree.ElementTree as ET

import pytest
from looping_systems import FORMULAS, write_system
from outside import verify_command, watched

from verifier.base.budget import Clock
from verifier.base.errors import ExitCode
from verifier.cli import main

GIB = 2**30


@pytest.fixture(scope="module")
def base_bytes(tmp_path_factory):
    """What the program and Storm's worker hold when they have answered a small question: the libraries, mostly."""
    folder = tmp_path_factory.mktemp("base")
    spec, matrices = write_system(folder, "F hit & G x < 15")
    found = watched(verify_command("run", spec, "--cm", matrices), folder)
    assert found.code in (ExitCode.SATISFIED, ExitCode.VIOLATED, ExitCode.INCONCLUSIVE), found.err
    return found.peak_bytes


def check_held(found, base_bytes, limit_gib):
    """The limit counts beyond the program itself; a fifth more is allowed."""
    assert found.code in (0, 1, 3, 6), found.err
    assert "Traceback" not in found.err
    assert found.peak_bytes <= base_bytes + 1.2 * limit_gib * GIB, (found.peak_bytes / GIB, base_bytes / GIB)
    if found.code == ExitCode.NO_ANSWER:
        assert "limit" in found.err
        assert "hint: " in found.err


@pytest.mark.slow
@pytest.mark.parametrize("mode", [["--point-only"], []], ids=["point", "confidence"])
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_that_once_took_everything_keep_to_the_memory(tmp_path, base_bytes, name, mode):
    system, formula = FORMULAS[name]
    spec, matrices = write_system(tmp_path, formula, system)
    found = watched(
        verify_command("run", spec, "--cm", matrices, "--timeout", 20, "--max-memory", 0.5, *mode), tmp_path
    )
    check_held(found, base_bytes, 0.5)
    if mode and name != "visits":
        assert found.code in (ExitCode.SATISFIED, ExitCode.VIOLATED), found.err


@pytest.mark.slow
@pytest.mark.parametrize("limit_gib", [0.05, 0.25])
@pytest.mark.parametrize(
    ("formula", "cells"),
    [
        ("G F[20,40] x = 3", 15),  # obligations
        ("F<=19000 hit", 15),  # product states
        ("G (x = 3 -> F<=2000 x = 4)", 400),
        (" & ".join(f"(G F x = {k})" for k in range(10)), 15),  # Storm's automaton
        ("F hit", 60_000),  # skeleton, chain, draws
        ("G[0,1000000] (x < 14 -> F<=300 hit)", 200),  # ages
        ("F[0,10000000] hit", 900),  # squares
    ],
)
def test_memory_keeps_to_its_limit_whatever_is_asked(tmp_path, base_bytes, formula, cells, limit_gib):
    spec, matrices = write_system(tmp_path, formula, cells=cells)
    found = watched(
        verify_command("run", spec, "--cm", matrices, "--timeout", 8, "--max-memory", limit_gib), tmp_path
    )
    check_held(found, base_bytes, limit_gib)


def random_question(rng):
    """A formula of some size on a system of some size, and the mode of asking."""
    cells = rng.choice([15, 40, 300, 5000])

    def state():
        return rng.choice([f"x = {rng.randrange(15)}", f"c = {rng.randrange(3)}", f"x < {rng.randrange(15)}", "hit"])

    def steps():
        return rng.choice([5, 40, 900, 15_000, 70_000, 10**6, 10**9])

    shapes = [
        lambda: f"G ({state()} -> F<={min(steps(), 20_000)} {state()})",
        lambda: f"G F[{rng.randrange(30)},{30 + rng.randrange(200)}] ({state()})",
        lambda: f"F<={steps()} ({state()})",
        lambda: f"G[0,{steps()}] ({state()} -> F<={steps()} {state()})",
        lambda: f"({state()}) U[{rng.randrange(50)},{50 + steps()}] ({state()})",
        lambda: " & ".join(f"(G F ({state()}))" for _ in range(rng.randint(2, 11))),
        lambda: " & ".join(f"(F ({state()} & X (({state()}) U ({state()}))))" for _ in range(rng.randint(2, 30))),
        lambda: " | ".join(f"(F G ({state()}) & G F ({state()}))" for _ in range(rng.randint(2, 20))),
    ]
    return rng.choice(shapes)(), cells, rng.choice([[], ["--point-only"], ["--exact", "--point-only"]])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_memory_keeps_to_its_limit_for_random_questions(tmp_path, base_bytes, seed):
    rng = random.Random(seed)
    formula, cells, mode = random_question(rng)
    limit_gib = rng.choice([0.03, 0.1, 0.3])
    spec, matrices = write_system(tmp_path, formula, rng.choice(["loop", "ends"]), cells)
    found = watched(
        verify_command("run", spec, "--cm", matrices, "--timeout", 6, "--max-memory", limit_gib, *mode), tmp_path
    )
    check_held(found, base_bytes, limit_gib)


def test_an_exhausted_limit_has_a_code_of_its_own_and_says_what_to_do(tmp_path, capsys):
    spec, matrices = write_system(tmp_path, FORMULAS["visits"][1])
    target = tmp_path / "run.json"
    code = main(["run", str(spec), "--cm", str(matrices), "--timeout", "0.5", "-o", str(target)])
    out, err = capsys.readouterr()
    assert (code, out) == (ExitCode.NO_ANSWER, "")
    assert "took longer than the limit of 0.5 s (--timeout)" in err
    assert "hint: allow more with --timeout" in err
    assert not target.exists()


@pytest.mark.parametrize(
    ("others", "verdict", "code"),
    [
        (["easy: P >= 0.9 [ F hit ]"], "no answer", ExitCode.NO_ANSWER),
        (["hard: P >= 0.9 [ G x = 0 ]"], "violated", ExitCode.VIOLATED),
        (["open: P = ? [ F hit ]"], "no answer", ExitCode.NO_ANSWER),
    ],
)
def test_what_is_finished_is_written(tmp_path, capsys, others, verdict, code):
    from verifier.evidence.documents import checked_document

    # The rate is 1/171 as measured, and may be as small as 1/6000: 50,000 steps may be too few for 14 reports.
    spec, matrices = write_system(tmp_path, "G[0,1000000] (x < 14 -> F<=50000 hit)", "ends")
    content = json.loads(matrices.read_text())
    content["bins"][0]["counts"] = [[1, 3], [170, 97]]
    matrices.write_text(json.dumps(content))
    spec.write_text(spec.read_text() + "\n".join(others) + "\n")
    target = tmp_path / "run.json"
    cases = tmp_path / "cases.xml"
    log = tmp_path / "log.sarif"
    outputs = ["-o", target, "--junit", cases, "--sarif", log, "--draws", 100]
    assert main(["run", str(spec), "--cm", str(matrices), *map(str, outputs)]) == code
    out, err = capsys.readouterr()
    assert err == ""
    assert f"verdict: {verdict}" in out
    assert "note: wanted: no answer. wanted: its steps are counted" in out
    document = json.loads(target.read_text())
    checked_document(document, target.read_bytes(), "run.json")  # its schema and its own consistency
    assert document["verdict"] == verdict
    assert [each["name"] for each in document["requirements"]] == [others[0].split(":")[0]]
    (left,) = document["unanswered"]
    assert left["name"] == "wanted"
    assert "--point-only" in left["reason"]
    (finished,) = left["finished"]
    assert finished["lower"] <= finished["probability"] <= finished["upper"]
    assert finished["upper"] - finished["lower"] < 1e-9
    problems = [each for each in json.loads(log.read_text())["runs"][0]["results"] if each["ruleId"] == "wanted"]
    assert [(each["level"], each["properties"]["verdict"]) for each in problems] == [("error", "no answer")]
    (suite,) = ET.parse(cases).getroot().findall("testsuite[@name='no answer']")
    (case,) = suite.findall("testcase[@name='wanted']")
    assert case.find("error").get("message").startswith("wanted: its steps are counted")


def test_a_number_of_one_engine_says_so_and_may_decide(tmp_path, capsys):
    spec, matrices = write_system(tmp_path, "F<=1000000000 hit", "ends")
    assert main(["run", str(spec), "--cm", str(matrices), "--point-only", "--json"]) == ExitCode.SATISFIED
    document = json.loads(capsys.readouterr().out)
    assert any(remark.startswith("wanted: one engine: ") for remark in document["remarks"])
    main(["run", str(spec), "--cm", str(matrices), "--point-only"])
    assert "but for those of one engine (see the notes)" in capsys.readouterr().out


def forever(*_, **__):
    while True:
        pass


@pytest.mark.parametrize(
    ("command", "module", "work", "said"),
    [
        (
            ["explain", "S", "--cm", "M"],
            "verifier.questions.explain.explaining",
            "_explain_worst",
            "explaining wanted",
        ),
        (
            ["require", "S", "--cm", "M"],
            "verifier.questions.require.requiring",
            "answer",
            "the search for what wanted requires",
        ),
        (
            ["compare", "S", "--cm", "mine=M"],
            "verifier.questions.compare.comparing",
            "shared_draws",
            "the comparison",
        ),
        (
            ["compare", "S", "--cm", "mine=M", "--draws", "50", "--certificates", "Z"],
            "verifier.evidence.bundle.certificates",
            "certified",
            "making the certificates of spec01_detector01",
        ),
        (
            ["evidence", "build", "S", "--cm", "M", "-o", "B"],
            "verifier.evidence.bundle.build",
            "make_results",
            "making the results",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_whatever_a_command_does_its_time_ends(tmp_path, capfd, monkeypatch, command, module, work, said):
    # What follows the checks of single formulas, draws and searches, once had no clock.
    spec, matrices = write_system(tmp_path, "F hit")
    places = {"S": str(spec), "M": str(matrices), "mine=M": f"mine={matrices}", "B": str(tmp_path / "bundle")}
    places["Z"] = str(tmp_path / "proofs.zip")
    monkeypatch.setattr(f"{module}.{work}", forever)
    monkeypatch.setattr(f"{module}.clock_of", lambda options, checks: Clock(0.3))
    code = main([places.get(word, word) for word in command])
    out, err = capfd.readouterr()
    assert (code, out) == (ExitCode.NO_ANSWER, ""), err
    assert f"{said} took longer than the limit of 0.3 s (--timeout)" in err
    assert not (tmp_path / "bundle").exists()
    assert not (tmp_path / "proofs.zip").exists()


def test_the_search_for_what_shows_a_bound_ends_in_time(tmp_path, capfd, monkeypatch):
    # It limits its own work as well; whatever that takes, `--timeout` ends it.
    spec, matrices = write_system(tmp_path, "G F hit", cells=4)
    for command, said in (
        (["run"], "intervals and bounds over all matrices: --point-only leaves them out. It took longer"),
        (["evidence", "build", "-o", str(tmp_path / "bundle")], "the results took longer"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr("verifier.analysis.robust.staying.Staying._follow", forever)
            module = "verifier.pipeline" if command == ["run"] else "verifier.evidence.bundle.build"
            patched.setattr(f"{module}.clock_of", lambda options, checks: Clock(1.0))
            code = main([*command, str(spec), "--cm", str(matrices), "--draws", "50"])
        out, err = capfd.readouterr()
        assert (code, out) == (ExitCode.NO_ANSWER, ""), err
        assert said in err
        assert not (tmp_path / "bundle").exists()


def test_a_check_of_a_bundle_ends_in_time(tmp_path, capfd, monkeypatch):
    spec, matrices = write_system(tmp_path, "G x < 15", cells=4)
    bundle = tmp_path / "bundle"
    assert main(["evidence", "build", str(spec), "--cm", str(matrices), "-o", str(bundle), "--point-only"]) == 0
    monkeypatch.setattr("verifier.evidence.bundle.check.check_contents", forever)
    assert main(["evidence", "check", str(bundle), "--timeout", "0.1"]) == ExitCode.NO_ANSWER
    assert "checking the bundle took longer than the limit" in capfd.readouterr().err


def test_what_is_known_of_all_detectors_may_end_in_time_and_the_answer_stands(tmp_path, capfd, monkeypatch):
    # `F c = 1` holds whatever the detector reports; not to find that out in time takes nothing from the answer.
    spec, matrices = write_system(tmp_path, "F c = 1")
    command = ["run", str(spec), "--cm", str(matrices), "--point-only", "--json"]
    main(command)
    known = json.loads(capfd.readouterr().out)

    def too_long(*_, **__):
        raise Clock(1.0).overdue("looking at all detectors")

    monkeypatch.setattr("verifier.pipeline.any_dependence", too_long)
    main(command)
    document = json.loads(capfd.readouterr().out)
    point, whatever = (each["requirements"][0]["points"][0] for each in (document, known))
    assert point["probability"] == whatever["probability"] == 1
    assert any("whether the detector matters at all" in remark for remark in document["remarks"])
    assert not any("whether the detector matters at all" in remark for remark in known["remarks"])
