"""The perception channel against the published two-object numbers and a direct enumeration of eqs. (6) and (9)."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import InputError, LimitError, UsageError
from verifier.perception.confusion import EMPTY, ConfusionMatrices, exact_rates, rates, read_confusion
from verifier.systems.channel import (
    FALSE_POSITIVE_POLICIES,
    Channel,
    Located,
    Standing,
    make_channel,
    possible_observations,
)
from verifier.systems.observation import Questions

PED, OBS = frozenset({"ped"}), frozenset({"obs"})


def told(matrices, classes, asked, false_positives="as_counted"):
    """What can be told of objects of these classes; None is a place where there is no object."""
    objects = tuple("" for name in classes if name is not None)
    places = [None] * (len(classes) - len(objects))
    return possible_observations(matrices, Questions(frozenset(asked)), objects, places, false_positives)


def channel_of(matrices, classes, bins, asked, false_positives):
    """The observations, and the channel of objects of these classes in each row of bins."""
    known = tuple(sorted({name for name in classes if name is not None}))
    what = np.array([0 if name is None else known.index(name) + 1 for name in classes], dtype=np.int64)
    what = np.broadcast_to(what, bins.shape).copy()
    what[1:] = -1
    standing = Standing(known, ("",) * len(classes), what, bins)
    observations = told(matrices, classes, asked, false_positives)
    return observations, make_channel(matrices, standing, Questions(frozenset(asked)), observations, false_positives)


def observed(matrices, classes, bins, asked, false_positives="as_counted"):
    """Observation -> exact probability, for one combination of bins; where nothing stands, nothing is told."""
    observations, channel = channel_of(matrices, classes, np.array([bins, bins]), asked, false_positives)
    weights, nothing = channel.weights(exact_rates(matrices.counts))
    assert nothing.tolist() == [1, *[0] * (len(observations) - 1)]
    return dict(zip(observations, weights, strict=True))


@pytest.fixture(scope="module")
def by_class(root):
    return read_confusion(root / "examples/nuscenes_yolov3_class.json").matrices


@pytest.fixture(scope="module")
def by_set(root):
    return read_confusion(root / "examples/nuscenes_yolov3_proposition.json").matrices


def sees_ped(weights):
    return sum(weight for observation, weight in weights.items() if "ped" in observation)


def test_published_two_object_scenes_class_labelled(by_class):
    # d <= 10 m, truth (ped, obs): an obstacle is never taken for a pedestrian, so 31/158.
    assert sees_ped(observed(by_class, ("ped", "obs"), (0, 0), {"ped"})) == Fraction(31, 158)
    # Truth (ped, ped): both must be missed, 1 - (127/158)^2 = .3539.
    assert sees_ped(observed(by_class, ("ped", "ped"), (0, 0), {"ped"})) == 1 - Fraction(127, 158) ** 2


def test_published_two_object_scenes_proposition_labelled(by_set):
    # Truth {ped, obs}: (5 + 0)/22 = .2273; truth {ped}, which two pedestrians are too: 22/85 = .2588.
    assert sees_ped(observed(by_set, ("ped", "obs"), (0, 0), {"ped"})) == Fraction(5, 22)
    assert sees_ped(observed(by_set, ("ped", "ped"), (0, 0), {"ped"})) == Fraction(22, 85)


def test_every_order_of_a_multiset_counts(by_class):
    # Observation {obs, empty} for truth (ped, obs): the obstacle seen, the pedestrian missed, in either position:
    # 0/158 * 734/925 + 127/158 * 191/925. The single listed order alone would give 0.
    weights = observed(by_class, ("ped", "obs"), (0, 0), {"ped", "obs"})
    assert weights[OBS] == Fraction(127 * 191, 158 * 925) == Fraction(24257, 146150)


def test_objects_in_different_bins_are_independent(by_set):
    # Remark 2: pedestrian in the first bin (22/85), obstacle in the second: true {obs} in [10, 20) m gives
    # ped 2, obs 714, both 0, none 662 of 1378.
    weights = observed(by_set, ("ped", "obs"), (0, 1), {"ped", "obs"})
    assert weights[PED | OBS] == Fraction(22, 85) * Fraction(714, 1378)
    assert weights[EMPTY] == Fraction(63, 85) * Fraction(662, 1378)
    assert weights[PED] == Fraction(22, 85) * Fraction(662 + 2, 1378) + Fraction(63, 85) * Fraction(2, 1378)


def test_nobody_there_draws_from_the_empty_column():
    counts = np.array([[[5, 0, 1], [0, 5, 2], [5, 5, 7]]], dtype=np.int64)
    matrices = ConfusionMatrices("class", (PED, OBS, EMPTY), np.array([0.0, 10.0]), counts)
    assert observed(matrices, (None,), (0,), {"ped", "obs"}) == {
        EMPTY: Fraction(7, 10),
        OBS: Fraction(2, 10),
        PED: Fraction(1, 10),
    }
    assert observed(matrices, (None,), (0,), {"ped", "obs"}, "ignore") == {EMPTY: 1}
    assert observed(matrices, ("ped",), (0,), {"ped"}, "ignore") == {EMPTY: Fraction(1, 2), PED: Fraction(1, 2)}
    # Beside a pedestrian the empty column draws once more: seen by one of the two draws.
    assert sees_ped(observed(matrices, ("ped",), (0,), {"ped"}, "background")) == 1 - Fraction(1, 2) * Fraction(9, 10)
    # An empty place in a bin with an object says nothing of its own.
    assert sees_ped(observed(matrices, ("ped", None), (0, 0), {"ped"})) == Fraction(1, 2)


def test_unknown_true_labels_and_policies_are_named(by_class, by_set):
    with pytest.raises(InputError, match="no column for true label dog"):
        observed(by_class, ("dog",), (0,), {"ped"})
    with pytest.raises(UsageError, match="unknown false-positive policy 'drop'"):
        observed(by_set, ("ped",), (0,), {"ped"}, "drop")


def test_too_many_observations_are_refused_before_they_are_made(monkeypatch):
    classes = [f"c{k}" for k in range(30)]
    labels = (*(frozenset({name}) for name in classes), EMPTY)
    matrices = ConfusionMatrices("class", labels, np.array([0.0, 1.0]), np.ones((1, 31, 31), dtype=np.int64))
    with pytest.raises(LimitError, match="more than 1000 observations"):
        told(matrices, tuple(classes), classes)
    monkeypatch.setattr("verifier.systems.observation.LARGEST_OBSERVATION_COUNT", 4)
    assert len(told(matrices, tuple(classes), classes[:2])) == 4
    monkeypatch.setattr("verifier.systems.observation.LARGEST_OBSERVATION_COUNT", 3)
    with pytest.raises(LimitError, match="about 2 classes and could receive more than 3 observations"):
        told(matrices, tuple(classes), classes[:2])


NAMES = ("ped", "obs", "bike")


@st.composite
def scenes(draw):
    labelling = draw(st.sampled_from(["class", "proposition"]))
    if labelling == "class":
        labels = (*(frozenset({name}) for name in NAMES), EMPTY)
    else:
        labels = tuple(frozenset(part) for size in range(4) for part in itertools.combinations(NAMES, size))
    size, bins = len(labels), 3
    cells = st.lists(st.integers(0, 4), min_size=bins * size * size, max_size=bins * size * size)
    counts = np.array(draw(cells), dtype=np.int64).reshape(bins, size, size)
    counts[:, labels.index(EMPTY), :] += 1
    matrices = ConfusionMatrices(labelling, labels, np.array([0.0, 1.0, 2.0, 3.0]), counts)
    classes = tuple(draw(st.lists(st.sampled_from([*NAMES, None]), min_size=1, max_size=4)))
    places = tuple(draw(st.lists(st.integers(0, bins - 1), min_size=len(classes), max_size=len(classes))))
    asked = frozenset(draw(st.lists(st.sampled_from(NAMES), max_size=3)))
    return matrices, classes, places, asked, draw(st.sampled_from(sorted(FALSE_POSITIVE_POLICIES)))


def draws_by_definition(matrices, classes, places, false_positives):
    """(bin, true label) of every independent draw, straight from the words of the module."""
    draws = []
    for index in sorted(set(places)):
        present = [name for name, place in zip(classes, places, strict=True) if place == index and name is not None]
        if matrices.labelling == "class":
            draws += [(index, frozenset({name})) for name in present]
        elif present:
            draws.append((index, frozenset(present)))
        if (not present and false_positives != "ignore") or (present and false_positives == "background"):
            draws.append((index, EMPTY))
    return draws


@given(scenes())
def test_weights_are_the_sum_over_all_ordered_tuples(scene):
    matrices, classes, places, asked, false_positives = scene
    expected = {}
    draws = draws_by_definition(matrices, classes, places, false_positives)
    table = matrices.counts.tolist()
    for tuple_of_labels in itertools.product(range(len(matrices.labels)), repeat=len(draws)):
        probability, union = Fraction(1), frozenset()
        for predicted, (index, true) in zip(tuple_of_labels, draws, strict=True):
            column = [row[matrices.labels.index(true)] for row in table[index]]
            probability *= Fraction(column[predicted], sum(column))
            union |= matrices.labels[predicted]
        expected[union & asked] = expected.get(union & asked, 0) + probability
    found = observed(matrices, classes, places, asked, false_positives)
    assert {key: value for key, value in found.items() if value} == {k: v for k, v in expected.items() if v}
    assert sum(found.values()) == 1


@given(scenes(), st.integers(1, 3))
def test_a_batch_of_matrices_gives_each_ones_own_weights(scene, copies):
    matrices, classes, places, asked, false_positives = scene
    bins = np.array([places, places[::-1]])
    observations, channel = channel_of(matrices, classes, bins, asked, false_positives)
    batch = np.stack([matrices.counts + k * np.eye(len(matrices.labels), dtype=np.int64) for k in range(copies)])
    together = channel.weights(rates(batch))
    assert together.shape == (copies, 2, len(observations))
    for k in range(copies):
        assert np.array_equal(together[k], channel.weights(rates(batch[k])))


def test_what_is_never_drawn_together_is_not_told_together():
    """The first draw is of one row and the others of another, and so nobody asks what both say."""
    columns = np.array([[1, -1, -1], [-1, 1, 1]])
    told = np.broadcast_to([[0, 1], [0, 2], [0, 2]], (2, 3, 2))
    then = np.array([[0, 1, 2], [1, 1, -1], [2, -1, 2]])
    channel = Channel((EMPTY, PED), (EMPTY, PED, OBS), np.zeros_like(columns), columns, told, then)
    found = channel.told_weights(np.array([[[1, 0.25], [0, 0.75]]]))
    assert found.tolist() == [[0.25, 0.75, 0], [0.0625, 0, 0.9375]]


def test_roundings_between_counts_and_weights_are_counted():
    # Of each of 2 draws a rate is a quotient and a factor: 2. Its parts are added up: at most 2 labels times 2
    # observations times the bins that it may be reported in, where there are several times a quotient and a factor.
    labels, bins = (frozenset(), PED), np.zeros((1, 2), dtype=np.int64)
    told = np.broadcast_to([0, 1], (1, 2, 2))
    plain = Channel(labels, labels, bins, bins + 1, told, np.array([[0, 1], [1, 1]]))
    one, two = (
        replace(
            plain, located=Located(np.broadcast_to(told, (count, 1, 2, 2)), np.ones((count, 1, 2), dtype=np.int64))
        )
        for count in (1, 2)
    )
    # The 2 observations are then added up behind each other; where the world draws, 2 more for its chance.
    assert plain.rounding_steps == one.rounding_steps == 2 * (2 + 4) + 2
    assert two.rounding_steps == 2 * (2 + 8 + 2) + 2
    drawn = plain.moved_by(np.array([[Fraction(1, 3), Fraction(2, 3)]], dtype=object))
    assert drawn.rounding_steps == 2 * (2 + 4) + 2 * 2 + 2
