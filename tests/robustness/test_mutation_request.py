"""A batch of mutations called from Python with settings: the files and the document of the command."""

import json

import numpy as np
import pytest

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")
from PIL import Image

from verifier.base.errors import InputError, UsageError
from verifier.cli import main
from verifier.robustness.mutators.request import chosen_mutations, mutated
from verifier.robustness.settings import MutateSettings

BLUR, TURNS = "gaussian_blur:sigma_px=1", "rotation:angle_deg=2,5"
CHOICES = {"mutation": (BLUR,), "sweep": (TURNS,), "annotations": "boxes.csv"}
OPTIONS = ["--mutation", BLUR, "--sweep", TURNS, "--annotations", "boxes.csv"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with two images and their boxes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()
    for number in range(2):
        pixels = np.random.default_rng(number).integers(0, 256, (40, 60, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / f"{number}.png")
    (tmp_path / "boxes.csv").write_text("frame,class,x1,y1,x2,y2\n0,ped,10,10,20,30\n1,ped,0,0,5,5\n")
    return tmp_path


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_and_document_are_those_of_the_command(folder):
    assert main(["mutate", "images", *OPTIONS, "-o", "command"]) == 0
    result = mutated(MutateSettings(images=("images",), **CHOICES, output="called"))
    made = tree(folder / "command")
    document = json.loads(made.pop("mutate.json"))
    del document["command"], document["checksums"]["command"]
    assert tree(folder / "called") == made
    assert json.loads(result.json_text()) == document


def test_mutations_are_those_asked_for_each_once(folder):
    settings = MutateSettings(mutation=("rotation:angle_deg=2",), sweep=(TURNS,))
    assert [each.text for each in chosen_mutations(settings)] == ["rotation:angle_deg=2", "rotation:angle_deg=5"]


@pytest.mark.parametrize(
    ("choices", "kind", "message"),
    [
        ({"images": ()}, UsageError, "no image is named"),
        ({"output": None}, UsageError, "name the folder to write to"),
        ({"output": "images/out"}, UsageError, "is or lies in the folder of images images"),
        ({"depth": "nowhere"}, InputError, "no such folder"),
        ({"depth_constant": 0.0}, UsageError, "expected metres above 0"),
    ],
)
def test_what_is_refused_leaves_no_folder(folder, choices, kind, message):
    settings = MutateSettings(**{"images": ("images",), **CHOICES, "output": "out", **choices})
    with pytest.raises(kind, match=message):
        mutated(settings)
    assert not (folder / "out").exists()
