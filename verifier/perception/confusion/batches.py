"""Confusion matrices batch by batch, as metrics of training loops are: `update`, `compute`, `reset`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verifier.base.errors import InputError, Place, UsageError
from verifier.base.keywords import settings_from
from verifier.perception.confusion.choices import default_policy, matching_policy, reader_options, reading
from verifier.perception.confusion.counting import Count, accumulate, confusion_counts, count_and_observe
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.preparing import prepared
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import refuse_absurd
from verifier.perception.confusion.streaming import added_origin
from verifier.perception.detections import DetectionSet, from_dicts
from verifier.perception.detections.tablefiles import tables
from verifier.perception.matching import MatchingPolicy
from verifier.perception.settings import CountSettings

NOT_OF_BATCHES = frozenset((
    "format", "annotations", "detections", "frames", "sequence", "groups", "distance_field", "distance_file",
    "detection_distance_field", "distance_key", "depth_folder", "depth_scale", "calibration", "detected_class",
    "image_size", "first_category", "detection_frame", "localisation", "average_precision", "memory", "gaps",
    "period", "units", "matching_audit", "spec", "empty_columns", "stream", "checkpoint", "chunk_rows",
    "scheduler", "shard",
))  # fmt: skip
"""Choices about files, and of what is counted from frame to frame."""


class ConfusionMetric:
    """Matrices of batches: the same cells as if all batches had been counted at once.

    Each frame is in one batch. Only the sum is kept, and the names of the frames. Whether misses follow misses is
    not tested, as the frames of a track may be in several batches.
    """

    def __init__(self, names: Sequence[str] | None = None, **choices: Any) -> None:
        """What each batch is counted by.

        Args:
            names: of the labels, by their number; None for `classes`. Of batches of dictionaries only.
            choices: as the options of `verify confusion` about filters, matching and counting; `classes` or
                `class_map` among them.

        Raises:
            UsageError: no classes, or a choice that is not one of batches.
        """
        refused = sorted(NOT_OF_BATCHES & choices.keys())
        if refused:
            raise UsageError(f"a metric of batches does not take {', '.join(refused)}: use verifier.count")
        self._settings = settings_from(CountSettings, choices)
        self._reading = reading(self._settings)
        classes = self._settings.classes
        if classes is None and self._reading.class_map is None:
            raise UsageError('a metric needs its classes beforehand, such as classes="ped,obs"')
        self._classes = () if classes is None else tuple(name.strip() for name in classes.split(","))
        self._names = self._classes if names is None else tuple(names)
        self.reset()

    def reset(self) -> None:
        """Forget every batch."""
        self._counted: Count | None = None
        self._how: tuple[CountingRule, MatchingPolicy] | None = None
        self._origin: Mapping[str, Any] = {}
        self._frames: set[str] = set()

    def update(
        self,
        preds: Any,
        target: Any,
        *,
        sequence: str | Sequence[str] | None = None,
        frames: Any = None,
    ) -> None:
        """Count one batch; arguments in the order of torchmetrics.

        Args:
            preds, target: what the detector reports and what is there: lists of one dictionary per image, see
                `verifier.perception.detections.from_dicts`; or DataFrames with the columns of `verifier.count`.
            sequence: the drive that the images are from, or one per image; a DataFrame has it as a column.
            frames: names of the images; None to number them. Of DataFrames a DataFrame that lists every frame.

        Raises:
            InputError: as reading the batch, a frame that an earlier batch has, or a batch of another kind.
        """
        data = self._read(preds, target, sequence, frames)
        twice = next((name for name in data.frame_name if name in self._frames), None)
        if twice is not None:
            raise InputError(f"frame '{twice}' is in an earlier batch", Place("<annotations>"))
        data, rule = prepared(self._settings, data)
        how = rule, matching_policy(self._settings, default_policy(data))
        if self._how not in (None, how):
            raise InputError(
                "the batch has other boxes or distances than those before it, and would be matched by another rule",
                Place("<annotations>"),
                "name 'distance' and 'affinity', or give every batch the same columns",
            )
        counted, _ = count_and_observe(data, how[1], rule)
        before = self._counted
        self._origin = dict(data.origin) if before is None else added_origin(self._origin, data.origin)
        self._counted = accumulate([counted] if before is None else [before, counted])
        self._how = how
        self._frames.update(data.frame_name)

    def compute(self) -> ConfusionCounts:
        """The matrices of all batches since the last `reset`.

        Raises:
            UsageError: there was none.
            InputError: what is counted is absurd, such as nothing matched; the choice `accept` takes it.
        """
        if self._counted is None or self._how is None:
            raise UsageError("nothing is counted yet: call update first")
        counts = confusion_counts(self._counted, *self._how, dict(self._origin), self._settings.title)
        refuse_absurd(counts.metadata, self._settings.accept)
        return counts

    def _read(self, preds: Any, target: Any, sequence: str | Sequence[str] | None, frames: Any) -> DetectionSet:
        if not isinstance(target, Sequence):
            if sequence is not None:
                raise UsageError("a DataFrame says in the column 'sequence' which drive a frame is from")
            options = reader_options(self._settings) | ({} if frames is None else {"frames": frames})
            classes = () if self._reading.class_map is not None else self._classes
            return tables(target, preds, self._reading, classes=classes, **options)
        if not self._names:
            raise UsageError("name what the labels mean: names=[...]")
        drives = [sequence] * len(target) if isinstance(sequence, str) else sequence
        if frames is None:
            numbers = range(len(self._frames), len(self._frames) + len(target))
            frames = [f"{drive}/{k}" for drive, k in zip(drives or [""] * len(target), numbers, strict=False)]
        return from_dicts(self._names, frames, target, preds, self._reading, sequences=drives)
