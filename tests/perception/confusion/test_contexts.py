"""Counts by context: against the plain definition, their laws, real tracks, documents, and what is refused."""

import copy
import json
from collections import Counter
from dataclasses import replace
from itertools import groupby, pairwise, product

import jsonschema
import numpy as np
import pytest
from counting_scenes import EDGES, LEFTOVER, PLAIN, rules, scenes
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kitti_tracks import DETECTORS, seen_on_kitti, tracked_reports
from plain_contexts import name_of, plain_contexts, twice_in_a_frame
from plain_counter import Object, Report, detection_set
from scipy.stats import binomtest

from verifier.base.documents import MisfitError
from verifier.base.errors import InputError, UsageError
from verifier.cli import main
from verifier.evidence.documents import schema_of
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.context_counts import Memory, _histories, with_contexts
from verifier.perception.confusion.context_selection import (
    held_out_loss,
    log10_e_value,
    longest_run,
    selected_contexts,
)
from verifier.perception.confusion.contexts import UNTRACKED, Contexts, OfTracks, ReplayTest
from verifier.perception.confusion.counting import confusion_counts, count_and_observe
from verifier.perception.confusion.counts import ContextCounts
from verifier.perception.confusion.dependence import residual_test
from verifier.perception.confusion.document import confusion_text, read_confusion, read_counts, write_confusion
from verifier.perception.confusion.document_reader import DocumentReader
from verifier.perception.confusion.merging import merge
from verifier.perception.confusion.record import record_table, write_record
from verifier.perception.confusion.replay import Tracker, replay_record, replayed, unconfirmed
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.tally import summed
from verifier.perception.matching import MatchingPolicy, match
from verifier.perception.settings import ReplaySettings
from verifier.telling.confusion import counts_table, replay_table

KINDS = [Contexts("run", 1), Contexts("run", 3), Contexts("last", 1), Contexts("last", 3), Contexts()]
POLICY = MatchingPolicy("centre_bev", 2.0)
SCHEMA = jsonschema.Draft202012Validator(schema_of("verifier.confusion"))


def count(scene, rule, memory, policy=POLICY):
    data = detection_set(*scene)
    found, observed = count_and_observe(data, policy, rule)
    return with_contexts(confusion_counts(found, rule, policy), data, observed, rule, memory)


def cells(counts, member=0):
    """{(sequence, bin, context, reported, true): count} of the cells that are not zero."""
    divided, found = counts.by_context, Counter()
    names = (*divided.contexts.names, UNTRACKED)
    for (sequence, finer, predicted, true), numbers in zip(
        divided.tally.index.tolist(), divided.tally.counts.tolist(), strict=True
    ):
        at, context = divmod(finer, divided.per_bin)
        place = tuple(int(k) for k in np.unravel_index(at, counts.bins.shape))
        if numbers[member]:
            key = (counts.sequences.names[sequence], place, names[context], counts.labels[predicted])
            found[(*key, counts.labels[true])] = numbers[member]
    return found


@st.composite
def tracked_scenes(draw, *, single=True):
    """A few objects seen in most of the frames of a drive, so that contexts grow; each once in a frame if single."""
    frames, objects, reports = draw(scenes())
    objects = [replace(each, track=draw(st.integers(-1, 2))) for each in objects]
    length = draw(st.integers(3, 8))
    frames = [*frames, *["A"] * length]
    for track in range(3, 5):
        kind, x = draw(st.sampled_from(["ped", "obs"])), draw(st.integers(2, 12))
        for frame in range(len(frames) - length, len(frames)):
            if draw(st.integers(0, 4)):
                x += draw(st.sampled_from([0, 0, 3]))
                objects.append(Object(frame, kind, x, float(track), draw(st.integers(0, 1)), track))
                if draw(st.booleans()):
                    reports.append(Report(frame, kind, x, float(track), draw(st.sampled_from([0.2, 0.4]))))
    if single:
        objects = list({(each.track, each.kind, each.frame) if each.track >= 0 else k: each
                        for k, each in enumerate(objects)}.values())  # fmt: skip
    return frames, objects, reports


@given(
    tracked_scenes(single=False), rules(("class", "proposition")), st.sampled_from(KINDS),
    st.sampled_from(["break", "hold", "miss"]), st.sampled_from([None, (0.15, 0.35)]),
)  # fmt: skip
def test_counts_by_context_are_as_defined(scene, rule, contexts, gaps, thresholds):
    rule = replace(rule, thresholds=thresholds)
    frames, objects, reports = scene
    assume(any(each.track >= 0 for each in objects))
    if twice_in_a_frame(objects):
        with pytest.raises(InputError, match="has two objects of class"):
            count(scene, rule, Memory(contexts, gaps, seed=None))
        return
    found = count(scene, rule, Memory(contexts, gaps, seed=None))
    assert np.array_equal(found.by_context.counts.sum(axis=2), found.counts)
    for member, threshold in enumerate(thresholds or (-np.inf,)):
        matches = match(detection_set(frames, objects, reports), POLICY)
        matched = {d: a for d, a in enumerate(matches.annotation_of.tolist()) if a >= 0}
        nearest = {d: a for d, a in enumerate(matches.nearest.tolist()) if a >= 0}
        expected = plain_contexts(
            frames, objects, reports, matched, nearest, PLAIN[rule.bins.variables], contexts.kind, contexts.cap, gaps,
            labelling=rule.labelling, threshold=threshold, unmatched=rule.unmatched, duplicates=rule.duplicates,
        )  # fmt: skip
        assert cells(found, member) == expected


@given(st.lists(st.booleans(), max_size=12), st.sampled_from([(k, n) for k in ("run", "last") for n in (1, 2, 3, 5)]))
def test_a_context_is_what_its_outcomes_say(outcomes, kind):
    contexts = Contexts(*kind)
    assert contexts.names[contexts.after([int(right) for right in outcomes])] == name_of(outcomes, *kind)


COARSER = (("run:4", "run:2"), ("run:4", "last:1")), (("last:3", "last:2"), ("last:3", "none"))


@given(tracked_scenes(), rules(("class",)), st.sampled_from(["break", "hold", "miss"]))
def test_coarsening_and_counting_commute(scene, rule, gaps):
    assume(any(each.track >= 0 for each in scene[1]))
    for fine, coarse in COARSER[len(scene[1]) % 2]:
        found = count(scene, rule, Memory(Contexts.parsed(fine), gaps, seed=None)).by_context.coarsened(
            Contexts.parsed(coarse)
        )
        direct = count(scene, rule, Memory(Contexts.parsed(coarse), gaps, seed=None)).by_context
        assert np.array_equal(found.counts, direct.counts)
        assert np.array_equal(found.tally.index, direct.tally.index)


def test_sizes_and_names():
    assert (Contexts("run", 5).count, Contexts("last", 3).count) == (11, 15)
    assert Contexts("last", 2).names == ("start", "r", "w", "rr", "rw", "wr", "ww")
    assert Contexts("run", 2).names == ("start", "right*1", "right*2", "wrong*1", "wrong*2")


@pytest.mark.parametrize("text", ["run:0", "run:51", "last:9", "run", "last:", "runs:3", "run:-1", ""])
def test_contexts_that_are_none(text):
    with pytest.raises(UsageError):
        Contexts.parsed(text)


def test_shorter_and_coarser_contexts_by_hand():
    last, run = Contexts("last", 2), Contexts("run", 2)
    assert last.shorter == (None, None, None, 1, 2, 1, 2)  # of rr, rw, wr, ww the newest
    assert run.shorter == (None, None, 1, None, 3)
    assert Contexts("persist", 2).shorter == (None, None, None, 2)
    assert last.coarsening(Contexts("last", 1)).tolist() == [0, 1, 2, 1, 2, 1, 2]
    assert run.coarsening(Contexts("run", 1)).tolist() == [0, 1, 1, 2, 2]
    assert run.coarsening(Contexts("last", 1)).tolist() == [0, 1, 1, 2, 2]
    assert last.coarsening(Contexts()).tolist() == [0] * 7
    for fine, coarse, known in ((Contexts(), run, "none"), (run, last, "none, last:1, run:1 to run:2")):
        with pytest.raises(UsageError, match=f"contexts {coarse} cannot be had from .* {fine}, which give {known}: "):
            fine.coarsening(coarse)
    with pytest.raises(UsageError, match=r"^--persist 0: expected"):
        Contexts("persist", 0)
    with pytest.raises(UsageError, match=r"^contexts run:0: expected"):
        Contexts("run", 0)


@pytest.mark.parametrize(
    ("gaps", "first", "second"),  # contexts of frames 2, 3, 5, 6, 9 and 0, 1, 3
    [
        ("break", ["start", "r", "start", "w", "start"], ["start", "w", "start"]),
        ("hold", ["start", "r", "rr", "rw", "wr"], ["start", "w", "wr"]),
        ("miss", ["start", "r", "rw", "ww", "ww"], ["start", "w", "rw"]),
    ],
)
def test_contexts_along_two_tracks_by_hand(gaps, first, second):
    """rr, a frame missing, wr, two frames missing, w; and wr, a frame missing, w: in any order of the rows."""
    contexts = Contexts("last", 2)
    series, frame = np.array([5] * 5 + [2] * 3), np.array([2, 3, 5, 6, 9, 0, 1, 3])
    right, expected = np.array([1, 1, 0, 1, 0, 0, 1, 0]), np.array([*first, *second])
    for order in (np.arange(8), np.arange(8)[::-1], np.array([3, 7, 0, 5, 2, 6, 1, 4])):
        found = contexts.along(series[order], frame[order], right[order], gaps)
        assert [contexts.names[at] for at in found] == expected[order].tolist()
    assert contexts.along(series[:0], frame[:0], right[:0], gaps).tolist() == []


@given(tracked_scenes(), LEFTOVER, st.randoms(use_true_random=False))
def test_parts_merged_are_the_whole_and_order_does_not_matter(scene, leftover, random):
    frames, objects, reports = scene
    assume(any(each.track >= 0 for each in objects))
    rule = by_class(leftover)
    memory = Memory(Contexts("run", 3), "hold", seed=None)
    whole = count((frames, objects, reports), rule, memory)
    shuffled = random.sample(objects, len(objects)), random.sample(reports, len(reports))
    again = count((frames, *shuffled), rule, memory)
    if not tied(reports) and not tied_places(objects):
        assert cells(again) == cells(whole)
    parts = []
    for name in dict.fromkeys(frames):
        own = [k for k, each in enumerate(frames) if each == name]
        step = min((after - before for before, after in pairwise(own)), default=1)
        number = {k: at for at, k in enumerate(own)}
        if any((k - own[0]) % step or (k - own[0]) // step != number[k] for k in own):
            return  # taken out of the whole its frames would be numbered otherwise
        part = (
            [name] * len(own),
            [replace(each, frame=number[each.frame]) for each in objects if each.frame in number],
            [replace(each, frame=number[each.frame]) for each in reports if each.frame in number],
        )
        if not any(each.track >= 0 for each in part[1]):
            return
        parts.append(count(part, rule, memory))
    names = [f"{k}.json" for k in range(len(parts))]
    merged = merge(parts, names)
    assert cells(merged) == cells(whole)
    coarse = [replace(part, by_context=part.by_context.coarsened(Contexts("run", 1))) for part in parts]
    coarser = replace(merged, by_context=merged.by_context.coarsened(Contexts("run", 1)))
    assert cells(merge(coarse, names)) == cells(coarser)


def tied(reports):
    return len({each.score for each in reports}) < len(reports)


def tied_places(objects):
    return len({(each.frame, each.x, each.y) for each in objects}) < len(objects)


def by_class(leftover="drop"):
    return CountingRule("class", ("ped", "obs"), Bins(EDGES), "ground_plane", leftover, leftover, "drop")


# --- By hand: a pedestrian for six frames, missed in 2, 3 and 4; frame 5 has no annotation of it, frame 6 has.

HAND = (
    ["A"] * 7,
    [Object(k, "ped", 5.0 if k < 3 else 15.0, track=1) for k in (0, 1, 2, 3, 4, 6)],
    [Report(k, "ped", 5.0) for k in (0, 1)] + [Report(6, "ped", 15.0)],
)


@pytest.mark.parametrize(("gaps", "last"), [("break", "start"), ("hold", "wrong*2"), ("miss", "wrong*2")])
def test_by_hand(gaps, last):
    found = cells(count(HAND, by_class(), Memory(Contexts("run", 2), gaps)))
    ped, none = frozenset({"ped"}), frozenset()
    objects = Counter({key[1:4]: number for key, number in found.items() if key[4] == ped})
    near, far = (1,), (2,)  # [5, 10) and [10, 20) m
    expected = Counter({(near, "start", ped): 1, (near, "right*1", ped): 1, (near, "right*2", none): 1})
    expected += Counter({(far, "wrong*1", none): 1, (far, "wrong*2", none): 1})
    expected[far, last, ped] += 1
    assert objects == expected


def test_a_member_of_a_family_has_its_own_counts_by_context():
    frames, objects, reports = HAND
    reports = [replace(each, score=score) for each, score in zip(reports, (0.9, 0.5, 0.7), strict=True)]
    memory = Memory(Contexts("run", 2))
    family = count((frames, objects, reports), replace(by_class(), thresholds=(0.1, 0.6, 0.8)), memory)
    for threshold in family.thresholds:
        own = [each for each in reports if each.score >= threshold]
        alone, member = count((frames, objects, own), by_class(), memory), family.member(threshold)
        assert np.array_equal(member.by_context.counts, alone.by_context.counts)
        assert cells(member) == cells(alone)


# --- Documents.


@given(tracked_scenes(), rules(("class", "proposition")), st.sampled_from(KINDS[:4]))
def test_documents(scene, rule, contexts):
    rule = replace(rule, thresholds=None if len(scene[0]) % 2 else (0.15, 0.35))
    assume(any(each.track >= 0 for each in scene[1]))
    counts = count(scene, rule, Memory(contexts, "hold", 0.1, 0 if len(scene[1]) % 8 == 0 else None))
    text = confusion_text(counts)
    document = json.loads(text)
    SCHEMA.validate(document)
    again = DocumentReader("a.json").counts(document)
    assert cells(again) == cells(counts)
    assert np.array_equal(again.by_context.counts, counts.by_context.counts)
    assert confusion_text(again) == text


def broken():
    document = json.loads(confusion_text(count(HAND, by_class(), Memory(Contexts("run", 2), "break", 0.1))))

    def change(action):
        changed = copy.deepcopy(document)
        action(changed)
        return changed

    cell = document["bins"][1]["contexts"]["start"]
    yield "/contexts/kind", change(lambda d: d["contexts"].update(kind="runs"))
    yield "/contexts/cap", change(lambda d: d["contexts"].update(cap=51))
    yield "/contexts/cap", change(lambda d: d["contexts"].update(cap=2.5))
    yield "/contexts/of", change(lambda d: d["contexts"].update(of="label"))
    yield "/contexts/gaps", change(lambda d: d["contexts"].update(gaps="stop"))
    yield "/contexts/period_s", change(lambda d: d["contexts"].update(period_s=0))
    yield "/contexts/perod_s", change(lambda d: d["contexts"].update(perod_s=0.1))
    yield "/contexts", change(lambda d: d["contexts"].pop("cap"))
    yield "/bins/1/contexts/right*3", change(lambda d: d["bins"][1]["contexts"].update({"right*3": cell}))
    yield "/bins/1/contexts", change(lambda d: d["bins"][1]["contexts"].pop("start"))
    yield "/bins/0", change(lambda d: d["bins"][0].pop("contexts"))
    yield "/bins/1/contexts/start", change(lambda d: d["bins"][1]["contexts"].update(start=[[1]]))
    yield "/sequences/0/counts/0", change(lambda d: d["sequences"][0]["counts"][0].pop())
    yield "/sequences/0/counts/0/1", change(lambda d: d["sequences"][0]["counts"][0].__setitem__(1, 6))
    yield "/sequences", change(lambda d: d["sequences"][0]["counts"].pop())
    yield "/contexts", change(lambda d: d.update(version=1))
    replay = {
        "label": "ped", "contexts": "run:1", "confirm": "1/1", "range": "0..10", "frames": 2, "tracks": 2,
        "not_confirmed": 1, "expected": 1.25, "p_value": 1.0,
    }  # fmt: skip
    yield "/contexts/replays", change(lambda d: d["contexts"].update(replays={}))
    for name, wrong, path in (
        ("contexts", "run:3", "/contexts"), ("tracks", 0, "/tracks"), ("not_confirmed", 3, "/not_confirmed"),
        ("p_value", 2, "/p_value"), ("label", 1, "/label"), ("more", 1, ""),
    ):  # fmt: skip
        made = {**replay, name: wrong}
        yield f"/contexts/replays/0{path}", change(lambda d, made=made: d["contexts"].update(replays=[made]))
    yield "/contexts/tracks", change(lambda d: d["contexts"].update(tracks=[]))
    yield "/contexts/tracks/ped", change(lambda d: d["contexts"]["tracks"]["ped"].pop("later"))
    yield (
        "/contexts/tracks/ped/longest_wrong_run",
        change(lambda d: d["contexts"]["tracks"]["ped"].update(longest_wrong_run=-1)),
    )
    yield "/contexts/tracks/ped/later", change(lambda d: d["contexts"]["tracks"]["ped"].update(later=[2, 1]))


def test_broken_documents():
    for path, document in broken():
        with pytest.raises(InputError) as error:
            DocumentReader("a.json").counts(document)
        assert error.value.place.path == path, str(error.value)


def test_without_tracks_or_single_objects_there_are_no_contexts():
    rule, memory = by_class(), Memory(Contexts("run", 2))
    with pytest.raises(UsageError, match="the annotations have no tracks"):
        count((["A"], [Object(0, "ped", 5.0)], []), rule, memory)
    with pytest.raises(UsageError, match="a group of objects has no identity"):
        count(HAND, replace(rule, labelling="group", gap_m=1.0), memory)


# --- Real tracks, against counts made by independent code.


def kitti(shared, tmp_path, detector, memory, gaps):
    data, rule, observed, counts = seen_on_kitti(shared, tmp_path, detector)
    return with_contexts(counts, data, observed, rule, Memory(Contexts.parsed(memory), gaps, seed=None))


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("gaps", ["break", "hold"])
def test_kitti(shared, tmp_path, detector, gaps):
    expected = json.loads((shared / "oracles/memory/kitti_contexts.json").read_text())["detectors"][detector]
    found = kitti(shared, tmp_path, detector, "run:10", gaps)
    write_confusion(found, tmp_path / "m.json")
    assert cells(read_counts(tmp_path / "m.json")) == cells(found)
    compared = 0
    for name, of_class in expected.items():
        true = found.labels.index(frozenset({name}))
        for model, letters in (("run:10", None), ("run:5", None), ("last:1", {"hit*1": "r", "miss*1": "w"})):
            divided = found.by_context.coarsened(Contexts.parsed(model))
            for at, row in enumerate(of_class["models"][f"{model} gaps={gaps}"]):
                named = {
                    letters.get(key, key) if letters else key.replace("hit", "right").replace("miss", "wrong"): value
                    for key, value in row.items()
                }
                columns = divided.counts[0, at, :, :, true]
                own = {
                    context: [int(column.sum() - column[true]), int(column[true])]
                    for context, column in zip((*divided.contexts.names, UNTRACKED), columns, strict=True)
                    if column.any()
                }
                assert own == named
                compared += len(own)
    assert compared > 300


# --- Which contexts: losses and e-values by independent code, and tests whose size is known.


def test_selection_on_kitti(shared, tmp_path):
    expected = json.loads((shared / "oracles/memory/model_selection.json").read_text())
    found = {}
    for detector in DETECTORS:
        data, rule, observed, counts = seen_on_kitti(shared, tmp_path, detector)
        for memory in ("run:10", "last:3"):
            asked = Memory(Contexts.parsed(memory), "hold", seed=None)
            found[detector, memory] = with_contexts(counts, data, observed, rule, asked)
    names = {"Pedestrian": "ped", "Car": "car", "Cyclist": "cyc"}
    for title, answers in expected.items():
        detector, name = title.split()
        runs = found[detector, "run:10"]
        column = [runs.labels.index(frozenset({names[name]}))]
        for model, bits in answers["bits_per_frame"].items():
            counts = found[detector, "last:3" if model.startswith("last") else "run:10"].by_context
            contexts = Contexts.parsed("none" if model == "none:0" else model)
            assert held_out_loss(counts.coarsened(contexts), column).mean == pytest.approx(bits, abs=1e-9)
        for which, log in answers["log10_e"].items():
            smaller, richer = (Contexts.parsed(each.replace("none:0", "none")) for each in which.split(" against "))
            counts = runs.by_context.coarsened(richer)
            assert log10_e_value(counts, column, smaller, runs.sequences.names) == pytest.approx(log, abs=1e-6)
    chosen = {
        (detector, name): str(
            selected_contexts(
                found[detector, "run:10"].by_context, [found[detector, "run:10"].labels.index({name})]
            ).contexts
        )
        for detector, name in (("pointrcnn", "ped"), ("rrc", "ped"), ("pointrcnn", "car"))
    }
    assert set(chosen.values()) == {"run:5"}


def drawn_reports(rng, contexts, tracks, length):
    """Outcomes along tracks of a detector whose chances depend on the context and nothing else."""
    chance = rng.uniform(0.1, 0.9, contexts.count)
    right = np.zeros((tracks, length), dtype=np.int64)
    state = np.full(tracks, contexts.start)
    for frame in range(length):
        right[:, frame] = rng.random(tracks) < chance[state]
        state = contexts.update[state, right[:, frame]]
    return right


@pytest.mark.parametrize("contexts", [Contexts(), Contexts("run", 1), Contexts("run", 3)])
def test_the_residual_test_keeps_its_size_where_contexts_say_all(contexts):
    """Of 400 data sets in which the contexts are right at most as many are contradicted at .05 as chance allows."""
    rng, rejected, data_sets = np.random.default_rng(5), 0, 400
    series = np.repeat(np.arange(20), 15)
    number = np.tile(np.arange(15), 20)
    for seed in range(data_sets):
        right = drawn_reports(rng, contexts, 20, 15).reshape(-1)
        stratum = contexts.along(series, number, right, "break")
        rejected += residual_test(stratum, right, _histories(series, number, right), seed, 199)[1] <= 0.05
    assert binomtest(rejected, data_sets, 0.05, "greater").pvalue > 0.001


def test_the_residual_test_finds_objects_that_differ():
    rng = np.random.default_rng(1)
    chance = np.repeat(rng.choice([0.1, 0.9], 30), 20)
    right = (rng.random(600) < chance).astype(np.int64)
    series, number = np.repeat(np.arange(30), 20), np.tile(np.arange(20), 30)
    for contexts in (Contexts(), Contexts("run", 2)):
        stratum = contexts.along(series, number, right, "break")
        z, p_value, _ = residual_test(stratum, right, _histories(series, number, right))
        assert z > 4
        assert p_value < 0.001


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_the_e_value_of_a_true_model_is_rarely_large(seed):
    """Pr(E >= 1000) <= .001 where the smaller contexts are true: of 20 draws none, but for one in fifty runs."""
    rng, smaller, richer = np.random.default_rng(seed), Contexts("run", 1), Contexts("run", 5)
    right = drawn_reports(rng, smaller, 24, 12)
    series, number = np.repeat(np.arange(24), 12), np.tile(np.arange(12), 24)
    context = richer.along(series, number, right.reshape(-1), "break")
    index = np.column_stack([series // 3, context, 1 - right.reshape(-1), np.zeros(len(series), dtype=np.int64)])
    tally = summed(index.astype(np.int64), np.ones((len(index), 1), dtype=np.int64))
    counts = tally.dense(richer.count + 1, 2).reshape(1, 1, richer.count + 1, 2, 2)
    found = ContextCounts(richer, "break", None, counts, tally)
    assert log10_e_value(found, [0], smaller, [f"{k}" for k in range(8)]) < 3


@pytest.mark.parametrize("shape", [(1, 1, 4, 2), (1, 1, 4, 2, 2, 1), (1, 1, 3, 2, 2), (4, 1, 5, 2, 2)])
def test_counts_by_context_have_a_matrix_for_each_context(shape):
    contexts = Contexts("run", 1)  # start, right*1, wrong*1: with the untracked items 4 of a bin
    assert ContextCounts(contexts, "break", None, np.zeros((3, 2, 4, 2, 5))).per_bin == 4
    with pytest.raises(ValueError, match="counts by context have shape"):
        ContextCounts(contexts, "break", None, np.zeros(shape))


# --- Replay on real tracks.


def test_replay_on_kitti(shared, tmp_path):
    reports = {detector: tracked_reports(shared, tmp_path, detector, "ped") for detector in DETECTORS}
    for row in json.loads((shared / "oracles/memory/replay.json").read_text())["rows"]:
        near = [[0, 10, 20, 30, 40].index(row["bin_m"][0])]
        tracker = Tracker(row["in_a_row"], row["in_a_row"])
        contexts = [Contexts.parsed(text) for text in row["expected"]]
        found = replayed(reports[row["detector"]], near, row["frames"], tracker, contexts)
        assert (found.windows, found.not_confirmed) == (row["tracks"], row["not_confirmed"])
        assert {each.contexts: each.expected for each in found.predictions} == pytest.approx(
            row["expected"], rel=1e-9
        )


@pytest.mark.parametrize("detector", DETECTORS)
def test_windows_without_a_report_on_kitti(detector, shared, tmp_path):
    """All windows of n successive frames that a pedestrian is in [10, 20) m, overlapping ones too."""
    told = tracked_reports(shared, tmp_path, detector, "ped")
    expected = json.loads((shared / "oracles/memory/latch.json").read_text())["detectors"][detector]["real_windows"]
    for text, known in expected.items():
        length, found, silent = int(text), [], []
        for track in np.unique(told.track):
            rows = np.flatnonzero(told.track == track)
            rows = rows[np.argsort(told.frame[rows])]
            for at in range(len(rows) - length + 1):
                own = rows[at : at + length]
                if told.frame[own[-1]] - told.frame[own[0]] == length - 1 and (told.bin[own] == 1).all():
                    found.append((int(track), int(told.sequence[own[0]])))
                    silent += [] if told.right[own].any() else [int(track)]
        tracks, drives = ({pair[k] for pair in found} for k in (0, 1))
        assert (len(found), len(silent), len(tracks), len(drives), len(set(silent))) == tuple(
            known[name] for name in ("windows", "without_report", "tracks", "drives", "tracks_silent")
        )


@given(
    st.integers(1, 3), st.integers(0, 2),
    st.sampled_from([Contexts("run", 2), Contexts("last", 2)]), st.integers(0, 6),
)  # fmt: skip
def test_a_prediction_is_the_sum_over_all_reports(needed, more, contexts, begin):
    """Against enumeration of all 2^5 report strings, one context at a time."""
    rng = np.random.default_rng(len(contexts.names) * needed + more)
    rates = rng.uniform(0, 1, (2, contexts.count))
    tracker, bins = Tracker(needed, needed + more), rng.integers(0, 2, 5)
    start = begin % contexts.count
    total = 0.0
    for reports in product((0, 1), repeat=5):
        context, chance = start, 1.0
        for at, right in zip(bins, reports, strict=True):
            chance *= rates[at, context] if right else 1 - rates[at, context]
            context = int(contexts.update[context, right])
        window = [0] * needed + [0] * more + list(reports)
        if any(sum(window[k - needed - more + 1 : k + 1]) >= needed for k in range(needed + more, len(window))):
            total += chance
    found = unconfirmed(rates[None], contexts, tracker, bins[None], np.array([start]))
    assert found.shape == (1, 5, 1)
    assert 1 - found[0, -1, 0] == pytest.approx(total, abs=1e-12)


def replay_settings(path, **change):
    asked = {"record": str(path), "true_class": "ped", "range": "0..10", "frames": 2, "bins": "0,10,20"}
    return ReplaySettings(**{**asked, **change})


@pytest.fixture
def record(tmp_path):
    """Two drives with a track each, of four and three frames in [0, 10) m: rwwr and www; and one frame in between."""
    frames = ["A"] * 4 + ["B"] * 3
    objects = [Object(k, "ped", 5.0, track=1) for k in range(7)]
    data = detection_set(frames, objects, [Report(k, "ped", 5.0) for k in (0, 3)])
    rule = CountingRule("class", ("ped", "obs"), Bins((0.0, 10.0, 20.0)), "ground_plane")
    _, observed = count_and_observe(data, POLICY, rule)
    write_record([record_table(data, rule, observed)], tmp_path / "r.csv")
    return tmp_path / "r.csv"


def test_replay_by_hand(record):
    found = replay_record(replay_settings(record, memory="none", confirm="1/1"))
    # First windows: rw of A, ww of B. A is predicted by B's rate 0 of 3, B by A's rate 2 of 4.
    assert (found.windows, found.sequences, found.not_confirmed) == (2, 2, 1)
    assert found.predictions[0].expected == pytest.approx(1 + 0.25)
    # P(2 of 2) = 1/4 and P(1 of 2) = 3/4, so one is seen with two tails of 3/4 and 1.
    assert found.predictions[0].p_value == 1
    assert replay_table(found).startswith("1 right reports among 1 do not come in 1 of 2 windows of 2 frames")


def test_a_replay_is_added_to_the_matrices_of_its_tracks(record, tmp_path, capsys):
    target = tmp_path / "m.json"
    write_confusion(count(HAND, by_class(), Memory(Contexts("run", 2), seed=None)), target)
    asked = ["confusion", "replay", str(record), "--true-class", "ped", "--range", "0..10", "--bins", "0,10,20"]
    asked += ["--memory", "none,run:1", "--into", str(target)]
    for frames in ("2", "2", "3"):
        assert main([*asked, "--frames", frames]) == 0
    told = [(each.contexts, each.frames, each.tracks, each.not_confirmed) for each in replays_of(target)]
    assert told == [("none", 2, 2, 1), ("run:1", 2, 2, 1), ("none", 3, 2, 1), ("run:1", 3, 2, 1)]
    first = replays_of(target)[0]
    assert (first.label, first.confirm, first.range) == ("ped", "1/1", "0..10")
    assert (first.expected, first.p_value) == (pytest.approx(1.25), 1)
    SCHEMA.validate(json.loads(target.read_text()))
    for more, message in (
        (["--gaps", "hold"], "expected matrices that count ped by context, with --gaps hold"),
        (["--memory", "last:2"], "last:2 cannot be had from matrices counted with run:2"),
        (["--splits", "2"], "--into adds a replay to matrices, and --splits halves drives"),
    ):
        capsys.readouterr()
        assert main([*asked, "--frames", "2", *more]) == 2
        assert message in " ".join(capsys.readouterr().err.split())
    assert len(replays_of(target)) == 4


def replays_of(path):
    return read_counts(path).by_context.replays


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frames": 0}, "--frames: expected a number from 1 to 1000, got 0"),
        ({"frames": 1001}, "--frames: expected a number from 1 to 1000, got 1001"),
        ({"frames": 1000}, "no track of ped has 1000 successive frames in that range"),
        ({"frames": 9}, "no track of ped has 9 successive frames in that range"),
        ({"memory": "run:1,x"}, "expected contexts"),
    ],
)
def test_replays_that_cannot_be(record, change, message):
    with pytest.raises((UsageError, InputError)) as error:
        replay_record(replay_settings(record, **change))
    assert message in str(error.value)


def test_a_run_says_that_contexts_are_summed(tmp_path):
    write_confusion(count(HAND, by_class(), Memory(Contexts("run", 2))), tmp_path / "m.json")
    matrices = read_confusion(tmp_path / "m.json").matrices
    told = [each["text"] for each in matrices.metadata["remarks"] if each["kind"] == "contexts"]
    assert told == ["counts by context (run:2) are summed: reports have no memory"]


@pytest.mark.parametrize(("kind", "most"), [("none", 0), ("run", 50), ("last", 8), ("persist", 50)])
def test_contexts_have_lengths_up_to_a_most(kind, most):
    assert Contexts(kind, most).cap == most
    for wrong in (most + 1, min(1, most) - 1):
        with pytest.raises(UsageError, match=f"expected a length from {min(1, most)} to {most}"):
            Contexts(kind, wrong)


@given(st.lists(st.lists(st.booleans(), max_size=7), max_size=3), st.lists(st.booleans(), max_size=7))
def test_counts_by_run_show_the_longest_run_of_errors_about_some_labels(tracks, of_another_label):
    contexts = Contexts("run", 3)
    counts = np.zeros((1, 2, contexts.count + 1, 2, 2), dtype=np.int64)
    for label, rights in ((1, of_another_label), *((0, rights) for rights in tracks)):
        for number, right in enumerate(rights):
            context = contexts.after([int(each) for each in rights[:number]])
            counts[0, number % 2, context, label if right else 1 - label, label] += 1
    runs = [len(list(run)) for rights in tracks for right, run in groupby(rights) if not right]
    longest = max(runs, default=0)  # after three and more errors no one knows how many there were
    found = ContextCounts(contexts, "break", None, counts)
    assert longest_run(found, [0]) == (min(longest, 4), longest > 3)
    counts[0, 1, -1, 1, 0] += 1  # an error of no track
    assert longest_run(found, [0]) == (max(1, min(longest, 4)), longest > 3)


@pytest.mark.parametrize(("gaps", "longest"), [("break", 3), ("hold", 4), ("miss", 6)])
def test_tracks_by_hand(gaps, longest):
    """Track 0: wrrwww.. with a gap of two frames before the last, wrong one; 1 begins later, and is right at once."""
    series = np.array([0, 0, 0, 0, 0, 0, 0, 1, 1])
    number = np.array([0, 1, 2, 3, 4, 5, 8, 2, 3])
    right = np.array([0, 1, 1, 0, 0, 0, 0, 1, 0])
    shuffled = np.random.default_rng(1).permutation(len(series))
    found = OfTracks.of(series[shuffled], number[shuffled], right[shuffled], gaps)
    assert found == OfTracks(longest, (1, 1), (0, 1))
    more = OfTracks.of(series[7:], number[7:], right[7:], gaps)
    assert found.merged(more) == OfTracks(longest, (1, 1), (0, 2))
    assert OfTracks.of(series[:0], number[:0], right[:0], gaps) == OfTracks(0, (0, 0), (0, 0))


@pytest.mark.parametrize(
    ("numbers", "right", "longest", "with_drive", "later"),
    [
        ([0, 1], [0, 0], {"break": 2, "hold": 2, "miss": 2}, (1, 1), (0, 0)),
        ([1, 2, 4], [0, 0, 0], {"break": 2, "hold": 3, "miss": 4}, (0, 0), (1, 1)),  # one frame is missing
        ([1, 2, 4], [1, 0, 1], {"break": 1, "hold": 1, "miss": 2}, (0, 0), (0, 1)),
        ([0, 2, 3], [1, 1, 1], {"break": 0, "hold": 0, "miss": 1}, (0, 1), (0, 0)),
    ],
)
def test_the_longest_run_of_one_track(numbers, right, longest, with_drive, later):
    for gaps, most in longest.items():
        found = OfTracks.of(np.zeros(len(numbers), dtype=np.int64), np.array(numbers), np.array(right), gaps)
        assert found == OfTracks(most, with_drive, later)


def test_no_more_tracks_are_missed_or_not_confirmed_than_there_are():
    most = {"not_confirmed": 3, "expected": 3.0}
    test = ReplayTest("ped", "run:1", "1/1", "0..10", 2, 3, p_value=1.0, **most)
    for name in most:
        with pytest.raises(MisfitError, match="expected at most 3, the number of tracks"):
            replace(test, **{name: 4})
    tracks = OfTracks(2, (1, 1), (3, 3))
    for name in ("with_drive", "later"):
        with pytest.raises(MisfitError, match="expected at most 2 wrong first outcomes, of so many tracks"):
            replace(tracks, **{name: (3, 2)})
    assert tracks.merged(OfTracks(1, (0, 2), (1, 5))) == OfTracks(2, (1, 3), (4, 8))


@pytest.mark.parametrize(("detector", "longest"), [("pointrcnn", 154), ("rrc", 55)])
def test_tracks_of_kitti(detector, longest, shared, tmp_path):
    """What the specification says of the open drives, by independent code."""
    found = kitti(shared, tmp_path, detector, "run:10", "break")
    tracks = found.by_context.tracks
    assert tracks["ped"].longest_wrong_run == longest, {k: v.longest_wrong_run for k, v in tracks.items()}
    if detector == "pointrcnn":
        assert (tracks["ped"].with_drive, tracks["ped"].later) == ((3, 12), (56, 78))
        told = counts_table(found)
        assert "ped: missed in the first frame of 3 of 12 tracks that begin with their drive, and of 56 of 78" in told
    write_confusion(found, tmp_path / "m.json")
    assert read_counts(tmp_path / "m.json").by_context.tracks == tracks
