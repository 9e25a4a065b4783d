"""What commands of perception do where nobody asks for more."""

from dataclasses import fields

import pytest

from verifier.perception.settings import CountSettings, MergeSettings, ReplaySettings


@pytest.mark.parametrize("settings", [CountSettings, MergeSettings, ReplaySettings])
def test_nothing_is_done_beside_what_was_asked_for(settings):
    switches = {field.name: field.default for field in fields(settings) if isinstance(field.default, bool)}
    assert "json" in switches
    assert not any(switches.values())


def test_numbers_where_none_was_given():
    defaults = {field.name: field.default for field in fields(ReplaySettings)}
    assert {name: defaults[name] for name in ("draws", "seed", "confidence")} == {
        "draws": 100,
        "seed": 0,
        "confidence": 0.95,
    }
    assert {"max", "min"} <= {field.name for field in fields(CountSettings)}
