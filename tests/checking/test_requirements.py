"""Holding the engines against each other: bounds that hold, disagreements named, Storm's own contradictions."""

import contextlib
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from small_chains import chain_of, check_formulas

from verifier.base.budget import Clock
from verifier.base.errors import EngineError
from verifier.checking.asking import Asking, Found, product_chain
from verifier.checking.enclosure import CheckedValues
from verifier.checking.plan import decide
from verifier.checking.product import build_product
from verifier.checking.settings import EngineSettings
from verifier.checking.two_engines import abstracted
from verifier.language.expressions.syntax import Interval
from verifier.language.ltl import parse_formula


def coin(p=Fraction(1, 3)):
    """Flip until heads: from 0 to `heads` (1) with p, to `lost` (2) with p, else again."""
    again = 1 - 2 * p
    return chain_of([{0: again, 1: p, 2: p}, {1: 1}, {2: 1}], {"heads": {1}, "lost": {2}}, exact=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("F heads", Fraction(1, 2)),
        ("G !lost", Fraction(1, 2)),
        ("X heads", Fraction(1, 3)),
        ("F G heads", Fraction(1, 2)),
        # heads at the first or the second flip: 1/3 + 1/9.
        ("F<=2 heads", Fraction(4, 9)),
        # heads, but not at the first flip: 1/2 - 1/3.
        ("(!heads & !lost) U (X X heads & !X heads & !X lost)", Fraction(1, 6)),
    ],
)
def test_hand_solved_values_lie_within_the_bounds(storm, text, value):
    (found,) = check_formulas(coin(), [parse_formula(text)], storm)
    (exact,) = check_formulas(coin(), [parse_formula(text)], storm, EngineSettings(exact=True))
    assert exact.fractions == (value,)
    assert found.lower[0] <= value <= found.upper[0]
    assert found.upper[0] - found.lower[0] < 1e-11
    assert found.second[0] == pytest.approx(float(value), rel=1e-14, abs=0)
    assert found.remark is None


def test_bounds_hold_where_rounding_goes_down(storm):
    # 2/3 is not a double; a bound of zero width around its double would be wrong.
    chain = replace(coin(Fraction(2, 9)), initial=np.array([0]))
    (found,) = check_formulas(chain, [parse_formula("X (heads | lost)")], storm)
    assert found.lower[0] < Fraction(4, 9) < found.upper[0]


def test_certain_answers_have_no_width(storm):
    (found,) = check_formulas(coin(), [parse_formula("F (heads | lost)")], storm)
    assert found.lower[0] == found.probability[0] == found.upper[0] == 1.0


def test_a_disagreement_names_both_numbers(storm):
    class Lying:
        """Storm, but for a mistake of a tenth that it makes consistently for a formula and its negation."""

        def check(self, chain, texts, **options):
            return [
                self.wrong(each, text) for each, text in zip(storm.check(chain, texts, **options), texts, strict=True)
            ]

        @contextlib.contextmanager
        def asked(self, chain, texts, **options):
            left = self.check(chain, texts, **options)
            yield SimpleNamespace(usable=True, within=lambda seconds: left.pop(0))

        def wrong(self, answer, text):
            shift = -0.1 if text.startswith(("(!", "!")) else 0.1
            return replace(answer, value=answer.value + shift, lower=None, upper=None)

    with pytest.raises(
        EngineError, match=r"the engines disagree on F heads at initial state 0: Storm \S+ says 0\.6\d*"
    ):
        check_formulas(coin(), [parse_formula("F heads")], Lying())


def test_a_contradiction_of_storms_is_seen_settled_and_told(storm):
    # Storm 2.0 gives 0 for this formula and 0 for its negation on the word b b b ...; its meaning there is true.
    always_b = chain_of([{0: 1}], {"a": {}, "b": {0}}, exact=True)
    formula = parse_formula("F ((a | X (a | X a)) R b)")
    for settings in (EngineSettings(), EngineSettings(exact=True)):
        (found,) = check_formulas(always_b, [formula], storm, settings)
        assert found.probability[0] == found.second[0] == 1.0
        assert found.remark is None or "contradicts itself" in found.remark


def test_a_formula_that_storm_refuses_is_checked_on_the_product_and_the_others_as_ever(storm):
    # Storm 2.0 writes an automaton for the second formula that it then cannot read. The formula holds if the run
    # ends in lost: then G F lost holds from the start, and F heads never does.
    chain = coin()
    texts = ["F heads", "((F lost) W false) U[1, 1000000] (!(F heads))", "G !lost"]
    formulas = [parse_formula(text) for text in texts]
    formulas[1] = replace(formulas[1], interval=Interval(1, None))
    found = check_formulas(chain, formulas, storm)
    assert [each.probability[0] for each in found] == pytest.approx([0.5, 0.5, 0.5], abs=1e-9)
    assert "cannot check the formula" in found[1].remark
    assert found[0].remark is None
    assert found[2].remark is None


def test_the_product_as_a_chain_keeps_fractions_and_initial_states(storm):
    chain = replace(coin(), initial=np.array([0, 1, 2]))
    product = build_product(chain.indptr, chain.indices, chain.labels, parse_formula("F G heads"), chain.initial)
    merged, place = product_chain(decide(product, np.ones(5, dtype=bool)), chain)
    answer = storm.check(merged, ['F "accept"'], exact=True)[0]
    assert [answer.fractions[k] for k in place] == [Fraction(1, 2), 1, 0]


@pytest.mark.parametrize("exact", [True, False])
def test_the_product_as_a_chain_by_hand(exact):
    # Heads in two ways from the first state, which is asked about again; what is accepted is one state, what is
    # rejected another, and both kinds of initial states get their answers back.
    quarter = Fraction(1, 4)
    rows = [{0: quarter, 1: quarter, 2: quarter, 4: quarter}, {1: 1}, {2: 1}, {0: Fraction(3, 4), 4: quarter}, {4: 1}]
    chain = chain_of(rows, {"heads": {1, 2}}, (0, 1, 2, 3, 4), defect=0.0 if exact else 0.125)
    if exact:
        fractions = tuple(Fraction(row[target]) for row in rows for target in sorted(row))
        chain = replace(chain, fractions=fractions)
    product = build_product(chain.indptr, chain.indices, chain.labels, parse_formula("F G heads"), chain.initial)
    decided = decide(product, np.ones(10, dtype=bool))
    merged, place = product_chain(decided, chain)
    first, fourth = place[[0, 3]].tolist()  # in the order in which the product has them
    assert (sorted([first, fourth]), place.tolist()) == ([0, 1], [first, 2, 2, fourth, 3])
    matrix = np.zeros((4, 4))
    matrix[np.repeat(np.arange(4), np.diff(merged.indptr)), merged.indices] = merged.probabilities
    expected = np.diag([0.0, 0, 1, 1])
    expected[first, [first, 2, 3]], expected[fourth, [first, 3]] = [0.25, 0.5, 0.25], [0.75, 0.25]
    assert matrix.tolist() == expected.tolist()
    assert (merged.indptr[-1], merged.initial.tolist()) == (7, [0, 1, 2, 3])
    assert merged.labels["accept"].tolist() == [False, False, True, False]
    assert merged.rounding_defect == chain.rounding_defect
    assert (merged.fractions is None) != exact
    assert not exact or [float(fraction) for fraction in merged.fractions] == merged.probabilities.tolist()

    value = np.array([0.25, 0.5, 0.75, 1])
    told = CheckedValues(value, None, None, tuple(map(Fraction, value.tolist())), "Storm")
    bounded = CheckedValues(value, value - 0.125, np.minimum(value + 0.125, 1), None, "Storm")
    for answer in (told, bounded):
        storm = SimpleNamespace(check=lambda chain, texts, answer=answer, **options: [answer])
        asking, task = Asking(chain, storm, EngineSettings(exact=exact), 0.0), SimpleNamespace(clock=Clock(None))
        task.doing = "checking"
        back = asking.on_product(Found(task, product, None, 0.0))
        for name in ("value", "lower", "upper"):
            array = getattr(answer, name)
            assert (
                (getattr(back, name) is None) if array is None else np.array_equal(getattr(back, name), array[place])
            )
        assert back.fractions == (tuple(map(Fraction, value[place].tolist())) if answer is told else None)


def test_names_of_several_formulas_do_not_collide():
    first, second = abstracted([parse_formula("F x = 1"), parse_formula("G x = 2")])
    assert not set(first.propositions) & set(second.propositions)
