"""An assessment called from Python with settings: the document of the command, and the data that it makes."""

import json

import pytest

from verifier.base.errors import InputError, UsageError
from verifier.cli import main
from verifier.robustness.assessment.request import assessed
from verifier.robustness.settings import AssessSettings

SYSTEM = """\
[systems.car]
[[systems.car.circumstances]]
name = "fog"
frequency = 1
source_frequency = 0
[systems.car.source]
performance = { AP = 0.5 }
"""
DEGRADATION = """\
[systems.car.degradation]
parameter = "visibility"
unit = "m"
scale = "reciprocal"
allowed_change = {{ AP = 0.05 }}
run = {{ spec = "{root}/specs/car_pedestrian.ltl", planner = "published", environments = ["ped"] }}
"""
LEVEL = """\
[[systems.car.degradation.levels]]
at = {at}
performance = {{ AP = {average} }}
confusion = "{at}.json"
"""


def matrices(hits):
    """Of 400 pedestrians and 400 obstacles so many are seen."""
    counts = [[hits, 0, 0], [0, hits, 0], [400 - hits, 400 - hits, 400]]
    return {
        "schema": "verifier.confusion", "version": 1, "title": "", "labelling": "class",
        "axes": ["predicted", "true"], "labels": ["ped", "obs", "empty"],
        "distance": {"unit": "m"}, "matching": "made up", "false_positives": "dropped",
        "bins": [{"distance_m": [0, 100], "counts": counts}],
    }  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "car.toml"
    path.write_text(SYSTEM)
    return path


def test_what_a_plan_lacks_names_file_and_system(tmp_path, file, capsys):
    file.write_text(f"{SYSTEM}[systems.car.follow_up]\nsize = 3\n")
    lacking = "a plan needs 'images' or 'count' in the table 'source'"
    for text, message in (("", lacking), ("count = 2\n", "circumstance 'fog' has no transformation")):
        file.write_text(file.read_text().replace("[systems.car.source]\n", f"[systems.car.source]\n{text}"))
        assert main(["assess", str(file)]) == 4
        assert f"{file}: systems.car.follow_up: {message}" in capsys.readouterr().err


def document_of_command(tmp_path, *arguments):
    target = tmp_path / "command.json"
    main(["assess", *map(str, arguments), "--output", str(target)])
    document = json.loads(target.read_text())
    del document["command"], document["checksums"]["command"]
    return document


def document_of(result):
    return json.loads(result.json_text())


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_document_is_that_of_the_command(root, tmp_path):
    path = root / "examples/12_robustness_assessment.toml"
    result = assessed(AssessSettings(file=str(path)))
    assert document_of(result) == document_of_command(tmp_path, path)


def test_levels_are_checked_and_told(root, tmp_path, file):
    text = SYSTEM + DEGRADATION.format(root=root)
    for at, average, hits in (("inf", 0.5, 396), ("400", 0.4, 240)):
        (tmp_path / f"{at}.json").write_text(json.dumps(matrices(hits)))
        text += LEVEL.format(at=at, average=average)
    file.write_text(text)
    worked_on = []

    def progress(items, what):
        worked_on.append((len(items), what))
        return items

    result = assessed(AssessSettings(file=str(file)), progress)
    assert worked_on == [(2, "levels")]
    criteria = {each.name: each for each in result.systems[0].degradation.criteria}
    assert criteria["stops_for_pedestrians"].values == pytest.approx((0.99, 0.6))
    assert document_of(result) == document_of_command(tmp_path, file)


def test_data_are_made_as_by_the_command(copied, cache, tmp_path):
    path = copied / "car.toml"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if not line.startswith("run = ")) + "\n")
    settings = AssessSettings(file=str(path), make=str(tmp_path / "called"), cache=str(cache))
    document = document_of(assessed(settings))
    assert document == document_of_command(tmp_path, path, "--make", tmp_path / "command", "--cache", cache)
    assert tree(tmp_path / "called") == tree(tmp_path / "command")


@pytest.mark.parametrize(
    ("choices", "kind", "message"),
    [
        ({"system": ("cart",)}, UsageError, "--system: .*did you mean 'car'"),
        ({"cache": "kept"}, UsageError, "--cache keeps detections, which are made with --make"),
        ({"cache": __file__, "make": "made"}, InputError, "expected a folder, found a file"),
        ({"make": "made"}, UsageError, "nothing to make"),
    ],
)
def test_choices_that_do_not_go_together_are_refused(file, monkeypatch, choices, kind, message):
    monkeypatch.chdir(file.parent)
    with pytest.raises(kind, match=message):
        assessed(AssessSettings(file=str(file), **choices))
    assert not (file.parent / "made").exists()
