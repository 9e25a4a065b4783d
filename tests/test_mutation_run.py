"""Faults are put in as single tokens and judged by tests; a sample of them where bounds are made is noticed."""

import mutation_run
import pytest

CODE = '''"""Not < this."""
from fractions import Fraction

def widest(low: float | None, *others: int) -> bool | None:
    if low < 3 and any(others):
        raise ValueError(f"{low + 1} is less than 3")
    return -low * max(0, *others) == 7
'''


def test_faults_are_single_tokens_of_what_computes(monkeypatch):
    faults = list(mutation_run.faults_of("made.py", CODE))
    assert [(fault.line, fault.before, fault.after) for fault in faults] == [
        (4, "low", "high"), (5, "low", "high"), (5, "<", "<="), (5, "3", "4"), (5, "and", "or"), (5, "any", "all"),
        (7, "-", "+"), (7, "low", "high"), (7, "*", "/"), (7, "max", "min"), (7, "0", "1"), (7, "==", "!="),
        (7, "7", "8"),
    ]  # fmt: skip
    assert faults[3].applied(CODE) == CODE.replace("low < 3", "low < 4")
    with pytest.raises(ValueError, match="is not there"):
        faults[3].applied(CODE.replace("low < 3", "low <  3"))
    monkeypatch.setitem(mutation_run.EQUIVALENT, ("made.py", "if low < 3 and any(others):", "<"), "low is no integer")
    assert len(list(mutation_run.faults_of("made.py", CODE))) == len(faults) - 1


def test_every_module_of_the_parts_has_tests_that_exist(root):
    for name, tests in mutation_run.modules().items():
        assert (root / name).exists()
        assert all((root / test).exists() for each in tests for test in each), name
    assert mutation_run.BOUNDS.keys() <= mutation_run.modules().keys()


@pytest.mark.slow
def test_faults_where_bounds_are_made_are_noticed(capsys):
    assert mutation_run.main([*mutation_run.BOUNDS, "--sample", "40", "--seed", "1"]) == 0, capsys.readouterr().out
