"""What degrades an image: mutators as pure functions, mutations as values, published lists, batches of files."""

from verifier.robustness.mutators.catalogue import MUTATORS
from verifier.robustness.mutators.frames import Frame
from verifier.robustness.mutators.mutation import AnyMutation, Composition, Mutation, apply, moves_boxes, needs_depth

__all__ = ["MUTATORS", "AnyMutation", "Composition", "Frame", "Mutation", "apply", "moves_boxes", "needs_depth"]
