"""`verify run` on chains in which very many steps pass before anything is decided: tight bounds, by both engines."""

import json
from fractions import Fraction

import pytest
from walk_files import winning_chance, write_walk

from verifier.analysis.robust.policy import PolicySearch

WIDTH = 1e-9


def checked(verify, folder, counts, n):
    """The points of both requirements, after the checks that all of them must pass."""
    spec, matrices = write_walk(folder, *counts)
    arguments = ("--set", f"n={n}", "--point-only", "--json")
    _, out, err = verify("run", spec, "--cm", matrices, *arguments)
    assert err == ""
    document = json.loads(out)
    assert not [remark for remark in document["remarks"] if "one engine" in remark]
    points = [requirement["points"][0] for requirement in document["requirements"]]
    exact = winning_chance(n, *counts[:2])
    for point in points:
        assert Fraction(point["lower"]) <= exact <= Fraction(point["upper"])
        assert point["lower"] <= point["probability"] <= point["upper"]
        assert point["upper"] - point["lower"] <= WIDTH
        assert abs(point["second_engine"] - exact) <= WIDTH
    return points


@pytest.mark.parametrize("n", [100, 200, 400, 2000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_fair_gamblers_ruin(verify, tmp_path, n):
    _, fair = checked(verify, tmp_path, (1, 1, 0), n)
    # 1/2 exactly; only exact arithmetic can tell that it is not less.
    assert (fair["lower"], fair["upper"], fair["verdict"]) == (0.5, 0.5, "satisfied")


@pytest.mark.parametrize(
    "counts", [(10, 20, 10**6), (10**4, 2 * 10**4, 10**9), (1, 2, 2**53 - 10)], ids=["1e-5", "1e-5 large", "1e-16"]
)
def test_moves_are_rare(verify, tmp_path, counts):
    # One step in 3e4 (in 3e15) is a move. From the middle of five places: (1 - 2^2) / (1 - 2^4) = 1/5.
    assert winning_chance(4, *counts[:2]) == Fraction(1, 5)
    wins, fair = checked(verify, tmp_path, counts, 4)
    assert wins["upper"] - wins["lower"] < 1e-11
    assert fair["verdict"] == "violated"


def test_a_drift_leaves_a_probability_that_no_iteration_would_find(verify, tmp_path):
    # (3/5)^200 and less: 1e-44, with an error that is small beside it.
    wins, _ = checked(verify, tmp_path, (3, 5, 1), 400)
    exact = winning_chance(400, 3, 5)
    assert abs(Fraction(wins["probability"]) - exact) < exact / 10**9


def test_confidence_bounds_of_a_slow_walk_are_near_what_is_attained(verify, tmp_path):
    # Four million steps: a cost of 2^-42 for each of them would make the bounds wider by 1e-6.
    spec, matrices = write_walk(tmp_path, 4 * 10**15, 4 * 10**15, 0)
    _, out, err = verify("run", spec, "--cm", matrices, "--set", "n=4000", "--draws", "301", "--json")
    assert err == ""
    bounds = json.loads(out)["requirements"][0]["points"][0]["uncertainty"]["confidence_bounds"]
    assert 0 <= bounds["attained_lower"] - bounds["lower"] < 1e-7
    assert 0 <= bounds["upper"] - bounds["attained_upper"] < 1e-7
    assert 0.499 < bounds["lower"] < 0.5 < bounds["upper"] < 0.501
    assert not bounds["conservative"]


def test_bounds_of_a_walk_with_few_items_take_few_solves(verify, tmp_path, monkeypatch):
    # The rates may be nearly anything, so nature can also walk back and forth for 10^15 steps. To earn the costs of
    # the proof that way was once found first, and left again state by state: 1,400 solves.
    spec, matrices = write_walk(tmp_path, 1, 1, 0)
    solves, solve = [], PolicySearch._solve
    monkeypatch.setattr(PolicySearch, "_solve", lambda *arguments: (solves.append(1), solve(*arguments))[1])
    chosen = ("--set", "n=2000", "--requirement", "wins", "--draws", "301", "--json")
    _, out, err = verify("run", spec, "--cm", matrices, *chosen)
    assert err == ""
    bounds = json.loads(out)["requirements"][0]["points"][0]["uncertainty"]["confidence_bounds"]
    assert (bounds["lower"], bounds["upper"], bounds["conservative"]) == (0, 1, False)
    assert len(solves) < 50
