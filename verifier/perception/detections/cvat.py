"""CVAT: "CVAT for images 1.1" and "CVAT for video 1.1" (docs.cvat.ai, "XML annotation format").

    annotations/image[id, name, width, height]/box[label, xtl, ytl, xbr, ybr, occluded, z_order]/attribute[name]
    annotations/track[id, label]/box[frame, xtl, ytl, xbr, ybr, outside, occluded, keyframe]/attribute[name]

Frames are the images, named by `name`, with the folder in the name as sequence; of a video the frames from
`start_frame` to `stop_frame` of the task (else as many as `size` says, else those with boxes), named by their
numbers. Of several files each is a sequence. Detections are files of the same kind whose boxes have a `score`: an
attribute of `box` or an `attribute` of CVAT. A box that is `outside` is none. Shapes other than boxes are left out
and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePosixPath

from verifier.base.errors import InputError, LimitError, Place, shown
from verifier.base.tables import NUMBER
from verifier.perception.detections.columns import MOST_FRAMES, DetectionSet
from verifier.perception.detections.gathered import Element, Gathered, gathered_set, walk_xml
from verifier.perception.detections.sources import Member, Reading

ROOT = "annotations"
BOX = {"x1": "xtl", "y1": "ytl", "x2": "xbr", "y2": "ybr"}
SHAPES = ("polygon", "polyline", "points", "cuboid", "mask", "skeleton", "ellipse")
META = ("size", "start_frame", "stop_frame", "frame_filter")


def cvat(
    annotations: str | Path,
    detections: str | Path,
    reading: Reading | None = None,
    *,
    columns: Mapping[str, str] | None = None,
) -> DetectionSet:
    """Files, or folders or zip archives of files. Attributes of annotations: `occluded`, `track` of videos, and
    those of CVAT that are numbers; `columns` says which of these is `distance_m`, and of detections which is
    `score`.

    Raises:
        InputError: a file cannot be read, with file and line; see also `sources.IGNORABLE`.
    """
    labels = Gathered.of(annotations, ".xml", _read)
    results = Gathered.of(detections, ".xml", _read, scored=True)
    return gathered_set("cvat", labels, results, reading, columns, {"shapes_left_out": labels.left_out})


def _read(gathered: Gathered, part: int, member: Member, drive: str) -> None:
    _Walk(gathered, part, member, drive).read()


@dataclass
class _Walk:
    """One file, from its first element to its last."""

    gathered: Gathered
    part: int
    member: Member
    drive: str
    meta: dict[str, str] = field(default_factory=dict)
    image: tuple[str, str] | None = None
    track: Element | None = None
    said: dict[str, str] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    shown: list[tuple[str, int, int, str | None]] = field(default_factory=list)
    between: bool = False

    def read(self) -> None:
        walk_xml(self.member, ROOT, "CVAT", self.begin, self.end)
        self.check_between()
        if self.numbers or (self.meta and self.image is None):
            for number in self.listed():
                self.frame((self.drive, f"{number:06d}"), self.numbers.get(number))

    def begin(self, element: Element) -> None:
        if element.path == f"{ROOT}/image":
            name = self.text(element, "name")
            folder = str(PurePosixPath(name).parent) if "/" in name else ""
            self.image = (self.drive or folder, name)
            self.frame(self.image, element.line)
        elif element.path == f"{ROOT}/track":
            self.track = element
        elif element.path.endswith("/box"):
            self.said = {}

    def end(self, element: Element) -> None:
        *above, owner, name = ("", *element.path.split("/"))
        if element.path.startswith(f"{ROOT}/meta/") and name in META and element.path.count("/") == 3:
            self.meta[name] = element.text
        elif name == "attribute" and owner == "box":
            self.said[self.text(element, "name")] = element.text
        elif above == ["", ROOT] and owner in ("image", "track"):
            self.gathered.left_out += name in SHAPES
            if name == "box":
                self.box(element, owner == "track")

    def box(self, element: Element, moving: bool) -> None:
        holder = self.track if moving else element
        assert holder is not None
        values: dict[str, object] = {name: self.number(element, own) for name, own in BOX.items()}
        if element.attributes.get("outside") != "1" and "rotation" in element.attributes:
            self.check_upright(element)
        frame = self.image
        if moving:
            number = int(self.number(element, "frame", whole=True))
            self.numbers.setdefault(number, element.line)
            frame = (self.drive, f"{number:06d}")
            self.shown.append((self.text(holder, "id"), number, element.line, element.attributes.get("outside")))
            self.between |= element.attributes.get("keyframe") == "0"
            values["track"] = f"{self.drive}/{self.text(holder, 'id')}"
        assert frame is not None
        if element.attributes.get("outside") == "1":
            return
        values |= {"frame": frame[1], "sequence": frame[0], "class": self.text(holder, "label")}
        told = {name: element.attributes[name] for name in ("occluded", "score") if name in element.attributes}
        self.gathered.add(self.part, element.line, "", values, self.said | told)

    def check_upright(self, element: Element) -> None:
        if self.number(element, "rotation") % 360:
            message = f"a box turned by {element.attributes['rotation']} degrees; expected one along the image axes"
            raise InputError(message, Place(self.member.name, element.line), "draw the rectangle around it in CVAT")

    def check_between(self) -> None:
        """Refuse a file that has key frames only: the boxes between them would be taken as absent."""
        for (track, number, line, outside), (other, following, *_) in pairwise([] if self.between else self.shown):
            if track == other and outside != "1" and following > number + self.step():
                message = f"track {shown(track)} has boxes in frames {number} and {following} and none between"
                hint = "export 'CVAT for video 1.1', which has the boxes between key frames, too"
                raise InputError(message, Place(self.member.name, line), hint)

    def step(self) -> int:
        """Frames of the video from one frame of the task to the next."""
        text = self.meta.get("frame_filter", "").removeprefix("step=")
        return int(text) if text.isdecimal() and int(text) else 1

    def listed(self) -> list[int]:
        """The numbers of the frames of a video."""
        known = {name: int(text) for name, text in self.meta.items() if text.isdecimal() and len(text) < 12}
        last = known.get("stop_frame", known.get("size", 0) - 1)
        if last < 0:
            return sorted(self.numbers)
        numbers = range(known.get("start_frame", 0), last + 1, self.step())
        if len(numbers) > MOST_FRAMES:
            raise LimitError(f"{len(numbers)} frames, at most {MOST_FRAMES} are read", Place(self.member.name))
        return list(numbers)

    def frame(self, key: tuple[str, str], line: int | None) -> None:
        self.gathered.frame(*key, Place(self.member.name, line))

    def text(self, element: Element, name: str) -> str:
        value = element.attributes.get(name, "")
        if not value:
            message = f"'{element.path.rpartition('/')[2]}' without '{name}'"
            raise InputError(message, Place(self.member.name, element.line))
        return value

    def number(self, element: Element, name: str, *, whole: bool = False) -> float:
        value = self.text(element, name)
        if not (value.isdecimal() and len(value) < 12 if whole else NUMBER.fullmatch(value)):
            message = f"{name}: expected a {'whole ' * whole}number, got {shown(value)}"
            raise InputError(message, Place(self.member.name, element.line))
        return float(value)
