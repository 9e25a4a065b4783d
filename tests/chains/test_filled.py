"""A skeleton and counts give the chain of the definition, exact or rounded to decimals."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from small_objectives import channel_of, objective_of

from verifier.base.errors import InputError, UsageError
from verifier.chains.chain import assumed_columns, decision_process, filled_counts, markov_chain, valuations_of
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.matrices import Memory
from verifier.systems.strategies import StrategySkeleton

TOLD = tuple(frozenset(each) for each in ((), "a", "b"))
# In state 0 one object is drawn: reported as a it leads to state 1, as anything else to state 2.
SKELETON = objective_of(
    channel_of(TOLD, [[0]], [[1]], TOLD), [[2, 1, 2], [1] * 3, [2] * 3], [0] * 3, {"g": {1}}, "F g", ended=(1, 2)
).skeleton


def chain(column, **options):
    counts = np.ones((1, 3, 3), dtype=np.int64)
    counts[0, :, 1] = column
    return markov_chain(SKELETON, counts, {}, **options)


def row_of(chain):
    at = slice(*chain.indptr[:2])
    return dict(zip(chain.indices[at].tolist(), chain.probabilities[at].tolist(), strict=True))


def test_transitions_are_sums_of_rates_and_those_of_probability_0_are_left_out():
    assert row_of(chain((2, 1, 5))) == {1: 1 / 8, 2: 7 / 8}
    assert row_of(chain((2, 0, 5))) == {2: 1.0}
    exact = chain((1, 1, 1), exact=True)
    assert exact.fractions[:2] == (Fraction(1, 3), Fraction(2, 3))
    assert (exact.rounding_defect, chain((1, 1, 1)).fractions) == (0.0, None)


def test_choices_have_the_rates_of_their_rows_and_those_of_probability_0_are_left_out():
    strategies = StrategySkeleton(np.arange(4), SKELETON)
    counts = np.ones((1, 3, 3), dtype=np.int64)
    for column, row in (((2, 1, 5), {1: Fraction(1, 8), 2: Fraction(7, 8)}), ((2, 0, 5), {2: Fraction(1)})):
        counts[0, :, 1] = column
        process, exact = (decision_process(strategies, counts, {}, exact=exact) for exact in (False, True))
        assert row_of(process) == row_of(exact) == row
        assert exact.fractions == (*row.values(), Fraction(1), Fraction(1))
        assert decision_process(strategies, counts, {}).fractions is process.fractions is None


def test_the_run_that_is_followed_is_a_variable_where_there_is_more_than_one():
    def meant(*memory, **valuations):
        return valuations_of(SimpleNamespace(valuations=valuations, memory=np.array(memory)))

    assert meant(0, 0, x=[1, 2]) == {"x": [1, 2]}
    told = meant(0, 1, run=[1, 2], run_=[3, 4])
    assert list(told) == ["run", "run_", "run__"]
    assert told["run__"].tolist() == [0, 1]


def test_assumed_columns_say_where_their_rates_come_from():
    filled = np.array([[True, True, False]])
    for source, text in (("", ""), ("wrong*1", ", from wrong*1")):
        matrices = SimpleNamespace(
            without_empty_columns=lambda policy: (None, filled),
            filled_from=lambda index, column, source=source: source,
            labels=TOLD,
            bin_text=lambda index: f"[{index}, {index + 1}) m",
        )
        assert assumed_columns(SKELETON, matrices) == [f"true label a in bin [0, 1) m{text}"]


def test_rounded_rows_may_miss_1_by_half_a_unit_for_each_observation():
    rounded = chain((1, 1, 1), decimals=2)
    assert row_of(rounded) == {1: 0.33, 2: 0.67}
    assert rounded.rounding_defect == pytest.approx(3 * 0.005)
    assert rounded.fractions is None
    assert chain((1, 1, 1), decimals=2, exact=True).fractions[:2] == (Fraction(33, 100), Fraction(67, 100))


def test_rounding_that_leaves_any_state_without_transitions_is_refused():
    # Two looks of which one, in the first or the last state, tells 21 equally likely labels apart: 1/21 is 0.0 with
    # one decimal.
    labels = tuple(frozenset(each) for each in ("", *"abcdefghijklmnopqrst"))
    apart, certain = np.arange(1, 22) % 22, np.full(21, 1)
    for first, last in ((apart, certain), (certain, apart)):
        following = np.array([first, *(np.full(21, state) for state in range(1, 22)), last])
        following[1] = 22
        row = [0 if first is apart else -1, *[-1] * 21, 0 if last is apart else -1]
        skeleton = objective_of(
            channel_of(labels, [[0]], [[0]], labels), following, row, {"g": {2}}, "F g", ended=range(2, 22)
        ).skeleton
        counts = np.ones((1, 21, 21), dtype=np.int64)
        assert markov_chain(skeleton, counts, {}, decimals=2).state_count == 23
        with pytest.raises(UsageError, match="rounded to 1 decimals, every transition of some state is 0"):
            markov_chain(skeleton, counts, {}, decimals=1)


def test_one_to_fifteen_decimals_are_kept():
    assert row_of(chain((1, 1, 1), decimals=15)) == {1: 0.333333333333333, 2: 0.666666666666667}
    assert row_of(chain((1, 1, 1), decimals=1)) == {1: 0.3, 2: 0.7}
    for wrong in (0, 16):
        with pytest.raises(UsageError, match=f"expected 1 to 15 decimals to round to, got {wrong}"):
            chain((1, 1, 1), decimals=wrong)


@pytest.mark.parametrize(
    ("memory", "policy", "told", "option"),
    [
        (None, "error", True, "--empty-columns prior, neighbour, pool or miss"),
        ("error", "error", False, "--empty-contexts backoff, pool or prior"),
        ("error", "prior", False, "--empty-contexts backoff, pool or prior"),
    ],
)
def test_a_column_without_items_that_the_chain_needs_is_named_with_what_may_fill_it(memory, policy, told, option):
    counts = np.ones((1, 3, 3), dtype=np.int64)
    counts[0, :, 1] = 0
    # With memory the bin has items of the label, none of them in the context that the chain is in.
    within = memory and Memory(Contexts(), np.ones((1, 3, 3), dtype=np.int64), np.full(3, True), memory)
    matrices = ConfusionMatrices("class", TOLD, np.array([0.0, 10]), counts, memory=within)
    with pytest.raises(InputError, match=r"no items with true label a in bin \[0, 10\) m") as refused:
        filled_counts(SKELETON, matrices, policy)
    assert refused.value.hint.startswith(f"collect data, or name what to assume: {option}")
    assert ("--empty-columns prior," in refused.value.hint) == told


def test_a_column_with_one_item_is_taken_as_it_is():
    counts = np.ones((1, 3, 3), dtype=np.int64)
    counts[0, :, 1] = (0, 0, 1)
    matrices = ConfusionMatrices("class", TOLD, np.array([0.0, 10]), counts)
    assert np.array_equal(filled_counts(SKELETON, matrices, "error"), counts)


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, " and 1 more"), (7, " and 2 more")])
def test_at_most_five_columns_without_items_are_named(count, more):
    labels = [frozenset(each) for each in "abcdefg"]
    pairs = np.array([(0, column) for column in range(count)])
    skeleton = SimpleNamespace(columns_needed=lambda: pairs, environment="foggy")
    matrices = SimpleNamespace(
        without_empty_columns=lambda policy: (np.zeros((1, 7, 7)), None),
        labels=labels,
        bin_text=lambda index: f"{index}",
        memory=None,
    )
    with pytest.raises(InputError) as refused:
        filled_counts(skeleton, matrices, "error")
    named = ", ".join(f"true label {name} in bin 0" for name in "abcde")
    assert refused.value.message == (
        f"no items with {named}{more}, and the chain for environment 'foggy' needs their rates"
    )
