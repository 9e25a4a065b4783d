"""Equation (1) of Xu et al. (WSC 2021) in plain Python, term by term, one point at a time; slow and simple."""

from __future__ import annotations

import math
import statistics


def density(y: float, reported: list[float], width: float) -> float:
    """Gaussian kernel density estimate at y."""
    total = 0.0
    for each in reported:
        total += math.exp(-((y - each) ** 2) / (2 * width**2)) / math.sqrt(2 * math.pi * width**2)
    return total / len(reported)


def normal_reference(reported: list[float], constant: float) -> float:
    """c min(sd, IQR/1.349) n^(-1/5), quartiles interpolated linearly."""
    low, _, high = statistics.quantiles(reported, n=4, method="inclusive")
    return constant * min(statistics.stdev(reported), (high - low) / 1.349) * len(reported) ** (-1 / 5)


def collision_probability(
    pairs: list[tuple[float, float]], per_image: list[int], y: float, stopping: float, widths: tuple[float, float]
) -> float:
    """lambda at (y, S). `pairs` are (true, reported); `widths` of all pairs and of those with D > S."""
    n = len(pairs)
    far = [reported for true, reported in pairs if true > stopping]
    every = [reported for _, reported in pairs]
    p = sum(1 for true, reported in pairs if true > stopping and reported >= y) / n
    q = sum(1 for reported in every if reported >= y) / n
    upper = lower = 0.0
    for m in range(1, max(per_image) + 1):
        images = sum(1 for count in per_image if count == m)
        upper += m * p ** (m - 1) * images
        lower += m * q ** (m - 1) * images
    if not far:
        return 1.0
    r1 = density(y, far, widths[1]) * (len(far) / n) / density(y, every, widths[0])
    return 1 - r1 * upper / lower
