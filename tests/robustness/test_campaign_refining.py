"""Sweeps of campaigns: brackets in which requirements break, and levels between, by hand."""

from types import SimpleNamespace

import pytest
from made_campaign import FILE, write_streets

from verifier.base.errors import ExitCode
from verifier.cli import main
from verifier.robustness.campaign.result import RequirementRow, breaks, further, sweeps
from verifier.robustness.mutators.batch_result import folder_name
from verifier.robustness.mutators.sweeps import parse_sweep, published


def named(*texts):
    return {folder_name(each): each for text in texts for each in parse_sweep(text)}


def of(mutations, **rows):
    """A campaign of one detector, and its requirement P >= 0.9 by condition: P and what is said of it."""
    words = {"+": "satisfied, if items are independent", "-": "violated", "?": "inconclusive"}
    checked = {
        ("net", name.replace("__", ".")): (
            RequirementRow("r", "p", "P >= 0.9", value, None, words[sign], value - 0.9),
        )
        for name, (value, sign) in rows.items()
    }
    return SimpleNamespace(mutations=mutations, detectors={"net": None}), checked


def test_sweeps_begin_with_the_baseline_and_know_what_grows_worse():
    found = sweeps(named("gaussian_blur:sigma_px=3,1", "haze:visibility_m=98,978", "channel_dropout:channel=R,G"))
    assert [(each.mutation, each.scale, list(each.conditions.values())) for each in found] == [
        ("gaussian_blur", "linear", ["baseline", "gaussian_blur-sigma_px_1", "gaussian_blur-sigma_px_3"]),
        ("haze", "reciprocal", ["baseline", "haze-visibility_m_978", "haze-visibility_m_98"]),
    ]
    (first, second) = sweeps(named("defocus:kappa_m_px=2,focus_m=1", "defocus:kappa_m_px=3,focus_m=2"))
    assert (dict(first.others), dict(second.others)) == ({"focus_m": 1}, {"focus_m": 2})


def test_what_grows_worse_on_both_sides_has_two_sweeps():
    found = sweeps(named("brightness:factor=0.5,3,0.9,2"))
    assert [list(each.conditions) for each in found] == [[1, 2, 3], [1, 0.9, 0.5]]


def test_where_no_level_does_nothing_levels_are_halved_between_those_measured():
    quality = named("jpeg:quality=10,60,20")
    (found,) = sweeps(quality)
    names = ("baseline", "jpeg-quality_60", "jpeg-quality_20", "jpeg-quality_10")
    assert tuple(found.conditions.values()) == names
    assert sweeps(named("jpeg:quality=10", "additive_noise:constant_sd=5,signal_sd=1,exponent=0.5")) == []
    values = ((1, "+"), (0.95, "+"), (0.5, "-"), (0.4, "-"))
    campaign, checked = of(quality, **dict(zip(names, values, strict=True)))
    assert list(further(campaign, checked, 2)) == [
        "jpeg-quality_10",
        "jpeg-quality_60",
        "jpeg-quality_40",
        "jpeg-quality_20",
    ]
    campaign, checked = of(quality, **dict(zip(names, ((1, "?"), (0.95, "?"), (0.5, "-"), (0.4, "-")), strict=True)))
    assert "jpeg-quality_40" in further(campaign, checked, 1)
    campaign, checked = of(quality, **dict(zip(names, ((1, "+"), (0.5, "-"), (0.5, "-"), (0.4, "-")), strict=True)))
    (row,) = breaks(campaign, checked)
    assert (row.holds_at, row.fails_at, row.can_narrow) == ("baseline", "jpeg-quality_60", False)
    assert further(campaign, checked, 2) == quality


def test_levels_are_whole_where_a_mutation_takes_no_others():
    blocks = named("pixelation:block_px=6")
    campaign, checked = of(blocks, **{"baseline": (1, "+"), "pixelation-block_px_6": (0.5, "-")})
    assert list(further(campaign, checked, 1)) == ["pixelation-block_px_4", "pixelation-block_px_6"]


def test_every_list_of_the_papers_has_sweeps():
    for name in ("published-2021", "published-2018"):
        found = sweeps({folder_name(each): each for each in published(name)})
        assert {each.mutation for each in found} >= {"gaussian_blur", "alpha_blend", "haze", "defocus"}
        assert all(next(iter(each.conditions.values())) == "baseline" for each in found)


HAZY = named("haze:visibility_m=1000,100")


def test_a_break_is_between_two_measured_conditions():
    campaign, checked = of(HAZY, baseline=(1, "+"), **{"haze-visibility_m_1000": (0.95, "+"),
                                                       "haze-visibility_m_100": (0.4, "-")})  # fmt: skip
    (row,) = breaks(campaign, checked)
    assert (row.holds_at, row.fails_at) == ("haze-visibility_m_1000", "haze-visibility_m_100")
    assert (row.sure_until, row.sure_at, row.can_narrow) == ("haze-visibility_m_1000", "haze-visibility_m_100", True)
    # Halfway between 1/1000 and 1/100 lies 1/181.8: between its neighbours, and no more where no more are asked for.
    assert list(further(campaign, checked, 3)) == [
        "haze-visibility_m_1000", "haze-visibility_m_181.8", "haze-visibility_m_100",
    ]  # fmt: skip
    assert further(campaign, checked, 0) == HAZY


def test_a_break_before_the_first_level_is_narrowed_from_the_baseline_on():
    campaign, checked = of(HAZY, baseline=(1, "+"), **{"haze-visibility_m_1000": (0.5, "-"),
                                                       "haze-visibility_m_100": (0.4, "-")})  # fmt: skip
    (row,) = breaks(campaign, checked)
    assert (row.holds_at, row.fails_at) == ("baseline", "haze-visibility_m_1000")
    assert next(iter(further(campaign, checked, 1))) == "haze-visibility_m_2000"


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (((1, "?"), (0.95, "?"), (0.4, "?")), ("haze-visibility_m_1000", "haze-visibility_m_100", None, None, False)),
        (((1, "+"), (0.95, "+"), (0.91, "+")), ("haze-visibility_m_100", None, "haze-visibility_m_100", None, False)),
        (((0.8, "-"), (0.95, "?"), (0.4, "-")), (None, "baseline", None, "baseline", False)),
    ],
)
def test_nothing_is_added_where_the_data_say_no_more(rows, told):
    names = ("baseline", "haze-visibility_m_1000", "haze-visibility_m_100")
    campaign, checked = of(HAZY, **dict(zip(names, rows, strict=True)))
    (row,) = breaks(campaign, checked)
    assert (row.holds_at, row.fails_at, row.sure_until, row.sure_at, row.can_narrow) == told
    assert further(campaign, checked, 5) == HAZY


def test_requirements_without_a_target_and_campaigns_without_a_run_have_no_breaks():
    campaign, checked = of(HAZY, **dict.fromkeys(("baseline", *HAZY), (0.5, "?")))
    none = {key: (RequirementRow("r", "p", "P = ?", 0.5, None, "no target"),) for key in checked}
    assert list(breaks(campaign, none)) == []
    assert further(campaign, none, 5) == HAZY
    assert list(breaks(campaign, {})) == []


def test_refining_needs_requirements_and_a_sweep(tmp_path, capsys):
    write_streets(tmp_path, 1)
    without_run = FILE.replace('[run]\nspec = "car.ltl"\n', "")
    without_sweep = FILE.replace("haze:visibility_m=978,97.8", "channel_dropout:channel=R,G")
    for text in (without_run, without_sweep):
        (tmp_path / "campaign.toml").write_text(text)
        assert main(["campaign", str(tmp_path / "campaign.toml"), "--refine", "2"]) == ExitCode.USAGE
        assert "--refine adds levels of a sweep where a requirement breaks" in capsys.readouterr().err
