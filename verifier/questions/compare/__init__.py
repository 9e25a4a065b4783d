"""Which planner, which detector: configurations compared by common draws, and compared with an earlier result."""
