"""Every file of a bundle that follows from its inputs and results byte for byte, in one table.

A row may look at what the rows before it made. The last one, the manifest, looks at everything.
"""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from verifier.base.errors import one_line
from verifier.base.files import csv_text, document_text
from verifier.evidence.bundle import controlled, manifest
from verifier.evidence.bundle.layout import numbered_file
from verifier.evidence.bundle.making import read_omitted
from verifier.evidence.bundle.parts import (
    DATA_SET,
    OMITTED_RATES,
    RATES,
    RISK,
    TRIGGERS,
    Parts,
    made_data_set,
    made_rates,
    made_risk,
    made_triggers,
    rate_paths,
)
from verifier.evidence.bundle.trace import (
    COLUMNS,
    NOT_RUN,
    TRACE_COLUMNS,
    UNCONFIRMED,
    Traced,
    citations_text,
    clause_rows,
    clauses_page,
    status_blocks,
    trace_rows,
    trace_section,
    trace_text,
)
from verifier.evidence.case.anchors import links_text, nodes_text
from verifier.evidence.case.building import build_case, standings
from verifier.evidence.case.elements import Case, gsn_yaml, module_texts
from verifier.evidence.case.sheets import gsn_html, gsn_svg
from verifier.evidence.declarations import Answer
from verifier.evidence.defeaters.finding import find_defeaters, find_sensitivities
from verifier.evidence.defeaters.values import PER_HOUR, Defeater, answers_to, open_doubts
from verifier.evidence.documents import Document, document_of
from verifier.evidence.exchange.reqif import reqif_text
from verifier.evidence.exchange.sacm import sacm_text
from verifier.evidence.field import tested
from verifier.evidence.identity import ENVIRONMENT, environment_texts
from verifier.evidence.indicators import indicators_of
from verifier.evidence.junit import junit_xml
from verifier.evidence.report.pages import csv_report, report_page
from verifier.evidence.report.summary import About
from verifier.evidence.sarif import requirement_places, sarif_log
from verifier.evidence.statements import mlte_artefacts, statement
from verifier.evidence.status import Standing, Status
from verifier.study.inputs import ends_of
from verifier.study.parsed import parsed_study
from verifier.telling.blocks import Page, facts
from verifier.telling.html import html_text
from verifier.telling.markdown import markdown_text

README_FILE = "README.txt"
TRACE_FILE, INDICATORS = "trace.csv", "spi.json"
MODULES = "case/modules/"
CITATIONS = "case/files.csv"
CLAUSES, EXCHANGE = "trace/", "exchange/"
CLAUSE_FILES = tuple(f"{CLAUSES}clauses.{ending}" for ending in ("csv", "html", "reqif"))
Texts = Mapping[str, str]
Made = str | Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Basis:
    """Inputs, results, and the derived files so far.

    What several files are written from is made once, after the rates, which are cited as results are.

    Attributes:
        parts: inputs and results.
        made: path -> text of the derived files so far.
    """

    parts: Parts
    made: dict[str, str]

    @property
    def hashes(self) -> dict[str, str]:
        """Path -> SHA-256 of inputs, results and the derived files so far."""
        return self.parts.hashes | {path: manifest.digest_of(text.encode()) for path, text in self.made.items()}

    @property
    def unrated(self) -> dict[str, str]:
        """Path of a rate that could not be made -> why."""
        listed = self.made.get(OMITTED_RATES)
        return {} if listed is None else read_omitted(listed.encode(), OMITTED_RATES)

    @cached_property
    def traced(self) -> Traced:
        """What the trace from requirements to evidence is made from."""
        against: dict[str, list[str]] = {}
        for doubt in open_doubts(self.defeaters, self.answers):
            for name in dict.fromkeys(claim.requirement for claim in doubt.claims if doubt.kind not in PER_HOUR):
                against.setdefault(name, []).append(f"{doubt.id} {doubt.title}")
        rates = rate_paths(self.parts.result)
        known = {path: f"omitted: {why}" for path, why in self.unrated.items()} | {path: path for path in self.made}
        told = {k: known[path] for k, path in rates.items() if path in known}
        answers = {key: f"{key} {answer.digest} {answer.state}" for key, answer in self.answers.items()}
        return Traced(self.parts, against, answers, self.standings, told)

    @cached_property
    def page(self) -> Page:
        """The report, with the trace before the last section, which is the provenance and begins with the command."""
        rebuilt = self.parts.rebuilt
        read = parsed_study(rebuilt.inputs.model, rebuilt.grid, self.parts.result.inputs)
        stands = {(standing.requirement, standing.planner): standing.status for standing in self.standings}
        told = (Status.SUPPORTED, Status.CONDITIONAL)
        worse = {key: status.value for key, status in stands.items() if status not in told}
        about = About(read, self.parts.context, open_doubts(self.defeaters, self.answers), worse)
        page = report_page(self.cited, self.parts.title, about)
        trace = trace_section(trace_rows(self.traced))
        first, last = page.sections[0], page.sections[-1]
        findings = controlled.reviewed(self.case, self.parts.context.review[1])
        faulty = [f"Evidence {fault}" for fault in self.parts.context.declared.faulty()]
        notes = [*controlled.answered_notes(self.answers), *controlled.review_notes(findings), *faulty]
        whole, doubts = self.case.status, controlled.doubts_told(self.answers)
        status = status_blocks(self.standings, whole, notes, controlled.compared(self.cited), doubts)
        first = replace(first, blocks=(*controlled.identity_blocks(self.parts), *status, *first.blocks))
        if self.parts.request.command:
            typed = facts("This bundle", ("command", shlex.join(self.parts.request.command)))
            last = replace(last, blocks=(typed, *last.blocks))
        fields = controlled.fields_section(self.parts, self.cited)
        review = [controlled.review_section(findings)] if findings else []
        sections = (first, *page.sections[1:-1], trace, *review, fields, last)
        return Page(page.title, sections, identity=controlled.identity_text(self.parts))

    @property
    def issued(self) -> str:
        """The day on which the document is issued; one that cannot be meant where that is not stated."""
        return str(self.parts.context.identity.issued or manifest.NO_DATE)

    @cached_property
    def case(self) -> Case:
        """The assurance case."""
        rates = {path: manifest.digest_of(self.made[path].encode()) for path in _rate_files(self.made)}
        files, cited = {**self.parts.hashes, **rates}, self.cited
        unverified, proven = self.parts.unverified, self.parts.proven
        weaker = find_sensitivities(cited, self.parts.alternatives)
        stated = self.parts.context
        made = build_case(cited, stated, self.defeaters, files, self.left_out, unverified, proven, weaker)
        return controlled.with_review(made, controlled.reviewed(made, stated.review[1]))

    @cached_property
    def left_out(self) -> dict[str, str]:
        """Requirement -> why there is no result of it."""
        run = {requirement.name for requirement in self.parts.result.requirements}
        inputs = self.parts.rebuilt.inputs
        asked = {one.name: {end.name for end in ends_of(one, inputs.model)} for one in inputs.spec.requirements}
        chosen = {requirement.name for requirement in self.parts.rebuilt.grid.requirements}
        missing = {name: names for name, names in asked.items() if not names & run}
        return {name: "the run does not have it" if names & chosen else NOT_RUN for name, names in missing.items()}

    @cached_property
    def standings(self) -> tuple[Standing, ...]:
        """How every requirement with a target stands over all runs; every document prints these."""
        return standings(self.case, self.cited, open_doubts(self.defeaters, self.answers), self.left_out)

    @cached_property
    def defeaters(self) -> tuple[Defeater, ...]:
        """What speaks against the verdicts."""
        file, rows = self.parts.context.counted
        field = tested(indicators_of(self.parts.title, self.cited), rows, file) if file else ()
        return find_defeaters(self.cited, self.parts.context, self.parts.alternatives, field)

    @cached_property
    def answers(self) -> dict[str, Answer]:
        """Key of a doubt -> what people say of it."""
        return answers_to(self.defeaters, self.parts.context.declared)

    @cached_property
    def cited(self) -> list[Document]:
        """The documents that report and case tell of: all but the runs under other policies; equal ones once."""
        others = {alternative.sha256 for alternative in self.parts.alternatives.values()}
        documents = [document for document in self.parts.documents.values() if document.sha256 not in others]
        documents += [document_of(self.made[path].encode(), path) for path in _rate_files(self.made)]
        return list({document.sha256: document for document in documents}.values())


@dataclass(frozen=True)
class Derived:
    """One derived file, or a folder of them.

    Attributes:
        path: in the bundle; of a folder with a slash at its end.
        about: what it is, for people.
        media_type: for the crate.
        make: its text, from inputs and results and from the derived files before it; of a folder the text of each
            path in it.
    """

    path: str
    about: str
    media_type: str
    make: Callable[[Basis], Made]


def derived(parts: Parts) -> Basis:
    """Every derived file, the manifest last, and how the requirements stand."""
    basis = Basis(parts, {})
    for artefact in DERIVED:
        content = artefact.make(basis)
        basis.made.update({artefact.path: content} if isinstance(content, str) else content)
    return basis


def derived_row(path: str) -> Derived | None:
    """The row of the table that a path belongs to; None for what is not derived."""
    for row in DERIVED:
        if path == row.path or (row.path.endswith("/") and path.startswith(row.path)):
            return row
    return None


def _exchange(basis: Basis) -> Texts:
    """The files for other tools that need no library to be written."""
    case, rows = basis.case, trace_rows(basis.traced)
    artefacts = enumerate(mlte_artefacts(basis.parts.result, basis.standings), 1)
    listed = reqif_text(rows, TRACE_COLUMNS, "requirement", one_line(basis.parts.title), basis.issued)
    return {
        f"{EXCHANGE}case.sacm.xmi": sacm_text(case, basis.hashes),
        f"{EXCHANGE}nodes.csv": nodes_text(case),
        f"{EXCHANGE}links.csv": links_text(case),
        f"{EXCHANGE}requirements.reqif": listed,
        **{numbered_file(f"{EXCHANGE}mlte", number, name): text for number, (name, text) in artefacts},
    }


def _citations(basis: Basis) -> str:
    rows = [artefact.path for artefact in DERIVED]
    later = [row for row in rows[rows.index(CITATIONS) :] if row != CLAUSES]
    return citations_text([*basis.parts.files, *basis.made, *later, *CLAUSE_FILES], basis.case)


def _sarif(basis: Basis) -> str:
    places = requirement_places(basis.parts.rebuilt.inputs.spec)
    return sarif_log(basis.parts.run, basis.parts.request.spec, places, basis.standings)


def _indicators(basis: Basis) -> Texts:
    result = indicators_of(basis.parts.title, basis.cited)
    return {INDICATORS: document_text(result)} if result.indicators else {}


def _rate_files(made: Texts) -> list[str]:
    return [path for path in made if (path.startswith(RATES) and path != OMITTED_RATES) or path in (RISK, TRIGGERS)]


def _clauses(basis: Basis) -> Texts:
    rows, title = clause_rows(basis.hashes, basis.standings, basis.parts.context), one_line(basis.parts.title)
    listed = reqif_text(rows, COLUMNS, "clause", title, basis.issued, UNCONFIRMED)
    texts = csv_text(rows, COLUMNS), html_text(clauses_page(rows, title)), listed
    return dict(zip(CLAUSE_FILES, texts, strict=True))


def _crate(basis: Basis) -> str:
    entries, by_ending = _entries(basis), {"json": "application/json", "toml": "application/toml"}
    media_types = {
        path: by_ending.get(path.rpartition(".")[2], "text/plain") if row is None else row.media_type
        for path, row in ((path, derived_row(path)) for path in entries)
    }
    return manifest.crate_metadata(entries, media_types, basis.parts.title, basis.parts.context.identity.issued)


def _of(made: Callable[[Parts], Made]) -> Callable[[Basis], Made]:
    return lambda basis: made(basis.parts)


DERIVED: tuple[Derived, ...] = (
    Derived(RATES, "how often a requirement fails per hour", "application/json", _of(made_rates)),
    Derived(RISK, "hazardous behaviour and harm per hour", "application/json", _of(made_risk)),
    Derived(TRIGGERS, "what is known of triggering conditions", "application/json", _of(made_triggers)),
    Derived(INDICATORS, "safety performance indicators: what must stay true", "application/json", _indicators),
    Derived(DATA_SET, "record of the test data", "application/ld+json", _of(made_data_set)),
    Derived(ENVIRONMENT, "libraries with hashes, recipe of an image", "text/plain", lambda _: environment_texts()),
    Derived(TRACE_FILE, "from every requirement to its evidence", "text/csv", lambda basis: trace_text(basis.traced)),
    Derived(
        "case/gsn.yaml",
        "the assurance case in GSN, for gsn2x",
        "application/yaml",
        lambda basis: gsn_yaml(basis.case),
    ),
    Derived(
        MODULES,
        "the assurance case in GSN, a module in each file",
        "application/yaml",
        lambda basis: module_texts(basis.case, MODULES),
    ),
    Derived(EXCHANGE, "case, requirements and results for other tools", "text/plain", _exchange),
    Derived(CITATIONS, "which node cites each file, or why none does", "text/csv", _citations),
    Derived("case/gsn.svg", "the assurance case in GSN, drawn", "image/svg+xml", lambda basis: gsn_svg(basis.case)),
    Derived(
        "case/gsn_print.html",
        "the assurance case in GSN, on sheets of A4",
        "text/html",
        lambda basis: gsn_html(basis.case, controlled.identity_text(basis.parts)),
    ),
    Derived("report/report.html", "the report for people", "text/html", lambda basis: html_text(basis.page)),
    Derived("report/report.md", "the report in Markdown", "text/markdown", lambda basis: markdown_text(basis.page)),
    Derived(
        "report/report.csv", "every verified probability as a row", "text/csv", lambda basis: csv_report(basis.cited)
    ),
    Derived(
        "ci/junit.xml",
        "verdicts as JUnit XML",
        "application/xml",
        lambda basis: junit_xml(basis.parts.run, basis.parts.request.spec, standings=basis.standings),
    ),
    Derived("ci/results.sarif", "verdicts at their lines of the spec, as SARIF", "application/sarif+json", _sarif),
    Derived(CLAUSES, "what standards ask, clause by clause, and which files answer", "text/html", _clauses),
    Derived(
        "ci/statement.intoto.json",
        "in-toto statement about inputs, results, report and case",
        "application/json",
        lambda basis: statement(basis.parts.run, basis.hashes, basis.standings),
    ),
    Derived(README_FILE, "what this is and how to check it", "text/plain", _of(controlled.readme_text)),
    Derived(
        manifest.FINGERPRINTS_FILE,
        "fingerprints of single values, to locate damage",
        "application/json",
        lambda basis: manifest.fingerprints_text(basis.parts.files),
    ),
    Derived(manifest.METADATA_FILE, "RO-Crate metadata", "application/ld+json", _crate),
    Derived(
        manifest.MANIFEST_FILE,
        "the hashes of all files",
        "application/json",
        lambda basis: document_text(manifest.manifest_of(basis.parts.title, _entries(basis))),
    ),
)


def _entries(basis: Basis) -> dict[str, manifest.Entry]:
    entries = basis.parts.entries()
    for path, text in basis.made.items():
        row = derived_row(path)
        assert row is not None
        entries[path] = manifest.Entry.of(path, "derived", row.about, text.encode())
    return entries
