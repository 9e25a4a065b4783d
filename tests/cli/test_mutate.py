"""`verify mutate` as a user meets it: files, table, document, exit codes, and what it refuses."""

import errno
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from typed_documents import read_back

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")
from PIL import Image

from verifier.base.errors import ExitCode
from verifier.robustness.mutators import MUTATORS
from verifier.robustness.mutators.sweeps import PUBLISHED
from verifier.robustness.settings import PublishedList

BLUR = "gaussian_blur:sigma_px=1"
BLUR_FOLDER = "gaussian_blur-sigma_px_1"


@pytest.fixture
def run(tmp_path, monkeypatch, verify):
    """Run `verify mutate` in an empty folder; exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    return partial(verify, "mutate")


def picture(seed=0, height=40, width=60):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


@pytest.fixture
def images(tmp_path):
    """Three images, their depth maps with unknown depths, and boxes."""
    for folder in ("images", "depth"):
        (tmp_path / folder).mkdir()
    for number in range(3):
        Image.fromarray(picture(number)).save(tmp_path / "images" / f"{number}.png")
        depth = np.full((40, 60), 20 * 256, np.uint16)
        depth[:10] = 0
        Image.fromarray(depth).save(tmp_path / "depth" / f"{number}.png")
    (tmp_path / "boxes.csv").write_text(
        "frame,class,x1,y1,x2,y2\n0,ped,10,10,20,30\n1,ped,0,0,5,5\n2,ped,30,0,60,40\n"
    )
    return tmp_path


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_table_files_and_document(run, images, root):
    code, out, err = run(
        "images", "--mutation", BLUR, "--sweep", "haze:visibility_m=978,97.8", "--mutation", "rotation:angle_deg=90",
        "--depth", "depth", "--densify", "nearest", "--annotations", "boxes.csv", "-o", "out",
    )  # fmt: skip
    assert (code, err) == (ExitCode.SATISFIED, "")
    assert out == (
        "mutation                  images  failed\n"
        "------------------------  ------  ------\n"
        "gaussian_blur:sigma_px=1  3       0\n"
        "rotation:angle_deg=90     3       0\n"
        "haze:visibility_m=978     3       0\n"
        "haze:visibility_m=97.8    3       0\n"
        "\n"
        "12 images written to out; the list is mutate.json there\n"
        "note: depth is known for 75.0 % of an image's pixels; the rest is a guess (nearest)\n"
        "note: pixels with a guessed depth: 20 to 40 m 25 % of 7200\n"
        "note: boxes in the image move along; distances are as they were\n"
    )
    folders = (BLUR_FOLDER, "rotation-angle_deg_90", "haze-visibility_m_978", "haze-visibility_m_97.8")
    made = [f"{folder}/{name}" for folder in folders for name in ("0.png", "1.png", "2.png", "annotations.json")]
    assert sorted(tree(images / "out")) == sorted(["mutate.json", *made])
    # A quarter turn counter-clockwise about (30, 20): (x, y) goes to (10 + y, 50 - x), and the image ends at y = 40.
    turned = json.loads((images / "out" / "rotation-angle_deg_90" / "annotations.json").read_text())
    assert [(each["image_id"], each["bbox"]) for each in turned["annotations"]] == [
        (1, [20, 30, 20, 10]),
        (3, [10, 0, 40, 20]),
    ]
    document = json.loads((images / "out" / "mutate.json").read_text())
    read_back(document)
    assert document["command"][:4] == ["verify", "mutate", "images", "--mutation"]
    assert "out" not in document["command"]
    assert document["counts"] == {"images": 3, "unreadable": 0, "written": 12, "failures": 0}
    assert str(images) not in (images / "out" / "mutate.json").read_text()


def test_the_printed_document_is_the_written_one_and_equal_for_equal_inputs(run, images):
    first = run("images", "--preset", "published-2021:mild", "--depth-constant", 30, "-o", "a", "--json")
    second = run("images", "--preset", "published-2021:mild", "--depth-constant", 30, "-o", "b/c", "--json")
    assert first[:2] == second[:2]
    assert first[0] == ExitCode.SATISFIED
    assert first[1] == (images / "a" / "mutate.json").read_text() == (images / "b" / "c" / "mutate.json").read_text()
    assert tree(images / "a") == tree(images / "b" / "c")


def test_the_picture_of_the_readme(run, tmp_path):
    Image.effect_mandelbrot((640, 360), (-2, -1.2, 1, 1.2), 100).convert("RGB").save("picture.png")
    code, out, err = run(
        "picture.png", "--sweep", "haze:visibility_m=978,326,97.8",
        "--mutation", "rotation:angle_deg=5+jpeg:quality=20", "--depth-constant", "40",
        "-o", "mutated",
    )  # fmt: skip
    assert (code, err) == (ExitCode.SATISFIED, "")
    assert out == (
        "mutation                              images  failed\n"
        "------------------------------------  ------  ------\n"
        "rotation:angle_deg=5+jpeg:quality=20  1       0\n"
        "haze:visibility_m=978                 1       0\n"
        "haze:visibility_m=326                 1       0\n"
        "haze:visibility_m=97.8                1       0\n"
        "\n"
        "4 images written to mutated; the list is mutate.json there\n"
    )


def test_what_cannot_be_used_is_listed_and_the_exit_code_says_so(run, images, root):
    (images / "images" / "words.png").write_text("no pixels")
    (images / "depth" / "1.png").unlink()
    code, out, err = run("images", "--mutation", BLUR, "--preset", "published-2018", "--depth", "depth", "-o", "out")
    assert (code, err) == (ExitCode.BAD_INPUT, "")
    failed = [line for line in out.splitlines() if line.startswith("failed: ")]
    assert len(failed) == 4  # one line for each image and reason, not one for each mutation
    assert "failed: words: not a readable image" in failed[3]
    assert " and 14 more: the depth of 600 of 2400 pixels is unknown, 0 in the map; --densify fills them" in failed[0]
    assert "frame '1' has no depth map '1' with .npy, .png or .pfm" in failed[1]
    document = json.loads((images / "out" / "mutate.json").read_text())
    read_back(document)
    assert document["counts"]["unreadable"] == 1
    assert document["counts"]["written"] == sum(len(each["outputs"]) for each in document["images"]) > 0


def test_many_failures_are_cut_and_all_of_them_are_in_the_document(run, images):
    for number in range(60):
        (images / "images" / f"bad{number:02d}.png").write_text("no pixels")
    code, out, _ = run("images", "--mutation", BLUR, "-o", "out")
    assert code == ExitCode.BAD_INPUT
    assert out.count("failed: bad") == 50
    assert f"and 10 more failures, see {Path('out/mutate.json')}\n" in out
    assert json.loads((images / "out" / "mutate.json").read_text())["counts"]["failures"] == 60


def test_show_lists_every_mutator_or_what_is_asked_for(run):
    code, out, _ = run("--show")
    assert code == ExitCode.SATISFIED
    for mutator in MUTATORS.values():
        assert f"{mutator.name}: " in out
    assert run("--show", "--sweep", "jpeg:quality=10..12")[1] == "jpeg:quality=10\njpeg:quality=11\njpeg:quality=12\n"
    assert len(run("--show", "--preset", "published-2021")[1].splitlines()) == 22
    assert run("--show", "--mutation", "jpeg:quality=10", "--sweep", "jpeg:quality=10,11")[1].count("jpeg") == 2


def test_names_in_the_help_are_those_there_are():
    assert tuple(PUBLISHED) == get_args(PublishedList)


def test_help_speaks(run):
    code, out, _ = run("--help")
    assert code == 0
    assert "--densify {nearest,linear}" in out


# What is refused, before anything is written.


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["images", "-o", "out"], 2, "no mutation is named\n  hint: --mutation, --sweep or --preset; --show lists"),
        (["--mutation", BLUR, "-o", "out"], 2, "no image is named"),
        (["images", "--mutation", BLUR], 2, "name the folder to write to: -o FOLDER"),
        (["none", "--mutation", BLUR, "-o", "out"], 4, "none: no such file"),
        (["empty", "--mutation", BLUR, "-o", "out"], 4, "empty: no image below this folder"),
        (["images", "--mutation", "blurr", "-o", "out"], 2, "unknown mutation 'blurr'"),
        (["images", "--mutation", "jpeg:quality=10,20", "-o", "out"], 2, "this is a sweep"),
        (["images", "--preset", "published", "-o", "out"], 2, "unknown preset 'published'"),
        (["images", "--preset", "published-2021:bad", "-o", "out"], 2, "expected a group of"),
        (["images", "--mutation", "haze:visibility_m=9", "-o", "out"], 2, "needs depth: give --depth FOLDER"),
        (["images", "--mutation", BLUR, "--depth", "depth", "--depth-constant", 1, "-o", "out"], 2, "give one of"),
        (["images", "--mutation", BLUR, "--depth-constant", 0, "-o", "out"], 2, "expected metres above 0"),
        (["images", "--mutation", BLUR, "--depth-constant", -3, "-o", "out"], 2, "expected metres above 0"),
        (["images", "--mutation", BLUR, "--depth-constant", "nan", "-o", "out"], 2, "expected metres above 0"),
        (["images", "--mutation", BLUR, "--depth", "none", "-o", "out"], 4, "none: no such folder"),
        (["images", "--mutation", BLUR, "--densify", "linear", "-o", "out"], 2, "go with --depth FOLDER"),
        (["images", "--mutation", BLUR, "--depth", "depth", "--depth-scale", 0, "-o", "out"], 2, "a positive number"),
        (["images", "--mutation", BLUR, "--seed", -1, "-o", "out"], 2, "expected a seed from 0, got -1"),
        (["images", "--mutation", BLUR, "--jobs", 0, "-o", "out"], 2, "from 1 to 1024 processes that work, got 0"),
        (["images", "--mutation", BLUR, "-o", ""], 2, "--output: the path is empty"),
        (["images", "--mutation", BLUR, "-o", "out", "--depth", ""], 2, "--depth: the path is empty"),
        (["images", "--mutation", BLUR, "-o", "out", "--annotations", ""], 2, "--annotations: the path is empty"),
        (["", "--mutation", BLUR, "-o", "out"], 2, "one of the images has an empty name"),
        ([], 2, "no image is named: verify mutate IMAGES --mutation MUTATION -o FOLDER"),
        (["images", "images/0.png", "--mutation", BLUR, "-o", "out"], 2, "0.png is named twice"),
        (["/dev/zero", "--mutation", BLUR, "-o", "out"], 4, "/dev/zero: expected a file, found a device or a pipe"),
        (["images", "--mutation", BLUR, "-o", "images"], 2, "the next run would take mutated images for images"),
        (["images", "--mutation", BLUR, "-o", "images/out"], 2, "write to a folder beside it"),
        (["images", "--mutation", BLUR, "-o", "boxes.csv"], 4, "boxes.csv: the folder cannot be made: File exists"),
        (["images", "--mutation", BLUR, "-o", "boxes.csv/out"], 4, "the folder cannot be made: Not a directory"),
        (["images", "--mutation", BLUR, "-o", "out", "--annotations", "none.csv"], 4, "no such file or folder"),
        (["images", "--mutation", BLUR, "-o", "out", "--annotations", "depth"], 4, "the format is not recognised"),
        (["images/0.png", "depth/0.png", "--mutation", BLUR, "-o", "out"], 2, "two images are called '0'"),
    ],
)  # fmt: skip
def test_refused(run, images, arguments, code, said):
    (images / "empty").mkdir()
    before = tree(images)
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert said in err
    assert "Traceback" not in err
    assert tree(images) == before


def test_depth_maps_are_not_overwritten(run, images):
    Path(f"out/{BLUR_FOLDER}").mkdir(parents=True)
    (images / "depth" / "0.png").rename(f"out/{BLUR_FOLDER}/0.png")
    before = tree(images)
    code, _, err = run("images/0.png", "--mutation", BLUR, "--depth", f"out/{BLUR_FOLDER}", "-o", "out")
    assert code == ExitCode.USAGE
    assert f"out/{BLUR_FOLDER} is an input and would be written to" in err
    assert tree(images) == before


def test_files_of_an_earlier_run_are_not_taken_for_those_of_this_one(run, images):
    arguments = ["images", "--mutation", BLUR, "--annotations", "boxes.csv", "-o", "out"]
    for _ in range(2):
        code, _, err = run(*arguments)
        assert (code, err) == (ExitCode.SATISFIED, "")
    (images / "images" / "1.png").write_text("no pixels")
    (images / "images" / "2.png").unlink()
    said = f"verify: note: {{}} of an earlier run, not of this one: {{}}{BLUR_FOLDER}/{{}}\n".format
    two = "2 files in out are", "the first "
    assert run(*arguments)[::2] == (ExitCode.BAD_INPUT, said(*two, "1.png"))
    (images / "out" / BLUR_FOLDER / "1.png").unlink()
    (images / "images" / "1.png").unlink()
    code, out, err = run(*arguments[:3], *arguments[5:], "--json")
    assert (code, err) == (ExitCode.SATISFIED, said(*two, "2.png"))
    assert out == (images / "out" / "mutate.json").read_text()
    (images / "out" / BLUR_FOLDER / "2.png").unlink()
    assert run(*arguments[:3], *arguments[5:])[2] == said("1 file in out is", "", "annotations.json")


def test_the_list_of_an_earlier_run_does_not_stand_beside_images_of_another(run, images, monkeypatch):
    assert run("images", "--mutation", BLUR, "-o", "out")[0] == ExitCode.SATISFIED
    assert run("images", "--mutation", BLUR, "-o", "out", "--annotations", "none")[0] == ExitCode.BAD_INPUT
    assert (images / "out" / "mutate.json").exists()  # nothing was changed

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("verifier.robustness.mutators.batch.png_bytes", interrupted)
    assert run("images", "--mutation", BLUR, "-o", "out", "--seed", 1)[0] == 130
    assert not (images / "out" / "mutate.json").exists()


def test_annotations_are_not_overwritten(run, images):
    run("images", "--mutation", BLUR, "--annotations", "boxes.csv", "-o", "out")
    mine = f"out/{BLUR_FOLDER}/annotations.json"
    code, _, err = run("images", "--mutation", BLUR, "--annotations", mine, "-o", "out")
    assert code == ExitCode.USAGE
    assert f"{mine} is an input and would be written to" in err


def test_a_folder_without_permission(run, images, monkeypatch):
    monkeypatch.setattr("verifier.robustness.mutators.batch.os.access", lambda *_: False)  # root may write everywhere
    code, _, err = run("images", "--mutation", BLUR, "-o", "out")
    assert code == ExitCode.BAD_INPUT
    assert "out: the folder cannot be written to: no permission" in err


def test_hostile_names_do_not_reach_the_terminal(run, images):
    (images / "images" / "\x1b[31mred\u202e.png").write_text("no pixels")
    code, out, _ = run("images", "--mutation", BLUR, "-o", "out")
    assert code == ExitCode.BAD_INPUT
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "\\x1b[31mred" in out


def test_a_bar_on_a_terminal_only(run, images, monkeypatch):
    assert run("images", "--mutation", BLUR, "-o", "out")[2] == ""
    shown = []

    def bar(results, **settings):
        shown.append(settings["total"])
        return results

    monkeypatch.setattr("tqdm.tqdm", bar)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run("images", "--mutation", BLUR, "-o", "out")[0] == ExitCode.SATISFIED
    assert shown == [3]


# Disks.


def test_files_too_large_for_the_system_are_listed(run, images):
    resource = pytest.importorskip("resource")
    Image.fromarray(np.zeros((40, 60, 3), np.uint8)).save(images / "images" / "black.png")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    try:
        code, out, err = run("images", "--mutation", BLUR, "-o", "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (code, err) == (ExitCode.BAD_INPUT, "")
    assert sum(line.startswith("failed: ") and "File too large" in line for line in out.splitlines()) == 3
    assert sorted(tree(images / "out")) == [f"{BLUR_FOLDER}/black.png", "mutate.json"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk(run, images, monkeypatch, number):
    def full(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("verifier.base.files.os.fsync", full)
    code, out, err = run("images", "--mutation", BLUR, "-o", "out")
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert f"cannot be written: {os.strerror(number)}" in err
    assert "what is there is whole; make room" in err
    assert tree(images / "out") == {}


# Real images.


def test_real_images_with_true_depth(run, shared, root):
    data = shared / "data" / "images_kitti_depth"
    code, out, err = run(
        data / "image_2", "--mutation", "haze:visibility_m=97.8", "--mutation", "rotation:angle_deg=5",
        "--depth", data / "sparse_depth", "--densify", "linear", "--annotations", data / "label_2", "-o", "out",
    )  # fmt: skip
    assert (code, err) == (ExitCode.SATISFIED, "")
    assert "note: depth is known for 3.7 to 4.0 % of an image's pixels; the rest is a guess (linear)" in out
    for folder in ("haze-visibility_m_97.8", "rotation-angle_deg_5"):
        objects = json.loads(Path("out", folder, "annotations.json").read_text())["annotations"]
        assert sum(not each["iscrowd"] for each in objects) == 10  # five degrees take no object out of these images
    plain = np.asarray(Image.open(data / "image_2" / "000008.png").convert("RGB")).astype(float)
    hazy = np.asarray(Image.open("out/haze-visibility_m_97.8/000008.png").convert("RGB")).astype(float)
    far = np.abs(hazy[150:190, 760:860] - (205, 208, 211)).mean()  # the end of the street
    near = np.abs(hazy[300:, 500:700] - plain[300:, 500:700]).mean()  # the road in front
    assert far < 25
    assert near < 25
    assert np.abs(plain[150:190, 760:860] - (205, 208, 211)).mean() > 60
