"""The elements of an assurance case in Goal Structuring Notation, and the rules that make them one.

Source: GSN Community Standard, version 3 (SCSC-141C, 2021): goals, strategies, solutions, contexts, assumptions and
justifications; SupportedBy and InContextOf; the dialectic extension, in which goals and solutions challenge others.
Identifiers begin with the prefixes by which gsn2x tells the kinds apart.

A case as YAML for gsn2x, whole and in modules, one file each.

M-Top holds the argument as a whole, M-Req-1, ... each requirement, M-Data, M-Model, M-Tool and M-Op what people
answer for of data, model, program and operation. Identifiers are the same as in the whole; what several modules share
is in M-Top. A reference to an element of another module is an away reference.

Source: J. Wolf, gsn2x; its documentation, chapters "Syntax in YAML", "Checks" and "Dialectic Extension". Every text
is a double-quoted scalar, so nothing in it can be read as anything else. gsn2x makes links of what looks like one,
wherever it stands; a name from a file shall not become one, so its `://` is parted.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from urllib.parse import unquote

from verifier.base.arrays import grouped
from verifier.base.errors import one_line
from verifier.evidence.context import LEFT_TO_PEOPLE, MODULES
from verifier.evidence.defeaters.values import Claim
from verifier.evidence.status import Grade, Status


class Kind(Enum):
    """What an element is; the value is the prefix of its identifier."""

    GOAL = "G"
    STRATEGY = "S"
    SOLUTION = "Sn"
    CONTEXT = "C"
    ASSUMPTION = "A"
    JUSTIFICATION = "J"
    COUNTER_GOAL = "CG"
    COUNTER_SOLUTION = "CSn"


@dataclass(frozen=True)
class Element:
    """One element.

    Attributes:
        id: its identifier, the prefix of its kind and a number.
        kind: what it is.
        text: its statement.
        note: what is known about it: numbers, verdict, what speaks against it; empty where nothing is.
        supported_by: identifiers of what supports it.
        in_context_of: identifiers of contexts, assumptions and justifications.
        challenges: the element that a counter goal or counter solution speaks against.
        undeveloped: whether nothing supports it yet.
        defeated: whether an element challenges it.
        status: of a goal or strategy; None for others.
        grade: of the evidence of a goal or strategy, or of what is assumed; None where there is none.
        rests_on: identifiers of the assumptions that a goal or strategy is conditional on.
        amlas: the element of an AMLAS argument pattern, or the AMLAS artefact, that it is.
        url: the file it points at.
        review: what an assessor finds of it, in words.
    """

    id: str
    kind: Kind
    text: str
    note: str = ""
    supported_by: tuple[str, ...] = ()
    in_context_of: tuple[str, ...] = ()
    challenges: str | None = None
    undeveloped: bool = False
    defeated: bool = False
    status: Status | None = None
    grade: Grade | None = None
    rests_on: tuple[str, ...] = ()
    amlas: str = ""
    url: str = ""
    review: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.status is Status.SUPPORTED and (self.defeated or self.undeveloped):
            raise ValueError(f"{self.id}: nothing defeated or undeveloped is supported")
        if self.rests_on and self.status in (None, Status.SUPPORTED):
            raise ValueError(f"{self.id}: nothing is supported that rests on what is not shown")

    @property
    def told(self) -> str:
        """The status with what it is conditional on: `conditional on A1, A2`; empty for what has none."""
        if self.status is None:
            return ""
        on = f" on {', '.join(self.rests_on)}" if self.status is Status.CONDITIONAL and self.rests_on else ""
        return f"{self.status.value}{on}"


@dataclass(frozen=True)
class Case:
    """An assurance case.

    Attributes:
        title: of the whole.
        elements: the top goal first.
        goals: claim -> identifier of the goal that makes it.
        covers: identifier -> files that it points at, where they are several.
        duties: what people answer for -> identifier of its goal.

    Raises:
        ValueError: an element is challenged by one that stands, and not defeated.
    """

    title: str
    elements: tuple[Element, ...]
    goals: Mapping[Claim, str] = field(default_factory=dict)
    covers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    duties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        standing = {element.challenges for element in self.elements if not element.defeated} - {None}
        if not standing <= {element.id for element in self.elements if element.defeated}:
            raise ValueError("what is challenged by an element that stands is defeated")

    @cached_property
    def by_id(self) -> dict[str, Element]:
        """Identifier -> element."""
        return {element.id: element for element in self.elements}

    @cached_property
    def _challengers(self) -> Mapping[str, list[Element]]:
        return grouped((element.challenges, element) for element in self.elements if element.challenges is not None)

    def challengers(self, identifier: str) -> Sequence[Element]:
        """The elements that speak against one."""
        return self._challengers.get(identifier, ())

    def files_of(self, element: Element) -> tuple[str, ...]:
        """Paths of the files that an element points at."""
        return self.covers.get(element.id, (unquote(element.url),) if element.url else ())

    @property
    def top(self) -> Element:
        """The goal that everything supports."""
        return self.elements[0]

    @property
    def status(self) -> Status:
        """Of the top goal."""
        assert self.top.status is not None
        return self.top.status


TOP = "M-Top"
OWNED: Mapping[str, tuple[str, ...]] = {
    module: tuple(name for name, duty in LEFT_TO_PEOPLE.items() if duty.module == module) for module in MODULES
}
"""Module -> duties whose goals it holds."""
ACPS: Mapping[str, str] = {duty.acp: name for name, duty in LEFT_TO_PEOPLE.items() if duty.acp}
"""Assurance claim point -> duty whose goal is its confidence argument: that requirements and hazards are complete,
that the sample represents the domain, that the model represents the system, that files are what they say."""


def modules_of(case: Case) -> dict[str, list[Element]]:
    """Module -> its elements, in the order of the case; every element is in exactly one."""
    roots = {TOP: [case.top.id]}
    claimed = grouped(((claim.requirement, claim.planner), goal) for claim, goal in case.goals.items())
    roots |= {f"M-Req-{k}": goals for k, goals in enumerate(claimed.values(), 1)}
    for module, duties in OWNED.items():
        roots[module] = [case.duties[duty] for duty in duties if duty in case.duties]
    owned = {goal for module, goals in roots.items() if module != TOP for goal in goals}
    reached = {module: all_below(case, goals, owned - {*goals}) for module, goals in roots.items()}
    modules: dict[str, list[Element]] = {module: [] for module in roots}
    for element in case.elements:
        mine = [module for module, names in reached.items() if element.id in names]
        modules[mine[0] if len(mine) == 1 else TOP].append(element)
    return {module: elements for module, elements in modules.items() if elements}


def points_of(case: Case) -> dict[str, dict[str, list[str]]]:
    """Element -> assurance claim point -> what it is directly related to, or the element itself.

    ACP1 is on inferences from a strategy of the top goal to its claims, ACP2 and ACP3 on those to results of single
    scenarios, ACP4 on solutions.
    """
    known = case.by_id
    held = {name for name, duty in ACPS.items() if duty in case.duties}
    points: dict[str, dict[str, list[str]]] = {}
    for name in known[case.top.id].supported_by:
        claims = [text for text in known[name].supported_by if text not in case.duties.values()]
        if claims and "ACP1" in held:
            points[name] = {"ACP1": claims}
    for claim, goal in case.goals.items():
        if claim.point is not None and known[goal].supported_by:
            points[goal] = {point: list(known[goal].supported_by[:1]) for point in ("ACP2", "ACP3") if point in held}
    for element in case.elements:
        if element.url and element.id.startswith("Sn") and "ACP4" in held:
            points[element.id] = {"ACP4": [element.id]}
    return points


def all_below(case: Case, starts: Iterable[str], stops: Iterable[str] = ()) -> set[str]:
    """Some elements and everything below them, with what speaks against it, but not what is below `stops`."""
    known, reached, stop = case.by_id, set[str](), {*stops}
    pending = list(starts)
    while pending:
        name = pending.pop()
        if name not in reached and name not in stop:
            reached.add(name)
            pending += [*known[name].supported_by, *known[name].in_context_of]
            pending += [challenger.id for challenger in case.challengers(name)]
    return reached


def gsn_yaml(case: Case) -> str:
    """The YAML of a case: one element after the other, the top goal first; ends with a line break.

    Attributes that gsn2x does not know are views on top of it (`gsn2x --layers status,grade,amlas`): `status` and
    `grade` of goals and strategies, `review`, what an assessor finds, and `amlas`, the element of an AMLAS pattern.
    """
    return _text(case, case.title, case.elements)


def module_texts(case: Case, folder: str = "") -> dict[str, str]:
    """File of each module, in a folder with a slash at its end -> its YAML; together they have the elements of the
    whole."""
    return {f"{folder}{module}.yaml": _text(case, module, elements) for module, elements in modules_of(case).items()}


def _text(case: Case, name: str, elements: Iterable[Element]) -> str:
    points = points_of(case)
    brief = "; ".join(filter(None, (f"Top goal: {case.top.told}", case.top.note)))
    lines = ["module:", f"  name: {_quoted(name)}", f"  brief: {_quoted(brief)}"]
    for element in elements:
        lines += ["", f"{element.id}:", *(f"  {line}" for line in _attributes(element))]
        if element.id in points:
            held = (f"{point}: [{', '.join(names)}]" for point, names in points[element.id].items())
            lines.append(f"  acp: {{ {', '.join(held)} }}")
    return "\n".join(lines) + "\n"


def _attributes(element: Element) -> Iterator[str]:
    text = "\n".join(filter(None, (element.text, element.note)))
    yield f"text: {_quoted(text)}"
    status = "" if element.status is None else element.status.value
    grade = "" if element.grade is None else element.grade.value
    for key, told in (
        ("supportedBy", f"[{', '.join(element.supported_by)}]" if element.supported_by else ""),
        ("inContextOf", f"[{', '.join(element.in_context_of)}]" if element.in_context_of else ""),
        ("challenges", element.challenges),
        ("undeveloped", "true" if element.undeveloped else ""),
        ("defeated", "true" if element.defeated else ""),
        ("url", element.url and _quoted(element.url)),
        ("classes", status and f"[{status}]"),
        ("status", status and _quoted(element.told)),
        ("grade", grade and _quoted(grade)),
        ("review", element.review and _quoted("\n".join(element.review))),
        ("amlas", element.amlas and _quoted(element.amlas)),
    ):
        if told:
            yield f"{key}: {told}"


def _quoted(text: str) -> str:
    """A double-quoted scalar: JSON's quoting of printable text is YAML's, too."""
    clean = "\n".join(one_line(line) for line in text.split("\n"))
    return json.dumps(clean.replace("://", ": //"), ensure_ascii=False)
