"""The closed loop beside the map: solved by hand, against exact sums, and against a simulation without any cells."""

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_approach import Drive, comes_closer, reporter, stops_too_late
from small_chains import check_formulas

from verifier.base.errors import InputError, LimitError, UsageError
from verifier.collision.approach import DriveSettings, approach, approach_chain
from verifier.collision.bridge import STAYS_AWAY, LoopSettings, closed_loop
from verifier.collision.distance_channel import ChannelSettings, distance_channel
from verifier.collision.estimator import BrakingPolicy
from verifier.collision.pairs import Pairs
from verifier.collision.pairs_reader import ReadPairs

WIDE = ChannelSettings(bin_m=1000.0)
# Cells of a T^2 / 2 = 1 m, speeds of 1 m/s; S(v) = v^2 / 4 without a reaction time.
METRES = DriveSettings(BrakingPolicy(2.0, 0.0), period_s=1.0)


def read(pairs, missed_m=()):
    """Pairs of (true, predicted), each in an image of its own."""
    true_m, predicted_m = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    count = len(pairs) + len(missed_m)
    made = Pairs(true_m, predicted_m, np.arange(len(pairs)), count)
    return ReadPairs(made, np.array(missed_m, dtype=float), np.arange(len(pairs), count), {}, count)


def point(storm, found, first_report_m, speed_mps, drive=METRES, channel=WIDE, width_m=0.1):
    settings = LoopSettings(first_report_m, (speed_mps,), drive, channel)
    (only,) = closed_loop(found, width_m, settings, storm).points
    return only


# Errors 0, 0 and +10 m, each as likely; a car 5 m away whose first report is right. 2 m/s needs S = 1 m; it brakes at
# reports up to 1 + 2 * 1 (the way between two reports) = 3 m.
THREE = read([(5, 5), (5, 5), (5, 15)])


def test_two_reports_can_still_stop_the_car(storm):
    # 5 m: keeps. 3 m: brakes on an error of 0, with 2/3. 1 m: once more, with 2/3, and rests at 0. So 1/3 * 1/3.
    found = point(storm, THREE, 5, 2.0)
    assert (found.one_shot, found.brakes_at_first_report, found.stopping_m) == (0, False, 1)
    assert found.closer == pytest.approx(1 / 9, abs=1e-15)
    assert found.lower <= 1 / 9 <= found.upper
    assert found.upper - found.lower < 1e-14
    # The car of the third pair starts as the others do.
    assert point(storm, THREE, 15, 2.0).closer == pytest.approx(1 / 9, abs=1e-15)


def test_missed_objects_are_reports_that_do_not_come(storm):
    # One of four items is no report: brakes with 2/4 at 3 m and at 1 m, 1/4 closer.
    found = point(storm, read([(5, 5), (5, 5), (5, 15)], missed_m=[7]), 5, 2.0)
    assert found.closer == pytest.approx(1 / 4, abs=1e-15)


def test_a_reaction_time_delays_every_command(storm):
    # One period of 1 s: S = 1 + 2 = 3 m, brakes at up to 5 m. From 6 m: keeps; at 4 m it brakes with 2/3, drives on
    # to 2 m and rests at 1 m. Else at 2 m, with 2/3: it drives on to 0 and cannot rest there. Closer: 1/3.
    six = read([(6, 6), (6, 6), (6, 16)])
    drive = replace(METRES, policy=BrakingPolicy(2.0, 1.0))
    assert drive.delay == 1
    assert point(storm, six, 6, 2.0, drive).closer == pytest.approx(1 / 3, abs=1e-15)
    # From 5 m the first report is in time, and the command stands: it rests at 2 m.
    assert point(storm, THREE, 5, 2.0, drive).closer == 0
    # Two periods of 0.5 s are the same reaction time; cells of 1/4 m.
    two = replace(drive, period_s=0.5)
    assert (two.delay, two.cell_m) == (2, 0.25)
    # 2 m/s brakes at up to 3 + 2 * 0.5 = 4 m. From 6 m: keeps; at 5 m keeps (5 and 15 are more than 4); at 4 m brakes
    # with 2/3, in time for S = 3; at 3 m again; after that it is too late. 1/9.
    assert point(storm, six, 6, 2.0, two).closer == pytest.approx(1 / 9, abs=1e-15)


def test_a_distance_that_must_be_kept(storm):
    # Rests at 2 m or 0 m (above): never closer than 1 m is missed on the way to 0, too: brakes at 3 m or not at all.
    near = replace(METRES, near_m=1.0)
    assert point(storm, THREE, 5, 2.0, near).closer == pytest.approx(1 / 3, abs=1e-15)
    assert point(storm, THREE, 5, 2.0, replace(METRES, near_m=5.5)).closer == 1
    assert point(storm, THREE, 5, 2.0, replace(METRES, near_m=5.5)).one_shot == 1


def test_a_standing_vehicle_stays_where_it_is(storm):
    found = point(storm, THREE, 5, 0.2)
    assert (found.speed_mps, found.closer, found.states) == (0, 0, 0)
    assert point(storm, THREE, 5, 0.0, replace(METRES, near_m=6.0)).closer == 1


def stays(storm, chain, exact):
    """The chain stays away with these probabilities, fractions: within the bounds, which are narrow."""
    (values,) = check_formulas(chain, [STAYS_AWAY], storm)
    for lower, probability, upper in zip(values.lower.tolist(), exact, values.upper.tolist(), strict=True):
        assert Fraction(lower) <= probability <= Fraction(upper)
        assert upper - lower < 1e-12


def test_exact_fractions(storm):
    table = distance_channel(THREE, 10.0, WIDE)
    runs = approach(table, 2.0, 9.0, METRES)
    chain = approach_chain(runs, np.array([1, 2, 3, 4, 5, 6, 7, 8, 9]))
    # From c m, with c - 1 whole steps of 2 m left; reports of 1, 2 and 3 m make it brake with 2/3, the others never.
    # 1: 2/3. 2: 2/3 (at 0 the next is too late). 3: 1 - 1/9. 4, 5, ...: as 4 - 2 = 2 or 5 - 2 = 3.
    third = Fraction(1, 3)
    stays(storm, chain, [1 - third ** (2 if c % 2 and c > 1 else 1) for c in range(1, 10)])


@pytest.mark.parametrize("reaction", [0.0, 0.1, 0.2])
def test_perfect_reports_never_come_closer(storm, reaction):
    drive = DriveSettings(BrakingPolicy(6.86, reaction), period_s=0.1)
    perfect = read([(d, d) for d in np.arange(0.5, 60, 0.25)])
    table = distance_channel(perfect, 59.0, ChannelSettings(5.0))
    for speed in (0.4, 3.0, 11.176, 20.0):
        runs = approach(table, speed, 55.0, drive)
        need = int(np.ceil(runs.trigger_m / drive.cell_m)) + 1
        starts = np.arange(need, len(runs.hits))
        (values,) = check_formulas(approach_chain(runs, starts), [STAYS_AWAY], storm)
        assert np.all(values.probability == 1)
        # ... and one that starts within S(v) always does.
        initial = drive.speed_mps(runs.units)
        least = int(np.floor(drive.policy.stopping_distance_m(initial) / drive.cell_m))
        starts = np.arange(0, least)
        if len(starts):
            (values,) = check_formulas(approach_chain(runs, starts), [STAYS_AWAY], storm)
            assert np.all(values.probability == 0)


pairs_near = st.lists(
    st.tuples(st.floats(0.1, 30), st.floats(-4, 8)).map(lambda p: (p[0], max(p[0] + p[1], 0.0))),
    min_size=1,
    max_size=25,
)


@given(pairs_near, st.lists(st.floats(0, 30), max_size=6), st.floats(1, 30), st.floats(0.5, 18), st.data())
def test_the_exact_sum_over_reports_is_what_storm_computes(storm, pairs, missed, first, speed, data):
    drive = DriveSettings(BrakingPolicy(4.0, data.draw(st.sampled_from([0.0, 0.2, 0.4]))), period_s=0.2)
    found = read(pairs, missed)
    table = distance_channel(found, 31.0, ChannelSettings(3.0, empty_bins="neighbour"))
    runs = approach(table, speed, 30.0, drive)
    starts = np.unique(data.draw(st.lists(st.integers(0, len(runs.hits) - 1), min_size=1, max_size=3)))
    units = runs.units
    limit_cells = Fraction(units * units, 4) + drive.delay * units
    trigger = runs.trigger_m

    def sure(cell):
        d = cell * drive.cell_m
        if cell < 0:
            return Fraction(0)
        index = table.source[int(d // 3.0)]
        errors = [p - t for t, p in pairs if t // 3.0 == index]
        lost = [t for t in missed if t // 3.0 == index]
        return Fraction(sum(e <= trigger - d for e in errors), len(errors) + len(lost))

    exact = [1 - stops_too_late(start, units, sure, limit_cells) for start in starts.tolist()]
    stays(storm, approach_chain(runs, starts), exact)


@given(pairs_near, st.lists(st.floats(0, 30), max_size=6), st.floats(1, 18), st.sampled_from([0.0, 2.0]))
def test_whoever_cannot_be_helped_comes_closer(storm, pairs, missed, speed, near):
    drive = DriveSettings(BrakingPolicy(4.0, 0.2), near_m=near)
    found = read(pairs, missed)
    channel = ChannelSettings(3.0, "neighbour")
    each = point(storm, found, pairs[0][1], speed, drive, channel, width_m=2.0)
    assert each.upper >= each.closer >= each.lower >= 0
    assert each.closer >= each.one_shot - 1e-12
    assert each.upper <= 1
    assert abs(each.closer - each.second_engine) < 1e-9


def made_up(seed=7, count=400):
    """A detector that reads 4 % too far, with 6 % spread, and misses one object in five."""
    rng = np.random.default_rng(seed)
    true_m = rng.uniform(0.3, 45, count)
    predicted_m = np.maximum(true_m * rng.normal(1.04, 0.06, count) + rng.normal(0, 0.3, count), 0)
    seen = rng.random(count) < 0.8
    image = np.arange(count)
    return ReadPairs(
        Pairs(true_m[seen], predicted_m[seen], image[seen], count), true_m[~seen], image[~seen], {}, count
    )


@pytest.mark.every(3)
@pytest.mark.parametrize(("margin", "reaction"), [(0.0, 0.0), (0.0, 0.2), (1.0, 0.0)])
def test_a_simulation_in_continuous_space_agrees(storm, margin, reaction):
    # 20 000 runs: the share has a standard deviation of at most 0.0036; 4 of them, and 0.01 for where runs start.
    found, first, width = made_up(), 25.0, 1.0
    policy = BrakingPolicy(5.0, reaction)
    drive = DriveSettings(policy, period_s=0.1, margin_m=margin)
    speed = drive.speed_mps(drive.speed_units(12.0))
    each = point(storm, found, first, speed, drive, ChannelSettings(3.0), width_m=width)
    assert 0.02 < each.closer < 0.98
    rng = random.Random(11)
    pairs = found.pairs
    draw = reporter(pairs.true_m.tolist(), pairs.predicted_m.tolist(), found.missed_m.tolist(), 3.0, rng)
    weight = np.exp(-0.5 * ((pairs.predicted_m - first) / width) ** 2) * (np.abs(pairs.predicted_m - first) <= 6)
    plain = Drive(5.0, reaction, 0.1, margin=margin)
    starts = rng.choices(pairs.true_m.tolist(), weight.tolist(), k=20_000)
    share = np.mean([comes_closer(start, speed, first, draw, plain) for start in starts])
    assert abs(share - each.closer) < 4 * 0.0036 + 0.01


def test_the_channel_by_hand():
    found = read([(1, 0.5), (1, 3), (2.5, 2), (4, 9)], missed_m=[3.9, 50])
    # Bins [0, 2): errors -0.5, +2. [2, 4): -0.5 and one missed. [4, 6): +5. At the middles 1, 3 and 5 m: 0.5, 3; 2.5;
    # 10. Reports up to 1 m and up to 3 m.
    table, middles = distance_channel(found, 5.0, ChannelSettings(2.0)), np.array([1.0, 3.0, 5.0])
    assert table.items.tolist() == [2, 2, 1]
    assert [table.at_most(middles, limit)[0].tolist() for limit in (1.0, 3.0)] == [[1, 0, 0], [2, 1, 0]]
    for limit, expected in ((1.0, [1, 0]), (3.0, [2, 1])):
        hits, items = table.at_most(np.array([0.0, 3.5]), limit)
        assert (hits.tolist(), items.tolist()) == (expected, [2, 2])


def test_empty_bins_are_refused_or_filled_as_named():
    found = read([(1, 1), (7, 9)], missed_m=[])
    with pytest.raises(InputError) as caught:
        distance_channel(found, 9.0, ChannelSettings(2.0))
    assert str(caught.value) == (
        "no object in the bins [2, 4) m, [4, 6) m, [8, 10) m of the true distance, which the vehicle drives through\n"
        "  hint: use wider bins (--bin), or name what to assume there (--empty-bins neighbour)"
    )
    near = distance_channel(found, 9.0, ChannelSettings(2.0, empty_bins="neighbour"))
    assert near.source.tolist() == [0, 0, 3, 3, 3]
    assert [each.tolist() for each in near.errors_m] == [[0], [0], [2], [2], [2]]
    # Equally far: the nearer to the ego. Bins 0 and 2 around 1.
    between = distance_channel(read([(1, 1), (5, 6)]), 5.0, ChannelSettings(2.0, empty_bins="neighbour"))
    assert between.source.tolist() == [0, 0, 2]


def test_cars_are_weighted_by_the_kernel(storm):
    # Reports 1 width and 2 widths away: weights exp(-1/2) and exp(-2). The second car is too near to stop.
    found = read([(20, 21), (0.5, 22)])
    each = point(storm, found, 20, 2.0, width_m=1.0)
    share = np.exp(-2) / (np.exp(-2) + np.exp(-0.5))
    assert each.one_shot == pytest.approx(share, rel=1e-14, abs=0)
    result = closed_loop(found, 1.0, LoopSettings(20, (2.0,), METRES, WIDE), storm)
    assert result.cars == 2
    assert result.effective_cars == pytest.approx(1 / (share**2 + (1 - share) ** 2), rel=1e-14, abs=0)
    assert (result.period_s, result.cell_m, result.borrowed_bins) == (1.0, 1.0, ())


def test_what_does_not_fit_is_refused(storm, monkeypatch):
    with pytest.raises(UsageError, match=r"a reaction time of 0.25 s is no whole number of periods of 0.1 s"):
        DriveSettings(BrakingPolicy(4.0, 0.25), period_s=0.1)
    assert DriveSettings(BrakingPolicy(4.0, 0.25)).delay == 3
    assert DriveSettings(BrakingPolicy(4.0, 0.3), period_s=0.1).delay == 3
    assert DriveSettings(BrakingPolicy(4.0, 0.0)).period == 0.1
    assert DriveSettings(BrakingPolicy(4.0, 2.0)).delay == 20
    for name, value in (("period_s", 0.0), ("near_m", -1.0), ("margin_m", np.nan)):
        with pytest.raises(UsageError, match=f"{name}: expected a number from"):
            DriveSettings(BrakingPolicy(4.0), **{name: value})
    with pytest.raises(UsageError, match="the width of the bins must be positive, got 0 m"):
        ChannelSettings(0.0)
    with pytest.raises(LimitError, match="bins of 1e-06 m up to 5 m are 5000001; at most 100000 are made"):
        distance_channel(THREE, 5.0, ChannelSettings(1e-6))
    with pytest.raises(UsageError, match=r"no pair is reported within 0.6 m of the first report at 40 m"):
        point(storm, THREE, 40, 2.0)
    with pytest.raises(UsageError, match="expected a first report from 0 m, got -1 m"):
        point(storm, THREE, -1, 2.0)
    with pytest.raises(UsageError, match="without spread in the reported distances there is no kernel"):
        point(storm, THREE, 5, 2.0, width_m=np.nan)
    with pytest.raises(LimitError, match=r"cells of 4.5e-18 m, and 2222222222 of them in a period"):
        approach(distance_channel(THREE, 9.0, WIDE), 10.0, 9.0, DriveSettings(BrakingPolicy(9.0, 0.0), period_s=1e-9))
    with monkeypatch.context() as small:
        small.setattr("verifier.collision.approach.MOST_STATES", 5)
        with pytest.raises(LimitError, match="6 states, cells of 1 m, and 36 of them in a period; at most 5"):
            point(storm, THREE, 5, 36.0)
    with pytest.raises(UsageError, match=r"a vehicle with 0.2 m/s stands still; its least speed is 1"):
        approach(distance_channel(THREE, 9.0, WIDE), 0.2, 9.0, METRES)
