"""What every reader refuses, with which words.

A case is a folder under `tests/data/invalid/detections/READER`: its `annotations*` or `detections*` replace those
of `valid`, `options.json` holds options, `expected` the whole message. Class maps and files of distances are one
file each.
"""

import json
from pathlib import Path

import pytest

from verifier.base.errors import ExitCode, InputError
from verifier.perception.detections import Reading, class_map, read_class_map, read_detections, with_distances

FOLDER = Path(__file__).resolve().parents[2] / "data/invalid/detections"
SINGLE = ("class_map", "distances")
READERS = sorted(path.name for path in FOLDER.iterdir() if path.name not in SINGLE)
CASES = [f"{reader}/{path.name}" for reader in READERS for path in sorted((FOLDER / reader).iterdir())]


def role(case, name):
    """The case's own file or folder for a role, or that of `valid`."""
    found = [*Path(case).glob(f"{name}*"), *Path("valid").glob(f"{name}*")]
    return found[0].as_posix()


def read(reader, case):
    path = Path(case) / "options.json"
    options = json.loads(path.read_text()) if path.exists() else {}
    rules = options.get("class_map")
    reading = Reading(class_map=class_map(rules) if rules else None, ignore=tuple(options.get("ignore", ())))
    annotations = options.get("annotations", role(case, "annotations"))
    return read_detections(reader, annotations, role(case, "detections"), reading, **options.get("options", {}))


@pytest.mark.parametrize("reader", READERS)
def test_the_valid_files_are_accepted(reader, monkeypatch):
    monkeypatch.chdir(FOLDER / reader)
    found = read(reader, "valid")
    assert len(found.annotations) > 0
    assert len(found.detections) > 0


@pytest.mark.parametrize("name", [case for case in CASES if not case.endswith("/valid")])
def test_invalid_files_are_refused_with_their_message(name, monkeypatch):
    reader, case = name.split("/")
    monkeypatch.chdir(FOLDER / reader)
    with pytest.raises(InputError) as caught:
        read(reader, case)
    assert str(caught.value) == (Path(case) / "expected").read_text().rstrip("\n")
    assert caught.value.exit_code == ExitCode.BAD_INPUT


def single(kind):
    return sorted(path.name for path in (FOLDER / kind).iterdir() if path.suffix != ".expected")


@pytest.mark.parametrize("name", single("class_map"))
def test_invalid_class_maps_are_refused_with_their_message(name, monkeypatch):
    monkeypatch.chdir(FOLDER / "class_map")
    with pytest.raises(InputError) as caught:
        read_class_map(name)
    assert str(caught.value) == Path(name).with_suffix(".expected").read_text().rstrip("\n")


@pytest.mark.parametrize("name", single("distances"))
def test_invalid_distance_files_are_refused_with_their_message(name, monkeypatch):
    monkeypatch.chdir(FOLDER / "mot")
    data = read("mot", "valid")
    monkeypatch.chdir(FOLDER / "distances")
    with pytest.raises(InputError) as caught:
        with_distances(data, name, "track")
    assert str(caught.value) == Path(name).with_suffix(".expected").read_text().rstrip("\n")


def test_deep_nesting_is_refused(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 200_000)
    with pytest.raises(InputError, match="nested too deeply"):
        read_detections("coco", tmp_path / "deep.json", tmp_path / "deep.json")


@pytest.mark.parametrize("reader", READERS)
def test_ten_megabytes_of_garbage_are_refused(reader, tmp_path):
    path = tmp_path / ("garbage.json" if "nuscenes" in reader or reader == "coco" else "garbage.csv")
    path.write_bytes(bytes(range(32, 127)) * 110_000)
    with pytest.raises(InputError):
        read_detections(reader, path, path)


def test_every_case_changes_something():
    for case in CASES:
        names = {path.name for path in (FOLDER / case).iterdir()} - {"expected"}
        assert names, case
