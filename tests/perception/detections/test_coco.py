"""COCO by hand."""

import json

import numpy as np
import pytest

from verifier.perception.detections import Reading, class_map, distance, read_detections, with_distances
from verifier.perception.detections.coco import coco
from verifier.perception.detections.columns import NO_SEQUENCE
from verifier.perception.detections.filters import keep_attribute

TRUTH = {
    "info": {"description": "sample"},
    "images": [
        {"id": 7, "file_name": "city/b.png"},
        {"id": 3, "file_name": "a.png"},
        {"id": 5, "file_name": "city/c.png"},
    ],
    "categories": [{"id": 1, "name": "person"}, {"id": 18, "name": "dog"}],
    "annotations": [
        {
            "id": 21,
            "image_id": 3,
            "category_id": 1,
            "bbox": [10, 20, 30, 40],
            "iscrowd": 0,
            "area": 600,
            "depth": 12.5,
        },
        {"id": 22, "image_id": 7, "category_id": 18, "bbox": [1.5, 2, 3, 4], "area": 12},
        {"id": 23, "image_id": 7, "category_id": 1, "bbox": [0, 0, 100, 50], "iscrowd": 1, "area": 5000, "depth": 40},
    ],
}
RESULTS = [
    {"image_id": 7, "category_id": 18, "bbox": [1, 2, 3, 4], "score": 0.25},
    {"image_id": 3, "category_id": 1, "bbox": [11, 20, 30, 40], "score": 1},
]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "truth.json").write_text(json.dumps(TRUTH))
    (tmp_path / "results.json").write_text(json.dumps(RESULTS))
    return tmp_path / "truth.json", tmp_path / "results.json"


def test_images_boxes_and_crowds(files):
    found = coco(*files, distance_field="depth")
    assert found.frame_name == ("city/b.png", "a.png", "city/c.png")
    assert (found.sequences, found.frame_sequence.tolist()) == (("city", NO_SEQUENCE), [0, 1, 0])
    assert found.classes == ("person", "dog")
    truth = found.annotations
    assert truth.box_2d.tolist() == [[10, 20, 40, 60], [1.5, 2, 4.5, 6]]
    assert (truth.frame.tolist(), truth.label.tolist(), truth.line.tolist()) == ([1, 0], [0, 1], [1, 2])
    assert distance(truth, "given").tolist()[0] == 12.5
    assert np.isnan(distance(truth, "given")[1])
    assert np.isnan(distance(truth, "ground_plane")).all()
    assert truth.attributes["id"].tolist() == [21, 22]
    assert (found.ignored.box_2d.tolist(), found.ignored.label.tolist()) == ([[0, 0, 100, 50]], [0])
    assert found.detections.score.tolist() == [0.25, 1.0]
    assert found.detections.frame.tolist() == [0, 1]
    assert len(keep_attribute(found, "area", lowest=100).annotations) == 1


def test_names_that_are_not_unique_give_way_to_ids(files):
    truth = json.loads(files[0].read_text())
    truth["images"][0]["file_name"] = "a.png"
    files[0].write_text(json.dumps(truth))
    assert coco(*files).frame_name == ("7", "3", "5")
    truth["images"][0] = {"id": "seven"}
    truth["annotations"] = truth["annotations"][:1]
    del truth["annotations"][0]["id"]
    files[0].write_text(json.dumps(truth))
    files[1].write_text("[]")
    found = coco(*files)
    assert found.frame_name == ("seven", "3", "5")
    assert found.annotations.attributes["id"].tolist() == [0]


def test_distances_from_a_file(files, tmp_path):
    (tmp_path / "far.csv").write_text("frame;id;distance_m\ncity/b.png;22;7.5\n")
    found = with_distances(coco(*files, distance_field="depth"), tmp_path / "far.csv", "id")
    assert distance(found.annotations, "given").tolist() == [12.5, 7.5]
    assert found.origin["distances"]["unknown"] == 0
    assert found.origin["distances"]["name"] == "far.csv"


@pytest.mark.parametrize(
    ("change", "fault", "left"),
    [
        ({"image_id": 99}, "unknown_frames", 1),
        ({"category_id": 99}, "unknown_classes", 1),
        ({"bbox": [1, 2, -3, 4]}, "faulty_boxes", 1),
        ({"score": float("nan")}, "faulty_boxes", 1),
        ({"bbox": [1, 2, 1e6, 4]}, "implausible_boxes", 1),
    ],
)
def test_faults_that_are_ignored_are_left_out_and_counted(files, change, fault, left):
    results = [RESULTS[1], {**RESULTS[0], **change}]
    files[1].write_text(json.dumps(results))
    found = read_detections("coco", *files, Reading(ignore=(fault,)))
    assert len(found.detections) == left
    assert found.origin["ignored"] == {fault: 1}


def test_class_maps_leave_out_and_count(files):
    found = coco(*files, Reading(class_map=class_map({"person": "ped", "*": "ignore"})))
    assert found.classes == ("ped",)
    assert (found.annotations.line.tolist(), found.ignored.line.tolist()) == ([1], [3])
    assert found.origin["classes_left_out"] == {"annotations": {"dog": 1}, "detections": {"dog": 1}}
    assert found.origin["class_map"] == [["person", "ped"], ["*", "ignore"]]


def test_files_without_anything(tmp_path):
    (tmp_path / "truth.json").write_text(json.dumps({"images": [], "categories": [], "annotations": []}))
    (tmp_path / "results.json").write_text("[]")
    found = coco(tmp_path / "truth.json", tmp_path / "results.json")
    assert (found.frame_count, len(found.annotations), len(found.detections)) == (0, 0, 0)
