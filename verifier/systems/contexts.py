"""A detector with memory: states that also say what it remembers of each object.

A context (`verifier.perception.confusion.contexts`) belongs to a draw of the channel: to an object, to the objects of
a proposition-labelled bin, or to a place where there is no object. The chain of states s and contexts c is made from
the one without, whatever its planner is: with K(s, y) where the planner goes on what is reported,

    (s, c) -> (K(s, y), c'),    c'_i = u(c_i, whether draw i was right),    Pr(y) = prod_i mu[bin_i, x_i, c_i](y_i)

A bin and a context are numbered together, as in the matrices, so a channel with memory is a channel with more bins.
What is told apart are *branches*: what the planner is told, and for each draw as which group of labels it was
reported; those that the planner is told alike and that are no true label of the draw are one group.

Where a step has several frames, the chain follows them one by one: a state also says in which frame of the step it
is, and what the frames before were told; it moves on after the last. Frames that the planner does not read are drawn,
too, for what is remembered of them. A step of the model is then as many steps of the chain.

A context ends where what is drawn is another: an object that was not there, or is of another class; other objects
that stand together; a place beside objects that is in another bin. Then it is that without outcomes again. So it is
in terminal states, where nothing is drawn, and of true labels of which no track is known.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from verifier.base.arrays import Ints, Mask, numbered_rows
from verifier.base.errors import InputError, LimitError, NoAnswerError, Place
from verifier.perception.confusion.contexts import RIGHT, WRONG, Contexts
from verifier.perception.confusion.matrices import ConfusionMatrices, Label, label_text
from verifier.systems.channel import FRAME, TOLD_BEFORE, Channel, of_one_frame, told_in_frames
from verifier.systems.exploration import Reached
from verifier.systems.observation import Frames
from verifier.systems.scene import BYTES_PER_STATE, BYTES_PER_TRANSITION, MOST_STATES, Scene
from verifier.systems.settings import InitialContext

MOST_BRANCHES = 4096
REPORTED_AS = " reported as "
CONTEXT_OF = "context of "
"""Before the name of a draw, for the number of its context."""
_BLOCK = 2**20
"""Branches that are followed at a time."""


@dataclass(frozen=True, eq=False)
class Remembering:
    """States with contexts, as `verifier.systems.skeleton` goes on with them.

    Attributes:
        state: (n,) the state without contexts that each is.
        contexts: (n, draws) the context of each draw.
        starts: (m,) the initial states.
        following: (n, branches * outcomes) where each branch with each outcome of what the world draws leads.
        channel: with branches for observations.
        row: (n,) channel row.
        names: of the draws.
        forgets: whether what is remembered may begin again although something is still drawn.
        under_way: name -> (n,) how far the step has come, where it has several frames.
        weights: how frequent each initial state is among those of one state, as fractions; None where each counts.
    """

    state: Ints
    contexts: Ints
    starts: Ints
    following: Ints
    channel: Channel
    row: Ints
    names: tuple[str, ...]
    forgets: bool
    under_way: Mapping[str, Ints]
    weights: tuple[Fraction, ...] | None = None

    @property
    def valuations(self) -> dict[str, Ints]:
        """Number of the context of each draw that remembers anything, and how far the step has come, by names."""
        held = zip(self.names, self.contexts.T, strict=True)
        return {**{CONTEXT_OF + name: np.ascontiguousarray(column) for name, column in held}, **self.under_way}


def remembering(
    matrices: ConfusionMatrices, reached: Reached, channel: Channel, row: Ints, ended: Mask, scene: Scene
) -> Remembering:
    """The states that can be reached, with what is remembered in them.

    Args:
        matrices: divided by context.
        reached: the states without contexts.
        channel: that of the matrices whatever the context.
        row: (k,) its row for each state.
        ended: (k,) the states in which nothing is drawn.
        scene: for the initial contexts, the limits and the file of the model.

    Raises:
        LimitError: more than `MOST_BRANCHES` branches.
        NoAnswerError: more states or memory than allowed.
    """
    memory = matrices.memory
    assert memory is not None
    contexts, count = memory.contexts, scene.system.model.frames
    read = Frames.of(scene.planner, count)
    channel = of_one_frame(channel, read.count)
    branches = _Branches.of(channel, memory.followed)
    width = len(branches.observation) * channel.outcome_count
    limits = scene.options.limits
    most = min(limits.states, MOST_STATES, limits.memory_bytes // (BYTES_PER_STATE + BYTES_PER_TRANSITION * width))
    place = Place(scene.system.model.file)
    told = told_in_frames(channel, branches.observation, read, count)
    walk = _Walk(contexts, branches, reached.following, row, ended, most, place, *told)
    nodes, first = walk.explored(reached.starts, scene.options.initial_context)
    state, held = walk.parts(nodes)
    after = np.searchsorted(nodes, walk.after(nodes).ravel()).reshape(len(nodes), -1)
    pairs = np.concatenate([np.where(ended[state], 0, row[state])[:, None], held], axis=1)
    number, sample = numbered_rows(pairs.T, len(pairs))
    lifted = branches.channel.at(pairs[sample, 0])
    lifted = replace(lifted, bins=lifted.bins * contexts.count + held[sample])
    begun = np.searchsorted(nodes, first)
    weights = None
    if scene.options.initial_context == "counted":
        weights = tuple(Fraction(1) if ended[state[at]] else _share(matrices, lifted, number[at]) for at in begun)
    forgets = walk.forgets(nodes)
    return Remembering(
        state, held, begun, after, lifted, number, branches.names, forgets, walk.way_of(nodes), weights
    )


def _share(matrices: ConfusionMatrices, channel: Channel, row: np.int64) -> Fraction:
    """How frequent the contexts of a channel row are, as counted in its bins; InputError where none was counted."""
    memory, fraction = matrices.memory, Fraction(1)
    assert memory is not None
    for at, column in zip(channel.bins[row].tolist(), channel.columns[row].tolist(), strict=True):
        if column >= 0 and memory.followed[column]:
            low = at - at % memory.contexts.count
            items = matrices.counts[low : low + memory.contexts.count, :, column].sum(axis=1)
            if not items.any():
                label, where = label_text(matrices.labels[column]), matrices.whole.bin_text(low // len(items))
                raise InputError(f"--initial-context counted: no item of true label {label} in {where} is on a track")
            fraction *= Fraction(int(items[at - low]), int(items.sum()))
    return fraction


@dataclass(frozen=True, eq=False)
class _Branches:
    """A channel whose observations tell apart as what each draw was reported.

    Attributes:
        channel: the rows of the one without contexts, with branches for observations.
        observation: (branches,) the observation of each.
        right: (rows, draws, branches) whether the draw was right, if it remembers.
        possible: (rows, branches) whether some matrix can make it.
        who: (rows, draws) what each draw is of; 0 where it is of nothing that remembers.
        names: of the draws.
    """

    channel: Channel
    observation: Ints
    right: Mask
    possible: Mask
    who: Ints
    names: tuple[str, ...]

    @classmethod
    def of(cls, plain: Channel, remembers: Mask) -> _Branches:
        """Those of a channel; LimitError where they are too many."""
        draws = plain.columns.shape[1]
        remembering = (plain.columns >= 0) & remembers[plain.columns]
        assert plain.who is not None
        who = np.where(remembering, plain.who + 1, 0)
        tags = np.zeros((draws, len(plain.labels)), dtype=np.int64)
        reports: dict[tuple[int, int, int], int] = {}
        told = np.zeros_like(plain.told_as)
        for draw in range(draws):
            own = set(plain.columns[remembering[:, draw], draw].tolist())
            groups: dict[tuple[object, ...], int] = {}
            for label in range(len(plain.labels)):
                told_as = plain.told_as[..., draw, label]
                if own:
                    key = (told_as.tobytes(), label if label in own else None)
                    tags[draw, label] = groups.setdefault(key, len(groups) + 1)
                for report in np.unique(told_as).tolist():
                    number = reports.setdefault((draw, int(tags[draw, label]), report), len(reports))
                    told[..., draw, label][told_as == report] = number
        branches = _after_reports(plain, reports, draws)
        then = np.empty((len(branches), len(reports)), dtype=np.int64)
        for (old, kept), at in branches.items():
            for (draw, tag, report), number in reports.items():
                after = int(plain.then[old, report])
                then[at, number] = branches.get((after, (*kept[:draw], tag, *kept[draw + 1 :])), -1)
        observation = np.array([old for old, _ in branches], dtype=np.int64)
        tagged = np.array([kept for _, kept in branches], dtype=np.int64).reshape(len(branches), draws)
        expected = np.take_along_axis(tags.T, plain.columns, axis=0)
        right = expected[:, :, None] == tagged.T[None]
        names = _names(plain)
        texts = tuple(plain.observations[old] | _told_facts(plain, names, tags, kept) for old, kept in branches)
        channel = replace(plain.telling(told), observations=texts, then=then)
        return cls(channel, observation, right, channel.possible, who, names)


def _after_reports(
    plain: Channel, reports: Mapping[tuple[int, int, int], int], draws: int
) -> dict[tuple[int, tuple[int, ...]], int]:
    """Every branch and its number: an observation, and for each draw its group of labels, 0 before it is drawn."""
    branches: dict[tuple[int, tuple[int, ...]], int] = {(0, (0,) * draws): 0}
    for draw in range(draws):
        for old, kept in list(branches):
            for at, tag, report in reports:
                after = int(plain.then[old, report])
                if at == draw and after >= 0:
                    branches.setdefault((after, (*kept[:draw], tag, *kept[draw + 1 :])), len(branches))
        if len(branches) > MOST_BRANCHES:
            raise LimitError(
                f"with memory a step has more than {MOST_BRANCHES} branches: combinations of what is reported of "
                f"{draws} objects and places",
                hint="place fewer objects, or ignore false positives; --memory none has fewer",
            )
    return branches


def _names(channel: Channel) -> tuple[str, ...]:
    """A name for each draw, all different."""
    names: list[str] = []
    for draw, name in enumerate(channel.names):
        columns = channel.columns[:, draw]
        labels = {label_text(channel.labels[column]) for column in columns[columns >= 0].tolist()}
        text = name or (labels.pop() if len(labels) == 1 else "object")
        text = "place" if text == "empty" else text
        numbered = (text if k == 1 else f"{text} {k}" for k in itertools.count(1))
        names.append(next(name for name in numbered if name not in names))
    return tuple(names)


def _told_facts(channel: Channel, names: Sequence[str], tags: Ints, kept: Sequence[int]) -> Label:
    """What each draw was reported as, as facts."""
    facts = set()
    for draw, tag in enumerate(kept):
        if tag:
            labels = [label_text(channel.labels[label]) for label in np.flatnonzero(tags[draw] == tag)]
            facts.add(f"{names[draw]}{REPORTED_AS}{' or '.join(labels)}")
    return frozenset(facts)


def told_to_planner(observation: Label) -> Label:
    """What of an observation the planner is told, without as what each draw was reported."""
    return frozenset(fact for fact in observation if REPORTED_AS not in fact)


@dataclass(frozen=True, eq=False)
class _Walk:
    """Goes from state to state; a node is a state, the contexts of all draws, a frame of the step and what was told
    in those before, in one number.

    `told` and `both` are as `told_in_frames` gives them.
    """

    contexts: Contexts
    branches: _Branches
    following: Ints
    row: Ints
    ended: Mask
    most: int
    place: Place
    told: Ints
    both: Ints

    def __post_init__(self) -> None:
        if len(self.ended) * float(self.contexts.count) ** self.draws * self.within >= 2**62:
            raise self._too_many("more than 2^62")

    @property
    def within(self) -> int:
        """In how many ways a step may be under way."""
        return max(len(self.told) * len(self.both), 1)

    def under_way(self, nodes: Ints) -> tuple[Ints, Ints]:
        """(n,) the frame of each node, and (n, branches) what is told up to that frame."""
        if not len(self.both):
            return np.zeros(len(nodes), dtype=np.int64), np.broadcast_to(self.told, (len(nodes), self.told.shape[1]))
        frame, before = np.divmod(nodes % self.within, len(self.both))
        return frame, self.both[before[:, None], self.told[frame]]

    def way_of(self, nodes: Ints) -> dict[str, Ints]:
        """How far the step of each node has come, by names; none where a step has one frame."""
        if not len(self.both):
            return {}
        return dict(zip((FRAME, TOLD_BEFORE), np.divmod(nodes % self.within, len(self.both)), strict=True))

    @property
    def draws(self) -> int:
        """How many contexts a state has."""
        return int(self.branches.who.shape[1])

    def _too_many(self, how_many: str) -> NoAnswerError:
        """Why there is no chain."""
        size = f"{len(self.ended)} states x {self.contexts.count} contexts of each of {self.draws} objects and places"
        return NoAnswerError(
            f"with memory {self.contexts} there are {how_many} states ({size}); the limit is {self.most}",
            self.place,
            hint="a shorter --memory, or raise --max-states and --max-memory",
        )

    def parts(self, nodes: Ints) -> tuple[Ints, Ints]:
        """(n,) states and (n, draws) contexts."""
        held, rest = np.empty((len(nodes), self.draws), dtype=np.int64), nodes // self.within
        for draw in reversed(range(self.draws)):
            rest, held[:, draw] = np.divmod(rest, self.contexts.count)
        return rest, held

    def nodes(self, state: Ints, held: Sequence[Ints]) -> Ints:
        """The number of each node at the beginning of a step."""
        numbers = state
        for context in held:
            numbers = numbers * self.contexts.count + context
        return numbers * self.within

    def who(self, state: Ints, draw: int) -> Ints:
        """What a draw is of in each state; 0 for nothing that remembers."""
        return np.where(self.ended[state], 0, self.branches.who[self.row[state], draw])

    def after(self, nodes: Ints) -> Ints:
        """(n, branches * outcomes) the next nodes."""
        state, held = self.parts(nodes)
        outcomes = self.branches.channel.outcome_count
        frame, told = self.under_way(nodes)
        last = (frame == len(self.told) - 1)[:, None, None]
        led = self._led(state, told, outcomes)
        led = np.where(last, led, state[:, None, None])
        row = np.where(self.ended[state], 0, self.row[state])
        contexts = []
        for draw in range(self.draws):
            right = self.branches.right[row, draw].astype(np.int64)
            context = self.contexts.update[held[:, draw, None], np.where(right, RIGHT, WRONG)][:, :, None]
            now, then = self.who(state, draw)[:, None, None], self.who(led, draw)
            contexts.append(np.where((then == now) & (then > 0), context, self.contexts.start))
        under_way = (frame + 1)[:, None] * len(self.both) + told
        reached = self.nodes(led, contexts) + np.where(last, 0, under_way[:, :, None])
        # What cannot be reported leads as the first that can.
        can = self.branches.possible[row]
        reached = np.where(can[:, :, None], reached, reached[np.arange(len(nodes)), can.argmax(axis=1)][:, None])
        reached[self.ended[state]] = nodes[self.ended[state], None, None]
        return reached.reshape(len(nodes), -1)

    def _led(self, state: Ints, told: Ints, outcomes: int) -> Ints:
        """(n, branches, outcomes) the states after what is told in a whole step."""
        every = self.following.reshape(len(self.following), -1, outcomes)
        return every[state[:, None], told]

    def forgets(self, nodes: Ints) -> bool:
        """Whether a draw of some node is of something else in a state that can follow."""
        frame, told = self.under_way(nodes)
        state = self.parts(nodes)[0]
        going = ~self.ended[state] & (frame == len(self.told) - 1)
        _, at = np.unique(state[going] * self.within + nodes[going] % self.within, return_index=True)
        state, told = state[going][at], told[going][at]
        led = self._led(state, told, self.branches.channel.outcome_count)
        can = self.branches.possible[self.row[state]][:, :, None]
        pairs = ((self.who(state, draw)[:, None, None], self.who(led, draw)) for draw in range(self.draws))
        return any(bool((can & (now > 0) & (then > 0) & (now != then)).any()) for now, then in pairs)

    def begun(self, starts: Ints, initial: InitialContext) -> Ints:
        """The nodes of the initial states; several for each where nothing is known."""
        named = {"start": [], "right": [RIGHT] * self.contexts.cap, "wrong": [WRONG] * self.contexts.cap}
        every = range(self.contexts.count)
        chosen = every if initial in ("worst", "counted") else [self.contexts.after(named[initial])]
        starting: list[int] = []
        for state in starts.tolist():
            who = [int(self.who(np.array([state]), draw)[0]) for draw in range(self.draws)]
            choices = [chosen if number else [self.contexts.start] for number in who]
            if len(starting) + math.prod(map(len, choices)) > self.most:
                raise self._too_many(f"more than {self.most}")
            for held in itertools.product(*choices):
                starting.append(int(self.nodes(np.array(state), [np.array(number) for number in held])))
        return np.array(starting, dtype=np.int64)

    def explored(self, starts: Ints, initial: InitialContext) -> tuple[Ints, Ints]:
        """All nodes that are reached, increasing, and those of the initial states."""
        first = self.begun(starts, initial)
        known = fresh = np.unique(first)
        while len(fresh):
            if len(known) > self.most:
                raise self._too_many(f"more than {self.most}")
            size = max(_BLOCK // len(self.branches.observation), 1)
            blocks = (fresh[low : low + size] for low in range(0, len(fresh), size))
            led = np.unique(np.concatenate([np.unique(self.after(block)) for block in blocks]))
            fresh = np.setdiff1d(led, known, assume_unique=True)
            known = np.union1d(known, fresh)
        return known, first
