"""Limits of memory, tried in a process of its own: what a process holds moves while others' memory is given back."""

import contextlib
import multiprocessing
import resource
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from verifier.base.budget import memory_left, memory_limit, share_of_memory
from verifier.base.errors import InputError, NoAnswerError
from verifier.base.files import read_bytes
from verifier.evidence.bundle.check import CheckLimits, check_files
from verifier.systems.settings import Limits

MIB = 2**20


def in_a_new_process(check, *given):
    """What a process holds moves while other tests' memory is given back; a new one has nothing to give back."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(check, *given).result(timeout=100)


def refused_beyond_the_limit():
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with memory_limit(300 * MIB):
        kept = np.zeros(100 * MIB, dtype=np.uint8)
        assert memory_left() <= 200 * MIB
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    with (
        pytest.raises(NoAnswerError, match="more memory is needed than the limit of 50 MiB") as caught,
        memory_limit(50 * MIB),
    ):
        np.zeros(60 * MIB, dtype=np.uint8)
    assert "--max-memory" in caught.value.hint
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert kept.nbytes == 100 * MIB
    np.zeros(400 * MIB, dtype=np.uint8)


def not_widened():
    with memory_limit(100 * MIB):
        outer = resource.getrlimit(resource.RLIMIT_DATA)
        with memory_limit(1000 * MIB):
            assert resource.getrlimit(resource.RLIMIT_DATA) == outer
            with pytest.raises(MemoryError):
                np.zeros(150 * MIB, dtype=np.uint8)


def shared_with_the_worker():
    with share_of_memory() as share:
        assert share is None  # no limit, no share
    with memory_limit(400 * MIB):
        left = memory_left()
        with share_of_memory() as share:
            assert abs(share - left / 2) <= MIB
            assert abs(memory_left() - left / 2) <= MIB
            with pytest.raises(MemoryError):
                np.zeros(250 * MIB, dtype=np.uint8)
        np.zeros(250 * MIB, dtype=np.uint8)


def ended_in_any_order():
    """Blocks of several threads end in any order; each may also end late, when its exception is forgotten."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    first, second, third = (contextlib.ExitStack() for _ in range(3))
    first.enter_context(memory_limit(300 * MIB))
    second.enter_context(share_of_memory())
    strictest = resource.getrlimit(resource.RLIMIT_DATA)[0]
    third.enter_context(memory_limit(200 * MIB))
    first.close()
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] == strictest
    second.close()
    with pytest.raises(MemoryError):
        np.zeros(250 * MIB, dtype=np.uint8)
    third.close()
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    np.zeros(400 * MIB, dtype=np.uint8)


def small_files_are_read_with_little_memory(path):
    with memory_limit(64 * MIB):
        assert read_bytes(path) == b"few"
    with memory_limit(64 * MIB), pytest.raises(InputError, match="the file has more than 1000 bytes"):
        read_bytes("/dev/zero", 1000)


def too_little_for_a_check(files, recompute):
    """In a process where no freed memory lies about that a check could do with."""
    with pytest.raises(NoAnswerError, match="limit") as told:
        check_files("b", files, recompute=recompute, limits=CheckLimits(system=Limits(memory_bytes=1 << 16)))
    assert told.value.exit_code == 6
