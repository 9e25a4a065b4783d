"""Verdicts of `verify run` and what they rest on: real tracks that contradict the channel, and files without any."""

import copy
import json
import math
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import document_of
from scipy.stats import beta

from verifier.base.documents import read_document
from verifier.base.errors import ExitCode, InputError
from verifier.base.numbers import interval_text, number_text
from verifier.cli import main
from verifier.evidence.consistency import check_documents
from verifier.evidence.resting import conclusions_apart
from verifier.study.results import RunResult

CLASSES = "Pedestrian -> ped\nPerson* -> ped\nCar -> obs\nVan -> obs\nDontCare -> dont_care\n* -> ignore\n"
COUNT = (
    "confusion --format kitti_tracking --affinity centre_bev --match-threshold 2 --min-score 2 "
    "--distance ground_plane --classes ped,obs --bins 0,10,20,30,40,50,inf"
)
RUN = ("--planner", "feedback", "--set", "vmax=3", "--env", "ped", "--draws", "2000")
SOURCES = ("bounds", "interval", "point")
NO_TRACKS = "examples/nuscenes_yolov3_class.json"
SPEC = "specs/car_pedestrian.ltl"
MEMORYLESS = re.compile(r"if the detector is memoryless \(assumed; the data contradict it for ped, p = 0\.000\d+\)")


@pytest.fixture(scope="module")
def kitti(shared, tmp_path_factory):
    """PointRCNN on the KITTI drives, counted with its tracks."""
    folder, data = tmp_path_factory.mktemp("kitti"), shared / "data/kitti_tracking"
    (folder / "classes.txt").write_text(CLASSES)
    files = {"annotations": data / "label_02", "detections": data / "det_pointrcnn", "frames": data / "sequences.csv"}
    files |= {"class-map": folder / "classes.txt", "output": folder / "counts.json"}
    named = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    assert main([*COUNT.split(), *named]) == 0
    return folder / "counts.json"


@pytest.fixture
def spec(root, tmp_path):
    """One requirement that every source of verdicts finds satisfied, and one that every source finds violated."""
    formula = "[ G (!ped | x < stop_cell | at_line) ]"  # stops_for_pedestrians
    model = root / "models/car_pedestrian.toml"
    (tmp_path / "two.ltl").write_text(f'model "{model}"\nlow: P >= 0.0005 {formula}\nhigh: P >= 0.99 {formula}\n')
    return tmp_path / "two.ltl"


@pytest.fixture
def run(root, monkeypatch, capfd):
    """Run `verify run`: exit code, and the table or, with --json, the document; every document is consistent."""
    monkeypatch.chdir(root)

    def call(spec, cm, *arguments):
        capfd.readouterr()
        code = main(["run", str(spec), "--cm", str(cm), *arguments])
        captured = capfd.readouterr()
        assert captured.err == ""
        if "--json" not in arguments:
            return code, captured.out
        found = json.loads(captured.out)
        read = read_document(RunResult, found, "run.json")
        assert conclusions_apart("run.json", read, read.settings) == []
        for requirement in found["requirements"]:
            for point in requirement["points"]:
                ends = point.get("uncertainty", {}).get("interval")
                if ends is not None and not ends["lower"] <= point["probability"] <= ends["upper"]:
                    assert any(remark.startswith("P lies outside its interval") for remark in found["remarks"])
        return code, found

    return call


@pytest.mark.parametrize("source", SOURCES)
def test_nothing_is_decided_by_a_channel_that_the_data_contradict(kitti, spec, run, source):
    code, found = run(spec, kitti, *RUN, "--verdict-from", source, "--json")
    assert (code, found["verdict"], found["channel"]["test"]) == (
        ExitCode.INCONCLUSIVE,
        "inconclusive",
        "contradicted",
    )
    for requirement, model in zip(found["requirements"], ("satisfied", "violated"), strict=True):
        assert requirement["verdict"] == "inconclusive"
        worst = requirement["points"][requirement["worst"]]
        assert worst["reason"]["p_value"] < 0.01
        assert worst["reason"] | {"p_value": None} == {
            "kind": "dependence",
            "label": "ped",
            "p_value": None,
            "model_verdict": model,
        }
        assert (worst["basis"], worst["condition"]) == (None, None)
        assert "additional_data" not in requirement  # no amount of data mends the channel


@pytest.mark.every(4)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("name", "verdict", "expected"), [("low", "satisfied", 0), ("high", "violated", 1)])
def test_a_contradicted_channel_that_is_assumed_decides_and_says_so(
    kitti, spec, run, source, name, verdict, expected
):
    chosen = (*RUN, "--verdict-from", source, "--requirement", name, "--assume-memoryless")
    code, found = run(spec, kitti, *chosen, "--json")
    assert (code, found["verdict"]) == (expected, verdict)
    (requirement,) = found["requirements"]
    deciding = [point for point in requirement["points"] if point["verdict"] == verdict]
    assert {point["basis"] for point in deciding} == {"assumed"}
    for part in (found, requirement, *deciding):
        # An interval from resampled drives is approximate, and the verdict says so as with --bounds approximate.
        resampled = "drives are independent (approximate: Bayesian bootstrap) and "
        assert (resampled in part["condition"]) == (source == "interval")
        assert MEMORYLESS.fullmatch(part["condition"].replace(resampled, ""))
    assert found["settings"]["assume_memoryless"] is True


def test_the_table_says_what_is_assumed_and_what_contradicts_it(kitti, spec, run):
    _, table = run(spec, kitti, *RUN)
    assert table.count("!" * 100) == 2
    assert "warning: memoryless assumption rejected: after a missed ped" in table
    assert "obs" not in table.split("warning: ")[1].split("!!!")[0]  # no chain of this run draws that class
    assert (
        table.count("the data contradict a memoryless detector (ped, p = 0.00034); the contradicted model gives") == 2
    )
    assert "95 % confidence bounds (independent drives)" in table
    assert "effective number" in table
    assert table.splitlines()[-1] == "verdict: inconclusive"
    code, table = run(spec, kitti, *RUN, "--requirement", "low", "--assume-memoryless")
    row = next(line for line in table.splitlines() if line.startswith("low"))
    assert code == 0
    assert re.search(f"satisfied, {MEMORYLESS.pattern}$", row)
    assert re.fullmatch(f"verdict: satisfied, {MEMORYLESS.pattern}", table.splitlines()[-1])


def test_drives_without_tracks_are_a_condition_and_strict_refuses_it(kitti, spec, run, tmp_path):
    content = json.loads(kitti.read_text())
    del content["dependence"]
    (tmp_path / "counts.json").write_text(json.dumps(content))
    chosen = (tmp_path / "counts.json", *RUN, "--requirement", "low")
    code, found = run(spec, *chosen, "--json")
    assert (code, found["verdict"]) == (0, "satisfied")
    assert found["condition"] == "if the detector is memoryless (not tested)"
    assert found["settings"]["confidence"]["bounds"]["tier"] == "independent_drives"
    code, found = run(spec, *chosen, "--strict", "--json")
    assert (code, found["verdict"], found["condition"]) == (ExitCode.INCONCLUSIVE, "inconclusive", None)
    points = found["requirements"][0]["points"]
    assert {point["reason"]["condition"] for point in points} == {"if the detector is memoryless (not tested)"}


class TestBins:
    """Slow cars brake within 6 m and need the first bin only; faster ones brake within 15 m and need two."""

    NEAR = RUN
    FAR = tuple(word.replace("vmax=3", "vmax=5") for word in RUN)
    LOW = ("--requirement", "low", "--json")

    @staticmethod
    def changed(path, folder, change):
        """The file with other tests of the bins of class ped."""
        content = json.loads(path.read_text())
        change(next(each for each in content["dependence"]["classes"] if each["label"] == "ped"))
        (folder / "changed.json").write_text(json.dumps(content))
        return folder / "changed.json"

    def test_the_channel_counts_the_bins_that_chains_draw(self, kitti, spec, run, tmp_path):
        def only_far(test):
            for each in test["bins"]:
                each["p_value"] = 0.4 if each["bin"] == 0 else 0.0001

        counts = self.changed(kitti, tmp_path, only_far)
        _, found = run(spec, counts, *self.NEAR, *self.LOW)
        (ped,) = found["channel"]["classes"]
        assert (ped["bins"], ped["test"], ped["p_value"]) == ([0], "not_contradicted", 0.4)
        assert found["condition"] is None
        assert "dependence" not in {
            (point["reason"] or {}).get("kind") for point in found["requirements"][0]["points"]
        }
        assert not any("memoryless" in remark for remark in found["remarks"])
        assert "dependence" in found["matrices"]
        _, far = run(spec, counts, *self.FAR, *self.LOW)
        (ped,) = far["channel"]["classes"]
        assert (ped["bins"], ped["test"]) == ([0, 1], "contradicted")
        assert far["verdict"] == "inconclusive"

    def test_a_class_that_is_tested_far_away_only(self, kitti, spec, run, tmp_path):
        counts = self.changed(kitti, tmp_path, lambda test: test["bins"].pop(0))
        chosen = (*self.NEAR, *self.LOW, "--verdict-from", "point")
        _, found = run(spec, counts, *chosen)
        assert found["channel"]["classes"] == [{"label": "ped", "test": "untested", "bins": [0]}]
        assert found["verdict"] == "satisfied"
        assert found["condition"] == "if the detector is memoryless (not tested)"

    def test_a_file_without_bins_has_the_test_of_the_class(self, kitti, spec, run, tmp_path):
        counts = self.changed(kitti, tmp_path, lambda test: test.pop("bins"))
        _, found = run(spec, counts, *self.NEAR, *self.LOW)
        (ped,) = found["channel"]["classes"]
        assert (ped["test"], found["verdict"]) == ("contradicted", "inconclusive")
        assert "bins" not in ped

    def test_readers_recompute_it_from_the_document(self, kitti, spec, run, tmp_path):
        _, found = run(spec, kitti, *self.NEAR, *self.LOW)
        check_documents([document_of(found)])
        for change, where in (
            (lambda ped: ped.update(bins=[]), "/channel/classes/0/"),
            (lambda ped: ped.update(bins=[1]), "/channel/classes/0/"),
            (lambda ped: ped.pop("bins"), "/channel/classes/0: expected bins, as the matrices"),
            (lambda ped: ped.update(after_miss=1), "/channel/classes/0/after_miss"),
        ):
            forged = copy.deepcopy(found)
            change(forged["channel"]["classes"][0])
            with pytest.raises(InputError) as caught:
                check_documents([document_of(forged)])
            assert where in str(caught.value)


class TestWithoutSequences:
    FAST = ("--env", "ped", "--draws", "2000")

    def test_the_verdict_keeps_its_value_and_carries_its_condition(self, run):
        code, found = run(SPEC, NO_TRACKS, *self.FAST, "--json")
        assert (code, found["verdict"], found["condition"]) == (1, "violated", "if items are independent")
        by_name = {each["name"]: each for each in found["requirements"]}
        assert by_name["stops_for_pedestrians"]["condition"] == "if items are independent"
        assert found["channel"] == {"test": "untested", "classes": [{"label": "ped", "test": "untested"}]}
        # No detector can make this one fail: nothing is assumed.
        (point,) = by_name["never_stalls_early"]["points"]
        assert (point["verdict"], point["basis"], point["condition"]) == ("satisfied", "any_dependence", None)
        assert point["whatever_predicted"] == 1
        _, table = run(SPEC, NO_TRACKS, *self.FAST)
        row = next(line for line in table.splitlines() if line.startswith("stops_for_pedestrians"))
        assert row.endswith("  violated, if items are independent")
        assert "never_stalls_early holds whatever the detector predicts" in table
        held = "predicts, as long as it has no false positives" in table
        assert held == ("made without unmatched detections" in table)  # their column is held by convention
        assert table.splitlines()[-1] == "verdict: violated, if items are independent"

    def test_how_far_rates_may_shift_before_the_verdict_falls(self, run):
        # P is one rate, seen in 31 of 158 items; those of the column's three report groups are bounded at once.
        _, found = run(SPEC, NO_TRACKS, *self.FAST, "--requirement", "stops_for_pedestrians", "--json")
        rates = found["settings"]["confidence"]["bounds"]["chances"]
        upper = beta(32, 127).ppf(1 - 0.05 / rates / 2)
        (requirement,) = found["requirements"]
        assert requirement["tipping_points"] == {
            "largest_icc": None,
            "icc_verdict": None,
            "largest_shift": math.floor((0.95 - upper) * 1000) / 1000,
            "shift_verdict": "violated",
        }

    def test_a_larger_shift_opens_the_verdict_that_stands_up_to_a_smaller_one(self, run):
        chosen = (*self.FAST, "--requirement", "stops_for_pedestrians", "--shift", "1")
        _, table = run(SPEC, NO_TRACKS, *chosen)
        assert table.splitlines()[-1] == "verdict: inconclusive"
        (line,) = [line for line in table.splitlines() if "rate shifts by more than" in line]
        assert ": violated as long as no observation's rate shifts by more than 0." in line

    @pytest.mark.parametrize("source", SOURCES)
    def test_strict_makes_it_inconclusive(self, run, source):
        chosen = (*self.FAST, "--requirement", "stops_for_pedestrians", "--verdict-from", source)
        code, found = run(SPEC, NO_TRACKS, *chosen, "--json")
        memoryless = "if the detector is memoryless (not tested)"
        condition = memoryless if source == "point" else "if items are independent"
        assert (code, found["verdict"], found["condition"]) == (1, "violated", condition)
        code, found = run(SPEC, NO_TRACKS, *chosen, "--strict", "--json")
        assert (code, found["verdict"]) == (ExitCode.INCONCLUSIVE, "inconclusive")
        (point,) = found["requirements"][0]["points"]
        assert point["reason"] == {"kind": "untested", "condition": condition, "model_verdict": "violated"}

    def test_strict_and_assuming_exclude_each_other(self, root, monkeypatch, capfd):
        monkeypatch.chdir(root)
        assert main(["run", SPEC, "--cm", NO_TRACKS, "--strict", "--assume-memoryless"]) == ExitCode.USAGE
        assert "name one of the two" in capfd.readouterr().err


PROBABILITIES = st.integers(0, 10**12).map(lambda count: count / 10**12) | st.integers(0, 10**5).flatmap(
    lambda count: st.sampled_from([count / 10**10, 1 - count / 10**10])
)


@given(PROBABILITIES, PROBABILITIES, PROBABILITIES)
def test_a_printed_probability_lies_in_its_printed_bounds(first, second, third):
    lower, probability, upper = sorted((first, second, third))
    low, high = map(Fraction, interval_text(lower, upper)[1:-1].split(", "))
    assert low <= Fraction(number_text(probability)) <= high
