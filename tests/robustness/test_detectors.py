"""The protocol, suppression, and OpenCV's detectors, window by window."""

import math
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import InputError, LimitError, UsageError
from verifier.robustness.campaign.definition import DetectorChoice
from verifier.robustness.detectors import CascadePeople, CascadeSettings, HogPeople, HogSettings, Image, read_image
from verifier.robustness.detectors.maite import MaiteDetector
from verifier.robustness.detectors.protocol import Detections, suppressed, surest_first


def image(height, width, seed=0, name="image"):
    return Image(name, np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


def detections(*rows):
    """From (left, top, right, bottom, score, label)."""
    table = np.array(rows, dtype=float).reshape(-1, 6)
    return Detections(table[:, :4], table[:, 4], table[:, 5].astype(np.int64))


def rows_of(found):
    return [
        (*box, score, label)
        for box, score, label in zip(found.box_2d.tolist(), found.score, found.label, strict=True)
    ]


# The protocol


def test_what_is_no_image_and_what_are_no_detections():
    for shape, kind in (((4, 4), np.uint8), ((4, 4, 4), np.uint8), ((4, 4, 3), np.float32), ((0, 4, 3), np.uint8)):
        with pytest.raises(ValueError, match=re.escape("expected (H, W, 3) uint8")):
            Image("x", np.zeros(shape, kind))
    box = np.array([[0.0, 0, 1, 1]])
    with pytest.raises(ValueError, match=r"box_2d has shape \(1, 4\), expected \(2, 4\)"):
        Detections(box, np.zeros(2), np.zeros(2, int))
    for bad in ([[1.0, 0, 0, 1]], [[math.nan] * 4], [[0, 0, math.inf, 1]]):
        with pytest.raises(ValueError, match="a box is not finite or has a negative size"):
            Detections(np.array(bad), np.zeros(1), np.zeros(1, int))
    with pytest.raises(ValueError, match="a score is not finite"):
        Detections(box, np.array([math.nan]), np.zeros(1, int))
    with pytest.raises(ValueError, match="a label is negative"):
        Detections(box, np.zeros(1), np.array([-1]))


def test_detections_cannot_be_changed_from_outside():
    box = np.array([[0.0, 0, 1, 1]])
    found = Detections(box, np.ones(1), np.zeros(1, int))
    box[0, 2] = 5
    assert found.box_2d[0, 2] == 1
    with pytest.raises(ValueError, match="read-only"):
        found.score[0] = 2


# Suppression


def test_suppression_by_hand():
    # IoU of A and B: 8 x 10 of 12 x 10 = 2/3; of B and C the same; of A and C: 6/14. B falls to A; C falls to nobody,
    # for B is gone.
    a, b, c = (0, 0, 10, 10, 0.9, 0), (2, 0, 12, 10, 0.8, 0), (4, 0, 14, 10, 0.7, 0)
    assert rows_of(suppressed(detections(c, b, a), 0.5)) == [a, c]
    assert rows_of(suppressed(detections(c, b, a), 2 / 3)) == [a, b, c]  # an overlap of exactly so much stays
    assert rows_of(suppressed(detections(c, b, a), 0.4)) == [a]
    other = (2, 0, 12, 10, 0.8, 1)
    assert rows_of(suppressed(detections(a, other), 0.5)) == [a, other]
    assert rows_of(suppressed(detections(a, other), 0.5, per_class=False)) == [a]
    assert len(suppressed(detections(), 0.5)) == 0
    with pytest.raises(ValueError, match="IoU"):
        suppressed(detections(a), 1.5)


BOXES = st.lists(
    st.tuples(*(st.integers(low, high) for low, high in ((0, 8), (0, 8), (1, 6), (1, 6), (0, 5), (0, 1)))),
    max_size=12,
)


def overlap(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    both = max(width, 0) * max(height, 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


@given(BOXES, st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.booleans(), st.randoms())
def test_suppression_keeps_whom_no_kept_one_covers(corners, iou, per_class, random):
    rows = [(x, y, x + w, y + h, score, label) for x, y, w, h, score, label in corners]
    found = rows_of(suppressed(detections(*rows), iou, per_class))
    kept = []
    for row in sorted(rows, key=lambda row: (-row[4], row[5], row[:4])):
        if not any(overlap(row, each) > iou and (each[5] == row[5] or not per_class) for each in kept):
            kept.append(row)
    assert found == kept
    random.shuffle(rows)
    assert rows_of(suppressed(detections(*rows), iou, per_class)) == found


def test_suppression_is_that_of_opencv():
    cv2 = pytest.importorskip("cv2", reason="opencv-python-headless is not installed")
    rng = np.random.default_rng(4)
    corner, size = rng.integers(0, 80, (200, 2)), rng.integers(5, 40, (200, 2))
    score = (rng.permutation(200) + 1) / 200
    found = Detections(np.hstack([corner, corner + size]).astype(float), score, np.zeros(200, int))
    peer = cv2.dnn.NMSBoxes(np.hstack([corner, size]).tolist(), score.tolist(), 0.0, 0.37)
    assert rows_of(suppressed(found, 0.37)) == rows_of(found.take(np.array(peer)))


def test_equal_scores_have_an_order_of_their_own():
    rows = [(5, 0, 6, 1, 0.5, 0), (0, 3, 6, 9, 0.5, 1), (0, 2, 6, 9, 0.5, 1), (1, 1, 2, 2, 0.7, 1)]
    assert surest_first(detections(*rows)).tolist() == [3, 0, 2, 1]


# MAITE


class Target:
    def __init__(self, boxes, labels, scores):
        self.boxes, self.labels, self.scores = boxes, labels, scores


class Model:
    """A model of the protocol whose answer is fixed; it remembers what it was given."""

    def __init__(self, *targets):
        self.metadata = {"id": "made up", "index2label": {7: "car", 3: "person"}}
        self.targets, self.given = targets, None

    def __call__(self, batch):
        self.given = batch
        return list(self.targets)


def test_a_maite_model_as_a_detector():
    model = Model(
        Target([[0, 0, 4, 8], [1, 2, 3, 4]], [7, 3], [0.5, 0.25]),
        Target(np.zeros((0, 4)), [], []),
        Target(np.array([[0, 0, 1, 1]], np.float32), np.array([3]), np.array([[0.125, 0.75]], np.float32)),
    )
    detector = MaiteDetector(model, "weights of May")
    assert detector.classes == ("person", "car")
    images = [image(6, 9, seed) for seed in range(3)]
    first, second, third = detector(images)
    assert rows_of(first) == [(0, 0, 4, 8, 0.5, 1), (1, 2, 3, 4, 0.25, 0)]
    assert len(second) == 0
    assert rows_of(third) == [(0, 0, 1, 1, 0.75, 0)]
    assert model.given[1].shape == (3, 6, 9)
    assert model.given[1].dtype == np.uint8
    assert (model.given[1][2] == images[1].pixels[:, :, 2]).all()
    assert detector.identity["id"] == "made up"
    assert detector.identity != MaiteDetector(model, "weights of June").identity


def test_maite_pixels_from_0_to_1():
    model = Model(Target([], [], []))
    (found,) = MaiteDetector(model, "1", pixels="float32")([Image("x", np.full((2, 2, 3), 51, np.uint8))])
    assert len(found) == 0
    assert model.given[0].dtype == np.float32
    assert (model.given[0] == np.float32(0.2)).all()


def test_the_made_model_follows_the_protocol_of_maite():
    protocol = pytest.importorskip("maite.protocols.object_detection", reason="maite is not installed")
    model = Model(Target([[0, 0, 4, 8]], [7], [0.5]))
    assert isinstance(model, protocol.Model)
    assert isinstance(model.targets[0], protocol.ObjectDetectionTarget.__origin__)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (Target([[0, 0, 4, 8]], [7], [math.nan]), "image 'image': a score or a box is not finite"),
        (Target([[0, 0, math.inf, 8]], [7], [0.5]), "a score or a box is not finite"),
        (Target([[4, 0, 0, 8]], [7], [0.5]), "a box has a negative size"),
        (Target([[0, 0, 4, 8]], [5], [0.5]), "label 5 has no name"),
        (Target([[0, 0, 4, 8]], [7.5], [0.5]), "label 7.5 has no name"),
        (Target([[0, 0, 4]], [7], [0.5]), "expected shapes"),
        (Target([[0, 0, 4, 8]], [7, 3], [0.5]), "expected shapes"),
        (Target([[0, 0, 4, 8]], [7], None), "the target has no scores"),
        (Target([["a", 0, 4, 8]], [7], [0.5]), "boxes are no array of numbers"),
    ],
)
def test_faulty_targets_of_maite(target, message):
    with pytest.raises(InputError, match=message) as caught:
        MaiteDetector(Model(target), "1")([image(4, 4)])
    assert str(caught.value).startswith("<made up>: ")


def test_maite_models_that_are_none():
    with pytest.raises(InputError, match="0 targets for 1 images"):
        MaiteDetector(Model(), "1")([image(4, 4)])
    with pytest.raises(UsageError, match="needs a version"):
        MaiteDetector(Model(), "")
    with pytest.raises(UsageError, match="has no metadata"):
        MaiteDetector(lambda batch: batch, "1")
    with pytest.raises(UsageError, match="expected 'uint8' or 'float32'"):
        MaiteDetector(Model(), "1", pixels="uint16")
    nameless = Model()
    nameless.metadata = {"id": "nameless"}
    with pytest.raises(UsageError, match="give index2label"):
        MaiteDetector(nameless, "1")
    assert MaiteDetector(nameless, "1", {0: "thing"}).classes == ("thing",)
    with pytest.raises(UsageError, match="two labels of the MAITE model have the same name"):
        MaiteDetector(nameless, "1", {0: "thing", 1: "thing"})


# OpenCV


@pytest.fixture
def cv2():
    return pytest.importorskip("cv2", reason="opencv-python-headless is not installed")


def hog_margin(cv2, pixels):
    """The margin of one window (128, 64, 3), RGB: histogram times weights plus bias."""
    descriptor = cv2.HOGDescriptor()
    weights = cv2.HOGDescriptor_getDefaultPeopleDetector().reshape(-1).astype(np.float64)
    values = descriptor.compute(np.ascontiguousarray(pixels[:, :, ::-1])).reshape(-1).astype(np.float64)
    return float(values @ weights[:-1] + weights[-1])


@pytest.mark.parametrize("seed", range(3))
def test_hog_scores_one_window_by_its_margin(cv2, seed):
    # An image of the window's size holds one window; the person is what remains within 16 pixels on each side.
    one = image(128, 64, seed)
    (found,) = HogPeople(HogSettings(lowest_score=-100))([one])
    assert found.box_2d.tolist() == [[16, 16, 48, 112]]
    assert found.score[0] == pytest.approx(hog_margin(cv2, one.pixels), abs=1e-5)
    assert found.label.tolist() == [0]


def test_hog_boxes_are_in_pixels_of_the_image(cv2):
    # Enlarged twice, 32 x 64 pixels are one window.
    settings = HogSettings(enlargement=2, lowest_score=-100, margin=(0.25, 0))
    (found,) = HogPeople(settings)([image(64, 32)])
    assert found.box_2d.tolist() == [[8, 0, 24, 64]]


def test_hog_windows_at_a_distance_of_a_stride(cv2):
    # 16 pixels more in both directions, no other scale: windows at 0, 8, 16.
    settings = HogSettings(lowest_score=-100, pyramid_step=10, suppression_iou=1, margin=(0, 0))
    scene = image(144, 80, 3)
    (found,) = HogPeople(settings)([scene])
    corners = {(x, y) for x in (0, 8, 16) for y in (0, 8, 16)}
    assert {tuple(map(int, box[:2])) for box in found.box_2d} == corners
    assert found.score.tolist() == sorted(found.score.tolist(), reverse=True)
    for box, score in zip(found.box_2d.astype(int), found.score, strict=True):
        # The same window cut out has other gradients at its edge.
        cut = scene.pixels[box[1] : box[3], box[0] : box[2]]
        assert score == pytest.approx(hog_margin(cv2, cut), abs=0.15)


def test_hog_looks_at_every_scale_however_fine_the_steps(cv2):
    # From 1 to 3 in steps of 1 % are 111 scales; OpenCV would stop after 64, at 1.88.
    settings = HogSettings(lowest_score=-100, pyramid_step=1.01, suppression_iou=1, margin=(0, 0), stride_px=64)
    (found,) = HogPeople(settings)([image(384, 192, 1)])
    height = found.box_2d[:, 3] - found.box_2d[:, 1]
    assert height.max() > 384 / 1.011
    assert height.min() == 128


def test_hog_reports_nobody_in_what_is_too_small_or_plain(cv2):
    detector = HogPeople()
    small, plain = detector([image(127, 64), Image("plain", np.full((300, 300, 3), 90, np.uint8))])
    assert len(small) == len(plain) == 0


def test_hog_says_the_same_again_whatever_the_batch(cv2):
    detector = HogPeople(HogSettings(lowest_score=-3.0))
    scenes = [image(200, 150, seed) for seed in range(3)]
    together = [rows_of(each) for each in detector(scenes)]
    assert together == [rows_of(detector([each])[0]) for each in scenes]
    assert sum(map(len, together)) > 0


def test_the_identity_of_hog_holds_all_its_settings(cv2):
    changes = {"enlargement": 2.0, "stride_px": 16, "pyramid_step": 1.1, "lowest_score": 0.5, "suppression_iou": 0.3}
    variants = [HogSettings(**{name: value}) for name, value in changes.items()] + [HogSettings(margin=(0.1, 0.1))]
    identities = [HogPeople(each).identity for each in (HogSettings(), *variants)]
    assert all(one != other for k, one in enumerate(identities) for other in identities[:k])
    assert identities[0]["opencv"] == cv2.__version__


def test_hog_finds_the_people_of_kitti(cv2, shared):
    # Drive 0016, frame 2: two people at 10.5 and 10.9 m, 111 and 127 pixels tall, upright and free.
    folder = shared / "data/images_kitti_tracking/image_02"
    (found,) = HogPeople()([read_image(folder / "0016/000002.png")])
    for box in ((748, 157, 803, 284), (790, 167, 838, 278)):
        assert max(overlap(each, box) for each in found.box_2d) > 0.5


def test_the_cascade_finds_people_of_kitti(cv2, shared):
    people = read_image(shared / "data/images_kitti_tracking/image_02/0016/000012.png").pixels
    scene = [Image("people", people[100:300, 180:460])]
    (found,) = CascadePeople()(scene)
    assert max(overlap(each, (108.2, 55.8, 142.2, 135.5)) for each in found.box_2d) > 0.5
    (single,) = CascadePeople(settings=CascadeSettings(neighbours=0))(scene)
    assert len(single) > len(found)
    assert single.score.tolist() == sorted(single.score.tolist(), reverse=True)


def test_the_cascade_says_the_same_again(cv2, shared):
    people = read_image(shared / "data/images_kitti_tracking/image_02/0016/000012.png").pixels
    scenes = [Image("left", people[140:260, 180:360]), Image("right", people[140:320, 780:920])]
    detector = CascadePeople(settings=CascadeSettings(neighbours=0))
    together = [rows_of(each) for each in detector(scenes)]
    assert together == [rows_of(detector([each])[0]) for each in scenes]
    assert len(together[0]) > 5


def test_cascades_that_are_none(cv2, tmp_path, capfd):
    with pytest.raises(InputError, match="no such file"):
        CascadePeople(tmp_path / "nowhere.xml")
    for text in ("", "no cascade", "<?xml version='1.0'?><opencv_storage></opencv_storage>"):
        (tmp_path / "bad.xml").write_text(text)
        with pytest.raises(InputError, match="not a cascade of OpenCV"):
            CascadePeople(tmp_path / "bad.xml")


def test_settings_of_opencv_that_are_none(cv2):
    for wrong in (
        {"enlargement": 0},
        {"enlargement": 9},
        {"stride_px": 4},
        {"pyramid_step": 1.0},
        {"pyramid_step": 1.0000001},  # a hundred million scales
        {"lowest_score": math.nan},
        {"suppression_iou": 2},
        {"margin": (0.5, 0)},
    ):
        with pytest.raises(UsageError):
            HogSettings(**wrong)
    for wrong in ({"pyramid_step": 1.0}, {"pyramid_step": 1.0000001}, {"neighbours": -1}, {"smallest_px": (-1, 0)}):
        with pytest.raises(UsageError):
            CascadeSettings(**wrong)


def test_an_enlarged_image_that_would_fill_the_memory(cv2):
    large = Image("aerial", np.zeros((2000, 2000, 3), np.uint8))
    said = "image 'aerial': enlarged 8 times it has 256000000 pixels; at most 80000000 are searched"
    with pytest.raises(LimitError, match=said):
        HogPeople(HogSettings(enlargement=8))([large])


def test_without_opencv_or_with_one_too_new(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(UsageError, match="library opencv-python-headless, before version 5\n  hint: pip install"):
        HogPeople()

    class Five:
        __version__ = "5.0.0"

    monkeypatch.setitem(sys.modules, "cv2", Five)
    with pytest.raises(UsageError, match=r"OpenCV 5\.0\.0 has no people detectors"):
        CascadePeople()


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (("hog", ("person",)), "has settings"),
        (("cascade", ("person", "car"), CascadeSettings()), "one class"),
        (("onnx", ("person",), None, "a.onnx"), "its layout"),
    ],
)
def test_choices_of_a_detector_fit_together(choice, message):
    with pytest.raises(ValueError, match=message):
        DetectorChoice(*choice)
    assert DetectorChoice("hog", ("person",), HogSettings()).file is None
