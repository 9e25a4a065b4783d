"""Running a detector over many images: batches, what is kept, going on after a kill, and what becomes of classes."""

import json
import signal
import time
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest
from lanes import lane_set
from shorthands import match_count

from verifier.base.errors import InputError, UsageError
from verifier.perception.detections import class_map
from verifier.perception.matching import MatchingPolicy, match
from verifier.robustness.detectors import Image, run_detector, with_detections
from verifier.robustness.detectors.protocol import Detections
from verifier.robustness.detectors.run import Cache, DetectorRun, identity_digest, image_digest


class Lamp:
    """Reports one box as bright as the image; remembers what it was given."""

    classes = ("lamp", "sun")

    def __init__(self, version=1):
        self.identity = {"detector": "lamp", "version": version}
        self.batches = []

    def __call__(self, images):
        self.batches.append([image.name for image in images])
        return [self.one(image) for image in images]

    def one(self, image):
        mean = float(image.pixels.mean())
        return Detections(np.array([[0, 0, mean / 3, 0.1]]), np.array([mean / 7]), np.array([int(mean > 100)]))


def images(number, first=0):
    return [Image(f"i{k}", np.full((4, 5, 3), k, np.uint8)) for k in range(first, first + number)]


def rows_of(run):
    return {
        name: (own.box_2d.tolist(), own.score.tolist(), own.label.tolist()) for name, own in run.detections.items()
    }


# Keys


def test_the_key_of_an_image_is_its_content():
    one = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    digest = image_digest(Image("a", one))
    assert digest == image_digest(Image("b", np.asfortranarray(one)))
    assert digest == image_digest(Image("a", np.repeat(one, 2, axis=1)[:, ::2]))
    assert digest != image_digest(Image("a", one.reshape(4, 2, 3)))  # the same bytes in another shape
    changed = one.copy()
    changed[1, 3, 2] ^= 1
    assert digest != image_digest(Image("a", changed))


def test_the_key_of_a_detector_is_its_identity():
    assert identity_digest({"a": 1, "b": [1.5, None]}) == identity_digest({"b": [1.5, None], "a": 1})
    assert identity_digest({"a": 1}) != identity_digest({"a": 2})
    for wrong in ({"a": object()}, {"a": float("nan")}):
        with pytest.raises(ValueError, match="JSON"):
            identity_digest(wrong)


# Batches and what is kept


def test_batches_keep_the_order():
    lamp = Lamp()
    run = run_detector(lamp, iter(images(7)), batch_size=3)
    assert lamp.batches == [["i0", "i1", "i2"], ["i3", "i4", "i5"], ["i6"]]
    assert list(run.detections) == [f"i{k}" for k in range(7)]
    assert rows_of(run)["i6"] == ([[0, 0, 2.0, 0.1]], [6 / 7], [0])
    assert run_detector(lamp, []).detections == {}


def test_what_is_kept_is_not_computed_again(tmp_path):
    first = run_detector(Lamp(), images(5), tmp_path / "cache")
    lamp = Lamp()
    second = run_detector(lamp, images(7), tmp_path / "cache")
    assert lamp.batches == [["i5", "i6"]]
    third = run_detector(lamp, images(7), tmp_path / "cache")
    assert lamp.batches == [["i5", "i6"]]
    # Numbers come back to the last bit: 1/7 of a mean is no short decimal.
    assert rows_of(third) == rows_of(second) == rows_of(run_detector(Lamp(), images(7)))
    assert rows_of(first).items() <= rows_of(second).items()
    other = Lamp(2)
    run_detector(other, images(3), tmp_path / "cache")
    assert list(map(len, other.batches)) == [3]


def test_equal_images_go_through_once(tmp_path):
    lamp = Lamp()
    twins = [Image(name, np.full((4, 5, 3), 9, np.uint8)) for name in "abc"]
    run = run_detector(lamp, twins, tmp_path)
    assert list(map(len, lamp.batches)) == [1]
    assert rows_of(run)["a"] == rows_of(run)["c"]
    run_detector(lamp, twins[1:], tmp_path)
    assert list(map(len, lamp.batches)) == [1]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace('"version": 1', '"version": 2'),
        lambda text: text.replace('"score": [', '"score": [NaN, '),
        lambda text: text.replace('"label": [0]', '"label": [-1]'),
        lambda text: text.replace('"label": [0]', '"label": "x"'),
        lambda text: text.replace('"box_2d": [[0', '"box_2d": [[9'),
        lambda text: text.replace('"box_2d"', '"boxes"'),
        lambda text: text.replace('"image": "', '"image": "0'),
    ],
)
def test_a_damaged_file_is_replaced(tmp_path, change):
    whole = rows_of(run_detector(Lamp(), images(2, 1), tmp_path))
    path = sorted(tmp_path.rglob("*.json"))[0]
    text = path.read_text()
    assert change(text) != text
    path.write_text(change(text))
    lamp = Lamp()
    again = run_detector(lamp, images(2, 1), tmp_path)
    assert list(map(len, lamp.batches)) == [1]
    assert rows_of(again) == whole
    assert path.read_text() == text


def test_a_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        run_detector(Lamp(), images(1), tmp_path / "file")


def test_programming_errors():
    with pytest.raises(ValueError, match="positive batch size"):
        run_detector(Lamp(), images(1), batch_size=0)
    with pytest.raises(ValueError, match="'i0' occurs twice"):
        run_detector(Lamp(), images(1) * 2)
    short, wide = Lamp(), Lamp()
    short.one = None
    short.__class__ = type("Short", (Lamp,), {"__call__": lambda self, images: []})
    with pytest.raises(ValueError, match="0 results for 1 images"):
        run_detector(short, images(1))
    wide.classes = ()
    with pytest.raises(ValueError, match="label 0 of a detector of 0 classes"):
        run_detector(wide, images(1))


# A kill


class Slow(Lamp):
    """Stops at the twentieth image, for good."""

    def one(self, image):
        if image.name == "i20":
            signal.pause()
        return super().one(image)


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    cache = tmp_path / "cache"
    process = get_context("fork").Process(target=run_detector, args=(Slow(), images(200), cache, 2))
    process.start()
    while len(list(cache.rglob("*.json"))) < 6:
        assert process.is_alive()
        time.sleep(0.01)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    files = list(cache.rglob("*.json"))
    assert 6 <= len(files) < 200
    assert all(json.loads(path.read_text())["schema"] == "verifier.detections" for path in files)  # whole files only
    lamp = Lamp()
    run = run_detector(lamp, images(200), cache, batch_size=2)
    assert sum(map(len, lamp.batches)) == 200 - len(files)
    assert rows_of(run) == rows_of(run_detector(Lamp(), images(200)))


def test_two_runs_share_a_cache(tmp_path):
    detector = identity_digest(Lamp().identity)
    cache = Cache(tmp_path)
    (image,) = images(1)
    digest = image_digest(image)
    cache.put(digest, detector, Lamp().one(image))
    cache.put(digest, detector, Lamp().one(image))
    assert cache.get(digest, detector) is not None
    assert cache.get(digest, "0" * 64) is None


# Beside the annotations


def stored(data):
    """The run of a detector that reports what stands in a data set."""
    boxes, frames = data.detections, range(data.frame_count)
    rows = [np.flatnonzero(boxes.frame == frame) for frame in frames]
    found = [Detections(boxes.box_2d[row], boxes.score[row], boxes.label[row]) for row in rows]
    named = dict(zip(data.frame_name, found, strict=True))
    return DetectorRun(data.classes, {"detector": "stored"}, named, dict.fromkeys(named, "0" * 64))


def test_detections_beside_annotations():
    truth = lane_set(3, [(0, 0), (1, 0)], [(2, 2, 0.1)], ("person", "car"))
    run = stored(lane_set(3, [], [(1, 0, 0.7, 1), (0, 0, 0.9), (1, 3, 0.2)], ("man", "dog")))
    run = replace(run, detections={name: run.detections[name] for name in ("0002", "0000", "0001")})
    data = with_detections(truth, run, class_map({"man": "person", "dog": "ignore"}))
    assert data.classes == ("person", "car")
    assert data.detections.frame.tolist() == [0, 1]
    assert data.detections.score.tolist() == [0.9, 0.2]  # the dog is left out
    assert data.origin["detector"]["left_out"] == 1
    assert data.origin["detector"]["images"]["count"] == 3
    assert data.origin["detector"]["class_map"] == [["man", "person"], ["dog", "ignore"]]
    json.dumps(data.origin["detector"], allow_nan=False)
    assert match_count(match(data, MatchingPolicy("iou_2d", 0.5))) == 1
    assert data.files[int(data.detections.file[0])] == "<detector>"


def test_the_record_of_replaced_detections_is_dropped(shared):
    from verifier.perception.detections import Reading, read_detections

    folder = shared / "data/kitti_tracking"
    reading = Reading(sequences=("0016",))
    truth = read_detections("kitti_tracking", folder / "label_02", folder / "det_rrc2d", reading)
    data = with_detections(truth, stored(truth))
    assert [each["role"] for each in truth.origin["sources"]] == ["annotations", "detections"]
    assert [each["role"] for each in data.origin["sources"]] == ["annotations"]
    one, two = (match(each, MatchingPolicy("iou_2d", 0.5)) for each in (truth, data))
    assert match_count(one) == match_count(two) > 100


def test_frames_and_images_belong_together():
    truth = lane_set(2, [(0, 0)], [], ("lamp", "sun"))
    frames = [Image(f"{k:04d}", np.full((1, 1, 3), k, np.uint8)) for k in range(3)]
    with pytest.raises(InputError, match="frame '0001': every frame needs an image"):
        with_detections(truth, run_detector(Lamp(), frames[:1]))
    with pytest.raises(InputError, match="frame '0002': every image needs a frame"):
        with_detections(truth, run_detector(Lamp(), frames))
    run = run_detector(Lamp(), frames[:2])
    assert with_detections(truth, run).detections.label.tolist() == [0, 0]
    with pytest.raises(UsageError, match="class 'sun' fits no rule"):
        with_detections(truth, run, class_map({"lamp": "lamp"}))
    with pytest.raises(UsageError, match="unknown class of the detector 'light'"):
        with_detections(truth, run, class_map({"*": "light"}))
    nobody = lane_set(0, [], [], ("lamp", "sun"))
    assert len(with_detections(nobody, run_detector(Lamp(), [])).detections) == 0
