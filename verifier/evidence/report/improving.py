"""What would help a requirement: kinds of wrong reports to fix, columns to label more, the recall it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from verifier.base.documents import Content, read_document
from verifier.base.numbers import decimal_text, level_text, number_text
from verifier.base.words import listed, percent
from verifier.checking.verdicts import Verdict, verdict_text
from verifier.evidence.documents import Document
from verifier.evidence.report.subjects import Subject
from verifier.evidence.report.wording import name_text, scenario_text, sentence
from verifier.study.points import Point
from verifier.telling.blocks import Block, Cell, Paragraph, Table
from verifier.telling.causes import deviation_text
from verifier.telling.run import probability_text

MOST_ROWS = 10


def improving_blocks(subject: Subject) -> Iterator[Block]:
    """What explanations and answers say would help; nothing where neither was given."""
    for document, part in subject.explained:
        yield from _fixes(document, part)
        yield from _label_more(document, part)
    for document, answer in subject.answers:
        yield from answer_blocks(document, answer)


def improving_sentence(subject: Subject) -> str | None:
    """What would help most, in one sentence; None where that is not known."""
    sentences = []
    for document, part in subject.explained[:1]:
        fixes = part["fixes"]
        if fixes:
            best = fixes[0]
            where = name_text(document.content["bins"][best["bin"]])
            sentences.append(
                f"If true {name_text(best['true'])} in {where} were never reported as {name_text(best['reported'])}, "
                f"P would be {number_text(best['probability'])}."
            )
        elif subject.result.verdict is Verdict.VIOLATED:
            perfect = number_text(part["perfect_perception"])
            sentences.append(
                f"No single kind of wrong report changes P; with perfect perception it would be {perfect}."
            )
    for document, answer in subject.answers[:1]:
        sentences.append(f"{sentence(_headline(document, answer))}{_on_condition(answer)}.")
    return " ".join(sentences) or None


def _fixes(document: Document, part: Content) -> Iterator[Block]:
    perfect = f"With perfect perception P would be {number_text(part['perfect_perception'])}."
    if not part["fixes"]:
        yield Paragraph(f"No single kind of wrong report changes P. {perfect}")
        return
    rows = tuple(
        (
            name_text(fix["true"]),
            Cell(name_text(document.content["bins"][fix["bin"]]), fix["bin"]),
            name_text(fix["reported"]),
            Cell(f"{fix['rate']:.4g}", fix["rate"]),
            Cell(number_text(fix["probability"]), fix["probability"]),
            Cell(f"{fix['first_order']:+.3g}{' (may jump)' if fix['jumps'] else ''}", fix["first_order"]),
        )
        for fix in part["fixes"][:MOST_ROWS]
    )
    yield Paragraph(perfect)
    header = ("true", "distance", "reported as", "rate", "P if corrected", "change of P to first order")
    yield Table(f"What to fix first{_more(part['fixes'])}", header, rows, sortable=True)


def _label_more(document: Document, part: Content) -> Iterator[Block]:
    if not part["label_more"]:
        return
    rows = tuple(
        (
            name_text(each["true"]),
            Cell(name_text(document.content["bins"][each["bin"]]), each["bin"]),
            Cell(str(each["items"]), each["items"]),
            Cell(percent(each["share_of_variance"]), each["share_of_variance"]),
            Cell(f"{each['swing']:.3g} ({name_text(each['swing_of'])})", each["swing"]),
        )
        for each in part["label_more"][:MOST_ROWS]
    )
    level = level_text(document.content["explain"]["level"])
    header = ("true", "distance", "items", "share of variance", f"P over the {level} interval of a cell")
    title = f"Where to label more{_more(part['label_more'])}: {deviation_text(part)}"
    yield Table(title, header, rows, sortable=True)


def _more(rows: list[Content]) -> str:
    return f" (first {MOST_ROWS} of {len(rows)})" if len(rows) > MOST_ROWS else ""


def answer_blocks(document: Document, answer: Content) -> Iterator[Block]:
    """What recall the requirement asks of the detector."""
    swept = "".join(f", {name_text(name)} = {name_text(value)}" for name, value in answer["constants"].items())
    yield Paragraph(f"{sentence(_headline(document, answer))}{swept}{_on_condition(answer)} ({document.name}).")
    target = Fraction(document.content["requirement"]["probability"])
    rows = [("as measured", answer["measured"])]
    if answer["at_place"] is not None:
        rows.append(("as required" if answer["outcome"] == "found" else "closest", answer["at_place"]))
    rows.append(("all perfect", answer["perfect"]))
    yield Table(
        "P with the detector",
        ("detector", "P", "worst scenario", "verdict"),
        tuple(
            (
                name,
                Cell(probability_text(point, target), point.probability),
                scenario_text(point),
                Cell(_told(answer, name, told), verdict=point.verdict.value),
            )
            for name, told in rows
            for point in [read_document(Point, told, document.name)]
        ),
    )
    if answer["outcome"] != "found" and not answer["met_as_measured"]:
        yield Paragraph(_limit(answer), "note")
    if answer["cells"]:
        yield _cell_table(answer)
    if answer["gaps"]:
        yield Paragraph(
            "Also met from "
            + listed([f"{decimal_text(low)} to {decimal_text(high)}" for low, high in answer["gaps"][:MOST_ROWS]])
            + ", but not right above.",
            "note",
        )
    if answer["box"] is not None:
        yield Paragraph(_floor_text(document, answer), "note")


def _on_condition(answer: Content) -> str:
    """What an answer assumes of the detector, to end a sentence with."""
    return "" if answer["condition"] is None else f", {answer['condition']}"


def _told(answer: Content, name: str, point: Content) -> str:
    """The verdict with its condition; neither perfect perception nor what holds whatever is predicted has one."""
    free = name == "all perfect" or "whatever_predicted" in point
    return verdict_text(point["verdict"], None if free else answer["condition"])


def _headline(document: Document, answer: Content) -> str:
    match answer["outcome"]:
        case "independent":
            return "the recalls in question make no difference to this requirement"
        case "infeasible":
            return "no recall in question meets this requirement"
        case "only in gaps":
            return "this requirement is met for some recalls, but not up to perfect recall"
    place = decimal_text(answer["place"] or "0")
    match document.content["mode"]:
        case "factor":
            return f"this requirement asks for every miss rate times {place} at most"
        case "cost":
            return f"the cheapest improvement found that meets this requirement has the price {place}"
    many = " in every cell in question" if len(answer["cells"]) > 1 else ""
    return f"this requirement asks for a recall of at least {place}{many}"


def _limit(answer: Content) -> str:
    if answer["planner_is_limit"]:
        value = number_text(answer["perfect"]["probability"])
        return f"The limit is the planner: with perfect perception P is {value} at the worst."
    if answer["others"]:
        names = [name_text(each) for each in answer["others"][:MOST_ROWS]]
        return f"The limit is what was not in question: {listed(names)}."
    return "Perfect perception meets it, but not on the way that was searched."


def _cell_table(answer: Content) -> Table:
    floors = (answer["box"] or {}).get("floors")
    header = ("true", "distance", "measured recall", "items", "required", "to gain")
    rows = []
    for k, each in enumerate(answer["cells"]):
        measured, required = each["measured"], each["required"]
        exact = Fraction(measured["hits"], measured["items"])
        gain = None if required is None else Fraction(required) - exact
        row = [
            Cell(name_text(each["label"])),
            Cell(name_text(each["bin"]), k),
            Cell(f"{float(exact):.4f}", float(exact)),
            Cell(f"{measured['hits']} of {measured['items']}", measured["items"]),
            Cell("none found") if required is None else Cell(decimal_text(required), float(Fraction(required))),
            Cell("-") if gain is None else Cell("met" if gain <= 0 else f"+{float(gain):.4f}", float(gain)),
        ]
        rows.append((*row, Cell(decimal_text(floors[k]), float(Fraction(floors[k])))) if floors else tuple(row))
    return Table("Recall by cell", (*header, "certified floor") if floors else header, tuple(rows), sortable=True)


def _floor_text(document: Document, answer: Content) -> str:
    box, asked = answer["box"], document.content["requirement"]
    side = "at most" if asked["comparison"] in ("<=", "<") else "at least"
    rest = "everything else free" if box["rest"] == "free" else "all other columns as measured"
    held = "checked in rational arithmetic" if box["checked"] else "not checked in rational arithmetic"
    proof = f"P is {side} {number_text(box['proven'])} ({held})"
    if box["floors"] is None:
        return f"Certified floor: none. Even with recall 1, {rest}, only this is known: {proof}."
    return f"Certified floor: for every detector with recalls from the floors in the table on, {rest}, {proof}."
