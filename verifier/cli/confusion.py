"""The command `verify confusion`: call what counts, print and write. Nothing is computed here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from verifier.base.files import write_bytes, write_text
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.terminal import is_watched, progress_bar
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
    with _RowBar() as bar:
        found = counted(arguments, bar)
    if found.record is not None and arguments.record is not None:
        write_record([found.record], arguments.record)
    document = _document(found.counts, command)
    if arguments.output is not None:
        write_text(arguments.output, document)
    if arguments.plot is not None:
        write_bytes(arguments.plot, figure_bytes(figure_of_counts(found.counts), arguments.plot))
    print(document if arguments.json else counts_table(found.counts), end="")
    finish(found.files)
    return 0


def merge_command(arguments: MergeSettings, command: Command) -> int:
    """Run `verify confusion merge` and give its exit code."""
    counts = merged(arguments)
    document = _document(counts, command)
    if arguments.output is not None:
        write_text(arguments.output, document)
    print(document if arguments.json else counts_table(counts), end="")
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


class _RowBar:
    """A progress bar on stderr over the rows read, where a person is looking."""

    def __init__(self) -> None:
        self._bar: Any = None
        self.close: Callable[[], None] = lambda: None

    def __enter__(self) -> _RowBar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None and is_watched():
            from tqdm import tqdm

            self._bar = tqdm(total=total, desc="rows", unit="row", unit_scale=True, leave=False)
            self.close = self._bar.close
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
