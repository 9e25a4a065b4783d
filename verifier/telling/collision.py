"""Collision studies as tables that a person reads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from verifier.base.errors import one_line
from verifier.collision.bridge import ClosedLoop
from verifier.collision.combination import Combination
from verifier.collision.comparison import Area
from verifier.collision.intervals import IntervalKind
from verifier.collision.oracle import EVEN
from verifier.collision.ranking import Ranking
from verifier.collision.result import CollisionResult
from verifier.collision.study import Compared, DetectorResult, PolicyResult
from verifier.collision.trust import Trust
from verifier.telling.terminal import aligned

SHOWN_DISTANCES = 8
"""Distances that a table shows beside those next to S(v), evenly spaced."""


def collision_tables(result: CollisionResult) -> str:
    """Everything that a study found, but for the whole grids."""
    lines = [one_line(result.title)]
    lines += [_source_line(each.pairs.title, dict(each.origin)) for each in result.detectors]
    for policy in result.policies:
        lines += ["", *_policy_lines(result, policy)]
    lines += ["", *_which_lines(result)]
    lines += [f"note: {one_line(remark)}" for remark in result.remarks]
    return "\n".join(lines) + "\n"


def _source_line(title: str, origin: dict[str, object]) -> str:
    lost = int(str(origin["objects"])) - int(str(origin["pairs"]))
    without = f", {lost} without a report" if lost else ""
    return one_line(
        f"{title}: {origin['pairs']} pairs of {origin['objects']} objects{without}, {origin['images']} images"
    )


def _policy_lines(result: CollisionResult, found: PolicyResult) -> Iterator[str]:
    policy, shown = found.policy, result.settings.shown_mps
    ways = ", ".join(
        f"S({_speed(result, speed)}) = {float(policy.stopping_distance_m(speed)):.2f} m" for speed in shown
    )
    yield f"Braking with {policy.deceleration_mps2:g} m/s^2 after {policy.reaction_s:g} s: {ways}"
    for each in found.detectors:
        yield ""
        yield from _map_lines(result, each)
    for compared in found.comparisons:
        yield ""
        yield from _comparison_lines(result, found, compared)
    if found.ranking is not None:
        yield ""
        yield from _ranking_lines(result, found.ranking)
    if found.combination is not None:
        yield ""
        yield from _combination_lines(found.combination, [each.map.title for each in found.detectors])
    for each in found.detectors:
        if each.loop is not None:
            yield ""
            yield from _loop_lines(result, each, each.loop)


def _map_lines(result: CollisionResult, found: DetectorResult) -> Iterator[str]:
    chart, shown = found.map, result.settings.shown_mps
    speeds = [int(np.flatnonzero(chart.grid.speeds_mps == speed)[0]) for speed in shown]
    rows = _shown_rows(chart.grid.distances_m, chart.stopping_m[speeds])
    lower, upper = found.confidence.trusted
    table = []
    for y in rows:
        cells = [f"{chart.grid.distances_m[y]:g} m"]
        for v in speeds:
            trust = Trust(int(found.confidence.trust[y, v]))
            interval = f"[{_share(max(lower[y, v], 0.0))}, {_share(min(upper[y, v], 1.0))}]"
            cells += [_share(chart.probability[y, v]), f"{interval} {trust.kind.value}"]
        table.append(cells)
    yield one_line(
        f"{chart.title}: probability of collision, given the reported distance and the speed; {_level(result)} "
        f"intervals; kernel {chart.width_m:.3g} m"
    )
    header = ["reported"]
    for speed in shown:
        header += [_speed(result, speed), "interval to trust"]
    yield from aligned(header, table)
    score = found.score
    above, below, _ = _score_cells(score.above, score.below, 0.0)
    yield f"beside its oracle, over {score.covered:.0%} of the weight: above by {above}, below by {below} on average"


def _shown_rows(distances_m: np.ndarray, stopping_m: np.ndarray) -> list[int]:
    """Evenly spaced distances, and those on both sides of every S(v)."""
    rows = set(
        np.linspace(0, len(distances_m) - 1, min(SHOWN_DISTANCES, len(distances_m))).round().astype(int).tolist()
    )
    for stopping in stopping_m.tolist():
        at = int(np.searchsorted(distances_m, stopping))
        rows |= {each for each in (at - 1, at) if 0 <= each < len(distances_m)}
    return sorted(rows)


def _comparison_lines(result: CollisionResult, policy: PolicyResult, compared: Compared) -> Iterator[str]:
    found = compared.found
    names = [policy.detectors[number].map.title for number in (compared.first, compared.second)]
    limit = 1 - result.settings.level
    described = {
        Area.FIRST: f"{names[0]} closer to its oracle",
        Area.SECOND: f"{names[1]} closer to its oracle",
        Area.EITHER: f"both within {found.threshold:g} of their oracles",
        Area.TIED: "equal losses",
        Area.UNDEFINED: "not defined for both",
    }
    tables = [found.p_value, *([] if compared.bootstrap_p is None else [compared.bootstrap_p])]
    rows = []
    for area, text in described.items():
        here = found.area == area
        if here.any():
            tested = here & np.isfinite(found.p_value)
            sure = [f"{(each[tested] <= limit).mean():.0%}" if tested.any() else "-" for each in tables]
            rows.append([one_line(text), f"{here.mean():.0%}", *sure])
    yield one_line(
        f"{names[0]} against {names[1]}: {found.objects} objects, {found.common_objects} of them with a pair of "
        f"both; {found.subsamples} subsamples of {found.subsample_size}; one kernel for both, "
        f"{found.maps[0].width_m:.3g} m"
    )
    header = ["area", "of the grid", f"p <= {limit:.3g} in", f"by bootstrap p <= {limit:.3g} in"]
    yield from aligned(header[: 2 + len(tables)], rows)


def _ranking_lines(result: CollisionResult, found: Ranking) -> Iterator[str]:
    penalty = result.settings.penalty
    asked = [penalty.beta / penalty.alpha] if penalty.alpha > 0 else []
    ratios = list(dict.fromkeys([1.0, *asked, 100.0]))
    titles = [one_line(title) for title in found.titles]
    rows = []
    for number in found.order(asked[0] if asked else 1.0):
        cells = [titles[number], f"{found.scores[number].above:.4f}", f"{found.scores[number].below:.4f}"]
        for ratio in ratios:
            lower, upper = found.interval(ratio)
            loss = found.losses(ratio)[number]
            cells += [
                f"{loss:.4f} [{lower[number]:.4f}, {upper[number]:.4f}]",
                f"{found.best_share(ratio)[number]:.0%}",
            ]
        rows.append(cells)
    covered = found.scores[0].covered
    line = "above + ratio x below" if found.heavy == "below" else "below + ratio x above"
    yield (
        f"Ranking: L / alpha = {line}, ratio = beta / alpha, weight {one_line(found.weight)}; smaller is safer; over "
        f"{covered:.0%} of the weight, where all are defined; {_level(result)} intervals; best in so many replicates"
    )
    header = ["detector", "above", "below"]
    for ratio in ratios:
        header += [f"L at ratio {ratio:g}", "best in"]
    yield from aligned(header, rows)
    crossings = found.crossings()
    for each in crossings:
        again = found.crossing_replicates(each)
        kept = again[np.isfinite(again)]
        sure = f"; so in {len(kept) / len(again):.0%} of the replicates" if len(again) else ""
        low, high = titles[each.better_below], titles[each.better_above]
        yield f"{low} scores better below the ratio {each.ratio:.3g}, {high} above it{sure}"
    if not crossings:
        yield "The order is the same at every ratio"


def _combination_lines(found: Combination, titles: Sequence[str]) -> Iterator[str]:
    share = [float((found.choice == number).mean()) for number in range(len(titles))]
    rows = [
        [one_line(title), f"{part:.0%}", *_score_cells(score.above, score.below, score.value(EVEN))]
        for title, part, score in zip(titles, share, found.single, strict=True)
    ]
    best = found.combined
    rows.append(["combined", "", *_score_cells(best.above, best.below, best.value(EVEN))])
    yield (
        f"Combination, each point to the detector closer to its oracle: chosen on {found.chosen_on} images, scored "
        f"on the other {found.scored_on}"
    )
    yield from aligned(["detector", "of the grid", "above", "below", "above + below"], rows)


def _score_cells(above: float, below: float, total: float) -> list[str]:
    return ["-" if math.isnan(each) else f"{each:.4f}" for each in (above, below, total)]


def _loop_lines(result: CollisionResult, found: DetectorResult, loop: ClosedLoop) -> Iterator[str]:
    assert result.settings.loop is not None  # there is a loop, so it was asked for
    drive = result.settings.loop.drive
    what = "a collision" if drive.near_m == 0 else f"coming closer than {drive.near_m:g} m"
    rows = []
    for at, each in enumerate(loop.points):
        ends = found.loop_ends
        interval = "-" if ends is None else f"[{_share(float(ends[0, at]))}, {_share(float(ends[1, at]))}]"
        bound = max(each.upper - each.closer, each.closer - each.lower)
        rows.append(
            [
                _speed(result, each.speed_mps),
                f"{each.stopping_m:.1f} m",
                "brakes" if each.brakes else "keeps",
                _share(each.one_shot),
                _share(each.closer),
                f"+- {bound:.0e}" if bound else "certain",
                interval,
                _share(each.error_kept),
            ]
        )
    margin = f", margin {drive.margin_m:g} m" if drive.margin_m else ""
    yield one_line(
        f"{found.map.title}: closed loop from a first report at {loop.first_report_m:g} m, a report every "
        f"{loop.period_s:g} s, braking {drive.braking.replace('_', ' ')}{margin}; probability of {what}"
    )
    yield (
        f"{loop.cars} cars start (worth {loop.effective_cars:.0f} of equal weight), {loop.missed} objects without a "
        f"report count; Storm {result.versions.get('storm', '')}, second engine apart by at most "
        f"{max((abs(each.closer - each.second) for each in loop.points), default=0.0):.0e}"
    )
    header = ["speed", "S(v)", "first report", "one shot", "closed loop", "numerical", f"{_level(result)} interval",
              "error kept"]  # fmt: skip
    yield from aligned(header, rows)


def _which_lines(result: CollisionResult) -> Iterator[str]:
    """Which intervals to trust, over all maps, and why."""
    counts: dict[Trust, int] = {}
    for policy in result.policies:
        for each in policy.detectors:
            for trust, count in each.confidence.reasons.items():
                counts[trust] = counts.get(trust, 0) + count
    total = sum(counts.values())
    yield "Which interval to trust:"
    for trust in sorted(counts, key=lambda each: -counts[each]):
        share = counts[trust] / total
        part = "less than 1%" if share < 0.005 else f"{share:.0%}"
        yield f"  {trust.kind.value} at {part} of all points: {trust.text}"
    kinds = list(dict.fromkeys(kind for policy in result.policies for each in policy.detectors
                               for kind in each.confidence.intervals))  # fmt: skip
    yield "What each covers, and what it takes for granted:"
    for kind in sorted(kinds, key=list(IntervalKind).index):
        yield f"  {kind.value}: {kind.covers}; {kind.assumes}"


def _level(result: CollisionResult) -> str:
    return f"{100 * result.settings.level:g} %"


def _speed(result: CollisionResult, speed_mps: float) -> str:
    return f"{speed_mps / result.unit_mps:.4g} {result.settings.speed_unit}"


def _share(value: float) -> str:
    """A probability for people: three digits, and never 0 or 1 unless it is."""
    if math.isnan(value):
        return "-"
    text = f"{value:.3f}"
    if (text == "0.000" and value > 0) or (text == "1.000" and value < 1):
        return f"{value:.1e}" if value < 0.5 else f"1-{1 - value:.0e}"
    return text
