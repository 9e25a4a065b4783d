"""Parsers of the grammars of this package, whose tables are kept beside them.

Building the LALR(1) tables of a grammar takes longer than reading what a run has to read. They are kept as JSON, with
a checksum of all they depend on; where that differs, they are built. `python -m verifier.language.grammars` writes
them after a change of a grammar or another version of lark.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import lark
from lark import Lark, Transformer
from lark.grammar import Rule
from lark.lexer import TerminalDef

CONDITIONS = Path(__file__).parent / "expressions" / "grammar.lark"
FORMULAS = Path(__file__).parent / "ltl" / "ltl.lark"
KEPT = (CONDITIONS, FORMULAS)
"""The grammars that every run reads with, whose tables are kept."""


def parser_of(grammar: Path, actions: Transformer[Any, Any]) -> Lark:
    """The LALR(1) parser of a grammar, which may import that of conditions; `actions` build nodes while it reads."""
    if grammar in KEPT:
        kept = json.loads(_tables(grammar).read_text(encoding="ascii"), object_hook=_numbered)
        if kept["checksum"] == _checksum(grammar):
            parser: Lark = Lark._load_from_dict(kept["data"], kept["memo"], transformer=actions)  # type: ignore[no-untyped-call]
            return parser
    return _built(grammar, actions)


def tables_text(grammar: Path) -> str:
    """What is kept of a grammar, in ASCII."""
    data, memo = _built(grammar, None).memo_serialize([TerminalDef, Rule])
    return json.dumps({"checksum": _checksum(grammar), "data": data, "memo": memo}, separators=(",", ":")) + "\n"


def _built(grammar: Path, actions: Transformer[Any, Any] | None) -> Lark:
    return Lark.open(
        str(grammar), import_paths=[str(CONDITIONS.parent)], parser="lalr", lexer="basic", transformer=actions
    )


def _tables(grammar: Path) -> Path:
    return grammar.with_suffix(".tables.json")


def _checksum(grammar: Path) -> str:
    """Of what the tables depend on: the grammar, that of conditions, and lark."""
    parts = (grammar.read_bytes(), CONDITIONS.read_bytes(), lark.__version__.encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _numbered(read: dict[str, object]) -> dict[str | int, Any]:
    """An object of JSON with the numbers of states and terminals as keys, as lark has them."""
    return {int(key) if key.isdigit() else key: value for key, value in read.items()}


if __name__ == "__main__":
    for path in KEPT:
        _tables(path).write_text(tables_text(path), encoding="ascii")
