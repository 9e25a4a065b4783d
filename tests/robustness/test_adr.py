"""Average detection rate: by hand, against one threshold and one object at a time, laws, intervals, refusals."""

import math
from dataclasses import replace

import numpy as np
import pytest
from adr_studies import adr_study
from hypothesis import given
from hypothesis import strategies as st
from lanes import lane_set

from verifier.base.errors import InputError, UsageError
from verifier.perception.matching import MatchingPolicy
from verifier.robustness.adr import LEVELS, AdrSettings, detection_rates, pick_thresholds
from verifier.robustness.detection_metrics import count_hits, judged
from verifier.robustness.draws import adr_intervals

# Ten images, four objects in lane 0 of images 0 to 3. Found with .9, .7, .4, and not at all.
# False positives: .8, .6, .5 (the .5 a second report of object 0, so a duplicate).
OBJECTS = [(0, 0), (1, 0), (2, 0), (3, 0)]
BASELINE = lane_set(10, OBJECTS, [(0, 0, 0.9), (1, 0, 0.7), (2, 0, 0.4), (5, 3, 0.8), (6, 3, 0.6), (0, 0, 0.5)])
HAND = AdrSettings(levels=(0.05, 0.1, 0.25, 0.5))


def test_thresholds_by_hand():
    # 0.05 x 10 images = 0 false positives allowed: exceed the surest, .8. 0.1: one, exceed .6. 0.25: two, exceed .5.
    # 0.5: five, and there are three: all detections pass.
    found = pick_thresholds(BASELINE, HAND)
    assert found.scores == (0.8, 0.6, 0.5, -math.inf)
    assert found.false_positives == (0, 1, 2, 3)
    assert found.images == 10
    assert found.unresolved == (0.05,)
    assert found.all_pass == (0.5,)


def test_thresholds_for_tools_that_keep_scores_at_least_so_great():
    thresholds = pick_thresholds(BASELINE, HAND)
    rates = detection_rates(BASELINE, thresholds, HAND)
    for lowest, found, false in zip(thresholds.at_least, rates.hits, rates.false_positives, strict=True):
        counted = count_hits(BASELINE, HAND.policy, lowest)
        assert (counted["TP"], counted["FP"]) == (found, false)


def test_adr_by_hand():
    # Of four objects: .9 above .8 -> 1; .9 and .7 above .6 -> 2; above .5 -> 2; all -> 3. Mean (1+2+2+3)/16 = 1/2.
    study = adr_study(BASELINE, {}, HAND)
    assert study.baseline.hits == (1, 2, 2, 3)
    assert study.baseline.rates == (0.25, 0.5, 0.5, 0.75)
    assert study.baseline.adr == 0.5
    assert study.baseline.false_positive_rates == (0, 0.1, 0.2, 0.3)
    assert study.baseline.normalised(study.baseline) == 1


def test_the_thresholds_are_kept_under_mutation():
    # All scores fall by .25: .65, .45, .15 and false .55, .35, .25. Above .8: none; above .6: 1; above .5: 1; all: 3.
    # ADR 5/16, normalised 5/8. New thresholds on the mutated data would have hidden the shift entirely.
    shifted = [(0, 0, 0.65), (1, 0, 0.45), (2, 0, 0.15), (5, 3, 0.55), (6, 3, 0.35), (0, 0, 0.25)]
    study = adr_study(BASELINE, {"dark": lane_set(10, OBJECTS, shifted)}, HAND)
    dark = study.conditions["dark"]
    assert dark.hits == (0, 1, 1, 3)
    assert dark.false_positives == (0, 0, 1, 3)
    assert dark.adr == 5 / 16
    assert dark.normalised(study.baseline) == 5 / 8
    assert dark.false_positive_rates == (0, 0, 0.1, 0.3)


def test_a_baseline_that_finds_nothing_at_some_level_is_compared_with():
    # The surest is false: nothing of four is found without false positives, one with one. Mutated none and two.
    base = lane_set(10, OBJECTS, [(0, 0, 0.9), (5, 3, 0.95)])
    study = adr_study(base, {"dark": lane_set(10, OBJECTS, [(0, 0, 0.9), (1, 0, 0.7)])}, AdrSettings((0.05, 0.1)))
    assert study.baseline.hits == (0, 1)
    assert study.conditions["dark"].normalised(study.baseline) == 2


def test_more_false_positives_under_mutation_change_no_threshold():
    noisy = lane_set(10, OBJECTS, [(0, 0, 0.9), (1, 0, 0.7), *((i, 5, 0.95) for i in range(10))])
    found = adr_study(BASELINE, {"noise": noisy}, HAND).conditions["noise"]
    assert found.hits == (1, 2, 2, 2)
    assert found.false_positive_rates == (1, 1, 1, 1)


def test_ties_count_against_the_detector():
    # An object and a false positive with the same score: whoever allows no false positive loses the object too.
    data = lane_set(2, [(0, 0)], [(0, 0, 0.5), (1, 1, 0.5)])
    assert pick_thresholds(data, AdrSettings((0.4, 0.5))).scores == (0.5, -math.inf)
    assert adr_study(data, {}, AdrSettings((0.4, 0.5))).baseline.hits == (0, 1)


def test_without_false_positives_everything_passes():
    data = lane_set(3, [(0, 0), (1, 0)], [(0, 0, -7.0), (1, 0, 1e9)])
    study = adr_study(data, {}, HAND)
    assert study.baseline.thresholds.scores == (-math.inf,) * 4
    assert study.baseline.adr == 1
    nothing = lane_set(3, [(0, 0), (1, 0)], [])
    assert adr_study(data, {"black": nothing}, HAND).conditions["black"].adr == 0


def test_the_levels_of_the_paper():
    assert len(LEVELS) == 9
    assert (LEVELS[0], LEVELS[4], LEVELS[-1]) == (0.001, 0.01, 0.1)
    assert np.diff(np.log10(LEVELS)) == pytest.approx(np.full(8, 0.25))
    assert AdrSettings().levels == LEVELS


def test_what_cannot_be_judged_counts_nowhere():
    nan = [math.nan] * 4
    box = np.array([[0, 0, 10, 10], nan], dtype=float)
    boxes = {"frame": [0, 0], "class": [0, 0], "box_2d": box}
    from verifier.perception.detections.arrays import from_arrays

    data = from_arrays(["person"], ["a"], boxes, {**boxes, "score": [0.5, 0.9]})
    found = judged(data, AdrSettings().policy)
    assert found.hit.tolist() == [0.5]
    assert found.false.tolist() == []


def test_regions_to_ignore_and_classes():
    policy = MatchingPolicy("iou_2d", 0.5, class_aware=True, ignore_overlap=0.5)
    data = lane_set(1, [(0, 0), (0, 1, 1)], [(0, 0, 0.9, 1), (0, 1, 0.8, 1), (0, 2, 0.7)], ("person", "car"))
    region = data.annotations.take(np.array([0]))
    region = replace(region, box_2d=np.array([[150.0, 0, 260, 30]]), label=np.array([-1]))
    found = judged(data.change(ignored=region), policy)
    # The person is reported as a car: not found, and a false positive; lane 2 lies in the region.
    assert found.hit.tolist() == [-math.inf, 0.8]
    assert found.false.tolist() == [0.9]


# Against one threshold and one object at a time


def plain_adr(images, objects, base_detections, detections, levels):
    """(ADR, thresholds) by trying every possible threshold, with lists."""

    def split(found):
        best = {}
        for frame, lane, score in found:
            if (frame, lane) in objects and score > best.get((frame, lane), -math.inf):
                best[frame, lane] = score
        false = sorted(score for _, _, score in found)
        for score in best.values():
            false.remove(score)
        return best, false

    _, base_false = split(base_detections)
    hits, _ = split(detections)
    thresholds = []
    for level in levels:
        allowed = [t for t in [-math.inf, *base_false] if sum(f > t for f in base_false) / images <= level]
        thresholds.append(min(allowed))
    rates = [sum(hits.get(each, -math.inf) > t for each in objects) / len(objects) for t in thresholds]
    return sum(rates) / len(rates), thresholds


FEW = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(-3, 6).map(float)), max_size=14)
PLACES = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=6)
SOME_LEVELS = st.sets(st.sampled_from([0.01, 0.1, 1 / 6, 1 / 3, 0.5, 0.9, 1.0, 2.0]), min_size=1).map(
    lambda levels: tuple(sorted(levels))
)


@given(PLACES, FEW, FEW, SOME_LEVELS)
def test_adr_is_that_of_the_definition(objects, base, mutated, levels):
    settings = AdrSettings(levels)
    study = adr_study(lane_set(6, sorted(objects), base), {"m": lane_set(6, sorted(objects), mutated)}, settings)
    for found, detections in ((study.baseline, base), (study.conditions["m"], mutated)):
        adr, thresholds = plain_adr(6, objects, base, detections, levels)
        assert found.thresholds.scores == tuple(thresholds)
        assert found.adr == pytest.approx(adr, abs=1e-12)


@given(PLACES, FEW, SOME_LEVELS)
def test_laws(objects, base, levels):
    settings = AdrSettings(levels)
    data = lane_set(6, sorted(objects), base)
    rates = adr_study(data, {}, settings).baseline
    # Looser levels find no less, and stay within what they allow.
    assert list(rates.hits) == sorted(rates.hits)
    assert all(rate <= level for rate, level in zip(rates.false_positive_rates, levels, strict=True))
    # Any increasing change of all scores, baseline included, changes nothing.
    other = lane_set(6, sorted(objects), [(frame, lane, math.exp(score)) for frame, lane, score in base])
    assert adr_study(other, {}, settings).baseline.hits == rates.hits


# How sure


def test_intervals_are_those_of_data_sets_drawn_frame_by_frame():
    rng = np.random.default_rng(5)
    frames = 12
    objects = [(i, lane) for i in range(frames) for lane in range(rng.integers(0, 3))]

    def report(chance):
        hits = [(*each, round(rng.uniform(), 2)) for each in objects if rng.uniform() < chance]
        return hits + [(int(rng.integers(frames)), 5 + k, round(rng.uniform(0, 0.8), 2)) for k in range(9)]

    base, mutated = report(0.9), report(0.6)
    settings = AdrSettings((0.1, 0.3, 0.5))
    sets = {"baseline": lane_set(frames, objects, base), "fog": lane_set(frames, objects, mutated)}
    draws = 60
    found = adr_intervals(
        sets["baseline"], {"fog": sets["fog"]}, np.random.default_rng(1), settings, draws=draws, confidence=0.8
    )
    weights = np.random.default_rng(1).multinomial(frames, np.full(frames, 1 / frames), size=draws)
    drawn = {"baseline": [], "fog": []}
    for weight in weights:
        copies = np.repeat(np.arange(frames), weight)
        repeated = [
            lane_set(
                frames,
                [(new, lane) for new, old in enumerate(copies) for frame, lane in objects if frame == old],
                [(new, lane, s) for new, old in enumerate(copies) for frame, lane, s in reports if frame == old],
            )
            for reports in (base, mutated)
        ]
        thresholds = pick_thresholds(repeated[0], settings)
        for name, data in zip(drawn, repeated, strict=True):
            drawn[name].append(detection_rates(data, thresholds, settings).adr)
    ratio = np.array(drawn["fog"]) / np.array(drawn["baseline"])
    sizes = np.unique([frame for frame, _ in objects], return_counts=True)[1]
    share = 1 - 0.1 ** (1 / len(sizes))  # of frames with objects, may be missing, and have as many as the fullest
    unseen = share * sizes.max() / (share * sizes.max() + (1 - share) * sizes.mean())
    picked = pick_thresholds(sets["baseline"], settings)
    own = {name: detection_rates(data, picked, settings).adr for name, data in sets.items()}
    for name, values in (("baseline", np.array(drawn["baseline"])), ("fog", np.array(drawn["fog"]))):
        low, high = np.quantile(values, [0.1, 0.9])
        wanted = min(low, own[name] - unseen), max(high, own[name] + unseen)
        assert found[name].adr == pytest.approx((max(0, wanted[0]), min(1, wanted[1])), abs=1e-12)
    low, high = np.quantile(ratio, [0.1, 0.9])
    seen, (before, after) = 1 - unseen, own.values()
    low, high = min(low, seen * after / (seen * before + unseen)), max(high, (seen * after + unseen) / seen / before)
    assert found["fog"].normalised == pytest.approx((low, high), abs=1e-12)
    assert found["fog"].adr[0] < found["fog"].adr[1]
    assert found["baseline"].normalised == (1, 1)


def test_drives_are_drawn_whole():
    # Two drives of three images. In drive a every object is found, in drive b none: a draw gives 1, 1/2 or 0, and
    # normalised by the same drives always 1, or nothing where only b was drawn.
    objects = [(i, 0) for i in range(6)]
    data = lane_set(6, objects, [(i, 0, 0.5) for i in range(3)], sequences=["a"] * 3 + ["b"] * 3)
    (found,) = adr_intervals(data, {}, np.random.default_rng(0), draws=400, confidence=0.9, unit="sequence").values()
    assert found.adr == (0, 1)
    assert found.normalised == (1, 1)
    assert 60 < found.undefined < 140  # a quarter of 400
    frame_by_frame = adr_intervals(data, {}, np.random.default_rng(0), draws=400, confidence=0.9)["baseline"]
    assert 0 < frame_by_frame.adr[0] < frame_by_frame.adr[1] < 1


def test_a_seed_gives_the_same_interval_in_blocks_too(monkeypatch):
    objects = [(i, 0) for i in range(20)]
    data = lane_set(20, objects, [(i, 0, i / 20) for i in range(0, 20, 2)] + [(i, 1, 0.5) for i in range(8)])
    settings = AdrSettings((0.1, 0.2))
    whole = adr_intervals(data, {}, np.random.default_rng(3), settings, draws=50)
    monkeypatch.setattr("verifier.robustness.draws.BLOCK_ENTRIES", 7 * 20)
    assert adr_intervals(data, {}, np.random.default_rng(3), settings, draws=50) == whole


# What is refused


def test_settings_that_are_none():
    for levels in ((), (0.1, 0.1), (0.2, 0.1), (0.1, 0.3, 0.2), (0.0, 0.1), (0.1, math.inf), (math.nan,)):
        with pytest.raises(UsageError, match="increasing, positive levels"):
            AdrSettings(levels)
    for policy in (
        MatchingPolicy("iou_2d", 0.5, assignment="optimal"),
        MatchingPolicy("iou_2d", 0.5, order="affinity"),
        MatchingPolicy("iou_2d", 0.5, same_class_first=True),
    ):
        with pytest.raises(UsageError, match="the highest score chooses first"):
            AdrSettings(policy=policy)


def test_data_that_has_no_rate():
    empty = lane_set(0, [], [])
    with pytest.raises(InputError, match="no images"):
        pick_thresholds(empty)
    with pytest.raises(InputError, match="no annotated object"):
        adr_study(lane_set(2, [], [(0, 0, 0.5)]), {})
    blind = adr_study(lane_set(2, [(0, 0)], []), {}).baseline
    assert blind.adr == 0
    with pytest.raises(InputError, match="finds nothing in the baseline") as caught:
        blind.normalised(blind)
    assert "allow more false positives" in str(caught.value)


def test_rates_at_other_thresholds_are_not_compared():
    one, two = (adr_study(BASELINE, {}, AdrSettings((level,))).baseline for level in (0.1, 0.2))
    with pytest.raises(ValueError, match="different thresholds"):
        one.normalised(two)


def test_intervals_that_are_none():
    rng = np.random.default_rng(0)
    with pytest.raises(UsageError, match="condition 'm' has other frames"):
        adr_intervals(BASELINE, {"m": lane_set(9, OBJECTS, [])}, rng)
    with pytest.raises(UsageError, match="at least 2 sequences, got 1"):
        adr_intervals(BASELINE, {}, rng, unit="sequence")
