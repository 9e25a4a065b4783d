"""Courses for tests: by hand from short lists, and made up at random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from verifier.closedloop.traces import Course


def course(
    positive: bool,
    images_m: Sequence[float],
    seen: Sequence[tuple[int, float, float]] = (),
    truth: Sequence[tuple[int, float]] = (),
    beyond_m: float = 10.0,
) -> Course:
    """Images at these positions; `seen` holds (image, distance, sensitivity), `truth` (image, distance)."""
    position = np.array(images_m, dtype=float)
    return Course(
        positive,
        position,
        float(position[-1]) + beyond_m,
        np.array([row[0] for row in seen], dtype=np.int64),
        np.array([row[1] for row in seen], dtype=float),
        np.array([row[2] for row in seen], dtype=float),
        np.array([row[0] for row in truth], dtype=np.int64),
        np.array([row[1] for row in truth], dtype=float),
    )


def random_course(rng: np.random.Generator, positive: bool | None = None) -> Course:
    """Up to 30 images 0 to 1 m apart, some at one place, with detections that come and go; never a round number."""
    images = int(rng.integers(1, 30))
    gaps = rng.exponential(rng.choice([0.05, 0.3, 1.0]), images) * (rng.random(images) < 0.9)
    position = np.cumsum(gaps)
    positive = bool(rng.random() < 0.5) if positive is None else positive
    detections, people = int(rng.integers(0, 60)), int(rng.integers(0, 20)) if positive else 0
    return Course(
        positive,
        position,
        float(position[-1] + rng.choice([0.0, 3.3, 10.0])),
        rng.integers(0, images, detections),
        distances(rng, detections),
        rng.random(detections),
        rng.integers(0, images, people),
        distances(rng, people),
    )


def distances(rng: np.random.Generator, count: int) -> np.ndarray:
    """Some at 0, the others within a few metres."""
    return np.where(rng.random(count) < 0.2, 0.0, rng.exponential(3, count))


def with_fewer(whole: Course, keep: np.ndarray) -> Course:
    """The course with only some of its detections."""
    return Course(
        whole.positive,
        whole.image_s_m,
        whole.end_s_m,
        whole.detection_image[keep],
        whole.detection_distance_m[keep],
        whole.detection_sensitivity[keep],
        whole.truth_image,
        whole.truth_distance_m,
    )
