"""Confusion counts and matching audits as tables that a person reads."""

from __future__ import annotations

import math
from collections.abc import Sequence

from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.dependence import classes_tested, dependence_remark
from verifier.perception.confusion.matrices import ConfusionMatrices, label_text
from verifier.perception.confusion.recall import THIN_COLUMN, recalls, thin_columns
from verifier.perception.confusion.sanity import remark_texts
from verifier.perception.confusion.weights import WORTH_SAYING, rate_differences
from verifier.questions.audit import Audited
from verifier.telling.terminal import aligned

MOST_THIN = 6
MOST_DIFFERENCES = 12


def counts_table(counts: ConfusionCounts) -> str:
    """One matrix per bin with counts and rates; of a family the lowest threshold, and recall at each threshold."""
    lines = [counts.title] if counts.title else []
    lines += _head_lines(counts)
    shown = counts if counts.thresholds is None else counts.member(counts.thresholds[0])
    if counts.thresholds is not None:
        lines += ["", *_family_lines(counts), "", f"matrices at score threshold {counts.thresholds[0]:g}"]
    for index in range(counts.bins.count):
        lines += ["", *_matrix_lines(shown, index)]
    return "\n".join([*lines, "", *_weight_lines(shown), *_notes(shown)]) + "\n"


def _head_lines(counts: ConfusionCounts) -> list[str]:
    distance, matching = counts.metadata.get("distance"), counts.metadata.get("matching")
    lines = [f"{counts.labelling}-labelled; predicted in rows, true in columns; count (share of its column)"]
    if isinstance(matching, dict):
        lines.append(f"matching: {matching_text(matching)}; false alarms {counts.metadata.get('false_alarms')}")
    if isinstance(distance, dict):
        lines.append(f"distance: {distance.get('measure')} of the {distance.get('of')}")
    totals = counts.metadata.get("totals")
    if isinstance(totals, dict):
        lines.append(", ".join(f"{number} {name.replace('_', ' ')}" for name, number in totals.items()))
    return lines


def matching_text(matching: dict[str, object]) -> str:
    """A recorded policy in one line."""
    distance = str(matching.get("affinity")).startswith("centre")
    strict = matching.get("strict")
    sign = ("<" if strict else "<=") if distance else (">" if strict else ">=")
    classes = "same class" if matching.get("class_aware") else "any class"
    parts = [
        f"{matching.get('affinity')} {sign} {matching.get('threshold')}",
        str(matching.get("assignment")),
        classes,
    ]
    return ", ".join([*parts, f"unmatched {matching.get('unmatched')}", f"duplicates {matching.get('duplicates')}"])


def _matrix_lines(counts: ConfusionCounts, index: int) -> list[str]:
    table = counts.counts[0, index]
    items = table.sum(axis=0)
    names = [label_text(label) for label in counts.labels]
    rows = []
    for at, name in enumerate(names):
        cells = [
            f"{number} ({number / total:.3f})" if total else str(number)
            for number, total in zip(table[at].tolist(), items.tolist(), strict=True)
        ]
        rows.append([name, *cells])
    rows.append(["items", *map(str, items.tolist())])
    return aligned([counts.bins.text(index), *names], rows)


def _family_lines(counts: ConfusionCounts) -> list[str]:
    rows = []
    header: list[str] = []
    for threshold in counts.thresholds or ():
        shares = canonical_recall(counts.member(threshold).matrices())
        header = ["score threshold", *(f"recall {name}" for name in shares)]
        rows.append([f"{threshold:g}", *(_share_text(share) for share in shares.values())])
    return aligned(header, rows)


def canonical_recall(matrices: ConfusionMatrices) -> dict[str, float]:
    """Class -> recall over all bins; NaN without items."""
    return {each.name: each.hits / each.items if each.items else math.nan for each in recalls(matrices.canonical())}


def _weight_lines(counts: ConfusionCounts) -> list[str]:
    """The columns whose rates depend on whether an item, a track or a drive is drawn, where sequences are known."""
    if counts.sequences is None:
        return []
    found = rate_differences(counts.sequences, counts.bins.count, len(counts.labels))
    if not found:
        return []
    names = [label_text(label) for label in counts.labels]
    rows = [
        [
            f"{names[each.true]} in {counts.bins.text(each.bin)} reported as {names[each.predicted]}",
            *("-" if rate is None else f"{rate:.3f}" for rate in (each.item, each.track, each.drive)),
        ]
        for each in found[:MOST_DIFFERENCES]
    ]
    lines = aligned(["rate of a random", "item", "track", "drive"], rows)
    if len(found) > len(rows):
        lines.append(f"and {len(found) - len(rows)} more columns in which these differ by more than {WORTH_SAYING}")
    return [*lines, ""]


def _notes(counts: ConfusionCounts) -> list[str]:
    dependent = dependence_remark(classes_tested(counts.metadata))
    warnings = [] if dependent is None else [dependent]
    warnings += [f"note: {text}" for text in remark_texts(counts.metadata)]
    thin = list(thin_columns(counts))
    if not thin:
        return [f"every column has at least {THIN_COLUMN} items", *warnings]
    listed = ", ".join(f"{each.label} in {each.bin} ({each.items})" for each in thin[:MOST_THIN])
    more = f" and {len(thin) - MOST_THIN} more" if len(thin) > MOST_THIN else ""
    return [f"note: {len(thin)} columns with fewer than {THIN_COLUMN} items: {listed}{more}", *warnings]


def audit_table(found: Sequence[Audited]) -> str:
    """One row per policy, then the range of every number over all policies."""
    classes = list(dict.fromkeys(name for each in found for name in each.recall))
    requirements = list(dict.fromkeys(name for each in found for name in each.probabilities))
    header = ["policy", *(f"recall {name}" for name in classes), "confused", "alarms",
              *(f"P {name}" for name in requirements)]  # fmt: skip
    numbers = [_audit_numbers(each, classes, requirements) for each in found]
    rows = [
        [str(each.candidate), *(_share_text(number) for number in row)]
        for each, row in zip(found, numbers, strict=True)
    ]
    lines = aligned(header, rows)
    lines += ["", f"Over {len(found)} policies:"]
    for name, values in zip(header[1:], zip(*numbers, strict=True), strict=True):
        known = [value for value in values if not math.isnan(value)]
        if known:
            lines.append(f"  {name}: {_share_text(min(known))} to {_share_text(max(known))}")
    lines.append("confused: reported, but not as what it is. alarms: share of empty places with a report.")
    return "\n".join(lines) + "\n"


def _audit_numbers(each: Audited, classes: Sequence[str], requirements: Sequence[str]) -> list[float]:
    recall = [each.recall.get(name, math.nan) for name in classes]
    probabilities = [each.probabilities.get(name, math.nan) for name in requirements]
    return [*recall, each.confused, each.false_alarms, *probabilities]


def _share_text(share: float) -> str:
    return "-" if math.isnan(share) else f"{share:.4g}"
