"""Probability of collision by reported distance and speed: estimator, intervals, oracle, score, comparison."""
