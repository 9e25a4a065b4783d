"""Why a planner has no valid step somewhere: the rule that holds there, and what is wrong with what it sets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from verifier.base.arrays import Ints, Mask
from verifier.base.errors import InputError
from verifier.language.expressions import evaluate, resolve_sees
from verifier.language.expressions.syntax import Node
from verifier.perception.confusion.matrices import Label
from verifier.systems.model import BoundedVariable, Planner, System
from verifier.systems.scene import Scene, state_text
from verifier.systems.space import whole_in_range


def no_valid_step(scene: Scene, following: Ints, ended: Mask, valuations: Mapping[str, Ints]) -> InputError:
    """The error for the first state (not ended) with a next state of -1 under some observation.

    Args:
        scene: for its planner, which decides there by its rules.
        following: (k, observations) next states.
        ended: (k,) bool.
        valuations: variable name -> (k,) int64.
    """
    index = int(np.flatnonzero((following < 0).any(axis=1) & ~ended)[0])
    told = scene.observations[int(np.flatnonzero(following[index] < 0)[0])]
    state = {name: int(value[index]) for name, value in valuations.items()}
    path, reason = _reason(scene.system, scene.planner, told, state)
    report = ", ".join(sorted(told)) or "nothing"
    return scene.system.model.at(path).error(
        f"planner '{scene.planner.name}' has no valid step in state {state_text(valuations, index)} when the "
        f"detector reports {report}: {reason}",
        None,
        "add or correct a rule for this case, or make the state terminal",
    )


def _reason(system: System, planner: Planner, told: Label, state: Mapping[str, int]) -> tuple[str, str]:
    """(dotted key, what is wrong there) for one state and observation."""

    def value(node: Node) -> int | float | bool:
        found: int | float | bool = evaluate(system.resolve(resolve_sees(node, told)), state)
        return found

    rule = next((each for each in planner.rules if value(each.when)), None)
    if rule is None:
        return f"planners.{planner.name}.rules", "no rule holds there"
    inputs = {name: value(node) for name, node in (rule.inputs or {}).items()}
    for each in system.inputs:
        if not whole_in_range(inputs[each.name], each)[1]:
            return f"{rule.path}.set.{each.name}", f"{each.name} = {inputs[each.name]:g}, {_wanted(each)}"
    whole = {name: int(found) for name, found in inputs.items()}
    taken = ", ".join(f"{name} = {found}" for name, found in whole.items()) or "this step"
    if not evaluate(system.admissible, {**state, **whole}):
        return rule.path, f"{taken} is not admissible"
    for each in system.variables:
        moved = evaluate(system.dynamics[each.name], {**state, **whole})
        if not whole_in_range(moved, each)[1]:
            return f"variables.{each.name}.next", f"with {taken} it is {moved:g}, {_wanted(each)}"
    raise ValueError(f"planner '{planner.name}' has a valid step in state {state}")


def _wanted(variable: BoundedVariable) -> str:
    return f"expected a whole number in {variable.low}..{variable.high}"
