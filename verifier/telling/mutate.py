"""What `verify mutate` prints: the mutators there are, and what a batch came to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from verifier.base.errors import one_line
from verifier.robustness.mutators import MUTATORS, AnyMutation
from verifier.robustness.mutators.batch_result import BatchResult
from verifier.robustness.mutators.catalogue import Parameter
from verifier.telling.terminal import aligned

MOST_FAILURES = 50
"""Lines; a result with more says where the rest is."""


def shown_mutations(mutations: Sequence[AnyMutation]) -> str:
    """The mutations asked for, or every mutator with its parameters."""
    if mutations:
        return "".join(f"{each.text}\n" for each in mutations)
    lines = []
    for mutator in MUTATORS.values():
        lines.append(f"{mutator.name}: {mutator.summary}")
        lines += [f"  {each.name}: {each.meaning}; {each.expected}{_usual(each)}" for each in mutator.parameters]
    return "\n".join(lines) + "\n"


def _usual(parameter: Parameter) -> str:
    default = parameter.default
    if default is None:
        return ""
    return f" (default: {default})" if isinstance(default, str) else f" (default: {default:g})"


def mutate_table(result: BatchResult, folder: Path, result_file: str, left_over: Sequence[str] = ()) -> str:
    """How many images each mutation gave, then what could not be made, and what one must know.

    `left_over` are files that an earlier run left among those of this one.
    """
    settings = result.settings
    there, failed = [0] * len(settings.mutations), [0] * len(settings.mutations)
    for output in result.outputs:
        there[output.mutation] += 1
    for failure in result.failures:
        if failure.mutation is not None:
            failed[failure.mutation] += 1
    rows = [
        [mutation.text, str(good), str(bad)]
        for mutation, good, bad in zip(settings.mutations, there, failed, strict=True)
    ]
    lines = aligned(["mutation", "images", "failed"], rows)
    kept = sum(output.kept for output in result.outputs)
    before = f", {kept} kept from an earlier run" if kept else ""
    made = _counted(len(result.outputs) - kept, "image")
    lines += ["", f"{made} written to {folder}{before}; the list is {result_file} there"]
    failures = _failures(result)
    lines += failures[:MOST_FAILURES]
    if len(failures) > MOST_FAILURES:
        lines.append(f"and {len(failures) - MOST_FAILURES} more failures, see {folder / result_file}")
    lines += [f"note: {note}" for note in result.notes]
    if left_over:
        lines.append(f"note: {left_over_note(left_over, folder)}")
    return "\n".join(one_line(line) for line in lines) + "\n"


def left_over_note(paths: Sequence[str], folder: Path) -> str:
    """That files of an earlier run are among those of this one."""
    verb, first = ("is", "") if len(paths) == 1 else ("are", "the first ")
    return f"{_counted(len(paths), 'file')} in {folder} {verb} of an earlier run, not of this one: {first}{paths[0]}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _failures(result: BatchResult) -> list[str]:
    """One line for everything that failed for one image for one reason."""
    grouped: dict[tuple[str, str], list[int | None]] = {}
    for failure in result.failures:
        grouped.setdefault((failure.image, failure.message), []).append(failure.mutation)
    lines = []
    for (image, message), numbers in grouped.items():
        number = numbers[0]
        which = "" if number is None else f", {result.settings.mutations[number].text}"
        more = f" and {len(numbers) - 1} more" if len(numbers) > 1 else ""
        lines.append(f"failed: {image}{which}{more}: {message}")
    return lines
