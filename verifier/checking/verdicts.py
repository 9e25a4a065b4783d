"""Verdicts: what an interval of probabilities says about a target, and whether the chain behind it may be used.

`verdict_of` compares numbers with a target:

| verdict        | target P >= p       | meaning                                            |
|----------------|---------------------|----------------------------------------------------|
| `SATISFIED`    | lower bound >= p    | every probability within the bounds meets the target |
| `VIOLATED`     | upper bound < p     | none does                                          |
| `INCONCLUSIVE` | p lies in between   | the bounds do not decide                           |
| `NO_ANSWER`    | (no bounds)         | the limits of time or memory were used up before; of a whole run only |
| `NO_TARGET`    | (`P = ?`)           | nothing was asked                                  |

The other comparisons follow suit. Bounds and target are compared as exact fractions.

`decide` adds what the numbers rest on. The chain takes the detector to be memoryless, or to remember its contexts and
nothing else, and the data can contradict that, so the first of these that applies decides (`Decision.basis`):

1. `any_dependence`: the verdict is the same whatever the detector predicts; nothing about its memory is assumed.
2. `memoryless` or `contexts`: the numbers decide, and the test of the channel does not contradict it. Where it could
   not be tested, that is a condition of the verdict.
3. `assumed`: as 2, where the user accepts a contradicted or untested channel by name.
4. Otherwise the verdict is inconclusive, and the reason names the test.

It is the same for `SATISFIED` as for `VIOLATED`: dependence moves probabilities either way.
A satisfied requirement whose check is empty (`vacuous`) is `VACUOUS`.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Literal, TypeAlias, cast, get_args

from verifier.base.documents import Condition, Share
from verifier.base.errors import ExitCode
from verifier.base.numbers import p_value_text
from verifier.checking.settings import Decided


class Verdict(Enum):
    """What is known about a requirement."""

    SATISFIED = "satisfied"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"
    VACUOUS = "vacuous"
    NO_ANSWER = "no answer"
    NO_TARGET = "no target"

    @property
    def exit_code(self) -> ExitCode:
        """The exit code a command ends with when this is its worst verdict."""
        return {
            Verdict.VIOLATED: ExitCode.VIOLATED,
            Verdict.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
            Verdict.VACUOUS: ExitCode.INCONCLUSIVE,
            Verdict.NO_ANSWER: ExitCode.NO_ANSWER,
        }.get(self, ExitCode.SATISFIED)


SEVERITY = (
    Verdict.NO_TARGET,
    Verdict.SATISFIED,
    Verdict.VACUOUS,
    Verdict.INCONCLUSIVE,
    Verdict.NO_ANSWER,
    Verdict.VIOLATED,
)
"""From the least to the most severe, over requirements."""

COMPARE: Mapping[str, Callable[..., bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}
"""How a target compares."""

Basis: TypeAlias = Literal["any_dependence", "contexts", "memoryless", "assumed"]
ModelVerdict: TypeAlias = Literal["satisfied", "violated", "inconclusive"]
"""What the numbers of the chain say."""
Test: TypeAlias = Literal["contradicted", "not_contradicted", "untested"]

PERSISTENT = "persist:"
"""Before the number of frames that errors may last."""
INDEPENDENT_ITEMS = "items are independent"
"""The assumption of bounds that count items; it says of successive frames that the channel is memoryless."""


@dataclass(frozen=True)
class ChannelTest:
    """What the data say about the channel of one chain.

    Attributes:
        test: "contradicted" if that of some class is; else "untested" if some class could not be tested.
        label: the class that contradicts it most clearly; None where none does.
        p_value: of the test of that class.
        contexts: what the detector remembers; None for a memoryless one.
        boxed: whether the numbers hold whatever the detector remembers, as long as its rates stay in a stated box.
    """

    test: Test
    label: str | None = None
    p_value: float | None = None
    contexts: str | None = None
    boxed: bool = False

    @property
    def assumed(self) -> bool:
        """Whether it is no model that could be tested, but says for how long errors may persist."""
        return self.contexts is not None and self.contexts.startswith(PERSISTENT)

    def __post_init__(self) -> None:
        named = self.label is not None and self.p_value is not None
        if self.test not in get_args(Test) or named != (self.test == "contradicted"):
            raise ValueError("a channel that is contradicted, and no other, names the class and its p-value")


@dataclass(frozen=True)
class VerdictRule:
    """Which assumptions a verdict may rest on.

    Attributes:
        strict: none: a verdict that would carry a condition is inconclusive.
        assume_memoryless: the memoryless channel may be assumed where the data do not test or even contradict it.
        assume_contexts: the same of a channel with memory.
    """

    strict: bool = False
    assume_memoryless: bool = False
    assume_contexts: bool = False

    def __post_init__(self) -> None:
        if self.strict and (self.assume_memoryless or self.assume_contexts):
            raise ValueError("a strict rule assumes nothing")

    def assumes(self, channel: ChannelTest) -> bool:
        """Whether that channel may be assumed whatever its test says."""
        return self.assume_memoryless if channel.contexts is None else self.assume_contexts


@dataclass(frozen=True)
class WithinBounds:
    """Inconclusive because the target lies between the bounds."""

    kind: Literal["bounds"]


@dataclass(frozen=True)
class Contradicted:
    """Inconclusive because the data contradict the channel, most clearly for the class `label`.

    `model_verdict` is what the contradicted model says; `contexts` is what its detector remembers, None for nothing.
    """

    kind: Literal["dependence"]
    label: str
    p_value: Share
    model_verdict: ModelVerdict
    contexts: str | None = None


@dataclass(frozen=True)
class Refused:
    """Inconclusive because the verdict would carry a condition, and `strict` refuses any."""

    kind: Literal["untested"]
    condition: Condition
    model_verdict: Decided


Reason: TypeAlias = WithinBounds | Contradicted | Refused


@dataclass(frozen=True)
class Decision:
    """A verdict and what it rests on.

    Attributes:
        verdict: the verdict.
        basis: what the verdict rests on; None where nothing is decided.
        condition: what must be true for the verdict to hold, "if items are independent"; None where nothing is
            assumed that the data do not test.
        reason: why it is inconclusive; None for other verdicts.
    """

    verdict: Verdict
    basis: Basis | None = None
    condition: str | None = None
    reason: Reason | None = None

    @property
    def text(self) -> str:
        """The verdict with its condition: `violated, if items are independent`."""
        return verdict_text(self.verdict.value, self.condition)


def verdict_text(verdict: str, condition: str | None) -> str:
    """A verdict with its condition, for people."""
    return verdict if condition is None else f"{verdict}, {condition}"


def decide(
    model: Verdict,
    whatever: Verdict,
    channel: ChannelTest,
    assumption: str | None = None,
    rule: VerdictRule = VerdictRule(),
    *,
    vacuous: bool = False,
    whatever_if: str | None = None,
) -> Decision:
    """The verdict on one requirement in one scenario.

    Args:
        model: what the numbers of the memoryless chain say, by `verdict_of`.
        whatever: what the numbers say that hold whatever the detector predicts.
        channel: the test of the memoryless channel, over the classes that the chain draws.
        assumption: what the numbers assume about the data, "items are independent"; None for nothing that would be a
            condition.
        rule: which assumptions are accepted.
        whatever_if: what the numbers of `whatever` assume about the data.
        vacuous: whether the check says nothing about the system although the formula holds.
    """
    if model is Verdict.NO_TARGET:
        return Decision(model)
    decision = _decision(model, whatever, channel, assumption, rule)
    if decision.basis == "any_dependence" and whatever_if is not None:
        decision = replace(decision, condition=f"if {whatever_if}")
        if rule.strict:
            decision = _refused(whatever, f"if {whatever_if}")
    if vacuous and decision.verdict is Verdict.SATISFIED:
        return Decision(Verdict.VACUOUS, decision.basis)
    return decision


def _decision(
    model: Verdict, whatever: Verdict, channel: ChannelTest, assumption: str | None, rule: VerdictRule
) -> Decision:
    if whatever in (Verdict.SATISFIED, Verdict.VIOLATED):
        return Decision(whatever, "any_dependence")
    if channel.test == "contradicted" and not rule.assumes(channel) and not channel.boxed:
        assert channel.label is not None
        assert channel.p_value is not None
        said = cast(ModelVerdict, model.value)
        against = Contradicted("dependence", channel.label, channel.p_value, said, channel.contexts)
        return Decision(Verdict.INCONCLUSIVE, reason=against)
    if model is Verdict.INCONCLUSIVE:
        return Decision(model, reason=WithinBounds("bounds"))
    clauses = [] if assumption is None else [assumption]
    clauses += [] if channel.boxed else _channel_clause(channel, rule, told=assumption == INDEPENDENT_ITEMS)
    condition = f"if {' and '.join(clauses)}" if clauses else None
    if rule.strict and condition is not None:
        return _refused(model, condition)
    if channel.assumed or channel.boxed or (rule.assumes(channel) and channel.test != "not_contradicted"):
        return Decision(model, "assumed", condition)
    return Decision(model, "memoryless" if channel.contexts is None else "contexts", condition)


def _refused(decided: Verdict, condition: str) -> Decision:
    """What a strict rule makes of a verdict that decides, under a condition."""
    return Decision(Verdict.INCONCLUSIVE, reason=Refused("untested", condition, cast(Decided, decided.value)))


def _channel_clause(channel: ChannelTest, rule: VerdictRule, *, told: bool) -> list[str]:
    """The condition that the channel is; `told` where another one includes it."""
    detector = "the detector is memoryless"
    if channel.contexts is not None:
        detector, told = f"the detector remembers {channel.contexts} and nothing else", False
    if channel.assumed:
        longest = str(channel.contexts).removeprefix(PERSISTENT)
        return [f"no error lasts longer than {longest} frames and they begin as counted (assumed)"]
    if channel.test == "contradicted":
        assert channel.p_value is not None
        against = f"the data contradict it for {channel.label}, p = {p_value_text(channel.p_value)}"
        return [f"{detector} (assumed; {against})"]
    if channel.test == "not_contradicted":
        return []
    if rule.assumes(channel):
        return [f"{detector} (assumed, not tested)"]
    return [] if told else [f"{detector} (not tested)"]


def verdict_of(lower: float | Fraction, upper: float | Fraction, comparison: str, target: Fraction | None) -> Verdict:
    """The verdict for a probability that lies within `lower..upper`.

    Args:
        lower: lower bound of the probability.
        upper: upper bound of the probability.
        comparison: one of >= > <= <, or = for `P = ?`.
        target: the probability asked for; None for `P = ?`.

    >>> verdict_of(0.94, 0.96, ">=", Fraction(95, 100))
    <Verdict.INCONCLUSIVE: 'inconclusive'>
    """
    if target is None:
        return Verdict.NO_TARGET
    low, high = (end if math.isinf(end) else Fraction(end) for end in (lower, upper))
    worst, best = (low, high) if comparison in (">=", ">") else (high, low)
    if COMPARE[comparison](worst, target):
        return Verdict.SATISFIED
    return Verdict.INCONCLUSIVE if COMPARE[comparison](best, target) else Verdict.VIOLATED


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """The most severe of several: violated, no answer, inconclusive, vacuous, satisfied, no target."""
    return max(verdicts, key=SEVERITY.index, default=Verdict.NO_TARGET)


def verdict_over(scenarios: Iterable[Verdict]) -> Verdict:
    """The verdict on a requirement: the most severe over the scenarios that are not vacuous, if there are any."""
    verdicts = list(scenarios)
    return worst_verdict([verdict for verdict in verdicts if verdict is not Verdict.VACUOUS] or verdicts)


def condition_over(verdict: Verdict, parts: Iterable[tuple[Verdict, str | None]]) -> str | None:
    """The condition of a verdict on a whole, from (verdict, condition) of its parts.

    One part that is violated without a condition violates the whole without one; what is satisfied needs the
    conditions of all its parts. A condition that another one continues is not repeated.
    """
    conditions = dict.fromkeys(condition for part, condition in parts if part is verdict)
    if verdict is Verdict.VIOLATED and None in conditions:
        return None
    texts = [text for text in conditions if text is not None]
    kept = [text for text in texts if not any(other != text and other.startswith(text) for other in texts)]
    return "; ".join(kept) or None
