"""Assessment files (TOML): one table per system under `systems`.

    [systems.mds]
    title = "Medical Diagnosis System"
    occurrence = "independent"                     # or "exclusive"
    metrics = ["AP", "precision", "recall"]        # those the verdict is over
    samples = { use = "use.csv", source = "source.csv" }     # image, circumstance: for frequencies not stated below
    tolerance_scaling = "significance"             # or "stated": by the tolerance_scale of circumstances alone

    [[systems.mds.circumstances]]
    name = "salt and pepper"
    frequency = 0.1                                # or probability = 0.1
    source_frequency = 0
    exposure = 2
    likelihood = 3
    severity = 4
    transformation = { mutation = "salt_and_pepper", share = { low = 0.01, high = 0.05 } }

    [systems.mds.distances.cw_ssim]
    tolerance = [{ up_to = 0.25, constant = 0.01 }, { slope = 1 }]

    [systems.mds.distances.fid]
    measure = "frechet"
    extractor = "torchvision:inception_v3"         # of images; without one, 'features' of the data sets are read

    [systems.mds.source]
    performance = { AP = 0.34, precision = 0.564, recall = 0.51 }

    [[systems.mds.targets]]
    name = "all circumstances"
    performance = { AP = 0.246, precision = 0.498, recall = 0.384 }
    distances = { cw_ssim = 0.154 }                # or similarities = { cw_ssim = 0.846 }

A detector that is run here (`data_reader`), on source images with annotations and depth, and follow-up images
that are made (`verify assess --make`), stand in place of numbers:

    [systems.mds.source]
    images = "images"
    annotations = { format = "coco", file = "truth.json" }   # or "kitti_object", "table"
    depth = { folder = "depth", densify = "linear" }         # or { constant_m = 30 }; for haze and defocus
    [systems.mds.follow_up]
    size = 500

Reading executes nothing. A complaint names the file, the line and the dotted key.
"""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypeVar, get_args

from verifier.base.toml import Element, read_toml
from verifier.robustness.assessment.circumstances import Circumstance, Risk, Scaling
from verifier.robustness.assessment.data_reader import read_source, read_sweep, read_target
from verifier.robustness.assessment.definition import Assessment, DataSet, FollowUp
from verifier.robustness.assessment.degradation_reader import read_degradation, read_transformation
from verifier.robustness.assessment.measures import MEASURES, DistanceRule, Piece, Tolerance
from verifier.robustness.assessment.plan import MOST_IMAGES, OCCURRENCES, PROPORTIONS
from verifier.robustness.campaign.data_reader import keys_of, read_detector

Made = TypeVar("Made")

SYSTEM_KEYS = (*keys_of(Assessment, "key", "rules"), "distances")
RISK_KEYS = keys_of(Risk)
CIRCUMSTANCE_KEYS = (
    *keys_of(Circumstance, "measure", "risk", "counted", "source_counted"), "probability", *RISK_KEYS
)  # fmt: skip


@dataclass(frozen=True)
class AssessmentFile:
    """What a file holds, its name as given and the SHA-256 of its bytes."""

    name: str
    sha256: str
    title: str
    assessments: tuple[Assessment, ...]


def read_assessment(path: str | Path) -> AssessmentFile:
    """Read an assessment file.

    Raises:
        InputError: naming the file, the line and the dotted key of the first thing that is wrong.
    """
    top = read_toml(path)
    top.table(("title", "systems"), required=("systems",))
    systems = list(top.at("systems").entries())
    if not systems:
        raise top.at("systems").fail("expected at least one system")
    title = top.given("title", Element.string, Path(path).stem)
    return AssessmentFile(str(path), top.sha256, title, tuple(_assessment(key, each) for key, each in systems))


def _assessment(key: str, found: Element) -> Assessment:
    found.table(SYSTEM_KEYS)
    rules = {name: _rule(name, each) for name, each in found.table_at("distances")}
    circumstances = tuple(_circumstance(each) for each in found.list_at("circumstances"))
    _refuse_twice(found.list_at("circumstances"))
    names = tuple(each.name for each in circumstances)
    source = found.given("source", read_source, DataSet("source"))
    detector = found.given("detector", read_detector, None)
    if detector is not None and source.files.annotations is None:
        raise found.at("detector").fail("a detector that is run needs the 'annotations' of the source images")
    if detector is not None and (source.performance is not None or source.detections is not None):
        raise found.at("detector").fail("expected either the performance on the source, or a detector to measure it")
    targets = tuple(read_target(each, rules, names) for each in found.list_at("targets"))
    _refuse_twice(found.list_at("targets"))
    sweeps = tuple(read_sweep(each, rules, names) for each in found.list_at("sweeps"))
    metrics = tuple(each.string() for each in found.list_at("metrics"))
    if not metrics and source.performance is not None:
        metrics = tuple(source.performance.values)
    perspectives = {
        name: tuple(each.string() for each in view.items(least=1)) for name, view in found.table_at("perspectives")
    }
    return found.made(
        lambda: Assessment(
            key,
            found.given("title", Element.string, key),
            found.given("citation", Element.string, ""),
            found.given("viewpoint", Element.string, ""),
            perspectives,
            found.given("occurrence", Element.one_of, "independent", OCCURRENCES),
            circumstances,
            metrics,
            rules,
            source,
            targets,
            sweeps,
            found.given("follow_up", _follow_up, None),
            found.given("degradation", read_degradation, None),
            detector,
            found.given("samples", _samples, {}),
            found.given("tolerance_scaling", Element.one_of, "stated", get_args(Scaling)),
        ),
    )


def _samples(found: Element) -> dict[str, str]:
    found.table(("use", "source"))
    return {name: each.string() for name, each in found.entries()}


def _circumstance(found: Element) -> Circumstance:
    found.table(CIRCUMSTANCE_KEYS, required=("name",))
    if found.has("probability") and found.has("frequency"):
        raise found.at("frequency").fail("expected either 'probability' or 'frequency', not both")
    stated = "probability" if found.has("probability") else "frequency"
    factors = [key for key in RISK_KEYS if found.has(key)]
    if factors and len(factors) < 3:
        raise found.fail("expected all of exposure, likelihood and severity, or none")
    scale = found.at("tolerance_scale") if found.has("tolerance_scale") else None
    if scale is not None and scale.number() <= 0:
        raise scale.fail(f"expected a number above 0, got {scale.value}")
    return Circumstance(
        name=found.at("name").string(),
        description=found.given("description", Element.string, ""),
        measure="probability" if stated == "probability" else "relative frequency",
        frequency=found.given(stated, Element.number, None, 0, 1),
        source_frequency=found.given("source_frequency", Element.number, None, 0, 1),
        risk=Risk(*(found.at(key).whole(1, 5) for key in factors)) if factors else None,
        transformation=found.given("transformation", read_transformation, None),
        tolerance_scale=Fraction(1) if scale is None else scale.number(),
        part_of=tuple(each.string() for each in found.list_at("part_of")),
    )


def _rule(name: str, found: Element) -> DistanceRule:
    found.table(("measure", "tolerance", "level", "extractor"))
    if not found.has("measure") and name not in MEASURES:
        raise found.fail("missing key 'measure'", f"one of {', '.join(MEASURES)}")
    measure = found.given("measure", Element.one_of, name, MEASURES)
    tolerance = found.given("tolerance", _tolerance, None)
    if found.has("level") and measure != "cw_ssim":
        raise found.at("level").fail("'level' goes with cw_ssim")
    level = found.given("level", Element.whole, DistanceRule.level, 1, 12)
    extractor = found.given("extractor", Element.string, None)
    return found.made(lambda: DistanceRule(name, measure, tolerance, level, extractor))


def _tolerance(found: Element) -> Tolerance:
    if not isinstance(found.value, list):
        constant = found.number(0)
        return Tolerance((Piece(Fraction(0), constant),))
    pieces = []
    for each in found.items(least=1):
        each.table(("slope", "constant", "up_to"))
        if not each.has("slope") and not each.has("constant"):
            raise each.fail("expected 'slope', 'constant' or both")
        slope, constant = (each.given(key, Element.number, Fraction(0)) for key in ("slope", "constant"))
        pieces.append(Piece(slope, constant, each.given("up_to", Element.number, None, 0)))
    return found.made(lambda: Tolerance(tuple(pieces)))


def _follow_up(found: Element) -> FollowUp:
    found.table(keys_of(FollowUp))
    return FollowUp(
        found.given("proportions", Element.one_of, "target", PROPORTIONS),
        found.given("size", Element.whole, None, 1, MOST_IMAGES),
        found.given("seed", Element.whole, 0, 0, 2**63 - 1),
    )


def _refuse_twice(named: list[Element]) -> None:
    names = [each.at("name").value for each in named]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise named[number].at("name").fail(f"the name '{name}' is taken")
