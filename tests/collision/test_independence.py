"""The independence that the estimator of lambda assumes is tested, and where it fails images or drives are resampled.

Data that violate it: all pairs of an image share their error, images of a drive share theirs, crowds are near.
"""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import lognorm

from verifier.cli import main
from verifier.collision import trust
from verifier.collision.comparison import Area, bootstrap_p_values, compare
from verifier.collision.estimator import BrakingPolicy, EstimatorSettings, Grid, collision_map
from verifier.collision.intervals import IntervalKind, effective_images, exact_interval
from verifier.collision.pairs import Pairs, common_drives
from verifier.collision.ranking import combine, rank
from verifier.collision.resampling import subsampling_interval
from verifier.collision.trust import Trust, confidence, independence
from verifier.telling.collision import _ends_text, _near_an_end

POLICY = BrakingPolicy(6.86, 0.1)


def scenes(rng, images, *, shared=0.0, near_crowds=False, drives=0):
    """Images of 1 to 4 objects; errors of a share `shared` (in log variance) that is common to image or drive."""
    sizes = rng.integers(1, 5, images)
    image = np.repeat(np.arange(images), sizes)
    true = rng.uniform(2, 60, len(image))
    if near_crowds:
        true = true / sizes[image]
    drive = np.arange(images) * drives // images if drives else np.zeros(0, np.int64)
    unit = drive[image] if drives else image
    common = rng.normal(size=unit.max() + 1)[unit]
    error = np.sqrt(shared) * common + np.sqrt(1 - shared) * rng.normal(size=len(image))
    return Pairs(true, true * np.exp(0.3 * error), image, images, drive=drive)


def test_independent_pairs_are_refuted_no_more_often_than_said(thorough):
    """Worlds without dependence, of 40 images: p <= .1 in .1 of them or fewer, but for 3 standard errors."""
    rng, worlds = np.random.default_rng(11), 100 if thorough else 50
    found = [independence(scenes(rng, 40), rng) for _ in range(worlds)]
    for p in ([each.pairs for each in found], [each.number for each in found]):
        assert np.mean(np.array(p) <= 0.1) <= 0.1 + 3 * np.sqrt(0.09 / worlds)
    assert sum(each.refuted for each in found) <= 2 * 0.01 * worlds + 3 * np.sqrt(worlds * 0.02)


@pytest.mark.parametrize(
    ("how", "fails", "holds"), [({"shared": 0.7}, "pairs", "number"), ({"near_crowds": True}, "number", None)]
)
def test_what_violates_it_is_found(how, fails, holds):
    found = independence(scenes(np.random.default_rng(2), 300, **how), np.random.default_rng(0))
    assert found.refuted
    assert getattr(found, fails) == pytest.approx(2 / (found.permutations + 1))
    if holds:
        assert getattr(found, holds) > 0.05


def test_many_pairs_are_shuffled_often_enough_to_refute_what_they_violate(monkeypatch):
    monkeypatch.setattr(trust, "SHUFFLED", 1000)  # as of far more pairs
    found = independence(scenes(np.random.default_rng(2), 300, shared=0.7), np.random.default_rng(0))
    assert found.permutations == 199
    assert found.refuted


def test_images_of_a_drive_that_share_an_error_are_found_though_each_has_one_pair(thorough):
    """Twelve drives of 30 images; without a common error they are refuted no more often than said."""
    rng = np.random.default_rng(4)

    def one_each(common):
        drive = np.repeat(np.arange(12), 30)
        true = rng.uniform(2, 50, len(drive))
        error = common * rng.normal(size=12)[drive] + rng.normal(size=len(drive))
        return Pairs(true, true * np.exp(0.1 * error), np.arange(len(drive)), len(drive), drive=drive)

    found = independence(one_each(1.0), rng)
    assert (found.pairs, found.number, found.refuted) == (None, None, True)
    assert found.drives == pytest.approx(2 / (found.permutations + 1))
    worlds = 40 if thorough else 20
    p = [independence(one_each(0.0), rng).drives for _ in range(worlds)]
    assert np.mean(np.array(p) <= 0.1) <= 0.1 + 3 * np.sqrt(0.09 / worlds)


def test_p_values_are_those_of_all_permutations():
    """Six pairs in images of 3, 2 and 1: every one of the 720 orders, by plain loops."""
    true, image = [3.0, 4.0, 6.0, 20.0, 22.0, 9.0], [0, 0, 0, 1, 1, 2]
    predicted = [3.5, 4.1, 6.9, 19.0, 26.0, 9.2]

    def statistics(values):
        ranks = [sum(other < each for other in values) - 2.5 for each in values]
        sums = [sum(r for r, i in zip(ranks, image, strict=True) if i == of) for of in range(3)]
        weighted = [n * each for n, each in zip((3, 2, 1), sums, strict=True)]
        return np.array([sum(each**2 for each in sums), sum(weighted)])

    smallest = np.ones(2)
    for values in (true, [b - a for a, b in zip(true, predicted, strict=True)]):
        every = np.array([statistics(each) for each in permutations(values)])
        away = np.abs(every - every.mean(axis=0))
        smallest = np.minimum(smallest, (away >= away[0] - 1e-9).mean(axis=0))
    found = independence(Pairs(true, predicted, image, 3), np.random.default_rng(0))
    wanted = np.minimum(1, 2 * smallest)
    assert (found.pairs, found.number) == pytest.approx(tuple(wanted), abs=4 * 2 * 0.5 / np.sqrt(found.permutations))


def test_what_cannot_be_tested_is_not():
    rng = np.random.default_rng(0)
    single = Pairs([5.0, 9.0, 30.0], [5.0, 9.0, 30.0], [0, 1, 2], 3)
    assert independence(single, rng) == type(independence(single, rng))(None, None, 0)
    alike = Pairs([5.0, 9.0, 30.0, 2.0], [5.0, 9.0, 30.0, 2.0], [0, 0, 1, 1], 2)
    assert independence(alike, rng).number is None
    same = Pairs([5.0] * 5, [5.0] * 5, [0, 0, 1, 1, 1], 2)  # all ranks are equal: nothing differs
    assert independence(same, rng).pairs == 1


DISTANCES, SPEEDS = np.arange(4.0, 31.0, 1.0), np.array([8.0, 11.0, 14.0])


def truth():
    """(Y, V) P(D_min <= S | D^_min = y), where D is uniform on [2, 60] and D^ = D e^(.3 z): by quadrature."""

    def density(d, y):
        return lognorm.pdf(y / d, 0.3) / d

    found = np.empty((len(DISTANCES), len(SPEEDS)))
    for row, y in enumerate(DISTANCES.tolist()):
        whole = quad(density, 2, 60, args=(y,), points=[y])[0]
        for at, stopping in enumerate(POLICY.stopping_distance_m(SPEEDS).tolist()):
            found[row, at] = quad(density, 2, stopping, args=(y,), points=[min(y, stopping)])[0] / whole
    return found


def test_the_band_covers_all_points_at_once_where_pointwise_intervals_of_dependent_pairs_do_not(thorough):
    """Images repeat one object with one error three times: pairs are far from independent, images are not.

    Data sets of 400 images. The truth is inside of the band everywhere in .95 of them or more; the pointwise
    intervals of single pairs leave it somewhere in most.
    """
    rng = np.random.default_rng(8)
    grid, wanted, level = Grid(DISTANCES, SPEEDS), truth(), 0.95
    inside, pointwise = [], []
    for _ in range(60 if thorough else 25):
        one = rng.uniform(2, 60, 400)
        two = one * np.exp(0.3 * rng.normal(size=400))
        pairs = Pairs(np.repeat(one, 3), np.repeat(two, 3), np.repeat(np.arange(400), 3), 400)
        band = exact_interval(pairs, grid, POLICY, IntervalKind.EXACT_SIMULTANEOUS, level=level)
        inside.append(np.all((band.lower <= wanted) & (wanted <= band.upper)))
        of = collision_map(pairs, grid, POLICY, EstimatorSettings("normal_reference", 0.5))
        alone = subsampling_interval(pairs, of, rng=rng, level=level)
        pointwise.append(np.all((alone.lower <= wanted) & (wanted <= alone.upper)))
    assert np.mean(inside) >= 0.95
    assert np.mean(pointwise) < 0.5


def test_no_point_of_a_band_lies_beyond_what_the_others_allow():
    """Far out, where few objects are reported, the band stays below its upper ends nearer by, and so for speeds."""
    pairs, grid = scenes(np.random.default_rng(1), 300), Grid(np.append(DISTANCES, 300.0), SPEEDS)
    band, alone = (
        exact_interval(pairs, grid, POLICY, kind)
        for kind in (IntervalKind.EXACT_SIMULTANEOUS, IntervalKind.EXACT_MONOTONE)
    )
    for end in (band.lower, band.upper):
        assert np.all(np.diff(end, axis=0) <= 0)
        assert np.all(np.diff(end, axis=1) >= 0)
    assert np.all(alone.upper[-1] == 1)  # nothing is reported there
    assert np.all(band.upper[-1] == band.upper[:-1].min(axis=0))
    single = Grid(DISTANCES[:1], SPEEDS[:1])
    of_one = [exact_interval(pairs, single, POLICY, kind).upper for kind in (band.kind, alone.kind)]
    assert of_one[0] == of_one[1]  # of one point both are the same


def test_a_band_that_the_data_contradict_is_left_as_it_is():
    """Whoever is reported near is far, and the other way round: ends that must fall would cross."""
    true = np.linspace(1, 50, 800)
    turned = Pairs(true, 51 - true, np.arange(800), 800)
    grid = Grid(np.array([10.0, 40.0]), np.array([15.0]))
    band = exact_interval(turned, grid, POLICY, IntervalKind.EXACT_SIMULTANEOUS)
    assert np.all(band.lower <= band.upper)
    assert band.upper[0] < band.lower[1]


def test_dependent_pairs_are_not_trusted_and_drives_are_resampled_where_they_are_known():
    """Errors shared by a whole drive: drives drawn again give far wider intervals than pairs or images do."""
    rng = np.random.default_rng(4)
    grid = Grid(np.array([12.0, 16.0]), np.array([12.0]))
    kinds = {}
    for drives in (0, 12, 75):
        pairs = scenes(rng, 1500, shared=0.8, drives=drives)
        of = collision_map(pairs, grid, POLICY, EstimatorSettings("normal_reference", 0.3))
        found = confidence(pairs, of, seed=1, replicates=100)
        assert found.independence.refuted
        assert Trust.SUBSAMPLING not in Trust.counted(found.trust)
        kinds[drives] = found
    assert Trust.DEPENDENT in Trust.counted(kinds[0].trust)
    assert IntervalKind.BY_DRIVE not in kinds[0].intervals
    assert set(Trust.counted(kinds[12].trust)) == {Trust.FEW_IMAGES}  # of some hundred images, but twelve drives
    assert Trust.DEPENDENT_BY_DRIVE in Trust.counted(kinds[75].trust)
    of_drives, of_images = (kinds[75].intervals[each] for each in (IntervalKind.BY_DRIVE, IntervalKind.PERCENTILE))
    assert np.all(of_drives.upper - of_drives.lower > 1.3 * (of_images.upper - of_images.lower))
    without = confidence(pairs, of, seed=1)
    assert Trust.DEPENDENT_EXACT in Trust.counted(without.trust)
    band = without.intervals[IntervalKind.DRIVES_MONOTONE]
    at = without.trust == Trust.DEPENDENT_EXACT
    assert np.array_equal(without.trusted[0][at], band.lower[at])


@pytest.mark.parametrize(("drives", "wanted"), [(5, Trust.DEPENDENT_EXACT), (25, Trust.DEPENDENT_BY_DRIVE)])
def test_few_drives_are_not_resampled(drives, wanted):
    """Pairs of one image depend on each other, images of one drive do not: five drives say nothing of the next."""
    pairs = scenes(np.random.default_rng(4), 1500, shared=0.8)
    pairs = replace(pairs, drive=np.arange(pairs.image_count) % drives)
    of = collision_map(
        pairs, Grid(np.array([16.0]), np.array([12.0])), POLICY, EstimatorSettings("normal_reference", 0.3)
    )
    found = confidence(pairs, of, seed=1, replicates=20)
    assert set(Trust.counted(found.trust)) == {wanted}
    kind = IntervalKind.BY_DRIVE if drives == 25 else IntervalKind.EXACT_MONOTONE
    assert np.array_equal(found.trusted[1], found.intervals[kind].upper)


def test_where_drives_are_refuted_their_intervals_cover_and_those_of_images_do_not(thorough):
    """Fifteen drives of 10 to 119 frames, nine of ten of which are near copies: the exact intervals of images miss
    lambda in a fifth of the data sets and more, at some point; what is recommended covers it in .95 everywhere."""
    rng, rows = np.random.default_rng(3), [4, 8, 14]
    grid, wanted = Grid(DISTANCES[rows], SPEEDS), truth()[rows]
    inside = {"images": [], "recommended": []}
    for seed in range(40 if thorough else 28):
        drive = np.repeat(np.arange(15), rng.integers(10, 120, 15))
        same = rng.random(len(drive)) < 0.9
        true = np.where(same, rng.uniform(2, 60, 15)[drive], rng.uniform(2, 60, len(drive)))
        error = np.where(same, rng.normal(size=15)[drive], rng.normal(size=len(drive)))
        pairs = Pairs(true, true * np.exp(0.3 * error), np.arange(len(drive)), len(drive), drive=drive)
        of = collision_map(pairs, grid, POLICY, EstimatorSettings("normal_reference", 0.5))
        found = confidence(pairs, of, seed=seed)
        exact = found.intervals[IntervalKind.EXACT_MONOTONE]
        for name, (lower, upper) in {"images": (exact.lower, exact.upper), "recommended": found.trusted}.items():
            inside[name].append((lower <= wanted) & (wanted <= upper))
    assert np.mean(inside["images"], axis=0).min() < 0.8
    assert np.mean(inside["recommended"], axis=0).min() >= 0.95


def test_effective_images_by_hand():
    """Of drives of 3, 1 and 2 images, those at 10 m: 3, 1 and none; at 20 m two of the third."""
    reported = np.array([10.0, 10.1, 9.9, 10.0, 20.0, 20.5])
    pairs = Pairs(reported, reported, np.arange(6), 6, drive=np.array([0, 0, 0, 1, 2, 2]))
    found = effective_images(pairs, Grid(np.array([10.0, 15.0, 20.0]), np.array([5.0])), 1.0, 1.0)
    assert found.tolist() == [16 / 10, 0, 1]
    grid = Grid(np.array([20.0]), np.array([30.0]))  # both collide: as one image, 1 of 1
    ends = exact_interval(pairs, grid, POLICY, IntervalKind.DRIVES_WINDOW, level=0.9)
    assert (ends.lower.item(), ends.upper.item()) == (pytest.approx(0.05), 1)


def of_two_alike(rng):
    """Two detectors of one kind on 20 drives of 30 images; each has an error that a drive shares."""
    drive = np.repeat(np.arange(20), 30)
    true = rng.uniform(2, 60, len(drive))
    errors = [
        np.sqrt(0.8) * rng.normal(size=20)[drive] + np.sqrt(0.2) * rng.normal(size=len(drive)) for _ in range(2)
    ]
    return [
        Pairs(true, true * np.exp(0.3 * error), np.arange(len(drive)), len(drive), title, drive=drive)
        for title, error in zip("ab", errors, strict=True)
    ]


def test_rankings_and_comparisons_resample_drives_where_they_are_known(thorough):
    """Of two equal detectors one is "best" in more than .95 of the draws in a tenth of the data sets, or little more
    than that; by images it is in half of them. The claims that it is better have p <= .05 half as often."""
    grid, settings = Grid(np.array([8.0, 12.0, 16.0, 20.0]), SPEEDS), EstimatorSettings("normal_reference", 0.5)
    sure, small, world = {True: [], False: []}, {True: [], False: []}, np.random.default_rng(5)
    worlds = 20 if thorough else 12
    for seed in range(worlds):
        for known, pairs in ((True, found := of_two_alike(world)), (False, [without_drives(each) for each in found])):
            rng = np.random.default_rng(seed)
            ranking = rank(pairs, grid, POLICY, settings, rng=rng, replicates=100)
            sure[known].append(ranking.best_share(10.0).max() > 0.95)
            compared = compare(*pairs, grid, POLICY, settings, rng=rng)
            p = bootstrap_p_values(*pairs, compared, rng=rng, replicates=100)
            small[known].append(np.mean(p[np.isin(compared.area, (Area.FIRST, Area.SECOND))] <= 0.05))
    assert np.mean(sure[True]) <= 0.1 + 2 * np.sqrt(0.09 / worlds)
    assert np.mean(sure[False]) > 0.5
    assert np.nanmean(small[True]) < 0.6 * np.nanmean(small[False])


def without_drives(pairs):
    return replace(pairs, drive=np.zeros(0, np.int64))


def test_a_combination_is_chosen_and_scored_on_other_drives():
    grid = Grid(np.array([12.0]), np.array([8.0]))
    found = combine(of_two_alike(np.random.default_rng(1)), grid, POLICY, rng=np.random.default_rng(0))
    assert (found.chosen_on % 30, found.scored_on % 30) == (0, 0)


def test_drives_of_two_sources_are_one_where_they_share_an_image():
    """Images 0 to 5: the first source has drives {0, 1}, {2, 3}, the second {1, 2} and {4, 5}, in its order."""
    first, second = (np.array([0, 0, 1, 1]), np.array([0, 1, 2, 3])), (np.array([1, 1, 0, 0]), np.array([1, 2, 4, 5]))
    drives, places = zip(first, second, strict=True)
    assert common_drives(drives, places, 6).tolist() == [0, 0, 0, 0, 1, 1]
    assert common_drives(drives, places, 7).tolist() == []  # nothing is known of the seventh
    assert common_drives([np.zeros(0, np.int64)] * 2, places, 6).tolist() == []


def test_tables_of_drives_with_other_images_are_compared(tmp_path, capsys):
    """The first table has an image that the second has not: this ended in an internal error."""
    for name, images in (("a", range(30)), ("b", range(1, 30))):
        rows = [f"i{k},d{k // 10},{5 + k},{5 + k * 1.1}" for k in images]
        (tmp_path / f"{name}.csv").write_text("\n".join(["image,drive,true_m,predicted_m", *rows]) + "\n")
    files = [word for name in "ab" for word in ("--pairs", f"{name}={tmp_path / name}.csv")]
    grid = ["--distances", "10,20", "--speeds", "10 m/s", "--bootstrap", "20", "--ranking-replicates", "20"]
    assert main(["collision", *files, *grid, "--deceleration", "6.86", "--reaction", "0.1"]) == 0
    assert "a" in capsys.readouterr().out


def test_cells_hold_no_digits_of_rounding():
    assert _near_an_end(1 - 1e-16) == "> 0.9999"
    assert _near_an_end(1e-17) == "< 0.0001"
    assert [_near_an_end(each) for each in (0.0, 1.0, 0.5, None)] == [None] * 4
    assert _ends_text(0.25, 1 - 1e-16) == "[0.25, 1]"
    assert _ends_text(1e-17, 0.5) == "[0, 0.5]"
    assert _ends_text(-0.2, 1.3) == "[0, 1]"
    assert _ends_text(None, 0.5) == "-"
