"""Confusion counts: what is chosen, summed over or kept apart, cell by cell, and what cannot be counts."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from shorthands import of_sequences

from verifier.base.errors import UsageError
from verifier.perception.confusion import EMPTY
from verifier.perception.confusion.bins import Bins, Variable
from verifier.perception.confusion.context_selection import (
    divided_matrices,
    divided_sequences,
    followed,
    longest_run,
    persistent,
)
from verifier.perception.confusion.contexts import UNTRACKED, Contexts
from verifier.perception.confusion.counts import ConfusionCounts, ContextCounts, Sequences
from verifier.perception.confusion.tally import Tally, summed
from verifier.perception.confusion.tracks import Tracks

PED = frozenset({"ped"})
HIDDEN = Variable("hidden", groups=(("low", ("0", "1")), ("high", ("2",)), ("none", ("3",))))
DRIVE = Variable("sequence", groups=(("night", ("n*",)), ("day", ("*",))))
BINS = Bins((0.0, 7.5, math.inf), (HIDDEN, DRIVE))
CONTEXTS = Contexts("run", 1)
SHAPE = (3, *BINS.shape, CONTEXTS.count + 1, 2, 2)
"""Sequences, bins of distance and of both variables, contexts with the untracked items, reported and true."""


def tally_of(table):
    """Of (sequences, bins, reported, true)."""
    index = np.argwhere(table)
    return Tally(index, table[tuple(index.T)][:, None])


@pytest.fixture(scope="module")
def table():
    return np.random.default_rng(8).integers(0, 3, SHAPE)


@pytest.fixture(scope="module")
def counts(table):
    whole, divided = table.sum(axis=4), table.sum(axis=0)
    sequences = Sequences(("a", "b", "c"), np.arange(3), tally_of(whole.reshape(3, BINS.count, 2, 2)))
    by_context = ContextCounts(
        CONTEXTS, "break", None, divided.reshape(1, BINS.count, *SHAPE[4:]), tally_of(table.reshape(3, -1, 2, 2))
    )
    summed_up = whole.sum(axis=0).reshape(1, BINS.count, 2, 2)
    return ConfusionCounts("class", (PED, EMPTY), BINS, None, summed_up, sequences, by_context=by_context)


def by_definition(table, where, kept):
    """Each cell on its own; of a variable that only objects have, what was reported of none is taken once."""
    shape = [2, *(variable.count for variable in BINS.variables if variable.name in kept)]
    found = np.zeros((3, *shape, *SHAPE[4:]), dtype=np.int64)
    for sequence, distance, *at, context, predicted, true in np.ndindex(SHAPE):
        places = dict(zip(("hidden", "sequence"), at, strict=True))
        if any(places[name] != number for name, number in where.items()):
            continue
        if "hidden" not in (*where, *kept) and true == 1 and places["hidden"] > 0:
            continue
        own = [places[name] for name in ("hidden", "sequence") if name in kept]
        found[(sequence, distance, *own, context, predicted, true)] += table[
            (sequence, distance, *at, context, predicted, true)
        ]
    return found.reshape(3, -1, *SHAPE[4:])


@pytest.mark.parametrize(("hidden", "drive"), [*product([None, "kept", 0, 1], [None, "kept", 1])])
def test_bins_that_are_chosen_summed_over_or_kept_apart(table, counts, hidden, drive):
    asked = {"hidden": hidden, "sequence": drive}
    kept = [name for name, how in asked.items() if how == "kept"]
    where = {name: how for name, how in asked.items() if isinstance(how, int)}
    expected = by_definition(table, where, kept)
    names = {name: {"hidden": HIDDEN, "sequence": DRIVE}[name].bin_text(at) for name, at in where.items()}
    matrices = counts.matrices(names, kept)
    assert np.array_equal(matrices.counts, expected.sum(axis=(0, 2)))
    assert [variable.name for variable in matrices.variables] == kept
    assert matrices.metadata.get("where", {}) == names
    found = counts.by_sequence(names, kept)
    by_context = counts.contexts_by_distance(names, kept)
    assert np.array_equal(by_context.counts[0], expected.sum(axis=0))
    for sequence in range(3):
        own = found.tally.of_sequence(sequence).dense(matrices.bin_count, 2)[0]
        assert np.array_equal(own, expected[sequence].sum(axis=1))
        own = by_context.tally.of_sequence(sequence).dense(matrices.bin_count * by_context.per_bin, 2)
        assert np.array_equal(own.reshape(expected.shape[1:]), expected[sequence])
    assert np.array_equal(found.canonical().tally.dense(1, 2)[0, 0], expected.sum(axis=(0, 1, 2)))
    whole = by_context.canonical()
    assert np.array_equal(whole.counts[0, 0], expected.sum(axis=(0, 1)))
    assert np.array_equal(whole.tally.dense(whole.per_bin, 2)[0], expected.sum(axis=(0, 1)))
    bare = replace(counts, sequences=None, by_context=replace(counts.by_context, tally=None))
    assert bare.by_sequence(names, kept) is None
    alone = bare.contexts_by_distance(names, kept)
    assert alone.tally is None
    assert np.array_equal(alone.counts, by_context.counts)
    for told in (alone.canonical(), alone.renumbered(Contexts(), np.array([0, 0, 0, 1]))):
        assert told.tally is None
    with pytest.raises(UsageError, match="unknown variable of the matrices 'x'"):
        replace(bare, by_context=None).contexts_by_distance({"x": "1"})
    assert replace(bare, by_context=None).contexts_by_distance(names) is None


def test_contexts_that_get_other_numbers(table, counts):
    """start, right*1, wrong*1, untracked: right to start of `none`, all others untracked."""
    found = counts.by_context.renumbered(Contexts(), np.array([1, 0, 1, 1]))
    assert (found.contexts, found.per_bin, found.counts.shape) == (Contexts(), 2, (1, BINS.count, 2, 2, 2))
    parts = table.reshape(3, BINS.count, *SHAPE[4:])
    expected = np.stack([parts[:, :, 1], parts[:, :, [0, 2, 3]].sum(axis=2)], axis=2)
    assert np.array_equal(found.counts[0], expected.sum(axis=0))
    for sequence in range(3):
        own = found.tally.of_sequence(sequence).dense(2 * BINS.count, 2)
        assert np.array_equal(own.reshape(expected.shape[1:]), expected[sequence])


def test_a_member_has_the_rows_and_contexts_of_its_threshold():
    index = np.array([[0, 0, 0, 0], [0, 0, 1, 0], [1, 0, 1, 0]])
    numbers = np.array([[2, 0], [1, 3], [0, 4]])
    tally, bins, contexts = summed(index, numbers), Bins((0.0, 5.0)), Contexts()
    by_context = ContextCounts(
        contexts, "break", None, np.stack([tally.dense(1, 2), 0 * tally.dense(1, 2)], axis=2),
        Tally(index * [1, 2, 1, 1], numbers),
    )  # fmt: skip
    sequences = Sequences(("a", "b"), np.array([1, 2]), tally)
    family = ConfusionCounts(
        "class", (PED, EMPTY), bins, (0.1, 0.2), tally.dense(1, 2), sequences, by_context=by_context
    )
    for at, (rows, columns) in enumerate([([0, 1], [2, 1]), ([1, 2], [3, 4])]):
        member = family.member(family.thresholds[at])
        assert member.thresholds is None
        for told in (member.sequences.tally, member.by_context.tally):
            assert (told.index.tolist(), told.counts[:, 0].tolist()) == (index[rows].tolist(), columns)
        assert member.by_context.counts.tolist() == by_context.counts[at : at + 1].tolist()
    assert of_sequences(family)[:, :, 0, 1, 0].tolist() == [[1, 3], [0, 4]]


def test_the_headline_says_what_was_counted(counts):
    assert counts.headline == "confusion matrices, class-labelled, 12 bins"
    assert replace(counts, title="t").headline == "t, class-labelled, 12 bins"
    assert replace(counts, metadata={"remarks": ["r"]}).remarks == ("r",)


def test_what_does_not_add_up_is_no_count(table, counts):
    names, frames, tally = counts.sequences.names, counts.sequences.frames, counts.sequences.tally
    for wrong_names, wrong_frames in ((("a", "b", "a"), frames), (names, frames[:2]), (names, frames[:, None])):
        with pytest.raises(ValueError, match="the names of the sequences must differ"):
            Sequences(wrong_names, wrong_frames, tally)
    one_less = counts.counts.copy()
    one_less[0, 0, 0, 0] = -1
    more = Tally(tally.index, tally.counts + 1)
    by_context, divided = counts.by_context, counts.by_context.tally
    moved = np.roll(by_context.counts, 1, axis=2)
    empty = np.zeros((0, 4), dtype=np.int64)
    tracks = Tracks(empty, np.zeros((0, 1)), empty[:, :3], empty[:, 0], {})
    tracked = replace(counts.sequences, tracks=tracks)
    for change, words in (
        ({"counts": counts.counts[:, :5]}, "counts have shape"),
        ({"thresholds": (0.1, 0.2)}, "counts have shape"),
        ({"counts": counts.counts.astype(float)}, "counts must be integers from 0"),
        ({"counts": one_less}, "counts must be integers from 0"),
        ({"sequences": replace(counts.sequences, tally=more)}, "by sequence do not add up to the counts"),
        ({"by_context": replace(by_context, counts=by_context.counts + 1)}, "by context do not add up"),
        ({"by_context": replace(by_context, counts=moved)}, "by sequence and context do not add up"),
        ({"by_context": replace(by_context, tally=None)}, "by sequence and context go together"),
        ({"sequences": None}, "by sequence and context go together"),
        ({"by_context": replace(by_context, tally=Tally(divided.index, divided.counts + 1))}, "sequence and context"),
        ({"sequences": tracked}, "tracks need a table for every sum over axes of the bins"),
        ({"sequences": tracked, "labelling": "group"}, "an item of a group-labelled matrix is no track"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            replace(counts, **change)


def test_matrices_and_sequences_divided_by_context(table, counts):
    """Nobody follows tracks of empty: its column is whole at start. Untracked items of ped are in no context."""
    table = table.copy()
    table[..., -1, :, 1] = table[..., 1].sum(axis=4)
    table[..., :-1, :, 1] = 0
    tally = tally_of(table.reshape(3, -1, 2, 2))
    by_context = replace(counts.by_context, counts=table.sum(axis=0).reshape(1, BINS.count, *SHAPE[4:]), tally=tally)
    counts = replace(counts, by_context=by_context)
    kept = ["hidden", "sequence"]
    matrices, divided = counts.matrices({}, kept), counts.contexts_by_distance({}, kept)
    assert followed(divided).tolist() == [True, False]
    for context in range(4):
        alone = np.zeros((1, 1, 4, 2, 2), dtype=np.int64)
        alone[0, 0, context, 0, 1] = 1
        assert followed(ContextCounts(CONTEXTS, "break", None, alone)).tolist() == [False, context < 3]
    own = table.reshape(3, BINS.count, *SHAPE[4:])
    expected = own[:, :, :-1].copy()
    expected[:, :, 0, :, 1] = own[:, :, :, :, 1].sum(axis=2)
    found = divided_matrices(matrices, divided, "pool")
    assert np.array_equal(found.counts, expected.sum(axis=0).reshape(-1, 2, 2))
    assert np.array_equal(found.memory.whole, matrices.counts)
    assert (found.memory.contexts, found.memory.policy) == (CONTEXTS, "pool")
    assert found.memory.followed.tolist() == [True, False]
    sequences = divided_sequences(counts.by_sequence({}, kept), divided)
    for number in range(3):
        assert np.array_equal(
            sequences.tally.of_sequence(number).dense(3 * BINS.count, 2)[0], expected[number].reshape(-1, 2, 2)
        )
    assert sequences.tracks is None
    with pytest.raises(ValueError, match="the counts by context do not add up to the matrices"):
        divided_matrices(counts.matrices({}, ["hidden"]), divided, "pool")
    with pytest.raises(ValueError, match="the counts by context have no sequences"):
        divided_sequences(counts.sequences, replace(divided, tally=None))


@pytest.mark.parametrize(
    ("cells", "longest"),  # (context, reported, true) of items; contexts start, right*1, right*2, wrong*1, wrong*2
    [
        ([], (0, False)),
        ([(0, 0, 0), (2, 0, 0)], (0, False)),
        ([(0, 1, 0), (1, 0, 0)], (1, False)),
        ([(5, 1, 0)], (1, False)),  # an error of no track
        ([(3, 0, 0), (0, 1, 0)], (1, False)),
        ([(3, 1, 0)], (2, False)),
        ([(4, 0, 0), (3, 1, 0)], (2, False)),
        ([(4, 1, 0), (3, 1, 0)], (3, True)),
        ([(4, 2, 2), (0, 0, 0)], (0, False)),  # of another label
        ([(3, 0, 0), (3, 0, 1)], (2, False)),  # of two labels
    ],
)
def test_the_longest_run_of_errors_by_hand(cells, longest):
    contexts = Contexts("run", 2)
    table = np.zeros((1, 2, contexts.count + 1, 3, 3), dtype=np.int64)
    for number, cell in enumerate(cells):
        table[(0, number % 2, *cell)] += 4
    assert longest_run(ContextCounts(contexts, "break", None, table), [0, 1]) == longest


@pytest.mark.parametrize("cap", [1, 3])
def test_of_counts_by_run_those_after_no_error_count_where_errors_persist(cap):
    run, rng = Contexts("run", cap), np.random.default_rng(cap)
    after_error = np.array([name.startswith("wrong") for name in (*run.names, UNTRACKED)])
    after_error[-1] = True  # of untracked items nobody knows
    counts = rng.integers(0, 9, (1, 2, run.count + 1, 2, 2))
    index = np.array(
        [(0, place * (run.count + 1) + context, *cell) for place, context, *cell in np.ndindex(counts.shape[1:])]
    )
    found = persistent(ContextCounts(run, "break", None, counts, summed(index, counts.reshape(-1, 1))), 2)
    assert found.contexts.names == ("start", "right", "wrong*1", "wrong*2")
    assert found.contexts.update.tolist() == [[2, 1], [2, 1], [3, 1], [3, 1]]
    expected = np.zeros((1, 2, 5, 2, 2), dtype=np.int64)
    expected[:, :, 0] = counts[:, :, 0]
    expected[:, :, 1] = counts[:, :, ~after_error].sum(axis=2) - counts[:, :, 0]
    expected[:, :, 4] = counts[:, :, after_error].sum(axis=2)
    assert np.array_equal(found.counts, expected)
    assert np.array_equal(found.tally.dense(10, 2).reshape(expected.shape), expected)
    with pytest.raises(UsageError, match="--persist needs counts by run"):
        persistent(found, 2)
