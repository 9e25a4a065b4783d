"""What the data's own test of dependence says about the memoryless channel of a chain.

Chains are concerned by the columns that they draw from: classes, and the distance bins of each. A class is tested
where the confusion document has pairs of successive frames of one track for it (`perception.confusion.dependence`).
Where the document has the test of each bin, only bins that some chain of a run draws count, the same for all its
chains: their p-values by Fisher's method, over those with a pair, and no test where none has one. Pairs across the
ends of bins count only where all bins of the class's pairs are drawn: then the test of the whole class, which has
them, is used. Which of the two is used follows from the bins alone, never from a p-value. Where a document has the
test of the class only, that one is used. A bin in which nothing was missed adds p = 1 to those of others; where no
bin has a miss that a frame follows, nothing is tested.

A channel with memory is tested for what its contexts do not say: by the residual test of each class, and by the
e-value of a richer context function, where the document has them for the contexts that are used
(`perception.confusion.contexts.ResidualTest`, `perception.confusion.context_selection`). Both are of all bins. So are
replays on real tracks that the document has (`verify confusion replay --into`).

False positives, column `empty`, belong to no track: they are never tested, and concern a chain unless the column is
held by convention.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from verifier.base.documents import ALWAYS, Count, Derives, Magnitude, Share, derived
from verifier.base.numbers import fixed, p_value_text, significant
from verifier.checking.verdicts import PERSISTENT, ChannelTest, Test, Verdict, VerdictRule, decide
from verifier.perception.confusion.contexts import ReplayTest
from verifier.perception.confusion.dependence import CONTRADICTED_BELOW
from verifier.perception.confusion.document_dependence import BinTest, Dependence, DependenceTest, together
from verifier.perception.confusion.document_types import UsedContexts
from verifier.perception.confusion.matrices import EMPTY, label_text

if TYPE_CHECKING:  # commands that count have no chains
    from verifier.analysis.intervals.intervals import Measured
    from verifier.systems.skeleton import Skeleton

Tested: TypeAlias = Literal["contradicted", "not_contradicted"]


@dataclass(frozen=True, kw_only=True)
class Untested:
    """A class that the data do not test.

    Attributes:
        label: the class, or "empty" for false positives.
        bins: numbers of the distance bins that some chain of the run draws for it, where the document has the test of
            each bin; None: the test is that of the class in all bins.
        contexts: what the detector remembers of it; None for nothing.
        no_misses: whether there are tracks, but no misses on them that a frame follows.
    """

    label: str
    test: Literal["untested"] = field(default="untested", metadata=ALWAYS)
    bins: tuple[Count, ...] | None = None
    contexts: str | None = None
    no_misses: bool = False


@dataclass(frozen=True, kw_only=True)
class CountedTest:
    """A class that the data test.

    Attributes:
        label, bins: as in `Untested`.
        after_miss: pairs of successive frames of a track that begin with a miss.
        joint_misses: those of them that end with one.
        miss_after_miss: their share; None without such a pair.
        expected_miss_after_miss: what the memoryless channel says.
    """

    label: str
    test: Tested
    bins: tuple[Count, ...] | None = None
    p_value: Share
    after_miss: Count
    joint_misses: Count
    miss_after_miss: float | None
    expected_miss_after_miss: float | None

    @property
    def least_p(self) -> float:
        """The p-value."""
        return self.p_value


@dataclass(frozen=True, kw_only=True)
class ReplayCheck:
    """A tracker on real tracks beside what the contexts predict, see `perception.confusion.contexts.ReplayTest`.

    Attributes:
        p_value: times the number of replays that were made, at most 1, as the least of them is told.
    """

    confirm: str
    range: str
    frames: Count
    tracks: Count
    not_confirmed: Count
    expected: Magnitude
    p_value: Share

    def __str__(self) -> str:
        return (
            f"replayed on {self.tracks} tracks in {self.range} m, {self.confirm} reports in {self.frames} frames did "
            f"not come on {self.not_confirmed}, and were to fail on {significant(self.expected)} "
            f"(p = {p_value_text(self.p_value)})"
        )


@dataclass(frozen=True, kw_only=True)
class ContextTest:
    """A class for which the data test that a detector remembers its contexts and nothing else.

    Attributes:
        label: as in `Untested`.
        contexts: what it remembers.
        p_value: of the residual test; None where that was not made.
        z: its statistic, in standard deviations; None where permuting changes nothing.
        against, log10_e: a richer context function, and the e-value in favour of it; None where there is none.
        replay: the check on real tracks that contradicts most; None where none was made.
        bins: always None: the tests are of all bins.
    """

    label: str
    test: Tested
    contexts: str
    p_value: Share | None
    z: float | None
    against: str | None
    log10_e: float | None
    replay: ReplayCheck | None = None
    bins: tuple[Count, ...] | None = None

    @property
    def least_p(self) -> float:
        """The least of the p-values, of which the inverse of the e-value is one."""
        by_e = None if self.log10_e is None else 10.0 ** -max(self.log10_e, 0)
        by_replay = None if self.replay is None else self.replay.p_value
        return min(value for value in (self.p_value, by_e, by_replay) if value is not None)


ClassTest: TypeAlias = CountedTest | Untested | ContextTest


@dataclass(frozen=True, kw_only=True)
class Channel(Derives):
    """The test of the channel, for all classes that the chains of a run draw."""

    test: Test = derived(lambda channel: channel_test(channel.classes).test)
    classes: tuple[ClassTest, ...]

    @property
    def contexts(self) -> str | None:
        """What the detector remembers; None for nothing."""
        return channel_test(self.classes).contexts


Drawn = Mapping[str, Sequence[int]]
"""Class, `empty` for false positives -> the bins whose estimated columns are drawn, both sorted."""

_NUMBERS = ("p_value", "after_miss", "joint_misses", "miss_after_miss", "expected_miss_after_miss")


def classes_drawn(skeleton: Skeleton, measured: Measured) -> Drawn:
    """The estimated columns that a chain draws from."""
    labels = skeleton.channel.labels
    return drawn_together(
        {name: [at]}
        for at, column in skeleton.columns_needed().tolist()
        if not measured.fixed[at, column]
        for name in labels[column] or {label_text(EMPTY)}
    )


def drawn_together(chains: Iterable[Drawn]) -> Drawn:
    """What several chains draw."""
    bins_of: dict[str, set[int]] = {}
    for drawn in chains:
        for name, bins in drawn.items():
            bins_of.setdefault(name, set()).update(bins)
    return {name: sorted(bins_of[name]) for name in sorted(bins_of)}


def class_tests(dependence: Dependence | None, contexts: UsedContexts | None, drawn: Drawn) -> tuple[ClassTest, ...]:
    """The test of each class, in the order given.

    Args:
        dependence: what the confusion document says of it.
        contexts: what a detector with memory remembers, and the tests of that; None for one without.
        drawn: classes and bins; those that no chain draws need not be there.
    """
    if contexts is not None:
        return tuple(_context_test(name, contexts) for name in drawn)
    known = {test.label: test for test in (() if dependence is None else dependence.classes)}
    return tuple(_class_test(name, bins, known.get(name)) for name, bins in drawn.items())


def _class_test(name: str, bins: Sequence[int], counted: DependenceTest | BinTest | None) -> ClassTest:
    told = None
    if isinstance(counted, DependenceTest) and counted.bins:
        told = tuple(bins)
        if not {test.bin for test in counted.bins} <= set(bins):
            own = [test for test in counted.bins if test.bin in bins]
            counted = together(own) if own else None
    if counted is None or not counted.pairs:
        return Untested(label=name, bins=told)
    if not counted.after_miss:
        return Untested(label=name, bins=told, no_misses=True)
    test: Any = "contradicted" if counted.p_value < CONTRADICTED_BELOW else "not_contradicted"
    return CountedTest(label=name, test=test, bins=told, **{key: getattr(counted, key) for key in _NUMBERS})


def _context_test(name: str, contexts: UsedContexts) -> ContextTest | Untested:
    residual = next((test for test in contexts.tests if test.label == name), None)
    compared = next((ratio for ratio in contexts.e_values if ratio.label == name), None)
    replays = [test for test in contexts.replays if test.label == name]
    tracks = (contexts.tracks or {}).get(name)
    silent = tracks is not None and not tracks.longest_wrong_run
    if silent or ((residual is None or residual.z is None) and compared is None and not replays):
        return Untested(label=name, contexts=contexts.used, no_misses=silent)
    said = ContextTest(
        label=name,
        test="not_contradicted",
        contexts=contexts.used,
        p_value=None if residual is None else residual.p_value,
        z=None if residual is None else residual.z,
        against=None if compared is None else compared.against,
        log10_e=None if compared is None else compared.log10_e,
        replay=_replay_check(replays),
    )
    return replace(said, test="contradicted") if said.least_p < CONTRADICTED_BELOW else said


def _replay_check(replays: Sequence[ReplayTest]) -> ReplayCheck | None:
    """The one that contradicts most, of as many as were made."""
    if not replays:
        return None
    worst = min(replays, key=lambda test: test.p_value)
    told = {key: value for key, value in vars(worst).items() if key not in ("label", "contexts")}
    return ReplayCheck(**told | {"p_value": min(1.0, worst.p_value * len(replays))})


def channel_test(tests: Sequence[ClassTest], classes: Iterable[str] | None = None) -> ChannelTest:
    """What the tests of single classes say about the channel of a chain that draws `classes`; of all if None.

    A class without an entry is untested.
    """
    known = {test.label: test for test in tests}
    drawn = [known.get(name, Untested(label=name)) for name in (known if classes is None else classes)]
    contexts = next((test.contexts for test in tests if not isinstance(test, CountedTest)), None)
    tested = [test for test in drawn if not isinstance(test, Untested)]
    against = [(test.least_p, test.label) for test in tested if test.test == "contradicted"]
    if against:
        p_value, label = min(against)
        return ChannelTest("contradicted", label, p_value, contexts)
    return ChannelTest("untested" if len(tested) < len(drawn) else "not_contradicted", contexts=contexts)


def channel_condition(channel: ChannelTest) -> str | None:
    """What the numbers of the memoryless chain assume, `if the detector is memoryless (...)`; None where it is tested
    and not contradicted."""
    assumed = channel.test == "contradicted"
    rule = VerdictRule(assume_memoryless=assumed, assume_contexts=assumed)
    return decide(Verdict.SATISFIED, Verdict.INCONCLUSIVE, channel, rule=rule).condition


def contradicted_text(label: str, p_value: float, contexts: str | None = None) -> str:
    """That the test of a class contradicts the detector."""
    return f"the data contradict {detector_text(contexts)} ({label}, p = {p_value_text(p_value)})"


def dependence_remark(tests: Iterable[DependenceTest | CountedTest]) -> str | None:
    """A warning when tests of classes contradict the channel without memory; None when none does."""
    parts = [
        f"after a missed {test.label} the next frame misses it with probability "
        f"{fixed(test.miss_after_miss or 0, 2)}, not {fixed(test.expected_miss_after_miss or 0, 2)} "
        f"({test.joint_misses} of {test.after_miss} frame pairs, p = {p_value_text(test.p_value)})"
        for test in tests
        if test.p_value < CONTRADICTED_BELOW and test.after_miss
    ]
    if not parts:
        return None
    rejected = f"warning: memoryless assumption rejected: {'; '.join(parts)}"
    return f"{rejected}. P and bounds may be wrong in either direction."


def memory_remark(test: ClassTest) -> str | None:
    """A warning where the test of a class contradicts a detector with memory; None where it does not."""
    if not isinstance(test, ContextTest) or test.test != "contradicted":
        return None
    z = "" if test.z is None else f", {fixed(test.z, 1)} standard deviations"
    residual = [] if test.p_value is None else [f"residual test p = {p_value_text(test.p_value)}{z}"]
    by_e = [] if test.log10_e is None else [f"e-value 10^{significant(test.log10_e)} for {test.against}"]
    by_e += [] if test.replay is None else [str(test.replay)]
    return (
        f"warning: errors of {test.label} depend on more of the past than {test.contexts}: "
        f"{', '.join([*residual, *by_e])}. P and bounds may be wrong in either direction."
    )


def detector_text(contexts: str | None) -> str:
    """The model of a detector, for people."""
    if contexts is not None and contexts.startswith(PERSISTENT):
        return f"a detector whose errors last {contexts.removeprefix(PERSISTENT)} frames at most"
    return "a memoryless detector" if contexts is None else f"a detector that remembers {contexts} and nothing else"
