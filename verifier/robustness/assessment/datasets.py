"""Distances that an assessment asks for and its file does not give, computed from folders of images or features.

A target image belongs to the source image of the same name, whatever the endings; where the folder has a table
`pairs.csv` with the columns `target` and `source`, that table says so instead. Every image of the target folder must
have its source; source images without a target are not used.

How different two images are: MSE, PSNR and SSIM, on grey levels. M14 of Wozniak, Segura and Mazo 2024, Table 7.

Colour images are compared by their luma, .299 R + .587 G + .114 B (ITU-R BT.601), not rounded.

    MSE  = mean (x - y)^2                         grey levels squared
    PSNR = 10 log10(255^2 / MSE)                  decibels; infinite for equal images
    SSIM = mean of (2 mx my + C1)(2 sxy + C2) / ((mx^2 + my^2 + C1)(sx^2 + sy^2 + C2))

with mx, sx^2, sxy the mean, variance and covariance under a circular Gaussian window of 11 x 11 pixels, sigma 1.5,
sum 1, C1 = (.01 * 255)^2, C2 = (.03 * 255)^2, and the mean over every place where the window lies within the
image (Wang, Bovik, Sheikh and Simoncelli 2004, Sec. III-B and C). Easily confused with the SSIM of uniform 7 x 7
windows and sample covariances, which is what some libraries compute unless told otherwise.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

from verifier.base.arrays import Floats
from verifier.base.documents import InputFile
from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import read_bytes
from verifier.base.tables import read_table
from verifier.robustness.assessment.definition import Assessment
from verifier.robustness.assessment.feature_distances import (
    CwSsimSettings,
    cosine,
    cw_ssim,
    euclidean,
    frechet,
    linkage,
    read_features,
)
from verifier.robustness.assessment.measures import (
    FEATURE_MEASURES,
    IMAGE_MEASURES,
    SIMILARITIES,
    DatasetDistance,
    DistanceRule,
)
from verifier.robustness.assessment.samples import extracted
from verifier.robustness.campaign.scenes import image_files
from verifier.robustness.detectors.protocol import read_image

PAIRS_FILE = "pairs.csv"


def computed_distances(assessment: Assessment, folder: Path) -> dict[str, dict[str, DatasetDistance]]:
    """By target and distance, what can be computed and is not given.

    Args:
        assessment: names the folders and files.
        folder: where its paths start from.

    Raises:
        InputError: an image or a table that cannot be read or does not fit its partner.
        UsageError: a library that reads images is missing.
    """
    by_target: dict[str, dict[str, DatasetDistance]] = {}
    source = assessment.source.files
    for target in assessment.targets:
        open_rules = [rule for rule in assessment.rules.values() if rule.name not in target.distances]
        own: dict[str, DatasetDistance] = {}
        by_image = [open_rule for open_rule in open_rules if open_rule.measure in IMAGE_MEASURES]
        if by_image and source.images is not None and target.files.images is not None:
            own |= _of_images(by_image, folder / source.images, folder / target.files.images)
        by_feature = [open_rule for open_rule in open_rules if open_rule.measure in FEATURE_MEASURES]
        for name in dict.fromkeys(rule.extractor for rule in by_feature):
            rules = [rule for rule in by_feature if rule.extractor == name]
            files = (source.features, target.files.features) if name is None else (source.images, target.files.images)
            if files[0] is not None and files[1] is not None:
                own |= _of_features(rules, folder / files[0], folder / files[1], name)
        by_target[target.name] = own
    return by_target


def source_names(assessment: Assessment, folder: Path) -> tuple[str, ...]:
    """Names of the source images: those in its folder, or numbers where only their count is known.

    Raises:
        InputError: no such folder, or no image in it.
        UsageError: neither a folder nor a count is given.
    """
    files = assessment.source.files
    if files.images is not None:
        return tuple(path.name for path in image_files(folder / files.images))
    if files.count is None:
        raise UsageError("a plan needs 'images' or 'count' in the table 'source'")
    return tuple(f"image {number}" for number in range(1, files.count + 1))


def input_records(assessment: Assessment, folder: Path) -> Iterator[InputFile]:
    """Role, name and SHA-256 of all files and folders that the data sets and the detector name.

    That of a folder is the SHA-256 of its files' names and digests, in the order of their names.

    Raises:
        InputError: something cannot be read.
    """
    files: list[tuple[str, str | Path | None]] = []
    for data in (assessment.source, *assessment.targets):
        named: dict[str, str | Path | None] = {"images": data.files.images, "features": data.files.features}
        if data.detections is not None:
            named |= {"annotations": data.detections.annotations, "detections": data.detections.detections}
            named |= {"class map": data.detections.class_map}
        if data.files.annotations is not None:
            given = data.files.annotations
            named |= {"annotations": given.file, "class map": given.class_map, "frames": given.frames}
        if data.files.depth is not None:
            named |= {"depth": data.files.depth.folder}
        files += [(f"{role} of {data.name}", name) for role, name in named.items()]
    files += [(f"sample of {where}", name) for where, name in assessment.samples.items()]
    if (used := assessment.detector) is not None:
        files += [("detector", used.file), ("class map of the detector", used.class_map)]
    for role, name in files:
        if name is not None:
            yield InputFile(role, Path(name).name, _digest(folder / name))


def _digest(path: Path) -> str:
    if not path.is_dir():
        return hashlib.sha256(read_bytes(path)).hexdigest()
    hasher = hashlib.sha256()
    for below in sorted(path.rglob("*")):
        if below.is_file():
            inner = hashlib.sha256(read_bytes(below)).hexdigest()
            hasher.update(f"{below.relative_to(path).as_posix()}\0{inner}\n".encode())
    return hasher.hexdigest()


def _of_images(rules: Sequence[DistanceRule], source: Path, target: Path) -> dict[str, DatasetDistance]:
    values: dict[str, list[float]] = {rule.name: [] for rule in rules}
    for first, second in _paired(source, target):
        one, other = luma(read_image(first).pixels), luma(read_image(second).pixels)
        for rule in rules:
            try:
                values[rule.name].append(_image_measure(rule)(one, other))
            except ValueError as error:
                raise InputError(f"{rule.name} with {first.name}: {error}", Place(str(second))) from None
    return {rule.name: _over_pairs(rule, values[rule.name]) for rule in rules}


def _image_measure(rule: DistanceRule) -> Callable[[Floats, Floats], float]:
    settings = CwSsimSettings(level=rule.level)
    known: Mapping[str, Callable[[Floats, Floats], float]] = {
        "mse": mse,
        "psnr": psnr,
        "ssim": ssim,
        "cw_ssim": lambda one, other: cw_ssim(one, other, settings),
    }
    return known[rule.measure]


def _over_pairs(rule: DistanceRule, values: Sequence[float]) -> DatasetDistance:
    """The mean over the pairs, and from it the distance."""
    mean = math.fsum(values) / len(values)
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 and math.isfinite(mean) else None
    how = {"pairs": len(values), "deviation": deviation, "given": False}
    if rule.measure == "psnr":
        return DatasetDistance(None, Fraction(mean) if math.isfinite(mean) else None, **how)  # type: ignore[arg-type]
    if rule.measure in SIMILARITIES:
        # Equal images can come out above 1 by a rounding error.
        similarity = min(Fraction(mean), Fraction(1)) if mean < 1 + 1e-9 else Fraction(mean)
        return DatasetDistance(1 - similarity, similarity, **how)  # type: ignore[arg-type]
    return DatasetDistance(Fraction(mean), None, **how)  # type: ignore[arg-type]


def _of_features(
    rules: Sequence[DistanceRule], source: Path, target: Path, extractor: str | None
) -> dict[str, DatasetDistance]:
    """From files of features, or from folders of images and an extractor."""
    both = source, target
    one, other = (extracted(extractor, image_files(path)) if extractor else read_features(path) for path in both)
    distances = {}
    for rule in rules:
        try:
            if rule.measure in ("euclidean", "cosine"):
                values = (euclidean if rule.measure == "euclidean" else cosine)(one, other)
                distances[rule.name] = _over_pairs(rule, values.tolist())
            else:
                value = frechet(one, other) if rule.measure == "frechet" else linkage(one, other, rule.measure)
                distances[rule.name] = DatasetDistance(Fraction(value), given=False)
        except ValueError as error:
            raise InputError(f"{rule.name} with {source.name}: {error}", Place(str(target))) from None
    return distances


def _paired(source: Path, target: Path) -> Iterator[tuple[Path, Path]]:
    """Source and target image of every pair."""
    sources = {path.stem: path for path in image_files(source)}
    targets = image_files(target)
    table = target / PAIRS_FILE
    named = _pairs_table(table) if table.is_file() else {path.name: path.stem for path in targets}
    for path in targets:
        if path.name not in named:
            raise InputError(f"no line for {path.name}", Place(str(table)))
        stem = Path(named[path.name]).stem if table.is_file() else named[path.name]
        if stem not in sources:
            hint = f"name the pairs in a table {PAIRS_FILE} with the columns target and source"
            raise InputError(f"no source image {shown(stem)} in {source.name}", Place(str(path)), hint)
        yield sources[stem], path


def _pairs_table(path: Path) -> dict[str, str]:
    table = read_table(path, {"target": "text", "source": "text"}, others=True)
    targets, sources = (
        [table.texts[name][code] for code in table.columns[name].tolist()] for name in ("target", "source")
    )
    partners: dict[str, str] = {}
    for row, name in enumerate(targets):
        if name in partners:
            raise InputError(f"{shown(name)} has two lines", table.place(row))
        partners[name] = sources[row]
    return partners


Pixels = NDArray[np.uint8]

SSIM_WINDOW = 11
SSIM_SIGMA = 1.5
_LUMA = (0.299, 0.587, 0.114)
_C1, _C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2


def luma(image: Pixels) -> Floats:
    """(H, W) grey levels of an image (H, W) or (H, W, 3) RGB.

    Raises:
        ValueError: another shape or type.
    """
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] != 3):
        raise ValueError(f"expected an image (H, W) or (H, W, 3) of uint8, got {image.shape} of {image.dtype}")
    if image.ndim == 2:
        return image.astype(np.float64)
    return np.asarray(image @ np.array(_LUMA))


def mse(one: Floats, other: Floats) -> float:
    """Mean squared error of two images (H, W); ValueError for different shapes."""
    _check_alike(one, other)
    return float(np.mean((one - other) ** 2))


def psnr(one: Floats, other: Floats) -> float:
    """Peak signal-to-noise ratio in dB of two images (H, W); infinite for equal ones."""
    error = mse(one, other)
    return 10 * math.log10(255**2 / error) if error else math.inf


def ssim(one: Floats, other: Floats) -> float:
    """Mean structural similarity of two images (H, W), at most 1; 1 for equal ones.

    Raises:
        ValueError: different shapes, or smaller than the window.
    """
    _check_alike(one, other)
    if min(one.shape) < SSIM_WINDOW:
        raise ValueError(f"SSIM needs images of {SSIM_WINDOW} x {SSIM_WINDOW} pixels at least")
    mean_one, mean_other = _blurred(one), _blurred(other)
    variance_one = _blurred(one * one) - mean_one**2
    variance_other = _blurred(other * other) - mean_other**2
    covariance = _blurred(one * other) - mean_one * mean_other
    above = (2 * mean_one * mean_other + _C1) * (2 * covariance + _C2)
    below = (mean_one**2 + mean_other**2 + _C1) * (variance_one + variance_other + _C2)
    return float(np.mean(above / below))


def _blurred(image: Floats) -> Floats:
    """The weighted mean at every place where the window lies within the image."""
    half = SSIM_WINDOW // 2
    weights = np.exp(-(np.arange(-half, half + 1) ** 2) / (2 * SSIM_SIGMA**2))
    weights /= weights.sum()
    rows: Floats = correlate1d(image, weights, axis=0)[half:-half]
    return np.asarray(correlate1d(rows, weights, axis=1)[:, half:-half])


def _check_alike(one: Floats, other: Floats) -> None:
    if one.shape != other.shape or one.ndim != 2 or not one.size:
        raise ValueError(f"expected two images of one size, got {_size(one)} and {_size(other)}")


def _size(image: Floats) -> str:
    return " x ".join(map(str, image.shape[1::-1])) + " pixels" if image.ndim == 2 else str(image.shape)
