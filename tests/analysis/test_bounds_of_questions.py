"""Bounds for planners that ask within, count and report, against enumeration of vertices in fractions."""

import json
import random
from fractions import Fraction

import numpy as np
import pytest
from asking_worlds import EDGES, LABELS, UNIT, AskingWorld, single_matrices
from certificate_mutations import mutated
from certified_systems import greatest_lost
from second_checker import complaint
from shorthands import PROVEN
from small_objectives import channel_of

from verifier.analysis import kernel
from verifier.analysis.dependence_free import Rates, dependence_free
from verifier.analysis.robust.any_dependence import ends_of
from verifier.analysis.robust.region import Region, events_of, groups_of, needed_columns, told_of
from verifier.analysis.robust.solutions import robust_bounds
from verifier.pipeline import verify_spec
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions

BINS = len(EDGES) - 1
ROUNDING = 1e-12


def case_of(folder, world, formula="F good"):
    (folder / "m.toml").write_text(world.model)
    (folder / "c.json").write_text(json.dumps(world.document))
    (folder / "s.ltl").write_text(f'model "m.toml"\nenvironments here\nr: P = ? [ {formula} ]\n')
    options = RunOptions()
    return Study.of(read_inputs(folder / "s.ltl", folder / "c.json", options), options).cases[0]


def random_ends(rng):
    """(bin, true label) -> lower and upper billionths of LABELS, around rates that sum to 1."""
    found = {}
    for at in range(BINS):
        for label in LABELS:
            parts = [rng.randrange(1, 9) for _ in LABELS]
            rates = [UNIT * part // sum(parts) for part in parts]
            width = rng.randrange(0, UNIT // 4)
            found[at, label] = [max(rate - width, 0) for rate in rates], [min(rate + width, UNIT) for rate in rates]
    return found


def region_of(skeleton, ends):
    lower, upper = np.full((2, BINS, len(LABELS), len(LABELS)), Fraction(0), dtype=object)
    labels = [next(iter(label), "empty") for label in skeleton.channel.labels]
    for (at, true), (low, high) in ends.items():
        for label, least, most in zip(LABELS, low, high, strict=True):
            place = at, labels.index(label), labels.index(true)
            lower[place], upper[place] = Fraction(least, UNIT), Fraction(most, UNIT)
    return Region.of_bounds(skeleton, lower, upper)


@pytest.mark.parametrize(("located", "viewed"), [(False, False), (True, False), (False, True), (True, True)])
def test_they_are_those_of_all_choices_of_nature(located, viewed, tmp_path, thorough):
    """Each draw of each state with a vertex of its own; both sides in fractions. Certificates prove them."""
    inner, seeds = 0, 8 if thorough else 4
    for seed in range(seeds):
        rng = random.Random(seed)
        world = AskingWorld(rng, located, viewed)
        objective = case_of(tmp_path, world).objective(0)
        ends = random_ends(rng)
        points = world.points(ends)
        expected = world.value(points, min), world.value(points, max)
        if not len(objective.skeleton.columns_needed()):
            assert expected[0] == expected[1]
            continue
        found = robust_bounds(objective, region_of(objective.skeleton, ends), effort=PROVEN)
        assert expected[0] - Fraction(ROUNDING) <= found.lower[0] <= expected[0], seed
        assert expected[1] <= found.upper[0] <= expected[1] + Fraction(ROUNDING), seed
        assert not found.conservative
        inner += 0 < expected[0] < expected[1] < 1
        used = [place for place in points if needed_columns(objective.skeleton, BINS)[_at(objective, place)]]
        first = {place: points[place][:1] for place in points}
        for chosen in list(single_matrices(points, used))[:: (1 if thorough else 7) + 4 * (seed % 4)]:
            value = world.value({**first, **chosen}, min)
            assert found.lower[0] <= value <= found.upper[0]
        for certificate in found.certificates:
            content = json.loads(json.dumps(certificate))
            kernel.check(content)
            if seed % 4 == 0 and not viewed:
                assert complaint(content) is None
    assert inner >= (3 if thorough else 1)


def test_no_change_of_their_certificates_makes_a_false_bound_pass(tmp_path, thorough):
    """Whatever is accepted must be true of the system that the changed certificate states."""
    rng, accepted, refused = np.random.default_rng(4), 0, 0
    for seed in range(6 if thorough else 3):
        world = AskingWorld(random.Random(seed), located=seed % 2 == 0)
        objective = case_of(tmp_path, world).objective(0)
        ends = random_ends(random.Random(seed))
        for certificate in robust_bounds(objective, region_of(objective.skeleton, ends), effort=PROVEN).certificates:
            content = json.loads(json.dumps(certificate))
            for _ in range(30):
                _, changed = mutated(rng, content)
                try:
                    bounds = kernel.check(changed)
                except kernel.Rejected:
                    refused += 1
                    continue
                accepted += 1
                lost = [1 - each if changed["side"] == "lower" else each for each in bounds]
                least = greatest_lost(changed, rng, 3)
                assert all(most >= each for most, each in zip(lost, least, strict=True))
    assert accepted > (20 if thorough else 5)
    assert refused > (100 if thorough else 30)


def _at(objective, place):
    labels = [next(iter(label), "empty") for label in objective.skeleton.channel.labels]
    return place[0], labels.index(place[1])


class OneStep(AskingWorld):
    """One rule; a pedestrian at 15 m (b) and another at 5 m (a)."""

    def __init__(self, question, located=False):
        super().__init__(random.Random(0), located)
        self.question = question

    @property
    def model(self):
        return (
            'initial = "t = 0"\nterminal = "t = 1"\n[variables]\nt = { range = [0, 1], next = "t + 1" }\n'
            's = { range = [0, 1], next = "go" }\n[inputs]\ngo = { range = [0, 1], default = 0 }\n[labels]\n'
            'good = "s = 1"\n[environments]\nhere = [{ name = "a", class = "ped", distance_m = 5 }, '
            '{ name = "b", class = "ped", distance_m = 15 }]\n[planners.p]\n'
            f'rules = [{{ when = "{self.question}", set = {{ go = 1 }} }}]\n'
        )


PED = {
    (0, "ped"): ([UNIT // 2, 0, 0], [UNIT * 4 // 5, UNIT // 10, UNIT // 2]),
    (1, "ped"): ([UNIT // 5, 0, 0], [UNIT * 2 // 5, UNIT // 10, UNIT]),
}


@pytest.mark.parametrize(
    ("question", "located", "lower", "upper", "events"),
    [
        ("count(ped) >= 2", False, Fraction(1, 2) * Fraction(1, 5), Fraction(4, 5) * Fraction(2, 5), 2),
        ("sees(ped, within = 10)", False, Fraction(1, 2), Fraction(4, 5), 1),
        ("report(b) = ped", False, Fraction(1, 5), Fraction(2, 5), 1),
        # At 15 m it is reported below 10 m with 1/3, at 5 m with 4/5; of two, one is enough.
        ("report(b, within = 10) = ped", True, Fraction(1, 15), Fraction(2, 15), 1),
        (
            "sees(ped, within = 10)",
            True,
            1 - (1 - Fraction(2, 5)) * (1 - Fraction(1, 15)),
            1 - (1 - Fraction(16, 25)) * (1 - Fraction(2, 15)),
            2,
        ),
        (
            "count(ped, within = 10) = 2",
            True,
            Fraction(2, 5) * Fraction(1, 15),
            Fraction(16, 25) * Fraction(2, 15),
            2,
        ),
    ],
)
def test_one_step_by_hand(question, located, lower, upper, events, tmp_path):
    """What is told alike whatever the label has no event: the confidence is divided among fewer."""
    case = case_of(tmp_path, OneStep(question, located))
    objective = case.objective(0)
    found = robust_bounds(objective, region_of(objective.skeleton, PED))
    assert found.lower[0] == pytest.approx(float(lower), abs=ROUNDING)
    assert found.upper[0] == pytest.approx(float(upper), abs=ROUNDING)
    assert len(events_of(objective.skeleton, case.study.measured)) == events


def test_bounds_whatever_the_dependence_by_hand(tmp_path):
    """Two reports with rates r and s, jointly anything: both with max(0, r + s - 1) to min(r, s) (Frechet 1951)."""
    case = case_of(tmp_path, OneStep("count(ped) >= 2"))
    objective = case.objective(0)
    labels = case.study.matrices.labels
    counts = np.ones((BINS, len(labels), len(labels)), dtype=np.int64)
    place = [labels.index(frozenset({label} - {"empty"})) for label in LABELS]
    for at, rates in enumerate(([7, 1, 2], [6, 1, 3])):
        counts[at, place, place[0]] = rates
    rates = Rates.of_counts(counts, groups_of(objective.skeleton.channel))
    found = dependence_free(objective, ends_of(objective, case.study.measured), rates, 0, None, 10_000)
    assert abs(found.lower - Fraction(3, 10)) < 1e-9
    assert abs(found.upper - Fraction(6, 10)) < 1e-9


def test_where_nothing_is_drawn_all_labels_are_told_alike():
    nowhere = np.zeros((2, 0), dtype=np.int64)
    told = told_of(channel_of(((), ("a",)), nowhere, nowhere))
    assert told.group.tolist() == [0, 0]
    assert (told.kind.shape, told.ways, told.group_count) == ((2, 0), 1, 1)
    assert not told.matters.any()


def test_runs_have_them_with_certificates_and_verdicts(tmp_path):
    world = OneStep("count(ped) >= 2")
    case_of(tmp_path, world)
    (tmp_path / "s.ltl").write_text('model "m.toml"\nenvironments here\nr: P >= 0.999 [ F good ]\n')
    result = verify_spec(tmp_path / "s.ltl", tmp_path / "c.json", RunOptions())
    requirement = result.requirements[0]
    point = requirement.points[0]
    assert requirement.verdict.value == "violated"
    assert (
        0 < point.uncertainty.confidence_bounds.lower < point.probability < point.uncertainty.confidence_bounds.upper
    )
