"""Studies of collisions: their probability by reported distance and speed, and what the closed loop makes of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verifier.base.numbers import interval_text, level_text, number_text
from verifier.base.words import listed, percent
from verifier.collision.document import (
    CollisionSettings,
    CollisionStudy,
    ComparisonRecord,
    DetectorRecord,
    PolicyRecord,
)
from verifier.telling.blocks import Block, Cell, Figure, Listing, Paragraph, Row, Table
from verifier.telling.pictures import chart
from verifier.telling.wording import name_text

UNITS_MPS = {"m/s": 1.0, "km/h": 1 / 3.6, "mph": 0.44704, "kn": 1852 / 3600}
HOW_TO_READ = (
    "The oracle reports every true distance; it is estimated from the same pairs. Above the oracle: how much more "
    "probable a collision is with the detector, given what is reported, on average over distances and speeds; below: "
    "how much less. Covered: the share of the weight where both are defined.",
    "One report: the car brakes or keeps its speed by the first report alone. Closed loop: it decides anew with "
    "every report, until it stands or has come too close; by Storm.",
)


def collision_sentence(content: CollisionStudy) -> str:
    """Which detectors were studied, and which loses least at the ratio of penalties that was asked for."""
    policy, settings = content.policies[0], content.settings
    titles = [name_text(each.title) for each in policy.detectors]
    text = f"Probability of collision by reported distance and speed, for {listed(titles)}"
    for each in () if policy.ranking is None else policy.ranking.ratios:
        if each.ratio * settings.alpha == settings.beta and len(titles) > 1 and each.order:
            text += f"; at the ratio {each.ratio:g} of the penalties, {titles[each.order[0]]} loses least"
            break
    return f"{text}."


def collision_blocks(content: CollisionStudy) -> Iterator[Block]:
    """Per policy of braking: the detectors, their maps, how they compare, the closed loop and the ranking."""
    yield Listing(HOW_TO_READ)
    unit = content.settings.speed_unit
    distances = content.grid.distances_m
    speeds = [each / UNITS_MPS[unit] for each in content.grid.speeds_mps]
    for policy in content.policies:
        braking = f"{policy.deceleration_mps2:g} m/s², reaction {policy.reaction_s:g} s"
        rows: list[Row] = []
        for each in policy.detectors:
            score = each.score
            ends = ["not defined" if end is None else f"{end:.4g}" for end in (score.above, score.below)]
            counts = (Cell(str(count), count) for count in (each.pairs, each.images))
            rows.append((name_text(each.title), *counts, *ends, percent(score.covered)))
        header = ("detector", "pairs", "images", "above the oracle", "below the oracle", "covered")
        yield Table(f"Detectors, braking with {braking}", header, tuple(rows), sortable=True)
        for each in policy.detectors:
            table = np.array([[np.nan if p is None else p for p in row] for row in each.probability], float)
            title = f"Probability of collision, {name_text(each.title)}, braking with {braking}"
            axes = ("reported distance [m]", f"speed [{unit}]")
            picture = chart(table, (distances, speeds), axes, title, worst_is_largest=True)
            yield Figure(picture, f"{title}. Grey: not defined.")
            yield from _closed_loop(each, content.settings)
        for pair in policy.comparisons:
            yield _comparison(pair, policy, content)
        yield from _ranking(policy)


def _closed_loop(detector: DetectorRecord, settings: CollisionSettings) -> Iterator[Block]:
    loop, unit = detector.closed_loop, settings.speed_unit
    if loop is None:
        return
    rows = tuple(
        (
            Cell(f"{point.speed_mps / UNITS_MPS[unit]:.4g}", point.speed_mps),
            Cell(number_text(point.one_shot), point.one_shot),
            Cell(number_text(point.closer), point.closer),
            "none" if point.interval is None else interval_text(*point.interval),
        )
        for point in loop.points
    )
    near = 0 if settings.closed_loop is None else settings.closed_loop.near_m
    what = "probability of collision" if near == 0 else f"probability of coming closer than {near:g} m"
    first = f"first report at {loop.first_report_m:g} m, one every {loop.period_s:g} s"
    title = f"{name_text(detector.title)}: {what}, {first}, {loop.cars} cars"
    yield Table(
        title,
        (f"speed [{unit}]", "one report", "closed loop (Storm)", f"{level_text(settings.level)} interval"),
        rows,
        sortable=True,
    )


def _ranking(policy: PolicyRecord) -> Iterator[Block]:
    found = policy.ranking
    if found is None:
        return
    titles = [name_text(each.title) for each in policy.detectors]
    rows = tuple(
        (
            Cell(f"{ratio.ratio:.4g}", ratio.ratio),
            ", ".join(titles[at] for at in ratio.order),
            ", ".join(
                f"{titles[at]} not known" if share is None else f"{titles[at]} {percent(share, 3)}"
                for at, share in enumerate(ratio.best_share)
            ),
        )
        for ratio in found.ratios
    )
    yield Table(
        f"Ranking, the smallest loss first, by ratio of the penalties; heavy is what lies {found.heavy}",
        ("ratio", "order", "best in so many replicates"),
        rows,
        sortable=True,
    )
    for each in found.crossings:
        below, above = titles[each.better_below], titles[each.better_above]
        yield Paragraph(f"{below} scores better below the ratio {each.ratio:.3g}, {above} above it.", "note")


def _comparison(pair: ComparisonRecord, policy: PolicyRecord, content: CollisionStudy) -> Table:
    """Where on the grid which of two detectors is closer to its oracle, and how often that is beyond chance."""
    names = [name_text(policy.detectors[at].title) for at in (pair.first, pair.second)]
    limit = 1 - content.settings.level
    area, chance = np.array(pair.area).astype(str), np.array(pair.p_value, dtype=float)
    rows: list[Row] = []
    for code, text in content.codes.area.items():
        here = area == code
        tested = here & np.isfinite(chance)
        if here.any():
            sure = percent(float((chance[tested] <= limit).mean()), 3) if tested.any() else "not tested"
            rows.append((name_text(text), Cell(percent(float(here.mean()), 3), float(here.mean())), sure))
    caption = f"{names[0]} (first) against {names[1]} (second), {pair.objects} objects"
    return Table(caption, ("area", "share of the grid", f"of this with p <= {limit:.3g}"), tuple(rows), sortable=True)
