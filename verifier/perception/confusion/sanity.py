"""Whether the data can mean what the numbers say, before any statistics: as errors, and as remarks that travel.

A remark is an object of two texts: `kind`, for programs, and `text`, for people. A document carries its remarks, and
so does every result made from it. Recalls by bin say how sure the counts make us of them.

One rate has three meanings, for what is drawn at random may be an item, a track, or a drive:

| weight | the rate of a column is that of a random ... | from the drives' X of N |
|---|---|---|
| `item` | item of all drives (frame of an object) | sum X / sum N, of items |
| `track` | track (encounter), then one of its frames in the column | sum X / sum N, of summed shares and tracks |
| `drive` | drive that has items, then one of its items | mean of X / N, of items |

The matrices, and what is computed from them, are by item. The rates differ where long tracks or long drives are
harder or easier than short ones, and then none stands for another.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, TypeAlias, get_args

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.errors import InputError, one_line, shown
from verifier.base.numbers import fixed
from verifier.perception.confusion.bins import Fail
from verifier.perception.confusion.counts import ConfusionCounts, Sequences
from verifier.perception.confusion.matrices import EMPTY, ConfusionMatrices, Label, label_text, rates
from verifier.perception.settings import Absurd

THIN_COLUMN = 30
"""Items; a column with fewer says little: at 29 of 30 the 95 % interval still reaches down to 0.83."""


@dataclass(frozen=True)
class Recall:
    """Of `items` items whose true label has the class `name`, `hits` were reported with it."""

    name: str
    bin: int
    hits: int
    items: int
    low: float
    high: float


@dataclass(frozen=True)
class ThinColumn:
    """A column with few items: `bin` as text, true label as text, number of items."""

    bin: str
    label: str
    items: int


def wilson(hits: int, items: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a probability: all p with |k/n - p| <= z sqrt(p(1-p)/n) (1927, JASA 22, p. 209).

    It holds for independent items. Objects of one drive are not independent, so it is too narrow for them.

    >>> [round(end, 4) for end in wilson(1, 10)]
    [0.0179, 0.4042]

    Raises:
        ValueError: not 0 <= hits <= items, or the confidence is not in (0, 1).
    """
    if not 0 <= hits <= items or not 0 < confidence < 1:
        raise ValueError(f"expected 0 <= hits <= items and a confidence in (0, 1), got {hits}, {items}, {confidence}")
    if items == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = hits / items
    centre = (share + z * z / (2 * items)) / (1 + z * z / items)
    half = z / (1 + z * z / items) * math.sqrt(share * (1 - share) / items + z * z / (4 * items * items))
    return (0.0 if hits == 0 else centre - half), (1.0 if hits == items else centre + half)


def recalls(matrices: ConfusionMatrices) -> list[Recall]:
    """For each class and distance bin: of the items whose true label has the class, those reported with it."""
    shares = []
    for name in class_names(matrices):
        has = np.array([name in label for label in matrices.labels])
        for at in range(matrices.bin_count):
            columns = matrices.counts[at][:, has]
            hits, items = int(columns[has].sum()), int(columns.sum())
            shares.append(Recall(name, at, hits, items, *wilson(hits, items)))
    return shares


def class_names(matrices: ConfusionMatrices) -> list[str]:
    """The classes in the order in which the labels first name them."""
    return list(dict.fromkeys(name for label in matrices.labels for name in sorted(label)))


def thin_columns(counts: ConfusionCounts, fewer_than: int = THIN_COLUMN) -> Iterator[ThinColumn]:
    """The columns with too few items, column "empty" included.

    The number of items does not depend on the score threshold, so a family is looked at once.
    """
    items = counts.counts[0].sum(axis=1)
    for at, column in np.argwhere(items < fewer_than).tolist():
        label: Label = counts.labels[column]
        yield ThinColumn(counts.bins.text(at), label_text(label), int(items[at, column]))


Remark: TypeAlias = dict[str, str]
ABSURD = NO_ANNOTATIONS, NOTHING_MATCHED, IMPLAUSIBLE_DEPTH = get_args(Absurd)
"""Kinds that make a result absurd: `verify confusion` refuses them unless told to accept them."""
OF_COUNTS = (NO_ANNOTATIONS, NOTHING_MATCHED, "never-reported", "largest-drive")
"""Kinds that `sanity_remarks` finds in the counts themselves; the others are about how these were made."""
MOST = 0.5
"""One drive with more than this share of a column's items is worth a remark."""
MOST_LEFT_OUT = 6
"""Classes left out that are named."""


def remark(kind: str, text: str) -> Remark:
    """A remark."""
    return {"kind": kind, "text": text}


def remark_texts(metadata: Mapping[str, Any]) -> list[str]:
    """The remarks of a confusion document for people."""
    return [entry["text"] for entry in metadata.get("remarks", [])]


def with_reading(counts: ConfusionCounts) -> ConfusionCounts:
    """The counts, with remarks where annotations were placed on the ground as detections were, or boxes repeat."""
    source, made = counts.metadata.get("source", {}), list[Remark]()
    if "annotations" in source.get("projected", {}):
        text = "the annotations have no distance of their own: theirs is that of their foot on the ground, too"
        made.append(remark("projected-annotations", text))
    if again := source.get("repeated"):
        told = " and ".join(f"{number} {kind}" for kind, number in again.items())
        made.append(remark("repeated", f"{told} repeat others, with the same frame, class and box: all are counted"))
    return with_sanity(counts, made) if made else counts


def left_out_texts(metadata: Mapping[str, object]) -> Iterator[str]:
    """What the class map left out, annotations and detections, the most frequent classes first."""
    source = metadata.get("source")
    left_out = source.get("classes_left_out") if isinstance(source, Mapping) else None
    for kind, classes in left_out.items() if isinstance(left_out, Mapping) else ():
        if isinstance(classes, Mapping) and classes and all(type(number) is int for number in classes.values()):
            most = sorted(classes.items(), key=lambda pair: -pair[1])
            listed = ", ".join(f"{one_line(name)} ({number})" for name, number in most[:MOST_LEFT_OUT])
            more = f" and {len(most) - MOST_LEFT_OUT} more classes" if len(most) > MOST_LEFT_OUT else ""
            yield f"the class map leaves out {sum(classes.values())} {kind}: {listed}{more}"


def with_sanity(counts: ConfusionCounts, made: Iterable[Remark] = ()) -> ConfusionCounts:
    """The counts with the remarks on them found again, and all on how they were made: those they have, and `made`."""
    kept = [entry for entry in counts.metadata.get("remarks", []) if entry["kind"] not in OF_COUNTS]
    remarks = {tuple(entry.values()): entry for entry in (*sanity_remarks(counts), *kept, *made)}
    metadata = {key: value for key, value in counts.metadata.items() if key != "remarks"}
    return replace(counts, metadata={**metadata, "remarks": list(remarks.values())} if remarks else metadata)


def sanity_remarks(counts: ConfusionCounts) -> Iterator[Remark]:
    """What is odd about counts; of a family those of the lowest threshold are looked at."""
    total, labels = counts.counts[0].sum(axis=0), counts.labels
    empty = labels.index(EMPTY)
    of_objects = np.delete(total, empty, axis=1)
    items = int(of_objects.sum())
    if not items:
        yield remark(NO_ANNOTATIONS, "no annotated object is counted: every column but 'empty' is without items")
    elif items == of_objects[empty].sum():
        yield remark(NOTHING_MATCHED, f"none of the {items} annotated objects is matched with a detection")
    else:
        for name in dict.fromkeys(name for label in labels for name in sorted(label)):
            has = np.array([name in label for label in labels])
            own = int(total[:, has].sum())
            if own and not total[has].sum():
                yield remark("never-reported", f"{name} is never reported, and {own} items of it are there")
    if counts.sequences is not None:
        yield from _largest_drive(counts, counts.sequences)


def _largest_drive(counts: ConfusionCounts, sequences: Sequences) -> Iterator[Remark]:
    """One remark on the columns of objects, with enough items, most of which come from one drive."""
    names, tally, labels = sequences.names, sequences.tally, counts.labels
    items = np.zeros((len(names), counts.bins.count, len(labels)), dtype=np.int64)
    np.add.at(items, (tally.index[:, 0], tally.index[:, 1], tally.index[:, 3]), tally.counts[:, 0])
    items[:, :, labels.index(EMPTY)] = 0
    total = items.sum(axis=0)
    enough = total >= THIN_COLUMN
    share = np.where(enough, items.max(axis=0, initial=0) / np.maximum(total, THIN_COLUMN), 0.0)
    many = int(np.count_nonzero(share > MOST))
    if many:
        # Of several columns with the same share, the one with the most items.
        at, column = (int(k) for k in np.unravel_index(np.lexsort((-total.ravel(), -share.ravel()))[0], share.shape))
        drive = names[int(items[:, at, column].argmax())]
        most = f"{shown(drive)} holds {fixed(100 * share[at, column], 0)} % of the {total[at, column]} items"
        yield remark(
            "largest-drive",
            f"one drive holds most items in {many} of {int(np.count_nonzero(enough))} columns with at least "
            f"{THIN_COLUMN}: {most} of {label_text(labels[column])} in {counts.bins.text(at)}",
        )


def refuse_absurd(metadata: Mapping[str, Any], accepted: Iterable[str]) -> None:
    """Refuse a document from whose counts every number would be absurd, unless its kind of remark is accepted.

    Raises:
        InputError: naming what is odd, and what may have caused it.
    """
    causes = {
        NO_ANNOTATIONS: "look at the class map, the filters and the paths",
        NOTHING_MATCHED: "annotations and detections may be of other frames, or in other coordinates or units",
    }
    for entry in metadata.get("remarks", []):
        if entry["kind"] in causes and entry["kind"] not in accepted:
            left_out = next(left_out_texts(metadata), "") if entry["kind"] == NO_ANNOTATIONS else ""
            hint = (
                f"{causes[entry['kind']]}{left_out and f' ({left_out})'}; "
                f"if it is really so: --accept {entry['kind']}"
            )
            raise InputError(entry["text"], hint=hint)


def check_remarks(content: Any, fail: Fail) -> None:
    """Refuse a value of the key `remarks` that is not as the schema says; `fail` makes the complaint."""
    if not isinstance(content, list):
        raise fail("/remarks", f"expected a list of remarks, got {shown(content)}")
    for number, entry in enumerate(content):
        texts = isinstance(entry, dict) and set(entry) == {"kind", "text"}
        if not texts or not all(isinstance(value, str) for value in entry.values()):
            message = f"expected an object with the texts 'kind' and 'text', got {shown(entry)}"
            raise fail(f"/remarks/{number}", message)


WORTH_SAYING = 0.02
"""Rates that differ by more are shown beside each other."""


@dataclass(frozen=True, eq=False)
class WeightedRates:
    """Rates by weight, each (bins, predicted, true), NaN in columns without items; `track` also where tracks are not
    known, as in column "empty"."""

    item: Floats
    track: Floats
    drive: Floats


@dataclass(frozen=True)
class RateDifference:
    """A column in which the rate of `predicted` depends on the weight; `track` is None where it is not known."""

    bin: int
    predicted: int
    true: int
    item: float
    track: float | None
    drive: float


def weighted_rates(sequences: Sequences, bins: int, labels: int) -> WeightedRates:
    """The rates of each column by each weight.

    Args:
        sequences: with one threshold; their bins are counted by `bins`.
    """
    shape = (bins, labels, labels)
    items, tracks, drives = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    sequence, at_bin, predicted, true = sequences.tally.index.T
    own = sequences.tally.counts[:, 0].astype(np.float64)
    np.add.at(items, (at_bin, predicted, true), own)
    held = np.zeros((len(sequences.names), bins, labels))
    np.add.at(held, (sequence, at_bin, true), own)
    np.add.at(drives, (at_bin, predicted, true), own / held[sequence, at_bin, true])
    if sequences.tracks is not None:
        np.add.at(tracks, tuple(sequences.tracks.index.T[1:]), sequences.tracks.shares[:, 0])
    return WeightedRates(*(rates(array) for array in (items, tracks, drives)))


def rate_differences(
    sequences: Sequences, bins: int, labels: int, more_than: float = WORTH_SAYING
) -> Sequence[RateDifference]:
    """The columns in which two weights give rates that differ by more than `more_than`, the most differing first.

    Of a column the true label is shown where its rates differ so much, else the label whose rates differ most.
    """
    by = weighted_rates(sequences, bins, labels)
    stacked = np.stack([by.item, np.where(np.isnan(by.track), by.item, by.track), by.drive])
    spread = np.nan_to_num(stacked.max(axis=0) - stacked.min(axis=0))
    differences = []
    for at_bin, true in np.argwhere(spread.max(axis=1) > more_than).tolist():
        column = spread[at_bin, :, true]
        predicted = true if column[true] > more_than else int(column.argmax())
        item, track, drive = (float(rates_by[at_bin, predicted, true]) for rates_by in (by.item, by.track, by.drive))
        shown = None if np.isnan(track) else track
        difference = RateDifference(at_bin, predicted, true, item, shown, drive)
        differences.append((float(column[predicted]), difference))
    return [difference for _, difference in sorted(differences, key=lambda entry: -entry[0])]
