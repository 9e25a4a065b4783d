"""The baseline of a gate from the JSON of an earlier run or comparison."""

from __future__ import annotations

from verifier.evidence.consistency import read_document
from verifier.questions.compare.gating import Baseline, baseline_of_document


def read_baseline(path: str) -> Baseline:
    """An earlier result; InputError as `verifier.evidence.consistency.read_document` and `baseline_of_document`."""

    document = read_document(path)
    return baseline_of_document(document.content, path, document.sha256)
