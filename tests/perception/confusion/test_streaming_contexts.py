"""Contexts counted chunk by chunk: the same as at once, whatever the chunks and gaps; kills lose nothing."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from parquet_scene import CLASSES, POLICY, RULE
from tracked_tables import write_tracks

from verifier.base.errors import InputError
from verifier.perception.confusion import write_confusion
from verifier.perception.confusion.context_counts import Memory, divided, with_contexts
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.counting import confusion_counts, count_and_observe
from verifier.perception.confusion.request import counted
from verifier.perception.confusion.streaming import StreamFiles, count_chunks
from verifier.perception.detections import Tables, read_detections, stream_tables
from verifier.perception.settings import CountSettings

NO_FILES = StreamFiles()


class DiedError(Exception):
    pass


def chunks_of(folder, rows):
    files = folder / "annotations.parquet", folder / "detections.parquet"
    tables = Tables.of(*files, frames=folder / "frames.parquet")

    def chunks(after):
        return stream_tables(tables, classes=CLASSES, rows_per_chunk=rows, after=after, numbered=True)

    return chunks


def rule_of(labelling, family=False):
    return replace(RULE, labelling=labelling, thresholds=(0.2, 0.6) if family else None)


def at_once(folder, rule, memory):
    data = read_detections(
        "table", folder / "annotations.parquet", folder / "detections.parquet", frames=folder / "frames.parquet"
    )
    found, observed = count_and_observe(data, POLICY, rule)
    return with_contexts(confusion_counts(found, rule, POLICY), data, observed, rule, memory).by_context


def streamed(folder, rule, memory, rows, files=NO_FILES, step=lambda *_: None):
    found = count_chunks(chunks_of(folder, rows), POLICY, rule, files, report=step, memory=memory)
    return divided(confusion_counts(found.counted, rule, POLICY), found.counted.contexts, rule, memory).by_context


def same(found, whole):
    assert np.array_equal(found.counts, whole.counts)
    assert found.tally.index.tolist() == whole.tally.index.tolist()
    assert found.tally.counts.tolist() == whole.tally.counts.tolist()


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tracks")
    write_tracks(folder)
    return folder


@pytest.mark.parametrize("gaps", ["break", "hold", "miss"])
@pytest.mark.parametrize(
    ("labelling", "contexts"), [("class", "run:4"), ("class", "last:2"), ("proposition", "run:2")]
)
def test_chunks_of_any_size_count_the_same(tables, labelling, contexts, gaps):
    memory, rule = Memory(Contexts.parsed(contexts), gaps, seed=None), rule_of(labelling)
    whole = at_once(tables, rule, memory)
    assert (whole.counts[:, :, 1 : 1 + memory.contexts.cap].sum(axis=(0, 1, 3, 4)) > 0).all()  # long runs occur
    for rows in (19, 60, 10**6):
        same(streamed(tables, rule, memory, rows), whole)


@pytest.mark.parametrize("labelling", ["class", "proposition"])
def test_whole_chunks_may_lack_tracks(tmp_path, labelling):
    write_tracks(tmp_path, frames=12, name=lambda track: float(track) if track else None)
    memory, rule = Memory(Contexts("run", 3), "hold", seed=None), rule_of(labelling)
    same(streamed(tmp_path, rule, memory, 1), at_once(tmp_path, rule, memory))


def test_a_family_is_counted_the_same(tables):
    memory, rule = Memory(Contexts("run", 3), "hold", seed=None), rule_of("class", family=True)
    same(streamed(tables, rule, memory, 30), at_once(tables, rule, memory))


@pytest.mark.parametrize("gaps", ["break", "miss"])
def test_five_kills_lose_nothing(tables, tmp_path, gaps):
    memory, rule = Memory(Contexts("run", 5), gaps, seed=None), rule_of("class")
    files = StreamFiles(tmp_path / "checkpoint.json")
    whole = at_once(tables, rule, memory)

    def dying(after):
        left = iter(range(after))

        def step(*_):
            if next(left, None) is None:
                raise DiedError

        return step

    for _ in range(5):
        with pytest.raises(DiedError):
            streamed(tables, rule, memory, 30, files, dying(2))
    same(streamed(tables, rule, memory, 30, files), whole)


def test_coarsening_commutes_with_counting_in_chunks(tables):
    rule = rule_of("class")
    fine = streamed(tables, rule, Memory(Contexts("run", 5), seed=None), 30)
    for coarser in (Contexts("run", 2), Contexts("last", 1)):
        same(fine.coarsened(coarser), streamed(tables, rule, Memory(coarser, seed=None), 50))
    assert fine.counts.sum(axis=2).sum() == at_once(tables, rule, Memory(Contexts("run", 1), seed=None)).counts.sum()


def test_what_is_carried_does_not_grow_with_the_sequence(tmp_path):
    sizes = []
    for frames in (40, 400):
        write_tracks(tmp_path, frames=frames)
        memory, carried = Memory(Contexts("run", 5), seed=None), []
        files = StreamFiles(tmp_path / f"{frames}.json")

        def watch(*_, files=files, carried=carried):
            outcomes = json.loads(files.checkpoint.read_text())["contexts"]["outcomes"]
            carried.append(sum(map(len, outcomes.values())))

        streamed(tmp_path, rule_of("class"), memory, 60, files, watch)
        sizes.append(max(carried))
    assert sizes[1] <= sizes[0] + 5


def test_frames_that_are_no_numbers_are_refused(tmp_path):
    write_tracks(tmp_path)
    for name in ("annotations", "detections", "frames"):
        table = pq.read_table(tmp_path / f"{name}.parquet")
        texts = pa.array([f"{each:06}.png" for each in table["frame"].to_pylist()])
        pq.write_table(table.set_column(1, "frame", texts), tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match="contexts follow frames that are whole numbers"):
        streamed(tmp_path, rule_of("class"), Memory(Contexts("run", 1)), 30)


@pytest.mark.parametrize("labelling", ["class", "proposition"])
def test_tracks_may_have_names(tables, tmp_path, labelling):
    write_tracks(tmp_path, name=lambda track: f"walker {track}" if track else None)
    table = pq.read_table(tmp_path / "annotations.parquet")
    rule, memory = rule_of(labelling), Memory(Contexts("run", 3), seed=None)
    expected, column = at_once(tables, rule, memory), table.column_names.index("track")
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        pq.write_table(table.set_column(column, "track", table["track"].cast(kind)), tmp_path / "annotations.parquet")
        same(at_once(tmp_path, rule, memory), expected)
        same(streamed(tmp_path, rule, memory, 30), expected)


def test_the_command_counts_the_same(tables, tmp_path):
    files = {name: str(tables / f"{name}.parquet") for name in ("annotations", "detections", "frames")}
    settings = CountSettings(format="table", **files, classes="ped,obs", memory="run:5", gaps="miss", period=0.1)
    texts = set()
    for changes in ({}, {"stream": True, "chunk_rows": 19}, {"stream": True, "chunk_rows": 200}):
        write_confusion(counted(replace(settings, **changes)).counts, tmp_path / "counts.json")
        found = json.loads((tmp_path / "counts.json").read_text())
        for of_whole_tracks in ("tests", "tracks"):
            found["contexts"].pop(of_whole_tracks, None)
        own = [{key: each[key] for key in ("name", "frames", "counts")} for each in found["sequences"]]
        texts.add(json.dumps([found["bins"], found["contexts"], own]))
    assert len(texts) == 1
