"""Bounds over a stated box of rates: against enumeration by hand, every history, and what is refused."""

import json
import re
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from verifier.analysis.intervals.tiers import log_e_value
from verifier.cli import main

MODEL = """
initial = "t = 0 & run = 0"
terminal = "t = 3"
[variables]
t = { range = [0, 3], next = "t + 1" }
run = { range = [0, 2], next = "max((run // 2) * 2, note * min(run + 1, 2))" }
[inputs]
note = { range = [0, 1] }
[environments]
ped = [{ class = "ped", distance_m = 5 }]
[planners.two]
rules = [{ when = "sees(ped)", set = { note = 1 } }, { when = "true", set = { note = 0 } }]
"""
BOX = 'source = "data sheet 7"\n[[rates]]\ntrue = "ped"\npredicted = "ped"\nrate = [0.6, 0.9]\n'


@pytest.fixture
def asked(tmp_path):
    """Two reports in a row in three frames, from matrices with 160 hits of 200."""
    (tmp_path / "m.toml").write_text(MODEL)
    (tmp_path / "s.ltl").write_text('model "m.toml"\ntwice: P >= 0.5 [ F run = 2 ]\n')
    document = {
        "schema": "verifier.confusion", "version": 1, "labelling": "class", "axes": ["predicted", "true"],
        "labels": ["ped", "empty"], "bins": [{"distance_m": [0, 10], "counts": [[160, 0], [40, 0]]}],
        "false_positives": "dropped",
    }  # fmt: skip
    (tmp_path / "c.json").write_text(json.dumps(document))
    return ["run", str(tmp_path / "s.ltl"), "--cm", str(tmp_path / "c.json"), "--rate-box", str(tmp_path / "b.toml")]


def twice(rate_of):
    """The probability of two right reports in a row among three; `rate_of` gives the chance after each history."""
    total = Fraction(0)
    for reports in product((0, 1), repeat=3):
        if reports[:2] == (1, 1) or reports[1:] == (1, 1):
            chance = Fraction(1)
            for at, right in enumerate(reports):
                rate = rate_of(reports[:at])
                chance *= rate if right else 1 - rate
            total += chance
    return total


def point_of(asked, capsys, *more, code=None):
    found = main([*asked, *more, "--json"])
    out = json.loads(capsys.readouterr().out)
    assert code is None or found == code
    return out, out["requirements"][0]["points"][0]


def test_bounds_are_those_of_all_histories(asked, tmp_path, capsys):
    """Each of the seven histories may have either end of the box; the extremes over these are the bounds."""
    (tmp_path / "b.toml").write_text(BOX)
    histories = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1)]
    ends = [
        twice(dict(zip(histories, rates, strict=True)).__getitem__)
        for rates in product((Fraction(3, 5), Fraction(9, 10)), repeat=7)
    ]
    out, point = point_of(asked, capsys, "--fail-under", "0.5", code=0)
    bounds = point["uncertainty"]["confidence_bounds"]
    (held,) = out["gates"]["fail_under"]["requirements"]
    assert (held["failed"], held["condition"]) == (False, point["condition"])
    assert bounds["lower"] <= min(ends) <= bounds["lower"] + 1e-8
    assert bounds["upper"] - 1e-8 <= max(ends) <= bounds["upper"]
    assert (point["verdict"], point["basis"], bounds["tier"]) == ("satisfied", "assumed", "rate_box")
    assert point["condition"] == "if every report stays in the stated rate box of data sheet 7"
    basis = out["settings"]["confidence"]["bounds"]
    assert (basis["name"], basis["box"]["source"]) == ("bounds (of a stated rate box, not of data)", "data sheet 7")
    assert main(asked) == 0
    told = capsys.readouterr().out
    assert "hold whatever the detector remembers, if no probability of a report, given all that was reported" in told
    assert "It is stated, not shown by data" in told
    assert "95 % confidence bounds" not in told
    assert main([*asked, "--strict"]) == 3


def test_what_nobody_states_may_be_anything(asked, tmp_path, capsys):
    (tmp_path / "b.toml").write_text(BOX + "distance_m = [0, 10]\n")
    first = point_of(asked, capsys)[1]["uncertainty"]["confidence_bounds"]
    (tmp_path / "b.toml").write_text(BOX.replace("[0.6, 0.9]", "[0, 1]"))
    wide = point_of(asked, capsys, code=3)[1]["uncertainty"]["confidence_bounds"]
    assert (wide["lower"], wide["upper"]) == (0, 1)
    assert 0 < first["lower"] < first["upper"] < 1


def test_a_box_that_the_data_contradict_is_refused(asked, tmp_path, capsys):
    (tmp_path / "b.toml").write_text(BOX.replace("[0.6, 0.9]", "[0.95, 1]"))
    assert main(asked) == 2
    told = capsys.readouterr().err
    assert "the data contradict it: in [0, 10) m 160 of 200 items of ped were reported as ped" in told
    assert "0.95 to 1 is stated" in told
    out, point = point_of(asked, capsys, "--assume-rate-box")
    assert point["uncertainty"]["confidence_bounds"]["lower"] > 0.9
    assert out["settings"]["confidence"]["bounds"]["tier"] == "rate_box"


@pytest.mark.parametrize(
    "more", [["--point-only"], ["--bounds", "anytime"], ["--verdict-from", "point"], ["--persist", "2"]]
)
def test_what_a_box_knows_nothing_of(more, asked, capsys):
    assert main([*asked, *more]) == 2
    assert "--rate-box" in capsys.readouterr().err


def test_true_boxes_are_rarely_contradicted_whatever_the_past():
    """The rate follows the last outcome but never exceeds .7: of 2000 data sets, each looked at throughout, at most
    one in a hundred has an e-value of 100 at some look; one that exceeds it is found."""
    rng, caught = np.random.default_rng(9), {0.7: 0, 0.85: 0}
    for top in caught:
        right = np.zeros((2000, 200), dtype=np.int64)
        last = np.zeros(2000, dtype=np.int64)
        for at in range(200):
            last = right[:, at] = rng.random(2000) < np.where(last, top, top - 0.2 * (top < 0.8))
        hits, items = np.cumsum(right, axis=1), np.broadcast_to(np.arange(1, 201), (2000, 200))
        found = log_e_value(hits.ravel(), items.ravel(), np.full(hits.size, 0.7)).reshape(hits.shape)
        caught[top] = int((found.max(axis=1) >= np.log(100)).sum())
    assert caught[0.7] <= 20
    assert caught[0.85] > 1500


def test_a_box_by_context(asked, tmp_path, capsys):
    """What holds after a context is read where the detector has memory."""
    document = json.loads((tmp_path / "c.json").read_text())
    (at,) = document["bins"]
    at["contexts"] = {"start": [[40, 0], [10, 0]], "right*1": [[100, 0], [20, 0]], "wrong*1": [[20, 0], [10, 0]]}
    document |= {"version": 2, "contexts": {"kind": "run", "cap": 1, "of": "outcome", "gaps": "break"}}
    (tmp_path / "c.json").write_text(json.dumps(document))
    parts = BOX.split("\n", 1)
    entry = parts[1]
    text = parts[0] + "\n" + entry.replace("[0.6, 0.9]", "0.8") + 'context = "start"\n'
    text += entry.replace("[0.6, 0.9]", "[0.7, 0.9]") + 'context = "right*1"\n'
    text += entry.replace("[0.6, 0.9]", "[0.5, 0.8]") + 'context = "wrong*1"\n'
    (tmp_path / "b.toml").write_text(text)
    options = ["--memory", "run:1", "--requirement", "twice"]
    found = main([*asked, *options, "--json"])
    out, err = capsys.readouterr()
    assert found == 0, err
    bounds = json.loads(out)["requirements"][0]["points"][0]["uncertainty"]["confidence_bounds"]
    right, wrong = (Fraction(7, 10), Fraction(9, 10)), (Fraction(1, 2), Fraction(4, 5))
    ends = []
    histories = [(0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1)]
    for rates in product((0, 1), repeat=6):
        chosen = {h: (right if h[-1] else wrong)[k] for h, k in zip(histories, rates, strict=True)}
        ends.append(twice(lambda past, chosen=chosen: chosen.get(past, Fraction(4, 5))))
    assert bounds["lower"] <= min(ends) <= bounds["lower"] + 1e-8
    assert bounds["upper"] - 1e-8 <= max(ends) <= bounds["upper"]


def test_other_verbs_refuse_a_box(asked, tmp_path, capsys):
    (tmp_path / "b.toml").write_text(BOX)
    assert main(["explain", *asked[1:]]) == 2
    assert re.search(r"--rate-box", capsys.readouterr().err)


def test_a_box_is_tested_by_what_went_before_also_where_that_is_not_used(asked, tmp_path, capsys):
    """Misses after misses are out of the box, and hidden in the sum of all contexts; so are hits of a box too low."""
    document = json.loads((tmp_path / "c.json").read_text())
    (at,) = document["bins"]
    at["contexts"] = {"start": [[8, 0], [2, 0]], "right*1": [[147, 0], [13, 0]], "wrong*1": [[5, 0], [25, 0]]}
    document |= {"version": 2, "contexts": {"kind": "run", "cap": 1, "of": "outcome", "gaps": "break"}}
    (tmp_path / "c.json").write_text(json.dumps(document))
    (tmp_path / "b.toml").write_text(BOX)
    for memory in ("none", "run:1"):
        assert main([*asked, "--memory", memory]) == 2
        assert "after wrong*1 5 of 30 items of ped were reported as ped" in capsys.readouterr().err
    assert main([*asked, "--memory", "none", "--assume-rate-box", "--dependence-free"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "(rates within the stated box; 3 steps)" in told
