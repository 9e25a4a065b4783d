"""The tables of the kit and of its suite, what they leave open, and which known problems a result is touched by.

What a run of the validation suite found: its document.
"""

import hashlib
import json
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, reduce
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from verifier.base.arrays import grouped
from verifier.base.documents import Sha256
from verifier.base.errors import ExitCode, InputError, Place
from verifier.base.files import read_json
from verifier.evidence.bundle.archive import read_bundle
from verifier.evidence.bundle.manifest import MANIFEST_FILE
from verifier.evidence.identity import Tool
from verifier.evidence.settings import Asil

State: TypeAlias = Literal["passed", "failed", "not run"]
Effect: TypeAlias = Literal["optimistic", "pessimistic", "loud"]


@dataclass(frozen=True, kw_only=True)
class SuiteRecord:
    """One test.

    Attributes:
        told: what was found instead, or why it was not run; empty where it passed.
    """

    id: str
    requirement: str
    feature: str
    method: str
    about: str
    state: State
    told: str


@dataclass(frozen=True, kw_only=True)
class ProblemRecord:
    """A known problem; `effect` is that on a result: optimistic, pessimistic, or loud where none is given."""

    id: str
    feature: str
    effect: Effect
    text: str
    workaround: str


@dataclass(frozen=True, kw_only=True)
class QualificationResult:
    """Result of `verify qualify`.

    Attributes:
        tool: the program that was validated, by version, commit and hash, with all distributions beside it.
        platform: of the machine.
        day, by, asil: when, by whom, and the highest ASIL that is assumed; empty or None where not stated.
        kit: SHA-256 of the tables of kit and suite.
        whole: whether all tests of the suite were asked for.
        gaps: what the kit leaves open.
    """

    schema: ClassVar[str] = "verifier.qualification"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    tool: Tool
    platform: str
    day: str
    by: str
    asil: Asil | None
    kit: Sha256
    whole: bool
    gaps: tuple[str, ...]
    tests: tuple[SuiteRecord, ...]

    @property
    def features(self) -> dict[str, str]:
        """Feature -> failed, not run, or passed, the worst of its tests; without those that had none."""
        order = ("failed", "not run", "passed")
        states = grouped((test.feature, test.state) for test in self.tests)
        return {name: next(state for state in order if state in seen) for name, seen in states.items()}

    @property
    def exit_code(self) -> ExitCode:
        """Violated where a test failed or the kit has a gap, inconclusive where not all of them ran."""
        if self.gaps or any(test.state == "failed" for test in self.tests):
            return ExitCode.VIOLATED
        complete = self.whole and all(test.state == "passed" for test in self.tests)
        return ExitCode.SATISFIED if complete else ExitCode.INCONCLUSIVE


@dataclass(frozen=True, kw_only=True)
class KnownProblemsResult:
    """Result of `verify known-problems`: those of a bundle or document, and versions behind it without a list."""

    schema: ClassVar[str] = "verifier.known_problems"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    result: str
    problems: tuple[ProblemRecord, ...]
    unlisted: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """Inconclusive where one of them can make a result look better than it is, or this is not known."""
        optimistic = any(problem.effect == "optimistic" for problem in self.problems)
        return ExitCode.INCONCLUSIVE if optimistic or self.unlisted else ExitCode.SATISFIED


Row: TypeAlias = Mapping[str, Any]
Tables: TypeAlias = Mapping[str, Any]
GUIDE_WORDS = ("wrong", "missing", "swapped", "stale", "rounded", "ignored")
_FILES = tuple(Path(__file__).parent / name for name in ("kit.toml", "suite.toml"))


@cache
def kit_tables() -> Tables:
    """Kit and suite as one."""
    tables: dict[str, Any] = {}
    for path in _FILES:
        tables |= tomllib.loads(path.read_text(encoding="utf-8"))
    return tables


@cache
def kit_digest() -> str:
    """SHA-256 over both files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in _FILES)).hexdigest()


def requirement_feature(tables: Tables) -> dict[str, str]:
    """Requirement of the tool -> its feature."""
    return {key: table["id"] for table in tables["feature"] for key in table.get("requirements", {})}


def queries_of(problem: Row, tables: Tables) -> Sequence[Row]:
    """How a known problem is recognised: by its own query, or because its feature was used."""
    own: Sequence[Row] = problem.get("used", ())
    of_feature = (table.get("used", ()) for table in tables["feature"] if table["id"] == problem["feature"])
    return own or next(of_feature, ())


def gaps(tables: Tables, commands: Collection[str]) -> Iterator[str]:
    """What a release must not leave open, for people; nothing where every row leads on in both directions.

    Args:
        commands: of the program; each belongs to a feature.
    """
    features, tests = {table["id"]: table for table in tables["feature"]}, tables["test"]
    of, tested = requirement_feature(tables), {test["requirement"] for test in tests}
    for name, row in features.items():
        missing = (text for text in GUIDE_WORDS if not row["hazards"].get(text))
        yield from (f"feature {name}: no hazard line '{text}'" for text in missing)
        if not row.get("used"):
            yield f"feature {name}: no query for known problems"
        if not row.get("requirements"):
            yield f"feature {name}: no requirement"
        if not any(name in table["features"] for table in tables["use_case"]):
            yield f"feature {name}: in no use case"
    yield from (f"requirement {name}: no test" for name in of if name not in tested)
    yield from (f"test {test['id']}: unknown requirement" for test in tests if test["requirement"] not in of)
    for table in tables["use_case"]:
        if not table["features"] or not set(table["features"]) <= set(features):
            yield f"use case {table['id']}: without feature, or with an unknown one"
        expected = 1 if table["ti"] == 1 else table["td"]
        if table["tcl"] != expected:
            yield f"use case {table['id']}: TCL {table['tcl']}, by TI and TD {expected}"
    for table in tables["problem"]:
        if not queries_of(table, tables) or table["effect"] not in get_args(Effect) or not table["workaround"]:
            yield f"known problem {table['id']}: without query, effect or workaround"
    placed = {command for feature in features.values() for command in feature["commands"]}
    yield from (f"command {command}: in no feature" for command in sorted(set(commands) - placed))
    yield from (f"command {text}: of a feature, and not there" for text in sorted(placed - set(commands)))


def listed_versions() -> set[str]:
    """Versions whose problems are listed."""
    return {version for kit_table in kit_tables()["problem"] for version in kit_table["versions"]}


def problems_of(path: str) -> tuple[list[Row], tuple[str, ...]]:
    """The known problems that a bundle, or one document, is touched by, and its versions without a list.

    What a run says of matrices that were counted is asked as they are; its version is taken for theirs.

    Raises:
        InputError: it cannot be read, or is nothing of this program.
    """
    files = read_bundle(path) if Path(path).is_dir() or path.lower().endswith(".zip") else {}
    documents = dict(_documents(files)) if files else {Path(path).name: read_json(path)[0]}
    versions = {version for document in documents.values() if (version := _version(document)) is not None}
    if not versions or (files and MANIFEST_FILE not in files):
        raise InputError("expected a bundle, or a document of this program that names its version", Place(path))
    for name, run in list(documents.items()):
        if value_at(run, "/matrices/matching") is not None:
            documents[f"matrices of {name}"] = {**run["matrices"], "schema": "verifier.confusion"}
    tables = kit_tables()
    known = (table for table in tables["problem"] if versions & {*table["versions"]})
    queries = ((table, queries_of(table, tables)) for table in known)
    touching = [table for table, asked in queries if any(_was_used(query, files, documents) for query in asked)]
    return touching, tuple(sorted(versions - listed_versions()))


def _documents(files: Mapping[str, bytes]) -> Iterator[tuple[str, Any]]:
    for name, raw in files.items():
        if name.endswith(".json"):
            try:
                yield name, json.loads(raw)
            except (ValueError, RecursionError):
                continue


def _version(document: Any) -> str | None:
    if not isinstance(document, dict):
        return None
    versions = document.get("versions")
    version = versions.get("verifier") if isinstance(versions, dict) else document.get("verifier")
    return version if isinstance(version, str) else None


def _was_used(query: Row, files: Mapping[str, bytes], documents: Mapping[str, object]) -> bool:
    """Whether a file is there, or a document of a schema, with what the query says at a pointer."""
    if "file" in query:
        return any(fnmatchcase(name, query["file"]) for name in files)
    for document in documents.values():
        if not isinstance(document, dict) or document.get("schema") != query["schema"]:
            continue
        if "path" not in query:
            return True
        value = value_at(document, query["path"])
        if value == query["value"] if "value" in query else value not in (None, "none"):
            return True
    return False


def value_at(content: Any, pointer: str) -> Any:
    """What stands at a JSON pointer; None where nothing does."""

    def below(value: Any, part: str) -> Any:
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            return value[int(part)]
        return value.get(part) if isinstance(value, dict) else None

    return reduce(below, pointer.split("/")[1:], content)
