"""Parquet tables of objects on tracks that come and go."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from parquet_scene import CLASSES

STEPS = {"a": 1, "b": 2, "c": 1}
"""Sequence -> step of the grid of its frames; those of c lie on none."""


def write_tracks(folder, seed=3, frames=60, name=lambda track: track if track else -1):
    """Objects on tracks that come and go, some without one; most frames are listed, many tracks have gaps.

    Some frames have no object, some only one without a track; one track is away for 15 frames at a time.
    """
    random = np.random.default_rng(seed)
    rows, found, listed = [], [], []
    for sequence, step in STEPS.items():
        number = np.cumsum(random.integers(1, 4, frames)) if sequence == "c" else step * np.arange(3, frames + 3)
        number = number[random.random(frames) < 0.9]
        listed += [(sequence, int(each)) for each in number]
        missed = dict.fromkeys(range(6), False)
        for frame in number.tolist():
            for track in range(6):
                away = (frame % 13 == 0 and track) or frame % 11 == 0 or (track == 2 and frame // 15 % 2)
                if random.random() < 0.15 or away:
                    continue
                place, kind = random.uniform(0, 25, 2) if track > 3 else (5.0 * track + 2, 1.0 + track), track % 2
                rows.append((sequence, frame, CLASSES[kind], *place, name(track)))
                missed[track] = random.random() < (0.8 if missed[track] else 0.3)
                if not missed[track]:
                    found.append((sequence, frame, CLASSES[kind], *place, random.random()))
            if random.random() < 0.3:
                found.append((sequence, frame, CLASSES[0], *random.uniform(0, 25, 2), random.random()))
    _write(folder / "annotations.parquet", ("sequence", "frame", "class", "x", "y", "track"), rows)
    _write(folder / "detections.parquet", ("sequence", "frame", "class", "x", "y", "score"), found)
    _write(folder / "frames.parquet", ("sequence", "frame"), listed)


def _write(path, names, rows):
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), path, row_group_size=100)
