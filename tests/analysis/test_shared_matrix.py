"""Branch and bound over boxes of matrices: cuts by hand, and nature's common choices by their definition."""

from types import SimpleNamespace

import numpy as np
import pytest
from random_steps import OfOneRow, random_step

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.robust import shared_matrix
from verifier.analysis.robust.inner_bounds import Attained
from verifier.analysis.robust.region import Region, Told
from verifier.analysis.robust.shared_matrix import common_choices, covered
from verifier.analysis.robust.step import UncertainStep, greatest_masses, inner_masses

HALF, QUARTER = UNIT // 2, UNIT // 4


def at(rate, below, above):
    return {"bin": 0, "group": 0, "true": 1, "at": rate, "below": below, "above": above}


@pytest.mark.parametrize(
    ("ends", "effort", "gap", "tree", "boxes"),
    [
        ((0, UNIT, 0, UNIT), 0, 0.0, 0, [(0, 4)]),
        ((0, UNIT, 0, UNIT), 1, 0.0, at(HALF, 0, 1), [(0, 2), (2, 4)]),
        ((0, UNIT, 0, UNIT), 2, 0.0, at(HALF, 0, 1), [(0, 2), (2, 4)]),
        # Of two that are as bad the first is cut, then the other.
        ((0, UNIT, 0, UNIT), 3, 0.0, at(HALF, at(QUARTER, 1, 2), 0), [(2, 4), (0, 1), (1, 2)]),
        ((0, UNIT, 0, UNIT), 9, 0.25, at(HALF, 0, 1), [(0, 2), (2, 4)]),
        (
            (0, UNIT, 0, UNIT), 9, 0.125,
            at(HALF, at(QUARTER, 0, 1), at(QUARTER * 3, 2, 3)),
            [(0, 1), (1, 2), (2, 3), (3, 4)],
        ),
        ((0, UNIT, 0, UNIT), 9, 0.75, 0, [(0, 4)]),
        # Parts without matrices: the other report has at most, or at least, so much.
        ((0, UNIT, 0, QUARTER), 1, 0.0, at(HALF, None, 0), [(2, 4)]),
        ((0, UNIT, QUARTER * 3, UNIT), 1, 0.0, at(HALF, 0, None), [(0, 2)]),
        ((0, UNIT, 0, HALF), 1, 0.0, at(HALF, 0, 1), [(0, 2), (2, 4)]),
        ((0, UNIT, HALF, UNIT), 1, 0.0, at(HALF, 0, 1), [(0, 2), (2, 4)]),
        # Where nothing is left to cut.
        ((HALF, HALF + 1, 0, UNIT), 9, 0.0, 0, [(2, 2)]),
        ((HALF, HALF + 2, 0, UNIT), 1, 0.0, at(HALF + 1, 0, 1), [(2, 2), (2, 2)]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_the_box_with_the_worst_bound_is_cut(monkeypatch, side, ends, effort, gap, tree, boxes):
    """One state wants report {} with rate x, another the other one: the bound of a box is max x times max (1 - x),
    of which a single matrix attains a quarter."""
    low, high, least, most = ends
    lower, upper = np.zeros((1, 2, 2), dtype=np.int64), np.full((1, 2, 2), UNIT)
    lower[0, :, 1], upper[0, :, 1] = (low, least), (high, most)
    region = Region((frozenset(), frozenset("a")), np.arange(2), lower, upper, np.ones((1, 2), dtype=bool))
    asked, tried, best = [], [], []

    def bounded(region):
        value = np.array([9.0, 9.0, region.upper[0, 0, 1] / UNIT * (1 - region.lower[0, 0, 1] / UNIT)])
        reached = SimpleNamespace(value=value, steps=np.array([[len(asked)], [-1]]))
        return SimpleNamespace(side=side, region=region, reached=reached, objective="own")

    def bound_sides(*given):
        asked.append((given[0], given[2], [each.tolist() for each in given[3]]))
        return [bounded(given[1]), None]

    def choices(bound, steps):
        tried.append(steps.tolist())
        return SimpleNamespace(mean=np.full(2, len(tried)), best=np.zeros(2), place=(0, 0, 1))

    def best_of(objective, whole, known, masses, sign):
        assert (objective, whole) == (system, region)
        assert masses.tolist() == [[len(tried)] * 2, [0, 0]]
        best.append(sign)
        return known

    for name, own in (("bound_sides", bound_sides), ("common_choices", choices), ("best_of", best_of)):
        monkeypatch.setattr(shared_matrix, name, own)
    system = SimpleNamespace(product=SimpleNamespace(start=np.array([1, 2])))
    known = Attained(np.array([0.5, 0.25 if side == "upper" else 0.75]), np.zeros(2), np.zeros(2))
    result = covered(system, bounded(region), np.array([-7]), 1, known, effort, gap)
    assert result.tree == tree
    rates = [(box.region.lower[0, 0, 1] // QUARTER, box.region.upper[0, 0, 1] // QUARTER) for box in result.boxes]
    assert rates == boxes
    assert [box.region.evidence for box in result.boxes] == [None] * len(boxes)
    assert asked == [("own", (side,), [[2]])] * len(asked)
    assert set(best) <= {1.0 if side == "lower" else -1.0}
    assert tried[:1] in ([[-7]], [])
    assert all(1 <= steps[0] <= len(asked) for steps in tried[1:])
    assert result.attained is known


@pytest.mark.parametrize("seed", range(12))
def test_common_choices_are_those_of_the_definition(seed):
    rng = np.random.default_rng([seed, 5])
    step = random_step(rng)
    rows, groups = len(step.owner), step.lower.shape[1]
    value, of = rng.random(rows) if seed % 3 else np.full(rows, 0.5), rng.integers(0, 3, rows)
    steps = np.where(rng.random(rows) < 0.3, 0.0, rng.random(rows) * (4 if seed % 2 else 0.1))
    region = SimpleNamespace(lower=np.zeros((2, groups, 2)))  # column k of the step is of bin k // 2 and label k % 2
    reached, nodes = SimpleNamespace(value=value), SimpleNamespace(of=of)
    box = SimpleNamespace(step=step, region=region, reached=reached, nodes=nodes)
    away = of[step.following] != of[:, None]
    changes = value[step.following] - value[:, None] + 2.0**-40 * away * value[:, None]
    _, masses = step.greatest(changes)
    made = {column: [] for column in range(len(step.lower))}  # how often, with which rates, and what they are worth
    for row in np.flatnonzero(steps > 0).tolist():
        one = OfOneRow(step, row)

        def worth(k, seen, one=one, row=row):
            if k == step.columns.shape[1]:
                outcomes = one.outcomes
                return float(step.motion[row] @ changes[row, seen * outcomes : (seen + 1) * outcomes])
            if one.draw(k) is None:
                return worth(k + 1, seen)
            return float(masses[k, seen][row] @ behind(k, seen)) / UNIT

        def behind(k, seen, one=one):
            *_, ways = one.draw(k)
            total = sum(often for often, _ in ways)
            return [
                sum(often * worth(k + 1, step.told.then[seen, each[group]]) for often, each in ways) / total
                for group in range(groups)
            ]

        def go(k, seen, times, one=one, row=row):
            if k == step.columns.shape[1]:
                return
            if one.draw(k) is None:
                go(k + 1, seen, times)
                return
            *_, ways = one.draw(k)
            share = masses[k, seen][row] / UNIT
            made[int(step.columns[row, k])].append((times, share, np.array(behind(k, seen))))
            for group in range(groups):
                for often, each in ways:
                    part = times * share[group] * often / sum(often for often, _ in ways)
                    go(k + 1, int(step.told.then[seen, each[group]]), part)

        go(0, 0, steps[row])
    mean = inner_masses(step.lower, step.upper) / UNIT
    best = inner_masses(step.lower, step.upper)
    loss, spread = np.full(len(made), -1.0), np.zeros((len(made), groups))
    for column, choices in made.items():
        weight = sum(times for times, *_ in choices)
        if weight > 0:
            mean[column] = sum(times * share for times, share, _ in choices) / weight
            stakes = sum(times * stake for times, _, stake in choices)
            best[column] = greatest_masses(stakes[None], step.lower[[column]], step.upper[[column]])[0]
            loss[column] = sum(times * share @ stake for times, share, stake in choices) - mean[column] @ stakes
            spread[column] = sum(times * (share - mean[column]) ** 2 for times, share, _ in choices) / weight
    found = common_choices(box, steps)
    np.testing.assert_allclose(found.mean, mean.reshape(2, 2, groups).swapaxes(1, 2) * UNIT, atol=1e-3)
    index, group, true = found.place
    column = index * 2 + true
    assert loss[column] >= loss.max() - 1e-12
    wide = spread[column] + 1e-9 * (step.upper - step.lower)[column] / UNIT
    assert wide[group] == pytest.approx(wide.max(), abs=1e-15)
    for own, choices in made.items():
        if not choices or np.diff(np.sort(sum(times * stake for times, _, stake in choices))).min() > 1e-12:
            np.testing.assert_allclose(found.best[own // 2, :, own % 2], best[own], atol=1e-3)


@pytest.mark.parametrize("used", [0, 1])
def test_where_choices_never_differ_the_widest_interval_of_a_column_that_is_used_is_cut(used):
    told = Told(
        np.arange(3), np.zeros((1, 1), int), np.array([[[0, 1, 2]]]), np.ones((1, 1), int), np.array([[0, 1, 2]] * 3)
    )
    lower, upper = (np.array([ends, ends]) * (UNIT // 100) for ends in ([40, 10, 15], [50, 35, 50]))
    row = np.full((1, 1), used, dtype=np.int64)
    step = UncertainStep(
        np.zeros((1, 3), int), np.ones((1, 1)), row, lower, upper, told, told.kind, ((0,),), np.arange(1)
    )
    region = SimpleNamespace(lower=np.zeros((2, 3, 1)))
    reached, nodes = SimpleNamespace(value=np.ones(1)), SimpleNamespace(of=np.zeros(1, int))
    box = SimpleNamespace(step=step, region=region, reached=reached, nodes=nodes)
    assert common_choices(box, np.ones(1)).place == (used, 2, 0)
