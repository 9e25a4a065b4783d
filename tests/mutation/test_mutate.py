"""Faults are put in as single tokens and judged by tests; a sample of them where bounds are made is noticed."""

import importlib.util
from pathlib import Path

import pytest

PLACE = Path(__file__).with_name("mutate.py")

CODE = '''"""Not < this."""
from fractions import Fraction

def widest(low: float | None, *others: int) -> bool | None:
    if low < 3 and any(others):
        raise ValueError(f"{low + 1} is less than 3")
    return -low * max(0, *others) == 7
'''


@pytest.fixture(scope="module")
def mutate():
    spec = importlib.util.spec_from_file_location("mutate", PLACE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_faults_are_single_tokens_of_what_computes(mutate, monkeypatch):
    faults = list(mutate.faults_of("made.py", CODE))
    assert [(fault.line, fault.before, fault.after) for fault in faults] == [
        (4, "low", "high"), (5, "low", "high"), (5, "<", "<="), (5, "3", "4"), (5, "and", "or"), (5, "any", "all"),
        (7, "-", "+"), (7, "low", "high"), (7, "*", "/"), (7, "max", "min"), (7, "0", "1"), (7, "==", "!="),
        (7, "7", "8"),
    ]  # fmt: skip
    assert faults[3].applied(CODE) == CODE.replace("low < 3", "low < 4")
    with pytest.raises(ValueError, match="is not there"):
        faults[3].applied(CODE.replace("low < 3", "low <  3"))
    monkeypatch.setitem(mutate.EQUIVALENT, ("made.py", "if low < 3 and any(others):", "<"), "low is no integer")
    assert len(list(mutate.faults_of("made.py", CODE))) == len(faults) - 1


def test_every_module_of_the_parts_has_tests_that_exist(mutate, root):
    for name, tests in mutate.modules().items():
        assert (root / name).exists()
        assert all((root / test).exists() for test in tests), name
    assert mutate.BOUNDS.keys() <= mutate.modules().keys()


@pytest.mark.slow
def test_faults_where_bounds_are_made_are_noticed(mutate, capsys):
    assert mutate.main([*mutate.BOUNDS, "--sample", "40", "--seed", "1"]) == 0, capsys.readouterr().out
