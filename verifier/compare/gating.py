"""Holding a comparison against a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from verifier.compare.gate import Baseline, Drop, Gate, Worst, drop_of, worst_of_points
from verifier.compare.scores import Scores
from verifier.compare.tables import RequirementComparison, SpecComparison
from verifier.errors import InputError, Place, shown
from verifier.require.results import point_document
from verifier.scenarios import Selection


def gate_of(
    baseline: Baseline,
    max_drop: Fraction,
    compared: Sequence[tuple[SpecComparison, Scores]],
    hashes: Mapping[str, str],
    selection: Selection,
) -> Gate:
    """What became of every requirement of the baseline.

    Args:
        baseline: the earlier result.
        max_drop: largest drop that is allowed.
        compared: the specs with their scores.
        hashes: detector -> SHA-256 of its matrices.
        selection: requirements and planners that the user names are all that is looked at.

    Raises:
        InputError: something of the baseline is not compared here, or over other scenarios.
    """
    drops = []
    for (spec, requirement, detector, planner), before in baseline.worst.items():
        if selection.requirements and requirement not in selection.requirements:
            continue
        if selection.planners and planner not in (*selection.planners, *_all(selection, planner)):
            continue
        place = Place(baseline.file.name, path=f"{spec}: {requirement}, planner {planner}")
        found = [(each, scores) for each, scores in compared if each.spec == spec]
        if not found:
            raise InputError("the baseline is about a spec that is not compared here", place)
        comparison, scores = found[0]
        names = [each.name for each in comparison.requirements]
        if requirement not in names:
            raise InputError("the baseline has a requirement that is not compared here", place)
        index = names.index(requirement)
        old = _known(baseline.detectors[detector], hashes)
        for name in _held_against(detector, baseline, hashes, place):
            drops.append(_drop(before, comparison, index, name, planner, old, max_drop, scores, place))
    if not drops:
        raise InputError("nothing of the baseline is compared here", Place(baseline.file.name))
    return Gate(baseline.file, max_drop, tuple(drops))


def _all(selection: Selection, planner: str) -> tuple[str, ...]:
    return (planner,) if "all" in selection.planners else ()


def _known(sha256: str, hashes: Mapping[str, str]) -> str | None:
    """The detector that has the matrices of the baseline."""
    return next((name for name, mine in hashes.items() if mine == sha256), None)


def _held_against(detector: str, baseline: Baseline, hashes: Mapping[str, str], place: Place) -> list[str]:
    """The detectors that a detector of the baseline is compared with: its namesake, or where the baseline has only
    one, every detector with other matrices."""
    if detector in hashes:
        return [detector]
    if len(baseline.detectors) > 1:
        raise InputError(
            f"the baseline has several detectors, and its {shown(detector)} is not compared here",
            place,
            f"give the matrices that name: --cm {detector}=FILE",
        )
    others = [name for name, mine in hashes.items() if mine != baseline.detectors[detector]]
    return others or list(hashes)


def _drop(
    before: Worst,
    comparison: SpecComparison,
    index: int,
    detector: str,
    planner: str,
    old: str | None,
    max_drop: Fraction,
    scores: Scores,
    place: Place,
) -> Drop:
    requirement = comparison.requirements[index]
    places = {(each.detector, each.planner): k for k, each in enumerate(comparison.contenders)}
    if (detector, planner) not in places:
        raise InputError("the baseline has a planner that is not compared here", place)
    here = places[detector, planner]
    now = _worst(requirement, here)
    if now.scenarios != before.scenarios:
        only = sorted(now.scenarios ^ before.scenarios)[0]
        side = "here" if only in now.scenarios else "in the baseline"
        raise InputError(
            f"the baseline is over other scenarios: {shown(only)} is only {side}",
            place,
            "compare with the same environments, initial states and constants, or make a new baseline",
        )
    drop, failed = drop_of(before, now, requirement.larger_is_better, max_drop)
    chance = None
    if old is not None and old != detector:
        table = scores.table(index, len(comparison.contenders))
        chance = float(np.mean(table[:, places[old, planner]] - table[:, here] > float(max_drop)))
    return Drop(
        comparison.spec,
        requirement.name,
        detector,
        planner,
        before.probability,
        now.probability,
        drop,
        failed,
        chance,
    )


def _worst(requirement: RequirementComparison, contender: int) -> Worst:
    points = [point_document(each) for each in requirement.entries[contender].points]
    return worst_of_points(points, requirement.larger_is_better)
