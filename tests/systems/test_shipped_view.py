"""The shipped model with a field of view, by hand: at one speed the car looks once, two cells before the end."""

import pytest
from matrix_documents import write_matrices

from verifier.base.errors import InputError
from verifier.pipeline import verify_spec
from verifier.study.options import RunOptions, Selection

# Pedestrians are seen with 3/4; where there are none, one is seen with 1/10 below 5 m, and with 1/20 beyond.
BINS = [
    {"distance_m": [0, 5], "counts": [[30, 0, 10], [0, 9, 0], [10, 1, 90]]},
    {"distance_m": [5, 10], "counts": [[30, 0, 5], [0, 9, 0], [10, 1, 95]]},
    {"distance_m": [10, None], "counts": [[30, 0, 0], [0, 9, 0], [10, 1, 95]]},
]


def stops(root, folder, environment, **constants):
    write_matrices(folder / "cm.json", labels=["ped", "obs", "empty"], false_positives="counted", bins=BINS)
    (folder / "s.ltl").write_text(
        f'model "{root}/models/car_pedestrian.toml"\nplanner published\nstops: P = ? [ F at_line ]\n'
    )
    selection = Selection(environments=(environment,), settings={"vmax": 1, "study_vmax": 1, **constants})
    result = verify_spec(folder / "s.ltl", folder / "cm.json", RunOptions(selection, confidence=None))
    (note,) = (each for each in result.remarks if "false positives arise" in each)
    return result.requirements[0].worst_point.probability, note


@pytest.mark.parametrize(
    ("environment", "view_m", "expected"),
    [
        ("empty", 0, 1 / 10),
        ("empty", 10, 1 - 9 / 10 * 19 / 20),
        ("ped", 0, 3 / 4),
        ("ped", 10, 1 - 1 / 4 * 19 / 20),
        ("obs", 10, 1 / 20),
    ],
)
def test_phantoms_stop_the_car_where_it_can_see_them(root, tmp_path, environment, view_m, expected):
    found, note = stops(root, tmp_path, environment, view_m=view_m)
    assert found == pytest.approx(expected, abs=1e-12)
    everywhere = "false positives arise in every bin of the field of view, 0 to 10 m, without an object"
    assert (
        note == everywhere if view_m else note.startswith("false positives arise only in the bins of declared places")
    )


def test_a_field_of_view_ends_where_a_bin_does(root, tmp_path):
    with pytest.raises(InputError, match=r"no bin ends at 7; edges are 0, 5, 10 m\n  hint: let the field"):
        stops(root, tmp_path, "empty", view_m=7)
