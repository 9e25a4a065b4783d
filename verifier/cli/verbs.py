"""The commands of `verify`: what each is called, its settings, and the function that runs it."""

import gc
import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from verifier.cli import evidence_texts as texts

INIT = """\
Write a system model, requirements and confusion matrices to start from: a small system with a comment on every part,
or one of the gallery.

  verify init
  verify init --list
  verify init crossing_stochastic -o crossing
"""
COMPLETION = """\
Print a script that makes a shell complete the commands and options of verify.

  verify completion bash > ~/.local/share/bash-completion/completions/verify
  verify completion zsh > ~/.zfunc/_verify        (a folder of fpath)
  verify completion fish > ~/.config/fish/completions/verify.fish
"""
RUN = """\
Check every requirement of SPEC in every scenario (environment, initial state, swept constants) on the Markov
chain of planner and confusion matrices. Storm computes each number, a second engine checks it.
"""
EXPLAIN = """\
Explain the probability of each requirement of SPEC: the detection errors, alone or together, that violate it (with
--record the frames in which they happened), the most probable patterns of violating paths, what to fix first, and
where to label more data. The worst scenario of each requirement is explained.
"""
REQUIRE = """\
The least recall with which the system meets a requirement, in the bins on which it depends. Storm confirms
the answer; --floor proves it for every matrix above a floor.

  verify require SPEC.ltl --cm RESULTS.json --requirement NAME
  verify require SPEC.ltl --cm RESULTS.json --requirement NAME --mode cell --class ped --bin 5
"""
COMPARE = """\
Compare planners and detectors under one or several specs: probabilities by Storm, and from paired draws of the
matrices the posterior probability that one is better than another, or the best, and where the ranking changes along a
sweep.

  verify compare SPEC.ltl --cm old=OLD.json --cm new=NEW.json --planner all
  verify compare SPEC.ltl --cm new=NEW.json --baseline RUN.json --max-drop 0.01
"""
CONFUSION = """\
Compare detections with ground truth by distance, and write the confusion matrices.

  verify confusion --format kitti_tracking --annotations label_02 --detections results -o results.json
  verify confusion merge first.json second.json -o both.json
"""
REPLAY = """\
Replay a tracker on the first window of successive frames of each real track, and predict how often it confirms: by
each memory of the detector, along the same bins, with rates counted on the other drives.

  verify confusion replay RECORD.csv --true-class ped --range 10..20 --frames 30 --confirm 3/3
  verify confusion replay RECORD.csv --true-class ped --range 10..20 --frames 30 --confirm 1/1,3/3 --splits 20

With --splits each random half of the drives predicts the other half, for windows of 1 to N frames and for the whole
passage through the range, with calibration p-values; also by the contexts that the half supports (auto), and bounds
whatever the dependence (any).
"""
COLLISION = """\
Probability of a collision, given the distance that a detector reports and the speed: maps with intervals for one
detector; comparison, ranking and combination for several; and the same braking policy as a verified closed loop.

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
Judge detectors by what a vehicle does that acts on them: replay recorded logs in closed loop at many sensitivities,
compare safety and efficiency with a reference vehicle that has ground-truth perception, and take the worst case over
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
      --depth depth --densify linear -o mutated

A mutation is NAME:PARAMETER=VALUE,...; steps are joined by +. --show lists all names and parameters. Files that
cannot be used are listed, all others are made, and the exit code is 4.
"""
CAMPAIGN = """\
What mutations do to detectors: from images to AP, recall, ADR, trade-off areas, lambda, P and a report.

  verify campaign init --onnx yolo.onnx --images images --annotations truth.json --depth depth
  verify campaign campaign.toml --jobs 4
"""
ASSESS = """\
Is a detector robust in the circumstances of its use (Wozniak, Segura and Mazo 2024)? One TOML file says which
circumstances there are, how often and how significant they are, what the detector achieves on source and target data,
how far these are apart, and how much change is accepted at that distance.

  verify assess ASSESSMENT.toml --markdown REPORT.md
  verify assess ASSESSMENT.toml --make FOLDER
"""


_SCENARIOS = "cm planner environment initial set sweep requirement where empty-columns false-positives memory"
_MODEL_RESULT = "exact timeout json output"


@dataclass(frozen=True)
class Verb:
    """A command.

    Attributes:
        choices: MODULE:CLASS of the settings in this package, everything that can be chosen.
        run: MODULE:NAME of the function NAME_command beside this module, called with the settings and the command as
            it is recorded; it gives the exit code. Both modules are imported only where the command is run, or its
            help is shown.
        common: the options that `--help` shows, by name; all where it is empty.
    """

    choices: str
    run: str
    help: str
    description: str
    epilog: str | None = None
    common: str = ""

    @property
    def settings(self) -> type:
        """The class of the settings."""
        settings_type: type = _named(f"verifier.{self.choices}")
        return settings_type

    @property
    def function(self) -> Callable[[Any, tuple[str, ...]], int]:
        """What runs it."""
        runner: Callable[[Any, tuple[str, ...]], int] = _named(f"verifier.cli.{self.run}_command")
        return runner


VERBS: Mapping[str, Verb] = {
    "init": Verb(
        "manual.pages:InitSettings", "manual:init", "write a small system, or one of the gallery, to start from", INIT
    ),
    "run": Verb(
        "questions.settings:RunSettings",
        "run:run",
        "probability that a system meets the requirements of a spec",
        RUN,
        common=f"{_SCENARIOS} confidence bounds strict assume-memoryless {_MODEL_RESULT} csv plot parse export",
    ),
    "confusion": Verb(
        "perception.settings:CountSettings",
        "confusion:count",
        "confusion matrices by distance from detections and annotations",
        CONFUSION,
        common="format annotations detections class-map groups accept distance-field depth-folder min-score range"
        " convention affinity match-threshold unmatched bins by labelling outside memory output title json plot",
    ),
    "confusion merge": Verb(
        "perception.settings:MergeSettings",
        "confusion:merge",
        "add up files that were counted in the same way",
        "Add up confusion matrices that were counted in the same way.",
    ),
    "confusion used": Verb(
        "perception.settings:UsedSettings",
        "evidence:used",
        "record that verdicts were drawn from matrices",
        texts.USED,
    ),
    "confusion replay": Verb(
        "perception.settings:ReplaySettings",
        "confusion:replay",
        "what a memory model predicts of a tracker, beside what it did on real tracks",
        REPLAY,
    ),
    "explain": Verb(
        "questions.settings:ExplanationSettings",
        "questions:explain",
        "how a requirement fails, which rates it depends on, what to fix and where to label",
        EXPLAIN,
        common=f"{_SCENARIOS} patterns members record confidence bounds assume-memoryless {_MODEL_RESULT} plot",
    ),
    "require": Verb(
        "questions.settings:RequirementSettings",
        "questions:require",
        "recall that a requirement demands of the detector",
        REQUIRE,
        common=f"{_SCENARIOS} target mode class bin floor cost assume-memoryless {_MODEL_RESULT} csv",
    ),
    "compare": Verb(
        "questions.settings:ComparisonSettings",
        "questions:compare",
        "planners and detectors compared, with posterior probabilities",
        COMPARE,
        common=f"{_SCENARIOS} best-planner pareto baseline max-drop confidence assume-memoryless {_MODEL_RESULT} csv"
        " plot",
    ),
    "collision": Verb(
        "collision.settings:CollisionSettings",
        "closedloop:collision",
        "probability of collision by reported distance and speed, with intervals; compare detectors",
        COLLISION,
        COLLISION_EPILOG,
        common="pairs record detections format annotations class-map class distance deceleration reaction distances"
        " speeds at confidence closed-loop json output csv plot plot-comparison plot-ranking plot-closed-loop",
    ),
    "closed-loop": Verb(
        "closedloop.settings:ClosedLoopSettings",
        "closedloop:closed_loop",
        "detectors judged by what a braking vehicle does, with the worst case over conditions",
        CLOSED_LOOP,
        common="format validation detections control-radius safety-radius match-distance window range people"
        " metric levels deceleration acceleration top-speed engine severity confidence json output csv plot"
        " plot-table curves",
    ),
    "robroc": Verb(
        "closedloop.settings:RobrocSettings",
        "closedloop:robroc",
        "the worst case of trade-off curves over conditions, also of verified ones",
        ROBROC,
    ),
    "mutate": Verb(
        "robustness.settings:MutateSettings",
        "robustness:mutate",
        "degrade images: blur, haze and defocus by depth, noise, and more",
        MUTATE,
    ),
    "campaign": Verb(
        "robustness.settings:CampaignSettings",
        "robustness:campaign",
        "from images and detectors to what mutations do to them",
        CAMPAIGN,
    ),
    "campaign init": Verb(
        "robustness.settings:CampaignInitSettings",
        "robustness:campaign_init",
        "write a campaign file for a network and images",
        "Write a campaign file; what of the network's layout is guessed is listed, to be confirmed.",
    ),
    "adr": Verb(
        "robustness.settings:RatesSettings",
        "robustness:adr",
        "detection rate under mutations, at thresholds fixed beforehand",
        "Average detection rate (ADR) at thresholds fixed on unchanged images, with intervals (Pezzementi 2018).",
    ),
    "predict": Verb(
        "robustness.settings:PredictSettings",
        "robustness:predict",
        "what mutations by depth do, predicted from simple ones",
        "Predict what mutations by depth do to each detector from what simple ones do, by the model of all others.",
    ),
    "assess": Verb(
        "robustness.settings:AssessSettings",
        "robustness:assess",
        "whether a detector is robust in the circumstances of its use",
        ASSESS,
    ),
    "report": Verb(
        "evidence.settings:ReportSettings",
        "report:report",
        "one page of any results: verdicts, counterexamples, improvements, assumptions, provenance",
        texts.REPORT,
    ),
    "evidence build": Verb(
        "evidence.settings:BuildSettings",
        "evidence:build",
        "make a bundle of evidence",
        texts.BUILD,
        common=f"{_SCENARIOS} context with confidence bounds strict assume-memoryless {_MODEL_RESULT} force",
    ),
    "evidence check": Verb(
        "evidence.settings:CheckSettings", "evidence:check", "check a bundle of evidence", texts.CHECK
    ),
    "evidence sign": Verb("evidence.settings:SignSettings", "evidence:sign", "sign a bundle of evidence", texts.SIGN),
    "evidence export": Verb(
        "evidence.settings:ExportSettings", "evidence:export", "write a bundle for other tools", texts.EXPORT
    ),
    "evidence diff": Verb(
        "evidence.settings:DiffSettings",
        "evidence:diff",
        "what changed between two bundles, and which claims fall",
        texts.DIFF,
    ),
    "manual": Verb(
        "manual.pages:ManualSettings",
        "manual:manual",
        "show a page of the manual",
        "Show a page of the manual, or, without a topic, the list of pages.",
    ),
    "completion": Verb(
        "manual.pages:CompletionSettings",
        "manual:completion",
        "print what makes a shell complete commands and options",
        COMPLETION,
    ),
    "schema": Verb(
        "evidence.settings:SchemaSettings",
        "manual:schema",
        "print the JSON Schema of a kind of document",
        "Print the JSON Schema of a kind of document, or, without a name, the names of all kinds.",
    ),
    "qualify": Verb(
        "evidence.settings:QualifySettings",
        "qualification:qualify",
        "validate this program on this machine, and write the tool qualification kit",
        texts.QUALIFY,
    ),
    "known-problems": Verb(
        "evidence.settings:KnownProblemsSettings",
        "qualification:known_problems",
        "known problems that a bundle or result is touched by",
        texts.KNOWN_PROBLEMS,
    ),
    "evidence rate": Verb(
        "evidence.settings:RateSettings",
        "report:rate",
        "violation rate per hour, and what would show an acceptance criterion",
        texts.RATE,
    ),
    "evidence risk": Verb(
        "evidence.settings:RiskSettings",
        "report:risk",
        "hazardous behaviour and harm per hour, over conditions and in none of them",
        texts.RISK,
    ),
    "spi check": Verb(
        "evidence.settings:SpiSettings",
        "evidence:spi",
        "whether what was counted in the field contradicts a claim",
        texts.SPI,
    ),
    "evidence triggers": Verb(
        "evidence.settings:TriggersSettings",
        "report:triggers",
        "what is known of each triggering condition, and which of them came together",
        texts.TRIGGERS,
    ),
}


FAMILIES: Mapping[str, str] = {
    "campaign": "commands on campaign files",
    "confusion": "commands on matrix files and records",
    "evidence": "commands",
    "spi": "commands",
}
"""First word of commands that have two -> the heading of the second ones."""


def _named(place: str) -> Any:
    """What stands at a place. While it is imported nobody looks for circles of garbage: what is imported stays."""
    module, _, name = place.partition(":")
    if module not in sys.modules:
        gc.disable()
        try:
            importlib.import_module(module)
        finally:
            gc.freeze()
            gc.enable()
    return getattr(sys.modules[module], name)
