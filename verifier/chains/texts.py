"""What exports share (which labels they write, names other tools accept, probabilities as text), and export to DRN.

DRN is Storm's text format for explicit models. One line per state with its labels, one per choice, one per
transition; a chain has one choice per state, a decision process one or more. What a state means is a comment, for the
format has no state variables. Storm reads the doubles back without any error. The format:
https://www.stormchecker.org/documentation/background/languages.html#explicit-state-models-drn
"""

import json
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TypeAlias

import numpy as np

from verifier.base.errors import InputError, LimitError
from verifier.base.files import write_text
from verifier.chains.chain import DecisionProcess, MarkovChain

Model: TypeAlias = MarkovChain | DecisionProcess

INITIAL_LABEL = "init"
"""The label that Storm and PRISM give to the initial states of every model."""
_LARGEST_LITERAL = 2**63 - 1  # Storm's parser


def labels_to_write(model: Model, labels: Collection[str] | None = None) -> list[str]:
    """Sorted names of the chosen labels (None: all); "init" is left out, for every format marks those states.

    Raises:
        InputError: a label is named "init" but does not mark the initial states.
        ValueError: a chosen label is unknown.
    """
    names = sorted(model.labels if labels is None else set(labels))
    unknown = [name for name in names if name not in model.labels]
    if unknown:
        raise ValueError(f"unknown labels: {unknown}")
    if INITIAL_LABEL in names:
        if not np.array_equal(np.flatnonzero(model.labels[INITIAL_LABEL]), np.unique(model.initial)):
            message = f'the label "{INITIAL_LABEL}" must mark exactly the initial states, as it does in Storm'
            raise InputError(message, hint="give the label another name")
        names.remove(INITIAL_LABEL)
    return names


def refuse_long_fractions(model: Model, form: str) -> None:
    """LimitError where a fraction is longer than the literals that readers of this format take."""
    if model.fractions is not None and any(fraction.denominator > _LARGEST_LITERAL for fraction in model.fractions):
        hint = "the DRN and UMB exports take longer fractions"
        raise LimitError(f"a probability is a fraction of more than 63 bits, too long for {form}", hint=hint)


def distinct_names(names: Iterable[str], cleaned: Callable[[str], str], reserved: Collection[str]) -> dict[str, str]:
    """Each name with its cleaned form; a number is appended where that is reserved or would occur twice."""
    taken, result = set(reserved), dict[str, str]()
    for name in names:
        clean, number = cleaned(name), 2
        unique = clean
        while unique in taken:
            unique, number = f"{clean}_{number}", number + 1
        taken.add(unique)
        result[name] = unique
    return result


def identifier(name: str) -> str:
    """`name` with letters, digits and underscores only, beginning with a letter."""
    clean = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return clean if clean[:1].isalpha() else f"n{clean}"


def head_comments(model: Model) -> list[str]:
    """Comment lines that say who wrote a file, and what steps and choices stand for."""
    return ["// Written by verifier.", *([f"// {model.remark}"] if model.remark else [])]


def renaming_comments(kind: str, names: dict[str, str]) -> list[str]:
    """A comment line for each name that had to change; the original as a JSON string, so on one line of ASCII."""
    return [f"// {kind} {new} is {json.dumps(old)}" for old, new in names.items() if old != new]


def probability_texts(chain: Model) -> list[str]:
    """Each transition's probability: the fraction where there is one, else the shortest text of the double.

    Raises:
        LimitError: a fraction is too long to be written in decimal digits.
    """
    if chain.fractions is None:
        return [repr(probability) for probability in chain.probabilities.tolist()]
    try:
        return [str(fraction) for fraction in chain.fractions]
    except ValueError:  # Python refuses to write integers of more than some thousand digits
        hint = "a UMB archive takes fractions of any length"
        raise LimitError("a probability is a fraction too long for a text format", hint=hint) from None


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
