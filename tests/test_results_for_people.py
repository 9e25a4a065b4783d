"""What every kind of result gives: a short repr, a table, a picture, metrics, the report in a notebook, files."""

import importlib
import json
import math
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import verifier
from verifier.base.errors import UsageError
from verifier.evidence.consistency import check_document
from verifier.evidence.documents import checked_document
from verifier.evidence.report.pages import report_page
from verifier.manual.pages import page
from verifier.perception.confusion.document import read_counts

SPEC, MATRICES = "specs/car_pedestrian.ltl", "examples/nuscenes_yolov3_class.json"
ONE = {"environment": "ped", "requirement": "stops_for_pedestrians"}
DETECTORS = {"a": MATRICES, "b": "examples/nuscenes_yolov3_proposition.json"}
KINDS = ("run", "explain", "require", "compare", "count", "collision_map", "robroc", "assess", "mutate")


def made(kind, folder):
    """A small result of this kind."""
    match kind:
        case "run":
            return verifier.run(SPEC, MATRICES, **ONE, draws=100, sweep="vmax=1..2")
        case "explain":
            return verifier.explain(SPEC, MATRICES, **ONE, draws=100)
        case "require":
            return verifier.require(SPEC, MATRICES, "stops_for_pedestrians", mode="factor", environment="ped")
        case "compare":
            return verifier.compare(SPEC, DETECTORS, **ONE, draws=100)
        case "count":
            return read_counts(MATRICES)
        case "collision_map":
            rows = "".join(f"{k},{5 + k % 40},{5 + k % 40 + (k * 7) % 11 - 5}\n" for k in range(80))
            (folder / "pairs.csv").write_text("image,true_m,predicted_m\n" + rows)
            few = {"speeds": "10,15 m/s", "distances": "5..30:5", "bootstrap": 0, "subsamples": 20}
            return verifier.collision_map(table=str(folder / "pairs.csv"), **few)
        case "robroc":
            curve = {"sensitivity": [0.1, 1], "safety": [0.5, 0.75], "efficiency": [0.75, 0.5]}
            told = [{"detector": "a", "condition": name, **curve} for name in ("baseline", "haze")]
            document = {"schema": "verifier.curves", "version": 1, "title": "two", "curves": told}
            (folder / "curves.json").write_text(json.dumps(document))
            return verifier.robroc(folder / "curves.json")
        case "assess":
            return verifier.assess("examples/12_robustness_assessment.toml", system="mds")
        case _:
            Image.fromarray(np.full((8, 8, 3), 120, dtype=np.uint8)).save(folder / "a.png")
            return verifier.mutate(folder / "a.png", folder / "made", mutation=["brightness:factor=0.5"])


@pytest.fixture(scope="module")
def results(tmp_path_factory, root):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        return {kind: made(kind, tmp_path_factory.mktemp(kind)) for kind in KINDS}


@pytest.fixture(params=KINDS)
def result(request, results):
    return results[request.param]


def test_repr_fits_on_a_screen_and_frame_has_rows_and_remarks(result):
    assert len(repr(result).splitlines()) <= 20
    assert len(repr(result)) < 300
    frame = result.frame()
    assert len(frame) == len(list(result.rows())) > 0
    assert frame.attrs["headline"] == result.headline
    assert frame.attrs["remarks"] == list(result.remarks)


def test_plot_draws_or_says_that_there_is_nothing_to_draw(result):
    if type(result).__name__ == "MutateResult":
        with pytest.raises(UsageError, match="a MutateResult has no picture"):
            result.plot()
    else:
        assert result.plot().axes


def test_metrics_are_finite_numbers_with_names_that_trackers_take(result):
    found = result.metrics()
    assert found
    for name, value in found.items():
        assert type(value) is float
        assert math.isfinite(value)
        assert re.fullmatch(r"[\w.:-]+(/[\w.:-]+)*", name, flags=re.ASCII), name


def test_a_notebook_shows_the_sections_of_the_report_and_nothing_leaks(result):
    shown = result._repr_html_()
    text = result.json_text()
    document = checked_document(json.loads(text), text.encode(), "result.json")
    titles = [section.title for section in report_page([document]).sections]
    found = re.findall(r"<h2>(.*?)(?: <span.*?)?</h2>", shown)
    assert found == titles
    assert {"Verdicts", "Provenance"} <= set(found)
    assert "<script" not in shown
    assert " id=" not in shown
    assert "href=" not in shown
    style = re.search("<style>(.*?)</style>", shown, flags=re.DOTALL)[1]
    assert style.startswith("@scope (.verifier){")
    assert style.count("{") == style.count("}")
    assert not re.search(r"(^|[},])(body|:root)\b", style, flags=re.MULTILINE)


def test_artefacts_are_a_document_a_report_rows_and_a_picture(result, tmp_path):
    folder = verifier.write_artefacts(result, tmp_path / "new/folder")
    names = {path.name for path in folder.iterdir()}
    picture = set() if type(result).__name__ == "MutateResult" else {"figure.png"}
    assert names == {"result.json", "report.html", "rows.csv"} | picture
    raw = (folder / "result.json").read_bytes()
    check_document(checked_document(json.loads(raw), raw, "result.json"))
    assert verifier.report(folder / "result.json") == (folder / "report.html").read_text()
    assert len((folder / "rows.csv").read_text().splitlines()) == len(list(result.rows())) + 1


@pytest.mark.parametrize("kind", ["run", "explain", "require", "compare", "collision_map", "robroc", "assess"])
def test_where_no_terminal_is_lines_fit_100_columns_and_say_the_same(kind, results, monkeypatch):
    module, _, name = results[kind].TOLD.partition(":")
    told = getattr(importlib.import_module(module), name)
    wide = told(results[kind])
    monkeypatch.delenv("COLUMNS")
    narrow = told(results[kind])
    assert max(map(len, narrow.splitlines())) <= 100 < max(map(len, wide.splitlines()))
    assert sorted(narrow.replace("-", "").split()) == sorted(wide.replace("-", "").split())


def test_metrics_of_a_run_are_those_of_its_worst_scenarios(results):
    run = results["run"]
    found = run.metrics()
    (requirement,) = run.requirements
    for vmax in ("1", "2"):
        points = [point for point in requirement.points if point.constants == {"vmax": vmax}]
        name = f"stops_for_pedestrians/published/vmax_{vmax}/probability"
        assert found[name] == min(point.probability for point in points)
    assert requirement.worst_point.probability in found.values()
    assert len(found) == 2 * 5
    counts = results["count"].metrics()
    assert (counts["ped/0_10_m/recall"], counts["ped/0_10_m/items"]) == (31 / 158, 158)


def test_what_is_large_has_a_short_repr(root, monkeypatch):
    monkeypatch.chdir(root)
    chain = verifier.markov_chain(SPEC, MATRICES, environment="ped")
    assert repr(chain) == "<MarkovChain: 66 states, 67 transitions>"
    model = verifier.with_planner("models/car_pedestrian.toml", "mine", lambda given: {})
    assert repr(model).startswith("<SystemModel: car_pedestrian, planners ")
    assert repr(model).endswith(", mine>")
    assert repr(read_counts(MATRICES).matrices()).endswith(", 10 bins>")


def test_matrices_may_be_in_memory(root, monkeypatch):
    monkeypatch.chdir(root)
    counts = read_counts(MATRICES)
    how = ONE | {"point_only": True}
    assert verifier.run(SPEC, counts, **how).metrics() == verifier.run(SPEC, MATRICES, **how).metrics()
    assert verifier.markov_chain(SPEC, counts, environment="ped").state_count == 66
    explained = verifier.explain(SPEC, counts, **ONE, draws=100).metrics()
    assert explained == pytest.approx(
        {"stops_for_pedestrians/published/ped_x_1_v_1/probability": 31 / 158}, rel=1e-14, abs=0
    )
    both = verifier.compare(SPEC, {"a": counts, "b": MATRICES}, **ONE, draws=100).metrics()
    name = "car_pedestrian.ltl/stops_for_pedestrians/{}/published/probability"
    assert both[name.format("a")] == both[name.format("b")] == pytest.approx(31 / 158, rel=1e-14, abs=0)
    required = verifier.require(SPEC, counts, "stops_for_pedestrians", mode="factor", environment="ped")
    assert required.metrics()["stops_for_pedestrians/published/0_10_m/ped/required_recall"] == 0.95


def test_the_recipes_for_trackers_call_what_the_trackers_have(results, tmp_path, monkeypatch):
    """The blocks of the manual, with stand-ins of the functions that MLflow and Weights & Biases document."""
    monkeypatch.chdir(tmp_path)
    section = page("python").partition("## Experiment trackers")[2].partition("\n## ")[0]
    recipes = re.findall(r"^```\n(.*?)^```$", section, flags=re.DOTALL | re.MULTILINE)
    assert [recipe.count("\n") for recipe in recipes] == [3, 3, 3]
    seen = {}

    def log(name):
        return lambda *given, **named: seen.update({name: (given, named)})

    mlflow = SimpleNamespace(log_metrics=log("metrics"), log_artifacts=log("artifacts"))
    wandb = SimpleNamespace(log=log("log"), log_artifact=log("artifact"))
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    for recipe in recipes[:2]:
        exec(compile(recipe, "python.md", "exec"), {"verifier": verifier, "result": results["run"]})
    assert seen["metrics"] == seen["log"] == ((results["run"].metrics(),), {})
    assert seen["artifacts"][0] == seen["artifact"][0] == ("artefacts",)
    assert (tmp_path / "artefacts/report.html").is_file()
