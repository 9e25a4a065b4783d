"""Bounds whatever the dependence for every requirement of a case."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from verifier.analysis import flow_kernel
from verifier.analysis.dependence_free import SIDES, Rates, dependence_free, program_from
from verifier.analysis.objective import Objective
from verifier.analysis.robust.any_dependence import Ends, ends_of
from verifier.analysis.robust.region import groups_of
from verifier.base.errors import InputError, UsageError
from verifier.base.files import json_of
from verifier.study.case import Case, Study
from verifier.study.points import FreeBounds, RatesOf, block_text
from verifier.study.scenarios import refuse_others


def free_bounds(case: Case) -> tuple[tuple[FreeBounds, ...], ...]:
    """For each requirement, at each initial state.

    Raises:
        UsageError: bounds come from draws, which have no region; or something else than a probability is asked.
        VerifierError: as `dependence_free` and `ends_of`.
    """
    of: RatesOf = "measured" if case.study.data is None else "confidence_region"
    solved = (dependence_free(*asked) for asked in _asked(case))
    flat = [
        FreeBounds(_below(each.lower), -_below(-each.upper), each.horizon, each.flows, each.undecided, of)
        for each in solved
    ]
    width = len(case.skeleton.starts)
    return tuple(tuple(flat[first : first + width]) for first in range(0, len(flat), width))


def free_certificates(study: Study) -> dict[str, bytes]:
    """Path -> bytes of the certificate of every end; raises as `free_bounds`."""
    files: dict[str, bytes] = {}
    for number, case in enumerate(study.cases):
        for place, asked in enumerate(_asked(case)):
            found = dependence_free(*asked)
            for proof, end in zip(found.proofs, (found.lower, found.upper), strict=False):
                path, about = _certified(case, number, place, proof.side)
                content = {"about": about, **proof.document(end)}
                files[path] = (json.dumps(content, allow_nan=False) + "\n").encode()
    return files


def wrong_certificates(study: Study, files: Mapping[str, bytes]) -> list[str]:
    """What is wrong with certificates of these bounds: of another program than spec, model and matrices give, not
    proven, missing, or of nothing that is asked. No program is solved.

    Args:
        study: the system.
        files: path -> bytes, as `free_certificates` gives them.

    Raises:
        VerifierError: as `free_bounds`.
    """
    wrong, left = [], set(files)
    for number, case in enumerate(study.cases):
        for place, asked in enumerate(_asked(case)):
            program = program_from(*asked)
            for side in () if program is None else SIDES:
                path, about = _certified(case, number, place, side)
                left.discard(path)
                if path not in files:
                    wrong.append(f"{path}: missing")
                    continue
                try:
                    content = json_of(files[path], path)
                    own = content if isinstance(content, dict) else {}
                    same = (own.get("about"), own.get("side"), own.get("program")) == (
                        about, side, program and program.document(side)
                    )  # fmt: skip
                    if not same:
                        wrong.append(f"{path}: about another system than spec, model and matrices give")
                        continue
                    flow_kernel.check(content)
                except (InputError, flow_kernel.Rejected) as error:
                    wrong.append(f"{path}: {error}")
    return wrong + [f"{path}: about nothing that is asked" for path in sorted(left)]


def _certified(case: Case, number: int, place: int, side: str) -> tuple[str, dict[str, Any]]:
    """Path of a certificate of the case with that number, and what it is about."""
    requirement, start = divmod(place, len(case.skeleton.starts))
    about = {
        "requirement": case.study.requirements[requirement].name,
        "planner": case.planner.name,
        "scenario": block_text(case.environment, case.constants),
        "initial": dict(case.initial_states[start]),
    }
    name = f"block{number + 1:03}_requirement{requirement + 1:02}_start{start + 1:03}_{side}"
    return f"certificates/{name}.json", about


def _asked(case: Case) -> Iterator[tuple[Objective, Ends, Rates, int, int | None, int]]:
    """The arguments of `dependence_free` for each requirement and initial state, in this order."""
    study, options = case.study, case.study.options
    refuse_others(study.requirements, "--dependence-free")
    skeleton = case.skeleton
    if study.data is None:
        rates = Rates.of_counts(case.counts, groups_of(skeleton.channel))
    else:
        region, settings = study.data.region(skeleton), options.confidence
        if region is None:
            raise UsageError(
                "--dependence-free needs bounds on rates, and --bounds approximate has none: leave out one"
            )
        shared = settings is not None and settings.semantics == "shared_matrix"
        rates = Rates.of_region(region, shared)
    for number in range(len(study.requirements)):
        objective = case.objective(number)
        ends = ends_of(objective, study.measured)
        for start in range(len(skeleton.starts)):
            yield objective, ends, rates, start, options.horizon, options.max_lp


def _below(number: Fraction) -> float:
    """The greatest double that is not above it."""
    near = float(number)
    return near if Fraction(near) <= number else math.nextafter(near, -math.inf)
