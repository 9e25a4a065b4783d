"""Logs from FieldSAFE: a real tractor in a grass field, positions by RTK-GPS, people from an orthophoto.

Kragh et al. 2017, "FieldSAFE: dataset for obstacle detection in agriculture", Sensors 17(11). The drone that filmed
the field labels people and the tractor in the pixels of an orthophoto at 25 Hz; a matrix takes UTM coordinates to
pixels, [row; column; 1] = M [east; north; 1]. The tractor's GPS gives latitude and longitude on WGS 84.

There are no detections; some can be drawn from a measured confusion-by-distance file (`drawn_detections`). That is a
stand-in, not a measurement: it reports people, and nothing where nobody is, as often as the detector of the file did
at each distance, but it draws independently in every image. Real detectors miss the same person several images in a
row. What is drawn says so in the remarks of the logs.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import InputError, Place, UsageError, shown, unknown_error
from verifier.base.files import read_text
from verifier.base.tables import Kind, Table, read_table
from verifier.closedloop.logs import Detections, LogLimits, Logs, check_plausible
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.matrices import EMPTY, rates
from verifier.perception.detections.sources import read_source

PEOPLE: dict[str, Kind] = {"x": "number", "y": "number", "frame": "whole", "timestamp": "number", "lost": "flag"}
PEOPLE |= {"label": "text"}
FIXES: dict[str, Kind] = {"clock": "number", "lat": "number", "lon": "number"}
SLOWEST_MPS = 0.1
"""Below this a course over ground is noise, and the heading stays what it was."""
EQUATOR_M = 6378137.0
FLATTENING = 1 / 298.257223563
UTM_SCALE = 0.9996
UTM_EAST_M = 500_000.0


def fieldsafe_logs(
    people: str | Path,
    positions: str | Path,
    matrix: str | Path,
    every: int = 5,
    smoothing_s: float = 0.6,
    limits: LogLimits | None = None,
) -> Logs:
    """One log, "fieldsafe": every `every`-th frame (25 Hz) while the GPS runs, and the people in it.

    The tractor's position is the mean of the track, joined by straight lines between the fixes, over `smoothing_s`
    seconds around the frame: the fixes' clock jitters by some hundredths of a second, which at 2.4 m/s is several
    centimetres. Its heading is the direction of the derivative of that mean; at rest it keeps the last one. Positions
    are relative to that of the first image, x to the east, y to the north.

    The log is positive; cut it with `windows` and sort the pieces with `positive_by_path`.

    Args:
        people: the dynamic ground truth, CSV or a zip archive with one.
        positions: the tractor's GPS coordinates, CSV or a zip archive with one.
        matrix: the file `utm2PixelsTransformMatrix.csv`.
        every: frames from image to image.
        smoothing_s: width of the moving mean, above 0.
        limits: of gaps and jumps, of fixes and images.

    Raises:
        InputError: a file cannot be read, the GPS clock runs backwards or stops, no frame lies within its time.
    """
    limits = limits or LogLimits()
    fixes = _table(positions, "positions", FIXES)
    clock = fixes.columns["clock"]
    _check_clock(clock, fixes, limits)
    track = _utm(fixes.columns["lat"], fixes.columns["lon"])
    origin = track[0]
    seen = _table(people, "people", PEOPLE)
    frame, time = _frames(seen, every, clock[0] + smoothing_s / 2, clock[-1] - smoothing_s / 2)
    # Seconds since 1970 have a resolution of a quarter of a microsecond; differences are exact.
    position, heading = _poses(clock - clock[0], track - origin, time - clock[0], smoothing_s)
    label = np.array([text == "human" for text in seen.texts["label"]], dtype=np.bool_)[seen.columns["label"]]
    image = np.minimum(np.searchsorted(frame, seen.columns["frame"]), len(frame) - 1)
    kept = label & ~seen.columns["lost"] & (frame[image] == seen.columns["frame"])
    ground = _ground(_matrix(matrix), seen.stack("x", "y")[kept]) - origin
    logs = Logs(
        ("fieldsafe",),
        np.array([True]),
        np.zeros(len(frame), dtype=np.int64),
        time - time[0],
        position - position[0],
        heading,
        image[kept],
        ground - position[0],
    )
    check_plausible(logs, limits, str(positions))
    return logs


def _table(path: str | Path, role: str, kinds: dict[str, Kind]) -> Table:
    members = read_source(path, role, ".csv").members
    if len(members) > 1:
        raise InputError(f"expected one CSV file, found {len(members)}", Place(str(path)))
    return read_table(members[0].name, kinds, raw=members[0].raw, others=True)


def _check_clock(clock: Floats, fixes: Table, limits: LogLimits) -> None:
    if len(clock) < 2:
        raise InputError(f"{len(clock)} positions; expected at least two", Place(fixes.file))
    step = np.diff(clock)
    for bad, text in (
        (step < 0, "the clock goes back by {0:g} s"),
        (step > limits.longest_gap_s, "no position for {0:g} s"),
    ):
        if bad.any():
            row = int(bad.argmax())
            raise InputError(text.format(abs(step[row])), fixes.place(row + 1))


def _frames(seen: Table, every: int, first_s: float, last_s: float) -> tuple[Ints, Floats]:
    """The numbers and times of the chosen frames between two times."""
    frame, row = np.unique(seen.columns["frame"], return_index=True)
    if not len(frame):
        raise InputError("no frame in it", Place(seen.file))
    time = seen.columns["timestamp"][row]
    differs = time[np.searchsorted(frame, seen.columns["frame"])] != seen.columns["timestamp"]
    late = np.diff(time) <= 0
    if differs.any():
        raise InputError("another time than the same frame has above", seen.place(int(differs.argmax())))
    if late.any():
        raise InputError("a later frame, but no later time", seen.place(int(row[int(late.argmax()) + 1])))
    kept = ((frame - frame[0]) % every == 0) & (time >= first_s) & (time <= last_s)
    if not kept.any():
        raise InputError("no frame lies within the time of the positions", Place(seen.file))
    return frame[kept], time[kept]


def _poses(clock: Floats, track: Floats, time: Floats, width_s: float) -> tuple[Floats, Floats]:
    """Positions (n, 2) and headings (n,) of the moving mean of the track, and of its derivative."""
    area = np.zeros_like(track)
    area[1:] = np.cumsum((track[1:] + track[:-1]) / 2 * np.diff(clock)[:, None], axis=0)

    def at(when: Floats) -> tuple[Floats, Floats]:
        """The track and its integral."""
        here = np.column_stack([np.interp(when, clock, track[:, axis]) for axis in (0, 1)])
        k = np.clip(np.searchsorted(clock, when, side="right") - 1, 0, len(clock) - 1)
        return here, area[k] + (here + track[k]) / 2 * (when - clock[k])[:, None]

    (before, low), (after, high) = at(time - width_s / 2), at(time + width_s / 2)
    velocity = (after - before) / width_s
    moving = np.flatnonzero(np.hypot(*velocity.T) >= SLOWEST_MPS)
    heading = np.arctan2(velocity[:, 1], velocity[:, 0])
    if len(moving):
        last = np.searchsorted(moving, np.arange(len(time)), side="right") - 1
        heading = heading[moving[np.maximum(last, 0)]]
    return (high - low) / width_s, heading


def _matrix(path: str | Path) -> Floats:
    """(3, 3) pixels from UTM."""
    text, _ = read_text(path)
    rows = [line.replace(",", " ").split() for line in text.splitlines() if line.strip()]
    try:
        matrix = np.array([[float(cell) for cell in row] for row in rows])
    except ValueError:
        matrix = np.zeros(0)
    if matrix.shape != (3, 3) or not np.isfinite(matrix).all() or matrix[2].tolist() != [0, 0, 1]:
        raise InputError("expected three rows of three numbers, the last 0, 0, 1", Place(str(path)))
    if np.linalg.det(matrix) == 0:
        raise InputError("the matrix cannot be inverted", Place(str(path)))
    return matrix


def _ground(pixels_from_utm: Floats, pixels: Floats) -> Floats:
    """(n, 2) east and north of pixels (column, row)."""
    shift = pixels[:, ::-1] - pixels_from_utm[:2, 2]
    return np.asarray(np.linalg.solve(pixels_from_utm[:2, :2], shift.T).T)


def _utm(latitude_deg: Floats, longitude_deg: Floats) -> Floats:
    """(n, 2) UTM east and north in the zone of the first point, WGS 84, northern hemisphere.

    The transverse Mercator projection by Krueger's series in the third flattening n, here to n^4, which is good to
    a thousandth of a millimetre (Karney 2011, "Transverse Mercator with an accuracy of a few nanometers").
    """
    zone = math.floor((longitude_deg[0] + 180) / 6)
    latitude, longitude = np.radians(latitude_deg), np.radians(longitude_deg - (zone * 6 - 177))
    n = FLATTENING / (2 - FLATTENING)
    alpha = (
        n / 2 - 2 * n**2 / 3 + 5 * n**3 / 16 + 41 * n**4 / 180,
        13 * n**2 / 48 - 3 * n**3 / 5 + 557 * n**4 / 1440,
        61 * n**3 / 240 - 103 * n**4 / 140,
        49561 * n**4 / 161280,
    )
    eccentricity = math.sqrt(FLATTENING * (2 - FLATTENING))
    sine = np.sin(latitude)
    conformal = np.sinh(np.arctanh(sine) - eccentricity * np.arctanh(eccentricity * sine))
    xi = np.arctan2(conformal, np.cos(longitude))
    eta = np.arctanh(np.sin(longitude) / np.hypot(1, conformal))
    north, east = xi.copy(), eta.copy()
    for order, factor in enumerate(alpha, 1):
        north += factor * np.sin(2 * order * xi) * np.cosh(2 * order * eta)
        east += factor * np.cos(2 * order * xi) * np.sinh(2 * order * eta)
    scale = UTM_SCALE * EQUATOR_M / (1 + n) * (1 + n**2 / 4 + n**4 / 64)
    return np.column_stack([UTM_EAST_M + scale * east, scale * north])


@dataclass(frozen=True)
class Drawing:
    """What a confusion file does not say about where reports lie.

    Attributes:
        half_angle_rad: of the field of view: false positives lie within it, uniformly by bearing and by distance in
            their bin.
        position_error_m: standard deviation of a report of a person along x and along y.
        strength: of all reports where the file is no family over score thresholds.
        empty_columns: what to do with bins without items, a policy of `EMPTY_COLUMN_POLICIES`.
    """

    half_angle_rad: float = math.pi / 4
    position_error_m: float = 0.0
    strength: float = 1.0
    empty_columns: str = "error"


@dataclass(frozen=True, eq=False)
class _Channel:
    """Rates of a detector: `found` and `alarm` (thresholds, bins), not increasing with the threshold; `low_m`,
    `high_m` (bins,); `thresholds` (t,) increasing, or the one strength of all reports."""

    found: Floats
    alarm: Floats
    low_m: Floats
    high_m: Floats
    thresholds: Floats


def drawn_detections(
    logs: Logs,
    counts: ConfusionCounts,
    class_name: str,
    rng: Generator,
    name: str = "drawn",
    drawing: Drawing | None = None,
) -> Logs:
    """The logs with a source `name` whose detections are drawn.

    A person whose distance from the vehicle (on the ground) lies in a bin is reported with the rate that column
    `class_name` has there for its own row; beyond the bins nobody is reported. In each image and bin in which nobody
    stands one false positive is drawn with the rate of row `class_name` in column "empty", as such matrices count
    them. In a family over score thresholds the strength is the highest threshold at which the report is still made,
    so that every threshold has its measured rates; the same random number decides for all thresholds.

    Args:
        logs: with headings, if the file has false positives.
        counts: class-labelled; further variables are summed over.
        class_name: a class of the file.
        rng: the same state gives the same detections.
        name: of the source.
        drawing: what the file does not say.

    Raises:
        InputError: a bin that is needed has no items (see `Drawing.empty_columns`), or a rate rises with the
            threshold.
        UsageError: the file is not class-labelled or has no such class, or the logs have no headings.
    """
    drawing = drawing or Drawing()
    channel = _channel(counts, class_name, drawing)
    image, point = logs.person_image, logs.person_m
    away = np.hypot(*(point - logs.position_m[image]).T)
    bin_of = counts.bins.distance_bins(away)
    _check_known(channel, channel.found[0], np.unique(bin_of[bin_of >= 0]), "of the class, but a person stands there")
    _check_known(
        channel, channel.alarm[0], np.arange(len(channel.low_m)), "without an object, so no rate of false positives"
    )
    level = _levels(channel.found, bin_of, rng.random(len(image)))
    error = drawing.position_error_m * rng.standard_normal((len(image), 2))
    told = level >= 0
    parts = [(image[told], channel.thresholds[level[told]], (point + error)[told])]
    parts.append(_alarms(logs, channel, drawing, image, bin_of, rng))
    images, strengths, points = (np.concatenate(column) for column in zip(*parts, strict=True))
    return logs.with_source(name, Detections(images, strengths, points), *_remarks(name, counts, channel, drawing))


def _channel(counts: ConfusionCounts, class_name: str, drawing: Drawing) -> _Channel:
    if counts.labelling != "class":
        raise UsageError(f"detections are drawn from a class-labelled file; this one is {counts.labelling}-labelled")
    label = frozenset({class_name})
    if label not in counts.labels:
        raise unknown_error("class of the confusion file", class_name, sorted(frozenset().union(*counts.labels)))
    members = [counts] if counts.thresholds is None else [counts.member(threshold) for threshold in counts.thresholds]
    own, empty = counts.labels.index(label), counts.labels.index(EMPTY)
    share = np.stack([rates(member.matrices().without_empty_columns(drawing.empty_columns)[0]) for member in members])
    edges = np.array(counts.bins.edges_m)
    thresholds = np.array([drawing.strength] if counts.thresholds is None else counts.thresholds)
    seen, alarm = share[:, :, own, own], share[:, :, own, empty]
    for what, rate in (("the rate at which it is reported", seen), ("its false-positive rate", alarm)):
        rising = np.nan_to_num(np.diff(rate, axis=0)).max(axis=0, initial=0) > 0
        if rising.any():
            at = int(rising.argmax())
            where = f"[{edges[at]:g}, {edges[at + 1]:g}) m"
            raise InputError(f"class {shown(class_name)}, {where}: {what} rises with the score threshold")
    return _Channel(seen, alarm, edges[:-1], edges[1:], thresholds)


def _check_known(channel: _Channel, rate: Floats, needed: Ints, what: str) -> None:
    """Refuse to draw from a column without items."""
    unknown = needed[np.isnan(rate[needed])]
    if len(unknown):
        low, high = channel.low_m[unknown[0]], channel.high_m[unknown[0]]
        raise InputError(
            f"[{low:g}, {high:g}) m: the confusion file has no item {what}",
            hint="choose a policy for columns without items (empty_columns), as 'neighbour'",
        )


def _levels(rate: Floats, bin_of: Ints, chance: Floats) -> Ints:
    """(n,) the highest threshold at which a report is made: rate > chance; -1 if at none."""
    at = rate[:, np.maximum(bin_of, 0)]
    level = np.count_nonzero(at > chance, axis=0) - 1
    return np.where(bin_of >= 0, level, -1).astype(np.int64)


def _alarms(
    logs: Logs, channel: _Channel, drawing: Drawing, image: Ints, bin_of: Ints, rng: Generator
) -> tuple[Ints, Floats, Floats]:
    """Image, strength and point of false positives in bins of finite length in which nobody stands."""
    bins = len(channel.low_m)
    usable = np.flatnonzero(np.isfinite(channel.high_m) & (channel.alarm[0] > 0))
    if not len(usable):
        return np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 2))
    if logs.heading_rad is None:
        raise UsageError("false positives are drawn ahead of the vehicle: the logs need headings")
    free = np.ones((logs.image_count, bins), dtype=np.bool_)
    free[image[bin_of >= 0], bin_of[bin_of >= 0]] = False
    where, place = np.nonzero(free[:, usable])
    place = usable[place]
    level = _levels(channel.alarm, place, rng.random(len(place)))
    where, place, level = where[level >= 0], place[level >= 0], level[level >= 0]
    away = channel.low_m[place] + rng.random(len(place)) * (channel.high_m - channel.low_m)[place]
    turn = logs.heading_rad[where] + drawing.half_angle_rad * (2 * rng.random(len(place)) - 1)
    offset = away[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    return where.astype(np.int64), channel.thresholds[level], logs.position_m[where] + offset


def _remarks(name: str, counts: ConfusionCounts, channel: _Channel, drawing: Drawing) -> tuple[str, ...]:
    title = f" ({counts.title})" if counts.title else ""
    notes = [
        f"the detections of source '{name}' are no detector's: they are drawn at random, again in every image, from "
        f"measured confusion counts by distance{title}"
    ]
    measure: Any = counts.metadata.get("distance")
    if isinstance(measure, dict) and measure.get("measure") not in (None, "ground_plane"):
        notes.append(
            f"source '{name}': the counts are by {measure['measure']} distance, people by distance on the ground"
        )
    if not (channel.alarm > 0).any():
        notes.append(f"source '{name}' has no false positives: the counts hold none")
    else:
        degrees = math.degrees(drawing.half_angle_rad)
        notes.append(f"source '{name}': where in the view of +-{degrees:g} degrees a false positive lies is made up")
    if np.isinf(channel.high_m[-1]) and channel.alarm[:, -1].any():
        notes.append(
            f"source '{name}' has no false positives beyond {channel.low_m[-1]:g} m, where the last bin has no end"
        )
    if drawing.empty_columns != "error":
        notes.append(f"source '{name}': bins without items follow policy '{drawing.empty_columns}'")
    return tuple(notes)
