"""The mutators of pixels: cases worked out by hand, and the defining formulas written down once more in float64."""

import io

import numpy as np
import plain_mutators as plain
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from plain_mutators import impulse, noise

from verifier.robustness.mutators.geometric import (
    chromatic_aberration,
    gaussian_blur,
    motion_blur,
    motion_kernel,
    pixelation,
)
from verifier.robustness.mutators.photometric import alpha_blend, brightness, channel_dropout, contrast, jpeg

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")

FLOAT32 = 2e-3
"""Grey levels: what float32 may move a value before it is rounded."""
IMAGES = arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3)))


def ramp():
    """All 256 levels, differently in each channel."""
    levels = np.arange(256, dtype=np.uint8)
    return np.stack([levels, levels[::-1], np.roll(levels, 77)], axis=-1).reshape(16, 16, 3)


def assert_rounded(made, exact, slack=FLOAT32):
    """Cut off at 0 and 255, and rounded once: half a level away at most, and nearly always the rounded number."""
    assert made.dtype == np.uint8
    cut = np.clip(exact, 0, 255)
    assert np.abs(made - cut).max() <= 0.5 + slack
    clear = np.abs(np.abs(cut - np.floor(cut)) - 0.5) > slack
    np.testing.assert_array_equal(made[clear], np.rint(cut)[clear])


# Gaussian blur


def test_blur_of_a_point_by_hand():
    # exp(-x^2/2) at 0..4: 1, .606531, .135335, .011109, .000335; sum over -4..4: 2.506621. Over it:
    # .398943, .241971, .053991, .004432, .000134. 255 times the products: 40.58, 24.62, 14.93, 5.49, 3.33, .74, .45.
    # Mirrored, the point also stands at row -3 and at column 10: four away from row 1 and column 6 (5.49 + .0136),
    # and as far as itself from row 0 and column 7: twice .45, and twice .27.
    made = gaussian_blur(impulse(), 1.0)
    assert made[..., 0].tolist() == [
        [0, 0, 0, 1, 1, 1, 0, 0],
        [0, 0, 1, 3, 6, 3, 1, 0],
        [0, 0, 3, 15, 25, 15, 3, 1],
        [0, 0, 5, 25, 41, 25, 6, 1],
        [0, 0, 3, 15, 25, 15, 3, 1],
        [0, 0, 1, 3, 5, 3, 1, 0],
        [0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0],
    ]


def test_blur_at_the_edge_mirrors_about_the_outermost_pixels():
    # One row 0, 255, 0, 0, ... : the left neighbour of column 0 is column 1 again, so column 0 receives it twice.
    image = np.zeros((1, 8, 3), np.uint8)
    image[0, 1] = 255
    assert gaussian_blur(image, 0.5)[0, :4, 0].tolist() == [54, 201, 27, 0]  # 255 (.1065 x 2), .7866, .1065, .0003


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1, 1.5, 2, 2.5, 3, 3.6, 7.0])
@pytest.mark.parametrize("size", [(8, 8), (5, 40), (1, 3)])
def test_blur_is_the_convolution(sigma, size):
    image = noise(*size)
    assert_rounded(gaussian_blur(image, sigma), plain.gaussian_blur(image, sigma), 0.035)  # the kernel's end


def test_blur_by_next_to_nothing_is_the_identity():
    image = noise(8, 8)
    for sigma in (0.0, 1e-9, 1e-3, 0.1):
        np.testing.assert_array_equal(gaussian_blur(image, sigma), image)


# Brightness, contrast, alpha blend


def test_brightness_by_hand():
    # 1.143 x 100 = 114.3; 2 x 130 is cut off; halves go to the even number: 0.5 to 0, 1.5 and 2.5 to 2, 3.5 to 4.
    image = np.array([[[100, 130, 1], [3, 5, 7]]], np.uint8)
    assert brightness(image, 1.143).tolist() == [[[114, 149, 1], [3, 6, 8]]]
    assert brightness(image, 2.0).tolist() == [[[200, 255, 2], [6, 10, 14]]]
    assert brightness(image, 0.5).tolist() == [[[50, 65, 0], [2, 2, 4]]]


def test_contrast_by_hand():
    # Half 100, half 200: the mean is 150. Times 0.5: 125 and 175; times 4: -50 and 350, cut off.
    image = np.full((8, 8, 3), 100, np.uint8)
    image[:, 4:] = 200
    assert np.unique(contrast(image, 0.5)).tolist() == [125, 175]
    assert np.unique(contrast(image, 4.0)).tolist() == [0, 255]
    assert np.unique(contrast(image, 0.0)).tolist() == [150]
    assert np.unique(contrast(image, 2.0, about=100)).tolist() == [100, 255]


def test_alpha_blend_by_hand():
    # Black, half haze: 102.5, 104, 105.5, ties to even. (200, 100, 0) with a quarter: 201.25, 127, 52.75.
    assert alpha_blend(np.zeros((1, 1, 3), np.uint8), 0.5).tolist() == [[[102, 104, 106]]]
    assert alpha_blend(np.array([[[200, 100, 0]]], np.uint8), 0.25).tolist() == [[[201, 127, 53]]]
    assert alpha_blend(noise(8, 8), 1.0, (1, 2, 3)).reshape(-1, 3).tolist() == [[1, 2, 3]] * 64


@pytest.mark.parametrize("factor", [0, 0.5, 0.75, 0.875, 0.88, 1, 1.14, 1.143, 1.33, 2, 7.3])
def test_brightness_and_contrast_are_their_formulas(factor):
    image = ramp()
    assert_rounded(brightness(image, factor), image * float(factor))
    mean = image.astype(float).mean()
    assert_rounded(contrast(image, factor), (image - mean) * factor + mean)
    assert_rounded(contrast(image, factor, 40.5), (image - 40.5) * factor + 40.5)


@pytest.mark.parametrize("alpha", [0, 0.1, 0.25, 0.5, 0.75, 0.875, 1])
def test_alpha_blend_is_its_formula(alpha):
    image = ramp()
    assert_rounded(alpha_blend(image, alpha), (1 - alpha) * image + alpha * np.array([205, 208, 211]))


# Channel drop-out


def test_dropped_channels_by_hand():
    # Grey 100 has Y = 100 and Cb = Cr = 128. Cb = 0: blue 100 - 226.8, green 100 + 44.05. Cr = 0: red 100 - 179.5,
    # green 100 + 91.41. Pure red: Y = 76.245, Cr = 255.5; Cb = 0: red stays, green 76.245 + 44.05 - 91.05 = 29.24.
    image = np.array([[[100, 100, 100], [255, 0, 0]]], np.uint8)
    assert channel_dropout(image, "Cb").tolist() == [[[100, 144, 0], [255, 29, 0]]]
    assert channel_dropout(image, "Cr")[0, 0].tolist() == [0, 191, 100]
    for place, name in enumerate("RGB"):
        kept = noise(8, 8)
        dropped = channel_dropout(kept, name)
        assert (dropped[..., place] == 0).all()
        np.testing.assert_array_equal(np.delete(dropped, place, 2), np.delete(kept, place, 2))


@pytest.mark.parametrize("channel", ["Cb", "Cr"])
def test_dropped_chroma_is_jfif_with_one_zero(channel):
    image = noise(70, 9)  # more than one strip
    # JFIF prints its coefficients to six places: up to 255 x 3 x 5e-7 x 1.8 apart.
    assert_rounded(channel_dropout(image, channel), plain.without_chroma(image, channel), 3e-3)


# JPEG


def test_jpeg_is_what_pillow_does():
    images = pytest.importorskip("PIL.Image")
    image = noise(24, 17)
    for quality in (10, 20, 40, 60):
        stream = io.BytesIO()
        images.fromarray(image, "RGB").save(stream, format="jpeg", quality=quality)
        np.testing.assert_array_equal(jpeg(image, quality), np.asarray(images.open(stream)))


def test_jpeg_keeps_a_uniform_grey_and_loses_more_with_less_quality():
    # A uniform block at level 128 is the zero of every coefficient.
    uniform = np.full((8, 8, 3), 128, np.uint8)
    np.testing.assert_array_equal(jpeg(uniform, 10), uniform)
    image = gaussian_blur(noise(64, 64), 1.0)
    losses = [np.abs(jpeg(image, quality).astype(int) - image).mean() for quality in (90, 60, 40, 20, 10)]
    assert losses == sorted(losses)
    assert losses[0] < losses[-1]


# Motion blur


def middle(kernel):
    """Its middle 3 x 3, which holds all of it."""
    row, column = (side // 2 for side in kernel.shape)
    part = np.pad(kernel, 1)[row : row + 3, column : column + 3]
    assert abs(part.sum() - 1) < 1e-12
    return part


def test_kernels_of_short_motions_by_hand():
    # Length 2 to the right: the hat 1 - |t| over -1..1, by 2: 1/2 in the middle; t over 0..1, by 2: 1/4 beside it.
    np.testing.assert_allclose(middle(motion_kernel(2, 0))[1], [1 / 4, 1 / 2, 1 / 4], atol=1e-15)
    # Length 1: 2 x (1/2 - 1/8) = 3/4 and 1/8.
    np.testing.assert_allclose(middle(motion_kernel(1, 90))[:, 1], [1 / 8, 3 / 4, 1 / 8], atol=1e-15)
    # Length 2 sqrt 2 at 45 degrees, s = t / sqrt 2 in -1..1: the mean of (1 - s)^2 over 0..1 is 1/3; of s^2 / 2, 1/6;
    # of s (1 - s) / 2, 1/12. Upwards to the right: the left lower and the right upper neighbour.
    expected = np.array([[0, 1 / 12, 1 / 6], [1 / 12, 1 / 3, 1 / 12], [1 / 6, 1 / 12, 0]])
    np.testing.assert_allclose(middle(motion_kernel(2 * 2**0.5, 45)), expected, atol=1e-12)


@given(st.floats(0.01, 40), st.floats(-400, 400))
def test_kernels_of_motions_are_means(length, angle):
    kernel = motion_kernel(length, angle)
    assert abs(kernel.sum() - 1) < 1e-12
    assert kernel.min() > -1e-15
    np.testing.assert_allclose(kernel, kernel[::-1, ::-1], atol=1e-12)
    rows, columns = (np.arange(side) - side // 2 for side in kernel.shape)
    # The variance of an even motion is L^2 / 12, in its direction; the hats add at most 1/4 on each axis.
    spread = np.array([(kernel.sum(1) * rows**2).sum(), (kernel.sum(0) * columns**2).sum()])
    along = np.array([np.sin(np.deg2rad(angle)), np.cos(np.deg2rad(angle))]) ** 2 * length**2 / 12
    assert (spread >= along - 1e-9).all()
    assert (spread <= along + 0.25 + 1e-9).all()


def test_motion_blur_of_a_point_by_hand():
    # 255 x 1/4, 1/2, 1/4 = 63.75, 127.5 (to even), 63.75; and the other way round for a motion upwards.
    assert motion_blur(impulse(), 2)[3, 2:7, 1].tolist() == [0, 64, 128, 64, 0]
    assert motion_blur(impulse(), 2, 90)[1:6, 4, 1].tolist() == [0, 64, 128, 64, 0]


@pytest.mark.parametrize(("length", "angle"), [(3, 0), (3.7, 30), (5.2, -77), (9, 90), (15, 30), (0.4, 200)])
def test_motion_blur_is_the_mean_over_the_path(length, angle):
    image = noise(9, 11)
    # The middles of 4000 parts are not the integral: off by less than 255 (L / 4000)^2.
    assert_rounded(motion_blur(image, length, angle), plain.motion_blur(image, length, angle), 0.01)


def test_no_motion_is_the_identity():
    np.testing.assert_array_equal(motion_blur(noise(8, 8), 0.0, 12), noise(8, 8))


# Pixelation


def test_blocks_by_hand():
    # Blocks of 2 in a row of 5: means 15, 2.5 (to even) and the last pixel by itself.
    image = np.repeat(np.array([[10, 20, 2, 3, 9]], np.uint8)[..., np.newaxis], 3, axis=2)
    assert pixelation(image, 2)[0, :, 2].tolist() == [15, 15, 2, 2, 9]
    assert pixelation(image, 7)[0, :, 0].tolist() == [9] * 5  # 44 / 5 = 8.8


@pytest.mark.parametrize("block", [1, 2, 3, 4, 5, 8, 200])
@pytest.mark.parametrize("size", [(8, 8), (13, 7), (1, 1)])
def test_blocks_become_their_means(block, size):
    image = noise(*size, seed=block)
    np.testing.assert_array_equal(pixelation(image, block), np.rint(plain.pixelation(image, block)))


# Chromatic aberration


def test_aberration_by_hand():
    # Five pixels; red enlarged twice about pixel 2: pixels 0..4 show 1, 1.5, 2, 2.5, 3. Blue at half the size: -2, 0,
    # 2, 4, 6, the outer ones repeated.
    line = np.array([[0, 10, 40, 80, 200]], np.uint8)
    made = chromatic_aberration(np.stack([line] * 3, axis=-1), 1.0)
    assert made[0, :, 0].tolist() == [10, 25, 40, 60, 80]
    assert made[0, :, 1].tolist() == [0, 10, 40, 80, 200]
    assert made[0, :, 2].tolist() == [0, 0, 40, 200, 200]


@pytest.mark.parametrize(("expansion", "sigma"), [(0.01, 0.0), (0.1, 0.0), (0.37, 0.0), (0.05, 1.3), (0.0, 0.8)])
def test_aberration_is_two_scalings_and_a_blur(expansion, sigma):
    image = noise(14, 19)
    made = chromatic_aberration(image, expansion, sigma)
    exact = plain.chromatic_aberration(image, expansion, sigma)
    assert np.abs(made - exact).max() <= 0.5 + (0.035 if sigma else 0.01)
    np.testing.assert_array_equal(made[..., 1], image[..., 1])


def test_no_aberration_is_the_identity():
    np.testing.assert_array_equal(chromatic_aberration(noise(8, 9), 0.0), noise(8, 9))


# Laws


SOME = {
    "blur": lambda image: gaussian_blur(image, 1.7),
    "brightness": lambda image: brightness(image, 1.3),
    "contrast": lambda image: contrast(image, 1.6),
    "blend": lambda image: alpha_blend(image, 0.3),
    "red": lambda image: channel_dropout(image, "R"),
    "Cr": lambda image: channel_dropout(image, "Cr"),
    "jpeg": lambda image: jpeg(image, 30),
    "motion": lambda image: motion_blur(image, 4, 20),
    "blocks": lambda image: pixelation(image, 3),
    "aberration": lambda image: chromatic_aberration(image, 0.1, 0.5),
}


@pytest.mark.parametrize("name", SOME)
def test_an_image_is_never_changed_nor_held_on_to(name):
    image = noise(70, 12)
    before = image.copy()
    image.setflags(write=False)
    made = SOME[name](image)
    np.testing.assert_array_equal(image, before)
    assert made.shape == image.shape
    assert not np.shares_memory(made, image)
    np.testing.assert_array_equal(SOME[name](np.asfortranarray(image)), made)
    wide = np.zeros((140, 24, 3), np.uint8)
    wide[::2, ::2] = image
    np.testing.assert_array_equal(SOME[name](wide[::2, ::2]), made)


@pytest.mark.parametrize("name", ["blur", "motion", "blocks", "aberration"])
@given(level=st.integers(0, 255), size=st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_what_moves_light_leaves_a_uniform_image_as_it_is(name, level, size):
    image = np.full((*size, 3), level, np.uint8)
    np.testing.assert_array_equal(SOME[name](image), image)


@pytest.mark.parametrize("name", ["blur", "brightness", "contrast", "blend", "Cr"])
@given(image=IMAGES)
def test_mirror_images_are_treated_alike(name, image):
    # Sums in another order can end on the other side of a tie.
    turned = SOME[name](np.ascontiguousarray(image[::-1, ::-1]))[::-1, ::-1]
    assert np.abs(turned.astype(int) - SOME[name](image)).max() <= 1
