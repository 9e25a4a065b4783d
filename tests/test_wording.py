"""One vocabulary: words that the glossary replaced are in no text for people."""

import ast
import re
from pathlib import Path

import pytest
from package_source import PACKAGE, nodes_of

from verifier.cli import main
from verifier.cli.verbs import VERBS
from verifier.manual.pages import PAGES

BANNED = {
    r"\banew\b": "again, recomputed",
    r"\bheld against\b": "compared with",
    r"\bhangs? on\b": "depends on",
    r"\btaken (to be|for granted)\b": "assumed",
    r"\b(how sure|surely|surest|sure that)\b": "uncertainty, confirmed at ... confidence",
    r"\bchances?\b": "probability",
    r"\bnothing stands\b": "there is no object",
    r"\bpersons\b": "people, or the name of the duty",
    r"\bfalse[ _-]alarms?\b": "false positive",
    r"\bguarantee": "confidence bounds, with their tier",
    r"\b(luck|the truth)\b": "sampling variability, ground truth",
    r"\bcontenders?\b": "configuration",
    r"\bsureness\b": "uncertainty",
    r"\btrue environments?\b": "environment",
    r"\b1-1e-|(?<![\w.\])])\.\d+ (?=%)": "a leading zero; > 0.9999",
}
ALLOWED = {"checking/recurrence.py"}  # a truth value of logic


def texts_of(path: Path) -> list[tuple[int, str]]:
    """Line and text of the literals of a module that hold several words and are no docstrings."""
    bodies = (body for node in nodes_of(path) if isinstance(body := getattr(node, "body", None), list))
    documentation = {id(statement.value) for body in bodies for statement in body if isinstance(statement, ast.Expr)}
    return [
        (node.lineno, node.value)
        for node in nodes_of(path)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and " " in node.value
        and id(node) not in documentation
    ]


def faults_in(text: str) -> list[str]:
    """The banned words of a text."""
    return [
        f"{found[0]!r} (write: {better})" for banned, better in BANNED.items() if (found := re.search(banned, text))
    ]


@pytest.mark.parametrize("text", ["how sure that is", "with chance .5 %", "false-alarm policy", "guaranteed bounds"])
def test_a_banned_word_is_noticed(text):
    assert faults_in(text)


def test_no_text_of_the_program_has_a_banned_word():
    faults = [
        f"{path.relative_to(PACKAGE)}:{line}: {fault}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if str(path.relative_to(PACKAGE)) not in ALLOWED
        for line, text in texts_of(path)
        for fault in faults_in(text)
    ]
    assert not faults


@pytest.mark.parametrize("page", [PACKAGE.parent / "README.md", *PAGES.glob("*.md")], ids=lambda page: page.stem)
def test_no_page_has_a_banned_word(page):
    lines = page.read_text("utf-8").splitlines()
    assert not [f"{number}: {fault}" for number, line in enumerate(lines, 1) for fault in faults_in(line)]


@pytest.mark.parametrize("verb", VERBS)
def test_no_help_has_a_banned_word(verb, capsys):
    with pytest.raises(SystemExit):
        main([*verb.split(), "--help"])
    assert not faults_in(capsys.readouterr().out)
