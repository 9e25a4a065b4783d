"""Certificates of probabilities: from both sides, of exact rates, tight, and true of chains solved in fractions."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from certified_systems import greatest_lost
from deciding_objectives import Deciding, seen_so_far
from hypothesis import given
from hypothesis import strategies as st
from interval_models import RECURRENT, SIMPLE, Model, random_model, random_region
from second_checker import complaint
from shorthands import PROVEN

from verifier.analysis import kernel
from verifier.analysis.robust import point_certificate
from verifier.analysis.robust.point_certificate import UNIT, point_certificates
from verifier.analysis.robust.solutions import robust_bounds
from verifier.analysis.robust.subject import kept_of, subject_of
from verifier.perception.confusion import exact_rates, rates

TWO = ((), ("a",))


def proven(objective, counts):
    """What the kernel proves from below and from above, for each initial state, and the documents."""
    found = {side: json.loads(json.dumps(content)) for side, content in point_certificates(objective, counts)}
    return kernel.check(found["lower"]), kernel.check(found["upper"]), found


def walk(states, counts, wanted="F p"):
    """A walk on 0..states that goes up when a is seen; its ends absorb, and p holds at the upper one."""
    following = [[0, 0], *([k - 1, k + 1] for k in range(1, states)), [states, states]]
    model = Model(TWO, following, {"p": {states}, "q": {0}}, dict.fromkeys(range(1, states), ()), (1,))
    columns = np.zeros((states + 1, 2, 2), dtype=np.int64)
    columns[:, :, 1] = counts
    columns[:, 0, 0] = 1
    return model.objective(wanted), columns


@pytest.mark.parametrize(
    ("states", "counts", "truth"),
    [
        (3, (1, 2), Fraction(4, 7)),  # (1 - r) / (1 - r^3) with r = 1/2
        (10, (1, 1), Fraction(1, 10)),
        (200, (1, 1), Fraction(1, 200)),
        (5, (10**9, 1), Fraction(10**9 - 1, 10**45 - 1)),  # (r - 1) / (r^5 - 1) with r = 10^9
    ],
)
def test_the_ruin_of_a_gambler(states, counts, truth):
    (lower,), (upper,), _ = proven(*walk(states, counts))
    assert lower <= truth <= upper
    assert upper - lower < Fraction(1, 10**25)


def test_certificates_are_made_up_to_a_size(monkeypatch):
    objective, counts = walk(3, (1, 2))
    for largest, sides in ((objective.state_count, ["lower", "upper"]), (objective.state_count - 1, [])):
        monkeypatch.setattr("verifier.analysis.robust.point_certificate.LARGEST_CERTIFIED", largest)
        assert [side for side, _ in point_certificates(objective, counts)] == sides


def test_rates_are_counts_over_their_sum_and_no_billionths():
    (lower,), (upper,), found = proven(*walk(2, (2, 1)))
    assert lower <= Fraction(1, 3) <= upper
    region = found["lower"]["region"]
    (column,) = region["columns"]
    assert (column["bin"], column["true"], column["unit"]) == (1, 1, 3)
    assert column["lower"] == column["upper"] == [2, 1]


def test_what_is_certain_is_proven_as_it_is():
    for wanted, truth in (("F (p | q)", 1), ("G !(p & q)", 1), ("G F (p & q)", 0)):
        (lower,), (upper,), _ = proven(*walk(6, (3, 5), wanted))
        assert lower == upper == truth


def test_only_who_stays_is_in_a_component():
    for wanted in ("F p", "G F p"):
        _, _, found = proven(*walk(6, (3, 5), wanted))
        for content in found.values():
            (box,) = content["boxes"]
            ((state,),) = (each["states"] for each in box["components"])
            assert (box["value"][state], content["subject"]["following"][state]) == (0, [state, state])


def test_what_has_no_rate_never_comes():
    # Where a is never reported state 0 is stayed in forever; half the time, it is left for sure.
    objective = Model(TWO, [[0, 1], [1, 1]], {"p": {1}}, {0: ()}, (0,)).objective("F p")
    for often, truth in ((0, 0), (1, 1)):
        counts = np.array([[[1, 1], [0, often]]] * 2)
        (lower,), (upper,), _ = proven(objective, counts)
        assert lower == upper == truth


def test_where_every_report_is_certain_so_is_what_the_best_strategy_gives(thorough):
    for seed in range(20 if thorough else 8):
        rng = np.random.default_rng([seed, 11])
        world, counts = Deciding(rng, states=5, choices=2), np.zeros((2, 3, 3), dtype=np.int64)
        counts[np.arange(2)[:, None], rng.integers(0, 3, (2, 3)), np.arange(3)] = 1
        for greatest in (False, True):
            about = world.optimum(REMEMBERED[seed % len(REMEMBERED)], greatest)
            lower, upper, _ = proven(about, counts)
            assert lower == upper == about.bracket(rates(counts), 2.0**-50).value.round().tolist()


def test_solutions_that_are_no_numbers_are_none():
    assert point_certificate._scaled(np.array([0.5, -0.25]), 8).tolist() == [4, -2]
    for wrong in (np.nan, np.inf, -np.inf):
        with pytest.raises(point_certificate._NoWitnessError):
            point_certificate._scaled(np.array([0.5, wrong]), 8)


def deciding(seed):
    """A world that decides, counts, and the least or the greatest probability of a formula."""
    rng = np.random.default_rng([seed, 7])
    world, counts = Deciding(rng, states=5), rng.integers(1, 9, (2, 3, 3))
    return rng, counts, world.optimum(REMEMBERED[seed % len(REMEMBERED)], seed % 2 == 0)


def test_values_are_raised_to_what_the_best_alternative_gives_and_no_further():
    reached = 0
    for seed in range(30):
        rng, counts, about = deciding(seed)
        entries, size = about.skeleton.entry_values(exact_rates(counts)), about.state_count
        target = rng.random(size) < 0.3
        value = point_certificate._raised(about, np.zeros(size, dtype=object), target, entries)
        if value is None:  # it would take more rounds
            continue
        means = [Fraction(0)] * len(about.owner)
        for row, edge, state in zip(about.sources, about.product.edge, about.product.indices, strict=True):
            means[row] += Fraction(entries[about.skeleton.entry[edge]]) * value[state]
        for state in range(size):
            best = max(math.ceil(mean) for mean, owner in zip(means, about.owner, strict=True) if owner == state)
            assert value[state] == (UNIT if target[state] else best)
            reached += 0 < value[state] < UNIT
    assert reached > 10


def test_where_a_refined_solution_is_not_proven_that_of_doubles_is(monkeypatch):
    begun, raised, between = [], point_certificate._raised, 0

    def at_the_second(about, value, target, entries):
        begun.append(value.copy())
        return raised(about, value, target, entries) if len(begun) % 2 == 0 else None

    for seed in range(60):
        _, counts, about = deciding(seed)
        value = about.bracket(rates(counts), 2.0**-50).value
        if not np.any((value > 1e-9) & (value < 1 - 1e-9)):
            continue
        lower, upper, _ = proven(about, counts)
        begun.clear()
        with monkeypatch.context() as patched:
            patched.setattr(point_certificate, "_raised", at_the_second)
            below, above, _ = proven(about, counts)
        for refined, doubles in zip(begun[::2], begun[1::2], strict=True):
            assert np.all(np.abs(doubles - refined) <= UNIT // 10**9)
            assert np.all(doubles >= refined - UNIT // 10**25)
        for one, least, most, other in zip(below, lower, upper, above, strict=True):
            assert most - Fraction(1, 10**9) <= one <= least <= most <= other <= least + Fraction(1, 10**9)
            between += one < least
    assert between > 3


def sides_of_random_chains(seeds):
    """(proven, not proven) sides; what is proven holds of the chain solved in fractions, and is tight."""
    tally, formulas = [0, 0], [*SIMPLE, *RECURRENT]
    for seed in seeds:
        rng = np.random.default_rng(seed)
        model = random_model(rng, 5, 2, ended=int(rng.integers(3)))
        objective = model.objective(formulas[seed % len(formulas)])
        counts = rng.integers(0, 4, (5, 2, 2)) * rng.integers(1, 1000, (5, 1, 1))
        counts[:, 0] += counts.sum(axis=1) == 0
        found = dict(point_certificates(objective, counts))
        tally = [tally[0] + len(found), tally[1] + 2 - len(found)]
        for side, content in found.items():
            content = json.loads(json.dumps(content))
            lost = greatest_lost(content, rng, 1)
            values = [1 - bound if side == "lower" else bound for bound in kernel.check(content)]
            assert all(0 <= value - least <= Fraction(1, 10**25) for value, least in zip(values, lost, strict=True))
            assert complaint(content) is None
    return tally


def test_random_chains_with_cycles(thorough):
    count = 60 if thorough else 25
    assert sides_of_random_chains(range(count)) == [2 * count, 0]


REMEMBERED = ("F p", "G p", "p U q", "(F p) & (F q)", "(F p) & (G !q)", "(!q) W p", "(F p) -> (F q)")
"""What has held so far is all that a strategy needs to remember for these."""


def against_all_strategies(seed):
    """Whether some optimum is neither 0 nor 1: what is proven of the least and the greatest probability over all that
    a world may do encloses what all strategies with memory give, in fractions."""
    rng, formula = np.random.default_rng([seed, 31]), REMEMBERED[seed % len(REMEMBERED)]
    for _ in range(50):
        world = Deciding(rng, states=4, choices=2)
        counts = rng.integers(0, 4, (2, 3, 3)) * rng.integers(1, 1000, (2, 1, 3))
        counts[:, 0] += counts.sum(axis=1) == 0
        optima = [world.optimum(formula, end).bracket(rates(counts), 2.0**-50).value for end in (False, True)]
        few = np.prod(np.bincount(world.owner).astype(float)) ** 4 <= 256
        if few and np.any((np.array(optima) > 1e-9) & (np.array(optima) < 1 - 1e-9)):
            break
    exact = exact_rates(counts)
    every = [world.exactly_under(exact, chosen, seen_so_far, formula) for chosen in world.strategies(4, 256, rng)]
    ends = [min(each) for each in zip(*every, strict=True)], [max(each) for each in zip(*every, strict=True)]
    for greatest, wanted in enumerate(ends):
        optimum = world.optimum(formula, bool(greatest))
        lower, upper, found = proven(optimum, counts)
        bounds = robust_bounds(optimum, random_region(rng, optimum, 2, 3), effort=PROVEN)
        whole = json.loads(json.dumps(subject_of(optimum).document))
        for content in (*found.values(), *bounds.certificates):
            subject = json.loads(json.dumps(content["subject"]))
            assert (subject if optimum.ranges(content["side"]) else kept_of(whole, subject)) == subject
            assert not optimum.ranges(content["side"]) or subject == whole
        assert all(low <= value <= high for low, value, high in zip(lower, wanted, upper, strict=True)), formula
        assert all(high - low < Fraction(1, 10**25) for low, high in zip(lower, upper, strict=True)), formula
        assert [complaint(content) for content in found.values()] == [None, None]
    return any(0 < value < 1 for end in ends for value in end)


def test_optima_of_worlds_that_decide_are_those_of_all_strategies(thorough):
    seeds = 7 if thorough else 3
    assert sum(against_all_strategies(seed) for seed in range(seeds)) >= seeds - 1


def test_a_strategy_is_some_of_the_choices_and_leaves_no_state_without_one():
    rng = np.random.default_rng(5)
    optimum, counts = Deciding(rng).optimum("F p", True), np.array([[[3, 1, 1], [1, 2, 2], [4, 1, 3]]] * 2)
    found = proven(optimum, counts)[2]
    whole, kept = found["upper"]["subject"], found["lower"]["subject"]
    assert len(kept["row"]) < len(whole["row"])
    assert kept_of(whole, kept) == kept
    assert kept_of(whole, whole) == whole
    other = json.loads(json.dumps(kept))
    other["following"][0] = [0] * len(other["following"][0])
    assert kept_of(whole, other) != other
    for damaged in ({}, {"owner": 3}, {**kept, "row": kept["row"][:-1]}, {**kept, "owner": [0]}):
        assert kept_of(whole, damaged) == whole


@pytest.mark.slow
def test_many_optima_of_worlds_that_decide_are_those_of_all_strategies():
    assert sum(against_all_strategies(seed) for seed in range(1000, 1400)) >= 390


@pytest.mark.slow
def test_thousands_of_random_chains_with_cycles():
    assert sides_of_random_chains(range(1000, 4000)) == [6000, 0]


@given(st.one_of(st.integers(0, UNIT), st.integers(0, 64).map(lambda k: k * UNIT // 64)))
def test_a_claim_is_the_nearest_double_that_a_value_proves(value):
    for side, bound, beyond in (("upper", value, -math.inf), ("lower", UNIT - value, math.inf)):
        proven, claim = Fraction(bound, UNIT), point_certificate._outwards(side, value)
        nearer = math.nextafter(claim, beyond)
        assert claim >= proven > nearer if side == "upper" else claim <= proven < nearer
