"""A planner from a file: its hash and that of its table go into a run, and a bundle carries it."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from small_bundles import write_inputs

import verifier
from verifier.base.errors import InputError, UsageError
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_files
from verifier.study.options import RunOptions

POINTS = RunOptions(confidence=None)
TABLE = "sees(ped),->,go\ntrue,,0\nfalse,,1\n"
KEY = '\n[planners.written]\nkind = "table"\nfile = "../tables/look.csv"\n'


def inputs(folder, key=KEY):
    spec, matrices = write_inputs(folder)
    (folder / "tables").mkdir()
    (folder / "tables/look.csv").write_text(TABLE)
    model = folder / "models/two_looks.toml"
    model.write_text(model.read_text() + key)
    spec.write_text(spec.read_text().replace("planner careful", "planner written"))
    return spec, matrices


def in_python(cases):
    return {"go": 1 - cases["sees(ped)"].astype(int)}


def test_a_run_records_the_file_of_a_planner_and_what_it_does(tmp_path):
    spec, matrices = inputs(tmp_path)
    written = verifier.run(spec, matrices, planner=["careful", "written"], point_only=True)
    by_rules, by_table = written.requirements[0], written.requirements[3]
    assert [each.probability for each in by_rules.points] == [each.probability for each in by_table.points]
    digest = hashlib.sha256(TABLE.encode()).hexdigest()
    assert [(each.name, each.sha256) for each in written.inputs if each.role == "planner"] == [("look.csv", digest)]
    planners = written.settings.planners
    assert planners["careful"].table is None
    system = verifier.with_planner(tmp_path / "models/two_looks.toml", "mine", in_python, asks=["sees(ped)"])
    mine = verifier.run(spec, matrices, system=system, planner="mine", point_only=True)
    assert mine.settings.planners["mine"].table == planners["written"].table
    assert mine.requirements[0].points == by_table.points
    chain = verifier.markov_chain(spec, matrices, system=system, planner="mine", environment="ped")
    assert np.array_equal(chain.valuations["x"], [0, 0, 1, 1, 2])
    other = verifier.with_planner(system, "other", lambda cases: {"go": np.ones(len(cases["x"]))})
    differs = verifier.run(spec, matrices, system=other, planner="other", point_only=True)
    assert differs.settings.planners["other"].table != planners["written"].table
    model = tmp_path / "models/two_looks.toml"
    model.write_text(model.read_text() + "# changed\n")
    with pytest.raises(UsageError, match="names the model"):
        verifier.run(spec, matrices, system=system, planner="mine")


def test_a_planner_in_python_is_explained_searched_and_compared_as_its_rules(tmp_path):
    spec, matrices = inputs(tmp_path)
    system = verifier.with_planner(tmp_path / "models/two_looks.toml", "mine", in_python, asks=["sees(ped)"])
    rules, mine = {"planner": "careful"}, {"planner": "mine", "system": system}
    explained = [verifier.explain(spec, matrices, **each, seed=1).explanations for each in (rules, mine)]
    told = [[replace(each, planner="", asks_about=()) for each in found] for found in explained]
    assert told[0] == told[1]
    assert any(each.violation.probability for each in told[0])
    name = verifier.run(spec, matrices, planner="careful", point_only=True).requirements[0].name
    recalls = [verifier.require(spec, matrices, name, **each, target=">= 0.5").answers for each in (rules, mine)]
    assert [each.cells for each in recalls[0]] == [each.cells for each in recalls[1]]
    both = verifier.compare(spec, {"a": matrices}, planner=["careful", "mine"], system=system, draws=1000)
    for requirement in both.specs[0].requirements:
        one, other = requirement.entries
        assert one.worst_point.probability == other.worst_point.probability
        assert requirement.better == ((0.5, 0.5), (0.5, 0.5))
    with pytest.raises(UsageError, match="unknown planner 'mine'"):
        verifier.explain(spec, matrices, planner="mine")


def test_a_bundle_carries_the_files_of_planners(tmp_path):
    bundle = make_bundle(Sources(*inputs(tmp_path)), POINTS)
    assert bundle.files["inputs/tables/look.csv"].decode() == TABLE
    assert json.loads(bundle.files["request.json"])["planners"] == ["inputs/tables/look.csv"]
    found = json.loads(bundle.files["results/run.json"])
    assert found["settings"]["planners"]["written"].keys() == {"kind", "pick", "table"}
    assert not check_files("b", bundle.files).findings
    changed = {**bundle.files, "inputs/tables/look.csv": TABLE.replace("true,,0", "true,,1").encode()}
    told = [each.file for each in check_files("b", changed).findings]
    assert "inputs/tables/look.csv" in told
    del changed["inputs/tables/look.csv"]
    assert check_files("b", changed).findings


@pytest.mark.parametrize("name", ["/tables/look.csv", "../../tables/look.csv"])
def test_a_planner_that_lies_outside_cannot_be_bundled(tmp_path, name):
    (tmp_path / "models").mkdir()
    place = tmp_path / "tables" if name.startswith("/") else tmp_path.parent / "tables"
    spec, matrices = inputs(tmp_path)
    place.mkdir(exist_ok=True)
    (place / "look.csv").write_text(TABLE)
    model = tmp_path / "models/two_looks.toml"
    named = str(place / "look.csv") if name.startswith("/") else name
    model.write_text(model.read_text().replace("../tables/look.csv", named))
    with pytest.raises(InputError, match="which means nothing in a bundle"):
        make_bundle(Sources(spec, matrices), POINTS)
