"""`verify mutate` as a user meets it: files, table, document, contact sheet, exit codes, and what it refuses."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
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
    (tmp_path / "boxes.csv").write_text("frame,x1,y1,x2,y2\n0,10,10,20,30\n1,0,0,5,5\n2,30,0,60,40\n")
    return tmp_path


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_table_files_and_document(run, images, root):
    code, out, err = run(
        "images", "--mutation", BLUR, "--sweep", "haze:visibility_m=978,97.8", "--mutation", "rotation:angle_deg=90",
        "--depth", "depth", "--densify", "nearest", "--annotations", "boxes.csv", "-o", "out",
        "--sheet", "out/look.png",
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
        "note: boxes in the image move along; boxes in space and all other fields are as they were\n"
    )
    folders = (BLUR_FOLDER, "rotation-angle_deg_90", "haze-visibility_m_978", "haze-visibility_m_97.8")
    made = [f"{folder}/{name}" for folder in folders for name in ("0.png", "1.png", "2.png", "annotations.csv")]
    assert sorted(tree(images / "out")) == sorted(["look.png", "mutate.json", *made])
    # A quarter turn counter-clockwise about (30, 20): (x, y) goes to (10 + y, 50 - x), and the image ends at y = 40.
    assert (images / "out" / "rotation-angle_deg_90" / "annotations.csv").read_text() == (
        "frame,x1,y1,x2,y2\n0,20.0,30.0,40.0,40.0\n2,10.0,0.0,50.0,20.0\n"
    )
    document = json.loads((images / "out" / "mutate.json").read_text())
    read_back(document)
    assert document["command"][:4] == ["verify", "mutate", "images", "--mutation"]
    assert "out" not in document["command"]
    assert document["counts"] == {"images": 3, "unreadable": 0, "written": 12, "failures": 0}
    assert str(images) not in (images / "out" / "mutate.json").read_text()


def test_the_printed_document_is_the_written_one_and_equal_for_equal_inputs(run, images):
    first = run("images", "--preset", "published-2021:mild", "--depth-constant", 30, "-o", "a", "--json", "--jobs", 2)
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
        "-o", "mutated", "--sheet", "mutated/sheet.png",
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


def test_names_in_the_help_are_those_there_are():
    assert tuple(PUBLISHED) == get_args(PublishedList)


def test_help_speaks(run):
    code, out, _ = run("--help")
    assert code == 0
    assert "--densify {nearest,linear,pyramid}" in out


# The contact sheet: 320 pixels for each picture with 4 between them, 14 for a caption.


def test_the_sheet_shows_each_picture_and_its_boxes(run, images):
    for number in (1, 2):
        (images / "images" / f"{number}.png").unlink()
    Image.fromarray(np.full((40, 60, 3), 128, np.uint8)).save(images / "images" / "0.png")
    arguments = ["images", "--mutation", "truncation:left=0.5,canvas=cropped", "--mutation", "brightness:factor=2"]
    assert run(*arguments, "--annotations", "boxes.csv", "-o", "out", "--sheet", "sheet.png")[0] == ExitCode.SATISFIED
    sheet = np.asarray(Image.open("sheet.png").convert("RGB"))
    assert sheet.shape == (14 + 40 + 4, 3 * 324, 3)
    plain, cropped, bright = (sheet[14:54, left : left + 60] for left in (0, 324, 648))
    yellow = (255, 220, 0)
    for part, grey in ((plain, 128), (bright, 255)):  # the box 10, 10, 20, 30 has the columns 10 to 19
        assert (part[10, 10:20] == yellow).all()
        assert (part[29, 10:20] == yellow).all()
        assert (part[10:30, [10, 19]] == yellow).all()
        inside = part.copy()
        inside[10:30, 10:20] = grey
        assert (inside == grey).all()
    assert (cropped[:, :30] == 128).all()  # the box is gone
    assert (cropped[:, 30:] == 255).all()  # the picture is smaller, at the same scale


def test_a_wide_image_is_averaged(run, images):
    wide = np.zeros((20, 1280, 3), np.uint8)
    wide[:, ::4] = 200  # means of 4 x 4 pixels are 50
    Image.fromarray(wide).save(images / "wide.png")
    arguments = ["wide.png", "--mutation", "gaussian_blur:sigma_px=0", "-o", "out", "--sheet", "s.png"]
    assert run(*arguments)[0] == ExitCode.SATISFIED
    sheet = np.asarray(Image.open("s.png").convert("RGB"))
    assert sheet.shape == (14 + 5 + 4, 2 * 324, 3)
    assert (sheet[14:19, :320] == 50).all()
    assert (sheet[14:19, 324:644] == 50).all()
    (images / "wide.csv").write_text("frame,x1,y1,x2,y2\nwide,40,0,120,20\n")  # columns 10 to 29 of the small picture
    assert run(*arguments, "--annotations", "wide.csv")[0] == ExitCode.SATISFIED
    sheet = np.asarray(Image.open("s.png").convert("RGB"))
    yellow = (sheet[14:19, :320] == (255, 220, 0)).all(axis=2)
    assert np.array_equal(np.nonzero(yellow[2])[0], [10, 29])
    assert np.array_equal(np.nonzero(yellow[0])[0], np.arange(10, 30))


def test_a_sheet_of_nothing_usable(run, images):
    (images / "bad.png").write_text("no pixels")
    assert run("bad.png", "--mutation", BLUR, "-o", "out", "--sheet", "s.png")[0] == ExitCode.BAD_INPUT
    assert Image.open("s.png").size == (320, 14)


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
        (["images", "--mutation", BLUR, "--jobs", 0, "-o", "out"], 2, "expected from 1 to 256 jobs, got 0"),
        (["images", "--mutation", BLUR, "--jobs", 10**9, "-o", "out"], 2, "expected from 1 to 256 jobs, got 1000"),
        (["images", "--mutation", BLUR, "-o", ""], 2, "--output: the path is empty"),
        (["images", "--mutation", BLUR, "-o", "out", "--sheet", ""], 2, "--sheet: the path is empty"),
        (["images", "--mutation", BLUR, "-o", "out", "--depth", ""], 2, "--depth: the path is empty"),
        (["images", "--mutation", BLUR, "-o", "out", "--annotations", ""], 2, "--annotations: the path is empty"),
        (["", "--mutation", BLUR, "-o", "out"], 2, "one of the images has an empty name"),
        ([], 2, "no image is named: verify mutate IMAGES --mutation MUTATION -o FOLDER"),
        (["images", "--mutation", BLUR, "-o", "out", "--sheet", "images/sheet.png"], 2, "take it for an input"),
        (["images", "--mutation", BLUR, "-o", "out", "--depth", "depth", "--sheet", "depth/9.png"], 2, "an input"),
        (["images", "images/0.png", "--mutation", BLUR, "-o", "out"], 2, "0.png is named twice"),
        (["/dev/zero", "--mutation", BLUR, "-o", "out"], 4, "/dev/zero: expected a file, found a device or a pipe"),
        (["images", "--mutation", BLUR, "-o", "images"], 2, "the next run would take mutated images for images"),
        (["images", "--mutation", BLUR, "-o", "images/out"], 2, "write to a folder beside it"),
        (["images", "--mutation", BLUR, "-o", "boxes.csv"], 4, "boxes.csv: the folder cannot be made: File exists"),
        (["images", "--mutation", BLUR, "-o", "boxes.csv/out"], 4, "the folder cannot be made: Not a directory"),
        (["images", "--mutation", BLUR, "-o", "out", "--sheet", "s.jpg"], 2, "a file name ending in .png"),
        (["images", "--mutation", BLUR, "-o", "out", "--sheet", "none/s.png"], 4, "no such folder"),
        (["images", "--mutation", BLUR, "-o", "out", "--sheet", "images/0.png"], 2, "is an input of this run"),
        (["images", "--mutation", BLUR, "-o", "out", "--annotations", "none.csv"], 4, "no such file or folder"),
        (["images", "--mutation", BLUR, "-o", "out", "--annotations", "depth"], 4, "no file *.txt in it"),
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


def test_a_sheet_where_annotations_know_only_some_images(run, images):
    (images / "labels").mkdir()
    (images / "labels" / "1.txt").write_text("Car 0 0 0 1 1 20 20 1 1 1 1 1 1 1\n")
    code, out, err = run("images", "--mutation", BLUR, "--annotations", "labels", "-o", "out", "--sheet", "s.png")
    assert (code, err) == (ExitCode.BAD_INPUT, "")
    assert "1 image written to out; the list is mutate.json there\n" in out
    assert (images / "s.png").exists()
    assert json.loads((images / "out" / "mutate.json").read_text())["counts"]["written"] == 1


def test_files_of_an_earlier_run_are_not_taken_for_those_of_this_one(run, images):
    labels = images / "labels"
    labels.mkdir()
    for number in range(3):
        (labels / f"{number}.txt").write_text("")
    arguments = ["images", "--mutation", BLUR, "--annotations", "labels", "-o", "out"]
    for _ in range(2):
        code, out, err = run(*arguments)
        assert (code, err) == (ExitCode.SATISFIED, "")
        assert "earlier" not in out
    (images / "images" / "1.png").write_text("no pixels")
    (images / "images" / "2.png").unlink()
    said = f"4 files in out are of an earlier run, not of this one: the first {BLUR_FOLDER}/1.png\n"
    for resume in ([], ["--resume"]):
        code, out, err = run(*arguments, *resume)
        assert (code, err) == (ExitCode.BAD_INPUT, "")
        assert out.endswith(f"note: {said}")
        code, out, err = run(*arguments, *resume, "--json")
        assert (code, err) == (ExitCode.BAD_INPUT, f"verify: note: {said}")
        assert out == (images / "out" / "mutate.json").read_text()
        assert "earlier" not in out
    (images / "out" / BLUR_FOLDER / "labels" / "1.txt").unlink()
    (images / "out" / BLUR_FOLDER / "labels" / "2.txt").unlink()
    (images / "out" / BLUR_FOLDER / "1.png").unlink()
    assert "note: 1 file in out is of an earlier run, not of this one: gaussian" in run(*arguments)[1]


def test_the_list_of_an_earlier_run_does_not_stand_beside_images_of_another(run, images, monkeypatch):
    assert run("images", "--mutation", BLUR, "-o", "out")[0] == ExitCode.SATISFIED
    assert run("images", "--mutation", BLUR, "-o", "out", "--annotations", "none")[0] == ExitCode.BAD_INPUT
    assert (images / "out" / "mutate.json").exists()  # nothing was changed

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("verifier.robustness.mutators.batch.png_bytes", interrupted)
    assert run("images", "--mutation", BLUR, "-o", "out", "--seed", 1)[0] == 130
    assert not (images / "out" / "mutate.json").exists()


def test_a_sheet_among_the_outputs_is_refused(run, images):
    assert run("images", "--mutation", BLUR, "-o", "out")[0] == ExitCode.SATISFIED
    before = tree(images)
    code, _, err = run("images", "--mutation", BLUR, "-o", "out", "--sheet", f"out/{BLUR_FOLDER}/0.png")
    assert code == ExitCode.USAGE
    assert "lies among the mutated images" in err
    assert tree(images) == before


def test_annotations_are_not_overwritten(run, images):
    run("images", "--mutation", BLUR, "--annotations", "boxes.csv", "-o", "out")
    mine = f"out/{BLUR_FOLDER}/annotations.csv"
    code, _, err = run("images", "--mutation", BLUR, "--annotations", mine, "-o", "out")
    assert code == ExitCode.USAGE
    assert f"{mine} is an input and would be written to" in err


def test_a_folder_without_permission(run, images, monkeypatch):
    monkeypatch.setattr(
        "verifier.robustness.mutators.request.os.access", lambda *_: False
    )  # root may write everywhere
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


# Disks and interruptions, with a process of its own.


WAITING = """
import itertools, sys, time
from pathlib import Path
from verifier.cli import main
from verifier.robustness.mutators import batch
made, number = batch._image, itertools.count()
def waiting(*arguments):
    while next(number) > 3 and not Path("interrupted").exists():
        time.sleep(0.01)
    return made(*arguments)
batch._image = waiting
sys.exit(main(sys.argv[1:]))
"""
"""The command, but the fifth image waits until it was interrupted."""


def started(folder, *arguments, limit=None, program=("-m", "verifier")):
    """`verify mutate` as a process; `limit` is the largest file it can write, in bytes."""

    def limited():
        import resource

        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [sys.executable, "-B", *program, "mutate", *map(str, arguments)]  # no half of a compiled module
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limited
    )


def test_files_too_large_for_the_system_are_listed(images):
    Image.fromarray(np.zeros((40, 60, 3), np.uint8)).save(images / "images" / "black.png")
    process = started(images, "images", "--mutation", BLUR, "-o", "out", limit=5000)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (ExitCode.BAD_INPUT, "")
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
    assert "with --resume another run goes on from it" in err
    assert tree(images / "out") == {}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_whole_files_and_goes_on(run, images, how):
    for number in range(3, 14):
        Image.fromarray(picture(number)).save(images / "images" / f"{number}.png")
    sweep = "salt_and_pepper:share=0.01..0.2/8"
    arguments = ["images", "--sweep", sweep, "--mutation", "haze:visibility_m=50", "--depth-constant", 20]
    process = started(images, *arguments, "-o", "out", "--jobs", 2, program=("-c", WAITING))
    while len(list((images / "out").rglob("[0-9]*.png"))) < 20:
        assert process.poll() is None, "the run was over before it was interrupted"
        time.sleep(0.005)
    process.send_signal(how)
    (images / "interrupted").touch()
    _, err = process.communicate()
    left = sorted((images / "out").rglob("[0-9]*.png"))
    assert len(left) >= 20
    assert not (images / "out" / "mutate.json").exists(), "the run was over before it was interrupted"
    for path in left:
        with Image.open(path) as opened:
            assert opened.convert("RGB").size == (60, 40)
    if how == signal.SIGINT:
        assert (process.returncode, err) == (130, "verify: interrupted\n")
        assert len(tree(images / "out")) == len(left)
    code, out, _ = run(*arguments, "-o", "out", "--resume")
    assert code == ExitCode.SATISFIED
    assert f"{len(left)} kept from an earlier run" in out
    assert run(*arguments, "-o", "fresh")[0] == ExitCode.SATISFIED
    found, fresh = tree(images / "out"), tree(images / "fresh")
    assert {path: found[path] for path in fresh} == fresh


# Real images.


def test_real_images_with_true_depth(run, shared, root):
    data = shared / "data" / "images_kitti_depth"
    code, out, err = run(
        data / "image_2", "--sweep", "haze:visibility_m=978,97.8", "--mutation", "rotation:angle_deg=5",
        "--depth", data / "sparse_depth", "--densify", "linear", "--annotations", data / "label_2", "-o", "out",
        "--sheet", "sheet.png", "--jobs", 2,
    )  # fmt: skip
    assert (code, err) == (ExitCode.SATISFIED, "")
    assert "note: depth is known for 3.7 to 4.0 % of an image's pixels; the rest is a guess (linear)" in out
    for name in ("000008", "000019"):
        original = (data / "label_2" / f"{name}.txt").read_text()
        assert Path(f"out/haze-visibility_m_97.8/labels/{name}.txt").read_text() == original
        turned = Path(f"out/rotation-angle_deg_5/labels/{name}.txt").read_text().splitlines()
        assert len(turned) == len(original.splitlines())  # five degrees take no box out of these images
        assert turned[0].split()[8:] == original.splitlines()[0].split()[8:]
    plain = np.asarray(Image.open(data / "image_2" / "000008.png").convert("RGB")).astype(float)
    hazy = np.asarray(Image.open("out/haze-visibility_m_97.8/000008.png").convert("RGB")).astype(float)
    far = np.abs(hazy[150:190, 760:860] - (205, 208, 211)).mean()  # the end of the street
    near = np.abs(hazy[300:, 500:700] - plain[300:, 500:700]).mean()  # the road in front
    assert far < 25
    assert near < 25
    assert np.abs(plain[150:190, 760:860] - (205, 208, 211)).mean() > 60
