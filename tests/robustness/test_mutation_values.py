"""Mutations as values: text and document, published lists, sweeps, and what happens when one is applied."""

import csv
import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import InputError, LimitError, UsageError
from verifier.robustness.mutators import MUTATORS, Composition, Frame, Mutation, apply, needs_depth
from verifier.robustness.mutators.mutation import generator_for, is_random, mutation_of
from verifier.robustness.mutators.sweeps import PUBLISHED, parse_mutation, parse_sweep, published

EXAMPLES = [
    "gaussian_blur:sigma_px=1.5",
    "brightness:factor=1.33",
    "contrast:factor=0.5,about=100",
    "alpha_blend:alpha=0.25",
    "jpeg:quality=20",
    "salt_and_pepper:share=0.05",
    "channel_dropout:channel=Cb",
    "additive_noise:constant_sd=5,signal_sd=0.5,exponent=0.7",
    "haze:visibility_m=97.8",
    "defocus:kappa_m_px=2.8,focus_m=1",
    "motion_blur:length_px=5,angle_deg=30",
    "pixelation:block_px=3",
    "rotation:angle_deg=-20",
    "truncation:left=0.25",
    "shifted_lines:share=0.2,most_px=3",
    "chromatic_aberration:expansion=0.01,sigma_px=1",
    "rain:rate_mm_h=50",
    "snow:visibility_m=100",
    "night:light=0.1",
    "low_light:light=0.1",
]


def frame(height=8, width=8):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (height, width, 3), np.uint8)
    return Frame(pixels, rng.uniform(3, 60, (height, width)), np.array([[1.0, 2, 5, 7], [0, 0, 8, 8]]))


@st.composite
def mutations(draw):
    """Any mutator with any values that it allows."""
    mutator = MUTATORS[draw(st.sampled_from(sorted(MUTATORS)))]
    chosen = draw(st.sampled_from(mutator.either)) if mutator.either else None
    values = {}
    for each in mutator.parameters:
        if (each.name in mutator.either and each.name != chosen) or (
            each.name != chosen and (each.optional or each.default is not None) and draw(st.booleans())
        ):
            continue
        if each.choices:
            values[each.name] = draw(st.sampled_from(each.choices))
        elif each.whole:
            values[each.name] = draw(st.integers(int(each.low), int(each.high)))
        else:
            low, high = (None if math.isinf(bound) else bound for bound in (each.low, each.high))
            values[each.name] = draw(
                st.floats(low, high, allow_nan=False, allow_infinity=False, exclude_min=each.above)
            )
    return Mutation(mutator.name, values)


# Text


@given(mutations(), mutations())
def test_different_mutations_have_different_names(one, other):
    assert (one == other) == (one.text == other.text)
    assert (one == other) == (one.slug == other.slug)
    assert not set(one.slug) & set('/\\:*?"<>| ,=')


def test_texts_by_hand():
    blur = Mutation("gaussian_blur", {"sigma_px": 2})
    assert blur.parameters["sigma_px"] == 2.0
    assert (blur.text, blur.slug) == ("gaussian_blur:sigma_px=2", "gaussian_blur-sigma_px_2")
    haze = Mutation("haze", {"visibility_m": 97.8, "red": 205, "blue": 0})
    assert haze.text == "haze:visibility_m=97.8,blue=0"  # 205 is the default
    assert haze.document() == {
        "name": "haze",
        "parameters": {"visibility_m": 97.8, "red": 205, "green": 208, "blue": 0},
    }
    assert Mutation("truncation", {}).text == "truncation"
    assert parse_mutation(" truncation ") == Mutation("truncation", {})
    assert parse_mutation("haze:visibility_m = 97.8, blue = 0") == haze
    both = parse_mutation("jpeg:quality=20+rotation:angle_deg=-5")
    assert isinstance(both, Composition)
    assert [step.name for step in both.steps] == ["jpeg", "rotation"]
    assert both.text == "jpeg:quality=20+rotation:angle_deg=-5"
    assert parse_mutation("rotation:angle_deg=1e+1") == Mutation("rotation", {"angle_deg": 10})


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_are_their_own_text(text):
    assert parse_mutation(text).text == text


def test_every_mutator_has_an_example():
    assert [text.partition(":")[0] for text in EXAMPLES] == list(MUTATORS)


@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("blur", {}, "unknown mutation 'blur'"),
        (["jpeg"], {}, "unknown mutation"),
        ("jpeg", {}, "jpeg: quality is missing, a whole number from 1 to 95"),
        ("jpeg", {"quality": 20.5}, "quality: expected a whole number from 1 to 95, got 20.5"),
        ("jpeg", {"quality": True}, "expected a whole number"),
        ("jpeg", {"quality": "20"}, "expected a whole number"),
        ("jpeg", {"quality": 20, "colour": 1}, "unknown parameter of jpeg 'colour'"),
        ("gaussian_blur", {"sigma_px": math.nan}, "sigma_px: expected a number from 0 to 500, got nan"),
        ("gaussian_blur", {"sigma_px": -1}, "expected a number from 0"),
        ("brightness", {"factor": 10**400}, "expected a number from 0 to 1000"),
        ("rotation", {"angle_deg": math.inf}, "angle_deg: expected a number, got inf"),
        ("channel_dropout", {"channel": "Y"}, "expected one of R, G, B, Cb, Cr"),
        ("haze", {}, "give one of visibility_m, beta_per_m"),
        ("haze", {"visibility_m": 100, "beta_per_m": 0.04}, "give one of visibility_m, beta_per_m"),
        ("haze", {"visibility_m": 0}, "expected a number above 0"),
        ("defocus", {"kappa_m_px": 2, "focus_m": 1e6}, "expected a number above 0 to 100000"),
        ("alpha_blend", {"alpha": 0.5, "green": 256}, "green: expected a whole number from 0 to 255"),
    ],
)
def test_values_that_are_no_mutation(name, parameters, said):
    with pytest.raises(ValueError, match=said):
        Mutation(name, parameters)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("gaussian_blur:sigma_px=1", {"sigma_px": [500.5]}),
        ("brightness:factor=1", {"factor": [-0.1, 1001]}),
        ("contrast:factor=1", {"factor": [-0.1], "about": [-1, 300]}),
        ("alpha_blend:alpha=0", {"alpha": [-0.1, 1.1], "red": [-1, 1.5, 256]}),
        ("jpeg:quality=20", {"quality": [0, 96]}),
        ("salt_and_pepper:share=0", {"share": [-0.1, 1.1]}),
        ("additive_noise:constant_sd=0,signal_sd=0,exponent=0", {"constant_sd": [-1], "signal_sd": [-1]}),
        ("additive_noise:constant_sd=0,signal_sd=0,exponent=0", {"exponent": [-1, 4.5]}),
        ("haze:beta_per_m=0", {"beta_per_m": [-0.1]}),
        ("defocus:kappa_m_px=2,focus_m=1", {"kappa_m_px": [-1], "focus_m": [0]}),
        ("motion_blur:length_px=3", {"length_px": [-1, 501], "angle_deg": []}),
        ("pixelation:block_px=2", {"block_px": [0, 2.5, 257]}),
        ("rotation:angle_deg=3", {"angle_deg": []}),
        ("truncation", {"left": [-0.1], "top": [1.1], "right": [-0.1], "bottom": [1.1]}),
        ("shifted_lines:share=0,most_px=1", {"share": [2], "most_px": [0, 1.5]}),
        ("chromatic_aberration:expansion=0", {"expansion": [-0.1, 1.1], "sigma_px": [-1, 501]}),
        ("rain:rate_mm_h=1", {"rate_mm_h": [-1], "exposure_ms": [0], "focal_px": [0]}),
        ("snow:visibility_m=99", {"visibility_m": [0], "flake_mm": [0], "exposure_ms": [0], "focal_px": [0]}),
        ("night:light=0", {"light": [-0.1, 2], "gain": [-1], "full_well_e": [0], "read_sd_e": [-1]}),
        ("low_light:light=1", {"light": [0, 2], "full_well_e": [0], "read_sd_e": [-1]}),
    ],
)
def test_values_that_no_image_can_have(text, values):
    given_ = parse_mutation(text)
    for name, bad in values.items():
        for value in (*bad, math.nan, math.inf, -math.inf):
            with pytest.raises(ValueError, match=f"{name}: expected"):
                Mutation(given_.name, {**given_.parameters, name: value})


# Sweeps


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (
            "haze:visibility_m=978,326,97.8",
            ["haze:visibility_m=978", "haze:visibility_m=326", "haze:visibility_m=97.8"],
        ),
        ("jpeg:quality=10..12", ["jpeg:quality=10", "jpeg:quality=11", "jpeg:quality=12"]),
        ("jpeg:quality=10..30/3", ["jpeg:quality=10", "jpeg:quality=20", "jpeg:quality=30"]),
        ("rotation:angle_deg=-20..20/3", ["rotation:angle_deg=-20", "rotation:angle_deg=0", "rotation:angle_deg=20"]),
        (
            "defocus:kappa_m_px=2,2.8,focus_m=1,2",
            [f"defocus:kappa_m_px={kappa},focus_m={focus}" for kappa in ("2", "2.8") for focus in ("1", "2")],
        ),
        (
            "gaussian_blur:sigma_px=1,2+jpeg:quality=20,40",
            [f"gaussian_blur:sigma_px={sigma}+jpeg:quality={quality}" for sigma in (1, 2) for quality in (20, 40)],
        ),
        ("channel_dropout:channel=R,Cb", ["channel_dropout:channel=R", "channel_dropout:channel=Cb"]),
        ("brightness:factor=2,2.0,2", ["brightness:factor=2"]),
        ("rotation:angle_deg=5 + jpeg:quality=20", ["rotation:angle_deg=5+jpeg:quality=20"]),
    ],
)
def test_sweeps_by_hand(text, made):
    assert [each.text for each in parse_sweep(text)] == made


def test_a_range_in_logarithms():
    found = [each.parameters["visibility_m"] for each in parse_sweep("haze:visibility_m=10..1000/3/log")]
    np.testing.assert_allclose(found, [10, 100, 1000], rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "unknown mutation"),
        ("blur:sigma_px=1", "unknown mutation 'blur'"),
        ("gaussian_blur:sigma=1", "did you mean 'sigma_px'"),
        ("gaussian_blur", "sigma_px is missing"),
        ("gaussian_blur:", "sigma_px is missing"),
        ("gaussian_blur:3", "expected NAME:PARAMETER=VALUE"),
        ("gaussian_blur:3", "parameters of gaussian_blur: sigma_px"),
        ("gaussian_blur:sigma_px=", "expected NAME:PARAMETER=VALUE"),
        ("gaussian_blur:sigma_px=1,sigma_px=2", "given twice"),
        ("gaussian_blur:sigma_px=wide", "expected a number from 0 to 500, got 'wide'"),
        ("gaussian_blur:sigma_px=nan", "got 'nan'"),
        ("gaussian_blur:sigma_px=-1", "got -1"),
        ("gaussian_blur:sigma_px=0.5..2", "say how many"),
        ("gaussian_blur:sigma_px=2..1/3", "from less to more"),
        ("gaussian_blur:sigma_px=0..1/1", "two values or more"),
        ("gaussian_blur:sigma_px=0..1/5/log", "positive ends"),
        ("gaussian_blur:sigma_px=1e999..2/3", "got '1e999..2/3'"),
        ("brightness:factor=" + "9" * 400, "got '999"),
        ("channel_dropout:channel=Y", "one of R, G, B, Cb, Cr"),
        ("jpeg:quality=20+", "expected a whole number"),
        ("jpeg:quality=20+blur:sigma_px=1", "unknown mutation 'blur'"),
    ],
)
def test_texts_that_are_no_mutation(text, said):
    with pytest.raises(UsageError) as caught:
        parse_sweep(text)
    assert said in str(caught.value)


def test_a_sweep_is_not_one_mutation_and_may_not_be_endless():
    with pytest.raises(UsageError, match="this is a sweep"):
        parse_mutation("jpeg:quality=20,40")
    for text in (
        "rotation:angle_deg=0..100000000",
        "rotation:angle_deg=0..1/100000",
        "jpeg:quality=1..95+" * 2 + "jpeg:quality=1..95",
    ):
        with pytest.raises(LimitError, match="at most 10000"):
            parse_sweep(text)


@given(
    st.sampled_from(["", *MUTATORS]),
    st.text(alphabet=st.sampled_from("0123456789.,=:+-/_ eglnoqruty%\u0663\x00"), max_size=30),
)
def test_no_text_leads_to_another_error(name, text):
    for whole in (name + text, f"{name}:{text}", f"{name}:quality={text}", f"rotation:angle_deg={text}"):
        try:
            found = parse_sweep(whole)
        except (UsageError, LimitError):
            continue
        assert all(parse_mutation(each.text) == each for each in found)


# Published lists


def test_the_22_mutations_of_2021_with_their_groups(shared):
    names = {
        "sigma_px": "sigma_px",
        "alpha": "alpha",
        "u_f_m": "focus_m",
        "kappa": "kappa_m_px",
        "u_V_m": "visibility_m",
    }
    found = []
    with (shared / "reference" / "000_mutations.csv").open() as lines:
        for row in csv.DictReader(lines):
            given_ = dict(each.split("=") for each in row["params"].split(";"))
            values = {names[key]: float(value) for key, value in given_.items() if key in names}
            if "channel" in given_:
                values["channel"] = given_["channel"]
            found.append((Mutation(row["family"], values), row["group"]))
    ours = [(each.mutation, each.group) for each in PUBLISHED["published-2021"]]
    assert len(ours) == 22
    assert set(ours) == set(found)
    assert Counter(group for _, group in ours) == {"severe": 12, "mild": 10}


def test_groups_by_hand():
    assert [each.text for each in published("published-2021", "mild")] == [
        "gaussian_blur:sigma_px=1.5",
        "gaussian_blur:sigma_px=2",
        "alpha_blend:alpha=0.1",
        "alpha_blend:alpha=0.25",
        "haze:visibility_m=978",
        "haze:visibility_m=326",
        "defocus:kappa_m_px=2,focus_m=2",
        "defocus:kappa_m_px=2,focus_m=5",
        "defocus:kappa_m_px=2.8,focus_m=2",
        "defocus:kappa_m_px=2.8,focus_m=5",
    ]
    any_, mild, severe = (published("published-2021", group) for group in ("any", "mild", "severe"))
    assert set(any_) == set(mild) | set(severe)
    assert not set(mild) & set(severe)


@pytest.mark.parametrize(("name", "part"), [("published-2018", "table4"), ("published-2018-text", "section_lists")])
def test_the_lists_of_2018(shared, name, part):
    wanted = json.loads((shared / "reference" / "001_mutator_params.json").read_text())[part]
    listed = {
        "gaussian_blur": ("sigma_px", wanted["gaussian_blur"]["sigma_px"]),
        "brightness": ("factor", wanted["brightness"]["b"]),
        "alpha_blend": ("alpha", wanted["alpha_blend"]["alpha"]),
        "jpeg": ("quality", wanted["jpeg"]["quality"]),
        "salt_and_pepper": ("share", wanted[{"table4": "salt_pepper"}.get(part, "salt_pepper")]["fraction"]),
        "haze": ("visibility_m", wanted["haze"]["u_V_m"]),
        "channel_dropout": ("channel", ["R", "G", "B", "Cb", "Cr"]),
    }
    expected = [Mutation(mutator, {key: value}) for mutator, (key, values) in listed.items() for value in values]
    expected += [
        Mutation("defocus", {"kappa_m_px": kappa, "focus_m": focus})
        for kappa in wanted["defocus"]["kappa_m_px"]
        for focus in wanted["defocus"]["u_f_m"]
    ]
    if part == "table4":
        expected += [
            Mutation(
                "additive_noise", {"constant_sd": row["zeta_w"], "signal_sd": row["zeta_u"], "exponent": row["psi"]}
            )
            for row in wanted["additive_noise"]
        ]
    assert sorted(each.text for each in published(name)) == sorted(each.text for each in expected)


def test_lists_that_there_are_not():
    for name, group in (("published-2020", "any"), ("published-2021", "worst"), ("published-2018", "mild")):
        with pytest.raises(ValueError, match=r"expected a (list|group)|has no groups"):
            published(name, group)


# Applied


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_mutator_gives_a_frame_and_leaves_the_one_it_got(text):
    whole, mutation = frame(), parse_mutation(text)
    before = whole.pixels.copy()
    rng = np.random.default_rng(1)
    made = apply(mutation, whole, rng)
    np.testing.assert_array_equal(whole.pixels, before)
    assert made.pixels.dtype == np.uint8
    assert (made.pixels.shape != before.shape) or (made.pixels != before).any()
    assert made.depth_m.shape == made.size
    assert len(made.boxes) == len(made.kept)
    again = apply(mutation, whole, np.random.default_rng(1))
    np.testing.assert_array_equal(made.pixels, again.pixels)
    assert (rng.bit_generator.state == np.random.default_rng(1).bit_generator.state) != is_random(mutation)


@pytest.mark.parametrize(
    "text",
    [
        *("gaussian_blur:sigma_px=0", "brightness:factor=1", "contrast:factor=1", "alpha_blend:alpha=0"),
        *("salt_and_pepper:share=0", "additive_noise:constant_sd=0,signal_sd=0,exponent=1", "haze:beta_per_m=0"),
        *("defocus:kappa_m_px=0,focus_m=1", "motion_blur:length_px=0", "pixelation:block_px=1"),
        *("rotation:angle_deg=0", "rotation:angle_deg=360", "truncation"),
        *("shifted_lines:share=0,most_px=2", "chromatic_aberration:expansion=0"),
    ],
)
def test_parameters_that_change_nothing(text):
    whole = frame(70, 9)
    made = apply(parse_mutation(text), whole, np.random.default_rng(0))
    for name in ("pixels", "boxes", "depth_m", "kept"):
        np.testing.assert_array_equal(getattr(made, name), getattr(whole, name))


@given(st.lists(st.sampled_from(EXAMPLES), min_size=1, max_size=4), st.integers(0, 99))
def test_a_composition_is_its_steps_in_order(texts, seed):
    whole = frame(12, 12)
    steps = tuple(parse_mutation(text) for text in texts)
    together, one_by_one = np.random.default_rng(seed), np.random.default_rng(seed)
    made, after = apply(Composition(steps), whole, together), whole
    for step in steps:
        after = apply(step, after, one_by_one)
    for name in ("pixels", "boxes", "depth_m", "kept"):
        np.testing.assert_array_equal(getattr(made, name), getattr(after, name))


def test_the_order_of_steps_matters_and_each_rounds():
    # 101 x 0.5 = 50.5, to even 50, x 2 = 100; but 202 x 0.5 = 101. 200 x 2 is cut off at 255, x 0.5 = 127.5, to 128.
    image = Frame(np.array([[[101, 200, 40]]], np.uint8))
    down_up = parse_mutation("brightness:factor=0.5+brightness:factor=2")
    up_down = parse_mutation("brightness:factor=2+brightness:factor=0.5")
    assert apply(down_up, image).pixels.tolist() == [[[100, 200, 40]]]
    assert apply(up_down, image).pixels.tolist() == [[[101, 128, 40]]]


def test_haze_by_visibility_is_haze_by_its_coefficient():
    one, other = (apply(parse_mutation(f"haze:{each}"), frame()) for each in ("visibility_m=97.8", "beta_per_m=0.04"))
    np.testing.assert_array_equal(one.pixels, other.pixels)


def test_what_a_mutation_needs():
    assert {name for name in MUTATORS if MUTATORS[name].needs_depth} == {"haze", "defocus", "rain", "snow"}
    assert {name for name in MUTATORS if MUTATORS[name].random} == {
        "salt_and_pepper",
        "additive_noise",
        "shifted_lines",
        *("rain", "snow", "night", "low_light"),
    }
    both = parse_mutation("haze:visibility_m=100+salt_and_pepper:share=0.1")
    assert needs_depth(both)
    assert is_random(both)
    with pytest.raises(InputError, match="haze needs the depth of every pixel"):
        apply(both, Frame(frame().pixels), np.random.default_rng(0))
    with pytest.raises(ValueError, match="pass a generator"):
        apply(both, frame())


def test_the_generator_of_an_image_depends_on_seed_name_and_mutation_only():
    mutation, other = parse_mutation("salt_and_pepper:share=0.1"), parse_mutation("salt_and_pepper:share=0.2")
    first = generator_for(3, "000001.png", mutation).random(4).tolist()
    assert generator_for(3, "000001.png", mutation).random(4).tolist() == first
    for different in (generator_for(4, "000001.png", mutation), generator_for(3, "2.png", mutation)):
        assert different.random(4).tolist() != first
    assert generator_for(3, "000001.png", other).random(4).tolist() != first
    with pytest.raises(ValueError, match="non-negative"):
        generator_for(-1, "000001.png", mutation)


@given(st.lists(mutations(), min_size=1, max_size=4))
def test_text_and_document_give_the_same_mutation_back(steps):
    mutation = steps[0] if len(steps) == 1 else Composition(tuple(steps))
    assert parse_mutation(mutation.text) == mutation
    assert hash(parse_mutation(mutation.text)) == hash(mutation)
    assert mutation_of(json.loads(json.dumps(mutation.document()))) == mutation


@pytest.mark.parametrize(
    "document",
    [
        *(7, [], "jpeg", {}, {1: 2}),
        *({"name": "jpeg"}, {"name": "jpeg", "parameters": 3}, {"name": 3, "parameters": {}}),
        *({"steps": []}, {"steps": [7]}, {"steps": 7}, {"steps": [], "name": "jpeg"}),
        {"name": "jpeg", "parameters": {"quality": 20}, "more": 1},
    ],
)
def test_documents_that_are_no_mutation(document):
    with pytest.raises(ValueError, match=r"expected|unknown|needs a step"):
        mutation_of(document)
