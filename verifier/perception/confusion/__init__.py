"""Confusion matrices by distance: bins, counting, counts, rates and the JSON document."""

from verifier.perception.confusion.document import ConfusionFile, read_confusion, write_confusion
from verifier.perception.confusion.matrices import EMPTY, EMPTY_COLUMN_POLICIES, ConfusionMatrices, exact_rates, rates

__all__ = [
    "EMPTY",
    "EMPTY_COLUMN_POLICIES",
    "ConfusionFile",
    "ConfusionMatrices",
    "exact_rates",
    "rates",
    "read_confusion",
    "write_confusion",
]
