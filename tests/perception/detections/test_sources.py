"""Archives are read in memory, with names and sizes checked first."""

import hashlib
import io
import zipfile

import numpy as np
import pytest

from verifier.base.errors import InputError, UsageError
from verifier.perception.detections import Reading, sources
from verifier.perception.detections.classmap import only_files
from verifier.perception.detections.columns import codes
from verifier.perception.detections.sources import Elements, NoFilesError, elements, read_source


def archive(path, names, **options):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name in names:
            info = zipfile.ZipInfo("x.txt")
            info.compress_type = zipfile.ZIP_DEFLATED
            info.filename = name  # as a hostile archive would have it, unchanged
            target.writestr(info, options.get("text", "1 2 3\n"))
    return path


@pytest.mark.parametrize("name", ["../escape.txt", "/etc/passwd.txt", "a/../../b.txt", "a\\..\\b.txt", "C:/x.txt"])
def test_names_that_leave_the_archive_are_refused(tmp_path, name):
    with pytest.raises(InputError, match="unsafe file name"):
        read_source(archive(tmp_path / "a.zip", [name]), "detections")


def test_an_archive_that_unfolds_too_far_is_refused_before_reading(tmp_path, monkeypatch):
    path = archive(tmp_path / "a.zip", ["a.txt", "b.txt"], text="0" * 1_000_000)
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(sources, "LARGEST_SOURCE", 1_500_000)
    with pytest.raises(InputError, match="holds 2000000 bytes; at most 1500000 are read"):
        read_source(path, "detections")


def test_an_archive_that_lies_about_its_size_gives_no_more_than_it_declares(tmp_path):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("a.txt", "7" * 1000)
    lied = raw.getvalue().replace((1000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    (tmp_path / "a.zip").write_bytes(lied)
    with pytest.raises(InputError, match="not a readable zip archive"):
        read_source(tmp_path / "a.zip", "detections")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_other_archives_that_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="is in the archive twice"):
        read_source(archive(tmp_path / "twice.zip", ["a.txt", "a.txt"]), "detections")
    with pytest.raises(InputError, match=r"no file \*\.txt"):
        read_source(archive(tmp_path / "none.zip", ["a.png"]), "detections")
    whole = archive(tmp_path / "whole.zip", ["a.txt"]).read_bytes()
    (tmp_path / "damaged.zip").write_bytes(whole.replace(b"a.txt", b"b.txt", 1))
    with pytest.raises(InputError, match="not a readable zip archive"):
        read_source(tmp_path / "damaged.zip", "detections")
    locked = bytearray(whole)
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "locked.zip").write_bytes(locked)
    with pytest.raises(InputError, match=r"'a\.txt' is encrypted"):
        read_source(tmp_path / "locked.zip", "detections")
    monkeypatch.setattr(sources, "MOST_FILES", 1)
    with pytest.raises(InputError, match="it has 2 files; at most 1"):
        read_source(archive(tmp_path / "many.zip", ["a.txt", "b.txt"]), "detections")


def test_folders_are_read_in_order_and_their_digest_does_not_depend_on_where_they_are(tmp_path):
    digests = []
    for folder in ("one", "two"):
        (tmp_path / folder / "Car").mkdir(parents=True)
        (tmp_path / folder / "Car/b.txt").write_text("2\n")
        (tmp_path / folder / "a.txt").write_text("1\n")
        found = read_source(tmp_path / folder, "annotations")
        assert [(each.stem, each.folder) for each in found.members] == [("b", "Car"), ("a", "")]
        digests.append(found.record["sha256"])
    assert digests[0] == digests[1]
    (tmp_path / "two/a.txt").write_text("3\n")
    assert read_source(tmp_path / "two", "annotations").record["sha256"] != digests[0]


def test_limits_are_what_may_be_read(tmp_path, monkeypatch):
    (tmp_path / "both").mkdir()
    for name in ("both/a.txt", "both/b.txt", "both/c.csv"):
        (tmp_path / name).write_text("12345")
    packed = archive(tmp_path / "both.zip", ["a.txt", "b.txt"], text="12345")
    for where in (tmp_path / "both", packed):
        for name, most, words in (("MOST_FILES", 2, "it has 2 files"), ("LARGEST_SOURCE", 10, "it holds 10 bytes")):
            with monkeypatch.context() as patch:
                patch.setattr(sources, name, most)
                assert len(read_source(where, "detections").members) == 2
                patch.setattr(sources, name, most - 1)
                with pytest.raises(InputError, match=f"{words}; at most {most - 1} are read"):
                    read_source(where, "detections")


def test_a_file_alone_and_files_of_a_part(tmp_path):
    (tmp_path / "d").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"d/{name}.txt").write_text(name)
    alone = read_source(tmp_path / "d/a.txt", "labels")
    assert [(member.stem, member.folder, member.raw) for member in alone.members] == [("a", "d", b"a")]
    digest = hashlib.sha256(b"a").hexdigest()
    assert alone.record == {"role": "labels", "name": "a.txt", "files": 1, "sha256": digest}
    assert sources.digest_record("labels", tmp_path / "d/a.txt", b"a") == alone.record
    for paths, role, stems in (
        ([tmp_path / "d/b.txt"], "labels", "b"),
        ([], "labels", ""),
        ([], "calibration", "ab"),
    ):
        with only_files(list(map(str, paths))):
            assert [member.stem for member in read_source(tmp_path / "d", role).members] == list(stems)
    with pytest.raises(NoFilesError, match=r"no file \*\.xml in it"):
        read_source(tmp_path / "d", "labels", ".xml")


def test_elements_by_hand():
    items = Elements([{"a": 1, "v": [1, 2.5]}, {"a": 2.5, "v": [3, 4], "t": "x"}], "f.json", "things", "/{}".format)
    assert (len(items), items.values("a"), items.values("t", "")) == (2, [1, 2.5], ["", "x"])
    assert (items.texts("t", "y"), items.numbers("b", 7).tolist()) == (["y", "x"], [7, 7])
    assert items.numbers("a").tolist() == [1, 2.5]
    assert items.vectors("v", 2).tolist() == [[1, 2.5], [3, 4]]
    nulls = Elements([{"v": None}, {"v": [None, 2]}, {"v": [3, 4]}], "f.json", "things", "/{}".format)
    expected = [[np.nan, np.nan], [np.nan, 2], [3, 4]]
    assert np.array_equal(nulls.vectors("v", 2, unknown=True), expected, equal_nan=True)
    ends = Elements([{"n": 2**63 - 1}, {"n": -(2**63)}], "f.json", "things", "/{}".format)
    assert ends.whole("n").tolist() == [2**63 - 1, -(2**63)]


@pytest.mark.parametrize(
    ("rows", "read", "message"),
    [
        ([{}, 3], lambda items: items.values("a"), "/1: expected an object, got 3"),
        ([{"a": 1}, {}], lambda items: items.values("a"), "/1: missing key 'a'"),
        ([{"a": "x"}, {"a": 1}], lambda items: items.texts("a"), "/1/a: expected a string, got 1"),
        ([{"a": 1}, {"a": True}], lambda items: items.numbers("a"), "/1/a: expected a number, got True"),
        ([{"a": 1}, {"a": 1.0}], lambda items: items.whole("a"), "/1/a: expected a whole number, got 1.0"),
        ([{"a": 1}, {"a": 2**63}], lambda items: items.whole("a"), "/1/a: a whole number of more than 64 bits"),
        (
            [{"a": 1}, {"a": -(2**63) - 1}],
            lambda items: items.whole("a"),
            "/1/a: a whole number of more than 64 bits",
        ),
        (
            [{"a": -(2**63)}, {"a": 2**63}],
            lambda items: items.whole("a"),
            "/1/a: a whole number of more than 64 bits",
        ),
        (
            [{"a": [1, None]}],
            lambda items: items.vectors("a", 2),
            "/0/a: expected a list of 2 numbers, got [1, None]",
        ),
        ([{"a": 10**400}], lambda items: items.numbers("a"), "a: a number too large to be one"),
        ([{"a": [1]}, {"a": 1}], lambda items: items.vectors("a", 1), "/1/a: expected a list of 1 numbers, got 1"),
        (
            [{"a": [1, 2]}, {"a": [1]}],
            lambda items: items.vectors("a", 2),
            "/1/a: expected a list of 2 numbers, got [1]",
        ),
        (
            [{"a": [1, 2]}, {"a": [1, "x"]}, {"a": [1, None]}],
            lambda items: items.vectors("a", 2),
            "/1/a: expected a list of 2 numbers, got [1, 'x']",
        ),
        (
            [{"a": [1, None]}, {"a": ["x", 1]}],
            lambda items: items.vectors("a", 2, unknown=True),
            "/1/a: expected a list of 2 numbers, got ['x', 1]",
        ),
    ],
)
def test_elements_that_are_refused(rows, read, message):
    with pytest.raises(InputError) as caught:
        read(Elements(rows, "f.json", "things", "/{}".format))
    assert str(caught.value) == f"f.json: {message}"


def test_lists_of_a_document():
    assert elements({"a": [{"b": 1}]}, "f.json", "things", "a").fail(0, "b", "no").place.path == "/a/0/b"
    assert elements([{}], "f.json", "things").fail(0, "", "no").place.path == "/0"
    for document, key, message in (
        ([], "a", "f.json: expected an object with the key 'a'"),
        ({"b": 1}, "a", "f.json: expected an object with the key 'a'"),
        ({"a": 1}, "a", "f.json: /a: expected a list of things, got 1"),
        ({"a": 1}, "", "f.json: expected a list of things, got {'a': 1}"),
    ):
        with pytest.raises(InputError) as caught:
            elements(document, "f.json", "things", key)
        assert str(caught.value) == message
    assert [codes("abac")[0].tolist(), codes("abac")[1]] == [[0, 1, 0, 2], ("a", "b", "c")]


def test_frames_by_the_stem_of_their_names():
    """Where stems alone are not different, in their sequence."""
    by_stem = Reading(match_frames="stem")
    assert by_stem.record()["match_frames"] == "stem"
    assert "match_frames" not in Reading().record()
    assert Reading().frame_index({"a": 0}, ["b"]) == {"a": 0}
    index = by_stem.frame_index({"d/007.png": 4, "x.y.jpg": 5, "000": 6, "q\\b.txt": 7, "0a": 8})
    wanted = {
        "7": 4,
        "e/0007.jpg": 4,
        "x.y": None,
        "x.y.png": 5,
        "0": 6,
        0: 6,
        "b": 7,
        "r\\b.png": 7,
        "a": None,
        "0a": 8,
    }
    assert {name: index.get(name) for name in wanted} == wanted
    assert index.get("none", -1) == -1
    numbered = by_stem.frame_index({7: 0, 3: 1}, ["b/1.png", "b/2.png"])
    assert [numbered.get(name) for name in ("1.jpg", "02", 7)] == [0, 1, None]
    pairs = by_stem.frame_index({("s", "1"): 0, ("t", "01"): 1})
    assert [pairs.get(key) for key in (("s", "001"), ("t", "1"), ("u", "1"), "1")] == [0, 1, None, None]
    alone = by_stem.frame_index({("s", "1"): 0, ("t", "2"): 1})
    assert [alone.get(key) for key in (("x", "1"), ("", "2"), "2")] == [0, 1, 1]
    for names, words in (
        ({"a/1.png": 0, "b/01.jpg": 1}, "the frames 'a/1.png' and 'b/01.jpg' have one stem"),
        ({("s", "1"): 0, ("t", "1"): 1, ("s", "01"): 2}, "the frames 's/1' and 's/01' have one stem"),
        ({("", "1"): 0, ("", "01"): 2}, "the frames '1' and '01' have one stem"),
    ):
        with pytest.raises(InputError, match=words):
            by_stem.frame_index(names)
    with pytest.raises(UsageError):
        Reading(ignore=("no",))
