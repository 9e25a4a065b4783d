"""Everything of a bundle computed again, and every probability as an exact fraction."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from verifier.base.budget import limits_reached
from verifier.base.documents import fraction_text
from verifier.base.errors import NoAnswerError
from verifier.checking.enclosure import AGREEMENT
from verifier.checking.process import StormProcess
from verifier.evidence.bundle.layout import CERTIFICATES, RUN_FILE
from verifier.evidence.bundle.making import Progress, make_results
from verifier.evidence.bundle.parts import Parts
from verifier.evidence.differences import compared
from verifier.evidence.findings import Finding, Kind, Log
from verifier.pipeline import checked_study, result_of

_UNKNOWN = b"within the limits"
"""What results say where they say no more."""


def check_recomputed(parts: Parts, found: Log, progress: Progress = iter) -> None:
    """Compute every result again and compare it byte for byte; have Storm compute every probability exactly.

    Args:
        progress: wraps the list of what is to be made, for a progress bar.

    Raises:
        EngineError: the engines disagree.
        VerifierError: as `make_results`; NoAnswerError where limits leave out what the bundle says, or are used up
            and something comes out otherwise.
    """
    before = len(found.findings)
    with limits_reached() as messages:
        _recomputed(parts, found, progress)
    if messages and len(found.findings) > before:
        del found.findings[before:]
        raise NoAnswerError(f"results come out otherwise where {messages[0]}")


def _recomputed(parts: Parts, found: Log, progress: Progress) -> None:
    with StormProcess() as storm:
        made, rounded, proofs = make_results(parts.rebuilt, storm, progress, parts.files), 0, 0
        for path in sorted({*made.texts, *_results(parts)}):
            if path not in made.texts:
                found.findings.append(Finding(path, "", "a result", "nothing: it is not made again", Kind.CONTENT))
            elif path not in parts.files:
                found.findings.append(Finding(path, "", "nothing", "a result, which is made again", Kind.CONTENT))
            elif parts.files[path] == made.texts[path].encode():
                continue
            elif path.startswith(f"{CERTIFICATES}/"):
                proofs += 1
            elif made.texts[path].encode().count(_UNKNOWN) > parts.files[path].count(_UNKNOWN):
                raise NoAnswerError(f"{path} says more than is found out within the limits of this check")
            else:
                rounded += compared(parts.files[path], made.texts[path].encode(), path, found)
        found.checked.append((len(made.texts), "results recomputed and compared byte for byte"))
        if rounded:
            found.unchecked.append(
                f"the last digits of {rounded} numbers, which come out differently on this machine or with its "
                f"libraries: they agree to {AGREEMENT:g} of their size"
            )
        if proofs:
            found.unchecked.append(
                f"whether {proofs} certificates are those that are made here: they are other proofs, and were "
                "checked as proofs of what the run claims"
            )
        _exactly(parts, storm, found)


def _results(parts: Parts) -> set[str]:
    return {path for path in parts.files if path.startswith(("results/", "certificates/"))}


def _exactly(parts: Parts, storm: StormProcess, found: Log) -> None:
    """Every probability of the run must enclose the exact one."""
    options = parts.rebuilt.options
    if options.decimals is not None:
        found.unchecked.append("exact probabilities: the transitions were rounded, so there are none")
        return
    exact = replace(options.point_alone(), engines=replace(options.engines, exact=True))
    again = result_of(checked_study(parts.rebuilt.under(exact), storm), exact)
    count = 0
    for row, one in enumerate(again.requirements):
        for k, point in enumerate(one.points):
            stated, value = parts.result.requirements[row].points[k], point.value
            count += 1
            if not Fraction(stated.lower) <= value <= Fraction(stated.upper) and stated.exact is None:
                bounds = f"bounds {stated.lower!r} to {stated.upper!r}"
                where = f"/requirements/{row}/points/{k}/lower"
                found.findings.append(
                    Finding(RUN_FILE, where, bounds, f"bounds of the exact {float(value)!r}", Kind.CONTENT)
                )
            elif stated.exact is not None and stated.exact != value:
                where, told = f"/requirements/{row}/points/{k}/exact", fraction_text(stated.exact)
                found.findings.append(Finding(RUN_FILE, where, told[:60], fraction_text(value)[:60], Kind.CONTENT))
    found.checked.append((count, "probabilities computed as exact fractions by Storm"))
