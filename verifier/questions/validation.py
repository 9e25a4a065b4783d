"""Validation on real tracks: every memory model is fitted on one half of the drives and predicts the other half.

The drives that have tracks of a class are halved at random, several times; each half predicts the other. What is
predicted is in how many windows a tracker does not confirm (`verifier.perception.confusion.replay`): in the first n
successive frames of each track in a range, for n = 1, 2, .., and in the whole of its first passage through the range.
The last is what a planner that latches on a report comes to: it misses the objects whose passage it never confirms.

Tracks are independent given the rates, so the number N of windows of both halves has the law of a sum of independent
outcomes. With chances of each window from a lesser to a greater one (the same, but for `any`),

    p = min(1, 2 min(Pr_greater(N >= seen), Pr_lesser(N <= seen))),

and the predicted interval holds the numbers with p > 1 - level. This is said twice:

* `counted`: the rates are those counted on the drives that predict. A model is wrong if this is contradicted, or the
  drives are too few to know its rates.
* `resampled`: the rates are drawn by weighting these drives at random, with one phantom drive more
  (`verifier.analysis.phantom_draws`), of which all reports are once right and once wrong; a context without items has
  any rate. Both laws are means over the draws.

Halvings share their drives, so their p-values depend on each other; twice their mean, at most 1, is a p-value
whatever that dependence (Rueschendorf, Random variables with maximum sums, Advances in Applied Probability 14, 1982;
Vovk and Wang, Combining p-values via averaging, Biometrika 107, 2020).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from verifier.analysis.settings import check_seed
from verifier.base.errors import UsageError
from verifier.perception.confusion.context_selection import FEWEST_SEQUENCES
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.replay import Tracked, Tracker, in_order, tails, tracked_of
from verifier.perception.settings import Gaps, ReplaySettings
from verifier.questions.half_predictions import Fit, Half, Windows

ANY, AUTO = "any", "auto"
DEFAULT_MODELS = "none,run:1,run:5,auto,any"
MOST_SPLITS, MOST_DRAWS = 1000, 100_000


@dataclass(frozen=True)
class Calibration:
    """Predicted intervals beside what was seen.

    Attributes:
        low, high: ends as shares of the windows, in the mean over the halvings.
        outside: halvings whose interval does not hold the number seen.
        p_value: twice the mean of that of the halvings, at most 1.
    """

    low: float
    high: float
    outside: int
    p_value: float


@dataclass(frozen=True)
class Look:
    """What one model says of one number of frames, over all halves.

    Attributes:
        confirm: the tracker, as M/N.
        model: contexts, `auto` or `any`.
        frames: of a window; None for the whole passage.
        windows, not_confirmed: of all drives.
        predicted: share of windows not confirmed, in the mean over the halvings; None where only bounds are.
        counted, resampled: see the module.
    """

    confirm: str
    model: str
    frames: int | None
    windows: int
    not_confirmed: int
    predicted: float | None
    counted: Calibration
    resampled: Calibration


@dataclass(frozen=True)
class Validation:
    """Predictions of halves of the drives beside what was seen there.

    Attributes:
        true_class, range: what is followed, and where.
        drives: with tracks of the class.
        splits, draws, seed, level: as asked for.
        chosen: contexts that `auto` chose, and in how many halves.
        looks: in the order of trackers, frames, models.
    """

    true_class: str
    range: str
    drives: int
    splits: int
    draws: int
    seed: int
    level: float
    chosen: dict[str, int]
    looks: tuple[Look, ...]


def validate_record(settings: ReplaySettings) -> Validation:
    """What `verify confusion replay --splits` asks.

    Raises:
        UsageError: as `replay_record`; too few drives; `any` of a tracker that needs fewer than all of its reports.
        InputError: as `replay_record`.
    """
    trackers = [Tracker.parsed(text.strip()) for text in settings.confirm.split(",")]
    whole = all(tracker.needed == tracker.window for tracker in trackers)
    default = DEFAULT_MODELS if whole else DEFAULT_MODELS.removesuffix(",any")
    models = [text.strip() for text in (settings.memory or default).split(",")]
    for text in models:
        if text not in (ANY, AUTO):
            Contexts.parsed(text)
    if ANY in models and not whole:
        raise UsageError("--memory any is known of M right reports in a row: name --confirm M/M, or leave out any")
    splits = settings.splits or 0
    for option, value, most in (("--splits", splits, MOST_SPLITS), ("--draws", settings.draws, MOST_DRAWS)):
        if not 1 <= value <= most:
            raise UsageError(f"{option}: expected a number from 1 to {most}, got {value}")
    check_seed(settings.seed)
    tracked, bins, names = tracked_of(settings)
    result = validated(
        tracked, names, bins, settings.frames, trackers, models, splits,
        settings.gaps, settings.confidence, settings.draws, settings.seed,
    )  # fmt: skip
    return replace(result, true_class=settings.true_class, range=settings.range)


def validated(
    tracked: Tracked,
    names: Sequence[str],
    bins: Sequence[int],
    frames: int,
    trackers: Sequence[Tracker],
    models: Sequence[str],
    splits: int,
    gaps: Gaps = "break",
    level: float = 0.95,
    draws: int = 100,
    seed: int = 0,
) -> Validation:
    """Fit on each half of the drives, predict the other.

    Args:
        tracked: the reports.
        names: of the drives, by their numbers.
        bins: that a window lies in, throughout.
        frames: the most of a window.
        trackers, models: each is looked at.
        splits: random halvings.
        gaps: what frames without an annotation do to contexts.
        level: of the intervals.
        draws, seed: of the rates.
    """
    rows = in_order(tracked)
    drives = np.unique(rows.sequence)
    fewest = 2 * FEWEST_SEQUENCES if AUTO in models else 2
    if len(drives) < fewest:
        raise UsageError(f"--splits needs {fewest} drives with tracks of the class, and there are {len(drives)}")
    windows = Windows.through(rows, bins, frames)
    if not len(windows.begin):
        raise UsageError("no track of the class has a frame in that range")
    rng = np.random.default_rng(seed)
    halves: dict[tuple[str, str], list[Half]] = {}
    chosen: dict[str, int] = {}
    for _ in range(splits):
        shuffled = rng.permutation(drives)
        for half in (shuffled[: len(drives) // 2], shuffled[len(drives) // 2 :]):
            fit = Fit(rows, names, np.isin(rows.sequence, half), gaps, draws, seed)
            judged = windows.of_drives(rows, ~fit.rows)
            confirmed = [tracker.confirmed(judged.right > 0) for tracker in trackers]
            known: dict[str, list[Half]] = {}
            for model in models:
                used = str(fit.selected()) if model == AUTO else model
                if model == AUTO:
                    chosen[used] = chosen.get(used, 0) + 1
                if used not in known:
                    said = (fit.bounds if used == ANY else fit.predictions)(used, judged, trackers)
                    known[used] = [judged.half(*half) for half in zip(said, confirmed, strict=True)]
                for tracker, known_half in zip(trackers, known[used], strict=True):
                    halves.setdefault((str(tracker), model), []).append(known_half)
    looks = (
        _look(str(tracker), model, at, halves[str(tracker), model], level)
        for tracker in trackers
        for at in range(frames + 1)
        for model in models
    )
    return Validation("", "", len(drives), splits, draws, seed, level, chosen, tuple(filter(None, looks)))


def _look(confirm: str, model: str, at: int, halves: Sequence[Half], level: float) -> Look | None:
    """The look at number `at`, of which the last is the passage; None where no track has such a window.

    Args:
        halves: those of each halving after the other.
    """
    pairs = list(zip(halves[::2], halves[1::2], strict=True))
    windows, seen = (sum(int(getattr(half, what)[at]) for half in pairs[0]) for what in ("windows", "seen"))
    if not windows:
        return None
    calibrations = []
    for kind in (0, 2):
        ends, p_seen = [], []
        for one, other in pairs:
            lesser, greater = (np.convolve(one.laws[at][kind + k], other.laws[at][kind + k]) for k in (0, 1))
            p_values = np.minimum(1, 2 * np.minimum(tails(greater)[0], tails(lesser)[1]))
            inside = np.flatnonzero(p_values > 1 - level)
            ends.append((inside[0], inside[-1]))
            p_seen.append(p_values[seen])
        low, high = np.array(ends).T
        outside = int(np.count_nonzero((seen < low) | (seen > high)))
        shares = float(low.mean()) / windows, float(high.mean()) / windows
        calibrations.append(Calibration(*shares, outside, min(1.0, 2 * float(np.mean(p_seen)))))
    expected = [half.expected[at] for half in halves if half.expected is not None]
    return Look(
        confirm,
        model,
        at + 1 if at + 1 < len(halves[0].windows) else None,
        windows,
        seen,
        float(sum(expected)) / len(pairs) / windows if expected else None,
        *calibrations,
    )
