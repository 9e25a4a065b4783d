"""Assessment files: what is read, and that every complaint names the line and the key."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import InputError
from verifier.base.toml import read_toml
from verifier.robustness.assessment.circumstances import Span
from verifier.robustness.assessment.reader import read_assessment

GOOD = """\
title = "one"
[systems.car]
occurrence = "exclusive"
metrics = ["recall"]

[[systems.car.circumstances]]
name = "night"
probability = 0.25
source_frequency = 0.5
exposure = 5
likelihood = 4
severity = 3
tolerance_scale = 0.5
transformation = { mutation = "shifted_lines", share = { low = 0.1, high = 0.3 }, most_px = { low = 1, high = 3 } }

[[systems.car.circumstances]]
name = "fog"
frequency = 0.75

[systems.car.distances.fog_distance]
measure = "ssim"
tolerance = 0.02

[systems.car.source]
performance = { TP = 8, FP = 2, FN = 2 }

[[systems.car.targets]]
name = "at night"
circumstances = ["night"]
performance = { recall = 0.79 }
similarities = { fog_distance = 0.9 }
"""


@pytest.fixture
def read(tmp_path):
    def reading(text):
        path = tmp_path / "assessment.toml"
        path.write_text(text)
        return read_assessment(path)

    return reading


def test_a_file_is_read(read):
    (car,) = read(GOOD).assessments
    night, fog = car.circumstances
    assert (night.measure, night.frequency, night.source_frequency, night.missing) == (
        "probability",
        Fraction(1, 4),
        Fraction(1, 2),
        0,
    )
    assert night.significance == 60
    assert night.transformation.parameters == {"share": Span(0.1, 0.3), "most_px": Span(1, 3)}
    assert (fog.measure, fog.frequency, fog.source_frequency, fog.risk) == (
        "relative frequency",
        Fraction(3, 4),
        None,
        None,
    )
    assert car.source.performance.values == {"precision": Fraction(4, 5), "recall": Fraction(4, 5)}
    (target,) = car.targets
    assert target.distances["fog_distance"].distance == Fraction(1, 10)
    assert car.rules["fog_distance"].tolerance(Fraction(100)) == Fraction(1, 50)


def test_metrics_default_to_those_of_the_source(read):
    text = GOOD.replace('metrics = ["recall"]\n', "").replace(
        "{ recall = 0.79 }", "{ recall = 0.79, precision = 0.8 }"
    )
    assert read(text).assessments[0].metrics == ("precision", "recall")


# What is replaced, by what, the line that the complaint names, and what it says.
BAD = [
    ('title = "one"', "title = 3", 1, "title: expected a text in quotes, got 3"),
    ('title = "one"', "titel = 3", 1, "did you mean 'title'?"),
    ("[systems.car]\n", "[systems.car]\nx = 1\n", 3, "systems.car.x: unknown key 'x'"),
    ('"exclusive"', '"exclusiv"', 3, "expected one of independent, exclusive, got 'exclusiv'"),
    ('metrics = ["recall"]', 'metrics = ["recal"]', 2, "'source' has no value of recal"),
    ("0.25", "1.25", 8, "circumstances[0].probability: expected a number from 0 to 1, got 1.25"),
    ("0.25", "nan", 8, "expected a number from 0 to 1, got nan"),
    ("0.25", "true", 8, "expected a number from 0 to 1, got True"),
    ("0.25", "1e-400", 8, "expected a number from 0 to 1"),
    ("0.25", "0." + "1" * 80, 8, "expected a number from 0 to 1"),
    ("0.25", "0.26", 2, "sum to 1.01, more than 1"),
    ("exposure = 5", "exposure = 6", 10, "expected a whole number from 1 to 5, got 6"),
    ("exposure = 5", "exposure = 5.0", 10, "expected a whole number from 1 to 5, got 5.0"),
    ("exposure = 5\n", "", 6, "all of exposure, likelihood and severity"),
    ("tolerance_scale = 0.5", "tolerance_scale = 0", 13, "expected a number above 0"),
    ('mutation = "shifted', 'mutatio = "shifted', 14, "missing key 'mutation'"),
    ('"shifted_lines"', '"shifted_line"', 14, "transformation.mutation: unknown mutation 'shifted_line'"),
    ('"shifted_lines"', '"shifted_line"', 14, "did you mean 'shifted_lines'?"),
    ("share =", "shares =", 14, "transformation.shares: unknown parameter of shifted_lines 'shares'"),
    ("high = 0.3", "high = 1.3", 14, "share: expected a number from 0 to 1, got 1.3"),
    ("low = 1, high = 3", "low = 1.0, high = 3.0", 14, "expected whole ends"),
    ("most_px = { low = 1, high = 3 }", "most_px = true", 14, "expected a finite number, got True"),
    ("most_px = { low = 1, high = 3 }", 'most_px = "3"', 14, "most_px: expected a whole number from 1"),
    ("low = 0.1", "low = 0.5", 14, "ends in order"),
    ("low = 0.1, ", "", 14, "missing key 'low'"),
    ('name = "fog"', 'name = "night"', 17, "the name 'night' is taken"),
    ('name = "fog"', 'name = ""', 17, "not empty"),
    ('name = "fog"\n', "", 16, "missing key 'name'"),
    ("frequency = 0.75", "frequency = 0.75\nprobability = 0.75", 18, "not both"),
    ('"ssim"', '"sim"', 21, "did you mean 'ssim'?"),
    ('measure = "ssim"\n', "", 20, "missing key 'measure'"),
    ('"ssim"', '"psnr"', 20, "no distance that a tolerance could go with"),
    ("tolerance = 0.02", "tolerance = -1", 22, "expected a number from 0, got -1"),
    ("tolerance = 0.02", "tolerance = []", 22, "at least 1 entry"),
    ("tolerance = 0.02", "tolerance = [{ up_to = 1 }]", 22, "'slope', 'constant' or both"),
    ("tolerance = 0.02", "tolerance = [\n{ up_to = 1, slope = 1 },\n]", 22, "last piece has no end"),
    ("tolerance = 0.02", "tolerance = 0.02\nlevel = 3", 23, "'level' goes with cw_ssim"),
    ("TP = 8, ", "", 25, "expected counts of TP, FP and FN"),
    ("TP = 8", "TP = -8", 25, "performance.TP: expected a whole number from 0"),
    ("FN = 2", "FN = 2, recall = 0.7", 25, "recall: the counts give 0.8"),
    ("performance = { TP = 8, FP = 2, FN = 2 }\n", "", 2, "needs performance on the source"),
    ('["night"]', '["nigth"]', 29, "unknown circumstance 'nigth'"),
    ('["night"]', '["night", "night"]', 29, "circumstances[1]: the circumstance 'night' is listed twice"),
    ("recall = 0.79", "recall = 79", 30, "expected a number from 0 to 1, got 79"),
    ("recall = 0.79", "Recall = 0.79", 30, "did you mean 'recall'?"),
    ("recall = 0.79", "precision = 0.79", 2, "'at night' has no value of recall"),
    ("fog_distance = 0.9", "fog = 0.9", 31, "unknown distance 'fog'"),
    ("fog_distance = 0.9", "fog_distance = 1.9", 31, "expected a number from -1 to 1, got 1.9"),
    ("similarities = {", "distances = { fog_distance = 0.1 }\nsimilarities = {", 32, "given twice"),
    ("similarities = { fog_distance = 0.9", "distances = { fog_distance = 2.9", 31, "a distance from 0 to 2"),
    ("[[systems.car.targets]]", "[systems.car.targets]", 27, "systems.car.targets: expected a list"),
    ("[systems.car.source]", "[systems.car.sauce]", 24, "did you mean 'source'?"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "line", "message"), BAD, ids=[f"{line}-{text[:30]}" for _, _, line, text in BAD]
)
def test_bad_input_names_its_line(read, old, new, line, message):
    assert GOOD.count(old) >= 1
    with pytest.raises(InputError) as found:
        read(GOOD.replace(old, new, 1))
    assert message in str(found.value)
    assert f"assessment.toml:{line}" in str(found.value)


def test_no_toml_names_line_and_column(read):
    with pytest.raises(InputError) as found:
        read("[systems.car]\ntitle = = 1\n")
    assert "assessment.toml:2:9" in str(found.value)
    assert "title = = 1" in str(found.value)


@pytest.mark.parametrize(
    "text", ["", 'title = "x"', "systems = 3", "[systems]", "systems.car = 3", "a = " + "[" * 40]
)
def test_what_is_no_assessment(read, text):
    with pytest.raises(InputError):
        read(text)


def test_numbers_of_thousands_of_digits_are_refused(read):
    with pytest.raises(InputError, match="digits"):
        read("[systems.car]\ntitle = " + "9" * 5000)
    with pytest.raises(InputError, match=r"assessment\.toml:2"):
        read("[systems.car]\ntitle = " + "9" * 200)


def test_missing_files_and_folders(tmp_path):
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(InputError):
            read_assessment(path)


# The line of every statement, whatever surrounds it: comments, blank lines, lists and texts over several lines.
FILLERS = ("", "# comment = 1", "\n\n", 'long{n} = """\n[not.a.table]\nx = 1\n"""', "list{n} = [\n  1,\n  2,\n]")


@given(st.lists(st.sampled_from(FILLERS), min_size=1, max_size=12), st.integers(0, 11))
def test_lines_are_found_among_anything(tmp_path_factory, fillers, place):
    place %= len(fillers)
    parts = [each.replace("{n}", str(number)) for number, each in enumerate(fillers)]
    before = "\n".join(parts[:place])
    text = before + ("\n" if place else "") + "wanted = 7\n" + "\n".join(parts[place:])
    path = tmp_path_factory.mktemp("toml") / "file.toml"
    path.write_text(text)
    line = text.split("\n").index("wanted = 7") + 1
    with pytest.raises(InputError, match=f"file.toml:{line}: wanted: "):
        read_toml(path).at("wanted").string()


def test_lines_of_later_entries_of_one_list_of_tables(read):
    text = GOOD + '\n[[systems.car.targets]]\nname = "b"\n\n[[systems.car.targets]]\n# here\nname = 5\n'
    with pytest.raises(InputError, match=r"toml:38: systems.car.targets\[2\].name"):
        read(text)


def test_lines_of_files_from_other_systems(tmp_path):
    path = tmp_path / "windows.toml"
    path.write_bytes(GOOD.replace("0.25", "1.25").replace("\n", "\r\n").encode("utf-8-sig"))
    with pytest.raises(InputError, match=r"windows\.toml:8: systems"):
        read_assessment(path)


def test_a_large_file_is_complained_about_quickly(read):
    many = "".join(f'[[systems.car.circumstances]]\nname = "c{number}"\nfrequency = 0.1\n' for number in range(2000))
    with pytest.raises(InputError, match="toml:5997"):
        read(many.replace('name = "c1998"\nfrequency = 0.1', 'name = "c1998"\nfrequency = 2'))


SWEEP = """\
[systems.car.distances.ssim]
[[systems.car.sweeps]]
name = "lens"
parameter = "amount"
at = [0, 0.5]
similarities.ssim = [1, 0.8]
"""


def test_sweeps_make_one_data_set_per_setting(read):
    (sweep,) = read(SWEEP).assessments[0].sweeps
    assert [each.name for each in sweep.targets] == ["lens at 0", "lens at 0.5"]
    assert [each.distances["ssim"].distance for each in sweep.targets] == [0, Fraction(1, 5)]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("[1, 0.8]", "[1]", 6, "expected 2 numbers, one per setting in 'at', got 1"),
        ("[1, 0.8]", "[1, 1.8]", 6, "similarities.ssim[1]: expected a number from -1 to 1"),
        ("at = [0, 0.5]", "at = [0.5, 0.5]", 2, "a setting is given twice"),
        ("at = [0, 0.5]", "at = []", 5, "at least 1 entry"),
        ("similarities.ssim", "similarities.sim", 6, "unknown distance 'sim'"),
    ],
)
def test_bad_sweeps(read, old, new, line, message):
    with pytest.raises(InputError) as found:
        read(SWEEP.replace(old, new))
    assert message in str(found.value)
    assert f"toml:{line}" in str(found.value)
