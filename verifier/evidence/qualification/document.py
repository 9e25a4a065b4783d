"""What a run of the validation suite found: its document."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from verifier.base.documents import Sha256
from verifier.base.errors import ExitCode
from verifier.evidence.identity import Tool
from verifier.evidence.settings import Asil

State: TypeAlias = Literal["passed", "failed", "not run"]
Effect: TypeAlias = Literal["optimistic", "pessimistic", "loud"]


@dataclass(frozen=True, kw_only=True)
class SuiteRecord:
    """One test.

    Attributes:
        told: what was found instead, or why it was not run; empty where it passed.
    """

    id: str
    requirement: str
    feature: str
    method: str
    about: str
    state: State
    told: str


@dataclass(frozen=True, kw_only=True)
class ProblemRecord:
    """A known problem; `effect` is that on a result: optimistic, pessimistic, or loud where none is given."""

    id: str
    feature: str
    effect: Effect
    text: str
    workaround: str


@dataclass(frozen=True, kw_only=True)
class QualificationResult:
    """Result of `verify qualify`.

    Attributes:
        tool: the program that was validated, by version, commit and hash, with all distributions beside it.
        platform: of the machine.
        day, by, asil: when, by whom, and the highest ASIL that is assumed; empty or None where not stated.
        kit: SHA-256 of the tables of kit and suite.
        whole: whether all tests of the suite were asked for.
        gaps: what the kit leaves open.
    """

    schema: ClassVar[str] = "verifier.qualification"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    tool: Tool
    platform: str
    day: str
    by: str
    asil: Asil | None
    kit: Sha256
    whole: bool
    gaps: tuple[str, ...]
    tests: tuple[SuiteRecord, ...]

    @property
    def features(self) -> dict[str, str]:
        """Feature -> failed, not run, or passed, the worst of its tests; without those that had none."""
        order = ("failed", "not run", "passed")
        states: dict[str, set[str]] = {}
        for each in self.tests:
            states.setdefault(each.feature, set()).add(each.state)
        return {name: next(state for state in order if state in found) for name, found in states.items()}

    @property
    def exit_code(self) -> ExitCode:
        """Violated where a test failed or the kit has a gap, inconclusive where not all of them ran."""
        if self.gaps or any(each.state == "failed" for each in self.tests):
            return ExitCode.VIOLATED
        complete = self.whole and all(each.state == "passed" for each in self.tests)
        return ExitCode.SATISFIED if complete else ExitCode.INCONCLUSIVE


@dataclass(frozen=True, kw_only=True)
class KnownProblemsResult:
    """Result of `verify known-problems`: those of a bundle or document, and versions behind it without a list."""

    schema: ClassVar[str] = "verifier.known_problems"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    result: str
    problems: tuple[ProblemRecord, ...]
    unlisted: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """Inconclusive where one of them can make a result look better than it is, or this is not known."""
        optimistic = any(each.effect == "optimistic" for each in self.problems)
        return ExitCode.INCONCLUSIVE if optimistic or self.unlisted else ExitCode.SATISFIED
