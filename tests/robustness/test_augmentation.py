"""Mutations in the pipelines of others: the augmentation protocol of MAITE and the perturbers of NRTK.

What is computed is tested with made-up objects that follow the protocols; where MAITE and NRTK are installed, their
own checks and their own pipelines are run as well.
"""

import json

import numpy as np
import pytest

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")

from verifier.base.errors import InputError
from verifier.robustness.mutators import Frame, apply
from verifier.robustness.mutators.augmentation import APPLIED, MaiteAugmentation, NrtkPerturber
from verifier.robustness.mutators.mutation import mutation_of
from verifier.robustness.mutators.sweeps import parse_mutation

BLUR = parse_mutation("gaussian_blur:sigma_px=1")
NOISE = parse_mutation("salt_and_pepper:share=0.2")
HAZE = parse_mutation("haze:visibility_m=97.8")
CROP = parse_mutation("truncation:left=0.25,top=0.25")


class Target:
    def __init__(self, boxes, labels, scores):
        self.boxes, self.labels, self.scores = boxes, labels, scores


def picture(seed=0):
    return np.random.default_rng(seed).integers(0, 256, (8, 12, 3), np.uint8)


def planes(seed=0):
    return picture(seed).transpose(2, 0, 1)


def target():
    return Target(np.array([[5, 4, 9, 8], [0, 0, 3, 8], [1, 1, 6, 4]], np.float32), np.array([7, 3, 7]), np.ones(3))


def batch(*seeds):
    return [planes(seed) for seed in seeds], [target() for _ in seeds], [{"id": seed, "city": "K"} for seed in seeds]


# MAITE


def test_a_batch_is_mutated_and_its_arguments_are_not():
    given = batch(0, 1)
    images, targets, metadata = MaiteAugmentation(BLUR)(given)
    for number in range(2):
        assert np.array_equal(images[number].transpose(1, 2, 0), apply(BLUR, Frame(picture(number))).pixels)
        assert targets[number].boxes.tolist() == target().boxes.tolist()
        assert targets[number].labels.tolist() == [7, 3, 7]
    assert metadata == [{"id": seed, "city": "K", APPLIED: (BLUR.text,)} for seed in (0, 1)]
    fresh = batch(0, 1)
    assert all(np.array_equal(old, new) for old, new in zip(given[0], fresh[0], strict=True))
    assert all(np.array_equal(old.boxes, new.boxes) for old, new in zip(given[1], fresh[1], strict=True))
    assert given[2] == fresh[2]


def test_boxes_move_along_and_lost_ones_take_label_and_score_with_them():
    one = Target([[5, 4, 9, 8], [0, 0, 3, 8], [1, 1, 6, 4]], [7, 3, 5], [[0.5, 0.25], [0.1, 0.2], [0.0, 1.0]])
    images, (moved,), _ = MaiteAugmentation(CROP)(([planes()], [one], [{"id": "a"}]))
    assert not images[0][:, :2].any()
    assert not images[0][:, :, :3].any()
    assert moved.boxes.tolist() == [[5, 4, 9, 8], [3, 2, 6, 4]]  # 3 columns and 2 rows are lost
    assert moved.labels.tolist() == [7, 5]
    assert moved.scores.tolist() == [[0.5, 0.25], [0.0, 1.0]]


def test_what_is_drawn_depends_on_seed_and_id_alone():
    once = MaiteAugmentation(NOISE, seed=1)(batch(0, 1, 2))[0]
    again = MaiteAugmentation(NOISE, seed=1)(batch(2, 0))[0]
    assert np.array_equal(once[2], again[0])
    assert np.array_equal(once[0], again[1])
    other = MaiteAugmentation(NOISE, seed=2)(batch(0))[0]
    assert not np.array_equal(once[0], other[0])
    images, targets, _ = batch(0, 0)
    same_pixels = MaiteAugmentation(NOISE, seed=1)((images, targets, [{"id": "a"}, {"id": "b"}]))[0]
    assert not np.array_equal(*same_pixels)
    assert MaiteAugmentation(NOISE, seed=1).metadata == {"id": "salt_and_pepper:share=0.2 seed=1"}
    assert MaiteAugmentation(BLUR, seed=1).metadata == {"id": "gaussian_blur:sigma_px=1"}


def test_images_between_0_and_1():
    given = (planes() / np.float32(255)).astype(np.float32)
    (made,), _, _ = MaiteAugmentation(BLUR, pixels="float32")(([given], [None], [{"id": 0}]))
    assert made.dtype == np.float32
    assert np.array_equal(np.rint(made * 255), MaiteAugmentation(BLUR)(batch(0))[0][0])


def test_depth_from_metadata_or_one_for_all():
    depth = np.full((8, 12), 25.0)
    by_datum = MaiteAugmentation(HAZE, depth=lambda datum: datum["depth"])
    (made,), _, _ = by_datum(([planes()], [target()], [{"id": 0, "depth": depth}]))
    assert np.array_equal(made.transpose(1, 2, 0), apply(HAZE, Frame(picture(), depth)).pixels)
    assert np.array_equal(made, MaiteAugmentation(HAZE, depth=25)(batch(0))[0][0])
    with pytest.raises(InputError, match="the depth map has 11 x 8 pixels"):
        by_datum(([planes()], [target()], [{"id": 0, "depth": depth[:, 1:]}]))
    with pytest.raises(ValueError, match="needs depth: give metres"):
        MaiteAugmentation(HAZE)


def test_augmentations_one_after_the_other_are_written_down():
    _, _, metadata = MaiteAugmentation(CROP)(MaiteAugmentation(BLUR)(batch(0)))
    assert metadata[0][APPLIED] == (BLUR.text, CROP.text)


def test_targets_of_other_tasks_are_passed_on():
    label = np.array([0.0, 1.0])
    _, targets, _ = MaiteAugmentation(CROP)(([planes()], [label], [{"id": 0}]))
    assert targets[0] is label


@pytest.mark.parametrize(
    ("image", "pixels", "message"),
    [
        (picture(), "uint8", r"expected an image \(3, H, W\) uint8, got uint8 of shape \(8, 12, 3\)"),
        (planes()[:1], "uint8", "expected an image"),
        (planes().astype(np.float32), "uint8", "got float32"),
        (planes(), "float32", "got uint8"),
        (planes().astype(np.float32), "float32", "expected float32 levels from 0 to 1"),
        (np.full((3, 2, 2), np.nan, np.float32), "float32", "expected float32 levels from 0 to 1"),
    ],
)
def test_images_that_do_not_fit(image, pixels, message):
    with pytest.raises(ValueError, match=message):
        MaiteAugmentation(BLUR, pixels=pixels)(([image], [None], [{"id": 0}]))


@pytest.mark.parametrize(
    ("boxes", "labels", "scores"),
    [
        ([[5, 4, 9, 8], [0, 0, 3, 8]], [7], [1]),  # CROP takes the second box away: nothing would notice
        ([[5, 4, 9, 8]], [7, 3], [1]),
        ([[5, 4, 9, 8]], [7], [[0.5, 0.5], [0.1, 0.9]]),
        ([5, 4, 9, 8], [7], [1]),
        (np.zeros((2, 2, 2)), [7, 7], [1, 1]),
        ([], [7], [1]),
    ],
)
def test_targets_that_do_not_fit_together(boxes, labels, scores):
    with pytest.raises(ValueError, match=r"expected boxes \(n, 4\) with n labels and n scores, got boxes of shape"):
        MaiteAugmentation(CROP)(([planes()], [Target(boxes, labels, scores)], [{"id": 0}]))


@pytest.mark.parametrize("scores", [[], np.zeros((0, 3))])
def test_a_target_without_objects(scores):
    _, (moved,), _ = MaiteAugmentation(CROP)(([planes()], [Target([], [], scores)], [{"id": 0}]))
    assert moved.boxes.shape == (0, 4)
    assert moved.scores.shape == np.shape(scores)


def test_a_datum_without_id():
    with pytest.raises(ValueError, match="the metadata of a datum has no 'id'"):
        MaiteAugmentation(NOISE)(([planes()], [None], [{"city": "K"}]))


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True, None])
def test_seeds_that_are_none(seed):
    for made in (MaiteAugmentation, NrtkPerturber):
        with pytest.raises(ValueError, match="expected a whole number from 0 as the seed"):
            made(NOISE, seed=seed)


@pytest.mark.parametrize("metres", [0, -1.0, np.nan, np.inf, "20", True])
def test_depths_that_are_none(metres):
    for made in (lambda: MaiteAugmentation(HAZE, depth=metres), lambda: NrtkPerturber(HAZE, depth_m=metres)):
        with pytest.raises(ValueError, match="expected a depth in metres above 0"):
            made()


def test_numbers_of_numpy_are_numbers():
    perturber = NrtkPerturber(HAZE, seed=np.int64(3), depth_m=np.float32(25))
    assert json.loads(json.dumps(perturber.get_config()))["depth_m"] == 25.0


@pytest.mark.parametrize("shape", [(8, 12, 3), (96,), ()])
def test_depth_maps_of_another_shape(shape):
    with pytest.raises(ValueError, match=r"expected a depth map \(H, W\) or \(H, W, 1\), got one of shape"):
        NrtkPerturber(HAZE)(image=picture(), depth_map=np.full(shape, 25.0))


def test_lists_of_different_lengths_and_unknown_pixels():
    with pytest.raises(ValueError, match="zip"):
        MaiteAugmentation(BLUR)(([planes()], [], [{"id": 0}]))
    with pytest.raises(ValueError, match="expected pixels 'uint8' or 'float32', got 'int8'"):
        MaiteAugmentation(BLUR, pixels="int8")


class Data:
    """A data set of three images that follows the protocol of MAITE."""

    def __init__(self):
        self.metadata = {"id": "made up", "index2label": {3: "car", 7: "person"}}

    def __len__(self):
        return 3

    def __getitem__(self, number, /):
        return planes(number), target(), {"id": number}


class Model:
    """A model that finds one box: the whole image."""

    def __init__(self):
        self.metadata = {"id": "everything", "index2label": {3: "car", 7: "person"}}

    def __call__(self, images, /):
        return [Target(np.array([[0, 0, *each.shape[:0:-1]]]), np.array([7]), np.array([1.0])) for each in images]


def test_maite_takes_it_for_an_augmentation():
    protocols = pytest.importorskip("maite.protocols", reason="maite is not installed")
    from maite.protocols import image_classification, object_detection

    augmentation = MaiteAugmentation(CROP)
    assert isinstance(augmentation, object_detection.Augmentation)
    assert isinstance(augmentation, image_classification.Augmentation)
    assert set(augmentation.metadata) == set(protocols.AugmentationMetadata.__required_keys__)
    _, (moved,), _ = augmentation(batch(0))
    assert isinstance(moved, object_detection.ObjectDetectionTarget.__origin__)


def test_maite_predicts_on_what_it_makes():
    tasks = pytest.importorskip("maite.tasks", reason="maite is not installed")
    predicted, augmented = tasks.predict(
        model=Model(), dataset=Data(), batch_size=2, augmentation=MaiteAugmentation(CROP), return_augmented_data=True
    )
    assert [one.boxes.tolist() for each in predicted for one in each] == [[[0, 0, 12, 8]]] * 3
    truth = [one.boxes.tolist() for _, targets, _ in augmented for one in targets]
    assert truth == [[[5, 4, 9, 8], [3, 2, 6, 4]]] * 3


def test_maite_checks_every_call():
    pytest.importorskip("beartype", reason="beartype, with which maite checks calls, is not installed")
    tasks = pytest.importorskip("maite.tasks", reason="maite is not installed")
    checked = pytest.importorskip("maite.spotcheck").spotcheck(tasks.predict, ai_problem="object_detection")
    for mutation in (CROP, NOISE, HAZE):
        checked(model=Model(), dataset=Data(), batch_size=3, augmentation=MaiteAugmentation(mutation, depth=20.0))


# NRTK


class Box:
    """As `AxisAlignedBoundingBox` of smqtk_image_io."""

    def __init__(self, min_vertex, max_vertex):
        self.min_vertex, self.max_vertex = np.asarray(min_vertex), np.asarray(max_vertex)


def boxes(kind=Box):
    corners = ((5, 4, 9, 8), (0, 0, 3, 8), (1, 1, 6, 4))
    return [(kind((x1, y1), (x2, y2)), {f"object {n}": 0.5}) for n, (x1, y1, x2, y2) in enumerate(corners)]


def corners_of(pairs):
    return [([*box.min_vertex, *box.max_vertex], scores) for box, scores in pairs]


MOVED = [([5, 4, 9, 8], {"object 0": 0.5}), ([3, 2, 6, 4], {"object 2": 0.5})]


@pytest.mark.parametrize("call", [NrtkPerturber.__call__, NrtkPerturber.perturb])
def test_a_perturber_moves_pixels_and_boxes(call):
    pixels = picture()
    made, moved = call(NrtkPerturber(CROP), image=pixels, boxes=iter(boxes()), img_gsd=0.1)
    assert np.array_equal(made, apply(CROP, Frame(pixels)).pixels)
    assert corners_of(moved) == MOVED
    assert np.array_equal(pixels, picture())
    assert call(NrtkPerturber(CROP), image=pixels)[1] is None
    assert call(NrtkPerturber(CROP), image=pixels, boxes=[])[1] == []


def test_what_a_perturber_draws_depends_on_seed_and_pixels_alone():
    one = NrtkPerturber(NOISE, seed=1)
    first = one(image=picture())[0]
    one(image=picture(1))
    assert np.array_equal(first, one(image=picture())[0])
    assert not np.array_equal(first, NrtkPerturber(NOISE, seed=2)(image=picture())[0])


def test_depth_of_a_perturber():
    wanted = apply(HAZE, Frame(picture(), np.full((8, 12), 25.0))).pixels
    assert np.array_equal(NrtkPerturber(HAZE, depth_m=25)(image=picture())[0], wanted)
    for shape in ((8, 12), (8, 12, 1)):
        made, _ = NrtkPerturber(HAZE, depth_m=5)(image=picture(), depth_map=np.full(shape, 25.0))
        assert np.array_equal(made, wanted)
    with pytest.raises(InputError, match="haze needs the depth"):
        NrtkPerturber(HAZE)(image=picture())


def test_a_perturber_refuses_what_is_no_image():
    with pytest.raises(ValueError, match=r"expected pixels \(H, W, 3\) uint8"):
        NrtkPerturber(BLUR)(image=np.zeros((4, 4), np.uint8))


def test_nrtk_runs_it_in_its_own_pipelines():
    interfaces = pytest.importorskip("nrtk.interfaces", reason="nrtk is not installed")
    box = pytest.importorskip("smqtk_image_io.bbox").AxisAlignedBoundingBox
    made, moved = NrtkPerturber(CROP)(image=picture(), boxes=boxes(box))
    assert corners_of(moved) == MOVED
    assert isinstance(moved[0][0], box)
    kind = type("Registered", (NrtkPerturber,), {})
    interfaces.PerturbImage.register(kind)
    assert isinstance(kind(CROP), interfaces.PerturbImage)
    compose = pytest.importorskip("nrtk.impls.perturb_image", reason="this nrtk has no composition").ComposePerturber
    both = compose(perturbers=[NrtkPerturber(BLUR), NrtkPerturber(CROP)])
    made, moved = both(image=picture(), boxes=boxes(box))
    assert np.array_equal(made, apply(CROP, apply(BLUR, Frame(picture()))).pixels)
    assert corners_of(moved) == MOVED


def test_nrtk_runs_it_in_its_own_augmentation_of_maite():
    pytest.importorskip("nrtk", reason="nrtk is not installed")
    pytest.importorskip("maite", reason="maite is not installed")
    from nrtk.interop import MAITEObjectDetectionAugmentation

    theirs = MAITEObjectDetectionAugmentation(augment=NrtkPerturber(CROP), augment_id="crop")
    images, (moved,), (datum,) = theirs(batch(0))
    assert np.array_equal(images[0], MaiteAugmentation(CROP)(batch(0))[0][0])
    assert moved.boxes.tolist() == [[5, 4, 9, 8], [3, 2, 6, 4]]
    assert moved.labels.tolist() == [7, 7]
    assert datum["nrtk_perturber_config"][0] == NrtkPerturber(CROP).get_config()


def test_a_perturber_can_be_written_down_and_made_again():
    config = json.loads(json.dumps(NrtkPerturber(NOISE, seed=3, depth_m=7).get_config()))
    assert NrtkPerturber.from_config(config) == NrtkPerturber(NOISE, seed=3, depth_m=7)
    assert mutation_of(config["mutation"]) == NOISE
