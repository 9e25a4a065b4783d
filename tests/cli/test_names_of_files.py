"""Names that no file can have, and the two ways to call the program."""

import re
import subprocess
import sys

import pytest
from small_bundles import SPEC, write_inputs

from verifier.base.errors import ExitCode

LONG = "x" * 300


@pytest.mark.parametrize(
    "words",
    [
        "evidence build specs/two_looks.ltl --cm matrices.json -o LONG",
        "evidence build specs/two_looks.ltl --cm matrices.json -o LONG.zip",
        "evidence build specs/two_looks.ltl --cm matrices.json -o LONG/b",
        "evidence check LONG",
        "closed-loop LONG --validation self --control-radius 2 --safety-radius 1.5",
        "run specs/long.ltl --cm matrices.json",
        "run specs/two_looks.ltl --cm LONG",
        "run specs/two_looks.ltl --cm matrices.json -o LONG",
        "confusion --format kitti_object --annotations LONG --detections LONG",
        "assess LONG",
    ],
)
def test_a_name_that_no_file_can_have_is_bad_input_and_named(words, tmp_path, monkeypatch, verify):
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path)
    (tmp_path / "specs/long.ltl").write_text(SPEC.replace("two_looks.toml", f"{LONG}.toml"))
    before = sorted(tmp_path.rglob("*"))
    code, out, err = verify(*words.replace("LONG", LONG).split())
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert LONG in err
    assert "File name too long" in err
    assert sorted(tmp_path.rglob("*")) == before


def test_the_package_itself_is_the_command(tmp_path):
    asked = [sys.executable, "-m", "verifier", "--version"]
    found = subprocess.run(asked, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert found.returncode == 0
    assert re.fullmatch(r"verify 0\.1\.0(\+g[0-9a-f]{12}(\.dirty)?)?\n", found.stdout)


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        (SPEC.replace("ped | F x = 2", "ped | F x / (s - s) = 2"), "specs/two_looks.ltl:4:32: division by zero"),
        (SPEC.replace("planner careful", "planner careful\ninitial x % (s - s) = 0"), "specs/two_looks.ltl:3:9: "),
        (
            SPEC.replace("F s = 1 ]\ndrives", "F slow ]\ndrives"),
            "models/two_looks.toml:24: labels.slow: division by zero",
        ),
    ],
    ids=["requirement", "initial", "label of the model"],
)
def test_an_error_of_an_expression_names_the_file_it_is_from(spec, place, tmp_path, monkeypatch, verify):
    monkeypatch.chdir(tmp_path)
    found, _ = write_inputs(tmp_path, spec=spec)
    model = found.parent.parent / "models/two_looks.toml"
    model.write_text(model.read_text() + '[labels]\nslow = "x / (s - s) > 1"\n')
    code, out, err = verify("run", "specs/two_looks.ltl", "--cm", "matrices.json", "--point-only")
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert place in err
    assert "<input>" not in err
