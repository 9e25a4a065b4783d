"""A second checker of certificates, from the definition of each step and with other means than the kernel.

Rates are enumerated (vertices and the supports that mixtures have), formulas are progressed by the program's own
`Obligations`, and who stays is tried out: every way in which nature can stay in a component, each state with one of
its supports, is a chain whose bottom components `recurrence` decides. Region: ends are tails summed up in fractions.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from certified_systems import column_of, drawn_on, formula_of, motion_of, told_after, ways_on
from interval_models import vertices

from verifier.base.graphs import components
from verifier.checking.product import build_product
from verifier.checking.recurrence import component_values
from verifier.language.ltl import holds_on_lasso
from verifier.language.ltl.progression import Obligations

BILLION = 10**9
MOST_WAYS = 512


def complaint(content):
    """What is wrong with a certificate of independent items or an assumed region; None where nothing is."""
    for check in (_region, _tree, _claims):
        wrong = check(content)
        if wrong:
            return wrong
    for box, columns in _boxes(content):
        wrong = _box(content, content["boxes"][box], columns)
        if wrong:
            return wrong
    return None


def _empty(columns):
    return any(
        sum(each["lower"]) > each["unit"]
        or sum(each["upper"]) < each["unit"]
        or any(a > b for a, b in zip(each["lower"], each["upper"], strict=True))
        for each in columns
    )


def _region(content):
    region = content["region"]
    if _empty(region["columns"]):
        return "empty region"
    evidence = region["evidence"]
    if evidence is None:
        return None
    tail, groups = Fraction(evidence["alpha"]) / (2 * max(evidence["events"], 1)), len(set(region["group"]))
    used = 0
    for column in region["columns"]:
        if column["counts"] is None:
            continue
        if column["unit"] != BILLION:
            return "not billionths"
        used += {1: 0, 2: 1}.get(groups, groups)
        (items,) = column["counts"]
        for count, least, most in zip(items, column["lower"], column["upper"], strict=True):
            misses = sum(items) - count
            if _tail(sum(items), count, least) > tail or _tail(sum(items), misses, BILLION - most) > tail:
                return "ends that the counts do not give"
    return "too many events" if used > evidence["events"] else None


def _tail(total, least, billionths):
    if billionths == 0:
        return 0
    p = Fraction(billionths, BILLION)
    return sum(math.comb(total, k) * p**k * (1 - p) ** (total - k) for k in range(least, total + 1))


def _boxes(content):
    return _cut(content["tree"], content["region"]["columns"])


def _cut(tree, columns):
    if isinstance(tree, int):
        yield tree, columns
    elif tree is not None:
        place, group, below, above = (tree["bin"], tree["true"]), tree["group"], [], []
        for each in columns:
            low, high = list(each["lower"]), list(each["upper"])
            if (each["bin"], each["true"]) == place:
                low[group], high[group] = max(tree["at"], low[group]), min(tree["at"], high[group])
            below.append({**each, "upper": high})
            above.append({**each, "lower": low})
        yield from _cut(tree["below"], below)
        yield from _cut(tree["above"], above)


def _tree(content):
    found = [box for box, _ in _boxes(content)]
    return "boxes left out" if sorted(found) != list(range(len(content["boxes"]))) else None


def _claims(content):
    for state, claim in zip(content["subject"]["starts"], content["claimed"], strict=True):
        worst = max(Fraction(box["value"][state]) / box["unit"] for box in content["boxes"])
        slack = 1 - worst - Fraction(claim or 0) if content["side"] == "lower" else Fraction(claim or 0) - worst
        if claim is not None and not 0 <= slack <= Fraction(1, 2**52):
            return "another claim"
    return None


def _box(content, box, columns):
    if not all(math.isfinite(y) and y >= 0 for y in box["value"]):
        return "values"
    steps = [_choices(content, state, columns) for state in range(len(box["value"]))]
    order, value = box["order"], [Fraction(y) / box["unit"] for y in box["value"]]
    own = {state: k for k, component in enumerate(box["components"]) for state in component["states"]}
    steps = [[] if y >= 1 else choices for y, choices in zip(value, steps, strict=True)]  # nothing follows a target
    remains, lost = _obligations(content, steps)
    for state, choices in enumerate(steps):
        if value[state] >= 1:
            continue
        if lost in remains[state]:
            return f"lost {state}"
        if any(sum(p * value[t] for t, p in choice.items()) > value[state] for choice in choices):
            return f"value {state}"
        for support in _supports(choices):
            rising = all(order[t] >= order[state] and value[t] < 1 for t in support)
            if rising and not (
                state in own and all((own.get(t), order[t]) == (own[state], order[state]) for t in support)
            ):
                return f"order {state}"
    for number in set(own.values()):
        members = [state for state, k in own.items() if k == number and value[state] < 1]
        if not _stays_well(content, members, steps, remains):
            return f"component {number}"
    return None


def _choices(content, state, columns):
    """Every way to draw vertices, on each way on: state that follows -> chance."""
    return [each for way in ways_on(content["subject"], state) for each in _choices_on(content, way, columns)]


def _choices_on(content, way, columns):
    subject = content["subject"]
    row = subject["row"][way]
    choices = [{0: Fraction(1)}]
    for index, column, kind in drawn_on(subject, row) if row >= 0 else ():
        low, high, unit = column_of(content, {"columns": columns}, index, column)
        points = vertices(low, high, unit)
        wider = []
        for before in choices:
            for picked in itertools.product(points, repeat=len(before)):
                after = {}
                for (seen, chance), point in zip(before.items(), picked, strict=True):
                    for now, share in told_after(subject, kind, seen, [Fraction(mass, unit) for mass in point]):
                        after[now] = after.get(now, 0) + chance * share
                wider.append(after)
        choices = wider
    result = []
    for choice in choices:
        ahead = {}
        for seen, chance in choice.items():
            for outcome, share in motion_of(subject, way).items():
                after = subject["following"][way][seen * len(subject.get("motion", [[1]])[0]) + outcome]
                ahead[after] = ahead.get(after, 0) + chance * share
        result.append(ahead)
    return result


def _supports(choices):
    """The sets of states that a mixture of choices can lead to."""
    found = {frozenset(choice) for choice in choices}
    while True:
        more = {one | other for one in found for other in found} - found
        if not more:
            return found
        found |= more


def _obligations(content, steps):
    subject = content["subject"]
    obligations = Obligations(formula_of(subject["formula"]))

    def letter(state):
        now = [frozenset(f"p{bit}" for bit in range(60) if subject["letters"][state] >> bit & 1)]
        propositions = obligations.formula.propositions
        return sum(1 << k for k, node in enumerate(propositions) if holds_on_lasso(node, [], now))

    remains = [set() for _ in steps]
    pending = [(state, obligations.progress(obligations.initial, letter(state))) for state in subject["starts"]]
    while pending:
        state, number = pending.pop()
        if number not in remains[state]:
            remains[state].add(number)
            ahead = {t for choice in steps[state] for t in choice}
            pending += [(t, obligations.progress(number, letter(t))) for t in ahead]
    return remains, 0 if content["side"] == "lower" else 1


def _stays_well(content, members, steps, remains):
    """Whether no way of staying decides against the bound, of those that take one support in each state."""
    inside = set(members)
    options = [[None, *(s for s in _supports(steps[state]) if s <= inside)] for state in members]
    if math.prod(map(len, options)) > MOST_WAYS:
        options = [[way for way in ways if way is None or len(way) != 2] + ways[-1:] for ways in options]
    for chosen in itertools.islice(itertools.product(*options), MOST_WAYS):
        moves = {state: way for state, way in zip(members, chosen, strict=True) if way is not None}
        while loose := [state for state, way in moves.items() if not way <= moves.keys()]:
            for state in loose:
                del moves[state]
        if moves and not _chain_stays_well(content, moves, steps, remains):
            return False
    return True


def _chain_stays_well(content, moves, steps, remains):
    subject, place = content["subject"], {state: k for k, state in enumerate(moves)}
    letters = np.array([subject["letters"][state] for state in moves])
    labels = {f"p{bit}": (letters >> bit & 1).astype(bool) for bit in range(len(subject["propositions"]))}
    indptr = np.cumsum([0, *(len(way) for way in moves.values())])
    indices = np.array([place[t] for way in moves.values() for t in sorted(way)])
    wanted = content["side"] == "lower"
    # Of runs that come to a state of a bottom component a path to it tells what the formula makes of them.
    part = components(len(moves), np.repeat(np.arange(len(moves)), np.diff(indptr)), indices)
    sources = np.repeat(np.arange(len(moves)), np.diff(indptr))
    bottoms = set(part.tolist()) - set(part[sources[part[sources] != part[indices]]].tolist())
    for state, k in place.items():
        if int(part[k]) in bottoms and remains[state]:
            for path in _paths_to(content, steps, state, len(remains[state])):
                if _meets(subject, path, labels, indptr, indices, k) != wanted:
                    return False
    return True


def _paths_to(content, steps, state, count):
    """Some paths from a start to a state, the shortest first."""
    ahead = [sorted({after for choice in choices for after in choice}) for choices in steps]
    found = []
    layer = [[start] for start in set(content["subject"]["starts"])]
    for _ in range(2 * len(ahead)):
        found += [path for path in layer if path[-1] == state]
        if len(found) >= count or len(layer) > 200:
            break
        layer = [[*path, after] for path in layer for after in ahead[path[-1]]]
    return found[:count]


def _meets(subject, path, labels, indptr, indices, last):
    """Whether a chain, entered at `last` by a path, meets the formula almost surely."""
    before = [subject["letters"][state] for state in path[:-1]]
    size, n = len(before), len(indptr) - 1
    wide = {
        name: np.concatenate([mask, [bool(letter >> int(name[1:]) & 1) for letter in before]]).astype(bool)
        for name, mask in labels.items()
    }
    tail = [n + k + 1 for k in range(size - 1)] + ([last] if size else [])
    pointers = np.concatenate([indptr, indptr[-1] + 1 + np.arange(size)])
    targets = np.concatenate([indices, np.array(tail, dtype=np.int64)]).astype(np.int64)
    start = np.array([n if size else last])
    product = build_product(pointers, targets, wide, formula_of(subject["formula"]), start)
    count = product.state_count
    part = components(count, product.sources, product.indices)
    leaving = set(part[product.sources[part[product.sources] != part[product.indices]]].tolist())
    inner = np.array([s for s in range(2, count) if int(part[s]) not in leaving], dtype=np.int64)
    ends = {bool(s) for s in (0, 1) if s in set(product.indices.tolist()) | set(product.start.tolist())}
    if len(inner):
        _, number = np.unique(part[inner], return_inverse=True)
        ends |= set(component_values(product, np.ones(len(targets), dtype=bool), inner, number).tolist())
    assert len(ends) == 1, "a bottom component, and the formula neither almost certain nor almost impossible"
    return ends.pop()
