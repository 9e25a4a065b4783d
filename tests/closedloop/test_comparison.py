"""Tables of detectors and conditions, and decisions, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from verifier.base.errors import UsageError
from verifier.base.statistics import percentile_ends, reaching
from verifier.closedloop.closed_loop_curve import Draws, LogSums, draw_logs
from verifier.closedloop.comparison import NamedCurve, compare, winners
from verifier.closedloop.curves import TradeOffCurve, areas
from verifier.closedloop.trade_offs import Choice, Flip, flips_between_metrics, flips_under_mutation


def named(detector, condition, *points, metric="m", severity=""):
    """A curve through (safety, efficiency) at the sensitivities 1, 2, ..."""
    safety, efficiency = zip(*points, strict=True)
    return NamedCurve(
        metric, detector, condition, TradeOffCurve(range(1, len(points) + 1), safety, efficiency), severity
    )


# Detector a: area 3/4; fog halves its safety at the second level: worst case (1/2, 1), (1/2, 1/2): 1/2.
# Night: efficiency 1/2 at the first: worst (1/2, 1/2), (1, 1/2): 1/2. Both: (1/2, 1/2): 1/4.
# Detector b: one square of 0.6; fog leaves 0.3; night makes it better: 1, worst case 0.6.
CURVES = [
    named("a", "baseline", (0.5, 1), (1, 0.5)),
    named("a", "fog", (0.5, 1), (0.5, 0.5), severity="mild"),
    named("a", "night", (0.5, 0.5), (1, 0.5), severity="severe"),
    named("b", "baseline", (0.6, 1)),
    named("b", "fog", (0.3, 1), severity="mild"),
    named("b", "night", (1, 1), severity="severe"),
]


def cells(table):
    return {row.name: {each.detector: each for each in row.cells} for row in table.rows}


def test_a_table_by_hand():
    table = compare(CURVES)
    assert table.detectors == ("a", "b")
    assert table.conditions == ("baseline", "fog", "night")
    found = cells(table)
    assert list(found) == ["baseline", "fog", "night", "Any", "AnyMild"]
    areas = {name: [row[each].area for each in "ab"] for name, row in found.items()}
    assert areas == {
        "baseline": [0.75, 0.6],
        "fog": [0.5, 0.3],
        "night": [0.5, 0.6],
        "Any": [0.25, 0.3],
        "AnyMild": [0.5, 0.3],
    }
    assert found["fog"]["a"].robustness == pytest.approx(2 / 3)
    assert found["night"]["b"].robustness == 1  # a gain is not credited
    assert [found["night"][each].own_area for each in "ab"] == [0.5, 1]
    assert found["Any"]["a"].own_area is None
    assert [row.best for row in table.rows] == [("a",), ("a",), ("b",), ("b",), ("a",)]


def test_the_mean_over_mutations_lets_gains_offset_losses():
    means = {each.detector: each for each in compare(CURVES).means}
    # Own areas: a: fog 1/2, night 1/2; b: 0.3 and 1.
    assert (means["a"].area, means["a"].relative) == (0.5, pytest.approx(2 / 3))
    assert (means["b"].area, means["b"].relative) == (0.65, pytest.approx(0.65 / 0.6))


def test_groups_and_missing_curves():
    table = compare([*CURVES[:3], *CURVES[3:5]], {"dark": ["night"]})
    found = cells(table)
    assert list(found) == ["baseline", "fog", "night", "Any", "AnyMild", "dark"]
    assert list(found["night"]) == list(found["Any"]) == list(found["dark"]) == ["a"]
    assert table.rows[-1].conditions == ("baseline", "night")
    assert [each.detector for each in table.means] == ["a"]
    assert table.worst("a", table.rows[3]).safety.tolist() == [0.5, 0.5]


def test_without_severities_or_with_one_mutation_there_is_nothing_to_group():
    plain = [replace(each, severity="") for each in CURVES]
    assert [row.name for row in compare(plain).rows] == ["baseline", "fog", "night", "Any"]
    assert [row.name for row in compare(CURVES[:2]).rows] == ["baseline", "fog"]
    assert [row.name for row in compare(CURVES[:1]).rows] == ["baseline"]


def test_a_baseline_without_area_has_no_robustness():
    table = compare([named("a", "baseline", (0, 1)), named("a", "fog", (1, 1))])
    assert cells(table)["fog"]["a"].robustness is None
    assert table.means[0].relative is None


def test_flips_by_hand():
    table = compare(CURVES)
    flips = flips_under_mutation(table)
    assert [((each.from_.row, each.to.row), each.flips) for each in flips] == [
        (("baseline", "fog"), False),
        (("baseline", "night"), True),
        (("baseline", "Any"), True),
        (("baseline", "AnyMild"), False),
    ]
    assert all(each.probability is None for each in flips)
    # By another metric b is better throughout; with c there is a third detector, and no comparison.
    other = compare([replace(each, metric="n") for each in (*CURVES[3:], named("a", "baseline", (0, 0)))])
    assert flips_between_metrics([table, other]) == []  # detectors stand in another order
    other = compare([named("a", "baseline", (0.1, 1), metric="n"), replace(CURVES[3], metric="n")])
    (flip,) = flips_between_metrics([table, other])
    assert flip == Flip(Choice("m", "baseline", ("a",)), Choice("n", "baseline", ("b",)), True, None)
    assert flips_between_metrics([]) == []


def test_the_choice_is_among_the_detectors_of_both_rows():
    # Best of all is c, which was not driven in fog. Of a and b, a is best in both rows: no flip, though c is gone.
    curves = [named("a", "baseline", (0.5, 1)), named("b", "baseline", (0.4, 1)), named("c", "baseline", (0.9, 1)),
              named("a", "fog", (0.5, 1)), named("b", "fog", (0.3, 1)), named("b", "night", (0.3, 1))]  # fmt: skip
    table = compare(curves)
    assert [row.best for row in table.rows] == [("c",), ("a",), ("b",), ("b",)]
    (fog,) = flips_under_mutation(table)  # by night, and in any condition, b is alone: nothing to choose
    assert fog == Flip(Choice("m", "baseline", ("a",)), Choice("m", "fog", ("a",)), False, None)
    # The same in every draw: c wins at the baseline, and is left out.
    drawn = [with_logs(each, "baseline", safe) for each, safe in (("a", (1, 0)), ("b", (0, 0)), ("c", (1, 1)))]
    drawn += [with_logs("a", "fog", (1, 0)), with_logs("b", "fog", (0, 0))]
    assert flips_under_mutation(compare(drawn, draws=Draws(np.ones((3, 4)))))[0].probability == 0


def test_equal_areas_are_no_flip():
    tied = [named("a", "baseline", (0.5, 1)), named("b", "baseline", (0.1 + 0.2 + 0.2, 1)),
            named("a", "fog", (0.4, 1)), named("b", "fog", (0.3, 1))]  # fmt: skip
    table = compare(tied)
    assert table.rows[0].best == ("a", "b")
    assert not flips_under_mutation(table)[0].flips


def with_logs(detector, condition, safe):
    """A curve of one level from two positive logs, safe or not, and two negative ones driven at full efficiency."""
    positive = np.array([True, True, False, False])
    found = np.array([[safe[0]], [safe[1]], [0], [0]], dtype=float)
    ones = (~positive).astype(float)[:, None]
    sums = LogSums(np.array([1.0]), positive, found, positive.astype(float), ones, ones)
    return NamedCurve("m", detector, condition, sums.curve, sums=sums)


def test_a_bootstrap_by_hand():
    # Positive log 1 twice, log 2 twice, or each once (two draws): safety of a (safe in log 1 only) is 1, 0, .5, .5;
    # of b (log 2 only) 0, 1, .5, .5. Under fog a is never safe.
    weights = np.array([[2, 0, 1, 1], [0, 2, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]], dtype=float)
    curves = [
        with_logs("a", "baseline", (1, 0)),
        with_logs("b", "baseline", (0, 1)),
        with_logs("a", "fog", (0, 0)),
        with_logs("b", "fog", (0, 1)),
    ]
    table = compare(curves, draws=Draws(weights, 0.5))
    found = cells(table)
    assert found["baseline"]["a"].area == found["baseline"]["b"].area == 0.5
    # Quartiles of 0, 1/2, 1/2, 1 are .375 and .625; but a share of 1 - .25^(1/2) = 1/2 may be missing from two logs.
    assert found["baseline"]["a"].area_interval == (0, 1)
    assert found["fog"]["a"].area_interval == (0, 0.5)
    # Best of the baseline: a in the first draw, b in the second, both in the others: 1 + 0 + 1/2 + 1/2 of 4.
    assert found["baseline"]["a"].best_probability == found["baseline"]["b"].best_probability == 0.5
    # Under fog both have 0 in the first draw, b alone is best in the others.
    assert found["fog"]["a"].best_probability == 0.125
    assert found["fog"]["b"].best_probability == 0.875
    # Where b's baseline is 0 (first draw) its ratio is undefined; in the others it is 1. So is a's in the second.
    # With half of all logs unseen, in which b is safe at the baseline alone, it is 1/4 / (1/4 + 1/2).
    assert found["fog"]["b"].robustness_interval == pytest.approx((1 / 3, 1))
    assert found["baseline"]["b"].robustness_interval == (1, 1)
    # From baseline to fog: a, {a, b}: no flip; {b}, {b}; {a, b}, {b}: never.
    (flip,) = flips_under_mutation(table)
    assert flip.probability == 0
    # If b is the one that fails, draw 2 has b and then both with 0, which is no flip either.
    worse = compare([*curves[:2], with_logs("a", "fog", (1, 1)), with_logs("b", "fog", (0, 0))], draws=Draws(weights))
    assert winners(worse.drawn[1]).tolist() == [[True, True, True, True], [False, True, False, False]]
    assert flips_under_mutation(worse)[0].probability == 0


def test_the_error_of_a_time_step_is_in_the_interval_and_in_the_chance_of_being_best():
    """With the step a is best (2 of 4 logs against 1), without it b (3 against 1): every cell of a and b flips."""

    def driven(detector, stepped, exact):
        sums = [
            LogSums(
                np.array([1.0]),
                positive,
                np.array([[each] for each in (*safe, 0, 0)], float),
                positive.astype(float),
                (~positive).astype(float)[:, None],
                (~positive).astype(float)[:, None],
            )
            for safe in (stepped, exact)
        ]
        return NamedCurve("m", detector, "baseline", sums[0].curve, "", *sums)

    positive = np.array([True] * 4 + [False] * 2)
    curves = [driven("a", (1, 1, 0, 0), (1, 0, 0, 0)), driven("b", (0, 0, 1, 0), (0, 1, 1, 1))]
    once = Draws(np.ones((3, 6)), 0.5)  # every draw is the logs themselves
    (row,) = compare(curves, draws=once).rows
    a, b = row.cells
    assert (row.best, row.best_without_step, row.flipped) == (("a",), ("b",), {"a", "b"})
    assert (a.area, a.step_error, b.area, b.step_error) == (0.5, 0.25, 0.25, 0.5)
    assert (a.best_probability, b.best_probability) == (0.5, 0.5)  # half of the draws are without the step
    reach = 1 - 0.25 ** (1 / 2)  # of the two negative logs, which are fewer
    assert a.area_interval == pytest.approx((0.0, 0.5 + reach))
    assert b.area_interval == pytest.approx((0.0, 0.75))  # as far as the area without the step, .25 + reach
    # Without a step nothing of this is known, and nothing is claimed.
    (plain,) = compare([replace(each, limit=None) for each in curves], draws=once).rows
    assert (plain.best_without_step, plain.flipped, plain.cells[0].step_error) == (None, frozenset(), None)
    assert plain.cells[0].best_probability == 1


def test_logs_that_say_nothing_do_not_narrow_an_interval():
    """Of ten logs eight are safe by definition (the reference vehicle never stops): two speak, and both are safe."""
    positive = np.array([True] * 10 + [False] * 30)
    free = (~positive).astype(float)[:, None]
    sums = LogSums(
        np.array([1.0]), positive, positive.astype(float)[:, None], positive.astype(float), free, free, idle=8
    )
    curve = NamedCurve("m", "a", "baseline", sums.curve, sums=sums)
    weights = draw_logs(positive, 200, np.random.default_rng(0))
    cell = compare([curve], draws=Draws(weights)).rows[0].cells[0]
    assert cell.area == 1
    assert cell.area_interval == pytest.approx((0.025 ** (1 / 2), 1))
    # One log of a kind cannot be drawn from; its bound is exact, not missing.
    alone = compare([curve], draws=Draws(np.zeros((0, 40)))).rows[0].cells[0]
    assert alone.area_interval == pytest.approx((0.025 ** (1 / 2), 1))
    assert alone.best_probability is None


def test_the_probability_of_a_flip():
    # At the baseline a is best wherever log 1 is drawn; under fog b is, wherever log 2 is.
    weights = np.array([[2, 0, 1, 1], [0, 2, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]], dtype=float)
    curves = [
        with_logs("a", "baseline", (1, 1)),
        with_logs("b", "baseline", (0, 1)),
        with_logs("a", "fog", (0, 0)),
        with_logs("b", "fog", (0, 1)),
    ]
    table = compare(curves, draws=Draws(weights))
    # Draw 1: a; then both 0: no flip. Draw 2: both 1; then b: no flip. Draws 3, 4: a (1 against 1/2); then b: flip.
    assert flips_under_mutation(table)[0].probability == 0.5
    assert flips_under_mutation(table)[0].flips


def test_what_is_refused():
    with pytest.raises(UsageError, match="two curves for detector 'a' under condition 'fog'"):
        compare([*CURVES, CURVES[1]])
    with pytest.raises(UsageError, match="detector 'a' has no curve for the condition 'baseline'"):
        compare(CURVES[1:])
    with pytest.raises(UsageError, match="condition 'fog' is 'mild' and 'severe': a condition has one severity"):
        compare([*CURVES[:4], named("b", "fog", (0.3, 1), severity="severe")])
    with pytest.raises(UsageError, match=r"group 'dark': unknown condition 'nigth'\n  hint: did you mean 'night'"):
        compare(CURVES, {"dark": ["nigth"]})
    with pytest.raises(UsageError, match="a group cannot have the name of a condition, 'fog'"):
        compare(CURVES, {"fog": ["night"]})
    with pytest.raises(ValueError, match="the logs behind the curve of 'a' under 'baseline' are not known"):
        compare(CURVES, draws=Draws(np.ones((1, 4))))


def unequal_logs(rng, count, gap, detectors=2):
    """Positive logs of 4 or 40 people of which each is hard to see for all detectors alike, and negative ones; the
    first detector finds a share `gap` more."""
    positive = np.arange(2 * count) < count
    people = np.where(rng.random(count) < 0.3, 40, 4)
    hard = rng.beta(2, 2, count)
    wanted, images = np.where(positive, np.append(people, people), 0).astype(float), np.where(positive, 0, 30.0)
    found = []
    for number in range(detectors):
        rate = np.clip(hard + (gap if number == 0 else 0) + 0.15 * rng.normal(size=count), 0, 1)
        hits = np.zeros((2 * count, 1))
        hits[:count, 0] = rng.binomial(people, rate)
        none = np.zeros((2 * count, 1))
        found.append(LogSums(np.array([1.0]), positive, hits, wanted, none, images[:, None], 0.1))
    return found


def compared(sums, rng, draws=100):
    curves = [NamedCurve("m", f"d{k}", "baseline", each.curve, "", each) for k, each in enumerate(sums)]
    return compare(curves, draws=Draws(draw_logs(sums[0].positive, draws, rng))).rows[0].cells[0]


@pytest.mark.parametrize(("count", "gap"), [(4, 0.0), (8, 0.15), (20, 0.05)])
def test_the_chance_to_be_best_has_an_interval_that_holds_it(count, gap, thorough):
    """The truth: how often the first detector is best on so many other logs, by 2,000 of them. Covered in .95 of all
    data sets, but for two standard errors, though people of a log are alike and logs unequally large. Of two equal
    detectors on four logs one has a chance of .95 or more in a fifth of all data sets and more."""
    rng = np.random.default_rng(count)
    firsts = [[each.found.sum() / each.wanted.sum() for each in unequal_logs(rng, count, gap)] for _ in range(2000)]
    truth = np.mean([(first > second) + (first == second) / 2 for first, second in firsts])
    worlds = 150 if thorough else 60
    cells = [compared(unequal_logs(rng, count, gap), rng) for _ in range(worlds)]
    inside = [each.best_interval[0] <= truth <= each.best_interval[1] for each in cells]
    assert np.mean(inside) >= 0.95 - 2 * np.sqrt(0.05 * 0.95 / worlds)
    if not gap:
        sure = [max(each.best_probability, 1 - each.best_probability) >= 0.95 for each in cells]
        assert np.mean(sure) > 0.2
        assert all(each.best_interval[0] < 0.5 < each.best_interval[1] for each in cells)


def test_areas_reach_by_the_weights_of_logs_and_not_by_their_number():
    """Of five logs two have 100 times as many people as the others, and three are seen well: what no log shows may be
    as large as the largest. 150 data sets of ten logs; by their number alone a tenth of them miss the truth."""
    rng, covered, alike = np.random.default_rng(6), [], []
    positive = np.arange(20) < 10
    for _ in range(150):
        people = np.where(rng.random(10) < 0.4, 100.0, 1.0)
        found, none = np.zeros((20, 1)), np.zeros((20, 1))
        found[:10, 0] = people * (rng.random(10) < 0.6)
        wanted = np.append(people, np.zeros(10))
        sums = LogSums(np.array([1.0]), positive, found, wanted, none, np.where(positive, 0, 30.0)[:, None], 0.1)
        cell = compared([sums, sums], rng, 400)
        low, high = cell.area_interval
        covered.append(low <= 0.6 <= high)
        drawn = areas(*sums.drawn(draw_logs(positive, 400, rng)))
        low, high = reaching(percentile_ends(drawn, 0.95), cell.area, 10)
        alike.append(low <= 0.6 <= high)
    assert np.mean(covered) >= 0.95 - 2 * np.sqrt(0.05 * 0.95 / 150)
    assert np.mean(alike) < 0.93 < np.mean(covered)
