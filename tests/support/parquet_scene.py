"""Random Parquet tables of any size, and a run over them that can be made to die: run as a program by the tests.

python parquet_scene.py FOLDER DIE_AFTER     counts FOLDER/annotations.parquet against FOLDER/detections.parquet
                                             and is killed at the given step (a negative one never comes)
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from verifier.perception.confusion import write_confusion
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.counting import confusion_counts
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.streaming import StreamFiles, count_chunks, finish
from verifier.perception.detections import Tables, stream_tables
from verifier.perception.matching import MatchingPolicy

CLASSES = ("ped", "obs")
POLICY = MatchingPolicy("centre_bev", 2.0)
RULE = CountingRule("class", CLASSES, Bins((0.0, 10.0, 20.0, np.inf)), "ground_plane", "own_bin", "nearest_bin")


def write_tables(folder, rows, frames, sequences=3, seed=1):
    """Annotations, detections (some on objects, some not) and the list of frames, sorted by sequence and frame."""
    random = np.random.default_rng(seed)
    frame = np.sort(random.integers(0, frames, rows))
    place = random.uniform(-30, 30, (rows, 2))
    kind = random.integers(0, 2, rows)
    seen = random.random(rows) < 0.7
    more = np.sort(random.integers(0, frames, rows // 5))
    found = np.concatenate([frame[seen], more])
    order = np.argsort(found, kind="stable")
    at = np.concatenate(
        [place[seen] + random.normal(0, 0.8, (seen.sum(), 2)), random.uniform(-30, 30, (len(more), 2))]
    )
    label = np.concatenate(
        [np.where(random.random(seen.sum()) < 0.9, kind[seen], 0), random.integers(0, 2, len(more))]
    )
    per_sequence = -(-frames // sequences)
    _write(folder / "annotations.parquet", frame, per_sequence, kind, place)
    _write(
        folder / "detections.parquet", found[order], per_sequence, label[order], at[order], random.random(len(order))
    )
    every = np.arange(frames)
    table = {"sequence": _sequence(every, per_sequence), "frame": every}
    pq.write_table(pa.table(table), folder / "frames.parquet", row_group_size=50_000)


def _write(path, frame, per_sequence, kind, place, score=None):
    columns = {
        "sequence": _sequence(frame, per_sequence),
        "frame": frame,
        "class": pa.DictionaryArray.from_arrays(kind.astype(np.int32), list(CLASSES)),
        "x": place[:, 0],
        "y": place[:, 1],
    }
    if score is not None:
        columns["score"] = score
    pq.write_table(pa.table(columns), path, row_group_size=50_000)


def _sequence(frame, per_sequence):
    number = (frame // per_sequence).astype(np.int32)
    return pa.DictionaryArray.from_arrays(number, [f"drive{k}" for k in range(int(number.max()) + 1)])


def chunks_of(folder, rows):
    tables = Tables.of(*(folder / f"{name}.parquet" for name in ("annotations", "detections")),
                       frames=folder / "frames.parquet")  # fmt: skip

    def chunks(after):
        return stream_tables(tables, classes=CLASSES, rows_per_chunk=rows, after=after)

    return chunks


def run(folder, die_after, rows=2000, rule=RULE, die=lambda: os.kill(os.getpid(), signal.SIGKILL)):
    """Count with checkpoint and record; die at a step. A step is a chunk before, or one after it is counted."""
    files = StreamFiles(folder / "checkpoint.json", folder / "record.csv", {"rows": rows})
    steps = iter(range(10**9))

    def step(*_):
        if next(steps) == die_after:
            die()

    def prepared(data):
        step()
        return data

    found = count_chunks(chunks_of(folder, rows), POLICY, rule, files, prepared, step)
    step()
    write_confusion(confusion_counts(found.counted, rule, POLICY, dict(found.origin)), folder / "counts.json")
    finish(files)


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
