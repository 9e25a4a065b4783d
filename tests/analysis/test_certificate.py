"""Certificates: what they prove, that they survive JSON to the last bit, and that nothing false passes."""

import ast
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interval_models import RECURRENT, SIMPLE, Model, random_model, random_region, region_of
from recall_chains import binary, product_of_recalls
from small_objectives import channel_of, objective_of, random_objective

from verifier.analysis import certificate_check
from verifier.analysis.certificate import TARGET, Split
from verifier.analysis.certificate_check import check_certificate
from verifier.analysis.certificate_document import _digest, document, from_document
from verifier.analysis.region import UNIT, confidence_region
from verifier.analysis.robust import Effort, guaranteed_bounds
from verifier.errors import InputError

TWO = ((), ("a",))


def f(text):
    return Fraction(text)


def certificates_of(model, formula):
    objective = model.objective(formula)
    found = guaranteed_bounds(objective, model.region(objective))
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
    return guaranteed_bounds(objective, confidence_region(objective.skeleton, measured))


def one_matrix():
    """P = 2 r (1 - r) for r in [2/5, 3/5], cut into boxes."""
    channel = channel_of(TWO, [[0]], [[1]], (frozenset(), frozenset("a")))
    following = [[1, 2], [3, 4], [4, 3], [3] * 2, [4] * 2]
    objective = objective_of(channel, following, [0] * 5, {"g": {4}}, "F g", ended=(3, 4))
    region = region_of(objective, {(0, 1): [(f("0.4"), f("0.6")), (f("0.4"), f("0.6"))]})
    return guaranteed_bounds(objective, region, "one_matrix", Effort(boxes=9, gap=0))


class TestWhatIsProven:
    def test_the_claims_follow_in_exact_arithmetic(self):
        found, (lower, upper) = certificates_of(waiting(), "G !g")
        assert found.lower[0] == pytest.approx(0.2, abs=1e-9)
        (least,) = check_certificate(lower).bounds
        assert 0 <= least - Fraction(float(found.lower[0])) <= Fraction(1, 2**52)
        assert Fraction(1, 5) - Fraction(1, 10**9) < least < Fraction(1, 5)
        assert check_certificate(upper).bounds == (1,)

    def test_lassos_are_looked_up_and_other_components_are_listed(self):
        # Lower side of G !g: staying in state 0 and in state 2 meets it, state 3 is the obligation false.
        _, (lower, _) = certificates_of(waiting(), "G !g")
        checked = check_certificate(lower)
        assert checked.lassos == 2
        assert len(checked.claims) == 2
        assert "assumed" in checked.claims[1]
        # Two states that lead to each other: whether a run that stays there meets the formula is claimed.
        model = Model(
            TWO, [[1, 0], [0, 1]], {"q": {0}}, {0: [(f("0.5"), 1), (0, f("0.5"))], 1: [(f("0.5"), 1), (0, f("0.5"))]}
        )
        _, (lower, upper) = certificates_of(model, "G F q")
        assert any("stays forever" in each and "meets" in each for each in check_certificate(lower).claims)
        assert check_certificate(upper).bounds == (1,)

    def test_the_region_follows_from_the_counts(self):
        found = from_counts()
        for certificate in found.certificates:
            checked = check_certificate(certificate)
            assert len(checked.claims) == 1
        # Two events at 1/20: the least recalls have tails of 1/80 each.
        lower, _ = found.certificates
        assert lower.region.evidence.events == 2
        assert lower.region.evidence.alpha == Fraction(1, 20)

    def test_boxes_cover_the_region(self):
        found = one_matrix()
        assert len(found.certificates) == 2
        for certificate in found.certificates:
            assert isinstance(certificate.tree, Split)
            assert len(certificate.boxes) > 4
            check_certificate(certificate)

    @settings(max_examples=30)
    @given(
        st.integers(0, 10**6), st.sampled_from([*SIMPLE, *RECURRENT]), st.sampled_from(["every_state", "one_matrix"])
    )
    def test_all_bounds_of_random_models_are_proven(self, seed, formula, semantics):
        rng = np.random.default_rng(seed)
        objective = random_objective(rng, formula, states=6, draws=1 + seed % 2)
        region = random_region(rng, objective, 2, 3)
        found = guaranteed_bounds(objective, region, semantics, Effort(boxes=4))
        proven = {"lower": np.full(2, np.nan), "upper": np.full(2, np.nan)}
        for certificate in found.certificates:
            copy = from_document(json.loads(json.dumps(document(certificate))))
            for start, bound in enumerate(check_certificate(copy).bounds):
                if bound is not None:
                    proven[certificate.side][start] = float(bound)
        assert proven["lower"] == pytest.approx(found.lower, abs=1e-15)
        assert proven["upper"] == pytest.approx(found.upper, abs=1e-15)

    def test_models_with_vanishing_moves_are_proven(self):
        for seed in range(25):
            model = random_model(np.random.default_rng(seed), states=6, zeros=0.6)
            for formula in ("F p", "G F p", "p U q"):
                for certificate in certificates_of(model, formula)[1]:
                    check_certificate(certificate)


def test_the_checker_shares_no_code_with_the_solver():
    tree = ast.parse(Path(certificate_check.__file__).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    own = {each for each in imported if each.startswith("verifier.")}
    assert own == {
        "verifier.analysis.binomial",
        "verifier.analysis.certificate",  # the arrays
        "verifier.errors",
        "verifier.ltl",  # the meaning of formulas on lassos
    }


def changed(array, place, value):
    copy = array.copy()
    copy[place] = value
    return copy


def refused(certificate, message):
    with pytest.raises(InputError, match=message):
        check_certificate(certificate)


class TestNothingFalsePasses:
    """Every kind of number, changed in the direction that would prove more, or to what cannot be."""

    @pytest.fixture
    def certificate(self):
        return certificates_of(waiting(), "G !g")[1][0]

    def with_box(self, certificate, **changes):
        return replace(certificate, boxes=(replace(certificate.boxes[0], **changes),))

    def with_subject(self, certificate, **changes):
        return replace(certificate, subject=replace(certificate.subject, **changes))

    def state(self, certificate, chain_state):
        """The product states are numbered as a search finds them: 2 is state 0, then 1 and 2 (3 is `false`)."""
        return {0: 2, 1: 3, 2: 4}[chain_state]

    def test_the_untouched_one_passes(self, certificate):
        check_certificate(certificate)

    @pytest.mark.parametrize("chain_state", [0, 1])
    def test_smaller_values(self, certificate, chain_state):
        at = self.state(certificate, chain_state)
        less = np.nextafter(certificate.boxes[0].value[at], 0) - 1e-12
        refused(
            self.with_box(certificate, value=changed(certificate.boxes[0].value, at, less)), "less than what its best"
        )

    def test_values_that_are_none(self, certificate):
        for wrong in (np.nan, np.inf, -0.5):
            refused(self.with_box(certificate, value=changed(certificate.boxes[0].value, 3, wrong)), "do not fit")

    def test_a_target_of_small_value(self, certificate):
        refused(self.with_box(certificate, value=changed(certificate.boxes[0].value, 0, 0.5)), "below 1")

    def test_false_that_is_no_target(self, certificate):
        refused(self.with_box(certificate, component=changed(certificate.boxes[0].component, 0, 0)), "no target")

    def test_claims_beyond_the_proof(self, certificate):
        refused(replace(certificate, claimed=(certificate.claimed[0] + 1e-9,)), "claims the bound")
        refused(replace(certificate, claimed=(certificate.claimed[0] - 1e-9,)), "claims the bound")

    def test_a_waiting_state_that_is_no_component(self, certificate):
        at = self.state(certificate, 0)
        refused(
            self.with_box(certificate, component=changed(certificate.boxes[0].component, at, -1)),
            "without any chance",
        )

    def test_an_order_in_which_nothing_falls(self, certificate):
        at = self.state(certificate, 1)
        refused(self.with_box(certificate, order=changed(certificate.boxes[0].order, at, -9)), "without any chance")

    def test_a_component_whose_lasso_decides_against_the_bound(self):
        # Upper side of G !g: staying in state 0 makes it hold, so it must be a target.
        _, (_, upper) = certificates_of(waiting(), "F g")
        check_certificate(upper)
        letters = upper.subject.letters.copy()
        letters[upper.boxes[0].component >= 0] = 1  # as if g held there
        refused(self.with_subject(upper, letters=letters), "decides against the bound|less than")

    def test_another_formula(self, certificate):
        refused(self.with_subject(certificate, formula="F p0"), "decides against the bound")

    def test_other_moves(self, certificate):
        at = self.state(certificate, 1)
        following = changed(certificate.subject.following, (at, 0), 0)
        refused(self.with_subject(certificate, following=following), "less than what its best|breaks off")
        refused(self.with_subject(certificate, following=changed(following, (at, 0), 99)), "do not fit")

    def test_paths_that_are_none(self, certificate):
        parent = certificate.subject.parent
        at = self.state(certificate, 2)
        refused(self.with_subject(certificate, parent=changed(parent, at, at - 2)), "breaks off")
        refused(self.with_subject(certificate, parent=changed(parent, at, -1)), "begins nowhere")
        circle = changed(changed(parent, 2, 2), at, 2)
        refused(self.with_subject(certificate, parent=circle), "breaks off")

    def test_other_columns_and_rows(self, certificate):
        subject = certificate.subject
        refused(self.with_subject(certificate, columns=changed(subject.columns, (0, 0), 7)), "do not fit")
        refused(self.with_subject(certificate, row=changed(subject.row, 3, 44)), "do not fit")
        # Drawn from a free column instead.
        free = self.with_subject(certificate, row=changed(subject.row, 3, subject.row[2]))
        refused(free, "less than what its best")

    def test_values_of_a_smaller_region(self, certificate):
        region = certificate.region
        wider = replace(region, lower=np.zeros_like(region.lower), upper=np.full_like(region.upper, UNIT))
        refused(replace(certificate, region=wider), "less than what its best")

    def test_regions_that_the_counts_do_not_give(self):
        for certificate in from_counts().certificates:
            region = certificate.region
            for name, step in (("lower", 3), ("upper", -3)):
                ends = getattr(region, name)
                for place in np.argwhere((ends > 0) & (ends < UNIT)).tolist():
                    tight = replace(region, **{name: changed(ends, tuple(place), ends[tuple(place)] + step)})
                    refused(replace(certificate, region=tight), "do not follow from its counts")

    def test_other_counts_alpha_or_events(self):
        certificate = from_counts().certificates[0]
        evidence = certificate.region.evidence

        def with_evidence(**changes):
            return replace(certificate, region=replace(certificate.region, evidence=replace(evidence, **changes)))

        for place in np.argwhere(evidence.items > 0).tolist():
            fewer = changed(evidence.items, tuple(place), evidence.items[tuple(place)] - 1)
            refused(with_evidence(items=fewer), "do not follow")
        refused(with_evidence(alpha=evidence.alpha / 2), "do not follow")
        refused(with_evidence(events=3), "do not follow")
        refused(with_evidence(events=1), "2 are used")

    def test_a_column_that_counts_for_nothing_must_be_free(self):
        certificate = from_counts().certificates[0]
        region = certificate.region
        index = tuple(np.argwhere(region.needed)[0])
        unneeded = replace(region, needed=changed(region.needed, index, False))
        refused(replace(certificate, region=unneeded), "not left free")

    def test_parts_that_are_left_out(self):
        certificate = one_matrix().certificates[0]
        tree = certificate.tree
        assert isinstance(tree, Split)
        refused(replace(certificate, tree=replace(tree, below=None)), "left out")
        refused(replace(certificate, tree=tree.above), "not the leaves|left out|less than")
        refused(replace(certificate, tree=0), "not the leaves")
        refused(replace(certificate, tree=replace(tree, bin=9)), "not there")
        refused(replace(certificate, tree=replace(tree, at=UNIT)), "left out|less than")

    def test_boxes_in_the_wrong_place(self):
        certificate = one_matrix().certificates[0]
        refused(replace(certificate, boxes=certificate.boxes[::-1]), "less than what its best|without any chance")


class TestDocument:
    def test_it_survives_json_to_the_last_bit(self):
        for certificate in (*from_counts().certificates, *one_matrix().certificates):
            text = json.dumps(document(certificate))
            copy = from_document(json.loads(text))
            assert json.dumps(document(copy)) == text
            assert copy.claimed == certificate.claimed
            for mine, other in zip(copy.boxes, certificate.boxes, strict=True):
                assert mine.value.tobytes() == other.value.tobytes()
                assert np.array_equal(mine.order, other.order)
            check_certificate(copy)

    def test_any_changed_number_is_noticed(self):
        content = document(one_matrix().certificates[0])
        places = list(numbers_in(content))
        assert len(places) > 150
        rng = np.random.default_rng(0)
        for place in rng.permutation(len(places)).tolist():
            broken = json.loads(json.dumps(content))
            spot = broken
            *way, last = places[place]
            for key in way:
                spot = spot[key]
            spot[last] = spot[last] + 1 if not isinstance(spot[last], bool) else not spot[last]
            with pytest.raises(InputError):
                from_document(broken)

    @pytest.mark.parametrize(
        ("path", "value", "message"),
        [
            (("schema",), "something", "expected verifier.certificate"),
            (("version",), 2, "expected verifier.certificate"),
            (("side",), "left", "lower or upper"),
            (("claimed",), ["0.5"], "numbers with a decimal point"),
            (("claimed",), 0.5, "expected a list"),
            (("boxes",), {}, "expected a list"),
            (("boxes", 0), [], "expected an object"),
            (("boxes", 0, "value"), [1, 2], "numbers of type float"),
            (("boxes", 0, "order"), [1.5], "numbers of type int"),
            (("boxes", 0, "order"), [2**60], "out of range"),
            (("subject", "following"), [[1, 2], [3]], "equal length"),
            (("subject", "following"), 7, "levels of lists"),
            (("subject", "reports"), [["a"], 3], "class names"),
            (("subject", "formula"), None, "as texts"),
            (("region", "needed"), [[1]], "numbers of type bool"),
            (("region", "lower"), [[[5]]], "fit together|every label"),
            (("region", "evidence", "alpha"), "1/0", "alpha is a fraction"),
            (("region", "evidence", "alpha"), "3/2", "strictly between 0 and 1"),
            (("region", "evidence", "alpha"), "1/" + "3" * 500, "alpha is a fraction"),
            (("tree",), {"bin": 0}, "exactly the keys"),
        ],
    )
    def test_what_is_no_certificate_is_refused(self, path, value, message):
        broken = document(from_counts().certificates[0])
        spot = broken
        for key in path[:-1]:
            spot = spot[key]
        spot[path[-1]] = value
        signed(broken)
        with pytest.raises(InputError, match=message):
            from_document(json.loads(json.dumps(broken)))

    def test_a_tree_deeper_than_any_real_one_is_refused(self):
        broken = document(one_matrix().certificates[0])
        tree = 0
        for _ in range(300):
            tree = {"bin": 0, "group": 0, "true": 1, "at": 5, "below": tree, "above": None}
        broken["tree"] = tree
        signed(broken)
        with pytest.raises(InputError, match="cuts below each other"):
            from_document(broken)

    def test_what_is_not_finite_is_refused(self):
        broken = document(from_counts().certificates[0])
        broken["boxes"][0]["value"][0] = float("nan")
        with pytest.raises(InputError, match="not finite"):
            from_document(broken)

    def test_a_wrong_proof_with_a_right_checksum_is_still_no_proof(self):
        broken = document(from_counts().certificates[0])
        place = int(
            np.argmax(np.array(broken["boxes"][0]["value"]) * (np.array(broken["boxes"][0]["component"]) != TARGET))
        )
        broken["boxes"][0]["value"][place] *= 0.99
        signed(broken)
        with pytest.raises(InputError, match=r"less than|claims"):
            check_certificate(from_document(broken))


def signed(content):
    """With the checksum that its content has."""
    content["sha256"] = _digest({key: value for key, value in content.items() if key != "sha256"})


def numbers_in(value, way=()):
    """The places of all numbers and truth values of a document."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers_in(each, (*way, key))
    elif isinstance(value, bool | int | float):
        yield way
