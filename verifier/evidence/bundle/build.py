"""Building a bundle: the whole story from files and options to a folder or an archive.

inputs -> request -> results and certificates -> derived files -> manifest -> written at once
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from verifier.base.budget import memory_limit
from verifier.base.documents import Limits, Sha256
from verifier.base.errors import InputError, LimitError, Place, UsageError, files_named
from verifier.base.files import document_text, read_bytes, read_text
from verifier.checking.process import StormProcess
from verifier.evidence.bundle.archive import ReadingLimits, check_target, write_bundle
from verifier.evidence.bundle.derived_artefacts import TRACE_FILE, derived
from verifier.evidence.bundle.layout import input_paths
from verifier.evidence.bundle.making import Progress, make_results, planned
from verifier.evidence.bundle.manifest import MANIFEST_FILE, digest_of
from verifier.evidence.bundle.parts import check_context, read_parts
from verifier.evidence.bundle.request import REQUEST_FILE, Request, documents_of, typed, unpacked_inputs
from verifier.evidence.bundle.runs_elsewhere import Given, given_runs, refuse_unfounded, wrong_given
from verifier.evidence.consistency import check_document
from verifier.evidence.context import read_context
from verifier.evidence.declarations import stated_day
from verifier.evidence.documents import document_of
from verifier.evidence.following.rates import against_its_run
from verifier.evidence.identity import SBOM_FILE, sbom_text
from verifier.evidence.paths import check_paths
from verifier.evidence.resting import refuse_misfits
from verifier.evidence.status import Standing, Status, overall_text
from verifier.language.specs import read_spec
from verifier.study.case import Study
from verifier.study.inputs import refuse_others
from verifier.study.options import RunOptions, clock_of
from verifier.systems.model_parts import files_of
from verifier.systems.reader import read_model


@dataclass(frozen=True)
class Sources:
    """The files that a bundle is built from.

    Attributes:
        spec: a `.ltl` file; it names the system model.
        context: the declared context of the case, or None.
        given: results that were made elsewhere; they are put in as they are.
        command: what was typed, as far as that is known; it is recorded.
    """

    spec: str | Path
    matrices: str | Path
    context: str | Path | None = None
    given: Sequence[str | Path] = ()
    command: Sequence[str] = ()


@dataclass(frozen=True)
class Bundle:
    """A bundle that was made.

    Attributes:
        files: path -> bytes.
        digest: SHA-256 of its manifest, in hexadecimal.
        omitted: path -> why it is not there.
        standings, case: how every requirement with a target stands over all runs in it, and the case as a whole.
    """

    files: dict[str, bytes] = field(repr=False)
    digest: str
    verdict: str
    omitted: dict[str, str] = field(repr=False)
    standings: tuple[Standing, ...] = field(repr=False)
    case: Status

    def trace(self) -> list[dict[str, str]]:
        """The rows of the trace: every requirement of the spec, under every planner."""
        return list(csv.DictReader(io.StringIO(self.files[TRACE_FILE].decode())))


@dataclass(frozen=True)
class OmittedFile:
    """What could not be made, and why."""

    file: str
    reason: str


@dataclass(frozen=True)
class BuiltRequirement:
    """A requirement as in trace.csv.

    Attributes:
        planner: empty where the requirement was not run.
        reason: empty where the status needs none.
        defeated_by: identifiers and titles of defeaters, joined by semicolons.
    """

    requirement: str
    planner: str
    status: str
    reason: str
    defeated_by: str


@dataclass(frozen=True, kw_only=True)
class BuiltResult:
    """What `verify evidence build` made.

    Attributes:
        command: that built, with input files by name.
        versions: of the program that built, and of what it computed with.
        bundle: name of the folder or archive.
        digest: SHA-256 of the manifest, to be demanded with check --digest.
        requirements: of the spec, each under every planner.
        verdict: of the run in the bundle.
        status: over all runs, with the requirement and the run that it is of.
    """

    schema: ClassVar[str] = "verifier.bundle_built"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    bundle: str
    digest: Sha256
    files: Annotated[int, Limits(ge=1)]
    bytes_: Annotated[int, Limits(ge=1)]
    omitted: tuple[OmittedFile, ...]
    requirements: tuple[BuiltRequirement, ...]
    verdict: str
    status: str


def built_document(bundle: Bundle, name: str) -> BuiltResult:
    """The document of a bundle that was written under a name."""
    columns = [column.name for column in fields(BuiltRequirement)]
    return BuiltResult(
        bundle=name,
        digest=bundle.digest,
        files=len(bundle.files),
        bytes_=sum(map(len, bundle.files.values())),
        omitted=tuple(OmittedFile(path, reason) for path, reason in bundle.omitted.items()),
        requirements=tuple(BuiltRequirement(*(row[key] for key in columns)) for row in bundle.trace()),
        verdict=bundle.verdict,
        status=overall_text(bundle.standings, bundle.case),
    )


def build_bundle(
    sources: Sources,
    target: str | Path,
    options: RunOptions = RunOptions(),
    force: bool = False,
    progress: Progress = iter,
) -> Bundle:
    """Make a bundle and write it, all or nothing.

    Args:
        target: a folder, or an archive if the name ends in `.zip`.

    Raises:
        VerifierError: see `verifier.base.errors`; nothing is written then.
    """
    check_target(target, force)
    _refuse_inputs_inside(target, sources)
    bundle = make_bundle(sources, options, progress)
    write_bundle(bundle.files, target, force)
    return bundle


def make_bundle(sources: Sources, options: RunOptions = RunOptions(), progress: Progress = iter) -> Bundle:
    """Make a bundle in memory; errors as `build_bundle`."""
    options.refuse_stated_bounds("verify evidence build")
    if options.initial_context == "counted":
        said = "is a mean over initial states, and certificates are of single ones"
        raise UsageError(f"--initial-context counted {said}")
    options = options.by_default()
    with StormProcess() as storm:  # starts at once, so that Storm loads while the files are read
        request, inputs, own = _copied(sources, options)
        with files_named(partial(_by_own_names, own)), unpacked_inputs(inputs, request) as read:
            # The options as whoever checks will read them; limits are not among them.
            asked = request.options
            kept = replace(asked, limits=options.limits, engines=replace(options.engines, exact=asked.engines.exact))
            rebuilt = Study.of(read.inputs, kept)
            refuse_others(rebuilt.requirements, "verify evidence build")
            _check_count(rebuilt)
            check_context(read.context, request.context, rebuilt)
            given = _given(request, inputs, kept, storm)
            checks = len(rebuilt.grid.requirements) * len(rebuilt.grid.blocks) * len(list(planned(rebuilt)))
            with memory_limit(options.limits.memory_bytes), clock_of(kept, checks).running("making the results"):
                made = make_results(rebuilt, storm, progress)
            results = {path: text.encode() for path, text in made.items()}
            parts = read_parts(request, read, rebuilt, {**inputs, **results}, given)
            basis = derived(parts)
            texts = {path: text.encode() for path, text in basis.made.items()}
    files = {**inputs, **results, **texts}
    digest = digest_of(files[MANIFEST_FILE])
    omitted = {**parts.omitted, **basis.unrated}
    return Bundle(files, digest, parts.result.verdict.value, omitted, basis.standings, basis.case.status)


def _given(
    request: Request, inputs: Mapping[str, bytes], options: RunOptions, storm: StormProcess
) -> dict[str, Given]:
    """The runs that were put in; InputError for one that is not what its inputs give, or whose inputs are missing."""
    documents = {path: document_of(inputs[path], path) for path in request.given}
    runs = given_runs(documents, request, inputs, options)
    for path, given in runs.items():
        refuse_unfounded(path, documents[path], given)
        with memory_limit(options.limits.memory_bytes):
            wrong, _ = wrong_given(path, inputs[path], given, storm)
        for finding in wrong[:1]:
            said = f"found {finding.found}; expected {finding.expected}, computed again from its inputs"
            raise InputError(said, Place(path, path=finding.where))
    return runs


def _refuse_inputs_inside(target: str | Path, sources: Sources) -> None:
    """Refuse to replace a bundle that holds the inputs of the new one, or is one of them; UsageError."""
    if not Path(target).exists():
        return
    place, spec = Path(target).resolve(), read_spec(sources.spec)
    planners = [file.path for file in files_of(read_model(spec.model).planners)]
    for planner in (sources.spec, spec.model, sources.matrices, sources.context, *sources.given, *planners):
        if planner is not None and place in (Path(planner).resolve(), *Path(planner).resolve().parents):
            raise UsageError(f"{target}: {planner}, an input, lies there and would be replaced")


def _check_count(rebuilt: Study) -> None:
    """Refuse more files than a check reads, before anything is computed."""
    grid, most = rebuilt.grid, ReadingLimits().files // 2
    sides = 2 * (rebuilt.bounded + (rebuilt.options.decimals is None) + rebuilt.options.dependence_free)
    least = sides * len(grid.blocks) * len(grid.requirements)
    if least > most:
        raise LimitError(
            f"the bundle would hold {least} certificates or more; at most {most} are made",
            hint="narrow the scenarios: --planner, --environment, --sweep, --requirement",
        )


def _by_own_names(own: Mapping[str, Path], text: str) -> str:
    """A message that calls the inputs as the user does; their paths in the bundle are not there yet."""
    for path, file in own.items():
        text = text.replace(path, str(file))
    return text


def _copied(sources: Sources, options: RunOptions) -> tuple[Request, dict[str, bytes], Mapping[str, Path]]:
    """The request, and path -> bytes and own name of every input."""
    spec = read_spec(sources.spec)
    planners = files_of(read_model(spec.model).planners)
    origins = input_paths(spec, sources.matrices, sources.context, tuple(sources.given), planners)
    paths = list(origins)
    context = paths[3] if sources.context is not None else None
    rest = paths[4 if context else 3 :]
    given, own = tuple(rest[: len(sources.given)]), tuple(rest[len(sources.given) :])
    files = {path: read_text(file)[1] for path, file in origins.items()}
    documents, day, issued = dict[str, Path](), None, stated_day()
    if sources.context is not None and context is not None:
        declared = read_context(sources.context)
        day, issued = declared.declared.day, None if declared.identity.issued else issued
        documents = {
            path: Path(sources.context).parent / name
            for path, name in zip(documents_of(context, declared), declared.documents, strict=True)
        }
        check_paths([*files, *documents], "an input")
    request = Request(
        spec=paths[0],
        model=paths[1],
        matrices=paths[2],
        context=context,
        given=given,
        planners=own,
        documents=tuple(documents),
        asked=typed(options),
        command=tuple(sources.command),
        day=day,
        issued=issued,
    )
    files |= {path: read_bytes(file) for path, file in documents.items()}
    if spec.sha256 != digest_of(files[request.spec]):
        raise InputError("changed while it was read", Place(str(sources.spec)))
    results = [document_of(files[path], str(origins[path])) for path in given]
    for path, result in zip(given, results, strict=True):
        check_document(result, str(origins[path]))
        refuse_misfits(result, against_its_run(result, results))
    recorded = {REQUEST_FILE: document_text(request).encode(), SBOM_FILE: sbom_text().encode()}
    return request, {**recorded, **files}, {**origins, **documents}
