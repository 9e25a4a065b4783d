"""From a detection set to confusion counts: match, look at each object and each leftover once, add up.

`count_detections` does all of it. `Count` is additive over frames: counting two halves of the frames and adding gives
what counting them together gives, and `accumulate` does that with the sequences' names.

Errors of reported distances (`localised`): of matched objects, the distance bin reported against the true one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verifier.base.arrays import Ints
from verifier.base.errors import InputError, LimitError, Place, UsageError
from verifier.perception.confusion.counts import LARGEST_TABLE, ConfusionCounts, Sequences
from verifier.perception.confusion.labellings import (
    Scene,
    Seen,
    class_items,
    group_items,
    linked_groups,
    proposition_items,
)
from verifier.perception.confusion.places import Located, check_inside, frame_parts, layout, locate
from verifier.perception.confusion.rules import EMPTY_NAME, CountingRule
from verifier.perception.confusion.sanity import Remark, remark, with_sanity
from verifier.perception.confusion.tally import Tally, counted, joined_tallies, no_counts, summed
from verifier.perception.confusion.tracks import Tracks, count_tracks, family_of_tracks, joined_tracks, track_numbers
from verifier.perception.detections.columns import NO_SEQUENCE, DetectionSet
from verifier.perception.detections.distances import reported_distance
from verifier.perception.matching import Matches, MatchingPolicy, match

TOTALS = ("frames", "annotations", "detections", "matched", "unmatched", "duplicates", "ignored", "outside_bins")
NO_TRACKS_IN_PARTS = remark(
    "counted-in-parts", "counted part by part: tracks are left out, and whether misses follow misses is not tested"
)


@dataclass(frozen=True, eq=False)
class Count:
    """What was counted in some frames.

    Attributes:
        frames: (s,) frames of each sequence.
        tally: counts by sequence.
        totals: numbers of `TOTALS`; those about detections are for the lowest score threshold.
        tracks: counts by track; None where the annotations have none, or an item is no single object.
        remarks: on how the counts were made.
        localised: see `localised`; None where that is not asked for.
        contexts: the tally divided by context, see `context_counts.divided`; None where contexts are not counted.
    """

    sequences: tuple[str, ...]
    frames: Ints
    tally: Tally
    totals: Mapping[str, int]
    tracks: Tracks | None = None
    remarks: tuple[Remark, ...] = ()
    localised: Ints | None = None
    contexts: Tally | None = None


@dataclass(frozen=True, eq=False)
class Observed:
    """One row per object and per detection: where it lies and what became of it.

    Attributes:
        matches: which detection explains which annotation.
        objects: where the annotations lie.
        scene: what the labelling counts; its leftovers are those that a policy counts.
        leftover: (k,) rows of the detections in `scene.leftovers`.
        group: (n,) group of each annotation, or None.
    """

    matches: Matches
    objects: Located
    scene: Scene
    leftover: Ints
    group: Ints | None
    totals: Mapping[str, int]


def count_and_observe(
    data: DetectionSet, policy: MatchingPolicy, rule: CountingRule
) -> tuple[Count, Observed | None]:
    """`count_detections`, and what was seen of each object; None where each threshold has matches of its own."""
    if rule.thresholds is not None and not takes_surest_first(policy):
        return _count_each_threshold(data, policy, rule, rule.thresholds), None
    observed = observe(data, match(data, policy), rule)
    return _count_observed(data, observed, rule), observed


def takes_surest_first(policy: MatchingPolicy) -> bool:
    """Whether detections below a score threshold cannot change what those above it match."""
    return policy.assignment == "greedy" and policy.order == "score" and not policy.same_class_first


def count(data: DetectionSet, matches: Matches, rule: CountingRule) -> Count:
    """Count data that is matched; InputError and UsageError as `count_detections`."""
    return _count_observed(data, observe(data, matches, rule), rule)


def _count_observed(data: DetectionSet, observed: Observed, rule: CountingRule) -> Count:
    if rule.labelling == "class":
        items = class_items(observed.scene, rule)
    elif rule.labelling == "proposition":
        items = proposition_items(observed.scene, rule)
    else:
        assert observed.group is not None
        items = group_items(observed.scene, rule, observed.group, observed.objects.distance_m)
    frames = np.bincount(data.frame_sequence, minlength=len(data.sequences))
    tally = counted(items, rule.threshold_count)
    return Count(data.sequences, frames, tally, observed.totals, *_tracks(data, observed.scene, rule))


def _tracks(data: DetectionSet, scene: Scene, rule: CountingRule) -> tuple[Tracks | None, tuple[Remark, ...]]:
    """The counts by track, where objects have tracks and are counted alone, and what to say of them."""
    if rule.labelling != "class" or "track" not in data.annotations.attributes:
        return None, ()
    numbers = track_numbers(data.annotations, data.frame_sequence)
    if not (numbers >= 0).any():
        return None, ()
    alone = int(np.count_nonzero((numbers < 0) & (scene.objects.bin >= 0)))
    text = f"{alone} objects have no track; counted by track, each is a track of one frame"
    return count_tracks(scene, rule, numbers), (remark("untracked", text),) if alone else ()


def observe(data: DetectionSet, matches: Matches, rule: CountingRule) -> Observed:
    """What a labelling needs to know of every object and leftover detection."""
    annotations, detections = data.annotations, data.detections
    class_of = _rule_classes(data, rule)
    objects = locate(data, annotations, rule, objects=True)
    if rule.outside == "error" or (len(annotations) and np.isnan(objects.distance_m).all()):
        check_inside(data, objects)
    score = np.asarray(detections.score)
    level = rule.levels(score)
    reported = class_of[detections.label]
    by = matches.detection_of  # -1 takes what is put at the end
    seen = Seen(
        annotations.frame,
        class_of[annotations.label],
        objects.bin,
        objects.place,
        np.append(reported, -1)[by],
        np.append(level, 0)[by],
        np.append(score, -np.inf)[by],
    )
    rows, place, totals = _leftovers(data, matches, rule, objects, level)
    leftovers = Seen(detections.frame[rows], reported[rows], place, place, reported[rows], level[rows], score[rows])
    sequence = data.frame_sequence.astype(np.int64)
    scene = Scene(seen, leftovers, sequence, *_frames_at(data, rule))
    totals |= {
        "frames": data.frame_count,
        "annotations": len(annotations),
        "matched": int(np.count_nonzero(seen.level)),
        "outside_bins": int(np.count_nonzero(objects.bin < 0)),
    }
    return Observed(matches, objects, scene, rows, _groups(data, rule), {name: totals[name] for name in TOTALS})


def _rule_classes(data: DetectionSet, rule: CountingRule) -> Ints:
    """(classes of the data,) the place of each in the rule; -1 where the rule leaves it out."""
    if EMPTY_NAME in data.classes:
        raise InputError(
            f"'{EMPTY_NAME}' is no class: it stands for 'nothing is there'", hint="map it to another name"
        )
    missing = [name for name in data.classes if name not in rule.classes]
    if missing and rule.labelling != "proposition":
        raise UsageError(f"the data has classes that get no column: {', '.join(missing)}")
    places = {name: number for number, name in enumerate(rule.classes)}
    return np.array([places.get(name, -1) for name in data.classes], dtype=np.int64)


def _frames_at(data: DetectionSet, rule: CountingRule) -> tuple[Ints, Any]:
    places = layout(rule.bins)
    part = frame_parts(data, rule.bins)
    if rule.outside == "error" and (part < 0).any():
        name = data.sequences[data.frame_sequence[int(np.argmax(part < 0))]]
        raise InputError(
            f"sequence '{name}' falls in no bin of the variable 'sequence'",
            Place(path="--by sequence"),
            "add a last bin such as other:*, or drop it (--outside drop)",
        )
    frames = np.zeros((len(data.sequences), rule.bins.count), dtype=np.int64)
    np.add.at(frames, (data.frame_sequence[part >= 0], part[part >= 0]), 1)
    at = np.zeros_like(frames)
    at[:, places.places] = frames[:, places.frame_part]
    return at, places


def _leftovers(
    data: DetectionSet, matches: Matches, rule: CountingRule, objects: Located, level: Ints
) -> tuple[Ints, Ints, dict[str, int]]:
    """Rows and places of the leftover detections that a policy counts, and how many of each kind there are."""
    taking_part = level > 0
    left = taking_part & (matches.annotation_of < 0) & ~matches.ignored
    duplicate = left & (matches.nearest >= 0)
    wanted = np.where(duplicate, rule.duplicates != "drop", rule.unmatched != "drop") & left
    rows = np.flatnonzero(wanted)
    totals = {
        "detections": int(np.count_nonzero(taking_part)),
        "unmatched": int(np.count_nonzero(left & ~duplicate)),
        "duplicates": int(np.count_nonzero(duplicate)),
        "ignored": int(np.count_nonzero(taking_part & matches.ignored)),
    }
    if not len(rows):
        return rows, rows, totals
    at_nearest = duplicate[rows] & (rule.duplicates == "nearest_bin")  # what is near no object lies in its own bin
    place = np.empty(len(rows), dtype=np.int64)
    place[at_nearest] = objects.place[matches.nearest[rows[at_nearest]]]
    own = rows[~at_nearest]
    located = locate(data, data.detections.take(own), rule, objects=False)
    unknown = np.flatnonzero(np.isnan(located.distance_m))
    if len(unknown):
        row = int(own[unknown[0]])
        raise InputError(
            "a detection that matches nothing has no distance, so its own bin is not known",
            data.place(data.detections, row),
            "use --unmatched drop and --duplicates drop or nearest_bin, or give detections a distance",
        )
    place[~at_nearest] = located.place
    inside = place >= 0
    return rows[inside], place[inside], totals


def _groups(data: DetectionSet, rule: CountingRule) -> Ints | None:
    if rule.gap_m is None:
        return None
    boxes = data.annotations
    centre = np.full(len(boxes), np.nan) if boxes.box_3d is None else boxes.box_3d[:, :2]
    return linked_groups(boxes.frame, boxes.label.astype(np.int64), centre, rule.gap_m)


def _count_each_threshold(
    data: DetectionSet, policy: MatchingPolicy, rule: CountingRule, thresholds: tuple[float, ...]
) -> Count:
    """A family where detections below a threshold could change the matches above it: matched once for each."""
    alone = replace(rule, thresholds=None)
    members = []
    for threshold in thresholds:
        kept = data.change(detections=data.detections.take(np.asarray(data.detections.score) >= threshold))
        members.append(count(kept, match(kept, policy), alone))
    index = np.concatenate([count.tally.index for count in members])
    counts = np.zeros((len(index), len(members)), dtype=np.int64)
    member = np.repeat(np.arange(len(members)), [len(count.tally.index) for count in members])
    counts[np.arange(len(index)), member] = np.concatenate([count.tally.counts[:, 0] for count in members])
    tracks = [count.tracks for count in members if count.tracks is not None]
    return replace(members[0], tally=summed(index, counts), tracks=family_of_tracks(tracks) if tracks else None)


def nothing_counted(rule: CountingRule, by_context: bool = False) -> Count:
    """The sum of no frames."""
    none = no_counts(rule.threshold_count)
    return Count((), np.zeros(0, np.int64), none, dict.fromkeys(TOTALS, 0), contexts=none if by_context else None)


def accumulate(parts: Sequence[Count], whole: bool = False) -> Count:
    """The counts of all parts together; at least one. Sequences of the same name are one sequence.

    Tracks are left out, as one that goes on in the next part has shares of neither, unless sequences are `whole`.
    """
    numbers: dict[str, int] = {}
    tallies, contexts, tracks = list[Tally](), list[Tally](), list[Tracks]()
    frames = np.zeros(sum(len(part.sequences) for part in parts), dtype=np.int64)
    for part in parts:
        own = np.array([numbers.setdefault(name, len(numbers)) for name in part.sequences], dtype=np.int64)
        np.add.at(frames, own, part.frames)
        tallies.append(part.tally.renumbered(own))
        contexts += [] if part.contexts is None else [part.contexts.renumbered(own)]
        tracks += [part.tracks.renumbered(own)] if part.tracks is not None and whole else []
    totals = {name: sum(part.totals[name] for part in parts) for name in TOTALS}
    lacking = [part for part in parts if part.tracks is None and part.totals["annotations"]]
    kept = joined_tracks(tracks) if tracks and not lacking else None
    lost = kept is None and any(part.tracks is not None for part in parts)
    lost |= any(NO_TRACKS_IN_PARTS in part.remarks for part in parts)
    tables = [part.localised for part in parts if part.localised is not None]
    table = np.sum(tables, axis=0) if tables else None
    remarks, divided = (NO_TRACKS_IN_PARTS,) * lost, joined_tallies(contexts) if contexts else None
    return Count(
        tuple(numbers), frames[: len(numbers)], joined_tallies(tallies), totals, kept, remarks, table, divided
    )


def confusion_counts(
    count: Count, rule: CountingRule, policy: MatchingPolicy, source: Any = None, title: str = ""
) -> ConfusionCounts:
    """The counts as a document holds them.

    Raises:
        LimitError: the document would be too large.
    """
    labels = rule.labels
    entries = rule.threshold_count * rule.bins.count * len(labels) ** 2
    if entries > LARGEST_TABLE:
        raise LimitError(
            f"{rule.threshold_count} thresholds x {rule.bins.count} bins x {len(labels)}^2 labels are {entries} "
            f"counts; at most {LARGEST_TABLE} are kept",
            hint="fewer thresholds, bins or classes",
        )
    metadata: dict[str, object] = rule.record(policy.record())
    metadata |= {"totals": dict(count.totals)} | ({} if source is None else {"source": source})
    known = count.sequences not in ((), (NO_SEQUENCE,)) or count.tracks is not None
    sequences = Sequences(count.sequences, count.frames, count.tally, count.tracks) if known else None
    table = count.tally.dense(rule.bins.count, len(labels))
    counts = ConfusionCounts(rule.labelling, labels, rule.bins, rule.thresholds, table, sequences, title, metadata)
    return with_sanity(counts, count.remarks)


def localised(data: DetectionSet, observed: Observed | None, rule: CountingRule) -> Ints:
    """(bins + 1, bins) matched objects by the distance bin reported, last those reported in none, and the true one.

    Raises:
        UsageError: a family over score thresholds, or an item is no single object.
    """
    if rule.thresholds is not None or observed is None or rule.labelling == "proposition":
        raise UsageError("--localisation counts single objects at one score threshold")
    matched = np.flatnonzero((observed.matches.detection_of >= 0) & (observed.objects.bin >= 0))
    reports = data.detections.take(observed.matches.detection_of[matched])
    reported = rule.bins.distance_bins(reported_distance(reports, rule.measure))
    bins = rule.bins.shape[0]
    table = np.zeros((bins + 1, bins), dtype=np.int64)
    true = rule.bins.distance_bins(observed.objects.distance_m[matched])
    np.add.at(table, (np.where(reported >= 0, reported, bins), true), 1)
    return table


def with_localisation(counts: ConfusionCounts, table: Ints) -> ConfusionCounts:
    """The counts with the key `localisation`, made from `localised`, and a remark on how many objects it leaves out.

    Raises:
        InputError: no matched detection has a distance.
    """
    matched, left_out = int(table.sum()), int(table[-1].sum())
    if matched and matched == left_out:
        hint = (
            "detections have distances by boxes in space, --calibration, --depth-folder or --detection-distance-field"
        )
        raise InputError("no detection of a matched object has a distance in a bin", hint=hint)
    text = f"{left_out} of {matched} matched objects are reported in no distance bin; localisation leaves them out"
    told = {"localisation": {"axes": ["reported", "true"], "counts": table[:-1].tolist()}}
    counts = replace(counts, metadata={**counts.metadata, **(told if matched else {})})
    return with_sanity(counts, [remark("not-localised", text)]) if left_out else counts
