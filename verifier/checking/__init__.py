"""Engines that compute how likely a chain meets a formula, and what they answer."""
