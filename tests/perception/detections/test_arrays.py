"""Arrays, and the two protocols of other libraries, by objects that have only the attributes named."""

from collections import Counter
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from verifier.base.errors import InputError, UsageError
from verifier.perception.detections import Reading, distance
from verifier.perception.detections.arrays import from_arrays, from_dicts, from_maite, from_objects, from_supervision
from verifier.perception.detections.assembly import Checks, Rows

SEEN = {"frame": [1], "class": [0], "score": [0.5]}


class Detections(SimpleNamespace):
    """What is used of `supervision.Detections`."""

    def __len__(self):
        return len(self.xyxy)


def one(xyxy, classes, confidence=None, data=None, tracks=None):
    return Detections(
        xyxy=np.array(xyxy, dtype=np.float32).reshape(-1, 4),
        class_id=np.array(classes, dtype=int),
        confidence=None if confidence is None else np.array(confidence),
        tracker_id=None if tracks is None else np.array(tracks),
        data=data or {},
    )


def test_supervision_objects():
    truth = [one([], []), one([[1, 2, 3, 4], [5, 6, 7, 8]], [1, 0], data={"distance_m": np.array([10.0, 20])})]
    seen = [one([[1, 2, 3, 5]], [1], [0.75]), one([], [], [])]
    found = from_supervision(["ped", "car"], ["f0", "f1"], truth, seen, sequences=["a", "b"])
    assert found.annotations.frame.tolist() == [1, 1]
    assert found.annotations.label.tolist() == [1, 0]
    assert distance(found.annotations, "given").tolist() == [10, 20]
    assert (found.detections.frame.tolist(), found.detections.score.tolist()) == ([0], [0.75])
    assert found.sequences == ("a", "b")


def of_names(*names, score=None, data=None):
    """One box for each name, whose class ids say nothing."""
    boxes, told = [[1, 2, 3, 4]] * len(names), {"class_name": np.array(names)} if names else {}
    return one(boxes, [40] * len(names), score, told | (data or {}))


def test_supervision_classes_by_name():
    """Names decide where every box has one; a frame without boxes needs none."""
    truth, seen = [of_names("van", "car"), of_names()], [of_names("van", score=[0.5]), of_names(score=[])]

    def labels(classes, *frames):
        data = from_supervision(classes, ["a", "b"], *(frames or (truth, seen)))
        return data.classes, *([data.classes[k] for k in part.label] for part in (data.annotations, data.detections))

    assert labels(None) == (("car", "van"), ["van", "car"], ["van"])
    assert labels(["van", "bus", "car"]) == (("van", "bus", "car"), ["van", "car"], ["van"])
    empty = [of_names(), of_names()]
    assert labels(["van"], empty, [of_names("van", score=[0.5]), of_names(score=[])]) == (("van",), [], ["van"])
    assert labels(["van"], empty, [of_names(score=[])] * 2) == (("van",), [], [])
    part = [one([[1, 2, 3, 4]] * 2, [1, 0], data={"class_name": np.array(["van"])}), of_names("van")]
    part[1].class_id[:] = 0  # names of some boxes only: the numbers decide
    assert labels(["van", "bus"], part, [of_names(score=[])] * 2) == (("van", "bus"), ["bus", "van", "van"], [])
    for names, words in ((["bus", "van"], "unknown class '.no such class.'"), (None, "the classes have no names")):
        with pytest.raises(InputError, match=f"^<annotations>.*{words}"):
            labels(names, truth if names else part, seen)


def test_distances_are_as_many_as_boxes():
    boxes = [[[1, 2, 3, 4]] * count for count in (1, 2, 0)]

    def read(distances):
        far = [{"distance_m": np.array(own)} if own else {} for own in distances]
        of = [one(own, [0] * len(own), data=data) for own, data in zip(boxes, far, strict=True)]
        return from_supervision(["ped"], list("abc"), of, [one([], [], [])] * 3).annotations.distance_m

    assert read([[5], [6, 7], []]).tolist() == [5, 6, 7]
    for wrong in ([[5, 6], [7], []], [[5], [6, 7, 8], []], [[5, 5], [6, 7], []]):
        with pytest.raises(InputError, match=r"^<annotations>: \w+ has other lengths than (xyxy|boxes)"):
            read(wrong)
    assert np.isnan(read([[], [6, 7], []])).tolist() == [True, False, False]
    assert read([5, [6, 7], []]).tolist() == [5, 6, 7]
    with pytest.raises(InputError, match="<annotations>: column 'distance_m': expected an array of numbers"):
        read([["x"], ["y", "z"], []])
    assert read([[], [], []]) is None


def test_dictionaries_by_frame():
    """Of detections only what is known is read; every number of annotations."""
    truth = [{"boxes": [[1, 2, 3, 4]], "labels": [1], "track": [7], "distance_m": [9]}, {"labels": []}]
    for key in ("boxes", "track", "distance_m"):
        truth[1][key] = []
    seen = [{"labels": [], "scores": [], "distance_m": [], "mask": 3}]
    seen.append({"labels": [0], "scores": [0.5], "distance_m": [8], "mask": 3})
    data = from_dicts(["ped", "car"], ["a", "b"], truth, seen)
    assert (data.annotations.label.tolist(), data.detections.label.tolist()) == ([1], [0])
    assert (data.annotations.frame.tolist(), data.detections.frame.tolist()) == ([0], [1])
    assert data.annotations.box_2d.tolist() == [[1, 2, 3, 4]]
    assert (data.annotations.distance_m.tolist(), data.detections.distance_m.tolist()) == ([9], [8])
    assert data.annotations.attributes["track"].tolist() == [7]
    with pytest.raises(InputError, match="<annotations>: track has other lengths than labels"):
        from_dicts(["ped", "car"], ["a"], [{**truth[0], "track": [7, 8]}], seen[:1])


def test_what_objects_are():
    """The kind of the annotations says which; what is of no kind, or of two, is refused."""
    box, few = [[1, 2, 3, 4]], {"labels": [], "scores": []}
    maite, half = SimpleNamespace(boxes=box, labels=[0], scores=[1.0]), SimpleNamespace(boxes=box)
    assert from_objects({"x": one([], [])}, {"x": one(box, [0], [0.5])}, names=["ped"]).frame_name == ("x",)
    assert len(from_objects([maite], [maite], names=["ped"]).detections) == 1
    for truth, seen, words in (
        ("a.csv", "b.csv", "^a.csv: no such file"),
        ([few], "a", "<detections>: expected one object for each image, got str"),
        ([one(box, [0])], [few], "got Detections, dict"),
        ([few], [maite], "got SimpleNamespace, dict"),
        ([maite], [few], "got SimpleNamespace, dict"),
        ([half], [half], "got SimpleNamespace"),
    ):
        with pytest.raises(InputError, match=words):
            from_objects(truth, seen, names=["ped"])
    for whole in (SimpleNamespace(dataset={}), SimpleNamespace(columns=[])):
        for wrong in ({"names": ["ped"]}, {"sequences": ["s"]}):
            with pytest.raises(UsageError, match="tables and COCO have their own"):
                from_objects(whole, whole, **wrong)
        with pytest.raises(InputError):
            from_objects(whole, whole)


def test_tracks_of_annotations_are_those_of_all_frames_or_none():
    tracked, plain, none = one([[1, 2, 3, 4]], [0], tracks=[7]), one([[1, 2, 3, 4]], [0]), [one([], [], [])] * 2

    def tracks(*truth):
        return from_supervision(["ped"], ["f0", "f1"], truth, none).annotations.attributes.get("track")

    assert tracks(tracked, tracked).tolist() == [7, 7]
    assert tracks(tracked, plain) is None
    assert tracks(plain, plain) is None


def test_real_supervision_objects():
    supervision = pytest.importorskip("supervision")
    seen = supervision.Detections(np.array([[1.0, 2, 3, 4]]), confidence=np.array([0.5]), class_id=np.array([0]))
    found = from_supervision(["ped"], ["f0"], [seen], [seen])
    assert found.detections.box_2d.tolist() == [[1, 2, 3, 4]]


def test_maite_targets():
    truth = [
        SimpleNamespace(boxes=[[1, 2, 3, 4]], labels=[1], scores=[1.0]),
        SimpleNamespace(boxes=[], labels=[], scores=[]),
    ]
    seen = [
        SimpleNamespace(boxes=[[1, 2, 3, 4], [0, 0, 9, 9]], labels=[1, 0], scores=np.array([[0.1, 0.9], [0.6, 0.4]])),
        SimpleNamespace(boxes=np.zeros((0, 4)), labels=[], scores=np.zeros((0, 2))),
    ]
    found = from_maite(["bus", "person"], ["x", "y"], truth, seen)
    assert found.classes == ("bus", "person")
    assert found.annotations.label.tolist() == [1]
    assert found.detections.label.tolist() == [1, 0]
    assert found.detections.score.tolist() == [0.9, 0.6]


def test_objects_without_a_box_are_rows_of_nan():
    boxes = [[1, 2, 0, 4, 2, 1, 0], [np.nan] * 7]
    found = from_arrays(["ped"], ["a"], {"frame": [0, 0], "class": [0, 0], "box_3d": boxes}, {**SEEN, "frame": [0]})
    assert np.isnan(distance(found.annotations, "ground_plane")).tolist() == [False, True]
    empty = from_arrays(
        ["ped"],
        ["a"],
        {"frame": [], "class": [], "box_2d": [], "box_3d": np.zeros((0, 7))},
        {"frame": [], "class": [], "score": []},
    )
    assert (len(empty.annotations), len(empty.detections)) == (0, 0)


@pytest.mark.parametrize(
    ("truth", "seen", "message"),
    [
        ({"frame": [0]}, SEEN, "<annotations>: no column 'class'"),
        ({"frame": [0], "class": [0]}, {"frame": [0], "class": [0]}, "<detections>: no column 'score'"),
        ({"frame": [0], "class": [0, 1]}, SEEN, "column 'class' has the shape"),
        ({"frame": [0], "class": [0], "box_3d": [[1, 2]]}, SEEN, "column 'box_3d' has the shape"),
        ({"frame": [0], "class": [0], "distance_m": []}, SEEN, "column 'distance_m' has the shape"),
        ({"frame": 3, "class": [0]}, SEEN, "column 'frame' has the shape"),
        ({"frame": [0.5], "class": [0]}, SEEN, "column 'frame': expected whole numbers"),
        ({"frame": [np.inf], "class": [0]}, SEEN, "column 'frame': expected whole numbers"),
        ({"frame": [0], "class": [np.nan]}, SEEN, "column 'class': expected whole numbers"),
        ({"frame": [0], "class": [-1]}, SEEN, "<annotations>:1: unknown class '.no such class.'"),
        ({"frame": [0], "class": [2]}, SEEN, "<annotations>:1: unknown class '.no such class.'"),
        ({"frame": [0], "class": ["ped"]}, SEEN, "column 'class': expected an array of numbers"),
        ({"frame": [0], "class": [9]}, SEEN, "<annotations>:1: unknown class '.no such class.'"),
        ({"frame": [0], "class": [0]}, {**SEEN, "frame": [2]}, "<detections>:1: detection in frame 2, which"),
        (
            {"frame": [0], "class": [0]},
            {**SEEN, "score": [np.nan]},
            "<detections>:1: detection without a score",
        ),
        ({"frame": [0], "class": [0], "box_2d": [[3, 0, 1, 1]]}, SEEN, "<annotations>:1: .*negative size"),
    ],
)
def test_arrays_that_are_refused(truth, seen, message):
    with pytest.raises(InputError, match=message):
        from_arrays(["ped", "car"], ["f0", "f1"], truth, seen)


def test_other_lengths_are_refused():
    with pytest.raises(InputError, match="1 entries for 2 frames"):
        from_supervision(["ped"], ["f0", "f1"], [one([], [])], [one([], []), one([], [])])
    with pytest.raises(InputError, match="entry 1 has no confidence"):
        from_supervision(["ped"], ["f0"], [one([], [])], [one([], [])])
    with pytest.raises(InputError, match="class_id has other lengths than xyxy"):
        from_supervision(["ped"], ["f0"], [one([[1, 2, 3, 4]], [])], [one([], [], [])])
    with pytest.raises(InputError, match="frame 'b' occurs twice"):
        from_arrays(["ped"], ["a", "b", "b"], {}, {})
    with pytest.raises(InputError, match="1 sequences for 2 frames"):
        from_arrays(["ped"], ["a", "b"], {}, {}, sequences=["s"])


def test_what_is_ignored_is_counted():
    seen = {"frame": [0, 5], "class": [0, 0], "score": [0.5, 0.6]}
    found = from_arrays(["ped"], ["a"], {"frame": [0], "class": [0]}, seen, Reading(ignore=("unknown_frames",)))
    assert found.origin["ignored"] == {"unknown_frames": 1}
    assert found.detections.line.tolist() == [1]


def test_a_distance_may_be_0_and_not_less():
    seen, truth = {**SEEN, "frame": [0]}, {"frame": [0, 0], "class": [0, 0]}
    found = from_arrays(["ped"], ["a"], {**truth, "distance_m": [0, 5]}, seen)
    assert distance(found.annotations, "given").tolist() == [0, 5]
    with pytest.raises(InputError, match="<annotations>:2: annotation with distance_m -1"):
        from_arrays(["ped"], ["a"], {**truth, "distance_m": [0, -1]}, seen)


@pytest.mark.parametrize("metres", [60, 60.1])
def test_nothing_is_larger_than_the_longest_vehicles(metres):
    truth = {"frame": [0], "class": [0], "box_3d": [[5, 0, 0, 0.1, metres, 0.1, 0]]}
    with nullcontext() if metres <= 60 else pytest.raises(InputError, match=r"60\.1 m large; are these metres"):
        from_arrays(["ped"], ["a"], truth, {**SEEN, "frame": [0]})


def test_an_unknown_box_is_a_fault_where_a_format_has_no_word_for_it():
    one = np.zeros(1, dtype=np.int64)
    for absent in (None, np.array([False]), np.array([True])):
        rows = Rows(
            one,
            one,
            ("ped",),
            one + 1,
            one,
            ("f.txt",),
            "frame {}".format,
            box_2d=np.full((1, 4), np.nan),
            no_box_2d=absent,
        )
        checks = Checks(Reading(), Counter())
        if absent is not None and absent.all():
            assert len(checks.rows(rows, "annotation")) == 1
        else:
            with pytest.raises(InputError, match=r"f\.txt:1: annotation with box_2d .* no finite number"):
                checks.rows(rows, "annotation")


@pytest.mark.parametrize(
    ("edge", "other", "fine"), [(1.5, np.nan, False), (1.6, np.nan, True), (1.5, 1, False), (1.5, 9, True)]
)
def test_rectangles_within_a_pixel_and_a_half_are_fractions(edge, other, fine):
    truth = {"frame": [0, 0], "class": [0, 0], "box_2d": [[0, 0, 0.5, edge], [other] * 4]}
    with nullcontext() if fine else pytest.raises(InputError, match="are these fractions of the image"):
        from_arrays(["ped"], ["a"], truth, {**SEEN, "frame": [0]})


def test_regions_are_known_where_the_source_has_the_notion():
    truth, seen = {"frame": [0], "class": [0]}, {**SEEN, "frame": [0]}
    assert from_arrays(["ped"], ["a"], truth, seen).ignored is None
    for region in (0, 1):
        assert len(from_arrays(["ped"], ["a"], {**truth, "region": [region]}, seen).ignored) == region


def test_frames_of_chosen_sequences_are_numbered_anew():
    truth = {"frame": [0, 1, 2, 3], "class": [0] * 4, "distance_m": [1, 2, 3, 4]}
    reading = Reading(sequences=("b", "d"))
    found = from_arrays(["ped"], list("wxyz"), truth, {**SEEN, "frame": [3]}, reading, sequences=list("abcd"))
    assert (found.frame_name, found.sequences) == (("x", "z"), ("b", "d"))
    assert (found.annotations.frame.tolist(), found.annotations.distance_m.tolist()) == ([0, 1], [2, 4])
    assert (found.detections.frame.tolist(), found.frame_sequence.tolist()) == ([1], [0, 1])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"labels": ["x"]}, "<annotations>: column 'class': expected an array of numbers"),
        ({"labels": [0.5]}, "<annotations>: column 'class': expected whole numbers"),
        ({"labels": [1]}, "<annotations>:1: unknown class '.no such class.'"),
        ({"scores": ["x"]}, "<detections>: column 'score': expected an array of numbers"),
        ({"scores": [0.5, 0.5]}, "<detections>: scores has other lengths than boxes"),
        ({"scores": None}, "<detections>: scores of entry 1 is no array"),
    ],
)
def test_targets_of_maite_that_are_refused(wrong, words):
    target = SimpleNamespace(**{"boxes": [[1, 2, 3, 4]], "labels": [0], "scores": [0.5]} | wrong)
    with pytest.raises(InputError, match=words):
        from_maite(["ped"], ["a"], [target], [target])
