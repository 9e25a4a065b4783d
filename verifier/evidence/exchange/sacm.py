"""An assurance case as XMI of the Structured Assurance Case Metamodel, 2.3 (OMG formal/23-05-08, clauses 8 to 12).

| here                            | SACM                                                                            |
|---------------------------------|---------------------------------------------------------------------------------|
| goal, counter goal              | Claim: asserted, needsSupport where undeveloped, defeated where challenged      |
| assumption, justification       | Claim, assumed and axiomatic                                                    |
| strategy                        | ArgumentReasoning of the AssertedInference from its claims to those above       |
| solution, context with a file   | ArtifactReference to an Artifact, whose SHA-256 is a tagged value               |
| context without a file          | Claim                                                                           |
| supported by                    | AssertedInference; AssertedEvidence from an ArtifactReference                   |
| in context of                   | AssertedContext                                                                 |
| challenges                      | the same with isCounter                                                         |
| assurance claim point           | metaClaim of the inference: the claim that is its confidence argument           |
| module                          | ArgumentPackage                                                                 |

The specification names no namespace for documents; this one is that of the version's machine-readable files.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias
from xml.etree import ElementTree

from verifier.evidence.case.elements import ACPS, Case, Element, Kind, modules_of, points_of
from verifier.evidence.exchange.xml import under, xml_text

SACM, XMI, XSI = (
    "http://www.omg.org/spec/SACM/20220301",
    "http://www.omg.org/spec/XMI/20131001",
    "http://www.w3.org/2001/XMLSchema-instance",
)
_DECLARED: Mapping[Kind, str] = {Kind.ASSUMPTION: "assumed", Kind.JUSTIFICATION: "axiomatic"}
Known: TypeAlias = Mapping[str, Element]
Points: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
_REFERENCES = (Kind.SOLUTION, Kind.COUNTER_SOLUTION)


def sacm_text(case: Case, hashes: Mapping[str, str]) -> str:
    """The XMI of a case; `hashes` is path -> SHA-256 of the files that it may point at."""
    attributes = {"xmlns:sacm": SACM, "xmlns:xmi": XMI, "xmlns:xsi": XSI, "xmi:version": "2.0", "xmi:id": "case"}
    root = ElementTree.Element("sacm:AssuranceCasePackage", attributes)
    _named(root, case.title)
    used = {path: None for element in case.elements for path in case.files_of(element)}
    artifacts = {path: f"artifact{number}" for number, path in enumerate(used, 1)}
    package = under(root, "artifactPackage", {"xmi:id": "artifacts"})
    _named(package, "Files of the bundle")
    for path, name in artifacts.items():
        _named(one := under(package, "artifactElement", {"xsi:type": "sacm:Artifact", "xmi:id": name}), path)
        _tagged(one, {"SHA-256": hashes.get(path, "")})
    known, points = case.by_id, points_of(case)
    for module, elements in modules_of(case).items():
        package = under(root, "argumentPackage", {"xmi:id": module})
        _named(package, module)
        for element in elements:
            _element(package, case, element, artifacts)
        for element in elements:
            for attributes in _links(case, known, points, element):
                under(package, "argumentElement", attributes)
    return xml_text(root)


def _is_reference(element: Element) -> bool:
    return element.kind in _REFERENCES or (element.kind is Kind.CONTEXT and bool(element.url))


def _element(package: ElementTree.Element, case: Case, element: Element, artifacts: Mapping[str, str]) -> None:
    """A claim, a reasoning or a reference to files."""
    attributes = {"xmi:id": element.id}
    if element.kind is Kind.STRATEGY:
        attributes["xsi:type"] = "sacm:ArgumentReasoning"
    elif _is_reference(element):
        attributes["xsi:type"] = "sacm:ArtifactReference"
        if files := case.files_of(element):
            attributes["referencedArtifactElement"] = " ".join(artifacts[path] for path in files)
    else:
        stands = "defeated" if element.defeated else "needsSupport" if element.undeveloped else "asserted"
        attributes |= {"xsi:type": "sacm:Claim", "assertionDeclaration": _DECLARED.get(element.kind, stands)}
    one = under(package, "argumentElement", attributes)
    _named(one, element.id)
    told = under(one, "description", {"xmi:id": f"{element.id}.text"})
    text = f"{element.text}. {element.note}" if element.note else element.text
    under(under(told, "content"), "value", lang="en", content=text)
    grade = "" if element.grade is None else element.grade.value
    review = "; ".join(element.review)
    _tagged(one, {"status": element.told, "grade": grade, "AMLAS": element.amlas, "review": review})


def _links(case: Case, known: Known, points: Points, element: Element) -> Iterator[dict[str, str]]:
    """The relationships of which an element is the target, and those by which it challenges another."""
    for name in element.supported_by:
        below = known[name]
        if element.kind is Kind.STRATEGY:  # told with the claims above
            continue
        if below.kind is not Kind.STRATEGY or not below.supported_by:
            yield _link(case, known, points, element, (name,), element.id)
            continue
        inner = [known[one] for one in below.supported_by]
        for reference in (False, True):
            if sources := tuple(element.id for element in inner if _is_reference(element) is reference):
                yield _link(case, known, points, below, sources, element.id) | {"reasoning": name}
    for name in element.in_context_of:
        yield _relation("AssertedContext", f"{element.id}.{name}", (name,), element.id)
    if element.challenges is not None:
        kind = "AssertedEvidence" if element.kind is Kind.COUNTER_SOLUTION else "AssertedInference"
        relation = _relation(kind, f"{element.id}.{element.challenges}", (element.id,), element.challenges)
        yield relation | {"isCounter": "true"}


def _link(
    case: Case, known: Known, points: Points, element: Element, sources: tuple[str, ...], target: str
) -> dict[str, str]:
    """Support from sources to a target, with the confidence arguments of the points on `element`'s lines to them."""
    kind = "AssertedEvidence" if _is_reference(known[sources[0]]) else "AssertedInference"
    relation = _relation(kind, f"{target}.{'-'.join((element.id, sources[0]))}", sources, target)
    held = [name for name, related in points.get(element.id, {}).items() if {*related} & {*sources}]
    claims = " ".join(case.duties[ACPS[name]] for name in held)
    return relation | ({"metaClaim": claims} if claims else {})


def _relation(kind: str, name: str, sources: tuple[str, ...], target: str) -> dict[str, str]:
    named = {"xsi:type": f"sacm:{kind}", "xmi:id": name, "assertionDeclaration": "asserted", "isCounter": "false"}
    return {**named, "source": " ".join(sources), "target": target}


def _named(parent: ElementTree.Element, text: str) -> None:
    under(parent, "name", lang="en", content=text)


def _tagged(parent: ElementTree.Element, values: Mapping[str, str]) -> None:
    owner = parent.get("xmi:id")
    for number, (key, text) in enumerate(values.items(), 1):
        if text:
            one = under(parent, "taggedValue", {"xmi:id": f"{owner}.tag{number}"})
            under(under(one, "key"), "value", content=key)
            under(under(one, "content"), "value", content=text)
