"""Perception judged by what the vehicle does: logs, context levels, simulated braking, trade-off curves, RobROC."""
