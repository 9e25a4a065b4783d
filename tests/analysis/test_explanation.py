"""What explanations tell of corrections, runs and steps: by hand."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from small_objectives import channel_of, objective_of

from verifier.analysis.counterexamples.explanation import (
    Report,
    RunRecord,
    StepRecord,
    Thing,
    _best_corrections,
    _seen,
    explain,
)
from verifier.analysis.counterexamples.patterns import CorrectionRecord, DetectionError
from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.settings import ExplainSettings
from verifier.checking.two_engines import AbstractFormula
from verifier.language.expressions.syntax import Name
from verifier.language.ltl import parse_formula
from verifier.perception.confusion import rates as rates_of
from verifier.systems.skeleton import Skeleton


@pytest.mark.parametrize(
    ("corrected", "satisfying", "expected"),
    [
        # One, two and three kinds: the best of each size, as long as a larger set is better.
        ([[0.5, 0.7, 0.6], [0.7, 0.8, 0.6], [0.9]], False, [0.7, 0.8, 0.9]),
        ([[0.5, 0.7, 0.6], [0.7, 0.8, 0.6], [0.9]], True, [0.5]),
        ([[0.5, 0.7, 0.6], [0.4, 0.8, 0.6], [0.9]], True, [0.5, 0.4]),
        ([[0.7, 0.2, 0.1], [0.6, 0.5, 0.4], [0.8]], False, [0.7, 0.8]),
        # By more than a billionth of a thousandth.
        ([[0.5], [0.5 + 0.8e-12], [0.5 + 1.2e-12]], False, [0.5, 0.5 + 1.2e-12]),
        ([[0.5], [0.5 - 0.8e-12], [0.5 - 1.2e-12]], True, [0.5, 0.5 - 1.2e-12]),
        ([[0.0], [1e-12]], False, [0.0]),
        ([], False, []),
    ],
)
def test_the_best_correction_of_each_size_is_told_while_more_kinds_are_better(corrected, satisfying, expected):
    choices = [CorrectionRecord(tuple(range(size + 1)), p) for size, of_size in enumerate(corrected) for p in of_size]
    assert [best.corrected for best in _best_corrections(choices, satisfying)] == expected


@pytest.mark.parametrize("members", [1, 2, 3, 4])
def test_an_explanation_tells_the_members_of_a_pattern_and_what_is_covered(members, monkeypatch):
    # Three looks for a, seen with 3/4 in bin 0, with 1/2 in bin 1: lost at the first miss. 1/4 + 3/8 + 3/32 = 23/32.
    channel = channel_of([(), ("a",)], [[0], [1]], [[1], [1]])
    following = [[3, 1], [3, 2], [3, 4], [3, 3], [4, 4]]
    counts = np.array([[[1, 1], [0, 3]], [[1, 1], [0, 1]]])
    data = Measured(counts, rates_of(counts), np.zeros((2, 2), dtype=bool))
    for bad, rows in (({3}, [0, 0, 0, 0, 0]), ({3}, [0, 1, 0, 0, 0]), (set(), [0, 1, 0, 0, 0])):
        monkeypatch.setattr(Skeleton, "mask_of", lambda self, node, bad=bad: np.isin(np.arange(5), list(bad)))
        objective = objective_of(channel, following, rows, {"bad": bad}, "G !bad", ended=(3, 4))
        asked = AbstractFormula(parse_formula("G !bad"), {"bad": Name("bad")})
        told = explain(objective, asked, data, counts, 0, settings=ExplainSettings(members=members))
        if not bad:
            assert (told.violation, told.causes, told.corrections, told.patterns) == (0, (), (), ())
            assert np.isnan(told.covered)
        elif rows[1]:
            assert told.violation == pytest.approx(23 / 32, rel=1e-12, abs=0)
            assert told.covered == pytest.approx(1, rel=1e-12, abs=0)
            assert [kind.report for kind in told.kinds] == [DetectionError(at, 0, 1) for at in (0, 1)]
            assert [one.detection_errors for one in told.corrections] == [(1,), (0, 1)]
            assert [one.corrected for one in told.corrections] == pytest.approx([9 / 16, 1], rel=1e-12, abs=0)
        else:
            (one,) = told.patterns
            assert (len(one.members), one.complete) == (min(members, 3), members >= 3)
            assert [run.exact for run in one.members] == [Fraction(1, 4), Fraction(3, 16), Fraction(9, 64)][:members]
            assert [run.irrevocable_after for run in one.members] == [1, 2, 3][:members]
            assert [step.after["s"] for step in one.members[-1].steps] == [*[1, 2, 3][: len(one.members) - 1], 3]
            assert [step.chance for step in one.members[0].steps] == [0.0]
            assert one.members[0].initial == {"s": 0}


def test_a_run_is_as_exact_as_its_counted_steps():
    step = StepRecord((), (), True, "1/3", {}, 0.5)
    run = RunRecord(0.25, 2, 2, "whole", {}, (step, replace(step, probability="3/4"), replace(step, probability=0.1)))
    assert [replace(run, counted_steps=counted).exact for counted in (0, 1, 2, 3)] == [1, Fraction(1, 3), 0.25, None]


def test_a_step_tells_what_was_there_what_was_reported_and_whether_that_matters():
    # a (missed 1/4) in bin 0 and b (missed 1/3) in bin 1; it is lost unless both are seen. Then it is over, after one
    # more step with a and an empty place.
    channel = channel_of([(), ("a",), ("b",)], [[0, 1, 0], [0, 1, 0]], [[1, 2, -1], [1, 0, -1]])
    following = [[1, 1, 1, 2], [3] * 4, [2] * 4, [3] * 4]
    objective = objective_of(channel, following, [0, 1, 0, 0], {"bad": {1}}, "G !bad", ended=(2, 3))
    rates = np.zeros((2, 3, 3))
    rates[0, :, 1], rates[1, :, 2] = (1 / 4, 3 / 4, 0), (1 / 3, 0, 2 / 3)
    rates[0, :, 0] = rates[1, :, 0] = (1, 0, 0)
    skeleton, both = objective.skeleton, (Thing("a", 0), Thing("b", 1))
    told = {}
    for k in range(len(skeleton.indices)):
        state = int(np.searchsorted(skeleton.indptr, k, side="right")) - 1
        told[state, int(skeleton.indices[k])] = _seen(objective, channel.weights(rates), int(skeleton.entry[k]))
    chances = {(): 1 / 12, ("a",): 1 / 4, ("b",): 1 / 6, ("a", "b"): 1 / 2}
    for following, classes, matters in ((1, ((), ("a",), ("b",)), True), (2, (("a", "b"),), True)):
        there, reported, how = told[0, following]
        assert (there, how, tuple(report.classes for report in reported)) == (both, matters, classes)
        assert [report.probability for report in reported] == pytest.approx([chances[one] for one in classes])
    assert told[1, 3] == ((Thing("a", 0), Thing("empty", 1)), (Report((), 0.25), Report(("a",), 0.75)), False)
    assert told[2, 2] == told[3, 3] == ((), (), False)
