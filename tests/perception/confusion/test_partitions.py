"""Counting by partitions: the same bytes for any number of workers and for shards; what does not fit is refused."""

import itertools
import json
import os
import socket
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import distributed
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dask_clusters import Killer, OwnCluster, cluster, in_pieces
from hypothesis import given
from hypothesis import strategies as st
from parquet_scene import write_tables
from tracked_tables import write_tracks

from verifier.base.errors import InputError, UsageError
from verifier.cli import main
from verifier.perception.confusion.document import confusion_text, read_counts
from verifier.perception.confusion.request import counted, merged
from verifier.perception.confusion.shards import MOST_SHARDS, parsed_shard, share_of
from verifier.perception.detections.parquetfiles import Tables, opened
from verifier.perception.settings import CountSettings, MergeSettings

NAMES = ("annotations", "detections", "frames")
DATA = {name: f"{name}.parquet" for name in NAMES}
SCENE = {"format": "table", "classes": "ped,obs", "bins": "0,10,20,inf", "unmatched": "own_bin", "chunk_rows": 300}
VARIANTS = {
    "plain": {},
    "contexts": {"memory": "run:3", "gaps": "miss"},
    "drives": {"groups": "drives.csv"},
    "record": {"record": "record.csv"},
    "family": {"score_thresholds": "0.2,0.5,0.9"},
    "filtered": {"min_score": 0.3, "range": "0..20", "duplicates": "nearest_bin"},
    "frames": {"labelling": "proposition", "memory": "last:2", "gaps": "hold"},
    "localised": {"localisation": True},
}


@pytest.fixture(scope="module")
def scheduler():
    with cluster(3, processes=False) as address:
        yield address


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scene")
    write_tables(folder, 4000, 900, sequences=10)
    drives = "".join(f"drive{k},{'monday' if k % 3 else 'tuesday'}\n" for k in range(10))
    (folder / "drives.csv").write_text(f"sequence,drive\n{drives}")
    (folder / "tracks").mkdir()
    write_tracks(folder / "tracks")
    (folder / "tracks" / "drives.csv").write_text("sequence,drive\na,x\nb,y\nc,x\n")
    return folder


@pytest.fixture
def scene(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in [*made.glob("*.*")]:
        Path(path.name).hardlink_to(path)
    return tmp_path


@pytest.fixture
def tracks(made, scene):
    for path in made.joinpath("tracks").iterdir():
        Path(path.name).unlink(missing_ok=True)
        Path(path.name).hardlink_to(path)
    return scene


def words(choices):
    for name, value in choices.items():
        option = f"--{name.replace('_', '-')}"
        yield from [option] if value is True else [f"{option}={value}"]


def written(path="counts.json", **choices):
    """The bytes that the command writes, and those of the record."""
    assert main(["confusion", *words({**DATA, **SCENE, **choices, "output": path})]) == 0
    record = choices.get("record")
    return Path(path).read_bytes(), b"" if record is None else Path(record).read_bytes()


def sharded(of, **choices):
    """The bytes of the sum of so many shards."""
    files = [f"shard{number}.json" for number in range(1, of + 1)]
    for number, file in enumerate(files, 1):
        written(file, shard=f"{number}/{of}", **choices)
    assert main(["confusion", "merge", *reversed(files), "-o", "sum.json"]) == 0
    return Path("sum.json").read_bytes()


@pytest.mark.parametrize("variant", VARIANTS)
def test_workers_and_shards_give_the_bytes_of_one_process(tracks, scheduler, thorough, variant):
    choices = VARIANTS[variant] | {"stream": True, "chunk_rows": 40}
    whole, record = written(**choices)
    found, rows = written(scheduler=scheduler, **choices)
    assert found == whole
    assert sorted(rows.splitlines()) == sorted(record.splitlines())  # a chunk lists frames, objects, detections
    for of in (2, 5) if thorough or variant == "plain" else (5,):  # there are three sequences
        assert sharded(of, **choices) == whole


def test_many_partitions_give_the_cells_of_counting_at_once(scene, scheduler):
    assert len(Tables.of(**DATA).parts(300)) > 5
    at_once = counted(CountSettings(**DATA, **SCENE)).counts
    found = counted(CountSettings(**DATA, **SCENE, scheduler=scheduler)).counts
    assert np.array_equal(found.counts, at_once.counts)
    assert found.sequences.names == at_once.sequences.names
    assert np.array_equal(found.sequences.tally.counts, at_once.sequences.tally.counts)
    assert found.metadata["totals"] == at_once.metadata["totals"]
    assert found.metadata["source"]["sources"] == at_once.metadata["source"]["sources"]


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_one_two_and_four_processes_give_the_same_bytes(tracks, variant):
    choices = VARIANTS[variant] | {"stream": True, "chunk_rows": 40}
    whole = written(scheduler=1, **choices)
    assert written(**choices)[0] == whole[0]
    for processes in (2, 4):
        assert written(scheduler=processes, **choices) == whole


def test_processes_of_this_machine_count_and_tell_what_they_did(scene, capfd):
    whole = written(stream=True)
    capfd.readouterr()
    assert written(stream=True, scheduler=2) == whole
    told = capfd.readouterr().err.splitlines()
    blocks = [int(line.split(": ")[1].split(" blocks")[0]) for line in told]
    assert sum(blocks) == 3 + len(Tables.of(**DATA).parts(300))
    assert all(line.startswith("tcp://127.0.0.1:") and "s, at most" in line for line in told)


@pytest.mark.every(2)
@pytest.mark.parametrize("rows", [250, 1111])
def test_one_drive_may_lie_in_several_files(scene, scheduler, rows):
    # Pieces end within frames, and tracks go on in the next.
    for name in NAMES:
        in_pieces(f"{name}.parquet", Path(name), rows)
    whole = json.loads(written(stream=True)[0])
    for choices in ({"stream": True}, {"stream": True, "scheduler": scheduler}):
        found = json.loads(written(**choices, **{name: name for name in NAMES})[0])
        assert [each["files"] for each in found["source"]["sources"]] == [len(list(Path(n).iterdir())) for n in NAMES]
        for key in ("bins", "sequences", "totals"):
            assert found[key] == whole[key]
    assert json.loads(sharded(3, stream=True, **{name: name for name in NAMES}))["source"] == found["source"]


def test_records_name_the_file_and_its_row(scene, scheduler):
    for name in NAMES:
        in_pieces(f"{name}.parquet", Path(name), 999)
    written(stream=True, scheduler=scheduler, record="r.csv", **{name: name for name in NAMES})
    rows = [line.split(",") for line in Path("r.csv").read_text().splitlines()]
    file, line = rows[0].index("file"), rows[0].index("line")
    places = [(row[file], int(row[line])) for row in rows[1:] if row[0] == "object"]
    sizes = [999, 999, 999, 999, 4]
    assert places == [
        (f"annotations/part-{k:05}.parquet", 1 + r) for k, size in enumerate(sizes) for r in range(size)
    ]


def broken(path, column, row, value):
    table = pq.read_table(path)
    values = table[column].to_pylist()
    values[row] = value
    pq.write_table(table.set_column(table.column_names.index(column), column, pa.array(values)), path)


@pytest.mark.every(2)
@pytest.mark.parametrize("how", ["stream", "scheduler", "shards"])
@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("x", np.inf, "detections/part-00002.parquet:124: detection with box_3d"),
        ("score", np.nan, "detections/part-00002.parquet:124: detection without a score (nan)"),
        ("class", None, "detections/part-00002.parquet:124: class: the cell is empty"),
        ("frame", None, "detections/part-00002.parquet:124: frame: the cell is empty"),
        ("frame", 0, "detections/part-00002.parquet:124: frame 'drive7/0' comes after 'drive7/"),
        ("sequence", None, "detections/part-00002.parquet:124: sequence: the cell is empty"),
        ("sequence", "drive0", "detections/part-00002.parquet:124: "),
    ],
)
def test_errors_name_file_and_row_wherever_they_happen(scene, scheduler, capfd, how, column, value, words):
    in_pieces("detections.parquet", Path("detections"), 1300)
    broken("detections/part-00002.parquet", column, 123, value)
    choices = {**DATA, **SCENE, "detections": "detections"}
    ways = {"stream": [{"stream": True}], "scheduler": [{"scheduler": scheduler}]}
    ways["shards"] = [{"shard": f"{number}/2"} for number in (1, 2)]
    command = ["confusion", "--output=o.json", "--record=r.csv"]
    codes = [main([*command, *globals()["words"]({**choices, **way})]) for way in ways[how]]
    assert 4 in codes
    assert words in capfd.readouterr().err
    assert 0 in codes or not Path("o.json").exists()
    assert how == "stream" or not Path("r.csv.parts").exists()


def test_files_of_other_columns_are_refused(scene):
    in_pieces("detections.parquet", Path("detections"), 1000)
    part = Path("detections/part-00002.parquet")
    table = pq.read_table(part)
    settings = CountSettings(**{**DATA, "detections": "detections"}, **SCENE, shard="1/1")
    changes = (
        (table.drop_columns(["score"]), "no column 'score'"),
        (table.drop_columns(["y"]), "column 'y': none here, double in detections/part-00000.parquet"),
        (table.append_column("z", table["y"]), "column 'z': double here, none in detections/part-00000.parquet"),
        (table.set_column(1, "frame", table["frame"].cast(pa.string())), "column 'frame': string here, int64 in"),
    )
    for changed, message in changes:
        pq.write_table(changed, part)
        with pytest.raises(InputError, match=rf"part-00002\.parquet: {message}"):
            counted(settings)
    pq.write_table(table.select(table.column_names[::-1]), part)  # another order is the same table
    counted(settings)


def test_a_file_that_breaks_in_the_middle_is_named(scene, scheduler):
    part = Path("detections.parquet")
    pq.write_table(pq.read_table(part), "new.parquet", row_group_size=500, compression="snappy")
    raw = bytearray(Path("new.parquet").read_bytes())
    middle = pq.ParquetFile("new.parquet").metadata.row_group(3).column(4).data_page_offset
    raw[middle : middle + 40] = bytes(40)
    Path("broken.parquet").write_bytes(raw)
    for way in ({"stream": True}, {"scheduler": scheduler}, {"shard": "1/1"}):
        with pytest.raises(InputError, match=r"broken\.parquet: not readable behind row 1500"):
            counted(CountSettings(**{**DATA, "detections": "broken.parquet"}, **SCENE, **way))


@pytest.mark.parametrize("name", ["detections.parquet", "drives.csv"])
def test_files_are_closed_as_soon_as_they_are_read(scene, name):
    stays = []
    with pytest.raises(InputError) if name == "drives.csv" else nullcontext(), opened(name) as source:
        stays.append(source)
    opened_still = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.exists()]
    assert Path(name).resolve() not in opened_still


def test_shards_that_do_not_make_a_whole_are_refused(scene, capfd):
    for number in (1, 2, 3):
        written(f"{number}.json", shard=f"{number}/3")
    written("other.json", shard="2/3", min_score=0.5)
    written("titled.json", shard="2/3", title="other")
    written("of4.json", shard="2/4")
    written("whole.json", stream=True)
    Path("again.json").write_text(Path("2.json").read_text().replace('"empty"', '"empty" '))
    for files, message in (
        (["1", "3"], "of 3 shards missing are: 2; there are 1.json, 3.json"),
        (["2"], "of 3 shards missing are: 1, 3; there are 2.json"),
        (["1", "2", "3", "again"], "shard 2/3 is in 2.json, too: its items would count twice"),
        (["1", "of4", "3"], "of4.json: shard 2/4, and 1.json is shard 1/3"),
        (["1", "2", "3", "whole"], "whole.json: no shard, and 1.json is shard 1/3"),
        (["whole", "1", "whole"], "whole.json: no shard, and 1.json is shard 1/3"),
        (["1", "other", "3"], "other.json: cannot be merged with 1.json: filters differ: [{"),
        (["1", "titled", "3"], "titled.json: a shard of another count than 1.json"),
    ):
        assert main(["confusion", "merge", *(f"{each}.json" for each in files)]) == 4
        assert message in capfd.readouterr().err


def test_shards_of_data_that_changed_between_are_refused(scene):
    settings = CountSettings(**DATA, **SCENE)
    for number in (1, 2):
        if number == 2:
            table = pq.read_table("detections.parquet")
            Path("detections.parquet").unlink()
            pq.write_table(table, "detections.parquet", row_group_size=77)
        text = confusion_text(counted(CountSettings(**vars(settings) | {"shard": f"{number}/2"})).counts)
        Path(f"{number}.json").write_text(text)
    with pytest.raises(InputError, match=r"detections\.parquet: the file has changed between 1\.json and 2\.json"):
        merged(MergeSettings(files=("1.json", "2.json")))


@pytest.mark.parametrize("rows", [2500, 10**6])
def test_shards_that_overlap_or_leave_rows_out_are_refused(scene, rows):
    # Counted in Python with another size of partitions, whose shards end elsewhere.
    for number, size in ((1, 300), (2, rows)):
        settings = CountSettings(**{**DATA, **SCENE, "chunk_rows": size}, shard=f"{number}/2")
        Path(f"{number}.json").write_text(confusion_text(counted(settings).counts))
    with pytest.raises(
        InputError, match=r"2\.json: begins at row \d+ of annotations\.parquet, and the shards before"
    ):
        merged(MergeSettings(files=("1.json", "2.json")))


def test_a_damaged_shard_is_refused(scene):
    written("1.json", shard="1/1")
    for damage in ('"number": 0', '"number": "x"', '"numbers": 1'):
        Path("2.json").write_text(Path("1.json").read_text().replace('"number": 1', damage))
        with pytest.raises(InputError, match=r"2\.json: /source/shard: what the shard says of itself is damaged"):
            merged(MergeSettings(files=("2.json",)))


def test_a_shard_whose_origin_is_damaged_is_refused(scene):
    for number in (1, 2):
        written(f"{number}.json", shard=f"{number}/2")
        document = json.loads(Path(f"{number}.json").read_text())
        document["source"]["classes_left_out"]["annotations"] = {"van": 1} if number == 1 else 1
        Path(f"{number}.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"2\.json: /source: does not fit the shards before it"):
        merged(MergeSettings(files=("2.json", "1.json")))


def test_a_shard_says_that_it_is_none_of_the_whole(scene):
    written("1.json", shard="1/3")
    kinds = {each["kind"]: each["text"] for each in read_counts("1.json").metadata["remarks"]}
    assert kinds["shard"] == "shard 1 of 3: the other shards are not in these counts"
    written("2.json", shard="2/3")
    written("3.json", shard="3/3")
    remarks = merged(MergeSettings(files=("1.json", "2.json", "3.json"))).metadata.get("remarks", ())
    assert "shard" not in {each["kind"] for each in remarks}


def test_absurd_data_are_refused_when_all_is_known(scene):
    # In one shard nothing may match; in the whole that is absurd.
    choices = {**SCENE, "match_threshold": 1e-9, "affinity": "centre_3d"}
    for number in (1, 2):
        settings = CountSettings(**DATA, **choices, shard=f"{number}/2")
        Path(f"{number}.json").write_text(confusion_text(counted(settings).counts))
    with pytest.raises(InputError, match="is matched with a detection"):
        merged(MergeSettings(files=("1.json", "2.json")))
    with pytest.raises(InputError, match="is matched with a detection"):
        counted(CountSettings(**DATA, **choices, stream=True))


def test_tables_without_rows_or_sequences(scene, scheduler):
    empty = {name: pq.read_table(f"{name}.parquet").slice(0, 0) for name in NAMES}
    for name in NAMES:
        Path(f"{name}.parquet").unlink()
        pq.write_table(empty[name], f"{name}.parquet")
    choices = {**SCENE, "accept": "no-annotations", "stream": True}
    whole = written(**choices)[0]
    assert written(**choices, scheduler=scheduler)[0] == whole
    assert sharded(3, **choices) == whole


def test_a_table_without_sequences_is_one_partition(scene, scheduler):
    for name in NAMES:
        table = pq.read_table(f"{name}.parquet").drop_columns(["sequence"])
        Path(f"{name}.parquet").unlink()
        pq.write_table(table, f"{name}.parquet")
    whole = written(stream=True)[0]
    assert written(stream=True, scheduler=scheduler)[0] == whole
    assert sharded(2, stream=True) == whole


def test_addresses_of_stores_are_read_like_files(scene, scheduler):
    whole = json.loads(written(stream=True)[0])
    in_pieces("detections.parquet", Path("detections"), 1000)
    for found in ("detections.parquet", "detections"):
        there = {name: f"local://{scene}/{name}.parquet" for name in NAMES} | {
            "detections": f"file://{scene}/{found}"
        }
        told = json.loads(written(stream=True, scheduler=scheduler, **there)[0])
        for key in ("bins", "sequences", "totals"):
            assert told[key] == whole[key]
    with pytest.raises(InputError, match="no such file"):
        counted(CountSettings(**{**DATA, "detections": f"file://{scene}/none.parquet"}, **SCENE, stream=True))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"shard": "3/2"}, "--shard: expected I/N"),
        (
            {"shard": "1/2", "format": "coco"},
            r"count Parquet tables .*, and folders .*kitti_tracking, mot,",
        ),
        ({"shard": "1/2", "annotations": "truth.csv"}, "--scheduler and --shard count Parquet tables"),
        ({"scheduler": "2", "format": "cvat", "sequence": ("a",)}, "--sequence of cvat does not go with counting in"),
        ({"scheduler": "2", "format": "argoverse", "detection_frame": "city"}, "--detection-frame city of argoverse"),
    ],
)
def test_choices_that_do_not_go_together(scene, choices, message):
    with pytest.raises(UsageError, match=message):
        counted(CountSettings(**DATA | SCENE | choices))


def test_shards_are_numbered_from_1():
    assert MOST_SHARDS == 100_000
    for text in ("1/1", "2/2", "1/100000"):
        assert "/".join(map(str, parsed_shard(text))) == text
    for text in ("1/100001", "100001/100001", "1/0", "0/0", "3/2", "1", "-1/2"):
        with pytest.raises(UsageError, match="I from 1 to N, at most 100000"):
            parsed_shard(text)


@given(parts=st.integers(0, 40), of=st.integers(1, 50))
def test_shards_share_out_every_part_once(parts, of):
    shares = [share_of(range(parts), (number, of)) for number in range(1, of + 1)]
    assert list(itertools.chain(*shares)) == list(range(parts))
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("group", [5, 50, 10**6])
def test_partitions_hold_whole_sequences(scene, group):
    for name in NAMES:
        table = pq.read_table(f"{name}.parquet")
        Path(f"{name}.parquet").unlink()
        pq.write_table(table, f"{name}.parquet", row_group_size=group)
    tables = Tables.of(**DATA)
    own = [pq.read_table(f"{name}.parquet")["sequence"].to_pylist() for name in NAMES]
    for least in (1, 300, 10**6):
        parts = tables.parts(least)
        held = [
            {name for side, rows in zip(own, part.rows, strict=True) for name in side[slice(*rows)]} for part in parts
        ]
        assert sum(map(len, held)) == len(set().union(*held)) == 10
        assert all(len(part) >= least for part in parts[:-1])
        assert sum(map(len, parts)) == sum(map(len, own))


def test_a_killed_worker_loses_and_doubles_nothing(scene):
    # The moments are shares of the partitions that are done.
    whole = counted(CountSettings(**DATA, **SCENE, stream=True)).counts
    with cluster(2) as address:
        killer = Killer(address, [0.0, 0.5])
        found = counted(CountSettings(**DATA, **SCENE, stream=True, scheduler=address), killer).counts
    assert len(killer.killed) == 2
    assert confusion_text(found) == confusion_text(whole)


@pytest.fixture(scope="module")
def ten_million(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    write_tables(folder, 11_000_000, 1_000_000, sequences=10)
    assert pq.ParquetFile(folder / "detections.parquet").metadata.num_rows >= 9_500_000
    paths = {name: str(folder / f"{name}.parquet") for name in NAMES}
    settings = CountSettings(**{**SCENE, **paths, "chunk_rows": 200_000})
    return settings, confusion_text(counted(replace(settings, stream=True)).counts)


@pytest.mark.slow
def test_five_kills_in_ten_million_detections(ten_million):
    settings, whole = ten_million
    with cluster(2) as address:
        killer = Killer(address, [0.0, 0.2, 0.4, 0.6, 0.8])
        found = counted(replace(settings, scheduler=address), killer).counts
    assert len(set(killer.killed)) == 5
    assert confusion_text(found) == whole


@pytest.mark.slow
def test_the_scheduler_is_lost_once_in_ten_million_detections(ten_million, root, tmp_path):
    settings, whole = ten_million
    lost = []
    with OwnCluster(free_port(), tmp_path, {**os.environ, "PYTHONPATH": str(root)}) as own:
        own.start(2)

        def lose(done, total):
            if 2 * done > total and not lost:
                lost.append(done)
                own.lose_scheduler()
                own.start(2)  # workers end with their scheduler; whoever keeps the cluster starts new ones

        found = counted(replace(settings, scheduler=own.address), lose).counts
    assert lost
    assert confusion_text(found) == whole


@pytest.mark.slow
@pytest.mark.parametrize("others", [0, 1])
def test_workers_without_this_program_are_named_at_once(scene, root, tmp_path, monkeypatch, others):
    monkeypatch.setattr("verifier.base.blocks.LOOK_S", -1.0)
    monkeypatch.setattr("verifier.base.blocks.RETURN_S", -1.0)  # waiting for workers to come back fails
    # The package that they find has no more than a name; the scheduler, and perhaps a worker, have this one.
    (tmp_path / "old/verifier").mkdir(parents=True)
    for name in ("__init__.py", "base.py"):
        (tmp_path / "old/verifier" / name).write_text("")
    with OwnCluster(free_port(), tmp_path, {**os.environ, "PYTHONPATH": str(root)}) as own:
        own.start(others)
        own.environment["PYTHONPATH"] = str(tmp_path / "old")
        own.work(1)
        with distributed.Client(own.address, set_as_default=False) as client:
            client.wait_for_workers(others + 1, timeout=60)
        with pytest.raises(UsageError, match=r"worker tcp://127\.0\.0\.1:\d+ has another version of this program"):
            counted(CountSettings(**DATA, **SCENE, scheduler=own.address))


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


KITTI = {"format": "kitti_tracking", "annotations": "label", "detections": "found", "bins": "0,10,20,inf"}


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two people walk through four sequences, one of them in two folders of detections; misses follow misses."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(4)
    for name in ("label", "found/Pedestrian", "found/Cyclist"):
        Path(name).mkdir(parents=True)
    for sequence in range(4):
        rows, seen, missed = [], {"Pedestrian": [], "Cyclist": []}, [False, False]
        for frame in range(24):
            for track, kind in enumerate(seen):
                place = f"1.8 0.6 0.8 {track * 6 - 3:.1f} 1.6 {4 + 20 * frame / 24 + sequence:.2f} 0.1"
                rows.append(f"{frame} {track} {kind} 0 0 0.1 100 100 150 200 {place}")
                missed[track] = bool(random.random() < (0.7 if missed[track] else 0.2))
                if not missed[track]:
                    seen[kind].append(f"{frame} -1 {kind} -1 -1 -10 100 100 150 200 {place} {random.random():.3f}")
        Path(f"label/{sequence:04}.txt").write_text("\n".join(rows) + "\n")
        for kind, lines in seen.items():
            Path(f"found/{kind}/{sequence:04}.txt").write_text("\n".join(lines) + "\n")


def commanded(path="counts.json", **choices):
    assert main(["confusion", *words({**choices, "output": path})]) == 0
    return Path(path).read_bytes()


IN_FOLDERS = [{}, {"memory": "run:2"}, {"groups": "drives.csv"}, {"sequence": "0002"}]


@pytest.mark.parametrize("choices", [KITTI | each for each in IN_FOLDERS])
def test_folders_of_sequences_are_counted_in_parts(folders, scheduler, thorough, choices):
    Path("drives.csv").write_text("sequence,drive\n0000,a\n0001,b\n0002,a\n0003,c\n")
    whole = commanded(scheduler=scheduler, **choices)
    for of in (2, 6) if thorough else (6,):
        files = [f"{number}.json" for number in range(1, of + 1)]
        for number, file in enumerate(files, 1):
            commanded(file, shard=f"{number}/{of}", **choices)
        assert main(["confusion", "merge", *files[::-1], "-o", "sum.json"]) == 0
        assert Path("sum.json").read_bytes() == whole
    commanded("once.json", **choices)
    found, at_once = read_counts("counts.json"), read_counts("once.json")
    assert np.array_equal(found.counts, at_once.counts)
    for key in ("totals", "source"):
        told = [each.metadata[key] for each in (found, at_once)]
        assert told[0] == told[1] or (key == "source" and "sequence" in choices)
    names = {key for key, value in json.loads(Path("once.json").read_text()).items()}
    assert json.loads(whole).keys() == names
    one, other = (json.loads(Path(f"{name}.json").read_text())["sequences"] for name in ("counts", "once"))
    assert one == other  # the tracks, too


def test_tests_of_dependence_are_combined_as_merge_does(folders, scheduler):
    for sequence in range(4):
        commanded(f"{sequence}.json", sequence=f"{sequence:04}", **KITTI)
    together = merged(MergeSettings(files=tuple(f"{sequence}.json" for sequence in range(4))))
    commanded(scheduler=scheduler, **KITTI)
    found, merged_too = read_counts("counts.json").metadata["dependence"], together.metadata["dependence"]
    assert found == replace(merged_too, combined="Fisher's method over the parts that were counted")
    commanded("once.json", **KITTI)  # permuted together, which the document shows by naming no such method
    at_once = read_counts("once.json").metadata["dependence"]
    assert at_once.combined is None
    for one, other in zip(found.classes, at_once.classes, strict=True):
        assert one.p_value != other.p_value
        for key in ("label", "objects", "misses", "pairs", "after_miss", "joint_misses"):
            assert getattr(one, key) == getattr(other, key)


def test_faults_in_folders_are_named(folders, scheduler, capfd):
    def refused(*more):
        assert main(["confusion", *words(KITTI), "--scheduler", scheduler, *more]) == 4
        return capfd.readouterr().err

    path = Path("found/Cyclist/0002.txt")
    path.write_text(path.read_text() + "61 -1 Cyclist -1 -1 x\n")
    assert "found/Cyclist/0002.txt:" in refused()
    path.unlink()
    Path("found/Pedestrian/0002.txt").unlink()
    assert "no entry for any of the 24 frames" in refused()
    path.write_text("0 -1 Cyclist -1 -1 -10 100 100 150 200 1.8 0.6 0.8 3 1.6 9 0.1 0.5\n")
    Path("found/Cyclist/0009.txt").write_text(path.read_text())
    assert "found/Cyclist/0009.txt:1: detection in frame" in refused()
    Path("label.zip").write_text("")
    assert "label.zip: expected a folder" in refused("--annotations", "label.zip")
    assert "none: expected a folder" in refused("--annotations", "none")
    assert main(["confusion", *words(KITTI), "--scheduler", scheduler, "--record", "r.csv"]) == 2
