"""Random worlds that draw and decide, with two objects and trackers: their chains and processes, in fractions.

A world is written twice, as a model file and as Python functions of the state; nothing of the program is used. The
variables are x (set by the planner), and y and z, which the world moves.
"""

import itertools
from fractions import Fraction

from matrix_documents import document_of

CONDITIONS = [
    ("true", lambda x, y, z: True),
    ("x < 3", lambda x, y, z: x < 3),
    ("y != 1", lambda x, y, z: y != 1),
    ("x + y > z", lambda x, y, z: x + y > z),
]
SEEN = [("x % 2 = 0", lambda x: x % 2 == 0), ("x >= 2", lambda x: x >= 2), ("true", lambda x: True)]
DISTANCES = [
    ("2 * x + y", lambda x, y, z: 2 * x + y),
    ("9 - y", lambda x, y, z: 9 - y),
    ("z + 4", lambda x, y, z: z + 4),
]
HIDING = [("ite(y = 2, 1, 0)", lambda x, y, z: y == 2), ("z // 2", lambda x, y, z: z // 2)]
FIRST_DRAWS = [
    ('{ 1 = "ite(x < 3, 0.25, 0.5)", 0 = "rest" }', lambda x, y, z: {1: Fraction(1, 4) if x < 3 else Fraction(1, 2)}),
    ('{ 0 = "ite(y = 2, 1, 0.3)", 1 = "rest" }', lambda x, y, z: {1: Fraction(0) if y == 2 else Fraction(7, 10)}),
]
SECOND_DRAWS = [
    (
        '{ 2 = "z / 4", 0 = 0.25, 1 = "rest" }',
        lambda x, y, z: {0: Fraction(1, 4), 1: Fraction(3 - z, 4), 2: Fraction(z, 4)},
    ),
    ("{ 0 = 0.5, 2 = 0.5 }", lambda x, y, z: {0: Fraction(1, 2), 2: Fraction(1, 2)}),
]
MOVES_Y = [
    ("(y + walk + gust) % 3", lambda y, z, w, g: (y + w + g) % 3),
    ("max(y - 1, walk)", lambda y, z, w, g: max(y - 1, w)),
]
MOVES_Z = [("min(z + walk * gust, 3)", lambda y, z, w, g: min(z + w * g, 3)), ("gust", lambda y, z, w, g: g)]
ADMISSIBLE = [("true", lambda x, y, z: (0, 1)), ("push = 1 | x < 2", lambda x, y, z: (0, 1) if x < 2 else (1,)),
              ("push <= y", lambda x, y, z: (0, 1) if y >= 1 else (0,))]  # fmt: skip
INTERVALS = [
    ('{ 1 = [0.25, 0.5], 0 = "rest" }', lambda x, y, z: (Fraction(1, 4), Fraction(1, 2))),
    ('{ 1 = ["0.1 * y", "0.3"], 0 = "rest" }', lambda x, y, z: (Fraction(y, 10), Fraction(3, 10))),
    ('{ 1 = [0, 1], 0 = "rest" }', lambda x, y, z: (Fraction(0), Fraction(1))),
]
WINDOWS = [(2, 3, 2, 2), (1, 2, 1, 1), (1, 1, 1, 1), (2, 2, 2, 3)]
HIT, MISS, LEAST, MOST, UP, DOWN = 2, -1, -2, 3, 2, 0
GOALS = [
    lambda x, y, z: x == 3 and y > 0,
    lambda x, y, z: y == 2 and z > 1,
    lambda x, y, z: x >= 2 and z == 0,
    lambda x, y, z: x == 4 and y != 1,
]
STEPS = 4
ATOMS = [
    ("sees(ped)", lambda told: any(label == "ped" for _, label, _ in told)),
    ("sees(car, within = 6)", lambda told: any(label == "car" and end <= 6 for _, label, end in told)),
    ("count(ped) + count(car) >= 2", lambda told: len(told) >= 2),
    ("report(a) = car", lambda told: ("a", "car") in {report[:2] for report in told}),
    ("report(b) != empty", lambda told: any(name == "b" for name, _, _ in told)),
]  # fmt: skip
EDGES = (0, 3, 6, 12)
LABELS = ("ped", "car", "empty")


class PlainWorld:
    """One world; `model` and `document` are its files, `rows()` its chain."""

    def __init__(self, rng):
        pick = rng.choice
        self.objects = [(name, pick(LABELS[:2]), pick(CONDITIONS), pick(DISTANCES), pick(HIDING)) for name in "ab"]
        self.by_state = rng.random() < 0.5  # a is a car where x > 1, else a pedestrian
        self.walk, self.gust, self.next_y, self.next_z = map(pick, (FIRST_DRAWS, SECOND_DRAWS, MOVES_Y, MOVES_Z))
        self.rules = [(pick(ATOMS), pick(SEEN), rng.randrange(3)) for _ in range(3)]
        self.confirmed = [False] * 3  # whether a rule asks what the tracker says, too
        cells = [[[rng.randrange(1, 6) for _ in LABELS] for _ in LABELS] for _ in range(6)]
        for bin_ in range(0, 6, 2):  # what is reported where nothing is does not depend on what only objects have
            for row, other in zip(cells[bin_], cells[bin_ + 1], strict=True):
                other[2] = row[2]
        self.counts = cells

    @property
    def model(self):
        parts = []
        for name, label, when, distance, hiding in self.objects:
            kind = '{ car = "x > 1", ped = "x <= 1" }' if self.by_state and name == "a" else f'"{label}"'
            parts.append(
                f'{{ name = "{name}", class = {kind}, when = "{when[0]}", distance_m = "{distance[0]}", '
                f'at = {{ occlusion = "{hiding[0]}" }} }}'
            )
        rules = [
            f'{{ when = "{a[0]} & ({s[0]}){" & confirmed(t)" * c}", set = {{ go = {go} }} }}'
            for (a, s, go), c in zip(self.rules, self.confirmed, strict=True)
        ]
        return "\n".join([
            'initial = "x = 0 & y = 0 & z <= 1"', 'terminal = "x = 4"', "[variables]",
            'x = { range = [0, 4], next = "min(x + go, 4)" }',
            f'y = {{ range = [0, 2], next = "{self.next_y[0]}" }}',
            f'z = {{ range = [0, 3], next = "{self.next_z[0]}" }}',
            "[world]", f"walk = {{ range = [0, 1], probability = {self.walk[0]} }}",
            f"gust = {{ range = [0, 2], probability = {self.gust[0]} }}",
            "[inputs]", "go = { range = [0, 2], default = 1 }",
            "[environments]", f"here = [{', '.join(parts)}]", "[planners.p]", f"rules = [{', '.join(rules)}]",
        ])  # fmt: skip

    @property
    def document(self):
        bins = [
            {
                "distance_m": list(EDGES[k // 2 : k // 2 + 2]),
                "where": {"occlusion": [k % 2, k % 2 + 1]},
                "counts": cells,
            }
            for k, cells in enumerate(self.counts)
        ]
        variables = [{"name": "occlusion", "of": "object", "edges": [0, 1, 2]}]
        return document_of(labels=LABELS, false_positives="counted", variables=variables, bins=bins)

    def reports(self, state):
        """(reports, probability): each a (name, label, end of its bin)."""
        x, _, _ = state
        draws = []
        for name, label, when, distance, hiding in self.objects:
            if when[1](*state):
                label = ("car" if x > 1 else "ped") if self.by_state and name == "a" else label
                at = next(k for k in range(3) if EDGES[k] <= distance[1](*state) < EDGES[k + 1])
                column = [row[LABELS.index(label)] for row in self.counts[2 * at + int(hiding[1](*state))]]
                draws.append(
                    [
                        ((name, told, EDGES[at + 1]), Fraction(n, sum(column)))
                        for told, n in zip(LABELS, column, strict=True)
                    ]
                )
        for told in itertools.product(*draws):
            probability = Fraction(1)
            for _, chance in told:
                probability *= chance
            yield [report for report, _ in told if report[1] != "empty"], probability

    def drawn(self, state):
        """(walk, gust, probability)"""
        first = self.walk[1](*state)
        for walk, chance in ((1, first[1]), (0, 1 - first[1])):
            for gust, other in self.gust[1](*state).items():
                if chance * other:
                    yield walk, gust, chance * other

    def rows(self):
        """State (x, y, z) -> {next state: probability}, for the states that are reached."""
        pending, found = [(0, 0, 0), (0, 0, 1)], {}
        while pending:
            state = pending.pop()
            if state in found:
                continue
            x, y, z = state
            row = found[state] = {}
            if x == 4:
                row[state] = Fraction(1)
                continue
            for told, chance in self.reports(state):
                go = next((go for a, s, go in self.rules if a[1](told) and s[1](x)), 1)
                for walk, gust, other in self.drawn(state):
                    after = min(x + go, 4), self.next_y[1](y, z, walk, gust), self.next_z[1](y, z, walk, gust)
                    row[after] = row.get(after, 0) + chance * other
            pending += row
        return found


class ChoosingWorld(PlainWorld):
    """The same with a tracker, an input that the world decides, or an interval, each in some worlds.

    A state is (x, y, z, q, h): q whether the tracker is confirmed, h its last results (or its level); both None
    without one.
    """

    def __init__(self, rng):
        super().__init__(rng)
        self.tracker = rng.choice([None, "odds", *WINDOWS])
        self.of = rng.choice(ATOMS)
        self.confirmed = [self.tracker is not None and rng.random() < 0.6 for _ in self.rules]
        self.push = rng.choice([None, *ADMISSIBLE])
        self.interval = rng.choice([None, *INTERVALS])

    @property
    def decides(self):
        return self.push is not None or self.interval is not None

    @property
    def model(self):
        found = super().model
        if self.push is not None:
            found = found.replace(f'next = "{self.next_z[0]}"', f'next = "max({self.next_z[0]} - push, 0)"')
            found = found.replace("[world]", f'[world]\npush = {{ range = [0, 1], admissible = "{self.push[0]}" }}')
        if self.interval is not None:
            found = found.replace(f"probability = {self.walk[0]} }}", f"probability = {self.interval[0]} }}")
        if self.tracker is not None:
            m, n, m_, n_ = self.tracker if self.tracker != "odds" else (0,) * 4
            kind = f"confirm = [{m}, {n}], delete = [{m_}, {n_}]"
            if self.tracker == "odds":
                ends = f"range = [{LEAST}, {MOST}], confirm = {UP}, delete = {DOWN}"
                kind = f"log_odds = {{ hit = {HIT}, miss = {MISS}, {ends} }}"
            tracker = f'trackers = {{ t = {{ of = "{self.of[0]}", {kind} }} }}'
            found = found.replace("[planners.p]", f"[planners.p]\n{tracker}")
        return found

    def tracked(self, q, h, hit):
        """(q, h) after a result."""
        if self.tracker is None:
            return None, None
        if self.tracker == "odds":
            level = max(LEAST, min(MOST, h + (HIT if hit else MISS)))
            return level > DOWN if q else level >= UP, level
        m, n, m_, n_ = self.tracker
        seen = (*h, hit)
        if not q:
            return (True, (True,) * (n_ - 1)) if sum(seen) >= m else (False, seen[len(seen) - n + 1 :])
        return (False, (False,) * (n - 1)) if len(seen) - sum(seen) >= m_ else (True, seen[len(seen) - n_ + 1 :])

    def moves(self, push, walks, state):
        """Next state -> probability, with what the world decides."""
        x, y, z, q, h = state
        row = {}
        for told, chance in self.reports((x, y, z)):
            after = self.tracked(q, h, self.of[1](told))
            rules = zip(self.rules, self.confirmed, strict=True)
            go = next((go for (a, s, go), c in rules if a[1](told) and s[1](x) and (after[0] or not c)), 1)
            for walk, share in ((1, walks), (0, 1 - walks)):
                for gust, other in self.gust[1](x, y, z).items():
                    moved = self.next_z[1](y, z, walk, gust)
                    moved = moved if push is None else max(moved - push, 0)
                    to = min(x + go, 4), self.next_y[1](y, z, walk, gust), moved, *after
                    row[to] = row.get(to, 0) + chance * share * other
        return {to: p for to, p in row.items() if p}

    @property
    def starts(self):
        h = 0 if self.tracker == "odds" else None if self.tracker is None else (False,) * (self.tracker[1] - 1)
        return [(0, 0, z, None if self.tracker is None else False, h) for z in (0, 1)]

    def rows(self):
        """State -> its choices, each next state -> probability, for the states that are reached."""
        pending, found = self.starts, {}
        while pending:
            state = pending.pop()
            if state in found:
                continue
            x, y, z = state[:3]
            if x == 4:
                found[state] = [{state: Fraction(1)}]
                continue
            pushes = (None,) if self.push is None else self.push[1](x, y, z)
            walks = [self.walk[1](x, y, z)[1]] if self.interval is None else self.interval[1](x, y, z)
            found[state] = [self.moves(push, each, state) for push in pushes for each in walks]
            pending += itertools.chain.from_iterable(found[state])
        return found


def optima(rows, goal, starts):
    """The least and the greatest probabilities of coming to a goal within STEPS steps, from each start: doubles."""
    rows = {state: [[(float(p), to) for to, p in row.items()] for row in choices] for state, choices in rows.items()}
    for best in (min, max):
        value = {state: float(goal(*state[:3])) for state in rows}
        for _ in range(STEPS):
            value = {
                state: 1.0 if goal(*state[:3]) else best(sum(p * value[to] for p, to in row) for row in choices)
                for state, choices in rows.items()
            }
        yield from (value[start] for start in starts)
