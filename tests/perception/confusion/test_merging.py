"""Merged files: the test of dependence by Fisher's method, remarks that stay, and KITTI in two halves."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from counting_scenes import TWO_METRES
from hypothesis import given
from hypothesis import strategies as st
from plain_counter import Object, Report, detection_set
from shorthands import count_detections, of_sequences

from verifier.base.documents import read_document
from verifier.base.errors import InputError
from verifier.cli import main
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.context_counts import Memory, with_contexts
from verifier.perception.confusion.contexts import Contexts, OfTracks
from verifier.perception.confusion.counting import confusion_counts, count_and_observe
from verifier.perception.confusion.document import confusion_text, read_counts
from verifier.perception.confusion.document_dependence import Dependence, combined_dependence
from verifier.perception.confusion.document_reader import DocumentReader
from verifier.perception.confusion.merging import merge
from verifier.perception.confusion.rules import CountingRule


def class_test(label="ped", p_value=0.1, **changes):
    values = {
        "label": label, "objects": 5, "misses": 3, "pairs": 4, "after_miss": 3, "joint_misses": 2,
        "expected_joint_misses": 1.0, "miss_after_miss": 2 / 3, "expected_miss_after_miss": 0.25, "mean_run": 3.0,
        "expected_mean_run": 1.5, "p_value": p_value, "permutations": 999,
    }  # fmt: skip
    return values | changes


def of(*classes, seed=0):
    return {"seed": seed, "classes": list(classes)}


def read(*classes, seed=0):
    return read_document(Dependence, of(*classes, seed=seed), "a.json")


@given(st.floats(1e-6, 1), st.floats(1e-6, 1), st.floats(1e-6, 1))
def test_chances_are_combined_as_the_product_of_uniform_numbers_falls(first, second, third):
    """Pr(product of n uniform numbers <= x) = x sum over k < n of (-log x)^k / k!, by induction over n."""
    for chances in ([first], [first, second], [first, second, third]):
        (found,) = combined_dependence([read(class_test(p_value=p)) for p in chances]).classes
        x = math.prod(chances)
        expected = x * sum((-math.log(x)) ** k / math.factorial(k) for k in range(len(chances)))
        assert math.isclose(found.p_value, expected, rel_tol=1e-9)


def test_a_test_that_contradicts_itself_is_refused():
    document = json.loads(confusion_text(one_drive("a", {"dependence": read(class_test())})))
    with pytest.raises(InputError, match="/dependence/classes/0/joint_misses: "):
        DocumentReader("a.json").counts({**document, "dependence": of(class_test(joint_misses=4))})


def one_drive(name, metadata=None, seen=True, there=True):
    objects = [Object(0, "ped", 5, track=1), Object(1, "ped", 5, track=1)] * there
    scene = ([name] * 2, objects, [Report(0, "ped", 5)] * seen)
    rule = CountingRule("class", ("ped", "obs"), Bins((0.0, 10.0, 20.0)), "ground_plane", outside="drop")
    counts = confusion_counts(count_detections(detection_set(*scene), TWO_METRES, rule), rule, TWO_METRES)
    return replace(counts, metadata={**counts.metadata, **(metadata or {})})


def test_a_merged_document_says_how_its_test_was_made():
    parts = [one_drive(name, {"dependence": read(class_test(p_value=0.05))}) for name in "ab"]
    merged = merge(parts, ["a.json", "b.json"])
    document = json.loads(confusion_text(merged))
    assert document["version"] == 2
    assert document["dependence"]["combined"] == "Fisher's method over the files that were merged"
    assert DocumentReader("c.json").counts(document).metadata["dependence"] == merged.metadata["dependence"]
    three = merge([merged, one_drive("c", {"dependence": read(class_test(p_value=0.05))})], ["ab.json", "c.json"])
    assert three.metadata["dependence"].classes[0].objects == 15
    bare = {key: value for key, value in document.items() if key != "sequences"}
    with pytest.raises(InputError, match="/dependence: tests of bins, and combined ones, belong to version 2"):
        DocumentReader("c.json").counts({**bare, "version": 1})
    with pytest.raises(InputError, match="/dependence/combined: string should match pattern"):
        DocumentReader("c.json").counts({**document, "dependence": {**document["dependence"], "combined": "sum"}})


def test_what_not_every_file_has_is_said():
    tested_part = one_drive("a", {"dependence": read(class_test())})
    merged = merge([tested_part, one_drive("b")], ["a.json", "b.json"])
    assert [each["text"] for each in merged.metadata["remarks"]] == [
        "whether misses follow misses is tested in 1 of 2 merged files only"
    ]
    bare = one_drive("b")
    bare = replace(bare, sequences=replace(bare.sequences, tracks=None))
    assert merge([one_drive("a"), bare], ["a.json", "b.json"]).metadata["remarks"] == [
        {"kind": "merged-partly", "text": "tracks are left out: not every merged file has them"}
    ]
    same = merge([one_drive("a"), one_drive("a")], ["a.json", "b.json"], "add")
    assert [each["text"] for each in same.metadata["remarks"]] == [
        "tracks are left out: a sequence may go on in another file"
    ]
    without = merge([one_drive("a"), replace(one_drive("b"), sequences=None)], ["a.json", "b.json"])
    assert [each["text"].partition(" are")[0] for each in without.metadata["remarks"]] == [
        "counts by sequence", "tracks",
    ]  # fmt: skip


@pytest.mark.parametrize("totals", [5, True, [[]], {"frames": None}, {"frames": 2, "matched": True}])
def test_totals_that_people_wrote_are_no_reason_to_stop(totals):
    own = one_drive("b")
    found = merge([one_drive("a"), replace(own, metadata={**own.metadata, "totals": totals})], ["a.json", "b.json"])
    assert "totals" not in found.metadata
    assert found.sequences.names == ("a", "b")


def test_remarks_on_the_counts_are_those_of_the_sum_and_others_stay():
    silent = one_drive("a", seen=False)
    assert [each["kind"] for each in silent.metadata["remarks"]] == ["nothing-matched"]
    kept = {"kind": "untracked", "text": "3 objects have no track"}
    merged = merge([silent, one_drive("b", {"remarks": [kept]})], ["a.json", "x/b.json"])
    assert merged.metadata["remarks"] == [{"kind": "untracked", "text": "b.json: 3 objects have no track"}]


NAMES = ["a.json", "x/a.json"]


def test_tables_of_distances_are_added_where_all_files_have_one():
    tables = [{"axes": ["reported", "true"], "counts": counts} for counts in ([[1, 2], [3, 4]], [[10, 0], [0, 10]])]
    parts = [one_drive(name, {"localisation": table}) for name, table in zip("ab", tables, strict=True)]
    assert merge(parts, NAMES).metadata["localisation"] == {**tables[0], "counts": [[11, 2], [3, 14]]}
    assert "localisation" not in merge([one_drive("a"), one_drive("b")], NAMES).metadata
    pair = {"x": parts[0], "y": one_drive("b")}
    for names in ("xy", "yx"):
        with pytest.raises(InputError, match=r"^y: no localisation, which x has"):
            merge([pair[name] for name in names], names)


def test_what_one_file_alone_says_of_how_it_was_counted():
    first, other = one_drive("a"), one_drive("b")
    bare = replace(other, metadata={key: value for key, value in other.metadata.items() if key != "matching"})
    for pair, words in (([first, bare], "None here, {'affinity'"), ([bare, first], ".*} here, None there")):
        with pytest.raises(InputError, match=f"matching differ: {words}"):
            merge(pair, NAMES)
    for pair in ((first, other), (other, first)):
        parts = [
            replace(part, metadata={**part.metadata, **({"average_precision": {}} if part is first else {})})
            for part in pair
        ]
        found = merge(parts, NAMES).metadata
        assert [each["text"] for each in found["remarks"]] == [
            "average precision is left out: that of a sum is not a sum"
        ]
        assert "average_precision" not in found


def test_files_are_recorded_by_name_and_digest_and_none_twice():
    parts = [one_drive("a", {"source": "made"}), one_drive("b")]
    found = merge(parts, NAMES, hashes=["1", "2"]).metadata["source"]["merged"]
    assert [(each["file"], each["sha256"], each.get("source")) for each in found] == [
        ("a.json", "1", "made"), ("a.json (2)", "2", None),
    ]  # fmt: skip
    assert all("sha256" not in each for each in merge(parts, NAMES).metadata["source"]["merged"])
    with pytest.raises(InputError, match=r"^x/a\.json: the same bytes as 'a\.json': its items would count twice"):
        merge(parts, NAMES, hashes=["1", "1"])


def test_totals_are_added_and_files_without_frames_or_objects_take_nothing_away():
    first, other = one_drive("a"), one_drive("b")
    found = merge([first, other], NAMES)
    assert found.metadata["totals"] == {key: 2 * number for key, number in first.metadata["totals"].items()}
    assert found.sequences.tracks is not None
    said = replace(other, metadata={**other.metadata, "totals": {"frames": 7}})
    assert merge([first, said], NAMES).metadata["totals"]["frames"] == first.metadata["totals"]["frames"] + 7
    assert merge([first, said], NAMES).metadata["totals"]["matched"] == first.metadata["totals"]["matched"]
    # A file without counts lacks no sequences, nor one without objects tracks; others do, whatever their totals say.
    nothing = replace(other, counts=0 * other.counts, sequences=None)
    bare = replace(other.sequences, tracks=None)
    for part, names, has_tracks in (
        (nothing, ("a",), True),
        (replace(nothing, metadata={}), ("a",), True),
        (replace(other, sequences=None), None, False),
        (replace(other, sequences=None, metadata={"totals": {"frames": 0}}), None, False),
        (one_drive("b", there=False), ("a", "b"), True),
        (replace(other, sequences=bare), ("a", "b"), False),
        (replace(other, sequences=bare, metadata={"totals": {"frames": 2, "annotations": 0}}), ("a", "b"), False),
    ):
        part = replace(part, metadata={**first.metadata, **part.metadata})
        for pair in ([first, part], [part, first]):
            kept = merge(pair, NAMES).sequences
            assert (None if kept is None else tuple(sorted(kept.names))) == names
            assert (kept is not None and kept.tracks is not None) is has_tracks
    assert merge([nothing, nothing], NAMES).sequences is None


def test_contexts_of_files_are_added_sequence_by_sequence():
    def divided(name, seen):
        scene = ([name] * 3, [Object(k, "ped", 5, track=1) for k in range(3)], [Report(k, "ped", 5) for k in seen])
        rule = CountingRule("class", ("ped", "obs"), Bins((0.0, 10.0, 20.0)), "ground_plane", outside="drop")
        data = detection_set(*scene)
        found, observed = count_and_observe(data, TWO_METRES, rule)
        return with_contexts(
            confusion_counts(found, rule, TWO_METRES), data, observed, rule, Memory(Contexts("run", 2), period_s=0.5)
        )

    parts = [divided("a", (0, 1)), divided("b", (2,))]
    one, other = (part.by_context for part in parts)
    found = merge(parts, NAMES).by_context
    assert np.array_equal(found.counts, one.counts + other.counts)
    for sequence, own in enumerate((one, other)):
        assert np.array_equal(found.tally.of_sequence(sequence).dense(12, 3), own.tally.dense(12, 3))
    assert (found.tests, found.replays, found.tracks) == ((), (), {"ped": OfTracks(2, (1, 2), (0, 0))})
    assert one.tests
    assert merge(parts[:1], NAMES[:1]).by_context.tests == one.tests
    unknown = replace(parts[1], by_context=replace(other, tracks=None))
    assert merge([parts[0], unknown], NAMES).by_context.tracks is None
    for change, words in (
        ({"gaps": "hold"}, "'run:2, gaps hold, period 0.5 s' here, 'run:2, gaps break, period 0.5 s' there"),
        ({"units": "track"}, "'run:2, gaps break, period 0.5 s, by track' here"),
    ):
        with pytest.raises(InputError, match=f"contexts differ: {words}"):
            merge([parts[0], replace(parts[1], by_context=replace(other, **change))], NAMES)
    with pytest.raises(InputError, match="contexts differ: 'none' here, 'run:2, gaps"):
        merge([parts[0], replace(parts[1], by_context=None)], NAMES)
    with pytest.raises(InputError, match=r"^x/a\.json: sequence 'a' is in an earlier file, too, and contexts do not"):
        merge([parts[0], parts[0]], NAMES, "add")


def score_filter(lowest, detections):
    return {"filters": [{"filter": "score", "lowest": lowest, "detections": detections}]}


def test_what_was_filtered_otherwise_was_not_counted_in_the_same_way():
    parts = [one_drive(name, {"source": score_filter(0.5, number)}) for number, name in enumerate("ab")]
    halves = merge(parts, ["a.json", "b.json"])
    for other in ({"filters": []}, score_filter(0.6, 3), {"merged": [{"file": "d", "source": score_filter(0.6, 1)}]}):
        with pytest.raises(InputError, match=r"^c\.json: cannot be merged with ab\.json: filters differ: \["):
            merge([halves, one_drive("c", {"source": other})], ["ab.json", "c.json"])
    for unknown in (5, {"filters": [5]}, {"merged": [5]}, {"merged": []}, {"merged": {"a": 1}}):
        merge([halves, one_drive("c", {"source": unknown})], ["ab.json", "c.json"])


def test_classes_that_were_mapped_otherwise_are_said():
    maps = ([["Van", "ped"]], [["Van", "ped"]], [["Van", "obs"]])
    parts = [one_drive(name, {"source": {"class_map": rules}}) for name, rules in zip("abc", maps, strict=True)]
    names = ["a.json", "b.json", "x/c.json"]
    assert "remarks" not in merge(parts[:2], names[:2]).metadata
    text = "the class map of a.json is not that of c.json"
    found = merge(parts, names)
    assert found.metadata["remarks"] == [{"kind": "merged-partly", "text": text}]
    again = merge([found, one_drive("d", {"source": {"class_map": maps[0]}})], ["abc.json", "d.json"])
    assert again.metadata["remarks"] == found.metadata["remarks"]


def test_merged_halves_of_kitti_warn_as_the_whole_does(shared, tmp_path, monkeypatch, capfd):
    folder = shared / "data/kitti_tracking"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "classes.txt").write_text("Pedestrian -> ped\nDontCare -> dont_care\n* -> ignore\n")
    drives = sorted(path.stem for path in (folder / "label_02").glob("*.txt"))

    def run(*arguments):
        assert main(["confusion", *map(str, arguments)]) == 0
        return capfd.readouterr().out

    data = ["--format", "kitti_tracking", "--annotations", folder / "label_02", "--detections",
            folder / "det_pointrcnn", "--class-map", "classes.txt", "--min-score", 2, "--bins", "0,10,20,30,inf",
            "--distance", "ground_plane"]  # fmt: skip
    whole_text = run(*data, "-o", "whole.json")
    for name, half in (("first", drives[::2]), ("second", drives[1::2])):
        run(*data, *(word for drive in half for word in ("--sequence", drive)), "-o", f"{name}.json")
    text = run("merge", "first.json", "second.json", "-o", "both.json")
    both, whole = read_counts("both.json"), read_counts("whole.json")
    assert np.array_equal(both.counts, whole.counts)
    order = [both.sequences.names.index(name) for name in whole.sequences.names]
    assert np.array_equal(of_sequences(both)[order], of_sequences(whole))
    (merged,), (found,) = both.metadata["dependence"].classes, whole.metadata["dependence"].classes
    for key in ("objects", "misses", "pairs", "after_miss", "joint_misses", "miss_after_miss", "mean_run"):
        assert getattr(merged, key) == getattr(found, key), key
    assert merged.p_value < 0.01
    for printed in (text, whole_text):
        assert (
            "memoryless assumption rejected: after a missed ped the next frame misses it with probability 0."
            in printed
        )
    assert both.metadata["remarks"] == whole.metadata["remarks"]
    # One drive holds 2549 of the pedestrians within 10 m in all 21 drives; here are 12 of them.
    assert "one drive holds most items in" in text
