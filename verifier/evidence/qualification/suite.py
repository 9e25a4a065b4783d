"""Running the validation suite: commands as a user types them, on files of its own, in a folder of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from verifier.evidence.qualification.kit import Row, State, SuiteRecord, Tables, requirement_feature, value_at

Tool: TypeAlias = Callable[[Sequence[str]], int]
"""The command `verify`: what is typed behind its name -> exit code."""
RUN = ("--draws", "100")
"""Few draws, where credible intervals are not what is tested."""
_SHOWN = 300


class DepartureError(Exception):
    """Something came out that should not have."""


class NotRunError(Exception):
    """A test cannot run on this machine."""


@dataclass(frozen=True)
class Ran:
    """What a command gave."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Bench:
    """Where a test works: its folder is the current one.

    Attributes:
        checks: the tests that are written in code, by name.
    """

    tool: Tool
    tables: Tables
    checks: Mapping[str, Callable[[Bench], None]]

    def run(self, *words: str) -> Ran:
        """One command."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = self.tool(list(words))
            except SystemExit as ended:
                code = int(ended.code or 0)
        return Ran(code, out.getvalue(), err.getvalue())

    def expect(self, code: int, *words: str) -> Ran:
        """One command that must end so."""
        ran = self.run(*words)
        if ran.code != code:
            said = (ran.err or ran.out).strip()[-_SHOWN:]
            raise DepartureError(f"verify {' '.join(words)}: exit code {ran.code}, expected {code}: {said}")
        return ran

    def document(self, code: int, *words: str) -> Any:
        """Likewise, with the document that it prints."""
        return json.loads(self.expect(code, *words, "--json").out)

    def write(self, *names: str) -> None:
        """Files of the suite, into the current folder."""
        for name in names:
            for file, text in self.tables["files"][name].items():
                Path(file).write_text(text.lstrip("\n"), encoding="utf-8")

    def record(self, test: Row) -> SuiteRecord:
        """Run one test, in a folder of its own."""
        told = ""
        state: State = "passed"
        with tempfile.TemporaryDirectory(prefix="verify-qualify-") as folder, contextlib.chdir(folder):
            try:
                self._judge(test)
            except NotRunError as error:
                told, state = str(error), "not run"
            except DepartureError as error:
                told, state = str(error), "failed"
            except (
                Exception
            ) as error:  # what a fault of the program does to a test is a failure of it, whatever it is
                told, state = f"{type(error).__name__}: {error}"[:_SHOWN], "failed"
        return SuiteRecord(
            id=test["id"],
            requirement=test["requirement"],
            feature=requirement_feature(self.tables)[test["requirement"]],
            method=test["method"],
            about=test["about"],
            state=state,
            told=told,
        )

    def _judge(self, test: Row) -> None:
        for name in test.get("needs", ()):
            if importlib.util.find_spec(name) is None:
                raise NotRunError(f"the library {name} is not installed")
        self.write(*test.get("files", ()))
        if "check" in test:
            self.checks[test["check"]](self)
            return
        *before, last = test["commands"]
        for words in before:
            self.run(*words)
        ran = self.expect(test.get("exit", 0), *last)
        printed = Path(test["read"]).read_text(encoding="utf-8") if "read" in test else ran.out + ran.err
        for text in test.get("says", ()):
            same(text in printed, True, f"{text!r} in what is printed")
        for text in test.get("never", ()):
            same(text in printed, False, f"{text!r} in what is printed")
        for name in test.get("absent", ()):
            same(Path(name).exists(), False, f"a file {name}")
        if test.get("expect"):
            content = json.loads(ran.out)
            for entry in test["expect"]:
                compare(value_at(content, entry["path"]), entry)


def compare(actual: Any, expected: Row) -> None:
    """A value beside what is expected of it; DepartureError."""
    where, text = expected["path"], expected["value"]
    if "within" not in expected:
        same(actual if isinstance(actual, str) else json.dumps(actual), text, where)
        return
    try:
        off = Fraction(actual) - Fraction(text)
    except (TypeError, ValueError):
        raise DepartureError(f"{where}: found {actual!r}, expected {text}") from None
    side, slack = expected.get("side", ""), Fraction(2, 10**16)
    wrong = (side == "below" and off > slack) or (side == "above" and off < -slack)
    if abs(off) > Fraction(str(expected["within"])) or wrong:
        told = f" from {side}" if side else ""
        raise DepartureError(f"{where}: found {actual!r}, expected {text} within {expected['within']}{told}")


def same(actual: object, expected: object, where: str) -> None:
    """DepartureError where two values differ."""
    if actual != expected:
        raise DepartureError(f"{where}: found {actual!r}, expected {expected!r}"[: 2 * _SHOWN])
