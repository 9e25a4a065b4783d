"""Each half of the drives predicts the other: against plain definitions, on tracks of a known law, on real ones."""

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kitti_tracks import DETECTORS, tracked_reports
from scipy.optimize import linprog
from scipy.stats import binomtest

from verifier.base.errors import UsageError
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.replay import Tracked, Tracker, count_law, tails
from verifier.perception.settings import ReplaySettings
from verifier.questions.half_predictions import whatever_the_dependence
from verifier.questions.validation import Validation, validate_record, validated
from verifier.telling.confusion import validation_table

ONE = Tracker(1, 1)


def look(found: Validation, model, frames, confirm="1/1"):
    (only,) = (each for each in found.looks if (each.model, each.frames, each.confirm) == (model, frames, confirm))
    return only


# --- Whatever the dependence: against the linear program over all joint laws.


@given(st.lists(st.integers(0, 20), min_size=1, max_size=6), st.integers(1, 3))
def test_the_ends_are_the_optima_over_all_joint_laws(rates, needed):
    """Over the laws of all 2^n strings of reports with the given rate in each frame."""
    rates = np.array(rates) / 20
    strings = np.array(list(product((0, 1), repeat=len(rates))))
    silent = ~Tracker(needed, needed).confirmed(strings > 0)[:, -1]
    equal, right = np.vstack([strings.T, np.ones(len(strings))]), np.append(rates, 1)
    ends = [linprog(sign * silent, A_eq=equal, b_eq=right).fun * sign for sign in (1, -1)]
    least, greatest = whatever_the_dependence(rates, needed)
    assert (least[-1], greatest[-1]) == pytest.approx(ends, abs=1e-9)


def test_the_ends_by_hand():
    # Three in a row of ten frames at .8: at most 3 * .2 fail, and all can succeed together.
    least, greatest = whatever_the_dependence(np.full(10, 0.8), 3)
    assert (least[1], greatest[1]) == (1, 1)  # of two frames never
    assert (least[-1], greatest[-1]) == pytest.approx((0, 0.6))


def test_the_law_of_a_number_of_events():
    chances = np.array([[0.1, 0.5, 0.7], [0.2, 0.0, 1.0]])
    expected = np.zeros(4)
    for outcomes in product((0, 1), repeat=3):
        for row in chances:
            expected[sum(outcomes)] += np.prod([c if o else 1 - c for c, o in zip(row, outcomes, strict=True)]) / 2
    assert count_law(chances) == pytest.approx(expected, abs=1e-15)
    above, below = tails(count_law(chances))
    assert above[2] == pytest.approx(expected[2:].sum())
    assert below[1] == pytest.approx(expected[:2].sum())


# --- By hand: two drives with a track each, of the reports rwwr and www.


def test_two_drives_by_hand():
    rows = Tracked(*(np.array(each) for each in (
        [0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1], [0, 1, 2, 3, 0, 1, 2], [0] * 7, [1, 0, 0, 1, 0, 0, 0],
    )))  # fmt: skip
    found = validated(rows, ["A", "B"], [0], 4, [ONE, Tracker(2, 2)], ["none", "any"], splits=3)
    # A is predicted by B's rate 0, B by A's rate 1/2.
    for frames, windows, silent, predicted in ((1, 2, 1, 1.5), (2, 2, 1, 1.25), (3, 2, 1, 1.125), (4, 1, 0, 1)):
        told = look(found, "none", frames)
        assert (told.windows, told.not_confirmed) == (windows, silent)
        assert told.predicted == pytest.approx(predicted / windows)
    assert look(found, "none", 4).resampled.p_value > 0.05
    passage = look(found, "none", None, "2/2")
    assert (passage.windows, passage.not_confirmed) == (2, 2)
    assert passage.predicted == pytest.approx((1 + 5 / 8) / 2)  # of www, wwr, .. with rate 1/2: 5 of 8 without rr
    assert look(found, "any", 1).predicted is None
    assert "passage" in validation_table(found)


# --- Tracks of a known law.

LAW = Contexts("run", 2)
RIGHT = np.array([0.6, 0.7, 0.9, 0.45, 0.2])  # start, right*1, right*2, wrong*1, wrong*2


def made_tracks(rng, drives, tracks=5, frames=12):
    """Reports along the tracks of some drives, by the law."""
    right = np.zeros((drives * tracks, frames), dtype=np.int64)
    state = np.zeros(len(right), dtype=np.int64)
    for frame in range(frames):
        right[:, frame] = rng.random(len(right)) < RIGHT[state]
        state = LAW.update[state, right[:, frame]]
    track = np.repeat(np.arange(len(right)), frames)
    return Tracked(
        track // tracks, track, np.tile(np.arange(frames), len(right)), np.zeros_like(track), right.ravel()
    )


def names_of(drives):
    return [f"{k:04}" for k in range(drives)]


def test_intervals_cover_and_wrong_models_are_caught():
    """Of 40 data sets: the true contexts, and bounds whatever the dependence, keep their level; none does not."""
    rng, sets, frames, level = np.random.default_rng(11), 40, (1, 3, 6, 9), 0.9
    models, outside, small, rejected = ("run:2", "any", "none"), {}, {}, {}
    for number in range(sets):
        found = validated(
            made_tracks(rng, 12), names_of(12), [0], 9, [ONE], models, 1, level=level, draws=40, seed=number
        )
        for model in models:
            for at in frames:
                told = look(found, model, at)
                outside[model, at] = outside.get((model, at), 0) + told.resampled.outside
                small[model, at] = small.get((model, at), 0) + (told.resampled.p_value < 0.1)
                rejected[model, at] = rejected.get((model, at), 0) + (told.counted.p_value < 0.01)
    for at in frames:
        for model in models[:2]:
            assert binomtest(outside[model, at], sets, 1 - level, "greater").pvalue > 0.001, (model, at)
            assert binomtest(small[model, at], sets, 0.1, "greater").pvalue > 0.001, (model, at)
    assert outside["none", 9] > sets / 2
    assert rejected["none", 9] > 0.8 * sets
    assert rejected["run:2", 9] < 0.1 * sets


def test_with_many_drives_the_p_value_is_that_of_the_known_law():
    rows = made_tracks(np.random.default_rng(3), 150)
    found = validated(rows, names_of(150), [0], 6, [ONE], ["run:2"], 1, draws=50)
    # None of n: .4 * .55 * .8^(n - 2).
    for frames in range(2, 7):
        told, chance = look(found, "run:2", frames), 0.4 * 0.55 * 0.8 ** (frames - 2)
        assert told.predicted == pytest.approx(chance, abs=0.03)
        law = count_law(np.full((1, told.windows), chance))
        known = np.flatnonzero(2 * np.minimum(*tails(law)) > 0.05)
        for own, wider in ((told.counted, 1.15), (told.resampled, 1.8)):
            width = (own.high - own.low) * told.windows
            assert (known[-1] - known[0]) / 1.15 <= width <= wider * (known[-1] - known[0])
            assert (own.outside, own.p_value > 0.05) == (0, True)


def test_auto_is_what_the_half_supports():
    rows = made_tracks(np.random.default_rng(5), 40)
    found = validated(rows, names_of(40), [0], 3, [ONE], ["auto", "run:2"], 2, draws=20)
    assert found.chosen == {"run:2": 4}
    for n in (1, 2, 3):
        assert look(found, "auto", n).counted == look(found, "run:2", n).counted


# --- Real tracks.


MODELS = ("none", "run:1", "run:5", "auto", "any")
TITLES = {"pointrcnn": "PointRCNN", "rrc": "RRC"}


def manual_rows(root, title):
    """{(M/N, frames or passage): the other cells} of a detector in the manual, and its {M/N: over all frames}."""
    lines = (root / "verifier/manual/pages/track-record.md").read_text().splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith(f"| {title} |")
    ]
    return {tuple(row[1:3]): row[3:] for row in rows if len(row) == 10}, {
        row[1]: row[2:] for row in rows if len(row) == 8
    }


@pytest.mark.parametrize("detector", DETECTORS)
def test_no_memory_is_contradicted_by_real_tracks(detector, shared, tmp_path):
    reports = tracked_reports(shared, tmp_path, detector, "ped")
    names = [f"{k:04}" for k in range(int(reports.sequence.max()) + 1)]
    found = validated(reports, names, [1], 10, [ONE], ["none", "run:5"], 1, draws=20)
    none, five = (look(found, model, 10) for model in ("none", "run:5"))
    assert (none.windows, none.not_confirmed) == (58, {"pointrcnn": 4, "rrc": 13}[detector])
    assert none.counted.outside == 1
    assert none.counted.p_value < 1e-9
    assert five.predicted > 100 * none.predicted


@pytest.mark.slow
@pytest.mark.parametrize("detector", DETECTORS)
def test_the_table_of_the_manual(detector, root, shared, tmp_path):
    reports = tracked_reports(shared, tmp_path, detector, "ped")
    names = [f"{k:04}" for k in range(int(reports.sequence.max()) + 1)]
    found = validated(reports, names, [1], 30, [ONE, Tracker(3, 3)], MODELS, 20)
    told, over_all = manual_rows(root, TITLES[detector])
    every = {("1/1", n): [] for n in range(1, 31)} | {("3/3", n): [] for n in range(3, 31)}
    assert set(told) == {(confirm, str(n)) for confirm, n in every} | {("1/1", "passage"), ("3/3", "passage")}
    for (confirm, frames), cells in told.items():
        looks = [look(found, model, None if frames == "passage" else int(frames), confirm) for model in MODELS]
        assert cells == table_row(looks)
    for confirm, cells in over_all.items():
        numbers = [n for of, n in every if of == confirm]
        assert cells == [str(len(numbers)), *(
            over([look(found, model, n, confirm).counted for n in numbers]) for model in MODELS
        )]  # fmt: skip


def over(looks):
    """In how many the p-value is below 0.01, and how often what was seen lies outside, of 20 halvings each."""
    share = sum(each.outside for each in looks) / len(looks) / 20
    return f"{sum(each.p_value < 0.01 for each in looks)}; {100 * share:.0f} %"


def table_row(looks):
    """Tracks, the share seen, and of each model the interval with the rates as counted, how often it misses, p."""
    row = [str(looks[0].windows), f"{looks[0].not_confirmed / looks[0].windows:.2f}"]
    for each in looks:
        own = each.counted
        cell = f"{own.low:.2f} to {own.high:.2f}; {own.outside}; {own.p_value:.2g}"
        row.append(f"**{cell}**" if own.p_value < 0.01 else cell)
    return row


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"splits": 0}, "--splits: expected a number from 1 to 1000, got 0"),
        ({"draws": 0}, "--draws: expected a number from 1 to 100000, got 0"),
        ({"confirm": "2/3", "memory": "any"}, "--memory any is known of M right reports in a row"),
        ({"memory": "every"}, "expected contexts"),
        ({"seed": -1}, "expected a seed"),
    ],
)
def test_halvings_that_cannot_be(change, message, tmp_path):
    asked = {"record": str(tmp_path / "r.csv"), "true_class": "ped", "range": "0..10", "frames": 2, "splits": 1}
    with pytest.raises(UsageError, match=re.escape(message)):
        validate_record(ReplaySettings(**{**asked, **change}))
