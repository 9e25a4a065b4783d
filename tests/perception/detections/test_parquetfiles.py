"""Parquet files that are one table, and their rows as a stream, by hand."""

import hashlib

import numpy as np
import pytest

from verifier.base.errors import InputError, UsageError
from verifier.perception.detections import Reading, class_map, stream_tables
from verifier.perception.detections.parquetfiles import FilesInOrder, TablePart, Tables, digest_of, is_address

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
ANY = Reading(class_map=class_map({"*": "any"}))


def write(path, frames, group=2, statistics=True, **columns):
    """Rows in row groups of two; `frames` also without a sequence, as of one drive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = len(frames)
    table = {"frame": arrow.array(frames, arrow.int64()), "class": arrow.array(["ped"] * count, arrow.string())}
    table |= {
        "x": arrow.array([float(k) for k in range(count)], arrow.float64()),
        "y": arrow.array([0.0] * count, arrow.float64()),
    }
    table |= {
        name: value if isinstance(value, arrow.Array) else arrow.array(value) for name, value in columns.items()
    }
    parquet.write_table(arrow.table(table), path, row_group_size=group, write_statistics=statistics)
    return path


def of_sequences(path, names, **more):
    frames = [names[:at].count(name) for at, name in enumerate(names)]
    return write(path, frames, sequence=arrow.array(list(names), arrow.string()), **more)


@pytest.fixture
def files(tmp_path):
    for name, frames in (("a", [0, 1, 2]), ("b", []), ("d/c", [3, 4])):
        write(tmp_path / f"t/{name}.parquet", frames)
    return FilesInOrder.of(tmp_path / "t", {}, ("frame", "class"))


def test_rows_are_numbered_through(files, tmp_path):
    root = str(tmp_path / "t")
    assert (files.paths, files.starts) == (
        tuple(f"{root}/{name}.parquet" for name in ("a", "b", "d/c")),
        (0, 3, 3, 5),
    )
    assert (len(files), [files.file_of(row) for row in range(6)]) == (5, [0, 0, 0, 2, 2, 2])
    assert [(files.place(row).file, files.place(row).line) for row in (0, 2, 3, 4)] == [
        (files.paths[0], 1), (files.paths[0], 3), (files.paths[2], 1), (files.paths[2], 2),
    ]  # fmt: skip
    within = [((0, 3), [0]), ((0, 1), [0]), ((2, 4), [0, 1, 2]), ((3, 5), [2]), ((3, 3), []), ((4, 3), [])]
    assert all(list(files.within(rows)) == numbers for rows, numbers in within)
    none = FilesInOrder.of(tmp_path / "t/b.parquet", {}, ("frame",))
    assert (len(none), none.file_of(0), list(none.within((0, 0)))) == (0, 0, [])
    short = files.without_folders
    assert (short.name, short.paths) == ("t", ("t/a.parquet", "t/b.parquet", "t/d/c.parquet"))


@pytest.mark.parametrize(
    ("rows", "most", "expected"),
    [
        ((0, 5), 10, ["a01", "a2", "c34"]),
        ((0, 5), 1, ["a0", "a1", "a2", "c3", "c4"]),
        ((1, 4), 10, ["a1", "a2", "c3"]),
        ((1, 5), 1, ["a1", "a2", "c3", "c4"]),
        ((2, 3), 10, ["a2"]),
        ((2, 5), 10, ["a2", "c34"]),
        ((0, 2), 10, ["a01"]),
        ((3, 3), 10, []),
    ],
)
def test_rows_of_a_part(files, rows, most, expected):
    found = [(path[-9], table["frame"].to_pylist()) for path, table in files.batches(rows, most)]
    assert ["".join(map(str, [name, *frames])) for name, frames in found] == expected
    assert [table.column_names for _, table in files.batches(rows, most, ["x"])] == [["x"]] * len(expected)


def test_rows_within_a_row_group(tmp_path):
    files = FilesInOrder.of(write(tmp_path / "t.parquet", [0, 1, 2, 3], group=4), {}, ("frame",))
    assert [table["frame"].to_pylist() for _, table in files.batches((1, 2), 10)] == [[1]]
    assert [table["frame"].to_pylist() for _, table in files.batches((1, 4), 2)] == [[1], [2, 3]]


def test_what_is_recorded_of_files(files, tmp_path):
    own = [hashlib.sha256(text.encode()).hexdigest() for text in "xyz"]
    pairs = zip(own, ("a", "b", "d/c"), strict=True)
    lines = "".join(f"{digest}  {name}.parquet\n" for digest, name in pairs)
    expected = {"role": "frames", "name": "t", "files": 3, "sha256": hashlib.sha256(lines.encode()).hexdigest()}
    assert files.record("frames", own) == expected
    one = FilesInOrder.of(tmp_path / "t/a.parquet", {}, ("frame",))
    assert one.record("frames", own[:1]) == {"role": "frames", "name": "a.parquet", "files": 1, "sha256": own[0]}
    assert digest_of(one.paths[0]) == hashlib.sha256((tmp_path / "t/a.parquet").read_bytes()).hexdigest()
    with pytest.raises(InputError, match=r"none\.parquet: cannot be read: No such file"):
        digest_of(str(tmp_path / "none.parquet"))
    assert (is_address("s3://a"), is_address("/s3:/a")) == (True, False)


def test_files_of_a_store(tmp_path):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    for name, frames in (("a", [0, 1]), ("d/c", [2])):
        memory.pipe(f"/h7/{name}.parquet", write(tmp_path / f"{name}.parquet", frames).read_bytes())
    for folder in ("memory://h7", "memory://h7/"):
        files = FilesInOrder.of(folder, {}, ("frame",))
        assert (files.paths, len(files)) == (("memory:///h7/a.parquet", "memory:///h7/d/c.parquet"), 3)
        assert [table["frame"].to_pylist() for _, table in files.batches((1, 3), 9)] == [[1], [2]]
    assert len(FilesInOrder.of("memory://h7/a.parquet", {}, ("frame",))) == 2
    with pytest.raises(UsageError, match="nothing reads this address"):
        FilesInOrder.of("nothing://h7", {}, ("frame",))
    memory.rm("/h7", recursive=True)


def test_files_that_do_not_fit_together(files, tmp_path):
    for columns, told in (({"z": [1.0]}, "'z': double here, none in"), ({"x": [1]}, "'x': int64 here, double in")):
        write(tmp_path / "t/e.parquet", [5], **columns)
        with pytest.raises(InputError, match=rf"e\.parquet: column {told} .*a\.parquet\n  hint: files of one table"):
            FilesInOrder.of(tmp_path / "t", {}, ("frame",))
    (tmp_path / "t/e.parquet").unlink()
    write(tmp_path / "t/d/c.parquet", [3])
    with pytest.raises(InputError, match=r"c\.parquet: the file has changed since it was first read"):
        list(files.batches((0, 5), 10))
    (tmp_path / "t/e.parquet").write_text("?")
    with pytest.raises(InputError, match=r"e\.parquet: not a readable Parquet file"):
        FilesInOrder.of(tmp_path / "t", {}, ("frame",))
    (tmp_path / "n").mkdir()
    for path, words in (("n", r"n: no file \*\.parquet in it"), ("none.parquet", r"none\.parquet: no such file")):
        with pytest.raises(InputError, match=words):
            FilesInOrder.of(tmp_path / path, {}, ("frame",))
    with pytest.raises(InputError, match=r"a\.parquet: no column 'score'"):
        FilesInOrder.of(tmp_path / "t/a.parquet", {}, ("frame", "score"))


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize(
    ("least", "expected"),
    [
        (1, [((0, 3), (0, 1)), ((3, 5), (1, 1)), ((5, 6), (1, 5))]),
        (4, [((0, 3), (0, 1)), ((3, 6), (1, 5))]),
        (5, [((0, 5), (0, 1)), ((5, 6), (1, 5))]),
        (6, [((0, 5), (0, 1)), ((5, 6), (1, 5))]),
        (7, [((0, 6), (0, 5))]),
    ],
)
def test_parts_are_whole_sequences(tmp_path, least, expected, statistics):
    paths = [of_sequences(tmp_path / f"{n}.parquet", names, statistics=statistics, score=[0.5] * len(names))
             for n, names in (("t", "aaabbc"), ("s", "acccc"))]  # fmt: skip
    tables = Tables.of(*paths)
    assert [part.rows for part in tables.parts(least)] == expected
    assert [len(part) for part in tables.parts(least)] == [sum(b - a for a, b in rows) for rows in expected]
    assert tables.whole == TablePart(((0, 6), (0, 5)))


def test_parts_of_tables_of_one_drive_and_of_none(tmp_path):
    scored = {"score": arrow.array([0.5] * 3)}
    write(tmp_path / "t.parquet", [0, 1, 2], **scored)
    of_sequences(tmp_path / "s.parquet", "aab", **scored)
    one = Tables.of(tmp_path / "t.parquet", tmp_path / "t.parquet", frames=tmp_path / "t.parquet")
    assert [part.rows for part in one.parts(1)] == [((0, 3),) * 3]
    assert [record["role"] for record in one.records(str)] == ["annotations", "detections", "frames"]
    mixed = Tables.of(tmp_path / "t.parquet", tmp_path / "s.parquet")
    assert [part.rows for part in mixed.parts(1)] == [((0, 3), (0, 0)), ((3, 3), (0, 2)), ((3, 3), (2, 3))]
    write(tmp_path / "n.parquet", [], score=arrow.array([], arrow.float64()))
    none = Tables.of(tmp_path / "n.parquet", tmp_path / "n.parquet")
    assert [part.rows for part in none.parts(1)] == [((0, 0), (0, 0))]
    write(tmp_path / "w.parquet", [0, 1, 2], sequence=[1, 1, 2], **scored)
    with pytest.raises(InputError, match=r"w\.parquet: sequences are named by another type than in .*s\.parquet"):
        Tables.of(tmp_path / "s.parquet", tmp_path / "w.parquet").parts(1)
    with pytest.raises(UsageError, match="unknown column"):
        Tables.of(tmp_path / "s.parquet", tmp_path / "s.parquet", {"clas": "x"})


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("aabba", r"t\.parquet:5: sequence 'a' comes after 'b': rows must ascend by sequence"),
        ("abab", r"t\.parquet:3: sequence 'a' comes after 'b'"),
        ("aabbbbcb", r"t\.parquet:8: sequence 'b' comes after 'c'"),
        (["a", "a", "a", None], r"t\.parquet:4: sequence: the cell is empty"),
        (["a", "a", "b", None, "c"], r"t\.parquet:4: sequence: the cell is empty"),
    ],
)
def test_sequences_that_do_not_ascend(tmp_path, names, words, statistics):
    names = list(names)
    write(tmp_path / "t.parquet", [0] * len(names), statistics=statistics, sequence=names, score=[0.5] * len(names))
    with pytest.raises(InputError, match=words):
        Tables.of(tmp_path / "t.parquet", tmp_path / "t.parquet").parts(1)


def test_files_of_parts(tmp_path):
    for name, names in (("a", "aab"), ("b", ""), ("c", "bbc"), ("d", "c")):
        of_sequences(tmp_path / f"t/{name}.parquet", names, score=arrow.array([0.5] * len(names), arrow.float64()))
    tables = Tables.of(tmp_path / "t", tmp_path / "t/a.parquet")
    parts = tables.parts(1)
    assert [part.rows for part in parts] == [((0, 2), (0, 2)), ((2, 5), (2, 3)), ((5, 7), (3, 3))]

    def names(parts, whole):
        return [path[-9] for path in tables.paths_of(parts, whole)]

    assert [names([part], False) for part in parts] == [["a", "a"], ["a", "b", "c", "a"], ["c", "d"]]
    assert names([], True) == ["b"]
    assert names(parts[:1], True) == ["a", "b", "a"]
    assert names(parts[::2], False) == ["a", "c", "d", "a"]


def chunks(path, rows, **more):
    return list(
        stream_tables(Tables.of(path, path, frames=more.pop("frames", None)), ANY, rows_per_chunk=rows, **more)
    )


def test_frames_of_a_stream_are_numbered(tmp_path):
    """By the grid on which a sequence's frames lie, else in their order; each chunk has those of its frames."""
    names, frames = "aaaabbbc", [10, 20, 20, 40, 5, 8, 12, 7]
    score = {"score": [0.5] * 8}
    path = write(tmp_path / "t.parquet", frames, sequence=list(names), **score)
    for rows in (1, 3, 8):
        found = chunks(path, rows, numbered=True)
        numbers = [pair for c in found for pair in zip(c.data.frame_name, c.numbers.tolist(), strict=True)]
        assert numbers == [("a/10", 0), ("a/20", 1), ("a/40", 3), ("b/5", 0), ("b/8", 1), ("b/12", 2), ("c/7", 0)]
    assert chunks(path, 8)[0].numbers is None
    alone = write(tmp_path / "u.parquet", [3, 5, 9], score=[0.5] * 3)
    assert [c.numbers.tolist() for c in chunks(alone, 9, numbered=True, frames=alone)] == [[0, 1, 3]]
    zero = write(tmp_path / "zero.parquet", [0, 1], score=[0.5] * 2)
    assert [c.numbers.tolist() for c in chunks(zero, 9, numbered=True)] == [[0, 1]]
    few = write(tmp_path / "few.parquet", [3, 9], score=[0.5] * 2)
    assert [c.numbers.tolist() for c in stream_tables(Tables.of(alone, few), ANY, numbered=True)] == [[0, 1, 3]]
    stamped = write(tmp_path / "stamped.parquet", [0, 0, 0], stamp=[3, 5, 9], score=[0.5] * 3)
    own = parquet.read_table(stamped).drop_columns(["frame"])
    parquet.write_table(own, stamped)
    found = list(stream_tables(Tables.of(stamped, stamped, {"frame": "stamp"}), ANY, numbered=True))
    assert [c.numbers.tolist() for c in found] == [[0, 1, 3]]
    for wrong in (-1, "x"):
        write(tmp_path / "v.parquet", [0], frame=[wrong], score=[0.5])
        with pytest.raises(InputError, match=f"frame '{wrong}': in a stream contexts follow frames that are whole"):
            chunks(tmp_path / "v.parquet", 9, numbered=True)


def test_chunks_and_where_they_go_on(tmp_path):
    path = write(
        tmp_path / "t.parquet", [0, 0, 1, 2, 2, 2, 3], score=[0.5] * 7
    )  # by twos, so that 2 is open at first
    found = chunks(path, 3)
    assert [(c.data.frame_name, c.last_frame, c.rows_done, c.rows_total) for c in found] == [
        (("0", "1"), "1", 6, 14), (("2",), "2", 12, 14), (("3",), "3", 14, 14)
    ]  # fmt: skip
    whole = write(tmp_path / "w.parquet", [0, 0, 1, 2, 2, 2, 3], group=7, score=[0.5] * 7)
    assert ["".join(c.data.frame_name) for c in chunks(whole, 3)] == ["0", "1", "2", "3"]
    for name, frames in (("a", [0]), ("b", [1, 2, 3]), ("c", [4, 5])):
        write(tmp_path / f"t/{name}.parquet", frames, group=3, score=[0.5] * len(frames))
    assert chunks(tmp_path / "t", 3)[0].data.frame_name == ("0", "1", "2")
    for after, rest in (("0", "123"), ("2", "3"), ("3", "")):
        for rows in (1, 3, 20):
            again = chunks(path, rows, after=after)
            assert "".join(name for c in again for name in c.data.frame_name) == rest
            assert sum(len(c.data.annotations) for c in again) == {"123": 5, "3": 1, "": 0}[rest]
    first = TablePart(((0, 3), (0, 2)))
    part = chunks(path, 20, part=first)
    assert [(c.data.frame_name, c.rows_done, c.rows_total) for c in part] == [(("0", "1"), 5, 5)]
    later = chunks(path, 20, part=TablePart(((3, 7), (3, 6))))
    assert later[0].data.annotations.line.tolist() == [4, 5, 6, 7]
    assert later[0].data.detections.line.tolist() == [4, 5, 6]
    assert later[0].rows_done == later[0].rows_total == 7


def test_a_table_that_ends_before_the_other(tmp_path):
    truth = write(tmp_path / "t.parquet", [0, 4, 8, 9, 10], score=[0.5] * 5)
    seen = write(tmp_path / "s.parquet", [0, 4, 4, 4, 8, 8, 9, 9, 9, 10], score=[0.5] * 10)
    for rows in (1, 2, 3, 5):
        found = list(stream_tables(Tables.of(truth, seen), ANY, rows_per_chunk=rows))
        rows_of = [line for c in found for line in c.data.annotations.line.tolist()]
        assert ("".join(name for c in found for name in c.data.frame_name), rows_of) == ("048910", [1, 2, 3, 4, 5])
        assert [line for c in found for line in c.data.detections.line.tolist()] == list(range(1, 11))
    wrong = write(tmp_path / "w.parquet", [0, 2, 1, 3], score=[0.5] * 4)
    with pytest.raises(InputError, match=r"w\.parquet:3: frame '1' comes after '2'"):
        chunks(wrong, 9)


def test_a_chunk_in_no_frame_says_nothing_of_all_frames(tmp_path):
    truth, seen = (write(tmp_path / f"{n}.parquet", f, score=[0.5] * 2) for n, f in (("t", [0, 1]), ("s", [2, 2])))
    with pytest.raises(InputError, match=r"s\.parquet:1: detection in frame '2', which is not among the frames"):
        list(stream_tables(Tables.of(truth, seen), ANY))


def test_rows_of_several_files_are_told_by_their_file(tmp_path):
    for name, frames in (("a", [0, 1]), ("b", [2, 3])):
        write(tmp_path / f"t/{name}.parquet", frames, score=[0.5, 0.5])
    data = chunks(tmp_path / "t", 20)[0].data
    assert (data.annotations.file.tolist(), data.annotations.line.tolist()) == ([0, 0, 1, 1], [1, 2, 1, 2])
    assert data.detections.file.tolist() == [2, 2, 3, 3]
    write(tmp_path / "t/b.parquet", [2, 3], score=[0.5, float("nan")])
    with pytest.raises(InputError, match=r"t/b\.parquet:2: detection without a score"):
        chunks(tmp_path / "t", 20)
    write(tmp_path / "t/b.parquet", [1, 0], score=[0.5, 0.5])
    with pytest.raises(InputError, match=r"t/b\.parquet:2: frame '0' comes after '1': rows must ascend"):
        chunks(tmp_path / "t", 20)
    write(tmp_path / "t/b.parquet", [1, None], score=[0.5, 0.5])
    with pytest.raises(InputError, match=r"t/b\.parquet:2: frame: the cell is empty"):
        chunks(tmp_path / "t", 3)


@pytest.mark.parametrize("damaged", [0, 1])
def test_a_part_reads_its_row_groups_alone(tmp_path, damaged):
    path = write(tmp_path / "t.parquet", [0, 1, 2, 3])
    files = FilesInOrder.of(path, {}, ("frame",))
    column = parquet.ParquetFile(path).metadata.row_group(damaged).column(0)
    raw = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    raw[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(raw)
    fine = (2, 4) if damaged == 0 else (0, 2)
    assert [table["frame"].to_pylist() for _, table in files.batches(fine, 10)] == [list(range(*fine))]
    with pytest.raises(InputError, match=rf"t\.parquet: not readable behind row {2 * damaged}: "):
        list(files.batches((0, 4), 10))


def test_sequences_of_a_large_row_group(tmp_path):
    """Of more rows than are read at once."""
    count = 2**20
    codes = arrow.array(np.repeat([0, 1], [count + 1, 2]).astype(np.int8))
    whole = {
        "sequence": arrow.DictionaryArray.from_arrays(codes, ["a", "b"]),
        "frame": codes,
        "class": codes,
        "score": codes,
    }
    parquet.write_table(arrow.table(whole), tmp_path / "t.parquet", row_group_size=2 * count)
    tables = Tables.of(tmp_path / "t.parquet", tmp_path / "t.parquet")
    assert [part.rows[0] for part in tables.parts(1)] == [(0, count + 1), (count + 1, count + 3)]
