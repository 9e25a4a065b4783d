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
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from fractions import Fraction
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from verifier.base.documents import Limits
from verifier.base.errors import shown
from verifier.base.toml import Element
from verifier.robustness.campaign.definition import DETECTOR_KINDS, DetectorChoice
from verifier.robustness.detectors import CascadeSettings, HogSettings, OnnxInput, OnnxLayout, OnnxOutput
from verifier.robustness.mutators.annotations import ANNOTATION_FORMATS, AnnotationFiles
from verifier.robustness.mutators.frames import DepthSource, Sky

Made = TypeVar("Made")


def keys_of(kind: type[Any], *without: str) -> tuple[str, ...]:
    """The keys of a table that is read into a dataclass: its fields, without those that a file does not name so. A
    field that is called like a word of Python ends in an underscore, which its key does not."""
    return tuple(_key(field.name) for field in fields(kind) if field.init and field.name not in without)


def _key(name: str) -> str:
    return name.removesuffix("_")


def read_record(element: Element, kind: type[Made], keys: tuple[str, ...] | None = None, **made: object) -> Made:
    """A frozen dataclass from a table with the names of its fields, each value of the type of its field.

    Args:
        element: the table.
        kind: the dataclass; the `Limits` of a field hold for its value.
        keys: those that the table may have; None for those of all fields.
        made: values of fields that are not read here.

    Raises:
        InputError: an unknown or missing key, a value that is not of its type, or that the class refuses.
    """
    keys = keys_of(kind) if keys is None else keys
    needed = (
        _key(field.name)
        for field in fields(kind)  # type: ignore[arg-type]  # a dataclass
        if field.default is MISSING and field.default_factory is MISSING and field.name not in made
    )
    element.table(keys, required=tuple(key for key in needed if key in keys))
    values = values_of(element, kind, *made)
    return element.made(lambda: kind(**made, **values))


def values_of(element: Element, kind: type[Any], *without: str) -> dict[str, Any]:
    """The values that a table gives to the fields of a dataclass, but for some of these; InputError."""
    hints = get_type_hints(kind, include_extras=True)
    read = (name for name in hints if name not in without and element.has(_key(name)))
    return {name: _value(element.at(_key(name)), hints[name]) for name in read}


def _value(element: Element, hint: Any, limits: Limits | None = None) -> Any:
    """The value of a type; InputError."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _value(element, *parts)
    if origin in (Union, UnionType):
        (one,) = (part for part in parts if part is not NoneType)
        return _value(element, one)
    if origin is tuple:
        entries = element.items(least=0 if limits is None else limits.min_length or 0)
        values = tuple(_value(entry, parts[0]) for entry in entries)
        may_end = NoneType in get_args(parts[-1]) and len(values) == len(parts) - 1
        return (*values, None) if may_end else values  # TOML has no null: it is left out
    if origin is Mapping:
        return {name: _value(entry, parts[1]) for name, entry in element.entries()}
    if origin is Literal:
        return element.one_of(parts)
    if is_dataclass(hint):
        return read_record(element, hint)  # type: ignore[arg-type]  # a class
    if hint in (int, float, Fraction):
        return _number(element, hint, limits)
    return element.truth() if hint is bool else hint(element.string())


def plain_number(element: Element) -> int | float:
    """A finite number, which stays whole where it is spelled so; InputError."""
    value = element.number()
    return int(value) if isinstance(element.value, int) else float(value)


def _number(element: Element, kind: type[int | float | Fraction], limits: Limits | None) -> int | float | Fraction:
    """A number of a type; infinite only where its limits say that it may be."""
    if limits is None:
        if kind is int and type(element.value) is not int:
            raise element.fail(f"expected a whole number, got {shown(element.value)}")
        return element.number() if kind is Fraction else plain_number(element)
    if limits.le == math.inf and repr(element.value) in ("inf", "+inf"):
        return math.inf
    least = limits.ge if limits.gt is None else limits.gt
    ends = [None if end is None or math.isinf(end) else int(end) for end in (least, limits.le)]
    value = element.whole(*ends) if kind is int else element.number(*ends)  # type: ignore[arg-type]  # both are there
    if limits.gt is not None and value == limits.gt:
        raise element.fail(f"expected a number above {limits.gt:g}, got {shown(element.value)}")
    return kind(value)


def read_depth(element: Element) -> DepthSource | None:
    """Where depth comes from; None where the table does not say; InputError."""
    if not element.has("depth"):
        return None
    table = element.at("depth").table(keys_of(DepthSource))
    if table.has("folder") == table.has("constant_m"):
        raise table.fail("expected either 'folder' or 'constant_m'")
    for key in keys_of(DepthSource, "folder", "constant_m") if table.has("constant_m") else ():
        if table.has(key):
            raise table.at(key).fail(f"'{key}' goes with a folder of depth maps")
    given = table.given("sky", Element.string, None)
    sky = None if given is None else table.at("sky").made(lambda: Sky.of(given))
    return read_record(table, DepthSource, sky=sky)


def read_annotations(element: Element) -> AnnotationFiles | None:
    """The files of annotations; None where the table names none; InputError."""
    if not element.has("annotations"):
        return None
    table = element.at("annotations").table(keys_of(AnnotationFiles), required=("format", "file"))
    kind = table.at("format").one_of(ANNOTATION_FORMATS)
    for key, of in (("distance_field", "coco"), ("frames", "table")):
        if table.has(key) and kind != of:
            raise table.at(key).fail(f"'{key}' goes with the format '{of}'")
    return read_record(table, AnnotationFiles)


JUDGING_KEYS = ("kind", "class_map", "min_score", "false_positives_per_image", "iou")


def read_detector(element: Element) -> DetectorChoice:
    """The detector that a table of the file describes; InputError."""
    if not element.open_table().has("kind"):
        raise element.fail("missing key 'kind'", f"one of {', '.join(DETECTOR_KINDS)}")
    kind = element.at("kind").one_of(DETECTOR_KINDS)
    if kind == "onnx":
        keys: tuple[str, ...] = (*JUDGING_KEYS, "file", "classes", "input", "output")
        element.table(keys, required=("file", "classes", "output"))
        put_in = OnnxInput(None)
        if element.has("input"):
            put_in = read_record(
                element.at("input"), OnnxInput, **({} if element.at("input").has("size") else {"size": None})
            )
        layout = OnnxLayout(put_in, read_record(element.at("output"), OnnxOutput))
        return read_record(element, DetectorChoice, keys, settings=None, layout=layout)
    settings: type[HogSettings | CascadeSettings] = HogSettings if kind == "hog" else CascadeSettings
    keys = (*JUDGING_KEYS, "class", *keys_of(settings), *(["file"] if kind == "cascade" else []))
    classes = (element.table(keys).given("class", Element.string, "person"),)
    return read_record(
        element, DetectorChoice, keys, classes=classes, settings=read_record(element, settings, keys), layout=None
    )
