"""The options that say what confidence bounds assume, through `verify run` on matrices of simulated drives."""

import json

import numpy as np
import pytest
from drive_tables import write_drives

from verifier.analysis.intervals.tiers import BoundsBasis, LargestDrive
from verifier.base.errors import ExitCode
from verifier.perception.confusion import read_confusion
from verifier.study.provenance import _ceiling_remark

ARGUMENTS = ("--requirement", "stops_for_pedestrians", "--env", "ped", "--planner", "published", "--draws", "2000")


@pytest.fixture(scope="module")
def drives(root, tmp_path_factory):
    """The published matrices, their items divided among 30 drives."""
    matrices = read_confusion(root / "examples/nuscenes_yolov3_class.json").matrices
    rng = np.random.default_rng(1)
    share = rng.dirichlet(np.full(30, 2.0))
    counts = np.moveaxis(rng.multinomial(matrices.counts, share), -1, 0)
    labels = [next(iter(label)) if label else "empty" for label in matrices.labels]
    folder = tmp_path_factory.mktemp("drives")
    return write_drives(folder / "drives.json", counts, labels, matrices.edges_m.tolist())


@pytest.fixture
def run(verify, root, monkeypatch, drives):
    monkeypatch.chdir(root)

    def call(*options, cm=drives):
        return verify("run", "specs/car_pedestrian.ltl", "--cm", cm, *ARGUMENTS, *options)

    return call


def bounds_of(run, *options):
    """The basis of the bounds, and P with its bounds in the first scenario."""
    _, out, err = run(*options, "--json")
    assert err == ""
    content = json.loads(out)
    point = content["requirements"][0]["points"][0]
    ends = point["uncertainty"]["confidence_bounds"]
    return content["settings"]["confidence"]["bounds"], (ends["lower"], point["probability"], ends["upper"])


@pytest.mark.parametrize(
    ("options", "tier", "conditional"),
    [
        ((), "independent_drives", False),
        (("--bounds", "drives"), "independent_drives", False),
        (("--weights", "drive"), "independent_drives", False),
        (("--largest-drive", "500"), "independent_drives", False),
        (("--bounds", "approximate"), "approximate", True),
        (("--icc-at-most", "0.05"), "icc_at_most", True),
        (("--assume-independent-items",), "independent_items", True),
        (("--bounds", "anytime"), "anytime", True),
    ],
)
def test_every_tier_says_what_it_is_and_holds_its_point(run, options, tier, conditional):
    basis, (low, point, high) = bounds_of(run, *options)
    assert (basis["tier"], basis["conditional"]) == (tier, conditional)
    assert low < point < high


def test_the_more_is_assumed_the_narrower_the_bounds(run):
    widths = []
    for options in (("--assume-independent-items",), ("--icc-at-most", "0.05"), ("--bounds", "drives")):
        _, (low, _, high) = bounds_of(run, *options)
        widths.append(high - low)
    assert widths == sorted(widths)
    assert widths[0] < 0.5 * widths[-1]


def test_the_point_has_the_weights_of_its_bounds(run):
    by_item, by_drive = (bounds_of(run, "--weights", weights)[1][1] for weights in ("item", "drive"))
    assert by_item != by_drive
    assert by_item == pytest.approx(by_drive, abs=0.1)  # drives are alike


def test_the_same_matrices_have_not_become_worse_whatever_their_weights(run, drives):
    _, out, _ = run("--weights", "drive", "--baseline", drives, "--max-drop", "0", "--json")
    found = json.loads(out)
    (drop,) = found["gates"]["regression"]["drops"]
    assert drop["before"] == drop["now"] == found["requirements"][0]["points"][0]["probability"]


def test_drives_that_count_once_hold_no_items(run):
    _, out, _ = run("--weights", "drive")
    assert "  30 drives, each counted once.\n" in out
    assert "of a column's items" not in out


def test_draws_must_suffice_for_all_looks(run):
    _, out, _ = run("--bounds", "approximate", "--looks", "5", "--draws", "301")
    assert "note: 301 draws are too few for bounds at 5 looks; use --draws 1517 or more" in out
    assert (
        "the amount of data was not estimated; 301 draws are too few for bounds at 5 looks; use --draws 1517 or more."
        in out
    )
    assert "P is too close to the target" not in out


def test_looks_and_shifts_widen_bounds(run):
    _, plain = bounds_of(run)
    for options in (("--looks", "20"), ("--shift", "0.01")):
        _, wider = bounds_of(run, *options)
        assert wider[0] < plain[0]
        assert wider[2] > plain[2]
    declared = bounds_of(run, "--largest-drive", "500")[1]
    assert bounds_of(run, "--largest-drive", "500", "--looks", "20")[1] == declared


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--bounds", "items"), ExitCode.USAGE, "--assume-independent-items"),
        (("--weights", "track"), ExitCode.USAGE, "do not say which items are of one track"),
        (("--largest-drive", "2"), ExitCode.BAD_INPUT, "and no drive is said to hold more than 2"),
        (("--icc-at-most", "1.5"), ExitCode.USAGE, "expected a number from 0 to 1, got '1.5'"),
        (("--shift", "nan"), ExitCode.USAGE, "expected a number from 0 to 1, got 'nan'"),
        (("--looks", "0"), ExitCode.USAGE, "expected a whole number from 1 to 2147483647, got '0'"),
        (("--looks", "9999999999"), ExitCode.USAGE, "expected a whole number from 1 to 2147483647, got"),
        (("--bounds", "drives", "--assume-independent-items"), ExitCode.USAGE, "different assumptions"),
        (
            ("--point-only", "--weights", "drive"),
            ExitCode.USAGE,
            "--weights needs what --point-only",
        ),
        (("--point-only", "--shift", "0.1"), ExitCode.USAGE, "--shift needs what --point-only"),
    ],
)
def test_what_cannot_be_is_refused(run, options, code, words):
    found, out, err = run(*options)
    assert (found, out) == (code, "")
    assert words in err
    assert "Traceback" not in err


@pytest.mark.parametrize("options", [("--bounds", "drives"), ("--weights", "drive"), ("--icc-at-most", "0.1")])
def test_without_drives_nothing_can_be_made_of_them(run, root, options):
    code, out, err = run(*options, cm=root / "examples/nuscenes_yolov3_class.json")
    assert (code, out) == (ExitCode.USAGE, "")
    assert "needs matrices that say which drive" in err


def test_bounds_by_drives_are_said_to_be_of_the_mean_matrix(run, root):
    said = "the mean of P over drives is another number"
    _, out, _ = run()
    assert said in out
    _, out, _ = run(cm=root / "examples/nuscenes_yolov3_class.json")
    assert said not in out


def test_what_few_drives_cannot_show_is_not_rounded_down():
    # Three drives show up to .2612 at most (one chance): that is not "no rate above .261".
    basis = BoundsBasis(
        tier="independent_drives",
        weights="item",
        level=0.95,
        chances=1,
        largest_drive=LargestDrive(False, ()),
        drives=3,
        ceiling=0.2612,
    )
    assert _ceiling_remark(basis)[0].startswith("with 3 drives no rate above 0.262 can be shown")


@pytest.mark.parametrize("option", [("--shift", "0.01"), ("--looks", "3")])
@pytest.mark.parametrize("source", ["interval", "point"])
def test_what_moves_the_bounds_is_refused_where_no_verdict_comes_from_them(run, option, source):
    code, out, err = run("--verdict-from", source, *option)
    assert (code, out) == (ExitCode.USAGE, "")
    assert f"{option[0]} moves the confidence bounds, and --verdict-from {source} ignores them" in err
