"""What changed between two bundles, as a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from verifier.base.documents import Sha256, Share
from verifier.base.errors import ExitCode
from verifier.evidence.changes.impact import Change, ClaimKind

Relation: TypeAlias = Literal["unaffected", "equal", "better", "worse", "doubtful", "new", "gone"]


@dataclass(frozen=True)
class BundleRecord:
    """One of the two: its name, the digest of its manifest, and the version of the program that built it."""

    name: str
    digest: Sha256
    verifier: str


@dataclass(frozen=True)
class Activity:
    """What people do again.

    Attributes:
        duty: whose documents show it.
        done_by: names of documents for it that the bundle before did not have.
    """

    text: str
    duty: str
    done_by: tuple[str, ...]


@dataclass(frozen=True)
class ChangeRecord:
    """One row of the impact table that applies.

    Attributes:
        what: each difference, in words.
        recompute: what the program does again.
        recomputed: whether the new bundle has it.
    """

    kind: Change
    changed: str
    what: tuple[str, ...]
    recompute: str
    recomputed: bool
    repeat: tuple[Activity, ...]


@dataclass(frozen=True)
class ClaimRecord:
    """One claim in both bundles.

    Attributes:
        kind, name: what is claimed, and of what: a requirement, a hazard, or empty.
        before, after: its status; empty where the bundle does not have it.
        relation: unaffected where equal inputs reach it, by their hash, what it rests on is equal, and no change
            makes it fall; equal where the outcome is.
        worse: probability that the requirement is met with less than before, by posterior draws; None where nothing
            is drawn, or nothing changed.
        reached_by: SHA-256 over what reaches it, before and after.
        falls_by: the changes by which it falls.
        stands_again: whether everything these ask for is in the new bundle, and its status is not worse.
    """

    kind: ClaimKind
    name: str
    planner: str
    before: str
    after: str
    relation: Relation
    worse: Share | None
    reached_by: tuple[Sha256, Sha256]
    falls_by: tuple[Change, ...]
    stands_again: bool


@dataclass(frozen=True, kw_only=True)
class DiffResult:
    """Result of `verify evidence diff`.

    Attributes:
        changes: rows of the impact table, in its order.
        open_: claims that do not stand again.
        findings_gone: of an assessor, whatever their state, that the new bundle does not have as they were.
    """

    schema: ClassVar[str] = "verifier.bundle_diff"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    old: BundleRecord
    new: BundleRecord
    changes: tuple[ChangeRecord, ...]
    claims: tuple[ClaimRecord, ...]
    open_: int
    findings_gone: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """Inconclusive where a claim does not stand again, or a finding is gone."""
        return ExitCode.INCONCLUSIVE if self.open_ or self.findings_gone else ExitCode.SATISFIED
