"""MOTChallenge by hand."""

from pathlib import Path

import pytest

from verifier.base.errors import InputError
from verifier.perception.detections import Reading, distance, with_distances
from verifier.perception.detections.mot import mot, sequences_of_files

TRUTH = "1,1,100,50,30,80,1,1,0.9\n3,1,102,50,30,80,1,1,0.8\n3,2,10,50,30,80,0,8,0.5\n3,4,10,50,30,80,1,3,1\n"
SEEN = "1,-1,101,50,30,80,0.9,-1,-1,-1\n2,-1,102,51,30,80,70.5,-1,-1,-1\n"


@pytest.fixture
def folder(tmp_path):
    for name in ("MOT16-02", "MOT16-04"):
        for kind, text in (("gt", TRUTH), ("det", SEEN)):
            (tmp_path / name / kind).mkdir(parents=True)
            (tmp_path / name / kind / f"{kind}.txt").write_text(text)
    (tmp_path / "MOT16-04/seqinfo.ini").write_text("[Sequence]\nname=MOT16-04\nseqLength=5\n")
    return tmp_path


def test_sequences_by_hand(folder):
    found = mot(folder, folder)
    assert found.sequences == ("MOT16-02", "MOT16-04")
    assert found.frame_count == 3 + 5
    assert found.frame_name[3] == "MOT16-04/000001"
    truth = found.annotations
    assert truth.frame.tolist() == [0, 2, 2, 3, 5, 5]
    assert truth.box_2d[0].tolist() == [100, 50, 130, 130]
    assert [found.classes[label] for label in truth.label[:3]] == ["pedestrian", "pedestrian", "car"]
    assert truth.attributes["visibility"].tolist()[:3] == [0.9, 0.8, 1.0]
    assert [found.classes[label] for label in found.ignored.label] == ["distractor"] * 2
    assert found.detections.score.tolist() == [0.9, 70.5] * 2
    assert found.detections.frame.tolist() == [0, 1, 3, 4]


def test_the_sequence_of_a_file():
    paths = [
        Path(path) for path in ("/S1/gt/gt.txt", "/a/S2/gt/gt.txt", "/a/S3/gt.txt", "/a/S4.txt", "/S5/det/det.txt")
    ]
    assert sequences_of_files(paths, "annotations") == ["S1", "S2", "S3", None, None]
    assert sequences_of_files(paths, "detections") == [None, None, None, None, "S5"]
    assert sequences_of_files(paths[3:4], "detections") == sequences_of_files(paths[3:4], "annotations") == ["S4"]


def test_detections_of_another_sequence_are_in_no_frame(tmp_path):
    for truth, seen in (("S1",), ("S1", "S9")), (("S1", "S2"), ("S1", "S2", "S9")):
        for folder, names, text in (("a", truth, TRUTH), ("b", seen, SEEN)):
            (tmp_path / folder).mkdir(exist_ok=True)
            for name in names:
                (tmp_path / folder / f"{name}.txt").write_text(text)
        with pytest.raises(InputError, match=r"S9.txt:1: detection in frame 1 of sequence 'S9', .*\(and 1 more"):
            mot(tmp_path / "a", tmp_path / "b")


def test_flat_files_one_sequence_and_a_class(folder, tmp_path):
    (tmp_path / "tracker").mkdir()
    (tmp_path / "tracker/MOT16-04.txt").write_text("5,-1,101,50,30,80,0.9\n")
    reading = Reading(sequences=("MOT16-04",))
    found = mot(folder, tmp_path / "tracker", reading, detected_class="car")
    assert (found.sequences, found.frame_count) == (("MOT16-04",), 5)
    assert found.detections.frame.tolist() == [4]
    assert found.classes[found.detections.label[0]] == "car"


def test_pedestrians_of_2015(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x.txt").write_text("1,1,100,50,30,80,1,4.1,5.2,0\n")
    found = mot(tmp_path / "a", tmp_path / "a")
    assert [found.classes[label] for label in found.annotations.label] == ["pedestrian"]


def test_classes_are_those_of_mot16(tmp_path):
    """Milan et al. 2016, table 3: targets, ambiguous ones and other classes."""
    names = ["pedestrian", "person_on_vehicle", "car", "bicycle", "motorbike", "non_motorized_vehicle"]
    names += ["static_person", "distractor", "occluder", "occluder_on_ground", "occluder_full", "reflection", "crowd"]
    (tmp_path / "a").mkdir()
    rows = (f"1,{number},100,50,30,80,1,{number},1\n" for number in range(1, 14))
    (tmp_path / "a/x.txt").write_text("".join(rows))
    (tmp_path / "b").mkdir()
    (tmp_path / "b/x.txt").write_text("")
    found = mot(tmp_path / "a", tmp_path / "b")
    every = [*found.annotations.label, *(found.ignored.label if found.ignored is not None else ())]
    at = [*found.annotations.line, *(found.ignored.line if found.ignored is not None else ())]
    assert {int(line): found.classes[label] for line, label in zip(at, every, strict=True)} == dict(
        enumerate(names, 1)
    )


def test_distances_from_a_file(folder, tmp_path):
    rows = [f"{name}/{frame:06d},1,{frame - 1}" for name in ("MOT16-02", "MOT16-04") for frame in (3, 1)]
    (tmp_path / "far.csv").write_text("frame,track,distance_m\n" + "\n".join(rows) + "\n")
    found = with_distances(mot(folder, folder), tmp_path / "far.csv", "track")
    assert distance(found.annotations, "given").tolist()[:2] == [0, 2]
    assert found.origin["distances"]["unknown"] == 2  # the two cars
