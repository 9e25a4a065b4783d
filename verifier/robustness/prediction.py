"""Predicting what a contextual mutator does to a detector from what simple ones do: defocus from blur, haze from fog
without depth.

Pezzementi et al. 2018, section IV-B. For each contextual configuration, and each detector left out in turn, a
non-negative least-squares model is fitted on the other detectors: normalised ADR under the configuration = sum of
weights times normalised ADR under each configuration of the simple mutator. The detector left out is then predicted.

How good that is: R^2 of each detector over the configurations, 1 - sum (observed - predicted)^2 / sum (observed -
mean)^2, which is negative where the mean of the detector would have been the better prediction; pooled: the same over
all detectors and configurations, about the one mean of all.

The **identity feature** is the baseline itself, 1 for every detector: "no blur" beside the blurs. It is no intercept
to be centred, but one more configuration whose weight may not be negative. A depth-varying blur leaves parts of an
image sharp, so without it the model has no way to say so.

An ADR that was not measured (NaN) under a contextual configuration is predicted by the model of all other detectors.

**Prediction intervals** are jackknife+ (Barber, Candes, Ramdas and Tibshirani 2021, Annals of Statistics 49): of n
other detectors each is left out in turn; its residual R_i and the prediction p_i without it give p_i - R_i and
p_i + R_i. The interval is from the floor(alpha (n + 1))-th smallest of the former to the
ceil((1 - alpha)(n + 1))-th smallest of the latter, and not defined where n is too small. If detectors are
exchangeable it holds the value with probability 1 - 2 alpha at least, and about 1 - alpha in practice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from verifier.base.arrays import Floats, Mask
from verifier.base.errors import InputError, UsageError, unknown_error

IDENTITY = "identity"
"""Name of the feature that is the baseline."""


@dataclass(frozen=True, eq=False)
class AdrTable:
    """ADR of d detectors under c conditions.

    Attributes:
        detectors: (d) names.
        baseline: (d,) ADR on the images as they were taken, above 0.
        conditions: (c) names.
        adr: (c, d) in [0, 1]; NaN where it was not measured.

    Raises:
        InputError: a detector with a baseline of 0: there is nothing to normalise by.
        ValueError: shapes, names or values that are none.
    """

    detectors: tuple[str, ...]
    baseline: Floats
    conditions: tuple[str, ...]
    adr: Floats

    def __post_init__(self) -> None:
        for name, shape in (
            ("baseline", (len(self.detectors),)),
            ("adr", (len(self.conditions), len(self.detectors))),
        ):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
            if array.shape != shape:
                raise ValueError(f"{name} has shape {array.shape}, expected {shape}")
            if not (((array >= 0) & (array <= 1)) | (np.isnan(array) & (name == "adr"))).all():
                raise ValueError(f"{name}: an average detection rate lies in [0, 1]")
        for names in (self.detectors, self.conditions):
            if len(set(names)) != len(names):
                raise ValueError("a detector or a condition occurs twice")
        if (self.baseline == 0).any():
            name = self.detectors[int(self.baseline.argmin())]
            raise InputError(f"the baseline of '{name}' is 0, so that nothing can be normalised by it")

    @classmethod
    def of(cls, rates: Mapping[str, Mapping[str, float]], baseline: str = "baseline") -> AdrTable:
        """From {detector: {condition: ADR}}, one of the conditions being the baseline.

        Raises:
            UsageError: a detector has other conditions than the first.
        """
        detectors = tuple(rates)
        names = tuple(rates[detectors[0]]) if detectors else ()
        for name in detectors:
            if set(rates[name]) != set(names) or baseline not in rates[name]:
                raise UsageError(f"'{name}' has other conditions than '{detectors[0]}', or no '{baseline}'")
        conditions = tuple(name for name in names if name != baseline)
        adr: ArrayLike = [[rates[name][condition] for name in detectors] for condition in conditions]
        table = np.array(adr, dtype=np.float64).reshape(len(conditions), len(detectors))
        return cls(detectors, np.array([rates[name][baseline] for name in detectors]), conditions, table)

    def with_baseline(self, detector: str, adr: float) -> AdrTable:
        """The same table with another baseline for one detector: where a printed one is known to be wrong.

        Raises:
            UsageError: there is no such detector.
        """
        if detector not in self.detectors:
            raise unknown_error("detector", detector, self.detectors)
        changed = np.array(self.baseline)
        changed[self.detectors.index(detector)] = adr
        return replace(self, baseline=changed)

    def normalised(self, conditions: Sequence[str]) -> Floats:
        """(k, d) ADR / baseline under the conditions named.

        Raises:
            UsageError: there is no such condition.
        """
        for name in conditions:
            if name not in self.conditions:
                raise unknown_error("condition", name, self.conditions)
        rows = [self.conditions.index(name) for name in conditions]
        return np.asarray(self.adr[rows] / self.baseline)


@dataclass(frozen=True, eq=False)
class Prediction:
    """d detectors, each predicted by a model of the others, under t contextual configurations.

    Attributes:
        detectors: (d) names.
        targets: (t) the contextual configurations.
        features: (f) the simple configurations, `IDENTITY` first where it is used.
        observed: (t, d) normalised ADR; NaN where it was not measured.
        predicted: (t, d)
        lower, upper: (t, d) of the prediction interval; NaN where it is not defined.
        weights: (d, t, f) of the model without detector d, for target t.
        weights_of_all: (t, f) of the model of all detectors (the paper's figure 8).
        unique: (d, t) whether no other weights fit as well. Where some do, the prediction is one of several.
    """

    detectors: tuple[str, ...]
    targets: tuple[str, ...]
    features: tuple[str, ...]
    observed: Floats
    predicted: Floats
    lower: Floats
    upper: Floats
    weights: Floats
    weights_of_all: Floats
    unique: Mask

    @property
    def r_squared(self) -> dict[str, float]:
        """R^2 of each detector over the targets."""
        columns = zip(self.detectors, self.observed.T, self.predicted.T, strict=True)
        return {name: r_squared(observed, predicted) for name, observed, predicted in columns}

    @property
    def pooled_r_squared(self) -> float:
        """R^2 over all detectors and targets."""
        return r_squared(self.observed.reshape(-1), self.predicted.reshape(-1))


def predict(
    table: AdrTable, targets: Sequence[str], simple: Sequence[str], identity: bool = True, confidence: float = 0.8
) -> Prediction:
    """Leave each detector out, fit on the others, predict it.

    Args:
        table: ADR of all detectors under all conditions.
        targets: the contextual configurations.
        simple: configurations of the corresponding simple mutator.
        identity: whether the baseline is a feature, see above.
        confidence: 1 - alpha of the prediction intervals.

    Raises:
        UsageError: there is no such condition, no target, no feature, a condition named twice, an unknown ADR under a
            simple configuration, or a target that no other detector was measured under.
    """
    names = tuple(simple)
    if not targets or not (names or identity) or len({*names, *targets}) != len(names) + len(targets):
        raise UsageError("expected targets and features, each named once")
    if len(table.detectors) < 2:
        raise UsageError("leaving a detector out needs another one to learn from")
    observed = table.normalised(targets)
    columns = table.normalised(names).T
    if identity:
        columns = np.column_stack([np.ones(len(table.detectors)), columns])
    if np.isnan(columns).any():
        row, column = np.argwhere(np.isnan(columns))[0].tolist()
        name = names[column - identity]
        raise UsageError(f"{name}: no ADR of {table.detectors[row]}, which the simple mutations must all have")
    shape = (len(table.detectors), len(targets), columns.shape[1])
    weights, unique = np.zeros(shape), np.zeros(shape[:2], dtype=np.bool_)
    ends = np.full((2, shape[1], shape[0]), np.nan)
    known = ~np.isnan(observed)
    for left_out in range(shape[0]):
        for target in range(shape[1]):
            others = np.flatnonzero(known[target] & (np.arange(shape[0]) != left_out))
            if not len(others):
                raise UsageError(f"{targets[target]}: no detector but {table.detectors[left_out]} to learn from")
            fitted = _fit(columns[others], observed[target, others])
            weights[left_out, target], unique[left_out, target] = fitted
            of_others = columns[others], observed[target, others]
            ends[:, target, left_out] = jackknife_plus(*of_others, columns[left_out], confidence)
    return Prediction(
        table.detectors,
        tuple(targets),
        ((IDENTITY,) if identity else ()) + names,
        observed,
        np.einsum("dtf,df->td", weights, columns),
        ends[0],
        ends[1],
        weights,
        np.array([_fit(columns[has], row[has])[0] for row, has in zip(observed, known, strict=True)]),
        unique,
    )


def jackknife_plus(features: Floats, values: Floats, at: Floats, confidence: float) -> tuple[float, float]:
    """The prediction interval at the features `at` (f,), from `features` (n, f) and `values` (n,); NaN where n is
    too small for the confidence."""
    count = len(values)
    place = math.ceil(Fraction(repr(confidence)) * (count + 1))
    if count < 2 or place > count:
        return math.nan, math.nan
    predicted, residual = np.zeros(count), np.zeros(count)
    for number in range(count):
        rest = np.arange(count) != number
        weights = _fit(features[rest], values[rest])[0]
        predicted[number], residual[number] = at @ weights, abs(values[number] - features[number] @ weights)
    return float(np.sort(predicted - residual)[count - place]), float(np.sort(predicted + residual)[place - 1])


def r_squared(observed: Floats, predicted: Floats) -> float:
    """1 - sum (observed - predicted)^2 / sum (observed - mean)^2 of (n,) values, those not observed (NaN) left out;
    NaN where all are equal."""
    known = ~np.isnan(observed)
    observed, predicted = observed[known], predicted[known]
    if (observed == observed[:1]).all():
        return math.nan
    spread = float(np.square(observed - observed.mean()).sum())
    return 1 - float(np.square(observed - predicted).sum()) / spread


def _fit(features: Floats, target: Floats) -> tuple[Floats, bool]:
    """Weights (f,) >= 0 of the least squared error (Lawson and Hanson 1974), and whether they are the only ones.

    The fitted values are always unique, and so is the gradient A^T (b - A x); weights can be positive only where it
    is 0. So the weights are unique when those columns are linearly independent.
    """
    from scipy.optimize import nnls

    weights, _ = nnls(features, target)
    gradient = features.T @ (target - features @ weights)
    scale = np.linalg.norm(features, axis=0) * max(float(np.linalg.norm(target)), 1e-300)
    free = features[:, np.abs(gradient) <= 1e-9 * scale]
    return weights, bool(np.linalg.matrix_rank(free) == free.shape[1])
