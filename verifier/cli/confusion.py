"""The command `verify confusion`: call what counts, print and write. Nothing is computed here."""

import json
from dataclasses import asdict
from functools import partial

from verifier.base.errors import UsageError
from verifier.base.libraries import own_versions
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.terminal import Bars, check_targets, give, give_result, progress_bar, tell_shares
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.document import confusion_text, read_counts, write_confusion
from verifier.perception.confusion.record import check_record_target, write_record
from verifier.perception.confusion.replay import Replayed, replay_record, with_replay
from verifier.perception.confusion.request import check_data_named, counted, merged
from verifier.perception.confusion.shards import command_of_shards
from verifier.perception.confusion.streaming import finish
from verifier.perception.settings import CountSettings, MergeSettings, ReplaySettings
from verifier.telling.confusion import audit_table, replay_table, validation_table


def count_command(arguments: CountSettings, command: Command) -> int:
    """Run `verify confusion` and give its exit code."""
    check_data_named(arguments)
    check_targets(arguments, "count", apart=True)
    if arguments.record is not None:
        check_record_target(arguments.record)
    if arguments.matching_audit:
        return _audit(arguments)
    if arguments.plot_runs is not None and not arguments.memory.startswith("run:"):
        raise UsageError("--plot-runs needs counts by run: --memory run:L")
    with Bars() as bars:
        parted = arguments.scheduler is not None or arguments.shard is not None
        looks = {"unit": "block"} if parted else {"unit": "row", "unit_scale": True}
        counting = counted(arguments, bars("partitions" if parted else "rows", **looks))
    tell_shares(counting.shares)
    if counting.record is not None and arguments.record is not None:
        write_record([counting.record], arguments.record)
    give_result(arguments, command, counting.counts, None, _document(counting.counts, command))
    finish(counting.files)
    return 0


def merge_command(arguments: MergeSettings, command: Command) -> int:
    """Run `verify confusion merge` and give its exit code."""
    check_targets(arguments, "sum")
    counts = merged(arguments)
    give(arguments, _document(counts, command_of_shards(arguments.files) or command), counts.told)
    return 0


def replay_command(arguments: ReplaySettings, command: Command) -> int:
    """Run `verify confusion replay` and give its exit code."""
    if arguments.into is not None and arguments.splits is not None:
        raise UsageError("--into adds a replay to matrices, and --splits halves drives: leave out one")
    from verifier.questions.validation import validate_record

    replayed = replay_record(arguments) if arguments.splits is None else validate_record(arguments)
    if arguments.into is not None and isinstance(replayed, Replayed):
        write_confusion(with_replay(read_counts(arguments.into), arguments, replayed), arguments.into)
    table = replay_table(replayed) if isinstance(replayed, Replayed) else validation_table(replayed)
    print(json.dumps(asdict(replayed), indent=2) + "\n" if arguments.json else table, end="")
    return 0


def _document(counts: ConfusionCounts, command: Command) -> str:
    return with_provenance(confusion_text(counts), command, {"versions": own_versions()})


def _audit(arguments: CountSettings) -> int:
    from verifier.questions.audit import audited

    for name in ("output", "record", "plot", "plot_runs"):
        if getattr(arguments, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"--matching-audit writes no files: leave out {option}, or count with one policy")
    audits = audited(arguments, partial(progress_bar, what="policies", unit="policy"))
    if arguments.json:
        print(json.dumps([audited.row() for audited in audits], indent=2, ensure_ascii=False))
    else:
        print(audit_table(audits), end="")
    return 0
