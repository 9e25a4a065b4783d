"""A system that goes round, or stops at its end, and the formulas that once took all time and memory."""

from __future__ import annotations

import json
from pathlib import Path

from matrix_documents import document_of

LOOP = """
name = "loop"
source = "made for tests of limits"
initial = "x = 0 & c = 0"
[variables]
x = {{ range = [0, {last}], next = "(x + go) % {cells}" }}
c = {{ range = [0, 2], next = "(c + 1) % 3" }}
[inputs]
go = {{ range = [0, 1] }}
[labels]
hit = "x = {last}"
[environments]
ped = [{{ class = "ped", distance_m = "1.0" }}]
[planners.p]
kind = "rules"
rules = [{{ when = "sees(ped)", set = {{ go = 1 }} }}, {{ when = "true", set = {{ go = 0 }} }}]
"""

MATRICES = document_of(
    [[31, 3], [127, 97]],
    title="made",
    distance={"unit": "m", "measure": "made", "of": "true object"},
    matching="none",
    false_positives="counted",
    source={"made": "by hand"},
    notes="",
)


def _nested_until(parts: int) -> str:
    text = "(x = 14)"
    for k in range(parts - 1):
        text = f"((x != {k % 14} | c = {k % 3}) U {text})"
    return text


FORMULAS = {
    "response": ("loop", "G[0,1000000] (x < 14 -> F<=100000 hit)"),
    "response_absorbing": ("ends", "G[0,1000000] (x < 14 -> F<=100000 hit)"),
    "eventually": ("ends", "F<=1000000000 hit"),
    "again": ("loop", " & ".join(f"(G F x = {k})" for k in range(12))),
    "fairness": ("loop", " & ".join(f"((G F x = {k}) -> (G F (x = {k + 1} & c = {k % 3})))" for k in range(10))),
    "untils": ("loop", _nested_until(60)),
    "visits": (
        "loop",
        " & ".join(
            f"(F (x = {k % 15} & c = {k % 3} & X ((x < {k % 9 + 3}) U (c = {k * 7 % 3} & x > {k % 11}))))"
            for k in range(40)
        ),
    ),
}
"""Name -> system and formula."""


def write_system(folder: Path, formula: str, system: str = "loop", cells: int = 15) -> tuple[Path, Path]:
    """Spec and matrices on disk."""
    text = LOOP.format(cells=cells, last=cells - 1)
    if system == "ends":
        text = text.replace("\ninitial", f'\nterminal = "x = {cells - 1}"\ninitial')
    (folder / "model.toml").write_text(text)
    (folder / "spec.ltl").write_text(f'model "model.toml"\n\nwanted: P >= 0.9 [ {formula} ]\n')
    (folder / "matrices.json").write_text(json.dumps(MATRICES))
    return folder / "spec.ltl", folder / "matrices.json"
