"""Causes where planners ask where, how often and of whom, or read frames: by their definition, in fractions."""

import json
import random
from fractions import Fraction
from itertools import product
from math import prod

import pytest
from asking_worlds import LABELS, STEPS, AskingWorld
from plain_causes import PlainSystem

from verifier.analysis.counterexamples.causes import Losses
from verifier.analysis.counterexamples.runs import prospects, violation_probability
from verifier.analysis.objective import build_objective
from verifier.analysis.sensitivity.adjoint import state_values
from verifier.language.expressions import parse_expression
from verifier.language.ltl import parse_formula
from verifier.perception.confusion import rates, read_confusion
from verifier.systems.reader import read_model
from verifier.systems.skeleton import build_skeleton

LARGEST_SUM = 2 * STEPS
FRAME_ATOMS = [("sees(ped)", "ped", None), ("sees(car)", "car", None), ("sees(ped, within = 10)", "ped", 0)]


class AskedSystem(PlainSystem):
    """The steps of an `AskingWorld`; state t (2 STEPS + 1) + s. What is drawn beside the labels, as by the world, is
    in which bin each draw would be reported."""

    def __init__(self, world, frames, least):
        self.world, self.frames, self.least = world, frames, least
        self.width = LARGEST_SUM + 1
        states = range((STEPS + 1) * self.width)
        self.following, self.ends = [None] * len(states), set(states[STEPS * self.width :])
        self.lost = {state for state in self.ends if state % self.width < world.goal}
        self.rates = [
            [
                [Fraction(cell, sum(column)) for cell, column in zip(row, zip(*cells, strict=True), strict=True)]
                for row in cells
            ]
            for cells in world.counts
        ]
        self.perfect = [[[Fraction(y == t) for t in range(3)] for y in range(3)] for _ in world.counts]
        self.channel = type("Labels", (), {"labels": LABELS})

    def looks(self, state):
        return list(self.world.draws(state // self.width)) * self.frames

    def draws(self, state):
        return [(at, LABELS.index(column)) for _, at, column, _ in self.looks(state)]

    def drawn(self, state):
        for places in product(*(located for _, _, _, located in self.looks(state))):
            yield [there for there, _ in places], prod(share for _, share in places)

    def next(self, state, labels, w):
        t, s = divmod(state, self.width)
        looks = self.looks(state)
        told = [(look[0], LABELS[label], there) for look, label, there in zip(looks, labels, w, strict=True)]
        each = len(looks) // self.frames
        seen = [[one for one in told[k * each : (k + 1) * each] if one[1] != "empty"] for k in range(self.frames)]
        go = next(
            (go for (_, holds), go in self.world.rules if sum(map(holds, seen)) >= self.least), self.world.default
        )
        return (t + 1) * self.width + min(s + go, LARGEST_SUM)  # no more is ever reached


def found_by_the_program(world, folder, model):
    (folder / "model.toml").write_text(model)
    (folder / "cm.json").write_text(json.dumps(world.document))
    matrices = read_confusion(folder / "cm.json").matrices
    system = read_model(folder / "model.toml").inside("here").instantiate()
    skeleton = build_skeleton(system, system.planners["p"], "here", matrices)
    objective = build_objective(skeleton, parse_formula("F good"), {"good": parse_expression("good")}, 10**6)
    values = state_values(objective, rates(matrices.counts))
    total, _ = violation_probability(objective, values.rates, 0)
    losses = Losses(objective, values, prospects(objective, values, False))
    causes = losses.attribution(0, total, 99).causes
    return {frozenset(map(tuple, cause.reports)): cause.probability for cause in causes}


def agrees(world, folder, model, frames=1, least=1):
    """Whether there is more than one cause; they are those of the definition."""
    wanted, _ = AskedSystem(world, frames, least).causes_and_patterns()
    wanted = {kinds: float(p) for kinds, p in wanted.items() if p}
    assert found_by_the_program(world, folder, model) == pytest.approx(wanted, rel=1e-11, abs=0)
    return len(wanted) > 1


def test_planners_that_ask_where_how_often_and_of_whom(tmp_path, thorough):
    several = 0
    for seed in range(200 if thorough else 7):
        world = AskingWorld(random.Random(seed), located=seed % 2 == 0, viewed=seed % 3 == 0)
        several += agrees(world, tmp_path, world.model)
    assert several >= (60 if thorough else 1)


@pytest.mark.parametrize(("reading", "least"), [('"any"', 1), ('"all"', 2)])
def test_planners_that_read_two_frames(tmp_path, reading, least, thorough):
    several = 0
    for seed in range(100 if thorough else 7):
        rng = random.Random(seed)
        world = AskingWorld(rng, located=False)
        world.objects, world.rules = world.objects[:1], []
        for name, label, at in rng.sample(FRAME_ATOMS, 2):
            holds = lambda told, label=label, at=at: any(one[1] == label and at in (None, one[2]) for one in told)  # noqa: E731
            world.rules.append(((name, holds), rng.randrange(3)))
        model = world.model.replace("[planners.p]", f"[planners.p]\nreading = {reading}")
        several += agrees(world, tmp_path, f"step_s = 2\nframe_s = 1\n{model}", 2, least)
    assert several >= (20 if thorough else 1)
