"""What the data's own test of dependence says about the memoryless channel of a chain.

Chains are concerned by the columns that they draw from: classes, and the distance bins of each. A class is tested
where the confusion document has pairs of successive frames of one track for it (`perception.confusion.dependence`).
Where the document has the test of each bin, only bins that some chain of a run draws count, the same for all its
chains: their p-values by Fisher's method, over those with a pair, and no test where none has one. Pairs across the
ends of bins count only where all bins of the class's pairs are drawn: then the test of the whole class, which has
them, is used. Which of the two is used follows from the bins alone, never from a p-value. Where a document has the
test of the class only, that one is used. A bin in which nothing was missed is tested, with p = 1: it shows no memory.

False positives, column `empty`, belong to no track: they are never tested, and concern a chain unless the column is
held by convention.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from verifier.analysis.intervals.measured import Measured
from verifier.base.documents import ALWAYS, Count, Derives, Share, derived
from verifier.checking.verdicts import ChannelTest, Test, Verdict, VerdictRule, decide
from verifier.perception.confusion.dependence import CONTRADICTED_BELOW, classes_tested
from verifier.perception.confusion.document_dependence import added, fisher
from verifier.perception.confusion.matrices import EMPTY, label_text
from verifier.systems.skeleton import Skeleton


@dataclass(frozen=True, kw_only=True)
class Untested:
    """A class that the data do not test.

    Attributes:
        label: the class, or "empty" for false positives.
        bins: numbers of the distance bins that some chain of the run draws for it, where the document has the test of
            each bin; None: the test is that of the class in all bins.
    """

    label: str
    test: Literal["untested"] = field(default="untested", metadata=ALWAYS)
    bins: tuple[Count, ...] | None = None


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
    test: Literal["contradicted", "not_contradicted"]
    bins: tuple[Count, ...] | None = None
    p_value: Share
    after_miss: Count
    joint_misses: Count
    miss_after_miss: float | None
    expected_miss_after_miss: float | None


ClassTest: TypeAlias = CountedTest | Untested


@dataclass(frozen=True, kw_only=True)
class Channel(Derives):
    """The test of the memoryless channel, for all classes that the chains of a run draw."""

    test: Test = derived(lambda channel: channel_test(channel.classes).test)
    classes: tuple[ClassTest, ...]


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
    found: dict[str, set[int]] = {}
    for drawn in chains:
        for name, bins in drawn.items():
            found.setdefault(name, set()).update(bins)
    return {name: sorted(found[name]) for name in sorted(found)}


def class_tests(metadata: Mapping[str, Any], drawn: Drawn) -> tuple[ClassTest, ...]:
    """The test of each class, in the order given.

    Args:
        metadata: of a confusion document, its `dependence` checked when it was read.
        drawn: classes and bins; those that no chain draws need not be there.
    """
    known = {test["label"]: test for test in classes_tested(metadata)}
    return tuple(_class_test(name, bins, known.get(name)) for name, bins in drawn.items())


def _class_test(name: str, bins: Sequence[int], counted: Mapping[str, Any] | None) -> ClassTest:
    told = None
    if counted is not None and "bins" in counted:
        told = tuple(bins)
        if not {each["bin"] for each in counted["bins"]} <= set(bins):
            counted = _over_bins([each for each in counted["bins"] if each["bin"] in bins and each["pairs"]])
    if counted is None or not counted["pairs"]:
        return Untested(label=name, bins=told)
    test: Any = "contradicted" if counted["p_value"] < CONTRADICTED_BELOW else "not_contradicted"
    return CountedTest(label=name, test=test, bins=told, **{key: counted[key] for key in _NUMBERS})


def _over_bins(tests: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The tests of some bins as one, their pairs being permuted independently; None for none."""
    return {**added(tests), "p_value": fisher([each["p_value"] for each in tests])} if tests else None


def channel_test(tests: Sequence[ClassTest], classes: Iterable[str] | None = None) -> ChannelTest:
    """What the tests of single classes say about the channel of a chain that draws `classes`; of all if None.

    A class without an entry is untested.
    """
    known = {test.label: test for test in tests}
    drawn = [known.get(name, Untested(label=name)) for name in (known if classes is None else classes)]
    against = [test for test in drawn if isinstance(test, CountedTest) and test.test == "contradicted"]
    if against:
        worst = min(against, key=lambda test: test.p_value)
        return ChannelTest("contradicted", worst.label, worst.p_value)
    return ChannelTest("untested" if any(isinstance(test, Untested) for test in drawn) else "not_contradicted")


def channel_condition(channel: ChannelTest) -> str | None:
    """What the numbers of the memoryless chain assume, `if the detector is memoryless (...)`; None where it is tested
    and not contradicted."""
    rule = VerdictRule(assume_memoryless=channel.test == "contradicted")
    return decide(Verdict.SATISFIED, Verdict.INCONCLUSIVE, channel, rule=rule).condition


def contradicted_text(label: str, p_value: float) -> str:
    """That the test of a class contradicts the memoryless detector."""
    return f"the data contradict a memoryless detector ({label}, p = {p_value:.2g})"
