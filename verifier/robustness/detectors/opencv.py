"""The people detectors that come with OpenCV: classical, without a neural network, the same on every machine.

* `HogPeople`: histograms of oriented gradients and a linear support vector machine (Dalal and Triggs, CVPR 2005).
  The score is the margin of the window: its signed distance from the separating plane.
* `CascadePeople`: a boosted cascade of Haar features (Viola and Jones, CVPR 2001). The score is the sum of the last
  stage, of the surest window of a group.

Both slide a window over the image at many scales. OpenCV 5 has neither.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.errors import InputError, LimitError, Place, UsageError, shown
from verifier.base.files import read_bytes
from verifier.base.libraries import library
from verifier.base.numbers import significant
from verifier.robustness.detectors.protocol import MOST_PIXELS, NOTHING, Detections, Image, suppressed, surest_first

HOG_WINDOW = (64, 128)
"""Width and height of the window of OpenCV's people detector, in pixels."""
LARGEST_ENLARGEMENT = 8.0
FINEST_STEP = 1.005
"""Of a pyramid: already 140 scales for each doubling, and finer ones would take hours."""


def _check_step(step: float) -> None:
    if not FINEST_STEP <= step <= 10:
        raise UsageError(f"the pyramid step lies in [{FINEST_STEP:g}, 10], got {significant(step, 9)}")


@dataclass(frozen=True)
class HogSettings:
    """How the window slides and what becomes of what it finds.

    Attributes:
        enlargement: the image is scaled by this first (linear interpolation). The window holds people of about 96
            pixels, so that 1 finds nobody smaller.
        stride_px: step of the window in both directions, a multiple of 8.
        pyramid_step: ratio of successive scales, from `FINEST_STEP`.
        lowest_score: of a window; detections below are not reported. 0 is the separating plane.
        suppression_iou: of windows that overlap by more, only the surest stays (`protocol.suppressed`).
        margin: part of the window's width and height, on each side, that is cut off to get the rectangle of the
            person: the training windows have 16 pixels of margin on all four sides (Dalal and Triggs, section 4).

    Raises:
        UsageError: a number is out of range.
    """

    enlargement: float = 1.0
    stride_px: int = 8
    pyramid_step: float = 1.05
    lowest_score: float = 0.0
    suppression_iou: float = 0.5
    margin: tuple[float, float] = (16 / 64, 16 / 128)

    def __post_init__(self) -> None:
        if not 0 < self.enlargement <= LARGEST_ENLARGEMENT:
            raise UsageError(f"the enlargement lies in (0, {LARGEST_ENLARGEMENT:g}], got {self.enlargement:g}")
        if self.stride_px < 1 or self.stride_px % 8:
            raise UsageError(f"the stride is a multiple of 8 pixels, got {self.stride_px}")
        _check_step(self.pyramid_step)
        if not np.isfinite(self.lowest_score) or not 0 <= self.suppression_iou <= 1:
            raise UsageError("expected a finite lowest score and an IoU in [0, 1]")
        if not all(0 <= value < 0.5 for value in self.margin) or len(self.margin) != 2:
            raise UsageError(f"the margins, of width and height, lie in [0, 0.5), got {self.margin}")


@dataclass(frozen=True)
class HogPeople:
    """OpenCV's default people detector, `HOGDescriptor` with `getDefaultPeopleDetector`."""

    settings: HogSettings = HogSettings()
    class_name: str = "person"

    def __post_init__(self) -> None:
        _opencv()

    @property
    def classes(self) -> tuple[str, ...]:
        """One class."""
        return (self.class_name,)

    @property
    def identity(self) -> dict[str, object]:
        """Settings and the version of OpenCV, which holds the weights."""
        numbers = {name: float(value) for name, value in asdict(self.settings).items() if name != "margin"}
        settings = numbers | {"margin": [float(value) for value in self.settings.margin]}
        return {"detector": "opencv_hog_people", "opencv": _opencv().__version__, "settings": settings}

    def __call__(self, images: Sequence[Image]) -> list[Detections]:
        """One image after another; an image smaller than the window holds nobody.

        Raises:
            LimitError: an enlarged image would have more than `MOST_PIXELS`.
        """
        cv2 = _opencv()
        return [self._detect(cv2, image) for image in images]

    def _detect(self, cv2: Any, image: Image) -> Detections:
        settings = self.settings
        height, width = (round(side * settings.enlargement) for side in image.size)
        largest = min(width / HOG_WINDOW[0], height / HOG_WINDOW[1])
        if largest < 1:
            return NOTHING
        if height * width > MOST_PIXELS:
            raise LimitError(
                f"image {shown(image.name)}: enlarged {settings.enlargement:g} times it has {height * width} pixels; "
                f"at most {MOST_PIXELS} are searched"
            )
        scaled = np.ascontiguousarray(image.pixels[:, :, ::-1])
        if (height, width) != image.size:
            scaled = cv2.resize(scaled, (width, height), interpolation=cv2.INTER_LINEAR)
        stride = (settings.stride_px, settings.stride_px)
        descriptor = self._descriptor(cv2, largest)
        # Grouping is left to us: OpenCV's own averages the boxes and gives the mean the score of one of them.
        windows, margin = descriptor.detectMultiScale(
            scaled, settings.lowest_score, stride, (0, 0), settings.pyramid_step, 0
        )
        box = _corners(windows) * np.tile([image.size[1] / width, image.size[0] / height], 2)
        size = np.tile(box[:, 2:] - box[:, :2], 2)
        inset = np.array([*settings.margin, *(-value for value in settings.margin)])
        score = np.asarray(margin, dtype=np.float64).reshape(-1)
        detections = _detections(box + size * inset, score)
        # OpenCV lets a window pass at its threshold in single precision; the threshold here is the one stated.
        return suppressed(detections.take(detections.score >= settings.lowest_score), settings.suppression_iou)

    def _descriptor(self, cv2: Any, largest: float) -> Any:
        """OpenCV's own descriptor, with as many scales as the largest window needs: it stops at 64 by default."""
        scales = int(math.log(largest) / math.log(self.settings.pyramid_step)) + 2
        descriptor = cv2.HOGDescriptor(HOG_WINDOW, (16, 16), (8, 8), (8, 8), 9, 1, -1.0, 0, 0.2, True, scales, False)
        descriptor.setSVMDetector(cv2.HOGDescriptor_getDefaultPeopleDetector())
        return descriptor


@dataclass(frozen=True)
class CascadeSettings:
    """How the window slides and what becomes of what it finds.

    Attributes:
        pyramid_step: ratio of successive scales, from `FINEST_STEP`.
        neighbours: a group needs at least so many windows beside the first; 0 reports every window by itself.
        smallest_px: least width and height of a window; (0, 0) is the window of the cascade.

    Raises:
        UsageError: a number is out of range.
    """

    pyramid_step: float = 1.05
    neighbours: int = 3
    smallest_px: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        _check_step(self.pyramid_step)
        if self.neighbours < 0 or len(self.smallest_px) != 2 or min(self.smallest_px) < 0:
            raise UsageError("the number of neighbours and the least size are not negative")


@dataclass(frozen=True)
class CascadePeople:
    """A cascade of OpenCV; without a file the one for whole bodies that OpenCV brings.

    Raises:
        InputError: the file is missing or holds no cascade.
    """

    file: Path | None = None
    settings: CascadeSettings = CascadeSettings()
    class_name: str = "person"
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        raw = read_bytes(self._path)
        object.__setattr__(self, "digest", sha256(raw).hexdigest())
        self._classifier()

    @property
    def classes(self) -> tuple[str, ...]:
        """One class."""
        return (self.class_name,)

    @property
    def identity(self) -> dict[str, object]:
        """Settings, the content of the cascade, and the version of OpenCV."""
        settings = asdict(self.settings) | {"smallest_px": list(self.settings.smallest_px)}
        version = _opencv().__version__
        return {"detector": "opencv_cascade", "opencv": version, "sha256": self.digest, "settings": settings}

    def __call__(self, images: Sequence[Image]) -> list[Detections]:
        """One image after another, in grey."""
        cv2, classifier = _opencv(), self._classifier()
        return [self._detect(cv2, classifier, image) for image in images]

    def _detect(self, cv2: Any, classifier: Any, image: Image) -> Detections:
        settings = self.settings
        windows, _, weight = classifier.detectMultiScale3(
            cv2.cvtColor(image.pixels, cv2.COLOR_RGB2GRAY),
            scaleFactor=settings.pyramid_step,
            minNeighbors=settings.neighbours,
            minSize=settings.smallest_px,
            outputRejectLevels=True,
        )
        detections = _detections(_corners(windows), np.asarray(weight, dtype=np.float64).reshape(-1))
        return detections.take(surest_first(detections))

    @property
    def _path(self) -> Path:
        return self.file or Path(_opencv().data.haarcascades) / "haarcascade_fullbody.xml"

    def _classifier(self) -> Any:
        cv2 = _opencv()
        place = Place(str(self._path))
        classifier = cv2.CascadeClassifier()
        try:
            loaded = classifier.load(str(self._path))
        except (cv2.error, SystemError):
            loaded = False
        if not loaded or classifier.empty():
            raise InputError("not a cascade of OpenCV", place)
        return classifier


def _opencv() -> Any:
    """OpenCV with its classical detectors."""
    cv2 = library("cv2")
    if not hasattr(cv2, "HOGDescriptor") or not hasattr(cv2, "CascadeClassifier"):
        raise UsageError(
            f"OpenCV {cv2.__version__} has no people detectors: they were taken out in version 5\n"
            "  hint: pip install 'opencv-python-headless<5'"
        )
    return cv2


def _corners(windows: Any) -> np.ndarray[Any, Any]:
    """(n, 4) left, top, right, bottom of rectangles x, y, width, height."""
    box = np.asarray(windows, dtype=np.float64).reshape(-1, 4)
    return np.hstack([box[:, :2], box[:, :2] + box[:, 2:]])


def _detections(box: np.ndarray[Any, Any], score: np.ndarray[Any, Any]) -> Detections:
    return Detections(box, score, np.zeros(len(score), dtype=np.int64))
