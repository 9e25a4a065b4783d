"""What a document of matrices says of average precision, see `verifier.perception.confusion.average_precision`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from verifier.base.documents import Count, Limits, MisfitError, Share, read_document
from verifier.base.errors import InputError, Place, shown


@dataclass(frozen=True)
class ClassPrecision:
    """Average precision of one class; `sequences` in the order of those of the document. None without an object.

    Attributes:
        lower, upper: percentile interval; None without one.
    """

    label: str
    objects: Count
    value: Share | None
    lower: Share | None
    upper: Share | None
    sequences: tuple[Share | None, ...] = ()

    def __post_init__(self) -> None:
        if (self.value is None) != (self.objects == 0):
            raise MisfitError(["value"], f"expected {'a number' if self.objects else 'null'}")
        if (self.lower is None) != (self.upper is None) or (self.lower or 0) > (self.upper or 0):
            raise MisfitError(["lower"], "expected both ends of an interval, or none")


@dataclass(frozen=True)
class AveragePrecision:
    """Of all classes.

    Attributes:
        unit: what was drawn again; frames of a drive resemble each other: by frame, intervals are too narrow.
    """

    unit: Literal["drive", "frame"]
    level: Share
    draws: Annotated[int, Limits(ge=1)]
    seed: Count
    classes: tuple[ClassPrecision, ...]


def read_average_precision(told: Any, document: Mapping[str, Any], file: str | None) -> AveragePrecision:
    """What a document of matrices says of average precision.

    Raises:
        InputError: it is none, names a class that the matrices do not have, or has not one value for each sequence.
    """
    path = "/average_precision"
    found = read_document(AveragePrecision, told, file or "<input>", path)
    labels = [label if isinstance(label, list) else [label] for label in document["labels"]]
    for number, each in enumerate(found.classes):
        place = Place(file, path=f"{path}/classes/{number}")
        if not any(each.label in label for label in labels):
            raise InputError(f"the matrices have no class {shown(each.label)}", place)
        if len(each.sequences) not in (0, len(document.get("sequences", ()))):
            raise InputError("expected one value for each sequence, or none", place)
    return found
