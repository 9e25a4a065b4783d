"""The further variables of a confusion document, and the ranges that each bin says, from and to JSON."""

import math
import sys
from collections.abc import Sequence
from typing import Any, Protocol

from verifier.base.errors import InputError, UsageError, shown
from verifier.perception.confusion.bins import Variable

ORDER_HINT = "distance changes slowest, the last variable fastest, and each bin says its ranges"


class Fail(Protocol):
    """Makes the complaint about the element at a JSON pointer."""

    def __call__(self, path: str, message: str, hint: str | None = None) -> InputError:
        """The complaint; `hint` says what to do."""


def read_variables(content: Any, fail: Fail) -> tuple[Variable, ...]:
    """The further variables of a document; `fail` makes the complaint about an element."""
    if not isinstance(content, list):
        raise fail("/variables", f"expected a list, got {shown(content)}")
    return tuple(_variable(f"/variables/{index}", entry, fail) for index, entry in enumerate(content))


def _variable(path: str, content: Any, fail: Fail) -> Variable:
    keys = set(content) if isinstance(content, dict) else set()
    if keys not in ({"name", "of", "edges"}, {"name", "of", "values"}) or not isinstance(content["name"], str):
        raise fail(path, "expected an object with 'name', 'of', and either 'edges' or 'values'")
    edges: tuple[float, ...] = ()
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    if "edges" in content:
        if not isinstance(content["edges"], list):
            raise fail(f"{path}/edges", f"expected a list, got {shown(content['edges'])}")
        last = len(content["edges"]) - 1
        edges = tuple(_edge(f"{path}/edges/{k}", edge, k, last, fail) for k, edge in enumerate(content["edges"]))
    else:
        for name, values in content["values"].items() if isinstance(content["values"], dict) else ():
            if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
                raise fail(f"{path}/values/{escaped(name)}", "expected a list of strings")
            groups += ((name, tuple(values)),)
    try:
        variable = Variable(content["name"], edges, groups)
    except UsageError as error:
        raise fail(path, str(error)) from None
    if content["of"] != variable.scope:
        raise fail(f"{path}/of", f"expected {variable.scope!r}, got {shown(content['of'])}")
    return variable


def _edge(path: str, content: Any, index: int, last: int, fail: Fail) -> float:
    if content is None and index in (0, last):
        return math.inf if index else -math.inf
    if not is_number(content):
        raise fail(path, f"expected a number, got {shown(content)}")
    return float(content)


def where_json(variables: Sequence[Variable], at: Sequence[int]) -> dict[str, Any]:
    """The ranges of the further variables as a bin of the document says them."""
    ranges: dict[str, Any] = {}
    for variable, index in zip(variables, at, strict=True):
        if variable.groups:
            ranges[variable.name] = variable.bin_text(index)
        else:
            ranges[variable.name] = [edge_json(edge) for edge in variable.edges[index : index + 2]]
    return ranges


def edge_json(edge: float) -> int | float | None:
    """An edge as a JSON number; null where it is infinite."""
    if math.isinf(edge):
        return None
    return int(edge) if float(edge).is_integer() else float(edge)


def is_number(content: Any) -> bool:
    """Whether a decoded JSON value is a number that a double can hold."""
    return isinstance(content, int | float) and not isinstance(content, bool) and abs(content) <= sys.float_info.max


def escaped(key: str) -> str:
    """A key as it stands in a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def extended(edges: list[float], path: str, low: float, high: float, fail: Fail) -> list[float]:
    """The edges with those of the next bin, which begins where the one before it ends."""
    if edges and low != edges[-1]:
        relation = "overlaps or precedes" if low < edges[-1] else "leaves a gap after"
        raise fail(
            path,
            f"bin [{low:g}, {high:g}) {relation} the bin that ends at {edges[-1]:g} m",
            "bins are half-open, sorted, and each begins where the one before it ends",
        )
    return [*edges, high] if edges else [low, high]


def distance_range(path: str, content: Any, last: bool, fail: Fail) -> tuple[float, float]:
    """The ends of a distance bin in metres; only the last one may be without an upper end."""
    if not isinstance(content, list) or len(content) != 2:
        raise fail(path, f"expected [low, high] in metres, got {shown(content)}")
    low = _metres(f"{path}/0", content[0], fail)
    if content[1] is None:
        if not last:
            raise fail(f"{path}/1", "only the last bin may be without an upper end")
        return low, math.inf
    high = _metres(f"{path}/1", content[1], fail)
    if not low < high:
        raise fail(path, f"expected low < high, got {shown(content)}")
    return low, high


def _metres(path: str, content: Any, fail: Fail) -> float:
    if not is_number(content) or not 0 <= content <= 1e9:
        raise fail(path, f"expected a distance in metres from 0 to 1e9, got {shown(content)}")
    return float(content)
