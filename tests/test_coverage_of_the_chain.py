"""From simulated drives to the bounds that `verify run` prints: how often they hold the true probability.

Each data set is a file of matrices, counted drive by drive from a detector whose rates differ between drives. Sets of
drives are alike, so the true matrix is the mean of the law, and the probability of each system follows from it by a
formula written here. `--slow` runs 300 data sets for each law; the plain suite ten.
"""

import json

import numpy as np
import pytest
from matrix_documents import document_of
from scipy.stats import beta

from verifier.analysis.settings import ConfidenceSettings
from verifier.pipeline import verified
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions

RECALLS = (0.95, 0.85, 0.7)  # of pedestrians, by bin of 10 m
LARGEST = 400
MODEL = """
initial = "s = 0"
terminal = "s > {last}"
[variables]
s = {{ range = [0, 4], next = "go" }}
[inputs]
go = {{ range = [0, 4] }}
[labels]
confirmed = "s = 3"
[quantities]
gap_m = "max(25 - 10 * s, 5)"
[environments]
{environment}
[planners.p]
rules = [{rules}]
"""
SYSTEMS = {
    # Three looks at 25, 15 and 5 m, each of which must show the pedestrian.
    "three looks": (
        MODEL.format(
            last=2,
            environment='road = [{ class = "ped", distance_m = "gap_m" }]',
            rules='{ when = "sees(ped)", set = { go = "s + 1" } }, { when = "true", set = { go = 4 } }',
        ),
        RECALLS[0] * RECALLS[1] * RECALLS[2],
    ),
    # One look at two pedestrians, 5 and 25 m away, of which one must be seen.
    "two objects": (
        MODEL.format(
            last=0,
            environment='road = [{ class = "ped", distance_m = 5 }, { class = "ped", distance_m = 25 }]',
            rules='{ when = "sees(ped)", set = { go = 3 } }, { when = "true", set = { go = 4 } }',
        ),
        1 - (1 - RECALLS[0]) * (1 - RECALLS[2]),
    ),
}
LAWS = [(0.0, 20, "even"), (0.1, 20, "even"), (0.3, 20, "even"), (0.1, 10, "lognormal"), (0.3, 30, "half")]


def sizes(rng, drives, kind):
    """(drives, bins) items of each column in each drive, independent of the rates."""
    if kind == "lognormal":
        return np.clip(np.exp(rng.normal(np.log(20), 1.3, (drives, 3))), 1, LARGEST).astype(int)
    found = np.full((drives, 3), 40)
    if kind == "half":
        found[0] = 40 * (drives - 1)
    return found


def simulated(rng, icc, drives, kind):
    """A file of matrices: beta-distributed rates, hard drives hard in all bins."""
    items = sizes(rng, drives, kind)
    rates = np.tile(RECALLS, (drives, 1))
    if icc:
        weight = 1 / icc - 1
        rates = beta.ppf(rng.random((drives, 1)), rates * weight, (1 - rates) * weight)
    hits = rng.binomial(items, rates)
    counts = np.stack([hits, items - hits], axis=2)  # (drives, bins, predicted)
    total = ([[seen, 0], [missed, 1]] for seen, missed in counts.sum(axis=0).tolist())
    sequences = [
        {
            "name": f"{d:04}",
            "frames": 1000,
            "counts": [
                [k, predicted, 0, int(counts[d, k, predicted])]
                for k in range(3)
                for predicted in range(2)
                if counts[d, k, predicted]
            ]
            + ([[k, 1, 1, 1] for k in range(3)] if d == 0 else []),
        }
        for d in range(drives)
    ]
    return document_of(*total, false_positives="dropped", sequences=sequences)


def bounds_of(folder, storm, system, data, **settings):
    """The confidence bounds in the document of a run, and their tier."""
    (folder / "model.toml").write_text(SYSTEMS[system][0])
    (folder / "spec.ltl").write_text('model "model.toml"\nstops: P >= 0.5 [ F confirmed ]\n')
    (folder / "data.json").write_text(json.dumps(data))
    options = RunOptions(confidence=ConfidenceSettings(draws=100, **settings))
    found = json.loads(
        verified(
            Study.of(read_inputs(folder / "spec.ltl", folder / "data.json", options), options), storm
        ).json_text()
    )
    (point,) = found["requirements"][0]["points"]
    ends = point["uncertainty"]["confidence_bounds"]
    assert ends["lower"] <= point["probability"] <= ends["upper"]
    return found["settings"]["confidence"]["bounds"]["tier"], ends["lower"], ends["upper"]


def covered(folder, storm, system, law, data_sets, **settings):
    """Share of data sets whose bounds hold the true probability, mean width, and the tier."""
    rng, truth = np.random.default_rng(20), SYSTEMS[system][1]
    found = [bounds_of(folder, storm, system, simulated(rng, *law), **settings) for _ in range(data_sets)]
    (tier,) = {tier for tier, _, _ in found}
    width = float(np.mean([high - low for _, low, high in found]))
    return float(np.mean([low <= truth <= high for _, low, high in found])), width, tier


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_bounds_hold_the_true_probability(system, tmp_path, storm):
    share, width, tier = covered(tmp_path, storm, system, LAWS[2], 10)
    assert tier == "independent_drives"
    assert share >= 0.94
    assert width < 0.9  # they say something
    # The same data taken for independent items: a test that could not fail would be none.
    share, _, tier = covered(tmp_path, storm, system, LAWS[2], 6, assume_independent_items=True)
    assert tier == "independent_items"
    assert share < 0.94


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_bounds_hold_the_true_probability_in_many_data_sets(system, law, tmp_path, storm):
    share, width, tier = covered(tmp_path, storm, system, law, 300)
    print(f"{system}, icc {law[0]}, {law[1]} drives, {law[2]}: covered {share:.3f}, mean width {width:.3f}")
    assert tier == "independent_drives"
    assert share >= 0.94
