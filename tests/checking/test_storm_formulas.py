"""What the worker does, with a Storm that is made up."""

import resource
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_chains import chain_of

from verifier.checking import storm as storm_module
from verifier.checking.process import _expected_bytes
from verifier.checking.storm import (
    GAINS,
    OPERATORS,
    _address_space,
    _Checker,
    _limit_address_space,
    _OrphanWatch,
)


def test_the_archive_of_a_model_is_expected_to_have_a_size():
    # 5 transitions of 16 bytes, of 9 words with fractions; 3 states of 32 bytes and one for each of 4 labels.
    model = chain_of([{0: 0.5, 1: 0.5}, {1: 0.5, 2: 0.5}, {2: 1}])
    assert _expected_bytes(model, 4, False) == 5 * 16 + 3 * 36 + 2**20
    assert _expected_bytes(model, 4, True) == 5 * 72 + 3 * 36 + 2**20


def test_the_address_space_is_what_the_system_says():
    size = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmSize:"))
    assert _address_space() == pytest.approx(int(size.split()[1]) * 1024, rel=0.05)


def test_an_address_space_that_the_system_does_not_tell_is_none(monkeypatch):
    def closed(path):
        raise OSError(path)

    monkeypatch.setattr(storm_module, "open", closed, raising=False)
    assert _address_space() == 0


@pytest.mark.parametrize(
    ("loaded", "further", "hard", "limit"),
    [(10, 5, -1, 15), (10, 5, 20, 15), (10, 5, 12, 12), (10, 5, 0, 0), (10, None, -1, -1), (10, None, 12, 12),
     (1, 5, -1, 6), (0, 5, -1, None)],
)  # fmt: skip
def test_the_address_space_is_limited_to_what_is_loaded_and_something_more(loaded, further, hard, limit, monkeypatch):
    limits = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (7, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: limits.append((kind, pair)))
    _limit_address_space(loaded, further)
    assert limits == ([] if limit is None else [(resource.RLIMIT_AS, (limit, hard))])


def test_an_orphan_removes_its_folder_and_ends_at_the_next_look(monkeypatch, tmp_path):
    parents, done = iter([5, 5, 5, 1]), []
    monkeypatch.setattr(storm_module.os, "getppid", lambda: next(parents))
    monkeypatch.setattr(storm_module.os, "_exit", done.append)
    monkeypatch.setattr(storm_module.time, "sleep", done.append)
    orphan = _OrphanWatch()
    owned = tmp_path / "owned"
    owned.mkdir()
    orphan.owned = str(owned)
    orphan.run()
    assert (done, owned.exists()) == ([1, 1, 1], False)
    parents = iter([1])
    orphan.run()  # what is gone is no error
    assert done == [1, 1, 1, 1]


class MadeUp:
    """Looks like stormpy, a model and a result: state k has the value k/8, within 1/16."""

    initial_states, nr_states = [3, 0, 4], 5
    EquationSolverType = SimpleNamespace(EIGEN="direct")

    def __init__(self, below=True, above=True):
        self.below, self.above, self.asked = below, above, []

    def __getattr__(self, name):  # the environment takes whatever it is told
        return lambda *_, **__: self

    def build_model_from_umb(self, path):
        return self

    def parse_property(self, text):
        return text

    def model_checking(self, model, text, *, only_initial_states, environment):
        self.asked.append((text, only_initial_states))
        return None if "unknown" in text else self

    def has_lower_bounds(self):
        return self.below

    def has_upper_bounds(self):
        return self.above

    def get_value(self, state):
        return state / 8

    def get_lower_bound(self, state):
        return state / 8 - 1 / 16

    def get_upper_bound(self, state):
        return state / 8 + 1 / 16


def answers_of(storm, formula='F "a"', operator=OPERATORS[0], direct=False):
    checker = object.__new__(_Checker)
    checker._stormpy, checker._environments, checker._loaded_bytes = storm, storm, 0
    checker._failures = (ValueError, TypeError)
    request = {"umb": "", "memory": None, "exact": False, "direct": direct, "precision": "1/8"}
    return list(checker.answers({**request, "queries": [{"formula": formula, "operator": operator}]}))


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize("below", [False, True])
def test_answers_are_of_initial_states_in_their_order(below, above, direct):
    storm, states = MadeUp(below, above), [0, 3]
    bounded = below and above and not direct
    assert answers_of(storm, direct=direct) == [
        {
            "values": [state / 8 for state in states],
            "lower": [state / 8 - 1 / 16 for state in states] if bounded else None,
            "upper": [state / 8 + 1 / 16 for state in states] if bounded else None,
        }
    ]
    assert storm.asked == [('P=? [ F "a" ]', True)]
    storm.initial_states = [3]
    assert answers_of(storm)[0]["values"] == [3 / 8]


@pytest.mark.parametrize(
    ("formula", "operator", "error"),
    [
        ("C<=5", GAINS[0], None),
        ('F "a"', GAINS[2], None),
        ('F "a"', OPERATORS[1], None),
        ('F "unknown"', OPERATORS[0], "does not support this formula"),
    ],
)
def test_storm_is_asked_and_may_not_know(formula, operator, error):
    storm = MadeUp()
    (answer,) = answers_of(storm, formula, operator)
    assert (error or "values") in answer.get("error", list(answer))
    assert storm.asked == [(f"{operator} [ {formula} ]", True)]
