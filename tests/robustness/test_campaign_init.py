"""`verify campaign init`: layouts of networks from metadata, shapes and one run; two commands to a report."""

import json
import resource

import numpy as np
import pytest
from made_campaign import COLLISION, write_streets
from single_commands import (
    same_ap_and_recall,
    same_areas,
    same_lambda,
    same_matrices_and_probabilities,
    same_rates,
)

from verifier.base.documents import read_document
from verifier.base.errors import ExitCode
from verifier.base.toml import read_toml
from verifier.cli import main
from verifier.robustness.campaign.file import read_campaign
from verifier.robustness.campaign.result import CampaignDocument

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
from made_networks import dark_figures, fixed, with_metadata

ONE = (1, 3, 200, 320)
f32 = np.float32


@pytest.fixture(scope="module")
def streets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streets")
    write_streets(folder, 3)
    return folder


def init(folder, target, *more):
    files = ["--onnx", str(target / "net.onnx"), "--images", str(folder / "images")]
    files += ["--annotations", str(folder / "truth.json"), "-o", str(target / "campaign.toml")]
    return main(["campaign", "init", *files, *map(str, more)])


def output_of(target):
    return read_campaign(target / "campaign.toml").detectors["net"].layout.output


def network(folder, outputs, shape):
    return fixed(folder / "net.onnx", {name: np.array(each) for name, each in outputs.items()}, shape)


def rows(count, *columns):
    """(1, count, k) with equal rows."""
    return np.broadcast_to(np.array(columns, f32), (1, count, len(columns)))


NAMED = {"names": "{0: 'ped'}"}
LAYOUTS = {
    "YOLOv8": ({"output0": rows(300, 20, 20, 8, 9, 0.5).transpose(0, 2, 1)}, NAMED,
               {"transposed": True, "score_columns": (4, None), "box_format": "cxcywh", "suppression_iou": 0.7}),
    "YOLOv5": ({"output": rows(300, 20, 20, 8, 9, 0.5, 0.5)}, {"names": "['ped']"},
               {"transposed": False, "objectness_column": 4, "score_columns": (5, None), "suppression_iou": 0.7}),
    "YOLOv10": ({"output0": rows(300, 2, 2, 8, 9, 0.5, 0)}, {"names": "{0: 'ped', 1: 'a', 2: 'b'}"},
                {"labels": "output0", "label_column": 5, "score_columns": (4, 5), "suppression_iou": None}),
    "YOLOv10 or end-to-end": ({"output0": rows(300, 2, 2, 8, 9, 0.5, 1)}, {"names": "{0: 'ped', 1: 'a'}"},
                              {"labels": "output0", "label_column": 5, "suppression_iou": None}),
    "DETR": ({"pred_boxes": rows(100, 0.5, 0.5, 0.1, 0.2), "logits": rows(100, 3.0, -2.0)}, {},
             {"box_format": "cxcywh", "box_unit": "input_share", "activation": "softmax", "background": 1,
              "suppression_iou": None}),
    "SSD": ({"boxes": rows(3000, 0.1, 0.1, 0.2, 0.3), "scores": rows(3000, 0.9, 0.1)}, {},
            {"box_format": "xyxy", "box_unit": "input_share", "background": 0, "suppression_iou": 0.5}),
    "SSD or torchvision": (
        {"boxes": rows(7, 5, 5, 20, 40)[0], "labels": np.ones(7, np.int64), "scores": np.full(7, 0.5, f32)}, {},
        {"batch_axis": False, "labels": "labels", "scores": "scores", "background": 0, "box_unit": "input_pixels",
         "suppression_iou": None}),
    "TensorFlow": (
        {"num_detections": np.array([2.0], f32), "detection_boxes": rows(4, 0.1, 0.1, 0.2, 0.3),
         "detection_scores": rows(1, 0.9, 0.8, 0, 0)[0], "detection_classes": rows(1, 1, 1, 1, 1)[0]}, {},
        {"box_format": "yxyx", "count": "num_detections", "scores": "detection_scores", "background": 0}),
}  # fmt: skip


@pytest.mark.parametrize("family", LAYOUTS)
def test_layouts_are_read_and_what_is_guessed_is_listed(streets, tmp_path, capsys, family):
    outputs, metadata, wanted = LAYOUTS[family]
    with_metadata(
        fixed(tmp_path / "net.onnx", {name: np.array(each) for name, each in outputs.items()}, ONE), metadata
    )
    assert init(streets, tmp_path) == 0
    out = capsys.readouterr().out
    found = output_of(tmp_path)
    assert {name: getattr(found, name) for name in wanted} == wanted
    assert f"output = {family}" in out
    missing = "does not suppress overlapping boxes (NMS)"
    assert (missing in out) == (wanted.get("suppression_iou") is not None)
    text = (tmp_path / "campaign.toml").read_text()
    for line in out.split("to be confirmed:\n")[1].split("next:")[0].splitlines():
        assert f"# {line.strip()}" in text
    campaign = read_campaign(tmp_path / "campaign.toml")
    assert campaign.detectors["net"].layout.input.size == (200, 320)
    assert "ped" in campaign.detectors["net"].classes


def test_classes_are_mapped_and_an_open_size_is_a_guess(streets, tmp_path, capsys):
    outputs, _, _ = LAYOUTS["YOLOv10"]
    path = network(tmp_path, outputs, ("N", 3, "H", "W"))
    with_metadata(path, {"names": "{0: 'person', 1: 'bicycle', 2: 'car'}", "imgsz": "[96, 160]"})
    assert init(streets, tmp_path) == 0
    assert (tmp_path / "classes.txt").read_text() == "person -> ped\n* -> ignore\n"
    assert read_toml(tmp_path / "campaign.toml").at("detectors").at("net").at("input").at("size").value == [96, 160]
    assert "class_map = person -> ped: names of people in both" in capsys.readouterr().out
    assert init(streets, tmp_path) == ExitCode.BAD_INPUT  # classes.txt would be replaced
    assert "which would be replaced" in capsys.readouterr().err
    (tmp_path / "classes.txt").unlink()
    with_metadata(path, {"names": "__import__('os')", "imgsz": "open('x')"})  # no literals: nothing is executed
    assert init(streets, tmp_path) == 0
    assert "input.size = [640, 640]: the file leaves it open" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("net.onnx", b"", "not a network that onnxruntime can run"),
        ("net.onnx", b"\x00" * 50, "not a network that onnxruntime can run"),
        ("truth.json", b"{}", "truth.json"),
    ],
)
def test_files_that_are_none(tmp_path, capsys, name, content, complaint):
    write_streets(tmp_path, 1)
    dark_figures(tmp_path / "net.onnx")
    (tmp_path / name).write_bytes(content)
    (tmp_path / "campaign.toml").unlink()
    assert init(tmp_path, tmp_path) in (ExitCode.BAD_INPUT, ExitCode.USAGE)
    err = capsys.readouterr().err
    assert complaint in err
    assert "internal error" not in err
    assert not (tmp_path / "campaign.toml").exists()


def test_outputs_of_no_known_layout_are_told(streets, tmp_path, capsys):
    fixed(tmp_path / "net.onnx", {"odd": np.zeros((2, 2), f32)}, ONE)
    assert init(streets, tmp_path) == ExitCode.BAD_INPUT
    assert "outputs of no known layout: odd [2, 2]" in capsys.readouterr().err


def cpu_seconds():
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def two_commands(folder, *jobs, code=ExitCode.INCONCLUSIVE, more=""):
    """From a folder of images and a network to a report; `more` is added to the file by hand."""
    dark_figures(folder / "net.onnx")
    files = ["--depth", folder / "depth", "--spec", folder / "car.ltl"]
    assert init(folder, folder, *files) == 0
    path, fewer = folder / "campaign.toml", 'sweep = ["haze:visibility_m=978,97.8"]'
    path.write_text(path.read_text().replace('list = "published-2021"', fewer) + more)
    assert main(["campaign", str(path), "-o", str(folder / "made"), *jobs]) == code
    return read_document(CampaignDocument, json.loads((folder / "made/campaign.json").read_text()), "campaign.json")


def test_two_commands_from_images_and_a_network_to_a_report(tmp_path, capsys):
    write_streets(tmp_path, 6)
    found = two_commands(tmp_path).campaign
    assert [each.condition for each in found[:3]] == ["baseline", "haze-visibility_m_978", "haze-visibility_m_97.8"]
    assert found[0].recall == 1
    assert found[0].requirements[0].name == "slow_near_people"
    assert "HTML" in (tmp_path / "made/report.html").read_text()[:20].upper()


@pytest.mark.slow
def test_sixty_images_at_three_levels_take_ninety_cpu_seconds_at_most(tmp_path, capsys):
    """And each of their numbers is that of the single command, with lambda and the loop added to the file."""
    more = f"""{COLLISION}[closed_loop]
metric = ["roc_a", "roc_b"]
draws = 0
"""
    write_streets(tmp_path, 60)
    before = cpu_seconds()
    alone = two_commands(tmp_path, code=ExitCode.VIOLATED, more=more).campaign  # in haze, and by how much is below
    assert cpu_seconds() - before <= 90
    assert len(alone) == 6
    target, rows = tmp_path / "made", alone[:3]
    for row in rows:
        counting = ["--bins", "0,10,20,inf", "--min-score", "0.25", "--accept", "nothing-matched"]
        same_matrices_and_probabilities(tmp_path / "car.ltl", target, row, tmp_path, *counting)
        same_ap_and_recall(target, row, 0.25)
        same_lambda(target, row, capsys, "--distances", "8", "--speeds", "10 m/s")
    same_rates(target, rows, capsys)
    kinds = ["--group", "AnySevere=haze-visibility_m_97.8", "--severity", "haze-visibility_m_978=mild"]
    same_areas(target, alone, capsys, *kinds, "--draws", "0")
    verdicts = [row.requirements[0].verdict.partition(",")[0] for row in rows]
    assert verdicts == ["satisfied", "satisfied", "violated"]
    assert (
        main(["campaign", str(tmp_path / "campaign.toml"), "-o", str(target), "--refine", "2"]) == ExitCode.VIOLATED
    )
    document = json.loads((target / "campaign.json").read_text())
    finer = read_document(CampaignDocument, document, "campaign.json")
    (row,) = finer.breaks
    names = [each.condition for each in finer.campaign]
    assert names[:5] == ["baseline", "haze-visibility_m_978", *names[2:4], "haze-visibility_m_97.8"]
    assert names.index(row.fails_at) == names.index(row.holds_at) + 1
    assert [each for each in finer.campaign if each.images and each in alone] == list(rows)  # what was measured stays
    other = tmp_path / "other"
    other.mkdir()
    write_streets(other, 60)
    assert two_commands(other, "--jobs", "2", code=ExitCode.VIOLATED, more=more).campaign == alone


def test_classes_that_do_not_fit_the_scores_are_told(streets, tmp_path, capsys):
    outputs = {"output0": np.array(rows(300, 20, 20, 8, 9, 0.5).transpose(0, 2, 1))}
    with_metadata(fixed(tmp_path / "net.onnx", outputs, ONE), {"names": "{0: 'ped', 1: 'a', 2: 'b'}"})
    assert init(streets, tmp_path) == 0
    assert "the metadata name 3, and the outputs have scores of 1" in capsys.readouterr().out
