"""What `verify assess --make` finds out before it makes anything, and what stays right at the edges of a making."""

import json

import numpy as np
import pytest
from made_assessment import matched

from verifier.base.errors import ExitCode
from verifier.perception.detections import read_detections
from verifier.robustness.assessment.making import Workshop, check_made, make
from verifier.robustness.assessment.reader import read_assessment
from verifier.robustness.detection_metrics import coco_metrics
from verifier.robustness.detectors.protocol import Detections

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")
pytest.importorskip("pycocotools", reason="pycocotools is not installed")


def edit(copied, *changes):
    """Replace parts of the assessment file."""
    text = (copied / "car.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (copied / "car.toml").write_text(text)


def annotate(copied, change):
    """Change the annotations by a function of the document."""
    document = json.loads((copied / "truth.json").read_text())
    change(document)
    (copied / "truth.json").write_text(json.dumps(document))


def other_size(document):
    document["images"][1]["width"] *= 2


def outside(document):
    document["annotations"][0]["bbox"] = [320, 10, 20, 40]


def no_image(document):
    document["annotations"][0]["image_id"] = 99


BEFORE = [
    ("no spec", lambda f: edit(f, ("car_pedestrian.ltl", "nothing.ltl")), "nothing.ltl: no such file"),
    ("no planner", lambda f: edit(f, ('"feedback"', '"feedbak"')), "did you mean 'feedback'?"),
    ("no environment", lambda f: edit(f, ('["ped"] }', '["pad"] }')), "did you mean 'ped'?"),
    ("column", lambda f: edit(f, ("inf] }", 'inf], classes = ["pedd"] }')), "counting: the data has classes that"),
    ("bins", lambda f: edit(f, ("[0, 9, inf]", "[0, 7]")), 'give other edges_m, or outside = "drop"'),
    ("detector's class", lambda f: edit(f, ('class = "ped"', 'class = "person"')), "class of the detector"),
    ("class map", lambda f: edit(f, ('kind = "hog"', 'kind = "hog"\nclass_map = "no.txt"')), "no.txt: no such file"),
    ("depth", lambda f: (f / "depth/street6.npy").unlink(), "frame 'street6.png' has no depth map"),
    ("size", lambda f: annotate(f, other_size), "'street2.png' of 640 x 200 pixels, and it has 320 x 200"),
    ("outside", lambda f: annotate(f, outside), "(320, 10, 340, 50) lies outside its image 'street1.png'"),
    ("no image", lambda f: annotate(f, no_image), "hint: correct the file of annotations"),
    ("infinite", lambda f: edit(f, ("[{ at = inf }, { at = 40 }", "[{ at = 5 }"), ("{ at = 10 }]", "{ at = inf }]")),
     "the images as they were taken are the mildest level"),
    ("unchanged", lambda f: edit(f, ("{ at = 10 }", "{ at = 10, unchanged = true }")),
     "the images as they were taken are the mildest level"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "message"), [each[1:] for each in BEFORE], ids=[each[0] for each in BEFORE])
def test_found_before_anything_is_made(copied, run, tmp_path, spoil, message):
    spoil(copied)
    code, err = run()
    assert code in (ExitCode.BAD_INPUT, ExitCode.USAGE)
    assert message in err
    assert not (tmp_path / "made").exists()


def test_the_folder_of_the_last_system_is_looked_at_before_the_first_is_made(copied, run, tmp_path):
    text = (copied / "car.toml").read_text()
    (copied / "car.toml").write_text(text + text.replace("systems.car", "systems.van"))
    (tmp_path / "made/van").mkdir(parents=True)
    (tmp_path / "made/van/old.png").write_text("")
    code, err = run()
    assert (code, "van: expected a new or empty folder" in err) == (ExitCode.BAD_INPUT, True)
    assert "with --cache no image is put through the detector again" in err
    assert not (tmp_path / "made/car").exists()


@pytest.mark.parametrize(
    ("more", "target", "message"),
    [
        ((), "streets/images/made", "a folder of inputs, which would change"),
        ((), "streets/depth", "a folder of inputs, which would change"),
        ((), "out.json", "is or holds the folder of --make"),
        ((), "out.json/made", "is or holds the folder of --make"),
        (("--cache", "CACHE"), "made", "--cache: expected a folder, found a file"),
    ],
)
def test_folders_that_would_mix(copied, run, tmp_path, more, target, message):
    (tmp_path / "file").write_text("")
    code, err = run(*(str(tmp_path / "file") if each == "CACHE" else each for each in more), target=target)
    assert code in (ExitCode.BAD_INPUT, ExitCode.USAGE)
    assert message in err
    assert not (tmp_path / "out.json").exists()
    assert len(list((copied / "images").iterdir())) == 6


def test_depth_of_another_size_where_only_reports_need_it(copied, run):
    """A blur needs no depth; to say how far away a report lies does."""
    edit(
        copied,
        ('mutation = "haze", visibility_m = "level"', 'mutation = "gaussian_blur", sigma_px = "level"'),
        ("[{ at = inf }, { at = 40 }, { at = 10 }]", "[{ at = 0.5 }, { at = 4 }]"),
        ('"reciprocal"', '"linear"'),
        ("[systems.car.follow_up]\nsize = 8\n", ""),
    )
    np.save(copied / "depth/street2.npy", np.ones((100, 160)))
    code, err = run()
    assert code == ExitCode.BAD_INPUT
    assert "street2.npy: the depth map has 160 x 100 pixels, the image 320 x 200" in err


class Nothing:
    """A detector that is sure of nothing."""

    classes = ("ped",)
    identity = {"detector": "nothing"}  # noqa: RUF012 -- a constant of the test

    def __call__(self, images):
        return [Detections(np.zeros((0, 4)), np.zeros(0), np.zeros(0, int)) for _ in images]


def test_a_level_at_which_everything_has_left_the_image(copied, tmp_path):
    """No object is there to be found: no metric is defined, and none is 0."""
    edit(
        copied,
        ('mutation = "haze", visibility_m = "level"', 'mutation = "truncation", left = "level"'),
        ("[{ at = inf }, { at = 40 }, { at = 10 }]", "[{ at = 0 }, { at = 0.99 }]"),
        ('"reciprocal"', '"linear"'),
        ('trade_off = { detector = "hog", metric = "roc_a", at_least = 0.6 }\n', ""),
    )
    (car,) = read_assessment(copied / "car.toml").assessments
    scenes = check_made(car, None, copied)
    made = make(car, None, scenes, copied, Workshop(tmp_path / "car", detector=Nothing()))[0].degradation
    assert dict(made.levels[0].performance) == {"AP": 0, "ADR": 0, "recall": 0, "precision": None}
    assert dict(made.levels[1].performance) == dict.fromkeys(("AP", "ADR", "recall", "precision"))


def test_an_operating_point_that_is_not_reached_is_said(copied, run, tmp_path):
    """A hundred false positives per image: the detector reports fewer, so that all it reports counts."""
    edit(copied, ("min_score = 0.5", "false_positives_per_image = 100"))
    text = (copied / "car.toml").read_text()
    (copied / "car.toml").write_text(text[: text.index("[systems.car.degradation]")])
    code, err = run()
    assert (code, err) == (ExitCode.VIOLATED, "")
    (system,) = json.loads((tmp_path / "out.json").read_text())["systems"]
    assert system["made"]["lowest_score"] is None
    assert any("no more than 100 false positives per image, so every detection counts" in each
               for each in system["remarks"])  # fmt: skip
    truth, found, taken = matched(tmp_path / "made/car/source", -10)
    assert [system["source"]["performance"][name] for name in ("TP", "FP", "FN")] == [
        len(taken), len(found) - len(taken), len(truth) - len(taken)
    ]  # fmt: skip


def test_an_operating_point_that_the_images_do_not_settle_is_said(copied, run, tmp_path):
    edit(copied, ("min_score = 0.5", "false_positives_per_image = 0.01"))
    text = (copied / "car.toml").read_text()
    (copied / "car.toml").write_text(text[: text.index("[systems.car.degradation]")])
    run()
    (system,) = json.loads((tmp_path / "out.json").read_text())["systems"]
    assert any("0.01 false positives per image cannot be distinguished from none with 6 source images" in each
               for each in system["remarks"])  # fmt: skip


def test_areas_of_masks_are_kept_and_judged_anew_alike(copied, run, tmp_path):
    """Masks of 900 square pixels make everybody a small object, whatever the rectangle; who is cut has none left."""

    def small(document):
        for each in document["annotations"]:
            each["area"] = 900

    assert any(each["area"] > 1024 for each in json.loads((copied / "truth.json").read_text())["annotations"])
    annotate(copied, small)
    edit(copied, ('metrics = ["recall", "AP0.5"]', 'metrics = ["recall", "AP_S"]'))
    text = (copied / "car.toml").read_text()
    (copied / "car.toml").write_text(text[: text.index("[systems.car.degradation]")])
    run()
    (system,) = json.loads((tmp_path / "out.json").read_text())["systems"]
    for part, performance in (("source", system["source"]), ("follow_up", system["targets"][-1])):
        folder = tmp_path / "made/car" / part
        recomputed = coco_metrics(read_detections("coco", folder / "annotations.json", folder / "detections.json"))
        for name, value in recomputed.items():
            assert performance["performance"][name] == pytest.approx(value, abs=1e-12), name
    written = json.loads((tmp_path / "made/car/follow_up/annotations.json").read_text())["annotations"]
    areas = [(each["area"], each["bbox"][2] * each["bbox"][3]) for each in written]
    assert {area == 900 for area, _ in areas} == {True, False}
    assert all(area in (900, pytest.approx(box)) for area, box in areas)
