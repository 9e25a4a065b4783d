"""The published car-pedestrian chains: transition by transition, and their archived probabilities."""

import itertools
import json
from fractions import Fraction

import numpy as np
import published_chain
import pytest

from verifier.chains.chain import markov_chain
from verifier.perception.confusion import ConfusionMatrices, read_confusion
from verifier.systems.reader import read_model
from verifier.systems.skeleton import build_skeleton

PED, OBS, EMPTY = frozenset({"ped"}), frozenset({"obs"}), frozenset()
LABELS = (PED, OBS, EMPTY)
NAMES = ("ped", "obs", "empty")
ANY_DISTANCE = np.array([0.0, np.inf])
# Columns true ped, obj, empty; rows predicted. CM1 in fifteenths, CM3 in thousandths.
CM1 = [[10, 2, 3], [2, 11, 2], [3, 2, 10]]
CM3 = [[900, 80, 20], [75, 800, 40], [25, 120, 940]]


def precision_recall(precision, recall):
    """The family of matrices by precision p and recall r, as integer counts."""
    fp = recall / precision - recall
    tn = (2 - fp) / 2
    columns = [
        [recall, (1 - recall) / 2, (1 - recall) / 2],
        [fp / 2, tn * Fraction(8, 10), tn * Fraction(2, 10)],
        [fp / 2, tn * Fraction(2, 10), tn * Fraction(8, 10)],
    ]
    scale = 1
    for entry in itertools.chain.from_iterable(columns):
        scale = scale * entry.denominator // np.gcd(scale, entry.denominator)
    return [[int(columns[true][predicted] * scale) for true in range(3)] for predicted in range(3)]


def distance_free(counts):
    return ConfusionMatrices("class", LABELS, ANY_DISTANCE, np.array([counts], dtype=np.int64))


@pytest.fixture(scope="module")
def model(root):
    return read_model(root / "models/car_pedestrian.toml")


def column_of(matrices, true):
    """distance in cells of 1 m -> label -> probability, read off the counts without the package's help."""

    def column(cells):
        index = next(k for k in range(len(matrices.edges_m) - 1) if cells < matrices.edges_m[k + 1])
        counts = [int(row[NAMES.index(true)]) for row in matrices.counts[index]]
        return {name: Fraction(count, sum(counts)) for name, count in zip(NAMES, counts, strict=True)}

    return column


def built(model, matrices, environment, vmax, decimals=None, study_vmax=10, exact=True):
    system = model.instantiate({"vmax": vmax, "study_vmax": study_vmax})
    skeleton = build_skeleton(system, system.planners["published"], environment, matrices)
    return markov_chain(skeleton, matrices.counts, {}, exact=exact, decimals=decimals)


def rows_of(chain):
    """(run, (x, v)) -> {(x, v): fraction}."""
    states = list(zip(chain.valuations["x"].tolist(), chain.valuations["v"].tolist(), strict=True))
    memory = chain.valuations.get("run", np.zeros(len(states), dtype=int)).tolist()
    rows = {}
    for state in range(len(states)):
        span = range(chain.indptr[state], chain.indptr[state + 1])
        rows[memory[state], states[state]] = {states[chain.indices[k]]: chain.fractions[k] for k in span}
    return rows


@pytest.mark.parametrize("environment", NAMES)
@pytest.mark.parametrize(("study_vmax", "vmax"), [(1, 1), (3, 2), (3, 3), (5, 5), (10, 4), (10, 10)])
def test_every_transition_is_the_published_one(model, environment, study_vmax, vmax):
    matrices = distance_free(precision_recall(Fraction(8, 10), Fraction(9, 10)))
    found = rows_of(built(model, matrices, environment, vmax, study_vmax=study_vmax))
    expected = {}
    for run, v0 in enumerate(range(1, vmax + 1)):
        rows = published_chain.chain((1, v0), study_vmax, vmax, column_of(matrices, environment))
        expected |= {(run, state): row for state, row in rows.items()}
    assert found == expected


@pytest.mark.parametrize("environment", NAMES)
def test_every_transition_with_matrices_by_distance(model, root, environment):
    matrices = read_confusion(root / "examples/nuscenes_yolov3_class.json").matrices
    found = rows_of(built(model, matrices, environment, 6))
    for run, v0 in enumerate(range(1, 7)):
        rows = published_chain.chain((1, v0), 10, 6, column_of(matrices, environment))
        for state, row in rows.items():
            assert found[run, state] == row


def test_the_published_run_for_a_pedestrian():
    # vmax = 5, v0 = 5: the speeds are 5, 4 (eleven times), 3, 2, 1, 0; 1 + 5 + 44 + 3 + 2 + 1 = 56.
    cells, stop = published_chain.geometry(10)
    run = published_chain.runs((1, 5), cells, stop, 5)["ped"]
    speeds, state = [5], (1, 5)
    while state != (stop, 0):
        state = run[state]
        speeds.append(state[1])
    assert speeds == [5, *[4] * 11, 3, 2, 1, 0]


def solved(chain, stop_cell):
    """P(F stopped at the line) from each initial state, by one dense solve."""
    n = chain.state_count
    matrix = np.zeros((n, n))
    matrix[np.repeat(np.arange(n), np.diff(chain.indptr)), chain.indices] = chain.probabilities
    goal = (chain.valuations["x"] == stop_cell) & (chain.valuations["v"] == 0)
    ended = goal | (matrix.diagonal() == 1)
    transient = ~ended
    value = goal.astype(float)
    inner = np.eye(transient.sum()) - matrix[np.ix_(transient, transient)]
    value[transient] = np.linalg.solve(inner, matrix[np.ix_(transient, goal)].sum(axis=1))
    return value[chain.initial]


SETTINGS = {
    "cdc2021_CM1_true_ped": (CM1, "ped"),
    "cdc2021_CM1_true_obj": (CM1, "obs"),
    "cdc2021_CM3_true_ped": (CM3, "ped"),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_published_archive(model, shared, setting):
    published = json.loads((shared / "reference/published_probabilities.json").read_text())[setting]
    counts, environment = SETTINGS[setting]
    assert sum(len(values) for values in published.values()) == 55
    for vmax, values in published.items():
        chain = built(model, distance_free(counts), environment, int(vmax), decimals=4, exact=False)
        stopped = solved(chain, 56)
        found = stopped if environment == "ped" else 1 - stopped
        assert np.abs(found - np.array(values)).max() < 1e-12


def test_another_setting_of_the_family_agrees_with_its_definition_exactly(model):
    matrices = distance_free(precision_recall(Fraction(7, 10), Fraction(85, 100)))
    for vmax in (1, 3, 7):
        found = solved(built(model, matrices, "ped", vmax, exact=False), 56)
        for v0 in range(1, vmax + 1):
            exact = published_chain.stop_probability((1, v0), 10, vmax, column_of(matrices, "ped"))
            assert found[v0 - 1] == pytest.approx(float(exact), rel=1e-12, abs=0)


def test_the_papers_numbers_at_walking_pace(model, root):
    by_distance = read_confusion(root / "examples/nuscenes_yolov3_class.json").matrices
    by_set = read_confusion(root / "examples/nuscenes_yolov3_proposition.json").matrices
    # vmax = 1: all depends on one detection, 2 m before the crosswalk. Canonical: the sums over ten bins.
    for matrices, value in (
        (by_distance.canonical(), Fraction(711, 711 + 1 + 7910)),
        (by_distance, Fraction(31, 158)),
        (by_set, Fraction(22, 85)),
    ):
        assert solved(built(model, matrices, "ped", 1), 56)[0] == pytest.approx(float(value), rel=1e-14, abs=0)
    canonical = solved(built(model, by_set.canonical(), "ped", 1), 56)[0]
    # The column of true {ped}, summed over the ten bins.
    seen = sum(int(row[0]) for table in by_set.counts for row in (table[0], table[2]))
    total = sum(int(table[:, 0].sum()) for table in by_set.counts)
    assert canonical == pytest.approx(seen / total, rel=1e-14, abs=0)
    assert round(canonical, 3) == 0.129
