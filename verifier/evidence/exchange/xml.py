"""XML as text."""

from collections.abc import Mapping
from types import MappingProxyType
from xml.etree import ElementTree

from verifier.base.errors import one_line


def under(
    parent: ElementTree.Element, tag: str, attributes: Mapping[str, str] = MappingProxyType({}), **more: str
) -> ElementTree.Element:
    """A new element in another; texts on one line, without what XML cannot hold."""
    element = parent.makeelement(tag, {name: one_line(text) for name, text in {**attributes, **more}.items()})
    parent.append(element)
    return element


def xml_text(root: ElementTree.Element) -> str:
    """The whole file."""
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"
