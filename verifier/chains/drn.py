"""Export to DRN, Storm's text format for explicit models.

One line per state with its labels, one per choice, one per transition; a chain has one choice per state, a decision
process one or more. What a state means is a comment, for the format has no state variables. Storm reads the doubles
back without any error. The format:
https://www.stormchecker.org/documentation/background/languages.html#explicit-state-models-drn
"""

from __future__ import annotations

import re
from pathlib import Path

from verifier.base.files import write_text
from verifier.chains.decision_process import DecisionProcess
from verifier.chains.texts import (
    INITIAL_LABEL,
    Model,
    distinct_names,
    head_comments,
    identifier,
    labels_to_write,
    probability_texts,
    renaming_comments,
)


def write_drn(chain: Model, path: str | Path) -> None:
    """Write a model as DRN, with its fractions where it has them and else with every digit of its doubles.

    Labels keep their names, in quotes where needed; quotes and line breaks inside them become underscores, and a
    comment gives the original.

    Raises:
        InputError: the file cannot be written, or a label is named "init" but does not mark the initial states.
        LimitError: a fraction is too long for a text format.
    """
    labels = distinct_names(labels_to_write(chain), _printable, reserved=[INITIAL_LABEL])
    lines = [
        *head_comments(chain),
        *renaming_comments("label", labels),
        f"@type: {'MDP' if isinstance(chain, DecisionProcess) else 'DTMC'}",
        f"@value_type: {'double' if chain.fractions is None else 'rational'}",
        "@parameters",
        "",
        "@reward_models",
        "",
        "@nr_states",
        str(chain.state_count),
        "@nr_choices",
        str(len(chain.indptr) - 1),
        "@model",
    ]
    transitions = [
        f"\t\t{target} : {probability}"
        for target, probability in zip(chain.indices.tolist(), probability_texts(chain), strict=True)
    ]
    starts = chain.indptr.tolist()
    choices = list(range(chain.state_count + 1))
    if isinstance(chain, DecisionProcess):
        choices = chain.choice_starts.tolist()
    for state, (head, meaning) in enumerate(zip(_state_labels(chain, labels), _meanings(chain), strict=True)):
        lines.append(f"state {state}{head}")
        lines.extend(meaning)
        for number, choice in enumerate(range(*choices[state : state + 2])):
            lines.append(f"\taction {number}")
            lines.extend(transitions[starts[choice] : starts[choice + 1]])
    write_text(path, "\n".join(lines) + "\n")


def _printable(name: str) -> str:
    """The name as it can stand between quotes."""
    return "".join(character if character.isprintable() and character != '"' else "_" for character in name)


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else f'"{name}"'


def _state_labels(chain: Model, labels: dict[str, str]) -> list[str]:
    """For each state the text of its labels, each after a space."""
    texts = [""] * chain.state_count
    for state in chain.initial.tolist():
        texts[state] = f" {INITIAL_LABEL}"
    for original, name in labels.items():
        for state in chain.labels[original].nonzero()[0].tolist():
            texts[state] += f" {_quoted(name)}"
    return texts


def _meanings(chain: Model) -> list[list[str]]:
    """For each state one comment line with the values of its variables, or none."""
    if not chain.valuations:
        return [[] for _ in range(chain.state_count)]
    names = distinct_names(chain.valuations, identifier, reserved=[])
    columns = [column.tolist() for column in chain.valuations.values()]
    return [
        ["//[" + " & ".join(f"{name}={value}" for name, value in zip(names.values(), row, strict=True)) + "]"]
        for row in zip(*columns, strict=True)
    ]
