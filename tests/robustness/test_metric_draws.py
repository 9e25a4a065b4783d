"""Metrics of drawn images: a draw with weights is the data set in which images are repeated as often as these say."""

from dataclasses import replace

import numpy as np
import pytest
from adr_studies import adr_study

from verifier.base.statistics import drawn_with_replacement
from verifier.perception.detections.columns import Boxes, DetectionSet
from verifier.perception.matching import CONVENTIONS
from verifier.robustness.adr import AdrSettings
from verifier.robustness.detection_metrics import TABLE_6, Performance, coco_metrics, count_hits
from verifier.robustness.draws import drawn_adr, drawn_coco, drawn_shares

pytest.importorskip("pycocotools", reason="pycocotools is not installed")

COCO = CONVENTIONS["coco"]


def boxes(frame, label, box_2d, score=None):
    n = len(frame)
    return Boxes(
        np.array(frame, np.int64).reshape(n),
        np.array(label, np.int32).reshape(n),
        None if score is None else np.array(score, float),
        np.array(box_2d, float).reshape(n, 4),
        None,
        None,
        {},
        np.arange(1, n + 1),
        np.zeros(n, np.int32),
    )


def data_of(frames, truth, found, ignored=None):
    return DetectionSet(
        ("car", "ped"),
        ("all",),
        np.zeros(frames, np.int32),
        tuple(f"i{number}" for number in range(frames)),
        truth,
        found,
        ignored,
        ("f",),
    )


def random_data(rng, frames=7):
    """Objects of three sizes and two classes, and detections near some of them; one region to ignore."""
    n = int(rng.integers(8, 25))
    frame, label = np.sort(rng.integers(0, frames, n)), rng.integers(0, 2, n)
    corner, side = rng.uniform(0, 300, (n, 2)), rng.choice([20, 60, 120], n)[:, None] * rng.uniform(0.9, 1.1, (n, 2))
    box = np.hstack([corner, corner + side])
    shifted = box + rng.normal(0, 1, box.shape) * rng.choice([1, 4, 40], n)[:, None]
    shifted[:, 2:] = np.maximum(shifted[:, 2:], shifted[:, :2] + 1)
    order = np.argsort(frame, kind="stable")
    found = boxes(frame[order], label[order], shifted[order], rng.permutation(n) / n)  # no ties: copies would mix
    region = boxes([0], [1], [[0, 0, 400, 100]])
    return data_of(frames, boxes(frame, label, box), found, region)


def repeated(data, weight):
    """The data set in which image i occurs weight[i] times, by copying rows."""
    source = np.repeat(np.arange(len(weight)), weight)

    def copies(of):
        rows = [np.flatnonzero(of.frame == image) for image in source]
        taken = of.take(np.concatenate([np.zeros(0, np.int64), *rows]).astype(np.int64))
        return replace(taken, frame=np.repeat(np.arange(len(source)), [len(each) for each in rows]))

    return data_of(len(source), copies(data.annotations), copies(data.detections), copies(data.ignored))


@pytest.mark.parametrize("seed", range(6))
def test_a_draw_is_the_data_set_with_repeated_images(seed):
    rng = np.random.default_rng(seed)
    data = random_data(rng)
    weights = np.vstack([np.ones((1, 7), int), drawn_with_replacement(7, 3, rng)])
    found = drawn_coco(data, tuple(TABLE_6), weights)
    shares = drawn_shares(data, COCO, 0.3, weights)
    adr = AdrSettings((0.2, 0.5, 1.0))
    rates = drawn_adr(data, data, weights, adr)
    assert (weights.sum(axis=1) == 7).all()
    for number, weight in enumerate(weights):
        copied = repeated(data, weight)
        wanted = coco_metrics(copied)
        for name in TABLE_6:
            value = found[name][number]
            assert np.isnan(value) if name not in wanted else value == pytest.approx(wanted[name], abs=1e-9), name
        hits = count_hits(copied, COCO, 0.3)
        wanted = Performance(counts=hits).values
        for name in ("recall", "precision"):
            assert shares[name][number] == pytest.approx(float(wanted.get(name, np.nan)), nan_ok=True)
        assert rates[number] == pytest.approx(adr_study(copied, {}, adr).baseline.adr)


def test_nothing_detected_and_nothing_drawn():
    data = data_of(2, boxes([0], [0], [[0, 0, 9, 9]]), boxes([], [], [], []), boxes([], [], []))
    weights = np.array([[2, 0], [0, 2]])
    assert drawn_coco(data, ["AP", "AR1"], weights)["AP"].tolist() == pytest.approx([0, np.nan], nan_ok=True)
    shares = drawn_shares(data, COCO, None, weights)
    assert shares["recall"].tolist() == pytest.approx([0, np.nan], nan_ok=True)
    assert np.isnan(shares["precision"]).all()
