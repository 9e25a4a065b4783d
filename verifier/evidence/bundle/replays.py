"""The violating runs of an explanation gone through again, on the rebuilt system.

A run in the document is a list of valuations. Here it is walked on the skeleton: each step must be a transition, the
step probabilities must be the exact fractions of the matrices and multiply to that of the run, and the formula must
fail on it by its own semantics (`verifier.analysis.counterexamples.replay`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from verifier.analysis.counterexamples.explanation import RunRecord
from verifier.analysis.counterexamples.replay import Replay, replay
from verifier.analysis.counterexamples.runs import Run, exact_entries, exact_probability, violation_probability
from verifier.analysis.objective import Objective
from verifier.analysis.sensitivity.adjoint import Values, state_values
from verifier.base.documents import fraction_of
from verifier.base.errors import EngineError
from verifier.chains.chain import filled_counts
from verifier.checking.enclosure import AGREEMENT
from verifier.checking.two_engines import AbstractFormula
from verifier.evidence.bundle.layout import EXPLAIN_FILE
from verifier.evidence.bundle.parts import Parts
from verifier.evidence.differences import differing, wrong_decisions
from verifier.evidence.findings import Finding, Log, Misstated
from verifier.language.ltl.progression import ACCEPT, REJECT
from verifier.questions.explain.explain_result import Explained
from verifier.study.case import Study
from verifier.study.points import WorldDecisions
from verifier.study.results import RequirementResult
from verifier.study.world_decisions import decisions_at, objective_left
from verifier.systems.contexts import told_to_planner

_wrong = partial(Misstated, EXPLAIN_FILE)
_TOLERANCE = 1e-11
_TOLD_AGAIN = {field.name for field in fields(Explained)} & {field.name for field in fields(RequirementResult)} - {
    "world"
}
"""What an explanation repeats of a requirement of the run; what the world does it says of its own scenario."""


def check_explanations(parts: Parts, log: Log) -> None:
    """Hold the explanations against the run of the bundle and against the system."""
    explanations: Sequence[Explained] = parts.documents[EXPLAIN_FILE].result.explanations
    requirements = parts.result.requirements
    runs = whole = 0
    if len(explanations) != len(requirements):
        said, wanted = f"{len(explanations)} explanations", f"{len(requirements)}, one per requirement"
        log.findings.append(_wrong("/explanations", said, wanted))
    for k, (explanation, one) in enumerate(zip(explanations, requirements, strict=False)):
        pointer, violation = f"/explanations/{k}", explanation.violation
        same = [point for point in one.points if point.place == explanation.point.place]
        expected = {name: getattr(one, name) for name in _TOLD_AGAIN} | {"point": same[0] if same else None}
        repeated = {name: getattr(explanation, name) for name in expected}
        log.findings += differing(EXPLAIN_FILE, repeated, expected, ", as in the run", pointer)
        if not same:
            continue
        walked = _Walked.of(explanation, parts.rebuilt)
        log.findings += wrong_decisions(EXPLAIN_FILE, explanation.world, walked.world, pointer)
        asked = sorted(told_to_planner(frozenset().union(*walked.objective.skeleton.channel.observations)))
        log.findings += differing(EXPLAIN_FILE, explanation.asks_about, asked, "", f"{pointer}/asks_about")
        log.findings += walked.total(explanation, pointer)
        for number, pattern in enumerate(violation.patterns):
            for member, stated in enumerate(pattern.members):
                at = f"{pointer}/violation/patterns/{number}/members/{member}"
                wrong = list(walked.wrong(stated, violation.satisfies_the_formula))
                log.findings += [_wrong(at + where, said, wanted) for where, said, wanted in wrong]
                runs += 1
                whole += stated.replayed == "whole" and not wrong
    log.checked.append((runs, f"violating runs replayed on the rebuilt system, {whole} with the formula"))


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
    def of(cls, explained: Explained, rebuilt: Study) -> _Walked:
        names = [requirement.name for requirement in rebuilt.requirements]
        case, start = rebuilt.place_of(explained.planner, explained.point)
        number = names.index(explained.name)
        objective = objective_left(case, number)
        values = state_values(objective, rebuilt.measured.rates)
        world = decisions_at(explained.name, explained.planner, explained.point, rebuilt)
        return cls(objective, rebuilt.formulas[number], values, start, rebuilt, world)

    def total(self, explained: Explained, pointer: str) -> Iterator[Finding]:
        """The probability of violation, which the second engine computes again."""
        stated, satisfying = explained.violation, explained.violation.satisfies_the_formula
        value, error = violation_probability(self.objective, self.rebuilt.measured.rates, self.start, satisfying)
        if not abs(stated.probability - value) <= error + AGREEMENT * value:
            yield _wrong(f"{pointer}/violation/probability", repr(stated.probability), repr(value))
        upper_target = explained.target is not None and explained.target.is_upper
        if satisfying != upper_target:
            yield _wrong(f"{pointer}/violation/satisfies_the_formula", str(satisfying), str(upper_target))

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
        asked = self.formula.formula, self.formula.propositions
        try:
            done = replay(self.objective, self.values, run, *asked, satisfying=satisfying, exact=exact)
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
        path, taken, through = (np.array(row, dtype=np.int64) for row in (states, transitions, nodes))
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


def _near(stated: float, exact: Fraction) -> bool:
    return abs(stated - float(exact)) <= _TOLERANCE * float(exact)
