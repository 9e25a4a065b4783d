"""Storm computes while the caller goes on; a caller that goes away does not leave it computing."""

import os
import select
from fractions import Fraction as Fr

import numpy as np
import pytest
from small_chains import chain_of

from verifier.base.errors import EngineError
from verifier.checking import process as process_module
from verifier.checking.process import StormProcess

# From 0 to 1 with 1/3, to 2 with 2/3; both stay.
ROWS = [{1: Fr(1, 3), 2: Fr(2, 3)}, {1: Fr(1)}, {2: Fr(1)}]
CHAIN = chain_of(ROWS, {"one": {1}, "two": {2}})
FORMULAS = ['F ("one")', 'F ("two")', 'X (F ("one"))']


@pytest.fixture
def folders(monkeypatch):
    """The temporary folders that requests have used."""
    used = []
    write = process_module.write_umb

    def recorded(model, path, **options):
        used.append(path.parent)
        write(model, path, **options)

    monkeypatch.setattr(process_module, "write_umb", recorded)
    return used


def assert_gone(process_id):
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


def test_answers_come_in_the_order_of_the_formulas(folders):
    with StormProcess() as storm, storm.asked(CHAIN, FORMULAS) as answers:
        values = [float(answer.value[0]) for answer in answers]
        assert values == pytest.approx([1 / 3, 2 / 3, 1 / 3], abs=1e-11)
        with pytest.raises(StopIteration):
            next(answers)
    assert not folders[0].exists()


def test_storm_answers_before_anybody_waits():
    with StormProcess() as storm:
        storm.storm_version()
        with storm.asked(CHAIN, FORMULAS) as answers:
            answered, _, _ = select.select([storm._worker._stream("stdout")], [], [], 30)
            assert answered
            assert next(answers).value[0] == pytest.approx(1 / 3, abs=1e-11)
            list(answers)


def test_the_worker_lives_on_when_every_answer_was_taken():
    with StormProcess() as storm:
        storm.storm_version()
        first = storm._worker.process_id
        for _ in range(2):
            with storm.asked(CHAIN, FORMULAS) as answers:
                list(answers)
        assert storm._worker.process_id == first


def test_leaving_early_ends_the_worker_and_the_next_check_has_a_fresh_one(folders):
    with StormProcess() as storm:
        storm.storm_version()
        first = storm._worker.process_id
        with storm.asked(CHAIN, FORMULAS) as answers:
            next(answers)
        assert_gone(first)
        assert not folders[0].exists()
        (fresh,) = storm.check(CHAIN, FORMULAS[1:2])
        assert fresh.value[0] == pytest.approx(2 / 3, abs=1e-11)


def test_an_error_of_the_caller_ends_the_worker_and_comes_out(folders):
    def fail(storm):
        with storm.asked(CHAIN, FORMULAS):
            raise KeyboardInterrupt

    with StormProcess() as storm:
        storm.storm_version()
        first = storm._worker.process_id
        with pytest.raises(KeyboardInterrupt):
            fail(storm)
        assert_gone(first)
        assert not folders[0].exists()


def test_after_what_storm_refuses_the_worker_lives_on():
    with StormProcess() as storm:
        storm.storm_version()
        first = storm._worker.process_id
        with storm.asked(CHAIN, ['X (F<0 ("one"))', 'F ("one")']) as answers:
            with pytest.raises(EngineError, match="Storm cannot check 'X "):
                next(answers)
            assert list(answers) == []
        assert storm._worker.process_id == first


def test_no_formula_needs_no_storm():
    with StormProcess() as storm, storm.asked(CHAIN, []) as answers:
        assert list(answers) == []


def test_exact_answers_say_so():
    exact = chain_of(ROWS, {"one": {1}})
    object.__setattr__(exact, "fractions", (Fr(1, 3), Fr(2, 3), Fr(1), Fr(1)))
    with StormProcess() as storm, storm.asked(exact, ['F ("one")'], exact=True) as answers:
        answer = next(answers)
    assert answer.fractions == (Fr(1, 3),)
    assert answer.engine.endswith("(exact)")
    assert np.array_equal(answer.value, [1 / 3])
