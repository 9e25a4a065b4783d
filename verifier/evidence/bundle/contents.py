"""The results of a bundle compared with its inputs: documents, certificates, replays, the second engine's numbers;
what is cheap computed again, or everything, with every probability as an exact fraction.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from verifier.analysis.intervals.drawing import cost_of_draw
from verifier.base.budget import limits_reached
from verifier.base.documents import fraction_text, json_values
from verifier.base.errors import NoAnswerError
from verifier.base.libraries import __version__
from verifier.checking.enclosure import AGREEMENT
from verifier.checking.process import StormProcess
from verifier.evidence.bundle import layout
from verifier.evidence.bundle.certificates import Proven, certified_recalls, check_point
from verifier.evidence.bundle.making import (
    Progress,
    alternatives,
    asked_recall,
    explanation_text,
    is_alike,
    make_results,
)
from verifier.evidence.bundle.numbers import NUMBERS_OF_POINT, check_head, is_proven, places_of, wrong_beside_proof
from verifier.evidence.bundle.parts import Parts
from verifier.evidence.bundle.replays import check_explanations
from verifier.evidence.bundle.runs import SAME_AS_THE_RUN, check_frame, check_runs, check_same_frame
from verifier.evidence.differences import compared, differing
from verifier.evidence.findings import Finding, Log, Misstated
from verifier.language.expressions import to_text
from verifier.perception.confusion.matrices import label_text
from verifier.pipeline import checked_study, result_of
from verifier.questions.explain.explain_result import ExplainResult
from verifier.questions.require.require_result import RequireResult
from verifier.questions.require.requiring import curves_of
from verifier.study.case import Study
from verifier.study.inputs import ends_of
from verifier.study.points import Point, PointInterval
from verifier.study.provenance import program_versions
from verifier.study.results import RunResult


def check_contents(parts: Parts, log: Log) -> None:
    """Hold every result against the inputs. Raises VerifierError: the inputs do not make a system."""
    certificates = {path for path in parts.files if layout.place_of_certificate(path) is not None}
    log.checked.append((len(certificates), "certificates proven in rational arithmetic about the rebuilt chains"))
    points = check_runs(parts, log)
    if layout.EXPLAIN_FILE in parts.documents:
        _explanations(parts, log)
    _required(parts, points, log)
    for path in sorted(certificates - log.certificates) if not log.findings else ():
        log.findings.append(Misstated(path, "", "a certificate of nothing that is here", "nothing"))
    log.unchecked += [f"{path}, which the bundle leaves out: {reason}" for path, reason in parts.omitted.items()]


def _explanations(parts: Parts, log: Log) -> None:
    result: ExplainResult = parts.documents[layout.EXPLAIN_FILE].result
    log.findings += check_frame(layout.EXPLAIN_FILE, parts)
    log.findings += check_same_frame(layout.EXPLAIN_FILE, result, parts.result, SAME_AS_THE_RUN)
    shape = check_head(layout.EXPLAIN_FILE, result, parts.rebuilt, parts.rebuilt.options)
    matrices = parts.rebuilt.matrices
    bins = [matrices.bin_text(index) for index in range(matrices.bin_count)]
    expected = {"labels": [label_text(label) for label in matrices.labels], "bins": bins}
    shape += differing(layout.EXPLAIN_FILE, {"labels": result.labels, "bins": result.bins}, expected)
    log.findings += shape
    if shape:
        return
    check_explanations(parts, log)


def _required(parts: Parts, points: Mapping[tuple[int, int], Proven], log: Log) -> None:
    """The documents about required recalls: what they ask, and the probabilities that certificates prove.

    `points` has for each block and requirement what is proven of the run's probabilities.
    """
    count = 0
    spec, model = parts.rebuilt.inputs.spec, parts.rebuilt.inputs.model
    for number, requirement in enumerate(spec.requirements, 1):
        path = layout.require_file(number, requirement.name)
        if path not in parts.documents:
            continue
        count += 1
        rebuilt, _ = asked_recall(parts.rebuilt, requirement.name)
        result: RequireResult = parts.documents[path].result
        log.findings += check_frame(path, parts)
        log.findings += check_same_frame(path, result, parts.result, ("versions",))
        log.findings += check_head(path, result, rebuilt, rebuilt.options, with_confidence=False)
        asked = {
            "name": requirement.name,
            "formula": to_text(requirement.formula, parenthesise=True),
            "comparison": requirement.comparison,
            "probability": str(requirement.target),
        }
        end = str(ends_of(requirement, model)[0].asked)
        asked |= {"asked": end} if end != "P" else {}
        answered = [{"planner": answer.planner, "constants": answer.constants} for answer in result.answers]
        stated = {"requirement": result.requirement, "answers": answered}
        expected = {"requirement": asked, "answers": _asked_of(parts.rebuilt)}
        log.findings += differing(path, stated, expected, ", as in the spec")
        log.findings += _as_measured(path, parts)
        _proven_recalls(path, number, parts, points, log)
    if count:
        log.checked.append((count, "documents of required recalls compared with spec and run"))


def _proven_recalls(path: str, number: int, parts: Parts, points: Mapping[tuple[int, int], Proven], log: Log) -> None:
    """The probabilities of a document about required recall, compared with their certificates."""
    if log.findings:
        return
    result = parts.documents[path].result
    for source, point, pointer, initial in certified_recalls(parts.rebuilt, number, result, parts.files):
        proven = points.get((source.block, source.requirement))
        if source.of or proven is None:
            log.certificates |= set(source.paths) & parts.files.keys()
            proven, wrong = check_point(parts.files, source, log.built_by == __version__)
            log.findings += wrong
        low, high = proven.lower[initial], proven.upper[initial]
        if low is None or high is None:
            continue
        for where, said, expected in wrong_beside_proof(point, low, high, point.whatever_predicted):
            log.findings.append(Misstated(path, pointer + where, said, expected))
        log.proven += NUMBERS_OF_POINT * is_proven(point, low, high)


def _asked_of(rebuilt: Study) -> list[Mapping[str, object]]:
    """Planner and swept constants of each answer about required recalls, in their order."""
    asked = list[Mapping[str, object]]()
    for block in rebuilt.grid.blocks:
        entry = {"planner": block.planner.name, "constants": block.constants}
        if entry not in asked:
            asked.append(entry)
    return asked


def _as_measured(path: str, parts: Parts) -> list[Finding]:
    """The probability with the measured matrices must be one that the run found."""
    findings, result = list[Finding](), parts.documents[path].result
    for k, answer in enumerate(result.answers):
        point, asked = answer.measured, (result.requirement.name, answer.planner)
        mine = (one.points for one in parts.result.requirements if (one.name, one.planner) == asked)
        same = [known for points in mine for known in points if known.place == point.place]
        values = (point.probability, point.second_engine)
        if not any(
            all(abs(value - known.probability) <= AGREEMENT for value in values)
            and max(known.lower, point.lower) <= min(known.upper, point.upper)
            for known in same
        ):
            wanted = f"{repr(same[0].probability) if same else 'a scenario of the run'}, as in the run"
            where = f"/answers/{k}/measured/probability"
            findings.append(Misstated(path, where, repr(point.probability), wanted))
    return findings


CHEAP, CHEAP_DRAWS = 20_000, 2 * 10**7
"""What a matrix costs at most, and all draws of it, where results are made again without being asked: seconds."""
_UNKNOWN = b"within the limits"
"""What results say where they say no more."""


def check_cheaply(parts: Parts, log: Log) -> list[str]:
    """Make again, and compare, what needs no model checker and little time; in words what was left out.

    Raises:
        VerifierError: as making it.
    """
    rebuilt, made, left = parts.rebuilt, dict[str, tuple[int, str]](), list[str]()
    cost = cost_of_draw(objective for case in rebuilt.cases for objective in case.objectives)
    if rebuilt.data is not None and rebuilt.data.draws * cost <= CHEAP_DRAWS:
        made |= _intervals(parts)
    elif rebuilt.bounded:
        left.append("statistical intervals and verdicts that rest on them")
    if cost <= CHEAP:
        made |= _curves(parts)
        if layout.EXPLAIN_FILE in parts.documents:
            count = numbers_in(parts.documents[layout.EXPLAIN_FILE].content)
            made[layout.EXPLAIN_FILE] = count, explanation_text(rebuilt, parts.result)
    else:
        left += [
            "curves over recalls",
            "of explanations all but the states and probabilities of the runs that are listed (whether there are "
            "likelier ones, what is seen on them, what would help)",
        ]
    here = program_versions()
    others = [f"{name} {told}" for name, told in parts.result.versions.items() if here.get(name, told) != told]
    for path, (count, text) in made.items():
        compared(parts.files[path], text.encode(), path, apart := Log())
        if apart.findings and others:  # libraries may draw other numbers from a seed
            left.append(f"the numbers of {path}, which differ here without {', '.join(others)}")
            continue
        log.findings += apart.findings
        log.recomputed += count
    log.checked.append((len(made), "results of which intervals, explanations or curves were made again"))
    return left


def numbers_in(value: Any) -> int:
    """How many numbers with a decimal point a JSON value holds."""
    if isinstance(value, dict | list):
        return sum(map(numbers_in, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float)


def _intervals(parts: Parts) -> dict[str, tuple[int, str]]:
    """Path -> how many numbers, and the run, with the intervals that the recorded seed gives."""
    rebuilt, made, own = parts.rebuilt, dict[str, tuple[int, str]](), dict[tuple[int, int], PointInterval]()
    others = {other.path: other.options for other in alternatives(rebuilt)}
    for path, options in ({layout.RUN_FILE: rebuilt.options} | others).items():
        if path not in parts.documents:
            continue
        drawn = own = own or dict(_each_interval(rebuilt))
        if not is_alike(options, rebuilt):
            drawn = dict(_each_interval(rebuilt.under(options)))
        run: RunResult = parts.documents[path].result
        again = [
            replace(one, points=tuple(_with_interval(point, drawn[row, k]) for k, point in enumerate(one.points)))
            for row, one in enumerate(run.requirements)
        ]
        made[path] = numbers_in(json_values([*drawn.values()])), replace(run, requirements=tuple(again)).json_text()
    return made


def _with_interval(point: Point, interval: PointInterval) -> Point:
    assert point.uncertainty is not None
    return replace(point, uncertainty=replace(point.uncertainty, interval=interval))


def _each_interval(study: Study) -> Iterator[tuple[tuple[int, int], PointInterval]]:
    """Requirement and number of every point of a run, and its interval."""
    data, settings = study.data, study.options.confidence
    if data is None or settings is None:
        return
    for _, case, places in places_of(study):
        for (row, first), interval in zip(places, data.maker.intervals(case.objectives, data, settings), strict=True):
            yield from (((row, first + k), PointInterval.of(interval, k)) for k in range(len(interval.lower)))


def _curves(parts: Parts) -> dict[str, tuple[int, str]]:
    """Path -> how many numbers, and the answer about a required recall, with the curves that the matrices give."""
    made: dict[str, tuple[int, str]] = {}
    for number, requirement in enumerate(parts.rebuilt.inputs.spec.requirements, 1):
        path = layout.require_file(number, requirement.name)
        if path in parts.documents:
            result: RequireResult = parts.documents[path].result
            curves = curves_of(*asked_recall(parts.rebuilt, requirement.name))
            pairs = zip(result.answers, curves, strict=True)
            answers = tuple(replace(answer, curve=curve) for answer, curve in pairs)
            made[path] = numbers_in(json_values(curves)), replace(result, answers=answers).json_text()
    return made


def check_recomputed(parts: Parts, log: Log, progress: Progress = iter) -> None:
    """Compute every result again and compare it byte for byte; have Storm compute every probability exactly.

    Raises:
        EngineError: the engines disagree.
        VerifierError: as `make_results`; NoAnswerError where limits leave out what the bundle says, or are used up
            and something comes out otherwise.
    """
    before = len(log.findings)
    with limits_reached() as messages:
        _recomputed(parts, log, progress)
    if messages and len(log.findings) > before:
        del log.findings[before:]
        raise NoAnswerError(f"results come out otherwise where {messages[0]}")


def _recomputed(parts: Parts, log: Log, progress: Progress) -> None:
    with StormProcess() as storm:
        made = make_results(parts.rebuilt, storm, progress, parts.files)
        rounded = proofs = 0
        results = {path for path in parts.files if path.startswith(("results/", "certificates/"))}
        for path in sorted({*made, *results}):
            if path not in made:
                log.findings.append(Misstated(path, "", "a result", "nothing: it is not made again"))
            elif path not in parts.files:
                log.findings.append(Misstated(path, "", "nothing", "a result, which is made again"))
            elif parts.files[path] == made[path].encode():
                continue
            elif path.startswith(f"{layout.CERTIFICATES}/"):
                proofs += 1
            elif made[path].encode().count(_UNKNOWN) > parts.files[path].count(_UNKNOWN):
                raise NoAnswerError(f"{path} says more than is found out within the limits of this check")
            else:
                rounded += compared(parts.files[path], made[path].encode(), path, log)
        log.checked.append((len(made), "results recomputed and compared byte for byte"))
        if rounded:
            log.unchecked.append(
                f"the last digits of {rounded} numbers, which come out differently on this machine or with its "
                f"libraries: they agree to {AGREEMENT:g} of their size"
            )
        if proofs:
            log.unchecked.append(
                f"whether {proofs} certificates are those that are made here: they are other proofs, and were "
                "checked as proofs of what the run claims"
            )
        _exactly(parts, storm, log)


def _exactly(parts: Parts, storm: StormProcess, log: Log) -> None:
    """Every probability of the run must enclose the exact one."""
    options = parts.rebuilt.options
    if options.decimals is not None:
        log.unchecked.append("exact probabilities: the transitions were rounded, so there are none")
        return
    exact = replace(options.point_alone(), engines=replace(options.engines, exact=True))
    again = result_of(checked_study(parts.rebuilt.under(exact), storm), exact)
    count = 0
    for row, one in enumerate(again.requirements):
        for k, point in enumerate(one.points):
            stated, value = parts.result.requirements[row].points[k], point.value
            count += 1
            if not Fraction(stated.lower) <= value <= Fraction(stated.upper) and stated.exact is None:
                bounds = f"bounds {stated.lower!r} to {stated.upper!r}"
                where = f"/requirements/{row}/points/{k}/lower"
                known = f"bounds of the exact {float(value)!r}"
                log.findings.append(Misstated(layout.RUN_FILE, where, bounds, known))
            elif stated.exact is not None and stated.exact != value:
                where, told = f"/requirements/{row}/points/{k}/exact", fraction_text(stated.exact)
                log.findings.append(Misstated(layout.RUN_FILE, where, told[:60], fraction_text(value)[:60]))
    log.checked.append((count, "probabilities computed as exact fractions by Storm"))
