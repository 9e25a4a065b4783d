"""Counts, rates, bins and the policies for columns without items, against hand-computed fractions."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import InputError, UsageError
from verifier.perception.confusion import EMPTY, ConfusionMatrices, exact_rates, rates
from verifier.perception.confusion.bins import Variable
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.matrices import Memory, label_text

PED, OBS = frozenset({"ped"}), frozenset({"obs"})
LABELS = (PED, OBS, EMPTY)


def matrices(*tables, edges=None):
    counts = np.array(tables, dtype=np.int64)
    edges = np.arange(0.0, 10.0 * len(tables) + 1, 10.0) if edges is None else np.array(edges, dtype=float)
    return ConfusionMatrices("class", LABELS, edges, counts)


# Figure 6 of Badithela et al. 2022, d <= 10 m.
FIGURE_6 = [[31, 0, 0], [0, 191, 0], [127, 734, 3227]]
NO_PED = [[0, 2, 0], [0, 8, 1], [0, 10, 9]]


def test_columns_become_rates():
    found = exact_rates(matrices(FIGURE_6).counts)[0]
    assert list(found[:, 0]) == [Fraction(31, 158), 0, Fraction(127, 158)]
    assert list(found[:, 1]) == [0, Fraction(191, 925), Fraction(734, 925)]
    assert list(found[:, 2]) == [0, 0, 1]


def test_rates_are_not_row_normalised():
    # The transpose would give 31/31 = 1 for a pedestrian reported as one.
    assert rates(matrices(FIGURE_6).counts)[0, 0, 0] == 31 / 158


def test_canonical_is_the_sum_over_bins_in_one_bin_without_end():
    total = matrices(FIGURE_6, NO_PED).canonical()
    assert total.counts.tolist() == [[[31, 2, 0], [0, 199, 1], [127, 744, 3236]]]
    assert total.bins_of(np.array([0.0, 1e9])).tolist() == [0, 0]


def test_bins_are_half_open():
    found = matrices(FIGURE_6, NO_PED).bins_of(np.array([0.0, 9.999, 10.0, 19.999, 20.0, -0.1, np.nan]))
    assert found.tolist() == [0, 0, 1, 1, -1, -1, -1]


def test_an_overflow_bin_holds_every_larger_distance():
    assert matrices(FIGURE_6, NO_PED, edges=[0, 10, np.inf]).bins_of(np.array([10.0, 1e300])).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("policy", "column"),
    [
        # Bin 1 has no pedestrians; bin 0 is the only other bin.
        ("prior", [1, 1, 1]),
        ("miss", [0, 0, 1]),
        ("neighbour", [31, 0, 127]),
        ("pool", [31, 0, 127]),
    ],
)
def test_policies_fill_columns_without_items_only(policy, column):
    given_matrices = matrices(FIGURE_6, NO_PED)
    counts, filled = given_matrices.without_empty_columns(policy)
    assert counts[1, :, 0].tolist() == column
    assert filled.tolist() == [[False, False, False], [True, False, False]]
    counts[1, :, 0] = 0
    assert np.array_equal(counts, given_matrices.counts)


def test_neighbour_takes_the_nearer_to_the_ego_on_a_tie_and_pool_sums_all():
    first, last = [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 0, 0], [5, 1, 0], [0, 0, 1]]
    three = matrices(first, NO_PED, last)
    assert three.without_empty_columns("neighbour")[0][1, :, 0].tolist() == [1, 0, 0]
    assert three.without_empty_columns("pool")[0][1, :, 0].tolist() == [1, 5, 0]


@pytest.mark.parametrize(
    ("items", "donor"),  # pedestrians by distance, each without and with something before them; the first has none
    [
        ([(0, 1), (0, 0), (2, 0)], 2),  # far, but as much in sight
        ([(0, 1), (3, 0), (2, 0)], 3),
        ([(0, 0), (0, 4), (0, 5)], 4),  # none as much in sight: the nearest
        ([(0, 6), (0, 4), (0, 5)], 6),
    ],
)
def test_neighbours_are_alike_in_what_objects_have_first_and_near_next(items, donor):
    counts = np.zeros((6, 2, 2), dtype=np.int64)
    counts[:, 1, 0], counts[:, 1, 1] = np.ravel(items), 1
    hidden, edges = Variable("hidden", (0.0, 1.0, 2.0)), np.arange(4.0)
    found = ConfusionMatrices("class", (PED, EMPTY), edges, counts, variables=(hidden,))
    assert found.without_empty_columns("neighbour")[0][0].tolist() == [[0, 0], [donor, 1]]
    # The other way round: the last is the one without, and the nearest is before it.
    back = replace(found, counts=counts[::-1].copy())
    assert back.without_empty_columns("neighbour")[0][-1].tolist() == [[0, 0], [donor, 1]]
    with pytest.raises(UsageError, match=r"--canonical sums over all bins, and the model says .* by 'hidden'"):
        found.canonical()


def test_all_columns_without_items_are_filled():
    nothing = matrices([[0] * 3] * 3, [[0, 0, 1], [0, 0, 0], [0, 5, 0]])
    for policy, column in (("prior", [1, 1, 1]), ("miss", [0, 0, 1])):
        counts, filled = nothing.without_empty_columns(policy)
        assert counts.transpose(0, 2, 1).tolist() == [[column] * 3, [column, [0, 0, 5], [1, 0, 0]]]
        assert filled.tolist() == [[True] * 3, [True, False, False]]


NEVER = [0, 0, 1]  # no item in all of the bin: as the policy of columns says, whatever that of contexts


@pytest.mark.parametrize(
    (
        "policy",
        "first",
        "second",
        "last",
    ),  # what pedestrians of bin 0 have after right, of 1 at start, of 3 after right
    [
        ("backoff", [1, 2, 3], [8, 0, 9], [0, 0, 1]),
        ("pool", [8, 0, 9], [1, 2, 4], [8, 0, 9]),
        ("prior", [1, 1, 1], [1, 1, 1], [1, 1, 1]),
        ("error", [0, 0, 0], [0, 0, 0], [0, 0, 0]),
    ],
)
def test_columns_without_items_of_several_labels_and_bins_by_context(policy, first, second, last):
    """Labels ped (followed), obs (not), empty; contexts start, right, wrong*1 of errors that persist."""
    own = np.zeros((4, 3, 3, 3), dtype=np.int64)
    own[0, 0, :, 0], own[0, 0, :, 1], own[0, 0, :, 2] = (1, 2, 3), (4, 5, 6), (0, 0, 7)
    own[1, 1, :, 0] = 8, 0, 9
    own[3, 0, :, 0] = 0, 0, 1
    memory = Memory(Contexts("persist", 1), own.sum(axis=1), np.array([True, False, False]), policy)
    edges = np.array([0.0, 5, 9, 12, 20])
    found = ConfusionMatrices("class", LABELS, edges, own.reshape(12, 3, 3), memory=memory)
    counts, filled = (each.reshape(4, 3, *each.shape[1:]) for each in found.without_empty_columns("miss"))
    assert filled.tolist() == (own.sum(axis=2) == 0).tolist()
    over = [1, 0, 0]  # what lasted so long lasts no longer
    expected = [
        [[1, 2, 3], first, over], [second, [8, 0, 9], over], [NEVER, NEVER, over], [[0, 0, 1], last, over],
    ]  # fmt: skip
    assert counts[:, :, :, 0].tolist() == expected
    if policy == "backoff":
        assert counts[0, :, :, 1].tolist() == [[4, 5, 6]] * 3
        assert counts[2, :, :, 1:].transpose(2, 0, 1).tolist() == [[NEVER] * 3] * 2
    told = [found.filled_from(at, 0) for at in (1, 3, 6)]
    source = {"backoff": ["the column of the bin"] * 2, "pool": ["right of all bins", "start of all bins"]}
    assert told == [*source.get(policy, ["", ""]), ""]


def test_labels_are_told():
    assert [label_text(label) for label in (EMPTY, PED, PED | OBS)] == ["empty", "ped", "{obs, ped}"]


def test_rates_of_many_tables_and_of_columns_without_items():
    counts = np.array([[[[1, 0], [3, 0]], [[2, 5], [0, 5]]]])
    expected = [[Fraction(1, 4), None], [Fraction(3, 4), None]], [[1, Fraction(1, 2)], [0, Fraction(1, 2)]]
    for made in (rates(counts)[0], exact_rates(counts)[0]):
        assert [
            [[None if np.isnan(float(x)) else x for x in row] for row in table] for table in made.tolist()
        ] == list(expected)


def test_the_error_policy_leaves_the_column_alone_and_names_it():
    counts, filled = matrices(FIGURE_6, NO_PED).without_empty_columns("error")
    assert counts[1, :, 0].tolist() == [0, 0, 0]
    assert filled[1, 0]
    assert np.isnan(rates(counts)[1, :, 0]).all()


@pytest.mark.parametrize("policy", ["neighbour", "pool"])
def test_a_label_without_items_anywhere_cannot_be_filled_from_elsewhere(policy):
    with pytest.raises(InputError, match="true label ped has no items in any bin"):
        matrices(NO_PED).without_empty_columns(policy)


def test_unknown_policies_and_labels_are_named():
    with pytest.raises(UsageError, match="unknown policy 'zero'"):
        matrices(FIGURE_6).without_empty_columns("zero")
    with pytest.raises(
        InputError, match=r"no column for true label \{obs, ped\}\n  hint: they have: ped, obs, empty"
    ):
        matrices(FIGURE_6).column_of(PED | OBS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": (PED, OBS)},
        {"labels": (PED, PED, EMPTY)},
        {"labels": (PED, PED | OBS, EMPTY)},
        {"edges_m": np.array([0.0, 0.0])},
        {"edges_m": np.array([-1.0, 1.0])},
        {"edges_m": np.array([0.0, np.nan])},
        {"counts": np.full((1, 3, 3), -1)},
        {"counts": np.ones((1, 3, 3))},
        {"counts": np.full((1, 3, 3), 2**60)},
        {"counts": np.ones((2, 3, 3), dtype=np.int64)},
    ],
)
def test_matrices_are_valid_from_birth(wrong):
    good = {
        "labelling": "class",
        "labels": LABELS,
        "edges_m": np.array([0.0, 10.0]),
        "counts": np.array([FIGURE_6]),
    }
    ConfusionMatrices(**good)
    with pytest.raises(ValueError, match=r"label|edges|counts"):
        ConfusionMatrices(**(good | wrong))


@given(
    st.lists(st.lists(st.integers(0, 2**40), min_size=9, max_size=9), min_size=1, max_size=4),
    st.sampled_from(["prior", "miss"]),
)
def test_columns_sum_to_one_under_every_policy_that_always_works(tables, policy):
    counts, _ = matrices(*np.array(tables).reshape(-1, 3, 3)).without_empty_columns(policy)
    assert (exact_rates(counts).sum(axis=1) == 1).all()
    assert np.allclose(rates(counts).astype(float), exact_rates(counts).astype(float), rtol=1e-15)


# Pedestrians of two bins by context (start, right*1, right*2, wrong*1, wrong*2): reported, missed.
BY_CONTEXT = [[(4, 1), (0, 0), (0, 0), (1, 2), (0, 0)], [(3, 1), (2, 5), (0, 0), (6, 1), (0, 0)]]


@pytest.mark.parametrize(
    ("policy", "near"),
    [
        ("backoff", [("", (4, 1)), ("the column of the bin", (5, 3)), ("the column of the bin", (5, 3)), ("", (1, 2)),
                     ("wrong*1", (1, 2))]),
        ("pool", [("", (4, 1)), ("right*1 of all bins", (2, 5)), ("the column of the bin", (5, 3)), ("", (1, 2)),
                  ("wrong*1", (1, 2))]),
        ("prior", [("", (4, 1)), ("", (1, 1)), ("", (1, 1)), ("", (1, 2)), ("", (1, 1))]),
        ("error", [("", (4, 1)), ("", (0, 0)), ("", (0, 0)), ("", (1, 2)), ("", (0, 0))]),
    ],
)  # fmt: skip
def test_columns_without_items_in_a_context_are_filled_and_say_from_where(policy, near):
    contexts = Contexts("run", 2)
    own = np.zeros((2, 5, 2, 2), dtype=np.int64)
    own[:, :, :, 0] = BY_CONTEXT
    memory = Memory(contexts, own.sum(axis=1), np.array([True, False]), policy)
    found = ConfusionMatrices("class", (PED, EMPTY), np.array([0.0, 10, 20]), own.reshape(10, 2, 2), memory=memory)
    filled = found.without_empty_columns("error")[0].reshape(2, 5, 2, 2)
    assert [tuple(column) for column in filled[0, :, :, 0].tolist()] == [column for _, column in near]
    told = ["" if any(column) else found.filled_from(at, 0) for at, column in enumerate(BY_CONTEXT[0])]
    assert told == [source for source, _ in near]


def test_a_context_without_items_has_the_rates_of_the_nearest_shorter_one_with_some():
    contexts = Contexts("run", 3)
    memory = Memory(contexts, np.zeros((1, 2, 2), dtype=np.int64), np.ones(2, dtype=bool))
    own, at = np.zeros((contexts.count, 2), dtype=np.int64), contexts.names.index
    assert memory.donor(own, at("wrong*3")) is None
    own[at("wrong*1"), 0] = 1
    assert memory.donor(own, at("wrong*3")) == at("wrong*1")
    own[at("wrong*2"), 1] = 1
    assert memory.donor(own, at("wrong*3")) == at("wrong*2")


@pytest.mark.parametrize("count", [-1, 2**53 + 1])
def test_one_count_that_cannot_be_is_refused(count):
    labels = frozenset({"ped"}), frozenset()
    counts = np.array([[[1, 2], [3, 2**53]]], dtype=np.int64)
    assert ConfusionMatrices("class", labels, np.array([0.0, 10]), counts).counts.max() == 2**53
    counts[0, 1, 1] = count
    with pytest.raises(ValueError, match=r"counts must lie in 0\.\.2\*\*53"):
        ConfusionMatrices("class", labels, np.array([0.0, 10]), counts)


def test_every_edge_is_greater_than_the_one_before():
    for edges in ([0, 10, 5], [0, 10, 10], [5, 0, 10]):
        with pytest.raises(ValueError, match="increase strictly"):
            matrices(FIGURE_6, FIGURE_6, edges=edges)


def test_the_distance_bin_of_bins_of_a_further_variable():
    found = matrices(FIGURE_6, FIGURE_6)
    finer = replace(
        found, counts=np.repeat(found.counts, 3, 0), variables=(Variable("hidden", (0.0, 1.0, 2.0, 3.0)),)
    )
    assert finer.distance_bin(np.arange(6)).tolist() == [0, 0, 0, 1, 1, 1]
    assert found.distance_bin(1) == 1
    assert [finer.end_m(at) for at in range(6)] == [10, 10, 10, 20, 20, 20]


def test_bins_that_only_objects_have_are_one_place():
    found = matrices(FIGURE_6, FIGURE_6)
    hidden, side = Variable("hidden", (0.0, 1.0, 2.0, 3.0)), Variable("bearing_deg", (-180.0, 0.0, 180.0))
    finer = replace(found, counts=np.repeat(found.counts, 6, 0), variables=(hidden, side))
    assert finer.place_of(np.arange(12)).tolist() == [0, 1, 0, 1, 0, 1, 6, 7, 6, 7, 6, 7]
    # Objects of all twelve bins, and what was reported of none once for each of four places.
    assert finer.item_count == 12 * (158 + 925) + 4 * 3227


def test_bins_are_told_and_all_together_have_no_localisation():
    found = matrices(FIGURE_6, FIGURE_6, edges=[0, 10, np.inf])
    assert [found.bin_text(at) for at in (0, 1)] == ["[0, 10) m", "[10, inf) m"]
    contexts = Contexts("run", 1)
    whole, followed = np.repeat(found.counts, 1, 0), np.ones(3, dtype=bool)
    divided = replace(found, counts=np.repeat(found.counts, 3, 0), memory=Memory(contexts, whole, followed))
    assert [divided.bin_text(at) for at in (0, 4)] == ["[0, 10) m, at start", "[10, inf) m, after right*1"]
    told = replace(found, metadata={"localisation": {}, "title": "t"}).canonical()
    assert told.metadata == {"title": "t"}
