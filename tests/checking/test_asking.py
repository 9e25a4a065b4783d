"""What Storm is asked about a formula, and what its answer says about it."""

import contextlib
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from small_chains import chain_of

from verifier.base.errors import LimitError
from verifier.checking import asking
from verifier.checking.asking import Asking, Found, Task
from verifier.checking.batch import BatchResult
from verifier.checking.enclosure import CheckedValues
from verifier.checking.settings import EngineSettings
from verifier.language.ltl import parse_formula

CHAIN = chain_of([{0: 0.9, 1: 0.1}, {0: 0.5, 1: 0.5}], {"a": {1}})
STEPS = 50_000


def task_of(text):
    return Task.of(CHAIN, parse_formula(text), EngineSettings())


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (f"F<={STEPS} a", f'(F<={STEPS} "a")'),
        (f"G<={STEPS} a", f'(F<={STEPS} (!"a"))'),
        (f"F<={STEPS + 1} a", None),
        (f"F[1,{STEPS}] a", None),
        (f"G<={STEPS} (a -> F<=2 !a)", None),
    ],
)
def test_storm_takes_so_many_steps_from_the_first_one(text, asked, monkeypatch):
    monkeypatch.setattr(asking, "MOST_STORM_STEPS", STEPS)
    assert task_of(text).text == asked


@pytest.mark.parametrize(("work", "possible"), [(4 * STEPS, True), (4 * STEPS - 1, False)])
def test_storm_takes_steps_times_transitions_up_to_its_work(work, possible, monkeypatch):
    monkeypatch.setattr(asking, "MOST_STORM_WORK", work)  # four transitions
    assert (task_of(f"F<={STEPS} a").text is not None) == possible


@pytest.mark.parametrize(("most", "possible"), [(2, True), (1, False)])
def test_storm_takes_so_many_recurrences(most, possible, monkeypatch):
    # F a and G !a stand inside G and F; X has a step, F<=1 a bound, and the outer ones stand in nothing.
    monkeypatch.setattr(asking, "MOST_STORM_RECURRENCES", most)
    assert (task_of("G (F a) & F (G !a) & G (F a) & X (X a) & G (F<=1 a)").text is not None) == possible


def test_an_answer_about_the_complement_is_turned_around():
    task, negated = task_of(f"F<={STEPS} a"), task_of(f"G<={STEPS} a")
    value = np.array([0.25, 1.0])
    plain = CheckedValues(value, None, None, None, "Storm")
    bounded = CheckedValues(value, value - 0.125, np.array([0.5, 1.0]), None, "Storm")
    exact = CheckedValues(value, None, None, (Fraction(1, 4), Fraction(1)), "Storm")
    assert task.meant(plain) is plain
    found = [negated.meant(each) for each in (plain, bounded, exact)]
    assert all(each.value.tolist() == [0.75, 0.0] and each.engine == "Storm" for each in found)
    assert [each.lower is None for each in found] == [each.upper is None for each in found] == [True, False, True]
    assert (found[1].lower.tolist(), found[1].upper.tolist()) == ([0.5, 0.0], [0.875, 0.125])
    assert found[2].fractions == (Fraction(3, 4), Fraction(0))


@pytest.mark.parametrize(
    ("left_s", "batch_s", "exact", "seconds"),
    [
        (None, 1.0, False, None),
        (None, 1.0, True, None),
        (1000.0, 1.0, True, 1000.0),
        (1000.0, 0.5, False, 30.0),  # 50 times what the batch engine took, and half a minute at least
        (1000.0, 2.0, False, 100.0),
        (1000.0, 20.0, False, 500.0),  # half of what is left at most
        (40.0, 0.0, False, 20.0),
    ],
)
def test_storm_gets_half_of_the_time_at_most(left_s, batch_s, exact, seconds):
    assert asking.seconds_for_storm(left_s, batch_s, exact) == seconds


class MadeUp:
    """A Storm that gives 1/4 to whatever it is asked, or cannot be waited for, and notes how it was asked."""

    def __init__(self, usable=True):
        self.usable, self.asked_for, self.abandoned = usable, [], 0

    @contextlib.contextmanager
    def asked(self, chain, texts, *, exact, direct, timeout_s, memory_bytes):
        self.asked_for.append((texts, exact, direct))
        yield SimpleNamespace(usable=self.usable, within=self.within, abandon=self.abandon)

    def within(self, seconds):
        assert self.usable
        return CheckedValues(np.array([0.25]), None, None, (Fraction(1, 4),), "Storm")

    def abandon(self):
        self.abandoned += 1


def looks_of(storm, chain=CHAIN, texts=("F a",), **settings):
    given = EngineSettings(**settings)
    tasks = [Task.of(chain, parse_formula(text), given) for text in texts]
    return Asking(chain, storm, given, 2.0**-53).looks(tasks)


ENDING = chain_of([{0: 0.5, 1: 0.5}, {1: 1}], {"a": {1}})


@pytest.mark.parametrize(
    ("chain", "exact", "together"),
    [
        (CHAIN, False, False),  # its states lead to each other: the batch engine says first how long it takes
        (CHAIN, True, True),
        (ENDING, False, True),
        (chain_of([{0: 0.5, 1: 0.25}, {0: 0.5, 1: 0.5}], {"a": {1}}, defect=0.25), False, True),
    ],
)
def test_storm_computes_beside_the_batch_engine_where_nothing_must_be_known_before(chain, exact, together):
    storm = MadeUp()
    (look,) = looks_of(storm, chain, exact=exact)
    assert storm.asked_for == [(['(F "a")'], exact, False)] + [([], exact, True)] * (not together)
    assert look.answer.fractions == (Fraction(1, 4),)


def test_storm_factorises_what_lasts_longer_than_it_iterates_well(monkeypatch):
    steps = iter([[5000, 0], [0, 5001], [5001, 5001]])

    def solved(product, probabilities, **_):
        one = np.ones((1, 2))
        return BatchResult(one, one, one, np.array([next(steps)]), one, one)

    monkeypatch.setattr(asking, "satisfaction_probabilities", solved)
    ticks = iter([1.0, 1.25, 2.0, 2.5, 3.0, 3.75])
    monkeypatch.setattr(asking, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    storm = MadeUp()
    looks = looks_of(storm, replace(CHAIN, initial=np.array([0, 1])), ["F a", "G a", "X a"])
    assert storm.asked_for == [(['(F "a")'], False, False), (['(G "a")', '(X "a")'], False, True)]
    assert [look.direct for look in looks] == [False, True, True]
    assert [look.batch_s for look in looks] == [0.25, 0.5, 0.75]


@pytest.mark.parametrize(
    ("exact", "usable", "fractions", "abandoned"),
    [(True, True, (Fraction(1, 4),), 0), (True, False, None, 1), (False, True, None, 1), (False, False, None, 1)],
)
def test_where_the_batch_engine_has_no_answer_storms_counts_if_it_is_exact(exact, usable, fractions, abandoned):
    storm = MadeUp(usable)
    (look,) = looks_of(storm, ENDING, ["F (a & X !a)"], exact=exact, product_states=1)
    assert storm.abandoned == abandoned
    assert look.fractions == fractions if fractions else isinstance(look, LimitError)


def test_what_is_not_answered_is_not_there():
    (look,) = looks_of(MadeUp(usable=False), ENDING)
    assert isinstance(look, Found)
    assert (look.answer, look.failure, look.direct) == (None, None, False)
    assert EngineSettings().memory_bytes == 17_179_869_184
