"""What only YOLO has: where classes, labels, images and sizes come from, and what is refused."""

import contextlib
import json

import numpy as np
import pytest
from PIL import Image

from verifier.base.errors import InputError, UsageError
from verifier.perception.detections.yolo import yolo

LINE = "0 0.5 0.5 0.5 0.25"


def write(folder, **files):
    """Files by their paths, in which __ stands for / and a name without suffix is that of labels."""
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ("" if "." in name else ".txt"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def read(folder, labels="labels", seen="seen", size="8x4", **options):
    return yolo(folder / labels, folder / seen, image_size=size, **options)


@pytest.fixture
def data(tmp_path):
    return write(tmp_path, **{"data.yaml": "names: [a, b, c]", "labels__i": LINE, "seen__i": f"{LINE} 0.75"})


def test_a_rectangle_by_hand(data):
    write(data, labels__i=f"2 0.5 0.5 0.5 0.25\n{LINE}", labels__classes="a b c")
    found = read(data)
    assert found.annotations.box_2d.tolist() == [[2, 1.5, 6, 2.5]] * 2
    assert ([found.classes[k] for k in found.annotations.label], found.frame_name) == (["c", "a"], ("i",))
    assert found.annotations.attributes["id"].tolist() == [1, 2]
    assert (found.detections.score.tolist(), dict(found.detections.attributes)) == ([0.75], {})
    assert (found.annotations.file.tolist(), found.detections.file.tolist()) == ([0, 0], [1])


@pytest.mark.parametrize(
    "size", ["0x5", "5x0", "1000000x5", "5x1000000", "5", "x5", "5x", "5x5x5", "axb", "-5x5", "5x-5"]
)
def test_sizes_that_are_given(data, size):
    with pytest.raises(UsageError, match=f"--image-size: expected WIDTHxHEIGHT in pixels, got '{size}'"):
        read(data, size=size)
    write(data, labels__i="", seen__i="")
    for fine in ("1x1", "999999x999999"):
        assert read(data, size=fine).frame_count == 1


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"i": "0 -0.01 1.01 0 1.01"}, None),
        ({"i": "0 -0.011 0 0 0"}, "i.txt:1: x: expected a fraction of the image from 0 to 1, got -0.011"),
        ({"i": f"{LINE}\n0 0 1.02 0 3"}, "i.txt:2: y: expected a fraction of the image from 0 to 1, got 1.02"),
        (
            {"i": f"{LINE}\n0 0 0 5 0\n0 0 7 0 0", "j": "0 0 0 0 2\n"},
            "i.txt:2: width: expected a fraction of the image from 0 to 1, got 5; such numbers stand in "
            "3 lines of 2 files",
        ),
    ],
)
def test_numbers_that_are_no_fractions(data, labels, message):
    write(data, **{f"labels__{name}": text for name, text in labels.items()}, seen__i="")
    if message is None:
        assert len(read(data, size="999x999").annotations) == 1
    else:
        with pytest.raises(InputError) as caught:
            read(data)
        assert str(caught.value) == f"{data}/labels/{message}"


@pytest.mark.parametrize(
    ("numbers", "given", "expected"),
    [
        ([1, 3], None, [0, 2]),
        ([3], None, [2]),
        ([0, 2], None, [0, 2]),
        ([0], None, [0]),
        ([1, 2], 1, [0, 1]),
        ([1, 2], 0, [1, 2]),
        ([], None, []),
        ([1, 2], None, "numbers from 1 to 2 do not tell whether the 3 classes count from 0 or from 1"),
        ([0, 3], None, "numbers from 0 to 3 do not fit: the 3 classes count from 0 or from 1"),
        ([4], None, "numbers from 4 to 4 do not fit: the 3 classes count from 0 or from 1"),
    ],
)
def test_the_first_number_of_results(data, numbers, given, expected):
    rows = [{"image_id": "i", "category_id": k, "bbox": [1, 1, 2, 2], "score": 0.5} for k in numbers]
    (data / "seen.json").write_text(json.dumps(rows))
    if isinstance(expected, str):
        with pytest.raises(InputError, match=f"seen.json: category_id: {expected}"):
            read(data, seen="seen.json", first_category=given)
    else:
        found = read(data, seen="seen.json", first_category=given).detections
        assert (found.label.tolist(), found.file.tolist()) == (expected, [1] * len(numbers))


def test_images_have_numbers_and_names(data):
    write(data, labels__007=LINE, labels__i=LINE)
    row = {"category_id": 3, "bbox": [1, 1, 2, 2], "score": 0.5, "z": 7}
    (data / "seen.json").write_text(json.dumps([{"image_id": name, **row} for name in (7, "i", "007")]))
    found = read(data, seen="seen.json", detection_distance_field="z").detections
    assert (found.frame.tolist(), found.distance_m.tolist()) == ([0, 1, 0], [7, 7, 7])
    for wrong in (2, -1):
        with pytest.raises(UsageError, match="--first-category: expected 0 or 1"):
            read(data, seen="seen.json", first_category=wrong)
    for option in ({"first_category": 0}, {"detection_distance_field": "z"}):
        with pytest.raises(UsageError, match=r"belong to predictions\.json"):
            read(data, **option)


@pytest.mark.parametrize(
    ("files", "labels", "message"),
    [
        ({"labels__data.yaml": "names: [a]"}, "labels", None),
        ({"data.yml": "names: [a]"}, "labels", None),
        ({"dataset.yaml": "names: [a]"}, ".", None),  # beside a folder of labels, but not `data.yaml`
        ({"data.yaml": "names: [a]", "labels__b__c__i": LINE}, "labels/b/c", None),
        (
            {"data.yaml": "names: [a]", "labels__b__c__d__i": LINE},
            "labels/b/c/d",
            "no data.yaml that names the classes",
        ),
        ({"data.yaml": "names: {0: a, 3: b}\nval: images"}, "data.yaml", None),
        ({"data.yaml": "names: [a]\npath: ..\nval: [images]"}, ".", None),
        ({"data.yaml": "names: [a]\npath: sub\nval: p/images", "sub__p__labels__k": LINE}, "data.yaml", None),
        ({"data.yaml": "names: [a]\nval: p/images", "p__labels__k": LINE}, "data.yaml", None),
        ({"data.yaml": "names: [a]\nval: nothing"}, "data.yaml", "val: no folder of labels beside 'nothing'"),
        ({"data.yaml": "names: [a]\nval: [images, 3]"}, "data.yaml", "val: expected the folder of images"),
        ({"data.yaml": "names: [a]\nval: []"}, "data.yaml", "val: expected the folder of images"),
        ({"data.yaml": "names: [a]"}, "data.yaml", "val: expected the folder of images"),
        ({"data.yaml": "names: [a, a]"}, "labels", "names: expected a list of different class names"),
        ({"data.yaml": "names: [a, 3]"}, "labels", "names: expected a list of different class names"),
        ({"data.yaml": "names: {a: b}"}, "labels", "names: expected a list of different class names"),
        ({"data.yaml": "names: {true: b}"}, "labels", "names: expected a list of different class names"),
        ({"data.yaml": "names: []"}, "labels", "names: expected a list of different class names"),
        ({"data.yaml": "names: a"}, "labels", "names: expected a list of different class names"),
        ({"data.yaml": "names: a\nb: [\n"}, "labels", "data.yaml:3: not readable as YAML"),
        ({"data.yaml": "- names"}, "labels", "expected keys such as 'names', got"),
    ],
)
def test_where_classes_and_labels_are(tmp_path, files, labels, message):
    folder = write(tmp_path / "x/y/z", labels__i=LINE, **files)
    seen = write(tmp_path / "seen", i="")
    if message is None:
        found = yolo(folder / labels, seen, image_size="8x4")
        assert len(found.annotations) == 1
    else:
        with pytest.raises(InputError, match=message):
            yolo(folder / labels, seen, image_size="8x4")


def test_images_beside_labels(tmp_path):
    """The last `labels` of the path becomes `images`; other files there are none."""
    folder = write(
        tmp_path / "labels/x", **{"labels__i": LINE, "data.yaml": "names: [a]", "seen__i": "", "images__a.md": ""}
    )
    for name, size in (("i.png", (8, 4)), ("j.jpg", (2, 2))):
        Image.fromarray(np.zeros(size[::-1], np.uint8)).save(folder / "images" / name)
    found = read(folder, size=None)
    assert (found.frame_name, found.annotations.box_2d.tolist()) == (("i", "j"), [[2, 1.5, 6, 2.5]])
    with contextlib.chdir(folder / "labels"):
        assert yolo(".", folder / "seen").annotations.box_2d.tolist() == [[2, 1.5, 6, 2.5]]
    write(folder, **{"images__d__k.png": "", "images__e__l.png": "", "labels__d__k": LINE})
    assert read(folder).sequences == ("(no sequence)", "d", "e")
    assert read(folder, labels="labels/d").sequences == (
        "(no sequence)",
    )  # one folder says nothing of how they were taken
    for name in ("images/d/k.png", "images/e/l.png", "labels/d/k.txt"):
        (folder / name).unlink()
    (folder / "images/j.jpg").write_text("no image")
    with pytest.raises(InputError, match=r"j\.jpg: not a readable image"):
        read(folder, size=None)
    (folder / "images/j.jpg").unlink()
    write(folder, labels__k=LINE)
    with pytest.raises(InputError, match="no image 'k', so its size in pixels is not known"):
        read(folder, size=None)
    (folder / "images/b").mkdir()
    (folder / "images/b/i.bmp").write_text("")
    with pytest.raises(InputError, match=r"i\.png: a second image is called 'i': .*i\.bmp"):
        read(folder)
