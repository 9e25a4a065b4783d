"""Pathified distance: how far ahead along its path the vehicle may drive before an obstacle is too close.

Pezzementi et al. 2021, section 6.2.2. An obstacle is a disc of the *control radius* around a detected point. The
pathified distance of a detection is the length of the path from the pose of its image to the first point of the path
ahead that lies in the disc: 0 when the pose itself does, infinite when the path never enters. The disc is closed: a
path that only touches it enters. Segments and discs are intersected exactly, so that an obstacle that is grazed
between two poses counts, too (the paper neglects it).

The paper gives no number for the control radius, nor for the *safety radius* within which it speaks of a violation;
it only says that the control radius is the greater. Both have to be given, as `Radii`.

Pairs of points that stand close to each other, within groups.

The paths that vehicles drove, extended straight ahead, for all logs at once.

Pezzementi et al. 2021, section 6.2.1: the path is the recorded positions, here joined by straight segments; because a
positive log ends where the vehicle stops, it goes on for 10 m in a straight line, in the direction of the derivative
at the last point of a cubic spline fitted to each axis.

The paper leaves open over what the spline is fitted. Here its parameter is the length of the chord between knots, not
time: where a vehicle has come to rest, the derivative by time says nothing. Knots are poses at least
`knot_spacing_m` apart, counted from the last one backwards, so that the noise of positions taken at rest or close
together does not turn the direction.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import InputError, shown
from verifier.closedloop.logs import Logs, Standardizer
from verifier.closedloop.traces import Course

LONGEST_M = 1e6
"""Of any radius or extension; the squares of greater ones swallow the positions."""


@dataclass(frozen=True)
class PathSettings:
    """How a path goes on after its last pose.

    Attributes:
        extension_m: length of the straight piece (the paper's 10 m); 0 for none.
        knot_spacing_m: least distance between knots of the spline.
    """

    extension_m: float = 10.0
    knot_spacing_m: float = 0.5


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

    image_log: Ints
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

    first, end = (int(number) for number in logs.first_image[log : log + 2])
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
    direction: Floats = derivative / math.hypot(*derivative)
    return direction


def _knots(position_m: Floats, spacing_m: float) -> Floats:
    """(k, 2) the last position and, going back, each one at least the spacing from the knot after it."""
    points = position_m.tolist()
    knots = [points[-1]]
    for point in reversed(points):
        if math.dist(point, knots[-1]) >= spacing_m:
            knots.append(point)
    return np.array(knots[::-1])


BLOCK = 2_000_000
"""Pairs that are held at a time, unless one point alone has more."""
SLACK = 1e-9
"""The search looks a little further than asked, for whoever takes the pairs decides exactly."""


def near_pairs(
    group: Ints, point_m: Floats, other_group: Ints, other_m: Floats, reach_m: float
) -> Iterator[tuple[Ints, Ints]]:
    """Index pairs (of `point_m`, of `other_m`) of one group not further apart than `reach_m`, in blocks.

    Every such pair comes once; a few that stand a rounding error further apart may come, too. Points of NaN are near
    nothing.

    Args:
        group: (n,) not negative.
        point_m: (n, 2).
        other_group: (m,) not negative.
        other_m: (m, 2).
        reach_m: finite, not negative.
    """
    from scipy.spatial import cKDTree

    mine, theirs = (np.flatnonzero(np.isfinite(array).all(axis=1)) for array in (point_m, other_m))
    if not len(mine) or not len(theirs):
        return
    # Distances are taken from a point in the middle: coordinates of a map have millions of metres. The third
    # coordinate keeps groups further apart than the reach.
    origin = (other_m[theirs].min(axis=0) + other_m[theirs].max(axis=0)) / 2
    lift = 2 * reach_m + 1.0
    radius = reach_m * (1 + SLACK) + SLACK
    tree = cKDTree(np.column_stack([other_m[theirs] - origin, other_group[theirs] * lift]))
    place = np.column_stack([point_m[mine] - origin, group[mine] * lift])
    total = np.cumsum(tree.query_ball_point(place, radius, return_length=True))
    start = 0
    while start < len(mine):
        before = total[start - 1] if start else 0
        end = max(int(np.searchsorted(total, before + BLOCK, side="right")), start + 1)
        near = cKDTree(place[start:end]).sparse_distance_matrix(tree, radius, output_type="ndarray")
        yield mine[start:end][near["i"]], theirs[near["j"]]
        start = end


@dataclass(frozen=True)
class Radii:
    """How close to a person the vehicle is to come.

    Attributes:
        control_m: the controller keeps this distance.
        safety_m: coming closer than this is a violation. Less than the control radius.

    Raises:
        ValueError: not 0 < safety_m < control_m <= `LONGEST_M`.
    """

    control_m: float
    safety_m: float

    def __post_init__(self) -> None:
        if not 0 < self.safety_m < self.control_m <= LONGEST_M:
            raise ValueError(
                f"expected 0 < safety radius < control radius <= {LONGEST_M:g} m, "
                f"got {self.safety_m:g} and {self.control_m:g}"
            )


def pathified_distance(paths: Paths, image: Ints, point_m: Floats, radius_m: float) -> Floats:
    """(n,) pathified distances; infinite where the path ahead never comes within the radius.

    Args:
        paths: of all logs.
        image: (n,) the image in which each point is seen.
        point_m: (n, 2) in the ground plane; a point of NaN is in nobody's way.
        radius_m: of the disc, above 0 and at most `LONGEST_M`.
    """
    nearest = np.full(len(image), np.inf)
    for rows, segments in _candidates(paths, image, point_m, radius_m):
        ahead = segments >= image[rows]
        rows, segments = rows[ahead], segments[ahead]
        entry = _entry(paths, segments, point_m[rows], radius_m)
        distance = paths.image_s_m[segments] - paths.image_s_m[image[rows]] + entry
        np.minimum.at(nearest, rows, distance)
    away = point_m - paths.start_m[image]
    nearest[np.einsum("ni,ni->n", away, away) <= radius_m * radius_m] = 0.0
    return nearest


def _candidates(paths: Paths, image: Ints, point_m: Floats, radius_m: float) -> Iterator[tuple[Ints, Ints]]:
    """Pairs (point, segment of the same log) that are near enough to intersect; a pair may come more than once."""
    moving = np.flatnonzero(paths.length_m > 0)
    if not len(moving):
        return
    length = paths.length_m[moving]
    piece_m = max(radius_m, float(length.mean()))  # so that there are at most twice as many pieces as segments
    pieces = np.ceil(length / piece_m).astype(np.int64)
    segment = np.repeat(moving, pieces)
    number = np.arange(len(segment)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    share = (number + 0.5) / np.repeat(pieces, pieces)
    middle = paths.start_m[segment] + (share * paths.length_m[segment])[:, None] * paths.direction[segment]
    half = float((length / pieces).max()) / 2
    pairs = near_pairs(paths.image_log[image], point_m, paths.image_log[segment], middle, radius_m + half)
    for rows, others in pairs:
        yield rows, segment[others]


def _entry(paths: Paths, segment: Ints, point_m: Floats, radius_m: float) -> Floats:
    """(n,) metres from the start of each segment to where it first lies in the disc; infinite: nowhere."""
    x, y = (point_m - paths.start_m[segment]).T
    along_x, along_y = paths.direction[segment].T
    along, aside = x * along_x + y * along_y, y * along_x - x * along_y
    inside = radius_m * radius_m - aside * aside
    half = np.sqrt(np.maximum(inside, 0.0))
    meets = (inside >= 0) & (along + half >= 0) & (along - half <= paths.length_m[segment])
    return np.where(meets, np.maximum(along - half, 0.0), np.inf)


def people_ahead(logs: Logs, paths: Paths, control_radius_m: float) -> Floats:
    """(P,) pathified distances of the people.

    Raises:
        InputError: somebody stands in the way in a negative log, where every stop would count as needless.
    """
    ahead = pathified_distance(paths, logs.person_image, logs.person_m, control_radius_m)
    log = logs.image_log[logs.person_image]
    wrong = np.isfinite(ahead) & ~logs.positive[log]
    if wrong.any():
        row = int(wrong.argmax())
        image = int(logs.person_image[row] - logs.first_image[log[row]])
        raise InputError(
            f"log {shown(logs.names[log[row]])} is negative, but in its image {image} somebody blocks the path "
            f"{ahead[row]:g} m ahead (control radius {control_radius_m:g} m)",
            hint="a log with somebody in the way is positive: say so, or take a smaller control radius",
        )
    return ahead


def violation_m(logs: Logs, paths: Paths, safety_radius_m: float) -> Floats:
    """(L,) where along its path the vehicle first comes within the safety radius of a person; infinite: nowhere.

    People stand where the image shows them that is replayed there, the last one taken no further along the path. A
    vehicle that stops before this point has not violated the safety radius; one that stops behind it has.
    """
    ahead = pathified_distance(paths, logs.person_image, logs.person_m, safety_radius_m)
    until = np.append(paths.image_s_m[1:], np.inf)
    until[logs.first_image[1:] - 1] = np.inf
    place = paths.image_s_m[logs.person_image] + ahead
    along = np.full(logs.log_count, np.inf)
    shown_there = place < until[logs.person_image]
    np.minimum.at(along, logs.image_log[logs.person_image[shown_there]], place[shown_there])
    return along


def courses(
    logs: Logs, source: str, standardizer: Standardizer, control_radius_m: float, settings: PathSettings | None = None
) -> tuple[Course, ...]:
    """What the simulator needs of each log: the detections of one source, and the people, along the path.

    What never blocks the path is left out.

    Raises:
        UsageError: no such source.
        InputError: a negative log with somebody in the way; a path without direction, see `paths_of`.
    """
    detections = logs.source(source)
    paths = paths_of(logs, settings)
    ahead = pathified_distance(paths, detections.image, detections.point_m, control_radius_m)
    seen, seen_ends = _by_log(logs, detections.image, ahead)
    people = people_ahead(logs, paths, control_radius_m)
    there, there_ends = _by_log(logs, logs.person_image, people)
    strength = standardizer(detections.strength[seen])
    ends = zip(_slices(logs.first_image), _slices(seen_ends), _slices(there_ends), strict=True)
    return tuple(
        Course(
            positive=bool(logs.positive[log]),
            image_s_m=paths.image_s_m[images],
            end_s_m=float(paths.end_s_m[log]),
            detection_image=detections.image[seen[rows]] - images.start,
            detection_distance_m=ahead[seen[rows]],
            detection_sensitivity=strength[rows],
            truth_image=logs.person_image[there[sightings]] - images.start,
            truth_distance_m=people[there[sightings]],
        )
        for log, (images, rows, sightings) in enumerate(ends)
    )


def _by_log(logs: Logs, image: Ints, distance: Floats) -> tuple[Ints, Ints]:
    """The rows that block a path, in the order of their images, and where each log's rows begin (L + 1,)."""
    rows = np.argsort(image, kind="stable")
    rows = rows[np.isfinite(distance[rows])]
    return rows, np.searchsorted(image[rows], logs.first_image).astype(np.int64)


def _slices(starts: Ints) -> list[slice]:
    edges = starts.tolist()
    return [slice(low, high) for low, high in pairwise(edges)]
