"""Counting and the audit, called from Python with settings: streams, contexts, and what does not go together."""

import re

import pyarrow.csv
import pyarrow.parquet
import pytest

from verifier.base.errors import InputError, UsageError
from verifier.perception.confusion.request import counted, counts_of
from verifier.perception.confusion.streaming import finish
from verifier.perception.settings import CountSettings
from verifier.questions.audit import audited

ANNOTATIONS = """\
sequence,frame,class,x,y,occluded,track
a,0,ped,5,0,0,1
a,0,obs,12,0,0,2
a,1,ped,6,0,1,1
b,0,obs,10,0,0,3
"""
DETECTIONS = """\
sequence,frame,class,score,x,y
a,0,ped,0.9,5,0
a,0,ped,0.8,13,0
a,1,obs,0.4,15,0
b,0,obs,0.7,10,0
"""
DATA = {"format": "table", "annotations": "truth.csv", "detections": "found.csv", "bins": "0,10,20"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with two drives as tables and as Parquet."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("truth", ANNOTATIONS), ("found", DETECTIONS)):
        (tmp_path / f"{name}.csv").write_text(text)
        pyarrow.parquet.write_table(pyarrow.csv.read_csv(tmp_path / f"{name}.csv"), tmp_path / f"{name}.parquet")
    (tmp_path / "drives.csv").write_text("sequence,drive\na,first\nb,second\n")
    return tmp_path


def test_the_test_of_dependence_is_part_of_the_counts(folder):
    assert "dependence" in counted(CountSettings(**DATA)).counts.metadata


def test_a_stream_reports_rows_and_keeps_files_until_it_is_finished(folder):
    rows = []
    choices = {**DATA, "annotations": "truth.parquet", "detections": "found.parquet", "classes": "ped,obs"}
    settings = CountSettings(**choices, checkpoint="kept.json", record="record.csv", chunk_rows=1)
    found = counted(settings, lambda done, total: rows.append((done, total)))
    assert rows[-1] == (8, 8)
    assert found.record is None
    assert (folder / "record.csv").exists()
    assert (folder / "kept.json").exists()
    finish(found.files)
    assert not (folder / "kept.json").exists()
    assert not (folder / "record.csv.parts").exists()


def test_a_stream_goes_on_when_its_table_of_drives_was_mended(folder):
    choices = {**DATA, "annotations": "truth.parquet", "detections": "found.parquet", "classes": "ped,obs"}
    (folder / "short.csv").write_text("sequence,drive\na,monday\n")
    stream = {**choices, "checkpoint": "kept.json", "chunk_rows": 1}
    with pytest.raises(InputError, match=r"short\.csv"):
        counted(CountSettings(**stream, groups="short.csv"))
    found = counted(CountSettings(**stream, groups="drives.csv"))
    assert found.counts.sequences.names == counted(CountSettings(**DATA, groups="drives.csv")).counts.sequences.names


PARTS = "--matching-audit and --average-precision are of all data at once, not of parts"
PARQUET = {"annotations": "truth.parquet", "detections": "found.parquet", "classes": "ped,obs"}


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        *(({name: None}, f"name the data: --format NAME --annotations PATH --detections PATH (no --{name})")
          for name in ("format", "annotations", "detections")),
        ({"stream": True}, "--stream needs the classes beforehand"),
        ({"stream": True, "format": "kitti_object", "shard": "1/2"},
         "--stream and --record in parts are of Parquet"),
        ({"shard": "1/2", "checkpoint": "c.json"},
         "--checkpoint is of one process: with --scheduler or --shard leave it out"),
        ({"stream": True, "average_precision": True}, PARTS),
        ({"checkpoint": "c.json", "average_precision": True}, PARTS),
        ({"shard": "1/2", "matching_audit": True}, PARTS),
        *(({**PARQUET, **asked, "format": "kitti_object"},
           "--stream and --checkpoint count Parquet tables (--format table)")
          for asked in ({"stream": True}, {"checkpoint": "c.json"})),
        ({**PARQUET, "stream": True, "distance_file": "d.csv"},
         "--distance-file does not go with Parquet tables in parts: give them a column distance_m"),
        ({**PARQUET, "stream": True, "chunk_rows": 0}, "--chunk-rows: expected at least 1, got 0"),
        *(({"memory": "run:1", "period": period}, f"--period: expected seconds above 0, at most 1e6, got {told}")
          for period, told in ((0.0, "0"), (2e6, "2e+06"))),
        *(({"memory": "run:1", "units": "track", **asked},
           f"--{option} is about drives, and --units track counts none: leave out one")
          for option, asked in (("groups", {"groups": "drives.csv"}), ("stream", {"stream": True}),
                                ("shard", {"shard": "1/2"}))),
        *((asked, "--gaps, --period and --units belong to --memory")
          for asked in ({"period": 0.5}, {"gaps": "miss"}, {"units": "frame"})),
        ({"record": "r.csv", "score_thresholds": "0.3,0.6", "assignment": "optimal"},
         "--record: under this matching each threshold has matches of its own; use one threshold"),
        *(({"depth_folder": "depth", **asked},
           "--depth-folder gives every distance; leave out --distance-file, --distance-field, "
           "--detection-distance-field and --calibration")
          for asked in ({"distance_file": "d.csv"}, {"distance_field": "d"}, {"detection_distance_field": "d"},
                        {"calibration": "calib"})),
        ({"depth_scale": 2.0}, "--depth-scale belongs to --depth-folder"),
        ({"calibration": "calib", "detection_distance_field": "d"},
         "both --calibration and --detection-distance-field give the distances of detections"),
        *(({"average_precision": True, "assignment": "optimal", **asked},
           "--average-precision needs a matching that takes detections by falling score")
          for asked in ({}, {"score_thresholds": "0.3,0.6"})),
    ],
)  # fmt: skip
def test_choices_that_do_not_go_together_are_refused(folder, choices, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        counted(CountSettings(**{**DATA, **choices}))


def test_contexts_have_the_period_and_gaps_that_are_asked_for(folder):
    asked = CountSettings(**DATA, memory="run:1", period=1e6, gaps="hold")
    by_context = counted(asked).counts.by_context
    assert (str(by_context.contexts), by_context.period_s, by_context.gaps) == ("run:1", 1e6, "hold")
    assert counted(CountSettings(**DATA)).counts.by_context is None


def test_an_audit_does_not_stream(folder):
    with pytest.raises(UsageError, match="--matching-audit and --average-precision are of all data at once"):
        audited(CountSettings(**DATA, stream=True, matching_audit=True))


@pytest.mark.parametrize(
    ("annotations", "detections", "names", "sequences", "words"),
    [
        ("truth.csv", "found.csv", ["ped"], None, "names and sequences are of objects in memory"),
        ("truth.csv", "found.csv", None, ["a"], "names and sequences are of objects in memory"),
        ([], "found.csv", None, None, "<detections>: expected one object for each image, got str"),
    ],
)
def test_files_and_objects_are_told_apart(annotations, detections, names, sequences, words):
    with pytest.raises((InputError, UsageError), match=f"^{re.escape(words)}"):
        counts_of(annotations, detections, "table", names, sequences, {})
