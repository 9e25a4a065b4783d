"""Results of this program, made by it once, to be told in reports."""

import atexit
import contextlib
import io
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

from PIL import Image

from verifier.base.documents import InputFile
from verifier.base.files import document_text
from verifier.cli import main
from verifier.evidence.consistency import read_document
from verifier.evidence.documents import Document
from verifier.robustness.campaign.result import BreakRow, CampaignDocument, CampaignRow, Magnitudes, RequirementRow

ROOT = Path(__file__).resolve().parent.parent.parent
SPEC = str(ROOT / "specs/car_pedestrian.ltl")
BY_CLASS = str(ROOT / "examples/nuscenes_yolov3_class.json")
BY_SET = str(ROOT / "examples/nuscenes_yolov3_proposition.json")
DRAWS = ("--draws", "400")
CURVES = {
    "schema": "verifier.curves",
    "version": 1,
    "title": "two detectors",
    "curves": [
        {"detector": name, "condition": condition, "sensitivity": [0, 1], "safety": [low, 1], "efficiency": [1, 0.5]}
        for name, low in (("a", 0.5), ("b", 0.25))
        for condition in ("baseline", "fog")
    ],
}

BOXES = [
    {"id": 7 + image, "image_id": image, "category_id": 1, "bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 0}
    for image in range(4)
]
IMAGES = [{"id": image, "file_name": f"{image}.png", "width": 200, "height": 20} for image in range(10)]
DETECTED = {
    "truth": {"images": IMAGES, "categories": [{"id": 1, "name": "ped"}], "annotations": BOXES},
    **{
        name: [
            {"image_id": image, "category_id": 1, "bbox": [50 * lane, 0, 10, 10], "score": score - less}
            for image, lane, score in ((0, 0, 0.9), (1, 0, 0.7), (2, 0, 0.4), (5, 3, 0.8), (6, 3, 0.6), (0, 3, 0.5))
        ]
        for name, less in (("clear", 0), ("dark", 0.25))
    },
}
CAMPAIGN = CampaignDocument(
    title="a street",
    inputs=(InputFile("campaign", "street.toml", 64 * "0"),),
    settings={"seed": 0},
    versions={"numpy": "2"},
    remarks=("every image is a log of its own",),
    detectors={"net": {"detector": "onnx"}},
    campaign=tuple(
        CampaignRow(
            *("net", condition, mutation, severity, 4, 9, 0.5, (0.25, 0.75), recall, (0.1, 1.0), rate, (0.1, 0.9)),
            normalised=rate / 0.5,
            area={"roc_a": area},
            robustness={"roc_a": area / 0.5},
            collision=risk,
            collision_interval=(0.0, 0.9),
            requirements=(RequirementRow("stops", "feedback", "P >= 0.9", p, (p - 0.1, 1.0), verdict, p - 0.9),),
        )
        for condition, mutation, severity, recall, rate, area, risk, p, verdict in (
            ("baseline", "", "", 0.75, 0.5, 0.5, 0.125, 1.0, "satisfied"),
            ("haze-visibility_m_97.8", "haze:visibility_m=97.8", "severe", 0.5, 0.25, 0.25, 0.5, 0.5, "violated"),
        )
    ),
    magnitudes=(Magnitudes("haze-visibility_m_97.8", "alpha", (0.0, 0.5), (0.25, 0.75), 80),),
    breaks=(
        BreakRow(
            *("net", "stops", "feedback", "haze", "visibility_m", "baseline", "haze-visibility_m_97.8", "baseline"),
            *("haze-visibility_m_97.8", False, True),
        ),
    ),
    not_defined={"closed_loop": "there is no positive log"},
)

CASE = """
[exposure.every]
encounters = 240
hours = 20
[condition.measured]
matrices = "by_class.json"
share = [0.97, 1]
source = "Fleet log L, 2026"
[condition.snow]
share = [0, 0.03]
[unknown]
classified = 300
left_over = 1
[hazard.H1]
event = "stops_for_pedestrians"
severity = "S3"
source = "HARA 3.2"
uncontrolled = { between = [0.3, 0.5], level = 0.99, source = "Track tests" }
severe = [0.1, 0.2]
accept_harm_per_hour = 0.8
[trigger.night]
text = "Street without lamps"
part = "sense"
source = "Analysis 4.2"
effect = "Pedestrians are missed"
matrices = "by_class.json"
[trigger.fog]
text = "Visibility below 50 m"
[trigger.snow]
text = "Snow on the lens"
excluded_by = "Lens monitor"
"""


@cache
def folder() -> Path:
    """A folder with one result of every command, under the names that `document` takes."""
    place = Path(tempfile.mkdtemp(prefix="reports"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    (place / "curves.json").write_text(json.dumps(CURVES))
    Image.new("RGB", (16, 12), (90, 120, 150)).save(place / "a.png")
    pairs = "".join(f"{k // 2},{k % 40 + 1},{k % 40 + 1 + (k * 7 % 5 - 2) / 4}\n" for k in range(160))
    (place / "pairs.csv").write_text("image,true_m,predicted_m\n" + pairs)
    shutil.copy(BY_CLASS, place / "by_class.json")
    (place / "case.toml").write_text(CASE)
    (place / "campaign.json").write_text(document_text(CAMPAIGN))
    for name, content in DETECTED.items():
        (place / f"{name}.json").write_text(json.dumps(content))
    commands = {
        "run": ["run", SPEC, "--cm", BY_CLASS, *DRAWS],
        "sweep": ["run", SPEC, "--cm", BY_CLASS, "--sweep", "vmax=1..3", "--point-only"],
        "explain": ["explain", SPEC, "--cm", BY_CLASS, *DRAWS],
        "explain_fast": ["explain", SPEC, "--cm", BY_CLASS, "--planner", "feedback", "--set", "vmax=3", *DRAWS],
        "require": ["require", SPEC, "--cm", BY_CLASS, "--requirement", "stops_for_pedestrians", "--floor"],
        "compare": ["compare", SPEC, "--cm", f"one={BY_CLASS}", "--cm", f"two={BY_SET}", "--env", "ped", *DRAWS],
        "collision": ["collision", str(place / "pairs.csv"), "--bootstrap", "5", "--distances", "2..42:4"],
        "robroc": ["robroc", str(place / "curves.json")],
        "rate": [
            *("evidence", "rate", str(place / "run.json"), "--requirement", "stops_for_pedestrians"),
            *("--encounters", "240", "--hours", "20", "--accept", "1e-7/h"),
        ],
        "risk": ["evidence", "risk", str(place / "case.toml"), str(place / "run.json")],
        "triggers": ["evidence", "triggers", *(str(place / name) for name in ("case.toml", "run.json")), BY_CLASS],
        "adr": [
            *("adr", "--annotations", str(place / "truth.json"), "--detections", f"a={place / 'clear.json'}"),
            *("--detections", f"a@fog={place / 'dark.json'}", "--draws", "100"),
        ],
        "assess": ["assess", str(ROOT / "examples/12_robustness_assessment.toml")],
    }
    with contextlib.redirect_stdout(io.StringIO()):
        blur = "gaussian_blur:sigma_px=2"
        assert main(["mutate", str(place / "a.png"), "--mutation", blur, "-o", str(place / "mutated")]) == 0
    (place / "mutated" / "mutate.json").rename(place / "mutate.json")
    for name, words in commands.items():
        with contextlib.redirect_stdout(io.StringIO()):
            code = main([*words, "--output", str(place / f"{name}.json")])
        assert code in (0, 1, 3), name
    return place


def path(name: str) -> str:
    """The file of one of the results, or of the matrices "by_class" and "by_set"."""
    return {"by_class": BY_CLASS, "by_set": BY_SET}.get(name) or str(folder() / f"{name}.json")


@cache
def document(name: str) -> Document:
    """One of the results, read."""
    return read_document(path(name))


def documents(*names: str) -> list[Document]:
    """Several of them."""
    return [document(name) for name in names]


EVERY_KIND = (
    "run", "sweep", "explain", "explain_fast", "require", "compare", "collision", "robroc", "curves", "rate", "risk",
    "triggers", "mutate", "assess", "adr", "campaign", "by_class", "by_set",
)  # fmt: skip
