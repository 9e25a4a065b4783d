"""How often a command builds the structure of a case: chains and their products are what takes time and memory."""

import pytest

from tests.support.counted_work import counted_calls
from tests.support.small_bundles import write_inputs
from verifier.checking.product import build_product
from verifier.checking.worker import Worker
from verifier.cli import main
from verifier.perception.confusion.document import write_confusion
from verifier.perception.settings import CountSettings
from verifier.pipeline import verify_spec
from verifier.questions.audit import audited
from verifier.study.options import RunOptions
from verifier.systems.skeleton import build_skeleton

SPEC, MATRICES = "specs/car_pedestrian.ltl", "examples/nuscenes_yolov3_class.json"


def built(arguments):
    """Skeletons and products that one command builds."""
    with counted_calls(build_skeleton, build_product) as count:
        main([str(each) for each in arguments])
    return count["build_skeleton"], count["build_product"]


@pytest.mark.parametrize(
    ("command", "skeletons", "products"),
    [
        (["run"], 3, 12),  # 3 cases of 4 requirements
        (["run", "--planner", "all", "--requirement", "all_three"], 12, 12),  # 12 cases
        (["explain", "--requirement", "stops_for_pedestrians"], 3, 3),  # 3 cases
        (["require", "--requirement", "stops_for_pedestrians"], 3, 3),  # 3 cases
        (["compare", "--env", "ped", "--requirement", "all_three", "--planner", "all"], 4, 4),  # 4 cases
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_commands_on_the_car(command, skeletons, products, capsys):
    assert built([command[0], SPEC, "--cm", MATRICES, *command[1:]]) == (skeletons, products)


def test_an_audit_of_matching_verifies_all_matrices_in_one_structure_by_one_worker(tmp_path):
    truth, reported = (
        "sequence,frame,class,x,y\na,0,ped,5,0\na,0,ped,8,0\na,0,obs,12,0\nb,0,obs,10,0\n",
        "sequence,frame,class,score,x,y\na,0,ped,0.9,5,0\na,0,ped,0.8,13,0\na,0,obs,0.4,15,0\nb,0,obs,0.7,10,0\n",
    )
    (tmp_path / "truth.csv").write_text(truth)
    (tmp_path / "reported.csv").write_text(reported)
    tables = {"annotations": str(tmp_path / "truth.csv"), "detections": str(tmp_path / "reported.csv")}
    asked = CountSettings(
        format="table", **tables, bins="0,200", spec=SPEC, empty_columns="miss", matching_audit=True
    )
    with counted_calls(build_skeleton, build_product, Worker) as count:
        found = audited(asked)
    assert (count["build_skeleton"], count["build_product"], count["Worker"]) == (3, 12, 1)
    different = {each.counts.counts.tobytes(): each for each in found}
    assert len(different) == 3
    for each in different.values():  # each verified alone gives the same
        write_confusion(each.counts.matrices(), tmp_path / "alone.json")
        alone = verify_spec(SPEC, tmp_path / "alone.json", RunOptions(empty_columns="miss", confidence=None))
        assert each.probabilities == {one.name: one.worst_point.probability for one in alone.requirements}
    assert {each.probabilities["stops_only_for_pedestrians"] for each in found} == {0.5, 1}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """Of two cases with three requirements each; and what building it built."""
    folder = tmp_path_factory.mktemp("bundle")
    spec, matrices = write_inputs(folder)
    target = folder / "bundle.zip"
    return target, built(["evidence", "build", spec, "--cm", matrices, "-o", target])


def test_a_bundle_is_built(bundle):
    assert bundle[1] == (6, 21)  # 2 cases under 3 policies; and 3 maps of explanations, which start everywhere


def test_a_bundle_is_checked(bundle):
    assert built(["evidence", "check", bundle[0]]) == bundle[1]


def test_a_bundle_is_checked_anew(bundle):
    assert built(["evidence", "check", bundle[0], "--recompute"]) == bundle[1]
