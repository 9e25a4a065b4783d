"""Pascal VOC, BDD100K, FiftyOne and CVAT: small files by hand, and what their readers refuse."""

import json

import numpy as np
import pytest

from verifier.base.errors import InputError, VerifierError
from verifier.perception.detections import Reading, class_map, read_detections
from verifier.perception.detections import cvat as cvat_reader


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text if isinstance(text, str) else json.dumps(text))
    return folder


def labels(data, boxes):
    return [data.classes[code] for code in boxes.label]


def voc_object(name, box, **more):
    edges = "".join(f"<{k}>{v}</{k}>" for k, v in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True))
    told = "".join(f"<{key}>{value}</{key}>" for key, value in more.items())
    return f"<object>\n<name>{name}</name>{told}\n<bndbox>{edges}</bndbox></object>\n"


def voc_files(folder, a="", b=""):
    return write(folder, {f"{k}.xml": f"<annotation>\n{text}</annotation>" for k, text in (("a", a), ("b", b))})


PART = "<name>head</name><bndbox><xmin>1</xmin></bndbox>"


def test_objects_of_voc(tmp_path):
    truth = voc_object("car", (1, 2, 30, 40), truncated=1, occluded=0)
    truth += voc_object("van", (5, 6, 70, 80), difficult=1, part=PART) + voc_object("car", (1, 2, 9, 8), difficult=0)
    seen = voc_object("car", (1, 2, 3, 4), score=0.25) + voc_object("car", (1, 2, 3, 5), confidence=0.5)
    seen += voc_object("car", (1, 2, 3, 6), score=0.25, confidence=0.75)
    voc_files(tmp_path / "t", a=truth, b=voc_object("van", (0, 0, 9, 9)))
    voc_files(tmp_path / "s", b=seen)
    data = read_detections("voc", tmp_path / "t", tmp_path / "s")
    assert labels(data, data.annotations) == ["car", "car", "van"]
    assert labels(data, data.ignored) == ["van"]
    assert data.annotations.box_2d.tolist() == [[1, 2, 30, 40], [1, 2, 9, 8], [0, 0, 9, 9]]
    assert (data.annotations.line.tolist(), data.annotations.file.tolist()) == ([2, 8, 2], [0, 0, 1])
    attributes = {name: column.tolist() for name, column in data.annotations.attributes.items()}
    assert attributes.pop("id") == [1, 3, 1]
    assert np.array_equal(attributes.pop("truncated"), [1, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(attributes.pop("occluded"), [0, np.nan, np.nan], equal_nan=True)
    assert not attributes
    assert (data.detections.score.tolist(), data.detections.frame.tolist()) == ([0.25, 0.5, 0.75], [1] * 3)
    assert (data.detections.file.tolist(), dict(data.detections.attributes)) == ([3] * 3, {})


def test_result_files_of_voc_are_named_by_their_class(tmp_path):
    voc_files(
        tmp_path / "t", a="".join(voc_object(k, (1, 2, 30, 40)) for k in ("traffic_light", "car", "dog", "light"))
    )
    names = ("comp4_det_val_traffic_light", "x_cls_test_car", "my_dog", "light")
    write(tmp_path / "s", {f"{name}.txt": f"a 0.5 1 2 30 {40 + at}\n" for at, name in enumerate(names)})
    data = read_detections("voc", tmp_path / "t", tmp_path / "s")
    found = dict(zip(labels(data, data.detections), data.detections.box_2d[:, 3].tolist(), strict=True))
    assert found == {"traffic_light": 40, "car": 41, "dog": 42, "light": 43}
    assert sorted(data.detections.file.tolist()) == [2, 3, 4, 5]
    write(tmp_path / "s", {f"{name}.txt": "" for name in names})
    assert len(read_detections("voc", tmp_path / "t", tmp_path / "s").detections) == 0


def bdd_label(category="car", right=30, **more):
    return {"category": category, "box2d": {"x1": 1, "y1": 2, "x2": right, "y2": 40}, **more}


def test_frames_of_bdd100k(tmp_path):
    """Regions, labels without a box, tracks of a video; a frame without labels, and one of no video."""
    lane, told = {"category": "lane", "poly2d": []}, {"attributes": {"fast": True, "speed": 3.5, "weather": "wet"}}
    first = [lane, bdd_label("ped", id=5, **told), bdd_label(attributes={"crowd": True}), lane]
    first += [bdd_label(attributes={"ignored": 1}), bdd_label(right=50, id="x", attributes={"crowd": False})]
    frames = [{"name": "1", "videoName": "v", "labels": first}, {"name": "2", "videoName": None, "labels": None}]
    frames.append({"name": "3", "labels": [bdd_label(id=7, score="of detections alone")]})
    write(tmp_path, {"t.json": {"frames": frames}, "s.json": [{"name": "3", "labels": [lane, bdd_label(score=0.5)]}]})
    data = read_detections("bdd100k", tmp_path / "t.json", tmp_path / "s.json")
    assert (data.frame_name, data.sequences) == (("v/1", "2", "3"), ("v", "(no sequence)"))
    assert (labels(data, data.annotations), labels(data, data.ignored)) == (["ped", "car", "car"], ["car", "car"])
    assert (data.annotations.line.tolist(), data.ignored.line.tolist()) == ([2, 6, 1], [3, 5])
    assert (data.annotations.frame.tolist(), data.detections.frame.tolist()) == ([0, 0, 2], [2])
    assert (data.detections.score.tolist(), data.origin["labels_without_box"]) == ([0.5], 2)
    attributes = data.annotations.attributes
    assert np.array_equal(attributes["track"], [0, 1, np.nan], equal_nan=True)
    assert np.array_equal(attributes["speed"], [3.5, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(attributes["fast"], [1, np.nan, np.nan], equal_nan=True)
    assert "weather" not in attributes
    write(tmp_path, {"s.json": [{"name": "3", "labels": []}]})
    assert len(read_detections("bdd100k", tmp_path / "t.json", tmp_path / "s.json").detections) == 0
    write(tmp_path, {"s.json": [{"name": "3", "labels": [bdd_label(attributes={"sure": 0.75})]}]})
    seen = read_detections("bdd100k", tmp_path / "t.json", tmp_path / "s.json", columns={"score": "sure"}).detections
    assert seen.score.tolist() == [0.75]


def sample(name, truth=(), seen=(), size=(100, 50)):
    metadata = size and {"metadata": {"width": size[0], "height": size[1]}}
    fields = {"ground_truth": {"detections": list(truth)}, "predictions": {"detections": list(seen)}}
    return {"filepath": name, **(metadata or {}), **fields}


def test_samples_of_fiftyone(tmp_path):
    """Each box in pixels of its own image; a sample without boxes needs no size."""
    box = {"label": "car", "bounding_box": [0.1, 0.2, 0.3, 0.4]}
    far = [box | {"label": "van", "distance_m": 7}, box | {"iscrowd": 1}]
    samples = [sample("/d/1", far, [box | {"confidence": 0.25, "z": 3}]), sample("/d/2", size=None)]
    samples.append(sample("/d/3", [box], [box | {"confidence": 0.5}], (1000, 500)))
    write(tmp_path, {"s.json": {"samples": samples}})
    path = tmp_path / "s.json"
    data = read_detections("fiftyone", path, path, detection_distance_field="z")
    assert (data.sequences, data.frame_name) == (("(no sequence)",), ("/d/1", "/d/2", "/d/3"))
    assert data.annotations.box_2d.tolist() == pytest.approx(np.array([[10, 10, 40, 30], [100, 100, 400, 300]]))
    assert np.array_equal(data.annotations.distance_m, [7, np.nan], equal_nan=True)
    assert (labels(data, data.ignored), data.ignored.line.tolist()) == (["car"], [2])
    assert (data.detections.frame.tolist(), data.detections.score.tolist()) == ([0, 2], [0.25, 0.5])
    assert (data.detections.file.tolist(), data.annotations.line.tolist()) == ([1, 1], [1, 3])
    assert np.array_equal(data.detections.distance_m, [3, np.nan], equal_nan=True)
    write(tmp_path, {"s.json": {"samples": [sample("/d/1", [box], [])]}})
    assert read_detections("fiftyone", path, path).ignored is None
    write(tmp_path, {"s.json": {"samples": [sample("/d/1"), sample("/d/2"), sample("/d/2")]}})
    with pytest.raises(InputError, match=r"s\.json: /samples/2/filepath: the filepath ./d/2. occurs twice"):
        read_detections("fiftyone", path, path)
    samples = [sample("/d/1", [box], []), sample("/e/1"), {"filepath": "/e/2"}]
    write(tmp_path, {"s.json": {"samples": samples}})
    several = read_detections("fiftyone", path, path)
    assert (several.sequences, several.frame_sequence.tolist()) == (("/d", "/e"), [0, 1, 1])
    for size in ((0, 50), (100, 0), (100.0, 50), (True, 50), (-1, 5)):
        write(tmp_path, {"s.json": {"samples": [sample("/d/1", [box], size=size)]}})
        with pytest.raises(InputError, match=r"/samples/0: a sample with detections needs 'metadata'"):
            read_detections("fiftyone", path, path)
    write(tmp_path, {"s.json": {"samples": [sample("/d/1", [box], size=(1, 1))]}})
    with pytest.raises(InputError, match="fractions of the image"):
        read_detections("fiftyone", path, path)
    other = {"samples": [sample("/e/1", seen=[box | {"confidence": 0.25}]), sample("/d/1")]}
    write(tmp_path, {"s.json": {"samples": [sample("/d/1", [box])]}, "o.json": other})
    with pytest.raises(InputError, match=r"o\.json: .*/samples/0/predictions/detections/0: detection in sample /e/1"):
        read_detections("fiftyone", path, tmp_path / "o.json")


EDGES = 'xtl="1" ytl="2" xbr="30" ybr="40"'


def shown(frame, outside=0, more="", keyframe=1):
    return f'<box frame="{frame}" outside="{outside}" keyframe="{keyframe}" {EDGES}{more}/>\n'


def video(*tracks, task=""):
    meta = f"<meta><task>{task}</task></meta>" if task else ""
    inner = "".join(f'<track id="{k}" label="car">\n{boxes}</track>\n' for k, boxes in enumerate(tracks))
    return f"<annotations>\n{meta}{inner}</annotations>"


def cvat(folder, truth, seen="<annotations></annotations>", **options):
    write(folder, {"t.xml": truth, "s.xml": seen})
    return read_detections("cvat", folder / "t.xml", folder / "s.xml", **options)


def test_images_of_cvat(tmp_path):
    told = '<attribute name="{}">{}</attribute>'
    inner = f'<box label="car" occluded="1" {EDGES}>{told.format("speed", 3)}{told.format("far", 9)}</box>'
    inner += f'<box label="van" occluded="0" {EDGES}></box><polygon label="x" points="1,2"/><mask label="y"/>'
    images = f'<image id="0" name="d/a.png">{inner}</image>\n<image id="1" name="b.png"></image>'
    seen = f'<annotations><image id="0" name="b.png"><box label="van" score="0.5" {EDGES}/></image></annotations>'
    data = cvat(tmp_path, f"<annotations>{images}</annotations>", seen, columns={"distance_m": "far"})
    assert (data.frame_name, data.sequences) == (("d/d/a.png", "b.png"), ("d", "(no sequence)"))
    assert (labels(data, data.annotations), labels(data, data.detections)) == (["car", "van"], ["van"])
    assert data.annotations.box_2d.tolist() == [[1, 2, 30, 40]] * 2
    assert data.annotations.attributes["occluded"].tolist() == [1, 0]
    assert np.array_equal(data.annotations.attributes["speed"], [3, np.nan], equal_nan=True)
    assert np.array_equal(data.annotations.distance_m, [9, np.nan], equal_nan=True)
    assert (data.origin["shapes_left_out"], data.detections.score.tolist()) == (2, [0.5])
    assert data.detections.frame.tolist() == [1]


def test_no_detection_of_cvat(tmp_path):
    assert len(cvat(tmp_path, video(shown(0)), video()).detections) == 0


@pytest.mark.parametrize(
    ("task", "frames"),
    [
        ("", [2, 3]),
        ("<size>5</size>", [0, 1, 2, 3, 4]),
        ("<size>9</size><start_frame>0</start_frame><stop_frame>3</stop_frame>", [0, 1, 2, 3]),
        ("<size>9</size><start_frame>2</start_frame><stop_frame>4</stop_frame>", [2, 3, 4]),
        ("<start_frame>1</start_frame>", [2, 3]),
        ("<size>4</size><frame_filter>step=1</frame_filter>", [0, 1, 2, 3]),
        ("<size>4</size><frame_filter>step=0</frame_filter>", [0, 1, 2, 3]),
        ("<size>x</size>", [2, 3]),
        ("<size>999999999999</size>", [2, 3]),  # longer than a number of frames
        ("<size>0</size>", [2, 3]),
        ("<size>4</size><labels><label><size>9</size></label></labels>", [0, 1, 2, 3]),
    ],
)
def test_frames_of_a_video_of_cvat(tmp_path, task, frames):
    data = cvat(tmp_path, video(shown(2) + shown(3), task=task))
    assert data.frame_name == tuple(f"{number:06d}" for number in frames)
    assert [data.frame_name[frame] for frame in data.annotations.frame] == ["000002", "000003"]


def test_what_is_no_frame_and_no_box_of_cvat(tmp_path, monkeypatch):
    """A video without tracks has the frames of its task, images have none but their own."""
    for count in (1, 4):
        data = cvat(tmp_path, video(task=f"<size>{count}</size>"))
        assert (data.frame_count, len(data.annotations)) == (count, 0)
    label = "<labels><label><attributes><attribute><name>speed</name></attribute></attributes></label></labels>"
    image = f'<image name="a"><box label="car" {EDGES}/></image>'
    other = f'<other><polygon/><box label="car" {EDGES}/></other><x><track><polygon/></track></x>'
    text = f"<annotations><meta><task><size>3</size>{label}</task></meta>{other}{image}</annotations>"
    data = cvat(tmp_path, text)
    assert (data.frame_name, len(data.annotations), data.origin["shapes_left_out"]) == (("a",), 1, 0)
    mixed = cvat(tmp_path, video(shown(0)).replace("</annotations>", image.replace("car", "van") + "</annotations>"))
    assert sorted(labels(mixed, mixed.annotations)) == ["car", "van"]
    for most in (4, 3):
        monkeypatch.setattr(cvat_reader, "MOST_FRAMES", most)
        if most == 4:
            assert cvat(tmp_path, video(task="<size>4</size>")).frame_count == 4
        else:
            with pytest.raises(VerifierError, match="4 frames, at most 3 are read"):
                cvat(tmp_path, video(task="<size>4</size>"))


def test_tracks_of_cvat(tmp_path):
    """Boxes outside are none; files are sequences where there are several."""
    truth = video(shown(0) + shown(1, 1, ' rotation="45"'), shown(0, more=' rotation="720"') + shown(1))
    assert cvat(tmp_path, truth).annotations.attributes["track"].tolist() == [0, 1, 1]
    assert cvat(tmp_path, truth).annotations.line.tolist() == [3, 7, 8]
    write(
        tmp_path,
        {"t/a.xml": truth, "t/b.xml": truth, "s/a.xml": video(), "s/b.xml": video(shown(1, more=' score="0.5"'))},
    )
    data = read_detections("cvat", tmp_path / "t", tmp_path / "s")
    assert data.frame_name == ("a/000000", "a/000001", "b/000000", "b/000001")
    assert data.annotations.attributes["track"].tolist() == [0, 1, 1, 2, 3, 3]
    assert data.annotations.file.tolist() == [0, 0, 0, 1, 1, 1]
    assert (data.detections.frame.tolist(), data.detections.file.tolist()) == ([3], [3])


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (video(shown(0) + shown(5)), "t.xml:3: track '0' has boxes in frames 0 and 5 and none between"),
        (video(shown(0) + shown(5), task="<frame_filter>step=5</frame_filter>"), None),
        (
            video(shown(0) + shown(6), task="<frame_filter>step=5</frame_filter>"),
            "track '0' has boxes in frames 0 and 6",
        ),
        (video(shown(0) + shown(1, 1) + shown(5)), None),
        (video(shown(0) + shown(1) + shown(5, keyframe=0)), None),
        (video(shown(0), shown(5)), None),
        (video(shown(0) + shown(1), shown(2) + shown(4)), "t.xml:7: track '1' has boxes in frames 2 and 4"),
        (video(shown("1.0")), "t.xml:3: frame: expected a whole number, got '1.0'"),
        (video(shown("9" * 12)), "t.xml:3: frame: expected a whole number, got '999999999999'"),
        (video(shown(0, more=' rotation="x"')), "t.xml:3: rotation: expected a number, got 'x'"),
        (video(shown(0, more=' rotation="361"')), "t.xml:3: a box turned by 361 degrees"),
        (video(shown(0)).replace(' label="car"', ""), "'track' without 'label'"),
        ("<annotations>" + "<a>" * 100_000, "t.xml:1: nested too deeply"),
        ('<annotations><image name="a"/>\n<image name="a"/></annotations>', "t.xml:2: frame 'a' occurs twice"),
        (video(shown(0), task="<size>20000001</size>"), "20000001 frames, at most 20000000 are read"),
    ],
)
def test_files_of_cvat_that_are_refused(tmp_path, truth, message):
    if message is None:
        assert len(cvat(tmp_path, truth).annotations) > 1
    else:
        with pytest.raises(VerifierError, match=message):
            cvat(tmp_path, truth)


def test_dont_care_by_a_class_map(tmp_path):
    """A class that a map calls don't-care is a region; of detections it is left out."""
    write(tmp_path, {"t.json": [{"name": "1", "labels": [bdd_label(score=1), bdd_label("van", score=1)]}]})
    reading = Reading(class_map=class_map({"car": "car", "van": "dont_care"}))
    data = read_detections("bdd100k", tmp_path / "t.json", tmp_path / "t.json", reading)
    assert (len(data.annotations), len(data.ignored), len(data.detections)) == (1, 1, 1)
