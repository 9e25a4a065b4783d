"""Bounds whatever the dependence for every requirement of a case."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from verifier.analysis import step_kernel
from verifier.analysis.dependence_free import (
    SIDES,
    FreeBounds,
    Program,
    Rates,
    decided_value,
    dependence_free,
    program_from,
)
from verifier.analysis.objective import Objective
from verifier.analysis.robust.any_dependence import Ends, ends_of
from verifier.analysis.robust.inner_bounds import Side
from verifier.analysis.robust.region import groups_of
from verifier.base.errors import InputError, UsageError
from verifier.base.files import json_of
from verifier.study.case import Case, Study
from verifier.study.collection import CheckedCase
from verifier.study.inputs import refuse_others
from verifier.study.points import block_text

Named: TypeAlias = Callable[[int, int, str, int], str]
"""Where the certificate of a block, a requirement, a side and an initial state lies, numbered from 0."""


def free_bounds(case: Case) -> tuple[tuple[FreeBounds, ...], ...]:
    """For each requirement, at each initial state of the block without memory, with proofs.

    Raises:
        UsageError: bounds come from draws, which have no region; or something else than a probability is asked.
        VerifierError: as `dependence_free` and `ends_of`.
    """
    case = case.forgetful
    flat, width = [dependence_free(*asked) for asked in _asked(case)], len(case.skeleton.starts)
    return tuple(tuple(flat[first : first + width]) for first in range(0, len(flat), width))


def free_certificates(cases: Sequence[CheckedCase], named: Named) -> dict[str, bytes]:
    """Path -> bytes of the certificate of every end of the bounds of all blocks, which nothing solves for again."""
    files: dict[str, bytes] = {}
    for block, checked in enumerate(cases):
        for number, starts in enumerate(checked.free):
            for start, bounds in enumerate(starts):
                about = _about(checked.case.forgetful, number, start)
                for proof, end in zip(bounds.proofs, (bounds.lower, bounds.upper), strict=False):
                    content = {"about": about, **proof.document(end)}
                    files[named(block, number, proof.side, start)] = _bytes_of(content)
    return files


@dataclass(frozen=True)
class CheckedEnds:
    """What certificates prove about one requirement at one initial state of a block.

    Attributes:
        block, requirement, start: from 0; the start is one of the block without memory.
        lower, upper: proven ends of P; None without a proof.
        horizon, flows: of the program that the inputs give; 0 where nothing is left to prove.
        paths: of the certificates that belong there.
        wrong: (path, what is wrong with it).
    """

    block: int
    requirement: int
    start: int
    lower: Fraction | None
    upper: Fraction | None
    horizon: int
    flows: int
    paths: tuple[str, ...]
    wrong: tuple[tuple[str, str], ...]


def checked_ends(study: Study, files: Mapping[str, bytes], named: Named) -> Iterator[CheckedEnds]:
    """Every end of these bounds with its certificate: that it is proven, of the program that spec, model and matrices
    give. No program is solved.

    Args:
        files: path -> bytes, as `free_certificates` gives them.
        named: as for `free_certificates`.

    Raises:
        VerifierError: as `free_bounds`.
    """
    for block, case in enumerate(study.forgetful.cases):
        for place, asked in enumerate(_asked(case)):
            number, start = divmod(place, len(case.skeleton.starts))
            program = program_from(*asked)
            if program is None:
                value = decided_value(*asked[:2], asked[3])
                yield CheckedEnds(block, number, start, value, value, 0, 0, (), ())
                continue
            about, wrong = _about(case, number, start), list[tuple[str, str]]()
            paths, ends = tuple(named(block, number, side, start) for side in SIDES), dict[Side, Fraction]()
            for side, path in zip(SIDES, paths, strict=True):
                try:
                    ends[side] = _proven(files, path, about, side, program)
                except (InputError, step_kernel.Rejected) as error:
                    wrong.append((path, str(error).removeprefix(f"{path}: ")))
            lower, upper = ends.get("lower"), ends.get("upper")
            size = program.horizon, len(program.step)
            yield CheckedEnds(block, number, start, lower, upper, *size, paths, tuple(wrong))


def _proven(files: Mapping[str, bytes], path: str, about: object, side: Side, program: Program) -> Fraction:
    """The end that a certificate proves; Rejected or InputError where it proves none of this program."""
    if path not in files:
        raise step_kernel.Rejected("missing")
    content = json_of(files[path], path)
    given = content if isinstance(content, dict) else {}
    known = {"about": about, "side": side, "program": program.document(side)}
    if {name: given.get(name) for name in known} != known:
        raise step_kernel.Rejected("about another system than spec, model and matrices give")
    if set(given) != {*known, "claimed", "multipliers"} or _bytes_of(given) != files[path]:
        raise step_kernel.Rejected("the same certificate in other bytes than were written")
    return step_kernel.check_free(given)


def _bytes_of(content: Mapping[str, object]) -> bytes:
    return (json.dumps(content, allow_nan=False) + "\n").encode()


def _about(case: Case, number: int, start: int) -> dict[str, object]:
    """What a certificate of a requirement at an initial state is about."""
    return {
        "requirement": case.study.requirements[number].name,
        "planner": case.planner.name,
        "scenario": block_text(case.environment, case.constants),
        "initial": dict(case.initial_states[start]),
    }


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
