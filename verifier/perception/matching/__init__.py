"""Which detection explains which annotation: affinities, named policies, and the matching of whole data sets."""

from verifier.perception.matching.matches import Matches, match
from verifier.perception.matching.policy import CONVENTIONS, MatchingPolicy, convention, usual_threshold

__all__ = ["CONVENTIONS", "Matches", "MatchingPolicy", "convention", "match", "usual_threshold"]
