"""Which contexts data support, by the definitions sequence by sequence; contexts that go on from part to part."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import UsageError
from verifier.perception.confusion.context_selection import (
    Begun,
    HeldOutLoss,
    Part,
    coarser_candidates,
    held_out_loss,
    log10_e_value,
    selected_contexts,
)
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.counts import ContextCounts
from verifier.perception.confusion.tally import summed

NAMES = ("d", "b", "f", "a", "c", "e")
RUN = Contexts("run", 2)


def counted(seed, sequences=6, contexts=RUN, without=(2,), most=3):
    """Counts of labels ped, obs and empty in two bins, untracked items among them; some sequences have no ped."""
    table = np.random.default_rng(seed).integers(0, most + 1, (sequences, 2, contexts.count + 1, 3, 3))
    table[list(without), :, :-1, :, 0] = 0
    cells = [cell for cell in np.ndindex(table.shape) if table[cell]]
    index = np.array([(s, b * (contexts.count + 1) + c, p, t) for s, b, c, p, t in cells])
    tally = summed(index, table[tuple(np.transpose(cells))][:, None])
    return ContextCounts(contexts, "break", None, table.sum(axis=0)[None], tally), table


def reports(table, coarse, columns):
    """{sequence: {cell: [wrong, right]}} of the tracked items with these true labels that there are."""
    number, found = RUN.coarsening(coarse), {}
    for s, b, c, p, t in np.ndindex(table.shape):
        if c < RUN.count and t in columns and table[s, b, c, p, t]:
            cell = found.setdefault(s, {}).setdefault((b, int(number[c]), t), [0, 0])
            cell[p == t] += int(table[s, b, c, p, t])
    return found


def log_chance(own, seen):
    """Log of the chance of reports with chances estimated from others."""
    total = 0.0
    for cell, numbers in own.items():
        known = seen.get(cell, [0, 0])
        total += sum(n * math.log((k + 0.5) / (sum(known) + 1)) for n, k in zip(numbers, known, strict=True))
    return total


def together(parts):
    total = {}
    for part in parts:
        for cell, numbers in part.items():
            total[cell] = [a + b for a, b in zip(total.get(cell, [0, 0]), numbers, strict=True)]
    return total


@pytest.mark.parametrize("coarse", [Contexts(), Contexts("run", 1), RUN])
@pytest.mark.parametrize("columns", [[0], [0, 1]])
def test_the_held_out_loss_is_as_defined(coarse, columns):
    counts, table = counted(1)
    found, own = held_out_loss(counts.coarsened(coarse), columns), reports(table, coarse, columns)
    bits = [-log_chance(own[s], together(own[o] for o in own if o != s)) / math.log(2) for s in sorted(own)]
    frames = [sum(map(sum, own[s].values())) for s in sorted(own)]
    assert found.contexts == coarse
    assert found.frames.tolist() == frames
    assert found.bits == pytest.approx(bits)
    assert found.mean == pytest.approx(sum(bits) / sum(frames))


def test_losses_by_hand():
    def loss(bits, frames):
        return HeldOutLoss(RUN, np.array(bits, dtype=float), np.array(frames))

    assert loss([2, 4], [1, 3]).above(loss([1, 1], [1, 3])) == (1, 0)  # 1 bit more in each frame
    assert loss([2, 4], [1, 1]).above(loss([1, 1], [1, 1])) == (2, 1)  # 1 and 3: 2 by two sequences that differ by 2
    assert loss([1, 4, 4], [1, 1, 1]).above(loss([1, 1, 1], [1, 1, 1])) == (2, 1)  # by 0, 3, 3
    assert loss([5], [2]).above(loss([1], [2])) == (2, 0)
    assert loss([2, 4], [1, 3]).mean == 1.5


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("few", [{}, {"without": (1, 2, 3), "most": 1}])
def test_the_e_value_is_as_defined(seed, few):
    counts, table = counted(seed, **few)
    smaller = Contexts("run", 1)
    fine, plain = (reports(table, contexts, [0]) for contexts in (RUN, smaller))
    ordered = sorted(fine, key=NAMES.__getitem__)
    halves, ratios = (ordered[::2], ordered[1::2]), []
    for fitted_on, judged in (halves, halves[::-1]):
        gain = log_chance(together(fine[s] for s in judged), together(fine[s] for s in fitted_on))
        best = together(plain[s] for s in judged).values()
        ratios.append(gain - sum(n * math.log(n / sum(numbers)) for numbers in best for n in numbers if n))
    expected = math.log10((math.exp(ratios[0]) + math.exp(ratios[1])) / 2)
    assert log10_e_value(counts, [0], smaller, NAMES) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_the_smallest_contexts_within_an_error_of_the_best_are_selected(seed):
    counts, _ = counted(seed, without=())
    found = selected_contexts(counts, [0])
    losses = {contexts: held_out_loss(counts.coarsened(contexts), [0]) for contexts in (Contexts(), *RUNS)}
    assert [loss.contexts for loss in found.losses] == list(losses)
    best = min(losses.values(), key=lambda loss: loss.mean)
    within = [each.contexts for each in losses.values() if each.above(best)[0] <= each.above(best)[1]]
    assert (found.best, found.contexts) == (best.contexts, within[0])


RUNS = (Contexts("run", 1), RUN)


def test_contexts_that_matter_are_selected():
    """After a wrong report of seven sequences every one is wrong, else right: 24 of 25 in a row."""
    index = np.array([(s, c, int(c == 2), 0) for s in range(7) for c in (1, 2)])
    tally = summed(index, np.full((14, 1), 50))
    table = tally.dense(4, 2).reshape(1, 1, 4, 2, 2)
    found = selected_contexts(ContextCounts(RUNS[0], "break", None, table, tally), [0])
    assert (found.contexts, found.best) == (RUNS[0], RUNS[0])


def test_what_cannot_be_compared():
    with pytest.raises(UsageError, match=r"needs 4 sequences with tracks; the matrices have 3: .*--memory run:2"):
        selected_contexts(counted(1, 4)[0], [0])
    enough, _ = counted(1, 5)  # of one there is no ped
    assert selected_contexts(enough, [0]).best is not None
    assert selected_contexts(enough.coarsened(Contexts()), [0]).contexts == Contexts()
    counts, _ = counted(1)
    family = ContextCounts(RUN, "break", None, np.repeat(counts.counts, 2, axis=0), counts.tally)
    for wrong in (family, ContextCounts(RUN, "break", None, counts.counts)):
        with pytest.raises(UsageError, match="contexts are compared by sequence, of one score threshold"):
            held_out_loss(wrong, [0])
    for fine, coarser in (("run:2", "none run:1 run:2"), ("last:3", "none run:1"), ("none", "none")):
        assert [*map(str, coarser_candidates(Contexts.parsed(fine)))] == coarser.split()


LENGTHS = {"a": 6, "b": 1, "c": 7}
FRAMES = [(name, number) for name, length in LENGTHS.items() for number in range(length)]


@given(
    st.lists(st.tuples(st.integers(0, 13), st.integers(0, 2), st.integers(0, 1)), max_size=30),
    st.sets(st.integers(1, 13), max_size=5), st.sampled_from(["break", "hold", "miss"]),
    st.sampled_from([Contexts("run", 2), Contexts("last", 3), Contexts()]),
)  # fmt: skip
def test_contexts_of_parts_are_those_of_the_whole(rows, cuts, gaps, contexts):
    rows = sorted({(frame, thing): right for frame, thing, right in rows}.items())
    order = list(LENGTHS)
    series = np.array([3 * order.index(FRAMES[frame][0]) + thing for (frame, thing), _ in rows], dtype=np.int64)
    number = np.array([FRAMES[frame][1] for (frame, _), _ in rows], dtype=np.int64)
    right = np.array([right for _, right in rows], dtype=np.int64)
    told, begun = [], Begun()
    for low, high in pairwise([0, *sorted(cuts), len(FRAMES)]):
        names = tuple(dict.fromkeys(name for name, _ in FRAMES[low:high]))
        own = [at for at, ((frame, _), _) in enumerate(rows) if low <= frame < high]
        numbers, sequence = zip(*((at, names.index(name)) for name, at in FRAMES[low:high]), strict=True)
        part = Part(begun, np.array(numbers), np.array(sequence), names, sequence[-1])
        frame = np.array([rows[at][0][0] - low for at in own], dtype=np.int64)

        def who(row, own=own):
            return ["thing", rows[own[row]][0][1]]

        told += part.along(contexts, series[own], frame, right[own], gaps, who).tolist()
        begun = part.after
        assert begun.sequence == FRAMES[high - 1][0]
        assert all(len(past) <= contexts.cap for past in begun.outcomes.values())
    assert told == contexts.along(series, number, right, gaps).tolist()


def test_what_goes_on_by_hand():
    """Frames 3 to 5 of a, and 0 of b; thing 0 in all of a, thing 1 in its first frames, thing 2 before only."""
    begun = Begun("a", {'["t", 2]': [[1, 0], [2, 1]], '["t", 0]': [[1, 1], [2, 1]]})
    rows = [(3, 0, 0), (3, 1, 1), (4, 0, 0), (4, 1, 0), (5, 0, 1)]
    frame, thing, right = (np.array(column) for column in zip(*rows, strict=True))
    for gaps, outcomes in (
        ("break", {0: [[4, 0], [5, 1]]}),
        ("hold", {0: [[4, 0], [5, 1]], 1: [[3, 1], [4, 0]], 2: [[1, 0], [2, 1]]}),
    ):
        part = Part(begun, np.arange(3, 6), np.zeros(3, dtype=np.int64), ("a",), 0)
        context = part.along(RUN, thing, frame - 3, right, gaps, lambda row: ["t", int(thing[row])])
        assert [RUN.names[at] for at in context] == ["right*2", "start", "wrong*1", "right*1", "wrong*2"]
        assert part.after == Begun("a", {f'["t", {key}]': past for key, past in outcomes.items()})
    other = Part(begun, np.array([4, 0]), np.array([0, 1]), ("a", "b"), 1)
    context = other.along(RUN, np.array([0, 5]), np.array([0, 1]), np.array([1, 0]), "hold", lambda row: ["t", row])
    assert [RUN.names[at] for at in context] == ["right*2", "start"]
    assert other.after == Begun("b", {'["t", 1]': [[0, 0]]})
    ended = Part(Begun("z", {'["t", 1]': [[8, 1]]}), np.array([4, 0]), np.array([0, 1]), ("a", "b"), 1)
    context = ended.along(RUN, np.array([0, 5]), np.array([0, 1]), np.array([1, 0]), "hold", lambda row: ["t", row])
    assert [RUN.names[at] for at in context] == ["start", "start"]  # z is none of these
    assert Part(begun, np.array([]), np.array([]), (), -1).after == Begun()
