"""The notebooks of the examples were executed, and what they show is what executing them gives."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.ipynb"))


def text_of(outputs):
    """What a cell prints, then the plain text of its value; pictures have none that matters."""
    streams = ["".join(each["text"]) for each in outputs if each["output_type"] == "stream"]
    values = ["".join(each["data"]["text/plain"]) for each in outputs if each["output_type"] == "execute_result"]
    return "".join(streams) + "".join(values)


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_there_are_two_small_ones_without_errors():
    assert len(NOTEBOOKS) == 2
    for path in NOTEBOOKS:
        assert path.stat().st_size < 100_000
        cells = code_cells(json.loads(path.read_text()))
        assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
        assert "error" not in {output["output_type"] for cell in cells for output in cell["outputs"]}
        assert sum(bool(text_of(cell["outputs"])) for cell in cells) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_give_the_texts_that_are_shown(path, monkeypatch, capsys):
    monkeypatch.chdir(path.parent)
    names = {}
    for cell in code_cells(json.loads(path.read_text())):
        body = ast.parse("".join(cell["source"])).body
        value = ast.Expression(body.pop().value) if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), path.name, "exec"), names)
        shown = None if value is None else eval(compile(value, path.name, "eval"), names)
        assert capsys.readouterr().out + ("" if shown is None else repr(shown)) == text_of(cell["outputs"])


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_kernel_of_its_own_gives_the_same(path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(path, 4)
    before = [text_of(cell["outputs"]) for cell in code_cells(notebook)]
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    assert [text_of(cell["outputs"]) for cell in code_cells(notebook)] == before
    nbformat.validate(notebook)


def test_nothing_in_the_package_needs_a_notebook():
    program = (
        "import verifier, sys; assert not {'IPython', 'nbformat', 'mlflow', 'wandb', 'fiftyone'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
