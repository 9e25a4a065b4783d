"""What requirements ask of a world that decides, beside the probability of a formula."""

from collections.abc import Callable
from dataclasses import fields

import numpy as np

from verifier.analysis.objective import Objective
from verifier.analysis.robust.optimal_conditional import OptimalConditional
from verifier.analysis.robust.optimal_steps import OptimalGain, OptimalQuantile, OptimalSteps
from verifier.base.errors import NoAnswerError
from verifier.language.expressions import to_text
from verifier.language.expressions.syntax import Node, Temporal, children, is_temporal, names_in
from verifier.language.specs import Requirement
from verifier.systems.model import SystemModel
from verifier.systems.rewards import Gains
from verifier.systems.skeleton import Skeleton
from verifier.systems.strategies import StrategySkeleton


def of_deciding_world(
    requirement: Requirement,
    plain: Objective,
    choices: StrategySkeleton,
    states: Skeleton,
    gains: Callable[[], Gains],
    most_states: int,
) -> Objective:
    """What a requirement asks, from the product of its formula.

    Args:
        requirement: not the probability of one formula.
        plain: the product of its formula with what the world may do.
        choices: that, and `states` as if it drew.
        most_states: of a process that is made for it.

    Raises:
        NoAnswerError: it is not computed where the world decides.
    """
    model, asked, starts = choices.choices.system.model, requirement.asked, choices.choice_starts
    parts = {field.name: getattr(plain, field.name) for field in fields(plain)}
    refuse_unknown(requirement, model)
    if requirement.given is not None:
        held = np.zeros(states.state_count, dtype=np.int64)
        for bit, node in enumerate((requirement.formula, requirement.given)):
            held |= states.mask_of(children(node)[0]).astype(np.int64) << bit
        told = to_text(requirement.given)
        return OptimalConditional(**parts, choices=choices, held=held, told=told, most_states=most_states)
    if asked.level is not None:
        if model.step_s is None:
            raise ValueError("the duration of a step is not known")
        (condition,) = children(requirement.formula)
        level, step_s = asked.level, model.step_s
        return OptimalQuantile(**parts, choice_starts=starts, condition=condition, level=level, step_s=step_s)
    if asked.steps is not None:
        return OptimalSteps(**parts, choice_starts=starts, gains=gains(), steps=asked.steps)
    return OptimalGain(**parts, gains=gains())


def refuse_unknown(requirement: Requirement, model: SystemModel) -> None:
    """Refuse what a requirement asks that is not computed where the world decides; NoAnswerError."""
    asked = requirement.asked
    reads = names_in(model.rewards[asked.reward]) & {choice.name for choice in model.world} if asked.reward else ()
    if reads:
        what = f"rewards that read what a deciding world does ({', '.join(sorted(reads))})"
        raise NoAnswerError(f"{asked}: {what} are not computed", hint="keep it in a variable, read it a step later")
    if requirement.given is not None and not (_is_reached(requirement.formula) and _is_reached(requirement.given)):
        hint = "give what the world decides a probability, or ask for another probability"
        raise NoAnswerError("only 'F a given F b' is known where the world decides", hint=hint)


def _is_reached(node: Node) -> bool:
    """Whether it is `F condition` without a bound."""
    plain = isinstance(node, Temporal) and node.operator == "F" and node.interval is None and node.seconds is None
    return plain and not is_temporal(children(node)[0])
