"""What `verify require` found, as values: frozen, complete, and able to give their JSON document.

The document is byte-stable, like that of `verify run`; its schema is `require.schema.json` beside this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from verifier.analysis.channel_test import Channel
from verifier.base.documents import json_values
from verifier.base.errors import ExitCode
from verifier.base.files import document_text
from verifier.base.numbers import decimal_text
from verifier.base.result import Result
from verifier.checking.verdicts import Verdict, verdict_text
from verifier.study.points import Point
from verifier.study.results import InputFile, point_document

SCHEMA_NAME = "verifier.require"
SCHEMA_VERSION = 1


class Outcome(Enum):
    """What became of the search for one planner.

    | outcome       | meaning                                                                                  |
    |---------------|------------------------------------------------------------------------------------------|
    | `FOUND`       | there is a least recall, and Storm confirms that the requirement is met there            |
    | `ONLY_IN_GAPS`| the requirement is met for some recalls, but not up to perfect recall                    |
    | `INFEASIBLE`  | no recall tried meets it                                                                 |
    | `INDEPENDENT` | the recalls in question make no difference to the requirement                            |
    """

    FOUND = "found"
    ONLY_IN_GAPS = "only in gaps"
    INFEASIBLE = "infeasible"
    INDEPENDENT = "independent"


@dataclass(frozen=True)
class CellRecall:
    """What is asked of one cell.

    Attributes:
        bin: as text; label: the true label as text.
        hits, items: of the measured recall hits/items.
        required: the least recall; None where none was found.
    """

    bin: str
    label: str
    hits: int
    items: int
    required: Fraction | None

    @property
    def measured(self) -> Fraction:
        """The measured recall."""
        return Fraction(self.hits, self.items)

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "bin": self.bin,
            "label": self.label,
            "measured": {"hits": self.hits, "items": self.items, "recall": float(self.measured)},
            "required": None if self.required is None else decimal_text(self.required),
        }


@dataclass(frozen=True)
class CertifiedFloor:
    """The least floor with which *every* matrix above it meets the requirement.

    Attributes:
        floors: for each cell of the answer its floor; None when not even recall 1 in all of them is enough.
        proven: bound of the probability over all matrices above the floors (above recall 1, without floors): from
            below for a lower target, from above for an upper one.
        checked: whether the certificates of all these bounds were checked in rational arithmetic.
        rest: "free" or "measured": what the columns without a floor may be.
        semantics: "every_state" or "one_matrix".
    """

    floors: tuple[Fraction, ...] | None
    proven: float
    checked: bool
    rest: str
    semantics: str

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "floors": None if self.floors is None else [decimal_text(each) for each in self.floors],
            "proven": self.proven,
            "checked": self.checked,
            "rest": self.rest,
            "semantics": self.semantics,
        }


@dataclass(frozen=True)
class Answer:
    """What one planner, at one value of each swept constant, requires of perception.

    Attributes:
        planner: its name.
        swept: values of the swept constants.
        outcome: see `Outcome`.
        cells: the cells in question, in order; empty when the recalls make no difference.
        place: mode `common`, `bin` and `cell`: the recall; `factor`: the factor on all miss rates; `cost`: the price.
            None when none was found.
        gaps: further stretches of recall (of factors) that meet the requirement, below ones that do not.
        curve: (recall or factor, worst probability of the second engine) along the search.
        measured: the worst point with the measured matrices; `at_place` with the required recalls, or where none
            were found with those that come closest; `perfect` with perfect perception in every column.
        box: the certified floor; None when it was not asked for.
        others: columns that make a difference and were not in question, as text.
        condition: what the probabilities of `measured` and `at_place` assume of the detector, `if ...`; None where
            that is tested and not contradicted. Perfect perception assumes nothing.
    """

    planner: str
    swept: Mapping[str, int | Fraction]
    outcome: Outcome
    cells: tuple[CellRecall, ...]
    place: Fraction | None
    gaps: tuple[tuple[Fraction, Fraction], ...]
    curve: tuple[tuple[Fraction, float], ...]
    measured: Point
    at_place: Point | None
    perfect: Point
    box: CertifiedFloor | None
    others: tuple[str, ...]
    condition: str | None = None

    def told(self, point: Point) -> str:
        """The verdict of one of the points, with its condition."""
        free = point is self.perfect or point.whatever_predicted is not None
        return verdict_text(point.verdict.value, None if free else self.condition)

    @property
    def met_as_measured(self) -> bool:
        """Whether the measured matrices meet the requirement."""
        return self.measured.verdict is Verdict.SATISFIED

    @property
    def planner_is_limit(self) -> bool:
        """Whether not even perfect perception meets the requirement."""
        return self.perfect.verdict is Verdict.VIOLATED

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "planner": self.planner,
            "constants": {name: decimal_text(value) for name, value in self.swept.items()},
            "outcome": self.outcome.value,
            "condition": self.condition,
            "met_as_measured": self.met_as_measured,
            "planner_is_limit": self.planner_is_limit,
            "place": None if self.place is None else decimal_text(self.place),
            "cells": [each.document() for each in self.cells],
            "gaps": [[decimal_text(low), decimal_text(high)] for low, high in self.gaps],
            "curve": [[decimal_text(place), value] for place, value in self.curve],
            "measured": point_document(self.measured),
            "at_place": None if self.at_place is None else point_document(self.at_place),
            "perfect": point_document(self.perfect),
            "box": None if self.box is None else self.box.document(),
            "others": list(self.others),
        }


@dataclass(frozen=True, repr=False)
class RequireResult(Result):
    """Everything one `verify require` found.

    Attributes:
        title: what the matrices are, for people.
        inputs: the files that went in.
        settings: every choice that can change a number, by name.
        requirement, formula: its name, and its formula fully parenthesised.
        comparison, target: what is asked of its probability.
        mode: what was varied: `common`, `factor`, `bin`, `cell` or `cost`.
        answers: one per planner and value of the swept constants.
        versions: of this program and of what it computed with.
        remarks: what a reader must know to read the numbers rightly.
        matrices: what the matrices are and how they were made.
        channel: the test of the memoryless channel.
    """

    title: str
    inputs: tuple[InputFile, ...]
    settings: Mapping[str, Any]
    requirement: str
    formula: str
    comparison: str
    target: Fraction
    mode: str
    answers: tuple[Answer, ...]
    versions: Mapping[str, str]
    remarks: tuple[str, ...]
    matrices: Mapping[str, Any]
    channel: Channel

    TOLD = "verifier.telling.require:require_table"

    @property
    def headline(self) -> str:
        """What was asked, and the outcomes."""
        return f"{self.requirement}, {self.target_text}: {', '.join(answer.outcome.value for answer in self.answers)}"

    @property
    def target_text(self) -> str:
        """The target for people: `P >= 0.95`."""
        return f"P {self.comparison} {decimal_text(self.target)}"

    @property
    def largest_difference(self) -> float:
        """Between the two engines, over all points."""
        points = [point for each in self.answers for point in (each.measured, each.at_place, each.perfect)]
        return max(abs(each.probability - each.second_engine) for each in points if each is not None)

    @property
    def exit_code(self) -> ExitCode:
        """0 when every planner has an answer, 1 when the requirement cannot be met, 3 when numerical bounds decide
        nothing, or an answer rests on a memoryless detector that the data contradict and nobody assumed by name."""
        severity = [ExitCode.SATISFIED, ExitCode.INCONCLUSIVE, ExitCode.VIOLATED]
        return max((self._exit_code(each) for each in self.answers), key=severity.index)

    def _exit_code(self, answer: Answer) -> ExitCode:
        contradicted = answer.condition is not None and self.channel.test == "contradicted"
        refused = self.settings["strict"] or (contradicted and not self.settings["assume_memoryless"])
        independent = answer.outcome is Outcome.INDEPENDENT and answer.measured.whatever_predicted is not None
        if answer.condition is not None and refused and not answer.planner_is_limit and not independent:
            return ExitCode.INCONCLUSIVE
        return _exit_code(answer)

    def document(self) -> dict[str, Any]:
        """The JSON document."""
        return {
            "schema": SCHEMA_NAME,
            "version": SCHEMA_VERSION,
            "title": self.title,
            "inputs": [{"role": each.role, "name": each.name, "sha256": each.sha256} for each in self.inputs],
            "matrices": dict(self.matrices),
            "channel": json_values(self.channel),
            "settings": dict(self.settings),
            "versions": dict(self.versions),
            "engines": {"reported": "storm", "second": "batch", "largest_difference": self.largest_difference},
            "remarks": list(self.remarks),
            "requirement": {
                "name": self.requirement,
                "formula": self.formula,
                "comparison": self.comparison,
                "probability": str(self.target),
            },
            "mode": self.mode,
            "answers": [each.document() for each in self.answers],
        }

    def json_text(self) -> str:
        """The document as text."""
        return document_text(self.document())

    def rows(self) -> Iterator[dict[str, str | int | float]]:
        """One flat row per planner, swept value and cell, with the same columns throughout."""
        for each in self.answers:
            for k, cell in enumerate(each.cells):
                floors = None if each.box is None else each.box.floors
                yield {
                    "requirement": self.requirement,
                    "comparison": self.comparison,
                    "target": decimal_text(self.target),
                    "planner": each.planner,
                    **{f"constant_{name}": decimal_text(value) for name, value in each.swept.items()},
                    "outcome": each.outcome.value,
                    "condition": each.condition or "",
                    "bin": cell.bin,
                    "label": cell.label,
                    "hits": cell.hits,
                    "items": cell.items,
                    "measured_recall": float(cell.measured),
                    "required_recall": "" if cell.required is None else decimal_text(cell.required),
                    "certified_floor": "" if floors is None else decimal_text(floors[k]),
                    "probability": "" if each.at_place is None else each.at_place.probability,
                }


def _exit_code(answer: Answer) -> ExitCode:
    if answer.outcome is Outcome.INDEPENDENT:
        return answer.measured.verdict.exit_code
    found = answer.outcome is Outcome.FOUND
    undecided = answer.at_place is not None and answer.at_place.verdict is Verdict.INCONCLUSIVE
    if undecided and answer.outcome is not Outcome.ONLY_IN_GAPS:
        return ExitCode.INCONCLUSIVE
    return ExitCode.SATISFIED if found else ExitCode.VIOLATED
