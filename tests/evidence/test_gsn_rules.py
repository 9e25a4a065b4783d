"""The checker of gsn2x's documented rules finds each breach of them, so that its silence means something."""

import pytest
from gsn_rules import complaints


def sound():
    return {
        "module": {"name": "m", "brief": "b"},
        "G1": {"text": "t", "supportedBy": ["S1"], "inContextOf": ["C1"]},
        "S1": {"text": "t", "supportedBy": ["G2", "G3"]},
        "G2": {"text": "t", "supportedBy": ["Sn1"], "defeated": True},
        "G3": {"text": "t", "undeveloped": True},
        "Sn1": {"text": "t"},
        "C1": {"text": "t"},
        "CG1": {"text": "t", "challenges": "G2", "supportedBy": ["CSn1"]},
        "CSn1": {"text": "t", "layer": "x"},
    }


def test_silent_where_all_is_well():
    assert complaints(sound()) == []


@pytest.mark.parametrize(
    ("element", "attributes", "rule"),
    [
        ("X1", {"text": "t"}, "V01"),
        ("G3", {"undeveloped": False}, "V02"),
        ("G2", {"undeveloped": True}, "V03"),
        ("G1", {"supportedBy": ["S1", "C1"]}, "V04"),
        ("Sn1", {"inContextOf": ["C1"]}, "V04"),
        ("CG1", {"supportedBy": ["Sn1"]}, "V04"),
        ("S1", {"supportedBy": ["G2", "G2", "G3"]}, "V05"),
        ("G3", {"supportedBy": ["G3"], "undeveloped": False}, "V06"),
        ("G3", {"defeated": True}, "V10"),
        ("G3", {"challenges": "G2"}, "V12"),
        ("C2", {"text": "t"}, "C01"),
        ("G1", {"inContextOf": ["C9"]}, "C03"),
        ("G3", {"supportedBy": ["G1"], "undeveloped": False}, "C01"),
        ("G2", {"supportedBy": ["S1"]}, "C04"),
        ("CG1", {"challenges": "G9"}, "C14"),
        ("CG1", {"challenges": ["G2"]}, "C11"),
        ("CG1", {"challenges": "CG1"}, "C13"),
        ("C1", {"name": "n"}, "would be read as the module"),
        ("C1", {"text": 1}, "text"),
        ("C1", {"extra": ["a"]}, "layer"),
        ("module", {"name": 1}, "mandatory"),
    ],
)
def test_finds_every_breach(element, attributes, rule):
    content = sound()
    content[element] = content.get(element, {}) | attributes
    assert any(rule in each for each in complaints(content)), complaints(content)


def test_finds_what_cannot_be_reached():
    content = sound() | {"G7": {"text": "t", "supportedBy": ["G8"]}, "G8": {"text": "t", "supportedBy": ["G7"]}}
    assert "C08: ['G7', 'G8']" in complaints(content)
