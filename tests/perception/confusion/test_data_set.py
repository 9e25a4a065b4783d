"""The record of a test set: every annotation accounted for, what people state, errors of annotation, looks."""

import hashlib
import itertools
import json
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from small_bundles import MODEL, SPEC

import verifier
from verifier.base.documents import json_values, read_document
from verifier.base.errors import ExitCode, InputError, UsageError
from verifier.cli import main
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.counts import ConfusionCounts, Sequences
from verifier.perception.confusion.data_set import (
    NAMES,
    PARTS,
    DataRequirement,
    DataSetRecord,
    UseRecord,
    annotation_error,
    annotations_told,
    croissant,
    frame_hashes,
    looks_at,
    merged_record,
    read_stated,
    record_of,
    with_record,
    with_uses,
)
from verifier.perception.confusion.document import read_counts
from verifier.perception.confusion.document_types import ConfusionDocument
from verifier.perception.confusion.tally import Tally

STATED = """
purpose = "Test"
gaps = "no snow"
[collection]
places = "north"
[annotation]
guide = "v2"
error_rate = [0.002, 0.01]
[terms]
licence = "CC-BY-4.0"
[[requirement]]
text = "1000 people"
check = "counted: 1200"
[odd.weather]
dry = [0.7, 0.9]
wet = [0.3, 0.1]
"""


def tables(folder, rows, name=""):
    """Truth, reports and frames; rows are (sequence, frame, class, x, reported)."""
    there, seen, frames = ["sequence,frame,class,x,y"], ["sequence,frame,class,score,x,y"], ["sequence,frame"]
    for sequence, frame, label, x, reported in rows:
        there += [f"{sequence},{frame},{label},{x},0"] if label else []
        seen += [f"{sequence},{frame},{label},0.9,{x},0"] if reported else []
        frames.append(f"{sequence},{frame}")
    for file, lines in (("truth", there), ("found", seen), ("frames", dict.fromkeys(frames))):
        (folder / f"{name}{file}.csv").write_text("\n".join(lines) + "\n")


def count(folder, *words, name="", target="m.json"):
    files = [f"--{key}={name}{file}.csv" for key, file in (("annotations", "truth"), ("detections", "found"))]
    return main(["confusion", "--format", "table", *files, f"--frames={name}frames.csv", *words, "-o", target])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = random.Random(2)
    rows = [(f"s{k % 12}", k, "ped", round(rng.uniform(0.5, 9), 2), rng.random() < 0.75) for k in range(240)]
    tables(tmp_path, [*rows, *((f"s{k % 12}", k, "", 0, False) for k in range(240, 300))])
    (tmp_path / "data.toml").write_text(STATED)
    (tmp_path / "two_looks.toml").write_text(MODEL)
    (tmp_path / "two_looks.ltl").write_text(SPEC.replace("../models/", ""))
    return tmp_path


@pytest.mark.parametrize("seed", range(6))
def test_left_out_and_counted_add_up_to_read(seed, tmp_path, monkeypatch):
    """Ledgers of random data under random filters, against what each object of the data says of itself."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(seed)
    labels = [rng.choice(["ped", "bird", "sign"]) for _ in range(300)]
    rows = [
        (f"s{rng.randint(0, 2)}", k, label, round(rng.uniform(1, 30), 1), rng.random() < 0.8)
        for k, label in enumerate(labels)
    ]
    tables(tmp_path, rows)
    (tmp_path / "classes.txt").write_text("ped -> ped\nsign -> dont_care\nbird -> ignore\n")
    far, removed = rng.choice([12, 18, 25]), rng.choice(["ignore", "drop"])
    words = ["--class-map=classes.txt", "--bins=2,10", "--outside=drop", f"--range=0..{far}", f"--filtered={removed}"]
    assert count(tmp_path, *words, "--sequence=s0", "--sequence=s1") == 0
    told = annotations_told(read_counts("m.json"))
    kept = [row for row in rows if row[0] != "s2"]
    people = [row for row in kept if row[2] == "ped" and row[3] < far]
    expected = {
        "in frames that are left out": len(rows) - len(kept),
        "of classes that are left out": sum(row[2] == "bird" for row in kept),
        "regions that are not judged": sum(row[2] == "sign" for row in kept),
        "filter range": sum(row[2] == "ped" and row[3] >= far for row in kept),
        "in no bin": sum(not 2 <= row[3] < 10 for row in people),
    }
    assert told["excluded"] == {name: number for name, number in expected.items() if number}
    assert told["counted"] == sum(2 <= row[3] < 10 for row in people)
    assert told["read"] == 300 == told["counted"] + sum(told["excluded"].values())


def test_faulty_annotations_that_are_ignored_are_counted_apart_from_detections(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables(tmp_path, [("a", k, "ped", 5, True) for k in range(4)])
    with Path("truth.csv").open("a") as file:
        file.write("a,99,ped,5,0\n")
    with Path("found.csv").open("a") as file:
        file.write("a,98,ped,0.9,5,0\na,97,ped,0.9,5,0\n")
    assert count(tmp_path, "--bins=0,10", "--ignore=unknown_frames") == 0
    assert annotations_told(read_counts("m.json")) == {
        "read": 5, "excluded": {"faulty or in no known frame": 1}, "counted": 4,
    }  # fmt: skip


@pytest.mark.parametrize("how", [["--stream"], ["--labelling=proposition"]])
def test_however_it_is_counted_the_ledger_is_the_same(folder, how):
    pytest.importorskip("pyarrow")
    assert count(folder, "--bins=0,5", "--outside=drop") == 0
    told = annotations_told(read_counts("m.json"))
    if how == ["--stream"]:  # workers give the same bytes
        import pyarrow.csv
        import pyarrow.parquet

        for name in ("truth", "found", "frames"):
            table = pyarrow.csv.read_csv(f"{name}.csv")
            order = [("sequence", "ascending"), ("frame", "ascending")]
            pyarrow.parquet.write_table(table.sort_by(order), f"{name}.parquet")
        words = [f"--{key}={name}.parquet" for key, name in (("annotations", "truth"), ("detections", "found"))]
        words += ["--frames=frames.parquet"]
        options = [*how, "--bins=0,5", "--outside=drop", "--classes=ped", "-o", "n.json"]
        code = main(["confusion", "--format=table", *words, *options])
    else:
        code = count(folder, "--bins=0,5", "--outside=drop", *how, target="n.json")
    assert code == 0
    assert annotations_told(read_counts("n.json")) == told


def test_a_file_whose_annotations_do_not_add_up_is_refused(folder, capsys):
    assert count(folder, "--bins=0,10", "--data-set=data.toml") == 0
    content = json.loads((folder / "m.json").read_text())
    content["source"]["annotations"]["read"] += 1
    (folder / "m.json").write_text(json.dumps(content))
    capsys.readouterr()
    assert main(["confusion", "merge", "m.json"]) == ExitCode.BAD_INPUT
    said = "m.json: annotations do not add up: 241 read, 240 counted, left out: none; 240 items"
    assert said in capsys.readouterr().err
    content["source"]["annotations"] = "many"  # people may write there what they like
    (folder / "m.json").write_text(json.dumps(content))
    assert annotations_told(read_counts("m.json")) is None


def test_what_is_stated_travels_into_the_document_and_what_is_missing_is_named(folder, capsys):
    assert count(folder, "--bins=0,10", "--data-set=data.toml") == 0
    assert "note: of the data set not stated: version, cleaning, collection.sensors" in capsys.readouterr().out
    content = json.loads((folder / "m.json").read_text())
    assert content["version"] == 2
    read_document(ConfusionDocument, content, "m.json")
    record = record_of(read_counts("m.json").metadata)
    assert record == read_stated("data.toml")
    assert record.error_rate == (0.002, 0.01)
    assert record.distances == {"weather": pytest.approx(0.2)}
    assert set(record.missing) == {*NAMES, *PARTS} - {
        "purpose", "gaps", "collection.places", "annotation.guide", "terms.licence", *PARTS[:-1],
    }  # fmt: skip
    assert set(DataSetRecord().missing) == {*NAMES, *PARTS}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("purpos = 'x'", "unknown key 'purpos'"),
        ("[annotation]\nerror_rate = [0.02, 0.01]", "the lower one first"),
        ("[annotation]\nerror_rate = [0.02]", "error_rate"),
        ("[annotation]\nerror_rate = [0, 1.5]", "error_rate"),
        ("[[requirement]]\ntext = 'a'", "missing key 'check'"),
        ("[collection]\nsensors = 3", "collection.sensors"),
        ("[terms]\nlicence = ''", "terms.licence"),
    ],
)
def test_statements_that_are_none_are_refused_with_their_place(tmp_path, text, said):
    (tmp_path / "data.toml").write_text(text)
    with pytest.raises(InputError, match=rf"data\.toml.*{said}"):
        read_stated(tmp_path / "data.toml")


def test_a_file_of_statements_that_is_refused_leaves_no_matrices(folder, capsys):
    (folder / "data.toml").write_text("purpos = 'x'")
    assert count(folder, "--bins=0,10", "--data-set=data.toml") == ExitCode.BAD_INPUT
    assert "data.toml:1: purpos: unknown key 'purpos'" in capsys.readouterr().err
    assert not (folder / "m.json").exists()


def test_a_record_that_contradicts_its_schema_is_refused(folder, capsys):
    assert count(folder, "--bins=0,10", "--data-set=data.toml") == 0
    content = json.loads((folder / "m.json").read_text())
    content["data_set"]["error_rate"] = [0, 7]
    (folder / "m.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="/data_set/error_rate"):
        read_counts("m.json")


def bounds(file, **choices):
    found = verifier.run("two_looks.ltl", file, draws=100, **choices)
    points = [each.points[0].uncertainty.confidence_bounds for each in found.requirements[:2]]
    return found, [(each.lower, each.upper) for each in points]


def test_an_error_rate_of_annotation_widens_bounds_as_a_shift_of_that_size(folder):
    assert count(folder, "--bins=0,10", "--data-set=data.toml") == 0
    assert count(folder, "--bins=0,10", target="plain.json") == 0
    run, widened = bounds("m.json")
    _, plain = bounds("plain.json")
    _, shifted = bounds("plain.json", shift="0.01")
    assert widened == shifted != plain
    assert widened[0][0] < plain[0][0]
    assert run.settings.confidence.bounds.annotation_error == 0.01
    assert "at most a share of 0.01 of a column is annotated wrongly or missing" in str(run)
    assert "confidence bounds allow for it, P and other intervals do not" in str(run)
    _, both = bounds("m.json", shift="0.02")
    assert both == bounds("plain.json", shift="0.03")[1]
    with pytest.raises(UsageError, match="cannot allow for the annotation error rate"):
        bounds("m.json", bounds="approximate")


def test_wrong_annotations_move_a_rate_by_no_more_than_their_share():
    """The claim behind it: measured and true rate differ by e at most, whatever is reported of 10 items rightly
    annotated, of up to 3 that are annotated wrongly, and of up to 3 that are missing."""
    own = 10
    for right, wrong, missing in itertools.product(range(11), range(4), range(4)):
        for hits_wrong, hits_missing in itertools.product(range(wrong + 1), range(missing + 1)):
            measured = Fraction(right + hits_wrong, own + wrong)
            true = Fraction(right + hits_missing, own + missing)
            share = max(Fraction(wrong, own + wrong), Fraction(missing, own + missing))
            assert abs(measured - true) <= share


def test_verdicts_are_looks_for_which_later_bounds_allow(folder, capsys):
    assert count(folder, "--bins=0,10") == 0
    main(["run", "two_looks.ltl", "--cm", "m.json", "--draws", "100", "-o", "one.json"])
    main(["run", "two_looks.ltl", "--cm", "m.json", "--draws", "101", "-o", "two.json"])
    capsys.readouterr()
    assert main(["confusion", "used", "m.json", "one.json", "-o", "used.json"]) == 0
    assert capsys.readouterr().out == "used.json: the next verdict is look 2\n"
    run, found = bounds("used.json")
    assert run.settings.confidence.bounds.looks == 2
    assert found == bounds("m.json", looks=2)[1]
    assert "1 verdict was drawn from these data before: confidence bounds allow for 2 looks" in str(run)
    assert bounds("used.json", looks=5)[1] == bounds("m.json", looks=5)[1]
    assert main(["confusion", "used", "m.json", "one.json", "two.json", "-o", "both.json"]) == 0
    uses = record_of(read_counts("both.json").metadata).uses
    assert [each.verdict for each in uses] == ["inconclusive", "inconclusive"]
    assert uses[0].title == "one.json: stops, drives_on and asked"
    counts = read_counts("both.json").counts
    np.testing.assert_array_equal(counts, read_counts("m.json").counts)


def test_results_of_other_matrices_and_verdicts_that_are_known_are_refused(folder, capsys):
    assert count(folder, "--bins=0,10") == 0
    main(["run", "two_looks.ltl", "--cm", "m.json", "--draws", "100", "-o", "one.json"])
    main(["confusion", "used", "m.json", "one.json", "-o", "used.json"])
    capsys.readouterr()
    assert main(["confusion", "used", "used.json", "one.json", "-o", "x.json"]) == ExitCode.BAD_INPUT
    assert "expected a result of verify run with used.json" in capsys.readouterr().err
    assert main(["confusion", "used", "m.json", "one.json", "one.json", "-o", "x.json"]) == ExitCode.BAD_INPUT
    assert "the record has the verdict of 'one.json: stops, drives_on and asked' already" in capsys.readouterr().err
    assert main(["confusion", "used", "m.json", "m.json", "-o", "x.json"]) == ExitCode.BAD_INPUT
    assert main(["confusion", "used", "m.json", "one.json", "-o", "m.json"]) == ExitCode.USAGE
    assert not (folder / "x.json").exists()


def listing(folder, number, name="frames.sha256"):
    """A list of so many frames as sha256sum writes it; its own SHA-256."""
    lines = [f"{hashlib.sha256(str(k).encode()).hexdigest()}  {k}.png\n" for k in range(number)]
    (folder / name).write_text("".join(lines))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def test_what_is_stated_comes_into_matrices_that_were_counted_before(folder, capsys):
    """As if it had been stated then, beside the verdicts that are recorded, and once only."""
    frames = {listing(folder, 300): 300}
    (folder / "data.toml").write_text('frames = "frames.sha256"\n' + STATED)
    assert count(folder, "--bins=0,10", "--data-set=data.toml", target="at_once.json") == 0
    assert count(folder, "--bins=0,10") == 0
    main(["run", "two_looks.ltl", "--cm", "m.json", "--draws", "100", "-o", "one.json"])
    assert main(["confusion", "used", "m.json", "--data-set", "data.toml", "-o", "later.json"]) == 0
    later, at_once = (record_of(read_counts(name).metadata) for name in ("later.json", "at_once.json"))
    assert later == at_once
    assert later.frames == frames
    assert "frames" not in later.missing
    words = ["confusion", "used", "m.json", "one.json", "--data-set", "data.toml", "-o", "both.json"]
    assert main(words) == 0
    both = record_of(read_counts("both.json").metadata)
    assert (len(both.uses), replace(both, uses=())) == (1, later)
    capsys.readouterr()
    assert main(["confusion", "used", "both.json", "--data-set", "data.toml", "-o", "x.json"]) == ExitCode.BAD_INPUT
    assert "data.toml: expected matrices without a record of their data set" in capsys.readouterr().err
    assert main(["confusion", "used", "m.json", "-o", "x.json"]) == ExitCode.USAGE
    assert not (folder / "x.json").exists()


def second(folder, stated):
    """Matrices of another twelve drives, with another record."""
    tables(folder, [(f"t{k % 12}", k, "ped", 5, k % 3 > 0) for k in range(60)], name="b_")
    (folder / "b.toml").write_text(stated)
    words = ["--data-set=b.toml"] if stated else []
    assert count(folder, "--bins=0,10", *words, name="b_", target="b.json") == 0


def test_merged_records_say_what_each_file_says(folder, capsys):
    assert count(folder, "--bins=0,10", "--data-set=data.toml") == 0
    second(folder, STATED.replace('places = "north"', 'places = "south"').replace("0.002, 0.01", "0.001, 0.02"))
    assert main(["confusion", "merge", "m.json", "b.json", "-o", "both.json"]) == 0
    counts = read_counts("both.json")
    record = record_of(counts.metadata)
    assert record.error_rate == (0.001, 0.02)
    assert record.stated["collection.places"] == "m.json: north; b.json: south"
    assert record.stated["purpose"] == "Test"
    assert len(record.requirements) == 1
    assert record.odd == read_stated("data.toml").odd
    assert annotations_told(counts) == {"read": 300, "excluded": {}, "counted": 300}


def test_ends_of_an_error_rate_in_the_wrong_order_widen_by_the_larger_one():
    assert annotation_error({"data_set": {"error_rate": [0.9, 0.05]}}) == Fraction(9, 10)


def test_uses_survive_merging(folder, capsys):
    assert count(folder, "--bins=0,10") == 0
    main(["run", "two_looks.ltl", "--cm", "m.json", "--draws", "100", "-o", "one.json"])
    main(["confusion", "used", "m.json", "one.json", "-o", "used.json"])
    second(folder, "")
    main(["confusion", "merge", "used.json", "b.json", "-o", "both.json"])
    assert len(record_of(read_counts("both.json").metadata).uses) == 1
    assert bounds("both.json")[0].settings.confidence.bounds.looks == 2


# --- By hand, without files of counts: four objects, three of them reported, and five times nothing, in 9 frames.

TABLE = np.array([[[[3, 0], [1, 5]]]])
SOURCE = {
    "annotations": {"read": 12, "other class": 2, "crowd": 0},
    "filters": [
        {"filter": "score", "lowest": 0.5},
        {"filter": "height", "name": "h", "annotations": 3},
        {"filter": "height", "name": "h", "annotations": 1},
        {"filter": "box", "annotations": 0},
    ],
    "ignored": {"unknown_depth": 1},
}  # fmt: skip
TOTALS = {"annotations": 5, "outside_bins": 1}
LEFT_OUT = {"other class": 2, "filter height h": 4, "unknown depth": 1, "in no bin": 1}


def by_hand(source=SOURCE, totals=TOTALS, labelling="class", record=None):
    index = np.argwhere(TABLE[0])
    tally = Tally(np.column_stack([np.zeros(len(index), dtype=np.int64), index]), TABLE[0][tuple(index.T)][:, None])
    sequences = Sequences(("a",), np.array([9]), tally)
    metadata = {"source": source, "totals": totals} | ({} if record is None else {"data_set": json_values(record)})
    labels = (frozenset({"ped"}), frozenset())
    return ConfusionCounts(labelling, labels, Bins((0.0, 5.0)), None, TABLE, sequences, "", metadata)


def test_annotations_are_told_to_the_item():
    told = {"read": 12, "excluded": LEFT_OUT, "counted": 4}
    assert annotations_told(by_hand()) == told
    bare = {"annotations": {"read": 4}, "ignored": {}}
    inside = {"annotations": 4, "outside_bins": 0}
    assert annotations_told(by_hand(bare, inside)) == {"read": 4, "excluded": {}, "counted": 4}
    other = {"read": 7, "excluded": {"crowd": 3, "in no bin": 2}, "counted": 2}
    merged = {"merged": [{"annotations": {**told, "counted": 2, "read": 10}}, {"annotations": other}]}
    assert annotations_told(by_hand(merged)) == {
        "read": 17, "excluded": {**LEFT_OUT, "in no bin": 3, "crowd": 3}, "counted": 4,
    }  # fmt: skip
    for source, totals in (({}, TOTALS), ("made", TOTALS), (SOURCE, {}), ({**SOURCE, "filters": [3]}, TOTALS)):
        assert annotations_told(by_hand(source, totals)) is None
    read = {**SOURCE, "annotations": {"read": 13, "other class": 2}}
    said = ", ".join(f"{number} {name}" for name, number in LEFT_OUT.items())
    with pytest.raises(InputError) as caught:
        annotations_told(by_hand(read), "a.json")
    assert str(caught.value) == (
        f"a.json: annotations do not add up: 13 read, 4 counted, left out: {said}; 4 items of objects"
    )
    more = {"annotations": 6, "outside_bins": 1}  # as many as are read, but not as many as items of objects
    assert annotations_told(by_hand(read, more, "proposition"))["counted"] == 5
    with pytest.raises(InputError, match=r"13 read, 5 counted, .*; 4 items of objects"):
        annotations_told(by_hand(read, more))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[odd.weather]\ndry = [0.7, 0.9]\nwet = [0.3000000005, 0.1]", None),
        ("[odd.weather]\ndry = [0.7, 0.9]\nwet = [0.300000002, 0.1]", "shares of the domain do not add up to 1"),
        ("[odd.weather]\ndry = [0.7, 0.9]\nwet = [0.3, 0.099999998]", "shares of the data do not add up to 1"),
        ("[odd.weather]\ndry = [0.7, 0.9, 1]\nwet = [0.3, 0.1]", "expected two shares$"),
        ("[annotation]\nerror_rate = [0.01, 0.01]", None),
        ("[annotation]\nerror_rate = [0, 1]", None),
        ("[annotation]\nguide = 'g'", None),
        ("[split]\nerror_rate = [0, 1]", "unknown key 'error_rate'"),
        ("[annotation]\nerror_rate = [0.1, 0.2, 0.3]", "expected two shares, the lower one first"),
    ],
)
def test_shares_come_in_twos(tmp_path, text, said):
    (tmp_path / "d.toml").write_text(text)
    if said is None:
        read_stated(tmp_path / "d.toml")
        return
    with pytest.raises(InputError, match=said):
        read_stated(tmp_path / "d.toml")


def test_lists_of_frames_by_hand(tmp_path):
    one, two = "1" * 64, "a" * 64
    file = tmp_path / "f.sha256"
    file.write_text(f"{one}  a.png\n\n{two} *b.png\n{one}  again.png\n")
    assert frame_hashes(file) == (frozenset({one, two}), hashlib.sha256(file.read_bytes()).hexdigest())
    for text, line in ((f"{one}  a\n\n {two}  b\n", 3), (f"{one[1:]}  a\n", 1)):
        file.write_text(text)
        with pytest.raises(InputError, match=rf"f\.sha256:{line}: expected 64 hexadecimal digits"):
            frame_hashes(file)
    file.write_text("\n")
    with pytest.raises(InputError, match="expected the SHA-256 of a frame in each line, found none"):
        frame_hashes(file)


FRAMES = {"0" * 64: 5, "f" * 64: 4}
USES = tuple(UseRecord(f"r{k}.json", str(k) * 64, "holds", "2024-01-01") for k in range(3))


def test_what_is_stated_and_used_is_recorded_once():
    counts = by_hand()
    assert (annotation_error(counts.metadata), looks_at(counts.metadata)) == (0, 1)
    assert with_record(counts, None) is counts
    stated = DataSetRecord(stated={"purpose": "p"}, error_rate=(0.125, 0.25), frames=FRAMES)
    found = with_uses(with_record(with_uses(counts, USES[:1], "x"), stated), USES[1:], "x")
    assert record_of(found.metadata) == replace(stated, uses=USES)
    assert (annotation_error(found.metadata), looks_at(found.metadata)) == (Fraction(1, 4), 4)
    with pytest.raises(InputError, match=r"expected the SHA-256 of 9 frames, which were counted, found 8"):
        with_record(counts, replace(stated, frames={"0" * 64: 8}))
    assert record_of(with_record(replace(counts, sequences=None), replace(stated, frames={"0" * 64: 1})).metadata)
    for uses in (USES[:1], (USES[0], USES[0])):
        with pytest.raises(InputError, match=r"the record has the verdict of 'r0\.json' already"):
            with_uses(with_uses(counts, USES[:1], "x") if len(uses) == 1 else counts, uses, "x")


ODD = {"light": {"day": (0.5, 0.75), "night": (0.5, 0.25)}}


@pytest.mark.parametrize(
    ("records", "expected", "said"),
    [
        ([None, None], None, []),
        ([DataSetRecord(error_rate=(0.1, 0.2), odd=ODD, frames=FRAMES, uses=USES[:2]),
          DataSetRecord(error_rate=(0.05, 0.15), odd=ODD, frames={"1" * 64: 9}, uses=USES[1:])],
         DataSetRecord(error_rate=(0.05, 0.2), odd=ODD, frames={**FRAMES, "1" * 64: 9}, uses=USES), []),
        ([DataSetRecord(error_rate=(0.1, 0.2), odd=ODD, frames=FRAMES), None],
         DataSetRecord(error_rate=(0.1, 0.2)),
         ["the data set is stated in 1 of 2 merged files",
          "the annotation error rate of 1 of 2 merged files is taken for all",
          "the frames that were counted are listed of some merged files only, and the lists are left out"]),
        ([DataSetRecord(odd=ODD, frames=FRAMES), DataSetRecord(stated={"version": "2"})],
         DataSetRecord(stated={"version": "a: not stated; b: 2"}),
         ["the frames that were counted are listed of some merged files only, and the lists are left out",
          "the coverage of the domain differs between merged files, and is left out"]),
        ([DataSetRecord(stated={"version": "2"}, requirements=(DataRequirement("t", "c"),))] * 2,
         DataSetRecord(stated={"version": "2"}, requirements=(DataRequirement("t", "c"),)), []),
    ],
)  # fmt: skip
def test_records_of_merged_files_by_hand(records, expected, said):
    parts = [by_hand(record=record) for record in records]
    found = merged_record(parts[0], parts, ["a", "b"])
    assert record_of(found.metadata) == expected
    texts = [each["text"] for each in found.metadata.get("remarks", ()) if each["kind"] == "merged-partly"]
    assert texts == said


def test_a_record_as_croissant_by_hand():
    record = DataSetRecord(
        stated={"purpose": "p", "collection.sensors": "camera", "collection.dates": "2024"}, odd=ODD,
        frames=FRAMES, requirements=(DataRequirement("t", "c"),), uses=USES[:1],
    )  # fmt: skip
    found = croissant(record, {"read": 1}, "", "m.json", "e" * 64)
    assert (found["name"], found["description"]) == ("test data", "p")
    assert croissant(record, None, "title", "m.json", "e" * 64)["name"] == "title"
    assert found["rai:dataCollection"] == "sensors: camera; dates: 2024"
    assert found["verifier:frames"] == [{"sha256": name, "frames": number} for name, number in FRAMES.items()]
    assert found["verifier:domainDistance"] == {"light": 0.25}
    assert found["verifier:requirements"] == [{"text": "t", "check": "c"}]
    assert found["distribution"][0]["contentUrl"] == "../m.json"
    assert not {"license", "version", "verifier:errorRate"} & set(found)
    assert {"purpose", "collection.sensors", "requirements", "odd", "frames"}.isdisjoint(found["verifier:notStated"])
    assert {"error_rate", "version", "collection.places"} <= set(found["verifier:notStated"])
