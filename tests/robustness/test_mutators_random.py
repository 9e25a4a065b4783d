"""Mutators that draw: what is exact about them by hand, and their statistics within bounds that are derived."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.robustness.mutators.photometric import additive_noise, salt_and_pepper, shifted_lines

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")

SIGMAS = 5
"""Standard errors that a statistic may be off; the seeds are fixed, so that a test passes always or never."""


def rng(seed=0):
    return np.random.default_rng(seed)


def uniform(level, height=200, width=500):
    return np.full((height, width, 3), level, np.uint8)


def numbered(height, width):
    """Every pixel another colour."""
    count = np.arange(height * width)
    return (
        np.stack([count % 256, count // 256 % 256, count // 65536], axis=-1)
        .astype(np.uint8)
        .reshape(height, width, 3)
    )


# Salt and pepper


def test_salt_and_pepper_changes_exactly_its_share_of_the_pixels():
    # 0.25 x 64 = 16 pixels, every channel alike; the others stay.
    image = uniform(128, 8, 8)
    made = salt_and_pepper(image, 0.25, rng())
    changed = (made != image).any(axis=-1)
    assert changed.sum() == 16
    assert {tuple(each) for each in made[changed].tolist()} == {(0, 0, 0), (255, 255, 255)}
    # Halves go to the even number: 0.5 of 5 pixels are 2, of 7 are 4.
    assert [(salt_and_pepper(uniform(9, 1, width), 0.5, rng()) != 9).all(axis=-1).sum() for width in (5, 7)] == [2, 4]


def test_salt_and_pepper_with_no_share_and_with_all():
    image = numbered(8, 8)
    np.testing.assert_array_equal(salt_and_pepper(image, 0.0, rng()), image)
    made = salt_and_pepper(image, 1.0, rng())
    assert np.isin(made, [0, 255]).all()
    assert (made == made[..., :1]).all()


def test_salt_and_pepper_prefers_no_place_and_no_colour():
    # Of 4000 draws, each of 64 pixels is hit 1000 times (variance 4000 x 3/16), half of them white.
    hits, white = np.zeros((8, 8)), 0
    source = rng(1)
    for _ in range(4000):
        made = salt_and_pepper(uniform(7, 8, 8), 0.25, source)[..., 0]
        hits += made != 7
        white += int((made == 255).sum())
    assert np.abs(hits - 1000).max() <= SIGMAS * math.sqrt(4000 * 0.25 * 0.75)
    assert abs(white - 32000) <= SIGMAS * math.sqrt(64000 / 4)


# Additive signal-dependent noise

LEVELS = [(5, 0.5, 0.5, 100), (5, 0.5, 0.7, 100), (5, 1.5, 0.5, 128), (15, 0.5, 0.5, 128), (5, 2.5, 0.5, 100)]
"""The rows of table IV, each at a grey level four standard deviations or more from black and white."""


@pytest.mark.parametrize(("constant", "signal", "exponent", "level"), LEVELS)
def test_noise_has_its_mean_and_variance(constant, signal, exponent, level):
    # Variance P^(2 psi) zeta_u^2 + zeta_w^2, and 1/12 from rounding. Standard errors for n normal numbers: of the
    # mean sd / sqrt n, of the second to the fourth moment var sqrt(2/n), sd^3 sqrt(15/n) and var^2 sqrt(96/n).
    noise = additive_noise(uniform(level), constant, signal, exponent, rng(2)).astype(float) - level
    variance = level ** (2 * exponent) * signal**2 + constant**2 + 1 / 12
    count, deviation = noise.size, math.sqrt(variance)
    assert abs(noise.mean()) <= SIGMAS * deviation / math.sqrt(count)
    assert abs((noise**2).mean() - variance) <= SIGMAS * variance * math.sqrt(2 / count)
    assert abs((noise**3).mean()) <= SIGMAS * deviation**3 * math.sqrt(15 / count)
    assert abs((noise**4).mean() - 3 * variance**2) <= SIGMAS * variance**2 * math.sqrt(96 / count)


def test_noise_is_normal():
    # The share of noise up to each whole level, against the distribution function half a level further.
    noise = additive_noise(uniform(128), 15, 0, 0, rng(3)).astype(float) - 128
    for bound in range(-45, 46, 5):
        share = 0.5 * (1 + math.erf((bound + 0.5) / (15 * math.sqrt(2))))
        assert abs((noise <= bound).mean() - share) <= SIGMAS * math.sqrt(share * (1 - share) / noise.size)


def test_noise_is_independent_between_channels_and_pixels():
    # A correlation of independent numbers has the standard error 1 / sqrt n; squares show other dependence.
    noise = additive_noise(uniform(128), 15, 0, 0, rng(4)).astype(float) - 128
    halves = np.split(noise.ravel(), 2)
    pairs = [(noise[..., 0], noise[..., 1]), (noise[..., 1], noise[..., 2]), tuple(halves)]
    pairs += [(noise[:, 1:], noise[:, :-1]), (noise[1:], noise[:-1]), (noise[64:], noise[:-64])]
    for one, other in pairs:
        for power in (1, 2):
            correlation = np.corrcoef(one.ravel() ** power, other.ravel() ** power)[0, 1]
            assert abs(correlation) <= SIGMAS / math.sqrt(one.size)


def test_noise_repeats_at_no_distance():
    # Correlations of the noise with itself at all 300,000 distances, and of its squares: normal with a standard error
    # of 1 / sqrt n, of which the largest of so many stays below 7.
    noise = additive_noise(uniform(128), 15, 0, 0, rng(9)).astype(float).ravel()
    for power in (1, 2):
        values = (noise - 128) ** power
        values -= values.mean()
        spectrum = np.abs(np.fft.rfft(values)) ** 2
        correlations = np.fft.irfft(spectrum, len(values))
        assert np.abs(correlations[1:]).max() / correlations[0] <= 7 / math.sqrt(len(values))


def test_noise_on_black_comes_from_the_constant_term_only():
    # 0^psi = 0 for psi > 0, and 1 for psi = 0.
    black = uniform(0)
    np.testing.assert_array_equal(additive_noise(black, 0, 50, 0.5, rng()), black)
    # Normal noise around 0, cut off at 0: rounded to 0 up to 0.5; 1 + erf(0.5 / (9 sqrt 2)), by 2, is 0.52215.
    for made in (additive_noise(black, 9, 50, 0.5, rng(5)), additive_noise(black, 0, 9, 0, rng(6))):
        assert abs((made == 0).mean() - 0.52215) <= SIGMAS * 0.5 / math.sqrt(made.size)


def test_noise_beyond_white_is_cut_off():
    # 250 + noise of 10 at least 254.5: 1 - Phi(0.45) = 0.32636.
    made = additive_noise(uniform(250), 10, 0, 1, rng(7))
    assert abs((made == 255).mean() - 0.32636) <= SIGMAS * 0.47 / math.sqrt(made.size)


def test_no_noise_is_the_identity():
    image = numbered(70, 9)
    np.testing.assert_array_equal(additive_noise(image, 0, 0, 0.5, rng()), image)


# Shifted lines


def test_lines_are_turned_round_by_whole_pixels():
    # Half of 8 lines: 4, each by 1..3 pixels to one side; what leaves comes in on the other side.
    image = numbered(8, 8)
    made = shifted_lines(image, 0.5, 3, rng())
    steps = []
    for line, before in zip(made, image, strict=True):
        fits = [step for step in range(-3, 4) if np.array_equal(line, np.roll(before, step, axis=0))]
        assert len(fits) == 1
        steps += fits
    assert sum(step != 0 for step in steps) == 4


def test_a_line_of_two_pixels_changes_places_with_itself():
    image = np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8)
    assert shifted_lines(image, 1.0, 1, rng()).tolist() == [[[4, 5, 6], [1, 2, 3]]]
    np.testing.assert_array_equal(shifted_lines(image, 0.0, 1, rng()), image)


def test_every_step_is_as_likely_as_the_others():
    # 6000 lines, steps -3, -2, -1, 1, 2, 3: 1000 each (variance 6000 x 5/36). Column 0 then shows -step mod 8.
    image = np.tile(np.arange(8, dtype=np.uint8)[:, np.newaxis], (6000, 1, 3))
    shown = np.bincount(shifted_lines(image, 1.0, 3, rng(8))[:, 0, 0], minlength=8)
    assert shown[[0, 4]].tolist() == [0, 0]
    assert np.abs(shown[[1, 2, 3, 5, 6, 7]] - 1000).max() <= SIGMAS * math.sqrt(6000 * 5 / 36)


# All of them

DRAWN = {
    "salt": lambda image, source: salt_and_pepper(image, 0.2, source),
    "noise": lambda image, source: additive_noise(image, 5, 0.5, 0.5, source),
    "lines": lambda image, source: shifted_lines(image, 0.5, 2, source),
}


@pytest.mark.parametrize("name", DRAWN)
@given(seed=st.integers(0, 2**63), height=st.integers(1, 140))
def test_equal_generators_give_equal_images(name, seed, height):
    image = numbered(height, 5)
    before = image.copy()
    made = DRAWN[name](image, rng(seed))
    np.testing.assert_array_equal(made, DRAWN[name](image, rng(seed)))
    np.testing.assert_array_equal(made, DRAWN[name](np.asfortranarray(image), rng(seed)))
    np.testing.assert_array_equal(image, before)
    assert not np.shares_memory(made, image)


@pytest.mark.parametrize("name", DRAWN)
def test_another_seed_gives_another_image_and_so_does_the_same_generator_again(name):
    image = uniform(100, 40, 40) if name != "lines" else numbered(40, 40)
    source = rng(1)
    first = DRAWN[name](image, source)
    assert (first != DRAWN[name](image, rng(2))).any()
    assert (first != DRAWN[name](image, source)).any()


def test_steps_wider_than_the_image_are_refused():
    with pytest.raises(ValueError, match="below the width 8, got 8"):
        shifted_lines(uniform(1, 8, 8), 0.5, 8, rng())
