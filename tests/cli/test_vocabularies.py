"""Each vocabulary is spelled once, and what is written for its words is written for all of them."""

from typing import get_args

import pytest

from verifier.analysis.robust.solutions import SEMANTICS
from verifier.analysis.settings import Semantics
from verifier.perception.confusion import EMPTY_COLUMN_POLICIES
from verifier.perception.detections.formats import FORMATS
from verifier.perception.matching import CONVENTIONS
from verifier.perception.settings import Convention, EmptyColumns, Format
from verifier.study.options import VERDICT_SOURCES, VerdictSource
from verifier.systems.channel import FALSE_POSITIVE_POLICIES
from verifier.systems.settings import FalsePositives


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (Convention, CONVENTIONS),
        (EmptyColumns, EMPTY_COLUMN_POLICIES),
        (FalsePositives, FALSE_POSITIVE_POLICIES),
        (Format, FORMATS),
        (Semantics, SEMANTICS),
        (VerdictSource, VERDICT_SOURCES),
    ],
)
def test_every_word_is_written_about(words, written):
    assert get_args(words) == tuple(written)
