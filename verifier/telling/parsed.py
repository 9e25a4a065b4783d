"""A spec and its model as they were read, for people."""

from collections.abc import Iterator, Mapping

from verifier.base.errors import one_line
from verifier.base.words import counted
from verifier.study.parsed import ParsedEnvironment, ParsedPlanner, ParsedRule, ParsedStudy, ParsedVariable
from verifier.telling.terminal import text_of


def parsed_text(study: ParsedStudy) -> str:
    """The text of `verify run --parse`: requirements, then the model, then what its chains are like."""
    return text_of(map(one_line, _lines(study)))


def _lines(study: ParsedStudy) -> Iterator[str]:
    for requirement in study.requirements:
        yield f"{requirement.name}: {requirement.question}"
    yield f"model {study.model}"
    if study.step_s:
        yield f"  a step takes {study.step_s} s, with {counted(study.frames, 'report')}"
    if study.field_of_view_m is not None:
        yield f"  field of view from {study.field_of_view_m[0]} to {study.field_of_view_m[1]} m"
    if study.constants:
        yield f"  constants {', '.join(f'{name} = {value}' for name, value in study.constants.items())}"
    for variable in study.variables:
        yield f"  variable {_variable(variable)}{', hidden' if variable.hidden else ''}"
    for move in study.world:
        chances = "".join(f", {value} with {chance}" for value, chance in move.probability.items())
        where = "" if move.admissible is None else f", admissible {move.admissible}"
        yield f"  world {move.name} in {move.low}..{move.high}{chances}{where}"
    for variable in study.steers:
        yield f"  input {_variable(variable)}"
    for name, condition in study.conditions.items():
        yield f"  {name} {condition}"
    for kind, named in (("quantity", study.quantities), ("label", study.labels), ("reward", study.rewards)):
        for name, meaning in named.items():
            yield f"  {kind} {name} = {meaning}"
    for environment in study.environments:
        yield f"environment {environment.name}"
        yield from environment_lines(environment)
    for planner in study.planners:
        yield from _planner(planner)
    for case in study.cases:
        states = counted(case.states, "state")
        same = f"in {case.same} of them nothing depends on the report"
        yield f"{case.case}: {states} before the end; {same}"
    for remark in study.remarks:
        yield f"note: {remark}"


def environment_lines(environment: ParsedEnvironment) -> Iterator[str]:
    """What stands there, and what it changes."""
    for placed in environment.objects:
        classes = placed.classes.items()
        words = [name if when == "true" else f"{name} where {when}" for name, when in classes]
        there = "" if placed.when == "true" else f", there where {placed.when}"
        named_as = f" named {placed.name}" if placed.name else ""
        further = "".join(f", {name} {_bin(where)}" for name, where in placed.at.items())
        yield f"  {' or '.join(words)}{named_as} at {placed.distance_m} m{further}{there}"
    for key, text in environment.changes.items():
        yield f"  {key} = {text}"


def _bin(where: str | Mapping[str, str]) -> str:
    return where if isinstance(where, str) else " or ".join(f"{name} where {when}" for name, when in where.items())


def _variable(variable: ParsedVariable) -> str:
    more = {"next": variable.next, "default": variable.default, "initial": variable.initial}
    said = "".join(f", {key} {value}" for key, value in more.items() if value is not None)
    return f"{variable.name} in {variable.low}..{variable.high}{said}"


def _planner(planner: ParsedPlanner) -> Iterator[str]:
    yield f"planner {planner.name}, kind {planner.kind}{f', {planner.file}' if planner.file else ''}"
    for variable in planner.memory:
        yield f"  memory {_variable(variable)}"
    for name, text in planner.trackers.items():
        yield f"  tracker {name} of {text}"
    if planner.asks:
        rows = "" if planner.rows is None else f", {planner.rows} rows"
        yield f"  {', '.join(planner.asks)} -> {', '.join(planner.sets) or 'what the function gives'}{rows}"
    for kind, rules in (("command", planner.commands), ("run", planner.runs), ("rule", planner.rules)):
        for number, rule in enumerate(rules):
            yield f"  {kind}s[{number}] {rule.when} -> {_sets(rule)}"


def rule_text(rule: ParsedRule) -> str:
    """A rule, a run or a command in words: `where sees(ped): speed = 0`."""
    return f"{'otherwise' if rule.when == 'true' else f'where {rule.when}'}: {_sets(rule)}"


def _sets(rule: ParsedRule) -> str:
    if rule.reach is not None:
        return f"reach {rule.reach} through {rule.through}"
    if rule.stay:
        return "stay"
    return ", ".join(f"{name} = {value}" for name, value in rule.sets.items()) or "defaults"
