"""Markov chains and decision processes with labels, and their export to other tools."""

from pathlib import Path

from verifier.base.errors import UsageError
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
    ending = Path(path).suffix
    if ending == ".umb":
        write_umb(chain, path, exact=chain.fractions is not None)
    elif ending == ".drn":
        write_drn(chain, path)
    elif ending == ".prism":
        write_prism(chain, path)
    elif ending == ".jani":
        write_jani(chain, path)
    else:
        raise UsageError(f"expected a file name ending in {', '.join(EXPORT_FORMATS)}, got {str(path)!r}")
