"""How probable it is that a requirement is met with less than before, by draws of both bundles' matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from verifier.base.arrays import Floats
from verifier.evidence.changes.sides import Side
from verifier.questions.compare.scores import drawn_probabilities
from verifier.study.case import Study

Drawn = dict[tuple[str, str], Floats]


def chances_worse(old: Side, new: Side) -> dict[tuple[str, str], float]:
    """Requirement and planner -> posterior probability that its worst scenario is worse now.

    Equal matrices are drawn alike in both, others independently. Requirements of means, and systems that decide, are
    left out.
    """
    same = old.files[old.request.matrices] == new.files[new.request.matrices]
    studies = [Study.of(side.inputs, side.request.options) for side in (old, new)]
    if any(study.data is None for study in studies):
        return {}
    count = min(study.data.draws for study in studies if study.data is not None)
    before, after = (_scores(study, count, 0 if same else k) for k, study in enumerate(studies))
    return {key: float(np.mean(after[key] < before[key])) for key in before if key in after}


def _scores(study: Study, count: int, shift: int) -> Drawn:
    """(count,) worst over scenarios, larger being better, of every requirement and planner."""
    found, settings = Drawn(), study.options.confidence
    assert study.data is not None
    assert settings is not None
    data, settings = replace(study.data, draws=count), replace(settings, seed=settings.seed + shift)
    for case in study.cases:
        if case.decides or case.study.inputs.frames > 1:
            continue
        for requirement, objective in zip(study.requirements, case.objectives, strict=True):
            if requirement.over_profile or requirement.target is None:
                continue
            sign = -1 if requirement.comparison.startswith("<") else 1
            parts = [(sign * part).min(axis=1) for part in drawn_probabilities(objective, data, settings)]
            key, scores = (requirement.name, case.planner.name), np.concatenate(parts)
            found[key] = np.minimum(found[key], scores) if key in found else scores
    return found
