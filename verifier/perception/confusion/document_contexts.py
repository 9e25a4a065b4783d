"""The keys `contexts` of a confusion document, from and to JSON (see `perception.confusion.contexts`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import UsageError, nearest_name, shown
from verifier.perception.confusion.context_selection import coarser_candidates
from verifier.perception.confusion.contexts import UNTRACKED, Contexts, OfTracks, ReplayTest, ResidualTest
from verifier.perception.confusion.counts import ContextCounts
from verifier.perception.confusion.document_variables import Fail, escaped, is_number
from verifier.perception.confusion.matrices import LARGEST_COUNT
from verifier.perception.confusion.tally import Tally
from verifier.perception.settings import Gaps, Units

REQUIRED = ("kind", "cap", "of", "gaps")
KEYS = (*REQUIRED, "period_s", "tests", "units", "tracks", "replays")


def context_head(found: ContextCounts) -> dict[str, Any]:
    """What the document says of the context function."""
    head: dict[str, Any] = {"kind": found.contexts.kind, "cap": found.contexts.cap, "of": "outcome"}
    head["gaps"] = found.gaps
    if found.period_s is not None:
        head["period_s"] = found.period_s
    if found.units is not None:
        head["units"] = found.units
    if found.tests:
        head["tests"] = [asdict(each) for each in found.tests]
    if found.tracks is not None:
        head["tracks"] = {label: asdict(each) for label, each in found.tracks.items()}
    return {**head, "replays": [asdict(each) for each in found.replays]} if found.replays else head


def context_bin(found: ContextCounts, index: int, *, family: bool) -> dict[str, Any]:
    """The matrices of one bin by context; those without items are left out."""
    names = (*found.contexts.names, UNTRACKED)
    matrices = found.counts[:, index] if family else found.counts[0, index][None]
    by_context = matrices.transpose(1, 0, 2, 3) if family else matrices[0]
    return {name: own.tolist() for name, own in zip(names, by_context, strict=True) if own.any()}


def context_rows(found: ContextCounts, sequence: int) -> list[list[int]]:
    """The rows [bin, context, predicted, true, count, ...] of one sequence."""
    assert found.tally is not None
    own = found.tally.of_sequence(sequence)
    at_bin, context = np.divmod(own.index[:, 1], found.per_bin)
    rows: list[list[int]] = np.column_stack([at_bin, context, own.index[:, 2:], own.counts]).tolist()
    return rows


@dataclass(frozen=True)
class ContextsReader:
    """Reads the counts by context of a document.

    Attributes:
        contexts: the context function.
        gaps: see `ContextCounts`.
        period_s: see `ContextCounts`.
        fail: makes the complaint from a JSON pointer and a text.
    """

    contexts: Contexts
    gaps: Gaps
    period_s: float | None
    tests: tuple[ResidualTest, ...]
    fail: Fail
    units: Units | None = None
    tracks: Mapping[str, OfTracks] | None = None
    replays: tuple[ReplayTest, ...] = ()

    @classmethod
    def of(cls, found: Any, fail: Fail) -> ContextsReader:
        """Read the key `contexts` of the document."""
        if not isinstance(found, Mapping):
            raise fail("/contexts", f"expected an object with {', '.join(REQUIRED)}, got {shown(found)}")
        for key in found:
            if key not in KEYS:
                nearest = nearest_name(key, KEYS)
                hint = f"did you mean '{nearest}'?" if nearest else f"known: {', '.join(KEYS)}"
                raise fail("/contexts/" + escaped(key), f"unknown key {shown(key)}", hint)
        for key in REQUIRED:
            if key not in found:
                raise fail("/contexts", f"missing key '{key}'")
        if found["kind"] not in ("run", "last"):
            raise fail("/contexts/kind", f"expected 'run' or 'last', got {shown(found['kind'])}")
        if type(found["cap"]) is not int:
            raise fail("/contexts/cap", f"expected an integer, got {shown(found['cap'])}")
        try:
            contexts = Contexts(found["kind"], found["cap"])
        except UsageError as error:
            raise fail("/contexts/cap", str(error)) from None
        if found["of"] != "outcome":
            raise fail("/contexts/of", f"expected 'outcome', got {shown(found['of'])}")
        if found["gaps"] not in get_args(Gaps):
            raise fail("/contexts/gaps", f"expected {', '.join(get_args(Gaps))}, got {shown(found['gaps'])}")
        period = found.get("period_s")
        if period is not None and not (is_number(period) and 0 < period <= 1e6):
            raise fail("/contexts/period_s", f"expected seconds above 0, at most 1e6, got {shown(period)}")
        units = found.get("units")
        if units is not None and units not in get_args(Units):
            raise fail("/contexts/units", f"expected {', '.join(get_args(Units))}, got {shown(units)}")
        tests = _tests(found.get("tests", []), contexts, fail)
        tracks = None if "tracks" not in found else _tracks(found["tracks"], fail)
        replays = _replays(found.get("replays", []), contexts, fail)
        period = None if period is None else float(period)
        return cls(contexts, found["gaps"], period, tests, fail, units, tracks, replays)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all contexts, untracked items last."""
        return (*self.contexts.names, UNTRACKED)

    def bin(self, path: str, found: Any) -> dict[int, Any]:
        """The matrices of one bin by number of the context, as they are written."""
        if not isinstance(found, Mapping):
            raise self.fail(path, f"expected an object from contexts to matrices, got {shown(found)}")
        numbers = {name: number for number, name in enumerate(self.names)}
        for name in found:
            if name not in numbers:
                nearest = nearest_name(name, numbers)
                hint = (
                    f"did you mean '{nearest}'?" if nearest else f"{self.contexts} has {', '.join(self.names[:4])}.."
                )
                raise self.fail(f"{path}/{escaped(name)}", f"unknown context {shown(name)}", hint)
        return {numbers[name]: matrix for name, matrix in found.items()}

    def check_sums(self, by_context: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Refuse matrices by context that do not add up to those of their bin."""
        differing = np.argwhere(by_context.sum(axis=2) != counts)
        if len(differing):
            member, at_bin, predicted, true = differing[0].tolist()
            raise self.fail(
                f"/bins/{at_bin}/contexts",
                f"the matrices add up to {by_context[member, at_bin, :, predicted, true].sum()} at predicted "
                f"{predicted}, true {true}, and /bins/{at_bin}/counts has {counts[member, at_bin, predicted, true]}",
            )

    def counts(self, table: NDArray[np.int64], tally: Tally | None) -> ContextCounts:
        """All of it; where sequences are given, `tally` must add up to the table."""
        if tally is not None:
            dense = tally.dense(table.shape[1] * table.shape[2], table.shape[-1]).reshape(table.shape)
            differing = np.argwhere(dense != table)
            if len(differing):
                _, at_bin, context, predicted, true = differing[0].tolist()
                raise self.fail(
                    "/sequences",
                    f"the counts of the sequences do not add up to /bins/{at_bin}/contexts/{self.names[context]} at "
                    f"predicted {predicted}, true {true}",
                )
        how = self.tests, self.units, self.tracks, self.replays
        return ContextCounts(self.contexts, self.gaps, self.period_s, table, tally, *how)


def _tests(found: Any, contexts: Contexts, fail: Fail) -> tuple[ResidualTest, ...]:
    if not isinstance(found, list):
        raise fail("/contexts/tests", f"expected a list, got {shown(found)}")
    known = set(map(str, coarser_candidates(contexts)))
    tests: dict[tuple[str, str], ResidualTest] = {}
    for number, each in enumerate(found):
        path = f"/contexts/tests/{number}"
        if not isinstance(each, Mapping) or set(each) != set(ResidualTest.__dataclass_fields__):
            raise fail(path, f"expected an object with {', '.join(ResidualTest.__dataclass_fields__)}")
        if not isinstance(each["label"], str) or each["contexts"] not in known:
            raise fail(path, f"expected a class and contexts no finer than {contexts}, got {shown(each)}")
        if each["z"] is not None and not is_number(each["z"]):
            raise fail(f"{path}/z", f"expected a number or null, got {shown(each['z'])}")
        if not is_number(each["p_value"]) or not 0 < each["p_value"] <= 1:
            raise fail(f"{path}/p_value", f"expected a number above 0, at most 1, got {shown(each['p_value'])}")
        if type(each["permutations"]) is not int or not 1 <= each["permutations"] <= LARGEST_COUNT:
            raise fail(f"{path}/permutations", f"expected a number from 1, got {shown(each['permutations'])}")
        key = each["label"], each["contexts"]
        if key in tests:
            raise fail(path, f"{each['label']} with {each['contexts']} has a test already")
        tests[key] = ResidualTest(**each)
    return tuple(tests.values())


def _tracks(found: Any, fail: Fail) -> dict[str, OfTracks]:
    def is_count(value: Any) -> bool:
        return type(value) is int and 0 <= value <= LARGEST_COUNT

    if not isinstance(found, Mapping):
        raise fail("/contexts/tracks", f"expected an object from classes to their tracks, got {shown(found)}")
    tracks = {}
    for label, each in found.items():
        path = f"/contexts/tracks/{escaped(str(label))}"
        if not isinstance(each, Mapping) or set(each) != set(OfTracks.__dataclass_fields__):
            raise fail(path, f"expected an object with {', '.join(OfTracks.__dataclass_fields__)}")
        if not is_count(each["longest_wrong_run"]):
            raise fail(f"{path}/longest_wrong_run", "expected a number of frames from 0")
        pairs = []
        for name in ("with_drive", "later"):
            pair = each[name]
            if not isinstance(pair, list) or len(pair) != 2 or not all(map(is_count, pair)) or pair[0] > pair[1]:
                raise fail(f"{path}/{name}", f"expected wrong first outcomes and tracks, got {shown(pair)}")
            pairs.append((pair[0], pair[1]))
        tracks[label] = OfTracks(each["longest_wrong_run"], *pairs)
    return tracks


def _replays(found: Any, contexts: Contexts, fail: Fail) -> tuple[ReplayTest, ...]:
    if not isinstance(found, list):
        raise fail("/contexts/replays", f"expected a list, got {shown(found)}")
    replays = []
    for number, each in enumerate(found):
        path = f"/contexts/replays/{number}"
        if not isinstance(each, Mapping) or set(each) != set(ReplayTest.__dataclass_fields__):
            raise fail(path, f"expected an object with {', '.join(ReplayTest.__dataclass_fields__)}")
        for name in ("label", "contexts", "confirm", "range"):
            if not isinstance(each[name], str):
                raise fail(f"{path}/{name}", f"expected a text, got {shown(each[name])}")
        try:
            contexts.coarsening(Contexts.parsed(each["contexts"]))
        except UsageError as error:
            raise fail(f"{path}/contexts", str(error)) from None
        for name, least in (("frames", 1), ("tracks", 1), ("not_confirmed", 0)):
            if type(each[name]) is not int or not least <= each[name] <= LARGEST_COUNT:
                raise fail(f"{path}/{name}", f"expected a number from {least}, got {shown(each[name])}")
        for name, most in (("expected", each["tracks"]), ("not_confirmed", each["tracks"]), ("p_value", 1)):
            if not is_number(each[name]) or not 0 <= each[name] <= most:
                raise fail(f"{path}/{name}", f"expected a number from 0 to {most}, got {shown(each[name])}")
        replays.append(ReplayTest(**each))
    return tuple(replays)
