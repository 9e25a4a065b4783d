"""How far away an object is: the measures that bins, filters and tables name.

| measure | definition, from the centre (x, y, z) of the box in the ego frame |
|---|---|
| `euclidean_3d` | sqrt(x² + y² + z²): Badithela et al. 2022 ("Euclidean distance of the object to the ego") |
| `ground_plane` | sqrt(x² + y²): the nuScenes detection benchmark (Caesar et al. 2020, section 3.1) |
| `forward` | x: the distance along the road; negative behind the ego |
| `given` | what the data set itself says |
"""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import UsageError, unknown_name
from verifier.perception.detections.columns import Boxes
from verifier.perception.settings import Measure

MEASURES: tuple[Measure, ...] = get_args(Measure)


def distance(boxes: Boxes, measure: str) -> NDArray[np.float64]:
    """(n,) metres; NaN for an object without a box in the ego frame, or with `given`, without a given distance.

    Raises:
        UsageError: there is no such measure.
    """
    if measure not in MEASURES:
        message, hint = unknown_name("distance measure", measure, MEASURES)
        raise UsageError(f"{message}\n  hint: {hint}")
    source = boxes.distance_m if measure == "given" else boxes.box_3d
    if source is None:
        return np.full(len(boxes), np.nan)
    if measure == "given":
        return source
    if measure == "forward":
        return source[:, 0]
    axes = 2 if measure == "ground_plane" else 3
    return np.asarray(np.linalg.norm(source[:, :axes], axis=1))
