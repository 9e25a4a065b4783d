"""Writing all or nothing, and never replacing what is no file."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from verifier.base.errors import InputError, LimitError
from verifier.base.files import (
    csv_text,
    document_text,
    hashes_of_files,
    read_bytes,
    read_text,
    write_bytes,
    write_text,
)


def test_a_file_is_replaced_as_a_whole_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "out.txt"
    write_text(path, "one\n")
    write_text(path, "two\n")
    assert path.read_text() == "two\n"
    assert [each.name for each in tmp_path.iterdir()] == ["out.txt"]


def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_devices_and_pipes_are_written_to_not_replaced(tmp_path):
    write_bytes("/dev/null", b"away")
    assert Path("/dev/null").is_char_device()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    write_bytes(pipe, b"through")
    reader.join(timeout=10)
    assert received == [b"through"]
    assert pipe.is_fifo()


WRITE = "from verifier.base.files import write_text; write_text({!r}, 'new')"


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="there is no /dev/stdout")
def test_standard_output_is_written_to_whatever_stands_behind_it(tmp_path):
    """Into a pipe, and behind what a file already holds; also through a link."""
    (tmp_path / "out.md").symlink_to("/dev/stdout")
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", str(tmp_path / "out.md")):
        command = [sys.executable, "-c", WRITE.format(name)]
        assert subprocess.run(command, capture_output=True, check=True).stdout == b"new"
        log = tmp_path / "log"
        log.write_text("old ")
        with log.open("ab") as stream:
            subprocess.run(command, stdout=stream, check=True)
        assert log.read_text() == "old new"


def test_what_cannot_be_written_is_named_and_leaves_nothing(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="cannot be written: Is a directory"):
        write_text(tmp_path, "text")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        write_text(tmp_path / "out.txt", "text")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("plain", "plain"),
        ("=1+1", "'=1+1"),
        ("@a", "'@a"),
        ("+b", "'+b"),
        ("-c", "'-c"),
        ("\uff1d1", "'\uff1d1"),
        ("\tx", "\\tx"),
        ("\u202ea\x1b[2J", "\\u202ea\\x1b[2J"),
        ("-0.5", "-0.5"),
        ("+1e-3", "+1e-3"),
        (-0.5, "-0.5"),
        (None, ""),
        ("a,b", '"a,b"'),
        ("two\nlines", "two\\nlines"),
    ],
)
def test_no_cell_of_a_table_is_computed_or_moves_a_cursor(cell, written):
    assert csv_text([{"name": cell, "n": 1}]) == f"name,n\n{written},1\n"


def test_columns_of_a_table_without_rows():
    assert csv_text([], ["name", "n"]) == "name,n\n"
    with pytest.raises(ValueError, match="columns"):
        csv_text([])


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("abc")
    with hashes_of_files() as hashes:
        read_text(path)
        read_bytes(tmp_path / "." / "a.txt")
        path.write_text("abd")
        with pytest.raises(InputError, match="the file has changed since it was first read"):
            read_bytes(path)
    # FIPS 180-2, appendix B.1
    assert hashes == {str(path.resolve()): "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}
    assert read_bytes(path) == b"abd"


@pytest.mark.parametrize("number", [1e301, -1e301, 10**301])
def test_a_result_with_a_number_that_no_reader_takes_is_not_written(number):
    with pytest.raises(LimitError, match=r"hold -?1e.301 at /rates/1, and numbers of results go up to"):
        document_text({"rates": [1.0, number]})
    assert document_text({"rates": [1e300, -1e300]})
