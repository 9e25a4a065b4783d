"""What a check found wrong, and what it looked at: values, one line each."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Annotated, ClassVar, Self

from verifier.base.documents import Count, Limits
from verifier.base.errors import ExitCode, one_line
from verifier.base.libraries import __version__
from verifier.base.result import recorded
from verifier.evidence.signatures import Seal
from verifier.evidence.status import Standing, Status


class Kind(Enum):
    """What a finding speaks of: the files as such, what they say, or who signed them."""

    FILES = "files"
    CONTENT = "content"
    SIGNATURE = "signature"


@dataclass(frozen=True)
class FindingRecord:
    """One thing that is wrong, as documents have it.

    Attributes:
        file: path in the bundle; "" for the bundle as a whole.
        where: JSON pointer, line, or "" for the file as a whole.
    """

    file: str
    where: str
    found: str
    expected: str


@dataclass(frozen=True)
class Finding(FindingRecord):
    """The same, and what it speaks of."""

    kind: Kind = Kind.FILES

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.file or "the bundle", self.where) if part)
        return f"{place}: found {self.found}; expected {self.expected}"


def misstated(file: str, where: str, said: str, expected: str) -> Finding:
    """A finding about what a file says."""
    return Finding(file, where, said, expected, Kind.CONTENT)


@dataclass(frozen=True)
class Grades:
    """How the numbers with a decimal point in the results were checked.

    Attributes:
        proven: by certificates.
        recomputed: from the inputs.
        by_hash: only compared with what was written.
    """

    proven: Count
    recomputed: Count
    by_hash: Count

    @property
    def all_checked(self) -> bool:
        """Whether every number is proven or recomputed."""
        return self.by_hash == 0


@dataclass(frozen=True)
class CheckedCount:
    """So many of what was checked."""

    count: Count
    what: str


@dataclass(frozen=True)
class RequirementVerdict:
    """What the run in the bundle says of a requirement, and its status over all runs; "" where it has no target."""

    requirement: str
    planner: str
    verdict: str
    status: str


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """What `verify evidence check` found, see `CheckReport`.

    Attributes:
        command: that checked, with the bundle by name.
        versions: of the program that checked, and of what it computed with.
        digest_demanded: whether this digest was demanded.
        intact: whether the files are, byte for byte, those that the manifest lists.
        numbers: None where the results were not read, or something is wrong.
        status: over all runs, with the requirement and the run that it is of; empty where something is wrong.
    """

    schema: ClassVar[str] = "verifier.bundle_check"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    bundle: str
    digest: Annotated[str, Limits(pattern="^([0-9a-f]{64})?$")]
    digest_demanded: bool
    intact: bool
    findings: tuple[FindingRecord, ...]
    checked: tuple[CheckedCount, ...]
    unchecked: tuple[str, ...]
    verdict: str
    requirements: tuple[RequirementVerdict, ...]
    numbers: Grades | None
    status: str


@dataclass
class Log:
    """What a check found and did, as it goes on; see `CheckReport`.

    Attributes:
        findings, checked, unchecked, requirements, grades: as there.
        standings, case: how the requirements stand over all runs, and the assurance case as a whole.
        built_by: version of the program that built the bundle.
        until_recomputed: what was not looked at and is settled by computing everything again.
        proven, recomputed: numbers of the results that certificates prove, and that the inputs gave again.
        certificates: paths of those that were looked at.
    """

    findings: list[Finding] = field(default_factory=list)
    checked: list[tuple[int, str]] = field(default_factory=list)
    certificates: set[str] = field(default_factory=set)
    unchecked: list[str] = field(default_factory=list)
    until_recomputed: list[str] = field(default_factory=list)
    requirements: tuple[tuple[str, str, str, str], ...] = ()
    standings: tuple[Standing, ...] = ()
    case: Status = Status.SUPPORTED
    built_by: str = __version__
    grades: Grades | None = None
    proven: int = 0
    recomputed: int = 0


@dataclass(frozen=True)
class CheckReport:
    """Everything a check did.

    Attributes:
        bundle: its name, without folders.
        digest: SHA-256 of the manifest, in hexadecimal; "" where there is none.
        demanded: whether that digest was demanded and is the one.
        checked: (how many, what), in order.
        unchecked: what was not looked at, and what would.
        verdict: of the run in the bundle; "" where that was not read.
        requirements: (name, planner, verdict, status over all runs) of each requirement of the run.
        grades: how the numbers were checked; None where the results were not read, or something is wrong.
        status: as in `CheckResult`.
        title: of the manifest.
    """

    bundle: str
    digest: str
    demanded: bool
    findings: tuple[Finding, ...]
    checked: tuple[tuple[int, str], ...]
    unchecked: tuple[str, ...] = field(repr=False)
    verdict: str
    requirements: tuple[tuple[str, str, str, str], ...] = field(default=(), repr=False)
    grades: Grades | None = None
    status: str = ""
    title: str = ""

    def sealed(self, seal: Seal | str, file: str) -> Self:
        """This report with what was found of a signature that was demanded; `file` holds the signatures."""
        if isinstance(seal, str):
            return self._unsealed(Finding(file, "", "none", seal, Kind.SIGNATURE))
        said = seal.signed
        apart = [(f"the title {said.title}", self.title)] if said.title != self.title else []
        if self.status and said.tool.version == __version__:
            signed = {f"{one.requirement}, planner {one.planner}": one.status for one in said.requirements}
            here = {f"{name}, planner {planner}": told for name, planner, _, told in self.requirements}
            pairs = {"status": (said.status, self.status)}
            pairs |= {name: (signed.get(name, "nothing"), here.get(name, "nothing")) for name in {**here, **signed}}
            differing = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
            apart += [(was if name == "status" else f"{name}: {was}", now) for name, (was, now) in differing.items()]
        for was, shown in apart:
            return self._unsealed(Finding(file, "", f"signed as {one_line(was)}", one_line(shown), Kind.SIGNATURE))
        known = tuple(name for name in self.unchecked if not name.startswith("authenticity: "))
        if self.status and said.status != self.status:
            known += (f"a status that differs, signed by verifier {said.tool.version} as: {one_line(said.status)}",)
        return replace(self, checked=(*self.checked, (1, f"signature: {seal.told}")), unchecked=known)

    def _unsealed(self, wrong: Finding) -> Self:
        return replace(self, findings=(*self.findings, wrong), grades=None, status="")

    @property
    def intact(self) -> bool:
        """Whether the files are, byte for byte, those that the manifest lists."""
        return not any(finding.kind is Kind.FILES for finding in self.findings)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    @property
    def exit_code(self) -> ExitCode:
        """0 where nothing is wrong, whatever the verdicts are; 4 for a tampered bundle.

        5 where the files are, by the digest that was demanded, the ones that were built, and what they say is wrong
        all the same: then this program contradicts itself.
        """
        if self.sound:
            return ExitCode.SATISFIED
        ours = self.demanded and all(finding.kind is Kind.CONTENT for finding in self.findings)
        return ExitCode.INTERNAL if ours else ExitCode.BAD_INPUT

    def document(self) -> CheckResult:
        """The document of the check."""
        return recorded(
            CheckResult,
            self,
            digest_demanded=self.demanded,
            findings=tuple(recorded(FindingRecord, finding) for finding in self.findings),
            checked=tuple(CheckedCount(count, what) for count, what in self.checked),
            requirements=tuple(RequirementVerdict(*requirement) for requirement in self.requirements),
            numbers=self.grades,
        )
