"""Several frames in a step, as the chain of a detector with memory follows them: what each adds to what is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from verifier.base.arrays import Ints
from verifier.perception.confusion.matrices import Label
from verifier.systems.channel import Channel
from verifier.systems.memory import tagged, untagged
from verifier.systems.observation import Frames

FRAME = "frame of the step"
"""Name of the number of the frame, from 0, that the next reports are of."""
TOLD_BEFORE = "told before in the step"
"""Name of the number of what the frames before it told."""


def of_one_frame(channel: Channel, frames: int) -> Channel:
    """The draws of the first of some frames, which all have the same."""
    if frames == 1:
        return channel
    count = channel.columns.shape[1] // frames
    parts = {name: getattr(channel, name)[:, :count] for name in ("bins", "columns", "told", "who")}
    located = channel.located
    if located is not None:
        located = replace(located, told=located.told[:, :, :count], counts=located.counts[:, :, :count])
    return replace(channel, names=channel.names[:count], located=located, **parts)


def told_in_frames(channel: Channel, observation: Ints, read: Frames, count: int) -> tuple[Ints, Ints]:
    """(frames, branches) what each branch of a frame adds to what is told in a step, and (observations, observations)
    the two together; of one frame it is that."""
    if count == 1:
        return observation[None], np.zeros((0, 0), dtype=np.int64)
    texts = channel.observations
    number_of = {text: number for number, text in enumerate(texts)}

    def in_frame(text: Label, frame: int) -> int:
        if read.count == 1 and frame < count - 1:
            return 0
        return number_of[frozenset(tagged(untagged(fact), frame) for fact in text) if read.told_apart else text]

    told = [[in_frame(texts[old], frame) for old in observation.tolist()] for frame in range(count)]
    # What cannot be told in one step is never put together.
    both = [[number_of.get(one | other, 0) for other in texts] for one in texts]
    return np.array(told, dtype=np.int64), np.array(both, dtype=np.int64)
