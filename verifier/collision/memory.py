"""How much memory an estimate needs, and refusing what needs too much."""

from __future__ import annotations

from verifier.base.errors import LimitError
from verifier.collision.kernel import BLOCK_BYTES

MEMORY_LIMIT = 2**30
"""Bytes; what is predicted to need more is refused."""


def predicted_bytes(pair_count: int, shape: tuple[int, int], samples: int = 1) -> int:
    """Most bytes that the estimates of `samples` subsamples, `pair_count` pairs in all, need at a time, from above.

    Args:
        pair_count: of the data or of all subsamples together, whichever is more.
        shape: (Y, V) of the grid.
        samples: number of subsamples.
    """
    distances, speeds = shape
    return 8 * (16 * pair_count + 8 * distances * speeds + 8 * samples * speeds) + 5 * BLOCK_BYTES


def check_memory(needed: int) -> None:
    """Refuse what is predicted to need more than `MEMORY_LIMIT` bytes.

    Raises:
        LimitError: naming both numbers.
    """
    if needed > MEMORY_LIMIT:
        raise LimitError(
            f"this would need about {needed / 2**20:.0f} MiB; the limit is {MEMORY_LIMIT / 2**20:.0f} MiB",
            hint="take fewer distances, speeds, pairs or resamples",
        )
