"""Archives are read in memory, with names and sizes checked first."""

import io
import zipfile

import pytest

from verifier.base.errors import InputError
from verifier.perception.detections import sources
from verifier.perception.detections.sources import read_source


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
    with pytest.raises(InputError, match="is encrypted"):
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
