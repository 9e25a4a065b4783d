"""How fast linear programs of bounds whatever the dependence are: `pytest tests/benchmarks --benchmark -s`."""

import json
import time

import pytest

from verifier.cli import main

FRAMES = 310
MODEL = f"""
initial = "t = 0 & hits = 0"
terminal = "t = {FRAMES}"
[variables]
t = {{ range = [0, {FRAMES}], next = "t + 1" }}
hits = {{ range = [0, {FRAMES}], next = "min(hits + note, {FRAMES})" }}
[inputs]
note = {{ range = [0, 1] }}
[environments]
ped = [{{ class = "ped", distance_m = 5 }}]
[planners.counts]
rules = [{{ when = "sees(ped)", set = {{ note = 1 }} }}, {{ when = "true", set = {{ note = 0 }} }}]
"""


@pytest.mark.benchmark
@pytest.mark.parametrize("rates", ["measured", "bounded"])
def test_fifty_thousand_flows(rates, tmp_path, capsys):
    """Hits in at least half of the frames, of which each has one with .8."""
    (tmp_path / "m.toml").write_text(MODEL)
    (tmp_path / "s.ltl").write_text(f'model "m.toml"\nhalf: P >= 0.5 [ F (t = {FRAMES} & hits >= {FRAMES // 2}) ]\n')
    document = {
        "schema": "verifier.confusion", "version": 1, "labelling": "class", "axes": ["predicted", "true"],
        "labels": ["ped", "empty"], "bins": [{"distance_m": [0, 10], "counts": [[8000, 0], [2000, 0]]}],
    }  # fmt: skip
    (tmp_path / "c.json").write_text(json.dumps(document))
    asked = ["run", str(tmp_path / "s.ltl"), "--cm", str(tmp_path / "c.json"), "--json"]
    plain = [] if rates == "bounded" else ["--point-only"]
    begun = time.process_time()
    assert main([*asked, *plain]) in (0, 3)
    without = time.process_time() - begun
    capsys.readouterr()
    begun = time.process_time()
    assert main([*asked, *plain, "--dependence-free"]) in (0, 3)
    seconds = time.process_time() - begun - without
    free = json.loads(capsys.readouterr().out)["requirements"][0]["points"][0]["dependence_free"]
    with capsys.disabled():
        print(
            f"\n{free['flows']} flows, {rates} rates: {seconds:.1f} CPU s, [{free['lower']:.6f}, {free['upper']:.6f}]"
        )
    assert 45_000 < free["flows"] < 50_000
    assert free["upper"] == pytest.approx(1, abs=1e-6)
    # Misses have the mean .2 FRAMES, so more than half come with .2 FRAMES / (half + 1) at most (Markov), and may.
    if rates == "measured":
        known = 1 - 0.2 * FRAMES / (FRAMES - FRAMES // 2 + 1)
        assert known - 1e-5 <= free["lower"] <= known + 1e-9
    assert seconds < 60
