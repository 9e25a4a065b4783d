"""What speaks against a verdict, found in the documents: every doubt by a pure function, none left to luck."""

from verifier.evidence.defeaters.finding import find_defeaters
from verifier.evidence.defeaters.values import Claim, Defeater

__all__ = ["Claim", "Defeater", "find_defeaters"]
