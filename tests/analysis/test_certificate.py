"""Certificates: what they prove, that they survive JSON to the last bit, and that nothing false passes."""

import ast
import hashlib
import json
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from certificate_mutations import refitted
from hypothesis import given
from hypothesis import strategies as st
from interval_models import RECURRENT, SIMPLE, Model, random_model, random_region, region_of
from recall_chains import binary, product_of_recalls
from shorthands import confidence_region
from small_objectives import channel_of, objective_of, random_objective

from verifier.analysis import kernel
from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.robust import certificate as order
from verifier.analysis.robust.certificate import digest_of
from verifier.analysis.robust.graph import end_components
from verifier.analysis.robust.policy import make_nodes
from verifier.analysis.robust.solutions import Effort, robust_bounds
from verifier.base.errors import EngineError

TWO = ((), ("a",))
PROVEN = Effort(certificates=("lower", "upper"))


def f(text):
    return Fraction(text)


def checked(certificate):
    """What the kernel says about the document as it is written and read."""
    return kernel.check(json.loads(json.dumps(certificate)))


def certificates_of(model, formula):
    objective = model.objective(formula)
    found = robust_bounds(objective, model.region(objective), effort=PROVEN)
    return found, found.certificates


def waiting():
    """A car waits as long as it sees a (which it may do forever), and reaches the goal with 3/5 to 4/5 after that."""
    return Model(
        TWO,
        [[1, 0], [2, 3], [2] * 2, [3] * 2],
        {"g": {3}},
        {0: [(0, 1), (0, 1)], 1: [(f("0.2"), f("0.4")), (f("0.6"), f("0.8"))]},
    )


def from_counts():
    """P = r1 r2 with 196 and 194 of 200 items."""
    objective, measured = product_of_recalls([0, 1]), binary((196, 200), (194, 200))
    return robust_bounds(objective, confidence_region(objective.skeleton, measured), effort=PROVEN)


def shared_matrix():
    """P = 2 r (1 - r) for r in [2/5, 3/5], cut into boxes."""
    channel = channel_of(TWO, [[0]], [[1]], (frozenset(), frozenset("a")))
    following = [[1, 2], [3, 4], [4, 3], [3] * 2, [4] * 2]
    objective = objective_of(channel, following, [0] * 5, {"g": {4}}, "F g", ended=(3, 4))
    region = region_of(objective, {(0, 1): [(f("0.4"), f("0.6")), (f("0.4"), f("0.6"))]})
    return robust_bounds(objective, region, "shared_matrix", replace(PROVEN, boxes=9, gap=0))


class TestWhatIsProven:
    def test_the_claims_follow_in_exact_arithmetic(self):
        found, (lower, upper) = certificates_of(waiting(), "G !g")
        assert found.lower[0] == pytest.approx(0.2, abs=1e-9)
        (least,) = checked(lower)
        assert 0 <= least - Fraction(float(found.lower[0])) <= Fraction(1, 2**52)
        assert Fraction(1, 5) - Fraction(1, 10**9) < least < Fraction(1, 5)
        assert checked(upper) == [1]

    def test_who_stays_among_several_states_is_decided(self):
        # Two states that lead to each other, each with a chance of at least 1/2 to the one where q holds.
        model = Model(
            TWO, [[1, 0], [0, 1]], {"q": {0}}, {0: [(f("0.5"), 1), (0, f("0.5"))], 1: [(f("0.5"), 1), (0, f("0.5"))]}
        )
        _, (lower, upper) = certificates_of(model, "G F q")
        assert any(len(component["states"]) > 1 for component in lower["boxes"][0]["components"])
        assert checked(lower) == checked(upper) == [1]

    def test_the_region_follows_from_the_counts(self):
        found = from_counts()
        for certificate in found.certificates:
            checked(certificate)
        # Two events at 1/20: the least recalls have tails of 1/80 each.
        lower, _ = found.certificates
        assert (lower["region"]["evidence"]["events"], lower["region"]["evidence"]["alpha"]) == (2, "1/20")

    def test_boxes_cover_the_region(self):
        found = shared_matrix()
        assert len(found.certificates) == 2
        for certificate in found.certificates:
            assert isinstance(certificate["tree"], dict)
            assert len(certificate["boxes"]) > 4
            checked(certificate)

    @given(
        st.integers(0, 10**6), st.sampled_from([*SIMPLE, *RECURRENT]), st.sampled_from(["per_state", "shared_matrix"])
    )
    def test_all_bounds_of_random_models_are_proven(self, seed, formula, semantics):
        rng = np.random.default_rng(seed)
        objective = random_objective(rng, formula, states=6, draws=1 + seed % 2)
        region = random_region(rng, objective, 2, 3)
        found = robust_bounds(objective, region, semantics, replace(PROVEN, boxes=4))
        proven = {"lower": np.full(2, np.nan), "upper": np.full(2, np.nan)}
        for certificate in found.certificates:
            for start, bound in enumerate(checked(certificate)):
                if bound is not None:
                    proven[certificate["side"]][start] = float(bound)
        assert proven["lower"] == pytest.approx(found.lower, abs=1e-15)
        assert proven["upper"] == pytest.approx(found.upper, abs=1e-15)

    def test_models_with_vanishing_moves_are_proven(self, thorough):
        for seed in range(10 if thorough else 4):
            model = random_model(np.random.default_rng(seed), states=6, zeros=0.6)
            for formula in ("F p", "G F p", "p U q"):
                for certificate in certificates_of(model, formula)[1]:
                    checked(certificate)


def test_the_kernel_is_one_file_that_imports_the_standard_library_only():
    text = Path(kernel.__file__).read_text()
    imported = {node.module for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
    plain = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import))
    imported |= {name.name for node in plain for name in node.names}
    assert imported <= {
        "collections.abc", "decimal", "fractions", "functools", "json", "math", "pathlib", "sys", "typing", "zipfile"
    }  # fmt: skip
    assert imported <= {*sys.stdlib_module_names, "collections.abc"}


def everywhere():
    """A "proof" of P >= 1 for F (G !w), in a circle 0 -> 1 or 2 -> 0 with w in state 2: P = 0."""
    subject = {
        "formula": [
            ["fails", [], 0, None], ["|", [], 0, None], ["R", [1, 0], 0, None],
            ["&", [], 0, None], ["U", [3, 2], 0, None],
        ],
        "propositions": ["w"], "observations": [[], ["a"]], "then": [[0, 1], [1, 1]], "told": [[[1, 0, 1]]],
        "kinds": [[0]], "bins": [[0]], "columns": [[1]], "row": [0, -1, -1], "following": [[1, 2], [0, 0], [0, 0]],
        "letters": [0, 0, 1], "starts": [0],
    }  # fmt: skip
    ends = {"lower": [400_000_000] * 2, "upper": [600_000_000] * 2}
    column = {"bin": 0, "true": 1, "unit": UNIT, **ends, "counts": None, "largest": None}
    region = {"labels": [[], ["a"]], "group": [0, 1], "groups": 2, "columns": [column], "evidence": None}
    box = {"unit": 1, "value": [0.0] * 3, "order": [5, 3, 9], "components": [{"states": [0, 1]}]}
    return {"side": "lower", "claimed": [1.0], "subject": subject, "region": region, "boxes": [box], "tree": 0}


def changed(content, *path):
    """A copy in which the last of `path` stands where the others lead."""
    copy = json.loads(json.dumps(content))
    *above, key, value = path
    spot = copy
    for step in above:
        spot = spot[step]
    spot[key] = value
    return copy


def refused(certificate, message):
    """Whatever obligations the program finds for it."""
    with pytest.raises(kernel.Rejected, match=message):
        kernel.check(refitted(certificate))


def test_a_state_that_is_left_downwards_counts_once():
    # Nature can stay in 0 and 1. State 0 is left for 5 alone, which leads down to 6 and 7; 1 is left for 2, and by 3
    # for 4, which may fall to 5. So 0 falls at once, and again when 5 has its place, and 1 later.
    ahead = [[1, 5], [0, 2], [3, 3], [4, 4], [0, 5], [6, 6], [5, 7], [7, 7]]
    some, any_ = [(0, Fraction(9, 10)), (Fraction(1, 10), 1)], [(0, 1), (0, 1)]
    model = Model(TWO, ahead, {"g": {7}}, {k: some if k in (4, 6) else any_ for k in range(7)})
    objective, step = model.stepped("F g")
    nodes = make_nodes(step, end_components(step))
    state, found = objective.product.state.tolist(), order.decision_order(step, nodes).tolist()
    placed = [found[state.index(number)] for number in range(7)]
    assert placed[0] == placed[1] > placed[2] > placed[3] > placed[4] > placed[5] > placed[6]


def test_what_is_no_number_has_no_digest():
    assert digest_of({"b": [1.5], "a": None}) == hashlib.sha256(b'{"a":null,"b":[1.5]}').hexdigest()
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError, match="not JSON compliant"):
            digest_of({"a": wrong})


class TestNothingFalsePasses:
    """Every kind of number, changed in the direction that would prove more, or to what cannot be."""

    @pytest.fixture
    def certificate(self):
        """States are numbered as a search finds them: 0, 1 and 2, then 3, in which the formula is already false."""
        return certificates_of(waiting(), "G !g")[1][0]

    def test_the_untouched_one_passes(self, certificate):
        assert checked(certificate) == checked(refitted(certificate))

    @pytest.mark.parametrize("state", [0, 1])
    def test_smaller_values(self, certificate, state):
        less = np.nextafter(certificate["boxes"][0]["value"][state], 0) - 1e-12
        refused(changed(certificate, "boxes", 0, "value", state, less), "less than what its best")

    def test_values_that_are_none(self, certificate):
        for wrong in (np.nan, np.inf, -0.5):
            certificate["boxes"][0]["value"][2] = wrong
            with pytest.raises(kernel.Rejected, match="expected a number of at least 0"):
                kernel.check(certificate)

    def test_a_target_of_small_value(self, certificate):
        refused(changed(certificate, "boxes", 0, "value", 3, 0.5), "without any probability")

    def test_false_that_is_no_target(self, certificate):
        components = [*certificate["boxes"][0]["components"], {"states": [3]}]
        wrong = changed(changed(certificate, "boxes", 0, "components", components), "boxes", 0, "value", 3, 0.0)
        refused(wrong, "state 3: who stays in the component may decide against")

    def test_claims_beyond_the_proof(self, certificate):
        for more in (1e-9, -1e-9):
            refused(changed(certificate, "claimed", 0, certificate["claimed"][0] + more), "claims the bound")

    def test_a_waiting_state_that_is_no_component(self, certificate):
        components = [part for part in certificate["boxes"][0]["components"] if part["states"] != [0]]
        refused(changed(certificate, "boxes", 0, "components", components), "without any probability")

    def test_an_order_that_rises_within_a_component(self):
        """w holds in state 4, which every run visits infinitely often: P = 0, and the lower bound would be 1."""
        wrong = everywhere()
        refused(wrong, "state 1: it can be left without any probability")
        rising = changed(wrong, "boxes", 0, "order", [5, 5, 9])
        refused(rising, "state 0: it can be left without any probability")
        together = changed(wrong, "boxes", 0, "components", [{"states": [0, 1, 2]}])
        refused(together, "state 1: it can be left without any")
        both = changed(together, "boxes", 0, "order", [0, 0, 0])
        refused(both, "state 0: who stays in the component may decide against the bound")

    def test_targets_have_to_meet_nothing_and_claims_may_be_rounded_by_one_unit(self):
        content = refitted(everywhere())  # all states become targets, and what they "meet" says nothing
        content |= {"obligations": [[[]]], "obligation": [0, 0, 0]}
        content["boxes"][0] |= {"value": [1.0] * 3, "order": [0] * 3, "components": []}
        unit = 2.0**-52
        for side, exact, outwards in (("lower", 0, -unit), ("upper", 1, unit)):
            for claim, fits in ((exact, True), (exact + outwards, True), (exact + 2 * outwards, False)):
                given = {**content, "side": side, "claimed": [float(claim)]}
                if fits:
                    assert kernel.check(given) == [exact]
                else:
                    with pytest.raises(kernel.Rejected, match="claims the bound"):
                        kernel.check(given)
            inwards = {**content, "side": side, "claimed": [exact - outwards / 2]}
            with pytest.raises(kernel.Rejected, match="claims the bound"):
                kernel.check(inwards)

    def test_an_order_in_which_nothing_falls(self, certificate):
        refused(changed(certificate, "boxes", 0, "order", 0, -9), "without any probability")

    def test_a_component_whose_lasso_decides_against_the_bound(self):
        # Upper side of G !g: staying in state 0 makes it hold, so it must be a target.
        _, (_, upper) = certificates_of(waiting(), "F g")
        checked(upper)
        inside = {state for part in upper["boxes"][0]["components"] for state in part["states"]}
        letters = [1 if k in inside else letter for k, letter in enumerate(upper["subject"]["letters"])]
        refused(changed(upper, "subject", "letters", letters), "may decide against the bound")  # as if g held there

    def test_another_formula(self, certificate):
        eventually = [["holds", [], 0, None], ["&", [], 0, None], ["U", [1, 0], 0, None]]
        refused(changed(certificate, "subject", "formula", eventually), "may decide against the bound")

    def test_other_moves(self, certificate):
        refused(changed(certificate, "subject", "following", 1, 0, 3), "less than what its best")
        refused(changed(certificate, "subject", "following", 1, 0, 99), "expected a whole number")

    def test_other_columns_and_rows(self, certificate):
        refused(changed(certificate, "subject", "columns", 1, 0, 7), "less than what its best")
        # Drawn from a free column instead.
        row = certificate["subject"]["row"][0]
        refused(changed(certificate, "subject", "row", 1, row), "less than what its best")

    def test_values_of_a_smaller_region(self, certificate):
        wider = [{**column, "lower": [0, 0], "upper": [UNIT] * 2} for column in certificate["region"]["columns"]]
        refused(changed(certificate, "region", "columns", wider), "less than what its best")

    def test_regions_that_the_counts_do_not_give(self):
        for certificate in from_counts().certificates:
            for k, column in enumerate(certificate["region"]["columns"]):
                for name, more in (("lower", 3), ("upper", -3)):
                    for group, end in enumerate(column[name]):
                        if 0 < end < UNIT:
                            tight = changed(certificate, "region", "columns", k, name, group, end + more)
                            refused(tight, "do not follow from")

    def test_other_counts_alpha_or_events(self):
        certificate = from_counts().certificates[0]
        for k, column in enumerate(certificate["region"]["columns"]):
            for group, count in enumerate(column["counts"][0]):
                fewer = changed(certificate, "region", "columns", k, "counts", 0, group, count - 1)
                refused(fewer, "do not follow")
        for name, wrong, why in (
            ("alpha", "1/40", "do not follow"), ("events", 3, "do not follow"), ("events", 1, "2 are used")
        ):  # fmt: skip
            refused(changed(certificate, "region", "evidence", name, wrong), why)

    def test_a_column_that_is_left_out_may_be_anything(self):
        certificate = from_counts().certificates[0]
        columns = certificate["region"]["columns"][1:]
        refused(changed(certificate, "region", "columns", columns), "less than what its best")

    def test_parts_that_are_left_out(self):
        certificate = shared_matrix().certificates[0]
        refused(changed(certificate, "tree", "below", None), "left out")
        above = certificate["tree"]["above"]
        refused(changed(certificate, "tree", above), "leaves are not the boxes|left out|less than")
        refused(changed(certificate, "tree", 0), "leaves are not the boxes")
        refused(changed(certificate, "tree", "bin", 9), "not there")
        refused(changed(certificate, "tree", "at", UNIT), "left out|less than")

    def test_boxes_in_the_wrong_place(self):
        certificate = shared_matrix().certificates[0]
        refused(
            changed(certificate, "boxes", certificate["boxes"][::-1]),
            "less than what its best|without any probability",
        )


class TestDocument:
    def test_it_survives_json_to_the_last_bit(self):
        for content in (*from_counts().certificates, *shared_matrix().certificates):
            copy = json.loads(json.dumps(content))
            assert copy == content
            assert copy["sha256"] == digest_of({key: value for key, value in copy.items() if key != "sha256"})
        with pytest.raises(ValueError, match="not JSON compliant"):
            digest_of({"value": np.nan})

    def test_its_digest_is_that_of_its_names_in_order_without_spaces(self):
        text = '{"a":[1.5,null],"b":2}'
        assert digest_of({"b": 2, "a": [1.5, None]}) == hashlib.sha256(text.encode()).hexdigest()

    @pytest.mark.parametrize(
        ("path", "value", "message"),
        [
            (("schema",), "something", "expected verifier.certificate"),
            (("version",), 1, "expected verifier.certificate"),
            (("side",), "left", "lower or upper"),
            (("claimed",), ["0.5"], "claims the bound"),
            (("claimed",), [None, None], "not a certificate"),
            (("claimed",), 0.5, "not a certificate"),
            (("boxes",), {}, "leaves are not the boxes"),
            (("boxes", 0), [], "not a certificate"),
            (("boxes", 0, "value"), [1, 2], "expected a number"),
            (("boxes", 0, "value"), None, "not a certificate"),
            (("boxes", 0, "order"), [1.5], "/boxes/0/order"),
            (("boxes", 0, "order", 0), 2**60, "/boxes/0/order/0: expected a whole number"),
            (("boxes", 0, "order", 0), True, "/boxes/0/order/0: expected a whole number"),
            (("boxes", 0, "unit"), 0, "/boxes/0/unit: expected a whole number"),
            (("boxes", 0, "components", 0, "states"), [-3], "without any probability"),
            (("boxes", 0, "components", 0, "obligations"), [99], "/boxes/0/components/0: expected a whole number"),
            (("boxes", 0, "components", 0, "obligations"), [], "/boxes/0/components: expected a list"),
            (("obligation", 0), 99, "/obligation/0: expected a whole number"),
            (("obligations", 0), [[[0, 0]]], "/obligations/0/0/0: expected a list"),
            (("obligations", 0), [[[0, 0, float("inf")]]], "/obligations/0/0/0/2: expected a whole number"),
            (("subject", "following"), [[1, 2], [3]], "/subject/following: expected a list"),
            (("subject", "following"), 7, "/subject/following: expected a list"),
            (("subject", "following", 0, 0), -1, "/subject/following/0/0: expected a whole number"),
            (("subject", "row", 0), 99, "not a certificate"),
            (("subject", "motion"), [[1], [0]], "/subject/motion: all 0"),
            (("subject", "starts", 0), -1, "/subject/starts/0: expected a whole number"),
            (("subject", "letters", 0), 8, "/subject/letters/0: expected a whole number"),
            (("subject", "bins", 0), [], "not a certificate"),
            (("subject", "observations"), [["a"]], "/subject/following/0: expected a list"),
            (("subject", "observations"), 3, "not a certificate"),
            (("subject", "then"), [[0, 1]], "/subject/then: expected a list"),
            (("subject", "then", 0, 1), 9, "/subject/then/0/1: expected a whole number"),
            (("subject", "then", 0, 1), -1, "/subject/then: a report is missing"),
            (("subject", "told"), [], "not a certificate"),
            (("subject", "told", 0), [[1, 0, 1], [1, 0]], "not a certificate"),
            (("subject", "told", 0), [[0, 0, 1]], "/subject/told: all 0"),
            (("subject", "told", 0), [[1, 0, 7]], "not a certificate"),
            (("subject", "told", 0), [[1, 0, -1]], "/subject/told/0/2: expected a whole number"),
            (("subject", "told", 0), [[1, 0]], "not a certificate"),
            (("subject", "kinds", 0), [5], "/subject/kinds/0/0: expected a whole number"),
            (("subject", "kinds", 0), [], "not a certificate"),
            (("subject", "formula"), None, "not a certificate"),
            (("subject", "formula"), [], "not a certificate"),
            (("subject", "formula"), [["U", [0, 0], 0, None]], "expected a whole number"),
            (("subject", "formula"), [["W", [], 0, None]], "/subject/formula/0: no such kind of node"),
            (("subject", "formula"), [["holds", [], 1, None]], "expected a whole number"),
            (("subject", "formula"), [["&", [], 0, None], ["U", [0, 0], 3, 2]], "no such window"),
            (("region", "groups"), 3, "2 events, and 6 are used"),
            (("region", "groups"), None, "not a certificate"),
            (("region", "evidence"), None, "not a certificate"),
            (("region", "columns", 0, "unit"), 10**9 + 1, "do not follow from"),
            (("region", "columns", 0, "lower"), [5], "expected a list"),
            (("region", "columns", 0, "lower", 1), -1, "expected a whole number"),
            (("region", "columns", 0, "upper", 1), 10**9 + 1, "expected a whole number"),
            (("region", "columns", 0, "largest"), float("inf"), "expected a whole number"),
            (("region", "columns", 0, "largest"), 3, "more than the largest drive"),
            (("region", "evidence", "alpha"), "1/0", "not a certificate"),
            (("region", "evidence", "alpha"), "3/2", "between 0 and 1"),
            (("region", "evidence", "alpha"), "much", "not a certificate"),
            (("region", "evidence", "icc"), "3/2", "between 0 and 1"),
            (("region", "evidence", "icc"), "nan", "not a certificate"),
            (("region", "columns", 0, "counts", 0, 1), -5, "expected a whole number"),
            (("tree",), {"bin": 0}, "not a certificate"),
            (("tree",), {"bin": 0, "group": 5, "true": 1, "at": 5, "below": 0, "above": None}, "not there"),
        ],
    )
    def test_what_is_no_certificate_is_refused(self, path, value, message):
        broken = from_counts().certificates[0]
        spot = broken
        for key in path[:-1]:
            spot = spot[key]
        spot[path[-1]] = value
        with pytest.raises(kernel.Rejected, match=message):
            kernel.check(broken)

    def test_what_is_no_object_or_lacks_a_key_is_refused(self):
        content = from_counts().certificates[0]
        for broken in (None, [], "text", {}, *({k: v for k, v in content.items() if k != key} for key in content)):
            if broken and "sha256" not in broken and "tree" in broken:
                continue  # whether the hash fits is the business of who reads files
            with pytest.raises(kernel.Rejected):
                kernel.check(broken)

    def test_trees_deeper_than_the_interpreter_follows_are_refused(self):
        broken = shared_matrix().certificates[0]
        for _ in range(5000):
            cut = {"bin": 0, "group": 0, "true": 1, "at": 5, "below": broken["tree"], "above": None}
            broken["tree"] = cut
        with pytest.raises(kernel.Rejected):
            kernel.check(broken)


def test_within_a_part_every_step_comes_nearer_to_where_it_is_left():
    # 0 leads to 1, 1 to 2, and 2 back to 0 but for 1/10 at least to the end, 3.
    sure = [(1, 1), (0, 0)]
    model = Model(
        TWO, [[1, 1], [2, 2], [0, 3], [3, 3]], {"g": {3}}, {0: sure, 1: sure, 2: [(0, f("0.9")), (f("0.1"), 1)]}
    )
    objective, step = model.stepped("F (g & X g)")
    numbers = order.decision_order(step, make_nodes(step, end_components(step)))
    place = {int(s): int(r) for s, r in zip(objective.product.state, numbers, strict=True) if s in (0, 1, 2)}
    assert place[0] > place[1] > place[2] >= 0


def test_what_can_be_stayed_in_has_to_be_a_component():
    # 0 may stay for ever, 1 leads on at once: only 0 has no place if it is said to be in no component.
    may_stay, sure = [(0, 1), (0, 1)], [(1, 1), (0, 0)]
    model = Model(TWO, [[0, 2], [2, 2], [2, 2]], {"g": {2}}, {0: may_stay, 1: sure}, (0, 1))
    objective, step = model.stepped("F g")
    component = end_components(step)
    assert component[objective.product.start].min() == -1 < component[objective.product.start[0]]
    component[objective.product.start[0]] = -1
    with pytest.raises(EngineError, match="1 product states can be stayed in forever and are in no component"):
        order.decision_order(step, make_nodes(step, component))


@pytest.mark.parametrize("seed", range(20))
def test_parts_are_numbered_downwards_whatever_the_numbers_of_components(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n, sources, targets = 7, *rng.integers(0, 7, (2, 9))
    plain = order.components(n, sources, targets)
    names = np.arange(n) if seed < 5 else np.arange(n)[::-1] if seed < 10 else rng.permutation(n)
    monkeypatch.setattr(order, "components", lambda *graph: np.unique(names[plain], return_inverse=True)[1])
    part = order._parts(n, sources, targets)
    assert np.all(part[sources] >= part[targets])
    assert np.array_equal(part[:, None] == part, plain[:, None] == plain)
