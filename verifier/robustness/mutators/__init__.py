"""What degrades an image: mutators as pure functions, mutations as values, published lists, batches of files."""

from verifier.robustness.mutators.catalogue import MUTATORS
from verifier.robustness.mutators.frames import Frame
from verifier.robustness.mutators.mutation import (
    AnyMutation,
    Composition,
    Mutation,
    apply,
    is_random,
    moves_boxes,
    mutation_of,
    needs_depth,
)
from verifier.robustness.mutators.sweeps import PUBLISHED, parse_mutation, parse_sweep, published

__all__ = [
    "MUTATORS",
    "PUBLISHED",
    "AnyMutation",
    "Composition",
    "Frame",
    "Mutation",
    "apply",
    "is_random",
    "moves_boxes",
    "mutation_of",
    "needs_depth",
    "parse_mutation",
    "parse_sweep",
    "published",
]
