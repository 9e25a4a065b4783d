"""Checksums of documents: any change is found where it is, and layout and order of keys are no change."""

import copy
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.checksums import DIGITS, KEY, changed_part, checksums, with_checksums

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)
documents = st.dictionaries(st.sampled_from("abcdef"), values, min_size=1)


def summed(content):
    return {**content, KEY: checksums(content)}


def same(one, other):
    """Equal as JSON values: true is no 1, and 1.0 is."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return (
        isinstance(one, bool) == isinstance(other, bool)
        and one == other
        and isinstance(one, list | dict) == (isinstance(other, list | dict))
    )


def ways(value, way=()):
    yield way
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from ways(each, (*way, key))


@given(documents, values, st.data())
def test_a_change_is_found_at_the_part_that_holds_it(content, other, data):
    way = data.draw(st.sampled_from([each for each in ways(content) if each]))
    edited = copy.deepcopy(content)
    holder = edited
    for key in way[:-1]:
        holder = holder[key]
    before, holder[way[-1]] = holder[way[-1]], other
    found = changed_part({**edited, KEY: checksums(content)})
    if same(before, other):
        assert found is None
    else:
        pointers = [
            "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in way[:n])
            for n in range(len(way) + 1)
        ]
        # What held it, or one deeper where lists or objects of one kind differ; never something beside it.
        assert found is not None
        assert found in pointers or found.startswith(f"{pointers[-1]}/")


@given(documents)
def test_what_was_not_changed_has_its_checksums_in_any_layout(content):
    told = summed(content)
    assert changed_part(told) is None
    assert changed_part(json.loads(json.dumps(told, sort_keys=True))) is None
    assert changed_part(json.loads(json.dumps(dict(reversed(told.items())), indent=1))) is None


def test_they_are_the_first_digits_of_the_sha_256_of_each_part():
    content = {"schema": "verifier.run", "b": {"y": 1.0, "x": [2, [], "t"]}}
    digests = [
        hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
        for text in ('{"x": [], "y": 1}', '[2, [], "t"]', "[]", '"verifier.run"')
    ]
    assert checksums(content) == {"schema": digests[3], "b": "".join(digests[:3])}


@pytest.mark.parametrize(
    "told", [None, 5, "x", {}, {"schema": 1}, {"schema": "", "b": ""}, {"schema": None, "b": []}]
)
def test_what_are_no_checksums_is_found(told):
    content = {"schema": "verifier.run", "b": 1}
    assert changed_part({**content, KEY: told}) is not None
    assert changed_part(content) == f"/{KEY}"
    more = checksums(content) | {"b": checksums(content)["b"] + 8 * "0"}
    assert changed_part({**content, KEY: more}) == f"/{KEY}/b"
    assert changed_part({**content, KEY: checksums(content) | {"c": ""}}) == "/c"
    assert changed_part({**content, "c": 1, KEY: checksums(content)}) == "/c"


def test_texts_get_them_as_their_last_entry_and_get_them_anew():
    text = '{\n  "schema": "verifier.run",\n  "rows": [\n    [1, 2],\n    [3, 4]\n  ]\n}\n'
    once = with_checksums(text)
    assert once.startswith(text[:-3])
    assert list(json.loads(once))[-1] == KEY
    assert with_checksums(once) == once
    changed = with_checksums(once.replace("[3, 4]", "[3, 5]"))
    assert changed_part(json.loads(changed)) is None
    assert changed_part(json.loads(once.replace("[3, 4]", "[3, 5]"))) == "/rows/1"
    matrices = text.replace("verifier.run", "verifier.confusion")
    assert with_checksums(matrices) == matrices
