"""Data in an object store: a server that speaks S3, asked over HTTP by this process and by workers."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from dask_clusters import in_pieces
from folder_forms import FORMS, WHOLE, made_rows, written
from parquet_scene import write_tables

from verifier.cli import main
from verifier.perception.confusion.document import read_counts

server = pytest.importorskip("moto.server", reason="needs moto and s3fs (extra 'stores')")
s3fs = pytest.importorskip("s3fs", reason="needs moto and s3fs (extra 'stores')")
NAMES = ("annotations", "detections", "frames")


@pytest.fixture(scope="module")
def store():
    """A bucket `drives` with the folders of three tables, and the same folders here."""
    import fsspec

    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    own = {"endpoint_url": f"http://127.0.0.1:{running._server.server_port}", "key": "any", "secret": "any"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSSPEC_S3", json.dumps(own))  # for workers; read when fsspec is imported
        patch.setitem(fsspec.config.conf, "s3", own)
        yield s3fs.S3FileSystem(**own)
    running.stop()


@pytest.fixture
def scene(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("whole").mkdir()
    write_tables(Path("whole"), 900, 200, sequences=6)
    for name in NAMES:
        in_pieces(f"whole/{name}.parquet", Path(name), 400)
    store.mkdir("drives")
    for name in NAMES:
        store.put(f"{name}/", f"drives/{name}/", recursive=True)
    yield store
    store.rm("drives", recursive=True)


def counted(where, path, *more):
    named = [f"--{name}={where}{name}" for name in NAMES]
    rule = [
        "--format=table",
        "--stream",
        "--classes=ped,obs",
        "--bins=0,10,20,inf",
        "--chunk-rows=300",
        f"--output={path}",
    ]
    code = main(["confusion", *named, *rule, f"--output={path}", *more])
    return code, Path(path).read_bytes() if code == 0 else b""


def test_tables_of_a_store_are_counted_as_those_of_a_folder(scene):
    here = counted("", "here.json")
    assert here[0] == 0
    assert counted("s3://drives/", "stream.json") == here
    shards = [f"{number}.json" for number in (1, 2, 3)]
    for number, path in enumerate(shards, 1):
        assert counted("s3://drives/", path, f"--shard={number}/3")[0] == 0
    assert main(["confusion", "merge", *shards, "-o", "sum.json"]) == 0
    assert Path("sum.json").read_bytes() == here[1]


OTHERS = [pytest.param(form, marks=pytest.mark.slow) for form in ("waymo", "kitti_object", "mot zipped")]


@pytest.mark.parametrize("form", ["mot", "argoverse", "coco", *OTHERS])
def test_folders_and_files_of_a_store_are_counted_as_those_here(store, form, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    write, more = (FORMS | WHOLE)[form]
    write(made_rows())
    Path("truth/fog/img1").mkdir(parents=True, exist_ok=True) if form == "mot" else None
    Path("truth/fog/seqinfo.ini").write_text("seqLength=9\n") if form == "mot" else None
    choices = {
        "format": form.split()[0],
        "annotations": "truth",
        "detections": "found",
        "bins": "0,10,20,inf",
        **more,
    }
    store.mkdir("streets")
    for path in sorted(Path().rglob("*")):
        if path.is_file() and path.suffix != ".csv":
            store.put(str(path), f"streets/{path}")
    there = {name: f"s3://streets/{choices[name]}" for name in ("annotations", "detections")}
    try:
        for way in ({}, {"shard": "1/1"}) if form in FORMS else ({},):
            here = written("here.json", choices | way)
            assert written("there.json", choices | there | way) == here
        if form in WHOLE:
            return
        for number in (1, 2, 3):
            written(f"{number}.json", choices | there | {"shard": f"{number}/3"})
        assert main(["confusion", "merge", "1.json", "2.json", "3.json", "-o", "sum.json"]) == 0
        found, once = read_counts("sum.json"), read_counts("here.json")
        assert np.array_equal(found.counts, once.counts)
        if form == "argoverse":
            store.pipe("streets/found/sun.feather", b"nothing")
            for way in ([], ["--shard=1/1"]):
                words = [f"--{name}={value}" for name, value in (choices | there).items()]
                assert main(["confusion", *words, *way]) == 4
                assert "s3://streets/found/sun.feather" in capfd.readouterr().err
    finally:
        store.rm("streets", recursive=True)


@pytest.mark.slow
def test_workers_read_a_store(scene):
    assert counted("s3://drives/", "workers.json", "--scheduler=2") == counted("", "here.json")


@pytest.mark.slow
def test_what_is_wrong_in_a_store_is_named_with_its_address(scene, capfd):
    table = pq.read_table("detections/part-00001.parquet")
    row = table.column_names.index("score")
    scores = table["score"].to_pylist()
    scores[7] = float("nan")
    pq.write_table(table.set_column(row, "score", [scores]), "bad.parquet")
    scene.put("bad.parquet", "drives/detections/part-00001.parquet")
    for way in ((), ("--scheduler=1",)):
        assert counted("s3://drives/", "o.json", *way)[0] == 4
        assert (
            "s3://drives/detections/part-00001.parquet:8: detection without a score (nan)" in capfd.readouterr().err
        )
    scene.rm("drives/frames", recursive=True)
    assert counted("s3://drives/", "o.json")[0] == 4
    assert "s3://drives/frames: no such file" in capfd.readouterr().err
    assert counted("s3://elsewhere/", "o.json")[0] == 4
    assert "s3://elsewhere/annotations: " in capfd.readouterr().err
