"""The commands `verify campaign` and `verify campaign init`: call, print and write."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

from verifier.base.blocks import Pool
from verifier.base.errors import InputError, Place, one_line
from verifier.base.files import csv_text, write_text
from verifier.base.numbers import fixed
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.terminal import check_targets, tell_shares, wants_colour, watched
from verifier.closedloop.comparison import BASELINE
from verifier.evidence.documents import Document, checked_document
from verifier.evidence.report.pages import report_page
from verifier.robustness.campaign.guessing import proposal
from verifier.robustness.campaign.result import CampaignResult
from verifier.robustness.campaign.running import campaign_result
from verifier.robustness.settings import CampaignInitSettings, CampaignSettings
from verifier.telling.blocks import Listing, Page, Section
from verifier.telling.html import html_text
from verifier.telling.rates import adr_blocks, campaign_blocks, campaign_table


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
        print(campaign_table(result, colour=wants_colour()), end="")
        print(f"wrote {folder / 'report.html'}; the numbers are campaign.json and campaign.csv there")
    return int(result.verdict.exit_code)


def _report(result: CampaignResult, texts: dict[str, str]) -> str:
    """One page: the campaign, its detection rates, the closed loop, and each detector's run on unchanged images."""
    notes = (Listing(tuple(map(one_line, result.remarks))),) if result.remarks else ()
    own = Section("Campaign", (*campaign_blocks(result.study), *notes), id="campaign")
    rates = Section("Average detection rate", tuple(adr_blocks(result.adr)), id="adr")
    names = [name for name in texts if name == "closed_loop.json" or name.endswith(f"/{BASELINE}/run.json")]
    documents = [_document(name, texts[name]) for name in names]
    page = report_page(documents, result.study.title) if documents else Page(result.study.title, ())
    return html_text(replace(page, sections=(own, rates, *page.sections)))


def _document(name: str, text: str) -> Document:
    return checked_document(json.loads(text), text.encode(), name.replace("/", "_"))


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
