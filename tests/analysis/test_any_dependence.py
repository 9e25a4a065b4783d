"""What holds whatever the detector predicts: by hand, and against all short lassos of random systems."""

import itertools
import random

import numpy as np
import pytest
from exact_oracle import holds_on_lasso
from random_ltl import random_formula
from small_objectives import channel_of, objective_of

from verifier.analysis.channel_test import Channel, Untested, channel_test, class_tests
from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.robust import any_dependence as any_dependence_module
from verifier.analysis.robust.any_dependence import any_dependence
from verifier.checking.verdicts import ChannelTest
from verifier.language.ltl import parse_formula
from verifier.perception.confusion.document_dependence import Dependence, DependenceTest
from verifier.telling.grounds import channel_lines

LABELS = ((), ("a",))


def objective(following, true_in, formula, ended=(), columns=None):
    """Every state draws label {} or {a} from column 1, or from the given one; they lead to its two successors."""
    rows = np.array([1] * len(following) if columns is None else columns)
    channel = channel_of(LABELS, np.zeros((len(rows), 1)), rows[:, None], tuple(map(frozenset, LABELS)))
    return objective_of(channel, following, np.arange(len(rows)), true_in, formula, (0,), ended)


def data(fixed=()):
    """Columns held by convention report nothing."""
    rates = np.array([[[1.0, 0.5], [0.0, 0.5]]])
    return Measured(np.array([[[9, 5], [0, 5]]]), rates, np.array([[column in fixed for column in range(2)]]))


def ends(*arguments, fixed=(), **more):
    return tuple(any_dependence(objective(*arguments, **more), data(fixed))[0].tolist())


class TestByHand:
    # 0 stays at report {} and goes to 1 at report a; 1 has ended.
    WAITING = ([[0, 1], [1, 1]], {"p": {1}})

    @pytest.mark.parametrize(
        ("formula", "expected"),
        [
            ("F p", (0, 1)),  # one report in a thousand steps is enough for a chain, and may never come
            ("G !p", (0, 1)),
            ("p | X true", (1, 1)),
            ("G (p -> X p)", (1, 1)),  # 1 is never left
            ("p", (0, 0)),
            ("F (p & X !p)", (0, 0)),
            ("(G F !p) | (F G p)", (1, 1)),
        ],
    )
    def test_a_report_may_stay_away_for_ever(self, formula, expected):
        assert ends(*self.WAITING, formula, ended=[1]) == expected

    def test_a_memoryless_chain_would_be_sure(self):
        found = objective(*self.WAITING, "F p", ended=[1])
        assert found.probabilities(data().rates[None]).probability[0, 0] == 1
        assert any_dependence(found, data())[0].tolist() == [0, 1]

    def test_what_a_column_reports_by_convention_is_no_choice(self):
        # Column 0 reports nothing, by convention: state 0 stays. Counted, it might report something.
        stays = ([[0, 1], [1, 1]], {"p": {1}}, "G !p")
        assert ends(*stays, columns=[0, 0], ended=[1], fixed=[0]) == (1, 1)
        assert ends(*stays, columns=[0, 0], ended=[1]) == (0, 1)

    def test_a_cycle_is_one_path(self):
        assert ends([[1, 1], [0, 0]], {"p": {0}}, "G F p & G F !p") == (1, 1)
        assert ends([[1, 1], [0, 0]], {"p": {0}}, "F G p") == (0, 0)

    def test_a_pattern_that_chance_would_bring_can_be_avoided(self):
        # In a and b by turns, as reported. A memoryless detector shows b a b infinitely often.
        formula = "G F (b & X a & X X b)"
        found = objective([[0, 1], [0, 1]], {"a": {0}, "b": {1}}, formula)
        assert found.probabilities(data().rates[None]).probability[0, 0] == 1
        assert any_dependence(found, data())[0].tolist() == [0, 1]


def test_no_combination_of_rates_is_tried(monkeypatch):
    """A component that rates of their own in each state decide is not decided for every path."""
    tried, decided = [], any_dependence_module.decided_components
    monkeypatch.setattr(
        any_dependence_module,
        "decided_components",
        lambda *told, **how: (tried.append(how), decided(*told, **how))[1],
    )
    assert ends([[0, 1], [1, 1]], {"p": {1}}, "G F !p", ended=[1]) == (0, 1)
    assert tried == [{"most_combinations": 0}]


def lassos(following, longest):
    """(stem, loop) of every lasso of at most so many states."""
    for length in range(1, longest + 1):
        for reports in itertools.product(range(2), repeat=length - 1):
            path = [0]
            for report in reports:
                path.append(following[path[-1]][report])
            for back in {place for place in range(length) if path[place] in following[path[-1]]}:
                yield path[:back], path[back:]


def outcomes(following, true_in, formula, longest=6):
    def word(states):
        return [frozenset(name for name, where in true_in.items() if state in where) for state in states]

    return {holds_on_lasso(formula, word(stem), word(loop)) for stem, loop in lassos(following, longest)}


def random_case(seed):
    rng = random.Random(seed)
    size = rng.randint(2, 3)
    following = [[rng.randrange(size) for _ in range(2)] for _ in range(size)]
    true_in = {name: {state for state in range(size) if rng.random() < 0.5} for name in "abc"}
    return following, true_in, random_formula(rng, 3)


def test_no_lasso_of_a_random_system_contradicts_what_is_said_of_all_paths(thorough):
    decided, seeds = 0, 150 if thorough else 50
    for seed in range(seeds):
        following, true_in, formula = random_case(seed)
        seen = outcomes(following, true_in, formula)
        low, high = ends(following, true_in, formula)
        assert low <= min(seen), f"seed {seed}: some path fails"
        assert high >= max(seen), f"seed {seed}: some path holds"
        decided += low == high
    assert seeds / 5 < decided < seeds - 5


@pytest.mark.parametrize("text", ["G a", "F a", "a U b", "G (a -> X b)", "F (a & X b)", "b R a", "a & X X b"])
def test_safety_and_co_safety_are_decided_exactly(text, thorough):
    formula, kinds = parse_formula(text), set()
    for seed in range(25 if thorough else 10):
        following, true_in, _ = random_case(seed)
        seen = outcomes(following, true_in, formula)
        found = ends(following, true_in, formula)
        assert found == (int(min(seen)), int(max(seen)))
        kinds.add(found)
    assert len(kinds) == 3 or not thorough


class TestChannel:
    @staticmethod
    def dependence(**p_values):
        counted = {"objects": 60, "misses": 20, "pairs": 40, "after_miss": 10, "joint_misses": 7, "permutations": 999}
        expected = {"expected_joint_misses": 4.0, "expected_miss_after_miss": 0.4}
        tests = [DependenceTest(label=name, p_value=p, **counted, **expected) for name, p in p_values.items()]
        return Dependence(seed=0, classes=tuple(tests))

    def test_only_the_classes_that_a_chain_draws_count(self):
        tests = class_tests(
            self.dependence(car=0.5, ped=0.002, obs=0.0001), None, {"car": [0], "empty": [0], "ped": [0]}
        )
        assert [test.test for test in tests] == ["not_contradicted", "untested", "contradicted"]
        assert channel_test(tests, ["car"]) == ChannelTest("not_contradicted")
        assert channel_test(tests, ["car", "empty"]) == ChannelTest("untested")
        assert channel_test(tests, ["car", "empty", "ped"]) == ChannelTest("contradicted", "ped", 0.002)
        assert channel_test(tests, ["car", "bike"]) == ChannelTest("untested")
        assert channel_test(tests, []) == ChannelTest("not_contradicted")
        assert Channel(classes=tests).test == "contradicted"

    @pytest.mark.parametrize(("p_value", "test"), [(0.00999, "contradicted"), (0.01, "not_contradicted")])
    def test_from_where_on_it_is_contradicted(self, p_value, test):
        assert class_tests(self.dependence(ped=p_value), None, {"ped": [0]})[0].test == test

    def test_without_pairs_of_frames_nothing_is_tested(self):
        quiet = {"after_miss": 0, "joint_misses": 0, "expected_joint_misses": 0.0, "expected_miss_after_miss": None}
        none = DependenceTest(label="ped", objects=9, misses=2, pairs=0, p_value=1.0, permutations=999, **quiet)
        assert class_tests(Dependence(seed=0, classes=(none,)), None, {"ped": [0]}) == (Untested(label="ped"),)
        assert class_tests(None, None, {"ped": [0]}) == (Untested(label="ped"),)

    def test_without_misses_nothing_is_tested(self):
        quiet = {"after_miss": 0, "joint_misses": 0, "expected_joint_misses": 0.0, "expected_miss_after_miss": None}
        none = DependenceTest(label="ped", objects=9, misses=0, pairs=8, p_value=1.0, permutations=999, **quiet)
        (found,) = class_tests(Dependence(seed=0, classes=(none,)), None, {"ped": [0]})
        assert found == Untested(label="ped", no_misses=True)
        assert channel_test([found]) == ChannelTest("untested")
        assert list(channel_lines(Channel(classes=(found,)))) == ["ped: not tested (no misses to test it by)"]
