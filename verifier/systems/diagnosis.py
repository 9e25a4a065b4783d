"""Why a planner has no valid step somewhere: the rule that holds there, and what is wrong with what it sets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from verifier.base.arrays import Ints, Mask
from verifier.base.errors import InputError
from verifier.language.expressions import evaluate, resolve_sees
from verifier.language.expressions.syntax import FALSE, Node
from verifier.perception.confusion.matrices import Label
from verifier.systems.memory import frames_read, in_frames, remembered, tracked, what_rules_read
from verifier.systems.model import BoundedVariable, System
from verifier.systems.model_parts import Planner
from verifier.systems.scene import Scene
from verifier.systems.space import whole_in_range
from verifier.systems.standing import state_text

_HINT = "add or correct a rule for this case, or make the state terminal"


def no_valid_step(scene: Scene, nowhere: Mask, valuations: Mapping[str, Ints]) -> InputError:
    """The error for the first state without a next state under some observation.

    Args:
        scene: for its planner, which decides there by its rules.
        nowhere: (k, observations * outcomes) bool, no next state.
        valuations: variable name -> (k,) int64.
    """
    index = int(np.flatnonzero(nowhere.any(axis=1))[0])
    number, outcome = divmod(int(np.flatnonzero(nowhere[index])[0]), len(scene.world.outcomes))
    told, drawn = scene.observations[number], scene.world.outcomes[outcome]
    valuations = {**valuations, **{name: np.full(index + 1, value) for name, value in drawn.items()}}
    state = {name: int(value[index]) for name, value in valuations.items()}
    path, reason = _reason(scene.system, scene.planner, told, state)
    if not path.startswith(("planners", "inputs")):
        return scene.system.model.at(path).error(f"in state {state_text(valuations, index)} {reason}", None, _HINT)
    if path.endswith(".rules"):
        message = f"no rule applies in state {state_text(valuations, index)} on report {{{', '.join(sorted(told))}}}"
        return scene.system.model.at(path).error(f"{message}, and {reason}", None, _HINT)
    report = ", ".join(sorted(told)) or "nothing"
    return scene.system.model.at(path).error(
        f"planner '{scene.planner.name}' has no valid step in state {state_text(valuations, index)} when the "
        f"detector reports {report}: {reason}",
        None,
        _HINT,
    )


def _reason(system: System, planner: Planner, told: Label, state: Mapping[str, int]) -> tuple[str, str]:
    """(dotted key, what is wrong there) for one state and observation."""

    seen = in_frames(told, frames_read(planner, system.model.frames))
    there = {name: np.array([found]) for name, found in state.items()}
    after = {name: found.tolist()[0] for name, found in tracked(system, planner, seen, there, 1).items()}
    read, scope = what_rules_read(planner, seen), {**state, **after}

    def value(node: Node) -> int | float | bool:
        found: int | float | bool = evaluate(system.resolve(resolve_sees(node, read)), scope)
        return found

    rule = next((each for each in planner.rules if value(each.when)), None)
    unset = [each.name for each in system.inputs if each.name not in system.defaults]
    if rule is None and unset:
        return f"planners.{planner.name}.rules", f"'{unset[0]}' has no default"
    own = (rule.inputs or {}) if rule else {}
    inputs = {each.name: value(own.get(each.name, system.defaults.get(each.name, FALSE))) for each in system.inputs}
    for each in system.inputs:
        if not whole_in_range(inputs[each.name], each)[1]:
            path = f"{rule.path}.set.{each.name}" if rule and each.name in own else f"inputs.{each.name}.default"
            return path, f"{each.name} = {inputs[each.name]:g}, {_wanted(each)}"
    whole = {name: int(found) for name, found in inputs.items()}
    taken = ", ".join(f"{name} = {found}" for name, found in whole.items()) or "this step"
    if not evaluate(system.admissible, {**state, **whole}):
        return rule.path if rule else f"planners.{planner.name}", f"{taken} is not admissible"
    for each in system.variables:
        moved = evaluate(system.dynamics[each.name], {**state, **whole})
        if not whole_in_range(moved, each)[1]:
            beyond = not each.low <= moved <= each.high
            wanted = f"outside {each.low}..{each.high}" if beyond else _wanted(each)
            return f"variables.{each.name}.next", f"the next '{each.name}' is {moved:g}, {wanted}"
    for each, _ in remembered(system, planner):
        kept = value(own[each.name]) if each.name in own else 0
        if each.name in own and not whole_in_range(kept, each)[1]:
            path = f"{rule.path}.set.{each.name}" if rule else f"planners.{planner.name}"
            return path, f"{each.name} = {kept:g}, {_wanted(each)}"
    raise ValueError(f"planner '{planner.name}' has a valid step in state {state}")


def _wanted(variable: BoundedVariable) -> str:
    return f"expected a whole number in {variable.low}..{variable.high}"
