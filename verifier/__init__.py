"""Probability that a perception-driven system meets its requirements, from the detector's confusion matrices.

    import verifier

    result = verifier.run("specs/car_pedestrian.ltl", "examples/nuscenes_yolov3_class.json", environment="ped")
    print(result)          # what `verify run` prints; result.frame(), result.plot(), result.document()

Each function does what the command of its name does. Keywords are the options of that command, with `_` for `-`; a
result carries its provenance, assumptions and uncertainty wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verifier.base.keywords import settings_from
from verifier.base.libraries import __version__ as __version__

if TYPE_CHECKING:
    from verifier.base.result import Result
    from verifier.chains.chain import MarkovChain
    from verifier.closedloop.trade_offs import TradeOffs
    from verifier.collision.result import CollisionResult
    from verifier.evidence.bundle.build import Bundle
    from verifier.evidence.documents import Document
    from verifier.evidence.findings import CheckReport
    from verifier.evidence.residual_risk.document import RiskResult
    from verifier.evidence.triggers import TriggersResult
    from verifier.perception.confusion.counts import ConfusionCounts
    from verifier.perception.confusion.request import ConfusionMetric
    from verifier.questions.compare.compare_result import CompareResult
    from verifier.questions.explain.explain_result import ExplainResult
    from verifier.questions.require.require_result import RequireResult
    from verifier.robustness.assessment.document import AssessResult
    from verifier.robustness.campaign.result import CampaignResult
    from verifier.robustness.mutators.batch_result import MutateResult
    from verifier.robustness.predicting import PredictResult
    from verifier.robustness.rates import AdrResult
    from verifier.study.results import RunResult
    from verifier.systems.model import SystemModel

    Counts = str | Path | ConfusionCounts

File = str | Path
Files = File | Sequence[File]


def run(
    spec: File, cm: Counts, *, system: SystemModel | None = None, scheduler: str | None = None, **choices: Any
) -> RunResult:
    """The probability of each requirement of a spec, with its uncertainty and verdict (`verify run`).

    Args:
        spec: requirements in LTL (.ltl); the file names the system model.
        cm: confusion matrices: a file (.json), or what `count` or a metric gave.
        system: the model that the spec names with a planner in Python, from `with_planner`.
        scheduler: who works, as `--scheduler`.
        choices: as the options of `verify run`, such as `environment="ped"`, `planner="all"`,
            `sweep={"vmax": (1, 2)}` or `sweep="vmax=1..10"`.

    Raises:
        verifier.base.errors.VerifierError: each says what was found, what was expected, and what to do.

    >>> found = run("specs/car_pedestrian.ltl", "examples/nuscenes_yolov3_class.json", environment="ped", draws=100)
    >>> [(requirement.name, requirement.verdict_text) for requirement in found.requirements][1]
    ('stops_for_pedestrians', 'violated, if items are independent')
    >>> round(found.metrics()["stops_for_pedestrians/published/probability"], 6)
    0.196203
    """
    from verifier.perception.confusion.document import named_file
    from verifier.pipeline import verify_spec
    from verifier.study.options import RunOptions

    with named_file(cm) as file:
        return verify_spec(spec, file, settings_from(RunOptions, choices), system=system, scheduler=scheduler)


def with_planner(
    system: File | SystemModel,
    name: str,
    function: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    asks: Sequence[str] = (),
    memory: Mapping[str, Mapping[str, Any]] | None = None,
) -> SystemModel:
    """A system model with one more planner, written in Python, for `system` of `run` and other functions.

    Args:
        system: file of the model (.toml), or what this function gave.
        name: of the planner.
        function: is given arrays by name, one entry per state and report: each variable and memory (int64), each
            question (truth values or numbers). It gives arrays by name: inputs, and memory that changes. It is called
            once for each block of new states and must depend on nothing else.
        asks: what it asks of the reports, such as `["sees(ped)", "count(ped)"]`.
        memory: such as `{"seen": {"range": [0, 1], "initial": 0}}`.

    >>> with_planner("models/car_pedestrian.toml", "always_stops", lambda given: {"speed": 0 * given["v"]})
    <SystemModel: car_pedestrian, planners published, feedback, correct, cautious, always_stops>
    """
    from verifier.systems.planners.functions import with_planner as added
    from verifier.systems.reader import read_model

    model = read_model(system) if isinstance(system, str | Path) else system
    return added(model, name, function, asks, memory)


def markov_chain(spec: File, cm: Counts, *, system: SystemModel | None = None, **choices: Any) -> MarkovChain:
    """The Markov chain of one planner in one environment, with labels; `.graph()` gives it to networkx.

    Args:
        spec, cm, system, choices: as for `run`; they must name one planner, one environment, and no sweep.

    >>> markov_chain("specs/car_pedestrian.ltl", "examples/nuscenes_yolov3_class.json", environment="ped")
    <MarkovChain: 66 states, 67 transitions>
    """
    from verifier.perception.confusion.document import named_file
    from verifier.study.exporting import chain_of
    from verifier.study.options import RunOptions

    with named_file(cm) as file:
        return chain_of(spec, file, settings_from(RunOptions, choices).by_default(), system)


def explain(spec: File, cm: Counts, *, system: SystemModel | None = None, **choices: Any) -> ExplainResult:
    """How the requirements of a spec fail, what that depends on, what to fix first (`verify explain`).

    Args:
        spec, cm, system: as for `run`.
        choices: as the options of `verify explain`, such as `record="record.csv"`.

    >>> matrices = "examples/nuscenes_yolov3_class.json"
    >>> found = explain("specs/car_pedestrian.ltl", matrices, environment="ped", draws=100)
    >>> [row["cause"] for row in found.rows() if row["requirement"] == "stops_for_pedestrians"]
    ['ped in [0, 10) m reported as empty']
    """
    from verifier.perception.confusion.document import named_file
    from verifier.questions.explain.explaining import explain_spec
    from verifier.questions.settings import ExplanationSettings

    with named_file(cm) as file:
        asked = settings_from(ExplanationSettings, {"spec": spec, "cm": file, **choices})
        return explain_spec(asked.spec, asked.cm, asked.options, asked.explanation, asked.record, system=system)


def require(
    spec: File, cm: Counts, requirement: str, *, system: SystemModel | None = None, **choices: Any
) -> RequireResult:
    """The least recall with which the system meets a requirement (`verify require`).

    Args:
        spec, cm, system: as for `run`; every search starts from the rates of the matrices.
        requirement: its name.
        choices: as the options of `verify require`, such as `mode="factor"`, `target=">= 0.99"`, `box=True`.

    >>> matrices = "examples/nuscenes_yolov3_class.json"
    >>> found = require("specs/car_pedestrian.ltl", matrices, "stops_for_pedestrians", environment="ped")
    >>> [(row["bin"], row["label"], row["required_recall"]) for row in found.rows()]
    [('[0, 10) m', 'ped', '0.95')]
    """
    from verifier.perception.confusion.document import named_file
    from verifier.questions.require.question import question_of
    from verifier.questions.require.requiring import require as asked_for
    from verifier.questions.settings import RequirementSettings

    with named_file(cm) as file:
        asked = settings_from(RequirementSettings, {"spec": spec, "cm": file, "requirement": requirement, **choices})
        return asked_for(asked.spec, asked.cm, question_of(asked), asked.run_options, system=system)


def compare(
    specs: Files, detectors: Mapping[str, Counts], *, system: SystemModel | None = None, **choices: Any
) -> CompareResult:
    """Planners and detectors compared, with posterior probabilities (`verify compare`).

    Args:
        specs: one or several, of different names.
        detectors: name -> confusion matrices, as for `run`.
        system: as for `run`.
        choices: as the options of `verify compare`, such as `planner="all"`, `pareto="stops,arrives"`.

    >>> named = {labels: f"examples/nuscenes_yolov3_{labels}.json" for labels in ("class", "proposition")}
    >>> found = compare("specs/car_pedestrian.ltl", named, environment="ped", draws=100)
    >>> [(row["detector"], round(row["probability"], 3)) for row in found.rows()][2:4]
    [('class', 0.196), ('proposition', 0.259)]
    """
    from contextlib import ExitStack

    from verifier.base.blocks import Pool
    from verifier.base.errors import UsageError
    from verifier.evidence.consistency import read_baseline
    from verifier.perception.confusion.document import named_file
    from verifier.questions.compare.comparing import compare as compared
    from verifier.questions.compare.gating import CompareOptions
    from verifier.questions.settings import ComparisonSettings

    if not isinstance(detectors, Mapping):
        raise UsageError(f"detectors: expected {{'a': 'a.json', ...}}, got {type(detectors).__name__}")
    with ExitStack() as stack:
        files = {name: stack.enter_context(named_file(cm)) for name, cm in detectors.items()}
        named = tuple(f"{name}={path}" for name, path in files.items())
        asked = settings_from(ComparisonSettings, {"spec": specs, "cm": named, **choices}, ("scheduler",))
        baseline = None if asked.baseline is None else read_baseline(asked.baseline)
        pool = stack.enter_context(Pool(asked.scheduler, asked.options.limits.memory_bytes))
        options = CompareOptions(**vars(asked.look), baseline=baseline)
        return compared(asked.spec, files, options, asked.options, system=system, pool=pool)


def count(
    annotations: Any,
    detections: Any,
    format: str = "auto",  # noqa: A002
    *,
    names: Sequence[str] | None = None,
    sequences: Sequence[str] | None = None,
    **choices: Any,
) -> ConfusionCounts:
    """Confusion matrices by distance, for `run`: what a detector reports of what is there (`verify confusion`).

    Args:
        annotations, detections: files or folders, or objects as of `verifier.perception.detections.from_objects`.
        format: of files, such as "kitti_tracking", "nuscenes", "coco", "yolo", "table".
        names, sequences: of such objects what labels mean, by number, and the drive of each image.
        choices: as the options of `verify confusion`, such as `bins="0,10,20,inf"`, `labelling="proposition"`.

    >>> from pandas import DataFrame
    >>> there = DataFrame({"frame": [0, 1], "class": "ped", "x": [5.0, 25.0], "y": 0.0})  # metres ahead
    >>> found = count(there, there[:1].assign(score=0.9), bins="0,20,40", classes="ped")
    >>> {name: value for name, value in found.metrics().items() if name.startswith("ped") and "recall" in name}
    {'ped/0_20_m/recall': 1.0, 'ped/20_40_m/recall': 0.0}
    """
    from verifier.perception.confusion.request import counts_of

    return counts_of(annotations, detections, format, names, sequences, choices)


def metric(names: Sequence[str] | None = None, **choices: Any) -> ConfusionMetric:
    """The matrices of `count` batch by batch, for training loops: `update`, `compute`, `reset` as in torchmetrics.

    Args:
        names: of the labels, by their number; None for those of `classes`.
        choices: as of `count`, with `classes` or `class_map`, without those about files.

    >>> here = {"boxes": [[0, 0, 10, 20]], "labels": [0], "distance_m": [12.5]}
    >>> found = metric(classes="ped,obs", bins="0,20,inf")
    >>> found.update([{"boxes": [[0, 0, 10, 18]], "labels": [0], "scores": [0.9]}], [here])
    >>> found.update([{"boxes": [], "labels": [], "scores": []}], [here])
    >>> found.compute().matrices().counts[0, :, 0].tolist()  # of two pedestrians one was found
    [1, 0, 1]
    """
    from verifier.perception.confusion.request import ConfusionMetric

    return ConfusionMetric(names, **choices)


def collision_map(**choices: Any) -> CollisionResult:
    """The probability of a collision by reported distance and speed, with intervals (`verify collision`).

    Args:
        choices: as the options of `verify collision`, such as `table="pairs.csv"`, `deceleration=(6.86, 3.43)`.
    """
    from verifier.collision.request import collision_result
    from verifier.collision.settings import CollisionSettings

    return collision_result(settings_from(CollisionSettings, choices, ("scheduler",)))


def drive_logs(logs: File, **choices: Any) -> TradeOffs:
    """Detectors judged by what a braking vehicle does on recorded logs (`verify closed-loop`).

    Args:
        logs: recorded drives.
        choices: as the options of `verify closed-loop`, such as `validation="self"`, `control_radius=2`.
    """
    from verifier.closedloop.request import trade_offs
    from verifier.closedloop.settings import ClosedLoopSettings

    return trade_offs(settings_from(ClosedLoopSettings, {"logs": logs, **choices}, ("scheduler",)))


def robroc(files: Files = (), **choices: Any) -> TradeOffs:
    """The worst case of trade-off curves over conditions (`verify robroc`).

    Args:
        files: of curves; none for verified ones, with `spec`, `safety`, `progress` and `cm`.
        choices: as the options of `verify robroc`.
    """
    from verifier.closedloop.request import robroc_result
    from verifier.closedloop.settings import RobrocSettings

    return robroc_result(settings_from(RobrocSettings, {"files": files, **choices}))


def mutate(images: Files, output: File, **choices: Any) -> MutateResult:
    """Degrade images, every one under every mutation, as PNG files in OUTPUT/MUTATION/NAME.png (`verify mutate`).

    Args:
        images: files, or folders of them.
        output: folder to write.
        choices: as the options of `verify mutate`, such as `mutation="haze:visibility_m=97.8"`, `depth="depth"`.
    """
    from verifier.robustness.mutators.batch import mutated
    from verifier.robustness.settings import MutateSettings

    chosen = {"images": images, "output": output, **choices}
    return mutated(settings_from(MutateSettings, chosen, outputs=("output",)))


def campaign(file: File, output: File, scheduler: str | None = None) -> CampaignResult:
    """What mutations do to detectors, from images to every number and the files behind it (`verify campaign`).

    Args:
        file: campaign file (.toml).
        output: folder for all that is made; one of an earlier run is gone on with.
        scheduler: who mutates and detects, as `--scheduler`.
    """
    from verifier.base.blocks import Pool
    from verifier.robustness.campaign.running import campaign_result

    with Pool(scheduler) as pool:
        return campaign_result(str(file), str(output), pool)


def adr(annotations: Files | Mapping[str, File], detections: Mapping[str, File], **choices: Any) -> AdrResult:
    """Detection rate under mutations, at thresholds fixed on the images as they were taken (`verify adr`).

    Args:
        annotations: ground truth; by condition where a mutation moves objects, "" for the images as they were taken.
        detections: file of each source, DETECTOR or DETECTOR@CONDITION.
        choices: as the options of `verify adr`, such as `format="coco"`, `unit="sequence"`.
    """
    from verifier.robustness.rates import adr_result
    from verifier.robustness.settings import RatesSettings

    truth = annotations if not isinstance(annotations, Mapping) else _named(annotations)
    return adr_result(
        settings_from(RatesSettings, {"annotations": truth, "detections": _named(detections), **choices})
    )


def _named(files: Mapping[str, File]) -> tuple[str, ...]:
    return tuple(f"{name}={path}" if name else str(path) for name, path in files.items())


def predict(rates: File, **choices: Any) -> PredictResult:
    """What mutations by depth do to detectors, predicted from what simple ones do (`verify predict`).

    Args:
        rates: result of `verify adr`, or a table.
        choices: as the options of `verify predict`, such as `pair="defocus=gaussian_blur"`.
    """
    from verifier.robustness.predicting import predict_result
    from verifier.robustness.settings import PredictSettings

    return predict_result(settings_from(PredictSettings, {"rates": str(rates), **choices}))


def assess(assessment: File, **choices: Any) -> AssessResult:
    """Whether a detector is robust in the circumstances of its use (`verify assess`).

    Args:
        assessment: what is assessed and by what (.toml).
        choices: as the options of `verify assess`, such as `system="mds"`.

    >>> assess("examples/12_robustness_assessment.toml", system="mds").verdict.value
    'violated'
    """
    from verifier.base.blocks import Pool
    from verifier.robustness.assessment.request import assessed
    from verifier.robustness.settings import AssessSettings

    settings = settings_from(AssessSettings, {"file": assessment, **choices}, ("scheduler",))
    with Pool(settings.scheduler) as pool:
        return assessed(settings, pool=pool)


def report(results: Files, title: str | None = None) -> str:
    """One HTML page of any results (`verify report`): verdicts first, then how each fails and what would help.

    Args:
        results: JSON documents of this program.
        title: of the page; None for that of the results.
    """
    from verifier.evidence.report import html_report

    return html_report(_documents(results), title)


def risk(context: File, results: Files) -> RiskResult:
    """Hazardous behaviour and harm per hour, over conditions with their shares (`verify evidence risk`).

    Args:
        context: of the case (.toml), with conditions and hazards.
        results: documents of runs, one with the matrices of each condition.
    """
    from verifier.evidence.context import read_context
    from verifier.evidence.residual_risk.assembly import residual_risk

    return residual_risk(read_context(context).stated, _documents(results))


def triggers(context: File, results: Files) -> TriggersResult:
    """What is known of each triggering condition of a case (`verify evidence triggers`).

    Args:
        context: of the case (.toml), with triggering conditions.
        results: documents of runs in them, and matrices.
    """
    from verifier.evidence.context import read_context
    from verifier.evidence.triggers import known_triggers

    return known_triggers((case := read_context(context)).triggers, _documents(results), case.file)


def write_artefacts(result: Result, folder: File) -> Path:
    """Write a result as files of a folder, for experiment trackers: document, report, rows and figure.

    Args:
        result: of any function here; its `metrics()` are the numbers by name.
        folder: is made; files of the same names are replaced. The figure needs matplotlib.

    Returns:
        The folder.
    """
    from verifier.evidence.report import write_artefacts as written

    return written(result, folder)


def build_evidence(spec: File, cm: File, output: File, *, force: bool = False, **choices: Any) -> Bundle:
    """Make a bundle of evidence for an assurance case (`verify evidence build`).

    Args:
        spec, cm: as for `run`.
        output: folder or archive (.zip) to write.
        force: replace a bundle that is there already.
        choices: as the options of `verify evidence build`, such as `context="case.toml"`.
    """
    from verifier.evidence.bundle.build import Sources, build_bundle
    from verifier.evidence.settings import BuildSettings

    asked = settings_from(BuildSettings, {"spec": spec, "cm": cm, "output": output, **choices})
    return build_bundle(Sources(asked.spec, asked.cm, asked.context, asked.given), asked.output, asked.options, force)


def check_evidence(bundle: File, **choices: Any) -> CheckReport:
    """Check a bundle offline (`verify evidence check`): its findings are what is wrong, and what was not checked.

    Args:
        bundle: folder or archive.
        choices: as the options of `verify evidence check`, such as `digest="..."`, `recompute=True`.
    """
    from verifier.evidence.bundle.check import CheckLimits, check_bundle
    from verifier.evidence.settings import CheckSettings

    asked = settings_from(CheckSettings, {"bundle": bundle, **choices})
    limits = CheckLimits(system=asked.limits, timeout_s=asked.timeout)
    return check_bundle(asked.bundle, asked.digest, asked.recompute, limits)


def _documents(results: Files) -> list[Document]:
    from verifier.evidence.consistency import read_document

    return [read_document(path) for path in ([results] if isinstance(results, str | Path) else results)]
