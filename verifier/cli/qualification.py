"""The commands `verify qualify` and `verify known-problems`."""

import platform
from pathlib import Path

from verifier.base.errors import unknown_error
from verifier.base.files import ending_of
from verifier.cli.invocation import Command
from verifier.cli.terminal import check_targets, give_study, progress_bar
from verifier.cli.verbs import VERBS
from verifier.evidence.declarations import today
from verifier.evidence.identity import tool_identity
from verifier.evidence.qualification.generated import CHECKS
from verifier.evidence.qualification.kit import (
    KnownProblemsResult,
    ProblemRecord,
    QualificationResult,
    gaps,
    kit_digest,
    kit_tables,
    problems_of,
)
from verifier.evidence.qualification.pages import kit_page, problem_blocks, suite_blocks
from verifier.evidence.qualification.suite import Bench
from verifier.evidence.settings import KnownProblemsSettings, QualifySettings
from verifier.study.provenance import program_versions
from verifier.telling.html import html_text
from verifier.telling.markdown import markdown_text

_WRITERS = {".html": html_text, ".md": markdown_text}


def qualify_command(arguments: QualifySettings, command: Command) -> int:
    """Run `verify qualify` and give its exit code."""
    from verifier.cli import main

    check_targets(arguments, "qualification")
    if arguments.kit is not None:
        ending_of("--kit", arguments.kit, _WRITERS)
    tables = kit_tables()
    tests = {table["id"]: table for table in tables["test"]}
    for name in arguments.test:
        if name not in tests:
            raise unknown_error("test", name, tests, before="--test: ")
    asked = [tests[name] for name in dict.fromkeys(arguments.test or tests)]
    bench = Bench(main, tables, CHECKS)
    study = QualificationResult(
        command=command,
        versions=program_versions(),
        tool=tool_identity(),
        platform=platform.platform(),
        day=str(today()),
        by=arguments.by,
        asil=arguments.asil,
        kit=kit_digest(),
        whole=len(asked) == len(tests),
        gaps=tuple(gaps(tables, VERBS)),
        tests=tuple(map(bench.record, progress_bar(asked, what="tests"))),
    )
    kit = {"kit": lambda path: _WRITERS[Path(path).suffix.lower()](kit_page(study, tables))}
    give_study(arguments, study, suite_blocks(study), **kit)
    return int(study.exit_code)


def known_problems_command(arguments: KnownProblemsSettings, command: Command) -> int:
    """Run `verify known-problems` and give its exit code."""
    check_targets(arguments, "query")
    keys = ("id", "feature", "effect", "text", "workaround")
    problems, unlisted = problems_of(arguments.result)
    study = KnownProblemsResult(
        command=command,
        versions=program_versions(),
        result=Path(arguments.result).name,
        problems=tuple(ProblemRecord(**{key: problem[key] for key in keys}) for problem in problems),
        unlisted=unlisted,
    )
    give_study(arguments, study, problem_blocks(study))
    return int(study.exit_code)
