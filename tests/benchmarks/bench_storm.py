"""What it costs to hand models to Storm. Plain functions: they take sizes, print what they measure and return it."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import stormpy
from stormpy.developer import LogLevel, set_log_level

from verifier.chains.chain import MarkovChain
from verifier.chains.drn import write_drn
from verifier.chains.prism import write_prism
from verifier.chains.umb import write_umb
from verifier.checking.process import StormProcess, _temporary_folder


def banded_chain(states: int, per_state: int = 3, labels: int = 10) -> MarkovChain:
    """A chain in which every state moves on by 1 .. `per_state`, with end states that stay."""
    targets = np.minimum(np.arange(states)[:, np.newaxis] + np.arange(1, per_state + 1), states - per_state)
    inner = states - per_state
    targets[inner:] = np.arange(inner, states)[:, np.newaxis]
    keep = np.ones(targets.shape, dtype=bool)
    keep[:, 1:] = targets[:, 1:] != targets[:, :-1]
    counts = keep.sum(axis=1)
    weights = np.random.default_rng(1).random(targets.shape) * keep + keep
    weights /= weights.sum(axis=1, keepdims=True)
    return MarkovChain(
        indptr=np.r_[0, np.cumsum(counts)],
        indices=targets[keep],
        probabilities=weights[keep],
        labels={f"p{i}": np.arange(states) % (i + 2) == 0 for i in range(labels)},
        initial=np.array([0]),
    )


def best_of(runs: int, function: Callable[[], object]) -> float:
    """Shortest wall-clock time in seconds."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def hand_over(states: int = 1_000_000, runs: int = 5) -> float:
    """Seconds to write a chain and have Storm build it, as the worker does; the target is 0.6 for 10^6 states."""
    set_log_level(LogLevel.OFF)
    chain = banded_chain(states)
    sizes = []

    def once() -> None:
        with _temporary_folder(100 * states) as folder:
            started = time.perf_counter()
            write_umb(chain, f"{folder}/m.umb", valuations=False, storm_padding=True)
            sizes.append(time.perf_counter() - started)
            model = stormpy.build_model_from_umb(f"{folder}/m.umb")
        if model.nr_states != states + 1:
            raise ValueError("Storm built another model")

    seconds = best_of(runs, once)
    arrays = (chain.indptr, chain.indices, chain.probabilities, *chain.labels.values())
    copying = best_of(runs, lambda: [array.copy() for array in arrays])
    print(f"handing {states} states, {chain.transition_count} transitions and {len(chain.labels)} labels to Storm:")
    print(f"  {seconds:.3f} s ({min(sizes):.3f} s of it writing); {seconds / copying:.1f} x copying the arrays")
    return seconds


def round_trip(runs: int = 200) -> float:
    """Seconds for one check of a chain of 65 states by a running worker."""
    chain = banded_chain(65)
    with StormProcess() as storm:
        storm.storm_version()
        seconds = best_of(runs, lambda: storm.check(chain, ['F ("p8")']))
    print(f"one check of 65 states by the worker: {1000 * seconds:.2f} ms")
    return seconds


def text_exports(states: int = 100_000) -> tuple[float, float]:
    """Seconds to write a chain as DRN and as PRISM."""
    chain = banded_chain(states)
    with _temporary_folder(100 * states) as folder:
        drn = best_of(1, lambda: write_drn(chain, f"{folder}/m.drn"))
        prism = best_of(1, lambda: write_prism(chain, f"{folder}/m.pm"))
    print(f"text of {states} states, {chain.transition_count} transitions: DRN {drn:.2f} s, PRISM {prism:.2f} s")
    return drn, prism


if __name__ == "__main__":
    hand_over()
    round_trip()
    text_exports()
