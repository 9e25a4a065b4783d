"""How long the batch engine takes, as plain functions that print; sizes are arguments."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from verifier.checking.batch import satisfaction_probabilities
from verifier.checking.product import build_product
from verifier.expressions.syntax import Name, Operation, Temporal

Arrays = tuple[NDArray[np.int64], NDArray[np.int64], dict[str, NDArray[np.bool_]]]


def forward_chain(cells: int, speeds: int) -> Arrays:
    """A car's chain: state (x, v), x grows by v, v changes by at most one; the last cell is terminal."""
    x, v = np.divmod(np.arange(cells * speeds), speeds)
    ahead = np.minimum(x + v, cells - 1)
    sources, targets = [], []
    for change in (-1, 0, 1):
        possible = (v + change >= 0) & (v + change < speeds) & (x < cells - 1)
        sources.append(np.flatnonzero(possible))
        targets.append((ahead * speeds + v + change)[possible])
    terminal = np.flatnonzero(x == cells - 1)
    pairs = np.unique(
        np.stack([np.concatenate([*sources, terminal]), np.concatenate([*targets, terminal])], axis=1), axis=0
    )
    indptr = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=cells * speeds))])
    labels = {"goal": (x == cells - 10) & (v == 0), "bad": (x >= cells - 9)}
    return indptr, pairs[:, 1].copy(), labels


def random_values(indptr: NDArray[np.int64], count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(count, nnz) float64, rows of random stochastic matrices over one graph."""
    weights = rng.random((count, indptr[-1])) + 0.01
    sums = np.add.reduceat(weights, indptr[:-1], axis=1)
    return weights / np.repeat(sums, np.diff(indptr), axis=1)


def many_matrices(matrices: int = 10_000, cells: int = 65, speeds: int = 11) -> float:
    """Seconds for `(!bad) U goal` from every start speed through `matrices` chains of one graph."""
    indptr, indices, labels = forward_chain(cells, speeds)
    formula = Temporal("U", (Operation("!", (Name("bad"),)), Name("goal")))
    product = build_product(indptr, indices, labels, formula, np.arange(1, speeds))
    values = random_values(indptr, matrices, np.random.default_rng(0))
    begin = time.perf_counter()
    result = satisfaction_probabilities(product, values)
    seconds = time.perf_counter() - begin
    print(
        f"{matrices} matrices, {product.state_count} product states, {len(product.edge)} transitions: "
        f"{seconds:.3f} s, {seconds / matrices * 1e6:.1f} us each; largest error bound {result.error_bound.max():.1e}"
    )
    return seconds


def one_large_chain(states: int = 1_000_000) -> float:
    """Seconds to build and solve the product of one large forward-moving chain with `F goal`."""
    indptr, indices, labels = forward_chain(states // 11, 11)
    return _one_chain(f"forward chain, {states // 11} levels", indptr, indices, labels["goal"], np.arange(1, 11))


def one_large_component(side: int = 300) -> float:
    """Seconds for a random walk on a square grid with an absorbing goal in one corner and a trap in another."""
    n = side * side
    x, y = np.divmod(np.arange(n), side)
    ends = (np.arange(n) == 0) | (np.arange(n) == n - 1)
    pairs = [np.stack([np.flatnonzero(ends)] * 2, axis=1)]
    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        inside = ~ends & (x + dx >= 0) & (x + dx < side) & (y + dy >= 0) & (y + dy < side)
        pairs.append(np.stack([np.flatnonzero(inside), ((x + dx) * side + y + dy)[inside]], axis=1))
    edges = np.unique(np.concatenate(pairs), axis=0)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(edges[:, 0], minlength=n))])
    return _one_chain("walk on a grid", indptr, edges[:, 1].copy(), np.arange(n) == 0, np.array([n // 2]))


def _one_chain(
    name: str, indptr: NDArray[np.int64], indices: NDArray[np.int64], goal: NDArray[np.bool_], initial: NDArray[np.int64]
) -> float:
    values = random_values(indptr, 1, np.random.default_rng(0))
    begin = time.perf_counter()
    product = build_product(indptr, indices, {"goal": goal}, Temporal("F", (Name("goal"),)), initial)
    built = time.perf_counter()
    result = satisfaction_probabilities(product, values)
    seconds = time.perf_counter() - begin
    print(
        f"{name}: {product.state_count} product states built in {built - begin:.2f} s, solved in "
        f"{seconds - (built - begin):.2f} s; largest error bound {result.error_bound.max():.1e}"
    )
    return seconds


if __name__ == "__main__":
    many_matrices()
    one_large_chain()
    one_large_component()
