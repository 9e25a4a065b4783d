"""How likely does a system that acts on what a detector sees meet its requirements?"""

__version__ = "0.1.0"
