"""Pathified distances of many detections at once against one detection and one piece of path after the other."""

import time

import numpy as np
import pytest
from small_logs import made_logs, plain_distance, plain_path

from verifier.closedloop.pathifier import pathified_distance, paths_of

LOGS, IMAGES, EACH = 200, 300, 5


@pytest.mark.benchmark
def test_pathified_distances():
    """200 logs of 30 s at 10 Hz and 2.5 m/s on gently winding paths, five detections per image up to 40 m away."""
    rng = np.random.default_rng(0)
    turn = np.concatenate([rng.uniform(0, 6.3) + np.cumsum(rng.normal(0, 0.01, IMAGES)) for _ in range(LOGS)])
    step = 0.25 * np.column_stack([np.cos(turn), np.sin(turn)])
    drives = {str(log): (True, part.cumsum(axis=0)) for log, part in enumerate(np.split(step, LOGS))}
    logs = made_logs(drives)
    image = np.repeat(np.arange(logs.image_count), EACH)
    away, bearing = rng.uniform(1, 40, len(image)), turn[image] + rng.uniform(-0.6, 0.6, len(image))
    point = logs.position_m[image] + away[:, None] * np.column_stack([np.cos(bearing), np.sin(bearing)])
    start = time.perf_counter()
    paths = paths_of(logs)
    prepared = time.perf_counter()
    found = pathified_distance(paths, image, point, 2.0)
    done = time.perf_counter()

    rows = rng.integers(0, len(image), 500)
    corners = {}
    for log, (_, drive) in enumerate(drives.values()):
        corners[log] = (drive.tolist(), drive[-1] + 10 * paths.direction[(log + 1) * IMAGES - 1])
    begun = time.perf_counter()
    for row in rows.tolist():
        log, at = divmod(int(image[row]), IMAGES)
        drive, end = corners[log]
        expected = plain_distance(plain_path(drive, at, end), tuple(point[row]), 2.0)
        assert found[row] == pytest.approx(expected, abs=1e-9)
    peer = (time.perf_counter() - begun) / len(rows) * len(image)
    ours = done - prepared
    print(
        f"pathified distances of {len(image)} detections: {ours:.2f} s (paths {prepared - start:.2f} s); "
        f"plain Python {peer:.1f} s; {peer / ours:.0f} x faster"
    )
    assert peer / ours > 10
