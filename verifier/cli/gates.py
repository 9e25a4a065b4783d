"""The gates of `verify run`: a least probability for every requirement, and a largest drop against a baseline.

The outputs of `verify run` for continuous integration: JUnit XML, SARIF and an in-toto statement.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from verifier.analysis.channel_test import detector_text
from verifier.base.errors import UsageError
from verifier.base.files import read_json
from verifier.checking.process import StormProcess
from verifier.language.specs import Specification
from verifier.pipeline import verified
from verifier.questions.settings import RunSettings, drop_rule, largest_drop, share
from verifier.study.case import Case, Study
from verifier.study.gates import BaselineFile, DropGate, Gates, NewRequirement, Regression
from verifier.study.inputs import Inputs, read_inputs
from verifier.study.options import RunOptions
from verifier.study.points import block_text
from verifier.study.results import RunResult

if TYPE_CHECKING:
    from verifier.questions.compare.gating import Baseline

PAIRED = (
    "worst probabilities, both verified here; posterior probabilities from paired draws of the two files of matrices"
)
SAME = "worst probabilities, both verified here; the matrices are the same, so every drop is 0 in every draw"
POINTS = "worst probabilities, both verified here, without draws"
CONTRADICTED = (
    "; both are those of {}, which the data contradict: neither a drop nor its absence is shown of the system"
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
    if chance is not None and not _draws(arguments.options):
        raise UsageError(
            "--drop-from probability takes draws: leave out --point-only, --round-transitions, --mix and --persist"
        )
    return Asked(least, drop, arguments.baseline, recorded, chance)


def _draws(options: RunOptions) -> bool:
    """Whether matrices are drawn for a run with these options, and both files of matrices for its gate."""
    alone = options.mix is not None or options.persist is not None
    return options.confidence is not None and options.decimals is None and not alone


def gates_of(asked: Asked, arguments: RunSettings, result: RunResult, storm: StormProcess) -> Gates | None:
    """Hold a run against the gates that were asked for, if any; VerifierError as the pipeline and `gate_of_run`."""
    options, floor = arguments.options, None
    if asked.least is not None:
        from verifier.questions.compare.floor import floor_of

        floor = floor_of(result, asked.least)
    if asked.max_drop is None or asked.baseline is None:
        return None if floor is None else Gates(floor)
    from verifier.questions.compare.gating import gate_of_run, rule_text

    if asked.recorded is not None:
        baseline, compared = asked.recorded, RECORDED
        gate = gate_of_run(baseline, asked.max_drop, result, options.selection)
    else:
        if options.persist is None:  # the memory of the run, whatever the earlier data support
            options = replace(options, memory=result.settings.memory or "none")
        inputs = read_inputs(arguments.spec, asked.baseline, options)
        baseline = _verified_baseline(inputs, options, storm)
        if next(each.sha256 for each in result.inputs if each.role == "confusion") == inputs.confusion.sha256:
            gate, compared = gate_of_run(baseline, asked.max_drop, result, options.selection), SAME
            gate = replace(gate, drop_from=rule_text(asked.least_chance))
        elif not _draws(options):
            gate, compared = gate_of_run(baseline, asked.max_drop, result, options.selection), POINTS
        else:
            names = dict.fromkeys(each.name for each in result.requirements if each.is_plain)
            gate, compared = _paired(asked, baseline, replace(arguments, options=options), names), PAIRED
    if result.channel.test == "contradicted":
        compared += CONTRADICTED.format(detector_text(result.channel.contexts))
    known = {(requirement, planner) for _, requirement, _, planner in baseline.worst}
    new = [each for each in result.requirements if each.is_plain and (each.name, each.planner) not in known]
    added = tuple(NewRequirement(each.name, each.planner) for each in new)
    return Gates(floor, Regression(**vars(gate), compared=compared, not_in_baseline=added))


def _verified_baseline(inputs: Inputs, options: RunOptions, storm: StormProcess) -> Baseline:
    """The earlier matrices under today's spec, model and options."""
    from verifier.questions.compare.gating import baseline_of_run

    file = BaselineFile(PurePath(inputs.confusion.name).name, inputs.confusion.sha256)
    return baseline_of_run(verified(Study.of(inputs, options.point_alone()), storm), file)


def _paired(asked: Asked, baseline: Baseline, arguments: RunSettings, names: Iterable[str]) -> DropGate:
    """Both files of matrices drawn together, as `verify compare` does, for the requirements of these names."""
    from verifier.questions.compare.comparing import CompareOptions, compare

    selection = replace(arguments.options.selection, requirements=tuple(names))
    plain = replace(arguments.options, verdict_from="point", strategies=False, selection=selection)
    gated = CompareOptions(baseline=baseline, max_drop=asked.max_drop or Fraction(0), least_chance=asked.least_chance)
    files = {"baseline": str(asked.baseline), "now": str(arguments.cm)}
    found = compare([arguments.spec], files, gated, plain).gate
    if found is None:
        raise ValueError("a comparison with a baseline has a gate")
    drops = tuple(replace(drop, detector="") for drop in found.drops)
    return replace(found, drops=drops)


CI_OUTPUTS = ("junit", "sarif", "in_toto")
RESULT_FILE = "run.json"
"""What the document of the run is called in them, wherever it is written."""
Progress = Callable[[list[Case]], Iterable[Case]]


class Stopwatch:
    """Measures how long each Markov chain takes, by its planner and what else makes it."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, str], float] = {}

    def around(self, progress: Progress) -> Progress:
        """The progress bar, with the time between two chains taken."""

        def timed(cases: list[Case]) -> Iterator[Case]:
            for case in progress(cases):
                name = case.planner.name, block_text(case.environment, case.constants)
                start = time.perf_counter()
                yield case
                self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

        return timed


def ci_texts(
    arguments: RunSettings, result: RunResult, document: str, spec: Specification, watch: Stopwatch
) -> list[tuple[str, str]]:
    """File and text of every output for continuous integration that was asked for.

    With SOURCE_DATE_EPOCH in the environment, the wish for repeatable bytes, JUnit has no times.
    """
    if all(getattr(arguments, name) is None for name in CI_OUTPUTS):
        return []
    from verifier.evidence.documents import Document
    from verifier.evidence.intoto import statement
    from verifier.evidence.junit import junit_xml, suite_name
    from verifier.evidence.sarif import requirement_places, sarif_log

    digest = hashlib.sha256(document.encode()).hexdigest()
    run = Document(RESULT_FILE, "run", json.loads(document), digest).holding(result)
    found = []
    if arguments.junit is not None:
        taken = {suite_name(*chain): seconds for chain, seconds in watch.seconds.items()}
        seconds = None if "SOURCE_DATE_EPOCH" in os.environ else taken
        found.append(
            (arguments.junit, junit_xml(run, Path(arguments.spec).name, seconds, arguments.junit_inconclusive))
        )
    if arguments.sarif is not None:
        found.append((arguments.sarif, sarif_log(run, _path_in_repository(arguments.spec), requirement_places(spec))))
    if arguments.in_toto is not None:
        found.append((arguments.in_toto, statement(run, _subjects(result))))
    return found


def _subjects(result: RunResult) -> dict[str, str]:
    """Model, files of planners and matrices with their hashes; where two have one name, the role stands before it."""
    tested = [each for each in result.inputs if each.role != "spec"]
    names = [each.name for each in tested]
    return {each.name if names.count(each.name) == 1 else f"{each.role}/{each.name}": each.sha256 for each in tested}


def _path_in_repository(path: str) -> str:
    """The path from the folder the command runs in, usually a repository's root; the name where it lies elsewhere."""
    given = Path(path)
    if given.is_absolute():
        given = given.relative_to(Path.cwd()) if given.is_relative_to(Path.cwd()) else Path(given.name)
    return Path(given.name).as_posix() if ".." in given.parts else given.as_posix()
