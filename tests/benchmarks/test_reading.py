"""How long reading takes beside decoding the same bytes, and how much memory a stream needs."""

from __future__ import annotations

import random
import subprocess
import sys
import time

import numpy as np
import pytest

from verifier.perception.detections.coco import coco
from verifier.perception.detections.distances import motion
from verifier.perception.detections.nuscenes import result_rows
from verifier.perception.detections.sources import load_json

pytestmark = pytest.mark.benchmark
OBJECTS = 180_000
FRAMES = 6_000


def cpu_seconds(*functions, runs=3):
    """Shortest processor time of each function; they take turns."""
    times = [[] for _ in functions]
    for _ in range(runs):
        for mine, function in zip(times, functions, strict=True):
            started = time.process_time()
            function()
            mine.append(time.process_time() - started)
    return [min(mine) for mine in times]


def test_coco_takes_at_most_twice_as_long_as_decoding(tmp_path):
    orjson = pytest.importorskip("orjson")
    rng = random.Random(1)
    common = [
        {"image_id": i % FRAMES, "category_id": i % 10, "bbox": [rng.uniform(0, 500) for _ in range(4)]}
        for i in range(OBJECTS)
    ]
    truth = {
        "images": [{"id": i, "file_name": f"{i:06d}.jpg"} for i in range(FRAMES)],
        "categories": [{"id": i, "name": f"class {i}"} for i in range(10)],
        "annotations": [
            {**each, "id": i, "iscrowd": 0, "area": 1.5, "distance": rng.uniform(0, 80)}
            for i, each in enumerate(common)
        ],
    }
    raw = [orjson.dumps(truth), orjson.dumps([{**each, "score": rng.random()} for each in common])]
    paths = [tmp_path / "truth.json", tmp_path / "results.json"]
    for path, data in zip(paths, raw, strict=True):
        path.write_bytes(data)
    del truth, common
    ours, peer = cpu_seconds(
        lambda: coco(*paths, distance_field="distance"), lambda: [orjson.loads(data) for data in raw]
    )
    print(f"\nCOCO, {OBJECTS} + {OBJECTS} boxes: {ours:.2f} s, {ours / peer:.2f} x orjson.loads")
    assert ours / peer <= 2


def test_nuscenes_results_take_at_most_twice_as_long_as_decoding(tmp_path):
    orjson = pytest.importorskip("orjson")
    rng = random.Random(1)
    tokens = [f"{i:032x}" for i in range(6019)]

    def detection(token):
        return {
            "sample_token": token,
            "translation": [rng.uniform(0, 1000) for _ in range(3)],
            "size": [rng.random() for _ in range(3)],
            "rotation": [rng.random() for _ in range(4)],
            "velocity": [0.1, 0.2],
            "detection_name": rng.choice(["car", "truck", "pedestrian"]),
            "detection_score": rng.random(),
            "attribute_name": "vehicle.moving",
        }

    path = tmp_path / "results.json"
    raw = orjson.dumps({"meta": {}, "results": {token: [detection(token) for _ in range(40)] for token in tokens}})
    path.write_bytes(raw)
    index = {token: frame for frame, token in enumerate(tokens)}
    poses = motion(np.zeros((len(tokens), 3)), np.tile([1.0, 0, 0, 0], (len(tokens), 1)))

    def read():
        document, data = load_json(path)
        return result_rows(document, data, "results.json", index, poses)

    ours, peer = cpu_seconds(read, lambda: orjson.loads(raw))
    print(f"\nnuScenes, {40 * len(tokens)} boxes: {ours:.2f} s, {ours / peer:.2f} x orjson.loads")
    assert ours / peer <= 2


WRITE = """
import sys, numpy as np, pyarrow as pa, pyarrow.parquet as pq
path, rows, scored = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "yes"
rng, writer, step = np.random.default_rng(1), None, 250_000
for start in range(0, rows, step):
    at = np.arange(start, min(start + step, rows))
    names = np.array(["ped", "car"], dtype=object)[rng.integers(0, 2, len(at))]
    columns = {"frame": at // 20, "class": names, "x": rng.uniform(0, 80, len(at)), "y": rng.uniform(0, 80, len(at))}
    if scored:
        columns["score"] = rng.random(len(at))
    table = pa.table(columns)
    writer = writer or pq.ParquetWriter(path, table.schema)
    writer.write_table(table)
writer.close()
"""
STREAM = """
import re, sys
from pathlib import Path
from verifier.perception.detections import Tables, stream_tables
chunks = stream_tables(Tables.of(sys.argv[1], sys.argv[2]), classes=("ped", "car"))
rows = sum(len(chunk.data.annotations) for chunk in chunks)
# Not ru_maxrss: a child process inherits that of its parent.
peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text()).group(1)
print(rows, int(peak) / 1024)
"""


def test_the_memory_of_a_stream_does_not_grow_with_the_files(tmp_path):
    peaks = {}
    for rows in (500_000, 4_000_000):
        paths = [str(tmp_path / f"{name}_{rows}.parquet") for name in ("truth", "seen")]
        for path, scored in zip(paths, ("no", "yes"), strict=True):
            subprocess.run([sys.executable, "-c", WRITE, path, str(rows), scored], check=True, timeout=120)
        done = subprocess.run(
            [sys.executable, "-c", STREAM, *paths], check=True, timeout=120, capture_output=True, text=True
        )
        count, peak = done.stdout.split()
        assert int(count) == rows
        peaks[rows] = float(peak)
    print(f"\nstream of {rows} + {rows} rows: {peaks[rows]:.0f} MiB; of 500,000 + 500,000: {peaks[500_000]:.0f} MiB")
    assert peaks[4_000_000] < 1.2 * peaks[500_000]
    assert peaks[4_000_000] < 1024
