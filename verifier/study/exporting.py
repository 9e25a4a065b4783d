"""Exports: the model of a study of one case, and the process of all matrices that its data leave."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.robust.region import Region
from verifier.analysis.robust.vertices import vertex_process
from verifier.base.errors import UsageError
from verifier.chains.chain import DecisionProcess, MarkovChain
from verifier.chains.texts import Model
from verifier.language.specs.specification import expand_lets
from verifier.study.case import Case, Study
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions
from verifier.systems.model import SystemModel
from verifier.systems.skeleton import world_decides
from verifier.systems.strategies import StrategySkeleton


def require_one_case(study: Study) -> None:
    """Refuse a study of several cases where one chain is exported; UsageError."""
    if len(study.cases) != 1:
        raise UsageError(
            f"one chain is exported at a time, and {len(study.cases)} were asked for: name one planner, one "
            "environment and one value of each swept constant"
        )
    if study.options.initial_context == "counted":
        raise UsageError("a chain is exported with one context at each initial state: --initial-context start")


def model_of(study: Study) -> Model:
    """The Markov chain of a study of one case, or the decision process where its world decides, labelled with the
    propositions of model and spec and `terminal`.

    Raises:
        UsageError: the study has several cases.
        VerifierError: as `verify_spec`.
    """
    require_one_case(study)
    (case,) = study.cases
    exact = study.options.engines.exact
    model = case.process({}, exact=exact) if case.decides else case.chain({})
    return replace(model, labels=_labels_of(case), remark=_steps_of(study))


def chain_of(
    spec_path: str | Path, confusion_path: str | Path, options: RunOptions, system: SystemModel | None = None
) -> MarkovChain:
    """The Markov chain of one case; arguments as for `verify_spec`.

    Raises:
        UsageError: there are several cases, or the world decides.
        VerifierError: as `verify_spec`.
    """
    study = Study.of(read_inputs(spec_path, confusion_path, options, system), options)
    chain = model_of(study)
    if isinstance(chain, DecisionProcess):
        raise world_decides(study.inputs.model)
    return chain


def _labels_of(case: Case) -> dict[str, NDArray[np.bool_]]:
    """The states in which each proposition of model and spec holds, and those that are terminal."""
    inputs = case.study.inputs
    conditions = {**inputs.model.labels, **expand_lets(inputs.spec.lets, inputs.spec.source)}
    masks = {name: case.states.mask_of(node) for name, node in conditions.items()}
    return {**masks, "terminal": case.states.terminal}


def exported_region(study: Study) -> Region:
    """The matrices within the confidence region of a study of one case.

    Raises:
        UsageError: the study has several cases, or its bounds do not come from a region of matrices.
    """
    require_one_case(study)
    if study.data is None:
        raise UsageError("--export-bounds needs confidence bounds: leave out --point-only and --decimals")
    region = study.data.region(_rows_of(study.cases[0]).choices)
    if region is None:
        raise UsageError("bounds of tier approximate are from randomly weighted drives: there is no region to export")
    return region


def vertex_model_of(study: Study) -> DecisionProcess:
    """The decision process of all matrices within the confidence region of a study of one case; labels as `model_of`.

    Raises:
        LimitError: a state would have too many choices.
        VerifierError: as `exported_region` and `verify_spec`.
    """
    region, settings = exported_region(study), study.options.confidence
    assert settings is not None
    assert study.data is not None
    (case,) = study.cases
    steps = _steps_of(study)
    remark = (
        f"Choices are vertices of the region of matrices that the data leave at level {settings.level} (tier "
        f"{study.data.basis.tier}), for each state and each report of a step. The least and the greatest "
        "probability over all strategies are the confidence bounds with --semantics per-state"
        + (f". {steps}" if steps else "")
    )
    exact = study.options.engines.exact
    return vertex_process(_rows_of(case), region, _labels_of(case), exact=exact, remark=remark)


def _steps_of(study: Study) -> str:
    """What the steps of the chain are, where they are not those of the model."""
    frames = study.inputs.frames
    if frames == 1:
        return ""
    return f"A step of the model is {frames} steps here, one for each frame: X and bounds count so many times as many"


def _rows_of(case: Case) -> StrategySkeleton:
    """What the world may decide; a single row for each state where it decides nothing."""
    return case.choices if case.decides else StrategySkeleton(np.arange(case.skeleton.state_count + 1), case.skeleton)
