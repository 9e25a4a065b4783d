"""A case as YAML for gsn2x, whole and in modules, one file each.

M-Top holds the argument as a whole, M-Req-1, ... each requirement, M-Data, M-Model, M-Tool and M-Op what people
answer for of data, model, program and operation. Identifiers are the same as in the whole; what several modules share
is in M-Top. A reference to an element of another module is an away reference.

Source: J. Wolf, gsn2x; its documentation, chapters "Syntax in YAML", "Checks" and "Dialectic Extension". Every text
is a double-quoted scalar, so nothing in it can be read as anything else. gsn2x makes links of what looks like one,
wherever it stands; a name from a file shall not become one, so its `://` is parted.
"""

import json
from collections.abc import Iterable, Iterator, Mapping

from verifier.base.errors import one_line
from verifier.evidence.case.elements import Case, Element
from verifier.evidence.context import LEFT_TO_PEOPLE, MODULES

TOP = "M-Top"
OWNED: Mapping[str, tuple[str, ...]] = {
    module: tuple(name for name, each in LEFT_TO_PEOPLE.items() if each.module == module) for module in MODULES
}
"""Module -> duties whose goals it holds."""
ACPS: Mapping[str, str] = {each.acp: name for name, each in LEFT_TO_PEOPLE.items() if each.acp}
"""Assurance claim point -> duty whose goal is its confidence argument: that requirements and hazards are complete,
that the sample represents the domain, that the model represents the system, that files are what they say."""


def modules_of(case: Case) -> dict[str, list[Element]]:
    """Module -> its elements, in the order of the case; every element is in exactly one."""
    roots = {TOP: [case.top.id]}
    names = list(dict.fromkeys((each.requirement, each.planner) for each in case.goals if each.point is None))
    for k, name in enumerate(names, 1):
        goals = [goal for claim, goal in case.goals.items() if (claim.requirement, claim.planner) == name]
        roots[f"M-Req-{k}"] = goals
    for module, duties in OWNED.items():
        roots[module] = [case.duties[duty] for duty in duties if duty in case.duties]
    owned = {goal for module, goals in roots.items() if module != TOP for goal in goals}
    reached = {module: _reached(case, goals, owned - {*goals}) for module, goals in roots.items()}
    found: dict[str, list[Element]] = {module: [] for module in roots}
    for each in case.elements:
        mine = [module for module, names in reached.items() if each.id in names]
        found[mine[0] if len(mine) == 1 else TOP].append(each)
    return {module: elements for module, elements in found.items() if elements}


def points_of(case: Case) -> dict[str, dict[str, list[str]]]:
    """Element -> assurance claim point -> what it is directly related to, or the element itself.

    ACP1 is on inferences from a strategy of the top goal to its claims, ACP2 and ACP3 on those to results of single
    scenarios, ACP4 on solutions.
    """
    known = case.by_id
    held = {name for name, duty in ACPS.items() if duty in case.duties}
    found: dict[str, dict[str, list[str]]] = {}
    for name in known[case.top.id].supported_by:
        claims = [each for each in known[name].supported_by if each not in case.duties.values()]
        if claims and "ACP1" in held:
            found[name] = {"ACP1": claims}
    for claim, goal in case.goals.items():
        if claim.point is not None and known[goal].supported_by:
            found[goal] = {point: list(known[goal].supported_by[:1]) for point in ("ACP2", "ACP3") if point in held}
    for each in case.elements:
        if each.url and each.id.startswith("Sn") and "ACP4" in held:
            found[each.id] = {"ACP4": [each.id]}
    return found


def _reached(case: Case, starts: Iterable[str], stops: Iterable[str]) -> set[str]:
    """Everything below some elements, with what speaks against it, but not below those of other modules."""
    known, found, stop = case.by_id, set[str](), {*stops}
    pending = list(starts)
    while pending:
        name = pending.pop()
        if name not in found and name not in stop:
            found.add(name)
            pending += [*known[name].supported_by, *known[name].in_context_of]
            pending += [each.id for each in case.challengers(name)]
    return found


def gsn_yaml(case: Case) -> str:
    """The YAML of a case: one element after the other, the top goal first; ends with a line break.

    Attributes that gsn2x does not know are views on top of it (`gsn2x --layers status,grade,amlas`): `status` and
    `grade` of goals and strategies, `review`, what an assessor finds, and `amlas`, the element of an AMLAS pattern.
    """
    return _text(case, case.title, case.elements)


def module_texts(case: Case) -> dict[str, str]:
    """Module -> its YAML; together they have the elements of the whole."""
    return {module: _text(case, module, elements) for module, elements in modules_of(case).items()}


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
