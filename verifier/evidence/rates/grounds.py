"""What a rate rests on: what its run says about data and detector behind the scenarios that it is made from."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from verifier.analysis.channel_test import channel_condition, channel_test
from verifier.checking.verdicts import Decision, decide, verdict_of
from verifier.evidence.rates.encounter_probabilities import Chance
from verifier.study.options import VerdictSource
from verifier.study.results import RunResult


class Grounds:
    """What the run says about the data and the detector behind some of its scenarios."""

    def __init__(self, run: RunResult, used: Sequence[Chance]) -> None:
        """`used` are the scenarios of the run that a rate is made from."""
        self._settings = run.settings
        self._vacuous = all(each.vacuous for each in used)
        drawn = sorted({name for each in used if each.whatever[0] < each.whatever[1] for name in each.draws})
        self._channel = channel_test(run.channel.classes, drawn)

    def assumes(self, source: VerdictSource) -> tuple[str, ...]:
        """What an interval assumes about data and detector."""
        rests_on, condition = self._settings.bounds, channel_condition(self._channel)
        found = rests_on.condition if source == "bounds" and rests_on else self._settings.assumption(source)
        return tuple(text for text in (found, condition and condition.removeprefix("if ")) if text)

    def decision(
        self,
        source: VerdictSource,
        bounds: tuple[Fraction, Fraction],
        whatever: tuple[Fraction, Fraction],
        limit: Fraction | None,
    ) -> Decision:
        """The verdict on a criterion.

        Args:
            source: of the bounds.
            bounds: of the rate.
            whatever: what it lies between whatever the detector predicts.
            limit: the greatest rate that is accepted; None for no criterion.
        """
        return decide(
            verdict_of(*bounds, "<=", limit),
            verdict_of(*whatever, "<=", limit),
            self._channel,
            self._settings.assumption(source),
            self._settings.rule,
            vacuous=self._vacuous,
        )
