"""What a rate rests on: what its run says about data and detector behind the scenarios that it is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from verifier.analysis.channel_test import channel_condition, channel_test
from verifier.checking.verdicts import Decision, VerdictRule, decide, verdict_of
from verifier.evidence.rates.chances import Chance
from verifier.study.options import VerdictSource
from verifier.study.provenance import data_assumption


class Grounds:
    """What the run says about the data and the detector behind some of its scenarios."""

    def __init__(self, run: Mapping[str, Any], used: Sequence[Chance]) -> None:
        """`run` is the document of the run, `used` the scenarios that a rate is made from."""
        self._settings = run["settings"]
        self._rule = VerdictRule(self._settings["strict"], self._settings["assume_memoryless"])
        self._vacuous = all(each.vacuous for each in used)
        drawn = sorted({name for each in used if each.whatever[0] < each.whatever[1] for name in each.draws})
        self._channel = channel_test(run["channel"]["classes"], drawn)

    def _assumption(self, source: VerdictSource) -> str | None:
        return data_assumption({**self._settings, "verdict_from": source})

    def assumes(self, source: VerdictSource) -> tuple[str, ...]:
        """What an interval assumes about data and detector."""
        found = []
        if source == "bounds":
            found.append(str(self._settings["confidence"]["bounds"]["condition"]))
        elif self._assumption(source) is not None:
            found.append(str(self._assumption(source)))
        condition = channel_condition(self._channel)
        return (*found, *([] if condition is None else [condition.removeprefix("if ")]))

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
            self._assumption(source),
            self._rule,
            vacuous=self._vacuous,
        )
