"""Where results come from: the command in every document, the inputs' hashes, and bytes that do not depend on where
the files lie, where results go and who runs it."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_logs import made_logs, straight

from verifier.base.errors import ExitCode
from verifier.base.options import options_of
from verifier.cli import main
from verifier.cli.invocation import invocation, with_provenance
from verifier.cli.verbs import VERBS
from verifier.closedloop.logfiles import write_logs
from verifier.evidence.consistency import read_document

SPEC, CM = "specs/car_pedestrian.ltl", "examples/nuscenes_yolov3_class.json"
OTHER_CM = "examples/nuscenes_yolov3_proposition.json"
TRUTH = "sequence,frame,class,x,y\na,0,ped,5,0\na,0,ped,8,0\na,0,obs,12,0\nb,0,obs,10,0\n"
FOUND = "sequence,frame,class,score,x,y\na,0,ped,0.9,5,0\na,0,ped,0.8,13,0\na,1,obs,0.4,15,0\nb,0,obs,0.7,10,0\n"
FRAMES = "sequence,frame\na,0\na,1\nb,0\n"
PAIRS = "image,true_m,predicted_m\n" + "".join(f"{k},{5 + k % 20},{5 + k % 20 + k % 3}\n" for k in range(60))
ASSESSMENT = """\
[systems.car]
[[systems.car.circumstances]]
name = "fog"
frequency = 1
source_frequency = 0
[systems.car.distances.ssim]
tolerance = 0.1
[systems.car.source]
performance = { AP = 0.5 }
[[systems.car.targets]]
name = "in fog"
performance = { AP = 0.45 }
distances = { ssim = 0.2 }
"""
ONE = ["--requirement", "stops_for_pedestrians", "--env", "ped"]
TABLES = ["--format", "table", "--annotations", "@truth.csv", "--detections", "@found.csv", "--frames", "@frames.csv"]
COUNTING = ["confusion", *TABLES, "--bins", "0,10,inf"]
LOOP = ["closed-loop", "@logs", "--validation", "@others", "--control-radius", "2", "--safety-radius", "1.5"]
LOOP += ["--draws", "20", "--levels", "10", "--match-distance", "2"]
GATE = ["--baseline", f"@{OTHER_CM}", "--max-drop", "0.5"]
COMMANDS = {
    "run": ["run", f"@{SPEC}", "--cm", f"@{CM}", *ONE, "--fail-under", "0.1", "--draws", "50"],
    "run against a baseline": ["run", f"@{SPEC}", "--cm", f"@{CM}", *ONE, *GATE, "--draws", "50", "--seed", "3"],
    "explain": ["explain", f"@{SPEC}", "--cm", f"@{CM}", *ONE, "--map", "x,v"],
    "require": ["require", f"@{SPEC}", "--cm", f"@{CM}", *ONE],
    "compare": ["compare", f"@{SPEC}", "--cm", f"a=@{CM}", "--cm", f"b=@{OTHER_CM}", *ONE, "--draws", "50"],
    "confusion": COUNTING,
    "confusion merge": ["confusion", "merge", "@one.json", "@two.json", "--same-sequences", "rename"],
    "collision": ["collision", "@pairs.csv", "--distances", "5,15", "--speeds", "25 mph", "--bootstrap", "5"],
    "closed-loop": LOOP,
    "robroc": ["robroc", "@curves.json"],
    "assess": ["assess", "@assessment.toml"],
    "mutate": ["mutate", "@images", "--mutation", "gaussian_blur:sigma_px=2", "--seed", "5"],
    "evidence rate": [
        "evidence",
        "rate",
        "@run.json",
        "--requirement",
        "stops_for_pedestrians",
        "--exposure",
        "12/h",
    ],
}
"""What is run; @ stands before the path of an input."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory, root):
    """Two folders of different names and depths with the same inputs."""
    one = tmp_path_factory.mktemp("here")
    (one / "examples").mkdir()
    for name in (CM, OTHER_CM):
        shutil.copy(root / name, one / name)
    for name in ("specs", "models"):
        shutil.copytree(root / name, one / name)
    texts = {"truth.csv": TRUTH, "found.csv": FOUND, "frames.csv": FRAMES, "pairs.csv": PAIRS}
    for name, text in (texts | {"assessment.toml": ASSESSMENT}).items():
        (one / name).write_text(text)
    drives = {"person": (True, straight(30)), "free": (False, straight(41))}
    people = [(image, 33, 0) for image in range(30)]
    seen = [(image, 0.9, 33, 0) for image in range(30)]
    write_logs(made_logs(drives, people, {"good": seen, "good@fog": seen[:5]}), one / "logs")
    write_logs(made_logs({"v": (False, straight(10))}, [], {"good": [(0, 0.5, 0, 9)]}), one / "others")
    (one / "images").mkdir()
    Image.fromarray(np.arange(300, dtype=np.uint8).reshape(10, 10, 3)).save(one / "images" / "one.png")
    run = ["run", f"@{SPEC}", "--cm", f"@{CM}", *ONE, "--draws", "50", "-o", "@run.json"]
    assert main([each.replace("@", f"{one}/") for each in run]) == ExitCode.VIOLATED
    for arguments in (
        [*COUNTING, "-o", "@one.json"],
        [*COUNTING, "--title", "counted again", "-o", "@two.json"],
        [*LOOP, "--curves", "@curves.json"],
    ):
        assert main([each.replace("@", f"{one}/") for each in arguments]) == 0
    other = tmp_path_factory.mktemp("there") / "deeper" / "still"
    shutil.copytree(one, other)
    return one, other


def made(arguments, monkeypatch, tmp_path, *, where, cwd, user, inputs_as):
    """The bytes of the document that a user makes in a folder."""
    monkeypatch.chdir(cwd)
    for name, value in {"HOME": f"/home/{user}", "USER": user, "LOGNAME": user, "TZ": f"UTC{len(user)}"}.items():
        monkeypatch.setenv(name, value)
    target = tmp_path / f"{user}.json"
    code = main([*(each.replace("@", inputs_as) for each in arguments), *where, str(target)])
    assert code in (0, 1, 3)
    return target / "mutate.json" if target.is_dir() else target


@pytest.mark.parametrize("name", COMMANDS)
def test_equal_inputs_give_equal_bytes_wherever_they_lie_and_whoever_runs_it(
    name, folders, monkeypatch, tmp_path, capsys
):
    here, there = folders
    arguments = COMMANDS[name]
    first = made(arguments, monkeypatch, tmp_path, where=["--output"], cwd=here, user="alice", inputs_as="")
    printed = ["--json", "--output"]
    second = made(arguments, monkeypatch, tmp_path, where=printed, cwd=tmp_path, user="bob", inputs_as=f"{there}/")
    assert first.read_bytes() == second.read_bytes()
    assert capsys.readouterr().out.endswith(second.read_text())
    text = second.read_text()
    assert not re.search(r"alice|bob|/home|deeper|\.\./|here0|there0|\d\d:\d\d", text)
    document = read_document(second)  # validates
    assert document.content["command"] == ["verify", *(expected(each) for each in arguments)]
    # A rate is arithmetic on a run, which has its versions, and is made again to the byte where a bundle is checked.
    used = {"verifier"} if name == "evidence rate" else {"verifier", "python", "numpy"}
    assert used <= document.content["versions"].keys()
    for each in arguments:  # every input file is there by its hash
        if "@" in each and (file := here / each.partition("@")[2]).is_file():
            assert hashlib.sha256(file.read_bytes()).hexdigest() in text, each


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "mutate"])
def test_no_output_goes_where_it_cannot_or_over_an_input(name, folders, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(folders[0])
    arguments = [each.replace("@", "") for each in COMMANDS[name]]
    given = next(each.partition("@")[2] for each in COMMANDS[name] if "@" in each)
    given = given if Path(given).is_file() else f"{given}/logs.csv"
    before = Path(given).read_bytes()
    assert main([*arguments, "--output", given]) == ExitCode.USAGE
    assert f"{given} is an input of this" in capsys.readouterr().err
    assert Path(given).read_bytes() == before
    assert main([*arguments, "--output", str(tmp_path / "none/out.json")]) == ExitCode.BAD_INPUT
    assert "cannot be written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def expected(argument):
    before, at, path = argument.partition("@")
    return before + Path(path).name if at else argument


def test_written_curves_say_where_they_come_from(folders):
    here, _ = folders
    document = read_document(here / "curves.json").content
    assert document["command"][:3] == ["verify", "closed-loop", "logs"]
    assert "--curves" not in document["command"]
    assert {each["role"] for each in document["inputs"]} == {"logs", "validation"}


def test_matrices_say_how_they_were_made_in_every_result_made_from_them(folders, monkeypatch, tmp_path):
    here, _ = folders
    asked = {"run": [], "explain": [], "require": [], "compare": ["--draws", "10"]}
    made_of = read_document(here / "one.json").content
    for verb, more in asked.items():
        path = tmp_path / f"{verb}.json"
        spec = [str(here / SPEC), "--cm", str(here / "one.json"), "--empty-columns", "prior"]
        main([verb, *spec, *ONE, *more, "--output", str(path)])
        found = read_document(path).content
        matrices = found["detectors"][0]["matrices"] if verb == "compare" else found["matrices"]
        for key in ("matching", "false_positives", "distance", "source"):
            assert matrices[key] == made_of[key], (verb, key)
        assert matrices["sequences"] == 2
        assert matrices["items"] == sum(np.sum(each["counts"]) for each in made_of["bins"])
        assert matrices["bins"] == ["[0, 10) m", "[10, inf) m"]


def test_merged_matrices_name_their_files_without_folders(folders, tmp_path, capsys):
    here, there = folders
    other = tmp_path / "one.json"
    other.write_text((there / "one.json").read_text() + "\n")
    files = [str(here / "one.json"), str(other), str(here / "two.json")]
    assert main(["confusion", "merge", *files, "--same-sequences", "rename", "-o", str(tmp_path / "sum.json")]) == 0
    document = read_document(tmp_path / "sum.json").content
    assert [each["file"] for each in document["source"]["merged"]] == ["one.json", "one.json (2)", "two.json"]
    digests = [hashlib.sha256(Path(each).read_bytes()).hexdigest() for each in files]
    assert [each["sha256"] for each in document["source"]["merged"]] == digests
    assert [each["name"] for each in document["sequences"]][::2] == ["one.json/a", "one.json (2)/a", "two.json/a"]


def test_a_command_that_is_none_is_refused(folders, tmp_path, capsys):
    here, _ = folders
    odd = json.loads((here / "one.json").read_text()) | {"command": ["verify", 3]}
    (tmp_path / "odd.json").write_text(json.dumps(odd))
    assert main(["run", str(here / SPEC), "--cm", str(tmp_path / "odd.json")]) == ExitCode.BAD_INPUT
    assert "/command: expected a list of strings" in capsys.readouterr().err


def test_a_spelling_with_an_equals_sign_is_recorded_like_the_other(monkeypatch):
    one = ["run", SPEC, f"--cm={CM}", "--point-o", "--env=ped", "-o/tmp/a.json", "--all-scenarios"]
    assert invocation(one) == (
        *("verify", "run", "car_pedestrian.ltl", "--cm", "nuscenes_yolov3_class.json"),
        *("--point-only", "--env", "ped"),
    )


def test_a_file_may_be_called_like_anything():
    tokens = ["compare", "a=b.ltl", "--cm", "new=runs/x=y.json", "--cm", "/abs/plain.json", "--pareto", "a/b,c"]
    assert invocation(tokens)[2:] == (
        *("a=b.ltl", "--cm", "new=x=y.json", "--cm", "plain.json", "--pareto", "a/b,c"),
    )
    assert invocation(["assess", "."])[2:] == (".",)
    odd = ["compare", "--cm", "a.json", "--", "-o.ltl", "-x.ltl", "--json"]
    assert invocation(odd)[2:] == ("--cm", "a.json", "--", "-o.ltl", "-x.ltl", "--json")


def test_documents_from_python_have_no_command():
    text = '{\n  "schema": "verifier.run",\n  "version": 1,\n  "title": ""\n}\n'
    assert with_provenance(text, ()) == text
    found = with_provenance(text, ("verify", "run"), {"versions": {"a": "1"}})
    assert json.loads(found)["command"] == ["verify", "run"]
    assert list(json.loads(found)) == ["schema", "version", "command", "versions", "title", "checksums"]
    with pytest.raises(ValueError, match="not the text"):
        with_provenance("[]", ())


LOOKS_LIKE_A_FILE = re.compile(r"FILE|PATH|DIR|FOLDER|LOGS|SPEC|PAIRS|CURVES|ASSESSMENT|IMAGES|BUNDLE|CASE\b|RESULT")


def test_every_argument_that_names_a_file_is_known_for_one():
    for verb, known in VERBS.items():
        for _, setting in options_of(known.settings):
            metavar = setting.option.metavar or ""
            if LOOKS_LIKE_A_FILE.search(metavar if isinstance(metavar, str) else " ".join(metavar)):
                assert setting.option.role != "choice", f"{verb}: {setting.name} is neither input nor output"
            if "NAME=" in str(metavar) and setting.option.role != "choice":
                assert setting.option.role == "named_file", f"{verb}: {setting.name}"
            assert setting.option.positional or setting.values <= 2, "counted by what follows it"
