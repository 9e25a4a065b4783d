"""Gambler's ruin as a system of the program: spec, model and matrices in files.

A walker on 0..n moves up when it sees a pedestrian, down when it sees an obstacle, and stays when it sees nothing;
the one column of the matrices says how often each happens.
"""

from fractions import Fraction

from matrix_documents import write_matrices

MODEL = """
name = "random_walk"
source = "gambler's ruin"
initial = "x = n // 2"
terminal = "x = 0 | x = n"

[constants]
n = 200

[variables]
x = { range = [0, "n"], next = "x + move" }

[inputs]
move = { range = [-1, 1] }

[environments]
walk = [{ class = "ped", distance_m = "5" }]

[planners.walker]
rules = [
    { when = "x = 0 | x = n", stay = true },
    { when = "sees(ped)", set = { move = "1" } },
    { when = "sees(obs)", set = { move = "-1" } },
    { when = "true", set = { move = "0" } },
]
"""
SPEC = """model "walk.toml"
wins: P = ? [ F x = n ]
fair: P >= 0.5 [ F x = n ]
"""


def write_walk(folder, up, down, stay):
    """The files in `folder`, with these counts of the column; gives the paths of spec and matrices."""
    (folder / "walk.toml").write_text(MODEL, encoding="utf-8")
    (folder / "walk.ltl").write_text(SPEC, encoding="utf-8")
    counts = [[up, 0, 0], [down, 1, 0], [stay, 0, 1]]
    return folder / "walk.ltl", write_matrices(folder / "walk.json", counts, labels=["ped", "obs", "empty"])


def winning_chance(n, up, down):
    """P(n is reached first from n // 2), whatever the share of steps that stay."""
    odds = Fraction(down, up)
    return Fraction(n // 2, n) if odds == 1 else (1 - odds ** (n // 2)) / (1 - odds**n)
