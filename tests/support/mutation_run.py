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
import contextlib
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis  # noqa: F401  with all that the tests read, so that it is read once
import numpy  # noqa: F401
import pytest
import scipy.sparse.linalg  # noqa: F401

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
}
"""Part -> the tests that judge it."""

SLOW_CHAINS = "tests/checking/test_slow_chains.py"
ROBUST = ["tests/analysis/test_robust.py", "tests/analysis/test_region.py", "tests/analysis/test_certificate.py"]
BOUNDS = {
    "verifier/checking/enclosure.py": ["tests/checking/test_enclosure.py"],
    "verifier/checking/two_engines.py": ["tests/checking/test_enclosure.py", SLOW_CHAINS],
    "verifier/checking/refinement.py": ["tests/checking/test_refinement.py", SLOW_CHAINS],
    "verifier/checking/elimination.py": ["tests/checking/test_batch_numbers.py", SLOW_CHAINS],
    "verifier/checking/linear.py": ["tests/checking/test_batch_numbers.py", SLOW_CHAINS],
    "verifier/checking/powers.py": ["tests/checking/test_step_bounds.py"],
    "verifier/checking/step_bounds.py": ["tests/checking/test_step_bounds.py"],
    "verifier/analysis/kernel.py": ["tests/analysis/test_kernel.py", "tests/analysis/test_certificate.py"],
    "verifier/analysis/robust/bound.py": ROBUST,
    "verifier/analysis/robust/certificate.py": ["tests/analysis/test_certificate.py"],
    "verifier/analysis/robust/order.py": ROBUST,
    "verifier/analysis/robust/point_certificate.py": ["tests/analysis/test_point_certificate.py"],
    "verifier/analysis/robust/solutions.py": ROBUST,
    "verifier/analysis/robust/solve.py": ROBUST,
    "verifier/analysis/robust/step.py": ROBUST,
}
"""Where bounds, rounding and certificates are made: the tests that look at them first, before all of their part."""

SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "+": "-", "-": "+", "*": "/", "//": "*", "%": "*", "&": "|", "|": "&", "+=": "-=", "-=": "+=",
    "|=": "&=", "&=": "|=", "and": "or", "or": "and", "True": "False", "False": "True",
    "any": "all", "all": "any", "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum",
    "floor": "ceil", "ceil": "floor", "lower": "upper", "upper": "lower", "low": "high", "high": "low",
    "logical_or": "logical_and", "logical_and": "logical_or", "argmin": "argmax", "argmax": "argmin",
}  # fmt: skip

_BOTH = "if bounds.lower is not None and bounds.upper is not None:"
_POINT = "verifier/analysis/robust/point_certificate.py"
_NEXT = "other = math.nextafter(near, math.inf if Fraction(near) < number else -math.inf)"
EQUIVALENT = {
    ("verifier/checking/enclosure.py", _BOTH, "lower"): "both are given, or none",
    ("verifier/checking/enclosure.py", _BOTH, "upper"): "both are given, or none",
    ("verifier/checking/enclosure.py", _BOTH, "and"): "both are given, or none",
    ("verifier/checking/enclosure.py", _NEXT, "<"): "they are not equal",
    ("verifier/checking/two_engines.py", "_FACTORISATION_LOSS = 1000", "1000"): "how far, not what",
    (_POINT, "UNIT = 2**128", "2"): "how fine a witness is that the kernel checks",
    (_POINT, "UNIT = 2**128", "128"): "how fine a witness is that the kernel checks",
    (_POINT, "_ROUNDS = 40", "40"): "how long a witness is looked for that the kernel checks",
    (_POINT, "_DIGITS = 2.0**40", "40"): "how long a witness is looked for that the kernel checks",
    (_POINT, "for _ in range(5):", "5"): "how long a witness is looked for that the kernel checks",
    ("verifier/analysis/robust/certificate.py", "TARGET = -2", "2"): "a code of its own",
    ("verifier/analysis/robust/certificate.py", "NO_COMPONENT = -1", "1"): "a code of its own",
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
    """Annotations, types, decorators, imports, and what is raised: places where a fault computes nothing."""
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = list(getattr(node, "decorator_list", []))
        if isinstance(node, ast.AnnAssign | ast.arg):
            parts.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            parts.append(node.returns)
        elif isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr):
            parts.append(node)
        for part in parts:
            if part is not None:
                yield (
                    (part.lineno, part.col_offset),  # type: ignore[attr-defined]
                    (part.end_lineno, part.end_col_offset),  # type: ignore[attr-defined]
                )


def modules() -> dict[str, list[list[str]]]:
    """Module -> the tests that look at it first, if any, and those of its part."""
    found = {}
    for part, tests in PARTS.items():
        for path in sorted((ROOT / part).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            found[name] = [BOUNDS[name], tests] if name in BOUNDS else [tests]
    return found


@contextlib.contextmanager
def copied() -> Iterator[Path]:
    """A copy of the project, for faults to be put into."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        place = Path(folder)
        for name in ("verifier", "tests", "specs", "models", "examples"):
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        for path in ROOT.glob("*.*"):
            if path.is_file():
                shutil.copy(path, place)
        yield place


def judged(place: Path, fault: Fault, tests: list[list[str]], most_s: float) -> str | None:
    """How some of the tests noticed the fault, put into a copy and taken out again; None if none did."""
    module = place / fault.module
    source = module.read_text()
    module.write_text(fault.applied(source))
    try:
        return next(filter(None, (failure(place, each, most_s) for each in tests)), None)
    finally:
        module.write_text(source)


def failure(place: Path, tests: list[str], most_s: float) -> str | None:
    """How tests fail in a copy of the project; None if they pass.

    They run in a child of this process, which has read the libraries already, but nothing of the project.
    """
    with tempfile.TemporaryFile("w+") as told:
        child = os.fork()
        if child == 0:
            os.setsid()
            os.chdir(place)
            for stream in (1, 2):
                os.dup2(told.fileno(), stream)
            os.environ |= {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
            sys.dont_write_bytecode = True
            sys.path.insert(0, str(place))
            code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *tests])
            sys.stdout.flush()
            os._exit(int(code))
        until = time.monotonic() + most_s
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if ended == (0, 0):
            os.waitpid(child, 0)
            return "out of time"
        code = os.waitstatus_to_exitcode(ended[1])
        told.seek(0)
        lines = told.read().splitlines()
    if code == 0:
        return None
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return failed[0] if failed else f"exit code {code}: {' '.join(lines[-3:])}"


def main(arguments: list[str] | None = None) -> int:
    """Judge faults, and print each that was not noticed; exit code 1 if there are any, 2 if the tests fail anyway."""
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
    with copied() as place:
        for told in {tuple(each) for fault in faults for each in tests[fault.module]}:
            if how := failure(place, [*told], 3 * asked.most):
                print(f"the tests fail without a fault: {how}")
                return 2
        for fault in faults:
            how = judged(place, fault, tests[fault.module], asked.most)
            missed += how is None
            print(f"NOT NOTICED {fault}" if how is None else f"noticed {fault} ({how})", flush=True)
    print(f"{len(faults) - missed} of {len(faults)} noticed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
