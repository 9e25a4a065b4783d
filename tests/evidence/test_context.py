"""The context of a case: read from TOML, every fault named with file, line and key."""

from fractions import Fraction
from pathlib import Path

import pytest

from verifier.base.errors import InputError
from verifier.evidence.context import CaseContext, read_context
from verifier.evidence.rates.document import Acceptance
from verifier.evidence.rates.exposure import Exposure

WHOLE = """
[system]
name = "Shuttle"
description = "Emergency brake"

[odd]
description = "Campus roads"

[detector]
name = "YOLO"
version = "3"
trained_on = ["0001", "01*"]

[dataset]
name = "KITTI"

[exposure.ped]
encounters = 240
hours = 20
source = "Drives of March"

[exposure.obs]
between = [10, 14.5]
level = 0.99

[exposure.empty]
per_hour = 0.1

[acceptance.stops]
per_hour = 1e-7
source = "Analysis 3.2"

[responsible]
requirements = "A. Person"
"""


def written(tmp_path, text):
    path = tmp_path / "case.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_everything(tmp_path):
    found = read_context(written(tmp_path, WHOLE))
    assert (found.system, found.odd, found.dataset) == ("Shuttle: Emergency brake", "Campus roads", "KITTI")
    assert (found.detector.name, found.detector.version, found.detector.trained_on) == ("YOLO", "3", ("0001", "01*"))
    assert found.exposures == {
        "ped": Exposure.counted(240, Fraction(20), "Drives of March"),
        "obs": Exposure(Fraction(10), Fraction(29, 2), level=Fraction(99, 100)),
        "empty": Exposure.stated(Fraction(1, 10)),
    }
    assert found.acceptances == {"stops": Acceptance(Fraction(1, 10**7), "Analysis 3.2")}
    assert found.responsible == {"requirements": "A. Person"}
    assert found.file is not None
    assert found.file[0] == "case.toml"


def test_nothing(tmp_path):
    found = read_context(written(tmp_path, ""))
    assert found == CaseContext(file=found.file)
    assert CaseContext().detector.trained_on is None
    assert read_context(written(tmp_path, "[detector]\ntrained_on = []")).detector.trained_on == ()


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("[sytem]\nname = 'x'", "case.toml:1: sytem", "did you mean 'system'"),
        ("[system]\nnam = 'x'", "case.toml:2: system.nam", "did you mean 'name'"),
        ("[system]\nname = 3", "case.toml:2: system.name", "expected a text in quotes"),
        ("[system]\nname = ''", "case.toml:2: system.name", "not empty"),
        ('[odd]\ndescription = "a\\u202eb"', "case.toml:2: odd.description", "printable"),
        ("[detector]\ntrained_on = 'x'", "case.toml:2: detector.trained_on", "expected a list"),
        ("[detector]\ntrained_on = [1]", "detector.trained_on[0]", "expected a text in quotes"),
        ("[exposure.ped]\nencounters = 3", "case.toml:1: exposure.ped", "one way to say how often"),
        ("[exposure.ped]\nper_hour = 3\nhours = 2", "case.toml:1: exposure.ped", "one way to say how often"),
        ("[exposure.ped]\nencounters = 3\nhours = 0", "case.toml:3: exposure.ped.hours", "above 0"),
        ("[exposure.ped]\nencounters = -3\nhours = 1", "case.toml:2: exposure.ped.encounters", "whole number"),
        ("[exposure.ped]\nper_hour = -1", "case.toml:2: exposure.ped.per_hour", "a number from 0"),
        ("[exposure.ped]\nper_hour = nan", "case.toml:2: exposure.ped.per_hour", "a number from 0"),
        ("[exposure.ped]\nper_hour = 1\nlevel = 0.9", "case.toml:3: exposure.ped.level", "only a stated interval"),
        ("[exposure.ped]\nbetween = [3]", "case.toml:2: exposure.ped.between", "at least 2"),
        ("[exposure.ped]\nbetween = [1, 2, 3]", "case.toml:2: exposure.ped.between", "two ends"),
        ("[exposure.ped]\nbetween = [3, 2]", "case.toml:2: exposure.ped.between", "not above the upper"),
        ("[exposure.ped]\nbetween = [2, 3]\nlevel = 1", "case.toml:3: exposure.ped.level", "strictly between"),
        ("[acceptance.stops]\nsource = 'x'", "case.toml:1: acceptance.stops", "missing key 'per_hour'"),
        ("[acceptance.stops]\nper_hour = 0", "case.toml:2: acceptance.stops.per_hour", "above 0"),
        ("[responsible]\nrequirement = 'x'", "case.toml:2: responsible.requirement", "did you mean 'requirements'"),
        ("exposure = 3", "case.toml:1: exposure", "expected a table"),
        ("[system]\nname = = 3", "case.toml:2:8", "not TOML"),
    ],
)
def test_faults_are_named_with_their_place(tmp_path, text, where, message):
    with pytest.raises(InputError) as caught:
        read_context(written(tmp_path, text))
    assert where in str(caught.value)
    assert message in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_context(Path(tmp_path / "none.toml"))
