"""`--config FILE`: the keys of a TOML file stand for the options of a command."""

import json
import re

import pytest

from verifier.base.errors import ExitCode, InputError, UsageError
from verifier.cli import main
from verifier.cli.invocation import with_config

SPEC, CM = "specs/car_pedestrian.ltl", "examples/nuscenes_yolov3_class.json"


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "choices.toml"
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.parametrize(
    ("verb", "text", "words"),
    [
        ("run", 'cm = "m.json"\nspec = "s.ltl"', ["s.ltl", "--cm=m.json"]),
        ("run", "max-states = 10", ["--max-states=10"]),
        ("run", "max_states = 10", ["--max-states=10"]),
        ("run", "confidence = 0.90", ["--confidence=0.90"]),
        ("run", 'env = ["ped", "obs"]', ["--environment=ped", "--environment=obs"]),
        ("run", "set = { vmax = 1, limit = 0.5 }", ["--set=vmax=1", "--set=limit=0.5"]),
        ("run", 'set = "vmax=1"', ["--set=vmax=1"]),
        ("run", "strict = true\nexact = false", ["--strict"]),
        ("run", "seed = 0", ["--seed=0"]),
        ("run", 'title = "--json"', None),
        ("compare", 'cm = { day = "a.json", night = "b.json" }', ["--cm=day=a.json", "--cm=night=b.json"]),
        ("confusion", "class-aware = true", ["--class-aware"]),
        ("confusion", "class-aware = false", ["--class-agnostic"]),
        ("confusion", "class-agnostic = true", ["--class-agnostic"]),
        ("confusion", "class-agnostic = false", ["--class-aware"]),
        ("confusion", "score-thresholds = [0.1, 0.50]", ["--score-thresholds=0.1,0.50"]),
        ("confusion", 'title = "--json"', ["--title=--json"]),
        ("confusion merge", 'files = ["a.json", "b.json"]', ["a.json", "b.json"]),
        ("closed-loop", "control-radius = 2\ntop-speed = 9", ["--control-radius=2", "--top-speed=9"]),
    ],
)
def test_a_key_is_what_would_be_typed(verb, text, words, written):
    tokens = [*verb.split(), "--config", written(text)]
    if words is None:
        with pytest.raises(InputError, match="unknown key 'title'"):
            with_config(tokens)
        return
    assert sorted(with_config(tokens)) == sorted([*verb.split(), *words])
    assert with_config(tokens)[: len(verb.split())] == verb.split()


def test_what_is_typed_wins(written):
    file = written('spec = "s.ltl"\ncm = "m.json"\nseed = 3\nenvironment = ["ped", "obs"]\nset = { a = 1 }')
    assert with_config(["run", "other.ltl", f"--config={file}", "--env", "cat", "--seed=4", "-o", "-x"]) == [
        *("run", "--cm=m.json", "--set=a=1", "other.ltl", "--env", "cat", "--seed=4", "-o", "-x"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = 1\ndraw = 5", r"choices.toml:2: draw: unknown key 'draw'\n  hint: did you mean 'draws'"),
        ("vehicle = 1", r"choices.toml:1: vehicle: unknown key 'vehicle'\n  hint: known here: [a-z, -]+$"),
        ("seed = 1\ndraws = 'many'", r"choices.toml:2: draws: .*many"),
        ("draws = 5\n[set]\nx = 1\ny = [1, {}]", r"choices.toml:4: set.y\[1\]: expected a text"),
        ("draws = {a = 1}", "choices.toml:1: draws: expected a value, got a table"),
        ("strict = 1", "choices.toml:1: strict: expected true or false, got 1"),
        ("seed = true", "choices.toml:1: seed: expected a text"),
        ("empty-columns = 'maybe'", "choices.toml:1: empty-columns: expected one of .*, got 'maybe'"),
        ("max-states = 5\nmax_states = 6", "choices.toml:2: max_states: --max-states is given twice"),
        ("seed = ,", "choices.toml:1:8: not TOML"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text, message, written):
    with pytest.raises(InputError) as caught:
        with_config(["run", "--config", written(text)])
    assert re.search(message, str(caught.value)), str(caught.value)


@pytest.mark.parametrize("tokens", [["--config"], ["--config", "a", "--config=b"], ["--config="]])
def test_there_is_one_file(tokens):
    with pytest.raises(UsageError, match="--config: expected one TOML file"):
        with_config(["run", *tokens])


def test_what_is_no_option_is_left_alone(capsys):
    assert with_config(["report", "--", "--config"]) == ["report", "--", "--config"]
    assert main(["run", "--config", "nowhere.toml"]) == ExitCode.BAD_INPUT
    assert "nowhere.toml" in capsys.readouterr().err
    with pytest.raises(SystemExit, match=str(int(ExitCode.USAGE))):
        main(["--config", "nowhere.toml"])


def test_the_document_records_the_words(written, capsys):
    file = written(f'spec = "{SPEC}"\ncm = "{CM}"\nrequirement = "all_three"\nenv = "ped"\npoint-only = true')
    main(["run", "--config", file, "--json"])
    found = capsys.readouterr().out
    main(["run", SPEC, "--cm", CM, "--requirement", "all_three", "--env", "ped", "--point-only", "--json"])
    typed = capsys.readouterr().out
    assert json.loads(found)["requirements"] == json.loads(typed)["requirements"]
    command = json.loads(found)["command"]
    assert command[:3] == ["verify", "run", "car_pedestrian.ltl"]
    assert "--config" not in command
