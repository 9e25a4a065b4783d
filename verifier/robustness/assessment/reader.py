"""Assessment files (TOML): one table per system under `systems`.

    [systems.mds]
    title = "Medical Diagnosis System"
    occurrence = "independent"                     # or "exclusive"
    metrics = ["AP", "precision", "recall"]        # those the verdict is over
    samples = { use = "use.csv", source = "source.csv" }     # image, circumstance: for frequencies not stated below
    tolerance_scaling = "significance"             # or "stated": by the tolerance_scale of circumstances alone

    [[systems.mds.circumstances]]
    name = "salt and pepper"
    frequency = 0.1                                # or probability = 0.1
    source_frequency = 0
    exposure = 2
    likelihood = 3
    severity = 4
    transformation = { mutation = "salt_and_pepper", share = { low = 0.01, high = 0.05 } }

    [systems.mds.distances.cw_ssim]
    tolerance = [{ up_to = 0.25, constant = 0.01 }, { slope = 1 }]

    [systems.mds.distances.fid]
    measure = "frechet"
    extractor = "torchvision:inception_v3"         # of images; without one, 'features' of the data sets are read

    [systems.mds.source]
    performance = { AP = 0.34, precision = 0.564, recall = 0.51 }

    [[systems.mds.targets]]
    name = "all circumstances"
    performance = { AP = 0.246, precision = 0.498, recall = 0.384 }
    distances = { cw_ssim = 0.154 }                # or similarities = { cw_ssim = 0.846 }

A detector that is run here, on source images with annotations and depth, and follow-up images
that are made (`verify assess --make`), stand in place of numbers:

    [systems.mds.source]
    images = "images"
    annotations = { format = "coco", file = "truth.json" }   # or "kitti_object", "table"
    depth = { folder = "depth", densify = "linear" }         # or { constant_m = 30 }; for haze and defocus
    [systems.mds.follow_up]
    size = 500

Reading executes nothing. A complaint names the file, the line and the dotted key.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from verifier.base.errors import unknown_name
from verifier.base.numbers import exact_text
from verifier.base.toml import Element, read_toml
from verifier.robustness.assessment.circumstances import Circumstance, Risk
from verifier.robustness.assessment.definition import Assessment, DataSet, DetectionFiles, Sweep
from verifier.robustness.assessment.degradation_reader import read_degradation, read_transformation
from verifier.robustness.assessment.measures import (
    MEASURES,
    METRICS,
    SIMILARITIES,
    DatasetDistance,
    DistanceRule,
    Piece,
    Tolerance,
)
from verifier.robustness.campaign.data_reader import (
    keys_of,
    read_annotations,
    read_depth,
    read_detector,
    read_record,
    values_of,
)
from verifier.robustness.campaign.definition import DataFiles
from verifier.robustness.detection_metrics import COUNTS, Performance

LARGEST_COUNT = 10**15
DATA_KEYS = ("performance", "detections", "images", "features")
SOURCE_KEYS = (*DATA_KEYS, "count", "depth", "annotations")
TARGET_KEYS = (*DATA_KEYS, "name", "circumstances", "distances", "similarities")
SWEEP_KEYS = ("name", "circumstance", "parameter", "at", "distances", "similarities", "performance")


def read_source(element: Element) -> DataSet:
    """The source data set; InputError."""
    element.table(SOURCE_KEYS)
    files = _files(element)
    for key in ("depth", "annotations"):
        if element.has(key) and files.images is None:
            raise element.at(key).fail(f"'{key}' goes with a folder of images: 'images'")
    files = replace(files, depth=read_depth(element), annotations=read_annotations(element))
    return DataSet("source", (), _performance(element), {}, files, _detections(element))


def read_target(table: Element, rules: Mapping[str, DistanceRule], names: tuple[str, ...]) -> DataSet:
    """A target data set; InputError.

    Args:
        table: the table.
        rules: the distances that the assessment declares.
        names: of its circumstances.
    """
    table.table(TARGET_KEYS, required=("name",))
    shown = tuple(_known(element, "circumstance", names) for element in table.list_at("circumstances"))
    for at, element in enumerate(table.list_at("circumstances")):
        if shown[at] in shown[:at]:
            raise element.fail(f"the circumstance '{shown[at]}' is listed twice")
    (distances,) = _distances(table, rules)
    name = table.at("name").string()
    return DataSet(name, shown, _performance(table), distances, _files(table), _detections(table))


def _given(element: Element, rule: DistanceRule, *, similarity: bool) -> DatasetDistance:
    """A number that the file gives, as what the file says it is."""
    if rule.measure == "psnr":
        if not similarity:
            raise element.fail("PSNR is no distance", "give it under 'similarities'")
        return DatasetDistance(None, element.number(0))
    if similarity and rule.measure not in SIMILARITIES:
        raise element.fail(f"{rule.name} has no similarity", "give its distance under 'distances'")
    least = -1 if similarity and rule.measure == "ssim" else 0
    value = element.number(least, 1 if similarity else None)
    most = {"ssim": 2, "cw_ssim": 1, "cosine": 2}.get(rule.measure)
    if similarity:
        return DatasetDistance.of_similarity(value)
    if most is not None and value > most:
        raise element.fail(f"expected a distance from 0 to {most}, got {element.value}")
    return DatasetDistance(value, 1 - value if rule.measure in SIMILARITIES else None)


def _performance(element: Element) -> Performance | None:
    if not element.has("performance"):
        return None
    table = element.at("performance")
    counts = {name: element.whole(0, LARGEST_COUNT) for name, element in table.entries() if name in COUNTS}
    values = {name: element.number(0, 1) for name, element in table.entries() if name not in COUNTS}
    for name in values:
        near = next((known for known in METRICS if known != name and known.casefold() == name.casefold()), None)
        if near is not None:
            raise table.at(name).fail(f"unknown metric '{name}'", f"did you mean '{near}'?")
    return table.made(lambda: Performance(values, counts))


def _detections(element: Element) -> DetectionFiles | None:
    if not element.has("detections"):
        return None
    if element.has("performance"):
        raise element.at("detections").fail("expected either 'performance' or 'detections', not both")
    return read_record(element.at("detections"), DetectionFiles)


def _files(element: Element) -> DataFiles:
    files = DataFiles(**values_of(element, DataFiles, "depth", "annotations"))
    if files.count is not None and files.images is not None:
        raise element.at("count").fail("expected either 'images' or 'count', not both")
    return files


def read_sweep(table: Element, rules: Mapping[str, DistanceRule], names: tuple[str, ...]) -> Sweep:
    """A sweep, as `read_target`."""
    table.table(SWEEP_KEYS, required=("name", "parameter", "at"))
    name = table.at("name").string()
    settings = [element.number() for element in table.at("at").items(least=1)]
    shown = (_known(table.at("circumstance"), "circumstance", names),) if table.has("circumstance") else ()
    distances = _distances(table, rules, len(settings))
    values: list[dict[str, Fraction]] = [{} for _ in settings]
    for metric, column in table.table_at("performance"):
        for place, element in enumerate(_column(column, len(settings))):
            values[place][metric] = element.number(0, 1)
    targets = tuple(
        DataSet(
            f"{name} at {exact_text(setting)}",
            shown,
            Performance(values[place]) if values[place] else None,
            distances[place],
        )
        for place, setting in enumerate(settings)
    )
    return table.made(lambda: Sweep(name, table.at("parameter").string(), tuple(settings), targets))


def _distances(
    table: Element, rules: Mapping[str, DistanceRule], count: int | None = None
) -> list[dict[str, DatasetDistance]]:
    """Those of each of so many settings, from lists; without a count those of one data set."""
    made: list[dict[str, DatasetDistance]] = [{} for _ in range(count or 1)]
    for key in ("distances", "similarities"):
        for name, given in table.table_at(key):
            if name not in rules:
                raise given.fail(*unknown_name("distance", name, rules))
            for own, element in zip(made, [given] if count is None else _column(given, count), strict=True):
                if name in own:
                    raise element.fail(f"{name} is given twice: as a distance and as a similarity")
                own[name] = _given(element, rules[name], similarity=key == "similarities")
    return made


def _column(element: Element, length: int) -> list[Element]:
    cells = element.items()
    if len(cells) != length:
        raise element.fail(f"expected {length} numbers, one per setting in 'at', got {len(cells)}")
    return cells


def _known(element: Element, kind: str, names: tuple[str, ...]) -> str:
    if element.string() not in names:
        raise element.fail(*unknown_name(kind, element.value, names))
    return str(element.value)


SYSTEM_KEYS = (*keys_of(Assessment, "key", "rules"), "distances")
RISK_KEYS = keys_of(Risk)
RULE_KEYS = keys_of(DistanceRule, "name")
CIRCUMSTANCE_KEYS = (
    *keys_of(Circumstance, "measure", "risk", "counted", "source_counted"), "probability", *RISK_KEYS
)  # fmt: skip


@dataclass(frozen=True)
class AssessmentFile:
    """What a file holds, its name as given and the SHA-256 of its bytes."""

    name: str
    sha256: str
    title: str
    assessments: tuple[Assessment, ...]


def read_assessment(path: str | Path) -> AssessmentFile:
    """Read an assessment file.

    Raises:
        InputError: naming the file, the line and the dotted key of the first thing that is wrong.
    """
    top = read_toml(path)
    top.table(("title", "systems"), required=("systems",))
    systems = list(top.at("systems").entries())
    if not systems:
        raise top.at("systems").fail("expected at least one system")
    title = top.given("title", Element.string, Path(path).stem)
    return AssessmentFile(str(path), top.sha256, title, tuple(_assessment(key, element) for key, element in systems))


def _assessment(key: str, element: Element) -> Assessment:
    element.table(SYSTEM_KEYS)
    rules = {name: _rule(name, element) for name, element in element.table_at("distances")}
    circumstances = tuple(_circumstance(element) for element in element.list_at("circumstances"))
    _refuse_twice(element.list_at("circumstances"))
    names = tuple(circumstance.name for circumstance in circumstances)
    source = element.given("source", read_source, DataSet("source"))
    detector = element.given("detector", read_detector, None)
    if detector is not None and source.files.annotations is None:
        raise element.at("detector").fail("a detector that is run needs the 'annotations' of the source images")
    if detector is not None and (source.performance is not None or source.detections is not None):
        raise element.at("detector").fail(
            "expected either the performance on the source, or a detector to measure it"
        )
    targets = tuple(read_target(element, rules, names) for element in element.list_at("targets"))
    _refuse_twice(element.list_at("targets"))
    sweeps = tuple(read_sweep(element, rules, names) for element in element.list_at("sweeps"))
    metrics = tuple(element.string() for element in element.list_at("metrics"))
    if not metrics and source.performance is not None:
        metrics = tuple(source.performance.values)
    return read_record(
        element,
        Assessment,
        SYSTEM_KEYS,
        key=key,
        title=element.given("title", Element.string, key),
        circumstances=circumstances,
        metrics=metrics,
        rules=rules,
        source=source,
        targets=targets,
        sweeps=sweeps,
        degradation=element.given("degradation", read_degradation, None),
        detector=detector,
        samples=element.given("samples", _samples, {}),
    )


def _samples(element: Element) -> dict[str, str]:
    element.table(("use", "source"))
    return {name: element.string() for name, element in element.entries()}


def _circumstance(element: Element) -> Circumstance:
    element.table(CIRCUMSTANCE_KEYS, required=("name",))
    if element.has("probability") and element.has("frequency"):
        raise element.at("frequency").fail("expected either 'probability' or 'frequency', not both")
    stated = "probability" if element.has("probability") else "frequency"
    factors = [key for key in RISK_KEYS if element.has(key)]
    if factors and len(factors) < 3:
        raise element.fail("expected all of exposure, likelihood and severity, or none")
    return read_record(
        element,
        Circumstance,
        CIRCUMSTANCE_KEYS,
        measure="probability" if stated == "probability" else "relative frequency",
        frequency=element.given(stated, Element.number, None, 0, 1),
        risk=Risk(**values_of(element, Risk)) if factors else None,
        transformation=element.given("transformation", read_transformation, None),
    )


def _rule(name: str, element: Element) -> DistanceRule:
    element.table(RULE_KEYS)
    if not element.has("measure") and name not in MEASURES:
        raise element.fail("missing key 'measure'", f"one of {', '.join(MEASURES)}")
    measure = element.given("measure", Element.one_of, name, MEASURES)
    tolerance = element.given("tolerance", _tolerance, None)
    if element.has("level") and measure != "cw_ssim":
        raise element.at("level").fail("'level' goes with cw_ssim")
    return read_record(element, DistanceRule, RULE_KEYS, name=name, measure=measure, tolerance=tolerance)


def _tolerance(tolerance: Element) -> Tolerance:
    if not isinstance(tolerance.value, list):
        constant = tolerance.number(0)
        return Tolerance((Piece(constant=constant),))
    pieces = []
    for element in tolerance.items(least=1):
        pieces.append(read_record(element, Piece))
        if not element.has("slope") and not element.has("constant"):
            raise element.fail("expected 'slope', 'constant' or both")
    return tolerance.made(lambda: Tolerance(tuple(pieces)))


def _refuse_twice(named: list[Element]) -> None:
    names = [element.at("name").value for element in named]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise named[number].at("name").fail(f"the name '{name}' is taken")
