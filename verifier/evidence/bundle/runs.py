"""The runs of a bundle held against its inputs: what they are about, what follows from what, and every number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from verifier.analysis.objective import Objective
from verifier.evidence.bundle.certificates import Proven, check_certificates, why_none
from verifier.evidence.bundle.findings import Finding, Kind, Log
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
    Tally,
    check_head,
    check_points,
    check_scenarios,
    enclosures,
    places_of,
)
from verifier.evidence.bundle.parts import Parts
from verifier.evidence.bundle.policies import alternatives
from verifier.evidence.bundle.system import Rebuilt
from verifier.evidence.stated import check_conclusions
from verifier.options import RunOptions

DECIDING = ("verdict_from", "strict", "assume_memoryless")
"""The options that decide a verdict from its numbers."""


def check_runs(parts: Parts, log: Log) -> None:
    """Check the run and those under other policies.

    Runs that differ only in what decides a verdict are about one system and have one set of bounds, so the bundle's
    certificates prove them all. Another policy about the data makes another system.

    Args:
        parts: inputs and results, validated.
        log: where to write.
    """
    rebuilt = parts.rebuilt
    alike, others = {RUN_FILE: rebuilt.options}, dict[str, RunOptions]()
    for each in alternatives(rebuilt):
        path = alternative_file(each.name)
        if path in parts.documents:
            same = replace(each.options, verdict_from=rebuilt.options.verdict_from) == rebuilt.options
            (alike if same else others)[path] = each.options
    tally = Tally()
    _check_alike(parts, rebuilt, alike, tally, log, certified=rebuilt.bounded)
    for path, options in others.items():
        _check_alike(parts, replace(rebuilt, options=options), {path: options}, tally, log, certified=False)
    for path in (path for path in (*alike, *others) if path != RUN_FILE):
        content = parts.documents[path].content
        log.findings += check_same_frame(path, content, parts.run.content, ("versions",))
        if path in alike:
            log.findings += check_same_points(path, content, parts.run.content)
    log.findings += tally.findings
    log.proven += tally.bounds
    log.recomputed += NUMBERS_OF_POINT * tally.points
    if rebuilt.bounded:
        count = sum(place_of_certificate(path) is not None for path in parts.files)
        log.checked.append((count, "certificates proven in rational arithmetic about the rebuilt chains"))
        log.checked.append((tally.bounds, "confidence bounds held against what certificates prove"))
        if others:
            log.until_anew.append(
                f"confidence bounds and what rests on them in {len(others)} runs under other policies, such as "
                "whether another policy gives another verdict: the certificates are about the run"
            )
        for path, options in alike.items():
            if options.verdict_from == "interval":
                log.until_anew.append(f"the verdicts of {path}: they rest on statistical intervals")
    log.checked.append((tally.points, "probabilities computed anew by the batch engine, with rigorous enclosures"))


def _check_alike(
    parts: Parts, rebuilt: Rebuilt, runs: Mapping[str, RunOptions], tally: Tally, log: Log, certified: bool
) -> None:
    """Check runs of one system: path -> the options of the run."""
    fitting = []
    for path, options in runs.items():
        content = parts.documents[path].content
        shape = check_head(path, content, rebuilt, options) + check_scenarios(path, content, rebuilt)
        log.findings += check_frame(path, content, parts.files[path], rebuilt)
        missing, others = check_remarks(path, content, rebuilt, options)
        log.findings += missing
        if others:
            log.until_anew.append(f"{others} remarks of {path}, which only the model checker can have made")
        asked = {**content["settings"], **{name: getattr(options, name) for name in DECIDING}}
        log.findings += shape or check_conclusions(path, content, asked)
        if not shape:
            fitting.append(path)
    if rebuilt.options.decimals is not None:
        listed = ", ".join(runs)
        log.until_anew.append(f"the probabilities of {listed}: transitions were rounded, so they are none")
        return
    certificates = _by_pair(parts) if certified else {}
    excused = {path for path in parts.omitted if certified and path.startswith(f"{CERTIFICATES}/")}
    for number, block, places in places_of(rebuilt):
        for index, objective in enumerate(rebuilt.objectives(block)):
            proven = None
            if certified:
                pair = certificates_of_pair(number, index)
                proven = _proven(parts, rebuilt, objective, pair, certificates.get((number, index), ()), log)
                excused -= {pair} if proven is None else set()
            again, (row, first) = enclosures(objective, rebuilt), places[index]
            for path in fitting:
                one, pointer = parts.documents[path].content["requirements"][row], f"/requirements/{row}"
                check_points(path, one, pointer, first, again, rebuilt, proven, tally)
    for path in sorted(excused):
        said = f"a reason for having no certificates {path}"
        log.findings.append(Finding(OMITTED_FILE, "", said, "none: it can have certificates", Kind.CONTENT))


def _by_pair(parts: Parts) -> dict[tuple[int, int], list[str]]:
    """(block, requirement) -> paths of its certificates."""
    found: dict[tuple[int, int], list[str]] = {}
    for path in parts.files:
        pair = place_of_certificate(path)
        if pair is not None:
            found.setdefault(pair, []).append(path)
    return found


def _proven(
    parts: Parts, rebuilt: Rebuilt, objective: Objective, pair: str, paths: Sequence[str], log: Log
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
