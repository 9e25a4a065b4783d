"""What a system model declares, checked as a whole: every name once, every expression over names it may use.

| where                                        | may speak about                                           |
|----------------------------------------------|-----------------------------------------------------------|
| constants, ranges, what an environment sets  | constants                                                 |
| labels, quantities, initial, terminal, distances, defaults, runs | constants, variables, labels, quantities |
| the weight of initial states                 | constants, variables, labels, quantities                  |
| probabilities of draws, what the world may decide | the same and what the world decides                  |
| admissible                                   | the same and inputs: labels and quantities of the old state |
| next values, rewards                         | the same and what the world draws or decides              |
| rules: conditions and inputs                 | constants, variables, labels, quantities and `sees(class)` |
| formulas of planners                         | what a spec may speak about                                |

Rules, runs, trackers and defaults read nothing that is hidden from planners, also not by way of a label.
"""

import itertools
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace

from verifier.base.errors import InputError, unknown_name
from verifier.language.expressions import Source, check_type, replace_atoms, substitute, to_text
from verifier.language.expressions.syntax import TRUE, Call, Name, Node, atoms_in, fold, labels_of, names_in
from verifier.systems.model import SystemModel
from verifier.systems.model_parts import (
    EMPTY_CLASS,
    Decision,
    Draw,
    PlacedObject,
    Planner,
    Rule,
    Run,
    Type,
    Variable,
    Variant,
    dependency_order,
    presence,
)

VIEW_AND_PLACE = "the field of view draws false positives in every bin already; remove the empty place"


def check_declarations(model: SystemModel) -> SystemModel:
    """Check names and types of a whole model; the same where objects do not depend on the presence of others.

    Raises:
        InputError: naming the file and the dotted key of the first offending element.
    """
    environments = {
        name: _settled(objects, model.at(f"environments.{name}")) for name, objects in model.environments.items()
    }
    settled = replace(model, environments=environments)
    _Checker(model, _declared(model), hidden_names(settled)).check()
    return settled


def _settled(objects: tuple[PlacedObject, ...], place: Source) -> tuple[PlacedObject, ...]:
    """The same with `present(...)` replaced by what it means, where they ask it of each other."""
    atoms: set[Call] = set()

    def named(_: str, node: Node) -> Node:
        own = {call for call in atoms_in(node) if call.function == "present"}
        atoms.update(own)
        return replace_atoms(node, lambda call: Name(to_text(call)) if call in own else call)

    asking = tuple(placed.with_nodes(named) for placed in objects)
    nodes = {to_text(atom): presence(asking)(atom) for atom in atoms}
    meanings: dict[str, Node] = {}
    for text in dependency_order(nodes, place):
        meanings[text] = substitute(nodes[text], meanings, place)
    return tuple(placed.with_nodes(lambda _, node: substitute(node, meanings, place)) for placed in asking)


def hidden_names(model: SystemModel) -> dict[str, str]:
    """What planners may not read -> a hidden variable behind it: itself, or what a label or quantity depends on.

    Unless the file says so, those variables are hidden that are moved by what the world draws, or by something
    hidden, in some environment.
    """

    def read_by(node: Node) -> frozenset[str]:
        asked = {labels_of(atom)[0] for atom in atoms_in(node)}
        objects = itertools.chain.from_iterable(model.environments.values()) if asked else ()
        return names_in(node).union(*(names_in(placed.is_present(what)) for placed in objects for what in asked))

    variants = model.variants.values()
    tables = [model.labels, model.quantities, *(variant.labels for variant in variants)]
    reading = [(name, read_by(node), False) for table in tables for name, node in table.items()]
    drawn = {choice.name: choice.name for choice in model.world}
    hidden = {**drawn, **{variable.name: variable.name for variable in model.variables if variable.hidden}}
    for own in model.variables:
        moves = [own.next, *(variant.next.get(own.name) for variant in variants)]
        reading += [(own.name, read_by(node), True) for node in moves if node is not None and own.hidden is None]
    count = -1
    while count != len(hidden):
        count = len(hidden)
        for name, names, moved in reading:
            behind = next((hidden[name] for name in sorted(names) if name in hidden), None)
            if behind is not None:
                hidden.setdefault(name, name if moved else behind)
    return {name: behind for name, behind in hidden.items() if name not in drawn}


def _declared(model: SystemModel) -> dict[str, str]:
    """Name -> what it is; InputError when it is two things at once."""
    kinds: dict[str, tuple[str, Iterable[str]]] = {
        "constants": ("a constant", model.constants),
        "variables": ("a variable", [variable.name for variable in model.variables]),
        "inputs": ("an input", [variable.name for variable in model.inputs]),
        "world": ("an input of the world", [choice.name for choice in model.world]),
        "quantities": ("a quantity", model.quantities),
        "labels": ("a label", model.labels),
        "environments": ("a class", sorted(model.environment_classes() | {EMPTY_CLASS})),
    }
    seen: dict[str, str] = {}
    for table, (kind, names) in kinds.items():
        for name in names:
            if name in seen:
                path = table if table == "environments" else f"{table}.{name}"
                message = f"'{name}' is declared both as {seen[name]} and as {kind}"
                raise model.at(path).error(message, None, "give one of them another name")
            seen[name] = kind
    for name, objects in model.environments.items():
        _check_objects(model, name, objects)
    return seen


def _check_objects(model: SystemModel, environment: str, objects: tuple[PlacedObject, ...]) -> None:
    """Refuse places beside objects or within a field of view, and names that are not an object's own."""
    classes = {placed.class_name for placed in objects}
    place = model.at(f"environments.{environment}")
    if EMPTY_CLASS in classes and len(classes) > 1:
        raise place.error(
            "holds objects and empty places",
            None,
            "leave the empty places out; false positives beside objects need a field_of_view",
        )
    if model.field_of_view_m is not None and any(
        placed.class_name == EMPTY_CLASS and placed.when == TRUE for placed in objects
    ):
        raise place.error(VIEW_AND_PLACE, None)
    names = [placed.name for placed in objects if placed.name]
    for name in names:
        if names.count(name) > 1:
            raise place.error(f"two objects are named '{name}'", None)


@dataclass(frozen=True)
class _Checker:
    """Types of every expression of a model, once its names are known to be distinct."""

    model: SystemModel
    declared: Mapping[str, str]
    hidden: Mapping[str, str]

    def check(self) -> None:
        model = self.model
        constants: dict[str, Type] = dict.fromkeys(model.constants, "number")
        state: dict[str, Type] = {**constants, **dict.fromkeys([own.name for own in model.variables], "number")}
        state.update(dict.fromkeys(model.quantities, "number"))
        state.update(dict.fromkeys(model.labels, "boolean"))
        setting: dict[str, Type] = {**state, **dict.fromkeys([variable.name for variable in model.inputs], "number")}
        moving: dict[str, Type] = {**setting, **dict.fromkeys([choice.name for choice in model.world], "number")}
        for name, node in model.constants.items():
            self._type(f"constants.{name}", node, constants, "number")
        for index, node in enumerate(model.constraints):
            self._type(f"constraints[{index}]", node, constants, "boolean")
        self._check_ranges("variables", model.variables, constants)
        self._check_ranges("inputs", model.inputs, constants)
        self._check_ranges("world", model.world, constants)
        decided = [choice.name for choice in model.world if isinstance(choice, Decision)]
        deciding: dict[str, Type] = {**state, **dict.fromkeys(decided, "number")}
        for own in model.world:
            if isinstance(own, Decision):
                self._type(f"world.{own.name}.admissible", own.admissible, deciding, "boolean")
                continue
            for value, chance in own.chances.items():
                path = f"world.{own.name}.probability.{value}"
                for node in chance if isinstance(chance, tuple) else () if chance is None else (chance,):
                    self._type(path, node, deciding, "number")
        for name, node in model.quantities.items():
            self._type(f"quantities.{name}", node, state, "number")
        for name, node in model.labels.items():
            self._type(f"labels.{name}", node, state, "boolean")
        for variable in model.variables:
            if variable.next is not None:
                self._type(f"variables.{variable.name}.next", variable.next, moving, "number")
        for variable in model.inputs:
            if variable.default is not None:
                self._type(f"inputs.{variable.name}.default", variable.default, state, "number")
                self._refuse_hidden(f"inputs.{variable.name}.default", variable.default)
        for name, node in model.rewards.items():
            self._type(f"rewards.{name}", node, moving, "number")
        self._type("weight", model.weight, state, "number")
        for name in model.variants:
            self._check_variant(f"environments.{name}", model.variants[name], constants, state, moving)
        self._type("admissible", model.admissible, setting, "boolean")
        self._type("initial", model.initial, state, "boolean")
        self._type("terminal", model.terminal, state, "boolean")
        for name, objects in model.environments.items():
            for index, placed in enumerate(objects):
                path = model.object_path(name, index)
                self._type(f"{path}.distance_m", placed.distance_m, state, "number")
                self._type(f"{path}.when", placed.when, state, "boolean")
                for condition in placed.class_when.values():
                    self._type(f"{path}.class", condition, state, "boolean")
                for name, where in placed.at.items():
                    if not isinstance(where, Mapping):
                        self._type(f"{path}.at.{name}", where, state, "number")
                        continue
                    for condition in where.values():
                        self._type(f"{path}.at.{name}", condition, state, "boolean")
        for index, end in enumerate(model.field_of_view_m or ()):
            self._type(f"field_of_view.distance_m[{index}]", end, constants, "number")
        for planner in model.planners.values():
            self._check_planner(planner, state)

    def _check_ranges(
        self, table: str, variables: tuple[Variable | Draw | Decision, ...], constants: Mapping[str, Type]
    ) -> None:
        for variable in variables:
            for index, end in enumerate((variable.range.low, variable.range.high)):
                self._type(f"{table}.{variable.name}.range[{index}]", end, constants, "number")

    def _check_variant(
        self,
        path: str,
        variant: Variant,
        constants: Mapping[str, Type],
        state: Mapping[str, Type],
        moving: Mapping[str, Type],
    ) -> None:
        model = self.model
        variables = {variable.name for variable in model.variables}
        tables: tuple[tuple[str, str, Mapping[str, Node], Iterable[str], Mapping[str, Type], Type], ...] = (
            ("set", "constant", variant.constants, model.constants, constants, "number"),
            ("next", "variable", variant.next, variables, moving, "number"),
            ("labels", "label", variant.labels, model.labels, state, "boolean"),
        )
        for key, kind, nodes, known, types, wanted in tables:
            for name, node in nodes.items():
                if name not in known:
                    raise model.at(f"{path}.{key}.{name}").unknown(kind, name, known)
                self._type(f"{path}.{key}.{name}", node, types, wanted)
        self._type(f"{path}.initial", variant.initial, state, "boolean")
        self._type(f"{path}.weight", variant.weight, state, "number")
        if variant.terminal is not None:
            self._type(f"{path}.terminal", variant.terminal, state, "boolean")

    def _check_planner(self, planner: Planner, state: Mapping[str, Type]) -> None:
        own = [memory.name for memory in planner.memory]
        own += [name for tracker in planner.trackers for name in tracker.variables]
        for name in own:
            if name in self.declared or own.count(name) > 1:
                kind = self.declared.get(name, "two things of the planner")
                raise self._fail(f"planners.{planner.name}", f"'{name}' is declared already, as {kind}")
        for memory in planner.memory:
            constants: dict[str, Type] = dict.fromkeys(self.model.constants, "number")
            ends = {"range[0]": memory.range.low, "range[1]": memory.range.high, "initial": memory.initial}
            for key, node in ends.items():
                self._type(f"planners.{planner.name}.memory.{memory.name}.{key}", node, constants, "number")
        state = {**state, **dict.fromkeys((memory.name for memory in planner.memory), "number")}
        for tracker in planner.trackers:
            path = f"planners.{planner.name}.trackers.{tracker.name}.of"
            self._type(path, tracker.of, state, "boolean", observes=True)
            self._refuse_hidden(path, tracker.of)
            if any(atom.function == "confirmed" for atom in atoms_in(tracker.of)):
                raise self._fail(path, "a tracker is of what is reported, not of confirmed(...)")
        if planner.chooses and self.model.world:
            drawn = ", ".join(f"'{choice.name}'" for choice in self.model.world)
            message = f"planner '{planner.name}' is computed for a world that does not move on its own"
            raise self._fail(f"planners.{planner.name}.kind", f"{message}, and this one moves {drawn}", "use rules")
        self._check_reading(planner)
        self._check_decider(planner, state)
        rules: tuple[Rule | Run, ...] = (*planner.commands, *planner.rules, *planner.runs)
        for rule in rules:
            self._type(f"{rule.path}.when", rule.when, state, "boolean", observes=True)
            self._refuse_hidden(f"{rule.path}.when", rule.when)
            if rule.inputs is not None:
                self._check_inputs(f"{rule.path}.set", rule.inputs, state, {memory.name for memory in planner.memory})
                for name, node in rule.inputs.items():
                    self._refuse_hidden(f"{rule.path}.set.{name}", node)
            elif isinstance(rule, Rule) and self.model.world:
                raise self._fail(f"{rule.path}.stay", "stay = true would stop the world too; set the inputs")
        for run in planner.runs:
            self._type(f"{run.path}.reach", run.reach, state, "boolean")
            self._type(f"{run.path}.through", run.through, state, "boolean")
        if planner.formula is not None:
            self._type(f"planners.{planner.name}.formula", planner.formula, self.model.types(), "boolean")

    def _check_decider(self, planner: Planner, state: Mapping[str, Type]) -> None:
        """Refuse questions that mean nothing, and what is set and is neither an input nor memory."""
        if planner.decider is None:
            return
        for index, (node, kind) in enumerate(planner.decider.asks.values()):
            path = f"planners.{planner.name}.asks[{index}]"
            self._type(path, node, state, kind, observes=True)
            self._refuse_hidden(path, node)
        if planner.decider.sets is not None:
            where, remembered = f"planners.{planner.name}.sets[0]", {memory.name for memory in planner.memory}
            hint = "it sets every input of the model that has no default, memory, and nothing else"
            self._check_set(where, planner.decider.sets, remembered, hint)

    def _check_reading(self, planner: Planner) -> None:
        """Refuse counts and reports of other frames than the last, trackers that are not there, and other frames."""
        nodes = planner.nodes
        trackers = {tracker.name for tracker in planner.trackers}
        path = f"planners.{planner.name}.reading"
        for atom in sorted({atom for node in nodes for atom in atoms_in(node)}, key=to_text):
            if atom.function in ("count", "report") and planner.reading != "last":
                reading = f'"{planner.reading}"' if isinstance(planner.reading, str) else list(planner.reading)
                asked = to_text(atom).rpartition(" = ")[0] if atom.function == "report" else to_text(atom)
                message = f"{asked} means the last frame; reading = {reading} goes with sees only"
                raise self._fail(path, message)
            if atom.function == "confirmed" and labels_of(atom)[0] not in trackers:
                source = self.model.text_at(f"planners.{planner.name}.rules")
                raise source.unknown("tracker", labels_of(atom)[0], trackers)
        if not isinstance(planner.reading, str) and planner.reading[1] != self.model.frames:
            message = f"expected [h, {self.model.frames}], as many frames as a step has, got {list(planner.reading)}"
            raise self._fail(path, message)

    def _check_inputs(
        self, path: str, inputs: Mapping[str, Node], state: Mapping[str, Type], memory: Set[str]
    ) -> None:
        self._check_set(
            path, inputs, memory, "every rule sets every input of the model that has no default, and nothing else"
        )
        for name, node in inputs.items():
            self._type(f"{path}.{name}", node, state, "number", observes=True)

    def _check_set(self, path: str, names: Iterable[str], memory: Set[str], rule: str) -> None:
        wanted, given = [variable.name for variable in self.model.inputs], list(names)
        needed = {variable.name for variable in self.model.inputs if variable.default is None}
        for name in given:
            if name not in {*wanted, *memory}:
                message, hint = unknown_name("input or memory" if memory else "input", name, {*wanted, *memory})
                raise self.model.text_at(path).error(message, None, f"{hint}; {rule}")
        if not needed <= set(given):
            message = f"expected a value for {', '.join(wanted) or 'no input'}; got {', '.join(given) or 'none'}"
            raise self.model.text_at(path).error(message, None, rule)

    def _type(
        self, path: str, node: Node, types: Mapping[str, Type], expected: Type | None, *, observes: bool = False
    ) -> None:
        for atom in sorted(atoms_in(node), key=to_text):
            self._check_atom(path, atom, observes=observes)
            if types.keys() == self.model.constants.keys() and self.model.variables:
                raise self._fail(path, f"{atom.function}(...) cannot be used here, where constants are alone")
        for name in _names_at(node):
            kind = self.declared.get(name.name)
            if kind is not None and name.name not in types:
                message = f"'{name.name}' is {kind}, which cannot be used here"
                advice = f"in the rules of a planner ask sees({name.name})" if kind == "a class" else None
                raise self.model.text_at(path).error(message, name.position, advice)
        check_type(node, types, self.model.text_at(path), expected, reports=True)

    def _check_atom(self, path: str, atom: Call, *, observes: bool) -> None:
        name = labels_of(atom)[0]
        if observes == (atom.function == "present"):
            where = "everywhere but in planners" if observes else "in the rules of a planner"
            raise self._fail(path, f"{atom.function}(...) belongs {where}")
        if atom.function in ("sees", "count") and name == EMPTY_CLASS:
            hint = "ask what is not reported: !sees(ped) & !sees(obs)"
            raise self._fail(path, f"{atom.function}({name}): nothing is ever reported as '{EMPTY_CLASS}'", hint)
        refuse_absent(self.model, atom, self.model.at(path))

    def _refuse_hidden(self, path: str, node: Node) -> None:
        """Refuse what reads a hidden variable, by way of a label or quantity or at once."""
        hint = "write hidden = false if the planner measures it"
        for name in _names_at(node):
            behind = self.hidden.get(name.name)
            if behind is not None:
                moved = next(variable.hidden is None for variable in self.model.variables if variable.name == behind)
                why = f"hidden from planners: {'the world moves it' if moved else 'the model says so'}"
                what = f"'{behind}'" if name.name == behind else f"'{name.name}' reads '{behind}', which"
                message = f"{what} is {why}"
                raise self.model.text_at(path).error(message, name.position, hint)

    def _fail(self, path: str, message: str, hint: str | None = None) -> InputError:
        return self.model.text_at(path).error(message, None, hint)


def refuse_absent(model: SystemModel, node: Node, source: Source) -> None:
    """Refuse `report(...)` of what is no object of any environment, `present(...)` of what is no class either."""
    names = {placed.name for objects in model.environments.values() for placed in objects} - {""}
    for atom in sorted(atoms_in(node), key=to_text):
        known = names | model.environment_classes() if atom.function == "present" else names
        if atom.function in ("report", "present") and labels_of(atom)[0] not in known:
            raise source.unknown("object", labels_of(atom)[0], known, atom.position)


def _names_at(node: Node) -> list[Name]:
    """Every name in `node` where it stands, but for the classes inside `sees(...)`."""
    names: list[Name] = []
    fold(node, lambda name, _: names.append(name) if isinstance(name, Name) else None)
    return names
