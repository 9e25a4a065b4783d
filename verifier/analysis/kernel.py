"""Checks certificates of probabilities by whole numbers and graphs alone: python -I kernel.py BUNDLE

A certificate (JSON) states a system: states with letters (bit i: proposition i holds); in a state labels are drawn
from columns of rates in a region, and the union of their reports says which state follows, together with what the
world draws with fixed chances, if it does (version 4). It claims bounds on the
probability of an LTL formula from each initial state, whatever rates of the region nature chooses in every step; the
region may be a single point. A run is lost if it fails the formula (side "lower") or meets it ("upper"). Decided:

1. The ends of the region follow from the counts, and the boxes of a tree cover the region. In every box:
2. Progression gives each state that can be reached what remains of the formula. Where that is `false` (`true`) the
   run is lost, and the state is a target.
3. A value y >= 0, at least 1 on targets and elsewhere at least the greatest mean of y after one step, bounds the
   probability of reaching a target (Ville's inequality).
4. An order, one number for each component: whenever a component, or a state outside, is left, some probability goes
   to a smaller number. Chances of falling are bounded away from 0, and after as many falls as there are numbers
   nothing can be left: almost every run that reaches no target stays in one component from some time on.
5. Almost no run that stays in a component is lost (`never_lost`). So y bounds the probability of being lost.

That the system is that of a model and a formula is not decided here: `verify evidence check` rebuilds it.
"""

import decimal
import json
import math
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

BILLION = 10**9  # rates that follow from counts are bounded by whole numbers of billionths
LARGEST = 2**53
TARGET, NO_COMPONENT = -2, -1
MOST_ITEMS = 5_000_000  # of the rarer kind in one column
MOST_WORK = 1_000_000  # terms of one formula; states looked at for one component
STAKES = (17037, 66987, 146447, 250000, 370590, 500000, 629410, 750000, 853553, 933013, 982963, 1000000)  # millionths
SHARES = (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 13)  # of the stakes, in 24ths
UPWARDS = decimal.Context(50, decimal.ROUND_CEILING, decimal.MIN_EMIN, decimal.MAX_EMAX)
ARITY = {"holds": 0, "fails": 0, "&": None, "|": None, "U": 2, "R": 2}
DUAL = {"holds": "fails", "fails": "holds", "&": "|", "|": "&", "U": "R", "R": "U"}
Column: TypeAlias = "tuple[list[int], list[int], int]"  # ends of each report's rate, and the 1 that they are parts of
Columns: TypeAlias = "dict[tuple[int, int], Column]"  # by bin and true label
Terms: TypeAlias = "frozenset[frozenset[int]]"  # what remains: a disjunction of conjunctions of nodes of the formula
States = frozenset[int]
Truth: TypeAlias = "tuple[States, States]"
FALSE: Terms = frozenset()
TRUE: Terms = frozenset({frozenset()})


class Rejected(ValueError):  # noqa: N818
    """A certificate that proves nothing; the message begins with the place of what is wrong."""


def demand(holds: bool, where: str, message: str) -> None:
    """Reject unless it holds."""
    if not holds:
        raise Rejected(f"{where}: {message}")


def whole(value: Any, where: str, shape: tuple[int | None, ...], low: int, end: int = LARGEST) -> Any:
    """`value`, if it is lists of these lengths (None: any) of whole numbers from `low` to below `end`."""
    if not shape:
        demand(type(value) is int and low <= value < end, where, f"expected a whole number from {low} to {end - 1}")
        return value
    demand(type(value) is list and shape[0] in (None, len(value)), where, f"expected a list of length {shape[0]}")
    return [whole(inner, f"{where}/{k}", shape[1:], low, end) for k, inner in enumerate(value)]


def tail_is_at_most(total: int, least: int, billionths: int, bound: Fraction) -> bool:
    """Whether Pr(Bin(total, billionths / 10^9) >= least) <= bound; True is a proof, False may be a near miss.

    C(n, x) p^x (1 - p)^(n - x) (1 + r_1 + r_1 r_2 + ...) with r_j = (n - x - j + 1) p / ((x + j)(1 - p)), rounded up
    in each operation; what is left of the sum is bounded by a geometric series, as the r_j fall.
    """
    rest, other = total - least, BILLION - billionths
    if min(least, rest, billionths, other) < 0 or bound <= 0:
        raise ValueError("expected 0 <= least <= total, a rate from 0 to 1 and a bound above 0")
    if least == 0 or rest * billionths >= (least + 1) * other:
        return bound >= 1  # the median is not below `least`
    demand(min(least, rest) <= MOST_ITEMS, "/region/evidence/items", f"more than {MOST_ITEMS} of the rarer kind")

    def power(base: Decimal, count: int) -> Decimal:
        result = Decimal(1)
        for bit in f"{count:b}":
            result = result * result * (base if bit == "1" else 1)
        return result

    with decimal.localcontext(UPWARDS):
        chance = power(Decimal(billionths) / BILLION, least) * power(Decimal(other) / BILLION, rest)
        for k in range(min(least, rest)):
            chance = chance * (total - k) / (k + 1)
        term = series = Decimal(1)
        for above in range(least + 1, total + 2):
            more, less = (total - above + 1) * billionths, above * other
            if term.adjusted() < -30 or more == 0:
                series += term * more / (less - more)
                break
            term = term * more / less
            series += term
        return chance * series * bound.denominator <= bound.numerator


def capital_is_at_least(drives: Iterable[tuple[int, int]], largest: int, billionths: int, goal: Fraction) -> bool:
    """Whether betting that a rate exceeds m = billionths / 10^9 has made 1 into at least `goal` over the drives.

    sum_j p_j prod_d (1 + s_j (X_d / (B m) - N_d / B)) for hits X_d and items N_d of each drive, at most B = largest.
    Its mean at the true rate is at most 1; so Pr(it reaches a goal) <= 1/goal (Waudby-Smith and Ramdas 2024).
    """
    table = list(drives)
    if not all(0 <= hits <= items <= largest for hits, items in table) or billionths < 1 or goal <= 0:
        raise ValueError("expected 0 <= hits <= items <= the largest drive, and a rate and a goal above 0")
    one, capital = largest * 10**6 * billionths, 0
    for stake, share in zip(STAKES, SHARES, strict=True):
        for hits, items in table:
            share *= one + stake * (hits * BILLION - items * billionths)
        capital += share
    return bool(capital * goal.denominator >= 24 * one ** len(table) * goal.numerator)


def is_lower_end(end: int, drives: list[tuple[int, int]], evidence: Any, largest: int | None, tail: Fraction) -> bool:
    """Whether the rate exceeds `end` billionths with probability 1 - tail, as shown by (hits, items) of drives.

    With `largest`, drives are independent; with an ICC, items of a drive are correlated at most so (Kish 1965); else
    items are independent (Clopper and Pearson 1934). A shift moves all ends outwards.
    """
    held, end = [(hits, items) for hits, items in drives if items], end + (evidence["shift"] if end else 0)
    if end == 0 or not held or end > BILLION:
        return end == 0
    if largest is not None:
        return capital_is_at_least(held, largest, end, 1 / tail)
    hits, total = sum(hits for hits, _ in held), sum(items for _, items in held)
    rest = total - hits
    if evidence["icc"] is not None:
        spread = sum(items * (1 + (items - 1) * Fraction(evidence["icc"])) for _, items in held)
        hits, rest = total * hits // spread, -(-total * rest // spread)
    return hits > 0 and tail_is_at_most(hits + rest, hits, end, tail)


def read_region(given: Any) -> Columns:
    """The columns of a region whose ends follow from its counts; without counts it is an assumption."""
    shape = len(given["unit"]), len(set(given["group"])), len(given["labels"])
    lower, upper = (whole(given[ends], f"/region/{ends}", shape, 0) for ends in ("lower", "upper"))
    unit = whole(given["unit"], "/region/unit", shape[::2], 1)
    places = [(index, true) for index in range(shape[0]) for true in range(shape[2])]
    columns = {(k, t): ([row[t] for row in lower[k]], [row[t] for row in upper[k]], unit[k][t]) for k, t in places}
    fits = all(max(high) <= one for _, high, one in columns.values())
    demand(fits, "/region/upper", "expected a whole number up to the unit of the column")
    demand(not is_empty(columns), "/region", "no rates lie between the ends of some column")
    if given["evidence"] is not None:
        demand(all(one == BILLION for _, _, one in columns.values()), "/region/unit", "expected billionths")
        unused = (columns[k, t] for k, t in places if not given["needed"][k][t])
        free = all(set(low) == {0} and set(high) == {BILLION} for low, high, _ in unused)
        demand(free, "/region", "a column that is not needed must be free")
        needed = ((k, t) for k, t in places if given["needed"][k][t] and given["evidence"]["fixed"][k][t] is not True)
        _check_counts(given["evidence"], {place: columns[place] for place in needed}, shape[1])
    return columns


def _check_counts(evidence: Any, columns: Columns, groups: int) -> None:
    where, events = "/region/evidence", whole(evidence["events"], "/region/evidence/events", (), 0)
    alpha, used = Fraction(evidence["alpha"]), len(columns) * {1: 0, 2: 1}.get(groups, groups)
    demand(0 < alpha < 1, f"{where}/alpha", "expected a fraction between 0 and 1")
    demand(used <= events, f"{where}/events", f"alpha is divided among {events} events, and {used} are used")
    whole(evidence["shift"], f"{where}/shift", (), 0)
    demand(evidence["icc"] is None or 0 <= Fraction(evidence["icc"]) <= 1, f"{where}/icc", "expected 0 to 1")
    items, shape = whole(evidence["items"], f"{where}/items", (None, None, None), 0), (None, len(columns), groups)
    drives = None if evidence["drives"] is None else whole(evidence["drives"], f"{where}/drives", shape, 0)
    largest = [None] * len(columns)
    if evidence["largest"] is not None:
        largest = whole(evidence["largest"], f"{where}/largest", (len(columns),), 0)
    for k, ((index, column), ends) in enumerate(columns.items()):
        counts, here = [row[column] for row in items[index]], f"/region, bin {index}, column {column}"
        held, most = [counts] if drives is None else [drive[k] for drive in drives], largest[k]
        adds_up = [sum(own[group] for own in held) for group in range(groups)] == counts
        demand(adds_up, here, "what the drives hold does not add up to the counts")
        fits = most is None or all(sum(own) <= most for own in held)
        demand(fits, here, "a drive holds more than the largest drive is said to hold")
        for group, (low, high) in enumerate(zip(*ends[:2], strict=True)):
            hits = [(own[group], sum(own)) for own in held]
            misses = [(total - count, total) for count, total in hits]
            rule = evidence, most, alpha / (2 * max(events, 1))
            follows = is_lower_end(low, hits, *rule) and is_lower_end(BILLION - high, misses, *rule)
            demand(follows, here, f"the rates {low} to {high} billionths do not follow from its counts")


def is_empty(columns: Columns) -> bool:
    """Whether some column has no rates between its ends that sum to 1."""
    ordered = all(all(map(int.__le__, low, high)) for low, high, _ in columns.values())
    return not ordered or not all(sum(low) <= unit <= sum(high) for low, high, unit in columns.values())


def leaves(tree: Any, columns: Columns) -> Iterator[tuple[int, Columns]]:
    """Number and columns of each box that the tree cuts a region into."""
    if tree is None:
        demand(is_empty(columns), "/tree", "a part of the region that holds matrices is left out")
    elif type(tree) is int:
        yield tree, columns
    else:
        place, group, at = (tree["bin"], tree["true"]), tree["group"], whole(tree["at"], "/tree", (), 0)
        there = place in columns and group in range(len(columns[place][0]))
        demand(there, "/tree", "it cuts a rate that is not there")
        low, high, unit = columns[place]
        below, above = high.copy(), low.copy()
        below[group], above[group] = min(at, high[group]), max(at, low[group])
        yield from leaves(tree["below"], {**columns, place: (low, below, unit)})
        yield from leaves(tree["above"], {**columns, place: (above, high, unit)})


class Formula:
    """Positive normal form: nodes [kind, operands, low, high], operands before the node, the last one is the whole.

    holds, fails (proposition `low`), & and | (of nothing: true, false), U and R (in steps low..high; None: without
    end; `X a` is `true U[1,1] a`). `endless` has for each node which of U and R occur in it without end.
    """

    def __init__(self, subject: Any) -> None:
        self.nodes: list[tuple[str, tuple[int, ...], int, int | None]] = []
        self.endless: list[set[str]] = []
        self._numbers: dict[Any, int] = {}
        self._known: dict[tuple[int | Terms, int], Terms] = {}
        self._work = 0
        for number, (kind, operands, low, high) in enumerate(subject["formula"]):
            where, end = f"/subject/formula/{number}", LARGEST if ARITY[kind] != 0 else len(subject["propositions"])
            node = kind, tuple(whole(operands, where, (ARITY[kind],), 0, number)), whole(low, where, (), 0, end), high
            demand(high is None or (kind in "UR" and type(high) is int and high >= low), where, "no such window")
            demand(self._number(*node) == number, where, "the same node twice")
        self.whole = frozenset({frozenset({len(self.nodes) - 1})})

    def _number(self, kind: str, operands: tuple[int, ...], low: int, high: int | None) -> int:
        node = kind, operands, low, high
        if node not in self._numbers:
            self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
            self.endless.append({kind for _ in "x" if high is None}.union(*(self.endless[k] for k in operands)))
        return self._numbers[node]

    def progress(self, remains: Terms, letter: int) -> Terms:
        """What remains for the rest of a run after `letter` was read."""
        if (remains, letter) not in self._known:
            rest = (self._all(self._step(node, letter) for node in term) for term in remains)
            self._known[remains, letter] = self._any(rest)
        return self._known[remains, letter]

    def _step(self, number: int, letter: int) -> Terms:
        if (number, letter) in self._known:
            return self._known[number, letter]
        kind, operands, low, high = self.nodes[number]
        parts = [self._step(operand, letter) for operand in operands]
        both, either = (self._all, self._any) if kind in ("&", "U") else (self._any, self._all)
        if kind in ("holds", "fails"):
            result = TRUE if (letter >> low & 1) == (kind == "holds") else FALSE
        elif kind in ("&", "|"):
            result = both(parts)
        else:  # a U b: b, or a and the same later
            later = either([])
            if high != 0:
                window = max(low - 1, 0), None if high is None else high - 1
                later = frozenset({frozenset({self._number(kind, operands, *window)})})
            result = both([parts[0], later])
            result = either([parts[1], result]) if low == 0 else result
        self._known[number, letter] = result
        return result

    def _all(self, parts: Iterable[Terms]) -> Terms:
        result = TRUE
        for part in parts:
            result = self._any([frozenset(self._least(a | b, self._implied) for a in result for b in part)])
        return result

    def _any(self, parts: Iterable[Terms]) -> Terms:
        def over(term: Any, other: Any) -> bool:
            return all(weak in term or any(self._implied(weak, strong) for strong in term) for weak in other)

        return self._least({term for part in parts for term in part}, over)

    def _least(self, members: Iterable[Any], over: Callable[[Any, Any], bool]) -> frozenset[Any]:
        """The members without those that are over others."""
        kept: list[Any] = []
        for member in members:
            self._work += 1
            demand(self._work <= MOST_WORK, "/subject/formula", "too much may remain of it to be checked")
            if not any(over(member, other) for other in kept):
                kept = [other for other in kept if not over(other, member)] + [member]
        return frozenset(kept)

    def _implied(self, weak: int, strong: int) -> bool:
        """Whether a rule shows that every run with the node `strong` has `weak`."""
        (kind, operands, low, high), (kind2, operands2, low2, high2) = self.nodes[strong], self.nodes[weak]
        if (kind2, low2, operands2[1:]) == ("U", 0, (strong,)) or (kind, low, operands[1:]) == ("R", 0, (weak,)):
            return True  # b implies a U b, and a R b implies b
        if kind == "R":
            low, high, low2, high2 = low2, high2, low, high
        wider = low2 <= low and (high2 is None or (high is not None and high <= high2))
        return kind in ("U", "R") and (kind, operands) == (kind2, operands2) and wider


class System:
    """The states, and one step of each while nature chooses rates again for every draw."""

    def __init__(self, given: Any, columns: Columns) -> None:
        told, count = [frozenset(seen) for seen in given["observations"]], len(given["row"])
        number = {seen: k for k, seen in enumerate(told)}
        self.starts = whole(given["starts"], "/subject/starts", (None,), 0, count)
        self.letters = whole(given["letters"], "/subject/letters", (count,), 0, 2 ** len(given["propositions"]))
        motion, moving = given.get("motion", [[1]]), given.get("moving", [0] * count)
        self._outcomes = len(motion[0])
        demand(all(map(sum, whole(motion, "/subject/motion", (None, self._outcomes), 0))), "/subject/motion", "all 0")
        self._chances = [motion[row] for row in whole(moving, "/subject/moving", (count,), 0, len(motion))]
        width = len(told) * self._outcomes
        self.following = whole(given["following"], "/subject/following", (count, width), 0, count)
        rows = whole(given["row"], "/subject/row", (count,), -1)
        pairs = zip(given["bins"], given["columns"], strict=True)
        drawn = [[columns[place] for place in zip(*pair, strict=True) if place[1] != -1] for pair in pairs]
        self._draws = [drawn[row] if row >= 0 else [] for row in rows]
        self._nothing, unions = number[frozenset()], ([seen | set(now) for now in given["reports"]] for seen in told)
        self._union = [[number.get(union, -1) for union in row] for row in unions]

    def _fold(self, state: int, last: Callable[..., Any], draw: Callable[..., Any]) -> Any:
        """Backwards over the draws: what `draw` makes of what lies behind each report; `last` of states by chance."""
        draws, known = self._draws[state], dict[tuple[int, int], Any]()

        def behind(k: int, seen: int) -> Any:
            demand(seen >= 0, "/subject/observations", "a union of reports is missing")
            if k == len(draws):
                ahead = self.following[state][seen * self._outcomes : (seen + 1) * self._outcomes]
                return last([pair for pair in zip(self._chances[state], ahead, strict=True) if pair[0]])
            if (k, seen) not in known:
                known[k, seen] = draw([behind(k + 1, union) for union in self._union[seen]], *draws[k])
            return known[k, seen]

        return behind(0, self._nothing)

    def exceeds(self, state: int, value: list[int]) -> bool:
        """Whether the greatest mean of the values after one step exceeds the state's own."""

        def mean(behind: list[int], low: list[int], high: list[int], unit: int) -> int:
            left, total = unit - sum(low), sum(map(int.__mul__, low, behind))
            for after, least, most in sorted(zip(behind, low, high, strict=True), reverse=True):
                more = min(most - least, left)  # what is left goes where it counts most
                total, left = total + more * after, left - more
            return total

        units = math.prod(unit for _, _, unit in self._draws[state]) * sum(self._chances[state])
        return bool(self._fold(state, lambda ahead: sum(c * value[s] for c, s in ahead), mean) > value[state] * units)

    def moves(self, state: int, allowed: Callable[[int], bool]) -> set[int]:
        """Where a step may lead that surely leads to an allowed state; nothing where there is no such step."""

        def kept(behind: list[set[int]], low: list[int], high: list[int], unit: int) -> set[int]:
            ends = list(zip(behind, low, high, strict=True))
            if any(low and not way for way, low, _ in ends) or sum(high for way, _, high in ends if way) < unit:
                return set()
            return set().union(*(way for way, least, most in ends if most and sum(low) - least < unit))

        def surely(ahead: list[tuple[int, int]]) -> set[int]:
            return {after for _, after in ahead} if all(allowed(after) for _, after in ahead) else set()

        return set(self._fold(state, surely, kept))


def grown(begun: Iterable[int], more: Callable[[int, set[int]], Iterable[int]]) -> States:
    """`begun` and all that `more` (of one of them, and of all so far) adds."""
    known = set(begun)
    pending = list(known)
    while pending:
        new = set(more(pending.pop(), known)) - known
        known |= new
        pending += new
    return frozenset(known)


class Part:
    """Some states: where the steps that keep all chance among them lead, and where they come from."""

    def __init__(self, system: System, states: States) -> None:
        self.system, self.states = system, states
        self.after = {state: system.moves(state, states.__contains__) for state in states}
        self.before: dict[int, set[int]] = {state: set() for state in states}
        for state, ahead in self.after.items():
            for other in ahead:
                self.before[other].add(state)

    def avoids(self, state: int, others: Iterable[int]) -> bool:
        """Whether some step stays here and leads to none of the others."""
        return bool(self.system.moves(state, self.states.difference(others).__contains__))

    def forced(self, begun: Iterable[int], through: States) -> States:
        """`begun` and the states of `through` from which no steps that stay avoid it."""
        return grown(begun, lambda s, known: (t for t in self.before[s] & through if not self.avoids(t, known)))


def end_components(system: System, states: States) -> Iterator[Part]:
    """The maximal sets of states in which nature can stay for good, visiting all of them again and again."""
    pending = [states]
    while pending:
        part = Part(system, pending.pop())
        stuck = part.forced((state for state, ahead in part.after.items() if not ahead), part.states)
        rest, begun = part.states - stuck, States({min(part.states - stuck, default=0)})
        ways = (part.after, part.before)
        ahead, back = (grown(begun & rest, lambda s, _, way=way: way[s]) for way in ways)  # type: ignore[misc]
        if rest and not stuck and ahead & back == rest:
            yield part
        else:
            pieces = [rest] if stuck else [ahead & back, ahead - back, back - ahead, rest - ahead - back]
            pending += [piece for piece in pieces if piece]


class Stay:
    """Where nodes hold for runs that stay in an end component and read each letter of `seen` again and again.

    For each node, whatever nature does: the states from which it is `sure` to hold (almost surely), and from which it
    is `likely` (with a chance bounded away from 0). From some time on a run takes only steps that keep all chance
    inside (de Alfaro 1997, section 3); if it visits `likely` states again and again, the node holds at one of the
    visits almost surely (Borel-Cantelli lemma of Levy).
    """

    def __init__(self, part: Part, formula: Formula, seen: States) -> None:
        self._part, self._states, self._formula, self._seen = part, part.states, formula, seen
        self._letters = part.system.letters
        self._known: dict[tuple[int, bool], Truth] = {}

    def proves(self, remains: list[set[Terms]], wanted: bool) -> bool:
        """Whether what remains is surely met (or surely not, unless `wanted`) where the run comes again and again."""
        outer, inner = (any, all) if wanted else (all, any)

        def decided(terms: Terms, state: int) -> bool:
            return outer(inner(state in self._truth(node, not wanted)[0] for node in term) for term in terms)

        after = self._part.after
        poor = {s for s in self._states if not all(decided(o, t) for o in remains[s] for t in after[s])}
        return not poor or not self._seen <= {self._letters[state] for state in poor}

    def _truth(self, number: int, negated: bool) -> Truth:
        """`sure` and `likely` for a node or its negation."""
        if (number, negated) in self._known:
            return self._known[number, negated]
        kind, operands, low, high = self._formula.nodes[number]
        kind = DUAL[kind] if negated else kind
        parts = [self._truth(operand, negated) for operand in operands]
        both, either = (_both, _either) if kind in ("&", "U") else (_either, _both)
        if kind in ("holds", "fails"):
            fits = frozenset(s for s in self._states if (self._letters[s] >> low & 1) == (kind == "holds"))
            result = fits, fits
        elif kind in ("&", "|"):
            result = (self._states, self._states) if kind == "&" else (States(), States())
            for part in parts:
                result = both(result, part)
        else:
            a, b = parts
            result, steps = (self._endless(kind, a, b), 0) if high is None else (b, high - low)
            result = self._later(result, steps, lambda later: either(b, both(a, later)))
            result = self._later(result, low, lambda later: both(a, later))
        self._known[number, negated] = result
        return result

    def _later(self, result: Truth, steps: int, now: Callable[[Truth], Truth]) -> Truth:
        """What holds if `result` holds so many steps later."""
        for _ in range(steps):
            sure = frozenset(state for state in self._states if self._part.after[state] <= result[0])
            likely = frozenset(state for state in self._states if not self._part.avoids(state, result[1]))
            before, result = result, now((sure, likely))
            if result == before:
                break
        return result

    def _endless(self, kind: str, a: Truth, b: Truth) -> Truth:
        (sure_a, _), (sure_b, likely_b) = a, b
        if kind == "U":  # lost: neither a nor b; b put off forever; what can lead there
            traps = (part.states for part in end_components(self._part.system, sure_a - sure_b - likely_b))
            forever = (trap for trap in traps if {self._letters[state] for state in trap} >= self._seen)
            lost, through, on = (self._states - sure_a - sure_b).union(*forever), sure_a, sure_a - sure_b
            near = likely_b
        else:
            lost, through, on = self._states - sure_b, sure_b, sure_b - sure_a
            near = _both(a, b)[1]
        sure = self._states - grown(lost, lambda state, _: self._part.before[state] & on)
        return sure, self._part.forced(sure | near, through)


def _both(one: Truth, other: Truth) -> Truth:
    return one[0] & other[0], (one[0] & other[1]) | (one[1] & other[0])


def _either(one: Truth, other: Truth) -> Truth:
    return one[0] | other[0], one[1] | other[1]


def never_lost(system: System, formula: Formula, remains: list[set[Terms]], states: States, wanted: bool) -> bool:
    """Whether almost every run that stays among the states meets the formula (fails it, unless `wanted`).

    What remains never becomes `false` (`true`) there, which is enough for safety (co-safety) formulas. Else the
    states that are visited again and again form an end component; those that lack some letters are looked at alone.
    """
    nodes = {node for state in states for terms in remains[state] for term in terms for node in term}
    if not any(("U" if wanted else "R") in formula.endless[node] for node in nodes):
        return True
    pending, known, work = list(end_components(system, states)), set[States](), 0
    while pending:
        part = pending.pop()
        letters = frozenset(system.letters[state] for state in part.states)
        if part.states in known or Stay(part, formula, States()).proves(remains, wanted):
            continue
        known.add(part.states)
        work += len(part.states)
        if work > MOST_WORK or not Stay(part, formula, letters).proves(remains, wanted):
            return False
        for letter in letters:
            pending += end_components(system, frozenset(s for s in part.states if system.letters[s] != letter))
    return True


def what_remains(system: System, formula: Formula) -> list[set[Terms]]:
    """What may remain of the formula in each state, as far as it can be reached."""
    result: list[set[Terms]] = [set() for _ in system.letters]
    pending = [(state, formula.progress(formula.whole, system.letters[state])) for state in set(system.starts)]
    while pending:
        state, terms = pending.pop()
        if terms not in result[state]:
            result[state].add(terms)
            ahead = system.moves(state, lambda after: True)
            pending += [(after, formula.progress(terms, system.letters[after])) for after in ahead]
    return result


def check(certificate: Any) -> list[Fraction | None]:
    """The proven bound for each initial state; None where nothing is claimed.

    Raises:
        Rejected: a step does not hold, or cannot be decided; the message names it.
    """
    try:
        head, side, boxes = (certificate["schema"], certificate["version"]), certificate["side"], certificate["boxes"]
        version = 3 + ("motion" in certificate["subject"])
        demand(
            head == ("verifier.certificate", version), "/schema", f"expected verifier.certificate version {version}"
        )
        demand(side in ("lower", "upper"), "/side", "expected lower or upper")
        region, subject = read_region(certificate["region"]), certificate["subject"]
        formula, parts = Formula(subject), list(leaves(certificate["tree"], region))
        demand(sorted(k for k, _ in parts) == list(range(len(boxes))), "/tree", "its leaves are not the boxes")
        values = [_check_box(boxes[k], f"/boxes/{k}", System(subject, part), formula, side) for k, part in parts]
        bounds: list[Fraction | None] = []
        for k, (state, claim) in enumerate(zip(subject["starts"], certificate["claimed"], strict=True)):
            worst = max(value[state] for value in values)
            proven, sign = (1 - worst, 1) if side == "lower" else (worst, -1)
            fits = type(claim) is float and 0 <= sign * (proven - Fraction(claim)) <= Fraction(1, 2**52)  # rounded
            message = f"it claims the bound {claim!r} and proves {float(proven)!r}"
            demand(claim is None or fits, f"/claimed/{k}", message)
            bounds.append(None if claim is None else proven)
        return bounds
    except Rejected:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Rejected(f"the document: not a certificate ({type(error).__name__}: {error})") from None


def _check_box(box: Any, where: str, system: System, formula: Formula, side: str) -> list[Fraction]:
    """The proven values y."""
    count, lost, members = len(system.letters), FALSE if side == "lower" else TRUE, dict[int, list[int]]()
    order = whole(box["order"], f"{where}/order", (count,), -LARGEST)
    component = whole(box["component"], f"{where}/component", (count,), TARGET)
    fits = len(box["value"]) == count and all(type(y) in (int, float) and 0 <= y < math.inf for y in box["value"])
    demand(fits, f"{where}/value", "expected a number of at least 0 for each state")
    demand(type(box["unit"]) is int and box["unit"] > 0, f"{where}/unit", "expected what the values are divided by")
    exact = [Fraction(y) / box["unit"] for y in box["value"]]
    one = math.lcm(*(y.denominator for y in exact))
    value, remains = [int(y * one) for y in exact], what_remains(system, formula)
    for state, own in enumerate(component):
        here = f"{where}, state {state}"
        if own == TARGET:
            demand(value[state] >= one, here, "a target has a value below 1")
            continue
        demand(lost not in remains[state], here, "the formula is decided against the bound, and it is no target")
        demand(not system.exceeds(state, value), here, "its value is less than what its best choice gives")
        first = members.setdefault(own, [state])[0] if own != NO_COMPONENT else state
        demand(order[state] == order[first], here, f"in the component of state {first}, and of another order")
        members.setdefault(own, []).append(state)
        left = system.moves(state, lambda after, own=order[state]: order[after] >= own)  # type: ignore[misc]
        stays = own != NO_COMPONENT and all(component[after] == own for after in left)
        demand(stays or not left, here, "it can be left without any probability of coming closer to a decision")
    members.pop(NO_COMPONENT, None)
    for states in members.values():
        message = f"who stays among it and {len(set(states)) - 1} others may decide against the bound"
        fits = never_lost(system, formula, remains, frozenset(states), side == "lower")
        demand(fits, f"{where}, state {states[0]}", message)
    return exact


def main(path: Path) -> int:
    """Check every certificate of a bundle (a folder or a zip archive) and print what it proves."""
    folder = (path if path.is_dir() else zipfile.Path(path)) / "certificates"
    texts = {file.name: file.read_bytes() for file in folder.iterdir()}
    wrong = 0
    for name, text in sorted(texts.items()):
        try:
            certificate = json.loads(text)
            bounds = ["-" if bound is None else repr(float(bound)) for bound in check(certificate)]
            print(f"{name}: proven: P {'>=' if certificate['side'] == 'lower' else '<='} {', '.join(bounds)}")
        except ValueError as error:
            wrong += 1
            print(f"{name}: REJECTED: {error}")
    print(f"{len(texts) - wrong} of {len(texts)} certificates proven; not decided: whether they are about the model")
    return 1 if wrong or not texts else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
