"""Tests valid at every look: evidence against definitions, wrong alarms and power by simulation and exact sums."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from verifier.analysis import sequential
from verifier.analysis.sequential import hours_needed, items_needed, log_against_rate, log_against_share

ALPHA = 0.05


@pytest.mark.parametrize("least", [0.05, 0.5, 0.95])
@pytest.mark.parametrize(("right", "items"), [(0, 1), (1, 1), (7, 20), (18, 20)])
def test_evidence_against_a_share_is_the_mixture_of_likelihood_ratios(right, items, least):
    prior = stats.beta(0.5, 0.5)

    def ratio(share):
        likelihood = share**right * (1 - share) ** (items - right)
        return likelihood / (least**right * (1 - least) ** (items - right)) * prior.pdf(share) / prior.cdf(least)

    expected, _ = integrate.quad(ratio, 0, least, points=[least * 1e-6, least * (1 - 1e-6)])
    assert math.exp(log_against_share(right, items, least)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("events", "hours", "most"), [(0, 1, 2), (3, 1, 2), (30, 10, 2), (1, 100, 0.01)])
def test_evidence_against_a_rate_is_the_mixture_of_likelihood_ratios(events, hours, most):
    def ratio(rate):
        prior = math.exp(-(rate - most) / most) / most
        return (rate / most) ** events * math.exp(-(rate - most) * hours) * prior

    expected, _ = integrate.quad(ratio, most, np.inf, epsabs=0, epsrel=1e-10)
    assert math.exp(log_against_rate(events, hours, most)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("least", [0.1, 0.7, 0.99])
def test_where_the_claim_is_just_true_the_mean_evidence_is_1_and_less_where_it_is_better(least):
    right = np.arange(41)
    evidence = np.exp([log_against_share(k, 40, least) for k in right])
    assert stats.binom.pmf(right, 40, least) @ evidence == pytest.approx(1, rel=1e-9)
    assert stats.binom.pmf(right, 40, (1 + least) / 2) @ evidence < 1
    events = np.arange(2000)
    evidence = np.array([log_against_rate(k, 30, 2) for k in events])
    assert np.exp(stats.poisson.logpmf(events, 60) + evidence).sum() == pytest.approx(1, rel=1e-9)
    assert np.exp(stats.poisson.logpmf(events, 50) + evidence).sum() < 1


def limits(least, items):
    """(items,) the most that may be right for the alarm, after each item; -1 for no alarm."""
    found, limit = [], -1
    for n in range(1, items + 1):
        while limit < n and log_against_share(limit + 1, n, least) >= -math.log(ALPHA):
            limit += 1
        found.append(limit)
    return np.array(found)


@pytest.mark.parametrize("least", [0.6, 0.95])
def test_a_thousand_streams_at_the_threshold_give_wrong_alarms_in_a_twentieth_at_most_at_any_look(least):
    streams = np.random.default_rng(7).random((1000, 3000)) < least
    alarms = (np.cumsum(streams, axis=1) <= limits(least, 3000)).any(axis=1)
    assert 0 < alarms.sum() <= 50


@pytest.mark.parametrize("least", [0.6, 0.95])
def test_a_recall_of_a_twentieth_less_is_found_within_the_printed_number_of_items_in_nine_of_ten(least):
    items = items_needed(least, least - 0.05, ALPHA, 0.9)
    streams = np.random.default_rng(8).random((1000, items)) < least - 0.05
    alarms = (np.cumsum(streams, axis=1) <= limits(least, items)).any(axis=1)
    assert abs(alarms.mean() - 0.9) <= 4 * (0.9 * 0.1 / 1000) ** 0.5  # the number is exact, not only enough
    assert items_needed(least, least - 0.05, ALPHA, 0.5) < items


def test_a_rate_is_found_within_the_printed_hours_and_seldom_raises_a_wrong_alarm():
    hours, draws = hours_needed(2, 3, ALPHA, 0.9), np.random.default_rng(9)
    looks = np.arange(1, round(hours * 2) + 1) / 2  # whenever one event is expected
    limit = np.array([next(k for k in range(1000) if log_against_rate(k, at, 2) >= -math.log(ALPHA)) for at in looks])
    for rate, low, high in ((3, 0.86, 0.94), (2, 0, 0.05)):
        events = np.cumsum(draws.poisson(rate / 2, (1000, len(looks))), axis=1)
        assert low <= (events >= limit).any(axis=1).mean() <= high


@pytest.mark.parametrize(
    ("function", "most", "asked"),
    [(items_needed, "MOST_ITEMS", (0.9, 0.5, ALPHA, 0.8)), (hours_needed, "MOST_STEPS", (0.1, 0.25, ALPHA, 0.8))],
)
def test_numbers_beyond_those_that_are_looked_at_are_not_told(function, most, asked, monkeypatch):
    found = function.__wrapped__(*asked)
    looks = round(found if most == "MOST_ITEMS" else found * asked[0])  # for a rate, one for every event at it
    assert looks > 3
    for number, told in ((looks, found), (looks - 1, None)):
        monkeypatch.setattr(sequential, most, number)
        assert function.__wrapped__(*asked) == told


def test_many_events_at_a_look_are_seen_at_the_first():
    """20 where 1 is expected, and 30."""
    assert hours_needed(0.1, 2, ALPHA, 0.9) == 10
    assert hours_needed(2, 60, ALPHA, 0.99) == 0.5
    least = next(k for k in range(99) if log_against_rate(k, 10, 0.1) >= -math.log(ALPHA))
    just = float(stats.poisson.pmf(np.arange(220), 20)[least:].sum())
    assert [hours_needed(0.1, 2, ALPHA, power) for power in (just, np.nextafter(just, 1))] == [10, 20]
    assert (sequential.MOST_ITEMS, sequential.MOST_STEPS) == (20_000, 400)


def test_ends_of_what_can_be_claimed():
    assert log_against_share(10, 10, 1.0) < 0
    assert log_against_share(9, 10, 1.0) == math.inf
    # One wrong item refutes a share of 1: half of all alarms come at the first, and a half is enough.
    assert [items_needed(1.0, 0.5, ALPHA, power) for power in (0.5, 0.51, 0.75, 0.76)] == [1, 2, 2, 3]
    assert items_needed(0.5, 0.5 - 1e-4, ALPHA, 0.9) is None or items_needed(0.5, 0.4999, ALPHA, 0.9) > 10_000


@pytest.mark.parametrize(("least", "true", "alpha"), [(0.9, 0.3, 0.2), (0.8, 0.2, 0.05), (0.95, 0.5, 0.1)])
def test_items_are_those_after_which_enough_of_all_sequences_have_raised_the_alarm(least, true, alpha):
    """Of all sequences of up to twelve items, each until its alarm."""
    found, open_ = [0.0], {(): 1.0}
    for items in range(1, 13):
        alarm, longer = found[-1], {}
        for told, chance in open_.items():
            for right in (0, 1):
                now, share = (*told, right), chance * (true if right else 1 - true)
                if math.exp(log_against_share(sum(now), items, least)) >= 1 / alpha:
                    alarm += share
                else:
                    longer[now] = share
        found, open_ = [*found, alarm], longer
    for power in (found[-1] * part for part in (0.3, 0.6, 0.9, 0.999)):
        assert items_needed(least, true, alpha, power) == next(n for n, alarm in enumerate(found) if alarm >= power)
    assert items_needed(least, true, alpha, 1 - 1e-12) is None or items_needed(least, true, alpha, 1 - 1e-12) > 12


@pytest.mark.parametrize(("most", "true", "alpha"), [(2, 9, 0.2), (0.5, 1.5, 0.1), (1, 4, 0.05)])
def test_hours_are_those_after_which_enough_of_all_courses_have_raised_the_alarm(most, true, alpha):
    """Looked at whenever one event is expected at `most`; of all courses of three looks, of up to 40 events each."""
    step, found, open_ = 1 / most, [0.0], {0: 1.0}
    for look in range(1, 4):
        alarm, longer = found[-1], {}
        for before, chance in open_.items():
            for more in range(41):
                now, share = before + more, chance * stats.poisson.pmf(more, true * step)
                if now >= look and math.exp(log_against_rate(now, look * step, most)) >= 1 / alpha:
                    alarm += share
                else:
                    longer[now] = longer.get(now, 0.0) + share
        found, open_ = [*found, alarm], longer
    for power in (found[-1] * part for part in (0.3, 0.7, 0.999)):
        look = next(n for n, alarm in enumerate(found) if alarm >= power)
        assert hours_needed(most, true, alpha, power) == pytest.approx(look * step)
