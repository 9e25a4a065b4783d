"""Average precision: by definition on small random scenes, as pycocotools under COCO's matching, in documents."""

import json
import re
from fractions import Fraction

import numpy as np
import pytest

from verifier.base.statistics import drawn_with_replacement, percentile_ends, reaching
from verifier.cli import main
from verifier.perception.confusion import average_precision as module
from verifier.perception.confusion.average_precision import drawn_class, with_average_precision
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.choices import count_job
from verifier.perception.confusion.document import read_counts
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.detections import class_map, read_detections
from verifier.perception.detections.arrays import from_arrays
from verifier.perception.detections.sources import Reading
from verifier.perception.matching import CONVENTIONS, match

coco = pytest.importorskip("pycocotools.coco")


def by_definition(outcomes, objects):
    """The mean of the greatest precision at each recall j/100 or more; `outcomes`, the surest first, in fractions."""
    hits, best = 0, []
    for number, right in enumerate(outcomes, 1):
        hits += right
        best.append((Fraction(hits, objects), Fraction(hits, number)))
    total = sum(max((p for r, p in best if 100 * r >= j), default=Fraction(0)) for j in range(101))
    return total / 101


def scene(seed, frames=12, drives=3):
    """Rectangles of two classes, most of them found, some by the other class, with false positives; scores differ."""
    random = np.random.default_rng(seed)
    truth, found = [], []
    for frame in range(frames):
        for place in range(random.integers(0, 4)):
            kind, box = int(random.integers(0, 2)), [100 * place, 0, 100 * place + 50, 40]
            truth.append((frame, kind, box))
            if random.random() < 0.8:
                found.append((frame, kind if random.random() < 0.8 else 1 - kind, box))
        for place in range(random.integers(0, 2)):
            found.append((frame, int(random.integers(0, 2)), [100 * place, 100, 100 * place + 50, 140]))
    score = random.permutation(len(found)) / 100 + 0.1
    columns = [
        {"frame": [row[0] for row in rows], "class": [row[1] for row in rows], "box_2d": [row[2] for row in rows]}
        for rows in (truth, found)
    ]
    sequences = [f"d{frame * drives // frames}" for frame in range(frames)]
    return columns[0], columns[1] | {"score": score}, sequences, [f"{k}" for k in range(frames)]


def counted(tmp_path, seed, *options):
    """The document of a scene, written as tables."""
    truth, found, sequences, names = scene(seed)
    for name, columns in (("truth", truth), ("found", found)):
        rows = [
            f"{sequences[frame]},{names[frame]},{'ab'[kind]},{','.join(map(str, box))},5"
            + (f",{columns['score'][k]}" if name == "found" else "")
            for k, (frame, kind, box) in enumerate(
                zip(columns["frame"], columns["class"], columns["box_2d"], strict=True)
            )
        ]
        head = "sequence,frame,class,x1,y1,x2,y2,distance_m" + (",score" if name == "found" else "")
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *rows]) + "\n")
    every = [f"{sequences[k]},{name}" for k, name in enumerate(names)]
    (tmp_path / "frames.csv").write_text("\n".join(["sequence,frame", *every]) + "\n")
    data = ["--format", "table", "--annotations", "truth.csv", "--detections", "found.csv", "--frames", "frames.csv"]
    assert main(["confusion", *data, "--bins", "0,10", "--average-precision", *options, "-o", "c.json"]) == 0
    return json.loads((tmp_path / "c.json").read_text())["average_precision"]


@pytest.mark.parametrize("seed", range(8))
def test_it_is_what_its_definition_says(seed, tmp_path, monkeypatch, capfd):
    """Matching ignores the class: a detection of an object of the other class is a false positive; by drive, too."""
    monkeypatch.chdir(tmp_path)
    told = counted(tmp_path, seed, "--match-threshold", "0.5")
    truth, found, sequences, _ = scene(seed)
    objects = list(zip(truth["frame"], truth["class"], truth["box_2d"], strict=True))
    reports = sorted(
        zip(found["score"], found["frame"], found["class"], found["box_2d"], strict=True), key=lambda row: -row[0]
    )
    for number, each in enumerate(told["classes"]):
        assert each["label"] == "ab"[number]
        for own, value in ((None, each["value"]), *enumerate(each["sequences"])):
            inside = [k for k in range(len(sequences)) if own in (None, int(sequences[k][1]))]
            mine = [row for row in objects if row[1] == number and row[0] in inside]
            outcomes = [
                (frame, kind, box) in mine for _, frame, kind, box in reports if kind == number and frame in inside
            ]
            if not mine:
                assert value is None
                continue
            assert value == pytest.approx(float(by_definition(outcomes, len(mine))), abs=1e-12)
        assert each["objects"] == sum(row[1] == number for row in objects)
        assert each["lower"] <= each["upper"]
    assert (told["unit"], told["draws"], told["seed"]) == ("drive", 1000, 0)
    remarks = [each["text"] for each in json.loads((tmp_path / "c.json").read_text())["remarks"]]
    drives = len(told["classes"][0]["sequences"])
    note = f"average precision is drawn from only {drives} drives: the intervals are themselves uncertain"
    assert (note in remarks) is (drives < 10)


@pytest.mark.parametrize("seed", range(4))
def test_under_the_matching_of_coco_it_is_that_of_coco(seed, tmp_path, monkeypatch, capfd):
    """pycocotools from boxes to AP at IoU 0.5, none of this program in between."""
    monkeypatch.chdir(tmp_path)
    told = counted(tmp_path, seed, "--convention", "coco")
    truth, found, _, names = scene(seed)
    evaluator = pytest.importorskip("pycocotools.cocoeval")
    made = coco.COCO()
    made.dataset = {
        "images": [{"id": k} for k in range(len(names))],
        "categories": [{"id": 0}, {"id": 1}],
        "annotations": [
            {"id": k + 1, "image_id": frame, "category_id": kind, "bbox": [box[0], box[1], 50, 40], "area": 2000,
             "iscrowd": 0}
            for k, (frame, kind, box) in enumerate(zip(truth["frame"], truth["class"], truth["box_2d"], strict=True))
        ],
    }  # fmt: skip
    made.createIndex()
    results = [
        {"image_id": frame, "category_id": kind, "bbox": [box[0], box[1], 50, 40], "score": score}
        for frame, kind, box, score in zip(
            found["frame"], found["class"], found["box_2d"], found["score"].tolist(), strict=True
        )
    ]
    evaluation = evaluator.COCOeval(made, made.loadRes(results), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    for number, each in enumerate(told["classes"]):
        assert each["value"] == pytest.approx(evaluation.eval["precision"][0, :, number, 0, -1].mean(), abs=1e-12)


def test_frames_are_drawn_where_no_drives_are_known(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.csv").write_text("sequence,drive\nd0,all\nd1,all\nd2,all\n")
    told = counted(tmp_path, 1, "--groups", "d.csv")
    assert (told["unit"], told["classes"][0].get("sequences", [])) == ("frame", [])
    # Beside an interval three digits, four above 1/2 (`number_text`); all are in the document.
    assert re.search(r"^a +0\.\d{3,4} +\[", capfd.readouterr().out, re.MULTILINE)
    (tmp_path / "d.csv").write_text("sequence,drive\nd0,x\nd1,y\nd2,x\n")
    told = counted(tmp_path, 1, "--groups", "d.csv")
    assert (told["unit"], len(told["classes"][0]["sequences"])) == ("drive", 2)
    assert read_counts("c.json").sequences.names == ("x", "y")


def test_on_kitti_it_is_that_of_pycocotools(shared):
    """Real rectangles, with regions not judged: the value that the COCO metrics of `robustness` give at IoU 0.5."""
    from verifier.robustness.detection_metrics import coco_evaluation

    folder = shared / "data/kitti_tracking"
    rules = {
        "Pedestrian": "ped",
        "Person*": "ped",
        "Car": "car",
        "Van": "car",
        "DontCare": "dont_care",
        "*": "ignore",
    }
    reading = Reading(class_map=class_map(rules), sequences=("0001", "0004"))
    data = read_detections("kitti_tracking", folder / "label_02", folder / "det_rrc2d", reading)
    policy = CONVENTIONS["coco"]
    rule = CountingRule("class", ("ped", "car"), Bins((0.0, 50.0, np.inf)), "ground_plane")
    counts = count_job(data, policy, rule, "")[0]
    found = with_average_precision(counts, data, match(data, policy), rule.classes).metadata["average_precision"]
    evaluation = coco_evaluation(data)
    evaluation.accumulate()
    for each in found.classes:
        label = data.classes.index(each.label)
        expected = evaluation.eval["precision"][0, :, label, 0, -1].mean()
        assert each.value == pytest.approx(expected, abs=1e-9)


def test_classes_without_an_object_or_a_detection(tmp_path):

    truth = {"frame": [0, 1], "class": [0, 0], "box_2d": [[0, 0, 9, 9]] * 2, "distance_m": [5, 5]}
    seen = {"frame": [0], "class": [1], "score": [0.5], "box_2d": [[0, 0, 9, 9]]}
    data = from_arrays(["a", "b"], ["0", "1"], truth, seen, sequences=["x", "y"])
    rule = CountingRule("class", ("a", "b"), Bins((0.0, 10.0)), "given")
    policy = CONVENTIONS["coco"]
    counts = count_job(data, policy, rule, "")[0]
    found = with_average_precision(counts, data, match(data, policy), rule.classes).metadata["average_precision"]
    assert [(each.objects, each.value, each.lower) for each in found.classes] == [(2, 0, 0), (0, None, None)]


def entry(unit, scores, hits, ignored, objects):
    """What pycocotools holds of an image; `hits` and `ignored` a row for each IoU threshold."""
    return {
        "image_id": unit, "dtScores": np.array(scores), "dtMatches": np.array(hits, dtype=bool),
        "dtIgnore": np.array(ignored, dtype=bool), "gtIgnore": np.array(objects, dtype=bool),
    }  # fmt: skip


DRAWN = [
    entry(0, [0.9, 0.7, 0.3], [[1, 0, 1], [1, 0, 0]], [[0, 0, 0], [0, 1, 0]], [0, 0, 0]),
    entry(2, [0.8, 0.6], [[0, 1], [0, 0]], [[0, 0], [0, 0]], [0, 1]),
    entry(3, [0.5], [[0]] * 2, [[1]] * 2, []),
]
WEIGHTS = np.array([[1, 1, 1, 1], [0, 1, 1, 0], [0, 2, 2, 0], [3, 0, 0, 1], [0, 3, 0, 1], [2, 0, 2, 0], [1, 0, 3, 0]])


@pytest.mark.parametrize("at_once", [1, 7, 10, 2_000_000])
@pytest.mark.parametrize(("rows", "most"), [([0], 3), ([1], 3), ([0, 1], 3), ([0], 1), ([0, 1], 2)])
def test_precision_and_recall_of_draws_are_as_defined(rows, most, at_once, monkeypatch):
    """Each image as often as it is drawn; an object to be ignored is none, nor is a detection."""
    monkeypatch.setattr(module, "DRAWN_ENTRIES", at_once)
    precisions, recalls = [], []
    for weights in WEIGHTS.tolist():
        objects = sum(weights[each["image_id"]] * int((~each["gtIgnore"]).sum()) for each in DRAWN)
        own = []
        for row in rows if objects else []:
            outcomes = [
                (-score, hit)
                for each in DRAWN
                for score, hit, ignored in zip(
                    each["dtScores"][:most], each["dtMatches"][row], each["dtIgnore"][row], strict=False
                )
                if not ignored
                for _ in range(weights[each["image_id"]])
            ]
            hits = [bool(hit) for _, hit in sorted(outcomes, key=lambda outcome: outcome[0])]
            own.append((by_definition(hits, objects), Fraction(sum(hits), objects)))
        precisions.append(float(sum(p for p, _ in own) / len(rows)) if objects else np.nan)
        recalls.append(float(sum(r for _, r in own) / len(rows)) if objects else np.nan)
    for precise, expected in ((True, precisions), (False, recalls)):
        found = drawn_class(DRAWN, rows, most, WEIGHTS, precise=precise)
        assert found == pytest.approx(np.array(expected), nan_ok=True, abs=1e-14)


def test_draws_without_any_detection():
    silent = [entry(0, [], [[]], [[]], [0, 0]), entry(1, [0.5], [[0]], [[1]], [1])]
    for entries in (silent, silent[:1]):
        for precise in (True, False):
            found = drawn_class(entries, [0], 5, np.array([[1, 1], [0, 2]]), precise=precise)
            assert np.array_equal(found, [0, np.nan], equal_nan=True)
    assert np.isnan(drawn_class([], [0], 5, np.array([[1, 1]]), precise=True)).all()


def told_of(truth, seen, sequences, seed=0):
    """What is said of class a; rows (frame, class) of objects, and with a score of detections."""
    columns = [
        {"frame": [row[0] for row in rows], "class": [row[1] for row in rows], "box_2d": [[0, 0, 9, 9]] * len(rows)}
        for rows in (truth, seen)
    ]
    columns[0]["distance_m"], columns[1]["score"] = [5] * len(truth), [row[2] for row in seen]
    data = from_arrays(["a", "b"], [f"{k}" for k in range(len(sequences))], *columns, sequences=sequences)
    rule, policy = CountingRule("class", ("a", "b"), Bins((0.0, 10.0)), "given"), CONVENTIONS["coco"]
    counts = count_job(data, policy, rule, "")[0]
    return with_average_precision(counts, data, match(data, policy), rule.classes, seed=seed).metadata[
        "average_precision"
    ]


TRUTH = [(0, 0), (1, 0), (3, 0), (4, 0), (4, 1)]
SEEN = [(0, 0, 0.9), (2, 0, 0.8), (3, 1, 0.75), (4, 0, 0.7)]
"""By falling score of class a: right, wrong, right; of four objects. Frames 1 and 3 have an object, 2 a detection."""


def test_frames_with_an_object_or_a_detection_alone_count():
    (own, _), all_right = told_of(TRUTH, SEEN, ["x"] * 5).classes, told_of(TRUTH[:1], SEEN[:1], ["x"])
    assert own.value == pytest.approx(float(by_definition([True, False, True], 4)), abs=1e-15)
    assert own.objects == 4
    assert all_right.classes[0].value == 1  # pycocotools alone says 0.9999999999999998
    own, _ = told_of(TRUTH, SEEN, ["x", "x", "y", "y", "y"]).classes
    assert own.sequences == pytest.approx([float(by_definition([True], 2)), float(by_definition([False, True], 2))])


MANY = (
    [(k, 0) for k in range(60) if k % 3],
    [(k, 0, (7 * k % 60 + 1) / 61) for k in range(60) if k % 4 != 1],
)
"""Enough frames with an object for draws to reach further than what no object has shown."""


@pytest.mark.parametrize(
    ("scene", "drives", "most", "units", "draws"),
    [
        ((TRUTH, SEEN), True, 1000, 35, 7),
        ((TRUTH, SEEN), True, 6, 35, 6),
        ((TRUTH, SEEN), True, 9, 4, 1),
        ((TRUTH, SEEN), False, 9, 36, 7),
        (MANY, False, 50, 10_000, 50),
    ],
)
def test_intervals_are_those_of_so_many_draws(scene, drives, most, units, draws, monkeypatch):
    """Drawn again from their seed, and averaged by definition."""
    monkeypatch.setattr(module, "MOST_DRAWS", most)
    monkeypatch.setattr(module, "DRAWN_UNITS", units)
    truth, seen = scene
    frames = max(frame for frame, _ in truth) + 1
    told = told_of(truth, seen, [f"{k}" if drives else "x" for k in range(frames)], seed=3)
    assert (told.unit, told.draws, told.seed) == ("drive" if drives else "frame", draws, 3)
    there, drawn = {frame for frame, kind in truth if kind == 0}, []
    ordered = sorted((row for row in seen if row[1] == 0), key=lambda row: -row[2])
    for weights in drawn_with_replacement(frames, draws, np.random.default_rng(3)).tolist():
        objects = sum(weights[frame] for frame in there)
        outcomes = [frame in there for frame, *_ in ordered for _ in range(weights[frame])]
        drawn.append(float(by_definition(outcomes, objects)) if objects else np.nan)
    (own, _) = told.classes
    ends = percentile_ends(np.array(drawn), 0.95)
    assert (own.lower, own.upper) == pytest.approx(reaching(ends, own.value, np.ones(len(there))), abs=1e-14)
    if scene is MANY:
        assert (own.lower, own.upper) == pytest.approx(ends, abs=1e-14)


def test_a_recall_is_reached_by_as_many_hits_as_pycocotools_asks_for():
    # It compares doubles: 7 of 20 do not reach its 0.35. Every second detection is a hit, so precision changes.
    least = np.linspace(0.0, 1.0, 101)
    for objects in range(1, 121):
        hit, none = np.arange(2 * objects)[None] % 2 == 0, np.zeros((1, 2 * objects))
        score = -np.arange(2.0 * objects)
        image = {"image_id": 0, "gtIgnore": np.zeros(objects), "dtScores": score, "dtMatches": hit, "dtIgnore": none}
        right = np.cumsum(hit[0])
        reaches = right / objects >= least[:, None]
        expected = np.where(reaches, right / np.arange(1, 2 * objects + 1), 0).max(axis=1).mean()
        drawn = drawn_class([image], [0], 2 * objects, np.array([[1], [3]]), precise=True)
        assert drawn == pytest.approx([expected] * 2, abs=1e-14), objects
