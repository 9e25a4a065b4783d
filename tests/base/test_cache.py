from types import SimpleNamespace

import numpy as np
import pytest

from verifier.base.budget import Cache, array_bytes


class Value:
    """Something of a known size."""

    def __init__(self, size):
        self.size = size


def size_of(value):
    return value.size


class Makes:
    """Gives values of one size, and says for which keys."""

    def __init__(self, cache, size=1):
        self.cache, self.size, self.made = cache, size, []

    def __call__(self, key):
        def make():
            self.made.append(key)
            return Value(self.size)

        return self.cache.kept(key, make, size_of)


@pytest.mark.parametrize(("limit", "made"), [(3, "abc"), (2, "abcabc"), (0, "abcabc")])
def test_values_are_made_again_only_where_there_was_no_room(limit, made):
    give = Makes(Cache(limit))
    for key in "abcabc":
        give(key)
    assert give.made == list(made)


def test_what_was_asked_for_last_stays():
    give = Makes(Cache(2))
    for key in "abacab":
        give(key)
    assert give.made == list("abcb")


def test_one_value_stays_however_large():
    give = Makes(Cache(2), size=10)
    for key in "aab":
        give(key)
    assert give.made == list("ab")


def test_what_somebody_holds_is_not_made_again():
    give = Makes(Cache(1))
    held = [give(key) for key in "abc"]
    assert [give(key) for key in "abc"] == held
    assert give.made == list("abc")


def test_an_error_leaves_nothing_behind():
    cache = Cache(5)
    with pytest.raises(ZeroDivisionError):
        cache.kept("a", lambda: Value(1 // 0), size_of)
    assert Makes(cache)("a").size == 1


def test_the_bytes_of_arrays_are_counted():
    parts = SimpleNamespace(one=np.zeros(3), two=(np.zeros(2, dtype=bool),), three={"x": np.zeros(4)}, four="text")
    assert array_bytes(parts, SimpleNamespace(five=np.zeros(1))) == 8 * (3 + 4 + 1) + 2
