"""One small language for conditions and arithmetic over model variables, shared by specs and system models."""

from verifier.expressions.evaluation import evaluate, exact_number
from verifier.expressions.kinds import check_type
from verifier.expressions.parser import parse_expression
from verifier.expressions.printing import to_text
from verifier.expressions.rewriting import resolve_sees, substitute
from verifier.expressions.source import Source

__all__ = [
    "Source",
    "check_type",
    "evaluate",
    "exact_number",
    "parse_expression",
    "resolve_sees",
    "substitute",
    "to_text",
]
