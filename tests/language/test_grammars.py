"""The tables kept beside the grammars are those that the grammars have."""

import json
import runpy
from pathlib import Path

import pytest
from lark import Transformer

from verifier.language import grammars
from verifier.language.grammars import KEPT, parser_of, tables_text

ADVICE = "the tables are old: python -m verifier.language.grammars"


def automaton(parser):
    """The states that are reached from the start, each by its shortest way there, with what it does on each token."""
    table = parser.parser.parser._parse_table
    ways, reached = {table.start_states["start"]: ()}, [table.start_states["start"]]
    for state in reached:
        for token, (_, target) in sorted(table.states[state].items(), key=lambda item: item[0]):
            if isinstance(target, int) and target not in ways:
                ways[target] = (*ways[state], token)
                reached.append(target)
    return {
        ways[state]: {token: ways.get(target, target) for token, (_, target) in table.states[state].items()}
        for state in reached
    }


def terminals_of(parser):
    return [(str(each.name), each.pattern.to_regexp(), each.priority) for each in parser.terminals]


@pytest.mark.parametrize("grammar", KEPT, ids=lambda path: path.stem)
def test_kept_tables_are_those_of_the_grammar(grammar, monkeypatch):
    kept = parser_of(grammar, Transformer())
    assert kept.source_path == "<deserialized>", ADVICE
    monkeypatch.setattr(grammars, "KEPT", ())
    built = parser_of(grammar, Transformer())
    assert built.source_path == str(grammar)
    assert automaton(kept) == automaton(built), ADVICE
    assert terminals_of(kept) == terminals_of(built)
    assert [rule.alias for rule in kept.rules] == [rule.alias for rule in built.rules]


def test_tables_of_another_grammar_are_not_used(tmp_path, monkeypatch):
    (tmp_path / "other.lark").write_text('start: "a" -> letter\n')
    (tmp_path / "other.tables.json").write_text(tables_text(KEPT[0]))
    monkeypatch.setattr(grammars, "KEPT", (tmp_path / "other.lark",))
    assert parser_of(tmp_path / "other.lark", Transformer()).parse("a").data == "letter"


@pytest.mark.parametrize("name", ["__main__", "verifier.language.grammars"])
def test_tables_are_written_by_the_module_as_a_program_alone(name, monkeypatch):
    written = []
    monkeypatch.setattr(
        Path, "write_text", lambda path, text, encoding: written.append((path.name, set(json.loads(text))))
    )
    runpy.run_path(grammars.__file__, run_name=name)
    expected = [(f"{grammar.stem}.tables.json", {"checksum", "data", "memo"}) for grammar in KEPT]
    assert written == (expected if name == "__main__" else [])


def test_tables_are_plain_data():
    for grammar in KEPT:
        assert set(json.loads(grammar.with_suffix(".tables.json").read_text())) == {"checksum", "data", "memo"}
