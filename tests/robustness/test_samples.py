"""Frequencies counted in a labelled sample, significance that tightens the tolerance, FID by a library's network."""

import json
from fractions import Fraction
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
from PIL import Image
from scipy.stats import binom
from typed_documents import read_back

from verifier.base.errors import ExitCode, UsageError
from verifier.cli import main
from verifier.robustness.assessment import samples
from verifier.robustness.assessment.circumstances import Circumstance, Counted, Risk
from verifier.robustness.assessment.feature_distances import frechet
from verifier.robustness.assessment.measures import DistanceRule, Tolerance

TEXT = """\
[systems.car]
metrics = ["recall"]
samples = { use = "use.csv", source = "source.csv" }
circumstances = [
    { name = "fog", exposure = 2, likelihood = 3, severity = 5 },
    { name = "sun", frequency = 0.5 },
    { name = "night", exposure = 5, likelihood = 5, severity = 5 },
    { name = "hail" },
]
distances = { other = { measure = "other", tolerance = 0.1 } }
[systems.car.source]
performance = { recall = 0.9 }
[[systems.car.targets]]
name = "foggy"
circumstances = ["fog"]
performance = { recall = 0.82 }
distances = { other = 0.2 }
"""


@pytest.fixture
def study(tmp_path):
    """Nine images in use, of which one is listed twice; four source images, none in fog."""
    use = "a,fog\na,night\nb,\nc,fog\nc,fog\nd,sun\ne,night\nf,night\ng,\nh,night\ni,fog\n"
    (tmp_path / "use.csv").write_text("image,circumstance\n" + use)
    (tmp_path / "source.csv").write_text("image;circumstance\n1;sun\n2;sun\n2;night\n3;\n4;\n")
    (tmp_path / "a.toml").write_text(TEXT)
    return tmp_path


def assessed(folder, capfd, *words):
    code = main(["assess", str(folder / "a.toml"), "--output", str(folder / "a.json"), *words])
    printed = capfd.readouterr()
    document = json.loads((folder / "a.json").read_text()) if code in (0, 1, 3) else None
    if document is not None:
        read_back(document)
    return code, printed, document


def test_frequencies_are_counted_per_image_with_exact_intervals(study, capfd):
    _, printed, document = assessed(study, capfd, "--markdown", str(study / "a.md"))
    found = {each["name"]: each for each in document["systems"][0]["circumstances"]}
    # c is in fog twice and counts once; a shows two circumstances and counts for both.
    counts = {
        name: (each["counted"]["shown"], each["counted"]["images"]) for name, each in found.items() if name != "sun"
    }
    assert counts == {"fog": (3, 9), "night": (4, 9), "hail": (0, 9)}
    assert {name: each["source_frequency"] for name, each in found.items()} == {
        "fog": 0, "sun": 0.5, "night": 0.25, "hail": 0,
    }  # fmt: skip
    assert (found["sun"]["frequency"], found["sun"].get("counted")) == (0.5, None)  # what is stated stays
    for each in found.values():
        for key in ("counted", "source_counted"):
            if key in each and each[key] is not None:
                shown, images, (low, high) = each[key]["shown"], each[key]["images"], each[key]["interval"]
                assert shown == 0 or binom.sf(shown - 1, images, low) == pytest.approx(0.025)
                assert shown == images or binom.cdf(shown, images, high) == pytest.approx(0.025)
    assert "0.333 (3 of 9, [0.0748, 0.7010])" in (study / "a.md").read_text().replace("\\", "")
    assert "exact 95 % intervals for images drawn independently (not tested); drawn from only 4 images" in printed.out
    roles = {each["role"] for each in document["inputs"]}
    assert {"sample of use", "sample of source"} <= roles


@pytest.mark.parametrize(
    ("sample", "complaint"),
    [
        ("image,circumstance\na,fog\nb,fgo\n", "use.csv:3: unknown circumstance 'fgo'"),
        ("image,circumstance\n", "no image in the sample"),
        ("image,weather\na,fog\n", "circumstance"),
        ("image,circumstance\n,fog\n", "use.csv:2"),
        (None, "use.csv"),
    ],
)
def test_samples_that_are_none(study, capfd, sample, complaint):
    (study / "use.csv").unlink() if sample is None else (study / "use.csv").write_text(sample)
    code, printed, _ = assessed(study, capfd)
    assert code == ExitCode.BAD_INPUT
    assert complaint in printed.err
    assert "Traceback" not in printed.err


def test_frequencies_of_exclusive_circumstances_that_exceed_one_are_refused(study, capfd):
    (study / "a.toml").write_text(
        TEXT.replace('metrics = ["recall"]', 'metrics = ["recall"]\noccurrence = "exclusive"')
    )
    code, printed, _ = assessed(study, capfd)
    assert (code, "car: " in printed.err) == (ExitCode.USAGE, True)


def test_significance_tightens_the_tolerance_by_itself(study, capfd):
    """Fog has 2 x 3 x 5 = 30: epsilon = .1 x 96 / 125 = .0768, and recall fell by .08, which .1 allows."""
    code, printed, plain = assessed(study, capfd)
    assert (code, plain["verdict"]) == (ExitCode.SATISFIED, "satisfied")
    assert 'with tolerance_scaling = "significance" it tightens epsilon' in printed.out
    (study / "a.toml").write_text(TEXT.replace("metrics", 'tolerance_scaling = "significance"\nmetrics'))
    code, printed, tight = assessed(study, capfd)
    assert code == ExitCode.VIOLATED
    (outcome,) = tight["systems"][0]["targets"][0]["outcomes"]
    assert (outcome["scale"], outcome["tolerance"]) == (pytest.approx(96 / 125), pytest.approx(0.0768))
    assert "it tightens epsilon" not in printed.out


def test_the_scale_falls_evenly_and_multiplies_what_is_stated():
    scales = [Circumstance("a", risk=Risk(1, 1, at)).scale("significance") for at in range(1, 6)]
    assert scales == [Fraction(126 - at, 125) for at in range(1, 6)]
    most = Circumstance("a", risk=Risk(5, 5, 5), tolerance_scale=Fraction(1, 2))
    assert (most.scale("significance"), most.scale("stated")) == (Fraction(1, 250), Fraction(1, 2))
    assert Circumstance("a").scale("significance") == 1  # nobody assessed it
    assert Counted(0, 10).interval[0] == 0


def test_the_chart_of_exposure_likelihood_and_severity(study, capfd):
    pytest.importorskip("matplotlib")
    from verifier import assess
    from verifier.telling.figures.robustness import assess_figure

    figure = assess_figure(assess(study / "a.toml"))
    chart = figure.axes[0]
    texts = {each.get_text(): each.xy for each in chart.texts}
    assert texts == {"fog (30)": (2, 5), "night (125)": (5, 5)}
    assert chart.get_xlabel() == "exposure"
    assert [each.get_text() for each in chart.get_legend().get_texts()] == [
        "1 Rare", "2 Unlikely", "3 Possible", "4 Likely", "5 Certain",
    ]  # fmt: skip


# --- FID ----------------------------------------------------------------------------------------------------------


class Tensor:
    """As much of a tensor as is asked for."""

    def __init__(self, values):
        self.values = values

    def permute(self, *axes):
        return Tensor(self.values.transpose(axes))

    def __getitem__(self, key):
        return Tensor(self.values[key])

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


class NoGrad:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


@pytest.fixture
def torchvision(monkeypatch):
    """The calls of torchvision 0.17 that are made, with a network whose features are the means of the channels."""
    asked = []

    def weights(name):
        if name != "inception_v3":
            raise ValueError(f"Unknown model {name}")
        return SimpleNamespace(DEFAULT=SimpleNamespace(transforms=lambda: lambda pixels: Tensor(pixels.values / 255)))

    def extractor(network, nodes, suppress_diff_warning):
        asked.append((network, nodes))
        return lambda batch: {"features": Tensor(batch.values.mean(axis=(2, 3)))}

    modules = {
        "torch": SimpleNamespace(from_numpy=Tensor, no_grad=NoGrad),
        "torchvision.models": SimpleNamespace(
            get_model_weights=weights, get_model=lambda name, weights: SimpleNamespace(eval=lambda: (name, weights))
        ),
        "torchvision.models.feature_extraction": SimpleNamespace(create_feature_extractor=extractor),
    }
    monkeypatch.setattr(samples, "library", modules.__getitem__)
    return asked


def pictures(folder, seed):
    rng, means = np.random.default_rng(seed), []
    folder.mkdir()
    for number in range(6):
        pixels = rng.integers(0, 256, (9, 7, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
        means.append(pixels.mean(axis=(0, 1)) / 255)
    return np.array(means)


FID = """\
[systems.car]
distances = { fid = { measure = "frechet", extractor = "torchvision:inception_v3", tolerance = 0.1 } }
source = { images = "clear", performance = { recall = 0.9 } }
targets = [{ name = "hazy", images = "hazy", performance = { recall = 0.85 } }]
"""


def test_fid_is_the_frechet_distance_of_the_features_of_a_named_network(tmp_path, capfd, torchvision):
    clear, hazy = (pictures(tmp_path / name, seed) for seed, name in enumerate(("clear", "hazy")))
    (tmp_path / "a.toml").write_text(FID)
    code, printed, document = assessed(tmp_path, capfd)
    assert code == ExitCode.SATISFIED
    (target,) = document["systems"][0]["targets"]
    assert target["distances"]["fid"]["distance"] == pytest.approx(frechet(clear, hazy))
    assert document["systems"][0]["rules"][0]["extractor"] == "torchvision:inception_v3"
    assert "fid (features by torchvision:inception_v3)" in printed.out
    assert [nodes for _, nodes in torchvision] == [{"flatten": "features"}] * 2


def test_extractors_that_are_none(tmp_path, capfd, torchvision):
    pictures(tmp_path / "clear", 0), pictures(tmp_path / "hazy", 1)
    (tmp_path / "a.toml").write_text(FID.replace("inception_v3", "inceptoin"))
    code, printed, _ = assessed(tmp_path, capfd)
    assert (code, "extractor torchvision:inceptoin: Unknown model inceptoin" in printed.err) == (ExitCode.USAGE, True)
    for old, new, complaint in (
        ("torchvision:", "timm:", "expected an extractor as torchvision:inception_v3"),
        ('"frechet"', '"ssim"', "'extractor' goes with frechet"),
    ):
        (tmp_path / "a.toml").write_text(FID.replace(old, new, 1))
        code, printed, _ = assessed(tmp_path, capfd)
        assert (code, complaint in printed.err) == (ExitCode.BAD_INPUT, True)
    with pytest.raises(ValueError, match="expected an extractor"):
        DistanceRule("fid", "frechet", Tolerance, extractor="torchvision:a b")


def test_without_the_library_the_extra_is_named(tmp_path):
    try:
        import torchvision  # noqa: F401
    except ImportError:
        with pytest.raises(UsageError, match=r"this needs the library torch.*\n.*\[features\]"):
            samples.extracted("torchvision:inception_v3", [])


def test_weights_that_cannot_be_loaded_are_told_with_where_they_belong(torchvision, monkeypatch):
    def fails(name, weights):
        raise URLError("no such host")

    models = samples.library("torchvision.models")
    models.get_model_weights = lambda name: SimpleNamespace(DEFAULT=SimpleNamespace(url="https://host/net.pth"))
    models.get_model = fails
    with pytest.raises(UsageError, match=r"cannot be loaded: .*no such host.*\n.*host/net.pth into .*TORCH_HOME"):
        samples.extracted("torchvision:inception_v3", [])


@pytest.mark.slow
def test_the_real_extractor_gives_what_the_last_layer_classifies_by(tmp_path, monkeypatch):
    """With drawn weights, as the published ones must be downloaded: the pass of a network without its last layer."""
    torch, torchvision = (pytest.importorskip(name) for name in ("torch", "torchvision"))
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    file = tmp_path / "checkpoints/inception_v3_google-0cc3c7bd.pth"
    file.parent.mkdir()
    file.write_text("junk")
    with pytest.raises(UsageError, match="its weights cannot be loaded"):
        samples.extracted("torchvision:inception_v3", [])
    torch.manual_seed(0)
    network = torchvision.models.inception_v3(weights=None, init_weights=False)
    torch.save(network.state_dict(), file)
    pictures(tmp_path / "clear", 0)
    paths = sorted((tmp_path / "clear").iterdir())[:2]
    found = samples.extracted("torchvision:inception_v3", paths)
    assert found.shape == (2, 2048)
    network.fc, network.transform_input = torch.nn.Identity(), True  # the published weights ask for it
    normal = torchvision.transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    rows = []
    for path in paths:
        whole = torch.from_numpy(np.array(Image.open(path), np.float32)).permute(2, 0, 1)[None]
        sides = {"size": tuple(342 * side // 7 for side in (9, 7)), "mode": "bilinear", "antialias": True}
        large = torch.nn.functional.interpolate(whole, **sides).round().clip(0, 255)
        top, left = ((side - 299) // 2 for side in large.shape[2:])
        crop = large[:, :, top : top + 299, left : left + 299]
        with torch.no_grad():
            rows.append(network.eval()(normal(crop / 255))[0].numpy())
    assert found == pytest.approx(np.array(rows), rel=2e-2, abs=2e-3 * np.abs(found).max())
