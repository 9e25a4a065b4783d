"""Laws of rates and demonstrations, against definitions of their own, and by simulation."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_documents import point, requirement, run
from scipy.stats import beta, poisson

from verifier.evidence.rates.document import encounters_needed, hours_needed
from verifier.evidence.rates.exposure import Exposure, garwood
from verifier.evidence.rates.hazard import EVERY, RateQuestion, hazard_rate

probabilities = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=200)
levels = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=200)


@given(probabilities, levels)
def test_the_least_number_of_encounters(probability, confidence):
    needed = encounters_needed(probability, confidence)
    assert (1 - probability) ** needed <= 1 - confidence
    assert needed == 1 or (1 - probability) ** (needed - 1) > 1 - confidence


@given(st.integers(1, 10**6))
def test_clopper_and_pearson_inverted(denominator):
    """The upper limit of Clopper and Pearson for no event in n encounters is below p from n on, and not before."""
    probability = Fraction(1, denominator + 1)
    needed = encounters_needed(probability, Fraction(19, 20))
    assert beta.ppf(0.95, 1, needed) <= float(probability) * (1 + 1e-9)
    if needed > 1:
        assert beta.ppf(0.95, 1, needed - 1) > float(probability) * (1 - 1e-9)


def poisson_tail(mean, most):
    with localcontext() as context:
        context.prec = 50
        exact = Decimal(mean.numerator) / Decimal(mean.denominator)
        return (-exact).exp() * sum(exact**k / factorial(k) for k in range(most + 1))


@given(st.fractions(Fraction(1, 10**8), Fraction(10), max_denominator=10**9), levels)
def test_hours_show_and_barely_so(rate, confidence):
    hours = hours_needed(rate, confidence)
    error = Decimal((1 - confidence).numerator) / Decimal((1 - confidence).denominator)
    assert poisson_tail(rate * hours, 0) <= error
    assert poisson_tail(rate * hours * (1 - Fraction(1, 10**9)), 0) > error


@given(st.integers(0, 60), st.fractions(Fraction(1, 1000), Fraction(1, 2), max_denominator=1000))
def test_garwood_inverts_both_tails(count, error):
    lower, upper = garwood(count, error)
    half = Decimal(error.numerator) / Decimal(2 * error.denominator)
    assert poisson_tail(upper, count) <= half
    assert poisson_tail(upper * (1 - Fraction(1, 10**9)), count) > half
    if count:
        assert 1 - poisson_tail(lower, count - 1) <= half
        assert 1 - poisson_tail(lower * (1 + Fraction(1, 10**9)), count - 1) > half


bounds = st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)).map(sorted)


@given(st.lists(bounds, min_size=1, max_size=4), st.fractions(0, 100, max_denominator=100))
def test_a_rate_lies_between_its_ends_and_grows_with_exposure(found, per_hour):
    points = [
        point(middle, "satisfied", (low, high), initial={"x": k}) for k, (low, middle, high) in enumerate(found)
    ]
    given_run = run([requirement("stops", points)])
    rate = hazard_rate(given_run, RateQuestion("stops"), {EVERY: Exposure.stated(per_hour)})
    assert 0 <= rate.bounds.lower <= rate.per_hour <= rate.bounds.upper
    worst = max(1 - Fraction(middle) for _, middle, _ in found)
    assert rate.per_hour == float(worst * per_hour)
    twice = hazard_rate(given_run, RateQuestion("stops"), {EVERY: Exposure.stated(2 * per_hour)})
    assert (twice.bounds.lower, twice.bounds.upper) == (2 * rate.bounds.lower, 2 * rate.bounds.upper)


@pytest.mark.parametrize("mean", [0.3, 2.0, 7.5, 40.0])
def test_garwood_covers(mean):
    """Exact coverage: the counts whose interval holds the mean have at least the probability 1 - error."""
    counts = range(300)
    held = sum(
        poisson.pmf(count, mean)
        for count in counts
        for low, high in [garwood(count, Fraction(1, 10))]
        if low <= mean <= high
    )
    assert 0.9 <= held <= 1


def test_the_combined_interval_covers():
    """A probability by Clopper and Pearson and a Poisson count: the rate lies within in the stated share of cases."""
    rng = np.random.default_rng(0)
    items, hours, chance, per_hour = 60, 5, 0.07, 3.0
    repetitions = 20_000
    held = 0
    cache = {}
    for failures, met in zip(
        rng.binomial(items, chance, repetitions), rng.poisson(per_hour * hours, repetitions), strict=True
    ):
        key = int(failures), int(met)
        if key not in cache:
            low = beta.ppf(0.025, failures, items - failures + 1) if failures else 0.0
            high = beta.ppf(0.975, failures + 1, items - failures)
            points = [point(1 - failures / items, "satisfied", (1 - high, 1 - low))]
            rate = hazard_rate(
                run([requirement("stops", points)]),
                RateQuestion("stops"),
                {EVERY: Exposure.counted(int(met), Fraction(hours))},
            )
            cache[key] = rate.bounds.lower <= Fraction(chance) * Fraction(per_hour) <= rate.bounds.upper
        held += cache[key]
    assert rate.bounds.level == 0.9
    share = held / repetitions
    assert share >= 0.9
    assert share < 0.9999  # it does fail, as it may
