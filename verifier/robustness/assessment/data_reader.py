"""The parts of an assessment file on the detector under test and on data sets: performance, distances, detections,
sweeps of a parameter.

The detector under test, where `verify assess --make` runs it.

    [systems.car.detector]
    kind = "hog"                                # or "cascade", "onnx"
    class = "ped"                               # what its reports are called
    enlargement = 1.5                           # and the other settings of `HogSettings`
    lowest_score = -0.5
    false_positives_per_image = 1               # or min_score = 0.3: from where on a detection counts

    [systems.car.detector]
    kind = "onnx"
    file = "yolov8n.onnx"
    classes = ["person", "bicycle", "car"]
    class_map = "to_mine.txt"                   # which class of the annotations each of these is
    input = { size = [640, 640], resize = "letterbox_centre" }                   # as `OnnxInput`
    output = { boxes = "output0", scores = "output0", lowest_score = 0.05, transposed = true, \
score_columns = [4], box_format = "cxcywh", suppression_iou = 0.7 }              # as `OnnxOutput`

Every choice that is left out has the default of the class that is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from fractions import Fraction
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from verifier.base.errors import shown, unknown_name
from verifier.base.numbers import exact_text
from verifier.base.toml import Element
from verifier.perception.detections.depth import UNITS_PER_M
from verifier.perception.detections.distances import LARGEST_M
from verifier.perception.detections.formats import FORMATS
from verifier.robustness.assessment.definition import (
    ANNOTATION_FORMATS,
    DETECTOR_KINDS,
    AnnotationFiles,
    DataFiles,
    DataSet,
    DetectionFiles,
    DetectorChoice,
    Sweep,
)
from verifier.robustness.assessment.measures import (
    COUNTS,
    METRICS,
    SIMILARITIES,
    DatasetDistance,
    DistanceRule,
    Performance,
)
from verifier.robustness.assessment.plan import MOST_IMAGES
from verifier.robustness.detectors import CascadeSettings, HogSettings, OnnxInput, OnnxLayout, OnnxOutput
from verifier.robustness.mutators.imagefiles import METHODS, DepthSource

LARGEST_COUNT = 10**15
DATA_KEYS = ("performance", "detections", "images", "features")
SOURCE_KEYS = (*DATA_KEYS, "count", "depth", "annotations")
DEPTH_KEYS = ("folder", "constant_m", "scale", "densify")
ANNOTATION_KEYS = ("format", "file", "class_map", "distance_field", "frames")
DETECTION_KEYS = ("format", "annotations", "detections", "class_map", "min_score", "iou")
TARGET_KEYS = (*DATA_KEYS, "name", "circumstances", "distances", "similarities")
SWEEP_KEYS = ("name", "circumstance", "parameter", "at", "distances", "similarities", "performance")


def read_source(found: Element) -> DataSet:
    """The source data set; InputError."""
    found.table(SOURCE_KEYS)
    files = _files(found)
    for key in ("depth", "annotations"):
        if found.has(key) and files.images is None:
            raise found.at(key).fail(f"'{key}' goes with a folder of images: 'images'")
    files = replace(files, depth=_depth(found), annotations=_annotations(found))
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
    distances: dict[str, DatasetDistance] = {}
    for key in ("distances", "similarities"):
        for name, each in found.table_at(key):
            rule = rules[_known_key(found.at(key), name, "distance", tuple(rules))]
            if name in distances:
                raise each.fail(f"{name} is given twice: as a distance and as a similarity")
            distances[name] = _given(each, rule, similarity=key == "similarities")
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


def _depth(found: Element) -> DepthSource | None:
    if not found.has("depth"):
        return None
    table = found.at("depth").table(DEPTH_KEYS)
    if table.has("folder") == table.has("constant_m"):
        raise table.fail("expected either 'folder' or 'constant_m'")
    if table.has("constant_m"):
        for key in ("scale", "densify"):
            if table.has(key):
                raise table.at(key).fail(f"'{key}' goes with a folder of depth maps")
        depth_m = table.at("constant_m").number(0)
        if not 0 < depth_m <= LARGEST_M:
            raise table.at("constant_m").fail(f"expected metres above 0 and up to {LARGEST_M:g}")
        return DepthSource(constant_m=float(depth_m))
    scale = table.given("scale", Element.number, Fraction(UNITS_PER_M), 0)
    if scale == 0:
        raise table.at("scale").fail("expected a number above 0, got 0")
    densify = table.given("densify", Element.one_of, None, METHODS)
    return DepthSource(Path(table.at("folder").string()), None, float(scale), densify)


def _annotations(found: Element) -> AnnotationFiles | None:
    if not found.has("annotations"):
        return None
    table = found.at("annotations").table(ANNOTATION_KEYS, required=ANNOTATION_KEYS[:2])
    kind = table.at("format").one_of(ANNOTATION_FORMATS)
    for key, of in (("distance_field", "coco"), ("frames", "table")):
        if table.has(key) and kind != of:
            raise table.at(key).fail(f"'{key}' goes with the format '{of}'")
    given = {key: table.at(key).string() for key in ANNOTATION_KEYS[1:] if table.has(key)}
    return AnnotationFiles(kind, **given)


def read_sweep(found: Element, rules: Mapping[str, DistanceRule], names: tuple[str, ...]) -> Sweep:
    """A sweep, as `read_target`."""
    found.table(SWEEP_KEYS, required=("name", "parameter", "at"))
    name = found.at("name").string()
    settings = [each.number() for each in found.at("at").items(least=1)]
    shown = (_known(found.at("circumstance"), "circumstance", names),) if found.has("circumstance") else ()
    distances: list[dict[str, DatasetDistance]] = [{} for _ in settings]
    for key in ("distances", "similarities"):
        for distance, column in found.table_at(key):
            rule = rules[_known_key(found.at(key), distance, "distance", tuple(rules))]
            for place, each in enumerate(_column(column, len(settings))):
                if distance in distances[place]:
                    raise each.fail(f"{distance} is given twice: as a distance and as a similarity")
                distances[place][distance] = _given(each, rule, similarity=key == "similarities")
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


def _column(found: Element, length: int) -> list[Element]:
    cells = found.items()
    if len(cells) != length:
        raise found.fail(f"expected {length} numbers, one per setting in 'at', got {len(cells)}")
    return cells


def _known(found: Element, kind: str, names: tuple[str, ...]) -> str:
    if found.string() not in names:
        raise found.fail(*unknown_name(kind, found.value, names))
    return str(found.value)


def _known_key(table: Element, name: str, kind: str, names: tuple[str, ...]) -> str:
    if name not in names:
        raise table.at(name).fail(*unknown_name(kind, name, names))
    return name


Made = TypeVar("Made")
JUDGING_KEYS = ("kind", "class_map", "min_score", "false_positives_per_image", "iou")


def read_detector(found: Element) -> DetectorChoice:
    """The detector that a table of the file describes; InputError."""
    if not found.open_table().has("kind"):
        raise found.fail("missing key 'kind'", f"one of {', '.join(DETECTOR_KINDS)}")
    kind = found.at("kind").one_of(DETECTOR_KINDS)
    iou = found.given("iou", Element.number, Fraction(1, 2), 0, 1)
    least = found.given("min_score", Element.number, None)
    rate = found.given("false_positives_per_image", Element.number, None, 0)
    if rate == 0:
        raise found.at("false_positives_per_image").fail("expected a number above 0, got 0")
    mapped = found.given("class_map", Element.string, None)
    if kind == "onnx":
        found.table((*JUDGING_KEYS, "file", "classes", "input", "output"), required=("file", "classes", "output"))
        classes = tuple(each.string() for each in found.at("classes").items(least=1))
        put_in = found.at("input") if found.has("input") else None
        layout = OnnxLayout(
            OnnxInput(None) if put_in is None else _settings(put_in, OnnxInput, {"size": None}),
            _settings(found.at("output"), OnnxOutput, {}),
        )
        file = found.at("file").string()
        return found.made(lambda: DetectorChoice(kind, classes, {}, file, layout, mapped, least, rate, iou))
    kinds: dict[str, type[Any]] = {"hog": HogSettings, "cascade": CascadeSettings}
    own = tuple(each.name for each in fields(kinds[kind]))
    found.table((*JUDGING_KEYS, "class", *own, *(["file"] if kind == "cascade" else [])))
    given = _settings_given(found, kinds[kind])
    found.made(lambda: kinds[kind](**given))
    classes = (found.given("class", Element.string, "person"),)
    file_name = found.given("file", Element.string, None)
    return found.made(lambda: DetectorChoice(kind, classes, given, file_name, None, mapped, least, rate, iou))


def _settings(found: Element, kind: type[Made], usual: dict[str, Any]) -> Made:
    """A frozen value of settings from a table with the names of its fields."""
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    needed = [name for name, each in known.items() if each.default is MISSING and name not in usual]
    found.table(tuple(known), required=tuple(needed))
    given = _settings_given(found, kind)
    if len(given.get("score_columns", ())) == 1:
        given["score_columns"] = (*given["score_columns"], None)  # TOML has no null: one number has no end
    return found.made(lambda: kind(**{**usual, **given}))


def _settings_given(found: Element, kind: type[Any]) -> dict[str, Any]:
    """The values that a table gives to fields of `kind`, each of the type of its field; InputError."""
    given: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        if found.has(name):
            given[name] = _plain(found.at(name))
            if not _is_of(given[name], hint):
                raise found.at(name).fail(f"expected {_told(hint)}, got {shown(found.at(name).value)}")
    return given


def _is_of(value: Any, hint: Any) -> bool:
    """Whether a value is of a type; lengths of lists and choices of words are left to the class."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_is_of(value, each) for each in get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple) and all(_is_of(each, get_args(hint)[0]) for each in value)
    if origin is Literal:
        return isinstance(value, str)
    if isinstance(value, bool) or hint is bool:
        return isinstance(value, bool) and hint is bool
    return isinstance(value, int | float) if hint is float else isinstance(value, hint)


def _told(hint: Any) -> str:
    """A type for people."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return " or ".join(_told(each) for each in get_args(hint) if each is not NoneType)
    if origin is tuple:
        return "a list of numbers"
    words = {bool: "true or false", int: "a whole number", float: "a number"}
    return words.get(hint, "a text in quotes")


def _plain(found: Element) -> Any:
    """A value of settings: numbers as Python has them, lists as tuples."""
    if isinstance(found.value, bool | int | str):
        return found.value
    if isinstance(found.value, list):
        return tuple(_plain(each) for each in found.items())
    return float(found.number())
