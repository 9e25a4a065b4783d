"""The arithmetic on both sides of a network: pixels to input, outputs to detections. Nothing here runs a network."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from verifier.base.arrays import Floats
from verifier.base.errors import InputError, Place, shown
from verifier.base.libraries import library
from verifier.robustness.detectors.onnx_layout import OnnxInput, OnnxOutput
from verifier.robustness.detectors.protocol import Detections, Image, suppressed, surest_first


@dataclass(frozen=True)
class Placement:
    """Where the image lies in the input: height and width of both, its size there, and its left upper corner.

    An edge at x in the image lies at `left + x * width / image width` in the input, whatever the interpolation.
    """

    image: tuple[int, int]
    input: tuple[int, int]
    placed: tuple[int, int]
    top: int
    left: int

    def to_image(self, box: Floats) -> Floats:
        """(n, 4) boxes in pixels of the image, from pixels of the input."""
        scale = np.array([self.image[1] / self.placed[1], self.image[0] / self.placed[0]])
        return np.asarray((box - np.tile([self.left, self.top], 2)) * np.tile(scale, 2))


def placement(size: tuple[int, int], layout: OnnxInput) -> Placement:
    """Where an image of this height and width lies in the input."""
    if layout.size is None:
        return Placement(size, size, size, 0, 0)
    if layout.resize == "stretch":
        return Placement(size, layout.size, layout.size, 0, 0)
    ratio = min(layout.size[0] / size[0], layout.size[1] / size[1])
    height, width = (min(max(round(side * ratio), 1), limit) for side, limit in zip(size, layout.size, strict=True))
    if layout.resize == "letterbox_corner":
        return Placement(size, layout.size, (height, width), 0, 0)
    return Placement(
        size, layout.size, (height, width), (layout.size[0] - height) // 2, (layout.size[1] - width) // 2
    )


def network_input(image: Image, layout: OnnxInput) -> NDArray[Any]:
    """The input of one image, in the axes of the layout without that of the batch."""
    at = placement(image.size, layout)
    pixels: NDArray[Any] = image.pixels
    if at.placed != image.size:
        cv2 = library("cv2")
        kinds = {"linear": "INTER_LINEAR", "nearest": "INTER_NEAREST", "area": "INTER_AREA", "cubic": "INTER_CUBIC"}
        how = getattr(cv2, kinds[layout.interpolation])
        pixels = cv2.resize(np.ascontiguousarray(pixels), at.placed[::-1], interpolation=how)
    if at.placed != at.input:
        whole = np.full((*at.input, 3), layout.fill, dtype=np.uint8)
        whole[at.top : at.top + at.placed[0], at.left : at.left + at.placed[1]] = pixels
        pixels = whole
    if layout.channels == "BGR":
        pixels = pixels[:, :, ::-1]
    if layout.type != "uint8":
        mean, deviation = np.array(layout.mean), np.array(layout.deviation)
        pixels = ((pixels / layout.divide_by - mean) / deviation).astype(layout.type)
    if layout.axes.endswith("CHW"):
        pixels = pixels.transpose(2, 0, 1)
    return np.ascontiguousarray(pixels)


def decoded(
    outputs: Mapping[str, NDArray[Any]], layout: OnnxOutput, at: Placement, classes: int, where: str, file: str
) -> Detections:
    """The detections of one image.

    Args:
        outputs: those of `layout.names`, without the axis of the batch.
        layout: how to read them.
        at: where the image lies in the input.
        classes: how many the detector has.
        where: name of the image, for messages.

    Raises:
        InputError: an output has another shape than declared, holds NaN or infinity, a number that is no class, or a
            box of negative size.
    """
    numbers = np.array(layout.numbers(classes), dtype=np.int64)
    reader = _Reader(outputs, layout, numbers, f"image {shown(where)}", Place(file))
    box, score, number = reader.rows()
    order = np.argsort(numbers)
    position = np.minimum(np.searchsorted(numbers, number, sorter=order), classes - 1)
    label = order[position]
    known = numbers[label] == number
    if not known.all() and layout.others == "error":
        first = int(number[int(np.argmin(known))])
        raise reader.fail(
            layout.labels or layout.scores,
            f"{first} is the number of no class",
            "others='ignore' leaves such rows out",
        )
    box = reader.corners(box[known], at)
    if layout.clip:
        box = np.clip(box, 0, np.tile(at.image[::-1], 2))
    detections = Detections(box, score[known], label[known])
    if layout.suppression_iou is None:
        detections = detections.take(surest_first(detections))
    else:
        detections = suppressed(detections, layout.suppression_iou, layout.suppression_per_class)
    return detections if layout.most is None else detections.take(np.arange(min(layout.most, len(detections))))


@dataclass(frozen=True)
class _Reader:
    """Reads the outputs of one image; each complaint names output and image."""

    outputs: Mapping[str, NDArray[Any]]
    layout: OnnxOutput
    numbers: NDArray[np.int64]
    image: str
    place: Place

    def fail(self, output: str, message: str, hint: str | None = None) -> InputError:
        return InputError(f"output {shown(output)}, {self.image}: {message}", self.place, hint)

    def rows(self) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """Box as declared (k, 4), score (k,) and class number (k,) of what reaches the lowest score."""
        layout = self.layout
        table = self._table(layout.boxes)
        if table.shape[1] <= max(layout.box_columns):
            raise self.fail(layout.boxes, self._shape_text(layout.boxes, max(layout.box_columns) + 1))
        scores = self._scores(self._table(layout.scores))
        count = self._count(len(table))
        if len(scores) != len(table):
            text = f"{len(scores)} rows, and output {shown(layout.boxes)} has {len(table)}"
            raise self.fail(layout.scores, text)
        scores = scores[:count]
        if not np.isfinite(scores).all():
            faulty = int(np.argmin(np.isfinite(scores).all(axis=1)))
            raise self.fail(layout.scores, f"row {faulty}, counted from 0, has a score that is no finite number")
        row, column = self._reaching(scores)
        box = table[row][:, list(layout.box_columns)]
        if not np.isfinite(box).all():
            first = int(row[int(np.argmin(np.isfinite(box).all(axis=1)))])
            raise self.fail(layout.boxes, f"row {first}, counted from 0, has a box that is not finite")
        number = column if layout.labels is None else self._labels(row, len(table))
        score = scores[row, column]
        if layout.background is None:
            return box, score, number
        is_class = number != layout.background
        return box[is_class], score[is_class], number[is_class]

    def corners(self, box: Floats, at: Placement) -> Floats:
        """(k, 4) left, top, right, bottom in pixels of the image."""
        kind, unit = self.layout.box_format, self.layout.box_unit
        if kind == "yxyx":
            box = box[:, [1, 0, 3, 2]]
        elif kind == "xywh":
            box = np.hstack([box[:, :2], box[:, :2] + box[:, 2:]])
        elif kind == "cxcywh":
            box = np.hstack([box[:, :2] - box[:, 2:] / 2, box[:, :2] + box[:, 2:] / 2])
        if unit.endswith("share"):
            box = box * np.tile((at.input if unit == "input_share" else at.image)[::-1], 2)
        if unit.startswith("input"):
            box = at.to_image(box)
        inverted = (box[:, 2:] < box[:, :2]).any(axis=1)
        if inverted.any():
            values = ", ".join(f"{value:g}" for value in box[int(inverted.argmax())])
            raise self.fail(
                self.layout.boxes,
                f"box ({values}) (left, top, right, bottom) has a negative size",
                f"is the format of the boxes really {kind}?",
            )
        return box

    def _table(self, name: str) -> Floats:
        """(n, columns) an output; one of one dimension has one column."""
        given = self.outputs[name]
        if given.dtype.kind not in "fiub" or given.ndim not in (1, 2):
            raise self.fail(name, self._shape_text(name, 1))
        table = given.astype(np.float64)
        if table.ndim == 1:
            return table[:, np.newaxis]
        return table.T if self.layout.transposed else table

    def _shape_text(self, name: str, columns: int) -> str:
        axes = f"(at least {columns}, n)" if self.layout.transposed else f"(n, at least {columns})"
        given = self.outputs[name]
        batch = " after the axis of the batch" if self.layout.batch_axis else ""
        return f"expected numbers {axes}{batch}, found {given.dtype} of shape {given.shape}"

    def _scores(self, table: Floats) -> Floats:
        """(n, classes) after activation and objectness."""
        layout = self.layout
        first, end = layout.score_columns
        needed = max(first + 1, end or 0, 0 if layout.objectness_column is None else layout.objectness_column + 1)
        if table.shape[1] < needed:
            raise self.fail(layout.scores, self._shape_text(layout.scores, needed))
        scores = table[:, first:end]
        self._check_columns(scores.shape[1])
        if layout.activation == "softmax":
            scores = softmax(scores, axis=1)
        elif layout.activation == "sigmoid":
            scores = expit(scores)
        if layout.objectness_column is not None:
            certain = table[:, layout.objectness_column, np.newaxis]
            scores = scores * (expit(certain) if layout.activation == "sigmoid" else certain)
        return scores

    def _check_columns(self, columns: int) -> None:
        """Whether so many scores a row fit the classes."""
        layout = self.layout
        if layout.labels is not None:
            if columns != 1:
                raise self.fail(layout.scores, f"{columns} scores a row, and one label", "declare score_columns")
            return
        if self.numbers.max() >= columns:
            raise self.fail(layout.scores, f"no column for class number {self.numbers.max()}: it has {columns}")
        left_over = columns - len(self.numbers) - (layout.background is not None and layout.background < columns)
        if left_over and layout.others == "error":
            raise self.fail(
                layout.scores,
                f"{left_over} of its {columns} columns of scores are no class",
                "declare score_columns, or others='ignore' for classes that do not matter",
            )

    def _reaching(self, scores: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Row and column of the scores that are reported."""
        layout = self.layout
        if layout.labels is None and layout.background is not None and layout.background < scores.shape[1]:
            scores = scores.copy()
            scores[:, layout.background] = -np.inf
        if layout.per_row == "each":
            row, column = np.nonzero(scores >= layout.lowest_score)
            return row, column
        best = scores.argmax(axis=1)
        row = np.flatnonzero(scores[np.arange(len(scores)), best] >= layout.lowest_score)
        return row, best[row]

    def _labels(self, row: NDArray[np.int64], length: int) -> NDArray[np.int64]:
        name = self.layout.labels or ""
        table = self._table(name)
        if len(table) != length or table.shape[1] <= self.layout.label_column:
            raise self.fail(name, self._shape_text(name, self.layout.label_column + 1) + f", of {length} rows")
        label = table[row, self.layout.label_column]
        if not ((label == np.floor(label)) & (np.abs(label) < 2**31)).all():
            raise self.fail(name, "expected whole numbers of at most 31 bits")
        return np.asarray(label.astype(np.int64))

    def _count(self, rows: int) -> int:
        if self.layout.count is None:
            return rows
        name = self.layout.count
        given = self.outputs[name]
        number = float(given.reshape(-1)[0]) if given.size == 1 and given.dtype.kind in "fiu" else -1.0
        if not 0 <= number <= rows or number != int(number):
            raise self.fail(name, f"expected one number of rows from 0 to {rows}, found {shown(given.tolist())}")
        return int(number)
