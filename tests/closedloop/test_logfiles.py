"""Logs as files: written and read back, and every fault named with its file and line."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from small_logs import HAND, made_detections, made_logs, random_logs, straight

from verifier.base.errors import InputError, UsageError
from verifier.closedloop.logfiles import read_logs, write_logs
from verifier.closedloop.logs import Detections, LogLimits

ANY = LogLimits(math.inf, math.inf)


def assert_same(one, other):
    assert (one.names, one.remarks) == (other.names, other.remarks)
    for name in ("positive", "image_log", "time_s", "position_m", "person_image", "person_m"):
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True), name
    for name in ("heading_rad", "person_box_2d"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine is None) == (theirs is None)
        assert mine is None or np.array_equal(mine, theirs, equal_nan=True)
    assert list(one.detections) == sorted(other.detections)
    for name, mine in one.detections.items():
        theirs = other.detections[name]
        for column in ("image", "strength", "point_m"):
            assert np.array_equal(getattr(mine, column), getattr(theirs, column), equal_nan=True)
        assert (mine.box_2d is None) == (theirs.box_2d is None)
        assert mine.box_2d is None or np.array_equal(mine.box_2d, theirs.box_2d, equal_nan=True)


UNKNOWN = [[math.nan, math.nan], [1 / 3, 1e-17]]
BOXES = np.array([[math.nan] * 4, [0.1, 0.2, 1e6, 1e6]])
EVERYTHING = made_logs(
    {'field, "wet"': (True, straight(3)), "0042": (False, [(461966.16, 6213631.078), (461966.2, 6213631.1)])},
    headings=[0.1, 0.2, 1 / 3, -math.pi, math.pi],
    person_image=np.array([4, 0]),
    person_m=np.array(UNKNOWN),
    person_box_2d=BOXES,
    detections={
        "yolo v3": Detections(np.array([3, 0]), np.array([1e8, -5e-324]), np.array(UNKNOWN), BOXES),
        "nothing": made_detections([]),
    },
    remarks=("The path is made up.", "So are the people."),
)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("logs", [HAND, EVERYTHING], ids=["hand", "everything"])
def test_written_and_read_back(tmp_path, logs, kind):
    write_logs(logs, tmp_path / "logs", kind)
    assert_same(read_logs(tmp_path / "logs"), logs)
    write_logs(read_logs(tmp_path / "logs"), tmp_path / "again", kind)
    files = sorted(path.relative_to(tmp_path / "logs") for path in (tmp_path / "logs").rglob(f"*.{kind}"))
    assert len(files) == 3 + len(logs.detections)
    for path in files:
        assert (tmp_path / "logs" / path).read_bytes() == (tmp_path / "again" / path).read_bytes()


@given(random_logs())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=20)
def test_random_logs_read_back(tmp_path_factory, logs):
    folder = tmp_path_factory.mktemp("logs") / "logs"
    write_logs(logs, folder)
    assert_same(read_logs(folder, ANY), logs)


def test_the_format_as_documented(tmp_path):
    write_logs(HAND, tmp_path / "logs")
    lines = {path.stem: path.read_text().splitlines()[:2] for path in (tmp_path / "logs").rglob("*.csv")}
    assert lines == {
        "logs": ["log,positive", "person,1"],
        "images": ["log,image,time_s,x_m,y_m", "person,0,0,0,0"],
        "people": ["log,image,x_m,y_m", "person,0,5,0"],
        "a": ["log,image,strength,x_m,y_m", "person,1,0.9,5,0"],
    }


# A folder made by hand: rows in no order, images with numbers of their own, semicolons, a byte order mark.
TABLES = {
    "logs.csv": "\ufefflog;positive\nnorth;0\nsouth;1\n",
    "images.csv": "log,image,time_s,x_m,y_m\nsouth,70,1.5,2,0\nnorth,70,0,5,5\n\nsouth,9,1,1,0\nnorth,71,1,5,6\n",
    "people.csv": "log,image,x_m,y_m\nsouth,70,8,0\nsouth,9,,\n",
    "detections/yolo.csv": "log,image,strength,x_m,y_m\nnorth,71,0.5,5,9\nsouth,9,0.25,8,1\n",
}


def folder_of(tmp_path, **changes):
    """A folder with `TABLES`; a change names a file without its suffix, `None` leaves it out."""
    root = tmp_path / "made"
    (root / "detections").mkdir(parents=True)
    for name, text in {**TABLES, **{f"{key.replace('__', '/')}.csv": text for key, text in changes.items()}}.items():
        if text is not None:
            (root / name).write_text(text, encoding="utf-8")
    return root


def test_a_folder_made_by_hand(tmp_path):
    logs = read_logs(folder_of(tmp_path))
    assert logs.names == ("north", "south")
    assert logs.positive.tolist() == [False, True]
    assert logs.image_log.tolist() == [0, 0, 1, 1]
    assert logs.time_s.tolist() == [0, 1, 1, 1.5]
    assert logs.position_m.tolist() == [[5, 5], [5, 6], [1, 0], [2, 0]]
    assert logs.person_image.tolist() == [3, 2]
    assert np.isnan(logs.person_m[1]).all()
    assert logs.source("yolo").image.tolist() == [1, 2]
    assert logs.heading_rad is None
    assert logs.remarks == ()


HEAD = "log,image,time_s,x_m,y_m\n"
GOOD = "north,70,0,5,5\nnorth,71,1,5,6\n"
SOUTH = "south,9,1,1,0\nsouth,70,1.5,2,0\n"
FOUND = "log,image,strength,x_m,y_m\n"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"logs": None}, r"made: no table 'logs\.csv' or 'logs\.parquet' in it"),
        ({"people": None}, r"no table 'people\.csv'"),
        ({"logs": "log,positive\n"}, r"logs\.csv: no log in it"),
        ({"logs": "log,positive\nnorth,1\nsouth,0\nnorth,1\n"}, r"logs\.csv:4: log 'north' occurs twice"),
        ({"logs": "log,positive\nnorth,2\nsouth,0\n"}, r"logs\.csv:2: positive: expected 0 or 1, got 2"),
        ({"logs": "log,positive\nnorth,\nsouth,0\n"}, r"logs\.csv:2: positive: expected 0 or 1, got an empty cell"),
        ({"logs": "log,positive\nnorth,1\nsouth,0\neast,1\n"}, r"logs\.csv:4: log 'east' has no image"),
        ({"images": HEAD + GOOD + SOUTH + "east,1,1,1,1\n"}, r"images\.csv:6: no log 'east' in the table 'logs'"),
        ({"images": HEAD + GOOD + SOUTH + "south,9,7,1,1\n"}, r"images\.csv:6: image 9 of log 'south' occurs twice"),
        (
            {"images": HEAD + GOOD + SOUTH + "south,10,1.5,1,1\n"},
            r"images\.csv:6: image 10 of log 'south' has the same time as another image, 1\.5 s",
        ),
        ({"images": HEAD + GOOD + "south,9,nan,1,1\n"}, r"images\.csv:4: time_s: expected a finite number, got nan"),
        (
            {"images": HEAD + GOOD + "south,9,1,,1\n"},
            r"images\.csv:4: x_m: expected a finite number, got an empty cell",
        ),
        ({"images": HEAD + GOOD + "south,9.5,1,1,1\n"}, r"images\.csv:4: image: expected a whole number, got 9\.5"),
        ({"images": HEAD}, r"logs\.csv:2: log 'north' has no image"),
        (
            {"images": HEAD + GOOD + SOUTH + "south,71,9,3,0\n"},
            r"image 2 .*: 7\.5 s after the one before; at most 2 s",
        ),
        (
            {"images": HEAD + GOOD + SOUTH + "south,71,2,99,0\n"},
            r"97 m from the one before, 0\.5 s later; that is faster",
        ),
        ({"people": "log,image,x_m,y_m\nsouth,8,1,1\n"}, r"people\.csv:2: log 'south' has no image 8"),
        ({"people": "log,image,x_m,y_m\nsouth,71,1,1\n"}, r"people\.csv:2: log 'south' has no image 71"),
        ({"people": "log,image,x_m,y_m\nsouth,9,1,\n"}, r"people\.csv:2: one of x_m and y_m is empty"),
        ({"people": "log,image,x_m,y_m\nsouth,9,1,-1e300\n"}, r"people\.csv:2: a coordinate of -1e\+300 m; at most"),
        ({"images": HEAD + "north,70,0,2e9,5\nsouth,9,1,1,0\n"}, r"images\.csv:2: a coordinate of 2e\+09 m; at most"),
        ({"people": "log,image,x_m,y_m\nsouth,9,1,nan\n"}, r"people\.csv:2: y_m: expected a finite number, got nan"),
        ({"people": "log,image,x_m,y_m,x1\nsouth,9,1,1,1\n"}, r"people\.csv:1: no column 'y1', but 'x1'"),
        ({"people": "log,image,x_m,y_m,x1,y1,x2,y2\nsouth,9,1,1,4,0,3,9\n"}, r"people\.csv:2: the rectangle"),
        ({"people": "log,image,x_m,y_m,x1,y1,x2,y2\nsouth,9,1,1,4,,5,9\n"}, r"people\.csv:2: the rectangle"),
        (
            {"detections__yolo": FOUND + "south,9,nan,1,1\n"},
            r"yolo\.csv:2: strength: expected a finite number, got nan",
        ),
        ({"detections__yolo": FOUND + "south,9,,1,1\n"}, r"yolo\.csv:2: strength: .* got an empty cell"),
        ({"detections__yolo": FOUND + "east,9,1,1,1\n"}, r"yolo\.csv:2: no log 'east'"),
        (
            {"detections__yolo": "log,image,stength,x_m,y_m\n"},
            r"yolo\.csv:1: unknown column 'stength'\n.*did you mean 'strength'",
        ),
    ],
)
def test_folders_that_are_refused(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        read_logs(folder_of(tmp_path, **changes))


def test_tables_of_two_kinds(tmp_path):
    root = folder_of(tmp_path)
    write_logs(HAND, tmp_path / "parquet", "parquet")
    (tmp_path / "parquet/people.parquet").rename(root / "people.parquet")
    with pytest.raises(InputError, match=r"people\.parquet: the table 'people' is there twice, also as people\.csv"):
        read_logs(root)
    (root / "people.parquet").unlink()
    (tmp_path / "parquet/detections/a.parquet").rename(root / "detections/yolo.parquet")
    with pytest.raises(InputError, match=r"yolo\.parquet: source 'yolo' is there twice, also as yolo\.csv"):
        read_logs(root)
    (root / "detections/yolo.parquet").rename(root / "detections/notes.txt")
    with pytest.raises(InputError, match=r"notes\.txt: expected a table of detections"):
        read_logs(root)
    (root / "detections/notes.txt").unlink()
    (root / "images.csv").unlink()
    (root / "images.parquet").write_bytes(b"PAR1 not at all")
    with pytest.raises(InputError, match=r"images\.parquet: not a readable Parquet file"):
        read_logs(root)


def test_parquet_rows_are_named(tmp_path):
    import pyarrow
    from pyarrow import parquet

    write_logs(HAND, tmp_path / "logs", "parquet")
    table = pyarrow.table({"log": ["person"] * 2, "image": [0, 99], "x_m": [1.0, 2.0], "y_m": [1.0, None]})
    parquet.write_table(table, tmp_path / "logs/people.parquet")
    with pytest.raises(InputError, match=r"people\.parquet:2: log 'person' has no image 99"):
        read_logs(tmp_path / "logs")
    parquet.write_table(
        pyarrow.table({**dict(zip(table.column_names, table.columns, strict=True)), "log": [1.5, 2.5]}),
        tmp_path / "logs/people.parquet",
    )
    with pytest.raises(InputError, match=r"column 'log': expected names or whole numbers, got double"):
        read_logs(tmp_path / "logs")


def test_no_folder(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        read_logs(tmp_path / "nowhere")


def test_a_folder_that_is_there_is_never_overwritten(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        write_logs(HAND, tmp_path / "full")
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "mine.txt"]
    (tmp_path / "empty").mkdir()
    write_logs(HAND, tmp_path / "empty")
    assert_same(read_logs(tmp_path / "empty"), HAND)


@pytest.mark.parametrize("name", ["a/b", "", ".hidden", "a\nb", "x" * 201, "a\\b"])
def test_sources_that_cannot_be_files(tmp_path, name):
    with pytest.raises(UsageError, match="cannot be that of a file"):
        write_logs(HAND.with_source(name, made_detections([])), tmp_path / "logs")
    assert list(tmp_path.iterdir()) == []


def test_names_that_cannot_stand_in_a_line(tmp_path):
    with pytest.raises(UsageError, match="cannot stand in one line"):
        write_logs(made_logs({"a\nb": (True, straight(2))}), tmp_path / "logs")


def test_nothing_is_left_of_a_failed_write(tmp_path, monkeypatch):
    import verifier.closedloop.logfiles as module

    def fail(columns, suffix):
        if "strength" in columns:
            raise OSError(28, "No space left on device")
        return b"log\n"

    monkeypatch.setattr(module, "table_bytes", fail)
    with pytest.raises(InputError, match="No space left on device"):
        write_logs(HAND, tmp_path / "logs")
    assert list(tmp_path.iterdir()) == []
