"""The rule of counting: what does not fit together, its limits, its labels and what the document says of it."""

import math
import re

import numpy as np
import pytest

from verifier.base.errors import UsageError
from verifier.perception.confusion import EMPTY
from verifier.perception.confusion.bins import Bins, Variable
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.detections.classmap import classes_of_others, files_of_part, is_part, only_files

BINS = Bins((0.0, 10.0))
SPEED = Variable("speed", edges=(0.0, 1.0))
NINE = tuple("abcdefghi")


def rule(labelling="class", classes=("a", "b"), bins=BINS, **choices):
    return CountingRule(labelling, classes, bins, **choices)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"classes": ()}, "expected different class names, none of them 'empty', got ()"),
        ({"classes": ("a", "a")}, "expected different class names, none of them 'empty', got ('a', 'a')"),
        ({"classes": ("a", "empty")}, "expected different class names, none of them 'empty', got ('a', 'empty')"),
        ({"gap_m": 1.0}, "a gap in metres belongs to the labelling 'group', and to no other"),
        ({"labelling": "group"}, "the labelling 'group' needs a gap in metres: objects of a class this near act as"),
        ({"labelling": "group", "gap_m": -0.5}, "expected a gap from 0 to 10000 m, got -0.5"),
        ({"labelling": "group", "gap_m": 10001.0}, "expected a gap from 0 to 10000 m, got 10001"),
        ({"labelling": "group", "gap_m": math.inf}, "expected a gap from 0 to 10000 m, got inf"),
        ({"labelling": "proposition", "classes": NINE},
         "9 classes have 512 sets; propositions are counted for at most 8 classes: name some, or map several to one"),
        ({"labelling": "proposition", "bins": Bins((0.0, 10.0), (SPEED,))},
         "'speed' belongs to an object, and an item of a proposition-labelled matrix is a frame: use the labelling "
         "'class', or filter the objects"),
        *(({"thresholds": thresholds}, "expected increasing score thresholds")
          for thresholds in ((), (0.5, 0.5), (0.5, 0.6, 0.4), (0.5, math.inf), (math.nan,))),
    ],
)  # fmt: skip
def test_rules_that_do_not_fit_together(choices, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        rule(**choices)


def test_the_largest_rules():
    assert [rule("group", gap_m=gap).gap_m for gap in (0.0, 1e4)] == [0, 1e4]
    assert len(rule("proposition", NINE[:8]).labels) == 256
    assert rule("class", NINE, Bins((0.0, 10.0), (SPEED,))).labels == (*(frozenset({name}) for name in NINE), EMPTY)


def test_labels_are_sets_by_size_and_bits():
    sets = rule("proposition", ("a", "b", "c"))
    assert ["".join(sorted(label)) for label in sets.labels] == ["a", "b", "c", "ab", "ac", "bc", "abc", ""]
    assert sets.label_masks.tolist() == [1, 2, 4, 3, 5, 6, 7, 0]
    assert rule("group", gap_m=1.0).label_masks.tolist() == [1, 2, 0]


def test_at_how_many_thresholds_a_detection_takes_part():
    scores = np.array([-1, 0.2, 0.3, 0.5, 9])
    family = rule(thresholds=(0.2, 0.5))
    assert (family.levels(scores).tolist(), family.threshold_count) == ([0, 1, 1, 2, 2], 2)
    assert (rule().levels(scores).tolist(), rule().threshold_count) == ([1] * 5, 1)


@pytest.mark.parametrize(
    ("choices", "counted"),
    [({}, "dropped"), ({"unmatched": "own_bin"}, "counted"), ({"duplicates": "nearest_bin"}, "counted")],
)
def test_what_the_document_says_of_a_rule(choices, counted):
    said = rule(measure="forward", **choices).record({"affinity": "iou"})
    assert said == {
        "distance": {"unit": "m", "measure": "forward", "of": "true object"},
        "matching": {"affinity": "iou", "unmatched": "drop", "duplicates": "drop", **choices},
        "false_positives": counted,
    }
    assert rule("group", gap_m=2.0).record({})["grouping"] == {"gap_m": 2.0, "measure": "centres on the ground"}


def test_which_files_and_classes_a_part_has():
    assert (is_part(), files_of_part("annotations"), classes_of_others()) == (False, None, ())
    with only_files(["a.txt"], ["car"]):
        assert (is_part(), files_of_part("annotations"), classes_of_others()) == (True, ["a.txt"], ["car"])
        assert files_of_part("calibration") is None
        with only_files([]):
            assert (files_of_part("detections"), classes_of_others()) == ([], ())
        assert files_of_part("detections") == ["a.txt"]
    assert not is_part()
