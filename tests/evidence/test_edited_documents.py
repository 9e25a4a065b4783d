"""Random edits of every kind of result: whoever reads it refuses it naming the element, or the edit changes nothing.

What is neither is an edit of something declared, of which nothing else in the document speaks (a name, a count, a
setting): those are listed here, by the way to them. Numbers that are accepted keep to rules that are written down
here once more.
"""

import contextlib
import io
import json
import random
import re
from pathlib import Path

import pytest
import report_documents
from document_edits import edited, pattern

from verifier.base.errors import ExitCode, InputError
from verifier.cli import main
from verifier.evidence.consistency import read_document
from verifier.evidence.report import csv_report, markdown_report

KINDS = (
    "run", "sweep", "explain", "require", "compare", "collision", "robroc", "curves", "rate", "mutate", "assess",
    "by_class",
)  # fmt: skip
DECLARED = (
    "title", "remarks", "versions", "command", "inputs", "matrices", "settings", "name", "formula", "environment",
    "initial", "constants", "vacuity", "draws", "conservative", "evidence_needed", "tipping_points", "planner",
    "labels", "bins", "channel", "detector", "detectors",
)  # fmt: skip
"""Keys below which a document says what was given, of which it holds nothing to compare with."""
POINTS = (
    r"/requirements/\*/points/\*", r"/explanations/\*/point", r"/answers/\*/(measured|at_place|perfect)",
    r"/specs/\*/requirements/\*/entries/\*/points/\*",
)  # fmt: skip
SLACK = 1e-9
RULED = re.compile(
    rf"({'|'.join(POINTS)})/(lower|upper|probability|second_engine|sureness.*)|/requirements/\*/points/\*"
)
"""Numbers that may move within what `fits` says."""
FREE = {
    "run": r"/requirements/\*|/requirements/\*/target.*",
    "sweep": r"/requirements/\*|/requirements/\*/target.*",
    "explain": r"/explanations.*|/engines.*",
    "require": r"/answers.*|/requirement.*|/engines.*",
    "compare": r"/specs.*|/engines.*|/gate.*",
    "collision": r"/.*",
    "robroc": r"/flips.*|/metrics.*|/logs.*",
    "curves": r"/curves.*",
    "rate": r"/.*",
    "mutate": r"/images.*|/mutations.*|/counts/unreadable",
    "assess": r"/.*",
    "by_class": r"/.*",
}
"""What each kind tells without telling anything that it follows from; of a run, a requirement may be left out."""
RUN_KINDS = ("run", "sweep")


def is_share(value):
    return isinstance(value, int | float) and not isinstance(value, bool) and -SLACK <= value <= 1 + SLACK


def fits(value):
    """Whether all points in a document are as a point must be, by the definitions of its parts."""
    if isinstance(value, list):
        return all(map(fits, value))
    if not isinstance(value, dict):
        return True
    if {"lower", "upper", "probability", "second_engine"} <= value.keys():
        numbers = [value[name] for name in ("lower", "probability", "upper")]
        if not all(map(is_share, [*numbers, value["second_engine"]])):
            return False
        if not (numbers[0] <= numbers[2] and numbers[0] - SLACK <= numbers[1] <= numbers[2] + SLACK):
            return False
    if {"interval", "confidence_bounds", "level"} <= value.keys():
        interval, bounds = value["interval"], value["confidence_bounds"]
        shares = [*(interval[k] for k in ("lower", "upper")), *(bounds[k] for k in ("lower", "upper"))]
        if not all(map(is_share, [*shares, *interval["lower_range"], *interval["upper_range"]])):
            return False
        if interval["lower"] > interval["upper"] or bounds["lower"] > bounds["upper"]:
            return False
        for end in ("lower", "upper"):
            low, high = interval[f"{end}_range"]
            if not low <= interval[end] <= high:
                return False
    return all(map(fits, value.values()))


def fits_as_run(content):
    """Whether the summaries of a run equal what its points give: the worst verdict, the furthest engines."""
    order = ("no target", "satisfied", "vacuous", "no answer", "inconclusive", "violated")
    for asked in content["requirements"]:
        told = [point["verdict"] for point in asked["points"]]
        counted = [verdict for verdict in told if verdict != "vacuous"] or ["vacuous"]
        worst = max(counted, key=("no target", "satisfied", "vacuous", "inconclusive", "violated").index)
        if asked["verdict"] != worst or asked["points"][asked["worst"]]["verdict"] != worst:
            return False
    points = [point for asked in content["requirements"] for point in asked["points"]]
    furthest = max(abs(point["probability"] - point["second_engine"]) for point in points)
    worst = max((asked["verdict"] for asked in content["requirements"]), key=order.index)
    return content["engines"]["largest_difference"] == furthest and content["verdict"] == worst


def rate_of(path):
    """What `verify evidence rate` says of a run: exit code, output without the file's hash, what it complains of."""
    said, complained = io.StringIO(), io.StringIO()
    words = ["evidence", "rate", path, "--requirement", "stops_for_pedestrians", "--exposure", "12/h", "--json"]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        code = main(list(map(str, words)))
    return code, re.sub(r'"sha256": "[0-9a-f]*"', "", said.getvalue()), complained.getvalue()


def told(path):
    """What the report says of a document, as Markdown and as a table, without the file's hash; or why nothing."""
    try:
        document = read_document(path)
    except InputError as error:
        return error
    text = markdown_report([document]) + (csv_report([document]) if document.kind == "run" else "")
    return re.sub(rf"{document.sha256}|{document.sha256[:12]}", "", text)


def free(kind, way):
    """Whether an edit that is accepted and seen is one of something declared, or of a number within its rules."""
    where = pattern(way)
    if any(key in DECLARED for key in way) or re.fullmatch(FREE[kind], where):
        return True
    return RULED.fullmatch(where) is not None


FEWER = {"run": 20, "sweep": 10, "explain": 25, "collision": 6}
"""Edits in the plain suite of what takes long to read; of the others 50."""


def check(kind, count, seed, folder):
    rng = random.Random(f"{kind} {seed}")
    source = Path(report_documents.path(kind))
    content = json.loads(source.read_text())
    path = folder / "edited.json"
    path.write_text(source.read_text())
    before = told(path)
    rate_before = rate_of(path) if kind in RUN_KINDS else None
    refused = 0
    for _ in range(count):
        found = edited(content, rng)
        if found is None:
            continue
        what, way, other = found
        path.write_text(json.dumps(other))
        after = told(path)
        if isinstance(after, InputError):
            refused += 1
            place = after.place
            assert place.path, (way, str(after))
            assert place.file in (str(path), path.name)
            if kind in RUN_KINDS:
                code, said, complained = rate_of(path)
                assert (code, said) == (ExitCode.BAD_INPUT, ""), (what, way)
                assert complained.startswith(f"verify: {path}: {place.path}: "), complained
            continue
        assert fits(other), (what, way)
        assert kind not in RUN_KINDS or fits_as_run(other), (what, way)
        if after != before or (rate_before is not None and rate_of(path) != rate_before):
            assert free(kind, way), (what, way)
    return refused


@pytest.mark.parametrize("kind", KINDS)
def test_an_edited_document_is_refused_or_nothing_changes(kind, tmp_path):
    assert check(kind, FEWER.get(kind, 50), 1, tmp_path) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_2000_edited_documents_are_refused_or_nothing_changes(kind, tmp_path):
    assert check(kind, 2000, 2, tmp_path) > 400
