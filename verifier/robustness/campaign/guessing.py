"""`verify campaign init`: a campaign file for a network, read from its metadata and shapes and from one run.

| seen | read as |
|---|---|
| one output (1, 4 + classes, n) | YOLOv8: centres and sizes, no objectness; suppression is missing |
| one output (1, n, 5 + classes) | YOLOv5: the same with an objectness; suppression is missing |
| one output (1, n, 6) | YOLOv10 and end-to-end exports: corners, score, label (whole numbers); suppressed |
| boxes (1, n, 4), scores (1, n, k), n up to 1000 | DETR: centres and sizes as shares, no suppression needed |
| boxes (1, n, 4), scores (1, n, k), n above | SSD: suppression is missing |
| boxes, scores and labels of the same n | SSD and torchvision with suppression; with a count as TensorFlow's |

Everything that the file does not say is a guess, with its reason: in the file as a comment, and in the list that is
printed. A network is run once on the first image, which shows shapes that the file leaves open, and what range boxes
and scores have.
"""

import ast
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, UsageError
from verifier.base.files import read_bytes, read_json
from verifier.robustness.campaign.scenes import image_files
from verifier.robustness.detectors import OnnxInput, OnnxLayout, OnnxOutput, open_onnx, read_image
from verifier.robustness.detectors.onnx_decode import network_input
from verifier.robustness.detectors.onnx_file import open_session, run_session
from verifier.robustness.mutators import needs_depth
from verifier.robustness.mutators.annotations import AnnotationFiles
from verifier.robustness.mutators.sweeps import published
from verifier.robustness.settings import CampaignInitSettings

MOST_QUERIES = 1000
"""Rows of a network that names each object once; a grid of candidates has more."""
PERSON = ("person", "people", "pedestrian", "ped", "human")
TYPES: Mapping[str, Any] = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(uint8)": "uint8"}
USUAL_SIDE = 640
TIMED = 3
Value = TypeVar("Value")


@dataclass
class Guesses:
    """What is guessed, and why: by the key in the file."""

    reasons: dict[str, str] = field(default_factory=dict)

    def __call__(self, key: str, value: Value, reason: str) -> Value:
        """The value, noted as a guess."""
        self.reasons[key] = f"{value!r}: {reason}" if not isinstance(value, str) else f"{value}: {reason}"
        return value


@dataclass(frozen=True)
class Proposal:
    """A campaign file to write, further files beside it, what is guessed, and how fast the network is."""

    text: str
    others: Mapping[str, str]
    guesses: Mapping[str, str]
    milliseconds: float
    batches: bool


def proposal(settings: CampaignInitSettings) -> Proposal:
    """A campaign file for the network and the images.

    Raises:
        InputError: a file that cannot be read, a network whose outputs are of no known layout.
        UsageError: a library that is missing.
    """
    guess = Guesses()
    first = image_files(Path(settings.images))[0]
    session = open_session(read_bytes(settings.onnx), settings.onnx)
    if len(session.get_inputs()) != 1:
        raise InputError("the network has several inputs; expected one", Place(settings.onnx))
    metadata = dict(session.get_modelmeta().custom_metadata_map)
    put_in = _input(session, metadata, guess)
    outputs, seconds = _run(session, put_in, first, settings.onnx)
    names = _names(metadata)
    categories, annotations = _annotations(settings)
    known = len(names or categories) or None
    put_out, count = _output(outputs, known, settings.onnx, guess)
    classes = _classes(names, categories, count, guess)
    mapped = _class_map(classes, categories, guess)
    others = {} if mapped is None else {"classes.txt": mapped}
    text = _text(settings, guess, (put_in, put_out), classes, annotations, mapped is not None)
    open_onnx(settings.onnx, OnnxLayout(put_in, put_out), classes)  # it fits its own file
    return Proposal(
        text, others, guess.reasons, 1000 * seconds, not isinstance(session.get_inputs()[0].shape[0], int)
    )


def _literal(text: str | None) -> Any:
    """A Python literal of the metadata; None for what is none."""
    try:
        return None if text is None else ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _names(metadata: Mapping[str, str]) -> list[str] | None:
    names = _literal(metadata.get("names"))
    if isinstance(names, dict) and all(isinstance(value, int) for value in names):
        names = [names[key] for key in sorted(names)]
    good = isinstance(names, list) and names and all(isinstance(name, str) and name.strip() for name in names)
    return list(names) if good else None


def _input(session: Any, metadata: Mapping[str, str], guess: Guesses) -> OnnxInput:
    own = session.get_inputs()[0]
    shape = list(own.shape)
    if len(shape) not in (3, 4) or own.type not in TYPES:
        raise UsageError(f"the input has the shape {shape} of {own.type}; expected images")
    last = shape[-1] == 3
    axes: Any = ("N" if len(shape) == 4 else "") + ("HWC" if last else "CHW")
    sides: Any = shape[-3:-1] if last else shape[-2:]
    if not all(isinstance(side, int) for side in sides):
        told = _literal(metadata.get("imgsz"))
        side = [USUAL_SIDE, USUAL_SIDE]
        if isinstance(told, list) and len(told) == 2 and all(isinstance(value, int) for value in told):
            sides = told
        else:
            sides = guess("input.size", side, "the file leaves it open, and its metadata have no imgsz")
    scale = 1.0 if TYPES[own.type] == "uint8" else 255.0
    found = OnnxInput(tuple(sides), axes=axes, type=TYPES[own.type], divide_by=scale)
    if "stride" in metadata or "names" in metadata:
        found = replace(found, resize="letterbox_centre")
        guess("input.resize", found.resize, "as Ultralytics, whose metadata it has")
    else:
        guess("input.resize", found.resize, "no file says how images get this size")
    guess("input.channels", found.channels, "no file says it; many networks take RGB")
    if scale != 1:
        guess("input.divide_by", scale, "pixels from 0 to 1; no file says it")
    return found


def _run(session: Any, put_in: OnnxInput, image: Path, path: str) -> tuple[dict[str, NDArray[Any]], float]:
    """The outputs for an image, and the seconds that it takes."""
    read = read_image(image)
    given = network_input(read, put_in)
    given = given[None] if put_in.batch_axis else given
    names = [output.name for output in session.get_outputs()]
    best = float("inf")
    for _ in range(TIMED):
        start = time.perf_counter()
        values = run_session(session, {session.get_inputs()[0].name: given}, names, read, path)
        best = min(best, time.perf_counter() - start)
    return {name: np.asarray(value) for name, value in values.items()}, best


def _output(
    outputs: Mapping[str, NDArray[Any]], classes: int | None, path: str, guess: Guesses
) -> tuple[OnnxOutput, int | None]:
    """The layout of the outputs, and how many classes the shapes show; None where they show none."""
    floats = {name: output for name, output in outputs.items() if output.dtype.kind == "f"}
    lowest = guess("output.lowest_score", 0.01, "ADR and curves need weak detections, too")
    if len(outputs) == 1:
        ((name, value),) = outputs.items()
        if value.ndim == 3 and value.shape[0] == 1:
            return _of_one(OnnxOutput(name, name, lowest), value, classes, guess)
    boxes = [name for name, array in floats.items() if array.ndim in (2, 3) and array.shape[-1] == 4]
    boxes = [name for name in boxes if floats[name].ndim == max(floats[box].ndim for box in boxes)]
    if len(boxes) == 1 and len(outputs) in (2, 3, 4):
        layout = _of_several(boxes[0], outputs, classes, lowest, guess)
        if layout is not None:
            return layout
    shapes = ", ".join(f"{name} {list(output.shape)}" for name, output in outputs.items())
    raise InputError(
        f"outputs of no known layout: {shapes}",
        Place(path),
        "write the table 'output' yourself: verify manual robustness",
    )


def _suppressed(layout: OnnxOutput, guess: Guesses, iou: float, family: str) -> OnnxOutput:
    reason = f"the network does not suppress overlapping boxes (NMS), as {family} does not"
    return replace(layout, suppression_iou=guess("output.suppression_iou", iou, reason))


def _of_one(
    layout: OnnxOutput, value: NDArray[Any], classes: int | None, guess: Guesses
) -> tuple[OnnxOutput, int | None]:
    _, rows, columns = value.shape
    last = value[0, :, -1:]
    labelled = rows <= MOST_QUERIES and bool(((last == np.floor(last)) & (last >= 0) & (last < (classes or 1))).all())
    if columns == 6 and (classes not in (1, 2) or labelled):  # 4 + 2 and 5 + 1 are six, too
        guess("output", "YOLOv10 or end-to-end", f"rows of six numbers, {list(value.shape)}: corners, score, label")
        return replace(layout, labels=layout.boxes, label_column=5, score_columns=(4, 5)), None
    transposed = rows < columns
    width = min(rows, columns)
    objectness = width - 5 == classes if classes is not None else not transposed
    family = "YOLOv5" if objectness else "YOLOv8"
    guess("output", family, f"shape {list(value.shape)}: centre, size{', objectness' if objectness else ''}, classes")
    first = 5 if objectness else 4
    layout = replace(layout, box_format="cxcywh", transposed=transposed, score_columns=(first, None))
    layout = replace(layout, objectness_column=4 if objectness else None)
    return _suppressed(layout, guess, 0.7, family), width - first


def _of_several(
    boxes: str, outputs: Mapping[str, NDArray[Any]], classes: int | None, lowest: float, guess: Guesses
) -> tuple[OnnxOutput, int | None] | None:
    box = outputs[boxes]
    rows = box.shape[-2]
    layout = OnnxOutput(boxes, "", lowest, batch_axis=box.ndim == 3)
    shares = bool(np.abs(box).max(initial=0) <= 2)
    if shares:
        layout = replace(layout, box_unit="input_share")
    told = f"boxes of the first image are {'at most 2' if shares else 'above 2'}"
    guess("output.box_unit", layout.box_unit, told)
    others = {name: output for name, output in outputs.items() if name != boxes}
    flat = {name: array for name, array in others.items() if array.ndim == box.ndim - 1 and array.shape[-1] == rows}
    wide = {name: array for name, array in others.items() if array.ndim == box.ndim and array.shape[-2] == rows}
    if len(flat) == 2:
        labels = min(flat, key=lambda name: (flat[name].dtype.kind == "f", "score" in name.lower()))
        (scores,) = [name for name in flat if name != labels]
        counts = [name for name, array in others.items() if array.size == 1 and name not in flat]
        family = "TensorFlow" if counts else "SSD or torchvision"
        layout = replace(layout, scores=scores, labels=labels)
        if counts or not (outputs[labels] == 0).any():
            layout = replace(layout, background=guess("output.background", 0, "labels count from 1"))
        if counts:
            layout = replace(layout, count=counts[0], box_format="yxyx")
        guess("output.box_format", layout.box_format, f"as {family}")
        guess("output", family, "boxes, scores and labels of as many rows: overlaps are suppressed already")
        return layout, None
    if len(wide) == 1 and len(others) == 1:
        ((scores, value),) = wide.items()
        layout = replace(layout, scores=scores)
        number, detr = value.shape[-1], rows <= MOST_QUERIES
        family = "DETR" if detr else "SSD"
        nothing = classes is not None and number == classes + 1
        if nothing:
            place = number - 1 if detr else 0
            reason = f"one score more than classes; as {family}"
            layout = replace(layout, background=guess("output.background", place, reason))
        if ((value < 0) | (value > 1)).any():
            layout = replace(layout, activation="softmax" if nothing else "sigmoid")
            guess("output.activation", layout.activation, "scores of the first image leave 0..1")
        if detr:
            layout = replace(layout, box_format="cxcywh")
        guess("output.box_format", layout.box_format, f"as {family}")
        guess("output", family, f"{rows} boxes beside {number} scores each")
        return layout if detr else _suppressed(layout, guess, 0.5, family), number - nothing
    return None


def _annotations(settings: CampaignInitSettings) -> tuple[list[str], str]:
    """The classes of the annotations, as far as the file lists them, and the line of the campaign file."""
    given = AnnotationFiles.recognised(settings.annotations)
    told = f'format = "{given.format}", file = {_path(given.file, settings.output)}'
    if given.format != "coco":
        return [], told
    if given.distance_field is not None:
        told += f', distance_field = "{given.distance_field}"'
    document, _ = read_json(settings.annotations)
    return [str(entry["name"]) for entry in document["categories"]], told


def _classes(names: Sequence[str] | None, categories: Sequence[str], count: int | None, guess: Guesses) -> list[str]:
    if names is not None and count in (None, len(names)):
        return list(names)
    if names is not None:
        told = f"the metadata name {len(names)}, and the outputs have scores of {count}"
        return list(guess("classes", list(names), told))
    if count is None or count == len(categories):
        if categories:
            return list(guess("classes", list(categories), "the network names none; those of the annotations"))
        count = count or 1
    spare = [f"class_{number}" for number in range(count or 1)]
    return list(guess("classes", spare, f"neither network nor annotations name {len(spare)} classes"))


def _class_map(classes: Sequence[str], categories: Sequence[str], guess: Guesses) -> str | None:
    """The lines of a class map; None where all classes are those of the annotations."""
    if not categories or set(classes) <= set(categories):
        return None
    lines = []
    for name in classes:
        same = [category for category in categories if category.casefold() == name.casefold()]
        same += [category for category in categories if name.casefold() in PERSON and category.casefold() in PERSON]
        if same:
            lines.append(f"{name} -> {same[0]}")
            if same[0] != name:
                guess("class_map", lines[-1], "names of people in both")
    guess("class_map.*", "* -> ignore", "classes that the annotations do not have")
    return "\n".join([*lines, "* -> ignore"]) + "\n"


def _path(path: str, output: str) -> str:
    """A path as the campaign file names it, from its own folder."""
    return _quoted(Path(os.path.relpath(path, Path(output).absolute().parent)).as_posix())


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):  # a TOML list has no null: one number has no end
        return f"[{', '.join(str(text) for text in value if text is not None)}]"
    return _quoted(value) if isinstance(value, str) else f"{value:g}"


def _table(detector: str, side: str, layout: OnnxInput | OnnxOutput, guess: Guesses) -> str:
    """What of the layout was guessed, has no usual value, or has another one."""
    usual = {field.name: field.default for field in fields(layout)}
    written = {
        key: value for key, value in asdict(layout).items() if value != usual[key] or f"{side}.{key}" in guess.reasons
    }
    lines = (f"{key} = {_value(value)}" for key, value in written.items())
    return "\n".join([f"[detectors.{detector}.{side}]", *lines])


def _text(
    settings: CampaignInitSettings,
    guess: Guesses,
    layout: tuple[OnnxInput, OnnxOutput],
    classes: Sequence[str],
    annotations: str,
    mapped: bool,
) -> str:
    """The campaign file."""
    name = Path(settings.onnx).stem.replace("@", "_")
    data = [f"images = {_path(settings.images, settings.output)}", f"annotations = {{ {annotations} }}"]
    if settings.depth is not None:
        data.append(f"depth = {{ folder = {_path(settings.depth, settings.output)} }}")
        mutations = f'list = "{settings.mutations}"'
    else:
        plain = [mutation.text for mutation in published(settings.mutations) if not needs_depth(mutation)]
        guess("mutations", "without haze and defocus", "no --depth, which they need")
        mutations = "sweep = [\n" + "".join(f"    {_quoted(name)},\n" for name in plain) + "]"
    key = name if all(text.isalnum() or text in "-_" for text in name) else _quoted(name)
    detector = [f"[detectors.{key}]", 'kind = "onnx"', f"file = {_path(settings.onnx, settings.output)}"]
    detector.append(f"classes = [{', '.join(map(_quoted, classes))}]")
    detector += ['class_map = "classes.txt"'] if mapped else []
    detector.append(f"min_score = {guess('min_score', 0.25, 'from which score on does the system act?')}")
    parts = ["[data]\n" + "\n".join(data), "\n".join(detector)]
    parts += [_table(key, "input", layout[0], guess), _table(key, "output", layout[1], guess)]
    parts.append(f"[mutations]\n{mutations}")
    if settings.spec is not None:
        edges = guess("counting.edges_m", "[0, 10, 20, inf]", "distance bins of the matrices")
        parts.append(f"[counting]\nedges_m = {edges}")
        parts.append(f"[run]\nspec = {_path(settings.spec, settings.output)}")
    listed = "".join(f"# {key} = {told}\n" for key, told in guess.reasons.items())
    return f"# Written by verify campaign init. Guessed, to be confirmed:\n{listed}\n" + "\n\n".join(parts) + "\n"
