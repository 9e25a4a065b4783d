"""The version of this program, where every part may read it."""

__version__ = "0.1.0"
