"""Commands whose work is done by the workers of a scheduler: the same bytes, the same errors, and who did what."""

import shlex
from pathlib import Path

import numpy as np
import pytest
from dask_clusters import cluster
from PIL import Image

from verifier import collision_map, compare
from verifier import run as verified
from verifier.cli import main


def noisy(bias, spread, images=120):
    """A table of made-up pairs: one or two objects in each image, one in ten without a report."""
    random, rows = np.random.default_rng(1), ["image,true_m,predicted_m"]
    for image in range(images):
        for true in random.uniform(1, 40, random.integers(1, 3)):
            report = max(true * (1 + spread * random.standard_normal()) + bias, 0)
            rows.append(f"{image},{true:.3f},{report:.3f}" if random.random() > 0.1 else f"{image},{true:.3f},")
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def scheduler():
    with cluster(2, processes=False) as address:
        yield address


@pytest.fixture
def folder(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("specs", "models", "examples"):
        (tmp_path / name).symlink_to(root / name)
    for name, bias, spread in (("far", 1.5, 0.05), ("wide", 0.0, 0.2)):
        (tmp_path / f"{name}.csv").write_text(noisy(bias, spread))
    return tmp_path


SPEC = "specs/car_pedestrian.ltl"
MATRICES = "examples/nuscenes_yolov3_class.json"
COMMANDS = {
    "run": f"run {SPEC} --cm {MATRICES} --sweep vmax=1..2 --draws 300",
    "rational": f"run {SPEC} --cm {MATRICES} --exact --point-only",
    "free": f"run {SPEC} --cm {MATRICES} --dependence-free --horizon 4 --env ped --draws 300",
    "compare": f"compare {SPEC} --cm a={MATRICES} --cm b=examples/nuscenes_yolov3_proposition.json --draws 300",
    "points": f"compare {SPEC} --cm {MATRICES} --planner all --env ped --draws 300 --verdict-from point",
    "collision": "collision --pairs far=far.csv --pairs wide=wide.csv --distances 5,15,25 --speeds '10..20:10 km/h' "
    "--bootstrap 20 --ranking-replicates 20",
    "loop": "collision far.csv --distances 5,15 --speeds '20 km/h' --bootstrap 0 --closed-loop 15 "
    "--empty-bins neighbour",
}


def written(text, *more):
    code = main([*shlex.split(text), "-o", "result.json", *more])
    return code, Path("result.json").read_bytes()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_bytes_are_those_of_one_process(folder, scheduler, capfd, name):
    here = written(COMMANDS[name])
    assert here[0] in (0, 1, 3)
    told = capfd.readouterr()
    assert written(COMMANDS[name], "--scheduler", scheduler) == here
    also = capfd.readouterr()
    assert also.out == told.out
    assert "blocks" in also.err
    assert "blocks" not in told.err


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_one_two_and_four_processes_give_the_same_bytes(folder, name):
    here = written(COMMANDS[name])
    for processes in ("1", "2", "4"):
        assert written(COMMANDS[name], "--scheduler", processes) == here


@pytest.mark.parametrize(
    "more",
    [
        ("--max-states", "2"),
        ("--env", "nowhere"),
        ("--initial", "x=99"),
    ],
)
def test_errors_are_those_of_one_process(folder, scheduler, capfd, more):
    command = ["run", SPEC, "--cm", MATRICES, "--draws", "300", *more]
    code = main(command)
    told = capfd.readouterr().err
    assert code not in (0, 1, 3)
    assert main([*command, "--scheduler", scheduler]) == code
    assert capfd.readouterr().err == told


def test_programs_ask_for_a_scheduler_too(folder, scheduler):
    choices = {"environment": "ped", "draws": 200}
    pairs = {"table": "far.csv", "speeds": "20 km/h", "bootstrap": 0}
    assert collision_map(scheduler=scheduler, **pairs).json_text() == collision_map(**pairs).json_text()
    for ask, what in ((verified, MATRICES), (compare, {"a": MATRICES})):
        assert ask(SPEC, what, scheduler=scheduler, **choices).json_text() == ask(SPEC, what, **choices).json_text()


def test_images_are_mutated_by_workers(folder, scheduler):
    Path("images").mkdir()
    random = np.random.default_rng(2)
    for number in range(6):
        Image.fromarray(random.integers(0, 256, (20, 30, 3), dtype=np.uint8)).save(f"images/{number}.png")
    Path("images/broken.png").write_bytes(b"no image")
    command = ["mutate", "images", "--mutation", "gaussian_blur:sigma_px=2", "--mutation", "brightness:factor=0.5"]
    for output, more in (("here", []), ("there", ["--scheduler", scheduler])):
        assert main([*command, "-o", output, *more]) == 4
    made = sorted(path.relative_to("here") for path in Path("here").rglob("*.*") if path.is_file())
    assert len(made) == 13
    assert made == sorted(path.relative_to("there") for path in Path("there").rglob("*.*") if path.is_file())
    assert all((Path("here") / path).read_bytes() == (Path("there") / path).read_bytes() for path in made)
