"""Rain, snow, night and low light: against the formulas of their sources, by hand, and as laws of light."""

import math

import numpy as np
import pytest

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")
from verifier.base.errors import LimitError
from verifier.robustness.mutators import MUTATORS, Frame, apply, needs_depth, weather
from verifier.robustness.mutators.sweeps import PUBLISHED, parse_mutation
from verifier.robustness.mutators.weather import (
    FAR_M,
    NEAR_M,
    Particles,
    _Air,
    hidden,
    levels_of,
    linear,
    night,
    rain,
    rain_extinction_per_m,
    snow,
)

WEATHER = ("rain:rate_mm_h=30", "snow:visibility_m=300", "night:light=0.1,gain=2", "low_light:light=0.02")


def rng(seed=0):
    return np.random.default_rng(seed)


def grey(level, height=40, width=60):
    return np.full((height, width, 3), level, np.uint8)


def one(distance_m, diameter_m, speed_mps, x, y):
    return Particles(*(np.array([each], float) for each in (distance_m, diameter_m, speed_mps, x, y)))


def test_they_are_in_no_list_of_a_paper():
    names = {text.partition(":")[0] for text in WEATHER}
    assert names <= MUTATORS.keys()
    assert not any(each.mutation.name in names for listed in PUBLISHED.values() for each in listed)


def test_light_of_levels_by_the_standard():
    # IEC 61966-2-1: level 10 is on the straight piece, 10 / 255 / 12.92; 188 is near half of the light.
    assert math.isclose(linear(np.array([10], np.uint8))[0], 10 / 255 / 12.92)
    assert round(float(linear(np.array([188], np.uint8))[0]), 4) == 0.5029
    every = np.arange(256, dtype=np.uint8)
    assert levels_of(linear(every)).tolist() == every.tolist()


def test_extinction_of_rain():
    # 0.312 x 25^0.67 = 0.312 x 8.6421 = 2.6963 per km; at 1 mm/h 0.312.
    assert round(1000 * rain_extinction_per_m(1), 6) == 0.312
    assert round(1000 * rain_extinction_per_m(25), 3) == 2.696


def test_a_drop_by_hand():
    # f = 100, z = 1, D = 0.02 m: 2 px wide; 0.1 s at 1 m/s: 10 px more, 12 px long; share pi 2 / (4 12) = 0.1309.
    share = 1 - np.exp(hidden((30, 9), 100, 0.1, one(1, 0.02, 1, 4, 15)))
    assert np.argwhere(share > 0).min(axis=0).tolist() == [9, 3]
    assert np.argwhere(share > 0).max(axis=0).tolist() == [20, 4]
    assert np.allclose(share[9:21, 3:5], math.pi * 2 / 48)
    # Between pixels: the same cover, spread.
    moved = 1 - np.exp(hidden((30, 9), 100, 0.1, one(1, 0.02, 1, 4.25, 15.5)))
    assert np.allclose(moved[12, 3:6], math.pi * 2 / 48 * np.array([0.75, 1, 0.25]))


@pytest.mark.parametrize("exposure_s", [1e-4, 0.01, 0.1])
@pytest.mark.parametrize("diameter_m", [1e-3, 5e-3, 0.04])
def test_a_streak_covers_the_area_of_its_drop_whatever_the_exposure(exposure_s, diameter_m):
    share = 1 - np.exp(hidden((200, 40), 300, exposure_s, one(3, diameter_m, 6, 20.3, 100.7)))
    assert math.isclose(share.sum(), math.pi / 4 * (300 * diameter_m / 3) ** 2, rel_tol=1e-9)


@pytest.mark.parametrize("at_once", [1, 50, 10**6])
def test_streaks_are_drawn_in_parts_and_where_the_image_is(monkeypatch, at_once):
    random = rng(8)
    distance_m, x, y = random.uniform(0.5, 9, 60), random.uniform(-30, 60, 60), random.uniform(-30, 60, 60)
    drops = Particles(distance_m, np.full(60, 0.02), np.full(60, 4.0), x, y)
    monkeypatch.setattr(weather, "AT_ONCE", at_once)
    made = hidden((30, 40), 300, 0.02, drops)
    wanted = np.zeros((30, 40))
    for k in range(60):  # by plain loops over a larger field
        wide = 300 * 0.02 / distance_m[k]
        long = wide + 300 * 4 * 0.02 / distance_m[k]
        for row in range(30):
            down = min(row + 1, y[k] + long / 2) - max(row, y[k] - long / 2)
            for column in range(40):
                across = min(column + 1, x[k] + wide / 2) - max(column, x[k] - wide / 2)
                wanted[row, column] += math.log1p(-max(across, 0) * max(down, 0) * math.pi * wide / (4 * long))
    assert np.allclose(made, wanted, atol=1e-12)
    assert (made < 0).any()


def test_what_is_nearer_hides_a_drop_and_two_drops_hide_in_turn():
    drop = one(3, 0.05, 6, 10, 50)
    depth = np.full((100, 20), 5.0)
    depth[:50] = 2
    log = hidden((100, 20), 300, 0.01, drop, depth)
    assert not log[:50].any()
    assert log[50:].any()
    both = Particles(*(np.repeat(getattr(drop, name), 2) for name in Particles.__dataclass_fields__))
    assert np.allclose(hidden((100, 20), 300, 0.01, both, depth), 2 * log)  # the shares multiply


def test_flakes_take_away_the_light_that_the_visibility_says():
    # As much as half the extinction (the other half is bent past them) on the way from NEAR_M to FAR_M: the mean
    # share of area that flakes cover, whatever the camera. 3.912 / 50 / 2 x 9.5 = 0.3716 of one layer.
    per_m3 = 3.912 / 50 / (2 * math.pi / 4 * 0.004**2)
    for focal_px in (200, 700):
        air = _Air((60, 80), focal_px, 0.01)
        count, (distance_m, x, y) = air.places(per_m3, 1.0, rng(focal_px))
        flakes = Particles(distance_m, np.full(count, 0.004), np.ones(count), x, y)
        cover = -hidden((60, 80), focal_px, 0.01, flakes).mean()
        wanted = 3.912 / 50 / 2 * (FAR_M - NEAR_M)
        assert wanted < cover < 1.25 * wanted  # -log(1 - s) is a little above s


def test_drops_follow_marshall_and_palmer():
    # The mean of (1 + e)^2 mm^2 with exponential e of mean 1 / L is 1 + 2 / L + 2 / L^2; pi / 4 of that times the
    # number of drops per m^3 and the way is the mean cover, here of 25 mm/h: L = 4.1 x 25^-0.21 = 2.0856 per mm.
    slope = 4.1 * 25**-0.21
    per_m3 = 8000 / slope * math.exp(-slope)
    wanted = per_m3 * math.pi / 4 * (1 + 2 / slope + 2 / slope**2) * 1e-6 * (FAR_M - NEAR_M)
    # Dark before black air with light drops: the light that comes in is the cover times that of the drops.
    image = rain(grey(0, 200, 300), np.full((200, 300), 11.0), 25, 8, rng(3), 300, (255, 255, 255))
    veil = 1 - math.exp(-rain_extinction_per_m(25) * 11)
    light = linear(image).mean()
    assert abs(light - (veil + (0.94 - veil) * wanted)) < 0.25 * 0.94 * wanted
    assert wanted > 0.003


@pytest.mark.parametrize("text", WEATHER[:2])
def test_air_brings_every_pixel_nearer_to_its_colour_and_never_past_it(text):
    image = rng(1).integers(0, 256, (50, 70, 3), np.uint8)
    depth = rng(2).uniform(2, 200, (50, 70))
    made = apply(parse_mutation(f"{text},red=120,green=120,blue=120"), Frame(image, depth), rng(5)).pixels
    low, high = np.minimum(image, levels_of(0.94 * linear(np.uint8(120)))), np.maximum(image, 120)
    assert ((made >= low) & (made <= high)).all()
    assert (made != image).any()


def test_far_away_there_is_only_air_and_none_is_no_rain():
    depth = np.full((40, 60), 1e5)
    assert (snow(grey(9), depth, 100, 4, 8, rng(), None, (50, 60, 70)) == (50, 60, 70)).all()
    assert np.array_equal(rain(grey(9), depth, 0, 8, rng()), grey(9))


def test_veil_of_snow_by_hand():
    # 30 m at 300 m visibility: T = exp(-0.3912) = 0.6762. Black before white air: light of 0.3238, and
    # 255 (1.055 x 0.3238^(1/2.4) - 0.055) = 255 x 0.6045 = 154.1; flakes only add.
    made = snow(grey(0, 300, 400), np.full((300, 400), 30.0), 300, 4, 8, rng(), None, (255, 255, 255))
    assert np.bincount(made.ravel()).argmax() == made.min() == 154


@pytest.mark.parametrize("text", WEATHER)
def test_equal_generators_give_equal_images_and_others_others(text):
    mutation = parse_mutation(text)
    frame = Frame(rng(7).integers(0, 256, (30, 40, 3), np.uint8), np.full((30, 40), 20.0))
    first, second, third = (apply(mutation, frame, rng(seed)).pixels for seed in (1, 1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, third)
    assert needs_depth(mutation) == text.startswith(("rain", "snow"))


def test_low_light_keeps_the_mean_and_has_the_variance_of_its_electrons():
    # Linear light x = 0.2159 (level 128), 100 electrons of white are left: variance x / 100 + 5^2 / 100^2 = 0.00466.
    image = grey(128, 200, 300)
    made = linear(
        apply(parse_mutation("low_light:light=0.01,full_well_e=10000,read_sd_e=5"), Frame(image), rng()).pixels
    )
    x = float(linear(np.uint8(128)))
    assert abs(made.mean() - x) < 0.001
    assert abs(made.var() / (x / 100 + 25 / 100**2) - 1) < 0.02


def test_night_is_the_share_of_light_and_gain_brings_it_back():
    image = grey(200, 100, 100)
    x = float(linear(np.uint8(200)))
    dark = linear(night(image, 0.1, 1, 1e6, 0, rng()))
    assert abs(dark.mean() - 0.1 * x) < 0.002
    assert np.array_equal(night(image, 1, 1, 1e9, 0, rng()), image)
    assert abs(linear(night(image, 0.1, 5, 1e6, 0, rng())).mean() - 0.5 * x) < 0.003


def test_too_many_flakes_are_an_error():
    with pytest.raises(LimitError, match="drops or flakes before the camera; at most 5000000"):
        snow(grey(1), np.full((40, 60), 20.0), 1, 0.1, 8, rng())
