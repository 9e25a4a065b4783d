"""The three labellings: how objects, their reports and leftover detections become items.

Every function gives rows of `Items`: what is predicted between two indices of the score thresholds. A detection
takes part below its level (the number of thresholds that its score reaches), so what is predicted of an item changes
only at levels, and one pass counts the whole family.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints, numbered
from verifier.base.errors import UsageError
from verifier.perception.confusion.places import Layout
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.tally import Items


@dataclass(frozen=True, eq=False)
class Seen:
    """Objects or leftover detections, columns of equal length.

    Attributes:
        frame: index of the frame.
        label: class in the rule's order; -1 for another class (propositions only).
        bin: where it is counted; -1 for an object that lies in no bin.
        place: where it stands; -1 if nowhere in the bins.
        reported: class of the matched detection (of a leftover: its own); -1 if none.
        level: at how many thresholds that report is made.
        score: of that report; -inf if none.
    """

    frame: Ints
    label: Ints
    bin: Ints
    place: Ints
    reported: Ints
    level: Ints
    score: Floats

    def take(self, rows: NDArray[np.generic]) -> Seen:
        """The chosen rows."""
        return Seen(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class Scene:
    """What a labelling counts.

    Attributes:
        objects: annotated objects.
        leftovers: detections that are counted although they match nothing, each in a place.
        sequence: (f,) sequence of each frame.
        frames_at: (sequences, bins) how many frames have each place; 0 for bins that name no place.
    """

    objects: Seen
    leftovers: Seen
    sequence: Ints
    frames_at: Ints
    layout: Layout


def class_items(scene: Scene, rule: CountingRule) -> list[Items]:
    """One item per object, and one per frame and place in which none stands (Algorithm 2)."""
    return [*_object_items(scene.objects, scene, rule), *_empty_items(scene, rule)]


def group_items(scene: Scene, rule: CountingRule, group: Ints, distance_m: Floats) -> list[Items]:
    """One item per group of objects; `group` (n,) numbers the groups, `distance_m` (n,) says who is nearest.

    The group is reported as its own class up to the highest level at which a member is; above that as the surest
    report of any member.
    """
    objects = scene.objects
    right = np.where(objects.reported == objects.label, objects.level, 0)
    level = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(level, group, right)
    nearest = _first_of_each(group, np.lexsort((np.arange(len(group)), distance_m, group)))
    surest = _first_of_each(group, np.lexsort((np.arange(len(group)), -objects.score, group)))
    members, wrong = objects.take(nearest), objects.take(surest)
    as_itself = Seen(members.frame, members.label, members.bin, members.place, members.label, level, members.score)
    above = np.maximum(level, wrong.level)
    items = _object_items(as_itself, scene, rule, high=above)
    counted = as_itself.bin >= 0
    other = np.where(wrong.reported >= 0, wrong.reported, len(rule.classes))
    items.append(_rows(as_itself, scene, other, level, above, counted))
    return [*items, *_empty_items(scene, rule)]


@dataclass(frozen=True, eq=False)
class PropositionSets:
    """What stands and what is reported in each frame and place that has either; m of them.

    Attributes:
        frame: (m,).
        place: (m,).
        true: (m,) label of the classes present.
        level: (m, classes) at how many thresholds each class is reported.
        label_of: (2^classes,) the label of a set of classes, as bits.
        object_rows: (n,) rows of the scene's objects that stand in one of them.
        object_at: (n,) in which one.
    """

    frame: Ints
    place: Ints
    true: Ints
    level: Ints
    label_of: Ints
    object_rows: Ints
    object_at: Ints

    @property
    def bits(self) -> Ints:
        """(classes,) the bit of each class in a set."""
        return 1 << np.arange(self.level.shape[1])

    def reported(self, threshold: int) -> Ints:
        """(m,) the label reported at one threshold."""
        labels: Ints = self.label_of[(self.level > threshold) @ self.bits]
        return labels


def proposition_sets(scene: Scene, rule: CountingRule) -> PropositionSets:
    """The sets of classes present and reported, by frame and place."""
    bins = scene.frames_at.shape[1]
    rows = np.flatnonzero((scene.objects.label >= 0) & (scene.objects.place >= 0))
    objects = scene.objects.take(rows)
    leftovers = scene.leftovers.take(scene.leftovers.reported >= 0)
    keys = np.concatenate([objects.frame, leftovers.frame]) * bins + np.concatenate([objects.bin, leftovers.place])
    occupied, at = numbered(keys, len(scene.sequence) * bins)
    object_at, classes = at[: len(objects.frame)], len(rule.classes)
    present = np.zeros((len(occupied), classes), dtype=bool)
    present[object_at, objects.label] = True
    level = np.zeros((len(occupied), classes), dtype=np.int64)
    reporting = objects.reported >= 0
    np.maximum.at(level, (object_at[reporting], objects.reported[reporting]), objects.level[reporting])
    np.maximum.at(level, (at[len(objects.frame) :], leftovers.reported), leftovers.level)
    label_of = np.zeros(1 << classes, dtype=np.int64)
    label_of[rule.label_masks] = np.arange(len(rule.label_masks))
    true = label_of[present @ (1 << np.arange(classes))]
    return PropositionSets(*np.divmod(occupied, bins), true, level, label_of, rows, object_at)


def proposition_items(scene: Scene, rule: CountingRule) -> list[Items]:
    """One item per frame and place, labelled with sets of classes (Algorithm 1)."""
    sets = proposition_sets(scene, rule)
    count, classes = sets.level.shape
    # From the lowest threshold up, classes drop out of the reported set in the order of their levels.
    order = np.argsort(sets.level, axis=1, kind="stable")
    levels = np.take_along_axis(sets.level, order, axis=1)
    reported = np.flip(np.cumsum(np.flip(sets.bits[order], axis=1), axis=1), axis=1)
    edges = np.column_stack([np.zeros(count, np.int64), levels, np.full(count, rule.threshold_count)])
    masks = np.column_stack([reported, np.zeros(count, np.int64)])
    items = [
        _items(
            scene.sequence[sets.frame],
            sets.place,
            sets.label_of[masks[:, k]],
            sets.true,
            edges[:, k],
            edges[:, k + 1],
        )
        for k in range(classes + 1)
    ]
    nothing = len(rule.label_masks) - 1
    return [*items, *_free_frames(scene, sets.frame, sets.place, rule, nothing)]


def _object_items(objects: Seen, scene: Scene, rule: CountingRule, high: Ints | None = None) -> list[Items]:
    """Items of objects: reported as what they are reported as below their level, as nothing from `high` on."""
    empty = len(rule.classes)
    counted = objects.bin >= 0
    reported = np.where(objects.reported >= 0, objects.reported, empty)
    none, top = np.zeros_like(objects.level), np.full_like(objects.level, rule.threshold_count)
    nothing = np.full_like(reported, empty)
    return [
        _rows(objects, scene, reported, none, objects.level, counted),
        _rows(objects, scene, nothing, objects.level if high is None else high, top, counted),
    ]


def _rows(objects: Seen, scene: Scene, predicted: Ints, low: Ints, high: Ints, counted: NDArray[np.bool_]) -> Items:
    kept = np.flatnonzero(counted & (low < high))
    columns = (array.take(kept) for array in (objects.bin, predicted, objects.label, low, high))
    return _items(scene.sequence.take(objects.frame.take(kept)), *columns)


def _empty_items(scene: Scene, rule: CountingRule) -> list[Items]:
    """Column "empty" of class- and group-labelled matrices, in every bin of each place."""
    bins, empty = scene.frames_at.shape[1], len(rule.classes)
    standing = scene.objects.place >= 0
    keys = scene.objects.frame[standing] * bins + scene.objects.place[standing]
    taken, _ = numbered(keys, len(scene.sequence) * bins)
    at, alarms = surest_leftovers(scene, taken)
    none, top = np.zeros(len(at), np.int64), np.full(len(at), rule.threshold_count)
    nothing, sequence = np.full(len(at), empty), scene.sequence[alarms.frame]
    later = np.flatnonzero(alarms.level < rule.threshold_count)
    items = [
        _items(sequence, alarms.place, alarms.reported, nothing, none, alarms.level),
        _items(*(array.take(later) for array in (sequence, alarms.place, nothing, nothing, alarms.level, top))),
    ]
    items += _free_frames(scene, *np.divmod(np.concatenate([taken, at]), bins), rule, empty)
    return [spread_in_place(item, scene.layout) for item in items]


def surest_leftovers(scene: Scene, taken: Ints) -> tuple[Ints, Seen]:
    """The surest leftover of each frame and place in which nothing stands.

    Args:
        scene: what is counted.
        taken: where something stands, increasing: frame * bins + place.

    Returns:
        (k,) frame * bins + place, increasing, and the leftovers.
    """
    leftovers = scene.leftovers
    keys = leftovers.frame * scene.frames_at.shape[1] + leftovers.place
    free = np.flatnonzero(~_is_in(keys, taken))
    order = free[np.lexsort((free, -leftovers.score[free], keys[free]))]
    first = order[_first_of_each_sorted(keys[order])]
    return keys[first], leftovers.take(first)


def _free_frames(scene: Scene, frame: Ints, place: Ints, rule: CountingRule, nothing: int) -> list[Items]:
    """Items (nothing true, nothing reported) for all frames and places but those given, which are distinct."""
    shape = scene.frames_at.shape
    used = np.bincount(scene.sequence[frame] * shape[1] + place, minlength=shape[0] * shape[1]).reshape(shape)
    free = scene.frames_at - used
    sequence, at = np.nonzero(free)
    label, none = np.full(len(sequence), nothing), np.zeros(len(sequence), np.int64)
    top = np.full(len(sequence), rule.threshold_count)
    return [_items(sequence, at, label, label, none, top, free[sequence, at])]


def spread_in_place(items: Items, layout: Layout, finer: int = 1) -> Items:
    """Repeat items of places in all bins that lie in them; each bin is numbered `finer` times."""
    at, within = np.divmod(items.index[:, 1], finer)
    bins = layout.spread[np.searchsorted(layout.places, at)]
    times = bins.shape[1]
    index = np.repeat(items.index, times, axis=0)
    index[:, 1] = bins.reshape(-1) * finer + np.repeat(within, times)
    return Items(index, np.repeat(items.low, times), np.repeat(items.high, times), np.repeat(items.weight, times))


def _items(
    sequence: Ints, bin_of: Ints, predicted: Ints, true: Ints, low: Ints, high: Ints, weight: Ints | None = None
) -> Items:
    index = np.column_stack([sequence, bin_of, predicted, true]).astype(np.int64, copy=False)
    return Items(index, low, high, np.ones(len(index), dtype=np.int64) if weight is None else weight)


def _is_in(keys: Ints, increasing: Ints) -> NDArray[np.bool_]:
    if len(increasing) == 0:
        return np.zeros(len(keys), dtype=bool)
    at = np.minimum(np.searchsorted(increasing, keys), len(increasing) - 1)
    there: NDArray[np.bool_] = increasing[at] == keys
    return there


def _first_of_each(keys: Ints, order: Ints) -> Ints:
    """For each key 0, 1, ... the row that comes first in `order`, which sorts by key."""
    rows: Ints = order[_first_of_each_sorted(keys[order])]
    return rows


def _first_of_each_sorted(keys: Ints) -> NDArray[np.bool_]:
    first = np.ones(len(keys), dtype=bool)
    first[1:] = keys[1:] != keys[:-1]
    return first


def linked_groups(frame: Ints, label: Ints, centre: Floats, gap_m: float) -> Ints:
    """(n,) groups of objects of one frame and class linked by gaps of at most `gap_m` (single linkage).

    Args:
        frame: (n,).
        label: (n,).
        centre: (n, 2) on the ground in metres, none of them NaN.
        gap_m: finite.

    Raises:
        UsageError: a centre is not known.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    if not len(frame):
        return np.zeros(0, dtype=np.int64)
    if not np.isfinite(centre).all():
        raise UsageError("groups need the position of every object: some annotations have no 3-D box")
    kinds = np.unique(np.column_stack([frame, label]), axis=0, return_inverse=True)[1].reshape(-1)
    # A third coordinate keeps frames and classes further apart than any gap.
    points = np.column_stack([centre, kinds * (2.0 * gap_m + 1.0)])
    pairs = cKDTree(points).query_pairs(gap_m, output_type="ndarray")
    links = coo_array((np.ones(len(pairs), dtype=bool), (pairs[:, 0], pairs[:, 1])), shape=(len(frame), len(frame)))
    number, group = connected_components(links, directed=False)
    assert number == group.max() + 1
    return group.astype(np.int64)
