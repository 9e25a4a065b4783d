"""Vertices of regions as choices, in fractions: against an enumeration of all that may be chosen for each report."""

import itertools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from deciding_objectives import Deciding
from interval_models import random_region, region_of
from interval_models import vertices as corners
from small_objectives import channel_of, objective_of

from verifier.analysis.robust import vertices as module
from verifier.analysis.robust.vertices import vertex_process, vertices
from verifier.base.errors import LimitError
from verifier.systems.strategies import StrategySkeleton

UNIT = 10**9
LABELS = ((), ("a",), ("b",))
HALF, INNER = (Fraction(1, 2),) * 2, (Fraction(1, 4), Fraction(3, 4))


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        ([5], [10], [(10,)]),
        ([2, 5], [6, 9], [(5, 5), (2, 8)]),
        ([3, 7], [3, 7], [(3, 7)]),
        ([3, 3], [4, 4], []),
        ([0, 0, 0], [10, 10, 10], [(10, 0, 0), (0, 10, 0), (0, 0, 10)]),
        ([2, 0, 0], [5, 3, 10], [(2, 0, 8), (2, 3, 5), (5, 0, 5), (5, 3, 2)]),
        ([2, 3, 1], [7, 4, 4], [(6, 3, 1), (3, 3, 4), (5, 4, 1), (2, 4, 4)]),
    ],
)
def test_all_rates_but_one_are_at_an_end(lower, upper, expected):
    tenths = [tuple(share * UNIT // 10 for share in point) for point in expected]
    found = vertices(*([end * UNIT // 10 for end in ends] for ends in (lower, upper)))
    assert sorted(found) == sorted(tenths)
    assert len(found) == len(expected)


def test_vertices_of_very_many_labels_are_refused():
    assert len(vertices([0] * 11, [UNIT] * 11)) == 11
    with pytest.raises(LimitError, match="a column of 12 labels has too many vertices"):
        vertices([0] * 12, [UNIT] * 12)


def expected_of(world, region, row, following):
    """What nature can make of a step: the sets of distributions over the states behind all observations."""
    channel, chances = world.channel, world.channel.chances(np.dtype(object))[row]
    targets = sorted(set(following.ravel().tolist()))

    def behind(draw, seen):
        if draw == channel.columns.shape[1]:
            shares = [Fraction(0)] * len(targets)
            for target, chance in zip(following[seen].tolist(), chances.tolist(), strict=True):
                shares[targets.index(target)] += Fraction(chance)
            return {tuple(shares)}
        at_bin, true = channel.bins[row, draw], channel.columns[row, draw]
        if true < 0:
            return behind(draw + 1, seen)
        observed = channel.observations[seen]
        after = [channel.observations.index(observed | label) for label in channel.labels]
        made = set()
        for point in corners(region.lower[at_bin, :, true].tolist(), region.upper[at_bin, :, true].tolist()):
            # What is known decides later choices, not which label was reported.
            known = sorted({now for now, mass in zip(after, point, strict=True) if mass})
            for picked in itertools.product(*(behind(draw + 1, now) for now in known)):
                parts = [(Fraction(mass, UNIT), picked[known.index(now)])
                         for now, mass in zip(after, point, strict=True) if mass]  # fmt: skip
                made.add(tuple(sum(share * part[k] for share, part in parts) for k in range(len(targets))))
        return made

    made = sorted(behind(0, 0))
    return targets, {made[0], made[-1]} if len(targets) <= 2 else set(made)


def choices_of(process, state):
    """The distributions of a state's choices."""
    low, high = process.choice_starts[state : state + 2]
    for choice in range(low, high):
        where = slice(process.indptr[choice], process.indptr[choice + 1])
        yield dict(zip(process.indices[where].tolist(), process.fractions[where], strict=True))


def by_state(row):
    return sorted(row.items())


@pytest.mark.parametrize("draws", [1, 2])
@pytest.mark.parametrize("moved", [False, True])
def test_choices_are_all_vertices(draws, moved):
    several = 0
    for seed in range(4):
        rng = np.random.default_rng([seed, draws])
        world = Deciding(rng, states=5, choices=2, draws=draws)
        world.channel.columns[0, 0] = -1
        if moved:  # the world draws one of two outcomes
            chance = [Fraction(int(k), 8) for k in rng.integers(0, 8, len(world.channel.bins))]
            world.channel = world.channel.moved_by(np.array([[c, 1 - c] for c in chance], dtype=object))
            other = rng.integers(0, 5, world.following.shape)
            other[world.over] = world.following[world.over]
            world.following = np.stack([world.following, other], axis=2).reshape(len(world.owner), -1)
        choices = world.choices
        objective = SimpleNamespace(skeleton=choices.choices)
        region = random_region(rng, objective, 2, 3)
        process = vertex_process(choices, region, {"p": world.labels["p"]}, exact=True, remark="as told")
        assert (process.remark, [*process.labels]) == ("as told", ["p"])
        assert process.initial.tolist() == [0, 1]
        assert process.probabilities.tolist() == [float(share) for share in process.fractions]
        for state in range(world.states):
            expected = []
            for way in np.flatnonzero(world.owner == state).tolist():
                following = world.following[way].reshape(len(world.channel.observations), -1)
                if len(set(following.ravel().tolist())) == 1:
                    expected.append({int(following[0, 0]): Fraction(1)})
                    continue
                targets, made = expected_of(world, region, world.row[way], following)
                expected += [{t: s for t, s in zip(targets, shares, strict=True) if s} for shares in made]
                several += len(made) > 2
            found = [*choices_of(process, state)]
            assert sorted(map(by_state, found)) == sorted(map(by_state, expected))
    assert several >= 1


def two_draws(first, following):
    """The choices of a state of two draws that report a or b, from columns with these ends of the rate of a.

    Args:
        following: the states that a and b alone lead to, and a with b.
    """
    channel = channel_of(LABELS, [[0, 1, 0]], [[0, 1, -1]])
    world = objective_of(
        channel, [[1, *following], *([k] * 4 for k in (1, 2, 3))], [0] * 4, {}, "F true", ended=(1, 2, 3)
    )
    region = region_of(
        world, {(k, k): [(0, 0), ends, [1 - end for end in ends[::-1]]] for k, ends in enumerate((first, INNER))}
    )
    skeleton = StrategySkeleton(np.arange(5), world.skeleton)
    return choices_of(vertex_process(skeleton, region, {}, exact=True, remark=""), 0)


@pytest.mark.parametrize(
    ("first", "following", "expected"),
    [
        # Of 16ths: each report is a with 1/4 or 3/4, the second as the first was.
        (INNER, [1, 2, 3], [(1, 9), (1, 3), (3, 9), (3, 3), (3, 1), (9, 3), (9, 1)]),
        # The first is a or b with 1/2; which of the two is reported alone does not matter.
        (HALF, [1, 1, 2], [(4,), (12,)]),
    ],
)
@pytest.mark.parametrize("less", [0, 1])
def test_choices_of_a_step_are_counted(first, following, expected, less, monkeypatch):
    """As many as there are in the end, or as may be combined behind the first report."""
    most = max(len(expected), 4) - less
    monkeypatch.setattr(module, "MOST_CHOICES", most)
    if less:
        with pytest.raises(LimitError, match=f"more than {most} choices: the vertices of 2 reports in one step"):
            two_draws(first, following)
        return
    rows = ([*shares, 16 - sum(shares)] for shares in expected)
    told = [{k: Fraction(share, 16) for k, share in enumerate(row, 1)} for row in rows]
    assert sorted(two_draws(first, following), key=str) == sorted(told, key=str)


def test_the_region_is_one_of_the_same_groups():
    wide, narrow = (
        objective_of(channel_of(LABELS[:count], [[0]], [[1]]), [[0] * count], [0], {}, "F true") for count in (3, 2)
    )
    region = region_of(narrow, {(0, 1): [(0, 1)] * 2})
    with pytest.raises(ValueError, match="the region's groups are not those of the skeleton"):
        vertex_process(StrategySkeleton(np.arange(2), wide.skeleton), region, {}, exact=True, remark="")
