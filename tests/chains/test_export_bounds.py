"""Regions of matrices as decision processes: vertices are choices, and Storm's optima are the confidence bounds."""

import json
import random

import numpy as np
import pytest
import stormpy
from asking_worlds import AskingWorld
from interval_models import RECURRENT, SIMPLE, random_model, random_region
from read_exports import optimum, read
from small_objectives import random_objective
from world_specs import matrices_of, spec_of

from verifier.analysis.robust.solutions import Effort, robust_bounds
from verifier.analysis.robust.vertices import MOST_CHOICES, vertex_process, vertices
from verifier.base.errors import LimitError
from verifier.chains import EXPORT_FORMATS, write_model
from verifier.cli import main
from verifier.language.expressions import to_text
from verifier.systems.strategies import StrategySkeleton

ROUNDING = 1e-9


def rows_of(objective):
    return StrategySkeleton(np.arange(objective.skeleton.state_count + 1), objective.skeleton)


def process_of(objective, region, names, exact=False):
    mask = {name: np.asarray(states) for name, states in names.items()}
    return vertex_process(rows_of(objective), region, mask, exact=exact, remark="")


def in_storm(formula):
    """In Storm's grammar, every operator in parentheses of its own."""
    text = {
        "F[0,3] p": 'F<=3 ("p")', "(!q) W p": '!((!"p") U ((!"p") & ("q")))', "(F p) & (G !q)": '(F "p") & (G !"q")',
        "(G F p) -> (G F q)": '(!(G (F "p"))) | (G (F "q"))', "G (p -> F q)": 'G ((!"p") | (F "q"))',
        "(G F p) & (F G !q)": '(G (F "p")) & (F (G !"q"))', "G F (p & X q)": 'G (F (("p") & (X "q")))',
        "X (p | X q)": 'X (("p") | (X "q"))', "p U q": '"p" U "q"', "F p": 'F "p"', "G p": 'G "p"',
        "G F p": 'G (F "p")', "F G p": 'F (G "p")',
    }  # fmt: skip
    return text[formula]


@pytest.mark.parametrize("formula", [*SIMPLE, *RECURRENT])
def test_the_optima_of_random_models_are_the_bounds(formula, tmp_path, thorough):
    """One draw in each state; the choices are those of an enumeration written down in the tests."""
    inner = 0
    few = 6 if thorough else 3
    for seed in range(20 if formula in ("G p", "p U q") else few):  # mostly decided at once
        model = random_model(np.random.default_rng(seed), states=5, labels=2 + seed % 2)
        objective = model.objective(formula)
        if not len(objective.skeleton.columns_needed()):
            continue
        region = model.region(objective)
        found = robust_bounds(objective, region, effort=Effort(attained=False))
        expected = model.process()
        process = process_of(objective, region, expected.labels)
        assert sorted(rows(process)) == sorted(rows(expected))
        write_model(process, tmp_path / "m.umb")
        storm = read(tmp_path / "m.umb")
        least, most = (ends(storm, f"P{end}=? [ {in_storm(formula)} ]") for end in ("min", "max"))
        assert found.lower == pytest.approx(least, abs=ROUNDING) or found.conservative
        assert found.upper == pytest.approx(most, abs=ROUNDING) or found.conservative
        assert np.all(found.lower <= np.array(least) + ROUNDING)
        assert np.all(found.upper >= np.array(most) - ROUNDING)
        inner += bool(np.any(found.lower < found.upper))
    assert inner >= 1 or formula in RECURRENT or not thorough


def ends(storm, query):
    """At the initial states, in their order."""
    environment = stormpy.environments.sound()
    for solver in (environment.solver().native(), environment.solver().min_max()):
        solver.precision = stormpy.Rational("1/1000000000000")
    found = stormpy.model_checking(storm, stormpy.parse_property(query), environment=environment)
    return [float(found.get_value(state)) for state in sorted(storm.initial_states)]


def rows(process):
    """(state, choices), each choice by its targets and probabilities to 12 digits."""
    for state, (low, high) in enumerate(zip(process.choice_starts, process.choice_starts[1:], strict=False)):
        choices = set()
        for choice in range(low, high):
            where = slice(process.indptr[choice], process.indptr[choice + 1])
            choices.add(
                tuple(zip(process.indices[where].tolist(), process.probabilities[where].round(12), strict=True))
            )
        # Of choices between two states the outer ones matter.
        targets = sorted({target for choice in choices for target, _ in choice})
        if len(targets) == 2:
            ordered = sorted(choices, key=lambda choice: dict(choice).get(targets[0], 0))
            choices = {ordered[0], ordered[-1]}
        yield state, sorted(choices)


@pytest.mark.parametrize("draws", [1, 2])
def test_several_reports_in_a_step(draws, tmp_path, thorough):
    """Nature chooses for the second report knowing the first."""
    compared = 0
    for seed in range(16 if thorough else 8):
        rng = np.random.default_rng(seed)
        objective = random_objective(rng, "p U q", states=5, draws=draws)
        region = random_region(rng, objective, 2, 3)
        names = map(to_text, objective.product.obligations.formula.propositions)
        labels = dict(zip(names, objective.product.propositions, strict=True))
        found = robust_bounds(objective, region, effort=Effort(attained=False))
        process = process_of(objective, region, labels)
        write_model(process, tmp_path / "m.umb")
        storm = read(tmp_path / "m.umb")
        assert found.lower == pytest.approx(ends(storm, 'Pmin=? [ "p" U "q" ]'), abs=ROUNDING)
        assert found.upper == pytest.approx(ends(storm, 'Pmax=? [ "p" U "q" ]'), abs=ROUNDING)
        compared += bool(np.any(found.lower < found.upper))
    assert compared >= (3 if thorough else 1)


def exported(folder, capsys, *arguments):
    """The document of a run that exports, and its requirement's bounds."""
    code = main(["run", *map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    assert code in (0, 1, 3), err
    found = json.loads(out)
    return [point["uncertainty"]["confidence_bounds"] for point in found["requirements"][0]["points"]]


@pytest.mark.parametrize("ending", EXPORT_FORMATS)
def test_a_planner_that_counts(ending, tmp_path, capsys):
    world = AskingWorld(random.Random(3), located=True)
    world.rules = [(("count(ped) >= 2", None), 2), (("sees(ped, within = 10)", None), 1)]
    (tmp_path / "m.toml").write_text(world.model)
    (tmp_path / "c.json").write_text(json.dumps(world.document))
    (tmp_path / "s.ltl").write_text('model "m.toml"\nenvironments here\nr: P = ? [ F good ]\n')
    target = tmp_path / f"b{ending}"
    (bounds,) = exported(tmp_path, capsys, tmp_path / "s.ltl", "--cm", tmp_path / "c.json", "--export-bounds", target)
    storm = read(target)
    assert optimum(storm, 'Pmin=? [F "good"]') == pytest.approx([bounds["lower"]], abs=ROUNDING)
    assert optimum(storm, 'Pmax=? [F "good"]') == pytest.approx([bounds["upper"]], abs=ROUNDING)
    assert "vertices of the region of matrices" in target.read_bytes().decode(errors="replace")


@pytest.mark.parametrize("labelling", ["class", "proposition"])
@pytest.mark.parametrize("planner", ["published", "cautious"])
def test_the_shipped_system(labelling, planner, root, tmp_path, capsys):
    model, matrices = root / "models/car_pedestrian.toml", root / f"examples/nuscenes_yolov3_{labelling}.json"
    (tmp_path / "s.ltl").write_text(f'model "{model}"\nplanner {planner}\nr: P = ? [ F at_line ]\n')
    target = tmp_path / "b.drn"
    arguments = (tmp_path / "s.ltl", "--cm", matrices, "--export-bounds", target, "--set", "vmax=2", "--env", "ped")
    bounds, storm = exported(tmp_path, capsys, *arguments), read(target)
    assert ends(storm, 'Pmin=? [F "at_line"]') == pytest.approx([each["lower"] for each in bounds], abs=ROUNDING)
    assert ends(storm, 'Pmax=? [F "at_line"]') == pytest.approx([each["upper"] for each in bounds], abs=ROUNDING)
    assert any(0 < each["lower"] < each["upper"] < 1 for each in bounds)


def test_a_world_that_decides_is_on_one_side_with_the_matrix(shared, tmp_path, capsys):
    folder = shared / "oracles/worlds/crossing_adversarial"
    spec, matrices = spec_of(folder, tmp_path, ("no_hit",)), matrices_of(folder, tmp_path)
    bounds = exported(tmp_path, capsys, spec, "--cm", matrices, "--export-bounds", tmp_path / "b.umb")
    storm = read(tmp_path / "b.umb")
    assert 1 - optimum(storm, 'Pmax=? [F "hit"]')[0] == pytest.approx(bounds[0]["lower"], abs=ROUNDING)


def test_the_vertices_of_a_column():
    assert vertices([0, 0], [10**9, 10**9]) == [(10**9, 0), (0, 10**9)]
    found = vertices([2 * 10**8, 0, 0], [5 * 10**8, 3 * 10**8, 10**9])
    assert sorted(found) == [
        (2 * 10**8, 0, 8 * 10**8), (2 * 10**8, 3 * 10**8, 5 * 10**8),
        (5 * 10**8, 0, 5 * 10**8), (5 * 10**8, 3 * 10**8, 2 * 10**8),
    ]  # fmt: skip
    with pytest.raises(LimitError, match="too many vertices"):
        vertices([0] * 16, [10**9] * 16)
    assert MOST_CHOICES == 4096


def test_what_is_refused(tmp_path, capsys):
    world = AskingWorld(random.Random(3))
    (tmp_path / "m.toml").write_text(world.model)
    (tmp_path / "c.json").write_text(json.dumps(world.document))
    (tmp_path / "s.ltl").write_text('model "m.toml"\nenvironments here\nr: P = ? [ F good ]\n')
    arguments = ["run", str(tmp_path / "s.ltl"), "--cm", str(tmp_path / "c.json")]
    assert main([*arguments, "--export-bounds", str(tmp_path / "b.txt")]) == 2
    assert "--export-bounds: expected a file name ending in .umb" in capsys.readouterr().err
    assert main([*arguments, "--point-only", "--export-bounds", str(tmp_path / "b.umb")]) == 2
    assert "--export-bounds needs confidence bounds: leave out --point-only" in capsys.readouterr().err
