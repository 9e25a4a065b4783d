"""What a batch is given: folders with links, files that are none, too little room."""

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")
from image_batches import batch, saved

from verifier.base.errors import InputError, UsageError
from verifier.robustness.mutators.frames import DepthSource
from verifier.robustness.mutators.imagefiles import image_files
from verifier.robustness.mutators.sweeps import parse_mutation

HAZE = parse_mutation("haze:visibility_m=97.8")


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
