"""P(F p given F q) of a world that decides: against every strategy that knows what has held, and Storm's own."""

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
import stormpy
from deciding_objectives import LABELS, Deciding, seen_so_far
from read_exports import read
from small_objectives import channel_of, random_rates
from stormpy.datastructures import BitVector

from verifier.analysis.objective import without_steps
from verifier.analysis.robust.optimal_conditional import OptimalConditional
from verifier.analysis.robust.optimum import Bracket, Optimum
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
    seeds = 20 if thorough else 4
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
        best = brute_force(world, rates, greatest, rng, most=100 if thorough else 40)
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


def asked_of(ways, p, q, greatest, starts=(0,), most_states=10_000):
    """States 0, 1 and 2 move by what is reported (nothing, a or b), each in one of its ways; 3 and 4 have ended."""
    world = Deciding(np.random.default_rng(0))
    rows = [*ways, *((state, [state] * 3) for state in range(5) if state not in {own for own, _ in ways})]
    rows.sort(key=lambda row: row[0])
    world.owner, world.following = np.array([own for own, _ in rows]), np.array([led for _, led in rows])
    world.channel = channel_of(LABELS, [[0]], [[1]], [frozenset(label) for label in LABELS])
    world.over, world.row = world.owner >= 3, np.zeros(len(rows), dtype=np.int64)
    world.true_in, world.states, world.starts = {"p": p, "q": q}, 5, np.array(starts)
    return replace(conditional_of(world, greatest), most_states=most_states)


def rates_with(*columns):
    """Of nothing, a and b."""
    rates = np.zeros((len(columns), 1, 3, 3))
    rates[:, 0, 0] = 1
    rates[:, 0, :, 1] = columns
    return rates


FIRST, NEXT, ONCE = [1, 3, 4], [3, 1, 4], [4, 4, 4]
LIKELY, SELDOM = [3, 4, 4], [4, 3, 4]
HALF, MORE = (0.5, 0.25, 0.25), (0.75, 0.25, 0.0)


@pytest.mark.parametrize(
    ("ways", "p", "q", "starts", "least", "greatest"),  # for `HALF` and for `MORE`
    [
        # p lies in 1 and q in 3. FIRST and LIKELY: 1/2 1/2 of 1/4 + 1/4, and 9/16 of 13/16; NEXT and SELDOM: 1/16 of
        # 9/16, and 1/16 of 13/16. To go where q never holds is as if nothing had been.
        ([(0, FIRST), (0, NEXT), (0, ONCE), (1, LIKELY), (1, SELDOM)], [1], [3], [0],
         [[1 / 9], [1 / 13]], [[1 / 2], [9 / 13]]),
        # So is to come back: 0 or 3 are left for what is best each time.
        ([(0, [0, 3, 1]), (0, [0] * 3), (0, NEXT), (1, LIKELY), (1, SELDOM)], [1], [3], [0],
         [[1 / 9], [0]], [[1 / 3], [1 / 5]]),
        # Having met p the world may keep q from holding: what had p does not count.
        ([(0, FIRST), (1, LIKELY), (1, ONCE)], [1], [3], [0], [[0], [0]], [[1 / 2], [9 / 13]]),
        # q lies in 1 and p in 3, which is reached with 1/2 or 1/4, with 3/4 or 1/4, or not.
        ([(0, [1, 1, 4]), (1, LIKELY), (1, SELDOM)], [3], [1], [0], [[1 / 4], [1 / 4]], [[1 / 2], [3 / 4]]),
        ([(0, [1, 1, 4]), (1, LIKELY), (1, ONCE)], [3], [1], [0], [[0], [0]], [[1 / 2], [3 / 4]]),
        # From 1, where p holds already, q alone is to hold; from 2 as from 0.
        ([(0, FIRST), (0, NEXT), (1, LIKELY), (1, ONCE), (2, [0] * 3)], [1], [3], [1, 0, 2], [[1, 0, 0]] * 2,
         [[1, 1 / 2, 1 / 2], [1, 9 / 13, 9 / 13]]),
        ([], [3], [3], [3, 3], [[1, 1]] * 2, [[1, 1]] * 2),
        # From where q holds it is P(F p), and from where both do it is 1.
        ([(0, LIKELY), (0, SELDOM)], [1, 3], [0, 1], [0, 1], [[1 / 4, 1]] * 2, [[1 / 2, 1], [3 / 4, 1]]),
    ],
)  # fmt: skip
def test_quotients_by_hand(ways, p, q, starts, least, greatest):
    for end, expected in ((False, least), (True, greatest)):
        asked = asked_of(ways, p, q, end, starts)
        result = asked.probabilities(rates_with(HALF, MORE, HALF))
        assert result.probability == pytest.approx(np.array([*expected, expected[0]]), abs=1e-12)
        for rates, value in zip(rates_with(HALF, MORE), expected, strict=True):
            found = asked.bracket(rates, 2.0**-50)
            assert found.value == pytest.approx(value, abs=1e-12)
            assert np.all((found.lower <= found.value) & (found.value <= found.upper))
            assert np.all(found.upper - found.lower < 1e-9)
        assert (result.lower <= result.probability + 1e-15).all()
        assert (result.probability <= result.upper + 1e-15).all()


def test_what_cannot_be_answered():
    ways = [(0, FIRST), (1, ONCE), (2, [4, 4, 0])]
    with pytest.raises(NoAnswerError, match="'F q' has probability 0: nothing is known given that it holds"):
        asked_of(ways, [1], [2], True, [0, 2]).bracket(rates_with(HALF)[0], 2.0**-50)
    with pytest.raises(NoAnswerError, match="'F q' has probability 0"):  # though p holds at first
        asked_of([(0, ONCE)], [0], [3], True).bracket(rates_with(HALF)[0], 2.0**-50)
    asked = asked_of(ways, [1], [3], True, [0, 2])  # from 2 by b alone
    assert asked.bracket(rates_with(HALF)[0], 2.0**-50).value == pytest.approx([0, 0])
    with pytest.raises(NoAnswerError, match="'F q' has probability 0"):
        asked.probabilities(rates_with(HALF, MORE))
    # Two initial states, in each of which five states are with none, one or both of what has held.
    asked_of(ways, [1], [3], True, [0, 2], 40).bracket(rates_with(HALF)[0], 2.0**-50)
    with pytest.raises(NoAnswerError, match="'given' needs 40 states; the limit is 39"):
        asked_of(ways, [1], [3], True, [0, 2], 39).bracket(rates_with(HALF)[0], 2.0**-50)


def test_a_quotient_costs_four_times_as_much_and_is_never_undecided():
    asked = asked_of([(0, FIRST), (1, LIKELY)], [1], [3], True)
    assert asked.effort == 4 * Optimum._effort
    assert asked.is_undecided(rates_with(HALF)[0]) is False
    again, other = (
        asked.restarting(asked.skeleton.entry_values(rates)) for rates in rates_with((0.6, 0.2, 0.2), MORE)
    )
    assert asked.restarting(asked.skeleton.entry_values(rates_with(HALF)[0])) is again
    assert other is not again


def test_bounds_of_the_least_are_rounded_outwards(monkeypatch):
    """The greatest probability of the opposite lies between 2^-60 and 2^-59, and that taken from 1 is no double."""
    asked = asked_of([(0, FIRST), (1, LIKELY)], [1], [3], False)
    low, high = np.array([2.0**-60]), np.array([2.0**-59])
    batch, bracket = without_steps(low[None], high[None]), Bracket(low, low, high, low > 0, low > 0)
    greatest = SimpleNamespace(
        probabilities=lambda rates, roughly: replace(batch, lower=low[None], upper=high[None]),
        bracket=lambda rates, error: bracket,
    )
    monkeypatch.setattr(OptimalConditional, "restarting", lambda *_: SimpleNamespace(optimum=greatest))
    for found in (asked.probabilities(rates_with(HALF)), asked.bracket(rates_with(HALF)[0], 2.0**-50)):
        assert (found.lower.item(), found.upper.item()) == (1 - 2.0**-53, 1)
