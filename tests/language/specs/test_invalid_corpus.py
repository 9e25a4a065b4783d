"""Every file of the folder is refused with exactly the message beside it."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import ExitCode, InputError
from verifier.language.specs import check_names, read_spec
from verifier.language.specs.reader import parse_spec

CORPUS = Path(__file__).parents[2] / "data" / "invalid" / "specs"
CASES = sorted(path.stem for path in CORPUS.glob("*.ltl"))
TYPES = dict.fromkeys(["x", "v", "stop_cell", "cell_m", "vmax"], "number") | dict.fromkeys(
    ["ped", "obs", "stopped"], "boolean"
)


def refusal(path):
    with pytest.raises(InputError) as caught:
        check_names(read_spec(path), TYPES)
    return caught.value


@pytest.mark.parametrize("name", CASES)
def test_each_file_is_refused_with_its_message(name, monkeypatch):
    monkeypatch.chdir(CORPUS)
    error = refusal(f"{name}.ltl")
    assert str(error) + "\n" == (CORPUS / f"{name}.expected").read_text(encoding="utf-8")
    assert error.exit_code == ExitCode.BAD_INPUT


def test_no_message_is_left_over():
    assert sorted(path.stem for path in CORPUS.glob("*.expected")) == CASES
    assert len(CASES) > 90


def test_ten_megabytes_of_garbage_are_refused_at_once(tmp_path):
    path = tmp_path / "garbage.ltl"
    path.write_bytes(b"([{<" * 2_500_000)
    assert refusal(path).message == "the file has 10000000 bytes; at most 1048576 are read"


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "text",
    [
        "(" * 10**6,
        "[" * 10**6,
        ")" * 10**6,
        "a" * 10**6,
        '"' * 10**6,
        "§" * (10**6 // 2),
        "#" * 10**6,
        "a: P >= 0 [ " + "!" * 10**6,
        "a: P >= 0 [ " + "[]" * 490_000 + "x ]",
        "let a = " + "x & " * 240_000,
        "planner " + "a," * 490_000,
        "sweep n = " + "1..100000, " * 90_000,
        "a: P >= 0 [ (\n" * 60_000,
        "a: P >= 0 [ (#(\n" * 60_000,
        "initial (" + "//x\n" * 240_000,
        "x\n" * 500_000,
    ],
    ids=lambda text: text[:14].replace("\n", " "),
)
def test_a_megabyte_of_anything_is_refused_in_few_words(text, tmp_path):
    path = tmp_path / "garbage.ltl"
    path.write_text(text, encoding="utf-8")
    assert len(str(refusal(path))) < 1000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "expected a file, found a directory"),
        (lambda path: path.symlink_to(path), "cannot be read: Too many levels of symbolic links"),
    ],
    ids=["missing", "directory", "loop"],
)
def test_what_is_no_file_is_refused(make, message, tmp_path):
    path = tmp_path / "spec.ltl"
    make(path)
    assert refusal(path).message == message


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_refused(tmp_path):
    path = tmp_path / "spec.ltl"
    path.write_text("model")
    path.chmod(0)
    assert refusal(path).message == "cannot be read: Permission denied"


def test_every_prefix_of_a_good_spec_is_read_or_refused(root, thorough):
    text = (root / "specs" / "car_pedestrian.ltl").read_text(encoding="utf-8")
    refusals = []
    for end in range(0, len(text), 1 if thorough else 3):
        try:
            parse_spec(text[:end], "cut.ltl")
        except InputError as error:
            refusals.append(str(error))
    assert 0 < len(refusals) < len(text)
    assert all(message.startswith("cut.ltl:") for message in refusals)


WORDS = (
    'model "m.toml" planner environments initial set sweep let P >= = [ ] ( ) : , .. . // # / G F U a x 1 - ! -> " é'
)
SOUP = st.sampled_from([*WORDS.split(), "?", "0.5", "&", "\n", "\t"])


@given(
    st.one_of(
        st.text(max_size=60), st.lists(SOUP, max_size=30).map(" ".join), st.lists(SOUP, max_size=30).map("".join)
    )
)
def test_any_text_is_read_or_refused_with_its_place(text):
    for whole in (text, f'model "m"\na: P = ? [ b ]\n{text}', f'model "m"\na: P = ? [ {text} ]', f"let a = {text}"):
        try:
            check_names(parse_spec(whole, "any.ltl"), {"a": "boolean", "b": "boolean", "x": "number"})
        except InputError as error:
            assert str(error).startswith("any.ltl:")  # noqa: PT017
