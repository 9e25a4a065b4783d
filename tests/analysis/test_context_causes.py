"""Causes of losing with two objects that are remembered: against their definition, state by state in fractions."""

import itertools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from context_cases import files_of
from plain_causes import PlainSystem

from verifier.cli import main
from verifier.perception.confusion.contexts import Contexts
from verifier.questions.explain.explaining import explain_spec
from verifier.study.options import RunOptions

MODEL = """
initial = "t = 0 & seen = 0"
terminal = "t = 2"
[variables]
t = { range = [0, 2], next = "t + 1" }
seen = { range = [0, 1], next = "max(seen, note)" }
[inputs]
note = { range = [0, 1] }
[environments]
two = [{ class = "ped", distance_m = 5 }, { class = "obs", distance_m = 5 }]
[planners.both]
rules = [{ when = "sees(ped) & sees(obs)", set = { note = 1 } }, { when = "true", set = { note = 0 } }]
"""
PED, OBS, EMPTY = 0, 1, 2
LABELS = ("ped", "obs", "empty")
START, RIGHT, WRONG = 0, 1, 2
MATRICES = {
    # columns: ped, obs, empty; rows: reported as ped, obs, empty
    "start": [[6, 1, 0], [1, 7, 0], [3, 2, 1]],
    "right*1": [[8, 1, 0], [0, 8, 0], [2, 1, 1]],
    "wrong*1": [[2, 1, 0], [1, 4, 0], [7, 5, 1]],
}


def written():
    whole = np.sum(list(MATRICES.values()), axis=0).tolist()
    return {
        "schema": "verifier.confusion", "version": 2, "labelling": "class", "axes": ["predicted", "true"],
        "labels": list(LABELS), "false_positives": "counted",
        "bins": [{"distance_m": [0, 10], "counts": whole, "contexts": MATRICES}],
        "contexts": {"kind": "run", "cap": 1, "of": "outcome", "gaps": "break"},
    }  # fmt: skip


class Remembered(PlainSystem):
    """States are (frame, seen, context of ped, context of obs); a bin is the number of a context."""

    def __init__(self):
        self.states = list(itertools.product(range(3), (0, 1), range(3), range(3)))
        matrices = [MATRICES[name] for name in Contexts("run", 1).names]
        totals = [[sum(row[true] for row in matrix) for true in range(3)] for matrix in matrices]
        rates = [
            [[Fraction(row[true], total[true]) for true in range(3)] for row in matrix]
            for matrix, total in zip(matrices, totals, strict=True)
        ]
        ends = {k for k, state in enumerate(self.states) if state[0] == 2}
        lost = {k for k in ends if self.states[k][1] == 0}
        channel = SimpleNamespace(labels=LABELS, motion=None, bins=[0])
        super().__init__(channel, self.states, [0] * len(self.states), lost, rates, ends)

    def draws(self, state):
        _, _, ped, obs = self.states[state]
        return [(ped, PED), (obs, OBS)]

    def next(self, state, labels, w):
        t, seen, *_ = self.states[state]
        contexts = [RIGHT if label == true else WRONG for label, true in zip(labels, (PED, OBS), strict=True)]
        return self.states.index((t + 1, max(seen, int({PED, OBS} <= set(labels))), *contexts))


@pytest.fixture
def files(tmp_path):
    return files_of(tmp_path, MODEL, written(), "two", ["F seen = 1"])


def test_causes_are_those_of_the_definition(files):
    options = RunOptions(memory="run:1", confidence=None)
    (found,) = explain_spec(*files, options).explanations
    plain = Remembered()
    losing = plain.losing(plain.rates)[0]
    assert found.point.probability == pytest.approx(float(1 - losing), rel=1e-12, abs=0)
    by_set, _ = plain.causes_and_patterns()
    told = found.violation
    kinds = [(each.bin, LABELS.index(each.reported), LABELS.index(each.true)) for each in told.detection_errors]
    apart = {kind for kind, each in zip(kinds, told.detection_errors, strict=True) if each.told_apart}
    expected = {}
    for own, probability in by_set.items():
        key = own & apart, bool(own - apart)
        expected[key] = expected.get(key, 0) + probability
    for cause in told.causes:
        key = frozenset(kinds[k] for k in cause.detection_errors), cause.others
        assert cause.probability == pytest.approx(float(expected[key]), rel=1e-9), key
    assert told.rest == pytest.approx(float(losing) - sum(each.probability for each in told.causes), abs=1e-9)


def test_the_context_to_label_first_is_named(files, capsys):
    spec, matrices = files
    assert main(["explain", str(spec), "--cm", str(matrices), "--memory", "run:1", "--point-only"]) == 0
    told = capsys.readouterr().out
    assert "ped in [0, 10) m, after wrong*1 reported as empty" in told
    assert "ped in [0, 10) m, at start" in told
    found = explain_spec(spec, matrices, RunOptions(memory="run:1", confidence=None)).explanations[0]
    # Nobody is seen right before the first frame: these columns do not matter, and nobody need label them.
    names = Contexts("run", 1).names
    labelled = {(names[each.bin], each.true) for each in found.label_more}
    assert labelled == {(name, true) for name in names for true in ("ped", "obs")}
