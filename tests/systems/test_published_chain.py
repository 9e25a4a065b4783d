"""The published car-pedestrian chains, transition by transition."""

import math
from fractions import Fraction

import numpy as np
import published_chain
import pytest
from published_matrices import NAMES, precision_recall

from verifier.chains.chain import markov_chain
from verifier.perception.confusion import ConfusionMatrices, read_confusion
from verifier.systems.reader import read_model
from verifier.systems.skeleton import build_skeleton

PED, OBS, EMPTY = frozenset({"ped"}), frozenset({"obs"}), frozenset()
LABELS = (PED, OBS, EMPTY)
ANY_DISTANCE = np.array([0.0, np.inf])


def distance_free(columns):
    """A matrix for any distance with the rates of these columns."""
    scale = math.lcm(*(entry.denominator for column in columns.values() for entry in column))
    counts = [[int(columns[true][predicted] * scale) for true in NAMES] for predicted in range(3)]
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


def built(model, matrices, environment, vmax, study_vmax=10):
    system = model.instantiate({"vmax": vmax, "study_vmax": study_vmax})
    skeleton = build_skeleton(system, system.planners["published"], environment, matrices)
    return markov_chain(skeleton, matrices.counts, {}, exact=True)


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
