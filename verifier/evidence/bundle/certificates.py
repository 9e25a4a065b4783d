"""The certificates of a bundle: the proofs of its probabilities and confidence bounds, made, and checked.

A certificate proves something about the arrays that it holds. That these arrays are the bundled system's is checked
here: everything that a certificate is about is rebuilt from spec, model and matrices, and must be equal.

The chains behind an answer about required recall: those whose probabilities have certificates.
"""

import json
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from verifier.analysis import kernel, step_kernel
from verifier.analysis.confidence import bounds_of_chain
from verifier.analysis.objective import Objective
from verifier.analysis.recall.cells import RecallCells, counts_with_recall
from verifier.analysis.robust.certificate import digest_of
from verifier.analysis.robust.inner_bounds import Side
from verifier.analysis.robust.point_certificate import point_certificates, step_certificates, step_document
from verifier.analysis.robust.solutions import Effort
from verifier.analysis.robust.staying import LARGEST_CERTIFIED, Provable
from verifier.analysis.robust.subject import kept_of, point_document, region_document, subject_of
from verifier.analysis.step_counts import StepCount
from verifier.base.budget import memory_limit
from verifier.base.errors import InputError
from verifier.base.files import json_of
from verifier.chains.chain import filled_counts
from verifier.checking.step_bounds import LongWindow
from verifier.evidence.bundle.layout import certificate_file
from verifier.evidence.differences import MOST, differing
from verifier.evidence.findings import Finding, Misstated
from verifier.perception.confusion import EMPTY
from verifier.perception.confusion.matrices import label_text
from verifier.questions.require.answers import perfect_counts
from verifier.questions.require.require_result import CellRecall, RequireResult
from verifier.study.case import Case, Study
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions, clock_of
from verifier.study.points import Point

_LARGE = 1_000
"""Product states beyond which a window is certified on the chain itself: that is shorter, and soon checked."""
_SOME = 100
"""Product states up to which what they have to meet is always found soon."""


class Proven(NamedTuple):
    """What the certificates of one block and requirement prove, for each initial state."""

    lower: list[Fraction | None]
    upper: list[Fraction | None]


class Certified(NamedTuple):
    """A chain with its rates whose probabilities have certificates.

    Attributes:
        of: the result that they stand in, as for `certificate_file`.
        block, requirement: numbers, from 0.
        objective: the requirement on the block's chain.
        counts: (bins, predicted, true) int64, whose rates are the chain's.
        window: the requirement, where steps are counted or could be in place of a large product; None elsewhere.
    """

    of: str
    block: int
    requirement: int
    objective: Objective
    counts: NDArray[np.int64]
    window: LongWindow | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """Where its certificates lie: of both sides, or where steps are counted one for both."""
        return tuple(map(self.path, ("lower", "upper") if self.window is None else ("steps",)))

    def path(self, side: str) -> str:
        """Where the certificate of one side, or of counted steps, lies."""
        return certificate_file(self.block, self.requirement, f"point_{side}", 0, self.of)

    def texts(self) -> Iterator[tuple[str, str]]:
        """Path and text of each certificate that can be made."""
        certificates: Iterator[tuple[str, Any]] = point_certificates(self.objective, self.counts)
        if self.window is not None:
            certificates = step_certificates(self.objective.skeleton, self.window, self.counts)
        for side, content in certificates:
            yield self.path(side), json.dumps(content, allow_nan=False) + "\n"


def certified(
    rebuilt: Study, of: str, block: int, objectives: Sequence[Objective], files: Container[str] = ()
) -> list[Certified]:
    """What is certified of one block of the grid: each of its objectives, with the rates of the run.

    Transitions that were rounded have no certificates, for they are no probabilities. `files` is as for `_windowed`.
    """
    if rebuilt.options.decimals is not None or not objectives:
        return []
    counts = filled_counts(objectives[0].skeleton, rebuilt.matrices, rebuilt.options.empty_columns)
    sources = (Certified(of, block, number, objective, counts) for number, objective in enumerate(objectives))
    return [_windowed(source, rebuilt.cases[block], files) for source in sources]


def _windowed(source: Certified, case: Case, files: Container[str]) -> Certified:
    """With its window, unless `files` of a bundle have certificates of the product, which earlier releases made."""
    if isinstance(source.objective, StepCount):
        return source._replace(window=source.objective.window)
    if source.objective.state_count <= _LARGE or source.path("lower") in files or source.path("upper") in files:
        return source
    return source._replace(window=case.window(source.requirement, short=True))


def certificates_of_comparison(
    specs: Sequence[str | Path], detectors: Sequence[str | Path], options: RunOptions
) -> dict[str, bytes]:
    """Path -> bytes of the certificate of every probability that a comparison reports.

    Args:
        specs, detectors: the files, in the order of the comparison, in which they are numbered from 1.

    Raises:
        VerifierError: as reading the files and building their products; NoAnswerError beyond the limits of time and
            memory.
    """
    files: dict[str, bytes] = {}
    with memory_limit(options.limits.memory_bytes):
        for spec_number, spec in enumerate(specs, 1):
            for detector_number, matrices in enumerate(detectors, 1):
                study = Study.of(read_inputs(spec, matrices, options), options)
                of = f"spec{spec_number:02}_detector{detector_number:02}"
                clock = clock_of(options, len(study.requirements) * len(study.cases))
                with clock.running(f"making the certificates of {of}"):
                    for number, case in enumerate(study.cases):
                        for source in certified(study, of, number, case.objectives):
                            files.update((path, text.encode()) for path, text in source.texts())
    return files


def why_none(rebuilt: Study, objective: Objective) -> str | None:
    """Why no certificates are made of an objective; None where they are."""
    if rebuilt.data is not None and rebuilt.data.basis.tier == "approximate":
        return "bounds from randomly weighted drives are drawn, and not proven by a certificate"
    if isinstance(objective, StepCount):
        return "steps are counted: a certificate would hold a vector for each of them; a check computes bounds again"
    if rebuilt.data is not None and rebuilt.data.basis.tier in ("anytime", "rate_box"):
        return f"the kernel of certificates does not know bounds {rebuilt.data.basis.name}"
    if objective.state_count <= LARGEST_CERTIFIED:
        region = None if rebuilt.data is None else rebuilt.data.region(objective.skeleton)
        if region is None or objective.state_count < _SOME or Provable(objective, region).is_followed:
            return None
        return "what the states have to meet, windows within windows, takes too long to find"
    count = objective.state_count
    return f"certificates are made of at most {LARGEST_CERTIFIED} product states, and there are {count}"


def certificates_of(rebuilt: Study, block: int, objectives: Sequence[Objective]) -> Iterator[tuple[str, str]]:
    """Path and text of every certificate of one block of the grid, by its number from 0."""
    data, settings = rebuilt.data, rebuilt.options.confidence
    if data is None or settings is None:
        return
    effort = Effort(attained=settings.semantics == "shared_matrix", certificates=get_args(Side))
    for number, objective in enumerate(objectives):
        if why_none(rebuilt, objective) is not None:
            continue
        (bounds,) = bounds_of_chain([objective], data, settings, effort)
        parts = {"lower": 0, "upper": 0}
        for certificate in bounds.certificates:
            path = certificate_file(block, number, certificate["side"], parts[certificate["side"]])
            parts[certificate["side"]] += 1
            yield path, json.dumps(certificate, allow_nan=False) + "\n"


def check_certificates(
    files: Mapping[str, bytes], rebuilt: Study, objective: Objective, paths: Sequence[str]
) -> tuple[Proven, list[Finding]]:
    """What the certificates of one block and requirement prove about the bundled system, and what is wrong."""
    region = None if rebuilt.data is None else rebuilt.data.region(objective.skeleton)
    if region is None or region.evidence is None:
        raise ValueError("a run without confidence bounds, or with bounds from draws, has no certificates")
    return _checked(files, paths, objective, region_document(region))


def check_point(files: Mapping[str, bytes], source: Certified, today: bool) -> tuple[Proven, list[Finding]]:
    """What certificates prove about the probabilities of a chain, and what is wrong; one that can be made must be
    there, that of a window if the bundle is of today's program."""
    objective = source.objective
    there = [path for path in source.paths if path in files]
    whole = len(there) == len(source.paths) or not (today or source.window is None)
    missing = [] if whole else [path for path, _ in source.texts() if path not in files]
    if source.window is not None:
        proven, findings = _counted(files, source, source.window)
    else:
        proven, findings = _checked(files, there, objective, point_document(objective.skeleton, source.counts))
    wanted = "the proof of a probability, which can be made"
    return proven, findings + [Misstated(path, "", "nothing", wanted) for path in missing]


def _checked(
    files: Mapping[str, bytes], paths: Sequence[str], objective: Objective, region: Mapping[str, Any]
) -> tuple[Proven, list[Finding]]:
    """What certificates prove for each initial state, and what is wrong.

    Args:
        objective, region: what they must be about. On the side where the world is not, they may be about some of its
            choices: a strategy is proof enough.
    """
    count, subject = len(objective.product.start), subject_of(objective).document
    proven = Proven([None] * count, [None] * count)
    findings: list[Finding] = []
    for path in paths:
        try:
            content = json_of(files[path], path)
            part = isinstance(content, dict) and not objective.ranges(str(content.get("side")))
            given = content["subject"] if part and isinstance(content.get("subject"), dict) else {}
            about = {"subject": kept_of(subject, given) if part else subject, "region": region}
            wrong = _about_something_else(path, content, files[path], about)
            if wrong:
                findings += wrong
                continue
            bounds = kernel.check(content)
        except (InputError, kernel.Rejected) as error:
            findings.append(_no_proof(path, error))
            continue
        side = proven.lower if content["side"] == "lower" else proven.upper
        if f"_{content['side']}_" not in path:
            findings.append(Misstated(path, "/side", content["side"], "the side in the file's name"))
        for k, bound in enumerate(bounds):
            if bound is not None and side[k] is not None:
                findings.append(Misstated(path, f"/claimed/{k}", "a second claim", "none"))
            side[k] = bound if side[k] is None else side[k]
        if all(bound is None for bound in bounds):
            findings.append(Misstated(path, "/claimed", "no claim", "one for some initial state"))
    return proven, findings


def _counted(files: Mapping[str, bytes], source: Certified, window: LongWindow) -> tuple[Proven, list[Finding]]:
    """As `_checked`, where steps are counted."""
    skeleton, (path,) = source.objective.skeleton, source.paths
    count = len(skeleton.starts)
    nothing = Proven([None] * count, [None] * count)
    if path not in files:
        return nothing, []
    try:
        content = json_of(files[path], path)
        wrong = _about_something_else(path, content, files[path], step_document(skeleton, window, source.counts))
        return (nothing, wrong) if wrong else (Proven(*map(list, zip(*step_kernel.check(content), strict=True))), [])
    except (InputError, step_kernel.Rejected) as error:
        return nothing, [_no_proof(path, error)]


def _no_proof(path: str, error: Exception) -> Finding:
    where, _, message = str(error).partition(": ")
    return Misstated(path, where, message, "a proof that holds")


def _about_something_else(path: str, content: Any, raw: bytes, about: Mapping[str, Any]) -> list[Finding]:
    """Where a certificate is damaged, or about something else."""
    if not isinstance(content, dict) or not all(isinstance(content.get(part), dict) for part in about):
        return [Misstated(path, "", "no certificate", f"an object with {' and '.join(about)}")]
    if content.get("sha256") != digest_of({key: value for key, value in content.items() if key != "sha256"}):
        return [Misstated(path, "/sha256", "a hash of another content", "that of this content")]
    if (json.dumps(content) + "\n").encode() != raw:
        return [Misstated(path, "", "the same certificate in other bytes", "those that were written")]
    region = about.get("region", {"columns": ()})
    columns, given = region["columns"], content.get("region", {}).get("columns")
    if isinstance(given, list) and len(given) == len(columns) and all(isinstance(value, dict) for value in given):
        # The kernel proves ends from counts, however they were computed.
        columns = [
            column if column["counts"] is None else {**column, **{end: own.get(end) for end in ("lower", "upper")}}
            for column, own in zip(columns, given, strict=True)
        ]
        about = {**about, "region": {**region, "columns": columns}}
    said = {key: content.get(key) for key in about}
    return differing(path, said, about, ", as the inputs give it")[:MOST]


class CertifiedRecall(NamedTuple):
    """A point of an answer with the chain that it is about.

    Attributes:
        source: the chain; its certificates are those of the run for the point with the measured matrices.
        pointer: where the point stands in the document.
        initial: number of its initial state in the block.
    """

    source: Certified
    point: Point
    pointer: str
    initial: int


def certified_recalls(
    rebuilt: Study, number: int, result: RequireResult, files: Container[str] = ()
) -> Iterator[CertifiedRecall]:
    """The points of a document about required recall: with the measured matrices, with perfect perception, and with
    the required recalls where there are some.

    Args:
        number: of the requirement in the spec, from 1.
    """
    names = [requirement.name for requirement in rebuilt.grid.requirements]
    requirement = names.index(result.requirement.name)
    for k, answer in enumerate(result.answers):
        for kind in ("measured", "at_value", "perfect"):
            point = getattr(answer, kind)
            place = None if point is None else _place(rebuilt, answer.planner, point)
            if place is None:
                continue
            block, initial = place
            objective, counts = rebuilt.cases[block].objective(requirement), rebuilt.cases[block].counts
            of, changed = "" if kind == "measured" else f"require{number:02}_answer{k + 1:02}_{kind}", None
            if kind == "at_value":
                changed = _required(rebuilt, counts, answer.cells)
            else:
                changed = counts if kind == "measured" else perfect_counts(counts)
            if changed is not None:
                source = Certified(of, block, requirement, objective, changed)
                source = _windowed(source, rebuilt.cases[block], files)
                yield CertifiedRecall(source, point, f"/answers/{k}/{kind}", initial)


def _place(rebuilt: Study, planner: str, point: Point) -> tuple[int, int] | None:
    """Number of a point's block, and of its initial state there; None where the grid has no such point."""
    for number, case in enumerate(rebuilt.cases):
        same = (case.planner.name, case.environment, case.constants) == (planner, point.environment, point.constants)
        if same and point.initial in case.initial_states:
            return number, case.initial_states.index(dict(point.initial))
    return None


def _required(rebuilt: Study, counts: NDArray[np.int64], cells: Sequence[CellRecall]) -> NDArray[np.int64] | None:
    """Counts with the recalls that are required; None where none are."""
    matrices = rebuilt.matrices
    bins = {matrices.bin_text(index): index for index in range(matrices.bin_count)}
    labels = {label_text(label): column for column, label in enumerate(matrices.labels)}
    indices = [(bins.get(cell.bin), labels.get(cell.label)) for cell in cells]
    recalls = [Fraction(cell.required) for cell in cells if cell.required is not None]
    if not indices or any(None in index for index in indices) or len(recalls) < len(indices):
        return None
    whole = math.lcm(*(recall.denominator for recall in recalls))
    bins, columns = np.array(indices).T
    parts = [int(recall * whole) for recall in recalls]
    return counts_with_recall(counts, RecallCells(bins, columns, matrices.column_of(EMPTY)), parts, whole)
