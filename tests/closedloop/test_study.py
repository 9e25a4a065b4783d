"""The whole story: on real logs against plain Python, and its remarks and refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from plain_area import rectangle_area, worst_case
from plain_vehicle import drive
from real_logs import TWO_METRES, field_logs, scene_counts, scene_logs
from small_logs import made_detections, made_logs, straight

from verifier.base.errors import InputError, LimitError, UsageError
from verifier.closedloop.closed_loop_curve import LoopSettings, standard_sensitivities
from verifier.closedloop.comparison import BASELINE
from verifier.closedloop.cutting import in_view, positive_by_path, windows
from verifier.closedloop.fieldsafe import Drawing, drawn_detections
from verifier.closedloop.logs import standardizer_of
from verifier.closedloop.pathifier import PathSettings, Radii, courses, paths_of, violation_m
from verifier.closedloop.study import sources_of, study
from verifier.closedloop.study_settings import METRICS, StudySettings
from verifier.closedloop.traces import VehicleSettings


def settings(radius_m, **changes):
    loop = LoopSettings(VehicleSettings(), "steps")
    given = {"policy": TWO_METRES, "draws": 100, **changes}
    return StudySettings(Radii(radius_m, 0.75 * radius_m), loop, standard_sensitivities(), **given)


@pytest.fixture(scope="module")
def nuscenes(shared):
    """The scene with three detectors, in eight logs; a wide control radius, for nobody comes near the car's path."""
    logs = scene_logs(shared / "data/nuscenes_mini_val/scene-0916")
    return positive_by_path(windows(logs, 2.4), 6.0, PathSettings()), 6.0


@pytest.fixture(scope="module")
def fieldsafe(shared):
    """The drive in 48 logs, with reports drawn from two detectors' counts on nuScenes, one of them also in "fog"."""
    logs = in_view(field_logs(shared / "data/fieldsafe"), math.pi / 4)
    sources = {"centerpoint": "centerpoint", "megvii": "megvii", "centerpoint@fog": "megvii"}
    for seed, (name, detector) in enumerate(sources.items()):
        counts = scene_counts(shared / "data/nuscenes_mini_val/scene-0916", detector)
        drawing = Drawing(empty_columns="neighbour", position_error_m=0.1)
        logs = drawn_detections(logs, counts, "ped", np.random.default_rng(seed), name, drawing)
    return positive_by_path(windows(logs, 6.0), 2.0, PathSettings()), 2.0


@pytest.mark.parametrize("data", ["nuscenes", "fieldsafe"])
def test_real_logs_end_to_end(data, request):
    """Every metric at a hundred sensitivities; single runs are driven again, areas found again, by plain Python."""
    logs, radius_m = request.getfixturevalue(data)
    chosen = settings(radius_m, metrics=METRICS)
    found = study(logs, None, chosen)
    assert [each.metric for each in found.tables] == list(METRICS)
    assert found.logs.positive + found.logs.negative == logs.log_count
    assert found.second is not None
    assert found.second.runs == found.logs.positive * 100 * len(logs.detections)
    for table in found.tables:
        for row in table.rows:
            for cell in row.cells:
                members = [table.curves[cell.detector, each].curve for each in row.conditions]
                points = [
                    np.column_stack([each.sensitivity, each.safety, each.efficiency]).tolist() for each in members
                ]
                assert cell.area == pytest.approx(float(rectangle_area(worst_case(points))), abs=1e-12)
    loop = found.tables[-1]
    for source in sources_of(logs.detections):
        standard = standardizer_of(logs, source.name.partition("@")[0], TWO_METRES)
        runs = courses(logs, source.name, standard, radius_m)
        curve = loop.curves[source.detector, source.condition].curve
        for at in (0, 60, 99):
            level = curve.sensitivity[at]
            driven = [(drive(each, level), drive(each, None), each.positive) for each in runs]
            safe = [own.stop_m <= true.stop_m + 1e-6 for own, true, positive in driven if positive]
            lost = [(own.steps, true.steps) for own, true, positive in driven if not positive]
            assert curve.safety[at] == pytest.approx(sum(safe) / len(safe))
            own, true = map(sum, zip(*lost, strict=True))
            assert curve.efficiency[at] == pytest.approx(true / own)
            near = violation_m(logs, paths_of(logs), 0.75 * radius_m)
            kept = [not run[0].stop_m > limit + 1e-6 for run, limit in zip(driven, near, strict=True) if run[2]]
            other = found.tables[-2].curves[source.detector, source.condition].curve
            assert other.safety[at] == pytest.approx(sum(kept) / len(kept))
            assert other.efficiency[at] == curve.efficiency[at]


def test_logs_in_which_the_truth_never_stops():
    # In "gone" somebody stands 3 m from the control radius at the first image, and nobody later; "there" stays.
    drives = {"gone": (True, straight(9)), "free": (False, straight(9)), "there": (True, straight(9))}
    people = [(0, 5, 0), *((image, 7, 0) for image in range(18, 27))]
    logs = made_logs(drives, people, {"x": [(image, 0.5, 7, 0) for image in range(18, 27)]})
    chosen = replace(settings(2.0, metrics=("closed_loop",)), radii=Radii(2.0, 1.5))
    found = study(logs, None, chosen)
    assert (found.logs.positive, found.logs.truth_never_stops) == (2, ("gone",))
    # Where "x" stays silent, one of two positive logs is safe by definition.
    silent = replace(logs, detections={"x": made_detections([])})
    assert study(silent, None, chosen).tables[0].rows[0].cells[0].area == 0.5


def test_a_bootstrap_too_large_is_refused_with_its_size():
    drives = {f"{kind} {n}": (kind == "p", straight(9)) for kind in "pn" for n in range(2)}
    logs = made_logs(drives, [(image, 7, 0) for image in range(18)], {"x": []})
    with pytest.raises(
        LimitError, match=r"2000000 draws of 4 logs at 100 levels need about 6\.02 GiB; at most 1\.49"
    ):
        study(logs, None, settings(2.0, draws=2_000_000))


def test_sources_and_their_conditions():
    logs = made_logs({"a": (True, straight(3))}, [], {"x@fog": [], "x": [], "y@1": [], "y": []})
    found = [(each.name, each.detector, each.condition) for each in sources_of(logs.detections)]
    # Baselines first; the last @ counts.
    assert found[:2] == [("x", "x", BASELINE), ("y", "y", BASELINE)]
    assert ("y@1", "y", "1") in found
    with pytest.raises(
        UsageError, match="there is no source 'z' with the detections on the images as they were taken"
    ):
        sources_of(made_logs({"a": (True, straight(3))}, [], {"z@fog": []}).detections)
    with pytest.raises(UsageError, match="no source 'y@1' with"):
        sources_of(made_logs({"a": (True, straight(3))}, [], {"y@1@fog": []}).detections)


def test_a_metric_that_is_undefined_is_named():
    # Somebody in the way, but never within 10 m of the vehicle: the Roboticizer's safety is undefined.
    drives = {"p": (True, straight(5)), "n": (False, straight(5))}
    logs = made_logs(drives, [(image, 15, 0) for image in range(5)], {"x": [(0, 0.5, 15, 0)]})
    far = settings(14.0, metrics=("roboticizer",))
    with pytest.raises(InputError, match="roboticizer: no person that counts here"):
        study(logs, None, far)
    # With leave to skip, its value is "not defined", with the reason.
    found = study(logs, None, replace(far, metrics=("roboticizer", "closed_loop"), skip_undefined=True))
    assert [each.metric for each in found.tables] == ["closed_loop"]
    assert [each.metric for each in found.not_defined] == ["roboticizer"]
    assert found.not_defined[0].reason.startswith("no person that counts")


def test_a_loop_in_which_nothing_has_to_be_stopped_for_has_no_safety():
    # With a control radius of 2 m nobody is near enough: whatever a detector does, even a blind one, would be "safe".
    drives = {"p": (True, straight(5)), "n": (False, straight(5))}
    logs = made_logs(drives, [(0, 14, 0)], {"x": [(0, 0.5, 14, 0)], "blind": []})
    found = study(logs, None, settings(2.0, metrics=("roc_a", "closed_loop")))
    assert [each.metric for each in found.tables] == ["roc_a"]
    assert [str(each) for each in found.not_defined] == [
        "closed_loop: not defined, the reference vehicle stops in no positive log"
    ]
    with pytest.raises(InputError, match="closed_loop: not defined, the reference vehicle stops in no positive log"):
        study(logs, None, settings(2.0, metrics=("closed_loop",)))
