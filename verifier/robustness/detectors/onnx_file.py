"""A detector in an ONNX file, run by onnxruntime: the only module that knows onnxruntime."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, UsageError, shown, unknown_name
from verifier.base.files import read_bytes
from verifier.base.libraries import library
from verifier.robustness.detectors.onnx_decode import decoded, network_input, placement
from verifier.robustness.detectors.onnx_layout import OnnxLayout
from verifier.robustness.detectors.protocol import Detections, Image

PROVIDERS = ("CPUExecutionProvider",)
"""What onnxruntime runs on."""
QUIET = 4
"""Severity from which onnxruntime writes to stderr: fatal. What goes wrong comes back as an error of ours."""


@dataclass(frozen=True)
class OnnxDetector:
    """A network that is loaded, with the layout of its input and outputs; `open_onnx` makes one.

    Attributes:
        file: name as given, for messages.
        classes: the names of the labels, in order.
        layout: how to read the network.
        session: of onnxruntime.
        stacked: whether images of equal size go through together.
    """

    file: str
    sha256: str
    classes: tuple[str, ...]
    layout: OnnxLayout
    session: Any
    stacked: bool

    @property
    def identity(self) -> dict[str, object]:
        """The content of the file, its layout and classes, what it runs on, and the version of onnxruntime."""
        version = library("onnxruntime").__version__
        return {
            "detector": "onnx",
            "sha256": self.sha256,
            "classes": list(self.classes),
            "layout": self.layout.record(),
            "providers": list(PROVIDERS),
            "onnxruntime": version,
        }

    def __call__(self, images: Sequence[Image]) -> list[Detections]:
        """Images of equal input size together where the network takes batches, else one by one.

        Raises:
            InputError: the network fails, or its output is not what the layout declares.
        """
        inputs = [network_input(image, self.layout.input) for image in images]
        same = len({array.shape for array in inputs}) == 1
        groups = [list(range(len(images)))] if self.stacked and same else [[row] for row in range(len(images))]
        detections: list[Detections] = []
        for rows in groups:
            given = np.stack([inputs[row] for row in rows]) if self.layout.input.batch_axis else inputs[rows[0]]
            outputs = self._run(given, images[rows[0]])
            for place, row in enumerate(rows):
                image = images[row]
                own = {name: self._own(name, value, place, len(rows), image) for name, value in outputs.items()}
                at = placement(image.size, self.layout.input)
                detections.append(decoded(own, self.layout.output, at, len(self.classes), image.name, self.file))
        return detections

    def _run(self, given: NDArray[Any], image: Image) -> dict[str, NDArray[Any]]:
        name = self.layout.input.name or self.session.get_inputs()[0].name
        outputs = run_session(self.session, {name: given}, self.layout.output.names, image, self.file)
        for text, value in outputs.items():
            if not isinstance(value, np.ndarray):
                raise InputError(f"output {shown(text)} is no array of numbers", Place(self.file))
        return outputs

    def _own(self, name: str, value: NDArray[Any], place: int, count: int, image: Image) -> NDArray[Any]:
        """The part of an output that belongs to one image of a batch."""
        if not self.layout.output.batch_axis:
            return value
        if value.ndim == 0 or value.shape[0] != count:
            raise InputError(
                f"output {shown(name)}, image {shown(image.name)}: expected a first axis for the batch, of length "
                f"{count}, found shape {value.shape}",
                Place(self.file),
                "batch_axis=False declares outputs without that axis",
            )
        return np.asarray(value[place, ...])


def open_onnx(path: str | Path, layout: OnnxLayout, classes: Sequence[str]) -> OnnxDetector:
    """Load a network. Weights must be in the file itself, not beside it: its SHA-256 stands for them.

    Raises:
        InputError: the file is missing or holds no network that onnxruntime can run, or the network has other
            inputs or outputs than the layout declares.
        UsageError: classes and layout do not fit together.
    """
    if isinstance(classes, str) or not classes or len(set(classes)) != len(classes):
        raise UsageError(f"expected different class names, at least one, got {shown(classes)}")
    layout.output.numbers(len(classes))
    raw = read_bytes(path)
    session = open_session(raw, str(path))
    stacked = _check(session, layout, Place(str(path)))
    digest = hashlib.sha256(raw).hexdigest()
    return OnnxDetector(str(path), digest, tuple(classes), layout, session, stacked)


def open_session(raw: bytes, file: str) -> Any:
    """The network in the bytes of a file, as onnxruntime runs it; InputError where it cannot."""
    runtime = library("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = QUIET
    options.use_deterministic_compute = True
    try:
        return runtime.InferenceSession(raw, options, providers=list(PROVIDERS))
    except _failures() as error:
        raise InputError(f"not a network that onnxruntime can run: {_first_line(error)}", Place(file)) from None


def run_session(
    session: Any, given: Mapping[str, NDArray[Any]], names: Sequence[str], image: Image, file: str
) -> dict[str, Any]:
    """The outputs of these names for inputs by name, with an image in them; InputError where the network fails."""
    try:
        return dict(zip(names, session.run(list(names), given), strict=True))
    except _failures() as error:
        shapes = ", ".join(str(array.shape) for array in given.values())
        where = f"image {shown(image.name)}: the network fails on an input of shape {shapes}"
        raise InputError(f"{where}: {_first_line(error)}", Place(file)) from None


def _check(session: Any, layout: OnnxLayout, place: Place) -> bool:
    """Whether the network takes batches; InputError where the layout does not fit it."""
    inputs = {tensor.name: tensor for tensor in session.get_inputs()}
    wanted = layout.input.name or next(iter(inputs), "")
    if wanted not in inputs:
        message, hint = unknown_name("input", wanted, inputs)
        raise InputError(message, place, hint)
    if len(inputs) > 1:
        raise InputError(f"the network has several inputs: {', '.join(inputs)}; expected one", place)
    outputs = [output.name for output in session.get_outputs()]
    for name in layout.output.names:
        if name not in outputs:
            message, hint = unknown_name("output", name, outputs)
            raise InputError(message, place, hint)
    kinds = {"float32": "tensor(float)", "float16": "tensor(float16)", "uint8": "tensor(uint8)"}
    node = inputs[wanted]
    if node.type != kinds[layout.input.type]:
        raise InputError(f"input {shown(wanted)} takes {node.type}; declared is {layout.input.type}", place)
    return _check_shape(node.shape, layout, shown(wanted), place)


def _check_shape(shape: Sequence[Any], layout: OnnxLayout, name: str, place: Place) -> bool:
    declared = layout.input
    height, width = declared.size or (None, None)
    sides = {"C": 3, "H": height, "W": width}
    # Axes that the file leaves open are names. One that it fixes fits only what is declared; batches come later.
    fits = len(shape) == len(declared.axes) and all(
        axis == "N" or not isinstance(length, int) or length == sides[axis]
        for axis, length in zip(declared.axes, shape, strict=True)
    )
    if not fits:
        expected = ", ".join(str(sides.get(axis) or axis) for axis in declared.axes)
        raise InputError(f"input {name} has the shape {shown(list(shape))}; declared is ({expected})", place)
    if not declared.batch_axis:
        return False
    if isinstance(shape[0], int) and shape[0] != 1:
        raise InputError(
            f"input {name} takes batches of exactly {shape[0]}", place, "export it with batches of one or any number"
        )
    return not isinstance(shape[0], int) and layout.output.batch_axis


def _failures() -> tuple[type[Exception], ...]:
    """What onnxruntime raises: its classes share no base of their own."""
    state = library("onnxruntime.capi.onnxruntime_pybind11_state")
    own = [value for value in vars(state).values() if isinstance(value, type) and issubclass(value, Exception)]
    return (*own, RuntimeError, ValueError)


def _first_line(error: Exception) -> str:
    return shown((str(error).strip() or type(error).__name__).splitlines()[0], 160)
