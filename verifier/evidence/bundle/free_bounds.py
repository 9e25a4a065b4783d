"""Bounds whatever the dependence in the runs of a bundle: proven by certificates about programs that are built again.

The linear program of each requirement is built from spec, model and matrices; the certificate must hold that program,
and `verifier.analysis.flow_kernel` decides in whole numbers what its multipliers prove. Nothing is solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from verifier.base.documents import json_values
from verifier.evidence.bundle.layout import free_certificate_file
from verifier.evidence.bundle.numbers import places_of
from verifier.evidence.bundle.parts import Parts
from verifier.evidence.differences import differing
from verifier.evidence.findings import Finding, Kind, Log
from verifier.evidence.points import free_apart
from verifier.study.case import Study
from verifier.study.collection import rates_of
from verifier.study.points import FreeBounds


def check_free_bounds(parts: Parts, rebuilt: Study, runs: Sequence[str], log: Log, of: str = "") -> None:
    """Check the bounds whatever the dependence in runs of one system; nothing where none were asked for.

    Args:
        runs: paths of their documents, whose scenarios are those of the system.
        of: the alternative that the runs are under; "" for the run.
    """
    if not rebuilt.options.dependence_free:
        return
    from verifier.study.free import checked_ends  # linear programs take long to load

    places, rates = {number: rows for number, _, rows in places_of(rebuilt)}, rates_of(rebuilt)
    proven = guessed = 0
    for each in checked_ends(rebuilt, parts.files, partial(free_certificate_file, of=of)):
        log.certificates |= {*each.paths} & parts.files.keys()
        for path, message in each.wrong:
            log.findings.append(Finding(path, "", message, "a proof that holds", Kind.CONTENT))
        row, first = places[each.block][each.requirement]
        for path in runs:
            point = parts.documents[path].result.requirements[row].points[first + each.start]
            stated, pointer = point.dependence_free, f"/requirements/{row}/points/{first + each.start}"
            rounded = rebuilt.options.decimals is not None
            for where, message in free_apart(stated, point.probability, bounded=rebuilt.bounded, rounded=rounded):
                log.findings.append(Finding(path, pointer + where, message, "numbers that fit", Kind.CONTENT))
            if each.lower is None or each.upper is None:
                continue
            ends, size = (each.lower, each.upper), (each.horizon, each.flows)
            known = FreeBounds.rounded(*ends, *size, stated.undecided if each.flows else (0.0, 0.0), rates)
            why = ", as its certificates prove" if each.flows else ", as it is decided whatever is reported"
            told, expected = (json_values(one) for one in (stated, known))
            log.findings += differing(path, told, expected, why, f"{pointer}/dependence_free")
            log.proven += len(ends) if each.flows else 0
            log.recomputed += 0 if each.flows else len(ends) + len(known.undecided)
            proven += len(ends) if each.flows else 0
            guessed += each.flows > 0
    log.checked.append((proven, "bounds whatever the dependence that certificates prove about the rebuilt programs"))
    if guessed:
        log.until_recomputed.append(
            f"how much is not decided within the steps of {guessed} bounds whatever the dependence, in their optimum"
        )
