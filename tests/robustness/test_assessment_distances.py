"""Distances of images and of features: hand-computed cases, definitions written out in loops, and peers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from verifier.base.errors import InputError
from verifier.robustness.assessment.datasets import luma, mse, psnr, ssim
from verifier.robustness.assessment.feature_distances import (
    CwSsimSettings,
    bands,
    cosine,
    cw_ssim,
    euclidean,
    frechet,
    linkage,
    read_features,
)


def textured(shape, seed=0):
    """Something with structure at all scales, 0..255."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]]
    waves = sum(np.sin((x * np.cos(k) + y * np.sin(k)) / (2.0 + 3 * k)) for k in range(5))
    return np.clip(128 + 20 * waves + 10 * rng.standard_normal(shape), 0, 255)


# --- MSE, PSNR --------------------------------------------------------------------------------------------------


def test_mse_and_psnr_by_hand():
    one, other = np.array([[0.0, 10.0], [20.0, 30.0]]), np.array([[3.0, 10.0], [16.0, 30.0]])
    assert mse(one, other) == 25 / 4  # (9 + 0 + 16 + 0) / 4
    assert psnr(one, other) == pytest.approx(10 * math.log10(65025 * 4 / 25), rel=1e-15, abs=0)
    assert psnr(one, one) == math.inf
    assert psnr(np.zeros((2, 2)), np.full((2, 2), 255.0)) == 0


def test_luma_by_hand():
    image = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255], [10, 10, 10]]], dtype=np.uint8)
    assert luma(image)[0] == pytest.approx([76.245, 149.685, 29.07, 10.0], abs=1e-12)
    assert luma(image[..., 0]).tolist() == [[255, 0, 0, 10]]


@pytest.mark.parametrize("image", [np.zeros((2, 2, 4), np.uint8), np.zeros((2, 2)), np.zeros(3, np.uint8)])
def test_luma_takes_grey_and_rgb_of_eight_bits(image):
    with pytest.raises(ValueError, match="expected an image"):
        luma(image)


@pytest.mark.parametrize("measure", [mse, psnr, ssim, cw_ssim])
def test_images_must_be_of_one_size(measure):
    with pytest.raises(ValueError, match="one size"):
        measure(np.zeros((300, 300)), np.zeros((300, 301)))


# --- SSIM -------------------------------------------------------------------------------------------------------


def ssim_in_loops(one, other):
    """Wang et al. 2004, eq. (13), window by window, with the two-dimensional weights written out."""
    at = np.arange(11) - 5
    weights = np.exp(-(at[:, None] ** 2 + at[None, :] ** 2) / (2 * 1.5**2))
    weights /= weights.sum()
    found = []
    for row in range(one.shape[0] - 10):
        for column in range(one.shape[1] - 10):
            x, y = (each[row : row + 11, column : column + 11] for each in (one, other))
            mx, my = (weights * x).sum(), (weights * y).sum()
            vx, vy = (weights * (x - mx) ** 2).sum(), (weights * (y - my) ** 2).sum()
            c = (weights * (x - mx) * (y - my)).sum()
            c1, c2 = 2.55**2, 7.65**2
            found.append((2 * mx * my + c1) * (2 * c + c2) / ((mx**2 + my**2 + c1) * (vx + vy + c2)))
    return float(np.mean(found))


@pytest.mark.parametrize("shape", [(11, 11), (14, 23), (20, 12)])
def test_ssim_against_its_definition(shape):
    one = textured(shape)
    other = np.clip(0.7 * one + 40 + 15 * np.random.default_rng(1).standard_normal(shape), 0, 255)
    assert ssim(one, other) == pytest.approx(ssim_in_loops(one, other), rel=1e-11, abs=0)


def test_ssim_of_flat_images_by_hand():
    # No variance: (2 * 100 * 110 + C1) / (100^2 + 110^2 + C1), C1 = 6.5025.
    expected = (22000 + 6.5025) / (22100 + 6.5025)
    assert ssim(np.full((20, 20), 100.0), np.full((20, 20), 110.0)) == pytest.approx(expected, rel=1e-12, abs=0)


def test_ssim_is_one_for_equal_images_only_and_symmetric():
    one, other = textured((40, 30)), textured((40, 30), 2)
    assert ssim(one, one) == 1
    assert ssim(one, other) < 1
    assert ssim(one, other) == pytest.approx(ssim(other, one), rel=1e-14, abs=0)


def test_ssim_against_scikit_image():
    metrics = pytest.importorskip("skimage.metrics")
    one, other = textured((60, 80)), textured((60, 80), 2)
    peer = metrics.structural_similarity(
        one, other, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=255
    )
    assert ssim(one, other) == pytest.approx(peer, rel=1e-9)


def test_ssim_needs_room_for_its_window():
    with pytest.raises(ValueError, match="11 x 11"):
        ssim(np.zeros((10, 40)), np.zeros((10, 40)))


# --- CW-SSIM ----------------------------------------------------------------------------------------------------

SMALL = CwSsimSettings(level=2, orientations=4, constant=0.0)


def bands_in_loops(image, level, orientations):
    """The pyramid's definition, frequency by frequency, at full resolution, sampled afterwards."""
    height, width = image.shape
    y, x = np.mgrid[:height, :width]
    total = [np.zeros(image.shape, complex) for _ in range(orientations)]
    order = orientations - 1
    gain = 2 * math.sqrt(4.0**order * math.factorial(order) ** 2 / (orientations * math.factorial(2 * order)))
    for ky in range(-(height // 2), height - height // 2):
        for kx in range(-(width // 2), width - width // 2):
            fy, fx = ky / (height / 2), kx / (width / 2)
            radius = math.hypot(fy, fx)
            if radius == 0:
                continue

            def high(octave):
                return 0.0 if octave <= -1 else math.cos(math.pi / 2 * min(octave, 0.0))

            octave = math.log2(radius)
            radial = high(octave + level)
            for number in range(level):
                radial *= math.sqrt(1 - high(octave + number) ** 2)
            if radial == 0:
                continue
            wave = np.exp(2j * math.pi * (ky * y / height + kx * x / width))
            weight = (image * np.conj(wave)).sum() / image.size
            for number in range(orientations):
                turned = math.cos(math.atan2(fy, fx) - math.pi * number / orientations)
                if turned > 0:
                    total[number] += gain * radial * turned**order * weight * wave
    step = 2 ** (level - 1)
    return [each[::step, ::step] for each in total]


@pytest.mark.parametrize(("shape", "level", "orientations"), [((24, 16), 1, 3), ((24, 32), 2, 4), ((32, 32), 3, 2)])
def test_coefficients_against_their_definition(shape, level, orientations):
    image = textured(shape)
    found = bands(image, CwSsimSettings(level, orientations))
    wanted = bands_in_loops(image, level, orientations)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        assert np.abs(one - other).max() < 1e-10


def test_real_parts_of_all_orientations_pass_the_whole_of_every_frequency():
    """Energy: summed over orientations, the real parts hold that of the image at the radial mask of the level."""
    image = textured((32, 32))
    wanted = sum((each.real**2).sum() for each in bands(image, CwSsimSettings(1, 6)))
    spectrum = np.fft.fft2(image) / 32
    y, x = (np.fft.fftfreq(32)[:, None] * 2, np.fft.fftfreq(32)[None, :] * 2)
    with np.errstate(divide="ignore"):
        octave = np.log2(np.hypot(y, x))
    high = lambda value: np.where(value <= -1, 0, np.cos(np.pi / 2 * np.clip(value, -1, 0)))  # noqa: E731
    radial = high(octave + 1) * np.sqrt(1 - high(octave) ** 2)
    assert wanted == pytest.approx((np.abs(spectrum) ** 2 * radial**2).sum(), rel=1e-9)


def cw_ssim_in_loops(first, second, window, constant):
    """Sampat et al. 2009, eq. (10), window by window, of the coefficients of one orientation."""
    rows, columns = first.shape[0] - window + 1, first.shape[1] - window + 1
    above, whole = 0.0, 0.0
    for row in range(rows):
        for column in range(columns):
            x, y = (each[row : row + window, column : column + window] for each in (first, second))
            k = constant * window**2
            local = (2 * abs((x * np.conj(y)).sum()) + k) / ((abs(x) ** 2).sum() + (abs(y) ** 2).sum() + k)
            away = (row - (rows - 1) / 2) ** 2 + (column - (columns - 1) / 2) ** 2
            weight = math.exp(-away / (2 * (first.shape[0] / 4) ** 2))
            above, whole = above + weight * local, whole + weight
    return above / whole


@pytest.mark.parametrize("constant", [0.0, 0.01, 30.0])
def test_cw_ssim_against_its_definition(constant):
    one, other = textured((40, 56)), textured((40, 56), 4)
    settings = CwSsimSettings(2, 4, 7, constant)
    pairs = zip(bands_in_loops(one, 2, 4), bands_in_loops(other, 2, 4), strict=True)
    wanted = np.mean([cw_ssim_in_loops(*each, 7, constant) for each in pairs])
    assert cw_ssim(one, other, settings) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("factor", [0.25, 0.5, 1.0, 2.0])
def test_a_change_of_contrast_by_hand(factor):
    """y = a x + b: every window gives 2 a / (1 + a^2), whatever the image."""
    image = textured((64, 48))
    expected = 2 * factor / (1 + factor**2)
    assert cw_ssim(image, factor * image + 17, SMALL) == pytest.approx(expected, rel=1e-12, abs=0)


def test_a_small_shift_hardly_matters_where_it_does_to_ssim():
    image = textured((280, 300))
    shifted = np.roll(image, 2, axis=1)
    assert cw_ssim(image, shifted) > 0.98
    assert ssim(image, shifted) < 0.9


def test_bounds_symmetry_and_identity():
    one, other = textured((64, 64)), textured((64, 64), 5)
    assert cw_ssim(one, one, SMALL) == pytest.approx(1, abs=1e-12)
    assert 0 <= cw_ssim(one, other, SMALL) < 1
    assert cw_ssim(one, other, SMALL) == pytest.approx(cw_ssim(other, one, SMALL), rel=1e-12, abs=0)


def test_images_without_structure():
    flat = np.full((64, 64), 7.0)
    assert cw_ssim(flat, flat, CwSsimSettings(2, 4)) == pytest.approx(1, abs=1e-9)


def test_the_least_side_is_what_a_window_needs():
    for level in (1, 2, 4, 6):
        settings = CwSsimSettings(level, 2)
        side = settings.least_side
        assert bands(np.zeros((side, side)), settings)[0].shape == (7, 7)
        assert bands(np.zeros((side - 1, side - 1)), settings)[0].shape == ((6, 6))
        with pytest.raises(ValueError, match=f"{side} x {side}"):
            cw_ssim(np.zeros((side - 1, 999)), np.zeros((side - 1, 999)), settings)
    assert CwSsimSettings().least_side == 193


def test_coefficients_against_pyrtools():
    pyrtools = pytest.importorskip("pyrtools")
    image = textured((64, 96))
    peer = pyrtools.pyramids.SteerablePyramidFreq(image, height=3, order=3, is_complex=True).pyr_coeffs
    # The peer turns every band by (-i)^order, tabulates its masks, and does not rescale what it samples coarsely.
    for number, found in enumerate(bands(image, CwSsimSettings(3, 4))):
        other = peer[(2, number)]
        share = abs(np.vdot(found, other)) / (np.linalg.norm(found) * np.linalg.norm(other))
        assert share > 0.999


@pytest.mark.parametrize(
    "values", [(0, 4), (13, 4), (2, 0), (2, 33), (2, 4, 6), (2, 4, 7, -1.0), (2, 4, 7, math.nan)]
)
def test_settings_out_of_range(values):
    with pytest.raises(ValueError, match="expected"):
        CwSsimSettings(*values)


# --- features ---------------------------------------------------------------------------------------------------


def test_euclidean_and_cosine_by_hand():
    one, other = np.array([[3.0, 4.0], [1.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 0.0], [0.0, 2.0], [-1.0, -1.0]])
    assert euclidean(one, other).tolist() == pytest.approx([5, math.sqrt(5), math.sqrt(8)])
    assert cosine(one[1:], other[1:]).tolist() == pytest.approx([1, 2])
    with pytest.raises(ValueError, match="zero"):
        cosine(one, other)


def test_cosine_of_nearly_parallel_vectors_does_not_cancel():
    found = cosine(np.array([[1.0, 0.0]]), np.array([[1.0, 1e-9]]))
    assert found[0] == pytest.approx(5e-19, rel=1e-6)


def test_frechet_by_hand():
    # One feature: (m1 - m2)^2 + (s1 - s2)^2. Rows 0, 2 and 5, 9: means 1 and 7, variances 2 and 8.
    found = frechet(np.array([[0.0], [2.0]]), np.array([[5.0], [9.0]]))
    assert found == pytest.approx(36 + (math.sqrt(8) - math.sqrt(2)) ** 2, rel=1e-12, abs=0)


def test_frechet_against_a_general_matrix_root():
    from scipy.linalg import sqrtm

    rng = np.random.default_rng(0)
    one, other = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 5)), rng.standard_normal((40, 5)) + 1
    c1, c2 = np.cov(one, rowvar=False), np.cov(other, rowvar=False)
    apart = one.mean(0) - other.mean(0)
    expected = apart @ apart + np.trace(c1 + c2 - 2 * sqrtm(c1 @ c2).real)
    assert frechet(one, other) == pytest.approx(expected, rel=1e-9)


def test_frechet_of_fewer_images_than_features():
    rng = np.random.default_rng(0)
    one = rng.standard_normal((5, 20))
    assert frechet(one, one) == pytest.approx(0, abs=1e-9)
    assert frechet(one, one + 2) == pytest.approx(80, rel=1e-9)  # 20 features, each shifted by 2


def test_linkage_by_hand():
    one, other = np.array([[0.0, 0.0], [0.0, 2.0]]), np.array([[3.0, 0.0], [3.0, 6.0]])
    # Distances: 3, sqrt(45), sqrt(13), 5; means (0, 1) and (3, 3).
    assert linkage(one, other, "single") == 3
    assert linkage(one, other, "complete") == pytest.approx(math.sqrt(45))
    assert linkage(one, other, "average") == pytest.approx((3 + math.sqrt(45) + math.sqrt(13) + 5) / 4)
    assert linkage(one, other, "centroid") == pytest.approx(math.sqrt(13))


clouds = st.tuples(st.integers(2, 6), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-8, 8).map(float))
)


@given(clouds)
def test_laws_of_distances_of_features(cloud):
    moved = cloud + 3
    gap = 3 * math.sqrt(cloud.shape[1])
    assert frechet(cloud, cloud) == pytest.approx(0, abs=1e-6)
    assert frechet(cloud, moved) == pytest.approx(gap**2, rel=1e-6)
    assert linkage(cloud, moved, "centroid") == pytest.approx(gap)
    single, average, complete = (linkage(cloud, moved, kind) for kind in ("single", "average", "complete"))
    rounding = 1 + (len(cloud) ** 2 + 1) * np.finfo(float).eps  # of the sum of all pairs, and of its share
    assert single <= complete
    assert single <= average * rounding
    assert average <= complete * rounding
    assert euclidean(cloud, moved) == pytest.approx(np.full(len(cloud), gap))


@pytest.mark.parametrize(
    ("one", "other"),
    [(np.zeros((3, 2)), np.zeros((3, 3))), (np.zeros((0, 2)), np.zeros((3, 2))), (np.zeros(3), np.zeros(3))],
)
def test_clouds_that_do_not_fit(one, other):
    for measure in (frechet, lambda a, b: linkage(a, b, "single")):
        with pytest.raises(ValueError, match="features"):
            measure(one, other)


def test_unknown_linkage_and_single_images():
    with pytest.raises(ValueError, match="unknown linkage"):
        linkage(np.zeros((1, 1)), np.zeros((1, 1)), "ward")
    with pytest.raises(ValueError, match="two images"):
        frechet(np.zeros((1, 1)), np.zeros((2, 1)))


def test_features_from_files(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[1, 2], [3, 4]], dtype=np.int32))
    (tmp_path / "b.csv").write_text("u,v\n1,2\n\n3,4\n")
    for name in ("a.npy", "b.csv"):
        assert read_features(tmp_path / name).tolist() == [[1, 2], [3, 4]]


def test_bad_feature_files(tmp_path):
    np.save(tmp_path / "object.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    np.save(tmp_path / "line.npy", np.zeros(4))
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    np.save(tmp_path / "nan.npy", np.array([[1.0], [np.nan]]))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "nan.npy").read_bytes()[:-4])
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "ragged.csv").write_text("1,2\n3\n")
    (tmp_path / "words.csv").write_text("1,2\nx,y\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "infinite.csv").write_text("1,inf\n")
    (tmp_path / "other.txt").write_text("1")
    (tmp_path / "folder.csv").mkdir()
    for path in [*tmp_path.iterdir(), tmp_path / "missing.csv"]:
        with pytest.raises(InputError, match=path.name):
            read_features(path)
    with pytest.raises(InputError, match=r"ragged\.csv:2"):
        read_features(tmp_path / "ragged.csv")


def test_distances_are_exact_numbers():
    assert Fraction(mse(np.zeros((1, 2)), np.array([[0.0, 1.0]]))) == Fraction(1, 2)
