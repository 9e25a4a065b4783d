"""`verify schema` prints the JSON Schema of every kind of document; nothing else loads what it is made with."""

import json
import subprocess
import sys

import jsonschema
import pytest

from verifier.base.errors import ExitCode
from verifier.cli import main
from verifier.evidence.documents import OF_MODELS, OTHER_TYPES, SCHEMA_NAMES, schema_of

NAMES = sorted((*SCHEMA_NAMES, *OTHER_TYPES, OF_MODELS))


def test_without_a_name_all_are_listed(capsys):
    assert main(["schema"]) == 0
    assert capsys.readouterr().out.split() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_schema_is_printed_by_its_name(name, capsys):
    assert main(["schema", name]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == schema_of(name)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert main(["schema", name.removeprefix("verifier.")]) == 0
    assert json.loads(capsys.readouterr().out) == printed


def test_an_unknown_name_is_refused(capsys):
    assert main(["schema", "verifier.rum"]) == ExitCode.USAGE
    assert "did you mean 'verifier.run'?" in capsys.readouterr().err


def test_a_run_does_not_load_the_library_that_reads_documents(root, tmp_path):
    words = ["run", str(root / "specs/car_pedestrian.ltl"), "--cm", str(root / "examples/nuscenes_yolov3_class.json")]
    words += ["--point-only", "-o", str(tmp_path / "run.json")]
    program = f"import sys; from verifier.cli import main; main({words!r}); assert 'pydantic' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
