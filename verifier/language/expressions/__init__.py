"""One small language for conditions and arithmetic over model variables, shared by specs and system models."""

from verifier.language.expressions.evaluation import evaluate, exact_number
from verifier.language.expressions.kinds import check_type
from verifier.language.expressions.parser import parse_expression
from verifier.language.expressions.printing import replace_atoms, resolve_sees, substitute, to_text
from verifier.language.expressions.source import Source

__all__ = [
    "Source",
    "check_type",
    "evaluate",
    "exact_number",
    "parse_expression",
    "replace_atoms",
    "resolve_sees",
    "substitute",
    "to_text",
]
