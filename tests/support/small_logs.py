"""Small logs: made by hand, drawn at random, and the definitions of the context levels as plain Python."""

import math
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from verifier.closedloop.logs import Detections, Logs


def made_logs(drives, people=(), reports=(), headings=None, **more):
    """Logs from `drives` {name: (positive, [(x, y), ...])} at one image a second, `people` [(image, x, y)] and
    `reports` {source: [(image, strength, x, y)]} or one list, for the source "a"; images are numbered through."""
    points = [point for _, drive in drives.values() for point in drive]
    log = [number for number, (_, drive) in enumerate(drives.values()) for _ in drive]
    time = [second for _, drive in drives.values() for second in range(len(drive))]
    sources = reports if isinstance(reports, dict) else {"a": reports}
    seen = np.array(people, dtype=float).reshape(-1, 3)
    fields = {
        "names": tuple(drives),
        "positive": np.array([positive for positive, _ in drives.values()], dtype=bool),
        "image_log": np.array(log, dtype=np.int64),
        "time_s": np.array(time, dtype=float),
        "position_m": np.array(points, dtype=float).reshape(-1, 2),
        "heading_rad": None if headings is None else np.array(headings, dtype=float),
        "person_image": seen[:, 0].astype(np.int64),
        "person_m": seen[:, 1:],
        "detections": {name: made_detections(rows) for name, rows in sources.items()},
    }
    return Logs(**(fields | more))


def made_detections(rows):
    table = np.array(rows, dtype=float).reshape(-1, 4)
    return Detections(table[:, 0].astype(np.int64), table[:, 1], table[:, 2:])


def straight(length, start=0):
    """Poses every metre along x."""
    return [(start + x, 0) for x in range(length)]


# The five images of the log "person" are driven towards somebody at (5, 0); the log "nobody" is driven the same way.
# With a control radius of 2 m that person is 3, 2, 1, 0, 0 m ahead. Reports (strength, place, pathified distance):
#
#   image      person                          image      nobody
#   0          -                               5          .6 (3, 0)     1
#   1          .9 (5, 0)       2               6          .7 (5, 0)     2
#   2          .5 (4.5, 0)     0.5             7          .4 (6.5, 0)   2.5
#   3          .8 (9, 0)       4               8          -
#   4          .3 (5, 0.5)     0               9          .95 (4, 10)   none
HAND = made_logs(
    {"person": (True, straight(5)), "nobody": (False, straight(5))},
    [(image, 5, 0) for image in range(5)],
    [
        (1, 0.9, 5, 0),
        (2, 0.5, 4.5, 0),
        (3, 0.8, 9, 0),
        (4, 0.3, 5, 0.5),
        (5, 0.6, 3, 0),
        (6, 0.7, 5, 0),
        (7, 0.4, 6.5, 0),
        (9, 0.95, 4, 10),
    ],
)


# Random logs. Poses lie on a lattice and every step is along an axis, so that distances along the path are exact.

STEP = st.sampled_from([(1, 0), (2, 0), (0, 1), (0, 2), (-1, 0), (0, -1), (0, 0)])
AROUND = st.tuples(st.integers(-8, 8), st.integers(-8, 8))
STRENGTHS = st.sampled_from([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])


@st.composite
def lattice_drives(draw, most=8):
    point, drive = (0, 0), [(0, 0)]
    for step_x, step_y in draw(st.lists(STEP, min_size=0, max_size=most - 1)):
        point = (point[0] + step_x, point[1] + step_y)
        drive.append(point)
    return drive


@st.composite
def random_logs(draw):
    """One to four logs; people in the positive ones stand near the path, negative logs have none."""
    count = draw(st.integers(1, 4))
    drives = {f"log {number}": (draw(st.booleans()), draw(lattice_drives())) for number in range(count)}
    places = [(positive, point) for positive, drive in drives.values() for point in drive]
    people, reports = [], []
    for image, (positive, (x, y)) in enumerate(places):
        if positive:
            people += [(image, x + dx, y + dy) for dx, dy in draw(st.lists(AROUND, max_size=2))]
        for strength, (dx, dy) in draw(st.lists(st.tuples(STRENGTHS, AROUND), max_size=3)):
            reports.append((image, strength, x + dx, y + dy))
    return made_logs(drives, people, reports)


# Definitions.


def plain_path(points, image, end=None):
    """The corners of the path ahead of an image of one log."""
    return [tuple(point) for point in points[image:]] + ([tuple(end)] if end is not None else [])


def plain_distance(corners, point, radius):
    """Pathified distance by the quadratic equation |a + t (b - a) - p|^2 = r^2 on each piece; math.inf for none."""
    if math.dist(corners[0], point) <= radius:
        return 0.0
    before = 0.0
    for (ax, ay), (bx, by) in pairwise(corners):
        dx, dy, px, py = bx - ax, by - ay, ax - point[0], ay - point[1]
        square, half, rest = dx * dx + dy * dy, dx * px + dy * py, px * px + py * py - radius * radius
        if square:
            root = half * half - square * rest
            if root >= 0:
                enter, leave = (-half - math.sqrt(root)) / square, (-half + math.sqrt(root)) / square
                if enter <= 1 and leave >= 0:
                    return before + max(enter, 0.0) * math.sqrt(square)
        before += math.sqrt(square)
    return math.inf


def at_arc(corners, arc):
    """The point at an arc length along a polyline."""
    for a, b in pairwise(corners):
        length = math.dist(a, b)
        if length and arc <= length:
            return (a[0] + (b[0] - a[0]) * arc / length, a[1] + (b[1] - a[1]) * arc / length)
        arc -= length
    return corners[-1]
