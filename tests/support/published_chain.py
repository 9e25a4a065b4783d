"""The published car-pedestrian chain, written out from its definition in plain Python, one state at a time.

Independent of the package: dictionaries and fractions, no arrays. Labels are 'ped', 'obs', 'empty'.

Geometry: D = V(V+1)/2 with V the largest maximal speed of the study, N = D + 10 cells, stop cell D + 1.
Dynamics: x' = min(x + v, N) with the old v; v' in {v-1, v, v+1} within 0..vmax, from v = 0 only {0, 1}.
"""

from fractions import Fraction


def geometry(study_vmax):
    braking = study_vmax * (study_vmax + 1) // 2
    return braking + 10, braking + 1


def admissible(v, vmax):
    return [w for w in (v - 1, v, v + 1) if 0 <= w <= vmax]


def bits_reversed(v):
    """0, 8, 4, 12, 2, ...: least in least-significant-bit-first order."""
    return [(v >> k) & 1 for k in range(8)]


def winning_set(cells, stop, vmax):
    won = {(stop, 0)}
    while True:
        more = {
            (x, v)
            for x in range(1, stop)
            for v in range(1, vmax + 1)
            if (x, v) not in won and any((min(x + v, cells), w) in won for w in admissible(v, vmax))
        }
        if not more:
            return won
        won |= more


def runs(start, cells, stop, vmax):
    """label -> {state on its run: successor on the run}."""
    won = winning_set(cells, stop, vmax)

    def ped(x, v):
        if (x, v) == (stop, 0):
            return x, v
        into = [w for w in admissible(v, vmax) if (min(x + v, cells), w) in won]
        if (x, v) not in won or not into:
            return None
        return min(x + v, cells), min(into, key=bits_reversed)

    def obs(x, v):
        return min(x + v, cells), max(v - 1, 1)

    def empty(x, v):
        return min(x + v, cells), min(v + 1, vmax)

    found = {}
    for label, step in (("ped", ped), ("obs", obs), ("empty", empty)):
        path, state = {}, start
        while state is not None and state not in path:
            path[state] = step(*state)
            state = path[state]
        found[label] = {key: value for key, value in path.items() if value is not None}
    return found


def backup(x, v, cells):
    if x == cells:
        return x, v
    return (x, 1) if v == 0 else (min(x + v, cells), v)


def chain(start, study_vmax, vmax, column, decimals=None):
    """state -> {successor: probability}, for every state reachable from `start`.

    `column(distance_in_cells)` gives label -> probability of reporting it. States (stop, 0) and x = N absorb.
    """
    cells, stop = geometry(study_vmax)
    followed = runs(start, cells, stop, vmax)
    result, pending = {}, [start]
    while pending:
        state = pending.pop()
        if state in result:
            continue
        x, v = state
        row = {}
        if state == (stop, 0) or x == cells:
            row[state] = Fraction(1)
        else:
            for label, probability in column(abs(stop + 1 - x)).items():
                successor = followed[label].get(state, backup(x, v, cells))
                row[successor] = row.get(successor, 0) + probability
        if decimals is not None:
            row = {successor: round(Fraction(p), decimals) for successor, p in row.items()}
        result[state] = {successor: p for successor, p in row.items() if p}
        pending.extend(result[state])
    return result


def stop_probability(start, study_vmax, vmax, column, decimals=None):
    """P(F (stop, 0)) by substitution backwards: a car never moves back, and stands still only at v = 0."""
    _, stop = geometry(study_vmax)
    rows = chain(start, study_vmax, vmax, column, decimals)
    value = {}
    for state in sorted(rows, key=lambda s: (-s[0], -s[1])):
        if state == (stop, 0):
            value[state] = Fraction(1)
        elif rows[state].get(state) == 1:
            value[state] = Fraction(0)
        else:
            stay = rows[state].get(state, Fraction(0))
            onwards = sum((p * value[t] for t, p in rows[state].items() if t != state), Fraction(0))
            value[state] = onwards / (1 - stay)
    return value[start]
