"""What a change makes fall, and what people do again: the table `impact.toml`, and how its rows are recognised."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy.stats import chi2

from verifier.base.documents import read_document
from verifier.base.numbers import p_value_text
from verifier.base.words import clipped, counted, listed
from verifier.evidence.bundle.manifest import digest_of
from verifier.evidence.changes.sides import Side
from verifier.evidence.differences import leaves
from verifier.evidence.rates.exposure import Exposure
from verifier.evidence.settings import Domain
from verifier.study.options import RunOptions

Change: TypeAlias = Literal[
    "detector", "sensor", "planner", "odd_widened", "odd_narrowed", "requirement", "exposure", "triggers",
    "more_data", "look", "other_data", "counting", "options", "program",
]  # fmt: skip
CHANGES: tuple[Change, ...] = get_args(Change)
ClaimKind: TypeAlias = Literal[
    "met", "requirements", "risk", "triggers", "training_data", "test_data", "model", "odd", "counting", "tool"
]
"""That a requirement is met, and that it is right; a rate or risk per hour; that the known triggering conditions are
acceptable; and what people answer for."""
OF_PEOPLE: tuple[ClaimKind, ...] = ("training_data", "test_data", "model", "odd", "counting", "tool")


@dataclass(frozen=True)
class Row:
    """One row of the table; `lost` where nothing in the new bundle makes up for it.

    Attributes:
        changed: in words.
        recompute: what the program does again.
        repeat: (activity, duty whose documents show that it was done) of people.
        falls: kinds of claims.
        own: whether only claims about the requirements that changed fall.
        matrices: whether nothing stands again before the matrices are new.
    """

    changed: str
    recompute: str
    repeat: tuple[tuple[str, str], ...]
    falls: tuple[ClaimKind, ...]
    own: bool = False
    matrices: bool = False
    lost: bool = False


_TABLE = Path(__file__).with_name("impact.toml")
IMPACT: Mapping[Change, Row] = {
    load.pop("kind"): read_document(Row, load, _TABLE.name)
    for load in tomllib.loads(_TABLE.read_text(encoding="utf-8"))["change"]
}
_COUNTED_BY = ("labelling", "labels", "matching", "false_positives", "grouping", "variables", "where", "contexts")
UNLIKELY = 1e-3
"""Probability below which counts that only grew are not taken for more of the same."""
_SAME_POINT = ("score_thresholds", "score_threshold")
_OF_COUNTING = ("false_positives", "empty_columns", "where", "canonical", "empty_contexts", "memory")


def reached(side: Side, duty: ClaimKind) -> object:
    """What reaches a claim that people answer for, one of `OF_PEOPLE`."""
    detector, matrices = side.context.detector, digest_of(side.files[side.request.matrices])
    options = [str(getattr(side.request.options, key)) for key in _OF_COUNTING]
    told: Mapping[str, object] = {
        "training_data": [str(detector), _of(side, ("sequences",))],
        "test_data": [matrices, side.context.odd, side.context.dataset, str(detector.mounting)],
        "model": side.system,
        "odd": [side.context.odd, [condition.name for condition in side.context.risk.conditions]],
        "counting": [_of(side, _COUNTED_BY), _edges(side), options],
        "tool": side.manifest.verifier,
    }
    return told[duty]


def changes_between(old: Side, new: Side, odd: Domain) -> dict[Change, list[str]]:
    """What changed, in the order of the table: kind -> what it is, in words."""
    changes: dict[Change, list[str]] = {name: [] for name in CHANGES}
    mine, other = old.context.detector, new.context.detector
    changes["detector"] += _changed(*map(_detector, (old, new)))
    changes["sensor"] += _changed(mine.mounting, other.mounting)
    said = {"system, in words": old.context.system}, {"system, in words": new.context.system}
    changes["planner"] += [*_changed(old.system, new.system), *_changed(*said)]
    for kind, text in _domain(old, new, odd):
        changes[kind].append(text)
    changes["requirement"] += _changed(old.requirements, new.requirements)
    conditions = [{condition.name for condition in side.context.risk.conditions} for side in (old, new)]
    changes["exposure"] += _changed(*(_stated(side, conditions) for side in (old, new)))
    changes["triggers"] += _changed(
        *({trigger.name: replace(trigger, sha256=None) for trigger in side.context.triggers} for side in (old, new))
    )
    changes["counting"] += _changed(_of(old, _COUNTED_BY) | _edges(old), _of(new, _COUNTED_BY) | _edges(new))
    settings, counting = _options(old.request.options, new.request.options)
    changes["counting"] += counting
    changes["options"] += [*settings, *_changed(old.chosen, new.chosen)]
    apart = bool(changes["detector"] or changes["sensor"] or changes["counting"])
    for kind, text in _data(old, new, apart):
        changes[kind].append(text)
    words = {"test data, in words": old.context.dataset}, {"test data, in words": new.context.dataset}
    changes["more_data" if changes["more_data"] else "other_data"] += _changed(*words)
    if old.manifest.verifier != new.manifest.verifier:
        changes["program"].append(f"{old.manifest.verifier} -> {new.manifest.verifier}")
    return {kind: told for kind, told in changes.items() if told}


def _changed(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        if before != after:
            plain = all(side is None or isinstance(side, (str, int, Exposure)) for side in (before, after))
            how = f"{_told(before)} -> {_told(after)}" if plain else "added" if before is None else "changed"
            yield f"{clipped(name)}: {'left out' if after is None else how}"


def _told(value: Any) -> str:
    return "nothing" if value in (None, "") else clipped(str(value))


def _detector(side: Side) -> dict[str, object]:
    one = side.context.detector
    told = {"name": one.name, "version": one.version, "trained on": one.trained_on, **one.setting}
    return told | _of(side, _SAME_POINT)


def _of(side: Side, keys: Iterable[str]) -> dict[str, object]:
    return {key: side.matrices.get(key) for key in keys}


def _edges(side: Side) -> dict[str, object]:
    return {"bins": [matrix["distance_m"] for matrix in side.matrices["bins"]]}


def _domain(old: Side, new: Side, odd: Domain) -> Iterator[tuple[Change, str]]:
    before, after = ({condition.name for condition in side.context.risk.conditions} for side in (old, new))
    if added := sorted(after - before):
        yield "odd_widened", f"conditions added: {listed(added)}"
    if gone := sorted(before - after):
        yield "odd_narrowed", f"conditions left out: {listed(gone)}"
    if old.context.odd != new.context.odd:
        kind: Change = "odd_narrowed" if odd == "narrowed" else "odd_widened"
        yield kind, f"{_told(old.context.odd)} -> {_told(new.context.odd)}"


def _stated(side: Side, conditions: Sequence[Set[str]]) -> dict[str, object]:
    """What rates and risk are made from, beside runs; of conditions what both have, and shares if all are equal."""
    context, risk, common = side.context, side.context.risk, conditions[0] & conditions[1]
    shares = risk.shares if conditions[0] == conditions[1] else {}
    return {
        **{f"exposure of {name}": exposure for name, exposure in context.exposures.items()},
        **{f"acceptance of {name}": acceptance for name, acceptance in context.acceptances.items()},
        **{
            f"condition {condition.name}": condition.matrices
            for condition in risk.conditions
            if condition.name in common
        },
        **{f"share of {name}": share for name, share in shares.items()},
        **{f"hazard {hazard.name}": hazard for hazard in risk.hazards},
        "encounters in no condition": risk.unlisted,
        "initial states": risk.initial,
        "confidence of the risk": risk.confidence,
        "acceptance of all hazards": risk.accepted,
    }


def _options(old: RunOptions, new: RunOptions) -> tuple[list[str], list[str]]:
    """Options of the run that differ: those of how, and those of what counts."""
    settings, counting = list[str](), list[str]()
    for name in vars(old):
        before, after = getattr(old, name), getattr(new, name)
        if name not in ("engines", "limits") and before != after:
            told = f"{name.replace('_', ' ')}: {_told(before)} -> {_told(after)}"
            (counting if name in _OF_COUNTING else settings).append(told)
    return settings, counting


def _same_rates(old: Side, new: Side) -> float:
    """The p-value of Pearson's test that what was added has the rates of what was there, over all columns."""
    statistic, freedom = 0.0, 0
    for before, after in zip(old.counts[0], new.counts[0], strict=True):
        mine, whole = (np.array(side, dtype=float) for side in (before, after))
        for table in np.stack([mine, whole - mine]).transpose(2, 0, 1):  # true label; before and added; predicted
            kept = table[:, table.sum(axis=0) > 0]
            if kept.shape[1] > 1 and np.all(kept.sum(axis=1) > 0):
                expected = np.outer(kept.sum(axis=1), kept.sum(axis=0)) / kept.sum()
                statistic += float(((kept - expected) ** 2 / expected).sum())
                freedom += kept.shape[1] - 1
    return float(chi2.sf(statistic, freedom)) if freedom else 1.0


def _data(old: Side, new: Side, apart: bool) -> Iterator[tuple[Change, str]]:
    """Whether there are more data, other data, or one look too many; `apart` if counts differ for another reason."""
    mains = tuple(digest_of(side.files[side.request.matrices]) for side in (old, new))
    for name in sorted(old.conditions.keys() & new.conditions.keys()):
        hashes = old.conditions[name], new.conditions[name]
        if hashes[0] != hashes[1] and hashes != mains and all(hashes):
            yield "other_data", f"matrices of {clipped(name)}"
    for text in _changed(old.elsewhere, new.elsewhere):
        yield "other_data", f"made elsewhere, {text}"
    before, after = old.sequences, new.sequences
    counts = [[int(value) for _, value in leaves(side.counts)] for side in (old, new)]
    if old.counts == new.counts and before == after:
        return
    if apart and list(before) == list(after):
        return  # the same data, counted anew
    grown = len(counts[0]) == len(counts[1]) and all(a <= b for a, b in zip(*counts, strict=True))
    kept = all(after.get(name) == value for name, value in before.items()) and bool(before) == bool(after)
    items = [sum(int(value) for _, value in leaves(side.counts[0])) for side in (old, new)]
    said = f"{counted(items[0], 'item')} -> {counted(items[1], 'item')}"
    if apart or not (grown and kept):
        yield "other_data", said
        return
    if not before and (chance := _same_rates(old, new)) < UNLIKELY:
        yield "other_data", f"{said}; rates of what was added differ from those before: p = {p_value_text(chance)}"
        return
    yield "more_data", said
    settings = new.request.options.confidence
    basis = new.run["settings"].get("confidence") or {}
    every = (basis.get("bounds") or {}).get("every_look", False)
    if settings is not None and settings.looks < 2 and not every and new.request.options.verdict_from == "bounds":
        yield "look", f"a second look at growing data, with bounds for {settings.looks}"
