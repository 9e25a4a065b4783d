"""Confusion counts and matching audits, told once: on the terminal of `verify confusion` and in reports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from verifier.analysis.channel_test import dependence_remark
from verifier.base.arrays import grouped
from verifier.base.errors import UsageError, one_line
from verifier.base.numbers import fixed, interval_text, level_text, number_text, p_value_text, significant
from verifier.base.words import counted, first_of, percent
from verifier.perception.confusion.context_selection import selected_contexts
from verifier.perception.confusion.contexts import UNTRACKED, OfTracks
from verifier.perception.confusion.counts import ConfusionCounts, ContextCounts
from verifier.perception.confusion.data_set import annotations_told, record_of
from verifier.perception.confusion.dependence import CONTRADICTED_BELOW
from verifier.perception.confusion.document_dependence import Dependence
from verifier.perception.confusion.document_types import AveragePrecision
from verifier.perception.confusion.matrices import EMPTY, ConfusionMatrices, label_text
from verifier.perception.confusion.replay import Replayed
from verifier.perception.confusion.sanity import (
    THIN_COLUMN,
    WORTH_SAYING,
    left_out_texts,
    rate_differences,
    recalls,
    remark_texts,
    thin_columns,
)
from verifier.telling.blocks import Cell, Row, Table, name_text
from verifier.telling.terminal import aligned, block_lines, text_of

if TYPE_CHECKING:
    from verifier.questions.audit import Audited
    from verifier.questions.validation import Validation

MOST_THIN = 6
MOST_DIFFERENCES = 12


def counts_table(counts: ConfusionCounts) -> str:
    """One matrix per bin with counts and rates; of a family the lowest threshold, and recall at each threshold."""
    lines = [one_line(counts.title)] if counts.title else []
    lines += _head_lines(counts)
    shown = counts if counts.thresholds is None else counts.member(counts.thresholds[0])
    if counts.thresholds is not None:
        lines += ["", *_family_lines(counts), "", f"matrices at score threshold {counts.thresholds[0]:g}"]
    for block in matrix_blocks(shown):
        lines += ["", *block_lines(block)]
    return text_of([*lines, "", *_weight_lines(shown), *_notes(shown)])


def matrix_blocks(counts: ConfusionCounts, most: int | None = None) -> Iterator[Table]:
    """Recall of every true label by bin, then every matrix, or so many of them; of a family of its lowest threshold.

    In each matrix the rows are reports and the columns true labels; a column's rates sum to 1.
    """
    yield _recall_table(counts)
    if "average_precision" in counts.metadata:
        yield _precision_table(counts.metadata["average_precision"])
    if counts.by_context is not None:
        yield _context_table(counts, counts.by_context)
    for index in range(counts.bins.count if most is None else min(most, counts.bins.count)):
        yield _matrix_table(counts, index)


def _recall_table(counts: ConfusionCounts) -> Table:
    """Hits by items of every true label, by bin."""
    hits, items = np.diagonal(counts.counts[0], axis1=1, axis2=2).tolist(), counts.counts[0].sum(axis=1).tolist()
    rows = tuple(
        (Cell(name_text(counts.bins.text(at)), at), *map(_rate_cell, hits[at], items[at]))
        for at in range(counts.bins.count)
    )
    header = ("distance", *(name_text(label_text(label)) for label in counts.labels))
    return Table("Reported as what it is, by true label and distance: rate (count of items)", header, rows, True)


def _precision_table(average_precision: AveragePrecision) -> Table:
    """Average precision of each class, with its interval."""
    rows = []
    for precision in average_precision.classes:
        ends = (
            ""
            if precision.lower is None or precision.upper is None
            else interval_text(precision.lower, precision.upper)
        )
        text = "no objects" if precision.value is None else number_text(precision.value, least=3 if ends else 6)
        value = Cell(text, precision.value)
        rows.append((name_text(precision.label), value, ends, Cell(str(precision.objects), precision.objects)))
    header = (
        "class",
        "AP",
        f"{level_text(average_precision.level)} interval, by {average_precision.unit}",
        "objects",
    )
    return Table("Average precision under this matching", header, tuple(rows), True)


def _context_table(counts: ConfusionCounts, by_context: ContextCounts) -> Table:
    """Hits by items of every true label, by context, over all bins."""
    total = by_context.counts[0].sum(axis=0)
    hits, items = np.diagonal(total, axis1=1, axis2=2).tolist(), total.sum(axis=1).tolist()
    rows = tuple(
        (Cell(name, at), *map(_rate_cell, hits[at], items[at]))
        for at, name in enumerate((*by_context.contexts.names, UNTRACKED))
        if any(items[at])
    )
    header = ("context", *(name_text(label_text(label)) for label in counts.labels))
    caption = f"Reported as what it is, by true label and context ({by_context.contexts}), over all bins"
    return Table(f"{caption}: rate (count of items)", header, rows, True)


def context_lines(counts: ConfusionCounts) -> list[str]:
    """What the data say of the contexts: which of them they support, and whether more of the past matters."""
    by_context = counts.by_context
    if by_context is None or counts.thresholds is not None or by_context.tally is None:
        return []
    lines = []
    for number, label in enumerate(counts.labels):
        name = label_text(label)
        if label == EMPTY or not by_context.counts[0, :, :-1, :, number].any():
            continue
        try:
            chosen = selected_contexts(by_context, [number])
        except UsageError:
            lines.append(f"{name}: too few sequences to say which contexts the data support")
            continue
        lines += _track_lines(name, (by_context.tracks or {}).get(name))
        losses = {str(loss.contexts): fixed(loss.mean, 3) for loss in chosen.losses}
        lines.append(
            f"{name}: the data support {chosen.contexts} ({losses[str(chosen.contexts)]} bits per frame on sequences "
            f"left out; without memory {losses['none']})"
        )
        left = next((e for e in by_context.tests if e.label == name and e.contexts == str(chosen.contexts)), None)
        if left is not None and left.p_value < CONTRADICTED_BELOW and left.z is not None:
            lines.append(
                f"warning: misses of {name} depend on more of the past than {chosen.contexts} "
                f"(z = {fixed(left.z, 1)}, p = {p_value_text(left.p_value)})"
            )
    return lines


def _track_lines(name: str, tracks: OfTracks | None) -> list[str]:
    """How the tracks of a class begin, and how long they are missed."""
    if tracks is None:
        return []
    return [
        f"{name}: missed in the first frame of {tracks.with_drive[0]} of {tracks.with_drive[1]} tracks that begin "
        f"with their drive, and of {tracks.later[0]} of {tracks.later[1]} others; the longest run of wrong reports "
        f"has {counted(tracks.longest_wrong_run, 'frame')}"
    ]


def _rate_cell(hits: int, total: int) -> Cell:
    if total == 0:
        return Cell("no items", -1.0)
    rate = hits / total
    return Cell(f"{percent(rate, 3)} ({hits} of {total})", rate, heat=rate)


def _matrix_table(counts: ConfusionCounts, index: int) -> Table:
    """One matrix: a row per report, a column per true label; columns sum to 1."""
    names = [name_text(label_text(label)) for label in counts.labels]
    table = counts.counts[0, index]
    items = table.sum(axis=0).tolist()
    rows: list[Row] = [(name, *map(_count_cell, row, items)) for name, row in zip(names, table.tolist(), strict=True)]
    rows.append(("items", *(Cell(str(total)) for total in items)))
    caption = f"{name_text(counts.bins.text(index))}: count (rate) of each report"
    return Table(caption, ("reported", *(f"true {name}" for name in names)), tuple(rows), side=True)


def _count_cell(count: int, total: int) -> Cell:
    if total == 0:
        return Cell("0 (no items)")
    return Cell(f"{count} ({significant(count / total, 4)})", heat=count / total)


def _head_lines(counts: ConfusionCounts) -> list[str]:
    distance, matching = counts.metadata.get("distance"), counts.metadata.get("matching")
    lines = [f"{counts.labelling}-labelled; predicted in rows, true in columns; count (share of its column)"]
    if isinstance(matching, dict):
        lines.append(f"matching: {matching_text(matching)}; false positives {counts.metadata.get('false_positives')}")
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
    return {
        recall.name: recall.hits / recall.items if recall.items else math.nan
        for recall in recalls(matrices.canonical())
    }


def _weight_lines(counts: ConfusionCounts) -> list[str]:
    """The columns whose rates depend on whether an item, a track or a drive is drawn, where sequences are known."""
    if counts.sequences is None:
        return []
    differences = rate_differences(counts.sequences, counts.bins.count, len(counts.labels))
    if not differences:
        return []
    names = [label_text(label) for label in counts.labels]
    rows = [
        [
            f"{names[difference.true]} in {counts.bins.text(difference.bin)} reported as "
            f"{names[difference.predicted]}",
            *(
                "-" if rate is None else fixed(rate, 3)
                for rate in (difference.item, difference.track, difference.drive)
            ),
        ]
        for difference in differences[:MOST_DIFFERENCES]
    ]
    lines = aligned(["rate of a random", "item", "track", "drive"], rows)
    if len(differences) > len(rows):
        lines.append(
            f"and {len(differences) - len(rows)} more columns in which these differ by more than {WORTH_SAYING}"
        )
    return [*lines, ""]


def _notes(counts: ConfusionCounts) -> list[str]:
    tested = counts.metadata.get("dependence")  # members of a family have tests of their own
    dependent = dependence_remark(tested.classes) if isinstance(tested, Dependence) else None
    warnings = [] if dependent is None else [dependent]
    warnings += context_lines(counts)
    warnings += [f"note: {text}" for text in remark_texts(counts.metadata)]
    warnings += [f"note: {text}" for text in left_out_texts(counts.metadata)]
    warnings += list(_of_data_set(counts))
    source = counts.metadata.get("source")
    if isinstance(source, dict) and isinstance(source.get("recognised"), str):
        warnings.append(f"note: {one_line(source['recognised'])}")
    thin = list(thin_columns(counts))
    if not thin:
        return [f"every column has at least {THIN_COLUMN} items", *warnings]
    told = first_of([f"{column.label} in {column.bin} ({column.items})" for column in thin], MOST_THIN)
    return [f"note: {counted(len(thin), 'column')} with fewer than {THIN_COLUMN} items: {told}", *warnings]


def _of_data_set(counts: ConfusionCounts) -> Iterator[str]:
    """What became of the annotations that were read, and what is not stated of the data."""
    told, record = annotations_told(counts), record_of(counts.metadata)
    if told is not None and told["excluded"]:
        out = ", ".join(f"{count} {name}" for name, count in told["excluded"].items())
        yield f"annotations: {told['read']} read, {told['counted']} counted, left out: {out}"
    if record is not None and record.missing:
        yield f"note: of the data set not stated: {', '.join(record.missing)}"


def replay_table(replayed: Replayed) -> str:
    """What the tracker did on real tracks, and what each memory predicts of it."""
    rows = [
        [
            prediction.contexts,
            significant(prediction.expected, 4),
            p_value_text(prediction.p_value),
            "contradicted" if prediction.p_value < CONTRADICTED_BELOW else "",
        ]
        for prediction in replayed.predictions
    ]
    lines = [
        f"{replayed.needed} right reports among {replayed.tracker_window} do not come in {replayed.not_confirmed} of "
        f"{replayed.windows} windows of {replayed.frames} frames, from {replayed.sequences} drives",
        f"for a new track: {significant(replayed.low)} to {significant(replayed.high)}, if tracks are exchangeable",
        "",
        *aligned(["memory", "windows expected", "p-value", ""], rows),
        "Each window is the first of its track; rates are counted on the other drives.",
    ]
    return text_of(line.rstrip() for line in lines)


def validation_table(validation: Validation) -> str:
    """What each model predicts of the other half of the drives, beside what was seen there."""
    lines = [
        f"{validation.true_class} in {validation.range} m: each half of {validation.drives} drives predicts the "
        f"other, {validation.splits} random halvings"
    ]
    for confirm in dict.fromkeys(look.confirm for look in validation.looks):
        needed, of = confirm.split("/")
        told = [look for look in validation.looks if look.confirm == confirm]
        rows = [
            [
                "passage" if look.frames is None else str(look.frames),
                look.model,
                str(look.windows),
                fixed(look.not_confirmed / look.windows, 3),
                "" if look.predicted is None else significant(look.predicted, 2),
                *(
                    text
                    for own in (look.counted, look.resampled)
                    for text in (
                        interval_text(own.low, own.high),
                        f"{own.outside}/{validation.splits}",
                        p_value_text(own.p_value) + (" contradicted" if own.p_value < CONTRADICTED_BELOW else ""),
                    )
                ),
            ]
            for look in told
            if look.frames is None or look.frames < 4 or look.frames % 5 == 0
        ]
        header = ["frames", "model", "tracks", "seen", "predicted", *(["interval", "outside", "p-value"] * 2)]
        lines += ["", f"share of tracks without {needed} right reports among {of}", *aligned(header, rows)]
    chosen = ", ".join(f"{name} in {count} halves" for name, count in sorted(validation.chosen.items()))
    lines += [
        "",
        *([f"auto chose {chosen}."] if chosen else []),
        f"interval: {percent(validation.level)} for the share of tracks, in the mean over halvings; first with "
        f"the rates as counted, then with drives weighted at random ({validation.draws} draws).",
        "outside: halvings whose interval does not hold the share seen. p-value: twice their mean, at most 1.",
        "Assumes: tracks are independent given the rates, and drives alike. any: bounds whatever the dependence.",
        "shown: 1 to 3 frames, every fifth number of them, and the passage; --json has all.",
        "passage: from a track's first frame in the range to the last that follows, for a planner that latches.",
    ]
    return text_of(line.rstrip() for line in lines)


def audit_table(audits: Sequence[Audited]) -> str:
    """One row per set of policies with equal matrices, then the range of every number over all policies."""
    from verifier.questions.audit import policies_text

    classes = list(dict.fromkeys(name for audited in audits for name in audited.recall))
    requirements = list(dict.fromkeys(name for audited in audits for name in audited.probabilities))
    header = ["policy", *(f"recall {name}" for name in classes), "confused", "alarms",
              *(f"P {name}" for name in requirements)]  # fmt: skip
    numbers = [_audit_numbers(audited, classes, requirements) for audited in audits]
    equal = grouped((audited.counts.counts.tobytes(), at) for at, audited in enumerate(audits))
    rows = [
        [policies_text([audits[at].candidate for at in group]), *map(_share_text, numbers[group[0]])]
        for group in equal.values()
    ]
    lines = aligned(header, rows)
    lines += ["", f"Over {len(audits)} policies with {len(rows)} different matrices:"]
    for name, values in zip(header[1:], zip(*numbers, strict=True), strict=True):
        known = [value for value in values if not math.isnan(value)]
        if known:
            lines.append(f"  {name}: {_share_text(min(known))} to {_share_text(max(known))}")
    lines.append("confused: reported, but not as what it is. alarms: share of empty places with a report.")
    if requirements:
        alone = dict.fromkeys(text for audited in audits for text in audited.one_engine)
        lines.append(f"P: computed by Storm and confirmed by an independent solver{', but for:' if alone else '.'}")
        lines += [f"  {text}" for text in alone]
    return text_of(lines)


def _audit_numbers(audited: Audited, classes: Sequence[str], requirements: Sequence[str]) -> list[float]:
    recall = [audited.recall.get(name, math.nan) for name in classes]
    probabilities = [audited.probabilities.get(name, math.nan) for name in requirements]
    return [*recall, audited.confused, audited.false_positives, *probabilities]


def _share_text(share: float) -> str:
    return "-" if math.isnan(share) else significant(share, 4)
