"""Bins: distance, and whatever else the detector's behaviour may depend on, as a product of named binnings.

Distance always comes first. A further *variable* says what it belongs to, because that decides what column "empty"
(there is no object) can mean:

* place: every point of the scene has it, also one where there is no object (`bearing_deg`). "Empty" is counted in
  each of its bins.
* frame: everything in a frame shares it (`sequence`). A frame is counted in its own bin only.
* object: only an object has it (`occluded`, `speed_mps`, any attribute). Nothing has no occlusion, so column
  "empty" looks at distance, place and frame alone, and is the same in all bins of such a variable.

Ranges are half-open, `[low, high)`. The bins are numbered with distance slowest and the last variable fastest.

In a confusion document the further variables are a list, and each bin says its ranges.
"""

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from verifier.base.errors import InputError, UsageError, shown

Scope: TypeAlias = Literal["place", "frame", "object"]

SCOPES: dict[str, Scope] = {"bearing_deg": "place", "sequence": "frame"}
"""Variables that do not belong to an object; every other name is an attribute of the annotations."""
LARGEST_BIN_COUNT = 100_000
RESERVED_NAMES = ("distance", "distance_m", "counts", "score_threshold", "true", "predicted")


@dataclass(frozen=True)
class Variable:
    """One named binning beside distance: by ranges of numbers (`edges`) or by values (`groups`).

    Attributes:
        name: of an attribute, or of one of `SCOPES`.
        edges: increasing; bin k holds `[edges[k], edges[k + 1])`. The first may be -inf, the last inf.
        groups: (name of the bin, values that fall into it); a value of text may have the wildcards `*` and `?`,
            and the first group that fits has it.
    """

    name: str
    edges: tuple[float, ...] = ()
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_]\w*", self.name) or self.name in RESERVED_NAMES:
            raise UsageError(f"{shown(self.name)} cannot be the name of a variable")
        if bool(self.edges) == bool(self.groups):
            raise UsageError(f"variable '{self.name}' needs either edges or values")
        if self.edges and not _increasing(self.edges):
            raise UsageError(f"variable '{self.name}': expected at least two increasing edges")
        names = [name for name, _ in self.groups]
        if len(set(names)) != len(names) or not all(name and values and all(values) for name, values in self.groups):
            raise UsageError(f"variable '{self.name}': a bin occurs twice, or has no name or no value")
        if self.edges and self.scope == "frame":
            raise UsageError(f"variable '{self.name}' has no numbers: give values")

    @property
    def scope(self) -> Scope:
        """What the variable belongs to."""
        return SCOPES.get(self.name, "object")

    @property
    def count(self) -> int:
        """Number of bins."""
        return len(self.groups) or len(self.edges) - 1

    def bin_text(self, index: int) -> str:
        """A bin for people: `[0, 5)` or the name of its group."""
        if self.groups:
            return self.groups[index][0]
        return f"[{self.edges[index]:g}, {self.edges[index + 1]:g})"

    def bins_of(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """(n,) the bin of each value; -1 where no bin holds it, NaN included.

        Raises:
            UsageError: the variable is binned by ranges and the values are no numbers.
        """
        if self.edges:
            if values.dtype.kind not in "biuf":
                raise UsageError(f"variable '{self.name}' is text: bin it by values, not by edges")
            return bins_between(self.edges, values)
        distinct, inverse = np.unique(values, return_inverse=True)
        bins = np.array([self._group_of(value) for value in distinct.tolist()], dtype=np.int64)
        return bins[inverse.reshape(-1)] if len(bins) else np.zeros(len(values), dtype=np.int64)

    def bin_named(self, text: str) -> int:
        """The bin that `text` names or holds; UsageError when there is none."""
        for index in range(self.count):
            if text == self.bin_text(index):
                return index
        number = _number(text)
        if self.edges and number is not None and (index := int(bins_between(self.edges, number))) >= 0:
            return index
        if self.groups and (index := self._group_of(text if number is None else number)) >= 0:
            return index
        known = ", ".join(self.bin_text(index) for index in range(self.count))
        raise UsageError(f"variable '{self.name}' has no bin for {shown(text)}; it has: {known}")

    def _group_of(self, value: Any) -> int:
        for index, (_, patterns) in enumerate(self.groups):
            for pattern in patterns:
                if isinstance(value, str) and fnmatchcase(value, pattern):
                    return index
                if not isinstance(value, str) and _number(pattern) == value:
                    return index
        return -1


@dataclass(frozen=True)
class Bins:
    """A product of binnings: `edges_m` of the true object's distance in metres, then the variables in order."""

    edges_m: tuple[float, ...]
    variables: tuple[Variable, ...] = ()

    def __post_init__(self) -> None:
        if not _increasing(self.edges_m) or self.edges_m[0] < 0:
            raise UsageError("the distance bins need at least two increasing edges from 0 on")
        names = [variable.name for variable in self.variables]
        if len(set(names)) != len(names):
            raise UsageError("a variable is named twice")
        if self.count > LARGEST_BIN_COUNT:
            raise UsageError(f"{self.count} bins; at most {LARGEST_BIN_COUNT} are counted")

    @property
    def shape(self) -> tuple[int, ...]:
        """Bins of distance, then of each variable."""
        return (len(self.edges_m) - 1, *(variable.count for variable in self.variables))

    @property
    def count(self) -> int:
        """Number of bins of the product."""
        return math.prod(self.shape)

    def distance_part(self, bins: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) the distance bin of each of these bins of the product."""
        return bins // math.prod(self.shape[1:])

    @property
    def of_objects(self) -> tuple[bool, ...]:
        """For each axis of `shape` whether only objects have it."""
        return (False, *(variable.scope == "object" for variable in self.variables))

    def distance_bins(self, distance_m: NDArray[np.float64]) -> NDArray[np.int64]:
        """(n,) the distance bin of each distance in metres; -1 where no bin holds it, NaN included."""
        return bins_between(self.edges_m, distance_m)

    def text(self, index: int) -> str:
        """A bin for people: `[0, 10) m, occluded 0`."""
        first, *rest = np.unravel_index(index, self.shape)
        low, high = self.edges_m[int(first)], self.edges_m[int(first) + 1]
        parts = [
            f"{variable.name} {variable.bin_text(int(at))}" for variable, at in zip(self.variables, rest, strict=True)
        ]
        return ", ".join([f"[{low:g}, {high:g}) m", *parts])


def bins_between(edges: ArrayLike, values: ArrayLike) -> NDArray[np.int64]:
    """The bin k of each value, `[edges[k], edges[k + 1])`; -1 where no bin holds it, NaN included."""
    edges = np.asarray(edges)
    bins = np.searchsorted(edges, values, side="right") - 1  # NaN is sorted after every number
    return np.where(bins < len(edges) - 1, bins, -1)


def parse_edges(text: str, what: str = "--bins") -> tuple[float, ...]:
    """Edges from text: `0,10,20,inf`, or `0..100:10` for every 10 from 0 to 100; both may be mixed by commas."""
    edges: list[float] = []
    for part in text.split(","):
        span = re.fullmatch(r"\s*([^:]+)\.\.([^:]+):([^:]+)", part)
        texts = span.groups() if span else (part,)
        numbers = [number for number in map(_number, texts) if number is not None]
        if len(numbers) < len(texts):
            raise UsageError(f"{what}: expected edges as 0,10,20,inf or 0..100:10, got {shown(text)}")
        edges += _stepped(numbers[0], numbers[1], numbers[2], what) if span else numbers
    if not _increasing(tuple(edges)):
        raise UsageError(f"{what}: expected at least two increasing edges, got {shown(text)}")
    return tuple(edges)


def parse_variable(text: str) -> Variable:
    """A variable from text.

    `speed_mps=edges:0,2,5,inf` has ranges; `occluded=0,1,2` has one bin per value; `occluded=low:0|1,high:2|3` and
    `sequence=night:00*|0107,day:*` have named bins of several values.
    """
    name, _, bins = (part.strip() for part in text.partition("="))
    if not name or not bins:
        raise UsageError(f"--by: expected NAME=VALUE,VALUE,... or NAME=edges:LOW,...,HIGH, got {shown(text)}")
    if bins.startswith("edges:"):
        return Variable(name, edges=parse_edges(bins.removeprefix("edges:"), f"--by {name}"))
    groups = []
    for part in bins.split(","):
        title, colon, values = part.partition(":")
        groups.append((title.strip(), tuple(name.strip() for name in (values if colon else title).split("|"))))
    return Variable(name, groups=tuple(groups))


def _stepped(low: float, high: float, step: float, what: str) -> list[float]:
    """`low`, `low + step`, ..., `high`."""
    if not (math.isfinite(low) and math.isfinite(high) and 0 < step < math.inf and low < high):
        raise UsageError(f"{what}: expected LOW..HIGH:STEP with LOW < HIGH and STEP > 0")
    count = round((high - low) / step)
    if count > LARGEST_BIN_COUNT or not math.isclose(low + count * step, high, rel_tol=1e-12):
        raise UsageError(f"{what}: {high:g} is not a whole number of steps of {step:g} from {low:g}")
    # Each edge on its own: adding the step again and again would drift away from the decimals that were meant.
    return [*(round(low + k * step, 12) for k in range(count)), high]


def _increasing(edges: tuple[float, ...]) -> bool:
    return len(edges) >= 2 and all(low < high for low, high in pairwise(edges))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value


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


def where_json(variables: Sequence[Variable], at: Sequence[int]) -> dict[str, object]:
    """The ranges of the further variables as a bin of the document says them."""
    ranges: dict[str, object] = {}
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
