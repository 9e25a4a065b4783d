"""Faults are put in as single tokens and judged by tests; a sample of them where bounds are made is noticed."""

import gc
import inspect
import re
import subprocess
import sys
from collections import Counter

import mutation_run
import pytest

CODE = '''"""Not < this."""
from fractions import Fraction

def widest(low: float | None, *others: int) -> bool | None:
    if low < 3 and any(others):
        raise ValueError(f"{low + 1} is less than 3")
    return -low * max(0, *others) == 7 + rows.reshape(-1, 2)
'''


def test_faults_are_single_tokens_of_what_computes(monkeypatch):
    faults = list(mutation_run.faults_of("made.py", CODE))
    assert [(fault.line, fault.before, fault.after) for fault in faults] == [
        (4, "low", "high"), (5, "low", "high"), (5, "<", "<="), (5, "3", "4"), (5, "and", "or"), (5, "any", "all"),
        (7, "-", "+"), (7, "low", "high"), (7, "*", "/"), (7, "max", "min"), (7, "0", "1"), (7, "==", "!="),
        (7, "7", "8"), (7, "+", "-"), (7, "-", "+"), (7, "2", "3"),
    ]  # fmt: skip
    assert faults[3].applied(CODE) == CODE.replace("low < 3", "low < 4")
    with pytest.raises(ValueError, match="is not there"):
        faults[3].applied(CODE.replace("low < 3", "low <  3"))
    monkeypatch.setitem(mutation_run.EQUIVALENT, ("made.py", "if low < 3 and any(others):", "<"), "low is no integer")
    assert len(list(mutation_run.faults_of("made.py", CODE))) == len(faults) - 1


def test_every_quoted_line_has_a_name_of_its_own():
    """Where two have the same, the later one silently replaces the earlier."""
    quoted = re.findall(r"^(\w+) = ", inspect.getsource(mutation_run), flags=re.MULTILINE)
    assert [name for name, count in Counter(quoted).items() if count > 1] == []


def test_every_module_of_the_parts_has_tests_that_exist(root):
    assert all((root / test).exists() for tests in mutation_run.PARTS.values() for test in tests)
    assert all((root / name).exists() for name in mutation_run.BOUNDS)
    kernel = "verifier/analysis/kernel.py"
    parts = [mutation_run.part_of(name) for name in (kernel, "verifier/analysis/mixed.py")]
    assert parts == [kernel, "verifier/analysis"]
    for name, line, _ in mutation_run.EQUIVALENT:
        assert any(line == text.strip() for text in (root / name).read_text().splitlines()), line
    every = mutation_run.named_faults(kernel)
    assert mutation_run.named_faults(f"{kernel}:{every[0].line}") == [f for f in every if f.line == every[0].line]


def test_functions_that_the_set_up_has_frozen_are_changed_too(tmp_path):
    path, made = tmp_path / "made.py", {}
    text = "def least():\n    return 1\n"
    exec(compile(text, path, "exec"), made)
    gc.freeze()
    mutation_run.put_in(path, text.replace("1", "2"))
    gc.freeze()  # as before
    assert made["least"]() == 2


def test_a_copy_has_what_the_tests_read(shared):
    with mutation_run.copied() as place:
        assert (place / "verifier/py.typed").is_file()
        assert (place.parent / "shared").resolve() == shared.resolve()


MODULE = "verifier/checking/made.py"
SOURCE = """SIZE = 3

class Box:
    def grown(self):
        def inner():
            return 1
        return inner

def lone():
    return 2
"""


def test_a_fault_is_judged_first_by_the_quick_tests_that_call_its_function():
    assert [mutation_run.function_at(SOURCE, line) for line in (1, 4, 6, 10)] == [
        None, "Box.grown", "Box.grown", "lone"
    ]  # fmt: skip
    folder = "tests/checking/test_made.py::"
    noted = {
        "slow": (9.0, [f"{MODULE}:Box.grown"]),
        "quick": (1.0, [f"{MODULE}:Box.grown"]),
        "near": (0.1, [f"{MODULE}:other"]),
        "far": (0.0, ["verifier/checking/linear.py:other"]),
    }
    judge = mutation_run.Judge(None, noted={folder + name: value for name, value in noted.items()})
    judge.noted["tests/language/test_made.py::other"] = (0.0, [f"{MODULE}:Box.grown"])

    def names(line):
        tests = judge.tests_of(mutation_run.Fault(MODULE, line, "", 0, "1", "2"), SOURCE)
        return [test.removeprefix(folder) for test in tests]

    assert names(6) == ["quick", "slow", "near"]
    assert names(1) == names(10) == ["near", "quick", "slow", "far"]  # outside of functions, or seen by no test
    judge.last[MODULE] = f"{folder}slow"
    assert names(6) == ["slow", "quick", "near"]
    judge.most_s = 10.0
    assert names(6) == ["slow", "quick"]


def test_tests_of_folders_with_fixtures_of_their_own_judge_together(tmp_path, capfd):
    for name, text in {
        "one/conftest.py": "",
        "one/test_right.py": "def test_right(): pass",
        "two/test_wrong.py": "import os\ndef test_wrong(): assert 'WRONG' not in os.environ",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    judge = mutation_run.Judge(tmp_path)
    tests = {"one/test_right.py::test_right": 9.0, "two/test_wrong.py::test_wrong": 9.0}
    assert judge._run(tests, judge.collected) == (None, {})
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("WRONG", "1")
        assert judge._run(tests, judge.collected) == ("two/test_wrong.py::test_wrong", {})


def test_faults_within_functions_are_judged_by_tests_that_are_collected_once(tmp_path, monkeypatch):
    source = "LEAST = 1\ndef at_least(x, least=2):\n    return any(y >= least and y != 5 for y in [x])\n"
    source += "if __name__ == '__main__':\n    raise SystemExit\n"
    (tmp_path / "made.py").write_text(source)
    tests = "from made import LEAST, at_least\ndef test_it(): assert at_least(2) and not at_least(LEAST)\n"
    tests += "def test_wrong(): assert not at_least(2)\n"
    (tmp_path / "test_made.py").write_text(tests)
    monkeypatch.setitem(mutation_run.PARTS, "made.py", ["test_made.py"])
    called = ["made.py:at_least"]
    judge = mutation_run.Judge(tmp_path, noted={f"test_made.py::test_{k}": (0.1, called) for k in ("wrong", "it")})
    found = {fault.before: how for fault, how in judge.each_noticed(list(mutation_run.faults_of("made.py", source)))}
    test = "test_made.py::test_it"
    assert found.pop("==") == "SystemExit"  # the module leaves when it is read
    assert found == {">=": test, "any": None, "and": test, "!=": test, "5": None, "1": test, "2": test}
    assert list(found)[-2:] == ["1", "2"]  # a constant and a default are set when the module is read
    assert (tmp_path / "made.py").read_text() == source


@pytest.mark.slow
def test_faults_where_bounds_are_made_are_noticed():
    """In a process of its own: judges would go on with modules that other tests have loaded, without the fault."""
    words = [sys.executable, mutation_run.__file__, *mutation_run.BOUNDS, "--sample", "3", "--seed", "1"]
    run = subprocess.run(words, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
