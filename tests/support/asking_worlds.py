"""Worlds of a few steps whose planner asks where, how often and of whom: their bounds by definition, in fractions.

A world is written twice, as a model file and as Python functions; nothing of the program is used. In a state each
object reports from the column of its class in its bin; a report is in the bin that the localisation gives. Then each
bin of the field of view without an object reports from the column `empty`. Nature chooses a vertex of the column for
each of these draws, knowing the state and all reports before it.
"""

import itertools
from fractions import Fraction

from interval_models import vertices
from matrix_documents import document_of

EDGES = (0, 10, 20)
LABELS = ("ped", "car", "empty")
UNIT = 10**9
LOCATED = [[4, 1], [1, 2]]  # [reported][true]
ATOMS = [
    ("sees(ped)", lambda told: any(label == "ped" for _, label, _ in told)),
    ("sees(ped, within = 10)", lambda told: any(label == "ped" and at == 0 for _, label, at in told)),
    ("sees(car, within = 10)", lambda told: any(label == "car" and at == 0 for _, label, at in told)),
    ("count(ped) >= 2", lambda told: sum(label == "ped" for _, label, _ in told) >= 2),
    ("count(car, within = 10) = 1", lambda told: sum(label == "car" and at == 0 for _, label, at in told) == 1),
    ("report(a) = car", lambda told: ("a", "car") in {each[:2] for each in told}),
    ("report(b) != empty", lambda told: any(name == "b" for name, _, _ in told)),
    ("report(b, within = 10) = ped", lambda told: ("b", "ped", 0) in told),
]  # fmt: skip
DISTANCES = [
    ("5", lambda t: 5),
    ("15", lambda t: 15),
    ("15 - 8 * t", lambda t: 15 - 8 * t),
    ("2 + 9 * t", lambda t: 2 + 9 * t),
]
STEPS = 2


class AskingWorld:
    """One world: `model`, `document`, and the `value` that choices of rates give."""

    def __init__(self, rng, located=True, viewed=False):
        self.objects = [(name, rng.choice(LABELS[:2]), rng.choice(DISTANCES)) for name in "ab"]
        self.rules = [(rng.choice(ATOMS), rng.randrange(3)) for _ in range(2)]
        self.default, self.located, self.viewed = rng.randrange(3), located, viewed
        self.goal = rng.randrange(1, 4)
        self.counts = [[[rng.randrange(1, 9) for _ in LABELS] for _ in LABELS] for _ in EDGES[1:]]

    @property
    def model(self):
        objects = ", ".join(
            f'{{ name = "{name}", class = "{label}", distance_m = "{distance[0]}" }}'
            for name, label, distance in self.objects
        )
        rules = ", ".join(f'{{ when = "{atom[0]}", set = {{ go = {go} }} }}' for atom, go in self.rules)
        return "\n".join([
            'initial = "t = 0 & s = 0"', f'terminal = "t = {STEPS}"', "[variables]",
            f't = {{ range = [0, {STEPS}], next = "t + 1" }}', 's = { range = [0, 9], next = "s + go" }', "[inputs]",
            f"go = {{ range = [0, 2], default = {self.default} }}", "[labels]",
            f'good = "t = {STEPS} & s >= {self.goal}"',
            *(["[field_of_view]", "distance_m = [0, 20]"] if self.viewed else []),
            "[environments]", f"here = [{objects}]", "[planners.p]", f"rules = [{rules}]",
        ])  # fmt: skip

    @property
    def document(self):
        located = {"localisation": {"axes": ["reported", "true"], "counts": LOCATED}} if self.located else {}
        return document_of(*self.counts, labels=LABELS, edges=EDGES, false_positives="counted", **located)

    def draws(self, t):
        """(name, bin, column, [(reported bin, probability)]) of each draw."""
        bins = [(name, label, int(distance[1](t) >= EDGES[1])) for name, label, distance in self.objects]
        for name, label, at in bins:
            share = [Fraction(row[at], sum(row[at] for row in LOCATED)) for row in LOCATED]
            yield name, at, label, list(enumerate(share)) if self.located else [(at, Fraction(1))]
        for at in range(2 if self.viewed else 0):
            if at not in {each[2] for each in bins}:
                yield "", at, "empty", [(at, Fraction(1))]

    def value(self, points, best, t=0, s=0):
        """The `best` (min or max) probability of ending well, over the points (bin, column) -> rates of LABELS."""
        if t == STEPS:
            return Fraction(int(s >= self.goal))
        draws = list(self.draws(t))

        def behind(k, told):
            if k == len(draws):
                go = next((go for atom, go in self.rules if atom[1](told)), self.default)
                return self.value(points, best, t + 1, s + go)
            name, at, column, located = draws[k]
            worth = [
                behind(k + 1, told)
                if label == "empty"
                else sum(share * behind(k + 1, [*told, (name, label, there)]) for there, share in located)
                for label in LABELS
            ]
            return best(sum(rate * w for rate, w in zip(point, worth, strict=True)) for point in points[at, column])

        return behind(0, [])

    def points(self, ends):
        """The vertices of (bin, column) -> (lower, upper) billionths of each label, as rates."""
        return {
            place: [[Fraction(mass, UNIT) for mass in point] for point in vertices(low, high)]
            for place, (low, high) in ends.items()
        }


def single_matrices(points, used):
    """Every way to choose one vertex for each of the used columns."""
    for chosen in itertools.product(*(points[place] for place in used)):
        yield {place: [point] for place, point in zip(used, chosen, strict=True)}
