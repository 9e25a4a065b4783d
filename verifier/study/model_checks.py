"""What is odd about a model and its planners, as far as the chains of a study show it.

* A run that ends on a false positive, while no requirement says anything about where it ends: what would come
  after is not looked at.
* A class that a planner asks about and that is never reported to it, in no environment of the model.
* A rule that decides nowhere: no reached state and report leads to it. One whose condition holds nowhere is named
  only where the constants are those of the model, one that others shadow always.
* A planner for which nothing depends on perception.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import Ints, Mask, grouped, rows_of
from verifier.base.documents import Count
from verifier.base.words import counted
from verifier.perception.confusion import EMPTY, rates
from verifier.study.case import Case
from verifier.systems.behaviour import questions_of, view_of, where_applies
from verifier.systems.standing import state_text

MOST_CASES = 2**20
"""States times observations of one chain in which rules are looked at."""


@dataclass(frozen=True)
class CaseShare:
    """How much of a chain depends on perception.

    Attributes:
        case: planner, environment and swept constants.
        states: that do not end the run.
        same: those of them that every report leaves in the same way.
    """

    case: str
    states: Count
    same: Count


@dataclass(frozen=True, eq=False)
class Look:
    """What one chain shows.

    Attributes:
        ends: what is odd about its ends.
        reported: classes that some report may name.
        holds, decides: (rules,) whether the condition of each command and rule holds somewhere, and whether it
            decides somewhere; None where that is not looked at.
    """

    case: Case
    share: CaseShare
    ends: tuple[str, ...]
    reported: frozenset[str]
    holds: Mask | None = None
    decides: Mask | None = None


def look_at(case: Case) -> Look:
    """What the chain of a case shows."""
    skeleton, planner = case.states, case.planner
    going = ~skeleton.terminal
    told = np.append(skeleton.depends_on_reports, False)[skeleton.entry]
    same = int((going & ~np.logical_or.reduceat(told, skeleton.indptr[:-1])).sum())
    channel = skeleton.channel
    pairs = channel.columns_used(np.arange(len(channel.bins)))
    drawn = case.counts[pairs[:, 0], :, pairs[:, 1]].sum(axis=0) > 0
    labels = (label for label, met in zip(channel.labels, drawn.tolist(), strict=True) if met)
    used: tuple[Mask | None, Mask | None] = (None, None)
    small = skeleton.state_count * len(channel.observations) <= MOST_CASES
    if small and not planner.chooses and planner.decider is None:
        used = _used(case)
    return Look(
        case,
        CaseShare(str(case), int(going.sum()), same),
        tuple(_ends_on_false_positives(case)),
        frozenset().union(*labels),
        *used,
    )


def model_remarks(looks: Sequence[Look]) -> Iterator[str]:
    """What is odd about the model of some cases, for people; see the module."""
    for look in looks:
        yield from look.ends
    for name, mine in grouped((look.case.planner.name, look) for look in looks).items():
        yield from _never_reported(mine)
        yield from _rules_never_used(mine)
        if all(look.share.states == look.share.same > 0 for look in mine):
            yield f"planner {name}: nothing depends on perception in any reached state"


def _ends_on_false_positives(case: Case) -> Iterator[str]:
    """States in which nothing stands, and a report leads to an end that silence would not lead to.

    Only ends in which every proposition of the requirements is as before: else they speak about them.
    """
    skeleton = case.states
    empty = skeleton.channel.labels.index(EMPTY)
    alone = np.asarray(np.isin(skeleton.channel.columns, (-1, empty)).all(axis=1))
    going = np.flatnonzero(~skeleton.terminal)
    if not alone.any() or not len(going):
        return
    source, entry = rows_of(skeleton.indptr), skeleton.entry
    summed = entry < len(skeleton.entry_row)
    false, silent = np.zeros(len(entry), dtype=bool), np.zeros(len(entry), dtype=bool)
    kinds = entry[summed]
    silent[summed] = skeleton.entry_observations[kinds, : skeleton.channel.outcome_count].any(axis=1)
    false[summed] = alone[skeleton.entry_row[kinds]]
    ends = skeleton.terminal[skeleton.indices]
    over = np.zeros(skeleton.state_count, dtype=bool)
    over[source[silent & ends]] = True
    false &= ~silent & ends & ~over[source]
    with np.errstate(invalid="ignore"):
        false &= skeleton.fill(rates(case.counts)) > 0
    for node in case.study.conditions.values():
        seen = skeleton.mask_of(node)
        false &= seen[source] == seen[skeleton.indices]
    if false.any():
        states = np.unique(source[false])
        where = state_text(skeleton.valuations, int(states[0]))
        yield (
            f"{case}: the run ends on a false positive in {counted(len(states), 'state')} ({where}), and no "
            "requirement says anything about that end: what the planner would do afterwards is not looked at"
        )


def _never_reported(looks: Sequence[Look]) -> Iterator[str]:
    """Classes asked about that no column which is drawn from reports; only where every environment is looked at."""
    case = looks[0].case
    if {look.case.environment for look in looks} != set(case.study.inputs.model.environments):
        return
    reported = frozenset().union(*(look.reported for look in looks))
    for name in sorted(questions_of(case.system, case.planner, case.study.grid.goal_formula).named - reported):
        known = ", ".join(sorted(reported)) or "nothing"
        message = f"asks about {name}, which is never reported in any environment (reported: {known})"
        yield f"planner {case.planner.name} {message}"


def _rules_never_used(looks: Sequence[Look]) -> Iterator[str]:
    """Rules and commands that decide in no reached state on no possible report."""
    case = looks[0].case
    if any(look.holds is None for look in looks):
        return
    holds, decides = (
        np.logical_or.reduce([mask for mask in masks if mask is not None])
        for masks in zip(*((look.holds, look.decides) for look in looks), strict=True)
    )
    changed = bool(case.study.grid.settings) or any(look.case.swept for look in looks)
    rules = (*case.planner.commands, *case.planner.rules)
    for number in np.flatnonzero(~decides).tolist():
        name = rules[number].path.rpartition(".")[2]
        if holds[number]:
            yield f"planner {case.planner.name}: {name} decides nowhere; where it holds, an earlier one does"
        elif not changed:
            yield f"planner {case.planner.name}: {name} decides nowhere; it holds in no reached state on no report"


def _used(case: Case) -> tuple[Mask, Mask]:
    """(rules,) whether the condition of each holds somewhere, and whether it decides somewhere."""
    skeleton, planner, system = case.states, case.planner, case.system
    rules = (*planner.commands, *planner.rules)
    holds, decides = np.zeros(len(rules), dtype=bool), np.zeros(len(rules), dtype=bool)
    going = np.flatnonzero(~skeleton.terminal)
    if not len(going):
        return holds, decides
    values: dict[str, Ints] = {name: value[going] for name, value in skeleton.valuations.items()}
    row = skeleton.entry_row[skeleton.entry[skeleton.indptr[going]]]
    possible = skeleton.channel.possible[row]
    for column, observation in enumerate(skeleton.channel.observations):
        view = view_of(system, planner, observation, values, len(going))
        undecided = possible[:, column]
        for number, rule in enumerate(rules):
            met = where_applies(system, rule, view.told, view.scope, len(going))
            holds[number] |= bool((met & possible[:, column]).any())
            decides[number] |= bool((met & undecided).any())
            undecided = undecided & ~met
    return holds, decides
