"""Help that fits on a page, and command lines that are wrong in one word."""

import contextlib
import re
import shlex
import shutil
import subprocess

import pytest

from verifier.cli import main
from verifier.cli.verbs import VERBS


def printed(arguments, capsys):
    """What a command line that ends at once prints, and its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    return out + err, ended.value.code


def options_in(text):
    return re.findall(r"^  (?:-\w(?: \w+)?, )?(--[\w-]+)", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", VERBS)
def test_help_shows_at_most_25_options_and_all_on_request(name, capsys):
    few = options_in(printed([*name.split(), "--help"], capsys)[0])
    assert len(few) <= 25
    if "--help-all" in few:
        text, code = printed([*name.split(), "--help-all"], capsys)
        assert code == 0
        every = options_in(text)
        assert set(few) < set(every)
        hidden = int(re.search(r"show this help with (\d+) more options", text)[1])
        assert len(every) == len(few) + hidden


@pytest.mark.parametrize("name", VERBS)
def test_prose_of_help_fits_the_terminal_and_examples_stay_as_they_are(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    text = printed([*name.split(), "--help"], capsys)[0]
    assert max(len(line) for line in text.split("\n") if line[:1] not in ("", " ", "u")) <= 90
    verb = VERBS[name]
    assert all(line in text for line in (verb.epilog or "").split("\n") if line.startswith(" "))
    shown = " ".join(text.split())
    assert all(" ".join(told.split()) in shown for told in (verb.description, verb.epilog or ""))


def test_options_that_help_does_not_show_work_like_the_others(capsys, tmp_path):
    assert "--draws" not in options_in(printed(["run", "--help"], capsys)[0])
    text, code = printed(["run", "spec.ltl", "--draws", "few"], capsys)
    assert (code, text) == (2, "verify: argument --draws: expected a whole number above 0, got 'few'\n"
                               "  hint: see verify run --help\n")  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rnu spec.ltl", "unknown command 'rnu'\n  hint: did you mean run? see verify --help"),
        (
            "run s.ltl --json r.json",
            "unexpected argument 'r.json': --json takes no value\n  hint: see verify run --help",
        ),
        ("evidence check a b", "unexpected argument 'b'\n  hint: see verify evidence check --help"),
        ("evidence chekc", "unknown command 'chekc'\n  hint: did you mean check? see verify evidence --help"),
        ("run s.ltl --drasw 5", "unknown option '--drasw'\n  hint: did you mean --draws? see verify run --help"),
        (
            "confusion --formt x",
            "unknown option '--formt'\n  hint: did you mean --format? see verify confusion --help",
        ),
        (
            "confusion merge a --outptu x",
            "unknown option '--outptu'\n  hint: did you mean --output? see verify confusion",
        ),
        ("run", "the following arguments are required: SPEC\n  hint: see verify run --help"),
        ("run \x1b[1m --x\x1b", "unknown option '--x\\x1b'\n  hint: "),
    ],
)
def test_one_wrong_word_is_answered_with_the_right_one(line, message, capsys):
    text, code = printed(line.split(" "), capsys)
    assert code == 2
    assert text.startswith(f"verify: {message}")
    assert len(text.splitlines()) == 2
    assert "\x1b" not in text


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory):
    """What `verify completion bash` prints, in a file."""
    path = tmp_path_factory.mktemp("shell") / "verify.bash"
    with path.open("w") as script, contextlib.redirect_stdout(script):
        assert main(["completion", "bash"]) == 0
    return path


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("verify comp", {"compare", "completion"}),
        ("verify run --conf", {"--confidence", "--config"}),
        ("verify run --empty-columns nei", {"neighbour"}),
        ("verify evidence ch", {"check"}),
        ("verify confusion merge --same-sequences re", {"rename"}),
        ("verify run specs/car_ped", {"specs/car_pedestrian.ltl"}),
    ],
)
def test_a_shell_completes_commands_options_words_and_files(line, expected, bash_script):
    words = shlex.split(line)
    asked = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _shtab_verify verify {words[-1]} {words[-2]}"
    program = f"source {bash_script}; {asked}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    found = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True).stdout
    assert set(found.split()) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_names_every_command(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name.split()[-1] in script for name in VERBS)
