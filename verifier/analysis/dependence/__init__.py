"""Whether errors depend on each other."""
