"""Figures of detectors with memory: what is drawn is what was counted and computed."""

from itertools import pairwise

import numpy as np
import pytest
from context_cases import latch
from matplotlib.collections import PolyCollection
from matrix_documents import write_matrices

from verifier.cli import main
from verifier.perception.confusion.document import read_counts
from verifier.perception.confusion.sanity import wilson
from verifier.pipeline import verify_spec
from verifier.study.options import RunOptions
from verifier.telling.figures.confusion import persistence_figure, runs_figure, swept_lengths
from verifier.telling.figures.run import figure_of_run

ROWS = {"start": [4, 6], "right*1": [20, 80], "right*2": [30, 970], "wrong*1": [25, 25], "wrong*2": [3, 1]}


@pytest.fixture
def files(tmp_path):
    """Spec and matrices of one class in one bin, from {context: [misses, hits]}."""
    by_context = {name: [[hits, 0], [misses, 0]] for name, (misses, hits) in ROWS.items()}
    whole = np.sum(list(by_context.values()), axis=0).tolist()
    bins = [{"distance_m": [10, 20], "counts": whole, "contexts": by_context}]
    contexts = {"kind": "run", "cap": 2, "of": "outcome", "gaps": "break"}
    write_matrices(tmp_path / "c.json", version=2, bins=bins, contexts=contexts)
    (tmp_path / "m.toml").write_text(latch(4, initial="t <= 2"))
    (tmp_path / "s.ltl").write_text('model "m.toml"\nsome: P >= 0.75 [ F seen = 1 ]\n')
    return tmp_path / "s.ltl", tmp_path / "c.json"


def test_wrong_reports_by_the_length_of_the_run(files):
    axis = runs_figure(read_counts(files[1])).axes[0]
    line, _, (bars,) = axis.containers[0]
    order = ["wrong*2", "wrong*1", "start", "right*1", "right*2"]
    shares = [ROWS[name][0] / sum(ROWS[name]) for name in order]
    drawn = line.get_ydata()
    assert np.isnan(drawn[0])  # of four items nothing is drawn
    assert drawn[1:] == pytest.approx(shares[1:])
    assert tuple(bars.get_segments()[-1][:, 1]) == pytest.approx(wilson(30, 1000))
    assert [text.get_text() for text in axis.get_xticklabels()] == [
        "2 wrong",
        "1 wrong",
        "none",
        "1 right",
        "2 right",
    ]


def test_bounds_by_how_long_errors_last(files):
    results = {
        longest: verify_spec(*files, RunOptions(persist=longest, assume_persistence=True)) for longest in (1, 2, 3)
    }
    axis = persistence_figure(results, 4, "title").axes[0]
    upper, lower = (line.get_ydata() for line in axis.lines[:2])
    for at, result in enumerate(results.values()):
        ends = [point.uncertainty.confidence_bounds for point in result.requirements[0].points]
        assert lower[at] == min(each.lower for each in ends)
        assert upper[at] in [each.upper for each in ends]
    assert list(lower) == sorted(lower, reverse=True)  # the longer errors may last, the less is sure
    assert "the data show longer runs" in [text.get_text() for text in axis.get_legend().get_texts()]
    assert list(swept_lengths(3)) == [1, 2, 3]


def test_bounds_are_nested_bands(files):
    result = verify_spec(*files, RunOptions(memory="none", dependence_free=True, assume_memoryless=True))
    figure = figure_of_run(result)
    bands = [
        (path.vertices[:, 1].min(), path.vertices[:, 1].max())
        for collection in figure.axes[0].collections if isinstance(collection, PolyCollection)
        for path in collection.get_paths()
    ]  # fmt: skip
    assert len(bands) == 3
    for outer, inner in pairwise(bands):
        assert outer[0] <= inner[0] + 1e-9
        assert inner[1] <= outer[1] + 1e-9
    assert "whatever the dependence, confidence bounds, interval" in figure.axes[0].get_title()


def test_the_only_initial_value_is_the_only_tick(files):
    (files[0].parent / "m.toml").write_text(latch(4))
    axis = figure_of_run(verify_spec(*files, RunOptions(memory="none", confidence=None))).axes[0]
    low, high = axis.get_xlim()
    assert [tick for tick in axis.get_xticks() if low <= tick <= high] == [0]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_figures_are_written(ending, files, tmp_path):
    path = tmp_path / f"f.{ending}"
    asked = ["run", *map(str, (files[0], "--cm", files[1])), "--persist", "2", "--assume-persistence"]
    assert main([*asked, "--plot", str(path)]) in (0, 1, 3)
    assert path.stat().st_size > 1000


def test_runs_are_drawn_of_counts_by_run_only(tmp_path, capsys):
    asked = ["confusion", "--format", "mot", "--annotations", "a", "--detections", "b", "--plot-runs"]
    assert main([*asked, str(tmp_path / "f.png")]) == 2
    assert "--plot-runs needs counts by run: --memory run:L" in capsys.readouterr().err
    assert main([*asked, str(tmp_path / "f.txt"), "--memory", "run:2"]) == 2
    assert "expected a file name ending in" in capsys.readouterr().err
