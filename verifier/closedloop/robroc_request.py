"""What `verify robroc` is asked for: curves of files, or verified ones, and their worst case over conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from verifier.base.errors import UsageError, unknown_name
from verifier.base.options import named_files
from verifier.closedloop.comparison import compare
from verifier.closedloop.curvefiles import read_curves
from verifier.closedloop.settings import RobrocSettings, checked_severities
from verifier.closedloop.trade_offs import CurveSet, TradeOffs
from verifier.study.provenance import own_versions

if TYPE_CHECKING:
    from verifier.closedloop.verified_curves import Progress


def robroc_result(settings: RobrocSettings, progress: Progress = iter) -> TradeOffs:
    """Everything that `verify robroc` finds.

    Args:
        settings: every choice; outputs that they name are not written.
        progress: wraps the list of matrices that curves are verified with, for a progress bar.

    Raises:
        VerifierError: see `verifier.base.errors`; each says what to do.
    """
    families = matrix_families(settings)
    checked_severities(settings.severity)  # before anything is verified
    if not families:
        return _trade_offs(settings, _curves_of_files(settings.files))
    from verifier.closedloop.verified_curves import verified_curves  # Storm is loaded only where it is asked

    return _trade_offs(settings, verified_curves(settings, families, progress))


def matrix_families(settings: RobrocSettings) -> dict[str, str]:
    """Name -> file of each family of confusion matrices; empty where curves are read.

    Raises:
        UsageError: the settings name both or neither, or not all that verified curves need.
    """
    if bool(settings.files) == bool(settings.spec):
        raise UsageError("name files of curves, or --spec with --safety, --progress and --cm")
    families = named_files("--cm", settings.cm)
    if families and not settings.spec:
        raise UsageError("--cm belongs to --spec")
    if settings.spec and not (families and settings.safety and settings.progress):
        raise UsageError("--spec needs --safety NAME, --progress NAME and at least one --cm FILE")
    return families


def _curves_of_files(paths: Sequence[str]) -> CurveSet:
    files = [read_curves(path) for path in paths]
    names = [PurePath(file.name).name for file in files]
    return CurveSet(
        next((file.title for file in files if file.title), ", ".join(names)),
        [curve for file in files for curve in file.curves],
        tuple(
            {"role": "curves", "name": name, "sha256": file.sha256} for name, file in zip(names, files, strict=True)
        ),
        own_versions(),
    )


def _trade_offs(settings: RobrocSettings, found: CurveSet) -> TradeOffs:
    named, more = checked_severities(settings.severity), settings.group
    known = {curve.condition for curve in found.curves}
    for name in named:
        if name not in known:
            message, hint = unknown_name("condition", name, known)
            raise UsageError(f"severity: {message} ({hint})")
    judged = [replace(curve, severity=named.get(curve.condition, curve.severity)) for curve in found.curves]
    metrics = dict.fromkeys(curve.metric for curve in judged)
    chosen = {"severities": named, "groups": {name: list(conditions) for name, conditions in more.items()}}
    return TradeOffs(
        found.title,
        found.inputs,
        {**found.settings, **chosen},
        found.versions,
        found.remarks,
        tuple(compare([curve for curve in judged if curve.metric == metric], more) for metric in metrics),
    )
