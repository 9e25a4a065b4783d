"""The perception channel: how likely the planner is told each observation, from the confusion matrices.

The planner asks which classes are reported (`sees(ped)`), so an observation is the set of reported classes among
those it asks about; what else it may ask, `verifier.systems.observation` says. What is drawn, and from which column,
depends on the labelling:

* class- and group-labelled: every object (or group that acts as one) is reported on its own, from the column of
  its class in its own bin. The probability of an observation is the sum over all ordered tuples of reported labels
  whose union it is (Badithela et al. 2022, eq. 9; the single listed order of a multiset is not enough).
* proposition-labelled: the objects of one bin are reported together, from the column of the set of their
  classes (eq. 6).

Objects in different bins are reported independently (Remark 2). Both reduce to independent *draws*, each from one
column, and an observation is the union of what the draws report. The union over many objects is built up draw by
draw, so its cost grows with the number of draws, not exponentially.

False positives. Published matrices drop unmatched detections, so column "empty" reports nothing.
`FALSE_POSITIVE_POLICIES` names what to do with the column.

Several frames in a step, as the chain of a detector with memory follows them: what each adds to what is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Ints
from verifier.base.errors import UsageError
from verifier.perception.confusion import EMPTY, ConfusionMatrices
from verifier.perception.confusion.matrices import Label
from verifier.systems.observation import ONE_FRAME, Frames, Located, Questions, Report, located_in, tagged, untagged
from verifier.systems.settings import FalsePositives

FALSE_POSITIVE_POLICIES: Mapping[FalsePositives, str] = {
    "as_counted": "column 'empty' as the file has it, where there is no object",
    "ignore": "nothing is ever reported where there is no object",
    "background": "as_counted, and beside the objects of a bin that column draws once more",
}


@dataclass(frozen=True, eq=False)
class Channel:
    """Independent draws from matrix columns, for every combination of bins that occurs.

    Attributes:
        labels: the labels of the matrices, in their order.
        observations: what the planner can be told, the empty set first.
        bins: (rows, draws) int64, the bin of each draw.
        columns: (rows, draws) int64, the column (true label) of each draw; -1 where a row has no such draw.
        told: (rows, draws, labels) int64, the number of the report that each label is told as.
        then: (observations, reports) int64, the observation after one more report; -1 where that cannot be.
        motion: (rows, outcomes) fractions, how likely each outcome of what the world draws is, independently of the
            reports; None where it draws nothing, which is one outcome.
        located: where reports may be in another bin than the true one, and it matters; `told` is then for the true
            one.
        names: of the object of each draw, "" for none.
        who: (rows, draws) int64 from 0, equal where a draw of another row is of the same objects, wherever these are,
            or of the same place: a declared one wherever it is, one beside objects in the same bin.
    """

    labels: tuple[Label, ...]
    observations: tuple[Label, ...]
    bins: NDArray[np.int64]
    columns: NDArray[np.int64]
    told: NDArray[np.int64]
    then: NDArray[np.int64]
    motion: NDArray[Any] | None = None
    located: Located | None = None
    names: tuple[str, ...] = ()
    who: NDArray[np.int64] | None = None

    @property
    def outcome_count(self) -> int:
        """Number of outcomes of what the world draws."""
        return 1 if self.motion is None else self.motion.shape[1]

    def chances(self, dtype: Any = np.float64) -> NDArray[Any]:
        """(rows, outcomes) how likely each outcome is, as doubles or (of dtype object) exactly."""
        if self.motion is None:
            return np.ones((len(self.bins), 1), dtype=dtype)
        return self.motion if np.dtype(dtype) == np.dtype(object) else self._doubles

    @cached_property
    def _doubles(self) -> NDArray[np.float64]:
        return np.array(self.motion, dtype=np.float64)

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """(rows, observations) what may be told where no rate is 0."""
        bins = int(self.bins.max(initial=0)) + 1
        return self.told_weights(np.ones((bins, len(self.labels), len(self.labels)))) > 0

    @property
    def told_as(self) -> NDArray[np.int64]:
        """(ways, rows, draws, labels) `told`, and behind it that of each bin in which a report may be."""
        return self.told[None] if self.located is None else np.concatenate([self.told[None], self.located.told])

    def telling(self, told: NDArray[np.int64]) -> Channel:
        """The same with other numbers of reports, as `told_as` has them."""
        located = None if self.located is None else replace(self.located, told=told[1:])
        return replace(self, told=told[0], located=located)

    def moved_by(self, motion: NDArray[Any]) -> Channel:
        """The same where the world draws with these (rows, outcomes) chances."""
        return self if motion.shape[1] == 1 else replace(self, motion=motion)

    def ways(self, draw: int, label: int, kind: np.dtype[Any]) -> list[tuple[NDArray[np.int64], Any]]:
        """(rows,) reports that a label of a draw may be told as, and (rows,) the probability of each."""
        if self.located is None:
            return [(self.told[:, draw, label], 1)]
        shares = self.located.shares(kind)[:, :, draw]
        return [(told[:, draw, label], share) for told, share in zip(self.located.told, shares, strict=True)]

    def weights(self, rates: NDArray[Any]) -> NDArray[Any]:
        """Probability of each observation together with each outcome of what the world draws.

        Args:
            rates: as for `told_weights`.

        Returns:
            (..., rows, observations * outcomes), the outcomes of an observation side by side.
        """
        told = self.told_weights(rates)
        if self.motion is None:
            return told
        both: NDArray[Any] = told[..., :, None] * self.chances(rates.dtype)[:, None, :]
        return both.reshape(*told.shape[:-1], -1)

    def told_weights(self, rates: NDArray[Any]) -> NDArray[Any]:
        """Probability of each observation.

        Args:
            rates: (..., bins, predicted, true) column-normalised matrices, floats or fractions; leading axes
                are a batch of matrices.

        Returns:
            (..., rows, observations), each row summing to 1.
        """
        shape = (*rates.shape[:-3], len(self.bins), len(self.observations))
        weights: NDArray[Any] = np.zeros(shape, dtype=rates.dtype)
        weights[..., 0] = 1
        possible, labels = {0}, range(len(self.labels))
        ways = [
            [(label, way) for label in labels for way in self.ways(draw, label, rates.dtype)]
            for draw in range(self.bins.shape[1])
        ]
        for draw, (bins, columns) in enumerate(zip(self.bins.T, self.columns.T, strict=True)):
            drawn = np.swapaxes(rates, -1, -2)[..., bins, columns, :]
            extended = np.zeros_like(weights)
            reached: set[int] = set()
            for before in possible:
                for label, (told, located) in ways[draw]:
                    after = self.then[before, told]
                    share = weights[..., before] * drawn[..., label] * located
                    for observation in np.unique(after).tolist():
                        where = slice(None) if np.all(after == observation) else after == observation
                        extended[..., where, observation] += share[..., where]
                        reached.add(observation)
            weights = np.where(columns[:, None] >= 0, extended, weights)
            possible |= reached - {-1}
        return weights

    def at(self, rows: NDArray[np.int64]) -> Channel:
        """These rows only."""
        motion = None if self.motion is None else self.motion[rows]
        located = self.located and Located(self.located.told[:, rows], self.located.counts[:, rows])
        bins, columns, told = self.bins[rows], self.columns[rows], self.told[rows]
        who = None if self.who is None else self.who[rows]
        return replace(self, bins=bins, columns=columns, told=told, motion=motion, located=located, who=who)

    @property
    def rounding_steps(self) -> int:
        """At most so many roundings of doubles lie between the counts and a sum of weights."""
        draws, reported = self.columns.shape[1], 1 if self.located is None else len(self.located.told)
        per_group, outcomes = len(self.labels) * len(self.observations) * reported, self.outcome_count
        told = draws * (2 + per_group + 2 * (reported > 1))
        return int(told + len(self.observations) * outcomes + 2 * (outcomes > 1))

    def columns_used(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """(k, 2) the distinct (bin, column) pairs that any draw of these rows uses."""
        columns = self.columns[rows]
        active = columns >= 0
        pairs = np.stack([self.bins[rows][active], columns[active]], axis=1)
        return np.unique(pairs, axis=0) if len(pairs) else pairs


@dataclass(frozen=True)
class Standing:
    """What stands where, for combinations of it that occur.

    Attributes:
        classes: names of classes.
        names: of the objects and places, "" for none.
        what: (rows, objects) int64: -1 not there, 0 a place where there is no object, k + 1 an object of class k.
        bins: (rows, objects) int64, in which bin.
    """

    classes: tuple[str, ...]
    names: tuple[str, ...]
    what: NDArray[np.int64]
    bins: NDArray[np.int64]


def make_channel(
    matrices: ConfusionMatrices,
    standing: Standing,
    questions: Questions,
    observations: tuple[Label, ...],
    false_positives: str = "as_counted",
    frames: Frames = ONE_FRAME,
) -> Channel:
    """The channel for objects that stand in given bins.

    Args:
        matrices: for their labels and labelling; the counts are not looked at.
        standing: what stands where. A place where there is no object counts only in bins that hold no object.
        observations: what the planner can be told, from `possible_observations`.

    Raises:
        InputError: a true label has no column.
    """
    bins, names, real = standing.bins, standing.names, standing.what > 0
    places = matrices.place_of(bins)
    columns = np.empty(bins.shape, dtype=np.int64)
    empty_column = matrices.labels.index(EMPTY)
    for j in range(bins.shape[1]):
        columns[:, j] = _object_column(matrices, replace(standing, bins=places), j)
        if false_positives != "ignore":
            place = standing.what == 0
            alone = place[:, j] & ~_shares_bin(places, j, real) & _first_in_bin(places, j, place)
            columns[alone, j] = empty_column
    if false_positives == "background" and real.any():
        some = np.flatnonzero(real.any(axis=0))
        beside = np.full((len(bins), len(some)), -1, dtype=np.int64)
        for position, index in enumerate(some.tolist()):
            beside[real[:, index] & _first_in_bin(places, index, real), position] = empty_column
        columns = np.concatenate([columns, beside], axis=1)
        bins, names = np.concatenate([bins, places[:, some]], axis=1), (*names, *("" for _ in some))
    who = _identities(matrices, standing, places)
    who = np.concatenate([who, matrices.place_of(bins[:, who.shape[1] :])], axis=1)
    of_objects = np.concatenate([real, np.zeros((len(bins), bins.shape[1] - real.shape[1]), dtype=bool)], axis=1)
    drawn: NDArray[np.bool_] = np.any(columns >= 0, axis=0)
    kept = frames.count * tuple(name for name, draws in zip(names, drawn.tolist(), strict=True) if draws)
    key = (bins, columns, of_objects, who)
    bins, columns, of_objects, who = (np.tile(array[:, drawn], (1, frames.count)) for array in key)
    told, then, of_bins = _reports(matrices, questions, observations, kept, bins, frames)
    located = None
    if matrices.localisation is not None and questions.asks_within:
        located = located_in(matrices, bins, of_objects & (columns >= 0), of_bins)
    return Channel(matrices.labels, observations, bins, columns, told, then, located=located, names=kept, who=who)


def _reports(
    matrices: ConfusionMatrices,
    questions: Questions,
    observations: tuple[Label, ...],
    names: tuple[str, ...],
    bins: NDArray[np.int64],
    frames: Frames,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """`told` and `then` of a channel, and (distance bins, draws, labels) as what report each label is told there."""
    reports: dict[Report, int] = {}
    ends = matrices.edges_m[1:].tolist()
    of_bins = np.zeros((len(ends), len(names), len(matrices.labels)), dtype=np.int64)
    for draw, name in enumerate(names):
        for index, end in enumerate(ends):
            for number, label in enumerate(matrices.labels):
                report = questions.report(label, name, end)
                report = frames.report(report, draw * frames.count // len(names))
                of_bins[index, draw, number] = reports.setdefault(report, len(reports))
    told = of_bins[matrices.distance_bin(bins), np.arange(len(names))]
    number_of = {observation: number for number, observation in enumerate(observations)}
    then = [[number_of.get(questions.after(old, report), -1) for report in reports] for old in observations]
    return told, np.array(then, dtype=np.int64).reshape(len(observations), len(reports)), of_bins


def _object_column(matrices: ConfusionMatrices, standing: Standing, j: int) -> NDArray[np.int64]:
    """Column object `j` is drawn from in each row; -1 where there is none, or another of its bin speaks for it."""
    what, bins, classes = standing.what, standing.bins, standing.classes
    columns = np.full(len(bins), -1, dtype=np.int64)
    if matrices.labelling != "proposition":
        for number in np.unique(what[what[:, j] > 0, j]).tolist():
            columns[what[:, j] == number] = matrices.column_of(frozenset({classes[number - 1]}))
        return columns
    real = what > 0
    first = real[:, j] & _first_in_bin(bins, j, real)
    together = np.where((bins == bins[:, [j]]) & real, what, 0)
    for members in np.unique(together[first], axis=0):
        present = frozenset(classes[number - 1] for number in members.tolist() if number)
        columns[first & (together == members).all(axis=1)] = matrices.column_of(present)
    return columns


def _identities(matrices: ConfusionMatrices, standing: Standing, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """(rows, objects) from 0, of which objects each draw is: a place, one of a class, or all that stand together."""
    what = standing.what.clip(0)
    if matrices.labelling != "proposition":
        return what
    together = [np.where(places == places[:, [j]], what, 0) for j in range(what.shape[1])]
    _, number = np.unique(np.concatenate(together), axis=0, return_inverse=True)
    return number.reshape(what.shape[::-1]).T


def _shares_bin(bins: NDArray[np.int64], j: int, others: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rows in which one of `others`, (rows, objects), stands in the bin of object `j`."""
    return np.asarray(((bins == bins[:, [j]]) & others).any(axis=1), dtype=bool)


def _first_in_bin(bins: NDArray[np.int64], j: int, kind: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rows in which no earlier object of `kind` stands in the bin of object `j`."""
    return ~_shares_bin(bins, j, kind & (np.arange(bins.shape[1]) < j))


def possible_observations(
    matrices: ConfusionMatrices,
    questions: Questions,
    objects: tuple[str | None, ...],
    places: Sequence[int | None] = (),
    false_positives: str = "as_counted",
    frames: Frames = ONE_FRAME,
) -> tuple[Label, ...]:
    """What a planner can be told, the empty set first.

    Args:
        matrices: for labels and bins.
        objects: the name of each object, "" or None for none.
        places: the bin of each place where there is no object, None where it may be any.

    Raises:
        UsageError: the false-positive policy is unknown.
        LimitError: these are too many to be told apart.
    """
    if false_positives not in FALSE_POSITIVE_POLICIES:
        raise UsageError(
            f"unknown false-positive policy {false_positives!r}; known: {', '.join(FALSE_POSITIVE_POLICIES)}"
        )

    def told(name: str | None, index: int | None) -> set[Report]:
        bins = range(matrices.bin_count) if index is None else (index,)
        ends = {matrices.end_m(number) for number in bins} if questions.atoms else {0.0}
        return {questions.report(label, name or "", end) for end in ends for label in matrices.labels}

    draws = [told(name, None) for name in objects]
    draws += [] if false_positives == "ignore" else [told("", index) for index in places]
    draws += [told("", None) for _ in objects] if false_positives == "background" else []
    frame = range(frames.count)
    return questions.observations(
        [{frames.report(one, frame) for one in reports} for frame in frame for reports in draws]
    )


FRAME = "frame of the step"
"""Name of the number of the frame, from 0, that the next reports are of."""
TOLD_BEFORE = "told before in the step"
"""Name of the number of what the frames before it told."""


def of_one_frame(channel: Channel, frames: int) -> Channel:
    """The draws of the first of some frames, which all have the same."""
    if frames == 1:
        return channel
    count = channel.columns.shape[1] // frames
    parts = {name: getattr(channel, name)[:, :count] for name in ("bins", "columns", "told", "who")}
    located = channel.located
    if located is not None:
        located = replace(located, told=located.told[:, :, :count], counts=located.counts[:, :, :count])
    return replace(channel, names=channel.names[:count], located=located, **parts)


def told_in_frames(channel: Channel, observation: Ints, read: Frames, count: int) -> tuple[Ints, Ints]:
    """(frames, branches) what each branch of a frame adds to what is told in a step, and (observations, observations)
    the two together; of one frame it is that."""
    if count == 1:
        return observation[None], np.empty((0, len(channel.observations)), dtype=np.int64)
    texts = channel.observations
    number_of = {text: number for number, text in enumerate(texts)}

    def in_frame(text: Label, frame: int) -> int:
        if read.count == 1 and frame < count - 1:
            return 0
        return number_of[frozenset(tagged(untagged(fact), frame) for fact in text) if read.told_apart else text]

    told = [[in_frame(texts[old], frame) for old in observation.tolist()] for frame in range(count)]
    # What cannot be told in one step is never put together.
    both = [[number_of.get(one | other, 0) for other in texts] for one in texts]
    return np.array(told, dtype=np.int64), np.array(both, dtype=np.int64)
