"""The paths that vehicles drove, extended straight ahead, for all logs at once.

Pezzementi et al. 2021, section 6.2.1: the path is the recorded positions, here joined by straight segments; because a
positive log ends where the vehicle stops, it goes on for 10 m in a straight line, in the direction of the derivative
at the last point of a cubic spline fitted to each axis.

The paper leaves open over what the spline is fitted. Here its parameter is the length of the chord between knots, not
time: where a vehicle has come to rest, the derivative by time says nothing. Knots are poses at least
`knot_spacing_m` apart, counted from the last one backwards, so that the noise of positions taken at rest or close
together does not turn the direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats
from verifier.base.errors import InputError, shown
from verifier.closedloop.logs import Logs

LONGEST_M = 1e6
"""Of any radius or extension; the squares of greater ones swallow the positions."""


@dataclass(frozen=True)
class PathSettings:
    """How a path goes on after its last pose.

    Attributes:
        extension_m: length of the straight piece (the paper's 10 m); 0 for none.
        knot_spacing_m: least distance between knots of the spline.

    Raises:
        ValueError: a length is negative or beyond `LONGEST_M`, or the spacing is 0.
    """

    extension_m: float = 10.0
    knot_spacing_m: float = 0.5

    def __post_init__(self) -> None:
        if not (0 <= self.extension_m <= LONGEST_M and 0 < self.knot_spacing_m <= LONGEST_M):
            raise ValueError(f"expected lengths up to {LONGEST_M:g} m, the spacing above 0, got {self}")


@dataclass(frozen=True, eq=False)
class Paths:
    """The segment of the path that begins at each image: to the next image, or from the last one to the end.

    Attributes:
        image_log: (I,) as in `Logs`.
        start_m: (I, 2) the image's position.
        direction: (I, 2) unit vector; zero for a segment without length.
        length_m: (I,) 0 where the vehicle stood between two images.
        image_s_m: (I,) arc position of the image: the sum of the lengths before it in its log.
        end_s_m: (L,) arc position of the end of the path.
    """

    image_log: NDArray[np.int64]
    start_m: Floats
    direction: Floats
    length_m: Floats
    image_s_m: Floats
    end_s_m: Floats


def paths_of(logs: Logs, settings: PathSettings | None = None) -> Paths:
    """The paths of all logs.

    A log whose knots are fewer than two (one image, a vehicle at rest) goes on in the direction of its last heading.

    Raises:
        InputError: such a log, and the logs have no headings.
    """
    settings = settings or PathSettings()
    last = logs.first_image[1:] - 1
    step = np.roll(logs.position_m, -1, axis=0) - logs.position_m
    length = np.hypot(step[:, 0], step[:, 1])
    direction = np.divide(step, length[:, None], out=np.zeros_like(step), where=length[:, None] > 0)
    length[last] = settings.extension_m
    for log, image in enumerate(last.tolist()):
        direction[image] = _direction(logs, log, settings) if settings.extension_m else 0.0
    image_s = np.empty(logs.image_count)
    for first, end in zip(logs.first_image[:-1].tolist(), logs.first_image[1:].tolist(), strict=True):
        image_s[first] = 0.0
        np.cumsum(length[first : end - 1], out=image_s[first + 1 : end])
    return Paths(logs.image_log, logs.position_m, direction, length, image_s, image_s[last] + settings.extension_m)


def _direction(logs: Logs, log: int, settings: PathSettings) -> Floats:
    """(2,) unit vector in which the path goes on."""
    from scipy.interpolate import CubicSpline

    first, end = (int(each) for each in logs.first_image[log : log + 2])
    knots = _knots(logs.position_m[first:end], settings.knot_spacing_m)
    if len(knots) < 2:
        if logs.heading_rad is None:
            raise InputError(
                f"log {shown(logs.names[log])}: no two poses are {settings.knot_spacing_m:g} m apart, so that the "
                "direction in which the path goes on is not known",
                hint="give the headings of the images, leave the log out, or lower the spacing of the knots",
            )
        turn = float(logs.heading_rad[end - 1])
        return np.array([math.cos(turn), math.sin(turn)])
    chord = np.hypot(*np.diff(knots, axis=0).T)
    along = np.concatenate([[0.0], np.cumsum(chord)])
    if len(knots) == 2:
        derivative = knots[1] - knots[0]
    else:
        derivative = CubicSpline(along, knots - knots[-1], bc_type="not-a-knot")(along[-1], 1)
    found: Floats = derivative / math.hypot(*derivative)
    return found


def _knots(position_m: Floats, spacing_m: float) -> Floats:
    """(k, 2) the last position and, going back, each one at least the spacing from the knot after it."""
    points = position_m.tolist()
    knots = [points[-1]]
    for point in reversed(points):
        if math.dist(point, knots[-1]) >= spacing_m:
            knots.append(point)
    return np.array(knots[::-1])
