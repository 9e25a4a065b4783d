"""How far apart two sets of feature vectors are: M15 to M17 of Wozniak, Segura and Mazo 2024, Table 7.

Features come from any extractor: a row per image. The Fréchet distance of two Gaussians with the means m and the
covariances C of the rows (n - 1 in the denominator) is

    |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2))                 Heusel et al. 2017, eq. (6)

and is called FID where the features are those of an Inception network. The paper's table speaks of "mean and standard
deviation"; the definition takes the whole covariance. It is a squared length, and biased upwards for few images.

Linkage takes Euclidean distances between a row of one set and a row of the other: the least (single), the greatest
(complete), the mean (average), or the distance of the two means (centroid).

Complex-wavelet structural similarity (CW-SSIM): similarity of phases, which small shifts and turns hardly change.

Sampat, Wang, Gupta, Bovik and Markey 2009 (IEEE Trans. Image Processing 18(11), eq. (10) and Sec. IV):

    S(cx, cy) = (2 |sum cx cy*| + K) / (sum |cx|^2 + sum |cy|^2 + K)

over windows of 7 x 7 coefficients of one oriented band; the map of S is averaged with a Gaussian weight whose sigma
is a quarter of the band's height, then over all orientations. The coefficients are those of the complex steerable
pyramid (Portilla and Simoncelli 2000) at its coarsest scale, 6 scales and 16 orientations there. In polar frequency,
r = 1 where the shorter of period and axis meet, H(x) = cos(pi/2 x) with x cut to -1..0, and L = sqrt(1 - H^2),

    band(r, t) = L(log2 r) prod_{j < level} L(log2 r + j) * H(log2 r + level) * A(t - pi b / B)
    A(t) proportional to cos(t)^(B - 1) where cos(t) > 0, else 0        one-sided: the coefficients are complex

sampled 2^(level - 1) times coarser than the image. The constant component belongs to no band.
"""

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.fft import fft2, fftshift, ifft2, ifftshift
from scipy.linalg import qr, svdvals
from scipy.ndimage import uniform_filter
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
    return np.asarray(np.linalg.norm(one - other, axis=1))


def cosine(one: Floats, other: Floats) -> Floats:
    """(n,) 1 - cos of the angle between the rows (n, k), in 0..2; ValueError for a row of zeros."""
    _check_paired(one, other)
    lengths = np.linalg.norm(one, axis=1), np.linalg.norm(other, axis=1)
    if not all(np.all(length > 0) for length in lengths):
        raise ValueError("a feature vector is zero: it has no direction")
    unit, turned = one / lengths[0][:, None], other / lengths[1][:, None]
    # 1 - u.v as |u - v|^2 / 2, which does not cancel for vectors that are nearly parallel.
    return np.asarray(((unit - turned) ** 2).sum(axis=1) / 2)


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
    distance = float(apart @ apart + (first**2).sum() + (second**2).sum() - 2 * cross)
    return max(distance, 0.0)  # what is below 0 is rounding: the definition is never


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
        return min(float(block.min()) for block in blocks)
    if kind == "complete":
        return max(float(block.max()) for block in blocks)
    if kind == "average":
        return sum(float(block.sum()) for block in blocks) / (len(one) * len(other))
    raise ValueError(f"unknown linkage {kind!r}")


def _factor(rows: Floats) -> Floats:
    """R with R'R the covariance of the rows.

    The trace of (C1 C2)^(1/2) is the sum of the singular values of R1 R2'. Taking no roots of eigenvalues, it stays
    exact where there are fewer images than features and most eigenvalues are 0.
    """
    factor: Floats = qr((rows - rows.mean(axis=0)) / np.sqrt(len(rows) - 1), mode="r")[0]
    return factor[: rows.shape[1]]


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
    features = _from_numpy(raw, place) if ending == ".npy" else _from_csv(decoded(raw, place), str(path))
    if features.ndim != 2 or not features.size:
        raise InputError(f"expected a table (images, features), got the shape {features.shape}", place)
    if not np.all(np.isfinite(features)):
        row = int(np.flatnonzero(~np.isfinite(features).all(axis=1))[0])
        raise InputError(f"row {row + 1} holds a number that is not finite", place)
    return features


def _from_numpy(raw: bytes, place: Place) -> Floats:
    try:
        array = np.load(io.BytesIO(raw), allow_pickle=False)
    except (ValueError, EOFError, OSError, SyntaxError, TypeError) as error:
        raise InputError(f"not a NumPy array: {shown(str(error))}", place) from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iuf":
        raise InputError("expected an array of numbers", place)
    return array.astype(np.float64)


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


Complexes = NDArray[np.complex128]


@dataclass(frozen=True)
class CwSsimSettings:
    """Which band and how it is compared.

    Attributes:
        level: scale of the pyramid, 1 the finest; band-pass around a period of 2^(level + 1) pixels.
        orientations: B.
        window: side of the windows, in coefficients.
        constant: K, grey levels squared per coefficient; what keeps windows without structure from counting.

    Raises:
        ValueError: out of range.
    """

    level: int = 6
    orientations: int = 16
    window: int = 7
    constant: float = 0.01

    def __post_init__(self) -> None:
        if not 1 <= self.level <= 12 or not 1 <= self.orientations <= 32 or self.window < 1 or self.window % 2 == 0:
            raise ValueError("expected level 1..12, 1..32 orientations, and an odd window")
        if not 0 <= self.constant < math.inf:
            raise ValueError("expected a constant from 0")

    @property
    def least_side(self) -> int:
        """Pixels that the shorter side of an image must have, so that a window fits into the band."""
        side = self.window
        for _ in range(self.level - 1):
            side = 2 * side - 1
        return side


DEFAULT = CwSsimSettings()


def cw_ssim(one: Floats, other: Floats, settings: CwSsimSettings = DEFAULT) -> float:
    """CW-SSIM of two images (H, W) of grey levels, in 0..1; 1 for equal ones.

    Raises:
        ValueError: different shapes, or too small for the scale; or windows without structure and K = 0.
    """
    if one.shape != other.shape or one.ndim != 2:
        raise ValueError(f"expected two images of one size, got {one.shape} and {other.shape}")
    if min(one.shape) < settings.least_side:
        raise ValueError(
            f"CW-SSIM at level {settings.level} needs images of {settings.least_side} x {settings.least_side} pixels "
            "at least"
        )
    pairs = zip(bands(one, settings), bands(other, settings), strict=True)
    return float(np.mean([_similarity(first, second, settings) for first, second in pairs]))


def bands(image: Floats, settings: CwSsimSettings = DEFAULT) -> list[Complexes]:
    """The complex coefficients of every orientation at the level, in grey levels."""
    spectrum = fftshift(fft2(image))
    rows, columns = (_axis(length, settings.level) for length in image.shape)
    y, x = rows[1][:, None], columns[1][None, :]
    spectrum = spectrum[rows[0], columns[0]]
    scale = spectrum.size / image.size  # a coarser sampling, not a change of contrast
    spectrum = spectrum * _radial(np.hypot(x, y), settings.level) * scale
    angle = np.arctan2(y, x)
    subbands = []
    for number in range(settings.orientations):
        turned = np.cos(angle - math.pi * number / settings.orientations)
        mask = np.where(turned > 0, turned, 0.0) ** (settings.orientations - 1) * (turned > 0)
        coefficients: Complexes = ifft2(ifftshift(spectrum * mask))
        subbands.append(coefficients * _gain(settings.orientations))
    return subbands


def _axis(length: int, level: int) -> tuple[slice, Floats]:
    """Which frequencies of a side the band can hold, and these frequencies; 1 is half the sampling rate."""
    kept = length
    for _ in range(level - 1):
        kept = (kept + 1) // 2
    centre = length // 2
    first = centre - kept // 2
    frequencies = (np.arange(length) - centre) / (length / 2)
    return slice(first, first + kept), frequencies[first : first + kept]


def _radial(radius: Floats, level: int) -> Floats:
    with np.errstate(divide="ignore"):
        octave = np.log2(radius)
    response = _high(octave + level)
    for number in range(level):
        response = response * np.sqrt(1 - _high(octave + number) ** 2)
    return np.where(radius > 0, response, 0.0)


def _high(octave: Floats) -> Floats:
    """H: 0 an octave below and further down, 1 from 0 on."""
    cut = np.clip(octave, -1.0, 0.0)
    return np.where(cut <= -1.0, 0.0, np.cos(math.pi / 2 * cut))


def _gain(orientations: int) -> float:
    """The factor with which the real parts of all orientations, squared, pass the whole of every frequency."""
    order = orientations - 1
    return 2 * math.sqrt(4.0**order * math.factorial(order) ** 2 / (orientations * math.factorial(2 * order)))


def _similarity(first: Complexes, second: Complexes, settings: CwSsimSettings) -> float:
    window = settings.window
    product = first * np.conj(second)
    cross = np.hypot(_sums(product.real, window), _sums(product.imag, window))
    power = _sums(first.real**2 + first.imag**2 + second.real**2 + second.imag**2, window)
    below = power + settings.constant * window**2
    if not np.all(below > 0):
        raise ValueError("windows without any structure: choose a constant above 0")
    chart = (2 * cross + settings.constant * window**2) / below
    weight = _weight(chart.shape, first.shape[0] / 4)
    return float((chart * weight).sum())


def _sums(values: Floats, window: int) -> Floats:
    """Sums over every window that lies within the band."""
    half = window // 2
    means: Floats = uniform_filter(values, window, mode="constant")
    inner = means[half : means.shape[0] - half, half : means.shape[1] - half]
    return inner * window**2


def _weight(shape: tuple[int, ...], sigma: float) -> Floats:
    y, x = (np.arange(length) - (length - 1) / 2 for length in shape)
    weight = np.exp(-(y[:, None] ** 2 + x[None, :] ** 2) / (2 * sigma**2))
    return np.asarray(weight / weight.sum())
