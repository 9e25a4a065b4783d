"""The commands `verify mutate`, `campaign`, `adr`, `predict` and `assess`: call what does it, print and write."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from verifier.base.blocks import Pool
from verifier.base.errors import ExitCode, InputError, Place, UsageError, one_line
from verifier.base.files import csv_text, write_text
from verifier.base.numbers import fixed
from verifier.base.words import counted
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.terminal import (
    check_targets,
    give_result,
    is_watched,
    progress_bar,
    tell_shares,
    wants_colour,
    watched,
)
from verifier.closedloop.comparison import BASELINE
from verifier.evidence.documents import document_of
from verifier.robustness.assessment.request import assessed
from verifier.robustness.campaign.guessing import proposal
from verifier.robustness.campaign.result import CampaignResult
from verifier.robustness.campaign.running import campaign_result
from verifier.robustness.mutators.batch import chosen_mutations, left_over, mutated
from verifier.robustness.mutators.batch_result import RESULT_FILE, ImageResult
from verifier.robustness.predicting import predict_result
from verifier.robustness.rates import adr_result
from verifier.robustness.settings import (
    AssessSettings,
    CampaignInitSettings,
    CampaignSettings,
    MutateSettings,
    PredictSettings,
    RatesSettings,
)
from verifier.telling.blocks import Listing, Page, Section
from verifier.telling.html import html_text
from verifier.telling.robustness import adr_blocks, assess_markdown, campaign_blocks, mutate_table, shown_mutations


def assess_command(arguments: AssessSettings, command: Command) -> int:
    """Run `verify assess` and give its exit code."""
    _check_folders(arguments)
    check_targets(arguments, "assessment")
    with Pool(arguments.scheduler) as workers:
        result = assessed(arguments, progress_bar, workers)
    tell_shares(workers.shares)
    give_result(arguments, command, result, markdown=lambda _: assess_markdown(result))
    return int(result.verdict.exit_code)


def _check_folders(arguments: AssessSettings) -> None:
    """Refuse folders that an output would lie in the way of, before anything is computed."""
    made = None if arguments.make is None else Path(arguments.make).resolve()
    for name in ("output", "markdown", "plot"):
        target = getattr(arguments, name)
        if made is not None and target is not None and Path(target).resolve() in (made, *made.parents):
            raise UsageError(f"--{name}: {target} is or holds the folder of --make")


def mutate_command(arguments: MutateSettings, command: Command) -> int:
    """Run `verify mutate` and give its exit code: 4 if anything could not be made."""
    if arguments.show:
        print(shown_mutations(chosen_mutations(arguments)), end="")
        return int(ExitCode.SATISFIED)
    with Pool(arguments.scheduler) as workers:
        result, folder = mutated(arguments, _bar, workers), Path(arguments.output or "")
    tell_shares(workers.shares)
    document = with_provenance(result.json_text(), command)
    write_text(folder / RESULT_FILE, document)
    print(document if arguments.json else mutate_table(result, folder), end="")
    if left := left_over(result, folder):
        are, first = ("is", "") if len(left) == 1 else ("are", "the first ")
        note = f"{counted(len(left), 'file')} in {folder} {are} of an earlier run, not of this one: {first}{left[0]}"
        print(f"verify: note: {one_line(note)}", file=sys.stderr)
    return int(ExitCode.BAD_INPUT if result.failures else ExitCode.SATISFIED)


def _bar(results: Iterable[ImageResult], count: int) -> Iterable[ImageResult]:
    """The results, with a progress bar on a terminal."""
    return watched(results, count, "images") if is_watched() else results


OBJECT_COLUMNS = ("detector", "condition", "image", "object", "before", "after")


def adr_command(arguments: RatesSettings, command: Command) -> int:
    """Run `verify adr` and give its exit code."""
    check_targets(arguments)
    result = adr_result(arguments)
    table = partial(result.told, colour=wants_colour())
    give_result(arguments, command, result, table, objects=lambda _: csv_text(result.required_rows(), OBJECT_COLUMNS))
    return 0


def predict_command(arguments: PredictSettings, command: Command) -> int:
    """Run `verify predict` and give its exit code."""
    check_targets(arguments)
    result = predict_result(arguments)
    give_result(arguments, command, result, partial(result.told, colour=wants_colour()))
    return 0


def campaign_command(arguments: CampaignSettings, command: Command) -> int:
    """Run `verify campaign` and give its exit code: of the worst verdict under any condition, as `verify run`."""
    with Pool(arguments.scheduler) as pool:
        watch = partial(watched, what="conditions")
        result = campaign_result(arguments.file, arguments.output, pool, watch, arguments.refine)
    tell_shares(pool.shares)
    folder = Path(arguments.output)
    texts = {"campaign.json": with_provenance(result.json_text(), command), "adr.json": result.adr.json_text()}
    if result.loop is not None:
        texts["closed_loop.json"] = result.loop.json_text()
    texts |= {f"{detector}/{condition}/run.json": text for (detector, condition), text in result.runs.items()}
    files = texts | {"campaign.csv": csv_text(result.rows()), "report.html": _report(result, texts)}
    for name, text in files.items():
        write_text(folder / name, text)
    if arguments.json:
        print(texts["campaign.json"], end="")
    else:
        print(result.told(colour=wants_colour()), end="")
        print(f"wrote {folder / 'report.html'}; the numbers are campaign.json and campaign.csv there")
    return int(result.verdict.exit_code)


def _report(result: CampaignResult, texts: dict[str, str]) -> str:
    """One page: the campaign, its detection rates, the closed loop, and each detector's run on unchanged images."""
    from verifier.evidence.report.pages import report_page  # brings what is told of every other result

    notes = (Listing(tuple(map(one_line, result.remarks))),) if result.remarks else ()
    own = Section("Campaign", (*campaign_blocks(result.study), *notes), id="campaign")
    rates = Section("Average detection rate", tuple(adr_blocks(result.adr)), id="adr")
    names = [name for name in texts if name == "closed_loop.json" or name.endswith(f"/{BASELINE}/run.json")]
    documents = [document_of(texts[name].encode(), name.replace("/", "_")) for name in names]
    page = report_page(documents, result.study.title) if documents else Page(result.study.title, ())
    return html_text(replace(page, sections=(own, rates, *page.sections)))


def campaign_init_command(arguments: CampaignInitSettings, command: Command) -> int:
    """Run `verify campaign init` and give its exit code."""
    check_targets(arguments)
    proposed, folder = proposal(arguments), Path(arguments.output).parent
    for name in proposed.others:
        if (folder / name).exists():
            raise InputError("there is a file already, which would be replaced", Place(str(folder / name)))
    for name, text in proposed.others.items():
        write_text(folder / name, text)
    write_text(arguments.output, proposed.text)
    print(f"wrote {one_line(', '.join([arguments.output, *(str(folder / name) for name in proposed.others)]))}")
    together = "images can go through together" if proposed.batches else "one image at a time"
    print(f"the network takes {fixed(proposed.milliseconds, 0)} ms for an image; {together}")
    print("guessed, to be confirmed:")
    for key, told in proposed.guesses.items():
        print(one_line(f"  {key} = {told}"))
    print(f"next: verify campaign {one_line(arguments.output)}")
    return 0
