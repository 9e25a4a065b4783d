"""What a verdict of a document rests on, in words: its condition, why it is open or vacuous, what its bounds assume.

Whoever shows a verdict asks here, so that every format says the same of it.

Numbers and names of documents as a person reads them. Nothing is rounded towards a better verdict.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from verifier.analysis.channel_test import Channel, ContextTest, Untested, contradicted_text, detector_text
from verifier.analysis.intervals.tiers import BoundsBasis
from verifier.analysis.planning import EvidencePlan
from verifier.analysis.tipping import TippingPoints
from verifier.base import checksums
from verifier.base.numbers import decimal_text, error_text, fixed, p_value_text, significant
from verifier.base.words import bounds_text, counted
from verifier.checking.verdicts import Reason, Refused, Verdict, WithinBounds, verdict_text
from verifier.perception.confusion.contexts import Contexts
from verifier.study.points import FreeBounds, Numbers, Point, WorldDecisions
from verifier.study.results import Target
from verifier.systems.contexts import CONTEXT_OF
from verifier.telling.blocks import LONGEST_NAME, name_text


class Judged(Protocol):
    """What has a verdict: a scenario, a requirement, a run, a rate."""

    @property
    def verdict(self) -> Verdict:
        """The verdict."""

    @property
    def condition(self) -> str | None:
        """What must be true for it to hold."""


def told_verdict(part: Judged) -> str:
    """The verdict with its condition: `violated, if items are independent`."""
    return verdict_text(part.verdict.value, part.condition)


def why(point: Point) -> str:
    """Why a point is not decided, or says nothing about the system; empty where its numbers alone decide."""
    return "; ".join(part for part in (reason_text(point.reason, point.probability), vacuity_text(point)) if part)


def reason_text(reason: Reason | None, probability: float | None = None) -> str:
    """Why a verdict is inconclusive although numbers decide; empty where the bounds leave it open."""
    if reason is None or isinstance(reason, WithinBounds):
        return ""
    if isinstance(reason, Refused):
        return f"--strict refuses the verdict '{verdict_text(reason.model_verdict, reason.condition)}'"
    value = "" if probability is None else f"P = {significant(probability, 9)}, "
    said = contradicted_text(reason.label, reason.p_value, reason.contexts)
    return f"{said}; the contradicted model gives {value}{reason.model_verdict}"


FREE_ASSUMES = (
    "Each report has in every step the rate of its bin and true label, however reports depend on each other"
)
"""What bounds whatever the dependence assume."""
FREE_KNOWN = (
    "bounds whatever the dependence assume nothing else, so no test of the detector's memory contradicts them"
)


def free_text(free: FreeBounds) -> str:
    """Bounds whatever the dependence, for people."""
    within = {"confidence_region": "rates within the confidence region", "rate_box": "rates within the stated box"}
    rates = within.get(free.rates, "the measured rates")
    left = max(free.undecided)
    undecided = f", probability {significant(left)} not decided within them" if left > 5e-7 else ""
    return (
        f"however reports depend on each other, P lies in {bounds_text(free.lower, free.upper)} ({rates}; "
        f"{counted(free.horizon, 'step')}{undecided})"
    )


def vacuity_text(point: Point) -> str:
    """What makes the check of a requirement say nothing in a scenario; empty where nothing does."""
    return "; ".join(part.text for part in point.vacuity)


def tipping_sentences(tipping: TippingPoints | None) -> Iterator[str]:
    """How wrong what the bounds of a requirement assume may be before its verdict falls, where that is known."""
    if tipping is not None and tipping.icc_verdict is not None:
        most = f"the ICC of items within drives is at most {tipping.largest_icc:g}"
        yield f"{tipping.icc_verdict.value} as long as {most}"
    if tipping is not None and tipping.shift_verdict is not None:
        most = f"no observation's rate shifts by more than {tipping.largest_shift:g}"
        yield f"{tipping.shift_verdict.value} as long as {most}"


def marked_verdict(point: Point) -> str:
    """As `told_verdict`; a violated scenario that is vacuous as well is marked."""
    also = " (vacuous)" if point.vacuity and point.verdict is not Verdict.VACUOUS else ""
    return told_verdict(point) + also


def bounds_told(bounds: BoundsBasis, among: int = 1) -> str:
    """What confidence bounds are and assume, and what a choice among so many detectors by their verdicts takes."""
    told = bounds.name if bounds.condition in bounds.name else f"{bounds.name}; they assume: {bounds.condition}"
    one = f", of each detector by itself: to choose one of {among} by its verdict, divide 1 - confidence by {among}"
    return told if among == 1 or bounds.box else told + one


def looks_text(bounds: BoundsBasis) -> str:
    """For which looks at growing data confidence bounds hold, and with which others, to follow `they hold`."""
    if bounds.families > 1:
        others = f"at once with those whatever the dependence (each has 1/{bounds.families} of alpha)"
        return f"{looks_text(replace(bounds, families=1))}, {others}"
    if bounds.tier in ("anytime", "rate_box"):
        return "at every look"
    if bounds.every_look:
        return "at every look between drives that are added, if drives are identically distributed"
    return "for one look at the data" if bounds.looks == 1 else f"for {bounds.looks} looks at the data"


def needed_text(plan: EvidencePlan) -> str:
    """How much more data a plan asks for: `40 more items`, `71 more drives like these`."""
    if plan.drives is not None:
        return f"{plan.drives} more {'drive' if plan.drives == 1 else 'drives'} like these"
    return f"{plan.total} more items"


def assumed_text(channel: Channel) -> str:
    """What the chains take the detector to be, before what tests say of it."""
    tests = "Test of successive frames" if channel.contexts is None else "Tests along tracks"
    return f"{detector_text(channel.contexts)}. {tests}"


def memory_text(channel: Channel) -> str:
    """What a chain takes for granted of the memory of the detector."""
    if channel.contexts is None:
        return "Detection errors are independent between time steps and between objects (memoryless detector)"
    return f"Detection errors depend on the past through {channel.contexts} of the object only"


def channel_lines(channel: Channel) -> Iterator[str]:
    """What the test of the detector says, class by class."""
    for test in channel.classes:
        if isinstance(test, Untested):
            yield f"{test.label}: not tested{' (no misses to test it by)' if test.no_misses else ''}"
            continue
        text = f"{test.label}: {test.test.replace('_', ' ')}"
        if isinstance(test, ContextTest):
            residual = []
            if test.p_value is not None:
                residual.append(f"p = {p_value_text(test.p_value)} that {test.contexts} says all")
            if test.log10_e is not None:
                residual.append(f"e-value 10^{significant(test.log10_e)} of {test.against} against it")
            yield ", ".join([text, *residual, *([] if test.replay is None else [str(test.replay)])])
            continue
        text += f", p = {p_value_text(test.p_value)}"
        if test.miss_after_miss is not None and test.expected_miss_after_miss is not None:
            text += (
                f"; after a miss the next frame misses with {fixed(test.miss_after_miss, 2)}, not "
                f"{fixed(test.expected_miss_after_miss, 2)} ({test.joint_misses} of {test.after_miss} pairs of "
                "frames)"
            )
        yield text


SHOWN_IN_FULL = frozenset({"formula", "remarks", "reason", "notes", "synthesised_from", checksums.KEY})
"""Keys of documents whose texts are sentences or formulas, which are never shortened, or are never shown."""


def long_names(value: Any) -> Iterator[str]:
    """Every text in JSON values that `name_text` would shorten and that is no sentence, also among the keys."""
    if isinstance(value, str):
        if len(value) > LONGEST_NAME:
            yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from long_names(key)
            if key not in SHOWN_IN_FULL:
                yield from long_names(inner)
    elif isinstance(value, list):
        if value and isinstance(value[0], int | float):
            return
        for inner in value:
            yield from long_names(inner)


def asked_text(target: Target) -> str:
    """The target in words: `at least 0.95`."""
    words = {">=": "at least", ">": "more than", "<=": "at most", "<": "less than"}
    return f"{words[target.comparison]} {decimal_text(target.probability)}"


def difference_text(difference: float) -> str:
    """How far two engines are apart.

    >>> difference_text(0.0), difference_text(2.5e-16)
    ('they do not differ', 'they differ by at most 2.5e-16')
    """
    return "they do not differ" if difference == 0 else f"they differ by at most {error_text(difference)}"


def chance_text(chance: float) -> str:
    """A chance with three digits; `<0.01` and `>0.99` where it is not quite 0 or 1."""
    if 0 < chance < 0.01:
        return "<0.01"
    if 0.99 < chance < 1:
        return ">0.99"
    return significant(chance)


def scenario_text(point: Numbers) -> str:
    """Environment, swept constants and initial state of a point."""
    values = {**point.constants, **point.initial}
    parts = (f"{name_text(name)}={name_text(value)}" for name, value in values.items())
    return " ".join([name_text(point.environment), *parts])


def state_text(values: Mapping[str, int], contexts: str | None = None) -> str:
    """A state of the system; of a detector that remembers contexts with the name of each."""
    names = () if contexts is None else Contexts.parsed(contexts).names
    told = {name: names[value] if name.startswith(CONTEXT_OF) else value for name, value in values.items()}
    return ", ".join(f"{name_text(name)} = {value}" for name, value in told.items())


def sentence(text: str) -> str:
    """With a capital letter in front."""
    return text[:1].upper() + text[1:]


MOST_DECIDED = 10
"""States in which it is told what the world decides; the document has more."""


def world_aim(asked: str) -> str:
    """What the world wants whose least, or greatest, value is asked for."""
    return "makes it fail" if asked.endswith("min") else "makes it hold"


def decided_lines(decisions: WorldDecisions) -> Iterator[str]:
    """What it decides, most visited states first."""
    for state in decisions.decided[:MOST_DECIDED]:
        what = ", ".join(f"{name_text(name)} = {name_text(value)}" for name, value in state.decides.items())
        times = "from then on" if math.isinf(state.visits) else f"visited {significant(state.visits)} times"
        yield f"{state_text(state.state)}: {what} ({times})"
