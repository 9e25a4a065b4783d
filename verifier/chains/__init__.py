"""Markov chains and decision processes with labels, and their export to other tools."""

from pathlib import Path

from verifier.base.files import ending_of
from verifier.chains.chain import DecisionProcess, MarkovChain
from verifier.chains.languages import write_jani, write_prism
from verifier.chains.texts import Model, write_drn
from verifier.chains.umb import write_umb

__all__ = [
    "EXPORT_FORMATS",
    "DecisionProcess",
    "MarkovChain",
    "write_drn",
    "write_jani",
    "write_model",
    "write_prism",
    "write_umb",
]

EXPORT_FORMATS = (".umb", ".drn", ".prism", ".jani")


def write_model(chain: Model, path: str | Path) -> None:
    """Write a model in the format that the ending of `path` names, exactly where it has fractions.

    Raises:
        UsageError: the ending names no format.
        InputError: the file cannot be written.
    """
    match ending_of("the file of a model", path, EXPORT_FORMATS):
        case ".umb":
            write_umb(chain, path, exact=chain.fractions is not None)
        case ".drn":
            write_drn(chain, path)
        case ".prism":
            write_prism(chain, path)
        case _:
            write_jani(chain, path)
