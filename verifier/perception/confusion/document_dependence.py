"""The key `dependence` of a confusion document: whether misses follow misses (see `dependence`)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from verifier.base.arrays import grouped
from verifier.base.documents import Count, Derives, Limits, Magnitude, MisfitError, Share, derived, read_document
from verifier.base.errors import shown
from verifier.perception.confusion.bins import Fail

COMBINED = "Fisher's method over the files that were merged"
"""Which test `p_value` belongs to where counts of several files were added."""
IN_PARTS = "Fisher's method over the parts that were counted"
"""The same of one count in parts, each of which is tested alone: counted at once, all are permuted together."""


def _check_share(test: "BinTest | DependenceTest") -> None:
    if (test.expected_miss_after_miss is None) != (test.after_miss == 0):
        expected = "a share from 0 to 1" if test.after_miss else "null"
        raise MisfitError(
            ["expected_miss_after_miss"], f"expected {expected}, got {shown(test.expected_miss_after_miss)}"
        )


def _check_most(test: "BinTest | DependenceTest", **most: float) -> None:
    for name, limit in most.items():
        if getattr(test, name) > limit:
            said = f"expected at most {limit}, from the numbers beside it, got {getattr(test, name)}"
            raise MisfitError([name], said)


@dataclass(frozen=True, kw_only=True)
class BinTest:
    """How the misses of one class follow each other within one distance bin.

    Attributes:
        bin: number of the bin, from 0.
        pairs, after_miss, joint_misses: as in `DependenceTest`, of the pairs with both frames in the bin; all 0 where
            only pairs across its ends reach it.
        expected_miss_after_miss: as in `DependenceTest`.
        p_value: of the test by these pairs; 1 without one.
    """

    bin: Count
    pairs: Count
    after_miss: Count
    joint_misses: Count
    expected_miss_after_miss: Share | None
    p_value: Share

    def __post_init__(self) -> None:
        _check_most(self, after_miss=self.pairs, joint_misses=self.after_miss)
        _check_share(self)

    @property
    def miss_after_miss(self) -> float | None:
        """Chance of a miss after a miss; None where there was none to follow."""
        return _chance(self)


def _chance(test: "BinTest | DependenceTest") -> float | None:
    return test.joint_misses / test.after_miss if test.after_miss else None


@dataclass(frozen=True, kw_only=True)
class DependenceTest(Derives):
    """How the misses of one class follow each other along tracks.

    Attributes:
        label: name of the class.
        objects: annotated objects of it that lie on a track and in a bin; one per frame.
        misses: those not reported as what they are.
        pairs: pairs of successive frames of a track.
        after_miss: pairs with a miss in the first frame; joint_misses: those with a miss in both.
        expected_joint_misses: their mean when outcomes are permuted among the objects of one bin and class.
        miss_after_miss: joint_misses / after_miss; None where there was none to follow.
        expected_miss_after_miss: mean, over the pairs with a miss in the first frame, of the share of misses in the
            bin and class of the second: what the matrices say of that frame. None without such a pair.
        mean_run: mean length of runs of misses, for every miss that no miss precedes begins one; None without a miss.
        expected_mean_run: the same if reports had no memory: misses by the mean number of runs over all permutations.
        p_value: chance of so many joint misses or more if reports had no memory; see `dependence`.
        permutations: how many were drawn; of merged files, all together.
        bins: the test of each distance bin that a frame of a pair lies in. Version 2; empty where bins are not known.
    """

    label: str
    objects: Count
    misses: Count
    pairs: Count
    after_miss: Count
    joint_misses: Count
    expected_joint_misses: Magnitude
    miss_after_miss: Share | None = derived(_chance)
    expected_miss_after_miss: Share | None
    mean_run: Magnitude | None = derived(lambda test: test.run_by(test.joint_misses))
    expected_mean_run: Magnitude | None = derived(lambda test: test.run_by(test.expected_joint_misses))
    p_value: Share
    permutations: Count
    bins: Annotated[tuple[BinTest, ...], Limits(min_length=1)] = ()

    def __post_init__(self) -> None:
        # Every run of misses begins with a miss that none precedes.
        following = max(self.misses - 1, 0)
        _check_most(
            self,
            after_miss=min(self.pairs, self.misses),
            joint_misses=min(self.after_miss, following),
            expected_joint_misses=following,
            pairs=self.objects,
        )
        _check_share(self)
        super().__post_init__()
        for number, (test, before) in enumerate(zip(self.bins[1:], self.bins, strict=False), 1):
            if test.bin <= before.bin:
                raise MisfitError(["bins", number, "bin"], f"expected a bin after {before.bin}, got {test.bin}")
        for name in ("pairs", "after_miss", "joint_misses"):
            total = sum(getattr(test, name) for test in self.bins)
            if total > getattr(self, name):
                said = f"expected {name} of at most {getattr(self, name)} in all bins, as of the class, got {total}"
                raise MisfitError(["bins"], said)

    def run_by(self, joint: float) -> float | None:
        """Mean length of runs of misses of which so many follow another; None without a miss."""
        return self.misses / (self.misses - joint) if self.misses else None


@dataclass(frozen=True, kw_only=True)
class Dependence:
    """Whether successive frames depend on each other.

    Attributes:
        seed: of the permutations; None where merged files had different ones.
        combined: of merged files, whose counts add and whose p-values are combined. Version 2.
        classes: each once.
    """

    seed: Count | None
    combined: Annotated[str, Limits(pattern=f"^({COMBINED}|{IN_PARTS})$")] | None = None
    classes: tuple[DependenceTest, ...]

    def __post_init__(self) -> None:
        if self.seed is None and self.combined is None:
            raise MisfitError(["seed"], "expected an integer from 0, got null")
        labels = [test.label for test in self.classes]
        for number, label in enumerate(labels):
            if label in labels[:number]:  # one test would hide the other
                raise MisfitError(["classes", number, "label"], f"the class {shown(label)} has a test already")


Told = Dependence | tuple[Dependence, ...]
"""What a document says: of a family one for each score threshold."""


def read_dependence(given: Any, members: int | None, file: str, fail: Fail, bins: int | None) -> Told:
    """The value of the key in a document.

    Args:
        given: as decoded.
        members: how many matrices the file holds in a family; None where it is none.
        file: what messages call it.
        fail: makes the complaint from a JSON pointer and a text.
        bins: how many distance bins the file has; None for the first version of the document, which has neither the
            test of a bin nor one that `combined_dependence` made.

    Raises:
        InputError: it is none.
    """
    if members is None:
        return _read("/dependence", given, file, fail, bins)
    if not isinstance(given, list) or len(given) != members:
        raise fail("/dependence", f"expected a list of {members} tests, one per score threshold, got {shown(given)}")
    return tuple(_read(f"/dependence/{number}", test, file, fail, bins) for number, test in enumerate(given))


def _read(path: str, given: Any, file: str, fail: Fail, bins: int | None) -> Dependence:
    read = read_document(Dependence, given, file, path)
    if bins is None and is_later(read):
        raise fail(path, "tests of bins, and combined ones, belong to version 2 of the document")
    for number, test in enumerate(read.classes):
        if test.bins and test.bins[-1].bin >= (bins or 0):
            last = f"{path}/classes/{number}/bins/{len(test.bins) - 1}/bin"
            raise fail(last, f"expected the number of one of {bins} bins, from 0, got {test.bins[-1].bin}")
    return read


def is_later(dependence: Dependence) -> bool:
    """Whether only the second version of the document can say this."""
    return dependence.combined is not None or any(test.bins for test in dependence.classes)


def combined_dependence(parts: Sequence[Told], how: str = COMBINED) -> Told:
    """The tests of several files, which hold different frames, as one: counts add, chances come by Fisher's method.

    If no file's reports have a memory then, of k files, -2 sum log p has at most the tails of the chi-squared law
    with 2 k degrees of freedom (Fisher, Statistical Methods for Research Workers, 4th ed. 1932, section 21.1), for
    reports in different files are independent then, and each p-value is valid. This needs different drives, or at
    least different frames, in different files; `merge` refuses a sequence that is in two of them unless told so. A
    class takes part with the files that test it, and each of its bins, where all these files test bins, with those
    that have a pair in it.

    Args:
        parts: at least one; of families, all over the same score thresholds.
        how: what the document calls it, `COMBINED` or `IN_PARTS`.
    """
    families = [part for part in parts if isinstance(part, tuple)]
    if families:
        return tuple(_combined_member(members, how) for members in zip(*families, strict=True))
    return _combined_member([part for part in parts if isinstance(part, Dependence)], how)


def _combined_member(parts: Sequence[Dependence], how: str) -> Dependence:
    if len(parts) == 1:
        return parts[0]
    tests = grouped((test.label, test) for part in parts for test in part.classes)
    seeds = {part.seed for part in parts}
    seed = seeds.pop() if len(seeds) == 1 else None
    return Dependence(seed=seed, combined=how, classes=tuple(map(_combined_class, tests.values())))


def _combined_class(parts: Sequence[DependenceTest]) -> DependenceTest:
    tested = parts if all(part.bins for part in parts) else ()
    by_bin = grouped((test.bin, test) for part in tested for test in part.bins)
    return DependenceTest(
        label=parts[0].label,
        objects=sum(part.objects for part in parts),
        misses=sum(part.misses for part in parts),
        **_sums(parts),
        expected_joint_misses=sum(part.expected_joint_misses for part in parts),
        p_value=fisher([part.p_value for part in parts]),
        permutations=sum(part.permutations for part in parts),
        bins=tuple(together(by_bin[number]) for number in sorted(by_bin)),
    )


def together(tests: Sequence[BinTest]) -> BinTest:
    """The tests of one bin in several files, or of several bins, as one of the first bin: of those with a pair."""
    tested = [test.p_value for test in tests if test.pairs]
    return BinTest(bin=tests[0].bin, **_sums(tests), p_value=fisher(tested) if tested else 1.0)


def _sums(tests: Iterable[BinTest | DependenceTest]) -> dict[str, Any]:
    """Counts of pairs of several tests, of different frames, and the share that follows from them."""
    tests = list(tests)
    after_miss = sum(test.after_miss for test in tests)
    expected = sum(test.after_miss * (test.expected_miss_after_miss or 0.0) for test in tests)
    return {
        "pairs": sum(test.pairs for test in tests),
        "after_miss": after_miss,
        "joint_misses": sum(test.joint_misses for test in tests),
        "expected_miss_after_miss": expected / after_miss if after_miss else None,
    }


def fisher(p_values: Sequence[float]) -> float:
    """The p-value of tests that are independent if reports have no memory, by Fisher's method; of one, its own."""
    from scipy.special import gammaincc

    if len(p_values) == 1:
        return p_values[0]
    surprises = (-math.log(p_value) if p_value else math.inf for p_value in p_values)  # 0 where it was rounded to 0
    return float(gammaincc(len(p_values), sum(surprises)))
