"""The test of each distance bin: by hand, against the same data without other bins, its size, what chains use."""

import copy
import math
from dataclasses import replace
from fractions import Fraction

import jsonschema
import numpy as np
import pytest
from scipy.stats import binomtest, combine_pvalues, kstest

from verifier.analysis.channel_test import Untested, channel_test, class_tests, drawn_together
from verifier.base.documents import json_values, read_document
from verifier.base.errors import InputError
from verifier.checking.verdicts import ChannelTest
from verifier.evidence.documents import schema_of
from verifier.perception.confusion import dependence as module
from verifier.perception.confusion.bins import Bins, Variable
from verifier.perception.confusion.dependence import Outcomes, dependence
from verifier.perception.confusion.document_dependence import BinTest, Dependence, combined_dependence, fisher
from verifier.perception.confusion.document_reader import DocumentReader

SCHEMA = schema_of("verifier.confusion")


def simulated(rng, sticky=(), tracks=40, frames=24, bins=3, missed=0.4):
    """Tracks that come nearer bin by bin; in `sticky` bins an outcome is that of the frame before with chance .8."""
    place = np.repeat(np.arange(bins)[::-1], frames // bins)
    levels = (rng.random((tracks, frames)) >= missed).astype(int)
    for frame in range(1, frames):
        kept = (rng.random(tracks) < 0.8) & np.isin(place[frame], sticky) & (place[frame] == place[frame - 1])
        levels[kept, frame] = levels[kept, frame - 1]
    track, bin_ = np.repeat(np.arange(tracks), frames), np.tile(place, tracks)
    label = np.zeros_like(track)
    return Outcomes(track, np.tile(np.arange(frames), tracks), label, bin_, levels.ravel(), 1, bin_)


def only(outcomes, **settings):
    ((found,),) = dependence(outcomes, ["ped"], **settings)
    return found


def said(*found):
    return Dependence(seed=0, classes=found)


def test_two_bins_by_hand():
    # Seen, missed in bin 0; missed, missed, seen in bin 1, and a pair from 0 to 1. Bin 0 has one pair without a miss
    # before it. In bin 1 two misses lie among three frames: neighbours in 2 of 3 arrangements, and after a miss the
    # matrices say 2/3.
    columns = [np.array(each) for each in ([0] * 5, range(5), [0] * 5, [0, 0, 1, 1, 1], [1, 0, 0, 0, 1])]
    found = only(Outcomes(*columns, 1, columns[3]))
    near, far = found.bins
    assert near == bin_test(0, 1, 0, 0, None, 1.0)
    assert replace(far, p_value=1.0) == bin_test(1, 2, 2, 1, 2 / 3, 1.0)
    assert binomtest(round(far.p_value * 10_000) - 1, 9999, 2 / 3).pvalue > 1e-4
    assert (found.pairs, found.after_miss, found.joint_misses) == (4, 3, 2)  # the class has the pair across, too


def test_a_bin_is_tested_as_if_there_were_no_other():
    rng = np.random.default_rng(5)
    outcomes = simulated(rng, sticky=(1,), tracks=6)
    labels = np.repeat([0, 1, 1, 0, 1, 0], 24)
    outcomes = replace(outcomes, label=labels, stratum=outcomes.stratum * 2 + labels)
    outcomes = replace(outcomes, level=rng.integers(0, 2, 144) + outcomes.level, thresholds=2)
    family = dependence(outcomes, ["ped", "obs"])
    for at in range(3):
        kept = outcomes.bin == at
        columns = (getattr(outcomes, name)[kept] for name in ("track", "frame", "label", "stratum", "level"))
        for one, other in zip(family, dependence(Outcomes(*columns, 2), ["ped", "obs"]), strict=True):
            for found, alone in zip(one, other, strict=True):
                mine = found.bins[at]
                assert (mine.bin, mine.pairs, mine.after_miss) == (at, alone.pairs, alone.after_miss)
                assert (mine.joint_misses, mine.expected_miss_after_miss) == (
                    alone.joint_misses,
                    alone.expected_miss_after_miss,
                )
                assert mine.p_value == pytest.approx(alone.p_value, abs=0.03)
    without = dependence(replace(outcomes, bin=None), ["ped", "obs"])
    assert [[replace(each, bins=()) for each in listed] for listed in family] == list(map(list, without))


def test_without_memory_no_bin_and_no_two_bins_reject_more_often_than_they_say(monkeypatch):
    monkeypatch.setattr(module, "MOST_PERMUTATIONS", 199)
    rng = np.random.default_rng(8)
    p_values = []
    for seed in range(400):
        found = only(simulated(rng, tracks=10), seed=seed).bins
        p_values.append([*(each.p_value for each in found), fisher([each.p_value for each in found[:2]])])
    for column in np.array(p_values).T:
        assert kstest(column, "uniform", alternative="greater").pvalue > 1e-3
        assert 5 <= np.count_nonzero(column <= 0.05) <= 36  # 20 on average, standard deviation 4.4


@pytest.mark.slow
def test_the_size_holds_for_rare_misses_and_few_tracks(monkeypatch):
    monkeypatch.setattr(module, "MOST_PERMUTATIONS", 199)
    for missed, tracks in ((0.02, 10), (0.1, 3), (0.9, 10)):
        rng = np.random.default_rng(int(1000 * missed))
        runs = [only(simulated(rng, tracks=tracks, missed=missed), seed=k).bins for k in range(2000)]
        for at in range(3):
            rejected = sum(found[at].p_value <= 0.05 for found in runs)
            assert binomtest(rejected, 2000, 0.05, alternative="greater").pvalue > 1e-3


def test_misses_that_stick_far_away_do_not_concern_a_chain_near_by():
    found = only(simulated(np.random.default_rng(3), sticky=(2,)))
    assert found.p_value < 0.01
    known = said(found)
    (near,), (far,), (both,) = (class_tests(known, None, {"ped": bins}) for bins in ([0, 1], [2, 4], [1, 2]))
    assert (near.test, far.test, both.test) == ("not_contradicted", "contradicted", "contradicted")
    mine = found.bins[2]
    assert far.bins == (2, 4)
    assert (far.after_miss, far.joint_misses, far.p_value) == (mine.after_miss, mine.joint_misses, mine.p_value)
    assert far.miss_after_miss > 0.7 > 0.6 > far.expected_miss_after_miss
    chances = [found.bins[k].p_value for k in (0, 1)]
    assert near.p_value == pytest.approx(combine_pvalues(chances, method="fisher").pvalue, rel=1e-12)
    assert channel_test([near]) == ChannelTest("not_contradicted")
    assert channel_test([far]) == ChannelTest("contradicted", "ped", mine.p_value)


def test_the_test_of_the_class_counts_where_all_its_bins_are_drawn():
    # It alone has the pairs across the ends of bins.
    found = only(simulated(np.random.default_rng(4)))
    (whole,) = class_tests(said(found), None, {"ped": [0, 1, 2, 7]})
    assert (whole.p_value, whole.joint_misses) == (found.p_value, found.joint_misses)
    assert found.joint_misses > sum(each.joint_misses for each in found.bins)


def test_a_class_tested_far_away_only_is_untested_near_by():
    found = only(simulated(np.random.default_rng(4)))
    far = replace(found, bins=found.bins[2:])
    (near,) = class_tests(said(far), None, {"ped": [0, 1]})
    assert near == Untested(label="ped", bins=(0, 1))
    assert channel_test([near]) == ChannelTest("untested")
    crossed = replace(found, bins=(bin_test(0, 0, 0, 0, None, 1.0), *found.bins[1:]))
    assert class_tests(said(crossed), None, {"ped": [0]})[0].test == "untested"


def test_a_document_without_bins_has_the_test_of_the_class():
    old = replace(only(simulated(np.random.default_rng(3), sticky=(2,))), bins=())
    (near,) = class_tests(said(old), None, {"ped": [0]})
    assert (near.test, near.p_value) == ("contradicted", old.p_value)
    assert "bins" not in json_values(near)  # the test is not that of the bins


def test_what_chains_draw_together():
    assert drawn_together([{"ped": [2, 1]}, {}, {"obs": [0], "ped": [0, 1]}]) == {"obs": [0], "ped": [0, 1, 2]}
    assert drawn_together([]) == {}


def test_the_distance_bin_of_a_bin_with_further_variables():
    bins = Bins((0.0, 10.0, 20.0), (Variable("occluded", (0.0, 1.0, 2.0, 3.0)),))
    assert bins.distance_part(np.arange(6)).tolist() == [0, 0, 0, 1, 1, 1]
    assert Bins((0.0, 10.0, 20.0)).distance_part(np.arange(2)).tolist() == [0, 1]


# ------------------------------------------------------------------------------------------- documents and merging


def bin_test(number, pairs, after_miss, joint, expected, p_value):
    return BinTest(
        bin=number,
        pairs=pairs,
        after_miss=after_miss,
        joint_misses=joint,
        expected_miss_after_miss=expected,
        p_value=p_value,
    )


def class_test(bins=None):
    values = {
        "label": "ped", "objects": 12, "misses": 6, "pairs": 9, "after_miss": 5, "joint_misses": 3,
        "expected_joint_misses": 2.0, "miss_after_miss": 0.6, "expected_miss_after_miss": 0.5, "mean_run": 2.0,
        "expected_mean_run": 1.5, "p_value": 0.2, "permutations": 999,
    }  # fmt: skip
    return values if bins is None else {**values, "bins": bins}


def of(bins=None):
    return {"seed": 0, "classes": [class_test(bins)]}


def read(bins=None):
    return read_document(Dependence, of(json_values(bins)), "a.json")


NEAR, FAR = bin_test(0, 4, 2, 1, 0.5, 0.1), bin_test(1, 3, 1, 1, 0.25, 0.04)


def test_merged_bins_add_and_their_chances_come_by_fishers_method():
    crossed = bin_test(0, 0, 0, 0, None, 1.0)
    merged = combined_dependence([read([NEAR, FAR]), read([crossed, FAR]), read([bin_test(2, 1, 0, 0, None, 1.0)])])
    near, far, third = merged.classes[0].bins
    assert near == NEAR  # the file with no pair in it says nothing of it
    x = Fraction(4, 100) ** 2
    assert far.p_value == pytest.approx(float(x) * (1 - math.log(x)), rel=1e-12)
    assert replace(far, p_value=0.04) == bin_test(1, 6, 2, 2, 0.25, 0.04)
    assert third == bin_test(2, 1, 0, 0, None, 1.0)
    mixed = combined_dependence([read([NEAR]), read()])
    assert not mixed.classes[0].bins  # one file tests the class as a whole only
    assert mixed.classes[0].pairs == 18


def whole(bins, version=2):
    return {
        "schema": "verifier.confusion", "version": version, "labelling": "class", "axes": ["predicted", "true"],
        "labels": ["ped", "empty"], "dependence": of(json_values(bins)),
        "bins": [{"distance_m": [low, low + 10], "counts": [[3, 1], [3, 5]]} for low in (0, 10)],
    }  # fmt: skip


def test_bins_are_read_in_the_second_version_of_the_document_only():
    found = DocumentReader("a.json").counts(whole([NEAR, FAR]))
    assert found.metadata["dependence"] == read([NEAR, FAR])
    jsonschema.Draft202012Validator(SCHEMA).validate(whole([NEAR, FAR]))
    DocumentReader("a.json").counts(whole(None, version=1))
    with pytest.raises(InputError, match="/dependence: tests of bins, and combined ones, belong to version 2"):
        DocumentReader("a.json").counts(whole([NEAR, FAR], version=1))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(whole([NEAR, FAR], version=1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda bins: bins.clear(), "/bins: tuple should have at least 1 item after validation"),
        (lambda bins: bins[0].pop("pairs"), "/bins/0: 'pairs' is a required property"),
        (lambda bins: bins.reverse(), "/bins/1/bin: expected a bin after 1, got 0"),
        (lambda bins: bins[1].update(bin=2), "/bins/1/bin: expected the number of one of 2 bins, from 0, got 2"),
        (lambda bins: bins[0].update(bin=True), "/bins/0/bin: True is not of type 'integer'"),
        (lambda bins: bins[0].update(pairs=-1), "/bins/0/pairs: input should be greater than or equal to 0, got -1"),
        (
            lambda bins: bins[0].update(after_miss=5),
            "/bins/0/after_miss: expected at most 4, from the numbers beside it, got 5",
        ),
        (
            lambda bins: bins[0].update(joint_misses=3),
            "/bins/0/joint_misses: expected at most 2, from the numbers beside it, got 3",
        ),
        (
            lambda bins: bins[0].update(p_value=1.5),
            "/bins/0/p_value: input should be less than or equal to 1, got 1.5",
        ),
        (
            lambda bins: bins[0].update(after_miss=0, joint_misses=0),
            "/bins/0/expected_miss_after_miss: expected null, got 0.5",
        ),
        (lambda bins: bins[1].update(pairs=6), "/bins: expected pairs of at most 9 in all bins, as of the class"),
    ],
)
def test_faulty_tests_of_bins_are_refused(change, words):
    document = copy.deepcopy(whole([NEAR, FAR]))
    change(document["dependence"]["classes"][0]["bins"])
    with pytest.raises(InputError) as caught:
        DocumentReader("a.json").counts(document)
    assert f"/dependence/classes/0{words}" in str(caught.value)
