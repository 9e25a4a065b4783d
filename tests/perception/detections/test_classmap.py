"""Class maps: the first rule that fits decides."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.perception.detections import ClassMap, class_map, read_class_map
from verifier.perception.detections.classmap import fits

TEXT = """\
# what the car has to know
human.pedestrian.* -> ped    # grown-ups and children
vehicle.* → obs
traffic cone -> obs
static_object.* -> dont_care
animal ->
* -> ignore
"""


def test_a_file_by_hand(tmp_path):
    path = tmp_path / "classes.map"
    path.write_text(TEXT, encoding="utf-8")
    found = read_class_map(path)
    assert found.classes == ("ped", "obs")
    wanted = {
        "human.pedestrian.adult": "ped",
        "human": "ignore",
        "vehicle.car": "obs",
        "traffic cone": "obs",
        "static_object.bicycle_rack": "dont_care",
        "animal": "ignore",
        "": "ignore",
    }
    assert {name: found.target(name) for name in wanted} == wanted


def test_names_that_no_rule_fits_are_unknown():
    assert class_map({"Car": "obs"}).target("car") is None
    assert class_map([("a.c", "x")]).target("abc") is None


@pytest.mark.parametrize("rules", [(("", "a"),), (("a", "b"), ("a", "c")), (("a", "empty"),), (("a", ""),)])
def test_maps_that_cannot_be_are_refused(rules):
    with pytest.raises(ValueError, match=r"pattern|target"):
        ClassMap(rules)


@given(st.text("ab.*", max_size=5), st.text("ab.", max_size=7))
def test_patterns_are_those_of_fnmatch(pattern, name):
    assert fits(pattern, name) == fnmatch.fnmatchcase(name, pattern)


@pytest.mark.parametrize(
    "rules", [[("car", "a"), ("", "b")], [("car", "a"), ("car", "b")], [("car", "a"), ("van", "")],
              [("car", "a"), ("van", "empty")]]
)  # fmt: skip
def test_one_rule_that_cannot_be_is_refused(rules):
    with pytest.raises(ValueError, match=r"only once|a class name other than 'empty'"):
        ClassMap(tuple(rules))
