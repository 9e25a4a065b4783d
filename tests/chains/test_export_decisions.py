"""Decision processes as UMB, DRN, PRISM and JANI, read back by Storm: the same choices, labels and optima."""

import json
from fractions import Fraction as Fr

import numpy as np
import pytest
import stormpy
from read_exports import optimum, read
from small_chains import process_of
from world_specs import matrices_of, spec_of

from verifier.base.errors import LimitError
from verifier.chains import EXPORT_FORMATS, write_model
from verifier.chains.chain import MarkovChain
from verifier.chains.umb import _bytes_of_half
from verifier.study.case import Study
from verifier.study.exporting import model_of
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions

# 0: goal with 1/3, else 1; or stay. 1: goal with 1/2 or 6/7, else trap; or 0 with 1/2, else trap.
ROWS = [
    [{1: Fr(2, 3), 2: Fr(1, 3)}, {0: Fr(1)}],
    [{2: Fr(1, 2), 3: Fr(1, 2)}, {0: Fr(1, 2), 3: Fr(1, 2)}, {2: Fr(6, 7), 3: Fr(1, 7)}],
    [{2: Fr(1)}],
    [{3: Fr(1)}],
]


def walk(rows=ROWS, exact=True, initial=(0,), valuations=None):
    meaning = {"x": np.array([4, 4, -1, -1]), "true": np.array([0, 1, 0, 1])} if valuations else {}
    labels = {"goal": {2}, "a b": {0, 1}, "never": {}}
    return process_of(rows, labels, initial, exact=exact, valuations=meaning)


@pytest.mark.parametrize("ending", EXPORT_FORMATS)
@pytest.mark.parametrize("valuations", [False, True])
@pytest.mark.parametrize("initial", [(0,), (0, 1)])
def test_optima_are_those_by_hand(ending, valuations, initial, tmp_path):
    # From 1 at best 6/7 by way of the third choice; from 0 then 1/3 + 2/3 * 6/7. At worst 0 stays for ever: 0; from 1
    # going to 0 and staying there is 0, too.
    path = tmp_path / f"m{ending}"
    write_model(walk(exact=False, initial=initial, valuations=valuations), path)
    model = read(path)
    assert model.model_type == stormpy.models.ModelType.MDP
    assert model.nr_states == 4
    assert model.nr_choices == 7
    assert set(model.labeling.get_states("goal")) == {2} or ending in (".prism", ".jani")
    best = [1 / 3 + 2 / 3 * 6 / 7, 6 / 7][: len(initial)]
    assert optimum(model, 'Pmax=? [F "goal"]') == pytest.approx(sorted(best), abs=1e-11)
    assert optimum(model, 'Pmin=? [F "goal"]') == pytest.approx([0.0] * len(initial), abs=1e-11)


@pytest.mark.parametrize("ending", [".prism", ".jani", ".drn"])
def test_fractions_are_written_as_such(ending, tmp_path):
    write_model(walk(valuations=True), tmp_path / f"m{ending}")
    text = (tmp_path / f"m{ending}").read_text()
    assert ('"left": 6' in text and '"right": 7' in text) if ending == ".jani" else "6/7" in text


def test_fractions_and_whole_numbers_are_told_apart_in_jani(tmp_path):
    write_model(walk(valuations=True), tmp_path / "m.jani")
    (automaton,) = json.loads((tmp_path / "m.jani").read_text())["automata"]
    written = [[to["probability"]["exp"] for to in edge["destinations"]] for edge in automaton["edges"]]

    def over(left, right):
        return {"op": "/", "left": left, "right": right}

    half = [over(1, 2), over(1, 2)]
    assert written == [[over(2, 3), over(1, 3)], [1], half, half, [over(6, 7), over(1, 7)], [1], [1]]


def test_a_chain_as_jani_is_that_chain(tmp_path):
    rows = [[{1: Fr(1, 3), 2: Fr(2, 3)}], [{0: Fr(1, 4), 3: Fr(3, 4)}], [{2: Fr(1)}], [{3: Fr(1)}]]
    process = walk(rows)
    own = ("indptr", "indices", "probabilities", "labels", "initial", "fractions", "valuations")
    write_model(MarkovChain(**{name: getattr(process, name) for name in own}), tmp_path / "m.jani")
    model = read(tmp_path / "m.jani")
    assert model.model_type == stormpy.models.ModelType.DTMC
    assert optimum(model, 'P=? [F "goal"]') == pytest.approx([8 / 11], abs=1e-11)


def test_jani_says_its_version_and_which_names_it_changed(tmp_path):
    write_model(walk(valuations=True), tmp_path / "m.jani")
    found = json.loads((tmp_path / "m.jani").read_text())
    assert (found["jani-version"], found["type"]) == (1, "mdp")
    assert found["metadata"]["description"] == "true_2 is 'true'; a_b is 'a b'"
    assert {each["name"] for each in found["variables"]} == {"x", "true_2", "goal", "a_b", "never"}
    labels = [each for each in found["variables"] if each["type"] == "bool"]
    assert {(each["transient"], each["initial-value"]) for each in labels} == {(True, False)}  # false where not set


@pytest.mark.parametrize(
    ("fraction", "words"),
    [
        (Fr(1, 2), 1),
        (Fr(2**63 - 1, 2**63), 1),  # 63 bits and a sign
        (Fr(2**64 - 3, 2**64 - 1), 2),  # 64 bits and a sign
        (Fr(1, 2**64 - 1), 1),
        (Fr(1, 2**64), 2),
        (Fr(1, 2**128), 3),
    ],
)
def test_rational_numbers_take_as_many_words_as_the_longest_needs(fraction, words):
    assert _bytes_of_half([Fr(1), fraction, Fr(0)]) == 8 * words


def test_fractions_that_are_too_long_for_jani_are_refused(tmp_path):
    odd = Fr(1, 2**64)
    with pytest.raises(LimitError, match="too long for JANI"):
        write_model(walk([[{1: odd, 2: 1 - odd}], *ROWS[1:]]), tmp_path / "m.jani")


def test_an_exported_world_has_the_optima_of_the_run(shared, tmp_path):
    folder = shared / "oracles/worlds/crossing_adversarial"
    options = RunOptions(confidence=None)
    paths = spec_of(folder, tmp_path, ("no_hit",)), matrices_of(folder, tmp_path)
    study = Study.of(read_inputs(*paths, options), options)
    for ending in EXPORT_FORMATS:
        write_model(model_of(study), tmp_path / f"m{ending}")
        model = read(tmp_path / f"m{ending}")
        assert optimum(model, 'Pmax=? [F "hit"]') == pytest.approx([0.902202782338], rel=1e-9)
        assert optimum(model, 'Pmin=? [F "hit"]') == pytest.approx([1 - 0.999654563574], rel=1e-8)
