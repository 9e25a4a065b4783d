"""The command `verify confusion`: call what counts, print and write. Nothing is computed here."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial

from verifier.cli.invocation import Command, with_provenance
from verifier.cli.targets import give
from verifier.cli.terminal import Bars, progress_bar
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.document import confusion_text
from verifier.perception.confusion.record import check_record_target, write_record
from verifier.perception.confusion.replay import replay_record
from verifier.perception.confusion.request import check_data_named, counted, merged
from verifier.perception.confusion.streaming import finish
from verifier.perception.settings import CountSettings, MergeSettings, ReplaySettings
from verifier.questions.audit import audited
from verifier.study.provenance import own_versions
from verifier.telling.confusion import audit_table, counts_table, replay_table
from verifier.telling.figures.drawing import check_plot_target, figure_bytes
from verifier.telling.figures.recall import figure_of_counts


def count_command(arguments: CountSettings, command: Command) -> int:
    """Run `verify confusion` and give its exit code."""
    check_data_named(arguments)
    if arguments.plot is not None:
        check_plot_target(arguments.plot)
    if arguments.record is not None:
        check_record_target(arguments.record)
    if arguments.matching_audit:
        return _audit(arguments)
    with Bars() as bars:
        found = counted(arguments, bars("rows", unit="row", unit_scale=True))
    if found.record is not None and arguments.record is not None:
        write_record([found.record], arguments.record)
    give(
        arguments,
        _document(found.counts, command),
        lambda: counts_table(found.counts),
        plot=lambda path: figure_bytes(figure_of_counts(found.counts), path),
    )
    finish(found.files)
    return 0


def merge_command(arguments: MergeSettings, command: Command) -> int:
    """Run `verify confusion merge` and give its exit code."""
    counts = merged(arguments)
    give(arguments, _document(counts, command), lambda: counts_table(counts))
    return 0


def replay_command(arguments: ReplaySettings, command: Command) -> int:
    """Run `verify confusion replay` and give its exit code."""
    found = replay_record(arguments)
    print(json.dumps(asdict(found), indent=2) + "\n" if arguments.json else replay_table(found), end="")
    return 0


def _document(counts: ConfusionCounts, command: Command) -> str:
    return with_provenance(confusion_text(counts), command, {"versions": own_versions()})


def _audit(arguments: CountSettings) -> int:
    found = audited(arguments, partial(progress_bar, what="policies", unit="policy"))
    if arguments.json:
        print(json.dumps([each.row() for each in found], indent=2, ensure_ascii=False))
    else:
        print(audit_table(found), end="")
    return 0
