"""What goes into a detector in an ONNX file and what comes out of it, declared: the file itself does not say.

Exported detectors differ in every one of these choices, and a wrong one gives plausible, wrong boxes: pixels scaled
by 1/255 or not, RGB or BGR, letterbox or stretch, centres or corners. So nothing is guessed. Some usual outputs:

| family | boxes | scores | labels |
|---|---|---|---|
| YOLOv5 | one output (1, n, 5 + classes): `cxcywh`, `objectness_column` 4, `score_columns` (5, None) | the same | |
| YOLOv8 | one output (1, 4 + classes, n): `transposed`, `score_columns` (4, None) | the same | |
| DETR | (1, n, 4) `cxcywh`, `input_share` | (1, n, classes + 1), `softmax`, `background` the last | |
| torchvision | (n, 4) `xyxy`, `batch_axis` False | (n,) | (n,), 0 is the background |
| TensorFlow | (1, n, 4) `yxyx`, `input_share` | (1, n) | (1, n) numbers from 1; `count` (1,) |
"""

import math
from dataclasses import asdict, dataclass
from typing import Literal, get_args, get_origin, get_type_hints

from verifier.base.errors import UsageError, shown


@dataclass(frozen=True)
class OnnxInput:
    """From an image to the input of the network: value = (pixel / divide_by - mean) / deviation, per channel.

    Attributes:
        size: height and width of the input; None: those of each image.
        resize: "stretch" to the size, or keep the shape of the image and fill the rest (letterbox), with the image in
            the centre or in the upper left corner.
        fill: pixel value of the rest.
        interpolation: how pixels between pixels are made.
        channels: their order in the input.
        axes: "NCHW" or "NHWC" with, "CHW" or "HWC" without an axis for the batch.
        divide_by, mean, deviation: the normalisation; the last two in the order of `channels`.
        name: of the input; None: the only one.

    Raises:
        UsageError: a choice that does not exist, or a number out of range.
    """

    size: tuple[int, int] | None
    resize: Literal["stretch", "letterbox_centre", "letterbox_corner"] = "stretch"
    fill: int = 114
    interpolation: Literal["linear", "nearest", "area", "cubic"] = "linear"
    channels: Literal["RGB", "BGR"] = "RGB"
    axes: Literal["NCHW", "NHWC", "CHW", "HWC"] = "NCHW"
    type: Literal["float32", "float16", "uint8"] = "float32"
    divide_by: float = 255.0
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    deviation: tuple[float, float, float] = (1.0, 1.0, 1.0)
    name: str | None = None

    def __post_init__(self) -> None:
        _check_choices(self)
        if self.size is not None and (len(self.size) != 2 or not all(1 <= number <= 16384 for number in self.size)):
            raise UsageError(f"input size: expected height and width from 1 to 16384 pixels, got {self.size}")
        if not 0 <= self.fill <= 255:
            raise UsageError(f"fill: expected a pixel value from 0 to 255, got {self.fill}")
        if len(self.mean) != 3 or len(self.deviation) != 3 or not all(map(math.isfinite, self.mean)):
            raise UsageError("mean and deviation have one finite number for each of three channels")
        if not all(0 < value < math.inf for value in (self.divide_by, *self.deviation)):
            raise UsageError("divide_by and deviation are positive")
        if self.type == "uint8" and (self.divide_by, self.mean, self.deviation) != (1, (0, 0, 0), (1, 1, 1)):
            raise UsageError("an input of uint8 takes the pixels as they are: divide_by 1, mean 0, deviation 1")

    @property
    def batch_axis(self) -> bool:
        """Whether the input has one."""
        return self.axes[0] == "N"


@dataclass(frozen=True)
class OnnxOutput:
    """From the output of the network to detections. n is the number of rows, the network's candidates.

    Attributes:
        boxes, scores, labels: names of outputs; several may be the same. Without `labels` the column of a score is
            its class.
        lowest_score: rows below are no detections.
        batch_axis: whether every output has a leading axis for the batch.
        transposed: whether `boxes` (and `scores`, if it is two-dimensional) are (columns, n) and not (n, columns).
        box_columns: the four numbers of a box in `boxes`, in the order of `box_format`.
        box_format: corners ("xyxy", "yxyx"), left top width height ("xywh"), centre width height ("cxcywh").
        box_unit: pixels of the input or of the image, or shares (0 to 1) of the input's or image's width and height.
        score_columns: [first, end) in `scores`, end None for all the rest; a one-dimensional output is one column.
        objectness_column: in `scores`; it multiplies every class score.
        label_column: in `labels`, where it is two-dimensional.
        activation: what turns the score columns (and the objectness, unless softmax) into scores.
        background: number of the class that stands for nothing: never reported.
        class_numbers: the number the network has for each class; None: 0, 1, 2, ... without the background.
        others: what becomes of numbers that are no class: an "error", or to "ignore". A row whose best class is
            ignored is not reported as its second best.
        per_row: report the "best" class of a row, or "each" class that reaches the lowest score.
        suppression_iou: overlap above which the surest detection of a class stays alone; None: the network does it.
        suppression_per_class: whether only detections of one class suppress each other.
        most: at most so many detections of an image, the surest; None: all.
        clip: cut the boxes to the image.
        count: output with the number of rows that are filled; the rest is not looked at.

    Raises:
        UsageError: a choice that does not exist or does not fit the others, or a number out of range.
    """

    boxes: str
    scores: str
    lowest_score: float
    labels: str | None = None
    batch_axis: bool = True
    transposed: bool = False
    box_columns: tuple[int, int, int, int] = (0, 1, 2, 3)
    box_format: Literal["xyxy", "xywh", "cxcywh", "yxyx"] = "xyxy"
    box_unit: Literal["input_pixels", "input_share", "image_pixels", "image_share"] = "input_pixels"
    score_columns: tuple[int, int | None] = (0, None)
    objectness_column: int | None = None
    label_column: int = 0
    activation: Literal["none", "sigmoid", "softmax"] = "none"
    background: int | None = None
    class_numbers: tuple[int, ...] | None = None
    others: Literal["error", "ignore"] = "error"
    per_row: Literal["best", "each"] = "best"
    suppression_iou: float | None = None
    suppression_per_class: bool = True
    most: int | None = None
    clip: bool = False
    count: str | None = None

    def __post_init__(self) -> None:
        _check_choices(self)
        first, end = self.score_columns
        columns = [*self.box_columns, first, self.label_column, self.objectness_column or 0]
        if len(set(self.box_columns)) != 4 or min(columns) < 0 or (end is not None and end <= first):
            raise UsageError("columns count from 0; a box has four different ones, and scores at least one")
        if not math.isfinite(self.lowest_score):
            raise UsageError(f"the lowest score must be a finite number, got {self.lowest_score}")
        if self.suppression_iou is not None and not 0 <= self.suppression_iou <= 1:
            raise UsageError(f"an IoU lies in [0, 1], got {self.suppression_iou:g}")
        if self.most is not None and self.most < 1:
            raise UsageError(f"expected at least one detection of an image, got {self.most}")
        if self.labels is not None and (self.per_row == "each" or self.activation == "softmax"):
            raise UsageError("with an output of labels a row has one score: no per_row 'each', no softmax")
        numbers = self.class_numbers
        if numbers is not None and (len(set(numbers)) != len(numbers) or self.background in numbers):
            raise UsageError("a class number is given twice, or is that of the background")

    @property
    def names(self) -> tuple[str, ...]:
        """The outputs that are read, each once."""
        given = (self.boxes, self.scores, self.labels, self.count)
        return tuple(dict.fromkeys(name for name in given if name is not None))

    def numbers(self, classes: int) -> tuple[int, ...]:
        """The network's number of each of so many classes.

        Raises:
            UsageError: `class_numbers` has another length.
        """
        if self.class_numbers is None:
            free = (number for number in range(classes + 1) if number != self.background)
            return tuple(free)[:classes]
        if len(self.class_numbers) != classes:
            raise UsageError(f"{len(self.class_numbers)} class numbers for {classes} classes")
        return self.class_numbers


@dataclass(frozen=True)
class OnnxLayout:
    """Both sides of a network."""

    input: OnnxInput
    output: OnnxOutput

    def record(self) -> dict[str, object]:
        """Every choice as JSON values."""
        sides = {"input": asdict(self.input), "output": asdict(self.output)}
        return {
            side: {name: list(value) if isinstance(value, tuple) else value for name, value in choices.items()}
            for side, choices in sides.items()
        }


def _check_choices(settings: OnnxInput | OnnxOutput) -> None:
    for name, hint in get_type_hints(type(settings)).items():
        if get_origin(hint) is Literal and (value := getattr(settings, name)) not in get_args(hint):
            raise UsageError(f"{name}: expected one of {', '.join(get_args(hint))}, got {shown(value)}")
