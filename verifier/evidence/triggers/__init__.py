"""Triggering conditions: what is known to make perception fail, and what the data say of each."""
