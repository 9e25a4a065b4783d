"""Objects that come, go and change class, what a planner may ask of their reports, and fields of view, by hand."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from world_specs import matrices_of, spec_of

from verifier.base.errors import InputError, LimitError
from verifier.chains.chain import markov_chain
from verifier.language.expressions import Source, evaluate, parse_expression, resolve_sees, to_text
from verifier.perception.confusion import EMPTY, ConfusionMatrices
from verifier.pipeline import verify_spec
from verifier.study.options import RunOptions
from verifier.systems.observation import Questions, Report
from verifier.systems.reader import read_model
from verifier.systems.scene import SkeletonOptions
from verifier.systems.skeleton import build_skeleton

PED, CAR = frozenset({"ped"}), frozenset({"car"})
# Columns ped, car, empty. Near: ped 6/10 right, 1/10 as a car; car 8/10, 1/10 as ped; a false ped 1/10. Far: 1/2.
NEAR = [[6, 1, 1], [1, 8, 0], [3, 1, 9]]
FAR = [[5, 0, 1], [0, 5, 1], [5, 5, 8]]
MATRICES = ConfusionMatrices("class", (PED, CAR, EMPTY), np.array([0.0, 10, 20, 40]), np.array([NEAR, FAR, FAR]))

ROAD = """
initial = "x = 0"
terminal = "x >= 2"
[variables]
x = { range = [0, 9], next = "x + step" }
[inputs]
step = { range = [0, 7], default = 2 }
[labels]
met = "present(walker)"
[environments]
ENVIRONMENTS
[planners.driver]
rules = [RULES]
"""


def skeleton_of(folder, objects, rules, environment="here", more="", matrices=MATRICES, **options):
    path = folder / "road.toml"
    text = ROAD.replace(
        "ENVIRONMENTS", f"here = [{objects}]\nthere = [{{ class = 'ped', name = 'walker', distance_m = 5 }}]"
    )
    path.write_text(text.replace("RULES", rules).replace("[planners.driver]", f"{more}\n[planners.driver]"))
    system = read_model(path).inside(environment).instantiate()
    return build_skeleton(system, system.planners["driver"], environment, matrices, SkeletonOptions(**options))


def steps_from(skeleton, x, matrices=MATRICES):
    """x' -> probability."""
    chain = markov_chain(skeleton, matrices.counts, {}, exact=True)
    values = chain.valuations["x"].tolist()
    row = range(*chain.indptr[values.index(x) :][:2])
    return {values[chain.indices[k]]: chain.fractions[k] for k in row}


WALKER = '{ name = "walker", class = "ped", distance_m = 5 }'
TRUCK = '{ name = "truck", class = "car", distance_m = 15 }'


def test_what_is_reported_about_one_object_is_not_what_is_reported_of_a_class(tmp_path):
    # The walker is told as a car 1 time in 10, and the truck 5 times in 10: sees(car) mixes them up.
    both = f"{WALKER}, {TRUCK}"
    asked = '{ when = "report(walker) = car", set = { step = 3 } }, '
    asked += '{ when = "report(truck) != empty", set = { step = 4 } }'
    assert steps_from(skeleton_of(tmp_path, both, asked), 0) == {
        3: Fraction(1, 10),
        4: Fraction(9, 10) * Fraction(1, 2),
        2: Fraction(9, 10) * Fraction(1, 2),
    }
    sees = '{ when = "sees(car)", set = { step = 3 } }'
    assert steps_from(skeleton_of(tmp_path, both, sees), 0)[3] == 1 - Fraction(9, 10) * Fraction(1, 2)


def test_an_object_that_is_there_where_another_is_not(tmp_path):
    # At x = 0 there is the walker alone, seen 6 times in 10; at x = 1 a car at 15 m alone, seen 1 time in 2.
    walker = '{ name = "walker", class = "ped", when = "x < 1 & !present(bus)", distance_m = 5 }'
    car = """{ name = "late", class = { ped = "present(walker)", car = "!present(ped)" }, when = "!present(walker)",
               distance_m = "ite(present(walker), 99, 15)" }""".replace("\n", "")
    bus = '{ name = "bus", class = "car", when = "false", distance_m = 99 }'
    rules = '{ when = "sees(ped)", set = { step = 1 } }, { when = "sees(car)", set = { step = 3 } }'
    for objects in (f"{walker}, {car}, {bus}", f"{bus}, {car}, {walker}"):
        skeleton = skeleton_of(tmp_path, objects, rules)
        assert steps_from(skeleton, 0) == {1: Fraction(6, 10), 3: Fraction(1, 10), 2: Fraction(3, 10)}
        assert steps_from(skeleton, 1) == {4: Fraction(1, 2), 3: Fraction(1, 2)}


def test_an_object_of_another_environment_is_missed_for_certain(tmp_path):
    rules = '{ when = "report(walker) = empty", set = { step = 3 } }'
    assert steps_from(skeleton_of(tmp_path, TRUCK, rules), 0) == {3: 1}


def test_counts_are_those_of_reports(tmp_path):
    # Two walkers at 5 m and 15 m: two reports of ped with 6/10 * 5/10, none with 4/10 * 5/10.
    two = f"{WALKER}, {{ class = 'ped', distance_m = 15 }}"
    rules = '{ when = "count(ped) >= 2", set = { step = 4 } }, { when = "count(ped) = 1", set = { step = 3 } }'
    expected = {4: Fraction(3, 10), 3: Fraction(1, 2), 2: Fraction(1, 5)}
    assert steps_from(skeleton_of(tmp_path, two, rules), 0) == expected
    value = '{ set = { step = "2 + count(ped)" } }'
    assert steps_from(skeleton_of(tmp_path, two, value), 0) == expected
    near = '{ set = { step = "2 + count(ped, within = 10)" } }'
    assert steps_from(skeleton_of(tmp_path, two, near), 0) == {3: Fraction(6, 10), 2: Fraction(4, 10)}


@pytest.mark.parametrize(("within", "seen"), [(10, 0), (20, Fraction(1, 2)), (40, Fraction(1, 2))])
def test_a_report_is_within_a_distance_if_its_bin_ends_there(tmp_path, within, seen):
    rules = f'{{ when = "sees(car, within = {within})", set = {{ step = 3 }} }}'
    assert steps_from(skeleton_of(tmp_path, TRUCK, rules), 0).get(3, 0) == seen
    named = f'{{ when = "report(truck, within = {within}) = car", set = {{ step = 3 }} }}'
    assert steps_from(skeleton_of(tmp_path, TRUCK, named), 0).get(3, 0) == seen


def test_an_object_that_is_not_there_reports_nothing_and_has_no_distance(tmp_path):
    # At x = 0 it is there, 5 m away; at x = 1 it is not, and -5 m is no distance.
    walker = '{ name = "walker", class = "ped", when = "x = 0", distance_m = "5 - 10 * x" }'
    rules = '{ when = "sees(ped)", set = { step = 3 } }, { when = "x = 0", set = { step = 1 } }'
    skeleton = skeleton_of(tmp_path, walker, rules)
    assert steps_from(skeleton, 0) == {3: Fraction(6, 10), 1: Fraction(4, 10)}
    assert steps_from(skeleton, 1) == {3: 1}
    assert skeleton.mask_of(parse_expression("met")).tolist() == [True, False, False]
    assert skeleton.mask_of(parse_expression("present(ped)")).tolist() == [True, False, False]
    assert skeleton.mask_of(parse_expression("ped")).tolist() == [True] * 3  # the environment has one, as always


def test_the_class_of_an_object_may_depend_on_the_state(tmp_path):
    walker = '{ name = "walker", class = { ped = "x = 0", car = "x > 0" }, distance_m = 5 }'
    rules = '{ when = "report(walker) = ped", set = { step = 3 } }, { when = "x = 0", set = { step = 1 } }'
    skeleton = skeleton_of(tmp_path, walker, rules)
    assert (steps_from(skeleton, 0)[3], steps_from(skeleton, 1)[4]) == (Fraction(6, 10), Fraction(1, 10))
    assert skeleton.mask_of(parse_expression("present(car)")).tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            '{ ped = "x = 0", car = "x >= 0" }',
            "in state x = 0 'walker' is ped and car; exactly one condition must hold",
        ),
        ('{ ped = "x = 5", car = "x = 6" }', "in state x = 0 'walker' is of no class"),
        ('{ ped = "x = 0", empty = "x > 0" }', "an object is of no class 'empty'"),
        ("{}", "expected at least one class and its condition"),
    ],
)
def test_an_object_of_two_classes_or_of_none(tmp_path, table, message):
    with pytest.raises(InputError) as caught:
        skeleton_of(tmp_path, f'{{ name = "walker", class = {table}, distance_m = 5 }}', "{}")
    assert message in str(caught.value)


VIEW = "[field_of_view]\ndistance_m = [0, 40]"


def test_false_positives_arise_in_every_bin_in_which_nothing_stands(tmp_path):
    # An empty road: a false ped 1 time in 10 in each of three bins, all three of which report by themselves.
    rules = '{ when = "sees(ped)", set = { step = 3 } }'
    assert steps_from(skeleton_of(tmp_path, "", rules, more=VIEW), 0)[3] == 1 - Fraction(9, 10) ** 3
    near = '{ when = "sees(ped, within = 20)", set = { step = 3 } }'
    assert steps_from(skeleton_of(tmp_path, "", near, more=VIEW), 0)[3] == 1 - Fraction(9, 10) ** 2
    # With the truck in the second bin two bins are left; the truck is taken for a ped never.
    assert steps_from(skeleton_of(tmp_path, TRUCK, rules, more=VIEW), 0)[3] == 1 - Fraction(9, 10) ** 2
    beside = skeleton_of(tmp_path, TRUCK, rules, more=VIEW, false_positives="background")
    assert steps_from(beside, 0)[3] == 1 - Fraction(9, 10) ** 3
    with_none = skeleton_of(tmp_path, TRUCK, rules, more=VIEW, false_positives="ignore")
    assert steps_from(with_none, 0) == {2: 1}


@pytest.mark.parametrize(("low", "high", "bins"), [(0, 10, 1), (10, 40, 2), (20, 40, 1)])
def test_false_positives_arise_within_the_field_of_view_only(tmp_path, low, high, bins):
    view = f"[field_of_view]\ndistance_m = [{low}, {high}]"
    narrow = skeleton_of(tmp_path, "", '{ when = "sees(ped)", set = { step = 3 } }', more=view)
    assert steps_from(narrow, 0)[3] == 1 - Fraction(9, 10) ** bins


@pytest.mark.parametrize(
    ("objects", "rules", "more", "message"),
    [
        ("", "{}", "", "expected a list of objects, got []"),
        ('{ class = "empty", distance_m = 5 }', "{}", VIEW, "remove the empty place"),
        ("", "{}", VIEW.replace("40", "30"), "no bin ends at 30; edges are 0, 10, 20, 40 m"),
        ("", "{}", VIEW.replace("[0", "[15"), "no bin ends at 15; edges are 0, 10, 20, 40 m"),
        (
            TRUCK,
            '{ when = "sees(car, within = 15)" }',
            "",
            "within = 15: no bin ends there; edges are 0, 10, 20, 40 m",
        ),
        (TRUCK, '{ when = "report(trcuk) = car" }', "", "unknown object 'trcuk'"),
        (
            TRUCK,
            '{ when = "report(truck)" }',
            "",
            "report(truck) is a class: write report(truck) = CLASS or != CLASS",
        ),
        (TRUCK, '{ when = "report(truck) = 3" }', "", "report(...) is a class: compare it with = or != to a class"),
        (TRUCK, '{ when = "report(truck) = bus" }', "", "the matrices have no class 'bus'"),
        (TRUCK, '{ when = "count(empty) = 1" }', "", "count(empty): nothing is ever reported as 'empty'"),
        (TRUCK, '{ when = "count(car)" }', "", "expected a condition, found a number"),
        (TRUCK, '{ when = "present(truck)" }', "", "present(...) belongs everywhere but in planners"),
        (TRUCK, '{ when = "sees(car, 20)" }', "", "sees(...) takes one name and within = DISTANCE"),
        (TRUCK, '{ when = "sees(car, within = x)" }', "", "within takes a number of metres"),
        (f"{TRUCK}, {TRUCK}", "{}", "", "two objects are named 'truck'"),
        (TRUCK.replace('"truck"', '"the truck"'), "{}", "", "'the truck' cannot be a name"),
    ],
)
def test_mistakes_are_named(tmp_path, objects, rules, more, message):
    with pytest.raises((InputError, LimitError)) as caught:
        skeleton_of(tmp_path, objects, rules, more=more)
    assert message in str(caught.value).replace('"', "'")


@pytest.mark.parametrize(
    ("told", "distance", "what", "hint"),
    [
        ('name = "walker", class = { ped = "true" }', -0.5, "walker is -0.5 m", "a distance is not negative"),
        ('class = { ped = "true" }', 0, "object is 0 m", "end the last bin of the matrices with null"),
        ('class = "ped", name = "walker"', 40, "ped is 40 m", "end the last bin of the matrices with null"),
        ('class = "empty"', 9.5, "place is 9.5 m", "end the last bin of the matrices with null"),
    ],
)
def test_what_stands_outside_of_the_bins_is_named(tmp_path, told, distance, what, hint):
    far = ConfusionMatrices("class", (PED, CAR, EMPTY), np.array([10.0, 20, 40]), np.array([FAR, FAR]))
    message = rf"in state x = 0 the {what} away, and the bins cover \[10, 40\) m\n  hint: {hint}"
    with pytest.raises(InputError, match=message):
        skeleton_of(tmp_path, f"{{ {told}, distance_m = {distance} }}", "{}", matrices=far)


@pytest.mark.parametrize(
    "text",
    [
        "report(o) = c",
        "!(report(o) = c)",
        "sees(c, within = 2.5)",
        "1 + count(c, within = 20) * 2",
        "present(o) & x = 1",
    ],
)
def test_atoms_read_back_as_written(text):
    node = parse_expression(text)
    assert to_text(node) == text
    assert parse_expression(to_text(node), Source(text)) == node


@pytest.mark.parametrize(
    ("texts", "caps"),
    [
        (["count(c) >= 2"], {"count(c)": 3}),
        (["2 < count(c)", "count(c) != 5 & x > 7", "sees(c)"], {"count(c)": 6}),
        (["count(c) = 1 | count(d) < 3"], {"count(c)": 2, "count(d)": 4}),
        (["count(c) = 1", "x + count(c) > 2"], {}),
        (["count(c) = 1 & count(c, within = 10) = 0", "count(c) < x"], {"count(c, within = 10)": 1}),
    ],
)
def test_counting_ends_one_above_the_largest_number_it_is_compared_with(texts, caps):
    asked = Questions.of(map(parse_expression, texts))
    assert asked.caps == caps
    for text, cap in caps.items():
        report, told = Report(frozenset(), frozenset({text})), frozenset()
        for number in range(1, cap + 2):
            told = asked.after(told, report)
            assert told == {f"{text} = {min(number, cap)}"}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("sees(c) & !sees(d)", True),
        ("count(c) = 2 & count(d) = 0", True),
        ("report(o) = empty", False),
        ("report(o) = d", False),
        ("report(p) = d", True),
        ("report(q) = empty", True),
    ],
)
def test_atoms_are_answered_by_facts(text, holds):
    facts = frozenset({"c", "count(c) = 2", "report(o) = *", "report(p) = d"})
    assert evaluate(resolve_sees(parse_expression(text), facts), {}) is holds


def test_a_false_positive_ahead_without_distance_errors(shared, tmp_path):
    """The reference's numbers for phantom_braking with the matrices' localisation left out."""
    worlds = shared / "oracles/worlds"
    document = json.loads(matrices_of(worlds / "phantom_braking", tmp_path).read_text())
    del document["localisation"]
    (tmp_path / "cm.json").write_text(json.dumps(document))
    model = (worlds / "phantom_braking/model.toml").read_text()
    (tmp_path / "model.toml").write_text(model.replace('[rewards]\nbraking = "max(v - speed, 0)"\n', ""))
    spec = spec_of(worlds / "phantom_braking", tmp_path, {"close", "hard"})
    spec.write_text(spec.read_text().replace(str(worlds / "phantom_braking"), str(tmp_path)))
    result = verify_spec(spec, tmp_path / "cm.json", RunOptions(confidence=None))
    found = {each.name: each.points for each in result.requirements}
    for name, expected in (("close", 4.60947157583e-07), ("hard", 0.0452191086493)):
        (point,) = [each for each in found[name] if each.environment == "lead"]
        assert math.isclose(point.probability, expected, rel_tol=1e-9)
