"""The pages of the manual are executed: files are written, commands run, and what they print is compared.

A block with a title is a file. A console block holds commands with what they print, on either stream; a line `...`
stands for any lines. A block of TOML without a title is a part of a model: put into the small system that `verify
init` writes, it must be accepted. A block of LTL without a title must parse.
"""

import argparse
import datetime
import importlib
import json
import os
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml
from printed_text import without_noise

import verifier
from verifier.base.options import options_of
from verifier.cli import command_parser, main
from verifier.cli.verbs import VERBS
from verifier.evidence.context import read_context
from verifier.language.specs.reader import parse_spec
from verifier.manual.pages import (
    FOLDER,
    GALLERY,
    PAGES,
    SMALL,
    TOPICS,
    files_of,
    heading_id,
    page,
    write_website,
)
from verifier.perception.confusion.folders import FOLDERS
from verifier.systems.reader import read_model

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def blocks(topic):
    return [(match[1], match[2], match[3]) for match in BLOCK.finditer(page(topic))]


def matches(printed, expected):
    """Whether a text is the expected one, in which a line `...` stands for any lines."""
    parts = [re.escape(part) for part in re.split(r"^\.\.\.\n", without_noise(expected), flags=re.MULTILINE)]
    return re.fullmatch("(?:.*\n)*".join(parts), without_noise(printed))


def toml(value):
    """A value as inline TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def merged(base, part):
    return {
        **base,
        **{
            key: merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
            for key, value in part.items()
        },
    }


@pytest.mark.parametrize("topic", TOPICS)
def test_what_a_page_shows_is_what_happens(topic, tmp_path, monkeypatch, capfd, thorough, no_terminal):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as in a folder where Python is started
    for folder in ("examples", "models", "specs"):
        Path(folder).symlink_to(ROOT / folder)
    shown = ""
    for language, title, text in blocks(topic):
        if title:
            Path(title).write_text(text)
        elif language == "console":
            for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, flags=re.MULTILINE):
                capfd.readouterr()
                main(shlex.split(command)[1:])
                printed = capfd.readouterr()
                assert matches(printed.out + printed.err, expected), f"{command}\n{printed.out}{printed.err}"
                assert max(map(len, printed.out.splitlines()), default=0) <= 100
        elif language == "sh":
            for line in text.splitlines():
                main([*shlex.split(line)[1:], *([] if thorough else ["--draws", "200"])])
        elif language == "text":
            assert not shown or text == shown
        elif language == "toml":
            model = merged(tomllib.loads(files_of(None)["system.toml"]), tomllib.loads(text))
            Path("part.toml").write_text("".join(f"{key} = {toml(value)}\n" for key, value in model.items()))
            read_model("part.toml")
        elif language == "ltl":
            assert parse_spec('model "part.toml"\n' + text).requirements
        elif language == "python":
            capfd.readouterr()
            exec(compile(text, f"{topic}.md", "exec"), {})
            shown = capfd.readouterr().out
        else:
            assert not language or language == "json", language


READERS = [
    (name, line)
    for name, text in [("README", (ROOT / "README.md").read_text()), *((topic, page(topic)) for topic in TOPICS)]
    for language, _, block in BLOCK.findall(text)
    for line in block.splitlines()
    if not language and line.startswith("verify ")
]


@pytest.mark.parametrize(("name", "line"), READERS)
def test_commands_on_files_of_the_reader_name_options_that_exist(name, line):
    command = re.split(r"  +", line)[0]
    assert callable(command_parser().parse_args(shlex.split(command)[1:]).command)


def test_there_are_commands_on_files_of_the_reader():
    assert len(READERS) >= 20


def test_the_context_of_the_manual_fits_its_bundle(monkeypatch, tmp_path, capsys):
    ((_, _, context),) = [block for block in blocks("evidence") if block[1] == "case.toml"]
    (tmp_path / "case.toml").write_text(context)
    (line,) = [line for _, line in READERS if line.startswith("verify evidence build")]
    line = line.replace("case.toml", str(tmp_path / "case.toml")).replace("bundle.zip", str(tmp_path / "bundle.zip"))
    monkeypatch.chdir(ROOT)
    assert main([*shlex.split(line)[1:], "--draws", "200"]) == 0
    assert "digest: " in capsys.readouterr().out


def test_the_documents_and_answers_of_the_manual_are_read(tmp_path):
    ((_, _, context),) = [block for block in blocks("evidence") if block[1] == "answers.toml"]
    (tmp_path / "answers.toml").write_text(context)
    (tmp_path / "docs").mkdir()
    for name in ("training_sequences.txt", "track_tests.pdf"):
        (tmp_path / "docs" / name).write_text("0001\n")
    found = read_context(tmp_path / "answers.toml", datetime.date(2026, 6, 1))
    assert [each.told for each in found.declared.shown("model")] == [
        "Track tests against the model, docs/track_tests.pdf, revision B, N. N., 2026-05-04"
    ]
    assert list(found.declared.dispositions) == ["no_false_positives/stops_for_pedestrians"]
    assert (found.detector.trained_on, found.documents) == (
        ("0001",), ("docs/track_tests.pdf", "docs/training_sequences.txt"),
    )  # fmt: skip


def test_the_page_of_clusters_names_what_the_code_shares_out():
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page("cluster").splitlines() if "|" in line]
    names = {row[0]: set(re.findall("`([a-z0-9_-]+)`", row[0])) for row in rows}
    named = {name: {each.name for _, each in options_of(verb.settings)} for name, verb in VERBS.items()}
    sharing = {name for name, options in named.items() if "scheduler" in options}
    assert {name for row in rows if len(row) == 2 for name in names[row[0]] & VERBS.keys()} == sharing
    by_files = {name for row in rows if row[2:] == ["files of its parts"] for name in names[row[0]]}
    assert by_files == set(FOLDERS)


def commands_page():
    """Every command with all its options, from their settings."""
    lines = [
        "# Every command and option",
        "",
        "Generated from the settings; `verify COMMAND --help-all` prints the same.",
        "",
    ]
    for parser in command_parser().all_parsers():
        told = parser.description.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        lines += [f"## {parser.prog}", "", told, ""]
        formatter = parser._get_formatter()
        rows = []
        for action in parser._actions:
            if isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)) or action.dest == "help_all":
                continue
            values = formatter._format_args(action, action.dest.upper()) if action.nargs != 0 else ""
            name = " ".join([", ".join(action.option_strings), values]).strip().replace("|", "\\|")
            said = " ".join(formatter._expand_help(action).split()).replace("|", "\\|").replace("<", "&lt;")
            rows.append(f"| `{name}` | {said} |")
        lines += ["| option | meaning |", "|---|---|", *rows, ""] if rows else []
    return "\n".join(lines).rstrip() + "\n"


def test_the_page_of_commands_is_what_the_settings_say(monkeypatch):
    """`GOLDEN=write pytest tests/test_manual.py -k commands` writes it."""
    monkeypatch.setenv("COLUMNS", "100")
    if os.environ.get("GOLDEN") == "write":
        (PAGES / "commands.md").write_text(commands_page())
    assert page("commands") == commands_page()
    assert "| `--contact-sheet FILE` |" in page("commands")


def test_every_page_is_a_topic_and_stands_in_the_site():
    assert {path.stem for path in PAGES.glob("*.md")} == set(TOPICS)
    site = yaml.safe_load((ROOT / ".github/mkdocs.yml").read_text())
    made = ["api.md", "api-results.md"]  # by mkdocstrings, from docstrings
    assert [name for name in site["nav"] if name not in made] == [f"{topic}.md" for topic in TOPICS]
    assert [name for name in site["nav"] if name in made] == made


def test_what_the_pages_of_python_show_is_there():
    for name in re.findall(r'"(verifier[.\w]+)",', (ROOT / ".github/api_pages.py").read_text()):
        module, _, kind = name.rpartition(".")
        assert hasattr(importlib.import_module(module), kind), name


def test_links_lead_to_pages_and_headings_that_are_there():
    for topic in TOPICS:
        for target, heading in re.findall(r"\]\((?!https?:|figures/)([^)#]*)(?:#([^)]*))?\)", page(topic)):
            text = page(target.removesuffix(".md")) if target else page(topic)
            names = [heading_id(line.lstrip("# ")) for line in text.splitlines() if line.startswith("#")]
            assert not heading or heading in names, f"{topic}: {target}#{heading}"


def test_pages_in_the_browser_link_to_each_other_and_to_nothing_that_must_be_fetched(tmp_path):
    first = write_website(str(tmp_path / "site"))
    assert first == tmp_path / "site/start.html"
    files = {path.name: path.read_text() for path in first.parent.iterdir()}
    assert {name.removesuffix(".html") for name in files} == set(TOPICS)
    for text in files.values():
        assert text.count("<h1") == 1
        assert "<script" not in text
        assert not re.findall(
            r'(?:src|href)="(?!https?:|data:image/png;)(?![\w-]+\.html)', text.partition("<body>")[2]
        )
        for name, heading in re.findall(r'href="([\w-]+\.html)(?:#([^"]*))?"', text):
            assert not heading or f'id="{heading}"' in files[name]
    assert "<td><code>distance_m</code></td>" in files["models.html"]


def test_messages_that_are_explained_are_those_of_the_program():
    program = "".join(path.read_text() for path in FOLDER.parent.rglob("*.py"))
    texts = re.findall(r"\*\*`([^`]+)`\*\*", page("errors"))
    assert len(texts) >= 10
    for text in texts:
        assert all(part in program for part in text.split("...")), text


def test_the_gallery_is_what_the_folders_hold():
    assert {path.stem for path in (FOLDER / "models").glob("*.toml")} == {*GALLERY, SMALL}
    assert {path.stem for path in (FOLDER / "specs").glob("*.ltl")} == {*GALLERY, SMALL}
    matrices = {each.matrices for each in GALLERY.values()}
    assert {path.stem for path in (FOLDER / "models").glob("*.json")} == {*matrices, SMALL}


def test_every_system_of_the_gallery_has_a_figure_of_one_of_its_requirements(tmp_path):
    shown = re.findall(r"^!\[(\w+): (\w+) by errors and by states\]\(figures/(\w+)\.png\)$", page("gallery"), re.M)
    assert sorted(name for name, _, _ in shown) == sorted(GALLERY)
    for name, asked, picture in shown:
        assert picture == name
        assert (PAGES / f"figures/{picture}.png").read_bytes().startswith(b"\x89PNG")
        assert f"\n{asked}:" in re.sub(" +:", ":", files_of(name)[f"{name}.ltl"])
    assert len(list((PAGES / "figures").iterdir())) == len(GALLERY)
    write_website(str(tmp_path))
    assert (tmp_path / "gallery.html").read_text().count('src="data:image/png;base64,') == len(GALLERY)


@pytest.mark.parametrize("name", [None, *GALLERY])
def test_systems_to_start_from_need_only_themselves(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init", *([name] if name else []), "-o", "mine"]) == 0
    assert {path.name for path in (tmp_path / "mine").iterdir()} == set(files_of(name))
    assert main(["run", f"mine/{name or 'system'}.ltl", "--parse"]) == 0
    assert f"model {name or 'system'}\n" in capsys.readouterr().out


def test_a_system_whose_matrices_depend_on_more_than_distance_is_drawn(tmp_path, monkeypatch):
    """Bins of occlusion do not sum to one matrix to draw beside them; names of required recalls have no backslash."""
    monkeypatch.chdir(tmp_path)
    main(["init", "warehouse"])
    assert main(["run", "warehouse.ltl", "--cm", "warehouse.json", "--point-only", "--plot", "hall.png"]) == 0
    assert Path("hall.png").stat().st_size > 10_000
    drawn = verifier.require("warehouse.ltl", "warehouse.json", requirement="no_crash").plot()
    names = [label.get_text() for label in drawn.axes[0].get_yticklabels()]
    assert names[:2] == ["person, [0, 4) m, occlusion [0, 1)", "forklift, [0, 4) m, occlusion [0, 1)"]


def test_no_file_is_replaced(tmp_path, capsys):
    (tmp_path / "acc.ltl").write_text("mine")
    assert main(["init", "acc", "-o", str(tmp_path)]) == 4
    assert "acc.ltl: this file is there already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["acc.ltl"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["init", "accc"], "unknown system 'accc'\n  hint: did you mean 'acc'?"),
        (["manual", "modls"], "unknown topic 'modls'\n  hint: did you mean 'models'?"),
    ],
)
def test_a_name_that_is_none_is_answered_with_the_nearest(arguments, message, capsys):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
