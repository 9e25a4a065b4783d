"""The version of this program, where every part may read it."""

__version__ = "0.1.0"
RELEASED: tuple[str, ...] = ()
"""Versions before this one that were released: their bundles are read and checked, without comparing bytes."""
