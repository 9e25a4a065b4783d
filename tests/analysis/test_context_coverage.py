"""How often bounds of a detector with memory hold the true P: drives drawn from a known context model.

`pytest tests/analysis/test_context_coverage.py --slow` draws a thousand data sets, without it a few.
"""

import itertools
import json

import numpy as np
import pytest
from context_cases import counted_drives, files_of, latch
from scipy.stats import binomtest

from verifier.analysis.confidence import bounds_of_chain
from verifier.analysis.robust.solutions import Effort
from verifier.analysis.settings import ConfidenceSettings
from verifier.perception.confusion.contexts import Contexts
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions

RUNS, STEPS, DRIVES, TRACKS, FRAMES = Contexts("run", 2), 5, 12, 40, 20
MISS = {"start": 0.4, "right*1": 0.3, "right*2": 0.05, "wrong*1": 0.6, "wrong*2": 0.9}
LOST, NEVER = "F (seen = 1 & X seen = 0)", "G seen = 0"
"""Somebody is seen and then not; nobody is ever seen."""
MODEL = latch(STEPS).replace("max(seen, note)", "note")
BOUNDS_ONLY = Effort(attained=False)


def after(context, right):
    """The definition, by names: as many outcomes in a row as were alike, two at most."""
    kind = "right" if right else "wrong"
    return f"{kind}*{2 if context.startswith(kind) else 1}"


def true_values():
    """P of both formulas, by enumeration of all reports."""
    found = np.zeros(2)
    for reports in itertools.product((False, True), repeat=STEPS):
        context, chance = "start", 1.0
        for right in reports:
            chance *= 1 - MISS[context] if right else MISS[context]
            context = after(context, right)
        lost = any(first and not then for first, then in itertools.pairwise(reports))
        found += chance * np.array([lost, not any(reports)])
    return found


def drawn(rng):
    """Of each drive {context: [misses, hits]}."""
    counts = {name: np.zeros((DRIVES, 2), dtype=np.int64) for name in MISS}
    for drive in range(DRIVES):
        for _ in range(TRACKS):
            context = "start"
            for chance in rng.random(FRAMES).tolist():
                right = chance >= MISS[context]
                counts[context][drive, int(right)] += 1
                context = after(context, right)
    return [{name: own[drive].tolist() for name, own in counts.items()} for drive in range(DRIVES)]


def bounds_of(folder, rows, memory, settings):
    """(formulas, 2) bounds."""
    asked = RunOptions(memory=memory, confidence=ConfidenceSettings(**settings))
    (folder / "c.json").write_text(json.dumps(counted_drives(rows, RUNS)))
    study = Study.of(read_inputs(folder / "s.ltl", folder / "c.json", asked), asked)
    found = bounds_of_chain(study.cases[0].objectives, study.data, asked.confidence, BOUNDS_ONLY)
    return [(float(each.lower[0]), float(each.upper[0])) for each in found]


def held_and_width(folder, data_sets, memory, **settings):
    """Of how many data sets the bounds hold both values at once, and the mean width of each."""
    files_of(folder, MODEL, counted_drives(drawn(np.random.default_rng(1)), RUNS), "ped", [LOST, NEVER])
    rng, truth, held, width = np.random.default_rng(17), true_values(), 0, np.zeros(2)
    for _ in range(data_sets):
        ends = np.array(bounds_of(folder, drawn(rng), memory, settings))
        held += bool(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).all())
        width += np.diff(ends, axis=1)[:, 0] / data_sets
    return held, width


@pytest.mark.parametrize("data_sets", [12, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("settings", "most"),
    [({}, 1.0), ({"assume_independent_items": True}, 0.3), ({"bounds": "anytime"}, 0.4)],
    ids=["drives", "items", "anytime"],
)
def test_bounds_by_context_hold_the_true_probability(settings, most, data_sets, tmp_path):
    held, width = held_and_width(tmp_path, data_sets, "run:2", **settings)
    print(f"\n{settings or 'drives'}: {held} of {data_sets} hold both values, mean widths {width}")
    assert binomtest(held, data_sets, 0.95, alternative="less").pvalue > 1e-3
    assert (width < most).all()


def test_bounds_without_memory_do_not(tmp_path):
    """The same data, counted without contexts: what holds above is not held by mere width."""
    assert held_and_width(tmp_path, 5, "none", assume_independent_items=True)[0] == 0
