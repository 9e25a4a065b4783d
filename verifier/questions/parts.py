"""Parts that the documents of questions share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from verifier.base.documents import InputFile, Limits

NumberText = Annotated[str, Limits(pattern=r"^-?[0-9]+(\.[0-9]+)?(/[0-9]+)?$")]
"""Exact: a decimal or a fraction."""


@dataclass(frozen=True)
class QuestionInput(InputFile):
    """A file that went in."""

    role: Literal["spec", "model", "planner", "confusion", "record"]
