"""What a study found, as one value that can give its document and its rows; nothing here prints."""

import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verifier.base.checksums import with_checksums
from verifier.base.documents import json_values
from verifier.base.result import Result, plain, recorded
from verifier.collision.comparison import Area
from verifier.collision.document import (
    CodeTexts,
    CollisionSettings,
    CollisionStudy,
    CombinationRecord,
    ComparisonRecord,
    DetectorRecord,
    GridRecord,
    IntervalRecord,
    LoopRecord,
    PolicyRecord,
    RankingRecord,
    RatioRecord,
    ScoreRecord,
)
from verifier.collision.estimator import SPEED_UNITS
from verifier.collision.intervals import IntervalKind, safer
from verifier.collision.kernel import Reason
from verifier.collision.pairs_reader import ReadPairs
from verifier.collision.ranking import Combination, Ranking
from verifier.collision.study import Compared, DetectorResult, PolicyResult, StudySettings
from verifier.collision.trust import Trust

RATIOS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""beta / alpha at which a ranking is written down, beside that of the settings."""


@dataclass(frozen=True, eq=False, repr=False)
class CollisionResult(Result):
    """Everything one `verify collision` found.

    Attributes:
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
    FURTHER = ("plot_intervals", "plot_comparison", "plot_ranking", "plot_closed_loop")
    NAMED_BY = ("deceleration_mps2", "reaction_s", "detector", "distance_m", "speed_mps")
    METRICS = ("probability", "lower", "upper")

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
        made = {kind for policy in self.policies for one in policy.detectors for kind in one.confidence.intervals}
        return CollisionStudy(
            title=self.title,
            inputs=tuple({"title": detector.pairs.title, **detector.origin} for detector in self.detectors),
            settings=_settings(self.settings),
            versions=self.versions,
            remarks=self.remarks,
            grid=recorded(GridRecord, grid),
            codes=CodeTexts(
                reason={str(reason.value): reason.text for reason in Reason},
                trust={str(trust.value): f"{_kind_text(trust, made)}: {trust.text}" for trust in Trust},
                area={str(area.value): area.text for area in Area},
            ),
            policies=tuple(_policy(policy, self.settings) for policy in self.policies),
        )

    def json_text(self) -> str:
        """The document as text, one line per row of a table."""
        return with_checksums(_text(json_values(self.document()), 0) + "\n")

    def rows(self) -> Iterator[dict[str, str | int | float]]:
        """One flat row per policy, detector, distance and speed; an empty text where a number is not defined."""
        grid = self.settings.grid
        for policy in self.policies:
            for detector in policy.detectors:
                lower, upper = detector.confidence.trusted
                made = detector.confidence.intervals
                band = made[safer(IntervalKind.EXACT_SIMULTANEOUS, made)]
                tables = [detector.map.probability, lower, upper, detector.oracle.probability, band.lower, band.upper]
                for y, v in np.ndindex(grid.shape):
                    probability, low, high, oracle, *both = (_cell(float(table[y, v])) for table in tables)
                    trust = Trust(int(detector.confidence.trust[y, v]))
                    yield {
                        "deceleration_mps2": policy.policy.deceleration_mps2,
                        "reaction_s": policy.policy.reaction_s,
                        "detector": detector.map.title,
                        "distance_m": float(grid.distances_m[y]),
                        "speed_mps": float(grid.speeds_mps[v]),
                        "stopping_m": float(detector.map.stopping_m[v]),
                        "probability": probability,
                        "lower": low,
                        "upper": high,
                        "interval": safer(trust.kind, made).value,
                        "band_lower": both[0],
                        "band_upper": both[1],
                        "oracle": oracle,
                        "reason": Reason(int(detector.map.reason[y, v])).name.lower(),
                    }


def _kind_text(trust: Trust, made: Container[IntervalKind]) -> str:
    """The recommended kind, and the one that some detector of the study has in its place."""
    kind = safer(trust.kind, made)
    return trust.kind.value if kind is trust.kind else f"{trust.kind.value} ({kind.value} where there is one)"


def _cell(value: float) -> float | str:
    return "" if np.isnan(value) else float(value)


def _settings(settings: StudySettings) -> CollisionSettings:
    loop = settings.loop
    return recorded(
        CollisionSettings,
        *(settings, settings.estimator, settings.penalty),
        subsamples=settings.subsampling.count,
        subsample_size=settings.subsampling.size,
        weight="uniform" if settings.weight is None else settings.weight.name,
        closed_loop=None if loop is None else recorded(LoopRecord, loop, loop.drive, loop.channel),
    )


def _policy(result: PolicyResult, settings: StudySettings) -> PolicyRecord:
    return recorded(
        PolicyRecord,
        result.policy,
        stopping_m=plain(result.detectors[0].map.stopping_m),
        detectors=tuple(map(_detector, result.detectors)),
        comparisons=tuple(map(_comparison, result.comparisons)),
        ranking=None if result.ranking is None else _ranking(result.ranking, settings),
        combination=None if result.combination is None else _combination(result.combination),
    )


def _detector(result: DetectorResult) -> DetectorRecord:
    return recorded(
        DetectorRecord,
        *(result.map, result.confidence),
        pairs=result.map.pair_count,
        images=result.map.image_count,
        score=recorded(ScoreRecord, result.score),
        oracle=plain(result.oracle.probability),
        images_near=plain(result.confidence.images),
        intervals=tuple(
            recorded(IntervalRecord, interval, interval.kind, kind=interval.kind.value)
            for interval in result.confidence.intervals.values()
        ),
        closed_loop=result.loop,
    )


def _comparison(compared: Compared) -> ComparisonRecord:
    return recorded(
        ComparisonRecord,
        *(compared, compared.comparison),
        bootstrap_p_value=plain(compared.bootstrap_p),
        width_m=plain(compared.comparison.maps[0].width_m),
        undefined_most=int(compared.comparison.undefined.max(initial=0)),
    )


def _ranking(ranking: Ranking, settings: StudySettings) -> RankingRecord:
    asked = settings.penalty.beta / settings.penalty.alpha if settings.penalty.alpha else None
    ratios = sorted({*RATIOS, *([asked] if asked else [])})
    return recorded(
        RankingRecord,
        ranking,
        scores=tuple(recorded(ScoreRecord, score) for score in ranking.scores),
        ratios=tuple(_at_ratio(ranking, ratio) for ratio in ratios),
        crossings=tuple(
            replace(crossing, share=plain(np.isfinite(ranking.crossing_replicates(crossing)).mean()))
            for crossing in ranking.crossings()
        ),
    )


def _at_ratio(ranking: Ranking, ratio: float) -> RatioRecord:
    columns = (ranking.losses(ratio), *ranking.interval(ratio), ranking.best_share(ratio))
    return RatioRecord(ratio, tuple(ranking.order(ratio)), *map(plain, columns))


def _combination(combination: Combination) -> CombinationRecord:
    return recorded(
        CombinationRecord,
        combination,
        single=tuple(recorded(ScoreRecord, score) for score in combination.single),
        combined=recorded(ScoreRecord, combination.combined),
    )


def _text(value: Any, depth: int) -> str:
    """JSON in which a list of plain values is one line."""
    pad, inner = "  " * depth, "  " * (depth + 1)
    if isinstance(value, dict) and value:
        parts = [f"{inner}{json.dumps(key)}: {_text(part, depth + 1)}" for key, part in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{pad}}}"
    if isinstance(value, list) and any(isinstance(part, list | dict) for part in value):
        return "[\n" + ",\n".join(inner + _text(part, depth + 1) for part in value) + f"\n{pad}]"
    return json.dumps(value, allow_nan=False)
