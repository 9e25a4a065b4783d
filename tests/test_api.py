"""The functions of `import verifier`: what they give is what the commands write, and wrong keywords are refused."""

import importlib
import importlib.metadata
import json
import math
import pkgutil
from fractions import Fraction
from types import FunctionType

import networkx as nx
import numpy as np
import pytest

import verifier
from verifier.base.errors import InputError, UsageError
from verifier.base.keywords import settings_from
from verifier.cli import main
from verifier.questions.settings import ComparisonSettings
from verifier.systems.settings import Limits

SPEC, MATRICES = "specs/car_pedestrian.ltl", "examples/nuscenes_yolov3_class.json"
ONE = {"environment": "ped", "requirement": "stops_for_pedestrians"}
FUNCTIONS = {
    name: value
    for name, value in vars(verifier).items()
    if isinstance(value, FunctionType) and value.__module__ == "verifier" and not name.startswith("_")
}


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch, root):
    monkeypatch.chdir(root)


def document_of(command, capsys):
    """What a command prints with --json, without how it was called."""
    main([*command, "--json"])
    found = json.loads(capsys.readouterr().out)
    found.pop("command", None)
    found.get("checksums", {}).pop("command", None)
    return found


def test_the_distribution_has_the_version_of_the_program():
    assert importlib.metadata.version("verify-perception") == verifier.__version__


OPTIONS = ["--env", "ped", "--requirement", "stops_for_pedestrians", "--draws", "300"]
FILES = {"a": MATRICES, "b": "examples/nuscenes_yolov3_proposition.json"}
PAIRS = {"speeds": "10,15 m/s", "distances": "5..30:5", "bootstrap": 0, "subsamples": 20}
SAME = {
    "run": (
        lambda: verifier.run(SPEC, MATRICES, **ONE, draws=300, sweep={"vmax": (1, 2)}),
        ["run", SPEC, "--cm", MATRICES, *OPTIONS, "--sweep", "vmax=1,2"],
        "YOLOv3 on nuScenes, class-labelled, ten distance bins: violated, if items are independent",
    ),
    "explain": (
        lambda: verifier.explain(SPEC, MATRICES, **ONE, draws=300),
        ["explain", SPEC, "--cm", MATRICES, *OPTIONS],
        "YOLOv3 on nuScenes, class-labelled, ten distance bins: violated, if items are independent",
    ),
    "require": (
        lambda: verifier.require(SPEC, MATRICES, "stops_for_pedestrians", mode="factor", environment=["ped"]),
        ["require", SPEC, "--cm", MATRICES, "--mode", "factor", *OPTIONS[:4]],
        "stops_for_pedestrians, P >= 0.95: found",
    ),
    "compare": (
        lambda: verifier.compare(SPEC, FILES, environment="ped", draws=100, requirement="all_three"),
        ["compare", SPEC, *(part for name, path in FILES.items() for part in ("--cm", f"{name}={path}")),
         "--env", "ped", "--draws", "100", "--requirement", "all_three"],
        "a, b under 1 spec",
    ),
    "collision": (
        lambda: verifier.collision_map(table="pairs.csv", **PAIRS),
        ["collision", "pairs.csv", *(part for name, value in PAIRS.items() for part in (f"--{name}", str(value)))],
        "pairs, 1 braking policy",
    ),
}  # fmt: skip
"""What a function gives, the command that gives the same, and its headline."""


@pytest.mark.parametrize("name", SAME)
def test_a_result_is_that_of_the_command(name, tmp_path, monkeypatch, capsys):
    if name == "collision":
        monkeypatch.chdir(tmp_path)
        rows = [f"{k},{5 + k % 40},{5 + k % 40 + (k * 7) % 11 - 5}" for k in range(80)]
        (tmp_path / "pairs.csv").write_text("image,true_m,predicted_m\n" + "\n".join(rows) + "\n")
    call, command, headline = SAME[name]
    result = call()
    assert json.loads(result.json_text()) == document_of(command, capsys)
    assert result.headline == headline


def test_a_result_prints_what_the_command_prints_and_its_remarks_go_with_its_table(capsys):
    result = verifier.run(SPEC, MATRICES, **ONE, draws=300)
    main(["run", SPEC, "--cm", MATRICES, *OPTIONS])
    assert str(result) + "\n" == capsys.readouterr().out
    frame = result.frame()
    assert frame.loc[0, "condition"] == "if items are independent"
    assert frame.attrs["remarks"] == list(result.remarks)
    assert "if items are independent" in frame.attrs["headline"]
    assert "violated, if items are independent" in result._repr_html_()
    assert "<RunResult: YOLOv3 on nuScenes" in repr(result)
    assert [axis.get_title() for axis in result.plot().axes] == ["stops_for_pedestrians"]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"envronment": "ped"}, "unknown choice 'envronment': did you mean 'environment'?"),
        ({"output": "run.json"}, "unknown choice 'output'"),
        ({"verdict_from": "guess"}, "verdict_from: expected one of bounds, interval, point, got 'guess'"),
        ({"draws": "many"}, "draws: expected"),
        ({"confidence": 1}, "confidence: expected a number between 0 and 1"),
        ({"draws": [300]}, "draws: expected one value, got [300]"),
        ({"environment": [["ped"]]}, "environment: expected one value, got ['ped']"),
        ({"largest_drive": 3}, "--largest-drive needs matrices that say which drive an item is from"),
        ({"sweep": "vmax"}, "--sweep"),
        ({"shift": math.nan}, "shift: expected"),
        ({"icc_at_most": -0.5}, "icc_at_most: expected"),
    ],
)
def test_wrong_choices_are_refused(choices, message):
    with pytest.raises(UsageError) as error:
        verifier.run(SPEC, MATRICES, **choices)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"best_planner": 0}, "best_planner: expected a whole number above 0, got '0'"),
        ({"max_drop": -1, "baseline": "run.json"}, "--max-drop: expected a number from 0 to 1, got '-1'"),
        ({"max_drop": math.nan, "baseline": "run.json"}, "--max-drop: expected a number from 0 to 1, got 'nan'"),
        ({"max_drop": 0.1, "drop_from": 2, "baseline": "run.json"}, "--drop-from: expected point, or probability:C"),
    ],
)
def test_wrong_choices_of_a_comparison_are_refused(choices, message):
    with pytest.raises(UsageError) as error:
        verifier.compare(SPEC, {"yolo": MATRICES}, **choices)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"control_radius": -1}, "control_radius: expected a length in metres above 0"),
        ({"stop_cost": math.nan}, "stop_cost: expected seconds from 0"),
        ({"confidence": 2}, "confidence: expected a number between 0 and 1"),
        ({"levels": 1}, "levels: expected a whole number from 2"),
        ({"draws": 300.5}, "draws: expected a whole number from 0"),
    ],
)
def test_numbers_out_of_range_are_refused_as_on_the_command_line(choices, message):
    with pytest.raises(UsageError) as error:
        verifier.drive_logs("logs", **({"validation": "self", "control_radius": 2, "safety_radius": 1.5} | choices))
    assert str(error.value).startswith(message)


def test_bytes_of_memory_are_bytes():
    assert settings_from(Limits, {"memory_bytes": 5 * 10**9}).memory_bytes == 5 * 10**9
    assert settings_from(Limits, {"max_memory": "2"}).memory_bytes == 2**31


def test_a_decimal_number_is_the_fraction_that_is_written():
    chosen = {"spec": SPEC, "cm": "yolo=m.json", "max_drop": 0.1, "baseline": "run.json"}
    assert settings_from(ComparisonSettings, chosen).look.max_drop == Fraction(1, 10)


ANNOTATIONS = "sequence,frame,class,x,y\nA,0,ped,5,0\nA,1,ped,5,0\nA,2,obs,15,0\nB,0,ped,15,0\n"
DETECTIONS = "sequence,frame,class,score,x,y\nA,0,ped,0.9,5,0\nA,2,ped,0.8,15,0\n"


def test_counts_are_those_of_the_command(tmp_path, capsys):
    for name, text in (("annotations.csv", ANNOTATIONS), ("detections.csv", DETECTIONS)):
        (tmp_path / name).write_text(text)
    annotations, detections = str(tmp_path / "annotations.csv"), str(tmp_path / "detections.csv")
    counts = verifier.count(annotations, detections, "table", bins="0,10,20", classes="ped,obs")
    files = ["--format", "table", "--annotations", annotations, "--detections", detections]
    command = ["confusion", *files, "--bins", "0,10,20", "--classes", "ped,obs"]
    written = counts.document()
    assert written == {name: value for name, value in document_of(command, capsys).items() if name != "versions"}
    frame = counts.frame()
    assert frame["count"].sum() == counts.matrices().counts.sum()
    hits = frame[(frame.bin == "[0, 10) m") & (frame.predicted == "ped") & (frame.true == "ped")]
    assert hits["count"].tolist() == [1]
    main(command)
    assert str(counts) + "\n" == capsys.readouterr().out


def test_an_assessment_is_that_of_the_command(capsys):
    result = verifier.assess("examples/12_robustness_assessment.toml", system="mds")
    main(["assess", "examples/12_robustness_assessment.toml", "--system", "mds"])
    assert str(result) + "\n" == capsys.readouterr().out
    assert set(result.frame()["verdict"]) <= {"satisfied", "violated", "inconclusive"}


def test_what_judges_closed_loops_refuses_what_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="name files of curves, or --spec"):
        verifier.robroc()
    with pytest.raises(InputError, match="no such"):
        verifier.drive_logs(tmp_path / "nowhere", validation="self", control_radius=2, safety_radius=1.5)


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(InputError, match=r"nowhere\.json: no such file"):
        verifier.run(SPEC, "nowhere.json")


def test_the_chain_is_a_graph_of_networkx():
    chain = verifier.markov_chain(SPEC, MATRICES, environment="ped")
    graph = chain.graph()
    assert graph.number_of_nodes() == chain.state_count
    assert graph.number_of_edges() == chain.transition_count
    rows = np.repeat(np.arange(chain.state_count), np.diff(chain.indptr))
    for source, target, probability in zip(rows, chain.indices, chain.probabilities, strict=True):
        assert graph.edges[source, target]["probability"] == probability
    (start,) = [state for state, asked in graph.nodes(data="initial") if asked]
    assert (graph.nodes[start]["x"], graph.nodes[start]["v"]) == (1, 1)
    ends = {state for state in graph if "terminal" in graph.nodes[state]["labels"]}
    assert ends == set(np.flatnonzero(chain.labels["terminal"]).tolist())
    assert all(nx.has_path(graph, start, state) for state in graph)


def test_a_chain_is_one():
    with pytest.raises(UsageError, match="one chain is exported at a time, and 4 were asked for"):
        verifier.markov_chain(SPEC, MATRICES, environment="ped", planner="all")


def test_a_report_and_a_bundle(tmp_path):
    bundle = verifier.build_evidence(SPEC, MATRICES, tmp_path / "bundle.zip", **ONE, draws=200)
    report = verifier.check_evidence(tmp_path / "bundle.zip", digest=bundle.digest)
    assert not report.findings
    (tmp_path / "run.json").write_bytes(bundle.files["results/run.json"])
    assert "stops_for_pedestrians" in verifier.report(tmp_path / "run.json", title="Stopping")


def test_no_function_has_the_name_of_a_module():
    modules = {
        module.name.rpartition(".")[2] for module in pkgutil.iter_modules(verifier.__path__, prefix="verifier.")
    }
    for name in modules - {"__main__"}:
        importlib.import_module(f"verifier.{name}")
    assert set(FUNCTIONS) == {
        "adr", "assess", "build_evidence", "campaign", "check_evidence", "collision_map", "compare", "count",
        "drive_logs",
        "explain", "markov_chain", "metric", "mutate", "predict", "report", "require", "risk", "robroc", "run",
        "triggers", "with_planner", "write_artefacts",
    }  # fmt: skip
    assert not modules & set(FUNCTIONS)
    assert all(vars(verifier)[name] is function for name, function in FUNCTIONS.items())


def test_what_is_no_matrices_is_refused_in_words():
    with pytest.raises(UsageError, match=r"detectors: expected \{'a': 'a.json', ...\}, got str"):
        verifier.compare(SPEC, MATRICES)
    for wrong in (None, [MATRICES], 3):
        with pytest.raises(UsageError, match="expected a file of matrices or counts, got "):
            verifier.run(SPEC, wrong)
    with pytest.raises(UsageError, match=r"bins: expected one value, got array\(\[ 0., 10., inf\]\)"):
        verifier.count("truth.csv", "found.csv", bins=np.array([0, 10, np.inf]))
