"""What a result must say about where it comes from, and what its reader must know."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier import __version__
from verifier.analysis.confidence import Data
from verifier.analysis.dependence import dependence_remark
from verifier.analysis.intervals import LARGEST_DRAWS, fewest_draws
from verifier.analysis.settings import ConfidenceSettings
from verifier.checking.requirements import TwoEngineValues
from verifier.checking.strategies import StrategyRange
from verifier.confusion import EMPTY, ConfusionFile, ConfusionMatrices
from verifier.confusion.matrices import label_text
from verifier.expressions import to_text
from verifier.ltl import read_otherwise_by_prism
from verifier.options import RunOptions
from verifier.results import InputFile
from verifier.scenarios import Block, Grid, number_text
from verifier.specs import Specification
from verifier.systems.model import SystemModel
from verifier.systems.skeleton import Skeleton

Mask = NDArray[np.bool_]
MATRICES_SAY = (
    "distance",
    "matching",
    "false_alarms",
    "grouping",
    "score_threshold",
    "where",
    "dependence",
    "source",
)
"""What a result repeats of a confusion document."""


def own_versions() -> dict[str, str]:
    """Versions of this program and of what it computes with, where no model checker takes part."""
    return {
        "verifier": __version__,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
    }


def program_versions() -> dict[str, str]:
    """Versions of this program and of the libraries that compute with it; Storm answers for itself."""
    return {**own_versions(), "stormpy": version("stormpy")}


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Versions of optional libraries, by the names they are installed under; those that are missing are left out."""
    found = {}
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def input_files(spec: Specification, model: SystemModel, confusion: ConfusionFile) -> tuple[InputFile, ...]:
    """The files that went in, without folders: equal inputs give equal results wherever they lie."""
    return (
        InputFile.of("spec", spec.file or "", spec.sha256),
        InputFile.of("model", model.file, model.sha256),
        InputFile.of("confusion", confusion.name, confusion.sha256),
    )


def matrices_record(confusion: ConfusionFile) -> dict[str, Any]:
    """What the matrices are and how they were made, as far as their file says it.

    Of the file's own words: how distance was measured, the matching policy, what became of false alarms, which
    objects were grouped, the member of a family and the bins that were chosen, whether successive frames depend on
    each other, and the source.
    """
    matrices, metadata = confusion.matrices, confusion.matrices.metadata
    return {
        "labelling": matrices.labelling,
        "labels": [label_text(each) for each in matrices.labels],
        "bins": [matrices.bin_text(index) for index in range(matrices.bin_count)],
        "items": int(matrices.counts.sum()),
        "sequences": None if confusion.sequences is None else len(confusion.sequences.names),
        **{key: metadata[key] for key in MATRICES_SAY if key in metadata},
    }


def run_settings(grid: Grid, options: RunOptions, data: Data | None) -> dict[str, Any]:
    """Every choice that can change a number, by name; `data` says how intervals were made, where they were."""
    systems = [block.system for block in grid.blocks]
    left_out = {"environments_left_out": list(grid.left_out)} if grid.left_out else {}
    return left_out | {
        "planners": {
            block.planner.name: {"kind": block.planner.kind, "pick": block.planner.pick} for block in grid.blocks
        },
        "environments": list(dict.fromkeys(block.environment for block in grid.blocks)),
        "set": {
            name: value if isinstance(value, str) else number_text(value) for name, value in grid.settings.items()
        },
        # Constants that a sweep changes, directly or through others, differ from point to point.
        "constants": {
            name: number_text(value)
            for name, value in systems[0].constants.items()
            if all(each.constants[name] == value for each in systems)
        },
        "synthesised_from": None if grid.goal_formula is None else to_text(grid.goal_formula, parenthesise=True),
        "initial": None if grid.initial is None else to_text(grid.initial),
        "where": dict(options.where),
        "score_threshold": options.score_threshold,
        "canonical": options.canonical,
        "empty_columns": options.empty_columns,
        "false_alarms": options.false_alarms,
        "endless": options.endless,
        "round_transitions": options.decimals,
        "exact": options.engines.exact,
        "verdict_from": "point" if data is None else options.verdict_from,
        "confidence": None if data is None or options.confidence is None else _settings_of(options.confidence, data),
    }


def _settings_of(settings: ConfidenceSettings, data: Data) -> dict[str, Any]:
    return {
        "level": settings.level,
        "interval": data.choice.kind,
        "reason": data.choice.reason,
        "prior": settings.prior,
        "draws": data.draws,
        "seed": settings.seed,
        "semantics": settings.semantics,
        "events": len(data.events),
    }


def run_remarks(
    matrices: ConfusionMatrices,
    options: RunOptions,
    assumed: Iterable[str],
    engines: Iterable[str],
    data: Data | None,
) -> tuple[str, ...]:
    """What a reader must know to read the numbers rightly.

    Args:
        matrices: as read from the file.
        options: of the run.
        assumed: descriptions of the matrix columns that were needed and had no items.
        engines: what the engines had to say about single requirements.
        data: how intervals were made, where they were.
    """
    remarks = list(dict.fromkeys(engines))
    columns = list(dict.fromkeys(assumed))
    if columns:
        listed = ", ".join(columns[:4]) + (f" and {len(columns) - 4} more" if len(columns) > 4 else "")
        leaning = "" if data is None else "; intervals and guaranteed bounds do not lean on that"
        remarks.append(f"no items with {listed}: rates assumed by policy '{options.empty_columns}'{leaning}")
    dependence = dependence_remark(matrices.metadata)
    if dependence is not None:
        remarks.append(dependence)
    if data is not None and data.choice.remark is not None:
        remarks.append(data.choice.remark)
    if data is not None and options.confidence is not None:
        remarks += _draws_remark(data.draws, options.confidence.level)
    if options.false_alarms != "ignore" and not _reports_where_nothing_stands(matrices):
        stated = matrices.metadata.get("false_alarms")
        reason = {
            "dropped": "the matrices were made without unmatched detections (false alarms)",
            "counted": "no false alarm was counted",
        }.get(str(stated), "column 'empty' of the matrices holds no report, and they do not say why")
        remarks.append(f"{reason}, so where nothing stands the detector reports nothing")
    if options.decimals is not None:
        remarks.append(
            f"transition probabilities were rounded to {options.decimals} decimals; rows need not sum to 1, and the "
            "values are no probabilities of the system"
        )
    if options.endless:
        remarks.append("runs never end: after every stop the next misdetection counts")
    return tuple(remarks)


def _draws_remark(draws: int, level: float) -> list[str]:
    """Say where an interval has too few draws behind it."""
    needed = fewest_draws(level)
    if draws >= needed:
        return []
    plenty = "" if needed > LARGEST_DRAWS else f"; --draws {needed} or more would"
    return [f"{draws} draws of the matrices do not determine the ends of intervals of this level{plenty}"]


def reading_remarks(grid: Grid) -> Iterator[str]:
    """Say how a formula is read that PRISM and Storm would read differently."""
    for each in grid.requirements:
        formula = each.text[each.text.find("[") + 1 : each.text.rfind("]")]
        if read_otherwise_by_prism(formula):
            yield (
                f"{each.name}: read as {to_text(each.original, parenthesise=True)}. Temporal operators bind tighter "
                "than & and | here, as in Spot; PRISM and Storm would read it differently"
            )


def block_remarks(
    block: Block,
    grid: Grid,
    skeleton: Skeleton,
    won: Mask | None,
    values: list[TwoEngineValues],
    strategies: tuple[StrategyRange, ...],
) -> Iterator[str]:
    """What a reader must know about the initial states and the single requirements of one block.

    Args:
        won: (m,) for a synthesised planner the initial states from which it can win, else None.
    """
    yield from start_remarks(block, skeleton, won)
    for requirement, found in zip(grid.requirements, values, strict=True):
        if found.remark is not None:
            yield f"{requirement.name}: {found.remark}"
    for requirement, found_range in zip(grid.requirements, strategies, strict=False):
        if not found_range.confirmed:
            yield f"{requirement.name}: the range over all winning strategies is Storm's alone, not confirmed"


def start_remarks(block: Block, skeleton: Skeleton, won: Mask | None) -> Iterator[str]:
    """What a reader must know about the initial states of one block; `won` as for `block_remarks`."""
    if skeleton.terminal[skeleton.starts].all():
        yield f"{block}: every initial state is terminal; the episode is over at once"
    if won is not None and not won.all():
        yield (
            f"{block}: from {int((~won).sum())} of {len(won)} initial states no controller meets the requirements "
            "even with perfect perception; there the planner follows its rules"
        )


def _reports_where_nothing_stands(matrices: ConfusionMatrices) -> bool:
    """Whether column 'empty' has any item that is reported as something."""
    empty = matrices.column_of(EMPTY)
    column = matrices.counts[:, :, empty]
    return bool(column.sum() > column[:, empty].sum())
