"""Which memory of the detector a run has: as asked for, or the contexts that the data support.

Where nothing is asked for, contexts are chosen as by `auto` if the matrices count them and nothing stands against it;
otherwise the detector is memoryless, and a note says why.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

from verifier.base.errors import UsageError
from verifier.base.numbers import decimal_text, fixed
from verifier.base.words import counted
from verifier.perception.confusion import EMPTY, ConfusionFile
from verifier.perception.confusion.context_selection import (
    Selection,
    log10_e_value,
    longest_run,
    persistent,
    selected_contexts,
)
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.counts import ContextCounts
from verifier.perception.confusion.dependence import CONTRADICTED_BELOW
from verifier.perception.confusion.document_types import LikelihoodRatio, UsedContexts
from verifier.perception.confusion.matrices import label_text
from verifier.perception.confusion.sanity import remark
from verifier.study.options import MEMORY_BY_DEFAULT, RunOptions
from verifier.systems.model import SystemModel

SUMMED = "contexts"
"""Kind of the remark that contexts are not used."""


def with_memory(
    file: ConfusionFile, model: SystemModel, options: RunOptions
) -> tuple[ConfusionFile, ContextCounts | None]:
    """The matrices with what they say of the memory that is used, and their counts by its contexts; None for none.

    Raises:
        UsageError: memory is asked for that the matrices do not count, the data are too few to choose it, or that is
            not known together with something else that is asked for.
    """
    used, counts = _with_memory(file, model, options)
    if options.dependence_free and file.by_context is not None:
        kept = [entry for entry in used.matrices.metadata.get("remarks", ()) if entry["kind"] == SUMMED]
        told = [remark("memory", text) for text in _first_looks(file, file.by_context, _columns(file, model))]
        used = _with_remarks(used, [*kept, *told])
    idle = {
        "--initial-context": options.initial_context != "start",
        "--empty-contexts": options.empty_contexts != "backoff",
        "--assume-contexts": options.assume_contexts,
    }
    for option in [option for option, given in idle.items() if given and counts is None]:
        raise UsageError(f"{option} is about a detector with memory, and here it has none: name --memory run:L")
    return used, counts


def _with_memory(
    file: ConfusionFile, model: SystemModel, options: RunOptions
) -> tuple[ConfusionFile, ContextCounts | None]:
    asked, by_context = options.memory, file.by_context
    if options.persist is not None:
        return _persistent(file, model, options, options.persist)
    if asked in (None, "none"):
        return file, None
    by_default = asked == MEMORY_BY_DEFAULT
    if by_context is None:
        if by_default:
            return file, None
        raise UsageError(
            f"--memory {asked}: the matrices '{file.name}' are not counted by context; count them again with "
            "verify confusion --memory run:10"
        )
    columns = _columns(file, model)
    try:
        _refuse_what_stands_against(file, model, options, by_context)
        if by_context.units is not None and (by_default or asked == "auto"):
            raise UsageError(
                f"contexts are chosen over drives, and these are counted by {by_context.units}: name run:L"
            )
        chosen = selected_contexts(by_context, columns) if by_default or asked == "auto" else None
        contexts = Contexts.parsed(str(asked)) if chosen is None else chosen.contexts
        counts = by_context.coarsened(contexts)
    except UsageError as error:
        if not by_default:
            raise
        return _noted(file, f"the detector is memoryless: {error}"), None
    if contexts.kind == "none":
        return _noted(file, f"the detector is memoryless, as the data support ({_losses(chosen)})"), None
    metadata = {**file.matrices.metadata, "contexts": _record(file, by_context, counts, columns)}
    told = [remark("memory", text) for text in _texts(counts, chosen, model, options)]
    file = replace(file, matrices=replace(file.matrices, metadata=metadata))
    return _with_remarks(file, told), counts


def _persistent(
    file: ConfusionFile, model: SystemModel, options: RunOptions, longest: int
) -> tuple[ConfusionFile, ContextCounts]:
    """For bounds if errors may persist for so many frames."""
    by_context = file.by_context
    if by_context is None:
        raise UsageError(
            f"--persist {longest}: the matrices '{file.name}' are not counted by context, so nobody knows how long "
            "errors last; count them again with verify confusion --memory run:50"
        )
    _refuse_what_stands_against(file, model, options, by_context)
    counts = persistent(by_context, longest)
    seen, more = longest_shown(file, model)
    told = f"the data show {counted(seen, 'wrong report')} in a row" + (" or more" if more else "")
    if (seen > longest or more) and not options.assume_persistence:
        hint = (
            "; verify confusion --memory run:50 tells longer ones apart"
            if more and by_context.contexts.cap < 50
            else ""
        )
        raise UsageError(
            f"--persist {longest}: {told}{hint}; name a longer time (50 at most), or accept it with "
            "--assume-persistence"
        )
    metadata = {**file.matrices.metadata, "contexts": _record(file, by_context, counts, [])}
    text = (
        f"errors about an object may persist for up to {counted(longest, 'frame')}, at whatever rates ({told}); the "
        "bounds are those of every such detector. P and intervals are not: they take the rates of the bin for errors"
    )
    file = replace(file, matrices=replace(file.matrices, metadata=metadata))
    return _with_remarks(file, [remark("memory", text)]), counts


def longest_shown(file: ConfusionFile, model: SystemModel) -> tuple[int, bool]:
    """The longest run of errors that counts by run show about what the model places; and whether it may be longer.

    Raises:
        ValueError: there are none.
    """
    if file.by_context is None:
        raise ValueError("the matrices are not counted by context")
    by_context, labels = file.by_context, file.matrices.labels
    columns = [*_columns(file, model), labels.index(EMPTY)]
    told = {at: (by_context.tracks or {}).get(label_text(labels[at])) for at in columns}
    shown, more = longest_run(by_context, [at for at, tracks in told.items() if tracks is None])
    known = [at for at, tracks in told.items() if tracks is not None]
    longest = max(
        longest_run(by_context, known)[0], *(tracks.longest_wrong_run for tracks in told.values() if tracks), shown
    )
    return longest, more and longest == shown


def _columns(file: ConfusionFile, model: SystemModel) -> list[int]:
    """Places of the true labels that name classes of the model."""
    classes = model.environment_classes()
    return [number for number, label in enumerate(file.matrices.labels) if label and label <= classes]


def _refuse_what_stands_against(
    file: ConfusionFile, model: SystemModel, options: RunOptions, by_context: ContextCounts
) -> None:
    """Refuse memory together with what is only known without; UsageError."""
    with_what = {
        "--mix": (
            options.mix is not None,
            "weights of bins are of single reports, and contexts go on from bin to bin",
        ),
        "--weights track": (options.weights == "track", "shares of tracks are not counted by context"),
        "--strategies": (options.strategies, "strategies are looked for against memoryless detectors"),
        "--rate-box and --dependence-free": (
            options.rate_box is not None and options.dependence_free,
            "rates of contexts are not those whatever the context",
        ),
        "a world that decides": (bool(model.decides), "choices are looked for against memoryless detectors"),
    }
    for what, why in [(what, why) for what, (there, why) in with_what.items() if there]:
        raise UsageError(
            f"--memory is not known together with {what}, for {why}: name --memory none, or leave that out"
        )
    step, period = model.step_s, by_context.period_s
    frame = None if step is None else step / model.frames
    if frame is not None and period is not None and frame != _exactly(period):
        raise UsageError(
            f"the matrices are counted every {period:g} s, and the model takes a report every {float(frame):g} s: "
            "contexts of one are not those of the other; count every so many frames, or name --memory none"
        )


def _exactly(period_s: float) -> Fraction:
    return Fraction(repr(period_s))


def _first_looks(file: ConfusionFile, by_context: ContextCounts, columns: list[int]) -> Iterator[str]:
    """Where first looks contradict, at 1 %, that errors have one rate in every step; of tracks as independent."""
    from scipy.stats import binomtest

    told = []
    for at, column in product(range(by_context.counts.shape[1]), columns):
        own = by_context.counts[0, at, :, :, column]
        whole, first = own.sum(axis=0), own[by_context.contexts.start]
        wrong, many = int(first.sum() - first[column]), int(first.sum())
        rate = 1 - whole[column] / max(whole.sum(), 1)
        if many and (p_value := binomtest(wrong, many, rate).pvalue) < CONTRADICTED_BELOW:
            name = f"{label_text(file.matrices.labels[column])} in {file.matrices.bin_text(at)}"
            told.append(
                (p_value, f"{name} wrong {wrong} of {many} times at first sight, {fixed(rate, 3)} of all frames")
            )
    if told:
        yield (
            "bounds however reports depend on each other take one rate in every step, which first looks contradict: "
            + "; ".join(text for _, text in sorted(told))
        )


def _noted(file: ConfusionFile, text: str) -> ConfusionFile:
    return _with_remarks(file, [remark(SUMMED, f"counts by context are summed; {text}")])


def _with_remarks(file: ConfusionFile, told: list[dict[str, str]]) -> ConfusionFile:
    """With these remarks instead of the one that contexts are not used."""
    matrices = file.matrices
    kept = [entry for entry in matrices.metadata.get("remarks", ()) if entry["kind"] != SUMMED]
    return replace(file, matrices=replace(matrices, metadata={**matrices.metadata, "remarks": [*kept, *told]}))


def _record(file: ConfusionFile, by_context: ContextCounts, used: ContextCounts, columns: list[int]) -> UsedContexts:
    """What a result says of the contexts, with the test of those that are used."""
    own, name = used.contexts, str(used.contexts)
    alike = ("run:1", "last:1") if own.cap == 1 else (name,)
    compared = []
    if by_context.tally is not None and file.sequences is not None and by_context.contexts != own:
        for column in columns:
            label = " and ".join(sorted(file.matrices.labels[column]))
            if by_context.counts[0, :, :-1, :, column].any():
                value = log10_e_value(by_context, [column], own, file.sequences.names)
                compared.append(LikelihoodRatio(label, str(by_context.contexts), value))
    return UsedContexts(
        kind=own.kind,
        cap=own.cap,
        of="outcome",
        gaps=used.gaps,
        period_s=used.period_s,
        units=used.units,
        tracks=used.tracks,
        used=name,
        tests=tuple(replace(test, contexts=name) for test in by_context.tests if test.contexts in alike),
        e_values=tuple(compared),
        replays=tuple(replace(test, contexts=name) for test in by_context.replays if test.contexts in alike),
    )


def _texts(used: ContextCounts, chosen: Selection | None, model: SystemModel, options: RunOptions) -> Iterator[str]:
    """What a reader must know of the memory."""
    why = "as asked for" if chosen is None else f"as the data support ({_losses(chosen)})"
    yield (
        f"the detector remembers {used.contexts} of each object, {why}; frames of a track without an annotation: "
        f"{used.gaps}; objects are independent given what went before"
    )
    if options.initial_context == "worst":
        numbered = (f"{number} {name}" for number, name in enumerate(used.contexts.names))
        yield f"every context is one to begin with, by its number: {', '.join(numbered)}"
    if model.frames > 1:
        yield (
            f"the chain follows frames: a step of the model is {model.frames} of them, in which objects stay where "
            "they are"
        )
    elif (used.period_s is None) != (model.step_s is None):
        who = "the model says no duration of a step" if model.step_s is None else "the matrices say no period"
        known = used.period_s if model.step_s is None else float(model.step_s)
        yield f"one frame per step is assumed: a frame or step is {decimal_text(_exactly(known or 0))} s, {who}"


def _losses(chosen: Selection | None) -> str:
    """Bits per frame on sequences left out, of what was compared."""
    losses = () if chosen is None else chosen.losses
    told = ", ".join(f"{loss.contexts} {fixed(loss.mean, 3)}" for loss in losses)
    return f"bits per frame on sequences left out: {told}"
