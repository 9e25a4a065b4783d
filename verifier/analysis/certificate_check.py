"""A checker for certificates of guaranteed bounds: exact arithmetic, and nothing shared with what computed them.

Doubles are fractions with a power of two below, rates are whole numbers of billionths; so every inequality is one of
whole numbers and is decided exactly. `certificate` says what is checked and why it is a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.binomial import tail_is_at_most
from verifier.analysis.certificate import NO_COMPONENT, TARGET, Box, Certificate, Split, Tree
from verifier.errors import InputError
from verifier.ltl import holds_on_lasso, parse_formula

BILLION = 10**9
_SCALE = 2**1074
"""Every finite double is a whole number of 1/_SCALE."""
_ROUNDING = Fraction(1, 2**52)
LONGEST_WORK = 20_000_000
"""Pairs of letters that are looked at for lassos; further lassos are listed as claims."""

Bounds = NDArray[np.int64]


@dataclass(frozen=True)
class CheckedCertificate:
    """What a certificate proves.

    Attributes:
        bounds: for each initial state the proven bound on the formula's probability; None where nothing is claimed.
        lassos: how many components of one state were decided by the meaning of the formula on a lasso.
        claims: what the proof takes for granted, for people.
    """

    bounds: tuple[Fraction | None, ...]
    lassos: int
    claims: tuple[str, ...]


def check_certificate(certificate: Certificate) -> CheckedCertificate:
    """Check every step of a proof.

    Raises:
        InputError: a step does not hold; the message says which.
    """
    claims = ["states 0 and 1 of the product are the obligations false and true, and its arrays describe the system"]
    _check_numbers(certificate)
    _check_evidence(certificate, claims)
    leaves = list(_leaves(certificate.tree, certificate.region.lower, certificate.region.upper))
    if sorted(number for number, _, _ in leaves) != list(range(len(certificate.boxes))):
        raise InputError("the boxes of the certificate are not the leaves of its tree")
    for number, lower, upper in leaves:
        _check_box(certificate, certificate.boxes[number], lower, upper)
    lassos = _check_components(certificate, claims)
    bounds = []
    for state, claimed in zip(certificate.subject.starts.tolist(), certificate.claimed, strict=True):
        worst = max(Fraction(float(box.value[state])) for box in certificate.boxes)
        proven, sign = (1 - worst, 1) if certificate.side == "lower" else (worst, -1)
        # The claim is what is proven, rounded outwards.
        if claimed is not None and not 0 <= sign * (proven - Fraction(claimed)) <= _ROUNDING:
            raise InputError(f"the certificate claims the bound {claimed!r} and proves {float(proven)!r}")
        bounds.append(None if claimed is None else proven)
    return CheckedCertificate(tuple(bounds), lassos, tuple(claims))


def _check_numbers(certificate: Certificate) -> None:
    """Every number must be one that the other arrays can hold."""
    subject, region = certificate.subject, certificate.region
    states, observations = subject.following.shape
    bins, groups, true = region.lower.shape
    told = [frozenset(each) for each in subject.observations]
    fits = [
        len(told) == observations == len(set(told)) and told[0] == frozenset(),
        len(subject.reports) == groups and all(frozenset(each) in told for each in subject.reports),
        all(len(each) == states for each in (subject.row, subject.letters, subject.parent)),
        states >= 2 and _within(subject.following, 0, states) and _within(subject.starts, 0, states),
        np.all(subject.following[0] == 0) and np.all(subject.following[1] == 1),
        _within(subject.row, -1, len(subject.bins)) and _within(subject.parent, -1, states),
        subject.bins.shape == subject.columns.shape and _within(subject.columns, -1, true),
        _within(subject.bins, 0, bins) and len(certificate.claimed) == len(subject.starts),
        np.all(subject.following[subject.row < 0] == subject.following[subject.row < 0][:, :1]),
        all(len(each) == states for box in certificate.boxes for each in (box.value, box.order, box.component)),
        all(np.all(np.isfinite(box.value) & (box.value >= 0)) for box in certificate.boxes),
        certificate.side in ("lower", "upper")
        and all(_within(box.component, TARGET, states) for box in certificate.boxes),
    ]
    if not all(fits):
        raise InputError(f"the arrays of the certificate do not fit together (test {fits.index(False) + 1})")


def _within(array: Bounds, low: int, end: int) -> bool:
    return bool(np.all((array >= low) & (array < end)))


def _check_evidence(certificate: Certificate, claims: list[str]) -> None:
    """The region must follow from the counts."""
    region, evidence = certificate.region, certificate.region.evidence
    if evidence is None:
        claims.append("the region of matrices is assumed; it does not come from data")
        return
    bound = evidence.alpha / (2 * max(evidence.events, 1))
    events = 0
    for index, column in np.argwhere(region.needed).tolist():
        items = evidence.items[index, :, column].tolist()
        lower, upper = region.lower[index, :, column].tolist(), region.upper[index, :, column].tolist()
        where = f"column {column} of bin {index}"
        if evidence.fixed[index, column]:
            claims.append(f"{where} is as it is by a convention of the counting")
            continue
        if sum(items) > 0 and len(items) > 1:
            events += 1 if len(items) == 2 else len(items)
        for count, low, high in zip(items, lower, upper, strict=True):
            rest = sum(items) - count
            if not (_end_holds(count, rest, low, bound) and _end_holds(rest, count, BILLION - high, bound)):
                raise InputError(f"the rates {low} to {high} billionths in {where} do not follow from its counts")
    free = ~region.needed[:, None, :]
    if np.any(free & ((region.lower != 0) | (region.upper != BILLION))):
        raise InputError("a column that does not matter is not left free")
    if events > evidence.events:
        raise InputError(f"alpha is divided among {evidence.events} events, and {events} are used")


def _end_holds(count: int, rest: int, low: int, bound: Fraction) -> bool:
    """Whether `low` billionths is a lower end for `count` of `count + rest` items."""
    return low == 0 or (count > 0 and tail_is_at_most(count + rest, count, low, bound))


def _leaves(tree: Tree, lower: Bounds, upper: Bounds) -> Iterator[tuple[int, Bounds, Bounds]]:
    """The numbers and bounds of the boxes that a tree cuts a region into."""
    if isinstance(tree, Split):
        place = tree.bin, tree.group, tree.true
        if not all(0 <= at < end for at, end in zip(place, lower.shape, strict=True)):
            raise InputError("the tree of the certificate cuts a rate that is not there")
        below, above = upper.copy(), lower.copy()
        below[place], above[place] = min(tree.at, upper[place]), max(tree.at, lower[place])
        yield from _leaves(tree.below, lower, below)
        yield from _leaves(tree.above, above, upper)
    elif tree is not None:
        yield tree, lower, upper
    elif np.all((lower <= upper).all(axis=1) & (lower.sum(axis=1) <= BILLION) & (upper.sum(axis=1) >= BILLION)):
        raise InputError("a part of the region that holds matrices is left out")


def _check_box(certificate: Certificate, box: Box, lower: Bounds, upper: Bounds) -> None:
    """The inequality of the values and the order, in every product state."""
    value = [_whole(each) for each in box.value.tolist()]
    order, component = box.order.tolist(), box.component.tolist()
    if component[0 if certificate.side == "lower" else 1] != TARGET:
        raise InputError("the obligation that decides against the bound is no target")
    step = _Step(certificate, lower, upper)
    for state, own in enumerate(component):
        if own == TARGET:
            if value[state] < _SCALE:
                raise InputError(f"target {state} has a value below 1")
            continue
        if step.greatest(state, value.__getitem__) > value[state] * step.scale(state):
            raise InputError(f"the value of state {state} is less than what its best choice gives")
        following = certificate.subject.following[state].tolist()
        high = [order[other] >= order[state] for other in following]
        stays = [own != NO_COMPONENT and component[other] == own for other in following]
        if any(not stay for stay in step.possible(state, high, stays)):
            raise InputError(f"state {state} can be left without any chance of coming closer to a decision")


def _whole(number: float) -> int:
    numerator, denominator = number.as_integer_ratio()
    return numerator * (_SCALE // denominator)


class _Step:
    """The greatest mean of whole numbers after one step, nature choosing anew for every draw."""

    def __init__(self, certificate: Certificate, lower: Bounds, upper: Bounds) -> None:
        subject = certificate.subject
        told = [frozenset(each) for each in subject.observations]
        number = {each: k for k, each in enumerate(told)}
        reports = [frozenset(each) for each in subject.reports]
        self._union: list[list[int]] = [[number.get(seen | report, -1) for report in reports] for seen in told]
        self._following: list[list[int]] = subject.following.tolist()
        self._draws: list[list[tuple[int, int]]] = [
            [(index, column) for index, column in zip(*pair, strict=True) if column >= 0]
            for pair in zip(subject.bins.tolist(), subject.columns.tolist(), strict=True)
        ]
        self._row: list[int] = subject.row.tolist()
        self._lower: list[list[list[int]]] = lower.tolist()
        self._upper: list[list[list[int]]] = upper.tolist()

    def scale(self, state: int) -> int:
        """By what the masses of all draws of a state must be divided."""
        result: int = BILLION ** len(self._draws_of(state))
        return result

    def greatest(self, state: int, after: Callable[[int], int]) -> int:
        """The greatest mean of `after`, times `scale`."""
        draws, following = self._draws_of(state), self._following[state]
        known: dict[tuple[int, int], int] = {}

        def best(draw: int, seen: int) -> int:
            if seen < 0:
                raise InputError("a union of reports is no observation")
            if draw == len(draws):
                return after(following[seen])
            if (draw, seen) not in known:
                lower, upper = self._bounds(draws[draw])
                left = BILLION - sum(lower)
                behind = [best(draw + 1, union) for union in self._union[seen]]
                total = sum(low * value for low, value in zip(lower, behind, strict=True))
                for value, low, high in sorted(zip(behind, lower, upper, strict=True), reverse=True):
                    more = min(high - low, left)
                    total += more * value
                    left -= more
                known[draw, seen] = total
            return known[draw, seen]

        return best(0, 0)

    def possible(self, state: int, allowed: list[bool], marks: list[bool]) -> set[bool]:
        """The marks of the observations that can occur while all mass is on allowed ones; none if that cannot be."""
        draws = self._draws_of(state)

        def reports(draw: int, seen: int) -> set[bool]:
            if draw == len(draws):
                return {marks[seen]} if allowed[seen] else set()
            lower, upper = self._bounds(draws[draw])
            behind = [reports(draw + 1, union) for union in self._union[seen]]
            if any(low > 0 and not below for low, below in zip(lower, behind, strict=True)):
                return set()
            if sum(high for high, below in zip(upper, behind, strict=True) if below) < BILLION:
                return set()
            found: set[bool] = set()
            for low, high, below in zip(lower, upper, behind, strict=True):
                if high > 0 and sum(lower) - low < BILLION:
                    found |= below
            return found

        return reports(0, 0)

    def _draws_of(self, state: int) -> list[tuple[int, int]]:
        return self._draws[self._row[state]] if self._row[state] >= 0 else []

    def _bounds(self, drawn: tuple[int, int]) -> tuple[list[int], list[int]]:
        index, column = drawn
        return [group[column] for group in self._lower[index]], [group[column] for group in self._upper[index]]


def _check_components(certificate: Certificate, claims: list[str]) -> int:
    """Who stays in a component must not decide against the bound; how many of them were looked up."""
    formula, wanted = parse_formula(certificate.subject.formula), certificate.side == "lower"
    verb = "meets" if wanted else "violates"
    single: set[int] = set()
    several: set[tuple[int, ...]] = set()
    for box in certificate.boxes:
        members: dict[int, list[int]] = {}
        for state, own in enumerate(box.component.tolist()):
            if own >= 0 and state > 1:
                members.setdefault(own, []).append(state)
        single.update(states[0] for states in members.values() if len(states) == 1)
        several.update(tuple(states) for states in members.values() if len(states) > 1)
    looked_up = work = 0
    for state in sorted(single):
        word = [_letter(int(certificate.subject.letters[each])) for each in _stem(certificate, state)]
        work += len(word) ** 2
        if work > LONGEST_WORK:
            break
        if holds_on_lasso(formula, word[:-1], word[-1:]) != wanted:
            raise InputError(f"staying in state {state} decides against the bound")
        looked_up += 1
    if looked_up < len(single):
        rest = sorted(single)[looked_up:]
        claims.append(f"who stays forever in one of {len(rest)} product states ({_some(rest)}) {verb} the formula")
    for states in sorted(several):
        claims.append(f"who stays forever among {len(states)} product states ({_some(states)}) {verb} the formula")
    return looked_up


def _letter(bits: int) -> frozenset[str]:
    return frozenset(f"p{bit}" for bit in range(bits.bit_length()) if bits >> bit & 1)


def _some(states: Sequence[int], most: int = 5) -> str:
    return ", ".join(map(str, states[:most])) + (", ..." if len(states) > most else "")


def _stem(certificate: Certificate, state: int) -> list[int]:
    """A path from an initial state."""
    subject = certificate.subject
    path = [state]
    while subject.parent[path[-1]] >= 0:
        parent = int(subject.parent[path[-1]])
        if path[-1] not in subject.following[parent] or len(path) > len(subject.parent):
            raise InputError(f"the path to state {state} breaks off")
        path.append(parent)
    if path[-1] not in subject.starts:
        raise InputError(f"the path to state {state} begins nowhere")
    return path[::-1]
