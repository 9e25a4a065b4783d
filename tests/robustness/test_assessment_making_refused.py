"""What `verify assess --make` refuses, and how: with file and line, before anything is made where it can be seen."""

import resource
import shutil

import numpy as np
import pytest

from verifier.base.errors import ExitCode, InputError
from verifier.cli import main
from verifier.robustness.assessment.reader import read_assessment
from verifier.robustness.detectors import read_image

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")
pytest.importorskip("pycocotools", reason="pycocotools is not installed")


def test_without_make_nothing_is_made_and_the_notes_say_so(source, capfd):
    code = main(["assess", str(source / "car.toml")])
    out = capfd.readouterr().out
    assert code == ExitCode.SATISFIED
    assert "the detector was not run" in out
    assert "the levels of visibility were not made" in out


BAD_FILES = [
    ('"rotation"', '"rotations"', "unknown mutation 'rotations'"),
    ('visibility_m = "level"', 'visibility = "level"', "did you mean 'visibility_m'?"),
    ('visibility_m = "level"', "visibility_m = 40", 'expected one parameter that is "level", found 0'),
    ('visibility_m = "level"', "visibility_m = { low = 1, high = 2 }", "expected one value"),
    ("{ at = 10 }", "{ at = 0.0 }", "scale 'reciprocal' needs levels above 0"),
    ("{ at = 10 }", '{ at = 10, confusion = "x.json" }', "level 10 has data"),
    ("constant_sd = 3,", "", "constant_sd is missing"),
    ("counting = { edges_m = [0, 9, inf] }", "", "the table 'counting'"),
    ("edges_m = [0, 9, inf]", "edges_m = [9, 0]", "counting"),
    ("edges_m = [0, 9, inf]", 'edges_m = [0, 9], measure = "far"', "expected one of euclidean_3d"),
    ("adr_levels = [0.2, 0.5, 1]", "adr_levels = [1, 0.5]", "increasing"),
    ("AP = 0.05", "AP5 = 0.05", "unknown metric 'AP5'"),
    ('metric = "roc_a"', 'metric = "closed_loop"', "the curve that is made is 'roc_a'"),
    ('kind = "hog"', 'kind = "hogs"', "did you mean 'hog'?"),
    ('kind = "hog"\n', "", "missing key 'kind'"),
    ("enlargement = 2.0", "enlargement = 200.0", "the enlargement lies in"),
    ("enlargement = 2.0", 'enlargement = "big"', "enlargement: expected a finite number, got 'big'"),
    ("enlargement = 2.0", "stride_px = 8.0", "stride_px: expected a whole number, got 8.0"),
    ("enlargement = 2.0", "margin = 0.1", "margin: expected a list, got"),
    ("enlargement = 2.0", "margin = [0.1]", "margin"),
    ("enlargement = 2.0", "enlargement = true", "expected a finite number, got True"),
    ("enlargement = 2.0", "enlarge = 2.0", "did you mean 'enlargement'?"),
    ("min_score = 0.5", "min_score = 0.5\nfalse_positives_per_image = 1", "not both"),
    ("min_score = 0.5", "false_positives_per_image = 0", "above 0"),
    ('folder = "depth"', 'folder = "depth", constant_m = 3', "either 'folder' or 'constant_m'"),
    ('folder = "depth"', "constant_m = 0", "expected metres above 0"),
    ('folder = "depth"', 'folder = "depth", densify = "linaer"', "did you mean 'linear'?"),
    ('format = "coco"', 'format = "mot"', "expected one of coco, kitti_object, table"),
    ('distance_field = "distance_m"', 'frames = "x.csv"', "'frames' goes with the format 'table'"),
    ('annotations = { format = "coco", file = "truth.json", distance_field = "distance_m" }', "", "'annotations'"),
    ("depth = {", "performance = { AP = 0.5 }\ndepth = {", "either the performance on the source"),
    ('file = "truth.json"', 'file = "none.json"', "no such file"),
    ('images = "images"', 'images = "none"', "cannot be read as a folder"),
    ('distance_field = "distance_m"', 'distance_field = "far"', "no annotation has a field 'far'"),
    ("left = 0.4", "left = 1.0", "nothing is left"),
    ('folder = "depth"', 'folder = "images"', "expected a 16-bit grey image"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), BAD_FILES, ids=[message[:40] for _, _, message in BAD_FILES])
def test_a_file_that_cannot_be_made(run, tmp_path, old, new, message):
    code, err = run(old=old, new=new)
    assert code in (ExitCode.BAD_INPUT, ExitCode.USAGE)
    assert message in err
    assert "Traceback" not in err
    assert "internal error" not in err
    assert not (tmp_path / "out.json").exists()


def test_an_open_parameter_is_planned_and_not_made(run, tmp_path):
    code, err = run(old=", visibility_m = { low = 15.0, high = 40.0 }", new="")
    assert code == ExitCode.USAGE
    assert "circumstance 'fog': no image can be made with this transformation" in err
    assert "haze: give one of visibility_m, beta_per_m" in err
    assert not (tmp_path / "made").exists()


def test_folders_that_are_not_empty_or_not_names(run, tmp_path):
    (tmp_path / "made/car").mkdir(parents=True)
    (tmp_path / "made/car/old.png").write_text("")
    code, err = run()
    assert (code, "expected a new or empty folder" in err) == (ExitCode.BAD_INPUT, True)
    (tmp_path / "file").write_text("")
    code, err = run(target="file")
    assert (code, "the folder cannot be made" in err) == (ExitCode.BAD_INPUT, True)


def test_system_names_that_are_no_folders(copied, run, tmp_path):
    text = (copied / "car.toml").read_text().replace("systems.car", 'systems."../car"')
    (copied / "car.toml").write_text(text)
    code, err = run()
    assert (code, "the name of a system is that of its folder" in err) == (ExitCode.USAGE, True)
    assert not (tmp_path / "car").exists()


def test_the_cache_goes_with_making(source, tmp_path, capfd):
    code = main(["assess", str(source / "car.toml"), "--cache", str(tmp_path)])
    assert (code, "--cache keeps detections" in capfd.readouterr().err) == (ExitCode.USAGE, True)


def test_nothing_to_make(tmp_path, capfd):
    (tmp_path / "a.toml").write_text("[systems.car]\n")
    code = main(["assess", str(tmp_path / "a.toml"), "--make", str(tmp_path / "made")])
    assert (code, "nothing to make" in capfd.readouterr().err) == (ExitCode.USAGE, True)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "images/street2.png").unlink(), "frame 'street2.png' has no image"),
        (lambda folder: shutil.copy(folder / "images/street2.png", folder / "images/more.png"), "has no frame"),
        (lambda folder: (folder / "images/street2.png").write_bytes(b"\x89PNG no"), "not a readable image"),
        (lambda folder: (folder / "depth/street2.npy").unlink(), "street2"),
        (lambda folder: np.save(folder / "depth/street2.npy", np.ones((3, 3))), "the depth map has 3 x 3 pixels"),
        (lambda folder: np.save(folder / "depth/street2.npy", np.zeros((200, 320))), "64000 of 64000 pixels"),
    ],
    ids=["no image", "no frame", "no picture", "no depth", "other size", "no depth known"],
)
def test_images_and_what_belongs_to_them(copied, run, tmp_path, spoil, message):
    spoil(copied)
    code, err = run()
    assert code == ExitCode.BAD_INPUT
    assert message in err
    assert "Traceback" not in err
    assert not (tmp_path / "out.json").exists()


def test_a_full_disk_leaves_whole_files_and_no_result(run, tmp_path):
    """No file may grow beyond 6000 bytes: a follow-up image cannot be written, and nothing partial stays."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, limits[1]))
        code, err = run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code == ExitCode.BAD_INPUT, err
    assert "cannot be written" in err
    assert not (tmp_path / "out.json").exists()
    follow_up = tmp_path / "made/car/follow_up"
    assert not (follow_up / "pairs.csv").exists()  # so the folder is known to be incomplete
    for path in (tmp_path / "made").rglob("*"):
        assert not path.name.startswith(".")
        if path.suffix == ".png":
            read_image(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('output = { boxes = "boxes", ', "output = { ", "missing key 'boxes'"),
        ("lowest_score = 0.1", 'lowest_score = "low"', "lowest_score: expected a finite number, got 'low'"),
        ('boxes = "boxes"', "boxes = 5", "boxes: expected a text in quotes, got 5"),
        ("score_columns = [4]", "score_columns = 4", "score_columns: expected a list, got"),
        ('box_format = "xyxy"', 'box_format = "yx"', "box_format: expected one of"),
        ("size = [200, 320]", "size = [200]", "input size"),
        ("size = [200, 320]", "sizes = [200, 320]", "did you mean 'size'?"),
        ('file = "net.onnx"\n', "", "missing key 'file'"),
        ('classes = ["ped"]', "classes = []", "at least 1 entry"),
    ],
)
def test_layouts_that_are_none(tmp_path, old, new, message):
    text = """\
[systems.car.source]
images = "images"
annotations = { format = "coco", file = "truth.json" }
[systems.car.detector]
kind = "onnx"
file = "net.onnx"
classes = ["ped"]
input = { size = [200, 320], mean = [0.5, 0.5, 0.5] }
output = { boxes = "boxes", scores = "scores", lowest_score = 0.1, box_format = "xyxy", score_columns = [4] }
"""
    path = tmp_path / "net.toml"
    path.write_text(text)
    layout = read_assessment(path).assessments[0].detector.layout
    assert (layout.input.size, layout.input.mean) == ((200, 320), (0.5, 0.5, 0.5))
    assert layout.output.score_columns == (4, None)
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError) as found:
        read_assessment(path)
    assert message in str(found.value)
    assert "net.toml:" in str(found.value)


def test_a_metric_that_is_not_defined_is_told_with_one_that_is(copied, run):
    text = (copied / "car.toml").read_text()
    (copied / "car.toml").write_text(text[: text.index("[systems.car.degradation]")])
    code, err = run(old='metrics = ["recall", "AP0.5"]', new='metrics = ["precision"]')
    assert (code in (ExitCode.SATISFIED, ExitCode.VIOLATED), err) == (True, "")
    code, err = run(old="min_score = 0.5", new="min_score = 99", target="two")
    assert code == ExitCode.USAGE
    assert "'source' has no value of precision" in err
    assert "such as recall and AP" in err
