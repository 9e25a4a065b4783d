"""Storm, called directly and for tests only: a chain and a formula in, probabilities of all states out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import stormpy
from numpy.typing import NDArray
from stormpy import Rational, environments
from stormpy.datastructures import SparseMatrixBuilder
from stormpy.developer import LogLevel, set_log_level
from stormpy.models import SparseDtmc, SparseModelComponents, StateLabeling

from verifier.language.expressions.syntax import Boolean, Name, Node, Operation, Temporal, is_temporal

set_log_level(LogLevel.OFF)


def storm_text(node: Node) -> str:
    """The formula in Storm's grammar, every operand in parentheses; the label a must exist."""
    if isinstance(node, Boolean):
        # Storm reads `!(true)` as the name of a label.
        return '"a" | (!"a")' if node.value else '"a" & (!"a")'
    if isinstance(node, Name):
        return f'"{node.name}"'
    assert isinstance(node, Operation | Temporal)
    first, *rest = [f"({storm_text(operand)})" for operand in node.operands]
    second = rest[0] if rest else ""
    if isinstance(node, Operation):
        return {
            "!": f"!{first}",
            "&": f"{first} & {second}",
            "|": f"{first} | {second}",
            "->": f"(!{first}) | {second}",
            "xor": f"({first} & (!{second})) | ((!{first}) & {second})",
            "<->": f"({first} & {second}) | ((!{first}) & (!{second}))",
        }[node.operator]
    if node.operator == "X":
        return _after(first, 1 if node.interval is None else node.interval.low)
    low, high = (0, None) if node.interval is None else (node.interval.low, node.interval.high)
    bound = "" if high is None else f"<={high - low}"
    text = {
        "F": f"true U{bound} {first}",
        "G": f"!(true U{bound} (!{first}))",
        "U": f"{first} U{bound} {second}",
        "R": f"!((!{first}) U{bound} (!{second}))",
        "W": f"!((!{second}) U ((!{first}) & (!{second})))",
        "M": f"{second} U ({first} & {second})",
    }[node.operator]
    # Lower bounds step by step: Storm 2.0 answers 1 for `false U[1,2] b` in an absorbing state with b.
    for _ in range(low):
        text = {"U": f"{first} & (X ({text}))", "R": f"{first} | (X ({text}))"}.get(node.operator, f"X ({text})")
    return text


def _after(text: str, steps: int) -> str:
    for _ in range(steps):
        text = f"X ({text})"
    return text


def storm_probabilities(
    matrix: NDArray[np.float64], labels: Mapping[str, NDArray[np.bool_]], formula: Node
) -> NDArray[np.float64]:
    """P(formula) for all n states of a dense chain; a further absorbing state is added for Storm's sake."""
    n = len(matrix)
    builder = SparseMatrixBuilder[float](rows=n + 1, columns=n + 1)
    for row in range(n):
        for column in np.flatnonzero(matrix[row]):
            builder.add_next_value(row, int(column), float(matrix[row, column]))
    builder.add_next_value(n, n, 1.0)
    labeling = StateLabeling(n + 1)
    labeling.add_label("init")
    labeling.add_label_to_state("init", 0)
    for name, mask in labels.items():
        labeling.add_label(name)
        for state in np.flatnonzero(mask):
            labeling.add_label_to_state(name, int(state))
    model = SparseDtmc[float](
        SparseModelComponents[float](transition_matrix=builder.build(), state_labeling=labeling)
    )
    text = storm_text(formula)
    if not is_temporal(formula):
        text = f"true U<=0 ({text})"
    environment = environments.sound()
    environment.solver().native().precision = Rational("1/1000000000000")
    environment.solver().min_max().precision = Rational("1/1000000000000")
    properties = stormpy.parse_property(f"P=? [ {text} ]")
    result = stormpy.model_checking(model, properties, environment=environment)
    return np.array(result.get_value_vector())[:n]
