"""UMB, DRN and PRISM exports, read back by Storm: the same chain, labels, meaning and probabilities."""

import json
import re
import tarfile
from fractions import Fraction as Fr

import numpy as np
import pytest
import stormpy
from hypothesis import given
from hypothesis import strategies as st
from small_chains import chain_of, process_of
from stormpy.developer import LogLevel, set_log_level

from verifier.base.errors import InputError, LimitError
from verifier.chains.chain import MarkovChain
from verifier.chains.languages import write_prism
from verifier.chains.texts import write_drn
from verifier.chains.umb import LARGEST_MEMBER, write_umb

set_log_level(LogLevel.OFF)


def ints(*values):
    return np.array(values, dtype=np.int64)


def masks(n, **states):
    return {name: np.isin(np.arange(n), list(where)) for name, where in states.items()}


def passing(labels=None, initial=(0,), exact=True, **more):
    """0 -> 1 | goal with 1/3, 2/3; 1 -> 0 | trap with 1/4, 3/4: P(F goal) is 8/11 from 0 and 2/11 from 1."""
    rows = [{1: Fr(1, 3), 2: Fr(2, 3)}, {0: Fr(1, 4), 3: Fr(3, 4)}, {2: 1}, {3: 1}]
    return chain_of(rows, {"goal": {2}} if labels is None else labels, initial, exact=exact, **more)


def rows_of(model):
    return [
        {entry.column: entry.value for entry in model.transition_matrix.get_row(row)}
        for row in range(model.transition_matrix.nr_rows)
    ]


def labels_of(model):
    return {label: set(model.labeling.get_states(label)) for label in model.labeling.get_labels()}


def read_umb(path, valuations=False):
    options = stormpy.io.UmbImportOptions()
    options.build_state_valuations = valuations
    return stormpy.build_model_from_umb(str(path), options=options)


def read_prism(path):
    options = stormpy.BuilderOptions()
    options.set_build_all_labels(True)
    options.set_build_state_valuations(True)
    return stormpy.build_model(stormpy.parse_prism_program(str(path)), options=options)


def probability(model, label="goal"):
    environment = stormpy.environments.sound()
    environment.solver().native().precision = stormpy.Rational("1/1000000000000")
    formula = stormpy.parse_property(f'P=? [ F "{label}" ]')
    result = stormpy.model_checking(model, formula, environment=environment)
    return {state: result.get_value(state) for state in model.initial_states}


# ------------------------------------------------------------------------------------------------------------ UMB


def test_umb_keeps_every_double_label_and_initial_state(tmp_path):
    names = {"goal": [2], "a b": [0, 3], 'é "q" 🚗\n': [1], "": [], "p0": [0, 1, 2, 3]}
    chain = passing(masks(4, **names), initial=(0, 3))
    write_umb(chain, tmp_path / "m.umb")
    model = read_umb(tmp_path / "m.umb")
    assert not model.is_exact
    assert model.model_type == stormpy.models.ModelType.DTMC
    assert rows_of(model) == [{1: 1 / 3, 2: 2 / 3}, {0: 0.25, 3: 0.75}, {2: 1.0}, {3: 1.0}]
    assert labels_of(model) == {"init": {0, 3}, **{name: set(where) for name, where in names.items()}}
    assert probability(model) == pytest.approx({0: 8 / 11, 3: 0.0}, abs=1e-11)


def test_umb_chooses_labels(tmp_path):
    chain = passing(masks(4, goal=[2], other=[1]))
    write_umb(chain, tmp_path / "m.umb", labels={"other"})
    assert labels_of(read_umb(tmp_path / "m.umb")) == {"init": {0}, "other": {1}}
    with pytest.raises(ValueError, match=r"unknown labels: \['nowhere'\]"):
        write_umb(chain, tmp_path / "m.umb", labels=["nowhere"])


def test_umb_keeps_fractions_of_any_length(tmp_path):
    for odds in (Fr(1, 3), Fr(2**62, 2**63 - 1), Fr(2**63, 2**64 - 1), Fr(1, 2**64), Fr(7**900, 11**900)):
        fractions = (odds, 1 - odds, Fr(1), Fr(1))
        chain = MarkovChain(
            indptr=ints(0, 2, 3, 4),
            indices=ints(1, 2, 1, 2),
            probabilities=np.array([max(float(fraction), 1e-300) for fraction in fractions]),
            labels=masks(3, goal=[1]),
            initial=ints(0),
            fractions=fractions,
        )
        write_umb(chain, tmp_path / "m.umb", exact=True)
        model = read_umb(tmp_path / "m.umb")
        assert model.is_exact
        written = [Fr(str(value)) for row in rows_of(model) for value in row.values()]
        assert written == list(fractions)
        assert Fr(str(probability(model)[0])) == odds
    with pytest.raises(ValueError, match="fractions"):
        write_umb(passing(exact=False), tmp_path / "m.umb", exact=True)


def test_umb_keeps_what_the_states_mean(tmp_path):
    meaning = {"x": ints(-(2**63), -1, 0, 2**63 - 1), "true speed [m/s]": ints(0, 1, 2, 3), "F": ints(5, 5, 5, 5)}
    write_umb(passing(valuations=meaning), tmp_path / "m.umb", storm_padding=True)
    model = read_umb(tmp_path / "m.umb", valuations=True)
    texts = [model.state_valuations.to_string(state) for state in range(4)]
    for state, text in enumerate(texts):
        assert {int(number) for number in re.findall(r"=(-?\d+)", text)} == {int(c[state]) for c in meaning.values()}
    assert "true speed [m/s]=1" in texts[1]
    with tarfile.open(tmp_path / "m.umb") as archive:
        (rows,) = (each.size for each in archive if each.name.endswith("valuations.bin"))
        told = json.load(archive.extractfile("index.json"))["valuations"]["states"]
    assert rows == 5 * 3 * 8  # four states and the padding
    whole = {"type": {"type": "int", "size": 64}, "offset": 0}
    ends = {name: {"lower": int(min(column)), "upper": int(max(column))} for name, column in meaning.items()}
    variables = [{"name": name, **whole, **ends[name]} for name in meaning]
    assert told == {"unique": False, "classes": [{"variables": variables}]}
    write_umb(passing(valuations=meaning), tmp_path / "m.umb", valuations=False)
    with tarfile.open(tmp_path / "m.umb") as archive:
        assert "valuations" not in " ".join(archive.getnames())


def test_umb_padding_is_one_more_initial_state_that_nothing_leads_to(tmp_path):
    for exact in (False, True):
        write_umb(passing(initial=(1,)), tmp_path / "m.umb", exact=exact, storm_padding=True)
        model = read_umb(tmp_path / "m.umb")
        rows = [{target: Fr(str(value)) for target, value in row.items()} for row in rows_of(model)]
        assert rows[4] == {4: 1}
        assert all(4 not in row for row in rows[:4])
        assert labels_of(model) == {"init": {1, 4}, "goal": {2}}


@pytest.mark.parametrize("n", [1, 7, 8, 63, 64, 65, 128])
def test_umb_bit_masks_of_every_length(tmp_path, n):
    mask = np.arange(n) % 3 == 0
    chain = MarkovChain(np.arange(n + 1), np.arange(n), np.ones(n), {"third": mask}, np.arange(n))
    for padded in (False, True):
        write_umb(chain, tmp_path / "m.umb", storm_padding=padded)
        model = read_umb(tmp_path / "m.umb")
        assert model.nr_states == n + padded
        assert labels_of(model) == {"init": set(range(n + padded)), "third": set(np.flatnonzero(mask).tolist())}


def test_umb_is_a_tar_archive_with_an_index_and_the_same_bytes_every_time(tmp_path):
    meaning = {"x": ints(0, 1, 2, 3)}
    first, second = tmp_path / "one.umb", tmp_path / "two.umb"
    write_umb(passing(masks(4, goal=[2], b=[1]), valuations=meaning), first)
    write_umb(passing(masks(4, b=[1], goal=[2]), valuations=meaning), second)
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        members = archive.getmembers()
        index = json.load(archive.extractfile("index.json"))
        end = members[-1].offset_data + -(-members[-1].size // 512) * 512
        targets = np.frombuffer(archive.extractfile("branch-to-target.bin").read(), "<u8")
    assert {(m.mtime, m.uid, m.gid, m.uname, m.gname, m.mode) for m in members} == {(0, 0, 0, "", "", 0o644)}
    assert (index["format-version"], index["format-revision"]) == (1, 0)
    assert list(index) == sorted(index)
    assert index["transition-system"] == {
        "time": "discrete",
        "#players": 0,
        "#states": 4,
        "#initial-states": 1,
        "#choices": 4,
        "#choice-actions": 0,
        "#branches": 6,
        "#branch-actions": 0,
        "#observations": 0,
        "branch-probability-type": {"type": "double", "size": 64},
    }
    assert targets.tolist() == [1, 2, 0, 3, 2, 3]
    assert first.read_bytes()[end:] == bytes(1024)  # two empty blocks end an archive of tar


@pytest.mark.parametrize("padded", [False, True])
def test_umb_keeps_what_steps_gain(tmp_path, padded):
    numbers = [Fr(1, 2), Fr(0), Fr(-3), Fr(7, 4)]
    for exact, gains, size, kind in ((False, np.array(numbers, dtype=float), 8, "<f8"), (True, numbers, 16, "<i8")):
        write_umb(passing(), tmp_path / "m.umb", exact=exact, gains=gains, storm_padding=padded)
        with tarfile.open(tmp_path / "m.umb") as archive:
            told = json.load(archive.extractfile("index.json"))["annotations"]["rewards"]["gain"]
            read = np.frombuffer(archive.extractfile("annotations/rewards/gain/states/values.bin").read(), kind)
        assert told == {
            "applies-to": ["states"],
            "type": {"type": "rational" if exact else "double", "size": 8 * size},
        }
        found = [Fr(*map(int, pair)) for pair in read.reshape(-1, 2)] if exact else read.tolist()
        assert found == [*numbers, *[0] * padded]


def test_umb_of_a_decision_process(tmp_path):
    states = [[{1: Fr(1, 2), 2: Fr(1, 2)}, {0: 1}], [{1: 1}], [{2: 1}]]
    process = process_of(states, {"goal": {1}}, exact=True, valuations={"x": ints(4, 5, 6)})
    for exact in (False, True):
        write_umb(process, tmp_path / "m.umb", exact=exact, storm_padding=True)
        model = read_umb(tmp_path / "m.umb", valuations=True)
        assert model.model_type == stormpy.models.ModelType.MDP
        assert [model.get_nr_available_actions(state) for state in range(4)] == [2, 1, 1, 1]
        rows = [{target: Fr(str(value)) for target, value in row.items()} for row in rows_of(model)]
        assert rows == [{1: Fr(1, 2), 2: Fr(1, 2)}, {0: 1}, {1: 1}, {2: 1}, {3: 1}]
        assert labels_of(model) == {"init": {0, 3}, "goal": {1}}
        assert model.state_valuations.to_string(2) == "[x=6]"


# ------------------------------------------------------------------------------------------- writing all or nothing


@pytest.mark.parametrize("write", [write_umb, write_drn, write_prism])
def test_a_file_that_cannot_be_written_is_an_input_error_that_names_it(tmp_path, write):
    with pytest.raises(InputError, match=r"missing/m: cannot be written: No such file or directory"):
        write(passing(), tmp_path / "missing" / "m")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"folder: cannot be written"):
        write(passing(), tmp_path / "folder")
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


def test_an_array_larger_than_an_archive_holds_is_a_limit(tmp_path, monkeypatch):
    assert int("7" * 11, 8) == LARGEST_MEMBER  # the size of a file in an archive of tar has eleven octal digits
    monkeypatch.setattr("verifier.chains.umb.LARGEST_MEMBER", 1607)
    n = 200
    chain = MarkovChain(np.arange(n + 1), np.arange(n), np.ones(n), {}, ints(0))
    with pytest.raises(LimitError, match=r"choice-to-branches\.bin has 1608 bytes; an archive holds at most 1607"):
        write_umb(chain, tmp_path / "m.umb")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("verifier.chains.umb.LARGEST_MEMBER", 1608)
    write_umb(chain, tmp_path / "m.umb")
    assert list(tmp_path.iterdir()) == [tmp_path / "m.umb"]


@pytest.mark.parametrize("write", [write_umb, write_drn, write_prism])
def test_a_label_named_init_must_mark_the_initial_states(tmp_path, write):
    write(passing(masks(4, init=[0], goal=[2])), tmp_path / "m")
    assert list(tmp_path.iterdir()) == [tmp_path / "m"]
    with pytest.raises(InputError, match='the label "init" must mark exactly the initial states'):
        write(passing(masks(4, init=[0, 1])), tmp_path / "m")


# ------------------------------------------------------------------------------------------------------------ DRN


def test_drn_text(tmp_path):
    meaning = {"x": ints(-1, 0, 1, 2), "v (m/s)": ints(0, 1, 2, 3)}
    write_drn(passing(masks(4, goal=[2], **{"a b": [0, 2], 'say "hi"': [3]}), valuations=meaning), tmp_path / "m.drn")
    assert (tmp_path / "m.drn").read_text() == (
        "// Written by verifier.\n"
        '// label say _hi_ is "say \\"hi\\""\n'
        "@type: DTMC\n@value_type: rational\n@parameters\n\n@reward_models\n\n@nr_states\n4\n@nr_choices\n4\n@model\n"
        'state 0 init "a b"\n//[x=-1 & v__m_s_=0]\n\taction 0\n\t\t1 : 1/3\n\t\t2 : 2/3\n'
        "state 1\n//[x=0 & v__m_s_=1]\n\taction 0\n\t\t0 : 1/4\n\t\t3 : 3/4\n"
        'state 2 "a b" goal\n//[x=1 & v__m_s_=2]\n\taction 0\n\t\t2 : 1\n'
        'state 3 "say _hi_"\n//[x=2 & v__m_s_=3]\n\taction 0\n\t\t3 : 1\n'
    )
    model = stormpy.build_model_from_drn(str(tmp_path / "m.drn"))
    assert labels_of(model) == {"init": {0}, "goal": {2}, "a b": {0, 2}, "say _hi_": {3}}
    assert probability(model) == pytest.approx({0: 8 / 11}, abs=1e-11)
    exact = stormpy.build_model_from_drn[stormpy.Rational](str(tmp_path / "m.drn"))
    assert str(probability(exact)[0]) == "8/11"


def test_drn_labels_that_would_become_equal_stay_apart(tmp_path):
    names = {'a"': [0], "a\n": [1], "a_": [2], "é🚗": [3]}
    write_drn(passing(masks(4, **names)), tmp_path / "m.drn")
    model = stormpy.build_model_from_drn(str(tmp_path / "m.drn"))
    assert labels_of(model) == {"init": {0}, "a_": {1}, "a__2": {0}, "a__3": {2}, "é🚗": {3}}


# ---------------------------------------------------------------------------------------------------------- PRISM


def test_prism_text_over_the_state_variables(tmp_path):
    meaning = {"x": ints(1, 1, 2, 2), "true v": ints(0, 1, 0, 1)}
    labels = masks(
        4, goal=[2], **{"at line": [1, 2, 3], "ends": [0, 3], "none": [], "all": [0, 1, 2, 3], "init": [0]}
    )
    write_prism(passing(labels, valuations=meaning), tmp_path / "m.pm")
    assert (tmp_path / "m.pm").read_text() == (
        "// Written by verifier.\n"
        '// variable true_v is "true v"\n'
        '// label at_line is "at line"\n'
        "dtmc\n\nmodule chain\n"
        "  x : [1..2] init 1;\n"
        "  true_v : [0..1] init 0;\n\n"
        "  [] x=1 & true_v=0 -> 1/3 : (x'=1) & (true_v'=1) + 2/3 : (x'=2) & (true_v'=0);\n"
        "  [] x=1 & true_v=1 -> 1/4 : (x'=1) & (true_v'=0) + 3/4 : (x'=2) & (true_v'=1);\n"
        "  [] x=2 & true_v=0 -> 1 : (x'=2) & (true_v'=0);\n"
        "  [] x=2 & true_v=1 -> 1 : (x'=2) & (true_v'=1);\n"
        "endmodule\n\n"
        'label "all" = true;\n'
        'label "at_line" = (x=1 & true_v=1) | (x=2 & true_v>=0 & true_v<=1);\n'
        'label "ends" = (x=1 & true_v=0) | (x=2 & true_v=1);\n'
        'label "goal" = (x=2 & true_v=0);\n'
        'label "none" = false;\n'
    )
    model = read_prism(tmp_path / "m.pm")
    assert probability(model) == pytest.approx({model.initial_states[0]: 8 / 11}, abs=1e-11)


@pytest.mark.parametrize(
    "meaning",
    [{}, {"x": ints(0, 0, 1, 2)}, {"x": ints(0, 1, 2, 2**31)}, {"x": ints(-(2**31), 0, 1, 2)}],
    ids=["no variables", "two states with the same meaning", "too large for PRISM", "too small for PRISM"],
)
def test_prism_text_over_the_index_of_the_state(tmp_path, meaning):
    write_prism(passing(initial=(0, 1), valuations=meaning, exact=False), tmp_path / "m.pm")
    text = (tmp_path / "m.pm").read_text()
    assert "  s : [0..3];\n" in text
    assert "  [] s=0 -> 0.3333333333333333 : (s'=1) + 0.6666666666666666 : (s'=2);\n" in text
    assert "init (s>=0 & s<=1) endinit\n" in text
    model = read_prism(tmp_path / "m.pm")
    assert sorted(probability(model).values()) == pytest.approx([2 / 11, 8 / 11], abs=1e-11)


def test_the_least_and_the_greatest_value_of_prism_are_written(tmp_path):
    write_prism(passing(valuations={"x": ints(1 - 2**31, 0, 1, 2**31 - 1)}), tmp_path / "m.pm")
    assert "  x : [-2147483647..2147483647] init -2147483647;\n" in (tmp_path / "m.pm").read_text()


def test_prism_names_that_are_keywords_or_no_identifiers(tmp_path):
    meaning = {"F": ints(0, 1, 2, 3), "s": ints(0, 0, 0, 0), "chain": ints(1, 1, 1, 1), "2 é": ints(0, 0, 1, 1)}
    labels = masks(4, **{"goal": [2], "label": [0], "deadlock": [1], "é": [3], "ü": [2], "a-b": [0], "a_b": [1]})
    write_prism(passing(labels, valuations=meaning), tmp_path / "m.pm")
    model = read_prism(tmp_path / "m.pm")
    found = labels_of(model)
    assert {name: len(states) for name, states in found.items() if name not in ("init", "deadlock")} == {
        "goal": 1, "label_2": 1, "deadlock_2": 1, "n_": 1, "n__2": 1, "a_b": 1, "a_b_2": 1,
    }  # fmt: skip
    assert found["goal"] == found["n__2"]


def test_fractions_too_long_for_text(tmp_path):
    def rare(odds):
        numbers = np.array([float(odds), 1.0, 1.0])
        return MarkovChain(ints(0, 2, 3), ints(0, 1, 1), numbers, {}, ints(0), (odds, 1 - odds, Fr(1)))

    write_prism(rare(Fr(1, 2**63 - 1)), tmp_path / "m")
    assert "1/9223372036854775807" in (tmp_path / "m").read_text()
    chain = rare(Fr(1, 2**63))
    with pytest.raises(LimitError, match="more than 63 bits"):
        write_prism(chain, tmp_path / "m")
    write_drn(chain, tmp_path / "m")
    assert f"0 : 1/{2**63}\n" in (tmp_path / "m").read_text()
    long = Fr(3**10_000 // 7, 3**10_000)
    object.__setattr__(chain, "fractions", (long, 1 - long, Fr(1)))
    with pytest.raises(LimitError, match="too long for a text format"):
        write_drn(chain, tmp_path / "m")


# ------------------------------------------------------------------------------------------------- random chains


@st.composite
def chains(draw):
    n = draw(st.integers(1, 7))
    rows = []
    for _ in range(n):
        targets = sorted(draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=4)))
        weights = [draw(st.integers(1, 1000)) for _ in targets]
        rows.append({target: Fr(weight, sum(weights)) for target, weight in zip(targets, weights, strict=True)})
    values = st.lists(st.integers(-3, 3), min_size=n, max_size=n)
    return chain_of(
        rows,
        {name: draw(st.sets(st.integers(0, n - 1))) for name in ("goal", "b")},
        sorted(draw(st.sets(st.integers(0, n - 1), min_size=1))),
        exact=draw(st.booleans()),
        valuations=draw(st.sampled_from([{}, {"x": ints(*draw(values)), "y": ints(*draw(values))}])),
    )


@given(chain=chains())
def test_every_export_gives_the_same_probabilities(chain, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports", numbered=True)
    write_umb(chain, folder / "m.umb")
    write_drn(chain, folder / "m.drn")
    write_prism(chain, folder / "m.pm")
    n = chain.state_count
    dense = np.zeros((n, n))
    dense[np.repeat(np.arange(n), np.diff(chain.indptr)), chain.indices] = chain.probabilities
    # An independent answer: the limit of x <- P x from the indicator of the goal, by repeated squaring.
    goal = chain.labels["goal"]
    dense[goal] = np.eye(n)[goal]
    reach = np.linalg.matrix_power(dense, 2**40)[:, goal].sum(axis=1)
    expected = {int(state): float(reach[state]) for state in chain.initial}

    rounding = 2**-52 if chain.fractions else 0
    for model in (read_umb(folder / "m.umb"), stormpy.build_model_from_drn(str(folder / "m.drn"))):
        labels = {name: set(np.flatnonzero(mask).tolist()) for name, mask in chain.labels.items()}
        found = labels_of(model)
        assert found.pop("init") == set(expected)
        assert {name: where for name, where in found.items() if where} == {k: v for k, v in labels.items() if v}
        read = [value for row in rows_of(model) for value in row.values()]
        # Storm cuts a fraction in a text off where it should round it to the nearest double.
        assert read == pytest.approx(chain.probabilities.tolist(), rel=rounding, abs=0)
    assert probability(read_umb(folder / "m.umb")) == pytest.approx(expected, abs=1e-9)
    # PRISM numbers the states it reaches again; multiset of values over the initial states.
    assert sorted(probability(read_prism(folder / "m.pm")).values()) == pytest.approx(
        sorted(expected.values()), abs=1e-9
    )
