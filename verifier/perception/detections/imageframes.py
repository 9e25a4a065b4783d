"""Frames of formats that have one file per image: named by the file, with its folder as sequence."""

from collections.abc import Iterable

import numpy as np

from verifier.base.errors import InputError, Place, shown
from verifier.perception.detections.assembly import Frames
from verifier.perception.detections.columns import NO_SEQUENCE
from verifier.perception.detections.sources import Member


def image_frames(members: Iterable[Member], images: Iterable[tuple[str, str]] = ()) -> Frames:
    """The frames of label files, and of further images (stem, folder).

    Where files stand in several folders, these are the sequences; a single one says nothing of how images were taken.

    Raises:
        InputError: two files have one stem.
    """
    folders = dict(images)
    seen: dict[str, str] = {}
    for member in members:
        if member.stem in seen:
            raise InputError(f"image {shown(member.stem)} has a second file, {seen[member.stem]}", Place(member.name))
        seen[member.stem] = member.name
        folders[member.stem] = member.folder
    names = tuple(sorted(folders))
    own = [folders[name] or NO_SEQUENCE for name in names]
    if len(set(own)) < 2:
        own = [NO_SEQUENCE] * len(own)
    sequences = {name: code for code, name in enumerate(dict.fromkeys(own))}
    return Frames(names, np.array([sequences[name] for name in own], dtype=np.int32), tuple(sequences))
