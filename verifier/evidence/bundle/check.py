"""Checking a bundle: the whole story, from bytes to what they prove.

    archive read safely -> manifest and hashes -> results compared with the inputs -> derived files derived again
                                                                                  -> on request everything again

Whoever changes a file is found by its hash; whoever changes the hashes as well, by what is derived again; whoever
derives again as well, by certificates, replays and the second engine; whoever computes everything again from changed
inputs has built a bundle about other inputs in which nothing is wrong. Only the digest, known from elsewhere, tells
that one apart.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from verifier.base.budget import Clock, memory_limit
from verifier.base.errors import InputError, LimitError, NoAnswerError, Place, UsageError
from verifier.base.files import document_text, json_of
from verifier.base.libraries import RELEASED, __version__
from verifier.checking.process import StormProcess
from verifier.evidence.bundle.archive import DEFAULT_LIMITS as READING_LIMITS
from verifier.evidence.bundle.archive import ReadingLimits, read_bundle
from verifier.evidence.bundle.contents import check_cheaply, check_contents, check_recomputed, numbers_in
from verifier.evidence.bundle.derived_artefacts import Basis, derived, derived_row
from verifier.evidence.bundle.layout import CERTIFICATES, OMITTED_FILE
from verifier.evidence.bundle.making import Progress
from verifier.evidence.bundle.manifest import MANIFEST_FILE, Manifest, check_hashes, digest_of, read_manifest
from verifier.evidence.bundle.parts import Parts, read_parts, words_of
from verifier.evidence.bundle.request import (
    REQUEST_FILE,
    Request,
    Unpacked,
    request_of,
    unpacked_inputs,
    without_folder,
)
from verifier.evidence.bundle.runs_elsewhere import refuse_unfounded, wrong_given
from verifier.evidence.consistency import check_document, check_sums
from verifier.evidence.declarations import today
from verifier.evidence.differences import findings_of
from verifier.evidence.findings import CheckedCount, CheckReport, Finding, Grades, Log, Misstated, RequirementVerdict
from verifier.evidence.following.rates import against_its_run, alone
from verifier.evidence.identity import SBOM_FILE, refuse_other_versions
from verifier.evidence.paths import check_paths
from verifier.evidence.resting import refuse_misfits
from verifier.evidence.status import overall_text
from verifier.study.case import Study
from verifier.study.options import RunOptions
from verifier.systems.settings import Limits

NO_DIGEST = (
    "authenticity: a bundle rebuilt from other inputs would also pass. Demand the digest that was printed when it "
    "was built (--digest), or a signature by a key that you know (--signed-by)"
)
NOT_RECOMPUTED = (
    "how far confidence bounds are attained, required recalls, plans for further data, ranges over all strategies "
    "and Storm's own values: --recompute computes everything again and compares it byte for byte"
)
STATED = (
    "whether the inputs are true: counts and model, of the real detector and system, and what people declare; and "
    "what is recorded of how the results were made (the command, the versions of libraries)"
)
_REFUSED = (InputError, UsageError)
_MALFORMED = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError)


@dataclass
class CheckLog(Log):
    """The same, with the derived files once they are made again: always where nothing is wrong."""

    basis: Basis | None = None


@dataclass(frozen=True)
class CheckLimits:
    """What a check may take at most; a bundle could ask for anything.

    Attributes:
        system: of states and memory of the system that is rebuilt.
        timeout_s: of one formula on one chain; and, for each result in the bundle, of the whole check.
    """

    reading: ReadingLimits = READING_LIMITS
    system: Limits = Limits()
    timeout_s: float = 600.0

    def around(self, options: RunOptions) -> RunOptions:
        """The options of a run within these limits."""
        engines = replace(options.engines, timeout_s=self.timeout_s, product_states=self.system.states)
        return replace(options, engines=engines, limits=self.system)


DEFAULT_LIMITS = CheckLimits()


def check_bundle(
    path: str | Path,
    digest: str | None = None,
    recompute: bool = False,
    limits: CheckLimits = DEFAULT_LIMITS,
    progress: Progress = iter,
) -> CheckReport:
    """Check a bundle, offline and without running anything that it holds.

    Args:
        digest: SHA-256 that its manifest must have, in hexadecimal.
        recompute: also compute every result again, and every probability as an exact fraction with Storm.

    Raises:
        InputError: the bundle cannot be read at all.
        EngineError: the engines disagree or fail.
        NoAnswerError: nothing is wrong as far as the limits of the check allow to look.
    """
    name, files = Path(path).absolute().name, read_bundle(path, limits.reading)
    return check_files(name, files, digest, recompute, limits, progress)


def check_files(
    bundle: str,
    files: Mapping[str, bytes],
    digest: str | None = None,
    recompute: bool = False,
    limits: CheckLimits = DEFAULT_LIMITS,
    progress: Progress = iter,
    log: CheckLog | None = None,
) -> CheckReport:
    """As `check_bundle`, for the files of a bundle that is read.

    Args:
        bundle: its name.
        log: an empty one, for whoever wants more than the report.
    """
    check_paths(files, bundle)
    log = log or CheckLog()
    log.checked.append((len(files), "files read"))
    raw = files.get(MANIFEST_FILE)
    found_digest = "" if raw is None else digest_of(raw)
    manifest = _manifest(raw, found_digest, digest, log)
    altered = set[str]()
    if manifest is not None:
        wrong = check_hashes(files, manifest)
        altered = {finding.file for finding in wrong}
        log.findings += wrong
        log.checked.append((len(manifest.files), "files compared with their SHA-256"))
    results = sum(path.startswith("results/") for path in files)
    clock = Clock(limits.timeout_s * (1 + results))
    try:
        with memory_limit(limits.system.memory_bytes), clock.running("checking the bundle"):
            _sources(files, altered, progress if recompute else None, limits, log)
    except LimitError as error:
        if not log.findings:  # limits that are too small say nothing about the bundle
            message = f"no answer within the limits of this check: {without_folder(error.message)}"
            raise NoAnswerError(message, hint=error.hint) from None
        log.unchecked.append(f"what is beyond the limits of this check: {error.message}".replace("\n", " "))
        log.verdict = ""
    log.unchecked.append(STATED)
    demanded = digest is not None and found_digest == digest.lower()
    if not demanded:
        log.unchecked.append(NO_DIGEST)
    basis = None if log.findings else log.basis
    return CheckReport(
        bundle=bundle,
        digest=found_digest,
        digest_demanded=demanded,
        findings=tuple(dict.fromkeys(log.findings)),
        checked=tuple(CheckedCount(count, what) for count, what in log.checked),
        unchecked=tuple(log.unchecked),
        verdict=log.verdict,
        requirements=log.requirements,
        numbers=None if log.findings else log.numbers,
        status=overall_text(basis.standings, basis.case.status) if basis and basis.standings else "",
        title="" if manifest is None else manifest.title,
    )


def _manifest(raw: bytes | None, sha256: str, digest: str | None, log: Log) -> Manifest | None:
    """The manifest, if nothing is wrong with it in itself."""
    if digest is not None and sha256 != digest.lower():
        said = sha256 or "no manifest"
        log.findings.append(Finding(MANIFEST_FILE, "", f"SHA-256 {said}", f"{digest.lower()}, the digest demanded"))
    if raw is None:
        log.findings.append(Finding(MANIFEST_FILE, "", "nothing", "the list of all files"))
        return None
    try:
        manifest = read_manifest(raw)
    except InputError as error:
        log.findings.append(_refusal(error, MANIFEST_FILE))
        return None
    log.built_by = manifest.verifier
    if manifest.verifier not in (__version__, *RELEASED):
        said = f"{__version__}, or a release before it: check it with the version named"
        log.findings.append(Finding(MANIFEST_FILE, "/verifier", manifest.verifier, said))
    return manifest


def _sources(
    files: Mapping[str, bytes], altered: set[str], recompute: Progress | None, limits: CheckLimits, log: CheckLog
) -> None:
    """Derive again and look into the results, as far as what that starts from is intact."""
    broken = sorted(path for path in altered if derived_row(path) is None)
    if broken:
        log.unchecked.append(f"derived files and the numbers, because {broken[0]} is not what was built")
        return
    try:
        _looked_into(files, altered, recompute, limits, log)
        return
    except LimitError:
        raise
    except _REFUSED as error:
        log.findings.append(_refusal(error, ""))
    except _MALFORMED as error:
        # Documents keep to their schemas, and yet what refers to each other in them need not fit together.
        said = f"{type(error).__name__}: {error}".replace("\n", " ")
        log.findings.append(Misstated("", "", f"contents that do not fit together ({said})", "a bundle"))
    log.unchecked.append("what comes after that")


def _looked_into(
    files: Mapping[str, bytes], altered: set[str], recompute: Progress | None, limits: CheckLimits, log: CheckLog
) -> None:
    request = _request(files)
    with unpacked_inputs(files, request) as read:
        parts = _parts(files, request, Study.of(read.inputs, limits.around(request.options)), read, log)
        before = len(log.findings)
        _fit_together(parts, log)
        _versions(parts, log)
        check_contents(parts, log)
        _given(parts, log)
        fits = len(log.findings) == before
        if not fits:
            log.unchecked.append("derived files, because results and inputs do not fit together")
        else:
            _derived(files, altered, parts, log)
        if recompute is not None and log.built_by == __version__:
            check_recomputed(parts, log, recompute)
        else:
            left = check_cheaply(parts, log) if fits else []
            log.unchecked += [*log.until_recomputed, ", ".join((*left, NOT_RECOMPUTED))]
        _graded(parts, recompute is not None, log)


def _fit_together(parts: Parts, log: Log) -> None:
    """Whether each document follows from itself; the runs are looked at number by number beside their inputs."""
    for path, document in parts.documents.items():
        look = check_sums if document.kind == "run" and path not in parts.request.given else check_document
        try:
            look(replace(document, name=path))
            refuse_misfits(document, against_its_run(document, parts.documents.values()))
            if note := alone(document, parts.documents.values()):
                log.unchecked.append(f"{path}: {note}")
        except InputError as error:
            log.findings.append(_refusal(error, path, Misstated))


def _versions(parts: Parts, log: Log) -> None:
    """Whether results say that the program which built the bundle made them, and the bill of materials, which cannot
    be made again, names the versions that the run was made with."""
    for path, document in parts.documents.items():
        stated = (document.content.get("versions") or {}).get("verifier", log.built_by)
        if path not in parts.request.inputs and stated != log.built_by:
            said = f"{log.built_by}, which built the bundle"
            log.findings.append(Misstated(path, "/versions/verifier", str(stated), said))
    try:
        if SBOM_FILE in parts.files:
            refuse_other_versions(parts.files[SBOM_FILE], parts.run.content["versions"])
    except InputError as error:
        log.findings.append(_refusal(error, SBOM_FILE, Misstated))


def _given(parts: Parts, log: Log) -> None:
    """Compute runs that were put in again, from inputs that are here, and compare them."""
    again = 0
    with StormProcess() if any(given.studies for given in parts.given.values()) else nullcontext() as storm:
        for path, given in parts.given.items():
            try:
                refuse_unfounded(path, parts.documents[path], given)
            except InputError as error:
                log.findings.append(_refusal(error, path, Misstated))
            if storm is not None and given.studies:
                wrong, noted = wrong_given(path, parts.files[path], given, storm)
                log.findings += wrong
                log.unchecked += noted.unchecked
                again += 1
    if again:
        log.checked.append((again, "given runs computed again from their inputs and compared"))
    evidence = parts.context.declared.evidence.values()
    elsewhere = (stated for stated in evidence if stated.sha256 and not (stated.copied or stated.fault))
    if away := [f"{stated.name} ({stated.file})" for stated in elsewhere]:
        log.unchecked.append(f"documents of which the bundle has the SHA-256 alone: {', '.join(away)}")
    for stated in evidence:
        if not stated.fault_on(parts.context.declared.day) and (since := stated.fault_on(today())):
            log.unchecked.append(f"evidence {stated.name}, which {since}, after this bundle was built")
    for path in parts.request.given:
        if path in parts.documents and parts.documents[path].sha256 in parts.unverified:
            why = parts.unverified[parts.documents[path].sha256]
            log.unchecked.append(f"{path}, which is validated and not verified here: {why}")


def _graded(parts: Parts, recompute: bool, log: CheckLog) -> None:
    """What the requirements are, and how the numbers of the results were checked."""
    standings = () if log.basis is None else log.basis.standings
    status = {(standing.requirement, standing.planner): standing.told for standing in standings}
    log.verdict = parts.result.verdict.value
    log.requirements = tuple(
        RequirementVerdict(one.name, one.planner, one.verdict.value, status.get((one.name, one.planner), ""))
        for one in parts.result.requirements
    )
    results = (document.content for path, document in parts.documents.items() if path.startswith("results/"))
    count = sum(map(numbers_in, results))
    recomputed = count - log.proven if recompute else log.recomputed
    log.numbers = Grades(log.proven, recomputed, count - log.proven - recomputed)


def _request(files: Mapping[str, bytes]) -> Request:
    place = Place(REQUEST_FILE)
    if REQUEST_FILE not in files:
        raise InputError("is not there", place)
    content = json_of(files[REQUEST_FILE], REQUEST_FILE)
    request = request_of(content)
    if document_text(content if content["version"] < request.version else request).encode() != files[REQUEST_FILE]:
        raise InputError("the same request in other bytes than were written", place)
    return request


def _parts(files: Mapping[str, bytes], request: Request, rebuilt: Study, read: Unpacked, log: Log) -> Parts:
    """Inputs and results; whatever is missing or too much among the files is a finding."""
    about = words_of(request, rebuilt, files)
    missing = [path for path in about if path not in files and path != SBOM_FILE]  # releases before had none
    for path in sorted(path for path in files if path not in about and derived_row(path) is None):
        if log.built_by == __version__:
            log.findings.append(Finding(path, "", "a file that no bundle like this has", "nothing"))
        else:
            log.unchecked.append(f"{path}: no bundle of this version has such a file")
    parts = read_parts(request, read, rebuilt, files)
    for path in missing:
        if path not in parts.omitted:
            log.findings.append(Finding(path, "", "nothing", about[path]))
    for path in parts.omitted:
        if path not in missing and not path.startswith(f"{CERTIFICATES}/"):
            said = f"a reason for leaving out {path}"
            log.findings.append(Finding(OMITTED_FILE, "", said, "no such file is planned"))
        if path in files:
            log.findings.append(Finding(path, "", "a file that is said to be omitted", "nothing"))
    log.checked.append((len(parts.documents), "documents compared with their JSON Schema"))
    return parts


def _derived(files: Mapping[str, bytes], altered: set[str], parts: Parts, log: CheckLog) -> None:
    """Make every derived file again; one that is as the manifest says and differs all the same speaks against us."""
    log.basis = derived(parts)
    made = log.basis.made
    if log.built_by != __version__:
        other = f"built by verifier {log.built_by}, and this is {__version__}"
        log.unchecked.append(f"derived files and results byte for byte: {other}")
        return
    for path, text in made.items():
        expected = text.encode()
        if path not in files:
            log.findings.append(Finding(path, "", "nothing", "a derived file"))
        elif files[path] != expected:
            log.findings = [finding for finding in log.findings if finding.file != path or finding.where]
            log.findings += findings_of(files[path], expected, path, Finding if path in altered else Misstated)
    for path in sorted(path for path in files if path not in made and derived_row(path) is not None):
        log.findings.append(Finding(path, "", "a derived file that these inputs do not give", "nothing"))
    log.checked.append((len(made), "derived files made again and compared byte for byte"))


def _refusal(error: InputError | UsageError, file: str, kind: type[Finding] = Finding) -> Finding:
    place = error.place if isinstance(error, InputError) else Place()
    message = error.message if isinstance(error, InputError) else str(error)
    line = "" if place.line is None else f"line {place.line}"
    return kind(place.file or file, place.path or line, message.replace("\n", " "), "what was built")
