"""Checks certificates of probabilities by whole numbers and graphs alone: python -I kernel.py BUNDLE

A certificate (JSON) states a system: states with letters (bit i: proposition i holds) and ways on. On each, labels
are drawn from columns of rates in a region and told, and what is known then says which state follows, with what the
world draws by fixed chances. It claims bounds on the probability of an LTL formula from each initial state, whatever
ways and rates nature chooses in every step. A run is lost if it fails it (side "lower"), or meets it ("upper"):

1. The ends of the region follow from the counts, and the boxes of a tree cover the region. In every box:
2. States of value y >= 1 are targets. Elsewhere y >= 0 is at least the greatest mean of y after one step. So y bounds
   the probability of reaching a target (Ville's inequality).
3. Each state has an obligation: whoever comes there by no target and meets it from then on is not lost. That of a
   state follows from those of the states after it, by progression (Bacchus and Kabanza 2000).
4. A state has a number. In every step a run stays in its component, at the same number; or some probability goes to
   smaller numbers or to a target (`settle`). Chances of falling are bounded away from 0, and after as many falls as
   there are numbers nothing can be left: almost every run without a target stays in a component from some time on.
5. Almost every run that stays in a component meets its obligations (`stay`). So y bounds the probability of a loss.
That the system is that of a model and a formula is not decided here: `verify evidence check` rebuilds it.
"""

import functools
import json
import math
import sys
import zipfile
from collections.abc import Callable, Iterator
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

BILLION = 10**9  # rates that follow from counts are bounded by whole numbers of billionths
LARGEST, MOST_ITEMS = 2**53, 5_000_000  # of whole numbers; of the rarer kind in one column
STAKES = (17037, 66987, 146447, 250000, 370590, 500000, 629410, 750000, 853553, 933013, 982963, 1000000)  # millionths
SHARES = (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 13)  # of the stakes, in 24ths
UPWARDS = Context(50, ROUND_CEILING, MIN_EMIN, MAX_EMAX)
DUAL = {"holds": "fails", "fails": "holds", "&": "|", "|": "&", "U": "R", "R": "U"}
Column = tuple[list[int], list[int], int]  # ends of each report's rate, and the 1 that they are parts of
Columns = dict[tuple[int, int], Column]  # by bin and true label; what is not there may be anything
May = Callable[[int, int], bool]  # whether a run may go from one state to another
Atom = tuple[int, int, int]  # a node of the formula, with this window (-1: without end) in place of its own


class Rejected(Exception):  # noqa: N818
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
    fits = min(least, rest, billionths - 1, other) >= 0 and bound > 0
    demand(fits, "/region", "expected 0 <= least <= total, a rate above 0 up to 1 and a bound above 0")
    if least == 0 or rest * billionths >= (least + 1) * other:
        return bound >= 1  # the median is not below `least`
    demand(min(least, rest) <= MOST_ITEMS, "/region/columns", f"more than {MOST_ITEMS} of the rarer kind")
    few, rare, usual = (least, billionths, other) if least <= rest else (rest, other, billionths)
    with localcontext(UPWARDS):
        chance = term = series = Decimal(1)
        for bit in f"{total - few:b}":
            chance = chance * chance * (Decimal(usual) / BILLION if bit == "1" else 1)
        for k in range(few):
            chance = chance * (total - k) / (k + 1) * rare / BILLION
        for left in range(rest, 0, -1):
            more, less = left * billionths, (total - left + 1) * other
            if term.adjusted() < -30:
                series += term * more / (less - more)
                break
            term = term * more / less
            series += term
        return chance * series * bound.denominator <= bound.numerator


def capital_is_at_least(drives: list[tuple[int, int]], largest: int, billionths: int, goal: Fraction) -> bool:
    """Whether betting that a rate exceeds m = billionths / 10^9 has made 1 into at least `goal` over the drives.

    sum_j p_j prod_d (1 + s_j (X_d / (B m) - N_d / B)) for hits X_d and items N_d of each drive, at most B = largest.
    Its mean at the true rate is at most 1; so Pr(it reaches a goal) <= 1/goal (Waudby-Smith and Ramdas 2024).
    """
    fits = all(0 <= hits <= items <= largest for hits, items in drives) and billionths > 0 and goal > 0
    demand(fits, "/region", "expected 0 <= hits <= items <= the largest drive, and a rate and a goal above 0")
    one, capital = largest * 10**6 * billionths, 0
    for stake, share in zip(STAKES, SHARES, strict=True):
        for hits, items in drives:
            share *= one + stake * (hits * BILLION - items * billionths)
        capital += share
    return bool(capital * goal.denominator >= 24 * one ** len(drives) * goal.numerator)


def is_lower_end(end: int, drives: list[tuple[int, int]], largest: int | None, rule: Any, tail: Fraction) -> bool:
    """Whether the rate exceeds `end` billionths with probability 1 - tail, as shown by (hits, items) of drives.

    With `largest`, drives are independent; with an ICC, items of a drive are correlated at most so (Kish 1965);
    else items are independent (Clopper and Pearson 1934). A shift moves all ends outwards.
    """
    held, end = [(hits, items) for hits, items in drives if items], end + (rule["shift"] if end else 0)
    if end == 0 or not held or end > BILLION:
        return end == 0
    if largest is not None:
        return capital_is_at_least(held, largest, end, 1 / tail)
    hits, rest = sum(hits for hits, _ in held), sum(items - hits for hits, items in held)
    if rule["icc"] is not None:
        spread = sum(items * (1 + (items - 1) * Fraction(rule["icc"])) for _, items in held)
        hits, rest = (hits + rest) * hits // spread, -(-(hits + rest) * rest // spread)
    return tail_is_at_most(hits + rest, hits, end, tail)


def read_region(given: Any) -> Columns:
    """The columns of a region whose ends follow from their counts; those without counts are an assumption."""
    columns, groups, rule, tail = Columns(), given["groups"], given["evidence"], Fraction(0)
    if rule is not None:
        where, measured = "/region/evidence", sum(column["counts"] is not None for column in given["columns"])
        used = measured * {1: 0, 2: 1}.get(groups, groups)
        events = whole(rule["events"], f"{where}/events", (), 0)
        alpha, icc = (Fraction(*map(int, share.split("/"))) for share in (rule["alpha"], rule["icc"] or "0"))
        demand(0 < alpha < 1 and 0 <= icc <= 1, where, "alpha, or an intraclass correlation, is not between 0 and 1")
        demand(used <= events, f"{where}/events", f"alpha is divided among {events} events, and {used} are used")
        whole(rule["shift"], f"{where}/shift", (), 0)
        tail = alpha / (2 * max(events, 1))
    for number, column in enumerate(given["columns"]):
        where = f"/region/columns/{number}"
        unit = whole(column["unit"], f"{where}/unit", (), 1)
        low, high = (whole(column[ends], f"{where}/{ends}", (groups,), 0, unit + 1) for ends in ("lower", "upper"))
        columns[column["bin"], column["true"]] = low, high, unit
        drives, most = whole(column["counts"] or [], f"{where}/counts", (None, groups), 0), column["largest"]
        fits = most is None or all(sum(own) <= whole(most, f"{where}/largest", (), 0) for own in drives)
        demand(fits, where, "a drive holds more than the largest drive is said to hold")
        for group in () if column["counts"] is None else range(groups):
            hits = [(own[group], sum(own)) for own in drives]
            misses = [(total - count, total) for count, total in hits]
            ends = (low[group], hits), (BILLION - high[group], misses)
            fits = unit == BILLION and all(is_lower_end(*end, most, rule, tail) for end in ends)
            demand(fits, where, f"the rates {low[group]} to {high[group]} billionths do not follow from its counts")
    demand(not is_empty(columns), "/region", "no rates lie between the ends of some column")
    return columns


def is_empty(columns: Columns) -> bool:
    """Whether some column has no rates between its ends that sum to 1."""
    return not all(all(map(int.__le__, a, b)) and sum(a) <= unit <= sum(b) for a, b, unit in columns.values())


def leaves(tree: Any, columns: Columns) -> Iterator[tuple[int, Columns]]:
    """Number and columns of each box that the tree cuts a region into."""
    if tree is None:
        demand(is_empty(columns), "/tree", "a part of the region that holds matrices is left out")
    elif type(tree) is int:
        yield tree, columns
    else:
        place, group, at = (tree["bin"], tree["true"]), tree["group"], whole(tree["at"], "/tree", (), 0)
        demand(place in columns and group in range(len(columns[place][0])), "/tree", "the rate to cut is not there")
        low, high, unit = columns[place]
        below, above = high.copy(), low.copy()
        below[group], above[group] = min(at, high[group]), max(at, low[group])
        yield from leaves(tree["below"], {**columns, place: (low, below, unit)})
        yield from leaves(tree["above"], {**columns, place: (above, high, unit)})


class Obligations:
    """What may still have to be met: the formula, or for an upper bound its negation, and what they leave.

    The formula is in positive normal form, nodes [kind, operands, low, high] with operands before the node, the last
    one the whole: holds, fails (proposition `low`), & and | (of nothing: true, false), U and R (in steps low..high;
    None: without end; `X a` is `true U[1,1] a`). An obligation of the table asks for all atoms of one of its terms.
    """

    def __init__(self, certificate: Any) -> None:
        self.nodes: list[tuple[str, list[int], int, int]] = []
        subject, negated = certificate["subject"], certificate["side"] == "upper"
        for number, (kind, operands, low, high) in enumerate(subject["formula"]):
            where, literal, timed = f"/subject/formula/{number}", kind in ("holds", "fails"), kind in ("U", "R")
            whole(operands, where, (0 if literal else 2 if timed else None,), 0, number)
            whole(low, where, (), 0, len(subject["propositions"]) if literal else LARGEST)
            demand(high is None or (timed and type(high) is int and high >= low), where, "no such window")
            demand(kind in DUAL, where, "no such kind of node")
            self.nodes.append((DUAL[kind] if negated else kind, operands, low, -1 if high is None else high))
        given = whole(certificate["obligations"], "/obligations", (None, None, None, 3), -1)
        self.table = [[frozenset(map(tuple, term)) for term in terms] for terms in given]
        self.table.append([frozenset({(len(self.nodes) - 1, *self.nodes[-1][2:])})])
        self.leads, self._met = functools.cache(self._leads), functools.cache(self._is_met)

    def _leads(self, before: int, letter: int, after: int, prompt: int | None = None) -> bool:
        """Whether who reads the letter and then meets `after` has met `before`, with U node `prompt` not put off."""
        asked, given, met = self.table[before], self.table[after], self._met
        return all(any(all(met(atom, letter, held, prompt) for atom in term) for term in asked) for held in given)

    def _is_met(self, atom: Atom, letter: int, held: frozenset[Atom], prompt: int | None = None) -> bool:
        """Whether an atom is met by the letter and, from then on, by all that is held."""
        (number, low, high), (kind, operands, *_) = atom, self.nodes[atom[0]]
        if kind in ("holds", "fails"):
            return (letter >> low & 1) == (kind == "holds")
        parts = [self._met((k, *self.nodes[k][2:]), letter, held) for k in operands]
        if kind in ("&", "|"):
            return all(parts) if kind == "&" else any(parts)
        (a, b), later = parts, (number, max(low - 1, 0), high - (high > 0)) in held
        if kind == "U":  # b, or a and the same later
            return (low == 0 and b) or (a and later and high != 0 and atom != (prompt, 0, -1))
        return (low > 0 or b) and (a or later or high == 0)


class System:
    """The states, and one step of each while nature chooses rates again for every draw."""

    def __init__(self, given: Any, columns: Columns) -> None:
        told, count, ways = (len(given[key]) for key in ("observations", "letters", "row"))
        self.starts = whole(given["starts"], "/subject/starts", (None,), 0, count)
        self.letters = whole(given["letters"], "/subject/letters", (count,), 0, 2 ** len(given["propositions"]))
        self._ways: list[list[int]] = [[] for _ in range(count)]
        for way, state in enumerate(whole(given.get("owner", [*range(ways)]), "/subject/owner", (ways,), 0, count)):
            self._ways[state].append(way)
        motion, moving = given.get("motion", [[1]]), given.get("moving", [0] * ways)
        self._outcomes = len(motion[0])
        demand(all(map(sum, whole(motion, "/subject/motion", (None, self._outcomes), 0))), "/subject/motion", "all 0")
        self._chances = [motion[row] for row in whole(moving, "/subject/moving", (ways,), 0, len(motion))]
        self.following = whole(given["following"], "/subject/following", (ways, told * self._outcomes), 0, count)
        self._then = whole(given["then"], "/subject/then", (told, None), -1, told)
        kinds = [tuple(zip(*whole(kind, "/subject/told", (None, None), 0), strict=True)) for kind in given["told"]]
        demand(all(sum(often) for often, *_ in kinds), "/subject/told", "all 0")
        free: Column = [0] * len(kinds[0][1:]), [1] * len(kinds[0][1:]), 1
        which = whole(given["kinds"], "/subject/kinds", (None, None), 0, len(kinds))
        draws = [zip(*row, strict=True) for row in zip(given["bins"], given["columns"], which, strict=True)]
        drawn = [[(kinds[k], *columns.get((b, true), free)) for b, true, k in row if true != -1] for row in draws]
        self._draws = [drawn[row] if row >= 0 else [] for row in whole(given["row"], "/subject/row", (ways,), -1)]

    def _fold(self, state: int, leaf: Callable[[int], Any], draw: Callable[..., Any]) -> Iterator[tuple[Any, int]]:
        """For each way on what `draw` makes of its reports and of what follows by chance, and its unit."""

        @functools.cache
        def behind(way: int, k: int = 0, seen: int = 0) -> Any:
            demand(seen >= 0, "/subject/then", "a report is missing")
            if k == len(self._draws[way]):
                ahead, often = self.following[way][seen * self._outcomes :][: self._outcomes], self._chances[way]
                return draw([*map(leaf, ahead)], often, often, sum(often))
            ((often, *groups), *column), then = self._draws[way][k], self._then[seen]
            told = ([behind(way, k + 1, then[report]) for report in group] for group in groups)
            return draw([draw(row, often, often, sum(often)) for row in told], *column)

        for way in self._ways[state]:
            yield behind(way), math.prod(u * sum(k[0]) for k, *_, u in self._draws[way]) * sum(self._chances[way])

    def exceeds(self, state: int, value: list[int]) -> bool:
        """Whether the greatest mean of the values after one step exceeds the state's own."""

        def mean(behind: list[int], low: list[int], high: list[int], unit: int) -> int:
            left, total = unit - sum(low), sum(map(int.__mul__, low, behind))
            for after, least, most in sorted(zip(behind, low, high, strict=True), reverse=True):
                more = min(most - least, left)  # what is left goes where it counts most
                total, left = total + more * after, left - more
            return total

        best = self._fold(state, value.__getitem__, mean)
        return not self._ways[state] or any(y > value[state] * unit for y, unit in best)

    def moves(self, state: int, may: May) -> set[int]:
        """Where a step may lead that surely leads where it may; nothing where there is no such step."""

        def kept(behind: list[set[Any]], low: list[int], high: list[int], unit: int) -> set[Any]:
            ends = list(zip(behind, low, high, strict=True))
            if any(low and not way for way, low, _ in ends) or sum(high for way, _, high in ends if way) < unit:
                return set()
            return set().union(*(way for way, least, most in ends if most and sum(low) - least < unit))

        return set().union(*(ends for ends, _ in self._fold(state, lambda s: {s} if may(state, s) else set(), kept)))


class Proof:
    """What is said about one box of the region."""

    def __init__(self, system: System, known: Obligations, own: list[int]) -> None:
        self.system, self.known, self.own = system, known, own

    def values(self, box: Any, where: str) -> list[Fraction]:
        """The values y, once everything that is said about the box holds."""
        letters, count = self.system.letters, len(self.system.letters)
        fits = len(box["value"]) == count and all(type(y) in (int, float) and 0 <= y < math.inf for y in box["value"])
        demand(fits, f"{where}/value", "expected a number of at least 0 for each state")
        unit = whole(box["unit"], f"{where}/unit", (), 1, 2**256)
        exact = [Fraction(y) / unit for y in box["value"]]
        one = math.lcm(*(y.denominator for y in exact))
        value = [int(y * one) for y in exact]
        for state in [state for state in range(count) if value[state] < one]:
            here = f"{where}, state {state}"
            demand(not self.system.exceeds(state, value), here, "its value is less than what its best choice gives")
            for after in self.system.moves(state, lambda _, __: True):
                fits = value[after] >= one or self.known.leads(self.own[state], letters[after], self.own[after])
                demand(fits, here, f"what it has to meet does not follow from what state {after} has to meet")
        for state in self.system.starts:
            fits = value[state] >= one or self.known.leads(-1, letters[state], self.own[state])
            demand(fits, f"{where}, state {state}", "the formula does not follow from what it has to meet")
        self.settle(list(range(count)), lambda state, after: value[state] < one > value[after], box, where)
        return exact

    def settle(self, states: list[int], may: May, given: Any, where: str) -> None:
        """Check that almost every run which takes but finitely many steps that it may not take stays in a component
        from some time on, and meets its obligations there."""
        order = dict(zip(states, whole(given["order"], f"{where}/order", (len(states),), -LARGEST), strict=True))
        part = {state: k for k, component in enumerate(given["components"]) for state in component["states"]}
        for state in states:
            ahead = self.system.moves(state, lambda s, after: may(s, after) and order[after] >= order[s])
            places = {(part.get(after), order[after]) for after in ahead}
            fits = not places or (state in part and places == {(part[state], order[state])})
            demand(fits, f"{where}, state {state}", "it can be left without any probability of falling")
        for component in given["components"]:
            self.stay(may, component, where)

    def stay(self, may: May, component: Any, where: str) -> None:
        """Check that almost every run that stays in a component meets the obligations there.

        From some time on it takes only steps that keep all chance inside (de Alfaro 1997, section 3). What it has to
        meet follows from what it has to meet a step later; so it is met unless a U is put off forever. Who puts one
        off in all but finitely many steps stays in a part of the component, and meets other obligations there.
        """
        known, letters, count = self.known, self.system.letters, len(self.system.letters)
        states = whole(component["states"], f"{where}/components", (None,), 0, count)
        numbers = whole(component["obligations"], f"{where}/components", (len(states),), 0, len(known.table))
        held = dict(zip(states, numbers, strict=True))

        def within(state: int, after: int) -> bool:
            return after in held and may(state, after)

        for state in states:
            terms, own = known.table[held[state]], known.table[self.own[state]]
            implied = bool(terms) and all(any(less <= term for less in own) for term in terms)
            ahead = self.system.moves(state, within)
            fits = implied and all(known.leads(held[state], letters[after], held[after]) for after in ahead)
            demand(fits, f"{where}, state {state}", "who stays in the component may decide against the bound")
        proofs = {entry["until"]: entry for entry in component["without"]}
        atoms = {atom for number in held.values() for term in known.table[number] for atom in term}
        for until in {number for number, low, high in atoms if (known.nodes[number][0], low, high) == ("U", 0, -1)}:

            def puts_off(state: int, after: int, until: int = until) -> bool:
                return within(state, after) and not known.leads(held[state], letters[after], held[after], until)

            self.settle(states, puts_off, proofs.get(until, {"order": [0] * len(states), "components": []}), where)


def check(certificate: Any) -> list[Fraction | None]:
    """The proven bound for each initial state, None where nothing is claimed; Rejected says what does not hold."""
    try:
        head, side, boxes = (certificate["schema"], certificate["version"]), certificate["side"], certificate["boxes"]
        demand(head == ("verifier.certificate", 5), "/schema", "expected verifier.certificate version 5")
        demand(side in ("lower", "upper"), "/side", "expected lower or upper")
        region, subject, known = read_region(certificate["region"]), certificate["subject"], Obligations(certificate)
        own = whole(certificate["obligation"], "/obligation", (len(subject["letters"]),), 0, len(known.table))
        parts = list(leaves(certificate["tree"], region))
        demand(sorted(k for k, _ in parts) == list(range(len(boxes))), "/tree", "its leaves are not the boxes")
        values = [Proof(System(subject, part), known, own).values(boxes[k], f"/boxes/{k}") for k, part in parts]
        bounds: list[Fraction | None] = []
        for k, (state, claim) in enumerate(zip(subject["starts"], certificate["claimed"], strict=True)):
            worst = max(value[state] for value in values)
            proven, sign = (1 - worst, 1) if side == "lower" else (worst, -1)
            fits = type(claim) is float and 0 <= sign * (proven - Fraction(claim)) <= Fraction(1, 2**52)  # rounded
            demand(claim is None or fits, f"/claimed/{k}", f"claims the bound {claim!r}, not {float(proven)!r}")
            bounds.append(None if claim is None else proven)
        return bounds
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Rejected(f"the document: not a certificate ({type(error).__name__}: {error})") from None


def main(arguments: list[str]) -> int:
    """Check every certificate of a bundle (a folder or a zip archive) and print what it proves."""
    try:
        demand(len(arguments) == 1, "usage", "python -I kernel.py BUNDLE")
        path, right = Path(arguments[0]), 0
        folder = (path if path.is_dir() else zipfile.Path(path)) / "certificates"
        texts = {f.name: f.read_bytes() for f in folder.iterdir() if {"free", "steps"}.isdisjoint(f.name.split("_"))}
    except (Rejected, OSError, ValueError, zipfile.BadZipFile) as error:
        print(f"no certificates are read: {error}", file=sys.stderr)
        return 2
    for name, text in sorted(texts.items()):
        try:
            certificate = json.loads(text)
            bounds = ["-" if bound is None else repr(float(bound)) for bound in check(certificate)]
            print(f"{name}: proven: P {'>=' if certificate['side'] == 'lower' else '<='} {', '.join(bounds)}")
            right += 1
        except (Rejected, RecursionError, ValueError) as error:
            print(f"{name}: REJECTED: {error}")
    print(f"{right} of {len(texts)} certificates proven; not decided: if about the model, *_free_*, *_steps_*")
    return 0 if texts and right == len(texts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
