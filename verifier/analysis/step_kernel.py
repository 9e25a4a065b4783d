"""Checks certificates of what happens step by step by whole numbers alone: python -I step_kernel.py BUNDLE

*Counted steps* (`*_steps_*`). A certificate (JSON) states a Markov chain: for each state where a step leads, as
[state, weight] pairs; where it begins; sets of states `left` and `right`; and that it is about the following formula,
or about its negation:

    left U[low,high] right                                    where `response` is null, else
    G[low,high] (left -> F[0,response] right)

It claims bounds on the probability from each beginning. They are computed here, and must be those but for rounding:

1. Numbers are whole numbers of 2^-120. The probability of an event and that of its complement are bounded from below,
   by u and v; so P lies between u and 1 - v. Nothing is negative, so sums and products of lower bounds are such, too.
2. What a state is worth some steps before the end is the mean of what the states after one step are worth one step
   later (`means`). Steps are taken one by one; where they are very many, the matrix of a step is squared repeatedly.
3. In an until who is in `right` has won, and who is in neither has lost, for high - low steps; in the `low` steps
   before, who is not in `left` has lost.
4. In a response (`late`) states also say for how many steps the oldest `left` has waited for a `right`: who waits
   more than `response` steps has lost, and so has who waits where no `right` can be reached.
5. Often one bit is enough, whether somebody waits. Let r be the greatest probability to come within `response` steps
   neither to a `right` nor to where none can be reached. Who wins by that bit alone has waited too long since one of
   the high - low + 1 places of a `left`, for each with probability r at most: u is too large by (high - low + 1) r.

*Whatever the dependence* (`*_free_*`). A certificate states a linear program: flows f >= 0 out of nodes in steps, the
first node being where a run begins, and what each costs. A flow leads to nodes of the next step with the chances
`often` of `total`; -1: all is decided there, or the steps are over. The flow into a node is the flow out of it, and 1
flows out of the first. Flows that count for a limit sum to at most a rate; rates lie between their ends, and those of
a column sum to 1. Claimed is a lower end of the cost of every such flow: of the probability of acceptance (side
"lower"), or of rejection ("upper", where 1 minus that is claimed).

Whatever solved the program, multipliers y of the nodes, w of the columns and u <= 0 of the limits prove it (weak
duality). With reduced costs d = c - A'(y, w, u) the cost is at least

    y_0 + sum w + sum over steps of min(0, least d of its flows) + sum over rates of min(d l, d u)

as at most 1 flows in each step: what comes into a step came out of the one before.

That chain or program is that of a model and a formula is not decided here: `verify evidence check` rebuilds it.
"""

import json
import sys
import zipfile
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

SCHEMA, VERSION = "verifier.step_certificate", 1
ONE, BITS, BYTES = 2**120, 120, 32  # BYTES for each number where a row of them is written as a single number:
SLOT = 8 * BYTES  # products of two fit in, and sums of products by a row, as what is in a row sums to ONE at most
LARGEST = 2**2000  # of whole numbers
MOST = 5 * 10**7  # multiplications, some ten seconds of them, for steps one by one, and again for squaring
MOST_WAITING = 200_000  # transitions where states say for how long somebody waits
APART, DECIDED = ONE >> 40, ONE >> 100  # what one bit may cost (5); what is not worth any further step
ROUNDING = Fraction(1, 2**52)  # of claims
BILLION = 10**9  # multipliers are whole numbers of billionths
Rows = list[list[tuple[int, int]]]  # of a matrix: (column, number) pairs, weights or parts of ONE
Worth = list[tuple[int, int]]  # u and v of each state


class Rejected(Exception):  # noqa: N818
    """A certificate that proves nothing; the message begins with the place of what is wrong."""


def demand(holds: bool, where: str, message: str) -> None:
    """Reject unless it holds."""
    if not holds:
        raise Rejected(f"{where}: {message}")


def whole(value: Any, where: str, shape: tuple[int | None, ...], low: int = 0, end: int = LARGEST) -> Any:
    """`value`, if it is lists of these lengths (None: any) of whole numbers from `low` to below `end`."""
    if not shape:
        demand(type(value) is int and low <= value < end, where, "expected a whole number that can be there")
        return value
    demand(type(value) is list and shape[0] in (None, len(value)), where, f"expected a list of length {shape[0]}")
    return [whole(inner, f"{where}/{k}", shape[1:], low, end) for k, inner in enumerate(value)]


def product(left: Rows, right: list[int], width: int) -> list[int]:
    """The product of matrices, rounded down; `right` and the result have each row of `width` numbers in one."""
    kept = int.from_bytes((2 * ONE - 1).to_bytes(BYTES, "little") * width, "little")
    return [sum(share * right[k] for k, share in row) >> BITS & kept for row in left]


def squared(matrix: Rows) -> Rows:
    """The product of a matrix with itself."""
    size = len(matrix)
    joined = [sum(share << SLOT * k for k, share in row) for row in matrix]
    parts = [row.to_bytes(BYTES * size, "little") for row in product(matrix, joined, size)]
    numbers = ([int.from_bytes(row[BYTES * k : BYTES * k + BYTES], "little") for k in range(size)] for row in parts)
    return [[(k, number) for k, number in enumerate(row) if number] for row in numbers]


def reached(rows: Rows, begin: Iterable[int]) -> set[int]:
    """Who is reached from the beginning by any number of steps, none included."""
    known = {*begin}
    waiting = [*known]
    while waiting:
        new = {after for after, _ in rows[waiting.pop()]} - known
        known |= new
        waiting += new
    return known


def reaching(rows: Rows, ends: Iterable[int]) -> set[int]:
    """Who can reach one of the ends."""
    before: Rows = [[] for _ in rows]
    for state, row in enumerate(rows):
        for after, weight in row:
            before[after].append((state, weight))
    return reached(before, ends)


def means(rows: Rows, steps: int, worth: Worth, asked: Iterable[int]) -> tuple[Worth, list[int]]:
    """The worth of every state that is reached from those asked about, so many steps before it is as given; and upper
    bounds of the probability that it is not decided by then.

    It is decided in states that are never left, and in those from which it is ONE, or 0, wherever steps lead. These
    are merged into three: one with u = ONE, one with v = ONE, one with neither; a third column beside u and v says
    that they are decided.
    """
    sure = ((ONE, 0), (0, ONE))
    vary = [reaching(rows, [state for state, pair in enumerate(worth) if pair != ends]) for ends in sure]
    left = (state for state in reached(rows, asked) if any(after != state for after, _ in rows[state]))
    states = sorted(vary[0].intersection(vary[1], left))
    place, size, matrix, values = {state: k for k, state in enumerate(states)}, len(states), Rows(), list[int]()
    for state in states:
        often, total = dict[int, int](), sum(weight for _, weight in rows[state])
        for after, weight in rows[state]:
            u, v = worth[after]
            merged = ((size, u), (size + 1, v), (size + 2, ONE - u - v))
            for column, share in ((place[after], ONE),) if after in place else merged:
                often[column] = often.get(column, 0) + weight * share
        matrix.append([(column, share // total) for column, share in often.items()])
        values.append(worth[state][0] | worth[state][1] << SLOT)
    matrix += ([(size + k, ONE)] for k in range(3))
    values += (pair | ONE << 2 * SLOT for pair in (ONE, ONE << SLOT, 0))
    price = (size + 3) ** 3 * steps.bit_length() // 8  # of squaring, where eight are made in the time of one
    most, taken = min(price, MOST) // sum(map(len, matrix)) + 1, 0
    while not (ended := min(values) >> 2 * SLOT >= ONE - DECIDED) and taken < min(steps, most):
        values, taken = product(matrix, values, 3), taken + 1
    steps = 0 if ended else steps - taken
    demand(steps == 0 or price <= MOST, "/window", f"{steps} steps more of {size} states take too long to check")
    while steps:
        values, steps = product(matrix, values, 3) if steps & 1 else values, steps >> 1
        matrix = squared(matrix) if steps else matrix
    result, undecided = [*worth], [0] * len(rows)
    for state, value in zip(states, values, strict=False):
        u, v, decided = (value >> SLOT * column & 2 * ONE - 1 for column in range(3))
        undecided[state] = ONE - decided
        lost = ONE - decided if ended else 0  # what is undecided may change in steps that were not taken
        result[state] = max(u - lost, 0), max(v - lost, 0)
    return result, undecided


def until(rows: Rows, left: list[int], right: list[int], steps: int, asked: Iterable[int]) -> tuple[Worth, list[int]]:
    """`means` of `left U[0,steps] right`."""
    walk = [row if left[state] and not right[state] else [(state, 1)] for state, row in enumerate(rows)]
    return means(walk, steps, [(ONE, 0) if won else (0, ONE) for won in right], asked)


def response(rows: Rows, left: list[int], right: list[int], steps: int, bound: int, asked: Iterable[int]) -> Worth:
    """The worth of the states asked about, of `G[0,steps] (left -> F[0,bound] right)`."""
    size, hope = len(rows), reaching(rows, [state for state, here in enumerate(right) if here])
    missed = (steps + 1) * max(until(rows, [1] * size, right, bound, hope)[1])
    ages, older, missed = (1, 0, missed) if missed <= APART else (bound, 1, 0)
    fits = ages * sum(map(len, rows)) <= MOST_WAITING
    demand(fits, "/window/response", f"to wait for up to {ages} steps takes too long to check")
    lost = size * (ages + 1)

    def late(after: int, age: int) -> int:
        """Where a step to a state leads who has waited for `age` steps and one; nobody has, where it is 0."""
        if right[after] or not (age or left[after]):
            return after
        age = age + older if age else 1
        return after + size * age if after in hope and age <= ages else lost

    walk: Rows = [[(late(after, age), weight) for after, weight in row] for age in range(ages + 1) for row in rows]
    walk.append([(lost, 1)])
    begin = {state: late(state, 0) for state in asked}
    worth = [(ONE, 0)] * size + [(0, ONE)] * (lost + 1 - size)
    at_rest: Rows = [[(state, 1)] for state in range(size)]  # who comes behind the last step needs no answer
    worth, _ = means(at_rest + walk[size:], bound, worth, reached(walk, begin.values()))
    worth, _ = means(walk, steps, worth, begin.values())
    return [(max(u - missed, 0), v) for u, v in (worth[begin.get(state, state)] for state in range(size))]


def proven(chain: Any, window: Any) -> list[tuple[Fraction, Fraction]]:
    """The lower and the upper bound of the probability from each beginning."""
    rows, size = Rows(), len(chain["rows"])
    for state, row in enumerate(chain["rows"]):
        rows.append([(after, weight) for after, weight in whole(row, f"/chain/rows/{state}", (None, 2))])
        fits = bool(row) and all(after < size and weight > 0 for after, weight in rows[state])
        demand(fits, f"/chain/rows/{state}", "expected states, and weights above 0")
    starts: list[int] = whole(chain["starts"], "/chain/starts", (None,), 0, size)
    demand(bool(starts), "/chain/starts", "expected a state")
    left, right = (whole(window[name], f"/window/{name}", (size,), 0, 2) for name in ("left", "right"))
    low, high, bound, negated = (window[name] for name in ("low", "high", "response", "negated"))
    whole(low, "/window/low", (), 0, whole(high, "/window/high", ()) + 1)
    demand(type(negated) is bool, "/window/negated", "expected true or false")
    asked = range(size) if low else starts
    if bound is None:
        worth, _ = until(rows, left, right, high - low, asked)
        rows = [row if here else [(size, 1)] for row, here in zip(rows, left, strict=True)]
    else:
        worth = response(rows, left, right, high - low, whole(bound, "/window/response", (), 1), asked)
    worth, _ = means([*rows, [(size, 1)]], low, [*worth, (0, ONE)], starts)
    ends = [(Fraction(u, ONE), Fraction(v, ONE)) for u, v in (worth[state] for state in starts)]
    return [(v, 1 - u) if negated else (u, 1 - v) for u, v in ends]


def check(certificate: Any) -> list[tuple[Fraction, Fraction]]:
    """The proven bounds from each beginning; Rejected says what does not hold."""
    try:
        head = certificate["schema"], certificate["version"]
        demand(head == (SCHEMA, VERSION), "/schema", f"expected {SCHEMA} version {VERSION}")
        bounds = proven(certificate["chain"], certificate["window"])
        for k, (ends, claim) in enumerate(zip(bounds, certificate["claimed"], strict=True)):
            for end, claimed, sign in zip(ends, claim, (1, -1), strict=True):
                fits = type(claimed) is float and 0 <= sign * (end - Fraction(claimed)) <= ROUNDING
                demand(fits, f"/claimed/{k}", f"claims the bound {claimed!r:.30}, not {float(end)!r}")
        return bounds
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Rejected(f"the document: not a certificate ({type(error).__name__}: {error})") from None


def fraction(text: Any) -> Fraction:
    """The fraction that `1/3` or `2` states: no power of ten, which may have any number of digits."""
    return Fraction(*map(int, text.split("/")))


def proven_cost(program: Any, multipliers: Any) -> Fraction:
    """The lower end of the cost that the multipliers prove."""
    total = whole(program["total"], "/program/total", (), 1)
    own = whole(program["own"], "/program/own", (None,))
    demand(bool(own), "/program/own", "expected a flow")
    flows, nodes = len(own), max(own) + 1
    step = whole(program["step"], "/program/step", (flows,))
    cost = whole(program["cost"], "/program/cost", (flows,), 0, total + 1)
    after = whole(program["after"], "/program/after", (flows, None), -1)
    often = whole(program["often"], "/program/often", (flows, None))
    step_of = dict(zip(own, step, strict=True))
    demand(len(step_of) == nodes and step_of[0] == 0, "/program/own", "a node without a flow, or a late beginning")
    demand([*step_of.values()].count(0) == 1, "/program/step", "one node is in the first step")
    for k in range(flows):
        demand(step[k] == step_of[own[k]], f"/program/step/{k}", "a node is in one step")
        fits = len(after[k]) == len(often[k]) and sum(often[k]) <= total
        demand(fits, f"/program/often/{k}", "more flows on than came, or not said where to")
        leads = all(node == -1 or step_of.get(node) == step[k] + 1 for node in after[k])
        demand(leads, f"/program/after/{k}", "it leads to nodes of the next step, or to -1")
    column_of = whole(program["column_of"], "/program/column_of", (None,))
    limits = len(whole(program["rate_of"], "/program/rate_of", (None,), 0, len(column_of)))
    columns = max(column_of, default=-1) + 1
    lower, upper = ([*map(fraction, program[name])] for name in ("lower", "upper"))
    demand(len(lower) == len(column_of), "/program/lower", "every rate has two ends")
    demand(all(low <= high for low, high in zip(lower, upper, strict=True)), "/program/lower", "ends out of order")
    of_flow = whole(program["limits"], "/program/limits", (flows, None), -1, limits)
    y = whole(multipliers["nodes"], "/multipliers/nodes", (nodes,), -LARGEST)
    w = whole(multipliers["columns"], "/multipliers/columns", (columns,), -LARGEST)
    u = whole(multipliers["limits"], "/multipliers/limits", (limits,), -LARGEST, 1)
    least: dict[int, int] = {}
    for k in range(flows):
        reduced = cost[k] * BILLION - total * (y[own[k]] + sum(u[number] for number in of_flow[k] if number != -1))
        reduced += sum(share * y[node] for share, node in zip(often[k], after[k], strict=True) if node != -1)
        least[step[k]] = min(least.get(step[k], 0), reduced)
    bound = Fraction(y[0] + sum(w)) + Fraction(sum(least.values()), total)
    slope = [-w[column] for column in column_of]
    for number, rate in enumerate(program["rate_of"]):
        slope[rate] += u[number]
    bound += sum((min(d * low, d * high) for d, low, high in zip(slope, lower, upper, strict=True)), Fraction(0))
    return bound / BILLION


def check_free(certificate: Any) -> Fraction:
    """The end of P, whatever the dependence, that a certificate proves; Rejected where it proves none."""
    try:
        side, claimed = certificate["side"], fraction(certificate["claimed"])
        bound = proven_cost(certificate["program"], certificate["multipliers"])
        if side == "lower":
            end = max(bound, Fraction(0))
            holds = claimed <= end
        else:
            demand(side == "upper", "/side", "expected lower or upper")
            end = min(1 - bound, Fraction(1))
            holds = claimed >= end
        demand(holds, "/claimed", f"{float(claimed)!r} is claimed, and {float(end)!r} proven")
        return claimed
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Rejected(f"the document: not a certificate ({type(error).__name__}: {error})") from None


def main(arguments: list[str]) -> int:
    """Check every certificate of these kinds in a bundle (a folder or a zip archive) and print what it proves."""
    try:
        demand(len(arguments) == 1, "usage", "python -I step_kernel.py BUNDLE")
        path, right = Path(arguments[0]), 0
        folder = (path if path.is_dir() else zipfile.Path(path)) / "certificates"
        named = {file.name: file for file in folder.iterdir()}
        texts = {name: file.read_bytes() for name, file in named.items() if "_steps_" in name or "_free_" in name}
    except (Rejected, OSError, ValueError, zipfile.BadZipFile) as error:
        print(f"no certificates are read: {error}", file=sys.stderr)
        return 2
    for name, text in sorted(texts.items()):
        try:
            certificate = json.loads(text)
            if "_free_" in name:
                bounds = [f"P {'>=' if certificate['side'] == 'lower' else '<='} {float(check_free(certificate))!r}"]
            else:
                check(certificate)
                bounds = [f"{low!r} <= P <= {high!r}" for low, high in certificate["claimed"]]
            print(f"{name}: proven: {', '.join(bounds)}")
            right += 1
        except (Rejected, RecursionError, ValueError) as error:
            print(f"{name}: REJECTED: {error}")
    print(f"{right} of {len(texts)} certificates proven; not decided: whether they are about the model")
    return 0 if texts and right == len(texts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
