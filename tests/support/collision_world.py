"""A world of distances whose probability of collision is known by quadrature.

An object's true distance is Gamma distributed; a detector reports it times exp(sigma e + shift) with a standard
normal e; an image holds N objects, independent of their distances. So eq. (1)'s assumptions hold exactly, and every
term of Theorem 1's proof is an integral over the true distance alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import stats

from verifier.collision.pairs import Pairs

OBJECTS = (0.15, 0.2, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05)
"""P(N = 0..7): 2.65 objects per image."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(400)


@dataclass(frozen=True)
class World:
    """sigma: standard deviation of the logarithm of reported / true distance; shift: its mean."""

    sigma: float
    shift: float = 0.0
    shape: float = 3.0
    scale_m: float = 8.0
    objects: tuple[float, ...] = OBJECTS

    def draw(self, images: int, rng: np.random.Generator) -> Pairs:
        per_image = rng.choice(len(self.objects), size=images, p=self.objects)
        image = np.repeat(np.arange(images), per_image)
        true = rng.gamma(self.shape, self.scale_m, len(image))
        return Pairs(true, self.report(true, rng), image, images)

    def report(self, true: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return true * np.exp(self.shift + self.sigma * rng.standard_normal(len(true)))

    def probability(self, distance_m: float, stopping_m: float) -> float:
        """lambda at reported distance y and stopping distance S, by Theorem 1's proof."""
        density, beyond = self._integrals(distance_m, 0.0)
        near_density, near_beyond = self._integrals(distance_m, stopping_m)
        return 1 - near_density / density * self._images(near_beyond) / self._images(beyond)

    def probabilities(self, distances_m, stopping_m) -> np.ndarray:
        return np.array([[self.probability(y, s) for s in stopping_m] for y in distances_m])

    def averages(self, distances_m, stopping_m, window_m: float) -> np.ndarray:
        """(Y, V) lambda averaged over the reported nearest distances within half a window of each y."""
        found = []
        for y in distances_m:
            at = np.linspace(y - window_m / 2, y + window_m / 2, 33)
            density, beyond = np.array([self._integrals(each, 0.0) for each in at]).T
            weight = density * np.array([self._images(each) for each in beyond])
            weight[[0, -1]] /= 2  # the trapezoidal rule
            found.append(weight @ self.probabilities(at, stopping_m) / weight.sum())
        return np.array(found)

    def _images(self, share: float) -> float:
        return sum(m * p * share ** (m - 1) for m, p in enumerate(self.objects) if m)

    def _integrals(self, distance_m: float, start_m: float) -> tuple[float, float]:
        """f(y, D > start) and P(D^ >= y, D > start)."""
        density = beyond = 0.0
        # The reported distance is within exp(+-12 sigma) of the true one; the Gamma density ends before 60 scales.
        cuts = [0.0, distance_m * np.exp(-self.shift - 12 * self.sigma), distance_m * np.exp(-self.shift)]
        cuts += [distance_m * np.exp(-self.shift + 12 * self.sigma), 60 * self.scale_m]
        cuts = sorted({min(max(cut, start_m), 60 * self.scale_m) for cut in cuts})
        for low, high in pairwise(cuts):
            at = low + (high - low) * (NODES + 1) / 2
            weight = WEIGHTS * (high - low) / 2 * stats.gamma.pdf(at, self.shape, scale=self.scale_m)
            score = (np.log(distance_m / at) - self.shift) / self.sigma
            density += float(weight @ (stats.norm.pdf(score) / (self.sigma * distance_m)))
            beyond += float(weight @ stats.norm.sf(score))
        return density, beyond


WIDE = World(0.6)
SHARP = World(0.12)


def speed_from(policy, distance_m):
    """The speed from which a vehicle stops within a distance: the positive root of v^2 / 2a + t v = d."""
    root = np.sqrt(policy.reaction_s**2 + 2 * distance_m / policy.deceleration_mps2)
    return 2 * distance_m / (policy.reaction_s + root)
