"""The causes of an explanation computed again, and its violating runs gone through again, on the rebuilt system.

A run in the document is a list of valuations. Here it is walked on the skeleton: each step must be a transition, the
step probabilities must be the exact fractions of the matrices and multiply to that of the run, and the formula must
fail on it by its own semantics (`verifier.analysis.counterexamples.replay`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from verifier.analysis.counterexamples.causes import Losses
from verifier.analysis.counterexamples.explanation import RunRecord
from verifier.analysis.counterexamples.patterns import DetectionError
from verifier.analysis.counterexamples.replay import Replay, replay
from verifier.analysis.counterexamples.runs import (
    Run,
    exact_entries,
    exact_probability,
    prospects,
    violation_probability,
)
from verifier.analysis.objective import Objective
from verifier.analysis.sensitivity.adjoint import Values, state_values
from verifier.analysis.sensitivity.priorities import corrected_probabilities
from verifier.base.documents import fraction_of
from verifier.base.errors import EngineError
from verifier.chains.chain import filled_counts
from verifier.checking.enclosure import AGREEMENT
from verifier.checking.two_engines import AbstractFormula
from verifier.evidence.bundle.layout import EXPLAIN_FILE
from verifier.evidence.differences import differing, wrong_decisions
from verifier.evidence.documents import Document
from verifier.evidence.findings import Finding, misstated
from verifier.language.ltl.progression import ACCEPT, REJECT
from verifier.questions.explain.explain_result import Explained, ExplainResult, Violation
from verifier.study.case import Study
from verifier.study.points import WorldDecisions
from verifier.study.results import RequirementResult
from verifier.study.world_decisions import decisions_at, objective_left
from verifier.systems.contexts import told_to_planner

_wrong = partial(misstated, EXPLAIN_FILE)
_TOLERANCE = 1e-11
_MORE_PATTERNS = 3
"""Patterns that are looked for beyond those stated: equally probable ones may change places."""
_TOLD_AGAIN = {each.name for each in fields(Explained)} & {each.name for each in fields(RequirementResult)} - {
    "world"
}
"""What an explanation repeats of a requirement of the run; what the world does it says of its own scenario."""


class Replayed(NamedTuple):
    """How many runs were gone through again; how many of them with the formula."""

    runs: int
    whole: int
    findings: list[Finding]


def check_explanations(told: Document, run: Document, rebuilt: Study) -> Replayed:
    """Hold an explanation against the run of the bundle and against the system.

    Args:
        told: the explanation.
        run: that of the bundle.
        rebuilt: the system.
    """
    result: ExplainResult = told.result
    runs = whole = 0
    findings: list[Finding] = []
    if len(result.explanations) != len(run.result.requirements):
        said, wanted = len(result.explanations), len(run.result.requirements)
        findings.append(_wrong("/explanations", f"{said} explanations", f"{wanted}, one per requirement"))
    for k, (each, one) in enumerate(zip(result.explanations, run.result.requirements, strict=False)):
        pointer, violation = f"/explanations/{k}", each.violation
        same = [point for point in one.points if point.place == each.point.place]
        expected = {name: getattr(one, name) for name in _TOLD_AGAIN} | {"point": same[0] if same else None}
        found = {name: getattr(each, name) for name in expected}
        findings += differing(EXPLAIN_FILE, found, expected, ", as in the run", pointer)
        if not same:
            continue
        walked = _Walked.of(each, rebuilt)
        findings += wrong_decisions(EXPLAIN_FILE, each.world, walked.world, pointer)
        asked = sorted(told_to_planner(frozenset().union(*walked.objective.skeleton.channel.observations)))
        findings += differing(EXPLAIN_FILE, each.asks_about, asked, "", f"{pointer}/asks_about")
        findings += walked.total(each, pointer)
        findings += walked.causes(violation, f"{pointer}/violation", result)
        for number, pattern in enumerate(violation.patterns):
            for member, stated in enumerate(pattern.members):
                at = f"{pointer}/violation/patterns/{number}/members/{member}"
                wrong = list(walked.wrong(stated, violation.satisfies_the_formula))
                findings += [_wrong(at + where, said, wanted) for where, said, wanted in wrong]
                runs += 1
                whole += stated.replayed == "whole" and not wrong
    return Replayed(runs, whole, findings)


class _Walked(NamedTuple):
    """The requirement's product in one scenario, on the chain that the world leaves; the number of the initial state;
    and what the world does there."""

    objective: Objective
    formula: AbstractFormula
    values: Values
    start: int
    rebuilt: Study
    world: WorldDecisions | None

    @classmethod
    def of(cls, each: Explained, rebuilt: Study) -> _Walked:
        names = [requirement.name for requirement in rebuilt.requirements]
        case, start = rebuilt.place_of(each.planner, each.point)
        number = names.index(each.name)
        objective = objective_left(case, number)
        values = state_values(objective, rebuilt.measured.rates)
        world = decisions_at(each.name, each.planner, each.point, rebuilt)
        return cls(objective, rebuilt.formulas[number], values, start, rebuilt, world)

    def total(self, each: Explained, pointer: str) -> Iterator[Finding]:
        """The probability of violation, which the second engine computes again."""
        stated, satisfying = each.violation, each.violation.satisfies_the_formula
        value, error = violation_probability(self.objective, self.rebuilt.measured.rates, self.start, satisfying)
        if not abs(stated.probability - value) <= error + AGREEMENT * value:
            yield _wrong(f"{pointer}/violation/probability", repr(stated.probability), repr(value))
        listed = math.fsum(pattern.probability for pattern in stated.patterns)
        covered = listed / stated.probability if stated.probability else None
        if not _same_share(stated.covered, covered):
            yield _wrong(f"{pointer}/violation/covered", repr(stated.covered), repr(covered))
        for name in ("causes", "patterns"):
            for number, part in enumerate(getattr(stated, name)):
                share = part.probability / stated.probability if stated.probability else None
                if not _same_share(part.share, share):
                    yield _wrong(f"{pointer}/violation/{name}/{number}/share", repr(part.share), repr(share))
        upper_target = each.target is not None and each.target.is_upper
        if satisfying != upper_target:
            yield _wrong(f"{pointer}/violation/satisfies_the_formula", str(satisfying), str(upper_target))

    def causes(self, stated: Violation, pointer: str, result: ExplainResult) -> Iterator[Finding]:
        """Causes, corrections and patterns, which are computed again; equal ones may stand in any order."""
        unknown = [_wrong(pointer + where, told, "one that there is") for where, told in _unknown(stated, result)]
        if unknown:
            yield from unknown
            return
        before = prospects(self.objective, self.values, stated.satisfies_the_formula)
        losses = Losses(self.objective, self.values, before)
        total = float(before.violation[self.objective.product.start[self.start]])
        found = losses.attribution(self.start, total)
        patterns = losses.patterns(self.start, len(stated.patterns) + _MORE_PATTERNS, total)
        names = result.labels
        kinds = [
            DetectionError(kind.bin, names.index(kind.reported), names.index(kind.true))
            for kind in stated.detection_errors
        ]
        by_cause = {(frozenset(cause.reports), cause.others): cause.probability for cause in found.causes}
        by_pattern = {pattern.steps: pattern.probability for pattern in patterns.patterns}
        told = [(frozenset(kinds[k] for k in cause.detection_errors), cause.others) for cause in stated.causes]
        steps = [
            tuple(frozenset(frozenset(kinds[k] for k in one) for one in step) for step in pattern.steps)
            for pattern in stated.patterns
        ]
        rest = math.fsum(probability for cause, probability in by_cause.items() if cause not in told)
        hidden = [kind for kind in kinds if kind in found.not_told_apart]
        sets = [[kind] for kind in kinds]
        sets += [[kinds[k] for k in best.detection_errors] for best in stated.corrections]
        sets += [[*reports, *(hidden if others else ())] for reports, others in told]
        solved = corrected_probabilities(self.objective, self.values.rates, sets, self.start).tolist()
        corrected = ("detection_errors", "corrections", "causes")
        places = [(name, k, "corrected") for name in corrected for k in range(len(getattr(stated, name)))]
        places += [
            (name, k, "probability") for name in ("causes", "patterns") for k in range(len(getattr(stated, name)))
        ]
        expected = [*solved, *(by_cause.get(cause) for cause in told), *(by_pattern.get(each) for each in steps)]
        for (name, k, key), value in zip(places, expected, strict=True):
            said = getattr(getattr(stated, name)[k], key)
            if value is None or not _same_share(said, value):
                wanted = "no such part, computed from the inputs" if value is None else repr(value)
                yield _wrong(f"{pointer}/{name}/{k}/{key}", repr(said), wanted)
        if not _same_share(stated.rest, rest):
            yield _wrong(f"{pointer}/rest", repr(stated.rest), repr(rest))

    def wrong(self, told: RunRecord, satisfying: bool) -> Iterator[tuple[str, str, str]]:
        """(pointer, found, expected) of what is not so about one run."""
        run = self._run(told)
        if isinstance(run, int):
            where = f"/steps/{run - 1}/after" if run else "/initial"
            yield where, "a valuation that the system does not come to there", "one of its transitions"
            return
        skeleton = self.objective.skeleton
        counts = filled_counts(skeleton, self.rebuilt.matrices, self.rebuilt.options.empty_columns)
        entries = skeleton.entry[run.transitions]
        exact = exact_entries(skeleton, counts, np.unique(entries))
        for k, entry in enumerate(entries.tolist()):
            stated = told.steps[k].probability
            same = fraction_of(stated) == exact[entry] if isinstance(stated, str) else _near(stated, exact[entry])
            if not same:
                yield f"/steps/{k}/probability", str(stated)[:60], f"{exact[entry]}, as the matrices give it"
        product = exact_probability(skeleton, run, exact)
        if product is not None and not _near(told.probability, product):
            yield "/probability", repr(told.probability), f"{float(product)!r}, the product of its steps"
        try:
            inner = self.formula
            done = replay(
                self.objective,
                self.values,
                run,
                inner.formula,
                inner.propositions,
                satisfying=satisfying,
                exact=exact,
            )
        except EngineError as error:
            yield "", str(error), "a run that violates the requirement"
            return
        if (done is Replay.WHOLE) != (told.replayed == "whole"):
            yield "/replayed", told.replayed, "whole" if done is Replay.WHOLE else "steps"

    def _run(self, told: RunRecord) -> Run | int:
        """The run on chain and product; or the number of the first valuation that does not follow, from 0."""
        skeleton, product = self.objective.skeleton, self.objective.product
        states, nodes, transitions = [int(skeleton.starts[self.start])], [int(product.start[self.start])], []
        if told.initial != self._valuation(states[0]):
            return 0
        for k, step in enumerate(told.steps, 1):
            begin, end = int(skeleton.indptr[states[-1]]), int(skeleton.indptr[states[-1] + 1])
            after = [at for at in range(begin, end) if self._valuation(int(skeleton.indices[at])) == step.after]
            if not after:
                return k
            transitions.append(after[0])
            states.append(int(skeleton.indices[after[0]]))
            nodes.append(self._next(nodes[-1], after[0]))
        path, taken, through = (np.array(each, dtype=np.int64) for each in (states, transitions, nodes))
        return Run(path, taken, through, told.counted_steps, told.probability, told.irrevocable_after)

    def _valuation(self, state: int) -> dict[str, int]:
        return {name: int(column[state]) for name, column in self.objective.skeleton.valuations.items()}

    def _next(self, node: int, transition: int) -> int:
        """Where the product goes from a node by a transition of the chain."""
        product = self.objective.product
        if node in (ACCEPT, REJECT):
            return node
        begin, end = int(product.indptr[node]), int(product.indptr[node + 1])
        (places,) = np.nonzero(product.edge[begin:end] == transition)
        return int(product.indices[begin + int(places[0])])


def _unknown(stated: Violation, result: ExplainResult) -> Iterator[tuple[str, str]]:
    """(pointer, what stands there) of cells that no matrix has, and of positions that are not in their list."""
    kinds = stated.detection_errors
    for k, kind in enumerate(kinds):
        if kind.bin >= len(result.bins) or {kind.true, kind.reported} - set(result.labels):
            told = f"true {kind.true} reported as {kind.reported} in bin {kind.bin}"
            yield f"/detection_errors/{k}", told
    for name in ("causes", "corrections"):
        for k, part in enumerate(getattr(stated, name)):
            yield from (
                (f"/{name}/{k}/detection_errors", str(at)) for at in part.detection_errors if at >= len(kinds)
            )
    for k, pattern in enumerate(stated.patterns):
        named = (at for step in pattern.steps for reports in step for at in reports)
        yield from ((f"/patterns/{k}/steps", str(at)) for at in named if at >= len(kinds))


def _same_share(stated: float | None, computed: float | None) -> bool:
    if stated is None or computed is None:
        return stated is computed
    return abs(stated - computed) <= AGREEMENT


def _near(stated: float, exact: Fraction) -> bool:
    return abs(stated - float(exact)) <= _TOLERANCE * float(exact)
