"""The part of an assessment file on the detector under test, where `verify assess --make` runs it.

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

from dataclasses import MISSING, fields
from fractions import Fraction
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from verifier.base.errors import shown
from verifier.base.toml import Element
from verifier.robustness.assessment.detector_choice import DETECTOR_KINDS, DetectorChoice
from verifier.robustness.detectors import CascadeSettings, HogSettings, OnnxInput, OnnxLayout, OnnxOutput

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
    given = _given(found, kinds[kind])
    found.made(lambda: kinds[kind](**given))
    classes = (found.given("class", Element.string, "person"),)
    file_name = found.given("file", Element.string, None)
    return found.made(lambda: DetectorChoice(kind, classes, given, file_name, None, mapped, least, rate, iou))


def _settings(found: Element, kind: type[Made], usual: dict[str, Any]) -> Made:
    """A frozen value of settings from a table with the names of its fields."""
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    needed = [name for name, each in known.items() if each.default is MISSING and name not in usual]
    found.table(tuple(known), required=tuple(needed))
    given = _given(found, kind)
    if len(given.get("score_columns", ())) == 1:
        given["score_columns"] = (*given["score_columns"], None)  # TOML has no null: one number has no end
    return found.made(lambda: kind(**{**usual, **given}))


def _given(found: Element, kind: type[Any]) -> dict[str, Any]:
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
