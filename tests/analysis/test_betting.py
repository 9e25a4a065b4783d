"""Betting on drives: published values, and every property against plain fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from counted_work import calls_of
from hypothesis import assume, given
from hypothesis import strategies as st

from verifier.analysis import kernel
from verifier.analysis.intervals import drive_items as betting
from verifier.analysis.intervals.drive_items import UNIT, DriveItems, capital_reaches, ceiling, lower_ends

TAIL = Fraction(1, 40)

# Section 8 of the specification: X / N by drive, then [lower, upper] by drive and by item with B = 200, at 95 %.
PUBLISHED = [
    ("50/50 " * 20, (0.815593, 1.0), (0.525097, 1.0)),
    ("25/50 " + "50/50 " * 19, (0.788007, 0.999980), (0.510583, 0.999945)),
    ("45/50 " * 20, (0.734033, 0.918441), (0.472587, 0.947490)),
    ("9/10 40/40 3/5 0/2 18/20 100/140 7/7 55/60", (0.267847, 0.954433), (0.141000, 0.979854)),
    ("12/12 0/0 30/30 0/0 28/30 9/10 0/0 0/0 14/15 21/21", (0.488318, 0.996803), (0.085705, 0.998099)),
    ("90/100", (0.017444, 0.998062), (0.008807, 0.999021)),
    ("0/0 " * 5, (0.0, 1.0), (0.0, 1.0)),
]


def table_of(text):
    """(drives, 2) X and N."""
    return np.array([[int(number) for number in each.split("/")] for each in text.split()], dtype=np.int64)


def interval(hits, items, largest, tail=TAIL):
    found = lower_ends(
        np.stack([hits, items - hits], axis=1), np.stack([items, items], axis=1), np.full(2, largest), tail
    )
    return found[0] / UNIT, 1 - found[1] / UNIT


@pytest.mark.parametrize(("text", "by_drive", "by_item"), PUBLISHED)
def test_published_values(text, by_drive, by_item):
    hits, items = table_of(text).T
    assert interval(hits, items, 200) == pytest.approx(by_item, abs=1e-6)
    whole = math.lcm(*(int(each) for each in items if each)) if items.any() else 1
    share = hits * (whole // np.where(items > 0, items, 1))
    assert interval(share, np.where(items > 0, whole, 0), whole) == pytest.approx(by_drive, abs=1e-6)


@pytest.mark.parametrize(
    ("chances", "published"),
    [
        (1, [0.261, 0.445, 0.602, 0.666, 0.816, 0.873, 0.922, 0.960, 0.980, 0.992]),
        (10, [0.120, 0.278, 0.449, 0.526, 0.725, 0.807, 0.879, 0.938, 0.968, 0.987]),
    ],
)
def test_published_ceilings(chances, published):
    found = [ceiling(drives, TAIL / chances) for drives in (3, 5, 8, 10, 20, 30, 50, 100, 200, 500)]
    assert found == pytest.approx(published, abs=5.1e-4)


# ------------------------------------------------------------------------------- the definition, in plain fractions


def stakes():
    """(s_j, p_j) as the specification has them."""
    for j in range(1, 13):
        stake = Fraction(round(math.sin(j * math.pi / 24) ** 2, 6)).limit_denominator(10**6)
        yield stake, Fraction(13 if j == 12 else 1, 24)


def plain_capital(drives, largest, rate):
    total = Fraction(0)
    for stake, share in stakes():
        product = share
        for hits, items in drives:
            product *= 1 + stake * (Fraction(hits, largest) / rate - Fraction(items, largest))
        total += product
    return total


@st.composite
def drive_tables(draw, most_drives=8, most_items=12):
    sizes = draw(st.lists(st.integers(0, most_items), min_size=1, max_size=most_drives))
    drives = [(draw(st.integers(0, size)), size) for size in sizes]
    return drives, draw(st.integers(max(1, *sizes, 1), 2 * most_items))


RATES = st.integers(1, UNIT).map(lambda n: Fraction(n, UNIT))


@given(drive_tables(), st.integers(1, UNIT), st.fractions(Fraction(1, 10**4), 50))
def test_both_exact_decisions_are_those_of_the_definition(table, rate, goal):
    drives, largest = table
    expected = plain_capital(drives, largest, Fraction(rate, UNIT)) >= goal
    assert capital_reaches(drives, largest, rate, 1 / goal) == expected
    assert kernel.capital_is_at_least(drives, largest, rate, goal) == expected


def plain_lower_end(drives, largest, icc, shift, tail):
    """The greatest end in billionths that the definitions allow, found by halving."""
    hits, items = (sum(each) for each in zip(*drives, strict=True))
    misses = items - hits
    if icc is not None and items:  # as if there were so many fewer, each part rounded against the gambler
        spread = sum(own * (1 + (own - 1) * icc) for _, own in drives)
        hits, misses = math.floor(items * hits / spread), math.ceil(items * misses / spread)

    def allowed(end):
        rate, total = Fraction(end + shift, UNIT), hits + misses
        if rate > 1 or hits == 0:
            return False
        if largest is not None:
            return plain_capital(drives, largest, rate) >= 1 / tail
        chances = (math.comb(total, k) * rate**k * (1 - rate) ** (total - k) for k in range(hits, total + 1))
        return sum(chances) <= tail

    low, high = 0, UNIT + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


@given(
    drive_tables(most_drives=4),
    st.sampled_from(["drives", "items", Fraction(0), Fraction(1, 7), Fraction(1)]),
    st.sampled_from([0, 1, 10**6]),
    st.fractions(Fraction(1, 1000), Fraction(1, 3)),
)
def test_the_ends_that_the_kernel_accepts_are_those_of_the_definitions(table, kind, shift, tail):
    drives, most = table
    largest = most if kind == "drives" else None
    icc = kind if isinstance(kind, Fraction) else None
    rule = {"shift": shift, "icc": None if icc is None else str(icc)}
    end = plain_lower_end(drives, largest, icc, shift, tail)
    assert kernel.is_lower_end(end, drives, largest, rule, tail)
    assert not kernel.is_lower_end(end + 1, drives, largest, rule, tail)


def test_a_goal_that_is_met_exactly_is_met():
    drives, rate = [(3, 4), (1, 2)], 600_000_000
    goal = plain_capital(drives, 5, Fraction(rate, UNIT))
    for factor, met in ((1, True), (1 + Fraction(1, 10**30), False)):
        assert capital_reaches(drives, 5, rate, 1 / (goal * factor)) is met
        assert kernel.capital_is_at_least(drives, 5, rate, goal * factor) is met
    smallest = Fraction(1, 24 * (5 * 10**6 * rate) ** 2)  # what two drives of at most 5 items can add at least
    assert not kernel.capital_is_at_least(drives, 5, rate, goal + smallest)
    assert not capital_reaches(drives, 5, rate, 1 / (goal + smallest))
    assert [capital_reaches([], 5, rate, Fraction(*tail)) for tail in ((1, 1), (999, 1000))] == [True, False]


def test_solver_and_checker_mean_the_same_stakes():
    assert betting.STAKES == kernel.STAKES
    assert [(Fraction(s, 10**6), Fraction(p, 24)) for s, p in zip(kernel.STAKES, kernel.SHARES, strict=True)] == (
        list(stakes())
    )


def test_rough_ends_are_rounded_down(monkeypatch):
    hits, items = np.array([[7, 0], [9, 0]]), np.array([[9, 0], [10, 0]])
    monkeypatch.setattr(betting, "approximate_ends", lambda *arguments: np.array([123_456.5 / UNIT, 0]))
    assert lower_ends(hits, items, np.array([10, 0]), TAIL).tolist() == [123_456, 0]


def test_tables_of_drives_fit_together():
    table = np.zeros((2, 1, 2, 2), dtype=np.int64)
    one_less = table.copy()
    one_less[0, 0, 1, 1] = -1
    nothing = DriveItems(("a", "b"), "item", table)
    assert np.isnan([nothing.largest_share(np.array([[0, 1]])), nothing.effective(np.array([[0, 1]]))]).all()
    for names, wrong in ((("a", "b"), table[0]), (("a",), table), (("a", "b"), one_less), (("a",) * 2, table[:, 0])):
        with pytest.raises(ValueError, match="by bin, predicted and true label"):
            DriveItems(names, "item", wrong)


def test_numbers_out_of_range_are_refused():
    for hits, items in ((3, 2), (1, 9), (-1, 2)):
        with pytest.raises(kernel.Rejected, match="expected"):
            kernel.capital_is_at_least([(hits, items)], 5, 1, Fraction(1))
        with pytest.raises(ValueError, match="expected"):
            lower_ends(np.array([[1, hits]]), np.array([[2, items]]), np.array([5, 5]), TAIL)
    for drives, rate, goal in (
        ([(1, 1), (3, 2)], 1, 1),
        ([(3, 2), (1, 1)], 1, 1),
        ([(1, 1)], 0, 1),
        ([(1, 1)], 1, 0),
    ):
        with pytest.raises(kernel.Rejected, match="expected"):
            kernel.capital_is_at_least(drives, 5, rate, Fraction(goal))


# ------------------------------------------------------------------------------------------------------ properties


@given(drive_tables(), RATES, RATES)
def test_property_1_factors_are_not_negative_and_capital_falls(table, one, other):
    drives, largest = table
    low, high = sorted((one, other))
    assert plain_capital(drives, largest, low) >= plain_capital(drives, largest, high)
    for stake, _ in stakes():
        for hits, items in drives:
            factor = 1 + stake * (Fraction(hits, largest) / low - Fraction(items, largest))
            assert factor >= 1 - stake * Fraction(items, largest) >= 0


@given(drive_tables(), st.integers(3, 4000))
def test_the_end_found_is_the_last_that_the_definition_allows(table, odds):
    drives, largest = table
    hits, items = np.array(drives).T
    end = int(lower_ends(hits[:, None], items[:, None], np.array([largest]), Fraction(1, odds))[0])
    assert end == 0 or plain_capital(drives, largest, Fraction(end, UNIT)) >= odds
    beyond = Fraction(end + 5, UNIT)
    assert beyond >= 1 or plain_capital(drives, largest, beyond) < odds


OUTCOMES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda p: (min(p), max(p))), min_size=1, max_size=4
)


def pooled(laws):
    """sum E X / sum E N over drives whose (X, N) is uniform over the outcomes of their law."""
    hits = sum(Fraction(sum(h for h, _ in law), len(law)) for law in laws)
    items = sum(Fraction(sum(n for _, n in law), len(law)) for law in laws)
    return hits / items if items else Fraction(0)


def test_an_end_that_doubles_put_too_high_is_lowered_to_where_the_capital_reaches(monkeypatch):
    hits, items = np.array([[7], [9], [3]]), np.array([[9], [10], [4]])
    drives, largest = list(zip(hits[:, 0].tolist(), items[:, 0].tolist(), strict=True)), np.array([10])
    rough = betting.approximate_ends
    assert plain_capital(drives, 10, Fraction(rough(hits, items, largest, Fraction(1, 10)).item())) >= 10
    monkeypatch.setattr(betting, "approximate_ends", lambda *arguments: rough(*arguments) + 20 / UNIT)
    end = int(lower_ends(hits, items, largest, Fraction(1, 10))[0])
    assert end > 0
    assert [capital_reaches(drives, 10, each, Fraction(1, 10)) for each in (end, end + 1)] == [True, False]


@given(OUTCOMES, st.integers(1, 3))
def test_property_2_the_mean_capital_at_the_true_rate_is_1(law, drives):
    rate = pooled([law])
    assume(rate > 0)
    mean = sum(plain_capital(each, 4, rate) for each in itertools.product(law, repeat=drives))
    assert mean / len(law) ** drives == 1


@given(st.lists(OUTCOMES, min_size=1, max_size=3))
def test_property_4_drives_of_different_laws_give_no_more(laws):
    rate = pooled(laws)
    assume(rate > 0)
    outcomes = list(itertools.product(*laws))
    assert sum(plain_capital(each, 4, rate) for each in outcomes) / len(outcomes) <= 1


@given(OUTCOMES, st.integers(1, 3), st.integers(3, 60))
def test_properties_2_and_3_the_chance_of_an_end_above_the_rate_exactly(law, drives, odds):
    rate = pooled([law])
    assume(rate > 0)
    population = max(items for _, items in law)
    hits, items = np.array(list(itertools.product(law, repeat=drives))).transpose(2, 1, 0)
    seen = items.max(axis=0)
    declared, as_seen = (
        np.array([Fraction(end, UNIT) > rate for end in lower_ends(hits, items, largest, Fraction(1, odds)).tolist()])
        for largest in (np.full_like(seen, population), seen)
    )
    for above in (declared, as_seen & (seen >= population)):
        assert Fraction(int(above.sum()), len(seen)) <= Fraction(1, odds)


@given(OUTCOMES, drive_tables(most_drives=3, most_items=4))
def test_property_5_capital_is_a_martingale_over_drives(law, table):
    rate, (before, _) = pooled([law]), table
    assume(rate > 0)
    for stake, _ in stakes():

        def capital_of(drives, stake=stake):
            return math.prod(1 + stake * (Fraction(h, 4) / rate - Fraction(n, 4)) for h, n in drives)

        assert sum(capital_of([*before, each]) for each in law) / len(law) == capital_of(before)


@given(drive_tables())
def test_property_6_the_pooled_rate_lies_within(table):
    drives, largest = table
    hits, items = np.array(drives).T
    assume(items.sum() > 0)
    rate = Fraction(int(hits.sum()), int(items.sum()))
    if rate > 0:
        assert plain_capital(drives, largest, rate) <= 1
    low, high = interval(hits, items, largest)
    assert low <= rate <= high


@given(drive_tables(), st.integers(1, 5))
def test_property_7_drives_without_items_change_nothing(table, empty):
    drives, largest = table
    hits, items = np.array(drives).T
    more = np.zeros(empty, dtype=np.int64)
    among = interval(np.append(more, hits), np.append(more, items), largest)
    assert interval(hits, items, largest) == among


@pytest.mark.parametrize(("hits", "number"), [(20, 20), (17, 20), (3, 40)])
def test_property_7_one_item_per_drive_is_wider_than_clopper_and_pearson(hits, number):
    from scipy.stats import beta

    low, high = interval((np.arange(number) < hits).astype(np.int64), np.ones(number, dtype=np.int64), 1)
    assert low < beta.ppf(0.025, hits, number - hits + 1)
    assert high > beta.ppf(0.975, hits + 1, number - hits) if hits < number else high == 1
    # A binomial bound all the same: it depends on the number of hits only.
    assert interval((np.arange(number)[::-1] < hits).astype(np.int64), np.ones(number, dtype=np.int64), 1) == (
        low,
        high,
    )


def test_the_order_of_drives_makes_no_difference():
    drives = table_of(PUBLISHED[3][0])
    assert interval(*drives.T, 200) == interval(*drives[::-1].T, 200)


def test_many_chances_are_bounded_at_once_and_in_time():
    rng = np.random.default_rng(0)
    items = rng.integers(1, 60, (200, 80))
    hits = rng.binomial(items, 0.9)
    found = []
    work = calls_of(lambda: found.extend(lower_ends(hits, items, items.max(axis=0), Fraction(1, 1600))))
    assert work < 500_000  # 666,000 one by one
    for column in (0, 37, 79):
        alone = lower_ends(hits[:, [column]], items[:, [column]], items[:, [column]].max(axis=0), Fraction(1, 1600))
        assert found[column] == alone[0]
