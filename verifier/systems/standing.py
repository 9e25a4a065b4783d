"""What stands where: the class and the bin of every object of an environment, and the bins of the field of view."""

from collections.abc import Mapping

import numpy as np

from verifier.base.arrays import Ints, Mask
from verifier.base.errors import UsageError
from verifier.language.expressions import Source, evaluate
from verifier.language.expressions.syntax import Node
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.bins import Variable
from verifier.systems.channel import Standing
from verifier.systems.model import System
from verifier.systems.model_parts import EMPTY_CLASS, PlacedObject
from verifier.systems.space import truth


def viewed_bins(system: System, matrices: ConfusionMatrices) -> list[int]:
    """The bins of the field of view; none where the model has none."""
    if system.field_of_view_m is None:
        return []
    edges, (low, high) = matrices.edges_m, system.field_of_view_m
    for end in (low, high):
        if float(end) not in edges:
            message = f"no bin ends at {float(end):g}; {edges_text(matrices)}"
            hint = "let the field of view end where bins do, or count with such bins"
            raise system.model.at("field_of_view.distance_m").error(message, None, hint)
    inside = np.flatnonzero((edges[:-1] >= float(low)) & (edges[1:] <= float(high)))
    every = np.arange(matrices.bin_count)
    places = every[np.isin(matrices.distance_bin(every), inside) & (matrices.place_of(every) == every)]
    return list(map(int, places))


def edges_text(matrices: ConfusionMatrices) -> str:
    """Where distance bins begin and end, for messages."""
    return f"edges are {', '.join(f'{edge:g}' for edge in matrices.edges_m if np.isfinite(edge))} m"


def standing_in(
    system: System, environment: str, matrices: ConfusionMatrices, valuations: Mapping[str, Ints], ended: Mask
) -> Standing:
    """What stands where in each state, objects first; nothing in terminal states, where nobody looks."""
    looking, objects = np.flatnonzero(~ended), system.environment(environment)
    there = {name: value[looking] for name, value in valuations.items()}
    classes = tuple(sorted(system.model.environment_classes()))
    viewed = viewed_bins(system, matrices)
    shape = len(ended), len(objects) + len(viewed)
    what, bins = np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for j, placed in enumerate(objects):
        path = system.model.object_path(environment, j)
        present = truth(placed.when, there, len(looking), system.model.at(f"{path}.when"))
        states = looking[present]
        around = {name: value[present] for name, value in there.items()}
        bins[states, j] = _bins_of_object(system, matrices, placed, path, around, len(states))
        what[states, j] = _class_of_object(system, placed, path, around, len(states), classes)
    what[:, len(objects) :], bins[:, len(objects) :] = 0, viewed
    return Standing(classes, (*(placed.name for placed in objects), *("" for _ in viewed)), what, bins)


def _class_of_object(
    system: System, placed: PlacedObject, path: str, there: Mapping[str, Ints], count: int, classes: tuple[str, ...]
) -> Ints:
    """(count,) one above the number of its class; 0 for a place where there is no object."""
    if not placed.class_when:
        return np.full(count, 0 if placed.class_name == EMPTY_CLASS else classes.index(placed.class_name) + 1)
    source, name = system.model.at(f"{path}.class"), f"'{placed.name}'" if placed.name else "an object"
    which = _the_one_that_holds(placed.class_when, there, count, source, (f"{name} is", "of no class"))
    numbers: Ints = np.array([classes.index(name) + 1 for name in placed.class_when], dtype=np.int64)[which]
    return numbers


def _the_one_that_holds(
    conditions: Mapping[str, Node], there: Mapping[str, Ints], count: int, source: Source, words: tuple[str, str]
) -> Ints:
    """(count,) number of the condition that holds; InputError in these words where not exactly one does."""
    holds = np.stack([truth(node, there, count, source) for node in conditions.values()])
    wrong = np.flatnonzero(holds.sum(axis=0) != 1)
    if len(wrong):
        which = [name for name, holding in zip(conditions, holds[:, wrong[0]], strict=True) if holding]
        what = f"{' and '.join(which)}; exactly one condition must hold" if which else words[1]
        raise source.error(f"in state {state_text(there, int(wrong[0]))} {words[0]} {what}", None)
    return np.asarray(holds.argmax(axis=0))


def _bins_of_object(
    system: System,
    matrices: ConfusionMatrices,
    placed: PlacedObject,
    path: str,
    there: Mapping[str, Ints],
    count: int,
) -> Ints:
    """(count,) the bin it stands in."""
    source = system.model.at(f"{path}.distance_m")
    what = "place" if placed.class_name == EMPTY_CLASS else placed.class_name or placed.name or "object"
    distance = np.broadcast_to(np.asarray(evaluate(placed.distance_m, there, source), dtype=float), (count,))
    bins = matrices.bins_of(distance)
    outside = np.flatnonzero(bins < 0)
    if len(outside):
        state = int(outside[0])
        message = (
            f"in state {state_text(there, state)} the {what} is {distance[state]:g} m away, "
            f"and the bins cover [{matrices.edges_m[0]:g}, {matrices.edges_m[-1]:g}) m"
        )
        hint = "end the last bin of the matrices with null, change the model's constants, or use --canonical"
        if distance[state] < 0:
            hint = "a distance is not negative: write abs(...)"
        raise source.error(message, None, hint)
    for variable in matrices.variables:
        source = system.model.at(f"{path}.at.{variable.name}")
        own, name = placed.at.get(variable.name), placed.name or what
        if own is None and (placed.class_name != EMPTY_CLASS or variable.scope != "object"):
            message = f"the matrices depend on '{variable.name}', and '{name}' does not say it"
            raise system.model.at(path).error(message, None, f"add at = {{ {variable.name} = ... }}")
        inner = np.zeros(count, dtype=np.int64)
        if isinstance(own, Mapping):
            numbers = [_bin_named(variable, name, source) for name in own]
            words = f"'{name}' is in", f"no bin of '{variable.name}'"
            inner = np.array(numbers, dtype=np.int64)[_the_one_that_holds(own, there, count, source, words)]
        elif own is not None:
            values = np.broadcast_to(np.asarray(evaluate(own, there, source)), (count,))
            inner = variable.bins_of(values)
            if count and inner.min() < 0:
                state = int(inner.argmin())
                message = f"no bin of '{variable.name}' holds {values[state]:g}, where '{name}' is"
                raise source.error(f"in state {state_text(there, state)} {message}", None)
        bins = bins * variable.count + inner
    return bins


def _bin_named(variable: Variable, name: str, source: Source) -> int:
    try:
        return variable.bin_named(name)
    except UsageError as error:
        raise source.error(str(error), None) from None


def state_text(valuations: Mapping[str, Ints], state: int) -> str:
    """A state for people: `x = 3, v = 0`."""
    return ", ".join(f"{name} = {value[state]}" for name, value in valuations.items())
