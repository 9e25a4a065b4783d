"""The gates of `verify run`: a least probability for every requirement, and a largest drop against a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from verifier.base.errors import UsageError, one_line
from verifier.base.files import read_json
from verifier.base.numbers import decimal_text
from verifier.checking.process import StormProcess
from verifier.pipeline import verified
from verifier.questions.settings import RunSettings, drop_rule, largest_drop, share
from verifier.study.case import Inputs, Study, read_inputs
from verifier.study.gates import BaselineFile, DropRecord, Gates, NewRequirement, Regression
from verifier.study.options import RunOptions
from verifier.study.results import InputFile, RunResult

if TYPE_CHECKING:  # comparisons take a while to import, and most runs have no gates
    from verifier.questions.compare.gate import Baseline, Gate

PAIRED = (
    "worst probabilities, both verified here; posterior probabilities from paired draws of the two files of matrices"
)
SAME = "worst probabilities, both verified here; the matrices are the same, so every drop is 0 in every draw"
POINTS = "worst probabilities, both verified here, without draws"
CONTRADICTED = (
    "; both are those of a memoryless detector, which the data contradict: neither a drop nor its absence is shown "
    "of the system"
)
RECORDED = "worst probabilities found here and those that the baseline records; no draws, for it has no matrices"


@dataclass(frozen=True)
class Asked:
    """The gates that were asked for; None where one was not.

    Attributes:
        least: for every requirement.
        max_drop: against `baseline`.
        baseline: file of the earlier result, or of the earlier matrices.
        recorded: the earlier result, where the file is one; else its matrices are verified.
        least_chance: the chance from which on a drop fails; None to go by the probabilities alone.
    """

    least: Fraction | None
    max_drop: Fraction | None
    baseline: str | None
    recorded: Baseline | None
    least_chance: Fraction | None = None


def asked_gates(arguments: RunSettings) -> Asked:
    """What the arguments ask.

    Raises:
        UsageError: an argument that cannot be read, or a chance for which there are no draws; InputError: a baseline
            that cannot be read.
    """
    drop = largest_drop(arguments.max_drop, arguments.baseline)
    recorded = None
    if arguments.baseline is not None:
        document, _ = read_json(arguments.baseline)
        if not isinstance(document, dict) or document.get("schema") != "verifier.confusion":
            from verifier.evidence.baseline import read_baseline

            recorded = read_baseline(arguments.baseline)
    least = None if arguments.fail_under is None else share("--fail-under", arguments.fail_under)
    if least == 0:
        raise UsageError("--fail-under: every probability is at least 0; name a number above 0")
    chance = drop_rule(arguments.drop_from, gated=drop is not None)
    if chance is not None and recorded is not None:
        raise UsageError(
            "--drop-from probability: the baseline records probabilities and has no matrices to draw\n"
            "  hint: give the earlier matrices as --baseline, or use --drop-from point"
        )
    options = arguments.options
    drawn = options.confidence is not None and options.decimals is None and options.mix is None
    if chance is not None and not drawn:
        raise UsageError("--drop-from probability takes draws: leave out --point-only, --round-transitions and --mix")
    return Asked(least, drop, arguments.baseline, recorded, chance)


def gates_of(asked: Asked, arguments: RunSettings, result: RunResult, storm: StormProcess) -> Gates | None:
    """Hold a run against the gates that were asked for, if any; VerifierError as the pipeline and `gate_of_run`."""
    options, floor = arguments.options, None
    if asked.least is not None:
        from verifier.questions.compare.floor import floor_of

        floor = floor_of(result, asked.least)
    if asked.max_drop is None or asked.baseline is None:
        return None if floor is None else Gates(floor)
    from verifier.questions.compare.gate import rule_text
    from verifier.questions.compare.gating import gate_of_run

    if asked.recorded is not None:
        baseline, compared = asked.recorded, RECORDED
        gate = gate_of_run(baseline, asked.max_drop, result, options.selection)
    else:
        inputs = read_inputs(arguments.spec, asked.baseline, options)
        baseline = _verified_baseline(inputs, options, storm)
        if _matrices_of(result) == inputs.confusion.sha256:
            gate, compared = gate_of_run(baseline, asked.max_drop, result, options.selection), SAME
            gate = replace(gate, least_chance=asked.least_chance)
        elif options.confidence is None or options.decimals is not None or options.mix is not None:
            gate, compared = gate_of_run(baseline, asked.max_drop, result, options.selection), POINTS
        else:
            names = dict.fromkeys(each.name for each in result.requirements if each.is_plain)
            gate, compared = _paired(asked, baseline, arguments, names), PAIRED
    if result.channel.test == "contradicted":
        compared += CONTRADICTED
    known = {(requirement, planner) for _, requirement, _, planner in baseline.worst}
    new = [each for each in result.requirements if each.is_plain and (each.name, each.planner) not in known]
    regression = Regression(
        baseline=BaselineFile(gate.baseline.name, gate.baseline.sha256),
        max_drop=decimal_text(gate.max_drop),
        drop_from=rule_text(gate.least_chance),
        drops=tuple(DropRecord(**vars(drop)) for drop in gate.drops),
        compared=compared,
        not_in_baseline=tuple(NewRequirement(each.name, each.planner) for each in new),
    )
    return Gates(floor, regression)


def _verified_baseline(inputs: Inputs, options: RunOptions, storm: StormProcess) -> Baseline:
    """The earlier matrices under today's spec, model and options."""
    from verifier.questions.compare.gate import baseline_of_run

    file = InputFile.of("baseline", inputs.confusion.name, inputs.confusion.sha256)
    return baseline_of_run(verified(Study.of(inputs, options.point_alone()), storm), file)


def _paired(asked: Asked, baseline: Baseline, arguments: RunSettings, names: Iterable[str]) -> Gate:
    """Both files of matrices drawn together, as `verify compare` does, for the requirements of these names."""
    from verifier.questions.compare.comparing import CompareOptions, compare
    from verifier.questions.compare.gate import Gate

    selection = replace(arguments.options.selection, requirements=tuple(names))
    plain = replace(arguments.options, verdict_from="point", strategies=False, selection=selection)
    gated = CompareOptions(baseline=baseline, max_drop=asked.max_drop or Fraction(0), least_chance=asked.least_chance)
    files = {"baseline": str(asked.baseline), "now": str(arguments.cm)}
    found = compare([arguments.spec], files, gated, plain).gate
    if found is None:
        raise ValueError("a comparison with a baseline has a gate")
    drops = tuple(replace(drop, detector="") for drop in found.drops)
    return Gate(baseline.file, gated.max_drop, gated.least_chance, drops)


def _matrices_of(result: RunResult) -> str:
    return next(each.sha256 for each in result.inputs if each.role == "confusion")


def gate_lines(gates: Gates, result: RunResult) -> Iterator[str]:
    """What the gates of a run say, for people."""
    others = dict.fromkeys(f"{each.name} ({each.question})" for each in result.requirements if not each.is_plain)
    if others:
        yield f"gates are for probabilities of formulas; not held: {', '.join(others)}"
    if gates.fail_under is not None:
        floor = gates.fail_under
        basis = {"bounds": "confidence bounds", "interval": "ends of intervals", "point": "P itself"}[floor.from_]
        conditions = dict.fromkeys(
            held.condition for held in floor.requirements if not held.failed and held.condition
        )
        failed = [held for held in floor.requirements if held.failed]
        yield f"gate, no requirement under {floor.least} ({basis}): {_outcome(failed)}"
        for each in failed:
            why = f"; not shown: {one_line(each.reason)}" if each.reason else ""
            yield f"  {each.requirement}, planner {each.planner}: {each.value:.6g} in {each.scenario}{why}"
        for condition in conditions:
            yield f"  what passed holds {one_line(condition)}"
    if gates.regression is not None:
        from verifier.questions.compare.gate import rule_words

        gate = gates.regression
        drops = [drop for drop in gate.drops if drop.failed]
        yield f"gate, no drop by more than {gate.max_drop} against {one_line(gate.baseline.name)}: {_outcome(drops)}"
        yield f"  a drop counts {rule_words(gate.least_chance)}"
        yield f"  compared: {gate.compared}"
        yield from (f"  {_drop_text(drop, gate.max_drop)}" for drop in drops)
        if gate.not_in_baseline:
            names = ", ".join(f"{each.requirement} (planner {each.planner})" for each in gate.not_in_baseline)
            yield f"  not in the baseline, not compared: {names}"


def _outcome(failed: Sequence[object]) -> str:
    return f"failed by {len(failed)}" if failed else "passed"


def _drop_text(each: DropRecord, allowed: str) -> str:
    chance = "" if each.chance is None else f"; posterior probability of a drop above {allowed}: {each.chance:.3g}"
    return (
        f"{each.requirement}, planner {each.planner}: worse by {each.drop:.6g}, P from {each.before:.6g} to "
        f"{each.now:.6g}{chance}"
    )
