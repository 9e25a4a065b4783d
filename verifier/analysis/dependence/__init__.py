"""Whether errors that depend on each other contradict the chain."""
