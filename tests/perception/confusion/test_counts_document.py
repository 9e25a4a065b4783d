"""Documents with variables, families and sequences: round trip, schema, choices, merging, and what is refused."""

import json
import math
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shorthands import of_sequences

from verifier.base.errors import InputError, UsageError
from verifier.evidence.documents import schema_of
from verifier.perception.confusion import EMPTY
from verifier.perception.confusion.bins import Bins, Variable
from verifier.perception.confusion.counts import ConfusionCounts, Sequences
from verifier.perception.confusion.document import (
    confusion_text,
    read_confusion,
    read_counts,
    read_counts_of,
    write_confusion,
)
from verifier.perception.confusion.document_reader import DocumentReader
from verifier.perception.confusion.merging import merge
from verifier.perception.confusion.tally import Tally

SCHEMA = jsonschema.Draft202012Validator(schema_of("verifier.confusion"))
PED, OBS = frozenset({"ped"}), frozenset({"obs"})
OCCLUDED = Variable("occluded", groups=(("low", ("0", "1")), ("high", ("2",))))
SPEED = Variable("speed", edges=(-math.inf, 2.0, math.inf))
DRIVE = Variable("sequence", groups=(("night", ("n*",)), ("day", ("*",))))


@st.composite
def counted(draw):
    labelling, variables = draw(
        st.sampled_from(
            [
                ("class", ()),
                ("class", (OCCLUDED,)),
                ("group", (SPEED, DRIVE)),
                ("proposition", (DRIVE,)),
                ("proposition", ()),
            ]
        )
    )
    labels = (PED, OBS, PED | OBS, EMPTY) if labelling == "proposition" else (PED, EMPTY)
    bins = Bins(draw(st.sampled_from([(0.0, 10.0), (0.0, 7.5, math.inf)])), variables)
    thresholds = draw(st.sampled_from([None, (0.25,), (-1.5, 0.0, 1e300)]))
    names = draw(st.lists(st.text(max_size=3), min_size=1, max_size=3, unique=True))
    size, members = len(labels), 1 if thresholds is None else len(thresholds)
    shape = (len(names), *bins.shape, size, size, members)
    cells = draw(
        st.lists(st.sampled_from([0, 0, 0, 1, 7, 2**40]), min_size=math.prod(shape), max_size=math.prod(shape))
    )
    table = np.array(cells, dtype=np.int64).reshape(shape)
    for axis, of_objects in enumerate(bins.of_objects, 1):
        if of_objects:  # column "empty" does not depend on what only objects have
            table[..., -1, :] = table.take([0], axis=axis)[..., -1, :]
    flat = table.reshape(len(names), bins.count, size, size, members)
    index = np.argwhere(flat.any(axis=-1)).astype(np.int64)
    tally = Tally(index, flat[tuple(index.T)])
    frames = np.arange(len(names), dtype=np.int64)
    sequences = draw(st.sampled_from([None, Sequences(tuple(names), frames, tally)]))
    total = np.moveaxis(flat.sum(axis=0), -1, 0)
    return ConfusionCounts(
        labelling, labels, bins, thresholds, total, sequences, draw(st.text(max_size=5)), {"notes": "n"}
    )


def read(document, file="a.json"):
    return DocumentReader(file).counts(document)


@given(counted())
def test_reading_what_was_written_gives_the_same(counts):
    text = confusion_text(counts)
    decoded = json.loads(text)
    SCHEMA.validate(decoded)
    again = read(decoded)
    assert (again.labelling, again.labels, again.bins, again.thresholds) == (
        counts.labelling,
        counts.labels,
        counts.bins,
        counts.thresholds,
    )
    assert np.array_equal(again.counts, counts.counts)
    assert (again.sequences is None) == (counts.sequences is None)
    if again.sequences is not None:
        assert again.sequences.names == counts.sequences.names
        assert np.array_equal(of_sequences(again), of_sequences(counts))
    assert confusion_text(again) == text


@given(counted(), st.data())
def test_choosing_a_member_and_bins_agrees_with_the_table(counts, data):
    threshold = None if counts.thresholds is None else data.draw(st.sampled_from(counts.thresholds))
    member = counts if threshold is None else counts.member(threshold)
    at = 0 if threshold is None else counts.thresholds.index(threshold)
    assert np.array_equal(member.counts[0], counts.counts[at])
    if member.sequences is not None:
        assert np.array_equal(of_sequences(member)[:, 0], of_sequences(counts)[:, at])
    chosen = {each.name: each.bin_text(1) for each in counts.bins.variables}
    table = counts.counts[at].reshape(*counts.bins.shape, *counts.counts.shape[2:])
    for _ in counts.bins.variables:
        table = table[:, 1]
    found = member.matrices(chosen)
    assert np.array_equal(found.counts, table)
    assert read_counts_of(confusion_text(found).encode(), "m.json").matrices().counts.tolist() == table.tolist()


@given(counted(), st.data())
def test_the_sequences_add_up_to_the_matrices_whatever_is_chosen(counts, data):
    threshold = None if counts.thresholds is None else data.draw(st.sampled_from(counts.thresholds))
    member = counts if threshold is None else counts.member(threshold)
    where = {each.name: each.bin_text(1) for each in counts.bins.variables if data.draw(st.booleans())}
    kept = [each.name for each in counts.bins.variables if each.name not in where and data.draw(st.booleans())]
    found, matrices = member.by_sequence(where, kept), member.matrices(where, kept)
    if counts.sequences is None:
        assert found is None
        return
    size, at = len(counts.labels), 0 if threshold is None else counts.thresholds.index(threshold)
    assert (found.names, found.frames.tolist()) == (counts.sequences.names, counts.sequences.frames.tolist())
    assert np.array_equal(found.tally.dense(matrices.bin_count, size)[0], matrices.counts)
    if not kept:
        assert np.array_equal(found.canonical().tally.dense(1, size)[0], matrices.canonical().counts)
    # Each sequence alone: the same choice made in the whole table of that sequence.
    for number in range(len(found.names)):
        alone = replace(counts, thresholds=None, sequences=None, counts=of_sequences(counts)[number, at : at + 1])
        mine = found.tally.of_sequence(number).dense(matrices.bin_count, size)[0]
        assert np.array_equal(mine, alone.matrices(where, kept).counts)


EXAMPLE = {
    "schema": "verifier.confusion",
    "version": 1,
    "labelling": "class",
    "axes": ["score_threshold", "predicted", "true"],
    "labels": ["ped", "empty"],
    "score_thresholds": [0.1, 0.5],
    "variables": [{"name": "occluded", "of": "object", "values": {"0": ["0"], "1": ["1", "2"]}}],
    "bins": [
        {"distance_m": [0, 10], "where": {"occluded": "0"}, "counts": [[[3, 1], [0, 5]], [[2, 0], [1, 6]]]},
        {"distance_m": [0, 10], "where": {"occluded": "1"}, "counts": [[[1, 1], [1, 5]], [[0, 0], [2, 6]]]},
    ],
    "sequences": [
        {"name": "A", "frames": 4, "counts": [[0, 0, 0, 3, 2], [0, 1, 0, 0, 1], [0, 1, 1, 2, 3], [1, 1, 1, 2, 3]]},
        {"name": "B", "frames": 4, "counts": [
            [0, 0, 1, 1, 0], [0, 1, 1, 3, 3], [1, 0, 0, 1, 0], [1, 1, 0, 1, 2], [1, 0, 1, 1, 0], [1, 1, 1, 3, 3]
        ]},
    ],
}  # fmt: skip


def test_a_member_summed_over_occlusion_by_hand(tmp_path):
    path = tmp_path / "family.json"
    path.write_text(json.dumps(EXAMPLE))
    SCHEMA.validate(EXAMPLE)
    # Column ped is summed, 3 + 1 and 0 + 1; column empty is one and the same, so it is taken once.
    assert read_confusion(path, score_threshold=0.1).matrices.counts.tolist() == [[[4, 1], [1, 5]]]
    assert read_confusion(path, {"occluded": "2"}, 0.5).matrices.counts.tolist() == [[[0, 0], [2, 6]]]
    # What the matrices say of themselves: which member and bin they are of, and nothing of the whole table.
    said = replace(read_counts(path), metadata={"source": "made", "totals": {"items": 7}, "score_threshold": 9})
    assert said.member(0.5).metadata == {"source": "made", "totals": {"items": 7}, "score_threshold": 0.5}
    assert said.member(0.1).matrices().metadata == {"source": "made", "score_threshold": 0.1}
    chosen = said.member(0.1).matrices({"occluded": "2"})
    assert chosen.metadata == {"source": "made", "score_threshold": 0.1, "where": {"occluded": "1"}}
    tested = replace(said, metadata={"dependence": ["first", "second"]})
    assert [tested.member(threshold).metadata["dependence"] for threshold in (0.1, 0.5)] == ["first", "second"]
    # The same numbers as rows: of a family with their threshold, of a member without.
    rows = list(said.rows())
    assert [(row["threshold"], row["count"]) for row in rows[:5]] == [
        (0.1, 4),
        (0.1, 1),
        (0.1, 1),
        (0.1, 5),
        (0.5, 2),
    ]
    assert list(said.member(0.1).rows()) == [
        {key: value for key, value in row.items() if key != "threshold"} for row in rows[:4]
    ]
    # What was measured: of all objects of a bin, 4 of 5 are reported at the threshold 0.1, and 2 at 0.5.
    measured = [(row["threshold"], row["true"], row["recall"], row["items"]) for row in said.measured_rows()]
    assert measured == [
        ("0.1", "ped", 4 / 5, 5),
        ("0.1", "empty", 5 / 6, 6),
        ("0.5", "ped", 2 / 5, 5),
        ("0.5", "empty", 1, 6),
    ]
    assert [row["recall"] for row in said.member(0.5).measured_rows()] == [2 / 5, 1]
    with pytest.raises(UsageError, match=r"a family over score thresholds; choose one of: 0\.1, 0\.5"):
        read_confusion(path)
    with pytest.raises(UsageError, match=r"no matrices at score threshold 0\.3; there are: 0\.1, 0\.5"):
        read_confusion(path, score_threshold=0.3)
    with pytest.raises(UsageError, match="unknown variable of the matrices 'occlude'"):
        read_confusion(path, {"occlude": "0"}, 0.1)
    # Sequence A at 0.5, summed over occlusion: ped seen 2 + 0, missed 1 + 0; nothing there, nothing seen: 3, once.
    drives = read_confusion(path, score_threshold=0.5).sequences
    assert drives.names == ("A", "B")
    assert drives.tally.of_sequence(0).dense(1, 2).tolist() == [[[[2, 0], [1, 3]]]]
    with pytest.raises(UsageError, match="a family over score thresholds"):
        read_counts(path).by_sequence()
    plain = tmp_path / "plain.json"
    write_confusion(read_confusion(path, score_threshold=0.1).matrices, plain)
    assert read_confusion(plain).sequences is None
    with pytest.raises(UsageError, match="not a family"):
        read_confusion(plain, score_threshold=0.1)


def file(tmp_path, name, **changes):
    path = tmp_path / name
    path.write_text(json.dumps({**EXAMPLE, **changes}))
    return read_counts(path)


def test_merging_adds_counts_and_keeps_sequences_apart(tmp_path):
    first, second = file(tmp_path, "a.json"), file(tmp_path, "b.json")
    with pytest.raises(InputError) as caught:
        merge([first, second], ["a.json", "b.json"])
    assert str(caught.value).startswith(
        "b.json: sequence 'A' is in an earlier file, too\n  hint: --same-sequences add"
    )
    added = merge([first, second], ["a.json", "b.json"], "add")
    assert np.array_equal(added.counts, 2 * first.counts)
    assert (added.sequences.names, added.sequences.frames.tolist()) == (("A", "B"), [8, 8])
    apart = merge([first, second], ["a.json", "b.json"], "rename")
    assert apart.sequences.names == ("a.json/A", "a.json/B", "b.json/A", "b.json/B")
    assert np.array_equal(of_sequences(apart)[2:], of_sequences(first))
    bare = replace(second, sequences=None)
    assert merge([first, bare], ["a.json", "b.json"]).sequences is None
    with pytest.raises(UsageError, match="unknown rule for equal sequences 'sum'"):
        merge([first, second], ["a.json", "b.json"], "sum")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"matching": {"affinity": "iou_2d", "threshold": 0.7}},
         "cannot be merged with a.json: matching differ: threshold: 0.7 here, 0.5 there"),
        ({"false_positives": "counted"}, "false_positives differ: 'counted' here, None there"),
        ({"labels": ["obs", "empty"]}, "labels differ: [['obs'], []] here, [['ped'], []] there"),
        ({"labelling": "group"}, "labelling differ: 'group' here, 'class' there"),
        ({"score_thresholds": [0.1, 0.6]}, "score thresholds differ: (0.1, 0.6) here, (0.1, 0.5) there"),
        ({"bins": [{**each, "distance_m": [0, 11]} for each in EXAMPLE["bins"]]},
         "distance bins differ: [0.0, 11.0] here, [0.0, 10.0] there"),
        ({"distance": "forward"}, "distance differ: 'forward' here, None there"),
    ],
)  # fmt: skip
def test_files_that_were_counted_differently_are_not_merged(tmp_path, changes, words):
    base = {"matching": {"affinity": "iou_2d", "threshold": 0.5}}
    first, second = file(tmp_path, "a.json", **base), file(tmp_path, "b.json", **{**base, **changes})
    with pytest.raises(InputError) as caught:
        merge([first, second], ["a.json", "b.json"], "add")
    assert words in str(caught.value)
