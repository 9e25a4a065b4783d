"""Models without the newer keys give the chains they gave before those came: every state, transition and digit.

The digests were taken from the program as it was before the world could move (commit 9e8ea55).
"""

import hashlib
from fractions import Fraction

import numpy as np
import pytest

from verifier.language.ltl import parse_formula
from verifier.perception.confusion import EMPTY, ConfusionMatrices, exact_rates, rates, read_confusion
from verifier.systems import exploration
from verifier.systems.reader import read_model
from verifier.systems.scene import SkeletonOptions
from verifier.systems.skeleton import build_skeleton

CROWD = """
initial = "x = 0 | x = 2"
terminal = "x = 12 | (v = 0 & x > 8)"
admissible = "speed <= v + 1"
[constants]
last = 12
[variables]
x = { range = [0, "last"], next = "min(x + v, last)" }
v = { range = [0, 3], next = "speed" }
[inputs]
speed = { range = [0, 3] }
[environments]
crowd = [{ class = "ped", distance_m = "abs(last - x)" }, { class = "obs", distance_m = "2 * x" }]
nobody = [{ class = "empty", distance_m = "x" }, { class = "empty", distance_m = "4 * x" }]
[planners.careful]
rules = [
    { when = "sees(ped) & x > 4", set = { speed = "max(v - 1, 0)" } },
    { when = "sees(obs) & v > 1", stay = true },
    { when = "true", set = { speed = "min(v + 1, 3)" } },
]
"""
ALARMS = np.array([[[7, 1, 1], [2, 4, 2], [3, 5, 8]], [[1, 2, 3], [1, 1, 2], [5, 1, 9]]], dtype=np.int64)
FORMULA = "G (ped | !(x = stop_cell & v = 0)) & (!ped | F (x = stop_cell & v = 0))"
BEFORE = {
    "careful crowd as_counted": "b815474e4e9e5624",
    "careful nobody as_counted": "dc1014de5866dfc9",
    "careful crowd background": "f2acef60e1810bf3",
    "careful nobody background": "dc1014de5866dfc9",
    "class published ped": "4dcc838e6e3cd7e8",
    "class published obs": "3ba46517e6217e1e",
    "class published empty": "ff76a787f7212805",
    "class feedback ped": "938087a84b678b66",
    "class feedback obs": "21f321af6b7a2c2f",
    "class feedback empty": "9b47edf1072fa974",
    "class correct ped": "24168c1f38ec9e57",
    "class correct obs": "e5017ce89636c4a9",
    "class correct empty": "47312be1aeea8781",
    "class cautious ped": "d253e834ac8bf0e0",
    "class cautious obs": "7d19363edb174191",
    "class cautious empty": "375eb60c4b53aacb",
    "proposition published ped": "57cf3bbf0cec8b77",
    "proposition published obs": "95a03d45d5be7acf",
    "proposition published empty": "ff76a787f7212805",
    "proposition feedback ped": "e8ab4f909d6a48d2",
    "proposition feedback obs": "45928e366ed1fb2b",
    "proposition feedback empty": "9b47edf1072fa974",
    "proposition correct ped": "91814e06be731b55",
    "proposition correct obs": "05e3b65b9578297c",
    "proposition correct empty": "47312be1aeea8781",
    "proposition cautious ped": "77a2072e4762aabe",
    "proposition cautious obs": "0fda7e846abc5339",
    "proposition cautious empty": "375eb60c4b53aacb",
}


def digest(skeleton, counts):
    """A hash of all states, transitions, and probabilities as fractions and as doubles."""
    parts = [*skeleton.valuations.values(), skeleton.memory, skeleton.starts, skeleton.terminal]
    parts += [skeleton.indptr, skeleton.indices, skeleton.entry]
    found = hashlib.sha256(b"".join(part.astype("<i8").tobytes() for part in parts))
    found.update(",".join(skeleton.valuations).encode())
    found.update(",".join(map(str, map(Fraction, skeleton.entry_values(exact_rates(counts))))).encode())
    found.update(skeleton.fill(rates(counts)).astype("<f8").tobytes())
    return found.hexdigest()[:16]


def cases(root, folder):
    crowd = folder / "crowd.toml"
    crowd.write_text(CROWD)
    labels = (frozenset({"ped"}), frozenset({"obs"}), EMPTY)
    matrices = ConfusionMatrices("class", labels, np.array([0.0, 4.0, np.inf]), ALARMS)
    for policy in ("as_counted", "background"):
        for environment in ("crowd", "nobody"):
            yield f"careful {environment} {policy}", crowd, {}, "careful", environment, matrices, policy
    for name in ("class", "proposition"):
        matrices = read_confusion(root / f"examples/nuscenes_yolov3_{name}.json").matrices
        for planner in ("published", "feedback", "correct", "cautious"):
            for environment in ("ped", "obs", "empty"):
                label, car = f"{name} {planner} {environment}", root / "models/car_pedestrian.toml"
                yield label, car, {"vmax": 4}, planner, environment, matrices, "as_counted"


def digests(chosen):
    found = {}
    for label, path, settings, planner, environment, matrices, policy in chosen:
        system = read_model(path).instantiate(settings)
        options = SkeletonOptions(formula=parse_formula(FORMULA), false_positives=policy)
        skeleton = build_skeleton(system, system.planners[planner], environment, matrices, options)
        found[label] = digest(skeleton, matrices.without_empty_columns("prior")[0])
    return found


def test_states_transitions_and_probabilities_are_those_of_before(root, tmp_path):
    assert digests(cases(root, tmp_path)) == BEFORE


def test_they_are_the_same_explored_step_by_step(root, tmp_path, monkeypatch):
    monkeypatch.setattr(exploration, "_all_at_once", lambda scene: None)
    assert digests(cases(root, tmp_path)) == BEFORE


@pytest.mark.parametrize("largest", [3, 8, 60])
def test_codes_of_several_words_give_the_same_states(root, tmp_path, monkeypatch, largest, thorough):
    # With words of so few values every variable has a word of its own, or some share one: codes are texts of bytes.
    monkeypatch.setattr("verifier.systems.space.LARGEST_WORD", largest)
    monkeypatch.setattr(exploration, "_all_at_once", lambda scene: None)
    rules = [case for case in cases(root, tmp_path) if case[3] not in ("published", "correct")]
    rules = rules if thorough else rules[:7]
    assert digests(rules) == {case[0]: BEFORE[case[0]] for case in rules}
