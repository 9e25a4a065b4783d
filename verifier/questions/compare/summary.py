"""From scores to tables: intervals, chances, the Pareto view."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from verifier.analysis.comparison import best_chances, better_chances, non_dominated, non_dominated_chances
from verifier.analysis.intervals.intervals import Kind
from verifier.language.expressions import to_text
from verifier.language.specs import Requirement
from verifier.questions.compare.scores import Scores, interval_of
from verifier.questions.compare.tables import (
    Configuration,
    Entry,
    ParetoView,
    Reach,
    RequirementComparison,
    ScoreInterval,
)
from verifier.study.collection import target_of
from verifier.study.points import Point
from verifier.study.profile import Profile


def requirement_comparison(
    requirement: Requirement,
    configurations: Sequence[Configuration],
    points: Sequence[Sequence[Point]],
    scores: Scores,
    index: int,
    kinds: Sequence[Kind],
    level: float,
    reach: tuple[Reach, ...] = (),
    profiles: Sequence[Profile | None] = (),
) -> RequirementComparison:
    """One requirement over all configurations.

    Args:
        requirement: of the spec, number `index` in `scores`.
        configurations: in the order of the scores.
        points: Storm's, of each configuration.
        scores: all of the spec.
        kinds: of each configuration's draws.
        reach: of the best possible planner.
        profiles: what the scenarios of each configuration count for, where means are asked for.
    """
    sign = -1 if requirement.comparison in ("<=", "<") else 1
    table = scores.table(index, len(configurations))
    best = best_chances(table)
    entries = []
    for k, configuration in enumerate(configurations):
        lower, upper = interval_of(sign * table[:, k], level, kinds[k])
        worst = min(range(len(points[k])), key=lambda at, k=k: sign * points[k][at].probability)  # type: ignore[misc]
        records = tuple(points[k])
        profile = profiles[k] if profiles else None
        entries.append(Entry.of(configuration, records, worst, ScoreInterval(lower, upper), float(best[k]), profile))
    return RequirementComparison(
        requirement.name,
        to_text(requirement.formula, parenthesise=True),
        target_of(requirement),
        tuple(entries),
        tuple(tuple(row) for row in better_chances(table).tolist()),
        tuple(scores.curves(index, kinds, sign, level)),
        reach,
        str(requirement.asked),
    )


def pareto_view(
    names: tuple[str, str], requirements: Sequence[RequirementComparison], scores: Scores, configurations: int
) -> ParetoView | None:
    """Two requirements at once; None when the spec does not have both."""
    known = [each.name for each in requirements]
    if not set(names) <= set(known):
        return None
    indices = [known.index(name) for name in names]
    signs = [1 if requirements[index].larger_is_better else -1 for index in indices]
    points = np.array(
        [
            [sign * requirements[index].entries[k].probability for index, sign in zip(indices, signs, strict=True)]
            for k in range(configurations)
        ]
    )
    draws = np.stack([scores.table(index, configurations) for index in indices], axis=2)
    return ParetoView(
        *names,
        tuple(bool(each) for each in non_dominated(points)),
        tuple(float(each) for each in non_dominated_chances(draws)),
    )
