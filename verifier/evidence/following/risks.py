"""Whether a risk fits what it states, and the runs that it is from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from verifier.base.documents import json_values
from verifier.base.errors import UsageError
from verifier.evidence.following.numbers import Misfits, misfits, once

if TYPE_CHECKING:
    from verifier.evidence.documents import Document
    from verifier.evidence.risk.document import RiskResult

_STATED = ("command", "inputs", "versions")


def risk_misfits(risk: RiskResult) -> Misfits:
    """Intervals of counts, and names that refer to each other; what else follows is refused where it is read."""
    from verifier.evidence.risk.assembly import environment_of, stated_in

    for what in ("conditions", "environments", "hazards"):
        yield from once(f"/{what}", (each.name for each in getattr(risk, what)))
    yield from once("/runs", (run.sha256 for run in risk.runs))
    named = [each.sha256 for each in risk.inputs if each.role == "result"]
    if named != [run.sha256 for run in risk.runs]:
        yield "/inputs", "expected the results of the runs"
    for h, hazard in enumerate(risk.hazards):
        for c, cell in enumerate(hazard.cells):
            if cell.run is not None and cell.run >= len(named):
                yield f"/hazards/{h}/cells/{c}/run", "expected the number of a run"
        for k, factor in enumerate(hazard.chain):
            yield from misfits(f"/hazards/{h}/chain/{k}/part", factor.part, f"{factor.name} of {hazard.name}")
    try:
        stated = stated_in(risk)
    except ValueError as error:
        yield "/environments", str(error)
        return
    for k, where in enumerate(risk.environments):
        parts = [(share.name, share.part.removesuffix(f" in {where.name}")) for share in where.shares]
        if parts != [(each.name, f"share of {each.name}") for each in risk.conditions]:
            yield f"/environments/{k}/shares", "expected a share of each condition, called so"
            return
        if where.unlisted.part.removesuffix(f" in {where.name}") != "unlisted encounters":
            yield f"/environments/{k}/unlisted/part", "expected the part of unlisted encounters"
        share = where.error if where.exposure.kind == "count" else where.unlisted.error
        try:
            follows = environment_of(where.name, stated, share)
        except (UsageError, ValueError) as error:
            yield f"/environments/{k}", str(error)
            return
        yield from misfits(f"/environments/{k}", json_values(where), json_values(follows), 0.0)


def runs_behind(risk: Document, documents: Iterable[Document]) -> list[Document] | None:
    """The runs that a risk is from; None where one of them is not among the documents."""
    there = {each.sha256: each for each in documents if each.kind == "run"}
    wanted = [run.sha256 for run in risk.result.runs]
    return [there[digest] for digest in wanted] if {*wanted} <= there.keys() else None


def risk_against_runs(risk: RiskResult, runs: list[Document]) -> Misfits:
    """Whether the risk is that of its runs, made again from what it states."""
    from verifier.evidence.risk.assembly import residual_risk, stated_in

    try:
        follows = json_values(residual_risk(stated_in(risk), runs))
    except (UsageError, ValueError) as error:
        yield "/hazards", str(error)
        return
    told, made = ({key: each[key] for key in each if key not in _STATED} for each in (json_values(risk), follows))
    yield from misfits("", told, made, 0.0)
