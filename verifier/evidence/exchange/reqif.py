"""Tables as ReqIF 1.2 (OMG formal/16-07-01): a requirement for each row, with the columns as attributes.

What is shown of requirements can also be written into a document of somebody else, whose identifiers, texts and links
stay as they are.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from verifier.base.arrays import grouped
from verifier.base.errors import InputError, Place, one_line
from verifier.base.files import read_bytes
from verifier.base.libraries import library
from verifier.base.words import counted, some_of
from verifier.evidence.exchange.xml import under, xml_text

_NAMESPACE = "http://www.omg.org/spec/ReqIF/20110401/reqif.xsd"
_TEXT, _DEFINITION = "DATATYPE-DEFINITION-STRING", "ATTRIBUTE-DEFINITION-STRING"
TEXT_TYPE, PREFIX = "verifier-text", "verifier-"


def reqif_text(
    rows: Sequence[Mapping[str, str]], columns: Sequence[str], kind: str, title: str, day: str, note: str = ""
) -> str:
    """The rows as ReqIF.

    Args:
        columns: of the rows; the first one is the name of each.
        kind: what a row is, which begins the identifiers: `clause-1`.
        day: on which the document counts as changed, as 2026-05-28.
    """
    time = f"{day}T00:00:00Z"
    root = ElementTree.Element("REQ-IF", {"xmlns": _NAMESPACE})
    header = under(under(root, "THE-HEADER"), "REQ-IF-HEADER", IDENTIFIER="header")
    for name, told in (
        ("COMMENT", note), ("CREATION-TIME", time), ("REQ-IF-TOOL-ID", "verifier"), ("REQ-IF-VERSION", "1.0"),
        ("SOURCE-TOOL-ID", "verifier"), ("TITLE", one_line(title)),
    ):  # fmt: skip
        under(header, name).text = told
    content = under(under(root, "CORE-CONTENT"), "REQ-IF-CONTENT")
    common = {"LAST-CHANGE": time}
    kinds = under(content, "DATATYPES")
    limits = {"LONG-NAME": "text", "MAX-LENGTH": "32000"}
    under(kinds, "DATATYPE-DEFINITION-STRING", limits | common, IDENTIFIER="text")
    types = under(content, "SPEC-TYPES")
    of_row = under(types, "SPEC-OBJECT-TYPE", {"LONG-NAME": kind, **common}, IDENTIFIER=f"{kind}-type")
    under(types, "SPECIFICATION-TYPE", {"LONG-NAME": "trace", **common}, IDENTIFIER="trace-type")
    attributes = under(of_row, "SPEC-ATTRIBUTES")
    for name in columns:
        named = {"LONG-NAME": name, **common}
        one = under(attributes, "ATTRIBUTE-DEFINITION-STRING", named, IDENTIFIER=f"attribute-{name}")
        under(under(one, "TYPE"), "DATATYPE-DEFINITION-STRING-REF").text = "text"
    objects, specifications = under(content, "SPEC-OBJECTS"), under(content, "SPECIFICATIONS")
    whole = under(specifications, "SPECIFICATION", {"LONG-NAME": title, **common}, IDENTIFIER="trace")
    under(under(whole, "TYPE"), "SPECIFICATION-TYPE-REF").text = "trace-type"
    children = under(whole, "CHILDREN")
    for k, row in enumerate(rows, 1):
        one = under(objects, "SPEC-OBJECT", {"LONG-NAME": row[columns[0]], **common}, IDENTIFIER=f"{kind}-{k}")
        under(under(one, "TYPE"), "SPEC-OBJECT-TYPE-REF").text = f"{kind}-type"
        values = under(one, "VALUES")
        for name in (column for column in columns if row[column]):
            value = under(values, "ATTRIBUTE-VALUE-STRING", {"THE-VALUE": row[name]})
            under(under(value, "DEFINITION"), "ATTRIBUTE-DEFINITION-STRING-REF").text = f"attribute-{name}"
        place = under(children, "SPEC-HIERARCHY", common, IDENTIFIER=f"place-{k}")
        under(under(place, "OBJECT"), "SPEC-OBJECT-REF").text = f"{kind}-{k}"
    return xml_text(root)


def reqif_into(path: str, rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> tuple[bytes, str]:
    """A ReqIF document of somebody else, with the columns of each row as attributes of its requirement, and in words
    how many requirements got none, and which rows found none.

    A requirement is that of a row where its LONG-NAME, its identifier, or one of its texts is the row's
    `requirement`. Attributes that an earlier call wrote go, wherever they are; everything else stays as it is.

    Raises:
        InputError: it cannot be read, holds no requirement of a row, or two for one.
        UsageError: the library is not installed.
    """
    etree = library("lxml.etree")
    try:
        parser = etree.XMLParser(resolve_entities=False, no_network=True)
        root = etree.fromstring(read_bytes(path), parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise InputError(f"expected ReqIF: {one_line(str(error))}", Place(path)) from None
    objects, content = list(root.iter(_tag("SPEC-OBJECT"))), root.find(f".//{_tag('REQ-IF-CONTENT')}")
    if root.tag != _tag("REQ-IF") or content is None:
        raise InputError(f"expected ReqIF, a root REQ-IF of {_NAMESPACE} with content", Place(path))
    for values in [*root.iter(_tag("VALUES"))]:
        for value in list(values):
            if value.findtext(f"{_tag('DEFINITION')}/{_tag(_DEFINITION + '-REF')}", "").startswith(PREFIX):
                values.remove(value)
    named = grouped((row["requirement"], row) for row in rows)
    nodes = {name: [node for node in objects if name in _names(node)] for name in named}
    if twice := [name for name, mine in nodes.items() if len(mine) > 1]:
        raise InputError(f"two requirements are called {twice[0]}", Place(path), "give one of them another LONG-NAME")
    if not any(nodes.values()):
        said = f"{counted(len(objects), 'requirement')} in it, and none is called {some_of([*named])}"
        raise InputError(said, Place(path), "LONG-NAME, identifier or a text has to be the name in the spec")
    for name, mine in nodes.items():
        for node in mine:
            _write(content, node, {column: "; ".join(row[column] for row in named[name]) for column in columns}, path)
    written: bytes = etree.tostring(root.getroottree(), xml_declaration=True, encoding="UTF-8")
    bare = len(objects) - len({id(node) for mine in nodes.values() for node in mine})
    told = [f"{counted(bare, 'requirement')} in it of which nothing is shown"] if bare else []
    told += [f"not in it: {some_of(gone)}"] if (gone := [name for name, mine in nodes.items() if not mine]) else []
    return written, "; ".join(told)


def _tag(name: str) -> str:
    return f"{{{_NAMESPACE}}}{name}"


def _names(one: Any) -> set[str]:
    texts = {entry.get("THE-VALUE") for entry in one.iter(_tag("ATTRIBUTE-VALUE-STRING"))}
    return {one.get("IDENTIFIER"), one.get("LONG-NAME"), *texts}


def _within(parent: Any, tag: str) -> Any:
    """The element of a tag in another, made at its front where it is missing."""
    element = parent.find(_tag(tag))
    if element is None:
        parent.insert(0, element := parent.makeelement(_tag(tag)))
    return element


def _write(content: Any, one: Any, values: Mapping[str, str], path: str) -> None:
    """Attributes on a requirement, with their definitions on its type and their data type."""
    changed = one.get("LAST-CHANGE", "1970-01-01T00:00:00Z")
    kinds = _within(content, "DATATYPES")
    if all(kind.get("IDENTIFIER") != TEXT_TYPE for kind in kinds):
        limits = {"LONG-NAME": "text", "MAX-LENGTH": "32000"}
        under(kinds, _tag(_TEXT), {"IDENTIFIER": TEXT_TYPE, "LAST-CHANGE": changed, **limits})
    named = one.findtext(f"{_tag('TYPE')}/{_tag('SPEC-OBJECT-TYPE-REF')}")
    types = content.iter(_tag("SPEC-OBJECT-TYPE"))
    owner = next((entry for entry in types if entry.get("IDENTIFIER") == named), None)
    if owner is None:
        raise InputError(f"requirement {one.get('IDENTIFIER')} is of no type that is there", Place(path))
    definitions, mine = _within(owner, "SPEC-ATTRIBUTES"), _within(one, "VALUES")
    known = {definition.get("IDENTIFIER") for definition in definitions}
    ours = {f"{PREFIX}{named}-{column}": column for column in values}
    for name, column in ours.items():
        if name not in known:
            told = {"IDENTIFIER": name, "LAST-CHANGE": changed, "LONG-NAME": f"{PREFIX}{column}"}
            kind = under(under(definitions, _tag(_DEFINITION), told), _tag("TYPE"))
            under(kind, _tag(f"{_TEXT}-REF")).text = TEXT_TYPE
        if values[column]:
            value = under(mine, _tag("ATTRIBUTE-VALUE-STRING"), {"THE-VALUE": values[column]})
            under(under(value, _tag("DEFINITION")), _tag(f"{_DEFINITION}-REF")).text = name
