"""Collision studies, told once: on the terminal of `verify collision` and in reports."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from verifier.base.documents import Content
from verifier.base.numbers import error_text, fixed, interval_text, level_text, rounded, significant
from verifier.base.words import counted, listed, percent
from verifier.collision.document import (
    ClosedLoop,
    CollisionStudy,
    CombinationRecord,
    ComparisonRecord,
    DetectorRecord,
    PolicyRecord,
    RankingRecord,
    RatioRecord,
    ScoreRecord,
)
from verifier.collision.estimator import SPEED_UNITS
from verifier.collision.intervals import IntervalKind, safer
from verifier.collision.request import independence_text
from verifier.collision.result import CollisionResult
from verifier.collision.trust import Trust
from verifier.telling.blocks import Block, Cell, Figure, Fold, Listing, Paragraph, Row, Table, name_text
from verifier.telling.pictures import chart
from verifier.telling.terminal import told_text

SHOWN_DISTANCES = 8
"""Distances that a table shows beside those next to S(v), evenly spaced."""
HOW_TO_READ = (
    "The oracle reports every true distance; it is estimated from the same pairs. Above the oracle: how much more "
    "probable a collision is with the detector, given what is reported, on average over distances and speeds; below: "
    "how much less. Covered: the share of the weight where both are defined.",
    "One report: the car brakes or keeps its speed by the first report alone. Closed loop: it decides again with "
    "every report, until it stands or has come too close; by Storm.",
)


def collision_tables(result: CollisionResult) -> str:
    """Everything that a study found, but for the whole grids."""
    study = result.document()
    return told_text(study.title, collision_blocks(study, pictures=False), study.remarks)


def collision_sentence(study: CollisionStudy) -> str:
    """Which detectors were studied, and which loses least at the ratio of penalties that was asked for."""
    policy, settings = study.policies[0], study.settings
    titles = _titles(policy)
    text = f"Probability of collision by reported distance and speed, for {listed(titles)}"
    for ratio in () if policy.ranking is None else policy.ranking.ratios:
        if ratio.ratio * settings.alpha == settings.beta and len(titles) > 1 and ratio.order:
            text += f"; at the ratio {ratio.ratio:g} of the penalties, {titles[ratio.order[0]]} loses least"
            break
    return f"{text}."


def collision_blocks(study: CollisionStudy, *, pictures: bool = True) -> Iterator[Block]:
    """Per policy of braking: the detectors, their maps, how they compare, the closed loop and the ranking.

    Args:
        study: to be told.
        pictures: whether the maps are drawn, and their numbers shown on request.
    """
    for detector in study.policies[0].detectors:
        tested = detector.independence
        if tested is not None:
            text = f"{name_text(detector.title)}, {independence_text(tested)}."
            yield Paragraph(text, "lead" if tested.refuted else "note")
    yield Listing(tuple(_source_text(source) for source in study.inputs))
    yield Listing(HOW_TO_READ)
    for policy in study.policies:
        yield _detectors(study, policy)
        for detector in policy.detectors:
            table = _map_table(study, policy, detector)
            if pictures:
                yield _map(study, policy, detector)
                yield Fold("Some distances as a table", (table,))
            else:
                yield table
            if detector.closed_loop is not None:
                yield from _loop(study, detector, detector.closed_loop)
        for pair in policy.comparisons:
            yield _comparison(study, policy, pair)
        if policy.ranking is not None:
            yield from _ranking(study, policy, policy.ranking)
        if policy.combination is not None:
            yield _combination(policy, policy.combination)
    yield from _trusted(study)


def _source_text(origin: Content) -> str:
    lost = origin["objects"] - origin["pairs"]
    without = f", {lost} without a report" if lost else ""
    many = f"{origin['pairs']} pairs of {origin['objects']} objects{without}, {origin['images']} images"
    return f"{name_text(origin['title'])}: {many}"


def _titles(policy: PolicyRecord) -> list[str]:
    return [name_text(detector.title) for detector in policy.detectors]


def _speed(study: CollisionStudy, speed_mps: float) -> str:
    unit = study.settings.speed_unit
    return f"{significant(speed_mps / float(SPEED_UNITS[unit]), 4)} {unit}"


def _cell(value: float | None, text: str | None = None) -> Cell:
    """A probability or a loss with three digits; a dash where it is not defined."""
    return Cell("-") if value is None else Cell(text or rounded(value, up=None), value)


def _braking(policy: PolicyRecord) -> str:
    return f"{policy.deceleration_mps2:g} m/s² after {policy.reaction_s:g} s"


def _detectors(study: CollisionStudy, policy: PolicyRecord) -> Table:
    shown = study.settings.shown_mps
    ways = dict(zip(study.grid.speeds_mps, policy.stopping_m, strict=True))
    stopping = ", ".join(f"S({_speed(study, speed)}) = {fixed(ways[speed], 2)} m" for speed in shown)
    rows: tuple[Row, ...] = tuple(
        (
            name_text(detector.title),
            *(Cell(str(count), count) for count in (detector.pairs, detector.images)),
            Cell("-" if detector.width_m is None else f"{significant(detector.width_m)} m", detector.width_m),
            *_score_cells(detector.score),
            percent(detector.score.covered),
        )
        for detector in policy.detectors
    )
    header = ("detector", "pairs", "images", "kernel", "above the oracle", "below the oracle", "covered")
    return Table(f"Detectors, braking with {_braking(policy)}: {stopping}", header, rows, sortable=True)


def _score_cells(score: ScoreRecord) -> tuple[Cell, Cell]:
    return _cell(score.above), _cell(score.below)


def _map(study: CollisionStudy, policy: PolicyRecord, detector: DetectorRecord) -> Figure:
    unit = study.settings.speed_unit
    speeds = [speed / float(SPEED_UNITS[unit]) for speed in study.grid.speeds_mps]
    table = np.array(detector.probability, dtype=float)  # None becomes NaN
    title = f"Probability of collision, {name_text(detector.title)}, braking with {_braking(policy)}"
    axes = ("reported distance [m]", f"speed [{unit}]")
    picture = chart(table, (study.grid.distances_m, speeds), axes, title, worst_is_largest=True)
    return Figure(picture, f"{title}. Grey: not defined.")


def _map_table(study: CollisionStudy, policy: PolicyRecord, detector: DetectorRecord) -> Table:
    """The map at some distances and the shown speeds, with the recommended interval at each point."""
    speeds = [study.grid.speeds_mps.index(speed) for speed in study.settings.shown_mps]
    intervals = {interval.kind: interval for interval in detector.intervals}
    rows: list[Row] = []
    for y in _shown_rows(study.grid.distances_m, [policy.stopping_m[v] for v in speeds]):
        cells = [Cell(f"{study.grid.distances_m[y]:g} m", study.grid.distances_m[y])]
        for v in speeds:
            kind = safer(Trust(detector.trust[y][v]).kind, intervals).value
            lower, upper = (table[y][v] for table in (intervals[kind].lower, intervals[kind].upper))
            band = intervals[safer(IntervalKind.EXACT_SIMULTANEOUS, intervals).value]
            value = detector.probability[y][v]
            cells += [_cell(value, _near_an_end(value)), Cell(f"{_ends_text(lower, upper)} {kind}")]
            cells.append(Cell(_ends_text(band.lower[y][v], band.upper[y][v])))
        rows.append(tuple(cells))
    header = ["reported"]
    for speed in study.settings.shown_mps:
        header += [_speed(study, speed), "recommended interval", "all points at once"]
    caption = f"{name_text(detector.title)}: probability of collision, given the reported distance and the speed"
    return Table(f"{caption}; {level_text(study.settings.level)} intervals", tuple(header), tuple(rows))


def _near_an_end(value: float | None) -> str | None:
    """A probability so near 0 or 1 that its further digits are those of rounding; None for another one."""
    if value is None or not 0 < value < 1 or 1e-4 <= value <= 1 - 1e-4:
        return None
    return "< 0.0001" if value < 1e-4 else "> 0.9999"


def _ends_text(lower: float | None, upper: float | None) -> str:
    """An interval within [0, 1], outwards to nine decimals; a dash for none."""
    if lower is None or upper is None:
        return "-"
    low, high = math.floor(max(lower, 0.0) * 1e9) / 1e9, math.ceil(min(upper, 1.0) * 1e9) / 1e9
    return interval_text(low, high)


def _shown_rows(distances_m: Sequence[float], stopping_m: Sequence[float]) -> list[int]:
    """Evenly spaced distances, and those on both sides of every S(v)."""
    count = len(distances_m)
    rows = set(np.linspace(0, count - 1, min(SHOWN_DISTANCES, count)).round().astype(int).tolist())
    for at in np.searchsorted(distances_m, stopping_m).tolist():
        rows |= {row for row in (at - 1, at) if 0 <= row < count}
    return sorted(rows)


def _loop(study: CollisionStudy, detector: DetectorRecord, loop: ClosedLoop) -> Iterator[Block]:
    drive = study.settings.closed_loop
    near, margin = (0.0, 0.0) if drive is None else (drive.near_m, drive.margin_m)
    what = "probability of collision" if near == 0 else f"probability of coming closer than {near:g} m"
    rows = []
    for point in loop.points:
        bound = max(point.upper - point.closer, point.closer - point.lower)
        rows.append(
            (
                Cell(_speed(study, point.speed_mps), point.speed_mps),
                Cell(f"{fixed(point.stopping_m, 1)} m", point.stopping_m),
                "brakes" if point.brakes_at_first_report else "keeps",
                _cell(point.one_shot),
                _cell(point.closer),
                f"+- {error_text(bound)}" if bound else "certain",
                "-" if point.interval is None else interval_text(*point.interval),
            )
        )
    kept = f", margin {margin:g} m" if margin else ""
    title = (
        f"{name_text(detector.title)}: closed loop from a first report at {loop.first_report_m:g} m, a report every"
    )
    caption = f"{title} {loop.period_s:g} s{kept}; {what}"
    interval = f"{level_text(study.settings.level)} interval"
    header = ("speed", "S(v)", "first report", "one report", "closed loop (Storm)", "numerical", interval)
    yield Table(caption, header, tuple(rows), sortable=True)
    apart = max((abs(point.closer - point.second_engine) for point in loop.points), default=0.0)
    yield Paragraph(
        f"{loop.cars} cars start (worth {fixed(loop.effective_cars, 0)} of equal weight), {loop.missed} objects "
        f"without a report count; Storm {study.versions.get('storm', '')}, second engine apart by at most "
        f"{error_text(apart)}.",
        "note",
    )


def _comparison(study: CollisionStudy, policy: PolicyRecord, pair: ComparisonRecord) -> Table:
    """Where on the grid which of two detectors is closer to its oracle, and how often that is beyond chance."""
    first, second = (_titles(policy)[at] for at in (pair.first, pair.second))
    limit = 1 - study.settings.level
    area, tables = np.array(pair.area).astype(str), [np.array(pair.p_value, dtype=float)]
    if pair.bootstrap_p_value is not None:
        tables.append(np.array(pair.bootstrap_p_value, dtype=float))
    rows: list[Row] = []
    for code, text in study.codes.area.items():
        here = area == code
        tested = here & np.isfinite(tables[0])
        if here.any():
            sure = (float((table[tested] <= limit).mean()) if tested.any() else None for table in tables)
            told = (Cell("not tested") if share is None else Cell(percent(share, 3), share) for share in sure)
            rows.append((name_text(text), Cell(percent(float(here.mean()), 3), float(here.mean())), *told))
    width = "" if pair.width_m is None else f"; one kernel for both, {significant(pair.width_m)} m"
    caption = (
        f"{first} (first) against {second} (second): {pair.objects} objects, {pair.common_objects} of them with a "
        f"pair of both; threshold {pair.threshold:g}; {pair.subsamples} subsamples of {pair.subsample_size}, "
        f"at a point up to {pair.undefined_most} of them without a value, which count against the claim{width}"
    )
    header = ("area", "share of the grid", f"of this with p <= {significant(limit)}", "of this by bootstrap")
    return Table(caption, header[: 2 + len(tables)], tuple(rows), sortable=True)


def _ranking(study: CollisionStudy, policy: PolicyRecord, ranking: RankingRecord) -> Iterator[Block]:
    titles = _titles(policy)
    rows = []
    for ratio in ranking.ratios:
        best = (
            f"{titles[at]} {'not known' if share is None else percent(share, 3)}"
            for at, share in enumerate(ratio.best_share)
        )
        losses = (f"{titles[at]} {_loss_text(ratio, at)}" for at in ratio.order)
        order = ", ".join(titles[at] for at in ratio.order)
        rows.append((Cell(significant(ratio.ratio, 4), ratio.ratio), order, ", ".join(best), ", ".join(losses)))
    line = "above + ratio x below" if ranking.heavy == "below" else "below + ratio x above"
    covered = percent(ranking.scores[0].covered, 3)
    caption = (
        f"Ranking: L / alpha = {line}, ratio = beta / alpha, weight {name_text(ranking.weight)}; smaller is safer; "
        f"over {covered} of the weight, where all are defined; {level_text(study.settings.level)} intervals"
    )
    header = ("ratio", "order", "best in so many replicates", "L / alpha")
    yield Table(caption, header, tuple(rows), sortable=True)
    for crossing in ranking.crossings:
        below, above = titles[crossing.better_below], titles[crossing.better_above]
        sure = "" if crossing.share is None else f"; so in {percent(crossing.share, 3)} of the replicates"
        yield Paragraph(
            f"{below} scores better below the ratio {significant(crossing.ratio)}, {above} above it{sure}.", "note"
        )
    if not ranking.crossings:
        yield Paragraph("The order is the same at every ratio.", "note")


def _loss_text(ratio: RatioRecord, at: int) -> str:
    """The loss of a detector with its interval."""
    lower, upper = ratio.lower[at], ratio.upper[at]
    interval = "" if lower is None or upper is None else f" {interval_text(lower, upper)}"
    return f"{_cell(ratio.loss[at]).text}{interval}"


def _combination(policy: PolicyRecord, combination: CombinationRecord) -> Table:
    choice = np.array(combination.choice)
    rows: list[Row] = []
    for at, (title, score) in enumerate(zip(_titles(policy), combination.single, strict=True)):
        share = float((choice == at).mean())
        rows.append((title, Cell(percent(share, 3), share), *_score_cells(score), _total(score)))
    rows.append(("combined", "", *_score_cells(combination.combined), _total(combination.combined)))
    caption = (
        f"Combination, each point to the detector closer to its oracle: chosen on {combination.chosen_on} images, "
        f"scored on the other {combination.scored_on}"
    )
    return Table(caption, ("detector", "of the grid", "above", "below", "above + below"), tuple(rows))


def _total(score: ScoreRecord) -> Cell:
    known = score.above is not None and score.below is not None
    return _cell((score.above or 0.0) + (score.below or 0.0) if known else None)


def _trusted(study: CollisionStudy) -> Iterator[Block]:
    """Which intervals to trust, over all maps, and why."""
    detectors = [detector for policy in study.policies for detector in policy.detectors]
    codes = Counter(code for detector in detectors for row in detector.trust for code in row)
    total = sum(codes.values())
    yield Paragraph(f"Recommended interval, over {counted(total, 'point')}:")
    yield Listing(
        tuple(
            f"{'less than 1 %' if count < total / 200 else percent(count / total, 3)}: {study.codes.trust[str(code)]}"
            for code, count in codes.most_common()
        )
    )
    kinds = {interval.kind: interval for detector in detectors for interval in detector.intervals}
    yield Paragraph("Intervals: what each covers and assumes:")
    yield Listing(tuple(f"{kind}: {interval.covers}; {interval.assumes}" for kind, interval in kinds.items()))
