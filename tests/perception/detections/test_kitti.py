"""KITTI: hand-made files, and the published counts of the real ones."""

import math
import zipfile
from pathlib import Path

import numpy as np
import pytest

from verifier.base.errors import InputError
from verifier.perception.detections import Reading, class_map, distance, read_detections
from verifier.perception.detections.columns import ANY_CLASS, NO_SEQUENCE
from verifier.perception.detections.kitti import kitti_object, kitti_tracking

PEDESTRIAN = "Pedestrian 0.5 2 -0.2 712.4 143 810.73 307.92 1.8 0.5 1.2 3 1.65 4 -1.5707963267948966\n"
DONT_CARE = "DontCare -1 -1 -10 503.89 169.71 590.61 190.13 -1 -1 -1 -1000 -1000 -1000 -10\n"
RESULT = "Car -1 -1 0 1 2 3 4 1.5 1.6 4 0 1.65 20 0 0.75\n"


@pytest.fixture
def images(tmp_path):
    for name, text in {"a": PEDESTRIAN + "\n" + DONT_CARE, "b": ""}.items():
        for folder in ("labels", "results"):
            (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / "labels" / f"{name}.txt").write_text(text)
        (tmp_path / "results" / f"{name}.txt").write_bytes(
            b"" if name == "a" else RESULT.replace("\n", "\r\n").encode()
        )
    return tmp_path


def test_an_image_by_hand(images):
    found = kitti_object(images / "labels", images / "results")
    assert found.frame_name == ("a", "b")
    assert found.sequences == (NO_SEQUENCE,)
    truth, seen, regions = found.annotations, found.detections, found.ignored
    assert [found.classes[label] for label in truth.label] == ["Pedestrian"]
    # 3 m to the right, 4 m ahead, bottom 1.65 m below: centre 0.75 m below, looking ahead.
    assert truth.box_3d[0] == pytest.approx([4, -3, -0.75, 1.2, 0.5, 1.8, 0], abs=1e-12)
    assert distance(truth, "ground_plane") == pytest.approx([5.0])
    assert distance(truth, "euclidean_3d") == pytest.approx([math.sqrt(25 + 0.5625)])
    assert distance(truth, "forward") == pytest.approx([4.0])
    assert np.isnan(distance(truth, "given")).all()
    assert truth.box_2d[0].tolist() == [712.4, 143, 810.73, 307.92]
    assert {name: column.tolist() for name, column in truth.attributes.items()} == {
        "truncated": [0.5],
        "occluded": [2.0],
        "alpha": [-0.2],
    }
    assert truth.line.tolist() == [1]
    assert (regions.line.tolist(), regions.label.tolist()) == ([3], [ANY_CLASS])  # line 2 is blank
    assert np.isnan(regions.box_3d).all()
    assert seen.score.tolist() == [0.75]
    assert (seen.frame.tolist(), found.classes[seen.label[0]]) == ([1], "Car")
    assert [found.files[index].split("/")[-2:] for index in seen.file] == [["results", "b.txt"]]


def test_whole_turns_do_not_change_where_a_car_looks(images):
    """Seven radians about the downward axis from the right: -7 - pi / 2, as any angle whole turns away from it."""
    turned = PEDESTRIAN.replace("-1.5707963267948966", "{}")
    (images / "labels/a.txt").write_text("".join(turned.format(turn) for turn in (7, -7, 6, 0)))
    yaw = kitti_object(images / "labels", images / "results").annotations.box_3d[:, 6]
    for found, turn in zip(yaw.tolist(), (7, -7, 6, 0), strict=True):
        assert math.remainder(found + turn + math.pi / 2, 2 * math.pi) == pytest.approx(0, abs=1e-12)
    assert (np.abs(yaw) > math.pi).tolist() == [True, True, False, False]


def test_a_zip_archive_gives_the_same_as_the_folder(images):
    for folder in ("labels", "results"):
        with zipfile.ZipFile(images / f"{folder}.zip", "w") as archive:
            archive.writestr("training/", "")
            for path in sorted((images / folder).iterdir(), reverse=True):
                archive.write(path, f"training/label_2/{path.name}")
            archive.writestr("__MACOSX/._a.txt", "junk")
    folder = kitti_object(images / "labels", images / "results")
    packed = kitti_object(images / "labels.zip", images / "results.zip")
    assert packed.frame_name == folder.frame_name
    assert packed.annotations.box_3d.tolist() == folder.annotations.box_3d.tolist()
    assert packed.detections.frame.tolist() == folder.detections.frame.tolist()
    assert packed.files[0].endswith("labels.zip/training/label_2/a.txt")


def test_class_maps_and_dont_care(images):
    rules = class_map({"Ped*": "ped", "Car": "ignore"})
    found = kitti_object(images / "labels", images / "results", Reading(class_map=rules, dont_care="drop"))
    assert found.classes == ("ped",)
    assert (len(found.annotations), len(found.detections), len(found.ignored)) == (1, 0, 0)
    assert found.origin["classes_left_out"] == {"annotations": {}, "detections": {"Car": 1}}
    assert (found.origin["regions"], found.origin["dont_care"]) == (1, "drop")
    rest = Reading(class_map=class_map({"Ped*": "ped", "*": "ignore"}))  # a region of every class is none left out
    found = kitti_object(images / "labels", images / "results", rest)
    assert found.origin["classes_left_out"] == {"annotations": {}, "detections": {"Car": 1}}
    regions = class_map({"Ped*": "dont_care", "Car": "obs"})
    found = kitti_object(images / "labels", images / "results", Reading(class_map=regions))
    assert (len(found.annotations), len(found.ignored)) == (0, 2)
    assert found.ignored.label.tolist() == [ANY_CLASS, ANY_CLASS]


def test_a_missing_result_file_can_be_left_out_by_name(images):
    (images / "results/a.txt").unlink()
    found = kitti_object(images / "labels", images / "results", Reading(ignore=("missing_frames",)))
    assert found.frame_name == ("b",)
    assert (len(found.annotations), len(found.detections)) == (0, 1)
    assert found.detections.frame.tolist() == [0]
    assert found.origin["ignored"] == {"missing_frames": 1}


def test_tracking_frames_come_from_the_lengths(tmp_path):
    for folder in ("label_02", "results"):
        (tmp_path / folder).mkdir()
    for sequence in ("0000", "0003"):
        (tmp_path / f"label_02/{sequence}.txt").write_text(f"1 7 {PEDESTRIAN}")
        (tmp_path / f"results/{sequence}.txt").write_text(f"2 -1 {RESULT}")
    (tmp_path / "seqmap").write_text("0000 empty 000000 000003\n0003 empty 000000 000005\n")
    found = kitti_tracking(tmp_path / "label_02", tmp_path / "results", frames=tmp_path / "seqmap")
    assert found.frame_count == 8
    assert found.frame_name[3] == "0003/000000"
    assert found.frame_sequence.tolist() == [0, 0, 0, 1, 1, 1, 1, 1]
    assert found.annotations.frame.tolist() == [1, 4]
    assert found.detections.frame.tolist() == [2, 5]
    assert found.annotations.attributes["track"].tolist() == [7, 7]
    only = kitti_tracking(
        tmp_path / "label_02", tmp_path / "results", Reading(sequences=("0003",)), frames={"0000": 3, "0003": 5}
    )
    assert (only.sequences, only.frame_count, only.annotations.frame.tolist()) == (("0003",), 5, [1])
    short = kitti_tracking(tmp_path / "label_02", tmp_path / "results", Reading(ignore=("unknown_frames",)))
    assert (short.frame_count, len(short.detections)) == (4, 0)
    assert short.origin["ignored"] == {"unknown_frames": 2}


BOX = "1,2,9,8,0.5,1.5,1.6,4,0,1.65,20,0,0"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"0000.txt": f"0,2,{BOX}\n0,1,{BOX}\n"}, None),
        ({"Car/0000.txt": f"0,2,{BOX}\n"}, None),
        ({"cars/0000.txt": f"0,2,{BOX}\n0,3,{BOX}\n"}, None),
        ({"Car/0000.txt": f"0,2,{BOX}\n0,1,{BOX}\n0,2,{BOX}\n"}, "0000.txt:2: type id 1 in the folder 'Car'"),
        (
            {"Pedestrian/0000.txt": f"0,2,{BOX}\n"},
            "0000.txt:1: type id 2 in the folder 'Pedestrian', whose type id is 1",
        ),
        (
            {"0000.txt": f"0,2,{BOX}\n", "0009.txt": f"0,2,{BOX}\n"},
            "0009.txt:1: detection in frame 0 of sequence '0009'",
        ),
        (
            {"0009.txt": f"0,2,{BOX}\n"},
            "the frames do not match|no entry for any of the 1 frames|in frame 0 of sequence '0009'",
        ),
    ],
)
def test_detections_of_a_class_and_of_a_sequence(tmp_path, files, message):
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels/0000.txt").write_text(f"0 7 {PEDESTRIAN}")
    for name, text in files.items():
        (tmp_path / "found" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "found" / name).write_text(text)
    if message is None:
        found = kitti_tracking(tmp_path / "labels", tmp_path / "found")
        assert len(found.detections) == sum(text.count("\n") for text in files.values())
    else:
        with pytest.raises(InputError, match=message):
            kitti_tracking(tmp_path / "labels", tmp_path / "found")


@pytest.mark.parametrize(
    ("edges", "size", "boxes"),
    [
        ("-1 -1 -1 -1", "1.5 1.6 4", (True, False)),
        ("-1 -1 3 4", "1.5 1.6 4", (False, False)),
        ("1 2 3 4", "-1 -1 -1", (False, True)),
        ("1 2 3 4", "-1000 -1000 -1000", (False, True)),
        ("1 2 3 4", "-1 1.6 4", None),
    ],
)
def test_boxes_that_are_not_there(images, edges, size, boxes):
    (images / "results/b.txt").write_text(f"Car -1 -1 0 {edges} {size} 0 1.65 20 0 0.75\n")
    if boxes is None:
        with pytest.raises(InputError, match="a negative size"):
            kitti_object(images / "labels", images / "results")
    else:
        seen = kitti_object(images / "labels", images / "results").detections
        assert (np.isnan(seen.box_2d).all(), np.isnan(seen.box_3d).all()) == boxes
        assert boxes[0] or seen.box_2d.tolist() == [[float(edge) for edge in edges.split()]]


def test_lengths_of_sequences(tmp_path):
    """An empty file of labels has no frame of its own; a table may have columns of its own."""
    for name, labels in (("0000", f"1 7 {PEDESTRIAN}"), ("0001", "")):
        for folder, text in (("labels", labels), ("found", "")):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{name}.txt").write_text(text)
    labels, found = tmp_path / "labels", tmp_path / "found"
    assert kitti_tracking(labels, found).frame_sequence.tolist() == [0, 0]
    (tmp_path / "lengths.csv").write_text("seq,n_frames,from,to\n0000,2,8,9\n0001,1,8,9\n")
    assert kitti_tracking(labels, found, frames=tmp_path / "lengths.csv").frame_sequence.tolist() == [0, 0, 1]
    (tmp_path / "lengths.csv").write_text("0000\n")
    with pytest.raises(InputError, match=r"lengths.csv:1: expected 'sequence,frames'"):
        kitti_tracking(labels, found, frames=tmp_path / "lengths.csv")


# Counts of the published ground truth: objects, and by distance in the ground plane at 0, 10, ..., 60, 80 m.
TRACKING = {
    "Pedestrian": (4370, [860, 2123, 889, 400, 53, 26, 19]),
    "Car": (11378, [1473, 2102, 3030, 2191, 1348, 628, 597]),
    "Cyclist": (1390, [178, 512, 527, 127, 33, 11, 2]),
}
OBJECT = {
    "Pedestrian": (580, [131, 201, 137, 54, 25, 17, 15]),
    "Car": (8322, [1091, 2437, 2022, 1357, 986, 302, 127]),
    "Cyclist": (318, [28, 57, 112, 60, 32, 18, 11]),
}


def counted(found, name):
    chosen = found.annotations.take(found.annotations.label == found.classes.index(name))
    edges = [0, 10, 20, 30, 40, 50, 60, 80]
    return len(chosen), np.histogram(distance(chosen, "ground_plane"), edges)[0].tolist()


@pytest.mark.parametrize(("detector", "count"), [("det_pointrcnn", 37679), ("det_rrc2d", 17630)])
def test_tracking_counts_are_the_published_ones(shared, detector, count):
    folder = shared / "data/kitti_tracking"
    found = read_detections("kitti_tracking", folder / "label_02", folder / detector, frames=folder / "sequences.csv")
    assert found.frame_count == 3690
    assert {name: counted(found, name) for name in TRACKING} == TRACKING
    assert len(found.detections) == count  # lines of the files
    assert len(found.ignored) == 8364


@pytest.mark.parametrize(("detector", "count"), [("det_m3d_rpn.zip", 8699), ("det_rgb2d_fpointnet.txt", 14600)])
def test_object_counts_are_the_published_ones(shared, detector, count):
    folder = shared / "data/kitti_object_val"
    found = read_detections("kitti_object", folder / "label_2.zip", folder / detector)
    assert found.frame_count == 1876
    assert {name: counted(found, name) for name in OBJECT} == OBJECT
    assert len(found.detections) == count


def test_every_number_is_the_nearest_double(shared):
    # The same file read line by line in Python.
    folder = shared / "data/kitti_tracking"
    found = kitti_tracking(folder / "label_02", folder / "det_pointrcnn", frames=folder / "sequences.csv")
    boxes = found.detections
    for index in (0, 12, 30):
        mine = boxes.take(boxes.file == index + 12)
        lines = Path(found.files[index + 12]).read_text(encoding="ascii").splitlines()
        fields = [line.split(",") for line in lines]
        assert mine.score.tolist() == [float(each[6]) for each in fields]
        assert mine.box_2d.tolist() == [[float(value) for value in each[2:6]] for each in fields]
        assert mine.box_3d[:, 0].tolist() == [float(each[12]) for each in fields]  # z of the camera, ahead
        assert mine.line.tolist() == list(range(1, len(fields) + 1))
