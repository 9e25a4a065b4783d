"""What a study found, as one value that can give its document and its rows; nothing here prints."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.checksums import with_checksums
from verifier.base.documents import json_values
from verifier.base.result import Result
from verifier.collision.comparison import Area
from verifier.collision.document import (
    Codes,
    CodeTexts,
    CollisionSettings,
    CollisionStudy,
    CombinationRecord,
    ComparisonRecord,
    CrossingRecord,
    DetectorRecord,
    GridRecord,
    IntervalRecord,
    LoopRecord,
    PolicyRecord,
    RankingRecord,
    RatioRecord,
    Row,
    ScoreRecord,
    Table,
)
from verifier.collision.kernel import Reason
from verifier.collision.pairs_reader import ReadPairs
from verifier.collision.ranking import Combination, Ranking
from verifier.collision.score import Score
from verifier.collision.stopping import SPEED_UNITS
from verifier.collision.study import Compared, DetectorResult, LoopSettings, PolicyResult, StudySettings
from verifier.collision.trust import Trust

RATIOS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""beta / alpha at which a ranking is written down, beside that of the settings."""


@dataclass(frozen=True, eq=False, repr=False)
class CollisionResult(Result):
    """Everything one `verify collision` found.

    Attributes:
        title: for people.
        detectors: the pairs that went in, with their sources.
        settings: every choice that can change a number.
        policies: what was found under each braking policy.
        versions: of this program and of what it computed with.
        remarks: what a reader must know to read the numbers rightly.
    """

    title: str
    detectors: tuple[ReadPairs, ...]
    settings: StudySettings
    policies: tuple[PolicyResult, ...]
    versions: Mapping[str, str]
    remarks: tuple[str, ...]

    TOLD = "verifier.telling.collision:collision_tables"
    DRAWN = "verifier.telling.figures.collision:map_figure"

    @property
    def headline(self) -> str:
        """The title, and how many braking policies were studied."""
        return f"{self.title}, {len(self.policies)} braking {'policy' if len(self.policies) == 1 else 'policies'}"

    @property
    def unit_mps(self) -> float:
        """Metres per second in one unit of the speeds that people are told."""
        return float(SPEED_UNITS[self.settings.speed_unit])

    def document(self) -> CollisionStudy:
        """The document."""
        grid = self.settings.grid
        return CollisionStudy(
            title=self.title,
            inputs=tuple({"title": each.pairs.title, **each.origin} for each in self.detectors),
            settings=_settings(self.settings),
            versions=self.versions,
            remarks=self.remarks,
            grid=GridRecord(tuple(grid.distances_m.tolist()), tuple(grid.speeds_mps.tolist())),
            codes=CodeTexts(
                reason={str(each.value): each.text for each in Reason},
                trust={str(each.value): f"{each.kind.value}: {each.text}" for each in Trust},
                area={str(each.value): each.text for each in Area},
            ),
            policies=tuple(_policy(each, self.settings) for each in self.policies),
        )

    def json_text(self) -> str:
        """The document as text, one line per row of a table."""
        return with_checksums(_text(json_values(self.document()), 0) + "\n")

    def rows(self) -> Iterator[dict[str, str | int | float]]:
        """One flat row per policy, detector, distance and speed; an empty text where a number is not defined."""
        grid = self.settings.grid
        for policy in self.policies:
            for each in policy.detectors:
                lower, upper = each.confidence.trusted
                tables = [each.map.probability, lower, upper, each.oracle.probability]
                for y, v in np.ndindex(grid.shape):
                    probability, low, high, oracle = (_cell(float(table[y, v])) for table in tables)
                    trust = Trust(int(each.confidence.trust[y, v]))
                    yield {
                        "deceleration_mps2": policy.policy.deceleration_mps2,
                        "reaction_s": policy.policy.reaction_s,
                        "detector": each.map.title,
                        "distance_m": float(grid.distances_m[y]),
                        "speed_mps": float(grid.speeds_mps[v]),
                        "stopping_m": float(each.map.stopping_m[v]),
                        "probability": probability,
                        "lower": low,
                        "upper": high,
                        "interval": trust.kind.value,
                        "oracle": oracle,
                        "reason": Reason(int(each.map.reason[y, v])).name.lower(),
                    }


def _cell(value: float) -> float | str:
    return "" if np.isnan(value) else float(value)


def _settings(settings: StudySettings) -> CollisionSettings:
    estimator, penalty = settings.estimator, settings.penalty
    return CollisionSettings(
        speed_unit=settings.speed_unit,
        shown_mps=settings.shown_mps,
        bandwidth=estimator.bandwidth,
        constant=estimator.constant,
        width_m=estimator.width_m,
        two_bandwidths=estimator.two_bandwidths,
        reach=estimator.reach,
        level=settings.level,
        window_m=settings.window_m,
        subsamples=settings.subsampling.count,
        subsample_size=settings.subsampling.size,
        bootstrap=settings.bootstrap,
        ranking=settings.ranking,
        seed=settings.seed,
        alpha=penalty.alpha,
        beta=penalty.beta,
        heavy=penalty.heavy,
        threshold=settings.threshold,
        weight="uniform" if settings.weight is None else settings.weight.name,
        held_out=settings.held_out,
        closed_loop=None if settings.loop is None else _loop_settings(settings.loop),
    )


def _loop_settings(loop: LoopSettings) -> LoopRecord:
    drive, channel = loop.drive, loop.channel
    return LoopRecord(
        first_report_m=loop.first_report_m,
        period_s=drive.period_s,
        near_m=drive.near_m,
        margin_m=drive.margin_m,
        margin_s=drive.margin_s,
        braking=drive.braking,
        refinement=drive.refinement,
        bin_m=channel.bin_m,
        drawn=channel.drawn,
        empty_bins=channel.empty_bins,
        misses=channel.misses,
        replicates=loop.replicates,
        exact=loop.engines.exact,
    )


def _policy(found: PolicyResult, settings: StudySettings) -> PolicyRecord:
    return PolicyRecord(
        deceleration_mps2=found.policy.deceleration_mps2,
        reaction_s=found.policy.reaction_s,
        stopping_m=tuple(found.detectors[0].map.stopping_m.tolist()),
        detectors=tuple(map(_detector, found.detectors)),
        comparisons=tuple(map(_comparison, found.comparisons)),
        ranking=None if found.ranking is None else _ranking(found.ranking, settings),
        combination=None if found.combination is None else _combination(found.combination),
    )


def _detector(found: DetectorResult) -> DetectorRecord:
    chart, sure = found.map, found.confidence
    return DetectorRecord(
        title=chart.title,
        pairs=chart.pair_count,
        images=chart.image_count,
        width_m=_number(chart.width_m),
        cross_validated_m=_number(chart.cross_validated_m),
        oversmooths=bool(chart.oversmooths),
        score=_score(found.score),
        probability=_table(chart.probability),
        reason=_codes(chart.reason),
        oracle=_table(found.oracle.probability),
        trust=_codes(sure.trust),
        images_near=tuple(sure.images.tolist()),
        intervals=tuple(
            IntervalRecord(
                kind=each.kind.value,
                covers=each.kind.covers,
                assumes=each.kind.assumes,
                resamples=each.resamples,
                lower=_table(each.lower),
                upper=_table(each.upper),
            )
            for each in sure.intervals.values()
        ),
        closed_loop=found.loop,
    )


def _comparison(each: Compared) -> ComparisonRecord:
    found = each.found
    return ComparisonRecord(
        first=each.first,
        second=each.second,
        threshold=found.threshold,
        objects=found.objects,
        common_objects=found.common_objects,
        subsamples=found.subsamples,
        subsample_size=found.subsample_size,
        area=_codes(found.area),
        p_value=_table(found.p_value),
        bootstrap_p_value=None if each.bootstrap_p is None else _table(each.bootstrap_p),
        width_m=_number(found.maps[0].width_m),
    )


def _ranking(found: Ranking, settings: StudySettings) -> RankingRecord:
    asked = settings.penalty.beta / settings.penalty.alpha if settings.penalty.alpha else None
    ratios = sorted({*RATIOS, *([asked] if asked else [])})
    lines = []
    for ratio in ratios:
        lower, upper = found.interval(ratio)
        best = found.best_share(ratio)
        losses = found.losses(ratio)
        lines.append(
            RatioRecord(ratio, tuple(found.order(ratio)), _row(losses), _row(lower), _row(upper), _row(best))
        )
    return RankingRecord(
        weight=found.weight,
        heavy=found.heavy,
        scores=tuple(map(_score, found.scores)),
        ratios=tuple(lines),
        crossings=tuple(
            CrossingRecord(each.ratio, each.better_below, each.better_above, _share(found.crossing_replicates(each)))
            for each in found.crossings()
        ),
    )


def _combination(found: Combination) -> CombinationRecord:
    return CombinationRecord(
        chosen_on=found.chosen_on,
        scored_on=found.scored_on,
        choice=_codes(found.choice),
        single=tuple(map(_score, found.single)),
        combined=_score(found.combined),
        probability=_table(found.probability),
    )


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _share(replicates: NDArray[np.float64]) -> float | None:
    """How many of the replicates are defined; None where there are none."""
    return float(np.isfinite(replicates).mean()) if len(replicates) else None


def _row(values: Iterable[float]) -> Row:
    return tuple(map(_number, values))


def _table(values: NDArray[np.float64]) -> Table:
    return tuple(map(_row, values.tolist()))


def _codes(values: NDArray[Any]) -> Codes:
    return tuple(map(tuple, values.tolist()))


def _score(each: Score) -> ScoreRecord:
    return ScoreRecord(_number(each.above), _number(each.below), each.covered)


def _text(value: Any, depth: int) -> str:
    """JSON in which a list of plain values is one line."""
    pad, inner = "  " * depth, "  " * (depth + 1)
    if isinstance(value, dict) and value:
        parts = [f"{inner}{json.dumps(key)}: {_text(each, depth + 1)}" for key, each in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{pad}}}"
    if isinstance(value, list) and any(isinstance(each, list | dict) for each in value):
        return "[\n" + ",\n".join(inner + _text(each, depth + 1) for each in value) + f"\n{pad}]"
    return json.dumps(value, allow_nan=False)
