"""Counting chunk by chunk: the same as at once, whatever the chunks; a killed run goes on and loses nothing."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import parquet_scene
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parquet_scene import POLICY, RULE, chunks_of, run, write_tables
from shorthands import count_detections, of_sequences

from verifier.base.errors import InputError, UsageError
from verifier.perception.confusion.counting import confusion_counts
from verifier.perception.confusion.document import read_counts
from verifier.perception.confusion.streaming import StreamFiles, added_origin, count_chunks
from verifier.perception.detections import keep_scores, read_detections
from verifier.perception.matching import MatchingPolicy


class DiedError(Exception):
    pass


def die():
    raise DiedError


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_tables(folder, 6000, 1500)
    return folder


@pytest.fixture
def folder(tables, tmp_path):
    for path in tables.glob("*.parquet"):
        (tmp_path / path.name).hardlink_to(path)
    return tmp_path


def at_once(folder, rule=RULE):
    data = read_detections(
        "table", folder / "annotations.parquet", folder / "detections.parquet", frames=folder / "frames.parquet"
    )
    return confusion_counts(count_detections(data, POLICY, rule), rule, POLICY)


def check(found, whole):
    assert np.array_equal(found.counts, whole.counts)
    assert found.sequences.names == whole.sequences.names
    assert found.sequences.frames.tolist() == whole.sequences.frames.tolist()
    assert np.array_equal(of_sequences(found), of_sequences(whole))
    assert found.metadata["totals"] == whole.metadata["totals"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
@given(rows=st.integers(1, 7000), family=st.booleans())
def test_chunks_of_any_size_count_the_same(tables, rows, family):
    rows = max(rows, 60)
    rule = replace(RULE, thresholds=(0.2, 0.5, 0.9)) if family else RULE
    progress = count_chunks(chunks_of(tables, rows), POLICY, rule)
    check(confusion_counts(progress.counted, rule, POLICY), at_once(tables, rule))


def test_a_run_that_dies_at_any_step_goes_on(folder, thorough):
    run(folder, -1)
    whole, record = read_counts(folder / "counts.json"), (folder / "record.csv").read_bytes()
    check(whole, at_once(folder))
    assert sorted(path.suffix for path in folder.iterdir()) == [".csv", ".json", *[".parquet"] * 3]
    for step in range(9) if thorough else (0, 2, 3, 8):  # at first, before and after a chunk, and with all counted
        for name in ("counts.json", "record.csv"):
            (folder / name).unlink()
        with pytest.raises(DiedError):
            run(folder, step, die=die)
        with pytest.raises(DiedError):
            run(folder, 0, die=die)  # and once more, at the first step of the run that goes on
        run(folder, -1)
        again = read_counts(folder / "counts.json")
        check(again, whole)
        assert again.metadata == whole.metadata
        assert (folder / "record.csv").read_bytes() == record


@pytest.mark.every(2)
@pytest.mark.parametrize("step", [3, 4])
def test_a_killed_process_goes_on(folder, step):
    def process(die_after):
        program = [sys.executable, parquet_scene.__file__, str(folder), str(die_after)]
        return subprocess.run(program, capture_output=True, timeout=60, check=False).returncode

    run(folder, -1)
    whole, record = read_counts(folder / "counts.json"), (folder / "record.csv").read_bytes()
    (folder / "counts.json").unlink()
    assert process(step) == -9
    assert json.loads((folder / "checkpoint.json").read_text())["parts"] == 2
    assert not (folder / "counts.json").exists()
    assert process(-1) == 0
    check(read_counts(folder / "counts.json"), whole)
    assert (folder / "record.csv").read_bytes() == record


def test_a_checkpoint_of_another_job_is_refused(folder):
    with pytest.raises(DiedError):
        run(folder, 3, die=die)
    with pytest.raises(InputError, match="the checkpoint is of another job"):
        run(folder, -1, rows=1999)
    text = (folder / "checkpoint.json").read_text()
    for broken, words in (
        (text.replace("verifier.confusion.checkpoint", "other"), "not a checkpoint of this program"),
        (text.replace('"counts": "', '"counts": "A'), "the checkpoint is damaged"),
        (re.sub(r'"index": "[^"]*"', '"index": ""', text), "the checkpoint is damaged"),
        (text[:-20], "not JSON"),
        ("[]", "not a checkpoint"),
    ):
        (folder / "checkpoint.json").write_text(broken)
        with pytest.raises(InputError, match=words):
            run(folder, -1)


def test_changed_files_are_noticed(tmp_path):
    write_tables(tmp_path, 6000, 1500)
    with pytest.raises(DiedError):
        run(tmp_path, 3, die=die)
    write_tables(tmp_path, 6000, 1500, seed=2)
    with pytest.raises(InputError, match="the files have changed since the checkpoint was written"):
        run(tmp_path, -1)


def test_a_family_that_is_matched_anew_for_each_threshold_has_no_record(folder):
    rule = replace(RULE, thresholds=(0.2, 0.5))
    files = StreamFiles(None, folder / "record.csv")
    with pytest.raises(UsageError, match="each threshold has matches of its own"):
        count_chunks(chunks_of(folder, 2000), MatchingPolicy("centre_bev", 2.0, "optimal"), rule, files)


def test_what_filters_take_out_is_added_up(tables):
    progress = count_chunks(chunks_of(tables, 500), POLICY, RULE, prepare=lambda data: keep_scores(data, 0.25))
    whole = keep_scores(
        read_detections(
            "table", tables / "annotations.parquet", tables / "detections.parquet", frames=tables / "frames.parquet"
        ),
        0.25,
    )
    assert progress.origin["filters"] == whole.origin["filters"]
    assert progress.parts > 5


def test_rectangles_placed_on_the_ground_are_added_where_the_same_ones_are_placed():
    def placed(detections, **more):
        return {"projected": {"name": "cam.csv", "detections": {"placed": detections, "farthest": 1}, **more}}

    assert added_origin(placed(3), placed(4)) == {
        "projected": {"name": "cam.csv", "detections": {"placed": 7, "farthest": 2}}
    }
    with pytest.raises(InputError, match="--calibration places the annotations of some sequences only"):
        added_origin(placed(3), placed(4, annotations={"placed": 1, "farthest": 0}))
