"""What is true of the system that a certificate states, from the definitions, and slowly.

Nothing here is shared with the kernel: formulas are formulas of the language again, chains are solved in fractions,
and nature's choices are enumerated: in each state each vertex of its rates and the mean of all of them, which has
every move that nature can have; and two such choices in turn, which stands for choices that depend on the history.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
from interval_models import vertices

from verifier.base.graphs import components
from verifier.checking.product import build_product
from verifier.checking.recurrence import component_values
from verifier.language.expressions.syntax import FALSE, TRUE, Interval, Name, Operation, Temporal

MOST_CHOICES = 400


def formula_of(nodes):
    """The nodes of a certificate as a formula of the language over p0, p1, ..."""
    built = []
    for kind, operands, low, high in nodes:
        parts = [built[operand] for operand in operands]
        if kind in ("holds", "fails"):
            node = Name(f"p{low}")
            built.append(node if kind == "holds" else Operation("!", (node,)))
        elif kind in ("&", "|"):
            node = TRUE if kind == "&" else FALSE
            for part in parts:
                node = Operation(kind, (node, part))
            built.append(node)
        else:
            built.append(Temporal(kind, tuple(parts), Interval(low, high)))
    return built[-1]


def column_of(content, columns, index, true):
    """The ends of a column, and what they are parts of; one that is not told may be anything."""
    for each in columns["columns"]:
        if (each["bin"], each["true"]) == (index, true):
            return each["lower"], each["upper"], each["unit"]
    count = len(content["subject"]["told"][0][0]) - 1
    return [0] * count, [1] * count, 1


def distributions(content, state):
    """What nature can choose in a state: state that follows -> chance, for vertices of all draws and their mean, on
    each way on and on all of them evenly."""
    found = [each for way in ways_on(content["subject"], state) for each in _on_way(content, way)]
    mean = {}
    for choice in found:
        for after, chance in choice.items():
            mean[after] = mean.get(after, 0) + chance / len(found)
    return [dict(items) for items in dict.fromkeys(tuple(sorted(each.items())) for each in [*found, mean])]


def ways_on(subject, state):
    """The alternatives of a state."""
    return [way for way, own in enumerate(subject.get("owner", range(len(subject["row"])))) if own == state]


def _on_way(content, way):
    subject, region = content["subject"], content["region"]
    row, ahead = subject["row"][way], subject["following"][way]
    moved, outcomes = motion_of(subject, way), len(subject.get("motion", [[1]])[0])
    if row < 0:
        return [_led(moved, ahead)]
    choices = [{0: Fraction(1)}]
    for index, column, kind in drawn_on(subject, row):
        low, high, unit = column_of(content, region, index, column)
        points = vertices(low, high, unit)
        wider = []
        for before in choices:
            # Each report so far may be followed by a vertex of its own.
            for picked in itertools.islice(itertools.product(points, repeat=len(before)), 64):
                after = {}
                for (seen, chance), point in zip(before.items(), picked, strict=True):
                    for now, share in told_after(subject, kind, seen, [Fraction(mass, unit) for mass in point]):
                        after[now] = after.get(now, 0) + chance * share
                wider.append(after)
        choices = wider
    return [
        _led(
            {seen * outcomes + w: chance * share for seen, chance in choice.items() for w, share in moved.items()},
            ahead,
        )
        for choice in choices
    ]


def drawn_on(subject, row):
    """Bin, column and kind of each draw of a row."""
    draws = zip(subject["bins"][row], subject["columns"][row], subject["kinds"][row], strict=True)
    return [each for each in draws if each[1] >= 0]


def told_after(subject, kind, seen, rates):
    """What is known after one more report, with its probability, for these rates of the groups."""
    ways = subject["told"][kind]
    whole = sum(often for often, *_ in ways)
    for often, *reports in ways:
        for report, rate in zip(reports, rates, strict=True):
            if rate and often:
                after = subject["then"][seen][report]
                assert after >= 0
                yield after, rate * Fraction(often, whole)


def _led(chances, ahead):
    """State that follows -> chance."""
    result = {}
    for seen, chance in chances.items():
        result[ahead[seen]] = result.get(ahead[seen], 0) + chance
    return result


def motion_of(subject, way):
    """What the world draws on a way on: number of the outcome -> its chance."""
    often = subject["motion"][subject["moving"][way]] if "motion" in subject else [1]
    return {k: Fraction(each, sum(often)) for k, each in enumerate(often) if each}


def greatest_lost(content, rng, most=MOST_CHOICES):
    """(starts,) the greatest probability of being lost that the choices tried give, in fractions: a lower bound."""
    options = [distributions(content, state) for state in range(len(content["subject"]["letters"]))]
    plain = itertools.product(*(range(len(each)) for each in options))
    count = int(np.prod([float(len(each)) for each in options]))
    tried = list(itertools.islice(plain, most)) if count <= most else []
    tried += [tuple(int(rng.integers(len(each))) for each in options) for _ in range(0 if tried else most)]
    worst = [Fraction(0)] * len(content["subject"]["starts"])
    for choice in tried:
        ticks = [choice, choice]
        if rng.random() < 0.5:
            ticks[1] = tried[int(rng.integers(len(tried)))]
        lost = lost_under(content, [[options[s][k] for s, k in enumerate(tick)] for tick in ticks])
        worst = [max(pair) for pair in zip(worst, lost, strict=True)]
    return worst


def lost_under(content, ticks):
    """(starts,) the probability of being lost when distributions alternate between those of two ticks of a clock."""
    subject, count = content["subject"], len(content["subject"]["letters"])
    moves = []  # of (state, tick), numbered state + tick * count
    for tick in (0, 1):
        for state in range(count):
            ahead = {}
            for following, chance in ticks[tick][state].items():
                ahead[following + (1 - tick) * count] = chance
            moves.append(dict(sorted(ahead.items())))
    letters = np.array(subject["letters"] * 2)
    labels = {f"p{bit}": (letters >> bit & 1).astype(bool) for bit in range(len(subject["propositions"]))}
    indptr = np.concatenate([[0], np.cumsum([len(ahead) for ahead in moves])])
    indices = np.array([after for ahead in moves for after in ahead])
    chances = [chance for ahead in moves for chance in ahead.values()]
    formula = formula_of(subject["formula"])
    product = build_product(indptr, indices, labels, formula, np.array(subject["starts"], dtype=np.int64))
    holds = holding(product, chances)
    values = [holds[state] for state in product.start.tolist()]
    return [1 - value for value in values] if content["side"] == "lower" else values


def holding(product, chances):
    """The probability of the formula in every product state, in fractions."""
    count = product.state_count
    rows = [
        merged(zip(product.indices[a:b].tolist(), product.edge[a:b].tolist(), strict=True), chances)
        for a, b in itertools.pairwise(product.indptr.tolist())
    ]
    sources = np.array([s for s, row in enumerate(rows) for _ in row], dtype=np.int64)
    targets = np.array([t for row in rows for t in row], dtype=np.int64)
    part = components(count, sources, targets)
    leaving = set(part[sources[part[sources] != part[targets]]].tolist())
    inner = np.array([s for s in range(2, count) if int(part[s]) not in leaving], dtype=np.int64)
    value = {0: Fraction(0), 1: Fraction(1)}
    if len(inner):
        _, number = np.unique(part[inner], return_inverse=True)
        support = np.ones(len(product.chain_indices), dtype=bool)
        truth = component_values(product, support, inner, number)
        value |= {int(s): Fraction(int(truth[k])) for s, k in zip(inner, number, strict=True)}
    unknown = [s for s in range(count) if s not in value]
    solved = solution(unknown, rows, value)
    return {**value, **solved}


def merged(pairs, chances):
    result = {}
    for target, edge in pairs:
        result[target] = result.get(target, 0) + chances[edge]
    return result


def solution(unknown, rows, known):
    """x(s) = sum of rows[s][t] x(t), by elimination of one state after the other."""
    rows = {s: dict(rows[s]) for s in unknown}
    constant = {s: sum((p * known[t] for t, p in rows[s].items() if t in known), Fraction(0)) for s in unknown}
    for s in unknown:
        rows[s] = {t: p for t, p in rows[s].items() if t not in known}
    order = list(unknown)
    for k, s in enumerate(order):
        stay = 1 - rows[s].pop(s, Fraction(0))
        rows[s] = {t: p / stay for t, p in rows[s].items()}
        constant[s] /= stay
        for other in order[k + 1 :]:
            weight = rows[other].pop(s, None)
            if weight:
                constant[other] += weight * constant[s]
                for t, p in rows[s].items():
                    rows[other][t] = rows[other].get(t, 0) + weight * p
    result = {}
    for s in reversed(order):
        result[s] = constant[s] + sum((p * result[t] for t, p in rows[s].items()), Fraction(0))
    return result
