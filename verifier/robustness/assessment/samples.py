"""Files in place of numbers: frequencies by a labelled sample, performance by detections, features of images.

A sample is a table (CSV or Parquet) with the columns `image` and `circumstance`: a row for each circumstance that an
image shows, and one with an empty circumstance for an image that shows none. The images are a sample of those in use,
or of the source data; the relative frequency (M2 of Wozniak, Segura and Mazo 2024, Table 2) is a share of them, and
its interval that of Clopper and Pearson (1934), for images that were drawn independently of each other.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.errors import InputError, Place, UsageError, one_line, unknown_name
from verifier.base.libraries import library
from verifier.base.tables import read_table
from verifier.perception.detections import Reading, read_class_map, read_detections
from verifier.perception.matching import CONVENTIONS
from verifier.robustness.assessment.circumstances import Counted
from verifier.robustness.assessment.definition import Assessment, DataSet, changed
from verifier.robustness.detection_metrics import measured
from verifier.robustness.detectors.protocol import read_image

LIBRARY = "torchvision:"
"""Before the name of an extractor."""
NODE = "flatten"
"""Of its graph: what the last layer classifies by."""


def with_samples(assessment: Assessment, folder: Path) -> Assessment:
    """The assessment with the frequencies that its samples give to circumstances for which none is stated.

    Raises:
        InputError: a sample cannot be read, or names a circumstance that the assessment does not have.
        UsageError: frequencies that do not fit together.
    """
    known = list(assessment.circumstances)
    for where, name in assessment.samples.items():
        counted = _counts(folder / name, [circumstance.name for circumstance in known])
        for at, circumstance in enumerate(known):
            count = counted[circumstance.name]
            share = Fraction(count.shown, count.images)
            if where == "use" and circumstance.frequency is None:
                known[at] = replace(circumstance, frequency=share, counted=count)
            elif where == "source" and circumstance.source_frequency is None:
                known[at] = replace(circumstance, source_frequency=share, source_counted=count)
    return changed(assessment, circumstances=tuple(known))


def _counts(path: Path, names: Sequence[str]) -> dict[str, Counted]:
    table = read_table(path, {"image": "text", "circumstance": "note"})
    images, shown = table.columns["image"], table.columns["circumstance"]
    texts = table.texts["circumstance"]
    for code, text in enumerate(texts):
        if text and text not in names:
            message, hint = unknown_name("circumstance", text, names)
            raise InputError(message, table.place(int((shown == code).argmax())), hint)
    count = len(np.unique(images))
    if not count:
        raise InputError("no image in the sample", Place(str(path)))
    of = {name: len(np.unique(images[shown == code])) for code, name in enumerate(texts)}
    return {name: Counted(of.get(name, 0), count) for name in names}


def with_measured(assessment: Assessment, folder: Path) -> Assessment:
    """The assessment with the performance of every data set whose detections are given.

    The metrics that were chosen are measured; without a choice precision and recall, which then are the choice.

    Args:
        assessment: names files and metrics.
        folder: where its paths start from.

    Raises:
        InputError: files that cannot be read.
        UsageError: a chosen metric that is not defined on a data set, or a library that is missing.
    """
    data = (assessment.source, *assessment.targets)
    if not any(data_set.detections is not None for data_set in data):
        return assessment
    metrics = assessment.metrics or ("precision", "recall")
    source, *targets = (_measured(data_set, metrics, folder) for data_set in data)
    return changed(assessment, source=source, targets=tuple(targets), metrics=metrics)


def _measured(data: DataSet, metrics: tuple[str, ...], folder: Path) -> DataSet:
    files = data.detections
    if files is None:
        return data
    mapping = None if files.class_map is None else read_class_map(folder / files.class_map)
    paths = folder / files.annotations, folder / files.detections
    detections = read_detections(files.format, *paths, Reading(mapping))
    policy = replace(CONVENTIONS["coco"], threshold=float(files.iou))
    least = None if files.min_score is None else float(files.min_score)
    return replace(data, performance=measured(detections, metrics, policy, least))


def extracted(name: str, images: Sequence[Path]) -> Floats:
    """(n, k) features of images, by a network of torchvision with its published weights: FID of `inception_v3` is the
    Fréchet distance of these.

    Args:
        name: `torchvision:NAME`.

    Raises:
        UsageError: the library is missing, or has no such network, or none with weights, or these cannot be loaded.
        InputError: an image cannot be read.
    """
    torch, models, own = library("torch"), library("torchvision.models"), name.removeprefix(LIBRARY)
    try:
        weights = models.get_model_weights(own).DEFAULT
        network = _loaded(models, own, weights).eval()
        extraction = library("torchvision.models.feature_extraction")
        cut = extraction.create_feature_extractor(network, {NODE: "features"}, suppress_diff_warning=True)
    except (ValueError, AttributeError) as error:
        raise UsageError(f"extractor {name}: {error}") from None
    prepare, rows = weights.transforms(), []
    with torch.no_grad():
        for path in images:
            pixels = torch.from_numpy(np.array(read_image(path).pixels)).permute(2, 0, 1)
            rows.append(np.asarray(cut(prepare(pixels)[None])["features"][0], np.float64))
    return np.stack(rows)


def _loaded(models: Any, name: str, weights: Any) -> Any:
    """The network with its weights; UsageError where these can be neither fetched nor read."""
    try:
        return models.get_model(name, weights=weights)
    except (ValueError, AttributeError):
        raise
    except Exception as error:  # torch raises errors of many kinds where a file holds something else
        raise UsageError(
            f"extractor {LIBRARY}{name}: its weights cannot be loaded: {one_line(str(error))[:200]}\n"
            f"  hint: download {weights.url} into the folder hub/checkpoints of TORCH_HOME (~/.cache/torch)"
        ) from None
