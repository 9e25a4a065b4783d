"""Folders of many formats counted in parts: the bytes of one worker, of several and of shards, the counts at once."""

import json
from dataclasses import replace
from pathlib import Path

import folder_forms
import numpy as np
import pytest
from dask_clusters import Killer, cluster
from folder_forms import FORMS, made_rows, write_mot, written

from verifier.cli import main
from verifier.perception.confusion.document import read_counts
from verifier.perception.confusion.folders import FOLDERS
from verifier.perception.confusion.request import counted
from verifier.perception.settings import CountSettings


@pytest.fixture(scope="module")
def scheduler():
    with cluster(2, processes=False) as address:
        yield address


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return made_rows()


def chosen(form, rows):
    """The choices for a form, whose files are written."""
    write, more = FORMS[form]
    write(rows)
    usual = "own_bin" if form in ("kitti_object", "openlabel", "argoverse", "waymo") else "drop"
    choices = {"annotations": "truth", "detections": "found", "bins": "0,10,20,inf", "unmatched": usual}
    return choices | {"format": form, **more}


def check_parts(choices, scheduler, *numbers):
    """Workers and so many shards (there are three drives) give one document, with the counts of all at once."""
    written("once.json", choices)
    whole = written("workers.json", choices | {"scheduler": scheduler})
    for of in numbers:
        shards = [f"{number}.json" for number in range(1, of + 1)]
        for number, path in enumerate(shards, 1):
            written(path, choices | {"shard": f"{number}/{of}"})
        assert main(["confusion", "merge", *shards[::-1], "-o", "sum.json"]) == 0
        assert Path("sum.json").read_bytes() == whole
    found, once = read_counts("workers.json"), read_counts("once.json")
    assert np.array_equal(found.counts, once.counts)
    for key in ("totals", "source", "matching", "distance", "localisation"):
        assert found.metadata.get(key) == once.metadata.get(key)
    told = [json.loads(Path(f"{name}.json").read_text()).get("sequences") for name in ("workers", "once")]
    assert told[0] == told[1]
    return found


@pytest.mark.parametrize("form", FORMS)
def test_parts_of_folders_give_the_counts_of_all_at_once(rows, scheduler, monkeypatch, thorough, form):
    monkeypatch.setitem(FOLDERS, form, replace(FOLDERS[form], most=min(FOLDERS[form].most, 5)))
    numbers = (1, 2, 5) if thorough else (2,)
    assert check_parts(chosen(form, rows), scheduler, *numbers).counts.sum() > 60


@pytest.mark.slow
@pytest.mark.parametrize("form", ["mot", "waymo"])
def test_one_two_and_four_processes_give_the_same_bytes(rows, form):
    choices = chosen(form, rows)
    whole = written("1.json", choices | {"scheduler": 1})
    assert written("2.json", choices | {"scheduler": 2}) == whole == written("4.json", choices | {"scheduler": 4})


@pytest.mark.slow
@pytest.mark.parametrize("form", ["mot", "waymo"])
def test_a_killed_worker_loses_and_doubles_nothing(rows, form):
    choices = {name.replace("-", "_"): value for name, value in chosen(form, rows).items()}
    whole = counted(CountSettings(**choices, shard="1/1")).counts
    with cluster(2) as address:
        killer = Killer(address, [0.0, 0.5])
        found = counted(CountSettings(**choices, scheduler=address), killer).counts
    assert len(killer.killed) == 2
    for key in ("totals", "dependence"):
        assert found.metadata.get(key) == whole.metadata.get(key)
    assert np.array_equal(found.counts, whole.counts)


@pytest.mark.parametrize("form", FORMS)
def test_drives_without_objects_or_detections_are_parts_like_others(rows, scheduler, form):
    truth, found = rows
    rows = truth[truth["drive"] != "rain"], found[found["drive"] == "fog"]
    choices = chosen(form, rows)
    assert check_parts(choices, scheduler, 5).metadata["totals"]["annotations"] == 48


@pytest.mark.parametrize("form", ["mot", "argoverse"])
def test_one_drive_alone_is_a_part(rows, scheduler, monkeypatch, form):
    monkeypatch.setattr(folder_forms, "DRIVES", ("fog",))
    rows = tuple(table[table["drive"] == "fog"] for table in rows)
    assert check_parts(chosen(form, rows), scheduler, 1, 2).metadata["totals"]["annotations"] == 24


@pytest.mark.parametrize("form", FORMS)
def test_what_is_wrong_in_the_last_part_is_named_whoever_counts(rows, scheduler, capfd, form):
    choices = chosen(form, rows)
    found = Path(choices["detections"])
    path = found if found.is_file() else max(each for each in found.rglob("*sun*") if each.is_file() or form == "mot")
    path = path / "det/det.txt" if path.is_dir() else path
    raw = path.read_bytes()
    middle = raw.rfind(b"\n", 0, len(raw) - 3) + 1 or len(raw) // 2
    cut = path.suffix in (".parquet", ".feather")
    path.write_bytes(raw[: len(raw) // 2] if cut else raw[:middle] + b"x!" + raw[middle:])
    told = []
    for way in ([], ["--scheduler", scheduler], ["--shard", "5/5"]):
        words = [f"--{name}" if value is True else f"--{name}={value}" for name, value in choices.items()]
        assert main(["confusion", *words, *way, "-o", "none.json"]) == 4
        told.append(capfd.readouterr().err)
    assert str(path) in told[0]
    assert told[0] == told[1] == told[2]
    assert not Path("none.json").exists()


def test_parts_that_would_be_counted_otherwise_are_named(rows, scheduler, capfd):
    """By default the first drive says how: who has another class must say what is meant, who has fewer need not."""
    choices = chosen("openlabel", rows)
    words = ["confusion", *(f"--{name}={value}" for name, value in choices.items())]
    path = Path("truth/sun.json")
    text = path.read_text()
    path.write_text(text.replace('"type": "car"', '"type": "pedestrian"'))
    assert main([*words, "-o", "once.json"]) == main([*words, "-o", "parts.json", "--scheduler", scheduler]) == 0
    assert np.array_equal(read_counts("once.json").counts, read_counts("parts.json").counts)
    capfd.readouterr()
    path.write_text(text.replace('"type": "car"', '"type": "tram"'))
    assert main([*words, "--scheduler", scheduler]) == 4
    assert "truth/sun.json: classes that the parts before do not have: tram" in capfd.readouterr().err
    for way in ([], ["--scheduler", scheduler]):
        assert main([*words, "--classes", "car,pedestrian,tram", *way, "-o", f"{len(way)}.json"]) == 0
    assert np.array_equal(read_counts("0.json").counts, read_counts("2.json").counts)
    path.write_text(text.replace('"cuboid"', '"bbox"').replace("0, 0, 0, 0, 1, 4, 2, 1.5", "5, 5"))
    assert main([*words, "--scheduler", scheduler]) == 4
    assert "truth/sun.json" in capfd.readouterr().err


def test_a_line_of_another_sequence_is_left_out_and_one_of_its_own_is_not(rows, scheduler, capfd):
    write_mot(rows)
    choices = {"format": "mot", "annotations": "truth", "detections": "found", "bins": "0,10,inf"}
    choices |= {"distance-file": "metres.csv", "distance-key": "track", "scheduler": scheduler}
    rows = Path("metres.csv").read_text()
    workers = choices.pop("scheduler")
    command = ["confusion", *(f"--{name}={value}" for name, value in choices.items())]
    for frame in ("rain/000099", "hail/000001"):  # of a sequence that there is, and of one that nobody has
        Path("metres.csv").write_text(f"{rows}{frame},1,5\n")
        for way in ([f"--scheduler={workers}"], []):
            assert main([*command, *way]) == 4
            assert f"metres.csv:74: no annotation with track 1 in frame '{frame}'" in capfd.readouterr().err
    for number in (1, 2):
        assert main([*command, f"--shard={number}/2", f"--output={number}.json"]) == 0
    assert main(["confusion", "merge", "1.json", "2.json"]) == 4
    assert "metres.csv names the sequence 'hail', which no shard has" in capfd.readouterr().err


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
