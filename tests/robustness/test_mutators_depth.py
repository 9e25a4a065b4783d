"""Haze and defocus: by hand, against their definitions pixel by pixel, and where they are hard to compute."""

import math

import numpy as np
import plain_mutators as plain
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_mutators import impulse, noise

from verifier.base.errors import LimitError
from verifier.robustness.mutators.defocus import (
    LARGEST_ERROR,
    Lens,
    camera_constant,
    defocus,
    defocus_with_bound,
    exact_sums,
    scatter,
)
from verifier.robustness.mutators.photometric import extinction_per_m, haze
from verifier.robustness.mutators.spread import COORDINATE_PX, _nodes, layers_for

cv2 = pytest.importorskip("cv2", reason="opencv-python-headless is not installed")


def steps(height, width, seed=0, nearest=3.0, farthest=80.0):
    """Rectangles at random depths before a road that rises to the back."""
    rng = np.random.default_rng(seed)
    depth = np.geomspace(farthest, nearest, height)[:, np.newaxis] * np.ones(width)
    for _ in range(4):
        top, left = rng.integers(0, height), rng.integers(0, width)
        depth[top : top + height // 2, left : left + width // 3] = rng.uniform(nearest, farthest)
    return depth


def flat(metres, height=8, width=8):
    return np.full((height, width), float(metres))


# Haze


def test_haze_of_a_uniform_depth_by_hand():
    # 25 m at 0.04 per metre: T = 1/e = 0.36788. 100 T + (205, 208, 211) (1 - T) = 166.37, 168.27, 170.16.
    image = np.full((8, 8, 3), 100, np.uint8)
    assert np.unique(haze(image, flat(25), 0.04).reshape(-1, 3), axis=0).tolist() == [[166, 168, 170]]
    # Black haze: 100 / e; twice as far: 100 / e^2.
    assert haze(image, flat(25), 0.04, (0, 0, 0))[0, 0].tolist() == [37, 37, 37]
    assert haze(image, flat(50), 0.04, (0, 0, 0))[0, 0].tolist() == [14, 14, 14]


def test_depth_is_smoothed_before_it_is_used():
    # exp(-x^2/8) at 0, 1, 2, ...: 1, .8825, .6065, .3247, .1353, .0439, .0111, .0022; sum over all 5.0133. 10 m up to
    # column 7 of 16, 60 m from column 8 on, which sees the share (1 + (5.0133 - 1) / 2) / 5.0133 = 0.59973 of 60 m:
    # 39.99 m; column 7 sees 30.01 m. White in black haze of 0.04 per metre: 255 exp(-1.5995) = 51.51 and
    # 255 exp(-1.2005) = 76.76.
    depth = flat(10, 1, 16)
    depth[:, 8:] = 60
    white = np.full((1, 16, 3), 255, np.uint8)
    made = haze(white, depth, 0.04, (0, 0, 0))[0, :, 0]
    assert made[[7, 8]].tolist() == [77, 52]
    assert made[[0, 15]].tolist() == [171, 23]  # 255 exp(-0.4) = 170.9, 255 exp(-2.4) = 23.1: nothing of the step


@pytest.mark.parametrize("beta", [0.004, 0.012, 0.04, 0.3])
@pytest.mark.parametrize("size", [(8, 8), (70, 9), (1, 1), (5, 30)])
def test_haze_is_its_formula(beta, size):
    image, depth = noise(*size), steps(*size)
    made, exact = haze(image, depth, beta), plain.haze(image, depth, beta)
    assert np.abs(made - exact).max() <= 0.5 + 1e-3
    other = haze(image, depth, beta, (10, 200, 90))
    assert np.abs(other - plain.haze(image, depth, beta, (10, 200, 90))).max() <= 0.5 + 1e-3


def test_haze_before_a_sky_at_any_distance_is_its_formula():
    # 1e5 m beside 5 m: what the Gaussian leaves out there would count.
    depth = flat(5, 24, 24)
    depth[:4] = 1e5
    image = noise(24, 24)
    assert np.abs(haze(image, depth, 0.04) - plain.haze(image, depth, 0.04)).max() <= 0.5 + 1e-2


def test_no_haze_is_the_identity_and_infinite_visibility_is_no_haze():
    image = noise(70, 9)
    np.testing.assert_array_equal(haze(image, steps(70, 9), extinction_per_m(math.inf)), image)
    np.testing.assert_array_equal(haze(image, steps(70, 9), 0.0), image)


def test_far_enough_there_is_only_haze():
    assert (haze(noise(8, 8), flat(1000), 0.04, (1, 2, 3)) == (1, 2, 3)).all()


def test_at_the_distance_of_visibility_two_per_cent_of_the_contrast_are_left():
    # exp(-3.912) = 0.0200; of 255 levels 5.1. White 255 T + 205 (1 - T) = 206.0, black 205 (1 - T) = 200.9.
    pair = np.array([[[255] * 3, [0] * 3]], np.uint8)
    for visibility_m in (97.8, 326.0, 978.0):
        made = haze(pair, flat(visibility_m, 1, 2), extinction_per_m(visibility_m))
        assert made[0, :, 0].tolist() == [206, 201]


def test_visibilities_of_the_papers():
    assert [round(extinction_per_m(each), 12) for each in (97.8, 326, 978)] == [0.04, 0.012, 0.004]


# Defocus


def test_camera_constant_of_table_three():
    # (2.5e-3)^2 = 6.25e-6; 1.4 x 1.24e-6 = 1.736e-6; 6.25 / 1.736 = 3.60023.
    assert round(camera_constant(2.5e-3, 1.4, 1.24e-6), 5) == 3.60023


def test_spreads_by_hand():
    # 2 |2 - 1| / (2 x 1) = 1; at 4 m 2 x 3 / 4 = 1.5; at 0.5 m 2 x 0.5 / 0.5 = 2; far away towards 2 / 1.
    lens = Lens(2.0, 1.0)
    assert lens.spread_px(np.array([1, 2, 4, 0.5])).tolist() == [0, 1, 1.5, 2]
    assert abs(lens.spread_px(np.array([1e5]))[0] - 2) < 1e-4
    assert lens.range_px(np.array([[0.5, 4.0]])) == (0, 2)  # from one side of the focus to the other
    assert lens.range_px(np.array([[4.0, 2.0]])) == (1, 1.5)


def test_a_point_out_of_focus_by_hand():
    # Everywhere at 2 m: rho = 1, g(0..4) = .398942, .241971, .053991, .004432, .000134. Of a line's point spread,
    # .699471, .941442, .995433 and .999863 come from inside the image at 0, 1, 2 and 3 pixels from its edge: the sums
    # that the result is divided by. E.g. at the point 255 x .398942^2 / .999863^2 = 40.60; right of it 40.60 x
    # .606531 x .999863 / .995433 = 24.73; at (3, 7) 255 x .398942 x .004432 / (.999863 x .699471) = 0.64.
    made = defocus(impulse(), flat(2), 2.0, 1.0)
    assert made[..., 1].tolist() == [
        [0, 0, 0, 0, 1, 0, 0, 0],
        [0, 0, 1, 4, 6, 4, 1, 0],
        [0, 0, 3, 15, 25, 15, 4, 0],
        [0, 0, 6, 25, 41, 25, 6, 1],
        [0, 0, 3, 15, 25, 15, 4, 0],
        [0, 0, 1, 3, 6, 3, 1, 0],
        [0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0],
    ]


def test_it_is_the_source_that_scatters():
    # Left black in focus, right white with rho = 1. g(0) g(1) = .398942 x .241971 = .096531 of the right one's light
    # reaches the left one: 255 x .096531 / 1.096531 = 22.45. The right one receives nothing from the left.
    image = np.array([[[0] * 3, [255] * 3]], np.uint8)
    assert defocus(image, np.array([[1.0, 2.0]]), 2.0, 1.0)[0, :, 0].tolist() == [22, 255]
    assert defocus(image, np.array([[2.0, 1.0]]), 2.0, 1.0)[0, :, 0].tolist() == [0, 233]  # 255 / 1.096531 = 232.55


SCENES = [(2.0, 1.0), (2.8, 1.0), (3.6, 1.0), (2.0, 2.0), (2.8, 5.0), (2.0, 5.0), (3.6, 10.0), (20.0, 4.0)]


@pytest.mark.parametrize(("kappa", "focus"), SCENES)
@pytest.mark.parametrize("size", [(8, 8), (14, 31)])
def test_defocus_is_its_definition(kappa, focus, size):
    for seed in range(3):
        image, depth = noise(*size, seed=seed), steps(*size, seed=seed)
        made, bound = defocus_with_bound(image, depth, kappa, focus)
        exact = plain.defocus(image, depth, kappa, focus)
        assert bound <= LARGEST_ERROR < 0.5
        assert np.abs(made - exact).max() <= 0.5 + bound
        assert np.abs(made - np.rint(exact)).max() <= 1
        assert (made == np.rint(exact)).mean() > 0.95  # in truth far nearer than the bound


@given(
    seed=st.integers(0, 10_000),
    kappa=st.floats(0, 12),
    focus=st.floats(0.3, 60),
    nearest=st.floats(0.3, 20),
    ratio=st.floats(1, 30),
)
def test_defocus_of_any_scene_is_its_definition(seed, kappa, focus, nearest, ratio):
    rng = np.random.default_rng(seed)
    height, width = rng.integers(1, 12, 2)
    depth = nearest * ratio ** rng.random((height, width))  # every pixel on its own
    image = rng.choice(np.array([0, 7, 128, 255], np.uint8), (height, width, 3))
    exact = plain.defocus(image, depth, kappa, focus)
    assert np.abs(defocus(image, depth, kappa, focus) - exact).max() <= 0.5 + LARGEST_ERROR


def test_pixels_that_receive_little_light_get_the_exact_sums():
    # Single pixels far out of focus between others in focus keep 1 / (2 pi rho^2) of their own light and receive as
    # little: without exact sums the error of the layers would be magnified a hundredfold.
    image, depth = noise(24, 30), flat(10, 24, 30)
    depth[5, 7] = depth[20, 29] = depth[0, 0] = 0.5  # rho = 3.6 x 9.5 / 5 = 6.8
    exact = plain.defocus(image, depth, 3.6, 10.0)
    made = defocus(image, depth, 3.6, 10.0)
    assert np.abs(made - exact).max() <= 0.5 + LARGEST_ERROR
    places = np.argwhere(depth == 0.5)
    sums = exact_sums(image, depth, Lens(3.6, 10.0), 6.84, places)
    np.testing.assert_allclose(sums.T, exact[tuple(places.T)], atol=1e-3)
    np.testing.assert_array_equal(made[tuple(places.T)], np.rint(exact[tuple(places.T)]))


def test_exact_sums_are_the_definition():
    # Spreads from 0 to 3.5 pixels, on both sides of where the formula for their sums changes.
    image, depth = noise(12, 17), 1 / np.linspace(1, 0.01, 12 * 17).reshape(12, 17)
    places = np.argwhere(depth > 0)
    sums = exact_sums(image, depth, Lens(3.6, 1.0), 3.6, places)
    np.testing.assert_allclose(sums.T.reshape(12, 17, 3), plain.defocus(image, depth, 3.6, 1.0), atol=1e-5)


def test_pixels_count_as_dark_by_what_they_receive_and_by_what_can_be_wrong_there():
    # The errors that reach a pixel are those at offsets to pixels of the image: of their sums over lines, from the
    # pixel's distance to the upper edge to that to the lower one; and the same for columns.
    image, depth, lens = noise(40, 30), steps(40, 30, 2, 0.8), Lens(3.6, 1.0)
    layers = layers_for(*lens.range_px(depth), 1e-3)
    shares = []
    for side in depth.shape:
        sums = [
            sum(layers.errors[abs(step)] for step in range(-place, side - place) if abs(step) < len(layers.errors))
            for place in range(side)
        ]
        shares.append(np.array(sums) / layers.error)
    over = plain.scattered(image, depth, 3.6, 1.0)[1] / np.minimum.outer(*shares)
    for enough in np.quantile(over, [0.02, 0.2, 0.7]):
        dark, received = scatter(image, depth, lens, layers, enough)[1:]
        ours = np.zeros(depth.shape, bool)
        ours[tuple(dark.T)] = True
        clear = np.abs(over - enough) > 2e-3 * (1 + enough)
        np.testing.assert_array_equal(ours[clear], (over < enough)[clear])
        np.testing.assert_allclose(received, over[tuple(dark.T)], atol=2e-3)


def test_many_pixels_in_the_dark_are_computed_with_more_layers():
    image, depth = noise(20, 24), flat(10, 20, 24)
    depth[::2, ::2] = 0.6
    assert (
        np.abs(defocus(image, depth, 3.6, 10.0) - plain.defocus(image, depth, 3.6, 10.0)).max() <= 0.5 + LARGEST_ERROR
    )


def test_in_focus_and_with_no_aperture_it_is_the_identity():
    image = noise(70, 9)
    np.testing.assert_array_equal(defocus(image, flat(5, 70, 9), 3.6, 5.0), image)
    for kappa in (0.0, 1e-300, 1e-9, 1e-3):
        np.testing.assert_array_equal(defocus(image, steps(70, 9), kappa, 2.0), image)


@pytest.mark.parametrize("jitter", [2.3e-16, 1e-15, 1e-12, 1e-9, 1e-6])
def test_depths_that_hardly_differ_make_the_image_of_one_depth(jitter):
    # A range of spreads below the resolution of float32.
    image = noise(20, 24)
    rough = 10 * (1 + jitter * np.random.default_rng(0).random((20, 24)))
    one = defocus(image, flat(10, 20, 24), 3.6, 1.0)
    assert np.abs(defocus(image, rough, 3.6, 1.0).astype(int) - one).max() <= 1
    close = defocus(image, 10 + jitter * (rough - 10), 1e3, 10.0)  # around the focus, with a long lens
    np.testing.assert_array_equal(close, image)


def test_a_long_lens_near_its_focus_keeps_its_digits():
    # 2e-5 m from a focus of 5 m spread by 1e6 x 2e-5 / 25 = 0.8 pixel; the digits that float32 has for 5 m end at
    # 2.4e-7 m, which would be more than one per cent of that.
    rng = np.random.default_rng(0)
    image, depth = noise(12, 12), 5 + 2e-5 * rng.uniform(-1, 1, (12, 12))
    exact = plain.defocus(image, depth, 1e6, 5.0)
    assert np.abs(defocus(image, depth, 1e6, 5.0) - exact).max() <= 0.5 + LARGEST_ERROR


@given(level=st.integers(0, 255), seed=st.integers(0, 1000))
@settings(max_examples=20)
def test_a_uniform_image_stays_as_it_is(level, seed):
    image = np.full((9, 11, 3), level, np.uint8)
    np.testing.assert_array_equal(defocus(image, steps(9, 11, seed, 0.5), 2.8, 2.0), image)
    np.testing.assert_array_equal(haze(image, steps(9, 11, seed), 0.04, (level,) * 3), image)


def test_strips_and_threads_make_no_difference():
    image, depth = noise(200, 10), steps(200, 10)  # three strips
    before = cv2.getNumThreads()
    try:
        made = []
        for threads in (1, 2):
            cv2.setNumThreads(threads)
            made.append(defocus(image, depth, 2.8, 1.0))
    finally:
        cv2.setNumThreads(before)
    np.testing.assert_array_equal(made[0], made[1])
    assert np.abs(made[0] - plain.defocus(image, depth, 2.8, 1.0)).max() <= 0.5 + LARGEST_ERROR


@pytest.mark.parametrize(("low", "high"), [(0, 0.374), (0, 1.4), (0.6, 1.97), (1.7, 2.8), (2.0, 2.0), (0, 7)])
def test_layers_are_as_near_as_they_say(low, high):
    # At widths between those at which they were fitted and checked, all offsets up to 6 standard deviations.
    layers = layers_for(low, high, 1e-3)
    assert layers.error <= 1e-3
    reach = max(math.ceil(6 * high), len(layers.errors))
    places = np.arange(-reach, reach + 1)
    worst = np.zeros((len(places), len(places)))
    for width in np.random.default_rng(0).uniform(low, high, 400):
        line = np.exp(-0.5 * (places / max(width, 1e-3)) ** 2)
        exact = np.outer(line, line) / line.sum() ** 2
        column = (width / (width + COORDINATE_PX) - layers.low) / layers.step
        mixed = np.zeros_like(exact)
        for kernel, weight in zip(layers.kernels, layers.weights[:, round(column)], strict=True):
            padded = np.pad(kernel, reach - len(kernel) // 2)
            mixed += weight * np.outer(padded, padded)
        worst = np.maximum(worst, np.abs(mixed - exact))
    lines = np.zeros(reach + 1)
    lines[: len(layers.errors)] = layers.errors
    assert worst.sum() <= layers.error * 1.001 + 1e-6
    assert (worst.sum(axis=1)[reach:] <= lines * 1.001 + 1e-6).all()


# What is refused


@pytest.mark.parametrize(
    "call",
    [
        lambda: camera_constant(0, 1.4, 1e-6),
        lambda: camera_constant(2e-3, 1.4, math.inf),
        lambda: layers_for(2, 1, 1e-3),
        lambda: layers_for(0, 1, 0),
    ],
)
def test_parameters_that_make_no_sense_are_refused(call):
    with pytest.raises(ValueError, match="expected"):
        call()


def test_spreads_that_are_too_wide_are_refused_with_their_size():
    # 3.6 x 9.99 / (0.01 x 10) = 359.64 pixels.
    with pytest.raises(LimitError, match=r"0.01 to 0.01 m spread points by up to 359\.6 pixels"):
        defocus(noise(8, 8), flat(0.01), 3.6, 10.0)


def bent(width):
    """The scale on which layers lie evenly."""
    return np.log(1 + (width / 0.45) ** 4) / 4


def test_layers_lie_at_the_zeros_of_a_chebyshev_polynomial():
    for count in (2, 3, 6):
        zeros = np.polynomial.chebyshev.chebroots([0] * count + [1])
        place = (bent(_nodes(1.0, 4.0, count)) - bent(1.0)) / (bent(4.0) - bent(1.0))
        assert np.sort(2 * place - 1) == pytest.approx(zeros, abs=1e-9)
    # A range that begins at no blur has the sharp image, and the others from .48 pixels on.
    sharp, *blurred = _nodes(0.0, 4.0, 4)
    place = (bent(np.array(blurred)) - bent(0.48)) / (bent(4.0) - bent(0.48))
    assert sharp == 0
    assert 2 * place - 1 == pytest.approx(np.polynomial.chebyshev.chebroots([0, 0, 0, 1]), abs=1e-9)
    assert _nodes(2.0, 2.0, 1).tolist() == [2.0]
