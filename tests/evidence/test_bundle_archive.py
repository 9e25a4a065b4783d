"""Bundles are read safely: nothing escapes, nothing swells, nothing hides, whatever the archive says about itself."""

import io
import os
import struct
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import InputError, LimitError
from verifier.evidence.bundle.archive import DEFAULT_LIMITS, ReadingLimits, read_bundle, write_bundle, zip_bytes
from verifier.evidence.paths import collision_in, fault_of

FILES = {"a/b.txt": b"one\n", "c.json": b"{}\n"}


def archive_of(entries, compression=zipfile.ZIP_STORED):
    """An archive with these (name or ZipInfo, content) in this order."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return stream.getvalue()


def refused(tmp_path, raw, match, kind=InputError, limits=DEFAULT_LIMITS):
    (tmp_path / "b.zip").write_bytes(raw)
    with pytest.raises(kind, match=match):
        read_bundle(tmp_path / "b.zip", limits)


def test_what_is_written_is_read_back(tmp_path):
    for name in ("b", "b.zip"):
        write_bundle(FILES, tmp_path / name)
        assert read_bundle(tmp_path / name) == FILES


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("../evil", "leads elsewhere"),
        ("a/../../evil", "leads elsewhere"),
        ("/etc/passwd", "absolute"),
        ("a//b", "leads elsewhere"),
        ("./a", "leads elsewhere"),
        ("C:\\evil", "character|separators"),
        ("..\\evil", "character|separators"),
        ("a:b", "character"),
        ("a\x1b[2J", "character"),
        ("a\u202eb", "character"),
        ("a.", "another one"),
        ("a ", "another one"),
        ("NUL.txt", "another one"),
        ("e\u0301", "composed"),
        ("x" * 201, "more than 200 bytes"),
        ("/".join(["x" * 100] * 5), "more than 400 bytes"),
    ],
)
def test_a_name_that_no_bundle_has_is_refused(name, match, tmp_path):
    refused(tmp_path, archive_of([(name, b"")]), match)
    assert not (tmp_path.parent / "evil").exists()


@pytest.mark.parametrize(
    ("names", "match"),
    [
        (("a.txt", "A.TXT"), "beside each other"),
        (("stra\u00dfe", "STRASSE"), "beside each other"),
        (("a", "a/b"), "beside each other"),
        (("A", "a/b"), "beside each other"),
    ],
)
def test_names_that_some_system_takes_for_one_are_refused(names, match, tmp_path):
    refused(tmp_path, archive_of([(name, b"") for name in names]), match)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_entry_that_occurs_twice_is_refused(tmp_path):
    refused(tmp_path, archive_of([("a", b"1"), ("a", b"2")]), "beside each other")


def test_a_link_in_an_archive_is_refused(tmp_path):
    info = zipfile.ZipInfo("link")
    info.create_system = 3
    info.external_attr = 0o120777 << 16
    refused(tmp_path, archive_of([(info, b"/etc/passwd")]), "is a link")


def test_a_folder_entry_is_refused(tmp_path):
    refused(tmp_path, archive_of([(zipfile.ZipInfo("a/"), b"")]), "entry for a folder")


def test_compressed_and_encrypted_entries_are_refused(tmp_path):
    refused(tmp_path, archive_of([("a", b"0" * 99)], zipfile.ZIP_DEFLATED), "is compressed .method 8.")
    refused(tmp_path, archive_of([("a", b"0" * 99)], zipfile.ZIP_LZMA), "is compressed .method 14.")
    raw = bytearray(archive_of([("a", b"secret")]))
    raw[6] |= 1  # flag bit 0 in the local header
    raw[raw.index(b"PK\x01\x02") + 8] |= 1  # and in the directory
    refused(tmp_path, bytes(raw), "is encrypted")


def test_a_bomb_is_refused_by_what_it_declares_and_by_what_it_holds(tmp_path):
    one = archive_of([("a", b"0" * 100)])
    refused(tmp_path, one, "100 bytes; at most 99", LimitError, ReadingLimits(file_bytes=99))
    two = archive_of([("a", b"0" * 60), ("b", b"0" * 60)])
    refused(tmp_path, two, "more than|120 bytes together", LimitError, ReadingLimits(total_bytes=119))
    refused(tmp_path, archive_of([(str(k), b"") for k in range(11)]), "more than 10 files", LimitError,
            ReadingLimits(files=10))  # fmt: skip
    # 10^6 bytes that compress to 1,000, said to be stored: the declared sizes do not fit what is there.
    raw = bytearray(archive_of([("a", b"0" * 10**6)], zipfile.ZIP_DEFLATED))
    place = raw.index(b"PK\x01\x02")
    raw[8:10] = raw[place + 10 : place + 12] = struct.pack("<H", 0)
    refused(tmp_path, bytes(raw), "size|Bad|unpacked|byte")


def test_nothing_can_hide_beside_the_files(tmp_path):
    sound = zip_bytes(FILES)
    (tmp_path / "b.zip").write_bytes(sound)
    assert read_bundle(tmp_path / "b.zip") == FILES
    refused(tmp_path, b"#!/bin/sh\n" + sound, "is not as verify evidence build writes it")
    refused(tmp_path, sound + b"more", "not as verify|no sound zip")
    commented = io.BytesIO(sound)
    with zipfile.ZipFile(commented, "a") as archive:
        archive.comment = b"signed by nobody"
    refused(tmp_path, commented.getvalue(), "not end as verify evidence build writes it")
    refused(tmp_path, archive_of(reversed(list(FILES.items()))), "unpack it and check the folder")


@given(st.data())
def test_every_flipped_bit_of_an_archive_is_found(data):
    sound = bytearray(zip_bytes(FILES))
    at = data.draw(st.integers(0, len(sound) - 1))
    sound[at] ^= 1 << data.draw(st.integers(0, 7))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "b.zip"
        place.write_bytes(sound)
        with pytest.raises(InputError):
            read_bundle(place)


def test_an_altered_content_is_named(tmp_path):
    refused(tmp_path, zip_bytes(FILES).replace(b"one\n", b"two\n"), "a/b.txt")


def test_what_is_no_archive_is_refused(tmp_path):
    refused(tmp_path, b"", "no sound zip archive")
    refused(tmp_path, b"PK\x03\x04", "no sound zip archive")
    refused(tmp_path, zip_bytes(FILES)[:-30], "no sound zip archive")
    with pytest.raises(InputError, match="no such bundle"):
        read_bundle(tmp_path / "missing.zip")
    with pytest.raises(InputError, match="expected a folder or a zip archive"):
        read_bundle("/dev/null")


def test_links_pipes_and_empty_folders_in_a_folder_are_refused(tmp_path):
    def bundle(name):
        folder = tmp_path / name
        write_bundle(FILES, folder)
        return folder

    secret = tmp_path / "secret"
    secret.write_text("of the owner")
    (bundle("file") / "d").symlink_to(secret)
    (bundle("folder") / "d").symlink_to(tmp_path)
    os.mkfifo(bundle("pipe") / "d")
    (bundle("empty") / "d").mkdir()
    for name, match in (("file", "is a link"), ("folder", "is a link"), ("pipe", "is no file"), ("empty", "empty")):
        with pytest.raises(InputError, match=match):
            read_bundle(tmp_path / name)


def test_limits_hold_for_folders_too(tmp_path):
    write_bundle(FILES, tmp_path / "b")
    for limits in (ReadingLimits(file_bytes=3), ReadingLimits(total_bytes=6), ReadingLimits(files=1)):
        with pytest.raises(LimitError):
            read_bundle(tmp_path / "b", limits)


@given(st.text(min_size=1), st.text(min_size=1))
def test_accepted_names_stay_inside_and_apart(one, other):
    for name in (one, other):
        if fault_of(name) is None:
            assert not name.startswith(("/", ".."))
            assert os.path.normpath(name) == name
    if one.casefold() == other.casefold():
        assert collision_in([one, other]) is not None
