"""The tool qualification kit as a page, in the order of its table of contents."""

from collections import Counter
from collections.abc import Iterator

from verifier.base.words import clipped, counted, listed
from verifier.evidence.bundle.trace import UNCONFIRMED
from verifier.evidence.qualification.kit import (
    GUIDE_WORDS,
    KnownProblemsResult,
    QualificationResult,
    Tables,
    kit_tables,
    requirement_feature,
)
from verifier.telling.blocks import Block, Listing, Page, Paragraph, Section, Table, facts

NOT_STATED = "not stated"
_FORM = ("Name", "Role, independence", "Day", "Signature")


def suite_blocks(study: QualificationResult) -> Iterator[Block]:
    """What a run of the suite found: what is wrong first."""
    tests = sorted(study.tests, key=lambda test: ("failed", "not run", "passed").index(test.state))
    rows = tuple((test.id, test.state, test.told or test.about) for test in tests)
    yield Table("Validation suite", ("test", "result", "what it shows, or what was found instead"), rows)
    if study.gaps:
        yield Paragraph("The kit has gaps:")
        yield Listing(study.gaps)
    tables, asked = kit_tables(), {test.id for test in study.tests}
    of = requirement_feature(tables)
    skipped = {of[table["requirement"]] for table in tables["test"] if not study.whole and table["id"] not in asked}
    partly = {name: "partly run" for name, state in study.features.items() if state == "passed" and name in skipped}
    stands = {**study.features, **partly}
    counts = [f"{counted(count, 'feature')} {state}" for state, count in Counter(stands.values()).items()]
    yield Paragraph(f"{listed(counts)}; tool {study.tool.version}, SHA-256 {study.tool.sha256[:16]}...")
    failed = [name for name, state in stands.items() if state != "passed"]
    if failed:
        yield Paragraph(f"Not qualified in this environment: {', '.join(failed)}.", "note")


def problem_blocks(study: KnownProblemsResult) -> Iterator[Block]:
    """The known problems that a result is touched by."""
    name = clipped(study.result)
    for text in study.unlisted:
        told = "whether any touches it is not known; ask the verify known-problems of that version, or of a later one"
        yield Paragraph(f"{name}: no list of the problems of version {clipped(text)} is here: {told}.")
    if not study.problems:
        yield from () if study.unlisted else [Paragraph(f"{name}: no known problem of its version touches it.")]
        return
    rows = tuple((problem.id, problem.effect, problem.text, problem.workaround) for problem in study.problems)
    yield Table(f"Known problems that touch {name}", ("id", "effect", "problem", "what to do"), rows)


def kit_page(study: QualificationResult, tables: Tables) -> Page:
    """All sections, with this run as the report."""
    who = facts("Who and when", ("by", study.by or NOT_STATED), ("day", study.day), ("platform", study.platform))
    review = Table("Confirmation review", _FORM, (("", "", "", ""),))
    sections = (
        Section("1 Tool criteria evaluation report", tuple(_evaluation(study, tables))),
        Section("2 Safety manual", tuple(_manual(tables))),
        Section("3 Known problems and limitations", tuple(_problems(tables))),
        Section("4 Requirements of the tool, and trace", tuple(_trace(study, tables))),
        Section("5 Validation plan and suite", tuple(_plan(tables))),
        Section("6 Qualification report", (*suite_blocks(study), who, review)),
        Section("7 Development process", (Listing(tuple(tables["manual"]["process"])),)),
        Section("8 Parts of others", (_parts(study, tables),)),
        Section("9 Confidence from use", (Paragraph("Not claimed: no log of use is kept."),)),
        Section("10 Clause trace", tuple(_clauses(tables))),
        Section("11 Installation qualification", (Paragraph(_INSTALLATION),)),
    )
    return Page(f"Tool qualification kit of verifier {study.tool.version}", sections, "verify qualify")


_INSTALLATION = (
    "Run verify qualify on the machine where results are made, offline. Test T-service-4 compares every installed "
    "file with the list of the distribution; the SHA-256 over all of them stands in section 1 and must be that of "
    "the release."
)


def _evaluation(study: QualificationResult, tables: Tables) -> Iterator[Block]:
    tool, features = study.tool, {table["id"]: table for table in tables["feature"]}
    yield facts(
        "Identity and environment",
        ("tool", f"{tool.name} {tool.version}"),
        ("commit", tool.commit or "no repository"),
        ("SHA-256 of the installed package", tool.sha256),
        ("SHA-256 of this kit", study.kit),
        ("platform", study.platform),
        ("highest ASIL assumed", study.asil or NOT_STATED),
        *tuple((name, version) for name, version in study.versions.items() if name != "verifier"),
    )
    keys = ("inputs", "outputs", "steps", "constraints")
    rows = tuple((table["id"], table["title"], *(table[key] for key in keys)) for table in tables["use_case"])
    yield Table("Use cases", ("id", "use case", *keys), rows)
    of_cases = ((table["id"], ", ".join(table["features"])) for table in tables["use_case"])
    yield facts("Features of each use case", *of_cases)
    levels = tuple((table["id"], table["malfunction"], f"TI {table['ti']}", table["detection"], f"TD {table['td']}",
                    f"TCL {table['tcl']}") for table in tables["use_case"])  # fmt: skip
    header = ("id", "malfunction", "impact", "what would detect it", "detection", "confidence level")
    yield Table("Tool impact, detection and confidence level", header, levels)
    for name, feature in features.items():
        dangers = tuple((word, feature["hazards"][word]) for word in GUIDE_WORDS)
        caption = f"Hazards of feature {name}: {feature['title']}"
        yield Table(caption, ("guide word", "effect, and what finds it"), dangers)


def _manual(tables: Tables) -> Iterator[Block]:
    titles = {
        "intended": "Intended use", "not_intended": "Not intended", "qualified": "What is qualified",
        "checks": "Checks by the user", "degraded": "Degraded environment",
        "checklist": "Conditions of use, to be signed",
    }  # fmt: skip
    for key, title in titles.items():
        yield Paragraph(f"{title}:")
        yield Listing(tuple(tables["manual"][key]))
    yield Paragraph(
        "How a verdict is read stands in verify manual results; what is assumed in verify manual assumptions."
    )
    yield Table("Signed", _FORM, (("", "", "", ""),))


def _problems(tables: Tables) -> Iterator[Block]:
    keys = ("id", "feature", "effect", "text", "workaround", "found_by")
    rows = tuple((*(table[key] for key in keys), ", ".join(table["versions"])) for table in tables["problem"])
    yield Table("Known problems", ("id", "feature", "effect", "problem", "what to do", "found by", "versions"), rows)
    yield Paragraph("verify known-problems RESULT says which of them touch a bundle or result.")


def _trace(study: QualificationResult, tables: Tables) -> Iterator[Block]:
    states = {test.id: test.state for test in study.tests}
    rows = [
        (
            ", ".join(table["id"] for table in tables["use_case"] if feature["id"] in table["features"]),
            f"{key}: {text}",
            "; ".join(
                f"{test['id']} ({states.get(test['id'], 'not asked for')})"
                for test in tables["test"]
                if test["requirement"] == key
            ),
        )
        for feature in tables["feature"]
        for key, text in feature["requirements"].items()
    ]
    yield Table("Use case, requirement, test, result", ("use cases", "requirement", "tests and results"), tuple(rows))


def _plan(tables: Tables) -> Iterator[Block]:
    rows = tuple((table["id"], table["method"], table["about"]) for table in tables["test"])
    yield Table("Tests", ("test", "method", "what it shows"), rows)
    methods = Counter(table["method"] for table in tables["test"])
    yield Paragraph(f"Methods: {listed([f'{name} ({count})' for name, count in sorted(methods.items())])}.")


def _parts(study: QualificationResult, tables: Tables) -> Table:
    versions = {**study.tool.environment, **study.versions}
    keys = ("role", "detects", "licence", "watched")
    rows = tuple(
        (table["name"], versions.get(table["name"].lower(), "not installed"), *(table[key] for key in keys))
        for table in tables["part"]
    )
    header = ("part", "version", "role", "what detects its faults", "licence", "problems watched at")
    return Table("Parts", header, rows)


def _clauses(tables: Tables) -> Iterator[Block]:
    yield Paragraph(UNCONFIRMED, "note")
    rows = tuple((table["id"], table["asked"], table["answer"]) for table in tables["clause"])
    yield Table("Clause by clause", ("clause", "asked", "answer"), rows)
