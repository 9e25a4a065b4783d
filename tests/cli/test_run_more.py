"""`verify run` out of the ordinary: engines that disagree, limits, a terminal, files of every fault."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from matrix_documents import write_matrices
from published_matrices import PERFECT, write_matrix

from verifier.base.errors import ExitCode
from verifier.checking import asking
from verifier.cli import main

SPEC = "specs/car_pedestrian.ltl"
BY_CLASS = "examples/nuscenes_yolov3_class.json"
INVALID = Path(__file__).parents[1] / "data/invalid"
PED = Fraction(31, 158)  # vmax = 1: one look at the pedestrian, 2 m before the crosswalk


@pytest.fixture
def run(shipped):
    return shipped("run")


def shifted_engine(by):
    """The batch engine, but every number of its is too large by `by`."""
    honest = asking.satisfaction_probabilities

    def wrong(*arguments, **named):
        found = honest(*arguments, **named)
        return replace(found, probability=found.probability + by, lower=found.lower + by, upper=found.upper + by)

    return wrong


@pytest.mark.parametrize("by", [0.1, -0.1, 1e-6])
@pytest.mark.parametrize("mode", [[], ["--exact"]], ids=["doubles", "fractions"])
def test_engines_that_disagree_are_no_verdict(run, monkeypatch, tmp_path, mode, by):
    monkeypatch.setattr("verifier.checking.asking.satisfaction_probabilities", shifted_engine(by))
    target = tmp_path / "run.json"
    arguments = ["--env", "ped", "--requirement", "stops_for_pedestrians", "--output", target, *mode]
    code, out, err = run(*arguments)
    assert (code, out) == (ExitCode.INTERNAL, "")
    assert code == 5
    assert err.startswith("verify: planner published, ped")
    assert "the engines disagree" in err
    said = [float(number) for number in re.findall(r"says (\d\.\d+)", err)]
    assert said == pytest.approx([float(PED), float(PED) + by], abs=1e-12)  # Storm's number, then the batch engine's
    assert "internal error" not in err
    assert "Traceback" not in err
    assert not target.exists()


def test_one_wrong_requirement_of_several_is_enough(run, monkeypatch):
    honest, wrong, asked = asking.satisfaction_probabilities, shifted_engine(0.1), []

    def wrong_at_last(*arguments, **named):
        asked.append(arguments)
        return (wrong if len(asked) == 4 else honest)(*arguments, **named)

    monkeypatch.setattr("verifier.checking.asking.satisfaction_probabilities", wrong_at_last)
    code, out, err = run("--env", "ped")
    assert (code, out, len(asked)) == (ExitCode.INTERNAL, "", 4)
    assert "the engines disagree" in err


def test_more_memory_than_allowed_is_refused_before_it_is_taken(run):
    arguments = ["--set", "study_vmax=400", "--set", "vmax=20"]
    code, out, err = run(*arguments, "--max-memory", "0.5")
    assert (code, out) == (ExitCode.NO_ANSWER, "")
    assert "planner 'published' with 3 observations on 1684410 states needs about" in err  # 80,210 cells by 21
    assert "the limit is 0.5 GiB" in err
    assert "--max-memory" in err.splitlines()[-1]


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "much"])
def test_a_memory_limit_is_a_number_above_0(run, value):
    code, _, err = run(f"--max-memory={value}")
    assert (code, "--max-memory" in err) == (ExitCode.USAGE, True)


def ranges(run, *arguments, **files):
    """Values and strategy ranges of all requirements where a pedestrian stands, vmax = 3, start at 1, 2, 3."""
    arguments = ("--planner", "correct", "--env", "ped", "--set", "vmax=3", "--strategies", "--json", *arguments)
    _, out, err = run(*arguments, **files)
    assert err == ""
    document = json.loads(out)
    found = {}
    for each in document["requirements"]:
        pairs = [tuple(pair.values()) if isinstance(pair, dict) else tuple(pair) for pair in each["strategies"]]
        found[each["name"]] = [(p["probability"], *pair) for p, pair in zip(each["points"], pairs, strict=True)]
        assert len(found[each["name"]]) == 3
    return found, document


def test_over_endless_runs_no_winning_strategy_keeps_an_imperfect_detectors_promise(run):
    # Every car reaches the line, for it may not stand before it. One that has stopped there starts again at the
    # first look that misses the pedestrian, and 127 of 158 looks do.
    ended, _ = ranges(run)
    endless, document = ranges(run, "--endless")
    assert endless["stops_for_pedestrians"] == endless["all_three"] == [(0.0, 0.0, 0.0)] * 3
    assert endless["never_stalls_early"] == endless["stops_only_for_pedestrians"] == [(1.0, 1.0, 1.0)] * 3
    assert "paths are infinite" in " ".join(document["remarks"])
    assert all(
        low <= value + 1e-9 and value <= high + 1e-9 and high == pytest.approx(float(PED), rel=1e-9)
        for value, low, high in ended["all_three"]
    )


def test_over_endless_runs_a_perfect_detector_keeps_every_promise(run, tmp_path):
    found, _ = ranges(run, "--endless", cm=write_matrix(tmp_path / "perfect.json", PERFECT))
    assert set(found) == {"stops_only_for_pedestrians", "stops_for_pedestrians", "never_stalls_early", "all_three"}
    assert all(triple == (1.0, 1.0, 1.0) for triples in found.values() for triple in triples)


def command(*arguments):
    return [sys.executable, "-m", "verifier", "run", *map(str, arguments)]


def on_a_terminal(arguments, root, out):
    """Exit code and what appeared on a pseudo-terminal that is the process's standard error; stdout goes to `out`."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))  # a fresh one has no columns at all
    try:
        with out.open("wb") as stdout:
            process = subprocess.Popen(arguments, cwd=root, stdin=subprocess.DEVNULL, stdout=stdout, stderr=theirs)
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # how Linux says that the other side is closed
                break
            if not piece:
                break
            shown += piece
        return process.wait(timeout=60), shown.decode()
    finally:
        os.close(ours)


def test_a_person_at_a_terminal_sees_progress_and_a_file_gets_none_of_it(run, root, tmp_path):
    arguments = ["--sweep", "vmax=1..10", "--json", "--point-only"]
    shown_by, shown = on_a_terminal(command(SPEC, "--cm", BY_CLASS, *arguments), root, tmp_path / "out.json")
    assert "chains:" in shown
    assert "/30 " in shown  # 10 maximal speeds, 3 environments
    assert shown.replace("\r\n", "\n").endswith("\r")  # and the bar is wiped away at the end
    code, silent, err = run(*arguments)
    assert (code, err) == (shown_by, "")
    assert silent == (tmp_path / "out.json").read_text()
    assert json.loads(silent)["schema"] == "verifier.run"


def test_no_bar_for_a_single_chain(root, tmp_path):
    arguments = command(SPEC, "--cm", BY_CLASS, "--env", "ped", "--point-only")
    assert on_a_terminal(arguments, root, tmp_path / "out.txt") == (ExitCode.VIOLATED, "")
    assert b"\x1b" not in (tmp_path / "out.txt").read_bytes()  # a file gets no colours


REFUSED = [
    "specs/lookalike_letter.ltl",
    "specs/explosive_lets.ltl",
    "specs/deeply_nested.ltl",
    "specs/nul.ltl",
    "models/constants_circle.toml",
    "models/empty_file.toml",
    "models/build_no_rule.toml",
    "models/build_divide_by_zero.toml",
    "confusion/count_negative.json",
    "confusion/count_of_5000_digits.json",
    "confusion/latin1.json",
    "confusion/empty_file.json",
]


def refused(name, root, folder):
    """The arguments of `verify run` that read a faulty file, and what is said about it."""
    faulty = INVALID / name
    spec, matrix = folder / "good.ltl", folder / "good.json"
    write_matrices(matrix, [[3, 0, 0], [0, 3, 0], [1, 1, 4]], labels=["ped", "obs", "empty"], edges=(0, None))
    model = faulty if faulty.suffix == ".toml" else root / "models/car_pedestrian.toml"
    spec.write_text(f'model "{model}"\na: P = ? [ true ]\n')
    files = {".ltl": (faulty, matrix), ".toml": (spec, matrix), ".json": (spec, faulty)}[faulty.suffix]
    planner = ["--planner", "published"] if model.parent.name == "models" and model != faulty else []
    expected = faulty.with_suffix(".expected").read_text(encoding="utf-8")
    return [files[0], "--cm", files[1], *planner], f"verify: {faulty.parent}/{expected}"


@pytest.mark.parametrize("name", REFUSED)
def test_a_faulty_file_is_refused_with_its_message(root, tmp_path, capfd, name):
    arguments, expected = refused(name, root, tmp_path)
    assert main(["run", *map(str, arguments)]) == ExitCode.BAD_INPUT == 4
    assert capfd.readouterr() == ("", expected)


def test_a_whole_process_refuses_a_faulty_file_with_its_message(root, tmp_path):
    arguments, expected = refused("specs/deeply_nested.ltl", root, tmp_path)
    found = subprocess.run(command(*arguments), cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout, found.stderr) == (ExitCode.BAD_INPUT, "", expected)


def test_a_sweep_replaces_the_one_value_that_the_spec_sets(run):
    arguments = ("--sweep", "vmax=1..2", "--env", "ped", "--requirement", "stops_for_pedestrians", "--point-only")
    _, out, _ = run(*arguments)
    assert "vmax = 1" not in out  # the spec's; in the table vmax=2 is the worst
    _, out, _ = run(*arguments, "--json")
    assert json.loads(out)["settings"]["set"] == {}
