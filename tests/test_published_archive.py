"""The whole pipeline, from spec and matrices to Storm's numbers, against the archive of the published study.

The archived numbers are in `tests/data/published`; what the archive does not hold is computed by `published_chain`,
which knows nothing of the package.
"""

import json
from fractions import Fraction
from functools import cache
from pathlib import Path

import published_chain
import pytest
from published_matrices import CM1, CM3, NAMES, column_at_any_distance, precision_recall, write_matrix

from verifier.pipeline import verify_spec
from verifier.study.inputs import Selection
from verifier.study.options import RunOptions

ARCHIVE = json.loads((Path(__file__).parent / "data/published/probabilities.json").read_text(encoding="utf-8"))
ARCHIVED = {
    "cdc2021_CM1_true_ped": (CM1, "ped"),
    "cdc2021_CM1_true_obj": (CM1, "obs"),
    "cdc2021_CM3_true_ped": (CM3, "ped"),
}
FAMILY = [("0.7", "0.85"), ("0.95", "0.6"), ("0.9", "0.99")]
STUDY_VMAX = 10


@pytest.fixture
def spec(tmp_path, root):
    """What was archived: does the car ever stop at the line, where it should and where it should not."""
    path = tmp_path / "archive.ltl"
    path.write_text(
        f'model "{root / "models/car_pedestrian.toml"}"\nplanner published\n'
        "stops: P = ? [ F at_line ]\ndrives_on: P = ? [ G !at_line ]\n"
    )
    return path


def points_of(spec, columns, environment, speeds, decimals):
    """(vmax, v0) -> point of the requirement that the study reports for this environment."""
    selection = Selection(
        environments=(environment,),
        sweeps={"vmax": tuple(speeds)},
        requirements=("stops" if environment == "ped" else "drives_on",),
    )
    matrix = write_matrix(spec.with_name("matrix.json"), columns)
    [result] = verify_spec(
        spec, matrix, RunOptions(selection=selection, decimals=decimals, confidence=None)
    ).requirements
    found = {}
    for point in result.points:
        assert point.initial["x"] == 1
        found[int(point.constants["vmax"]), point.initial["v"]] = point
    assert len(found) == len(result.points)
    return found


@pytest.mark.parametrize("setting", ARCHIVED)
def test_the_archive_is_reproduced(spec, setting):
    columns, environment = ARCHIVED[setting]
    found = points_of(spec, columns, environment, range(1, STUDY_VMAX + 1), decimals=4)
    expected = {(int(vmax), v0): p for vmax, row in ARCHIVE[setting].items() for v0, p in enumerate(row, start=1)}
    assert len(expected) == 55
    assert {key: point.probability for key, point in found.items()} == pytest.approx(expected, rel=0, abs=1e-12)
    for key, point in found.items():
        if environment == "ped":
            assert point.second_engine == pytest.approx(expected[key], rel=0, abs=1e-12)
        # Rounded rows need not sum to 1, so 1 - P(F at_line) and P(reach the far end) differ; both are enclosed.
        assert point.lower <= expected[key] + 1e-12
        assert point.upper >= expected[key] - 1e-12
        assert point.lower <= point.second_engine <= point.upper


def test_without_rounding_the_archive_is_missed(spec):
    # 2/3 is archived as 0.6667: rounding is the archive's, not the pipeline's.
    found = points_of(spec, CM1, "ped", [1], decimals=None)
    assert found[1, 1].probability == pytest.approx(2 / 3, abs=1e-15)
    assert ARCHIVE["cdc2021_CM1_true_ped"]["1"] == [0.6667]


@cache
def expected_stop(precision, recall, environment, vmax, v0, decimals):
    column = column_at_any_distance(precision_recall(precision, recall), environment)
    return published_chain.stop_probability((1, v0), STUDY_VMAX, vmax, column, decimals)


@pytest.mark.every(5)
@pytest.mark.parametrize("decimals", [None, 4])
@pytest.mark.parametrize("environment", NAMES)
@pytest.mark.parametrize("setting", FAMILY, ids=" ".join)
def test_further_settings_agree_with_the_definition(spec, setting, environment, decimals, thorough):
    speeds = (1, 2, 4, 7, 10) if thorough else (1, 4)
    found = points_of(spec, precision_recall(*setting), environment, speeds, decimals)
    assert sorted(found) == [(vmax, v0) for vmax in speeds for v0 in range(1, vmax + 1)]
    for (vmax, v0), point in found.items():
        stop = expected_stop(*setting, environment, vmax, v0, decimals)
        expected = stop if environment == "ped" else 1 - stop
        assert 0 < expected < 1
        assert point.probability == pytest.approx(float(expected), rel=0, abs=1e-12)
        assert Fraction(point.lower) <= expected <= Fraction(point.upper)
