"""Random worlds that draw, with two objects, and their chains state by state, in fractions.

A world is written twice, as a model file and as Python functions of the state; nothing of the program is used. The
variables are x (set by the planner), and y and z, which the world moves.
"""

import itertools
from fractions import Fraction

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
        rules = [f'{{ when = "{a[0]} & ({s[0]})", set = {{ go = {go} }} }}' for a, s, go in self.rules]
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
        document = {"schema": "verifier.confusion", "version": 1, "labelling": "class", "axes": ["predicted", "true"]}
        variables = [{"name": "occlusion", "of": "object", "edges": [0, 1, 2]}]
        return document | {
            "labels": list(LABELS), "false_positives": "counted", "variables": variables, "bins": bins
        }  # fmt: skip

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
