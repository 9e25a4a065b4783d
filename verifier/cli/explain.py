"""The command `verify explain`: call the story, print and write what it found."""

from __future__ import annotations

from dataclasses import replace

from verifier.base.budget import memory_limit
from verifier.base.files import write_bytes, write_text
from verifier.checking.process import StormProcess
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.targets import check_targets
from verifier.cli.terminal import progress_bar
from verifier.questions.explain.explaining import explained, read_traced
from verifier.questions.settings import ExplanationSettings
from verifier.study.case import Study, read_inputs
from verifier.telling.explain import explain_table
from verifier.telling.figures.drawing import figure_bytes
from verifier.telling.figures.explain import explain_figure


def explain_command(arguments: ExplanationSettings, command: Command) -> int:
    """Run `verify explain` and give its exit code: that of the verdict."""
    options, settings = arguments.options, arguments.explanation
    seen = arguments.json or arguments.output or arguments.plot or settings.variables
    settings = replace(settings, with_map=bool(seen))
    check_targets(arguments)
    with StormProcess() as storm, memory_limit(options.limits.memory_bytes):
        inputs = read_inputs(arguments.spec, arguments.cm, options)
        traced = None if arguments.record is None else read_traced(arguments.record, arguments.cm)
        result = explained(Study.of(inputs, options), settings, storm, traced, progress_bar)
    # Everything is made before anything is written.
    picture = b"" if arguments.plot is None else figure_bytes(explain_figure(result), arguments.plot)
    document = with_provenance(result.json_text(), command)
    if arguments.output is not None:
        write_text(arguments.output, document)
    if arguments.plot is not None:
        write_bytes(arguments.plot, picture)
    print(document if arguments.json else explain_table(result), end="")
    return int(result.verdict.exit_code)
