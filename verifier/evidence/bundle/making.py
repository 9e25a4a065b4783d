"""The results of a bundle, computed from its inputs: run, explanations, required recalls, alternatives, certificates.

What is to be made follows from inputs and request alone (`planned`). What of that cannot be made is listed with the
reason in `results/omitted.json`, so that nothing is left out silently.

The alternative policies under which a bundle repeats its run: does a verdict depend on a choice about the data?
"""

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeAlias

from verifier.analysis.counterexamples.explanation import DEFAULT_SETTINGS
from verifier.base.documents import read_document
from verifier.base.errors import InputError, LimitError, Place, UsageError, VerifierError, one_line
from verifier.base.files import document_text, json_of
from verifier.chains.chain import FROM
from verifier.checking.process import StormProcess
from verifier.evidence.bundle import layout
from verifier.evidence.bundle.certificates import certificates_of, certified, certified_recalls, why_none
from verifier.evidence.bundle.request import without_folder
from verifier.perception.confusion import EMPTY_COLUMN_POLICIES
from verifier.perception.confusion.matrices import EMPTY_CONTEXT_POLICIES
from verifier.pipeline import CheckedStudy, checked_study, result_of
from verifier.questions.explain.explaining import explained
from verifier.questions.require.question import Question
from verifier.questions.require.require_result import RequireResult
from verifier.questions.require.requiring import required
from verifier.study.case import Case, Study
from verifier.study.options import VERDICT_SOURCES, RunOptions
from verifier.study.results import RunResult
from verifier.systems.channel import FALSE_POSITIVE_POLICIES


@dataclass(frozen=True)
class Alternative:
    """One other choice.

    Attributes:
        name: of its file, without folder and ending.
        words: the choice, for people.
        options: of the run under it.
    """

    name: str
    words: str
    options: RunOptions

    @property
    def path(self) -> str:
        """Where the run under it lies."""
        return f"results/alternatives/{self.name}.json"


def alternatives(rebuilt: Study) -> tuple[Alternative, ...]:
    """Every other choice that applies.

    | choice                       | applies                                                            |
    |------------------------------|--------------------------------------------------------------------|
    | use of column "empty"        | always: what the detector reports where there is no object             |
    | rates of columns without data| where the run needed a policy for them                             |
    | rates of contexts without data| where the run filled any in                                       |
    | what decides a verdict       | where intervals and bounds are made                                |
    """
    options = rebuilt.options
    without_contexts = any(FROM in text for case in rebuilt.cases for text in case.assumed)
    bounded = options.confidence is not None and options.decimals is None
    choices: tuple[tuple[str, str, Iterable[Any], bool], ...] = (
        ("false_positives", "false positives", FALSE_POSITIVE_POLICIES, True),
        ("empty_columns", "columns without items", EMPTY_COLUMN_POLICIES, options.empty_columns != "error"),
        ("empty_contexts", "contexts without items", EMPTY_CONTEXT_POLICIES, without_contexts),
        ("verdict_from", "verdict from", VERDICT_SOURCES, bounded),
    )
    return tuple(
        Alternative(f"{name}_{other}", f"{words}: {other}", replace(options, **{name: other}))
        for name, words, known, applies in choices
        for other in (known if applies else ())
        if other not in ("error", getattr(options, name))
    )


def is_alike(options: RunOptions, rebuilt: Study) -> bool:
    """Whether a run differs from that of the bundle in what decides a verdict only: the system is the same."""
    return replace(options, verdict_from=rebuilt.options.verdict_from) == rebuilt.options


@dataclass(frozen=True)
class Omission:
    """A file that could not be made, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Omissions:
    """All of them, as a document."""

    schema: ClassVar[str] = "verifier.omitted"
    version: ClassVar[int] = 1
    omitted: tuple[Omission, ...]


OMITTED_WORDS = "what could not be made, and why"
_PROVEN = {"": "confidence bound", "point": "probability", "free": "bound whatever the dependence"}
_REFUSALS = (InputError, LimitError, UsageError)
"""What a result may fail with without the bundle failing: it does not apply here. Disagreeing engines are no such."""


class Runs:
    """Runs of a bundle: what they share is computed once, however many documents tell of it."""

    def __init__(self, rebuilt: Study, storm: StormProcess) -> None:
        """`storm` is a worker that runs."""
        self.storm = storm
        self._rebuilt = rebuilt
        self._solved: dict[str, CheckedStudy] = {}
        self._results: dict[str, RunResult] = {}

    def result(self, options: RunOptions, of: str = "") -> RunResult:
        """The run under these options, of the alternative `of`; errors as `verifier.pipeline.verified`."""
        if of not in self._results:
            alike = is_alike(options, self._rebuilt)
            solved = "" if alike else of
            if solved not in self._solved:
                rebuilt = self._rebuilt if alike else self._rebuilt.under(options)
                self._solved[solved] = checked_study(rebuilt, self.storm)
            self._results[of] = result_of(self._solved[solved], options)
        return self._results[of]

    def free_certificates(self) -> Iterator[tuple[str, str]]:
        """Path and text of the certificates of bounds whatever the dependence, in all runs that were made."""
        if not self._rebuilt.options.dependence_free:
            return
        from verifier.study.free import free_certificates  # linear programs take long to load

        for of, study in self._solved.items():
            made = free_certificates(study.cases, partial(layout.free_certificate_file, of=of))
            yield from ((path, raw.decode()) for path, raw in made.items())


@dataclass(frozen=True)
class Planned:
    """One result to be made."""

    path: str
    about: str
    make: Callable[[Runs], str]


Step: TypeAlias = Planned | tuple[int, Case]
Progress: TypeAlias = Callable[[Sequence[Step]], Iterable[Step]]
"""Wraps the list of what is to be made, for a progress bar."""


def planned(rebuilt: Study) -> Iterator[Planned]:
    """Every result beside the certificates, the run first."""
    options = rebuilt.options
    yield Planned(layout.RUN_FILE, "every requirement in every scenario", _run(options))
    about = "how each requirement fails, and what would help"
    yield Planned(layout.EXPLAIN_FILE, about, lambda runs: explanation_text(rebuilt, runs.result(options)))
    for number, requirement in enumerate(rebuilt.inputs.spec.requirements, 1):
        if requirement.target is not None and requirement.name in {known.name for known in rebuilt.grid.requirements}:
            about = f"what recall {requirement.name} asks of the detector"
            yield Planned(layout.require_file(number, requirement.name), about, _require(rebuilt, requirement.name))
    for other in alternatives(rebuilt):
        about = f"the run under another policy: {other.words}"
        yield Planned(other.path, about, _run(other.options, other.name))


def explanation_text(rebuilt: Study, run: RunResult) -> str:
    """The explanations of a run."""
    options = rebuilt.options  # they are of runs and their probabilities, and need no bounds
    told = rebuilt.under(options.without_free_bounds()) if options.dependence_free else rebuilt
    return explained(told, DEFAULT_SETTINGS, None, run=run).json_text()


def make_results(
    rebuilt: Study, storm: StormProcess, progress: Progress = iter, known: Container[str] = ()
) -> dict[str, str]:
    """Path -> text of everything that is planned and can be made, of the certificates, and of what was omitted.

    Args:
        storm: the model checker.
        progress: is given the results, then the blocks with certificates.
        known: paths of what could be made before, so that limits are no reason to leave it out.

    Raises:
        VerifierError: the run itself cannot be made, or engines disagree.
        LimitError: limits that are too small for what is known.
    """
    texts: dict[str, str] = {}
    omitted: list[Omission] = []
    runs = Runs(rebuilt, storm)
    for artefact in progress([*planned(rebuilt), *enumerate(rebuilt.cases)]):
        if not isinstance(artefact, Planned):
            texts.update(_certificates(rebuilt, *artefact, texts))
            continue
        try:
            texts[artefact.path] = artefact.make(runs)
        except _REFUSALS as error:
            if artefact.path == layout.RUN_FILE or (isinstance(error, LimitError) and artefact.path in known):
                raise
            omitted.append(omission(artefact.path, error))
    texts.update(runs.free_certificates())
    texts.update(_certificates_of_recalls(rebuilt, texts))
    omitted += _without_certificates(rebuilt)
    texts[layout.OMITTED_FILE] = omitted_text(omitted)
    return texts


def planned_words(rebuilt: Study, files: Iterable[str]) -> dict[str, str]:
    """Path -> what it is, for people: every result that is planned, and those of `files` that are certificates.

    How many certificates a bound needs is known when it is proven; so they are told by their names.
    """
    words = {layout.OMITTED_FILE: OMITTED_WORDS, **{artefact.path: artefact.about for artefact in planned(rebuilt)}}
    grid = rebuilt.grid
    for path in files:
        place = layout.place_of_certificate(path)
        if place is not None and place.block < len(grid.blocks) and place.requirement < len(grid.requirements):
            kind = _PROVEN[place.proves]
            of = f" of {place.of}" if place.of else ""
            name, block = grid.requirements[place.requirement].name, grid.blocks[place.block]
            words[path] = f"proof of a {kind}{of}: {name}, {block}"
    return words


def omission(path: str, error: VerifierError) -> Omission:
    """What is said of a file that could not be made."""
    return Omission(path, one_line(without_folder(str(error)).replace("\n", "; ")))


def omitted_text(omitted: Sequence[Omission]) -> str:
    """The document of what could not be made."""
    return document_text(Omissions(tuple(omitted)))


def read_omitted(raw: bytes, file: str = layout.OMITTED_FILE) -> dict[str, str]:
    """Path -> reason, from the bytes of a list of what was omitted; InputError where they are none."""
    omissions = read_document(Omissions, json_of(raw, file), file)
    if document_text(omissions).encode() != raw:
        raise InputError("the same list in other bytes than were written", Place(file))
    return {omission.path: omission.reason for omission in omissions.omitted}


def _run(options: RunOptions, of: str = "") -> Callable[[Runs], str]:
    return lambda runs: runs.result(options, of).json_text()


def _require(rebuilt: Study, name: str) -> Callable[[Runs], str]:
    return lambda runs: required(*asked_recall(rebuilt, name), runs.storm).json_text()


def asked_recall(rebuilt: Study, name: str) -> tuple[Study, Question]:
    """The study and what is asked of it in the document about the recall that a requirement needs."""
    selection = replace(rebuilt.options.selection, requirements=(name,))
    options = replace(rebuilt.options.without_free_bounds(), selection=selection, strategies=False)  # of the run
    return rebuilt.under(options), Question(requirement=name)


def _certificates(rebuilt: Study, number: int, case: Case, results: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Path and text of the certificates of one block: of the run, and of those under other policies in `results`."""
    objectives = case.objectives
    yield from certificates_of(rebuilt, number, objectives)
    sources = certified(rebuilt, "", number, objectives)
    for other in alternatives(rebuilt):
        if other.path in results and not is_alike(other.options, rebuilt):
            changed = rebuilt.under(other.options)
            sources += certified(changed, other.name, number, changed.cases[number].objectives)
    for source in sources:
        yield from source.texts()


def _certificates_of_recalls(rebuilt: Study, results: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Path and text of the certificates of the probabilities in answers about required recalls."""
    for number, requirement in enumerate(rebuilt.inputs.spec.requirements, 1):
        path = layout.require_file(number, requirement.name)
        if path in results:
            result = read_document(RequireResult, json.loads(results[path]), path)
            for recall in certified_recalls(rebuilt, number, result):
                if recall.source.of:
                    yield from recall.source.texts()


def _without_certificates(rebuilt: Study) -> Iterator[Omission]:
    """One entry for each block and requirement whose bounds come without certificates."""
    if not rebuilt.bounded:
        return
    for number, case in enumerate(rebuilt.cases):
        for place, objective in enumerate(case.objectives):
            reason = why_none(rebuilt, objective)
            if reason is not None:
                yield Omission(layout.certificates_of_pair(number, place), reason)
