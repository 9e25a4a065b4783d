"""Whether pairs are what eq. (1) of Xu et al. (WSC 2021) takes them for: independent, and of their number per image.

The estimator draws the pairs (D, D^) of an image independently of each other and of N, how many the image has (Sec.
3.1). If that is so, pairs can change places between images without changing the distribution of the data. So they are
shuffled over the places, N of each image kept, and each statistic is compared with its values then (Pitman 1937;
exact at any number of pairs): with u the centred ranks of D, or of the error D^ - D, and U their sum in an image,

    pairs:   sum over images of (U^2 - sum of u^2): whether pairs of one image are alike, or unlike
    number:  sum over images of N U: whether images with more pairs have nearer ones, or other errors
    drives:  as pairs, of the mean ranks of images in place of pairs, and drives in place of images

Each is two-sided; of the two variables the smaller p-value counts, doubled (Bonferroni).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.documents import Count, Share
from verifier.collision.pairs import Pairs

MOST, FEWEST, SHUFFLED = 999, 199, 50_000_000
"""Permutations at most and at least, and ranks that are shuffled in all of them together."""
REFUTED = 0.01


@dataclass(frozen=True)
class Independence:
    """The tests; None where nothing can be tested: no image has two pairs, all have as many, or no drives are known.

    Attributes:
        pairs: p-value of the independence of pairs of one image.
        number: p-value of their independence of how many there are.
        permutations: 0 where nothing can be tested.
        drives: p-value of the independence of images of one drive.
    """

    pairs: Share | None
    number: Share | None
    permutations: Count
    drives: Share | None = None

    @property
    def refuted(self) -> bool:
        """Whether any is refuted at 1 %."""
        return any(each is not None and each <= REFUTED for each in (self.pairs, self.number, self.drives))


def independence(pairs: Pairs, rng: np.random.Generator) -> Independence:
    """All tests of some pairs."""
    sizes = pairs.per_image[pairs.per_image > 0]
    several, differ = len(sizes) > 1 and bool((sizes > 1).any()), len(np.unique(sizes)) > 1
    permutations = max(FEWEST, min(MOST, SHUFFLED // max(len(pairs), 1)))
    order = np.argsort(pairs.image, kind="stable")
    ranks = np.stack([_centred_ranks(each[order]) for each in (pairs.true_m, pairs.predicted_m - pairs.true_m)])
    p, drives = _p_values(ranks, sizes, permutations, rng) if several or differ else None, None
    shown = pairs.drive[pairs.per_image > 0] if len(pairs.drive) else np.zeros(0, np.int64)
    images = np.unique(shown, return_counts=True)[1]
    if len(images) > 1 and (images > 1).any():
        means = np.add.reduceat(ranks, np.cumsum(sizes) - sizes, axis=1) / sizes
        drives = float(_p_values(means[:, np.argsort(shown, kind="stable")], images, permutations, rng)[0])
    one, other = (
        (float(p[0]) if several else None, float(p[1]) if differ else None) if p is not None else (None, None)
    )
    return Independence(one, other, 0 if p is None and drives is None else permutations, drives)


def _p_values(ranks: Floats, sizes: np.ndarray, permutations: int, rng: np.random.Generator) -> Floats:
    """(2,) of pairs and of number, for ranks (2, n) in groups of these sizes."""
    starts = np.cumsum(sizes) - sizes
    found = np.empty((permutations + 1, 2, 2))
    found[0] = _statistics(ranks, starts, sizes)
    for row in found[1:]:
        row[:] = _statistics(ranks[:, rng.permutation(ranks.shape[1])], starts, sizes)
    away = np.abs(found - found[1:].mean(axis=0))
    # Equal values that were summed in another order count as equal.
    return np.asarray(np.minimum(1, 2 * (away >= away[0] * (1 - 1e-9)).mean(axis=0).min(axis=1)))


def _centred_ranks(values: Floats) -> Floats:
    """(n,) mid-ranks, less their mean, by their largest."""
    from scipy.stats import rankdata

    return np.asarray((rankdata(values) - (len(values) + 1) / 2) / len(values))


def _statistics(ranks: Floats, starts: np.ndarray, sizes: np.ndarray) -> Floats:
    """(2, 2): of pairs and of number, for each row of ranks (2, n)."""
    sums = np.add.reduceat(ranks, starts, axis=1)
    return np.stack([(sums**2).sum(axis=1), sums @ sizes])
