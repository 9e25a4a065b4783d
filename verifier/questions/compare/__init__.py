"""Which planner, which detector: contenders compared by common draws, and held against an earlier result."""
