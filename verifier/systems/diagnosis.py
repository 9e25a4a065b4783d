"""Why a planner has no valid step somewhere: the rule that holds there, and what is wrong with what it sets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from verifier.base.arrays import Ints, Mask
from verifier.base.errors import InputError, Place
from verifier.language.expressions import evaluate, resolve_sees
from verifier.language.expressions.syntax import Node
from verifier.perception.confusion.matrices import Label
from verifier.systems.behaviour import asked, view_of
from verifier.systems.memory import remembered
from verifier.systems.model import BoundedVariable
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
    case = f"in state {state_text(valuations, index)}"
    found = _reason(scene, told, state, case)
    if isinstance(found, InputError):
        return found
    path, reason = found
    source, report = scene.system.model.at(path), ", ".join(sorted(told))
    if not path.startswith(("planners", "inputs")):
        return source.error(f"{case} {reason}", None, _HINT)
    if path.endswith(".rules"):
        return source.error(f"no rule applies {case} on report {{{report}}}, and {reason}", None, _HINT)
    return source.error(
        f"planner '{scene.planner.name}' has no valid step {case} when the detector reports {report or 'nothing'}: "
        f"{reason}",
        None,
        _HINT,
    )


def _reason(scene: Scene, told: Label, state: Mapping[str, int], case: str) -> tuple[str, str] | InputError:
    """(dotted key, what is wrong there) for one state and observation, or the error itself."""
    system, planner = scene.system, scene.planner
    there = {name: np.array([found]) for name, found in state.items()}
    view = view_of(system, planner, told, there, 1)
    scope = {name: found.tolist()[0] for name, found in view.scope.items()}

    def value(node: Node) -> int | float | bool:
        found: int | float | bool = evaluate(system.resolve(resolve_sees(node, view.told)), scope)
        return found

    own: dict[str, int | float | bool] = {}
    rule, decides, source, missing = None, False, None, ""
    if planner.decider is not None:
        answers = asked(system, planner, view)
        (which, chosen), *_ = planner.decider.decided([answers])
        source, missing = planner.decider.explained({text: found.tolist()[0] for text, found in answers.items()})
        decides = bool(which[0])
        own = {name: found.tolist()[0] for name, found in chosen.items()} if decides else {}
    holding = [each for each in planner.commands if value(each.when)]
    if len(holding) > 1:
        lines = " and ".join(str(system.model.at(each.path).place(None).line) for each in holding[:2])
        message = f"{case} the guards of lines {lines} both hold on report {{{', '.join(sorted(told))}}}"
        return system.model.at(holding[1].path).error(message, None, "in every case one command decides")
    if not decides:
        rule = next((each for each in (*holding, *planner.rules) if value(each.when)), None)
        own = {name: value(node) for name, node in (rule.inputs or {}).items()} if rule else {}
    if rule is None and not decides and planner.is_foreign and not planner.rules:
        hint = f"{_HINT}; rules = [...] of the planner decide where the file does not"
        if source is None:
            message = f"no guard holds {case} on report {{{', '.join(sorted(told))}}}"
            return InputError(message, Place(system.model.at(planner.commands[0].path).file), hint)
        return source.error(missing, None, hint)
    unset = [each.name for each in system.inputs if each.name not in system.defaults and each.name not in own]
    if unset and not decides and rule is None:
        return f"planners.{planner.name}.rules", f"'{unset[0]}' has no default"
    inputs = {each.name: own.get(each.name) for each in system.inputs}
    inputs |= {name: value(system.defaults[name]) for name, found in inputs.items() if found is None}
    place = rule.path if rule else f"planners.{planner.name}"
    for each in (*system.inputs, *(variable for variable, _ in remembered(system, planner))):
        found = inputs.get(each.name, own.get(each.name))
        if found is not None and not whole_in_range(found, each)[1]:
            message = f"{each.name} = {found:g}, {_wanted(each)}"
            if decides and source is not None and each.name in own:
                return source.error(message, None)
            return f"{place}.set.{each.name}" if each.name in own else f"inputs.{each.name}.default", message
    whole = {name: int(found) for name, found in inputs.items() if found is not None}
    taken = ", ".join(f"{name} = {found}" for name, found in whole.items()) or "this step"
    if not evaluate(system.admissible, {**state, **whole}):
        if decides and source is not None:
            return source.error(f"{case} {taken} is not admissible", None, _HINT)
        return place, f"{taken} is not admissible"
    for each in system.variables:
        moved = evaluate(system.dynamics[each.name], {**state, **whole})
        if not whole_in_range(moved, each)[1]:
            beyond = not each.low <= moved <= each.high
            wanted = f"outside {each.low}..{each.high}" if beyond else _wanted(each)
            return f"variables.{each.name}.next", f"the next '{each.name}' is {moved:g}, {wanted}"
    raise ValueError(f"planner '{planner.name}' has a valid step in state {state}")


def _wanted(variable: BoundedVariable) -> str:
    return f"expected a whole number in {variable.low}..{variable.high}"
