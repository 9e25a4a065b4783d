"""Two bundles: what changed between them, which claims fall by it, and what has to be done again."""
