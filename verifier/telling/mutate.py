"""Mutators, and what a batch came to, told once: on the terminal of `verify mutate` and in reports."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from verifier.base.arrays import grouped
from verifier.base.errors import one_line
from verifier.base.words import counted
from verifier.robustness.mutators import MUTATORS, AnyMutation
from verifier.robustness.mutators.batch_result import BatchResult, MutateResult
from verifier.robustness.mutators.catalogue import Parameter
from verifier.telling.blocks import Block, Fold, Listing, Paragraph, Table
from verifier.telling.grounds import name_text
from verifier.telling.terminal import block_lines, text_of

MOST_FAILURES = 50
"""Lines; a result with more says where the rest is."""


def shown_mutations(mutations: Sequence[AnyMutation]) -> str:
    """The mutations asked for, or every mutator with its parameters."""
    if mutations:
        return "".join(f"{mutation.text}\n" for mutation in mutations)
    lines = []
    for mutator in MUTATORS.values():
        lines.append(f"{mutator.name}: {mutator.summary}")
        lines += [
            f"  {parameter.name}: {parameter.meaning}; {parameter.expected}{_usual(parameter)}"
            for parameter in mutator.parameters
        ]
    return text_of(lines)


def _usual(parameter: Parameter) -> str:
    default = parameter.default
    if default is None:
        return ""
    return f" (default: {default})" if isinstance(default, str) else f" (default: {default:g})"


def mutate_table(result: BatchResult, folder: Path, result_file: str, left_over: Sequence[str] = ()) -> str:
    """How many images each mutation gave, then what could not be made, and what one must know.

    `left_over` are files that an earlier run left among those of this one.
    """
    study = result.document()
    kept = sum(len(image.kept) for image in result.images)
    before = f", {kept} kept from an earlier run" if kept else ""
    made = counted(study.counts.written - kept, "image")
    lines = [*block_lines(_mutations(study)), ""]
    lines += [f"{made} written to {folder}{before}; the list is {result_file} there"]
    failures = list(_failures(study))
    lines += [f"failed: {failure}" for failure in failures[:MOST_FAILURES]]
    if len(failures) > MOST_FAILURES:
        lines.append(f"and {len(failures) - MOST_FAILURES} more failures, see {folder / result_file}")
    lines += [f"note: {note}" for note in study.notes]
    if left_over:
        lines.append(f"note: {left_over_note(left_over, folder)}")
    return text_of(one_line(line) for line in lines)


def batch_table(result: BatchResult) -> str:
    """The same without the folder, which a result does not know."""
    study = result.document()
    lines = [*block_lines(_mutations(study)), *(f"failed: {failure}" for failure in _failures(study))]
    return "\n".join(one_line(line) for line in [*lines, *(f"note: {note}" for note in study.notes)])


def mutate_blocks(study: MutateResult) -> Iterator[Block]:
    """The same in a report."""
    counts = study.counts
    yield Paragraph(
        f"{counted(counts.images, 'image')}, {counts.unreadable} of them unreadable; "
        f"{counts.written} written, {counts.failures} failed."
    )
    yield _mutations(study)
    failures = tuple(_failures(study))
    if failures:
        more = (f"and {len(failures) - MOST_FAILURES} more",) if len(failures) > MOST_FAILURES else ()
        yield Fold("What failed", (Listing((*failures[:MOST_FAILURES], *more)),))


def _mutations(study: MutateResult) -> Table:
    there, failed = (
        Counter(one.mutation for image in study.images for one in getattr(image, kind))
        for kind in ("outputs", "failures")
    )
    rows = (
        (name_text(mutation.text), str(there[number]), str(failed[number]))
        for number, mutation in enumerate(study.mutations)
    )
    return Table("", ("mutation", "images", "failed"), tuple(rows))


def left_over_note(paths: Sequence[str], folder: Path) -> str:
    """That files of an earlier run are among those of this one."""
    verb, first = ("is", "") if len(paths) == 1 else ("are", "the first ")
    return f"{counted(len(paths), 'file')} in {folder} {verb} of an earlier run, not of this one: {first}{paths[0]}"


def _failures(study: MutateResult) -> Iterator[str]:
    """One line for everything that failed for one image for one reason."""
    for image in study.images:
        for message, numbers in grouped((failure.message, failure.mutation) for failure in image.failures).items():
            which = "" if numbers[0] is None else f", {study.mutations[numbers[0]].text}"
            more = f" and {len(numbers) - 1} more" if len(numbers) > 1 else ""
            yield f"{image.name}{which}{more}: {message}"
