"""The command `verify compare`: ask, print and write what was found."""

from __future__ import annotations

import argparse

from verifier.base.errors import UsageError
from verifier.base.files import csv_text, write_bytes, write_text
from verifier.cli.arguments import run_options
from verifier.cli.compare_arguments import compare_options, detectors
from verifier.cli.compare_plots import compare_plot
from verifier.cli.compare_tables import compare_table
from verifier.cli.invocation import with_provenance
from verifier.cli.plots import check_plot_target
from verifier.cli.sources import check_writable, is_one_of, with_models
from verifier.cli.terminal import progress_bar
from verifier.evidence.bundle.certificates import certificates_of_comparison
from verifier.evidence.bundle.writing import zip_bytes
from verifier.questions.compare.story import compare


def compare_command(arguments: argparse.Namespace) -> int:
    """Run `verify compare` and give its exit code."""
    _check_targets(arguments)
    asked, options, files = compare_options(arguments), run_options(arguments), detectors(arguments)
    result = compare(arguments.spec, files, asked, options, progress_bar)
    # Everything is made before anything is written.
    table = compare_table(result, pairs=arguments.pairs)
    document = with_provenance(result.json_text(), arguments)
    proofs = b""
    if arguments.certificates is not None:
        proofs = zip_bytes(certificates_of_comparison(arguments.spec, list(files.values()), options))
    picture = b"" if arguments.plot is None else compare_plot(result, arguments.plot)
    if arguments.output is not None:
        write_text(arguments.output, document)
    if arguments.csv is not None:
        write_text(arguments.csv, csv_text(result.rows()))
    if arguments.certificates is not None:
        write_bytes(arguments.certificates, proofs)
    if arguments.plot is not None:
        write_bytes(arguments.plot, picture)
    print(document if arguments.json else table, end="")
    return int(result.exit_code)


def _check_targets(arguments: argparse.Namespace) -> None:
    """Refuse outputs that could not be written, or would overwrite an input, before anything is computed."""
    if arguments.plot is not None:
        check_plot_target(arguments.plot)
    sources = [*with_models(arguments.spec), *detectors(arguments).values(), arguments.baseline]
    for option in ("output", "csv", "plot", "certificates"):
        target = getattr(arguments, option)
        if target is None:
            continue
        if is_one_of(target, sources):
            raise UsageError(f"--{option}: {target} is an input of this comparison")
        check_writable(target)
