"""Checks certificates of bounds whatever the dependence by whole numbers alone: python -I flow_kernel.py CERTIFICATES

A certificate (JSON) states a linear program: flows f >= 0 out of nodes in steps, the first node being where a run
begins, and what each costs. A flow leads to nodes of the next step with the chances `often` of `total`; -1: all is
decided there, or the steps are over. The flow into a node is the flow out of it, and 1 flows out of the first. Flows
that count for a limit sum to at most a rate; rates lie between their ends, and those of a column sum to 1. Claimed is
a lower end of the cost of every such flow: of the probability of acceptance (side "lower"), or of rejection ("upper",
where 1 minus that is claimed).

Whatever solved the program, multipliers y of the nodes, w of the columns and u <= 0 of the limits prove it (weak
duality). With reduced costs d = c - A'(y, w, u) the cost is at least

    y_0 + sum w + sum over steps of min(0, least d of its flows) + sum over rates of min(d l, d u)

as at most 1 flows in each step: what comes into a step came out of the one before. That the program is that of a
model, a formula and a region of rates is not decided here.
"""

import json
import sys
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

BILLION = 10**9  # multipliers are whole numbers of billionths
LARGEST = 2**2000  # of whole numbers


class Rejected(Exception):  # noqa: N818
    """A certificate that proves nothing; the message begins with the place of what is wrong."""


def demand(holds: bool, where: str, message: str) -> None:
    """Reject unless it holds."""
    if not holds:
        raise Rejected(f"{where}: {message}")


def whole(value: Any, where: str, shape: tuple[int | None, ...], low: int = -LARGEST, end: int = LARGEST) -> Any:
    """`value`, if it is lists of these lengths (None: any) of whole numbers from `low` to below `end`."""
    if not shape:
        demand(type(value) is int and low <= value < end, where, "expected a whole number that can be there")
        return value
    demand(type(value) is list and shape[0] in (None, len(value)), where, f"expected a list of length {shape[0]}")
    return [whole(inner, f"{where}/{k}", shape[1:], low, end) for k, inner in enumerate(value)]


def fraction(text: Any) -> Fraction:
    """The fraction that `1/3` or `2` states: no power of ten, which may have any number of digits."""
    return Fraction(*map(int, text.split("/")))


def proven(program: Any, multipliers: Any) -> Fraction:
    """The lower end of the cost that the multipliers prove."""
    total = whole(program["total"], "/program/total", (), 1)
    own = whole(program["own"], "/program/own", (None,), 0)
    demand(bool(own), "/program/own", "expected a flow")
    flows, nodes = len(own), max(own) + 1
    step = whole(program["step"], "/program/step", (flows,), 0)
    cost = whole(program["cost"], "/program/cost", (flows,), 0, total + 1)
    after = whole(program["after"], "/program/after", (flows, None))
    often = whole(program["often"], "/program/often", (flows, None), 0)
    step_of = dict(zip(own, step, strict=True))
    demand(len(step_of) == nodes and step_of[0] == 0, "/program/own", "a node without a flow, or a late beginning")
    demand([*step_of.values()].count(0) == 1, "/program/step", "one node is in the first step")
    for k in range(flows):
        demand(step[k] == step_of[own[k]], f"/program/step/{k}", "a node is in one step")
        fits = len(after[k]) == len(often[k]) and sum(often[k]) <= total
        demand(fits, f"/program/often/{k}", "more flows on than came, or not said where to")
        leads = all(node == -1 or step_of.get(node) == step[k] + 1 for node in after[k])
        demand(leads, f"/program/after/{k}", "it leads to nodes of the next step, or to -1")
    column_of = whole(program["column_of"], "/program/column_of", (None,), 0)
    limits = len(whole(program["rate_of"], "/program/rate_of", (None,), 0, len(column_of)))
    columns = max(column_of, default=-1) + 1
    lower, upper = ([*map(fraction, program[name])] for name in ("lower", "upper"))
    demand(len(lower) == len(column_of), "/program/lower", "every rate has two ends")
    demand(all(low <= high for low, high in zip(lower, upper, strict=True)), "/program/lower", "ends out of order")
    of_flow = whole(program["limits"], "/program/limits", (flows, None), -1, limits)
    y = whole(multipliers["nodes"], "/multipliers/nodes", (nodes,))
    w = whole(multipliers["columns"], "/multipliers/columns", (columns,))
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


def check(certificate: Any) -> Fraction:
    """The end of P that a certificate proves; Rejected where it proves none."""
    try:
        side, claimed = certificate["side"], fraction(certificate["claimed"])
        bound = proven(certificate["program"], certificate["multipliers"])
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
    """Check every certificate of a folder or a zip archive and print what it proves."""
    try:
        demand(len(arguments) == 1, "usage", "python -I flow_kernel.py CERTIFICATES")
        path = Path(arguments[0])
        folder = (path if path.is_dir() else zipfile.Path(path)) / "certificates"
        texts, wrong = {file.name: file.read_bytes() for file in folder.iterdir() if "_free_" in file.name}, 0
    except (Rejected, OSError, ValueError, zipfile.BadZipFile) as error:
        print(f"no certificates are read: {error}", file=sys.stderr)
        return 2
    for name, text in sorted(texts.items()):
        try:
            certificate = json.loads(text)
            bound = check(certificate)
            print(f"{name}: proven: P {'>=' if certificate['side'] == 'lower' else '<='} {float(bound)!r}")
        except (Rejected, RecursionError, ValueError) as error:
            wrong += 1
            print(f"{name}: REJECTED: {error}")
    print(f"{len(texts) - wrong} of {len(texts)} certificates proven; not decided: whether they are about the model")
    return 1 if wrong or not texts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
