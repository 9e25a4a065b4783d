"""Detectors with memory whose reported distances err: against every series of reports, in fractions."""

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest
from context_cases import drawn_document, files_of
from plain_memory import context_of

from verifier.analysis.settings import ConfidenceSettings
from verifier.checking.settings import EngineSettings
from verifier.cli import main
from verifier.perception.confusion.contexts import Contexts
from verifier.pipeline import verify_spec
from verifier.study.options import RunOptions

EXACT = RunOptions(confidence=None, engines=EngineSettings(exact=True))
LABELS = ("ped", "obs", "empty")
REPORTED = [[6, 1, 0], [3, 8, 2], [0, 1, 5]]
"""Reported by true distance bin."""


def model_of(frames, objects):
    """A car that keeps in h, step by step, what it sees within 10 m: 2 for a pedestrian, 1 for an obstacle."""
    return f"""
step_s = {frames}
frame_s = 1
initial = "t = 0 & h = 0"
terminal = "t = 3"
[variables]
t = {{ range = [0, 3], next = "t + 1" }}
h = {{ range = [0, 63], next = "4 * h + note" }}
[inputs]
note = {{ range = [0, 3] }}
[planners.driver]
reading = "any"
rules = [
    {{ when = "sees(ped, within = 10) & sees(obs, within = 10)", set = {{ note = 3 }} }},
    {{ when = "sees(ped, within = 10)", set = {{ note = 2 }} }},
    {{ when = "sees(obs, within = 10)", set = {{ note = 1 }} }},
    {{ when = "true", set = {{ note = 0 }} }},
]
[environments]
here = [{objects}]
"""


def drawn(contexts, seed):
    """A document without zeros, and its columns, by names of labels."""
    labels = [frozenset({name}) - {"empty"} for name in LABELS]
    located = {"axes": ["reported", "true"], "counts": REPORTED}
    written, columns = drawn_document(labels, contexts, "class", 3, seed, localisation=located)
    name = dict(zip(labels, LABELS, strict=True))
    return written, {
        (at, name[true], context): {name[said]: rate for said, rate in column.items()}
        for (at, true, context), column in columns.items()
    }


def expected(steps, columns, contexts, frames):
    """h at the end -> probability, by the definition: a label by what went before, then a bin by the true one."""
    found = {(0, ()): Fraction(1)}
    for draws in steps:
        step = {(h, held, frozenset()): weight for (h, held), weight in found.items()}
        for _ in range(frames):
            after = {}
            for (h, held, seen), weight in step.items():
                past = dict(held)
                ways = [
                    [
                        (label, reported, share * Fraction(REPORTED[reported][at], sum(row[at] for row in REPORTED)))
                        for label, share in columns[
                            at, true, context_of(past.get(true, ()), contexts.kind, contexts.cap)
                        ].items()
                        for reported in range(3)
                    ]
                    for true, at in draws
                ]
                for told in itertools.product(*ways):
                    chance, near, kept = weight, set(seen), []
                    for (true, _), (label, reported, share) in zip(draws, told, strict=True):
                        chance *= share
                        near |= {label} if reported == 0 and label != "empty" else set()
                        # All that a context can depend on.
                        kept.append((true, (*past.get(true, ()), label == true)[-contexts.cap - 1 :]))
                    key = (h, tuple(kept), frozenset(near))
                    after[key] = after.get(key, 0) + chance
            step = after
        found = {}
        for (h, held, seen), weight in step.items():
            key = 4 * h + 2 * ("ped" in seen) + ("obs" in seen), held
            found[key] = found.get(key, 0) + weight
    total = {}
    for (h, _), weight in found.items():
        if weight:
            total[h] = total.get(h, 0) + weight
    return total


PED = '{ class = "ped", distance_m = "25 - 10 * t" }'
BOTH = PED + ', { class = "obs", distance_m = 15 }'


@pytest.mark.parametrize(
    ("frames", "objects", "contexts"), [(1, PED, "run:2"), (1, BOTH, "run:1"), (2, PED, "last:2"), (1, PED, "run:3")]
)
def test_labels_are_remembered_and_distances_are_not(frames, objects, contexts, tmp_path):
    contexts = Contexts.parsed(contexts)
    written, columns = drawn(contexts, 8)
    steps = [[("ped", 2 - t), *([("obs", 1)] if objects is BOTH else [])] for t in range(3)]
    known = expected(steps, columns, contexts, frames)
    assert sum(known.values()) == 1
    asked = sorted(known)[::7]  # some of the 64
    files = files_of(tmp_path, model_of(frames, objects), written, "here", [f"F (t = 3 & h = {h})" for h in asked])
    result = verify_spec(*files, replace(EXACT, memory=str(contexts)))
    for h, requirement in zip(asked, result.requirements, strict=True):
        (point,) = requirement.points
        assert point.exact == known[h]
        assert abs(point.second_engine - float(known[h])) <= 1e-9
    plain = verify_spec(*files, replace(EXACT, memory="none"))
    assert [each.points[0].exact for each in plain.requirements] != [known[h] for h in asked]


def test_bounds_are_proven_in_a_bundle(tmp_path, capsys):
    written, columns = drawn(Contexts("run", 1), 3)
    files = files_of(tmp_path, model_of(1, PED), written, "here", ["F (h % 4 >= 2)"])
    known = expected([[("ped", 2 - t)] for t in range(3)], columns, Contexts("run", 1), 1)
    value = float(sum(weight for h, weight in known.items() if any(h // 4**k % 4 >= 2 for k in range(3))))
    options = RunOptions(memory="run:1", confidence=ConfidenceSettings(draws=200))
    (point,) = verify_spec(*files, options).requirements[0].points
    bounds = point.uncertainty.confidence_bounds
    assert point.probability == pytest.approx(value, abs=1e-12)
    assert 0 < bounds.lower < value < bounds.upper < 1
    bundle = tmp_path / "b.zip"
    build = ["evidence", "build", files[0], "--cm", files[1], "--memory", "run:1", "--draws", "200", "-o", bundle]
    assert main(list(map(str, build))) in (0, 1, 3)
    assert main(["evidence", "check", str(bundle)]) in (0, 3)
    assert "files: intact" in capsys.readouterr().out
