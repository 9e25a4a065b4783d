"""Binomial ends where the inverse of the beta function fails."""

import numpy as np
import pytest
from scipy.stats import binom

from verifier.base.statistics import clopper_pearson


@pytest.mark.parametrize(
    ("events", "trials"), [(1000, 10**9), (1, 10**9), (999_999_000, 10**9), (3, 10), (500, 1000)]
)
@pytest.mark.parametrize("tail", [0.025, 1e-6])
def test_each_end_is_missed_with_the_tail(events, trials, tail):
    # At the lower end as many events or more have the probability `tail`, at the upper end as many or fewer.
    low, high = (float(end[0]) for end in clopper_pearson(np.array([events]), np.array([trials]), tail))
    assert binom.sf(events - 1, trials, low) == pytest.approx(tail, rel=1e-5)
    assert binom.cdf(events, trials, high) == pytest.approx(tail, rel=1e-5)
