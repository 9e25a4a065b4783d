"""How a claim stands: its status, the grade of its evidence, and what it is conditional on; one algebra for all.

Every document of a bundle that tells how a requirement stands prints a `Standing`, and they are made in one place.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """How well a claim stands, from the best to the worst; that of a whole is the worst of its parts.

    A vacuous claim says nothing about the system: in a whole it counts as undeveloped.
    """

    SUPPORTED = "supported"
    CONDITIONAL = "conditional"
    VACUOUS = "vacuous"
    UNDEVELOPED = "undeveloped"
    DEFEATED = "defeated"
    INCONCLUSIVE = "inconclusive"
    VIOLATED = "violated"


class Grade(Enum):
    """How strong the evidence of a claim is, from the best to the worst; that of a whole is the weakest.

    Proven by certificates; recomputed by a second engine; tested on data; documented, by file, hash, person and date;
    declared by somebody; untested.
    """

    PROVEN = "proven"
    RECOMPUTED = "recomputed"
    TESTED = "tested"
    DOCUMENTED = "documented"
    DECLARED = "declared"
    UNTESTED = "untested"


_ORDER: Mapping[Enum, int] = {kind: k for kinds in (Status, Grade) for k, kind in enumerate(kinds)}


def severity(status: Status | None) -> int:
    """How bad a status is, from 0; -1 where there is none."""
    return -1 if status is None else _ORDER[status]


def worst_status(*statuses: Status) -> Status:
    """The worst of several; supported where there are none, undeveloped where vacuous is the worst of different ones.

    >>> worst_status(Status.SUPPORTED, Status.VACUOUS), worst_status(Status.VACUOUS)
    (<Status.UNDEVELOPED: 'undeveloped'>, <Status.VACUOUS: 'vacuous'>)
    """
    worst = max(statuses, key=_ORDER.__getitem__, default=Status.SUPPORTED)
    return Status.UNDEVELOPED if worst is Status.VACUOUS and len({*statuses}) > 1 else worst


def status_over(scenarios: Iterable[Status]) -> Status:
    """That of one requirement over its scenarios: the worst of those that are not vacuous, if there are any."""
    statuses = list(scenarios)
    return worst_status(*([status for status in statuses if status is not Status.VACUOUS] or statuses))


def weakest(grades: Iterable[Grade]) -> Grade:
    """The weakest of several grades; untested where there are none."""
    return max(grades, key=_ORDER.__getitem__, default=Grade.UNTESTED)


@dataclass(frozen=True)
class Ground:
    """Something that a claim rests on beside its numbers.

    Attributes:
        id: of its element in the case.
        holds: whether it is tested and not contradicted, or documented; else what rests on it is conditional.
        grade: of its evidence.
        documents: names of the evidence that shows it.
    """

    id: str
    holds: bool
    grade: Grade
    documents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Standing:
    """How a requirement under one planner stands over all runs of a bundle.

    Attributes:
        requirement, planner: which; the planner is empty where there is no result.
        status, grade: of the goal that stands worst among those of the runs.
        reason: why it stands no better, on one line: what it is conditional on, what defeats it, which numbers.
        run: the document that decides; empty where there is none.
        assumed: what it is conditional on, in words.
    """

    requirement: str
    planner: str
    status: Status
    grade: Grade
    reason: str = ""
    run: str = ""
    assumed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What tells it from all others: `stops [planner p]`."""
        return f"{self.requirement} [planner {self.planner}]" if self.planner else self.requirement

    @property
    def told(self) -> str:
        """On one line: `conditional on A1, A2`, `violated: P = 0.81`."""
        goes_on = not self.reason or self.reason.startswith(("on ", "by "))
        return f"{self.status.value}{' ' if goes_on else ': '}{self.reason}".rstrip()


def overall(standings: Sequence[Standing]) -> Standing | None:
    """The first of those that stand worst; None where there are none."""
    return max(standings, key=lambda standing: _ORDER[standing.status], default=None)


def overall_text(standings: Sequence[Standing], whole: Status) -> str:
    """The last line of what people read: the worst status, and which requirement of which run has it.

    Args:
        whole: status of the top goal of the case, which rests on more than the requirements; told where it is worse.
    """
    worst = overall(standings)
    if worst is None:
        return "status: no requirement has a target"
    listed = [standing for standing in standings if standing.status is worst.status]
    more = f"; and {len(listed) - 1} more" if len(listed) > 1 else ""
    of = f" of {worst.run}" if worst.run else ""
    case = f"; the assurance case as a whole: {whole.value}" if severity(whole) > severity(worst.status) else ""
    return f"status: {worst.status.value}: {worst.name}{of}{f': {worst.reason}' if worst.reason else ''}{more}{case}"
