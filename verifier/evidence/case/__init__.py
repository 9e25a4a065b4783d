"""The assurance case: Goal Structuring Notation from requirements, results and what speaks against them."""

from verifier.evidence.case.building import build_case
from verifier.evidence.case.elements import Case, Element, Kind, gsn_yaml
from verifier.evidence.case.sheets import gsn_html
from verifier.evidence.case.svg import gsn_svg
from verifier.evidence.context import CaseContext, read_context
from verifier.evidence.status import Status

__all__ = [
    "Case",
    "CaseContext",
    "Element",
    "Kind",
    "Status",
    "build_case",
    "gsn_html",
    "gsn_svg",
    "gsn_yaml",
    "read_context",
]
