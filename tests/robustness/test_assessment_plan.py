"""The plan of the target data set: shares, what chance does, and that the seed fixes everything."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from verifier.base.errors import UsageError
from verifier.robustness.assessment.circumstances import Circumstance, Span, Transformation
from verifier.robustness.assessment.plan import follow_up_plan


def made(name, frequency, source="0", mutation="jpeg", **parameters):
    return Circumstance(
        name, "", "probability", Fraction(frequency), Fraction(source), None, Transformation(mutation, parameters)
    )


def sources(count):
    return [f"{number}.png" for number in range(count)]


def test_exclusive_numbers_are_the_shares_rounded_by_largest_remainder():
    # 7 images of 1/2, 1/4, 1/4: 3.5, 1.75, 1.75; the two images left go to the remainders .75 and .75.
    three = [made("a", "0.5"), made("b", "0.25"), made("c", "0.25")]
    plan = follow_up_plan(three, sources(7), occurrence="exclusive")
    assert [each.images for each in plan.summary.shares] == [3, 2, 2]
    assert all(len(each.circumstances) == 1 for each in plan.images)
    assert sorted(each.source for each in plan.images) == sources(7)


def test_exclusive_shares_of_what_is_missing_are_scaled_to_one():
    two = [made("a", "0.5", "0.25"), made("b", "0.5", "0.375"), made("c", "0", "0")]
    plan = follow_up_plan(two, sources(12), occurrence="exclusive", proportions="missing")
    assert [(each.circumstance, each.asked, each.expected, each.images) for each in plan.summary.shares] == [
        ("a", 1 / 4, 2 / 3, 8),
        ("b", 1 / 8, 1 / 3, 4),
    ]


def test_independent_circumstances_follow_their_law_given_at_least_one():
    """All 7 combinations of three circumstances, against the law by its definition: draw again where none came."""
    chances = {"a": Fraction("0.2"), "b": Fraction("0.5"), "c": Fraction("0.1")}
    plan = follow_up_plan(
        [made(name, chance) for name, chance in chances.items()],
        sources(1),
        size=5_000,
        occurrence="independent",
        seed=3,
    )
    seen = {}
    for each in plan.images:
        seen[each.circumstances] = seen.get(each.circumstances, 0) + 1
    law = {}
    for shown in product((True, False), repeat=3):
        chance = Fraction(1)
        for yes, each in zip(shown, chances.values(), strict=True):
            chance *= each if yes else 1 - each
        law[tuple(name for name, yes in zip(chances, shown, strict=True) if yes)] = chance
    del law[()]
    whole = sum(law.values())
    assert whole == Fraction("0.64")  # 1 - .8 * .5 * .9
    assert set(seen) == set(law)
    expected = [float(5_000 * chance / whole) for chance in law.values()]
    assert chisquare([seen[each] for each in law], expected).pvalue > 1e-3
    assert [each.expected for each in plan.summary.shares] == [float(chance / whole) for chance in chances.values()]


def test_parameters_are_drawn_for_every_image_within_their_span():
    plan = follow_up_plan(
        [made("turn", "1", "0", "motion_blur", angle_deg=Span(-20.0, 20.0), length_px=Span(1, 3))],
        sources(1),
        size=3000,
        occurrence="exclusive",
    )
    angles = np.array([each.transformations[0].parameters["angle_deg"] for each in plan.images])
    assert angles.min() >= -20
    assert angles.max() <= 20
    # The mean of 3000 even draws from -20..20 has the standard deviation 40 / sqrt(12 * 3000) = .21.
    assert abs(angles.mean()) < 4 * 0.21
    assert {each.transformations[0].parameters["length_px"] for each in plan.images} == {1, 2, 3}
    assert {each.transformations[0].mutation for each in plan.images} == {"motion_blur"}


def test_the_seed_fixes_everything():
    two = [made("a", "0.5", mutation="brightness", factor=Span(0.0, 1.0)), made("b", "0.25")]

    def plan(seed):
        return follow_up_plan(two, sources(50), occurrence="independent", seed=seed)

    assert plan(1) == plan(1)
    assert plan(1) != plan(2)


def test_a_certain_circumstance_is_in_every_image_as_often_as_asked():
    plan = follow_up_plan([made("a", "1"), made("b", "0.25")], sources(40), occurrence="independent")
    assert [each.expected for each in plan.summary.shares] == [1, Fraction(1, 4)]
    assert plan.summary.shares[0].images == 40


@given(
    st.lists(st.integers(0, 10), min_size=1, max_size=5).filter(any),
    st.integers(1, 40),
    st.integers(1, 100),
    st.sampled_from(["independent", "exclusive"]),
)
def test_laws_of_every_plan(weights, count, size, occurrence):
    total = sum(weights)
    circumstances = [made(f"c{number}", Fraction(weight, total)) for number, weight in enumerate(weights)]
    plan = follow_up_plan(circumstances, sources(count), size=size, occurrence=occurrence)
    assert len(plan.images) == size
    assert all(each.circumstances for each in plan.images)
    uses = [sum(each.source == name for each in plan.images) for name in sources(count)]
    assert max(uses) - min(uses) <= 1
    for share in plan.summary.shares:
        shown = sum(share.circumstance in each.circumstances for each in plan.images)
        assert shown == share.images
        if occurrence == "exclusive":
            assert abs(shown - share.asked * size) < 1


@pytest.mark.parametrize(
    ("circumstances", "names", "more", "message"),
    [
        ([made("a", "0.5")], [], {}, "needs source images"),
        ([made("a", "0.5")], sources(1), {"size": 0}, "got 0"),
        ([made("a", "0.5")], sources(1), {"size": 10**9}, "1 to 1000000"),
        ([], sources(1), {}, "no circumstance"),
        ([made("a", "0")], sources(1), {}, "all shares are 0"),
        ([made("a", "0.5", "0.5")], sources(1), {"proportions": "missing"}, "all shares are 0"),
        ([made("a", "0.6"), made("b", "0.6")], sources(1), {"occurrence": "exclusive"}, "1.2 times per image"),
        ([Circumstance("a", frequency=Fraction(1))], sources(1), {}, "'a' has no transformation"),
        ([Circumstance("a")], sources(1), {}, "'a' has no frequency"),
        (
            [Circumstance("a", frequency=Fraction(1))],
            sources(1),
            {"proportions": "missing"},
            "'a' has no source frequency",
        ),
    ],
)
def test_plans_that_cannot_be_drawn(circumstances, names, more, message):
    with pytest.raises(UsageError, match=message):
        follow_up_plan(circumstances, names, **{"occurrence": "independent", **more})
