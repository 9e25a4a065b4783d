"""Folders of many formats counted in parts: the bytes of one worker, of several and of shards, the counts at once."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dask_clusters import cluster
from folder_forms import FORMS, made_rows, write_mot, written

from verifier.cli import main
from verifier.perception.confusion.document import read_counts
from verifier.perception.confusion.folders import FOLDERS


@pytest.fixture(scope="module")
def scheduler():
    with cluster(2, processes=False) as address:
        yield address


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return made_rows()


@pytest.mark.parametrize("form", FORMS)
def test_parts_of_folders_give_the_counts_of_all_at_once(rows, scheduler, monkeypatch, form):
    name = form.split()[0]
    if name in FOLDERS:
        monkeypatch.setitem(FOLDERS, name, replace(FOLDERS[name], most=min(FOLDERS[name].most, 5)))
    Path("classes.txt").write_text("car -> car\npedestrian -> pedestrian\n")
    Path("drives.csv").write_text("sequence,drive\nfog,wet\nrain,wet\nsun,dry\n")
    write, more = FORMS[form]
    write(rows)
    usual = "own_bin" if form in ("kitti_object", "openlabel", "argoverse", "waymo") else "drop"
    choices = {"annotations": "truth", "detections": "found", "bins": "0,10,20,inf", "unmatched": usual}
    choices |= {"format": name, **more}
    written("once.json", choices)
    whole = written("workers.json", choices | {"scheduler": scheduler})
    for of in (1, 2, 5):  # more than there are drives
        shards = [f"{number}.json" for number in range(1, of + 1)]
        for number, path in enumerate(shards, 1):
            written(path, choices | {"shard": f"{number}/{of}"})
        assert main(["confusion", "merge", *shards[::-1], "-o", "sum.json"]) == 0
        assert Path("sum.json").read_bytes() == whole
    found, once = read_counts("workers.json"), read_counts("once.json")
    assert found.counts.sum() > 60
    assert np.array_equal(found.counts, once.counts)
    for key in ("totals", "source", "matching", "distance", "localisation"):
        assert found.metadata.get(key) == once.metadata.get(key)
    told = [json.loads(Path(f"{name}.json").read_text()).get("sequences") for name in ("workers", "once")]
    assert told[0] == told[1]


def test_a_line_of_another_sequence_is_left_out_and_one_of_its_own_is_not(rows, scheduler, capfd):
    write_mot(rows)
    choices = {"format": "mot", "annotations": "truth", "detections": "found", "bins": "0,10,inf"}
    choices |= {"distance-file": "metres.csv", "distance-key": "track", "scheduler": scheduler}
    with Path("metres.csv").open("a") as file:
        file.write("rain/000099,1,5\n")
    assert main(["confusion", *(f"--{name}={value}" for name, value in choices.items())]) == 4
    assert "metres.csv:74: no annotation with track 1 in frame 'rain/000099'" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("form", "change", "words"),
    [
        ("cvat", lambda: Path("found/sun.xml").rename("found/moon.xml"), "found/moon.xml"),
        ("bdd100k", lambda: [each.unlink() for each in Path("found").iterdir()], "found: no file *.json in it"),
        (
            "openlabel",
            lambda: [each.rename(f"{each}.json") for each in Path("found").iterdir()],
            "has the name of one",
        ),
        ("argoverse", lambda: Path("truth").rename("t"), "truth: expected a folder"),
        (
            "cvat",
            lambda: Path("truth/a").mkdir() or Path("truth/a/sun.xml").hardlink_to("truth/sun.xml"),
            "another file has",
        ),
    ],
)
def test_files_that_do_not_fit_are_named(rows, scheduler, capfd, form, change, words):
    FORMS[form][0](rows)
    change()
    choices = {"format": form, "annotations": "truth", "detections": "found", "bins": "0,10,inf", **FORMS[form][1]}
    assert main(["confusion", *(f"--{k}={v}" for k, v in choices.items()), "--scheduler", scheduler]) == 4
    assert words in capfd.readouterr().err


def test_sequences_are_chosen_by_their_files(rows, scheduler, capfd):
    write_mot(rows)
    choices = {"format": "mot", "annotations": "truth", "detections": "found", "bins": "0,10,20,inf"}
    choices |= {"distance-file": "metres.csv", "distance-key": "track", "sequence": "sun"}
    two = ["--sequence", "fog", "--scheduler", scheduler, "-o", "two.json"]
    command = ["confusion", *(f"--{name}={value}" for name, value in choices.items())]
    assert main([*command, *two]) == 0
    assert read_counts("two.json").sequences.names == ("fog", "sun")
    assert main([*command, "--sequence", "moon", "--shard", "1/1"]) == 2
    assert "unknown sequence" in capfd.readouterr().err
