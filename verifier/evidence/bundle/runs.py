"""The runs of a bundle compared with its inputs: what they are about, what follows from what, and every number.

What stands around the numbers of a result: its bytes, title, versions, and what it tells its reader to know.

The remarks matter most: doubts in the assurance case follow from them, so a result without one would have one doubt
less. All but those of the model checker itself follow from the inputs.

Bounds whatever the dependence in the runs of a bundle: proven by certificates about programs that are built again.

The linear program of each requirement is built from spec, model and matrices; the certificate must hold that program,
and `verifier.analysis.step_kernel` decides in whole numbers what its multipliers prove. Nothing is solved.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import PurePath

from verifier.analysis.objective import Objective
from verifier.base.arrays import grouped
from verifier.base.files import document_text
from verifier.base.libraries import __version__
from verifier.checking.verdicts import Decision, Verdict
from verifier.evidence.bundle import layout, numbers
from verifier.evidence.bundle.certificates import Proven, certified, check_certificates, check_point, why_none
from verifier.evidence.bundle.making import alternatives, is_alike
from verifier.evidence.bundle.parts import Parts
from verifier.evidence.differences import differing, wrong_decisions
from verifier.evidence.findings import Finding, Log, Misstated
from verifier.evidence.resting import conclusions_apart, free_apart
from verifier.study.case import Study
from verifier.study.collection import forgetful_starts, rates_of
from verifier.study.model_checks import look_at, model_remarks
from verifier.study.options import RunOptions
from verifier.study.points import FreeBounds
from verifier.study.provenance import grid_remarks, noted, program_versions, run_remarks, start_remarks
from verifier.study.results import RunResult
from verifier.study.world_decisions import decisions_at

_NOT_OF_A_BUNDLE = ("command", "gates")
"""What documents have only if a command wrote them: of a bundle, `request.json` says what was typed."""

AS_IN_THE_RUN = ", as in the run"
SAME_AS_THE_RUN = (
    "title", "verdict", "condition", "inputs", "settings", "channel", "versions", "engines", "remarks", "matrices",
)  # fmt: skip
"""What an explanation repeats of the run."""


def check_frame(path: str, parts: Parts) -> list[Finding]:
    """Whether a result is written as this program writes it, and its title and versions can be right."""
    document, confusion = parts.documents[path], parts.rebuilt.inputs.confusion
    result = document.result
    named = {*program_versions(), "storm"}
    expected = {"title": confusion.matrices.title or PurePath(confusion.name).stem, "versions": sorted(named)}
    stated = {"title": result.title, "versions": sorted(result.versions)}
    wrong = differing(path, stated, expected)
    for name in _NOT_OF_A_BUNDLE:
        if name in document.content:
            wrong.append(Misstated(path, f"/{name}", "an entry", "nothing: no result of a bundle has it"))
    written = document_text(result)
    if written.encode() != parts.files[path]:
        apart = differing(path, document.content, json.loads(written), ", as it is written")
        other = Misstated(path, "", "the same result in other bytes than were written", "what was built")
        wrong += apart or [other]
    return wrong


def check_remarks(path: str, run: RunResult, rebuilt: Study, options: RunOptions) -> tuple[list[Finding], int]:
    """Whether a run says all that follows from the inputs; and how many of its remarks do not follow from them."""
    of_chains = [
        *grid_remarks(rebuilt.grid, options.false_positives, rebuilt.matrices),
        *model_remarks([look_at(case) for case in rebuilt.under(options).cases]),
        *(remark for case in rebuilt.cases for remark in start_remarks(case)),
        *noted((case, case.notes) for case in rebuilt.cases),
    ]
    assumed, of = [column for case in rebuilt.cases for column in case.assumed], rebuilt.inputs.confusion.matrices
    expected = list(run_remarks(of, options, assumed, of_chains, rebuilt.data, rebuilt.tests, rebuilt.divided))
    missing = [name for name in expected if name not in run.remarks]
    findings: list[Finding] = [Misstated(path, "/remarks", "nothing", f"the remark: {name}") for name in missing]
    return findings, sum(remark not in expected for remark in run.remarks)


def check_same_frame(path: str, result: numbers.Told, run: RunResult, names: Sequence[str]) -> list[Finding]:
    """Entries of a result that are the run's as well, and must say the same."""
    stated, expected = ({name: getattr(one, name) for name in names} for one in (result, run))
    return differing(path, stated, expected, AS_IN_THE_RUN)


def _numbers(run: RunResult) -> Mapping[str, object]:
    """The points without their verdicts."""
    nothing = Decision(Verdict.NO_TARGET)
    points = [{"points": [point.decided(nothing) for point in one.points]} for one in run.requirements]
    return {"requirements": points}


DECIDING = ("verdict_from", "strict", "assume_memoryless", "assume_contexts")
"""The options that decide a verdict from its numbers."""


def check_runs(parts: Parts, log: Log) -> dict[tuple[int, int], Proven]:
    """Check the run and those under other policies.

    Runs that differ only in what decides a verdict are about one system and have one set of bounds, so the bundle's
    certificates prove them all. Another policy about the data makes another system.

    Returns:
        (block, requirement) -> what certificates prove about the run's probabilities.
    """
    rebuilt = parts.rebuilt
    there = [alternative for alternative in alternatives(rebuilt) if alternative.path in parts.documents]
    others = [alternative for alternative in there if not is_alike(alternative.options, rebuilt)]
    alike = {other.path: other.options for other in there if other not in others}
    tally = numbers.Tally()
    points = _check_alike(parts, rebuilt, {layout.RUN_FILE: rebuilt.options} | alike, tally, log)
    for other in others:
        _check_alike(parts, rebuilt.under(other.options), {other.path: other.options}, tally, log, other.name)
    for path in (*alike, *(other.path for other in others)):
        run = parts.documents[path].result
        log.findings += check_same_frame(path, run, parts.result, ("versions",))
        if path in alike:  # what differs decides verdicts only
            log.findings += differing(path, _numbers(run), _numbers(parts.result), AS_IN_THE_RUN)
    log.findings += tally.findings
    log.proven += tally.bounds + numbers.NUMBERS_OF_POINT * tally.proven
    log.recomputed += tally.bounds_again + numbers.NUMBERS_OF_POINT * (tally.points - tally.proven)
    if rebuilt.bounded:
        log.checked.append((tally.bounds, "confidence bounds compared with what certificates prove"))
        if tally.bounds_again:
            log.checked.append((tally.bounds_again, "confidence bounds computed again, where steps are counted"))
        if others:
            log.until_recomputed.append(
                f"confidence bounds and what rests on them in {len(others)} runs under other policies, such as "
                "whether another policy gives another verdict: the certificates are about the run"
            )
    log.checked.append((tally.proven, "probabilities, with their numerical bounds, that certificates prove"))
    computed = tally.points - tally.proven
    if computed:
        said = "there is no certificate, or checking it takes too long"
        log.checked.append(
            (computed, f"probabilities recomputed by the batch engine, with rigorous enclosures: {said}")
        )
    return points


def _check_alike(
    parts: Parts, rebuilt: Study, runs: Mapping[str, RunOptions], tally: numbers.Tally, log: Log, of: str = ""
) -> dict[tuple[int, int], Proven]:
    """Check runs of one system: path -> the options of the run; `of` is the alternative, or "" for the run.

    Returns:
        (block, requirement) -> what certificates prove about the probabilities.
    """
    bounded = rebuilt.bounded and not of
    fitting, points = [], dict[tuple[int, int], Proven]()
    for path, options in runs.items():
        run = parts.documents[path].result
        shape = numbers.check_head(path, run, rebuilt, options) + numbers.check_scenarios(path, run, rebuilt)
        log.findings += check_frame(path, parts)
        missing, others = check_remarks(path, run, rebuilt, options)
        log.findings += missing
        if others:
            log.until_recomputed.append(f"{others} remarks of {path}, which only the model checker can have made")
        asked = replace(run.settings, **{name: getattr(options, name) for name in DECIDING})
        log.findings += shape or conclusions_apart(path, run, asked)
        if not shape:
            fitting.append(path)
    check_free_bounds(parts, rebuilt, fitting, log, of)
    if rebuilt.options.decimals is not None:
        listed = ", ".join(runs)
        log.until_recomputed.append(f"the probabilities of {listed}: transitions were rounded, so they are none")
        return {}
    certificates = _by_pair(parts) if bounded else {}
    excused = {path for path in parts.omitted if bounded and path.startswith(f"{layout.CERTIFICATES}/")}
    for number, case, places in numbers.places_of(rebuilt):
        objectives = case.objectives
        for index, (objective, source) in enumerate(
            zip(objectives, certified(rebuilt, of, number, objectives, parts.files), strict=True)
        ):
            proven = None
            points[number, index], wrong = check_point(parts.files, source, log.built_by == __version__)
            log.findings += wrong
            log.certificates |= set(source.paths) & parts.files.keys()
            if bounded:
                pair = layout.certificates_of_pair(number, index)
                proven = _proven(parts, rebuilt, objective, pair, certificates.get((number, index), ()), log)
                excused -= {pair} if proven is None else set()
                log.certificates.update(certificates.get((number, index), ()))
            again, (row, first) = numbers.Again(objective, rebuilt, points[number, index]), places[index]
            for path in fitting:
                one, pointer = parts.documents[path].result.requirements[row], f"/requirements/{row}"
                numbers.check_points(path, one, pointer, first, again, proven, tally)
    for path in fitting:
        for k, stated in enumerate(parts.documents[path].result.requirements):
            if stated.world is not None:
                world = decisions_at(stated.name, stated.planner, stated.worst_point, rebuilt)
                log.findings += wrong_decisions(path, stated.world, world, f"/requirements/{k}")
    for path in sorted(excused):
        said = f"a reason for having no certificates {path}"
        log.findings.append(Misstated(layout.OMITTED_FILE, "", said, "none: it can have certificates"))
    return points


def _by_pair(parts: Parts) -> dict[tuple[int, int], list[str]]:
    """(block, requirement) -> paths of the certificates of the run's confidence bounds."""
    places = ((layout.place_of_certificate(path), path) for path in parts.files)
    return grouped(
        ((place.block, place.requirement), path)
        for place, path in places
        if place is not None and not place.of and not place.proves
    )


def _proven(
    parts: Parts, rebuilt: Study, objective: Objective, pair: str, paths: Sequence[str], log: Log
) -> Proven | None:
    """What the certificates of a block and a requirement prove; None where there is a reason for none."""
    if why_none(rebuilt, objective) is None:
        proven, wrong = check_certificates(parts.files, rebuilt, objective, paths)
        log.findings += wrong
        return proven
    if pair not in parts.omitted:
        log.findings.append(Misstated(pair, "", "nothing", "the reason why there are no certificates"))
    for path in paths:
        log.findings.append(Misstated(path, "", "a certificate that cannot be there", "nothing"))
    return None


def check_free_bounds(parts: Parts, rebuilt: Study, runs: Sequence[str], log: Log, of: str = "") -> None:
    """Check the bounds whatever the dependence in runs of one system; nothing where none were asked for.

    Args:
        runs: paths of their documents, whose scenarios are those of the system.
        of: the alternative that the runs are under; "" for the run.
    """
    if not rebuilt.options.dependence_free:
        return
    from verifier.study.free import checked_ends  # linear programs take long to load

    places, rates = {number: (case, rows) for number, case, rows in numbers.places_of(rebuilt)}, rates_of(rebuilt)
    proven = guessed = 0
    for checked_end in checked_ends(rebuilt, parts.files, partial(layout.free_certificate_file, of=of)):
        log.certificates |= {*checked_end.paths} & parts.files.keys()
        for path, message in checked_end.wrong:
            log.findings.append(Misstated(path, "", message, "a proof that holds"))
        case, rows = places[checked_end.block]
        row, first = rows[checked_end.requirement]
        own = [first + place for place, start in enumerate(forgetful_starts(case)) if start == checked_end.start]
        other = rebuilt.options.decimals is not None or rebuilt.memory != "none"
        for path, number in product(runs, own):
            point = parts.documents[path].result.requirements[row].points[number]
            stated, pointer = point.dependence_free, f"/requirements/{row}/points/{number}"
            for where, message in free_apart(stated, point.probability, bounded=rebuilt.bounded, other=other):
                log.findings.append(Misstated(path, pointer + where, message, "numbers that fit"))
            if checked_end.lower is None or checked_end.upper is None:
                continue
            ends, size = (checked_end.lower, checked_end.upper), (checked_end.horizon, checked_end.flows)
            known = FreeBounds.rounded(*ends, *size, stated.undecided if checked_end.flows else (0.0, 0.0), rates)
            why = ", as its certificates prove" if checked_end.flows else ", as it is decided whatever is reported"
            log.findings += differing(path, stated, known, why, f"{pointer}/dependence_free")
            log.proven += len(ends) if checked_end.flows else 0
            log.recomputed += 0 if checked_end.flows else len(ends) + len(known.undecided)
            proven += len(ends) if checked_end.flows else 0
            guessed += checked_end.flows > 0
    log.checked.append((proven, "bounds whatever the dependence that certificates prove about the rebuilt programs"))
    if guessed:
        log.until_recomputed.append(
            f"how much is not decided within the steps of {guessed} bounds whatever the dependence, in their optimum"
        )
