"""What a check found wrong, and what it looked at: values, one line each."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Self

from verifier.base.documents import Count, Derives, Limits, derived
from verifier.base.errors import ExitCode, one_line
from verifier.base.libraries import __version__
from verifier.base.result import recorded
from verifier.evidence.signatures import Seal


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: with the files as such, unless it is of a class below.

    Attributes:
        file: path in the bundle; "" for the bundle as a whole.
        where: JSON pointer, line, or "" for the file as a whole.
    """

    file: str
    where: str
    found: str
    expected: str

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.file or "the bundle", self.where) if part)
        return f"{place}: found {self.found}; expected {self.expected}"


class Misstated(Finding):
    """With what a file says."""


class Unsigned(Finding):
    """With who signed."""


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
class CheckResult(Derives):
    """What `verify evidence check` found and did.

    Attributes:
        command: that checked, with the bundle by name.
        versions: of the program that checked, and of what it computed with.
        bundle: its name, without folders.
        digest: SHA-256 of the manifest; "" where there is none.
        digest_demanded: whether this digest was demanded.
        intact: whether the files are, byte for byte, those that the manifest lists.
        unchecked: what was not looked at, and what would.
        verdict: of the run in the bundle; "" where that was not read.
        requirements: of the run.
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
    intact: bool = derived(lambda found: not any(type(one) is Finding for one in found.findings), refused=False)
    findings: tuple[Finding, ...]
    checked: tuple[CheckedCount, ...]
    unchecked: tuple[str, ...] = field(repr=False)
    verdict: str
    requirements: tuple[RequirementVerdict, ...] = field(repr=False)
    numbers: Grades | None
    status: str


@dataclass(frozen=True, kw_only=True)
class CheckReport(CheckResult):
    """The same with what no document has: the title of the manifest."""

    title: str = ""

    def sealed(self, seal: Seal | str, file: str) -> Self:
        """This report with what was found of a signature that was demanded; `file` holds the signatures."""
        if isinstance(seal, str):
            return self._unsealed(Unsigned(file, "", "none", seal))
        said = seal.signed
        apart = [(f"the title {said.title}", self.title)] if said.title != self.title else []
        if self.status and said.tool.version == __version__:
            signed, here = (
                {f"{one.requirement}, planner {one.planner}": one.status for one in requirements}
                for requirements in (said.requirements, self.requirements)
            )
            pairs = {"status": (said.status, self.status)}
            pairs |= {name: (signed.get(name, "nothing"), here.get(name, "nothing")) for name in {**here, **signed}}
            differing = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
            apart += [(was if name == "status" else f"{name}: {was}", now) for name, (was, now) in differing.items()]
        for was, shown in apart:
            return self._unsealed(Unsigned(file, "", f"signed as {one_line(was)}", one_line(shown)))
        known = tuple(name for name in self.unchecked if not name.startswith("authenticity: "))
        if self.status and said.status != self.status:
            known += (f"a status that differs, signed by verifier {said.tool.version} as: {one_line(said.status)}",)
        checked = (*self.checked, CheckedCount(1, f"signature: {seal.told}"))
        return replace(self, checked=checked, unchecked=known)

    def _unsealed(self, wrong: Finding) -> Self:
        return replace(self, findings=(*self.findings, wrong), numbers=None, status="")

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
        ours = self.digest_demanded and all(isinstance(finding, Misstated) for finding in self.findings)
        return ExitCode.INTERNAL if ours else ExitCode.BAD_INPUT

    def document(self) -> CheckResult:
        """The document of the check."""
        return recorded(CheckResult, self)


@dataclass
class Log:
    """What a check found and did, as it goes on.

    Attributes:
        findings, unchecked, verdict, requirements, numbers: as in `CheckResult`.
        checked: (how many, what), in order.
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
    verdict: str = ""
    requirements: tuple[RequirementVerdict, ...] = ()
    built_by: str = __version__
    numbers: Grades | None = None
    proven: int = 0
    recomputed: int = 0
