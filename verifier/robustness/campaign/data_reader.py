"""The parts of TOML files that campaigns and assessments share: images and what belongs to them, detectors, counting.

A detector, in a campaign; in an assessment it is `[systems.NAME.detector]`.

    [detectors.yolo]
    kind = "hog"                                # or "cascade", "onnx"
    class = "ped"                               # what its reports are called
    enlargement = 1.5                           # and the other settings of `HogSettings`
    lowest_score = -0.5
    false_positives_per_image = 1               # or min_score = 0.3: from where on a detection counts

    [detectors.yolo]
    kind = "onnx"
    file = "yolov8n.onnx"
    classes = ["person", "bicycle", "car"]
    class_map = "to_mine.txt"                   # which class of the annotations each of these is
    input = { size = [640, 640], resize = "letterbox_centre" }                   # as `OnnxInput`
    output = { boxes = "output0", scores = "output0", lowest_score = 0.05, transposed = true, \
score_columns = [4], box_format = "cxcywh", suppression_iou = 0.7 }              # as `OnnxOutput`

Every choice that is left out has the default of the class that is named.
"""

import math
from dataclasses import MISSING, fields
from fractions import Fraction
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from verifier.base.errors import shown
from verifier.base.toml import Element
from verifier.perception.detections.depth import UNITS_PER_M
from verifier.perception.detections.distances import LARGEST_M, MEASURES
from verifier.perception.settings import EmptyColumns, Labelling, Leftover, Outside
from verifier.robustness.campaign.definition import (
    DETECTOR_KINDS,
    CollisionLimit,
    Counting,
    DetectorChoice,
    SystemModelRun,
)
from verifier.robustness.detectors import CascadeSettings, HogSettings, OnnxInput, OnnxLayout, OnnxOutput
from verifier.robustness.mutators.annotations import ANNOTATION_FORMATS, AnnotationFiles
from verifier.robustness.mutators.frames import DepthSource, Sky
from verifier.robustness.mutators.imagefiles import METHODS


def keys_of(kind: type[Any], *without: str) -> tuple[str, ...]:
    """The keys of a table that is read into a dataclass: its fields, without those that a file does not name so."""
    return tuple(field.name for field in fields(kind) if field.init and field.name not in without)


DEPTH_KEYS = keys_of(DepthSource)
ANNOTATION_KEYS = keys_of(AnnotationFiles)
RUN_KEYS = (*keys_of(SystemModelRun, "constants"), "set")
COLLISION_KEYS = keys_of(CollisionLimit)


def _positive(element: Element) -> Fraction:
    """A number above 0; InputError."""
    if (value := element.number(0)) == 0:
        raise element.fail("expected a number above 0, got 0")
    return value


def read_depth(element: Element) -> DepthSource | None:
    """Where depth comes from; None where the table does not say; InputError."""
    if not element.has("depth"):
        return None
    table = element.at("depth").table(DEPTH_KEYS)
    if table.has("folder") == table.has("constant_m"):
        raise table.fail("expected either 'folder' or 'constant_m'")
    if table.has("constant_m"):
        for key in DEPTH_KEYS[2:]:
            if table.has(key):
                raise table.at(key).fail(f"'{key}' goes with a folder of depth maps")
        depth_m = table.at("constant_m").number(0)
        if not 0 < depth_m <= LARGEST_M:
            raise table.at("constant_m").fail(f"expected metres above 0 and up to {LARGEST_M:g}")
        return DepthSource(constant_m=float(depth_m))
    scale = table.given("scale", _positive, Fraction(UNITS_PER_M))
    densify = table.given("densify", Element.one_of, None, METHODS)
    inverse = float(_positive(table.at("inverse"))) if table.has("inverse") else None
    given = table.given("sky", Element.string, None)
    sky = None if given is None else table.at("sky").made(lambda: Sky.of(given))
    return DepthSource(Path(table.at("folder").string()), None, float(scale), densify, inverse, sky)


def read_annotations(element: Element) -> AnnotationFiles | None:
    """The files of annotations; None where the table names none; InputError."""
    if not element.has("annotations"):
        return None
    table = element.at("annotations").table(ANNOTATION_KEYS, required=ANNOTATION_KEYS[:2])
    kind = table.at("format").one_of(ANNOTATION_FORMATS)
    for key, of in (("distance_field", "coco"), ("frames", "table")):
        if table.has(key) and kind != of:
            raise table.at(key).fail(f"'{key}' goes with the format '{of}'")
    given = {key: table.at(key).string() for key in ANNOTATION_KEYS[1:] if table.has(key)}
    return AnnotationFiles(kind, **given)


def read_counting(element: Element) -> Counting:
    """How matrices and pairs are counted; InputError."""
    element.table(keys_of(Counting), required=("edges_m",))
    return element.made(
        lambda: Counting(
            tuple(or_infinite(element) for element in element.at("edges_m").items(least=2)),
            tuple(element.string() for element in element.list_at("classes")),
            element.given("labelling", Element.one_of, "class", get_args(Labelling)),
            element.given("measure", Element.one_of, None, MEASURES),
            element.given("unmatched", Element.one_of, "drop", get_args(Leftover)),
            element.given("outside", Element.one_of, "error", get_args(Outside)),
        )
    )


def read_run(element: Element) -> SystemModelRun:
    """How requirements are checked; InputError."""
    element.table(RUN_KEYS, required=("spec",))
    return SystemModelRun(
        element.at("spec").string(),
        element.given("planner", Element.string, None),
        tuple(element.string() for element in element.at("environments").items(least=1))
        if element.has("environments")
        else (),
        {name: element.number() for name, element in element.table_at("set")},
        element.given("empty_columns", Element.one_of, "error", get_args(EmptyColumns)),
    )


def read_collision(element: Element) -> CollisionLimit:
    """The accepted probability of a collision; InputError."""
    element.table(COLLISION_KEYS, required=COLLISION_KEYS)
    distance_m, speed_mps, deceleration_mps2 = (float(_positive(element.at(key))) for key in COLLISION_KEYS[:3])
    reaction_s, at_most = float(element.at("reaction_s").number(0)), element.at("at_most").number(0, 1)
    return CollisionLimit(distance_m, speed_mps, deceleration_mps2, reaction_s, at_most)


def or_infinite(element: Element) -> float:
    """A level, or an edge of distance: the only numbers of an assessment that may be infinite."""
    return math.inf if repr(element.value) in ("inf", "+inf") else float(element.number())


Made = TypeVar("Made")
JUDGING_KEYS = ("kind", "class_map", "min_score", "false_positives_per_image", "iou")


def read_detector(element: Element) -> DetectorChoice:
    """The detector that a table of the file describes; InputError."""
    if not element.open_table().has("kind"):
        raise element.fail("missing key 'kind'", f"one of {', '.join(DETECTOR_KINDS)}")
    kind = element.at("kind").one_of(DETECTOR_KINDS)
    iou = element.given("iou", Element.number, Fraction(1, 2), 0, 1)
    least = element.given("min_score", Element.number, None)
    rate = element.given("false_positives_per_image", _positive, None)
    mapped = element.given("class_map", Element.string, None)
    if kind == "onnx":
        element.table((*JUDGING_KEYS, "file", "classes", "input", "output"), required=("file", "classes", "output"))
        classes = tuple(element.string() for element in element.at("classes").items(least=1))
        put_in = element.at("input") if element.has("input") else None
        layout = OnnxLayout(
            OnnxInput(None) if put_in is None else _settings(put_in, OnnxInput, {"size": None}),
            _settings(element.at("output"), OnnxOutput, {}),
        )
        file = element.at("file").string()
        return element.made(lambda: DetectorChoice(kind, classes, None, file, layout, mapped, least, rate, iou))
    kinds: dict[str, type[HogSettings | CascadeSettings]] = {"hog": HogSettings, "cascade": CascadeSettings}
    own = tuple(field.name for field in fields(kinds[kind]))
    element.table((*JUDGING_KEYS, "class", *own, *(["file"] if kind == "cascade" else [])))
    given = _settings_given(element, kinds[kind])
    settings = element.made(lambda: kinds[kind](**given))
    classes = (element.given("class", Element.string, "person"),)
    file_name = element.given("file", Element.string, None)
    return element.made(lambda: DetectorChoice(kind, classes, settings, file_name, None, mapped, least, rate, iou))


def _settings(element: Element, kind: type[Made], usual: dict[str, object]) -> Made:
    """A frozen value of settings from a table with the names of its fields."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    needed = [name for name, field in known.items() if field.default is MISSING and name not in usual]
    element.table(tuple(known), required=tuple(needed))
    given = _settings_given(element, kind)
    if len(given.get("score_columns", ())) == 1:
        given["score_columns"] = (*given["score_columns"], None)  # TOML has no null: one number has no end
    return element.made(lambda: kind(**{**usual, **given}))


def _settings_given(element: Element, kind: type[Any]) -> dict[str, Any]:
    """The values that a table gives to fields of `kind`, each of the type of its field; InputError."""
    given: dict[str, object] = {}
    for name, hint in get_type_hints(kind).items():
        if element.has(name):
            given[name] = plain_value(element.at(name))
            if not _is_of(given[name], hint):
                raise element.at(name).fail(f"expected {_told(hint)}, got {shown(element.at(name).value)}")
    return given


def _is_of(value: Any, hint: Any) -> bool:
    """Whether a value is of a type; lengths of lists and choices of words are left to the class."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_is_of(value, arg) for arg in get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple) and all(_is_of(part, get_args(hint)[0]) for part in value)
    if origin is Literal:
        return isinstance(value, str)
    if isinstance(value, bool) or hint is bool:
        return isinstance(value, bool) and hint is bool
    return isinstance(value, int | float) if hint is float else isinstance(value, hint)


def _told(hint: Any) -> str:
    """A type for people."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return " or ".join(_told(arg) for arg in get_args(hint) if arg is not NoneType)
    if origin is tuple:
        return "a list of numbers"
    words = {bool: "true or false", int: "a whole number", float: "a number"}
    return words.get(hint, "a text in quotes")


def plain_value(element: Element) -> Any:
    """A value of settings: numbers as Python has them, lists as tuples."""
    if isinstance(element.value, bool | int | str):
        return element.value
    if isinstance(element.value, list):
        return tuple(plain_value(element) for element in element.items())
    return float(element.number())
