"""The alternative policies under which a bundle repeats its run: does a verdict depend on a choice about the data?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from verifier.chains.filled import FROM
from verifier.perception.confusion import EMPTY_COLUMN_POLICIES
from verifier.perception.confusion.matrices import EMPTY_CONTEXT_POLICIES
from verifier.study.case import Study
from verifier.study.options import VERDICT_SOURCES, RunOptions
from verifier.systems.channel import FALSE_POSITIVE_POLICIES


@dataclass(frozen=True)
class Alternative:
    """One other choice.

    Attributes:
        name: of its file, without folder and ending.
        words: the choice, for people.
        options: of the run under it.
    """

    name: str
    words: str
    options: RunOptions


def alternatives(rebuilt: Study) -> tuple[Alternative, ...]:
    """Every other choice that applies.

    | choice                       | applies                                                            |
    |------------------------------|--------------------------------------------------------------------|
    | use of column "empty"        | always: what the detector reports where there is no object             |
    | rates of columns without data| where the run needed a policy for them                             |
    | rates of contexts without data| where the run filled any in                                       |
    | what decides a verdict       | where intervals and bounds are made                                |
    """
    options = rebuilt.options
    found = [
        Alternative(f"false_positives_{other}", f"false positives: {other}", replace(options, false_positives=other))
        for other in FALSE_POSITIVE_POLICIES
        if other != options.false_positives
    ]
    if options.empty_columns != "error":
        found += [
            Alternative(
                f"empty_columns_{other}", f"columns without items: {other}", replace(options, empty_columns=other)
            )
            for other in EMPTY_COLUMN_POLICIES
            if other not in ("error", options.empty_columns)
        ]
    if any(FROM in text for case in rebuilt.cases for text in case.assumed):
        found += [
            Alternative(
                f"empty_contexts_{other}", f"contexts without items: {other}", replace(options, empty_contexts=other)
            )
            for other in EMPTY_CONTEXT_POLICIES
            if other not in ("error", options.empty_contexts)
        ]
    if options.confidence is not None and options.decimals is None:
        found += [
            Alternative(f"verdict_from_{other}", f"verdict from: {other}", replace(options, verdict_from=other))
            for other in VERDICT_SOURCES
            if other != options.verdict_from
        ]
    return tuple(found)


def is_alike(options: RunOptions, rebuilt: Study) -> bool:
    """Whether a run differs from that of the bundle in what decides a verdict only: the system is the same."""
    return replace(options, verdict_from=rebuilt.options.verdict_from) == rebuilt.options
