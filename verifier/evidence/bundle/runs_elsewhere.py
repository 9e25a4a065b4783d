"""Runs that were made elsewhere and put in: computed again from inputs that are here, or told as not verified.

A run that speaks for a requirement is refused where its inputs are not here. One that speaks against it is shown:
what it says in favour is at best conditional.
"""

import contextlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from verifier.analysis.settings import Bounds, ConfidenceSettings
from verifier.base.arrays import grouped
from verifier.base.checksums import KEY
from verifier.base.documents import json_values
from verifier.base.errors import InputError, Place, UsageError, VerifierError, one_line
from verifier.checking.process import StormProcess
from verifier.checking.settings import EngineSettings
from verifier.checking.verdicts import Verdict
from verifier.evidence.bundle.manifest import digest_of
from verifier.evidence.bundle.request import Request, typed, unpacked_inputs, without_folder
from verifier.evidence.differences import compared
from verifier.evidence.documents import Document
from verifier.evidence.findings import Finding, Log
from verifier.language.expressions import Source, parse_expression
from verifier.pipeline import verified
from verifier.study.case import Study
from verifier.study.options import MEMORY_BY_DEFAULT, RunOptions, Selection
from verifier.study.provenance import run_settings
from verifier.study.records import ConfidenceRecord
from verifier.study.results import RunResult
from verifier.systems.settings import constant, sweep

_APART = ("command", "gates", "versions", KEY)
"""What a run has beside what its inputs give."""
_SAME = (
    "where", "score_threshold", "canonical", "empty_columns", "false_positives", "endless", "verdict_from", "strict",
    "assume_memoryless",
)  # fmt: skip
"""Options that a run records under their own names."""
_BOUNDS: Mapping[str, Bounds] = {
    "independent_drives": "drives",
    "approximate": "approximate",
    "independent_items": "items",
    "anytime": "anytime",
}


@dataclass(frozen=True, eq=False)
class Given:
    """A run that was put in.

    Attributes:
        studies: what it may have been made from; one of them gives its settings, and which one its remarks say.
        why_not: why it cannot be made again here; empty where it can.
        here: whether its inputs are in the bundle.
    """

    studies: tuple[Study, ...] = ()
    why_not: str = ""
    here: bool = True


def given_runs(
    documents: Mapping[str, Document], request: Request, files: Mapping[str, bytes], limits: RunOptions
) -> dict[str, Given]:
    """Path -> what it was made from, of every run among the documents that was put in; see `given_run`."""
    runs = [path for path in request.given if path in documents and documents[path].kind == "run"]
    return {path: given_run(documents[path], request, files, limits) for path in runs}


def given_run(document: Document, request: Request, files: Mapping[str, bytes], limits: RunOptions) -> Given:
    """What a run that was put in was made from, as far as it lies in the bundle; the limits of `limits` are those of
    whoever looks."""
    run: RunResult = document.result
    wanted = {file.role: file for file in run.inputs if file.role != "planner"}
    places = {digest_of(files[path]): path for path in (*request.given, request.matrices) if path in files}
    own = {role: digest_of(files.get(path, b"")) for role, path in (("spec", request.spec), ("model", request.model))}
    planners = {digest_of(files.get(path, b"")) for path in request.planners}
    missing = [file.name for role, file in wanted.items() if role in own and file.sha256 != own[role]]
    missing += [file.name for file in run.inputs if file.role == "planner" and file.sha256 not in planners]
    missing += [file.name for role, file in wanted.items() if role == "confusion" and file.sha256 not in places]
    if missing or "confusion" not in wanted:
        return Given((), f"its inputs are not here: {', '.join(map(one_line, missing)) or 'matrices'}", False)
    matrices, why = places[wanted["confusion"].sha256], "its settings are not those of a run that is made here"
    points = (point for requirement in run.requirements for point in requirement.points)
    if run.unanswered or any(point.dependence_free for point in points):
        return Given((), "of a run put in, no answers and bounds whatever the dependence are not made again")
    studies, candidates = list[Study](), list[RunOptions]()
    try:
        candidates = list(_options_of(run))
    except (VerifierError, ValueError) as error:
        why = one_line(str(error))
    for options in candidates:
        asked = replace(options, limits=limits.limits, engines=replace(limits.engines, exact=options.engines.exact))
        try:
            made_from = replace(request, matrices=matrices, context=None, given=(), documents=(), asked=typed(asked))
            with unpacked_inputs(files, made_from) as read:
                study = Study.of(read.inputs, asked)
                settings = run_settings(study, asked, study.data)
            if json_values(settings) == json_values(run.settings):
                studies.append(study)
        except (VerifierError, ValueError) as error:
            why = one_line(without_folder(str(error)))
    return Given(tuple(studies), "" if studies else why)


def wrong_given(path: str, raw: bytes, given: Given, storm: StormProcess) -> tuple[list[Finding], Log]:
    """Where a run that was put in differs from what its inputs give; nothing where it cannot be made again.

    Returns:
        what is wrong, and beside it what was noted on the way.
    """
    best: tuple[list[Finding], Log] | None = None
    for study in given.studies:
        log = Log()
        again = verified(study, storm).json_text().encode()
        compared(_plain(raw), _plain(again), path, log)
        if best is None or len(log.findings) < len(best[0]):
            best = log.findings, log
        if not log.findings:
            break
    findings, log = best or ([], Log())
    return sorted(findings, key=lambda finding: not finding.where.endswith("/probability")), log  # the number first


def refuse_unfounded(path: str, document: Document, given: Given) -> None:
    """Refuse a run whose inputs are not here and that speaks for a requirement and against none; InputError."""
    if not given.here and document.result.verdict is not Verdict.VIOLATED:
        said = f"a result that supports a claim cannot be put in without its inputs: {given.why_not}"
        hint = "put its matrices in as well (--with); spec, model and planners must be those of the bundle"
        raise InputError(said, Place(path, path="/inputs"), hint)


def _options_of(run: RunResult) -> Iterator[RunOptions]:
    """Options that a run may have been made with, the likeliest first: a result says what came of some of them."""
    told = run.settings
    points = (point for requirement in run.requirements for point in requirement.points)
    swept = grouped(constant for point in points for constant in point.constants.items())
    selection = Selection(
        tuple(told.planners),
        told.environments,
        None,
        dict(constant(f"{name}={text}") for name, text in told.set_.items()),
        dict(sweep(f"{name}={','.join(dict.fromkeys(texts))}") for name, texts in swept.items()),
        tuple(dict.fromkeys(requirement.name for requirement in run.requirements)),
    )
    initials: list[Any] = [None]
    if told.initial is not None:
        initials.append(parse_expression(told.initial, Source(told.initial, "--initial")))
    memories = (MEMORY_BY_DEFAULT, told.memory or "none")
    same = {name: getattr(told, name) for name in _SAME}
    if told.memory is not None:
        same |= {name: getattr(told, name) for name in ("initial_context", "empty_contexts", "assume_contexts")}
    same |= {"strategies": any(requirement.strategies or requirement.world for requirement in run.requirements)}
    same |= {"decimals": told.round_transitions, "engines": EngineSettings(exact=told.exact)}
    for initial, memory, confidence in itertools.product(initials, memories, _confidences(told.confidence)):
        yield RunOptions(replace(selection, initial=initial), memory=memory, confidence=confidence, **same)


def _confidences(told: ConfidenceRecord | None) -> Iterator[ConfidenceSettings | None]:
    if told is None:
        yield None
        return
    basis = told.bounds
    largest = basis.largest_drive
    declared = max(column.items for column in largest.columns) if largest is not None and largest.declared else None
    icc = None if basis.icc_at_most is None else Fraction(repr(basis.icc_at_most))
    same = {name: getattr(told, name) for name in ("level", "prior", "draws", "seed", "semantics")}
    same |= {"weights": basis.weights, "looks": basis.looks, "shift": Fraction(repr(basis.shift))}
    for interval, bounds in itertools.product(("auto", told.interval), ("auto", _BOUNDS.get(basis.tier))):
        if bounds is not None:
            items = bounds == "items"
            given: dict[str, Any] = {"interval": interval, "bounds": bounds, "assume_independent_items": items}
            with contextlib.suppress(UsageError):  # what cannot stand together is not what was asked
                yield ConfidenceSettings(**same, **given, largest_drive=declared, icc_at_most=icc)


def _plain(raw: bytes) -> bytes:
    """The document without what is not computed, its inputs by role and hash: a file may have any name."""
    content = {name: value for name, value in json.loads(raw).items() if name not in _APART}
    content["inputs"] = sorted([entry["role"], entry["sha256"]] for entry in content["inputs"])
    return (json.dumps(content, indent=2) + "\n").encode()
