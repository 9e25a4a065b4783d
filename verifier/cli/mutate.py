"""The command `verify mutate`: call what mutates, write the list of it and print. Nothing is computed here."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from verifier.base.blocks import Pool
from verifier.base.errors import ExitCode, one_line
from verifier.base.files import write_bytes, write_text
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.terminal import is_watched, tell_shares
from verifier.robustness.mutators.batch_result import ImageResult
from verifier.robustness.mutators.request import RESULT_FILE, chosen_mutations, mutated
from verifier.robustness.settings import MutateSettings
from verifier.telling.mutate import left_over_note, mutate_table, shown_mutations


def mutate_command(arguments: MutateSettings, command: Command) -> int:
    """Run `verify mutate` and give its exit code: 4 if anything could not be made."""
    if arguments.show:
        print(shown_mutations(chosen_mutations(arguments)), end="")
        return int(ExitCode.SATISFIED)
    with Pool(arguments.scheduler) as workers:
        result, folder = mutated(arguments, _bar, workers), Path(arguments.output or "")
    tell_shares(workers.shares)
    document = with_provenance(result.json_text(), command)
    write_text(folder / RESULT_FILE, document)
    if result.sheet is not None and arguments.sheet is not None:
        write_bytes(arguments.sheet, result.sheet)
    if arguments.json:
        print(document, end="")
        if result.left_over:
            print(f"verify: note: {one_line(left_over_note(result.left_over, folder))}", file=sys.stderr)
    else:
        print(mutate_table(result, folder, RESULT_FILE, result.left_over), end="")
    return int(ExitCode.BAD_INPUT if result.failures else ExitCode.SATISFIED)


def _bar(results: Iterable[ImageResult], count: int) -> Iterable[ImageResult]:
    """The results, with a progress bar on a terminal."""
    if not is_watched():
        return results
    from tqdm import tqdm

    return tqdm(results, desc="images", total=count, leave=False, delay=0.5)
