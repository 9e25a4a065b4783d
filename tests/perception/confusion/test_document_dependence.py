"""The key `dependence`: numbers that cannot be together, and tests of several files as one, by hand."""

import math
from dataclasses import replace

import pytest

from verifier.base.documents import MisfitError, json_values
from verifier.base.errors import InputError
from verifier.perception.confusion.document_dependence import (
    COMBINED,
    IN_PARTS,
    BinTest,
    Dependence,
    DependenceTest,
    combined_dependence,
    fisher,
    is_later,
    read_dependence,
    together,
)
from verifier.perception.confusion.document_reader import DocumentReader

NEAR = {"bin": 0, "pairs": 4, "after_miss": 2, "joint_misses": 1, "expected_miss_after_miss": 0.5, "p_value": 0.5}
FAR = {**NEAR, "bin": 2, "pairs": 2, "after_miss": 0, "joint_misses": 0, "expected_miss_after_miss": None}
PED = {
    "label": "ped", "objects": 9, "misses": 4, "pairs": 6, "after_miss": 3, "joint_misses": 2,
    "expected_joint_misses": 1.5, "expected_miss_after_miss": 0.25, "p_value": 0.25, "permutations": 10,
}  # fmt: skip


def class_test(bins=(), **changes):
    return DependenceTest(**{**PED, **changes}, bins=tuple(BinTest(**entry) for entry in bins))


@pytest.mark.parametrize(
    ("make", "changes", "path", "words"),
    [
        (BinTest, {"after_miss": 5}, ["after_miss"], "expected at most 4, from the numbers beside it, got 5"),
        (BinTest, {"joint_misses": 3}, ["joint_misses"], "expected at most 2, from the numbers beside it, got 3"),
        (BinTest, {"expected_miss_after_miss": None}, ["expected_miss_after_miss"],
         "expected a share from 0 to 1, got None"),
        (BinTest, {"after_miss": 0, "joint_misses": 0}, ["expected_miss_after_miss"], "expected null, got 0.5"),
        (class_test, {"after_miss": 5}, ["after_miss"], "expected at most 4, from the numbers beside it, got 5"),
        (class_test, {"pairs": 2}, ["after_miss"], "expected at most 2, from the numbers beside it, got 3"),
        (class_test, {"misses": 3, "joint_misses": 3}, ["joint_misses"],
         "expected at most 2, from the numbers beside it, got 3"),
        (class_test, {"joint_misses": 4}, ["joint_misses"], "expected at most 3, from the numbers beside it, got 4"),
        (class_test, {"expected_joint_misses": 3.5}, ["expected_joint_misses"],
         "expected at most 3, from the numbers beside it, got 3.5"),
        *((class_test, {"misses": misses, "after_miss": 0, "joint_misses": 0, "expected_joint_misses": 0.5,
                        "expected_miss_after_miss": None}, ["expected_joint_misses"],
           "expected at most 0, from the numbers beside it, got 0.5") for misses in (0, 1)),
        (class_test, {"pairs": 10}, ["pairs"], "expected at most 9, from the numbers beside it, got 10"),
        (class_test, {"bins": [FAR, {**FAR, "bin": 3}, FAR]}, ["bins", 2, "bin"], "expected a bin after 3, got 2"),
        (class_test, {"bins": [NEAR, {**NEAR, "bin": 0}]}, ["bins", 1, "bin"], "expected a bin after 0, got 0"),
        (class_test, {"bins": [NEAR, {**FAR, "pairs": 3}]}, ["bins"],
         "expected pairs of at most 6 in all bins, as of the class, got 7"),
        (class_test, {"bins": [NEAR, {**NEAR, "bin": 1, "pairs": 2}]}, ["bins"],
         "expected after_miss of at most 3 in all bins, as of the class, got 4"),
    ],
)  # fmt: skip
def test_numbers_that_cannot_be_together(make, changes, path, words):
    with pytest.raises(MisfitError) as caught:
        make(**{**(NEAR if make is BinTest else {}), **changes})
    assert (list(caught.value.way), str(caught.value)) == (path, words)


def test_what_follows_from_the_numbers():
    test = class_test([NEAR, FAR])
    assert (test.miss_after_miss, test.mean_run, test.expected_mean_run) == (2 / 3, 4 / 2, 4 / 2.5)
    assert [entry.miss_after_miss for entry in test.bins] == [0.5, None]
    none = class_test(misses=0, after_miss=0, joint_misses=0, expected_joint_misses=0, expected_miss_after_miss=None)
    assert (none.miss_after_miss, none.mean_run, none.expected_mean_run) == (None, None, None)
    # At the limits: every miss but the first follows one, and every pair begins with one.
    most = class_test(misses=4, pairs=9, after_miss=4, joint_misses=3, expected_joint_misses=3)
    assert (most.mean_run, most.expected_mean_run) == (4, 4)


@pytest.mark.parametrize(
    ("p_values", "expected"),
    [
        ([0.3], 0.3),
        # -2 sum log p of two has the tail q (1 - log q), of three q (1 - log q + log(q)^2 / 2), q their product.
        ([0.5, 0.25], 0.125 * (1 + math.log(8))),
        ([0.5, 0.5, 0.25], 0.0625 * (1 + math.log(16) + math.log(16) ** 2 / 2)),
        ([1.0, 1.0], 1.0),
        ([0.5, 0.0], 0.0),
    ],
)
def test_fishers_method_by_hand(p_values, expected):
    assert fisher(p_values) == pytest.approx(expected, rel=1e-12)


def test_bins_of_several_files_as_one():
    one, other = BinTest(**NEAR), BinTest(**{**NEAR, "after_miss": 4, "joint_misses": 3, "p_value": 0.25,
                                             "expected_miss_after_miss": 0.25})  # fmt: skip
    empty = BinTest(**{**FAR, "pairs": 0, "p_value": 1.0})
    both = together([one, empty, other])
    # Of six misses that are followed, two by .5 and four by .25: 2/6; the bin without a pair says nothing.
    assert (both.bin, both.pairs, both.after_miss, both.joint_misses) == (0, 8, 6, 4)
    assert both.expected_miss_after_miss == pytest.approx(2 / 6)
    assert both.p_value == pytest.approx(0.125 * (1 + math.log(8)))
    assert together([empty, empty]) == empty
    assert together([empty, one]) == replace(one, bin=2)


def test_classes_of_several_files_as_one():
    obs = class_test(label="obs")
    first = Dependence(seed=1, classes=(class_test([NEAR, FAR]), obs))
    second = Dependence(seed=2, classes=(class_test([{**NEAR, "bin": 1}, FAR], p_value=0.5),))
    whole = combined_dependence([first, second])
    assert (whole.seed, whole.combined, [test.label for test in whole.classes]) == (None, COMBINED, ["ped", "obs"])
    ped, alone = whole.classes
    assert (ped.objects, ped.misses, ped.pairs, ped.after_miss, ped.joint_misses) == (18, 8, 12, 6, 4)
    assert (ped.expected_joint_misses, ped.expected_miss_after_miss, ped.permutations) == (3, 0.25, 20)
    assert ped.p_value == pytest.approx(0.125 * (1 + math.log(8)))
    assert [(entry.bin, entry.pairs) for entry in ped.bins] == [(0, 4), (1, 4), (2, 4)]
    assert alone == obs
    # Bins are added where all files test bins; one seed stays; of one file nothing is combined.
    third = Dependence(seed=1, classes=(class_test(),))
    mixed = combined_dependence([first, third], IN_PARTS)
    assert (mixed.seed, mixed.combined, mixed.classes[0].bins) == (1, IN_PARTS, ())
    assert combined_dependence([first]) is first
    family = combined_dependence([(first, third), (second, third)])
    assert family == (whole, combined_dependence([third, third]))
    assert [is_later(told) for told in (first, third, mixed, Dependence(seed=1, classes=()))] == [
        True,
        False,
        True,
        False,
    ]


FAIL = DocumentReader("a.json").fail
PEOPLE = json_values(class_test())
PLAIN = {"seed": 0, "classes": [PEOPLE]}
BINS = {"seed": 0, "classes": [PEOPLE, {**PEOPLE, "label": "obs", "bins": [NEAR, FAR]}]}
LATER = "tests of bins, and combined ones, belong to version 2 of the document"


@pytest.mark.parametrize(
    ("given", "members", "bins", "words"),
    [
        (PLAIN, 2, 3, "/dependence: expected a list of 2 tests, one per score threshold, got {"),
        ([PLAIN], 2, 3, "/dependence: expected a list of 2 tests, one per score threshold, got ["),
        ([PLAIN, BINS], 2, None, f"/dependence/1: {LATER}"),
        (BINS, None, None, f"/dependence: {LATER}"),
        ({**PLAIN, "combined": COMBINED}, None, None, f"/dependence: {LATER}"),
        (BINS, None, 2, "/dependence/classes/1/bins/1/bin: expected the number of one of 2 bins, from 0, got 2"),
        ({"seed": 0, "classes": [{**PEOPLE, "bins": [FAR]}]}, None, 2,
         "/dependence/classes/0/bins/0/bin: expected the number of one of 2 bins, from 0, got 2"),
        ({"seed": None, "classes": []}, None, 3, "/dependence/seed: expected an integer from 0, got null"),
        ({"seed": 0, "classes": [PEOPLE, {**PEOPLE, "label": "obs"}, PEOPLE]}, None, 3,
         "/dependence/classes/2/label: the class 'ped' has a test already"),
    ],
)  # fmt: skip
def test_what_is_no_test_is_refused(given, members, bins, words):
    with pytest.raises(InputError) as caught:
        read_dependence(given, members, "a.json", FAIL, bins)
    assert str(caught.value).startswith(f"a.json: {words}")


def test_tests_that_fit_are_read():
    assert read_dependence(PLAIN, None, "a.json", FAIL, None).classes == (class_test(),)
    assert read_dependence(BINS, None, "a.json", FAIL, 3).classes[1].bins[1].bin == 2
    assert len(read_dependence([PLAIN, BINS], 2, "a.json", FAIL, 3)) == 2
