"""Detectors in ONNX files: pixels to input, outputs to boxes, networks end to end, what is refused."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import InputError, UsageError
from verifier.robustness.detectors import Image, OnnxInput, OnnxLayout, OnnxOutput, open_onnx
from verifier.robustness.detectors.onnx_decode import Placement, decoded, network_input, placement

PLAIN = OnnxInput((8, 8))
PAIR = OnnxOutput("boxes", "scores", 0.0)


def image(height, width, name="x"):
    """Red is the row, green the column, blue 10 times their sum."""
    row, column = np.mgrid[:height, :width]
    return Image(name, np.stack([row, column, 10 * (row + column)], axis=2).astype(np.uint8))


def rows_of(found):
    return [
        (*box, round(score, 12), label)
        for box, score, label in zip(found.box_2d.tolist(), found.score.tolist(), found.label.tolist(), strict=True)
    ]


def read(outputs, layout, at=None, classes=1):
    arrays = {name: np.asarray(value) for name, value in outputs.items()}
    at = at or Placement((8, 8), (8, 8), (8, 8), 0, 0)
    return rows_of(decoded(arrays, layout, at, classes, "x", "net.onnx"))


# Pixels to input


def test_normalisation_by_hand():
    # Row 1, column 2 is (1, 2, 30). RGB: ((1 / 10 - .5) / 2, (2 / 10 - .25) / 4, (30 / 10 - 1) / 8).
    layout = OnnxInput((2, 3), divide_by=10, mean=(0.5, 0.25, 1), deviation=(2, 4, 8))
    found = network_input(image(2, 3), layout)
    assert found.shape == (3, 2, 3)
    assert found.dtype == np.float32
    assert found[:, 1, 2] == pytest.approx([-0.2, -0.0125, 0.25])
    # BGR: mean and deviation are in the order of the input, so blue takes the first of each.
    swapped = network_input(image(2, 3), replace(layout, channels="BGR"))
    assert swapped[:, 1, 2] == pytest.approx([(3 - 0.5) / 2, (0.2 - 0.25) / 4, (0.1 - 1) / 8])
    last = network_input(image(2, 3), replace(layout, axes="NHWC"))
    assert (last == found.transpose(1, 2, 0)).all()
    raw = network_input(image(2, 3), OnnxInput((2, 3), type="uint8", divide_by=1, axes="HWC"))
    assert raw.dtype == np.uint8
    assert (raw == image(2, 3).pixels).all()
    assert network_input(image(2, 3), replace(layout, type="float16")).dtype == np.float16


def test_letterbox_by_hand():
    cv2 = pytest.importorskip("cv2", reason="opencv-python-headless is not installed")
    # 2 x 4 into 8 x 8: twice as large is 4 x 8, with 2 rows of fill above and below.
    layout = OnnxInput((8, 8), "letterbox_centre", fill=7, interpolation="nearest", type="uint8", divide_by=1)
    found = network_input(image(2, 4), layout)
    assert placement((2, 4), layout) == Placement((2, 4), (8, 8), (4, 8), 2, 0)
    assert (found[:, [0, 1, 6, 7]] == 7).all()
    assert found[0, 2:6, 0].tolist() == [0, 0, 1, 1]
    assert found[1, 2].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    corner = network_input(image(2, 4), replace(layout, resize="letterbox_corner"))
    assert (corner[:, :4] == found[:, 2:6]).all()
    assert (corner[:, 4:] == 7).all()
    stretched = network_input(image(2, 4), replace(layout, resize="stretch"))
    assert stretched[0, :, 0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    linear = network_input(image(2, 4), replace(layout, interpolation="linear", resize="stretch"))
    assert (linear.transpose(1, 2, 0) == cv2.resize(image(2, 4).pixels, (8, 8))).all()


def test_the_images_own_size():
    assert network_input(image(5, 7), OnnxInput(None)).shape == (3, 5, 7)


SIDES = st.tuples(st.integers(1, 2000), st.integers(1, 2000))


@given(SIDES, SIDES, st.sampled_from(["stretch", "letterbox_centre", "letterbox_corner"]))
def test_the_image_lies_inside_and_comes_back(size, target, resize):
    at = placement(size, OnnxInput(target, resize))
    assert 0 <= at.top <= at.top + at.placed[0] <= target[0]
    assert 0 <= at.left <= at.left + at.placed[1] <= target[1]
    if resize != "stretch":
        assert at.placed[0] == target[0] or at.placed[1] == target[1]
        ratio = min(target[0] / size[0], target[1] / size[1])
        assert abs(at.placed[0] - size[0] * ratio) <= 1
    whole = np.array([[at.left, at.top, at.left + at.placed[1], at.top + at.placed[0]]], dtype=float)
    assert at.to_image(whole)[0] == pytest.approx([0, 0, size[1], size[0]], abs=1e-9)


# Outputs to boxes


def test_yolo_v5_by_hand():
    # Centre 4, 4 and size 2 x 4: 3, 2 to 5, 6. Scores .5 x (.25, .75): class 1 with .375. The second row is too low.
    layout = OnnxOutput(
        "out", "out", 0.25, box_format="cxcywh", objectness_column=4, score_columns=(5, None), suppression_iou=0.5
    )
    rows = np.array([[4, 4, 2, 4, 0.5, 0.25, 0.75], [4, 4, 2, 4, 0.25, 0.25, 0.75]], np.float32)
    assert read({"out": rows}, layout, classes=2) == [(3, 2, 5, 6, 0.375, 1)]
    # In a letterbox: 8 x 4 image at twice the size in columns 4 to 12 of 16 x 16. (x - 4) / 2 and y / 2.
    at = Placement((8, 4), (16, 16), (16, 8), 0, 4)
    assert read({"out": rows}, layout, at, classes=2) == [(-0.5, 1, 0.5, 3, 0.375, 1)]
    assert read({"out": rows}, replace(layout, clip=True), at, classes=2) == [(0, 1, 0.5, 3, 0.375, 1)]


def test_yolo_v8_by_hand():
    # (4 + 2 classes, 3 rows); the second row overlaps the first entirely and is less sure.
    rows = np.array([[4, 4, 2, 4, 0.0, 0.75], [4, 4, 2, 4, 0.0, 0.5], [1, 1, 2, 2, 0.5, 0.25]], np.float32).T
    layout = OnnxOutput(
        "out",
        "out",
        0.25,
        transposed=True,
        box_format="cxcywh",
        score_columns=(4, None),
        suppression_iou=0.5,
        per_row="each",
    )
    first, third, other = (3, 2, 5, 6, 0.75, 1), (0, 0, 2, 2, 0.5, 0), (0, 0, 2, 2, 0.25, 1)
    assert read({"out": rows}, layout, classes=2) == [first, third, other]
    assert read({"out": rows}, replace(layout, per_row="best"), classes=2) == [first, third]
    assert read({"out": rows}, replace(layout, most=1), classes=2) == [first]
    assert read({"out": rows}, replace(layout, suppression_per_class=False), classes=2) == [first, third]
    assert len(read({"out": rows}, replace(layout, suppression_iou=None), classes=2)) == 4


def test_detr_by_hand():
    # Logits ln 3, 0, 0, ln 4: powers 3, 1, 1, 4 of 9, so class 0 with 1/3, for the last one is nothing at all.
    logits = np.log(np.array([[3, 1, 1, 4], [1, 1, 1, 97]], np.float64))
    boxes = np.array([[0.5, 0.5, 0.5, 0.25], [0.5, 0.5, 0.5, 0.25]])
    layout = OnnxOutput(
        "boxes", "logits", 0.1, box_format="cxcywh", box_unit="input_share", activation="softmax", background=3
    )
    assert read({"boxes": boxes, "logits": logits}, layout, classes=3) == [(2, 3, 6, 5, round(1 / 3, 12), 0)]


def test_torchvision_by_hand():
    outputs = {
        "boxes": np.array([[1, 2, 3, 4], [5, 5, 6, 6], [0, 0, 1, 1]], np.float32),
        "scores": np.array([0.5, 0.75, 0.125], np.float32),
        "labels": np.array([1, 0, 9]),
    }
    layout = OnnxOutput("boxes", "scores", 0.25, "labels", batch_axis=False, box_unit="image_pixels", background=0)
    # The second row is the background, the third too low, whatever its label.
    assert read(outputs, layout) == [(1, 2, 3, 4, 0.5, 0)]
    at = Placement((100, 100), (8, 8), (8, 8), 0, 0)
    assert read(outputs, layout, at) == [(1, 2, 3, 4, 0.5, 0)]


def test_tensorflow_by_hand():
    # (top, left, bottom, right) as shares of 8 x 16; numbers from 1; the third row is not filled.
    outputs = {
        "boxes": np.array([[0.25, 0.5, 0.5, 1], [0, 0, 0.5, 0.5], [7, 7, 7, 7]], np.float32),
        "scores": np.array([0.5, 0.75, math.nan], np.float32),
        "classes": np.array([3, 1, -1], np.float32),
        "count": np.float32(2),
    }
    layout = OnnxOutput(
        "boxes",
        "scores",
        0.0,
        "classes",
        box_format="yxyx",
        box_unit="input_share",
        class_numbers=(3, 1),
        count="count",
    )
    at = Placement((8, 16), (8, 16), (8, 16), 0, 0)
    assert read(outputs, layout, at, 2) == [(0, 0, 8, 4, 0.75, 1), (8, 2, 16, 4, 0.5, 0)]
    with pytest.raises(InputError, match="3 is the number of no class"):
        read(outputs, replace(layout, class_numbers=(1, 2)), at, 2)
    ignored = replace(layout, class_numbers=(1, 2), others="ignore")
    assert read(outputs, ignored, at, 2) == [(0, 0, 8, 4, 0.75, 0)]


def test_an_ignored_class_does_not_leave_its_second_best():
    # Three columns, of which only the last is of interest. Row 0 is best as column 0: no detection of column 2.
    outputs = {"boxes": [[0, 0, 1, 1], [2, 2, 3, 3]], "scores": [[0.9, 0, 0.8], [0.1, 0, 0.7]]}
    layout = replace(PAIR, class_numbers=(2,), others="ignore", lowest_score=0.5)
    assert read(outputs, layout) == [(2, 2, 3, 3, 0.7, 0)]


def test_sigmoid_does_not_overflow():
    outputs = {"boxes": [[0, 0, 1, 1]] * 3, "scores": [[-1e4], [0.0], [1e4]]}
    assert [row[4] for row in read(outputs, replace(PAIR, activation="sigmoid"))] == [1, 0.5, 0]


def test_xywh_and_shares_of_the_image():
    at = Placement((10, 20), (8, 8), (8, 8), 0, 0)
    layout = replace(PAIR, box_format="xywh", box_unit="image_share", box_columns=(1, 2, 3, 4))
    outputs = {"boxes": [[99, 0.25, 0.5, 0.25, 0.1]], "scores": [0.5]}
    assert read(outputs, layout, at) == [(5, 5, 10, 6, 0.5, 0)]


def test_nothing_at_all():
    assert read({"boxes": np.zeros((0, 4)), "scores": np.zeros(0)}, PAIR) == []
    assert read({"boxes": np.zeros((0, 4)), "scores": np.zeros((0, 2))}, PAIR, classes=2) == []


@given(st.integers(0, 2**32 - 1))
def test_every_format_is_the_same_box(seed):
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, 50, (4, 2))
    size = rng.uniform(0.1, 50, (4, 2))
    score = rng.uniform(0, 1, 4)
    at = Placement((100, 120), (64, 64), (53, 64), 5, 0)
    whole = np.hstack([corner, corner + size])
    formats = {
        "xyxy": whole,
        "xywh": np.hstack([corner, size]),
        "cxcywh": np.hstack([corner + size / 2, size]),
        "yxyx": whole[:, [1, 0, 3, 2]],
    }
    expected = read({"boxes": whole, "scores": score}, PAIR, at)
    for name, boxes in formats.items():
        for unit, scale in (("input_pixels", 1), ("input_share", 64)):
            found = read({"boxes": boxes / scale, "scores": score}, replace(PAIR, box_format=name, box_unit=unit), at)
            assert np.array(found) == pytest.approx(np.array(expected), abs=1e-9)


@pytest.mark.parametrize(
    ("outputs", "changes", "message"),
    [
        ({"boxes": np.zeros((2, 3)), "scores": np.zeros(2)}, {}, "output 'boxes', image 'x': expected numbers (n, "),
        ({"boxes": np.zeros((2, 4, 1)), "scores": np.zeros(2)}, {}, "found float64 of shape (2, 4, 1)"),
        ({"boxes": np.zeros((4, 2)), "scores": np.zeros(2)}, {}, "found float64 of shape (4, 2)"),
        ({"boxes": np.zeros((2, 4)), "scores": np.zeros(3)}, {}, "3 rows, and output 'boxes' has 2"),
        ({"boxes": np.zeros((2, 4)), "scores": np.zeros((2, 5))}, {}, "4 of its 5 columns of scores are no class"),
        ({"boxes": np.zeros((2, 4)), "scores": np.zeros(2)}, {"class_numbers": (3,)}, "no column for class number 3"),
        ({"boxes": np.zeros((2, 4)), "scores": np.array(["a", "b"])}, {}, "expected numbers"),
        ({"boxes": np.zeros((2, 4)), "scores": [0.5, math.nan]}, {}, "row 1, counted from 0, has a score"),
        ({"boxes": np.zeros((2, 4)), "scores": [0.5, math.inf]}, {}, "row 1, counted from 0, has a score"),
        ({"boxes": [[0, 0, 1, 1], [0, 0, math.nan, 1]], "scores": [0.5, 0.5]}, {}, "row 1, counted from 0, has a b"),
        ({"boxes": [[0, 0, 1, 1], [3, 0, 1, 1]], "scores": [0.5, 0.5]}, {}, "box (3, 0, 1, 1) (left, top, right, b"),
        ({"boxes": np.zeros((2, 4)), "scores": np.zeros((2, 3))}, {"score_columns": (3, None)}, "(n, at least 4)"),
        ({"boxes": np.zeros((2, 4)), "scores": np.zeros((2, 3))}, {"labels": "l"}, "3 scores a row, and one label"),
        ({"boxes": np.zeros((1, 4)), "scores": [0.5], "l": [0.5]}, {"labels": "l"}, "expected whole numbers"),
        ({"boxes": np.zeros((1, 4)), "scores": [0.5], "l": [math.nan]}, {"labels": "l"}, "expected whole numbers"),
        ({"boxes": np.zeros((1, 4)), "scores": [0.5], "l": [-1]}, {"labels": "l"}, "-1 is the number of no class"),
        ({"boxes": np.zeros((1, 4)), "scores": [0.5], "l": [0, 0]}, {"labels": "l"}, ", of 1 rows"),
        ({"boxes": np.zeros((1, 4)), "scores": [0.5], "n": [2]}, {"count": "n"}, "of rows from 0 to 1, found [2]"),
        ({"boxes": np.zeros((1, 4)), "scores": [0.5], "n": 0.5}, {"count": "n"}, "found 0.5"),
        ({"boxes": np.zeros((1, 4)), "scores": [0.5], "n": math.nan}, {"count": "n"}, "found nan"),
    ],
)  # fmt: skip
def test_outputs_that_are_not_as_declared(outputs, changes, message):
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read(outputs, replace(PAIR, **changes))
    assert str(caught.value).startswith("net.onnx: output ")


def test_layouts_that_are_none():
    for wrong in (
        {"size": (0, 8)},
        {"size": (8, 20000)},
        {"resize": "crop"},
        {"interpolation": "best"},
        {"channels": "RGBA"},
        {"axes": "NCWH"},
        {"type": "int8"},
        {"fill": 256},
        {"divide_by": 0},
        {"deviation": (1, 1, 0)},
        {"mean": (math.nan, 0, 0)},
        {"type": "uint8"},
    ):
        with pytest.raises(UsageError):
            OnnxInput(**{"size": (8, 8), **wrong})
    for wrong in (
        {"box_format": "corners"},
        {"box_unit": "metres"},
        {"activation": "tanh"},
        {"others": "keep"},
        {"per_row": "all"},
        {"box_columns": (0, 1, 2, 2)},
        {"box_columns": (-1, 1, 2, 3)},
        {"score_columns": (4, 4)},
        {"lowest_score": math.nan},
        {"suppression_iou": 1.5},
        {"most": 0},
        {"labels": "l", "per_row": "each"},
        {"class_numbers": (1, 1)},
        {"class_numbers": (0, 1), "background": 0},
    ):
        with pytest.raises(UsageError):
            OnnxOutput(**{"boxes": "b", "scores": "s", "lowest_score": 0.1, **wrong})
    with pytest.raises(UsageError, match="2 class numbers for 3 classes"):
        OnnxOutput("b", "s", 0.1, class_numbers=(4, 5)).numbers(3)


def test_the_record_of_a_layout_tells_all_choices():
    record = OnnxLayout(OnnxInput((4, 6)), PAIR).record()
    assert record["input"]["size"] == [4, 6]
    assert record["output"]["box_columns"] == [0, 1, 2, 3]
    assert OnnxLayout(OnnxInput((4, 6), fill=0), PAIR).record() != record


# Networks


@pytest.fixture(scope="module")
def networks():
    pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    import made_networks

    return made_networks


BRIGHT = OnnxLayout(OnnxInput(None), PAIR)


def grey(value, height=6, width=9, name="x"):
    return Image(name, np.full((height, width, 3), value, np.uint8))


def test_a_network_sees_the_pixels(networks, tmp_path):
    path = networks.brightness(tmp_path / "bright.onnx")
    detector = open_onnx(path, BRIGHT, ["lamp"])
    assert detector.stacked
    colours = Image("c", np.zeros((6, 9, 3), np.uint8) + np.array([51, 0, 102], np.uint8))
    found = detector([grey(255), colours])
    assert [rows_of(each) for each in found] == [[(1, 1, 4, 4, 1, 0)], [(1, 1, 4, 4, pytest.approx(0.2), 0)]]
    blue = open_onnx(path, OnnxLayout(OnnxInput(None, channels="BGR"), PAIR), ["lamp"])
    assert blue([colours])[0].score == pytest.approx([0.4])
    centred = OnnxInput(None, divide_by=1, mean=(50, 0, 0), deviation=(2, 1, 1))
    assert open_onnx(path, OnnxLayout(centred, PAIR), ["lamp"])([colours])[0].score == pytest.approx([0.5])


def test_a_batch_is_the_same_as_one_by_one(networks, tmp_path):
    images = [grey(10 * k, name=str(k)) for k in range(5)]
    many = open_onnx(networks.brightness(tmp_path / "many.onnx"), BRIGHT, ["lamp"])
    single = open_onnx(networks.brightness(tmp_path / "one.onnx", (1, 3, "H", "W")), BRIGHT, ["lamp"])
    assert (many.stacked, single.stacked) == (True, False)
    assert [rows_of(each) for each in many(images)] == [rows_of(each) for each in single(images)]
    # Images of different sizes go one by one where the network takes their own size.
    mixed = [grey(10), grey(20, 4, 4)]
    assert [rows_of(each) for each in many(mixed)] == [rows_of(each) for each in single(mixed)]
    assert many([]) == []


def test_a_network_end_to_end(networks, tmp_path):
    # 4 x 8 image in 8 x 8 letterbox, 2 rows of fill above: y - 2.
    rows = np.array([[[4, 4, 4, 2, 0.5, 1.0], [0, 0, 2, 2, 0.5, 0.5]]], np.float32)
    path = networks.fixed(tmp_path / "v5.onnx", {"output0": rows})
    output = OnnxOutput("output0", "output0", 0.3, box_format="cxcywh", objectness_column=4, score_columns=(5, None))
    detector = open_onnx(path, OnnxLayout(OnnxInput((8, 8), "letterbox_centre"), output), ["person"])
    (found,) = detector([grey(0, 4, 8)])
    assert rows_of(found) == [(2, 1, 6, 3, 0.5, 0)]


def test_outputs_without_an_axis_for_the_batch(networks, tmp_path):
    arrays = {"boxes": [[1, 2, 3, 4]], "scores": [0.5]}
    path = networks.fixed(
        tmp_path / "tv.onnx",
        {name: np.array(value, np.float32) for name, value in arrays.items()} | {"labels": np.array([1])},
        (3, "H", "W"),
    )
    output = OnnxOutput("boxes", "scores", 0.25, "labels", batch_axis=False, box_unit="image_pixels", background=0)
    detector = open_onnx(path, OnnxLayout(OnnxInput(None, axes="CHW"), output), ["person"])
    assert [rows_of(each) for each in detector([grey(0), grey(9)])] == [[(1, 2, 3, 4, 0.5, 0)]] * 2


def test_the_identity_is_content_and_layout(networks, tmp_path):
    path = networks.brightness(tmp_path / "a.onnx")
    copy = tmp_path / "b.onnx"
    copy.write_bytes(path.read_bytes())
    first = open_onnx(path, BRIGHT, ["lamp"])
    assert first.identity == open_onnx(copy, BRIGHT, ["lamp"]).identity
    assert first.identity != open_onnx(path, BRIGHT, ["light"]).identity
    other = OnnxLayout(OnnxInput(None), replace(PAIR, lowest_score=0.1))
    assert first.identity != open_onnx(path, other, ["lamp"]).identity
    changed = networks.brightness(tmp_path / "c.onnx", (1, 3, "H", "W"))
    assert first.identity != open_onnx(changed, BRIGHT, ["lamp"]).identity


def test_files_that_are_no_network(networks, tmp_path, capfd):
    with pytest.raises(InputError, match="no such file"):
        open_onnx(tmp_path / "nowhere.onnx", BRIGHT, ["lamp"])
    with pytest.raises(InputError, match="found a directory"):
        open_onnx(tmp_path, BRIGHT, ["lamp"])
    whole = networks.brightness(tmp_path / "whole.onnx").read_bytes()
    for content in (b"", b"not a network", whole[: len(whole) // 2], b"\x89PNG" + whole):
        (tmp_path / "bad.onnx").write_bytes(content)
        with pytest.raises(InputError, match="not a network that onnxruntime can run") as caught:
            open_onnx(tmp_path / "bad.onnx", BRIGHT, ["lamp"])
        assert "\n" not in caught.value.message
    assert capfd.readouterr() == ("", "")


def test_networks_that_are_other_than_declared(networks, tmp_path):
    path = networks.brightness(tmp_path / "bright.onnx")

    def opened(path=path, output=PAIR, classes=("lamp",), **changes):
        return open_onnx(path, OnnxLayout(OnnxInput(**{"size": None, **changes}), output), classes)

    with pytest.raises(InputError, match="unknown output 'boxs'\n  hint: did you mean 'boxes'"):
        opened(output=replace(PAIR, boxes="boxs"))
    with pytest.raises(InputError, match="unknown input 'image'\n  hint: did you mean 'images'"):
        opened(name="image")
    with pytest.raises(InputError, match=re.escape("takes tensor(float); declared is float16")):
        opened(type="float16")
    with pytest.raises(InputError, match=re.escape("declared is (N, H, W, 3)")):
        opened(axes="NHWC")
    with pytest.raises(InputError, match=re.escape("declared is (3, H, W)")):
        opened(axes="CHW")
    fixed = networks.brightness(tmp_path / "fixed.onnx", (1, 3, 8, 8))
    with pytest.raises(InputError, match=re.escape("has the shape [1, 3, 8, 8]; declared is (N, 3, 16, 8)")):
        opened(fixed, size=(16, 8))
    with pytest.raises(InputError, match="takes batches of exactly 4"):
        opened(networks.brightness(tmp_path / "four.onnx", (4, 3, "H", "W")))
    for classes in ((), ("a", "a"), "car"):  # of a text, each letter would be a class
        with pytest.raises(UsageError, match="different class names"):
            opened(classes=classes)
    with pytest.raises(UsageError, match="1 class numbers for 2 classes"):
        opened(classes=("a", "b"), output=replace(PAIR, class_numbers=(1,)))


def test_outputs_of_another_shape_and_nan(networks, tmp_path):
    def run(boxes, scores, output=PAIR):
        arrays = {"boxes": np.array(boxes, np.float32), "scores": np.array(scores, np.float32)}
        path = networks.fixed(tmp_path / "net.onnx", arrays)
        return open_onnx(path, OnnxLayout(PLAIN, output), ["thing"])([grey(0, 8, 8, "frame 7")])

    with pytest.raises(InputError, match="expected a first axis for the batch, of length 1, found shape") as caught:
        run([[0, 0, 1, 1], [0, 0, 2, 2]], [0.5, 0.5])
    assert "frame 7" in str(caught.value)
    with pytest.raises(InputError, match=re.escape("found float32 of shape (2, 3)")):
        run([[[0, 0, 1], [0, 0, 2]]], [[0.5, 0.5]])
    with pytest.raises(InputError, match="a score that is no finite number"):
        run([[[0, 0, 1, 1]]], [[math.nan]])
    (found,) = run([[[0, 0, 1, 1], [1, 1, 2, 2]]], [[0.25, 0.5]])
    assert rows_of(found) == [(1, 1, 2, 2, 0.5, 0), (0, 0, 1, 1, 0.25, 0)]


def test_a_network_that_fails_on_an_input(networks, tmp_path):
    # The shape of the input is not declared by the file; adding a box of another size fails only when it runs.
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Add", ["images", "wrong"], ["boxes"]),
        helper.make_node("Identity", ["images"], ["scores"]),
    ]
    constants = {"wrong": np.zeros((1, 3, 5, 5), np.float32)}
    outputs = {"boxes": TensorProto.FLOAT, "scores": TensorProto.FLOAT}
    path = networks.save(tmp_path / "fails.onnx", nodes, constants, outputs)
    with pytest.raises(InputError, match=r"image 'x': the network fails on an input of shape \(1, 3, 8, 8\)"):
        open_onnx(path, OnnxLayout(PLAIN, PAIR), ["thing"])([grey(0, 8, 8)])
