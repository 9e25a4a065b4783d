"""What `verify predict` finds: contextual mutations predicted from simple ones, detector by detector (Figures 7 and 8
of Pezzementi et al. 2018), and what nobody measured predicted by the model of all other detectors."""

import contextlib
import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any, ClassVar

import numpy as np

from verifier.base.documents import InputFile, Magnitude, Share, read_document
from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import csv_rows, json_of, read_text
from verifier.base.libraries import own_versions
from verifier.base.numbers import fixed, level_text
from verifier.base.options import pair
from verifier.base.result import Result, plain, recorded
from verifier.closedloop.comparison import BASELINE
from verifier.robustness.prediction import AdrTable, Prediction, predict
from verifier.robustness.rates import AdrResult, DocumentHead
from verifier.robustness.settings import PredictSettings

USUAL = ("defocus=gaussian_blur", "haze=alpha_blend")
"""The pairs of the paper."""


@dataclass(frozen=True)
class PredictedRate:
    """Normalised ADR of a detector under a contextual mutation, predicted by the model of all others.

    Attributes:
        observed: None where it was not measured: the prediction is all that is known.
        interval: None where too few detectors are known for the confidence.
        unique: whether no other weights fit as well; where some do, the prediction is one of several.
    """

    target: str
    detector: str
    observed: Magnitude | None
    predicted: Magnitude
    interval: tuple[float, float] | None
    unique: bool


@dataclass(frozen=True)
class PairModel:
    """A family of contextual mutations predicted from a family of simple ones.

    Attributes:
        features: the simple mutations, `identity` first where it is used.
        weights: (targets) (features) of the model of all detectors.
        r_squared: detector -> R^2 over the targets; None where nothing varies or was measured.
        pooled_r_squared: over all detectors and targets.
    """

    target: str
    simple: str
    targets: tuple[str, ...]
    features: tuple[str, ...]
    weights: tuple[tuple[Magnitude, ...], ...]
    r_squared: Mapping[str, float | None]
    pooled_r_squared: float | None
    predictions: tuple[PredictedRate, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class PredictResult(DocumentHead, Result):
    """Everything that `verify predict` finds."""

    schema: ClassVar[str] = "verifier.predict"
    version: ClassVar[int] = 1
    baseline: Mapping[str, Share]
    models: tuple[PairModel, ...]

    TOLD = "verifier.telling.robustness:predict_table"
    DRAWN = "verifier.telling.figures.robustness:prediction_figure"
    FURTHER = ("plot_weights",)
    NAMED_BY = ("target", "detector")
    METRICS = ("predicted", "observed")

    @property
    def headline(self) -> str:
        """The pairs, with the pooled R^2 of each."""
        told = (f"{model.target} from {model.simple}, R^2 {r_squared_text(model)}" for model in self.models)
        return f"{self.title}: {'; '.join(told)}"

    def rows(self) -> Iterator[dict[str, Any]]:
        """One flat row per prediction."""
        for model in self.models:
            for prediction in model.predictions:
                lower, upper = prediction.interval or ("", "")
                told = {
                    "predicted": prediction.predicted,
                    "lower": lower,
                    "upper": upper,
                    "unique": int(prediction.unique),
                }
                observed = "" if prediction.observed is None else prediction.observed
                yield {"target": prediction.target, "detector": prediction.detector, "observed": observed} | told


def r_squared_text(model: PairModel) -> str:
    """The pooled R^2 of a model."""
    return "not defined" if model.pooled_r_squared is None else fixed(model.pooled_r_squared, 3)


def predict_result(settings: PredictSettings) -> PredictResult:
    """Everything that `verify predict` finds.

    Raises:
        UsageError, InputError: a file that cannot be read, choices that do not fit it.
    """
    rates, source = _rates(settings.rates)
    with _named(settings.rates):
        table = AdrTable.of(rates, BASELINE)
    for text in settings.baseline:
        name, given = pair("--baseline", "DETECTOR=ADR", text)
        try:
            value = float(given)
        except ValueError:
            value = math.nan
        if not 0 < value <= 1:
            raise UsageError(f"--baseline: expected an ADR above 0, at most 1, got {shown(given)}")
        table = table.with_baseline(name, value)
    models, remarks = [], []
    chosen = settings.pair or USUAL
    for text in chosen:
        target, simple = pair("--pair", "TARGET=SIMPLE", text)
        targets, features = (
            [condition for condition in table.conditions if condition.startswith(start)] for start in (target, simple)
        )
        if not targets or not features:
            if settings.pair:
                missing = simple if targets else target
                known = ", ".join(table.conditions)
                raise UsageError(f"--pair: no condition begins with {shown(missing)}\n  hint: there are {known}")
            continue
        if both := set(targets) & set(features):
            raise UsageError(f"--pair {text}: {shown(min(both))} would be predicted from itself")
        with _named(settings.rates):
            prediction = predict(table, targets, features, settings.identity, settings.confidence)
        models.append(_model(target, simple, prediction))
        if not prediction.unique.all():
            remarks.append(
                f"{target}: with {len(prediction.features)} features and {len(table.detectors) - 1} other "
                "detectors other "
                "weights fit as well in some models; their predictions are one of several"
            )
        if np.isnan(prediction.lower).any():
            remarks.append(
                f"{target}: intervals at {settings.confidence:g} need more detectors than are known under some "
                "targets; they are not defined there"
            )
    if not models:
        message = f"nothing to predict: no conditions of {' or '.join(chosen)}"
        raise InputError(message, Place(settings.rates), "name others, --pair")
    if any(prediction.interval is not None for model in models for prediction in model.predictions):
        sure = 2 * Fraction(repr(settings.confidence)) - 1
        proven = f"with probability {float(sure):g} at least" if sure > 0 else "with no probability that is proven"
        remarks.append(
            f"{level_text(settings.confidence)} prediction intervals (jackknife+) assume exchangeable detectors, not "
            f"tested; they hold a value {proven}"
        )
    return PredictResult(
        title=f"Prediction from {source.name}",
        inputs=(source,),
        settings={"pairs": list(chosen), "baseline": list(settings.baseline)}
        | {"identity": settings.identity, "confidence": settings.confidence},
        versions=own_versions(),
        remarks=tuple(remarks),
        baseline=dict(zip(table.detectors, table.baseline.tolist(), strict=True)),
        models=tuple(models),
    )


def _model(target: str, simple: str, prediction: Prediction) -> PairModel:
    tables = prediction.observed, prediction.predicted, prediction.lower, prediction.upper, prediction.unique.T
    rows = []
    for name, *columns in zip(prediction.targets, *(table.tolist() for table in tables), strict=True):
        for detector, observed, predicted, lower, upper, unique in zip(prediction.detectors, *columns, strict=True):
            ends = None if math.isnan(lower) else (lower, upper)
            rows.append(PredictedRate(name, detector, plain(observed), predicted, ends, unique))
    shares = {name: plain(value) for name, value in prediction.r_squared.items()}
    own = {"weights": plain(prediction.weights_of_all), "r_squared": shares, "predictions": tuple(rows)}
    return recorded(PairModel, prediction, target=target, simple=simple, **own)


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """What is refused within is a fault of the rates in this file."""
    try:
        yield
    except (InputError, UsageError) as error:
        raise InputError(getattr(error, "message", str(error)), Place(path)) from None


def _rates(path: str) -> tuple[dict[str, dict[str, float]], InputFile]:
    """The rates of a file, and its record."""
    text, raw = read_text(path)
    source = InputFile.of("rates", path, hashlib.sha256(raw).hexdigest())
    if Path(path).suffix.lower() == ".csv":
        return _of_csv(text, path), source
    content = json_of(raw, path)
    if not isinstance(content, dict) or content.get("schema") != AdrResult.schema:
        raise InputError("expected a result of verify adr (.json), or a table (.csv)", Place(path))
    result = read_document(AdrResult, content, PurePath(path).name)
    rates: dict[str, dict[str, float]] = {name: {} for name in result.detectors}
    for rate in result.rates:
        if rate.condition in rates.setdefault(rate.detector, {}):
            raise InputError(f"{rate.detector} under {shown(rate.condition)} occurs twice", Place(path, path="rates"))
        rates[rate.detector][rate.condition] = math.nan if rate.adr is None else rate.adr
    for known in rates.values():
        for condition in result.conditions:
            known.setdefault(condition, math.nan)
    for name, known in rates.items():
        if math.isnan(known.get(BASELINE, math.nan)):
            raise InputError(f"no ADR of {shown(name)} under {shown(BASELINE)}", Place(path, path="rates"))
    return rates, source


def _of_csv(text: str, path: str) -> dict[str, dict[str, float]]:
    """A table with a column `condition` and one per detector."""
    rows = csv_rows(text, path)
    _, header = next(rows, (1, []))
    if len(header) < 2 or header[0] != "condition" or len(set(header)) < len(header) or not all(header):
        message = "expected the header condition,DETECTOR,... with different names"
        raise InputError(message, Place(path, 1))
    rates: dict[str, dict[str, float]] = {name: {} for name in header[1:]}
    for line, row in rows:
        place = Place(path, line)
        for name, cell in zip(header[1:], row[1:], strict=True):
            if row[0] in rates[name]:
                raise InputError(f"the condition {shown(row[0])} occurs twice", place)
            try:
                value = float(cell) if cell.strip() else math.nan
            except ValueError:
                value = -1.0
            if not (0 <= value <= 1 or (math.isnan(value) and not cell.strip() and row[0] != BASELINE)):
                message = f"{name}: expected an ADR from 0 to 1{' or an empty cell' if row[0] != BASELINE else ''}"
                raise InputError(f"{message}, got {shown(cell)}", place)
            rates[name][row[0]] = value
    if any(BASELINE not in rate for rate in rates.values()):
        raise InputError(f"no row has the condition '{BASELINE}'", Place(path))
    return rates
