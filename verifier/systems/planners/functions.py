"""Planners that are functions of arrays, in Python: for programs only, no file names one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from verifier.base.arrays import Columns, Mask
from verifier.base.errors import UsageError, shown, unknown_name
from verifier.language.expressions import Source, parse_expression
from verifier.language.expressions.evaluation import Value
from verifier.language.expressions.syntax import Name, Node, Number
from verifier.systems.declarations import check_declarations, hidden_names
from verifier.systems.model import SystemModel
from verifier.systems.model_parts import Memory, Planner, Range, Type


@dataclass(frozen=True, eq=False)
class ArrayFunction:
    """What decides by a function of arrays.

    Attributes:
        function: values of `asks` in any number of cases -> inputs and memory in each.
        asks: text -> expression.
        known: the inputs and the memory that may be set.
        needed: the inputs without a default, which must be.
    """

    function: Callable[[Columns], Columns]
    asks: Mapping[str, tuple[Node, Type | None]]
    known: tuple[str, ...]
    needed: tuple[str, ...]
    place: Source
    sets: None = field(default=None, init=False)

    @property
    def compared(self) -> tuple[Node, ...]:
        """The questions."""
        return tuple(node for node, _ in self.asks.values())

    def decided(self, views: Iterable[Columns]) -> Iterator[tuple[Mask, Columns]]:
        """See `verifier.systems.model_parts.Decider`: the function is called once for all views."""
        cases = list(views)
        count = len(next(iter(cases[0].values())))
        columns = self._called({text: np.concatenate([case[text] for case in cases]) for text in self.asks})
        for k in range(len(cases)):
            part = slice(k * count, (k + 1) * count)
            yield np.ones(count, dtype=bool), {name: values[part] for name, values in columns.items()}

    def explained(self, case: Mapping[str, Value]) -> tuple[Source, str]:
        """See `verifier.systems.model_parts.Decider`."""
        return self.place, "the function decides every case"

    def _called(self, cases: Columns) -> Columns:
        count = len(next(iter(cases.values())))
        returned = self.function(cases)
        if not isinstance(returned, Mapping):
            raise self._refused(f"expected a mapping of names to arrays, got {shown(returned)}")
        for name in returned:
            if name not in self.known:
                message, hint = unknown_name("input or memory", str(name), self.known)
                raise self._refused(f"{message}: {hint}")
        for name in self.needed:
            if name not in returned:
                raise self._refused(f"'{name}' has no default and was not set")
        arrays = {name: np.asarray(values) for name, values in returned.items()}
        for name, values in arrays.items():
            if values.shape != (count,) or values.dtype.kind not in "iufb":
                wanted = f"an array of {count} whole numbers"
                raise self._refused(f"{name}: expected {wanted}, got {values.dtype} of shape {values.shape}")
        return {name: v.astype(np.int64) if v.dtype.kind == "b" else v for name, v in arrays.items()}

    def _refused(self, message: str) -> UsageError:
        return UsageError(f"the function of {self.place.path}: {message}")


def with_planner(
    system: SystemModel,
    name: str,
    function: Callable[[Columns], Columns],
    asks: Sequence[str] = (),
    memory: Mapping[str, Mapping[str, object]] | None = None,
) -> SystemModel:
    """The model with one more planner, which is a function of arrays.

    Args:
        system: as `verifier.systems.reader.read_model` gives it.
        function: is given, by name, an int64 array of each variable that is not hidden and of memory, and of each
            question an array of truth values or numbers; all have one entry per case, a state with a report. It
            gives, by name, an array for each input that it sets (the others take their defaults) and for memory that
            changes. It must depend on nothing else, and is called once for each block of states as they are met,
            and once more for each reward that reads its inputs.
        asks: what it asks of the reports: `sees(ped)`, `count(ped)`, `report(truck) = forklift`.
        memory: name -> `{"range": [low, high], "initial": value}`.

    Raises:
        UsageError: a name that is taken, or memory that is none.
        InputError: a question that means nothing in this model.
    """
    if name in system.planners or not name.isidentifier():
        reason = "the model has a planner of that name" if name in system.planners else "this cannot be a name"
        raise UsageError(f"planner {shown(name)}: {reason}")
    place = Source("", system.file or None, f"planners.{name}")
    kept = tuple(_memory(key, entry) for key, entry in (memory or {}).items())
    hidden = hidden_names(system)
    readable = [variable.name for variable in system.variables if variable.name not in hidden] + [
        memory.name for memory in kept
    ]
    questions: dict[str, tuple[Node, Type | None]] = {name: (Name(name), "number") for name in readable}
    sources = [replace(place, text=text, path=f"planners.{name}.asks") for text in asks]
    questions |= {text: (parse_expression(text, source), None) for text, source in zip(asks, sources, strict=True)}
    places = {f"planners.{name}.asks[{len(questions) - len(asks) + k}]": source for k, source in enumerate(sources)}
    decider = ArrayFunction(
        function,
        questions,
        (*(variable.name for variable in system.inputs), *(memory.name for memory in kept)),
        tuple(variable.name for variable in system.inputs if variable.default is None),
        place,
    )
    planner = Planner(name, "function", (), memory=kept, decider=decider, places=places)
    return check_declarations(replace(system, planners={**system.planners, name: planner}))


def _memory(name: str, entry: Mapping[str, Any]) -> Memory:
    ends = [*entry.get("range", ()), entry.get("initial")] if isinstance(entry, Mapping) else []
    if len(ends) != 3 or not all(type(end) is int for end in ends) or set(entry) != {"range", "initial"}:
        wanted = '{"range": [low, high], "initial": value} in whole numbers'
        raise UsageError(f"memory {shown(name)}: expected {wanted}, got {shown(entry)}")
    low, high, initial = map(Number, ends)
    return Memory(name, Range(low, high), initial)
