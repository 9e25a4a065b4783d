"""Which node of the assurance case cites each file of a bundle, or why none argues from it."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from urllib.parse import unquote

from verifier.base.files import csv_text
from verifier.evidence.case import Case

COLUMNS = ("file", "cited_by", "not_argued_from")
_REASONS: Mapping[str, str] = {
    "request.json": "what was asked: the settings of each result say it",
    "inputs/given/*": "a result that was put in, and from which nothing here argues",
    "inputs/context/*": "what people state, or a document that is not what it was or is only declared",
    "inputs/*": "read with spec and model, whose hashes the case names",
    "results/omitted.json": "what could not be made, and why",
    "results/alternatives/*": "a run under another policy: doubts and sensitivities come from it",
    "results/explain.json": "no requirement fails",
    "results/require/*": "a requirement without a target, or not part of the case",
    "certificates/require*": "proves what the required recalls rest on",
    "certificates/*-*": "proves probabilities under another policy",
    "certificates/*": "proves numbers that no goal is about: no target",
    "rates/*": "a rate that is not compared with a criterion",
    "data/*": "what the matrices say of their data: people argue from it under the test data",
    "sbom.cdx.json": "with what it was built: recorded",
    "environment/*": "how to build the environment again",
    "spi.json": "what is to be watched in operation",
    "trace.csv": "made from results and case",
    "counts.csv": "the matrices as a table",
    "README.txt": "says how to check this bundle",
    "*": "made from results and case",
}
"""Pattern of a path -> why nothing argues from such a file; the first that fits."""


def citations_text(files: Iterable[str], case: Case) -> str:
    """Every file with the elements that cite it, or the reason why none does, as CSV."""
    cited: dict[str, list[str]] = {}
    for each in case.elements:
        for path in case.covers.get(each.id, (unquote(each.url),) if each.url else ()):
            cited.setdefault(path, []).append(each.id)
    rows = [
        {
            "file": path,
            "cited_by": " ".join(cited.get(path, ())),
            "not_argued_from": "" if path in cited else _reason(path),
        }
        for path in sorted(files)
    ]
    return csv_text(rows, COLUMNS)


def _reason(path: str) -> str:
    return next(reason for pattern, reason in _REASONS.items() if fnmatchcase(path, pattern))
