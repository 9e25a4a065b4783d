"""Faults that are put into the program to see whether the suite finds them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any
from unittest import mock

from verifier.checking.verdicts import Decision, Verdict


@dataclass(frozen=True)
class Fault:
    """A function of the program that gives something else than it should.

    Attributes:
        place: module and attribute, `verifier.x:name` or `verifier.x:Class.name`.
        faulty: makes the faulty function of the sound one.
        found_by: tests each of which must fail.
    """

    about: str
    place: str
    faulty: Callable[[Any], Any]
    found_by: tuple[str, ...]

    def put_in(self) -> AbstractContextManager[Any]:
        """As long as the context lasts."""
        module, _, path = self.place.partition(":")
        owner: Any = import_module(module)
        *outer, name = path.split(".")
        for each in outer:
            owner = getattr(owner, each)
        return mock.patch.object(owner, name, self.faulty(getattr(owner, name)))


def _then(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What a function gives, changed."""
    return lambda sound: lambda *words, **named: change(sound(*words, **named))


def _opposite(decision: Decision) -> Decision:
    pair = {Verdict.SATISFIED: Verdict.VIOLATED, Verdict.VIOLATED: Verdict.SATISFIED}
    return replace(decision, verdict=pair.get(decision.verdict, decision.verdict))


FAULTS = (
    Fault(
        "binomial ends two per cent too high",
        "verifier.base.statistics:binomial_lower_end",
        _then(lambda ends: ends * 1.02),
        ("T-bounds-2",),
    ),
    Fault(
        "ends of drives a fifth too high",
        "verifier.analysis.intervals.drive_items:lower_ends",
        _then(lambda ends: ends * 6 // 5),
        ("T-bounds-3",),
    ),
    Fault(
        "a kernel that believes", "verifier.analysis.kernel:check", lambda sound: lambda _: [], ("T-proof-1",)
    ),
    Fault(
        "both read as either", "verifier.language.ltl.progression:Obligations._both",
        lambda sound: lambda self, left, right: self._either(left, right), ("T-read-8",),
    ),
    Fault(
        "what does not match matches", "verifier.perception.matching.matches:_reaches",
        _then(lambda reaches: ~reaches), ("T-count-1", "T-count-2"),
    ),
    Fault(
        "shares of conditions in another order", "verifier.evidence.residual_risk.document:middle",
        _then(lambda shares: shares[::-1]), ("T-rate-2",),
    ),
    Fault(
        "a kernel of another width", "verifier.collision.kernel:_kernel", _then(lambda weights: weights**2),
        ("T-collision-1",),
    ),
    Fault(
        "given results that are believed", "verifier.evidence.bundle.build:_given",
        lambda sound: lambda *_: {}, ("T-case-3",),
    ),
    Fault(
        "no evidence against an indicator", "verifier.evidence.field:log_against_share",
        lambda sound: lambda *_: 0.0, ("T-rate-4",),
    ),
    Fault(
        "haze a tenth too thin", "verifier.robustness.mutators.photometric:extinction_per_m",
        _then(lambda beta: beta * 0.9), ("T-images-2",),
    ),
    Fault(
        "satisfied and violated exchanged", "verifier.checking.verdicts:_decision", _then(_opposite),
        ("T-check-1", "T-check-5"),
    ),
)  # fmt: skip
