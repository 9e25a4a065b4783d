"""Exports of detectors with memory and several frames in a step: read back by Storm, against values by hand."""

import json
from fractions import Fraction

import pytest
import stormpy
from context_cases import files_of, latch, tracked_document
from read_exports import optimum, read

from verifier.cli import main
from verifier.perception.confusion.contexts import Contexts

FORMATS = (".prism", ".jani", ".drn", ".umb")
RUNS = Contexts("run", 2)
ROWS = {"start": [1, 3], "right*1": [1, 9], "wrong*1": [6, 4], "wrong*2": [9, 1]}
"""Misses and hits: 1/4 at first, then 6/10, and 9/10 from the third miss on."""
MODEL = latch(2).replace("[planners.latch]\n", '[labels]\nquiet = "seen = 0"\n[planners.latch]\nreading = READING\n')
SILENT = {
    # In two steps of two frames nobody is reported in any: 1/4 * 6/10 * 9/10 * 9/10.
    '"any"': Fraction(1, 4) * Fraction(6, 10) * Fraction(9, 10) ** 2,
    # Or not in the second and the fourth frame, whatever the first (hit or miss) and third say, by hand:
    # hit, miss 3/4 * 1/10 = 3/40 (then wrong*1); miss, miss 1/4 * 6/10 = 6/40 (then wrong*2);
    # from wrong*1: miss, miss 6/10 * 9/10 = 54/100, hit, miss 4/10 * 1/10 = 4/100, so 58/100;
    # from wrong*2: miss, miss 81/100, hit, miss 1/10 * 1/10 = 1/100, so 82/100.
    '"last"': Fraction(3, 40) * Fraction(58, 100) + Fraction(6, 40) * Fraction(82, 100),
}
BOX = """source = "by hand"
[[rates]]
true = "ped"
predicted = "empty"
rate = [0.25, 0.5]
context = "start"
[[rates]]
true = "ped"
predicted = "empty"
rate = [0.5, 0.75]
context = "wrong*1"
[[rates]]
true = "ped"
predicted = "empty"
rate = [0.75, 1]
context = "wrong*2"
"""


@pytest.fixture
def asked(tmp_path):
    """A function that writes the latch of two steps, each of two frames or one."""

    def write(reading='"any"', frames=2):
        model = f"step_s = {frames}\nframe_s = 1\n" + MODEL.replace("READING", reading)
        spec, matrices = files_of(tmp_path, model, tracked_document(ROWS, RUNS), "ped", ["G quiet"])
        return ["run", str(spec), "--cm", str(matrices), "--memory", "run:2"]

    return write


def remark_in(path):
    return "A step of the model is 2 steps here, one for each frame" in path.read_bytes().decode(errors="replace")


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("reading", SILENT)
def test_frames_with_memory_are_exported_one_by_one(reading, ending, asked, tmp_path, capsys):
    target = tmp_path / f"m{ending}"
    assert main([*asked(reading), "--point-only", "--exact", "--export", str(target), "--json"]) == 0
    (point,) = json.loads(capsys.readouterr().out)["requirements"][0]["points"]
    assert Fraction(point["exact"]) == SILENT[reading]
    assert optimum(read(target), 'P=? [G "quiet"]') == pytest.approx([float(SILENT[reading])], abs=1e-11)
    assert optimum(read(target), 'P=? [F "terminal"]') == [1]
    assert remark_in(target)


@pytest.mark.parametrize("ending", [".prism", ".jani"])
def test_states_have_their_variables_in_every_frame(ending, asked, tmp_path):
    """A query may name them: states that differ only in how far the step has come are told apart."""
    target = tmp_path / f"m{ending}"
    assert main([*asked('"last"'), "--point-only", "--export", str(target)]) == 0
    prism = ending == ".prism"
    program = stormpy.parse_prism_program(str(target)) if prism else stormpy.parse_jani_model(str(target))[0]
    (asked_of,) = stormpy.parse_properties("P=? [F (t=2 & seen=0 & frame_of_the_step=0)]", program)
    model = stormpy.build_model(program, [asked_of])
    found = stormpy.model_checking(model, asked_of)
    assert [found.get_value(state) for state in model.initial_states] == pytest.approx(
        [float(SILENT['"last"'])], abs=1e-6
    )


@pytest.mark.parametrize("ending", FORMATS)
def test_bounds_of_frames_with_memory_are_exported(ending, asked, tmp_path, capsys):
    """Of a stated box by hand: silent in all four frames with 1/4 * 1/2 * (3/4)^2 at least, 1/2 * 3/4 * 1 at most."""
    (tmp_path / "b.toml").write_text(BOX)
    target = tmp_path / f"b{ending}"
    more = ["--rate-box", str(tmp_path / "b.toml"), "--export-bounds", str(target), "--json"]
    assert main([*asked(), *more]) == 0
    (point,) = json.loads(capsys.readouterr().out)["requirements"][0]["points"]
    bounds = point["uncertainty"]["confidence_bounds"]
    expected = [9 / 128, 3 / 8]
    assert [bounds["lower"], bounds["upper"]] == pytest.approx(expected, abs=1e-8)
    found = [optimum(read(target), f'{end}=? [G "quiet"]')[0] for end in ("Pmin", "Pmax")]
    assert found == pytest.approx(expected, abs=1e-8)
    assert remark_in(target)


def test_one_frame_in_a_step_is_a_step_of_the_model(asked, tmp_path):
    assert main([*asked(frames=1), "--point-only", "--export", str(tmp_path / "m.prism")]) == 0
    text = (tmp_path / "m.prism").read_text()
    assert "frame" not in text
    assert "context_of_ped" in text
    # Two reports, both wrong: 1/4 * 6/10.
    assert optimum(read(tmp_path / "m.prism"), 'P=? [G "quiet"]') == pytest.approx([0.15], abs=1e-11)
