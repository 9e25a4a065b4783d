"""Where results go: nothing is overwritten by mistake, and streams that are closed or full end no run wrongly."""

import json
import shutil
import subprocess
import sys
from unittest.mock import Mock

import pytest
from typed_runs import point_of, requirement_of

from verifier.base.errors import ExitCode, UsageError
from verifier.cli import main

SPEC, CM = "specs/car_pedestrian.ltl", "examples/nuscenes_yolov3_class.json"


@pytest.mark.parametrize("option", ["--output", "--csv"])
def test_an_output_that_is_an_input_is_refused(root, tmp_path, monkeypatch, capsys, option):
    monkeypatch.chdir(root)
    mine = shutil.copy(CM, tmp_path / "mine.json")
    (tmp_path / "link.json").symlink_to(mine)
    before = mine.read_bytes()
    assert main(["run", SPEC, "--cm", str(mine), option, str(tmp_path / "link.json")]) == ExitCode.USAGE
    assert "is an input of this run" in capsys.readouterr().err
    assert mine.read_bytes() == before


def test_a_missing_folder_is_refused_before_anything_is_computed(root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(root)
    monkeypatch.setattr("verifier.cli.run.verified", None)  # would fail if it were called
    for option, name in (("--output", "a.json"), ("--csv", "a.csv"), ("--plot", "a.png"), ("--export", "a.drn")):
        code = main(["run", SPEC, "--cm", CM, option, str(tmp_path / "none" / name)])
        assert code == ExitCode.BAD_INPUT
        assert "cannot be written" in capsys.readouterr().err
    assert main(["run", SPEC, "--cm", CM, "--csv", "-"]) == ExitCode.BAD_INPUT
    assert capsys.readouterr().err.startswith("verify: -: a file would be called so: name one, or /dev/stdout")


def test_no_model_is_written_where_another_output_cannot_be_made(root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(root)
    monkeypatch.setattr("verifier.cli.run.csv_text", Mock(side_effect=UsageError("no table")))
    options = ("--env", "ped", "--set", "vmax=2", "--initial", "v = 2", "--requirement", "stops_for_pedestrians")
    options += ("--point-only", "--csv", str(tmp_path / "a.csv"), "--export", str(tmp_path / "a.drn"))
    assert main(["run", SPEC, "--cm", CM, *options]) == ExitCode.USAGE
    assert "no table" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_swept_constants_do_not_collide_with_other_columns(root, tmp_path, monkeypatch):
    monkeypatch.chdir(root)
    options = ("--sweep", "vmax=1..2", "--env", "ped", "--point-only")
    main(["run", SPEC, "--cm", CM, *options, "--csv", str(tmp_path / "out.csv")])
    header = (tmp_path / "out.csv").read_text().splitlines()[0].split(",")
    assert len(set(header)) == len(header)
    assert "constant_vmax" in header


def test_every_swept_constant_is_a_line_of_the_plot(root):
    from verifier.telling.figures.run import _lines

    def point(vmax, cell, environment, probability):
        constants = {"vmax": str(vmax), "cell_m": str(cell)}
        return point_of(probability, environment, {"v": 1}, constants=constants)

    points = tuple(
        point(vmax, cell, environment, vmax / 10 + cell / 100 + (environment == "obs") / 2)
        for vmax in (1, 2)
        for cell in (1, 2)
        for environment in ("ped", "obs")
    )
    found = _lines(requirement_of(*points))
    assert list(found) == ["cell_m = 1", "cell_m = 2"]
    assert [x for x, _ in found["cell_m = 1"]] == [1.0, 2.0]
    worse = [each.probability for _, each in found["cell_m = 2"]]  # of both environments
    assert worse == pytest.approx([0.12, 0.22])


def whole(root, words, redirection):
    command = f"{sys.executable} -m verifier {words} {redirection}"
    return subprocess.run(["sh", "-c", command], cwd=root, capture_output=True, text=True, timeout=60)


def test_closed_and_full_streams_are_no_verdict(root, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # which hides what is written once more at exit
    assert whole(root, f"run {SPEC} --cm {CM} --env ped --point-only", ">&-").returncode != ExitCode.SATISFIED
    full = whole(root, "manual", ">/dev/full")
    assert full.returncode == ExitCode.INTERNAL
    assert full.stderr == "verify: standard output cannot be written: No space left on device\n"
    assert whole(root, "assess /no/such.toml", "2>/dev/full").returncode == ExitCode.BAD_INPUT


def test_json_survives_a_title_that_is_no_text(root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(root)
    document = json.loads((root / CM).read_text()) | {"title": "cost $x^{ \ud800 \x1b[2J"}
    (tmp_path / "odd.json").write_text(json.dumps(document))
    plot = tmp_path / "odd.png"
    code = main(["run", SPEC, "--cm", str(tmp_path / "odd.json"), "--json", "--env", "ped", "--plot", str(plot)])
    assert code == ExitCode.VIOLATED
    assert json.loads(capsys.readouterr().out)["title"] == document["title"]
    assert plot.stat().st_size > 1000
