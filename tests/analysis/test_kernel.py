"""The kernel: nothing false passes, everything the program makes does, and another checker says the same."""

import contextlib
import functools
import itertools
import json
import math
import operator
import re
import subprocess
import sys
import zipfile
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from certificate_mutations import SHOWN, SYSTEM, mutated
from certified_systems import formula_of, greatest_lost
from hypothesis import given
from hypothesis import strategies as st
from interval_models import RECURRENT, SIMPLE, Model, random_model, supports
from second_checker import complaint
from shorthands import PROVEN, confidence_region

from verifier.analysis import kernel, step_kernel
from verifier.analysis.robust.certificate import BoxArrays, content_document
from verifier.analysis.robust.point_certificate import point_certificates
from verifier.analysis.robust.solutions import robust_bounds
from verifier.analysis.robust.staying import Staying
from verifier.analysis.robust.subject import region_document, subject_of
from verifier.language.ltl import holds_on_lasso, parse_formula
from verifier.manual.pages import GALLERY
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions

NESTED = [
    "G F (p & X X q)",
    "G (p -> (q U !p))",
    "F G (p | X q)",
    "(G F p) <-> (G F q)",
    "G (p -> F[0,3] q)",
    "(p U q) R (F p)",
    "G ((p & X p) -> F q)",
    "p R q",
    "(p R[1,3] q) | X[2] p",
    "G F[1,2] p & F G (q | X p)",
]
FORMULAS = [*SIMPLE, *RECURRENT, *NESTED]


def certificates(seed, formula, ended=1, states=4, labels=2):
    """The certificates of a random model, as they are read from a file."""
    model = random_model(np.random.default_rng(seed), states, labels, zeros=0.6, width=0.5, ended=ended)
    objective = model.objective(formula)
    if not len(objective.skeleton.columns_needed()):
        return []
    found = robust_bounds(objective, model.region(objective), "per_state", PROVEN)
    return [json.loads(json.dumps(certificate)) for certificate in found.certificates]


def of_point(seed, formula, ended=1, states=4, labels=2):
    """The certificates of a random model whose rates are counts over their sum."""
    rng = np.random.default_rng(seed)
    objective = random_model(rng, states, labels, ended=ended).objective(formula)
    counts = rng.integers(0, 5, (states, labels, labels))
    counts[:, 0] += counts.sum(axis=1) == 0
    return [json.loads(json.dumps(content)) for _, content in point_certificates(objective, counts)]


@cache
def some_certificates(seed):
    """Certificates that prove more than nothing."""
    formula = FORMULAS[seed % len(FORMULAS)]
    return [
        content
        for content in [
            *certificates(seed, formula, ended=seed % 3 // 2, states=3 + seed % 2),
            *of_point(seed, formula, ended=seed % 3 // 2, states=3 + seed % 2),
        ]
        if any(0 < bound < 1 or (bound == 1) == (content["side"] == "lower") for bound in kernel.check(content))
    ]


def lost_at_most(content, bounds):
    return [1 - bound if content["side"] == "lower" else bound for bound in bounds]


class TestCertificatesOfTheProgram:
    @pytest.mark.every(3)
    @pytest.mark.parametrize("formula", FORMULAS)
    def test_they_are_accepted_and_no_choice_of_nature_beats_them(self, formula):
        rng = np.random.default_rng(0)
        for seed in range(2):
            for content in certificates(100 + seed, formula, ended=seed % 2):
                bounds = kernel.check(content)
                assert complaint(content) is None
                lost = greatest_lost(content, rng, 12)
                assert all(most >= least for most, least in zip(lost_at_most(content, bounds), lost, strict=True))

    def test_many_of_them_are_what_nature_attains(self):
        """So the bounds that are checked are no trivial ones."""
        rng, tight, count = np.random.default_rng(1), 0, 0
        for seed in range(6):
            for content in certificates(seed, RECURRENT[seed % len(RECURRENT)], ended=seed % 2):
                lost = greatest_lost(content, rng, 100)
                pairs = zip(lost_at_most(content, kernel.check(content)), lost, strict=True)
                tight += sum(float(most - least) < 1e-9 for most, least in pairs)
                count += len(lost)
        assert tight == count > 10

    @pytest.mark.parametrize("formula", [*RECURRENT, *NESTED])
    def test_components_of_several_states_are_decided(self, formula, thorough):
        for seed in range(6 if thorough else 2):
            for content in certificates(2000 + seed, formula, ended=0, states=3 + seed % 4, labels=2 + seed % 2):
                kernel.check(content)

    @pytest.mark.every(3)
    @pytest.mark.parametrize(
        "name",
        [
            pytest.param(name, marks=[pytest.mark.slow] * (name == "phantom_braking"))
            for name in GALLERY
            if name != "acc"  # more states than certificates are made of
        ],
    )
    def test_all_of_the_gallery_are_accepted(self, name, root):
        options, count = RunOptions(), 0
        inputs = read_inputs(root / f"specs/{name}.ltl", root / f"models/{GALLERY[name].matrices}.json", options)
        study = Study.of(inputs, options)
        plain = [number for number, each in enumerate(study.requirements) if each.is_plain]
        for case in study.cases:
            for objective in (case.objectives[number] for number in plain):
                region = confidence_region(objective.skeleton, study.measured)
                found = robust_bounds(objective, region, effort=PROVEN)
                for certificate in found.certificates:
                    kernel.check(json.loads(json.dumps(certificate)))
                    count += 1
        assert count


def checked(content):
    try:
        return kernel.check(content), None
    except kernel.Rejected as error:
        return None, str(error)


UNDECIDED = ("may decide against", "has to meet", "can be left without")
"""What is said of obligations, components and orders that prove too little, whether or not the bound is true."""


def attack(seed, changes, asked=1.0):
    """Change the certificates of a seed again and again; (accepted, refused, refused because it cannot be decided).

    Whatever is accepted must be true of the system that the changed certificate states. The second checker is asked
    about this share of the changes. As undecided counts what it finds nothing wrong with, although the program chose
    the obligations.
    """
    rng, tally = np.random.default_rng(seed), [0, 0, 0]
    for content in some_certificates(seed):
        lost = None
        for _ in range(changes):
            kinds, changed = mutated(rng, content)
            bounds, refusal = checked(changed)
            second = rng.random() < asked
            if bounds is None:
                malformed = any(words in refusal for words in ("expected", "not a certificate", "/subject/formula"))
                wrong = malformed or not second or complaint(changed)
                tally[2 if not wrong and SHOWN in kinds else 1] += 1
                assert wrong or any(words in refusal for words in UNDECIDED), (kinds, refusal)
                continue
            tally[0] += 1
            assert not second or complaint(changed) is None, kinds
            if SYSTEM & set(kinds):
                now = greatest_lost(changed, rng, 3)
            else:
                now = lost = lost or greatest_lost(content, rng, 40)
            pairs = zip(lost_at_most(changed, bounds), now, strict=True)
            assert all(most >= least for most, least in pairs), (kinds, changed["side"])
    return tally


def test_no_change_makes_a_false_bound_pass():
    tallies = np.array([attack(seed, 60, asked=0.1) for seed in range(3)]).sum(axis=0)
    accepted, refused, undecided = tallies.tolist()
    assert accepted + refused + undecided > 240
    assert refused > 90
    assert undecided < 0.02 * refused


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_none_of_a_hundred_thousand_changes_makes_a_false_bound_pass(part):
    count, seed = 0, 10_000 * (part + 1)
    while count < 5000:
        count += sum(attack(seed, 100, asked=0.05))
        seed += 1


REPORTS = [frozenset(), frozenset("a"), frozenset("b")]
SEEN = [frozenset(), frozenset("a"), frozenset("b"), frozenset("ab")]


def corners(low, high, unit):
    """The extreme rates between the ends: all but one of them at an end."""
    for free in range(len(low)):
        others = [k for k in range(len(low)) if k != free]
        for ends in itertools.product(*((low[k], high[k]) for k in others)):
            rest = unit - sum(ends)
            if low[free] <= rest <= high[free]:
                yield [*ends[:free], rest, *ends[free:]]


@given(st.integers(0, 2**32))
def test_the_steps_of_a_system_are_those_of_the_definition(seed):
    """What a step may lead to, and its greatest mean, over all supports and extreme rates of every single draw."""
    rng = np.random.default_rng(seed)
    states, outcomes, ways = 4, int(rng.integers(1, 3)), int(rng.integers(1, 4))
    columns = {}
    for true in range(2):
        low = (rng.integers(0, 3, 3) * (rng.random(3) < 0.5)).tolist()
        high = [least + more for least, more in zip(low, (rng.integers(0, 4, 3)).tolist(), strict=True)]
        unit = int(rng.integers(sum(low), sum(high) + 1))
        if unit:
            columns[0, true] = [10 * end for end in low], [10 * min(end, unit) for end in high], 10 * unit
    motion = (rng.integers(0, 3, (2, outcomes)) + np.eye(2, outcomes, dtype=int)[[0, 0]]).tolist()
    drawn = [[0, 1], [1], [2, 0], [-1, 1]]  # columns of each row; 2 is in no region, -1 is not drawn
    rows, moving = rng.integers(-1, 4, ways).tolist(), rng.integers(0, 2, ways).tolist()
    following = rng.integers(0, states, (ways, 4 * outcomes)).tolist()
    subject = {
        "propositions": [], "observations": [sorted(each) for each in SEEN],
        "then": [[SEEN.index(seen | report) for report in REPORTS] for seen in SEEN],
        "told": [[[1, 0, 1, 2]]], "kinds": [[0] * len(each) for each in drawn],
        "bins": [[0] * len(each) for each in drawn], "columns": drawn, "row": rows, "following": following,
        "letters": [0] * states, "starts": [0], "owner": [0] * ways, "motion": motion, "moving": moving,
    }  # fmt: skip
    system = kernel.System(subject, columns)
    ends = [
        [columns.get((0, true), ([0] * 3, [10] * 3, 10)) for true in (drawn[row] if row >= 0 else []) if true != -1]
        for row in rows
    ]

    def leads(way, seen):
        at = SEEN.index(seen) * outcomes
        return list(zip(motion[moving[way]], following[way][at : at + outcomes], strict=True))

    def reached(way, k=0, seen=frozenset()):
        """Every set of states that a step can lead to, one for each choice of nature after each report."""
        if k == len(ends[way]):
            return {frozenset(state for chance, state in leads(way, seen) if chance)}
        found = set()
        for kept in supports(*ends[way][k]):
            behind = [reached(way, k + 1, seen | REPORTS[report]) for report in kept]
            found |= {frozenset().union(*each) for each in itertools.product(*behind)}
        return found

    def mean(value, way, k=0, seen=frozenset()):
        if k == len(ends[way]):
            ahead = leads(way, seen)
            return Fraction(sum(c * value[state] for c, state in ahead), sum(c for c, _ in ahead))
        behind = [mean(value, way, k + 1, seen | report) for report in REPORTS]
        rates = corners(*ends[way][k])
        return max(sum(map(operator.mul, each, behind)) / ends[way][k][2] for each in rates)

    for _ in range(3):
        allowed = {state for state in range(states) if rng.random() < 0.7}
        expected = {state for way in range(ways) for each in reached(way) if each <= allowed for state in each}
        assert system.moves(0, lambda _, after, allowed=allowed: after in allowed) == expected
        value = rng.integers(0, 50, states).tolist()
        for _ in range(9):  # the value of state 0 itself counts where a step leads back to it
            greatest = max(mean(value, way) for way in range(ways))
            assert system.exceeds(0, value) == (greatest > value[0])
            value[0] = math.floor(greatest) if rng.random() < 0.5 else math.ceil(greatest)
    assert system.exceeds(1, value)  # without a way on nothing is shown


def small_subject(owner=(0, 1, 2), **changes):
    """State 0 draws one of three reports, which lead to states 1, 1 and 2; these stay, and so do further ways."""
    return {
        "observations": [[], ["a"], ["b"]],
        "propositions": [],
        "letters": [0] * 3,
        "starts": [0],
        "owner": list(owner),
        "following": [[1, 1, 2], *([owner[way] or 2] * 3 for way in range(1, len(owner)))],
        "row": [0] + [-1] * (len(owner) - 1),
        "bins": [[4]],
        "columns": [[1]],
        "kinds": [[0]],
        "told": [[[1, 0, 1, 2]]],
        "then": [[0, 1, 2]] * 3,
        **changes,
    }


def small_system(region, owner=(0, 1, 2), **changes):
    return kernel.System(small_subject(owner, **changes), region)


class TestSystemsByHand:
    def test_a_column_that_the_region_does_not_have_is_any(self):
        system = small_system({})
        assert [system.exceeds(0, [value, 5, 9]) for value in (0, 5, 8, 9)] == [True, True, True, False]
        assert [system.exceeds(0, [value, 9, 5]) for value in (8, 9)] == [True, False]
        assert system.moves(0, lambda state, after: True) == {1, 2}
        assert system.moves(0, lambda state, after: after == 2) == {2}
        assert system.moves(0, lambda state, after: after == 0) == set()

    def test_of_a_column_that_it_has_all_mass_counts(self):
        # In tenths: at least 1, 2 and 3, at most 4, 5 and 6; so at most 6 of the third, and 7 of the others.
        system = small_system({(4, 1): ([1, 2, 3], [4, 5, 6], 10)})
        assert [system.exceeds(0, [value, 0, 10]) for value in (5, 6)] == [True, False]
        assert [system.exceeds(0, [value, 10, 0]) for value in (6, 7)] == [True, False]
        assert system.moves(0, lambda state, after: after == 2) == set()

    def test_where_one_report_needs_all_mass_the_others_have_none(self):
        system = small_system({(4, 1): ([0, 0, 10], [5, 5, 10], 10)})
        assert system.moves(0, lambda state, after: True) == {2}
        system = small_system({(4, 1): ([0, 0, 9], [5, 5, 10], 10)})
        assert system.moves(0, lambda state, after: True) == {1, 2}

    def test_what_comes_with_some_chance_anyway_may_not_be_left_out(self):
        for least in (0, 1):
            system = small_system({(4, 1): ([least, 0, 0], [10] * 3, 10)})
            assert system.moves(0, lambda state, after: after == 2) == (set() if least else {2})
            assert system.moves(0, lambda state, after: after == 1) == {1}

    def test_a_column_has_a_rate_for_each_report(self):
        for rates in (2, 4):
            with pytest.raises(ValueError, match=r"zip\(\) argument"):
                small_system({(4, 1): ([0] * rates, [10] * rates, 10)}).exceeds(0, [0] * 3)

    def test_the_greatest_of_all_ways_counts(self):
        system = small_system({(4, 1): ([10, 0, 0], [10, 0, 0], 10)}, owner=(0, 0, 1, 2))
        assert [system.exceeds(0, [value, 5, 9]) for value in (8, 9)] == [True, False]
        assert [system.exceeds(0, [value, 9, 5]) for value in (8, 9)] == [True, False]
        assert system.moves(0, lambda state, after: True) == {1, 2}
        assert system.moves(0, lambda state, after: after == 1) == {1}

    def test_after_each_report_the_world_draws_by_fixed_chances(self):
        # Of three times two successors the second comes twice as often: 9 at most, where the third report leads.
        ahead = [[0, 1, 1, 1, 0, 2], [1] * 6, [2] * 6]
        system = small_system({}, motion=[[1, 2]], moving=[0] * 3, following=ahead)
        assert [system.exceeds(0, [value, 0, 12]) for value in (11, 12)] == [True, False]
        assert [system.exceeds(0, [value, 9, 0]) for value in (8, 9)] == [True, False]
        assert system.moves(0, lambda state, after: after != 1) == {0, 2}
        with pytest.raises(kernel.Rejected, match="/subject/following/0: expected a list of length 6"):
            small_system({}, motion=[[1, 2]], moving=[0] * 3)

    def test_letters_hold_no_more_than_the_propositions(self):
        assert small_system({}, propositions=["p", "q"], letters=[0, 3, 1]).letters == [0, 3, 1]
        with pytest.raises(kernel.Rejected, match="/subject/letters/1: expected a whole number from 0 to 3"):
            small_system({}, propositions=["p", "q"], letters=[0, 4, 1])

    @pytest.mark.parametrize(
        ("changes", "place"),
        [({"then": [[0, 1, -2]] * 3}, "then/0/2"), ({"row": [0, -1, -2]}, "row/2"), ({"row": [-2, -1, -1]}, "row/0")],
    )
    def test_only_minus_one_says_that_there_is_none(self, changes, place):
        with pytest.raises(kernel.Rejected, match=f"/subject/{place}: expected a whole number from -1"):
            small_system({}, **changes)

    @pytest.mark.parametrize(
        "changes",
        [
            {"told": [[[1, 0, 1, 2], [1, 0, 1]]]},  # each way of telling has all reports
            {"bins": [[4], [4]]},
            {"bins": [[4, 4]]},
            {"columns": [[1, 1]]},
            {"kinds": [[0], [0]]},
            {"kinds": [[0, 0]]},
        ],
    )
    def test_tables_of_other_lengths_are_refused(self, changes):
        with pytest.raises(ValueError, match=r"zip\(\) argument"):
            small_system({}, **changes)

    def test_a_draw_from_no_column_is_none(self):
        columns = {(4, 1): ([1, 2, 3], [4, 5, 6], 10)}
        system = small_system(columns, bins=[[4, 4]], columns=[[-1, 1]], kinds=[[0, 0]])
        told = ((1,), (0,), (1,), (2,))
        assert system._draws == small_system(columns)._draws == [[(told, *columns[4, 1])], [], []]
        assert small_system({})._draws == [[(told, [0] * 3, [1] * 3, 1)], [], []]

    def test_a_state_without_a_way_is_worth_anything(self):
        system = small_system({}, owner=(0, 2))
        assert system.exceeds(1, [9, 9, 9])
        assert system.moves(1, lambda state, after: True) == set()


@pytest.mark.parametrize(
    ("values", "start_is_true", "message"),
    [
        ([6, 0, 10], False, None),
        ([6, 0, 11], False, "its value is less than what its best choice gives"),
        ([5, 0, 10], False, "its value is less than what its best choice gives"),
        ([7, 0, 11], False, None),
        ([6, 0, 9], False, "what it has to meet does not follow from what state 2 has to meet"),
        ([10, 0, 10], False, None),
        ([10, 0, 10], True, None),
        ([10, 0, 20], True, None),
        ([10, 0, 0], True, None),
        ([9, 0, 10], True, "the formula does not follow from what it has to meet"),
    ],
)
def test_what_is_worth_1_has_to_meet_nothing(values, start_is_true, message):
    # F q, which holds in state 1. State 2 never meets it, and has at most 6/10; it says it had nothing to meet, as
    # state 1 does, which may be said of what is worth 1.
    system = small_system({(4, 1): ([1, 2, 3], [4, 5, 6], 10)}, propositions=["q"], letters=[0, 1, 0])
    formula = [["&", [], 0, None], ["holds", [], 0, None], ["U", [0, 1], 0, None]]
    known = kernel.Obligations(
        {"subject": {"formula": formula, "propositions": ["q"]}, "side": "lower", "obligations": [[[]]]}
    )
    staying = [{"states": [state], "obligations": [0], "without": []} for state in (1, 2)]
    box = {"value": values, "unit": 10, "order": [1, 0, 0], "components": staying}
    proof = kernel.Proof(system, known, [0 if start_is_true else 1, 0, 0])
    if message is None:
        assert proof.values(box, "/box") == [Fraction(value, 10) for value in values]
        assert proof.values({**box, "order": [0] * 3}, "/box")  # who may be lost at once, or is, need not fall
    else:
        with pytest.raises(kernel.Rejected, match=message):
            proof.values(box, "/box")


@pytest.mark.parametrize(("side", "claims"), [("lower", [0.25, 0.5]), ("upper", [0.75, 0.5])])
def test_the_worst_box_decides(side, claims):
    # F q, or for the upper side G !q, which hold in state 1, or 2. At most 6/8 of the reports lead to 2, and where a
    # box has at most 4/8 of them, the other does not.
    formula = [["&", [], 0, None], ["|", [], 0, None], ["holds", [], 0, None], ["U", [0, 2], 0, None]]
    if side == "upper":
        formula[2:] = [["fails", [], 0, None], ["R", [1, 2], 0, None]]
    staying = [{"states": [state], "obligations": [0], "without": []} for state in (1, 2)]
    box = {"unit": 8, "order": [1, 0, 0], "components": staying}
    column = {"bin": 4, "true": 1, "unit": 8, "lower": [0, 2, 2], "upper": [4, 5, 6], "counts": None, "largest": None}
    content = {
        "schema": "verifier.certificate",
        "version": 5,
        "side": side,
        "region": {"groups": 3, "evidence": None, "columns": [column]},
        "subject": {**small_subject(propositions=["q"], letters=[0, 1, 0]), "formula": formula},
        "obligations": [[[]]],
        "obligation": [1, 0, 0],
    }
    for order in ([0, 1], [1, 0]):
        values = [[[4, 0, 8], [6, 0, 8]][k] for k in order]
        tree = {"bin": 4, "true": 1, "group": 2, "at": 4, "below": order.index(0), "above": order.index(1)}
        boxes = [{**box, "value": value} for value in values]
        cut = {**content, "tree": tree, "boxes": boxes, "claimed": claims[:1]}
        assert checked(cut) == ([Fraction(claims[0])], None)
        refusal = f"/claimed/0: claims the bound {claims[1]!r}, not {claims[0]!r}"
        assert checked({**cut, "claimed": claims[1:]}) == (None, refusal)
        assert checked({**cut, "boxes": boxes[::-1]})[1].endswith("its value is less than what its best choice gives")


@pytest.mark.parametrize(
    ("letters", "order", "message"),
    [
        ([0, 0], None, "left without any probability of falling"),
        ([0, 0], [1, 0], "left without any probability of falling"),
        ([0, 1], None, "left without any probability of falling"),
        ([0, 1], [0, 0], "left without any probability of falling"),
        ([0, 1], [1, 0], "left without any probability of falling"),
        ([0, 1], [0, 1], None),
    ],
)
def test_what_is_promised_again_and_again_may_not_be_put_off_forever(letters, order, message):
    # F q, promised by two states that lead to each other. It is kept if q holds in the second; the proof says that
    # who puts it off comes down from it.
    subject = {
        "propositions": ["q"], "observations": [[]], "then": [[0]], "told": [[[1, 0]]], "kinds": [], "bins": [],
        "columns": [], "row": [-1, -1], "following": [[1], [0]], "letters": letters, "starts": [0],
        "formula": [["&", [], 0, None], ["holds", [], 0, None], ["U", [0, 1], 0, None]],
    }  # fmt: skip
    table = [[[[2, 0, -1]]], [[]]]
    known = kernel.Obligations({"subject": subject, "side": "lower", "obligations": table})
    without = [] if order is None else [{"until": 2, "order": order, "components": []}]
    staying = {"states": [0, 1], "obligations": [0, 0], "without": without}
    box = {"value": [0, 0], "unit": 1, "order": [0, 0], "components": [staying]}
    proof = kernel.Proof(kernel.System(subject, {}), known, [0, 0])
    with contextlib.nullcontext() if message is None else pytest.raises(kernel.Rejected, match=message):
        assert proof.values(box, "/box") == [0, 0]


def test_what_is_met_in_a_component_implies_what_had_to_be_met():
    # A state that stays for ever, and reads q. Each way to meet "F p or G q" has to be one to meet F p: G q is none.
    subject = {
        "propositions": ["p", "q"], "observations": [[]], "then": [[0]], "told": [[[1, 0]]], "kinds": [], "bins": [],
        "columns": [], "row": [-1], "following": [[0]], "letters": [2], "starts": [0],
        "formula": [
            ["&", [], 0, None], ["|", [], 0, None], ["holds", [], 0, None], ["holds", [], 1, None],
            ["R", [1, 3], 0, None], ["U", [0, 2], 0, None],
        ],
    }  # fmt: skip
    eventually, always = [[5, 0, -1]], [[4, 0, -1]]
    for own, held, message in (
        ([eventually], [eventually, always], "state 0: who stays in the component may decide against"),
        ([eventually], [always], "may decide against"),
        ([eventually], [], "may decide against"),  # false
        ([eventually, always], [[*eventually, *always], always], None),  # G q is met, whoever puts F p off
        ([eventually], [eventually], "can be left without"),  # F p is put off
        ([[]], [always], None),
    ):
        known = kernel.Obligations({"subject": subject, "side": "lower", "obligations": [own, held]})
        proof = kernel.Proof(kernel.System(subject, {}), known, [0])
        component = {"states": [0], "obligations": [1], "without": []}
        with contextlib.nullcontext() if message is None else pytest.raises(kernel.Rejected, match=message):
            proof.stay(lambda state, after: True, component, "/box")


@pytest.mark.parametrize(
    ("kind", "low", "letter", "follows"),
    [("R", 0, 0, False), ("R", 0, 1, True), ("R", 1, 0, True), ("U", 0, 0, False), ("U", 1, 1, False)],
)
def test_a_window_that_is_open_asks_for_its_right_side_now(kind, low, letter, follows):
    # false R[low,3] q, or false U[low,3] q, with false R[0,2] q, or false U[0,2] q, to meet a step later.
    formula = [["&", [], 0, None], ["|", [], 0, None], ["holds", [], 0, None], [kind, [1, 2], low, 3]]
    subject = {"formula": formula, "propositions": ["q"]}
    known = kernel.Obligations({"subject": subject, "side": "lower", "obligations": [[[[3, 0, 2]]]]})
    assert known.leads(-1, letter, 0) is follows


def test_only_minus_one_stands_for_a_window_without_end():
    # With another number for it an obligation would be put off forever, and nobody would ask.
    formula = [["&", [], 0, None], ["holds", [], 0, None], ["U", [0, 1], 0, None]]
    certificate = {"subject": {"formula": formula, "propositions": ["q"]}, "side": "lower"}
    assert kernel.Obligations({**certificate, "obligations": [[[[2, 0, -1]]]]}).leads(0, 0, 0)
    for high in (-2, 2**53, None):
        with pytest.raises(kernel.Rejected, match=r"^/obligations/0/0/0/2: expected a whole number from -1"):
            kernel.Obligations({**certificate, "obligations": [[[[2, 0, high]]]]})


def test_whole_numbers_are_below_two_to_the_53():
    assert kernel.whole([[2**53 - 1, -1], []], "/x", (2, None), -1) == [[2**53 - 1, -1], []]
    for value in (2**53, -2, 1.0, True):
        with pytest.raises(kernel.Rejected, match=r"^/x/0/1: expected a whole number from -1 to 9007199254740991"):
            kernel.whole([[0, value]], "/x", (1, None), -1)


def test_values_have_a_unit_below_two_to_the_256():
    system = small_system({(4, 1): ([1, 2, 3], [4, 5, 6], 10)}, propositions=["q"], letters=[0, 1, 0])
    known = kernel.Obligations(
        {"subject": {"formula": [["&", [], 0, None]], "propositions": []}, "side": "lower", "obligations": []}
    )
    for unit, message in (
        (2**256, "expected a whole number from 1"),
        (2**256 - 1, "state 0"),
        (0, "expected a whole"),
    ):
        box = {"value": [0, 0, 0.5], "unit": unit, "order": [0] * 3, "components": []}
        with pytest.raises(kernel.Rejected, match=message):
            kernel.Proof(system, known, [0] * 3).values(box, "/box")


def test_a_report_that_never_came_has_a_count_of_0():
    column = {"bin": 0, "true": 1, "unit": kernel.BILLION, "lower": [0, 0], "upper": [kernel.BILLION] * 2}
    evidence = {"events": 1, "alpha": "1/20", "icc": None, "shift": 0}
    for counts, most in (
        ([[3, 0], [0, 2]], 3),
        ([[3, 0], [0, 2]], None),
        ([[0, 0]], 0),
        ([[0, 0]], None),
        ([], None),
    ):
        columns = [{**column, "counts": counts, "largest": most}]
        found = kernel.read_region({"groups": 2, "evidence": evidence, "columns": columns})
        assert found == {(0, 1): ([0, 0], [kernel.BILLION] * 2, kernel.BILLION)}
    for counts, most in (([[3, -1]], None), ([[3, 0], [1, 0]], 2), ([[1, 0], [2, 1]], 2), ([[1]], None)):
        columns = [{**column, "counts": counts, "largest": most}]
        with pytest.raises(kernel.Rejected):
            kernel.read_region({"groups": 2, "evidence": evidence, "columns": columns})


@pytest.mark.parametrize(("groups", "used"), [(1, 0), (2, 1), (3, 3), (4, 4)])
def test_each_column_takes_as_many_events_as_it_has_free_rates(groups, used):
    # Of one group the rate is 1, and of two the second's follows from the first's.
    free = {"unit": kernel.BILLION, "lower": [0] * groups, "upper": [kernel.BILLION] * groups, "largest": None}
    columns = [{"bin": 0, "true": k, **free, "counts": [[2] * groups] if k else None} for k in range(4)]
    for events in range(3 * used - 2, 3 * used + 2):
        evidence = {"events": max(events, 0), "alpha": "1/20", "icc": None, "shift": 0}
        fits = events >= 3 * used
        with contextlib.nullcontext() if fits or events < 0 else pytest.raises(kernel.Rejected, match="are used"):
            kernel.read_region({"groups": groups, "evidence": evidence, "columns": columns})


@pytest.mark.parametrize(("events", "end"), [(0, 25_000_000), (1, 25_000_000), (2, 12_500_000), (5, 5_000_000)])
def test_half_of_alpha_is_divided_among_the_events(events, end):
    # Of one report and no other, p <= alpha / (2 events) is what the chance p of it leaves.
    evidence = {"events": events, "alpha": "1/20", "icc": None, "shift": 0}
    one = {"bin": 0, "true": 0, "unit": kernel.BILLION, "counts": [[1]], "largest": None, "upper": [kernel.BILLION]}
    region = {"groups": 1, "evidence": evidence, "columns": [{**one, "lower": [end]}]}
    assert kernel.read_region(region) == {(0, 0): ([end], [kernel.BILLION], kernel.BILLION)}
    region["columns"][0]["lower"] = [end + 1]
    with pytest.raises(kernel.Rejected, match="do not follow from its counts"):
        kernel.read_region(region)


@pytest.mark.parametrize(
    ("column", "empty"),
    [
        (([0, 1], [0, 1], 1), False),
        (([1, 1], [1, 1], 1), True),
        (([0, 0], [0, 0], 1), True),
        (([2, 0], [1, 3], 3), True),  # only one rate has no place between its ends
        (([0, 2], [3, 1], 3), True),
        (([1, 0], [1, 3], 3), False),
    ],
)
def test_a_region_is_empty_if_one_of_its_columns_is(column, empty):
    some = ([0, 0], [3, 3], 3)
    for columns in ([column], [column, some], [some, column]):
        assert kernel.is_empty(dict(enumerate(columns))) is empty
        low, high, unit = column
        given = [
            {"bin": 0, "true": k, "unit": u, "lower": low, "upper": high, "counts": None, "largest": None}
            for k, (low, high, u) in enumerate(columns)
        ]
        if all(end <= unit for end in [*low, *high]):
            with pytest.raises(kernel.Rejected, match="no rates lie") if empty else contextlib.nullcontext():
                kernel.read_region({"groups": 2, "evidence": None, "columns": given})


def test_a_region_is_cut_at_any_rate_that_is_there():
    columns = {(0, 1): ([0, 1], [3, 4], 4)}
    for group, at, below, above in (
        (0, 0, [0, 4], [0, 1]),
        (0, 2, [2, 4], [2, 1]),
        (0, 9, [3, 4], [9, 1]),
        (1, 0, [3, 0], [0, 1]),
        (1, 3, [3, 3], [0, 3]),
    ):
        tree = {"bin": 0, "true": 1, "group": group, "at": at, "below": 0, "above": 1}
        assert list(kernel.leaves(tree, columns)) == [
            (0, {(0, 1): ([0, 1], below, 4)}),
            (1, {(0, 1): (above, [3, 4], 4)}),
        ]
    for wrong in ({"at": -1}, {"group": 2}, {"group": -1}, {"bin": 1}, {"true": 0}):
        with pytest.raises(kernel.Rejected, match=r"^/tree"):
            list(kernel.leaves({**tree, **wrong}, columns))


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ({"icc": "0"}, True),
        ({"icc": "1"}, True),
        ({"icc": "-1/9"}, False),
        ({"icc": "10/9"}, False),
        ({"alpha": "1"}, False),
        ({"alpha": "0"}, False),
        ({"alpha": "8/9"}, True),
        ({"events": 0}, True),  # where no column is measured
    ],
)
def test_what_lies_between_0_and_1(rule, fits):
    evidence = {"events": 1, "alpha": "1/20", "icc": None, "shift": 0, **rule}
    expected = contextlib.nullcontext() if fits else pytest.raises(kernel.Rejected, match="between 0 and 1")
    with expected:
        kernel.read_region({"groups": 2, "evidence": evidence, "columns": []})


@pytest.mark.parametrize("rule", [{"alpha": "1e-9"}, {"icc": "1e-9"}])
def test_a_share_is_a_fraction_and_no_power_of_ten_that_takes_forever(rule):
    # That of 1e-1000000000 has a billion digits.
    evidence = {"events": 1, "alpha": "1/20", "icc": None, "shift": 0, **rule}
    content = {"schema": "verifier.certificate", "version": 5, "side": "lower", "boxes": []}
    region = {"groups": 2, "evidence": evidence, "columns": []}
    with pytest.raises(kernel.Rejected, match="ValueError: invalid literal for int"):
        kernel.check({**content, "region": region, "subject": {}})


@pytest.mark.parametrize("number", [10**5000, -(10**5000), "9" * 5000, [[]]], ids=["large", "small", "text", "list"])
def test_numbers_of_five_thousand_digits_are_decided_or_refused_wherever_they_stand(number):
    def places(node, above=()):
        if not isinstance(node, dict | list):
            yield above
        else:
            for key, inner in node.items() if isinstance(node, dict) else enumerate(node):
                yield from places(inner, (*above, key))

    content = some_certificates(1)[0]
    every, refused = list(places(content)), 0
    for *above, last in every[::3] + [place for place in every if "formula" in place]:
        changed = json.loads(json.dumps(content))
        functools.reduce(operator.getitem, above, changed)[last] = number
        refused += checked(changed)[1] is not None
    assert refused > len(every) / 5


class TestFormulas:
    """What a certificate states is the formula that was asked."""

    @pytest.mark.parametrize("formula", FORMULAS)
    def test_the_nodes_of_a_certificate_mean_the_formula_on_every_short_lasso(self, formula):
        model = Model(((), ("a",)), [[0, 1], [1, 0]], {"p": {0}, "q": {1}}, {0: [(0, 1), (0, 1)]})
        subject = subject_of(model.objective(formula)).document
        names, node = (
            {f"p{k}": name for k, name in enumerate(subject["propositions"])},
            formula_of(subject["formula"]),
        )
        asked = parse_formula(formula)
        for word in lassos(np.random.default_rng(5), 150):
            stem, loop = word
            told = [[frozenset(k for k, name in names.items() if name in letter) for letter in part] for part in word]
            assert holds_on_lasso(node, *told) == holds_on_lasso(asked, stem, loop), word

    @given(st.integers(0, 10**6), st.sampled_from(FORMULAS), st.sampled_from(["lower", "upper"]))
    def test_what_remains_after_a_letter_holds_on_the_rest(self, seed, formula, side):
        """Progression: no word tells what remains from the formula (or its negation) on what is left."""
        rng = np.random.default_rng(seed)
        staying, known = shown_of(formula, side)
        for stem, loop in lassos(rng, 3):
            truth = holds_on_lasso(parse_formula(formula), stem, loop) == (side == "lower")
            terms, rest = staying._entire, (list(stem), list(loop))
            for letter in [*stem, *loop, *loop]:
                terms = staying._progress(terms, bits(letter))
                rest = (rest[0][1:], rest[1]) if rest[0] else ([], [*rest[1][1:], rest[1][0]])
                assert meets(known, terms, *rest) == truth

    @pytest.mark.every(3)
    @pytest.mark.parametrize("formula", FORMULAS)
    def test_what_leads_on_does(self, formula):
        """A word that meets the one obligation meets the other with the letter before it."""
        rng = np.random.default_rng(3)
        words, tally = lassos(rng, 12), [0, 0]
        for side in ("lower", "upper"):
            staying, known = shown_of(formula, side)
            terms = staying._entire
            told = [terms, *(terms := staying._progress(terms, letter) for letter in rng.integers(0, 4, 4).tolist())]
            atoms = sorted({atom for terms in told for term in terms for atom in term}, key=repr)
            for _ in range(4):
                some = rng.choice(len(atoms), size=(rng.integers(3), rng.integers(1, 4)))
                told.append([frozenset(atoms[k] for k in term) for term in some.tolist()])
            known.table = [list(terms) for terms in told]
            truth = [[meets(known, terms, *word) for word in words] for terms in known.table]
            for before, letter in itertools.product(range(len(told)), range(4)):
                longer = [meets(known, known.table[before], [LETTERS[letter], *stem], loop) for stem, loop in words]
                for after in range(len(told)):
                    follows = known.leads(before, letter, after)
                    tally[follows] += 1
                    assert not follows or all(map(operator.le, truth[after], longer))
                    prompt = [known.leads(before, letter, after, until) for until in range(len(known.nodes))]
                    assert follows or not any(prompt)
        assert min(tally) > 10


LETTERS = [frozenset(), frozenset("p"), frozenset("q"), frozenset("pq")]


def shown_of(formula, side):
    """What the program finds, and the kernel, about a formula of p and q alone, as bits 1 and 2 of letters."""
    model = Model(((), ("a",)), [[0, 1], [1, 0]], {"p": {0}, "q": {1}}, {0: [(0, 1), (0, 1)]})
    subject = subject_of(model.objective(formula)).document
    bit = {"p": 0, "q": 1}
    names = subject["propositions"]
    subject["formula"] = [
        [kind, operands, bit[names[low]] if kind in ("holds", "fails") else low, high]
        for kind, operands, low, high in subject["formula"]
    ]
    subject["propositions"] = ["p", "q"]
    nowhere = kernel.System(
        {**subject, "bins": [], "columns": [], "kinds": [], "row": [-1] * len(subject["row"]), "starts": []}, {}
    )
    known = kernel.Obligations({"subject": subject, "side": side, "obligations": []})
    return Staying(subject, nowhere, side), known


def bits(letter):
    return LETTERS.index(letter)


def lassos(rng, count):
    words = []
    for _ in range(count):
        stem, loop = rng.integers(0, 4), rng.integers(1, 4)
        words.append(tuple([LETTERS[k] for k in rng.integers(0, 4, size)] for size in (stem, loop)))
    return words


def meets(known, terms, stem, loop):
    """Whether a lasso of letters meets an obligation."""
    told = [[frozenset({"p": "p0", "q": "p1"}[name] for name in letter) for letter in part] for part in (stem, loop)]

    def holds(number, low, high):
        kind, operands, *_ = known.nodes[number]
        nodes = [(*node[:3], None if node[3] == -1 else node[3]) for node in known.nodes[:number]]
        return holds_on_lasso(formula_of([*nodes, (kind, operands, low, None if high == -1 else high)]), *told)

    return any(all(holds(*atom) for atom in term) for term in terms)


def test_windows_of_any_length_are_decided_or_refused_soon():
    """A run that reads p in every other step, and windows longer than anything could be unrolled."""
    subject = {
        "propositions": ["p"], "observations": [[]], "then": [[0]], "told": [[[1, 0]]], "kinds": [], "bins": [],
        "columns": [], "row": [-1, -1],
        "following": [[1], [0]], "letters": [1, 0], "starts": [0],
    }  # fmt: skip
    region = {"labels": [], "group": [], "groups": 1, "columns": [], "evidence": None}
    nodes = [["holds", [], 0, None], ["&", [], 0, None], ["|", [], 0, None], ["U", [1, 0], 0, 10**12]]
    for inner, wanted in (
        (["U", [1, 0], 0, 10**12], True),
        (["U", [1, 0], 2, 2], None),
        (["R", [2, 0], 0, 9], False),
    ):
        formula = [*nodes[:3], inner, ["R", [2, 3], 0, None], ["U", [1, 4], 0, None]]
        about, zero = {**subject, "formula": formula}, BoxArrays(1, [0.0, 0.0], [0, 0], [0, 0])
        for side, claim in (("lower", 1.0), ("upper", 0.0)):
            content = content_document(side, [claim], about, region, [zero], 0)
            if wanted is (side == "lower"):
                assert kernel.check(content) == [claim]
            else:
                with pytest.raises(kernel.Rejected, match=r"may decide against|has to meet"):
                    kernel.check(content)


@pytest.mark.parametrize("work", [0, 5, 30, 100])
def test_what_would_take_too_long_to_show_is_refused_and_no_error(work, monkeypatch):
    """Bounds are wider then, and certificates prove what they can."""
    monkeypatch.setattr("verifier.analysis.robust.staying._MOST_WORK", work)
    for seed in range(4):
        for content in certificates(2000 + seed, "(G F p) -> (G F q)", ended=0, states=4):
            with contextlib.suppress(kernel.Rejected):
                kernel.check(content)


class TestAlone:
    def run(self, *paths, program=kernel):
        command = [sys.executable, "-I", program.__file__, *map(str, paths)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_it_checks_a_folder_and_an_archive(self, tmp_path):
        content = certificates(3, "F p")
        folder = tmp_path / "bundle"
        (folder / "certificates").mkdir(parents=True)
        with zipfile.ZipFile(tmp_path / "bundle.zip", "w") as archive:
            for one in content:
                name = f"certificates/block001_requirement01_{one['side']}_01.json"
                (folder / name).write_text(json.dumps(one))
                archive.writestr(name, json.dumps(one))
        for path in (folder, tmp_path / "bundle.zip"):
            done = self.run(path)
            assert done.returncode == 0, done.stderr
            assert "block001_requirement01_lower_01.json: proven: P >= " in done.stdout
            assert done.stdout.splitlines()[-1].startswith("2 of 2 certificates proven; not decided")
        content[0]["boxes"][0]["value"][0] = -1.0
        (folder / f"certificates/block001_requirement01_{content[0]['side']}_01.json").write_text(
            json.dumps(content[0])
        )
        done = self.run(folder)
        assert done.returncode == 1
        assert "REJECTED: /boxes/0/value: expected a number of at least 0" in done.stdout
        assert done.stdout.splitlines()[-1].startswith("1 of 2 certificates proven; not decided")

    @pytest.mark.parametrize(
        ("text", "why"), [("[" * 10**5, "recursion"), ('{"side": ' + "9" * 5000 + "}", "digits"), ("{", "Expecting")]
    )
    def test_what_cannot_be_read_is_rejected(self, text, why, tmp_path):
        (tmp_path / "certificates").mkdir()
        (tmp_path / "certificates/one.json").write_text(text)
        done = self.run(tmp_path)
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.startswith("one.json: REJECTED: ")
        assert why in done.stdout

    @pytest.mark.parametrize("program", [kernel, step_kernel])
    def test_without_one_path_the_usage_is_told(self, program, tmp_path):
        for paths in ((), (tmp_path, tmp_path)):
            done = self.run(*paths, program=program)
            assert (done.returncode, done.stdout) == (2, "")
            assert re.fullmatch(r"no certificates are read: usage: python -I \w*kernel.py [A-Z]+\n", done.stderr)

    @pytest.mark.parametrize("program", [kernel, step_kernel])
    def test_what_is_no_bundle_is_refused_in_a_line(self, program, tmp_path, capsys):
        (tmp_path / "file").write_text("text")
        (tmp_path / "folder").mkdir()
        zipfile.ZipFile(tmp_path / "archive", "w").close()
        wrong = {"none": "No such file", "file": "not a zip", "folder": "No such file", "archive": "Can't listdir"}
        for name, why in wrong.items():
            assert program.main([str(tmp_path / name)]) == 2
            told = capsys.readouterr()
            assert (told.out, told.err.count("\n")) == ("", 1)
            assert told.err.startswith("no certificates are read: ")
            assert why in told.err

    def test_a_bundle_without_certificates_proves_nothing(self, tmp_path):
        (tmp_path / "certificates").mkdir()
        assert self.run(tmp_path).returncode == 1


def random_formula(rng, depth):
    if depth == 0 or rng.random() < 0.15:
        return str(rng.choice(["p", "q", "!p", "!q"]))
    kind = rng.integers(9)
    one = random_formula(rng, depth - 1)
    if kind < 4:
        return f"{('G', 'F', 'X', 'G F')[kind]} ({one})"
    return f"({one}) {('&', '|', 'U', 'R', '->')[kind - 4]} ({random_formula(rng, depth - 1)})"


def staying_claimed(rng, side):
    """A certificate that says: staying anywhere at all never decides against the bound."""
    states = int(rng.integers(2, 5))
    model = random_model(rng, states, int(rng.integers(2, 4)), zeros=0.7, width=0.6, ended=0)
    objective = model.objective(random_formula(rng, 3))
    if not len(objective.skeleton.columns_needed()):
        return None
    subject, region = subject_of(objective).document, region_document(model.region(objective))
    size, claim = len(subject["row"]), 1.0 if side == "lower" else 0.0
    nowhere = BoxArrays(1, [0.0] * size, [0] * size, [0] * size)
    return json.loads(
        json.dumps(content_document(side, [claim] * len(subject["starts"]), subject, region, [nowhere], 0))
    )


def lies_about_staying(seeds):
    """(proven, undecided) of what is true as far as all choices tried say; what is false must be refused."""
    tally = [0, 0]
    for seed in seeds:
        rng = np.random.default_rng(seed)
        for side in ("lower", "upper"):
            content = staying_claimed(rng, side)
            if content is None:
                continue
            bounds, refusal = checked(content)
            lost = greatest_lost(content, rng, 12)
            if bounds is not None:
                assert not any(lost), (seed, side)
                tally[0] += 1
            else:
                assert "may decide against" in refusal or "decided against" in refusal
                tally[1] += not any(lost)
    return tally


def test_no_lie_about_who_stays_is_proven_and_little_truth_is_missed():
    proven, undecided = lies_about_staying(range(12))
    assert proven > 4
    assert undecided < proven / 5


@pytest.mark.slow
def test_no_lie_about_who_stays_is_proven_in_thousands_of_systems():
    proven, undecided = lies_about_staying(range(1000, 4000))
    assert undecided < proven / 5


@pytest.mark.parametrize(
    ("node", "fits"),
    [
        (["U", [0, 1], 3, None], True), (["U", [0, 1], 3, 3], True), (["R", [0, 1], 0, 5], True),
        (["U", [0, 1], 3, 2], False), (["U", [0, 1], 0, 2.5], False), (["U", [0, 1], 0, 2.0], False),
        (["R", [0, 1], 0, True], False), (["R", [0, 1], 0, "2"], False), (["&", [0, 1], 0, 2], False),
        (["holds", [], 0, 0], False),
    ],
)  # fmt: skip
def test_windows_end_at_whole_numbers_not_before_they_begin(node, fits):
    formula = [["&", [], 0, None], ["holds", [], 0, None], node]
    certificate = {"subject": {"formula": formula, "propositions": ["q"]}, "side": "lower", "obligations": [[[]]]}
    with contextlib.nullcontext() if fits else pytest.raises(kernel.Rejected, match="no such window"):
        assert kernel.Obligations(certificate).nodes[2][2:] == (node[2], -1 if node[3] is None else node[3])
