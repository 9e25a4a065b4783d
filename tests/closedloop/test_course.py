"""What a course must be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_courses import course

whole = course(True, [0, 1, 1, 3], [(0, 2.0, 0.1), (3, np.inf, np.inf)], [(1, 0.0)])


def test_where_a_run_ends_that_was_not_stopped():
    assert whole.finish_m == 13
    assert course(False, [0, 1, 3]).finish_m == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_s_m": np.array([])}, "at least one image"),
        ({"image_s_m": np.array([0, 2, 1, 3.0])}, "image_s_m must be finite and never decrease"),
        ({"image_s_m": np.array([0, 1, np.nan, 3.0])}, "image_s_m must be finite"),
        ({"end_s_m": 2.9}, "ends at 2.9, before the last image at 3.0"),
        ({"end_s_m": np.inf}, "the path ends at inf"),
        ({"detection_distance_m": np.array([-0.1, 1.0])}, "detection_distance_m must hold numbers from 0"),
        ({"detection_distance_m": np.array([np.nan, 1.0])}, "detection_distance_m must hold numbers from 0"),
        ({"detection_sensitivity": np.array([np.nan, 1.0])}, "detection_sensitivity must hold numbers from 0"),
        ({"detection_image": np.array([0, 4])}, r"detection_image has an index outside 0\.\.3"),
        ({"detection_image": np.array([-1, 0])}, r"detection_image has an index outside 0\.\.3"),
        ({"truth_distance_m": np.array([1.0, 2.0])}, r"truth_distance_m has shape \(2,\), expected \(1,\)"),
        ({"positive": False}, "a negative log has no people on its path"),
    ],
)
def test_courses_that_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(whole, **change)
