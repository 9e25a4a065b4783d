"""The command `verify compare`: ask, print and write what was found."""

from __future__ import annotations

from fractions import Fraction
from pathlib import PurePath

from verifier.base.errors import UsageError, shown
from verifier.base.files import csv_text, write_bytes, write_text
from verifier.cli.gates import drop_rule, largest_drop, read_baseline
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.targets import check_targets
from verifier.cli.terminal import progress_bar
from verifier.evidence.bundle.certificates import certificates_of_comparison
from verifier.evidence.bundle.writing import zip_bytes
from verifier.questions.compare.story import CompareOptions, compare
from verifier.questions.settings import ComparisonSettings
from verifier.telling.compare import compare_table
from verifier.telling.figures.compare import compare_figure
from verifier.telling.figures.drawing import figure_bytes


def compare_command(arguments: ComparisonSettings, command: Command) -> int:
    """Run `verify compare` and give its exit code."""
    check_targets(arguments, "comparison")
    asked, options, files = compare_options(arguments), arguments.options, detectors(arguments)
    result = compare(arguments.spec, files, asked, options, progress_bar)
    # Everything is made before anything is written.
    table = compare_table(result, pairs=arguments.pairs)
    document = with_provenance(result.json_text(), command)
    proofs = b""
    if arguments.certificates is not None:
        proofs = zip_bytes(certificates_of_comparison(arguments.spec, list(files.values()), options))
    picture = b"" if arguments.plot is None else figure_bytes(compare_figure(result), arguments.plot)
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


def compare_options(arguments: ComparisonSettings) -> CompareOptions:
    """What the arguments ask.

    Raises:
        UsageError: an argument that cannot be read; InputError: a baseline that cannot.
    """
    drop = largest_drop(arguments.max_drop, arguments.baseline)
    return CompareOptions(
        pareto=None if arguments.pareto is None else _two(arguments.pareto),
        baseline=None if arguments.baseline is None else read_baseline(arguments.baseline),
        max_drop=Fraction(0) if drop is None else drop,
        least_chance=drop_rule(arguments.drop_from, gated=drop is not None),
    )


def detectors(arguments: ComparisonSettings) -> dict[str, str]:
    """Name -> file of each detector; a file without a name is called after itself."""
    found: dict[str, str] = {}
    for text in arguments.cm:
        name, equals, path = text.partition("=")
        if not equals:
            name, path = PurePath(text).stem, text
        name, path = name.strip(), path.strip()
        if not name or not path or not name.isprintable():
            raise UsageError(f"--cm: expected NAME=FILE, got {shown(text)}")
        if name in found:
            raise UsageError(f"--cm: two detectors are called {shown(name)}: name them, as --cm NAME=FILE")
        found[name] = path
    return found


def _two(text: str) -> tuple[str, str]:
    names = [part.strip() for part in text.split(",")]
    if len(names) != 2 or not all(names):
        raise UsageError(f"--pareto: expected two requirements as A,B, got {shown(text)}")
    return names[0], names[1]
