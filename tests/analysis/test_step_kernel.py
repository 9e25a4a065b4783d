"""The kernel of counted steps: chains by hand, closed forms, random chains by the definition, and forgeries."""

import copy
import itertools
import json
import math
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from plain_windows import response_by_definition, until_by_definition

from verifier.analysis import step_kernel

NARROW = Fraction(1, 2**80)


def asked(left, right, low, high, response=None, *, negated=False):
    return {"negated": negated, "left": left, "right": right, "low": low, "high": high, "response": response}


def chain(*rows, starts=None):
    return {"rows": [[*map(list, row)] for row in rows], "starts": [*range(len(rows))] if starts is None else starts}


def by_definition(system, window):
    """The probability from each beginning in fractions, one step after another, by `plain_windows`."""
    choices = []
    for row in system["rows"]:
        total, sums = sum(weight for _, weight in row), {}
        for after, weight in row:
            sums[after] = sums.get(after, 0) + Fraction(weight, total)
        choices.append([sums])
    left, right = ({k for k, here in enumerate(window[name]) if here} for name in ("left", "right"))
    if window["response"] is None:
        values = until_by_definition(choices, left, right, window["low"], window["high"])
    else:
        values = response_by_definition(choices, left, right, window["low"], window["high"], window["response"])
    return [1 - values[start] if window["negated"] else values[start] for start in system["starts"]]


def by_paths(system, window, start):
    """The same by looking at every path, each for itself."""
    left, right, low, high = (window[name] for name in ("left", "right", "low", "high"))
    bound, total = window["response"], Fraction(0)

    def meets(path):
        if bound is None:
            return any(right[path[k]] and all(left[state] for state in path[:k]) for k in range(low, high + 1))
        return all(not left[path[k]] or any(right[s] for s in path[k : k + bound + 1]) for k in range(low, high + 1))

    paths = {(start,): Fraction(1)}
    for _ in range(high + (bound or 0)):
        longer = {}
        for path, chance in paths.items():
            row = system["rows"][path[-1]]
            for after, weight in row:
                key = (*path, after)
                longer[key] = longer.get(key, 0) + chance * Fraction(weight, sum(w for _, w in row))
        paths = longer
    total = sum(chance for path, chance in paths.items() if meets(path))
    return 1 - total if window["negated"] else total


def certificate(system, window, claimed=None):
    """A document with the claims that follow, rounded outwards, or with others."""
    if claimed is None:
        claimed = [[down(low), up(high)] for low, high in step_kernel.proven(system, window)]
    head = {"schema": "verifier.step_certificate", "version": 1}
    return {**head, "claimed": claimed, "chain": system, "window": window}


def down(value):
    return float(value) if Fraction(float(value)) <= value else math.nextafter(float(value), -math.inf)


def up(value):
    return -down(-value)


def holds(system, window, exact, width=NARROW):
    for (low, high), value in zip(step_kernel.proven(system, window), exact, strict=True):
        assert low <= value <= high
        assert high - low <= width


THIRD = chain([(0, 2), (1, 1)], [(1, 5)])
LINE = chain([(1, 1)], [(2, 3), (0, 1)], [(2, 1)])
TURNS = chain([(0, 1), (1, 1)], [(0, 1), (1, 1)], starts=[0])
BY_HAND = [
    ("a third at each step", THIRD, asked([1, 1], [0, 1], 0, 3), ["19/27", 1]),
    (
        "the states in turn",
        THIRD,
        asked([1, 0], [0, 1], 2, 4),
        ["38/81", 0],
    ),  # by the second step 2/3 1/3, the third 4/9 1/3, the fourth 8/27 1/3
    ("its complement", THIRD, asked([1, 1], [0, 1], 0, 3, negated=True), ["8/27", 0]),
    ("no step at all", THIRD, asked([0, 0], [0, 1], 0, 0), [0, 1]),
    ("exactly three steps", THIRD, asked([1, 1], [1, 0], 3, 3), ["8/27", 0]),
    ("through the first alone", LINE, asked([1, 0, 0], [0, 0, 1], 0, 9), [0, 0, 1]),
    ("there and back", LINE, asked([1, 1, 0], [0, 0, 1], 0, 4), ["15/16", "15/16", 1]),
    ("later than it may be left", LINE, asked([1, 1, 0], [0, 0, 1], 3, 4), ["3/16", "3/16", 0]),
    # Of three fair throws, not two of the wrong side in a row; the first is known to be wrong.
    ("an answer at the next step", TURNS, asked([1, 0], [0, 1], 0, 1, 1), ["1/2"]),
    ("answers to two of them", TURNS, asked([1, 0], [0, 1], 0, 2, 1), ["3/8"]),
    ("answers from the second on", TURNS, asked([1, 0], [0, 1], 1, 1, 1), ["3/4"]),
    ("answers to one, in two steps", TURNS, asked([1, 0], [0, 1], 0, 0, 2), ["3/4"]),
    ("nobody answers", TURNS, asked([1, 1], [0, 0], 0, 5, 9), [0]),
    ("nobody asks", TURNS, asked([0, 0], [0, 1], 3, 5, 9), [1]),
    ("no answer is left", THIRD, asked([1, 1], [1, 0], 0, 1, 9), ["2/3", 0]),
]


@pytest.mark.parametrize(("what", "system", "window", "exact"), BY_HAND, ids=[what for what, *_ in BY_HAND])
@pytest.mark.parametrize("apart", [-1, step_kernel.APART])
def test_chains_solved_by_hand(what, system, window, exact, apart, monkeypatch):
    monkeypatch.setattr(step_kernel, "APART", apart)
    expected = [Fraction(end) for end in exact]
    holds(system, window, expected)
    assert by_definition(system, window) == expected


def test_a_million_and_a_billion_steps_of_one_chance():
    """1 - (1 - p)^n to 60 digits, and the two sides of a coin that is rarely turned, (1 + (1 - 2 p)^n) / 2."""
    for digits, steps in itertools.product((6, 9), (10**5, 10**6, 10**9, 10**9 + 7)):
        rare, window = chain([(0, 10**digits - 1), (1, 1)], [(1, 1)]), asked([1, 1], [0, 1], 0, steps)
        turned = chain([(0, 10**digits - 1), (1, 1)], [(1, 10**digits - 1), (0, 1)])
        with localcontext(prec=80):
            p = Decimal(10) ** -digits
            once, same = (Fraction(value) for value in (1 - (1 - p) ** steps, (1 + (1 - 2 * p) ** steps) / 2))
        near = Fraction(1, 10**60)
        ((low, high), _), ((left, right), _) = (
            step_kernel.proven(rare, window),
            step_kernel.proven(turned, asked([1, 1], [1, 0], steps, steps)),
        )
        assert low - near <= once <= high + near
        assert left - near <= same <= right + near
        assert max(high - low, right - left) < NARROW


@pytest.mark.parametrize(("wait", "steps"), [(1, 4000), (3, 2000), (9, 500)])
def test_runs_of_failures_in_a_row(wait, steps):
    """Nowhere wait + 1 failures of chance 2/3 in a row: the chances of ends, one throw after another."""
    coin = chain([(0, 2), (1, 1)], [(0, 2), (1, 1)], starts=[1])
    with localcontext(prec=80):
        runs = [Decimal(1)] + [Decimal(0)] * wait  # so many failures at the end; it begins with a success
        for _ in range(steps + wait):
            runs = [sum(runs) / 3, *(run * 2 / 3 for run in runs[:-1])]
        exact = Fraction(sum(runs))
    ((low, high),) = step_kernel.proven(coin, asked([1, 1], [0, 1], 0, steps, wait))
    assert low - Fraction(1, 10**60) <= exact <= high + Fraction(1, 10**60)
    assert high - low < NARROW


ONE = step_kernel.ONE
HALVES = [[(0, 1), (1, 1)], [(1, 1)]]


def test_products_are_exact_but_for_the_last_digit():
    """Of matrices of any size, each sum of products without its last 120 digits."""
    rng = np.random.default_rng(3)
    for size in (1, 2, 5):
        parts = [[int(share) for share in rng.integers(2**40, size=size)] for _ in range(size)]
        matrix = [[(k, ONE * share // sum(row)) for k, share in enumerate(row)] for row in parts]
        dense = [[number for _, number in row] for row in matrix]
        square = [[sum(row[k] * dense[k][j] for k in range(size)) >> 120 for j in range(size)] for row in dense]
        assert step_kernel.squared(matrix) == [[(k, number) for k, number in enumerate(row)] for row in square]
        joined = [sum(number << 256 * k for k, number in enumerate(row)) for row in dense]
        assert step_kernel.product([[(0, ONE)]], [joined[-1]], size) == [joined[-1]]


def test_means_lose_nothing_where_nothing_is_rounded():
    odd = (ONE // 4 + 1, ONE // 2 + 3)
    worth, undecided = step_kernel.means(HALVES, 0, [odd, (0, ONE)], [0])
    assert (worth[0], undecided[0]) == (odd, ONE)
    worth, undecided = step_kernel.means([*HALVES, [(1, 1), (2, 3)]], 1, [(8, 16), (4, 8), (0, 0)], [0, 2])
    assert (worth[0], worth[2]) == ((6, 12), (1, 2))
    assert (undecided[0], undecided[2]) == (ONE // 2, 3 * ONE // 4)
    assert step_kernel.means([[(1, 1)], [(1, 1)]], 1, [(5, 5), (0, 0)], [0])[0][0] == (0, 0)


@pytest.mark.parametrize("sure", [(ONE, 0), (0, ONE)])
def test_who_goes_round_where_all_is_decided_is_decided(sure):
    worth, undecided = step_kernel.means([[(1, 1)], [(0, 1)], [(0, 1), (2, 1)]], 1, [sure, sure, (0, 0)], [2])
    assert (worth[0], undecided) == (sure, [0, 0, ONE // 2])


def test_what_one_bit_costs(monkeypatch):
    """Two steps behind a `left` no `right` comes with chance 1/4; two places; who waits at the end gets 3/4."""
    window = asked([1, 0], [0, 1], 0, 1, 2)
    (exact,) = by_definition(TURNS, window)
    for apart, bounds in ((ONE // 2, (Fraction(3, 8), Fraction(7, 8))), (ONE // 2 - 1, (exact, exact))):
        monkeypatch.setattr(step_kernel, "APART", apart)
        assert step_kernel.proven(TURNS, window) == [bounds]


@pytest.mark.parametrize(
    ("system", "window", "limit", "least"),
    [
        # A rare step of one state: 4^3 * 20 bits / 8 to square; two steps at once for 2 * 7 numbers, none of a third.
        (chain([(0, 10**9), (1, 1)], [(1, 1)]), asked([1, 1], [0, 1], 0, 10**6), "MOST", 160),
        (chain([(0, 10**9), (1, 1)], [(1, 1)]), asked([1, 1], [0, 1], 0, 2), "MOST", 7),
        (chain([(0, 10**9), (1, 1)], [(1, 1)]), asked([1, 1], [0, 1], 0, 3), "MOST", 14),
        # Halves are decided up to 2^-100 behind 100 steps.
        (chain([(0, 1), (1, 1)], [(1, 1)]), asked([1, 1], [0, 1], 0, 2**1000), "MOST", 99 * 7),
        (TURNS, asked([1, 0], [0, 1], 0, 9, 5), "MOST_WAITING", 5 * 4),
    ],
)
def test_what_the_limits_are_of(system, window, limit, least, monkeypatch):
    monkeypatch.setattr(step_kernel, limit, least)
    assert step_kernel.proven(system, window)
    monkeypatch.setattr(step_kernel, limit, least - 1)
    with pytest.raises(step_kernel.Rejected, match="too long to check"):
        step_kernel.proven(system, window)


def test_claims_are_what_is_proven_but_for_rounding():
    """3/8, with a claim that is 2^-52 off, and the next double."""
    window, off = asked([1, 0], [0, 1], 0, 2, 1), 2.0**-52
    for low, high in ((0.375, 0.375), (0.375 - off, 0.375), (0.375, 0.375 + off)):
        assert step_kernel.check(certificate(TURNS, window, [[low, high]])) == [(Fraction(3, 8), Fraction(3, 8))]
    for low, high in (
        (math.nextafter(0.375 - off, 0), 0.375),
        (0.375, math.nextafter(0.375 + off, 1)),
        (math.nextafter(0.375, 1), 0.375),
        (0.375, math.nextafter(0.375, 0)),
    ):
        with pytest.raises(step_kernel.Rejected, match=r"^/claimed/0: claims the bound 0\.37"):
            step_kernel.check(certificate(TURNS, window, [[low, high]]))


def random_case(rng, steps=9):
    size = int(rng.integers(1, 5))
    rows = [
        [[int(after), int(rng.choice([1, 1, 2, 5, 10**12]))] for after in rng.integers(size, size=rng.integers(1, 4))]
        for _ in range(size)
    ]
    low = int(rng.choice([0, 0, 1, 2]))
    left, right = ([int(here) for here in rng.random(size) < share] for share in (0.7, 0.3))
    window = asked(left, right, low, low + int(rng.integers(steps + 1)), negated=bool(rng.integers(2)))
    window["response"] = None if rng.integers(2) else int(rng.integers(1, 4))
    return {"rows": rows, "starts": [*range(size)]}, window


@pytest.mark.parametrize("apart", [-1, step_kernel.APART, 10**9 * step_kernel.ONE])
def test_random_chains_against_the_definition(apart, monkeypatch, thorough):
    """The definition followed step by step, and for short windows over all paths; a window apart is wide at most."""
    monkeypatch.setattr(step_kernel, "APART", apart)
    rng = np.random.default_rng(7)
    for number in range(500 if thorough else 200):
        system, window = random_case(rng, 4 if number % 5 == 0 else 60)
        exact = by_definition(system, window)
        holds(system, window, exact, NARROW if apart < 0 or window["response"] is None else Fraction(1))
        if number % 25 == 0 and window["high"] < 6:
            assert exact == [by_paths(system, window, start) for start in system["starts"]]


def change(rng, document):
    """One random change to some place of a document."""
    holder, key = document, str(rng.choice(["claimed", "chain", "window"]))
    while isinstance(holder[key], list | dict) and holder[key] and rng.random() < 0.95:
        holder = holder[key]
        key = rng.choice([*holder]) if isinstance(holder, dict) else int(rng.integers(len(holder)))
    value, pick = holder[key], lambda *others: others[int(rng.integers(len(others)))]
    if isinstance(value, float):
        near = math.nextafter(value, 2), math.nextafter(value, -1), value + 2.0**-45, value - 2.0**-45
        holder[key] = pick(*near, 0.5, 1.0, 0.0, str(value))
    elif isinstance(value, int):
        holder[key] = not value if isinstance(value, bool) else pick(value + 1, value - 1, 1 - value, 2 * value, None)
    elif isinstance(value, list) and value and rng.random() < 0.9:
        value.insert(0, copy.deepcopy(pick(*value))) if rng.integers(2) else value.pop(pick(*range(len(value))))
    else:
        holder[key] = pick(1, 2, None, [], {}, "1", 1.5)


def test_no_mutation_of_a_certificate_with_a_false_claim_is_accepted(thorough):
    """What is accepted, is true of the system and the window that it states by now, by the definition."""
    rng, accepted, reasons = np.random.default_rng(11), 0, set()
    for _ in range(400 if thorough else 150):
        valid = certificate(*random_case(rng))
        for _ in range(10):
            forged = copy.deepcopy(valid)
            for _ in range(int(rng.integers(1, 4))):
                change(rng, forged)
            try:
                step_kernel.check(forged)
            except step_kernel.Rejected as error:
                reasons.add(str(error).split("/")[1] if str(error)[0] == "/" else "the document")
                continue
            accepted += 1
            exact = by_definition(forged["chain"], forged["window"])
            assert all(low <= end <= high for end, (low, high) in zip(exact, forged["claimed"], strict=True)), forged
    assert accepted > 30  # such as where a state has no part in it
    assert reasons == {"claimed", "chain", "window", "the document"}


SOUND = certificate(THIRD, asked([1, 1], [0, 1], 0, 3))
HOSTILE = [
    ("/schema", lambda c: c.update(version=2)),
    ("/schema", lambda c: c.update(schema="verifier.certificate")),
    ("the document", lambda c: c.pop("claimed")),
    ("the document", lambda c: c.update(chain=[])),
    ("the document", lambda c: c.update(window=None)),
    ("the document", lambda c: c["claimed"].pop()),
    ("the document", lambda c: c["claimed"][0].pop()),
    ("the document", lambda c: c["claimed"].append([0.0, 1.0])),
    ("the document", lambda c: c["claimed"].__setitem__(0, [math.nan, 1.0])),
    ("the document", lambda c: c["claimed"].__setitem__(0, [-math.inf, 1.0])),
    ("/claimed/0", lambda c: c["claimed"].__setitem__(0, [0, 1])),  # true, and no doubles
    ("/claimed/0", lambda c: c["claimed"].__setitem__(0, ["1e999999999", 1.0])),  # as a fraction it takes forever
    ("/claimed/0", lambda c: c["claimed"].__setitem__(0, [0.0, 1.0])),  # true, and says nothing
    ("/claimed/1", lambda c: c["claimed"].__setitem__(1, [1.0, 1.0 + 2.0**-51])),
    ("/claimed/1", lambda c: c["claimed"].__setitem__(1, [math.nextafter(1, 2), 1.0])),
    ("/chain/starts", lambda c: c["chain"].update(starts=[])),
    ("/chain/starts/0", lambda c: c["chain"].update(starts=[2, 1])),
    ("/chain/starts/0", lambda c: c["chain"].update(starts=[True, 1])),
    ("/chain/starts/1", lambda c: c["chain"].update(starts=[0, -1])),
    ("/chain/rows/0", lambda c: c["chain"]["rows"].__setitem__(0, [])),
    ("/chain/rows/0", lambda c: c["chain"]["rows"].__setitem__(0, [[2, 1]])),
    ("/chain/rows/0", lambda c: c["chain"]["rows"].__setitem__(0, [[1, 0]])),
    ("/chain/rows/0", lambda c: c["chain"]["rows"].__setitem__(0, [[0, 2], [1, 0]])),
    ("/chain/rows/0/0", lambda c: c["chain"]["rows"].__setitem__(0, [[1, 1, 1]])),
    ("/chain/rows/0/0/1", lambda c: c["chain"]["rows"].__setitem__(0, [[1, -1]])),
    ("/chain/rows/0/0/1", lambda c: c["chain"]["rows"].__setitem__(0, [[1, 2**2000]])),
    ("/chain/rows/0/0/1", lambda c: c["chain"]["rows"].__setitem__(0, [[1, 1.0]])),
    ("/chain/rows/0/0/1", lambda c: c["chain"]["rows"].__setitem__(0, [[1, math.nan]])),
    ("/chain/rows/0", lambda c: c["chain"].update(rows={"0": 1, "1": 2})),
    ("/chain/rows/0", lambda c: c["chain"].update(rows="ab")),
    ("/window/left", lambda c: c["window"].update(left=[1])),
    ("/window/right/0", lambda c: c["window"].update(right=[2, 0])),
    ("/window/right/0", lambda c: c["window"].update(right=[False, True])),
    ("/window/low", lambda c: c["window"].update(low=4)),
    ("/window/low", lambda c: c["window"].update(low=-1)),
    ("/window/high", lambda c: c["window"].update(high=2**2000)),
    ("/window/high", lambda c: c["window"].update(high="3")),
    ("/window/response", lambda c: c["window"].update(response=0)),
    ("/window/response", lambda c: c["window"].update(response=[1])),
    ("/window/negated", lambda c: c["window"].update(negated=0)),
]


@pytest.mark.parametrize(("where", "change"), HOSTILE)
def test_hostile_documents_are_refused_by_their_place(where, change):
    assert step_kernel.check(SOUND)
    changed = copy.deepcopy(SOUND)
    change(changed)
    with pytest.raises(step_kernel.Rejected) as refused:
        step_kernel.check(changed)
    assert str(refused.value).startswith(f"{where}: ")


def test_the_largest_numbers_are_read():
    largest = 2**2000 - 1
    system = chain([(0, largest), (1, largest)], [(1, largest)])
    holds(system, asked([1, 1], [0, 1], 0, 1), [Fraction(1, 2), 1])
    holds(system, asked([1, 1], [0, 1], largest, largest), [1, 1])


def ring(size, advances=1):
    return chain(*([(state, 1), ((state + 1) % size, advances)] for state in range(size)), starts=[0])


@pytest.mark.parametrize(
    ("where", "system", "window"),
    [
        ("/window", ring(2000), asked([1] * 2000, [0] * 1999 + [1], 10**9, 10**9)),
        *(
            ("/window/response", chain([(0, 10**9), (1, 1)], [(0, 1)]), asked([1, 1], [0, 1], 0, 10**9, wait))
            for wait in (70_000, 10**9)
        ),
    ],
)
def test_what_takes_too_long_is_refused(where, system, window, monkeypatch):
    """A billion steps of 2,000 states, with a smaller limit; a state for each of 70,000 steps of waiting, or more."""
    monkeypatch.setattr(step_kernel, "MOST", 10**5)
    with pytest.raises(step_kernel.Rejected, match=r"takes? too long") as refused:
        step_kernel.proven(system, window)
    assert str(refused.value).startswith(f"{where}: ")


def run(folder):
    asked_of = [sys.executable, "-I", step_kernel.__file__, str(folder)]
    return subprocess.run(asked_of, capture_output=True, text=True, check=False)


def test_the_program_decides_a_folder_and_reads_nothing_else(tmp_path):
    folder = tmp_path / "certificates"
    folder.mkdir()
    (folder / "a_point_steps_01.json").write_text(json.dumps(SOUND))
    (folder / "a_point_lower_01.json").write_text("{")
    done = run(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].startswith(
        "a_point_steps_01.json: proven: 0.7037037037037036 <= P <= 0.7037037037037037, 1.0 <= P"
    )
    assert done.stdout.endswith("1 of 1 certificates proven; not decided: whether they are about the model\n")
    refused = {
        "b": "[" * 10**5,
        "c": '{"a": ' + "9" * 5000 + "}",
        "d": "{",
        "e": "[]",
        "f": json.dumps({**SOUND, "chain": 1}),
    }
    for name, text in refused.items():
        (folder / f"{name}_steps_01.json").write_text(text)
    done = run(tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.count("REJECTED: ") == len(refused)
    assert "1 of 6 certificates proven" in done.stdout
