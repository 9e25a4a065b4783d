"""What a result must say about where it comes from, and what its reader must know."""

import contextlib
import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError

from verifier.analysis.channel_test import ClassTest, CountedTest, dependence_remark, memory_remark
from verifier.analysis.confidence import Data
from verifier.analysis.intervals.intervals import alpha_of, fewest_draws
from verifier.analysis.intervals.rate_intervals import difference_remark
from verifier.analysis.intervals.tiers import BoundsBasis
from verifier.analysis.settings import LARGEST_DRAWS, ConfidenceSettings
from verifier.base.errors import NoAnswerError
from verifier.base.libraries import own_versions, version_of
from verifier.base.numbers import decimal_text, level_text
from verifier.base.words import counted, first_of
from verifier.chains.chain import FROM
from verifier.checking.enclosure import TwoEngineValues
from verifier.language.expressions import to_text
from verifier.language.ltl import read_otherwise_by_prism
from verifier.language.specs import Specification
from verifier.perception.confusion import EMPTY, ConfusionFile, ConfusionMatrices
from verifier.perception.confusion.document_types import RemarkRecord
from verifier.perception.confusion.matrices import label_text
from verifier.perception.confusion.sanity import remark_texts
from verifier.study.case import Case, Study
from verifier.study.inputs import Block, Grid
from verifier.study.optima import StrategyRange
from verifier.study.options import RunOptions
from verifier.study.records import ConfidenceRecord, MatricesRecord, PlannerRecord, SettingsRecord
from verifier.study.results import RunInput
from verifier.systems.behaviour import questions_of
from verifier.systems.model import SystemModel
from verifier.systems.model_parts import EMPTY_CLASS, files_of

MATRICES_SAY = (
    "distance", "matching", "false_positives", "grouping", "score_threshold", "where", "mix", "localisation",
    "dependence", "contexts", "source",
)  # fmt: skip
"""What a result repeats of a confusion document."""


def program_versions() -> dict[str, str]:
    """Versions of this program and of the libraries that compute with it; Storm answers for itself."""
    return {**own_versions(), "stormpy": version_of("stormpy")}


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Versions of optional libraries, by the names they are installed under; those that are missing are left out."""
    versions = {}
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version_of(name)
    return versions


def input_files(spec: Specification, model: SystemModel, confusion: ConfusionFile) -> tuple[RunInput, ...]:
    """The files that went in, without folders: equal inputs give equal results wherever they lie."""
    return (*model_files(spec, model), RunInput.of("confusion", confusion.name, confusion.sha256))


def model_files(spec: Specification, model: SystemModel) -> tuple[RunInput, ...]:
    """Those without the matrices."""
    return (
        RunInput.of("spec", spec.file or "", spec.sha256),
        RunInput.of("model", model.file, model.sha256),
        *(RunInput.of("planner", file.name, file.sha256) for file in files_of(model.planners)),
    )


def matrices_record(confusion: ConfusionFile, drawn: ConfusionMatrices | None = None) -> MatricesRecord:
    """What the matrices are and how they were made, as far as their file says it; `drawn` as for `run_remarks`."""
    matrices, metadata = confusion.matrices, confusion.matrices.metadata
    return MatricesRecord(
        labelling=matrices.labelling,
        labels=tuple(label_text(label) for label in matrices.labels),
        bins=tuple((drawn or matrices).bin_text(index) for index in range((drawn or matrices).bin_count)),
        items=matrices.item_count,
        sequences=None if confusion.sequences is None else len(confusion.sequences.names),
        remarks=tuple(RemarkRecord(**remark) for remark in metadata.get("remarks", ())),
        **{name: metadata[name] for name in MATRICES_SAY if name in metadata},
    )


def run_settings(study: Study, options: RunOptions, data: Data | None) -> SettingsRecord:
    """Every choice that can change a number; `data` says how intervals were made, where they were."""
    grid, tables = study.grid, _tables(study)
    systems = [block.system for block in grid.blocks]
    return SettingsRecord(
        environments_left_out=tuple(grid.left_out),
        planners={
            planner.name: PlannerRecord(planner.kind, planner.pick, tables.get(planner.name))
            for planner in (block.planner for block in grid.blocks)
        },
        environments=tuple(dict.fromkeys(block.environment for block in grid.blocks)),
        set_={
            name: value if isinstance(value, str) else decimal_text(value) for name, value in grid.settings.items()
        },
        # Constants that a sweep changes, directly or through others, differ from point to point.
        constants={
            name: decimal_text(value)
            for name, value in systems[0].constants.items()
            if all(system.constants[name] == value for system in systems)
        },
        synthesised_from=None if grid.goal_formula is None else to_text(grid.goal_formula, parenthesise=True),
        initial=None if grid.initial is None else to_text(grid.initial),
        round_transitions=options.decimals,
        exact=options.engines.exact,
        verdict_from="point" if data is None else options.verdict_from,
        confidence=None if data is None or options.confidence is None else _confidence(options.confidence, data),
        **{name: getattr(options, name) for name in _AS_ASKED},
        memory=None if study.inputs.contexts is None else study.memory,
        **{name: getattr(options, name) for name in _OF_MEMORY if study.inputs.contexts is not None},
    )


def _confidence(settings: ConfidenceSettings, data: Data) -> ConfidenceRecord:
    return ConfidenceRecord(
        interval=data.choice.kind,
        reason=data.choice.reason,
        draws=data.draws,
        events=len(data.events),
        bounds=data.basis,
        **{name: getattr(settings, name) for name in ("level", "prior", "seed", "semantics")},
    )


_AS_ASKED = (
    "where", "score_threshold", "canonical", "empty_columns", "false_positives", "endless", "strict",
    "assume_memoryless",
)  # fmt: skip
"""Options that a result records under their own names."""
_OF_MEMORY = ("initial_context", "empty_contexts", "assume_contexts")
"""Likewise, where the detector has memory."""


DROPPED = "the matrices were made without unmatched detections (false positives)"
"""Then column `empty` is held by convention (`verifier.analysis.intervals.intervals`)."""
OF_THE_MEAN = (
    "{numbers} are for the mean matrix over {unit}s: where {unit}s differ, errors in successive steps "
    "depend on each other through the {unit}, and the mean of P over {unit}s is another number"
)
"""What no bound on rates says anything about."""


def run_remarks(
    matrices: ConfusionMatrices,
    options: RunOptions,
    assumed: Iterable[str],
    engines: Iterable[str],
    data: Data | None,
    tests: Iterable[ClassTest],
    drawn: ConfusionMatrices | None = None,
) -> tuple[str, ...]:
    """What a reader must know to read the numbers rightly.

    Args:
        matrices: as read from the file.
        assumed: descriptions of the matrix columns that were needed and had no items.
        engines: what the engines had to say about single requirements.
        data: how intervals were made, where they were.
        tests: of the classes that the chains draw, see `class_tests`.
        drawn: the matrices that the chains are made from, where these have other bins.
    """
    remarks = list(dict.fromkeys(engines))
    columns = list(dict.fromkeys(assumed))
    affected = "" if data is None else " (affects the point estimate only, not intervals and bounds)"
    filled = [column for column in columns if FROM in column]
    if filled:
        remarks.append(
            f"contexts without items, {len(filled)} of those that are drawn: rates filled in by policy "
            f"'{options.empty_contexts}'{affected}: {first_of(filled, between='; ')}"
        )
    columns = [column for column in columns if FROM not in column]
    if columns:
        remarks.append(
            f"no items with {first_of(columns)}: rates filled in by policy '{options.empty_columns}'{affected}"
        )
    tests = tuple(tests)
    dependence = dependence_remark(test for test in tests if isinstance(test, CountedTest))
    against = [*([] if dependence is None else [dependence]), *map(memory_remark, tests)]
    remarks += [name for name in against if name]
    remarks += remark_texts(matrices.metadata)
    if data is not None and data.choice.remark is not None:
        remarks.append(data.choice.remark)
    if data is not None:
        named = drawn or (matrices.canonical() if options.canonical else matrices)
        difference = difference_remark(data.differences, named)
        remarks += [] if difference is None else [difference]
    if data is not None and options.confidence is not None:
        remarks += draws_remark(data.draws, data.basis)
        remarks += _ceiling_remark(data.basis)
        numbers = "P, intervals and bounds" if data.box is None else "P and intervals"
        remarks += [] if data.drives is None else [OF_THE_MEAN.format(numbers=numbers, unit=data.basis.unit)]
    if options.false_positives != "ignore" and not _reports_where_nothing_stands(matrices):
        stated = matrices.metadata.get("false_positives")
        reason = {"dropped": DROPPED, "counted": "no false positive was counted"}.get(
            str(stated), "column 'empty' of the matrices holds no report, and they do not say why"
        )
        remarks.append(f"{reason}, so the model contains no false positives")
    if options.decimals is not None:
        remarks.append(
            f"transition probabilities were rounded to {options.decimals} decimals; rows may not sum to 1, so the "
            "results are not probabilities: use them only to reproduce published numbers"
        )
    if options.dependence_free:
        frames = ", and counts weigh it by its frames; --weights track weighs each object once"
        remarks.append(
            "bounds however reports depend on each other suppose that each report has in every step the rate of its "
            "bin and true label, which is not tested, and are about an object drawn at random"
            + (frames if options.weights == "item" else "")
        )
    if options.endless:
        remarks.append(
            "no terminal states (--endless): paths are infinite, so any recurring error eventually violates an "
            "always-requirement"
        )
    return tuple(remarks)


def _ceiling_remark(basis: BoundsBasis) -> list[str]:
    """Say what so few drives cannot show, whatever their outcome."""
    if basis.ceiling is None:
        return []
    drives = f"{basis.drives} {basis.unit}{'' if basis.drives == 1 else 's'}"
    most = math.ceil(basis.ceiling * 1000) / 1000  # rounded down it would deny what can be shown
    return [
        f"with {drives} no rate above {most:g} can be shown, whatever their outcome and however many items they hold"
    ]


def draws_remark(draws: int, basis: BoundsBasis) -> list[str]:
    """Say where an interval, or bounds that are drawn, have too few draws behind them."""
    level, ends = basis.level, f"the ends of a {level_text(basis.level)} interval"
    if basis.tier == "approximate" and basis.looks > 1:
        level, ends = float(1 - alpha_of(level) / basis.looks), f"bounds at {basis.looks} looks"
    needed = fewest_draws(level)
    if draws >= needed:
        return []
    plenty = "" if needed > LARGEST_DRAWS else f"; use --draws {needed} or more"
    return [f"{counted(draws, 'draw is', 'draws are')} too few for {ends}{plenty}"]


def grid_remarks(grid: Grid, false_positives: str, matrices: ConfusionMatrices) -> Iterator[str]:
    """What a reader must know about all scenarios at once.

    Args:
        grid: the scenarios.
        false_positives: the policy, one of `FALSE_POSITIVE_POLICIES`.
    """
    asking = dict.fromkeys(
        block.planner.name for block in grid.blocks if questions_of(block.system, block.planner, None).asks_within
    )
    if matrices.localisation is not None and asking:
        items = counted(int(matrices.localisation.sum()), "item")
        yield f"planner {first_of(list(asking))}: reported distances err as {items} say, which are taken as exact"
    for requirement in grid.requirements:
        formula = requirement.text[requirement.text.find("[") + 1 : requirement.text.rfind("]")]
        if read_otherwise_by_prism(formula):
            yield (
                f"{requirement.name}: read as {to_text(requirement.original, parenthesise=True)}. Temporal operators "
                "bind tighter than & and | here, as in Spot; PRISM and Storm would read it differently"
            )
    decides = grid.blocks[0].system.model.decides
    if decides:
        quoted = ", ".join(f"'{name}'" for name in decides)
        yield (
            f"the world decides {quoted}: Pmin and Pmax are the least and the greatest probability over all it does. "
            "It knows the state and the past, not the reports of the step. Where it is on one side with the matrix, "
            "bounds are over both together; at their other end it keeps to one strategy"
        )
    if false_positives != "ignore":
        yield _places_remark(grid, beside_objects=false_positives == "background")


def _places_remark(grid: Grid, *, beside_objects: bool) -> str:
    """Where alone a false positive can arise: the channel draws column 'empty' for what the model declares, and a
    road without any place is one on which the detector sees nothing (`verifier.systems.channel`)."""
    placed = {
        block.environment: {name for placed in block.system.environment(block.environment) for name in placed.classes}
        for block in grid.blocks
    }
    viewed = dict.fromkeys(block.system.field_of_view_m for block in grid.blocks)
    if set(viewed) != {None}:
        ends = (f"{float(view[0]):g} to {float(view[1]):g} m" if view else "none (places alone)" for view in viewed)
        told = f"false positives arise in every bin of the field of view, {' or '.join(ends)}, without an object"
        return f"{told}, and beside every object" if beside_objects else told
    where = "places and objects" if beside_objects else "places"
    able = [name for name, classes in placed.items() if (classes if beside_objects else EMPTY_CLASS in classes)]
    declared = f"here in environment {first_of(able)}" if able else "of which there are none here"
    return f"false positives arise only in the bins of declared {where}, {declared}; the model has no fields of view"


def noted(noticed: Iterable[tuple[Block, Iterable[str]]]) -> Iterator[str]:
    """What was noted in single blocks: each note once, with the blocks in which it holds."""
    where: dict[str, list[str]] = {}
    count = 0
    for block, notes in noticed:
        count += 1
        for note in notes:
            where.setdefault(note, []).append(str(block))
    for note, blocks in where.items():
        yield note if len(blocks) == count else f"{note} ({first_of(blocks, between='; ')})"


def _tables(study: Study) -> dict[str, str]:
    """Planner from elsewhere -> hash of what it does in all its cases; without those that limits leave out."""
    tables: dict[str, list[str]] = {}
    for case in study.cases:
        if case.planner.is_foreign:
            with contextlib.suppress(NoAnswerError):
                tables.setdefault(case.planner.name, []).append(case.states.table)
    return {
        name: row[0] if len(row) == 1 else hashlib.sha256("".join(row).encode()).hexdigest()
        for name, row in tables.items()
    }


def case_remarks(case: Case, values: Sequence[TwoEngineValues], strategies: Sequence[StrategyRange]) -> Iterator[str]:
    """What a reader must know about the initial states and the single requirements of one case."""
    yield from start_remarks(case)
    for requirement, value in zip(case.study.requirements, values, strict=True):
        if value.remark is not None:
            yield f"{requirement.name}: {value.remark}"
    for requirement, found_range in zip(case.study.requirements, strategies, strict=False):
        if not found_range.confirmed:
            yield f"{requirement.name}: the range over all winning strategies is Storm's alone, not confirmed"


def start_remarks(case: Case) -> Iterator[str]:
    """What a reader must know about the initial states of one case."""
    memory = case.study.matrices.memory
    if memory is not None and case.study.options.initial_context == "worst":
        yield (
            "initial states are told apart by what the detector remembers there, by number: "
            f"{', '.join(f'{number} {name}' for number, name in enumerate(memory.contexts.names))}"
        )
    if case.states.forgets:
        yield (
            f"{case}: what the detector remembers begins again where others stand together, a place beside objects "
            "is another, or an object is of another class"
        )
    if case.states.terminal[case.states.starts].all():
        yield f"{case}: every initial state is terminal; the episode is over at once"
    if case.won is not None and not case.won.all():
        yield (
            f"{case}: from {int((~case.won).sum())} of {len(case.won)} initial states no controller meets the "
            "requirements even with perfect perception; there the planner follows its rules"
        )


def _reports_where_nothing_stands(matrices: ConfusionMatrices) -> bool:
    """Whether column 'empty' has any item that is reported as something."""
    empty = matrices.column_of(EMPTY)
    column = matrices.counts[:, :, empty]
    return bool(column.sum() > column[:, empty].sum())
