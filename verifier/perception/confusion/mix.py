"""Reweighting by a further variable: rates for a world that is not mixed as the data are.

Matrices that are counted by a variable (occlusion, light, weather) hold rates r_v for each of its bins v. Summed over
them, a column mixes the r_v by how many items each bin happens to have. `Mix` states the weights instead: the rate of
a column is sum_v w_v r_v, with w the same for every column. Weights may be bounded: then the rate lies between the
least and the greatest such sum over all w within the bounds that add up to 1.

    variable = "light"
    [weights]
    day = 0.7               # stated
    night = [0.2, 0.3]      # bounded

Bounds of rates. With r_v within [l_v, u_v] the least sum is that of sum_v w_v l_v over the polytope of weights: all
weights at their lower ends, and what is missing to 1 given to the bins with the least l_v first (a fractional
knapsack, so the greedy choice is optimal); the greatest likewise. Where all [l_v, u_v] hold at once with some
confidence, so do the results, whatever the weights; so the chances of every bin count, also those with weight 0.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import UsageError, nearest_name, unknown_name
from verifier.base.toml import read_toml
from verifier.perception.confusion.bins import Variable
from verifier.perception.confusion.counts import ConfusionCounts, Sequences
from verifier.perception.confusion.matrices import LARGEST_COUNT, ConfusionMatrices, exact_rates

BILLION = 10**9


@dataclass(frozen=True)
class Mix:
    """Weights of the bins of a further variable.

    Attributes:
        names: its bins, in order.
        least, most: bounds on the weight of each bin; equal where it is stated.
        file, sha256: where it was read; empty where it was not read from a file.
    """

    variable: str
    names: tuple[str, ...]
    least: tuple[Fraction, ...]
    most: tuple[Fraction, ...]
    file: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        if not len(self.names) == len(self.least) == len(self.most) or len(set(self.names)) != len(self.names):
            raise ValueError("every bin needs a name of its own and bounds of its weight")
        if not all(0 <= low <= high <= 1 for low, high in zip(self.least, self.most, strict=True)):
            raise ValueError("weights lie between 0 and 1, and their bounds are in order")
        if not sum(self.least) <= 1 <= sum(self.most):
            raise ValueError("no weights within the bounds add up to 1")

    @property
    def point(self) -> tuple[Fraction, ...]:
        """The weights as stated; of bounded ones the point that lies as far between all bounds, in proportion."""
        if not self.bounded:
            return self.least
        low, high = sum(self.least, Fraction(0)), sum(self.most, Fraction(0))
        part = (1 - low) / (high - low)
        return tuple(a + part * (b - a) for a, b in zip(self.least, self.most, strict=True))

    @property
    def bounded(self) -> bool:
        """Whether some weight is bounded rather than stated."""
        return self.least != self.most

    def __str__(self) -> str:
        """For people: `light: day 0.7, night 0.2 to 0.3`."""
        weights = [
            f"{name} {float(low):g}" + ("" if low == high else f" to {float(high):g}")
            for name, low, high in zip(self.names, self.least, self.most, strict=True)
        ]
        return f"{self.variable}: {', '.join(weights)}"

    def document(self) -> dict[str, object]:
        """The mix as JSON values: each weight as the decimal that was written, or as two."""
        return {
            "variable": self.variable,
            "name": Path(self.file).name,
            "sha256": self.sha256,
            "weights": {
                name: float(low) if low == high else [float(low), float(high)]
                for name, low, high in zip(self.names, self.least, self.most, strict=True)
            },
        }


def read_mix(path: str | Path, variables: Sequence[Variable]) -> Mix:
    """Read the weights of one of `variables`.

    Raises:
        InputError: with file, line and key: an unknown variable or bin, a bin without a weight, a weight that is no
            number from 0 to 1 and no two such in order, or weights that cannot add up to 1.
    """
    top = read_toml(path).table(("variable", "weights"), ("variable", "weights"))
    known = {variable.name: variable for variable in variables}
    name = top.at("variable")
    if not isinstance(name.value, str) or name.value not in known:
        message, hint = unknown_name("variable of the matrices", str(name.value), known)
        alone = "the matrices are counted by distance alone: count them with --by NAME=BINS"
        raise name.fail(message, hint if known else alone)
    variable = known[name.value]
    bins = tuple(variable.bin_text(at) for at in range(variable.count))
    weights = top.at("weights")
    shares: dict[str, tuple[Fraction, Fraction]] = {}
    for key, entry in weights.entries():
        if key not in bins:
            nearest = nearest_name(key, bins)
            hint = f"did you mean '{nearest}'?" if nearest else f"its bins are: {', '.join(bins)}"
            raise entry.fail(f"'{variable.name}' has no bin '{key}'", hint)
        shares[key] = entry.share()
    for text in bins:
        if text not in shares:
            raise weights.fail(
                f"no weight for the bin '{text}' of '{variable.name}'", f"write {text} = 0 to leave it out"
            )
    least, most = zip(*(shares[name] for name in bins), strict=True)
    if not sum(least) <= 1 <= sum(most):
        total = f"{float(sum(least)):g}" if least == most else f"{float(sum(least)):g} to {float(sum(most)):g}"
        raise weights.fail(f"the weights must add up to 1, and they add up to {total}")
    return Mix(variable.name, bins, tuple(least), tuple(most), str(path), top.sha256)


@dataclass(frozen=True, eq=False)
class MixedMatrices:
    """Matrices by the bins of a variable, to be weighed.

    Attributes:
        strata: the matrices of each bin of its variable.
        sequences: the counts of each sequence behind them; None where the file has none.
    """

    mix: Mix
    strata: tuple[ConfusionMatrices, ...]
    sequences: tuple[Sequences, ...] | None

    @classmethod
    def of(
        cls, counts: ConfusionCounts, mix: Mix, where: Mapping[str, str], kept: Collection[str] = ()
    ) -> MixedMatrices:
        """The strata of a file; `where` and `kept` say what becomes of the other variables, as for
        `ConfusionCounts.matrices`.

        Raises:
            UsageError: as there, or they name the variable that is weighed.
        """
        if mix.variable in kept:
            raise UsageError(f"--mix weighs the bins of '{mix.variable}', by which the model says where objects are")
        if mix.variable in where:
            raise UsageError(
                f"--where chooses a bin of '{mix.variable}', whose bins --mix weighs: leave one of them out"
            )
        chosen = [{**where, mix.variable: name} for name in mix.names]
        sequences = [own for entry in chosen if (own := counts.by_sequence(entry, kept)) is not None]
        return cls(mix, tuple(counts.matrices(entry, kept) for entry in chosen), tuple(sequences) or None)

    def canonical(self) -> MixedMatrices:
        """The same over all distance bins."""
        sequences = None if self.sequences is None else tuple(sequence.canonical() for sequence in self.sequences)
        return replace(self, strata=tuple(matrices.canonical() for matrices in self.strata), sequences=sequences)

    def matrices(self) -> ConfusionMatrices:
        """Matrices with the mixed rates at the point `Mix.point`, with counts in whatever unit makes them exact.

        A column that would need more than 2**53 units is rounded to billionths. One without items in a stratum that
        has a weight is without items.
        """
        rates = mixed_rates(self.strata, self.mix.point)
        counts = np.zeros(rates.shape, dtype=np.int64)
        for at_bin, true in np.ndindex(rates.shape[0], rates.shape[2]):
            column = rates[at_bin, :, true].tolist()
            if isinstance(column[0], Fraction):
                counts[at_bin, :, true] = _in_units(column)
        metadata = dict(self.strata[0].metadata)
        if chosen := {name: text for name, text in metadata.pop("where", {}).items() if name != self.mix.variable}:
            metadata["where"] = chosen
        return replace(self.strata[0], counts=counts, metadata=metadata)


def _in_units(rates: Sequence[Fraction]) -> list[int]:
    """Whole numbers in proportion to rates that sum to 1."""
    unit = math.lcm(*(rate.denominator for rate in rates))
    if unit <= LARGEST_COUNT:
        return [int(rate * unit) for rate in rates]
    whole = [math.floor(rate * BILLION) for rate in rates]
    most = sorted(range(len(rates)), key=lambda at: whole[at] - rates[at] * BILLION)
    for at in most[: BILLION - sum(whole)]:
        whole[at] += 1
    return whole


def mixed_rates(matrices: Sequence[ConfusionMatrices], weights: Sequence[Fraction]) -> NDArray[np.object_]:
    """(bins, predicted, true) fractions: the rates of the strata, weighted.

    A column without items in a stratum has no rate (NaN) unless the stratum has weight 0.
    """
    pairs = zip(matrices, weights, strict=True)
    return np.asarray(sum(weight * exact_rates(matrix.counts) for matrix, weight in pairs if weight), dtype=object)


def mixed_ends(lower: NDArray[Any], upper: NDArray[Any], mix: Mix) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bounds on the mixed rates, whatever the weights within their bounds.

    Args:
        lower, upper: (strata, ...) whole numbers of one unit (such as billionths), bounds on each stratum's rate.
        mix: one weight for each stratum.

    Returns:
        lower and upper (...), whole numbers of the unit, rounded outwards.
    """
    least = _extreme(np.asarray(lower), mix, 1)
    most = _extreme(np.asarray(upper), mix, -1)
    return _rounded(least, math.floor), _rounded(most, math.ceil)


def _extreme(ends: NDArray[Any], mix: Mix, sign: int) -> NDArray[np.object_]:
    """The least (sign 1) or greatest (-1) weighted sum over the polytope of weights, as fractions."""
    return np.asarray((extreme_weights(ends, mix, sign) * ends).sum(axis=0), dtype=object)


def extreme_weights(ends: NDArray[Any], mix: Mix, sign: int) -> NDArray[np.object_]:
    """(strata, ...) weights with which the sum of weighted ends is least (sign 1) or greatest (-1), as fractions."""
    order = np.argsort(sign * ends, axis=0, kind="stable")
    low, high = np.array(mix.least, dtype=object), np.array(mix.most, dtype=object)
    weights = np.empty(ends.shape, dtype=object)
    rest: Any = 1 - sum(mix.least, Fraction(0))
    for place in order:
        more = np.minimum(rest, high[place] - low[place])
        np.put_along_axis(weights, place[None], np.asarray(low[place] + more, dtype=object)[None], axis=0)
        rest = rest - more
    return weights


def _rounded(values: NDArray[np.object_], rounding: Any) -> NDArray[np.int64]:
    return np.array([rounding(number) for number in values.ravel()], dtype=np.int64).reshape(values.shape)
