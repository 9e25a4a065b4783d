"""The same data under every sensible matching policy: what the matrices do, and what verified probabilities do.

Two tools that "match at IoU 0.5" give different matrices for the same boxes. The audit shows how much of a result is
the policy's and not the detector's.
"""

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from verifier.checking.enclosure import ONE_ENGINE
from verifier.checking.process import StormProcess
from verifier.perception.confusion.choices import default_policy, matching_policy, prepared
from verifier.perception.confusion.counting import confusion_counts, count
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.document import write_confusion
from verifier.perception.confusion.matrices import EMPTY
from verifier.perception.confusion.request import check_data_named, check_stream
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import class_names
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.matching import Matches, MatchingPolicy, match
from verifier.perception.settings import Affinity, CountSettings, Leftover
from verifier.pipeline import verified
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions
from verifier.study.results import RunResult

Progress: TypeAlias = Callable[[Sequence["Candidate"]], Iterable["Candidate"]]

IN_SPACE: tuple[tuple[Affinity, float], ...] = (
    ("centre_bev", 1.0),
    ("centre_bev", 2.0),
    ("centre_bev", 4.0),
    ("iou_bev", 0.5),
    ("iou_3d", 0.5),
)
IN_IMAGE: tuple[tuple[Affinity, float], ...] = (("iou_2d", 0.5), ("iou_2d", 0.7))
LEFTOVERS: tuple[tuple[Leftover, Leftover], ...] = (
    ("drop", "drop"),
    ("own_bin", "nearest_bin"),
    ("own_bin", "own_bin"),
)


@dataclass(frozen=True)
class Candidate:
    """A matching policy with policies for unmatched detections and duplicates."""

    policy: MatchingPolicy
    unmatched: Leftover
    duplicates: Leftover

    @property
    def parts(self) -> tuple[str, str, str, str]:
        """Affinity, assignment, classes and leftovers for people."""
        sign = "<=" if self.policy.by_distance else ">="
        unit = " m" if self.policy.column == "box_3d" and self.policy.by_distance else ""
        classes = "same class" if self.policy.class_aware else "any class"
        leftovers = self.unmatched if self.unmatched == self.duplicates else f"{self.unmatched}, {self.duplicates}"
        affinity = f"{self.policy.affinity} {sign} {self.policy.threshold:g}{unit}"
        return affinity, self.policy.assignment, classes, leftovers

    def __str__(self) -> str:
        return policies_text([self])


def policies_text(candidates: Sequence[Candidate]) -> str:
    """Policies for people; several in one line where they are all that their parts can make."""
    choices = [dict.fromkeys(parts) for parts in zip(*(candidate.parts for candidate in candidates), strict=True)]
    if math.prod(map(len, choices)) != len(candidates):
        return f"{candidates[0]} (and {len(candidates) - 1} more)"
    affinity, assignment, classes, _ = map(" or ".join, choices)
    return f"{affinity}, {assignment}, {classes}; leftovers: {'; or '.join(choices[-1])}"


@dataclass(frozen=True, eq=False)
class Audited:
    """What one candidate gives.

    Attributes:
        recall: class -> reported as itself, of all items of the class over all bins; NaN without items.
        confused: share of items of a class that are reported, but not as what they are.
        false_positives: share of column "empty" over all bins in which something is reported.
        probabilities: requirement -> worst probability, where a spec was given.
        one_engine: remarks on those that one engine alone computed; Storm computed the others, the second confirmed.
    """

    candidate: Candidate
    counts: ConfusionCounts
    recall: dict[str, float]
    confused: float
    false_positives: float
    probabilities: dict[str, float] = field(default_factory=dict)
    one_engine: tuple[str, ...] = ()

    def row(self) -> dict[str, object]:
        """The numbers as JSON values; null where a share has no items."""
        shares = {f"recall {name}": value for name, value in self.recall.items()}
        shares |= {"confused": self.confused, "false_positives": self.false_positives}
        policies = {"unmatched": self.candidate.unmatched, "duplicates": self.candidate.duplicates}
        return {
            "matching": {**self.candidate.policy.record(), **policies},
            **{name: None if math.isnan(value) else value for name, value in shares.items()},
            "probabilities": self.probabilities,
            "one_engine": list(self.one_engine),
        }


def candidates(data: DetectionSet, rule: CountingRule, ignore_overlap: float | None = None) -> list[Candidate]:
    """Every sensible policy for the boxes that the data has; `ignore_overlap` is that of all of them.

    Detections without a distance have no bin of their own, so there false positives are not counted.
    """
    kinds: list[tuple[Affinity, float]] = []
    if data.annotations.box_3d is not None and data.detections.box_3d is not None:
        kinds += IN_SPACE
        if not all((box[:, 3:6] > 0).any() for box in (data.annotations.box_3d, data.detections.box_3d)):
            kinds = [kind for kind in kinds if kind[0].startswith("centre")]  # boxes without a size do not overlap
    if data.annotations.box_2d is not None and data.detections.box_2d is not None:
        kinds += IN_IMAGE
    given = data.detections.box_3d is not None if rule.measure != "given" else data.detections.distance_m is not None
    leftovers = LEFTOVERS if given else LEFTOVERS[:1]
    policies = []
    for affinity, threshold in kinds:
        for aware in (False, True):
            for assignment in ("greedy", "optimal"):
                policy = MatchingPolicy(affinity, threshold, assignment, aware, ignore_overlap=ignore_overlap)
                policies += [Candidate(policy, *leftover) for leftover in leftovers]
    return policies


def audited(settings: CountSettings, progress: Progress = iter) -> tuple[Audited, ...]:
    """The data of the settings under each candidate, which takes the place of the matching they choose.

    Args:
        settings: of `verify confusion`.
        progress: wraps the candidates, for a progress bar.

    Raises:
        VerifierError: as `verifier.perception.confusion.request.prepared` and `audit`.
    """
    check_data_named(settings)
    check_stream(settings)
    data, rule = prepared(settings)
    options = RunOptions(empty_columns=settings.empty_columns, confidence=None)
    ignore_overlap = matching_policy(settings, default_policy(data)).ignore_overlap
    return tuple(audit(data, rule, settings.spec, options, progress, ignore_overlap))


def audit(
    data: DetectionSet,
    rule: CountingRule,
    spec: str | Path | None = None,
    options: RunOptions = RunOptions(),
    progress: Progress = iter,
    ignore_overlap: float | None = None,
) -> Iterator[Audited]:
    """Count, and with a spec verify, under each candidate.

    Args:
        data: filtered.
        rule: its policies for leftovers and its thresholds are replaced.
        spec: a `.ltl` file.
        options: of verification.
        progress: wraps the candidates, for a progress bar.
        ignore_overlap: see `MatchingPolicy`.

    Raises:
        VerifierError: as counting and `verifier.pipeline.verify_spec`.
    """
    counted = _counted(data, rule, progress(candidates(data, rule, ignore_overlap)))
    yield from counted if spec is None else _verified(counted, spec, options)


def _counted(data: DetectionSet, rule: CountingRule, chosen: Iterable[Candidate]) -> Iterator[Audited]:
    matched: tuple[MatchingPolicy, Matches] | None = None
    for candidate in chosen:
        own = replace(rule, unmatched=candidate.unmatched, duplicates=candidate.duplicates, thresholds=None)
        if (
            matched is None or matched[0] != candidate.policy
        ):  # leftovers are counted otherwise, not matched otherwise
            matched = candidate.policy, match(data, candidate.policy)
        counts = confusion_counts(
            count(data, matched[1], own), own, candidate.policy, dict(data.origin), str(candidate)
        )
        yield _audited(candidate, counts)


def _audited(candidate: Candidate, counts: ConfusionCounts) -> Audited:
    matrices = counts.matrices()
    table = matrices.counts.sum(axis=0)
    empty = matrices.labels.index(EMPTY)
    recall = {}
    for name in class_names(matrices):
        has = np.array([name in label for label in matrices.labels])
        recall[name] = _share(table[has][:, has].sum(), table[:, has].sum())
    there = np.arange(len(table)) != empty
    reported = table[there][:, there].sum()
    confused = _share(reported - np.trace(table[there][:, there]), table[:, there].sum())
    alarms = _share(table[there, empty].sum(), table[:, empty].sum())
    return Audited(candidate, counts, recall, confused, alarms)


def _share(part: int, whole: int) -> float:
    return float(part) / float(whole) if whole else float("nan")


def _verified(counted: Iterable[Audited], spec: str | Path, options: RunOptions) -> Iterator[Audited]:
    """With the probabilities under a spec: one worker and one structure for all, equal matrices once."""
    known: dict[bytes, tuple[dict[str, float], tuple[str, ...]]] = {}
    study: Study | None = None
    with StormProcess() as storm, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "matrices.json"
        for audited in counted:
            key = audited.counts.counts.tobytes()
            if key not in known:  # equal matrices give equal probabilities
                write_confusion(audited.counts, path)
                inputs = read_inputs(spec, path, options, None if study is None else study.inputs.model)
                study = Study.of(inputs, options) if study is None else study.with_inputs(inputs)
                known[key] = _worst(verified(study, storm))
            probabilities, one_engine = known[key]
            yield replace(audited, probabilities=probabilities, one_engine=one_engine)


def _worst(result: RunResult) -> tuple[dict[str, float], tuple[str, ...]]:
    many = len({requirement.planner for requirement in result.requirements}) > 1
    probabilities = {
        f"{requirement.name}, {requirement.planner}"
        if many
        else requirement.name: requirement.worst_point.probability
        for requirement in result.requirements
    }
    return probabilities, tuple(remark for remark in result.remarks if f"{ONE_ENGINE}: " in remark)
