"""The runs of a bundle compared with its inputs: what they are about, what follows from what, and every number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from verifier.analysis.objective import Objective
from verifier.evidence.bundle.certificates import Proven, certified, check_certificates, check_point, why_none
from verifier.evidence.bundle.frames import check_frame, check_remarks, check_same_frame, check_same_points
from verifier.evidence.bundle.layout import (
    CERTIFICATES,
    OMITTED_FILE,
    RUN_FILE,
    alternative_file,
    certificates_of_pair,
    place_of_certificate,
)
from verifier.evidence.bundle.numbers import (
    NUMBERS_OF_POINT,
    Again,
    Tally,
    check_head,
    check_points,
    check_scenarios,
    places_of,
)
from verifier.evidence.bundle.parts import Parts
from verifier.evidence.bundle.policies import alternatives, is_alike
from verifier.evidence.findings import Finding, Kind, Log
from verifier.evidence.resting import conclusions_apart
from verifier.study.case import Study
from verifier.study.options import RunOptions

DECIDING = ("verdict_from", "strict", "assume_memoryless", "assume_contexts")
"""The options that decide a verdict from its numbers."""


def check_runs(parts: Parts, log: Log) -> dict[tuple[int, int], Proven]:
    """Check the run and those under other policies.

    Runs that differ only in what decides a verdict are about one system and have one set of bounds, so the bundle's
    certificates prove them all. Another policy about the data makes another system.

    Args:
        parts: inputs and results, validated.
        log: where to write.

    Returns:
        (block, requirement) -> what certificates prove about the run's probabilities.
    """
    rebuilt = parts.rebuilt
    alike, others = {RUN_FILE: rebuilt.options}, dict[str, tuple[str, RunOptions]]()
    for each in alternatives(rebuilt):
        path = alternative_file(each.name)
        if path in parts.documents:
            if is_alike(each.options, rebuilt):
                alike[path] = each.options
            else:
                others[path] = each.name, each.options
    tally = Tally()
    points = _check_alike(parts, rebuilt, alike, tally, log)
    for path, (name, options) in others.items():
        _check_alike(parts, rebuilt.under(options), {path: options}, tally, log, name)
    for path in (path for path in (*alike, *others) if path != RUN_FILE):
        log.findings += check_same_frame(path, parts.documents[path].content, parts.run.content, ("versions",))
        if path in alike:
            log.findings += check_same_points(path, parts.documents[path].result, parts.result)
    log.findings += tally.findings
    log.proven += tally.bounds + NUMBERS_OF_POINT * tally.proven
    log.recomputed += NUMBERS_OF_POINT * (tally.points - tally.proven)
    if rebuilt.bounded:
        log.checked.append((tally.bounds, "confidence bounds compared with what certificates prove"))
        if others:
            log.until_recomputed.append(
                f"confidence bounds and what rests on them in {len(others)} runs under other policies, such as "
                "whether another policy gives another verdict: the certificates are about the run"
            )
        for path, options in alike.items():
            if options.verdict_from == "interval":
                log.until_recomputed.append(f"the verdicts of {path}: they rest on statistical intervals")
    log.checked.append((tally.proven, "probabilities, with their numerical bounds, that certificates prove"))
    computed = tally.points - tally.proven
    if computed:
        log.checked.append((computed, "probabilities recomputed by the batch engine, with rigorous enclosures"))
    return points


def _check_alike(
    parts: Parts, rebuilt: Study, runs: Mapping[str, RunOptions], tally: Tally, log: Log, of: str = ""
) -> dict[tuple[int, int], Proven]:
    """Check runs of one system: path -> the options of the run; `of` is the alternative, or "" for the run.

    Returns:
        (block, requirement) -> what certificates prove about the probabilities.
    """
    bounded = rebuilt.bounded and not of
    fitting, points = [], dict[tuple[int, int], Proven]()
    for path, options in runs.items():
        content, run = parts.documents[path].content, parts.documents[path].result
        shape = check_head(path, content, rebuilt, options) + check_scenarios(path, run, rebuilt)
        log.findings += check_frame(path, content, parts.files[path], rebuilt)
        missing, others = check_remarks(path, run, rebuilt, options)
        log.findings += missing
        if others:
            log.until_recomputed.append(f"{others} remarks of {path}, which only the model checker can have made")
        asked = replace(run.settings, **{name: getattr(options, name) for name in DECIDING})
        log.findings += shape or conclusions_apart(path, run, asked)
        if not shape:
            fitting.append(path)
    if rebuilt.options.decimals is not None:
        listed = ", ".join(runs)
        log.until_recomputed.append(f"the probabilities of {listed}: transitions were rounded, so they are none")
        return {}
    certificates = _by_pair(parts) if bounded else {}
    excused = {path for path in parts.omitted if bounded and path.startswith(f"{CERTIFICATES}/")}
    for number, case, places in places_of(rebuilt):
        objectives = case.objectives
        for index, (objective, source) in enumerate(
            zip(objectives, certified(rebuilt, of, number, objectives), strict=True)
        ):
            proven = None
            points[number, index], wrong = check_point(parts.files, source)
            log.findings += wrong
            log.certificates |= {source.path(side) for side in ("lower", "upper")} & parts.files.keys()
            if bounded:
                pair = certificates_of_pair(number, index)
                proven = _proven(parts, rebuilt, objective, pair, certificates.get((number, index), ()), log)
                excused -= {pair} if proven is None else set()
                log.certificates.update(certificates.get((number, index), ()))
            again, (row, first) = Again(objective, rebuilt, points[number, index]), places[index]
            for path in fitting:
                one, pointer = parts.documents[path].result.requirements[row], f"/requirements/{row}"
                check_points(path, one, pointer, first, again, proven, tally)
    for path in sorted(excused):
        said = f"a reason for having no certificates {path}"
        log.findings.append(Finding(OMITTED_FILE, "", said, "none: it can have certificates", Kind.CONTENT))
    return points


def _by_pair(parts: Parts) -> dict[tuple[int, int], list[str]]:
    """(block, requirement) -> paths of the certificates of the run's confidence bounds."""
    found: dict[tuple[int, int], list[str]] = {}
    for path in parts.files:
        place = place_of_certificate(path)
        if place is not None and not place.of and not place.point:
            found.setdefault((place.block, place.requirement), []).append(path)
    return found


def _proven(
    parts: Parts, rebuilt: Study, objective: Objective, pair: str, paths: Sequence[str], log: Log
) -> Proven | None:
    """What the certificates of a block and a requirement prove; None where there is a reason for none."""
    if why_none(rebuilt, objective) is None:
        proven, wrong = check_certificates(parts.files, rebuilt, objective, paths)
        log.findings += wrong
        return proven
    if pair not in parts.omitted:
        log.findings.append(Finding(pair, "", "nothing", "the reason why there are no certificates", Kind.CONTENT))
    for path in paths:
        log.findings.append(Finding(path, "", "a certificate that cannot be there", "nothing", Kind.CONTENT))
    return None
