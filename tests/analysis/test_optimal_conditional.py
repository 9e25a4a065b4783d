"""P(F p given F q) of a world that decides: against every strategy that knows what has held, and Storm's own."""

from dataclasses import fields

import numpy as np
import pytest
import stormpy
from deciding_objectives import Deciding, seen_so_far
from read_exports import read
from small_objectives import random_rates
from stormpy.datastructures import BitVector

from verifier.analysis.robust.optimal_conditional import OptimalConditional
from verifier.base.errors import NoAnswerError
from verifier.chains import write_model
from verifier.checking.batch import check
from verifier.language.ltl import parse_formula

JOINT = "(F p) & (F q)"


def conditional_of(world, greatest):
    plain = world.optimum(JOINT, greatest)
    held = world.labels["p"].astype(np.int64) | world.labels["q"].astype(np.int64) << 1
    parts = {each.name: getattr(plain, each.name) for each in fields(plain)}
    return OptimalConditional(**parts, choices=world.choices, held=held, told="F q", most_states=10_000)


def of_storm(world, rates, folder, end):
    """Storm's conditional probabilities, in the order of the initial states."""
    write_model(world.process(rates), folder / "m.umb")
    model = read(folder / "m.umb")
    asked = stormpy.parse_property(f'P{end}=? [ F "p" || F "q" ]')
    environment = stormpy.environments.sound()
    for solver in (environment.solver().native(), environment.solver().min_max()):
        solver.precision = stormpy.Rational("1/1000000000000")
    found = []
    for start in world.starts.tolist():
        model.set_initial_states(BitVector(model.nr_states, [start]))
        result = stormpy.model_checking(model, asked, only_initial_states=True, environment=environment)
        found.append(float(result.get_value(start)))
    return found


def brute_force(world, rates, greatest, rng, most=100):
    """(starts,) the best quotient of a strategy, over `most` of them or all."""
    best = np.full(len(world.starts), -np.inf if greatest else np.inf)
    for chosen in world.strategies(4, most, rng):
        chain = world.chain_under(rates, chosen, seen_so_far)
        both, given = (check(chain, parse_formula(each)).probability[0] for each in (JOINT, "F q"))
        with np.errstate(invalid="ignore", divide="ignore"):
            quotient = both / given
        kept = given > 1e-12
        choose = np.maximum if greatest else np.minimum
        best[kept] = choose(best[kept], quotient[kept])
    return best


@pytest.mark.parametrize("greatest", [False, True])
def test_it_is_that_of_the_best_strategy(greatest, tmp_path, thorough):
    compared = attained = inner = 0
    seeds = 20 if thorough else 8
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 77])
        world, rates = Deciding(rng, states=6, choices=2), random_rates(rng, 2, 3, 0.2)
        asked = conditional_of(world, greatest)
        try:
            found = asked.bracket(rates, 2.0**-50)
        except NoAnswerError:
            continue
        assert np.all((found.lower <= found.value) & (found.value <= found.upper))
        assert np.all(found.upper - found.lower < 1e-8)
        batch = asked.probabilities(np.stack([rates, rates])).probability
        assert batch == pytest.approx(np.stack([found.value] * 2), abs=1e-9)
        best = brute_force(world, rates, greatest, rng)
        side = 1 if greatest else -1
        assert np.all(side * best <= side * found.value + 1e-9), seed
        attained += int((np.abs(best - found.value) < 1e-9).sum())
        # Storm halves an interval until it is a millionth wide, whatever the precision.
        assert found.value == pytest.approx(of_storm(world, rates, tmp_path, "max" if greatest else "min"), abs=1e-6)
        compared += len(best)
        inner += int(((found.value > 1e-6) & (found.value < 1 - 1e-6)).sum())
    assert compared >= seeds
    assert attained >= compared / 2
    assert inner >= seeds / 4
