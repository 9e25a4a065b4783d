"""A detector with memory, by the definition alone: every series of reports of a short episode, in fractions.

It shares nothing with the package. In each step several draws report, each a label from the column of its own
context; the context is a function of the draw's own outcomes so far, written out as a list.
"""

import itertools
from fractions import Fraction


def context_of(outcomes, kind, cap):
    """The name of the context after these outcomes, True for right."""
    if not outcomes:
        return "start"
    if kind == "last":
        return "".join("r" if right else "w" for right in outcomes[-cap:])
    run = len(list(itertools.takewhile(lambda right: right == outcomes[-1], reversed(outcomes))))
    return f"{'right' if outcomes[-1] else 'wrong'}*{min(run, cap)}"


def histories(steps, columns, kind, cap, begun=()):
    """Probability of every tuple of what is told in each step: {((set, ..), ..): fraction}.

    Args:
        steps: for each step the draws, as (who, bin, true label); a draw that was not there in the step before, or
            was of another, begins again.
        columns: (bin, true label, context) -> {reported label: fraction}; labels are frozensets of classes.
        kind, cap: of the contexts.
        begun: outcomes that every draw of the first step already has.
    """
    found = {((), ()): Fraction(1)}
    for number, draws in enumerate(steps):
        after = {}
        for (told, held), weight in found.items():
            own = dict(held)
            past = {who: list(begun) if number == 0 else own.get(who, []) for who, _, _ in draws}
            options = [columns[at, true, context_of(past[who], kind, cap)].items() for who, at, true in draws]
            for reports in itertools.product(*options):
                chance, seen, kept = weight, frozenset(), []
                for (who, _, true), (label, share) in zip(draws, reports, strict=True):
                    chance, seen = chance * share, seen | label
                    kept.append((who, (*past[who], label == true)))
                if chance:
                    key = ((*told, seen), tuple(kept))
                    after[key] = after.get(key, 0) + chance
        found = after
    total = {}
    for (told, _), weight in found.items():
        total[told] = total.get(told, 0) + weight
    return total
