"""The command `verify robroc`: curves from files, or verified ones, and their worst case over conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from verifier.base.errors import UsageError, unknown_name
from verifier.cli.closedloop import Gathered, check_targets, checked_severities, give
from verifier.cli.closedloop_data import named_paths
from verifier.cli.invocation import Command
from verifier.cli.sources import with_models
from verifier.closedloop.comparison import compare
from verifier.closedloop.curvefiles import read_curves
from verifier.closedloop.results import TradeOffs
from verifier.closedloop.settings import RobrocSettings


def robroc_command(arguments: RobrocSettings, command: Command) -> int:
    """Run `verify robroc` and give its exit code."""
    if bool(arguments.files) == bool(arguments.spec):
        raise UsageError("name files of curves, or --spec with --safety, --progress and --cm")
    families = _families(arguments)
    sources = [*arguments.files, *with_models([arguments.spec] if arguments.spec else []), *families.values()]
    check_targets(arguments, {}, sources)
    if not arguments.spec:
        gathered = _from_files(arguments.files)
    else:
        from verifier.cli.verified_curves import verified_curves  # Storm is loaded only where it is asked

        gathered = verified_curves(arguments, families)
    give(arguments, _result(arguments, gathered), {}, command)
    return 0


def _from_files(paths: Sequence[str]) -> Gathered:
    files = [read_curves(path) for path in paths]
    names = [PurePath(each.name).name for each in files]
    return Gathered(
        next((each.title for each in files if each.title), ", ".join(names)),
        [each for file in files for each in file.curves],
        tuple(
            {"role": "curves", "name": name, "sha256": each.sha256} for name, each in zip(names, files, strict=True)
        ),
    )


def _result(arguments: RobrocSettings, gathered: Gathered) -> TradeOffs:
    named, more = checked_severities(arguments.severity), arguments.group
    known = {each.condition for each in gathered.curves}
    for name in named:
        if name not in known:
            message, hint = unknown_name("condition", name, known)
            raise UsageError(f"severity: {message} ({hint})")
    judged = [replace(each, severity=named.get(each.condition, each.severity)) for each in gathered.curves]
    metrics = dict.fromkeys(each.metric for each in judged)
    chosen = {"severities": named, "groups": {name: list(each) for name, each in more.items()}}
    return TradeOffs(
        gathered.title,
        gathered.inputs,
        {**gathered.settings, **chosen},
        gathered.versions,
        gathered.remarks,
        tuple(compare([each for each in judged if each.metric == metric], more) for metric in metrics),
    )


def _families(arguments: RobrocSettings) -> dict[str, str]:
    """Name -> file of each family of confusion matrices."""
    found = named_paths("--cm", arguments.cm)
    if found and not arguments.spec:
        raise UsageError("--cm belongs to --spec")
    if arguments.spec and not (found and arguments.safety and arguments.progress):
        raise UsageError("--spec needs --safety NAME, --progress NAME and at least one --cm FILE")
    return found
