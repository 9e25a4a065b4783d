"""The outputs of `verify run` for continuous integration: JUnit XML, SARIF and an in-toto statement."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from verifier.language.specs import Specification
from verifier.questions.settings import RunSettings
from verifier.study.case import Case
from verifier.study.points import block_text
from verifier.study.results import RunResult

CI_OUTPUTS = ("junit", "sarif", "in_toto")
RESULT_FILE = "run.json"
"""What the document of the run is called in them, wherever it is written."""
Progress = Callable[[list[Case]], Iterable[Case]]


class Stopwatch:
    """Measures how long each Markov chain takes, by its planner and what else makes it."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, str], float] = {}

    def around(self, progress: Progress) -> Progress:
        """The progress bar, with the time between two chains taken."""

        def timed(cases: list[Case]) -> Iterator[Case]:
            for case in progress(cases):
                name = case.planner.name, block_text(case.environment, case.constants)
                start = time.perf_counter()
                yield case
                self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

        return timed


def ci_texts(
    arguments: RunSettings, result: RunResult, document: str, spec: Specification, watch: Stopwatch
) -> list[tuple[str, str]]:
    """File and text of every output for continuous integration that was asked for.

    With SOURCE_DATE_EPOCH in the environment, the wish for repeatable bytes, JUnit has no times.
    """
    if all(getattr(arguments, name) is None for name in CI_OUTPUTS):
        return []
    from verifier.evidence.documents import Document
    from verifier.evidence.intoto import statement
    from verifier.evidence.junit import junit_xml, suite_name
    from verifier.evidence.sarif import requirement_places, sarif_log

    digest = hashlib.sha256(document.encode()).hexdigest()
    run = Document(RESULT_FILE, "run", json.loads(document), digest).holding(result)
    found = []
    if arguments.junit is not None:
        taken = {suite_name(*chain): seconds for chain, seconds in watch.seconds.items()}
        seconds = None if "SOURCE_DATE_EPOCH" in os.environ else taken
        found.append(
            (arguments.junit, junit_xml(run, Path(arguments.spec).name, seconds, arguments.junit_inconclusive))
        )
    if arguments.sarif is not None:
        found.append((arguments.sarif, sarif_log(run, _path_in_repository(arguments.spec), requirement_places(spec))))
    if arguments.in_toto is not None:
        found.append((arguments.in_toto, statement(run, _subjects(result))))
    return found


def _subjects(result: RunResult) -> dict[str, str]:
    """Model, files of planners and matrices with their hashes; where two have one name, the role stands before it."""
    tested = [each for each in result.inputs if each.role != "spec"]
    names = [each.name for each in tested]
    return {each.name if names.count(each.name) == 1 else f"{each.role}/{each.name}": each.sha256 for each in tested}


def _path_in_repository(path: str) -> str:
    """The path from the folder the command runs in, usually a repository's root; the name where it lies elsewhere."""
    given = Path(path)
    if given.is_absolute():
        given = given.relative_to(Path.cwd()) if given.is_relative_to(Path.cwd()) else Path(given.name)
    return Path(given.name).as_posix() if ".." in given.parts else given.as_posix()
