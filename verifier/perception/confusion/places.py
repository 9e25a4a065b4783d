"""Where objects and leftover detections lie: the bin of each, and which bins could hold them at all.

A *place* is a bin without regard to variables that only objects have: whether something stands there is asked of
places, and an item of column "empty" belongs to a place. It is named by the first bin that lies in it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Ints
from verifier.base.errors import InputError, Place, unknown_name
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.detections.columns import Boxes, DetectionSet
from verifier.perception.detections.distances import distance, reported_distance

NO_DISTANCES = (
    "image rectangles alone have none: name a field with it (--distance-field NAME, COCO), a table "
    "(--distance-file FILE), depth maps (--depth-folder DIR) or cameras (--calibration FILE)"
)


@dataclass(frozen=True, eq=False)
class Layout:
    """The places among the bins.

    Attributes:
        place_of: (bins,) the place each bin lies in.
        places: (p,) the bins that name a place, increasing.
        spread: (p, k) the bins that lie in each place.
        frame_part: (p,) the bin of each place by the variable that belongs to frames; 0 without one.
    """

    place_of: Ints
    places: Ints
    spread: Ints
    frame_part: Ints


def layout(bins: Bins) -> Layout:
    """The places among `bins`."""
    at = np.indices(bins.shape).reshape(len(bins.shape), -1)
    of_objects = np.array(bins.of_objects)
    collapsed = np.where(of_objects[:, None], 0, at)
    place_of = np.ravel_multi_index(tuple(collapsed), bins.shape)
    places = np.unique(place_of)
    spread = np.argsort(place_of, kind="stable").reshape(len(places), -1)
    return Layout(place_of, places, spread, _frame_part(bins, at[:, places]))


def _frame_part(bins: Bins, at: Ints) -> Ints:
    for axis, variable in enumerate(bins.variables, 1):
        if variable.scope == "frame":
            part: Ints = at[axis]
            return part
    return np.zeros(at.shape[1], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Located:
    """Boxes with their distance (n,) in metres, their bin and their place (n,), -1 where there is none."""

    distance_m: NDArray[np.float64]
    bin: Ints
    place: Ints


def frame_parts(data: DetectionSet, bins: Bins) -> Ints:
    """(f,) the bin of each frame by the variable that belongs to frames: 0 without one, -1 where none holds it."""
    for variable in bins.variables:
        if variable.scope == "frame":
            return variable.bins_of(np.array(data.sequences, dtype=object))[data.frame_sequence]
    return np.zeros(data.frame_count, dtype=np.int64)


def locate(data: DetectionSet, boxes: Boxes, rule: CountingRule, *, objects: bool) -> Located:
    """The bins of boxes; without `objects` (for detections) only their place is meant, and `bin` names it.

    Raises:
        InputError: the boxes lack what a variable needs.
        UsageError: distances cannot be had by the measure of the rule.
    """
    bins = rule.bins
    distance_m = (distance if objects else reported_distance)(boxes, rule.measure)
    axes = [bins.distance_bins(distance_m)]
    for variable in bins.variables:
        if variable.scope == "frame":
            axes.append(frame_parts(data, bins)[boxes.frame])
        elif variable.scope == "place":
            axes.append(variable.bins_of(bearing_deg(boxes)))
        elif objects:
            axes.append(variable.bins_of(_attribute(boxes, variable.name)))
        else:
            axes.append(np.zeros(len(boxes), dtype=np.int64))
    at = np.stack(axes)
    of_objects = np.array(bins.of_objects)
    somewhere = (at >= 0).all(axis=0)
    standing = (at[~of_objects] >= 0).all(axis=0)
    bin_of = np.ravel_multi_index(tuple(np.maximum(at, 0)), bins.shape)
    place = np.ravel_multi_index(tuple(np.where(of_objects[:, None], 0, np.maximum(at, 0))), bins.shape)
    return Located(distance_m, np.where(somewhere, bin_of, -1), np.where(standing, place, -1))


def check_inside(data: DetectionSet, located: Located) -> None:
    """Refuse annotations that lie in no bin, naming the first."""
    outside = np.flatnonzero(located.bin < 0)
    if len(outside) == 0:
        return
    row = int(outside[0])
    where = data.annotations
    if np.isnan(located.distance_m).all():
        raise InputError(
            f"none of the {len(where)} annotated objects has a distance",
            Place(data.files[where.file[row]]),
            NO_DISTANCES,
        )
    far = located.distance_m[row]
    hint = "end the distance edges with inf (an overflow bin), add bins, filter the data"
    at = f"at {far:g} m" if np.isfinite(far) else "without a distance"
    raise InputError(
        f"{len(outside)} of {len(located.bin)} annotated objects lie in no bin; the first is a "
        f"'{data.classes[where.label[row]]}' {at}",
        data.place(where, row),
        f"{hint if np.isfinite(far) else 'state its distance in the data'}, or use --outside drop",
    )


def bearing_deg(boxes: Boxes) -> NDArray[np.float64]:
    """(n,) direction of the box centre in [-180, 180) degrees: 0 ahead, 90 to the left; NaN without a 3-D box."""
    if boxes.box_3d is None:
        return np.full(len(boxes), np.nan)
    degrees: NDArray[np.float64] = np.degrees(np.arctan2(boxes.box_3d[:, 1], boxes.box_3d[:, 0]))
    return np.where(degrees >= 180.0, -180.0, degrees)


def _attribute(boxes: Boxes, name: str) -> NDArray[np.generic]:
    if name in boxes.attributes:
        return boxes.attributes[name]
    if len(boxes) == 0:
        return np.zeros(0)
    message, hint = unknown_name("attribute of the annotations", name, boxes.attributes)
    raise InputError(message, hint=f"{hint}; also known: bearing_deg, sequence")
