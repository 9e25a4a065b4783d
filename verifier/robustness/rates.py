"""What `verify adr` finds: the average detection rate of detectors under mutations (Table IV, Figures 4 to 6 of
Pezzementi et al. 2018), each with its interval.

The published lists order the conditions: those that are called as a mutation of one, or as its folder of `verify
mutate`, stand in the order of the paper.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, ClassVar

import numpy as np

from verifier.base.documents import Count, InputFile, Magnitude, Share
from verifier.base.errors import InputError, UsageError
from verifier.base.files import named_file, named_files
from verifier.base.libraries import own_versions
from verifier.base.result import Result
from verifier.base.statistics import few_units_note
from verifier.closedloop.closed_loop_curve import standard_sensitivities
from verifier.closedloop.comparison import BASELINE
from verifier.closedloop.logs import Standardizer
from verifier.closedloop.study import sources_of
from verifier.perception.detections import Reading, read_class_map, read_detections
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.matching import MatchingPolicy
from verifier.robustness.adr import LEVELS, AdrSettings, DetectionRates, Thresholds, pick_thresholds
from verifier.robustness.detection_metrics import judged
from verifier.robustness.draws import FEWEST_UNITS, AdrInterval, adr_intervals
from verifier.robustness.mutators.batch_result import folder_name
from verifier.robustness.mutators.sweeps import PUBLISHED, Published
from verifier.robustness.settings import RatesSettings

CURVE = standard_sensitivities(101, 1e-4, 1.0)
"""False positives per baseline image at which curves have points, among them the paper's marks .001, .01 and .1."""
Ends = tuple[float, float] | None


@dataclass(frozen=True)
class RateRow:
    """A detector under a condition.

    Attributes:
        adr: None where no object is left that can be judged; `normalised`: by the detector's own baseline.
        detection_rates, false_positive_rates: at the thresholds of each level of false positives per image.
        curve_false_positives, curve_miss_rates: per image and of the objects, at the thresholds of `CURVE`.
    """

    detector: str
    condition: str
    images: Count
    objects: Count
    adr: Share | None
    normalised: Magnitude | None
    adr_interval: Ends = None
    normalised_interval: Ends = None
    detection_rates: tuple[Share, ...] = ()
    false_positive_rates: tuple[Magnitude, ...] = ()
    curve_false_positives: tuple[Magnitude, ...] = ()
    curve_miss_rates: tuple[Share, ...] = ()


@dataclass(frozen=True)
class RequiredRate:
    """Sensitivity, in false positives per baseline image, at which an object is found; None: at none (Figure 6)."""

    detector: str
    condition: str
    image: str
    object: str
    before: Magnitude | None
    after: Magnitude | None


@dataclass(frozen=True, kw_only=True)
class DocumentHead:
    """What the documents of `verify adr`, `predict` and `campaign` begin with."""

    command: tuple[str, ...] = ()
    title: str
    inputs: tuple[InputFile, ...]
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    remarks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class AdrResult(DocumentHead, Result):
    """Everything that `verify adr` finds; rows by condition, the baseline first, then by detector."""

    schema: ClassVar[str] = "verifier.adr"
    version: ClassVar[int] = 1
    detectors: tuple[str, ...]
    conditions: tuple[str, ...]
    rates: tuple[RateRow, ...]
    required: tuple[RequiredRate, ...] = field(default=(), repr=False)

    TOLD = "verifier.telling.robustness:adr_table"
    DRAWN = "verifier.telling.figures.robustness:curves_figure"
    FURTHER = ("plot_table", "plot_objects")
    NAMED_BY = ("condition", "detector")
    METRICS = ("adr", "normalised")

    @property
    def headline(self) -> str:
        """How many detectors and conditions."""
        return f"{self.title}: {len(self.detectors)} detectors, {len(self.conditions)} conditions"

    def rows(self) -> Iterator[dict[str, Any]]:
        """One flat row per condition and detector."""
        for rate in self.rates:
            ends = {"adr": rate.adr_interval, "normalised": rate.normalised_interval}
            numbers: dict[str, float | None] = {}
            for name, interval in ends.items():
                lower, upper = interval or (None, None)
                numbers |= {name: getattr(rate, name), f"{name}_lower": lower, f"{name}_upper": upper}
            told = {name: "" if value is None else value for name, value in numbers.items()}
            named = {"condition": rate.condition, "detector": rate.detector}
            yield named | {"images": rate.images, "objects": rate.objects} | told

    def required_rows(self) -> Iterator[dict[str, object]]:
        """One row per object and condition, for `--objects`; empty where it is not found at any sensitivity."""
        for rate in self.required:
            yield {name: "" if value is None else value for name, value in vars(rate).items()}


def published_order(conditions: Sequence[str]) -> list[str]:
    """The conditions, those of the papers in the order of the first list that has most of them, the others after."""
    best = max(map(_named, PUBLISHED.values()), key=lambda named: sum(condition in named for condition in conditions))
    order = {name: at for at, name in enumerate(best)}
    return sorted(conditions, key=lambda name: order.get(name, len(order)))


def published_severities(conditions: Sequence[str]) -> dict[str, str]:
    """Condition -> "mild" or "severe", of those that section 5.3 of Pezzementi et al. 2021 puts into a group."""
    known = _named(PUBLISHED["published-2021"])
    return {condition: str(known[condition].group) for condition in conditions if condition in known}


def _named(listed: Iterable[Published]) -> dict[str, Published]:
    """The mutations of a list by what their conditions can be called."""
    return {
        name: published for published in listed for name in (published.mutation.text, folder_name(published.mutation))
    }


def adr_result(settings: RatesSettings) -> AdrResult:
    """Everything that `verify adr` finds.

    Raises:
        UsageError, InputError: files that cannot be read or do not belong together, choices that do not fit.
    """
    files = named_files("--detections", settings.detections)
    sources = sources_of(files)
    if not sources:
        raise UsageError("name at least one source: --detections NAME=PATH")
    truth = dict(named_file("--annotations", text) for text in settings.annotations)
    if "" not in truth:
        raise UsageError("name the ground truth of the images as they were taken: --annotations PATH")
    for name in truth:
        if name and name not in {source.condition for source in sources}:
            raise UsageError(f"--annotations: no source has the condition {name!r}")
    reading = Reading(None if settings.class_map is None else read_class_map(settings.class_map), settings.ignore)
    options = {} if settings.frames is None else {"frames": settings.frames}
    data: dict[str, dict[str, DetectionSet]] = {}
    for source in sources:
        path = truth.get("" if source.condition == BASELINE else source.condition, truth[""])
        detections = read_detections(settings.format, path, files[source.name], reading, **options)
        data.setdefault(source.detector, {})[source.condition] = detections
    inputs = {
        (record["role"], PurePath(record["name"]).name, record["sha256"])
        for conditions in data.values()
        for detections in conditions.values()
        for record in detections.origin.get("sources", [])
        if "sha256" in record
    }
    title = f"ADR: {', '.join(data)}"
    return adr_of(data, settings, title, tuple(InputFile(*row) for row in sorted(inputs)))


def adr_of(
    data: Mapping[str, Mapping[str, DetectionSet]],
    settings: RatesSettings,
    title: str,
    inputs: tuple[InputFile, ...] = (),
) -> AdrResult:
    """The same of data in memory: by detector and condition, one of them the baseline."""
    named = dict.fromkeys(condition for sets in data.values() for condition in sets if condition != BASELINE)
    conditions = (BASELINE, *published_order(list(named)))
    levels, policy = settings.level or LEVELS, MatchingPolicy("iou_2d", settings.iou, class_aware=True)
    asked = AdrSettings(levels, policy)
    parts = [_of_detector(detector, by_condition, asked, settings) for detector, by_condition in data.items()]
    rows = sorted((row for part in parts for row in part[0]), key=lambda row: conditions.index(row.condition))
    remarks = [name for part in parts for name in part[2]]
    if settings.unit == "frame" and settings.draws:
        remarks.append("intervals draw single images; of images of one drive they are too narrow")
    record = {"levels": list(levels), "matching": policy.record()}
    record |= {name: getattr(settings, name) for name in ("draws", "seed", "confidence", "unit")}
    return AdrResult(
        title=title,
        inputs=inputs,
        settings=record,
        versions=own_versions(),
        remarks=tuple(remarks),
        detectors=tuple(data),
        conditions=conditions,
        rates=tuple(rows),
        required=tuple(rate for part in parts for rate in part[1]),
    )


def _of_detector(
    detector: str, by_condition: Mapping[str, DetectionSet], asked: AdrSettings, settings: RatesSettings
) -> tuple[list[RateRow], list[RequiredRate], list[str]]:
    """Rows, required rates and remarks."""
    baseline = by_condition[BASELINE]
    for name, detections in by_condition.items():
        if detections.frame_name != baseline.frame_name:
            raise InputError(f"{detector}: the images under {name} are not those of the baseline")
    thresholds = pick_thresholds(baseline, asked)
    both = thresholds, pick_thresholds(baseline, AdrSettings(tuple(CURVE.tolist()), asked.policy))
    intervals = _intervals(by_condition, asked, settings)
    rows, required = list[RateRow](), list[RequiredRate]()
    remarks = list(threshold_remarks(thresholds, f"{detector}: "))
    if settings.draws and not intervals:
        remarks.append(f"{detector}: no intervals, for which {FEWEST_UNITS} {settings.unit}s are needed")
    note = few_units_note(_units(baseline, settings), settings.unit) if intervals else None
    remarks += [] if note is None else [f"{detector}: ADR is {note}"]
    undefined = max((interval.undefined for interval in intervals.values()), default=0)
    if undefined:
        remarks.append(f"{detector}: up to {undefined} draws have no normalised ADR; they are left out")
    start = _row(detector, BASELINE, baseline, both, asked.policy)[1]
    if start is None or not any(start.hits):
        remarks.append(f"{detector}: nothing is found in the baseline, so there is no normalised ADR")
    for name, detections in by_condition.items():
        row, own = _row(detector, name, detections, both, asked.policy)
        if own is None:
            remarks.append(f"{detector}: under {name} no object is left that can be judged, so there is no ADR")
        elif start is not None and any(start.hits):
            row = replace(row, normalised=own.normalised(start))
        drawn = intervals.get(name)
        if drawn is not None:
            row = replace(row, adr_interval=_known(drawn.adr), normalised_interval=_known(drawn.normalised))
        rows.append(row)
        if name != BASELINE and (settings.objects or settings.plot_objects):
            required += _required(detector, name, (baseline, detections), asked.policy)
    return rows, required, remarks


def _known(ends: tuple[float, float]) -> Ends:
    return None if math.isnan(ends[0]) else ends


def threshold_remarks(thresholds: Thresholds, about: str = "") -> Iterator[str]:
    """Where the images do not tell the levels apart, or the detector reports too little to reach them."""
    if thresholds.unresolved:
        yield (
            f"{about}ADR: with {thresholds.images} source images, {len(thresholds.unresolved)} of "
            f"{len(thresholds.levels)} rates of "
            "false positives cannot be distinguished from none; all of these have the same threshold"
        )
    if thresholds.all_pass:
        yield (
            f"{about}ADR: {len(thresholds.all_pass)} of {len(thresholds.levels)} rates of false positives are not "
            "reached by "
            "all that the detector reports on the source images; every detection counts there"
        )


def _units(baseline: DetectionSet, settings: RatesSettings) -> int:
    return len(baseline.sequences) if settings.unit == "sequence" else baseline.frame_count


def _intervals(
    by_condition: Mapping[str, DetectionSet], asked: AdrSettings, settings: RatesSettings
) -> Mapping[str, AdrInterval]:
    """By condition; empty where none can be made."""
    baseline = by_condition[BASELINE]
    units = _units(baseline, settings)
    others = {name: detections for name, detections in by_condition.items() if name != BASELINE}
    if not settings.draws or units < FEWEST_UNITS:
        return {}
    rng, draws, level = np.random.default_rng(settings.seed), settings.draws, settings.confidence
    return adr_intervals(baseline, others, rng, asked, draws=draws, confidence=level, unit=settings.unit)


def _row(
    detector: str, condition: str, data: DetectionSet, both: tuple[Thresholds, Thresholds], policy: MatchingPolicy
) -> tuple[RateRow, DetectionRates | None]:
    """A row, at thresholds of the levels and of the curve, without what compares it with the baseline, and the rates
    behind it; None without an object."""
    judgement = judged(data, policy)
    if not len(judgement.hit):
        return RateRow(detector, condition, judgement.images, 0, None, None), None
    own, curve = (DetectionRates.of(judgement, thresholds) for thresholds in both)
    missed = tuple(1 - rate for rate in curve.rates)
    rates = own.rates, own.false_positive_rates, curve.false_positive_rates, missed
    return RateRow(detector, condition, judgement.images, own.objects, own.adr, None, None, None, *rates), own


def _required(
    detector: str, condition: str, both: tuple[DetectionSet, DetectionSet], policy: MatchingPolicy
) -> Iterator[RequiredRate]:
    """Of every object of the baseline, known again by its image and its id or line."""
    before, after = (judged(detections, policy) for detections in both)
    table = Standardizer.from_validation(before.false, before.images)
    keys, rates = [], []
    for detections, judgement in zip(both, (before, after), strict=True):
        objects = detections.annotations
        ids = objects.attributes.get("id", objects.line)[judgement.hit_row].tolist()
        keys.append(list(zip(judgement.hit_frame.tolist(), ids, strict=True)))
        hit = judgement.hit > -np.inf
        rate = np.where(hit, table(np.where(hit, judgement.hit, 0.0)), np.nan).tolist()
        rates.append([None if value != value else value for value in rate])
    later = dict(zip(keys[1], rates[1], strict=True))
    for key, rate in zip(keys[0], rates[0], strict=True):
        if key in later:
            name = both[0].frame_name[key[0]]
            yield RequiredRate(detector, condition, name, str(key[1]), rate, later[key])
