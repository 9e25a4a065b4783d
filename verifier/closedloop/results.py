"""What `verify closed-loop` and `verify robroc` found, as one frozen value with its JSON document.

The document is byte-stable: equal inputs give equal bytes. It holds no times, no absolute paths and no user names.
Its schema is `trade_offs.schema.json` beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from verifier.base.files import document_text
from verifier.closedloop.comparison import Cell, MetricTable, NamedCurve, Row
from verifier.closedloop.decisions import Flip, flips_between_metrics, flips_under_mutation
from verifier.closedloop.robroc import area

SCHEMA_NAME = "verifier.trade_offs"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class LogsUsed:
    """What the curves were made from.

    Attributes:
        positive, negative: how many logs of each kind.
        never_stops: positive logs in which the truth-driven vehicle never stops; they are safe by definition.
        truth_breaks: positive logs in which the truth-driven vehicle moves within the safety radius of a person.
        left_out: logs that were left out because the truth-driven vehicle never stops in them.
    """

    positive: int
    negative: int
    never_stops: tuple[str, ...] = ()
    truth_breaks: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class SecondEngine:
    """How the closed-loop curves differ when the other engine drives.

    Attributes:
        engine: the name of the other one.
        largest_area_difference: over detectors and conditions, of the area of each curve.
        runs: positive logs x levels x sources that both engines drove.
        safety_differs: in how many of them only one of the two says safe.
    """

    engine: str
    largest_area_difference: float
    runs: int
    safety_differs: int


@dataclass(frozen=True, eq=False)
class TradeOffs:
    """Everything found about some detectors.

    Attributes:
        title: for people.
        inputs: the files that went in: role, name without folders, and the SHA-256 of their bytes.
        settings: every choice that can change a number, by name.
        versions: of this program and of what it computed with.
        remarks: what a reader must know to read the numbers rightly.
        tables: one per metric, the most contextual last.
        logs: what the curves were made from, where that is known.
        second: how the other engine differs, where the loop was driven.
    """

    title: str
    inputs: tuple[Mapping[str, str], ...]
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    remarks: tuple[str, ...]
    tables: tuple[MetricTable, ...]
    logs: LogsUsed | None = None
    second: SecondEngine | None = None

    @property
    def under_mutation(self) -> list[Flip]:
        """How the choice changes from the baseline to every other row, metric by metric."""
        return [each for table in self.tables for each in flips_under_mutation(table)]

    @property
    def between_metrics(self) -> list[Flip]:
        """How the choice changes from each metric to the last, row by row."""
        return flips_between_metrics(self.tables)

    def document(self) -> dict[str, Any]:
        """The JSON document."""
        document: dict[str, Any] = {
            "schema": SCHEMA_NAME,
            "version": SCHEMA_VERSION,
            "title": self.title,
            "inputs": [dict(each) for each in self.inputs],
            "settings": dict(self.settings),
            "versions": dict(self.versions),
            "remarks": list(self.remarks),
            "metrics": [_table(each) for each in self.tables],
            "flips": {
                "under_mutation": [_flip(each) for each in self.under_mutation],
                "between_metrics": [_flip(each) for each in self.between_metrics],
            },
        }
        if self.logs is not None:
            document["logs"] = {
                "positive": self.logs.positive,
                "negative": self.logs.negative,
                "truth_never_stops": list(self.logs.never_stops),
                "truth_breaks_safety_radius": list(self.logs.truth_breaks),
                "left_out": list(self.logs.left_out),
            }
        if self.second is not None:
            document["second_engine"] = {
                "engine": self.second.engine,
                "largest_area_difference": self.second.largest_area_difference,
                "runs": self.second.runs,
                "safety_differs": self.second.safety_differs,
            }
        return document

    def json_text(self) -> str:
        """The document as text."""
        return document_text(self.document())

    def rows(self) -> Iterator[dict[str, str | float]]:
        """One flat row per metric, row of its table and detector, with the same columns throughout."""
        for table in self.tables:
            for row in table.rows:
                for cell in row.cells:
                    yield _flat(table, row, cell)


def _table(table: MetricTable) -> dict[str, Any]:
    return {
        "metric": table.metric,
        "detectors": list(table.detectors),
        "conditions": [{"name": each, "severity": table.severities.get(each, "")} for each in table.conditions],
        "rows": [_row(each) for each in table.rows],
        "means": [
            {"detector": each.detector, "area": each.area, "relative": _number(each.relative)} for each in table.means
        ],
        "curves": [_curve(each) for each in table.curves.values()],
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "kind": row.kind,
        "conditions": list(row.conditions),
        "best": list(row.best),
        "cells": [_cell(each) for each in row.cells],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    document: dict[str, Any] = {
        "detector": cell.detector,
        "area": cell.area,
        "robustness": _number(cell.robustness),
    }
    if cell.own_area is not None:
        document["own_area"] = cell.own_area
    if cell.area_interval is not None and cell.robustness_interval is not None:
        document["area_interval"] = [_number(each) for each in cell.area_interval]
        document["robustness_interval"] = [_number(each) for each in cell.robustness_interval]
        document["best_probability"] = _number(cell.best_probability)
    return document


def _curve(each: NamedCurve) -> dict[str, Any]:
    return {
        "detector": each.detector,
        "condition": each.condition,
        "area": area(each.curve),
        "sensitivity": each.curve.sensitivity.tolist(),
        "safety": each.curve.safety.tolist(),
        "efficiency": each.curve.efficiency.tolist(),
    }


def _flip(each: Flip) -> dict[str, Any]:
    return {
        "from": {"metric": each.metrics[0], "row": each.rows[0], "best": list(each.best[0])},
        "to": {"metric": each.metrics[1], "row": each.rows[1], "best": list(each.best[1])},
        "flips": each.flips,
        "probability": _number(each.probability),
    }


def _flat(table: MetricTable, row: Row, cell: Cell) -> dict[str, str | float]:
    area_low, area_high = cell.area_interval or (math.nan, math.nan)
    low, high = cell.robustness_interval or (math.nan, math.nan)
    numbers = {
        "area": cell.area,
        "area_lower": area_low,
        "area_upper": area_high,
        "robustness": cell.robustness,
        "robustness_lower": low,
        "robustness_upper": high,
        "own_area": math.nan if cell.own_area is None else cell.own_area,
        "best_probability": math.nan if cell.best_probability is None else cell.best_probability,
    }
    return {
        "metric": table.metric,
        "row": row.name,
        "kind": row.kind,
        "detector": cell.detector,
        **{name: "" if math.isnan(value) else value for name, value in numbers.items()},
        "best": int(cell.detector in row.best),
    }


def _number(value: float | None) -> float | None:
    """JSON has no NaN: what is undefined is null."""
    return None if value is None or math.isnan(value) else value
