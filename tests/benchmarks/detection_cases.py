"""What each benchmark of matching and counting measures; to be run as `cases.py` is.

The nuScenes devkit runs in a Python of its own, named by the environment variable VERIFIER_NUSCENES_PYTHON.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from cases import HERE, Measured, alternately, children_cpu_s, peak_mib
from made_up_boxes import DRIVE_CLASSES, image_set, nuscenes_set, write_drives

from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.context_counts import Memory, divided, with_contexts
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.counting import Count, confusion_counts, count_and_observe
from verifier.perception.confusion.document import write_confusion
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.streaming import StreamFiles, count_chunks
from verifier.perception.detections import Tables, read_detections, stream_tables
from verifier.perception.detections.columns import Boxes, DetectionSet
from verifier.perception.matching import MatchingPolicy, convention

BINS = Bins((*np.arange(0.0, 110.0, 10.0).tolist(), np.inf))
DRIVES = MatchingPolicy("centre_bev", 2.0)
DRIVE_RULE = CountingRule("class", DRIVE_CLASSES, BINS, "ground_plane", "own_bin", "nearest_bin")
REMEMBERED = Memory(Contexts("run", 5), seed=None)
FRAMES_OF_NUSCENES_VAL = 6019
FRAMES_FOR_THE_DEVKIT = 600


class NotInstalledError(Exception):
    """What a case is compared with is not there."""


def counted(data: DetectionSet, policy: MatchingPolicy) -> Count:
    """Matched and counted by class and distance."""
    measure = "given" if data.annotations.box_3d is None else "ground_plane"
    return count_and_observe(data, policy, CountingRule("class", data.classes, BINS, measure))[0]


def images_and_a_sort() -> Measured:
    """180,000 image detections matched and counted, against sorting their columns; the slowest of three policies."""
    data = image_set()
    found = data.detections
    assert found.box_2d is not None
    assert found.score is not None
    columns = (*found.box_2d.T, found.score, found.label, found.frame)
    policies = {"class-agnostic": MatchingPolicy("iou_2d", 0.5)}
    policies |= {name: convention(name) for name in ("coco", "supervision")}
    functions = [lambda policy=policy: counted(data, policy) for policy in policies.values()]
    functions[0]()
    peak = peak_mib()
    *ours, wide, narrow = alternately(9, *functions, lambda: np.lexsort(columns), lambda: np.lexsort(columns[-3:]))
    each = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in zip(policies, ours, strict=True))
    detail = f"{len(found)} detections, {each}; sorting frame, class and score alone {narrow:.3f} s"
    return Measured(max(ours), wide, peak, detail)


def images_and_supervision(frames: int, per_frame: int, objects: int) -> Measured:
    """The same matrix as supervision's `ConfusionMatrix`, by distance as well."""
    if find_spec("supervision") is None:
        raise NotInstalledError("supervision is not installed")
    data = image_set(frames, per_frame, objects)
    policy = convention("supervision")
    found = counted(data, policy)
    peak = peak_mib()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from supervision import ConfusionMatrix
    annotations, detections = data.annotations, data.detections
    assert annotations.box_2d is not None
    assert detections.box_2d is not None
    assert detections.score is not None
    true = np.hstack([annotations.box_2d, annotations.label[:, None]])
    rows = np.hstack([detections.box_2d, detections.label[:, None], detections.score[:, None]])
    # Supervision takes a list of arrays, one per image; making it is not counted.
    targets = [true[annotations.frame == i] for i in range(frames)]
    predictions = [rows[detections.frame == i] for i in range(frames)]
    names = list(data.classes)

    def peer() -> ConfusionMatrix:
        return ConfusionMatrix.from_tensors(predictions, targets, names, conf_threshold=-1.0, iou_threshold=0.5)

    # Supervision has a row per true class; what is not detected is its last column and our last row.
    ours = found.tally.dense(BINS.count, len(names) + 1)[0].sum(axis=0)[:, :-1]
    if not np.array_equal(ours.T, peer().matrix[:-1]):
        raise ValueError("supervision counts otherwise")
    ours_s, peer_s = alternately(7, lambda: counted(data, policy), peer)
    detail = f"{frames} images x {per_frame} detections x {objects} objects, equal counts"
    return Measured(ours_s, peer_s, peak, detail)


def write_coco(folder: Path) -> list[str]:
    """Images with as many objects as in COCO val, as files of annotations and of results."""
    data = image_set()
    truth, found = folder / "truth.json", folder / "results.json"

    def rows(boxes: Boxes) -> list[dict[str, Any]]:
        assert boxes.box_2d is not None
        size = boxes.box_2d[:, 2:] - boxes.box_2d[:, :2]
        columns = zip(
            boxes.frame.tolist(), boxes.label.tolist(), boxes.box_2d[:, :2].tolist(), size.tolist(), strict=True
        )
        return [{"image_id": f, "category_id": c, "bbox": [*at, *size]} for f, c, at, size in columns]

    assert data.annotations.distance_m is not None
    assert data.detections.score is not None
    own = zip(rows(data.annotations), data.annotations.distance_m.tolist(), strict=True)
    document = {
        "images": [
            {"id": k, "file_name": f"{k:06d}.jpg", "width": 640, "height": 480} for k in range(data.frame_count)
        ],
        "categories": [{"id": k, "name": name} for k, name in enumerate(data.classes)],
        "annotations": [
            {**row, "id": k, "iscrowd": 0, "area": row["bbox"][2] * row["bbox"][3], "distance": away}
            for k, (row, away) in enumerate(own, 1)
        ],
    }
    scored = zip(rows(data.detections), data.detections.score.tolist(), strict=True)
    truth.write_text(json.dumps(document))
    found.write_text(json.dumps([{**row, "score": score} for row, score in scored]))
    return [str(truth), str(found)]


def coco_and(program: str) -> Measured:
    """CPU seconds of `verify confusion` on COCO files, against another program: whole processes, equal matches."""
    if find_spec(program) is None:
        raise NotInstalledError(f"{program} is not installed")
    with tempfile.TemporaryDirectory() as name:
        truth, found = write_coco(Path(name))
        counts = Path(name) / "counts.json"
        convention = "supervision" if program == "supervision" else "coco"
        command = ["--format=coco", f"--annotations={truth}", f"--detections={found}", f"--convention={convention}"]
        command += ["--distance-field=distance", "--bins=0..100:10,inf", f"--output={counts}"]
        peer = [sys.executable, str(Path(__file__).with_name("coco_peers.py")), program, truth, found]
        matched = int(subprocess.run(peer, check=True, capture_output=True).stdout)
        found_s = whole_processes(5, [sys.executable, "-m", "verifier", "confusion", *command], peer)
        ours = json.loads(counts.read_text())["totals"]["matched"]
        if ours != matched:
            raise ValueError(f"{program} matches {matched} detections, and not {ours}")
    return Measured(*found_s, f"180,000 detections of 35,000 objects in 5,000 images, {matched} matches in both")


def whole_processes(rounds: int, ours: list[str], peer: list[str]) -> tuple[float, float, float]:
    """Median CPU seconds of two commands, and the largest memory of ours; both run from compiled modules."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}

    def run(command: list[str]) -> None:
        subprocess.run(command, check=True, capture_output=True, env=environment)

    run(ours)
    peak = peak_mib(resource.getrusage(resource.RUSAGE_CHILDREN))
    ours_s, peer_s = alternately(rounds, lambda: run(ours), lambda: run(peer), clock=children_cpu_s)
    return ours_s, peer_s, peak


def kitti_and_imports() -> Measured:
    """CPU seconds of `verify confusion` on the real drives of KITTI, tests of dependence included, against importing
    the libraries that it needs."""
    data = HERE.parents[2] / "shared/data/kitti_tracking"
    if not data.is_dir():
        raise NotInstalledError("the drives of KITTI are not there")
    with tempfile.TemporaryDirectory() as name:
        classes = Path(name) / "classes.txt"
        classes.write_text("Pedestrian -> ped\nCar -> car\nCyclist -> cyc\n* -> ignore\n")
        command = ["--format=kitti_tracking", f"--annotations={data}/label_02", f"--detections={data}/det_pointrcnn"]
        command += [f"--class-map={classes}", "--bins=0..100:10,inf", f"--output={name}/counts.json"]
        imports = [sys.executable, "-c", "import numpy, pandas, scipy.sparse"]
        found_s = whole_processes(5, [sys.executable, "-m", "verifier", "confusion", *command], imports)
        totals = json.loads((Path(name) / "counts.json").read_text())["totals"]
    return Measured(*found_s, f"12 drives, {totals['annotations']} objects, {totals['detections']} detections")


def nuscenes_and_the_devkit() -> Measured:
    """As many frames as nuScenes val, against the devkit's `accumulate` over all classes.

    The devkit walks through a class's detections one by one, so some frames are measured and the time is scaled up.
    """
    python = os.environ.get("VERIFIER_NUSCENES_PYTHON")
    if not python:
        raise NotInstalledError("VERIFIER_NUSCENES_PYTHON names no Python with nuscenes-devkit")
    data, policy = nuscenes_set(FRAMES_OF_NUSCENES_VAL), convention("nuscenes")
    matched = counted(data, policy).totals["matched"]
    peak = peak_mib()
    (ours_s,) = alternately(5, lambda: counted(data, policy))
    part = nuscenes_set(FRAMES_FOR_THE_DEVKIT)
    (ours_part_s,) = alternately(5, lambda: counted(part, policy))
    peer_s = devkit_seconds(part, python)
    detail = (
        f"{len(data.annotations)} annotations, {len(data.detections)} detections, {matched} matches; the devkit's "
        f"time is {peer_s:.2f} s for {FRAMES_FOR_THE_DEVKIT} frames (ours {ours_part_s:.4f} s), scaled up"
    )
    return Measured(ours_s, peer_s * FRAMES_OF_NUSCENES_VAL / FRAMES_FOR_THE_DEVKIT, peak, detail)


def devkit_seconds(data: DetectionSet, python: str) -> float:
    """Seconds in `accumulate` for all classes; making the devkit's box objects is not counted."""

    def rows(boxes: Boxes) -> list[list[float]]:
        assert boxes.box_3d is not None
        score = np.zeros(len(boxes)) if boxes.score is None else boxes.score
        columns = zip(boxes.frame, boxes.label, *boxes.box_3d[:, :2].T, score, strict=True)
        return [[int(f), int(c), float(x), float(y), float(s)] for f, c, x, y, s in columns]

    job = {
        "classes": list(data.classes),
        "threshold": 2.0,
        "pairs": False,
        "annotations": rows(data.annotations),
        "detections": rows(data.detections),
    }
    script = Path(__file__).resolve().parent.parent / "support" / "nuscenes_peer.py"
    done = subprocess.run([python, script], input=json.dumps(job), capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["seconds"])


def count_drives(folder: Path, rows_per_chunk: int = 200_000, memory: Memory | None = None) -> Count:
    """Count the tables of `folder` with a checkpoint there, and write the document beside it."""

    def chunks(after):
        tables = (folder / f"{name}.parquet" for name in ("annotations", "detections"))
        options = {"rows_per_chunk": rows_per_chunk, "after": after, "numbered": memory is not None}
        return stream_tables(Tables.of(*tables), classes=DRIVE_CLASSES, **options)

    done = count_chunks(chunks, DRIVES, DRIVE_RULE, StreamFiles(folder / "checkpoint.json"), memory=memory)
    counts = confusion_counts(done.counted, DRIVE_RULE, DRIVES)
    if memory is not None and done.counted.contexts is not None:
        counts = divided(counts, done.counted.contexts, DRIVE_RULE, memory)
    write_confusion(counts, folder / "counts.json")
    return done.counted


def numbers_of(raw: bytes) -> list[Any]:
    """What was counted: matrices, those by context, those of every sequence."""
    found = json.loads(raw)
    own = [{key: each[key] for key in ("name", "frames", "counts")} for each in found["sequences"]]
    return [found["labels"], found["bins"], {**found["contexts"], "tests": None, "tracks": None}, own]


def counted_at_once(folder: Path, memory: Memory) -> bytes:
    """The document of the same tables, read and counted at once."""
    data = read_detections("table", folder / "annotations.parquet", folder / "detections.parquet")
    found, observed = count_and_observe(data, DRIVES, DRIVE_RULE)
    counts = with_contexts(confusion_counts(found, DRIVE_RULE, DRIVES), data, observed, DRIVE_RULE, memory)
    write_confusion(counts, folder / "at_once.json")
    return (folder / "at_once.json").read_bytes()


def written_drives(folder: Path, objects: int, *more: str) -> None:
    """Write the tables in a process of its own, whose memory is not ours."""
    command = [sys.executable, __file__, "--write", str(folder), str(objects), *more]
    subprocess.run(command, check=True)


def stream(objects: int, memory: Memory | None = None) -> Measured:
    """CPU seconds of counting as many objects as detections from Parquet, against reading the batches of both files;
    beside it a sort of the same rows by all their numbers, which takes more memory."""
    from pyarrow.parquet import ParquetFile, read_table

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written_drives(folder, objects, *(["--tracked"] if memory else []))
        begun = time.process_time()
        totals = count_drives(folder, memory=memory).totals
        first_s, peak = time.process_time() - begun, own_peak_mib()
        if totals["annotations"] != objects or totals["detections"] != objects:
            raise ValueError(f"{totals} of {objects} objects and detections")
        files = [folder / "annotations.parquet", folder / "detections.parquet"]

        def ours() -> None:
            (folder / "checkpoint.json").unlink()
            count_drives(folder, memory=memory)

        def read() -> None:
            assert sum(len(batch) for file in files for batch in ParquetFile(file).iter_batches()) == 2 * objects

        size = sum(file.stat().st_size for file in files) / 2**20
        rounds = max(3, 10_000_000 // objects)
        ours_s, peer_s = alternately(rounds, ours, read, clock=time.process_time)
        tables = [read_table(file, columns=["x", "y", "frame"]) for file in files]
        columns = [[column.to_numpy() for column in table.columns] for table in tables]
        (sort_s,) = alternately(1, lambda: [np.lexsort(each) for each in columns], clock=time.process_time)
    detail = f"{objects} objects, {totals['matched']} matches, {size:.0f} MiB of files"
    detail += f"; {ours_s / sort_s:.2f} x sorting the same rows; with imports {first_s:.2f} s"
    return Measured(ours_s, peer_s, peak, detail)


def own_peak_mib() -> float:
    """Largest resident memory of this process; `ru_maxrss` would begin with that of the process it came from."""
    status = Path("/proc/self/status")
    if not status.exists():
        return peak_mib()
    found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
    assert found is not None
    return int(found[1]) / 2**10


def killed_stream(objects: int = 1_000_000, kills: int = 5, memory: Memory | None = None) -> Measured:
    """A run that is killed again and again, against one that is not: both end with the same file."""
    tracked = ["--tracked"] if memory else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written_drives(folder, objects, *tracked)
        command = [sys.executable, __file__, "--count", str(folder), *tracked]
        (peer_s,) = alternately(1, lambda: subprocess.run(command, check=True))
        whole = (folder / "counts.json").read_bytes()
        checkpoint = folder / "checkpoint.json"
        checkpoint.unlink()
        (folder / "counts.json").unlink()
        started, stops = time.perf_counter(), []
        for kill in range(kills):
            process = subprocess.Popen(command)
            before = stops[-1] if stops else 0
            while process.poll() is None and parts_done(checkpoint) < before + 2:
                time.sleep(0.001)
            time.sleep(0.013 * kill)
            process.send_signal(signal.SIGKILL)
            if process.wait() != -signal.SIGKILL or (folder / "counts.json").exists():
                raise ValueError("the run had ended before it was killed")
            stops.append(parts_done(checkpoint))
        subprocess.run(command, check=True)
        ours_s = time.perf_counter() - started
        if (folder / "counts.json").read_bytes() != whole:
            raise ValueError("the run that was killed counts otherwise")
        if memory is not None and numbers_of(counted_at_once(folder, memory)) != numbers_of(whole):
            raise ValueError("what is counted at once is counted otherwise")
    detail = f"{objects} objects, killed after {', '.join(map(str, stops))} chunks, equal files"
    return Measured(ours_s, peer_s, peak_mib(resource.getrusage(resource.RUSAGE_CHILDREN)), detail)


def parts_done(checkpoint: Path) -> int:
    """Chunks that the checkpoint counts; 0 without one."""
    return json.loads(checkpoint.read_text())["parts"] if checkpoint.exists() else 0


CASES: dict[str, Callable[[], Measured]] = {
    "images_and_a_sort": images_and_a_sort,
    "images_and_supervision": lambda: images_and_supervision(5000, 36, 7),
    "crowded_images_and_supervision": lambda: images_and_supervision(500, 360, 70),
    **{f"coco_and_{name}": partial(coco_and, name) for name in ("supervision", "pycocotools", "hotcoco")},
    "kitti_and_imports": kitti_and_imports,
    "nuscenes_and_the_devkit": nuscenes_and_the_devkit,
    "stream_of_a_million": lambda: stream(1_000_000),
    "stream_of_twenty_millions": lambda: stream(20_000_000),
    "killed_stream": killed_stream,
    "remembered_stream_of_a_million": lambda: stream(1_000_000, REMEMBERED),
    "remembered_stream_of_five_millions": lambda: stream(5_000_000, REMEMBERED),
    "killed_remembered_stream": lambda: killed_stream(1_000_000, memory=REMEMBERED),
}


def main() -> None:
    """Measure a case, or do what a case wants done in a process of its own."""
    match sys.argv[1:]:
        case "--write", folder, objects, *more:
            write_drives(Path(folder), int(objects), tracked=bool(more))
        case "--count", folder, *more:
            count_drives(Path(folder), rows_per_chunk=40_000, memory=REMEMBERED if more else None)
        case name, *_:
            try:
                print(json.dumps(dataclasses.asdict(CASES[name]())))
            except NotInstalledError as error:
                print(json.dumps({"skipped": str(error)}))


if __name__ == "__main__":
    main()
