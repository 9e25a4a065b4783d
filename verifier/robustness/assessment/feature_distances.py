"""How far apart two sets of feature vectors are: M15 to M17 of Wozniak, Segura and Mazo 2024, Table 7.

Features come from any extractor: a row per image. The Fréchet distance of two Gaussians with the means m and the
covariances C of the rows (n - 1 in the denominator) is

    |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2))                 Heusel et al. 2017, eq. (6)

and is called FID where the features are those of an Inception network. The paper's table speaks of "mean and standard
deviation"; the definition takes the whole covariance. It is a squared length, and biased upwards for few images.

Linkage takes Euclidean distances between a row of one set and a row of the other: the least (single), the greatest
(complete), the mean (average), or the distance of the two means (centroid).
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.linalg import qr, svdvals
from scipy.spatial.distance import cdist

from verifier.base.arrays import Floats
from verifier.base.errors import InputError, LimitError, Place, shown
from verifier.base.files import decoded, read_bytes

BLOCK = 2**22
"""Distances held at once."""
MOST_FEATURES = 20_000
"""Of a row; the factor of their covariance already takes 3.2 GB."""
MOST_DISTANCES = 10**11


def euclidean(one: Floats, other: Floats) -> Floats:
    """(n,) Euclidean distances of row i of one (n, k) from row i of the other (n, k)."""
    _check_paired(one, other)
    found: Floats = np.linalg.norm(one - other, axis=1)
    return found


def cosine(one: Floats, other: Floats) -> Floats:
    """(n,) 1 - cos of the angle between the rows (n, k), in 0..2; ValueError for a row of zeros."""
    _check_paired(one, other)
    lengths = np.linalg.norm(one, axis=1), np.linalg.norm(other, axis=1)
    if not all(np.all(each > 0) for each in lengths):
        raise ValueError("a feature vector is zero: it has no direction")
    unit, turned = one / lengths[0][:, None], other / lengths[1][:, None]
    # 1 - u.v as |u - v|^2 / 2, which does not cancel for vectors that are nearly parallel.
    found: Floats = ((unit - turned) ** 2).sum(axis=1) / 2
    return found


def frechet(one: Floats, other: Floats) -> float:
    """Fréchet distance of the rows (n, k) from the rows (m, k).

    Raises:
        ValueError: fewer than two rows, or different numbers of features.
        LimitError: too many features for their covariance.
    """
    _check_clouds(one, other)
    if min(len(one), len(other)) < 2:
        raise ValueError("the Fréchet distance needs two images at least on each side")
    if one.shape[1] > MOST_FEATURES:
        raise LimitError(f"the covariance of {one.shape[1]} features is too large; at most {MOST_FEATURES}")
    first, second = _factor(one), _factor(other)
    cross = svdvals(first @ second.T).sum()
    apart = one.mean(axis=0) - other.mean(axis=0)
    found = float(apart @ apart + (first**2).sum() + (second**2).sum() - 2 * cross)
    return max(found, 0.0)  # what is below 0 is rounding: the definition is never


def linkage(one: Floats, other: Floats, kind: str) -> float:
    """Linkage distance of the rows (n, k) from the rows (m, k).

    Args:
        one, other: features, one row or more.
        kind: "single", "complete", "average" or "centroid".

    Raises:
        ValueError: an unknown kind, no rows, or different numbers of features.
        LimitError: too many pairs of rows.
    """
    _check_clouds(one, other)
    if kind == "centroid":
        return float(np.linalg.norm(one.mean(axis=0) - other.mean(axis=0)))
    if len(one) * len(other) > MOST_DISTANCES:
        raise LimitError(f"{len(one) * len(other)} distances are too many; at most {MOST_DISTANCES}")
    blocks = _blocks(one, other)
    if kind == "single":
        return min(float(each.min()) for each in blocks)
    if kind == "complete":
        return max(float(each.max()) for each in blocks)
    if kind == "average":
        return sum(float(each.sum()) for each in blocks) / (len(one) * len(other))
    raise ValueError(f"unknown linkage {kind!r}")


def _factor(rows: Floats) -> Floats:
    """R with R'R the covariance of the rows.

    The trace of (C1 C2)^(1/2) is the sum of the singular values of R1 R2'. Taking no roots of eigenvalues, it stays
    exact where there are fewer images than features and most eigenvalues are 0.
    """
    found: Floats = qr((rows - rows.mean(axis=0)) / np.sqrt(len(rows) - 1), mode="r")[0]
    return found[: rows.shape[1]]


def _blocks(one: Floats, other: Floats) -> Iterator[Floats]:
    step = max(1, BLOCK // len(other))
    for first in range(0, len(one), step):
        yield cdist(one[first : first + step], other)


def _check_paired(one: Floats, other: Floats) -> None:
    if one.shape != other.shape:
        raise ValueError(f"expected the features of the same images, got tables {one.shape} and {other.shape}")


def _check_clouds(one: Floats, other: Floats) -> None:
    if one.ndim != 2 or other.ndim != 2 or one.shape[1] != other.shape[1] or not len(one) or not len(other):
        raise ValueError(f"expected equally many features of images, got tables {one.shape} and {other.shape}")


def read_features(path: str | Path) -> Floats:
    """(images, features) of a `.npy` or `.csv` file; a first line of CSV that holds no number is a header.

    Raises:
        InputError: unreadable, another kind of file, no table of finite numbers.
    """
    place = Place(str(path))
    ending = Path(path).suffix.lower()
    if ending not in (".npy", ".csv"):
        raise InputError("expected features in a file ending in .npy or .csv", place)
    raw = read_bytes(path)
    found = _from_numpy(raw, place) if ending == ".npy" else _from_csv(decoded(raw, place), str(path))
    if found.ndim != 2 or not found.size:
        raise InputError(f"expected a table (images, features), got the shape {found.shape}", place)
    if not np.all(np.isfinite(found)):
        row = int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0])
        raise InputError(f"row {row + 1} holds a number that is not finite", place)
    return found


def _from_numpy(raw: bytes, place: Place) -> Floats:
    try:
        found = np.load(io.BytesIO(raw), allow_pickle=False)
    except (ValueError, EOFError, OSError, SyntaxError, TypeError) as error:
        raise InputError(f"not a NumPy array: {shown(str(error))}", place) from None
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "iuf":
        raise InputError("expected an array of numbers", place)
    return found.astype(np.float64)


def _from_csv(text: str, file: str) -> Floats:
    rows: list[list[float]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        cells = line.split(",")
        try:
            row = [float(cell) for cell in cells]
        except ValueError:
            if not rows and number == 1:
                continue
            raise InputError("expected numbers, separated by commas", Place(file, number, text=line)) from None
        if rows and len(row) != len(rows[0]):
            raise InputError(f"found {len(row)} numbers, expected {len(rows[0])}", Place(file, number))
        rows.append(row)
    return np.array(rows, dtype=np.float64).reshape(len(rows), -1 if rows else 0)
