"""A gate for continuous integration: no requirement may have dropped by more than so much against an earlier result.

The earlier result (the *baseline*) is the document of a `verify run` or a `verify compare`. What counts for each
requirement is its worst probability over the same scenarios; a baseline over other scenarios, requirements or
planners is refused, because a gate that compares nothing is always open.

A drop fails the gate by one of two rules:

point       the probabilities of the given matrices differ by more than is allowed, beyond the numerical bounds of
            both. How uncertain the data leave both of them does not count.
probability:C
            the drop is larger than allowed with at least the probability C, by common draws of the earlier and the
            later matrices: the paired test of `verify compare`. With C = 0.95 the gate fails where a drop is all but
            sure; with C = 0.05 it fails unless a drop can all but be ruled out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import PurePath
from typing import Any

from verifier.base.errors import InputError, Place
from verifier.study.gates import BaselineFile
from verifier.study.results import RunResult

_RUN, _COMPARE = "verifier.run", "verifier.compare"


@dataclass(frozen=True)
class Worst:
    """The worst probability of one requirement.

    Attributes:
        probability, lower, upper: with its numerical bounds.
        scenarios: those it is the worst of.
        larger_is_better: what "worst" means.
        formula: what is asked, see `asked_formula`.
    """

    probability: float
    lower: float
    upper: float
    scenarios: frozenset[str]
    larger_is_better: bool
    formula: str


@dataclass(frozen=True)
class Baseline:
    """An earlier result.

    Attributes:
        detectors: name -> SHA-256 of its matrices; the name is empty for a `verify run`, which has one.
        worst: (spec, requirement, detector, planner) -> its worst probability.
    """

    file: BaselineFile
    detectors: Mapping[str, str]
    worst: Mapping[tuple[str, str, str, str], Worst]


def drop_of(before: Worst, now: Worst, max_drop: Fraction) -> tuple[float, bool]:
    """How much worse a probability has become, and whether by more than `max_drop` beyond all numerical bounds."""
    if now.larger_is_better:
        drop, certain = before.probability - now.probability, Fraction(before.lower) - Fraction(now.upper)
    else:
        drop, certain = now.probability - before.probability, Fraction(now.lower) - Fraction(before.upper)
    return drop, certain > max_drop


def _scenario_key(point: Mapping[str, Any]) -> str:
    """A scenario of a document as text that tells it from the others."""
    parts = [str(point["environment"])]
    for kind in ("constants", "initial"):
        parts += [f"{name}={value}" for name, value in sorted(point[kind].items())]
    return " ".join(parts)


def asked_formula(asked: str, formula: str) -> str:
    """The formula of a requirement, with the end of its probability where a world decides."""
    return formula if asked == "P" else f"{asked} [ {formula} ]"


def worst_of_points(
    points: list[dict[str, Any]], larger_is_better: bool, formula: str, means: Sequence[Mapping[str, Any]] = ()
) -> Worst:
    """The worst of the points of a document, or of its means over the profile."""
    pick = min if larger_is_better else max
    worst = pick(means or points, key=lambda each: each["probability"])
    scenarios = frozenset(_scenario_key(each) for each in points)
    formula += " over profile" if means else ""
    return Worst(worst["probability"], worst["lower"], worst["upper"], scenarios, larger_is_better, formula)


def baseline_of_document(document: Mapping[str, Any], place: str, sha256: str) -> Baseline:
    """The worst probabilities of an earlier `verify run` or `verify compare`.

    Args:
        document: validated, as `verifier.evidence.consistency.read_document` gives it.
        place: the file's name, for messages.
        sha256: of its bytes.

    Raises:
        InputError: it is of another command, or does not name its spec and its matrices.
    """
    if document["schema"] not in (_RUN, _COMPARE):
        raise InputError("expected the JSON of a verify run or a verify compare", Place(place, path="/schema"))
    files = [(each["role"], each["name"], each["sha256"]) for each in document["inputs"]]
    hashes = [sha for role, _, sha in files if role == "confusion"]
    specs = [name for role, name, _ in files if role == "spec"]
    names = [each["name"] for each in document.get("detectors", [{"name": ""}])]
    if not specs or len(hashes) != len(names):
        message = f"expected a spec and {len(names)} files of matrices, got {len(specs)} and {len(hashes)}"
        raise InputError(message, Place(place, path="/inputs"))
    if document["schema"] == _RUN:
        worst = dict(_of_requirements(specs[0], document["requirements"]))
    else:
        worst = {}
        for found in document["specs"]:
            for each in found["requirements"]:
                shared = {name: each[name] for name in ("name", "target", "formula", "asked") if name in each}
                worst.update(_of_requirements(found["spec"], [entry | shared for entry in each["entries"]]))
    return Baseline(BaselineFile(PurePath(place).name, sha256), dict(zip(names, hashes, strict=True)), worst)


def baseline_of_run(run: RunResult, file: BaselineFile) -> Baseline:
    """A run of this program as a baseline; `file` is what it was verified from."""
    (matrices,) = (each.sha256 for each in run.inputs if each.role == "confusion")
    (spec,) = (each.name for each in run.inputs if each.role == "spec")
    return Baseline(file, {"": matrices}, dict(_of_requirements(spec, run.document()["requirements"])))


def _of_requirements(spec: str, found: list[dict[str, Any]]) -> Iterator[tuple[tuple[str, str, str, str], Worst]]:
    for each in found:
        if not each.get("asked", "P").startswith("P") or ") given (" in each["formula"]:
            continue
        target = each["target"]
        larger = target is None or target["comparison"] not in ("<=", "<")
        formula = asked_formula(each.get("asked", "P"), each["formula"])
        worst = worst_of_points(each["points"], larger, formula, each.get("means", ()))
        yield (spec, each["name"], each.get("detector", ""), each["planner"]), worst
