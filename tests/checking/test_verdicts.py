"""Which verdict follows: the rule as a table written by hand, every combination of what it looks at."""

import itertools
from fractions import Fraction

import pytest

from verifier.base.errors import ExitCode
from verifier.checking.verdicts import (
    ChannelTest,
    Contradicted,
    Decision,
    Refused,
    Verdict,
    VerdictRule,
    WithinBounds,
    condition_over,
    decide,
    verdict_of,
    verdict_over,
    worst_verdict,
)

S, V, U, VACUOUS, NO = Verdict.SATISFIED, Verdict.VIOLATED, Verdict.INCONCLUSIVE, Verdict.VACUOUS, Verdict.NO_TARGET

CHANNELS = {
    "fits": ChannelTest("not_contradicted"),
    "untested": ChannelTest("untested"),
    "against": ChannelTest("contradicted", "ped", 0.0001),
}
RULES = {
    "plain": VerdictRule(),
    "strict": VerdictRule(strict=True),
    "assume": VerdictRule(assume_memoryless=True),
}
ASSUMPTIONS = {"none": None, "items": "items are independent", "icc": "the ICC is at most 0.08"}

AGAINST = "the data contradict it for ped, p = 0.0001"

# What becomes of a verdict that the numbers give: a basis and a condition, or the kind of reason why it is lost.
TABLE = """
fits     plain  none  | memoryless |
fits     plain  items | memoryless | if items are independent
fits     plain  icc   | memoryless | if the ICC is at most 0.08
fits     strict none  | memoryless |
fits     strict items | LOST       | if items are independent
fits     strict icc   | LOST       | if the ICC is at most 0.08
fits     assume none  | memoryless |
fits     assume items | memoryless | if items are independent
fits     assume icc   | memoryless | if the ICC is at most 0.08
untested plain  none  | memoryless | if the detector is memoryless (not tested)
untested plain  items | memoryless | if items are independent
untested plain  icc   | memoryless | if the ICC is at most 0.08 and the detector is memoryless (not tested)
untested strict none  | LOST       | if the detector is memoryless (not tested)
untested strict items | LOST       | if items are independent
untested strict icc   | LOST       | if the ICC is at most 0.08 and the detector is memoryless (not tested)
untested assume none  | assumed    | if the detector is memoryless (assumed, not tested)
untested assume items | assumed    | if items are independent and the detector is memoryless (assumed, not tested)
untested assume icc   | assumed    | if the ICC is at most 0.08 and the detector is memoryless (assumed, not tested)
against  plain  none  | DEPENDENCE |
against  plain  items | DEPENDENCE |
against  plain  icc   | DEPENDENCE |
against  strict none  | DEPENDENCE |
against  strict items | DEPENDENCE |
against  strict icc   | DEPENDENCE |
against  assume none  | assumed    | if the detector is memoryless (assumed; AGAINST)
against  assume items | assumed    | if items are independent and the detector is memoryless (assumed; AGAINST)
against  assume icc   | assumed    | if the ICC is at most 0.08 and the detector is memoryless (assumed; AGAINST)
"""
ROWS = [
    (*head.split(), basis.strip(), condition.strip() or None)
    for head, basis, condition in (line.split("|") for line in TABLE.replace("AGAINST", AGAINST).strip().splitlines())
]


def of(channel, rule, assumption, model, whatever=U, *, vacuous=False):
    return decide(model, whatever, CHANNELS[channel], ASSUMPTIONS[assumption], RULES[rule], vacuous=vacuous)


def test_the_table_has_every_combination_once():
    assert [row[:3] for row in ROWS] == list(itertools.product(CHANNELS, RULES, ASSUMPTIONS))


@pytest.mark.parametrize(("channel", "rule", "assumption", "basis", "condition"), ROWS)
@pytest.mark.parametrize("model", [S, V])
def test_what_becomes_of_a_verdict_of_the_numbers(channel, rule, assumption, basis, condition, model):
    found = of(channel, rule, assumption, model)
    if basis == "DEPENDENCE":
        reason = Contradicted("dependence", "ped", 0.0001, model.value)
        assert found == Decision(U, None, None, reason)
    elif basis == "LOST":
        assert found == Decision(U, None, None, Refused("untested", condition, model.value))
    else:
        assert found == Decision(model, basis, condition, None)
        assert found.text == (model.value if condition is None else f"{model.value}, {condition}")


@pytest.mark.parametrize(("channel", "rule", "assumption", "basis", "condition"), ROWS)
def test_bounds_that_do_not_decide_stay_undecided_and_a_contradiction_is_the_first_reason(
    channel, rule, assumption, basis, condition
):
    reason = WithinBounds("bounds")
    if basis == "DEPENDENCE":
        reason = Contradicted("dependence", "ped", 0.0001, "inconclusive")
    assert of(channel, rule, assumption, U) == Decision(U, None, None, reason)


@pytest.mark.parametrize(("channel", "rule", "assumption", "basis", "condition"), ROWS)
@pytest.mark.parametrize(("whatever", "model"), list(itertools.product([S, V], [S, V, U])))
def test_what_holds_whatever_the_detector_predicts_needs_no_test(
    channel, rule, assumption, basis, condition, whatever, model
):
    assert of(channel, rule, assumption, model, whatever) == Decision(whatever, "any_dependence", None, None)


@pytest.mark.parametrize(("channel", "rule", "assumption", "basis", "condition"), ROWS)
def test_vacuous_is_what_would_be_satisfied_and_nothing_else(channel, rule, assumption, basis, condition):
    assert of(channel, rule, assumption, V, V, vacuous=True).verdict is V
    assert of(channel, rule, assumption, S, S, vacuous=True) == Decision(VACUOUS, "any_dependence")
    for model in (S, V, U):
        plain, vacuous = (of(channel, rule, assumption, model, vacuous=says) for says in (False, True))
        assert vacuous == (Decision(VACUOUS, plain.basis) if plain.verdict is S else plain)


@pytest.mark.parametrize(("channel", "rule", "assumption", "basis", "condition"), ROWS)
@pytest.mark.parametrize("vacuous", [False, True])
def test_without_a_target_nothing_is_decided(channel, rule, assumption, basis, condition, vacuous):
    assert of(channel, rule, assumption, NO, vacuous=vacuous) == Decision(NO)


def test_exit_codes():
    assert {verdict: verdict.exit_code for verdict in Verdict} == {
        S: ExitCode.SATISFIED,
        NO: ExitCode.SATISFIED,
        V: ExitCode.VIOLATED,
        U: ExitCode.INCONCLUSIVE,
        VACUOUS: ExitCode.INCONCLUSIVE,
        Verdict.NO_ANSWER: ExitCode.NO_ANSWER,
    }


@pytest.mark.parametrize(
    ("scenarios", "requirement", "run"),
    [
        ([S, S], S, S),
        ([S, VACUOUS], S, VACUOUS),  # a scenario that says nothing, and a requirement that says nothing
        ([VACUOUS, VACUOUS], VACUOUS, VACUOUS),
        ([VACUOUS, U], U, U),
        ([VACUOUS, V], V, V),
        ([S, U, V], V, V),
        ([NO, NO], NO, NO),
        ([NO, VACUOUS], NO, VACUOUS),
        ([], NO, NO),
        ([U, Verdict.NO_ANSWER], Verdict.NO_ANSWER, Verdict.NO_ANSWER),
        ([V, Verdict.NO_ANSWER], V, V),
    ],
)
def test_verdicts_over_scenarios_and_over_requirements(scenarios, requirement, run):
    for order in itertools.permutations(scenarios):
        assert verdict_over(order) is requirement
        assert worst_verdict(order) is run


@pytest.mark.parametrize(
    ("verdict", "parts", "condition"),
    [
        (S, [(S, None), (S, "if a")], "if a"),  # needs both
        (S, [(S, "if a"), (S, "if a and b")], "if a and b"),
        (S, [(S, "if a"), (S, "if b"), (S, "if a")], "if a; if b"),
        (V, [(V, "if a"), (V, None)], None),  # one of the two is violated without it
        (V, [(V, "if a"), (S, None)], "if a"),
        (S, [(S, None), (VACUOUS, None)], None),
        (U, [(U, None), (S, "if a")], None),
    ],
)
def test_the_condition_of_a_whole(verdict, parts, condition):
    assert condition_over(verdict, parts) == condition


@pytest.mark.parametrize("comparison", [">=", ">", "<=", "<"])
def test_numbers_beside_a_target(comparison):
    target = Fraction(1, 2)
    ends = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
    meets = {">=": ends[1:], ">": ends[2:], "<=": ends[:2], "<": ends[:1]}[comparison]
    for low, high in itertools.combinations_with_replacement(ends, 2):
        inside = [end in meets for end in ends if low <= end <= high]
        expected = S if all(inside) else V if not any(inside) else U
        assert verdict_of(low, high, comparison, target) is expected


@pytest.mark.parametrize(
    "wrong", [("contradicted", None, None), ("untested", "ped", 0.5), ("maybe", None, None), ("contradicted", "ped")]
)
def test_a_test_that_cannot_be(wrong):
    with pytest.raises(ValueError, match="p-value"):
        ChannelTest(*wrong)


@pytest.mark.parametrize("assumed", ["assume_memoryless", "assume_contexts"])
def test_strict_and_assuming_exclude_each_other(assumed):
    with pytest.raises(ValueError, match="assumes nothing"):
        VerdictRule(strict=True, **{assumed: True})
    assert VerdictRule(strict=True) != VerdictRule(**{assumed: True})


MEMORY = "the detector remembers its last report and nothing else"
KEPT, FOREIGN = VerdictRule(assume_contexts=True), VerdictRule(assume_memoryless=True)  # of a channel with memory


def remembering(test):
    contradicted = ("ped", 0.0001) if test == "contradicted" else ()
    return ChannelTest(test, *contradicted, contexts="its last report")


@pytest.mark.parametrize("model", [S, V])
@pytest.mark.parametrize(
    ("test", "rule", "basis", "condition"),
    [
        ("not_contradicted", VerdictRule(), "contexts", None),
        ("not_contradicted", KEPT, "contexts", None),
        ("untested", VerdictRule(), "contexts", f"if {MEMORY} (not tested)"),
        ("untested", FOREIGN, "contexts", f"if {MEMORY} (not tested)"),
        ("untested", KEPT, "assumed", f"if {MEMORY} (assumed, not tested)"),
        ("contradicted", KEPT, "assumed", f"if {MEMORY} (assumed; {AGAINST})"),
    ],
)
def test_a_detector_with_memory_is_assumed_by_its_own_name(model, test, rule, basis, condition):
    assert decide(model, U, remembering(test), None, rule) == Decision(model, basis, condition)
    items = "items are independent"  # says nothing of what is remembered
    both = f"if {items}" if condition is None else f"if {items} and {condition.removeprefix('if ')}"
    assert decide(model, U, remembering(test), items, rule) == Decision(model, basis, both)


@pytest.mark.parametrize("rule", [VerdictRule(), FOREIGN])
def test_a_contradicted_memory_is_named(rule):
    reason = Contradicted("dependence", "ped", 0.0001, "satisfied", "its last report")
    assert decide(S, U, remembering("contradicted"), None, rule) == Decision(U, reason=reason)


@pytest.mark.parametrize("test", ["not_contradicted", "untested", "contradicted"])
def test_numbers_that_hold_in_a_stated_box_ask_nothing_of_the_detector(test):
    channel = ChannelTest(test, *(("ped", 0.0001) if test == "contradicted" else ()), boxed=True)
    assert decide(S, U, channel, None, VerdictRule(strict=True)) == Decision(S, "assumed")
    assert decide(S, U, channel, "items are independent", VerdictRule()) == Decision(
        S, "assumed", "if items are independent"
    )


def test_errors_that_last_no_longer_are_a_condition():
    channel = ChannelTest("untested", contexts="persist:3")
    condition = "if no error lasts longer than 3 frames and they begin as counted (assumed)"
    assert decide(V, U, channel, None, VerdictRule()) == Decision(V, "assumed", condition)
    refused = Refused("untested", condition, "violated")
    assert decide(V, U, channel, None, VerdictRule(strict=True)) == Decision(U, reason=refused)


@pytest.mark.parametrize("whatever", [S, V])
def test_what_the_data_must_be_for_any_detector_is_a_condition_of_that_verdict_alone(whatever):
    fits, given = CHANNELS["fits"], {"whatever_if": "drives are independent"}
    condition = "if drives are independent"
    assert decide(U, whatever, fits, None, VerdictRule(), **given) == Decision(whatever, "any_dependence", condition)
    refused = Refused("untested", condition, whatever.value)
    assert decide(U, whatever, fits, None, VerdictRule(strict=True), **given) == Decision(U, reason=refused)
    assert decide(whatever, U, fits, None, VerdictRule(strict=True), **given) == Decision(whatever, "memoryless")
