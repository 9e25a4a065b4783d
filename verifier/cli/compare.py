"""The command `verify compare`: ask, print and write what was found."""

from __future__ import annotations

from verifier.base.blocks import Pool
from verifier.base.files import csv_text
from verifier.base.options import named_files
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.targets import check_targets, give
from verifier.cli.terminal import columns, progress_bar, tell_shares
from verifier.evidence.baseline import read_baseline
from verifier.evidence.bundle.archive import zip_bytes
from verifier.evidence.bundle.certificates import certificates_of_comparison
from verifier.questions.compare.comparing import compare
from verifier.questions.compare.memories import with_default_memory
from verifier.questions.compare.request import compare_options
from verifier.questions.settings import ComparisonSettings
from verifier.telling.compare import compare_table
from verifier.telling.figures.compare import compare_figure
from verifier.telling.figures.drawing import figure_bytes


def compare_command(arguments: ComparisonSettings, command: Command) -> int:
    """Run `verify compare` and give its exit code."""
    check_targets(arguments, "comparison")
    baseline = None if arguments.baseline is None else read_baseline(arguments.baseline)
    asked, files = compare_options(arguments, baseline), named_files("--cm", arguments.cm)
    options = with_default_memory(arguments.options, arguments.best_planner)
    with Pool(arguments.scheduler) as pool:
        result = compare(arguments.spec, files, asked, options, progress_bar, pool=pool)
    tell_shares(pool.shares)
    matrices = list(files.values())
    give(
        arguments,
        with_provenance(result.json_text(), command),
        lambda: compare_table(result, pairs=arguments.pairs, columns=columns()),
        csv=lambda _: csv_text(result.rows()),
        certificates=lambda _: zip_bytes(certificates_of_comparison(arguments.spec, matrices, options)),
        plot=lambda path: figure_bytes(compare_figure(result), path),
    )
    return int(result.exit_code)
