"""The parts of an assessment file on data sets: performance, distances, detections, sweeps of a parameter."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from verifier.base.errors import unknown_name
from verifier.base.numbers import exact_text
from verifier.base.toml import Element
from verifier.perception.detections.formats import FORMATS
from verifier.robustness.assessment.definition import DataSet, DetectionFiles, Sweep
from verifier.robustness.assessment.measures import METRICS, SIMILARITIES, DatasetDistance, DistanceRule
from verifier.robustness.assessment.plan import MOST_IMAGES
from verifier.robustness.campaign.data_reader import keys_of, read_annotations, read_depth
from verifier.robustness.campaign.definition import DataFiles
from verifier.robustness.detection_metrics import COUNTS, Performance

LARGEST_COUNT = 10**15
DATA_KEYS = ("performance", "detections", "images", "features")
SOURCE_KEYS = (*DATA_KEYS, "count", "depth", "annotations")
DETECTION_KEYS = keys_of(DetectionFiles)
TARGET_KEYS = (*DATA_KEYS, "name", "circumstances", "distances", "similarities")
SWEEP_KEYS = ("name", "circumstance", "parameter", "at", "distances", "similarities", "performance")


def read_source(found: Element) -> DataSet:
    """The source data set; InputError."""
    found.table(SOURCE_KEYS)
    files = _files(found)
    for key in ("depth", "annotations"):
        if found.has(key) and files.images is None:
            raise found.at(key).fail(f"'{key}' goes with a folder of images: 'images'")
    files = replace(files, depth=read_depth(found), annotations=read_annotations(found))
    return DataSet("source", (), _performance(found), {}, files, _detections(found))


def read_target(found: Element, rules: Mapping[str, DistanceRule], names: tuple[str, ...]) -> DataSet:
    """A target data set; InputError.

    Args:
        found: the table.
        rules: the distances that the assessment declares.
        names: of its circumstances.
    """
    found.table(TARGET_KEYS, required=("name",))
    shown = tuple(_known(each, "circumstance", names) for each in found.list_at("circumstances"))
    for at, each in enumerate(found.list_at("circumstances")):
        if shown[at] in shown[:at]:
            raise each.fail(f"the circumstance '{shown[at]}' is listed twice")
    (distances,) = _distances(found, rules)
    name = found.at("name").string()
    return DataSet(name, shown, _performance(found), distances, _files(found), _detections(found))


def _given(found: Element, rule: DistanceRule, *, similarity: bool) -> DatasetDistance:
    """A number that the file gives, as what the file says it is."""
    if rule.measure == "psnr":
        if not similarity:
            raise found.fail("PSNR is no distance", "give it under 'similarities'")
        return DatasetDistance(None, found.number(0))
    if similarity and rule.measure not in SIMILARITIES:
        raise found.fail(f"{rule.name} has no similarity", "give its distance under 'distances'")
    least = -1 if similarity and rule.measure == "ssim" else 0
    value = found.number(least, 1 if similarity else None)
    most = {"ssim": 2, "cw_ssim": 1, "cosine": 2}.get(rule.measure)
    if similarity:
        return DatasetDistance.of_similarity(value)
    if most is not None and value > most:
        raise found.fail(f"expected a distance from 0 to {most}, got {found.value}")
    return DatasetDistance(value, 1 - value if rule.measure in SIMILARITIES else None)


def _performance(found: Element) -> Performance | None:
    if not found.has("performance"):
        return None
    table = found.at("performance")
    counts = {name: each.whole(0, LARGEST_COUNT) for name, each in table.entries() if name in COUNTS}
    values = {name: each.number(0, 1) for name, each in table.entries() if name not in COUNTS}
    for name in values:
        near = next((known for known in METRICS if known != name and known.casefold() == name.casefold()), None)
        if near is not None:
            raise table.at(name).fail(f"unknown metric '{name}'", f"did you mean '{near}'?")
    return table.made(lambda: Performance(values, counts))


def _detections(found: Element) -> DetectionFiles | None:
    if not found.has("detections"):
        return None
    if found.has("performance"):
        raise found.at("detections").fail("expected either 'performance' or 'detections', not both")
    table = found.at("detections").table(DETECTION_KEYS, required=DETECTION_KEYS[:3])
    iou = table.given("iou", Element.number, Fraction(1, 2), 0, 1)
    if iou == 0:
        raise table.at("iou").fail("expected an IoU above 0")
    return DetectionFiles(
        table.at("format").one_of(tuple(FORMATS)),
        table.at("annotations").string(),
        table.at("detections").string(),
        table.given("class_map", Element.string, None),
        table.given("min_score", Element.number, None),
        iou,
    )


def _files(found: Element) -> DataFiles:
    named = {key: found.given(key, Element.string, None) for key in ("images", "features")}
    count = found.given("count", Element.whole, None, 1, MOST_IMAGES)
    if count is not None and named["images"] is not None:
        raise found.at("count").fail("expected either 'images' or 'count', not both")
    return DataFiles(named["images"], named["features"], count)


def read_sweep(found: Element, rules: Mapping[str, DistanceRule], names: tuple[str, ...]) -> Sweep:
    """A sweep, as `read_target`."""
    found.table(SWEEP_KEYS, required=("name", "parameter", "at"))
    name = found.at("name").string()
    settings = [each.number() for each in found.at("at").items(least=1)]
    shown = (_known(found.at("circumstance"), "circumstance", names),) if found.has("circumstance") else ()
    distances = _distances(found, rules, len(settings))
    values: list[dict[str, Fraction]] = [{} for _ in settings]
    for metric, column in found.table_at("performance"):
        for place, each in enumerate(_column(column, len(settings))):
            values[place][metric] = each.number(0, 1)
    targets = tuple(
        DataSet(
            f"{name} at {exact_text(setting)}",
            shown,
            Performance(values[place]) if values[place] else None,
            distances[place],
        )
        for place, setting in enumerate(settings)
    )
    return found.made(lambda: Sweep(name, found.at("parameter").string(), tuple(settings), targets))


def _distances(
    found: Element, rules: Mapping[str, DistanceRule], count: int | None = None
) -> list[dict[str, DatasetDistance]]:
    """Those of each of so many settings, from lists; without a count those of one data set."""
    made: list[dict[str, DatasetDistance]] = [{} for _ in range(count or 1)]
    for key in ("distances", "similarities"):
        for name, given in found.table_at(key):
            if name not in rules:
                raise given.fail(*unknown_name("distance", name, rules))
            for own, each in zip(made, [given] if count is None else _column(given, count), strict=True):
                if name in own:
                    raise each.fail(f"{name} is given twice: as a distance and as a similarity")
                own[name] = _given(each, rules[name], similarity=key == "similarities")
    return made


def _column(found: Element, length: int) -> list[Element]:
    cells = found.items()
    if len(cells) != length:
        raise found.fail(f"expected {length} numbers, one per setting in 'at', got {len(cells)}")
    return cells


def _known(found: Element, kind: str, names: tuple[str, ...]) -> str:
    if found.string() not in names:
        raise found.fail(*unknown_name(kind, found.value, names))
    return str(found.value)
