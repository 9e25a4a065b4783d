"""Linear temporal logic: reading, meaning on single words, rewriting, progression."""

from verifier.language.ltl.parser import in_steps, parse_formula, read_otherwise_by_prism
from verifier.language.ltl.semantics import abstract, holds_on_lasso, in_frames, to_storm

__all__ = [
    "abstract",
    "holds_on_lasso",
    "in_frames",
    "in_steps",
    "parse_formula",
    "read_otherwise_by_prism",
    "to_storm",
]
