"""The chains behind an answer about required recall: those whose probabilities have certificates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.recall.cells import RecallCells, counts_with_recall
from verifier.evidence.bundle.certificates import Certified
from verifier.evidence.bundle.layout import point_of_recall
from verifier.perception.confusion import EMPTY
from verifier.perception.confusion.matrices import label_text
from verifier.questions.require.answers import perfect_counts
from verifier.study.case import Study


class CertifiedRecall(NamedTuple):
    """A point of an answer with the chain that it is about.

    Attributes:
        source: the chain; its certificates are those of the run for the point with the measured matrices.
        point: as in the document; pointer: where it stands there.
        initial: number of its initial state in the block.
    """

    source: Certified
    point: Mapping[str, Any]
    pointer: str
    initial: int


def certified_recalls(rebuilt: Study, number: int, content: Mapping[str, Any]) -> Iterator[CertifiedRecall]:
    """The points of a document about required recall: with the measured matrices, with perfect perception, and with
    the required recalls where there are some.

    Args:
        rebuilt: the system.
        number: of the requirement in the spec, from 1.
        content: the document, validated.
    """
    names = [each.name for each in rebuilt.grid.requirements]
    requirement = names.index(content["requirement"]["name"])
    for k, answer in enumerate(content["answers"]):
        for kind in ("measured", "at_value", "perfect"):
            point = answer[kind]
            place = None if point is None else _place(rebuilt, answer["planner"], point)
            if place is None:
                continue
            block, initial = place
            objective = rebuilt.cases[block].objective(requirement)
            counts = rebuilt.cases[block].counts
            of, changed = "" if kind == "measured" else point_of_recall(number, k, kind), None
            if kind == "at_value":
                changed = _required(rebuilt, counts, answer["cells"])
            else:
                changed = counts if kind == "measured" else perfect_counts(counts)
            if changed is not None:
                source = Certified(of, block, requirement, objective, changed)
                yield CertifiedRecall(source, point, f"/answers/{k}/{kind}", initial)


def _place(rebuilt: Study, planner: str, point: Mapping[str, Any]) -> tuple[int, int] | None:
    """Number of a point's block, and of its initial state there; None where the grid has no such point."""
    for number, case in enumerate(rebuilt.cases):
        constants = case.constants
        same = (case.planner.name, case.environment, constants) == (
            planner,
            point["environment"],
            point["constants"],
        )
        if same and point["initial"] in case.initial_states:
            return number, case.initial_states.index(point["initial"])
    return None


def _required(rebuilt: Study, counts: NDArray[np.int64], cells: Any) -> NDArray[np.int64] | None:
    """Counts with the recalls that are required; None where none are."""
    matrices = rebuilt.matrices
    places = {
        (matrices.bin_text(index), label_text(label)): (index, column)
        for index in range(matrices.bin_count)
        for column, label in enumerate(matrices.labels)
    }
    found = [(places.get((cell["bin"], cell["label"])), cell["required"]) for cell in cells]
    if not found or any(place is None or recall is None for place, recall in found):
        return None
    recalls = [Fraction(recall) for _, recall in found]
    whole = math.lcm(*(recall.denominator for recall in recalls))
    bins, columns = np.array([place for place, _ in found]).T
    parts = [int(recall * whole) for recall in recalls]
    return counts_with_recall(counts, RecallCells(bins, columns, matrices.column_of(EMPTY)), parts, whole)
