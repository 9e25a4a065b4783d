"""The range over all winning strategies: by both engines against every strategy tried, with exact fractions."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest
from exact_oracle import reach_probabilities

from verifier.analysis.robust.optimum import Optimum
from verifier.chains.chain import filled_counts, markov_chain
from verifier.language.specs import read_spec
from verifier.perception.confusion import read_confusion
from verifier.pipeline import verify_spec
from verifier.study.options import RunOptions, Selection
from verifier.systems.reader import read_model
from verifier.systems.scene import SkeletonOptions
from verifier.systems.skeleton import build_skeleton

# The shipped study: vmax = 3, a pedestrian, matrices by class and distance.
CELLS, STOP, CROSSWALK, VMAX = 65, 56, 57, 3


def car_moves(x, v):
    """The next states that speeds v - 1, v, v + 1 lead to."""
    return {(min(x + v, CELLS), speed) for speed in range(max(v - 1, 0), min(v + 1, VMAX) + 1)}


@cache
def can_keep(ped, x, v):
    """Whether the car can keep every promise if what is reported (a pedestrian or not) is true.

    With a pedestrian it must be before the line or stopped at it, without one it must not stop at the line, and it
    must never stand before the line. It moves on in every step, or has stopped, so the recursion ends.
    """
    if (x, v) == (STOP, 0):
        return ped
    if x < STOP and v == 0:
        return False
    if ped and x >= STOP:
        return False
    return x == CELLS or v == 0 or any(can_keep(ped, *following) for following in car_moves(x, v))


@cache
def stopping(best, reported, x, v):
    """Least (or greatest) probability that the car meets the three requirements where a pedestrian stands.

    `reported` gives, for each ten metres, the probability of a pedestrian's being reported. The strategy is free
    for each observation on its own, so the extremes are taken for each on its own.
    """
    if (x, v) == (STOP, 0):
        return Fraction(1)
    if x >= STOP or v == 0:  # it can no longer stop at the line, or stands before it: a requirement is violated
        return Fraction(0)
    value = Fraction(0)
    seen = reported[(CROSSWALK - x) // 10]
    for ped, weight in ((True, seen), (False, 1 - seen)):
        kept = {following for following in car_moves(x, v) if can_keep(ped, *following)}
        moves = kept if can_keep(ped, x, v) else {(min(x + v, CELLS), v)}
        value += weight * best(stopping(best, reported, *following) for following in moves)
    return value


@pytest.fixture(scope="module")
def study(root):
    """(system, matrices, formula of all three requirements, options) of the shipped study."""
    spec = read_spec(root / "specs/car_pedestrian.ltl")
    system = read_model(root / "models/car_pedestrian.toml").instantiate({"vmax": VMAX})
    matrices = read_confusion(root / "examples/nuscenes_yolov3_class.json").matrices
    formula = next(each.formula for each in spec.requirements if each.name == "all_three")
    return system, matrices, formula, SkeletonOptions(formula=formula)


def ranges_of(root):
    """The remarks of the shipped study, and per requirement (least, value, greatest) for the starts at 1, 2 and 3."""
    selection = Selection(planners=("correct",), environments=("ped",), settings={"vmax": VMAX})
    options = RunOptions(confidence=None, strategies=True, selection=selection)
    result = verify_spec(root / "specs/car_pedestrian.ltl", root / "examples/nuscenes_yolov3_class.json", options)
    return result.remarks, {
        requirement.name: [
            (ends.smallest, point.probability, ends.largest)
            for ends, point in zip(requirement.strategies, requirement.points, strict=True)
        ]
        for requirement in result.requirements
    }


def test_the_range_of_the_shipped_study(root, study):
    remarks, ranges = ranges_of(root)
    assert not any("winning strategies" in remark for remark in remarks)
    columns = study[1].counts[:, :, 0].tolist()  # labels ped, obs, empty; column of true pedestrians
    reported = tuple(Fraction(column[0], sum(column)) for column in columns)
    assert reported[0] == Fraction(31, 158)
    for (least, _, greatest), start in zip(ranges["all_three"], [(1, v) for v in (1, 2, 3)], strict=True):
        exact = [float(stopping(best, reported, *start)) for best in (min, max)]
        assert [least, greatest] == pytest.approx(exact, rel=1e-9)
        # Every success ends with a stop at the line, which can only be made from the cell before it at walking pace
        # (a car that moves two cells cannot stand in the next step), and a winning strategy stops there only if a
        # pedestrian is reported in that very state, 2 m away: 31 of 158. A car that slows down to walking pace
        # whatever is reported, which winning strategies may do, gets there for certain.
        assert exact[1] == float(Fraction(31, 158))
    assert min(least for least, _, _ in ranges["all_three"]) == pytest.approx(0.000290752, abs=1e-9)


def test_a_range_of_one_engine_is_remarked(root, monkeypatch):
    bracket = Optimum.bracket

    def wide(self, rates, value_error):
        proven = bracket(self, rates, value_error)
        return replace(proven, lower=proven.lower * 0) if self.greatest else proven

    remarks, ranges = ranges_of(root)
    monkeypatch.setattr(Optimum, "bracket", wide)
    alone, same = ranges_of(root)
    assert [remark for remark in alone if remark not in remarks] == [
        f"{name}: the range over all winning strategies is Storm's alone, not confirmed" for name in ranges
    ]
    for name, values in same.items():
        assert values == [pytest.approx(numbers, rel=1e-12) for numbers in ranges[name]]


def test_the_controller_lies_in_the_range(study):
    system, matrices, _, options = study
    skeleton = build_skeleton(system, system.planners["correct"], "ped", matrices, options)
    chain = markov_chain(skeleton, filled_counts(skeleton, matrices, "error"), {}, exact=True)
    reported = tuple(Fraction(column[0], sum(column)) for column in matrices.counts[:, :, 0].tolist())
    rows = [
        {int(chain.indices[k]): chain.fractions[k] for k in range(chain.indptr[s], chain.indptr[s + 1])}
        for s in range(chain.state_count)
    ]
    states = list(zip(chain.valuations["x"].tolist(), chain.valuations["v"].tolist(), strict=True))
    failed = {s for s, (x, v) in enumerate(states) if (x < STOP and v == 0) or (x >= STOP and (x, v) != (STOP, 0))}
    halted = [{s: Fraction(1)} if s in failed else row for s, row in enumerate(rows)]
    values = reach_probabilities(halted, {states.index((STOP, 0))})
    for start in chain.initial.tolist():
        least, greatest = (stopping(best, reported, *states[start]) for best in (min, max))
        assert least <= values[start] <= greatest
