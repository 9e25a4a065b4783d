"""Counts by track or frame, and bounds that take these as independent: by plain definitions, and what is refused."""

import csv
import json
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from context_cases import counted_drives, latch
from shorthands import ends_in_billionths
from tracked_tables import STEPS, write_tracks

from verifier.analysis.intervals.drive_items import UNIT, lower_ends
from verifier.analysis.intervals.rate_intervals import anytime_ends
from verifier.base.errors import InputError
from verifier.cli import main
from verifier.perception.confusion import write_confusion
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.document import read_counts
from verifier.perception.confusion.document_reader import DocumentReader
from verifier.perception.confusion.merging import merge
from verifier.perception.confusion.record import write_record
from verifier.perception.confusion.request import counted
from verifier.perception.settings import CountSettings

LONGEST = 3


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tracks")
    write_tracks(folder)
    return folder


def settings_of(folder, **changes):
    files = {name: str(folder / f"{name}.parquet") for name in ("annotations", "detections", "frames")}
    return replace(CountSettings(format="table", **files, memory=f"run:{LONGEST}"), **changes)


def rows_of(counts):
    """{sequence or unit: {(bin, context, predicted, true): count}}, without column "empty"."""
    divided, found = counts.by_context, defaultdict(Counter)
    for (unit, finer, predicted, true), (number,) in zip(
        divided.tally.index.tolist(), divided.tally.counts.tolist(), strict=True
    ):
        at, context = divmod(finer, divided.per_bin)
        names = (*divided.contexts.names, "untracked")
        told = counts.labels[predicted], counts.labels[true]
        if counts.labels[true]:
            found[counts.sequences.names[unit]][at, names[context], *told] = number
    return found


@pytest.fixture(scope="module")
def plain(tables):
    """The counts by drive, and the path of their record."""
    path = tables / "record.csv"
    made = counted(settings_of(tables, record=str(path)))
    write_record([made.record], path)
    return made.counts, path


@pytest.fixture(scope="module")
def by_unit(tables):
    return {unit: counted(settings_of(tables, units=unit)).counts for unit in ("track", "frame")}


def defined(unit, path):
    """The same from a record: each object followed along its track, with lists."""
    with path.open() as lines:
        told = [row for row in csv.DictReader(lines) if row["kind"] == "object"]
    found, past = defaultdict(Counter), {}
    for row in sorted(told, key=lambda each: (each["sequence"], int(each["frame"].partition("/")[2]))):
        label, said = (frozenset([row[name]]) - {"empty"} for name in ("true", "predicted"))
        frame, key = int(row["frame"].partition("/")[2]), (row["sequence"], row["track"], row["true"])
        context = "untracked"
        if row["track"] != "-1":
            last, length, right = past.get(key, (None, 0, None))
            if last != frame - STEPS[row["sequence"]]:
                length, right = 0, None
            context = f"{'right' if right else 'wrong'}*{min(length, LONGEST)}" if length else "start"
            past[key] = frame, length + 1 if (label == said) == right else 1, label == said
        own = (row["sequence"], frame) if unit == "frame" else key if row["track"] != "-1" else row["sequence"]
        found[own][int(row["bin"]), context, said, label] += 1
    return found


def multiset(found):
    return Counter(frozenset(each.items()) for each in found.values() if each)


@pytest.mark.parametrize("unit", ["track", "frame"])
def test_units_hold_what_the_record_says(unit, plain, by_unit, tmp_path):
    (plain, record), made = plain, by_unit[unit]
    assert np.array_equal(made.by_context.counts, plain.by_context.counts)
    assert np.array_equal(made.counts, plain.counts)
    assert multiset(rows_of(made)) == multiset(defined(unit, record))
    frames = {name.partition("#")[0] for name in made.sequences.names}
    assert frames == set(plain.sequences.names)
    assert made.sequences.frames.max() == (1 if unit == "frame" else plain.sequences.frames.max())
    write_confusion(made, tmp_path / "c.json")
    again = read_counts(tmp_path / "c.json")
    assert (again.by_context.units, rows_of(again)) == (unit, rows_of(made))
    coarser = made.by_context.coarsened(Contexts("run", 1))
    assert coarser.units == unit


def test_units_that_cannot_be_counted(by_unit, tmp_path):
    parts = list(by_unit.values())
    with pytest.raises(InputError, match="by track"):
        merge(parts, ["a", "b"])
    write_confusion(parts[0], tmp_path / "c.json")
    document = json.loads((tmp_path / "c.json").read_text())
    document["contexts"]["units"] = "wheel"
    with pytest.raises(InputError, match="/contexts/units: input should be 'track' or 'frame'"):
        DocumentReader("c.json").counts(document)


# --- Bounds.

TRACKS = [
    {"start": [k % 3 == 0, 1], "right*1": [1, 5 + k % 4], "wrong*1": [k % 2, 2 + k % 3]} for k in range(40)
]  # fmt: skip


@pytest.fixture
def asked(tmp_path):
    """A function that writes a latch and counts of 40 units, and runs it with bounds of a name."""
    rows = [{name: list(map(int, row)) for name, row in each.items()} for each in TRACKS]
    tests = [{"label": "ped", "contexts": "run:1", "z": 0.5, "p_value": 0.4, "permutations": 999}]
    document = counted_drives(rows, Contexts("run", 1), tests=tests)
    (tmp_path / "m.toml").write_text(latch(3))
    (tmp_path / "s.ltl").write_text('model "m.toml"\nseen: P >= 0.5 [ F seen = 1 ]\n')

    def run(units, bounds, *more):
        document["contexts"].pop("units", None)
        document["contexts"] |= {"units": units} if units else {}
        (tmp_path / "c.json").write_text(json.dumps(document))
        words = ["run", str(tmp_path / "s.ltl"), "--cm", str(tmp_path / "c.json"), "--memory", "run:1"]
        return main([*words, "--draws", "300", *(["--bounds", bounds] if bounds else []), *more])

    return run


@pytest.mark.parametrize("unit", ["track", "frame"])
def test_bounds_by_units_are_those_of_as_many_drives(unit, asked, capsys):
    """The same bets on the same table; only what it takes to be independent is another condition."""
    assert asked(None, "drives", "--json") == 0
    drives = json.loads(capsys.readouterr().out)
    assert asked(unit, f"units:{unit}", "--json") == 0
    units = json.loads(capsys.readouterr().out)
    one, other = (found["requirements"][0]["points"][0] for found in (drives, units))
    assert one["uncertainty"]["confidence_bounds"] == other["uncertainty"]["confidence_bounds"]
    assert one["condition"] is None
    assert other["condition"] == (
        f"if {unit}s are independent and none holds more items of a column than the largest seen (2 to 9, by "
        f"column), for the mean matrix over {unit}s"
    )
    basis = units["settings"]["confidence"]["bounds"]
    assert (basis["unit"], basis["name"]) == (
        unit, f"95 % confidence bounds (independent {unit}s, for the mean matrix)",
    )  # fmt: skip
    assert "unit" not in drives["settings"]["confidence"]["bounds"]
    assert asked(unit, f"units:{unit}") == 0
    told = capsys.readouterr().out
    assert f"40 {unit}s, effective number" in told
    assert f"for the mean matrix over {unit}s: where {unit}s differ" in told
    inside = {"track": "frames of one track", "frame": "objects of one frame"}[unit]
    assert f"(40 {unit}s weighted at random, and a phantom {unit}: {inside} are not independent)" in told
    assert asked(unit, f"units:{unit}", "--strict") == 3


@pytest.mark.parametrize(
    ("units", "bounds", "more", "message"),
    [
        ("track", None, [], "the matrices are counted by track, so nobody knows drives: name --bounds units:track"),
        ("track", "drives", [], "the matrices are counted by track"),
        ("track", "units:frame", [], "--bounds units:frame needs matrices that are counted by frame"),
        (None, "units:track", [], "needs matrices that are counted by track: count them with verify confusion"),
        ("track", "units:track", ["--weights", "drive"], "--weights drive is about drives, and --bounds units:track"),
        ("track", "units:track", ["--icc-at-most", "0.1"], "are different assumptions"),
    ],
)
def test_bounds_by_other_units_than_are_counted_are_refused(units, bounds, more, message, asked, capsys):
    assert asked(units, bounds, *more) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("bounds", ["anytime", "items"])
def test_other_units_are_no_drives_that_could_be_resampled(bounds, asked, capsys):
    assert asked("track", bounds, "--json") == 0
    found = json.loads(capsys.readouterr().out)["settings"]["confidence"]
    assert (found["interval"], found["bounds"]["drives"]) == ("credible", None)
    assert asked("track", bounds, "--interval", "bootstrap") == 2


def test_units_of_drives_are_drives(asked, capsys):
    assert asked(None, "drives", "--json") == 0
    drives = json.loads(capsys.readouterr().out)
    assert asked(None, "units:drive", "--json") == 0
    assert json.loads(capsys.readouterr().out)["requirements"] == drives["requirements"]


def test_bounds_by_track_hold_where_tracks_differ():
    """Of 100 data sets of 90 tracks whose rates are drawn from Beta(.5, 2): the rate of a random item is .2."""
    rng, tail = np.random.default_rng(5), Fraction(1, 40)
    covered = Counter()
    for _ in range(100):
        sizes = rng.integers(1, 80, 90)
        hits = rng.binomial(sizes, rng.beta(0.5, 2, 90))
        total, seen = sizes.sum(), hits.sum()
        sides = [lower_ends(each[:, None], sizes[:, None], np.array([79]), tail)[0] for each in (hits, sizes - hits)]
        ends = {
            "tracks": (sides[0], UNIT - sides[1]),
            "items": [int(each) for each in ends_in_billionths(seen, total, float(tail))],
        }
        low, rest = anytime_ends(np.array([seen]), np.array([total]), 2 * float(tail))
        ends["anytime"] = int(low[0]), UNIT - int(rest[0])
        for name, (least, most) in ends.items():
            covered[name] += least <= 0.2 * UNIT <= most
    assert covered["tracks"] == 100
    assert covered["items"] < 60
    assert covered["anytime"] < 80
