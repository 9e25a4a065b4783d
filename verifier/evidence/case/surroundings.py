"""What an argument rests on and cannot show: contexts, assumptions with their status, and goals of people.

AMLAS names (stages, elements of its argument patterns, artefacts in brackets) are those of Hawkins et al., Guidance
on the Assurance of Machine Learning in Autonomous Systems (AMLAS), University of York, 2021 (arXiv:2102.01564).
"""

from collections.abc import Iterator, Sequence

from verifier.base.words import clipped, counted, probability_text, some_of
from verifier.evidence.case.drafting import Draft
from verifier.evidence.case.elements import ACPS, Kind
from verifier.evidence.case.requirements import grounds_of
from verifier.evidence.context import DUTIES, GOALS, LEFT_TO_PEOPLE, CaseContext, FrameList
from verifier.evidence.defeaters.about_data import matrices_behind, shared_frames, shared_sequences
from verifier.evidence.defeaters.finding import UNCONFIRMED
from verifier.evidence.defeaters.values import is_rate_of
from verifier.evidence.documents import Document
from verifier.evidence.following.rates import RATED
from verifier.evidence.rates.hazard import EVERY
from verifier.evidence.status import Grade, Status
from verifier.perception.confusion.data_set import record_of
from verifier.telling.confusion import matching_text

NOT_STATED = "not stated"


def top_contexts(draft: Draft) -> list[str]:
    """What the whole case is about."""
    context, detector = draft.stated, draft.stated.detector
    trained = NOT_STATED if detector.trained_on is None else some_of([*map(clipped, detector.trained_on)]) or "none"
    named = {EVERY: "every encounter"}
    met = [f"{named.get(name, clipped(name))}: {exposure}" for name, exposure in context.exposures.items()]
    people = [f"{what}: {clipped(context.responsible.get(key, NOT_STATED))}" for key, what in DUTIES.items()]
    contexts = [
        draft.context(f"System: {_stated(context.system)}", amlas="Stage 1, system description [C]"),
        draft.context(
            f"Operational design domain: {_stated(context.odd)}", amlas="Stage 1, operating environment [B]"
        ),
        draft.context(
            f"Detector: {_stated(detector.told)}", f"Trained on: {trained}", "Stage 1, ML component description [D]"
        ),
        draft.context(f"Test data: {_stated(context.dataset)}", amlas="Verification data [P]"),
        *_input_contexts(draft),
        draft.context(f"Exposure: {some_of(met, 8) or NOT_STATED}"),
        draft.context(f"Responsible for what this evidence does not show: {'; '.join(people)}"),
    ]
    return contexts + [draft.context(text) for text in (*_untargeted(draft.runs), *_unargued(draft))]


def argument_grounds(draft: Draft) -> list[str]:
    """Justifications and assumptions of the argument over requirements."""
    scenarios = "The scenarios are all environments and initial states that were asked for; the worst decides"
    justified = _verdict_justification(draft), draft.add(Kind.JUSTIFICATION, scenarios, amlas="Stage 6, J6.1")
    return [*justified, *grounds_of(draft)]


def left_to_persons(draft: Draft) -> list[str]:
    """Goals that no computation shows."""
    goals, matching = [_training_goal(draft)], _matching_text(draft)
    for duty in GOALS:
        row, note = LEFT_TO_PEOPLE[duty], _left_to(draft.stated, duty)
        text = row.goal.replace("{matching}", matching)
        goals.append(draft.person_goal(text, note, duty, row.amlas, duty in draft.stated.responsible))
    return goals


def _training_goal(draft: Draft) -> str:
    """That the detector was not trained on what it was tested on: refuted where both are named and share something;
    that they share nothing is as good as what is stated of the training, which is a declaration."""
    text, amlas = "The detector was not trained on the data it was tested on", "Stage 3, separation of data sets"
    context, trained = draft.stated, draft.stated.detector.trained_on
    matrices = [matrices_behind(run, draft.documents) for run in draft.runs]
    known = [matrix for matrix in matrices if matrix is not None and matrix.content.get("sequences")]
    duty, named, listed = "training_data", trained is not None, context.detector.trained_list
    frames, equal = _covering(context.detector.frames, matrices), shared_frames(context.detector)
    if equal:
        note = f"{equal} are among those trained on, by SHA-256"
        source = next(filter(None, matrices), draft.runs[0])
        return _refuted_training(draft, text, note, f"trained on {equal}", source, amlas)
    lists: tuple[str, ...] = ()
    unclear = list[str]()
    if context.detector.frames is not None and trained is None:
        count = counted(len(context.detector.frames[1].hashes), "tested frame")
        note = f"none of {count} is among those trained on, by SHA-256"
        if not frames:
            note += "; another list was counted, fewer are listed, or the matrices do not say how many were"
    elif trained is None or len(known) < len(draft.runs):
        note = "sequences trained on: not stated" if trained is None else "the matrices do not name their sequences"
        named = named or duty in context.responsible
    else:
        shared, unclear = shared_sequences(known, trained)
        tested = sum(map(len, {document.sha256: document.content["sequences"] for document in known}.values()))
        names = f" ({counted(len(trained), 'name')}, compared as they look)"
        how = "declared" if listed is None else f"listed in {clipped(listed[0])}{names}"
        note = f"{len(shared)} of {counted(tested, 'tested sequence')} are among those trained on, as {how}"
        if shared:
            told = f"trained on {some_of([*map(clipped, shared)])}"
            return _refuted_training(draft, text, note, told, known[0], amlas)
        lists = () if listed is None else (draft.listed(*listed), *dict.fromkeys(map(draft.solution, known)))
    lists += tuple(draft.listed(frame.file, frame.sha256) for frame in frames or ())
    note = f"{note}. {_left_to(context, duty, () if unclear else lists)}"
    return draft.person_goal(text, note, duty, amlas, named, lists, unclear)


def _covering(
    frames: tuple[FrameList, FrameList] | None, matrices: Sequence[Document | None]
) -> tuple[FrameList, FrameList] | None:
    """Lists of frames whose tested ones are those that were counted, by the list that the matrices name, or at least
    as many where they name none; else None."""
    known = {matrix.sha256: matrix.content for matrix in matrices if matrix is not None}.values()
    if frames is None or None in matrices or not all(entry.get("sequences") for entry in known):
        return None
    listed = {name for entry in known if (record := record_of(entry)) is not None for name in record.frames}
    few = sum(one["frames"] for entry in known for one in entry["sequences"]) > len(frames[1].hashes)
    return None if few or listed - {frames[1].sha256} else frames


def _refuted_training(draft: Draft, text: str, note: str, told: str, source: Document, amlas: str) -> str:
    """The goal that data are separate, which `told` refutes from a document."""
    more = {"amlas": amlas, "undeveloped": True, "defeated": True}
    status, grade = Status.VIOLATED, Grade.DECLARED
    identifier = draft.add(Kind.GOAL, text, note, (), status=status, grade=grade, **more)
    draft.refute(identifier, told, source)
    return identifier


def _input_contexts(draft: Draft) -> Iterator[str]:
    """Spec, model and matrices with their hashes."""
    words = {
        "spec": ("Requirements and targets", "Stage 1, allocated safety requirements [E]"),
        "model": ("System model: world, planners, scenarios", "Stage 1, system description [C]"),
        "confusion": ("Confusion matrices", "Stage 5, test results [Z]"),
    }
    inputs = dict.fromkeys(
        (str(file.role), file.name, file.sha256) for run in draft.runs for file in run.result.inputs
    )
    for role, name, digest in inputs:
        text, amlas = words.get(role, (role, ""))
        titles = [document.content.get("title") for document in draft.documents if document.sha256 == digest]
        title = f" ({clipped(titles[0])})" if titles and titles[0] else ""
        url = draft.url_of(digest) if titles else ""
        yield draft.context(f"{text}: {clipped(name)}{title}", f"SHA-256 {digest}", amlas, url)


def _verdict_justification(draft: Draft) -> str:
    sources = list(dict.fromkeys(run.result.settings.verdict_from for run in draft.runs))
    means = {
        "bounds": "confidence bounds, simultaneous over the run unless approximate, on the assumption of their tier",
        "interval": "the statistical interval, as far as its draws determine it",
        "point": "the probability for the given matrices alone",
    }
    text = "; ".join(f"{source}: {means[source]}" for source in sources)
    alone = any(remark.endswith(UNCONFIRMED) for run in draft.runs for remark in run.result.remarks)
    confirmed = "confirmed by a second engine" + (" where nothing else is remarked" if alone else "")
    said = (
        f"Probabilities are Storm's, {confirmed}; compared with the targets are {text}; no verdict rests on a "
        "model of the detector that the data contradict, unless that is accepted by name"
    )
    return draft.add(Kind.JUSTIFICATION, said)


def _matching_text(draft: Draft) -> str:
    matrices = [matrices_behind(run, draft.documents) for run in draft.runs]
    stated = filter(None, (document.content.get("matching") for document in matrices if document is not None))
    texts = dict.fromkeys(matching_text(entry) if isinstance(entry, dict) else str(entry) for entry in stated)
    return some_of([clipped(text, 200) for text in texts]) or NOT_STATED


def _untargeted(runs: Sequence[Document]) -> Iterator[str]:
    """Probabilities that nothing was asked of."""
    for run in runs:
        for requirement in run.result.requirements:
            if requirement.target is None:
                values = [number.probability for number in requirement.means or requirement.points]
                ends = requirement.with_unit(f"{probability_text(min(values))} to {probability_text(max(values))}")
                yield f"Reported without a target: {clipped(requirement.name)}, {requirement.asked_text}, {ends}"


def _unargued(draft: Draft) -> Iterator[str]:
    """Documents that nothing here argues from."""
    argued = {file.sha256 for run in draft.runs for file in run.result.inputs}
    rest = [
        f"{clipped(document.name)} ({document.kind}, SHA-256 {document.sha256[:12]}...)"
        for document in draft.documents
        if not (document.kind in ("run", "explain", "require") or document.sha256 in argued)
        and not (document.kind in RATED and any(is_rate_of(document, run) for run in draft.runs))
    ]
    if rest:
        yield f"Also at hand, and argued from by nothing here: {some_of(rest, 8)}"


def _left_to(context: CaseContext, duty: str, lists: object = ()) -> str:
    """What a goal rests on that nothing computes, `lists` among it, and who is responsible."""
    shown = lists or context.declared.shown(duty)
    rests = "Not shown by this evidence" if context.declared.faulty(duty) or not shown else "Rests on documents alone"
    person = context.responsible.get(duty)
    points = "".join(f"; confidence argument of {point}" for point, name in ACPS.items() if name == duty)
    return f"{rests}; responsible: {NOT_STATED if person is None else clipped(person)}{points}"


def _stated(text: str) -> str:
    return clipped(text, 600) if text else NOT_STATED
