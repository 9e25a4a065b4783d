"""A course: one log as the simulated vehicle meets it, with everything projected onto its path.

After the Pathifier (Pezzementi et al. 2021, Sec. 6.2) the world is one-dimensional. The vehicle is locked to the
path, the images are positions on it, and a detection in an image is a distance along the path to where the vehicle
would come within the control radius of what was detected.
"""

from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Course:
    """One log on its path: what one source of detections reports, and what is truly there.

    Attributes:
        positive: a person stands where the vehicle must stop. In a negative log every stop is needless.
        image_s_m: (I,) arc length along the path of each image's pose, non-decreasing; I >= 1.
        image_time_s: (I,) when each image was recorded, non-decreasing. The simulation does not use it.
        end_s_m: arc length at which the path ends, at or beyond the last image.
        detection_image: (D,) int64 the image of each detection.
        detection_distance_m: (D,) pathified distance from that image's pose, >= 0: the arc length from there to the
            first point ahead within the control radius; 0 where the pose lies within it, inf where no point does.
        detection_sensitivity: (D,) standardized: expected false positives per image at the detection's strength, so
            smaller is stronger. At level tau those with a sensitivity <= tau count. inf: never.
        truth_image: (T,) int64 as `detection_image`, for people that are there. Empty in a negative log.
        truth_distance_m: (T,) as `detection_distance_m`.

    Raises:
        ValueError: a shape, a type or a value is not as said.
    """

    positive: bool
    image_s_m: Floats
    image_time_s: Floats
    end_s_m: float
    detection_image: Ints
    detection_distance_m: Floats
    detection_sensitivity: Floats
    truth_image: Ints
    truth_distance_m: Floats

    def __post_init__(self) -> None:
        images, detections, people = len(self.image_s_m), len(self.detection_image), len(self.truth_image)
        if images == 0:
            raise ValueError("a course needs at least one image")
        for name, size in (("image_s_m", images), ("image_time_s", images)):
            _check_floats(name, getattr(self, name), size)
            if not np.isfinite(getattr(self, name)).all() or np.any(np.diff(getattr(self, name)) < 0):
                raise ValueError(f"{name} must be finite and never decrease")
        if not (np.isfinite(self.end_s_m) and self.end_s_m >= self.image_s_m[-1]):
            raise ValueError(f"the path ends at {self.end_s_m}, before the last image at {self.image_s_m[-1]}")
        for name, size in (
            ("detection_distance_m", detections),
            ("detection_sensitivity", detections),
            ("truth_distance_m", people),
        ):
            _check_floats(name, getattr(self, name), size)
            if not np.all(getattr(self, name) >= 0):
                raise ValueError(f"{name} must hold numbers from 0")
        for name in ("detection_image", "truth_image"):
            _check_images(name, getattr(self, name), images)
        if not self.positive and people:
            raise ValueError("a negative log has no people on its path")

    @property
    def finish_m(self) -> float:
        """Where a run ends that was not ended by a stop: the end of the path, in negative logs the last image."""
        return float(self.end_s_m if self.positive else self.image_s_m[-1])


def _check_floats(name: str, values: Floats, size: int) -> None:
    if values.shape != (size,) or values.dtype != np.float64:
        raise ValueError(f"{name} must have shape ({size},) and type float64, got {values.shape} {values.dtype}")


def _check_images(name: str, images: Ints, count: int) -> None:
    if images.ndim != 1 or images.dtype != np.int64:
        raise ValueError(f"{name} must have one axis and type int64, got {images.shape} {images.dtype}")
    if len(images) and (images.min() < 0 or images.max() >= count):
        raise ValueError(f"{name} must lie in 0..{count - 1}")
