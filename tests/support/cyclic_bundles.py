"""Random small systems that go round for ever, with specs and matrices, for bundles."""

from __future__ import annotations

import numpy as np
from small_bundles import MATRICES, write_inputs

MODEL = """
name = "round"
source = "made up"
initial = "x = 0 & c = {clock}"
{terminal}
[variables]
x = {{ range = [0, {last}], next = "(x + {slow} + go * {fast}) % {cells}" }}
c = {{ range = [0, 1], next = "(c + {tick}) % 2" }}

[inputs]
go = {{ range = [0, 1] }}

[environments]
ped = [{{ class = "ped", distance_m = "5" }}]
empty = [{{ class = "empty", distance_m = "5" }}]

[planners.p]
rules = [
    {{ when = "sees(ped) & x != {last}", set = {{ go = {seen} }} }},
    {{ when = "true", set = {{ go = {unseen} }} }},
]
"""
FORMULAS = (
    "F x = 2", "G x != 2", "G F x = 1", "F G x != 1", "G (x = 1 -> F x = 2)", "(G F x = 0) -> (G F c = 1)",
    "(x != 2) U (c = 1 & x = 1)", "G F (x = 1 & X x = 2)", "F<=4 x = 2", "(G F x = 1) & (F G c = 0)",
)  # fmt: skip


def write_cyclic(folder, seed):
    """Spec and matrices of a random model with cycles; gives their paths."""
    rng = np.random.default_rng(seed)
    cells = int(rng.integers(3, 6))
    seen = int(rng.integers(2))
    model = MODEL.format(
        last=cells - 1,
        cells=cells,
        clock=int(rng.integers(2)),
        slow=int(rng.integers(2)),
        fast=int(rng.integers(1, 3)),
        tick=int(rng.integers(2)),
        seen=seen,
        unseen=1 - seen,
        terminal=f'terminal = "x = {cells - 1}"\n' if rng.random() < 0.3 else "",
    )
    spec = f'model "../models/two_looks.toml"\nplanner p\nasked: P >= 0.9 [ {FORMULAS[seed % len(FORMULAS)]} ]\n'
    counts = rng.integers(1, 400, (2, 2))
    counts[rng.random((2, 2)) < 0.15] = 0
    counts[0] += counts.sum(axis=0) == 0
    matrices = {**MATRICES, "bins": [{"distance_m": [0, 10], "counts": counts.tolist()}]}
    return write_inputs(folder, spec, matrices, model)
