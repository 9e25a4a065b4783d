"""The commands of `verify`: what each is called, its settings, and the function that runs it."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from verifier.base.options import add_options, settings_of
from verifier.closedloop.settings import ClosedLoopSettings, RobrocSettings
from verifier.collision.settings import CollisionSettings
from verifier.evidence.settings import RateSettings, ReportSettings
from verifier.perception.settings import CountSettings, MergeSettings
from verifier.robustness.settings import AssessSettings, MutateSettings

CONFUSION = """\
Count what a detector reports against what is there, by distance, and write the confusion matrices.

  verify confusion --format kitti_tracking --annotations label_02 --detections results -o results.json
  verify confusion merge first.json second.json -o both.json
"""
COLLISION = """\
How likely is a collision, given the distance a detector reports and the speed? Maps with intervals for one detector;
comparison, ranking and combination for several; and the same braking policy as a verified closed loop.

  verify collision PAIRS.csv --plot map.png
  verify collision --format kitti_object --annotations label_2 --detections results --class Car
  verify collision --pairs a=first.csv --pairs b=second.csv --plot-comparison comparison.png
"""
COLLISION_EPILOG = """\
A table of pairs has the columns image, true_m and predicted_m: an object with both distances; with true_m alone an
object without a report; with neither an image without objects. The record of verify confusion --record is read with
--record. Ranges are LOW..HIGH or LOW..HIGH:STEP or lists such as 5,10,20; speeds name their unit: m/s, km/h, mph, kn.
"""
CLOSED_LOOP = """\
Judge detectors by what a vehicle does that acts on them: drive recorded logs again in closed loop at many
sensitivities, compare safety and efficiency with a vehicle that is told the truth, and take the worst case over
conditions (RobROC).

  verify closed-loop LOGS --validation OTHER_LOGS --control-radius 2 --safety-radius 1.5

LOGS is a folder of tables (logs, images, people, detections/NAME; CSV or Parquet). A source of detections is named
DETECTOR or DETECTOR@CONDITION. nuScenes, KITTI tracking and FieldSAFE are read as well:

  verify closed-loop gt.json --format nuscenes --detections a=det_a --detections b=det_b --window 5 \\
      --validation self --match-distance 2 --control-radius 2 --safety-radius 1.5
"""
ROBROC = """\
The worst case of trade-off curves over conditions (Robustness ROC), its area and its ratio to the baseline's.

  verify robroc CURVES.json [CURVES.csv ...]
  verify robroc --spec SPEC.ltl --safety NAME --progress NAME --cm a=a.json --cm b=b.json --cm a@fog=a_fog.json

With --spec the curves are verified: P of a safety and of a progress requirement at every score threshold of a family
of confusion matrices.
"""
MUTATE = """\
Degrade images: every image under every mutation, as PNG files in FOLDER/MUTATION/NAME.png, and FOLDER/mutate.json.

  verify mutate images --mutation gaussian_blur:sigma_px=2 --sweep haze:visibility_m=978,326,97.8 \\
      --depth depth --densify linear -o mutated --sheet contact.png

A mutation is NAME:PARAMETER=VALUE,...; steps are joined by +. --show lists all names and parameters. Files that
cannot be used are listed, all others are made, and the exit code is 4.
"""
ASSESS = """\
Is a detector robust in the circumstances of its use (Wozniak, Segura and Mazo 2024)? One TOML file says which
circumstances there are, how often and how significant they are, what the detector achieves on source and target data,
how far these are apart, and how much change is accepted at that distance.

  verify assess ASSESSMENT.toml
  verify assess ASSESSMENT.toml --markdown REPORT.md --plan PLAN.json
  verify assess ASSESSMENT.toml --make FOLDER
"""
REPORT = """\
One report of any results of this program: the verdicts first, then every requirement with how it fails and what would
help, the matrices, the assumptions and where everything comes from. The HTML page is one file that needs no network.

  verify report RUN.json EXPLAIN.json REQUIRE.json MATRICES.json -o report.html
  verify report RUN.json -o report.md -o report.csv

Results are what --output of the other commands writes; matrices belong to a result where their SHA-256 is that of its
input. Which explanations belong to which run is found from the inputs that both name.
"""
RATE = """\
The rate at which a requirement fails, per hour of driving: its probability per encounter times the encounters per
hour, both with their uncertainty, held against an acceptance criterion (ISO 21448, Annex C); and how many hours or
encounters of testing would show the criterion without any model.

  verify evidence rate RESULT.json --requirement NAME --encounters 240 --hours 20 --accept 1e-7/h
  verify evidence rate RESULT.json --requirement NAME --exposure ped=12/h --exposure obs=10..14/h --exposure empty=0/h
"""


@dataclass(frozen=True)
class Verb:
    """A command.

    Attributes:
        settings: everything that can be chosen.
        run: MODULE:FUNCTION, called with the settings and the command as it is recorded; it gives the exit code. The
            module is imported only where the command is run.
        help, description, epilog: for people.
    """

    settings: type
    run: str
    help: str
    description: str
    epilog: str | None = None


VERBS: Mapping[str, Verb] = {
    "confusion": Verb(
        CountSettings,
        "verifier.cli.confusion:count_command",
        "confusion matrices by distance from detections and annotations",
        CONFUSION,
    ),
    "confusion merge": Verb(
        MergeSettings,
        "verifier.cli.confusion:merge_command",
        "add up files that were counted in the same way",
        "Add up confusion matrices that were counted in the same way.",
    ),
    "collision": Verb(
        CollisionSettings,
        "verifier.cli.collision:collision_command",
        "probability of collision by reported distance and speed, with intervals; compare detectors",
        COLLISION,
        COLLISION_EPILOG,
    ),
    "closed-loop": Verb(
        ClosedLoopSettings,
        "verifier.cli.closedloop:closed_loop_command",
        "detectors judged by what a braking vehicle does, with the worst case over conditions",
        CLOSED_LOOP,
    ),
    "robroc": Verb(
        RobrocSettings,
        "verifier.cli.robroc:robroc_command",
        "the worst case of trade-off curves over conditions, also of verified ones",
        ROBROC,
    ),
    "mutate": Verb(
        MutateSettings,
        "verifier.cli.mutate:mutate_command",
        "degrade images: blur, haze and defocus by depth, noise, and more",
        MUTATE,
    ),
    "assess": Verb(
        AssessSettings,
        "verifier.cli.assess:assess_command",
        "whether a detector is robust in the circumstances of its use",
        ASSESS,
    ),
    "report": Verb(
        ReportSettings,
        "verifier.cli.report:report_command",
        "one page of any results: verdicts, how it fails, what would help, assumptions, provenance",
        REPORT,
    ),
    "evidence rate": Verb(
        RateSettings,
        "verifier.cli.rate:rate_command",
        "how often per hour a requirement fails, and what would show an acceptance criterion",
        RATE,
    ),
}


def add_verb(commands: Any, name: str) -> argparse.ArgumentParser:
    """Add a command to those of its parser."""
    verb = VERBS[name]
    parser: argparse.ArgumentParser = commands.add_parser(
        name.split()[-1],
        help=verb.help,
        description=verb.description,
        epilog=verb.epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=partial(_run, verb))
    add_options(parser, verb.settings)
    return parser


def _run(verb: Verb, arguments: argparse.Namespace) -> int:
    module, _, function = verb.run.partition(":")
    settings: Any = settings_of(arguments, verb.settings)
    return int(getattr(importlib.import_module(module), function)(settings, arguments.invocation))
