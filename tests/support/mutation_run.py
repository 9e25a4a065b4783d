"""Single faults put into the code, each judged by the tests of its own part: `python tests/support/mutation_run.py`.

A fault changes one token: a comparison, an operator of arithmetic or logic, an end or direction (`min`, `any`, `all`,
`floor`, `lower`), a constant. Docstrings, messages and annotations are left alone. A fault is *noticed* if the tests
fail or take longer than `--most` seconds. Faults that cannot change what is computed are listed in `EQUIVALENT`, with
the reason, and are not judged.

    python tests/support/mutation_run.py --sample 50                 # of all parts
    python tests/support/mutation_run.py verifier/analysis/kernel.py  # every fault of a module
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PARTS = {
    "verifier/language/expressions": ["tests/language/expressions"],
    "verifier/language/ltl": ["tests/language/ltl"],
    "verifier/language/specs": ["tests/language/specs"],
    "verifier/systems": ["tests/systems"],
    "verifier/chains": ["tests/chains"],
    "verifier/checking": ["tests/checking", "tests/cli/test_slow_chains.py"],
    "verifier/analysis": ["tests/analysis"],
    "verifier/perception/detections": ["tests/perception/detections"],
    "verifier/perception/matching": ["tests/perception/matching"],
    "verifier/perception/confusion": ["tests/perception/confusion"],
    "verifier/analysis/kernel.py": ["tests/analysis/test_kernel.py", "tests/analysis/test_certificate.py"],
}
"""Part -> the tests that judge it."""

SLOW_CHAINS = "tests/checking/test_slow_chains.py"
BOUNDS = {
    "verifier/checking/enclosure.py": ["tests/checking/test_enclosure.py"],
    "verifier/checking/two_engines.py": ["tests/checking/test_enclosure.py", SLOW_CHAINS],
    "verifier/checking/refinement.py": ["tests/checking/test_refinement.py", SLOW_CHAINS],
    "verifier/checking/elimination.py": ["tests/checking/test_batch_numbers.py", SLOW_CHAINS],
    "verifier/checking/linear.py": ["tests/checking/test_batch_numbers.py", SLOW_CHAINS],
    "verifier/checking/powers.py": ["tests/checking/test_step_bounds.py"],
    "verifier/checking/step_bounds.py": ["tests/checking/test_step_bounds.py"],
}
"""Where bounds, rounding and certificates are made: the tests that look at them first."""

SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "+": "-", "-": "+", "*": "/", "//": "*", "%": "*", "&": "|", "|": "&", "+=": "-=", "-=": "+=",
    "|=": "&=", "&=": "|=", "and": "or", "or": "and", "True": "False", "False": "True",
    "any": "all", "all": "any", "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum",
    "floor": "ceil", "ceil": "floor", "lower": "upper", "upper": "lower", "low": "high", "high": "low",
    "logical_or": "logical_and", "logical_and": "logical_or", "argmin": "argmax", "argmax": "argmin",
}  # fmt: skip

_BOTH = "if bounds.lower is not None and bounds.upper is not None:"
EQUIVALENT = {
    ("verifier/checking/enclosure.py", _BOTH, "lower"): "both are given, or none",
    ("verifier/checking/enclosure.py", _BOTH, "upper"): "both are given, or none",
    ("verifier/checking/enclosure.py", _BOTH, "and"): "both are given, or none",
}
"""(module, line, token) -> why the fault changes nothing that is computed."""


@dataclass(frozen=True)
class Fault:
    """One token replaced; `offset` counts characters from the start of the module."""

    module: str
    line: int
    text: str
    offset: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.before!r} -> {self.after!r} in {self.text}"

    def applied(self, source: str) -> str:
        """The source with the fault."""
        end = self.offset + len(self.before)
        if source[self.offset : end] != self.before:
            raise ValueError(f"{self} is not there")
        return source[: self.offset] + self.after + source[end:]


def faults_of(module: str, source: str) -> Iterator[Fault]:
    """Every single-token fault of a module, in the order of the text."""
    lines = source.splitlines(keepends=True)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))
    spared = list(_spared(ast.parse(source)))
    previous = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        after = _changed(token, previous)
        previous = token.string if token.type != tokenize.NL else previous
        if after is None or any(first <= token.start and token.end <= last for first, last in spared):
            continue
        row, column = token.start
        text = lines[row - 1].strip()
        if (module, text, token.string) not in EQUIVALENT:
            yield Fault(module, row, text, begins[row - 1] + column, token.string, after)


def _changed(token: tokenize.TokenInfo, previous: str) -> str | None:
    if token.type in (tokenize.OP, tokenize.NAME):
        unpacking = token.string == "*" and previous in ("(", ",", "[", "=", "return", "yield", "in", "", "\n")
        keyword = previous in ("import", "def", "class") or unpacking
        return None if keyword else SWAPS.get(token.string)
    if token.type == tokenize.NUMBER and token.string.isdigit():
        return str(int(token.string) + 1)
    return None


def _spared(tree: ast.AST) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Annotations, types, imports, and what is raised: places where a fault computes nothing."""
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.AnnAssign | ast.arg):
            parts = [node.annotation]
        elif isinstance(node, ast.FunctionDef):
            parts = [node.returns]
        elif isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr):
            parts = [node]
        for part in parts:
            if part is not None:
                yield (
                    (part.lineno, part.col_offset),  # type: ignore[attr-defined]
                    (part.end_lineno, part.end_col_offset),  # type: ignore[attr-defined]
                )


def modules() -> dict[str, list[str]]:
    """Module -> the tests of its part."""
    found = {}
    for part, tests in PARTS.items():
        place = ROOT / part
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            name = path.relative_to(ROOT).as_posix()
            found[name] = BOUNDS.get(name, tests)
    return found


def judged(fault: Fault, tests: list[str], most_s: float) -> str | None:
    """How the tests noticed the fault; None if they did not."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        place = Path(folder)
        for name in ("verifier", "tests", "specs", "examples"):
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        for path in ROOT.glob("*.*"):
            if path.is_file():
                shutil.copy(path, place)
        module = place / fault.module
        module.write_text(fault.applied(module.read_text()))
        environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        try:
            done = subprocess.run(
                command, cwd=place, env=environment, capture_output=True, text=True, timeout=most_s, check=False
            )
        except subprocess.TimeoutExpired:
            return "out of time"
    if done.returncode == 0:
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0] if failed else f"exit code {done.returncode}"


def main(arguments: list[str] | None = None) -> int:
    """Judge faults, and print each that was not noticed; exit code 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", help="all by default")
    parser.add_argument("--sample", type=int, help="so many faults in place of all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=float, default=600.0, help="seconds that the tests of a fault may take")
    asked = parser.parse_args(arguments)
    tests = modules()
    chosen = asked.modules or list(tests)
    faults = [fault for name in chosen for fault in faults_of(name, (ROOT / name).read_text())]
    if asked.sample is not None:
        faults = random.Random(asked.seed).sample(faults, min(asked.sample, len(faults)))
    missed = 0
    for fault in faults:
        how = judged(fault, tests[fault.module], asked.most)
        missed += how is None
        print(f"NOT NOTICED {fault}" if how is None else f"noticed {fault} ({how})", flush=True)
    print(f"{len(faults) - missed} of {len(faults)} noticed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
