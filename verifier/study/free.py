"""Bounds whatever the dependence for every requirement of a case."""

from __future__ import annotations

import math
from fractions import Fraction

from verifier.analysis.dependence_free import Rates, dependence_free
from verifier.analysis.robust.any_dependence import ends_of
from verifier.analysis.robust.region import groups_of
from verifier.base.errors import UsageError
from verifier.study.case import Case
from verifier.study.points import FreeBounds, RatesOf
from verifier.study.scenarios import refuse_others


def free_bounds(case: Case) -> tuple[tuple[FreeBounds, ...], ...]:
    """For each requirement, at each initial state.

    Raises:
        UsageError: bounds come from draws, which have no region; or something else than a probability is asked.
        VerifierError: as `dependence_free` and `ends_of`.
    """
    study, options = case.study, case.study.options
    refuse_others(study.requirements, "--dependence-free")
    skeleton = case.skeleton
    of: RatesOf = "confidence_region"
    if study.data is None:
        rates, of = Rates.of_counts(case.counts, groups_of(skeleton.channel)), "measured"
    else:
        region, settings = study.data.region(skeleton), options.confidence
        if region is None:
            raise UsageError(
                "--dependence-free needs bounds on rates, and --bounds approximate has none: leave out one"
            )
        shared = settings is not None and settings.semantics == "shared_matrix"
        rates = Rates.of_region(region, shared)
    found = []
    for number in range(len(study.requirements)):
        objective = case.objective(number)
        ends = ends_of(objective, study.measured)
        bounds = [
            dependence_free(objective, ends, rates, start, options.horizon, options.max_lp)
            for start in range(len(skeleton.starts))
        ]
        found.append(
            tuple(
                FreeBounds(_below(each.lower), -_below(-each.upper), each.horizon, each.flows, each.undecided, of)
                for each in bounds
            )
        )
    return tuple(found)


def _below(number: Fraction) -> float:
    """The greatest double that is not above it."""
    near = float(number)
    return near if Fraction(near) <= number else math.nextafter(near, -math.inf)
