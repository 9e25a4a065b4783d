"""What a batch is given: folders with links, files that are none, annotations that fit in part, too little room."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")
import cv2
from image_batches import BLUR, batch, picture, saved
from PIL import Image

from verifier.base.errors import InputError, UsageError
from verifier.robustness.mutators import batch as batch_module
from verifier.robustness.mutators.annotations import read_annotations
from verifier.robustness.mutators.batch import mutate_files
from verifier.robustness.mutators.batch_result import BatchSettings
from verifier.robustness.mutators.coco_annotations import box_of
from verifier.robustness.mutators.frames import DepthSource
from verifier.robustness.mutators.imagefiles import image_files
from verifier.robustness.mutators.request import contact_sheet
from verifier.robustness.mutators.sweeps import parse_mutation

TURN = parse_mutation("rotation:angle_deg=90")
HAZE = parse_mutation("haze:visibility_m=97.8")
CROP = parse_mutation("truncation:left=0.25,canvas=cropped")


def names(*paths):
    return [each.name for each in image_files(paths)]


# Folders and files.


def test_links_below_a_folder_are_followed_and_loops_are_not(tmp_path):
    for name in ("set/own/1.png", "elsewhere/2.png", "elsewhere/deep/3.JPG", "file.png"):
        saved(tmp_path / name)
    (tmp_path / "set" / "drive").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "set" / "4.png").symlink_to("../file.png")
    (tmp_path / "set" / "gone.png").symlink_to("nowhere.png")
    (tmp_path / "elsewhere" / "up").symlink_to(tmp_path / "set", target_is_directory=True)
    (tmp_path / "set" / "own" / "again").symlink_to("..", target_is_directory=True)
    assert names(tmp_path / "set") == ["4", "drive/2", "drive/deep/3", "own/1"]


def test_the_order_is_that_of_the_paths_and_folders_may_be_called_by_a_dot(tmp_path, monkeypatch):
    for name in ("b/1.png", "a/2.png", "c.png", "a.png"):
        saved(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert names(".") == names(tmp_path) == ["a/2", "a", "b/1", "c"]


def test_a_folder_that_cannot_be_looked_into_is_not_an_empty_one(tmp_path, monkeypatch):
    saved(tmp_path / "set" / "1.png")
    saved(tmp_path / "set" / "closed" / "2.png")
    real = os.scandir

    def closed(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr("os.scandir", closed)
    with pytest.raises(InputError, match=r"closed: the folder cannot be read: Permission denied"):
        names(tmp_path / "set")


def test_a_pipe_or_a_device_is_no_image(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")  # reading it would wait for ever
    for path in (tmp_path / "pipe.png", Path("/dev/zero")):
        with pytest.raises(InputError, match="expected a file, found a device or a pipe"):
            names(path)
    with pytest.raises(InputError, match="no image below this folder"):
        names(tmp_path)


def test_an_empty_name_is_not_the_working_folder(tmp_path, monkeypatch):
    saved(tmp_path / "1.png")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="empty name"):
        names("")


def test_names_that_would_meet_are_told_what_helps(tmp_path):
    paths = [saved(tmp_path / name) for name in ("a.png", "a.jpg", "b/a.png")]
    with pytest.raises(
        UsageError, match=r"two images are called 'a': .*\n  hint: their mutated images .* rename one"
    ):
        names(*paths[:2])
    with pytest.raises(UsageError, match=r"two images are called 'a': .*\n  hint: name the folder above both"):
        names(paths[0], paths[2])
    with pytest.raises(UsageError, match=r"the image .*a\.png is named twice$"):
        names(paths[0], paths[0])


def error_of_opencv(code):
    error = cv2.error("as OpenCV says it")
    error.code = code
    return error


@pytest.mark.parametrize("failure", [MemoryError(), error_of_opencv(cv2.Error.StsNoMem)])
def test_an_image_without_room_does_not_stop_the_others(tmp_path, monkeypatch, failure):
    paths = [saved(tmp_path / "large.png", picture(0, 40, 60)), saved(tmp_path / "small.png")]
    real = batch_module.apply

    def full(mutation, frame, rng):
        if frame.size == (40, 60):
            raise failure
        return real(mutation, frame, rng)

    monkeypatch.setattr(batch_module, "apply", full)
    result = batch(paths, tmp_path / "out")
    assert [(name, each.mutation) for name, each in result.failures] == [("large", 0)]
    assert "not enough memory; fewer images at the same time" in result.failures[0][1].message
    assert [each.path for each in result.outputs] == [f"{BLUR.slug}/small.png"]


def test_another_error_of_opencv_is_a_fault_of_the_program(tmp_path, monkeypatch):
    def faulty(*_):
        raise error_of_opencv(cv2.Error.StsBadArg)

    monkeypatch.setattr(batch_module, "apply", faulty)
    with pytest.raises(cv2.error):
        batch([saved(tmp_path / "a.png")], tmp_path / "out")


# Depth.


def test_what_is_wrong_with_a_depth_map_says_so_without_folders_or_addresses(tmp_path):
    path = saved(tmp_path / "a.png")
    (tmp_path / "depth").mkdir()
    source = DepthSource(tmp_path / "depth")

    def said():
        ((_, failure),) = batch([path], tmp_path / "out", HAZE, depth=source).failures
        return failure.message

    (tmp_path / "depth" / "a.png").write_text("no pixels")
    assert said() == "depth map: not a readable PNG image: of no known format"
    saved(tmp_path / "depth" / "a.png")
    assert said() == "depth map: expected a 16-bit grey image, found one of mode RGB"
    np.save(tmp_path / "depth" / "a.npy", np.ones((8, 12)))
    assert said() == "frame 'a' has a second depth map, a.npy"


# Annotations.


def table(tmp_path, text):
    (tmp_path / "boxes.csv").write_text("frame,x1,y1,x2,y2\n" + text)
    return read_annotations(tmp_path / "boxes.csv")


def test_a_table_of_other_images_is_refused_and_an_empty_one_is_not(tmp_path):
    path = saved(tmp_path / "000001.png")
    with pytest.raises(InputError, match="its first is called '000001', theirs '1'"):
        batch([path], tmp_path / "out", annotations=table(tmp_path, "1,0,0,5,5\n2,0,0,5,5\n"))
    assert not (tmp_path / "out").exists()
    assert not batch([path], tmp_path / "out", annotations=table(tmp_path, "")).failures


def test_a_table_names_the_files_of_the_mutated_images(tmp_path):
    path = saved(tmp_path / "a.b.JPG")
    given = table(tmp_path, "a.b.JPG,0,0,5,5\na.b,1,1,5,5\na.b.jpg,,,,\n")
    batch([path], tmp_path / "out", annotations=given)
    assert (tmp_path / "out" / BLUR.slug / "a.b.png").exists()
    assert (tmp_path / "out" / BLUR.slug / "annotations.csv").read_text() == (
        "frame,x1,y1,x2,y2\na.b.png,0,0,5,5\na.b,1,1,5,5\na.b.png,,,,\n"
    )


@pytest.mark.parametrize(
    "text", ["1_0", "\u0661", "0x10", "1e", "1e9999", "--1", "1 0", ".", "", "inf", "NaN", "1,5"]
)
def test_texts_that_are_no_coordinates(text):
    with pytest.raises(InputError, match="expected a box"):
        box_of(["0", "0", text, "20"], None)


@pytest.mark.parametrize(
    ("text", "value"), [("5", 5), (" 5.50 ", 5.5), ("+5.", 5), (".5", 0.5), ("1E1", 10), ("05", 5), ("5e-1", 0.5)]
)
def test_texts_that_are_coordinates(text, value):
    assert box_of(["-1", "-2.5", text, "20"], None) == [-1, -2.5, value, 20]


def test_a_table_without_the_columns_says_what_it_has(tmp_path):
    (tmp_path / "boxes.csv").write_text("frame;x1;y1;x2;y2\na;1;2;3;4\n")
    with pytest.raises(InputError, match="expected one column frame; there is none among 'frame;x1;y1;x2;y2'"):
        read_annotations(tmp_path / "boxes.csv")


def coco(tmp_path, **size):
    document = {
        "categories": [{"id": 1, "name": "person"}],
        "images": [{"id": 1, "file_name": "a.png", **size}, {"id": 2, "file_name": "b.png"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 4, 3], "area": 9,
             "segmentation": [[1, 2, 5, 2, 5, 5]]}
        ],
    }  # fmt: skip
    (tmp_path / "coco.json").write_text(json.dumps(document))
    return document, read_annotations(tmp_path / "coco.json")


def test_annotations_of_an_image_of_another_size_are_not_put_on_this_one(tmp_path):
    paths = [saved(tmp_path / f"{name}.png") for name in "ab"]
    _, given = coco(tmp_path, height=16, width=24)
    result = batch(paths, tmp_path / "out", BLUR, TURN, annotations=given)
    said = "an image of 12 x 8 pixels; its annotations are of one of 24 x 16"
    assert [(name, each.mutation, each.message) for name, each in result.failures] == [("a", 0, said), ("a", 1, said)]
    assert sorted(path.name for path in (tmp_path / "out" / BLUR.slug).iterdir()) == ["annotations.json", "b.png"]


@pytest.mark.parametrize("size", [{}, {"height": None, "width": None}, {"height": 8, "width": 12}])
def test_shapes_stay_where_nothing_moved_whatever_size_is_declared(tmp_path, size):
    document, given = coco(tmp_path, **size)
    result = batch([saved(tmp_path / "a.png")], tmp_path / "out", BLUR, CROP, annotations=given)
    kept = json.loads((tmp_path / "out" / BLUR.slug / "annotations.json").read_text())
    assert kept["annotations"] == document["annotations"]
    cut = json.loads((tmp_path / "out" / CROP.slug / "annotations.json").read_text())
    assert "segmentation" not in cut["annotations"][0]
    assert cut["images"] == [{"id": 1, "file_name": "a.png", "height": 8, "width": 9}]
    assert not result.failures


def test_the_notes_tell_the_truth_about_shapes(tmp_path):
    path = saved(tmp_path / "a.png")
    _, given = coco(tmp_path)
    (note,) = batch([path], tmp_path / "out", TURN, annotations=given).remarks
    assert "where one moved, segmentation and keypoints are left out and area is that of the box" in note
    assert not batch([path], tmp_path / "out", BLUR, annotations=given).remarks
    (note,) = batch([path], tmp_path / "out", TURN, annotations=table(tmp_path, "a,1,2,5,5\n")).remarks
    assert note == "boxes in the image move along; boxes in space and all other fields are as they were"


# The sheet.


def sheet_of(paths, folder, *mutations, **settings):
    images, what = image_files(paths), BatchSettings(mutations, **settings)
    results = mutate_files(images, what, folder)
    (folder / "sheet.png").write_bytes(contact_sheet(images, results, what, folder))
    with Image.open(folder / "sheet.png") as opened:
        return np.asarray(opened.convert("RGB"))


def test_a_sheet_with_an_image_that_the_annotations_do_not_know(tmp_path):
    paths = [saved(tmp_path / f"{name}.png", picture(0, 40, 60)) for name in "abc"]
    _, given = coco(tmp_path)
    seen = sheet_of(paths, tmp_path / "out", TURN, annotations=given)
    assert seen.shape[0] == 3 * (40 + 14 + 4)


def test_a_sheet_of_tall_images_stays_small(tmp_path):
    paths = [saved(tmp_path / f"{number}.png", np.zeros((4000, 10, 3), np.uint8)) for number in range(2)]
    assert sheet_of(paths, tmp_path / "out", BLUR).shape == (2 * (960 + 14 + 4), 2 * (320 + 4), 3)
