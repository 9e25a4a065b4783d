"""Simulated drives: rates that differ from drive to drive, and sizes of several kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

SIZES = ("one", "even", "lognormal", "half", "sparse", "informative")


@dataclass(frozen=True)
class Population:
    """Drives d have rates p_d ~ Beta with a mean and an intraclass correlation, and X_d ~ Bin(N_d, p_d).

    Attributes:
        drives: how many.
        sizes: one of `SIZES`. Even: 50 each; lognormal: exp(Normal(ln 20, 1.3)) cut to 1..400; half: 20 each and one
            as large as all others; sparse: 50 with chance .4, else 0; informative: 100 if p_d < recall, else 20.
        recall, icc: of the rates.
    """

    drives: int
    sizes: str
    recall: float
    icc: float

    @property
    def largest(self) -> int:
        """The most items that a drive can hold."""
        half = 20 * (self.drives - 1)
        return {"one": 1, "even": 50, "lognormal": 400, "half": half, "sparse": 50, "informative": 100}[self.sizes]

    @property
    def item_rate(self) -> float:
        """E[X] / E[N]."""
        if self.sizes != "informative" or not self.icc:
            return self.recall
        low = beta(*self._shape).cdf(self.recall)
        size = self._shape[0] + self._shape[1]
        # E[p; p < r] of a beta distribution is its mean times the same of the one with a + 1.
        below = self.recall * beta(self._shape[0] + 1, size - self._shape[0]).cdf(self.recall)
        return float((100 * below + 20 * (self.recall - below)) / (100 * low + 20 * (1 - low)))

    @property
    def _shape(self) -> tuple[float, float]:
        size = (1 - self.icc) / self.icc
        return self.recall * size, (1 - self.recall) * size

    def draw(self, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        """(drives, count) hits and items of `count` data sets."""
        shape = (self.drives, count)
        rates = rng.beta(*self._shape, shape) if self.icc else np.full(shape, self.recall)
        items = np.full(shape, {"one": 1, "even": 50}.get(self.sizes, 20), dtype=np.int64)
        if self.sizes == "lognormal":
            items = np.clip(np.exp(rng.normal(np.log(20), 1.3, shape)), 1, 400).astype(np.int64)
        elif self.sizes == "half":
            items[0] = self.largest
        elif self.sizes == "sparse":
            items = np.where(rng.random(shape) < 0.4, 50, 0).astype(np.int64)
        elif self.sizes == "informative":
            items = np.where(rates < self.recall, 100, 20).astype(np.int64)
        return rng.binomial(items, rates), items
